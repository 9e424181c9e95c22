"""Expressions for the partitions of a DescribeTopicPartitions answer: of one shape, of several, and unwanted ones.

A partition's bytes say by their lengths where it ends, so that every expression here matches exactly the bytes of one
partition, or of several that stand one behind the other.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

HEAD = struct.Struct(">hiii")
"""error_code, partition_index, leader_id, leader_epoch."""
ANY = b"...."
"""Dots are quicker than a dot and a number: nothing is counted."""
_NUMBER = struct.Struct(">i")
_LEADER = 6
"""Where the leader stands in a partition."""
_BYTE = 256
_MOST_REGULAR = 62
"""Replicas up to which a list's length takes one byte, and then some."""
_MOST_MIXED = 8
"""Replicas up to which lists of every length have a place in one expression."""
_WHOLE = range(32, 1001)
_MOST_WHOLE = 4
"""Expressions for whole topics: for these numbers of partitions, and so many of them. Making one takes its time."""
_RUN = (64, 32, 16, 8, 4, 2, 1)
"""Parts of a run of partitions that are not all of one size: which of them matched tells how many there were."""

# Possessive, since an expression that could go back would remember each partition. Before Python 3.11.5 such a one went
# wrong where there is a choice in what it repeats (gh-106052).
_POSSESSIVE = sys.version_info >= (3, 11, 5)
_AS_MANY_AS_THERE_ARE = b"*+" if _POSSESSIVE else b"*"

Row = tuple[bytes, bytes, bytes, bytes, bytes]
"""What was passed over before a partition; its number, leader, leader epoch, and all that follows."""
_first = itemgetter(0)


@dataclass(frozen=True, slots=True)
class LookBytes:
    """A `Look` for bytes: expressions for the leader and for each replica, and which shape the rest has to have."""

    leader: bytes = ANY
    replica: bytes = ANY
    leader_ids: frozenset[int] | None = None
    replica_ids: frozenset[int] | None = None
    """The same as ids; None for any."""
    well: bool = True
    no_elr: bool = False
    no_last_known: bool = False
    none_offline: bool = False


def regular_size(replicas: int) -> int:
    """The bytes of a partition that has so many replicas, as many in sync, and nothing else."""
    return HEAD.size + 2 * (1 + 4 * replicas) + 4


class Alike:
    """All partitions of a topic at once, if each has the regular shape and one look.

    Bytes that stand one size apart are one slice: comparing ten of those takes a fifth of what an expression takes.
    """

    def __init__(self, replicas: int, look: LookBytes) -> None:
        self._size = regular_size(replicas)
        count = bytes([replicas + 1])
        isr = HEAD.size + 1 + 4 * replicas
        self._constant = [(HEAD.size, count), (isr, count)]
        self._constant += [
            (isr + 1 + 4 * replicas + n, byte) for n, byte in enumerate((b"\x01", b"\x01", b"\x01", b"\x00"))
        ]
        self._among: list[tuple[int, bytes]] = []
        self._ids(_LEADER, look.leader_ids)
        for number in range(replicas):
            self._ids(HEAD.size + 1 + 4 * number, look.replica_ids)

    def holds(self, data: bytes, at: int, count: int) -> bool:
        """Whether so many such partitions stand here."""
        size = self._size
        here = data[at : at + size * count]
        return (
            len(here) == size * count
            and all(here[place::size] == byte * count for place, byte in self._constant)
            and not any(here[place::size].translate(None, among) for place, among in self._among)
        )

    def _ids(self, place: int, ids: frozenset[int] | None) -> None:
        """An id's first three bytes are 0, and its last is one of these."""
        if ids is not None:
            self._constant += [(place + n, b"\x00") for n in range(3)]
            self._among.append((place + 3, bytes(sorted(ids))))


def alike(replicas: int, looks: Sequence[LookBytes]) -> tuple[Alike, ...]:
    """One for each look; none for a look whose ids are not all below 256, and for lists that are too long."""
    if not 0 < replicas <= _MOST_REGULAR:
        return ()
    return tuple(
        Alike(replicas, look)
        for look in looks
        if all(0 <= one < _BYTE for ids in (look.leader_ids, look.replica_ids) for one in ids or ())
    )


@cache
def regular(replicas: int) -> re.Pattern[bytes] | None:
    """Any partitions with so many replicas and as many in sync, no ELR, no LastKnownELR, nothing offline, no tags."""
    return shape(replicas, [LookBytes()])


def shape(replicas: int, looks: Sequence[LookBytes]) -> re.Pattern[bytes] | None:
    """The same, where the partition has one of these looks: one that is well fits those that ask for less, too."""
    one = _well(replicas, looks)
    return None if one is None else re.compile(b"(?s:(?:%b)%b)" % (one, _AS_MANY_AS_THERE_ARE))


def _well(replicas: int, looks: Sequence[LookBytes]) -> bytes | None:
    """One partition of the regular shape."""
    if not 0 < replicas <= _MOST_REGULAR:
        return None
    count = re.escape(bytes([replicas + 1]))
    lists = [look.leader + ANY + _replicas(replicas, look) for look in looks]
    rest = count + b"." * (4 * replicas) + b"\x01\x01\x01\x00"
    return b"......(?:%b)%b" % (b"|".join(lists), rest)


def _replicas(replicas: int, look: LookBytes) -> bytes:
    count = re.escape(bytes([replicas + 1]))
    return count + (b"." * (4 * replicas) if look.replica == ANY else b"(?:%b){%d}" % (look.replica, replicas))


