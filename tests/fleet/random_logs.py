"""Random metadata logs: everything that a record can do, in batches as a controller might write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from kelr.model import ELR_FEATURE
from kelr.replay import records as rec
from kelr.replay.image import BROKER, TOPIC, MetadataImage
from kelr.replay.packed import IdleRun, PackedChanges, id_text, key_of
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.writing import checkpoint_bytes

IDS = tuple(id_text(bytes(15) + bytes((number,))) for number in range(1, 12))
TOPICS = dict(zip(("orders", "payments"), IDS, strict=False))
INCARNATIONS, DIRECTORIES = IDS[2:5], IDS[5:]
PARTITIONS = tuple((topic, number) for topic in TOPICS.values() for number in range(2))
REPLICAS = (1, 2, 3)
_STEPS_MS = (0, 1_000, 1_000, 1_000, 250_000, 700_000, -3_000)

Records = Sequence[rec.MetadataRecord]


def made(topic_id: str, number: int, replicas: tuple[int, ...] = REPLICAS) -> rec.MetadataRecord:
    return rec.PartitionMade(topic_id, number, 1, 0, 0, replicas, replicas, directories=DIRECTORIES[: len(replicas)])


def registered(broker: int, epoch: int = 0, incarnation: str = INCARNATIONS[0]) -> rec.MetadataRecord:
    endpoints, levels = (rec.Endpoint("PLAINTEXT", f"host-{broker}", 9092),), {"metadata.version": 30}
    rack, directories = f"rack-{broker % 2}", DIRECTORIES[:2]
    return rec.BrokerRegistered(broker, epoch, incarnation, False, False, rack, endpoints, levels, directories)


def topic_made(name: str) -> list[rec.MetadataRecord]:
    return [rec.TopicMade(name, TOPICS[name]), *(made(TOPICS[name], number) for number in range(2))]


BEGIN = (
    rec.FeatureLevel(ELR_FEATURE, 1),
    rec.ConfigSet(BROKER, "", "min.insync.replicas", "2"),
    *(registered(broker) for broker in REPLICAS),
    *topic_made("orders"),
)


class _Writer:
    """Makes up what comes next; some things take several batches, between which others come."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.there = {"orders"}
        self.epochs = dict.fromkeys(REPLICAS, 0)
        self._later: list[list[Records]] = []

    def next(self) -> Records:
        chance = self.chance
        if self._later and chance.random() < 0.5:
            story = chance.choice(self._later)
            records = story.pop(0)
            self._later = [one for one in self._later if one]
            return records
        kinds = (self.packed, self.mixed, self.designated, self.transaction, self.controller, self.idle)
        return chance.choices(kinds, (8, 8, 3, 1, 1, 2))[0]()

    def packed(self) -> Records:
        found = [(key_of(*self.chance.choice(PARTITIONS)), self.told()) for _ in range(self.chance.randint(1, 4))]
        return PackedChanges([key for key, _ in found], [told for _, told in found])

    def told(self) -> dict[str, object]:
        chance, told = self.chance, dict[str, object]()
        if chance.random() < 0.7:
            told["leader"] = chance.choice((rec.NO_LEADER, rec.NO_LEADER, *REPLICAS))
        for name in ("isr", "elr", "last_known_elr"):
            if chance.random() < 0.4:
                told[name] = tuple(chance.sample(REPLICAS, chance.randint(0, 2)))
        if chance.random() < 0.2:
            told["recovering"] = chance.random() < 0.5
        return told

    def mixed(self) -> Records:
        return [record for _ in range(self.chance.randint(1, 3)) for record in self.something()]

    def something(self) -> Records:
        chance = self.chance
        topic_id, number = chance.choice(PARTITIONS)
        name, broker = chance.choice(tuple(TOPICS)), chance.choice(REPLICAS)
        kind = chance.choices(range(10), (8, 3, 4, 4, 1, 4, 2, 3, 3, 1))[0]
        if kind == 0:
            return [rec.PartitionChanged(topic_id, number, **self.told())]  # type: ignore[arg-type]
        if kind == 1:
            order = tuple(chance.sample((1, 2, 3, 4), chance.randint(1, 4)))
            return [rec.PartitionChanged(topic_id, number, replicas=order, directories=DIRECTORIES[: len(order)])]
        if kind == 2:
            self.epochs[broker] += chance.randint(0, 1)
            return [registered(broker, self.epochs[broker], chance.choice(INCARNATIONS))]
        if kind == 3:
            told = {"fenced": chance.choice((None, True, False)), "in_controlled_shutdown": chance.choice((None, True))}
            directories = chance.choice((None, DIRECTORIES[:1]))
            return [rec.BrokerChanged(broker, self.epochs[broker], directories=directories, **told)]
        if kind == 4:
            return [rec.BrokerUnregistered(broker, self.epochs[broker])]
        if kind == 5:
            key = chance.choice(("min.insync.replicas", "unclean.leader.election.enable", "retention.ms"))
            return [rec.ConfigSet(TOPIC, name, key, chance.choice((None, "1", "2", "3", "true")))]
        if kind == 6:
            value = chance.choice((None, "1", "3"))
            return [rec.ConfigSet(BROKER, chance.choice(("", "", "1")), "min.insync.replicas", value)]
        if kind == 7:
            removed = [rec.TopicRemoved(TOPICS[name])] if name in self.there else []
            self.there.add(name)
            return [*removed, *topic_made(name)]
        if kind == 8:
            return [rec.ElrCleared(chance.choice((None, "orders")))]
        return [chance.choice((rec.NotUnderstood(5, 9, None), rec.FeatureLevel(ELR_FEATURE, chance.randint(0, 1))))]

    def designated(self) -> Records:
        """A partition loses its leader, its replicas are put into another order, and the first of them is elected."""
        topic_id, number = self.chance.choice(PARTITIONS)
        order = tuple(self.chance.sample(REPLICAS, 3))
        self._later.append(
            [
                (rec.PartitionChanged(topic_id, number, replicas=order),),
                PackedChanges([key_of(topic_id, number)], [{"leader": order[0], "isr": order[:1], "elr": ()}]),
                (rec.PartitionChanged(topic_id, number, replicas=REPLICAS),),
            ]
        )
        return PackedChanges([key_of(topic_id, number)], [{"leader": rec.NO_LEADER, "isr": ()}])

    def transaction(self) -> Records:
        ends = rec.TransactionMark(self.chance.choice(("end", "abort")))
        self._later.append([(ends, *self.mixed())])
        return (*self.mixed(), rec.TransactionMark("begin"))

    def controller(self) -> Records:
        return (rec.LeaderChanged(self.chance.choice(REPLICAS), REPLICAS),)

    def idle(self) -> Records:
        return IdleRun([0] * self.chance.randint(1, 6))


