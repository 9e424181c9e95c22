"""The batches in a window of bytes as a table, found by their headers; and checksums of NoOpRecords all at once.

Source: `DefaultRecordBatch`. numpy is loaded with this module.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kelr.sources.metadata_log.runs import CRC_FROM, IDLE, IDLE_SIZE
from kelr.sources.records.batches import HEADER_SIZE, MAGIC, PREFIX_SIZE
from kelr.sources.records.crc32c import fastest

Numbers = npt.NDArray[np.int64]

_LENGTH_AT, _MAGIC_AT = 8, 16
_SEEN = struct.Struct(">i4xbI")
"""Length, magic and checksum, behind the base offset."""
_HEADER = np.dtype(
    [
        ("offset", ">i8"),
        ("length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("delta", ">i4"),
        ("base_ms", ">i8"),
        ("time_ms", ">i8"),
        ("producer", "V14"),
        ("count", ">i4"),
    ]
)
_TIME_AT = 27
"""Of the first of the two times, which are the same in a batch of one record."""
_TIME_SIZE = 8
_SMALLEST_RECORD = 7


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Whole batches, one behind the other: an element for each in every array."""

    begin: Numbers
    end: Numbers
    offset: Numbers
    epoch: Numbers
    time_ms: Numbers
    count: Numbers
    """Records in it; 0 where it is not `usual`."""
    usual: npt.NDArray[np.bool_]
    """Whether it is uncompressed, no control batch, whole, and right by its checksum. What is not has to be read
    another way, and may turn out not to be readable."""
    idle: npt.NDArray[np.bool_]
    """Whether it is a single NoOpRecord."""


def batches_in(data: bytes, at: int, size: int) -> tuple[BatchTable, int]:
    """The batches from this position on as far as they can be followed, and where that ends: at what is no whole
    batch, or what is none.

    Args:
        size: how much of the data is looked at.
    """
    begins: list[int] = []
    repeated: list[int] = []
    broken: list[int] = []
    checksum, idle, seen = fastest(), IDLE.match, _SEEN.unpack_from
    while True:
        run = idle(data, at, size)
        if run is not None:
            begins.append(at)
            at = run.end()
            repeated.append((at - begins[-1]) // IDLE_SIZE)
            continue
        if at + HEADER_SIZE > size:
            break
        length, magic, crc = seen(data, at + _LENGTH_AT)
        end = at + PREFIX_SIZE + length
        if magic != MAGIC or length < HEADER_SIZE - PREFIX_SIZE or end > size:
            break
        if checksum(data[at + CRC_FROM : end]) != crc:
            broken.append(at)
        begins.append(at)
        repeated.append(0)
        at = end
    return _table(data, np.array(begins, np.int64), np.array(repeated, np.int64), np.array(broken, np.int64)), at


def _table(data: bytes, begins: Numbers, repeated: Numbers, broken: Numbers) -> BatchTable:
    idle = repeated.repeat(np.maximum(repeated, 1)) > 0
    each = np.maximum(repeated, 1)
    within = np.arange(int(each.sum())) - (each.cumsum() - each).repeat(each)
    begin = begins.repeat(each) + within * IDLE_SIZE
    header = np.ndarray((len(data) - HEADER_SIZE + 1,), f"V{HEADER_SIZE}", data, strides=(1,))[begin].view(_HEADER)
    end = begin + PREFIX_SIZE + header["length"]
    count = header["count"].astype(np.int64)
    usual = (header["attributes"] == 0) & (header["epoch"] >= 0) & (header["time_ms"] >= 0)
    usual &= (count > 0) & (count == header["delta"].astype(np.int64) + 1)
    usual &= count * _SMALLEST_RECORD <= end - begin
    usual &= ~np.isin(begin, broken)
    ticks = idle.nonzero()[0]
    if len(ticks):
        times = header["time_ms"][ticks]
        right = (times == header["base_ms"][ticks]) & (_tick_checksums(times) == header["crc"][ticks])
        usual[ticks[~right]] = False
    return BatchTable(
        begin,
        end,
        header["offset"].astype(np.int64),
        header["epoch"].astype(np.int64),
        header["time_ms"].astype(np.int64),
        np.where(usual, count, 0),
        usual,
        idle & usual,
    )


def _tick_checksums(times: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.uint32]:
    """The checksums that batches of one NoOpRecord have, by their times: nothing else differs between them.

    A checksum is linear: that of two messages' difference is the difference of theirs. So each byte of a time adds its
    own part, whatever the others are.
    """
    nothing, parts = _tick_parts()
    pieces = np.ascontiguousarray(times, ">i8").view(np.uint8).reshape(-1, _TIME_SIZE)
    found = np.full(len(pieces), nothing, np.uint32)
    for place in range(_TIME_SIZE):
        found ^= parts[place][pieces[:, place]]
    return found


@functools.cache
def _tick_parts() -> tuple[int, npt.NDArray[np.uint32]]:
    """The checksum with a time of 0, and for each byte of the time what its values add to it."""
    checksum = fastest()
    plain = bytes(8) + b"\0\0\0\x3c" + bytes(4) + b"\2" + bytes(4) + bytes(6) + bytes(16) + b"\xff" * 14
    plain += b"\0\0\0\x01" + b"\x14\0\0\0\x01\x08\x01\x14\0\0\0"
    assert IDLE.fullmatch(plain) is not None
    nothing = checksum(plain[CRC_FROM:])
    parts = np.zeros((_TIME_SIZE, 256), np.uint32)
    for place in range(_TIME_SIZE):
        for value in range(256):
            message = bytearray(plain[CRC_FROM:])
            for time_at in (_TIME_AT, _TIME_AT + _TIME_SIZE):
                message[time_at - CRC_FROM + place] = value
            parts[place, value] = checksum(bytes(message)) ^ nothing
    return nothing, parts
