"""Which clusters a fleet has, from a few numbers and a seed: sizes, versions, what is left of their files."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kelr.controller import ELR_4_0, ELR_4_1, ELR_4_3, KRAFT, RuleSet
from kelr.errors import UsageError

START_MS = 1_788_739_200_000
"""2026-09-07 00:00 UTC, a Monday: when every fleet's life begins."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS


class Shape(StrEnum):
    """What a collector brought of a cluster."""

    WHOLE = "whole"
    """One controller's directory, from the log's first record on."""
    COPIES = "copies"
    """Three controllers' directories: one whole, one that ends earlier, one that begins with a checkpoint."""
    CUT = "cut"
    """One controller's directory whose oldest segments are deleted: it begins with a checkpoint."""
    SNAPSHOTS = "snapshots"
    """Snapshot files of the last days and a collection of log directories, and no metadata log."""


@dataclass(frozen=True, slots=True)
class Software:
    """What a cluster runs."""

    name: str
    rules: RuleSet
    metadata_version: int
    """MetadataVersion.LATEST_PRODUCTION of that release."""
    elr_later: RuleSet | None = None
    """These rules hold from the middle of its life on: somebody turns ELR on."""


_OLD_KRAFT = replace(KRAFT, reassignment_needs_every_target=True)
SOFTWARE = (
    Software("4.3, ELR on", ELR_4_3, 30),
    Software("4.1, ELR on", ELR_4_1, 27),
    Software("4.3, ELR off", KRAFT, 30),
    Software("4.0, ELR on", ELR_4_0, 25),
    Software("4.2, ELR on", ELR_4_1, 29),
    Software("4.3, ELR turned on later", KRAFT, 30, elr_later=ELR_4_3),
    Software("4.0, ELR off", _OLD_KRAFT, 25),
)
_NAMES = (
    "payments", "orders", "clicks", "inventory", "telemetry", "search", "fraud", "billing", "shipping", "identity",
    "ledger", "catalog", "media", "risk", "alerts", "pricing",
)  # fmt: skip
_STATES_A_WEEK, _STATE_BYTES = 10, 500
_REGIONS = ("eu-west", "us-east", "ap-south", "eu-north", "us-west")


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A fleet in a few numbers."""

    clusters: int = 8
    partitions: int = 4_000
    """Of all clusters together."""
    brokers: int = 12
    """Of the largest cluster; others have fewer."""
    racks: int = 3
    weeks: int = 4
    incidents: int = 3
    """Of each cluster."""
    seed: int = 1
    skew: float = 0.7
    """The largest cluster's share of the partitions."""
    states: int | None = None
    """About so many partition states in all; None for as many as such clusters have in such a time."""
    shapes: tuple[Shape, ...] = (Shape.WHOLE, Shape.COPIES, Shape.CUT, Shape.SNAPSHOTS)
    """Taken in turn, the largest cluster first."""
    segment_bytes: int = 8 << 20
    damage: bool = False
    """Whether some files are broken, and others do not belong there."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """One cluster of it."""

    index: int
    name: str
    cluster_id: str
    software: Software
    shape: Shape
    partitions: int
    brokers: int
    racks: int
    weeks: int
    incidents: int
    seed: str
    states: int | None
    segment_bytes: int

    @property
    def end_ms(self) -> int:
        return START_MS + self.weeks * WEEK_MS

    @property
    def size_bytes(self) -> int:
        """For whoever shares the work out: what takes about as long to read (`kelr.fleet.workers.Task`)."""
        return (self.states or self.partitions * self.weeks * _STATES_A_WEEK) * _STATE_BYTES


def cluster_plans(fleet: FleetPlan) -> tuple[ClusterPlan, ...]:
    """The clusters of a fleet, the largest first.

    Raises:
        UsageError: such a fleet cannot be.
    """
    _check(fleet)
    sizes = _sizes(fleet)
    return tuple(
        ClusterPlan(
            index=index,
            name=_name(index),
            cluster_id=made_id(f"{fleet.seed}/{index}/cluster"),
            software=SOFTWARE[index % len(SOFTWARE)],
            # One step further each round, so that all versions come in all shapes.
            shape=fleet.shapes[(index + index // len(fleet.shapes)) % len(fleet.shapes)] if index else fleet.shapes[0],
            partitions=size,
            brokers=max(fleet.racks, 3, round(fleet.brokers * (size / sizes[0]) ** 0.5)),
            racks=fleet.racks,
            weeks=fleet.weeks,
            incidents=fleet.incidents,
            seed=f"{fleet.seed}/{index}",
            states=None if fleet.states is None else round(fleet.states * size / fleet.partitions),
            segment_bytes=fleet.segment_bytes,
        )
        for index, size in enumerate(sizes)
    )


def made_id(text: str) -> str:
    """An id as Kafka prints it, always the same one for the same text."""
    raw = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def chance(plan: ClusterPlan, what: str) -> random.Random:
    """The source of chance for one part of a cluster's life: other parts take nothing from it."""
    return random.Random(f"{plan.seed}/{what}")


def _check(fleet: FleetPlan) -> None:
    wrong = [
        f"{number} {what}"
        for number, what, least in (
            (fleet.clusters, "clusters", 1),
            (fleet.partitions, "partitions", fleet.clusters),
            (fleet.brokers, "brokers", 3),
            (fleet.racks, "racks", 1),
            (fleet.weeks, "weeks", 1),
            (fleet.incidents, "incidents", 0),
            (fleet.segment_bytes, "bytes a segment", 1 << 12),
        )
        if number < least
    ]
    if fleet.racks > fleet.brokers:
        wrong.append(f"{fleet.racks} racks for {fleet.brokers} brokers")
    if not 0 < fleet.skew <= 1:
        wrong.append(f"a largest cluster with {fleet.skew} of the partitions")
    if fleet.states is not None and fleet.states < fleet.partitions:
        wrong.append(f"{fleet.states} states of {fleet.partitions} partitions")
    if wrong:
        raise UsageError(
            f"there is no fleet with {', '.join(wrong)}",
            next_step="at least 1 cluster and week, 3 brokers, a partition for each cluster, and a share from 0 to 1",
        )


