"""Partitions that get no election, and why."""

from __future__ import annotations

from kelr.engine.advice.returns import is_elected_by_nobody
from kelr.engine.planning.subject import Subject
from kelr.model import AdviceAction, ElectionType, NotPlanned, Situation, Unplanned


def not_needed(subject: Subject, reason: str) -> NotPlanned:
    return _not_planned(subject, Unplanned.NOT_NEEDED, reason)


def refused(subject: Subject, reason: str) -> NotPlanned:
    return _not_planned(subject, Unplanned.REFUSED, reason)


def advised(subject: Subject) -> NotPlanned:
    """kelr advises something else than an election."""
    decision = subject.decision
    advice = decision.advice
    return NotPlanned(
        topic=decision.topic,
        partition=decision.partition,
        why=Unplanned.ADVISED,
        situation=decision.situation,
        reason=" ".join(filter(None, (advice.text, advice.alternative))),
        leader=decision.leader,
        action=advice.action,
        brokers=_brokers(subject),
        until=advice.until,
        command=advice.command,
        rescue=advice.rescue,
        keep_down=advice.keep_down,
        stop=advice.stop,
        stock=advice.stock,
        then_designate=is_elected_by_nobody(decision),
    )


def is_advised_to_start(subject: Subject, broker: int) -> bool:
    """Whether the advice is to bring this broker back."""
    return subject.decision.advice.action is AdviceAction.BRING_BACK and broker in _brokers(subject)


def _brokers(subject: Subject) -> tuple[int, ...]:
    """The brokers that the advice speaks of, the one that it names first in front."""
    decision, advice = subject.decision, subject.decision.advice
    named = () if advice.replica is None else (advice.replica,)
    if advice.action is AdviceAction.BRING_BACK:
        others = advice.start or (() if named else subject.case.absent)
    elif advice.action in {AdviceAction.RESTORE_REPLICATION, AdviceAction.RESCUE}:
        others = tuple(replica for replica in decision.replicas if replica not in decision.isr)
    elif advice.action is AdviceAction.GET_MORE_INFORMATION and decision.situation is not Situation.UNKNOWN:
        live = subject.case.cluster.live
        others = tuple(replica for replica in subject.case.logs.unranked if replica not in live)
    else:
        others = ()
    # A broker that is up, and lacks this log alone, is neither started nor kept down.
    up = subject.case.without_directory if advice.action in {AdviceAction.BRING_BACK, AdviceAction.HOLD} else ()
    left_out = {*advice.keep_down, *up}
    return tuple(replica for replica in dict.fromkeys((*named, *others)) if replica not in left_out)


def _not_planned(subject: Subject, why: Unplanned, reason: str) -> NotPlanned:
    decision = subject.decision
    return NotPlanned(decision.topic, decision.partition, why, decision.situation, reason, decision.leader)


def kind_in_words(kind: ElectionType) -> str:
    """``an unclean election``, ``a designation``."""
    if kind is ElectionType.DESIGNATION:
        return "a designation"
    return f"{'an' if kind is ElectionType.UNCLEAN else 'a'} {kind} election"
