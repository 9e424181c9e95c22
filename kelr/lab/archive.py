"""An archive of Kafka's classes, which halves the time that each of a lab's Java processes needs to start.

Java can write what it has loaded and linked to a file when it ends, and map that file into later processes (JEP 350).
The first lab of a Kafka version runs a throw-away node for that, once; the archive is kept beside the jars. Java itself
checks that an archive belongs to it and to the jars, and does without where it does not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kelr.errors import LabError
from kelr.lab import processes, wire
from kelr.lab.java import Java
from kelr.lab.locks import Lock
from kelr.lab.nodes import HOST, new_kafka_uuid, properties_text
from kelr.lab.ports import free_ports

_BROKER, _CONTROLLER = 1, 2
_TIMEOUT_S = 60.0


def archive_file(cache: Path, lock: Lock, java: Java) -> Path:
    """Where the archive of these jars and this Java is kept."""
    real = java.executable.resolve()
    identity = f"{real} {real.stat().st_mtime_ns}"
    name = (
        f"kafka-{lock.kafka}-{lock.fingerprint}-java{java.version}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    )
    return cache / "classes" / f"{name}.jsa"


def is_known(archive: Path) -> bool:
    """Whether there is an archive, or it is known that this Java cannot make one."""
    return archive.exists() or _unsupported(archive).exists()


def make_archive(archive: Path, java: Java, jars: Sequence[Path], *, home: Path, marks: Sequence[str]) -> None:
    """Run a node that loads Kafka's classes, and keep what it wrote. Never fails: a lab starts without it, too.

    Args:
        home: a directory for the node's files; deleted afterwards.
        marks: arguments that make the process known as the lab's.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_suffix(f".{new_kafka_uuid()}")
    try:
        with suppress(OSError, LabError, subprocess.SubprocessError):
            _run_once(draft, java, jars, home, marks)
        if draft.exists():
            draft.replace(archive)
        else:
            _unsupported(archive).touch()
    finally:
        draft.unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)


def _run_once(draft: Path, java: Java, jars: Sequence[Path], home: Path, marks: Sequence[str]) -> None:
    ports = free_ports((_BROKER, _CONTROLLER))
    properties = _write_properties(home, ports)
    class_path = ("-cp", os.pathsep.join(map(str, jars)))
    quick = (str(java.executable), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", *marks)
    formatting = ("kafka.tools.StorageTool", "format", "-t", new_kafka_uuid(), "-c", str(properties), "--standalone")
    subprocess.run([*quick, *class_path, *formatting], capture_output=True, timeout=_TIMEOUT_S, check=True)
    writing = f"-XX:ArchiveClassesAtExit={draft}"
    record = processes.spawn((*quick, writing, *class_path, "kafka.Kafka", str(properties)), home / "server.log")
    deadline = time.monotonic() + _TIMEOUT_S
    while processes.runs(record) and not _answers(ports[_BROKER]) and time.monotonic() < deadline:
        time.sleep(0.05)
    processes.end_by_record(record, signal.SIGTERM, timeout_s=_TIMEOUT_S)


def _write_properties(home: Path, ports: dict[int, int]) -> Path:
    controller = f"{HOST}:{ports[_CONTROLLER]}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{ports[_BROKER]},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": controller,
        "log.dirs": str(home / "data"),
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
    home.mkdir(parents=True)
    file = home / "server.properties"
    file.write_text(properties_text(properties), encoding="ascii")
    return file


def _answers(port: int) -> bool:
    try:
        return wire.fenced_brokers(port).get(1) is False
    except OSError:
        return False


def _unsupported(archive: Path) -> Path:
    return archive.with_suffix(".unsupported")
