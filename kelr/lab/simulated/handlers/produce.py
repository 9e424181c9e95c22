"""Produce and InitProducerId.

Source: KafkaApis.handleProduceRequest and handleInitProducerIdRequest, ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from kelr.lab.simulated.api import Answer, Api, Call, Later, Message, code
from kelr.lab.simulated.appending import NO_TRANSACTIONS, NOT_LEADER, Appended, Refused, Sending, append, outcome
from kelr.lab.simulated.leaders import CurrentLeaders
from kelr.lab.simulated.replicas import NONE, known
from kelr.model import TopicPartition
from kelr.simulation.logs import Acks

_UNKNOWN = -1
_ACKS = {-1: Acks.ALL, 0: Acks.NONE, 1: Acks.LEADER}
_Done = Appended | Refused


def produce(call: Call) -> Answer:
    """Append what came, and answer as soon as the producer's acks allow it.

    Raises:
        ConnectionAbortedError: acks=0 and something was refused: the only way to tell such a producer.
    """
    done = list(_carried_out(call))
    if call.request.acks == 0:
        if any(isinstance(one, Refused) for _, one in done):
            raise ConnectionAbortedError("a producer that waits for no answer sent what was refused")
        return None
    if call.request.acks == 1 or not any(isinstance(one, Appended) for _, one in done):
        return _response(call, done)
    return _committed(call, done) or _wait(call, done)


def _wait(call: Call, done: list[tuple[Message, _Done]]) -> Later:
    def expired() -> Message:
        late = [
            (topic, Refused(one.address, outcome(call.world, call.node, one) or "REQUEST_TIMED_OUT"))
            if isinstance(one, Appended) and outcome(call.world, call.node, one) != NONE
            else (topic, one)
            for topic, one in done
        ]
        return _response(call, late)

    until_ms = call.world.running.now_ms + max(0, call.request.timeout_ms)
    return Later(until_ms, lambda: _committed(call, done), expired)


def _committed(call: Call, done: list[tuple[Message, _Done]]) -> Message | None:
    """The answer, where nothing waits for the high watermark any more."""
    found: list[tuple[Message, _Done]] = []
    for topic, one in done:
        said = outcome(call.world, call.node, one) if isinstance(one, Appended) else NONE
        if said is None:
            return None
        found.append((topic, one if said == NONE else Refused(one.address, said)))
    return _response(call, found)


def _carried_out(call: Call) -> Iterator[tuple[Message, _Done]]:
    """What became of each partition, with its topic's message."""
    for topic in call.request.topic_data:
        name = call.world.topic_of(topic.topic_id) if call.version >= 13 else topic.name
        for partition in topic.partition_data:
            address = TopicPartition(name or "", partition.index)
            error = _refusal(call, address)
            if error != NONE:
                yield topic, Refused(address, error)
                continue
            sending = Sending(partition.records, _ACKS[call.request.acks], call.version)
            yield topic, append(call.world, call.node, address, sending)


def _refusal(call: Call, address: TopicPartition) -> str:
    if call.request.acks not in _ACKS:
        return "INVALID_REQUIRED_ACKS"
    if call.request.transactional_id is not None:
        return NO_TRANSACTIONS
    if not address.topic:
        return "UNKNOWN_TOPIC_ID"
    if not call.world.allowed("topic", "WRITE", address.topic):
        return "TOPIC_AUTHORIZATION_FAILED"
    return NONE if known(call.world, call.node, address) is not None else "UNKNOWN_TOPIC_OR_PARTITION"


def _response(call: Call, done: list[tuple[Message, _Done]]) -> Message:
    kind, version, leaders = ProduceResponse.TopicProduceResponse, call.version, CurrentLeaders(call.world, call.node)
    topics: list[tuple[Message, Message]] = []
    for topic, one in done:
        if not topics or topics[-1][0] is not topic:
            named = {"topic_id": topic.topic_id} if version >= 13 else {"name": topic.name}
            topics.append((topic, kind(version=version, partition_responses=[], **named)))
        topics[-1][1].partition_responses.append(_partition(kind.PartitionProduceResponse, version, one, leaders))
    tagged = {}
    if version >= 10 and leaders.told:
        tagged["node_endpoints"] = leaders.endpoints(ProduceResponse.NodeEndpoint, version)
    return ProduceResponse(version=version, responses=[made for _, made in topics], throttle_time_ms=0, **tagged)


def _partition(kind: type[Message], version: int, one: _Done, leaders: CurrentLeaders) -> Message:
    if isinstance(one, Appended):
        return kind(
            version=version,
            index=one.address.partition,
            error_code=code(NONE),
            base_offset=one.base_offset,
            log_append_time_ms=_UNKNOWN if one.append_time_ms is None else one.append_time_ms,
            log_start_offset=one.log_start,
            record_errors=[],
            error_message=None,
        )
    tagged = {}
    if version >= 10 and one.error == NOT_LEADER:
        leader, epoch = leaders.of(one.address)
        tagged["current_leader"] = kind.LeaderIdAndEpoch(version=version, leader_id=leader, leader_epoch=epoch)
    return kind(
        version=version,
        index=one.address.partition,
        error_code=code(one.error),
        base_offset=_UNKNOWN,
        log_append_time_ms=_UNKNOWN,
        log_start_offset=one.log_start,
        record_errors=[],
        error_message=one.words,
        **tagged,
    )


def init_producer_id(call: Call) -> Message:
    """A producer id for an idempotent producer; nobody may use a transactional id here."""
    world, error = call.world, NONE
    if call.request.transactional_id is not None:
        error = NO_TRANSACTIONS
    elif not (world.allowed("cluster", "IDEMPOTENT_WRITE") or world.allowed("topic", "WRITE")):
        error = "CLUSTER_AUTHORIZATION_FAILED"
    return InitProducerIdResponse(
        version=call.version,
        throttle_time_ms=0,
        error_code=code(error),
        producer_id=world.contents.producers.new_id() if error == NONE else _UNKNOWN,
        producer_epoch=0 if error == NONE else _UNKNOWN,
    )


APIS: tuple[Api, ...] = (
    Api(ProduceRequest, ProduceResponse, (3, 13), produce),
    Api(InitProducerIdRequest, InitProducerIdResponse, (0, 6), init_producer_id),
)
