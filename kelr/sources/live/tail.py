"""Record batches of any replica from its own broker, also those beyond its high watermark that an election may cut.

A Fetch as replica -3 (Kafka's "future local replica") reads up to the log end of a leader, of a follower, and of a
replica without a leader; a consumer's Fetch ends at the high watermark. Both need READ on the topic and nothing more.
What is in remote storage alone (KIP-405) a broker reads there for a consumer, also while nobody leads the partition;
replica -3 is sent away.

Source: `FetchRequest.isConsumer`, `FetchIsolation.of` and `FetchParams.fetchOnlyLeader` of Kafka; seen on 4.0 to 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kelr.protocol.error_codes import error_name
from kelr.sources.live import requests
from kelr.sources.live.failures import NONE, RETRIABLE, TOPIC_UNAUTHORIZED, with_acl
from kelr.sources.live.transport import Failure, FailureKind, Message, NodeId, Transport
from kelr.sources.records.batches import MAGIC, BatchRun, StopKind, implausible, read_header
from kelr.sources.records.stream import Piece, RawBatch, Unread, UnreadKind

if TYPE_CHECKING:
    from kelr.model import PartitionState

ATTEMPTS = 5
FIRST_PAUSE_S = 0.2
"""Doubles for each further attempt: 3 s in all."""
ANSWER_BYTES = 8 * 1024 * 1024
"""Asked of one answer; a batch that is larger comes whole all the same."""
_CHANGED = frozenset({"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"})
_GONE = "OFFSET_OUT_OF_RANGE"
_IN_REMOTE_STORAGE = "OFFSET_MOVED_TO_TIERED_STORAGE"
_UNKNOWN_THERE = "REPLICA_NOT_AVAILABLE"
"""Answers a read from remote storage where the broker does not know what is there."""
_SENT_ELSEWHERE = "the broker did not answer for its own log (it sends consumers to another replica)"


@dataclass(frozen=True, slots=True)
class _Answer:
    records: memoryview
    high_watermark: int


class TailReader:
    """Reads one replica's log from an offset on; iterate for `Piece`s. Batches come whole, so that the first may begin
    before `start` and the last may end after `end`. Flat in memory: one answer at a time.

    Args:
        leader_epoch: the epoch that the broker must hold to be current, so that a change of hands is noticed.
        end: where to stop; None reads to the log end, or with `committed` to the high watermark.
        committed: read as a consumer does, up to the high watermark.
    """

    def __init__(
        self,
        transport: Transport,
        replica: NodeId,
        state: PartitionState,
        *,
        start: int,
        end: int | None,
        leader_epoch: int | None = None,
        committed: bool = False,
        timeout_s: float,
    ) -> None:
        self._transport = transport
        self._replica = replica
        self._state = state
        self._next = start
        self._end = end
        self._leader_epoch = leader_epoch
        self._committed = committed
        self._timeout_s = timeout_s
        self.high_watermark: int | None = None
        """As the last answer had it."""

    def __iter__(self) -> Iterator[Piece]:
        while self._end is None or self._next < self._end:
            answer = self._ask()
            if isinstance(answer, Unread):
                yield answer
                return
            self.high_watermark = answer.high_watermark
            before = self._next
            for piece in self._pieces(answer.records):
                yield piece
                if isinstance(piece, Unread) and piece.to_offset is None:
                    return
            if self._next == before:
                return  # the log ends here

    def _pieces(self, records: memoryview) -> Iterator[Piece]:
        """The batches of one answer; a batch that fails its checksum is stepped over and named."""
        at = 0
        while at < len(records):
            run = BatchRun(records, at)
            for position, header in run:
                if self._end is not None and header.base_offset >= self._end:
                    self._next = max(self._next, self._end)
                    return
                if header.last_offset < self._next:
                    continue
                if header.magic < MAGIC:
                    text = f"message format {header.magic} is too old: kelr reads format 2, Kafka 0.11's"
                    yield Unread(self._next, header.next_offset, UnreadKind.TOO_OLD, text)
                else:
                    yield RawBatch(header, bytes(records[position : position + header.size_bytes]))
                self._next = header.next_offset
            stop = run.stop
            if stop is None or stop.kind in {StopKind.END, StopKind.TORN}:
                return  # an answer may be cut anywhere; the rest comes with the next
            header_here = read_header(records, stop.at)
            if stop.kind is not StopKind.CRC or header_here is None or implausible(records, stop.at):
                yield Unread(self._next, None, UnreadKind.CORRUPT, stop.text)
                return
            if not self._next <= header_here.next_offset - 1 < self._next + 2**31:
                yield Unread(self._next, None, UnreadKind.CORRUPT, stop.text + ", and its offsets make no sense")
                return
            yield Unread(self._next, header_here.next_offset, UnreadKind.CORRUPT, stop.text)
            self._next = header_here.next_offset
            at = stop.at + header_here.size_bytes

    def _ask(self) -> _Answer | Unread:
        pause_s = FIRST_PAUSE_S
        for attempt in range(ATTEMPTS):
            heard = self._exchange()
            if not isinstance(heard, Unread) or heard.kind is not UnreadKind.NO_ANSWER or attempt == ATTEMPTS - 1:
                return heard
            self._transport.ground.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("the last attempt returns")

    def _exchange(self, *, as_consumer: bool = False) -> _Answer | Unread:
        request = requests.fetch_records(
            self._state.address,
            self._state.topic_id,
            leader_epoch=self._leader_epoch,
            offset=self._next,
            max_bytes=ANSWER_BYTES,
            to_log_end=not (self._committed or as_consumer),
        )
        answer = self._transport.exchange(self._replica, request, timeout_s=self._timeout_s)
        if isinstance(answer, Failure):
            kind = UnreadKind.NOT_AUTHORIZED if answer.kind is FailureKind.AUTHENTICATION else UnreadKind.NO_ANSWER
            return self._unread(kind, answer.detail)
        error = error_name(answer.error_code)
        partition = next((part for topic in answer.responses for part in topic.partitions), None)
        if error == NONE and partition is not None:
            error = error_name(partition.error_code)
        if error == _IN_REMOTE_STORAGE and not as_consumer:
            return self._exchange(as_consumer=True)
        not_read = self._not_read_there(error, partition) if as_consumer else ""
        if not_read:
            return self._unread(UnreadKind.NO_ANSWER, f"offset {self._next} is in remote storage alone: {not_read}")
        if error != NONE or partition is None:
            return self._refused(error)
        return self._answer(partition)

    @staticmethod
    def _not_read_there(error: str, partition: Message) -> str:
        """Why a broker could not read in remote storage; empty where it did, or where that is not why."""
        if error == _UNKNOWN_THERE:
            return f"the broker does not know what is there ({error}); __remote_log_metadata may have no leader"
        # What is asked for is below the high watermark, so that there is something.
        nothing = error == NONE and partition is not None and not partition.records
        return "the broker did not read it in time (remote.fetch.max.wait.ms)" if nothing else ""

    def _answer(self, partition: Message) -> _Answer | Unread:
        if partition.preferred_read_replica not in {-1, None}:
            return self._unread(UnreadKind.NO_ANSWER, _SENT_ELSEWHERE)
        records = partition.records
        data = memoryview(b"" if records is None else records)
        return _Answer(data, partition.high_watermark)

    def _refused(self, error: str) -> Unread:
        if error == _GONE:
            return self._unread(UnreadKind.GONE, f"the replica's log does not hold offset {self._next} ({error})")
        if error in _CHANGED:
            return self._unread(UnreadKind.CHANGED, f"the partition changed hands while its log was read ({error})")
        if error == TOPIC_UNAUTHORIZED:
            return self._unread(UnreadKind.NOT_AUTHORIZED, with_acl(error, "READ"))
        kind = UnreadKind.NO_ANSWER if error in RETRIABLE else UnreadKind.GONE
        return self._unread(kind, f"the broker answered {error}")

    def _unread(self, kind: UnreadKind, text: str) -> Unread:
        return Unread(self._next, None, kind, text)
