"""Log ends by ListOffsets, and what they have in common with those by GetReplicaLogInfo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelr.model import LogUnavailableReason, PartitionState, TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.sources.live import requests
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE, TOPIC_UNAUTHORIZED, UNKNOWN_TOPIC
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message

LIST_OFFSETS = "ListOffsets"

_UNHEARD_BY_ERROR = {
    "NOT_LEADER_OR_FOLLOWER": LogUnavailableReason.NOT_A_REPLICA,
    UNKNOWN_TOPIC: LogUnavailableReason.NOT_A_REPLICA,
    "UNKNOWN_TOPIC_ID": LogUnavailableReason.NOT_A_REPLICA,
    "KAFKA_STORAGE_ERROR": LogUnavailableReason.STORAGE_ERROR,
    TOPIC_UNAUTHORIZED: LogUnavailableReason.NOT_AUTHORIZED,
    CLUSTER_UNAUTHORIZED: LogUnavailableReason.NOT_AUTHORIZED,
    "REQUEST_TIMED_OUT": LogUnavailableReason.TIMED_OUT,
    "UNSUPPORTED_VERSION": LogUnavailableReason.UNSUPPORTED,
}
UNHEARD_BY_FAILURE = {
    FailureKind.UNREACHABLE: LogUnavailableReason.UNREACHABLE,
    FailureKind.TIMED_OUT: LogUnavailableReason.TIMED_OUT,
    FailureKind.AUTHENTICATION: LogUnavailableReason.AUTHENTICATION_FAILED,
    FailureKind.UNSUPPORTED: LogUnavailableReason.UNSUPPORTED,
    FailureKind.GARBLED: LogUnavailableReason.ERROR,
}


@dataclass(frozen=True, slots=True)
class End:
    """A log end, and what the same answer told."""

    partition: PartitionState
    log_end: int
    leader_epoch: int | None
    """The leader epoch that the broker holds to be current; None before ListOffsets v4."""
    source: str = LIST_OFFSETS
    tells_epoch: bool = False
    """Whether `last_epoch` was told: GetReplicaLogInfo does, ListOffsets does not."""
    last_epoch: int | None = None
    """Last written leader epoch; None for a log that never held a record."""
    broker_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class NoEnd:
    """Why there is no log end."""

    reason: LogUnavailableReason
    detail: str


Ends = dict[TopicPartition, End | NoEnd]


def refusal(error: str) -> NoEnd:
    """A partition's error, by its name."""
    return NoEnd(_UNHEARD_BY_ERROR.get(error, LogUnavailableReason.ERROR), error)


def behind(partition: PartitionState, leader_epoch: int | None) -> NoEnd | None:
    """Where the broker knows an older leader epoch than the controller: a stale answer (KIP-966 has it asked again)."""
    if leader_epoch is None or leader_epoch >= partition.leader_epoch:
        return None
    return NoEnd(
        LogUnavailableReason.STALE,
        f"the broker is at leader epoch {leader_epoch}, the partition at {partition.leader_epoch}",
    )


def failed(batch: Sequence[PartitionState], failure: Failure) -> Ends:
    """The same failure for each partition."""
    return {one.address: NoEnd(UNHEARD_BY_FAILURE[failure.kind], failure.detail) for one in batch}


def by_list_offsets(batch: Sequence[PartitionState], *, timeout_s: float) -> Dialogue[Ends | Failure]:
    """One ListOffsets to one broker: a log end, or why there is none, for each partition."""
    answer = yield Ask(requests.log_ends(_by_topic(batch), timeout_s=timeout_s), timeout_s)
    if isinstance(answer, Failure):
        return answer
    found = _by_address(answer)
    return {partition.address: _end(partition, found) for partition in batch}


def remote_bounds(
    batch: Sequence[PartitionState], *, timeout_s: float
) -> Dialogue[Mapping[TopicPartition, tuple[int | None, int | None]]]:
    """Where each log begins on the broker's disk, and where what is in remote storage ends (exclusive); None for what
    it does not tell: an older broker knows neither, and one that has just started no end."""
    told: list[dict[TopicPartition, int]] = []
    for asked in (requests.EARLIEST_LOCAL, requests.LATEST_TIERED):
        answer = yield Ask(requests.log_ends(_by_topic(batch), timeout_s=timeout_s, asked=asked), timeout_s)
        found = {} if isinstance(answer, Failure) else _by_address(answer)
        told.append(
            {at: one.offset for at, one in found.items() if error_name(one.error_code) == NONE and one.offset >= 0}
        )
    starts, newest = told
    ends = {at: offset + 1 for at, offset in newest.items()}
    return {one.address: (starts.get(one.address), ends.get(one.address)) for one in batch}


def _by_topic(batch: Sequence[PartitionState]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for partition in batch:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return by_topic


def _by_address(answer: Message) -> dict[TopicPartition, Message]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in answer.topics
        for partition in topic.partitions
    }


def _end(partition: PartitionState, found: Mapping[TopicPartition, Message]) -> End | NoEnd:
    answer = found.get(partition.address)
    if answer is None:
        return NoEnd(LogUnavailableReason.ERROR, "the broker's answer leaves this partition out")
    error = error_name(answer.error_code)
    if error != NONE or answer.offset < 0:
        return refusal(error)
    leader_epoch = answer.leader_epoch if answer.leader_epoch is not None and answer.leader_epoch >= 0 else None
    return behind(partition, leader_epoch) or End(partition, answer.offset, leader_epoch)
