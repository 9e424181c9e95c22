"""Makes a metadata log as a busy cluster writes it in weeks: 30 brokers, 20,000 partitions of three replicas.

    python benchmarks/metadata_log_made.py FILE --size-mb 100

Brokers register, topics are made, and from then on: a NoOpRecord every 500 ms in a batch of its own; ISRs that shrink,
now and then under min ISR so that the ELR fills, and grow again, in batches of 1 to 200 records as AlterPartition makes
them; and one broker after the other restarts (controlled shutdown, fenced, registered, back in the ISRs, its leaders
given back). About a quarter of the bytes are NoOpRecords, nearly all others PartitionChangeRecords of version 2, with
the tagged fields that Kafka 4.3 writes for each. The same seed makes the same bytes.
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from kelr.protocol import metadata_records as metadata
from kelr.sources.records.crc32c import crc32c

BROKERS = tuple(range(1, 31))
TOPICS, PARTITIONS = 400, 50
MOST_RECORDS = 200
START_MS = 1_750_000_000_000
STEP_MS = 500
RESTART_EVERY = 4_000
"""Steps between two restarts."""

_PLACE = struct.Struct(">qiib")
_CRC = struct.Struct(">I")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_CHANGE = struct.Struct(">3si16s")
_NO_OP = bytes((1, 20, 0, 0))


@dataclass(slots=True)
class Partition:
    number: int
    topic: bytes
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    elr: tuple[int, ...] = ()


@dataclass
class Log:
    """Writes batches as a KRaft leader does; `written` bytes so far."""

    out: BinaryIO
    offset: int = 0
    now_ms: int = START_MS
    written: int = 0
    records: int = 0
    batches: int = 0
    _bodies: list[list[bytes]] = field(default_factory=list)

    def append(self, values: Sequence[bytes]) -> None:
        """One batch for every 200 values."""
        for first in range(0, len(values), MOST_RECORDS):
            self._batch(values[first : first + MOST_RECORDS])

    def _batch(self, values: Sequence[bytes]) -> None:
        body = b"".join(
            [_record(delta, value) for delta, value in enumerate(values)]
            if len(values) > 1
            else [_record(0, values[0])]
        )
        count = len(values)
        covered = _AFTER_CRC.pack(0, count - 1, self.now_ms, self.now_ms, -1, -1, -1, count) + body
        self.out.write(_PLACE.pack(self.offset, len(covered) + 9, 1, 2) + _CRC.pack(crc32c(covered)) + covered)
        self.offset += count
        self.records += count
        self.batches += 1
        self.written += len(covered) + 21


def _record(delta: int, value: bytes) -> bytes:
    inner = b"\0\0" + _zigzag(delta) + b"\x01" + _zigzag(len(value)) + value + b"\0"
    return _zigzag(len(inner)) + inner


def _zigzag(number: int) -> bytes:
    number <<= 1
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80, number >> 7))


def _numbers(tag: int, values: Sequence[int]) -> bytes:
    size = len(values)
    return struct.pack(f">BBB{size}i", tag, 1 + 4 * size, size + 1, *values)


def _changed(one: Partition, *, isr: tuple[int, ...] | None, leader: int | None, elr: tuple[int, ...] | None) -> bytes:
    """The record of a change, and the change itself."""
    tags = []
    if isr is not None:
        tags.append(_numbers(0, isr))
        one.isr = isr
    if leader is not None:
        tags.append(b"\x01\x04" + struct.pack(">i", leader))
        one.leader = leader
    if elr is not None and elr != one.elr:
        tags.append(_numbers(6, elr))
        one.elr = elr
    return _CHANGE.pack(b"\x01\x05\x02", one.number, one.topic) + bytes((len(tags),)) + b"".join(tags)


class Story:
    """What happens to the cluster, a step every 500 ms."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log = log
        self.random = random.Random(seed)
        self.partitions: list[Partition] = []
        self.of: dict[int, list[Partition]] = {broker: [] for broker in BROKERS}
        self.out_of_sync: list[Partition] = []
        self.epochs: dict[int, int] = {}

    def begin(self) -> None:
        level = metadata.encode("FeatureLevelRecord", 0, {"name": "metadata.version", "feature_level": 30})
        elr = {"name": "eligible.leader.replicas.version", "feature_level": 1}
        self.log.append([level, metadata.encode("FeatureLevelRecord", 0, elr)])
        for broker in BROKERS:
            self._register(broker)
        for topic in range(TOPICS):
            self._topic(f"topic-{topic:03}", self.random.randbytes(16))

    def run(self, size_bytes: int) -> None:
        step, restart = 0, self._restarts()
        while self.log.written < size_bytes:
            step += 1
            self.log.now_ms += STEP_MS
            self.log.append([_NO_OP])
            if self.random.random() < 0.25:
                self._shrink() if self.random.random() < 0.5 else self._grow()
            if step % RESTART_EVERY == 0 or self.restarting:
                next(restart)

    restarting = False

    def _register(self, broker: int) -> None:
        self.epochs[broker] = self.log.offset
        endpoint = {"name": "PLAINTEXT", "host": f"broker-{broker}.example.net", "port": 9092, "security_protocol": 0}
        feature = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 30}
        fields = {
            "broker_id": broker,
            "is_migrating_zk_broker": False,
            "incarnation_id": _uuid(self.random.randbytes(16)),
            "broker_epoch": self.log.offset,
            "end_points": [endpoint],
            "features": [feature],
            "rack": f"rack-{broker % 3}",
            "fenced": False,
            "in_controlled_shutdown": False,
            "log_dirs": [_uuid(bytes(15) + bytes((100 + broker,)))],
        }
        self.log.append([metadata.encode("RegisterBrokerRecord", 3, fields)])

    def _topic(self, name: str, topic: bytes) -> None:
        values = [metadata.encode("TopicRecord", 0, {"name": name, "topic_id": _uuid(topic)})]
        for number in range(PARTITIONS):
            replicas = tuple(self.random.sample(BROKERS, 3))
            one = Partition(number, topic, replicas, replicas, replicas[0])
            self.partitions.append(one)
            for broker in replicas:
                self.of[broker].append(one)
            values.append(_made(one))
        self.log.append(values)

    # AlterPartition of leaders whose followers fall back and catch up.

    def _some(self, most: int) -> int:
        return min(most, int(MOST_RECORDS ** self.random.random()))

    def _shrink(self) -> None:
        """A broker is slow: what it follows shrinks by it; under min ISR (2) it goes into the ELR."""
        broker = self.random.choice(BROKERS)
        values = []
        for one in self.random.sample(self.of[broker], self._some(len(self.of[broker]))):
            if one.leader == broker or broker not in one.isr or len(one.isr) < 2:
                continue
            isr = tuple(member for member in one.isr if member != broker)
            values.append(_changed(one, isr=isr, leader=None, elr=(*one.elr, broker) if len(isr) < 2 else None))
            self.out_of_sync.append(one)
        if values:
            self.log.append(values)

    def _grow(self) -> None:
        values, left = [], self._some(len(self.out_of_sync))
        for one in self.out_of_sync[:left]:
            if len(one.isr) < 3 and one.leader >= 0:
                missing = next(broker for broker in one.replicas if broker not in one.isr)
                isr = tuple(sorted((*one.isr, missing)))
                values.append(_changed(one, isr=isr, leader=None, elr=()))
        del self.out_of_sync[:left]
        if values:
            self.log.append(values)

    # Restarts.

    def _restarts(self) -> Iterator[None]:
        while True:
            for broker in BROKERS:
                self.restarting = True
                yield from self._restart(broker)
                self.restarting = False
                yield

    def _restart(self, broker: int) -> Iterator[None]:
        epoch = {"broker_id": broker, "broker_epoch": self.epochs[broker]}
        stops = metadata.encode("BrokerRegistrationChangeRecord", 3, {**epoch, "in_controlled_shutdown": 1})
        away = []
        for one in self.of[broker]:
            others = tuple(member for member in one.isr if member != broker)
            if broker in one.isr and others:
                leader = others[0] if one.leader == broker else None
                away.append(_changed(one, isr=others, leader=leader, elr=None if len(others) > 1 else (broker,)))
                self.out_of_sync.append(one)
        self.log.append([stops, *away])
        yield
        self.log.append([metadata.encode("BrokerRegistrationChangeRecord", 3, {**epoch, "fenced": 1})])
        for _ in range(40):
            yield
        self._register(broker)
        for _ in range(4):
            yield
            while len(self.out_of_sync) > MOST_RECORDS:
                self._grow()
        back = [
            one for one in self.of[broker] if one.replicas[0] == broker and broker in one.isr and one.leader != broker
        ]
        if back:
            self.log.append([_changed(one, isr=None, leader=broker, elr=None) for one in back])


def _made(one: Partition) -> bytes:
    fields = {
        "partition_id": one.number,
        "topic_id": _uuid(one.topic),
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": one.leader,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [_uuid(bytes(15) + bytes((100 + broker,))) for broker in one.replicas],
    }
    return metadata.encode("PartitionRecord", 2, fields)


def _uuid(raw: bytes) -> object:
    from uuid import UUID  # noqa: PLC0415 - the codec wants its ids so

    return UUID(bytes=raw)


def make(path: Path, size_bytes: int, *, seed: int = 1) -> Log:
    """Write a log of about this size, and say what is in it."""
    with path.open("wb", buffering=1 << 20) as out:
        log = Log(out)
        story = Story(log, seed)
        story.begin()
        story.run(size_bytes)
    return log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--size-mb", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    log = make(given.file, given.size_mb * 1_000_000, seed=given.seed)
    hours = (log.now_ms - START_MS) / 3_600_000
    print(f"{log.written:,} bytes, {log.batches:,} batches, {log.records:,} records, {hours:.0f} hours")


if __name__ == "__main__":
    main()
