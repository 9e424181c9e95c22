"""Incidents that really happen: what each one does to a lab, and the state that it promises in the end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from kelr.errors import LabError, UsageError
from kelr.lab.observed import AnyLab, Report
from kelr.lab.produce import Acks
from kelr.lab.state import default_directory
from kelr.lab.story import StepDone, Story
from kelr.model import PartitionState

if TYPE_CHECKING:
    from kelr.lab.cluster import Lab

PARTITIONS = 6
"""As many as there are orders of three replicas, so that each order is there once."""
MOST_PARTITIONS = 1000


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident by name."""

    name: str
    summary: str
    play: Callable[[Story, int], Sequence[int]]
    """Carries it out with so many partitions; returns the brokers whose return would change something, first things
    first."""
    needs_elr: bool = False
    racks: int = 1
    controllers: int = 1
    """How many it takes; with several it is one of the controllers' quorum, on real Kafka alone."""


@dataclass(frozen=True, slots=True)
class IncidentReport:
    """What an incident did, how it left the brokers, and what to look at now."""

    incident: str
    topic: str
    partitions: int
    steps: tuple[StepDone, ...]
    live: tuple[int, ...]
    absent: tuple[int, ...]
    """Brokers whose process does not run."""
    awaited: tuple[int, ...]
    """Those of the absent ones whose return changes the partitions' state, in the order that the story suggests."""
    try_next: tuple[str, ...]
    """Commands, one a line."""


def run_incident(
    lab: AnyLab,
    name: str,
    *,
    topic: str | None = None,
    partitions: int = PARTITIONS,
    report: Report = lambda _line: None,
) -> IncidentReport:
    """Bring the lab back to health, then make an incident happen on a fresh topic.

    Args:
        topic: its name; the incident's name with a number unless given.
        report: told of each step when it is done.

    Raises:
        UsageError: no incident has this name, the topic exists, or the number of partitions is out of range.
        LabError: the lab has too few brokers or racks or no ELR, or does not do what the incident needs.
    """
    incident = find_incident(name)
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise UsageError(f"{partitions} partitions, outside 1 to {MOST_PARTITIONS}")
    _check(lab, incident)
    for address in lab.restore():
        report(f"{address} stays without a leader from before; it does not matter here")
    story = Story(lab, topic or _fresh_topic(lab, name), report)
    awaited = tuple(incident.play(story, partitions))
    live = tuple(filter(lab.is_running, lab.brokers))
    return IncidentReport(
        incident=name,
        topic=story.topic,
        partitions=partitions,
        steps=tuple(story.steps),
        live=live,
        absent=tuple(broker for broker in lab.brokers if broker not in live),
        awaited=awaited,
        try_next=_try_next(lab, story.topic, awaited) if incident.controllers == 1 else _try_quorum(story.real),
    )


def find_incident(name: str) -> Incident:
    """The incident of this name.

    Raises:
        UsageError: there is none; the next step lists them.
    """
    if name not in INCIDENTS:
        raise UsageError(f"no incident is called {name!r}", next_step=f"one of {', '.join(INCIDENTS)}")
    return INCIDENTS[name]


def _check(lab: AnyLab, incident: Incident) -> None:
    if len(lab.brokers) < 3:
        raise LabError(f"{incident.name} needs 3 brokers, this lab has {len(lab.brokers)}", next_step="kelr lab up")
    if len(set(lab.racks.values())) < incident.racks:
        raise LabError(
            f"{incident.name} needs {incident.racks} racks", next_step=f"kelr lab up --racks {incident.racks}"
        )
    if len(lab.controllers) < incident.controllers or (lab.simulated and incident.controllers > 1):
        raise LabError(
            f"{incident.name} needs real Kafka with {incident.controllers} controllers",
            next_step=f"kelr lab up --controllers {incident.controllers}",
        )
    if incident.needs_elr and not lab.spec.elr:
        raise LabError(f"{incident.name} needs ELR, and this lab has none", next_step="start the lab with ELR")


