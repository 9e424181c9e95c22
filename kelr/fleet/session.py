"""A Spark session for the fleet: on this machine, on a cluster, or wherever ``spark-submit`` started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from kelr.errors import ConnectError, UnsupportedError, UsageError
from kelr.fleet.java import java_for_spark
from kelr.fleet.travel import send
from kelr.sources.connection import address_text

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession


LOCAL = "local[*]"
_ALWAYS = {
    # What sums and joins mean hangs on these: they hold whoever made the session.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A date partition is read as what it was written as.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_OF_OURS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.ui.enabled": "false",
    # Progress is shown by kelr.
    "spark.ui.showConsoleProgress": "false",
}
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Where ``spark-submit`` says how to reach the JVM that it has started."""
_PYTHON = "spark.pyspark.python"
"""Which Python workers run."""
_OUTPUTS = (1, 2)
_LINES_SHOWN = 20
_EVERY_S = 0.2
_ENDS_S = 5.0
"""How long the thread that counts may take to notice that all is done: it asks the JVM, which may hang."""
_ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "16",
}


Counting = Callable[[int, int], None]
"""Told of the tasks done and the tasks there are, of the jobs that run."""


def is_there() -> bool:
    """Whether somebody has started Spark: ``spark-submit``, or whoever made the session that is active."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - of an extra, and slow to load

    return _SUBMITTED in os.environ or SparkSession.getActiveSession() is not None


@contextmanager
def running_session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Counting | None = None,
) -> Iterator[SparkSession]:
    """A session for one command; it is stopped in the end, unless somebody else had made it.

    Args:
        progress: told how far Spark's jobs are, a few times a second.

    Raises:
        as `fleet_session`.
    """
    session, ours = _session(master, remote, settings or {})
    try:
        send(session)
        with _counting(session, progress):
            yield session
    finally:
        if ours:
            session.stop()


def fleet_session(
    master: str | None = None,
    *,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session: the one that is active (``spark-submit``, a notebook), else a new one.

    Args:
        master: such as ``local[4]`` or ``spark://host:7077``; None: what ``spark-submit`` was given, else `LOCAL`.
        remote: a Spark Connect address, ``sc://host:port``, instead of a master.
        settings: more of Spark's settings, which go before kelr's, but for those that results hang on.

    Raises:
        UnsupportedError: PySpark is not installed, there is no Java that it runs on, it does not start, or workers
            of a cluster cannot run kelr.
        ConnectError: the Spark Connect server does not answer.
        UsageError: a master beside that of ``spark-submit``, or a remote that is no address.
    """
    session, _ = _session(master, remote, settings or {})
    send(session)
    return session


def _session(master: str | None, remote: str | None, settings: Mapping[str, str]) -> tuple[SparkSession, bool]:
    """A session, and whether it was made here."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - of an extra, and slow to load
    except ImportError as error:
        raise UnsupportedError(
            f"kelr fleet needs PySpark: {error}",
            next_step="install it with: pip install 'kelr[fleet]'",
            code="pyspark-missing",
        ) from error
    if remote is not None:
        return connected(remote, {**settings, **_ALWAYS}), True
    session, ours = SparkSession.getActiveSession(), False
    if session is None:
        session, ours = _started(master, settings), True
    for name, value in _ALWAYS.items():
        session.conf.set(name, value)
    return session, ours


def _started(master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    builder = SparkSession.builder.appName("kelr fleet")
    local = False
    if _SUBMITTED not in os.environ:
        java = java_for_spark()
        if java.home is not None:
            os.environ["JAVA_HOME"] = str(java.home)
        chosen = master or LOCAL
        builder, local = builder.master(chosen), chosen.startswith("local")
    elif master is not None:
        raise UsageError("spark-submit has chosen the master", next_step="give --master to spark-submit alone")
    if local:
        # Without this a worker is whatever is called python3 here, which need not have what this one has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if (python := settings.get(_PYTHON)) is not None:
        # Spark's own launcher reads that setting, for the drivers that it starts.
        os.environ["PYSPARK_PYTHON"] = python
    for name, value in {**_OF_OURS, **(_ON_THIS_MACHINE if local else {}), **settings, **_ALWAYS}.items():
        builder = builder.config(name, value)
    interrupted = signal.getsignal(signal.SIGINT)
    with _quiet_launch(), _ended_with_the_launch():
        session = builder.getOrCreate()
    if interrupted is not None and threading.current_thread() is threading.main_thread():
        # PySpark's own handler asks the JVM first, which has to answer for that.
        signal.signal(signal.SIGINT, interrupted)
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _ended_with_the_launch() -> Iterator[None]:
    """An interrupt while the JVM starts ends it too.

    Otherwise it would stay for ever: PySpark takes the folder away in which the JVM is to write how it is reached, and
    failing there it never gets to where it waits for the end of its stdin.
    """
    from pyspark import SparkContext, java_gateway  # noqa: PLC0415 - as above

    launched: list[subprocess.Popen[bytes]] = []

    class Remembered(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            launched.append(self)
            super().__init__(*arguments, **more)

    with _replaced(java_gateway, "Popen", Remembered):
        try:
            yield
        except KeyboardInterrupt:
            # Once it is reached, it ends by itself, and puts its files away.
            if SparkContext._gateway is None:
                for process in launched:
                    process.kill()
            raise


@contextmanager
def _replaced(module: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def _quiet_launch() -> Iterator[None]:
    """What a JVM and Spark say while they start goes to a file, which is shown where they do not start.

    The JVM keeps that file as its stdout and stderr: what is data stays data, and later errors come as exceptions.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with tempfile.TemporaryFile() as said:
        kept = [os.dup(number) for number in _OUTPUTS]
        try:
            for number in _OUTPUTS:
                os.dup2(said.fileno(), number)
            yield
        except Exception as error:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-_LINES_SHOWN:]
            raise UnsupportedError(
                "\n".join([f"Spark does not start: {error}", *last]),
                next_step="python -m kelr.fleet.java says whether Java is what Spark needs",
            ) from error
        finally:
            for number, copy in zip(_OUTPUTS, kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)


