"""Sentences that several pieces of advice share: what an election costs, until when to wait."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.advice.commands import watch_it
from kelr.engine.advice.findings import Findings
from kelr.engine.case import Case
from kelr.engine.logs import saved_whole
from kelr.engine.loss_words import cost_in_words
from kelr.engine.words import agree, brokers, joined
from kelr.model import Advice, AdviceAction, Loss, LossCertainty, Outcome

UNTIL_FENCED = (
    "Waiting: at most broker.session.timeout.ms (default: 9 s): by then the controller has fenced a broker that is"
    " down."
)


def and_the_others_truncate(case: Case) -> str:
    """The end of a sentence about a replica that is elected; empty where it is the only one."""
    return ", and the others truncate to it" if len(case.state.replicas) > 1 else ""


def passed_over(case: Case, found: Findings) -> str:
    """Why the replica with the newest log is not the one to designate, or why one whose election loses fewer offsets in
    all is not; empty where they are the same."""
    newest, fewer, best = found.passed_over, found.loses_fewer, found.best_designation
    if newest is not None:
        return (
            f" {newest.designate} has the newest leader epoch, which began below committed records: electing it"
            f" {cost_in_words(newest.loss)}."
        )
    if fewer is None or best is None or not _ends_in_an_older_epoch(case, fewer.designate, best.designate):
        return ""
    return (
        f" Designating {fewer.designate} loses fewer offsets in all, but its log ends in an older epoch: committed"
        " records are more likely in the newest."
    )


def _ends_in_an_older_epoch(case: Case, one: int | None, other: int | None) -> bool:
    logs = [None if replica is None else case.logs.ranked.get(replica) for replica in (one, other)]
    epochs = [None if log is None else log.last_epoch for log in logs]
    return epochs[0] is not None and epochs[1] is not None and epochs[0] < epochs[1]


def or_designate(case: Case, found: Findings, condition: str) -> tuple[str, int | None]:
    """The alternative of designating the best live log, and that replica; empty where nobody can be designated."""
    best = found.best_designation
    if best is None or best.designate is None:
        return "", None
    known = best.loss is not None and best.loss.total is not None and str(best.loss.total) != "UNKNOWN"
    safe = best.loss is not None and best.loss.grade is LossCertainty.PROVEN_NONE
    unknown = ", which loses no committed record; what else is UNKNOWN" if safe else " (loss UNKNOWN)"
    cost = f", which {cost_in_words(best.loss)}" if known else unknown
    text = f"{condition}: designate {best.designate}{cost}.{passed_over(case, found)}"
    text += _hold_down(case, best.designate, best.loss)
    return text, best.designate


def _hold_down(case: Case, designated: int, loss: Loss | None) -> str:
    """Whoever stays away truncates to the new leader on return: the last moment to save its tail is before."""
    truncated = {one.replica for one in loss.truncations} if loss is not None else set()
    away = [replica for replica in case.absent if replica in case.logs.unheard or replica in truncated]
    away = sorted(replica for replica in away if not _is_saved(case, replica, designated))
    if not away:
        return ""
    if len(away) == 1:
        return f" Save what the disk of broker {away[0]} holds first: it truncates to {designated}'s log on its return."
    return f" Save what the disks of {brokers(away)} hold first: they truncate to {designated}'s log on their return."


def _is_saved(case: Case, replica: int, designated: int) -> bool:
    """Whether a rescue file of this very state has all that the replica holds and the designated one lacks."""
    own, now = case.logs.ranked.get(designated), (None, case.state.leader_epoch)
    return any(
        one.replica == replica and (one.leader, one.leader_epoch) == now and saved_whole(one, own) for one in case.saved
    )


def look_at_the_silent(case: Case, who: str, replicas: Sequence[int]) -> Advice:
    """Wait for the controller to fence brokers that did not answer (`Case.silence_of`), or for them to answer.

    Args:
        who: ``The leader, broker 1,``.
    """
    count = len(replicas)
    text = (
        f"{who} did not answer ({case.silences(replicas)}): Kafka fences {agree(count, 'it', 'them')} when"
        f" {agree(count, 'its session expires', 'their sessions expire')}. Look at"
        f" {agree(count, 'that broker', 'those brokers')}, and run kelr explain again in a few seconds."
    )
    return Advice(AdviceAction.WAIT, text, replicas[0], command=watch_it(case), until=UNTIL_FENCED)


def until_the_outage_costs_more(case: Case, alternative: Outcome | None) -> str:
    """Until when to wait for a broker.

    Without a leader nothing is written and no follower fetches, so that no replica falls further behind. Retention goes
    on at every replica all the same: it asks for no leader, and deletes whole segments below the replica's own high
    watermark (LogManager.cleanupLogs, UnifiedLog.deletableSegments). So does compaction, up to the last stable offset.

    Args:
        alternative: the designation that would be done instead of waiting; None where there is none.
    """
    told = f"Waiting: no new writes{_retention(case)}."
    return f"{told}{_no_alternative(case)}" if alternative is None or alternative.designate is None else told


def _no_alternative(case: Case) -> str:
    """Why nobody could be elected instead of waiting; where that is for want of their logs, how to get them."""
    unread = [replica for replica in case.live if replica in case.logs.unheard]
    if not unread:
        return " No other choice is known."
    logs = agree(len(unread), "its log was", "their logs were")
    them = agree(len(unread), "it", "them")
    return (
        f" The loss if you elect {joined(unread, 'or')} is UNKNOWN: {logs} not read. kelr log-info {case.name}, asked"
        f" of the cluster itself, reads {them} or says why not."
    )


def or_bring_back_the_best(case: Case, found: Findings, awaited: tuple[int, ...], condition: str = "") -> str:
    """The alternative of an absent replica that has a better log than all that are live, and than all absent ones that
    lead once they are back but those that are waited for; empty where there is none.

    Args:
        condition: when that is the one to bring back; where those that are waited for cannot come, if empty.
    """
    able = [replica for replica in case.absent if found.can_lead_on_return(replica)]
    others = [replica for replica in (*case.live, *able) if replica not in awaited]
    best = case.logs.best_of(others)  # of equals the first, so one that is live
    if best is None or best.replica in case.live:
        return ""
    among = "those" if case.logs.is_best(best.replica) else "the others"
    condition = condition or f"If {joined(awaited, 'and')} cannot return"
    return f"{condition}: start broker {best.replica}, which has the most complete log of {among} that were read."


def _retention(case: Case) -> str:
    policies = case.config.cleanup_policy
    live = joined(sorted(case.live), "and")
    if not case.live:
        return ""
    if case.config.remote_storage:
        return " Retention on the brokers' disks goes on; what is in remote storage stays."
    # No source reads retention.ms and retention.bytes, and with both at -1 nothing is deleted.
    deletes = policies is None or "delete" in policies
    return f", but retention, if the topic has any, still deletes old records on {live}" if deletes else ""
