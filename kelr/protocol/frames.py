"""Frames: a size, a header, a message. Both sides of a connection make and read them here.

Source: Kafka's RequestHeader.json and ResponseHeader.json; KIP-511 for ApiVersions, whose answer keeps the first header
in all versions, since its reader cannot know yet which one was taken.
"""

from __future__ import annotations

import struct

from kelr.protocol.codec import MalformedError, Message, decoded, skipped_tags

API_VERSIONS_KEY = 18
_HEADER = struct.Struct(">hhih")


def request_frame(message: Message, version: int, *, correlation: int, client_id: str) -> bytes:
    """A request in this version, with its size in front."""
    name = client_id.encode("utf-8")
    header = _HEADER.pack(message.API_KEY, version, correlation, len(name)) + name
    frame = header + (b"\x00" if message.is_flexible(version) else b"") + message.encode(version)
    return struct.pack(">i", len(frame)) + frame


def read_request(kind: type[Message], frame: bytes, version: int) -> Message:
    """A request out of its frame without the size, as a broker gets it.

    What follows it is passed over, as Kafka does: librdkafka sends more than belongs to a Metadata request.

    Raises:
        MalformedError: the bytes are cut short, or make no sense.
    """
    if len(frame) < _HEADER.size:
        raise MalformedError("the header is cut short")
    length: int = _HEADER.unpack_from(frame)[3]
    at = _HEADER.size + max(length, 0)
    if at > len(frame) or length < -1:
        raise MalformedError("the client id is cut short")
    if kind.is_flexible(version):
        _, at = decoded(_skip, frame, at)
    return kind.decode_start(frame, version, at)[0]


def answer_head(kind: type[Message], version: int, correlation: int) -> bytes:
    """The header of an answer of this kind."""
    return struct.pack(">i", correlation) + (b"\x00" if _has_tags(kind, version) else b"")


def read_answer_head(kind: type[Message], frame: bytes, version: int) -> tuple[int, int]:
    """The correlation id in front of an answer, and the position behind the header.

    Raises:
        MalformedError: the bytes are cut short.
    """
    if len(frame) < 4:
        raise MalformedError("the header is cut short")
    correlation = int.from_bytes(frame[:4], "big", signed=True)
    return correlation, decoded(_skip, frame, 4)[1] if _has_tags(kind, version) else 4


def _has_tags(kind: type[Message], version: int) -> bool:
    return kind.is_flexible(version) and kind.API_KEY != API_VERSIONS_KEY


def _skip(data: bytes, at: int) -> tuple[None, int]:
    return None, skipped_tags(data, at)
