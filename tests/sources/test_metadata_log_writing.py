"""Records, batches and checkpoints that kelr writes are what it reads, and what kafka-python's classes read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.protocol import metadata_records as metadata
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage
from kelr.sources.metadata_log.decoding import READERS, decode
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.writing import (
    NO_OP_VALUE,
    checkpoint_bytes,
    checkpoint_name,
    encode,
    encode_batch,
    encode_values,
    segments,
)
from kelr.sources.records.batches import StopKind
from tests.properties import examples
from tests.sources.metadata_log.random_records import records, says

WRITTEN = list(READERS)
ID, OTHER_ID, DIRECTORIES = "A" * 21 + "w", "B" * 21 + "w", ("C" * 21 + "w", "D" * 21 + "w")


def read(data: bytes, **how: Any) -> list[rec.RecordBatch]:
    reader = BatchReader(data, **how)
    found = list(reader)
    assert reader.stop is not None
    assert reader.stop.kind is StopKind.END
    return found


@pytest.mark.parametrize("kind", WRITTEN)
@examples(20)
@given(data=st.data())
def test_what_is_written_is_what_is_read(kind: str, data: st.DataObject) -> None:
    _, fields = data.draw(records(kind))
    record = says(kind, fields)
    value = encode(record)
    assert decode(value) == record
    # By Kafka's schemas, too, the value is whole, and says the same again.
    found, version, message = metadata.decode(value)
    assert found == kind or {found, kind} <= {
        "BrokerRegistrationChangeRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
    }
    assert decode(value[:3] + message.encode(version)) == record


def test_a_no_op_record_is_written_and_kinds_that_nobody_looks_into_are_not() -> None:
    assert encode(rec.Irrelevant("NoOpRecord")) == NO_OP_VALUE == metadata.encode("NoOpRecord", 0, {})
    for unknown in (rec.Irrelevant("ProducerIdsRecord"), rec.NotUnderstood(99, 0, None)):
        with pytest.raises(ValueError, match="does not know what is in it"):
            encode(unknown)
    with pytest.raises(ValueError, match="takes a controlled shutdown back"):
        encode(rec.BrokerChanged(1, 1, in_controlled_shutdown=False))
    with pytest.raises(ValueError, match="no id of 16 bytes"):
        encode(rec.TopicRemoved("abc"))


@examples(30)
@given(
    st.lists(st.sampled_from(WRITTEN).flatmap(lambda kind: st.tuples(st.just(kind), records(kind))), min_size=1),
    st.integers(0, 2**62),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**48),
)
def test_a_batch_is_read_as_it_was_written(
    made: list[tuple[str, tuple[int, Any]]], offset: int, epoch: int, at_ms: int
) -> None:
    values = tuple(says(kind, fields) for kind, (_, fields) in made)
    (batch,) = read(encode_batch(offset, epoch, at_ms, values))
    assert (batch.base_offset, batch.epoch, batch.timestamp_ms) == (offset, epoch, at_ms)
    assert tuple(batch.records) == values


def test_a_batch_of_more_records_than_places_in_two_bytes() -> None:
    (batch,) = read(encode_values(5, 1, 7, [NO_OP_VALUE] * 9_000))
    assert tuple(batch.records) == (rec.Irrelevant("NoOpRecord"),) * 9_000
    with pytest.raises(ValueError, match="without records"):
        encode_batch(0, 1, 7, [])


def test_control_records_have_batches_of_their_own() -> None:
    leader = rec.LeaderChanged(3, (1, 2, 3))
    (batch,) = read(encode_batch(4, 2, 9, [leader]))
    assert (batch.base_offset, batch.epoch, tuple(batch.records)) == (4, 2, (leader,))
    with pytest.raises(ValueError, match="batches of their own"):
        encode_batch(4, 2, 9, [leader, rec.TopicMade("a", ID)])


def test_segments_roll_at_batch_boundaries_and_have_kafkas_names() -> None:
    batches = [encode_batch(offset, 1, 7, [rec.TopicMade("orders", ID)]) for offset in range(5)]
    size = len(batches[0])
    made = list(segments(batches, 2 * size + 1))
    assert made == [
        ("00000000000000000000.log", batches[0] + batches[1]),
        ("00000000000000000002.log", batches[2] + batches[3]),
        ("00000000000000000004.log", batches[4]),
    ]
    assert [name for name, _ in segments(batches, 1)] == [f"{offset:020}.log" for offset in range(5)]
    assert list(segments([])) == []
    assert checkpoint_name(17, 3) == "00000000000000000017-0000000003.checkpoint"


def lived_in() -> MetadataImage:
    """An image with everything that one holds."""
    image = MetadataImage()
    levels = {"metadata.version": 30}
    brokers = [
        rec.BrokerRegistered(
            broker, 10 + broker, ID, True, False, rack, (rec.Endpoint("PLAINTEXT", "h", 9092),), levels, DIRECTORIES
        )
        for broker, rack in ((1, "a"), (2, None), (3, "b"))
    ]
    partition = rec.PartitionMade(ID, 0, 1, 4, 9, (1, 2, 3), (1, 2), (3,), (2,), (), (3,), directories=())
    rich = replace(partition, partition=1, elr=(2, 3), recovering=True, directories=(*DIRECTORIES, ID))
    image.apply(
        rec.RecordBatch(
            0,
            2,
            1_000,
            (
                rec.FeatureLevel("eligible.leader.replicas.version", 1),
                rec.FeatureLevel("metadata.version", 30),
                *brokers,
                rec.BrokerChanged(1, 11, fenced=False),
                rec.BrokerChanged(2, 12, fenced=False, in_controlled_shutdown=True, directories=DIRECTORIES[:1]),
                rec.TopicMade("orders", ID),
                partition,
                rich,
                rec.TopicMade("empty", OTHER_ID),
                rec.PartitionChanged(ID, 0, leader=-1, isr=(), elr=(1,)),
                rec.ConfigSet(2, "orders", "min.insync.replicas", "2"),
                rec.ConfigSet(4, "", "min.insync.replicas", "1"),
                rec.ConfigSet(4, "3", "a", ""),
            ),
        )
    )
    return image


def content(image: MetadataImage) -> object:
    """What a checkpoint carries."""
    brokers = {
        broker: (
            replace(known.registration, fenced=False, in_controlled_shutdown=False, directories=()),
            known.fenced,
            known.in_controlled_shutdown,
            known.directories,
        )
        for broker, known in image.brokers.items()
    }
    return image.features, brokers, image.topics, image.names, image.configs, image.misfits


@pytest.mark.parametrize("image", [lived_in(), MetadataImage()], ids=["lived in", "empty"])
def test_a_checkpoint_of_an_image_makes_the_image_again(image: MetadataImage) -> None:
    data = b"".join(checkpoint_bytes(image, contained_ms=5_000, epoch=7, written_ms=6_000))
    batches = read(data, checkpoint_end=50)
    assert batches[0].records == (rec.SnapshotBegins(5_000),)
    assert batches[-1].records == (rec.SnapshotEnds(),)
    assert [batch.base_offset for batch in batches[1:]] == [batch.next_offset for batch in batches[:-1]]
    assert {(batch.epoch, batch.timestamp_ms) for batch in batches} == {(7, 6_000)}
    again = MetadataImage()
    for batch in batches:
        again.apply(batch)
    assert content(again) == content(image)


def test_there_is_no_checkpoint_inside_of_a_transaction() -> None:
    image = lived_in()
    image.apply(rec.RecordBatch(20, 2, 1_000, (rec.TransactionMark("begin"),)))
    with pytest.raises(ValueError, match="inside of a transaction"):
        next(checkpoint_bytes(image, contained_ms=0))


CHECKPOINT_OF_KAFKA = bytes.fromhex(
    "00000000000000000000010100000000029c21d0a1002000000002000001a20ecd2e2b000001a20ecd2e2bffffffffffffff"
    "ffffffffffffff000000032a0000000800000003160000000001a20ecd2e1e00001e00000208000000050a000000010000d0"
    "020000040800000006ba0200000400000064cc93099370e246aaaa210521425a2964020b434f4e54524f4c4c45520a313237"
    "2e302e302e315fde0000000001000000000065ca6fdd490e144074bb967fd344a2f236020b434f4e54524f4c4c45520a3132"
    "372e302e302e3167cc0000000001000000000066d6c0cdda41d94e0281dce57d483dd79a020b434f4e54524f4c4c45520a31"
    "32372e302e302e3171af00000000010000000000000000000000030000003f0000000002b7295bbc002000000000000001a2"
    "0ecd2e2c000001a20ecd2e2cffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)
"""00000000000000000000-0000000000.checkpoint as Kafka 4.3.1's ``kafka-storage.sh format --initial-controllers`` wrote
it for three controllers."""


def test_control_records_of_a_checkpoint_are_written_as_kafka_wrote_them() -> None:
    batches = read(CHECKPOINT_OF_KAFKA, of_checkpoint=True)
    (_, level, voters), (end,) = (batch.records for batch in batches)
    assert level == rec.KRaftVersion(1)
    assert isinstance(voters, rec.Voters)
    assert [(one.node, one.directory_id) for one in voters.voters] == [
        (100, "zJMJk3DiRqqqIQUhQlopZA"),
        (101, "ym_dSQ4UQHS7ln_TRKLyNg"),
        (102, "1sDN2kHZTgKB3OV9SD3Xmg"),
    ]
    assert voters.voters[0].endpoints == (rec.Endpoint("CONTROLLER", "127.0.0.1", 24542),)
    assert end == rec.SnapshotEnds()
    again = [encode_batch(one.base_offset, one.epoch, one.timestamp_ms, one.records) for one in batches]
    assert b"".join(again) == CHECKPOINT_OF_KAFKA
    image = MetadataImage()
    for batch in batches:
        image.apply(batch)
    assert (image.kraft_version, image.voter_set) == (1, voters.voters)
