"""Partitions out of answers: wire values become kelr's values here and nowhere else.

Apart from the requests, so that the page path can be read by a faster decoder without changing what a page means.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from kelr.model import PartitionState, TopicError, TopicPartition
from kelr.sources.live.failures import NONE, error_name
from kelr.sources.live.reassignments import NOT_ASKED, Reassignments
from kelr.sources.live.transport import Message

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Described:
    """What one answer described, in address order, before anything is selected."""

    partitions: tuple[PartitionState, ...]
    errors: tuple[TopicError, ...] = ()
    next_cursor: TopicPartition | None = None


def described_partitions(
    answer: Message, *, elr_enabled: bool | None, reassignments: Reassignments = NOT_ASKED
) -> Described:
    """A DescribeTopicPartitions answer.

    Partition error codes are left out on purpose: they say only that the leader is none (LEADER_NOT_AVAILABLE) or has
    no endpoint on this listener, and the leader is there to be seen.

    Args:
        elr_enabled: whether the controller keeps ELR, None where that is unknown; decides what an empty list means.
        reassignments: what is under way, which the answer does not tell.
    """
    partitions: list[PartitionState] = []
    errors: list[TopicError] = []
    for topic in answer.topics:
        error = error_name(topic.error_code)
        if error != NONE:
            errors.append(TopicError(topic.name or "", error))
            continue
        topic_id = topic_id_text(topic.topic_id)
        partitions.extend(
            _described(topic.name, topic_id, partition, elr_enabled, reassignments) for partition in topic.partitions
        )
    cursor = answer.next_cursor
    return Described(
        tuple(sorted(partitions, key=_address)),
        tuple(errors),
        None if cursor is None else TopicPartition(cursor.topic_name, cursor.partition_index),
    )


def metadata_partitions(answer: Message, *, reassignments: Reassignments = NOT_ASKED) -> Described:
    """A Metadata answer (v7 or newer): the same, with ELR and last known leader unknown."""
    partitions: list[PartitionState] = []
    errors: list[TopicError] = []
    for topic in answer.topics:
        error = error_name(topic.error_code)
        if error not in {NONE, "LEADER_NOT_AVAILABLE"}:
            errors.append(TopicError(topic.name or "", error))
            continue
        topic_id = topic_id_text(topic.topic_id) if answer.API_VERSION >= 10 else None
        partitions.extend(
            _from_metadata(topic.name, topic_id, partition, reassignments) for partition in topic.partitions
        )
    return Described(tuple(sorted(partitions, key=_address)), tuple(errors))


def _described(
    topic: str, topic_id: str | None, partition: Message, elr_enabled: bool | None, reassignments: Reassignments
) -> PartitionState:
    adding, removing = reassignments.members(topic, partition.partition_index, partition.replica_nodes)
    return PartitionState(
        topic=topic,
        partition=partition.partition_index,
        leader=None if partition.leader_id == NO_LEADER else partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        elr=_elr(partition.eligible_leader_replicas, elr_enabled),
        last_known_elr=_elr(partition.last_known_elr, elr_enabled),
        offline_replicas=tuple(partition.offline_replicas),
        adding=adding,
        removing=removing,
        topic_id=topic_id,
    )


def _from_metadata(
    topic: str, topic_id: str | None, partition: Message, reassignments: Reassignments
) -> PartitionState:
    adding, removing = reassignments.members(topic, partition.partition_index, partition.replica_nodes)
    return PartitionState(
        topic=topic,
        partition=partition.partition_index,
        leader=None if partition.leader_id == NO_LEADER else partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline_replicas=tuple(partition.offline_replicas),
        adding=adding,
        removing=removing,
        topic_id=topic_id,
    )


def _elr(members: Iterable[int] | None, elr_enabled: bool | None) -> tuple[int, ...] | None:
    """The set, or None where nobody keeps it: a broker answers an empty list both for *empty* and for *ELR is off*.

    Members are believed even with ELR off: a set from before it was turned off still elects.
    """
    known = tuple(members) if members is not None else ()
    return known if known or (members is not None and elr_enabled is True) else None


def topic_id_text(topic_id: UUID | None) -> str | None:
    """The id as Kafka prints it (22 letters of URL-safe base64); None for the id of all zeros, which means none."""
    if topic_id is None or topic_id.int == 0:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii")


def topic_id_uuid(text: str) -> UUID:
    """Back from `topic_id_text`."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _address(partition: PartitionState) -> TopicPartition:
    return partition.address
