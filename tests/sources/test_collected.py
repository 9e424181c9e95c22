"""Collections of logs: saved, read, merged, and used beside a cluster for brokers that do not answer."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.engine.words import time_of_day
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.model import (
    Broker,
    BrokerStatus,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    ReplicaLog,
    Snapshot,
    TopicPartition,
    select,
)
from kelr.sources.base import take_snapshot
from kelr.sources.collected import (
    CollectedSource,
    Collection,
    collection_of_disk,
    collection_of_snapshot,
    merge,
    read_collection,
    save_collection,
)
from kelr.sources.disk import DiskCollection, read_log_directories
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import SnapshotFileSource, read_snapshot, write_snapshot
from tests.sources.disks import OTHER_TOPIC_ID, TOPIC_ID, Disk, Run
from tests.sources.samples import CLUSTER, NOW_MS, PARTITIONS, SNAPSHOT

ORDERS_0, ORDERS_1, PAYMENTS_0 = (TopicPartition(*at) for at in (("orders", 0), ("orders", 1), ("payments", 0)))
LEADERLESS = next(state for state in PARTITIONS if state.address == ORDERS_1)
LATER_MS = NOW_MS + 60_000


def disk_at(path: Path, broker: int = 1, *names: str, topic_id: str | None = None, records: int = 5) -> Disk:
    """A log directory of the sample cluster with replicas of these names."""
    disk = Disk(path, broker, cluster_id=CLUSTER.cluster_id or "", directory_id=f"directory-{path.name}")
    for name in names:
        newest = 6 if name == "orders-1" else 3  # where broker 1 was the last to lead
        replica = disk.filled(name, [Run(0, 2), Run(newest, 2, records)])
        of_orders = "AAAAAAAAAAAAAAAAAAAAAQ" if name.startswith("orders") else "AAAAAAAAAAAAAAAAAAAAAg"
        (replica.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id or of_orders}\n")
    return disk


def read(*disks: Disk, at_ms: int = NOW_MS, targets: tuple[str, ...] | None = None) -> DiskCollection:
    selection = None if targets is None else select(targets)
    return read_log_directories([disk.path for disk in disks], selection=selection, clock_ms=lambda: at_ms)


@pytest.fixture
def dead(tmp_path: Path) -> DiskCollection:
    """The disk of the sample cluster's dead broker 1."""
    return read(disk_at(tmp_path / "data", 1, "orders-0", "orders-1"))


def asked(*collections: Collection | DiskCollection, snapshot: Snapshot = SNAPSHOT) -> CollectedSource:
    return CollectedSource(
        MemorySource(snapshot),
        [collection_of_disk(one) if isinstance(one, DiskCollection) else one for one in collections],
    )


def answer_of(source: CollectedSource, broker: int, address: TopicPartition = ORDERS_1) -> LogAnswer:
    (state,) = (state for page in source.pages(select([str(address)])) for state in page.partitions)
    (answer,) = (one for one in source.replica_logs([state])[address] if one.replica == broker)
    return answer


# Files.


def test_a_collection_comes_back_as_it_was_saved(dead: DiskCollection, tmp_path: Path) -> None:
    path = tmp_path / "broker-1.kelr"
    assert save_collection(dead, path) == 2
    found = read_collection(path)
    assert found == collection_of_disk(dead, str(path))


def test_what_was_odd_and_what_was_looked_for_is_saved_too(tmp_path: Path) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-0")
    (disk.path / "orders-0" / f"{0:020d}.log").write_bytes(bytes(100))
    (disk.path / "lost+found").mkdir()
    found = read(disk, targets=("orders:0,4-7", "/pay.*/"))
    save_collection(found, tmp_path / "file")
    (disk_read,) = read_collection(tmp_path / "file").disks
    assert disk_read.selection == found.selection
    assert disk_read.warnings == found.warnings
    assert disk_read.looked_for(TopicPartition("orders", 5))
    assert not disk_read.looked_for(TopicPartition("orders", 1))
    (log,) = read_collection(tmp_path / "file").logs[ORDERS_0]
    assert (log.notes, log.bytes_behind) == (found.logs[ORDERS_0].notes, 100)


