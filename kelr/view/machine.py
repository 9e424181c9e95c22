"""Output for machines: json, ndjson, yaml and csv, written item by item so that memory stays flat.

What goes into a format has gone through `plain_values`, so that all formats say the same of the same row. All but csv
write ASCII alone, so that no locale and no stray byte of a file's name can hinder or change them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, TextIO, TypeVar

from kelr.page.words import harmless
from kelr.view.alike import Lines
from kelr.view.columns import Json, RowT, View

_Row_contra = TypeVar("_Row_contra", contravariant=True)


class Writer(Protocol[_Row_contra]):
    """Writes one listing in one format: a beginning, any number of items, an end."""

    def begin(self, head: Mapping[str, Json]) -> None: ...

    def items(self, rows: Iterable[_Row_contra]) -> None: ...

    def end(self, tail: Mapping[str, Json]) -> None: ...


class JsonWriter(Generic[RowT]):
    """One document ``{"kind", "version", ..., "items": [...], ...}`` with one item a line."""

    def __init__(self, view: View[RowT], stream: TextIO) -> None:
        self._view, self._stream = view, stream
        self._separator = "\n"
        self._lines = Lines[RowT](lambda row: _dumped(view.as_item(row)), ",\n")

    def begin(self, head: Mapping[str, Json]) -> None:
        fields = {"kind": self._view.kind, "version": self._view.version, **head}
        self._stream.write("{" + _members(fields) + ', "items": [')

    def items(self, rows: Iterable[RowT]) -> None:
        for line in self._lines.of(rows):
            self._stream.write(self._separator + line)
            self._separator = ",\n"

    def end(self, tail: Mapping[str, Json]) -> None:
        closing = "]" if self._separator == "\n" else "\n]"
        self._stream.write(closing + (", " + _members(tail) if tail else "") + "}\n")


class NdjsonWriter(Generic[RowT]):
    """One object a line; head and tail have no place in it."""

    def __init__(self, view: View[RowT], stream: TextIO) -> None:
        self._stream = stream
        self._lines = Lines[RowT](lambda row: _dumped(view.as_item(row)) + "\n")

    def begin(self, head: Mapping[str, Json]) -> None:
        """Nothing: every line is an item."""

    def items(self, rows: Iterable[RowT]) -> None:
        self._stream.writelines(self._lines.of(rows))

    def end(self, tail: Mapping[str, Json]) -> None:
        """Nothing: every line is an item."""


class YamlWriter(Generic[RowT]):
    """The document of `JsonWriter` as YAML 1.1."""

    def __init__(self, view: View[RowT], stream: TextIO) -> None:
        self._view, self._stream = view, stream
        self._empty = True

    def begin(self, head: Mapping[str, Json]) -> None:
        self._stream.write(_yaml({"kind": self._view.kind, "version": self._view.version, **head}))

    def items(self, rows: Iterable[RowT]) -> None:
        for row in rows:
            self._stream.write(("items:\n" if self._empty else "") + _yaml([self._view.as_item(row)]))
            self._empty = False

    def end(self, tail: Mapping[str, Json]) -> None:
        self._stream.write(("items: []\n" if self._empty else "") + (_yaml(tail) if tail else ""))


class CsvWriter(Generic[RowT]):
    """RFC 4180 with a header; a list is its members with spaces between, none of them ``-``, unknown empty."""

    def __init__(self, view: View[RowT], stream: TextIO) -> None:
        self._columns = view.machine_columns()
        self._stream = stream
        self._lines = Lines[RowT](self._line)

    def begin(self, head: Mapping[str, Json]) -> None:
        del head
        self._stream.write(_csv_line([column.key for column in self._columns]))

    def items(self, rows: Iterable[RowT]) -> None:
        self._stream.writelines(self._lines.of(rows))

    def _line(self, row: RowT) -> str:
        values = (column.value(row) for column in self._columns if column.value is not None)
        return _csv_line([_field(plain_values(value)) for value in values])

    def end(self, tail: Mapping[str, Json]) -> None:
        """Nothing: every line after the header is an item."""


def _csv_line(fields: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(fields)
    return line.getvalue()


_SCALARS = frozenset({str, int, float, bool, type(None)})


def plain_values(value: Any) -> Json:
    """The same without types of Python's own: an enum's member is its value, a tuple a list, a mapping a dict."""
    if type(value) in _SCALARS:
        scalar: Json = value
        return scalar
    if isinstance(value, Enum):
        return plain_values(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain_values(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(member) for member in value]
    raise TypeError(f"{type(value).__name__} has no place in a document")


def _field(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return harmless(value)  # RFC 4180 has a place for line ends, and for no other control character
    if isinstance(value, int | float):
        return str(value)
    if not value:
        return "-"
    if isinstance(value, Mapping) or any(isinstance(member, Mapping) for member in value):
        return _dumped(value)
    return " ".join(_field(member) for member in value)


def _dumped(value: Json) -> str:
    # json knows tuples and enumerated strings and numbers by itself, and quickly; it asks for the rest.
    return json.dumps(value, default=plain_values)


def _members(fields: Mapping[str, Json]) -> str:
    return ", ".join(f"{json.dumps(key)}: {_dumped(value)}" for key, value in fields.items())


def _yaml(value: Json) -> str:
    import yaml  # noqa: PLC0415 - only where it is asked for

    # Escaped beyond ASCII: PyYAML would write a next-line character as it is, and read it back as a space.
    text: str = yaml.safe_dump(plain_values(value), sort_keys=False, width=2**20, default_flow_style=False)
    return text