def _sizes(fleet: FleetPlan) -> Sequence[int]:
    """Partitions of each cluster, largest first: one has its share, the others follow Zipf's law."""
    if fleet.clusters == 1:
        return [fleet.partitions]
    spare = fleet.partitions - fleet.clusters
    first = min(spare, max(0, round(fleet.partitions * fleet.skew) - 1))
    rest = shared(spare - first, [1 / place for place in range(1, fleet.clusters)])
    return [1 + size for size in sorted((first, *rest), reverse=True)]


def shared(whole: int, weights: Sequence[float]) -> list[int]:
    """A whole number in parts by weight; what rounding leaves goes to the first ones."""
    total = sum(weights)
    parts = [int(whole * weight / total) for weight in weights]
    for place in range(whole - sum(parts)):
        parts[place % len(parts)] += 1
    return parts


def _name(index: int) -> str:
    topic, region = _NAMES[index % len(_NAMES)], _REGIONS[index % len(_REGIONS)]
    again = index // len(_NAMES)
    return f"{topic}-{region}" if not again else f"{topic}-{region}-{again + 1}"


# The topics that a cluster has: sizes by Zipf's law, replication and min ISR as people choose them, rack by rack.


FIRST_BROKER = 1
CONTROLLERS = (3000, 3001, 3002)
"""Node ids of controllers; they are no brokers."""
_MOST_PARTITIONS = 200
"""Of one topic, where there are topics enough."""
_SUBJECTS = ("orders", "payments", "clicks", "sessions", "stock", "emails", "users", "prices", "events", "audit")
_VERBS = ("created", "changed", "deleted", "enriched", "raw", "compacted", "retry", "dead-letter")
# Replication factor, min.insync.replicas (None: the cluster's), and how often they are chosen together.
_CHOICES: tuple[tuple[int, int | None, int], ...] = (
    (3, None, 50),
    (3, 2, 18),
    (3, 1, 10),
    (3, 3, 3),
    (2, 1, 6),
    (2, 2, 3),
    (1, 1, 4),
    (4, 2, 4),
    (4, 3, 2),
)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic as somebody creates it."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    """The assignment of partition 0, 1, 2 and so on."""
    min_isr: int | None
    """Its own min.insync.replicas."""
    unclean: bool | None
    """Its own unclean.leader.election.enable."""
    records_a_minute: int
    """What is produced to one of its partitions."""


def voters_of(plan: ClusterPlan) -> tuple[int, ...]:
    """The controllers of the quorum: one, but where the logs of several are brought. Of three, one alone would not
    show which of its last records are committed."""
    return CONTROLLERS if plan.shape is Shape.COPIES else CONTROLLERS[:1]


def racks_of(plan: ClusterPlan) -> dict[int, str]:
    """The rack of each broker."""
    return {FIRST_BROKER + place: f"az-{place % plan.racks + 1}" for place in range(plan.brokers)}


def cluster_min_isr(plan: ClusterPlan) -> int:
    """The cluster-wide min.insync.replicas: most have chosen 2."""
    return 1 if chance(plan, "min ISR").random() < 0.25 else 2


def first_topics(plan: ClusterPlan) -> Iterator[NewTopic]:
    """The topics that a cluster has from the beginning, the largest first."""
    chances = chance(plan, "topics")
    for number, size in enumerate(_topic_sizes(plan.partitions)):
        yield new_topic(plan, chances, number, size)


def new_topic(plan: ClusterPlan, chances: random.Random, number: int, size: int) -> NewTopic:
    """A topic with this many partitions.

    Args:
        number: tells its name from others.
    """
    factor, min_isr, _ = chances.choices(_CHOICES, [weight for _, _, weight in _CHOICES])[0]
    if number == 0:
        factor, min_isr = 3, None
    subject, verb = _SUBJECTS[number % len(_SUBJECTS)], _VERBS[number // len(_SUBJECTS) % len(_VERBS)]
    return NewTopic(
        name=f"{subject}.{verb}.{number}",
        replicas=assignment(plan, chances, size, min(factor, plan.brokers)),
        min_isr=min_isr,
        unclean=True if chances.random() < 0.03 else None,
        records_a_minute=int(10 ** chances.uniform(0, 4)),
    )


def assignment(plan: ClusterPlan, chances: random.Random, size: int, factor: int) -> tuple[tuple[int, ...], ...]:
    """Replicas in stripes over racks: neighbours are in different racks, and followers stand some stripes further.

    Source: StripedReplicaPlacer, in its outcome.
    """
    brokers, racks = plan.brokers, plan.racks
    first = chances.randrange(brokers)
    stripe = racks * chances.randrange((brokers - factor) // racks + 1)
    places: Sequence[int] = (0, *(stripe + step for step in range(1, factor)))
    return tuple(tuple(FIRST_BROKER + (first + number + place) % brokers for place in places) for number in range(size))


def _topic_sizes(partitions: int) -> list[int]:
    """Partitions of each topic, by Zipf's law; each has at least one."""
    count = max(1, min(partitions, round(partitions**0.55 * 1.5), partitions // 2 + 1), partitions // _MOST_PARTITIONS)
    rest = shared(partitions - count, [1 / place**1.1 for place in range(1, count + 1)])
    return [1 + size for size in rest]
