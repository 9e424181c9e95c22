"""Controllers that are lost for ever on real Kafka, and ``kelr quorum`` that makes one lead again, under traffic.

Rows are those of docs/quorum.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kelr.commands.main import main
from kelr.errors import LabError
from kelr.lab import Lab, LabSpec, nodes, run_incident, wire
from kelr.lab.nodes import HOST, NodePaths
from kelr.lab.observed import PATIENCE_S
from kelr.lab.processes import free_ports
from kelr.lab.produce import Acks, produce
from kelr.lab.security import access
from kelr.lab.security.kinds import Security
from kelr.lab.story import create_topic
from kelr.model.checkup import Quorum
from kelr.protocol.messages import DescribeQuorumRequest
from kelr.quorum.assess import Fate, Matter, Verdict, assess
from kelr.quorum.plan import QuorumPlan, read_plan
from kelr.quorum.reading import read_collections
from kelr.replay import records as rec
from kelr.sources.connection import ConnectionSettings
from kelr.sources.disk.files import is_locked
from kelr.sources.live import LiveSource
from kelr.sources.live.describe import quorum_of
from kelr.sources.metadata_log.reading import read_batches
from kelr.sources.metadata_log.writing import encode_batch
from kelr.sources.records.batches import BatchRun

FIRST, SECOND, THIRD = 100, 101, 102


@pytest.fixture(params=[pytest.param("4.3.1", marks=pytest.mark.longer), "4.4.0"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=request.param, controllers=3, brokers=2, min_isr=1)
    with Lab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as up:
        yield up


@pytest.fixture(params=["4.3.1", pytest.param("4.4.0", marks=pytest.mark.longer)])
def static_lab(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """As `lab`, with kraft.version 0: every node's file names the voters (controller.quorum.voters)."""
    made = nodes.node_properties

    def properties(spec: LabSpec, node: int, ports: Mapping[int, int], data: Path) -> dict[str, str]:
        found = made(spec, node, ports, data)
        del found["controller.quorum.bootstrap.servers"]
        voters = ",".join(f"{one}@{HOST}:{ports[one]}" for one in spec.controller_ids)
        return {**found, "controller.quorum.voters": voters}

    def formatted(lab: Lab, users: Sequence[str]) -> None:
        for node in lab.controllers:
            file = str(NodePaths.of(lab.directory, node).properties)
            done = lab.stock_tool("kafka-storage.sh", "format", "-t", lab._state.cluster_id, "-c", file, *users)
            assert done.returncode == 0, done.stderr

    monkeypatch.setattr(nodes, "node_properties", properties)
    monkeypatch.setattr(Lab, "_format_controllers", formatted)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=request.param, controllers=3, brokers=2, min_isr=1)
    with Lab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as up:
        # It registers once it follows the leader: where each listens is in no other record.
        up.wait_until("every controller has registered", lambda: registered(up) == set(up.controllers))
        yield up


class Traffic(threading.Thread):
    """Produces with acks=all until it is stopped; knows what was acknowledged and what failed."""

    def __init__(self, lab: Lab, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": lab.bootstrap_servers, "acks": "all", "linger.ms": 0})
        self._topic, self._ended = topic, threading.Event()
        self.acknowledged: list[bytes] = []
        self.failed: list[str] = []

    def run(self) -> None:
        number = 0
        while not self._ended.wait(0.02):
            self._producer.produce(self._topic, str(number).encode(), on_delivery=self._told)
            self._producer.poll(0)
            number += 1
        self._producer.flush(30)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(message.value() or b"")
        else:
            self.failed.append(str(error))

    def stop(self) -> None:
        self._ended.set()
        self.join(60)


def create(lab: Lab, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    for topic, made in admin.create_topics([NewTopic(topic, 2, 2) for topic in topics]).items():
        made.result(30)
        lab.wait_partitions(topic, "all are led", lambda state: state.leader is not None)


def read_all(lab: Lab, topic: str) -> set[bytes]:
    consumer = Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": "x", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
    found, ends, deadline = set(), 0, time.monotonic() + PATIENCE_S
    while ends < 2 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is not None:
            ends += 1
        elif message is not None:
            found.add(message.value() or b"")
    consumer.close()
    return found


def collect(lab: Lab, name: str, *nodes: int) -> Path:
    out = lab.directory.parent / name
    directories = [word for node in nodes for word in ("--node-dir", str(lab.data_directory(node)))]
    assert main(["quorum", "collect", str(out), *directories]) == 0
    return out


def registered(lab: Lab) -> set[int]:
    """The controllers that have registered, by a broker's copy."""
    (copy,) = read_collections([collect(lab, f"registered-{time.time_ns()}", lab.brokers[0])]).copies
    return set(copy.image.controllers)


def doctor(lab: Lab, capsys: pytest.CaptureFixture[str]) -> Mapping[str, str]:
    """What doctor finds about controllers, by its check."""
    capsys.readouterr()
    only = "no-controller,quorum-lost"
    assert main(["doctor", "--only", only, "--check", "--timeout", "5", "-o", "json", *lab.connection]) == 1
    return {one["id"]: one["what"] for one in json.loads(capsys.readouterr().out)["items"]}


def quorum_at(ports: Iterable[int]) -> Quorum | None:
    """As the controller on one of these ports tells it that leads, if one does. Kafka's tool is a JVM for each look."""
    topic = DescribeQuorumRequest.TopicData
    log = topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])
    for port in ports:
        with suppress(OSError):
            told = quorum_of(wire.ask(port, DescribeQuorumRequest(version=2, topics=[log])))
            if isinstance(told, Quorum):
                return told
    return None


