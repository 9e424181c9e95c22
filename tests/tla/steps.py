"""Histories of the controller as steps that TLC can hold against docs/tla/Controller.tla."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelr.controller import (
    ELR_4_0,
    ELR_4_1,
    ELR_4_1_0,
    ELR_4_3,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    KRAFT,
    Circumstances,
    Election,
    RuleSet,
)
from kelr.controller import events as ev
from kelr.controller.election import NO_LEADER
from kelr.controller.reach import NONE, Handled
from kelr.controller.state import ControllerState
from kelr.model import PartitionState, TopicPartition
from tests.controller.histories import Happening, Recovered
from tests.tla.tlc import check

Ids = tuple[int, ...]
RULE_SETS: Mapping[RuleSet, str] = {
    ELR_4_0: "Elr40",
    ELR_4_1_0: "Elr410",
    ELR_4_1: "Elr41",
    ELR_4_3: "Elr43",
    KRAFT: "Kraft",
    KIP966_NONE: "KipNone",
    KIP966_BALANCED: "KipBalanced",
    KIP966_AGGRESSIVE: "KipAggressive",
}
"""The names in Controller.tla."""
OF_RECORD = "of a record"
"""An event of which only its record is known."""
_NO_BROKER = -2
_REJECTED = re.compile(r"^step = (\d+)", re.M)


@dataclass(frozen=True, slots=True)
class OnRecord:
    """A partition as Controller.tla has it."""

    replicas: Ids
    adding: frozenset[int]
    removing: frozenset[int]
    isr: frozenset[int]
    elr: frozenset[int]
    last_known: frozenset[int]
    leader: int
    epoch: int

    @classmethod
    def of(cls, state: PartitionState) -> OnRecord:
        sets = (state.adding, state.removing, state.isr, state.elr, state.last_known_elr)
        leader = NO_LEADER if state.leader is None else state.leader
        return cls(state.replicas, *(frozenset(ids or ()) for ids in sets), leader, state.leader_epoch)

    def __str__(self) -> str:
        return (
            f"[replicas |-> {sequence(self.replicas)}, adding |-> {members(self.adding)},"
            f" removing |-> {members(self.removing)}, isr |-> {members(self.isr)}, elr |-> {members(self.elr)},"
            f" lastKnown |-> {members(self.last_known)}, leader |-> {self.leader}, epoch |-> {self.epoch}]"
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One event and one partition before and after it."""

    event: str
    before: OnRecord
    around: str
    """The circumstances, in TLA+."""
    after: OnRecord
    broker: int = _NO_BROKER
    others: Ids = ()
    """Further brokers that it may be about."""
    isr: frozenset[int] = frozenset()
    replicas: Ids = ()
    removing: Ids = ()


def sequence(ids: Iterable[int]) -> str:
    return f"<<{', '.join(map(str, ids))}>>"


def members(ids: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, sorted(ids)))}}}"


def truth(value: bool) -> str:
    return str(value).upper()


def around_text(around: Circumstances) -> str:
    name = RULE_SETS[next(rules for rules in RULE_SETS if rules.name == around.rules.name)]
    every_target = truth(around.rules.reassignment_needs_every_target)
    rules = f"[{name} EXCEPT !.elr = {truth(around.rules.elr)}, !.everyTarget = {every_target}]"
    return (
        f"[electable |-> {members(around.electable)}, minIsr |-> {around.min_isr},"
        f" unclean |-> {truth(around.unclean_leader_election)}, rules |-> {rules}]"
    )


def steps_of(
    before: ControllerState,
    event: Happening,
    handled: Handled,
    after: Mapping[TopicPartition, OnRecord] | None = None,
) -> Iterator[Step]:
    """What an event did to each partition that was there before and after it.

    Args:
        after: the partitions as another controller left them; None for kelr's own.
    """
    if after is None:
        after = {address: OnRecord.of(state) for address, state in handled.state.partitions.items()}
    for address, partition in before.partitions.items():
        if address in after:
            around = before.around(partition)
            if isinstance(event, ev.ConfigWritten | ev.ConfigDeleted):
                around = handled.state.around(partition)
            known = Step("nothing", OnRecord.of(partition), around_text(around), after[address])
            refused = handled.error != NONE or handled.answers.get(address, NONE) not in {NONE, "NEW_LEADER_ELECTED"}
            yield known if refused else _told(known, event, before, partition)


def _told(step: Step, event: Happening, state: ControllerState, partition: PartitionState) -> Step:
    """The step with the event by the name that it has in ControllerTrace.tla."""
    told = _of_broker(step, event, state, partition)
    return _of_request(step, event, state, partition) if told is None else told


