"""Random incidents on the simulated cluster: thousands in the time that one takes on real Kafka.

The script, and the engineer who reads plans, are those of `benchmarks.incidents`; cluster, logs and requests are
simulated. What is left is counted in the logs themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from benchmarks.incidents.advice import Advised, Do, next_step
from benchmarks.incidents.chaos import MIN_ISR, Chaos, ChaosStep, Deed
from benchmarks.incidents.count import Lost
from benchmarks.incidents.ledger import RECORDS_IN_A_BATCH
from kelr.controller import Configs, ControllerState, Election, events, rule_set
from kelr.engine import decide
from kelr.engine.planning import plan_of
from kelr.lab.produce import Acks as Wanted
from kelr.model import ElectionRequest, Method, Plan, PlannedElection, Snapshot, TopicPartition
from kelr.simulation import Acks, SimulatedCluster, started
from kelr.simulation.replication import caught_up

TOPIC = "incident"
MOST_TURNS = 40
_ACKS = {Wanted.ALL: Acks.ALL, Wanted.LEADER: Acks.LEADER}


@dataclass
class Incident:
    """A cluster to which a script happens, and the records that it has acknowledged."""

    chaos: Chaos
    cluster: SimulatedCluster
    acked: Mapping[int, tuple[int, Acks]] = field(default_factory=dict)
    """Record id to partition and acks."""
    clean: frozenset[int] = frozenset()
    """Brokers that are down after a clean shutdown."""

    @classmethod
    def of(cls, chaos: Chaos) -> Incident:
        """Everything of the script, and the brokers back that come back by themselves."""
        brokers = tuple(sorted([*chaos.live, *chaos.returnable, *chaos.gone]))
        controller = ControllerState(rules=rule_set("elr-4.3"), cluster=Configs(min_isr=MIN_ISR))
        cluster, _ = started(controller, brokers).after(events.TopicCreated(TOPIC, chaos.layouts))
        incident = cls(chaos, cluster)
        for step in chaos.steps:
            incident._do(step)
        for broker in chaos.live:
            incident.start(broker)
        return incident

    def copy(self) -> Incident:
        """The same again, to be recovered in another way."""
        return replace(self)

    @property
    def addresses(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, number) for number in range(len(self.chaos.layouts))]

    @property
    def leaderless(self) -> frozenset[int]:
        return frozenset(at.partition for at in self.addresses if self.cluster.serving(at) is None)

    @property
    def startable(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.chaos.returnable if not self.cluster.running(broker))

    def start(self, broker: int) -> None:
        clean = broker in self.clean
        self._after(events.BrokerRegistered(broker, clean=clean), events.BrokerUnfenced(broker))
        self.clean -= {broker}
        self.settle()

    def elect(self, election: Election, *addresses: TopicPartition) -> None:
        self._after(events.LeadersElected(election, addresses))

    def designate(self, one: PlannedElection) -> None:
        """What `kelr recover apply` asks of the controller."""
        if one.method is Method.REORDER:
            self._after(events.Reassigned(one.address, one.order))
        self.elect(Election.PREFERRED if one.method is Method.PREFERRED else Election.UNCLEAN, one.address)
        if one.method is Method.REORDER:
            self._after(events.Reassigned(one.address, one.restores))
        leader = self.cluster.controller.partitions[one.address].leader
        assert leader == one.elect, f"{one.address}: {leader} leads, and {one.elect} was planned"

    def settle(self) -> None:
        """Live followers fetch all there is, and join the ISR."""
        for at in self.addresses:
            if self.cluster.serving(at) is None:
                continue
            self.cluster = self.cluster.replicate(at)
            state, logs = self.cluster.controller.partitions[at], self.cluster.replication[at]
            live = [replica for replica in state.replicas if self.cluster.running(replica)]
            members = tuple(replica for replica in live if replica in state.isr or caught_up(logs, replica))
            if set(members) != set(state.isr):
                self.cluster, _ = self.cluster.propose(at, members).deliver(at)
            self.cluster = self.cluster.replicate(at)

    def snapshot(self) -> Snapshot:
        """What kelr reads: live brokers, and the disks of those that are down and have one that can be read."""
        cluster = self.cluster
        gone = [broker for broker, readable in self.chaos.gone.items() if readable]
        for broker in (*self.startable, *gone):
            for at in self.addresses:
                log = cluster.replication[at].logs.get(broker)
                if log is not None and cluster.replication[at].written:
                    cluster = cluster.tell(at, replace(log.answer(broker), source="log directory"))
        return cluster.as_snapshot()

    def lost(self) -> Mapping[int, Lost]:
        """What was acknowledged and is not in its leader's log."""
        return dict(self._counted(leader_only=True))

    def unreachable(self) -> Mapping[int, Lost]:
        """What was acknowledged and is on no live or readable disk."""
        return dict(self._counted(leader_only=False))

    def _counted(self, *, leader_only: bool) -> Iterator[tuple[int, Lost]]:
        gone = {broker for broker, readable in self.chaos.gone.items() if not readable}
        for at in self.addresses:
            leader, logs = self.cluster.serving(at), self.cluster.replication[at].logs
            read = {leader} if leader_only else set(logs) - gone
            there = {record for replica in read if replica is not None for record in logs[replica].ids}
            mine = {record: acks for record, (number, acks) in self.acked.items() if number == at.partition}
            missing = [acks for record, acks in mine.items() if record not in there]
            yield at.partition, Lost(missing.count(Acks.ALL), missing.count(Acks.LEADER))

    def _after(self, *happenings: events.Event) -> None:
        for event in happenings:
            self.cluster, _ = self.cluster.after(event)

    def _do(self, step: ChaosStep) -> None:
        if step.deed is Deed.PRODUCE:
            self._produce(step)
        elif step.deed is Deed.KILL:
            self._crash(*step.brokers)
        elif step.deed is Deed.STOP:
            (broker,) = step.brokers
            self._after(events.ControlledShutdown(broker), events.ControlledShutdown(broker))
            self.cluster = self.cluster.shut_down(broker)
            self._after(events.BrokerFenced(broker))
            self.clean |= {broker}
        elif step.deed is Deed.START:
            self.start(*step.brokers)
        elif step.deed is Deed.CUT:
            self._cut(step)
        elif step.deed is Deed.FAIL_TO_START:
            (broker,) = step.brokers
            self._after(events.BrokerRegistered(broker, clean=broker in self.clean))
            self._crash(broker)
        else:
            slow, victim = step.brokers
            self._produce(step, without=slow)
            self._crash(victim)
            self.settle()

    def _produce(self, step: ChaosStep, *, without: int | None = None) -> None:
        assert step.acks is not None
        acks = _ACKS[step.acks]
        for number in step.partitions:
            at = TopicPartition(TOPIC, number)
            state, leader = self.cluster.controller.partitions[at], self.cluster.serving(at)
            if leader in {None, without} or (acks is Acks.ALL and len(state.isr) < MIN_ISR):
                continue
            first = self.cluster.next_record
            self.cluster, produced = self.cluster.produce(at, step.batches * RECORDS_IN_A_BATCH, acks)
            followers = tuple(replica for replica in state.replicas if replica not in {leader, without})
            self.cluster = self.cluster.replicate(at, followers)
            if produced.error == "NONE":
                new = dict.fromkeys(range(first, self.cluster.next_record), (number, acks))
                self.acked = {**self.acked, **new}

    def _crash(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster = self.cluster.stopped(broker)
        for broker in brokers:
            self._after(events.BrokerFenced(broker))
        self.clean -= set(brokers)

    def _cut(self, step: ChaosStep) -> None:
        (broker,) = step.brokers
        for number in step.partitions:
            at = TopicPartition(TOPIC, number)
            log = self.cluster.replication[at].logs.get(broker)
            if log is not None and log.end:
                end = max(0, log.end - step.batches * RECORDS_IN_A_BATCH)
                self.cluster = self.cluster.cut(at, broker, end)


def by_stock_tools(incident: Incident) -> None:
    """As `benchmarks.incidents.policies.by_stock_tools`."""
    for broker in incident.startable:
        incident.start(broker)
    incident.elect(Election.UNCLEAN, *incident.addresses)
    incident.settle()


def by_plans(incident: Incident) -> None:
    """As `benchmarks.incidents.engineer.Engineer`."""
    for _ in range(MOST_TURNS):
        plan = _plan(incident)
        if not plan.elections:
            step = next_step(_advised(plan, incident), incident.startable)
            if step.do is Do.FINISH:
                break
            assert step.broker is not None, f"nobody to start, nothing to elect: {plan.not_planned}"
            incident.start(step.broker)
            continue
        for one in plan.elections:
            incident.designate(one)
        incident.settle()
    else:
        raise AssertionError(f"no end after {MOST_TURNS} plans; leaderless: {incident.leaderless}")
    for broker in incident.startable:
        incident.start(broker)


def _plan(incident: Incident) -> Plan:
    snapshot, wish = incident.snapshot(), ElectionRequest(gone=frozenset(incident.chaos.gone))
    decisions = [decide(snapshot, state) for state in snapshot.partitions]
    return plan_of(snapshot, decisions, lambda _at: wish, now_ms=0, lifetime_ms=60_000, made_by="kelr/test")


def _advised(plan: Plan, incident: Incident) -> list[Advised]:
    leaderless = incident.leaderless
    return [
        Advised(
            one.partition,
            one.partition in leaderless,
            None if one.action is None else one.action.value,
            one.brokers,
            one.reason,
            one.keep_down,
        )
        for one in plan.not_planned
    ]
