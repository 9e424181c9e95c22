"""What columns of changes make of partitions: what was told last of each, and how often it changed.

numpy is loaded with this module, which nothing loads that does not fold a long log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from struct import unpack_from
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kelr.replay.packed import Told
from kelr.replay.stretches import KEY_AT, LISTS, Columns

KEY_SIZE = 20
LIST_SIZE = 24
"""At least the byte that counts a list, and five members."""
_LEADER, _RECOVERING = 1, 2
_LIST_BITS = {name: 4 << number for number, name in enumerate(LISTS)}
_WORDS_SIZE = 24
"""A key in three words of eight bytes, of which the last is half used."""
_HALF, _OTHER = np.uint64(0xFFFFFFFF), np.uint64(1)
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_HASH_BITS = 64
_FIRST_ROOM = 1 << 10
_SLOTS_EACH = 4
_MOST_SLOTS = 1 << 22
_MOST_KEPT = 1 << 16

Numbers = npt.NDArray[np.int64]
_Unsigned = npt.NDArray[np.uint64]
_Words = tuple[_Unsigned, _Unsigned, _Unsigned]
_NO_WORDS: _Unsigned = np.zeros(0, np.uint64)
_Keys = npt.NDArray[np.void]
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Sum:
    """All changes of one partition since they were last taken."""

    changes: int
    led: int
    """How many of them named a leader, each a leader epoch of its own."""
    told: Told
    """What was told last."""


class FoldedChanges:
    """Adds up columns of changes; `take` and `take_all` give the sums, and forget them.

    Partitions have numbers in the order in which they come up, and arrays an element for each number. Memory grows with
    the partitions that ever came up, about 300 bytes each, and not with their changes.
    """

    def __init__(self) -> None:
        self._numbers = _KeyNumbers()
        self._room = 0
        self._changes: Numbers = np.zeros(0, np.int64)
        self._led: Numbers = np.zeros(0, np.int64)
        self._known: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        """Which of its fields were told: `_LEADER`, `_RECOVERING`, `_LIST_BITS`."""
        self._leader: npt.NDArray[np.int32] = np.zeros(0, ">i4")
        self._recovering: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._lists: dict[str, _Keys] = {name: np.zeros(0, f"V{LIST_SIZE}") for name in LISTS}
        self.empty = True
        """Whether there is nothing to take."""

    @property
    def partitions(self) -> int:
        """How many ever came up."""
        return len(self._numbers.known)

    def add(self, columns: Columns) -> None:
        """Add changes, in the order of the log."""
        if not len(columns):
            return
        data = columns.data
        of = self._numbers.of(data, columns.at + KEY_AT)
        self._make_room()
        self.empty = False
        np.add.at(self._changes, of, 1)
        # Of several values for one element the last one stays: numpy assigns them in order.
        led = columns.leader.nonzero()[0]
        if len(led):
            whom = of[led]
            np.add.at(self._led, whom, 1)
            self._known[whom] |= _LEADER
            self._leader[whom] = _at_once(data, 4)[columns.leader[led]].view(">i4")
        recovering = columns.recovering.nonzero()[0]
        if len(recovering):
            whom = of[recovering]
            self._known[whom] |= _RECOVERING
            self._recovering[whom] = np.frombuffer(data, np.uint8)[columns.recovering[recovering]]
        for name, kept in self._lists.items():
            where: Numbers = getattr(columns, name)
            told = where.nonzero()[0]
            if len(told):
                whom = of[told]
                self._known[whom] |= _LIST_BITS[name]
                kept[whom] = _at_once(data, LIST_SIZE)[where[told]]

    def take(self, key: bytes) -> Sum | None:
        """The changes of this partition; None where there are none."""
        number = self._numbers.known.get(key)
        if number is None or not self._changes[number]:
            return None
        lists = [kept[number].tobytes() for kept in self._lists.values()]
        told = _told(int(self._known[number]), int(self._leader[number]), int(self._recovering[number]), lists)
        found = Sum(int(self._changes[number]), int(self._led[number]), told)
        self._changes[number] = self._led[number] = self._known[number] = 0
        return found

    def take_all(self) -> Iterator[tuple[bytes, Sum]]:
        """All of them, partitions in the order in which they first came up."""
        changed = self._changes.nonzero()[0]
        keys = list(self._numbers.known)
        columns: list[npt.NDArray[Any]] = [
            changed,
            self._changes[changed],
            self._led[changed],
            self._known[changed],
            self._leader[changed],
            self._recovering[changed],
            *(kept[changed] for kept in self._lists.values()),
        ]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, changes, led, known, leader, recovering, *lists in rows:
            yield keys[number], Sum(changes, led, _told(known, leader, recovering, lists))
        self._changes.fill(0)
        self._led.fill(0)
        self._known.fill(0)
        self.empty = True

    def _make_room(self) -> None:
        needed = len(self._numbers.known)
        if needed <= self._room:
            return
        more = max(_FIRST_ROOM, needed * 3 // 2) - self._room
        self._room += more
        self._changes, self._led = _longer(self._changes, more), _longer(self._led, more)
        self._known, self._recovering = _longer(self._known, more), _longer(self._recovering, more)
        self._leader = _longer(self._leader, more)
        self._lists = {name: _longer(kept, more) for name, kept in self._lists.items()}


class _KeyNumbers:
    """Numbers keys in the order in which they come up.

    `known` is the truth. A table says of most keys at once which number they have: a key has two slots in it, by a
    hash, and what stands in one of them counts only where it is of the same key.
    """

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}
        self._words: _Words = (_NO_WORDS, _NO_WORDS, _NO_WORDS)
        """The keys by number, in three words each; longer than `known`, so that an empty slot leads somewhere."""
        self._slots: Numbers = np.zeros(0, np.int64)
        """Numbers; where there is none, that of the first key, which is another one then."""

    def of(self, data: bytes, at: Numbers) -> Numbers:
        """The numbers of the keys at these positions."""
        if not self.known:
            self._by_name(_at_once(data, KEY_SIZE)[at[:1]])
        pieces = _at_once(data, _WORDS_SIZE)[at].view("<u8").reshape(-1, 3)
        words = pieces[:, 0], pieces[:, 1], pieces[:, 2] & _HALF
        slots = self._slots_of(words)
        numbers = self._slots[slots]
        wrong = self._wrong(numbers, words)
        if len(wrong):
            rest = words[0][wrong], words[1][wrong], words[2][wrong]
            second = self._slots[slots[wrong] ^ _OTHER]
            numbers[wrong] = second
            still = self._wrong(second, rest)
            if len(still):
                self._find(data, at, numbers, wrong[still], slots)
        return numbers

    def _find(self, data: bytes, at: Numbers, numbers: Numbers, wrong: Numbers, slots: _Unsigned) -> None:
        """Put right what the table does not know, and let it know."""
        room = len(self._slots)
        numbers[wrong] = self._by_name(_at_once(data, KEY_SIZE)[at[wrong]])
        if room == len(self._slots):
            where = slots[wrong]
            taken = self._slots[where] != 0
            where[taken] ^= _OTHER
            self._slots[where] = numbers[wrong]

    def _wrong(self, numbers: Numbers, words: _Words) -> Numbers:
        """Which of the keys have other numbers than these."""
        one, two, three = self._words
        wrong: npt.NDArray[np.bool_] = (
            (one[numbers] != words[0]) | (two[numbers] != words[1]) | (three[numbers] != words[2])
        )
        return wrong.nonzero()[0]

    def _by_name(self, keys: _Keys) -> list[int]:
        known, before = self.known, len(self.known)
        found: list[bytes] = keys.tolist()
        numbers = [known.setdefault(key, len(known)) for key in found]
        if len(known) > before:
            self._make_room(len(known))
            behind = bytes(_WORDS_SIZE - KEY_SIZE)
            new = b"".join([key + behind for key in islice(reversed(known), len(known) - before)])
            pieces = np.frombuffer(new, "<u8").reshape(-1, 3)[::-1]
            for number, word in enumerate(self._words):
                word[before : len(known)] = pieces[:, number]
        return numbers

    def _make_room(self, needed: int) -> None:
        have = len(self._words[0])
        if needed < have:
            return
        room = max(_FIRST_ROOM, needed * 2)
        one, two, three = (_longer(word, room - have) for word in self._words)
        self._words = one, two, three
        self._slots = np.zeros(min(1 << (room * _SLOTS_EACH - 1).bit_length(), _MOST_SLOTS), np.int64)

    def _slots_of(self, words: _Words) -> _Unsigned:
        mixed = words[0] * _FACTORS[0]
        mixed ^= mixed >> np.uint64(29)
        mixed += words[1]
        mixed *= _FACTORS[1]
        mixed ^= mixed >> np.uint64(32)
        mixed += words[2]
        mixed *= _FACTORS[2]
        bits = len(self._slots).bit_length() - 1
        return mixed >> np.uint64(_HASH_BITS - bits)


def _at_once(data: bytes, size: int) -> _Keys:
    """The same bytes as an array of overlapping pieces of this size, one for each position."""
    return np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))


def _longer(array: npt.NDArray[_Kind], more: int) -> npt.NDArray[_Kind]:
    return np.concatenate([array, np.zeros(more, array.dtype)])


def _told(known: int, leader: int, recovering: int, lists: Sequence[bytes]) -> Told:
    told: dict[str, object] = {}
    if known & _LEADER:
        told["leader"] = leader
    if known & _RECOVERING:
        told["recovering"] = bool(recovering)
    for (name, bit), listed in zip(_LIST_BITS.items(), lists, strict=True):
        if known & bit:
            told[name] = _members(listed[: 4 * listed[0] - 3])
    return told


@lru_cache(maxsize=_MOST_KEPT)
def _members(listed: bytes) -> tuple[int, ...]:
    """The members of a list: one more than there are in the first byte, then four bytes each."""
    return unpack_from(f">{listed[0] - 1}i", listed, 1)
