"""Transactions that are open in leaders' logs, and what the transaction coordinators know of their producers.

DescribeProducers to each leader, ListTransactions to every live broker for the producer ids that are open somewhere,
DescribeTransactions where one is found, and for those that look forgotten DescribeProducers once more: a marker that
arrived in between must not be taken for a lost one. (KIP-664; kafka-transactions.sh find-hanging asks the same, and
lets whatever is younger than transaction.max.timeout.ms alone instead of asking again.)

A coordinator lists nothing of a partition of __transaction_state that it has not begun to load, without an error; so a
made-up id of each of its partitions is described before and after (`kelr.sources.live.coordinators`).

A coordinator lists only what the principal may DESCRIBE and says nothing of the rest, so that silence is taken for
knowledge only where the cluster has no authorizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kelr.model import TopicPartition
from kelr.model.afterwards import Coordinated, OpenTransaction, Transactions, Unread
from kelr.protocol.error_codes import error_name
from kelr.sources.live.coordinators import Coordinators
from kelr.sources.live.failures import NONE, RETRIABLE, TOPIC_UNAUTHORIZED, UNKNOWN_TOPIC
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, NodeId, Request, Transport

PARTITIONS_A_REQUEST = 1000
_TRANSACTION_UNAUTHORIZED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
_NOT_FOUND = "TRANSACTIONAL_ID_NOT_FOUND"
_NO_AUTHORIZER = "SECURITY_DISABLED"
_ENDING = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
_LEFT_OUT = Unread("the coordinator's answer leaves it out")
_ANY = 1
_MATCH_ANY = 1


@dataclass(frozen=True, slots=True)
class Known:
    """What a coordinator says of a transactional id."""

    transactional_id: str
    state: str
    producer_epoch: int
    started_at_ms: int | None
    timeout_ms: int | None
    partitions: frozenset[TopicPartition]
    """In its present transaction; while that is ending, those that have no marker yet."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the coordinators say: producer ids that one of them knows, and why there may be others."""

    known: Mapping[int, Known | Unread]
    incomplete: Unread | None = None


class ProducerReader:
    """Reads open transactions.

    Args:
        live: brokers that are registered and not fenced: each may be a coordinator.
        coordinators: who leads the partitions of __transaction_state.
    """

    def __init__(
        self,
        transport: Transport,
        live: Iterable[int],
        *,
        timeout_s: float,
        coordinators: Coordinators,
    ) -> None:
        self._transport = transport
        self._live = sorted(live)
        self._timeout_s = timeout_s
        self._coordinators = coordinators

    def read(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Transactions]:
        """The open transactions of each partition, asked of its leader."""
        first = self._open(leaders)
        producers = sorted({one.producer_id for found in first.values() for one in _transactions(found)})
        if not producers:
            return first
        listed = self._listed(producers)
        judged = {address: _judged(address, found, listed) for address, found in first.items()}
        doubtful = {address: leaders[address] for address, found in judged.items() if _forgotten(found)}
        again = self._open(doubtful) if doubtful else {}
        return {address: _confirmed(found, again.get(address)) for address, found in judged.items()}

    def _open(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Transactions]:
        by_leader: dict[NodeId, list[TopicPartition]] = {}
        for address, leader in sorted(leaders.items()):
            by_leader.setdefault(leader, []).append(address)
        found: dict[TopicPartition, Transactions] = {}
        answers = self._transport.run({leader: _asking(led, self._timeout_s) for leader, led in by_leader.items()})
        for answer in answers.values():
            found.update(answer)
        return found

    def _listed(self, producers: Sequence[int]) -> Listed:
        probes = self._coordinators.probes()
        answers = self._transport.run(
            {
                broker: _listing(producers, self._coordinators, probes.get(broker, {}), self._timeout_s)
                for broker in self._live
            }
        )
        known: dict[int, Known | Unread] = {}
        incomplete = self._coordinators.missing
        for broker, listed in answers.items():
            known.update(listed.known)
            if listed.incomplete is not None:
                incomplete = replace(listed.incomplete, error=f"broker {broker}: {listed.incomplete.error}")
        if (incomplete is None or incomplete.acl) and not known.keys() >= set(producers):
            # An id that may not be seen is not listed by any coordinator: that comes before who they are.
            incomplete = self._hidden() or incomplete
        return Listed(known, incomplete)

    def _hidden(self) -> Unread | None:
        """Why a transactional id may be there and not be listed; None where the cluster has no authorizer."""
        for broker in self._live:
            answer = self._transport.exchange(broker, _describe_acls(), timeout_s=self._timeout_s)
            if not isinstance(answer, Failure) and error_name(answer.error_code) == _NO_AUTHORIZER:
                return None
            if not isinstance(answer, Failure):
                break
        return Unread("no coordinator lists it, and one that may not be seen is not listed", _transaction_acl())


