"""Random lives of one partition with logs: producers, fetches, crashes that lose data or not, elections, recoveries.

As in `tests/controller/histories.py`, a move is said without regard to the state, and skipped where it cannot happen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from hypothesis import strategies as st

from kelr.controller import Configs, ControllerFailedOver, ControllerState, Election, RuleSet, Stepped
from kelr.controller import events as ev
from kelr.model import PartitionState, TopicPartition
from kelr.simulation import Acks, Replication, SimulatedCluster, started
from kelr.simulation.replication import caught_up

PARTITION = TopicPartition("orders", 0)
WINDOW_MS = 6_000
"""Longer than the Unclean Recovery Manager gathers answers in aggressive."""


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that happens; `broker` only where its name asks for one."""

    name: str
    broker: int = 1
    """Of a min ISR write, the new value."""

    def __str__(self) -> str:
        return self.name if self.name in _WITHOUT_BROKER else f"{self.name} {self.broker}"


@dataclass(frozen=True, slots=True)
class World:
    """The cluster, and what only somebody outside of it can know."""

    cluster: SimulatedCluster
    stopped_cleanly: frozenset[int] = frozenset()
    """Brokers that are down after a clean shutdown."""
    torn: frozenset[int] = frozenset()
    """Brokers whose disk lost records since they registered last: the controller cannot know it yet."""
    lossy_shutdowns: int = 0
    """How many shutdowns lost records."""
    given_up: frozenset[int] = frozenset()
    """Committed or visible records that the last unclean election's leader lacked."""

    @property
    def partition(self) -> PartitionState:
        return self.cluster.controller.partitions[PARTITION]

    @property
    def logs(self) -> Replication:
        return self.cluster.replication[PARTITION]

    @property
    def min_isr(self) -> int:
        return self.cluster.controller.min_isr(PARTITION.topic)

    @property
    def promised(self) -> frozenset[int]:
        """Records that were acknowledged to a producer with acks=all, or below a high watermark."""
        ledger = self.logs.ledger
        return (ledger.committed | ledger.visible) - ledger.deleted

    def lacks(self, replica: int) -> frozenset[int]:
        """What was promised, is not given up, and is not in this replica's log."""
        return self.promised - self.given_up - self.logs.logs[replica].ids


@dataclass(frozen=True, slots=True)
class Moment:
    """One move of a life, with the world before and after it."""

    move: Move
    before: World
    after: World
    done: tuple[Stepped, ...]
    """What the controller did, event by event."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A healthy partition with empty logs."""

    rules: RuleSet
    replication_factor: int = 3
    min_isr: int = 2
    unclean: bool = False

    def world(self) -> World:
        brokers = tuple(range(1, self.replication_factor + 1))
        state = ControllerState(self.rules, static=Configs(self.min_isr, self.unclean))
        cluster, _ = started(state, brokers).after(ev.TopicCreated(PARTITION.topic, (brokers,)))
        return World(cluster)


@dataclass(frozen=True)
class Life:
    """A partition and what happens to it."""

    setup: Setup
    moves: tuple[Move, ...]

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """The moves that could happen."""
        world, moments = self.setup.world(), []
        for move in self.moves:
            moved = _MOVES[move.name](world, move.broker)
            if moved is not None:
                after, done = moved
                moments.append(Moment(move, world, after, done))
                world = after
        return tuple(moments)

    @property
    def end(self) -> World:
        return self.moments[-1].after if self.moments else self.setup.world()

    def __str__(self) -> str:
        lines = [str(self.setup)]
        for moment in self.moments:
            after, logs = moment.after.partition, moment.after.logs
            ends = ", ".join(f"{replica}: {log.lineage}, HW {log.high_watermark}" for replica, log in logs.logs.items())
            lines.append(
                f"  {moment.move}: leader={after.leader} isr={after.isr} elr={after.elr}"
                f" last known={after.last_known_elr} committed={sorted(logs.ledger.committed)} | {ends}"
            )
        return "\n".join(lines)


Moved = tuple[World, tuple[Stepped, ...]]
_Move = Callable[[World, int], Moved | None]


def _with(world: World, cluster: SimulatedCluster, *done: Stepped) -> Moved:
    """The world after the controller did this; an unclean election gives up what its leader lacks."""
    after = replace(world, cluster=cluster)
    for stepped in done:
        for change in stepped.changes:
            leader = change.after.leader
            if leader is not None and leader != change.before.leader and change.elected.unclean:
                after = replace(after, given_up=after.promised - after.logs.logs[leader].ids)
    return after, done


def _event(world: World, event: ev.Event | ControllerFailedOver) -> Moved:
    cluster, done = world.cluster.after(event)
    return _with(world, cluster, done)


