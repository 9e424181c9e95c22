"""Where a log on a disk ends once Kafka has started: after a clean shutdown, after a crash, and with damage."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.model import EpochEnd, LogUnavailable, LogUnavailableReason, ReplicaLog, TopicPartition
from kelr.sources.disk import DiskLog, read_log_directories
from tests.sources.disks import Disk, Run, batch, batches

ORDERS = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000


def read(disk: Disk, *, checksums: bool = True) -> DiskLog:
    return read_log_directories([disk.path], clock_ms=lambda: NOW_MS, checksums=checksums).logs[ORDERS]


def heard(disk: Disk) -> ReplicaLog:
    answer = read(disk).answer
    assert isinstance(answer, ReplicaLog), answer
    return answer


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "data")


def test_a_log_after_a_clean_shutdown_is_told_whole(disk: Disk) -> None:
    disk.filled(runs=[Run(0, 4), Run(2, 2)])
    disk.high_watermarks(**{"orders-0": 25})
    disk.clean(broker_epoch=77)
    assert heard(disk) == ReplicaLog(
        replica=1,
        log_end=30,
        last_epoch=2,
        current_leader_epoch=None,
        high_watermark=25,
        log_start=0,
        lineage=(EpochEnd(0, 20), EpochEnd(2, 30)),
        broker_epoch=77,
        source="log directory",
        read_at_ms=NOW_MS,
    )


def test_a_log_after_a_crash_carries_no_broker_epoch(disk: Disk) -> None:
    disk.filled()
    log = heard(disk)
    assert (log.log_end, log.last_epoch, log.broker_epoch) == (30, 2, None)


def _torn(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-7])


def _torn_header(log: Path) -> None:
    log.write_bytes(log.read_bytes() + batch(30, 2)[:30])


def _zeros(log: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(4096))


def _short_zeros(log: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(9))


def _noise(log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"\x7f" * 300)


def _flipped_in_batch_3(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[2 * len(content) // 6 + 70] ^= 1
    log.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "end", "epoch"),
    [
        (_torn, 25, 2),
        (_torn_header, 30, 2),
        (_zeros, 30, 2),
        (_short_zeros, 30, 2),
        (_noise, 30, 2),
        (_flipped_in_batch_3, 10, 0),
    ],
)
def test_after_a_crash_kafka_cuts_the_log_at_the_first_batch_that_is_not_whole(
    disk: Disk, damage: Callable[[Path], None], end: int, epoch: int
) -> None:
    replica = disk.filled()
    damage(replica.path / f"{0:020d}.log")
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.last_epoch) == (end, epoch)
    assert found.answer.lineage is not None
    assert found.answer.lineage[-1] == EpochEnd(epoch, end)
    assert found.bytes_behind > 0
    assert any("Kafka cuts off" in note and "byte" in note for note in found.notes)


def test_after_a_clean_shutdown_a_torn_batch_is_passed_over(disk: Disk) -> None:
    replica = disk.filled()
    _torn_header(replica.path / f"{0:020d}.log")
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.bytes_behind) == (30, 30)


def test_after_a_clean_shutdown_kafka_does_not_look_for_damage_and_kelr_says_where_it_is(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    content = batches(0, [Run(0, 6)])
    content[4] = content[4][:-2] + b"\xff" + content[4][-1:]
    log = replica.segment(0, content, index="empty")
    replica.epochs((0, 0))
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.log_end == 30
    (note,) = found.notes
    assert str(log) in note
    assert "offset 20 does not match its checksum" in note


@pytest.mark.parametrize("damage", [_zeros, _noise])
def test_after_a_clean_shutdown_bytes_that_are_no_batch_make_the_end_unknown(
    disk: Disk, damage: Callable[[Path], None]
) -> None:
    replica = disk.filled()
    damage(replica.path / f"{0:020d}.log")
    disk.clean()
    answer = read(disk).answer
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is LogUnavailableReason.ERROR
    assert "after a clean shutdown" in answer.detail


def test_an_index_beyond_the_log_makes_the_end_unknown_after_a_clean_shutdown_only(disk: Disk) -> None:
    replica = disk.filled()
    log = replica.path / f"{0:020d}.log"
    log.write_bytes(b"".join(batches(0, [Run(0, 4)])))
    assert heard(disk).log_end == 20
    disk.clean()
    answer = read(disk).answer
    assert isinstance(answer, LogUnavailable)
    assert "Kafka may take the log to end at 0, although it holds batches up to 20" in answer.detail


@pytest.mark.parametrize("index", ["none", "empty", "zeros", "last"])
@pytest.mark.parametrize("clean", [True, False])
def test_any_index_that_fits_leads_to_the_same_end(disk: Disk, index: str, clean: bool) -> None:
    replica = disk.replica("orders-0")
    replica.segment(0, batches(0, [Run(0, 3)]), index="last")
    replica.segment(15, batches(15, [Run(0, 1), Run(4, 3)]), index=index)
    replica.epochs((0, 0), (4, 20))
    if clean:
        disk.clean()
    log = heard(disk)
    assert (log.log_end, log.last_epoch, log.lineage) == (35, 4, (EpochEnd(0, 20), EpochEnd(4, 35)))


def test_a_segment_without_index_is_checked_even_after_a_clean_shutdown(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    log = replica.segment(0, batches(0, [Run(0, 6)]), index="none")
    replica.epochs((0, 0))
    disk.clean()
    _flipped_in_batch_3(log)
    assert heard(disk).log_end == 10


def test_segments_behind_a_damaged_one_go(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    log = replica.segment(0, batches(0, [Run(0, 6)]))
    replica.segment(30, batches(30, [Run(1, 2)]))
    replica.segment(40, batches(40, [Run(2, 2)]))
    replica.epochs((0, 0), (1, 30), (2, 40))
    _flipped_in_batch_3(log)
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.lineage) == (10, (EpochEnd(0, 10),))
    assert any("2 later segments from offset 30 on" in note for note in found.notes)


def test_segments_before_the_recovery_point_are_trusted(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    log = replica.segment(0, batches(0, [Run(0, 6)]))
    replica.segment(30, batches(30, [Run(1, 2)]))
    replica.epochs((0, 0), (1, 30))
    _flipped_in_batch_3(log)
    disk.checkpoint("recovery-point-offset-checkpoint", {"orders-0": 33})
    assert heard(disk).log_end == 40
    disk.checkpoint("recovery-point-offset-checkpoint", {"orders-0": 29})
    assert heard(disk).log_end == 10


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_last_segment_ends_the_log_where_it_begins(disk: Disk, clean: bool) -> None:
    replica = disk.replica("orders-0")
    replica.segment(0, batches(0, [Run(3, 2)]))
    replica.segment(12, [], index="empty")
    replica.epochs((3, 0))
    disk.checkpoint("recovery-point-offset-checkpoint", {"orders-0": 12})
    if clean:
        disk.clean()
    log = heard(disk)
    assert (log.log_end, log.last_epoch, log.lineage) == (12, 3, (EpochEnd(3, 12),))


def test_a_replica_without_segments_is_empty(disk: Disk) -> None:
    disk.replica("orders-0")
    log = heard(disk)
    assert (log.log_start, log.log_end, log.last_epoch, log.lineage, log.is_empty) == (0, 0, None, (), True)


def test_a_log_that_ends_before_its_start_is_deleted_by_kafka(disk: Disk) -> None:
    disk.filled()
    disk.checkpoint("log-start-offset-checkpoint", {"orders-0": 45})
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_start, found.answer.log_end, found.answer.last_epoch) == (45, 45, None)
    assert any("Kafka deletes all of it" in note for note in found.notes)


def test_the_log_starts_at_its_first_segment_or_at_the_checkpoint_whichever_is_later(disk: Disk) -> None:
    disk.filled(base=100)
    assert heard(disk).log_start == 100
    disk.checkpoint("log-start-offset-checkpoint", {"orders-0": 110})
    log = heard(disk)
    assert (log.log_start, log.lineage) == (110, (EpochEnd(0, 120), EpochEnd(2, 130)))


@pytest.mark.parametrize(
    ("saved", "epochs", "by_name"),
    [
        (None, (), True),
        (100, (), False),
        (None, ((0, 100), (2, 120)), False),
        # Those of what is gone are still there: remote storage has it, or nobody.
        (None, ((0, 0), (2, 120)), True),
        (100, ((0, 0), (2, 120)), False),
    ],
)
def test_only_a_checkpoint_tells_that_kafka_moved_the_start(
    disk: Disk, saved: int | None, epochs: Sequence[tuple[int, int]], by_name: bool
) -> None:
    replica = disk.filled(base=100)
    replica.epochs(*epochs)
    if saved is not None:
        disk.checkpoint("log-start-offset-checkpoint", {"orders-0": saved})
    assert heard(disk).start_by_name is by_name


def _remote(disk: Disk, *runs: Run, epochs: Sequence[tuple[int, int]] = ((0, 0), (1, 40))) -> None:
    """A log of which all before offset 90 is in remote storage alone."""
    replica = disk.replica("orders-0")
    replica.segment(90, batches(90, runs))
    replica.epochs(*epochs)
    disk.high_watermarks(**{"orders-0": 20})


@pytest.mark.parametrize(("clean", "saved", "start"), [(True, None, 0), (True, 30, 30), (False, None, 0)])
def test_what_is_in_remote_storage_alone_belongs_to_the_log(
    disk: Disk, clean: bool, saved: int | None, start: int
) -> None:
    """As it was seen on 4.4.0: a broker that is killed before its first checkpoint begins at 0 again."""
    _remote(disk, Run(1, 2))
    if clean:
        disk.clean()
    if saved is not None:
        disk.checkpoint("log-start-offset-checkpoint", {"orders-0": saved})
    log = heard(disk)
    assert (log.log_start, log.local_start, log.log_end, log.high_watermark) == (start, 90, 100, 90)
    assert (log.last_epoch, log.lineage) == (1, (EpochEnd(0, 40), EpochEnd(1, 100)))


def test_a_log_that_is_in_remote_storage_as_a_whole_is_not_empty(disk: Disk) -> None:
    _remote(disk)
    log = heard(disk)
    assert (log.log_start, log.local_start, log.log_end, log.last_epoch, log.is_empty) == (0, 90, 90, 1, False)


def test_epochs_that_batches_tell_of_besides_come_behind_those_in_remote_storage(disk: Disk) -> None:
    _remote(disk, Run(1, 1), Run(3, 1))
    log = heard(disk)
    assert (log.log_start, log.lineage) == (0, (EpochEnd(0, 40), EpochEnd(1, 95), EpochEnd(3, 100)))


def test_a_high_watermark_beyond_the_log_is_cut_to_it_and_said(disk: Disk) -> None:
    disk.filled()
    disk.high_watermarks(**{"orders-0": 37})
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.high_watermark == 30
    assert any("7 committed offsets behind its end 30 are gone" in note for note in found.notes)


@pytest.mark.parametrize("entries", [[], [(0, 0)], [(0, 0), (1, 20)]])
def test_epochs_that_do_not_fit_are_read_from_the_batches(disk: Disk, entries: list[tuple[int, int]]) -> None:
    replica = disk.filled(runs=[Run(0, 4), Run(2, 2)])
    replica.epochs(*entries)
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.lineage == (EpochEnd(0, 20), EpochEnd(2, 30))
    assert any("leader-epoch-checkpoint does not fit" in note for note in found.notes)
    assert found.answer.last_epoch == 2


LYING = {
    "an epoch begins too late": [(0, 0), (2, 25)],
    "an epoch begins too early": [(0, 0), (2, 15)],
    "an epoch that no batch has": [(0, 0), (1, 10), (2, 20)],
    "the first epoch is another": [(1, 0), (2, 20)],
    "an epoch begins within a batch": [(0, 0), (2, 22)],
}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("entries", LYING.values(), ids=LYING)
def test_a_lineage_that_contradicts_the_batches_is_not_believed(
    disk: Disk, entries: list[tuple[int, int]], clean: bool
) -> None:
    """It begins with the log and ends with its last batch's epoch, and is wrong in between."""
    replica = disk.filled(runs=[Run(0, 4), Run(2, 2)])
    replica.epochs(*entries)
    if clean:
        disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.lineage, found.newest_epoch) == ((EpochEnd(0, 20), EpochEnd(2, 30)), None)
    assert any("leader-epoch-checkpoint does not fit the log" in note for note in found.notes)


