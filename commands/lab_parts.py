"""What the commands of ``kelr lab`` share: their options, and the lab that they are about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.errors import ExitCode, UsageError
from kelr.model.numbers import MAX_INT32, whole_number
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.lab import Lab
    from kelr.lab.simulated.lab import SimulatedLab

Directory = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="Where the lab lives (env: KELR_LAB_DIR).")
]
Brokers = Annotated[list[int], typer.Argument(metavar="BROKER", help="Ids of brokers, from 1.", show_default=False)]
NO_LAB = {ExitCode.UNSUPPORTED: "there is no lab, or it does not do what it should"}
ONLY_SIMULATED = {ExitCode.UNSUPPORTED: "there is no lab, or it runs real Kafka, which cannot do this"}
CONTROLLER = "controller"


def others(lab: Lab | SimulatedLab) -> tuple[int, ...]:
    """The controllers, where more than one is there to be killed."""
    return lab.controllers if len(lab.controllers) > 1 else ()


def opened(directory: Path | None) -> Lab | SimulatedLab:
    """The lab, whatever its kind."""
    from kelr.lab import open_lab  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    return open_lab(directory or default_directory())


def simulated(directory: Path | None, what: str) -> SimulatedLab:
    """The lab, which has to be a simulated one for `what`."""
    from kelr.lab import open_simulated  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    return open_simulated(directory or default_directory(), what)


def node_of(lab: SimulatedLab, name: str) -> int:
    """The node that is called so: a broker's id, or ``controller``.

    Raises:
        UsageError: no node can be called so.
    """
    if name.lower() == CONTROLLER:
        return lab.controller
    number = whole_number(name, MAX_INT32)
    if number is None:
        raise UsageError(f"no node is called {name[:40]!r}", next_step=f"give a broker's id, or {CONTROLLER}")
    return number


def node_text(lab: SimulatedLab, node: int) -> str:
    """``broker 2``, or ``the controller``."""
    return f"the {CONTROLLER}" if node == lab.controller else f"broker {node}"


def show(output: Output, lab: Lab | SimulatedLab) -> None:
    """What runs, and what was done to it."""
    from kelr.view.lab import lab_head, rehearsal_lines, status_view  # noqa: PLC0415 - not for --help
    from kelr.view.layout import wrapped  # noqa: PLC0415

    status = lab.status()
    if output.format.for_people:
        elr = "ELR on" if status.elr else "ELR off"
        what = f"Kafka {status.kafka}" if status.rehearsal is None else f"Simulated, rules {status.rehearsal.rules}"
        output.line(f"{what}, {elr}, min ISR {status.min_isr}, in {status.directory}")
        output.line(f"bootstrap servers: {status.client_servers or status.bootstrap_servers}")
        if status.command_config is not None:
            login = f" with {status.sasl_mechanism}" if status.sasl_mechanism else ""
            acls = ", brokers ask for ACLs" if status.authorizer else ""
            output.line(f"{status.security}{login}{acls}: --command-config {status.command_config}")
            if status.client_servers != status.bootstrap_servers:
                output.line(f"the lab's own listeners, without security: {status.bootstrap_servers}")
    with output.listing(status_view(), lab_head(status)) as listing:
        listing.add(status.nodes)
    if output.format.for_people and status.rehearsal is not None:
        for line in rehearsal_lines(status.rehearsal):
            for piece in wrapped(line, output.width or 120):
                output.line(piece)
    if status.ready and status.rehearsal is not None and status.rehearsal.now_ms is None:
        output.note("this lab's process has ended, and its cluster with it; 'kelr lab down' clears up")
    if not status.ready:
        output.note("this lab is starting, or was killed while it did; 'kelr lab down' ends it")


def next_command(output: Output, lab: Lab | SimulatedLab, *arguments: str) -> None:
    """What to type next, in this lab's directory."""
    from kelr.lab.state import default_directory  # noqa: PLC0415 - not for --help

    elsewhere = lab.directory != default_directory().absolute()
    output.next([*arguments, *(("--dir", str(lab.directory)) if elsewhere else ())])


def ids(brokers: Iterable[int]) -> str:
    """Broker ids for a sentence."""
    return ", ".join(map(str, brokers)) or "none"