def _then(moved: Moved, move: _Move, broker: int) -> Moved:
    """Another move after one, where it can happen."""
    world, done = moved
    again = move(world, broker)
    return moved if again is None else (again[0], (*done, *again[1]))


def _registered_and_up(world: World, broker: int) -> bool:
    return broker in world.cluster.controller.brokers and broker not in world.cluster.down


def _produced(acks: Acks) -> _Move:
    def move(world: World, _broker: int) -> Moved | None:
        cluster, produced = world.cluster.produce(PARTITION, 1, acks)
        return None if produced.error != "NONE" else _with(world, cluster)

    return move


def _fetched(world: World, broker: int) -> Moved | None:
    cluster = world.cluster.fetch(PARTITION, broker)
    return None if cluster == world.cluster else _with(world, cluster)


def _replicated(world: World, _broker: int) -> Moved | None:
    cluster = world.cluster.replicate(PARTITION)
    return None if cluster == world.cluster else _with(world, cluster)


def _written(world: World, broker: int) -> Moved | None:
    """A record with acks=all that every live follower gets."""
    produced = _produced(Acks.ALL)(world, broker)
    return None if produced is None else _then(produced, _replicated, broker)


def _flushed(world: World, broker: int) -> Moved | None:
    return _with(world, world.cluster.flushed(broker)) if _registered_and_up(world, broker) else None


def _crashed(world: World, broker: int) -> Moved | None:
    return _with(world, world.cluster.stopped(broker)) if _registered_and_up(world, broker) else None


def _lost_power(world: World, broker: int) -> Moved | None:
    if not _registered_and_up(world, broker):
        return None
    cluster = world.cluster.stopped(broker, power_loss=True)
    if cluster.replication == world.cluster.replication:
        return _with(world, cluster)
    torn = replace(world, torn=world.torn | {broker}, lossy_shutdowns=world.lossy_shutdowns + 1)
    return _with(torn, cluster)


def _stopped(world: World, broker: int) -> Moved | None:
    """A clean shutdown writes everything to the disk."""
    if not _registered_and_up(world, broker):
        return None
    clean = replace(world, stopped_cleanly=world.stopped_cleanly | {broker})
    return _with(clean, world.cluster.shut_down(broker))


def _registered(world: World, broker: int) -> Moved | None:
    if broker not in world.cluster.down:
        return None
    clean = broker in world.stopped_cleanly
    fresh = replace(world, stopped_cleanly=world.stopped_cleanly - {broker}, torn=world.torn - {broker})
    return _event(fresh, ev.BrokerRegistered(broker, clean=clean))


def _unfenced(world: World, broker: int) -> Moved | None:
    fenced = _registered_and_up(world, broker) and world.cluster.controller.brokers[broker].fenced
    return _event(world, ev.BrokerUnfenced(broker)) if fenced else None


def _restarted(world: World, broker: int) -> Moved | None:
    registered = _registered(world, broker)
    return None if registered is None else _then(registered, _unfenced, broker)


def _fenced(world: World, broker: int) -> Moved | None:
    registration = world.cluster.controller.brokers.get(broker)
    return None if registration is None or registration.fenced else _event(world, ev.BrokerFenced(broker))


def _proposed(world: World, broker: int, *, adds: bool) -> Moved | None:
    """The leader asks for another ISR; it adds only who is live and has caught up."""
    leadership, leader = world.logs.leadership, world.cluster.serving(PARTITION)
    if leadership is None or leader is None or broker == leader or (broker in leadership.isr) is adds:
        return None
    if leadership.proposed is not None or broker not in world.logs.logs:
        return None
    if adds and not (world.cluster.running(broker) and caught_up(world.logs, broker)):
        return None
    members = leadership.isr | {broker} if adds else leadership.isr - {broker}
    ordered = tuple(replica for replica in world.partition.replicas if replica in members)
    return _with(world, world.cluster.propose(PARTITION, ordered))


def _delivered(world: World, _broker: int) -> Moved | None:
    leadership = world.logs.leadership
    if leadership is None or leadership.proposed is None or world.cluster.serving(PARTITION) is None:
        return None
    cluster, done = world.cluster.deliver(PARTITION)
    return _with(world, cluster, done)


def _reported(*, adds: bool) -> _Move:
    def move(world: World, broker: int) -> Moved | None:
        proposed = _proposed(world, broker, adds=adds)
        return None if proposed is None else _then(proposed, _delivered, broker)

    return move


def _elected(election: Election) -> _Move:
    return lambda world, _broker: _event(world, ev.LeadersElected(election, (PARTITION,)))


def _answered(world: World, broker: int) -> Moved | None:
    cluster, done = world.cluster.reply(broker).arrive(broker)
    return _with(world, cluster, *done) if done else None


def _said(world: World, broker: int) -> Moved | None:
    """An answer to the manager sets out; it may arrive much later."""
    cluster = world.cluster.reply(broker)
    return None if cluster == world.cluster else _with(world, cluster)


