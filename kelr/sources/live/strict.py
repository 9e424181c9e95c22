"""Messages decoded by their schema to the letter: every length within the bytes, nothing null that must not be.

kafka-python's own decoder trusts what it reads. It takes a string that is cut short for the whole one and a negative
count for an empty array, reads numbers of any length, and copies all that is left of an answer for each tagged field.
So kelr makes decoders of its own from kafka-python's schemas; what they give are kafka-python's messages all the same.
Nothing is made room for before its bytes are there.

Source: Kafka's generated `read` methods (MessageDataGenerator), which refuse the same; KIP-482 for tagged fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

from kelr.sources.live.transport import Message

Field = Any
"""A field of one of kafka-python's schemas, which are not typed."""
Decoder = Callable[[memoryview, int], tuple[Message, int]]
"""The message at a position, and the position behind it."""

_API_VERSIONS_KEY = 18
_REQUEST_HEADER = struct.Struct(">hhih")


class MalformedError(ValueError):
    """Bytes that are no such message."""


def decoded(kind: Message, data: memoryview, version: int) -> Message:
    """The message that these bytes are, and nothing else.

    Args:
        kind: a request or response class of kafka-python.

    Raises:
        MalformedError: the bytes are cut short, hold more than the message, or make no sense.
    """
    if kind.API_KEY == _API_VERSIONS_KEY and not kind.is_request() and data[:2] not in {b"\0\0", b""}:
        version = 0  # KIP-511: an error is told in the first version, which every client can read
    message, end = _decode(_decoder(kind[None], version), data, 0)
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes follow the message")
    return message


def decoded_request(kind: Message, frame: bytes, version: int) -> Message:
    """A request with its header in front, as a broker gets it.

    What follows it is passed over, as Kafka does: librdkafka sends more than belongs to a Metadata request.

    Raises:
        MalformedError: the bytes are cut short, or make no sense.
    """
    data = memoryview(frame)
    if len(data) < _REQUEST_HEADER.size:
        raise MalformedError("the header is cut short")
    length = _REQUEST_HEADER.unpack_from(data)[3]
    at = _REQUEST_HEADER.size + max(length, 0)
    if at > len(data) or length < -1:
        raise MalformedError("the client id is cut short")
    if kind.flexible_version_q(version):
        _, at = _decode(_skip_tags, data, at)
    message, _end = _decode(_decoder(kind[None], version), data[at:], 0)
    return message


def header_of(kind: Message, data: memoryview, version: int) -> tuple[int, int]:
    """The correlation id in front of a response, and the position behind the header.

    Raises:
        MalformedError: the bytes are cut short.
    """
    flexible = kind.flexible_version_q(version) and kind.API_KEY != _API_VERSIONS_KEY
    if len(data) < 4:
        raise MalformedError("the header is cut short")
    correlation = int.from_bytes(data[:4], "big", signed=True)
    return correlation, _decode(_skip_tags, data, 4)[1] if flexible else 4


def _decode(decoder: Decoder, data: memoryview, at: int) -> tuple[Message, int]:
    try:
        return decoder(data, at)
    except (struct.error, IndexError):
        raise MalformedError(f"the message is cut short after {len(data)} bytes") from None
    except UnicodeDecodeError as error:
        raise MalformedError(f"a text in it is no UTF-8: {error.reason}") from None


@cache
def _decoder(kind: Message, version: int) -> Decoder:
    writer = _Writer(version, flexible=bool(kind.flexible_version_q(version)))
    writer.line(0, "def decode(data, pos):")
    writer.line(1, "end = len(data)")
    writer.struct(kind._struct, kind, "message", 1)
    writer.line(1, "message._header = None")
    writer.line(1, "return message, pos")
    return writer.made()


