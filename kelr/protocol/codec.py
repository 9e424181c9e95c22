"""Kafka's messages: a class for each, compiled from Apache's own schema files (`schemas`), written and read strictly.

Attributes have the names of the schema's fields in snake_case. A struct's class is an attribute of the class that it
stands in, by the schema's name of its type: ``FetchRequest.FetchTopic.FetchPartition``. Decoders are compiled when they
are first used; they refuse what Kafka's generated `read` methods refuse, and make room for nothing before its bytes are
there.

Source: Kafka's message format, clients/src/main/resources/common/message/README.md; KIP-482 for flexible versions and
tagged fields; MessageDataGenerator.
"""

from __future__ import annotations

import json
import pkgutil
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from uuid import UUID

F = TypeVar("F", bound=Callable[..., Any])
Decoder = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value at a position; gives the value and the position behind it."""
Encoder = Callable[[Any], bytes]
Span = tuple[int, int]
"""Versions: the oldest and the newest; none where the oldest is the larger one."""

_NONE: Span = (1, 0)
_OPEN = 2**15
_MOST_KEPT = 16
"""Encoded lists of names, for each field."""
_BLOBS = frozenset({"bytes", "records"})
_NUMBERS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


def _cached(function: F) -> F:
    """`functools.cache`, which mypy lets take no class that knows equality as an argument."""
    return cast("F", cache(function))


class MalformedError(ValueError):
    """Bytes that are no such message."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, as its schema has it."""

    name: str
    kind: str
    """The type, without the brackets of an array: ``int32``, ``string``, or the name of a struct."""
    is_array: bool
    struct: type[Struct] | None
    """The class of its values, or of its elements; None for what is no struct."""
    versions: Span
    nullable: Span
    tag: int | None
    default: Any
    entity: str | None
    """What the value names, by Kafka's word for it, such as ``topicName``."""

    def given(self) -> Any:
        """The value of a message that does not say it."""
        return [] if self.default == () else self.default


class Struct:  # noqa: PLW1641 - its fields change
    """A struct of a message. Fields that are not given have the schema's defaults.

    Mappings stand for structs wherever structs are wanted.

    Raises:
        TypeError: there is no such field.
    """

    __slots__ = ()
    FIELDS: ClassVar[Mapping[str, Field]] = {}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Its fields."""

    def __init__(self, **values: Any) -> None:
        for field in self.FIELDS.values():
            value = values.pop(field.name) if field.name in values else field.given()
            if field.struct is not None and value is not None:
                value = [_made(field.struct, one) for one in value] if field.is_array else _made(field.struct, value)
            setattr(self, field.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(values))}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.FIELDS)})"


class Message(Struct):
    """A request, a response or a record; `version` is the one that it was read in, or is made for."""

    __slots__ = ("version",)
    NAME: ClassVar[str] = ""
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[Span] = _NONE
    FLEXIBLE: ClassVar[Span] = _NONE
    SCHEMA: ClassVar[Mapping[str, Any]] = {}
    version: int | None

    def __init__(self, *, version: int | None = None, **values: Any) -> None:
        super().__init__(**values)
        self.version = version

    @classmethod
    def newest(cls) -> int:
        """The newest version that the schema has."""
        return cls.VERSIONS[1]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether lengths are varints, and tagged fields may follow."""
        return _holds(cls.FLEXIBLE, version)

    def encode(self, version: int | None = None) -> bytes:
        """The bytes of the message, without a header, in this version, else in its own. What the version does not have
        is left out, and so are tagged fields that are as they are by default."""
        in_version = self.version if version is None else version
        if in_version is None:
            raise ValueError(f"the version of {self.NAME} was not named")
        return _encoder(_whole(type(self)), in_version)(self)

    @classmethod
    def decode(cls, data: bytes, version: int) -> Self:
        """The message that these bytes are, and nothing else.

        Raises:
            MalformedError: the bytes are cut short, hold more than the message, or make no sense.
        """
        message, end = cls.decode_start(data, version)
        if end != len(data):
            raise MalformedError(f"{len(data) - end} bytes follow the message")
        return message

    @classmethod
    def decode_start(cls, data: bytes, version: int, at: int = 0) -> tuple[Self, int]:
        """The message that begins at a position, and the position behind it.

        Raises:
            MalformedError: the bytes are cut short, or make no sense.
        """
        message, end = decoded(_decoder(_whole(cls), version), data, at)
        if type(message) is not cls:
            message.__class__ = cls  # under another key, with the same fields
        message.version = version
        return message, end


def decoded(decode: Decoder, data: bytes, at: int) -> tuple[Any, int]:
    """What a decoder reads.

    Raises:
        MalformedError: the bytes are no such value.
    """
    try:
        return decode(data, at)
    except (struct.error, IndexError):
        raise MalformedError(f"the message is cut short after {len(data)} bytes") from None
    except UnicodeDecodeError as error:
        raise MalformedError(f"a text in it is no UTF-8: {error.reason}") from None


