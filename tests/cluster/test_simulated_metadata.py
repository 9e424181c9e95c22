"""The metadata log of a simulated cluster is read by Apache's own tool, record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from kelr.controller import Election, events
from kelr.lab import Lab
from kelr.lab.simulated.world import World, id_text
from kelr.protocol import metadata_records as metadata
from kelr.protocol.codec import Struct
from kelr.simulation.logs import Acks
from tests.lab.simulated.replayed import HUMPS, records
from tests.lab.simulated.stories import ORDERS, cluster

PAYLOAD = "payload: "


def story() -> World:
    """Something of every kind: brokers that come and go, partitions, configs, topics, reassignments, elections."""
    world = cluster("elr-4.3", (1, 2, 3), brokers=4, topics=2, partitions=3).world
    running = world.running
    running.produce(ORDERS, 10, Acks.ALL)
    running.ask(events.ConfigWritten("orders", min_isr=3))
    for broker in (3, 2, 1):
        running.kill(broker)
        running.expire(broker)
    for broker in (2, 3):
        running.start(broker)
        running.advance(running.now_ms + 100)
    running.ask(events.ConfigWritten("orders", min_isr=2))
    running.start(1)
    running.advance(running.now_ms + 100)
    running.ask(events.LeadersElected(Election.UNCLEAN, (ORDERS,)))
    running.ask(events.Reassigned(ORDERS, (4, 2, 3)))
    running.advance(running.now_ms + 100)
    running.stop(2)
    running.ask(events.BrokerUnregistered(2))
    running.ask(events.TopicCreated("short-lived", ((1, 3, 4),)))
    running.ask(events.TopicDeleted("short-lived"))
    world.forget_topic("short-lived")
    world.topic_configs["orders"] = {"retention.ms": "1000"}
    return world


def payloads(output: str) -> list[dict[str, Any]]:
    return [json.loads(line.split(PAYLOAD, 1)[1]) for line in output.splitlines() if PAYLOAD in line]


def test_apaches_tool_reads_every_record_as_it_was_written(lab_43: Lab, tmp_path: Path) -> None:
    world = story()
    segment = tmp_path / "__cluster_metadata-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(world.metadata.read(0))

    done = lab_43.stock_tool("kafka-dump-log.sh", "--cluster-metadata-decoder", "--files", str(segment))
    assert "isvalid: false" not in done.stdout
    found = payloads(done.stdout)
    written = [metadata.decode(value) for _, value in records(segment.read_bytes())]
    assert len(found) == len(written) == world.metadata.end
    assert {kind for kind, _, _ in written} == set(metadata.KINDS)
    for read, (kind, version, record) in zip(found, written, strict=True):
        assert (read["type"], read["version"]) == (kafkas_name(kind), version)
        assert read["data"] == {name: as_json(record, name) for name in read["data"]}


def kafkas_name(kind: str) -> str:
    """``PARTITION_CHANGE_RECORD``."""
    return HUMPS.sub("_", kind).upper()


def as_json(record: Any, name: str) -> Any:
    """A field of a record as Kafka's tool prints it."""
    return plain(getattr(record, HUMPS.sub("_", name).lower()))


def plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return id_text(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Struct):
        return {camel(name): plain(getattr(value, name)) for name in value.FIELDS}
    return value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
