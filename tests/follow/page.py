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

PAGES = Path(__file__).parents[2] / "docs" / "kafka-versions"
FEW = 3
"""So many things are named for each meaning."""
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
        Run("Predicted outages", ("-m", "tests.cluster.whatif_predictions", "--kafka", kafka), 1),
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
    yield f"that is not as in Kafka {compared.against}, by what it means for kelr. `tests/follow/known.toml` classifies"
    show = "--compare-only --show 'class Partition *'"
    yield f"them; `python -m tests.follow {compared.kafka} {show}` prints the code that changed.\n"
    order = list(_TITLES)
    in_order = sorted(compared.rows, key=lambda row: order.index(row[0].name[0]))
    for kind, rows in groupby(in_order, key=lambda row: row[0].name[0]):
        found: dict[str | None, list[Difference]] = {}
        for one, said in rows:
            found.setdefault(said, []).append(one)
        yield f"## {_TITLES[kind]}\n\n| kelr | differences | in |\n|---|---|---|"
        for one in found.pop(None, ()):
            yield _row("**not classified**", "1", f"`{one.key}`: {one.text}")
        for said, same in found.items():
            yield _row(str(said), str(len(same)), _some_of(same))
        yield ""
    yield f"The byte code of the {len(compared.classes)} classes that kelr names was compared.\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _some_of(rows: Sequence[Difference]) -> str:
    names = list(dict.fromkeys(_thing(one) for one in rows))
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(f'`{name}`' for name in names[:FEW])}{more}"


def _thing(one: Difference) -> str:
    """A class, message or config, without its members."""
    kind, name = one.name[0], one.name[1]
    if kind == "api":
        return f"{name} {one.text.removeprefix('new: ').partition(',')[0]}"
    return name.partition("$")[0] if kind in ("class", "message") else " ".join(one.name[1:])
