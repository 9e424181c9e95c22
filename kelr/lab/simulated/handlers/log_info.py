"""GetReplicaLogInfo, in the dialect and under the API key that the cluster was made with.

Source: KIP-966, "GetReplicaLogInfo"; the patch to Kafka's trunk that was reverted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from kelr.controller import LogInfoEntry
from kelr.lab.simulated.api import Api, Call, Message, code
from kelr.lab.simulated.connection import asking_node
from kelr.lab.simulated.replicas import NONE, Replica, hosted, known
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition
from kelr.protocol.dialects import Dialect
from kelr.protocol.messages import replica_log_info

_UNKNOWN = -1
_WORDS = {
    "REQUEST_LIMIT_REACHED": "the request has more partitions than this broker answers for",
    "UNKNOWN_TOPIC_ID": "no topic has this id",
    "UNKNOWN_TOPIC_OR_PARTITION": "the topic has no such partition",
    "NOT_LEADER_OR_FOLLOWER": "this broker holds no replica of the partition",
    "KAFKA_STORAGE_ERROR": "the log directory of this replica failed",
    "INVALID_REQUEST": "the request was meant for another broker",
    "CLUSTER_AUTHORIZATION_FAILED": "CLUSTER_ACTION on the cluster is needed",
}


class LogInfo:
    """Answers in one dialect."""

    def __init__(self, dialect: Dialect, request: type[Message], response: type[Message], limit: int) -> None:
        self._kip = dialect is Dialect.KIP
        self._request = request
        self._response = response
        self._limit = limit

    def handle(self, call: Call) -> Message:
        """One entry for each partition; the patch leaves out what is over the limit, and says so."""
        error = self._refusal(call)
        topics: list[Message] = []
        count, more = 0, False
        for topic_id, partitions in _asked(call):
            infos = []
            for partition in partitions:
                count += 1
                over = count > self._limit
                if over and not self._kip:
                    more = True
                    break
                wrong = "REQUEST_LIMIT_REACHED" if over and error == NONE else error
                infos.append(self._info(call, topic_id, partition, wrong))
            if infos:
                kind = self._response.TopicPartitionLogInfo
                topics.append(kind(topic_id=topic_id, partition_log_info=infos))
        fields = {} if self._kip else {"has_more_replica_log_info": more}
        return self._response(
            broker_epoch=call.world.brokers[call.node].epoch,
            topic_partition_log_info_list=topics,
            **fields,
        )

    def _refusal(self, call: Call) -> str:
        # What clients are denied does not concern the controller: its principal is a super user.
        if asking_node(call.sender) is None and not call.world.allowed("cluster", "CLUSTER_ACTION"):
            return "CLUSTER_AUTHORIZATION_FAILED"
        # An answer tells nothing of who gives it but the broker epoch. A request that went to the wrong place (a port
        # that another broker has now) would pass off that broker's logs as those of the one that was meant.
        if self._kip and call.request.broker_id != call.node:
            return "INVALID_REQUEST"
        return NONE

    def _info(self, call: Call, topic_id: UUID, partition: int, error: str) -> Message:
        found = LogInfoEntry(_UNKNOWN, None, _UNKNOWN, error=error)
        if error == NONE:
            topic = call.world.topic_of(topic_id)
            if topic is None:
                found = LogInfoEntry(_UNKNOWN, None, _UNKNOWN, error="UNKNOWN_TOPIC_ID")
            else:
                found = entry(call.world, call.node, TopicPartition(topic, partition))
        return self._response.TopicPartitionLogInfo.PartitionLogInfo(
            partition=partition,
            last_written_leader_epoch=_UNKNOWN if found.last_epoch is None else found.last_epoch,
            current_leader_epoch=found.current_leader_epoch,
            log_end_offset=found.log_end,
            error_code=code(found.error),
            error_message=_WORDS.get(found.error),
        )


def _asked(call: Call) -> Iterator[tuple[UUID, Sequence[int]]]:
    """Topic ids with their partitions. The KIP lets the list be null and does not say what that means: as in Kafka's
    other requests, all; here all that the broker holds a replica of."""
    if call.request.topic_partitions is not None:
        yield from ((topic.topic_id, topic.partitions) for topic in call.request.topic_partitions)
        return
    for topic in call.world.topics():
        held = [one for one in range(call.world.partitions(topic)) if _holds(call, TopicPartition(topic, one))]
        if held:
            yield call.world.topic_id(topic), held


def _holds(call: Call, address: TopicPartition) -> bool:
    state = known(call.world, call.node, address)
    return state is not None and call.node in state.replicas


def entry(world: World, broker: int, address: TopicPartition) -> LogInfoEntry:
    """What a broker tells of its log, by what it knows of the partition; what was told by hand counts first."""
    cluster = world.running.cluster
    replica = hosted(world, broker, address)
    if address in cluster.told and broker in cluster.told[address]:
        return cluster.log_info(address, broker)
    if not isinstance(replica, Replica):
        return LogInfoEntry(_UNKNOWN, None, _UNKNOWN, error=replica)
    return LogInfoEntry(replica.log.end, replica.log.last_epoch, replica.state.leader_epoch)


def apis(spec: SimulatedSpec) -> Sequence[Api]:
    """Its one entry; none where brokers do not speak it."""
    return tuple(_apis(spec))


def _apis(spec: SimulatedSpec) -> Iterator[Api]:
    if spec.log_info is not None and spec.api_key is not None:
        request, response = replica_log_info(spec.log_info, spec.api_key)
        yield Api(request, response, (0, 0), LogInfo(spec.log_info, request, response, spec.log_info_limit).handle)
