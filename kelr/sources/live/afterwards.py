"""What a live cluster shows once its partitions have leaders again: open transactions and committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kelr.model import PartitionState, TopicPartition, select
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.failures import UNKNOWN_TOPIC
from kelr.sources.live.groups import GroupReader
from kelr.sources.live.producers import ProducerReader
from kelr.sources.live.source import LiveSource
from kelr.sources.live.transport import Transport

TRANSACTION_STATE = "__transaction_state"
CONSUMER_OFFSETS = "__consumer_offsets"


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
            coordinators_missing=self._coordinators_missing(TRANSACTION_STATE),
        )
        return reader.read(leaders)

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every consumer group has committed for these partitions."""
        transport, settings = self._reached()
        missing = self._coordinators_missing(CONSUMER_OFFSETS)
        found = GroupReader(transport, self._source.cluster().live, timeout_s=settings.timeout_s).read(partitions)
        if missing is None or isinstance(found, Unread):
            return found
        # Groups without a coordinator are in nobody's list, and nobody says so.
        return replace(found, not_listed=missing)

    def _reached(self) -> tuple[Transport, ConnectionSettings]:
        return self._source.connection()

    def _coordinators_missing(self, topic: str) -> Unread | None:
        """Why some transactions, or groups, have no coordinator that would list them; None where each has one.

        The leader of a partition of Kafka's own topic is the coordinator of what is in it.
        """
        live, silent = self._source.cluster().live, []
        for page in self._source.pages(select([topic])):
            for error in page.topic_errors:
                if error.error != UNKNOWN_TOPIC:
                    return Unread(f"{topic}: {error.error}", f"DESCRIBE on topic {topic}")
            silent += [state.partition for state in page.partitions if state.leader not in live]
        if not silent:
            return None
        which = ", ".join(map(str, silent))
        return Unread(f"partitions {which} of {topic} have no leader", passing=True)
