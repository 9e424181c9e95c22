"""Partitions out of answers: wire values become kelr's values here and nowhere else.

Apart from the requests, so that the page path can be read by a faster decoder without changing what a page means.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

from kelr.errors import ConnectError
from kelr.model import PartitionState, TopicError, TopicPartition
from kelr.model.rows import Kind, Rows, Run, states, topics_of
from kelr.protocol.error_codes import error_name
from kelr.sources.live.failures import NONE
from kelr.sources.live.page_bytes import PageBytes, TopicBytes, columns, members
from kelr.sources.live.reassignments import NOT_ASKED, Reassignments
from kelr.sources.live.transport import Message

# What an answer says of partitions, although it cannot be so: one that is garbled, or made up, is not to be believed.
#
# Source: PartitionRegistration and PartitionChangeBuilder of Apache Kafka: leader and ISR are among the replicas;
# Topic.validate for names.


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


_MOST_KINDS = 16_384
"""So many kinds of partitions are remembered, some 10 MiB of them; a cluster of 30 brokers has a few thousand."""


@dataclass(frozen=True, slots=True)
class Described:
    """What one answer described, in address order, before anything is selected."""

    partitions: Sequence[PartitionState]
    errors: tuple[TopicError, ...] = ()
    next_cursor: TopicPartition | None = None
    topics: Mapping[str, None] = field(default_factory=dict)
    """The topics that were told of, those with errors left out."""
    first_replicas: Mapping[str, int] = field(default_factory=dict)
    """Replica count of partition 0, for the topics of which this answer holds it."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Partitions of each topic that were passed over unread, because nobody wants what they look like."""


class Kinds(dict[tuple[bytes, bytes], Kind[PartitionState]]):
    """Kinds of partitions by the bytes that make them out, shared by all pages of a reading.

    Args:
        elr_enabled: whether the controller keeps ELR, None where that is unknown; decides what an empty list means.
        adding: the replicas being added to a partition that no reassignment moves, and removed from it: none, or not
            known.
    """

    def __init__(self, elr_enabled: bool | None, adding: tuple[int, ...] | None) -> None:
        self._elr_enabled = elr_enabled
        self._adding = adding

    def __missing__(self, key: tuple[bytes, bytes]) -> Kind[PartitionState]:
        if len(self) >= _MOST_KINDS:
            self.clear()
        kind = self[key] = Kind(self.state(key, self._adding, self._adding))
        return kind

    def state(
        self, key: tuple[bytes, bytes], adding: tuple[int, ...] | None, removing: tuple[int, ...] | None
    ) -> PartitionState:
        """A partition that holds this, without a name.

        Raises:
            ContradictionError: none can.
        """
        found = members(key)
        check_members(found.leader, found.replicas, found.isr, found.elr)
        return PartitionState(
            topic="",
            partition=0,
            leader=None if found.leader == NO_LEADER else found.leader,
            leader_epoch=0,
            replicas=found.replicas,
            isr=found.isr,
            elr=_elr(found.elr, self._elr_enabled),
            last_known_elr=_elr(found.last_known_elr, self._elr_enabled),
            offline_replicas=found.offline,
            adding=adding,
            removing=removing,
        )


def kinds_of(elr_enabled: bool | None, reassignments: Reassignments) -> Kinds:
    """An empty table for a reading."""
    return Kinds(elr_enabled, None if reassignments.error is not None else ())


