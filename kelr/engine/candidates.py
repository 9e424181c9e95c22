"""Each replica's standing: what it holds, whether it may lead, and why."""

from __future__ import annotations

from kelr.engine.case import Case
from kelr.engine.joining_isr import kept_out
from kelr.engine.logs import diverges_at
from kelr.model import Candidate, NotHeard, ReplicaLog


def candidates_of(case: Case, elected: int | None) -> tuple[Candidate, ...]:
    """One candidate for each replica, in assignment order.

    Args:
        elected: whom Kafka would elect by itself now.
    """
    return tuple(_candidate(case, replica, elected) for replica in case.state.replicas)


def _candidate(case: Case, replica: int, elected: int | None) -> Candidate:
    state, logs = case.state, case.logs
    log, unheard = logs.heard.get(replica), logs.unheard.get(replica)
    broker = case.cluster.broker(replica)
    longest = logs.longest
    return Candidate(
        replica=replica,
        live=replica in case.electable,
        status=case.status(replica),
        in_isr=replica in state.isr,
        in_elr=None if state.elr is None else replica in state.elr,
        last_known=None if state.last_known_elr is None else replica in state.last_known_elr,
        rack=broker.rack if broker else None,
        broker_epoch=_broker_epoch(log, broker.broker_epoch if broker else None),
        last_epoch=log.last_epoch if log else None,
        log_end=log.log_end if log else None,
        high_watermark=log.high_watermark if log else None,
        last_stable_offset=log.last_stable_offset if log else None,
        saved_high_watermark=log.saved_high_watermark if log else None,
        log_start=log.log_start if log else None,
        current_leader_epoch=log.current_leader_epoch if log else None,
        source=log.source if log else None,
        heard=log is not None,
        unheard_reason=_why_not(log, unheard),
        behind_best=logs.behind_best(replica),
        diverges_at=diverges_at(log, logs.best) if log and logs.best and replica in logs.ranked else None,
        best=logs.is_best(replica),
        longest=log is not None and longest is not None and log.log_end == longest.log_end,
        eligible=replica == elected,
        reason=_standing(case, replica),
        kept_out=kept_out(case, replica),
    )


def _why_not(log: ReplicaLog | None, unheard: NotHeard | None) -> str | None:
    """Why the log, or its epochs, are not known."""
    if unheard is not None:
        return unheard.detail or unheard.reason.value
    return None if log is None else log.last_epoch_error


def _broker_epoch(log: ReplicaLog | None, registered: int | None) -> int | None:
    return log.broker_epoch if log is not None and log.broker_epoch is not None else registered


def _standing(case: Case, replica: int) -> str:
    state = case.state
    parts = []
    if replica == state.leader:
        parts.append("leader")
    elif replica in state.isr:
        parts.append("in ISR" if case.rules.elr or state.leader is not None else "in ISR (an unclean restart keeps it)")
    elif replica in case.elr:
        parts.append("in ELR")
    elif state.elr is None and case.rules.elr:
        parts.append("not in ISR; whether it is in the ELR is not known")
    if case.rules.kip966 and replica in (state.last_known_elr or ()):
        parts.append("in LastKnownELR: of the recovery quorum")
    if not case.rules.recovers and replica == case.last_known_leader and state.leader is None:
        parts.append("last known leader")
    quorum = case.proven_quorum if state.leader not in case.electable else None
    if quorum is not None and replica in quorum.members and replica not in {*state.isr, *case.elr}:
        since = ", restarted uncleanly since" if replica in quorum.restarted else ""
        parts.append(f"held everything committed, by the metadata log{since}")
    if replica in (state.adding or ()):
        parts.append("being added by a reassignment")
    if replica in (state.removing or ()):
        parts.append("being removed by a reassignment")
    if not parts:
        parts.append("in neither ISR nor ELR: no guarantee" if case.rules.elr else "not in ISR: no guarantee")
    return "; ".join(parts)
