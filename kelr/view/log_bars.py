"""The logs of one partition's replicas as bars: where they agree, where they part, what an election cuts off.

A terminal (`kelr.view.log_picture`) and a page (`kelr.view.incident`) draw the same bars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from kelr.engine.logs import KnownLogs, agreement, segments
from kelr.engine.words import in_short
from kelr.model import Candidate, Decision, ElectionType, LogAnswer, Outcome, ReplicaLog, Situation
from kelr.view.explain_columns import election_name


class Holds(Enum):
    """What a log has at some offset."""

    SAME = "same"
    """The record that the best log has there."""
    DIFFERENT = "different"
    """Another record than the best log: the two have parted before."""
    UNSURE = "unsure"
    """A record, and nobody can tell whether the best log has the same."""
    CUT = "cut"
    """The record that the best log has, and the election takes it away."""
    CUT_DIFFERENT = "cut-different"
    """Another record than the best log has, and the election takes it away."""
    CUT_UNSURE = "cut-unsure"
    """A record that the election takes away, and nobody can tell whether the best log has the same."""
    LACKS = "lacks"
    """None, where another log that was heard has one."""
    NOT_KEPT = "not-kept"
    """None: retention has deleted it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One replica's log. Offsets are Kafka's: ends are exclusive."""

    replica: int
    live: bool
    status: str
    rack: str | None
    leads: bool
    """Whether it is the leader, or would be after the election that is drawn."""
    best: bool
    unheard: str | None = None
    """Why its log is not known; then nothing of it is."""
    start: int = 0
    start_known: bool = True
    """Where not, it is drawn from offset 0 on."""
    end: int = 0
    high_watermark: int | None = None
    last_epoch: int | None = None
    same_to: int | None = None
    """Up to here it holds the same records as the best log; None: not known."""
    parts_in: tuple[int, int] | None = None
    """The epochs of its own and of the best log's record where they part; None: they do not part, or the epochs are not
    known."""
    cut_from: int | None = None
    """What the election that is drawn would cut off begins here; None: nothing, or not known."""
    cut_known: bool = True
    """Whether it is known what the election would cut off."""

    @property
    def empty(self) -> bool:
        return self.unheard is None and self.start == self.end

    @property
    def parts_at(self) -> int | None:
        """The first offset at which it holds another record than the best log."""
        return self.same_to if self.same_to is not None and max(self.same_to, self.start) < self.end else None

    @property
    def cut(self) -> int:
        """Offsets that the election would cut off."""
        return 0 if self.cut_from is None else self.end - max(self.cut_from, self.start)

    def holds(self, offset: int) -> Holds:
        """What it has at an offset that some log has."""
        if offset >= self.end:
            return Holds.LACKS
        if offset < self.start:
            return Holds.NOT_KEPT
        cut = self.cut_from is not None and offset >= self.cut_from
        if self.same_to is None:
            return Holds.CUT_UNSURE if cut else Holds.UNSURE
        if offset < self.same_to:
            return Holds.CUT if cut else Holds.SAME
        return Holds.CUT_DIFFERENT if cut else Holds.DIFFERENT


@dataclass(frozen=True, slots=True)
class LogBars:
    """The bars of one partition, and the election that is drawn."""

    bars: tuple[Bar, ...]
    """In assignment order."""
    leads: int | None
    """Who leads, or would; None: nobody."""
    title: str
    """What is drawn, in words."""
    imagined: bool = False
    """Whether `leads` would have to be elected first."""

    @property
    def heard(self) -> tuple[Bar, ...]:
        return tuple(bar for bar in self.bars if bar.unheard is None)

    def offsets(self) -> frozenset[int]:
        """Every offset at which something changes in some bar."""
        found: set[int] = set()
        for bar in self.heard:
            found |= {bar.start, bar.end}
            found |= {at for at in (bar.same_to, bar.cut_from) if at is not None and bar.start < at < bar.end}
        lowest, highest = min(found, default=0), max(found, default=0)
        marks = {bar.high_watermark for bar in self.heard if bar.high_watermark is not None}
        return frozenset(found | {at for at in marks if lowest <= at <= highest})

    @property
    def high_watermarks(self) -> tuple[int, ...]:
        """Those that can be drawn, ascending."""
        offsets = self.offsets()
        return tuple(sorted({bar.high_watermark for bar in self.heard if bar.high_watermark is not None} & offsets))


def log_bars(
    decision: Decision,
    answers: Sequence[LogAnswer],
    election: ElectionType | None = None,
    *,
    elected: int | None = None,
) -> LogBars:
    """The bars of a decision's replicas.

    Args:
        answers: what the replicas' logs were known to hold for the decision; of those that it does not count as heard
            nothing is drawn.
        election: draw what this kind of election would do. None: who leads; else whom Kafka elects by itself; else the
            designation that kelr's advice speaks of; else an unclean election.
        elected: draw what the election of this replica, which happened later, cut off.
    """
    heard = {one.replica for one in decision.candidates if one.heard}
    known = KnownLogs({one.replica: one for one in answers if isinstance(one, ReplicaLog) and one.replica in heard})
    leads, title = _drawn(decision, election)
    if elected is not None:
        leads, title = elected, f"as the logs were read before {elected} was elected"
    imagined = leads is not None and leads != decision.leader
    return LogBars(tuple(_bar(one, known, leads) for one in decision.candidates), leads, title, imagined)


def _drawn(decision: Decision, election: ElectionType | None) -> tuple[int | None, str]:
    """Who leads in the drawing, and what it shows."""
    if election is None and decision.leader is not None and decision.situation is not Situation.LEADER_NOT_LIVE:
        return decision.leader, f"{decision.leader} leads"
    if election is None and decision.elected is not None:
        return decision.elected, f"Kafka by itself elects {decision.elected} now"
    outcome = _outcome(decision, election)
    if outcome is None or outcome.elected is None:
        name = "an unclean election" if election is None else f"{election.value}"
        return None, f"{name} would elect no leader now: nothing would be cut off"
    name = election_name(outcome, decision)
    return outcome.elected, f"if {outcome.elected} were elected now: {name}"


def _outcome(decision: Decision, election: ElectionType | None) -> Outcome | None:
    designations = {one.designate: one for one in decision.elections if one.election is ElectionType.DESIGNATION}
    if election in {None, ElectionType.DESIGNATION}:
        best = next((one.replica for one in decision.candidates if one.best and one.live), None)
        wished = decision.advice.designate
        if wished not in designations and election is ElectionType.DESIGNATION:
            wished = best
        found = designations.get(wished) if wished is not None else None
        if found is not None or election is ElectionType.DESIGNATION:
            return found
    wanted = election or ElectionType.UNCLEAN
    return next((one for one in decision.elections if one.election is wanted), None)


def _bar(candidate: Candidate, known: KnownLogs, leads: int | None) -> Bar:
    log = known.heard.get(candidate.replica)
    replica, leading = candidate.replica, candidate.replica == leads
    if log is None:
        why = in_short(candidate.unheard_reason or "not asked for")
        return Bar(replica, candidate.live, candidate.status, candidate.rack, leading, candidate.best, unheard=why)
    same_to = _agreed(log, known.best)
    cut_from, cut_known = _cut(log, None if leads is None else known.heard.get(leads), leads)
    return Bar(
        replica,
        candidate.live,
        candidate.status,
        candidate.rack,
        leading,
        candidate.best,
        start=min(log.log_start or 0, log.log_end),
        start_known=log.log_start is not None,
        end=log.log_end,
        high_watermark=log.high_watermark,
        last_epoch=log.last_epoch,
        same_to=same_to,
        parts_in=_epochs(log, known.best, same_to),
        cut_from=cut_from,
        cut_known=cut_known,
    )


def _agreed(log: ReplicaLog, best: ReplicaLog | None) -> int | None:
    if best is None or (log.last_epoch is None and not log.is_empty):
        return None
    return log.log_end if best.replica == log.replica else agreement(log, best)


def _cut(log: ReplicaLog, leader: ReplicaLog | None, leads: int | None) -> tuple[int | None, bool]:
    """From where on the log is cut when it follows, and whether that is known."""
    if leads is None or leads == log.replica:
        return None, True
    agreed = None if leader is None else agreement(log, leader)
    if agreed is None:
        return None, False
    return (agreed if agreed < log.log_end else None), True


def _epochs(log: ReplicaLog, best: ReplicaLog | None, same_to: int | None) -> tuple[int, int] | None:
    """The epochs of both records where the logs part; None where one continues the other."""
    if best is None or same_to is None or same_to >= min(log.log_end, best.log_end):
        return None
    if log.lineage is None or best.lineage is None:
        return None
    own, other = _epoch_at(log, same_to), _epoch_at(best, same_to)
    return None if own is None or other is None else (own, other)


def _epoch_at(log: ReplicaLog, offset: int) -> int | None:
    return next((one.epoch for one in segments(log) or () if one.start <= offset < one.end), None)
