"""Rescue files for tests, made by the code that makes them for users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kelr.model import PartitionState, ReplicaLog
from kelr.rescue.choose import Wanted
from kelr.rescue.dump import TailSource, dump
from kelr.rescue.manifest import Manifest
from kelr.sources.records.stream import Piece
from tests.rescue.batches import log, partition

CLUSTER_ID = "rescue-test-cluster-00"
NOW_MS = 1_700_000_000_000


def tail(
    pieces: Iterable[Piece],
    start: int,
    end: int,
    *,
    state: PartitionState | None = None,
    replica: int = 3,
    held: ReplicaLog | None = None,
    compacted: bool | None = False,
    lacked_by: int | None = None,
    lost_from: int | None = None,
    perhaps_held_by: int | None = None,
) -> tuple[Wanted, TailSource]:
    """A tail to save, whose log gives these pieces."""
    wanted = Wanted(
        state or partition(),
        replica,
        start,
        end,
        "replica 2, which leads, lacks these",
        held or log(replica, (0, end)),
        compacted,
        lacked_by=lacked_by,
        lost_from=lost_from,
        perhaps_held_by=perhaps_held_by,
    )
    return wanted, TailSource("Fetch", lambda _start, _end: pieces)


def save(
    path: Path,
    tails: Sequence[tuple[Wanted, TailSource]],
    *,
    cluster_id: str | None = CLUSTER_ID,
) -> Manifest:
    return dump(path, tails, cluster_id=cluster_id, taken_at_ms=NOW_MS, plan_id="0123456789ab")