@pytest.mark.parametrize("index", ["last", "empty", "none", "zeros"])
def test_a_lineage_is_held_against_batches_of_older_segments_too(disk: Disk, index: str) -> None:
    """Of offsets 0 to 14 the checkpoint says epoch 0, and the batches say 1 from 10 on."""
    replica = disk.replica("orders-0")
    replica.segment(0, batches(0, [Run(0, 2), Run(1, 2)]), index=index)
    replica.segment(20, batches(20, [Run(1, 1), Run(4, 2)]))
    replica.epochs((0, 0), (1, 15), (4, 25))
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.lineage == (EpochEnd(0, 10), EpochEnd(1, 25), EpochEnd(4, 35))
    assert any("leader-epoch-checkpoint does not fit the log" in note for note in found.notes)


def test_what_retention_or_compaction_leaves_contradicts_nothing(disk: Disk) -> None:
    """The log starts within its first batches, epoch 1 has none left, and epoch 7 has none yet."""
    replica = disk.replica("orders-0")
    kept = [one for at, one in enumerate(batches(0, [Run(0, 3), Run(1, 2), Run(2, 2)])) if at not in {1, 3, 4}]
    replica.segment(0, kept)
    replica.epochs((0, 3), (1, 15), (2, 25), (7, 35))
    disk.checkpoint("log-start-offset-checkpoint", {"orders-0": 3})
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.notes, found.newest_epoch) == ((), 7)
    assert found.answer.lineage == (EpochEnd(0, 15), EpochEnd(1, 25), EpochEnd(2, 35))


