"""Where the logs of a cluster's replicas end, followed from change to change of their partitions.

Producers wait for acks=all: a log grows while its partition has a leader and min ISR replicas in sync, at the topic's
pace. A replica that leaves the ISR stands still until it is back in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kelr.fleet.generate.plan import MINUTE_MS
from kelr.fleet.generate.steps import Form, Partition
from kelr.model import ReplicaLog


@dataclass(slots=True)
class _Grown:
    since_ms: int
    end: int = 0
    """Of the replicas in sync, or of those that were last."""
    last_epoch: int | None = None
    behind: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """End and last written epoch of the others."""


class LogEnds:
    """Follows all partitions of a cluster."""

    def __init__(self) -> None:
        self._grown: dict[Partition, _Grown] = {}

    def begin(self, partition: Partition, now_ms: int) -> None:
        """The partition is new, and its logs are empty."""
        self._grown[partition] = _Grown(now_ms, behind=dict.fromkeys(partition.form.missing, (0, None)))

    def moves(self, partition: Partition, after: Form, now_ms: int, *, unclean: bool) -> int | None:
        """The partition takes another form.

        Returns:
            How many committed records the new leader of an unclean election misses; None at any other change.
        """
        grown = self._grown[partition]
        self._grow(partition, grown, now_ms)
        lost = None
        if unclean and after.leader is not None:
            end, last_epoch = grown.behind.get(after.leader, (grown.end, grown.last_epoch))
            lost = max(0, grown.end - end)
            for replica in partition.form.isr:
                grown.behind[replica] = (grown.end, grown.last_epoch)
            grown.end, grown.last_epoch = end, last_epoch
        for replica in after.missing:
            grown.behind.setdefault(replica, (grown.end if replica in partition.form.isr else 0, grown.last_epoch))
        for replica in [one for one in grown.behind if one in after.isr or one not in after.state.replicas]:
            del grown.behind[replica]
        return lost

    def logs(self, partition: Partition, now_ms: int, *, how: str) -> dict[int, ReplicaLog]:
        """The log of each replica.

        Args:
            how: it was learnt.
        """
        grown = self._grown[partition]
        self._grow(partition, grown, now_ms)
        found = {}
        for replica in partition.form.state.replicas:
            end, last_epoch = grown.behind.get(replica, (grown.end, grown.last_epoch))
            found[replica] = ReplicaLog(
                replica=replica,
                log_end=end,
                last_epoch=last_epoch,
                high_watermark=end,
                log_start=0,
                source=how,
                read_at_ms=now_ms,
            )
        return found

    def forget(self, partition: Partition) -> None:
        """Its topic is deleted."""
        del self._grown[partition]

    def _grow(self, partition: Partition, grown: _Grown, now_ms: int) -> None:
        form, settings = partition.form, partition.topic.settings
        if form.leader is not None and len(form.isr) >= min(settings.min_isr, settings.first_replicas):
            more = partition.topic.records_a_minute * (now_ms - grown.since_ms) // MINUTE_MS
            if more:
                grown.end += more
                grown.last_epoch = partition.leader_epoch
        grown.since_ms = now_ms
