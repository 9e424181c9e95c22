"""The simulated cluster, and all that can go wrong between it and a kelr.

The cluster is `kelr.simulation`'s. In front of it brokers tell what they know, each some seconds late, and pass on what
is asked: it is refused, lost, done without an answer, late up to 70 s, done twice, answered with an error, for all
partitions or for one. For a while they do not describe a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from kelr.controller import Election, Stepped, events
from kelr.errors import ConnectError
from kelr.model import ElectionType, LogAnswer, PartitionState, Snapshot, TopicConfig, TopicPartition
from kelr.recovery.admin_client import NO_ANSWER, UNKNOWN_TOPIC, is_refusal
from kelr.recovery.apply_context import Timeouts
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.logs import Acks
from kelr.simulation.replication import caught_up
from kelr.sources.base import Progress
from kelr.sources.memory import MemorySource
from tests.histories.chance import Chance
from tests.histories.machines import Process, Time
from tests.recovery.simulated import CLUSTER_ID, SnapshotSource, without_hidden

BROKERS = (1, 2, 3)
QUICK_S = 0.005
"""How long a request takes where nothing goes wrong."""
LATEST_S = 70.0
"""So long after it was sent a request may still take effect: 60 s at a broker, and 10 s at the controller."""
ERRORS = (
    "NOT_CONTROLLER",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "UNKNOWN_SERVER_ERROR",
    "INVALID_REQUEST",
    "CLUSTER_AUTHORIZATION_FAILED",
    "THROTTLING_QUOTA_EXCEEDED",
    "BROKER_NOT_AVAILABLE",
    "POLICY_VIOLATION",
)
HIDDEN = ("TOPIC_AUTHORIZATION_FAILED", "INCONSISTENT_ISR", "UNKNOWN_SERVER_ERROR")
"""Why a topic is not described: DESCRIBE was revoked, or the broker does not know yet (`kelr.sources.live.decode`)."""
FAULTS = ("refused", "lost", "unanswered", "late", "garbled", "twice", "error", "error done", "one")


@dataclass(eq=False)
class Standing:
    """The cluster as it is after what has happened: all histories in which the same happens share one."""

    cluster: SimulatedCluster
    _next: dict[events.Event | int, tuple[Standing, Stepped | None]] = field(default_factory=dict)
    """By what happens: the controller handles an event, or a broker stops."""

    @cached_property
    def snapshot(self) -> Snapshot:
        found = self.cluster.as_snapshot()
        return replace(found, cluster=replace(found.cluster, cluster_id=CLUSTER_ID), source="live")

    def after(self, event: events.Event) -> tuple[Standing, Stepped]:
        """What becomes of it when the controller handles this."""
        standing, done = self._then(event, lambda: self.cluster.after(event))
        assert done is not None
        return standing, done

    def stopped(self, broker: int) -> Standing:
        """What becomes of it when this broker's process ends."""
        return self._then(broker, lambda: (self.cluster.stopped(broker), None))[0]

    def become(self, cluster: SimulatedCluster) -> Standing:
        """The same where it is the same."""
        return self if cluster is self.cluster else Standing(cluster)

    def _then(
        self, what: events.Event | int, happens: Callable[[], tuple[SimulatedCluster, Stepped | None]]
    ) -> tuple[Standing, Stepped | None]:
        if what not in self._next:
            cluster, done = happens()
            self._next[what] = self.become(cluster), done
        return self._next[what]


@dataclass(frozen=True)
class Version:
    """The cluster from one moment on."""

    since_s: float
    standing: Standing

    @property
    def cluster(self) -> SimulatedCluster:
        return self.standing.cluster

    @property
    def snapshot(self) -> Snapshot:
        return self.standing.snapshot


@dataclass(frozen=True)
class Effect:
    """A request that changed something."""

    at_s: float
    by: str
    """Whose: the journal of a kelr; empty for everybody else."""
    kind: str
    address: TopicPartition
    before: PartitionState | None
    after: PartitionState | None
    process: Process | None = None
    """Whose request it was; None: nobody's kelr."""


