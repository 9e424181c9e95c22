"""The directories of a cluster's controllers, as they are found on their disks."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from kelr.fleet.generate.layout import CONTROLLERS
from kelr.fleet.generate.log import DIRECTORY, Checkpoint, MetadataLog
from kelr.fleet.generate.plan import ClusterPlan, Shape, made_id

_PLACE = struct.Struct(">qi")
_OVERHEAD = 12
"""Bytes before what a batch's length counts."""


def log_folder(cluster: Path, node: int) -> Path:
    """Where the metadata log of a controller is."""
    return cluster / f"node-{node}" / DIRECTORY


def write_nodes(plan: ClusterPlan, folder: Path, log: MetadataLog) -> None:
    """Complete the directory of the first controller, which has the whole log, and make those of others.

    Raises:
        OSError: something cannot be written.
    """
    first, second, third = CONTROLLERS
    source = log_folder(folder, first)
    _write_properties(plan, source.parent, first, log)
    if plan.shape is Shape.COPIES:
        _copy_that_ends_earlier(source, log_folder(folder, second))
        _write_properties(plan, log_folder(folder, second).parent, second, log)
        _copy_from_checkpoint(source, log_folder(folder, third), log, _kept(log))
        _write_properties(plan, log_folder(folder, third).parent, third, log)
    if plan.shape is Shape.CUT:
        _cut(source, log, _kept(log))


def _kept(log: MetadataLog) -> Checkpoint | None:
    """The oldest checkpoint that is kept, where older segments are deleted."""
    return log.checkpoints[len(log.checkpoints) // 2] if log.checkpoints else None


def _write_properties(plan: ClusterPlan, folder: Path, node: int, log: MetadataLog) -> None:
    lines = (
        "#",
        "#Mon Sep 07 00:00:00 UTC 2026",
        f"cluster.id={plan.cluster_id}",
        f"directory.id={made_id(f'{plan.seed}/directory/{node}')}",
        f"node.id={node}",
        "version=1",
    )
    (folder / "meta.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")
    voted = {"leaderId": log.leader, "leaderEpoch": log.epoch, "votedId": -1, "data_version": 1}
    (folder / DIRECTORY / "quorum-state").write_text(json.dumps(voted), encoding="utf-8")


def _copy_that_ends_earlier(source: Path, target: Path) -> None:
    """All files, but the last segment ends where two thirds of its batches do, and no checkpoint of later records."""
    target.mkdir(parents=True)
    segments = sorted(source.glob("*.log"))
    for path in segments[:-1]:
        shutil.copyfile(path, target / path.name)
    batches = list(batches_of(segments[-1].read_bytes()))
    held = batches[: max(1, len(batches) * 2 // 3)]
    (target / segments[-1].name).write_bytes(b"".join(held))
    last = _PLACE.unpack_from(held[-1])[0]
    for path in sorted(source.glob("*.checkpoint")):
        if int(path.name.partition("-")[0]) <= last:
            shutil.copyfile(path, target / path.name)


def _copy_from_checkpoint(source: Path, target: Path, log: MetadataLog, kept: Checkpoint | None) -> None:
    shutil.copytree(source, target)
    _cut(target, log, kept)


def _cut(folder: Path, log: MetadataLog, kept: Checkpoint | None) -> None:
    """Delete segments and checkpoints that are older than a checkpoint (KafkaRaftLog.maybeClean)."""
    if kept is None:
        return
    ends = [first for first, _ in log.segments[1:]]
    for (_, name), end in zip(log.segments, ends, strict=False):
        if end <= kept.end:
            (folder / name).unlink()
    for checkpoint in log.checkpoints:
        if checkpoint.end < kept.end:
            (folder / checkpoint.name).unlink()


def batches_of(content: bytes) -> Iterator[bytes]:
    """The batches of a segment."""
    at = 0
    while at < len(content):
        size = _OVERHEAD + _PLACE.unpack_from(content, at)[1]
        yield content[at : at + size]
        at += size
