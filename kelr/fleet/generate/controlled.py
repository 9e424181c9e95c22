"""What happens to the brokers and controllers of a cluster on paper, and how an event's records are written.

All that happens goes through `kelr.controller` (see `steps`); here is what surrounds it: which partitions an event
reaches, the order of records, and the epochs.

Source: ReplicationControlManager, ClusterControlManager and QuorumController of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from kelr.controller import Configs, ControllerState, Registration, RuleSet, events, handle
from kelr.controller.reach import ControllerFailedError
from kelr.fleet.generate.ends import LogEnds
from kelr.fleet.generate.layout import cluster_min_isr, racks_of, voters_of
from kelr.fleet.generate.log import MetadataLog
from kelr.fleet.generate.partitions import Held, Partition, Topic
from kelr.fleet.generate.plan import ClusterPlan, made_id
from kelr.fleet.generate.steps import Settings, Steps, Written
from kelr.fleet.generate.truth import Happening, Truth, UncleanElection
from kelr.model import ELR_FEATURE, METADATA_FEATURE
from kelr.replay import records as rec
from kelr.replay.image import BROKER, TOPIC
from kelr.sources.metadata_log.writing import NO_OP_VALUE, encode

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


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