def test_the_same_collection_makes_the_same_bytes(dead: DiskCollection, tmp_path: Path) -> None:
    save_collection(dead, tmp_path / "one")
    save_collection(dead, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        save_collection(dead, tmp_path / "one")


def test_names_of_any_bytes_are_saved_as_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[31m"))
    disk_at(tmp_path / "data", 1, "orders-0", "orders-1").path.rename(path)
    (path / os.fsdecode(b"odd\xfe\x07")).mkdir()
    (path / "orders-0" / f"{0:020d}.log").write_bytes(bytes(100))
    (path / "orders-1" / f"{0:020d}.log").unlink()
    os.mkfifo(path / "orders-1" / f"{0:020d}.log")
    save_collection(read_log_directories([path], clock_ms=lambda: NOW_MS), tmp_path / "file")
    found = read_collection(tmp_path / "file")
    assert found.disks[0].directories[0].path == f"{tmp_path}/??[31m"
    assert "odd??" in found.disks[0].warnings[0]
    text = b"".join(_lines(tmp_path / "file")).decode()
    assert text.replace("\n", "").isprintable()


def test_an_ordinary_snapshot_is_a_collection_of_its_logs(tmp_path: Path) -> None:
    write_snapshot(SNAPSHOT, tmp_path / "snapshot")
    found = read_collection(tmp_path / "snapshot")
    assert (found.cluster_id, found.taken_at_ms, found.disks) == (CLUSTER.cluster_id, NOW_MS, ())
    assert found.snapshot == read_snapshot(tmp_path / "snapshot")
    assert [log.answer for log in found.logs[ORDERS_0]] == list(SNAPSHOT.logs[ORDERS_0])


def test_a_collection_is_no_snapshot(dead: DiskCollection, tmp_path: Path) -> None:
    path = tmp_path / "broker-1.kelr"
    save_collection(dead, path)
    for reader in (read_snapshot, SnapshotFileSource):
        with pytest.raises(BadInputError, match="a collection of the log directories of broker 1") as caught:
            reader(path)
        assert "--logs" in (caught.value.next_step or "")


def _lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:-1], "cut short"),
        (lambda lines: [lines[0], *lines[2:]], "counts"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "comes after"),
        (lambda lines: [lines[0].replace(b'"broker":1', b'"broker":2'), *lines[1:]], "does not name"),
        (lambda lines: [lines[0].replace(b'"disks":[', b'"disks":[],"x":['), *lines[1:]], "line 1: garbled"),
        (lambda lines: [lines[0], lines[1].replace(b'"log_end":20', b'"log_end":-20'), *lines[2:]], "line 2: garbled"),
        (lambda lines: [lines[0], lines[1].replace(b'"log_end":20,', b""), *lines[2:]], "neither log_end nor unheard"),
        (lambda lines: [lines[0], b'{"topic":{"topic":"orders"},"replica":null}\n', *lines[1:]], "counts"),
    ],
)
def test_a_garbled_collection_is_refused(dead: DiskCollection, tmp_path: Path, change: object, words: str) -> None:
    path = tmp_path / "broker-1.kelr"
    save_collection(dead, path)
    changed = change(_lines(path))  # type: ignore[operator]
    assert changed != _lines(path)
    path.write_bytes(gzip.compress(b"".join(changed)))
    with pytest.raises(BadInputError) as caught:
        read_collection(path)
    assert words in caught.value.message


def test_a_replica_on_a_disk_does_not_belong_into_a_snapshot(dead: DiskCollection, tmp_path: Path) -> None:
    save_collection(dead, tmp_path / "collection")
    write_snapshot(SNAPSHOT, tmp_path / "snapshot")
    path = tmp_path / "mixed"
    lines = _lines(tmp_path / "snapshot")
    path.write_bytes(gzip.compress(b"".join([lines[0], _lines(tmp_path / "collection")[1], *lines[1:]])))
    with pytest.raises(BadInputError, match="stand in a collection"):
        read_snapshot(path)


