"""What to do where somebody says that brokers will not come back.

Only whom to elect, or whom to wait for, is asked of the replicas that are left. What Kafka does when one of those
returns, what an election loses and how sure that is, hang on the partition as it is: a broker that is gone still stands
in ISR, ELR or LastKnownELR, Kafka goes by that, and no promise of KIP-966 holds without a lost member's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kelr.engine.advice.absent_logs import BEST_OF_ALL
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.table import advise
from kelr.engine.advice.words import passed_over
from kelr.engine.alike import Alike
from kelr.engine.case import Case
from kelr.engine.logs import KnownLogs
from kelr.engine.loss_words import cost_in_words
from kelr.engine.planning.refusals import advised, refused
from kelr.engine.planning.subject import Subject
from kelr.engine.words import agree, brokers, ids
from kelr.model import Advice, AdviceAction, NotPlanned, PartitionState, ReplicaLog, Situation

_ELECTS = frozenset({AdviceAction.DESIGNATE, AdviceAction.HOLD})


@dataclass(frozen=True, slots=True)
class Designate:
    """The replica to designate where nobody is left to wait for, and why."""

    replica: int
    text: str


def not_gone(subject: Subject, gone: frozenset[int]) -> NotPlanned | None:
    """The refusal where a replica that was said to be gone is on a live broker; None where none is."""
    live = [replica for replica in subject.state.replicas if replica in gone & subject.case.cluster.live]
    if not live:
        return None
    return refused(
        subject,
        f"{brokers(live).capitalize()} {agree(len(live), 'is', 'are')} live, and {agree(len(live), 'was', 'were')} said"
        " to be gone for good. Name only brokers that will not come back.",
    )


def without_the_gone(subject: Subject, gone: frozenset[int]) -> Designate | NotPlanned:
    """What to do with the replicas that are left, where the decision's own advice is no election.

    Args:
        gone: brokers that will not come back; none of them is live.
    """
    missing = [replica for replica in subject.state.replicas if replica in gone]
    # Whoever is gone may have left a disk that can be read.
    on_their_disks = subject.decision.advice.action is AdviceAction.RESCUE
    if not missing or on_their_disks or _hangs_on_something_else(subject, missing):
        return advised(subject)
    if subject.case.rules.recovers and subject.live_leader is None:
        return refused(subject, _under_kip966(subject, missing))
    if len(missing) == len(subject.state.replicas):
        return refused(
            subject,
            f"All its replicas ({ids(missing)}) were said to be gone for good: no replica is left to lead it. What a"
            " disk still holds, kelr rescue dump --log-dir saves.",
        )
    case = _left_of(subject.case, gone)
    found = _findings(subject, case, gone)
    advice = advise(case, found)
    designate = advice.designate
    if designate is not None and designate in case.electable and advice.action in _ELECTS and not advice.alternative:
        return Designate(designate, _why(case, found, advice, missing))
    return _advised(subject, case, found, advice, missing)


def _hangs_on_something_else(subject: Subject, missing: list[int]) -> bool:
    """Whether the decision's advice holds as it is, whoever is gone: an election comes by itself, the state is not
    known, or a leader that has just stopped is still recorded and its session's end may elect a member of ISR or ELR.
    """
    decision, state, case = subject.decision, subject.state, subject.case
    if state.leader is None:
        return decision.elected is not None or decision.situation is Situation.UNKNOWN
    if subject.live_leader is not None:
        return decision.situation is Situation.UNKNOWN
    members = {*state.isr, *case.elr}
    return state.leader not in missing or decision.elected is not None or any(one in members for one in case.live)


def _left_of(case: Case, gone: frozenset[int]) -> Case:
    """The case without these brokers."""
    state = case.state
    left = replace(
        state,
        leader=None if state.leader in gone else state.leader,
        replicas=_left(state.replicas, gone),
        isr=_left(state.isr, gone),
        elr=None if state.elr is None else _left(state.elr, gone),
        last_known_elr=None if state.last_known_elr is None else _left(state.last_known_elr, gone),
    )
    # What was found out before is of a partition with all its replicas.
    return replace(case, state=left, logs=_logs_left(case.logs, gone), alike=Alike())


def _left(replicas: tuple[int, ...], gone: frozenset[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)


def _logs_left(logs: KnownLogs, gone: frozenset[int]) -> KnownLogs:
    """The logs of the others. What a disk of a broker that is gone tells of what was committed stays known of them."""
    heard = {
        replica: _with_mark_of(logs, log, gone) if replica in logs.ranked else log
        for replica, log in logs.heard.items()
        if replica not in gone
    }
    silent = {replica: answer for replica, answer in logs.unheard.items() if replica not in gone}
    return KnownLogs(heard, silent, logs.newer_leader_epoch)


def _with_mark_of(logs: KnownLogs, log: ReplicaLog, gone: frozenset[int]) -> ReplicaLog:
    """The log, with the highest offset up to which any log's high watermark says that its records are committed."""
    marks = [
        min(other.high_watermark, agreed)
        for replica, other in logs.ranked.items()
        if replica in gone and other.high_watermark is not None
        for agreed in [logs.agreement(replica, log.replica)]
        if agreed is not None
    ]
    if log.high_watermark is not None:
        marks.append(log.high_watermark)
    return replace(log, high_watermark=max(marks, default=None))


