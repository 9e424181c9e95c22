"""Fields of Kafka's flexible message versions, read from bytes: numbers, strings, ids, arrays, tagged fields.

Nothing is made room for that the bytes cannot hold, and whatever does not fit raises `UnreadableBatchError`.

Source: KIP-482 (compact arrays and strings, tagged fields); ByteUtils.readUnsignedVarint.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from kelr.replay.packed import id_text
from kelr.sources.records.errors import UnreadableBatchError

_T = TypeVar("_T")

ID_SIZE = 16
_NUMBERS = {size: struct.Struct(f">{code}") for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))}
_UINT16 = struct.Struct(">H")
_VARINT_LAST_SHIFT = 28
_MOST_KEPT = 1 << 16
"""Lists of brokers come again and again: so many are kept."""


@lru_cache(maxsize=_MOST_KEPT)
def numbers(raw: bytes) -> tuple[int, ...]:
    """int32s that lie one behind the other."""
    return struct.unpack(f">{len(raw) // 4}i", raw)


class Fields:
    """A place in the bytes of one message, from which fields are taken one after the other.

    Every method raises `UnreadableBatchError` where the bytes do not hold what is asked for.
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.end = len(data)

    def take(self, size: int) -> bytes:
        """So many bytes."""
        start, stop = self.at, self.at + size
        if stop > self.end:
            raise UnreadableBatchError(f"{size} bytes are asked for, and {self.end - start} are left")
        self.at = stop
        return self.data[start:stop]

    def number(self, size: int) -> int:
        """A signed number of 1, 2, 4 or 8 bytes."""
        value: int = _NUMBERS[size].unpack(self.take(size))[0]
        return value

    def uint16(self) -> int:
        value: int = _UINT16.unpack(self.take(2))[0]
        return value

    def boolean(self) -> bool:
        """Any byte but 0 is true (`Readable.readByte() != 0`)."""
        return self.take(1) != b"\0"

    def unsigned(self) -> int:
        """A varint of at most five bytes."""
        value, data = 0, self.data
        for shift in range(0, _VARINT_LAST_SHIFT + 7, 7):
            if self.at >= self.end:
                raise UnreadableBatchError("a number is cut short")
            byte = data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise UnreadableBatchError("a number is longer than 5 bytes")

    def topic_id(self) -> str:
        """An id as Kafka prints it; the same for brokers' incarnations and log directories."""
        return id_text(self.take(ID_SIZE))

    def text(self) -> str:
        """A string that is never null."""
        found = self.nullable_text()
        if found is None:
            raise UnreadableBatchError("a string that must be there is null")
        return found

    def nullable_text(self) -> str | None:
        raw = self.nullable_bytes()
        try:
            return None if raw is None else raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableBatchError(f"a string is no UTF-8: {error.reason}") from error

    def nullable_bytes(self) -> bytes | None:
        size = self.unsigned()
        return None if size == 0 else self.take(size - 1)

    def numbers(self) -> tuple[int, ...]:
        """int32s in an array that is never null."""
        found = self.nullable_numbers()
        if found is None:
            raise UnreadableBatchError("a list that must be there is null")
        return found

    def nullable_numbers(self) -> tuple[int, ...] | None:
        size = self.unsigned()
        return None if size == 0 else numbers(self.take(4 * (size - 1)))

    def ids(self) -> tuple[str, ...]:
        """Ids in an array that is never null."""
        found = self.nullable_ids()
        if found is None:
            raise UnreadableBatchError("a list that must be there is null")
        return found

    def nullable_ids(self) -> tuple[str, ...] | None:
        size = self.unsigned()
        if size == 0:
            return None
        raw = self.take(ID_SIZE * (size - 1))
        return tuple(id_text(raw[at : at + ID_SIZE]) for at in range(0, len(raw), ID_SIZE))

    def array(self, one: Callable[[Fields], _T]) -> list[_T]:
        """An array of structs; each is at least one byte long."""
        size = self.unsigned() - 1
        if size < 0:
            raise UnreadableBatchError("a list that must be there is null")
        if size > self.end - self.at:
            raise UnreadableBatchError(f"a list of {size} is asked for, and {self.end - self.at} bytes are left")
        return [one(self) for _ in range(size)]

    def tagged(self, known: dict[int, Callable[[Fields], object]] | None = None) -> dict[int, object]:
        """The tagged fields at this place, those that are known; others are skipped.

        Args:
            known: how the field of each known tag is read.
        """
        found: dict[int, object] = {}
        for _ in range(self.unsigned()):
            tag, size = self.unsigned(), self.unsigned()
            if size > self.end - self.at:
                raise UnreadableBatchError(f"a tagged field of {size} bytes, and {self.end - self.at} are left")
            stop = self.at + size
            read = None if known is None else known.get(tag)
            if read is None:
                self.at = stop
            elif tag in found:
                raise UnreadableBatchError(f"the tagged field {tag} is there twice")
            else:
                found[tag] = read(self)
            if self.at != stop:
                raise UnreadableBatchError(f"the tagged field {tag} is not as long as it says")
        return found

    def finish(self) -> None:
        """Nothing may follow (AbstractApiMessageSerde.read)."""
        if self.at != self.end:
            raise UnreadableBatchError(f"{self.end - self.at} bytes follow what a record holds")
