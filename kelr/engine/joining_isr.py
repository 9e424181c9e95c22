"""Why a replica is not in the ISR although the partition is led, as far as anything that was read tells.

Source: KIP-903; Kafka's leader proposes a follower by `Partition.needsExpandIsr` (its broker live, by the broker epoch
that its fetches carry; its log at the high watermark), and the controller refuses others with INELIGIBLE_REPLICA
(`ReplicationControlManager.ineligibleReplicasForIsr`). What the leader knows of a follower's fetches no request tells.
"""

from __future__ import annotations

from kelr.engine.case import Case
from kelr.engine.rule_docs import CAUGHT_UP, CURRENT_BROKER_EPOCH, MAY_JOIN_ISR, Rule
from kelr.engine.words import plural
from kelr.model import BrokerStatus, KeptOut, Unheard

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
    if answer is not None and answer.reason is Unheard.STALE:
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
