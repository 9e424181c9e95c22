"""The live source against real Kafka: what it says of logs is what the disks hold, and trouble costs little time."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kelr.errors import ConnectError
from kelr.lab import Lab, LabSpec, run_incident
from kelr.lab.disk import read_batches
from kelr.lab.produce import Acks, produce
from kelr.lab.story import create_topic
from kelr.model import (
    BrokerStatus,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
    select,
)
from kelr.model.cluster import ConfigSource
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.client import Client
from kelr.sources.live.page_bytes import columns, members
from kelr.sources.live.requests import alter_reassignments, api_versions, describe_topic_partitions
from kelr.sources.live.transport import Failure, NodeAddress
from kelr.sources.snapshot_file import SnapshotFileSource, read_snapshot, save_snapshot

LAYOUTS = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
TIMEOUT_S, IN_NO_TIME_S = 120.0, 20.0
"""For what is not to wait until a timeout is over: the timeout, and what a busy machine may take without one."""


def live(lab: Lab, *, timeout_s: float = 20, servers: str | None = None) -> LiveSource:
    return LiveSource(ConnectionSettings.read(servers or lab.bootstrap_servers, timeout_s=timeout_s))


def partitions_of(source: LiveSource, *targets: str) -> tuple[PartitionState, ...]:
    return tuple(partition for page in source.pages(select(targets)) for partition in page.partitions)


def on_disk(lab: Lab, broker: int, address: TopicPartition) -> tuple[EpochEnd, ...]:
    """The epochs of the record batches in the broker's files, and where each ends."""
    directory = lab.data_directory(broker) / f"{address.topic}-{address.partition}"
    ends: dict[int, int] = {}
    for segment in sorted(directory.glob("*.log")):
        for batch in read_batches(segment):
            ends[batch.leader_epoch] = batch.next_offset
    return tuple(EpochEnd(epoch, end) for epoch, end in sorted(ends.items()))


def assert_true(lab: Lab, answers: dict[TopicPartition, tuple[LogAnswer, ...]]) -> int:
    """Every log that was heard is what its disk holds, cut at the log start; gives how many logs that were."""
    checked = 0
    for address, logs in answers.items():
        for log in logs:
            if not isinstance(log, ReplicaLog):
                continue
            disk = on_disk(lab, log.replica, address)
            kept = tuple(end for end in disk if end.end_offset > (log.log_start or 0))
            assert log.log_end == (disk[-1].end_offset if disk else 0), (address, log, disk)
            assert log.lineage in {None, kept}, (address, log, disk)
            assert log.last_epoch == (disk[-1].epoch if disk else None), (address, log, disk)
            assert log.high_watermark is not None
            assert 0 <= (log.log_start or 0) <= log.high_watermark <= log.log_end
            checked += 1
    return checked