# Merging.


def test_collections_of_different_clusters_are_refused(dead: DiskCollection) -> None:
    other = replace(collection_of_disk(dead, "other"), cluster_id="another")
    with pytest.raises(RefusedError, match="different clusters"):
        merge([collection_of_disk(dead, "one"), other])


def test_of_two_readings_the_newer_one_counts_and_that_is_said(tmp_path: Path) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-0", "orders-1")
    old = collection_of_disk(read(disk), "old")
    disk_at(tmp_path / "newer", 1, "orders-0", records=9)
    (tmp_path / "newer" / "meta.properties").write_text((disk.path / "meta.properties").read_text())
    new = collection_of_disk(
        read_log_directories([tmp_path / "newer"], clock_ms=lambda: LATER_MS, selection=select(["orders:0"])), "new"
    )
    for order in ([old, new], [new, old]):
        merged = merge(order)
        (log,) = merged.logs[ORDERS_0]
        assert isinstance(log.answer, ReplicaLog)
        assert (log.name, log.answer.log_end) == ("new", 28)
        # The newer reading did not look for this one, so the older one is all there is.
        assert [kept.name for kept in merged.logs[ORDERS_1]] == ["old"]
        assert any("the disk of broker 1 was read 2 times: new is the newest" in text for text in merged.conflicts)


def test_a_replica_that_a_newer_reading_did_not_find_is_gone(tmp_path: Path) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-0", "orders-1")
    old = collection_of_disk(read(disk), "old")
    (disk.path / "orders-1").rename(tmp_path / "away")
    new = collection_of_disk(read(disk, at_ms=LATER_MS), "new")
    merged = merge([old, new])
    assert [log.name for log in merged.logs[ORDERS_0]] == ["new"]
    assert ORDERS_1 not in merged.logs


def test_two_disks_of_one_broker_complete_each_other(tmp_path: Path) -> None:
    one = collection_of_disk(read(disk_at(tmp_path / "1", 1, "orders-0")), "one")
    other = collection_of_disk(read(disk_at(tmp_path / "2", 1, "orders-1"), at_ms=LATER_MS), "other")
    merged = merge([one, other])
    assert {at: [log.name for log in logs] for at, logs in merged.logs.items()} == {
        ORDERS_0: ["one"],
        ORDERS_1: ["other"],
    }


def test_hosts_merge_into_one_file(tmp_path: Path) -> None:
    files = []
    for broker in (2, 1):
        disk = disk_at(tmp_path / f"data-{broker}", broker, "orders-0", "orders-1")
        files.append(tmp_path / f"broker-{broker}")
        save_collection(read(disk, at_ms=NOW_MS + broker), files[-1])
    merged = merge([read_collection(path) for path in files])
    together = merged.as_collection("together", NOW_MS + 1)
    assert save_collection(together, tmp_path / "together") == 4
    found = read_collection(tmp_path / "together")
    assert [disk.broker for disk in found.disks] == [1, 2]
    assert {at: [log.answer.replica for log in logs] for at, logs in found.logs.items()} == {
        ORDERS_0: [1, 2],
        ORDERS_1: [1, 2],
    }
    assert merge([found]).logs.keys() == merged.logs.keys()


def test_what_only_one_of_several_readings_looked_for_is_not_taken_for_gone(tmp_path: Path) -> None:
    everything = collection_of_disk(read(disk_at(tmp_path / "1", 1, "orders-0"), at_ms=LATER_MS), "everything")
    a_part = collection_of_disk(read(disk_at(tmp_path / "2", 1, "orders-2"), targets=("orders:2",)), "a-part")
    with asked(everything) as source:
        assert "no such replica in" in detail_of(source)
    merged = merge([everything, a_part])
    save_collection(merged.as_collection("both", NOW_MS), tmp_path / "both")
    for collections in ([everything, a_part], [read_collection(tmp_path / "both")]):
        with asked(*collections) as source:
            assert detail_of(source) == "connection refused"


