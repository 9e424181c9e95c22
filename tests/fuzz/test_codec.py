"""Messages decoded to the letter: what is true is read as kafka-python reads it, and nothing else passes."""

from __future__ import annotations

import struct
import time
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.protocol.codec import MalformedError, message_class
from kelr.protocol.frames import read_answer_head, read_request, request_frame
from kelr.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeTopicPartitionsResponse,
    FetchResponse,
    ListOffsetsResponse,
    MetadataResponse,
)
from kelr.sources.live.requests import authorized
from tests.fuzz.messages import answers, messages, mutated, mutations
from tests.properties import examples

kinds = st.sampled_from(answers())


def beside(ours: Any, theirs: Any, version: int) -> None:
    """Both say the same, field by field, in what this version has."""
    for name, field in type(ours).FIELDS.items():
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        one = getattr(ours, name)
        if name.endswith("authorized_operations") and not hasattr(theirs, name):
            assert authorized(one) == theirs.authorized_operations  # the same bits, as a set of numbers
            continue
        if field.tag is not None and name not in (theirs.tags or ()):
            assert one == field.given()
            continue
        other = getattr(theirs, name)
        if field.struct is None or other is None:
            assert one == other, name
        else:
            for a, b in zip(one, other, strict=True) if field.is_array else ((one, other),):
                beside(a, b, version)


@given(st.data(), kinds)
@examples(400)
def test_a_true_answer_is_read_as_kafka_python_reads_it(data: st.DataObject, kind: tuple[Any, int]) -> None:
    response, version = kind
    written = data.draw(messages(response, version))
    if response.__name__ == "ApiVersionsResponse":
        written.error_code = 0  # kafka-python reads every other one in version 0
    body = bytes(written.encode(version=version))
    read = message_class(response.__name__).decode(body, version)
    beside(read, response.decode(body, version=version), version)
    assert read.version == version
    again = response.decode(read.encode(version), version=version)
    beside(read, again, version)


@given(st.data(), kinds, mutations())
@examples(600)
def test_other_bytes_are_a_message_to_the_last_byte_or_malformed(
    data: st.DataObject, kind: tuple[Any, int], changes: Any
) -> None:
    response, version = kind
    body = mutated(bytes(data.draw(messages(response, version)).encode(version=version)), changes)
    ours = message_class(response.__name__)
    try:
        read = ours.decode(body, version)
    except MalformedError:
        return
    # Varints and truths have several spellings, so that not every message comes out as the bytes it was read from.
    assert repr(ours.decode(read.encode(version), version)) == repr(read)


@given(st.data(), kinds)
@examples(200)
def test_an_answer_that_is_cut_short_anywhere_is_malformed(data: st.DataObject, kind: tuple[Any, int]) -> None:
    response, version = kind
    body = bytes(data.draw(messages(response, version)).encode(version=version))
    ours = message_class(response.__name__)
    at = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(MalformedError):
        ours.decode(body[:at], version)
    with pytest.raises(MalformedError):
        ours.decode(body + b"\0", version)


def metadata(version: int, **changes: Any) -> bytes:
    fields: dict[str, Any] = {"throttle_time_ms": 0, "brokers": [], "cluster_id": "x", "controller_id": 1, "topics": []}
    return MetadataResponse(**{**fields, **changes}).encode(version)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "version", "body"),
    [
        pytest.param(MetadataResponse, 8, struct.pack(">ii", 0, 2**31 - 1), id="two thousand million brokers"),
        pytest.param(MetadataResponse, 8, struct.pack(">ii", 0, -2), id="fewer than no brokers"),
        pytest.param(MetadataResponse, 8, struct.pack(">ii", 0, -1), id="brokers null"),
        pytest.param(MetadataResponse, 9, struct.pack(">i", 0) + b"\xff\xff\xff\xff\x07", id="compact: the most"),
        pytest.param(MetadataResponse, 9, struct.pack(">i", 0) + b"\xff\xff\xff\xff\x0f", id="compact: 32 bits"),
        pytest.param(MetadataResponse, 9, struct.pack(">i", 0) + b"\xff" * 10, id="a varint of ten bytes"),
        pytest.param(FetchResponse, 11, struct.pack(">ihii", 0, 0, 0, 2**31 - 1), id="topics"),
        pytest.param(
            FetchResponse,
            11,
            struct.pack(">ihii", 0, 0, 0, 1)
            + struct.pack(">h1si", 1, b"t", 1)
            + struct.pack(">ihqqqiii", 0, 0, 5, 5, 0, -1, -1, 2**31 - 1),
            id="two gigabytes of records",
        ),
        pytest.param(
            DescribeTopicPartitionsResponse,
            0,
            struct.pack(">i", 0) + b"\x02" + struct.pack(">h", 0) + b"\xff\xff\xff\xff\x07",
            id="a name of two gigabytes",
        ),
        pytest.param(ApiVersionsResponse, 3, struct.pack(">h", 0) + b"\xff\xff\xff\xff\x07", id="versions"),
        pytest.param(
            ApiVersionsResponse, 3, struct.pack(">hBiB", 0, 1, 0, 0)[:-1] + b"\xff\xff\xff\xff\x07", id="tags"
        ),
    ],
)
def test_a_length_that_claims_gigabytes_makes_room_for_nothing(kind: Any, version: int, body: bytes) -> None:
    with pytest.raises(MalformedError):  # the decoder is made
        kind.decode(body, version)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError):
            kind.decode(body, version)
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()