class Mover:
    """Moves leaders about as quickly as a controller allows: reorder the replicas, elect the preferred one."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
        self._transport = Client(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=10))
        self._transport.resolve(self._transport.bootstrap_nodes().items(), timeout_s=2)

    def lead(self, topic: str, leaders: Sequence[int]) -> None:
        """Make these brokers lead partitions 0, 1, ..."""
        wanted = {
            number: [leader, *(broker for broker in self._lab.brokers if broker != leader)]
            for number, leader in enumerate(leaders)
        }
        orders = {TopicPartition(topic, number): replicas for number, replicas in wanted.items()}
        answer = self._transport.exchange("bootstrap-0", alter_reassignments(orders, timeout_s=5))
        assert not isinstance(answer, Failure)
        assert answer.error_code == 0
        self._wait(topic, lambda state: list(state.replicas) == wanted[state.partition])
        addresses = [WirePartition(topic, number) for number in wanted]
        outcome = self._admin.elect_leaders(ElectionType.PREFERRED, addresses).result(10)
        assert all(error is None or error.name() == "ELECTION_NOT_NEEDED" for error in outcome.values())
        self._wait(topic, lambda state: state.leader == leaders[state.partition])

    def _wait(self, topic: str, holds) -> None:  # type: ignore[no-untyped-def]
        self._lab.wait_partitions(topic, "the leader has moved", holds)

    def close(self) -> None:
        self._transport.close()


@pytest.fixture
def mover(healthy_43: Lab) -> Iterator[Mover]:
    mover = Mover(healthy_43)
    yield mover
    mover.close()


def test_after_many_leader_changes_every_lineage_is_the_disks(healthy_43: Lab, mover: Mover) -> None:
    lab, topic, rng = healthy_43, "moved", random.Random(966)
    create_topic(lab, topic, LAYOUTS, {})
    for _ in range(12):
        mover.lead(topic, [rng.choice(lab.brokers) for _ in LAYOUTS])
        for number in range(len(LAYOUTS)):
            if rng.random() < 0.6:  # and else a leader that writes nothing
                produce(lab.bootstrap_servers, topic, [number], batches=1, records=2, acks=Acks.ALL, label="r")
    with live(lab) as source:
        states = partitions_of(source, topic)
        assert max(state.leader_epoch for state in states) >= 6
        lineages = source.replica_logs(states, lineage=True)
        assert assert_true(lab, dict(lineages)) == 9
        assert max(len(log.lineage or ()) for logs in lineages.values() for log in logs) >= 4  # type: ignore[union-attr]
        assert assert_true(lab, dict(source.replica_logs(states))) == 9


def test_deleted_records_take_their_epochs_along(healthy_43: Lab, mover: Mover) -> None:
    lab, topic = healthy_43, "deleted"
    create_topic(lab, topic, LAYOUTS, {})
    for leader in (1, 2, 3, 1):
        mover.lead(topic, [leader] * 3)
        produce(lab.bootstrap_servers, topic, [0, 1, 2], batches=1, records=5, acks=Acks.ALL, label="r")
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    cuts = {0: 7, 1: 10, 2: 20}
    wanted = [WirePartition(topic, number, offset) for number, offset in cuts.items()]
    for deleted in admin.delete_records(wanted).values():
        deleted.result(10)
    with live(lab) as source:
        states = partitions_of(source, topic)

        def cut_everywhere() -> bool:
            logs = source.replica_logs(states)
            return all(
                isinstance(log, ReplicaLog) and log.log_start == cuts[address.partition]
                for address, answers in logs.items()
                for log in answers
            )

        lab.wait_until("every replica has cut its log", cut_everywhere)
        logs = source.replica_logs(states, lineage=True)
    for answers in logs.values():
        assert len({replace(log, replica=0, read_at_ms=None) for log in answers}) == 1  # type: ignore[type-var]
    middle, edge, empty = (answers[0] for answers in logs.values())
    assert isinstance(middle, ReplicaLog)
    assert isinstance(edge, ReplicaLog)
    assert isinstance(empty, ReplicaLog)
    assert [end.end_offset for end in middle.lineage or ()] == [10, 15, 20]
    assert [end.end_offset for end in edge.lineage or ()] == [15, 20]
    assert (empty.lineage, empty.log_end, empty.is_empty) == ((), 20, True)
    assert empty.last_epoch == empty.current_leader_epoch, "an emptied log still knows who wrote last"


def test_in_an_incident_live_replicas_answer_and_dead_ones_are_named(
    lab_43: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.sources.live.logs.FENCED_PATIENCE_S", TIMEOUT_S)
    report = run_incident(lab_43, "needs-unclean-recovery", partitions=3)
    with live(lab_43, timeout_s=TIMEOUT_S) as source:
        states = partitions_of(source, report.topic)
        assert {state.leader for state in states} == {None}
        started = time.monotonic()
        logs = source.replica_logs(states, lineage=True)
        took_s = time.monotonic() - started
        statuses = {broker: source.cluster().status(broker) for broker in report.absent}
    assert statuses == dict.fromkeys(report.absent, BrokerStatus.FENCED)
    assert assert_true(lab_43, dict(logs)) == 3 * len(report.live)
    dead = [log for answers in logs.values() for log in answers if log.replica in report.absent]
    assert len(dead) == 3 * len(report.absent)
    assert {(log.reason, log.detail) for log in dead if isinstance(log, LogUnavailable)} == {
        (LogUnavailableReason.UNREACHABLE, "connection refused")
    }
    assert took_s < IN_NO_TIME_S


@contextmanager
def hanging(lab: Lab, broker: int) -> Iterator[None]:
    """The broker's process stands still, as in an endless garbage collection: its port accepts and nothing answers."""
    lab.pause(broker)
    try:
        yield
    finally:
        lab.go_on(broker)


def test_a_hanging_broker_costs_its_own_rows_and_little_time(healthy_43: Lab) -> None:
    lab, topic = healthy_43, "hanging"
    create_topic(lab, topic, LAYOUTS, {})
    with hanging(lab, 3):
        alone = f"127.0.0.1:{lab.port(3)}"
        with live(lab, timeout_s=2, servers=alone) as source, pytest.raises(ConnectError, match="did not answer"):
            source.cluster()
        lab.wait_until("broker 3 is fenced", lambda: {n.node: n.fenced for n in lab.status().nodes}[3] is True)
        with live(lab, timeout_s=TIMEOUT_S, servers=f"{alone},127.0.0.1:{lab.port(1)}") as source:
            started = time.monotonic()
            states = partitions_of(source, topic)
            logs = source.replica_logs(states)
            took_s = time.monotonic() - started
    lab.wait_unfenced(3)
    assert took_s < IN_NO_TIME_S
    for answers in logs.values():
        by_replica = {log.replica: log for log in answers}
        assert isinstance(by_replica[3], LogUnavailable)
        assert by_replica[3].reason is LogUnavailableReason.TIMED_OUT
        assert isinstance(by_replica[1], ReplicaLog)
        assert isinstance(by_replica[2], ReplicaLog)


