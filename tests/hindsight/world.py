"""A simulated cluster in time with what only somebody outside of it can know: what was promised, and what disks hold.

A `World` forks: the same moment goes on once for each thing that could be done next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kelr.controller import Configs, ControllerState, RecoveryEvent, RuleSet, Stepped, events
from kelr.model import PartitionState, TopicPartition
from kelr.simulation import Acks, Record, Replication, SimulatedLog, started
from kelr.simulation.logs import truncated
from kelr.simulation.running import RunningCluster, Timing
from tests.hindsight.clients import TIMEOUT_MS, Group, Transaction, read_on
from tests.simulation.running_lives import CONTROLLER, answer_all

SESSION_MS = 3_000
KNOW_CORDONS = frozenset({"elr-4.3", "kraft"})
"""The rules of Kafka 4.4, with ELR and without."""
QUIET_MS = 8_000
"""After so long sessions have expired, ISRs have shrunk, and brokers that were started are unfenced."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as an incident begins with it."""

    name: str
    assignment: tuple[tuple[int, ...], ...]
    min_isr: int
    unclean: bool = False
    compacted: bool = False
    created_as: int = 0
    """The partition, by its place, whose replica count all have at first: Kafka creates none with different ones."""

    def at_first(self) -> tuple[tuple[int, ...], ...]:
        """The assignment that it is created with: reassignments add replicas, and remove them, after that."""
        like = self.assignment[self.created_as]
        return tuple(tuple(dict.fromkeys((*replicas, *like)))[: len(like)] for replicas in self.assignment)


@dataclass(frozen=True, slots=True)
class Setup:
    """The cluster that an incident happens to."""

    rules: RuleSet
    brokers: tuple[int, ...]
    topics: tuple[Topic, ...]

    @property
    def addresses(self) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(topic.name, number) for topic in self.topics for number in range(len(topic.assignment))
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What lies beside a replica's log on the disk of a broker that is down."""

    high_watermark: int | None
    newest_epoch: int | None


@dataclass(frozen=True, slots=True)
class DiskReading:
    """What somebody read of a broker's disk, and when."""

    broker: int
    read_at_ms: int
    logs: Mapping[TopicPartition, SimulatedLog]
    checkpoints: Mapping[TopicPartition, Checkpoint]
    clean: bool
    """Whether the mark of a clean shutdown is there."""
    broker_epoch: int | None
    """The broker epoch in it."""


