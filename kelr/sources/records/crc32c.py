"""CRC-32C (Castagnoli), the checksum of record batches.

Python has no fast one of its own, and one in Python takes 0.1 s a MiB. The package `google-crc32c` uses the processor
(10 GB/s, and 0.1 us for a short batch). Where it has no wheel, `cramjam` serves: Snappy's framing format stores a
CRC-32C of each 64 KiB block of what it compresses, so kelr lets it frame the bytes, takes the blocks' checksums from
the frame, and joins them (5 GB/s, and 5 us for a short batch).

Source: RFC 3720 section 12.1 (polynomial 0x1EDC6F41, reflected), Snappy's framing_format.txt sections 3 and 4, and
zlib's crc32_combine for joining.
"""

from __future__ import annotations

import functools
import struct
import warnings
from collections.abc import Callable

Bytes = bytes | bytearray | memoryview

_POLYNOMIAL = 0x82F63B78
"""CRC-32C's polynomial with its bits reflected."""
_MASK_ADDED = 0xA282EAD8
_ALL = 0xFFFFFFFF
_IDENTIFIER_SIZE = 10
_COMPRESSED, _UNCOMPRESSED = 0, 1
_CHUNK = struct.Struct("<II")


def crc32c(data: Bytes) -> int:
    """The CRC-32C of these bytes."""
    return fastest()(data)


@functools.cache
def fastest() -> Callable[[Bytes], int]:
    """The fastest function for it that is installed: for who needs very many checksums of short pieces."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where it has to do without the processor
            import google_crc32c  # noqa: PLC0415 - not for commands that read no batches
    except ImportError:
        return crc32c_of_frames
    if google_crc32c.implementation != "c":
        return crc32c_of_frames
    by_processor: Callable[[bytes], int] = google_crc32c.value
    return lambda data: by_processor(data if type(data) is bytes else bytes(data))


def crc32c_of_frames(data: Bytes) -> int:
    """The CRC-32C of these bytes, without the package `google-crc32c`."""
    from cramjam import snappy  # noqa: PLC0415 - not for commands that read no batches

    if not len(data):
        return 0
    frame = memoryview(snappy.compress(data))
    at, crc = _IDENTIFIER_SIZE, 0
    while at < len(frame):
        head, masked = _CHUNK.unpack_from(frame, at)
        kind, size = head & 0xFF, head >> 8
        part = _unmasked(masked)
        if kind == _UNCOMPRESSED:
            length = size - 4
        elif kind == _COMPRESSED:
            length = _uncompressed_length(frame, at + _CHUNK.size)
        else:
            raise AssertionError(f"cramjam framed bytes with a chunk of type {kind}")
        crc = part if at == _IDENTIFIER_SIZE else _times(_shift(length), crc) ^ part
        at += 4 + size
    return crc


def _unmasked(masked: int) -> int:
    """Snappy stores a checksum rotated right by 15 bits, plus a constant."""
    rotated = (masked - _MASK_ADDED) & _ALL
    return ((rotated >> 17) | (rotated << 15)) & _ALL


def _uncompressed_length(frame: memoryview, at: int) -> int:
    """The varint that a block of Snappy's raw format starts with."""
    length = shift = 0
    while True:
        byte = frame[at]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length
        at, shift = at + 1, shift + 7


def _times(one: int, other: int) -> int:
    """The product of two polynomials modulo CRC-32C's, bits reflected: bit 31 is x^0."""
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
    return product


@functools.lru_cache(maxsize=1024)
def _shift(length: int) -> int:
    """x^(8 * length) modulo the polynomial: what `length` further bytes do to a checksum."""
    power, square, count = 1 << 31, 1 << 23, length  # x^0, and x^8 for one byte
    while count:
        if count & 1:
            power = _times(square, power)
        square = _times(square, square)
        count >>= 1
    return power
