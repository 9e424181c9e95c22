"""One reading of a live metadata log: where it begins, what is committed, and that nothing is left out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kelr.errors import ConnectError
from kelr.replay.records import RecordBatch
from kelr.sources.base import Progress
from kelr.sources.live.active_controller import FIRST_PAUSE_S, LONGEST_PAUSE_S, ActiveController
from kelr.sources.live.metadata_requests import SnapshotId, fetch_metadata
from kelr.sources.live.metadata_snapshots import FILES_INSTEAD, SnapshotGoneError, oldest_epoch, read_snapshot
from kelr.sources.live.transport import Message
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.records.batches import StopKind

FOLLOW_WAIT_S = 1.0
"""How long the controller waits for news before it answers that there are none."""
COMMIT_PAUSE_S = 0.2
"""The longest pause before asking whether what the leader has is committed by now."""
FOLLOW_PATIENCE_S = 120.0
"""How long following goes on without a leader, where `timeout_s` is shorter."""
_MOST_BEGINNINGS = 3
"""So often the reading begins anew where snapshots go while they are read."""
_CUT_ANYWHERE = frozenset({StopKind.END, StopKind.TORN})


class Reading:
    """One reading of the log: where it stands, and what comes next."""

    def __init__(self, controller: ActiveController, *, timeout_s: float, warnings: list[str]) -> None:
        self._controller = controller
        self._timeout_s = timeout_s
        self._transport = controller.transport
        self._warnings = warnings
        self._begun = False
        self._next = 0
        """The offset of the record that comes next."""
        self._last_epoch = 0
        """The epoch of the record before it."""
        self._within = False
        """Whether the next batch may begin before `_next`."""
        self._uncommitted = False
        """Whether the last answer held records that are not committed."""
        self.committed: int | None = None
        """The newest high watermark that was told; None before the first."""

    def until_now(self, progress: Progress | None) -> Iterator[RecordBatch]:
        """What is committed when the reading begins."""
        yield from self._beginning(progress)
        end: int | None = None
        deadline, pause_s = self._transport.ground.steady_s() + self._timeout_s, FIRST_PAUSE_S
        while end is None or self._next < end:
            before = self._next
            yield from self._more(self._timeout_s)
            end = self.committed if end is None else end
            if progress is not None and end is not None:
                progress(min(self._next, end), end)
            if self._next > before:
                deadline, pause_s = self._transport.ground.steady_s() + self._timeout_s, FIRST_PAUSE_S
                continue
            if end is None or self._next < end:
                if self._transport.ground.steady_s() >= deadline:
                    raise self._silent(end)
                self._transport.ground.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def for_ever(self) -> Iterator[RecordBatch]:
        """What comes, as it is committed."""
        yield from self._beginning(None)
        patience_s = max(self._timeout_s, FOLLOW_PATIENCE_S)
        pause_s = FIRST_PAUSE_S
        while True:
            before = self._next
            yield from self._more(patience_s, wait_s=FOLLOW_WAIT_S)
            if self._uncommitted and self._next == before:
                # The leader gives what is not committed yet at once, however long it was told to wait.
                self._transport.ground.sleep(pause_s)
                pause_s = min(2 * pause_s, COMMIT_PAUSE_S)
            else:
                pause_s = FIRST_PAUSE_S

    def _more(self, patience_s: float, *, wait_s: float = 0.0) -> Iterator[RecordBatch]:
        """The committed batches of one answer."""
        found = self._fetch(self._next, self._last_epoch, patience_s=patience_s, wait_s=wait_s)
        if found.diverging_epoch is not None:
            raise ConnectError(
                f"the controller's metadata log parts at offset {found.diverging_epoch.end_offset} from what was read"
                f" up to offset {self._next} and was committed: the quorum has lost records",
                next_step="compare the logs of the controllers' disks with --metadata-log",
            )
        if found.snapshot_id is not None:
            yield from self._jump(found)
            return
        if found.high_watermark >= 0:
            self.committed = max(self.committed or 0, found.high_watermark)
        yield from self._committed_batches(found.records or b"")

    def _committed_batches(self, records: bytes) -> Iterator[RecordBatch]:
        reader = BatchReader(records)
        self._uncommitted = False
        for batch in reader:
            if self.committed is None or batch.next_offset > self.committed:
                self._uncommitted = True
                return
            self._check(batch)
            self._next, self._last_epoch, self._within = batch.next_offset, batch.epoch, False
            yield batch
        stop = reader.stop
        if stop is not None and stop.kind not in _CUT_ANYWHERE:
            raise ConnectError(
                f"the controller's metadata log cannot be read from offset {self._next} on: {stop.text}",
                next_step="read the files of another controller with --metadata-log",
            )

    def _check(self, batch: RecordBatch) -> None:
        """That nothing is left out, and nothing told twice."""
        inside = (
            batch.base_offset <= self._next < batch.next_offset if self._within else batch.base_offset == self._next
        )
        if not inside or (batch.epoch < self._last_epoch and not self._within):
            raise ConnectError(
                f"the controller's answer makes no sense: after offset {self._next} of epoch {self._last_epoch} comes a"
                f" batch of offset {batch.base_offset} and epoch {batch.epoch}",
                next_step=FILES_INSTEAD,
            )
        if self._within and batch.base_offset > 0 and batch.base_offset == self._next == 1:
            self._warnings.append(
                "the first record of the metadata log, which tells who led the quorum first, is not given by a"
                " controller that has snapshots"
            )

    # Where the log begins.

    def _beginning(self, progress: Progress | None) -> Iterator[RecordBatch]:
        if self._begun:
            return
        for _ in range(_MOST_BEGINNINGS):
            found = self._fetch(0, 0, patience_s=self._timeout_s)
            if found.snapshot_id is None:
                self._begun = True
                return
            newest = _snapshot_id(found.snapshot_id)
            start: int = found.log_start_offset
            if start <= 0:
                # A controller that has snapshots gives nothing from offset 0 on. From the next on it does, to whoever
                # names an epoch that it has, and whole batches.
                self._begun, self._within, self._next, self._last_epoch = True, True, 1, newest.epoch
                return
            try:
                oldest = self._oldest(start, newest)
                yield from self._snapshot(oldest, progress)
            except SnapshotGoneError:
                continue  # it was deleted just now, or another controller leads
            return
        raise ConnectError(
            f"the snapshots of the metadata log went while they were read, {_MOST_BEGINNINGS} times",
            next_step=FILES_INSTEAD,
        )

    def _oldest(self, start: int, newest: SnapshotId) -> SnapshotId:
        """The snapshot at the log's start, after which nothing of the log is missing."""
        if newest.end_offset == start:
            return newest
        return SnapshotId(start, oldest_epoch(partial(self._answered_by_snapshot, start), newest.epoch))

    def _answered_by_snapshot(self, start: int, epoch: int) -> bool:
        return self._fetch(start + 1, epoch, patience_s=self._timeout_s).snapshot_id is not None

    def _snapshot(self, wanted: SnapshotId, progress: Progress | None) -> Iterator[RecordBatch]:
        yield from read_snapshot(self._controller, wanted, patience_s=self._timeout_s, progress=progress)
        self._begun, self._next, self._last_epoch = True, wanted.end_offset, wanted.epoch
        self.committed = max(self.committed or 0, wanted.end_offset)

    def _jump(self, found: Message) -> Iterator[RecordBatch]:
        """The log does not go back any more to where the reading stands."""
        newest = _snapshot_id(found.snapshot_id)
        if newest.end_offset < self._next:
            raise ConnectError(
                f"the controller answers offset {self._next} with the older snapshot {newest}",
                next_step=FILES_INSTEAD,
            )
        before = self._next
        try:
            yield from self._snapshot(newest, None)
        except SnapshotGoneError:
            return  # the next answer names another
        self._warnings.append(
            f"the controller deleted its log from offset {before} on before it was read; it goes on with the snapshot"
            f" at offset {newest.end_offset}: what happened in between is not known"
        )

    def _fetch(self, offset: int, last_epoch: int, *, patience_s: float, wait_s: float = 0.0) -> Message:
        def question(epoch: int, cluster_id: str | None) -> Message:
            return fetch_metadata(
                offset=offset,
                last_epoch=min(last_epoch, epoch),
                leader_epoch=epoch,
                cluster_id=cluster_id,
                wait_ms=int(1000 * wait_s),
            )

        answer = self._controller.ask(question, patience_s=patience_s, wait_s=wait_s)
        if answer.error != "NONE":
            raise ConnectError(
                f"the controller answered {answer.error} to a Fetch of the metadata log", next_step=FILES_INSTEAD
            )
        return answer.partition

    def _silent(self, end: int | None) -> ConnectError:
        if end is None:
            return ConnectError(
                f"the controller told no high watermark of the metadata log for {self._timeout_s:g} s, so that nothing"
                " is known to be committed",
                next_step="check that a majority of the controllers is up",
            )
        return ConnectError(
            f"the controller says that the metadata log is committed up to offset {end}, and gives nothing from"
            f" {self._next} on",
            next_step=FILES_INSTEAD,
        )


def _snapshot_id(told: Message) -> SnapshotId:
    if told.end_offset < 0 or told.epoch < 0:
        raise ConnectError(
            f"the controller names a snapshot {told.end_offset}-{told.epoch}, which cannot be", next_step=FILES_INSTEAD
        )
    return SnapshotId(told.end_offset, told.epoch)
