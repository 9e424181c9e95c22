"""Cutting the tail of a log, on real segment bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kelr.errors import LabError
from kelr.lab.disk import CLEAN_SHUTDOWN_FILE, cut_log, read_batches

TOPIC = "orders"


def batch(base_offset: int, records: int, leader_epoch: int = 0) -> bytes:
    """A record batch as a log holds it; the leader gives it its offset and its epoch."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000,
    )
    for record in range(records):
        builder.append(record, timestamp=1_700_000_000_000, key=None, value=b"value %d" % record, headers=[])
    raw = bytearray(builder.build())
    raw[0:8] = base_offset.to_bytes(8, "big")
    raw[12:16] = leader_epoch.to_bytes(4, "big")
    return bytes(raw)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory: a closed segment of offsets 0 to 9 in two batches, an active one of 10 to 16 in two."""
    log = tmp_path / f"{TOPIC}-3"
    log.mkdir()
    for base, content in ((0, batch(0, 5) + batch(5, 5)), (10, batch(10, 4, 1) + batch(14, 3, 2))):
        name = f"{base:020d}"
        (log / f"{name}.log").write_bytes(content)
        for suffix in (".index", ".timeindex"):
            (log / f"{name}{suffix}").write_bytes(b"\0" * 16)
    (log / "00000000000000000010.snapshot").write_bytes(b"s")
    (tmp_path / CLEAN_SHUTDOWN_FILE).write_text("{}")
    return tmp_path


def offsets(data: Path) -> list[tuple[int, int, int]]:
    segments = sorted((data / f"{TOPIC}-3").glob("*.log"))
    return [
        (one.base_offset, one.next_offset, one.leader_epoch) for segment in segments for one in read_batches(segment)
    ]


def test_the_batches_of_a_segment_are_read(data: Path) -> None:
    assert offsets(data) == [(0, 5, 0), (5, 10, 0), (10, 14, 1), (14, 17, 2)]


def test_the_last_batch_is_cut_at_its_boundary(data: Path) -> None:
    cut = cut_log(data, 2, TOPIC, 3, 1)
    assert (cut.broker, cut.topic, cut.partition, cut.batches) == (2, TOPIC, 3, 1)
    assert (cut.from_offset, cut.to_offset, cut.offsets) == (14, 17, 3)
    assert offsets(data) == [(0, 5, 0), (5, 10, 0), (10, 14, 1)]


def test_a_cut_over_a_segment_takes_that_segment_away(data: Path) -> None:
    cut = cut_log(data, 2, TOPIC, 3, 3)
    assert (cut.from_offset, cut.to_offset) == (5, 17)
    assert offsets(data) == [(0, 5, 0)]
    log = data / f"{TOPIC}-3"
    assert [file.name for file in log.iterdir()] == ["00000000000000000000.log"]


def test_a_machine_that_crashed_has_no_clean_shutdown_file(data: Path) -> None:
    cut_log(data, 2, TOPIC, 3, 1)
    assert not (data / CLEAN_SHUTDOWN_FILE).exists()


def test_a_torn_batch_at_the_end_is_not_counted(data: Path) -> None:
    active = data / f"{TOPIC}-3" / "00000000000000000010.log"
    active.write_bytes(active.read_bytes()[:-4])
    assert offsets(data)[-1] == (10, 14, 1)
    assert cut_log(data, 2, TOPIC, 3, 1).from_offset == 10
    assert active.read_bytes() == b""


@pytest.mark.parametrize("batches", [0, -1, 5])
def test_more_than_there_is_cannot_be_cut(data: Path, batches: int) -> None:
    with pytest.raises(LabError, match=rf"cannot cut {batches} batches off orders:3 of broker 2: it holds 4"):
        cut_log(data, 2, TOPIC, 3, batches)
    assert len(offsets(data)) == 4


def test_a_log_that_is_not_there_is_named(data: Path) -> None:
    with pytest.raises(LabError, match=r"broker 2 has no log of orders:4"):
        cut_log(data, 2, TOPIC, 4, 1)


def test_an_old_message_format_is_refused(data: Path) -> None:
    old = bytearray(batch(0, 1))
    old[16] = 1
    (data / f"{TOPIC}-3" / "00000000000000000000.log").write_bytes(old)
    with pytest.raises(LabError, match="magic 1 at byte 0"):
        offsets(data)
