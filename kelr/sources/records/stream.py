"""What comes out of a log that is read batch by batch: batches, and the places that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kelr.sources.records.batches import BatchHeader


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A batch exactly as the log has it, its checksum verified."""

    header: BatchHeader
    data: bytes


class UnreadKind(StrEnum):
    """Why a part of a log was not read."""

    GONE = "gone"
    """The log does not hold these offsets any more, or never did: deleted, truncated, or moved to tiered storage."""
    CORRUPT = "corrupt"
    """A batch whose bytes do not match its checksum, or bytes that are no batch."""
    TOO_OLD = "too-old"
    """Message format 0 or 1."""
    CHANGED = "changed"
    """The partition changed hands while its log was read, so that what follows may be another history."""
    NO_ANSWER = "no-answer"
    """The broker, or the disk, stopped answering."""
    NOT_AUTHORIZED = "not-authorized"


@dataclass(frozen=True, slots=True)
class Unread:
    """Offsets `[from_offset, to_offset)` that were asked for and not read."""

    from_offset: int
    to_offset: int | None
    """None where nobody knows how far it reaches."""
    kind: UnreadKind
    text: str


Piece = RawBatch | Unread
