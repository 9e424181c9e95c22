"""The leader epochs of a log, kept as Kafka keeps them.

Source: `LeaderEpochFileCache` (assign, truncateFromEnd, truncateFromStart) of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kelr.model import EpochEnd


class EpochCache:
    """Leader epochs with the offset at which each begins, oldest first."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        self.grew = False
        """Whether a batch told of an epoch that was not there: others before it may be missing, too."""
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def entries(self) -> Sequence[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return self._entries

    @property
    def latest(self) -> int | None:
        return self._entries[-1][0] if self._entries else None

    def at(self, offset: int) -> int | None:
        """The epoch of the record at this offset; None before the first one."""
        return next((epoch for epoch, start in reversed(self._entries) if start <= offset), None)

    def assign(self, epoch: int, start: int) -> None:
        """An epoch begins here; entries that contradict it go."""
        entries = self._entries
        if entries and epoch == entries[-1][0] and start >= entries[-1][1]:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
        entries.append((epoch, start))

    def saw(self, epoch: int, base_offset: int) -> None:
        """A batch of this epoch, met while a segment is recovered (`LogSegment.recover`)."""
        if not self._entries or epoch > self._entries[-1][0]:
            self.assign(epoch, base_offset)
            self.grew = True

    def clip(self, log_start: int, log_end: int) -> None:
        """Forget what lies outside the log; the epoch that the log starts in begins at its start."""
        while self._entries and self._entries[-1][1] >= log_end:
            self._entries.pop()
        gone = [entry for entry in self._entries if entry[1] <= log_start]
        if gone:
            self._entries[: len(gone)] = [(gone[-1][0], log_start)]

    def lineage(self, log_end: int) -> tuple[EpochEnd, ...]:
        """Each epoch with its end offset (exclusive), oldest first."""
        ends = [*(start for _, start in self._entries[1:]), log_end]
        return tuple(EpochEnd(epoch, end) for (epoch, _), end in zip(self._entries, ends, strict=False))
