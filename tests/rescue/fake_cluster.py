"""A cluster for replays: partitions with a log in memory, and a producer that can be killed at any moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.model import Broker, BrokerStatus, Cluster, EpochEnd, PartitionState, ReplicaLog, Selection, TopicConfig
from kelr.model import TopicPartition as Address
from kelr.sources.base import Page
from kelr.sources.records.records import Record, read_records
from kelr.sources.records.stream import Piece, RawBatch
from tests.rescue.batches import batch_bytes, partition, raw
from tests.rescue.files import CLUSTER_ID


class KilledError(BaseException):
    """This process is gone; nothing catches it."""


@dataclass
class FakeCluster:
    """Partitions led by broker 2 in leader epoch 5; also the source that a replay asks."""

    logs: dict[Address, list[RawBatch]] = field(default_factory=dict)
    states: dict[Address, PartitionState] = field(default_factory=dict)
    configs: dict[str, TopicConfig] = field(default_factory=dict)
    cluster_id: str = CLUSTER_ID
    log_start: int = 0
    uncommitted: int = 0
    """Offsets at the end that the followers do not have, until the next look."""
    fenced: frozenset[int] = frozenset()
    reads: Counter[Address] = field(default_factory=Counter)
    """How many batches were read of each log."""

    def add(self, state: PartitionState, *log: RawBatch, config: TopicConfig | None = None) -> None:
        self.states[state.address] = state
        self.logs[state.address] = list(log)
        self.configs[state.topic] = config or TopicConfig(cleanup_policy=("delete",))

    def cluster(self) -> Cluster:
        brokers = tuple(
            Broker(number, BrokerStatus.FENCED if number in self.fenced else BrokerStatus.LIVE) for number in (1, 2, 3)
        )
        return Cluster(self.cluster_id, brokers, brokers_source="DescribeCluster v2")

    def forget(self) -> None:
        """What changed is seen at once."""

    def pages(self, selection: Selection) -> Iterator[Page]:
        found = [state for at, state in sorted(self.states.items()) if selection.matches(at.topic, at.partition)]
        yield Page(tuple(found))

    def topic_configs(self, topics: Sequence[str]) -> Mapping[str, TopicConfig]:
        return {topic: self.configs[topic] for topic in topics}

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False
    ) -> Mapping[Address, tuple[ReplicaLog, ...]]:
        del lineage
        return {state.address: (self.leader_log(state.address),) for state in partitions}

    def leader_log(self, address: Address) -> ReplicaLog:
        ends: dict[int, int] = {}
        for one in self.logs[address]:
            assert one.header.partition_leader_epoch is not None
            ends[one.header.partition_leader_epoch] = one.header.next_offset
        end = max(ends.values(), default=self.log_start)
        lineage = tuple(EpochEnd(epoch, last) for epoch, last in sorted(ends.items()))
        late, self.uncommitted = self.uncommitted, 0
        epoch = self.states[address].leader_epoch
        return ReplicaLog(2, end, max(ends, default=None), epoch, end - late, self.log_start, lineage)

    def tail(self, state: PartitionState, replica: int, *, start: int, end: int | None = None) -> Iterator[Piece]:
        assert replica == state.leader
        for one in list(self.logs[state.address]):
            if one.header.next_offset > start and (end is None or one.header.base_offset < end):
                self.reads[state.address] += 1
                yield one

    def append(self, address: Address, records: Sequence[Record]) -> int:
        """Write a batch as the leader; the offset of its first record."""
        log = self.logs[address]
        first = log[-1].header.next_offset if log else self.log_start
        placed = [replace(record, offset=first + number) for number, record in enumerate(records)]
        log.append(raw(batch_bytes(placed, epoch=self.states[address].leader_epoch)))
        return first

    def records(self, address: Address) -> list[Record]:
        return [record for one in self.logs[address] for record in read_records(one.data, 0, one.header)]


@dataclass
class _Message:
    at: int

    def offset(self) -> int:
        return self.at


@dataclass
class _Error:
    text: str

    def name(self) -> str:
        return self.text

    def str(self) -> str:
        return "as the test wants it"


class FakeProducer:
    """confluent-kafka's producer: it queues, and writes when it is polled.

    Args:
        script: asked before each write and each confirmation: ``ok``, ``kill`` or the name of an error.
    """

    def __init__(self, cluster: FakeCluster, config: Mapping[str, Any], script: Callable[[str], str]) -> None:
        assert config["acks"] == "all"
        assert config["enable.idempotence"] is True
        assert config["enable.gapless.guarantee"] is True
        self._cluster, self._script = cluster, script
        self._queue: list[tuple[Address, Record, Callable[[Any, Any], None]]] = []
        self._failed: str | None = None

    def produce(
        self,
        topic: str,
        *,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        headers: list[tuple[str, bytes | None]],
        on_delivery: Callable[[Any, Any], None],
        timestamp: int = 0,
    ) -> None:
        record = Record(0, timestamp, key, value, tuple(headers))
        self._queue.append((Address(topic, partition), record, on_delivery))

    def poll(self, timeout: float) -> int:
        before = len(self._queue)
        if timeout or before >= 3:
            self._send()
        return before - len(self._queue)

    def flush(self, timeout: float) -> int:
        del timeout
        while self._queue:
            self._send()
        return 0

    def _send(self) -> None:
        """One request of up to 3 records."""
        sent, self._queue = self._queue[:3], self._queue[3:]
        if not sent:
            return
        verdict = self._failed or self._script("write")
        if verdict == "kill":
            raise KilledError
        if verdict != "ok":
            self._failed = verdict
            for _, _, told in sent:
                told(_Error(verdict), None)
            return
        first = self._cluster.append(sent[0][0], [record for _, record, _ in sent])
        if self._script("confirm") == "kill":
            raise KilledError
        for number, (_, _, told) in enumerate(sent):
            told(None, _Message(first + number))


def orders(number: int = 0, **changes: object) -> PartitionState:
    return partition("orders", number, **changes)
