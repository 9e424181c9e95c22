"""A DescribeTopicPartitions answer as bytes: where its partitions stand in it, and what they hold.

Objects cost: making those of a page of 2,000 partitions takes 6 ms, a walk over the bytes takes a tenth of a
millisecond. Nearly all partitions of a cluster have one shape: as many in sync as replicas, no ELR, no LastKnownELR,
nothing offline. One with r replicas then takes 20 + 8 r bytes, and one compiled regular expression runs over all that
stand one behind the other (`page_shapes`). What fits no expression is read field by field.

Source: DescribeTopicPartitionsResponse.json, version 0 (flexible); KIP-482 for lengths and tags.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain

from kelr.protocol.codec import MalformedError, decoded, skipped_tags, taken, uvarint
from kelr.sources.live.page_shapes import (
    ANY,
    HEAD,
    Alike,
    LookBytes,
    LooseRun,
    Row,
    Several,
    alike,
    loose,
    one_of,
    regular,
    regular_size,
    several,
    shape,
)
from kelr.sources.unwanted import Unwanted

_NUMBER = struct.Struct(">i")
_LEAST_BYTES = HEAD.size + 6
"""A partition whose five lists are empty."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some partitions of a topic: of one size, in one place, or taken out of theirs."""

    start: int
    end: int
    count: int
    """How many; 0 stands for one alone that has a shape of its own."""
    rows: list[Row] | None = None
    """Those that are not all of one size."""


@dataclass(slots=True)
class TopicBytes:
    """One topic of an answer."""

    name: str | None
    topic_id: bytes
    error_code: int
    pieces: list[Piece] = field(default_factory=list)
    left_out: int = 0
    """Partitions that were passed over because they look as nobody wants them."""
    first_replicas: int | None = None
    """Replicas of partition 0, where the topic's part of this answer begins with it."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page starts."""

    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True)
class PageBytes:
    """An answer whose structure was read to its end."""

    data: bytes
    topics: tuple[TopicBytes, ...]
    next_cursor: Cursor | None


class Skipping:
    """By what partitions with one number of replicas are passed over, and read.

    Expressions are made when they are first needed: that takes longer than comparing a hundred pages where all is well.

    Args:
        looks: of unwanted partitions; None: all are wanted.
    """

    def __init__(self, replicas: int, looks: Sequence[LookBytes] | None) -> None:
        self._replicas = replicas
        self._looks = looks
        self.alike: tuple[Alike, ...] = alike(replicas, [LookBytes()] if looks is None else looks)

    @cached_property
    def regular(self) -> re.Pattern[bytes] | None:
        return regular(self._replicas) if self._looks is None else shape(self._replicas, self._looks)

    @cached_property
    def loose(self) -> LooseRun | None:
        return None if self._looks is None else loose(self._replicas, self._looks)

    @cached_property
    def several(self) -> Several | None:
        return several(self._replicas, self._looks)


@cache
def _skipping_none(replicas: int) -> Skipping:
    return Skipping(replicas, None)


class Skip:
    """An `Unwanted` for bytes."""

    def __init__(self, unwanted: Unwanted) -> None:
        self._looks = [
            LookBytes(
                leader=ANY if look.leader_in is None else one_of(look.leader_in),
                replica=ANY if look.replicas_in is None else one_of(look.replicas_in),
                well=look.well,
                no_elr=look.no_elr,
                no_last_known=look.no_last_known,
                none_offline=look.none_offline,
                leader_ids=look.leader_in,
                replica_ids=look.replicas_in,
            )
            for look in unwanted.looks
        ]
        self._by_replicas: dict[int, Skipping] = {}

    def partitions_with(self, replicas: int) -> Skipping:
        """The expressions for partitions with so many replicas."""
        found = self._by_replicas.get(replicas)
        if found is None:
            found = self._by_replicas[replicas] = Skipping(replicas, self._looks)
        return found


