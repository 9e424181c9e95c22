"""What to do before an imagined event, so that the election that it brings loses nothing, or less."""

from __future__ import annotations

from collections.abc import Collection

from kelr.engine.advice.returns import cuts_in_words, save_what_it_may_truncate
from kelr.engine.case import Case, case_of
from kelr.engine.loss import loss_of_electing
from kelr.engine.loss_words import cost_in_words
from kelr.engine.what_if.assumptions import RETURNS, Assumption, Happening
from kelr.engine.what_if.events import led, unfold
from kelr.engine.what_if.moment import Moment, Ran, known_at
from kelr.engine.words import brokers
from kelr.model import Bounds, Loss, LossCertainty, Snapshot

_BY_HAND = frozenset({Happening.UNCLEAN_ELECTION, Happening.DESIGNATION})


def may_lose(loss: Loss | None) -> bool:
    """Whether an election loses records that may be committed, or may do so for want of logs that were not read."""
    if loss is None or loss.grade is LossCertainty.PROVEN_NONE:
        return False
    return loss.total is None or not (loss.total.none or (loss.committed is not None and loss.committed.none))


def _loses(loss: Loss | None) -> bool:
    """Whether an election loses records by the logs that were heard, or may for want of its own leader's log."""
    if loss is None or loss.grade is LossCertainty.PROVEN_NONE:
        return False
    return loss.total is None or loss.total.at_least > 0


def prevention_of(assumption: Assumption, before: Moment, snapshot: Snapshot, electing: Ran) -> str:
    """How to keep an assumption from costing records of a partition that nobody leads, as a sentence; empty where that
    takes no doing, or nothing that is known would help.

    Args:
        before: where things stand before the assumption.
        electing: the election that the assumption brings.
    """
    partition, leader = before.state.partitions[electing.change.after.address], electing.change.after.leader
    if not _loses(electing.loss) or led(before.state, partition):
        return ""
    case = case_of(known_at(snapshot, before), partition, before.state.around(partition).rules)
    coming = unfold(assumption, before.state).brokers
    if assumption.happening is Happening.RETURNS_CLEAN and leader in coming and leader not in case.logs.ranked:
        # Its log is whole, so that no other is known to lose less: what the advice to bring it back says.
        return save_what_it_may_truncate(leader)
    better = _better(case, before.state.electable(partition), electing, coming)
    if assumption.happening in _BY_HAND:
        return f"{better[0].upper()}{better[1:]}." if better else ""
    if assumption.happening not in RETURNS or not coming:
        return ""
    if not better and electing.loss is not None and electing.loss.total is not None:
        cuts = electing.loss.truncations
        return f"First save what this truncates: {cuts_in_words(cuts)}." if cuts else ""
    who = brokers((leader,)) if leader is not None and leader in coming else brokers(coming)
    up = any(before.state.active(broker) for broker in coming)
    hold = f"Do not restart {who}" if up else f"Keep {who} down"
    return f"{hold} before you know what the log of {leader} holds." if not better else f"{hold}; first {better}."


def _better(case: Case, electable: Collection[int], electing: Ran, coming: Collection[int]) -> str:
    """Designating the best heard log, where it is known to lose less than that election.

    Args:
        coming: brokers whose return brings the election: none of them can be brought back before it.
    """
    live, best = case.logs.best_of(one for one in case.state.replicas if one in electable), case.logs.best
    best = live if live is not None and case.logs.is_best(live.replica) else best
    if best is None or best.replica == electing.change.after.leader or best.replica in {*coming}.difference(electable):
        return ""
    other, counted = loss_of_electing(case, best.replica), None if electing.loss is None else electing.loss.total
    if other.total is None or other.total.rank >= (counted or Bounds(0)).rank:
        return ""
    back = "" if best.replica in electable else f"start broker {best.replica}, and "
    return f"{back}designate {best.replica}, which {cost_in_words(other)}"
