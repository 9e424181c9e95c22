"""Which records each disk holds, as Kafka's own kafka-dump-log.sh reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kelr.lab import Lab

Keys = Mapping[int, Mapping[str, int]]
"""Partition to each record's key and offset."""
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) .* key: (?P<key>k\d+) payload: ")
_FILE = re.compile(r"Dumping (?P<directory>.*)/\d+\.log$")


def keys_on_disks(lab: Lab, disks: Mapping[int, Path], topic: str) -> Mapping[int, Keys]:
    """By broker, the records in all segments of a topic under its Kafka log directory.

    The directory of a running broker can be read too, where nothing is being written to the topic.
    """
    named = re.compile(rf"{re.escape(topic)}-(\d+)")
    places = {
        str(directory): (broker, int(match[1]))
        for broker, disk in sorted(disks.items())
        for directory in sorted(disk.iterdir())
        if (match := named.fullmatch(directory.name))
    }
    found: dict[int, dict[int, Mapping[str, int]]] = {broker: {} for broker in disks}
    segments = [str(segment) for directory in places for segment in sorted(Path(directory).glob("*.log"))]
    if not segments:
        return found
    done = lab.stock_tool("kafka-dump-log.sh", "--print-data-log", "--files", ",".join(segments), timeout_s=120)
    if done.returncode != 0:
        raise RuntimeError(f"kafka-dump-log.sh failed: {done.stderr[-2000:]}")
    for directory, keys in read_dump(done.stdout).items():
        broker, partition = places[directory]
        found[broker][partition] = keys
    return found


def read_dump(text: str) -> Mapping[str, Mapping[str, int]]:
    """What ``kafka-dump-log.sh --print-data-log`` printed: by directory, the keys and offsets of its segments."""
    found: dict[str, dict[str, int]] = {}
    keys: dict[str, int] = {}
    for line in text.splitlines():
        if header := _FILE.search(line):
            keys = found.setdefault(header["directory"], {})
        elif record := _RECORD.match(line):
            keys[record["key"]] = int(record["offset"])
    return found