def random_log(seed: int, size: int = 25) -> list[rec.RecordBatch]:
    """The batches of a log; perhaps with a checkpoint at its beginning or in its middle."""
    writer = _Writer(seed)
    chance, batches, offset, now_ms = writer.chance, list[rec.RecordBatch](), 0, 1_760_000_000_000
    for records in (BEGIN, *(writer.next() for _ in range(size))):
        now_ms += chance.choice(_STEPS_MS)
        content = IdleRun([now_ms] * len(records)) if isinstance(records, IdleRun) else records
        content = tuple(content) if isinstance(content, list) else content
        batches.append(rec.RecordBatch(offset, 1, now_ms, content))
        offset += len(records)
    if chance.random() < 0.6:
        return batches
    first = chance.choice((0, chance.randrange(len(batches))))
    return hidden(batches, first, chance.randint(first + 1, len(batches)))


seeds = st.integers(0, 2**32)
logs = seeds.map(random_log)
"""Random logs, for properties."""


def hidden(batches: Sequence[rec.RecordBatch], first: int, last: int) -> list[rec.RecordBatch]:
    """The log with a checkpoint in place of some of its batches; as it is where Kafka would write none there."""
    image = MetadataImage()
    for batch in batches[:last]:
        image.apply(batch)
    if image.in_transaction or image.at is None:
        return list(batches)
    return [*batches[:first], *checkpoint_of(image), *batches[last:]]


def checkpoint_of(image: MetadataImage) -> list[rec.RecordBatch]:
    """As a reader gives it."""
    assert image.at is not None
    now_ms = image.at.timestamp_ms
    reader = BatchReader(b"".join(checkpoint_bytes(image, contained_ms=now_ms)), checkpoint_end=image.at.offset + 1)
    return [replace(batch, timestamp_ms=now_ms) for batch in reader]
