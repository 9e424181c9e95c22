"""Metadata logs made for tests: batches as bytes, and directories of segments and checkpoints as nodes have them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from kelr.lab.simulated.contents import NewRecord, encoded, placed
from kelr.protocol import metadata_records as metadata
from kelr.sources.records.crc32c import crc32c

ORDERS = UUID(int=77)
START_MS = 1_760_000_000_000
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"

_CONTROL = 0x20
_LEADER_CHANGE, _HEADER, _FOOTER = 2, 3, 4


def batch(offset: int, *records: tuple[str, int, dict[str, Any]], epoch: int = 1, at_ms: int | None = None) -> bytes:
    """One batch of (kind, version, fields) at an offset; written a second after START_MS for each offset."""
    when = START_MS + 1000 * offset if at_ms is None else at_ms
    values = [metadata.encode(kind, version, fields) for kind, version, fields in records]
    return placed(encoded([NewRecord(when, None, value) for value in values]), offset, epoch)


def control(offset: int, *records: tuple[int, bytes], epoch: int = 1, at_ms: int = START_MS) -> bytes:
    """A batch of control records: (type, value)."""
    made = bytearray(encoded([NewRecord(at_ms, struct.pack(">hh", 0, kind), value) for kind, value in records]))
    made[22] |= _CONTROL
    made[17:21] = struct.pack(">I", crc32c(bytes(made[21:])))
    return placed(bytes(made), offset, epoch)


def leader_change(offset: int, controller: int, voters: Sequence[int], *, epoch: int = 1) -> bytes:
    """LeaderChangeMessage, version 0."""
    listed = bytes([len(voters) + 1]) + b"".join(struct.pack(">i", voter) + b"\x00" for voter in voters)
    return control(offset, (_LEADER_CHANGE, struct.pack(">hi", 0, controller) + listed + listed + b"\x00"), epoch=epoch)


def checkpoint(*batches: tuple[tuple[str, int, dict[str, Any]], ...], contained_ms: int, footer: bool = True) -> bytes:
    """A checkpoint of these batches' records, whose own offsets begin at 0."""
    data = control(0, (_HEADER, struct.pack(">hq", 0, contained_ms) + b"\x00"))
    offset = 1
    for records in batches:
        data += batch(offset, *records, at_ms=contained_ms + 60_000)
        offset += len(records)
    return data + control(offset, (_FOOTER, struct.pack(">h", 0) + b"\x00")) if footer else data


def topic(name: str = "orders", topic_id: UUID = ORDERS) -> tuple[str, int, dict[str, Any]]:
    return ("TopicRecord", 0, {"name": name, "topic_id": topic_id})


def partition(number: int = 0, *, leader: int = 1, isr: Sequence[int] = (1, 2, 3)) -> tuple[str, int, dict[str, Any]]:
    """A partition of ``orders`` on brokers 1, 2 and 3."""
    fields = {
        "partition_id": number,
        "topic_id": ORDERS,
        "replicas": [1, 2, 3],
        "isr": list(isr),
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": leader,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return ("PartitionRecord", 0, fields)


def shrunk(number: int = 0, *, isr: Sequence[int] = (1, 2), leader: int = -2) -> tuple[str, int, dict[str, Any]]:
    """A change of a partition of ``orders``; leader -2: as it was."""
    fields = {"partition_id": number, "topic_id": ORDERS, "isr": list(isr), "leader": leader}
    return ("PartitionChangeRecord", 0, fields)


def node_directory(
    parent: Path,
    segments: dict[int, bytes],
    checkpoints: dict[tuple[int, int], bytes] | None = None,
    *,
    node: int = 1,
    cluster_id: str = CLUSTER_ID,
) -> Path:
    """A node's metadata.log.dir with `segments` by base offset and `checkpoints` by (end offset, epoch)."""
    log = parent / "__cluster_metadata-0"
    log.mkdir(parents=True)
    text = f"version=1\ncluster.id={cluster_id}\nnode.id={node}\n"
    (parent / "meta.properties").write_text(text, encoding="ascii")
    for base, data in segments.items():
        (log / f"{base:020}.log").write_bytes(data)
        (log / f"{base:020}.index").write_bytes(b"\x00" * 64)
    for (end, epoch), data in (checkpoints or {}).items():
        (log / f"{end:020}-{epoch:010}.checkpoint").write_bytes(data)
    return parent


def story() -> list[bytes]:
    """A leader, a topic of two partitions, and changes, in batches at offsets 0, 1, 4, 5, 6, 7."""
    return [
        leader_change(0, 1, [1]),
        batch(1, topic(), partition(0), partition(1)),
        batch(4, shrunk(0, isr=(1, 2))),
        batch(5, shrunk(0, isr=(1,))),
        batch(6, shrunk(0, isr=(1,), leader=-1)),
        batch(7, shrunk(1, isr=(2, 3), leader=2)),
    ]


def joined(batches: Iterable[bytes]) -> bytes:
    return b"".join(batches)