def test_epochs_of_a_log_with_a_hole_are_not_made_up(disk: Disk) -> None:
    """After a clean shutdown nobody looks at older segments, unless their epochs are asked of them."""
    replica = disk.replica("orders-0")
    _torn(replica.segment(0, batches(0, [Run(0, 2), Run(1, 2)])))
    replica.segment(20, batches(20, [Run(4, 2)]))
    replica.epochs((0, 0))
    disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.last_epoch, found.answer.lineage) == (30, 4, None)
    assert any("its leader epochs are not all known" in note for note in found.notes)


def test_a_checkpoint_that_begins_after_the_log_does_not_fit(disk: Disk) -> None:
    replica = disk.filled(runs=[Run(0, 4), Run(2, 2)])
    replica.epochs((2, 20))
    disk.clean()
    assert heard(disk).lineage == (EpochEnd(0, 20), EpochEnd(2, 30))


@pytest.mark.parametrize("without", [0, 30])
def test_damage_beside_a_missing_index_makes_the_end_unknown(disk: Disk, without: int) -> None:
    """Kafka then leaves a hole, or does not start (seen with the classes of 4.3.1)."""
    replica = disk.replica("orders-0")
    log = replica.segment(0, batches(0, [Run(0, 6)]), index="none" if without == 0 else "last")
    replica.segment(30, batches(30, [Run(1, 2)]), index="none" if without == 30 else "last")
    replica.epochs((0, 0), (1, 30))
    assert heard(disk).log_end == 40
    _flipped_in_batch_3(log)
    answer = read(disk).answer
    assert isinstance(answer, LogUnavailable)
    assert f"{without:020d}.index is missing" in answer.detail


