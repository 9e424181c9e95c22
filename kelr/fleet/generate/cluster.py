"""A cluster on paper: its topics and partitions, and what leaders and operators ask of the controller.

Source: ReplicationControlManager and ConfigurationControlManager of Apache Kafka 4.3.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kelr.controller import Election, events, handle
from kelr.fleet.generate.controlled import MIN_ISR, UNCLEAN, Controlled
from kelr.fleet.generate.layout import NewTopic
from kelr.fleet.generate.partitions import Partition, Topic
from kelr.fleet.generate.plan import made_id
from kelr.fleet.generate.steps import STAND_IN
from kelr.model import PartitionState
from kelr.replay import records as rec
from kelr.replay.image import TOPIC
from kelr.sources.metadata_log.writing import encode

_MOST_REBALANCED = 1_000
"""Of one run of the task (ReplicationControlManager.MAX_ELECTIONS_PER_IMBALANCE)."""
_CHANGE = b"\x01\x05\x02"
"""With what a PartitionChangeRecord of version 2 begins."""


class Cluster(Controlled):
    """A cluster with no topics yet; its brokers have just registered, and run."""

    # Topics.

    def create(self, new: NewTopic) -> bool:
        """Create a topic, if all of its brokers run."""
        if not all(self.live(broker) for replicas in new.replicas for broker in replicas):
            return False
        topic_id = made_id(f"{self.plan.seed}/topic/{new.name}/{self.log.end}")
        topic = Topic(new.name, topic_id, len(new.replicas[0]), new.records_a_minute)
        own = {MIN_ISR: new.min_isr, UNCLEAN: new.unclean}
        records: list[rec.MetadataRecord] = [rec.TopicMade(new.name, topic_id)]
        records += [
            self._config(TOPIC, new.name, key, str(value).lower()) for key, value in own.items() if value is not None
        ]
        topic.settings = self._settings(topic)
        done = handle(replace(self.state, partitions={}), events.TopicCreated(new.name, new.replicas))
        raw = _raw_id(topic_id)
        for address, state in done.state.partitions.items():
            partition = Partition(topic, address.partition, _CHANGE + struct.pack(">i", address.partition) + raw)
            partition.form = self.steps.form(state)
            topic.partitions.append(partition)
            self.held.add(partition)
            records.append(self.made(partition))
            if self.ends is not None:
                self.ends.begin(partition, self.now_ms)
        self.held.topics[new.name] = topic
        self.states += len(topic.partitions)
        self._append(list(map(encode, records)))
        return True

    def delete(self, topic: Topic) -> None:
        del self.held.topics[topic.name]
        for partition in topic.partitions:
            self.held.remove(partition)
            partition.gone = True
            if self.ends is not None:
                self.ends.forget(partition)
        self.configs.pop((TOPIC, topic.name), None)
        self._append([encode(rec.TopicRemoved(topic.topic_id))])

    def made(self, partition: Partition) -> rec.PartitionMade:
        """The whole of a partition, as the record of a new one says it."""
        state = partition.form.state
        return rec.PartitionMade(
            topic_id=partition.topic.topic_id,
            partition=partition.number,
            leader=rec.NO_LEADER if state.leader is None else state.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            adding=state.adding or (),
            removing=state.removing or (),
            elr=state.elr or None,
            last_known_elr=state.last_known_elr or None,
            recovering=bool(state.recovering),
            directories=tuple(self.directories[replica] for replica in state.replicas),
        )

    def on_record(self, partition: Partition) -> PartitionState:
        """The partition as a reader of the metadata log knows it."""
        return replace(
            partition.form.state,
            topic=partition.topic.name,
            partition=partition.number,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            offline_replicas=None,
            topic_id=partition.topic.topic_id,
        )

    def write_config(self, topic: Topic, key: str, value: str) -> bool:
        """Set one of a topic's configs.

        One that would clear ELRs is not written: what Kafka's index of ELR members then has too much of
        (`kelr.controller.elr_index`) is not followed here.
        """
        least = key == MIN_ISR
        if least and any(one.form.state.elr or one.form.state.last_known_elr for one in topic.partitions):
            return False
        values = [encode(self._config(TOPIC, topic.name, key, value))]
        if least and self.rules.elr:
            values.append(encode(rec.ElrCleared(topic.name)))
        topic.settings = self._settings(topic)
        self._append(values)
        return True

    # Partitions.

    def report(self, asked: Iterable[tuple[Partition, tuple[int, ...]]], *, recovering: bool = False) -> None:
        """Leaders report ISRs: one request of each leader, in the order of their ids."""
        by_leader: dict[int, list[tuple[Partition, tuple[int, ...]]]] = {}
        for partition, isr in asked:
            if partition.form.leader is not None:
                by_leader.setdefault(partition.form.leader, []).append((partition, isr))
        for leader in sorted(by_leader):
            values: list[bytes] = []
            for partition, isr in by_leader[leader]:
                self._alters(partition, leader, isr, recovering, values)
            self._append(values)

    def _alters(
        self, partition: Partition, leader: int, isr: tuple[int, ...], recovering: bool, values: list[bytes]
    ) -> None:
        self._reaches(
            ("isr", leader, isr, recovering),
            lambda: events.PartitionAltered(STAND_IN, leader, isr, recovering=recovering),
            (partition,),
            values,
        )

    def elect(self, partitions: Sequence[Partition], election: Election) -> None:
        """ElectLeaders for these partitions."""
        values: list[bytes] = []
        event = events.LeadersElected(election, (STAND_IN,))
        self._reaches(("elected", election), lambda: event, partitions, values)
        self._append(values)

    def rebalance(self) -> None:
        """The periodic preferred elections."""
        values: list[bytes] = []
        astray = [one for one in self.held.astray if self.live(one.form.state.replicas[0])]
        self._reaches(("preferred",), events.PreferredElectionTask, astray[:_MOST_REBALANCED], values)
        self._append(values)

    def elect_uncleanly(self) -> None:
        """The periodic unclean elections of topics that allow them."""
        values: list[bytes] = []
        allowed = [one for one in self.held.leaderless if one.topic.settings.unclean]
        self._reaches(("unclean",), events.UncleanElectionTask, allowed, values)
        self._append(values)

    def reassign(self, partition: Partition, replicas: tuple[int, ...]) -> None:
        """AlterPartitionReassignments for one partition."""
        values: list[bytes] = []
        event = events.Reassigned(STAND_IN, replicas)
        self._reaches(("reassigned", replicas), lambda: event, (partition,), values)
        self._append(values)


def _raw_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
