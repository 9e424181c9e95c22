"""The topics that a cluster has: sizes by Zipf's law, replication and min ISR as people choose them, rack by rack."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.fleet.generate.plan import ClusterPlan, Shape, chance, shared

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


def topics(plan: ClusterPlan) -> Iterator[NewTopic]:
    """The topics that a cluster has from the beginning, the largest first."""
    chances = chance(plan, "topics")
    for number, size in enumerate(_sizes(plan.partitions)):
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


def _sizes(partitions: int) -> list[int]:
    """Partitions of each topic, by Zipf's law; each has at least one."""
    count = max(1, min(partitions, round(partitions**0.55 * 1.5), partitions // 2 + 1), partitions // _MOST_PARTITIONS)
    rest = shared(partitions - count, [1 / place**1.1 for place in range(1, count + 1)])
    return [1 + size for size in rest]
