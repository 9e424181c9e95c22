"""A broker's log directories as a whole: whose they are, what is in them, and that nothing in them is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import BadInputError, UsageError
from kelr.model import EpochEnd, LogUnavailable, LogUnavailableReason, ReplicaLog, TopicPartition, select
from kelr.sources.disk import DiskCollection, open_partition, processes, read_brokers, read_log_directories
from kelr.sources.disk.files import (
    EpochCache,
    GarbledError,
    read_clean_shutdown,
    read_leader_epochs,
    read_meta_properties,
    read_offsets,
    read_topic_id,
)
from kelr.sources.disk.names import Kind, ReplicaName, replica_name, segment_base, stops_kafka
from kelr.sources.records.batches import StopKind
from tests.sources.disks import CLUSTER_ID, DIRECTORY_ID, TOPIC_ID, Disk, Run, batches

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 12)
NOW_MS = 1_700_000_000_000


def read(*disks: Disk | Path, targets: tuple[str, ...] | None = None, **options: object) -> DiskCollection:
    return read_log_directories(
        [disk if isinstance(disk, Path) else disk.path for disk in disks],
        selection=None if targets is None else select(targets),
        clock_ms=lambda: NOW_MS,
        **options,  # type: ignore[arg-type]
    )


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "data")


# Names.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ReplicaName(ORDERS, Kind.CURRENT)),
        ("a-b.c-delete-7", ReplicaName(TopicPartition("a-b.c-delete", 7), Kind.CURRENT)),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", ReplicaName(ORDERS, Kind.DELETED)),
        ("orders-0.0123456789abcdef0123456789abcdef-future", ReplicaName(ORDERS, Kind.FUTURE)),
        ("a.b-0.0123456789abcdef0123456789abcdef-stray", ReplicaName(TopicPartition("a.b", 0), Kind.STRAY)),
        ("lost+found", None),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("orders-99999999999", None),
        ("orders-0\n", None),
    ],
)
def test_the_name_of_a_directory_tells_what_it_is(name: str, expected: ReplicaName | None) -> None:
    assert replica_name(name) == expected


def test_names_that_stop_kafka() -> None:
    assert stops_kafka("lost+found")
    assert not stops_kafka("remote-log-index-cache")
    assert not stops_kafka("orders-0")


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("00000000000000000042.log", 42),
        ("00000000000000000042.log.deleted", None),
        ("00000000000000000042.index", None),
        ("42.log", None),
        ("99999999999999999999.log", None),
    ],
)
def test_the_name_of_a_segment_gives_its_base_offset(name: str, base: int | None) -> None:
    assert segment_base(name) == base


# Small files.


def test_a_checkpoint_of_offsets(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text("0\n2\norders 0 35\na-b 12 9223372036854775807\n")
    assert read_offsets(str(path)) == {ORDERS: 35, TopicPartition("a-b", 12): 2**63 - 1}


@pytest.mark.parametrize("content", ["", "0\n", "0\n0\n"])
def test_an_empty_checkpoint_is_none_at_all(tmp_path: Path, content: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    assert read_offsets(str(path)) == {}
    assert read_leader_epochs(str(path)) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1\n0\n", "line 1: version '1'"),
        ("\x00\x00\x00", "line 1"),
        ("0\n2\norders 0 35\n", "promises 2 entries and has 1"),
        ("0\n1\norders 0 35\npayments 0 1\n", "promises 1 entries and has 2"),
        ("0\n1\norders 0\n", "line 3"),
        ("0\n1\norders zero 35\n", "line 3: 'zero'"),
        ("0\n1\norders 0 -1\n", "line 3: '-1'"),
        ("0\n1\norders 0 99999999999999999999\n", "line 3"),
        ("0\nmany\norders 0 35\n", "line 2: 'many'"),
    ],
)
def test_a_garbled_checkpoint_is_refused_with_its_line(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(GarbledError, match=r"line|promises") as caught:
        read_offsets(str(path))
    assert words in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        for reader in (read_offsets, read_leader_epochs, read_topic_id):
            with contextlib.suppress(GarbledError):
                reader(file.name)


def test_meta_properties(tmp_path: Path) -> None:
    assert read_meta_properties(tmp_path) is None
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=4\ncluster.id=abc\\=\\=\n")
    meta = read_meta_properties(tmp_path)
    assert meta is not None
    assert (meta.broker, meta.cluster_id, meta.directory_id) == (4, "abc==", None)


@pytest.mark.parametrize("content", ["", "version=2\nnode.id=1\n", "version=1\nnode.id=one\n"])
def test_meta_properties_that_are_not_known_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(GarbledError):
        read_meta_properties(tmp_path)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 50)), max_size=12), st.integers(0, 30), st.integers(0, 50))
def test_epochs_always_rise_with_their_offsets(entries: list[tuple[int, int]], start: int, length: int) -> None:
    epochs = EpochCache(entries)
    for cache in (epochs, _clipped(entries, start, start + length)):
        known = list(cache.entries)
        assert known == sorted(known)
        assert len({epoch for epoch, _ in known}) == len({offset for _, offset in known}) == len(known)
    if entries:
        assert epochs.latest == entries[-1][0]


def _clipped(entries: list[tuple[int, int]], start: int, end: int) -> EpochCache:
    cache = EpochCache(entries)
    cache.clip(start, end)
    assert all(start <= offset < max(end, start + 1) or offset > start for _, offset in cache.entries)
    assert all(offset < end for _, offset in cache.entries if offset > start)
    return cache


# Whole directories.


def test_a_log_directory_says_whose_it_is(disk: Disk) -> None:
    disk.filled()
    disk.clean(77)
    found = read(disk)
    (directory,) = found.directories
    assert (found.broker, found.cluster_id, found.read_at_ms) == (1, CLUSTER_ID, NOW_MS)
    assert (directory.directory_id, directory.clean_shutdown, directory.broker_epoch) == (DIRECTORY_ID, True, 77)
    assert (found.clean_shutdown, found.broker_epoch, found.running, found.warnings) == (True, 77, False, ())
    assert found.logs[ORDERS].topic_id == TOPIC_ID


def test_the_selection_decides_what_is_read(disk: Disk) -> None:
    disk.filled("orders-0")
    disk.filled("payments-12")
    disk.filled("__cluster_metadata-0")
    assert list(read(disk).logs) == [ORDERS, PAYMENTS]
    assert list(read(disk, targets=("payments:12",)).logs) == [PAYMENTS]
    assert list(read(disk, targets=("payments:1",)).logs) == []


def test_without_lineage_the_last_epoch_is_still_told(disk: Disk) -> None:
    disk.filled()
    answer = read(disk, lineage=False).logs[ORDERS].answer
    assert isinstance(answer, ReplicaLog)
    assert (answer.lineage, answer.last_epoch) == (None, 2)


def test_replicas_that_are_put_aside_are_counted_and_not_read(disk: Disk) -> None:
    disk.filled("orders-0")
    unique = "0123456789abcdef0123456789abcdef"
    for kind in ("delete", "future", "stray"):
        disk.replica(f"orders-0.{unique}-{kind}")
    found = read(disk)
    assert [(one.address, one.kind) for one in found.unused] == [
        (ORDERS, Kind.DELETED),
        (ORDERS, Kind.FUTURE),
        (ORDERS, Kind.STRAY),
    ]
    counts = found.counts
    assert (counts.read, counts.unreadable, counts.future, counts.deleted, counts.stray) == (1, 0, 1, 1, 1)


def test_several_log_directories_of_one_broker(tmp_path: Path) -> None:
    one, other = Disk(tmp_path / "1"), Disk(tmp_path / "2", directory_id="other")
    one.filled("orders-0")
    other.filled("payments-12")
    found = read(one, other)
    assert list(found.logs) == [ORDERS, PAYMENTS]
    one.clean(5)
    found = read(one, other)
    assert (found.clean_shutdown, found.broker_epoch) == (False, None)
    assert any("lacks the mark of a clean shutdown" in warning for warning in found.warnings)
    other.clean(6)
    assert (read(one, other).clean_shutdown, read(one, other).broker_epoch) == (False, None)
    other.clean(5)
    assert (read(one, other).clean_shutdown, read(one, other).broker_epoch) == (True, 5)


def test_a_single_replicas_directory_does_not_tell_how_its_broker_stopped(disk: Disk, tmp_path: Path) -> None:
    """`log-info` said "it was not shut down cleanly" of a copy beside which no mark lies."""
    disk.filled("orders-0")
    copied = tmp_path / "copied" / "orders-0"
    shutil.copytree(disk.path / "orders-0", copied)
    assert read(copied, broker=1).clean_shutdown is None
    disk.clean(5)
    assert read(disk).clean_shutdown is True
    both = read(disk, copied, broker=1)
    assert both.clean_shutdown is True
    assert not any("lacks the mark" in warning for warning in both.warnings)


def test_a_replica_in_two_directories_has_no_log(tmp_path: Path) -> None:
    one, other = Disk(tmp_path / "1"), Disk(tmp_path / "2")
    one.filled("orders-0")
    other.filled("orders-0", runs=[Run(0, 9)])
    found = read(one, other)
    answer = found.logs[ORDERS].answer
    assert isinstance(answer, LogUnavailable)
    assert "two log directories" in answer.detail
    assert [copy.answer.log_end for copy in found.logs[ORDERS].copies if isinstance(copy.answer, ReplicaLog)] == [
        30,
        45,
    ]
    assert any("orders:0 is in two log directories" in warning for warning in found.warnings)
    with pytest.raises(BadInputError, match="two log directories"):
        open_partition([one.path, other.path], ORDERS)


def test_a_directory_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "1", 1)
    disk.filled()
    link = tmp_path / "link"
    link.symlink_to(disk.path, target_is_directory=True)
    names = [disk.path, link, tmp_path / "1" / ".." / "1", disk.path / "orders-0"]
    (found,) = read_brokers(names, clock_ms=lambda: NOW_MS)
    assert [directory.path for directory in found.directories] == [str(disk.path)]
    assert isinstance(found.logs[ORDERS].answer, ReplicaLog)
    assert not found.warnings
    assert open_partition(names, ORDERS).address == ORDERS


def test_directories_of_two_brokers_are_refused_or_read_apart(tmp_path: Path) -> None:
    one, other = Disk(tmp_path / "1", 1), Disk(tmp_path / "2", 2)
    one.filled()
    other.filled()
    with pytest.raises(UsageError, match=r"is of broker 1.*is of broker 2"):
        read(one, other)
    found = read_brokers([other.path, one.path], clock_ms=lambda: NOW_MS)
    assert [(disk.broker, list(disk.logs)) for disk in found] == [(1, [ORDERS]), (2, [ORDERS])]


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    one, other = Disk(tmp_path / "1"), Disk(tmp_path / "2", cluster_id="another")
    with pytest.raises(UsageError, match="not directories of one cluster"):
        read(one, other)


def test_a_path_that_is_not_there_or_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        read(tmp_path / "file")


def test_a_directory_that_nobody_formatted_needs_the_brokers_id(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    disk.filled()
    (disk.path / "meta.properties").unlink()
    with pytest.raises(BadInputError, match=r"no meta\.properties"):
        read(disk)
    found = read(disk, broker=3)
    assert (found.broker, found.cluster_id, found.logs[ORDERS].answer.replica) == (3, None, 3)


def test_the_directory_of_one_replica_can_be_named(disk: Disk, tmp_path: Path) -> None:
    replica = disk.filled()
    disk.filled("payments-12")
    disk.high_watermarks(**{"orders-0": 20, "payments-12": 30})
    found = read(replica.path)
    assert (found.broker, list(found.logs)) == (1, [ORDERS])
    answer = found.logs[ORDERS].answer
    assert isinstance(answer, ReplicaLog)
    assert answer.high_watermark == 20
    copied = tmp_path / "copy" / "orders-0"
    copied.parent.mkdir()
    replica.path.rename(copied)
    alone = read(copied, broker=1).logs[ORDERS].answer
    assert isinstance(alone, ReplicaLog)
    assert (alone.log_end, alone.high_watermark) == (30, None)


def test_a_directory_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Disk(tmp_path / "1"), Disk(tmp_path / "2")
    one.filled()
    listdir = os.listdir

    def broken(path: str | Path) -> list[str]:
        if str(path) == str(other.path):
            raise OSError(5, "Input/output error")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", broken)
    found = read(one, other)
    assert [directory.error for directory in found.directories] == [None, "Input/output error"]
    assert [directory.failed for directory in found.directories] == [False, True]
    assert found.unreadable == (found.directories[1],)
    assert any("any replica may be in it" in warning for warning in found.warnings)
    assert list(found.logs) == [ORDERS]


def test_a_segment_that_cannot_be_read_is_a_storage_error(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.filled()

    def broken(*_arguments: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", broken)
    found = read(disk)
    answer = found.logs[ORDERS].answer
    assert isinstance(answer, LogUnavailable)
    assert (answer.reason, answer.replica) == (LogUnavailableReason.STORAGE_ERROR, 1)
    assert "Input/output error" in answer.detail
    assert found.counts.unreadable == 1


def test_a_segment_that_is_a_pipe_does_not_hang(disk: Disk) -> None:
    replica = disk.filled()
    log = replica.path / f"{0:020d}.log"
    log.unlink()
    os.mkfifo(log)
    answer = read(disk).logs[ORDERS].answer
    assert isinstance(answer, LogUnavailable)
    assert "not a regular file" in answer.detail


def test_a_file_system_checks_leftover_is_said(disk: Disk) -> None:
    (disk.path / "lost+found").mkdir()
    assert any("lost+found" in warning and "does not start" in warning for warning in read(disk).warnings)


@pytest.mark.parametrize("topic_id", [None, "x"])
def test_a_replica_without_topic_id_is_read_and_says_so(disk: Disk, topic_id: str | None) -> None:
    replica = disk.filled()
    metadata = replica.path / "partition.metadata"
    metadata.unlink() if topic_id is None else metadata.write_text(f"version: 0\ntopic_id: {topic_id}\n")
    log = read(disk).logs[ORDERS]
    assert isinstance(log.answer, ReplicaLog)
    assert log.topic_id is None
    assert any("gives no topic id" in note for note in log.notes)


@pytest.mark.parametrize(
    ("name", "high_watermark", "words"),
    [
        ("replication-offset-checkpoint", None, "high watermarks are not known"),
        ("log-start-offset-checkpoint", 30, "logs start where their first segment does"),
        ("recovery-point-offset-checkpoint", 30, "Kafka recovers every log"),
    ],
)
def test_a_garbled_checkpoint_is_said_and_not_used(
    disk: Disk, name: str, high_watermark: int | None, words: str
) -> None:
    disk.filled()
    (disk.path / name).write_text("0\n7\n")
    found = read(disk)
    answer = found.logs[ORDERS].answer
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.high_watermark) == (30, high_watermark)
    assert any(name in warning and words in warning for warning in found.warnings)


def test_a_mark_of_a_clean_shutdown_counts_whatever_it_holds(disk: Disk) -> None:
    disk.filled()
    (disk.path / ".kafka_cleanshutdown").write_text("not json")
    found = read(disk)
    assert (found.directories[0].clean_shutdown, found.clean_shutdown, found.broker_epoch) == (True, False, None)
    (warning,) = found.warnings
    assert warning.startswith("by the broker epochs in its marks of a clean shutdown (none in ")


@pytest.mark.parametrize(
    ("content", "epoch"),
    [
        ('{"version":0,"brokerEpoch":24}xyz', 24),
        ('\n {"version":9,"brokerEpoch":24,"more":[]}\n', 24),
        ('{"brokerEpoch":" 24 "}', 24),
        ('{"version":null,"brokerEpoch":2.47e1}', 24),
        ('{"version":0,"brokerEpoch":7,"brokerEpoch":24}', 24),
        ('{"version":0,"brokerEpoch":-1}', -1),
        ('{"version":0,"brokerEpoch":null}', None),
        ('{"version":0,"brokerEpoch":true}', None),
        ('{"version":0,"brokerEpoch":NaN}', None),
        ('{"version":0,"brokerEpoch":99999999999999999999}', None),
        ('{"version":0,"brokerEpoch":24', None),
        ('{"version":"a","brokerEpoch":24}', None),
        ('{"version":{},"brokerEpoch":24}', None),
        ('{"version":99999999999,"brokerEpoch":24}', None),
        ("[]", None),
        ("24", None),
        ("", None),
    ],
)
def test_the_epoch_in_a_mark_is_what_kafka_reads(disk: Disk, content: str, epoch: int | None) -> None:
    """Each was given to CleanShutdownFileHandler of 4.3.1."""
    (disk.path / ".kafka_cleanshutdown").write_text(content)
    mark = read_clean_shutdown(disk.path)
    assert mark is not None
    assert mark.broker_epoch == epoch


_HOLD_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def locked(disk: Disk) -> Iterator[Disk]:
    """The directory while another process holds its lock, as a running broker does."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_LOCK, str(disk.path / ".lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == b"locked\n"
    yield disk
    holder.stdin.close()
    holder.stdout.close()
    assert holder.wait(10) == 0


