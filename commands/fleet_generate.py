"""``kelr fleet generate``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.options import on_this_machine, open_output
from kelr.commands.rescue_show import local_command, say_next
from kelr.errors import UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.fleet.generate.making import Made
    from kelr.fleet.generate.plan import Shape

app = typer.Typer(add_completion=False)

Out = Annotated[Path, typer.Argument(metavar="OUT", help="A folder that is not there yet, or empty.")]
Clusters = Annotated[int, typer.Option("--clusters", metavar="N", help="How many clusters (default: 8).")]
Partitions = Annotated[
    int, typer.Option("--partitions", metavar="N", help="Partitions of all clusters together (default: 4000).")
]
Brokers = Annotated[
    int,
    typer.Option("--brokers", metavar="N", help="Brokers of the largest cluster; others have fewer (default: 12)."),
]
Racks = Annotated[int, typer.Option("--racks", metavar="N", help="Racks of each cluster (default: 3).")]
Weeks = Annotated[int, typer.Option("--weeks", metavar="N", help="How long they live (default: 4).")]
Incidents = Annotated[
    int,
    typer.Option(
        "--incidents", metavar="N", help="Incidents of each cluster, and one more that lasts at the end (default: 3)."
    ),
]
States = Annotated[
    int | None,
    typer.Option(
        "--states",
        metavar="N",
        help="About so many partition states in all: followers are slow as often as it takes.",
        show_default=False,
    ),
]
Skew = Annotated[
    float,
    typer.Option("--skew", metavar="SHARE", help="The largest cluster's share of the partitions (default: 0.7)."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed makes the same bytes (default: 1).")]
Files = Annotated[
    str,
    typer.Option(
        "--files",
        metavar="SHAPE,...",
        help="Left of the clusters, in turn: whole, copies, cut (metadata logs), snapshots (default: all four).",
    ),
]
SegmentMb = Annotated[
    float,
    typer.Option("--segment-mb", metavar="N", help="Segments roll at this size, and after a week (default: 8)."),
]
Damage = Annotated[bool, typer.Option("--damage", help="Break some files, and add some that do not belong there.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, metavar="N", help="Clusters made at a time; one for each processor.", show_default=False
    ),
]


@app.command(**on_this_machine())
def generate(
    ctx: typer.Context,
    out: Out,
    *,
    clusters: Clusters = 8,
    partitions: Partitions = 4_000,
    brokers: Brokers = 12,
    racks: Racks = 3,
    weeks: Weeks = 4,
    incidents: Incidents = 3,
    states: States = None,
    skew: Skew = 0.7,
    seed: Seed = 1,
    files: Files = "whole,copies,cut,snapshots",
    segment_mb: SegmentMb = 8.0,
    damage: Damage = False,
    workers: Workers = None,
) -> None:
    """Make a fleet on paper, and the files that a collector would bring of it.

    Each cluster lives through weeks of restarts, slow followers, new topics and
    incidents, by the rules of one of Kafka's versions; what its controller would
    have written is written as a real metadata log. OUT/truth.json says what was
    done to it. It needs neither Spark nor Java.

    Examples:
      kelr fleet generate fleet
      kelr fleet generate fleet --clusters 40 --partitions 100000 --weeks 8
      kelr fleet generate fleet --clusters 3 --partitions 300 --weeks 1 --damage
      kelr fleet generate fleet --partitions 50000 --states 10000000 --files whole
    """
    output = open_output(ctx)
    from kelr.fleet.generate.making import make_fleet  # noqa: PLC0415 - not for --help
    from kelr.fleet.generate.plan import FleetPlan  # noqa: PLC0415

    plan = FleetPlan(
        clusters,
        partitions,
        brokers,
        racks,
        weeks,
        incidents,
        seed,
        skew,
        states,
        _shapes(files),
        round(segment_mb * (1 << 20)),
        damage,
    )
    try:
        made = make_fleet(plan, out, workers=workers, told=functools.partial(output.progress, what="clusters"))
    finally:
        output.end_progress()
    _show(output, made, out)


def _show(output: Output, made: Made, out: Path) -> None:
    from kelr.view.fleet_generate import generated_view, sum_of  # noqa: PLC0415 - as above

    following = ["fleet", "ingest", str(out), "--out", f"{out}-lake"]
    damages = [{"path": one.path, "what": one.what} for one in made.damages]
    with output.listing(generated_view()) as listing:
        listing.add(made.clusters)
        listing.finish({"size_bytes": made.size_bytes, "damages": damages, "next": local_command(following)})
    if not output.format.is_document:
        output.note(sum_of(made.clusters, made.size_bytes))
        for one in made.damages:
            output.note(f"{one.what}: {one.path}")
        say_next(output, following)


def _shapes(text: str) -> tuple[Shape, ...]:
    from kelr.fleet.generate.plan import Shape  # noqa: PLC0415 - as above

    try:
        return tuple(Shape(name.strip()) for name in text.split(","))
    except ValueError:
        raise UsageError(
            f"--files {text}: there is no such shape", next_step=f"it is a list of {', '.join(Shape)}"
        ) from None