def detail_of(source: CollectedSource) -> str:
    answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    return answer.detail


def test_readings_that_do_not_belong_into_one_file_are_not_saved(dead: DiskCollection, tmp_path: Path) -> None:
    one = collection_of_disk(dead)
    with pytest.raises(UsageError, match="one reading of each broker's disk"):
        save_collection([one, one], tmp_path / "file")
    other = replace(one, cluster_id="another", disks=(replace(one.disks[0], broker=2),))
    with pytest.raises(RefusedError, match="different clusters"):
        save_collection([one, other], tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_disk_that_was_read_before_its_broker_was_seen_live_is_not_used(dead: DiskCollection) -> None:
    brokers = tuple(replace(broker, status=BrokerStatus.LIVE) for broker in CLUSTER.brokers)
    seen = replace(SNAPSHOT, cluster=replace(CLUSTER, brokers=brokers), taken_at_ms=LATER_MS, source="later")
    merged = merge([collection_of_disk(dead, "disk"), collection_of_snapshot(seen)])
    assert merged.disks == {}
    assert all(not log.of_disk for logs in merged.logs.values() for log in logs)
    assert merged.conflicts == ("broker 1 was live in later, after its disk was read (disk): that reading is not used",)
    earlier = replace(seen, taken_at_ms=NOW_MS - 1)
    assert 1 in merge([collection_of_disk(dead, "disk"), collection_of_snapshot(earlier)]).disks


def test_a_topic_that_was_made_again_is_named(tmp_path: Path) -> None:
    one = collection_of_disk(read(disk_at(tmp_path / "1", 1, "orders-0", topic_id=TOPIC_ID)))
    other = collection_of_disk(read(disk_at(tmp_path / "2", 2, "orders-0", topic_id=OTHER_TOPIC_ID)))
    (text,) = merge([one, other]).conflicts
    assert "topic orders has logs under 2 topic ids" in text


# Beside a cluster.


def test_a_dead_brokers_disk_stands_for_its_answer(dead: DiskCollection) -> None:
    with asked(dead) as source:
        held = dead.logs[ORDERS_1].answer
        assert isinstance(held, ReplicaLog)
        assert answer_of(source, 1) == replace(held, unclean_shutdown=True)
        assert (source.name, source.taken_at_ms, source.cluster()) == (SNAPSHOT.source, NOW_MS, CLUSTER)
        assert source.topic_configs(["orders"]) == {"orders": SNAPSHOT.configs["orders"]}
        assert source.warnings == ()


def marked(path: Path, broker_epoch: int | None = 77, name: str = "orders-1") -> Disk:
    disk = disk_at(path, 1, name)
    disk.clean(broker_epoch)
    return disk


def test_a_disk_tells_whether_its_broker_was_shut_down_cleanly(dead: DiskCollection, tmp_path: Path) -> None:
    def unclean(found: DiskCollection) -> bool | None:
        return told(found, SNAPSHOT)

    assert unclean(dead) is True
    assert unclean(read(marked(tmp_path / "clean"))) is None, "no epoch to compare the mark's with is known"
    both = read(marked(tmp_path / "one"), disk_at(tmp_path / "other", 1, "orders-0"))
    assert unclean(both) is True, "Kafka asks for the mark in all directories"
    differ = read(marked(tmp_path / "77"), marked(tmp_path / "78", 78, "orders-0"))
    assert unclean(differ) is True, "and for one epoch in all of them"
    for content in ("", "not json", "{}", '{"version":0,"brokerEpoch":null}', '{"version":0,"brokerEpoch":-1}'):
        garbled = marked(tmp_path / f"garbled {len(content)}")
        (garbled.path / ".kafka_cleanshutdown").write_text(content)
        assert unclean(read(garbled)) is True, content


def registered(
    broker_epoch: int, by_ms: int | None = NOW_MS - 60_000, log_dirs: tuple[str, ...] | None = ("directory-data",)
) -> Snapshot:
    """The sample cluster, told by a metadata log."""
    brokers = tuple(
        replace(one, broker_epoch=broker_epoch, registered_by_ms=by_ms, log_dirs=log_dirs) if one.id == 1 else one
        for one in CLUSTER.brokers
    )
    return replace(SNAPSHOT, cluster=replace(CLUSTER, brokers=brokers))


def told(found: DiskCollection, snapshot: Snapshot) -> bool | None:
    with asked(found, snapshot=snapshot) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, ReplicaLog)
    return answer.unclean_shutdown


