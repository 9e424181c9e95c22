"""Apache Kafka's own PartitionChangeBuilder behind a small Java driver: lines in, lines out, one JVM for all."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import Lock, load_lock

SOURCE = Path(__file__).parent / "java" / "BuilderDriver.java"
CLASSES = Path(__file__).parent / "java" / "classes"
API_VERSION = "4.3.1"
"""The Kafka whose classes the driver is compiled against; it runs with all of them."""
RELEASE = 17
_NEEDED = ("kafka-metadata", "kafka-server-common", "kafka-clients", "slf4j-api")


def class_path(kafka: str) -> tuple[Path, ...]:
    """The few jars of a Kafka version that its controller's builder needs, verified, from the lab's cache."""
    lock = load_lock(kafka)
    needed = tuple(jar for jar in lock.jars if jar.coordinates.split(":")[1] in _NEEDED)
    return obtain_jars(Lock(kafka, needed), cache_directory())


def compile_driver(target: Path) -> None:
    """Compile the driver as the classes beside it were compiled."""
    javac = shutil.which("javac")
    assert javac is not None
    path = os.pathsep.join(map(str, class_path(API_VERSION)))
    flags = ["--release", str(RELEASE), "-g:none", "-Xlint:all", "-Werror"]
    command = [javac, *flags, "-d", str(target), "-cp", path, str(SOURCE)]
    subprocess.run(command, check=True, timeout=120)


def javac_version() -> str | None:
    """``17.0.15``; None where there is no javac."""
    javac = shutil.which("javac")
    if javac is None:
        return None
    done = subprocess.run([javac, "-version"], capture_output=True, text=True, timeout=60, check=True)
    return (done.stdout + done.stderr).split()[1]


def answers(kafka: str, lines: Sequence[str]) -> list[str]:
    """What that Kafka version's classes make of the cases, one answer a line."""
    path = os.pathsep.join(map(str, (CLASSES, *class_path(kafka))))
    # One compiler thread and the serial collector: the machine has other tests to run.
    flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    done = subprocess.run(
        [find_java().executable, *flags, "-cp", path, "BuilderDriver"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60 + len(lines) / 500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