def quorum(lab: Lab) -> Quorum | None:
    return quorum_at(map(lab.port, lab.controllers))


def wait_until_it_leads(lab: Lab, node: int = FIRST) -> None:
    lab.wait_until("it leads", lambda: (led := quorum(lab)) is not None and led.leader == node)


def votes(lab: Lab, *nodes: int) -> bool:
    known = quorum(lab)
    return known is not None and {*nodes} <= {one.node for one in known.voters}


def rescue(
    lab: Lab, collections: Sequence[Path], missing: str, source: str = "", more: Sequence[str] = ()
) -> QuorumPlan:
    """Controller 100 at its old address, made of the best copy, or of a stale one, as docs/quorum.md has it."""
    plan, files = str(lab.directory.parent / "plan.json"), list(map(str, collections))
    address = f"{HOST}:{lab.port(FIRST)}"
    target = ("--node", str(FIRST), "--directory", str(lab.data_directory(FIRST)), "--address", address)
    target = (*target, "--stale", "--source", source) if source else (*target, *more)
    assert main(["quorum", "plan", *files, *target, "--kafka", lab.spec.kafka, "--out", plan, "--overwrite"]) == 0
    made = read_plan(Path(plan))
    stated = ["--never-start", f"{FIRST},{SECOND},{THIRD}", "--missing", missing]
    if source:
        stated += ["--topics", ",".join(made.stale_topics), "--data-copied", "1,2"]
    assert main(["quorum", "apply", plan, *files, *stated]) == 0
    return made


def verify(lab: Lab, *collections: Path) -> int:
    words = ["quorum", "verify", str(lab.directory.parent / "plan.json"), *map(str, collections)]
    directories = [word for broker in lab.brokers for word in ("--node-dir", str(lab.data_directory(broker)))]
    return main([*words, *directories, *lab.connection])


def grow(lab: Lab, node: int) -> None:
    shutil.rmtree(lab.data_directory(node), ignore_errors=True)
    lab.format_controller(node)
    lab.start_controller(node)
    make_a_voter(lab, node)


def make_a_voter(lab: Lab, node: int) -> None:
    """What has followed the one that leads to its end may vote."""

    def followed() -> bool:
        known = quorum(lab)
        if known is None or known.now_ms is None:
            return False
        return any(one.node == node and not one.is_behind(known.now_ms) for one in known.observers)

    lab.wait_until(f"controller {node} follows", followed)
    lab.wait_until(f"controller {node} votes", lambda: quorum_tool(lab, "add-controller", config=node))


def written_voters(lab: Lab) -> list[tuple[bytes, bytes]]:
    """Each batch of the first controller's log that holds voters alone: Kafka's bytes, and kelr's of the same."""
    found = []
    for segment in sorted((lab.data_directory(FIRST) / "__cluster_metadata-0").glob("*.log")):
        data = segment.read_bytes()
        for at, header in BatchRun(data):
            raw = data[at : at + header.size_bytes]
            if header.control:
                (batch,) = read_batches(raw)
                if all(isinstance(one, rec.Voters) for one in batch.records):
                    again = encode_batch(batch.base_offset, batch.epoch, batch.timestamp_ms, batch.records)
                    found.append((raw, again))
    return found