def test_when_the_answering_broker_dies_another_one_goes_on(healthy_43: Lab) -> None:
    lab, topic = healthy_43, "passed-on"
    create_topic(lab, topic, LAYOUTS * 4, {})
    first = f"127.0.0.1:{lab.port(2)}"
    with live(lab, servers=first) as source:
        pages = source.pages(select([topic]), page_size=5)
        seen = list(next(pages).partitions)
        lab.kill(2)
        seen += [partition for page in pages for partition in page.partitions]
    assert [partition.partition for partition in seen] == list(range(12))


def test_the_cluster_as_it_was_made(healthy_43: Lab) -> None:
    with live(healthy_43) as source:
        cluster = source.cluster()
    assert cluster.cluster_id == healthy_43.status().cluster_id
    assert cluster.controller == 100
    assert cluster.brokers_source == "DescribeCluster v2"
    assert cluster.partitions_source == "DescribeTopicPartitions v0"
    assert cluster.features.elr_enabled is True
    assert [(b.id, b.status, b.host, b.port, b.rack) for b in cluster.brokers] == [
        (broker, BrokerStatus.LIVE, "127.0.0.1", healthy_43.port(broker), healthy_43.racks[broker])
        for broker in healthy_43.brokers
    ]


def test_configs_and_where_they_come_from(healthy_43: Lab) -> None:
    create_topic(healthy_43, "set-here", LAYOUTS, {"min.insync.replicas": "1", "cleanup.policy": "compact,delete"})
    create_topic(healthy_43, "set-nowhere", LAYOUTS, {})
    admin = AdminClient({"bootstrap.servers": healthy_43.bootstrap_servers, "log_level": 0})
    change = ConfigEntry("unclean.leader.election.enable", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "set-here", incremental_configs=[change])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(10)
    with live(healthy_43) as source:

        def arrived() -> bool:
            return source.topic_configs(["set-here"])["set-here"].unclean_leader_election is True

        healthy_43.wait_until("the config has reached the broker", arrived)
        configs = source.topic_configs(["set-here", "set-nowhere", "not-there"])
    here, nowhere, absent = configs["set-here"], configs["set-nowhere"], configs["not-there"]
    assert (here.min_insync_replicas, here.min_insync_replicas_source) == (1, ConfigSource.TOPIC)
    assert (here.unclean_leader_election, here.unclean_leader_election_source) == (True, ConfigSource.TOPIC)
    assert (nowhere.min_insync_replicas, nowhere.min_insync_replicas_source) == (2, ConfigSource.CLUSTER_DEFAULT)
    assert (nowhere.unclean_leader_election, nowhere.unclean_leader_election_source) == (False, ConfigSource.STATIC)
    assert (here.cleanup_policy, nowhere.cleanup_policy) == (("compact", "delete"), ("delete",))
    assert absent.error == "UNKNOWN_TOPIC_OR_PARTITION"


