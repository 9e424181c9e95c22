"""How long a partition was in trouble, and which of its elections were unclean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history.entries import PartitionEntry


class Trouble(StrEnum):
    """A condition that lasts."""

    LEADERLESS = "leaderless"
    UNDER_MIN_ISR = "under-min-isr"
    """There is a leader, and fewer in sync than min ISR asks for: acks=all is refused."""
    LAST_REPLICA = "last-replica"
    """There is a leader, and of several replicas it alone is in sync."""
    ELR_ONLY = "elr-only"
    """The ISR is empty and the ELR is not: only an ELR member's return helps."""


@dataclass(slots=True)
class Span:
    """How often and how long a partition was in one kind of trouble, by the controller's clock."""

    times: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    since_ms: int | None = None
    """Since when it lasts; None where it does not."""

    def begin(self, at_ms: int) -> None:
        if self.since_ms is None:
            self.times += 1
            self.since_ms = at_ms

    def end(self, at_ms: int) -> None:
        if self.since_ms is not None:
            # Another controller's clock may be behind.
            lasted = max(0, at_ms - self.since_ms)
            self.total_ms += lasted
            self.longest_ms = max(self.longest_ms, lasted)
            self.since_ms = None


@dataclass(slots=True)
class PartitionSummary:
    """What a partition went through in the window."""

    address: TopicPartition
    state: PartitionState | None
    """As it is in the end; None: deleted."""
    known_since_ms: int
    """When it was made, or the log or the window began."""
    spans: dict[Trouble, Span] = field(default_factory=dict)
    min_isr: int | None = None
    min_isr_unknown: bool = False
    """min.insync.replicas was not on record at some time, so that `UNDER_MIN_ISR` may be too short."""
    elections: int = 0
    unsafe: list[PartitionEntry] = field(default_factory=list)
    """Elections of replicas that were neither in ISR nor ELR, or of which that is not known."""
    lasting: dict[Trouble, int] = field(default_factory=dict)
    """Since when each trouble lasts that has not ended; set when the summary is closed."""
    until_ms: int = 0
    """To when the log or the window reaches."""

    def total_ms(self, trouble: Trouble) -> int:
        span = self.spans.get(trouble)
        return 0 if span is None else span.total_ms

    @property
    def eventful(self) -> bool:
        return bool(self.spans or self.unsafe)


MinIsrOf = Callable[[str], int | None]


class Summaries:
    """Follows partitions through a window; those that were never in trouble are kept only where all were asked for."""

    def __init__(self, min_isr_of: MinIsrOf, *, keep_all: bool) -> None:
        self._min_isr_of = min_isr_of
        self._keep_all = keep_all
        self._found: dict[TopicPartition, PartitionSummary] = {}

    def begin(self, state: PartitionState, at_ms: int) -> None:
        """The window begins with a partition in this state."""
        self._look(state.address, state, at_ms)

    def moved(self, entry: PartitionEntry) -> None:
        """A partition changed."""
        summary = self._look(entry.address, entry.after, entry.at.timestamp_ms)
        if summary is None:
            if entry.election is None or entry.election.elected_as.clean:
                return
            summary = self._made(entry.address, entry.after, entry.at.timestamp_ms)
        if entry.election is not None:
            summary.elections += 1
            if entry.election.elected_as.clean is not True:
                summary.unsafe.append(entry)

    def min_isr_changed(self, states: Iterable[PartitionState], at_ms: int) -> None:
        """Another min.insync.replicas holds for these partitions."""
        for state in states:
            self._look(state.address, state, at_ms)

    def close(self, at_ms: int) -> Iterator[PartitionSummary]:
        """End what lasts at the end of the window; the summaries, sorted by address. May be called again later."""
        for address in sorted(self._found):
            summary = self._found[address]
            for trouble, span in summary.spans.items():
                if span.since_ms is not None:
                    began, times = span.since_ms, span.times
                    span.end(at_ms)
                    span.begin(at_ms)
                    span.times = times
                    summary.lasting.setdefault(trouble, began)
            summary.until_ms = at_ms
            yield summary

    def _look(self, address: TopicPartition, state: PartitionState | None, at_ms: int) -> PartitionSummary | None:
        min_isr = None if state is None else self._min_isr_of(address.topic)
        now = set() if state is None else set(_troubles(state, min_isr))
        summary = self._found.get(address)
        if summary is None:
            if not now and not self._keep_all:
                return None
            summary = self._made(address, state, at_ms)
        summary.state = state
        summary.min_isr = min_isr if state is not None else summary.min_isr
        summary.min_isr_unknown |= state is not None and min_isr is None
        for trouble in Trouble:
            if trouble in now:
                summary.spans.setdefault(trouble, Span()).begin(at_ms)
            elif trouble in summary.spans:
                summary.spans[trouble].end(at_ms)
                summary.lasting.pop(trouble, None)
        return summary

    def _made(self, address: TopicPartition, state: PartitionState | None, at_ms: int) -> PartitionSummary:
        self._found[address] = PartitionSummary(address, state, at_ms)
        return self._found[address]


def _troubles(state: PartitionState, min_isr: int | None) -> Iterator[Trouble]:
    if state.leader is None:
        yield Trouble.LEADERLESS
        if not state.isr and state.elr:
            yield Trouble.ELR_ONLY
        return
    if min_isr is not None and len(state.isr) < min_isr:
        yield Trouble.UNDER_MIN_ISR
    if len(state.isr) == 1 and len(state.replicas) > 1:
        yield Trouble.LAST_REPLICA
