"""Any answer that a schema allows, and what a hostile network makes of true bytes."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kelr.protocol.codec import message_class
from tests import kafka_python

_ALL_INT = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_SPOKEN = frozenset(
    {
        "AlterPartitionReassignments",
        "ApiVersions",
        "DescribeAcls",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "Fetch",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "SaslAuthenticate",
        "SaslHandshake",
    }
)
"""What kelr's own connections send."""


@cache
def answers() -> tuple[tuple[Any, int], ...]:
    """kafka-python's class of every response that kelr decodes, in every version that Kafka has."""
    found = {name: kafka_python.classes()[name] for name in sorted(f"{name}Response" for name in _SPOKEN)}
    oldest = {name: message_class(name).VERSIONS[0] for name in found}
    return tuple((kind, at) for name, kind in found.items() for at in range(oldest[name], kind.max_version + 1))


@st.composite
def messages(draw: st.DrawFn, kind: Any, version: int) -> Any:
    """A message of this class, every field of which is anything that its type holds."""
    return kind(version=version, **_values(draw, kind._struct, version))


def _values(draw: st.DrawFn, struct: Any, version: int) -> dict[str, Any]:
    fields = [field for field in struct._fields if field.for_version_q(version)]
    return {
        field.name: _value(draw, field, version)
        for field in fields
        if not field.tagged_field_q(version) or draw(st.booleans())
    }


def _value(draw: st.DrawFn, field: Any, version: int) -> Any:
    if field.nullable_for_version_q(version) and draw(st.integers(0, 3)) == 0:
        return None
    if field.is_array():
        count = draw(st.integers(0, 3))
        return [_element(draw, field, version) for _ in range(count)]
    if field.is_struct():
        return field.data_class(version=version, **_values(draw, field, version))
    return draw(_simple(field.type_str))


def _element(draw: st.DrawFn, field: Any, version: int) -> Any:
    inner = field.array_of
    if inner.is_struct():
        return inner.data_class(version=version, **_values(draw, inner, version))
    return draw(_simple(inner.type_str))


@cache
def _simple(kind: str) -> st.SearchStrategy[Any]:
    if kind in _ALL_INT:
        return st.integers(-(2 ** _ALL_INT[kind]), 2 ** _ALL_INT[kind] - 1) | st.sampled_from([-1, 0, 1])
    return {
        "uint16": st.integers(0, 65535),
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": st.text(max_size=6) | st.text("ab", min_size=120, max_size=140),
        "bytes": st.binary(max_size=140),
        "records": st.binary(max_size=140),
        "uuid": st.none() | st.uuids().filter(lambda one: one.int != 0),
        "bitfield": st.none() | st.sets(st.integers(0, 30)),
    }[kind]


_INTERESTING = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x01\x00",
    b"\x02\x00\x01\x61\x05",
    b"\xc3\x28",
)
"""Counts of gigabytes, negative lengths, numbers without an end, tagged fields, bytes that are no UTF-8."""


@st.composite
def mutations(draw: st.DrawFn) -> tuple[tuple[str, float, bytes], ...]:
    """What is done to the bytes, one thing after the other: (what, where as a part of the whole, with which bytes)."""
    what = st.sampled_from(["flip", "cut", "grow", "insert", "put", "drop", "repeat"])
    where = st.floats(0, 1, exclude_max=True)
    made = st.tuples(what, where, st.sampled_from(_INTERESTING) | st.binary(min_size=1, max_size=6))
    return tuple(draw(st.lists(made, min_size=1, max_size=3)))


def mutated(data: bytes, changes: tuple[tuple[str, float, bytes], ...]) -> bytes:
    """The bytes with these changes."""
    for what, where, given in changes:
        at = int(where * len(data))
        size = len(given)
        data = {
            "flip": lambda data=data, at=at, given=given: (
                data[:at] + bytes([data[at] ^ (given[0] or 1)]) + data[at + 1 :] if data else data
            ),
            "cut": lambda data=data, at=at: data[:at],
            "grow": lambda data=data, given=given: data + given,
            "insert": lambda data=data, at=at, given=given: data[:at] + given + data[at:],
            "put": lambda data=data, at=at, given=given, size=size: data[:at] + given + data[at + size :],
            "drop": lambda data=data, at=at, size=size: data[:at] + data[at + size :],
            "repeat": lambda data=data, at=at, size=size: data[: at + size] + data[at:],
        }[what]()
    return data