class _Writer:
    """Writes the source of a decoder: one function, all loops in place, since it is the work of every answer."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._lines: list[str] = []
        self._count = 0
        self._names: dict[str, Any] = {
            "bits": _bits,
            "long_varint": _long_varint,
            "malformed": _malformed,
            "new": object.__new__,
            "uuid": _uuid,
            "skip_tag": _skip_tag,
            "unpack_from": struct.unpack_from,
        }

    def line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def made(self) -> Decoder:
        exec(compile("\n".join(self._lines), "<strict decoder>", "exec"), self._names)  # from schemas alone
        decoder: Decoder = self._names["decode"]
        return decoder

    def struct(self, struct_field: Field, data_class: Any, into: str, depth: int) -> None:
        """Read a struct into a new object of `data_class`."""
        name = self._new("kind")
        self._names[name] = data_class
        self.line(depth, f"{into} = new({name})")
        self.line(depth, f"{into}._version = {self._version}")
        self.line(depth, f"{into}.tags = {into}.unknown_tags = None")
        run: list[Field] = []
        for field in struct_field.untagged_fields(self._version):
            if field.is_batchable():
                run.append(field)
                continue
            self._numbers(run, into, depth)
            run = []
            self._value(field, f"{into}.{field.name}", depth)
        self._numbers(run, into, depth)
        if self._flexible:
            self._tags(struct_field, into, depth)

    def _numbers(self, run: list[Field], into: str, depth: int) -> None:
        """Numbers that follow each other, at once."""
        if run:
            targets = ", ".join(f"{into}.{field.name}" for field in run)
            shape = ">" + "".join(field._type.fmt for field in run)
            self.line(depth, f"{targets}, = unpack_from('{shape}', data, pos)")
            self.line(depth, f"pos += {struct.calcsize(shape)}")

    def _value(self, field: Field, into: str, depth: int) -> None:
        """Read a field that may be null where the schema says so."""
        nullable = field.nullable_for_version_q(self._version)
        if field.is_array():  # of structs too
            self._array(field, into, depth, nullable=nullable)
        elif field.is_struct():
            if nullable:
                self.line(depth, "pos += 1")
                self.line(depth, f"if data[pos - 1] == 0xff: {into} = None")
                self.line(depth, "else:")
            inside = self._new("inside")
            self.struct(field, field.data_class, inside, depth + nullable)
            self.line(depth + nullable, f"{into} = {inside}")
        else:
            self._simple(field, into, depth, nullable=nullable)

    def _simple(self, field: Field, into: str, depth: int, *, nullable: bool) -> None:
        kind = field.type_str.removeprefix("[]")
        if kind in {"string", "bytes", "records"}:
            length, stop = self._length(depth, size=2 if kind == "string" else 4), self._new("stop")
            self._null(field, into, length, depth, nullable=nullable)
            self.line(depth + 1, f"{stop} = pos + {length}")
            self.line(depth + 1, f"if {stop} > end: malformed('{field.name} is cut short')")
            taken = f"str(data[pos:{stop}], 'utf-8')" if kind == "string" else f"bytes(data[pos:{stop}])"
            self.line(depth + 1, f"{into} = {taken}")
            self.line(depth + 1, f"pos = {stop}")
        elif kind == "uuid":
            self.line(depth, f"{into} = uuid(data, pos)")
            self.line(depth, "pos += 16")
        elif kind == "bitfield":
            self.line(depth, f"{into} = bits(data, pos)")
            self.line(depth, "pos += 4")
        else:
            self.line(depth, f"{into}, = unpack_from('>{field._type.fmt}', data, pos)")
            self.line(depth, f"pos += {field._type.size}")

    def _array(self, field: Field, into: str, depth: int, *, nullable: bool) -> None:
        count, element = self._length(depth, size=4), field.array_of
        self._null(field, into, count, depth, nullable=nullable)
        depth += 1
        if element.is_batchable():
            size = element._type.size
            self.line(depth, f"if {count} * {size} > end - pos: malformed('{field.name} is cut short')")
            self.line(depth, f"{into} = list(unpack_from(f'>{{{count}}}{element._type.fmt}', data, pos))")
            self.line(depth, f"pos += {count} * {size}")
            return
        values, one = self._new("values"), self._new("one")
        # Every element takes a byte at least.
        self.line(depth, f"if {count} > end - pos: malformed('{field.name} is cut short')")
        self.line(depth, f"{into} = {values} = []")
        self.line(depth, f"for _ in range({count}):")
        if element.is_struct():
            self.struct(element, element.data_class, one, depth + 1)
        else:
            self._simple(element, one, depth + 1, nullable=False)
        self.line(depth + 1, f"{values}.append({one})")

    def _length(self, depth: int, *, size: int) -> str:
        """Read a length; -1 stands for null. Before flexible versions it takes `size` bytes."""
        name = self._new("length")
        if self._flexible:
            self._varint(name, depth)
            self.line(depth, f"{name} -= 1")
        else:
            self.line(depth, f"{name}, = unpack_from('>{'h' if size == 2 else 'i'}', data, pos)")
            self.line(depth, f"pos += {size}")
        return name

    def _varint(self, name: str, depth: int) -> None:
        self.line(depth, f"{name} = data[pos]")
        self.line(depth, f"if {name} < 0x80: pos += 1")
        self.line(depth, f"else: {name}, pos = long_varint(data, pos)")

    def _null(self, field: Field, into: str, length: str, depth: int, *, nullable: bool) -> None:
        """What a negative length means; an `else` for the rest is open afterwards."""
        self.line(depth, f"if {length} < 0:")
        if nullable:
            self.line(depth + 1, f"if {length} < -1: malformed('{field.name} has a negative length')")
            self.line(depth + 1, f"{into} = None")
        else:
            self.line(depth + 1, f"malformed('{field.name} is null, or has a negative length')")
        self.line(depth, "else:")

    def _tags(self, struct_field: Field, into: str, depth: int) -> None:
        """Tagged fields: in the order of their numbers, each once, each as long as it says (KIP-482)."""
        known = [field for field in struct_field._fields if field.tagged_field_q(self._version)]
        left, last, tag, stop = (self._new(name) for name in ("left", "last", "tag", "stop"))
        self._varint(left, depth)
        self.line(depth, f"if {left}:")
        depth += 1
        self.line(depth, f"{last} = -1")
        self.line(depth, f"for _ in range({left}):")
        depth += 1
        self._varint(tag, depth)
        self._varint(stop, depth)
        self.line(depth, f"{stop} += pos")
        self.line(depth, f"if {stop} > end or {tag} <= {last}: malformed('tagged fields make no sense')")
        self.line(depth, f"{last} = {tag}")
        for field in known:
            if not field.for_version_q(self._version):
                continue
            self.line(depth, f"if {tag} == {field.tag}:")
            self._value(field, f"{into}.{field.name}", depth + 1)
            self.line(depth + 1, f"if pos != {stop}: malformed('{field.name} has another length than it says')")
            self.line(depth + 1, f"{into}.tags = {{*({into}.tags or ()), '{field.name}'}}")
            self.line(depth + 1, "continue")
        self.line(depth, f"pos = skip_tag({into}, {tag}, data, pos, {stop})")

    def _new(self, name: str) -> str:
        self._count += 1
        return f"{name}{self._count}"


def _malformed(text: str) -> None:
    raise MalformedError(text)


def _long_varint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint of 32 bits at most, and the position behind it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**31:
                break
            return value, at
    raise MalformedError("a length is longer than any")


def _uuid(data: memoryview, at: int) -> UUID | None:
    """The id of all zeros means none, as kafka-python has it."""
    taken = bytes(data[at : at + 16])
    if len(taken) < 16:
        raise MalformedError("an id is cut short")
    found = UUID(bytes=taken)
    return found if found.int else None


def _bits(data: memoryview, at: int) -> set[int] | None:
    """The numbers of the bits that are set, as kafka-python has it; the highest one alone stands for "not told"."""
    (value,) = struct.unpack_from(">I", data, at)
    found = {bit for bit in range(32) if value >> bit & 1}
    return None if found == {31} else found


def _skip_tag(into: Any, tag: int, data: memoryview, at: int, stop: int) -> int:
    """Keep a tagged field that the schema does not know, as kafka-python does."""
    into.unknown_tags = into.unknown_tags or {}
    into.unknown_tags[f"_{tag}"] = bytes(data[at:stop])
    return stop


def _skip_tags(data: memoryview, at: int) -> tuple[None, int]:
    """The position behind the tagged fields of a header."""
    count, at = _varint(data, at)
    last = -1
    for _ in range(count):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
        if at > len(data) or tag <= last:
            raise MalformedError("tagged fields make no sense")
        last = tag
    return None, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    return (data[at], at + 1) if data[at] < 0x80 else _long_varint(data, at)
