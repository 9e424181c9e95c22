"""Random states and events for one run of the controller on a partition, and their text for the Java driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from kelr.controller import Change, Circumstances, Election, RuleSet, change_partition
from kelr.controller.election import NO_LEADER
from kelr.model import PartitionState

# Small universes, so that random sets meet; larger ids come out of a Java HashSet in another order than by size.
UNIVERSES = ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (0, 1, 2, 3), (1, 2, 16, 17, 33), (3, 1001, 1002, 1017, 70001))


@dataclass(frozen=True, slots=True)
class Event:
    """What one event asks of a run; None leaves a thing as it is."""

    election: Election
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    unclean_shutdown: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the state it meets, what surrounds it, and what it is asked for."""

    state: PartitionState
    around: Circumstances
    event: Event = field(default_factory=lambda: Event(Election.ONLINE))

    def run(self) -> Change:
        event = self.event
        recovered = None
        if self.around.rules.kip966 and event.election is Election.UNCLEAN:
            # Kafka takes the first live replica; with the whole KIP a log has to be the best, so let it be that one's.
            order = self.state.replicas if event.replicas is None else event.replicas
            recovered = next((replica for replica in order if replica in self.around.electable), None)
        return change_partition(
            self.state,
            self.around,
            election=event.election,
            target_isr=event.isr,
            target_replicas=event.replicas,
            target_adding=event.adding,
            target_removing=event.removing,
            target_recovering=event.recovering,
            unclean_shutdown=frozenset(event.unclean_shutdown or ()),
            recovered=recovered,
        )

    def line(self) -> str:
        """The case as the Java driver reads it."""
        around, event = self.around, self.event
        fields = (
            state_line(self.state),
            _ids(tuple(sorted(around.electable))),
            str(around.min_isr),
            str(int(around.rules.elr)),
            event.election.name,
            *(_optional(ids) for ids in (event.isr, event.replicas, event.unclean_shutdown)),
            *(_optional(ids) for ids in (event.adding, event.removing)),
            "*" if event.recovering is None else str(int(event.recovering)),
            str(int(not around.rules.kip966)),
        )
        return "|".join(fields)


def state_line(state: PartitionState) -> str:
    """A state as the Java driver reads and writes it."""
    sets = (state.replicas, state.isr, state.elr, state.last_known_elr, state.adding, state.removing)
    leader = NO_LEADER if state.leader is None else state.leader
    return "|".join(
        [
            *(_ids(ids or ()) for ids in sets),
            f"{leader}|{state.leader_epoch}|{int(bool(state.recovering))}|{state.partition_epoch}",
        ]
    )


def answer_line(change: Change) -> str:
    """What the Java driver answers if it agrees.

    One difference is on purpose: Kafka's code for the KIP's set forgets it with every unclean election, the KIP's text
    keeps it until the ISR is at min ISR again, and kelr goes by the text.
    """
    after = change.after
    if change.ballot.rules.kip966 and change.elected.unclean and after.leader != change.before.leader:
        after = replace(after, last_known_elr=())
    return f"{state_line(after)}|{int(change.written)}"


def random_cases(rules: RuleSet, random: Random) -> Iterator[Case]:
    """Cases without end: a fresh random state, then a few events on what it became, so that both impossible and
    reachable states are met."""
    while True:
        universe = random.choice(UNIVERSES)
        elr_rules = rules if random.random() < 0.8 else replace(rules, elr=False)
        state = _state(random, universe)
        min_isr = random.choice((1, 1, 2, 2, 2, 3, 4))
        for _ in range(random.choice((1, 1, 3, 8))):
            electable = frozenset(_some(random, universe))
            case = Case(state, Circumstances(electable, min_isr, elr_rules), _event(random, universe, state))
            yield case
            state = case.run().after


