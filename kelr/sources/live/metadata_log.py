"""The metadata log of a live cluster, from the controller that leads its quorum: a `MetadataLogReader` that can follow.

Only what is committed is read: up to the high watermark that the leader tells, since what lies beyond it may yet be
cut off by a change of leader. The log is read from as early as the controller has it: where a snapshot took the
place of its beginning, the oldest snapshot that is left, and the log from there on.

Source: KafkaRaftClient (handleFetchRequest, handleFetchSnapshotRequest) and RaftLog.validateOffsetAndEpoch of Apache
Kafka.
"""

from __future__ import annotations

import os
import tempfile  # noqa: TID251 - for what is read, and need not survive a crash
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import IO

from kelr.errors import ConnectError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.protocol.error_codes import error_name
from kelr.replay.records import RecordBatch
from kelr.sources.base import Closes, Progress
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import requests
from kelr.sources.live.active_controller import FIRST_PAUSE_S, LONGEST_PAUSE_S, ActiveController, FromLeader
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.client import Client
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE
from kelr.sources.live.metadata_requests import SnapshotId, fetch_metadata, fetch_snapshot
from kelr.sources.live.transport import Failure, Message, Transport
from kelr.sources.metadata_log.pieces import Checkpoint, checkpoint_batches, is_whole
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.records.batches import StopKind

# One reading of a live metadata log: where it begins, what is committed, and that nothing is left out.


# Snapshots of the metadata log from the controller that leads, and which of them is the oldest.


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


class LiveMetadataLog(Closes):
    """Reads the metadata log of a live cluster; a context manager. Nothing is sent before the first question.

    Args:
        settings: its bootstrap servers are controllers; `timeout_s` bounds the search for a leader.
        cluster_id: the cluster that is meant; another one is refused.
        connect: makes the transport; the network's unless a test brings its own.

    Raises (every method but `close`, and `cluster_id`):
        ConnectError, AuthenticationError: no controller that leads can be reached in time, or what it answers makes no
            sense.
        NotAuthorizedError: without CLUSTER_ACTION on the cluster.
        RefusedError: it is another cluster than the one that is meant.
        UnsupportedError: no controller is there.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        cluster_id: str | None = None,
        connect: Callable[[ConnectionSettings], Transport] = Client,
    ) -> None:
        self._settings = settings
        self._wanted = cluster_id
        self._connect = connect
        self._transport: Transport | None = None
        self._controller: ActiveController | None = None
        self._reading: Reading | None = None
        self._warnings: list[str] = []

    @property
    def name(self) -> str:
        return f"metadata log of the controllers at {self._settings.servers_text}"

    @property
    def cluster_id(self) -> str | None:
        """None where the controllers do not tell it: that needs ALTER on the cluster, and Kafka 3.7."""
        return self._reached().cluster_id

    @property
    def warnings(self) -> Sequence[str]:
        return self._warnings

    @property
    def cut_short(self) -> bool:
        """False: a controller gives all that is committed, or `batches` raises."""
        return False

    @property
    def committed(self) -> int | None:
        """The newest high watermark that was told: all records below it are committed; None before the first."""
        return None if self._reading is None else self._reading.committed

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:
        """Everything that is committed now; see `MetadataLogReader.batches`.

        Args:
            progress: told of records of the log read and there; a controller does not tell how many bytes there are.
        """
        reading = self._reading = self._new_reading()
        yield from reading.until_now(progress)

    def follow(self, on_silence: Callable[[str], None] | None = None) -> Iterator[RecordBatch]:
        """What comes after the last batch that `batches` gave, or all where it gave none, for ever: each batch as soon
        as it is committed. A change of the quorum's leader is waited for; an interruption ends it.

        Args:
            on_silence: told in a sentence when no controller that leads has answered for some seconds, and again when
                one does.

        Raises:
            ConnectError: no leader answered for `FOLLOW_PATIENCE_S` (`timeout_s` where that is longer).
        """
        if self._reading is None:
            self._reading = self._new_reading()
        self._reached().on_silence = on_silence
        yield from self._reading.for_ever()

    def close(self) -> None:
        """End the connections; further calls connect anew."""
        if self._transport is not None:
            self._transport.close()
        self._transport = self._controller = self._reading = None

    def _new_reading(self) -> Reading:
        controller = self._reached()
        return Reading(controller, timeout_s=self._settings.timeout_s, warnings=self._warnings)

    def _reached(self) -> ActiveController:
        if self._controller is None:
            transport = self._connect(self._settings)
            controller = ActiveController(transport, self._settings, cluster_id=self._wanted)
            try:
                controller.reach()
            except BaseException:
                transport.close()
                raise
            self._transport, self._controller = transport, controller
        return self._controller


# Where the controllers of a cluster are, as its brokers tell; and the metadata log that is read from them.


_GIVE_THEM = "give a controller's listener with --bootstrap-controller HOST:PORT"
_LISTENERS_TOLD = 2
"""The version of DescribeQuorum that tells the voters' listeners (KIP-853)."""