def described_partitions(page: PageBytes, kinds: Kinds, reassignments: Reassignments = NOT_ASKED) -> Described:
    """A DescribeTopicPartitions answer.

    Partition error codes are left out on purpose: they say only that the leader is none (LEADER_NOT_AVAILABLE) or has
    no endpoint on this listener, and the leader is there to be seen.

    Args:
        kinds: made by `kinds_of` with the same reassignments.
        reassignments: what is under way, which the answer does not tell.

    Raises:
        ConnectError: the answer tells what cannot be so.
    """
    moving = {topic for topic, _ in reassignments.under_way}
    runs: list[Run[PartitionState]] = []
    errors: list[TopicError] = []
    first_replicas: dict[str, int] = {}
    left_out: dict[str, int] = {}
    for topic in page.topics:
        error = error_name(topic.error_code)
        if error != NONE:
            errors.append(TopicError(topic.name or "", error))
            continue
        assert topic.name is not None
        left_out[topic.name] = topic.left_out
        if topic.first_replicas is not None:
            first_replicas[topic.name] = topic.first_replicas
        try:
            if not topic.pieces:
                check_topic(topic.name, (), ())
                continue
            run = _run(page.data, topic, kinds, reassignments if topic.name in moving else None)
            check_topic(topic.name, run.numbers, run.leader_epochs)
        except ContradictionError as error:
            raise contradicting(topic.name, error) from error
        runs.append(run)
        if topic.first_replicas is None and 0 in run.numbers:
            first_replicas[topic.name] = len(run.kinds[run.numbers.index(0)].example.replicas)
    cursor = page.next_cursor
    return Described(
        _in_order(runs),
        tuple(errors),
        None if cursor is None else TopicPartition(cursor.topic_name, cursor.partition_index),
        dict.fromkeys(left_out),
        first_replicas,
        left_out,
    )


def _run(data: bytes, topic: TopicBytes, kinds: Kinds, moving: Reassignments | None) -> Run[PartitionState]:
    name = topic.name or ""
    numbers, epochs, keys = columns(data, topic.pieces)
    if moving is None:
        found = list(map(kinds.__getitem__, keys))
    else:
        found = []
        for number, key in zip(numbers, keys, strict=True):
            adding, removing = moving.members(name, number, members(key).replicas)
            found.append(Kind(kinds.state(key, adding, removing)))
    return Run(name, topic_id_text(UUID(bytes=topic.topic_id)), numbers, epochs, found)


def _in_order(runs: list[Run[PartitionState]]) -> Sequence[PartitionState]:
    """Brokers send topics and partitions sorted; where one does not, they are sorted here."""
    rows: Rows[PartitionState] = states(runs)
    if not all(one.topic < other.topic for one, other in pairwise(runs)) or not all(
        list(run.numbers) == sorted(set(run.numbers)) for run in runs
    ):
        ordered = tuple(sorted(rows, key=_address))
        check_once(map(_address, ordered))
        return ordered
    return rows


def metadata_partitions(answer: Message, *, reassignments: Reassignments = NOT_ASKED) -> Described:
    """A Metadata answer (v7 or newer): the same, with ELR and last known leader unknown.

    Raises:
        ConnectError: the answer tells what cannot be so.
    """
    partitions: list[PartitionState] = []
    errors: list[TopicError] = []
    for topic in answer.topics:
        error = error_name(topic.error_code)
        if error not in {NONE, "LEADER_NOT_AVAILABLE"}:
            errors.append(TopicError(topic.name or "", error))
            continue
        topic_id = topic_id_text(topic.topic_id) if answer.version >= 10 else None
        try:
            partitions += [
                _from_metadata(topic.name or "", topic_id, partition, reassignments) for partition in topic.partitions
            ]
        except PassingError as problem:
            errors.append(
                TopicError(topic.name or "", IN_BETWEEN, f"{problem}: a reassignment may be ending; ask again")
            )
        except ContradictionError as error:
            raise contradicting(topic.name or "", error) from error
    partitions.sort(key=_address)
    check_once(map(_address, partitions))
    first = {state.topic: len(state.replicas) for state in partitions if state.partition == 0}
    return Described(tuple(partitions), tuple(errors), topics=topics_of(partitions), first_replicas=first)


def _from_metadata(
    topic: str, topic_id: str | None, partition: Message, reassignments: Reassignments
) -> PartitionState:
    check_topic(topic, [partition.partition_index], [partition.leader_epoch])
    check_members(partition.leader_id, partition.replica_nodes, partition.isr_nodes, None)
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