def test_a_missing_epoch_checkpoint_is_made_up_for(disk: Disk) -> None:
    replica = disk.filled()
    (replica.path / "leader-epoch-checkpoint").unlink()
    assert heard(disk).lineage == (EpochEnd(0, 20), EpochEnd(2, 30))


def test_epochs_that_were_not_flushed_are_found_in_the_batches_after_a_crash(disk: Disk) -> None:
    replica = disk.filled(runs=[Run(0, 2), Run(1, 2), Run(5, 2)])
    replica.epochs((0, 0))
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.lineage == (EpochEnd(0, 10), EpochEnd(1, 20), EpochEnd(5, 30))
    assert found.notes == ()


def test_epochs_beyond_the_log_are_forgotten(disk: Disk) -> None:
    replica = disk.filled(runs=[Run(0, 4)])
    replica.epochs((0, 0), (6, 20), (7, 25))
    log = heard(disk)
    assert (log.last_epoch, log.lineage) == (0, (EpochEnd(0, 20),))


def test_a_garbled_epoch_checkpoint_is_said(disk: Disk) -> None:
    replica = disk.filled()
    (replica.path / "leader-epoch-checkpoint").write_text("0\n1\nno numbers\n")
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert found.answer.lineage == (EpochEnd(0, 20), EpochEnd(2, 30))
    assert any("line 3" in note and "offline" in note for note in found.notes)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (batch(3, 0), "offset 3 follows one that ends with 4"),
        (batch(5, 0), "leader epoch 0 follows one of 2"),
    ],
)
def test_offsets_and_epochs_that_run_backwards_are_never_trusted(disk: Disk, second: bytes, words: str) -> None:
    replica = disk.replica("orders-0")
    replica.segment(0, [batch(0, 2), second], index="empty")
    replica.epochs((2, 0))
    answer = read(disk).answer
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is LogUnavailableReason.ERROR
    assert words in answer.detail


