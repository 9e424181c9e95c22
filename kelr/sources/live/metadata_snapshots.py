"""Snapshots of the metadata log from the controller that leads, and which of them is the oldest."""

from __future__ import annotations

import os
import tempfile  # noqa: TID251 - for what is read, and need not survive a crash
from collections.abc import Callable, Iterator
from typing import IO

from kelr.errors import ConnectError
from kelr.replay.records import RecordBatch
from kelr.sources.base import Progress
from kelr.sources.live.active_controller import ActiveController, FromLeader
from kelr.sources.live.failures import NONE
from kelr.sources.live.metadata_requests import SnapshotId, fetch_snapshot
from kelr.sources.live.transport import Message
from kelr.sources.metadata_log.pieces import Checkpoint, checkpoint_batches, is_whole

FILES_INSTEAD = "try again, or read the files of a controller with --metadata-log"


class SnapshotGoneError(Exception):
    """The controller has no such snapshot, or no longer."""


def oldest_epoch(answered_by_snapshot: Callable[[int], bool], newest: int) -> int:
    """The epoch of the oldest snapshot that the leader has, which it does not tell.

    It answers a Fetch just behind the log's start with a snapshot where the epoch that is named is older than that, and
    otherwise not.

    Args:
        answered_by_snapshot: whether a Fetch that names this epoch is answered with a snapshot.
        newest: the epoch of the newest snapshot.
    """
    low, high = 0, newest
    while low < high:
        middle = (low + high) // 2
        if answered_by_snapshot(middle):
            low = middle + 1
        else:
            high = middle
    return high


def read_snapshot(
    controller: ActiveController, wanted: SnapshotId, *, patience_s: float, progress: Progress | None
) -> Iterator[RecordBatch]:
    """The batches of a snapshot. It is fetched whole before the first of them is given: no other controller's snapshot
    of the same name need have the same bytes.

    Args:
        progress: told of bytes fetched and bytes there.

    Raises:
        SnapshotGoneError: the controller has it not, and nothing was given.
        ConnectError: what the controller gives is no whole snapshot.
        BadInputError: it is whole, and cannot be read all the same.
    """
    with tempfile.TemporaryFile(prefix="kelr-") as spool:
        _fetch(controller, wanted, spool, patience_s=patience_s, progress=progress)
        checkpoint = Checkpoint(
            f"the controller's snapshot {wanted} of the metadata log", wanted.end_offset, wanted.epoch, _Spooled(spool)
        )
        why_not = is_whole(checkpoint)
        if why_not is not None:
            raise ConnectError(f"{checkpoint.name} is not whole: {why_not}", next_step=FILES_INSTEAD)
        yield from checkpoint_batches(checkpoint, lambda _size_bytes: None)


class _Spooled:
    """What was fetched, as bytes of a known size."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._descriptor = spool.fileno()
        self.size_bytes = os.fstat(self._descriptor).st_size

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, at)


def _fetch(
    controller: ActiveController,
    wanted: SnapshotId,
    spool: IO[bytes],
    *,
    patience_s: float,
    progress: Progress | None,
) -> None:
    position, size, leader = 0, None, None
    while size is None or position < size:
        answer = _piece(controller, wanted, position, patience_s)
        if leader is not None and answer.leader != leader:
            position, size, leader = 0, None, None
            spool.seek(0)
            spool.truncate()
            continue
        piece = _checked(answer.partition, wanted, position, size)
        leader, size = answer.leader, answer.partition.size
        spool.write(piece)
        position += len(piece)
        if progress is not None and size is not None:
            progress(position, size)
    spool.flush()


def _piece(controller: ActiveController, wanted: SnapshotId, position: int, patience_s: float) -> FromLeader:
    answer = controller.ask(
        lambda epoch, cluster_id: fetch_snapshot(wanted, position=position, leader_epoch=epoch, cluster_id=cluster_id),
        patience_s=patience_s,
    )
    if answer.error != NONE:
        raise SnapshotGoneError(f"{answer.error} for the snapshot {wanted} at byte {position}")
    return answer


def _checked(found: Message, wanted: SnapshotId, position: int, size: int | None) -> bytes:
    """The bytes of a piece that is the one that was asked for."""
    piece: bytes = found.unaligned_records or b""
    named = (found.snapshot_id.end_offset, found.snapshot_id.epoch)
    fits = found.position == position and 0 < len(piece) <= found.size - position and size in {None, found.size}
    if named != (wanted.end_offset, wanted.epoch) or not fits:
        raise ConnectError(
            f"the controller's answer about the snapshot {wanted} makes no sense: {len(piece)} bytes at"
            f" {found.position} of {found.size}, where byte {position} was asked for",
            next_step=FILES_INSTEAD,
        )
    return piece
