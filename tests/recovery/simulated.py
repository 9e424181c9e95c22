"""A simulated cluster behind a `Source` and a `AdminClient`, with a clock; anything can go wrong in it at any moment.

A *moment* is right before or right after a request takes effect, or a line of a journal or of the audit log is on the
disk. At each one something can happen: kelr is killed, a broker dies or returns, another kelr comes in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from kelr.controller import Configs, ControllerState, Election, events, rule_set
from kelr.durable import AppendOnlyFile
from kelr.engine.planning import plan_of
from kelr.errors import ConnectError
from kelr.model import (
    METADATA_FEATURE,
    Cluster,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    PartitionState,
    Plan,
    Selection,
    Snapshot,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import NO_ANSWER, NO_ERROR
from kelr.recovery.apply_context import Site, Timeouts
from kelr.simulation.cluster import SimulatedCluster, started
from kelr.simulation.logs import Acks
from kelr.sources.base import Page, Progress
from kelr.sources.decisions import decide_partitions
from kelr.sources.ground import Ground, Moment
from kelr.sources.live.failures import error_answer
from kelr.sources.memory import MemorySource

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BEGIN_MS = 1_700_000_000_000
WHO = Actor("ada", "laptop", "User:ada")
TOPIC = "orders"
STEADY = TopicPartition("steady", 0)
"""It has a leader, 2, and its preferred replica is 3."""
LAYOUTS = ((3, 1, 2), (3, 2, 1), (2, 3, 1), (1, 3, 2))
"""Of the partitions of `leaderless`: in the first two and the last, an unclean election takes 3 without help."""


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


@dataclass(slots=True)
class Fault:
    """How one request goes wrong."""

    answer: str
    """What is answered in place of the truth."""
    done: bool
    """Whether it is carried out all the same."""
    late_s: float | None = None
    """When it is carried out after all, as a broker does that passes it on once there is a controller again."""
    only: TopicPartition | None = None
    """For one partition; None: for all that were asked for together."""


CORDONED = "The manual partition assignment includes broker {}, but all its log directories are cordoned."


@dataclass(slots=True)
class World:
    """The cluster, the time, and what is going to happen."""

    cluster: SimulatedCluster
    now_s: float = 0.0
    reachable: bool = True
    moments: list[str] = field(default_factory=list)
    """What has passed so far."""
    kill_at: int | None = None
    """The number of the moment (from 0) at which the process is killed."""
    happens: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What happens at which moment."""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """By request (``reorder``, ``elect``, ``config``): how the next ones go wrong."""
    scheduled: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    dead: bool = False
    clock_set_by_s: float = 0.0
    """By how much somebody has set the wall clock."""
    boot_id: str | None = "first"
    """Changes with a reboot."""
    cordons: dict[int, str | None] = field(default_factory=dict)
    """cordoned.log.dirs of brokers, where they have a value of their own: then it is a cluster of Kafka 4.4."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Topics that cannot be described, with Kafka's name of the error."""
    before_revival: list[str] = field(default_factory=list)
    """The moments of the process that was killed last."""

    def moment(self, name: str) -> None:
        """Something is about to happen, or has."""
        assert not self.dead, f"a killed process goes on: {name}"
        number = len(self.moments)
        self.moments.append(name)
        if number in self.happens:
            self.happens.pop(number)()
        if number == self.kill_at:
            self.dead = True
            raise Killed(name)

    def revive(self) -> None:
        """Another process, with nothing known but what is on the disk."""
        self.dead, self.kill_at = False, None
        self.before_revival = list(self.moments)
        self.moments.clear()

    def after(self, *happenings: events.Event) -> None:
        for event in happenings:
            self.cluster = self.cluster.after(event)[0]

    def sleep(self, seconds: float) -> None:
        assert not self.dead, "a killed process sleeps"
        self.now_s += seconds
        due = [do for at, do in self.scheduled if at <= self.now_s]
        self.scheduled = [(at, do) for at, do in self.scheduled if at > self.now_s]
        for do in due:
            do()

    def clock_ms(self) -> int:
        return BEGIN_MS + int((self.now_s + self.clock_set_by_s) * 1000)

    @property
    def ground(self) -> Ground:
        """The machine that kelr runs on."""
        return SimulatedGround(self)

    def state(self, number: int = 0, topic: str = TOPIC) -> PartitionState:
        return self.cluster.controller.partitions[TopicPartition(topic, number)]

    def patience(self) -> Timeouts:
        return Timeouts(step_s=2.0)

    def site(self, state_directory: Path) -> Site:
        return Site(
            SimulatedSource(self),
            SimulatedAdminClient(self),
            state_directory,
            self.ground,
            WHO,
            patience=self.patience(),
        )

    def common(self, state_directory: Path) -> dict[str, Any]:
        """The arguments that apply, resume and undo have in common."""
        return {
            "source": SimulatedSource(self),
            "hand": SimulatedAdminClient(self),
            "state_directory": state_directory,
            "ground": self.ground,
            "who": WHO,
            "patience": self.patience(),
        }

    def plan(
        self, wishes: Mapping[TopicPartition, ElectionRequest] | None = None, *, lifetime_ms: int = 1_800_000
    ) -> Plan:
        """A plan with these wishes; without any, 2 for all of `TOPIC`, and the preferred replica for `STEADY`."""
        if wishes is None:
            wishes = {at: self._usual(at) for at in self.cluster.controller.partitions}
        (page,) = decide_partitions(SimulatedSource(self), Selection(), clock_ms=self.clock_ms)
        return plan_of(
            page.snapshot,
            [one for one in page.decisions if TopicPartition(one.topic, one.partition) in wishes],
            wishes.__getitem__,
            now_ms=self.clock_ms(),
            lifetime_ms=lifetime_ms,
            made_by="kelr/test",
        )

    def _usual(self, at: TopicPartition) -> ElectionRequest:
        return (
            ElectionRequest(ElectionType.DESIGNATION, 2)
            if at.topic == TOPIC
            else ElectionRequest(ElectionType.PREFERRED)
        )


