"""Apache Kafka's own classes behind small Java drivers: lines in, lines out, one JVM for each version and driver."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import Lock, load_lock

BUILDER = "BuilderDriver"
"""Runs PartitionChangeBuilder on one partition and one event at a time."""
CONTROLLER = "org.apache.kafka.controller.ControllerDriver"
"""Runs the controller's managers on sequences of events."""
SOURCES = tuple(sorted((Path(__file__).parent / "java").glob("*.java")))
CLASSES = Path(__file__).parent / "java" / "classes"
API_VERSION = "4.3.1"
"""The Kafka whose classes the drivers are compiled against; they run with all of them."""
RELEASE = 17
_NEEDED = ("kafka-metadata", "kafka-server-common", "kafka-clients", "slf4j-api", "metrics-core")


def class_path(kafka: str) -> tuple[Path, ...]:
    """The few jars of a Kafka version that its controller's classes need, verified, from the lab's cache."""
    lock = load_lock(kafka)
    needed = tuple(jar for jar in lock.jars if jar.coordinates.split(":")[1] in _NEEDED)
    return obtain_jars(Lock(kafka, needed), cache_directory())


def compile_drivers(target: Path) -> None:
    """Compile the drivers as the classes beside them were compiled."""
    javac = shutil.which("javac")
    assert javac is not None
    path = os.pathsep.join(map(str, class_path(API_VERSION)))
    flags = ["--release", str(RELEASE), "-g:none", "-Xlint:all", "-Werror"]
    command = [javac, *flags, "-d", str(target), "-cp", path, *map(str, SOURCES)]
    subprocess.run(command, check=True, timeout=120)


def javac_version() -> str | None:
    """``17.0.15``; None where there is no javac."""
    javac = shutil.which("javac")
    if javac is None:
        return None
    done = subprocess.run([javac, "-version"], capture_output=True, text=True, timeout=60, check=True)
    return (done.stdout + done.stderr).split()[1]


def answers(kafka: str, lines: Sequence[str], driver: str = BUILDER) -> list[str]:
    """What that Kafka version's classes make of the lines, one answer a line."""
    process = _running(kafka, driver)
    assert process.stdin is not None
    assert process.stdout is not None
    overdue = threading.Timer(60 + len(lines) / 500, process.kill)
    # Of its own, as the driver answers while it is asked; an empty line has it send what it has answered.
    asking = threading.Thread(target=_ask, args=(process.stdin, "\n".join((*lines, "", ""))))
    overdue.start()
    asking.start()
    try:
        return [_answer(process.stdout) for _ in lines]
    finally:
        overdue.cancel()
        asking.join()


@cache
def _running(kafka: str, driver: str) -> subprocess.Popen[str]:
    """A JVM for everything that is asked of a version: to start it costs as much as a thousand answers."""
    path = os.pathsep.join(map(str, (CLASSES, *class_path(kafka))))
    # One compiler thread and the serial collector: the machine has other tests to run.
    flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [find_java().executable, *flags, "-cp", path, driver]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def _ask(to: IO[str], text: str) -> None:
    with suppress(BrokenPipeError):  # it has ended, as who waits for its answers will see
        to.write(text)
        to.flush()


def _answer(of: IO[str]) -> str:
    line = of.readline()
    assert line, "the driver has ended, and said why on stderr"
    return line.removesuffix("\n")
