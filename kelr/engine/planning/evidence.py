"""What a planned election stands on, as it was when the plan was made."""

from __future__ import annotations

from kelr.engine.planning.subject import Subject
from kelr.model import Evidence, LogEvidence


def evidence_of(subject: Subject) -> Evidence:
    """The partition's state, its surroundings and its logs."""
    state, case = subject.state, subject.case
    return Evidence(
        situation=subject.decision.situation,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        adding=state.adding,
        removing=state.removing,
        min_isr=case.min_isr,
        unclean_leader_election=case.unclean_election,
        live=case.live,
        logs=logs_of(subject),
    )


def logs_of(subject: Subject) -> tuple[LogEvidence, ...]:
    """One for each replica, in assignment order."""
    return tuple(_log(subject, replica) for replica in subject.state.replicas)


def _log(subject: Subject, replica: int) -> LogEvidence:
    case = subject.case
    log, silence = case.logs.heard.get(replica), case.logs.unheard.get(replica)
    broker = case.cluster.broker(replica)
    registered = None if broker is None else broker.broker_epoch
    if log is None:
        return LogEvidence(
            replica,
            broker_epoch=registered,
            read_at_ms=None if silence is None else silence.read_at_ms,
            unheard=None if silence is None else silence.reason.value,
        )
    return LogEvidence(
        replica=replica,
        log_end=log.log_end,
        last_epoch=log.last_epoch,
        high_watermark=log.high_watermark,
        log_start=log.log_start,
        broker_epoch=registered if log.broker_epoch is None else log.broker_epoch,
        source=log.source,
        read_at_ms=log.read_at_ms,
    )
