"""The simulated cluster beside Apache Kafka 4.3.1: the same history on both, and the same answer to every request.

Each request about data goes to a real broker and to its simulated twin; what comes back is compared field by field, the
records byte by byte. Only what Kafka leaves to chance or to time is left out, and named.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab import Lab, wire
from kelr.lab.simulated import disks
from kelr.lab.simulated.contents import NewRecord, encoded
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.story import create_topic
from kelr.model import LogAnswer, LogUnavailable, PartitionState, TopicPartition, select
from kelr.simulation.logs import Acks
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.decode import topic_id_uuid
from kelr.sources.live.requests import FAR_OFFSET
from kelr.sources.records.crc32c import crc32c
from kelr.sources.records.stream import RawBatch
from tests.lab.simulated.data import Got, batch, end_of_epoch, fetch, list_offsets, produce

TIMESTAMPS = (-1, -2, -3, -4, -5, -6, -7, 0, 1_700_000_000_100, 1_700_000_000_105, 1_800_000_000_000)
REPLICA_IDS = (-1, -2, -3, 1, 2, 3, 7, -4)


class Twins:
    """A real cluster and a simulated one, with one topic of one partition on brokers 1, 2 and 3."""

    def __init__(self, lab: Lab, simulated: SimulatedServer) -> None:
        self.lab = lab
        self.simulated = simulated
        self.topic = f"twins-{time.time_ns()}"
        self.address = TopicPartition(self.topic, 0)
        # The records say that they are years old: Kafka deletes such 30 s after a broker's start, then every 5 minutes.
        create_topic(lab, self.topic, [[1, 2, 3]], {"min.insync.replicas": "2", "retention.ms": "-1"})
        simulated.inside(lambda world: world.running.ask(events.TopicCreated(self.topic, ((1, 2, 3),))))
        lab.wait_partitions(self.topic, "all are in sync", lambda state: len(state.isr) == 3)
        self.informed(1, 2, 3)
        self.ids = [topic_id_uuid(self.state(servers).topic_id or "") for servers in self.servers]
        self.differences: list[str] = []
        self.asked = 0

    @property
    def servers(self) -> tuple[str, str]:
        return self.lab.bootstrap_servers, self.simulated.bootstrap_servers

    def source(self, servers: str) -> LiveSource:
        return LiveSource(ConnectionSettings.read(servers, timeout_s=20))

    def state(self, servers: str) -> PartitionState:
        with self.source(servers) as source:
            (state,) = (state for page in source.pages(select((self.topic,))) for state in page.partitions)
        return state

    def ask(self, what: str, broker: int, question: Callable[[int, UUID], Got]) -> None:
        """Ask both; `question` gets the port, and the topic's id there."""
        self.asked += 1
        ports = self.lab.port(broker), self.simulated.ports[broker]
        real, simulated = (_answer(question, port, topic_id) for port, topic_id in zip(ports, self.ids, strict=True))
        if real != simulated:
            self.differences.append(f"{what} at broker {broker}: {_short(real)}, simulated {_short(simulated)}")

    def produce(self, what: str, leader: int, data: bytes, *, acks: int = -1, version: int = 11) -> None:
        self.ask(what, leader, lambda port, _id: produce(port, self.topic, data, acks=acks, version=version))

    def committed(self, *brokers: int) -> None:
        """Wait until the real brokers have saved the high watermark: then a kill leaves the same behind on both."""
        log = self.simulated.inside(lambda world: world.log(self.address, brokers[0]))
        assert log is not None

        def saved() -> bool:
            marks = {self.lab.saved_high_watermarks(broker, self.topic).get(0) for broker in brokers}
            return marks == {log.high_watermark}

        self.lab.wait_until("the high watermark is on the disks", saved)

    def kill(self, broker: int) -> None:
        self.lab.kill(broker)
        left = [one for one in self.lab.brokers if self.lab.is_running(one)]
        if left:
            port = self.lab.port(left[0])
            self.lab.wait_until("the broker is fenced", lambda: wire.fenced_brokers(port).get(broker, False))
        self.simulated.inside(lambda world: (world.running.kill(broker), world.running.expire(broker)))

    def informed(self, *brokers: int) -> None:
        """Wait until real brokers know the partition's leader epoch: the controller knows it earlier."""
        state = self.simulated.inside(lambda world: world.state(self.address))
        assert state is not None

        def known() -> bool:
            told = [list_offsets(self.lab.port(broker), self.topic, -1, replica=-2) for broker in brokers]
            return all(got.values.get("leader_epoch") == state.leader_epoch for got in told)

        self.lab.wait_until(f"brokers {brokers} know leader epoch {state.leader_epoch}", known)

    def start(self, *brokers: int) -> None:
        for broker in brokers:
            self.lab.start(broker, wait=False)
        self.lab.wait_unfenced(*brokers)
        self.simulated.inside(lambda world: [world.running.start(broker) for broker in brokers])

        def unfenced() -> bool:
            known = self.simulated.inside(lambda world: {one: world.brokers[one].fenced for one in brokers})
            return not any(known.values())

        self.lab.wait_until("the simulated brokers are unfenced", unfenced)

    def assert_alike(self) -> None:
        assert self.differences == [], f"{len(self.differences)} of {self.asked}"


