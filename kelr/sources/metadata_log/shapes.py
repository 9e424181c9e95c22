"""PartitionChangeRecords of the usual shape, found in bytes all at once.

A record counts as found only if it begins where the one before it ends, stands at the place in its batch that it says,
and each of its bytes is accounted for: all others are read one by one.

Source: `DefaultRecord` (varints in zigzag code), PartitionChangeRecord.json. numpy is loaded with this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kelr.replay.stretches import FIELDS_AT, Columns

BEHIND = 256
"""So many bytes have to stand behind those that are looked at: more than a record of this shape has."""
MOST_PLACES = 1 << 13
"""The place of a record in its batch is a varint of at most two bytes."""
_VERSION = 2
_MOST_FIELDS, _MOST_MEMBERS = 5, 5
_ONE_BYTE = 64
"""Numbers below this are varints of one byte."""
_MOST_SIGNIFICANT = 7
_LEADER, _RECOVERING = 1, 5
_TAGS = (("isr", 0), ("leader", 1), ("recovering", 5), ("elr", 6), ("last_known_elr", 7))
_NO_LEADER = -1

Numbers = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_Truth = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spans:
    """Parts of batches, in the order of the bytes: an element for each in every array."""

    begin: Numbers
    """Where its first record begins."""
    end: Numbers
    """Where its batch ends."""
    place: Numbers
    """The place of that record in its batch."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Which records of some spans fit: those at the beginning of each, without a gap."""

    records: Numbers
    """Their numbers in what was found."""
    counts: Numbers
    """How many there are in each span."""
    places: Numbers
    """The place of each in its batch."""
    ends: Numbers
    """Where what fits ends in each span."""


class FoundChanges:
    """Everything in these bytes that looks like a change of a partition, in order.

    Args:
        data: `BEHIND` bytes longer than what is looked at.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = view = np.frombuffer(data, np.uint8)
        # The version in front of the kind: the kind is rarer among other bytes.
        at = (view[1 : len(data) - BEHIND] == _LEADER + 4).nonzero()[0]
        at = at[(view[at] == 1) & (view[at + 2] == _VERSION)]
        count = view[at + FIELDS_AT].astype(np.int8)
        at = at[(count >= 1) & (count <= _MOST_FIELDS)]
        self._read_fields(at)

    def _read_fields(self, at: Numbers) -> None:
        view = self._bytes
        left = view[at + FIELDS_AT].astype(np.int8)
        here = at + (FIELDS_AT + 1)
        fields: dict[str, Numbers] = {}
        for name, tag in _TAGS:  # in this order they are written (TaggedFields)
            fields[name] = where = np.zeros(len(at), np.int64)
            those = (view[here] == tag).nonzero()[0]
            content = here[those] + 2
            size = view[content - 1].astype(np.int64)
            fits = self._fits(tag, content, size)
            those, content, size = those[fits], content[fits], size[fits]
            where[those] = content
            here[those] = content + size
            left[those] -= 1
        fine = ((left == 0) & (view[here] == 0)).nonzero()[0]  # no field is left, and the record has no headers
        self.at, self.end = at[fine], here[fine]
        self.fields = {name: where[fine] for name, where in fields.items()}

    def _fits(self, tag: int, content: Numbers, size: Numbers) -> _Truth:
        """Whether the content of a field has the size that it must have, and a value of which nothing is to be said."""
        view = self._bytes
        right: _Truth
        if tag == _LEADER:
            leader = np.ndarray((len(self.data) - 3,), "V4", self.data, strides=(1,))[content].view(">i4")
            right = (size == 4) & (leader >= _NO_LEADER)
        elif tag == _RECOVERING:
            right = (size == 1) & (view[content] <= 1)
        else:
            listed = view[content].astype(np.int64)
            right = (listed >= 1) & (listed <= _MOST_MEMBERS + 1) & (size == 4 * listed - 3)
        return right

    def fitting(self, spans: Spans) -> Fitting:
        """The records that fit at the beginning of each span."""
        first = self.at.searchsorted(spans.begin)
        counts = self.at.searchsorted(spans.end) - first
        before = counts.cumsum() - counts
        number = np.arange(int(counts.sum()))
        records = number + (first - before).repeat(counts)
        places = number + (spans.place - before).repeat(counts)
        begins = np.empty(len(records), np.int64)
        begins[1:] = self.end[records[:-1]] + 1
        some = counts.nonzero()[0]
        begins[before[some]] = spans.begin[some]
        wrong = np.append((~self._is_right(begins, places, records)).nonzero()[0], len(records))
        fit = np.minimum(wrong[wrong.searchsorted(before)] - before, counts)
        kept = (number - before.repeat(counts) < fit.repeat(counts)).nonzero()[0]
        ends = spans.begin.copy()
        some = fit.nonzero()[0]
        ends[some] = self.end[records[before[some] + fit[some] - 1]] + 1
        return Fitting(records[kept], fit, places[kept], ends)

    def _is_right(self, begins: Numbers, places: Numbers, records: Numbers) -> _Truth:
        """Whether what stands before each value is what must stand there, from where the record begins."""
        at, end = self.at[records], self.end[records]
        value = end - at
        place_size, value_size = 1 + (places >= _ONE_BYTE), 1 + (value >= _ONE_BYTE)
        rest = value + place_size + value_size + 4  # attributes, time, no key, no headers
        rest_size = 1 + (rest >= _ONE_BYTE)
        here = begins + rest_size
        # Where a record does not begin nearby, as it then does not fit, anything else may be read.
        right: _Truth = (here + 2 + place_size + 1 + value_size == at) & (places < MOST_PLACES)
        here = np.where(right, here, 0)
        view = self._bytes
        right &= self._is_varint(np.where(right, begins, 0), rest)
        right &= (view[here] == 0) & (view[here + 1] == 0)
        right &= self._is_varint(here + 2, places)
        here += place_size + 2
        right &= view[here] == 1
        right &= self._is_varint(here + 1, value)
        return right

    def _is_varint(self, at: Numbers, number: Numbers) -> _Truth:
        """Whether this number, below 8192, stands there, written as Kafka does."""
        view, zigzag = self._bytes, number << 1
        longer = number >= _ONE_BYTE
        same: _Truth = view[at] == ((zigzag & 0x7F) | (longer.astype(np.int64) << _MOST_SIGNIFICANT))
        where = longer.nonzero()[0]
        same[where] &= view[at[where] + 1] == zigzag[where] >> _MOST_SIGNIFICANT
        return same

    def columns(self, records: Numbers, places: Numbers) -> Columns:
        """These records, with these numbers; each is named once, in their order."""
        if len(records) == len(self.at):
            return Columns(self.data, places, self.at, self.end, **self.fields)
        fields = {name: where[records] for name, where in self.fields.items()}
        return Columns(self.data, places, self.at[records], self.end[records], **fields)
