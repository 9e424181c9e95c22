"""What a node of the lab has on disk, beside its logs: saved high watermarks, its last words, and an obstacle."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_OBSTACLE = "lost+found"


def saved_high_watermarks(data: Path, topic: str) -> Mapping[int, int]:
    """Partition to high watermark, as the broker last saved it (replication-offset-checkpoint)."""
    try:
        lines = (data / "replication-offset-checkpoint").read_text().splitlines()[2:]
    except FileNotFoundError:
        return {}
    fields = (line.rsplit(" ", 2) for line in lines)
    return {int(partition): int(offset) for name, partition, offset in fields if name == topic}


def put_obstacle(data: Path) -> None:
    """A ``lost+found`` in the log directory, as a file system check leaves one at a mount point: the broker that finds
    it registers, and then dies while it loads its logs."""
    (data / _OBSTACLE).mkdir(exist_ok=True)


def clear_obstacle(data: Path) -> None:
    """Undo `put_obstacle`."""
    with suppress(FileNotFoundError):
        (data / _OBSTACLE).rmdir()


def last_words(output: Path) -> str:
    """The end of what a node printed, set in from the line before, stack traces left out; empty where it is gone."""
    try:
        text = output.read_text(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return "".join(f"\n  | {line[:300]}" for line in lines[-15:])
