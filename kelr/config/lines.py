"""On which line of a TOML file a key stands; Python's reader does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

KeyPath = tuple[str, ...]


def lines_of_keys(text: str) -> Mapping[KeyPath, int]:
    """The line (from 1) of every table and key of a valid TOML document, by its path.

    A document is a row of statements, headers and assignments, each of which is valid by itself: the shortest run of
    lines that can be read is one.
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in statements(text):
        if statement.lstrip().startswith("["):
            table = next(_paths(tomllib.loads(statement)))
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
            continue
        for path in _paths(tomllib.loads(statement)):
            whole = (*table, *path)
            for length in range(len(table) + 1, len(whole) + 1):
                found.setdefault(whole[:length], number)
    return found


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The headers and assignments of a valid TOML document, whole, each with the line (from 1) that it begins on."""
    held: list[str] = []
    first = 0
    # Not str.splitlines: it knows line ends that TOML does not.
    for number, line in enumerate(text.split("\n"), start=1):
        first = number if not held else first
        held.append(line + "\n")
        try:
            empty = not tomllib.loads("".join(held))
        except tomllib.TOMLDecodeError:
            continue
        if not empty:
            yield first, "".join(held)
        held = []


def _paths(values: Mapping[str, Any]) -> Iterator[KeyPath]:
    """The paths of all leaves; of a table without any, its own."""
    for key, value in values.items():
        inner = value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) else value
        if isinstance(inner, dict) and inner:
            yield from ((key, *path) for path in _paths(inner))
        else:
            yield (key,)


def without_tables(text: str, path: KeyPath, instead: str | None = None) -> str | None:
    """The document without the tables at and below a path; None where those are not written as ``[a.b]``.

    Comments right above a table are about it: they go with it, or stay where another text comes in its place.

    Args:
        instead: tables that are put where the first of them was.
    """
    lines = text.split("\n")
    headers = [(number, table) for number, table in _headers(text)]
    starts = [_with_comments(lines, number - 1) for number, _ in headers] + [len(lines)]
    kept, done = lines[: starts[0]], False
    for (number, table), start, end in zip(headers, starts, starts[1:], strict=False):
        if table[: len(path)] != path:
            kept += lines[start:end]
        elif not done and instead is not None:
            gap = [""] if end < len(lines) else []
            kept += [*lines[start : number - 1], *instead.rstrip("\n").split("\n"), *gap]
            done = True
    changed = "\n".join(kept)
    changed = changed if changed.endswith("\n") or not changed else f"{changed}\n"
    return changed if _as_wanted(text, changed, path, instead) else None


def _headers(text: str) -> Iterator[tuple[int, KeyPath]]:
    for number, statement in statements(text):
        if statement.lstrip().startswith("["):
            yield number, next(_paths(tomllib.loads(statement)))


def _with_comments(lines: list[str], at: int) -> int:
    """Where the comments right above a line begin."""
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _as_wanted(before: str, after: str, path: KeyPath, instead: str | None) -> bool:
    """Whether nothing else of the document has changed."""
    expected, found = tomllib.loads(before), tomllib.loads(after)
    for document in (expected, found):
        table = document
        for part in path[:-1]:
            table = table.get(part, {})
        held = table.pop(path[-1], None)
        if document is found and (held is None) != (instead is None):
            return False
    return _without_empty(expected) == _without_empty(found)


def _without_empty(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in values.items() if value != {}}
