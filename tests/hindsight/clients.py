"""What clients of the cluster did: transactions of producers, and how far consumer groups have read.

A transaction is one producer's, in one partition. Its coordinator is elsewhere and never fails: it writes the marker
that ends it to whoever leads, until that is committed (WriteTxnMarkers asks for acks=all), and is done with it then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, Coordinated, OpenTransaction
from kelr.simulation import SimulatedLog

TIMEOUT_MS = 60_000
"""transaction.timeout.ms: then the coordinator aborts what its producer left open."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One producer's transaction."""

    producer: int
    address: TopicPartition
    began_ms: int
    records: frozenset[int]
    markers: frozenset[int] = frozenset()
    """Every record that was written to end it: one that is lost before it is committed is written again."""
    ending: bool = False
    """Whether its producer, or its timeout, has decided it."""
    done: bool = False
    """Whether a marker was committed: the coordinator sends no other."""

    @property
    def coordinated(self) -> Coordinated:
        if self.done:
            return Coordinated.FORGOTTEN
        return Coordinated.ENDING if self.ending else Coordinated.UNDER_WAY

    def open_from(self, log: SimulatedLog, below: int) -> int | None:
        """The offset of its first record in a log in which no marker of it lies below an offset; None for another."""
        first = None
        for offset, record in enumerate(log.records, log.start):
            if record.id in self.markers and offset < below:
                return None
            if record.id in self.records and first is None:
                first = offset
        return first


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group, which reads what is below the high watermark and commits how far it came."""

    offset: int = 0
    epoch: int | None = None
    read: frozenset[int] = field(default_factory=frozenset)


def last_stable_offset(transactions: tuple[Transaction, ...], log: SimulatedLog) -> int:
    """The LSO of one replica (`UnifiedLog.fetchLastStableOffsetMetadata`)."""
    mark = log.high_watermark
    return min([mark, *(at for one in transactions if (at := one.open_from(log, mark)) is not None)])


def open_in(transactions: tuple[Transaction, ...], log: SimulatedLog) -> tuple[OpenTransaction, ...]:
    """Those that have no end in the leader's log, as DescribeProducers and their coordinators tell."""
    found = []
    for one in transactions:
        start = one.open_from(log, log.end)
        if start is not None:
            told = OpenTransaction(one.producer, 0, start, one.began_ms, one.coordinated, f"payments-{one.producer}")
            found.append(replace(told, started_at_ms=one.began_ms, timeout_ms=TIMEOUT_MS))
    return tuple(sorted(found, key=lambda one: one.start_offset))


def read_on(group: Group, log: SimulatedLog) -> Group:
    """The group reads everything up to the leader's high watermark. Beyond the log's end, or before its start, it is
    sent to the end, and the start (auto.offset.reset)."""
    offset = log.high_watermark if group.offset > log.end else max(group.offset, log.start)
    ahead = [record for at, record in enumerate(log.records, log.start) if offset <= at < log.high_watermark]
    if not ahead:
        return group
    read = group.read | {record.id for record in ahead}
    return Group(log.high_watermark, ahead[-1].epoch, read)


def committed(groups: dict[tuple[str, TopicPartition], Group], address: TopicPartition) -> tuple[CommittedOffset, ...]:
    """What the groups have committed for a partition."""
    return tuple(
        CommittedOffset(name, group.offset, group.epoch)
        for (name, at), group in sorted(groups.items())
        if at == address and group.epoch is not None
    )


def passed_over(group: Group, log: SimulatedLog, deleted: frozenset[int]) -> tuple[int, ...]:
    """Offsets of a log that the group goes on behind and has not read: it never will. What was deleted on purpose,
    which the elected log may hold still, nobody is to read."""
    below, done_with = min(group.offset, log.end), group.read | deleted
    return tuple(
        offset for offset, record in enumerate(log.records, log.start) if offset < below and record.id not in done_with
    )
