"""Where kelr keeps what outlives a run: journals of applied plans, and the audit log."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path

from kelr.durable import keep_from_others
from kelr.files import FILES, Files

STATE_DIRECTORY_VARIABLE = "KELR_STATE_DIR"
AUDIT_FILE = "audit.jsonl"
_CLUSTERS = "clusters"
_KELRS_OWN = frozenset({AUDIT_FILE, _CLUSTERS, "lab"})
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def state_directory(environ: Mapping[str, str] | None = None) -> Path:
    """The directory of this user's journals and audit log; it may not exist yet.

    What of it is there already is left to its owner alone: journals and the audit log say who changed what, and resume
    and undo go by them.
    """
    chosen = (os.environ if environ is None else environ).get(STATE_DIRECTORY_VARIABLE)
    if chosen:
        found = Path(chosen)
    else:
        from platformdirs import user_state_path  # noqa: PLC0415 - only where there is no other word

        found = user_state_path("kelr", appauthor=False)
    _keep_from_others(found)
    return found


@functools.cache
def _keep_from_others(state: Path) -> None:
    try:
        names = frozenset(os.listdir(state))
    except OSError:
        return
    if names <= _KELRS_OWN:  # else it is a directory of somebody else's choice, with other things in it
        keep_from_others(state)
    keep_from_others(state / AUDIT_FILE)
    for directory, _, files in os.walk(state / _CLUSTERS):
        for name in ("", *files):
            keep_from_others(Path(directory, name))


def cluster_directory(state: Path, cluster_id: str | None) -> Path:
    """Where the journals of one cluster are."""
    # A cluster id is base64url; one that is garbled must not lead out of the directory.
    return state / _CLUSTERS / (_UNSAFE.sub("_", cluster_id or "") or "unknown")


def every_cluster_directory(state: Path, files: Files = FILES) -> tuple[Path, ...]:
    """The same of all clusters that have one."""
    every = state / _CLUSTERS
    return tuple(every / name for name in sorted(files.listdir(every))) if files.exists(every) else ()


def audit_file(state: Path) -> Path:
    return state / AUDIT_FILE


def has_records(state: Path, files: Files = FILES) -> bool:
    """Whether anything is on record here: an audit line, or the journal of a run that has written none yet."""
    return files.exists(audit_file(state)) or files.exists(state / _CLUSTERS)