@dataclass(eq=False)
class Cluster:
    """The cluster, all that it was, and what is on its way to it."""

    time: Time
    chance: Chance
    beginning: Standing
    patience: Timeouts
    versions: list[Version] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    lag_s: dict[int, float] = field(default_factory=dict)
    """By broker: how much later than the controller it knows."""
    no_controller_until_s: float = 0.0
    well: bool = False
    """Nothing goes wrong any more."""
    led: set[tuple[TopicPartition, int | None, int]] = field(default_factory=set)
    """Every leader that ever was, with its epoch."""

    def __post_init__(self) -> None:
        self.versions.append(Version(0.0, self.beginning))
        self.strength = self.chance.strength("faults")
        """How often requests go wrong."""
        self.hiding = self.chance.strength("hidden topics")
        """How often a broker does not describe a topic for a while."""
        self.impatience = self.chance.stream("impatience").choice((0.0, 1.0))
        """How often somebody ends a kelr that gets no answer."""
        self._note_leaders()

    @property
    def standing(self) -> Standing:
        return self.versions[-1].standing

    @property
    def now(self) -> SimulatedCluster:
        return self.standing.cluster

    def state(self, address: TopicPartition) -> PartitionState | None:
        return self.now.controller.partitions.get(address)

    def shown_by(self, broker: int) -> Version:
        """The newest version that the broker knows of."""
        until_s = self.time.now_s - (0 if self.well else self.lag_s.get(broker, 0.0))
        return next((one for one in reversed(self.versions) if one.since_s <= until_s), self.versions[0])

    def set(self, cluster: SimulatedCluster) -> None:
        """The cluster is so from now on."""
        self._become(self.standing.become(cluster))

    def stop(self, broker: int) -> None:
        """The broker's process ends."""
        self._become(self.standing.stopped(broker))

    def fence(self, broker: int) -> None:
        """The controller has not heard of the broker for too long."""
        if broker not in self.now.down:
            self.time.note("controller", f"fences {broker}")
        self.after(events.BrokerFenced(broker))

    def after(self, event: events.Event) -> str:
        """The controller handles an event; Kafka's name of the error."""
        standing, done = self.standing.after(event)
        self._become(standing)
        return done.error

    def ask(self, event: events.Event, address: TopicPartition, *, kind: str, process: Process | None = None) -> str:
        """The controller carries out what was asked for one partition; Kafka's name of the error."""
        before, by = self.state(address), "" if process is None else process.by
        standing, done = self.standing.after(event)
        self._become(standing)
        after = self.state(address)
        if before != after or kind == "config":
            self.effects.append(Effect(self.time.now_s, by, kind, address, before, after, process))
        error = done.answers.get(address, done.error)
        self.time.note(by or "somebody else", f"{kind} {address}: {error}, {_short(before)} -> {_short(after)}")
        return error

    def sent(self, kind: str, fault: str) -> None:
        """Take note of a request, and of how it goes wrong."""
        if fault:
            self.time.reached[f"{kind} goes wrong: {fault}"] += 1

    def landed(self, process: Process, kind: str) -> None:
        """Take note of a request that takes effect late."""
        when = "after a kill" if process.killed else "after the end" if process.dead else "while it is waited for"
        self.time.reached[f"a late {kind} lands {when}"] += 1
        if any(one.step == "restore" for one in process.host.processes):
            self.time.reached[f"a late {kind} lands during a restore"] += 1

    def draw_fault(self, random: Random) -> str | None:
        """How one request goes wrong."""
        if random.random() >= 0.4 * self.strength:
            return None
        kind = random.choice((*FAULTS, "late", "late"))
        if kind in {"late", "twice"}:
            return f"{kind} {random.choice((3, 11, 20, 40, 60, LATEST_S))}"
        if kind in {"error", "one"}:
            return f"{kind} {random.choice(ERRORS)}"
        if kind == "error done":
            return f"{kind} {random.choice([one for one in ERRORS if not is_refusal(one)])}"
        return kind

    def draw_hidden(self, random: Random) -> list[Any] | None:
        """Which topic cannot be described, why, and for how many seconds."""
        if random.random() >= 0.1 * self.hiding:
            return None
        topics = sorted({at.topic for at in self.now.controller.partitions})
        return [random.choice(topics), random.choice(HIDDEN), random.choice((1, 10, 60))] if topics else None

    def followers_catch_up(self, writes: int = 0) -> None:
        """Clients write so many records to each partition, as far as its leader takes them; followers fetch, and
        leaders take those that have caught up into the ISR."""
        cluster = self.now
        for at in sorted(cluster.controller.partitions):
            if writes:
                cluster, _ = cluster.produce(at, writes, Acks.ALL)
            cluster = cluster.replicate(at)
        grown = {
            at: tuple(sorted((*state.isr, *joining)))
            for at, state in sorted(cluster.controller.partitions.items())
            if cluster.serving(at) is not None
            and (joining := [one for one in state.replicas if one not in state.isr and _may_join(cluster, at, one)])
        }
        if grown:
            cluster, _ = cluster.altered(grown)
            for at in grown:
                cluster = cluster.replicate(at)
        self.set(cluster)

    def draw_impatience(self, random: Random) -> list[Any] | None:
        """How, and after how many seconds, somebody ends a kelr that waits for an answer."""
        if random.random() >= self.impatience:
            return None
        return [random.choice(("kill", "kill", "kill", "Ctrl-C")), random.choice((0.5, 3))]

    def _become(self, standing: Standing) -> None:
        if standing is not self.standing:
            self.versions.append(Version(self.time.now_s, standing))
            self._note_leaders()

    def _note_leaders(self) -> None:
        for at, state in self.now.controller.partitions.items():
            self.led.add((at, state.leader, state.leader_epoch))


