"""Cordons of log directories on record (KIP-1066): a broker is cordoned where all that are online are."""

from __future__ import annotations

from dataclasses import replace

from kelr.replay.history.entries import BrokerEntry, BrokerEvent
from kelr.replay.image import MetadataImage
from kelr.replay.records import BrokerChanged
from kelr.replay.snapshots import cluster_of_image
from tests.replay.history.told import Log, registered


def test_a_broker_that_is_cordoned_dies_and_is_uncordoned() -> None:
    log = Log()
    log.write(replace(registered(2, epoch=20, fenced=False), directories=("a", "b"), cordoned=()))
    log.write(BrokerChanged(2, 20, cordoned=("a",)))  # one of two
    log.write(BrokerChanged(2, 20, cordoned=("a", "b")))
    log.write(BrokerChanged(2, 20, fenced=True))
    assert _cordoned(log) == {2}
    log.write(BrokerChanged(2, 20, cordoned=()))
    assert _cordoned(log) == set()
    told = [one for one in log.told() if isinstance(one, BrokerEntry) and one.broker == 2]
    assert [one.event for one in told[-3:]] == [BrokerEvent.CORDONED, BrokerEvent.FENCED, BrokerEvent.UNCORDONED]


def test_a_broker_that_registers_cordoned() -> None:
    """Its first record says it; a directory that fails takes its cordon along."""
    log = Log()
    log.write(replace(registered(3, epoch=30), directories=("a", "b"), cordoned=("b",)))
    assert _cordoned(log) == set()
    log.write(BrokerChanged(3, 30, directories=("b",)))
    assert _cordoned(log) == {3}


def _cordoned(log: Log) -> set[int]:
    image = MetadataImage()
    for batch in log.batches:
        image.apply(batch)
    return {broker.id for broker in cluster_of_image(image, cluster_id=None).brokers if broker.cordoned}
