"""Clusters on paper for tests, and a second controller that goes along with one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from kelr.controller import Configs, ControllerState, Election, RuleSet, events, handle
from kelr.fleet.generate.cluster import Cluster
from kelr.fleet.generate.log import MetadataLog
from kelr.fleet.generate.making import Lived, live, log_folder, write_nodes
from kelr.fleet.generate.plan import CONTROLLERS, ClusterPlan, FleetPlan, NewTopic, Shape, cluster_plans
from kelr.fleet.generate.steps import Partition, Topic
from kelr.model import PartitionState, TopicPartition
from kelr.replay.image import MIN_ISR

SMALL = FleetPlan(clusters=7, partitions=210, brokers=6, weeks=1, incidents=2, skew=0.3, shapes=(Shape.WHOLE,), seed=5)
"""A cluster of each software."""


def lived(plan: ClusterPlan, out: Path) -> Lived:
    """A cluster that has lived, with its files."""
    folder = out / plan.name
    with closing(MetadataLog(log_folder(folder, CONTROLLERS[0]), plan.segment_bytes)) as log:
        done = live(plan, log, folder)
    write_nodes(plan, folder, log)
    return done


def by_address(states: Iterable[PartitionState]) -> dict[TopicPartition, PartitionState]:
    return {state.address: state for state in states}


def states_of(cluster: Cluster) -> dict[TopicPartition, PartitionState]:
    """The partitions as a reader of the metadata log should know them."""
    return by_address(
        cluster.on_record(partition) for topic in cluster.held.topics.values() for partition in topic.partitions
    )


class Accompanied(Cluster):
    """A cluster all of whose events happen to a whole `ControllerState` too, as `kelr.controller` has it."""

    whole: ControllerState
    happened = 0

    def compare(self) -> None:
        """The two must agree on every partition and on every broker."""
        mine = {
            address: replace(state, offline_replicas=(), topic_id=None) for address, state in states_of(self).items()
        }
        assert mine == self.whole.partitions
        statuses = {broker: registration.status for broker, registration in self.whole.brokers.items()}
        assert {broker: registration.status for broker, registration in self.state.brokers.items()} == statuses
        assert set(self.held.leaderless) == {
            partition
            for topic in self.held.topics.values()
            for partition in topic.partitions
            if partition.form.leader is None
        }

    def _happens(self, *several: events.Event) -> None:
        if not hasattr(self, "whole"):
            self.whole = ControllerState(self.plan.software.rules, cluster=self.state.cluster)
        for event in several:
            self.whole = handle(self.whole, event).state
        self.happened += 1
        if self.happened % 40 == 0:
            self.compare()

    def register(self, broker: int, *, clean: bool | None) -> bool:
        done = super().register(broker, clean=clean)
        self._happens(events.BrokerRegistered(broker, bool(clean), self.racks[broker]))
        return done

    def unfence(self, broker: int) -> bool:
        done = super().unfence(broker)
        self._happens(events.BrokerUnfenced(broker))
        return done

    def fence(self, broker: int) -> bool:
        done = super().fence(broker)
        self._happens(events.BrokerFenced(broker))
        return done

    def stop(self, broker: int) -> bool:
        done = super().stop(broker)
        self._happens(events.ControlledShutdown(broker))
        return done

    def turn_elr_on(self, rules: RuleSet) -> None:
        super().turn_elr_on(rules)
        self.whole = replace(self.whole, rules=rules)

    def create(self, new: NewTopic) -> bool:
        done = super().create(new)
        if done:
            own = Configs(new.min_isr, new.unclean)
            self.whole = replace(self.whole, topics={**self.whole.topics, new.name: own})
            self._happens(events.TopicCreated(new.name, new.replicas))
        return done

    def delete(self, topic: Topic) -> None:
        super().delete(topic)
        self._happens(events.TopicDeleted(topic.name))

    def write_config(self, topic: Topic, key: str, value: str) -> bool:
        done = super().write_config(topic, key, value)
        if done:
            assert key == MIN_ISR
            self._happens(events.ConfigWritten(topic.name, min_isr=int(value)))
        return done

    def report(self, asked: Iterable[tuple[Partition, tuple[int, ...]]], *, recovering: bool = False) -> None:
        reports = [
            (events.PartitionAltered(_address(one), one.form.leader, isr, recovering=recovering), (one, isr))
            for one, isr in asked
            if one.form.leader is not None and not one.gone
        ]
        super().report((pair for _, pair in reports), recovering=recovering)
        self._happens(*(event for event, _ in reports))

    def elect(self, partitions: Sequence[Partition], election: Election) -> None:
        super().elect(partitions, election)
        self._happens(events.LeadersElected(election, tuple(map(_address, partitions))))

    def rebalance(self) -> None:
        super().rebalance()
        self._happens(events.PreferredElectionTask())

    def elect_uncleanly(self) -> None:
        super().elect_uncleanly()
        self._happens(events.UncleanElectionTask())

    def reassign(self, partition: Partition, replicas: tuple[int, ...]) -> None:
        super().reassign(partition, replicas)
        self._happens(events.Reassigned(_address(partition), replicas))


def _address(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic.name, partition.number)


def plans(fleet: FleetPlan = SMALL) -> tuple[ClusterPlan, ...]:
    return cluster_plans(fleet)
