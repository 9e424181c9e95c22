"""What a view shows of a row: declared once, used by every output format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from kelr.view.styled import Text

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
"""A value of a document; None is "not known" or "there is none", as the column's schema says."""

RowT = TypeVar("RowT")


class Shown(Enum):
    """In which formats a column appears."""

    EVERYWHERE = "everywhere"
    WIDE = "wide"
    """Machine formats and ``-o wide``."""
    MACHINE = "machine"
    """Only json, ndjson, yaml and csv."""
    PEOPLE = "people"
    """Only table and wide: a rendering of what other columns hold for machines."""
    PEOPLE_WIDE = "people-wide"
    """Only wide."""


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """One fact about a row.

    `key` names it in documents and in the CSV header, `title` in tables. `value` gives it to machines (not asked for
    where the column is for people alone), `text` to people; without `text` people see the value, a list as words,
    nothing as ``-``.
    """

    key: str
    title: str
    value: Callable[[RowT], Json] | None = None
    text: Callable[[RowT], Text] | None = None
    shown: Shown = Shown.EVERYWHERE
    right: bool = False
    """Aligned to the right, for numbers."""
    yields: int = 0
    """Where a terminal is too narrow, columns above 0 are left out, highest first, and that is said."""
    hyphenated: bool = False
    """Whether a narrow terminal may break the text behind a hyphen; never so for names."""
    prose: bool = False
    """Whether the text is sentences, which are wrapped before anything else of the table gives way."""
    type: str = ""
    """The value's JSON type for the schema: ``string``, ``integer``, ``boolean`` or ``object``; ``[]`` makes it a list
    of them, and a ``?`` at the end says that it can be null."""
    about: str = ""
    """What the value means, for the schema."""


def column(
    key: str,
    title: str,
    type_: str,
    about: str,
    value: Callable[[RowT], Json] | None = None,
    *,
    text: Callable[[RowT], Text] | None = None,
    shown: Shown = Shown.EVERYWHERE,
    right: bool = False,
    yields: int = 0,
    hyphenated: bool = False,
    prose: bool = False,
) -> Column[RowT]:
    """A column that machines see, too; without `value` it is the row's attribute of that name. See `Column`."""

    def attribute(row: RowT) -> Json:
        return attributes(row, key)[key]

    return Column(key, title, value or attribute, text, shown, right, yields, hyphenated, prose, type_, about)


def for_people(
    title: str,
    text: Callable[[RowT], Text],
    *,
    wide: bool = False,
    right: bool = False,
    yields: int = 0,
    hyphenated: bool = False,
    prose: bool = False,
) -> Column[RowT]:
    """A column that only people see; with `wide`, only by ``-o wide``. The rest: see `Column`."""
    where = Shown.PEOPLE_WIDE if wide else Shown.PEOPLE
    return Column(title.lower(), title, None, text, where, right, yields, hyphenated, prose)


def attributes(value: object, *names: str) -> dict[str, Json]:
    """A value as an object: its attributes of these names, in this order; a tuple becomes a list."""
    found = ((name, getattr(value, name)) for name in names)
    return {name: list(one) if isinstance(one, tuple) else one for name, one in found}


def datum(key: str, type_: str, about: str, value: Callable[[RowT], Json] | None = None) -> Column[RowT]:
    """A column that only machines see."""
    return column(key, key, type_, about, value, shown=Shown.MACHINE)


@dataclass(frozen=True, slots=True)
class Fact:
    """A field of a document that stands beside its items: its name, its JSON type as in `Column`, and its meaning."""

    key: str
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class View(Generic[RowT]):
    """A command's output: a kind and version that scripts can rely on, and the columns of its items.

    With `block`, people get these lines for each row instead of a table.
    """

    kind: str
    """Such as ``kelr/describe``."""
    columns: tuple[Column[RowT], ...]
    version: int = 1
    block: Callable[[RowT], Iterable[Text]] | None = None
    item: Callable[[RowT], Mapping[str, Json]] | None = None
    """The row as an object of json, ndjson and yaml, where that holds more than the columns."""
    head: tuple[Fact, ...] = ()
    """What a document says before its items."""
    tail: tuple[Fact, ...] = ()
    """What a document says after its items."""

    def table_columns(self, *, wide: bool) -> tuple[Column[RowT], ...]:
        shown = {Shown.EVERYWHERE, Shown.PEOPLE} | ({Shown.WIDE, Shown.PEOPLE_WIDE} if wide else set())
        return tuple(column for column in self.columns if column.shown in shown)

    def machine_columns(self) -> tuple[Column[RowT], ...]:
        return tuple(column for column in self.columns if column.value is not None)

    def as_item(self, row: RowT) -> Mapping[str, Json]:
        return item_of(self.columns, row) if self.item is None else self.item(row)


def item_of(columns: Iterable[Column[RowT]], row: RowT) -> dict[str, Json]:
    """The row as an object: of each column that machines see, its key and value."""
    return {column.key: column.value(row) for column in columns if column.value is not None}