def test_a_number_without_an_end_takes_no_time() -> None:
    began = time.process_time()
    with pytest.raises(MalformedError, match="longer than any"):
        MetadataResponse.decode(struct.pack(">i", 0) + b"\xff" * 10_000_000, 9)
    assert time.process_time() - began < 1


def test_tagged_fields_everywhere_take_no_more_time_than_their_bytes() -> None:
    """Each copy of what is left would be a gigabyte, and there are a hundred thousand of them."""
    count = 100_000
    partition = struct.pack(">ihqq", 0, 0, 0, 0) + struct.pack(">i", 0) + b"\x01\x09\x01x"
    topic = b"\x02t" + b"\xa1\x8d\x06" + partition * count + b"\x00"
    body = struct.pack(">i", 0) + b"\x02" + topic + b"\x00"
    began = time.process_time()
    read = ListOffsetsResponse.decode(body, 6)
    assert len(read.topics[0].partitions) == count
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(b"\x02\x05\x00\x05\x00", id="twice"),
        pytest.param(b"\x02\x06\x00\x05\x00", id="out of order"),
        pytest.param(b"\x01\x05\x09x", id="longer than the message"),
    ],
)
def test_tagged_fields_that_make_no_sense_are_malformed(tags: bytes) -> None:
    body = metadata(9)
    assert MetadataResponse.decode(body, 9).cluster_id == "x"
    with pytest.raises(MalformedError, match="tagged fields"):
        MetadataResponse.decode(body[:-1] + tags, 9)


def test_a_known_tagged_field_is_as_long_as_it_says() -> None:
    answer = ApiVersionsResponse(
        version=3, error_code=0, api_keys=[], throttle_time_ms=0, finalized_features_epoch=7, finalized_features=[]
    )
    body = bytes(answer.encode(version=3))
    assert ApiVersionsResponse.decode(body, 3).finalized_features_epoch == 7
    at = body.index(b"\x01\x08" + struct.pack(">q", 7))
    with pytest.raises(MalformedError):
        ApiVersionsResponse.decode(body[: at + 1] + b"\x09" + body[at + 2 :] + b"\0", 3)


@given(st.binary(max_size=60), st.integers(0, 4))
def test_any_frame_is_a_request_or_malformed(frame: bytes, version: int) -> None:
    with suppress(MalformedError):
        read_request(ApiVersionsRequest, frame, version)


def test_a_request_is_read_behind_its_header() -> None:
    asked = ApiVersionsRequest(client_software_name="kelr", client_software_version="1")
    frame = request_frame(asked, 3, correlation=5, client_id="tests")[4:]
    assert read_request(ApiVersionsRequest, frame, 3).client_software_name == "kelr"
    # librdkafka sends three bytes too many with Metadata 13, and Kafka passes them over.
    assert read_request(ApiVersionsRequest, frame + b"\0\0\0", 3).client_software_name == "kelr"


@given(st.binary(max_size=30), st.sampled_from([0, 8, 9, 12]))
def test_any_bytes_have_a_header_in_front_or_are_malformed(data: bytes, version: int) -> None:
    try:
        correlation, at = read_answer_head(MetadataResponse, data, version)
    except MalformedError:
        assert len(data) < 4 or version >= 9
        return
    assert correlation == struct.unpack(">i", data[:4])[0]
    assert 4 <= at <= len(data)
