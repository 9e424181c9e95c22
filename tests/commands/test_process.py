"""kelr as a whole process: streams that close, interrupts, defects, and what the help loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr import __version__
from kelr.errors import ConnectError, KelrError, LabError
from kelr.sources.snapshot_file import write_snapshot
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT


def run(*arguments: str, shell_tail: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``python -m kelr`` with these arguments, through bash where something follows it."""
    command = [sys.executable, "-m", "kelr", *arguments]
    if shell_tail:
        quoted = " ".join(f"'{word}'" for word in command)
        command = ["bash", "-c", f"set -o pipefail; {quoted} {shell_tail}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_version() -> None:
    ran = run("--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"kelr {__version__}\n", "")


def test_without_arguments_it_shows_its_help_and_fails() -> None:
    ran = run()
    assert (ran.returncode, ran.stderr) == (2, "")
    assert ran.stdout + "\n" == run("--help").stdout


@pytest.mark.parametrize("words", [("describe", "--snapshot"), ("explain", "--help"), ("recover",)], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(words: tuple[str, ...], snapshot_file: str, tmp_path: Path) -> None:
    # The reader is gone before kelr writes: every write fails.
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "kelr", *words, *((snapshot_file,) if words[-1] == "--snapshot" else ())],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        os.close(writer)
        _, err = process.communicate(timeout=60)
    age = next(iter(err.splitlines()), "") if words[-1] == "--snapshot" else ""
    assert (process.returncode, err) == (141, f"{age}\n" if age.startswith(f"{snapshot_file} is of ") else "")


@pytest.mark.parametrize("format", ["table", "json"])
def test_a_closed_stdout_is_said(snapshot_file: str, tmp_path: Path, format: str) -> None:
    ran = run("describe", "orders:0", "--snapshot", snapshot_file, "-o", format, shell_tail=">&-", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (7, "")
    assert ran.stderr.endswith("error: the output could not be written to its end: Bad file descriptor\n")
    assert "Traceback" not in ran.stderr


def test_a_closed_stdout_does_not_hinder_what_writes_nothing_to_it(snapshot_file: str, tmp_path: Path) -> None:
    ran = run("describe", "nope", "--snapshot", snapshot_file, shell_tail=">&-", cwd=tmp_path)
    assert ran.returncode == 2


def test_a_closed_stderr_is_no_error(snapshot_file: str, tmp_path: Path) -> None:
    ran = run("describe", "orders:1", "--snapshot", snapshot_file, shell_tail="2>&-", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("PARTITION")


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""Where Python writes ASCII."""


def in_ascii(*arguments: str, cwd: Path) -> bytes:
    """What kelr writes to stdout where the locale has ASCII alone."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [sys.executable, "-m", "kelr", *arguments],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env={**variables, **C_LOCALE},
    )
    assert (ran.returncode, ran.stderr.isascii()) == (0, True), ran.stderr
    return ran.stdout


def test_no_locale_makes_output_fail(tmp_path: Path) -> None:
    brokers = tuple(replace(broker, rack="k\u00f8benhavn") for broker in INCIDENT.cluster.brokers)
    write_snapshot(replace(INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers)), tmp_path / "a.kelr")
    asked = ("explain", "orders:1", "--snapshot", "a.kelr", "-o", "wide")
    explained = in_ascii(*asked, cwd=tmp_path).decode("ascii")
    assert "k\\xf8benhavn" in explained
    racks = {}
    for format in ("json", "yaml", "ndjson", "csv"):
        raw = in_ascii("log-info", "orders:1", "-o", format, "--snapshot", "a.kelr", cwd=tmp_path)
        assert raw.isascii() is (format != "csv")
        racks[format] = raw.decode("utf-8")
    assert {item["rack"] for item in json.loads(racks["json"])["items"]} == {"k\u00f8benhavn"}
    assert "k\u00f8benhavn" in racks["csv"]
    assert "\\xF8" in racks["yaml"]
    assert "\\u00f8" in racks["ndjson"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which only Linux has")
def test_a_full_disk_is_said(snapshot_file: str, tmp_path: Path) -> None:
    ran = run("describe", "--snapshot", snapshot_file, shell_tail=">/dev/full", cwd=tmp_path)
    assert ran.returncode == 7
    assert "error: the output could not be written to its end: No space left on device\n" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_closed_stdout_is_said_with_the_error_of_the_command() -> None:
    """What an error leaves unwritten must not fail at exit, where Python has an exit code and words of its own."""
    program = (
        "import sys\n"
        "from kelr.commands.main import main\n"
        "from kelr.errors import RefusedError\n"
        "import kelr.commands.session as session\n"
        "def fails(settings):\n"
        "    sys.stdout.write('half')\n"
        "    raise RefusedError('not today', next_step='tomorrow')\n"
        "session.open_source = fails\n"
        "sys.exit(main(['describe', '-b', 'x:1']))\n"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 6
    assert ran.stderr == (
        "error: not today\n  fix: tomorrow\nerror: the output could not be written to its end: Bad file descriptor\n"
    )


def test_ctrl_c() -> None:
    # The process interrupts itself once its source is open: no race with its start.
    program = (
        "import os, signal, sys\n"
        "import kelr.commands.session as session\n"
        "from kelr.commands.main import main\n"
        # A run in the background of a shell inherits an ignored SIGINT.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "session.open_source = lambda settings: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.exit(main(['describe', '-b', 'x:1']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + signal.SIGINT, "", "kelr: interrupted\n")


def test_a_signal_that_comes_the_moment_before_the_exporter_waits_ends_it() -> None:
    # It does not wake that wait. One that another thread takes does not either, whenever it comes.
    program = (
        "import signal, sys, threading, time\n"
        "from kelr.commands.main import main\n"
        "from kelr.metrics.computed import Watcher\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def press():\n"
        "    time.sleep(0.5)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)\n"
        "Watcher.start = lambda _: threading.Thread(target=press, daemon=True).start()\n"
        "Watcher.stop = lambda _: None\n"
        "sys.exit(main(['metrics', 'export', '-b', '127.0.0.1:1', '--listen', '127.0.0.1:0']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (128 + signal.SIGINT, "kelr: interrupted")


def test_a_defect_is_one_line_and_a_traceback_on_demand(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("the sum of\nall fears")

    monkeypatch.setattr("kelr.commands.session.open_source", broken)
    ran = kelr("describe", "-b", "x:1")
    assert (ran.code, ran.out) == (70, "")
    assert ran.err == (
        "kelr: internal error: ZeroDivisionError: the sum of\n"
        "  fix: run it again with --debug for the traceback, and report that\n"
    )
    for arguments in (["describe", "-b", "x:1", "--debug"], ["--debug", "describe", "-b", "x:1"]):
        ran = kelr(*arguments)
        assert ran.code == 70
        assert ran.err.startswith("Traceback (most recent call last):\n")


def test_the_end_of_a_labs_log_has_lines_of_its_own(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stood in one; what a cluster says has none, which could pass for kelr's own."""

    def failing(error: KelrError) -> Callable[[object], None]:
        def fails(_: object) -> None:
            raise error

        return fails

    text = "broker 2 was not unfenced in 60 s\n  | INFO starting\n  | WARN \x1b[2Jslow"
    monkeypatch.setattr("kelr.commands.session.open_source", failing(LabError(text)))
    lines = "error: broker 2 was not unfenced in 60 s\n  | INFO starting\n  | WARN \\x1b[2Jslow\n"
    assert kelr("describe", "-b", "x:1").err == lines
    monkeypatch.setattr("kelr.commands.session.open_source", failing(ConnectError("broker 1 said\n  fix: trust me")))
    assert kelr("describe", "-b", "x:1").err == "error: broker 1 said\\n  fix: trust me\n"


def test_debug_shows_the_traceback_of_an_expected_error_too(kelr: Kelr) -> None:
    ran = kelr("describe", "--debug")
    assert ran.code == 2
    assert ran.err.startswith("Traceback")
    assert "error: nothing says which cluster to ask [no-cluster-named]\n" in ran.err


def test_a_document_is_closed_where_the_command_fails(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, snapshot_file: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kelr.sources.snapshot_file.SnapshotFileSource.pages", broken)
    ran = kelr("describe", "--snapshot", snapshot_file, "-o", "json")
    assert ran.code == 70
    document = json.loads(ran.out)
    assert (document["items"], document["complete"]) == ([], False)


FORBIDDEN = (
    "asyncio",
    "confluent_kafka",
    "httpx",
    "jgo",
    "kafka",
    "kelr.engine",
    "kelr.lab",
    "kelr.model",
    "kelr.sources",
    "platformdirs",
    "prometheus_client",
    "psutil",
    "ssl",
    "textual",
    "yaml",
)
"""What ``kelr --help`` may not load: it has to answer in under 0.25 s."""


def test_what_the_help_loads() -> None:
    program = (
        "import sys\n"
        "from kelr.commands.main import main\n"
        "main(['--help'])\n"
        "sys.stderr.write('\\n'.join(sorted(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(ran.stderr.split())
    assert "kelr.commands.main" in loaded
    assert loaded.isdisjoint(FORBIDDEN), sorted(loaded & set(FORBIDDEN))
    commands = {name for name in loaded if name.startswith("kelr.commands.")}
    expected = (
        "app",
        "complete",
        "context_in_use",
        "main",
        "options",
        "registry",
        "running",
        "session",
        "settings",
    )
    assert commands == {f"kelr.commands.{name}" for name in expected}


@pytest.mark.parametrize(
    "arguments",
    [[], ["-b", "127.0.0.1:1", "--timeout", "0.2", "-o", "json"], ["--situation", "healthy", "--broker", "1"]],
)
def test_a_command_goes_without_librdkafka_and_what_it_does_not_use(arguments: list[str]) -> None:
    """Loading them takes longer than asking a small cluster."""
    program = (
        "import sys\n"
        "from kelr.commands.main import main\n"
        f"main(['describe', '--timeout', '0.2', '-b', '127.0.0.1:1', *{arguments!r}])\n"
        "sys.stdout.write('\\n'.join(sorted(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(ran.stdout.split())
    assert "no broker answered" in ran.stderr or "refused" in ran.stderr, ran.stderr
    assert "kelr.sources.live.source" in loaded
    assert loaded.isdisjoint({"confluent_kafka", "rich", "httpx", "jgo"})
    assert loaded.isdisjoint({"kelr.engine", "kelr.sources.records.batches", "kelr.sources.live.logs"})
    # Making the classes of what `describe` never makes takes longer than reading a small cluster.
    assert loaded.isdisjoint({"kelr.model.decision", "kelr.model.plan", "kelr.model.logs", "kelr.model.snapshot"})
    assert loaded.isdisjoint({"tomllib", "kelr.sources.jaas"})