class Connection:
    """A kelr's connection: it asks one broker as long as that lives, then the next."""

    def __init__(
        self, cluster: Cluster, process: Process, asked: Callable[[str, Process, Sequence[TopicPartition]], None]
    ):
        self.cluster, self.process = cluster, process
        self.asked = asked
        """Told of each request right before it is sent."""
        stream = cluster.chance.stream(f"{process.who.user}'s broker")
        self._order = stream.sample(BROKERS, len(BROKERS))
        self._hidden: dict[str, str] = {}
        self._hidden_until_s = 0.0

    def broker(self) -> int:
        """Whom it asks. Raises ConnectError."""
        for broker in self._order:
            if broker not in self.cluster.now.down:
                return broker
        raise ConnectError("no broker answers")

    def read(self) -> Version:
        """What the broker tells."""
        self.process.seam("read")
        broker = self.broker()
        self.process.elapse(QUICK_S)
        return self.cluster.shown_by(broker)

    def hidden(self) -> Mapping[str, str]:
        """Topics that are not described now, with Kafka's name of the error."""
        time = self.cluster.time
        if self.cluster.well or time.now_s >= self._hidden_until_s:
            self._hidden = {}
        if not self._hidden and not self.cluster.well:
            source = f"{self.process.who.user}'s descriptions"
            found = self.cluster.chance.choose(source, self.cluster.draw_hidden)
            if found is not None:
                topic, error, seconds = found
                time.note(self.process.name, f"{topic} is not described for {seconds} s: {error}")
                time.reached[f"a topic is not described: {error}"] += 1
                self._hidden, self._hidden_until_s = {topic: error}, time.now_s + seconds
        return self._hidden

    def change(
        self,
        kind: str,
        addresses: Sequence[TopicPartition],
        event: Callable[[TopicPartition], events.Event],
    ) -> dict[TopicPartition, str]:
        """Send one request, and wait for its answer."""
        cluster, process, time = self.cluster, self.process, self.cluster.time
        self.broker()
        process.seam(f"before {kind}")
        user = process.who.user
        fault = None if cluster.well else cluster.chance.choose(f"{user}'s {kind} requests", cluster.draw_fault)
        if fault is not None:
            time.note(process.name, f"{kind} goes wrong: {fault}")
            word, _, detail = fault.partition(" ")
            cluster.sent(kind, "error done" if detail.startswith("done") else word)
        if fault == "refused":
            raise ConnectError("connection refused")
        self.asked(kind, process, addresses)
        answers: dict[TopicPartition, str] = {}
        word, _, detail = (fault or "").partition(" ")

        def done(only: Sequence[TopicPartition] = addresses) -> None:
            answers.update({at: cluster.ask(event(at), at, kind=kind, process=process) for at in only})

        held_s = max(0.0, cluster.no_controller_until_s - time.now_s)
        wait_s, answered = held_s + QUICK_S, True
        if word == "lost" or held_s > 60:
            wait_s = cluster.patience.answered_s
            answered = False
        elif word == "error" and not detail.startswith("done"):
            answers.update(dict.fromkeys(addresses, detail))
        elif word == "one":
            time.at(time.now_s + wait_s, lambda: done(addresses[1:]))
            answers[addresses[0]] = detail
        else:
            late_s = float(detail) if word in {"late", "twice"} else 0.0

            def lands() -> None:
                if max(late_s, held_s) > 1:
                    cluster.landed(process, kind)
                done()

            time.at(time.now_s + min(max(late_s, held_s), LATEST_S), lands)
            if word == "twice":
                time.at(time.now_s + held_s, done)
            answered = word not in {"unanswered", "garbled"} and max(held_s, late_s) < cluster.patience.answered_s
            wait_s = max(held_s, late_s) + QUICK_S
            if not answered and word != "garbled":
                wait_s = cluster.patience.answered_s
        if not answered and word != "garbled":
            self._wait_impatiently(kind, wait_s)
        else:
            process.elapse(min(wait_s, cluster.patience.answered_s))
        process.seam(f"after {kind}")
        if word == "error" and detail.startswith("done"):
            return dict.fromkeys(addresses, detail.removeprefix("done "))
        return {at: answers.get(at, NO_ANSWER) if answered else NO_ANSWER for at in addresses}

    def _wait_impatiently(self, kind: str, seconds: float) -> None:
        """No answer comes: who looks on may have enough of that."""
        cluster, process = self.cluster, self.process
        source = f"{process.who.user}'s impatience"
        struck = None if cluster.well else cluster.chance.choose(source, cluster.draw_impatience)
        if struck is None:
            process.elapse(seconds)
            return
        kind_of_end, after_s = struck
        process.elapse(after_s)
        process.give_up(kind_of_end, kind)


