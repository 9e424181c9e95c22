"""What each code of an error means, how it comes about, and what to do: ``kelr errors`` and docs/errors.md show it.

The entries themselves are data, in catalogue.toml beside this module.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from kelr.errors import ExitCode


@dataclass(frozen=True, slots=True)
class Entry:
    """One code, told to somebody who has just met it; catalogue.toml says what each field is for."""

    code: str
    exit_code: ExitCode
    title: str
    meaning: str
    cause: str
    remedy: str


GROUPS: Mapping[str, tuple[Entry, ...]] = {
    group: tuple(Entry(code, ExitCode(entry.pop("exit")), **entry) for code, entry in entries.items())
    for group, entries in tomllib.loads(files("kelr.errors").joinpath("catalogue.toml").read_text("utf-8")).items()
}
"""The entries by what they are about."""

CATALOGUE: Mapping[str, Entry] = {entry.code: entry for group in GROUPS.values() for entry in group}
"""Each entry by its code."""
