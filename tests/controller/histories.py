"""Random histories of a small cluster: what brokers, leaders and operators plausibly do, one move after the other.

A move is said without regard to the state (`Move("fence", broker=2)`), so that Hypothesis can leave any of them out
when it looks for the shortest history; a move that cannot happen in the state that it meets is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from hypothesis import strategies as st

from kelr.controller import (
    RULE_SETS,
    Change,
    Configs,
    ControllerState,
    Election,
    Handled,
    Registration,
    RuleSet,
    change_partition,
    handle,
)
from kelr.controller import events as ev
from kelr.controller.reach import written
from kelr.model import PartitionState, TopicPartition

TOPIC = "orders"
ALL_RULES = tuple(RULE_SETS.values())
RELEASED = tuple(rules for rules in ALL_RULES if not rules.kip966)
KIP966 = tuple(rules for rules in ALL_RULES if rules.kip966)
WITH_ELR = tuple(rules for rules in ALL_RULES if rules.elr)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The Unclean Recovery Manager elects this replica (whether it should is not asked here)."""

    address: TopicPartition
    replica: int


Happening: TypeAlias = ev.Event | Recovered


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that somebody does; `broker` and `number` (a partition, or a config's value) only where the name of the
    move asks for them."""

    name: str
    broker: int = 1
    number: int = 0

    def happens(self, state: ControllerState) -> Happening | None:
        """The event that it makes in this state; None where it cannot happen."""
        return _MOVES[self.name](state, self.broker, self.number)


@dataclass(frozen=True, slots=True)
class Setup:
    """The cluster before anything happens: all brokers live, one topic, every replica in sync."""

    rules: RuleSet
    brokers: int = 3
    partitions: int = 1
    replication_factor: int = 3
    min_isr: int = 2
    unclean: bool = False
    """unclean.leader.election.enable in the controller's file."""

    def state(self) -> ControllerState:
        ids = range(1, self.brokers + 1)
        state = ControllerState(
            rules=self.rules,
            brokers={broker: Registration(broker, fenced=False) for broker in ids},
            static=Configs(self.min_isr, self.unclean),
            next_epoch=self.brokers + 1,
        )
        first = tuple(ids)[: self.replication_factor]
        return handle(state, ev.TopicCreated(TOPIC, (first, first[::-1])[: self.partitions])).state


@dataclass(frozen=True, slots=True)
class Step:
    """One event of a history, with the state that it met and what it made of it."""

    move: Move
    event: Happening
    before: ControllerState
    handled: Handled

    @property
    def after(self) -> ControllerState:
        return self.handled.state

    def partitions(self) -> Iterator[tuple[PartitionState, PartitionState]]:
        """Each partition before and after."""
        for address, after in self.after.partitions.items():
            yield self.before.partitions[address], after


@dataclass(frozen=True)
class History:
    """A cluster and what happens to it."""

    setup: Setup
    moves: tuple[Move, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The moves that could happen."""
        state, steps = self.setup.state(), []
        for move in self.moves:
            event = move.happens(state)
            if event is not None:
                step = Step(move, event, state, _handled(state, event))
                steps.append(step)
                state = step.after
        return tuple(steps)

    @property
    def end(self) -> ControllerState:
        return self.steps[-1].after if self.steps else self.setup.state()


def _handled(state: ControllerState, event: Happening) -> Handled:
    if not isinstance(event, Recovered):
        return handle(state, event)
    partition = state.partitions[event.address]
    change = change_partition(partition, state.around(partition), election=Election.ONLINE, recovered=event.replica)
    return Handled(written(state, (change,)), (change,)) if change.written else Handled(state)


_Happens: TypeAlias = Callable[[ControllerState, int, int], Happening | None]


def _partition(state: ControllerState, number: int) -> PartitionState:
    return state.partitions[TopicPartition(TOPIC, number % len(state.partitions))]


def _registered(state: ControllerState, broker: int) -> bool:
    return broker in state.brokers


def _restarted(clean: bool) -> _Happens:
    def happens(state: ControllerState, broker: int, _number: int) -> Happening | None:
        return ev.BrokerRegistered(broker, clean=clean) if _registered(state, broker) else None

    return happens


def _returned(state: ControllerState, broker: int, _number: int) -> Happening | None:
    """A broker that was unregistered registers again."""
    known = max(max(partition.replicas) for partition in state.partitions.values())
    return None if _registered(state, broker) or broker > known else ev.BrokerRegistered(broker, clean=False)


def _fenced(state: ControllerState, broker: int, _number: int) -> Happening | None:
    registration = state.brokers.get(broker)
    return None if registration is None or registration.fenced else ev.BrokerFenced(broker)


def _unfenced(state: ControllerState, broker: int, _number: int) -> Happening | None:
    registration = state.brokers.get(broker)
    return None if registration is None or not registration.fenced else ev.BrokerUnfenced(broker)


def _shut_down(state: ControllerState, broker: int, _number: int) -> Happening | None:
    registration = state.brokers.get(broker)
    return None if registration is None or registration.fenced else ev.ControlledShutdown(broker)


def _unregistered(state: ControllerState, broker: int, _number: int) -> Happening | None:
    registration = state.brokers.get(broker)
    return ev.BrokerUnregistered(broker) if registration is not None and registration.fenced else None


def _isr_reported(state: ControllerState, broker: int, number: int, *, adds: bool) -> Happening | None:
    """The leader asks for another ISR; it has to run for that, and adds only what fetches from it."""
    partition = _partition(state, number)
    leader, isr = partition.leader, partition.isr
    if leader is None or not state.active(leader) or broker == leader or (broker in isr) is adds:
        return None
    if adds and not (broker in state.electable(partition) and broker in partition.replicas):
        return None
    changed = (*isr, broker) if adds else tuple(member for member in isr if member != broker)
    ordered = tuple(replica for replica in partition.replicas if replica in changed)
    return ev.PartitionAltered(partition.address, leader, ordered)


def _directory_failed(state: ControllerState, broker: int, number: int) -> Happening | None:
    address = _partition(state, number).address
    return ev.DirectoryFailed(broker, frozenset({address})) if state.active(broker) else None


def _directory_assigned(state: ControllerState, broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    named = broker in partition.replicas and _registered(state, broker)
    return ev.DirectoryAssigned(broker, partition.address) if named else None


def _elected(election: Election) -> _Happens:
    return lambda state, _broker, number: ev.LeadersElected(election, (_partition(state, number).address,))


def _added(state: ControllerState, broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    if broker in partition.replicas or not state.active(broker) or _is_moving(partition):
        return None
    return ev.Reassigned(partition.address, (*partition.replicas, broker))


def _removed(state: ControllerState, broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    left = tuple(replica for replica in partition.replicas if replica != broker)
    if left == partition.replicas or not left or _is_moving(partition):
        return None
    return ev.Reassigned(partition.address, left)


def _replaced(state: ControllerState, broker: int, number: int) -> Happening | None:
    """The last replica makes room for a new one."""
    partition = _partition(state, number)
    if broker in partition.replicas or not state.active(broker) or _is_moving(partition):
        return None
    return ev.Reassigned(partition.address, (*partition.replicas[:-1], broker))


def _put_first(state: ControllerState, broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    others = tuple(replica for replica in partition.replicas if replica != broker)
    if others == partition.replicas or _is_moving(partition):
        return None
    return ev.Reassigned(partition.address, (broker, *others))


def _cancelled(state: ControllerState, _broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    return ev.Reassigned(partition.address, None) if _is_moving(partition) else None


def _is_moving(partition: PartitionState) -> bool:
    return bool(partition.adding or partition.removing)


def _recovered(state: ControllerState, broker: int, number: int) -> Happening | None:
    partition = _partition(state, number)
    due = state.rules.kip966 and partition.leader is None and broker in state.electable(partition)
    return Recovered(partition.address, broker) if due else None


_MOVES: Mapping[str, _Happens] = {
    "fence": _fenced,
    "unfence": _unfenced,
    "restart unclean": _restarted(clean=False),
    "restart clean": _restarted(clean=True),
    "shut down": _shut_down,
    "drop from isr": lambda state, broker, number: _isr_reported(state, broker, number, adds=False),
    "add to isr": lambda state, broker, number: _isr_reported(state, broker, number, adds=True),
    "elect preferred": _elected(Election.PREFERRED),
    "elect unclean": _elected(Election.UNCLEAN),
    "recover": _recovered,
    "unregister": _unregistered,
    "return": _returned,
    "fail directory": _directory_failed,
    "assign directory": _directory_assigned,
    "unclean task": lambda _state, _broker, _number: ev.UncleanElectionTask(),
    "preferred task": lambda _state, _broker, _number: ev.PreferredElectionTask(),
    "put first": _put_first,
    "add replica": _added,
    "remove replica": _removed,
    "replace replica": _replaced,
    "cancel": _cancelled,
    "min isr": lambda _state, _broker, number: ev.ConfigWritten(TOPIC, min_isr=1 + number % 3),
    "cluster min isr": lambda _state, _broker, number: ev.ConfigWritten(None, min_isr=1 + number % 3),
    "default min isr": lambda _state, _broker, _number: ev.ConfigDeleted(TOPIC, min_isr=True),
    "unclean config": lambda _state, _broker, number: ev.ConfigWritten(TOPIC, unclean_leader_election=number % 2 == 1),
    "elr feature": lambda _state, _broker, number: ev.ElrFeature(number % 2 == 1),
}

FAILURES = ("fence", "unfence", "restart unclean", "restart clean", "shut down", "drop from isr", "add to isr")
"""What happens without any operator's doing."""
ELECTIONS = ("elect preferred", "elect unclean", "recover", "unclean task", "preferred task")
REGISTRATIONS = ("unregister", "return")
DIRECTORIES = ("fail directory", "assign directory")
REASSIGNMENTS = ("put first", "add replica", "remove replica", "replace replica", "cancel")
CONFIGS = ("min isr", "cluster min isr", "default min isr", "unclean config")
FEATURES = ("elr feature",)
EVERYTHING = (*FAILURES, *ELECTIONS, *REGISTRATIONS, *DIRECTORIES, *REASSIGNMENTS, *CONFIGS, *FEATURES)
assert set(EVERYTHING) == set(_MOVES)


def moves(names: Collection[str], brokers: int) -> st.SearchStrategy[Move]:
    """Failures come as often as all the other moves together."""
    rare = sorted(set(names) - set(FAILURES))
    ids = st.integers(1, brokers)
    common = st.builds(Move, st.sampled_from(FAILURES), ids, st.integers(0, 1))
    return common | st.builds(Move, st.sampled_from(rare), ids, st.integers(0, 2)) if rare else common


@st.composite
def setups(draw: st.DrawFn, rules: tuple[RuleSet, ...], *, unclean: bool = True) -> Setup:
    """Clusters of 3 to 5 brokers, RF 1 to 4 and min ISR 1 to 3.

    Args:
        unclean: whether some allow unclean elections by config.
    """
    factor = draw(st.sampled_from((3, 2, 4, 1)))
    return Setup(
        rules=draw(st.sampled_from(rules)),
        brokers=draw(st.integers(max(3, factor), 5)),
        partitions=draw(st.sampled_from((1, 1, 2))),
        replication_factor=factor,
        min_isr=draw(st.sampled_from((2, 1, 3))),
        unclean=unclean and draw(st.booleans()),
    )


@st.composite
def histories(
    draw: st.DrawFn,
    rules: tuple[RuleSet, ...],
    names: Collection[str] = EVERYTHING,
    *,
    unclean: bool = True,
    length: int = 30,
) -> History:
    """Histories of up to `length` of these moves.

    Each history is made of a few kinds of moves only, so that these meet more often.
    """
    setup = draw(setups(rules, unclean=unclean))
    names = draw(st.sets(st.sampled_from(sorted(names)), min_size=min(3, len(names)), max_size=7))
    # A list of any size up to 30 would have about five members only.
    size = draw(st.integers(0, length))
    return History(setup, tuple(draw(st.lists(moves(names, setup.brokers), min_size=size, max_size=size))))


def changes(history: History) -> Iterator[tuple[Step, Change]]:
    """Every run that wrote a record, with the step in which it did."""
    for step in history.steps:
        for change in step.handled.changes:
            yield step, change
