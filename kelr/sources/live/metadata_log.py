"""The metadata log of a live cluster, from the controller that leads its quorum: a `MetadataLogReader` that can follow.

Only what is committed is read: up to the high watermark that the leader tells, since what lies beyond it may yet be
cut off by a change of leader. The log is read from as early as the controller has it: where a snapshot took the
place of its beginning, the oldest snapshot that is left, and the log from there on.

Source: KafkaRaftClient (handleFetchRequest, handleFetchSnapshotRequest) and RaftLog.validateOffsetAndEpoch of Apache
Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kelr.replay.records import RecordBatch
from kelr.sources.base import Closes, Progress
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.active_controller import ActiveController
from kelr.sources.live.client import Client
from kelr.sources.live.metadata_reading import Reading
from kelr.sources.live.transport import Transport


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
