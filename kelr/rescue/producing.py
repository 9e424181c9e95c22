"""Produces saved records: idempotently, with acks=all, in their order, to their partition, with their timestamps."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.errors import KelrError, RefusedError
from kelr.model import PartitionState, TopicConfig, TopicPartition
from kelr.rescue.archive import Dump
from kelr.rescue.journal import ReplayJournal
from kelr.rescue.judge import Judged, Verdict
from kelr.rescue.origin import Origin, origin_headers
from kelr.rescue.preparing import Preparing, judge_tails
from kelr.rescue.replay_plan import PartitionReplay, ReplayPlan
from kelr.rescue.target import Led, look_at, too_few_in_sync
from kelr.sources.base import Progress
from kelr.sources.producer import OutgoingRecord, Producer, Producers
from kelr.sources.records.batches import Compression

CHUNK_RECORDS = 2_000
CHUNK_BYTES = 8 * 1024 * 1024
"""Records under way at once at most, shared by the partitions whose turn it is: after each chunk all are confirmed and
the journal says so."""
PARTITIONS_AT_ONCE = 32
"""Each has a producer, and so a client, of its own: what one partition refuses ends its client for good."""
_FLUSH_STEP_S = 0.2


@dataclass(frozen=True, slots=True)
class Produced:
    """What became of one partition's records."""

    partition: PartitionReplay
    confirmed: int
    """Records that the cluster has, on every replica in sync."""
    error: str = ""
    """Why not all of them are; empty where they are."""
    sent: bool = True
    """Whether any was sent; a partition that takes none is left alone."""


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

    def is_full(self, shares: int) -> bool:
        """Whether it is what one of so many partitions may have under way."""
        return self.waiting * shares >= CHUNK_RECORDS or self.size_bytes * shares >= CHUNK_BYTES


class Replay:
    """Carries a replay out, many partitions at once; what happens is in the journal before more of it does.

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
        self._at_once = 1
        self.moved: tuple[TopicPartition, ...] = ()
        """After `run`: partitions that had an election meanwhile, or whose leader could not be read again."""

    def run(self) -> list[Produced]:
        """Produce all that is to be replayed, to many partitions at once. One that fails ends, and the others go on.

        Raises:
            RefusedError: a partition has another leader than when its records were judged, or none of them takes
                records any more; nothing was produced then.
        """
        waiting = deque(one for one in self._plan.partitions if one.to_replay)
        ended = {one.source: Produced(one, 0) for one in self._plan.partitions if not one.to_replay}
        self._leave_out(waiting, ended)
        left_out = list(dict.fromkeys(one.error for one in ended.values() if one.error))
        if left_out and not waiting:
            raise RefusedError("; ".join(left_out), next_step="run it again, and look again")
        under_way: dict[TopicPartition, Generator[None, None, Produced]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < PARTITIONS_AT_ONCE:
                one = waiting.popleft()
                under_way[one.source] = self._partition(one)
            self._at_once = len(under_way)
            for source, work in list(under_way.items()):
                try:
                    next(work)
                except StopIteration as end:
                    ended[source] = end.value
                    del under_way[source]
                    if ended[source].error:
                        self._leave_out(waiting, ended)
        produced = self._looked_at_again([ended[one.source] for one in self._plan.partitions])
        if not self.moved and not any(one.error and one.sent for one in produced):
            self._journal.finish(one.partition.source for one in produced if not one.error)
        return produced

    def _leave_out(self, waiting: deque[PartitionReplay], ended: dict[TopicPartition, Produced]) -> None:
        """Take partitions out that take no records by now, before each of them is waited for."""
        if not waiting:
            return
        found = self._look_at([one.target.state.address for one in waiting])
        for one in list(waiting):
            before, (now, why) = one.target.state, found[one.target.state.address]
            if now is not None and now.leader_epoch != before.leader_epoch:
                why = (
                    f"{before.address} has had an election since its records were looked at (leader epoch"
                    f" {before.leader_epoch}, now {now.leader_epoch}): what survives may be another"
                )
            if why:
                waiting.remove(one)
                ended[one.source] = Produced(one, 0, why, sent=False)

    def _look_at(
        self, addresses: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[PartitionState | None, str]]:
        """(how each stands, None where that cannot be told; why it takes no records, empty where it does)."""
        source = self._preparing.source
        source.forget()
        found = look_at(source, addresses)
        configs = source.topic_configs(sorted({at.topic for at in found}))
        told: dict[TopicPartition, tuple[PartitionState | None, str]] = {}
        for at, one in found.items():
            state = one.state if isinstance(one, Led) else None
            why_not = too_few_in_sync(one.state, configs.get(at.topic, TopicConfig())) if isinstance(one, Led) else one
            told[at] = state, "" if why_not is None else why_not.error().message
        return told

    def _looked_at_again(self, produced: Sequence[Produced]) -> list[Produced]:
        """The same, with why a partition took no more; `moved` names those where an unclean election may have taken
        records away again that were confirmed."""
        sent = [one.partition.target.state.address for one in produced if one.confirmed or (one.error and one.sent)]
        try:
            found = self._look_at(sent) if sent else {}
        except KelrError:
            found = {}
        told, moved = [], []
        for one in produced:
            before = one.partition.target.state
            now, why = found.get(before.address, (None, ""))
            if one.confirmed and (now is None or now.leader_epoch != before.leader_epoch):
                moved.append(before.address)
            told.append(replace(one, error=f"{why} ({one.error})") if one.error and one.sent and why else one)
        self.moved = tuple(moved)
        return told

    def _partition(self, one: PartitionReplay) -> Generator[None, None, Produced]:
        """Produces one partition's records, and yields where it waits for answers."""
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
            if chunk.is_full(self._at_once):
                confirmed += yield from self._settle(producer, one, chunk, last)
                if chunk.errors:
                    break
                chunk = _Chunk()
        else:
            confirmed += yield from self._settle(producer, one, chunk, last)
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

    def _settle(
        self, producer: Producer | None, one: PartitionReplay, chunk: _Chunk, last: tuple[int, int]
    ) -> Generator[None, None, int]:
        """Wait until every record of a chunk is confirmed or refused, and write it down where all are confirmed."""
        if producer is None:
            return 0
        yield  # other partitions' records go out, too, before anything is waited for
        ground = self._preparing.ground
        deadline = ground.steady_s() + self._timeout_s + 5
        while producer.wait(_FLUSH_STEP_S / self._at_once) and ground.steady_s() < deadline:
            yield
        if chunk.confirmed + len(chunk.errors) < chunk.waiting and not chunk.errors:
            chunk.errors.append("no answer in time")
        if not chunk.errors and chunk.confirmed:
            self._journal.checkpoint(one.target.state.address, one.checkpoint(last, chunk.target_end))
        self._confirmed += chunk.confirmed
        if self._progress is not None:
            self._progress(self._confirmed, self._plan.to_replay)
        return chunk.confirmed