def _findings(subject: Subject, case: Case, gone: frozenset[int]) -> Findings:
    """What is known of the partition as it is, of those who are left."""
    decision = subject.decision
    waits_for = _left(decision.waits_for, gone)
    return Findings(
        situation=decision.situation if subject.live_leader is not None else _situation(case, waits_for),
        elected=decision.elected,
        elected_by=decision.elected_by,
        waits_for=waits_for,
        outcomes=decision.elections,
        forecasts=tuple(forecast for forecast in decision.forecasts if forecast.replica not in gone),
    )


def _situation(case: Case, waits_for: tuple[int, ...]) -> Situation:
    """Where the partition stands if only those can come back who are left."""
    if not case.live:
        return Situation.NO_LIVE_REPLICA
    places: Mapping[Situation, tuple[int, ...]] = {
        Situation.WAITING_FOR_ISR: case.state.isr,
        Situation.WAITING_FOR_ELR: case.elr,
        Situation.WAITING_FOR_LAST_KNOWN_LEADER: case.state.last_known_elr or (),
    }
    held = [where for where, members in places.items() if set(members) & set(waits_for)]
    return held[0] if held else Situation.NEEDS_UNCLEAN_RECOVERY


def _why(case: Case, found: Findings, advice: Advice, missing: list[int]) -> str:
    best = found.best_designation
    if advice.action is AdviceAction.HOLD or best is None or best.designate != advice.designate:
        return f"{_said(missing)} {advice.text}"
    if len(case.live) == 1:
        choice = "of those that are left it alone is live"
    elif found.passed_over is None:
        choice = f"of {brokers(case.live)}, which are left and live, it has the best log"
    else:
        choice = f"of {brokers(case.live)}, which are left and live, it is known to lose the fewest committed offsets"
    cost = f"{cost_in_words(best.loss)}.{passed_over(case, found)}"
    return f"{_said(missing)} Designate {best.designate}: {choice}, and it {cost}"


def _advised(subject: Subject, case: Case, found: Findings, advice: Advice, missing: list[int]) -> NotPlanned:
    """The advice for those who are left, in place of the decision's own."""
    state: PartitionState = case.state
    # What the disks of those who are gone hold may be more.
    left = "the most complete of those that are left"
    text = f"{_said(missing)} {advice.text.replace(BEST_OF_ALL, left)}"
    if subject.live_leader is not None:
        these = agree(len(missing), "its replica", "their replicas")
        text += f" Without {brokers(missing)}, move {these} to another broker (kafka-reassign-partitions.sh)."
    decision = replace(
        subject.decision,
        replicas=state.replicas,
        isr=state.isr,
        waits_for=found.waits_for,
        advice=replace(advice, text=text),
    )
    return advised(Subject(decision, case))


def _said(missing: list[int]) -> str:
    was = agree(len(missing), "was", "were")
    return f"{brokers(missing).capitalize()} {was} said to be gone for good."


def _under_kip966(subject: Subject, missing: list[int]) -> str:
    return (
        f"{_said(missing)} Under the rules {subject.case.rules.name} the recovery manager elects by the logs that it"
        f" reads: ask for longest_log_aggressive. The advice for all replicas is: {subject.decision.advice.text}"
    )
