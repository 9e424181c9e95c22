"""Logs written by hand, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kelr.model import ELR_FEATURE
from kelr.replay import records as rec
from kelr.replay.history import BrokerEntry, Entry, History, Interest, PartitionEntry, Window
from kelr.replay.image import BROKER

ID = "xwLcnDBAQ0KnZEKZX0bXVA"
BEGAN_MS = 1_700_000_000_000


class Log:
    """Batches one after the other, a second apart, of a cluster with brokers 1 to 4 and min ISR 2."""

    def __init__(self, *, elr: bool = True, unclean: str | None = None, down: tuple[int, ...] = ()) -> None:
        self.batches: list[rec.RecordBatch] = []
        self.end = 0
        self.now_ms = BEGAN_MS
        configs = [rec.ConfigSet(BROKER, "", "min.insync.replicas", "2")]
        if unclean is not None:
            configs.append(rec.ConfigSet(BROKER, "", "unclean.leader.election.enable", unclean))
        self.write(rec.FeatureLevel(ELR_FEATURE, int(elr)), *configs)
        self.write(*(registered(broker, fenced=broker in down) for broker in (1, 2, 3, 4)))

    def write(self, *records: rec.MetadataRecord, later_ms: int = 1000) -> None:
        self.now_ms += later_ms
        self.batches.append(rec.RecordBatch(self.end, 1, self.now_ms, records))
        self.end += len(records)

    def topic(self, *replicas: int, **state: Any) -> None:
        """The topic ``orders`` with one partition."""
        self.write(rec.TopicMade("orders", ID), made(0, replicas, **state))

    def told(self, interest: Interest | None = None, window: Window | None = None) -> list[Entry]:
        return tell(self.batches, interest or Interest(), window or Window())

    def last(self) -> PartitionEntry:
        """What is told of the partition's last change."""
        return [entry for entry in self.told() if isinstance(entry, PartitionEntry)][-1]

    def last_registration(self) -> BrokerEntry:
        found = [entry for entry in self.told() if isinstance(entry, BrokerEntry) and entry.event == "registered"]
        return found[-1]


def tell(batches: Iterable[rec.RecordBatch], interest: Interest, window: Window) -> list[Entry]:
    history = History(interest, window)
    found: list[Entry] = []
    for batch in batches:
        if history.over(batch):
            break
        found += history.take(batch)
    return found + list(history.finish())


def made(partition: int, replicas: tuple[int, ...], **state: Any) -> rec.PartitionMade:
    values: dict[str, Any] = {"leader": replicas[0], "isr": replicas, **state}
    leader, isr = values.pop("leader"), values.pop("isr")
    return rec.PartitionMade(ID, partition, leader, 0, 0, replicas, isr, **values)


def changed(partition: int = 0, **told: Any) -> rec.PartitionChanged:
    return rec.PartitionChanged(ID, partition, **told)


def registered(broker: int, epoch: int | None = None, *, fenced: bool = True) -> rec.BrokerRegistered:
    number = broker if epoch is None else epoch
    return rec.BrokerRegistered(
        broker, number, f"incarnation {number}", fenced, False, None, directories=(f"a{broker}", f"b{broker}")
    )


def fenced(broker: int, epoch: int | None = None) -> rec.BrokerChanged:
    return rec.BrokerChanged(broker, broker if epoch is None else epoch, fenced=True)


def unfenced(broker: int, epoch: int | None = None) -> rec.BrokerChanged:
    return rec.BrokerChanged(broker, broker if epoch is None else epoch, fenced=False)
