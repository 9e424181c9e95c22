"""The shell lines that put findings right: Kafka's own tools, with ``{stock}`` for their connection flags."""

from __future__ import annotations

import json
import shlex
import zlib
from collections.abc import Mapping, Sequence

from kelr.engine.advice.commands import ALTER_CONFIGS, STOCK_CONNECTION
from kelr.model import Cluster

MOST_MOVED = 50
"""Partitions that one printed line reassigns at most; a longer one is no line that anybody reads before running it."""


def topic_configs_gone(topic: str, *names: str) -> str:
    """Takes configs of a topic away."""
    return f"{ALTER_CONFIGS} --entity-type topics --entity-name {shlex.quote(topic)} --delete-config {','.join(names)}"


def default_config(name: str, value: str) -> str:
    """Sets a dynamic default of the whole cluster."""
    return f"{ALTER_CONFIGS} --entity-type brokers --entity-default --add-config {name}={value}"


def default_configs_gone(*names: str) -> str:
    return f"{ALTER_CONFIGS} --entity-type brokers --entity-default --delete-config {','.join(names)}"


def broker_configs_gone(broker: int, *names: str) -> str:
    return f"{ALTER_CONFIGS} --entity-type brokers --entity-name {broker} --delete-config {','.join(names)}"


def raise_features(levels: Mapping[str, int]) -> str:
    """Raises feature levels, all or none."""
    features = " ".join(f"--feature {shlex.quote(name)}={level}" for name, level in sorted(levels.items()))
    return f"kafka-features.sh {STOCK_CONNECTION} upgrade {features}"


def lower_feature(name: str, level: int) -> str:
    return f"kafka-features.sh {STOCK_CONNECTION} downgrade --feature {name}={level}"


def reassign(topic: str, assignments: Mapping[int, Sequence[int]]) -> str | None:
    """Writes the assignment to a file and carries it out; None where it is too long for a line."""
    if not assignments or len(assignments) > MOST_MOVED:
        return None
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for number, replicas in sorted(assignments.items())
    ]
    text = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    file = shlex.quote(f"{topic}.json")
    return (
        f"echo {shlex.quote(text)} > {file} &&"
        f" kafka-reassign-partitions.sh {STOCK_CONNECTION} --reassignment-json-file {file} --execute"
    )


def more_replicas(cluster: Cluster, topic: str, number: int, replicas: Sequence[int], count: int) -> tuple[int, ...]:
    """The replicas with live brokers behind them, up to `count`: other racks first, and not always the same brokers.
    As it is where there are not so many."""
    found = list(replicas)
    while len(found) < count:
        added = _next(cluster, topic, number, found)
        if added is None:
            return tuple(replicas)
        found.append(added)
    return tuple(found)


def spread(cluster: Cluster, topic: str, number: int, replicas: Sequence[int]) -> tuple[int, ...] | None:
    """The replicas with the last one replaced by a live broker of another rack; None where there is none."""
    kept = list(replicas[:-1])
    added = _next(cluster, topic, number, kept, other_rack=True)
    return None if added is None else (*kept, added)


def _next(cluster: Cluster, topic: str, number: int, taken: Sequence[int], *, other_rack: bool = False) -> int | None:
    racks = {rack_of(cluster, one) for one in taken}
    free = sorted(cluster.live - set(taken))
    elsewhere = [one for one in free if rack_of(cluster, one) not in racks]
    choice = elsewhere if elsewhere or other_rack else free
    # The same answer for the same partition, and another one for its neighbours.
    return choice[(zlib.crc32(topic.encode()) + number) % len(choice)] if choice else None


def rack_of(cluster: Cluster, broker: int) -> str | None:
    known = cluster.broker(broker)
    return None if known is None else known.rack
