"""Produce and InitProducerId on the wire. What 4.3.1 answers is compared in tests/cluster/test_simulated_data.py."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.contents import REMEMBERED, Contents, ProducerStates, Sent
from kelr.lab.simulated.handlers.produce import Refused, Sending, append
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied, World
from kelr.model import TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import InitProducerIdRequest
from kelr.simulation.logs import Acks, Record, SimulatedLog, appended
from kelr.sources.records.batches import BatchHeader, Compression, TimestampType, read_header
from kelr.sources.records.crc32c import crc32c
from tests.lab.simulated.data import PATIENCE_S, Got, batch, fetch, produce, produce_request
from tests.lab.simulated.stories import ORDERS, cluster, eventually
from tests.lab.simulated.test_contents import compressed, records_of
from tests.lab.simulated.test_fetch import consumed

TOPIC = ORDERS.topic
CLUSTER_ID = "bWFkZS11cC1jbHVzdGVyIQ"
HIGHEST_SEQUENCE = 2**31 - 1


@pytest.fixture(name="server")
def _server() -> Iterator[SimulatedServer]:
    with cluster("elr-4.3") as server:
        yield server


def numbered(producer: int, epoch: int, sequence: int, count: int = 2) -> bytes:
    """A batch of an idempotent producer."""
    return patched(batch(600, count), ">qhi", 43, producer, epoch, sequence)


def patched(data: bytes, layout: str, at: int, *values: int) -> bytes:
    """The batch with other values in its header, and the checksum that goes with them."""
    made = bytearray(data)
    struct.pack_into(layout, made, at, *values)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return bytes(made)


def ends(server: SimulatedServer) -> dict[int, int]:
    def look(world: World) -> dict[int, int]:
        replication = world.replication(ORDERS)
        assert replication is not None
        return {broker: log.end for broker, log in sorted(replication.logs.items())}

    return server.inside(look)


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_confluents_producer_sends_is_read_by_its_consumer(compression: str, idempotent: bool) -> None:
    with cluster("elr-4.3", clock=MachineClock()) as server:
        told: list[tuple[Any, int]] = []
        producer = Producer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "compression.type": compression,
                "enable.idempotence": idempotent,
                "batch.num.messages": 40,
                "linger.ms": 5,
                "log_level": 0,
                "error_cb": lambda _error: None,
            }
        )
        for number in range(100):
            producer.produce(
                TOPIC,
                key=f"key {number}".encode(),
                value=b"value " * 30,
                partition=0,
                on_delivery=lambda error, message: told.append((error, message.offset())),
            )
        assert producer.flush(PATIENCE_S) == 0
        assert told == [(None, number) for number in range(100)]
        assert list(consumed(server, 0)) == [(number, f"key {number}".encode()) for number in range(100)]
        assert ends(server) == {1: 100, 2: 100, 3: 100}
        ledger = server.inside(lambda world: world.replication(ORDERS)).ledger  # type: ignore[union-attr]
        assert len(ledger.committed) == 100


def test_a_batch_is_answered_with_its_offset_when_all_have_it(server: SimulatedServer) -> None:
    assert produce(server.ports[1], TOPIC, batch(0, 5))["base_offset"] == 0
    assert produce(server.ports[1], TOPIC, batch(5, 3), acks=1)["base_offset"] == 5
    assert [record.key for record in records_of(fetch(server.ports[3], TOPIC, 0).records)] == [
        f"k{number}".encode() for number in range(8)
    ]


def test_acks_all_waits_for_the_high_watermark(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(1, 3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(produce, server.ports[1], TOPIC, batch(0, 5), timeout_ms=600_000)
        eventually(server, lambda world: world.log(ORDERS, 2).end == 5)  # type: ignore[union-attr]
        assert not waiting.done()
        server.inside(lambda world: world.running.heal())
        found = waiting.result(PATIENCE_S)
    assert (found.error, found["base_offset"]) == ("NONE", 0)


def test_acks_all_is_told_when_time_is_over_and_the_records_stay(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(1, 3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(produce, server.ports[1], TOPIC, batch(0, 5), timeout_ms=1000)
        eventually(server, lambda world: world.log(ORDERS, 2).end == 5)  # type: ignore[union-attr]
        server.advance(1001)
        assert waiting.result(PATIENCE_S).error == "REQUEST_TIMED_OUT"
    assert ends(server) == {1: 5, 2: 5, 3: 0}
    assert produce(server.ports[1], TOPIC, batch(5, 1), acks=1)["base_offset"] == 5, "acks=1 waits for nobody"


def test_acks_all_is_told_when_the_leader_leads_no_more(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(1, 3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(produce, server.ports[1], TOPIC, batch(0, 5), timeout_ms=600_000)
        eventually(server, lambda world: world.log(ORDERS, 2).end == 5)  # type: ignore[union-attr]
        server.inside(lambda world: world.running.expire(1))
        assert waiting.result(PATIENCE_S).error == "NOT_LEADER_OR_FOLLOWER"


def test_too_few_replicas_in_sync_take_acks_1_alone(server: SimulatedServer) -> None:
    for broker in (2, 3):
        server.inside(lambda world, broker=broker: world.running.kill(broker))  # type: ignore[misc]
        server.inside(lambda world, broker=broker: world.running.expire(broker))  # type: ignore[misc]
    assert produce(server.ports[1], TOPIC, batch(0, 5)).error == "NOT_ENOUGH_REPLICAS"
    assert produce(server.ports[1], TOPIC, batch(0, 5), acks=1)["base_offset"] == 0
    assert ends(server)[1] == 5
    assert [record.offset for record in records_of(fetch(server.ports[1], TOPIC, 0).records)] == [], "not committed"


def test_another_broker_names_the_leader(server: SimulatedServer) -> None:
    found = produce(server.ports[2], TOPIC, batch(0, 1))
    assert found.error == "NOT_LEADER_OR_FOLLOWER"
    assert found["leader"] == (1, 0)
    assert found["endpoints"] == {1}
    older = produce(server.ports[2], TOPIC, batch(0, 1), version=9)
    assert (older.error, older["leader"], older["endpoints"]) == ("NOT_LEADER_OR_FOLLOWER", None, set())


def test_a_deposed_leader_that_has_not_heard_of_it_takes_nothing(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(1, world.controller))
    server.inside(lambda world: world.running.expire(1))
    assert produce(server.ports[1], TOPIC, batch(0, 1), acks=1).error == "NOT_LEADER_OR_FOLLOWER"
    assert ends(server) == {1: 0, 2: 0, 3: 0}


def test_who_waits_for_no_answer_gets_none_and_loses_the_connection_for_what_is_refused(
    server: SimulatedServer,
) -> None:
    with pytest.raises(TimeoutError):
        wire.ask(server.ports[1], produce_request(TOPIC, batch(0, 2), acks=0), timeout_s=0.2)
    eventually(server, lambda world: world.log(ORDERS, 1).end == 2)  # type: ignore[union-attr]
    assert ends(server) == {1: 2, 2: 2, 3: 2}
    with pytest.raises(ConnectionError):
        wire.ask(server.ports[2], produce_request(TOPIC, batch(0, 2), acks=0), timeout_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda data: data[:-1] + b"!", "CORRUPT_MESSAGE"),
        (lambda data: data + data, "INVALID_RECORD"),
        (lambda data: data[:-5], "INVALID_RECORD"),
        (lambda _data: None, "INVALID_RECORD"),
        (lambda data: patched(data, ">h", 21, 0x20), "INVALID_RECORD"),
        (lambda data: patched(data, ">i", 57, 9), "INVALID_RECORD"),
        (lambda data: patched(data, ">h", 21, 0x02), "UNKNOWN_SERVER_ERROR"),
        (lambda data: patched(data, ">h", 21, 0x10), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (lambda _data: batch(0, 40_000), "MESSAGE_TOO_LARGE"),
    ],
    ids=["bit", "two", "torn", "null", "control", "count", "not snappy", "transactional", "large"],
)
def test_what_is_no_sound_batch_is_refused_and_nothing_written(
    server: SimulatedServer, spoil: Callable[[bytes], bytes | None], error: str
) -> None:
    assert produce(server.ports[1], TOPIC, spoil(batch(0, 3))).error == error
    assert ends(server) == {1: 0, 2: 0, 3: 0}


def test_zstandard_needs_version_7(server: SimulatedServer) -> None:
    marked = patched(batch(0, 3), ">h", 21, 0x04)
    assert produce(server.ports[1], TOPIC, marked, version=6).error == "UNSUPPORTED_COMPRESSION_TYPE"


def test_who_may_not_write(server: SimulatedServer) -> None:
    server.inside(lambda world: world.denied.add(Denied("topic", "WRITE", TOPIC)))
    assert produce(server.ports[1], TOPIC, batch(0, 1)).error == "TOPIC_AUTHORIZATION_FAILED"
    assert produce(server.ports[1], "nobody", batch(0, 1)).error == "UNKNOWN_TOPIC_OR_PARTITION"
    assert produce(server.ports[1], TOPIC, batch(0, 1), acks=2).error == "INVALID_REQUIRED_ACKS"


def test_topics_go_by_id_since_version_13(server: SimulatedServer) -> None:
    request = produce_request(TOPIC, batch(0, 1), version=13)
    request.topic_data[0].topic_id = server.inside(lambda world: world.topic_id(TOPIC))
    answer = wire.ask(server.ports[1], request)
    assert answer.responses[0].topic_id == request.topic_data[0].topic_id
    assert answer.responses[0].partition_responses[0].error_code == 0
    request.topic_data[0].topic_id = server.inside(lambda world: world.topic_id("payments"))
    assert (
        error_name(wire.ask(server.ports[1], request).responses[0].partition_responses[0].error_code)
        == "UNKNOWN_TOPIC_ID"
    )


def test_a_batch_that_comes_twice_is_written_once(server: SimulatedServer) -> None:
    port = server.ports[1]
    assert produce(port, TOPIC, numbered(7, 0, 0))["base_offset"] == 0
    assert produce(port, TOPIC, numbered(7, 0, 2))["base_offset"] == 2
    assert produce(port, TOPIC, numbered(7, 0, 0))["base_offset"] == 0
    assert produce(port, TOPIC, numbered(7, 0, 6)).error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert ends(server)[1] == 4
    assert produce(port, TOPIC, numbered(7, 1, 0))["base_offset"] == 4
    assert produce(port, TOPIC, numbered(7, 0, 4)).error == "INVALID_PRODUCER_EPOCH"
    assert produce(port, TOPIC, numbered(8, 0, 50))["base_offset"] == 6, "of a producer that is not known any number"


def test_what_an_election_cut_off_was_never_sent(server: SimulatedServer) -> None:
    """The new leader's log decides: what it lost is written again, and what it holds is not."""
    port = server.ports[1]
    produce(port, TOPIC, numbered(7, 0, 0))
    server.inside(lambda world: (world.running.sever(1, 2), world.running.sever(1, 3)))
    assert produce(port, TOPIC, numbered(7, 0, 2), acks=1)["base_offset"] == 2
    server.inside(lambda world: (world.running.kill(1), world.running.expire(1)))
    leader = server.inside(lambda world: world.state(ORDERS)).leader or 0  # type: ignore[union-attr]
    assert leader != 1
    again = produce(server.ports[leader], TOPIC, numbered(7, 0, 2), acks=1)
    assert (again.error, again["base_offset"]) == ("NONE", 2)
    assert ends(server)[leader] == 4
    assert produce(server.ports[leader], TOPIC, numbered(7, 0, 0), acks=1)["base_offset"] == 0
    assert ends(server)[leader] == 4