def read_page(body: bytes, _version: int = 0, *, skip: Skip | None = None) -> PageBytes:
    """Read an answer's structure.

    Args:
        skip: unwanted partitions, which are passed over and counted.

    Raises:
        MalformedError: the bytes are cut short, or are no such answer.
    """
    (topics, cursor), end = decoded(lambda data, at: _page(data, at, skip), body, 4)
    if end != len(body):
        raise MalformedError("the answer has another length than it says")
    return PageBytes(body, topics, cursor)


_LONGEST_NAME = 126
"""A length that takes one byte; topics with longer names do without the early look."""
_AT_END = re.compile(rb"(?s:\x01([\x02-\x7f])([A-Za-z0-9._-]{1,%d})(.{4})\x00\x00\Z)" % _LONGEST_NAME)
"""A cursor of one topic name, a partition and no tags, and no tags of the answer. 1 is in no topic's name, so that no
other place can match to the end."""


def cursor_at_end(body: bytes) -> Cursor | None:
    """Where the next page starts, looked up at the end of an answer that nobody has read yet; None where there is none,
    or its name is unusual. What `read_page` says counts."""
    found = _AT_END.search(body, max(0, len(body) - _LONGEST_NAME - 8))
    if found is None or found[1][0] != len(found[2]) + 1:
        return None
    (number,) = _NUMBER.unpack(found[3])
    return Cursor(found[2].decode("ascii"), number)


def _page(data: bytes, at: int, skip: Skip | None) -> tuple[tuple[tuple[TopicBytes, ...], Cursor | None], int]:
    count, at = uvarint(data, at)
    if count == 0 or count - 1 > len(data) - at:
        raise MalformedError("the answer is shorter than it says")
    topics = []
    for _ in range(count - 1):
        topic, at = _topic(data, at, skip)
        topics.append(topic)
    cursor = None
    if data[at] == 0xFF:
        at += 1
    else:
        name, at = _text(data, at + 1)
        if name is None:
            raise MalformedError("a cursor without a topic")
        (number,) = _NUMBER.unpack_from(data, at)
        cursor, at = Cursor(name, number), skipped_tags(data, at + 4)
    return (tuple(topics), cursor), skipped_tags(data, at)


def _topic(data: bytes, at: int, skip: Skip | None) -> tuple[TopicBytes, int]:
    error_code = int.from_bytes(data[at : at + 2], "big", signed=True)
    name, at = _text(data, at + 2)
    topic_id, at = taken(data, at, 16)
    at += 1  # is_internal
    count, at = uvarint(data, at)
    left = count - 1
    if left < 0 or left * _LEAST_BYTES > len(data) - at:
        raise MalformedError("the answer is shorter than it says")
    if name is None and error_code == 0:
        raise MalformedError("a topic without a name")
    topic = TopicBytes(name, topic_id, error_code)
    at = _partitions(data, at, left, topic, skip)
    _, at = taken(data, at, 4)  # topic_authorized_operations
    return topic, skipped_tags(data, at)


def _partitions(data: bytes, at: int, left: int, topic: TopicBytes, skip: Skip | None) -> int:
    if left and data[at + 2 : at + 6] == b"\x00\x00\x00\x00":
        topic.first_replicas = uvarint(data, at + HEAD.size)[0] - 1
    whole = left > 1
    while left:
        replicas = data[at + HEAD.size] - 1
        how = _skipping_none(replicas) if skip is None else skip.partitions_with(replicas)
        count = left if whole and any(one.holds(data, at, left) for one in how.alike) else 0
        if whole and not count and how.loose is not None:
            behind = how.loose.behind_all(data, at, left)
            if behind is not None:
                topic.left_out += left
                return behind
        whole = False
        if not count:
            expression = how.regular
            matched = None if expression is None else expression.match(data, at, at + regular_size(replicas) * left)
            count = 0 if matched is None else (matched.end() - at) // regular_size(replicas)
        if count:
            end = at + count * regular_size(replicas)
            if skip is not None:
                topic.left_out += count
            else:
                topic.pieces.append(Piece(at, end, count))
            at, left = end, left - count
            continue
        if how.loose is not None:
            count, end = how.loose.skipped(data, at)
            if 0 < count <= left:
                topic.left_out += count
                at, left = end, left - count
                continue
        at, left = _read_several(data, at, left, topic, how.several)
    return at