@dataclass
class World:
    """The cluster and the truth about it. Mutable; `fork` before trying something."""

    setup: Setup
    running: RunningCluster
    given_up: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    """What was promised and the log of the last leader lacked when it was elected: lost, before anybody asks kelr."""
    led: dict[tuple[int, TopicPartition], int] = field(default_factory=dict)
    """The newest leader epoch in which a broker led."""
    checkpoints: dict[tuple[int, TopicPartition], Checkpoint] = field(default_factory=dict)
    readings: dict[int, DiskReading] = field(default_factory=dict)
    """What was read of disks while the incident was still going on."""
    offsets: dict[int, int] = field(default_factory=dict)
    """The offset that each record got when it was produced, by its id."""
    torn: dict[TopicPartition, frozenset[int]] = field(default_factory=dict)
    """Replicas whose log lost something on its disk."""
    promised_with: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)
    """Of promised records the min ISR when they were (`note_promises`)."""
    marks: dict[int, int | None] = field(default_factory=dict)
    """Broker epochs in marks of a clean shutdown that are not the broker's own."""
    left_ms: dict[int, int] = field(default_factory=dict)
    """When a broker's process ended last."""
    transactions: dict[int, Transaction] = field(default_factory=dict)
    """By producer."""
    groups: dict[tuple[str, TopicPartition], Group] = field(default_factory=dict)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        return self.running.cluster.controller.partitions

    def logs(self, address: TopicPartition) -> Replication:
        return self.running.cluster.replication[address]

    @property
    def down(self) -> frozenset[int]:
        """Brokers whose process does not run."""
        return frozenset(broker for broker in self.setup.brokers if not self.running.runs(broker))

    @property
    def absent(self) -> frozenset[int]:
        """Brokers that the controller does not count in, whether their process runs or not."""
        controller = self.running.cluster.controller
        return frozenset(broker for broker in self.setup.brokers if not controller.active(broker)) | self.down

    def refuses(self, state: PartitionState) -> bool:
        """Whether producers with acks=all are refused of a partition in this state, if it is led: by its own replica
        count (Partition.effectiveMinIsr)."""
        return len(state.isr) < min(
            self.running.cluster.controller.config(state.topic).min_isr or 1, len(state.replicas)
        )

    def crashed(self, broker: int) -> bool:
        """Whether the broker's next registration counts as unclean, for want of a mark on its disk or of the epoch."""
        return broker in self.running.cluster.crashed

    def promised(self, address: TopicPartition) -> frozenset[int]:
        """Records that were acknowledged to a producer with acks=all, or below a leader's high watermark."""
        ledger = self.logs(address).ledger
        return (ledger.committed | ledger.visible) - ledger.deleted

    def note_promises(self) -> None:
        """Somebody is about to do something: what was promised so far, was with the min ISR of now."""
        controller = self.running.cluster.controller
        for address, state in self.partitions.items():
            ledger, known = self.logs(address).ledger, self.promised_with.get(address, {})
            min_isr = min(controller.config(address.topic).min_isr or 1, len(state.replicas))
            self.promised_with[address] = {**dict.fromkeys(ledger.committed | ledger.visible, min_isr), **known}

    def fork(self) -> World:
        """This moment once more; nothing that happens in one of the two is seen in the other."""
        return _watched(
            replace(
                self,
                running=_forked(self.running),
                given_up=dict(self.given_up),
                led=dict(self.led),
                checkpoints=dict(self.checkpoints),
                readings=dict(self.readings),
                offsets=dict(self.offsets),
                torn=dict(self.torn),
                promised_with=dict(self.promised_with),
                marks=dict(self.marks),
                left_ms=dict(self.left_ms),
                transactions=dict(self.transactions),
                groups=dict(self.groups),
            )
        )

    # Time.

    def wait(self, duration_ms: int = QUIET_MS) -> None:
        """Time passes; the Unclean Recovery Manager's questions are answered by brokers in reach."""
        until = self.running.now_ms + duration_ms
        self._coordinate()
        while True:
            self._answer()
            due = self.running.next_due_ms
            if due is None or due > until:
                break
            self.running.advance(due)
        self.running.advance(until)
        self._answer()
        self._coordinate()

    def _answer(self) -> None:
        answer_all(self.running)

    # What happens to records, brokers and disks.

    def produce(self, address: TopicPartition, count: int, acks: Acks) -> None:
        self.took(address, self.running.produce(address, count, acks).records)

    def took(self, address: TopicPartition, records: tuple[Record, ...]) -> None:
        """The leader's log ends with these records now."""
        leadership = self.logs(address).leadership
        if records and leadership is not None:
            log = self.logs(address).logs[leadership.leader]
            places = {record.id: log.start + at for at, record in enumerate(log.records)}
            self.offsets.update((record.id, places[record.id]) for record in records if record.id in places)

    def transactions_of(self, address: TopicPartition) -> tuple[Transaction, ...]:
        return tuple(one for _, one in sorted(self.transactions.items()) if one.address == address)

    def transact(self, address: TopicPartition, count: int) -> int | None:
        """A producer writes records in a transaction, and leaves it open; its id, unless they were refused."""
        produced = self.running.produce(address, count, Acks.ALL)
        self.took(address, produced.records)
        if not produced.records:
            return None
        producer = produced.records[0].id
        records = frozenset(record.id for record in produced.records)
        self.transactions[producer] = Transaction(producer, address, self.running.now_ms, records)
        return producer

    def decide(self, producer: int) -> None:
        """The producer commits or aborts its transaction: the coordinator ends it as soon as it can."""
        self.transactions[producer] = replace(self.transactions[producer], ending=True)
        self._coordinate()

    def _coordinate(self) -> None:
        """What transaction coordinators do by themselves."""
        for producer, one in sorted(self.transactions.items()):
            if one.done:
                continue
            ending = one.ending or self.running.now_ms - one.began_ms >= TIMEOUT_MS
            leader = self.running.cluster.serving(one.address)
            markers = one.markers
            if ending and leader is not None and not markers & self.logs(one.address).logs[leader].ids:
                produced = self.running.produce(one.address, 1, Acks.ALL)
                self.took(one.address, produced.records)
                markers |= {record.id for record in produced.records}
            done = bool(markers & self.logs(one.address).ledger.committed)
            self.transactions[producer] = replace(one, ending=ending, markers=markers, done=done)

    def consume(self, group: str, address: TopicPartition) -> None:
        """A consumer group reads what it can of a partition."""
        leader = self.running.cluster.serving(address)
        if leader is not None:
            at = group, address
            self.groups[at] = read_on(self.groups.get(at, Group()), self.logs(address).logs[leader])

    def kill(self, broker: int, *, behind: int = 0) -> None:
        """The process dies. `behind`: so many offsets its saved high watermarks lag behind."""
        if not self.running.runs(broker):
            return
        self.running.kill(broker)
        self._left(broker, behind)

    def stop(self, broker: int) -> None:
        if self.running.runs(broker):
            self.running.stop(broker)
            self._left(broker, 0)

    def start(self, broker: int) -> None:
        """Whatever keeps the broker away ends: it stands still no more, links are whole, its process starts."""
        if broker in self.running.paused:
            self.running.go_on(broker)
        for link in sorted(self.running.severed, key=sorted):
            if broker in link:
                self.running.heal(*sorted(link))
        if not self.running.runs(broker):
            self.running.start(broker)

    @property
    def knows_cordons(self) -> bool:
        """Whether the software is Kafka 4.4's, which takes no order that names a cordoned broker."""
        return self.setup.rules.name in KNOW_CORDONS

    def cordon(self, broker: int) -> None:
        """All its log directories are cordoned."""
        if self.knows_cordons:
            self.running.cordon(broker, cordoned=True)

    @contextmanager
    def uncordoned(self, brokers: Iterable[int]) -> Iterator[None]:
        """Of these, those whose cordon can be taken off are without one meanwhile."""
        running = self.running
        taken_off = [one for one in brokers if one in running.cordoned and running.cluster.controller.active(one)]
        for broker in taken_off:
            running.cordon(broker, cordoned=False)
        yield
        for broker in taken_off:
            running.cordon(broker, cordoned=True)

    def change_log(self, broker: int, address: TopicPartition, log: SimulatedLog) -> None:
        """Something happened to the disk of a broker that is down: what was read of it before is worth nothing, and
        nothing tells so, so that nobody uses it."""
        self.readings.pop(broker, None)
        self._put_log(broker, address, log)

    def _put_log(self, broker: int, address: TopicPartition, log: SimulatedLog) -> None:
        cluster = self.running.cluster
        if cluster.replication[address].logs[broker].ids - log.ids:
            self.torn[address] = self.torn.get(address, frozenset()) | {broker}
        after = cluster.replication[address].with_log(broker, log)
        self.running.cluster = cluster.with_replications({address: after})

    def cut(self, broker: int, address: TopicPartition, end: int) -> None:
        """The log loses its tail; what lies beside it stays as it was saved."""
        log = self.logs(address).logs[broker]
        self.change_log(broker, address, truncated(log, max(end, log.start)))

    def read_disk(self, broker: int) -> DiskReading | None:
        """What a reading of the disk finds now; None where the broker runs."""
        if self.running.runs(broker):
            return None
        registration = self.running.cluster.controller.brokers.get(broker)
        marked = broker in self.marks or not self.crashed(broker)
        own = None if registration is None else registration.epoch
        addresses = [at for at, state in self.partitions.items() if broker in self.logs(at).logs]
        return DiskReading(
            broker,
            self.running.now_ms,
            {at: self.logs(at).logs[broker] for at in addresses},
            {at: self.checkpoints.get((broker, at), Checkpoint(None, None)) for at in addresses},
            marked,
            self.marks.get(broker, own) if marked else None,
        )

    def change_mark(self, broker: int, broker_epoch: int | None) -> None:
        """The mark of a clean shutdown of a broker that is down is another one's: of a copy of its disk."""
        registration = self.running.cluster.controller.brokers.get(broker)
        own = None if registration is None else registration.epoch
        if broker not in self.down or self.crashed(broker) or own in {None, broker_epoch}:
            return
        self.marks[broker] = broker_epoch
        cluster = self.running.cluster
        self.running.cluster = replace(cluster, crashed=cluster.crashed | {broker})

    def _left(self, broker: int, behind: int) -> None:
        """The broker's process has ended: what its checkpoints hold, and what it will know of high watermarks."""
        self.marks.pop(broker, None)
        self.left_ms[broker] = self.running.now_ms
        for address in self.partitions:
            log = self.logs(address).logs.get(broker)
            if log is None:
                continue
            saved = max(log.start, log.high_watermark - behind)
            newest = max((e for e in (self.led.get((broker, address)), log.last_epoch) if e is not None), default=None)
            self.checkpoints[broker, address] = Checkpoint(saved, newest)
            if saved != log.high_watermark:
                self._put_log(broker, address, replace(log, high_watermark=saved))


