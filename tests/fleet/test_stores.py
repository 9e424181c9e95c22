"""The whole pipeline with inputs, lake and report on a file system that is not this machine's; killed once on the way.

On an HDFS that starts by itself, and on any other that `tests.fleet.stores.given` is told of.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.main import main
from kelr.errors import ExitCode
from tests.fleet.quick import QUICK_JAVA
from tests.fleet.stores import Store, given, hdfs

pytestmark = pytest.mark.longer

SHAPE = ("--clusters", "3", "--partitions", "90", "--brokers", "6", "--weeks", "1", "--incidents", "2", "--seed", "11")
QUICK = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
}
PROGRAM = """
import contextlib, hashlib, io, json, os, signal, sys, time
from kelr.commands.main import main
from kelr.fleet.lake import Lake
from kelr.fleet.merging import _Merging
from kelr.fleet.session import fleet_session
from kelr.fleet.tables import INGESTED, INPUTS

todo, conf = json.loads(sys.argv[1])
spark = fleet_session("local[2]", settings=conf)
found = []


def put(source, place):
    hadoop, settings = spark._jvm.org.apache.hadoop.fs, spark._jsc.hadoopConfiguration()
    here, there = hadoop.Path("file://" + source), hadoop.Path(place)
    systems = here.getFileSystem(settings), there.getFileSystem(settings)
    systems[1].mkdirs(there.getParent())
    # Through streams, as Spark writes.
    if not hadoop.FileUtil.copy(systems[0], here, systems[1], there, False, settings):
        return 1
    return 0


def content(place):
    for table in INGESTED:
        if table is not INPUTS:
            rows = sorted(repr(row.asDict()) for row in Lake(spark, place).read(table).collect())
            yield table.name, [len(rows), hashlib.sha256("\\n".join(rows).encode()).hexdigest()]


for what, *arguments in todo:
    began, out, err = time.monotonic(), io.StringIO(), io.StringIO()
    if what == "put":
        code = put(*arguments)
    elif what == "content":
        json.dump(dict(content(*arguments)), out)
        code = 0
    else:
        if what == "killed":
            _Merging.elections = lambda self: os.killpg(0, signal.SIGKILL)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "-o", "json"])
    found.append([code, out.getvalue(), err.getvalue(), time.monotonic() - began])
    print(what, *arguments, code, round(found[-1][-1], 1), file=sys.stderr)
print(json.dumps(found))
"""
"""What one process does, one thing after another. One that is killed ends with its JVM when some of its rows are in the
lake's folders."""


@dataclass(frozen=True)
class World:
    """Generated clusters, and a store."""

    store: Store
    fleet: Path

    def do(self, todo: Sequence[Sequence[str]], *, code: int = 0) -> list[Any]:
        """Do all of it in one process, which is to end so; what each printed, or said where it failed, and the time."""
        conf = {**QUICK, **dict(one.split("=", 1) for one in self.store.conf)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps([todo, conf])],
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
            start_new_session=True,
        )
        assert done.returncode == code, done.stderr
        sys.stderr.write(done.stderr)
        return [] if code else json.loads(done.stdout.splitlines()[-1])

    def clusters(self) -> list[Path]:
        return sorted(path for path in self.fleet.iterdir() if path.is_dir())


@pytest.fixture(scope="module", params=["hdfs", "given"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("stores")
    shapes = ("--files", "copies,cut,snapshots", "--workers", "1")
    assert main(["fleet", "generate", str(place / "fleet"), *SHAPE, *shapes]) == 0
    with hdfs(place / "hdfs") if request.param == "hdfs" else nullcontext(given()) as store:
        yield World(store, place / "fleet")


def test_from_files_to_the_report(world: World, tmp_path: Path) -> None:
    place, here = world.store.place, str(tmp_path / "lake")
    first, *_ = world.clusters()
    told = [word for one in world.store.conf for word in ("--conf", one)]
    takes = ("fleet", "ingest", f"{place}/in", "--out", f"{place}/lake", "--names-of-folders")
    *_, some = world.do(
        [
            *(("put", str(one), f"{place}/in/{one.name}") for one in world.clusters()),
            ("run", "fleet", "ingest", f"{place}/in/{first.name}", "--out", f"{place}/lake", "--names-of-folders"),
        ]
    )
    document = _document(some)
    assert (document["lake"], document["version"], len(document["items"])) == (f"{place}/lake", 1, 1)

    world.do([("killed", *takes)], code=-signal.SIGKILL)
    more, there, local, same, again, *others = world.do(
        [
            ("run", *takes),
            ("content", f"{place}/lake"),
            ("run", "fleet", "ingest", str(world.fleet), "--out", here, "--names-of-folders"),
            ("content", here),
            ("run", *takes),
            ("run", "fleet", "assess", "--lake", f"{place}/lake", "--scenarios", "now,each-broker"),
            ("run", "fleet", "exposure", "--lake", f"{place}/lake"),
            ("run", "fleet", "report", "--lake", f"{place}/lake", "--out", f"{place}/report", *told),
            ("run", "fleet", "ingest", f"{place}/none", "--out", f"{place}/lake"),
            ("run", "fleet", "report", "--lake", f"{place}/none", "--out", f"{place}/report", *told),
        ]
    )
    document = _document(more)
    assert (document["version"], len(document["items"])) == (2, 2), "the killed run made no version"
    assert local[0] == 0, local
    tables = json.loads(there[1])
    assert tables == json.loads(same[1])
    assert all(tables[name][0] for name in ("partition_states", "elections", "log_info", "broker_events"))
    document = _document(again)
    assert (document["version"], document["items"]) == (2, [])
    *steps, no_input, no_lake = others
    report = [_document(step) for step in steps][-1]
    assert f"{place}/report/report.html" in report["written"]
    assert f"{place}/report/csv/exposure.csv" in report["written"]
    assert report["items"]
    assert not [note for note in report["notes"] if "not told" in note.lower()]
    assert no_input[0] == no_lake[0] == ExitCode.USAGE
    assert f"{place}/none: no such file or directory" in no_input[2]
    assert f"{place}/none is no lake" in no_lake[2]


def _document(done: Sequence[Any]) -> Any:
    code, out, err, _ = done
    assert code == 0, err
    return json.loads(out)
