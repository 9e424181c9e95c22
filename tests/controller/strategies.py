"""Random partitions for properties: any state, and states that events lead to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from kelr.controller import (
    ELR_4_0,
    ELR_4_1,
    ELR_4_1_0,
    ELR_4_3,
    KRAFT,
    Change,
    Circumstances,
    Election,
    RuleSet,
    broker_fenced,
    broker_registered,
    broker_unfenced,
    elect_leaders,
    isr_altered,
)
from kelr.model import PartitionState

BROKERS = (1, 2, 3, 4)
MENDED = (ELR_4_1, ELR_4_3)
"""Rule sets of the versions without KAFKA-19522 and without a stored "no leader"."""
RULES = (KRAFT, ELR_4_0, ELR_4_1_0, *MENDED)

subsets = st.permutations(BROKERS).flatmap(lambda order: st.integers(0, 4).map(lambda size: tuple(order[:size])))


@st.composite
def circumstances(draw: st.DrawFn, rules: tuple[RuleSet, ...] = RULES) -> Circumstances:
    return Circumstances(
        electable=frozenset(draw(subsets)),
        min_isr=draw(st.integers(1, 4)),
        rules=draw(st.sampled_from(rules)),
        unclean_leader_election=draw(st.booleans()),
    )


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    """Any state whose sets are made of its replicas, reachable or not."""
    replicas = draw(subsets.filter(bool))
    isr = tuple(broker for broker in draw(subsets) if broker in replicas)
    return PartitionState(
        topic="orders",
        partition=0,
        leader=draw(st.sampled_from((None, *replicas))),
        leader_epoch=draw(st.integers(0, 9)),
        replicas=replicas,
        isr=isr,
        elr=tuple(broker for broker in draw(subsets) if broker in replicas and broker not in isr),
        last_known_elr=draw(st.sampled_from(((), (1,), (2,), (1, 2)))),
        partition_epoch=draw(st.integers(0, 9)),
        recovering=draw(st.booleans()),
    )


elections = st.sampled_from(tuple(Election))


@dataclass(frozen=True, slots=True)
class Passed:
    """One event of a history: the brokers that were live when it came, and what it changed."""

    name: str
    broker: int
    around: Circumstances
    change: Change


_Event = Callable[[PartitionState, int, Circumstances], Change]


def _report_isr(state: PartitionState, broker: int, around: Circumstances) -> Change:
    """The leader lets a live follower in, or drops one; a leader that recovers reports itself alone first."""
    if state.leader is None or state.leader not in around.electable:
        return broker_unfenced(state, broker, around)
    isr = (*(member for member in state.isr if member != broker), *((broker,) if broker in around.electable else ()))
    return isr_altered(state, isr if state.leader in isr else (state.leader, *isr), around)


_EVENTS: dict[str, _Event] = {
    "fenced": broker_fenced,
    "registered clean": lambda state, broker, around: broker_registered(state, broker, around, clean=True),
    "registered unclean": lambda state, broker, around: broker_registered(state, broker, around, clean=False),
    "unfenced": broker_unfenced,
    "isr reported": _report_isr,
    "unclean election": lambda state, _, around: elect_leaders(state, Election.UNCLEAN, around).change,
    "preferred election": lambda state, _, around: elect_leaders(state, Election.PREFERRED, around).change,
}


@st.composite
def histories(
    draw: st.DrawFn, rules: tuple[RuleSet, ...] = RULES, *, unclean: bool | None = None
) -> tuple[Passed, ...]:
    """What a healthy partition of three replicas goes through, event after event.

    Args:
        unclean: whether elections may be unclean by config or on request; None for either.
    """
    chosen, min_isr = draw(st.sampled_from(rules)), draw(st.integers(1, 3))
    allowed = draw(st.booleans()) if unclean is None else unclean
    names = [name for name in _EVENTS if allowed or name != "unclean election"]
    state = PartitionState("orders", 0, 1, 0, (1, 2, 3), (1, 2, 3), elr=(), last_known_elr=(), partition_epoch=0)
    live, history = {1, 2, 3}, []
    for name, broker in draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from((1, 2, 3))), max_size=12)):
        around = Circumstances(frozenset(live), min_isr, chosen, allowed)
        change = _EVENTS[name](state, broker, around)
        history.append(Passed(name, broker, around, change))
        state = change.after
        if name == "unfenced":
            live.add(broker)
        elif name.split()[0] in {"fenced", "registered"}:
            live.discard(broker)
    return tuple(history)
