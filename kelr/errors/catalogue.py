"""What each code of an error means, how it comes about, and what to do: ``kelr errors`` and docs/errors.md show it."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.errors.entries_classes import CLASSES
from kelr.errors.entries_cluster import CLUSTER
from kelr.errors.entries_contexts import CONTEXTS
from kelr.errors.entries_files import FILES
from kelr.errors.entries_lab import LAB
from kelr.errors.entries_looking import LOOKING
from kelr.errors.entries_recovery import RECOVERY
from kelr.errors.entry import Entry

GROUPS: Mapping[str, tuple[Entry, ...]] = {
    "Reaching a cluster": CLUSTER,
    "Contexts": CONTEXTS,
    "Watching, metrics and reports": LOOKING,
    "Changing a cluster": RECOVERY,
    "Files": FILES,
    "Labs, fleets and scenarios": LAB,
    "In general": CLASSES,
}
"""The entries by what they are about."""

CATALOGUE: Mapping[str, Entry] = {entry.code: entry for group in GROUPS.values() for entry in group}
"""Each entry by its code."""
