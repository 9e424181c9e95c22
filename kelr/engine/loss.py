"""What electing one replica would lose, counted between the logs that were heard, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from kelr.engine.case import Case
from kelr.engine.logs import Ranges, count_distinct, ranges_of, records_of
from kelr.engine.loss_words import gone_in_words, maybe_cut, not_read, promise_in_words
from kelr.engine.quorum_words import promised_by_log
from kelr.engine.words import agree, brokers, plural
from kelr.model import Bounds, Loss, LossCertainty, ReplicaLog, Truncation


@dataclass(frozen=True, slots=True)
class _Count:
    """Offsets that the other heard logs hold, or are known to have held, and the elected one does not."""

    lost: int
    """Distinct (epoch, offset) pairs that no longer exist anywhere afterwards."""
    perhaps: int
    """Those that may be among them: deletion has taken what would show it."""
    committed_parts: frozenset[tuple[int, int, int]]
    """Those of `lost` that some replica knows to be committed, as (epoch, first offset, end offset)."""
    gone_ranges: Ranges
    """Offsets that are known to have been committed and that no log holds (`KnownLogs.gone`)."""
    unheard: tuple[int, ...]
    """Replicas whose logs could not be counted."""

    @property
    def below_high_watermark(self) -> int:
        return count_distinct(self.committed_parts)

    @property
    def gone(self) -> int:
        return sum(last - first + 1 for first, last in self.gone_ranges)

    @property
    def known_committed(self) -> int:
        return self.below_high_watermark + self.gone

    @property
    def committed_ranges(self) -> Ranges:
        """The same as offsets `[first, last]`, whatever their epochs."""
        gone = [(first, last + 1) for first, last in self.gone_ranges]
        return ranges_of([*((start, end) for _, start, end in self.committed_parts), *gone])


def loss_of_electing(case: Case, replica: int, *, holds_all_committed: bool | None = None) -> Loss:
    """What is lost when this replica becomes the leader and the others follow it.

    Args:
        holds_all_committed: whether Kafka's rules guarantee that the replica's log has every committed record; None
            takes it from its membership in ISR or ELR. A replica whose log directory has failed has no such guarantee,
            nor one that a reassignment adds again.
    """
    guaranteed = _guaranteed(case, replica) if holds_all_committed is None else holds_all_committed
    if case.config.foreign is not None:
        return Loss(LossCertainty.UNKNOWN, reason=f"its records are not in its replicas' logs ({case.config.foreign})")
    # Its failure moves a replica from the ISR to the ELR although its log is gone (docs/invariants.md).
    # A disk that contradicts that place may have lost what it stands for.
    lost = case.logs.lost_directory(replica) or case.logs.doubtful(replica) or case.is_added_again(replica)
    guaranteed = guaranteed and not lost
    # Several kinds of election elect the same replica.
    known = case.losses.get((replica, guaranteed))
    if known is None:
        known = case.losses[replica, guaranteed] = _loss(case, replica, guaranteed)
    return known


def loss_on_paper(case: Case, leader: int) -> Loss | None:
    """The loss where a broker that is down is recorded as leader, and another may lead by the time that it is back;
    None where it leads then (`Case.may_be_replaced_on_return`)."""
    if not case.may_be_replaced_on_return(leader):
        return None
    reason = f"{leader} is down: after an unclean shutdown its return makes any live replica the leader"
    return Loss(LossCertainty.UNKNOWN, reason=reason)


def _loss(case: Case, replica: int, guaranteed: bool) -> Loss:
    ranked = case.logs.ranked
    unheard = (*(other for other in case.state.replicas if other not in ranked), *case.former_members)
    if replica not in ranked:
        return _loss_unheard(case, replica, guaranteed, unheard)
    best, late = case.logs.best, _begins_late(case, replica)
    guaranteed = guaranteed and not late
    agreements = {other: case.logs.agreement(other, replica) for other in ranked}
    if None in agreements.values():
        return _loss_uncounted(case, replica, guaranteed, unheard)
    count = _count(case, replica, unheard)
    agrees_to = agreements[best.replica] if best is not None else None
    lost, perhaps = lost_data(case), may_have_lost(case, electing=replica)
    fewer = on_fewer(case)
    refuted = "; ".join(filter(None, (late, _refuted(case, replica, count, lost, perhaps))))
    refuted = refuted or ("" if unheard else fewer)
    grade, reason = _grade(case, replica, guaranteed, count, refuted)
    # Nothing bounds what an unread log holds, or what those held besides that have lost data: a record that was on
    # their disks alone is on no log any more. A committed one was on min ISR replicas.
    counted = count.lost + count.perhaps
    most = None if unheard or perhaps or fewer or (lost and case.state.leader not in case.electable) else counted
    committed = Bounds(count.known_committed, None if unheard or (refuted and not guaranteed) else counted)
    if grade is LossCertainty.PROVEN_NONE:
        committed = Bounds(0, 0)
    elif grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        committed = Bounds(0, counted)
    return Loss(
        grade=grade,
        committed=committed,
        uncommitted=_uncommitted(count, committed, most),
        total=Bounds(count.lost + count.gone, most),
        unheard=unheard,
        behind_best=case.logs.behind_best(replica),
        best=None if best is None else best.replica,
        agrees_to=agrees_to,
        committed_ranges=() if grade is LossCertainty.PROVEN_NONE else count.committed_ranges,
        gone_ranges=count.gone_ranges,
        lost_data=lost,
        may_have_lost=perhaps,
        min_isr=min_isr_of_the_promise(case) if grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR else None,
        contradictory=guaranteed and count.known_committed > 0,
        lost_ranges=_lost_ranges(case, best, agrees_to),
        truncations=_truncations(case, replica),
        reason=reason,
    )


def _begins_late(case: Case, replica: int) -> str:
    """Why a member of the ISR, too, may lose what was committed, in a topic with remote storage; empty where not."""
    start = case.logs.begins_anew(replica) if case.config.remote_storage else None
    if start is None:
        return ""
    begins = case.logs.ranked[replica].log_start or 0
    return (
        f"the log of {replica} begins at {begins}, another one at {start}: Kafka deletes what is in remote storage"
        f" before {begins} once {replica} leads"
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
        return Loss(LossCertainty.PROVEN_NONE, committed=Bounds(0, 0), unheard=unheard, reason=reason)
    blind = replica in case.logs.heard
    if case.logs.lost_directory(replica):
        reason = (
            f"the log directory of {replica} has failed: its place in ISR or ELR says nothing of what it holds since"
        )
        return Loss(LossCertainty.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)
    if case.logs.doubtful(replica):
        reason = f"what {replica} holds is not known: its disk is not believed"
        return Loss(LossCertainty.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)
    why = case.logs.heard[replica].last_epoch_error if blind else None
    no_epochs = f"tells no epochs{f' ({why})' if why else ''}, so it cannot be compared"
    reason = f"the log of {replica} {no_epochs if blind else 'was not read'}"
    return Loss(LossCertainty.UNKNOWN, unheard=unheard, best=None if best is None else best.replica, reason=reason)


def _loss_uncounted(case: Case, replica: int, guaranteed: bool, unheard: tuple[int, ...]) -> Loss:
    """Logs were heard, but where they part is not known."""
    best = case.logs.best
    known = None if best is None else best.replica
    if guaranteed:
        reason = f"{replica} is in the ISR or ELR, so it holds all that was committed"
        return Loss(LossCertainty.PROVEN_NONE, committed=Bounds(0, 0), unheard=unheard, best=known, reason=reason)
    return Loss(
        LossCertainty.UNKNOWN,
        unheard=unheard,
        best=known,
        reason="the logs end in different leader epochs, and where they part was not asked for",
    )


def _count(case: Case, elected: int, unheard: tuple[int, ...]) -> _Count:
    logs = case.logs
    others = [other for other in logs.ranked if other != elected]
    lost = frozenset(part for other in others for part in logs.missing(other, elected))
    perhaps = {part for other in others for part in logs.perhaps_missing(other, elected)}
    if case.config.remote_storage and logs.begins_anew(elected) is not None:
        begins = logs.ranked[elected].log_start
        perhaps |= {part for other in others for part in records_of(logs.ranked[other], below=begins)}
    committed = frozenset(
        part for other in others for part in logs.missing(other, elected, below=logs.known_committed(other))
    )
    both = count_distinct(lost | perhaps) if perhaps else count_distinct(lost)
    if any(logs.agreement(one, other) is None for one, other in combinations(others, 2)):
        # Of some logs only the last epoch is known: what counts once for each may be the same records.
        lost, committed = _whatever_their_epochs(lost), _whatever_their_epochs(committed)
    return _Count(count_distinct(lost), both - count_distinct(lost), committed, logs.gone, unheard)


def _whatever_their_epochs(parts: Iterable[tuple[int, int, int]]) -> frozenset[tuple[int, int, int]]:
    return frozenset((0, start, end) for _, start, end in parts)


def _uncommitted(count: _Count, committed: Bounds, most: int | None) -> Bounds:
    """The rest. The highest known high watermark is only a lower bound of what was acknowledged: followers learn of it
    late."""
    least = 0 if committed.at_most is None else count.lost - min(committed.at_most, count.lost)
    return Bounds(least, None if most is None else most - committed.at_least)


def lost_data(case: Case) -> tuple[int, ...]:
    """Replicas that held everything committed by what the controller, or the metadata log, records of them, and whose
    logs are known to lack some of it."""
    named, logs = _held_all_committed(case), case.logs
    return tuple(
        replica
        for replica in case.state.replicas
        if replica in logs.ranked
        and (replica in named or logs.ranked[replica].saved_high_watermark is not None)
        and logs.lacks_committed(replica)
    )


def _held_all_committed(case: Case) -> frozenset[int]:
    """Replicas that held everything committed by what is on record of them."""
    quorum = case.proven_quorum
    if quorum is not None:
        return frozenset(quorum.members)
    return frozenset({*case.state.isr, *case.elr, *(case.state.last_known_elr or ())})


def may_have_lost(case: Case, *, electing: int | None = None) -> tuple[int, ...]:
    """Replicas whose logs may have lost their tails, because others in their directories have
    (`ReplicaLog.may_have_held_more`), and whose own is not shown to be whole. Also the one to elect, if its log was
    read before its broker went down: its machine may have crashed.

    It is where it holds all that the last leader holds, by a log of its own that nothing casts doubt on: no follower
    holds more than its leader. A live leader has all that it led for.
    """
    if case.state.leader in case.electable:
        return ()
    ranked = case.logs.ranked
    return tuple(
        replica
        for replica in case.state.replicas
        if (replica == electing and case.read_before(replica))
        or (replica in ranked and ranked[replica].may_have_held_more and not _shown_whole(case, replica))
    )


def _shown_whole(case: Case, replica: int) -> bool:
    logs = case.logs
    leader = case.last_known_leader if case.state.leader is None else case.state.leader
    led = None if leader is None else logs.ranked.get(leader)
    if led is None or led.may_have_held_more or led.replica == replica or logs.lacks_committed(led.replica):
        return False
    return logs.agreement(led.replica, replica) == led.log_end and not logs.lacks_committed(replica)


def _grade(case: Case, replica: int, guaranteed: bool, count: _Count, refuted: str) -> tuple[LossCertainty, str]:
    if guaranteed and count.known_committed:
        lacking = plural(count.known_committed, "committed offset")
        return LossCertainty.UNKNOWN, (
            f"contradictory evidence: {replica} is in the ISR or ELR and should hold everything committed, yet another"
            f" replica's high watermark covers {lacking} that it lacks{_gone(count)}"
        )
    if guaranteed:
        return LossCertainty.PROVEN_NONE, f"{replica} is in the ISR or ELR, so it holds all that was committed"
    quorum = case.recovery_quorum
    whole = all(member in case.logs.ranked for member in (*quorum, *case.former_members))
    if whole and not refuted and not count.below_high_watermark and case.logs.is_best(replica):
        if case.proven_quorum is not None:
            return LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, promised_by_log(case.proven_quorum, replica)
        return LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, (
            f"all logs of the recovery quorum ({brokers(quorum)}) were read and {replica} has the most complete one:"
            f" {promise_in_words(min_isr_of_the_promise(case))}"
        )
    if count.unheard:
        return LossCertainty.UNKNOWN, "; ".join(filter(None, (_may_hold_more(count.unheard), refuted)))
    if refuted:
        return LossCertainty.UNKNOWN, refuted
    if whole and case.logs.is_best(replica):
        # The best log by its epochs: an unclean election gave those offsets up before, or disks lost them.
        given_up = plural(count.below_high_watermark, "committed offset")
        return LossCertainty.BOUNDED, (
            f"{replica} has the best log of the recovery quorum, yet another replica's high watermark covers"
            f" {given_up} that it lacks: an unclean election gave them up before, or data was lost"
        )
    return LossCertainty.BOUNDED, "counted between the logs of all replicas"


def _may_hold_more(unheard: tuple[int, ...]) -> str:
    """Any replica whose log was not read may hold more, whatever sets it is in: an acks=1 record is on its leader
    alone, an unclean restart takes a member out of the ELR, and whom an unclean election passed over still has what
    that gave up."""
    return f"{not_read(unheard)}{agree(len(unheard), ' and', ': each')} may hold more"


def min_isr_of_the_promise(case: Case) -> int | None:
    """As many replicas held a committed record as this; None where that is not known. What a reassignment adds was not
    there when it was committed."""
    if case.proven_quorum is not None:
        return case.proven_quorum.min_isr
    return None if case.min_isr is None else min(case.min_isr, len(case.state.replicas) - len(case.state.adding or ()))


_EMPTIED = "ISR, ELR and LastKnownELR are empty"


def on_fewer(case: Case) -> str:
    """Why a committed record may have been on fewer replicas than min ISR is now; empty where nothing tells so."""
    if not case.min_isr_was_less or case.proven_quorum is not None or min_isr_of_the_promise(case) == 1:
        return ""
    emptied = "ISR is empty, and ELR, which is not known, may be" if case.state.elr is None else _EMPTIED
    return (
        f"{emptied}, as after a write of min.insync.replicas: what was committed with a smaller value may be on no log"
    )


def _refuted(case: Case, elected: int, count: _Count, lost: tuple[int, ...], perhaps: tuple[int, ...]) -> str:
    """Why hearing the whole quorum promises nothing; empty where nothing denies it.

    A committed record was on min ISR replicas: where so many are known to have lost data, it may be on no log. A disk
    that lost the tails of logs takes the promise of all logs on it.
    """
    gone = gone_in_words(count.gone_ranges, count.unheard) if count.gone else ""
    perhaps = tuple(
        one for one in perhaps if one in _held_all_committed(case) or (one == elected and case.read_before(one))
    )
    if not gone and not perhaps and len(lost) < (min_isr_of_the_promise(case) or 1):
        return ""
    have, ends = agree(len(lost), "has", "have"), agree(len(lost), "its log ends", "their logs end")
    known = f"{brokers(lost)} {have} lost committed data ({ends} below a known high watermark)" if lost else ""
    also = maybe_cut(tuple(replica for replica in perhaps if replica not in lost))
    return "; ".join(filter(None, (known, also, gone or "more may be lost than any log shows")))


def _gone(count: _Count) -> str:
    return f"; {gone_in_words(count.gone_ranges, count.unheard)}" if count.gone else ""


def _lost_ranges(case: Case, best: ReplicaLog | None, agrees_to: int | None) -> Ranges:
    if best is None or agrees_to is None:
        return ()
    first = max(agrees_to, case.logs.deleted_below(best.replica))
    return ((first, best.log_end - 1),) if first < best.log_end else ()


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