def _read_several(data: bytes, at: int, left: int, topic: TopicBytes, several: Several | None) -> tuple[int, int]:
    """Read one partition of any shape, or more; the position behind, and how many are left then."""
    if several is not None:
        rows, passed_over, end = several.read(data, at, left)
        if rows:
            topic.left_out += passed_over
            topic.pieces.append(Piece(at, end, len(rows), rows))
            return end, left - len(rows) - passed_over
    end = _behind_one(data, at)
    topic.pieces.append(Piece(at, end, 0))
    return end, left - 1


def _behind_one(data: bytes, at: int) -> int:
    """The position behind one partition of any shape."""
    at += HEAD.size
    for nullable in (False, False, True, True, False):
        count, at = uvarint(data, at)
        if count == 0 and not nullable:
            raise MalformedError("a partition without its replicas")
        at += 4 * max(0, count - 1)
        if at >= len(data):
            raise MalformedError("the answer is cut short")
    return skipped_tags(data, at)


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = uvarint(data, at)
    if length == 0:
        return None, at
    text, at = taken(data, at, length - 1)
    return text.decode("utf-8"), at


@dataclass(frozen=True, slots=True)
class Members:
    """A partition's lists, as they came."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    offline: tuple[int, ...]


Columns = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[bytes, bytes], ...]]
"""Partition numbers, leader epochs, and what else each partition holds: its leader's four bytes and its lists' bytes,
by which partitions that are alike are known."""


def columns(data: bytes, pieces: list[Piece]) -> Columns:
    """What the pieces hold, in columns."""
    if not pieces:
        return (), (), ()
    if len(pieces) == 1:
        numbers, leaders, epochs, lists = _piece_columns(data, pieces[0])
        return numbers, epochs, tuple(zip(leaders, lists, strict=True))
    found = [_piece_columns(data, piece) for piece in pieces]
    numbers, leaders, epochs, lists = (tuple(chain.from_iterable(part)) for part in zip(*found, strict=True))
    return numbers, epochs, tuple(zip(leaders, lists, strict=True))


def _piece_columns(
    data: bytes, piece: Piece
) -> tuple[tuple[int, ...], tuple[bytes, ...], tuple[int, ...], tuple[bytes, ...]]:
    """Numbers, leaders, epochs and lists."""
    if piece.rows is not None:
        _, numbers, leaders, epochs, lists = zip(*piece.rows, strict=True)
        ints = struct.Struct(f">{len(numbers)}i").unpack
        return ints(b"".join(numbers)), leaders, ints(b"".join(epochs)), lists
    if piece.count:
        size = (piece.end - piece.start) // piece.count
        numbers, leaders, epochs, lists = zip(*_record(size).iter_unpack(data[piece.start : piece.end]), strict=True)
        return numbers, leaders, epochs, lists
    _, number, _, epoch = HEAD.unpack_from(data, piece.start)
    leader = data[piece.start + 6 : piece.start + 10]
    return (number,), (leader,), (epoch,), (data[piece.start + HEAD.size : piece.end],)


@cache
def _record(size: int) -> struct.Struct:
    return struct.Struct(f">2xi4si{size - HEAD.size}s")


def members(key: tuple[bytes, bytes]) -> Members:
    """A partition's lists, from bytes that `columns` gave."""
    leader, lists = key
    replicas, isr, elr, last_known, offline = _lists(lists)
    assert replicas is not None
    assert isr is not None
    assert offline is not None
    return Members(_NUMBER.unpack(leader)[0], replicas, isr, elr, last_known, offline)


def _lists(data: bytes) -> Iterator[tuple[int, ...] | None]:
    at = 0
    for _ in range(5):
        count, at = uvarint(data, at)
        yield None if count == 0 else struct.unpack_from(f">{count - 1}i", data, at)
        at += 4 * max(0, count - 1)
