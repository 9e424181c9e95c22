"""What an answer says of partitions, although it cannot be so: one that is garbled, or made up, is not to be believed.

Source: PartitionRegistration and PartitionChangeBuilder of Apache Kafka: leader and ISR are among the replicas;
Topic.validate for names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from kelr.errors import ConnectError
from kelr.model import TopicPartition

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
NO_LEADER = -1
IN_BETWEEN = "INCONSISTENT_ISR"
"""kelr's name of what `PassingError` says, where a topic's error is named."""


class ContradictionError(ValueError):
    """What is wrong, in words, without the partition's name."""


class PassingError(ContradictionError):
    """What cannot stay so, and was told for a moment by brokers whose controller was in ZooKeeper: while a reassignment
    ended they had the new replicas, and the ISR from before (`PartitionStateMachine`, `ReplicaManager`)."""


def check_members(leader: int, replicas: Sequence[int], isr: Collection[int], elr: Collection[int] | None) -> None:
    """Whether one partition can be so.

    Raises:
        ContradictionError: it cannot.
    """
    known = set(replicas)
    if not known:
        raise ContradictionError("it has no replicas")
    if len(known) < len(replicas) or min(known) < 0:
        raise ContradictionError(f"its replicas are {list(replicas)}")
    if leader != NO_LEADER and leader not in known:
        raise ContradictionError(f"its leader {leader} is none of its replicas {list(replicas)}")
    # Not so the ELR: in released Kafka a replica that a reassignment removes may stay in it
    # (tests/scenarios/elr-member-that-is-no-replica.txt), and Kafka 4.0 can seat "no leader" in a set.
    if not (known | {NO_LEADER}).issuperset(isr):
        raise PassingError(f"its ISR {list(isr)} is not among its replicas {list(replicas)}")
    if min(elr or (0,)) < NO_LEADER:
        raise ContradictionError(f"its ELR is {list(elr or ())}, and no broker has such an id")


def check_topic(topic: str, numbers: Iterable[int], leader_epochs: Iterable[int]) -> None:
    """Whether a topic can have this name, these partitions, and these leader epochs.

    Raises:
        ContradictionError: it cannot.
    """
    if not _NAME.fullmatch(topic):
        raise ContradictionError("no topic has such a name")
    if min(numbers, default=0) < 0 or min(leader_epochs, default=0) < 0:
        raise ContradictionError("a partition's number, or leader epoch, is below zero")


def check_once(addresses: Iterable[TopicPartition]) -> None:
    """Whether each partition is there once.

    Args:
        addresses: in order.

    Raises:
        ConnectError: one is there twice.
    """
    for one, other in pairwise(addresses):
        if one == other:
            raise contradicting(one.topic, ContradictionError(f"it tells of partition {one.partition} twice"))


def contradicting(topic: str, error: ContradictionError) -> ConnectError:
    """The error that a reader of the cluster is told."""
    return ConnectError(
        f"a broker's answer about topic {topic!a} contradicts itself: {error}",
        next_step="a proxy may garble answers; ask a broker directly",
    )
