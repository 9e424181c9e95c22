"""Reading partitions of a live cluster just now, with their decisions or without, and waiting until they are so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from kelr.errors import ConnectError
from kelr.model import Decision, PartitionState, Selection, Snapshot, Target, TopicPartition
from kelr.recovery.apply_context import Site
from kelr.sources.base import Page
from kelr.sources.decisions import decide_partitions


class States(dict[TopicPartition, PartitionState]):
    """Partitions as they are now. One that is not there is left out, and so is one that could not be described.

    Args:
        unread: Kafka's name of the error of each topic that could not be described.
    """

    def __init__(self, states: Iterable[PartitionState] = (), unread: Mapping[str, str] | None = None) -> None:
        super().__init__((state.address, state) for state in states)
        self._unread = unread or {}

    @classmethod
    def of(cls, pages: Iterable[Page]) -> Self:
        """What these pages tell."""
        told = list(pages)
        unread = {error.topic: error.error for page in told for error in page.topic_errors if not error.is_gone}
        return cls((state for page in told for state in page.partitions), unread)

    def why_unread(self, at: TopicPartition) -> str | None:
        """Why it could not be described; None where it was, or is not there."""
        return None if at in self else self._unread.get(at.topic)

    def all_read(self, addresses: Iterable[TopicPartition]) -> bool:
        """Whether each of these was described, or is not there."""
        return all(self.why_unread(at) is None for at in addresses)


@dataclass(frozen=True, slots=True)
class Reading:
    """Some partitions with their logs, as they are just now."""

    snapshots: Mapping[TopicPartition, Snapshot] = field(default_factory=dict)
    """For each partition that could be read, the snapshot that holds it."""
    decisions: Mapping[TopicPartition, Decision] = field(default_factory=dict)
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
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
    """The partitions alone, read now; None where no broker answers.

    The brokers are read with them: `Source.cluster` is as new.
    """
    if not addresses:
        return States()
    try:
        site.source.forget()
        site.source.cluster()
        return States.of(site.source.pages(selection_of(addresses)))
    except ConnectError:
        return None


def wait_until(
    site: Site, addresses: Collection[TopicPartition], holds: Callable[[PartitionState], bool], *, patience_s: float
) -> States | None:
    """The partitions as soon as something holds for each that there is, or as they are when the time is up. Of one that
    cannot be described it is not known.

    None where no broker answers any more.
    """
    deadline = site.ground.steady_s() + patience_s
    while True:
        states = read_states(site, addresses)
        if states is not None and states.all_read(addresses) and all(map(holds, states.values())):
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