def _fresh_topic(lab: AnyLab, name: str) -> str:
    taken = {address.topic for address in lab.partitions()}
    number = 1
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _try_next(lab: AnyLab, topic: str, awaited: Sequence[int]) -> tuple[str, ...]:
    connection = shlex.join(lab.connection)
    directory = _directory(lab)
    return (
        f"kelr describe {connection} {topic}",
        f"kelr log-info {connection} {topic}",
        f"kelr explain {connection} {topic}",
        *(f"kelr lab start {broker}{directory}" for broker in awaited),
        f"kelr lab down{directory}",
    )


def _try_quorum(lab: Lab) -> tuple[str, ...]:
    where = [f"--node-dir {lab.data_directory(node)}" for node in (*lab.controllers, *lab.brokers)]
    return (
        f"kelr doctor --only no-controller,quorum-lost {shlex.join(lab.connection)}",
        f"kelr quorum collect all.kelr-quorum {' '.join(where)}",
        "kelr quorum explain all.kelr-quorum",
        f"kelr lab down{_directory(lab)}",
    )


def _directory(lab: AnyLab) -> str:
    return "" if lab.directory == default_directory().absolute() else f" --dir {lab.directory}"


def _layouts(brokers: Sequence[int], partitions: int) -> list[tuple[int, ...]]:
    orders = sorted(permutations(brokers))
    return [orders[partition % len(orders)] for partition in range(partitions)]


def _waits_for(broker: int) -> Callable[[PartitionState], bool]:
    """Leaderless, and this broker alone is in the ELR (or, with ELR off, in the ISR)."""
    return lambda state: state.leader is None and (state.isr or state.elr) == (broker,)


def _down_to_one(story: Story, partitions: int, *, stop_second: bool = False) -> None:
    """Brokers 3 and then 2 go away; broker 1 leads alone and takes records with acks=1."""
    story.create_topic(_layouts((1, 2, 3), partitions))
    story.produce(4, Acks.ALL)
    story.kill(3, why=": two of three replicas are left in sync")
    story.produce(4, Acks.ALL)
    if stop_second:
        story.stop(2, why=": it goes from the ISR to the ELR")
    else:
        story.kill(2, why=": broker 1 leads alone")
    story.produce_in_vain()
    story.produce(2, Acks.LEADER)


def _under_min_isr(story: Story, partitions: int) -> Sequence[int]:
    _down_to_one(story, partitions)
    story.wait("broker 1 leads alone", lambda state: state.leader == 1 and state.isr == (1,))
    return 2, 3


def _waiting_for_elr(story: Story, partitions: int) -> Sequence[int]:
    _down_to_one(story, partitions, stop_second=True)
    story.kill(1, why=": no leader is left, and its last records were on no other replica")
    story.start(3, why=": alive, but it missed committed records and is in no list")
    story.wait("the ELR holds 1 and 2", lambda state: state.leader is None and set(state.elr or ()) == {1, 2})
    return 2, 1


def _needs_unclean_recovery(story: Story, partitions: int) -> Sequence[int]:
    _down_to_one(story, partitions)
    story.kill(1, why=": no leader is left")
    story.start(2, 3, why=": alive, and neither may lead (an unclean restart takes a broker out of the ELR)")
    story.wait("only broker 1 is waited for", _waits_for(1))
    return (1,)


def _last_known_leader(story: Story, partitions: int) -> Sequence[int]:
    _needs_unclean_recovery(story, partitions)
    story.fail_to_start(1)
    story.wait("ISR and ELR are empty", _awaits_last_known_leader)
    return (1,)


def _awaits_last_known_leader(state: PartitionState) -> bool:
    """ISR and ELR are empty; before Kafka 4.1 the last known leader is elected at once, dead as it is (KAFKA-19522)."""
    return (not state.isr and not state.elr) or state.leader == 1


def _lossy_restart(story: Story, partitions: int) -> Sequence[int]:
    _down_to_one(story, partitions)
    story.kill(1, why=": no leader is left")
    even, odd = range(0, partitions, 2), range(1, partitions, 2)
    story.cut(2, even, 6)
    if odd:
        story.cut(1, odd, 4)
    story.start(2, 3, why=": broker 2 comes back without what was cut")
    story.wait("only broker 1 is waited for", _waits_for(1))
    return (1,)


