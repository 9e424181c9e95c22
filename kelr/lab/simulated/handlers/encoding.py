"""Pieces of Kafka's encoding, for the answers that are too long to be made of objects.

Source: Kafka's protocol guide, "Protocol Primitive Types".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

int16 = struct.Struct(">h").pack
int32 = struct.Struct(">i").pack
NO_TAGS = b"\x00"


def varint(number: int) -> bytes:
    """UNSIGNED_VARINT."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def string(text: str, *, flexible: bool) -> bytes:
    """COMPACT_STRING, or STRING where the message is not flexible."""
    encoded = text.encode("utf-8", "surrogatepass")
    return (varint(len(encoded) + 1) if flexible else int16(len(encoded))) + encoded


def length(count: int, *, flexible: bool) -> bytes:
    """How many elements an array has."""
    return varint(count + 1) if flexible else int32(count)


@lru_cache(maxsize=1 << 14)
def int32s(numbers: Sequence[int], *, flexible: bool) -> bytes:
    """An array of INT32; `numbers` has to be a tuple."""
    return length(len(numbers), flexible=flexible) + struct.pack(f">{len(numbers)}i", *numbers)