def _answer(question: Callable[[int, UUID], Got], port: int, topic_id: UUID) -> Got:
    try:
        return question(port, topic_id)
    except ConnectionError as error:
        return Got(type(error).__name__, {})


def _short(got: Got) -> str:
    return f"{got.error} {dict(got.values)} and {len(got.records)} bytes"


@pytest.fixture
def twins(healthy_43: Lab) -> Iterator[Twins]:
    with SimulatedServer(SimulatedSpec(rules="elr-4.3", log_info=None), clock=MachineClock()) as simulated:
        yield Twins(healthy_43, simulated)


def patched(data: bytes, layout: str, at: int, *values: int) -> bytes:
    made = bytearray(data)
    struct.pack_into(layout, made, at, *values)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return bytes(made)


def numbered(producer: int, epoch: int, sequence: int, count: int = 2) -> bytes:
    return patched(batch(600, count), ">qhi", 43, producer, epoch, sequence)


def produce_what_is_refused(twins: Twins) -> None:
    good = batch(500, 3)
    spoilt = {
        "a bit": good[:-1] + b"!",
        "two batches": good + good,
        "no batch": b"",
        "a piece": good[:30],
        "a torn batch": good[:-5],
        "a base offset": struct.pack(">q", 5) + good[8:],
        "magic 1": good[:16] + b"\x01" + good[17:],
        "control records": patched(good, ">h", 21, 0x20),
        "a wrong count": patched(good, ">i", 57, 2),
        "a wrong last offset": patched(good, ">i", 23, 7),
        **{f"noise for codec {codec}": patched(good, ">h", 21, codec) for codec in (1, 2, 3, 4, 5)},
        "noise": patched(good[:-10] + b"\xff" * 10, ">h", 21, 0),
        "a transaction's": patched(numbered(5, 0, 0), ">h", 21, 0x10),
        "no sequence": numbered(5, 0, -1),
        "large": encoded([NewRecord(1_700_000_000_000, b"k", b"x" * 1_100_000)]),
    }
    for what, data in spoilt.items():
        twins.produce(what, 1, data)
    for version in (3, 9, 11):
        twins.produce(f"to a follower, v{version}", 2, good, version=version)
    twins.produce("zstd before its version", 1, patched(good, ">h", 21, 4), version=6)
    twins.produce("acks of 2", 1, good, acks=2)
    twins.ask("an unknown topic", 1, lambda port, _id: produce(port, "nobody", good))
    twins.ask("an unknown partition", 1, lambda port, _id: produce(port, twins.topic, good, partition=9))


