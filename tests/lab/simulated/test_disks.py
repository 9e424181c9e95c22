"""Log directories of simulated brokers, read back by what reads those of real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import events
from kelr.errors import UsageError
from kelr.lab.simulated import disks
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import ReplicaLog, TopicPartition
from kelr.simulation.logs import Acks
from kelr.sources.disk.collection import DiskCollection
from kelr.sources.disk.files import is_locked, read_leader_epochs, read_offsets
from kelr.sources.disk.reading import read_log_directories
from kelr.sources.records.batches import BatchRun, StopKind
from tests.properties import examples

ORDERS = TopicPartition("orders", 0)
CLUSTER_ID = "bWFkZS11cC1jbHVzdGVyIQ"


def world_of(*assignments: tuple[int, ...], **spec: int) -> World:
    """A cluster with the topic ``orders``, partition by partition with these replicas."""
    world = World(SimulatedSpec(rules="elr-4.3", **spec), {1: 1, 2: 2, 3: 3}, cluster_id=CLUSTER_ID)  # type: ignore[arg-type]
    world.running.ask(events.TopicCreated("orders", assignments or ((1, 2, 3),)))
    return world


def read(directory: Path) -> DiskCollection:
    return read_log_directories([directory], clock_ms=lambda: 1)


def matches(world: World, broker: int, found: DiskCollection) -> int:
    """Every replica is on the disk as it is in memory, and nothing else is; gives their number."""
    held = {
        address: replication.logs[broker]
        for address, replication in world.running.cluster.replication.items()
        if broker in replication.logs
    }
    assert set(found.logs) == set(held)
    assert found.broker == broker
    assert found.cluster_id == CLUSTER_ID
    for address, log in held.items():
        one = found.logs[address].answer
        assert isinstance(one, ReplicaLog), one
        assert (one.log_start, one.log_end, one.last_epoch, one.lineage, one.high_watermark) == (
            log.start,
            log.end,
            log.last_epoch,
            log.lineage,
            log.high_watermark,
        ), (address, one, log)
        state = world.state(address)
        assert state is not None
        assert found.logs[address].topic_id == state.topic_id
    return len(held)


def test_every_replica_is_read_back_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    world = world_of((1, 2, 3), (2, 3, 1), (3, 1, 2))
    running = world.running
    for partition in range(3):
        running.produce(TopicPartition("orders", partition), 250, Acks.ALL)
    running.kill(3)
    running.expire(3)
    running.produce(ORDERS, 30, Acks.ALL)
    running.kill(1)
    running.expire(1)
    running.produce(TopicPartition("orders", 1), 20, Acks.LEADER)
    for broker in (1, 2, 3):
        directory = tmp_path / str(broker)
        disks.write(world, broker, directory)
        found = read(directory)
        assert matches(world, broker, found) == 3
        assert [one.clean_shutdown for one in found.directories] == [False]


def test_the_mark_of_a_clean_shutdown_has_the_epoch_of_the_incarnation_that_ended(tmp_path: Path) -> None:
    world = world_of()
    epoch = world.brokers[2].epoch
    disks.write(world, 2, tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists(), "it runs"
    world.running.stop(2)
    disks.write(world, 2, tmp_path)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == f'{{"version":0,"brokerEpoch":{epoch}}}'
    (directory,) = read(tmp_path).directories
    assert (directory.clean_shutdown, directory.broker_epoch) == (True, epoch)
    world.running.start(2)
    world.running.advance(world.running.now_ms + 10_000)
    assert world.running.runs(2)
    disks.write(world, 2, tmp_path)
    assert read(tmp_path).directories[0].clean_shutdown is False


def test_what_a_power_loss_left_is_on_the_disk(tmp_path: Path) -> None:
    world = world_of()
    world.running.produce(ORDERS, 40, Acks.ALL)
    world.running.flush(1)
    world.running.produce(ORDERS, 60, Acks.ALL)
    disks.write(world, 1, tmp_path)
    assert read_offsets(str(tmp_path / "recovery-point-offset-checkpoint")) == {ORDERS: 40}
    world.running.kill(1, power_loss=True)
    disks.write(world, 1, tmp_path)
    matches(world, 1, read(tmp_path))
    assert read(tmp_path).logs[ORDERS].answer.log_end == 40  # type: ignore[union-attr]


def test_a_leader_has_written_its_epoch_down_before_any_record(tmp_path: Path) -> None:
    world = world_of()
    world.running.produce(ORDERS, 5, Acks.ALL)
    world.running.kill(1)
    world.running.expire(1)
    disks.write(world, 2, tmp_path / "2")
    disks.write(world, 3, tmp_path / "3")
    epochs = {
        broker: read_leader_epochs(str(tmp_path / broker / "orders-0/leader-epoch-checkpoint")) for broker in "23"
    }
    assert epochs == {"2": [(0, 0), (1, 5)], "3": [(0, 0)]}


def test_retention_is_in_the_names_and_in_the_checkpoint(tmp_path: Path) -> None:
    world = world_of()
    world.running.produce(ORDERS, 250, Acks.ALL)
    world.running.cluster = world.running.cluster.delete_before(ORDERS, 130)
    world.running.produce(ORDERS, 1, Acks.ALL)
    disks.write(world, 1, tmp_path)
    matches(world, 1, read(tmp_path))


def test_segments_are_rolled_and_have_indexes(tmp_path: Path) -> None:
    world = world_of()
    world.topic_configs["orders"] = {"segment.bytes": "20000"}
    world.running.produce(ORDERS, 3000, Acks.ALL)
    disks.write(world, 1, tmp_path)
    matches(world, 1, read(tmp_path))
    directory = tmp_path / "orders-0"
    segments = sorted(directory.glob("*.log"))
    assert len(segments) > 3
    for segment in segments:
        content, base = segment.read_bytes(), int(segment.stem)
        assert len(content) <= 20000
        run = BatchRun(content)
        places = dict(run)
        assert run.stop is not None
        assert run.stop.kind is StopKind.END
        assert places[0].base_offset == base
        index = segment.with_suffix(".index").read_bytes()
        entries = [
            (int.from_bytes(index[at : at + 4]), int.from_bytes(index[at + 4 : at + 8]))
            for at in range(0, len(index), 8)
        ]
        assert len(entries) >= 2 or segment == segments[-1]
        for offset, position in entries:
            assert places[position].last_offset == base + offset
        times = segment.with_suffix(".timeindex").read_bytes()
        assert int.from_bytes(times[-12:-4]) == max(header.max_timestamp_ms or 0 for header in places.values())


def test_replicas_that_the_broker_holds_no_longer_are_gone(tmp_path: Path) -> None:
    world = world_of()
    world.running.ask(events.TopicCreated("payments", ((1, 2, 3),)))
    disks.write(world, 1, tmp_path)
    world.running.ask(events.TopicDeleted("orders"))
    world.forget_topic("orders")
    disks.write(world, 1, tmp_path)
    assert set(read(tmp_path).logs) == {TopicPartition("payments", 0)}
    assert not (tmp_path / "orders-0").exists()


def test_topics_that_are_alike_have_directories_too(tmp_path: Path) -> None:
    world = world_of(topics=2, partitions=3)
    disks.write(world, 1, tmp_path)
    assert len(read(tmp_path).logs) == 1 + 2 * 3


def test_too_many_replicas_are_refused(tmp_path: Path) -> None:
    world = world_of(topics=600, partitions=100)
    with pytest.raises(UsageError, match="more than 50000 replicas"):
        disks.write(world, 1, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda directory: (directory / "thesis.txt").write_text("mine"),
        lambda directory: disks.write(world_of(), 2, directory),
        lambda directory: (directory / "meta.properties").write_text("version=9\n"),
    ],
    ids=["other files", "another broker's", "garbled"],
)
def test_nobody_elses_directory_is_written_to(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UsageError):
        disks.write(world_of(), 1, tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_lock_is_seen_by_another_process(tmp_path: Path) -> None:
    world = world_of()
    disks.write(world, 1, tmp_path)
    ask = (
        "import sys; from pathlib import Path; from kelr.sources.disk.files import is_locked;"
        "print(is_locked(Path(sys.argv[1])))"
    )

    def seen() -> str:
        return subprocess.run(
            [sys.executable, "-c", ask, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout.strip()

    with disks.DirectoryLock(tmp_path):
        disks.write(world, 1, tmp_path)
        assert seen() == "True", "also after it was written again"
    assert seen() == "False"
    assert is_locked(tmp_path) is False


VERBS = st.lists(
    st.tuples(
        st.sampled_from(("produce", "one", "kill", "lose", "stop", "start", "expire", "wait")),
        st.integers(1, 3),
        st.integers(1, 130),
    ),
    max_size=15,
)


@examples(25)
@given(verbs=VERBS)
def test_after_any_history_every_disk_is_as_the_memory(
    tmp_path_factory: pytest.TempPathFactory, verbs: list[tuple[str, int, int]]
) -> None:
    world = world_of((1, 2, 3), (2, 3, 1))
    running = world.running
    for verb, broker, number in verbs:
        match verb:
            case "produce":
                running.produce(TopicPartition("orders", broker % 2), number, Acks.ALL)
            case "one":
                running.produce(TopicPartition("orders", broker % 2), number, Acks.LEADER)
            case "kill":
                running.kill(broker)
            case "lose":
                running.kill(broker, power_loss=True)
            case "stop":
                running.stop(broker)
            case "start":
                running.start(broker)
            case "expire":
                running.expire(broker)
            case _:
                running.advance(running.now_ms + 50 * number)
    directory = tmp_path_factory.mktemp("disks")
    for broker in (1, 2, 3):
        disks.write(world, broker, directory / str(broker))
        found = read(directory / str(broker))
        matches(world, broker, found)
        clean = broker in running.cluster.down and broker not in running.cluster.crashed
        assert found.directories[0].clean_shutdown is clean
