"""``kelr demo``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.demo_simulated import headline, on, run, typed
from kelr.commands.options import on_this_machine, open_output
from kelr.commands.session import now_ms
from kelr.errors import ConnectError, ExitCode, LabError, UsageError
from kelr.view.output import Output
from kelr.view.styled import plain

if TYPE_CHECKING:
    from kelr.lab import Lab
    from kelr.view.demo import Comparison

app = typer.Typer(add_completion=False)

INCIDENT = "needs-unclean-recovery"
TOPIC = "orders"
GIVEN_UP = 1
"""The broker that leads last in the incident: it alone holds the last records."""

Simulated = Annotated[
    bool, typer.Option("--simulated", help="A cluster inside kelr with all of KIP-966: no Java, no download.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the cluster up, and say what to try on it.")]
Kafka = Annotated[str | None, typer.Option("--kafka", metavar="VERSION", help="Which Apache Kafka (default: 4.4.0).")]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Where the demo's cluster lives; a folder of its own by default."),
]


@app.command(
    **on_this_machine(
        {ExitCode.CONNECT: "the jars could not be fetched", ExitCode.UNSUPPORTED: "no cluster could be started"}
    )
)
def demo(
    ctx: typer.Context,
    *,
    simulated: Simulated = False,
    keep: Keep = False,
    kafka: Kafka = None,
    directory: Directory = None,
) -> None:
    """Show one incident from start to end.

    Starts real Apache Kafka on this machine (the jars are fetched once), kills
    brokers until partitions have lost their leader, and shows what kelr makes
    of it: describe, log-info, explain, and a table of what the stock unclean
    election would elect and lose against what kelr recommends. Then one broker
    is given up for lost: a plan, a dump of the records that only its disk holds,
    the elections, the records again, and a verification. Then it cleans up.

    With --simulated, in seconds and with nothing to fetch: the whole of
    KIP-966, which no release of Kafka has, on a cluster inside kelr. That is
    shown too where Kafka cannot be had: no Java, and none to be fetched.

    Examples:
      kelr demo
      kelr demo --simulated
      kelr demo --keep
    """
    output = open_output(ctx)
    from kelr.commands.demo_simulated import show_simulated  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    if simulated and kafka is not None:
        raise UsageError("--kafka is for real clusters", next_step="leave --simulated or --kafka out")
    # Beside the lab's own place, so that a lab that is up stays untouched.
    directory = directory or default_directory().with_name("demo")
    # Who names a version wants that one, or to know why it cannot be had.
    why_not = None if simulated or kafka is not None else _why_no_kafka(output)
    if why_not is not None:
        output.note(f"no real Kafka here, so the simulated cluster is shown: {why_not}")
    if simulated or why_not is not None:
        show_simulated(output, directory, keep=keep)
    else:
        _show_real(output, directory, keep=keep, kafka=kafka)


def _why_no_kafka(output: Output) -> str | None:
    """Why no real cluster can be had on this machine; None where one can."""
    from kelr.lab.jars import cache_directory, obtain_jars  # noqa: PLC0415
    from kelr.lab.java import find_java  # noqa: PLC0415
    from kelr.lab.locks import load_lock  # noqa: PLC0415
    from kelr.lab.spec import DEFAULT_KAFKA  # noqa: PLC0415

    try:
        find_java()
        obtain_jars(load_lock(DEFAULT_KAFKA), cache_directory(), report=output.note, progress=output.progress)
    except (LabError, ConnectError) as error:
        return error.message
    return None


def _show_real(output: Output, directory: Path, *, keep: bool, kafka: str | None) -> None:
    """The incident on Apache Kafka.

    Raises:
        ConnectError: the jars could not be fetched.
        LabError: no cluster could be started, or a command did not end as it should.
    """
    from kelr.lab import Lab, LabSpec, run_incident  # noqa: PLC0415 - not for --help

    spec = LabSpec() if kafka is None else LabSpec(kafka=kafka)
    headline(output, f"A real cluster: Apache Kafka {spec.kafka}, one controller and {spec.brokers} brokers")
    lab = Lab.up(spec, directory, report=output.note, progress=output.progress, owner_pid=None if keep else os.getpid())
    with on(output, lab, keep=keep):
        headline(output, f"A real incident: {INCIDENT}")
        run_incident(lab, INCIDENT, topic=TOPIC, report=output.note)
        compared = _compare(lab)
        for arguments in (
            ("describe", TOPIC),
            ("log-info", _most_telling(compared).name),
            ("explain", _most_telling(compared).name),
        ):
            run(output, lab, arguments)
        _closing_table(output, compared)
        _recover(output, lab)
        if keep:
            _what_to_try(output, lab)


def _recover(output: Output, lab: Lab) -> None:
    """Broker 1 does not come back: elect the best of the others, and keep what only its disk holds."""
    disk, plan = str(lab.data_directory(GIVEN_UP)), str(lab.directory / "plan.json")
    logs, lost = str(lab.directory / "broker-1.kelr"), str(lab.directory / "lost.kelr-rescue")
    headline(output, f"Broker {GIVEN_UP} will not start again, but its disk can be read: a plan, with what it holds")
    run(output, lab, ("recover", "collect", "--log-dir", disk, "--out", logs))
    run(
        output,
        lab,
        ("recover", "plan", TOPIC, "--election-type", "longest_log_aggressive", "--logs", logs, "--out", plan),
    )
    headline(output, "Saving the records that the elections would lose, then the elections, then the records again")
    run(output, lab, ("rescue", "dump", "--plan", plan, "--log-dir", disk, "--out", lost))
    accepted = _loss_to_accept(Path(plan))
    run(output, lab, ("recover", "apply", plan, "--logs", logs, "--yes", "--accept-loss", accepted))
    # Until a second replica is in sync no record is taken with acks=all.
    run(output, lab, ("recover", "verify", plan, "--wait"))
    run(output, lab, ("rescue", "replay", lost, "--yes"))
    headline(output, f"Broker {GIVEN_UP} is repaired after all, and takes the others' logs")
    lab.start(GIVEN_UP)
    output.note(f"started broker {GIVEN_UP}")
    run(output, lab, ("recover", "verify", plan, "--wait"))


def _loss_to_accept(path: Path) -> str:
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415 - not for --help

    return str(read_plan(path).loss_to_accept)


def _compare(lab: Lab) -> list[Comparison]:
    from kelr.model import select  # noqa: PLC0415
    from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415
    from kelr.sources.decisions import decide_partitions  # noqa: PLC0415
    from kelr.sources.live import LiveSource  # noqa: PLC0415
    from kelr.view.demo import Comparison  # noqa: PLC0415

    source = LiveSource(ConnectionSettings.read(lab.bootstrap_servers))
    try:
        pages = decide_partitions(source, select([TOPIC]), clock_ms=now_ms)
        return [Comparison(decision) for page in pages for decision in page.decisions]
    finally:
        source.close()


def _most_telling(compared: list[Comparison]) -> Comparison:
    """The partition where the stock election loses most against the best log, as far as that is known."""
    return max(compared, key=lambda row: row.gain or 0)


def _closing_table(output: Output, compared: list[Comparison]) -> None:
    from kelr.view.demo import COMPARISON_VIEW, comparison_in_words  # noqa: PLC0415
    from kelr.view.layout import wrapped  # noqa: PLC0415

    headline(output, "What the stock unclean election would lose, and what kelr recommends")
    with output.listing(COMPARISON_VIEW) as listing:
        listing.add(compared)
    output.line()
    for line in wrapped(plain(comparison_in_words(compared)), output.width or 120):
        output.line(line)


def _what_to_try(output: Output, lab: Lab) -> None:
    headline(output, "The cluster stays up. Try")
    directory = f" --dir {lab.directory}"
    for line in (
        typed(lab, ("describe", TOPIC)),
        f"kelr lab incident lossy-restart{directory}      # another incident; then explain again",
        f"kelr lab down{directory}",
    ):
        output.line(f"  {line}")
