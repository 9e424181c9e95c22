"""A cluster on paper: its topics and partitions, and what leaders and operators ask of the controller.

Source: ReplicationControlManager and ConfigurationControlManager of Apache Kafka 4.3.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import Configs, ControllerState, Election, Registration, RuleSet, events, handle
from kelr.controller.reach import ControllerFailedError
from kelr.fleet.generate.log import MetadataLog
from kelr.fleet.generate.plan import MINUTE_MS, ClusterPlan, NewTopic, cluster_min_isr, made_id, racks_of, voters_of
from kelr.fleet.generate.steps import STAND_IN, Form, Held, Partition, Settings, Steps, Topic, Written
from kelr.fleet.generate.truth import Happening, Truth, UncleanElection
from kelr.model import ELR_FEATURE, METADATA_FEATURE, PartitionState, ReplicaLog, leader_min_isr
from kelr.replay import records as rec
from kelr.replay.image import BROKER, MIN_ISR, TOPIC, UNCLEAN
from kelr.sources.metadata_log.writing import NO_OP_VALUE, encode

# Where the logs of a cluster's replicas end, followed from change to change of their partitions.
#
# Producers wait for acks=all: a log grows while its partition has a leader and min ISR replicas in sync, at the
# topic's pace. A replica that leaves the ISR stands still until it is back in it.


@dataclass(slots=True)
class _Grown:
    since_ms: int
    end: int = 0
    """Of the replicas in sync, or of those that were last."""
    last_epoch: int | None = None
    behind: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """End and last written epoch of the others."""


class LogEnds:
    """Follows all partitions of a cluster."""

    def __init__(self) -> None:
        self._grown: dict[Partition, _Grown] = {}

    def begin(self, partition: Partition, now_ms: int) -> None:
        """The partition is new, and its logs are empty."""
        self._grown[partition] = _Grown(now_ms, behind=dict.fromkeys(partition.form.missing, (0, None)))

    def moves(self, partition: Partition, after: Form, now_ms: int, *, unclean: bool) -> int | None:
        """The partition takes another form.

        Returns:
            How many committed records the new leader of an unclean election misses; None at any other change.
        """
        grown = self._grown[partition]
        self._grow(partition, grown, now_ms)
        lost = None
        if unclean and after.leader is not None:
            end, last_epoch = grown.behind.get(after.leader, (grown.end, grown.last_epoch))
            lost = max(0, grown.end - end)
            for replica in partition.form.isr:
                grown.behind[replica] = (grown.end, grown.last_epoch)
            grown.end, grown.last_epoch = end, last_epoch
        for replica in after.missing:
            grown.behind.setdefault(replica, (grown.end if replica in partition.form.isr else 0, grown.last_epoch))
        for replica in [one for one in grown.behind if one in after.isr or one not in after.state.replicas]:
            del grown.behind[replica]
        return lost

    def logs(self, partition: Partition, now_ms: int, *, how: str) -> dict[int, ReplicaLog]:
        """The log of each replica.

        Args:
            how: it was learnt.
        """
        grown = self._grown[partition]
        self._grow(partition, grown, now_ms)
        found = {}
        for replica in partition.form.state.replicas:
            end, last_epoch = grown.behind.get(replica, (grown.end, grown.last_epoch))
            found[replica] = ReplicaLog(
                replica=replica,
                log_end=end,
                last_epoch=last_epoch,
                high_watermark=end,
                log_start=0,
                source=how,
                read_at_ms=now_ms,
            )
        return found

    def forget(self, partition: Partition) -> None:
        """Its topic is deleted."""
        del self._grown[partition]

    def _grow(self, partition: Partition, grown: _Grown, now_ms: int) -> None:
        form, settings = partition.form, partition.topic.settings
        if form.leader is not None and len(form.isr) >= (
            leader_min_isr(settings.min_isr, len(form.state.replicas)) or 1
        ):
            more = partition.topic.records_a_minute * (now_ms - grown.since_ms) // MINUTE_MS
            if more:
                grown.end += more
                grown.last_epoch = partition.leader_epoch
        grown.since_ms = now_ms


# What happens to the brokers and controllers of a cluster on paper, and how an event's records are written.
#
# All that happens goes through `kelr.controller` (see `steps`); here is what surrounds it: which partitions an event
# reaches, the order of records, and the epochs.
#
# Source: ReplicationControlManager, ClusterControlManager and QuorumController of Apache Kafka 4.3.


class Controlled:
    """Brokers that have just registered, and run, and what their controller has on record.

    Args:
        ends: where the replicas' logs end; None where nobody asks.
    """

    def __init__(self, plan: ClusterPlan, log: MetadataLog, truth: Truth, now_ms: int, ends: LogEnds | None) -> None:
        self.plan, self.log, self.truth, self.now_ms, self.ends = plan, log, truth, now_ms, ends
        self.held = Held()
        self.racks = racks_of(plan)
        self.directories = {broker: made_id(f"{plan.seed}/directory/{broker}") for broker in self.racks}
        self.steps = Steps(self.directories.__getitem__)
        self.state = ControllerState(plan.software.rules, cluster=Configs(cluster_min_isr(plan)))
        self.registered: dict[int, rec.BrokerRegistered] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.voters = voters_of(plan)
        self.controller = self.voters[0]
        self.active: frozenset[int] = frozenset()
        """Brokers that may lead and be in sync."""
        self.states = 0
        """Partition states so far."""
        self._begin()

    @property
    def rules(self) -> RuleSet:
        return self.state.rules

    def _begin(self) -> None:
        """What the first controller writes (ActivationRecordsGenerator), and the brokers as they come."""
        self.log.append_leader(self.now_ms, rec.LeaderChanged(self.controller, self.voters))
        levels = [rec.FeatureLevel(METADATA_FEATURE, self.plan.software.metadata_version)]
        if self.rules.elr:
            levels.append(rec.FeatureLevel(ELR_FEATURE, 1))
        self.features = {level.name: level.level for level in levels}
        least = self._config(BROKER, "", MIN_ISR, str(self.state.cluster.min_isr))
        begin, end = rec.TransactionMark("begin"), rec.TransactionMark("end")
        first: list[rec.MetadataRecord] = [begin, *levels, least, end]
        self._append(list(map(encode, first)))
        controllers = [
            rec.ControllerRegistered(voter, made_id(f"{self.plan.seed}/controller/{voter}")) for voter in self.voters
        ]
        self._append(list(map(encode, controllers)))
        for broker in sorted(self.racks):
            self.register(broker, clean=None)
        for broker in sorted(self.racks):
            self.unfence(broker)

    # Brokers.

    def live(self, broker: int) -> bool:
        """Whether the broker is in service."""
        return broker in self.active

    def down(self) -> list[int]:
        """Brokers that are fenced."""
        return [broker for broker, registration in sorted(self.state.brokers.items()) if registration.fenced]

    def register(self, broker: int, *, clean: bool | None) -> bool:
        """A new incarnation registers; it is fenced.

        Args:
            clean: whether its shutdown was; None for its first.

        Returns:
            False where the controller ran into an error of its own, so that it is not registered.
        """
        event = events.BrokerRegistered(broker, bool(clean), self.racks[broker])
        values: list[bytes] = []
        if not self._reaches(("registered", broker, clean), lambda: event, self.held.naming(broker), values):
            return False
        self._tell("registered", broker, clean=clean)
        epoch = self.log.end
        record = rec.BrokerRegistered(
            broker,
            epoch,
            made_id(f"{self.plan.seed}/incarnation/{broker}/{epoch}"),
            fenced=True,
            in_controlled_shutdown=False,
            rack=self.racks[broker],
            endpoints=(rec.Endpoint("PLAINTEXT", f"{self.plan.name}-{broker}.example.net", 9092),),
            features={ELR_FEATURE: 1, METADATA_FEATURE: self.plan.software.metadata_version},
            directories=(self.directories[broker],),
        )
        self.registered[broker] = record
        values.append(encode(record))
        self._append(values)
        self._brokers_are(self.state.with_broker(broker, Registration(epoch, rack=self.racks[broker])))
        return True

    def unfence(self, broker: int) -> bool:
        """A registered broker has caught up with the metadata."""
        values = [encode(rec.BrokerChanged(broker, self._epoch(broker), fenced=False))]
        if not self._reaches(
            ("unfenced", broker), lambda: events.BrokerUnfenced(broker), list(self.held.leaderless), values
        ):
            return False
        self._tell("unfenced", broker)
        self._append(values)
        self._brokers_are(handle(self.state, events.BrokerUnfenced(broker)).state)
        return True

    def fence(self, broker: int) -> bool:
        """No heartbeat came for broker.session.timeout.ms, or the broker has ended its controlled shutdown."""
        if self.state.brokers[broker].fenced:
            return True
        values: list[bytes] = []
        if not self._reaches(("fenced", broker), lambda: events.BrokerFenced(broker), self.held.naming(broker), values):
            return False
        self._tell("fenced", broker)
        values.append(encode(rec.BrokerChanged(broker, self._epoch(broker), fenced=True)))
        self._append(values)
        self._brokers_are(handle(self.state, events.BrokerFenced(broker)).state)
        return True

    def stop(self, broker: int) -> bool:
        """The broker asks to shut down: leaders move away from it."""
        values = [encode(rec.BrokerChanged(broker, self._epoch(broker), in_controlled_shutdown=True))]
        if not self._reaches(
            ("stopped", broker), lambda: events.ControlledShutdown(broker), self.held.naming(broker), values
        ):
            return False
        self._tell("stopped", broker)
        self._append(values)
        registration = replace(self.state.brokers[broker], in_controlled_shutdown=True)
        self._brokers_are(self.state.with_broker(broker, registration))
        return True

    def killed(self, broker: int) -> None:
        """The broker's process is gone; nobody has noticed yet."""
        self._tell("killed", broker)

    def _epoch(self, broker: int) -> int:
        return self.state.brokers[broker].epoch

    def _brokers_are(self, state: ControllerState) -> None:
        self.state = state
        self.active = frozenset(broker for broker in state.brokers if state.active(broker))

    # Controllers.

    def change_controller(self) -> None:
        """Another controller leads the quorum, or the only one after a restart."""
        place = self.voters.index(self.controller)
        self.controller = self.voters[(place + 1) % len(self.voters)]
        self.log.epoch += 1
        self._tell("controller", None, detail=str(self.controller))
        self.log.append_leader(self.now_ms, rec.LeaderChanged(self.controller, self.voters))

    def idle(self) -> None:
        """Nothing happened for a while (metadata.max.idle.interval.ms)."""
        self._append([NO_OP_VALUE])

    def turn_elr_on(self, rules: RuleSet) -> None:
        """eligible.leader.replicas.version is set to 1."""
        self.state = replace(self.state, rules=rules)
        self.features[ELR_FEATURE] = 1
        self._append([encode(rec.FeatureLevel(ELR_FEATURE, 1))])

    # Configs.

    def _config(self, kind: int, resource: str, key: str, value: str) -> rec.ConfigSet:
        self.configs.setdefault((kind, resource), {})[key] = value
        return rec.ConfigSet(kind, resource, key, value)

    def _settings(self, topic: Topic) -> Settings:
        own = self.configs.get((TOPIC, topic.name), {})
        least = int(own.get(MIN_ISR, self.state.cluster.min_isr or 1))
        return Settings(least, own.get(UNCLEAN) == "true", topic.first_replicas)

    # Records.

    def _reaches(
        self,
        key: Hashable,
        event: Callable[[], events.Event],
        partitions: Iterable[Partition],
        values: list[bytes],
    ) -> bool:
        """Let an event reach partitions, and add its records to those that will be appended together.

        Returns:
            False where the controller ran into an error of its own, which undoes the event.
        """
        moment = self.steps.moment(key, event, self.state, self.active)
        at = self.steps.at
        try:
            runs = [
                (partition, at(moment, partition.form, partition.topic.settings))
                for partition in partitions
                if not partition.gone
            ]
        except ControllerFailedError:
            return False
        for partition, written in runs:
            for one in written:
                self._becomes(partition, one, self.log.end + len(values))
                values.append(partition.head + one.tail)
        return True

    def _becomes(self, partition: Partition, written: Written, offset: int) -> None:
        before, after = partition.form, written.form
        lost = None if self.ends is None else self.ends.moves(partition, after, self.now_ms, unclean=written.unclean)
        if written.unclean:
            self.truth.unclean_elections.append(
                UncleanElection(
                    self.now_ms,
                    offset,
                    partition.topic.name,
                    partition.number,
                    partition.last_leader if before.leader is None else before.leader,
                    after.leader,
                    lost,
                )
            )
        partition.form = after
        partition.partition_epoch += 1
        partition.leader_epoch += written.new_epoch
        if before.leader is not None:
            partition.last_leader = before.leader
        if partition.number == 0 and before.state.replicas is not after.state.replicas:
            partition.topic.first_replicas = len(after.state.replicas)
            partition.topic.settings = self._settings(partition.topic)
        self.held.moved(partition, before)
        self.states += 1

    def _append(self, values: Sequence[bytes]) -> None:
        if values:
            self.log.append(self.now_ms, values)

    def _tell(self, what: str, broker: int | None, *, clean: bool | None = None, detail: str = "") -> None:
        self.truth.happenings.append(Happening(self.now_ms, self.log.end, what, broker, clean, detail))

    def tell_incident(self, what: str) -> None:
        """Something begins that people will remember."""
        self._tell("incident", None, detail=what)


# Topics and partitions, and what leaders and operators ask for.


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
        directories = tuple(self.directories[replica] for replica in partition.form.state.replicas)
        return rec.partition_made(self.on_record(partition), partition.topic.topic_id, directories)

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
        (`kelr.controller.state`) is not followed here.
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