def test_what_a_torn_batch_left_in_the_middle_is_cut_off_after_a_crash(disk: Disk) -> None:
    """After a clean shutdown Kafka appends behind a torn batch, so that its head stands before the next one (seen on
    4.3.1): old offsets, and no checksum that fits."""
    replica = disk.replica("orders-0")
    first, second = batches(0, [Run(0, 3)]), batches(15, [Run(1, 3)])
    replica.segment(0, [*first, first[0][:40], *second], index="empty")
    replica.epochs((0, 0), (1, 15))
    log = heard(disk)
    assert (log.log_end, log.last_epoch, log.lineage) == (15, 0, (EpochEnd(0, 15),))


def test_a_compaction_that_was_interrupted_is_finished_as_kafka_would(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    replica.segment(0, batches(0, [Run(0, 2)]))
    replica.segment(10, batches(10, [Run(0, 2)]))
    replica.segment(20, batches(20, [Run(1, 2)]))
    replica.epochs((0, 0), (1, 20))
    swapped = replica.path / f"{0:020d}.log.swap"
    swapped.write_bytes(batch(0, 0, 2) + batch(12, 0, 8))
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.last_epoch) == (30, 1)
    assert any("compaction was interrupted" in note for note in found.notes)
    # An unfinished split: its swap files are thrown away.
    (replica.path / f"{0:020d}.log.cleaned").write_bytes(b"")
    assert not any("compaction" in note for note in read(disk).notes)


def test_without_checksums_only_a_torn_batch_ends_a_log(disk: Disk) -> None:
    replica = disk.filled()
    log = replica.path / f"{0:020d}.log"
    _flipped_in_batch_3(log)
    trusting = read(disk, checksums=False).answer
    assert isinstance(trusting, ReplicaLog)
    assert trusting.log_end == 30
    _torn(log)
    torn = read(disk, checksums=False).answer
    assert isinstance(torn, ReplicaLog)
    assert torn.log_end == 25


