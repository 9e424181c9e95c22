"""What `kelr whatif` says would happen, and a real cluster to which it happens: state by state of every partition."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import choose_rules
from kelr.engine.outages.fate import place_of, told
from kelr.engine.outages.reading import CaseReader, PageOfCases
from kelr.engine.outages.restarts import caught_up
from kelr.engine.outages.scenario import Outage, outage
from kelr.engine.outages.told import partition_fate
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.lab import Lab
from kelr.lab.observed import PATIENCE_S
from kelr.lab.story import create_topic
from kelr.model import PartitionState, Snapshot, TopicPartition, select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource

_THREE = [list(order) for order in itertools.permutations((1, 2, 3))]
_TWO = [list(order) for order in itertools.permutations((1, 2, 3), 2)]
_ONE = [[1], [2], [3]]
TOPICS: Mapping[str, tuple[list[list[int]], dict[str, str]]] = {
    "whatif-three": (_THREE, {"min.insync.replicas": "2"}),
    "whatif-two": (_TWO, {"min.insync.replicas": "2"}),
    "whatif-one": (_ONE, {"min.insync.replicas": "2"}),
    "whatif-min-isr-1": (_THREE, {"min.insync.replicas": "1"}),
    "whatif-min-isr-3": (_THREE, {"min.insync.replicas": "3"}),
    "whatif-unclean": (_THREE, {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}),
    "whatif-unclean-two": (_TWO, {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}),
}
"""Every order of replicas, under the configs that elections depend on."""
PARTITIONS = sum(len(layouts) for layouts, _ in TOPICS.values())

Described = tuple[object, ...]
Predicted = Mapping[TopicPartition, Described]


def described(state: PartitionState) -> Described:
    """What a cluster tells of a partition, its sets in order of ids."""
    elr, last_known = sorted(state.elr or ()), tuple(state.last_known_elr or ())
    return state.leader, state.leader_epoch, sorted(state.isr), elr, last_known


def create_topics(lab: Lab) -> None:
    """Create the topics, and wait until every replica is in sync."""
    for topic, (layouts, config) in TOPICS.items():
        create_topic(lab, topic, layouts, config)


def whole_snapshot(lab: Lab) -> Snapshot:
    """The topics as they are once every replica is in sync."""
    for _ in range(20):
        for topic in TOPICS:
            lab.wait_partitions(topic, "all in sync", lambda state: len(state.isr) == len(state.replicas))
        snapshot = snapshot_of_topics(lab)
        # On a busy machine a leader may have thrown a slow follower out again meanwhile.
        if all(len(state.isr) == len(state.replicas) for state in snapshot.partitions):
            return snapshot
    raise AssertionError("the replicas do not stay in sync")


def snapshot_of_topics(lab: Lab) -> Snapshot:
    """The topics as they are now."""
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        return take_snapshot(source, select(list(TOPICS)), now_ms=0)


def _page(snapshot: Snapshot) -> PageOfCases:
    reader = CaseReader(snapshot.cluster, choose_rules(snapshot.cluster.features).rules)
    return reader.page(snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas)


def predicted(snapshot: Snapshot, happens: Outage) -> Predicted:
    """What `kelr whatif` says of each partition after an outage in its order."""
    page = _page(snapshot)
    fates = [partition_fate(state, seen, happens) for state, seen in page.partitions(lambda _: True)]
    assert all(len(fate.ends) == 1 for fate in fates)
    return {fate.before.address: described(fate.worst.after) for fate in fates}


def predicted_in_sync(snapshot: Snapshot, back: Assumption) -> Predicted:
    """What it says of each partition once a broker has come back, and all that are live have caught up."""
    page = _page(snapshot)
    found = {}
    for state, seen in page.partitions(lambda _: True):
        blows = place_of(seen.placed, (back,))
        (fate,) = seen.known.fates(blows, at_once=False).each
        after = caught_up(fate.state, range(len(seen.brokers))).partitions[seen.known.case.address]
        found[state.address] = described(told(seen.placed, state, replace(fate, after=after)))
    return found


@dataclass
class Truth:
    """A cluster with the topics, and how many predictions came true on it."""

    lab: Lab
    came_true: int = 0
    """States of partitions that were predicted, and came."""
    orders: list[tuple[int, ...]] = field(default_factory=list)
    """For brokers killed at once: the order that the cluster turned out to have taken."""

    def one_after_the_other(self, blows: Sequence[Assumption]) -> None:
        """Let the blows happen in this order: after each, every partition is as predicted from the beginning."""
        before = whole_snapshot(self.lab)
        for count, blow in enumerate(blows, start=1):
            expected = predicted(before, Outage(tuple(blows[:count]), at_once=False))
            self._strike(blow)
            self._wait({(): expected}, f"after {Outage(tuple(blows[:count]), at_once=False)}")

    def killed_at_once(self, brokers: Sequence[int]) -> None:
        """Kill the brokers: every partition comes out as predicted for one and the same order of them."""
        before = whole_snapshot(self.lab)
        ends = {
            order: predicted(before, Outage(outage(killed=order).blows, at_once=False))
            for order in itertools.permutations(brokers)
        }
        for broker in brokers:
            self.lab.kill(broker)
        self.orders.append(self._wait(ends, f"after {outage(killed=brokers)}"))

    def back(self, blows: Iterable[Assumption]) -> None:
        """Start the brokers that the blows took, one after the other: after each, every partition is as predicted once
        that broker has caught up."""
        for blow in blows:
            assert blow.broker is not None
            clean = blow.happening is Happening.STOPS
            back = Assumption(Happening.RETURNS_CLEAN if clean else Happening.RETURNS_UNCLEAN, broker=blow.broker)
            expected = predicted_in_sync(snapshot_of_topics(self.lab), back)
            self.lab.start(blow.broker)
            self._wait({(): expected}, f"after {Outage((back,), at_once=False)} and has caught up")

    def _strike(self, blow: Assumption) -> None:
        assert blow.broker is not None
        strike: Callable[[int], None] = self.lab.stop if blow.happening is Happening.STOPS else self.lab.kill
        strike(blow.broker)

    def _wait(self, ends: Mapping[tuple[int, ...], Predicted], when: str) -> tuple[int, ...]:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            # Of every broker: what is asked next may go to any of them.
            views = [_described(view) for view in self.lab.views(*TOPICS)]
            for order, expected in ends.items():
                if views and all(view == expected for view in views):
                    self.came_true += len(expected)
                    return order
            if time.monotonic() > deadline_s:
                others = {
                    order: [
                        {str(at): (expected[at], state) for at, state in view.items() if expected[at] != state}
                        for view in views
                    ]
                    for order, expected in ends.items()
                }
                raise AssertionError(f"{when} these are not as predicted (predicted, found): {others}")
            time.sleep(0.1)


def _described(view: Mapping[TopicPartition, PartitionState]) -> Predicted:
    return {address: described(state) for address, state in view.items()}


def stop(broker: int) -> Assumption:
    return Assumption(Happening.STOPS, broker=broker)


def kill(broker: int) -> Assumption:
    return Assumption(Happening.FAILS, broker=broker)