def test_all_controllers_are_lost_and_one_is_made_of_a_brokers_copy(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows 2 and 5: no broker is touched, no write fails, nothing acknowledged is lost, and three vote again."""
    create(lab, "orders")
    traffic = Traffic(lab, "orders")
    traffic.start()
    processes = {broker: lab._process(broker) for broker in lab.brokers}
    for node in lab.controllers:
        lab.kill_controller(node)
        shutil.rmtree(lab.data_directory(node))
    assert doctor(lab, capsys)["quorum-lost"].startswith("0 of 3 controller endpoints accept connections")
    collection = collect(lab, "brokers.kelr-quorum", *lab.brokers)
    found = read_collections([collection])
    assessment = assess(found.copies, found.disks)
    assert (assessment.matter, assessment.best.verdict) == (Matter.LOST, Verdict.LOWER_BOUND)
    assert main(["quorum", "explain", str(collection)]) == 1
    rescue(lab, [collection], f"{FIRST},{SECOND},{THIRD}")
    assert verify(lab, collection) == 1  # nobody leads yet
    lab.start_controller(FIRST)
    wait_until_it_leads(lab)
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)
    stray = lab.data_directory(1) / "orders-7.5a5f7d6b2f5b4b2d8f2b-stray"
    stray.mkdir()
    assert verify(lab, collection) == 1
    stray.rmdir()
    create(lab, "after")
    grow(lab, SECOND)
    grow(lab, THIRD)
    assert votes(lab, *lab.controllers)
    traffic.stop()
    assert traffic.failed == []
    assert len(traffic.acknowledged) > 100
    assert set(traffic.acknowledged) <= read_all(lab, "orders")
    assert {broker: lab._process(broker) for broker in lab.brokers} == processes
    assert not [path for broker in lab.brokers for path in lab.data_directory(broker).glob("*-stray")]
    voters = written_voters(lab)
    assert len(voters) == 3  # kelr's one, and Kafka's two of add-controller
    assert all(raw == again for raw, again in voters)


@pytest.mark.longer
def test_the_lost_majority_that_comes_back_is_a_second_leader_and_is_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 12. At an old voter's address, or at one that their files name, those that come back would follow it."""
    create(lab, "orders")
    stop_controllers(lab, *lab.controllers)
    shutil.rmtree(lab.data_directory(FIRST))
    files = [NodePaths.of(lab.directory, node).properties for node in (SECOND, THIRD)]
    before = [file.read_text() for file in files]
    lab.move_controllers(FIRST)
    for file, text in zip(files, before, strict=True):
        file.write_text(text)
    collection = collect(lab, "brokers.kelr-quorum", *lab.brokers)
    rescue(lab, [collection], f"{FIRST},{SECOND},{THIRD}")
    lab.start_controller(FIRST, SECOND, THIRD)
    capsys.readouterr()
    lab.wait_until("two lead", lambda: verify(lab, collection) == 1 and "leads, too" in capsys.readouterr().out)
    verify(lab, collection)
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"leader FAILED controller ({SECOND}|{THIRD}) leads in epoch \d+; .* not the planned one", told)
    assert re.search(rf"other leaders FAILED controller ({SECOND}|{THIRD}) leads, too, in epoch \d+, at", told)
    stop_controllers(lab, SECOND, THIRD)
    for broker in lab.brokers:
        lab.kill(broker)
        with suppress(LabError):  # one that truncates what the old leader wrote may end once
            lab.start(broker)
        lab.start(broker)
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)


