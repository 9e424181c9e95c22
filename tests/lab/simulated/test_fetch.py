"""Fetch, ListOffsets and OffsetForLeaderEpoch on the wire. What 4.3.1 answers on the same history is compared in
tests/cluster/test_simulated_data.py; here is what that history does not have."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Named
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.contents import made_up
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.replicas import epochs
from kelr.lab.simulated.server import MachineClock, VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied, World
from kelr.model import ReplicaLog, TopicPartition, select
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import FetchRequest
from kelr.simulation.logs import Acks
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.requests import FAR_OFFSET
from tests.lab.simulated.data import PATIENCE_S, Got, end_of_epoch, fetch, fetch_all, list_offsets
from tests.lab.simulated.stories import ORDERS, cluster
from tests.lab.simulated.test_contents import records_of
from tests.properties import examples

TOPIC = ORDERS.topic
LATEST, EARLIEST = -1, -2
DEBUGGING, FUTURE_LOCAL = -2, -3


def part(world: World) -> None:
    """Logs of 15 (epochs 0 and 1) and 12 records (epoch 0) on brokers 2 and 3; 10 are committed; 1 is dead with 12."""
    running = world.running
    running.produce(ORDERS, 10, Acks.ALL)
    running.sever(2, 1)
    running.sever(2, 3)
    running.produce(ORDERS, 2, Acks.LEADER)
    running.kill(1)
    running.expire(1)
    running.produce(ORDERS, 5, Acks.LEADER)


@pytest.fixture
def parted() -> Iterator[SimulatedServer]:
    """A cluster whose logs parted."""
    with cluster("elr-4.3") as server:
        server.inside(part)
        yield server


def ids(found: Got) -> list[int]:
    """Offsets of the records in an answer."""
    return [record.offset for record in records_of(found.records)]


def test_only_the_future_local_replica_reads_past_the_high_watermark(parted: SimulatedServer) -> None:
    state = parted.inside(lambda world: world.state(ORDERS))
    assert state is not None
    leader, other = (state.leader or 0), ({2, 3} - {state.leader}).pop()
    for broker in (leader, other):
        log = parted.inside(lambda world, broker=broker: world.log(ORDERS, broker))  # type: ignore[misc]
        assert log is not None
        assert log.high_watermark == 10
        assert log.end > 10
        for replica in (-1, DEBUGGING):
            assert ids(fetch(parted.ports[broker], TOPIC, 0, replica=replica)) == list(range(10)), replica
        assert ids(fetch(parted.ports[broker], TOPIC, 0, replica=FUTURE_LOCAL)) == list(range(log.end))
        assert ids(fetch(parted.ports[broker], TOPIC, 10)) == []


def test_epochs_are_searched_on_any_replica(parted: SimulatedServer) -> None:
    """The probes that kelr sends: far beyond the log, with an epoch."""
    state = parted.inside(lambda world: world.state(ORDERS))
    assert state is not None
    leader = state.leader or 0
    log = parted.inside(lambda world: world.log(ORDERS, leader))
    assert log is not None
    port = parted.ports[leader]
    start = log.lineage[0].end_offset
    assert fetch(port, TOPIC, FAR_OFFSET, last_epoch=0)["diverging"] == (0, start)
    assert fetch(port, TOPIC, FAR_OFFSET, last_epoch=1)["diverging"] == (1, log.end)
    assert fetch(port, TOPIC, FAR_OFFSET, last_epoch=2).error == "OFFSET_OUT_OF_RANGE"
    assert fetch(port, TOPIC, start, last_epoch=0)["diverging"] is None
    assert end_of_epoch(port, TOPIC, 0).values == {"leader_epoch": 0, "end_offset": start}


def reads_as_in_memory(server: SimulatedServer) -> int:
    """What kelr's own reading says of every log that it hears is what the world holds; gives their number.

    Of a log that retention has emptied, Fetch tells the newest epoch that its broker has written down, also where it
    wrote it as a new leader, without a record; GetReplicaLogInfo tells that of the last record.
    """
    with LiveSource(ConnectionSettings.read(server.bootstrap_servers, timeout_s=20)) as source:
        states = [state for page in source.pages(select(())) for state in page.partitions]
        read = source.replica_logs(states, lineage=True)
    count = 0
    for address, answers in read.items():
        for answer in answers:
            if isinstance(answer, ReplicaLog):
                log, written = server.inside(
                    lambda world, at=address, one=answer.replica: (world.log(at, one), epochs(world, one, at))  # type: ignore[misc]
                )
                assert log is not None
                emptied = log.end > 0 and not log.records and server.spec.log_info is None
                assert answer.last_epoch == (written[-1].epoch if emptied else log.last_epoch), (address, answer)
                assert (answer.log_start, answer.log_end, answer.lineage, answer.high_watermark) == (
                    log.start,
                    log.end,
                    log.lineage,
                    log.high_watermark,
                ), (address, answer)
                count += 1
    return count


VERBS = st.lists(
    st.tuples(
        st.sampled_from(("produce", "one", "kill", "lose", "start", "expire", "sever", "heal", "delete", "wait")),
        st.integers(1, 3),
        st.integers(1, 130),
    ),
    max_size=14,
)


@examples(25)
@given(verbs=VERBS, native=st.booleans())
def test_after_any_history_kelr_reads_what_the_logs_hold(verbs: list[tuple[str, int, int]], native: bool) -> None:
    with cluster("elr-4.3", (1, 2, 3), (2, 3, 1), **({} if native else {"log_info": None})) as server:

        def story(world: World) -> None:
            running = world.running
            for verb, broker, number in verbs:
                at = TopicPartition(TOPIC, broker % 2)
                match verb:
                    case "produce":
                        running.produce(at, number, Acks.ALL)
                    case "one":
                        running.produce(at, number, Acks.LEADER)
                    case "kill":
                        running.kill(broker)
                    case "lose":
                        running.kill(broker, power_loss=True)
                    case "start":
                        running.start(broker)
                    case "expire":
                        running.expire(broker)
                    case "sever":
                        running.sever(broker, broker % 3 + 1)
                    case "heal":
                        running.heal()
                    case "delete":
                        running.cluster = running.cluster.delete_before(at, number)
                    case _:
                        running.advance(running.now_ms + 50 * number)
            for broker in (1, 2, 3):
                running.start(broker)
            running.advance(running.now_ms + 10_000)

        server.inside(story)
        assert reads_as_in_memory(server) >= 4


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
def test_a_follower_is_asked_by_consumers_since_version_11(parted: SimulatedServer, version: int) -> None:
    state = parted.inside(lambda world: world.state(ORDERS))
    assert state is not None
    follower = ({2, 3} - {state.leader}).pop()
    topic_id = parted.inside(lambda world: world.topic_id(TOPIC))
    found = fetch(parted.ports[follower], TOPIC, 0, version=version, topic_id=topic_id)
    assert found.error == ("NOT_LEADER_OR_FOLLOWER" if version < 11 else "NONE")
    assert (
        fetch(parted.ports[follower], TOPIC, 0, version=version, replica=FUTURE_LOCAL, topic_id=topic_id).error
        == "NONE"
    )


def test_a_stale_broker_is_fenced_by_the_epoch_in_the_request() -> None:
    with cluster("elr-4.3") as server:

        def story(world: World) -> None:
            world.running.produce(ORDERS, 3, Acks.ALL)
            world.running.sever(2, world.controller)
            world.running.kill(1)
            world.running.expire(1)

        server.inside(story)
        assert list_offsets(server.ports[2], TOPIC, LATEST, replica=DEBUGGING)["leader_epoch"] == 0
        assert list_offsets(server.ports[3], TOPIC, LATEST, replica=DEBUGGING)["leader_epoch"] == 1
        for broker, epoch, error in (
            (2, 1, "UNKNOWN_LEADER_EPOCH"),
            (3, 0, "FENCED_LEADER_EPOCH"),
            (3, 2, "UNKNOWN_LEADER_EPOCH"),
            (2, 0, "NONE"),
            (3, 1, "NONE"),
        ):
            port = server.ports[broker]
            assert list_offsets(port, TOPIC, LATEST, replica=DEBUGGING, epoch=epoch).error == error
            assert fetch(port, TOPIC, 0, epoch=epoch).error == error
        found = fetch(
            server.ports[3], TOPIC, 0, epoch=0, version=16, topic_id=server.inside(lambda world: world.topic_id(TOPIC))
        )
        assert found["leader"] == (2, 1), "which does not know it yet"


@pytest.mark.parametrize(
    ("denied", "consumer", "follower", "offsets", "epochs"),
    [
        (Denied("topic", "READ", "orders"), "TOPIC_AUTHORIZATION_FAILED", "NONE", "NONE", "NONE"),
        (Denied("topic", "READ", "payments"), "NONE", "NONE", "NONE", "NONE"),
        (Denied("cluster", "CLUSTER_ACTION"), "NONE", "TOPIC_AUTHORIZATION_FAILED", "NONE", "NONE"),
        (Denied("topic", "DESCRIBE", "orders"), "NONE", "NONE", "TOPIC_AUTHORIZATION_FAILED", "NONE"),
    ],
)
def test_what_may_not_be_read(denied: Denied, consumer: str, follower: str, offsets: str, epochs: str) -> None:
    with cluster("elr-4.3") as server:
        server.inside(lambda world: world.denied.add(denied))
        port = server.ports[1]
        assert fetch(port, TOPIC, 0).error == consumer
        assert fetch(port, TOPIC, 0, replica=FUTURE_LOCAL).error == consumer
        assert fetch(port, TOPIC, 0, replica=2).error == follower
        assert list_offsets(port, TOPIC, LATEST, replica=DEBUGGING).error == offsets
        assert end_of_epoch(port, TOPIC, 0).error == epochs, "CLUSTER_ACTION or DESCRIBE is enough"
        server.inside(
            lambda world: world.denied.update({Denied("cluster", "CLUSTER_ACTION"), Denied("topic", "DESCRIBE")})
        )
        assert end_of_epoch(port, TOPIC, 0).error == "TOPIC_AUTHORIZATION_FAILED"


def test_a_failed_log_directory_is_a_storage_error() -> None:
    with cluster("elr-4.3") as server:
        server.inside(lambda world: world.running.ask(events.DirectoryFailed(3, (ORDERS,))))
        assert fetch(server.ports[3], TOPIC, 0).error == "KAFKA_STORAGE_ERROR"
        assert fetch(server.ports[3], TOPIC, 0, version=5).error == "NOT_LEADER_OR_FOLLOWER", "which old clients know"
        assert list_offsets(server.ports[3], TOPIC, LATEST, replica=DEBUGGING).error == "KAFKA_STORAGE_ERROR"


def test_answers_are_limited_and_hold_at_least_one_batch() -> None:
    with cluster("elr-4.3", (1, 2, 3), (1, 2, 3)) as server:
        for partition in (0, 1):
            server.inside(lambda world, at=partition: world.running.produce(TopicPartition(TOPIC, at), 250, Acks.ALL))  # type: ignore[misc]
        port = server.ports[1]
        whole = fetch(port, TOPIC, 0)
        assert ids(whole) == list(range(250))
        first = fetch(port, TOPIC, 0, most_bytes=1)
        assert ids(first) == list(range(100)), "one batch, whole, however small the limit"
        assert (
            fetch(port, TOPIC, 150, most_bytes=1).records
            == whole.records[len(first.records) :][: len(fetch(port, TOPIC, 100, most_bytes=1).records)]
        )
        cut = fetch(port, TOPIC, 0, most_bytes=len(first.records) + 50)
        assert cut.records == whole.records[: len(first.records) + 50], "Kafka cuts anywhere behind the first batch"
        both = fetch_all(port, [(TOPIC, 0, 0), (TOPIC, 1, 0)], most_bytes_in_all=1)
        assert [len(one.records) for one in both] == [len(first.records), 0]
        second = fetch(port, TOPIC, 0, partition=1, most_bytes=1)
        limit = len(whole.records) + len(second.records)
        both = fetch_all(port, [(TOPIC, 0, 0), (TOPIC, 1, 0)], most_bytes_in_all=limit)
        assert [one.records for one in both] == [whole.records, second.records]
        both = fetch_all(port, [(TOPIC, 0, 0), (TOPIC, 1, 0)], most_bytes_in_all=limit - 1)
        assert [len(one.records) for one in both] == [len(whole.records), 0], "no torn batch where one came before"


def test_a_fetch_waits_for_records_and_no_longer() -> None:
    with cluster("elr-4.3", clock=MachineClock()) as server:
        port = server.ports[1]
        began = time.monotonic()
        assert ids(fetch(port, TOPIC, 0, max_wait_ms=150, min_bytes=1)) == []
        assert 0.14 < time.monotonic() - began < 5
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(fetch, port, TOPIC, 0, max_wait_ms=15_000, min_bytes=1)
            began = time.monotonic()
            server.inside(lambda world: world.running.produce(ORDERS, 3, Acks.ALL))
            assert ids(waiting.result()) == [0, 1, 2]
            assert time.monotonic() - began < 10
        began = time.monotonic()
        assert fetch(port, TOPIC, 0, max_wait_ms=15_000, min_bytes=1, last_epoch=0)["high_watermark"] == 3
        assert fetch(port, TOPIC, 99, max_wait_ms=15_000, min_bytes=1).error == "OFFSET_OUT_OF_RANGE"
        assert fetch(port, TOPIC, FAR_OFFSET, max_wait_ms=15_000, min_bytes=1, last_epoch=0)["diverging"] == (0, 3)
        assert time.monotonic() - began < 10, "what is wrong, or parts, is told at once"


def test_a_waiting_fetch_hears_that_the_leader_changed() -> None:
    with cluster("elr-4.3") as server:
        there = threading.Event()

        def ask() -> Got:
            there.set()
            return fetch(server.ports[1], TOPIC, 0, version=9, max_wait_ms=600_000, min_bytes=1)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask)
            there.wait()
            server.inside(lambda world: world.running.expire(1))
            assert waiting.result(PATIENCE_S).error == "NOT_LEADER_OR_FOLLOWER"


def request(session_id: int, session_epoch: int) -> Any:
    return FetchRequest(
        version=12,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        isolation_level=0,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[],
        forgotten_topics_data=[],
        rack_id="",
    )


def test_no_session_is_begun_and_none_is_known() -> None:
    with cluster("elr-4.3") as server:
        for session, epoch in ((0, 0), (0, -1), (5, 0), (5, -1)):
            answer = wire.ask(server.ports[1], request(session, epoch))
            assert (answer.error_code, answer.session_id) == (0, 0), (session, epoch)
        answer = wire.ask(server.ports[1], request(5, 3))
        assert (error_name(answer.error_code), answer.session_id) == ("FETCH_SESSION_ID_NOT_FOUND", 0)


def test_deleted_records_are_out_of_range_and_the_log_starts_behind_them() -> None:
    with cluster("elr-4.3") as server:
        server.inside(lambda world: world.running.produce(ORDERS, 250, Acks.ALL))
        server.inside(lambda world: setattr(world.running, "cluster", world.running.cluster.delete_before(ORDERS, 130)))
        port = server.ports[1]
        assert fetch(port, TOPIC, 129).error == "OFFSET_OUT_OF_RANGE"
        assert fetch(port, TOPIC, 129, last_epoch=0).error == "OFFSET_OUT_OF_RANGE"
        assert fetch(port, TOPIC, 130)["log_start_offset"] == 130
        assert ids(fetch(port, TOPIC, 130))[-1] == 249
        assert list_offsets(port, TOPIC, EARLIEST).values == {"offset": 130, "timestamp": -1, "leader_epoch": 0}


def test_a_new_leader_does_not_tell_the_end_before_it_knows_how_far_consumers_have_read() -> None:
    with cluster("elr-4.3") as server:

        def story(world: World) -> None:
            running = world.running
            running.produce(ORDERS, 10, Acks.ALL)
            running.sever(1, 3)
            running.produce(ORDERS, 2, Acks.LEADER)
            running.sever(2, 3)
            running.kill(1)
            running.expire(1)

        server.inside(story)
        assert server.inside(lambda world: world.log(ORDERS, 2)).high_watermark == 10  # type: ignore[union-attr]
        port = server.ports[2]
        assert list_offsets(port, TOPIC, LATEST).error == "OFFSET_NOT_AVAILABLE"
        assert list_offsets(port, TOPIC, LATEST, version=4).error == "LEADER_NOT_AVAILABLE"
        assert list_offsets(port, TOPIC, EARLIEST)["offset"] == 0
        assert list_offsets(port, TOPIC, made_up(9).timestamp_ms)["offset"] == 9
        assert list_offsets(port, TOPIC, made_up(10).timestamp_ms).error == "OFFSET_NOT_AVAILABLE"
        assert list_offsets(port, TOPIC, LATEST, replica=DEBUGGING)["offset"] == 12


def test_unknown_topics_partitions_and_ids() -> None:
    with cluster("elr-4.3") as server:
        port = server.ports[1]
        assert fetch(port, "nobody", 0).error == "UNKNOWN_TOPIC_OR_PARTITION"
        assert fetch(port, TOPIC, 0, partition=1).error == "UNKNOWN_TOPIC_OR_PARTITION"
        assert fetch(port, TOPIC, 0, version=13, topic_id=UUID(int=5)).error == "UNKNOWN_TOPIC_ID"
        assert list_offsets(port, "nobody", LATEST).error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_topics_that_are_alike_are_read_without_a_state_of_their_own() -> None:
    with SimulatedServer(SimulatedSpec(topics=1000, partitions=10, rules="elr-4.3"), clock=VirtualClock()) as server:
        found = fetch(server.ports[1], "topic-000999", 0, partition=9)
        assert (found.error, found["high_watermark"]) == ("NONE", 0)
        assert server.inside(lambda world: len(world.running.cluster.controller.partitions)) < 100


def test_a_consumer_of_confluent_reads_to_the_high_watermark() -> None:
    with cluster("elr-4.3", clock=MachineClock()) as server:
        server.inside(part)
        got = list(consumed(server, 4))
    assert [offset for offset, _ in got] == list(range(4, 10))
    assert got[0][1] == b"key-4"


def consumed(server: SimulatedServer, offset: int) -> Iterator[tuple[int, bytes | None]]:
    """(offset, key) of all records that a consumer gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            "error_cb": lambda _error: None,
        }
    )
    try:
        consumer.assign([Named(TOPIC, 0, offset)])
        while True:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return
            yield message.offset(), message.key()
    finally:
        consumer.close()


def test_a_waiting_fetch_hears_that_the_topic_is_gone() -> None:
    with cluster("elr-4.3") as server:
        there = threading.Event()

        def ask() -> Got:
            there.set()
            return fetch(server.ports[1], TOPIC, 0, max_wait_ms=600_000, min_bytes=1)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask)
            there.wait()
            server.inside(lambda world: (world.running.ask(events.TopicDeleted(TOPIC)), world.forget_topic(TOPIC)))
            assert waiting.result(PATIENCE_S).error == "UNKNOWN_TOPIC_OR_PARTITION"
