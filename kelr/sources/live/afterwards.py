"""What a live cluster shows once its partitions have leaders again: open transactions and committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kelr.model import PartitionState, TopicPartition, select
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.coordinators import CONSUMER_OFFSETS, TRANSACTION_STATE, Coordinators
from kelr.sources.live.failures import UNKNOWN_TOPIC
from kelr.sources.live.groups import GroupReader
from kelr.sources.live.producers import ProducerReader
from kelr.sources.live.source import LiveSource
from kelr.sources.live.transport import Transport


class LiveAfterwards:
    """Asks a live cluster (`kelr.recovery.verify.Afterwards`).

    Args:
        source: the same cluster, for who leads and which brokers are live.
    """

    def __init__(self, source: LiveSource) -> None:
        self._source = source

    def open_transactions(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, Transactions]:
        """The open transactions of each partition that has a live leader.

        Raises ConnectError, AuthenticationError.
        """
        transport, settings = self._reached()
        live = self._source.cluster().live
        leaders = {
            state.address: state.leader for state in partitions if state.leader in live and state.leader is not None
        }
        if not leaders:
            return {}
        reader = ProducerReader(
            transport,
            live,
            timeout_s=settings.timeout_s,
            coordinators=self._coordinators(TRANSACTION_STATE),
        )
        return reader.read(leaders)

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every consumer group has committed for these partitions."""
        transport, settings = self._reached()
        reader = GroupReader(
            transport,
            self._source.cluster().live,
            lambda: self._coordinators(CONSUMER_OFFSETS),
            timeout_s=settings.timeout_s,
        )
        return reader.read(partitions)

    def _reached(self) -> tuple[Transport, ConnectionSettings]:
        return self._source.connection()

    def _coordinators(self, topic: str) -> Coordinators:
        """Who coordinates transactions, or groups: the leader of each partition of Kafka's own topic."""
        live, leaders, silent = self._source.cluster().live, {}, []
        for page in self._source.pages(select([topic])):
            for error in page.topic_errors:
                if error.error != UNKNOWN_TOPIC:
                    return Coordinators(topic, missing=Unread(f"{topic}: {error.error}", f"DESCRIBE on topic {topic}"))
            for state in page.partitions:
                if state.leader is not None and state.leader in live:
                    leaders[state.partition] = state.leader
                else:
                    silent.append(state.partition)
        missing = None
        if silent:
            which = ", ".join(map(str, silent))
            missing = Unread(f"partitions {which} of {topic} have no leader", passing=True)
        return Coordinators(topic, len(leaders) + len(silent), leaders, missing)
