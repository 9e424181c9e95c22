"""Which records each disk holds, as Kafka's own kafka-dump-log.sh reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kelr.lab import Lab

Keys = Mapping[int, Mapping[str, int]]
"""Partition to each record's key and offset."""
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) .* key: (?P<key>k\d+) payload: ")
_FILE = re.compile(r"Dumping .*-(?P<partition>\d+)/\d+\.log$")


def keys_on_disk(lab: Lab, disk: Path, topic: str) -> Keys:
    """The records in all segments of a topic under a Kafka log directory.

    The directory of a running broker can be read too, where nothing is being written to the topic.
    """
    segments = [str(segment) for segment in sorted(disk.glob(f"{topic}-*/*.log"))]
    if not segments:
        return {}
    done = lab.stock_tool("kafka-dump-log.sh", "--print-data-log", "--files", ",".join(segments), timeout_s=120)
    if done.returncode != 0:
        raise RuntimeError(f"kafka-dump-log.sh failed on {disk}: {done.stderr[-2000:]}")
    return read_dump(done.stdout)


def read_dump(text: str) -> Keys:
    """What ``kafka-dump-log.sh --print-data-log`` printed, for one or more segments."""
    found: dict[int, dict[str, int]] = {}
    keys: dict[str, int] = {}
    for line in text.splitlines():
        if header := _FILE.search(line):
            keys = found.setdefault(int(header["partition"]), {})
        elif record := _RECORD.match(line):
            keys[record["key"]] = int(record["offset"])
    return found