def _rack_outage(story: Story, partitions: int) -> Sequence[int]:
    first, second, third = _three_racks(story.lab)
    story.create_topic(_rack_layouts((first, second, third), partitions))
    story.produce(4, Acks.ALL)
    story.kill(*first, why=": the first rack lost power")
    story.produce(4, Acks.ALL)
    story.kill(*second, why=": the second rack follows")
    story.produce_in_vain()
    story.produce(2, Acks.LEADER)
    story.kill(*third, why=": and the third")
    story.start(*first, why=": the first rack is back, with the oldest logs")
    story.wait("no partition has a leader", lambda state: state.leader is None)
    return (*third, *second)


def _three_racks(lab: AnyLab) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    racks = sorted(set(lab.racks.values()))[:3]
    first, second, third = (tuple(broker for broker in lab.brokers if lab.racks[broker] == rack) for rack in racks)
    return first, second, third


def _rack_layouts(racks: Sequence[Sequence[int]], partitions: int) -> list[tuple[int, ...]]:
    """One replica in each rack, the orders of racks and the brokers within each taking turns."""
    orders = sorted(permutations(range(len(racks))))
    return [
        tuple(racks[rack][partition % len(racks[rack])] for rack in orders[partition % len(orders)])
        for partition in range(partitions)
    ]


def _quorum_lost(story: Story, partitions: int) -> Sequence[int]:
    survivor, *others = story.lab.controllers
    story.kill_controllers(survivor, why=": it will not know what comes now")
    _topic_with_records(story, partitions)
    story.lose_disks(*others, why=": a majority is lost")
    story.start_controllers(survivor, why=": it lags, and cannot be elected alone")
    return ()


def _quorum_addresses(story: Story, partitions: int) -> Sequence[int]:
    _topic_with_records(story, partitions)
    story.kill_controllers(*story.lab.controllers)
    story.move_controllers(why=": the metadata log has the old ones")
    story.start_controllers(*story.lab.controllers, why=": they look for each other where none is")
    return ()


def _quorum_disk(story: Story, partitions: int) -> Sequence[int]:
    _topic_with_records(story, partitions)
    lost = story.lab.controllers[-1]
    story.lose_disks(lost, why=": the others are a majority")
    story.replace_disk(lost, why=": it has another directory id, and is no voter")
    story.start_controllers(lost, why=": one more failure, and no controller leads")
    return ()


def _topic_with_records(story: Story, partitions: int) -> None:
    story.create_topic(_layouts((1, 2, 3), partitions))
    story.produce(4, Acks.ALL)


INCIDENTS: Mapping[str, Incident] = {
    incident.name: incident
    for incident in (
        Incident(
            "under-min-isr",
            "two of three replicas die: a leader alone, acks=all refused, acks=1 records on one disk only",
            _under_min_isr,
        ),
        Incident(
            "waiting-for-elr",
            "one ELR member was stopped cleanly and one was killed; the replica that lives missed committed records",
            _waiting_for_elr,
            needs_elr=True,
        ),
        Incident(
            "last-known-leader",
            "the last leader came back, registered and died again: ISR and ELR are empty, and its return elects it",
            _last_known_leader,
            needs_elr=True,
        ),
        Incident(
            "needs-unclean-recovery",
            "the only replica that may lead is gone; of the two that live, the stock election can choose the worse",
            _needs_unclean_recovery,
        ),
        Incident(
            "lossy-restart",
            "a crash cut the logs of killed brokers: one is back without its tail, another would lead without its own",
            _lossy_restart,
        ),
        Incident(
            "rack-outage",
            "three racks fail one after the other, and the one that failed first comes back first",
            _rack_outage,
            racks=3,
        ),
        Incident(
            "quorum-lost",
            "a majority of the controllers dies with its disks; the one that is left lacks the newest topic",
            _quorum_lost,
            controllers=3,
        ),
        Incident(
            "quorum-addresses",
            "all controllers get other addresses at once, and never find each other again",
            _quorum_addresses,
            controllers=3,
        ),
        Incident(
            "quorum-disk",
            "a controller's disk is replaced by an empty one: it runs, and votes no more",
            _quorum_disk,
            controllers=3,
        ),
    )
}
"""Every incident by name."""
