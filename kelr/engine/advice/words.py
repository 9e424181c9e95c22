"""Sentences that several pieces of advice share: what an election costs, until when waiting is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.advice.commands import watch_it
from kelr.engine.advice.findings import Findings
from kelr.engine.case import Case
from kelr.engine.loss_words import cost_in_words
from kelr.engine.words import agree, brokers, joined
from kelr.model import Advice, AdviceAction, Loss, Outcome

UNTIL_FENCED = (
    "Worth it for broker.session.timeout.ms (9 s unless configured): by then the controller has fenced a broker that is"
    " gone."
)


def and_the_others_truncate(case: Case) -> str:
    """The end of a sentence about a replica that is elected; empty where it is the only one."""
    return ", and the others truncate to it" if len(case.state.replicas) > 1 else ""


def passed_over(found: Findings) -> str:
    """Why the replica with the newest log is not the one to designate; empty where it is."""
    newest = found.passed_over
    if newest is None:
        return ""
    return (
        f" {newest.designate} has the newest leader epoch, which began below committed records: electing it"
        f" {cost_in_words(newest.loss)}."
    )


def or_designate(case: Case, found: Findings, condition: str) -> tuple[str, int | None]:
    """The alternative of designating the best live log, and that replica; empty where nobody can be designated."""
    best = found.best_designation
    if best is None or best.designate is None:
        return "", None
    text = f"{condition}: designate {best.designate}, which {cost_in_words(best.loss)}.{passed_over(found)}"
    text += _hold_down(case, best.designate, best.loss)
    return text, best.designate


def _hold_down(case: Case, designated: int, loss: Loss | None) -> str:
    """Whoever stays away truncates to the new leader on return: the last moment to save its tail is before."""
    truncated = {one.replica for one in loss.truncations} if loss is not None else set()
    away = [replica for replica in case.absent if replica in case.logs.unheard or replica in truncated]
    if not away:
        return ""
    if len(away) == 1:
        return f" When broker {away[0]} returns, it truncates to {designated}'s log: save what its disk holds first."
    return f" When {brokers(away)} return, they truncate to {designated}'s log: save what their disks hold first."


def look_at_the_silent(case: Case, who: str, replicas: Sequence[int]) -> Advice:
    """Wait for the controller to fence brokers that did not answer (`Case.silence_of`), or for them to answer.

    Args:
        who: ``The leader, broker 1,``.
    """
    count = len(replicas)
    text = (
        f"{who} did not answer ({case.silences(replicas)}): {agree(count, 'it', 'they')} may hang or be gone, and the"
        f" controller does not know before {agree(count, 'its session expires', 'their sessions expire')}. Look again"
        f" in a few seconds, and at {agree(count, 'that broker', 'those brokers')}."
    )
    return Advice(AdviceAction.WAIT, text, replicas[0], command=watch_it(case), until=UNTIL_FENCED)


def until_the_outage_costs_more(case: Case, alternative: Outcome | None) -> str:
    """Until when waiting for a broker is worth it.

    Without a leader nothing is written and no follower fetches, so that no replica falls further behind. Retention goes
    on at every replica all the same: it asks for no leader, and deletes whole segments below the replica's own high
    watermark (LogManager.cleanupLogs, UnifiedLog.deletableSegments). So does compaction, up to the last stable offset.

    Args:
        alternative: the designation that would be done instead of waiting; None where there is none.
    """
    if alternative is None or alternative.designate is None:
        worth = _no_alternative(case)
    else:
        worth = f"Waiting is worth it until the outage costs more than designating {alternative.designate} loses"
    return f"{worth}: while nobody leads, nothing is written and no log falls further behind.{_retention(case)}"


def _no_alternative(case: Case) -> str:
    """Why nobody could be elected instead of waiting; where that is for want of their logs, how to get them."""
    unread = [replica for replica in case.live if replica in case.logs.unheard]
    if not unread:
        return "Waiting has no alternative, and makes nothing worse"
    logs = agree(len(unread), "its log was", "their logs were")
    them = agree(len(unread), "it", "them")
    return (
        f"What electing {joined(unread, 'or')} would lose is not known, since {logs} not read: kelr log-info"
        f" {case.name}, asked of the cluster itself, reads {them} or says why not. Waiting makes nothing worse"
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
    condition = condition or f"If {joined(awaited, 'and')} cannot come back"
    return f"{condition}: bring {best.replica} back, which has the best log of {among} that were heard."


def _retention(case: Case) -> str:
    policies = case.config.cleanup_policy
    if not case.live:
        return ""
    if case.config.remote_storage:
        return " Retention on the brokers' disks goes on; what is in remote storage stays."
    if policies is None:
        return " Retention, where the topic has any, goes on."
    return " Retention goes on: what gets too old is deleted unread." if "delete" in policies else ""
