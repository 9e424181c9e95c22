"""What was found of a release, as a page of the documents."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from tests.follow.differences import Compared, Difference
from tests.follow.facts import Name

PAGES = Path(__file__).parents[2] / "docs" / "kafka-versions"
FEW = 3
"""So many members of a class are told with what became of each."""
TRIED = "## Tried on it\n"
_TITLES = {
    "kelr": "Not known to kelr",
    "api": "Requests",
    "message": "Fields of messages and records",
    "feature": "Feature levels",
    "config": "Configs",
    "error": "Error codes",
    "jar": "Jars",
    "class": "Byte code",
}


@dataclass(frozen=True, slots=True)
class Run:
    """Something that tries kelr on the release."""

    title: str
    arguments: Sequence[str]
    """Of Python: ``-m pytest ...``."""
    lines: int
    """How many of the last lines that it prints tell what came of it."""

    def carried_out(self) -> tuple[bool, str]:
        """Run it, its errors on stderr: whether all was well, and what the page says of it."""
        began_s = time.monotonic()
        done = subprocess.run([sys.executable, *self.arguments], stdout=subprocess.PIPE, text=True, check=False)
        came = "all well" if done.returncode == 0 else f"FAILED, exit code {done.returncode}"
        said = "\n".join(done.stdout.rstrip().splitlines()[-self.lines :])
        when = f"{datetime.now(UTC):%d %B %Y}, {time.monotonic() - began_s:.0f} s: **{came}**"
        return (
            done.returncode == 0,
            f"### {self.title}\n\n`python {' '.join(self.arguments)}`, {when}.\n\n```\n{said}\n```\n",
        )


def runs_of(kafka: str, rounds: int) -> Sequence[Run]:
    """The differential tests, kelr's predictions on real clusters, and hindsight in incidents of its own."""
    differential = (
        "-m",
        "pytest",
        "-q",
        "tests/differential",
        "--kafka",
        kafka,
        "--steps",
        "50000",
        "--sequences",
        "500",
    )
    incidents = "tests/cluster/test_predictions.py::test_predictions_come_true_on_the_newest"
    return (
        Run("The controller beside Apache's own classes", differential, 1),
        Run("Predicted incidents", ("-m", "pytest", "-q", "-m", "longer", incidents, "--kafka", kafka), 1),
        Run("Predicted outages", ("-m", "tests.cluster.whatif_predictions", "--kafka", kafka), 40),
        Run(
            "Hindsight", ("-m", "tests.hindsight.real", "--seed", kafka, "--kafka", kafka, "--rounds", str(rounds)), 40
        ),
    )


def render(compared: Compared, tried: str) -> str:
    """The page; `tried` is its part about what was run, as it stands after `TRIED`."""
    return "\n".join(_compared(compared)) + f"\n{TRIED}{tried}"


def tried_before(page: Path) -> str:
    """That part of the page as it is; where there is none, that nothing was run."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return text.partition(TRIED)[2] or "\nNothing yet.\n"


def _compared(compared: Compared) -> Iterator[str]:
    yield f"# Kafka {compared.kafka}\n"
    yield f"Made by `make follow KAFKA={compared.kafka}` ([how](../testing.md#the-next-release-of-kafka)): each thing"
    yield f"that is not as in Kafka {compared.against}, and what that means for kelr.\n"
    order = list(_TITLES)
    in_order = sorted(compared.rows, key=lambda row: order.index(row[0].name[0]))
    for kind, rows in groupby(in_order, key=lambda row: row[0].name[0]):
        yield f"## {_TITLES[kind]}\n\n| what | how | kelr |\n|---|---|---|"
        for (name, said), same in groupby(rows, key=lambda row: (_thing(row[0].name), row[1])):
            cells = (f"`{name}`", f"`{_how([one for one, _ in same])}`", said or "**not classified**")
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        yield ""
    names = ", ".join(sorted(compared.classes))
    yield f"## Compared classes\n\nThe byte code of {len(compared.classes)} classes that kelr names: {names}.\n"


def _thing(name: Name) -> str:
    """The members of a class, and of those in it, are told in one row."""
    return name[1].partition("$")[0] if name[0] == "class" else " ".join(name[1:])


def _how(rows: Sequence[Difference]) -> str:
    if rows[0].name[0] != "class":
        return "; ".join(one.text for one in rows)
    if len(rows) <= FEW:
        return "; ".join(f"{one.name[-1]}: {one.text.removeprefix('code ')}" for one in rows)
    found: dict[str, list[str]] = {"changed": [], "new": [], "gone": []}
    for one in rows:
        how = "new" if one.text.startswith("new: ") else "gone" if one.text == "gone" else "changed"
        found[how].append(one.name[-1])
    return "; ".join(f"{how}: {', '.join(dict.fromkeys(names))}" for how, names in found.items() if names)
