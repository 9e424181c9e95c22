"""Reading partitions of a live cluster just now, with their decisions or without, and waiting until they are so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from kelr.errors import ConnectError
from kelr.model import Decision, PartitionState, Selection, Snapshot, Target, TopicPartition
from kelr.recovery.apply_context import Site
from kelr.sources.decisions import decide_partitions

States = Mapping[TopicPartition, PartitionState]


@dataclass(frozen=True, slots=True)
class Reading:
    """Some partitions with their logs, as they are just now."""

    snapshots: Mapping[TopicPartition, Snapshot] = field(default_factory=dict)
    """For each partition that could be read, the snapshot that holds it."""
    decisions: Mapping[TopicPartition, Decision] = field(default_factory=dict)
    states: States = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    """Kafka's name of the error of each topic that could not be read."""


def read_decided(site: Site, addresses: Collection[TopicPartition]) -> Reading:
    """The partitions, their configs and their logs, read now, and what the engine says of each.

    Raises:
        KelrError: the cluster cannot be reached.
    """
    if not addresses:
        return Reading()
    snapshots: dict[TopicPartition, Snapshot] = {}
    decisions: dict[TopicPartition, Decision] = {}
    states: dict[TopicPartition, PartitionState] = {}
    errors: dict[str, str] = {}
    site.source.forget()
    for page in decide_partitions(site.source, selection_of(addresses), clock_ms=site.ground.now_ms, rules=site.rules):
        errors.update((error.topic, error.error) for error in page.snapshot.topic_errors)
        decided = {TopicPartition(decision.topic, decision.partition): decision for decision in page.decisions}
        for state in page.snapshot.partitions:
            if state.address in decided:
                states[state.address] = state
                snapshots[state.address] = page.snapshot
                decisions[state.address] = decided[state.address]
    return Reading(snapshots, decisions, states, errors)


def read_states(site: Site, addresses: Collection[TopicPartition]) -> States | None:
    """The partitions alone, read now; None where no broker answers. One that there is not is left out.

    The brokers are read with them: `Source.cluster` is as new.
    """
    if not addresses:
        return {}
    try:
        site.source.forget()
        site.source.cluster()
        pages = site.source.pages(selection_of(addresses))
        return {state.address: state for page in pages for state in page.partitions}
    except ConnectError:
        return None


def wait_until(
    site: Site, addresses: Collection[TopicPartition], holds: Callable[[PartitionState], bool], *, patience_s: float
) -> States | None:
    """The partitions as soon as something holds for each that there is, or as they are when the time is up.

    None where no broker answers any more.
    """
    deadline = site.ground.steady_s() + patience_s
    while True:
        states = read_states(site, addresses)
        if states is not None and all(map(holds, states.values())):
            return states
        if site.ground.steady_s() >= deadline:
            return states
        site.ground.sleep(site.patience.step_s)


def selection_of(addresses: Collection[TopicPartition]) -> Selection:
    """These partitions and no others."""
    by_topic: dict[str, list[int]] = {}
    for address in sorted(addresses):
        by_topic.setdefault(address.topic, []).append(address.partition)
    return Selection(tuple(Target(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()))
