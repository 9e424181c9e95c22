"""A cluster's metadata log as its controller writes it: batches into segments that roll by size, and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.fleet.generate.plan import WEEK_MS
from kelr.replay.image import MetadataImage
from kelr.replay.records import LeaderChanged
from kelr.sources.metadata_log.writing import (
    checkpoint_bytes,
    checkpoint_name,
    encode_batch,
    encode_values,
    segment_name,
)

DIRECTORY = "__cluster_metadata-0"
MOST_RECORDS = 10_000
"""The most records of one batch (QuorumController.MAX_RECORDS_PER_BATCH)."""
SEGMENT_MS = WEEK_MS
"""metadata.log.segment.ms: after so long the log rolls, however small the segment is."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was written."""

    end: int
    """The offset after the last record that it contains."""
    name: str
    at_ms: int


class MetadataLog:
    """Appends to the log in a folder; nothing is on disk for sure before it is closed.

    Args:
        folder: None for a log that nobody will read.
    """

    def __init__(self, folder: Path | None, segment_bytes: int) -> None:
        self.folder = folder
        self.end = 0
        """The offset that the next record gets."""
        self.epoch = 1
        """The quorum's leader epoch."""
        self.leader = 0
        """The controller that leads the quorum."""
        self.at_ms = 0
        """When the last batch was appended."""
        self.batches = 0
        self.segments: list[tuple[int, str]] = []
        """(first offset, name), oldest first."""
        self.checkpoints: list[Checkpoint] = []
        self._segment_bytes = segment_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._held_from = 0
        self._held_from_ms = 0
        if folder is not None:
            folder.mkdir(parents=True)

    def append(self, now_ms: int, values: Sequence[bytes]) -> None:
        """Records of one event: one batch, or as many as it takes."""
        for start in range(0, len(values), MOST_RECORDS):
            piece = values[start : start + MOST_RECORDS]
            self._add(encode_values(self.end, self.epoch, now_ms, piece), len(piece), now_ms)

    def append_leader(self, now_ms: int, record: LeaderChanged) -> None:
        """The control record with which a leader's epoch begins, in a batch of its own."""
        self.leader = record.controller
        self._add(encode_batch(self.end, self.epoch, now_ms, [record]), 1, now_ms)

    def checkpoint(self, image: MetadataImage, now_ms: int) -> None:
        """Write all that is on record as a checkpoint."""
        name = checkpoint_name(self.end, self.epoch)
        content = b"".join(checkpoint_bytes(image, contained_ms=self.at_ms, epoch=self.epoch, written_ms=now_ms))
        self._write(name, content)
        self.checkpoints.append(Checkpoint(self.end, name, now_ms))

    def close(self) -> None:
        """Write what is not on disk yet."""
        if self._held:
            self._roll()

    def _add(self, batch: bytes, records: int, now_ms: int) -> None:
        full = self._held_bytes + len(batch) > self._segment_bytes
        if self._held and (full or now_ms - self._held_from_ms > SEGMENT_MS):
            self._roll()
        if not self._held:
            self._held_from_ms = now_ms
        self._held.append(batch)
        self._held_bytes += len(batch)
        self.end += records
        self.batches += 1
        self.at_ms = now_ms

    def _roll(self) -> None:
        name = segment_name(self._held_from)
        self._write(name, b"".join(self._held))
        self.segments.append((self._held_from, name))
        self._held, self._held_bytes, self._held_from = [], 0, self.end

    def _write(self, name: str, content: bytes) -> None:
        if self.folder is not None:
            (self.folder / name).write_bytes(content)