def test_a_duplicate_waits_for_the_high_watermark_too(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(1, 3))
    assert produce(server.ports[1], TOPIC, numbered(7, 0, 0), acks=1)["base_offset"] == 0
    assert produce(server.ports[1], TOPIC, numbered(7, 0, 0), timeout_ms=0).error == "REQUEST_TIMED_OUT"
    server.inside(lambda world: world.running.heal())
    assert produce(server.ports[1], TOPIC, numbered(7, 0, 0))["base_offset"] == 0


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=30),
    start=st.sampled_from((0, 3, HIGHEST_SEQUENCE - 7)),
    data=st.data(),
)
def test_the_last_five_batches_are_known_again_and_only_the_next_is_in_order(
    counts: list[int], start: int, data: st.DataObject
) -> None:
    states, log, sent = ProducerStates(), SimulatedLog(), list[tuple[BatchHeader, int]]()
    sequence, first_id = start, 0
    for count in counts:
        header = read_header(numbered(7, 0, sequence, count))
        assert header is not None
        assert states.judged(ORDERS, log, header) == "NONE"
        states.appended(ORDERS, header, first_id=first_id, base_offset=log.end)
        sent.append((header, log.end))
        log = appended(log, tuple(Record(0, first_id + at, Acks.ALL) for at in range(count)))
        sequence, first_id = (sequence + count) % (HIGHEST_SEQUENCE + 1), first_id + count
    for place, (header, offset) in enumerate(reversed(sent)):
        judged = states.judged(ORDERS, log, header)
        if place < REMEMBERED:
            assert isinstance(judged, Sent)
            assert judged.base_offset == offset
        elif (header.base_sequence, header.count) not in {
            (old.base_sequence, old.count) for old, _ in sent[-REMEMBERED:]
        }:
            assert judged == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    wrong = data.draw(st.integers(1, 50))
    ahead = read_header(numbered(7, 0, (sequence + wrong) % (HIGHEST_SEQUENCE + 1), 6))
    assert ahead is not None
    assert states.judged(ORDERS, log, ahead) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert states.judged(TopicPartition(TOPIC, 1), SimulatedLog(), ahead) == "NONE", "each partition for itself"


