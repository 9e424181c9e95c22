"""GetReplicaLogInfo asked of one broker, as KIP-966's recovery manager asks it: in batches, every answer verified.

An answer is used only if it goes by the partition's own leader epoch or a later one, and if all answers of the broker
come from one incarnation: the registered one where its epoch is known, which no released request tells a client. What
is over a request's limit is asked for again, until everything is answered.

Source: KIP-966, "Unclean Recovery Manager", "GetReplicaLogInfo Request".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kelr.model import LogUnavailableReason, PartitionState
from kelr.protocol.dialects import REQUEST_LIMIT_REACHED, Dialect
from kelr.protocol.error_codes import error_name
from kelr.sources.live.decode import topic_id_uuid
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE, REFUSED
from kelr.sources.live.log_ends import End, Ends, NoEnd, behind, refusal
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, Request
from kelr.sources.log_info_key import LogInfoKey

PARTITIONS_A_REQUEST = 2000
"""The most that one text of KIP-966 lets a request have; the other says 1,000, which the answers tell."""

_INVALID = "INVALID_REQUEST"
_FALLS_BACK = frozenset({CLUSTER_UNAUTHORIZED, "UNSUPPORTED_VERSION"})
"""Errors after which the other requests are asked in its place: this broker gives no log info to this principal."""

Entries = Mapping[tuple[UUID, int], Message]


@dataclass(slots=True)
class LogInfoReader:
    """GetReplicaLogInfo to one broker.

    Args:
        registered_epoch: the broker epoch of its registration; None where nobody told.
    """

    broker: int
    key: LogInfoKey
    registered_epoch: int | None
    timeout_s: float
    unusable: str | None = None
    """Why this broker is not asked any more; None: it is."""
    epoch: int | None = None
    """The broker epoch of its last answer."""
    _batch: int = PARTITIONS_A_REQUEST

    @property
    def usable(self) -> bool:
        """Whether this broker is asked at all."""
        return self.unusable is None

    def read(self, partitions: Sequence[PartitionState]) -> Dialogue[Ends | Failure]:
        """What each log holds, or why it is not known; a partition that is missing has to be asked for otherwise.

        A Failure where the broker does not answer at all.
        """
        found: Ends = {}
        pending = [one for one in partitions if one.topic_id is not None]
        while pending and self.usable:
            batch = pending[: self._batch]
            answer = yield Ask(_request(self.key, self.broker, batch), self.timeout_s)
            if isinstance(answer, Failure):
                if _says_nothing_of_the_broker(answer):
                    self.unusable = answer.detail
                    break
                return answer
            if answer.broker_epoch < 0:
                self.unusable = "no answer to this request: it names no broker epoch"
                break
            answered = self._taken(batch, answer)
            if answered is None:
                break
            if answered:
                found.update(answered)
                pending = [one for one in pending if one.address not in answered]
            elif len(batch) > 1:
                self._batch = len(batch) // 2
            else:
                found[batch[0].address] = NoEnd(
                    LogUnavailableReason.ERROR, "the broker answers for no partition at all"
                )
                pending = pending[1:]
        return found

    def _taken(self, batch: Sequence[PartitionState], answer: Message) -> Ends | None:
        """What one answer settles: nothing where a smaller request is wanted; None where no request will help."""
        self.epoch = answer.broker_epoch
        entries = {
            (topic.topic_id, entry.partition): entry
            for topic in answer.topic_partition_log_info_list or ()
            for entry in topic.partition_log_info
        }
        errors = [error_name(entry.error_code) for entry in entries.values()]
        self.unusable = next((error for error in errors if error in _FALLS_BACK), None)
        if self.unusable is not None:
            return None
        if errors and len(batch) > 1 and set(errors) == {_INVALID}:
            return {}
        if self.registered_epoch is not None and self.epoch != self.registered_epoch:
            stale = f"answered with broker epoch {self.epoch}; the broker is registered with {self.registered_epoch}"
            return {one.address: NoEnd(LogUnavailableReason.STALE, stale) for one in batch}
        more = self.key.dialect is Dialect.PATCH and answer.has_more_replica_log_info
        settled: Ends = {}
        over_the_limit = False
        for partition in batch:
            entry = entries.get((topic_id_uuid(partition.topic_id or ""), partition.partition))
            if entry is None and not more:
                settled[partition.address] = NoEnd(
                    LogUnavailableReason.ERROR, "the broker's answer leaves this partition out"
                )
            elif entry is None or error_name(entry.error_code) == REQUEST_LIMIT_REACHED:
                over_the_limit = True
            else:
                settled[partition.address] = self._end(partition, entry)
        if over_the_limit and settled:
            self._batch = len(settled)
        return settled

    def _end(self, partition: PartitionState, entry: Message) -> End | NoEnd:
        error = error_name(entry.error_code)
        if error != NONE:
            return refusal(error)
        if entry.log_end_offset < 0 or entry.current_leader_epoch < 0 or entry.last_written_leader_epoch < -1:
            return NoEnd(LogUnavailableReason.ERROR, "the broker's answer holds numbers that no log has")
        stale = behind(partition, entry.current_leader_epoch)
        return stale or End(
            partition,
            entry.log_end_offset,
            entry.current_leader_epoch,
            source=str(self.key),
            tells_epoch=True,
            last_epoch=entry.last_written_leader_epoch if entry.last_written_leader_epoch >= 0 else None,
            broker_epoch=self.epoch,
        )


def _says_nothing_of_the_broker(failure: Failure) -> bool:
    """Whether the broker may well answer other requests: it knows none of this key, or hung up on it."""
    if failure.kind is FailureKind.UNREACHABLE:
        return failure.detail != REFUSED
    return failure.kind in {FailureKind.UNSUPPORTED, FailureKind.GARBLED}


def _request(key: LogInfoKey, broker: int, partitions: Sequence[PartitionState]) -> Request:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic_id or "", []).append(partition.partition)
    topics = [{"topic_id": topic_id_uuid(topic_id), "partitions": numbers} for topic_id, numbers in by_topic.items()]
    named = {"broker_id": broker} if key.dialect is Dialect.KIP else {}
    fields = {**named, "topic_partitions": topics}
    return Request(f"{key.dialect.schema}ReplicaLogInfo", fields, under_key=key.api_key)
