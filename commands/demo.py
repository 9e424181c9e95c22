"""``kelr demo``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.options import with_output
from kelr.commands.session import now_ms
from kelr.errors import ExitCode, LabError
from kelr.view.output import Output
from kelr.view.styled import Style, plain, styled

if TYPE_CHECKING:
    from kelr.lab import Lab
    from kelr.view.demo import Comparison

INCIDENT = "needs-unclean-recovery"
TOPIC = "orders"
GIVEN_UP = 1
"""The broker that leads last in the incident: it alone holds the last records."""

Keep = Annotated[bool, typer.Option("--keep", help="Leave the cluster up, and say what to try on it.")]
Kafka = Annotated[str | None, typer.Option("--kafka", metavar="VERSION", help="Which Apache Kafka; 4.3.1 unless told.")]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Where the demo's cluster lives; a folder of its own by default."),
]


@with_output(
    exits={ExitCode.CONNECT: "the jars could not be fetched", ExitCode.UNSUPPORTED: "no cluster could be started"}
)
def demo(output: Output, *, keep: Keep = False, kafka: Kafka = None, directory: Directory = None) -> None:
    """Show a real incident from start to end on a cluster of its own.

    Starts real Apache Kafka on this machine (the jars are fetched once), kills
    brokers until partitions have lost their leader, and shows what kelr makes
    of it: describe, log-info, explain, and a table of what the stock unclean
    election would elect and lose against what kelr recommends. Then one broker
    is given up for lost: a plan, a dump of the records that only its disk holds,
    the elections, the records again, and a verification. Then it cleans up.

    Examples:
      kelr demo
      kelr demo --keep
    """
    from kelr.lab import Lab, LabSpec, run_incident  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    spec = LabSpec() if kafka is None else LabSpec(kafka=kafka)
    # Beside the lab's own place, so that a lab that is up stays untouched.
    directory = directory or default_directory().with_name("demo")
    _headline(output, f"A real cluster: Apache Kafka {spec.kafka}, one controller and {spec.brokers} brokers")
    lab = Lab.up(spec, directory, report=output.note, progress=output.progress, owner_pid=None if keep else os.getpid())
    try:
        _headline(output, f"A real incident: {INCIDENT}")
        run_incident(lab, INCIDENT, topic=TOPIC, report=output.note)
        compared = _compare(lab)
        for arguments in (
            ("describe", TOPIC),
            ("log-info", _most_telling(compared).name),
            ("explain", _most_telling(compared).name),
        ):
            _run(output, lab, arguments)
        _closing_table(output, compared)
        _recover(output, lab)
        if keep:
            _what_to_try(output, lab)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            output.note("ending the cluster ...")
            lab.down()


def _headline(output: Output, text: str) -> None:
    output.line()
    output.line(styled(f"== {text}", Style.HEADING))


def _run(output: Output, lab: Lab, arguments: tuple[str, ...]) -> None:
    """A kelr command as a user would type it, in a process of its own."""
    output.line()
    output.line(styled("$ " + _typed(lab, arguments), Style.HEADING))
    output.stdout.flush()
    # What the demo does is no part of the user's own audit log.
    environment = {**os.environ, "KELR_STATE_DIR": str(lab.directory / "state")}
    command = [sys.executable, "-m", "kelr", *arguments, *_connection(lab, arguments)]
    done = subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{_typed(lab, arguments)} ended with exit code {done.returncode}")


def _recover(output: Output, lab: Lab) -> None:
    """Broker 1 does not come back: elect the best of the others, and keep what only its disk holds."""
    disk, plan = str(lab.data_directory(GIVEN_UP)), str(lab.directory / "plan.json")
    logs, lost = str(lab.directory / "broker-1.kelr"), str(lab.directory / "lost.kelr-rescue")
    _headline(output, f"Broker {GIVEN_UP} will not start again, but its disk can be read: a plan, with what it holds")
    _run(output, lab, ("recover", "collect", "--log-dir", disk, "--out", logs))
    _run(
        output,
        lab,
        ("recover", "plan", TOPIC, "--election-type", "longest_log_aggressive", "--logs", logs, "--out", plan),
    )
    _headline(output, "Saving the records that the elections would lose, then the elections, then the records again")
    _run(output, lab, ("rescue", "dump", "--plan", plan, "--log-dir", disk, "--out", lost))
    accepted = _loss_to_accept(Path(plan))
    _run(output, lab, ("recover", "apply", plan, "--logs", logs, "--yes", "--accept-loss", accepted))
    _run(output, lab, ("rescue", "replay", lost, "--yes"))
    _headline(output, f"Broker {GIVEN_UP} is repaired after all, and takes the others' logs")
    lab.start(GIVEN_UP)
    output.note(f"started broker {GIVEN_UP}")
    _run(output, lab, ("recover", "verify", plan, "--wait"))


def _loss_to_accept(path: Path) -> str:
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415 - not for --help

    return str(read_plan(path).plan.loss_to_accept)


def _typed(lab: Lab, arguments: tuple[str, ...]) -> str:
    return " ".join(("kelr", *arguments, *_connection(lab, arguments)))


def _connection(lab: Lab, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The connection flags; reading a disk needs no cluster."""
    return () if arguments[:2] == ("recover", "collect") else ("-b", lab.bootstrap_servers)


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
    from kelr.view.table import wrap  # noqa: PLC0415

    _headline(output, "What the stock unclean election would lose, and what kelr recommends")
    with output.listing(COMPARISON_VIEW) as listing:
        listing.add(compared)
    output.line()
    for line in wrap(plain(comparison_in_words(compared)), output.width or 120):
        output.line(line)


def _what_to_try(output: Output, lab: Lab) -> None:
    _headline(output, "The cluster stays up. Try")
    directory = f" --dir {lab.directory}"
    for line in (
        _typed(lab, ("describe", TOPIC)),
        f"kelr lab incident lossy-restart{directory}      # another incident; then explain again",
        f"kelr lab down{directory}",
    ):
        output.line(f"  {line}")
