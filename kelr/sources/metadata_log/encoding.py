"""A record of the metadata log to its bytes, as Kafka 4.3 writes it; the inverse of `decoding`.

What kelr's records do not carry is written as Kafka's default: the security protocol of a listener is PLAINTEXT, the
lowest level of a supported feature 0.

Source: as for `decoding`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kelr.replay import records as rec
from kelr.replay.packed import key_of
from kelr.sources.metadata_log.fields import ID_SIZE

NO_OP_VALUE = b"\x01\x14\x00\x00"
"""The value of a NoOpRecord."""
_CHANGE_HEAD = b"\x01\x05\x02"
_KEPT = 1 << 16


# Numbers, strings and lists.


def unsigned(number: int) -> bytes:
    """A varint."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _text(text: str) -> bytes:
    raw = text.encode()
    return unsigned(len(raw) + 1) + raw


def _nullable_text(text: str | None) -> bytes:
    return b"\0" if text is None else _text(text)


@lru_cache(maxsize=_KEPT)
def _id(text: str) -> bytes:
    raw = key_of(text, 0)[4:]
    if len(raw) != ID_SIZE:
        raise ValueError(f"{text!r} is no id of {ID_SIZE} bytes")
    return raw


@lru_cache(maxsize=_KEPT)
def _key(topic_id: str, partition: int) -> bytes:
    return struct.pack(">i", partition) + _id(topic_id)


@lru_cache(maxsize=_KEPT)
def _numbers(members: tuple[int, ...]) -> bytes:
    return unsigned(len(members) + 1) + struct.pack(f">{len(members)}i", *members)


@lru_cache(maxsize=_KEPT)
def _ids(ids: tuple[str, ...]) -> bytes:
    return unsigned(len(ids) + 1) + b"".join(map(_id, ids))


def _tag(number: int, content: bytes) -> bytes:
    return unsigned(number) + unsigned(len(content)) + content


@lru_cache(maxsize=_KEPT)
def _tagged_numbers(tag: int, members: tuple[int, ...]) -> bytes:
    return _tag(tag, _numbers(members))


def _tags(*tags: bytes) -> bytes:
    there = [tag for tag in tags if tag]
    return unsigned(len(there)) + b"".join(there)


# Records.


def encode(record: rec.MetadataRecord) -> bytes:
    """The value of a record that is no control record, as Kafka 4.3 writes it.

    Raises:
        ValueError: it is of a kind whose content kelr does not look into, holds what no record can say, or an id in it
            is none.
    """
    writer = _WRITERS.get(type(record))
    if writer is None:
        raise ValueError(f"kelr does not know what is in it: {record}")
    return writer(record)


def encode_change(record: rec.PartitionChanged) -> bytes:
    """`encode` of a PartitionChangeRecord, for who writes millions of them."""
    tags = []
    if record.isr is not None:
        tags.append(_tagged_numbers(0, record.isr))
    if record.leader is not None:
        tags.append(b"\x01\x04" + struct.pack(">i", record.leader))
    if record.replicas is not None:
        tags.append(_tagged_numbers(2, record.replicas))
    if record.removing is not None:
        tags.append(_tagged_numbers(3, record.removing))
    if record.adding is not None:
        tags.append(_tagged_numbers(4, record.adding))
    if record.recovering is not None:
        tags.append(b"\x05\x01\x01" if record.recovering else b"\x05\x01\x00")
    if record.elr is not None:
        tags.append(_tagged_numbers(6, record.elr))
    if record.last_known_elr is not None:
        tags.append(_tagged_numbers(7, record.last_known_elr))
    if record.directories is not None:
        tags.append(_tag(8, _ids(record.directories)))
    return _CHANGE_HEAD + _key(record.topic_id, record.partition) + bytes((len(tags),)) + b"".join(tags)


def _partition_made(record: rec.PartitionMade) -> bytes:
    oldest = not record.directories and record.elr is None and record.last_known_elr is None
    return b"".join(
        (
            b"\x01\x03\x00" if oldest else b"\x01\x03\x02",
            _key(record.topic_id, record.partition),
            _numbers(record.replicas),
            _numbers(record.isr),
            _numbers(record.removing),
            _numbers(record.adding),
            struct.pack(">3i", record.leader, record.leader_epoch, record.partition_epoch),
            b"" if oldest else _ids(record.directories),
            _tags(
                b"\x00\x01\x01" if record.recovering else b"",
                b"" if record.elr is None else _tagged_numbers(1, record.elr),
                b"" if record.last_known_elr is None else _tagged_numbers(2, record.last_known_elr),
            ),
        )
    )