def test_a_mark_makes_a_clean_shutdown_with_the_epoch_of_the_registration_alone(tmp_path: Path) -> None:
    found = read(marked(tmp_path / "data"))
    assert told(found, registered(77)) is False
    for another in (76, 78):
        assert told(found, registered(another)) is True
        with asked(found, snapshot=registered(another)) as source:
            (warning,) = source.warnings
        assert f"is of broker epoch 77, and the broker is registered with {another}" in warning
    assert told(found, registered(77, log_dirs=("directory-data", "directory-other"))) is None, "not all were read"
    assert told(found, registered(77, log_dirs=None)) is None


def test_a_mark_of_an_epoch_that_the_registration_may_have_had_since_or_before_tells_nothing(tmp_path: Path) -> None:
    """The disk was read before the broker registered, or after the state was told: then its log is not used."""
    found = read(marked(tmp_path / "data"))
    later = replace(registered(76), taken_at_ms=NOW_MS - 60_000)
    for snapshot in (registered(78, by_ms=NOW_MS + 1), registered(78, by_ms=None), later):
        with asked(found, snapshot=snapshot) as source:
            answer = answer_of(source, 1)
            assert source.warnings == ()
        assert isinstance(answer, LogUnavailable)
        assert "is not used: it was left by broker epoch 77" in answer.detail


def test_a_mark_of_no_epoch_beside_another_counts_as_the_directories_are_ordered(tmp_path: Path) -> None:
    disks = marked(tmp_path / "none", -1, "orders-0"), marked(tmp_path / "data")
    assert told(read(*disks), registered(77, log_dirs=("directory-data", "directory-none"))) is None
    assert told(read(*disks), registered(78)) is True
    assert told(read(marked(tmp_path / "alone", -1)), registered(77)) is True


def test_the_newest_reading_of_each_directory_counts(tmp_path: Path) -> None:
    one, other = disk_at(tmp_path / "one", 1, "orders-1"), marked(tmp_path / "data")
    readings = [collection_of_disk(read(one, at_ms=NOW_MS)), collection_of_disk(read(other, at_ms=NOW_MS + 1))]
    with asked(*readings) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, ReplicaLog)
    assert answer.unclean_shutdown is True, "the directory that was read before lacks the mark"


def test_how_a_broker_stopped_is_kept_in_a_snapshot(dead: DiskCollection, tmp_path: Path) -> None:
    with asked(dead) as source:
        log = answer_of(source, 1)
    logs = {**SNAPSHOT.logs, ORDERS_1: (log,)}
    write_snapshot(replace(SNAPSHOT, logs=logs), tmp_path / "s.kelr")
    assert read_snapshot(tmp_path / "s.kelr").logs[ORDERS_1] == (log,)


def test_a_live_answer_always_wins(tmp_path: Path) -> None:
    alive = read(disk_at(tmp_path / "data", 2, "orders-1", records=99))
    with asked(alive) as source:
        assert answer_of(source, 2) == MemorySource(SNAPSHOT).replica_logs([LEADERLESS])[ORDERS_1][1]


def test_without_collections_nothing_changes() -> None:
    with asked() as source:
        plain = take_snapshot(MemorySource(SNAPSHOT), select([]), now_ms=NOW_MS, with_logs=lambda _state: True)
        assert take_snapshot(source, select([]), now_ms=NOW_MS, with_logs=lambda _state: True) == plain


def _with_broker(**changes: object) -> Snapshot:
    """The sample with broker 1 otherwise."""
    one = replace(Broker(1, BrokerStatus.FENCED), **changes)  # type: ignore[arg-type]
    return replace(SNAPSHOT, cluster=replace(CLUSTER, brokers=(one, *CLUSTER.brokers[1:])))


