"""Each replica's standing: what it holds, whether it may lead, and why."""

from __future__ import annotations

from kelr.engine.case import Case
from kelr.engine.logs import diverges_at
from kelr.engine.rule_docs import CAUGHT_UP, CURRENT_BROKER_EPOCH, MAY_JOIN_ISR, Rule
from kelr.engine.words import plural
from kelr.model import BrokerStatus, Candidate, KeptOut, LogUnavailable, LogUnavailableReason, ReplicaLog

# Why a replica is not in the ISR although the partition is led, as far as anything that was read tells.
#
# Source: KIP-903; Kafka's leader proposes a follower by `Partition.needsExpandIsr` (its broker live, by the broker
# epoch that its fetches carry; its log at the high watermark), and the controller refuses others with
# INELIGIBLE_REPLICA (`ReplicationControlManager.ineligibleReplicasForIsr`). What the leader knows of a follower's
# fetches no request tells.

_REFUSED = "The leader does not propose such a replica, and the controller refuses it (INELIGIBLE_REPLICA)"
_NO_CONTROLLER = "no controller answered ({silence}): no ISR changes, or one changes it that these brokers do not reach"
_NOTHING_SEEN = (
    "nothing that can be seen keeps it out: its broker is live, and its log had reached the leader's high watermark,"
    " {high_watermark}, when they were read. If it stays out, look for INELIGIBLE_REPLICA in the server logs of the"
    " leader and of the active controller. A broker epoch that is not the registered one does that; no request tells"
    " which one the leader knows"
)


def kept_out(case: Case, replica: int) -> KeptOut | None:
    """The first thing on the way into the ISR that is known, or known to be unknown; None for a member, and where
    nobody live leads, since no ISR grows then."""
    if case.state.leader not in case.electable or replica in case.state.isr:
        return None
    rule, text = _by_the_controller(case, replica) or _by_its_answer(case, replica) or _by_its_log(case, replica)
    return KeptOut(rule.id, text)


def _by_the_controller(case: Case, replica: int) -> tuple[Rule, str] | None:
    silence = case.cluster.controller_silence
    if silence is not None:
        return MAY_JOIN_ISR, _NO_CONTROLLER.format(silence=silence)
    if replica in case.without_directory:
        return MAY_JOIN_ISR, "log directory offline, so that there is no log to fetch into"
    if case.cluster.status(replica) is not BrokerStatus.LIVE:
        return MAY_JOIN_ISR, f"broker {case.status(replica)}. {_REFUSED}"
    offline = replica in (case.state.offline_replicas or ())
    return (MAY_JOIN_ISR, f"broker {case.status(replica)}; either keeps it out") if offline else None


def _by_its_answer(case: Case, replica: int) -> tuple[Rule, str] | None:
    """What the leader's or the replica's silence, or a stale answer, leaves open."""
    for broker, name in ((case.state.leader, "the leader"), (replica, "the broker")):
        silence = case.silence_of(broker)
        if silence is not None:
            return CAUGHT_UP, f"{name} did not answer kelr ({silence}), so whether it still fetches is not known"
    answer = case.logs.unheard.get(replica)
    if answer is not None and answer.reason is LogUnavailableReason.STALE:
        return CURRENT_BROKER_EPOCH, f"stale answer ({answer.detail}): its fetches may be as stale"
    return None


def _by_its_log(case: Case, replica: int) -> tuple[Rule, str]:
    logs, leader = case.logs, case.state.leader
    own, leads = logs.heard.get(replica), logs.heard.get(leader) if leader is not None else None
    if own is None or leads is None or leads.high_watermark is None:
        unread = "log not read" if own is None else "the leader's high watermark not read"
        return CAUGHT_UP, f"broker live, {unread}, so whether it has caught up is not known"
    agreed = logs.agreement(replica, leads.replica) if {replica, leads.replica} <= logs.ranked.keys() else None
    if agreed is not None and agreed < min(own.log_end, leads.log_end):
        return (
            CAUGHT_UP,
            f"log parted from the leader's at offset {agreed} when they were read, so it had not followed yet",
        )
    behind = leads.high_watermark - own.log_end
    if behind <= 0:
        return CURRENT_BROKER_EPOCH, _NOTHING_SEEN.format(high_watermark=leads.high_watermark)
    return CAUGHT_UP, (
        f"log ended at {own.log_end} when they were read, {plural(behind, 'offset')} below the leader's high"
        f" watermark, {leads.high_watermark}. The leader proposes it once it has caught up; where records come in, it"
        " may only look behind, since one was read after the other"
    )


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


def _why_not(log: ReplicaLog | None, unheard: LogUnavailable | None) -> str | None:
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
