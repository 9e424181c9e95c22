"""Which records each disk holds, as Kafka's own kafka-dump-log.sh reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kelr.lab import Lab

Keys = Mapping[int, Mapping[str, int]]
"""Partition to each record's key and offset."""
FIRST_MARKER = 10**15
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) .* (?:key|key: c\d+ payload): (?P<key>k\d+) ")
_EPOCH = re.compile(r"baseOffset: .* partitionLeaderEpoch: (?P<epoch>\d+) ")
_MARKER = re.compile(r"\| offset: (?P<offset>\d+) .* endTxnMarker: ")
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
    if not all(Path(segment).exists() for segment in segments):
        return keys_on_disks(lab, disks, topic)  # a log cleaner was at work
    if done.returncode != 0:
        raise RuntimeError(f"kafka-dump-log.sh failed: {done.stderr[-2000:]}")
    for directory, keys in read_dump(done.stdout).items():
        broker, partition = places[directory]
        found[broker][partition] = keys
    return found


def read_dump(text: str) -> Mapping[str, Mapping[str, int]]:
    """What ``kafka-dump-log.sh --print-data-log`` printed: by directory, the keys and offsets of its segments.

    A marker that ends a transaction has a key, too, from `FIRST_MARKER` on: of its epoch and offset, which no two
    records of a partition share.
    """
    found: dict[str, dict[str, int]] = {}
    keys: dict[str, int] = {}
    epoch = 0
    for line in text.splitlines():
        if header := _FILE.search(line):
            keys = found.setdefault(header["directory"], {})
        elif record := _RECORD.match(line):
            keys[record["key"]] = int(record["offset"])
        elif batch := _EPOCH.search(line):
            epoch = int(batch["epoch"])
        elif marker := _MARKER.match(line):
            keys[f"k{FIRST_MARKER + epoch * 10**9 + int(marker['offset'])}"] = int(marker["offset"])
    return found
