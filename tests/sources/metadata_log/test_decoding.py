"""Records of the metadata log from their bytes, set against kafka-python's encoder and Kafka's schemas."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.protocol import metadata_records as metadata
from kelr.replay import records as rec
from kelr.sources.metadata_log.decoding import READERS, decode
from kelr.sources.records.errors import UnreadableBatchError
from tests.properties import examples
from tests.sources.metadata_log.random_records import records, says

LOOKED_INTO = list(READERS)
TOPIC = bytes(range(16))
CHANGE = b"\x01\x05\x02\x00\x00\x00\x07" + TOPIC


@pytest.mark.parametrize("kind", metadata.ALL_KINDS)
@examples(40)
@given(data=st.data())
def test_a_record_says_what_its_fields_say(kind: str, data: st.DataObject) -> None:
    version, fields = data.draw(records(kind))
    assert decode(metadata.encode(kind, version, fields)) == says(kind, fields)


@pytest.mark.parametrize("kind", LOOKED_INTO)
@examples(40)
@given(data=st.data())
def test_a_record_that_is_cut_or_too_long_is_refused(kind: str, data: st.DataObject) -> None:
    version, fields = data.draw(records(kind))
    value = metadata.encode(kind, version, fields)
    with pytest.raises(UnreadableBatchError):
        decode(value[: data.draw(st.integers(0, len(value) - 1))])
    with pytest.raises(UnreadableBatchError, match=f"{kind} of version {version}: 1 bytes follow"):
        decode(value + b"\0")


@given(st.binary(max_size=80), st.sampled_from([b"", *(bytes((1, key)) for key in metadata.KIND_OF_KEY)]))
def test_garbage_is_a_record_or_refused_and_nothing_else(rest: bytes, head: bytes) -> None:
    try:
        found = decode(head + rest)
    except UnreadableBatchError:
        return
    assert isinstance(found, rec.MetadataRecord)


@examples(40)
@given(data=st.data())
def test_a_record_with_changed_bytes_is_another_record_or_refused(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(LOOKED_INTO))
    version, fields = data.draw(records(kind))
    value = bytearray(metadata.encode(kind, version, fields))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(2, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(value))
    except UnreadableBatchError:
        return
    assert isinstance(found, rec.MetadataRecord)


def test_an_unknown_tagged_field_is_skipped() -> None:
    value = CHANGE + b"\x03\x00\x05\x02\x00\x00\x00\x09" + b"\x1e\x02ab" + b"\x1f\x00"
    assert decode(value) == rec.PartitionChanged("AAECAwQFBgcICQoLDA0ODw", 7, isr=(9,))


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        (b"\x01\x00\xff\xff\xff\xff\x0f\x02", "longer than any"),
        (b"\xff\xff\xff\xff\x0f", "longer than any"),
        (b"\x01\x00\x05\xff\xff\xff\xff\x0f", "longer than any"),
        (b"\x01\x00\x06\x02\x00\x00\x00\x09\x00", "another length than it says"),
        (b"\x02" + b"\x00\x05\x02\x00\x00\x00\x09" * 2, "tagged fields make no sense"),
        (b"\x80\x80\x80\x80\x80\x01", "longer than any"),
    ],
    ids=["a size", "a count", "a list", "a wrong size", "twice", "a number"],
)
def test_hostile_lengths_are_refused(tags: bytes, why: str) -> None:
    with pytest.raises(UnreadableBatchError, match=why):
        decode(CHANGE + tags)


def test_a_list_of_structs_that_cannot_be_there_is_refused_before_it_is_read() -> None:
    registered = b"\x01\x00\x00" + bytes(4) + TOPIC + bytes(8)
    with pytest.raises(UnreadableBatchError, match="end_points is cut short"):
        decode(registered + b"\x80\x80\x80\x80\x01" + bytes(20))


def test_a_tagged_field_that_the_version_does_not_have_is_refused_as_kafka_does() -> None:
    directories = b"\x01\x08\x11\x02" + TOPIC
    assert decode(b"\x01\x05\x01" + CHANGE[3:] + directories) == rec.PartitionChanged(
        "AAECAwQFBgcICQoLDA0ODw", 7, directories=("AAECAwQFBgcICQoLDA0ODw",)
    )
    with pytest.raises(UnreadableBatchError, match="tag 8 is not valid for version 0"):
        decode(b"\x01\x05\x00" + CHANGE[3:] + directories)


@pytest.mark.parametrize("fenced", [2, -2, 127])
def test_a_number_that_kafka_does_not_know_is_refused(fenced: int) -> None:
    with pytest.raises(UnreadableBatchError, match=f"fenced is {fenced}"):
        decode(
            metadata.encode("BrokerRegistrationChangeRecord", 0, {"broker_id": 1, "broker_epoch": 2, "fenced": fenced})
        )


def test_unknown_kinds_and_newer_versions_are_said_so() -> None:
    assert decode(b"\x01\xc8\x01\x03whatever") == rec.NotUnderstood(200, 3, None)
    assert decode(b"\x01\x05\x03whatever") == rec.NotUnderstood(5, 3, "PartitionChangeRecord")
    assert decode(b"\x01\x14\x01") == rec.NotUnderstood(20, 1, "NoOpRecord")


def test_another_frame_is_refused() -> None:
    with pytest.raises(UnreadableBatchError, match="a frame of version 2"):
        decode(b"\x02\x05\x02")


def test_kafka_python_is_not_loaded_for_reading() -> None:
    text = "import sys, kelr.sources.metadata_log.reading; print('kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