def produce_in_and_out_of_order(twins: Twins) -> None:
    """Of an idempotent producer: first numbers that are not 0, duplicates, gaps, new epochs, and the highest number."""
    order = [(0, 5), (0, 7), (0, 5), (0, 20), (0, 9), (1, 3), (1, 0), (0, 11), *((1, at) for at in range(2, 12, 2))]
    for epoch, sequence in (*order, (1, 2), (1, 0)):
        twins.produce(f"epoch {epoch}, sequence {sequence}", 1, numbered(987_000, epoch, sequence))
    twins.produce("a part of a batch again", 1, numbered(987_000, 1, 10, 1))
    for sequence in (2**31 - 2, 0):
        twins.produce(f"sequence {sequence}", 1, numbered(987_001, 0, sequence))


def ask_everything(twins: Twins, what: str, brokers: Sequence[int], *, offsets: Sequence[int], epochs: int) -> None:
    """Requests of every kind about the logs of these brokers."""
    topic = twins.topic
    for broker in brokers:
        ask_for_offsets(twins, what, broker, epochs=epochs)
        for epoch in range(-1, epochs + 2):
            for offset in (FAR_OFFSET, *offsets):
                for replica in (-1, -3):
                    twins.ask(
                        f"{what}: probe at {offset} of epoch {epoch} as {replica}",
                        broker,
                        lambda port, _id, at=offset, of=epoch, as_=replica: fetch(  # type: ignore[misc]
                            port, topic, at, last_epoch=of, replica=as_
                        ),
                    )
            twins.ask(
                f"{what}: fenced by epoch {epoch}",
                broker,
                lambda port, topic_id, of=epoch: fetch(port, topic, 0, epoch=of, version=16, topic_id=topic_id),  # type: ignore[misc]
            )
        for replica in REPLICA_IDS:
            for version, most_bytes in ((4, 700), (10, 1 << 20), (11, 1), (12, 700), (13, 1 << 20), (17, 700)):
                twins.ask(
                    f"{what}: records as {replica}, v{version}, at most {most_bytes} bytes",
                    broker,
                    lambda port, topic_id, as_=replica, by=version, most=most_bytes: fetch(  # type: ignore[misc]
                        port, topic, 7, version=by, replica=as_, most_bytes=most, topic_id=topic_id
                    ),
                )
        twins.ask(f"{what}: committed", broker, lambda port, _id: fetch(port, topic, 0, isolation=1))
        twins.ask(f"{what}: an unknown topic", broker, lambda port, _id: fetch(port, "nobody", 0))
        twins.ask(f"{what}: an unknown partition", broker, lambda port, _id: fetch(port, topic, 0, partition=5))
        twins.ask(
            f"{what}: no such id", broker, lambda port, _id: fetch(port, topic, 0, version=13, topic_id=UUID(int=9))
        )


def ask_for_offsets(twins: Twins, what: str, broker: int, *, epochs: int) -> None:
    topic = twins.topic
    for timestamp in TIMESTAMPS:
        for replica in (-1, -2, 1):
            for version in (1, 6, 11):
                twins.ask(
                    f"{what}: ListOffsets {timestamp} as {replica}, v{version}",
                    broker,
                    lambda port, _id, at=timestamp, as_=replica, by=version: list_offsets(  # type: ignore[misc]
                        port, topic, at, replica=as_, version=by
                    ),
                )
    for epoch in range(-1, epochs + 2):
        twins.ask(
            f"{what}: ListOffsets fenced by epoch {epoch}",
            broker,
            lambda port, _id, of=epoch: list_offsets(port, topic, -1, replica=-2, epoch=of),  # type: ignore[misc]
        )
        twins.ask(f"{what}: end of epoch {epoch}", broker, lambda port, _id, of=epoch: end_of_epoch(port, topic, of))  # type: ignore[misc]
        twins.ask(
            f"{what}: end of epoch 0, fenced by {epoch}",
            broker,
            lambda port, _id, of=epoch: end_of_epoch(port, topic, 0, current=of),  # type: ignore[misc]
        )
    twins.ask(f"{what}: ListOffsets of nothing", broker, lambda port, _id: list_offsets(port, "nobody", -1))