def _arrived(world: World, broker: int) -> Moved | None:
    cluster, done = world.cluster.arrive(broker)
    return _with(world, cluster, *done) if done else None


def _waited(world: World, _broker: int) -> Moved | None:
    cluster, done = world.cluster.wait(WINDOW_MS)
    return _with(world, cluster, done)


def _directory_failed(world: World, broker: int) -> Moved | None:
    active = world.cluster.controller.active(broker) and broker not in world.cluster.down
    return _event(world, ev.DirectoryFailed(broker)) if active else None


def _directory_assigned(world: World, broker: int) -> Moved | None:
    lost = broker in (world.partition.offline_replicas or ())
    return _event(world, ev.DirectoryAssigned(broker, PARTITION)) if lost else None


def _configured(topic: str | None) -> _Move:
    return lambda world, value: _event(world, ev.ConfigWritten(topic, min_isr=value))


def _switched(*, on: bool) -> _Move:
    return lambda world, _broker: None if world.cluster.controller.rules.elr is on else _event(world, ev.ElrFeature(on))


_MOVES: Mapping[str, _Move] = {
    "produce": _produced(Acks.ALL),
    "produce acks=1": _produced(Acks.LEADER),
    "write": _written,
    "fetch": _fetched,
    "replicate": _replicated,
    "flush": _flushed,
    "crash": _crashed,
    "lose power": _lost_power,
    "stop": _stopped,
    "restart": _restarted,
    "register": _registered,
    "fence": _fenced,
    "unfence": _unfenced,
    "drop": _reported(adds=False),
    "add": _reported(adds=True),
    "propose": lambda world, broker: _proposed(world, broker, adds=True),
    "propose without": lambda world, broker: _proposed(world, broker, adds=False),
    "deliver": _delivered,
    "elect preferred": _elected(Election.PREFERRED),
    "elect unclean": _elected(Election.UNCLEAN),
    "answer": _answered,
    "send answer": _said,
    "answer arrives": _arrived,
    "wait": _waited,
    "fail over": lambda world, _broker: _event(world, ControllerFailedOver()),
    "fail directory": _directory_failed,
    "assign directory": _directory_assigned,
    "min isr": _configured(PARTITION.topic),
    "cluster min isr": _configured(None),
    "elr off": _switched(on=False),
    "elr on": _switched(on=True),
}
_WITHOUT_BROKER = {
    *("produce", "produce acks=1", "write", "replicate", "deliver"),
    *("elect preferred", "elect unclean", "wait", "fail over", "elr off", "elr on"),
}

DATA = ("produce", "produce acks=1", "write", "fetch", "replicate", "flush")
SHUTDOWNS = ("crash", "lose power", "stop", "restart", "register", "fence", "unfence")
ISR_CHANGES = ("drop", "add", "propose", "propose without", "deliver")
RECOVERY = ("answer", "send answer", "answer arrives", "wait", "fail over")
USUAL = ("write", "crash", "lose power", "restart", "fence", "answer")
"""What a life is mostly made of: in these, records are lost."""
WITH_MIN_ISR_WRITES = ("write", "fence", "unfence", "min isr")
"""What a life is mostly made of where min ISR is written: leaders come and go under one value and another."""
UNATTENDED = (*DATA, *SHUTDOWNS, *ISR_CHANGES, *RECOVERY, "elect preferred")
"""What happens without an operator who gives up records."""
DIRECTORIES = ("fail directory", "assign directory")
CONFIGS = ("min isr", "cluster min isr")
FEATURES = ("elr off", "elr on")
EVERYTHING = (*UNATTENDED, "elect unclean", *DIRECTORIES, *CONFIGS, *FEATURES)


@st.composite
def lives(
    draw: st.DrawFn,
    rules: tuple[RuleSet, ...],
    names: Collection[str] = UNATTENDED,
    *,
    usual: tuple[str, ...] = USUAL,
    length: int = 40,
) -> Life:
    """Lives of up to `length` of these moves, each of the usual ones and of some others."""
    setup = Setup(
        rules=draw(st.sampled_from(rules)),
        replication_factor=draw(st.sampled_from((3, 2, 4, 1))),
        min_isr=draw(st.sampled_from((2, 3, 1))),
    )
    rare = draw(st.sets(st.sampled_from(sorted(set(names) - {*usual})), max_size=6))
    brokers = st.integers(1, setup.replication_factor)
    move = st.builds(Move, st.sampled_from(usual), brokers) | st.builds(
        Move, st.sampled_from((*usual, *sorted(rare))), brokers
    )
    size = draw(st.integers(0, length))
    return Life(setup, tuple(draw(st.lists(move, min_size=size, max_size=size))))
