"""Saving and replaying records on real clusters: byte for byte as the broker has them, and each exactly once."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kelr.commands.main import main
from kelr.lab import Acks, Lab, run_incident
from kelr.lab.observed import PATIENCE_S
from kelr.lab.produce import produce
from kelr.model import PartitionState, ReplicaLog, select
from kelr.rescue.archive import open_dump
from kelr.rescue.summary import records_of
from kelr.rescue.transactions import Outcome
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.records.stream import RawBatch

QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
KILL_AT = (2, 5)
"""Lines of the journal at which a replay is killed."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def config(lab: Lab, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": lab.bootstrap_servers, **QUIET, **more}


def create(lab: Lab, topic: str, replicas: Sequence[int], **configs: str) -> None:
    admin = AdminClient(config(lab))
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[list(replicas)], config=configs)])[topic].result(30)
    lab.wait_partitions(topic, "all replicas are in sync", lambda one: len(one.isr) == len(replicas))


def consume(lab: Lab, topic: str, partition: int, *, start: int, end: int) -> list[Message]:
    """Every record of these offsets, committed or not."""
    settings = config(lab, **{"group.id": "test", "isolation.level": "read_uncommitted", "enable.auto.commit": False})
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, start)])
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:  # the end of the partition
            if consumer.position([TopicPartition(topic, partition)])[0].offset >= end:
                break
            continue
        found.append(message)
    consumer.close()
    return found


def end_of(lab: Lab, topic: str, partition: int = 0) -> int:
    consumer = Consumer(config(lab, **{"group.id": "test"}))
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1])
    finally:
        consumer.close()


def origin(message: Message) -> int:
    """The offset that a replayed record had."""
    headers = dict(message.headers() or [])
    return int(headers["kelr-rescue.offset"])


def segment_bytes(lab: Lab, broker: int, topic: str, partition: int, offset: int) -> bytes:
    """A broker's segments, from the batch that begins at this offset on."""
    directory = lab.data_directory(broker) / f"{topic}-{partition}"
    content = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    at = 0
    while at < len(content):
        base, length = struct.unpack_from(">qi", content, at)
        if base >= offset:
            return content[at:]
        at += 12 + length
    return b""


def end_on_disk(lab: Lab, broker: int, topic: str, partition: int) -> int:
    """The offset after the last batch in a broker's segments.

    An incident's producer sends a batch again where it had no answer, so that there may be more records than asked for.
    """
    content, at, end = segment_bytes(lab, broker, topic, partition, 0), 0, 0
    while at < len(content):
        base, length = struct.unpack_from(">qi", content, at)
        end = base + struct.unpack_from(">i", content, at + 23)[0] + 1
        at += 12 + length
    return int(end)