@contextmanager
def _counting(session: SparkSession, told: Counting | None) -> Iterator[None]:
    context = None if told is None else getattr(session, "_sc", None)
    if told is None or context is None:
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(context.statusTracker(), told, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join(_ENDS_S)


def _watch(tracker: StatusTracker, told: Counting, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        counts = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
        if counts:
            told(sum(done for done, _ in counts), sum(total for _, total in counts))


# A session on a Spark Connect server.
#
# PySpark's client asks a server that does not answer again and again, for ten minutes and without a word; so what is at
# the address is looked at first.


DEFAULT_PORT = 15002
"""Of Spark (spark.connect.grpc.binding.port)."""
_REACHED_WITHIN_S = 10.0


def connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of the server at ``sc://HOST[:PORT][/;NAME=VALUE...]``, with these settings.

    Raises:
        UsageError: that is no such address.
        ConnectError: nothing answers there, or it refuses.
        UnsupportedError: what PySpark's client needs is not installed.
    """
    host, port, tls = _address(remote)
    address = address_text(host, port)
    try:
        with socket.create_connection((host, port), timeout=_REACHED_WITHIN_S):
            pass
    except OSError as error:
        raise _silent(remote, f"{address} cannot be reached: {error.strerror or error}") from error
    try:
        import grpc  # noqa: PLC0415 - of an extra of PySpark's
        from pyspark.sql import SparkSession  # noqa: PLC0415 - of an extra, and slow to load

        _check_speaks(grpc, remote, address, tls=tls)
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name, value in settings.items():
            session.conf.set(name, value)
    except ImportError as error:
        raise UnsupportedError(
            f"Spark Connect needs more than is installed: {error}",
            next_step="install it with: pip install 'pyspark[connect]'",
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"grpc", "pyspark"}:
            raise
        raise ConnectError(f"{remote}: Spark Connect does not answer: {error}") from error
    return session


def _address(remote: str) -> tuple[str, int, bool]:
    """Host, port, and whether it is TLS: asked for, or a token is sent to another machine (`DefaultChannelBuilder`)."""
    parts = urlsplit(remote)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = 0
    if parts.scheme != "sc" or not parts.hostname or not port:
        raise UsageError(f"{remote!r} is no Spark Connect server", next_step="give --remote sc://HOST:PORT")
    named = dict(parse_qsl(parts.path.strip("/;"), separator=";"))
    sends_token = "token" in named and parts.hostname != "localhost"
    return parts.hostname, port, named.get("use_ssl", "").lower() == "true" or sends_token


def _check_speaks(grpc: Any, remote: str, address: str, *, tls: bool) -> None:
    """Raises ConnectError where what listens there does not greet as a gRPC server does."""
    with (
        grpc.secure_channel(address, grpc.ssl_channel_credentials()) if tls else grpc.insecure_channel(address)
    ) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_REACHED_WITHIN_S)
        except grpc.FutureTimeoutError as error:
            raise _silent(remote, f"what listens at {address} does not speak gRPC") from error


def _silent(remote: str, why: str) -> ConnectError:
    return ConnectError(
        f"{remote}: no Spark Connect server answers: {why}", next_step="check the address, and that the server runs"
    )