def test_a_batch_larger_than_a_chunk_is_read_whole(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    large = batch(0, 0, 3, fill=b"y" * 900_000)
    replica.segment(0, [large, batch(3, 0)], index="empty")
    assert heard(disk).log_end == 8


def test_a_length_that_nobody_could_have_written_is_not_believed(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    log = replica.segment(0, batches(0, [Run(0, 2)]), index="empty")
    content = bytearray(log.read_bytes())
    struct.pack_into(">i", content, len(content) // 2 + 8, 2**31 - 1)
    log.write_bytes(content)
    assert heard(disk).log_end == 5


WHOLE = batches(0, [Run(0, 3, 2), Run(1, 2, 7), Run(4, 3, 1)])
ENDS = [(sum(map(len, WHOLE[:number])), number) for number in range(len(WHOLE) + 1)]
OFFSETS = [0, 2, 4, 6, 13, 20, 21, 22, 23]
NOT_COVERED = (*range(8), *range(12, 16))
"""Bytes of a batch that its checksum does not cover and that still read as a batch: base offset, leader epoch."""


def _read_segment(content: bytes) -> DiskLog:
    with tempfile.TemporaryDirectory() as directory:
        disk = Disk(Path(directory) / "data")
        replica = disk.replica("orders-0")
        (replica.path / f"{0:020d}.log").write_bytes(content)
        return read(disk)


@given(st.integers(0, sum(map(len, WHOLE))))
def test_a_log_cut_at_any_byte_ends_with_its_last_whole_batch(size: int) -> None:
    answer = _read_segment(b"".join(WHOLE)[:size]).answer
    assert isinstance(answer, ReplicaLog)
    whole = max(number for end, number in ENDS if end <= size)
    assert answer.log_end == OFFSETS[whole]


@given(st.data())
def test_a_log_with_any_damaged_byte_ends_before_the_batch_that_holds_it(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(WHOLE) - 1))
    at = data.draw(st.integers(0, len(WHOLE[number]) - 1).filter(lambda at: at not in NOT_COVERED))
    content = bytearray(b"".join(WHOLE))
    content[ENDS[number][0] + at] ^= data.draw(st.integers(1, 255))
    answer = _read_segment(bytes(content)).answer
    assert isinstance(answer, ReplicaLog)
    assert answer.log_end == OFFSETS[number]


@given(st.binary(max_size=400))
def test_any_bytes_give_an_answer(content: bytes) -> None:
    found = _read_segment(content)
    if isinstance(found.answer, ReplicaLog):
        assert found.answer.log_end == 0


def _segments(disk: Disk, *bases: int) -> Path:
    """A log of segments of 20 records that begin at these offsets; the path of the first."""
    replica = disk.replica("orders-0")
    paths = [replica.segment(base, batches(base, [Run(0, 4)])) for base in bases]
    replica.epochs((0, 0))
    disk.high_watermarks(**{"orders-0": bases[-1] + 20})
    return paths[0]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("bases", "holes"),
    [
        ((0, 20, 40), ()),
        ((20, 40), ()),
        ((0, 40), ((20, 40),)),
        ((0, 40, 80), ((20, 40), (60, 80))),
    ],
)
def test_a_segment_that_is_gone_is_told(
    disk: Disk, bases: Sequence[int], holes: Sequence[tuple[int, int]], *, clean: bool
) -> None:
    _segments(disk, *bases)
    if clean:
        disk.clean()
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.holes) == (bases[-1] + 20, holes)
    where = " and ".join(f"{start} to {end - 1}" for start, end in holes)
    text = f"offsets {where} are missing between its segments: unless the topic is compacted, a segment is gone"
    assert found.notes == ((text,) if holes else ())


def test_a_segment_that_lost_its_tail_before_the_last_one_is_told(disk: Disk) -> None:
    first = _segments(disk, 0, 20)
    first.write_bytes(first.read_bytes()[:-7])
    disk.clean()
    assert heard(disk).holes == ((15, 20),)


def test_what_kafka_cuts_off_behind_a_damaged_batch_is_told(disk: Disk) -> None:
    first = _segments(disk, 0, 20, 40)
    content = bytearray(first.read_bytes())
    content[len(content) // 4 + 80] ^= 1
    first.write_bytes(content)
    found = read(disk)
    assert isinstance(found.answer, ReplicaLog)
    assert (found.answer.log_end, found.answer.cut_off, found.answer.held_end) == (5, ((0, 20, 60),), 60)
    assert any("The disk still holds offsets 20 to 59 there: save them before it starts" in one for one in found.notes)
    assert not any("behind its end 5 are gone from this disk" in one and "once" not in one for one in found.notes)


def test_what_is_damaged_itself_is_not_told_as_held(disk: Disk) -> None:
    first = _segments(disk, 0, 20)
    for log in (first, first.with_name(f"{20:020d}.log")):
        content = bytearray(log.read_bytes())
        content[2 * len(content) // 4 + 80] ^= 1
        log.write_bytes(content)
    assert heard(disk).cut_off == ((0, 20, 30),)
