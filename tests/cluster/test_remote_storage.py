"""Remote storage (KIP-405) on real Kafka 4.4: what brokers tell of it, and what an unclean election does to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.engine import decide
from kelr.engine.loss_words import begins_later
from kelr.lab import Lab, LabSpec
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import Lock, load_lock
from kelr.lab.produce import Acks, produce
from kelr.lab.story import create_topic
from kelr.model import (
    Bounds,
    DamageKind,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    PartitionState,
    ReplicaLog,
    Selection,
    Target,
    TopicPartition,
)
from kelr.model.plan import AcceptedLoss
from kelr.recovery.actor import whoever_runs_this
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.plan_making import make_plan
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.disk import read_log_directories
from kelr.sources.ground import MACHINE
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.records.stream import RawBatch
from tests.differential.driver import javac_version

pytestmark = pytest.mark.longer

CLASS = "CopiesInADirectory"
JAVA = Path(__file__).parent / "java"
SHIPPED_BY = "17."
METADATA = TopicPartition("__remote_log_metadata", 0)
ORDERS, CLEARED = TopicPartition("orders", 0), TopicPartition("cleared", 0)
CONFIGS = {
    "min.insync.replicas": "2",
    "remote.storage.enable": "true",
    "local.retention.ms": "1000",
    "retention.ms": "-1",
}


class RemoteLab(Lab):
    """A lab whose brokers share a directory as remote storage."""

    @property
    def remote(self) -> Path:
        return self.directory / "remote"

    def _properties_beside(self, _passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        self.remote.mkdir()
        more = {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": CLASS,
            "remote.log.storage.manager.class.path": f"{JAVA}/",
            "rsm.config.directory": str(self.remote),
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
            "remote.log.manager.task.interval.ms": "500",
            "log.retention.check.interval.ms": "500",
            "log.initial.task.delay.ms": "500",
        }
        return dict.fromkeys((*self.controllers, *self.brokers), more)

    def segments(self, at: TopicPartition) -> set[tuple[int, int]]:
        """First and last offset of each segment in remote storage."""
        place = self.remote / f"{at.topic}-{at.partition}"
        names = [file.name.split("-") for file in place.iterdir()] if place.exists() else []
        return {(int(first), int(last)) for first, last, *_ in names}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteLab]:
    """What is in remote storage is written down on broker 4, which stays up."""
    place = tmp_path_factory.mktemp("lab") / "remote"
    made = RemoteLab.up(LabSpec(kafka="4.4.0", brokers=4), place, owner_pid=os.getpid())
    with made:
        assert isinstance(made, RemoteLab)
        wait(lambda: _state(made, METADATA) is not None)
        with _source(made) as source:
            assert LiveAdminClient.of(source).reorder({METADATA: (4,)}) == {METADATA: "NONE"}
        wait(lambda: (state := _state(made, METADATA)) is not None and (state.replicas, state.leader) == ((4,), 4))
        yield made


def wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)


def _source(lab: Lab) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20))


def _selection(at: TopicPartition) -> Selection:
    return Selection((Target(topic=at.topic, partitions=(at.partition,)),))


def _state(lab: Lab, at: TopicPartition) -> PartitionState | None:
    with _source(lab) as source:
        return next((one for page in source.pages(_selection(at)) for one in page.partitions), None)


def _led(lab: Lab, at: TopicPartition) -> tuple[int | None, set[int]]:
    state = _state(lab, at)
    assert state is not None
    return state.leader, set(state.isr)


def _logs(lab: Lab, at: TopicPartition) -> dict[int, ReplicaLog]:
    with _source(lab) as source:
        snapshot = take_snapshot(source, _selection(at), now_ms=0, with_logs=lambda _: True)
    return {one.replica: one for one in snapshot.logs[at] if isinstance(one, ReplicaLog)}


def _bounds(lab: Lab, at: TopicPartition) -> dict[int, tuple[int | None, ...]]:
    """Replica to log start, start on its disk, end of what is in remote storage, log end."""
    return {
        replica: (log.log_start, log.local_start, log.remote_end, log.log_end)
        for replica, log in _logs(lab, at).items()
    }


def _put(lab: Lab, records: int, acks: Acks = Acks.ALL) -> None:
    for at in (ORDERS, CLEARED):
        produce(lab.bootstrap_servers, at.topic, [0], batches=records // 5, records=5, acks=acks, label="r")


def _elect(lab: Lab, at: TopicPartition, replica: int, state_directory: Path) -> None:
    with _source(lab) as source:
        wish = ElectionRequest(ElectionType.DESIGNATION, replica)
        plan = make_plan(source, _selection(at), lambda _: wish, clock_ms=MACHINE.now_ms).plan
        assert [one.elect for one in plan.elections] == [replica], plan.not_planned
        (result,) = apply_plan(
            plan,
            source=source,
            hand=LiveAdminClient.of(source),
            state_directory=state_directory,
            ground=MACHINE,
            who=whoever_runs_this(),
            consented=Confirmation(AcceptedLoss(100_000, unbounded=True), "a test"),
        )
    assert result.leader == replica, result


def test_the_shipped_class_is_that_of_the_source(tmp_path: Path) -> None:
    version = javac_version()
    if version is None or not version.startswith(SHIPPED_BY):
        pytest.skip(f"needs javac {SHIPPED_BY[:-1]} to compile as the shipped class was; here is {version}")
    lock = load_lock("4.4.0")
    needed = [jar for jar in lock.jars if jar.coordinates.split(":")[1] in {"kafka-storage-api", "kafka-clients"}]
    path = os.pathsep.join(map(str, obtain_jars(Lock("4.4.0", tuple(needed)), cache_directory())))
    flags = ["--release", "17", "-g:none", "-Xlint:all", "-Werror", "-d", str(tmp_path), "-cp", path]
    subprocess.run(["javac", *flags, str(JAVA / f"{CLASS}.java")], check=True, timeout=120)
    assert (tmp_path / f"{CLASS}.class").read_bytes() == (JAVA / f"{CLASS}.class").read_bytes()


def test_an_unclean_election_and_what_is_in_remote_storage(lab: RemoteLab, tmp_path: Path) -> None:
    """Replica 3 was out of sync, and comes back with 60 records of `orders`, and none of `cleared`."""
    for at in (ORDERS, CLEARED):
        create_topic(lab, at.topic, [[1, 2, 3]], CONFIGS)
    _put(lab, 60)
    wait(lambda: _bounds(lab, ORDERS) == dict.fromkeys((1, 2, 3), (0, 60, 60, 60)))
    lab.kill(3)
    wait(lambda: all(_led(lab, at) == (1, {1, 2}) for at in (ORDERS, CLEARED)))
    _put(lab, 30)
    wait(lambda: all(_bounds(lab, at) == dict.fromkeys((1, 2), (0, 90, 90, 90)) for at in (ORDERS, CLEARED)))
    lab.kill(2)
    wait(lambda: all(_led(lab, at) == (1, {1}) for at in (ORDERS, CLEARED)))
    _put(lab, 10, Acks.LEADER)
    lab.kill(1)
    shutil.rmtree(lab.data_directory(3) / "cleared-0")
    for broker in (2, 3):
        lab.start(broker)
    wait(lambda: all(_led(lab, at)[0] is None for at in (ORDERS, CLEARED)))
    wait(lambda: _bounds(lab, ORDERS) == {2: (0, 90, 90, 90), 3: (0, 60, 60, 60)})
    assert _bounds(lab, CLEARED)[3] == (0, 0, None, 0)

    _foretold(lab)
    _elect(lab, ORDERS, 3, tmp_path)
    _elect(lab, CLEARED, 3, tmp_path)

    # All of it is gone where the leader holds none of its epochs; else what its log does not go on from stays unread.
    wait(lambda: lab.segments(CLEARED) == set())
    assert max(last for _, last in lab.segments(ORDERS)) == 89
    wait(lambda: _led(lab, ORDERS) == (3, {2, 3}))
    found = _logs(lab, ORDERS)
    assert [(found[one].log_start, found[one].log_end) for one in (3, 2)] == [(0, 60), (60, 60)]
    assert "begins at 60, and that of 3, which leads, at 0" in begins_later(replace(found[2], local_start=60), found[3])
    # The clean election of that replica deletes what came before.
    assert min(first for first, _ in lab.segments(ORDERS)) == 0
    lab.stop(3)
    wait(lambda: _led(lab, ORDERS)[0] == 2)
    wait(lambda: all(first >= 60 for first, _ in lab.segments(ORDERS)))
    assert _logs(lab, ORDERS)[2].log_start == 60


def _foretold(lab: RemoteLab) -> None:
    """What kelr says before: by live brokers, and by the disk of broker 1."""
    collected = read_log_directories([lab.data_directory(1)], clock_ms=MACHINE.now_ms)
    on_disk = collected.logs[ORDERS].answer
    assert isinstance(on_disk, ReplicaLog)
    assert (on_disk.log_start, on_disk.local_start, on_disk.log_end) == (0, 90, 100)
    with _source(lab) as source:
        snapshot = take_snapshot(source, _selection(ORDERS), now_ms=0, with_logs=lambda _: True, lineage=True)
        (state,) = snapshot.partitions
        pieces = list(source.tail(state, 2, start=60, end=90))
    assert [one.header.base_offset for one in pieces if isinstance(one, RawBatch)] == list(range(60, 90, 5))
    answers: tuple[LogAnswer, ...] = tuple(
        on_disk if isinstance(one, LogUnavailable) else one for one in snapshot.logs[ORDERS]
    )
    found = decide(replace(snapshot, logs={ORDERS: answers}), state)
    losses = {one.designate: one.loss for one in found.elections if one.designate is not None}
    assert (losses[2] and losses[2].total, losses[3] and losses[3].total) == (Bounds(10, 10), Bounds(40, 40))
    (said,) = (one.text for one in found.damage if one.kind is DamageKind.REMOTE_STORAGE)
    assert "Electing 2 keeps all of it." in said
    assert "Electing 3 cuts off offsets 60..89 of it" in said
    assert "once 1 or 2 leads, also by a clean election, Kafka deletes what is there before 60" in said
