"""A stopped broker's disk against what it answers once it has started: every kind of damage, both shutdowns."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Wire
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kelr.engine import decide
from kelr.lab import Lab, run_incident
from kelr.lab.disk import read_batches
from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.produce import Acks, produce
from kelr.lab.story import Story, create_topic
from kelr.model import (
    Bounds,
    Decision,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicPartition,
    select,
)
from kelr.sources.base import take_snapshot
from kelr.sources.collected import CollectedSource, read_collection, save_collection
from kelr.sources.connection import ConnectionSettings
from kelr.sources.disk import DiskCollection, DiskLog, open_partition, read_log_directories
from kelr.sources.live import LiveSource

BROKER = 1


def now_ms() -> int:
    return int(time.time() * 1000)


def live(lab: Lab) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=10))


def disk_of(lab: Lab, broker: int, topic: str) -> DiskCollection:
    return read_log_directories(directories(lab, broker), selection=select([topic]), clock_ms=now_ms)


def directories(lab: Lab, broker: int) -> list[Path]:
    """The broker's log directories: one, or two within `two_directories`."""
    first = lab.data_directory(broker)
    return [path for path in (first, second_of(first)) if path.is_dir()]


def second_of(directory: Path) -> Path:
    return directory.with_name("data-2")


@contextlib.contextmanager
def two_directories(lab: Lab, topic: str) -> Iterator[None]:
    """Gives broker 1 a second log directory, and takes it away again with the topic that uses it."""
    first = lab.data_directory(BROKER)
    second, properties = second_of(first), first.with_name("server.properties")
    before = properties.read_text()
    lab.stop(BROKER)
    second.mkdir()
    meta = (first / "meta.properties").read_text().splitlines()
    kept = [line for line in meta if not line.startswith("directory.id=")]
    (second / "meta.properties").write_text("\n".join([*kept, f"directory.id={new_kafka_uuid()}", ""]))
    properties.write_text(before.replace(f"log.dirs={first}", f"log.dirs={first},{second}"))
    assert properties.read_text() != before
    lab.start(BROKER)
    try:
        yield
        admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
        admin.delete_topics([topic])[topic].result(20)
        lab.wait_until("the topic is gone", lambda: not any(second.glob(f"{topic}-?")))
    finally:
        lab.stop(BROKER)
        properties.write_text(before)
        shutil.rmtree(second)
        lab.start(BROKER)


def place(lab: Lab, topic: str, where: Mapping[int, Path]) -> None:
    """Move partitions of broker 1 into these log directories, and wait until they are there."""
    from kafka.admin import KafkaAdminClient  # noqa: PLC0415

    admin = KafkaAdminClient(bootstrap_servers=lab.bootstrap_servers)
    try:
        moved = admin.alter_replica_log_dirs({(topic, at, BROKER): str(path) for at, path in where.items()})
    finally:
        admin.close()
    assert {error.errno for error in moved.values()} == {0}
    lab.wait_until("all are where they are to be", lambda: all((where[at] / f"{topic}-{at}").is_dir() for at in where))


def answers(lab: Lab, topic: str, broker: int) -> Mapping[int, LogAnswer]:
    """What the broker answers of each partition."""
    with live(lab) as source:
        states = [state for page in source.pages(select([topic])) for state in page.partitions]
        logs = source.replica_logs(states, lineage=True)
    return {at.partition: log for at, found in logs.items() for log in found if log.replica == broker}


def assert_came_true(read: Mapping[TopicPartition, DiskLog], answered: Mapping[int, LogAnswer]) -> int:
    """Every log that the disk told is what its broker answers; gives how many logs that were."""
    compared = 0
    for address, log in read.items():
        said, now = log.answer, answered[address.partition]
        assert isinstance(now, ReplicaLog), (address, now)
        if isinstance(said, LogUnavailable):
            continue
        told = (said.log_end, said.log_start, said.last_epoch, said.lineage)
        assert told == (now.log_end, now.log_start, now.last_epoch, now.lineage), (address, log.notes)
        assert said.high_watermark is not None
        assert now.high_watermark is not None
        assert said.high_watermark <= now.high_watermark
        compared += 1
    return compared


