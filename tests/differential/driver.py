"""Apache Kafka's own classes behind small Java drivers: lines in, lines out, one JVM for all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

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
    path = os.pathsep.join(map(str, (CLASSES, *class_path(kafka))))
    # One compiler thread and the serial collector: the machine has other tests to run.
    flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    done = subprocess.run(
        [find_java().executable, *flags, "-cp", path, driver],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60 + len(lines) / 500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
