"""Nodes' directories with a metadata log, as Kafka leaves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kelr.quorum.archive import write_archive
from kelr.quorum.collect import collect_nodes
from kelr.replay import records as rec
from kelr.sources.metadata_log.writing import encode_batch, segment_name

CLUSTER = "q1Sh-9_ISia_zwGINzRvyQ"
TOPIC, LATE = "A" * 21 + "Q", "B" * 21 + "Q"
VOTERS = (100, 101, 102)
BROKER_ADDRESS = "b1:9092"


def directory_of(node: int) -> str:
    return f"{node:021d}A"


def voters(*nodes: int) -> rec.Voters:
    return rec.Voters(
        tuple(rec.Voter(node, directory_of(node), (rec.Endpoint("CONTROLLER", f"c{node}", 9093),)) for node in nodes)
    )


BEGINNING: tuple[tuple[int, tuple[rec.MetadataRecord, ...]], ...] = (
    (1, (rec.LeaderChanged(101, VOTERS), rec.KRaftVersion(1), voters(*VOTERS))),
    (1, (rec.FeatureLevel("metadata.version", 29),)),
    (1, (rec.BrokerRegistered(1, 4, "C" * 21 + "Q", False, False, None, (rec.Endpoint("PLAINTEXT", "b1", 9092),)),)),
    (1, (rec.TopicMade("early", TOPIC), rec.PartitionMade(TOPIC, 0, 1, 0, 0, (1,), (1,)))),
)
LATER: tuple[tuple[int, tuple[rec.MetadataRecord, ...]], ...] = (
    (2, (rec.LeaderChanged(102, VOTERS),)),
    (2, (rec.TopicMade("late", LATE), rec.PartitionMade(LATE, 0, 1, 0, 0, (1,), (1,)))),
    (2, (rec.PartitionChanged(TOPIC, 0, leader=1),)),
)


def log_bytes(
    batches: Sequence[tuple[int, tuple[rec.MetadataRecord, ...]]], first_offset: int = 0
) -> tuple[bytes, int]:
    """The bytes of a segment, and the offset behind it."""
    offset, parts = first_offset, []
    for epoch, records in batches:
        parts.append(encode_batch(offset, epoch, 1_795_000_000_000 + offset, records))
        offset += len(records)
    return b"".join(parts), offset


WHOLE, END = log_bytes([*BEGINNING, *LATER])
SHORT, SHORT_END = log_bytes(BEGINNING)


def write_node(
    path: Path,
    node: int,
    log: bytes | None,
    *,
    first_offset: int = 0,
    epoch: int | None = 2,
    directory: str | None = None,
    cluster: str = CLUSTER,
) -> Path:
    inside = path / "__cluster_metadata-0"
    inside.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory or directory_of(node)}\n"
    )
    if log is not None:
        (inside / segment_name(first_offset)).write_bytes(log)
    if epoch is not None:
        state = {"leaderId": -1, "leaderEpoch": epoch, "votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1}
        (inside / "quorum-state").write_text(json.dumps(state))
    (inside / "00000000000000000000.index").write_bytes(bytes(100))
    return path


def collect(
    tmp_path: Path, *paths: Path, name: str = "out.kelr-quorum", host: str = "h", at_ms: int = 1_795_000_000_000
) -> Path:
    """What `kelr quorum collect` writes of these directories."""
    out = tmp_path / name
    write_archive(collect_nodes(paths, host=host, clock_ms=lambda: at_ms), out, overwrite=True)
    return out


def write_replica(path: Path, topic: str, topic_id: str, epochs: Sequence[tuple[int, int]]) -> None:
    """A replica without records in a broker's directory."""
    inside = path / f"{topic}-0"
    inside.mkdir()
    (inside / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    lines = [f"{epoch} {start}" for epoch, start in epochs]
    (inside / "leader-epoch-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (inside / segment_name(0)).write_bytes(b"")
