"""What electing one replica would lose, counted between the logs that were heard, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.engine.case import Case
from kelr.engine.logs import count_distinct
from kelr.engine.quorum_words import promised_by_log
from kelr.engine.words import brokers, plural
from kelr.model import Bounds, Grade, Loss, ReplicaLog, Truncation


@dataclass(frozen=True, slots=True)
class _Count:
    """Offsets that the other heard logs hold and the elected one does not."""

    lost: int
    """Distinct (epoch, offset) pairs that no longer exist anywhere afterwards."""
    committed_parts: frozenset[tuple[int, int, int]]
    """Those of them that some replica knows to be committed, as (epoch, first offset, end offset)."""

    @property
    def below_high_watermark(self) -> int:
        return count_distinct(self.committed_parts)

    @property
    def committed_ranges(self) -> tuple[tuple[int, int], ...]:
        """The same as offsets `[first, last]`, whatever their epochs."""
        ranges: list[tuple[int, int]] = []
        for start, end in sorted((start, end) for _, start, end in self.committed_parts):
            if ranges and start <= ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], max(ranges[-1][1], end - 1))
            else:
                ranges.append((start, end - 1))
        return tuple(ranges)


def loss_of_electing(case: Case, replica: int, *, holds_all_committed: bool | None = None) -> Loss:
    """What is lost when this replica becomes the leader and the others follow it.

    Args:
        holds_all_committed: whether Kafka's rules guarantee that the replica's log has every committed record; None
            takes it from its membership in ISR or ELR. A replica whose log directory has failed has no such guarantee.
    """
    guaranteed = _guaranteed(case, replica) if holds_all_committed is None else holds_all_committed
    # Its failure moves a replica from the ISR to the ELR although its log is gone (docs/invariants.md).
    # A disk that contradicts that place may have lost what it stands for.
    guaranteed = guaranteed and not case.logs.lost_directory(replica) and not case.logs.doubtful(replica)
    # Several kinds of election elect the same replica.
    known = case.losses.get((replica, guaranteed))
    if known is None:
        known = case.losses[replica, guaranteed] = _loss(case, replica, guaranteed)
    return known


def _loss(case: Case, replica: int, guaranteed: bool) -> Loss:
    ranked = case.logs.ranked
    unheard = (*(other for other in case.state.replicas if other not in ranked), *case.former_members)
    if replica not in ranked:
        return _loss_unheard(case, replica, guaranteed, unheard)
    best = case.logs.best
    agreements = {other: case.logs.agreement(other, replica) for other in ranked}
    if None in agreements.values():
        return _loss_uncounted(case, replica, guaranteed, unheard)
    count = _count(case, replica)
    agrees_to = agreements[best.replica] if best is not None else None
    grade, reason = _grade(case, replica, guaranteed, unheard, count)
    committed = Bounds(0, 0) if grade is Grade.PROVEN_NONE else _committed(count, unheard)
    return Loss(
        grade=grade,
        committed=committed,
        uncommitted=_uncommitted(count, committed, unheard),
        total=Bounds(count.lost, None if unheard else count.lost),
        unheard=unheard,
        behind_best=case.logs.behind_best(replica),
        best=None if best is None else best.replica,
        agrees_to=agrees_to,
        committed_ranges=() if grade is Grade.PROVEN_NONE else count.committed_ranges,
        lost_ranges=_lost_ranges(best, agrees_to),
        truncations=_truncations(case, replica),
        reason=reason,
    )


def _guaranteed(case: Case, replica: int) -> bool:
    """ISR and ELR members hold all that was committed. With ELR off an unclean restart leaves a replica in the ISR, so
    its membership proves nothing once the partition has lost its leader (KIP-966, "last replica standing")."""
    state = case.state
    if replica == state.leader:
        return True
    if case.rules.elr or state.leader is not None:
        return replica in state.isr or replica in case.elr
    return False


def _loss_unheard(case: Case, replica: int, guaranteed: bool, unheard: tuple[int, ...]) -> Loss:
    """The elected replica's log was not heard: nothing can be counted."""
    best = case.logs.best
    if guaranteed:
        reason = f"{replica} is in the ISR or ELR, so it holds all that was committed; its log was not read"
        return Loss(Grade.PROVEN_NONE, committed=Bounds(0, 0), unheard=unheard, reason=reason)
    blind = replica in case.logs.heard
    if case.logs.lost_directory(replica):
        reason = (
            f"the log directory of {replica} has failed: its place in ISR or ELR says nothing of what it holds since"
        )
        return Loss(Grade.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)
    if case.logs.doubtful(replica):
        reason = f"what {replica} holds is not known: {case.logs.unheard[replica].detail}"
        return Loss(Grade.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)
    why = case.logs.heard[replica].last_epoch_error if blind else None
    no_epochs = f"tells no epochs{f' ({why})' if why else ''}, so it cannot be compared"
    reason = f"the log of {replica} {no_epochs if blind else 'was not read'}"
    return Loss(Grade.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)