def test_a_topic_may_have_its_leader_stamp_batches(server: SimulatedServer) -> None:
    server.inside(lambda world: world.topic_configs.__setitem__(TOPIC, {"message.timestamp.type": "LogAppendTime"}))
    found = produce(server.ports[1], TOPIC, batch(0, 3))
    assert found["log_append_time_ms"] == server.clock.now_ms()
    data = fetch(server.ports[1], TOPIC, 0).records
    header = read_header(data)
    assert header is not None
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp_ms for record in records_of(data)} == {server.clock.now_ms()}


def test_there_is_room_for_so_much_and_it_is_said(server: SimulatedServer) -> None:
    server.inside(lambda world: setattr(world, "contents", Contents(most_bytes=2000)))
    answers = list[Got]()
    while not answers or answers[-1].error == "NONE":
        answers.append(produce(server.ports[1], TOPIC, batch(0, 10)))
    assert answers[-1].error == "POLICY_VIOLATION"
    assert "no room" in answers[-1]["words"]
    assert len(answers) > 2
    assert ends(server)[1] == 10 * (len(answers) - 1)


def init(server: SimulatedServer, transactional_id: str | None = None, version: int = 4) -> Any:
    request = InitProducerIdRequest(
        version=version,
        transactional_id=transactional_id,
        transaction_timeout_ms=1000,
        producer_id=-1,
        producer_epoch=-1,
    )
    return wire.ask(server.ports[2], request)


