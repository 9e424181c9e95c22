"""Restarting brokers one after the other: whether each step is safe, and an order in which all of them are.

A restart is a controlled shutdown, a clean registration, and the return into every ISR before the next step. Nobody
leads more than before in the end: leaderships go back only with a preferred election.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import ControllerState, handle
from kelr.controller import events as ev
from kelr.engine.outages.case import OutageCase, Placed
from kelr.engine.outages.fate import KnownCase
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.restart_plan import Action, Blocked, Keep, RestartPlan, RestartStep
from kelr.engine.outages.standing import Standing
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.model import BrokerStatus, Cluster, TopicPartition

_EXAMPLES = 5


_Why = tuple[Standing, bool, bool]
"""What may not hold, whether it does already, and whether the partition has one replica alone."""


@dataclass
class _Group:
    """Partitions of one case on the same brokers."""

    now: KnownCase
    placed: Placed
    count: int = 0
    examples: list[TopicPartition] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Passed:
    """What one step makes of a case."""

    down: Standing
    """How it stands while the broker is down."""
    moves: bool
    after: KnownCase
    """The case once the broker is back and in sync."""


class Restarts:
    """Restarts of brokers, for the partitions that were added."""

    def __init__(self, cluster: Cluster, keep: Keep) -> None:
        self._cluster = cluster
        self._keep = keep
        self._groups: dict[tuple[int, tuple[int, ...]], _Group] = {}
        self._known: dict[OutageCase, KnownCase] = {}
        self._passed: dict[tuple[KnownCase, int, Action], _Passed] = {}
        self.partitions = 0

    def add(self, seen: Seen, count: int, examples: Iterable[TopicPartition] = ()) -> None:
        """Count partitions of one case.

        Args:
            examples: some of them; the first few of each group are kept.
        """
        self.partitions += count
        group = self._groups.get(seen.key)
        if group is None:
            group = self._groups[seen.key] = _Group(seen.known, seen.placed)
        group.count += count
        if len(group.examples) < _EXAMPLES:
            group.examples.extend(examples)

    def in_order(self, brokers: Sequence[int]) -> RestartPlan:
        """The restart of these brokers, one after the other in this order, safe or not."""
        unhealthy = self._unhealthy()
        racing = _Race(self, brokers)
        steps = []
        for number, broker in enumerate(brokers):
            step = racing.step(broker, "as asked" if number == 0 else f"once {brokers[number - 1]} is in sync")
            steps.append(replace(step, reason="not safe as things stand") if step.blocked and number else step)
            racing.pass_(broker)
        return RestartPlan(tuple(steps), self._keep, self.partitions, unhealthy)

    def safe_order(self, brokers: Sequence[int], *, controller: int | None = None) -> RestartPlan:
        """An order in which as many of these brokers as possible can be restarted safely; the rest comes last.

        Brokers that are down come first, then rack after rack, the active controller last: each step waits until the
        broker before is in sync again, so that a rack is finished before the next is touched.

        Args:
            controller: the active controller, which may be none of these brokers; None where it is not known.
        """
        unhealthy = self._unhealthy()
        racing = _Race(self, brokers)
        left, steps = list(brokers), list[RestartStep]()
        rack: str | None = None
        while left:
            ready = [broker for broker in left if racing.is_safe(broker)]
            if not ready:
                break
            chosen = min(ready, key=lambda one: self._preference(one, rack, controller, racing))
            steps.append(racing.step(chosen, self._reason(chosen, rack, controller, first=not steps)))
            rack = self._rack(chosen)
            racing.pass_(chosen)
            left.remove(chosen)
        steps += [racing.step(broker, "not safe as things stand") for broker in sorted(left)]
        return RestartPlan(tuple(steps), self._keep, self.partitions, unhealthy)

    # What a step does.

    def passed(self, known: KnownCase, name: int, action: Action) -> _Passed:
        """What the restart of one broker makes of a case."""
        key = (known, name, action)
        found = self._passed.get(key)
        if found is None:
            found = self._passed[key] = self._pass(known, name, action)
        return found

    def action_of(self, broker: int) -> Action:
        """What is to be done with a broker."""
        return Action.RESTART if self._cluster.status(broker) is BrokerStatus.LIVE else Action.START

    def _pass(self, known: KnownCase, name: int, action: Action) -> _Passed:
        case = known.case
        if action is Action.START:
            # Nobody knows whether it went cleanly: the worse is taken.
            fate = known.fates((Assumption(Happening.RETURNS_UNCLEAN, broker=name),), at_once=False).worst
            down = known.now | fate.then & Standing.MAY_LOSE
            return _Passed(down, bool(fate.then & Standing.LEADER_MOVES), self._after(case, fate.state, name))
        stop = Assumption(Happening.STOPS, broker=name)
        gone = known.fates((stop,), at_once=False).worst
        back = known.fates((stop, Assumption(Happening.RETURNS_CLEAN, broker=name)), at_once=False).worst
        then = gone.then | back.then & Standing.MAY_LOSE
        return _Passed(then, bool(gone.then & Standing.LEADER_MOVES), self._after(case, back.state, name))

    def _after(self, case: OutageCase, state: ControllerState, name: int) -> KnownCase:
        """The case once the broker has caught up, and with it all that follow a leader that there was not before.

        A restart mends no disk: a replica whose log directory has failed is not in sync afterwards.
        """
        led = case.state.leader is not None
        failed, partition = failed_directories(case), state.partitions[case.address]
        state = state.with_partitions([replace(partition, offline_replicas=failed)])
        state = caught_up(state, (name,) if led else range(len(case.statuses)))
        partition = replace(state.partitions[case.address], leader_epoch=0, partition_epoch=None)
        first = None if case.first is None else state.partitions[case.first.address]
        statuses = tuple(
            registered.status if (registered := state.brokers.get(one)) is not None else BrokerStatus.UNREGISTERED
            for one in range(len(case.statuses))
        )
        return self._of(replace(case, state=partition, statuses=statuses, first=first))

    def _of(self, case: OutageCase) -> KnownCase:
        known = self._known.get(case)
        if known is None:
            known = self._known[case] = KnownCase(case)
        return known

    # Which comes next, and why.

    def _rack(self, broker: int) -> str | None:
        found = self._cluster.broker(broker)
        return None if found is None else found.rack

    def _preference(
        self, broker: int, rack: str | None, controller: int | None, racing: _Race
    ) -> tuple[bool, bool, bool, str, int, int]:
        down = self.action_of(broker) is Action.START
        own = self._rack(broker)
        return (
            not down,
            broker == controller,
            own != rack,
            own or "",
            racing.moves(broker),
            broker,
        )

    def _reason(self, broker: int, rack: str | None, controller: int | None, *, first: bool) -> str:
        if self.action_of(broker) is Action.START:
            return "it is down: what it holds is missing wherever another broker stops"
        if broker == controller:
            return "last: it is the active controller"
        own = self._rack(broker)
        if own is None:
            return "fewest leaders move" if first else "next by leaders that move"
        return f"begins rack {own}" if own != rack else f"goes on with rack {own}"

    def _unhealthy(self) -> tuple[Blocked, ...]:
        found: dict[_Why, list[_Group]] = {}
        for group in self._groups.values():
            flags = group.now.now & self._keep.forbids
            if flags:
                found.setdefault((_first(flags), True, _single(group)), []).append(group)
        return _blocked(found)

    @property
    def groups(self) -> Collection[_Group]:
        return self._groups.values()

    @property
    def keep(self) -> Keep:
        return self._keep

    @property
    def cluster(self) -> Cluster:
        return self._cluster


class _Race:
    """The partitions as they are after the steps so far."""

    def __init__(self, restarts: Restarts, brokers: Iterable[int]) -> None:
        self._restarts = restarts
        self._groups = [replace(group) for group in restarts.groups]
        self._of: dict[int, list[int]] = {broker: [] for broker in brokers}
        for index, group in enumerate(self._groups):
            for broker in group.placed.brokers:
                if broker in self._of:
                    self._of[broker].append(index)
        self._unsafe = [self._unsafe_names(group) for group in self._groups]
        self._forbidding = dict.fromkeys(self._of, 0)
        self._moving = dict.fromkeys(self._of, 0)
        for index in range(len(self._groups)):
            self._count(index, 1)

    def is_safe(self, broker: int) -> bool:
        return not self._forbidding[broker]

    def moves(self, broker: int) -> int:
        return self._moving[broker]

    def step(self, broker: int, reason: str) -> RestartStep:
        """The broker's step as it would be now."""
        action, keep = self._restarts.action_of(broker), self._restarts.keep
        found: dict[_Why, list[_Group]] = {}
        moves = last = 0
        for index in self._of[broker]:
            group = self._groups[index]
            name = group.placed.brokers.index(broker)
            passed = self._restarts.passed(group.now, name, action)
            moves += group.count * passed.moves
            last += group.count * bool(passed.down & Standing.LAST_REPLICA)
            flags = _forbidden(passed, action, keep)
            if flags:
                worst = _first(flags)
                found.setdefault((worst, bool(group.now.now & worst), _single(group)), []).append(group)
        known = self._restarts.cluster.broker(broker)
        rack = None if known is None else known.rack
        # Of what was not read nothing is known, and without a controller nothing of now.
        told = bool(self._groups) and self._restarts.cluster.controller_silence is None
        return RestartStep(broker, action, rack, moves, last, _blocked(found), reason, known=told)

    def pass_(self, broker: int) -> None:
        """The broker has had its turn, and is in sync again."""
        action = self._restarts.action_of(broker)
        for index in self._of[broker]:
            group = self._groups[index]
            name = group.placed.brokers.index(broker)
            self._count(index, -1)
            group.now = self._restarts.passed(group.now, name, action).after
            self._unsafe[index] = self._unsafe_names(group)
            self._count(index, 1)

    def _unsafe_names(self, group: _Group) -> tuple[tuple[int, bool, bool], ...]:
        """Of each broker in question: its id, whether the group forbids its restart, whether its leader moves."""
        found = []
        for name, broker in enumerate(group.placed.brokers):
            if broker in self._of:
                action = self._restarts.action_of(broker)
                passed = self._restarts.passed(group.now, name, action)
                forbids = bool(_forbidden(passed, action, self._restarts.keep))
                found.append((broker, forbids, passed.moves))
        return tuple(found)

    def _count(self, index: int, sign: int) -> None:
        count = sign * self._groups[index].count
        for broker, forbids, moves in self._unsafe[index]:
            self._forbidding[broker] += count * forbids
            self._moving[broker] += count * moves


