"""A history of named partitions passes over batches about others, and tells what it tells when it looks at them all."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kelr.model import TopicPartition
from kelr.replay import records as rec
from kelr.replay.history import Entry, History, Interest, Moment, Window
from kelr.replay.history.telling import Passing
from kelr.replay.packed import IdleRun, PackedChanges, id_text, key_of
from kelr.replay.records import At
from tests.replay.history.observed import random_cluster
from tests.replay.test_fast import _says

PACKED = ("leader", "isr", "elr", "last_known_elr", "recovering")
NEVER = ("replicas", "adding", "removing", "directories")


def packed(records: Sequence[rec.MetadataRecord]) -> Sequence[rec.MetadataRecord]:
    """As they are read from bytes."""
    changes = [one for one in records if isinstance(one, rec.PartitionChanged)]
    if len(changes) < len(records) or any(getattr(one, name) is not None for one in changes for name in NEVER):
        return records
    told = [{name: getattr(one, name) for name in PACKED if getattr(one, name) is not None} for one in changes]
    return PackedChanges([key_of(one.topic_id, one.partition) for one in changes], told)


def written(batches: Sequence[rec.RecordBatch], chance: random.Random) -> Iterator[rec.RecordBatch]:
    """The same records, with idle time in between, batches taken apart, and changes of what was never there."""
    offset = 0

    def add(like: rec.RecordBatch, records: Sequence[rec.MetadataRecord]) -> Iterator[rec.RecordBatch]:
        nonlocal offset
        yield rec.RecordBatch(offset, like.epoch, like.timestamp_ms, records)
        offset += len(records)

    for batch in batches:
        if chance.random() < 0.3:
            yield from add(batch, IdleRun([batch.timestamp_ms] * chance.randint(1, 3)))
        if chance.random() < 0.05:
            yield from add(batch, PackedChanges([key_of(id_text(bytes(16)), 0)], [{"leader": 1}]))
        if chance.random() < 0.05:
            yield from add(batch, (rec.TransactionMark(chance.choice(["begin", "abort", "end"])),))
        singly = chance.random() < 0.7
        for records in [batch.records[at : at + 1] for at in range(len(batch.records))] if singly else [batch.records]:
            yield from add(batch, packed(records))


def told(batches: Sequence[rec.RecordBatch], wanted: frozenset[TopicPartition], window: Window, *, all_: bool) -> Any:
    history = History(Interest(wanted.__contains__, named=True), window, keep_all=True, quorums=True)
    if all_:
        history._passing = None
    entries: list[Entry] = []
    for batch in batches:
        if history.over(batch):
            break
        entries += history.take(batch)
        assert history.image.at == At(batch.next_offset - 1, batch.epoch, batch.timestamp_ms)
    entries += history.finish()
    quorums = {address: history.quorum(address) for address in sorted(wanted)}
    found = list(history.summaries()), quorums, history.as_of, history.active_at_start, _says(history.image)
    return entries, found, [history.knows(address.topic) for address in sorted(wanted)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rules", ["kraft", "elr-4.3"])
def test_what_is_passed_over_changes_nothing(rules: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 0
    passes = Passing.passes

    def counted(self: Passing, batch: rec.RecordBatch) -> bool:
        nonlocal passed
        found = passes(self, batch)
        passed += found and type(batch.records) is PackedChanges
        return found

    monkeypatch.setattr(Passing, "passes", counted)
    chance = random.Random(f"passing/{rules}/{seed}")
    cluster = random_cluster(rules, f"passing/{seed}", deeds=120)
    batches = list(written(cluster.batches(), chance))
    addresses = [TopicPartition(topic, number) for topic in ("orders", "made-0", "nobody's") for number in range(2)]
    for _ in range(6):
        wanted = frozenset(chance.sample(addresses, chance.choice([1, 1, 2])))
        since, until = (
            Moment(offset=chance.randrange(batches[-1].next_offset)) if chance.random() < 0.4 else None for _ in "12"
        )
        window = Window(since, until)
        assert told(batches, wanted, window, all_=False) == told(batches, wanted, window, all_=True)
    assert passed > 10


@pytest.mark.parametrize("removed", [True, False])
def test_a_topic_that_takes_over_an_id_is_asked_about_anew(*, removed: bool) -> None:
    id_ = id_text(bytes(15) + b"\1")
    image_of = rec.PartitionMade(id_, 0, 1, 0, 0, (1, 2), (1, 2))
    batches = [
        rec.RecordBatch(0, 1, 1, (rec.TopicMade("payments", id_), image_of)),
        rec.RecordBatch(2, 1, 2, PackedChanges([key_of(id_, 0)], [{"leader": 2}])),
        rec.RecordBatch(3, 1, 3, (rec.TopicRemoved(id_) if removed else rec.Irrelevant("NoOpRecord"),)),
        rec.RecordBatch(4, 1, 3, (rec.TopicMade("orders", id_), image_of)),
        rec.RecordBatch(6, 1, 4, PackedChanges([key_of(id_, 0)], [{"isr": (1,)}])),
    ]
    wanted = frozenset({TopicPartition("orders", 0)})
    found = told(batches, wanted, Window(), all_=False)
    assert found == told(batches, wanted, Window(), all_=True)
    assert [entry.at.offset for entry in found[0]] == [5, 6]


def test_what_a_checkpoint_shows_is_told_before_a_batch_is_passed_over() -> None:
    other, named = (id_text(bytes(15) + bytes((number,))) for number in (1, 2))

    def made(topic_id: str) -> rec.PartitionMade:
        return rec.PartitionMade(topic_id, 0, 1, 0, 0, (1, 2), (1, 2))

    there = (rec.SnapshotBegins(3), rec.TopicMade("other", other), made(other), rec.TopicMade("orders", named))
    batches = [
        rec.RecordBatch(0, 1, 1, (rec.TopicMade("other", other), made(other))),
        rec.RecordBatch(0, 1, 9, (*there, made(named), rec.SnapshotEnds()), of_checkpoint=True, checkpoint_end=50),
        rec.RecordBatch(50, 1, 10, PackedChanges([key_of(other, 0)], [{"leader": 2}])),
        rec.RecordBatch(51, 1, 11, PackedChanges([key_of(named, 0)], [{"leader": 2}])),
    ]
    history = History(Interest(frozenset({TopicPartition("orders", 0)}).__contains__, named=True), Window())
    found = [[entry.at.offset for entry in history.take(batch)] for batch in batches]
    assert found == [[], [49], [50], [51]]
