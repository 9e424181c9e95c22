"""What a rescue file says of itself: which records of which replica are in it, how they were read, and what is missing.

The format is described in docs/rescue.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain, count
from typing import Any

from kelr.durable import json_integer
from kelr.errors import BadInputError
from kelr.model import EpochEnd, TopicPartition

FORMAT = "kelr-rescue"
FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 256 * 1024 * 1024
HOLE = "hole"
"""A gap of offsets between two batches of a log that is whole: compaction leaves such, nothing else does."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SEGMENT = re.compile(r"[0-9]{20}\.log")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STRICT = {"strict": True, "extra": "forbid"}
"""Of the manifest, and so of all that is in it."""
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SavedSegment:
    """One file of record batches, as a broker writes them; ``kafka-dump-log.sh`` reads it."""

    name: str
    """The member of the zip, such as ``orders-1/00000000000000000116.log``."""
    size_bytes: int
    sha256: str
    batches: int
    records: int
    """Records of producers; markers are not counted."""
    first_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class SavedGap:
    """Offsets that were asked for and are not in the file."""

    from_offset: int
    to_offset: int | None
    """None where nobody knows how far it reaches."""
    kind: str
    """`kelr.sources.records.UnreadKind`, or `HOLE`."""
    text: str


@dataclass(frozen=True, slots=True)
class SavedEpoch:
    """The offsets `[from_offset, to_offset)` that were written in one leader epoch."""

    epoch: int | None
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class SavedTail:
    """The records of one replica of one partition that are in the file."""

    topic: str
    topic_id: str | None
    partition: int
    replica: int
    how: str
    """``Fetch`` from the replica's broker, or ``log directory``."""
    why: str
    """Why these offsets: which leader's log lacks them, or that somebody named them."""
    from_offset: int
    to_offset: int
    """What was asked for: offsets `[from_offset, to_offset)`. The first batch may begin earlier."""
    segments: tuple[SavedSegment, ...] = ()
    gaps: tuple[SavedGap, ...] = ()
    epochs: tuple[SavedEpoch, ...] = ()
    lineage: tuple[EpochEnd, ...] | None = None
    """The epochs of the source's log up to its end; None where they were not known."""
    log_start: int | None = None
    log_end: int | None = None
    high_watermark: int | None = None
    starts_between_transactions: bool | None = None
    """Whether no transaction was under way where the records begin; None where that was not known."""
    compacted: bool | None = None
    """Whether the topic was compacted; None where its config was not known."""
    read_at_ms: int = 0
    lost_from: int | None = None
    """Where what the leader lacks begins, where `from_offset` is before that: the records before it are those since the
    beginning of the oldest transaction whose end the leader lacks. None: at `from_offset`."""
    lacked_by: int | None = None
    """The replica whose log lacked these records when they were saved; None: they were compared with none."""
    perhaps_held_by: int | None = None
    """The replica whose log began behind them then, without showing whether it had held them."""

    @property
    def address(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def whole(self) -> bool:
        """Whether everything that was asked for is there."""
        return not self.gaps

    @property
    def batches(self) -> int:
        """Batches in its segments, control batches included."""
        return sum(segment.batches for segment in self.segments)

    @property
    def records(self) -> int:
        """Records in its segments, without markers."""
        return sum(segment.records for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        """Bytes of its segments."""
        return sum(segment.size_bytes for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a rescue file but its records."""

    __pydantic_config__ = _STRICT

    format: str
    version: int
    kelr: str
    """The version of kelr that wrote it."""
    cluster_id: str | None
    taken_at_ms: int
    """When the reading began, in milliseconds since 1970 UTC."""
    plan_id: str | None
    """The plan whose elections give these records up."""
    tails: tuple[SavedTail, ...]
    """Sorted by address; several replicas of a partition may have a tail each."""

    @property
    def saved(self) -> tuple[SavedTail, ...]:
        """The tails with offsets that were asked for; each other one tells what a log was that had nothing more."""
        return tuple(tail for tail in self.tails if tail.to_offset > tail.from_offset)

    @property
    def whole(self) -> bool:
        return all(tail.whole for tail in self.tails)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it lies in the file."""
    import json  # noqa: PLC0415 - beside pydantic, which reads it

    return (json.dumps(asdict(manifest), indent=1) + "\n").encode()


def read_manifest(data: bytes, where: str) -> Manifest:
    """A manifest out of the file's bytes.

    Args:
        where: the file's name, for the words of an error.

    Raises:
        BadInputError: it is garbled, contradicts itself, or is of a newer version.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - costs more than most commands take

    version = _version(data, where)
    if version != FORMAT_VERSION:
        raise BadInputError(
            f"{where} has version {version} of the rescue format; this kelr reads {FORMAT_VERSION}",
            next_step="use the kelr that wrote it, or a newer one",
            code="newer-format",
        )
    try:
        manifest: Manifest = _adapter().validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "its start"
        raise BadInputError(f"{where}, {MANIFEST_NAME}, at {place}: {first['msg']}") from error
    for wrong in _contradictions(manifest):
        raise BadInputError(f"{where}, {MANIFEST_NAME}: {wrong}")
    return manifest


def directory_of(tail: SavedTail, used: Collection[str]) -> str:
    """Where the segments of a tail lie in the zip: as in a broker's log directory, and with the replica's number behind
    it, and one more, where earlier tails of the same partition have that name."""
    first = f"{tail.topic}-{tail.partition}"
    names = chain((first, f"{first}.{tail.replica}"), (f"{first}.{tail.replica}.{number}" for number in count(2)))
    return next(name for name in names if name not in used)


def _version(data: bytes, where: str) -> Any:
    import json  # noqa: PLC0415

    try:
        document = json.loads(data, parse_int=json_integer)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{where}, {MANIFEST_NAME}: not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInputError(
            f"{where}: its {MANIFEST_NAME} is not that of a rescue file",
            next_step="give a file that kelr rescue dump wrote",
        )
    return document.get("version")


def _contradictions(manifest: Manifest) -> Iterable[str]:
    names: set[str] = set()
    before: TopicPartition | None = None
    for tail in manifest.tails:
        at = f"{tail.topic}:{tail.partition}"
        if not _TOPIC.fullmatch(tail.topic) or tail.topic in {".", ".."}:
            yield f"{tail.topic[:300]!r} is no topic name"
        if not 0 <= tail.partition < 2**31 or not 0 <= tail.replica < 2**31:
            yield f"{at} of replica {tail.replica} is out of range"
        if before is not None and tail.address < before:
            yield f"{at} is out of order"
        before = tail.address
        if not 0 <= tail.from_offset <= tail.to_offset <= _MOST:
            yield f"{at}: offsets {tail.from_offset} to {tail.to_offset}"
        yield from _segment_contradictions(tail, names)


def _segment_contradictions(tail: SavedTail, names: set[str]) -> Iterable[str]:
    end = 0
    for segment in tail.segments:
        directory, _, name = segment.name.rpartition("/")
        own = re.fullmatch(rf"{re.escape(tail.topic)}-{tail.partition}(\.{tail.replica}(\.\d+)?)?", directory)
        if own is None or not _SEGMENT.fullmatch(name):
            yield f"{segment.name!r} is no segment of {tail.address}"
        elif int(name[:20]) != segment.first_offset:
            yield f"{segment.name} says that it begins at offset {segment.first_offset}"
        if segment.name in names:
            yield f"{segment.name} is there twice"
        names.add(segment.name)
        if not end <= segment.first_offset < segment.end_offset <= _MOST:
            yield f"{segment.name}: offsets {segment.first_offset} to {segment.end_offset}"
        end = segment.end_offset
        if segment.batches < 1 or segment.records < 0 or segment.size_bytes < 1:
            yield f"{segment.name}: {segment.batches} batches, {segment.records} records, {segment.size_bytes} bytes"
        if not _SHA256.fullmatch(segment.sha256):
            yield f"{segment.name}: its sha256 is none"


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(Manifest)