def caught_up(state: ControllerState, brokers: Collection[int]) -> ControllerState:
    """The records once these brokers, as far as they are live, have been let into every ISR by the leaders
    (AlterPartition)."""
    for address, partition in sorted(state.partitions.items()):
        leader = partition.leader
        if leader is None or not state.active(leader):
            continue
        ready = state.electable(partition)
        joining = [one for one in partition.replicas if one in brokers and one in ready and one not in partition.isr]
        if joining:
            state = handle(state, ev.PartitionAltered(address, leader, (*partition.isr, *joining))).state
    return state


def failed_directories(case: OutageCase) -> tuple[int, ...]:
    """The replicas whose log directory has failed, though their broker is live: what is offline of others comes back
    with them."""
    live = [name for name, status in enumerate(case.statuses) if status is BrokerStatus.LIVE]
    return tuple(name for name in case.state.offline_replicas or () if name in live)


def _forbidden(passed: _Passed, action: Action, keep: Keep) -> Standing:
    """What forbids a step: what may not hold while the broker is down; to start one only a loss forbids."""
    if action is Action.START:
        return passed.down & Standing.MAY_LOSE
    return passed.down & keep.forbids


def _first(flags: Standing) -> Standing:
    return max(flag for flag in Standing if flags & flag)


def _blocked(found: Mapping[_Why, Sequence[_Group]]) -> tuple[Blocked, ...]:
    return tuple(
        Blocked(
            standing,
            already,
            single,
            sum(group.count for group in groups),
            tuple(sorted(address for group in groups for address in group.examples)[:_EXAMPLES]),
            tuple(sorted({broker for group in groups for broker in _not_in_sync(group)})),
            tuple(sorted({broker for group in groups for broker in _failed(group)})),
        )
        for (standing, already, single), groups in sorted(found.items(), key=lambda one: (-one[0][0], one[0][1:]))
    )


def _single(group: _Group) -> bool:
    return len(group.now.case.state.replicas) == 1


def _failed(group: _Group) -> Iterator[int]:
    return (group.placed.brokers[name] for name in failed_directories(group.now.case))


def _not_in_sync(group: _Group) -> Iterator[int]:
    state = group.now.case.state
    return (group.placed.brokers[name] for name in state.replicas if name >= 0 and name not in state.isr)
