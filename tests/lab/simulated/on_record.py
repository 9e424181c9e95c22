"""What kelr's own replay makes of a simulated cluster's metadata log is the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kelr.controller.snapshots import controller_state
from kelr.lab.simulated.world import World, id_text
from kelr.model import PartitionState, TopicPartition
from kelr.replay.image import MetadataImage
from kelr.replay.snapshots import snapshot_of_image
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.records.batches import StopKind


def replayed(data: bytes) -> MetadataImage:
    """The image of all these batches, every one of which is read."""
    image, reader = MetadataImage(), BatchReader(data)
    for batch in reader:
        image.apply(batch)
    assert reader.stop is not None
    assert reader.stop.kind is StopKind.END
    assert not image.misfits
    assert not image.not_understood
    return image


def check_replay(world: World, configs: Mapping[tuple[int, str, str], str]) -> None:
    """The image is the state machine's state, and the snapshot of it leads back to that state.

    Args:
        configs: (kind of resource, its name, the config) to value, all that are set.
    """
    image, state = replayed(world.metadata.read(0, 1 << 30)), world.running.cluster.controller
    expected = {}
    for topic in world.topics():
        for number in range(world.partitions(topic)):
            on_record = world.state(TopicPartition(topic, number))
            assert on_record is not None
            expected[on_record.address] = _recorded(replace(on_record, topic_id=id_text(world.topic_id(topic))))
    assert {found.address: _recorded(found) for found in image.partitions()} == expected
    assert {
        id_: (broker.registration.epoch, broker.fenced, broker.in_controlled_shutdown, broker.cordoned)
        for id_, broker in image.brokers.items()
    } == {id_: (one.epoch, one.fenced, one.in_controlled_shutdown, one.cordoned) for id_, one in state.brokers.items()}
    assert {
        (kind, resource, key): value
        for (kind, resource), values in image.configs.items()
        for key, value in values.items()
    } == dict(configs)

    snapshot = snapshot_of_image(image, cluster_id=world.cluster_id, source="metadata log")
    again = controller_state(snapshot, state.rules)
    assert {id_: (one.epoch, one.fenced, one.cordoned) for id_, one in again.brokers.items()} == {
        id_: (one.epoch, one.fenced, one.cordoned) for id_, one in state.brokers.items()
    }
    assert {address: _recorded(found) for address, found in again.partitions.items()} == expected
    assert snapshot.taken_at_ms <= world.running.now_ms


def _recorded(state: PartitionState) -> dict[str, Any]:
    return {
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": state.replicas,
        "isr": state.isr,
        "elr": state.elr or (),
        "last_known_elr": state.last_known_elr or (),
        "adding": state.adding or (),
        "removing": state.removing or (),
        "recovering": bool(state.recovering),
        "topic_id": state.topic_id,
    }
