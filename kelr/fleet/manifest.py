"""The manifest of a lake (every file that was looked at), and how far each cluster's log was told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kelr.fleet.inputs import Input
from kelr.fleet.looking import Looked
from kelr.fleet.planning import Told, told_of
from kelr.fleet.tables import INPUTS, LOG_ENDS

if TYPE_CHECKING:
    from kelr.fleet.lake import Changes, Lake


def read_manifest(lake: Lake) -> dict[str, Input]:
    """Every file that was looked at, by its path."""
    return {row["path"]: _input(row) for row in lake.rows(INPUTS)}


def write_manifest(changes: Changes, files: Iterable[Input]) -> None:
    """All of it, in place of what was there."""
    rows = [
        {
            "path": one.path,
            "size_bytes": one.size_bytes,
            "modified": None if one.modified_ms is None else datetime.fromtimestamp(one.modified_ms / 1000, UTC),
            "kind": one.kind,
            "cluster": one.cluster,
            "node": one.node,
            "status": one.status,
            "reason": one.reason,
            "run": one.run,
            "taken_at": datetime.fromtimestamp(one.taken_at_ms / 1000, UTC),
            "looked": None if one.looked is None else one.looked.written(),
        }
        for one in sorted(files, key=lambda one: one.path)
    ]
    changes.put(INPUTS, rows)


def _input(row: Mapping[str, Any]) -> Input:
    modified, looked = row["modified"], row["looked"]
    return Input(
        path=row["path"],
        size_bytes=row["size_bytes"],
        modified_ms=None if modified is None else _ms(modified),
        kind=row["kind"],
        cluster=row["cluster"],
        node=row["node"],
        status=row["status"],
        reason=row["reason"],
        run=row["run"],
        taken_at_ms=_ms(row["taken_at"]),
        looked=None if looked is None else Looked.read(looked),
    )


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def read_told(lake: Lake) -> dict[str, Told]:
    """How far each cluster's log was told."""
    return {row["cluster"]: told_of(row["next_offset"], json.loads(row["spans"])) for row in lake.rows(LOG_ENDS)}


def keep_told(changes: Changes, told: Mapping[str, Told]) -> None:
    """Keep it for the next run."""
    rows = [
        {"cluster": cluster, "next_offset": one.offset, "spans": json.dumps(one.spans)}
        for cluster, one in sorted(told.items())
    ]
    changes.put(LOG_ENDS, rows)
