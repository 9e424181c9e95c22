"""The live cluster as a `Source`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kelr.errors import UsageError
from kelr.model import (
    BrokerStatus,
    Cluster,
    PartitionState,
    Selection,
    TopicConfig,
    TopicPartition,
)
from kelr.sources.base import Closes, Page, Progress
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.client import Client
from kelr.sources.live.describe import BrokerList, describe_cluster, features_of, knows_request
from kelr.sources.live.page_bytes import Skip
from kelr.sources.live.pages import Reader, allows_leaving_out, read_pages
from kelr.sources.live.reassignments import NOT_ASKED, Reassignments
from kelr.sources.live.requests import DESCRIBE_TOPIC_PARTITIONS_KEY, api_versions
from kelr.sources.live.topic_configs import config_reader, read_topic_configs
from kelr.sources.live.transport import Failure, Message, NodeAddress, Transport
from kelr.sources.log_info_key import LogInfoKey
from kelr.sources.unwanted import Unwanted

if TYPE_CHECKING:
    from kelr.model import LogAnswer
    from kelr.sources.live.broker_dialogue import LogInfoUse
    from kelr.sources.live.tail import TailReader


class LiveSource(Closes):
    """A cluster, asked over its brokers' Kafka protocol. Nothing is sent before the first question.

    Args:
        settings: where the cluster is, and how long to wait.
        clock_ms: milliseconds since 1970 UTC, for the time that each log answer carries.
        connect: makes the transport; the network's unless a test or a simulation brings its own.

    Raises (every method but `close`):
        ConnectError, AuthenticationError: no broker can be reached within the timeout.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        clock_ms: Callable[[], int] = MACHINE.now_ms,
        connect: Callable[[ConnectionSettings], Transport] = Client,
    ) -> None:
        self._settings = settings
        self._clock_ms = clock_ms
        self._connect = connect
        self._transport: Transport | None = None
        self._brokers: AnyBroker | None = None
        self._versions: Message = None
        self._cluster: Cluster | None = None
        self._reassignments = NOT_ASKED
        self._silence: str | None = None
        self._configs = config_reader()
        self._tiered = dict[str, bool]()
        """Topics whose configs were read, and whether they have remote storage."""
        self._forgotten = False
        self._closed = False

    @property
    def name(self) -> str:
        return "live"

    @property
    def taken_at_ms(self) -> int | None:
        return None

    def cluster(self) -> Cluster:
        if self._cluster is None:
            _, brokers = self._reached()
            if self._forgotten:
                self._learn_versions(brokers)
            asked = brokers.favourite
            cluster, moves = self._described(brokers)
            if brokers.favourite != asked and cluster.controller_silence is None:
                # The one that listed the brokers reaches no controller, or died: what it told may be old, features too.
                self._learn_versions(brokers)
                cluster, moves = self._described(brokers)
            self._cluster, self._reassignments = cluster, moves
            self._silence = self._cluster.controller_silence
        self._check_open()
        return self._cluster

    def _described(self, brokers: AnyBroker) -> tuple[Cluster, Reassignments]:
        return describe_cluster(brokers.ask, brokers.ask_controller, self._versions, learn=self._learn)

    @property
    def controller_silence(self) -> str | None:
        """Why no controller that leads answered when `cluster` was read: until one does, brokers tell what they knew
        last. None: one answered, or that is not known: brokers may know no such question, or die over it."""
        return self._silence

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        return self._read(selection, page_size, start, None)

    def pages_without(
        self,
        unwanted: Unwanted,
        selection: Selection,
        *,
        page_size: int | None = None,
        start: TopicPartition | None = None,
    ) -> Iterator[Page]:
        skip = Skip(unwanted) if allows_leaving_out(selection) else None
        return self._read(selection, page_size, start, skip)

    def _read(
        self, selection: Selection, page_size: int | None, start: TopicPartition | None, skip: Skip | None
    ) -> Iterator[Page]:
        cluster = self.cluster()
        _, brokers = self._reached()
        reader = Reader(
            brokers,
            elr_enabled=cluster.features.elr_enabled,
            has_key_75=knows_request(self._versions, DESCRIBE_TOPIC_PARTITIONS_KEY),
            reassignments=self._reassignments,
            skip=skip,
        )
        return read_pages(reader, selection, page_size=page_size, start=start)

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        _, brokers = self._reached()
        whole_kip = features_of(self._versions).elects_natively
        found = read_topic_configs(brokers, topics, self._configs, whole_kip=whole_kip)
        self._tiered.update((topic, bool(config.remote_storage)) for topic, config in found.items())
        return found

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        from kelr.sources.live.logs import LogReader  # noqa: PLC0415 - describe asks for no logs

        cluster, cordoned = self.cluster(), dict[int, bool]()
        transport, _ = self._reached()
        unknown = {state.topic for state in partitions} - self._tiered.keys()
        if unknown:
            self.topic_configs(unknown)
        reader = LogReader(
            cluster,
            transport,
            timeout_s=self._settings.timeout_s,
            clock_ms=self._clock_ms,
            log_info=self._log_info_use(),
            tiered=[topic for topic, tiered in self._tiered.items() if tiered],
            cordoned=cordoned if cluster.features.refuses_cordoned else None,
        )
        answers = reader.read(partitions, lineage=lineage, progress=progress)
        self._cluster = cluster.with_cordons(cordoned)
        return answers

    def reached(self) -> tuple[ConnectionSettings, Transport, AnyBroker]:
        """What a hand needs that changes this cluster over the same connections. Raises like every question."""
        return self._settings, *self._reached()

    def learn_cordons(self) -> None:
        """Ask every live broker whether it is cordoned, where that matters: `cluster` knows it then.

        `replica_logs` learns it of the brokers whose logs it reads.
        """
        from kelr.sources.live.logs import read_cordons  # noqa: PLC0415 - describe asks for no logs

        cluster = self.cluster()
        if cluster.features.refuses_cordoned:
            told = read_cordons(cluster, self._reached()[0], timeout_s=self._settings.timeout_s)
            self._cluster = cluster.with_cordons(told)

    def forget(self) -> None:
        self._cluster, self._reassignments, self._forgotten = None, NOT_ASKED, True

    def connection(self) -> tuple[Transport, ConnectionSettings]:
        """The connections and settings, for what asks this cluster more than a `Source` tells."""
        return self._reached()[0], self._settings

    def tail(
        self, state: PartitionState, replica: int, *, start: int, end: int | None = None, committed: bool = False
    ) -> TailReader:
        """The record batches of one replica from an offset on, asked of its own broker as they are iterated over.

        `committed` stops at the high watermark; else the reading goes on to the log end. A replica that cannot be
        asked is an `Unread` among the pieces.
        """
        from kelr.sources.live.tail import TailReader  # noqa: PLC0415 - as above

        self.cluster()
        transport, _ = self._reached()
        return TailReader(
            transport,
            replica,
            state,
            start=start,
            end=end,
            leader_epoch=state.leader_epoch,
            committed=committed,
            timeout_s=self._settings.timeout_s,
        )

    def close(self) -> None:
        self._closed = True
        if self._transport is not None:
            self._transport.close()

    def _reached(self) -> tuple[Transport, AnyBroker]:
        self._check_open()
        if self._transport is None or self._brokers is None:
            transport = self._connect(self._settings)
            try:
                first, self._versions = reach(transport, self._settings)
            except BaseException:
                transport.close()
                raise
            others = [node for node in transport.bootstrap_nodes() if node != first]
            self._transport = transport
            self._brokers = AnyBroker(transport, [first, *others], timeout_s=self._settings.timeout_s)
        return self._transport, self._brokers

    def _log_info_use(self) -> LogInfoUse | None:
        """As configured, else where each broker announces it; none is asked where the first one announces nothing."""
        from kelr.sources.live.broker_dialogue import LogInfoUse  # noqa: PLC0415 - as above

        if self._settings.log_info is not None:
            return LogInfoUse(self._settings.log_info, self._settings.log_info.taken_by(self.cluster().features))
        return None if LogInfoKey.announced(self._versions) is None else LogInfoUse()

    def _learn_versions(self, brokers: AnyBroker) -> None:
        """Again, after the first answer: features may have been switched since."""
        answer = brokers.ask(api_versions)
        self._versions = self._versions if isinstance(answer, Failure) else answer
        self._forgotten = False

    def _learn(self, listed: BrokerList) -> None:
        transport, any_broker = self._reached()
        brokers = listed.brokers
        known = {b.id: NodeAddress(b.host, b.port) for b in brokers if b.host is not None and b.port is not None}
        if known:
            transport.add_nodes(known, cluster_id=listed.cluster_id)
        any_broker.learn(sorted(b.id for b in brokers if b.id in known and b.status is BrokerStatus.LIVE))

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the live source is closed")
