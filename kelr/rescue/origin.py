"""Where a replayed record comes from: headers that it carries, so that nobody produces it twice and all can tell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelr.sources.records.records import Header

PREFIX = "kelr-rescue."
CLUSTER = PREFIX + "cluster"
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
LEADER_EPOCH = PREFIX + "leader-epoch"
TOPIC_ID = PREFIX + "topic-id"
PLAN = PREFIX + "plan"
MARK = PREFIX.encode()
"""Bytes that every batch with a replayed record holds, once it is decompressed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The identity of a record: only one leader writes in an epoch, so it names one record of the cluster's history."""

    cluster_id: str | None
    topic: str
    partition: int
    leader_epoch: int
    offset: int
    topic_id: str | None = None
    """Tells a topic from one of the same name that was deleted; None where it was not known."""


def origin_headers(origin: Origin, plan_id: str | None) -> list[Header]:
    """The headers that a replayed record gets beside its own."""
    headers: list[Header] = [
        (CLUSTER, (origin.cluster_id or "").encode()),
        (TOPIC, origin.topic.encode()),
        (PARTITION, str(origin.partition).encode()),
        (OFFSET, str(origin.offset).encode()),
        (LEADER_EPOCH, str(origin.leader_epoch).encode()),
    ]
    if origin.topic_id is not None:
        headers.append((TOPIC_ID, origin.topic_id.encode()))
    if plan_id is not None:
        headers.append((PLAN, plan_id.encode()))
    return headers


def read_origins(headers: Sequence[Header]) -> tuple[Origin, ...]:
    """Where a record was replayed from, the first place first; empty for one that was not replayed.

    A record that is replayed again, from a dump of replayed records, has a set of headers for each time: all of them
    name the same record. Sets that somebody else wrote, in another way, are passed over.
    """
    sets: list[dict[str, bytes | None]] = []
    for name, value in headers:
        if not name.startswith(PREFIX):
            continue
        if not sets or name in sets[-1]:
            sets.append({})
        sets[-1][name] = value
    found = (_origin(one) for one in sets)
    return tuple(origin for origin in found if origin is not None)


def _origin(found: Mapping[str, bytes | None]) -> Origin | None:
    try:
        return Origin(
            _text(found[CLUSTER]) or None,
            _text(found[TOPIC]),
            int(_text(found[PARTITION])),
            int(_text(found[LEADER_EPOCH])),
            int(_text(found[OFFSET])),
            _text(found[TOPIC_ID]) if TOPIC_ID in found else None,
        )
    except (KeyError, ValueError):
        return None


class Origins:
    """Records by where they come from."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str | None, str, int], dict[str | None, Replayed]] = {}

    @property
    def count(self) -> int:
        return sum(one.count for ids in self._partitions.values() for one in ids.values())

    def add(self, origin: Origin) -> None:
        """Take note of a record."""
        ids = self._partitions.setdefault((origin.cluster_id, origin.topic, origin.partition), {})
        ids.setdefault(origin.topic_id, Replayed()).add(origin.leader_epoch, origin.offset)

    def __contains__(self, origin: Origin) -> bool:
        """Whether this record is among them; a topic whose id is not known may be any of that name."""
        ids = self._partitions.get((origin.cluster_id, origin.topic, origin.partition), {})
        record = origin.leader_epoch, origin.offset
        return any(
            record in found
            for topic_id, found in ids.items()
            if None in {topic_id, origin.topic_id} or topic_id == origin.topic_id
        )


class Replayed:
    """Records of one partition, as runs of offsets for each leader epoch."""

    def __init__(self) -> None:
        self._runs: dict[int, tuple[list[int], list[int]]] = {}
        self.count = 0

    def add(self, leader_epoch: int, offset: int) -> None:
        """Take note of a record."""
        starts, ends = self._runs.setdefault(leader_epoch, ([], []))
        at = bisect_right(starts, offset) - 1
        if at >= 0 and offset < ends[at]:
            return
        self.count += 1
        joins_next = at + 1 < len(starts) and starts[at + 1] == offset + 1
        if at >= 0 and ends[at] == offset:
            ends[at] = offset + 1
            if joins_next:
                ends[at] = ends.pop(at + 1)
                del starts[at + 1]
        elif joins_next:
            starts[at + 1] = offset
        else:
            starts.insert(at + 1, offset)
            ends.insert(at + 1, offset + 1)

    def __contains__(self, record: tuple[int, int]) -> bool:
        leader_epoch, offset = record
        starts, ends = self._runs.get(leader_epoch, ([], []))
        at = bisect_right(starts, offset) - 1
        return at >= 0 and offset < ends[at]


def _text(value: bytes | None) -> str:
    if value is None:
        raise ValueError("a header without a value")
    return value.decode("utf-8")
