"""A replay that nobody observes folds changes and merges idle time: at every moment it comes to the same state."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kelr.errors import KelrError
from kelr.protocol import metadata_records as metadata
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.replaying import Moment, replay
from tests.sources.metadata_log.written import NO_OP, batch, changed

TOPIC = bytes(range(16))


def _partition(number: int) -> bytes:
    fields = {"partition_id": number, "topic_id": UUID(bytes=TOPIC), "replicas": [1, 2, 3], "isr": [1, 2, 3]}
    more = {"removing_replicas": [], "adding_replicas": [], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return metadata.encode("PartitionRecord", 2, {**fields, **more, "directories": []})


def _log() -> bytes:
    """45 records: two at the beginning in one batch, then changes and idle time; one clock goes back."""
    data, offset = b"", 0

    def add(*values: bytes, time_ms: int) -> None:
        nonlocal data, offset
        data += batch(offset, *values, epoch=1 + offset // 20, time_ms=time_ms)
        offset += len(values)

    add(metadata.encode("TopicRecord", 0, {"name": "orders", "topic_id": UUID(bytes=TOPIC)}), time_ms=1000)
    add(_partition(0), _partition(1), time_ms=1000)
    for step in range(6):
        for tick in range(4):
            add(NO_OP, time_ms=1500 + 3000 * step + 500 * tick - (700 if step == 3 else 0))
        add(*(changed(number, TOPIC, isr=[1, 2], leader=step) for number in range(2)), time_ms=3500 + 3000 * step)
    add(NO_OP, time_ms=30_000)
    add(changed(0, TOPIC, isr=[3]), _partition(1), time_ms=30_100)
    for tick in range(3):
        add(NO_OP, time_ms=30_500 + 500 * tick)
    return data


def _state(data: bytes, at: Moment, *, quickly: bool) -> Any:
    try:
        found = replay(
            BatchReader(data, merge_idle=quickly), at, name="log", observer=None if quickly else lambda *_: None
        )
    except KelrError as error:
        return str(error)
    image = found.image
    return list(image.partitions()), image.at, found.next_offset


@pytest.mark.parametrize("offset", range(50))
def test_at_every_offset(offset: int) -> None:
    data, at = _log(), Moment(offset=offset)
    assert _state(data, at, quickly=True) == _state(data, at, quickly=False)


def test_at_every_time() -> None:
    data = _log()
    for time_ms in range(500, 33_000, 100):
        at = Moment(time_ms=time_ms)
        assert _state(data, at, quickly=True) == _state(data, at, quickly=False), time_ms


def test_at_the_end() -> None:
    partitions, at, next_offset = _state(_log(), Moment(), quickly=True)
    assert [(one.leader, one.leader_epoch, one.partition_epoch, one.isr) for one in partitions] == [
        (5, 6, 7, (3,)),
        (1, 0, 0, (1, 2, 3)),
    ]
    assert (at.offset, at.timestamp_ms, next_offset) == (44, 31_500, 45)