class HistorySource(SnapshotSource):
    """What a broker tells of the cluster: some seconds late, but for the logs, which their own brokers tell."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        known = self._snapshot().configs
        return {topic: known.get(topic) or TopicConfig(error=UNKNOWN_TOPIC) for topic in topics}

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        self._connection.read()
        newest = self._connection.cluster.versions[-1].snapshot
        return MemorySource(newest).replica_logs(partitions, lineage=lineage, progress=progress)

    def _snapshot(self) -> Snapshot:
        return without_hidden(self._connection.read().snapshot, self._connection.hidden())


class HistoryAdminClient:
    """Requests that change the cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        return self._connection.change("reorder", sorted(orders), lambda at: events.Reassigned(at, orders[at]))

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        return self._connection.change("elect", partitions, lambda at: events.LeadersElected(election, (at,)))

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        raise AssertionError(f"no released cluster is told whom to elect: {leaders}")

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        raise AssertionError(f"no released cluster is asked for {kind}: {partitions}")

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        assert name == "min.insync.replicas"
        event = config_event(topic, value)
        at = TopicPartition(topic, -1)
        return self._connection.change("config", (at,), lambda _at: event)[at]


def config_event(topic: str, value: str | None) -> events.Event:
    """A topic's own min.insync.replicas is written, or with None removed."""
    if value is None:
        return events.ConfigDeleted(topic, min_isr=True)
    return events.ConfigWritten(topic, min_isr=int(value))


def _may_join(cluster: SimulatedCluster, at: TopicPartition, follower: int) -> bool:
    return caught_up(cluster.replication[at], follower) and cluster.not_let_in(at, follower) is None


def _short(state: PartitionState | None) -> str:
    return "gone" if state is None else f"{state.leader}/{state.leader_epoch} {list(state.replicas)}"