def test_static_voters_are_lost_and_one_is_made_of_a_brokers_copy(
    static_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 2 with kraft.version 0: the new controller is alone in its own list of voters; brokers keep theirs."""
    lab = static_lab
    create(lab, "orders")
    traffic = Traffic(lab, "orders")
    traffic.start()
    processes = {broker: lab._process(broker) for broker in lab.brokers}
    for node in lab.controllers:
        lab.kill_controller(node)
        shutil.rmtree(lab.data_directory(node))
    assert doctor(lab, capsys)["quorum-lost"].startswith("0 of 3 controllers accept connections")
    collection = collect(lab, "brokers.kelr-quorum", *lab.brokers)
    found = read_collections([collection])
    assessment = assess(found.copies, found.disks)
    assert (assessment.kraft_version, assessment.matter) == (0, Matter.LOST)
    assert [one.node for one in assessment.voters] == [FIRST, SECOND, THIRD]
    plan = rescue(lab, [collection], f"{FIRST},{SECOND},{THIRD}")
    assert set(plan.controller_addresses) == {f"{HOST}:{lab.port(node)}" for node in lab.controllers}
    alone_in_its_file(lab)
    lab.start_controller(FIRST)
    wait_until_it_leads(lab)
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)
    create(lab, "after")
    traffic.stop()
    assert traffic.failed == []
    assert len(traffic.acknowledged) > 100
    assert set(traffic.acknowledged) <= read_all(lab, "orders")
    assert {broker: lab._process(broker) for broker in lab.brokers} == processes
    assert not [path for broker in lab.brokers for path in lab.data_directory(broker).glob("*-stray")]


def alone_in_its_file(lab: Lab) -> None:
    """With kraft.version 0 the new controller's file must name it alone, as the plan says; brokers keep theirs."""
    properties = NodePaths.of(lab.directory, FIRST).properties
    every = ",".join(f"{node}@{HOST}:{lab.port(node)}" for node in lab.controllers)
    text = properties.read_text()
    assert every in text
    properties.write_text(text.replace(every, f"{FIRST}@{HOST}:{lab.port(FIRST)}"))


def test_a_static_voter_that_is_left_is_made_to_lead_alone(static_lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Row 3: it holds everything, and is refused as long as it runs in the old quorum."""
    lab = static_lab
    create(lab, "orders")
    traffic = Traffic(lab, "orders")
    traffic.start()
    for node in (SECOND, THIRD):
        lab.lose_disk(node)
    collection = collect(lab, "left", FIRST, *lab.brokers)
    before = sorted(path.name for path in lab.data_directory(FIRST).parent.iterdir())
    capsys.readouterr()
    with pytest.raises(AssertionError):
        rescue(lab, [collection], f"{SECOND},{THIRD}")
    assert "holds the lock" in capsys.readouterr().err
    assert sorted(path.name for path in lab.data_directory(FIRST).parent.iterdir()) == before
    stop_controllers(lab, FIRST)
    rescue(lab, [collection], f"{SECOND},{THIRD}")
    alone_in_its_file(lab)
    lab.start_controller(FIRST)
    wait_until_it_leads(lab)
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)
    create(lab, "after")
    traffic.stop()
    assert traffic.failed == []
    assert set(traffic.acknowledged) <= read_all(lab, "orders")


class ShortLab(Lab):
    """A lab whose metadata logs lose their beginning to checkpoints within a minute or two, not in days."""

    def _properties_beside(self, _passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        more = {
            "internal.metadata.log.segment.bytes": "16384",
            "internal.metadata.delete.delay.millis": "500",
            "metadata.max.retention.bytes": "16384",
            "metadata.log.max.record.bytes.between.snapshots": "4096",
            "metadata.log.max.snapshot.interval.ms": "1000",
        }
        return dict.fromkeys((*self.controllers, *self.brokers), more)


def begin_with_checkpoints(lab: Lab, *holders: int) -> None:
    """Records come and go until the logs of these nodes have lost their beginning."""
    before = {one.topic for one in lab.partitions()}
    fillers = [f"filler-{number}" for number in range(40)]
    for topic in fillers:
        create_topic(lab, topic, [[1, 2]] * 10, {})
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    for deleted in admin.delete_topics(fillers).values():
        deleted.result(30)
    lab.wait_until("they are deleted", lambda: {one.topic for one in lab.partitions()} == before)
    logs = [lab.data_directory(node) / "__cluster_metadata-0" for node in holders]
    beginning = "0" * 20 + ".log"
    lab.wait_until("the beginning is gone", lambda: not any((log / beginning).exists() for log in logs))
    lab.wait_until("the files are gone", lambda: not renamed(lab, "filler", ""))


@pytest.mark.longer
@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_a_stale_copy_that_begins_with_a_checkpoint_deletes_nothing_of_stopped_brokers(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 9, where live brokers deleted the topic: stopped ones, which begin without their metadata logs, set it aside,
    and it comes back."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=kafka, controllers=3, brokers=2, min_isr=1)
    with ShortLab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        create(lab, "early")
        produce(lab.bootstrap_servers, "early", [0, 1], batches=2, records=5, acks=Acks.ALL, label="early")
        read_all(lab, "early")  # makes __consumer_offsets, which the copy knows then
        begin_with_checkpoints(lab, *lab.brokers, THIRD)
        stop_controllers(lab, THIRD)
        create(lab, "late")
        produce(lab.bootstrap_servers, "late", [0, 1], batches=2, records=5, acks=Acks.ALL, label="late")
        records = {topic: read_all(lab, topic) for topic in ("early", "late")}
        for node in (FIRST, SECOND):
            lab.lose_disk(node)
        stopped = stop_everything(lab, "stopped", lab.data_directory(THIRD))
        found = read_collections([stopped])
        lagging = next(one for one in assess(found.copies, found.disks).copies if one.copy.node == THIRD)
        assert [(one.topic, one.fate) for one in lagging.fates] == [("late", Fate.DELETED)]
        rescue(lab, [stopped], f"{FIRST},{SECOND}", str(THIRD))
        lab.start_controller(FIRST)
        start_brokers(lab)
        lab.wait_until("all is as planned", lambda: verify(lab, stopped) == 0)
        assert (len(renamed(lab, "late", "-stray")), renamed(lab, "late", "-delete")) == (4, [])
        assert read_all(lab, "early") == records["early"]
        collections = [stopped, stop_everything(lab, "again", lab.data_directory(FIRST))]
        copies = [one for one in read_collections(collections).copies if one.read_at_ms is not None]
        rescue(lab, collections, f"{SECOND}", max(copies, key=lambda one: one.position).place)
        lab.start_controller(FIRST)
        restore(lab, *collections)
        start_brokers(lab)
        assert {topic: read_all(lab, topic) for topic in records} == records


@pytest.mark.longer
@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_a_brokers_copy_that_begins_with_a_checkpoint(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 14, as clusters are that have run for some days: every copy begins with a checkpoint that Kafka wrote, which
    is taken over byte for byte. No topic is lost, with brokers up and after they were killed."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=kafka, controllers=3, brokers=2, min_isr=1)
    with ShortLab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        create(lab, "orders")
        begin_with_checkpoints(lab, *lab.brokers)
        traffic = Traffic(lab, "orders")
        traffic.start()
        for node in lab.controllers:
            lab.lose_disk(node)
        collection = collect(lab, "brokers.kelr-quorum", *lab.brokers)
        found = read_collections([collection])
        assessment = assess(found.copies, found.disks)
        assert assessment.matter is Matter.LOST
        assert all(one.copy.batches.start > 0 for one in assessment.copies)
        rescue(lab, [collection], f"{FIRST},{SECOND},{THIRD}")
        lab.start_controller(FIRST)
        wait_until_it_leads(lab)
        lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)
        create(lab, "after")
        traffic.stop()
        assert traffic.failed == []
        # A replica without records may lack its topic id on disk when its broker is killed; Kafka then sets it aside.
        produce(lab.bootstrap_servers, "after", [0, 1], batches=2, records=5, acks=Acks.ALL, label="a")
        for broker in lab.brokers:
            lab.kill(broker)
        for broker in lab.brokers:
            lab.start(broker, wait=False)
        lab.wait_unfenced(*lab.brokers)
        lab.wait_partitions("orders", "all are led", lambda state: state.leader is not None)
        assert set(traffic.acknowledged) <= read_all(lab, "orders")
        assert {one.topic for one in lab.partitions()} >= {"orders", "after"}
        assert not [path for broker in lab.brokers for path in lab.data_directory(broker).glob("*-stray")]


class CombinedLab(Lab):
    """A lab whose controllers are brokers, too."""

    def _properties_beside(self, _passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        ports = free_ports(self.controllers)
        every = ",".join(f"{HOST}:{self.port(node)}" for node in self.controllers)

        def combined(node: int) -> Mapping[str, str]:
            listeners = f"CONTROLLER://{HOST}:{self.port(node)},PLAINTEXT://{HOST}:{ports[node]}"
            broker = nodes.node_properties(self.spec, self.brokers[0], self._state.ports, self.data_directory(node))
            own = {"process.roles": "broker,controller", "node.id": str(node), "listeners": listeners}
            return {**broker, **own, "controller.quorum.bootstrap.servers": every}

        return {node: combined(node) for node in self.controllers}


@pytest.mark.longer
@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_combined_nodes_are_brokers_of_a_controller_that_was_made_of_a_copy(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three combined nodes are lost. The third keeps its data, follows the new controller, and votes again."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=kafka, controllers=3, brokers=2, min_isr=1)
    with CombinedLab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        lab.wait_until(
            "combined nodes are brokers", lambda: all(lab._is_unfenced(one, (1,)) for one in lab.controllers)
        )
        create_topic(lab, "orders", [[FIRST, 1], [1, FIRST]], {})
        traffic = Traffic(lab, "orders")
        traffic.start()
        for node in (SECOND, THIRD):
            lab.lose_disk(node)
        stop_controllers(lab, FIRST)
        collection = collect(lab, "left", FIRST, *lab.brokers)
        found = read_collections([collection])
        assessment = assess(found.copies, found.disks)
        assert assessment.matter is Matter.LOST
        assert assessment.missing_brokers == (SECOND, THIRD)
        # A new node at a lost one's address, so that brokers find it.
        plan, address = tmp_path / "plan.json", f"{HOST}:{lab.port(SECOND)}"
        target = ("--node", "200", "--directory", str(lab.data_directory(SECOND)), "--address", address)
        words = ("--kafka", kafka, "--out", str(plan))
        assert main(["quorum", "plan", str(collection), *target, *words]) == 0
        stated = ("--never-start", f"{FIRST},{SECOND},{THIRD}", "--missing", f"{SECOND},{THIRD}")
        assert main(["quorum", "apply", str(plan), str(collection), *stated]) == 0
        made = read_plan(plan)
        assert made.combined == (FIRST, SECOND, THIRD)
        NodePaths.of(lab.directory, SECOND).properties.write_text("\n".join(made.configs) + "\n")
        lab.start_controller(SECOND)
        wait_until_it_leads(lab, 200)
        (lab.data_directory(FIRST) / "__cluster_metadata-0").rename(tmp_path / "old-metadata-log")
        lab.start_controller(FIRST)
        lab.wait_until("the combined node serves", lambda: lab._is_unfenced(FIRST, (1,)))
        create_topic(lab, "after", [[FIRST, 1]], {})
        make_a_voter(lab, FIRST)
        assert votes(lab, FIRST)
        traffic.stop()
        assert set(traffic.acknowledged) <= read_all(lab, "orders")
        assert renamed(lab, "orders", "-stray") == []


class TlsLab(Lab):
    """A lab whose controllers speak TLS alone, as its clients do."""

    def _properties_beside(self, passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        certificates = self.directory / access.DIRECTORY
        own = access.listener_properties("CONTROLLER", Security.SSL, None, certificates, {})
        own["listener.security.protocol.map"] = f"CONTROLLER:SSL,PLAINTEXT:PLAINTEXT,{access.LISTENER}:SSL"
        return {node: {**beside, **own} for node, beside in super()._properties_beside(passwords).items()}


@pytest.mark.longer
@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_controllers_that_speak_tls_are_lost(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As row 5: the new controller has the listener, and the security, of the old ones."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    spec = LabSpec(kafka=kafka, controllers=3, brokers=2, min_isr=1, security=Security.SSL)
    with TlsLab.up(spec, tmp_path / "lab", owner_pid=os.getpid()) as lab:
        create(lab, "orders")
        traffic = Traffic(lab, "orders")
        traffic.start()
        for node in lab.controllers:
            lab.lose_disk(node)
        collection = collect(lab, "brokers", *lab.brokers)
        assert rescue(lab, [collection], f"{FIRST},{SECOND},{THIRD}", more=("--listener", "CONTROLLER")).never_start
        lab.start_controller(FIRST)
        lab.wait_until("it leads", lambda: verify(lab, collection) == 0)
        create(lab, "after")
        traffic.stop()
        assert traffic.failed == []
        assert set(traffic.acknowledged) <= read_all(lab, "orders")


def test_all_voters_have_moved_and_find_each_other_again(lab: Lab) -> None:
    """Row 6: every controller has another port; their disks are whole, and they never form a quorum by themselves."""
    create(lab, "orders")
    # A replica without records may lack its topic id on disk when its broker is killed; Kafka then sets it aside.
    produce(lab.bootstrap_servers, "orders", [0, 1], batches=2, records=5, acks=Acks.ALL, label="a")
    for node in lab.controllers:
        lab.kill_controller(node)
    for broker in lab.brokers:
        lab.kill(broker)
    # The kernel takes the lock from the last thread of a killed process, a moment after its first one is gone.
    for node in lab.controllers:
        lab.wait_until("the lock is free", lambda node=node: is_locked(lab.data_directory(node)) is False)  # type: ignore[misc]
    old = {node: lab.port(node) for node in lab.controllers}
    new = free_ports(lab.controllers)
    for node in (*lab.controllers, *lab.brokers):
        file = NodePaths.of(lab.directory, node).properties
        text = file.read_text()
        for one in lab.controllers:
            text = text.replace(f"{HOST}:{old[one]}", f"{HOST}:{new[one]}")
        file.write_text(text)
    collection = collect(lab, "voters", *lab.controllers)
    plan = str(lab.directory.parent / "plan.json")
    voters = [word for node in lab.controllers for word in ("--voter", f"{node}@{HOST}:{new[node]}")]
    assert main(["quorum", "plan", str(collection), *voters, "--kafka", lab.spec.kafka, "--out", plan]) == 0
    assert main(["quorum", "apply", plan, str(collection)]) == 0
    for node in (*lab.controllers, *lab.brokers):
        lab._spawn(node)
    lab.wait_unfenced(*lab.brokers)
    create(lab, "after")
    known = quorum_at(new.values())
    assert known is not None
    assert {*known.listeners} == {f"{HOST}:{port}" for port in new.values()}
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)


def quorum_tool(lab: Lab, *words: str, config: int = FIRST) -> bool:
    """Kafka's own tool, with the properties of this node."""
    properties = str(NodePaths.of(lab.directory, config).properties)
    where = ("--bootstrap-controller", lab.bootstrap_controllers, "--command-config", properties)
    return lab.stock_tool("kafka-metadata-quorum.sh", *where, *words).returncode == 0


@pytest.mark.longer
@pytest.mark.parametrize("kafka", ["4.3.1", "4.4.0"])
def test_incidents_of_the_quorum_and_their_runbooks(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each rescue leaves a lab with three voters, to which the next incident can happen."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    with Lab.up(LabSpec(kafka=kafka, controllers=3), tmp_path / "lab", owner_pid=os.getpid()) as lab:
        a_disk_was_replaced(lab)
        all_addresses_changed(lab, capsys)
        a_majority_is_lost_and_the_rest_lags(lab, capsys)


def a_disk_was_replaced(lab: Lab) -> None:
    """docs/runbooks/quorum-disk.md"""
    run_incident(lab, "quorum-disk")
    lab.wait_until("it has no vote", lambda: following(lab) == {FIRST: True, SECOND: True, THIRD: False})
    collection = collect(lab, "disk", *lab.controllers, *lab.brokers)
    assert main(["quorum", "explain", str(collection)]) == 0
    found = read_collections([collection])
    assessment = assess(found.copies, found.disks)
    assert assessment.matter is Matter.DISK
    voter = next(one.voter for one in assessment.voters if one.node == THIRD)
    assert voter is not None
    old = ("--controller-id", str(THIRD), "--controller-directory-id", voter.directory_id)
    assert quorum_tool(lab, "remove-controller", *old)
    make_a_voter(lab, THIRD)
    lab.wait_until("three vote", lambda: votes(lab, *lab.controllers))
    lab.wait_until("it follows", lambda: following(lab) == dict.fromkeys(lab.controllers, True))


def stop_controllers(lab: Lab, *nodes: int) -> None:
    for node in nodes:
        lab.kill_controller(node)
        lab.wait_until("the lock is free", lambda node=node: is_locked(lab.data_directory(node)) is not True)  # type: ignore[misc]


def all_addresses_changed(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/runbooks/quorum-addresses.md"""
    run_incident(lab, "quorum-addresses")
    assert "0 of 3 controller endpoints accept connections" in doctor(lab, capsys)["quorum-lost"]
    found = read_collections([collect(lab, "moved", *lab.controllers)])
    assert assess(found.copies, found.disks).matter is Matter.UNREACHED
    stop_controllers(lab, *lab.controllers)
    collection = collect(lab, "stopped", *lab.controllers, *lab.brokers)
    assert main(["quorum", "explain", str(collection)]) == 0
    plan = str(lab.directory.parent / "plan.json")
    voters = [word for node in lab.controllers for word in ("--voter", f"{node}@{HOST}:{lab.port(node)}")]
    words = ["quorum", "plan", str(collection), *voters, "--kafka", lab.spec.kafka, "--out", plan, "--overwrite"]
    assert main(words) == 0
    assert main(["quorum", "apply", plan, str(collection)]) == 0
    lab.start_controller()
    lab.wait_until("three vote", lambda: votes(lab, *lab.controllers))
    for broker in lab.brokers:
        lab.kill(broker)
        lab.start(broker)
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)


def following(lab: Lab) -> Mapping[int, bool]:
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        return source.cluster().controllers


def a_majority_is_lost_and_the_rest_lags(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/runbooks/quorum-lost.md"""
    topic = run_incident(lab, "quorum-lost").topic
    assert "1 of 3 controller endpoints accepts connections" in doctor(lab, capsys)["quorum-lost"]
    collection = collect(lab, "lost", FIRST, *lab.brokers)
    assert main(["quorum", "explain", str(collection)]) == 1
    found = read_collections([collection])
    assessment = assess(found.copies, found.disks)
    survivor = next(one for one in assessment.copies if one.copy.node == FIRST)
    assert (assessment.matter, survivor.verdict) == (Matter.LOST, Verdict.STALE)
    assert [one.topic for one in survivor.fates] == [topic]
    assert assessment.best.copy.node in lab.brokers
    stop_controllers(lab, FIRST)
    rescue(lab, [collection], f"{SECOND},{THIRD}")
    lab.start_controller(FIRST)
    wait_until_it_leads(lab)
    for node in (SECOND, THIRD):
        grow(lab, node)
    lab.wait_until("three vote", lambda: votes(lab, *lab.controllers))
    assert len(lab.partitions(topic)) == 6
    lab.wait_until("all is as planned", lambda: verify(lab, collection) == 0)


def stop_everything(lab: Lab, name: str, *directories: Path) -> Path:
    """Every node is killed, and all directories are collected, as before a stale copy is taken."""
    for broker in lab.brokers:
        if lab.is_running(broker):
            lab.kill(broker)
    stop_controllers(lab, FIRST)
    every = [*directories, *map(lab.data_directory, lab.brokers)]
    for path in every:
        lab.wait_until("the lock is free", lambda path=path: is_locked(path) is False)  # type: ignore[misc]
    out = lab.directory.parent / name
    assert main(["quorum", "collect", str(out), *(word for path in every for word in ("--node-dir", str(path)))]) == 0
    for broker in lab.brokers:
        log = lab.data_directory(broker) / "__cluster_metadata-0"
        log.rename(out.with_name(f"{name}-{broker}-metadata"))
    return out


def start_brokers(lab: Lab) -> None:
    wait_until_it_leads(lab)
    for broker in lab.brokers:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*lab.brokers)


def restore(lab: Lab, *collections: Path) -> None:
    plan = str(lab.directory.parent / "plan.json")
    for broker in lab.brokers:
        words = ("--node-dir", str(lab.data_directory(broker)))
        assert main(["quorum", "restore", plan, *map(str, collections), *words]) == 0


def renamed(lab: Lab, topic: str, ending: str) -> list[str]:
    """Directories of a topic's replicas with this ending."""
    found = (path.name for broker in lab.brokers for path in lab.data_directory(broker).glob(f"{topic}-?*"))
    return sorted(name for name in found if name.endswith(ending))


def test_a_stale_copy_leads_with_consent_and_is_undone_after_it_has_led(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows 8 and 13: what the copy does not know is set aside, and comes back with the copy that a broker had."""
    stale_and_back(lab, capsys)


@pytest.mark.longer
def test_a_stale_copy_of_static_voters_leads_with_consent_and_is_undone(
    static_lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with kraft.version 0, as the rows have it."""
    stale_and_back(static_lab, capsys, static=True)


def stale_and_back(lab: Lab, capsys: pytest.CaptureFixture[str], *, static: bool = False) -> None:
    for topic, killed in (("early", (THIRD,)), ("late", (FIRST, SECOND))):
        create(lab, topic)
        produce(lab.bootstrap_servers, topic, [0, 1], batches=2, records=5, acks=Acks.ALL, label=topic)
        for node in killed:
            lab.kill_controller(node)
    third, records = lab.data_directory(THIRD), {topic: read_all(lab, topic) for topic in ("early", "late")}
    shutil.rmtree(lab.data_directory(FIRST))
    running = [collect(lab, "third", THIRD), collect(lab, "running", *lab.brokers)]
    plan = str(lab.directory / "p")
    target = ("--node", str(FIRST), "--directory", str(lab.data_directory(FIRST)), "--kafka", lab.spec.kafka)
    words = ("--source", str(THIRD), "--stale", "--address", f"{HOST}:{lab.port(FIRST)}", "--out", plan)
    capsys.readouterr()
    assert main(["quorum", "plan", *map(str, running), *target, *words]) == 6
    assert "ran when it was collected" in capsys.readouterr().err
    stopped = stop_everything(lab, "stopped", third)
    assert "late" in rescue(lab, [stopped], f"{FIRST},{SECOND}", str(THIRD)).stale_topics
    if static:
        alone_in_its_file(lab)
    lab.start_controller(FIRST)
    start_brokers(lab)
    assert verify(lab, stopped) == 0
    assert read_all(lab, "early") == records["early"]
    assert len(renamed(lab, "late", "-stray")) == 4
    create(lab, "since")
    produce(lab.bootstrap_servers, "since", [0, 1], batches=1, records=5, acks=Acks.ALL, label="since")

    again = stop_everything(lab, "again", third, lab.data_directory(FIRST))
    found = read_collections([*running, stopped, again])
    lost = [one for one in found.copies if one.read_at_ms is not None]
    best = max(lost, key=lambda one: one.position)
    assert best.node in lab.brokers
    collections = [*running, stopped, again]
    assert {"late", "since"} <= set(rescue(lab, collections, f"{SECOND}", best.place).stale_topics)
    lab.start_controller(FIRST)
    restore(lab, *collections)
    assert renamed(lab, "late", "-stray") == []
    start_brokers(lab)
    assert verify(lab, *collections) == 0
    assert {topic: read_all(lab, topic) for topic in records} == records
    assert len(renamed(lab, "since", "-stray")) == 4
    create(lab, "after")


@pytest.mark.longer
def test_records_that_a_stale_copy_would_truncate_are_counted_and_the_best_one_keeps_them(static_lab: Lab) -> None:
    """Row 10: by the copy of a controller that lagged, a broker leads that holds a tenth."""
    lab = static_lab
    create_topic(lab, "orders", [[1, 2], [1, 2]], {})
    produce(lab.bootstrap_servers, "orders", [0, 1], batches=2, records=50, acks=Acks.ALL, label="both")
    lab.wait_partitions("orders", "both are in sync", lambda state: {*state.isr} == {1, 2})
    stop_controllers(lab, THIRD)
    lab.kill(1)
    lab.wait_partitions("orders", "the other one leads", lambda state: state.leader == 2)
    produce(lab.bootstrap_servers, "orders", [0, 1], batches=4, records=250, acks=Acks.ALL, label="alone")
    records = read_all(lab, "orders")
    for node in (FIRST, SECOND):
        lab.lose_disk(node)
    collection = collect(lab, "left", THIRD, *lab.brokers)
    found = read_collections([collection])
    assessment = assess(found.copies, found.disks)
    stale = next(one for one in assessment.copies if one.copy.node == THIRD)
    assert stale.verdict is Verdict.STALE
    assert [(one.topic, one.leader, one.truncated, one.exact) for one in stale.older] == [("orders", 1, 1000, True)] * 2
    assert rescue(lab, [collection], f"{FIRST},{SECOND}").source.node == 2
    alone_in_its_file(lab)
    lab.start_controller(FIRST)
    wait_until_it_leads(lab)
    lab.start(1)
    lab.wait_partitions("orders", "both are in sync", lambda state: {*state.isr} == {1, 2})
    assert read_all(lab, "orders") == records
    assert len(records) == 2 * 1100


@pytest.mark.longer
@pytest.mark.parametrize("static_lab", ["4.3.1"], indirect=True)
def test_an_empty_voter_and_one_that_lags_elect_each_other_and_give_way_to_a_brokers_copy(static_lab: Lab) -> None:
    """Row 11 (KAFKA-14205): their epoch is the newest, and brokers' data contradicts them."""
    lab = static_lab
    for topic, killed in (("early", (THIRD,)), ("late", (FIRST, SECOND))):
        create(lab, topic)
        produce(lab.bootstrap_servers, topic, [0, 1], batches=2, records=5, acks=Acks.ALL, label=topic)
        stop_controllers(lab, *killed)
    records = {topic: read_all(lab, topic) for topic in ("early", "late")}
    before = collect(lab, "before", *lab.brokers)
    shutil.rmtree(lab.data_directory(FIRST))
    lab._format(FIRST, ())
    lab.start_controller(FIRST, THIRD)
    lab.wait_until("one of them leads", lambda: quorum(lab) is not None)
    lab.wait_until("brokers have ended", lambda: not any(map(lab.is_running, lab.brokers)))
    stop_controllers(lab, THIRD)
    collections = [before, stop_everything(lab, "after", *map(lab.data_directory, (FIRST, THIRD)))]
    found = read_collections(collections)
    assessment = assess(found.copies, found.disks)
    assert assessment.matter is not Matter.LOST
    assert (assessment.best.copy.node in {FIRST, THIRD}, assessment.best.verdict) == (True, Verdict.STALE)
    knowing = [one for one in found.copies if {"early", "late"} <= {topic.name for topic in one.image.topics.values()}]
    source = max(knowing, key=lambda one: one.position)
    rescue(lab, collections, f"{SECOND}", source.place)
    alone_in_its_file(lab)
    lab.start_controller(FIRST)
    start_brokers(lab)
    assert verify(lab, *collections) == 0
    assert {topic: read_all(lab, topic) for topic in records} == records


def test_a_controller_that_lagged_is_stale_and_refused(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows 7 to 9: it would set the newest topic aside, or delete it."""
    create(lab, "early")
    lab.kill_controller(THIRD)
    create(lab, "late")
    for node in (FIRST, SECOND):
        lab.kill_controller(node)
    collections = [collect(lab, "third", THIRD), collect(lab, "brokers", *lab.brokers)]
    found = read_collections(collections)
    assessment = assess(found.copies, found.disks)
    lagging = next(one for one in assessment.copies if one.copy.node == THIRD)
    assert lagging.verdict is Verdict.STALE
    assert [one.topic for one in lagging.fates] == ["late"]
    assert lagging.truncating == tuple(lab.brokers)
    good = [one for one in assessment.copies if one.copy.node in lab.brokers]
    assert not any("never knew" in found.text for one in good for found in one.contradictions)
    capsys.readouterr()
    target = ("--node", str(THIRD), "--directory", str(lab.data_directory(THIRD)), "--kafka", lab.spec.kafka)
    words = ["--source", str(THIRD), "--address", f"{HOST}:{lab.port(THIRD)}", "--out", str(lab.directory / "p")]
    assert main(["quorum", "plan", *map(str, collections), *target, *words]) == 6
    assert "lacks records" in capsys.readouterr().err
