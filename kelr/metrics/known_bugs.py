"""Metrics that released versions of Kafka count wrongly, or do not have, by version.

Kafka tells no version; the highest metadata.version that its software supports changes with each minor release
(MetadataVersion.LATEST_PRODUCTION). That is the software of the broker that answered; controllers may run another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.model import METADATA_FEATURE, Features


@dataclass(frozen=True, slots=True)
class MetricBug:
    """What is wrong with a metric, and in which releases."""

    metric: str
    issue: str
    first: int | None
    """The lowest metadata.version of the releases that have it; None: since ever."""
    last: int
    """The highest one."""
    releases: str
    text: str
    missing: bool = False
    """Whether those releases do not have the metric at all."""

    def holds(self, newest: int) -> bool:
        """Whether software that supports this metadata.version at the most has the bug."""
        return (self.first is None or self.first <= newest) and newest <= self.last


_KAFKA_3_8, _KAFKA_3_9, _KAFKA_4_0 = 20, 21, 25

BUGS: tuple[MetricBug, ...] = (
    MetricBug(
        "unclean_elections",
        "KAFKA-12670",
        None,
        _KAFKA_3_8,
        "before 3.9",
        "KRaft controllers before 3.9 have no such metric",
        missing=True,
    ),
    MetricBug(
        "unclean_elections",
        "KAFKA-18940, KAFKA-19212",
        _KAFKA_3_9,
        _KAFKA_3_9,
        "3.9",
        "3.9 counts an election as unclean whenever the leader was not in the ISR before the same batch of records:"
        " elections from the ELR, and clean ones that follow quickly on a growing ISR",
    ),
    MetricBug(
        "unclean_elections",
        "KAFKA-19212",
        _KAFKA_4_0,
        _KAFKA_4_0,
        "4.0",
        "4.0 counts an election as unclean if the leader was in neither ISR nor ELR before the same batch of records,"
        " also a clean one that follows quickly on a growing ISR",
    ),
    MetricBug(
        "elr_elections",
        "KAFKA-19212",
        None,
        _KAFKA_4_0,
        "before 4.1",
        "controllers before 4.1 have no such metric",
        missing=True,
    ),
    MetricBug(
        "brokers_shutting_down",
        "KIP-1131",
        None,
        _KAFKA_4_0,
        "before 4.1",
        "controllers before 4.1 have no such metric",
        missing=True,
    ),
)
"""Read in the classes of kafka-metadata 3.8.1, 3.9.1, 4.0.0, 4.0.1, 4.1.0, 4.1.1 and 4.3.1."""

_SAME_METER: Mapping[str, str] = {"unclean_elections_rate": "unclean_elections"}


def bug_of(metric: str, features: Features) -> MetricBug | None:
    """What is known to be wrong with a metric in the cluster's software; None where nothing is, or its version is not
    known."""
    newest = (features.supported or {}).get(METADATA_FEATURE)
    wanted = _SAME_METER.get(metric, metric)
    if newest is None:
        return None
    return next((bug for bug in BUGS if bug.metric == wanted and bug.holds(newest)), None)