def live_metadata_log(
    *,
    controllers: ConnectionSettings | None = None,
    brokers: ConnectionSettings | None = None,
    cluster_id: str | None = None,
    connect: Callable[[ConnectionSettings], Transport] = Client,
) -> LiveMetadataLog:
    """The metadata log of a live cluster.

    Args:
        controllers: settings whose bootstrap servers are controllers.
        brokers: settings whose bootstrap servers are brokers. With `controllers` too, these tell which cluster is
            meant; alone, they tell where its controllers are.
        cluster_id: the cluster that is meant, where somebody said so.

    Raises:
        ConnectError, AuthenticationError: the brokers cannot be reached, or know of no controller.
        NotAuthorizedError: brokers tell of controllers only with DESCRIBE on the cluster.
        RefusedError: the brokers are of another cluster than the one that is meant.
        UnsupportedError: brokers before Kafka 3.9 do not tell where controllers are.
    """
    if brokers is None:
        if controllers is None:
            raise ValueError("neither brokers nor controllers")
        return LiveMetadataLog(controllers, cluster_id=cluster_id, connect=connect)
    transport = connect(brokers)
    try:
        first, _ = reach(transport, brokers)
        others = [node for node in transport.bootstrap_nodes() if node != first]
        asked = AnyBroker(transport, [first, *others], timeout_s=brokers.timeout_s)
        cluster = asked.ask(partial(requests.describe_cluster, fenced=False))
        if not isinstance(cluster, Failure) and error_name(cluster.error_code) == NONE:
            if cluster_id not in {None, cluster.cluster_id}:
                raise RefusedError(
                    f"cluster {cluster_id} is meant, and these brokers are of cluster {cluster.cluster_id}",
                    next_step="check --bootstrap-server, or correct cluster_id in contexts.toml",
                    code="wrong-cluster",
                )
            cluster_id = cluster.cluster_id
        if controllers is None:
            quorum = asked.ask(requests.describe_quorum, again=_may_be_told_by_another)
            controllers = replace(brokers, bootstrap_servers=_listeners(quorum))
    finally:
        transport.close()
    return LiveMetadataLog(controllers, cluster_id=cluster_id, connect=connect)


def _may_be_told_by_another(quorum: Message) -> bool:
    return error_name(quorum.error_code) not in {NONE, CLUSTER_UNAUTHORIZED}


def _listeners(quorum: Message | Failure) -> tuple[tuple[str, int], ...]:
    """Host and port of each voter's listeners, the leader's first."""
    if isinstance(quorum, Failure):
        raise ConnectError(f"the brokers do not tell where the controllers are: {quorum.detail}", next_step=_GIVE_THEM)
    error = error_name(quorum.error_code)
    if error == CLUSTER_UNAUTHORIZED:
        raise NotAuthorizedError(
            f"the brokers may not tell where the controllers are ({error}): it needs DESCRIBE on the cluster",
            next_step="kafka-acls.sh --add --allow-principal User:NAME --operation Describe --cluster,"
            f" or {_GIVE_THEM}",
        )
    if error != NONE:
        raise ConnectError(f"the brokers answered {error}, asked where the controllers are", next_step=_GIVE_THEM)
    if quorum.version < _LISTENERS_TOLD:
        raise UnsupportedError(
            "brokers before Kafka 3.9 do not tell where the controllers are",
            next_step=_GIVE_THEM,
            code="brokers-too-old",
        )
    leader = next((one.leader_id for topic in quorum.topics for one in topic.partitions), None)
    found = [
        (one.host, one.port)
        for node in sorted(quorum.nodes or (), key=lambda node: (node.node_id != leader, node.node_id))
        for one in node.listeners
    ]
    if not found:
        raise ConnectError("the brokers know of no controller's listener", next_step=_GIVE_THEM)
    return tuple(dict.fromkeys(found))