def _topic_made(record: rec.TopicMade) -> bytes:
    return b"\x01\x02\x00" + _text(record.name) + _id(record.topic_id) + b"\0"


def _topic_removed(record: rec.TopicRemoved) -> bytes:
    return b"\x01\x09\x00" + _id(record.topic_id) + b"\0"


def _elr_cleared(record: rec.ElrCleared) -> bytes:
    return b"\x01\x1c\x00" + _text(record.topic or "") + b"\0"


def _broker_registered(record: rec.BrokerRegistered) -> bytes:
    return b"".join(
        (
            b"\x01\x00" + (b"\x03" if record.cordoned is None else b"\x04"),
            struct.pack(">i?", record.broker, False),
            _id(record.incarnation),
            struct.pack(">q", record.epoch),
            unsigned(len(record.endpoints) + 1),
            *(_text(one.name) + _text(one.host) + struct.pack(">Hh", one.port, 0) + b"\0" for one in record.endpoints),
            unsigned(len(record.features) + 1),
            *(_text(name) + struct.pack(">hh", 0, level) + b"\0" for name, level in record.features.items()),
            _nullable_text(record.rack),
            struct.pack(">??", record.fenced, record.in_controlled_shutdown),
            _tags(
                _tag(0, _ids(record.directories)) if record.directories else b"",
                b"" if record.cordoned is None else _tag(1, _ids(record.cordoned)),
            ),
        )
    )


def _broker_unregistered(record: rec.BrokerUnregistered) -> bytes:
    return b"\x01\x01\x00" + struct.pack(">iq", record.broker, record.epoch) + b"\0"


def _broker_changed(record: rec.BrokerChanged) -> bytes:
    if record.in_controlled_shutdown is False:
        raise ValueError(f"no record takes a controlled shutdown back: {record}")
    oldest = 2 if record.directories else 1 if record.in_controlled_shutdown else 0
    version = oldest if record.cordoned is None else 3
    return b"".join(
        (
            bytes((1, 17, version)),
            struct.pack(">iq", record.broker, record.epoch),
            _tags(
                b"" if record.fenced is None else b"\x00\x01\x01" if record.fenced else b"\x00\x01\xff",
                b"\x01\x01\x01" if record.in_controlled_shutdown else b"",
                _tag(2, _ids(record.directories)) if record.directories else b"",
                b"" if record.cordoned is None else _tag(3, _ids(record.cordoned)),
            ),
        )
    )


def _controller_registered(record: rec.ControllerRegistered) -> bytes:
    return b"\x01\x1b\x00" + struct.pack(">i", record.controller) + _id(record.incarnation) + b"\0\x01\x01\0"


def _config_set(record: rec.ConfigSet) -> bytes:
    where = struct.pack(">b", record.resource_type) + _text(record.resource)
    return b"\x01\x04\x00" + where + _text(record.key) + _nullable_text(record.value) + b"\0"


def _feature_level(record: rec.FeatureLevel) -> bytes:
    return b"\x01\x0c\x00" + _text(record.name) + struct.pack(">h", record.level) + b"\0"


def _transaction(record: rec.TransactionMark) -> bytes:
    return bytes((1, {"begin": 23, "end": 24, "abort": 25}[record.kind], 0, 0))


def _irrelevant(record: rec.Irrelevant) -> bytes:
    if record.kind != "NoOpRecord":
        raise ValueError(f"kelr does not know what is in it: {record}")
    return NO_OP_VALUE


_WRITERS: Mapping[type, Callable[[Any], bytes]] = {
    rec.PartitionChanged: encode_change,
    rec.PartitionMade: _partition_made,
    rec.TopicMade: _topic_made,
    rec.TopicRemoved: _topic_removed,
    rec.ElrCleared: _elr_cleared,
    rec.BrokerRegistered: _broker_registered,
    rec.BrokerUnregistered: _broker_unregistered,
    rec.BrokerChanged: _broker_changed,
    rec.ControllerRegistered: _controller_registered,
    rec.ConfigSet: _config_set,
    rec.FeatureLevel: _feature_level,
    rec.TransactionMark: _transaction,
    rec.Irrelevant: _irrelevant,
}