def _of_broker(step: Step, event: Happening, state: ControllerState, partition: PartitionState) -> Step | None:
    offline = partition.offline_replicas or ()
    match event:
        case ev.BrokerRegistered(broker=broker):
            clean = event.clean and broker in state.brokers
            return replace(step, event="registered" if clean else "registered uncleanly", broker=broker)
        case ev.BrokerFenced(broker=broker) if broker in state.brokers:
            return replace(step, event="fenced", broker=broker)
        case ev.ControlledShutdown(broker=broker):
            return replace(step, event="controlled shutdown", broker=broker)
        case ev.BrokerUnfenced(broker=broker) if not state.brokers[broker].fenced:
            return replace(step, event="controlled shutdown" if broker in state.stopping else "nothing", broker=broker)
        case ev.BrokerUnfenced(broker=broker):
            # One whose log directory is lost is no more electable than before.
            return replace(step, event="unfenced", broker=_NO_BROKER if broker in offline else broker)
        case ev.BrokerUnregistered(broker=broker):
            return replace(step, event="unregistered", broker=broker)
        case ev.DirectoryFailed(broker=broker):
            failed = broker in partition.replicas and broker not in offline and event.holds(partition.address)
            return replace(step, event="directory failed" if failed else "nothing", broker=broker)
        case ev.DirectoryAssigned(address=there) if there == partition.address:
            name = "directory assigned" if event.online else "directory assigned offline"
            return replace(step, event=name, broker=event.broker)
    return None


def _of_request(step: Step, event: Happening, state: ControllerState, partition: PartitionState) -> Step:
    address = partition.address
    match event:
        case ev.PartitionAltered(address=there) if there == address:
            return replace(step, event="ISR altered", isr=frozenset(event.isr))
        case ev.LeadersElected(partitions=asked) if asked is None or address in asked:
            return replace(step, event=f"{event.election} election")
        case ev.UncleanElectionTask() if state.config(address.topic).unclean_leader_election:
            return replace(step, event=f"{Election.UNCLEAN} election")
        case ev.PreferredElectionTask():
            return replace(step, event=f"{Election.PREFERRED} election")
        case Recovered(address=there, replica=replica) if there == address:
            return replace(step, event="recovered", broker=replica)
        case ev.Reassigned(address=there, replicas=None) if there == address:
            return replace(step, event="cancelled")
        case ev.Reassigned(address=there, replicas=wanted) if there == address and wanted is not None:
            removing = tuple(sorted(set(partition.replicas) - set(wanted)))
            return replace(step, event="reassigned", replicas=wanted, removing=removing)
        case ev.ConfigWritten(topic=topic) if event.min_isr is not None and topic in {None, address.topic}:
            return replace(step, event="min ISR written")
        case ev.ConfigDeleted(topic=topic) if event.min_isr and topic in {None, address.topic}:
            return replace(step, event="min ISR written")
    return step


@dataclass
class Numbered:
    """Texts, each once, by their number in a TLA+ sequence."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: object) -> int:
        return self.numbers.setdefault(str(text), len(self.numbers) + 1)

    def __str__(self) -> str:
        return "<<\n" + ",\n".join(self.numbers) + ">>"


def rejected(place: Path, steps: Iterable[Step]) -> list[Step]:
    """The steps that the specification does not allow.

    Args:
        place: an empty directory for TLC.
    """
    known = list(dict.fromkeys(steps))
    assert known
    partitions, arounds = Numbered(), Numbered()
    told = [
        f'<<"{step.event}", {partitions.number(step.before)}, {arounds.number(step.around)},'
        f" {members({step.broker, *step.others})},"
        f" {members(step.isr)}, {sequence(step.replicas)}, {sequence(step.removing)}, {partitions.number(step.after)}>>"
        for step in known
    ]
    # Not constants of the configuration: TLC would evaluate those again for each step.
    history = {"Partitions": str(partitions), "Arounds": str(arounds), "Steps": "<<\n" + ",\n".join(told) + ">>"}
    body = "\n".join(f"{name} == {value}" for name, value in history.items())
    config = ["CONSTANT NoLeader <- Nobody", "SPECIFICATION Spec", "INVARIANT Accepted"]
    constants = {"Nobody": str(NO_LEADER)}
    checked = check(place, "ControllerTrace", config, constants, history=body, goes_on=True)
    assert checked.complete
    assert checked.distinct == len(known)
    return [known[int(number) - 1] for number in _REJECTED.findall(checked.said)]
