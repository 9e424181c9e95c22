"""``kelr demo --simulated``: the whole of KIP-966 on a cluster inside kelr."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kelr.errors import LabError
from kelr.view.output import Output
from kelr.view.styled import Style, styled

if TYPE_CHECKING:
    from kelr.lab.simulated.lab import SimulatedLab


class Stage(Protocol):
    """The cluster of a demo."""

    directory: Path

    @property
    def bootstrap_servers(self) -> str: ...
    def down(self) -> None: ...


@contextmanager
def on(output: Output, lab: Stage, *, keep: bool) -> Iterator[None]:
    """The cluster is ended with the demo, unless it is to be kept and the demo came to its end."""
    try:
        yield
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            output.note("ending the cluster ...")
            lab.down()


def headline(output: Output, text: str) -> None:
    output.line()
    output.line(styled(f"== {text}", Style.HEADING))


def run(output: Output, lab: Stage, arguments: tuple[str, ...]) -> None:
    """A kelr command in a process of its own.

    Raises:
        LabError: it did not end well.
    """
    output.line()
    output.line(styled("$ " + typed(lab, arguments), Style.HEADING))
    output.stdout.flush()
    # What the demo does is no part of the user's own audit log.
    environment = {**os.environ, "KELR_STATE_DIR": str(lab.directory / "state")}
    command = [sys.executable, "-m", "kelr", *arguments, *_connection(lab, arguments)]
    done = subprocess.run(command, check=False, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{typed(lab, arguments)} ended with exit code {done.returncode}")


def typed(lab: Stage, arguments: tuple[str, ...]) -> str:
    """The command as a user types it."""
    return " ".join(("kelr", *arguments, *_connection(lab, arguments)))


def _connection(lab: Stage, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The connection flags; reading a disk needs no cluster."""
    return () if arguments[:2] == ("recover", "collect") else ("-b", lab.bootstrap_servers)


TOPIC, OTHER = "orders", "payments"
GONE = 3
"""The broker that does not come back from the second outage."""
_SESSION_MS = 600
_COMPARED = ("kraft", "elr-4.3", "kip966-none", "kip966-aggressive", "kip966-balanced")


def show_simulated(output: Output, directory: Path, *, keep: bool) -> None:
    """Tell the KIP's story from a power outage to the last verification.

    Raises:
        LabError: the cluster does not come up, or a command does not end as it should.
    """
    from kelr.lab.simulated.lab import SimulatedLab  # noqa: PLC0415 - not for --help
    from kelr.lab.simulated.spec import SimulatedSpec  # noqa: PLC0415
    from kelr.simulation.following import Timing  # noqa: PLC0415

    headline(output, "A simulated cluster inside kelr, with all of KIP-966: balanced unclean recovery, one controller")
    output.line("and 3 brokers that speak Kafka's protocol. No release of Kafka has this; no Java, no download.")
    timing = replace(Timing(), session_ms=_SESSION_MS, lag_ms=_SESSION_MS, flush_ms=None)
    lab = SimulatedLab.up(
        SimulatedSpec(timing=timing), directory, report=output.note, owner_pid=None if keep else os.getpid()
    )
    with on(output, lab, keep=keep):
        _power_outage(output, lab)
        _same_outage_elsewhere(output)
        _by_hand(output, lab)
        if keep:
            _what_to_try(output, lab)


def _power_outage(output: Output, lab: SimulatedLab) -> None:
    """ISR, ELR and LastKnownELR after a power outage; a recovery waits, and then elects the complete replica."""
    from kelr.lab.produce import Acks, produce  # noqa: PLC0415
    from kelr.lab.story import create_topic  # noqa: PLC0415
    from kelr.simulation.outage import IN_MEMORY, ON_DISK, WHOLE  # noqa: PLC0415

    headline(output, "A power outage: all three brokers die at once, and two had not written everything to disk")
    for topic in (TOPIC, OTHER):
        create_topic(lab, topic, [list(lab.brokers)], {})
        produce(lab.bootstrap_servers, topic, (0,), batches=3, records=ON_DISK // 3, acks=Acks.ALL, label="on disk")
    for broker in lab.brokers:
        lab.flush(broker)
    produce(lab.bootstrap_servers, TOPIC, (0,), batches=1, records=IN_MEMORY, acks=Acks.ALL, label="in memory")
    lab.flush(WHOLE)
    output.note(
        f"produced {ON_DISK + IN_MEMORY} records to {TOPIC}:0 with acks=all; only broker {WHOLE} wrote the last"
    )
    _lose_power(lab)
    output.note("brokers 1, 2 and 3 lost power; the controller gave them up one after the other")
    first, second, third = lab.brokers
    lab.start(first)
    output.note(f"broker {first} is back, without the last {IN_MEMORY} records: the ELR keeps it from leading")
    run(output, lab, ("describe", TOPIC))
    lab.start(second)
    output.note(f"broker {second} is back, its log whole, which no tool shows: from the ELR it moved to LastKnownELR")
    run(output, lab, ("describe", TOPIC))
    run(output, lab, ("explain", f"{TOPIC}:0", "--if", f"{third} returns unclean"))
    lab.start(third)
    output.note(f"broker {third} is back, without the last {IN_MEMORY} records: now the manager hears the whole quorum")
    lab.wait_partitions(TOPIC, "somebody leads with all in sync", lambda state: len(state.isr) == len(lab.brokers))
    run(output, lab, ("describe", TOPIC))
    run(output, lab, ("log-info", TOPIC))


def _same_outage_elsewhere(output: Output) -> None:
    from kelr.controller import rule_set  # noqa: PLC0415
    from kelr.simulation.outage import outages  # noqa: PLC0415
    from kelr.view.demo import OUTAGE_VIEW  # noqa: PLC0415

    headline(output, "The same outage under other rules")
    with output.listing(OUTAGE_VIEW) as listing:
        listing.add(outages([rule_set(name) for name in _COMPARED]))


def _by_hand(output: Output, lab: SimulatedLab) -> None:
    """A member of the quorum never comes back: an operator elects, by one request that names the leader."""
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415

    headline(output, f"Another outage, and broker {GONE} never comes back: balanced waits for it, an operator does not")
    _lose_power(lab)
    for broker in lab.brokers:
        if broker != GONE:
            lab.start(broker)
    run(output, lab, ("explain", f"{OTHER}:0"))
    plan = str(lab.directory / "plan.json")
    run(output, lab, ("recover", "plan", OTHER, "--election-type", "longest_log_aggressive", "--out", plan))
    accepted = str(read_plan(Path(plan)).loss_to_accept)
    run(output, lab, ("recover", "apply", plan, "--yes", "--accept-loss", accepted))
    headline(output, f"Broker {GONE} is found after all, and takes the others' log")
    lab.start(GONE)
    run(output, lab, ("recover", "verify", plan, "--wait"))


def _lose_power(lab: SimulatedLab) -> None:
    for broker in lab.brokers:
        lab.kill(broker, power_loss=True)
    for broker in lab.brokers:
        lab.expire(broker)


def _what_to_try(output: Output, lab: SimulatedLab) -> None:
    headline(output, "The cluster stays up. Try")
    directory = f" --dir {lab.directory}"
    for line in (
        typed(lab, ("describe",)),
        f"kelr lab incident rack-outage{directory}",
        f"kelr lab fault delay 500 --api Metadata{directory}",
        f"kelr lab down{directory}",
    ):
        output.line(f"  {line}")