def plain(answer: LogAnswer) -> LogAnswer:
    """Without the time at which it was read, and without a port."""
    if isinstance(answer, LogUnavailable):
        return replace(answer, read_at_ms=None, detail="")
    return replace(answer, read_at_ms=None)


def test_the_same_history_gives_the_same_answers(twins: Twins) -> None:
    """kafka-facts' incident: brokers 3, 2 and 1 die in turn, the last ones leave records that the others lack."""
    ask_everything(twins, "empty", (1, 2), offsets=(0, 1), epochs=0)
    for first in range(0, 15, 5):
        twins.produce("a batch", 1, batch(first, 5))
    produce_what_is_refused(twins)
    produce_in_and_out_of_order(twins)
    twins.committed(1, 2, 3)
    ask_everything(twins, "healthy", (1, 3), offsets=(0, 5, 7, 30, 10**6), epochs=1)
    twins.kill(3)
    twins.produce("without broker 3", 1, batch(700, 5))
    twins.committed(1, 2)
    twins.kill(1)
    twins.informed(2)
    twins.produce("too few replicas", 2, batch(800, 5))
    twins.produce("too few replicas, garbled", 2, batch(800, 5)[:-1] + b"!")
    twins.produce("on broker 2 alone", 2, batch(800, 5), acks=1)
    ask_everything(twins, "broker 2 alone", (2,), offsets=(0, 7, 45), epochs=2)
    twins.kill(2)
    twins.start(1, 3)
    twins.informed(1, 3)
    ask_everything(twins, "leaderless", (1, 3), offsets=(0, 7, 40, 45), epochs=3)
    twins.assert_alike()
    assert twins.asked > 1500
    read_by_kelr_alike(twins)


def read_by_kelr_alike(twins: Twins) -> None:
    """What log-info and rescue dump read, the lineage and the records that an election would cut off included."""
    seen = []
    for servers in twins.servers:
        with twins.source(servers) as source:
            (state,) = (state for page in source.pages(select((twins.topic,))) for state in page.partitions)
            assert (state.leader, state.isr, state.elr, state.last_known_elr) == (None, (), (2,), (2,))
            (answers,) = source.replica_logs([state], lineage=True).values()
            tails = [
                [piece.data for piece in source.tail(state, broker, start=0, end=None) if isinstance(piece, RawBatch)]
                for broker in (1, 3)
            ]
        seen.append((tuple(plain(answer) for answer in answers), tails, state.leader_epoch))
    assert seen[0] == seen[1]
    assert all(seen[0][1])


def test_apaches_own_tools_read_the_log_directories(lab_43: Lab, tmp_path: Path) -> None:
    """kafka-dump-log checks batches, checksums and both indexes."""
    with SimulatedServer(SimulatedSpec(rules="elr-4.3")) as simulated:
        at = TopicPartition("orders", 0)
        simulated.world.topic_configs["orders"] = {"segment.bytes": "30000"}
        simulated.inside(lambda world: world.running.ask(events.TopicCreated("orders", ((1, 2, 3),))))
        produce(simulated.ports[1], "orders", batch(0, 7))
        simulated.inside(lambda world: world.running.produce(at, 3000, Acks.ALL))
        simulated.inside(lambda world: (world.running.kill(1), world.running.expire(1)))
        produce(simulated.ports[2], "orders", batch(9, 4))
        simulated.inside(lambda world: disks.write(world, 3, tmp_path))
    files = sorted(
        path for path in (tmp_path / "orders-0").iterdir() if path.suffix in {".log", ".index", ".timeindex"}
    )
    assert len(files) >= 9
    done = lab_43.stock_tool(
        "kafka-dump-log.sh", "--deep-iteration", "--verify-index-only", "--files", ",".join(map(str, files))
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    for complaint in ("Mismatches", "not found", "corrupt", "isvalid: false", "Found"):
        assert complaint not in said, said
    assert said.count("isvalid: true") > 30
    assert "baseOffset: 3007 lastOffset: 3010 count: 4" in said
    assert "partitionLeaderEpoch: 1" in said
