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
    for number, statement in _statements(text):
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


def _statements(text: str) -> Iterator[tuple[int, str]]:
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