def _loss_uncounted(case: Case, replica: int, guaranteed: bool, unheard: tuple[int, ...]) -> Loss:
    """Logs were heard, but where they part is not known."""
    best = case.logs.best
    known = None if best is None else best.replica
    if guaranteed:
        reason = f"{replica} is in the ISR or ELR, so it holds all that was committed"
        return Loss(Grade.PROVEN_NONE, committed=Bounds(0, 0), unheard=unheard, best=known, reason=reason)
    return Loss(
        Grade.UNKNOWN,
        unheard=unheard,
        best=known,
        reason="the logs end in different leader epochs, and where they part was not asked for",
    )


def _count(case: Case, elected: int) -> _Count:
    others = {replica: held.high_watermark for replica, held in case.logs.ranked.items() if replica != elected}
    lost = {part for other in others for part in case.logs.missing(other, elected)}
    committed = frozenset(
        part
        for other, high_watermark in others.items()
        if high_watermark is not None
        for part in case.logs.missing(other, elected, below=high_watermark)
    )
    return _Count(lost=count_distinct(lost), committed_parts=committed)


def _committed(count: _Count, unheard: tuple[int, ...]) -> Bounds:
    """At least what some high watermark covers; at most all that is lost, unless a log is missing in the count.

    The highest known high watermark is only a lower bound of what was acknowledged: followers learn of it late.
    """
    return Bounds(count.below_high_watermark, None if unheard else count.lost)


def _uncommitted(count: _Count, committed: Bounds, unheard: tuple[int, ...]) -> Bounds:
    least = 0 if committed.at_most is None else count.lost - min(committed.at_most, count.lost)
    return Bounds(least, None if unheard else count.lost - committed.at_least)


def _grade(case: Case, replica: int, guaranteed: bool, unheard: tuple[int, ...], count: _Count) -> tuple[Grade, str]:
    if guaranteed and count.below_high_watermark:
        lacking = plural(count.below_high_watermark, "committed offset")
        return Grade.UNKNOWN, (
            f"contradictory evidence: {replica} is in the ISR or ELR and should hold everything committed, yet another"
            f" replica's high watermark covers {lacking} that it lacks"
        )
    if guaranteed:
        return Grade.PROVEN_NONE, f"{replica} is in the ISR or ELR, so it holds all that was committed"
    quorum = case.recovery_quorum
    if case.logs.is_best(replica) and all(member in case.logs.ranked for member in (*quorum, *case.former_members)):
        if count.below_high_watermark:
            # The best log by its epochs: an unclean election gave those offsets up before, or disks lost them.
            given_up = plural(count.below_high_watermark, "committed offset")
            return Grade.BOUNDED, (
                f"{replica} has the best log of the recovery quorum, yet another replica's high watermark covers"
                f" {given_up} that it lacks: an unclean election gave them up before, or data was lost"
            )
        if case.proven_quorum is not None:
            return Grade.NONE_IF_FEWER_THAN_MIN_ISR, promised_by_log(case.proven_quorum, replica)
        return Grade.NONE_IF_FEWER_THAN_MIN_ISR, (
            f"the whole recovery quorum ({brokers(quorum)}) was heard and {replica} has the best log: {_promise(case)}"
        )
    if unheard:
        return Grade.BOUNDED, f"counted between the logs that were heard; {brokers(unheard)} not heard, may hold more"
    return Grade.BOUNDED, "counted between the logs of all replicas"


def _promise(case: Case) -> str:
    """What hearing the whole quorum promises: as many replicas held a committed record as min ISR was then."""
    if case.min_isr is None:
        return "nothing committed is lost if fewer than min ISR replicas lost data"
    fewer = "no replica" if case.min_isr == 1 else f"fewer than {case.min_isr} replicas"
    return f"nothing committed with min ISR {case.min_isr} is lost if {fewer} lost data"


def _lost_ranges(best: ReplicaLog | None, agrees_to: int | None) -> tuple[tuple[int, int], ...]:
    if best is None or agrees_to is None or agrees_to >= best.log_end:
        return ()
    return ((max(agrees_to, best.log_start or 0), best.log_end - 1),)


def _truncations(case: Case, elected: int) -> tuple[Truncation, ...]:
    """What each other heard log gives up when it follows the elected one."""
    found = []
    for replica in case.state.replicas:
        held = case.logs.ranked.get(replica)
        if held is None or replica == elected:
            continue
        agreed = case.logs.agreement(replica, elected)
        if agreed is not None and agreed < held.log_end:
            found.append(Truncation(replica, agreed, held.log_end - max(agreed, held.log_start or 0)))
    return tuple(found)
