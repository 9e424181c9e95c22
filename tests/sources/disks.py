"""Builds a broker's log directory as Kafka leaves one, from batches that kafka-python encodes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.record.default_records import DefaultRecordBatchBuilder

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
TOPIC_ID = "oSNx-MM6QOmtD1MAN56DDg"
OTHER_TOPIC_ID = "bbbbbbbbQOmtD1MAN56DDg"
DIRECTORY_ID = "SukGHeybTqSFiTKFg73fMA"


@dataclass(frozen=True)
class Run:
    """Batches of one leader epoch: so many of so many records each."""

    epoch: int
    batches: int
    records: int = 5


def batch(base_offset: int, epoch: int, records: int = 5, *, fill: bytes = b"x" * 20) -> bytes:
    """One record batch of magic 2."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000_000,
    )
    for number in range(records):
        assert builder.append(number, 1_700_000_000_000 + number, b"key", fill, []) is not None
    content = bytearray(builder.build())
    struct.pack_into(">q", content, 0, base_offset)  # neither is covered by the checksum
    struct.pack_into(">i", content, 12, epoch)
    return bytes(content)


def batches(first_offset: int, runs: Iterable[Run]) -> list[bytes]:
    """Batches one after the other, from this offset on."""
    found, offset = [], first_offset
    for run in runs:
        for _ in range(run.batches):
            found.append(batch(offset, run.epoch, run.records))
            offset += run.records
    return found


class DiskReplica:
    """The directory of one replica, to be filled."""

    def __init__(self, path: Path, topic_id: str | None = TOPIC_ID) -> None:
        self.path = path
        path.mkdir(parents=True)
        if topic_id is not None:
            (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")

    def segment(self, base: int, content: Sequence[bytes], *, index: str = "last") -> Path:
        """A segment of these batches.

        Args:
            index: ``last`` points at the last batch, ``empty`` holds nothing, ``none`` is no file, ``zeros`` is one
                that was set aside and not used.
        """
        log = self.path / f"{base:020d}.log"
        log.write_bytes(b"".join(content))
        at = log.with_suffix(".index")
        if index == "last" and content:
            position = sum(map(len, content[:-1]))
            first, delta = struct.unpack_from(">q", content[-1])[0], struct.unpack_from(">i", content[-1], 23)[0]
            at.write_bytes(struct.pack(">ii", first + delta - base, position) if position else b"")
        elif index == "zeros":
            at.write_bytes(bytes(800))
        elif index != "none":
            at.write_bytes(b"")
        return log

    def epochs(self, *entries: tuple[int, int]) -> None:
        """leader-epoch-checkpoint of (epoch, start offset)."""
        lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
        (self.path / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")


class Disk:
    """A broker's log directory, to be filled."""

    def __init__(
        self, path: Path, broker: int = 1, *, cluster_id: str = CLUSTER_ID, directory_id: str = DIRECTORY_ID
    ) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        (path / "meta.properties").write_text(
            f"#\n#Sat Nov 21 19:20:00 UTC 2026\nversion=1\ncluster.id={cluster_id}\nnode.id={broker}\n"
            f"directory.id={directory_id}\n"
        )
        (path / ".lock").touch()

    def replica(self, name: str, topic_id: str | None = TOPIC_ID) -> DiskReplica:
        return DiskReplica(self.path / name, topic_id)

    def filled(
        self, name: str = "orders-0", runs: Sequence[Run] = (Run(0, 4), Run(2, 2)), base: int = 0
    ) -> DiskReplica:
        """A replica with one segment of these runs, its epochs, and a high watermark at its end."""
        replica = self.replica(name)
        replica.segment(base, batches(base, runs))
        entries, offset = [], base
        for run in runs:
            entries.append((run.epoch, offset))
            offset += run.batches * run.records
        replica.epochs(*entries)
        self.high_watermarks(**{name: offset})
        return replica

    def high_watermarks(self, **offsets: int) -> None:
        self.checkpoint("replication-offset-checkpoint", offsets)

    def checkpoint(self, name: str, offsets: Mapping[str, int]) -> None:
        """An offset checkpoint: replica name to offset."""
        lines = ["0", str(len(offsets))]
        lines += [
            f"{replica.rpartition('-')[0]} {replica.rpartition('-')[2]} {offset}" for replica, offset in offsets.items()
        ]
        (self.path / name).write_text("\n".join(lines) + "\n")

    def clean(self, broker_epoch: int | None = 77) -> None:
        """The mark of a clean shutdown."""
        (self.path / ".kafka_cleanshutdown").write_text(json.dumps({"version": 0, "brokerEpoch": broker_epoch}))