@pytest.mark.parametrize("version", [0, 3, 6])
def test_every_producer_gets_an_id_of_its_own(server: SimulatedServer, version: int) -> None:
    ids = [init(server, version=version) for _ in range(3)]
    assert len({found.producer_id for found in ids}) == 3
    assert {(found.error_code, found.producer_epoch) for found in ids} == {(0, 0)}


def test_an_id_takes_a_right_to_write_somewhere(server: SimulatedServer) -> None:
    server.inside(lambda world: world.denied.add(Denied("cluster", "IDEMPOTENT_WRITE")))
    assert init(server).error_code == 0
    server.inside(lambda world: world.denied.add(Denied("topic", "WRITE")))
    assert error_name(init(server).error_code) == "CLUSTER_AUTHORIZATION_FAILED"


def test_transactions_are_refused(server: SimulatedServer) -> None:
    assert error_name(init(server, "mine").error_code) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    found = produce(server.ports[1], TOPIC, batch(0, 1), transactional_id="mine")
    assert found.error == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def test_a_partition_of_topics_that_are_alike_gets_a_state_of_its_own() -> None:
    with SimulatedServer(SimulatedSpec(topics=3, partitions=2, rules="elr-4.3")) as server:
        at = TopicPartition("topic-000001", 1)
        leader = server.inside(lambda world: world.state(at)).leader or 0  # type: ignore[union-attr]
        assert produce(server.ports[leader], at.topic, batch(0, 4), partition=1)["base_offset"] == 0
        ends = {
            address: server.inside(lambda world, at=address: world.log(at, leader)).end  # type: ignore[misc,union-attr]
            for address in (at, TopicPartition("topic-000000", 1))
            if server.inside(lambda world, at=address: world.log(at, leader)) is not None  # type: ignore[misc]
        }
        assert ends[at] == 4
        assert sum(ends.values()) == 4


@given(data=st.data(), sealed=st.booleans())
def test_no_bytes_break_the_leader_and_what_it_takes_can_be_read_again(data: st.DataObject, *, sealed: bool) -> None:
    world = World(SimulatedSpec(rules="elr-4.3"), {1: 1, 2: 2, 3: 3}, cluster_id=CLUSTER_ID)
    world.running.ask(events.TopicCreated(TOPIC, ((1, 2, 3),)))
    compression = data.draw(st.sampled_from(Compression))
    sent = bytearray(compressed(batch(0, 6), compression))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(8, len(sent) - 1), st.integers(0, 255)), max_size=4)):
        sent[at] = byte
    del sent[len(sent) - data.draw(st.integers(0, 3)) :]
    if sealed and len(sent) > 61:
        struct.pack_into(">i", sent, 8, len(sent) - 12)
        struct.pack_into(">bI", sent, 16, 2, crc32c(bytes(sent[21:])))
    found = append(world, 1, ORDERS, Sending(bytes(sent), Acks.ALL, 11))
    log = world.log(ORDERS, 2)
    assert log is not None
    if isinstance(found, Refused):
        assert log.end == 0
        return
    assert log.end == found.next_offset == 6
    (whole,) = world.contents.batches(log, 0)
    (head,) = world.contents.batches(log, 0, 4)
    assert len(records_of(whole.data)) == 6
    assert records_of(head.data) == records_of(whole.data)[:4]
