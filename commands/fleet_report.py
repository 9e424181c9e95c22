"""``kelr fleet report``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.fleet_parts import Conf, LakePlace, open_lake, settings_of
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import ExitCode, UnsupportedError, UsageError
from kelr.view.columns import Json
from kelr.view.fleet_report import FixRow, fix_view, notes_on, where

if TYPE_CHECKING:
    from kelr.fleet.report.findings import Finding

app = typer.Typer(add_completion=False)

FORMATS = frozenset({"html", "md", "csv"})

Out = Annotated[str, typer.Option("--out", metavar="DIR", help="The folder or URI to write the report to.")]
Formats = Annotated[str, typer.Option("--format", metavar="html,md,csv", help="What to write (default: all).")]
Top = Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many findings to show (default: 10).")]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What to write above it.")]
Check = Annotated[
    bool, typer.Option("--check", help="For pipelines: exit with 1 if there is anything to fix, or not looked at.")
]


@app.command(
    **on_this_machine(
        {
            ExitCode.FOUND: "--check: there is something to fix, or not everything was looked at",
            ExitCode.UNSUPPORTED: "what kelr[fleet] brings along is missing",
        }
    )
)
def report(
    ctx: typer.Context,
    *,
    lake: LakePlace,
    out: Out,
    formats: Formats = "html,md,csv",
    top: Top = 10,
    title: Title = None,
    check: Check = False,
    conf: Conf = None,
) -> None:
    """Say what to fix first in a fleet, with figures, plots and commands.

    Writes one HTML file that opens offline, the same as Markdown, and the tables
    behind it as CSV. What was not ingested, assessed or summed up is said to be
    unknown. The lake is only read, without Spark.

    Examples:
      kelr fleet report --lake lake --out report
      kelr fleet report --lake s3a://ops/lake --out report --format html --top 20
      kelr fleet report --lake lake --out report --check -o json
    """
    output = open_output(ctx)
    wanted = _formats(formats)
    try:
        from kelr.fleet.report.pages import TITLE, gaps, nothing, report_of, windows  # noqa: PLC0415 - Jinja is of an extra
        from kelr.fleet.report.sums import figures_of  # noqa: PLC0415 - pyarrow is, too
        from kelr.fleet.report.written import write_report  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedError(
            f"kelr fleet needs more than is installed: {error}", next_step="install it with: pip install 'kelr[fleet]'"
        ) from error
    opened = open_lake(None, lake, settings_of(conf))
    made = report_of(figures_of(opened), top=top, title=title or TITLE)
    written = write_report(made, opened, out, wanted)
    unseen = [gap.text for gap in gaps(made.figures)]
    first = [] if made.findings else [nothing(made.figures)]
    notes = list(notes_on([*first, *unseen, *windows(made.figures)], made.chosen.more))
    paths = [f"{out.rstrip('/')}/{path}" for path in written]
    head: dict[str, Json] = {"lake": made.figures.place, "lake_version": made.figures.version}
    with output.listing(fix_view(), head) as listing:
        listing.add(_rows(made.chosen.shown))
        listing.finish({"others": made.chosen.more, "written": paths, "notes": notes})
    if not output.format.is_document:
        for note in notes:
            output.note(note)
        output.note(where(paths))
    if check and (made.findings or unseen):
        raise typer.Exit(ExitCode.FOUND)


def _formats(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    wrong = sorted(names - FORMATS)
    if wrong or not names:
        raise UsageError(f"--format {text}: there is no {', '.join(wrong) or 'format'}", next_step="html, md or csv")
    return names


def _rows(findings: Sequence[Finding]) -> list[FixRow]:
    return [
        FixRow(
            place,
            *(one.kind.value, one.cluster, one.cluster_name, one.title, one.text, one.unknown, one.partitions),
            one.certainty.value,
            tuple(command.line for command in one.commands),
        )
        for place, one in enumerate(findings, 1)
    ]