@contextmanager
def transactional_producer(lab: Lab) -> Iterator[Producer]:
    """A producer whose first transaction is open; the topic of transactions is gone again afterwards, so that no later
    incident leaves it without a leader."""
    settings = {"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "transactional.id": "kelr-test"}
    producer = Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    try:
        yield producer
    finally:
        admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
        for deleted in admin.delete_topics(["__transaction_state"]).values():
            deleted.result(10)


def test_an_open_transaction_holds_the_last_stable_offset_back_at_every_replica(healthy_43: Lab) -> None:
    lab, topic = healthy_43, "in-a-transaction"
    create_topic(lab, topic, LAYOUTS[:1], {})
    produce(lab.bootstrap_servers, topic, [0], batches=1, records=3, acks=Acks.ALL, label="r")
    with live(lab) as source, transactional_producer(lab) as producer:
        (state,) = partitions_of(source, topic)

        def stand_at(high_watermark: int, last_stable_offset: int) -> None:
            """Followers learn of the high watermark with their next fetch."""
            expected = [(high_watermark, last_stable_offset)] * 3

            def arrived() -> bool:
                logs = source.replica_logs([state])[state.address]
                return [(log.high_watermark, log.last_stable_offset) for log in map(_log, logs)] == expected

            lab.wait_until(f"every replica stands at {expected[0]}", arrived)

        stand_at(3, 3)
        for value in (b"one", b"two"):
            producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
        stand_at(5, 3)
        producer.commit_transaction(30)
        stand_at(6, 6)  # the marker is a record too


def _log(answer: LogAnswer) -> ReplicaLog:
    assert isinstance(answer, ReplicaLog)
    return answer


@pytest.mark.longer
def test_kafka_4_0_tells_the_same_things(lab_40: Lab) -> None:
    lab_40.restore()
    create_topic(lab_40, "old", LAYOUTS, {})
    produce(lab_40.bootstrap_servers, "old", [0, 1, 2], batches=1, records=3, acks=Acks.ALL, label="r")
    with live(lab_40) as source:
        cluster = source.cluster()
        states = partitions_of(source, "old")
        logs = source.replica_logs(states, lineage=True)
    assert cluster.brokers_source == "DescribeCluster v2"
    assert cluster.partitions_source == "DescribeTopicPartitions v0"
    assert cluster.features.elr_enabled is True
    assert {state.elr for state in states} == {()}
    assert assert_true(lab_40, dict(logs)) == 9


def test_where_elr_is_off_it_is_unknown_and_not_empty(tmp_path: Path) -> None:
    with Lab.up(LabSpec(brokers=1, min_isr=1, racks=1, elr=False), tmp_path / "lab", owner_pid=os.getpid()) as lab:
        create_topic(lab, "plain", [(1,)], {})
        with live(lab) as source:
            assert source.cluster().features.elr_enabled is False
            (state,) = partitions_of(source, "plain")
            transport = Client(ConnectionSettings.read(lab.bootstrap_servers))
            transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2)
            answer = transport.exchange("bootstrap-0", describe_topic_partitions(["plain"], None, 1))
            transport.close()
    assert (state.elr, state.last_known_elr) == (None, None)
    _, _, (key,) = columns(answer.data, answer.topics[0].pieces)
    wire = members(key)
    assert (wire.elr, wire.last_known_elr) == ((), ()), "the broker says empty, and means off"


def test_a_live_cluster_and_its_snapshot_file_say_the_same(healthy_43: Lab, tmp_path: Path) -> None:
    topic, path = "saved", tmp_path / "saved.kelr"
    create_topic(healthy_43, topic, LAYOUTS, {})
    produce(healthy_43.bootstrap_servers, topic, [0, 1, 2], batches=1, records=3, acks=Acks.ALL, label="r")
    with live(healthy_43) as source:
        saved = save_snapshot(source, select([topic]), path, now_ms=1, with_logs=lambda _state: True, lineage=True)
        again = take_snapshot(source, select([topic]), now_ms=1, with_logs=lambda _state: True, lineage=True)
    assert (saved.partitions, saved.topic_errors) == (3, ())
    read = read_snapshot(path)
    assert (read.cluster, read.partitions, read.configs) == (again.cluster, again.partitions, again.configs)
    assert read.first_partition_replicas == again.first_partition_replicas
    assert {address: [log.replica for log in logs] for address, logs in read.logs.items()} == {
        address: [log.replica for log in logs] for address, logs in again.logs.items()
    }
    assert assert_true(healthy_43, dict(read.logs)) == 9
    with SnapshotFileSource(path) as file:
        assert tuple(p for page in file.pages(select([topic])) for p in page.partitions) == again.partitions


def test_a_controllers_port_is_not_a_brokers(healthy_43: Lab) -> None:
    from kelr.errors import UnsupportedError  # noqa: PLC0415

    with (
        live(healthy_43, servers=f"127.0.0.1:{healthy_43.port(100)}") as source,
        pytest.raises(UnsupportedError, match="brokers cannot be listed") as caught,
    ):
        source.cluster()
    assert "controller" in str(caught.value.next_step)


def test_kafka_4_4_says_that_it_is_not_the_broker_that_is_meant(lab_newest: Lab) -> None:
    """KIP-1242: a wrong cluster, and a wrong broker, before anything else is asked."""
    with LiveSource(ConnectionSettings.read(lab_newest.bootstrap_servers)) as source:
        cluster = source.cluster()
        assert cluster.cluster_id is not None
        client, _ = source.connection()
        at = {one.id: NodeAddress(one.host or "", one.port or 0) for one in cluster.brokers}
        for cluster_id, nodes, told in (
            (cluster.cluster_id, at, True),
            (cluster.cluster_id, {1: at[2], 2: at[1]}, False),
            ("AAAAAAAAAAAAAAAAAAAAAA", {1: at[1], 2: at[2]}, False),
        ):
            client.add_nodes({}, cluster_id=None)  # ends the connections
            client.add_nodes(nodes, cluster_id=cluster_id)
            answers = [client.exchange(node, api_versions()) for node in (1, 2)]
            if told:
                assert not any(isinstance(answer, Failure) for answer in answers), answers
                continue
            assert [isinstance(answer, Failure) and answer.detail for answer in answers] == [
                f"another broker is there: it is not broker {node} of cluster {cluster_id} (REBOOTSTRAP_REQUIRED)"
                for node in (1, 2)
            ]
