"""The session that every step stands on, and what is said where there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import types
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow
import pytest

from kelr.errors import ConnectError, UnsupportedError, UsageError
from kelr.fleet import session as connect
from kelr.fleet.session import fleet_session, running_session
from tests.fleet.quick import QUICK_JAVA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

STARTED = """
import sys
from kelr.fleet.session import running_session
counts = []
def count(done, total): counts.append((done, total))
with running_session("local[2]", settings={settings}, progress=count) as spark:
    print("rows", spark.range(10).repartition(64).count())
print("counted", bool(counts) and all(0 <= done <= total for done, total in counts))
"""


def python_of_workers(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for _ in batches:
        yield pyarrow.RecordBatch.from_pylist([{"python": sys.executable}])


def test_results_hang_on_no_setting_of_the_machine(spark: SparkSession) -> None:
    with running_session("local[2]") as same:
        assert same is spark
        assert same.conf.get("spark.sql.session.timeZone") == "UTC"
        assert same.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.range(1).count() == 1, "a session that was there before goes on"


def test_workers_run_the_python_that_has_kelr(spark: SparkSession) -> None:
    found = spark.range(1).mapInArrow(python_of_workers, "python string").collect()
    assert {row.python for row in found} == {sys.executable}


def test_a_command_shows_nothing_but_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    settings = {"spark.local.dir": str(tmp_path / "spark"), "spark.driver.extraJavaOptions": QUICK_JAVA}
    done = _run(STARTED.format(settings=settings), tmp_path)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, ["rows 10", "counted True"], "")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_spark_said_is_shown_where_it_does_not_start(tmp_path: Path) -> None:
    done = _run(STARTED.format(settings={"spark.driver.memory": "1k"}), tmp_path)
    assert done.returncode == 1
    assert "UnsupportedError: Spark does not start" in done.stderr
    assert "Too small maximum heap" in done.stderr


INTERRUPTED = """
import os, signal, subprocess
from pathlib import Path
from kelr.fleet.session import fleet_session
signal.signal(signal.SIGINT, signal.default_int_handler)
poll = subprocess.Popen.poll
def interrupted(self):
    # By Ctrl-C while PySpark waits for the JVM to say how it is reached.
    if "pyspark-shell" in self.args and not Path("pid").exists():
        Path("pid").write_text(str(self.pid))
        os.kill(os.getpid(), signal.SIGINT)
    return poll(self)
subprocess.Popen.poll = interrupted
try:
    fleet_session("local[1]")
except KeyboardInterrupt:
    os._exit(130)
"""


def test_a_java_that_is_interrupted_while_it_starts_ends(tmp_path: Path) -> None:
    done = _run(INTERRUPTED, tmp_path)
    assert done.returncode == 130, done.stderr
    java = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60
    while psutil.pid_exists(java) and psutil.Process(java).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the JVM goes on"
        time.sleep(0.05)


def test_spark_submit_chooses_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(UsageError, match="spark-submit has chosen the master"):
        fleet_session("local[2]")


def test_without_pyspark_the_word_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UnsupportedError, match="needs PySpark") as raised:
        fleet_session()
    assert "kelr[fleet]" in str(raised.value.next_step)


def _run(program: str, place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, timeout=240, check=False
    )


def test_a_spark_connect_server_that_is_not_there_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectError, match="cannot be reached: Connection refused"):
            fleet_session(remote=address)


@pytest.mark.parametrize("remote", ["localhost:15002", "sc://", "sc://host:port", "http://host:1"])
def test_what_is_no_address_of_a_spark_connect_server(remote: str) -> None:
    with pytest.raises(UsageError, match="is no Spark Connect server"):
        fleet_session(remote=remote)


class _Grpc(types.ModuleType):
    """As much of grpc as is asked for: a channel is ready when the server has sent something."""

    class FutureTimeoutError(Exception):
        pass

    def __init__(self) -> None:
        super().__init__("grpc")
        self.asked: list[str] = []

    @contextmanager
    def insecure_channel(self, address: str) -> Iterator[str]:
        self.asked.append(address)
        yield address

    def channel_ready_future(self, channel: str) -> Any:
        host, _, port = channel.rpartition(":")

        def result(*, timeout: float) -> None:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=timeout) as client:
                try:
                    client.recv(1)
                except TimeoutError:
                    raise self.FutureTimeoutError from None

        return types.SimpleNamespace(result=result)


@pytest.fixture
def grpc(monkeypatch: pytest.MonkeyPatch) -> _Grpc:
    stub = _Grpc()
    monkeypatch.setitem(sys.modules, "grpc", stub)
    monkeypatch.setattr(connect, "_REACHED_WITHIN_S", 0.5)
    return stub


def test_a_listener_that_says_nothing_is_no_spark_connect_server(grpc: _Grpc) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectError, match=f"what listens at {address} does not speak gRPC"):
            fleet_session(remote=f"sc://{address}")
    assert grpc.asked == [address]


def test_an_ipv6_address_has_brackets(grpc: _Grpc, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = []

    def create_connection(address: tuple[str, int], timeout: float) -> socket.socket:
        reached.append(address)
        ours, theirs = socket.socketpair()
        ours.settimeout(timeout)
        theirs.close()
        return ours

    monkeypatch.setattr(socket, "create_connection", create_connection)
    connect._check_speaks(grpc, "sc://[::1]:15002", "[::1]:15002", tls=False)
    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.remote", lambda _, remote: _raised(ConnectError(remote)))
    with pytest.raises(ConnectError, match=r"sc://\[::1\]:15002"):
        fleet_session(remote="sc://[::1]:15002")
    assert set(grpc.asked) == {"[::1]:15002"}
    assert set(reached) == {("::1", 15002)}


def _raised(error: Exception) -> Any:
    raise error