def created(setup: Setup) -> World:
    """A healthy cluster with empty topics."""
    state = ControllerState(setup.rules, cluster=Configs(min_isr=1))
    running = RunningCluster(
        started(state, setup.brokers), controller=CONTROLLER, timing=Timing(SESSION_MS, SESSION_MS, flush_ms=None)
    )
    for topic in setup.topics:
        running.ask(events.TopicCreated(topic.name, topic.at_first()))
        running.ask(events.ConfigWritten(topic.name, topic.min_isr, topic.unclean or None))
    world = World(setup, running)
    for address, partition in running.cluster.controller.partitions.items():
        if partition.leader is not None:
            world.led[partition.leader, address] = partition.leader_epoch
    _watched(world)
    for topic in setup.topics:
        for number, (made, wanted) in enumerate(zip(topic.at_first(), topic.assignment, strict=True)):
            if made != wanted:
                running.ask(events.Reassigned(TopicPartition(topic.name, number), wanted))
                world.wait()
    return world


def _watched(world: World) -> World:
    def watch(event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        if isinstance(event, events.DirectoryFailed):
            for address in filter(event.holds, world.partitions):
                world.torn[address] = world.torn.get(address, frozenset()) | {event.broker}
        for change in done.changes:
            _learn(world, change.before, change.after)

    world.running.watchers = [watch]
    return world


def _learn(world: World, before: PartitionState, after: PartitionState) -> None:
    leader, address = after.leader, after.address
    if leader is None or (leader, after.leader_epoch) == (before.leader, before.leader_epoch):
        return
    if world.running.runs(leader) and leader not in world.running.out_of_touch:
        world.led[leader, address] = after.leader_epoch
    log = world.logs(address).logs.get(leader)
    if leader != before.leader and log is not None:
        world.given_up[address] = world.promised(address) - log.ids


def _forked(running: RunningCluster) -> RunningCluster:
    """The same cluster once more. Its values are frozen but for these containers and the recovery manager's times."""
    fork = copy.copy(running)
    for name, value in vars(running).items():
        if isinstance(value, dict | set | list):
            setattr(fork, name, copy.copy(value))
    fork._behind = {address: (leader, dict(since)) for address, (leader, since) in running._behind.items()}
    fork._recoveries = copy.copy(running._recoveries)
    fork._awaited = []
    return fork


def everyone_back(world: World, brokers: Iterable[int] | None = None) -> None:
    """All brokers, or these, come back, and everybody replicates."""
    for broker in world.setup.brokers if brokers is None else brokers:
        world.start(broker)
    world.wait()
    world.wait()
