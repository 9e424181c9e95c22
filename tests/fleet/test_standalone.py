"""Every step on a standalone cluster, whose workers have a Python without kelr."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from kelr.commands.main import main
from kelr.errors import ExitCode
from kelr.fleet.travel import RECIPE, WORKERS_IMPORT, packed, why_not
from tests.fleet.quick import QUICK_JAVA

_STARTED_WITHIN_S = 180
PROGRAM = """
import json, os, sys
os.environ["KELR_STATE_DIR"] = sys.argv[2]
from kelr.commands.main import main
from kelr.errors import UnsupportedError
from kelr.fleet.session import running_session
master, bare, python, java, steps = json.loads(sys.argv[1])
settings = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "600m", "spark.ui.enabled": "false", "spark.executor.extraJavaOptions": java,
    "spark.driver.extraJavaOptions": java, "spark.sql.codegen.wholeStage": "false",
}
try:
    with running_session(master, settings={**settings, "spark.pyspark.python": bare}):
        raise AssertionError("workers without pyarrow")
except UnsupportedError as error:
    print("refused", error, "|", error.next_step, file=sys.stderr)
with running_session(master, settings={**settings, "spark.pyspark.python": python}):
    codes = [main(step) for step in steps]
print("codes", *codes, file=sys.stderr)
"""


@contextmanager
def daemon(place: Path, name: str, *arguments: str) -> Iterator[Path]:
    """A master or worker on 127.0.0.1; what it says goes to a file."""
    said = place / f"{name}.log"
    command = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA, "SPARK_DAEMON_MEMORY": "300m"}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(place / f"{name}-work")}
    with said.open("wb") as file:
        process = subprocess.Popen(
            [str(command), *arguments, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"],
            stdout=file, stderr=file, env=environment, cwd=place, start_new_session=True,
        )  # fmt: skip
    try:
        yield said
    finally:
        process.terminate()
        process.wait(60)


def waited(said: Path, wanted: str) -> str:
    """What a file comes to say."""
    deadline = time.monotonic() + _STARTED_WITHIN_S
    while (found := re.search(wanted, said.read_text())) is None:
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.1)
    return found[1]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Its address; two workers have registered."""
    with ExitStack() as stack:
        said = stack.enter_context(daemon(tmp_path, "master", "org.apache.spark.deploy.master.Master"))
        address = waited(said, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        worker = ("org.apache.spark.deploy.worker.Worker", address, "--cores", "1", "--memory", "700m")
        for name in ("worker-1", "worker-2"):
            waited(stack.enter_context(daemon(tmp_path, name, *worker)), r"Successfully registered with (master)")
        yield address


def a_python(place: Path, *folders: str) -> str:
    """A Python of this version, with the packages of some folders; what is there to be edited is not among them."""
    venv.create(place, with_pip=False, symlinks=True)
    here = sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)})
    Path(here, "others.pth").write_text("".join(f"{folder}\n" for folder in folders))
    return str(place / "bin" / "python")


def test_what_is_sent_is_all_that_workers_load(tmp_path: Path) -> None:
    """Out of the archive, in a Python that has no kelr; schemas of records are in it, too."""
    python = a_python(tmp_path / "python", sysconfig.get_path("purelib"))
    names = [name for name in WORKERS_IMPORT if name.startswith("kelr")]
    program = f"import sys; sys.path.insert(0, sys.argv[1]); import {', '.join(names)}; print(kelr.__file__)"
    record = "BrokerRegistrationChangeRecord"
    schema = f"from kelr.protocol.codec import message_class; print(message_class({record!r}).NAME)"
    done = subprocess.run(
        [python, "-c", f"{program}; {schema}", str(packed(tmp_path))],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.stdout.splitlines()[1:], done.stderr) == ([record], "")
    assert ".zip/kelr/__init__.py" in done.stdout


@pytest.mark.longer
def test_all_steps_run_where_workers_have_no_kelr(
    master: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet, lake, report = (str(tmp_path / name) for name in ("fleet", "lake", "report"))
    shape = ("--clusters", "2", "--partitions", "20", "--brokers", "4", "--weeks", "1", "--seed", "3", "--workers", "1")
    assert main(["fleet", "generate", fleet, *shape, "--files", "cut,snapshots"]) == 0
    capsys.readouterr()
    python = a_python(tmp_path / "python", sysconfig.get_path("purelib"))
    without = subprocess.run(
        [python, "-c", "import pyarrow, kelr"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "No module named 'kelr'" in without.stderr
    steps = [
        ["fleet", "ingest", fleet, "--out", lake, "-o", "json"],
        ["fleet", "assess", "--lake", lake, "--scenarios", "now,each-broker", "-o", "json"],
        ["fleet", "exposure", "--lake", lake, "-o", "json"],
        ["fleet", "report", "--lake", lake, "--out", report, "-o", "json"],
    ]
    given = json.dumps([master, a_python(tmp_path / "bare"), python, QUICK_JAVA, steps])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given, str(tmp_path / "state")],
        capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path,
    )  # fmt: skip
    refused, *_, codes = done.stderr.splitlines()
    assert codes == "codes 0 0 0 0", done.stderr
    assert refused == f"refused Spark's workers cannot run kelr: their Python has no pyarrow | {RECIPE}"
    assert "Not told" not in Path(report, "report.md").read_text()
    assert list(Path(lake, "assessments").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("x\nModuleNotFoundError: No module named 'pydantic'\n", "their Python has no pydantic"),
        ("No module named 'kelr.fleet'", "their Python has no kelr.fleet"),
        ('IOException: Cannot run program "./env/bin/python": error=2', "there is no ./env/bin/python on them"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", "their Python is not a "),
        ("ArithmeticException", None),
    ],
)
def test_what_is_missing_is_named(said: str, why: str | None) -> None:
    found = why_not(said)
    assert found is None if why is None else str(found).startswith(why)
    assert ExitCode.UNSUPPORTED == 5
