"""Where a replayed record comes from: headers that it carries, so that nobody produces it twice and all can tell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from kelr.sources.records.records import Header

PREFIX = "kelr-rescue."
CLUSTER = PREFIX + "cluster"
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
LEADER_EPOCH = PREFIX + "leader-epoch"
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


def origin_headers(origin: Origin, plan_id: str | None) -> list[Header]:
    """The headers that a replayed record gets beside its own."""
    headers: list[Header] = [
        (CLUSTER, (origin.cluster_id or "").encode()),
        (TOPIC, origin.topic.encode()),
        (PARTITION, str(origin.partition).encode()),
        (OFFSET, str(origin.offset).encode()),
        (LEADER_EPOCH, str(origin.leader_epoch).encode()),
    ]
    if plan_id is not None:
        headers.append((PLAN, plan_id.encode()))
    return headers


def read_origin(headers: Sequence[Header]) -> Origin | None:
    """Where a record was replayed from; None for one that was not replayed, or whose headers say it in another way.

    A record that is replayed a second time, from a dump of replayed records, has two sets: the last one counts.
    """
    found = {name: value for name, value in headers if name.startswith(PREFIX)}
    try:
        return Origin(
            _text(found[CLUSTER]) or None,
            _text(found[TOPIC]),
            int(_text(found[PARTITION])),
            int(_text(found[LEADER_EPOCH])),
            int(_text(found[OFFSET])),
        )
    except (KeyError, ValueError):
        return None


class Replayed:
    """The records of one partition that are known to have been replayed, as runs of offsets for each leader epoch."""

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