# Dialogues, one with each broker.


def _asking(
    partitions: Sequence[TopicPartition], timeout_s: float
) -> Callable[[], Dialogue[dict[TopicPartition, Transactions]]]:
    def hold() -> Dialogue[dict[TopicPartition, Transactions]]:
        found: dict[TopicPartition, Transactions] = {}
        for at in range(0, len(partitions), PARTITIONS_A_REQUEST):
            group = partitions[at : at + PARTITIONS_A_REQUEST]
            answer = yield Ask(_describe_producers(group), timeout_s)
            if isinstance(answer, Failure):
                found.update(dict.fromkeys(group, _failed(answer)))
                continue
            found.update(dict.fromkeys(group, Unread("the leader's answer leaves it out")))
            found.update(_described(answer))
        return found

    return hold


def _listing(
    producers: Sequence[int], coordinators: Coordinators, probes: Mapping[str, int], timeout_s: float
) -> Callable[[], Dialogue[Listed]]:
    def describe(ids: Iterable[str]) -> Dialogue[Mapping[str, Known | Unread]]:
        wanted = sorted({*ids, *probes})
        if not wanted:
            return {}
        answer = yield Ask(_describe_transactions(wanted), timeout_s)
        if isinstance(answer, Failure):
            return dict.fromkeys(wanted, _failed(answer))
        return {one.transactional_id: _known(one) for one in answer.transaction_states}

    def not_ready(described: Mapping[str, Known | Unread]) -> Unread | None:
        found = {number: described.get(name, _LEFT_OUT) for name, number in probes.items()}
        unread = {number: one for number, one in found.items() if isinstance(one, Unread) and one.error != _NOT_FOUND}
        return coordinators.not_ready(unread)

    def hold() -> Dialogue[Listed]:
        incomplete = not_ready((yield from describe(())))
        answer = yield Ask(_list_transactions(producers), timeout_s)
        if isinstance(answer, Failure):
            return Listed({}, _failed(answer))
        error = error_name(answer.error_code)
        if error != NONE:
            return Listed({}, Unread(error, passing=error in RETRIABLE))
        ids = {one.transactional_id: one.producer_id for one in answer.transaction_states}
        described = yield from describe(ids)
        known = {producer: described.get(one, _LEFT_OUT) for one, producer in ids.items()}
        return Listed(known, incomplete or not_ready(described))

    return hold


