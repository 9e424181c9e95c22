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
    election would elect and lose against what kelr recommends. Then it cleans
    up.

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
    done = subprocess.run([sys.executable, "-m", "kelr", *arguments, "-b", lab.bootstrap_servers], check=False)
    if done.returncode:
        raise LabError(f"{_typed(lab, arguments)} ended with exit code {done.returncode}")


def _typed(lab: Lab, arguments: tuple[str, ...]) -> str:
    return " ".join(("kelr", *arguments, "-b", lab.bootstrap_servers))


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
        _typed(lab, ("describe", "--leaderless")),
        _typed(lab, ("explain", "--full")),
        f"kelr lab start 1{directory}      # the broker that everything waits for; then explain again",
        f"kelr lab down{directory}",
    ):
        output.line(f"  {line}")
