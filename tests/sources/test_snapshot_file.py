"""Snapshot files: nothing is lost in them, and nothing garbled, cut, newer or hostile gets through."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelr.errors import BadInputError, ExitCode, KelrError, UsageError
from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
    Features,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Selection,
    Snapshot,
    TopicConfig,
    TopicError,
    TopicPartition,
    select,
)
from kelr.sources import paging, snapshot_file
from kelr.sources.base import Page, silence_of, take_snapshot
from kelr.sources.decisions import decide_partitions
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import SnapshotFileSource, read_snapshot, save_snapshot, write_snapshot
from kelr.sources.snapshot_reader import MAX_LINE_BYTES, Body, SnapshotReader
from tests.sources.samples import CLUSTER, NOW_MS, PARTITIONS, SNAPSHOT, state


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "saved.kelr"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def _rewrite(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))


def _saved(path: Path, snapshot: Snapshot = SNAPSHOT) -> Snapshot:
    write_snapshot(snapshot, path, overwrite=True)
    return replace(read_snapshot(path), source=snapshot.source)


ids = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
id_tuples = st.lists(ids, max_size=4, unique=True).map(tuple)
texts = st.text(max_size=20)
topics = st.text("abc._-Z09", min_size=1, max_size=6)
replica_logs = st.builds(
    ReplicaLog,
    replica=ids,
    log_end=offsets,
    last_epoch=st.none() | ids,
    current_leader_epoch=st.none() | ids,
    high_watermark=st.none() | offsets,
    log_start=st.none() | offsets,
    local_start=st.none() | offsets,
    remote_end=st.none() | offsets,
    start_by_name=st.booleans(),
    lineage=st.none() | st.lists(st.builds(EpochEnd, ids, offsets), max_size=3).map(tuple),
    broker_epoch=st.none() | offsets,
    source=texts.filter(bool),
    read_at_ms=st.none() | offsets,
    last_epoch_error=st.none() | texts,
    last_stable_offset=st.none() | offsets,
    cut_off=st.lists(st.tuples(ids, offsets, offsets), max_size=2).map(tuple),
    holes=st.lists(st.tuples(offsets, offsets), max_size=2).map(tuple),
)
answers = replica_logs | st.builds(
    LogUnavailable, ids, st.sampled_from(LogUnavailableReason), texts, st.none() | offsets
)
states = st.builds(
    PartitionState,
    topic=topics,
    partition=ids,
    leader=st.none() | ids,
    leader_epoch=ids,
    replicas=id_tuples.filter(bool),
    isr=id_tuples,
    elr=st.none() | id_tuples,
    last_known_elr=st.none() | id_tuples,
    offline_replicas=st.none() | id_tuples,
    partition_epoch=st.none() | ids,
    adding=st.none() | id_tuples,
    removing=st.none() | id_tuples,
    recovering=st.none() | st.booleans(),
    topic_id=st.none() | st.just("AAAAAAAAAAAAAAAAAAAAAQ"),
)
configs = st.builds(
    TopicConfig,
    st.none() | ids,
    st.sampled_from(ConfigSource),
    st.none() | st.booleans(),
    st.sampled_from(ConfigSource),
    st.none() | texts,
    st.none() | st.lists(texts, max_size=2).map(tuple),
)
clusters = st.builds(
    Cluster,
    cluster_id=st.none() | texts,
    brokers=st.lists(
        st.builds(
            Broker,
            ids,
            st.sampled_from(BrokerStatus),
            st.none() | texts,
            st.none() | st.integers(1, 65535),
            st.none() | texts,
            st.none() | offsets,
        ),
        max_size=3,
    ).map(tuple),
    features=st.builds(
        Features,
        st.none() | st.dictionaries(texts, st.integers(0, 99), max_size=2),
        st.none() | st.dictionaries(texts, st.integers(0, 99), max_size=2),
    ),
    controller=st.none() | ids,
    brokers_source=texts,
    partitions_source=texts,
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    partitions = draw(st.lists(states, max_size=4, unique_by=lambda partition: partition.address))
    partitions.sort(key=lambda partition: partition.address)
    asked = draw(st.sets(st.sampled_from(partitions), max_size=4)) if partitions else set()
    return Snapshot(
        taken_at_ms=draw(offsets),
        cluster=draw(clusters),
        partitions=tuple(partitions),
        configs=draw(st.dictionaries(topics, configs, max_size=3)),
        logs={partition.address: tuple(draw(st.lists(answers, max_size=3))) for partition in asked},
        topic_errors=tuple(draw(st.lists(st.builds(TopicError, texts, texts, texts), max_size=2))),
        first_partition_replicas=draw(st.dictionaries(topics, ids, max_size=3)),
        source=draw(texts),
    )


@given(snapshots())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_nothing_is_lost(tmp_path: Path, snapshot: Snapshot) -> None:
    assert _saved(tmp_path / "any.kelr", snapshot) == snapshot


def test_a_file_from_before_optional_fields_is_read_with_those_unknown(path: Path) -> None:
    _saved(path)
    lines = _lines(path)
    for line in lines:
        assert line.get("topic", {}).pop("cleanup_policy", ["delete"]) == ["delete"]
        for log in line.get("partition", {}).get("logs") or ():
            assert log.pop("last_stable_offset", None) is not None or "unheard" in log
    _rewrite(path, lines)
    older = read_snapshot(path)
    assert {config.cleanup_policy for config in older.configs.values()} == {None}
    logs = [log for answers in older.logs.values() for log in answers if isinstance(log, ReplicaLog)]
    assert {log.last_stable_offset for log in logs} == {None}
    assert older.partitions == PARTITIONS


@pytest.mark.parametrize("silence", [None, "no answer in time"])
def test_whether_a_controller_answered_is_told_by_what_was_saved(path: Path, silence: str | None) -> None:
    cluster = replace(SNAPSHOT.cluster, controller_silence=silence)
    memory = MemorySource(replace(SNAPSHOT, cluster=cluster))
    # Of a selection that nothing is in, too.
    for selection in (Selection(), select(["absent"])):
        saved = save_snapshot(memory, selection, path, now_ms=NOW_MS, overwrite=True)
        told = [gap for gap in saved.gaps if "no controller answered (no answer in time)" in gap]
        assert len(told) == (silence is not None)
        with SnapshotFileSource(path) as file:
            assert (silence_of(memory), silence_of(file), file.cluster()) == (silence, silence, cluster)
        written = _lines(path)[0]["cluster"]
        assert written.get("controller_silence") == silence
        assert ("controller_silence" in written) == (silence is not None)


def test_the_same_snapshot_makes_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write_snapshot(SNAPSHOT, one)
    write_snapshot(SNAPSHOT, two)
    assert one.read_bytes() == two.read_bytes()


def test_a_source_saved_page_by_page_is_the_same_file_content(tmp_path: Path, path: Path) -> None:
    saved = save_snapshot(
        MemorySource(SNAPSHOT), Selection(), path, now_ms=NOW_MS, with_logs=lambda _partition: True, lineage=True
    )
    assert (saved.partitions, saved.topic_errors) == (len(PARTITIONS), ())
    assert replace(read_snapshot(path), source="live") == SNAPSHOT
    few = tmp_path / "few"
    part = save_snapshot(MemorySource(SNAPSHOT), select(["orders:1", "absent"]), few, now_ms=7)
    read = read_snapshot(few)
    assert (part.partitions, part.topic_errors) == (1, read.topic_errors)
    assert [str(partition.address) for partition in read.partitions] == ["orders:1"]
    assert (read.taken_at_ms, read.logs, set(read.configs)) == (7, {}, {"orders"})
    assert [error.topic for error in read.topic_errors] == ["absent"]


def test_a_file_that_exists_is_kept_unless_told_otherwise(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists already") as caught:
        write_snapshot(SNAPSHOT, path)
    assert caught.value.next_step
    assert path.read_text() == "precious"
    write_snapshot(SNAPSHOT, path, overwrite=True)
    assert read_snapshot(path).partitions == PARTITIONS


def test_a_file_that_appears_meanwhile_is_kept_too(path: Path) -> None:
    class Late(MemorySource):
        def pages(self, *arguments: Any, **more: Any) -> Iterator[Page]:
            path.write_text("precious")
            return super().pages(*arguments, **more)

    with pytest.raises(UsageError, match="exists already"):
        save_snapshot(Late(SNAPSHOT), Selection(), path, now_ms=1)
    assert path.read_text() == "precious"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_when_the_source_fails_half_way_nothing_is_left(path: Path) -> None:
    class Failing(MemorySource):
        def topic_configs(self, _topics: Any) -> Any:
            raise KelrError("the cluster is gone")

    with pytest.raises(KelrError, match="the cluster is gone"):
        save_snapshot(Failing(SNAPSHOT), Selection(), path, now_ms=1)
    assert list(path.parent.iterdir()) == []


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write the snapshot .*No such file"):
        write_snapshot(SNAPSHOT, tmp_path / "no" / "such" / "directory")


def test_a_snapshot_is_for_its_owner_alone(path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a snapshot file"),
        (b"hello", "not a snapshot file"),
        (b"\x1f\x8b" + b"\x00" * 20, "not a snapshot file"),
        (gzip.compress(b"", mtime=0), "not a snapshot file"),
        (gzip.compress(b"hello\n", mtime=0), "not a snapshot file: its first line is not JSON"),
        (gzip.compress(b"[" * 100_000, mtime=0), "not a snapshot file: its first line is not JSON"),
        (gzip.compress(b"[1]\n", mtime=0), "not a snapshot file"),
        (gzip.compress(b'{"format": "other"}\n', mtime=0), "not a snapshot file"),
        (gzip.compress(b"\xff\xfe\n", mtime=0), "not a snapshot file"),
        (
            gzip.compress(b'{"format": "kelr-snapshot", "version": 2, "news": []}\n', mtime=0),
            "is of format version 2, and this kelr reads up to 1",
        ),
        (gzip.compress(b'{"format": "kelr-snapshot", "version": 0}\n', mtime=0), "line 1: garbled snapshot"),
        (gzip.compress(b'{"format": "kelr-snapshot", "version": 1}\n', mtime=0), "line 1: garbled snapshot"),
    ],
)
def test_what_is_no_snapshot_is_said_at_once(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    for reading in (read_snapshot, SnapshotFileSource):
        with pytest.raises(BadInputError, match=message) as caught:
            reading(path)
        assert str(path) in str(caught.value)
        assert caught.value.next_step


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        SnapshotFileSource(path)


def test_every_way_of_cutting_it_short_is_noticed(path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(BadInputError):
            SnapshotFileSource(path)
        with pytest.raises(BadInputError):
            read_snapshot(path)


def test_a_cut_at_a_line_is_said_to_be_a_cut(path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    lines = _lines(path)
    for kept in range(1, len(lines)):
        _rewrite(path, lines[:kept])
        with pytest.raises(BadInputError, match=f"cut short: it breaks off after line {kept}"):
            SnapshotFileSource(path)
        with pytest.raises(BadInputError, match=f"cut short: it breaks off after line {kept}"):
            read_snapshot(path)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
def test_a_flipped_byte_is_never_a_wrong_answer(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "flipped.kelr"
    write_snapshot(SNAPSHOT, path, overwrite=True)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        read = read_snapshot(path)
    except BadInputError:
        return
    assert replace(read, source="live") == SNAPSHOT, "only gzip's own header may differ without a checksum error"


def _partition_line(lines: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = next(line["partition"] for line in lines if "partition" in line)
    return found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("leader", -1),
        ("leader", "2"),
        ("leader", 2.0),
        ("leader", True),
        ("leader", 2**31),
        ("leader_epoch", None),
        ("replicas", []),
        ("replicas", [1, 1]),
        ("replicas", None),
        ("isr", [2, 2]),
        ("isr", "12"),
        ("elr", [-1]),
        ("topic", ""),
        ("topic", "../etc/passwd"),
        ("topic", "a" * 250),
        ("partition", -1),
        ("topic_id", "short"),
        ("surprise", 1),
        ("logs", [{"replica": 1}]),
        ("logs", [{"replica": 1, "log_end": -1}]),
        ("logs", [{"replica": 1, "unheard": "because"}]),
        ("logs", [{"replica": 1, "log_end": 5, "lineage": [[1]]}]),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_line(path: Path, field: str, value: object) -> None:
    write_snapshot(SNAPSHOT, path)
    lines = _lines(path)
    _partition_line(lines)[field] = value
    number = next(number for number, line in enumerate(lines, start=1) if "partition" in line)
    _rewrite(path, lines)
    with pytest.raises(BadInputError, match=rf"line {number}: garbled snapshot"):
        read_snapshot(path)
    with pytest.raises(BadInputError, match=rf"line {number}: garbled snapshot"):
        list(SnapshotFileSource(path).pages(Selection()))


def test_lines_out_of_order_twice_or_missing_are_refused(path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    lines = _lines(path)
    partitions = [number for number, line in enumerate(lines) if "partition" in line]
    first, second = partitions[:2]
    swapped = list(lines)
    swapped[first], swapped[second] = lines[second], lines[first]
    doubled = [*lines[: first + 1], *lines[first:]]
    missing = lines[:first] + lines[first + 1 :]
    after_the_end = [*lines, lines[first]]
    two_in_one = [*lines[:-1], {**lines[first], **lines[-1]}]
    for broken in (swapped, doubled, missing, after_the_end, two_in_one):
        _rewrite(path, broken)
        with pytest.raises(BadInputError):
            read_snapshot(path)


def test_a_bomb_of_one_line_is_refused_before_it_fills_the_memory(path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text + b'{"partition":{"topic":"' + b"a" * (20 * MAX_LINE_BYTES)))
    tracemalloc.start()
    with pytest.raises(BadInputError, match="more than kelr ever writes"):
        SnapshotFileSource(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * MAX_LINE_BYTES


def test_memory_does_not_grow_with_the_file(path: Path) -> None:
    def peak(count: int) -> int:
        partitions = tuple(state("orders", number) for number in range(count))
        write_snapshot(Snapshot(1, CLUSTER, partitions), path, overwrite=True)
        tracemalloc.start()
        with SnapshotFileSource(path) as source:
            read = sum(len(page.partitions) for page in source.pages(Selection(), page_size=100))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert read == count
        return highest

    peak(100)
    assert peak(6_000) < 2 * peak(600)


def test_what_the_snapshot_does_not_hold_is_said_to_be_missing_there(path: Path) -> None:
    write_snapshot(replace(SNAPSHOT, logs={}), path)
    with SnapshotFileSource(path) as source:
        (answer, *_), *_ = source.replica_logs(PARTITIONS[:1]).values()
        assert answer == LogUnavailable(1, LogUnavailableReason.NOT_ASKED, "not in the snapshot")
        assert source.topic_configs(["absent"])["absent"].error == "not in the snapshot"
        assert source.taken_at_ms == NOW_MS


def test_a_snapshot_of_a_snapshot_file(tmp_path: Path, path: Path) -> None:
    write_snapshot(SNAPSHOT, path)
    with SnapshotFileSource(path) as source:
        again = take_snapshot(source, Selection(), now_ms=NOW_MS, with_logs=lambda _partition: True)
        save_snapshot(source, Selection(), tmp_path / "again", now_ms=NOW_MS, with_logs=lambda _partition: True)
    assert again.source == str(path)
    assert again.logs[TopicPartition("orders", 0)] == SNAPSHOT.logs[TopicPartition("orders", 0)]
    assert replace(read_snapshot(tmp_path / "again"), source=str(path)) == again


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path, Path(os.devnull)):
        with pytest.raises(BadInputError, match="is not a regular file") as refused:
            SnapshotFileSource(path)
        assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_name_that_no_file_can_have_is_said(tmp_path: Path, overwrite: bool) -> None:
    with pytest.raises(UsageError, match="cannot write the snapshot"):
        write_snapshot(SNAPSHOT, tmp_path / ("a" * 300), overwrite=overwrite)


def test_a_device_is_never_replaced_and_a_link_stays_one(tmp_path: Path) -> None:
    fifo, link, real = tmp_path / "fifo", tmp_path / "link", tmp_path / "real.kelr"
    os.mkfifo(fifo)
    with pytest.raises(UsageError, match="it is no file"):
        write_snapshot(SNAPSHOT, fifo, overwrite=True)
    assert fifo.is_fifo()
    link.symlink_to(real)
    write_snapshot(SNAPSHOT, link, overwrite=True)
    write_snapshot(SNAPSHOT, link, overwrite=True)
    assert link.is_symlink()
    assert read_snapshot(real).partitions == read_snapshot(link).partitions == SNAPSHOT.partitions


@pytest.mark.parametrize(("kept", "again"), [(100, False), (2, True)])
def test_what_is_decided_together_is_read_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, again: bool
) -> None:
    snapshot = Snapshot(1, CLUSTER, tuple(replace(state("orders", number), leader=None) for number in range(40)))
    write_snapshot(snapshot, path)
    readings = []
    body = SnapshotReader.body

    def counted(reader: SnapshotReader) -> Iterator[Body]:
        readings.append(reader)
        return body(reader)

    monkeypatch.setattr(SnapshotReader, "body", counted)
    monkeypatch.setattr(paging, "DEFAULT_PAGE_SIZE", 3)
    monkeypatch.setattr(snapshot_file, "_MOST_KEPT", kept)
    with SnapshotFileSource(path) as source:
        pages = decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True)
        assert [one.partition for page in pages for one in page.decisions] == list(range(40))
    assert (len(readings) > 1) is again
