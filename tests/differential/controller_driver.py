"""kelr's controller and Apache's, event by event, on the same histories; each must answer and leave the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kelr.controller import RuleSet
from kelr.controller.election import NO_LEADER
from kelr.controller.reach import Handled
from kelr.controller.state import Configs, ControllerState
from kelr.model import PartitionState
from tests.differential.driver import CONTROLLER, answers
from tests.differential.intents import Intent, Told, World, tell


@dataclass(frozen=True, slots=True)
class History:
    """A cluster as it is formatted, and what happens to it."""

    elr: bool
    static_min_isr: int
    """min.insync.replicas in the controllers' file."""
    intents: tuple[Intent, ...]

    def world(self, rules: RuleSet) -> World:
        """The empty cluster; one that is formatted with ELR on has its min ISR pinned cluster-wide."""
        static = Configs(self.static_min_isr, False)
        cluster = Configs(self.static_min_isr) if self.elr else Configs()
        return World(ControllerState(replace(rules, elr=self.elr), static=static, cluster=cluster))

    def told(self, rules: RuleSet) -> list[Told]:
        world, steps = self.world(rules), []
        for intent in self.intents:
            step = tell(world, intent)
            steps.append(step)
            world = step.world
        return steps

    def lines(self, steps: Sequence[Told]) -> list[str]:
        return [f"reset|{int(self.elr)}|{self.static_min_isr}", *(step.line for step in steps)]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first event of a history after which the two sides differ."""

    history: History
    """The history up to this event."""
    line: str
    before: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        intents = "\n".join(f"    {intent}" for intent in self.history.intents)
        return (
            f"after {self.line!r}\n  before: {self.before}\n  kelr:   {self.ours}\n  Kafka:  {self.theirs}\n"
            f"  ELR {self.history.elr}, static min ISR {self.history.static_min_isr}, events:\n{intents}"
        )


def disagreements(kafka: str, rules: RuleSet, histories: Iterable[History]) -> list[Disagreement | None]:
    """For each history: where kelr and this Kafka part, or None."""
    runs = [(history, history.told(rules)) for history in histories]
    lines = [line for history, steps in runs for line in history.lines(steps)]
    theirs = iter(answers(kafka, lines, CONTROLLER))
    found: list[Disagreement | None] = []
    for history, steps in runs:
        before = next(theirs)
        said = [next(theirs) for _ in steps]
        found.append(_first(history, steps, before, said))
    return found


def _first(history: History, steps: Sequence[Told], before: str, said: Sequence[str]) -> Disagreement | None:
    for number, (step, answer) in enumerate(zip(steps, said, strict=True)):
        ours = text(step)
        if ours != answer:
            until = replace(history, intents=history.intents[: number + 1])
            return Disagreement(until, step.line, before, ours, answer)
        before = answer
    return None


def shrunk(kafka: str, rules: RuleSet, found: Disagreement) -> Disagreement:
    """A disagreement at the same kind of event with fewer events: what can be dropped, in halves, quarters and so on
    down to single events, is dropped."""
    kind = type(found.history.intents[-1])
    size = len(found.history.intents) // 2
    while size:
        intents = found.history.intents
        shorter = [
            replace(found.history, intents=(*intents[:start], *intents[start + size :]))
            for start in range(0, len(intents), size)
        ]
        parting = (other for other in disagreements(kafka, rules, shorter) if other is not None)
        smaller = [other for other in parting if type(other.history.intents[-1]) is kind]
        if smaller:
            found = min(smaller, key=lambda other: len(other.history.intents))
            size = min(size, len(found.history.intents) // 2)
        else:
            size //= 2
    return found


def text(step: Told) -> str:
    """kelr's side of an answer, in the words of the Java driver."""
    state = step.world.state
    parts = (
        _answer(step.handled),
        str(int(state.rules.elr)),
        ";".join(_broker(step.world, broker) for broker in sorted(state.brokers)),
        ";".join(_topic(state, topic) for topic in sorted({address.topic for address in state.partitions})),
        ";".join(_partition(step.world, partition) for _, partition in sorted(state.partitions.items())),
    )
    return "|".join(parts)


def _answer(handled: Handled) -> str:
    by_partition = sorted(f"{address}={error}" for address, error in handled.answers.items())
    return f"{handled.error}|{','.join(by_partition)}"


def _broker(world: World, broker: int) -> str:
    registration = world.state.brokers[broker]
    flags = f"{int(registration.fenced)} {int(registration.in_controlled_shutdown)}"
    return f"{broker} {registration.epoch} {flags} {_ids(world.online[broker])}"


def _topic(state: ControllerState, topic: str) -> str:
    return f"{topic} {state.min_isr(topic)} {int(bool(state.config(topic).unclean_leader_election))}"


def _partition(world: World, p: PartitionState) -> str:
    sets = (p.replicas, p.adding or (), p.removing or (), p.isr, p.elr or (), p.last_known_elr or ())
    leader = NO_LEADER if p.leader is None else p.leader
    places = (world.placed[p.address, broker] for broker in p.replicas)
    offline = p.offline_replicas or ()
    fields = (
        *map(_ids, sets),
        f"{leader} {p.leader_epoch} {p.partition_epoch} {int(bool(p.recovering))}",
        ",".join("unassigned" if place is None else str(place) for place in places),
        _ids(tuple(broker for broker in p.replicas if broker in offline and broker in world.state.brokers)),
    )
    return f"{p.topic} {p.partition} {' '.join(fields)}"


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