class SimulatedGround(Ground):
    """The clocks of a world, and waiting in it."""

    def __init__(self, world: World) -> None:
        self.world = world

    def now_ms(self) -> int:
        return self.world.clock_ms()

    def moment(self) -> Moment:
        return Moment(self.world.boot_id, int(self.world.now_s * 1000))

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)


class SnapshotSource:
    """A source of a live cluster that answers each question from a snapshot taken then, but for the brokers, which are
    remembered."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    @property
    def name(self) -> str:
        return "live"

    @property
    def taken_at_ms(self) -> int | None:
        return None

    def cluster(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._snapshot().cluster
        return self._cluster

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        return MemorySource(self._snapshot()).pages(selection, page_size=page_size, start=start)

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        return MemorySource(self._snapshot()).topic_configs(topics)

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        return MemorySource(self._snapshot()).replica_logs(partitions, lineage=lineage, progress=progress)

    def forget(self) -> None:
        self._cluster = None

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _snapshot(self) -> Snapshot:
        raise NotImplementedError


class SimulatedSource(SnapshotSource):
    """The simulated cluster as it is at each question."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def _snapshot(self) -> Snapshot:
        world = self._world
        assert not world.dead, "a killed process reads"
        if not world.reachable:
            raise ConnectError("no broker answers")
        snapshot = world.cluster.as_snapshot()
        cluster = replace(snapshot.cluster, cluster_id=CLUSTER_ID)
        if world.cordons:
            supported = {**(cluster.features.supported or {}), METADATA_FEATURE: 33}
            cluster = replace(cluster, features=replace(cluster.features, supported=supported))
            cluster = cluster.with_cordons({one.id: bool(world.cordons.get(one.id)) for one in cluster.brokers})
        return without_hidden(replace(snapshot, cluster=cluster, source="live"), world.hidden)


def without_hidden(snapshot: Snapshot, hidden: Mapping[str, str]) -> Snapshot:
    """What is told where these topics cannot be described, each with Kafka's name of the error."""
    errors = tuple(TopicError(topic, error) for topic, error in sorted(hidden.items()))
    shown = tuple(state for state in snapshot.partitions if state.topic not in hidden)
    return replace(snapshot, partitions=shown, topic_errors=(*snapshot.topic_errors, *errors))


class Lagging(SimulatedSource):
    """A broker that shows the partitions as they were before the run, until it has caught up."""

    def __init__(self, world: World, before: SimulatedCluster, caught_up_s: float) -> None:
        super().__init__(world)
        self.before, self.caught_up_s = before, caught_up_s

    def _snapshot(self) -> Snapshot:
        world = self._world
        now = world.cluster
        if world.now_s < self.caught_up_s:
            world.cluster = self.before
        try:
            return super()._snapshot()
        finally:
            world.cluster = now


