"""``kelr fleet assess``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands import complete
from kelr.commands.fleet_parts import Conf, LakePlace, Master, Remote, open_lake, spark_session
from kelr.commands.options import on_this_machine, open_output
from kelr.commands.targets import read_rules
from kelr.errors import ExitCode, UnsupportedError, UsageError
from kelr.view.columns import Json
from kelr.view.fleet_assess import ScenarioRow, assess_view, notes_on, worst_first
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.fleet.assess.assessing import Assessed
    from kelr.fleet.assess.sums import Sums

app = typer.Typer(add_completion=False)

LISTED = 5
"""So many scenarios of a cluster people are shown unless they ask for more."""
FAIL_ON = "may_lose,leaderless"

Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenarios",
        metavar="FILE|NAME,...",
        help="Scenario files, or each-broker, each-rack, each-pair, rack-while-rolling; builtin is the first two.",
    ),
]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="How it was then, such as 2026-03-01T02:10:00Z.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rules",
        autocompletion=complete.rules,
        metavar="NAME",
        help="auto (what each cluster runs), elr-4.3, kraft, ... Can be repeated.",
    ),
]
Clusters = Annotated[
    list[str] | None, typer.Option("--cluster", metavar="ID", help="Only this cluster, by id or name. Can be repeated.")
]
Topic = Annotated[
    str | None, typer.Option("--topic", metavar="PATTERN", help="Only these topics; * and ? stand for any.")
]
Check = Annotated[
    bool,
    typer.Option("--check", help="For pipelines: exit with 1 if a scenario comes to what --fail-on names, or may."),
]
FailOn = Annotated[
    str,
    typer.Option("--fail-on", metavar="WHAT,...", help=f"What --check looks for (default: {FAIL_ON})."),
]
All = Annotated[bool, typer.Option("--all", help="Show every scenario.")]


@app.command(
    **on_this_machine(
        {
            ExitCode.FOUND: "--check: a scenario comes to what --fail-on names, or that is not known",
            ExitCode.UNSUPPORTED: "PySpark or a Java for it is missing",
            ExitCode.REFUSED: "another run is changing the lake",
        }
    )
)
def assess(
    ctx: typer.Context,
    *,
    lake: LakePlace,
    scenarios: Scenarios = None,
    at: At = None,
    rules: Rules = None,
    cluster: Clusters = None,
    topic: Topic = None,
    check: Check = False,
    fail_on: FailOn = FAIL_ON,
    all_: All = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
) -> None:
    """Say what failures make of every partition of a fleet.

    Each partition is taken as it is now, or was at a moment, through each failure
    scenario, by the controller's own rules: who is elected, by which rule, what
    it waits for, and how sure it is that nothing is lost. Writes the tables
    assessments and assessment_sums into the lake, and shows the worst scenarios.

    Examples:
      kelr fleet assess --lake lake
      kelr fleet assess --lake lake --scenarios each-pair,rack-while-rolling
      kelr fleet assess --lake lake --scenarios failures.yaml --rules kraft
      kelr fleet assess --lake lake --at 2026-03-01T02:10:00Z --cluster payments-eu
      kelr fleet assess --lake lake --check --fail-on may_lose -o json
    """
    output = open_output(ctx)
    chosen, at_us, wanted_fails = tuple(map(read_rules, rules or ("auto",))), _at(at), _fail_on(fail_on)
    try:
        from kelr.fleet.assess.assessing import Question  # noqa: PLC0415 - PySpark is of an extra
        from kelr.fleet.assess.assessing import assess as assessed_by  # noqa: PLC0415 - as above
        from kelr.fleet.assess.scenarios import wanted_scenarios  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedError(
            f"kelr fleet needs more than is installed: {error}", next_step="install it with: pip install 'kelr[fleet]'"
        ) from error
    question = Question(wanted_scenarios(scenarios or ()), chosen, at_us, tuple(cluster or ()), topic)
    with spark_session(output, master, remote, conf) as spark:
        found = assessed_by(open_lake(spark, lake), question)
    rows = [_row(one) for one in found.sums]
    failed = _fails(rows, found, wanted_fails) if check else None
    _show(output, lake, found, rows, failed, everything=all_)
    if failed:
        raise typer.Exit(ExitCode.FOUND)


def _show(
    output: Output, lake: str, found: Assessed, rows: Sequence[ScenarioRow], failed: bool | None, *, everything: bool
) -> None:
    shown = list(worst_first(rows, None if everything or not output.format.for_people else LISTED))
    reasons = {(one.context.id, one.chosen.rules.name): one.chosen.reason for one in found.sums}
    notes = list(
        notes_on(
            rows,
            len(shown),
            unknown=found.unknown,
            lost_directories=found.lost_directories,
            reasons=lambda row: reasons[row.cluster, row.rules],
        )
    )
    following = ["fleet", "exposure", "--lake", lake]
    head: dict[str, Json] = {"lake": lake}
    with output.listing(assess_view(), head) as listing:
        listing.add(shown)
        listing.finish(
            {
                "patterns": found.patterns,
                "scenarios": len(rows),
                "listed": len(shown),
                "unknown_clusters": list(found.unknown),
                "failed": failed,
                "notes": notes,
                "next": output.next_command(following),
            }
        )
    if not output.format.is_document:
        for note in notes:
            output.note(note)
        output.next(following)


def _row(one: Sums) -> ScenarioRow:
    scenario, counts = one.scenario, one.counts
    from kelr.fleet.assess.tables import NOW, STANDINGS  # noqa: PLC0415 - PySpark is of an extra

    return ScenarioRow(
        cluster=one.context.id,
        cluster_name=one.context.name,
        rules=one.chosen.rules.name,
        rules_certain=one.chosen.certain,
        at_ms=one.context.at_us // 1000,
        scenario=NOW if scenario is None else scenario.name,
        kind=NOW if scenario is None else scenario.kind,
        happens="nothing happens" if scenario is None else str(scenario.outage),
        brokers=() if scenario is None else scenario.outage.brokers,
        racks=one.racks,
        partitions=counts.get("partitions", 0),
        touched=counts.get("touched", 0),
        new={name: counts.get(f"new.{name}", 0) for name in STANDINGS},
        depends=counts.get("depends", 0),
        worst_topics=one.worst_topics,
    )


def _fails(rows: Sequence[ScenarioRow], found: Assessed, wanted: Sequence[str]) -> bool:
    """Whether a scenario comes to any of these, or that is not known."""
    sure = bool(rows) and not (found.unknown or found.lost_directories) and all(row.partitions for row in rows)
    return not sure or any(row.new[name] for row in rows for name in (*wanted, "doubtful"))


def _at(text: str | None) -> int | None:
    """A time in microseconds since 1970."""
    if text is None:
        return None
    from kelr.sources.metadata_log.replaying import read_moment  # noqa: PLC0415 - not for --help

    moment = read_moment(text)
    if moment.time_ms is None:
        raise UsageError(f"--at {text} is no time", next_step="give a time such as 2026-03-01T02:10:00Z")
    return moment.time_ms * 1000


def _fail_on(text: str) -> tuple[str, ...]:
    from kelr.engine.outages.standing import Standing  # noqa: PLC0415 - not for --help

    known = [str(flag.name).lower() for flag in Standing]
    names = [name.strip().lower().replace("-", "_") for name in text.split(",") if name.strip()]
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None or not names:
        raise UsageError(f"--fail-on: there is no {wrong!r}", next_step=f"write some of {', '.join(known)}")
    return tuple(names)
