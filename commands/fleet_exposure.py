"""``kelr fleet exposure``."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.fleet_parts import Conf, LakePlace, Master, Remote, open_lake, spark_session
from kelr.commands.moments import read_moment
from kelr.commands.options import on_this_machine, open_output
from kelr.commands.rescue_show import local_command, say_next
from kelr.errors import ExitCode, UsageError
from kelr.view.columns import Json

app = typer.Typer(add_completion=False)

DIMENSIONS = ("cluster", "topic", "broker", "rack")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From then on: a time (UTC unless a zone is said), or ago: 14d."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Up to then.")]
By = Annotated[
    str,
    typer.Option(
        "--by",
        autocompletion=complete.known_values(*DIMENSIONS),
        metavar="|".join(DIMENSIONS),
        help="What the rows are.",
    ),
]
OfCluster = Annotated[
    list[str] | None,
    typer.Option("--cluster", metavar="ID", help="Only this cluster, by id or name. Can be repeated."),
]
Top = Annotated[int, typer.Option("--top", min=1, metavar="N", help="Show so many rows (default: 20).")]
Budget = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="TROUBLE=TIME",
        help="What the partitions of a row may stand in a trouble together, such as leaderless=60s. Can be repeated.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="For pipelines: exit with 1 if a row is over a budget, or may be; without budgets, if anything had no"
        " leader.",
    ),
]


@app.command(
    **on_this_machine(
        {
            ExitCode.FOUND: "--check: something is over its budget, or not known to be within",
            ExitCode.UNSUPPORTED: "PySpark or a Java for it is missing",
            ExitCode.REFUSED: "another run is changing the lake",
        }
    )
)
def exposure(
    ctx: typer.Context,
    *,
    lake: LakePlace,
    since: Since = None,
    until: Until = None,
    by: By = "cluster",
    cluster: OfCluster = None,
    top: Top = 20,
    budget: Budget = None,
    check: Check = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
) -> None:
    """Sum up how long partitions were in which trouble, and what settings risk.

    By cluster, topic, broker (that was missing), rack and ISO week; with unclean
    elections, brokers that restart uncleanly, and settings that make it worse.
    The sums are tables of the lake; `kelr fleet report` reads them. Time for
    which nothing is on record is told apart, and never counted as well.

    Examples:
      kelr fleet exposure --lake lake
      kelr fleet exposure --lake lake --since 28d --by broker --top 10
      kelr fleet exposure --lake lake --check --budget leaderless=60s
    """
    output = open_output(ctx)
    from kelr.view.fleet_exposure import exposure_view, notes_on, tail_of  # noqa: PLC0415 - not for --help

    if by not in DIMENSIONS:
        raise UsageError(f"--by {by}: there is no such thing", next_step=", ".join(DIMENSIONS))
    budgets = read_budgets(budget or (["leaderless=0s"] if check else []))
    now_ms = time.time_ns() // 1_000_000
    since_ms, until_ms = _at("--since", since, now_ms), _at("--until", until, now_ms)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise UsageError("--since is not before --until", next_step="leave one of them out")
    with spark_session(output, master, remote, conf) as spark:
        from kelr.fleet.exposure.run import (  # noqa: PLC0415 - as above
            counted,
            expose,
            longest,
        )
        from kelr.fleet.exposure.wanted import Wanted  # noqa: PLC0415 - as above

        opened = open_lake(spark, lake)
        ids = {name: one for one, name in opened.version.clusters.items()}
        wanted = Wanted(tuple(ids.get(one, one) for one in cluster or ()), since_ms, until_ms)
        known = expose(opened, wanted)
        rows = longest(opened, wanted, by, top, budgets)
        found = counted(opened, wanted, known, by, budgets)
    after = ["fleet", "report", "--lake", lake, "--out", "report"]
    head: dict[str, Json] = {"lake": lake, "by": by, "since_ms": since_ms, "until_ms": until_ms}
    with output.listing(exposure_view(by), head) as listing:
        listing.add(rows)
        listing.finish({**tail_of(found, len(rows)), "next": local_command(after)})
    if not output.format.is_document:
        for note in notes_on(found, len(rows)):
            output.note(note)
        say_next(output, after)
    if check and found.over:
        raise typer.Exit(ExitCode.FOUND)


def read_budgets(texts: Sequence[str]) -> dict[str, float]:
    """``leaderless=60s`` as seconds by trouble.

    Raises:
        UsageError: there is no such trouble, or it is no time.
    """
    from kelr.replay.history import Trouble  # noqa: PLC0415 - not for --help

    troubles = [str(trouble) for trouble in Trouble]
    found = {}
    for text in texts:
        trouble, _, lasting = text.partition("=")
        if trouble not in troubles:
            raise UsageError(f"--budget {text}: there is no such trouble", next_step=", ".join(troubles))
        if not lasting or _PART.sub("", lasting):
            raise UsageError(f"--budget {text} says no time", next_step=f"such as {trouble}=60s or {trouble}=1h30m")
        found[trouble] = sum(int(number) * _UNITS_S[unit] for number, unit in _PART.findall(lasting))
    return found


def _at(option: str, text: str | None, now_ms: int) -> int | None:
    moment = read_moment(option, text, now_ms=now_ms)
    if moment is None:
        return None
    if moment.at_ms is None:
        raise UsageError(f"{option} {text}: clusters have no offsets in common", next_step="give a time")
    return moment.at_ms