def _with_state(**changes: object) -> Snapshot:
    changed = replace(LEADERLESS, **changes)  # type: ignore[arg-type]
    return replace(SNAPSHOT, partitions=tuple(changed if s.address == ORDERS_1 else s for s in PARTITIONS))


def _with_answer(reason: LogUnavailableReason) -> Snapshot:
    answers = (LogUnavailable(1, reason, "its words"), *SNAPSHOT.logs[ORDERS_1][1:])
    return replace(SNAPSHOT, logs={**SNAPSHOT.logs, ORDERS_1: answers})


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (_with_broker(status=BrokerStatus.LIVE), "broker 1 is live, so the log may have changed since"),
        (_with_state(topic_id=OTHER_TOPIC_ID), "deleted and made again"),
        (_with_state(topic_id=None), "the topic id is not known to the cluster"),
        (_with_state(leader_epoch=2), "the state is older than the log"),
        (_with_answer(LogUnavailableReason.NOT_A_REPLICA), "broker 1 runs, it answered (not-a-replica)"),
        (_with_answer(LogUnavailableReason.STORAGE_ERROR), "broker 1 runs, it answered (storage-error)"),
    ],
)
def test_a_disk_that_may_not_speak_for_its_broker_is_not_used_and_the_answer_says_why(
    dead: DiskCollection, snapshot: Snapshot, words: str
) -> None:
    before = MemorySource(snapshot).replica_logs([LEADERLESS])[ORDERS_1][0]
    assert isinstance(before, LogUnavailable)
    with asked(dead, snapshot=snapshot) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is before.reason
    assert answer.detail.startswith(before.detail)
    assert "its log in log directory of broker 1 (end 20) is not used" in answer.detail
    assert words in answer.detail


@pytest.mark.parametrize(
    ("registered", "used", "words"),
    [(77, True, ""), (None, True, ""), (90, False, "the log is the older"), (5, False, "state is the older")],
)
def test_a_broker_that_has_registered_since_is_not_told_by_its_old_disk(
    tmp_path: Path, registered: int | None, used: bool, words: str
) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-1")
    disk.clean(77)
    with asked(read(disk), snapshot=_with_broker(broker_epoch=registered)) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, ReplicaLog) is used
    if isinstance(answer, LogUnavailable):
        assert words in answer.detail


@pytest.mark.parametrize(
    "reason",
    [
        LogUnavailableReason.NOT_ASKED,
        LogUnavailableReason.UNREACHABLE,
        LogUnavailableReason.TIMED_OUT,
        LogUnavailableReason.NO_ADDRESS,
    ],
)
def test_a_broker_that_is_silent_is_told_by_its_disk(dead: DiskCollection, reason: LogUnavailableReason) -> None:
    with asked(dead, snapshot=_with_answer(reason)) as source:
        assert isinstance(answer_of(source, 1), ReplicaLog)


def test_a_disk_without_topic_id_is_not_used(tmp_path: Path) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-1")
    (disk.path / "orders-1" / "partition.metadata").unlink()
    with asked(read(disk)) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert "the topic id is not known to the collection" in answer.detail


def test_a_replica_that_its_disk_does_not_hold_has_lost_its_log(tmp_path: Path) -> None:
    gone = read(disk_at(tmp_path / "other", 1, "orders-0"))
    with asked(gone) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is LogUnavailableReason.STORAGE_ERROR
    assert "connection refused; no such replica in" in answer.detail
    # Not so where it was not looked for.
    with asked(read(disk_at(tmp_path / "third", 1, "orders-0"), targets=("orders:0",))) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert (answer.reason, answer.detail) == (LogUnavailableReason.UNREACHABLE, "connection refused")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("Input/output error", LogUnavailableReason.STORAGE_ERROR),
        ("Permission denied", LogUnavailableReason.UNREACHABLE),
    ],
)
def test_a_directory_that_could_not_be_read_leaves_its_replicas_unknown(
    tmp_path: Path, error: str, reason: LogUnavailableReason
) -> None:
    found = read(disk_at(tmp_path / "data", 1, "orders-0"))
    broken = replace(found.directories[0], path="broken", error=error)
    with asked(replace(found, directories=(*found.directories, broken))) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is reason
    assert f"broken could not be read ({error}): its log may be there" in answer.detail