class SimulatedAdminClient:
    """Requests to the simulated controller."""

    def __init__(self, world: World) -> None:
        self._world = world

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        assert orders
        cordons = self._world.cordons
        cordoned = {at: next((one for one in order if cordons.get(one)), None) for at, order in orders.items()}
        refused = {at: error_answer(39, CORDONED.format(one)) for at, one in cordoned.items() if one is not None}
        taken = sorted(orders.keys() - refused.keys())
        done = self._each("reorder", taken, lambda at: events.Reassigned(at, orders[at]))
        return {**done, **refused}

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        assert partitions
        return self._each("elect", partitions, lambda at: events.LeadersElected(election, (at,)))

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        raise AssertionError(f"no released cluster is told whom to elect: {leaders}")

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        raise AssertionError(f"no released cluster is asked for {kind}: {partitions}")

    def write_broker_config(self, broker: int, name: str, value: str | None) -> str:
        assert name == "cordoned.log.dirs"
        world = self._world
        world.moment("before cordon")
        if not world.reachable or broker not in world.cluster.as_snapshot().cluster.live:
            raise ConnectError("no broker answers")
        fault = next(iter(world.faults.get("cordon", ())), None)
        if fault is not None:
            world.faults["cordon"].pop(0)
        if fault is None or fault.done:
            world.cordons[broker] = value
        world.moment("after cordon")
        return NO_ERROR if fault is None else fault.answer

    def read_broker_config(self, broker: int, name: str) -> tuple[bool, str | None]:
        assert name == "cordoned.log.dirs"
        live = self._world.reachable and broker in self._world.cluster.as_snapshot().cluster.live
        return (True, self._world.cordons.get(broker)) if live else (False, None)

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        assert name == "min.insync.replicas"
        event = (
            events.ConfigDeleted(topic, min_isr=True)
            if value is None
            else events.ConfigWritten(topic, min_isr=int(value))
        )
        at = TopicPartition(topic, -1)
        return self._each("config", (at,), lambda _at: event)[at]

    def _each(
        self, kind: str, addresses: Sequence[TopicPartition], event: Callable[[TopicPartition], events.Event]
    ) -> Mapping[TopicPartition, str]:
        world = self._world
        if not world.reachable:
            raise ConnectError("no broker answers")
        world.moment(f"before {kind}")
        fault = next(iter(world.faults.get(kind, ())), None)
        if fault is not None:
            world.faults[kind].pop(0)
        answers = {at: self._one(event(at), at, fault) for at in addresses}
        world.moment(f"after {kind}")
        return answers

    def _one(self, event: events.Event, at: TopicPartition, fault: Fault | None) -> str:
        world = self._world
        if fault is not None and fault.only in {None, at}:
            if fault.late_s is not None:
                world.scheduled.append((world.now_s + fault.late_s, lambda: world.after(event)))
            if fault.done:
                world.after(event)
            return fault.answer
        world.cluster, stepped = world.cluster.after(event)
        return stepped.answers.get(at, stepped.error)


def silence(*, done: bool, late_s: float | None = None) -> Fault:
    """No answer comes."""
    return Fault(NO_ANSWER, done, late_s)


def watch_files(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each line of a journal, and of the audit log, two moments: before and after it is on the disk."""
    append = AppendOnlyFile.append

    def watched(file: AppendOnlyFile, *records: Mapping[str, Any]) -> None:
        if not records:
            return
        kind = file.path.stem if file.path.name == "audit.jsonl" else f"line {records[0].get('line')}"
        world.moment(f"before {kind}")
        append(file, *records)
        world.moment(f"after {kind}")

    monkeypatch.setattr(AppendOnlyFile, "append", watched)


def leaderless(
    layouts: Sequence[tuple[int, ...]] = LAYOUTS, *, rules: str = "elr-4.3", min_isr: int = 2, own: int | None = None
) -> World:
    """Brokers 2 and 3 are back after 1 died as the last leader; 2 has more than 3, and neither may lead by itself.

    Args:
        own: the topic's own min.insync.replicas; None takes `min_isr`, which is the cluster's.
    """
    return World(_leaderless(tuple(layouts), rules, min_isr, own))


@cache
def _leaderless(layouts: Sequence[tuple[int, ...]], rules: str, min_isr: int, own: int | None) -> SimulatedCluster:
    topics = {} if own is None else {TOPIC: Configs(min_isr=own)}
    controller = ControllerState(rules=rule_set(rules), cluster=Configs(min_isr=min_isr), topics=topics)
    world = World(started(controller, (1, 2, 3)))
    world.after(events.TopicCreated(TOPIC, layouts))
    everything = [TopicPartition(TOPIC, number) for number in range(len(layouts))]
    _produce(world, everything, 10, Acks.ALL)
    _dies(world, 3)
    _produce(world, everything, 10, Acks.ALL)
    _dies(world, 2)
    _produce(world, everything, 5, Acks.LEADER)
    _dies(world, 1)
    returns(world, 2)
    returns(world, 3)
    assert all(world.state(at.partition).leader is None for at in everything)
    world.after(events.TopicCreated(STEADY.topic, ((2, 3),)), events.Reassigned(STEADY, (3, 2)))
    _produce(world, [STEADY], 1, Acks.ALL)
    return world.cluster


def _produce(world: World, partitions: Sequence[TopicPartition], count: int, acks: Acks) -> None:
    for at in partitions:
        world.cluster, _ = world.cluster.produce(at, count, acks)
        if acks is Acks.ALL:
            world.cluster = world.cluster.replicate(at)


def _dies(world: World, broker: int) -> None:
    world.cluster = world.cluster.stopped(broker)
    world.after(events.BrokerFenced(broker))


def dies(world: World, broker: int) -> Callable[[], None]:
    """For `World.happens`: the broker is killed, and the controller notices."""
    return lambda: _dies(world, broker)


def returns(world: World, broker: int, *, clean: bool = False) -> None:
    """The broker is started, and unfenced."""
    world.after(events.BrokerRegistered(broker, clean=clean), events.BrokerUnfenced(broker))


def planned_in_its_order(plan: Plan) -> Plan:
    """What is planned next where brokers still show the order that this plan gave, and has restored."""
    (one,) = plan.elections
    evidence = replace(one.evidence, replicas=one.order)
    again = replace(one, elect=3, order=(3, 2, 1), evidence=evidence)
    return replace(plan, elections=(again,))