def test_a_running_broker_is_recognised_and_keeps_its_lock(locked: Disk) -> None:
    locked.filled()
    for _ in range(2):
        found = read(locked)
        assert found.running is True
        assert any("a broker runs on" in warning for warning in found.warnings)


def test_nothing_is_written_anywhere(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    replica = disk.filled()
    disk.filled("payments-12")
    (replica.path / f"{0:020d}.index").unlink()
    before = _everything(disk.path)
    opened = os.open

    def only_to_read(path: str, flags: int, *arguments: int) -> int:
        assert flags & os.O_ACCMODE == os.O_RDONLY
        assert not flags & (os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        return opened(path, flags, *arguments)

    def forbidden(*_arguments: object, **_options: object) -> None:
        raise AssertionError("a reader of disks changes nothing")

    monkeypatch.setattr(os, "open", only_to_read)
    for name in ("rename", "replace", "unlink", "remove", "mkdir", "link", "truncate", "utime", "write"):
        monkeypatch.setattr(os, name, forbidden)
    monkeypatch.setattr("builtins.open", forbidden)
    assert read(disk).counts.read == 2
    list(open_partition([disk.path], ORDERS).batches_from(0))
    monkeypatch.undo()
    assert _everything(disk.path) == before


def _everything(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    found = {}
    for path in sorted(root.rglob("*")):
        of = path.stat()
        found[str(path)] = (of.st_mode, of.st_mtime_ns, of.st_size, path.read_bytes() if path.is_file() else b"")
    return found


@pytest.mark.parametrize(("waits_s", "for_processes"), [(0, 10_000), (1000, 10_000), (1000, 0)])
def test_progress_is_told_of_every_replica(
    disk: Disk, waits_s: float, for_processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By several threads, by one, and by several processes."""
    monkeypatch.setattr(processes, "WAITS_S", waits_s)
    monkeypatch.setattr(processes, "FOR_PROCESSES", for_processes)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    for number in range(200):
        disk.filled(f"orders-{number}", runs=[Run(0, 1, 1)])
    told: list[tuple[int, int]] = []
    found = read(disk, progress=lambda done, total: told.append((done, total)))
    assert told == [(number, 200) for number in range(1, 201)]
    assert list(found.logs) == [TopicPartition("orders", number) for number in range(200)]


# Batches of one replica.


def test_the_batches_of_a_replica_from_any_offset_on(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    first, second = batches(0, [Run(0, 3)]), batches(15, [Run(1, 3)])
    replica.segment(0, first)
    replica.segment(15, second)
    partition = open_partition([disk.path], ORDERS)
    assert [file.base for file in partition.segments] == [0, 15]
    for offset in range(35):
        found = partition.batches_from(offset)
        assert [content for _, content in found] == [*first, *second][offset // 5 :]
        assert found.stopped is not None
        assert (found.stopped.whole, found.stopped.next_offset) == (True, max(30, offset))


def test_a_copied_replica_is_opened_by_its_own_path(disk: Disk) -> None:
    replica = disk.filled()
    assert open_partition([replica.path], ORDERS).path == str(replica.path)


def test_batches_end_at_damage_and_go_on_in_the_next_segment_when_asked(disk: Disk) -> None:
    replica = disk.replica("orders-0")
    first, second = batches(0, [Run(0, 3)]), batches(15, [Run(1, 3)])
    broken = bytearray(first[1])
    broken[-2] ^= 1
    log = replica.segment(0, [first[0], bytes(broken), first[2]])
    replica.segment(15, second)
    found = open_partition([disk.path], ORDERS).batches_from(2)
    assert [header.base_offset for header, _ in found] == [0]
    stopped = found.stopped
    assert stopped is not None
    assert (stopped.path, stopped.stop.kind, stopped.next_offset, stopped.resumes_at, stopped.whole) == (
        str(log),
        StopKind.CRC,
        5,
        15,
        False,
    )
    assert "offset 5 does not match its checksum" in stopped.text
    assert stopped.resumes_at is not None
    rest = open_partition([disk.path], ORDERS).batches_from(stopped.resumes_at)
    assert [content for _, content in rest] == second


def test_a_replica_that_is_not_there_cannot_be_opened(disk: Disk) -> None:
    with pytest.raises(UsageError, match="there is no replica of orders:0"):
        open_partition([disk.path], ORDERS)


def test_lineage_of_a_log_read_from_disk_has_the_engines_shape(disk: Disk) -> None:
    disk.filled(runs=[Run(1, 1), Run(3, 1)], base=40)
    answer = read(disk).logs[ORDERS].answer
    assert isinstance(answer, ReplicaLog)
    assert answer.lineage == (EpochEnd(1, 45), EpochEnd(3, 50))
