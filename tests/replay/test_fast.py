"""Folding comes to the same image as applying record by record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.replay import packed
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage
from kelr.replay.packed import Folding, IdleRun, PackedChanges, address_of, id_text, key_of
from tests.properties import examples

TOPICS = tuple(id_text(bytes(15) + bytes((number,))) for number in range(3))
_topics, _numbers = st.sampled_from(TOPICS), st.integers(0, 2)
_brokers = st.lists(st.integers(1, 3), max_size=3, unique=True).map(tuple)
_told = st.fixed_dictionaries(
    {},
    optional={
        "leader": st.sampled_from([rec.NO_LEADER, 1, 2]),
        "isr": _brokers,
        "elr": _brokers,
        "last_known_elr": _brokers,
        "recovering": st.booleans(),
    },
)
_moved = st.fixed_dictionaries(
    {}, optional={"replicas": _brokers, "directories": _brokers.map(lambda ids: tuple(map(str, ids)))}
)


def _made(topic: str, number: int, replicas: tuple[int, ...]) -> rec.MetadataRecord:
    return rec.PartitionMade(topic, number, 1, 0, 0, replicas, replicas)


_names = st.sampled_from(["orders", "payments"])
_others: st.SearchStrategy[rec.MetadataRecord] = st.one_of(
    st.builds(rec.TopicMade, _names, _topics),
    st.builds(_made, _topics, _numbers, _brokers),
    st.builds(_made, _topics, _numbers, _brokers),
    st.builds(lambda topic, number, told: rec.PartitionChanged(topic, number, **told), _topics, _numbers, _told),
    st.builds(lambda topic, number, told: rec.PartitionChanged(topic, number, **told), _topics, _numbers, _moved),
    st.builds(rec.TopicRemoved, _topics),
    st.builds(rec.ElrCleared, st.none() | _names),
    st.builds(rec.TransactionMark, st.sampled_from(["begin", "end", "abort"])),
    st.builds(
        rec.BrokerRegistered,
        st.integers(1, 3),
        st.integers(0, 2),
        st.just("x"),
        st.booleans(),
        st.just(False),
        st.none(),
    ),
    st.builds(rec.BrokerChanged, st.integers(1, 3), st.integers(0, 2), st.booleans()),
    st.builds(rec.ConfigSet, st.just(2), _names, st.just("min.insync.replicas"), st.none() | st.just("2")),
    st.builds(rec.LeaderChanged, st.integers(1, 3), st.just((1,))),
    st.just(rec.SnapshotBegins(5)),
    st.just(rec.NotUnderstood(5, 9, None)),
)
_changes = st.lists(st.tuples(_topics, _numbers, _told), min_size=1, max_size=5).map(
    lambda made: PackedChanges([key_of(topic, number) for topic, number, _ in made], [told for *_, told in made])
)
_batches: st.SearchStrategy[list[Sequence[rec.MetadataRecord]]] = st.lists(
    _changes | _changes | st.lists(_others, min_size=1, max_size=3).map(tuple) | st.just(IdleRun([7, 8])), max_size=25
)
BEGIN = tuple(
    record
    for topic, name in zip(TOPICS[:2], ("orders", "payments"), strict=True)
    for record in (rec.TopicMade(name, topic), *(_made(topic, number, (1, 2, 3)) for number in range(2)))
)


def _of(found: Sequence[Sequence[rec.MetadataRecord]], checkpoint: bool) -> list[rec.RecordBatch]:
    batches, offset = [], 0
    for number, records in enumerate([BEGIN, *found]):
        end = 100 if checkpoint and number < 2 else None
        batches.append(rec.RecordBatch(offset, 1, 1000 + number, records, end is not None, end))
        offset += len(records)
    return batches


_PASSING = {"_lists", "_directories", "_of_checkpoint"}
"""What an image shares between values, and what it notes for the batch at hand."""


def _says(image: MetadataImage) -> dict[str, Any]:
    return {name: value for name, value in vars(image).items() if name not in _PASSING}


@examples(400)
@given(_batches, st.booleans(), st.integers(0, 30))
def test_a_folded_log_is_the_log_applied(
    found: list[Sequence[rec.MetadataRecord]], checkpoint: bool, looked_after: int
) -> None:
    image, folded = MetadataImage(), MetadataImage()
    folding = Folding(folded)
    for number, batch in enumerate(_of(found, checkpoint)):
        image.apply(batch)
        folding.apply(batch)
        assert folded.at == image.at
        if number == looked_after:
            assert folding.finish() is folded
            assert _says(folded) == _says(image)
    folding.finish()
    assert _says(folded) == _says(image)


def test_what_is_kept_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_PENDING", 10)
    image, folded = MetadataImage(), MetadataImage()
    folding, offset = Folding(folded), len(BEGIN)
    for one in (image.apply, folding.apply):
        one(rec.RecordBatch(0, 1, 1, BEGIN))
    for number in range(50):
        changes = PackedChanges([key_of(TOPICS[0], 0)] * 4, [{"leader": number % 3}] * 4)
        batch = rec.RecordBatch(offset, 1, 2, changes)
        offset += 4
        image.apply(batch)
        folding.apply(batch)
        assert sum(map(len, folding._told.values())) <= 10
    folding.finish()
    assert _says(folded) == _says(image)
    assert folded.topics[TOPICS[0]].partitions[0].leader_epoch == 200


def test_the_address_of_a_partition_goes_both_ways() -> None:
    for topic_id in ("xwLcnDBAQ0KnZEKZX0bXVA", "______________________"[:21] + "w", "-Zb4VCDrQbO9fRZ1g3GsJw"):
        for partition in (0, 7, -1, 2**31 - 1):
            key = key_of(topic_id, partition)
            assert len(key) == 20
            assert address_of(key) == (topic_id, partition)