def one_of(ids: frozenset[int]) -> bytes:
    """An expression for the four bytes of any of these broker ids."""
    by_head: dict[bytes, list[int]] = {}
    for number in sorted(ids):
        if -(2**31) <= number < 2**31:
            wire = _NUMBER.pack(number)
            by_head.setdefault(wire[:3], []).append(wire[3])
    parts = [
        re.escape(head) + b"[" + b"".join(re.escape(bytes([last])) for last in lasts) + b"]"
        for head, lasts in by_head.items()
    ]
    return b"(?:" + b"|".join(parts) + b")" if parts else b"(?!)"


class LooseRun:
    """Unwanted partitions with so many replicas, whatever the lengths of their other lists."""

    def __init__(self, one: bytes) -> None:
        self._one = one
        self._whole: dict[int, re.Pattern[bytes]] = {}

    @cached_property
    def _up_to_127(self) -> re.Pattern[bytes]:
        parts = b"".join(b"(?:(?:%b){%d}())?+" % (self._one, size) for size in _RUN)
        return re.compile(b"(?s:%b)" % parts)

    def behind_all(self, data: bytes, at: int, count: int) -> int | None:
        """The position behind so many that stand here; None where there are fewer, or too many numbers were asked for.

        Most topics of a cluster have one number of partitions.
        """
        pattern = self._whole.get(count)
        if pattern is None:
            if len(self._whole) == _MOST_WHOLE or count not in _WHOLE:
                return None
            pattern = self._whole[count] = re.compile(b"(?s:(?:%b){%d}+)" % (self._one, count))
        found = pattern.match(data, at)
        return None if found is None else found.end()

    def skipped(self, data: bytes, at: int) -> tuple[int, int]:
        """How many stand here, one behind the other, up to 127 of them; and the position behind these."""
        found = self._up_to_127.match(data, at)
        assert found is not None
        spans = found.regs
        return sum(size for size, (start, _) in zip(_RUN, spans[1:], strict=True) if start >= 0), spans[0][1]


def loose(replicas: int, looks: Sequence[LookBytes]) -> LooseRun | None:
    """None where no look is loose, or lists are too long, or this Python cannot."""
    if not _POSSESSIVE or not 0 < replicas <= _MOST_MIXED or all(look.well for look in looks):
        return None
    any_list = _lists(replicas)
    choices = []
    for look in looks:
        if look.well:
            rest = re.escape(bytes([replicas + 1])) + b"." * (4 * replicas) + b"\x01\x01\x01"
        else:
            nullable = b"(?:\x00|%b)" % any_list
            # Most have the regular shape, which is quickly told.
            well = re.escape(bytes([replicas + 1])) + b"." * (4 * replicas) + b"\x01\x01\x01"
            rest = any_list + b"".join(
                (
                    b"\x01" if look.no_elr else nullable,
                    b"\x01" if look.no_last_known else nullable,
                    b"\x01" if look.none_offline else any_list,
                )
            )
            rest = b"(?:%b|%b)" % (well, rest)
        choices.append(look.leader + ANY + _replicas(replicas, look) + rest)
    # Atomic: two looks may match the same partition, and trying both of each of many would never end.
    one = b"(?>......(?:%b)\x00)" % b"|".join(choices)
    return LooseRun(one)


class Several:
    """Partitions with so many replicas and other lists of any length, read many at a time.

    Args:
        skipped: an expression for partitions that are passed over, each of `size` bytes.
    """

    def __init__(self, replicas: int, skipped: bytes | None, size: int) -> None:
        any_list = _lists(replicas)
        nullable = b"(?:\x00|%b)" % any_list
        count = re.escape(bytes([replicas + 1]))
        lists = count + b"." * (4 * replicas) + any_list + nullable * 2 + any_list + b"\x00"
        # Whatever is passed over here is passed over by `shape`, too, so that nothing is asked twice for being wanted.
        before = b"(?:%b)*+" % skipped if skipped is not None else b""
        self._size = size
        self._run = re.compile(b"(?s:(?>%b..............%b)*+)" % (before, lists))
        self._each = re.compile(b"(?s:(%b)..(....)(....)(....)(%b))" % (before, lists))

    def read(self, data: bytes, at: int, left: int) -> tuple[list[Row], int, int]:
        """Partitions that stand here one behind the other, `left` at most, passed over or not.

        Returns:
            Those that are not passed over; how many are; and the position behind the last that is not.
        """
        found = self._run.match(data, at)
        assert found is not None
        parts = self._each.findall(data, at, found.end())
        over = sum(map(len, map(_first, parts))) // self._size
        if over + len(parts) <= left:
            return parts, over, found.end()
        # What follows the topic's last partition looks like one more.
        kept: list[Row] = []
        over, end = 0, at
        for part in parts:
            here = len(part[0]) // self._size
            if left <= here:
                break
            left -= here + 1
            over += here
            end += len(part[0]) + HEAD.size + len(part[-1])
            kept.append(part)
        return kept, over, end


def several(replicas: int, looks: Sequence[LookBytes] | None) -> Several | None:
    """A reader of partitions with so many replicas, but for those of the regular shape that have one of these looks.

    None where lists are too long, or this Python cannot.
    """
    if not _POSSESSIVE or not 0 < replicas <= _MOST_MIXED:
        return None
    return Several(replicas, None if looks is None else _well(replicas, looks), regular_size(replicas))


def _lists(replicas: int) -> bytes:
    """A list of up to so many ids."""
    some = (re.escape(bytes([count + 1])) + b"." * (4 * count) for count in range(replicas, 0, -1))
    return b"(?:\x01|%b)" % b"|".join(some)