@_cached
def message_class(name: str) -> type[Message]:
    """The class of a message such as ``DescribeClusterResponse``, from its schema file.

    Raises:
        FileNotFoundError: there is no such schema.
    """
    # Not by a path: Spark's workers have kelr in an archive.
    text = (pkgutil.get_data(__name__, f"schemas/{name}.json") or b"").decode()
    schema = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    commons = {one["name"]: one["fields"] for one in schema.get("commonStructs", ())}
    attributes = {
        "NAME": name,
        "API_KEY": schema.get("apiKey", -1),
        "VERSIONS": _span(schema["validVersions"]),
        "FLEXIBLE": _span(schema["flexibleVersions"]),
        "SCHEMA": schema,
    }
    made: type[Message] = _Shapes(name, commons).made(name, schema["fields"], Message, attributes)
    return made


def answer_of(request: type[Message]) -> type[Message]:
    """The class of the answers to a request, under the same key."""
    kind = message_class(request.NAME.removesuffix("Request") + "Response")
    return kind if kind.API_KEY == request.API_KEY else under_key(kind, request.API_KEY)


@_cached
def under_key(kind: type[Message], api_key: int) -> type[Message]:
    """The same message under another API key."""
    return type(kind.__name__, (kind,), {"__slots__": (), "__module__": __name__, "API_KEY": api_key})


def element_decoder(name: str, version: int, array: str) -> Decoder:
    """The decoder of one element of an array of structs in a message, such as ``results``."""
    kind = message_class(name)
    element = kind.FIELDS[array].struct
    assert element is not None
    return _struct_decoder(element, version, kind.is_flexible(version))


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of 31 bits at most: a length."""
    value = data[at]
    return (value, at + 1) if value < 0x80 else _long_varint(data, at)


def uvarint_bytes(value: int) -> bytes:
    """Such a varint's bytes."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """So many bytes.

    Raises:
        MalformedError: there are fewer.
    """
    end = at + size
    if size < 0 or end > len(data):
        raise MalformedError("the message is cut short")
    return data[at:end], end


def skipped_tags(data: bytes, at: int) -> int:
    """The position behind tagged fields that nobody here knows. They come in the order of their numbers, each once."""
    count, at = uvarint(data, at)
    last = -1
    for _ in range(count):
        tag, at = uvarint(data, at)
        size, at = uvarint(data, at)
        at += size
        if at > len(data) or tag <= last:
            raise MalformedError("tagged fields make no sense")
        last = tag
    return at


class _Shapes:
    """Makes the classes of one message's structs."""

    def __init__(self, name: str, commons: Mapping[str, Any]) -> None:
        self._message = name
        self._commons = commons
        self._shared: dict[str, type[Struct]] = {}

    def made(self, name: str, fields: Sequence[Mapping[str, Any]], base: type[Any], attributes: dict[str, Any]) -> Any:
        found = [self._field(one) for one in fields]
        return type(
            name,
            (base,),
            {
                "__slots__": tuple(one.name for one in found),
                "__module__": f"{__name__}.{self._message}",
                "FIELDS": {one.name: one for one in found},
                **{one.kind: one.struct for one in found if one.struct is not None},
                **attributes,
            },
        )

    def _field(self, field: Mapping[str, Any]) -> Field:
        kind = field["type"].removeprefix("[]")
        versions, tag = _span(field["versions"]), field.get("tag")
        return Field(
            name=_snake(field["name"]),
            kind=kind,
            is_array=field["type"].startswith("[]"),
            struct=self._struct(kind, field) if kind[0].isupper() else None,
            versions=versions,
            nullable=_span(field.get("nullableVersions") or "none"),
            tag=None if tag is None else int(tag),
            default=_default(field),
            entity=field.get("entityType"),
        )

    def _struct(self, kind: str, field: Mapping[str, Any]) -> type[Struct]:
        if "fields" in field:
            made: type[Struct] = self.made(kind, field["fields"], Struct, {})
            return made
        if kind not in self._shared:
            self._shared[kind] = self.made(kind, self._commons[kind], Struct, {})
        return self._shared[kind]


def _made(kind: type[Struct], value: Any) -> Any:
    return kind(**value) if isinstance(value, Mapping) else value


def _whole(kind: type[Message]) -> type[Message]:
    """The class of the schema, of one that differs from it in its key alone."""
    return kind if "FIELDS" in vars(kind) else _whole(kind.__mro__[1])


def _holds(span: Span, version: int) -> bool:
    return span[0] <= version <= span[1]


