"""Produces saved records: idempotently, with acks=all, in their order, to their partition, with their timestamps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kelr.errors import KelrError, RefusedError
from kelr.model import TopicPartition
from kelr.rescue.archive import Dump
from kelr.rescue.journal import ReplayJournal
from kelr.rescue.judge import Judged, Verdict
from kelr.rescue.origin import Origin, origin_headers
from kelr.rescue.preparing import Preparing, judge_tails
from kelr.rescue.replay_plan import PartitionReplay, ReplayPlan
from kelr.rescue.target import require_led
from kelr.sources.base import Progress
from kelr.sources.producer import OutgoingRecord, Producer, Producers
from kelr.sources.records.batches import Compression

CHUNK_RECORDS = 2_000
CHUNK_BYTES = 8 * 1024 * 1024
"""Records under way at once at most: after each chunk all are confirmed and the journal says so."""
_FLUSH_STEP_S = 0.2


@dataclass(frozen=True, slots=True)
class Produced:
    """What became of one partition's records."""

    partition: PartitionReplay
    confirmed: int
    """Records that the cluster has, on every replica in sync."""
    error: str = ""
    """Why not all of them are; empty where they are."""


@dataclass(slots=True)
class _Chunk:
    """Records that were handed over, and what the cluster said of them."""

    waiting: int = 0
    size_bytes: int = 0
    confirmed: int = 0
    target_end: int = 0
    errors: list[str] = field(default_factory=list)

    def settled(self, error: str | None, offset: int) -> None:
        if error is None:
            self.confirmed += 1
            self.target_end = max(self.target_end, offset + 1)
        else:
            self.errors.append(error)

    @property
    def full(self) -> bool:
        return self.waiting >= CHUNK_RECORDS or self.size_bytes >= CHUNK_BYTES


class Replay:
    """Carries a replay out, partition by partition; what happens is in the journal before more of it does.

    Args:
        producers: makes the producer of a partition, once there is a record for it.
        timeout_s: how long the answers to a chunk may take.
        progress: told of (records confirmed, records in all).
    """

    def __init__(
        self,
        plan: ReplayPlan,
        dump: Dump,
        preparing: Preparing,
        *,
        producers: Producers,
        timeout_s: float,
        journal: ReplayJournal,
        progress: Progress | None = None,
    ) -> None:
        self._plan = plan
        self._dump = dump
        self._preparing = preparing
        self._producers = producers
        self._timeout_s = timeout_s
        self._journal = journal
        self._progress = progress
        self._confirmed = 0
        self.moved: tuple[TopicPartition, ...] = ()
        """After `run`: partitions that had an election meanwhile, or whose leader could not be read again."""

    def run(self) -> list[Produced]:
        """Produce all that is to be replayed. A partition that fails ends, and the others go on.

        Raises:
            RefusedError: a partition has another leader than when its records were judged; nothing was produced then.
        """
        self._check_leaders()
        produced = [self._partition(one) for one in self._plan.partitions]
        self.moved = tuple(self._moved(produced))
        if not self.moved and not any(one.error for one in produced):
            self._journal.finish()
        return produced

    def _check_leaders(self) -> None:
        busy = [one for one in self._plan.partitions if one.to_replay]
        self._preparing.source.forget()
        now = require_led(self._preparing.source, [one.target.state.address for one in busy])
        for one in busy:
            state = now[one.target.state.address].state
            if state.leader_epoch != one.target.state.leader_epoch:
                raise RefusedError(
                    f"{one.target.where} has had an election since its records were looked at (leader epoch"
                    f" {one.target.state.leader_epoch}, now {state.leader_epoch}): what survives may be another",
                    next_step="run it again, and look again",
                )

    def _moved(self, produced: Sequence[Produced]) -> Iterator[TopicPartition]:
        """Where an unclean election may have taken records away again that were confirmed."""
        self._preparing.source.forget()
        for one in produced:
            if not one.confirmed:
                continue
            state = one.partition.target.state
            try:
                now = require_led(self._preparing.source, [state.address])[state.address].state
            except KelrError:
                yield state.address
                continue
            if now.leader_epoch != state.leader_epoch:
                yield state.address

    def _partition(self, one: PartitionReplay) -> Produced:
        if not one.to_replay:
            return Produced(one, 0)
        self._journal.checkpoint(one.target.state.address, one.first_checkpoint)
        producer: Producer | None = None
        chunk, confirmed = _Chunk(), 0
        judge = self._preparing.judge(one.source, one.target, one.survivors, one.scan, one.done_through)
        number, tail_of_batch = 0, one.tails[0]
        last = (0, -1)
        for judged in judge_tails(self._dump, one.tails, judge):
            while tail_of_batch is not judged.tail:
                number += 1
                tail_of_batch = one.tails[number]
            if judged.verdict is Verdict.REPLAY:
                producer = producer or self._producers(judged.header.compression or Compression.NONE)
                self._hand_over(producer, one, judged, chunk)
            last = number, judged.record.offset
            if chunk.full:
                confirmed += self._settle(producer, one, chunk, last)
                if chunk.errors:
                    break
                chunk = _Chunk()
        else:
            confirmed += self._settle(producer, one, chunk, last)
        return Produced(one, confirmed, chunk.errors[0] if chunk.errors else "")

    def _hand_over(self, producer: Producer, one: PartitionReplay, judged: Judged, chunk: _Chunk) -> None:
        record = judged.record
        origin = Origin(
            self._plan.cluster_id,
            one.source.topic,
            one.source.partition,
            judged.leader_epoch,
            record.offset,
            judged.tail.topic_id,
        )
        headers = [*record.headers, *origin_headers(origin, self._plan.plan_id)]
        target = one.target.state
        outgoing = OutgoingRecord(
            target.topic, target.partition, record.key, record.value, headers, record.timestamp_ms
        )
        refused = producer.hand_over(outgoing, chunk.settled)
        if refused is not None:
            chunk.errors.append(refused)
            chunk.waiting = CHUNK_RECORDS
            return
        chunk.waiting += 1
        chunk.size_bytes += len(record.value or b"") + len(record.key or b"")

    def _settle(self, producer: Producer | None, one: PartitionReplay, chunk: _Chunk, last: tuple[int, int]) -> int:
        """Wait until every record of a chunk is confirmed or refused, and write it down where all are confirmed."""
        if producer is None:
            return 0
        deadline = time.monotonic() + self._timeout_s + 5
        while producer.wait(_FLUSH_STEP_S) and time.monotonic() < deadline:
            self._tell(chunk)
        self._tell(chunk)
        if chunk.confirmed + len(chunk.errors) < chunk.waiting and not chunk.errors:
            chunk.errors.append("no answer in time")
        if not chunk.errors and chunk.confirmed:
            self._journal.checkpoint(one.target.state.address, one.checkpoint(last, chunk.target_end))
        self._confirmed += chunk.confirmed
        return chunk.confirmed

    def _tell(self, chunk: _Chunk) -> None:
        if self._progress is not None:
            self._progress(self._confirmed + chunk.confirmed, self._plan.to_replay)
