"""Puts the rules that the controller asked into words, with the evidence for each answer.

Nothing is decided here: the answers come from `kelr.controller.walk`, the same rules that elect.
"""

from __future__ import annotations

from collections.abc import Sequence

from kelr.controller.election import (
    LAST_KNOWN_LEADER,
    LEADER_STAYS,
    LIVE_ELR_MEMBER,
    LIVE_ISR_MEMBER,
    PREFERRED_REPLICA,
    UNCLEAN,
    UNCLEAN_RECOVERY,
    Election,
    ElectionInput,
    ElectionRule,
    walk,
)
from kelr.controller.rules import RecoveryStrategy
from kelr.engine.case import Case
from kelr.engine.recovery.prediction import recovery_steps
from kelr.engine.rule_docs import rule_of
from kelr.engine.words import ids, joined
from kelr.model import Step


def steps_of(
    case: Case, ballot: ElectionInput, *, asked_for: bool = False, recovery: RecoveryStrategy | None = None
) -> tuple[Step, ...]:
    """Every rule that the election asks, up to the one that decides, as steps.

    Args:
        asked_for: whether somebody asked for this election (ElectLeaders); otherwise Kafka runs it by itself.
        recovery: the strategy of an unclean recovery that somebody asked for; None takes the topic's.
    """
    steps: list[Step] = []
    for rule, choice in walk(ballot):
        if rule is UNCLEAN_RECOVERY:
            steps += recovery_steps(case, choice, asked_for=recovery)
        else:
            steps.append(_step(case, ballot, rule, choice, asked_for))
    if ballot.leader is None and steps and steps[0].rule == LEADER_STAYS.id:
        # A partition without a leader has none that could stay; saying so teaches nothing.
        return tuple(steps[1:])
    return tuple(steps)


def _step(case: Case, ballot: ElectionInput, rule: ElectionRule, choice: int | None, asked_for: bool) -> Step:
    evidence = (
        _unclean(case, ballot, choice, asked_for) if rule is UNCLEAN else _EVIDENCE[rule.id](case, ballot, choice)
    )
    return rule_of(rule).step(choice is not None, evidence)


def standing_of(case: Case, members: Sequence[int]) -> str:
    """Why none of these can lead: ``broker 1 is fenced``, ``1 is fenced, 3 is no replica any more``."""
    if len(members) == 1:
        return f"broker {members[0]} is {_standing(case, members[0])}"
    return joined(f"{member} is {_standing(case, member)}" for member in members)


def _standing(case: Case, member: int) -> str:
    return case.status(member) if member in case.state.replicas else "no replica any more"


def _of_set(case: Case, name: str, members: tuple[int, ...] | None, choice: int | None) -> str:
    if members is None:
        return f"the {name} is not known"
    if not members:
        return f"the {name} is empty"
    if choice is not None:
        return f"{name} is {ids(members)}; broker {choice} is live"
    return f"{name} is {ids(members)}; {standing_of(case, members)}"


def _preferred(case: Case, ballot: ElectionInput, choice: int | None) -> str:
    first = ballot.replicas[0]
    if choice is not None:
        return f"broker {first} is live and in the {'ISR' if first in ballot.isr else 'ELR'}"
    if first not in ballot.electable:
        return f"broker {first} is {case.status(first)}"
    return f"broker {first} is live, but neither in the ISR {ids(ballot.isr)} nor in the ELR {ids(ballot.elr)}"


def _leader(case: Case, ballot: ElectionInput, choice: int | None) -> str:
    if ballot.leader is None:
        return "it has no leader"
    if choice is not None:
        return f"broker {choice} leads and is live"
    return f"the leader, broker {ballot.leader}, is {case.status(ballot.leader)}"


def _isr(case: Case, ballot: ElectionInput, choice: int | None) -> str:
    return _of_set(case, "ISR", ballot.isr, choice)


def _elr(case: Case, ballot: ElectionInput, choice: int | None) -> str:
    if ballot.isr:
        return f"asked only while the ISR is empty; it is {ids(ballot.isr)}"
    if case.state.elr is None and not ballot.elr:
        return "the ELR is not known" if ballot.rules.elr else "ELR is off"
    return _of_set(case, "ELR", ballot.elr, choice)


def _last_known(case: Case, ballot: ElectionInput, choice: int | None) -> str:
    if not ballot.rules.elr:
        return "ELR is off, so Kafka records no last known leader"
    if ballot.isr or ballot.elr:
        name, members = ("ISR", ballot.isr) if ballot.isr else ("ELR", ballot.elr)
        return f"asked only when ISR and ELR are both empty; {name} is {ids(members)}"
    if len(ballot.last_known) != 1 and not (ballot.last_known and ballot.rules.keeps_last_known_elr):
        return "none is recorded" if not ballot.last_known else f"more than one is recorded: {ids(ballot.last_known)}"
    known = ballot.last_known[0]
    if known < 0:
        return 'Kafka recorded "no leader" as last known leader, and elects by it: no leader (KAFKA-19522)'
    if choice is not None and known not in ballot.electable:
        return f"broker {known} is {case.status(known)}, and this version elects it even then (KAFKA-19522)"
    if choice is not None:
        return f"broker {known} led last and is live; no config forbids it, and its log is not looked at"
    if known not in ballot.replicas:
        return f"broker {known} led last and is no replica any more: Kafka's controller fails when it tries to elect it"
    return f"broker {known} led last; it is {case.status(known)}"


def _unclean(case: Case, ballot: ElectionInput, choice: int | None, asked_for: bool) -> str:
    if ballot.election is not Election.UNCLEAN:
        source = case.config.unclean_leader_election_source
        if case.config.unclean_leader_election is None:
            return "unclean.leader.election.enable could not be read; taken as false"
        if case.unclean_election is None:
            return f"unclean.leader.election.enable is true in a {source.value}, not known of the controller's"
        return f"unclean.leader.election.enable is false ({source.value})"
    why = "asked for" if asked_for else "unclean.leader.election.enable is true"
    if choice is None:
        return f"{why}, but no replica is live"
    return f"{why}: broker {choice} is the first live replica of {ids(ballot.replicas)}; logs are not compared"


_EVIDENCE = {
    PREFERRED_REPLICA.id: _preferred,
    LEADER_STAYS.id: _leader,
    LIVE_ISR_MEMBER.id: _isr,
    LIVE_ELR_MEMBER.id: _elr,
    LAST_KNOWN_LEADER.id: _last_known,
}
