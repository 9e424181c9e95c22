"""Reading one replica's log batch by batch: against a broker that answers as a test wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from kelr.sources.live.tail import ATTEMPTS, TailReader
from kelr.sources.live.transport import Failure, FailureKind
from kelr.sources.records.stream import Piece, RawBatch, Unread, UnreadKind
from tests.rescue.batches import batch, partition
from tests.still_ground import StillGround

Log = Sequence[RawBatch]
OUT_OF_RANGE, FENCED, NOT_LEADER, UNAUTHORIZED = 1, 74, 6, 29
MOVED, NOT_AVAILABLE = 109, 9


def answer(records: bytes | None = b"", *, error: int = 0, high_watermark: int = 0, elsewhere: int = -1) -> Any:
    part = SimpleNamespace(
        error_code=error, records=records, high_watermark=high_watermark, preferred_read_replica=elsewhere
    )
    return SimpleNamespace(error_code=0, responses=[SimpleNamespace(partitions=[part])])


class FakeBroker:
    """Serves a log as a broker does: from the batch that holds the offset on, cut after so many bytes."""

    def __init__(self, log: Log, *, answer_bytes: int = 10_000) -> None:
        self.log = log
        self.answer_bytes = answer_bytes
        self.asked: list[Any] = []
        self.first: list[Any] = []
        """Answers that come before the log is served."""
        self.ground = StillGround()

    def exchange(self, node: object, request: Any, *, timeout_s: float | None = None) -> Any:
        del node, timeout_s
        part = request.message.topics[0].partitions[0]
        self.asked.append(request)
        if self.first:
            return self.first.pop(0)
        rest = b"".join(one.data for one in self.log if one.header.next_offset > part.fetch_offset)
        whole = len(rest) and next(len(one.data) for one in self.log if one.header.next_offset > part.fetch_offset)
        return answer(rest[: max(self.answer_bytes, whole)], high_watermark=99)


def reader(broker: FakeBroker, *, start: int = 0, end: int | None = None, committed: bool = False) -> TailReader:
    return TailReader(
        broker,  # type: ignore[arg-type]
        3,
        partition(),
        start=start,
        end=end,
        leader_epoch=5,
        committed=committed,
        timeout_s=1,
    )


def offsets(pieces: Iterator[Piece] | TailReader) -> list[object]:
    """First offsets of batches, and what could not be read as it is."""
    return [piece.header.base_offset if isinstance(piece, RawBatch) else piece for piece in pieces]


LOG = [batch(0, 5), batch(5, 5), batch(10, 5), batch(15, 5)]


@pytest.mark.parametrize("answer_bytes", [1, 150, 200, 10_000])
def test_the_whole_log_whatever_the_answers_size(answer_bytes: int) -> None:
    broker = FakeBroker(LOG, answer_bytes=answer_bytes)
    pieces = list(reader(broker))
    assert [piece.data for piece in pieces if isinstance(piece, RawBatch)] == [one.data for one in LOG]
    assert offsets(iter(pieces)) == [0, 5, 10, 15]


def test_batches_come_whole_around_the_offsets_asked_for() -> None:
    assert offsets(reader(FakeBroker(LOG), start=7, end=11)) == [5, 10]
    assert offsets(reader(FakeBroker(LOG), start=10, end=10)) == []
    assert offsets(reader(FakeBroker(LOG), start=20)) == []


def test_it_asks_as_a_replica_for_the_log_end_and_as_a_consumer_for_the_high_watermark() -> None:
    for committed, replica_id in ((False, -3), (True, -1)):
        broker = FakeBroker(LOG)
        tail = reader(broker, start=10, committed=committed)
        assert offsets(tail) == [10, 15]
        request = broker.asked[0].message
        assert request.replica_id == replica_id
        assert request.topics[0].partitions[0].current_leader_epoch == 5
        assert tail.high_watermark == 99


def test_a_broken_batch_is_stepped_over_and_named() -> None:
    broken = bytearray(LOG[1].data)
    broken[-1] ^= 1
    log = [LOG[0], RawBatch(LOG[1].header, bytes(broken)), *LOG[2:]]
    text = "the batch at offset 5 does not match its checksum"
    assert offsets(reader(FakeBroker(log))) == [0, Unread(5, 10, UnreadKind.CORRUPT, text), 10, 15]
    assert offsets(reader(FakeBroker(log, answer_bytes=1))) == [0, Unread(5, 10, UnreadKind.CORRUPT, text), 10, 15]


def test_garbage_ends_the_reading() -> None:
    broker = FakeBroker(LOG[:1])
    broker.first = [answer(LOG[0].data + b"\x07" * 100)]
    first, unread = offsets(reader(broker))
    assert first == 0
    assert isinstance(unread, Unread)
    assert (unread.from_offset, unread.to_offset, unread.kind) == (5, None, UnreadKind.CORRUPT)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OUT_OF_RANGE, UnreadKind.GONE),
        (FENCED, UnreadKind.CHANGED),
        (UNAUTHORIZED, UnreadKind.NOT_AUTHORIZED),
    ],
)
def test_what_a_broker_refuses_is_said_at_once(error: int, kind: UnreadKind) -> None:
    broker = FakeBroker(LOG)
    broker.first = [answer(error=error)]
    (unread,) = reader(broker, start=5)
    assert isinstance(unread, Unread)
    assert (unread.from_offset, unread.to_offset, unread.kind) == (5, None, kind)
    assert broker.ground.slept == []


class RemoteBroker(FakeBroker):
    """Serves what is before offset 10 from remote storage, and to consumers alone."""

    def exchange(self, node: object, request: Any, *, timeout_s: float | None = None) -> Any:
        asked = request.message
        if not self.first and asked.topics[0].partitions[0].fetch_offset < 10 and asked.replica_id != -1:
            self.asked.append(request)
            return answer(error=MOVED)
        return super().exchange(node, request, timeout_s=timeout_s)


def test_what_is_in_remote_storage_alone_is_read_there_as_a_consumer() -> None:
    broker = RemoteBroker(LOG, answer_bytes=150)
    assert offsets(reader(broker)) == [0, 5, 10, 15]
    asked = [(one.message.replica_id, one.message.topics[0].partitions[0].fetch_offset) for one in broker.asked]
    assert asked == [(-3, 0), (-1, 0), (-3, 5), (-1, 5), (-3, 10), (-3, 15), (-3, 20)]


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (answer(error=NOT_AVAILABLE), "the broker does not know what is there (REPLICA_NOT_AVAILABLE)"),
        (answer(b""), "the broker did not read it in time (remote.fetch.max.wait.ms)"),
        (answer(None), "the broker did not read it in time (remote.fetch.max.wait.ms)"),
    ],
)
def test_remote_storage_that_is_not_read_is_no_end_of_the_log(there: Any, why: str) -> None:
    broker = RemoteBroker(LOG)
    broker.first = [one for _ in range(ATTEMPTS) for one in (answer(error=MOVED), there)]
    (unread,) = reader(broker)
    assert isinstance(unread, Unread)
    assert (unread.from_offset, unread.to_offset, unread.kind) == (0, None, UnreadKind.NO_ANSWER)
    assert unread.text.startswith(f"offset 0 is in remote storage alone: {why}")
    assert len(broker.ground.slept) == ATTEMPTS - 1


def silence() -> Any:
    return Failure(FailureKind.TIMED_OUT, "no answer in time")


@pytest.mark.parametrize("bad", [silence, lambda: answer(error=NOT_LEADER)])
def test_a_broker_that_stumbles_is_asked_again(bad: Callable[[], Any]) -> None:
    broker = FakeBroker(LOG)
    broker.first = [bad() for _ in range(ATTEMPTS - 1)]
    assert offsets(reader(broker)) == [0, 5, 10, 15]
    assert broker.ground.slept == [0.2, 0.4, 0.8, 1.6]


def test_a_broker_that_is_gone_ends_the_reading() -> None:
    broker = FakeBroker(LOG)
    broker.first = [silence() for _ in range(ATTEMPTS)]
    (unread,) = reader(broker, start=5)
    assert unread == Unread(5, None, UnreadKind.NO_ANSWER, "no answer in time")


def test_a_broker_that_sends_readers_elsewhere_has_not_answered() -> None:
    broker = FakeBroker(LOG)
    broker.first = [answer(None, elsewhere=2) for _ in range(ATTEMPTS)]
    (unread,) = reader(broker)
    assert isinstance(unread, Unread)
    assert unread.kind is UnreadKind.NO_ANSWER


def test_an_old_message_format_is_named() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    broker = FakeBroker([])
    broker.first = [answer(bytes(builder.build()))]
    (unread,) = reader(broker)
    assert isinstance(unread, Unread)
    assert unread.kind is UnreadKind.TOO_OLD


def test_an_old_message_format_hides_no_batch_behind_it() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    broker = FakeBroker([batch(3, 2)])
    broker.first = [answer(batch(0, 1).data + b"\0" * 7 + b"\1" + bytes(builder.build())[8:])]
    first, unread, behind = reader(broker)
    assert isinstance(first, RawBatch)
    assert isinstance(unread, Unread)
    assert (unread.from_offset, unread.to_offset, unread.kind) == (1, 2, UnreadKind.TOO_OLD)
    assert isinstance(behind, RawBatch)
    assert behind.header.base_offset == 3
