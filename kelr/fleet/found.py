"""What a checkpoint shows: everything where a log begins with it, and what is different where it stands in for records
that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.fleet.told import Told, config_row, feature_row, partition_row, seen_row, status_of
from kelr.replay.changes import At, BrokerOnRecord
from kelr.replay.history import Cause, CauseKind
from kelr.replay.history.min_isr import effective_min_isr
from kelr.replay.image import MetadataImage

_AS_FOUND = Cause(CauseKind.AS_FOUND)


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of the cluster, beside its partitions, before a checkpoint."""

    brokers: dict[int, BrokerOnRecord]
    features: dict[str, int]
    configs: dict[tuple[int, str], dict[str, str]]

    @classmethod
    def of(cls, image: MetadataImage) -> Known:
        configs = {resource: dict(values) for resource, values in image.configs.items()}
        return cls(dict(image.brokers), dict(image.features), configs)


def found_rows(image: MetadataImage, at: At, before: Known | None) -> Iterator[Told]:
    """What an image that a checkpoint has made shows, beside partitions.

    Args:
        at: the last record that the checkpoint contains.
        before: what was known before it; None where the log begins with it: all of it is told then.
    """
    brokers = {} if before is None else before.brokers
    for broker in sorted(brokers.keys() | image.brokers.keys()):
        was, now = brokers.get(broker), image.brokers.get(broker)
        if _seen(was) != _seen(now):
            yield seen_row(at, broker, was, now)
    features = {} if before is None else before.features
    for name in sorted(features.keys() | image.features.keys()):
        if features.get(name) != image.features.get(name):
            was_level = None if before is None else features.get(name, 0)
            yield feature_row(at, name, was_level, image.features.get(name))
    configs = {} if before is None else before.configs
    for resource in sorted(configs.keys() | image.configs.keys()):
        written, had = image.configs.get(resource, {}), configs.get(resource, {})
        for key in sorted(written.keys() | had.keys()):
            if written.get(key) != had.get(key):
                yield from config_row(at, resource, key, written.get(key))


def _seen(broker: BrokerOnRecord | None) -> object:
    """What a row of broker_events says of a broker."""
    if broker is None:
        return None
    told = broker.registration
    return status_of(broker), told.epoch, told.rack, told.endpoints[:1], dict(told.features)


def partitions_as_found(image: MetadataImage, at: At) -> Iterator[Told]:
    """Every partition, where the log begins with a checkpoint."""
    for name in sorted(image.names):
        min_isr = effective_min_isr(image, name)
        partitions = image.topics[image.names[name]].partitions
        for number in sorted(partitions):
            yield partition_row(at, partitions[number], min_isr, _AS_FOUND)