def replica(lab: Lab, topic: str, partition: int) -> Path:
    """The directory of a replica of broker 1."""
    (found,) = (one for path in directories(lab, BROKER) if (one := path / f"{topic}-{partition}").is_dir())
    return found


def segment(lab: Lab, topic: str, partition: int) -> Path:
    return max(replica(lab, topic, partition).glob("*.log"))


def change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


def flip_in_the_middle(file: Path) -> int:
    """Change a byte of the records of a batch in the middle, which its checksum covers; gives the batch's offset."""
    batches = list(read_batches(file))
    damaged = batches[len(batches) // 2]
    at = damaged.position + 64
    change(file, lambda content: content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
    return damaged.base_offset


def fill(lab: Lab, topic: str, partitions: int, label: str) -> None:
    produce(lab.bootstrap_servers, topic, list(range(partitions)), batches=6, records=5, acks=Acks.ALL, label=label)


def fill_segments(lab: Lab, topic: str, partition: int) -> None:
    """More than one segment of a MiB, with index entries."""
    producer = Producer({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "linger.ms": 0})
    for _ in range(8):
        producer.produce(topic, b"v" * 300_000, partition=partition)
        producer.flush(20)


def led(lab: Lab, topic: str) -> None:
    lab.wait_partitions(topic, "all are led", lambda state: state.leader is not None)


TOPIC = "told-by-the-disk"
PARTITIONS = 9


def test_a_broker_answers_after_its_start_what_its_disk_told_before(healthy_43: Lab) -> None:
    """Each kind of damage, in two log directories, of which one loses its checkpoints when the broker is killed."""
    lab = healthy_43
    with two_directories(lab, TOPIC):
        create_topic(lab, TOPIC, [[BROKER]] * PARTITIONS, {"segment.bytes": "1048576", "min.insync.replicas": "1"})
        led(lab, TOPIC)
        first, second = directories(lab, BROKER)
        place(lab, TOPIC, {at: second if at < 5 else first for at in range(PARTITIONS)})
        fill(lab, TOPIC, PARTITIONS, "a")
        fill_segments(lab, TOPIC, 8)
        admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
        for future in admin.delete_records([Wire(TOPIC, 0, 7), Wire(TOPIC, 8, 12)]).values():
            future.result(20)
        after_a_clean_shutdown(lab)
        fill(lab, TOPIC, PARTITIONS, "b")
        after_a_crash(lab)


def after_a_clean_shutdown(lab: Lab) -> None:
    lab.stop(BROKER)
    change(segment(lab, TOPIC, 1), lambda content: content + content[:40])
    flip_in_the_middle(segment(lab, TOPIC, 2))
    segment(lab, TOPIC, 3).with_suffix(".index").unlink()
    cut_at = flip_in_the_middle(segment(lab, TOPIC, 3))
    (replica(lab, TOPIC, 4) / "leader-epoch-checkpoint").unlink()
    disk = disk_of(lab, BROKER, TOPIC)
    assert [start_of(disk, at) for at in (0, 1, 8)] == [7, 0, 12]
    assert len(disk.directories) == 2
    assert (disk.clean_shutdown, disk.running, disk.counts.read) == (True, False, PARTITIONS)
    assert disk.broker_epoch is not None
    assert any("does not match its checksum" in note for note in log_of(disk, TOPIC, 2).notes)
    assert end_of(disk, TOPIC, 0) == end_of(disk, TOPIC, 1) == end_of(disk, TOPIC, 2) == 30
    assert 0 < end_of(disk, TOPIC, 3) == cut_at < 30
    lab.start(BROKER)
    led(lab, TOPIC)
    answered = dict(answers(lab, TOPIC, BROKER))
    # Kafka takes a log without a checkpoint of its epochs for one without epochs; the batches tell them all the same.
    without = answered.pop(4)
    assert isinstance(without, ReplicaLog)
    assert (without.log_end, without.last_epoch) == (30, None)
    assert assert_came_true(all_but_4(disk), answered) == PARTITIONS - 1


def after_a_crash(lab: Lab) -> None:
    lab.kill(BROKER)
    # The kernel takes the lock from the last thread of a killed process, a moment after its first one is gone.
    lab.wait_until("the lock is free", lambda: disk_of(lab, BROKER, TOPIC).running is False)
    change(segment(lab, TOPIC, 0), lambda content: content[:-9])
    change(segment(lab, TOPIC, 1), lambda content: content + bytes(5000))
    cut_at = flip_in_the_middle(segment(lab, TOPIC, 5))
    change(segment(lab, TOPIC, 6), lambda content: content + b"\x7f" * 500)
    lab.cut_tail(BROKER, TOPIC, 7, batches=2)
    (replica(lab, TOPIC, 7) / "leader-epoch-checkpoint").unlink()
    for name in ("replication-offset", "recovery-point-offset", "log-start-offset"):
        (directories(lab, BROKER)[1] / f"{name}-checkpoint").unlink()
    disk = disk_of(lab, BROKER, TOPIC)
    assert (disk.clean_shutdown, disk.broker_epoch, disk.counts.read) == (False, None, PARTITIONS)
    # Where a log started is forgotten with the checkpoint that said so.
    assert [start_of(disk, at) for at in (0, 8)] == [0, 12]
    assert 0 < end_of(disk, TOPIC, 5) == cut_at < 60
    assert end_of(disk, TOPIC, 6) == 60
    assert_kafka_finds_the_same_batches(lab, TOPIC, 5, disk)
    lab.start(BROKER)
    led(lab, TOPIC)
    answered = dict(answers(lab, TOPIC, BROKER))
    # It still has no epochs from before its checkpoint was lost, and the batches tell them.
    told, since = log_of(disk, TOPIC, 4).answer, answered.pop(4)
    assert isinstance(told, ReplicaLog)
    assert isinstance(since, ReplicaLog)
    assert told.lineage is not None
    assert since.lineage == told.lineage[1:]
    assert (since.log_end, since.last_epoch) == (told.log_end, told.last_epoch) == (60, told.lineage[1].epoch)
    assert assert_came_true(all_but_4(disk), answered) == PARTITIONS - 1


def all_but_4(disk: DiskCollection) -> Mapping[TopicPartition, DiskLog]:
    return {at: log for at, log in disk.logs.items() if at.partition != 4}


def log_of(disk: DiskCollection, topic: str, partition: int) -> DiskLog:
    return disk.logs[TopicPartition(topic, partition)]


def end_of(disk: DiskCollection, topic: str, partition: int) -> int:
    answer = log_of(disk, topic, partition).answer
    assert isinstance(answer, ReplicaLog), answer
    return answer.log_end


def start_of(disk: DiskCollection, partition: int) -> int | None:
    answer = log_of(disk, TOPIC, partition).answer
    assert isinstance(answer, ReplicaLog), answer
    return answer.log_start


def assert_kafka_finds_the_same_batches(lab: Lab, topic: str, partition: int, disk: DiskCollection) -> None:
    """kafka-dump-log.sh names the same batches, and the same one as the first that is not valid."""
    file = segment(lab, topic, partition)
    dumped = lab.stock_tool("kafka-dump-log.sh", "--files", str(file)).stdout
    lines = [line.split() for line in dumped.splitlines() if line.startswith("baseOffset: ")]
    valid = [int(line[1]) for line in lines if line[line.index("isvalid:") + 1] == "true"]
    found = open_partition(directories(lab, BROKER), TopicPartition(topic, partition)).batches_from(0)
    mine = [header.base_offset for header, _ in found]
    assert mine == valid[: len(mine)]
    assert found.stopped is not None
    assert found.stopped.next_offset == end_of(disk, topic, partition)
    assert f"offset {found.stopped.next_offset} does not match" in found.stopped.text
    assert found.stopped.next_offset not in valid


def test_a_dead_brokers_disk_settles_what_was_not_known(lab_43: Lab, tmp_path: Path) -> None:
    report = run_incident(lab_43, "needs-unclean-recovery", partitions=3)
    lab, topic = lab_43, report.topic
    assert report.absent == (BROKER,)
    disk = disk_of(lab, BROKER, topic)
    file = tmp_path / "broker-1.kelr"
    assert save_collection(disk, file) == 3

    with live(lab) as source:
        alone = take_snapshot(source, select([topic]), now_ms=0, with_logs=_any, lineage=True)
    with CollectedSource(live(lab), [read_collection(file)]) as source:
        together = take_snapshot(source, select([topic]), now_ms=0, with_logs=_any, lineage=True)
        assert source.warnings == ()
    for state in together.partitions:
        assert _heard(alone, state) == {2, 3}
        assert _heard(together, state) == {1, 2, 3}
        blind, seeing = decide(alone, state), decide(together, state)
        assert next(c for c in seeing.candidates if c.replica == BROKER).source == "log directory"
        unread = _loss_of(blind)
        assert (unread.grade, unread.unheard, unread.total) == (LossCertainty.UNKNOWN, (BROKER,), Bounds(0))
        # 10 records were acknowledged with acks=1 by broker 1 alone; whoever is elected among 2 and 3 lacks them.
        read = _loss_of(seeing)
        assert (read.grade, read.unheard) == (LossCertainty.BOUNDED, ())
        assert read.total is not None
        assert read.total.exact
        assert read.total.at_least >= 10

    # The disks of brokers that run tell what the brokers answer.
    for broker in (2, 3):
        assert disk_of(lab, broker, topic).running is True
        assert assert_came_true(disk_of(lab, broker, topic).logs, answers(lab, topic, broker)) == 3

    # With ELR and LastKnownElr cleared nobody is elected on broker 1's return, so its log stays as it was.
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    entry = ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(20)
    lab.wait_partitions(
        topic, "ELR and LastKnownElr are empty", lambda state: not state.elr and not state.last_known_elr
    )
    lab.start(BROKER)
    assert assert_came_true(disk.logs, answers(lab, topic, BROKER)) == 3
    # It runs again, and what it answers counts.
    with CollectedSource(live(lab), [read_collection(file)]) as source:
        again = take_snapshot(source, select([topic]), now_ms=0, with_logs=_any, lineage=True)
    for state in again.partitions:
        assert state.leader is None
        (own,) = (log for log in again.logs[state.address] if log.replica == BROKER)
        assert isinstance(own, ReplicaLog)
        assert own.source != "log directory"


def test_a_disk_from_before_its_broker_last_ran_is_not_believed_and_one_that_was_cut_is(
    lab_43: Lab, tmp_path: Path
) -> None:
    lab = lab_43
    lab.restore()
    story = Story(lab, f"stale-{time.time_ns()}", lambda _: None)
    story.create_topic([(1, 2, 3), (1, 3, 2)])
    story.produce(2, Acks.ALL)
    story.kill(BROKER)
    before, after = tmp_path / "before.kelr", tmp_path / "after.kelr"
    save_collection(disk_of(lab, BROKER, story.topic), before)
    story.start(BROKER)
    story.wait("broker 1 follows again", lambda state: BROKER in state.isr)
    story.kill(2, 3)
    story.produce(2, Acks.LEADER)
    story.kill(BROKER)
    story.cut(BROKER, (1,), 3)
    save_collection(disk_of(lab, BROKER, story.topic), after)
    story.start(2, 3)
    story.wait("broker 1 is waited for", lambda state: state.leader is None and state.last_known_elr == (BROKER,))
    found = {}
    for file in (before, after):
        with CollectedSource(live(lab), [read_collection(file)]) as source:
            taken = take_snapshot(source, select([story.topic]), now_ms=0, with_logs=_any, lineage=True)
        found[file] = [log for one in taken.partitions for log in taken.logs[one.address] if log.replica == BROKER]
    for stale in found[before]:
        assert isinstance(stale, LogUnavailable)
        assert stale.reason is LogUnavailableReason.DOUBTFUL
        assert "though its broker was elected in epoch" in stale.detail
    # Of the second partition's log all that others do not hold was cut, and more: it is true all the same.
    whole, cut = found[after]
    assert isinstance(whole, ReplicaLog)
    assert isinstance(cut, ReplicaLog)
    assert cut.log_end < whole.log_end


def _any(_state: PartitionState) -> bool:
    return True


def _heard(snapshot: Snapshot, state: PartitionState) -> set[int]:
    return {log.replica for log in snapshot.logs[state.address] if isinstance(log, ReplicaLog)}


def _loss_of(decision: Decision) -> Loss:
    """What the best live log would lose."""
    (outcome,) = (one for one in decision.elections if one.election is ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert outcome.loss is not None
    return outcome.loss