def _span(versions: str) -> Span:
    """``0-4``, ``3+``, ``7`` or ``none``."""
    if versions == "none":
        return _NONE
    low, dash, high = versions.rstrip("+").partition("-")
    return int(low), int(high) if dash else (_OPEN if versions.endswith("+") else int(low))


def _default(field: Mapping[str, Any]) -> Any:
    kind, given = field["type"], field.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return ()
    if kind == "bool":
        return given in {True, "true"}
    if kind in _NUMBERS:
        return float(given or 0) if kind == "float64" else int(str(given or 0), 0)
    if kind in _BLOBS:
        return b""
    return given or "" if kind == "string" else None


@_cached
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


# Writing.


@_cached
def _encoder(kind: type[Struct], version: int, flexible: bool | None = None) -> Encoder:
    if flexible is None:
        assert issubclass(kind, Message)
        flexible = kind.is_flexible(version)
    present = [field for field in kind.FIELDS.values() if _holds(field.versions, version)]
    plain = [(field.name, _value_encoder(field, version, flexible)) for field in present if field.tag is None]
    tagged = sorted(
        (field.tag, field.name, _value_encoder(field, version, flexible), field.given())
        for field in present
        if field.tag is not None
    )

    def tail(message: Struct) -> bytes:
        if not tagged:
            return b"\x00"
        values = ((tag, getattr(message, name), write, default) for tag, name, write, default in tagged)
        given = [(tag, write(value)) for tag, value, write, default in values if value != default]
        parts = (uvarint_bytes(tag) + uvarint_bytes(len(data)) + data for tag, data in given)
        return uvarint_bytes(len(given)) + b"".join(parts)

    if not flexible:
        return lambda message: b"".join([write(getattr(message, name)) for name, write in plain])
    return lambda message: b"".join([write(getattr(message, name)) for name, write in plain]) + tail(message)


def _value_encoder(field: Field, version: int, flexible: bool) -> Encoder:
    if field.is_array:
        return _array_encoder(field, _one_encoder(field, version, flexible), flexible)
    write = _one_encoder(field, version, flexible)
    if field.struct is None or not _holds(field.nullable, version):
        return write
    return lambda value: b"\xff" if value is None else b"\x01" + write(value)


def _one_encoder(field: Field, version: int, flexible: bool) -> Encoder:
    if field.struct is not None:
        return _encoder(field.struct, version, flexible)
    if field.kind == "string":
        return lambda value: _text(value, flexible)
    if field.kind == "uuid":
        return lambda value: bytes(16) if value is None else value.bytes
    if field.kind in _BLOBS:
        return lambda value: _counted(value, 4, flexible) + (value or b"")
    return struct.Struct(">" + _NUMBERS[field.kind]).pack


def _array_encoder(field: Field, element: Encoder, flexible: bool) -> Encoder:
    def encode(values: Any) -> bytes:
        return _counted(values, 4, flexible) + b"".join(map(element, values or ()))

    if field.kind != "string":
        return encode
    # The same names stand in one struct after the other: encoded once, where a tuple has them.
    kept = lru_cache(_MOST_KEPT)(encode)
    return lambda value: kept(value) if type(value) is tuple else encode(value)


def _text(value: str | None, flexible: bool) -> bytes:
    data = None if value is None else value.encode("utf-8", "surrogatepass")
    return _counted(data, 2, flexible) + (data or b"")


def _counted(value: Any, size: int, flexible: bool) -> bytes:
    count = -1 if value is None else len(value)
    return uvarint_bytes(count + 1) if flexible else count.to_bytes(size, "big", signed=True)


# Reading.


@_cached
def _decoder(kind: type[Message], version: int) -> Decoder:
    return _struct_decoder(kind, version, kind.is_flexible(version))


