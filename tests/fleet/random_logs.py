"""Random metadata logs: everything that a record can do, in batches as a controller might write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
_STEPS_MS = (0, 1_000, 1_000, 250_000, 700_000, -3_000)

_topics, _numbers = st.sampled_from(tuple(TOPICS.values())), st.integers(0, 2)
_members = st.lists(st.integers(1, 3), max_size=3, unique=True).map(tuple)
_orders = st.permutations((1, 2, 3)).map(tuple)
_told = st.fixed_dictionaries(
    {},
    optional={
        "leader": st.sampled_from([rec.NO_LEADER, 1, 2, 3]),
        "isr": _members,
        "elr": _members,
        "last_known_elr": _members,
        "recovering": st.booleans(),
    },
)
_moved = st.fixed_dictionaries(
    {},
    optional={
        "replicas": _orders | st.sampled_from([(1, 2), (1, 2, 3, 4)]),
        "leader": st.sampled_from([1, 2, 3]),
        "adding": st.sampled_from([(), (4,)]),
        "removing": st.sampled_from([(), (3,)]),
        "directories": st.sampled_from([DIRECTORIES[:3], DIRECTORIES[1:4]]),
    },
)


def made(topic_id: str, number: int, replicas: tuple[int, ...]) -> rec.MetadataRecord:
    return rec.PartitionMade(topic_id, number, 1, 0, 0, replicas, replicas, directories=DIRECTORIES[: len(replicas)])


def registered(broker: int, epoch: int, incarnation: str, fenced: bool) -> rec.MetadataRecord:
    endpoints, levels = (rec.Endpoint("PLAINTEXT", f"host-{broker}", 9092),), {"metadata.version": 30}
    return rec.BrokerRegistered(
        broker, epoch, incarnation, fenced, False, f"rack-{broker % 2}", endpoints, levels, DIRECTORIES[:2]
    )


_partitions: st.SearchStrategy[rec.MetadataRecord] = st.one_of(
    st.builds(made, _topics, _numbers, _orders),
    st.builds(lambda topic, number, told: rec.PartitionChanged(topic, number, **told), _topics, _numbers, _told),
    st.builds(lambda topic, number, told: rec.PartitionChanged(topic, number, **told), _topics, _numbers, _told),
    st.builds(lambda topic, number, told: rec.PartitionChanged(topic, number, **told), _topics, _numbers, _moved),
)
_brokers: st.SearchStrategy[rec.MetadataRecord] = st.one_of(
    st.builds(registered, st.integers(1, 3), st.integers(0, 2), st.sampled_from(INCARNATIONS), st.booleans()),
    st.builds(
        rec.BrokerChanged,
        st.integers(1, 3),
        st.integers(0, 2),
        st.none() | st.booleans(),
        st.sampled_from([None, True]),
        st.sampled_from([None, DIRECTORIES[:1]]),
    ),
    st.builds(rec.BrokerUnregistered, st.integers(1, 3), st.integers(0, 2)),
)
_configs: st.SearchStrategy[rec.MetadataRecord] = st.one_of(
    st.builds(
        rec.ConfigSet,
        st.just(TOPIC),
        st.sampled_from(tuple(TOPICS)),
        st.sampled_from(["min.insync.replicas", "unclean.leader.election.enable", "retention.ms"]),
        st.sampled_from([None, "1", "2", "true"]),
    ),
    st.builds(
        rec.ConfigSet,
        st.just(BROKER),
        st.sampled_from(["", "1"]),
        st.just("min.insync.replicas"),
        st.sampled_from([None, "1", "3"]),
    ),
    st.builds(rec.ElrCleared, st.none() | st.sampled_from(tuple(TOPICS))),
    st.builds(rec.FeatureLevel, st.just(ELR_FEATURE), st.integers(0, 1)),
)
_rest: st.SearchStrategy[rec.MetadataRecord] = st.one_of(
    st.builds(lambda name: rec.TopicMade(name, TOPICS[name]), st.sampled_from(tuple(TOPICS))),
    st.builds(rec.TopicRemoved, _topics),
    st.builds(rec.TransactionMark, st.sampled_from(["begin", "end", "abort"])),
    st.just(rec.NotUnderstood(5, 9, None)),
    st.just(rec.Irrelevant("ProducerIdsRecord")),
)
_packed = st.lists(st.tuples(_topics, _numbers, _told), min_size=1, max_size=5).map(
    lambda found: PackedChanges([key_of(topic, number) for topic, number, _ in found], [told for *_, told in found])
)
_mixed = st.lists(_partitions | _partitions | _brokers | _configs | _rest, min_size=1, max_size=5).map(tuple)
_controllers = st.builds(lambda broker: (rec.LeaderChanged(broker, (1, 2, 3)),), st.integers(1, 3))
_idle = st.just(IdleRun([0, 0]))
_content: st.SearchStrategy[Sequence[rec.MetadataRecord]] = _packed | _packed | _mixed | _mixed | _controllers | _idle
BEGIN = (
    rec.FeatureLevel(ELR_FEATURE, 1),
    rec.ConfigSet(BROKER, "", "min.insync.replicas", "2"),
    *(registered(broker, 0, INCARNATIONS[0], False) for broker in (1, 2, 3)),
    rec.TopicMade("orders", TOPICS["orders"]),
    *(made(TOPICS["orders"], number, (1, 2, 3)) for number in range(3)),
)


@dataclass(frozen=True)
class Hidden:
    """Batches whose records are missing, and a checkpoint stands in for them."""

    first: int
    last: int


@st.composite
def logs(draw: st.DrawFn, *, with_gap: bool | None = None) -> list[rec.RecordBatch]:
    """The batches of a log; perhaps with a checkpoint at its beginning or in its middle."""
    content = [BEGIN, *draw(st.lists(_content, min_size=1, max_size=16))]
    steps = draw(st.lists(st.sampled_from(_STEPS_MS), min_size=len(content), max_size=len(content)))
    batches, offset, now_ms, there = list[rec.RecordBatch](), 0, 1_760_000_000_000, set[str]()
    for records, step_ms in zip(content, steps, strict=True):
        now_ms += step_ms
        legal = records if isinstance(records, PackedChanges | IdleRun) else tuple(_legal(records, there))
        if isinstance(legal, IdleRun):
            legal = IdleRun([now_ms - 1, now_ms])
        batches.append(rec.RecordBatch(offset, 1, now_ms, legal))
        offset += len(legal)
    gap = draw(st.booleans()) if with_gap is None else with_gap
    if not gap:
        return batches
    first = draw(st.integers(0, len(batches) - 1))
    return hidden(batches, first, draw(st.integers(first + 1, len(batches))))


def _legal(records: Sequence[rec.MetadataRecord], there: set[str]) -> list[rec.MetadataRecord]:
    """No topic is made that is there: not even a log that is read from its middle says so."""
    found: list[rec.MetadataRecord] = []
    for record in records:
        if isinstance(record, rec.TopicMade):
            if record.topic_id in there:
                found.append(rec.TopicRemoved(record.topic_id))
            there.add(record.topic_id)
        found.append(record)
    return found


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
