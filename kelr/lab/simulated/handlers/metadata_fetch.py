"""Fetch as a controller takes it: of ``__cluster_metadata`` alone.

FetchSnapshot is not served: the log has no snapshots and begins with its first record.

Source: ControllerApis.handleFetch and KafkaRaftClient (handleFetchRequest, tryCompleteFetchRequest) of Apache Kafka.
"""

from __future__ import annotations

from uuid import UUID

from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Answer, Call, Later, Message, code
from kelr.lab.simulated.world import HOST
from kelr.protocol.messages import FetchResponse

TOPIC = "__cluster_metadata"
TOPIC_ID = UUID(int=1)
_CLUSTERS = 12
"""From this version on a request may name the cluster that it is meant for."""
_BY_ID = 13
"""From this version on topics are told by their ids."""
_NOBODY = -1


def answer(call: Call) -> Answer:
    """Records of the metadata log, as soon as there are some or the client's time is over."""
    request, world = call.request, call.world
    if not world.allowed("cluster", "CLUSTER_ACTION"):
        return _refused("CLUSTER_AUTHORIZATION_FAILED")
    if call.version >= _CLUSTERS and request.cluster_id not in {None, world.cluster_id}:
        return _refused("INCONSISTENT_CLUSTER_ID")
    wanted = _wanted(call)
    if wanted is None:
        return _refused("INVALID_REQUEST")
    error = _unfit(call, wanted)
    if error != NONE:
        return _response(call, _partition(call, error=error))
    found = _read(call, wanted)
    offset = wanted.fetch_offset
    if found.records or request.max_wait_ms == 0 or offset < world.metadata.end or _diverges(found):
        return _response(call, found)

    def poll() -> Message | None:
        moved = _unfit(call, wanted) != NONE
        return expired() if moved or world.metadata.has_more(offset) else None

    def expired() -> Message:
        unfit = _unfit(call, wanted)
        return _response(call, _read(call, wanted) if unfit == NONE else _partition(call, error=unfit))

    return Later(world.running.now_ms + request.max_wait_ms, poll, expired)


def _wanted(call: Call) -> Message | None:
    """The one partition that there is; None for any other, or more, or one that is named and not told by its id
    (KafkaRaftClient.hasValidTopicPartition)."""
    topics = call.request.topics
    if call.version < _BY_ID or len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    wanted = topics[0].partitions[0]
    return wanted if topics[0].topic_id == TOPIC_ID and wanted.partition == 0 else None


def _unfit(call: Call, wanted: Message) -> str:
    """Why this controller does not answer: it does not lead, or the request's epochs are wrong."""
    if call.node != call.world.controller:
        return "NOT_LEADER_OR_FOLLOWER"
    epoch, last = wanted.current_leader_epoch, wanted.last_fetched_epoch
    if call.request.max_wait_ms < 0 or wanted.fetch_offset < 0 or last < 0 or last > epoch:
        return "INVALID_REQUEST"
    now = call.world.metadata.epoch
    if epoch < now:
        return "FENCED_LEADER_EPOCH"
    return "UNKNOWN_LEADER_EPOCH" if epoch > now else NONE


def _read(call: Call, wanted: Message) -> Message:
    log, offset, last = call.world.metadata, wanted.fetch_offset, wanted.last_fetched_epoch
    if offset == 0:
        return _partition(call, records=log.read(0))
    epoch, end = log.end_of(last)
    if epoch != last or end < offset:
        return _partition(call, diverging=(epoch, end))
    return _partition(call, records=log.read(offset))


def _diverges(found: Message) -> bool:
    return found.diverging_epoch is not None


def _partition(
    call: Call, *, error: str = NONE, records: bytes = b"", diverging: tuple[int, int] | None = None
) -> Message:
    kind, world = FetchResponse.FetchableTopicResponse.PartitionData, call.world
    leader = kind.LeaderIdAndEpoch(leader_id=world.controller, leader_epoch=world.metadata.epoch)
    fields: dict[str, Message] = {"current_leader": leader}
    if diverging is not None:
        epoch, end = diverging
        fields["diverging_epoch"] = kind.EpochEndOffset(epoch=epoch, end_offset=end)
    return kind(
        partition_index=0,
        error_code=code(error),
        high_watermark=world.metadata.end if error == NONE else _NOBODY,
        last_stable_offset=_NOBODY,
        log_start_offset=0,
        aborted_transactions=[],
        preferred_read_replica=_NOBODY,
        records=records,
        **fields,
    )


def _response(call: Call, partition: Message) -> Message:
    version, world = call.version, call.world
    topic = FetchResponse.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
    response = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=[topic])
    if version >= 17:
        node = world.controller
        response.node_endpoints = [
            FetchResponse.NodeEndpoint(node_id=node, host=HOST, port=world.ports[node], rack=None)
        ]
    return response


def _refused(error: str) -> Message:
    """The whole request is refused; nothing is told of its partitions."""
    return FetchResponse(throttle_time_ms=0, error_code=code(error), session_id=0, responses=[])