def random_set_cases(rules: RuleSet, random: Random) -> Iterator[Case]:
    """Cases for a rule set of the whole KIP, in which LastKnownELR is a set.

    Kafka has code that keeps that set, though no release uses it. Reassignments are left out: the KIP lets them
    complete under another condition, and leaves only replicas in the sets. So are elections from the ELR that make the
    ISR meet min ISR: Kafka's code leaves the rest of the ELR beside it, the KIP's text empties the ELR. And where ELR
    is off nothing is left over of it: Kafka's code keeps electing by that, the KIP's text ignores it.
    """
    for case in random_cases(rules, random):
        state, event = case.state, case.event
        kept = state.replicas if case.around.rules.elr else ()
        tidy = replace(
            state,
            isr=_of(state.isr, state.replicas),
            elr=_of(state.elr, kept),
            last_known_elr=_of(state.last_known_elr, kept),
            adding=(),
            removing=(),
        )
        event = replace(event, adding=None, removing=None)
        if event.replicas is not None and set(event.replicas) != set(state.replicas):
            event = replace(event, replicas=None)
        if event.isr is not None:
            event = replace(event, isr=_of(event.isr, state.replicas))
        tidied = replace(case, state=tidy, event=event)
        change = tidied.run()
        if change.elected.unclean or not len(change.ballot.isr) < case.around.min_isr <= len(change.after.isr):
            yield tidied


def _of(brokers: tuple[int, ...] | None, replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers or () if broker in replicas)


def _state(random: Random, universe: tuple[int, ...]) -> PartitionState:
    replicas = tuple(random.sample(universe, random.randint(1, len(universe) - 1)))
    isr = _some(random, replicas)
    outside = tuple(broker for broker in (universe if random.random() < 0.1 else replicas) if broker not in isr)
    leader = random.choice((None, None, random.choice(replicas), *isr[:1]))
    adding, removing = _reassignment(random, replicas)
    return PartitionState(
        topic="orders",
        partition=0,
        leader=leader,
        leader_epoch=random.randint(0, 9),
        replicas=replicas,
        isr=isr,
        elr=random.choice(((), _some(random, outside))),
        last_known_elr=_last_known(random, universe),
        partition_epoch=random.randint(0, 99),
        adding=adding,
        removing=removing,
        recovering=random.random() < 0.2,
    )


def _last_known(random: Random, universe: tuple[int, ...]) -> tuple[int, ...]:
    one = (random.choice(universe),)
    return random.choice(((), one, one, (NO_LEADER,), _some(random, universe)))


def _reassignment(random: Random, replicas: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if random.random() < 0.7:
        return (), ()
    adding = _some(random, replicas)
    return adding, _some(random, tuple(broker for broker in replicas if broker not in adding))


def _event(random: Random, universe: tuple[int, ...], state: PartitionState) -> Event:
    event = Event(random.choice(tuple(Election)))
    kind = random.random()
    if kind < 0.3 and state.isr:
        gone = random.choice(universe)
        event = replace(event, isr=tuple(broker for broker in state.isr if broker != gone))
        event = replace(event, unclean_shutdown=(gone,) if random.random() < 0.5 else None)
    elif kind < 0.45:
        unclean = _some(random, universe) if random.random() < 0.3 else None
        event = replace(event, isr=_some(random, state.replicas), unclean_shutdown=unclean)
    elif kind < 0.5:
        event = replace(event, isr=_some(random, state.replicas), recovering=random.random() < 0.5)
    elif kind < 0.7:
        event = _assignment_event(random, universe, state, event)
    return event


def _assignment_event(random: Random, universe: tuple[int, ...], state: PartitionState, event: Event) -> Event:
    if random.random() < 0.5:
        return replace(event, replicas=tuple(random.sample(state.replicas, len(state.replicas))))
    replicas = tuple(random.sample(universe, random.randint(1, len(universe))))
    adding = tuple(broker for broker in replicas if broker not in state.replicas)
    removing = _some(random, tuple(broker for broker in replicas if broker not in adding))
    return replace(event, replicas=replicas, adding=adding, removing=removing)


def _some(random: Random, ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(random.sample(ids, random.randint(0, len(ids))))


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def _optional(ids: tuple[int, ...] | None) -> str:
    return "*" if ids is None else _ids(ids)
