"""The state machine beside a real controller: the same things happen to both, and both have the same partitions after.

Random histories are compared with Apache's controller classes in a JVM (tests/differential); here a whole cluster runs,
with real registrations, sessions, clean and unclean shutdowns, and ISR changes that real leaders ask for.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Set
from dataclasses import replace

from confluent_kafka import ElectionType as Wire
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kelr.controller import ELR_4_3, Configs, ControllerState, Election, controller_state, handle
from kelr.controller import events as ev
from kelr.engine.what_if.assumptions import parse_assumptions
from kelr.engine.what_if.imagine import imagine
from kelr.lab import Lab
from kelr.lab.observed import PATIENCE_S
from kelr.lab.story import create_topic
from kelr.model import PartitionState, Snapshot, TopicPartition, select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource

LAYOUTS = [list(order) for order in itertools.permutations((1, 2, 3))]


def described(state: PartitionState) -> tuple[object, ...]:
    """What DescribeTopicPartitions tells of a partition, its sets in order of ids."""
    elr, last_known = sorted(state.elr or ()), tuple(state.last_known_elr or ())
    return state.leader, state.leader_epoch, sorted(state.isr), elr, last_known


def test_a_history_on_a_real_cluster_comes_out_as_computed(healthy_43: Lab) -> None:
    lab, topic = healthy_43, "history"
    create_topic(lab, topic, LAYOUTS, {"min.insync.replicas": "2"})
    lab.wait_partitions(topic, "all in sync", lambda state: len(state.isr) == 3)
    both = _Both(lab, topic, _on_record(lab, topic))
    addresses = tuple(sorted(both.state.partitions))
    wire = [WirePartition(topic, address.partition) for address in addresses]

    lab.stop(3)
    both.happened(ev.ControlledShutdown(3), ev.ControlledShutdown(3))
    imagined = imagine(_snapshot(lab, topic), parse_assumptions("2 fails"), ELR_4_3).snapshot
    lab.kill(2)
    both.happened(ev.BrokerFenced(2))
    assert {state.address: described(state) for state in imagined.partitions} == both.described()
    # Both go while no other broker lives to describe them, so they are compared when 3 is back.
    lab.kill(1)
    both.compute(ev.BrokerFenced(1))
    lab.start(3)
    both.happened(ev.BrokerRegistered(3, clean=True), ev.BrokerUnfenced(3))
    assert {state.leader for state in both.state.partitions.values()} == {None}

    lab.start(2)
    both.happened(ev.BrokerRegistered(2, clean=False), ev.BrokerUnfenced(2))
    admin = _admin(lab)
    answers = admin.elect_leaders(Wire.PREFERRED, wire[:1]).result(30)
    errors = [None if error is None else error.name() for error in answers.values()]
    both.happened(ev.LeadersElected(Election.PREFERRED, addresses[:1]))
    assert errors == [both.answers[addresses[0]]]

    _set_min_isr(lab, topic, "1")
    both.happened(ev.ConfigWritten(topic, min_isr=1))
    assert not any(state.elr or state.last_known_elr for state in both.state.partitions.values())
    _set_min_isr(lab, topic, "2")
    both.happened(ev.ConfigWritten(topic, min_isr=2))

    admin = _admin(lab)
    answers = admin.elect_leaders(Wire.UNCLEAN, wire).result(30)
    assert set(answers.values()) == {None}
    both.compute(ev.LeadersElected(Election.UNCLEAN, addresses))
    both.happened(*both.rejoined({2, 3}))
    lab.start(1)
    both.compute(ev.BrokerRegistered(1, clean=False), ev.BrokerUnfenced(1))
    both.happened(*both.rejoined({1, 2, 3}))


class _Both:
    """The cluster, and what kelr computes of it."""

    def __init__(self, lab: Lab, topic: str, state: ControllerState) -> None:
        self.lab, self.topic, self.state = lab, topic, state
        self.answers: dict[object, str] = {}

    def compute(self, *events: ev.Event) -> None:
        for event in events:
            handled = handle(self.state, event)
            assert handled.error == "NONE"
            self.state, self.answers = handled.state, dict(handled.answers)

    def happened(self, *events: ev.Event) -> None:
        """Compute what the events do, and wait until every broker says that the cluster has come to the same."""
        self.compute(*events)
        expected = self.described()
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            views = [
                {address: described(state) for address, state in view.items()} for view in self.lab.views(self.topic)
            ]
            if views and all(view == expected for view in views):
                return
            assert time.monotonic() < deadline_s, f"after {events} expected {expected}, and it is {views}"
            time.sleep(0.1)

    def described(self) -> dict[TopicPartition, tuple[object, ...]]:
        return {address: described(state) for address, state in self.state.partitions.items()}

    def rejoined(self, brokers: Set[int]) -> Iterator[ev.PartitionAltered]:
        """What the leaders ask for once these brokers have caught up."""
        for address, state in self.state.partitions.items():
            assert state.leader is not None
            members = tuple(replica for replica in state.replicas if replica in brokers)
            yield ev.PartitionAltered(address, state.leader, members)


def _on_record(lab: Lab, topic: str) -> ControllerState:
    return replace(controller_state(_snapshot(lab, topic), ELR_4_3), cluster=Configs(min_isr=2))


def _snapshot(lab: Lab, topic: str) -> Snapshot:
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        return take_snapshot(source, select([topic]), now_ms=0)


def _admin(lab: Lab) -> AdminClient:
    """A new client for each request: librdkafka keeps waiting for the broker that was the controller when it asked."""
    return AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})


def _set_min_isr(lab: Lab, topic: str, value: str) -> None:
    entry = ConfigEntry("min.insync.replicas", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = _admin(lab)
    admin.incremental_alter_configs([resource])[resource].result(30)
