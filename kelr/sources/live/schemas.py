"""Kafka's requests and answers by the schemas that kafka-python brings, without loading kafka-python.

Loading it takes a tenth of a second, which is most of what a look at a small cluster takes. Its schema files are
Kafka's own; the codec here reads the same files and gives values with the same names as kafka-python's messages have.
The schemas of requests that kafka-python does not know are kelr's own (`kelr.messages.resources`).
Names of files and fields are Kafka's, attributes are written in snake_case.

Source: Kafka's message format, clients/src/main/resources/common/message/README.md; KIP-482 for flexible versions.
"""

from __future__ import annotations

import importlib.util
import json
import re
import struct
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import kelr.messages

Decoder = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position; gives the value and the position behind it."""
Encoder = Callable[[Any], bytes]
Field = Mapping[str, Any]
"""A field of a schema file."""

_MOST_KEPT = 16
"""Encoded lists of names, for each field."""
_BLOBS = frozenset({"bytes", "records"})
_NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q"}


class WireError(ValueError):
    """Bytes that are no such message."""


class Codec:
    """One message in one version: encodes mappings and sequences, decodes to objects with attributes."""

    def __init__(self, schema: Field, version: int) -> None:
        self.flexible = _holds(schema["flexibleVersions"], version)
        commons = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
        shape = _Shape(version, self.flexible, commons)
        self.encode: Encoder = shape.struct_encoder(schema["fields"])
        self._decode = shape.struct_decoder(schema["fields"])
        self._version = version

    def decode(self, body: bytes) -> Any:
        """The message, with its version as `API_VERSION`, as kafka-python has it.

        Raises:
            WireError: the bytes are cut short, or not such a message.
        """
        message, end = decoded(self._decode, body, 0)
        if end != len(body):
            raise WireError("the answer has another length than it says")
        message.API_VERSION = self._version
        return message


def decoded(decode: Decoder, data: bytes, at: int) -> tuple[Any, int]:
    """What a decoder reads, its errors as `WireError`."""
    try:
        return decode(data, at)
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the answer cannot be read: {error}") from None


@cache
def codec(name: str, version: int) -> Codec:
    """The codec of a message such as ``DescribeClusterResponse``."""
    return Codec(schema(name), version)


@cache
def element_decoder(name: str, version: int, array: str) -> Decoder:
    """The decoder of one element of an array of structs in a message, such as ``Results``."""
    fields: list[Field] = schema(name)["fields"]
    found = next(field for field in fields if field["name"] == array)
    shape = _Shape(version, _holds(schema(name)["flexibleVersions"], version), {})
    return shape.struct_decoder(found["fields"])


@cache
def schema(name: str) -> Field:
    """The schema of a message, from kafka-python's files, or kelr's where it has none."""
    file = _directory() / f"{name}.json"
    if not file.exists():
        file = Path(kelr.messages.__path__[0]) / "resources" / f"{name}.json"
    found: Field = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read_text("utf-8")))
    return found


def newest_version(name: str) -> int:
    """The newest version of a message that its schema has."""
    return _span(schema(name)["validVersions"])[1]


@cache
def _directory() -> Path:
    spec = importlib.util.find_spec("kafka")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "protocol" / "schemas" / "resources"


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        value |= (data[at] & 0x7F) << shift
        if data[at] < 0x80 and value < 2**31:
            return value, at + 1
    raise WireError("a length is longer than any")


def uvarint_bytes(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """So many bytes.

    Raises:
        WireError: there are fewer.
    """
    end = at + size
    if size < 0 or end > len(data):
        raise WireError("the answer is cut short")
    return data[at:end], end


def skipped_tags(data: bytes, at: int) -> int:
    """The position behind tagged fields that nobody here knows."""
    count, at = uvarint(data, at)
    last = -1
    for _ in range(count):
        tag, at = uvarint(data, at)
        size, at = uvarint(data, at)
        _, at = taken(data, at, size)
        last = _later_tag(tag, last)
    return at


def _later_tag(tag: int, last: int) -> int:
    """Tags come in the order of their numbers, each once (KIP-482)."""
    if tag <= last:
        raise WireError("tagged fields make no sense")
    return tag


class _Shape:
    """Makes encoders and decoders for one version of a message."""

    def __init__(self, version: int, flexible: bool, commons: Mapping[str, Any]) -> None:
        self._version = version
        self._flexible = flexible
        self._commons = commons

    def struct_decoder(self, fields: list[Field]) -> Decoder:
        plain = [(_attribute(field), self._decoder(field)) for field in self._present(fields) if "tag" not in field]
        tagged = {
            int(field["tag"]): (_attribute(field), self._decoder(field))
            for field in self._present(fields)
            if "tag" in field
        }
        absent = {_attribute(field): _default(field) for field in fields}
        flexible = self._flexible

        def decode(data: bytes, at: int) -> tuple[Any, int]:
            values = dict(absent)
            for name, read in plain:
                values[name], at = read(data, at)
            if flexible:
                if data[at]:
                    at = _read_tags(data, at, tagged, values)
                else:
                    at += 1
            return SimpleNamespace(**values), at

        return decode

    def struct_encoder(self, fields: list[Field]) -> Encoder:
        plain = [
            (_attribute(field), self._encoder(field), _default(field))
            for field in self._present(fields)
            if "tag" not in field
        ]
        # Sent where they are given; the defaults are what kelr wants of the others.
        tagged = sorted(
            (int(field["tag"]), _attribute(field), self._encoder(field))
            for field in self._present(fields)
            if "tag" in field
        )

        def tail(values: Any) -> bytes:
            if not self._flexible:
                return b""
            given = [(tag, write(values[name])) for tag, name, write in tagged if values.get(name) is not None]
            parts = (uvarint_bytes(tag) + uvarint_bytes(len(data)) + data for tag, data in given)
            return uvarint_bytes(len(given)) + b"".join(parts)

        def encode(values: Any) -> bytes:
            return b"".join(write(values.get(name, default)) for name, write, default in plain) + tail(values)

        return encode

    def _present(self, fields: list[Field]) -> list[Field]:
        return [field for field in fields if _holds(field["versions"], self._version)]

    def _decoder(self, field: Field) -> Decoder:
        kind: str = field["type"]
        nullable = _holds(field.get("nullableVersions") or "none", self._version)
        if kind.startswith("[]"):
            element = self._decoder({**field, "type": kind[2:], "nullableVersions": "none"})
            return self._array_decoder(element, nullable=nullable)
        if kind[0].isupper():
            members = self.struct_decoder(field.get("fields") or self._commons[kind])
            return _nullable_struct(members) if nullable else members
        if kind == "string":
            return self._text_decoder(nullable=nullable)
        if kind == "uuid":
            return _decode_uuid
        if kind in _BLOBS:
            return self._bytes_decoder(nullable=nullable)
        number = struct.Struct(_NUMBERS[kind])
        return lambda data, at: (number.unpack_from(data, at)[0], at + number.size)

    def _length(self, data: bytes, at: int, size: int, *, nullable: bool) -> tuple[int, int]:
        """A length; -1 for null. Before flexible versions it takes `size` bytes."""
        if self._flexible:
            length, at = uvarint(data, at)
            length -= 1
        else:
            number, at = taken(data, at, size)
            length = int.from_bytes(number, "big", signed=True)
        if length < (-1 if nullable else 0) or length > len(data) - at:
            raise WireError("a length makes no sense")
        return length, at

    def _array_decoder(self, element: Decoder, *, nullable: bool) -> Decoder:
        def decode(data: bytes, at: int) -> tuple[Any, int]:
            count, at = self._length(data, at, 4, nullable=nullable)
            if count < 0:
                return None, at
            values = []
            for _ in range(count):
                value, at = element(data, at)
                values.append(value)
            return values, at

        return decode

    def _text_decoder(self, *, nullable: bool) -> Decoder:
        def decode(data: bytes, at: int) -> tuple[Any, int]:
            length, at = self._length(data, at, 2, nullable=nullable)
            if length < 0:
                return None, at
            found, at = taken(data, at, length)
            return found.decode("utf-8"), at

        return decode

    def _bytes_decoder(self, *, nullable: bool) -> Decoder:
        def decode(data: bytes, at: int) -> tuple[Any, int]:
            length, at = self._length(data, at, 4, nullable=nullable)
            return (None, at) if length < 0 else taken(data, at, length)

        return decode

    def _encoder(self, field: Field) -> Encoder:
        kind: str = field["type"]
        if kind.startswith("[]"):
            element = self._encoder({**field, "type": kind[2:], "nullableVersions": ""})
            return self._array_encoder(element, names=kind == "[]string")
        if kind[0].isupper():
            members = self.struct_encoder(field.get("fields") or self._commons[kind])
            if not field.get("nullableVersions"):
                return members
            return lambda value: b"\xff" if value is None else b"\x01" + members(value)
        if kind == "string":
            return self._text
        if kind == "uuid":
            return lambda value: bytes(16) if value is None else value.bytes
        if kind in _BLOBS:
            return lambda value: self._counted(value, 4) + (value or b"")
        return struct.Struct(_NUMBERS[kind]).pack

    def _array_encoder(self, element: Encoder, *, names: bool) -> Encoder:
        def encode(value: Any) -> bytes:
            return self._counted(value, 4) + b"".join(map(element, value or ()))

        if not names:
            return encode
        # The same names stand in one struct after the other: encoded once, where a tuple has them.
        kept = lru_cache(_MOST_KEPT)(encode)
        return lambda value: kept(value) if type(value) is tuple else encode(value)

    def _text(self, value: str | None) -> bytes:
        data = None if value is None else value.encode("utf-8")
        return self._counted(data, 2) + (data or b"")

    def _counted(self, value: Any, size: int) -> bytes:
        count = -1 if value is None else len(value)
        return uvarint_bytes(count + 1) if self._flexible else count.to_bytes(size, "big", signed=True)


def _nullable_struct(members: Decoder) -> Decoder:
    def decode(data: bytes, at: int) -> tuple[Any, int]:
        return (None, at + 1) if data[at] == 0xFF else members(data, at + 1)

    return decode


def _read_tags(data: bytes, at: int, known: Mapping[int, tuple[str, Decoder]], values: dict[str, Any]) -> int:
    count, at = uvarint(data, at)
    last = -1
    for _ in range(count):
        tag, at = uvarint(data, at)
        last = _later_tag(tag, last)
        size, at = uvarint(data, at)
        _, end = taken(data, at, size)
        if tag in known:
            name, read = known[tag]
            values[name], at = read(data, at)
            if at != end:
                raise WireError("a tagged field has another length than it says")
        at = end
    return at


def _decode_uuid(data: bytes, at: int) -> tuple[UUID | None, int]:
    found, end = taken(data, at, 16)
    return UUID(bytes=found) if any(found) else None, end


def _holds(versions: str, version: int) -> bool:
    low, high = _span(versions)
    return low <= version <= high


def _span(versions: str) -> tuple[int, int]:
    """``0-4``, ``3+``, ``7`` or ``none``."""
    if versions == "none":
        return 1, 0
    low, dash, high = versions.rstrip("+").partition("-")
    return int(low), int(high) if dash else (2**15 if versions.endswith("+") else int(low))


def _default(field: Field) -> Any:
    kind, given = field["type"], field.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind in _NUMBERS:
        return given in {True, "true"} if kind == "bool" else int(str(given or 0), 0)
    return given or "" if kind == "string" else None


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _attribute(field: Field) -> str:
    return _snake(field["name"])