def _described(answer: Message) -> Iterator[tuple[TopicPartition, Transactions]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            address = TopicPartition(topic.name, partition.partition_index)
            error = error_name(partition.error_code)
            if error != NONE:
                acl = f"READ on topic {topic.name}" if error == TOPIC_UNAUTHORIZED else ""
                yield address, Unread(error, acl, passing=error in RETRIABLE or error == UNKNOWN_TOPIC)
                continue
            found = (_open_transaction(one) for one in partition.active_producers if one.current_txn_start_offset >= 0)
            yield address, tuple(sorted(found, key=lambda one: one.start_offset))


def _open_transaction(producer: Any) -> OpenTransaction:
    return OpenTransaction(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        start_offset=producer.current_txn_start_offset,
        last_timestamp_ms=None if producer.last_timestamp < 0 else producer.last_timestamp,
        coordinated=Coordinated.UNKNOWN,
    )


def _known(one: Any) -> Known | Unread:
    error = error_name(one.error_code)
    if error == _TRANSACTION_UNAUTHORIZED:
        return Unread(error, _transaction_acl(one.transactional_id))
    if error != NONE:
        return Unread(error, passing=error in RETRIABLE or error in {_NOT_FOUND, "NOT_COORDINATOR"})
    return Known(
        one.transactional_id,
        one.transaction_state,
        one.producer_epoch,
        None if one.transaction_start_time_ms < 0 else one.transaction_start_time_ms,
        None if one.transaction_timeout_ms < 0 else one.transaction_timeout_ms,
        frozenset(TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions),
    )


# What the coordinators' words mean for a transaction that a leader has open.


def _judged(address: TopicPartition, found: Transactions, listed: Listed) -> Transactions:
    if isinstance(found, Unread):
        return found
    return tuple(_of(address, one, listed) for one in found)


def _of(address: TopicPartition, one: OpenTransaction, listed: Listed) -> OpenTransaction:
    known = listed.known.get(one.producer_id)
    if known is None:
        if listed.incomplete is not None:
            return replace(one, unread=listed.incomplete)
        return replace(one, coordinated=Coordinated.FORGOTTEN)
    if isinstance(known, Unread):
        return replace(one, unread=known)
    told = replace(one, transactional_id=known.transactional_id, state=known.state)
    if address not in known.partitions:
        return replace(told, coordinated=Coordinated.FORGOTTEN)
    if known.producer_epoch < one.producer_epoch:
        older = f"its coordinator knows an older epoch of the producer ({known.producer_epoch})"
        return replace(told, unread=Unread(older))
    coordinated = Coordinated.ENDING if known.state in _ENDING else Coordinated.UNDER_WAY
    return replace(told, coordinated=coordinated, started_at_ms=known.started_at_ms, timeout_ms=known.timeout_ms)


def _confirmed(found: Transactions, again: Transactions | None) -> Transactions:
    """The transactions without those that seemed forgotten and have ended meanwhile."""
    if isinstance(found, Unread) or again is None:
        return found
    if isinstance(again, Unread):
        silence = again
        return tuple(_unsure(one, silence) if one.coordinated is Coordinated.FORGOTTEN else one for one in found)
    still = {(one.producer_id, one.start_offset) for one in again}
    return tuple(
        one
        for one in found
        if one.coordinated is not Coordinated.FORGOTTEN or (one.producer_id, one.start_offset) in still
    )


def _unsure(one: OpenTransaction, silence: Unread) -> OpenTransaction:
    return replace(one, coordinated=Coordinated.UNKNOWN, unread=silence)


def _transactions(found: Transactions) -> tuple[OpenTransaction, ...]:
    return () if isinstance(found, Unread) else found


def _forgotten(found: Transactions) -> bool:
    return any(one.coordinated is Coordinated.FORGOTTEN for one in _transactions(found))


def _failed(failure: Failure) -> Unread:
    return Unread(failure.detail, passing=failure.kind in {FailureKind.TIMED_OUT, FailureKind.UNREACHABLE})


def _transaction_acl(transactional_id: str | None = None) -> str:
    return "DESCRIBE on " + (
        "its transactional id" if transactional_id is None else f"transactional id {transactional_id}"
    )


# Requests.


def _describe_producers(partitions: Sequence[TopicPartition]) -> Request:
    by_topic: dict[str, list[int]] = {}
    for address in partitions:
        by_topic.setdefault(address.topic, []).append(address.partition)
    topics = [{"name": topic, "partition_indexes": numbers} for topic, numbers in by_topic.items()]
    return Request("DescribeProducers", {"topics": topics})


def _list_transactions(producers: Sequence[int]) -> Request:
    fields = {"state_filters": [], "producer_id_filters": list(producers)}
    return Request("ListTransactions", fields, max_version=0)


def _describe_transactions(ids: Sequence[str]) -> Request:
    return Request("DescribeTransactions", {"transactional_ids": list(ids)})


def _describe_acls() -> Request:
    """A question whose only use is its error: SECURITY_DISABLED tells that nobody is kept from seeing anything."""
    fields = {
        "resource_type_filter": _ANY,
        "resource_name_filter": None,
        "pattern_type_filter": _MATCH_ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }
    return Request("DescribeAcls", fields)
