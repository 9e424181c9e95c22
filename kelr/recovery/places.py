"""Where kelr keeps what outlives a run: journals of applied plans, and the audit log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

STATE_DIRECTORY_VARIABLE = "KELR_STATE_DIR"
AUDIT_FILE = "audit.jsonl"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def state_directory(environ: Mapping[str, str] | None = None) -> Path:
    """The directory of this user's journals and audit log; it may not exist yet."""
    chosen = (os.environ if environ is None else environ).get(STATE_DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path  # noqa: PLC0415 - only where there is no other word

    return user_state_path("kelr", appauthor=False)


def cluster_directory(state: Path, cluster_id: str | None) -> Path:
    """Where the journals of one cluster are."""
    # A cluster id is base64url; one that is garbled must not lead out of the directory.
    return state / "clusters" / (_UNSAFE.sub("_", cluster_id or "") or "unknown")


def audit_file(state: Path) -> Path:
    return state / AUDIT_FILE