def check_disk(lab: Lab, topic: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The disk of broker 1, which is down, gives what nobody else has."""
    disk = ("--log-dir", str(lab.data_directory(1)), "-b", lab.bootstrap_servers)
    assert main(["rescue", "dump", topic, "--elect", "2", *disk, "--out", str(file), "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    only_there = [end_on_disk(lab, 1, topic, number) - end_on_disk(lab, 2, topic, number) for number in (0, 1)]
    assert min(only_there) >= 10
    assert [(item["replica"], item["how"], item["records"]) for item in items] == [
        (1, "log directory", records) for records in only_there
    ]
    with open_dump(file) as dump:
        for tail in dump.manifest.tails:
            found = b"".join(batch.data for batch in dump.batches(tail))
            assert found == segment_bytes(lab, 1, topic, tail.partition, tail.from_offset)


def test_lost_records_are_saved_and_brought_back(
    lab_43: Lab, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = run_incident(lab_43, "needs-unclean-recovery", partitions=2).topic
    check_disk(lab_43, topic, tmp_path / "disk.kelr-rescue", capsys)
    file = tmp_path / "lost.kelr-rescue"
    flags = ("-b", lab_43.bootstrap_servers)
    plan = str(tmp_path / "plan.json")
    assert main(["recover", "plan", topic, "-e", "designation", "--designate", "3", "--out", plan, *flags]) == 0
    capsys.readouterr()
    # What the disk of broker 1 holds was saved before, and is not read here.
    assert main(["rescue", "dump", "--plan", plan, "--out", str(file), *flags, "-o", "json"]) == 7
    document = json.loads(capsys.readouterr().out)
    assert document["plan_id"] == json.loads(Path(plan).read_text())["plan_id"]
    ranges = {item["partition"]: (item["from_offset"], item["to_offset"]) for item in document["items"]}
    assert {item["replica"] for item in document["items"]} == {2}
    lost = [end_on_disk(lab_43, 2, topic, number) - end_on_disk(lab_43, 3, topic, number) for number in (0, 1)]
    assert min(lost) >= 20
    assert [(item["missing"], item["records"]) for item in document["items"]] == [([], records) for records in lost]
    saved: dict[int, list[tuple[int, bytes | None]]] = {}
    with zipfile.ZipFile(file) as content, open_dump(file) as dump:
        for tail in dump.manifest.tails:
            (segment,) = tail.segments
            assert content.read(segment.name) == segment_bytes(lab_43, 2, topic, tail.partition, tail.from_offset)
            saved[tail.partition] = [(one.record.offset, one.record.value) for one in records_of(dump, tail)]
        content.extractall(tmp_path / "segments")
    path = next((tmp_path / "segments").glob(f"{topic}-0/*.log"))
    read = lab_43.stock_tool("kafka-dump-log.sh", "--files", str(path), "--print-data-log").stdout
    assert all(f"offset: {offset} " in read and value.decode() in read for offset, value in saved[0] if value)

    accepted = ("--yes", "--accept-loss", f"{sum(lost)}+")
    assert main(["elect", "-e", "designation", "--designate", "3", topic, *accepted, *flags]) == 0
    lab_43.wait_partitions(topic, "replica 2 follows again", lambda one: {2, 3} <= set(one.isr))
    capsys.readouterr()
    replay = ["rescue", "replay", str(file), *flags]
    assert main([*replay, "--dry-run", "-o", "json"]) == 0
    assert [item["replay"] for item in json.loads(capsys.readouterr().out)["items"]] == lost
    assert end_of(lab_43, topic) == ranges[0][0]
    assert main([*replay, "-o", "json"]) == 6  # nobody is there to ask
    assert main([*replay, "--yes", "-o", "json"]) == 0
    for partition, (start, end) in ranges.items():
        messages = consume(lab_43, topic, partition, start=start, end=end)
        assert [(origin(one), one.value()) for one in messages] == saved[partition]
        assert {dict(one.headers() or [])["kelr-rescue.plan"] for one in messages} == {document["plan_id"].encode()}
    capsys.readouterr()
    assert main([*replay, "--yes", "-o", "json"]) == 0
    assert [item["already"] for item in json.loads(capsys.readouterr().out)["items"]] == lost
    lines = [json.loads(line) for line in (state / "audit.jsonl").read_text().splitlines()]
    rescued = [(line["command"], line["partition"], line["result"]) for line in lines if line["what"] == "rescue"]
    assert rescued[-4:] == [("rescue replay", number, result) for result in ("begun", "done") for number in (0, 1)]
    assert set(rescued[:-4]) == {("rescue dump", number, "done") for number in (0, 1)}


@pytest.mark.usefixtures("state")
def test_a_transaction_across_the_cut_comes_back_whole_after_its_abort(
    healthy_43: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 3 has the first half of a committed transaction and not its commit, and is elected."""
    lab, topic = healthy_43, f"cut-{time.time_ns()}"
    create(lab, topic, (1, 2, 3), **{"min.insync.replicas": "1"})
    producer = Producer(config(lab, **{"transactional.id": topic}))
    producer.init_transactions(30)
    producer.begin_transaction()
    _produce(producer, topic, range(5))
    lab.wait_until("broker 3 knows the first half to be committed", lambda: _known_to(lab, topic, 3) == 5)
    lab.kill(3)
    _produce(producer, topic, range(5, 10))
    producer.commit_transaction(30)
    lab.wait_until("broker 2 knows the commit to be committed", lambda: _known_to(lab, topic, 2) == 11)
    lab.kill(2)
    # If the session of 1 ended first, 2 would be the last known leader, and be elected when it is back.
    lab.wait_partitions(topic, "2 is out", lambda one: one.isr == (1,))
    lab.kill(1)
    lab.start(3)
    lab.start(2)
    lab.wait_partitions(topic, "nobody leads", lambda one: one.leader is None)
    file, flags = tmp_path / "cut.kelr-rescue", ("-b", lab.bootstrap_servers)
    # The disk of broker 1 is not read.
    assert main(["rescue", "dump", topic, "--elect", "3", "--out", str(file), *flags, "-o", "json"]) == 7
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["from_offset"], item["to_offset"], item["records"], item["cut_records"]) == (0, 11, 10, 5)
    assert main(["elect", "-e", "designation", "--designate", "3", topic, "--yes", "--accept-loss", "6+", *flags]) == 0
    lab.start(1)
    lab.wait_partitions("__transaction_state", "every partition has a leader", lambda one: one.leader is not None)
    whole = ["rescue", "replay", str(file), "--cut-transactions", "--yes", *flags, "-o", "json"]
    assert main(whole) == 6  # it hangs
    server = lab.bootstrap_servers.split(",")[0]
    at = ("--topic", topic, "--partition", "0", "--start-offset", "0")
    assert lab.stock_tool("kafka-transactions.sh", "--bootstrap-server", server, "abort", *at).returncode == 0
    capsys.readouterr()
    assert main(["rescue", "replay", str(file), "--dry-run", *flags, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["replay"], item["cut"]) == (5, 5)
    for replayed, already in ((10, 0), (0, 10)):
        assert main(whole) == 0
        (item,) = json.loads(capsys.readouterr().out)["items"]
        assert (item["replay"], item["already"]) == (replayed, already)
    messages = consume(lab, topic, 0, start=6, end=16)
    assert [one.value() for one in messages] == [b"%d" % number for number in range(10)]


@pytest.mark.usefixtures("state")
def test_what_a_return_truncates_is_saved_before_it_and_is_there_again_after_it(
    lab_43: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 1 returns with a log that was cut below that of broker 2 in odd partitions, and is elected."""
    topic = run_incident(lab_43, "lossy-restart", partitions=2).topic
    file, flags = str(tmp_path / "return.kelr-rescue"), ("-b", lab_43.bootstrap_servers)
    ends = {replica: end_on_disk(lab_43, replica, topic, 1) for replica in (1, 2)}
    assert ends[1] < ends[2]
    disk = ("--log-dir", str(lab_43.data_directory(1)))
    assert main(["rescue", "dump", topic, "--elect", "1", *disk, "--out", file, *flags, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["partition"], item["replica"], item["how"]) == (1, 2, "Fetch")
    assert (item["from_offset"], item["to_offset"]) == (ends[1], ends[2])
    lab_43.start(1)
    lab_43.wait_partitions(topic, "1 leads, and 2 follows", lambda one: one.leader == 1 and 2 in one.isr)
    assert end_of(lab_43, topic, 1) == ends[1]
    assert main(["rescue", "replay", file, "--yes", *flags, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"] == {
        "records": ends[2] - ends[1],
        "partitions": 1,
        "skipped_partitions": 0,
        "skipped_records": 0,
    }
    messages = consume(lab_43, topic, 1, start=ends[1], end=ends[2])
    assert [origin(one) for one in messages] == list(range(ends[1], ends[2]))


def test_a_partition_under_min_isr_is_skipped_at_once_and_what_was_deleted_stays_away(
    healthy_43: Lab, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, flags = healthy_43, ("-b", healthy_43.bootstrap_servers)
    topic, other = f"kept-{time.time_ns()}", f"copies-{time.time_ns()}"
    admin = AdminClient(config(lab))
    layout = {topic: [[1, 2, 3], [1, 2, 3]], other: [[1, 2], [3, 2]]}
    settings = {"min.insync.replicas": "2"}
    made = admin.create_topics(
        [NewTopic(name, 2, replica_assignment=order, config=settings) for name, order in layout.items()]
    )
    for future in made.values():
        future.result(30)
    lab.wait_partitions(topic, "all replicas are in sync", lambda one: len(one.isr) == 3)
    produce(lab.bootstrap_servers, topic, (0, 1), batches=4, records=5, acks=Acks.ALL, label="kept")
    file = str(tmp_path / "kept.kelr-rescue")
    disk = ("--log-dir", str(lab.data_directory(1)))
    assert main(["rescue", "dump", topic, *disk, "--out", file]) == 0
    admin.delete_records([TopicPartition(topic, 0, 10)])[TopicPartition(topic, 0, 10)].result(30)
    capsys.readouterr()
    assert main(["rescue", "replay", file, "--dry-run", *flags, "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [(item["deleted"], item["survive"], item["replay"]) for item in items] == [(10, 10, 0), (0, 20, 0)]

    lab.kill(1)
    lab.wait_partitions(other, "1 is out", lambda one: 1 not in one.isr)
    copy = ["rescue", "replay", file, "--to", other, "--all-records", "--yes", *flags, "-o", "json"]
    begun = time.monotonic()
    assert main(copy) == 7
    assert time.monotonic() - begun < 15
    document = json.loads(capsys.readouterr().out)
    assert [(item["replay"], item["skipped_records"]) for item in document["items"]] == [(0, 20), (20, 0)]
    assert document["items"][0]["error"] == "nothing is taken with acks=all, as the ISR [2] is below min ISR 2"
    alone = ["rescue", "replay", file, f"{topic}:0", "--to", other, "--yes", *flags]
    journals = sorted(state.glob("clusters/*/replays/*.jsonl"))
    assert main(alone) == 6
    assert sorted(state.glob("clusters/*/replays/*.jsonl")) == journals
    lab.start(1)
    lab.wait_partitions(other, "1 is back", lambda one: len(one.isr) == 2)
    capsys.readouterr()
    assert main(copy) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [(item["replay"], item["already"]) for item in items] == [(20, 0), (0, 20)]


def _produce(producer: Producer, topic: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def _known_to(lab: Lab, topic: str, replica: int) -> int | None:
    """The high watermark of partition 0 as a replica knows it; None where the replica does not answer now."""
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        (found,) = (one for page in source.pages(select([topic])) for one in page.partitions)
        logs = source.replica_logs([found])[found.address]
        return next(
            (one.high_watermark for one in logs if isinstance(one, ReplicaLog) and one.replica == replica), None
        )


@pytest.mark.parametrize("version", ["4.3.1", pytest.param("4.0.0", marks=pytest.mark.longer)])
def test_a_replica_is_read_beyond_its_high_watermark(version: str, request: pytest.FixtureRequest) -> None:
    lab: Lab = request.getfixturevalue("lab_43" if version == "4.3.1" else "lab_40")
    lab.restore()
    topic = f"beyond-{time.time_ns()}"
    create(lab, topic, (1, 2), **{"min.insync.replicas": "2"})
    produce(lab.bootstrap_servers, topic, (0,), batches=2, records=5, acks=Acks.ALL, label="seen")
    lab.kill(2)
    lab.wait_partitions(topic, "broker 2 left the ISR", lambda one: 2 not in one.isr)
    produce(lab.bootstrap_servers, topic, (0,), batches=3, records=5, acks=Acks.LEADER, label="tail")
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        (found,) = (one for page in source.pages(select([topic])) for one in page.partitions)
        (log, _) = source.replica_logs([found])[found.address]
        assert ends(source, found, committed=True) == [(0, 4), (5, 9)]
        everything = [(0, 4), (5, 9), (10, 14), (15, 19), (20, 24)]
        assert ends(source, found, committed=False) == everything
        assert getattr(log, "high_watermark", None) == 10
        lab.kill(1)
        lab.start(1)
        lab.wait_partitions(topic, "the partition is described again", lambda _: True)
        source.forget()
        (again,) = (one for page in source.pages(select([topic])) for one in page.partitions)
        assert ends(source, again, committed=False) == everything
    lab.restore()


def ends(source: LiveSource, state: PartitionState, *, committed: bool) -> list[tuple[int, int]]:
    """First and last offset of each batch of replica 1."""
    pieces = list(source.tail(state, 1, start=0, committed=committed))
    assert all(isinstance(piece, RawBatch) for piece in pieces), pieces
    return [(one.header.base_offset, one.header.last_offset) for one in pieces if isinstance(one, RawBatch)]


def transaction(lab: Lab, topic: str, name: str, *, end: str, records: int) -> Producer:
    producer = Producer(config(lab, **{"transactional.id": name, "compression.codec": "lz4"}))
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(records):
        producer.produce(topic, f"{end} {number}".encode(), partition=0)
    producer.flush(30)
    if end == "committed":
        producer.commit_transaction(30)
    elif end == "aborted":
        producer.abort_transaction(30)
    return producer


@pytest.mark.usefixtures("state")
def test_everything_of_a_record_is_kept_and_only_committed_transactions_are(
    healthy_43: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = healthy_43
    topic, other = f"fields-{time.time_ns()}", f"rescued-{time.time_ns()}"
    for name in (topic, other):
        # The records are years old: Kafka's retention, which looks every five minutes, would delete them.
        create(lab, name, (1, 2, 3), **{"retention.ms": "-1"})
    fields: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
        (b"key", b"value", []),
        (None, b"no key", [("h", b"1"), ("h", b"2"), ("ü", b"\x00\xff"), ("null", None), ("empty", b"")]),
        (b"", b"", []),
        (b"tombstone", None, [("why", b"gone")]),
        (b"\xff\xfe", bytes(range(256)) * 40, []),
    ]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(config(lab, **{"compression.codec": codec}))
        for number, (key, value, headers) in enumerate(fields):
            when = 1_600_000_000_000 + number
            producer.produce(topic, value, key, partition=0, headers=headers, timestamp=when)
        assert producer.flush(30) == 0
    plain = end_of(lab, topic)
    held = [transaction(lab, topic, f"{topic}-{end}", end=end, records=3) for end in ("committed", "aborted", "open")]
    file = tmp_path / "fields.kelr-rescue"
    flags = ("-b", lab.bootstrap_servers)
    assert main(["rescue", "dump", topic, "--from-offset", "0", "--out", str(file), *flags]) == 0
    with open_dump(file) as dump:
        (tail,) = dump.manifest.tails
        outcomes = [one.outcome for one in records_of(dump, tail) if one.outcome is not None]
    assert outcomes == [Outcome.COMMITTED] * 3 + [Outcome.ABORTED] * 3 + [Outcome.OPEN] * 3
    capsys.readouterr()
    assert main(["rescue", "replay", str(file), "--to", other, "--all-records", "--yes", *flags, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["replay"], item["aborted"], item["open"], item["markers"]) == (plain + 3, 3, 3, 2)
    messages = consume(lab, other, 0, start=0, end=plain + 3)
    assert [one.value() for one in messages[plain:]] == [b"committed 0", b"committed 1", b"committed 2"]
    for message, (key, value, headers) in zip(messages[:plain], fields * 5, strict=True):
        own = [(name, data) for name, data in message.headers() or [] if not name.startswith("kelr-rescue.")]
        assert (message.key(), message.value(), own) == (key, value, headers)
        assert message.timestamp()[1] == 1_600_000_000_000 + fields.index((key, value, headers))
    held[2].abort_transaction(30)


def test_a_replay_that_is_killed_goes_on_and_doubles_nothing(healthy_43: Lab, state: Path, tmp_path: Path) -> None:
    lab, records = healthy_43, 20_000
    topic, other = f"killed-{time.time_ns()}", f"revived-{time.time_ns()}"
    create(lab, topic, (1, 2, 3))
    create(lab, other, (1, 2, 3))
    producer = Producer(config(lab, **{"compression.codec": "lz4", "linger.ms": 5}))
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    file = tmp_path / "killed.kelr-rescue"
    flags = ["-b", lab.bootstrap_servers]
    assert main(["rescue", "dump", topic, "--from-offset", "0", "--out", str(file), *flags]) == 0
    arguments = ["rescue", "replay", str(file), "--to", other, "--all-records", "--yes", *flags]
    command = [sys.executable, "-m", "kelr", *arguments]
    for lines in KILL_AT:
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ)
        ) as run:
            lab.wait_until("the replay is under way", lambda lines=lines: journal_lines(state) >= lines)  # type: ignore[misc]
            run.send_signal(signal.SIGKILL)
        assert run.returncode == -signal.SIGKILL
    assert end_of(lab, other) < records
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    messages = consume(lab, other, 0, start=0, end=records)
    assert [origin(one) for one in messages] == list(range(records))
    assert [one.value() for one in messages] == [b"%d" % number for number in range(records)]


def test_two_files_that_are_replayed_at_once_double_nothing(healthy_43: Lab, state: Path, tmp_path: Path) -> None:
    """Both hold records 4,000 to 15,999; each is there once, whichever of the two is refused first."""
    lab, records = healthy_43, 20_000
    topic, other = f"twice-{time.time_ns()}", f"once-{time.time_ns()}"
    create(lab, topic, (1, 2, 3))
    create(lab, other, (1, 2, 3))
    producer = Producer(config(lab, **{"compression.codec": "lz4", "linger.ms": 5}))
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(60) == 0
    flags = ["-b", lab.bootstrap_servers]
    commands = []
    for start, end in ((0, 16_000), (4_000, records)):
        file = str(tmp_path / f"from-{start}.kelr-rescue")
        offsets = ("--from-offset", str(start), "--to-offset", str(end))
        assert main(["rescue", "dump", topic, *offsets, "--out", file, *flags]) == 0
        replay = ["rescue", "replay", file, "--to", other, "--all-records", "--yes", *flags]
        commands.append([sys.executable, "-m", "kelr", *replay])
    with subprocess.Popen(commands[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        lab.wait_until("the first is under way", lambda: journal_lines(state) >= 1)
        first.send_signal(signal.SIGSTOP)
        try:
            second = subprocess.run(commands[1], capture_output=True, check=False)
        finally:
            first.send_signal(signal.SIGCONT)
    assert (first.returncode, second.returncode) == (0, 6)
    assert f"another kelr replays records to topic {other}".encode() in second.stderr
    assert subprocess.run(commands[1], capture_output=True, check=False).returncode == 0
    messages = consume(lab, other, 0, start=0, end=records)
    assert sorted(origin(one) for one in messages) == list(range(records))


def journal_lines(state: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in state.glob("clusters/*/replays/*.jsonl"))