@_cached
def _struct_decoder(kind: type[Struct], version: int, flexible: bool) -> Decoder:
    writer = _Writer(version, flexible=flexible)
    writer.line(0, "def decode(data, pos):")
    writer.line(1, "end = len(data)")
    writer.struct(kind, "message", 1)
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
            "long_varint": _long_varint,
            "malformed": _malformed,
            "new": object.__new__,
            "uuid": _uuid,
            "unpack_from": struct.unpack_from,
        }

    def line(self, depth: int, text: str) -> None:
        self._lines.append(" " * depth + text)

    def made(self) -> Decoder:
        exec(compile("\n".join(self._lines), "<decoder>", "exec"), self._names)  # from schemas alone
        decoder: Decoder = self._names["decode"]
        return decoder

    def struct(self, kind: type[Struct], into: str, depth: int) -> None:
        """Read a struct into a new object."""
        name = self._new("kind")
        self._names[name] = kind
        self.line(depth, f"{into} = new({name})")
        run: list[Field] = []
        for field in kind.FIELDS.values():
            if field.tag is not None or not _holds(field.versions, self._version):
                self.line(depth, f"{into}.{field.name} = {field.given()!r}")
            elif field.kind in _NUMBERS and not field.is_array:
                run.append(field)
            else:
                self._numbers(run, into, depth)
                run = []
                self._value(field, f"{into}.{field.name}", depth)
        self._numbers(run, into, depth)
        if self._flexible:
            self._tags(kind, into, depth)

    def _numbers(self, run: list[Field], into: str, depth: int) -> None:
        """Numbers that follow each other, at once."""
        if run:
            targets = ", ".join(f"{into}.{field.name}" for field in run)
            shape = ">" + "".join(_NUMBERS[field.kind] for field in run)
            self.line(depth, f"{targets}, = unpack_from('{shape}', data, pos)")
            self.line(depth, f"pos += {struct.calcsize(shape)}")

    def _value(self, field: Field, into: str, depth: int) -> None:
        """Read a field that may be null where the schema says so."""
        nullable = _holds(field.nullable, self._version)
        if field.is_array:
            self._array(field, into, depth, nullable=nullable)
        elif field.struct is not None:
            if nullable:
                self.line(depth, "pos += 1")
                self.line(depth, f"if data[pos - 1] >= 0x80: {into} = None")
                self.line(depth, "else:")
            inside = self._new("inside")
            self.struct(field.struct, inside, depth + nullable)
            self.line(depth + nullable, f"{into} = {inside}")
        else:
            self._one(field, into, depth, nullable=nullable)

    def _one(self, field: Field, into: str, depth: int, *, nullable: bool) -> None:
        if field.kind == "string" or field.kind in _BLOBS:
            length, stop = self._length(depth, size=2 if field.kind == "string" else 4), self._new("stop")
            self._null(field, into, length, depth, nullable=nullable)
            self.line(depth + 1, f"{stop} = pos + {length}")
            self.line(depth + 1, f"if {stop} > end: malformed('{field.name} is cut short')")
            self.line(depth + 1, f"{into} = data[pos:{stop}]{'.decode()' if field.kind == 'string' else ''}")
            self.line(depth + 1, f"pos = {stop}")
        elif field.kind == "uuid":
            self.line(depth, f"{into} = uuid(data, pos)")
            self.line(depth, "pos += 16")
        else:
            shape = ">" + _NUMBERS[field.kind]
            self.line(depth, f"{into}, = unpack_from('{shape}', data, pos)")
            self.line(depth, f"pos += {struct.calcsize(shape)}")

    def _array(self, field: Field, into: str, depth: int, *, nullable: bool) -> None:
        count = self._length(depth, size=4)
        self._null(field, into, count, depth, nullable=nullable)
        depth += 1
        if field.kind in _NUMBERS:
            shape = _NUMBERS[field.kind]
            size = struct.calcsize(">" + shape)
            self.line(depth, f"if {count} * {size} > end - pos: malformed('{field.name} is cut short')")
            self.line(depth, f"{into} = list(unpack_from(f'>{{{count}}}{shape}', data, pos))")
            self.line(depth, f"pos += {count} * {size}")
            return
        values, one = self._new("values"), self._new("one")
        # Every element takes a byte at least.
        self.line(depth, f"if {count} > end - pos: malformed('{field.name} is cut short')")
        self.line(depth, f"{into} = {values} = []")
        self.line(depth, f"for _ in range({count}):")
        if field.struct is not None:
            self.struct(field.struct, one, depth + 1)
        else:
            self._one(field, one, depth + 1, nullable=False)
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

    def _tags(self, kind: type[Struct], into: str, depth: int) -> None:
        """Tagged fields: in the order of their numbers, each once, each as long as it says (KIP-482). Those that the
        schema does not know are passed over; those of other versions are refused, as Kafka's own readers do."""
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
        for field in kind.FIELDS.values():
            if field.tag is None:
                continue
            self.line(depth, f"if {tag} == {field.tag}:")
            if _holds(field.versions, self._version):
                self._value(field, f"{into}.{field.name}", depth + 1)
                self.line(depth + 1, f"if pos != {stop}: malformed('{field.name} has another length than it says')")
                self.line(depth + 1, "continue")
            else:
                self.line(depth + 1, f"malformed('tag {field.tag} is not valid for version {self._version}')")
        self.line(depth, f"pos = {stop}")

    def _new(self, name: str) -> str:
        self._count += 1
        return f"{name}{self._count}"


def _malformed(text: str) -> None:
    raise MalformedError(text)


def _long_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of 31 bits at most, and the position behind it."""
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


def _uuid(data: bytes, at: int) -> UUID | None:
    """The id of all zeros means none."""
    found, _ = taken(data, at, 16)
    return UUID(bytes=found) if any(found) else None