def test_another_clusters_collection_is_refused(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data", 1, cluster_id="another")
    disk.filled("orders-1")
    source = asked(read(disk))
    with pytest.raises(RefusedError, match="of cluster another; this is cluster kelr-test"):
        source.cluster()
    with pytest.raises(RefusedError):
        source.pages(select([]))
    with pytest.raises(RefusedError):
        source.replica_logs([LEADERLESS])


def test_answers_of_an_older_snapshot_stand_in_and_say_that_they_were_saved() -> None:
    log = ReplicaLog(1, 25, 3, 7, 20, 0, source="ListOffsets+Fetch", read_at_ms=NOW_MS - 5)
    older = replace(SNAPSHOT, logs={ORDERS_1: (log,)}, taken_at_ms=NOW_MS - 10, source="older")
    with asked(collection_of_snapshot(older)) as source:
        assert answer_of(source, 1) == replace(log, source="ListOffsets+Fetch, saved")
        assert answer_of(source, 2) == MemorySource(SNAPSHOT).replica_logs([LEADERLESS])[ORDERS_1][1]


@pytest.mark.parametrize("leader_epoch", [6, None])
def test_an_answer_from_before_the_leader_was_lost_is_told_and_not_used(leader_epoch: int | None) -> None:
    """Its broker may have written, or truncated, since; it was used as if it were the log that is there now."""
    log = ReplicaLog(1, 25, 3, leader_epoch, 20, 0, source="ListOffsets+Fetch", read_at_ms=NOW_MS - 5)
    older = replace(SNAPSHOT, logs={ORDERS_1: (log,)}, taken_at_ms=NOW_MS - 10, source="older")
    with asked(collection_of_snapshot(older)) as source:
        answer = answer_of(source, 1)
    assert isinstance(answer, LogUnavailable)
    assert answer.detail.endswith(
        f"; its log in older (end 25 at {time_of_day(NOW_MS - 5)}) is not used: it was read while the partition had a"
        " leader, or before an election, so the log may have changed since"
    )


def test_a_snapshot_file_with_a_disk_beside_it_is_a_source_like_any_other(dead: DiskCollection, tmp_path: Path) -> None:
    write_snapshot(SNAPSHOT, tmp_path / "snapshot")
    save_collection(dead, tmp_path / "disk")
    with CollectedSource(SnapshotFileSource(tmp_path / "snapshot"), [read_collection(tmp_path / "disk")]) as source:
        found = take_snapshot(source, select([]), now_ms=NOW_MS, with_logs=lambda _state: True, lineage=True)
    assert found.partitions == SNAPSHOT.partitions
    heard = {at: [log.replica for log in logs if isinstance(log, ReplicaLog)] for at, logs in found.logs.items()}
    assert heard[ORDERS_1] == heard[ORDERS_0] == [1, 2, 3]
    assert heard[PAYMENTS_0] == [2, 3]


def test_what_was_odd_on_a_disk_is_told_of_each_partition(tmp_path: Path) -> None:
    disk = disk_at(tmp_path / "data", 1, "orders-1")
    disk.high_watermarks(**{"orders-1": 44})
    (disk.path / "lost+found").mkdir()
    with asked(read(disk)) as source:
        (note,) = source.notes(ORDERS_1)
        assert note.startswith("broker 1: its saved high watermark is 44")
        assert source.notes(ORDERS_0) == ()
        warning, cut = source.warnings
        assert warning.startswith("broker 1: ")
        assert "lost+found" in warning
        assert cut.startswith("broker 1: 1 log in ")
        assert ": its disk has lost the tails of logs" in cut
        assert " of 44)" in cut
