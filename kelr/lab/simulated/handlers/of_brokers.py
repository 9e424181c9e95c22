"""What brokers send to the controller, taken from whoever sends it: AlterPartition and BrokerRegistration.

The brokers of the simulated cluster do not send these over the ports. A proxy, a broker of one's own or a test may: an
ISR with stale broker epochs is refused (KIP-903), and a registration is clean by PreviousBrokerEpoch alone (KIP-966).

Source: ReplicationControlManager.alterPartition and ClusterControlManager.registerBroker of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from kelr.controller import events
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import CLUSTER, DENIED, Api, Call, Message, Nodes, code
from kelr.lab.simulated.metadata_log import incarnation_id
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_NOT_COMPARED = -1
"""A broker epoch that is not known, or not to be compared."""
_NOBODY = -1
_DIRECTORIES = 2
"""BrokerRegistration tells of log directories from this version on (KIP-858)."""
_PREVIOUS_EPOCH = 3
"""PreviousBrokerEpoch is there from this version on; who sends an older one is taken to have crashed."""


def alter_partition(call: Call) -> Message:
    """A leader proposes ISRs; each partition is answered by itself."""
    request, world = call.request, call.world
    if not world.allowed(CLUSTER, "CLUSTER_ACTION"):
        return _altered(DENIED[CLUSTER])
    sender = world.brokers.get(request.broker_id)
    if sender is None or sender.epoch != request.broker_epoch:
        return _altered("STALE_BROKER_EPOCH")
    kind = AlterPartitionResponse.TopicData
    return _altered(
        topics=[
            kind(
                topic_id=topic.topic_id,
                partitions=[_alter_one(call, world.topic_of(topic.topic_id), one) for one in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _alter_one(call: Call, topic: str | None, asked: Message) -> Message:
    if topic is None:
        return _partition(asked, "UNKNOWN_TOPIC_ID")
    address, world = TopicPartition(topic, asked.partition_index), call.world
    if world.state(address) is None:
        return _partition(asked, "UNKNOWN_TOPIC_OR_PARTITION")
    epochs = {one.broker_id: one.broker_epoch for one in asked.new_isr_with_epochs} if call.version >= 3 else {}
    done = world.running.ask(
        events.PartitionAltered(
            world.own(address),
            call.request.broker_id,
            tuple(epochs) if call.version >= 3 else tuple(asked.new_isr),
            member_epochs={member: epoch for member, epoch in epochs.items() if epoch != _NOT_COMPARED},
            recovering=bool(asked.leader_recovery_state),
            leader_broker_epoch=call.request.broker_epoch,
            leader_epoch=asked.leader_epoch,
            partition_epoch=asked.partition_epoch,
        )
    )
    error = done.answers.get(address, done.error)
    # What the answer tells is the record that this request wrote: followers may have moved on since.
    written = next((change.after for change in done.changes if change.after.address == address), world.state(address))
    return _partition(asked, error, written)


def _partition(asked: Message, error: str, state: PartitionState | None = None) -> Message:
    told: dict[str, Message] = {}
    if error == NONE and state is not None:
        told = {
            "leader_id": _NOBODY if state.leader is None else state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "leader_recovery_state": int(bool(state.recovering)),
            "partition_epoch": state.partition_epoch or 0,
        }
    kind = AlterPartitionResponse.TopicData.PartitionData
    return kind(partition_index=asked.partition_index, error_code=code(error), **told)


def _altered(error: str = NONE, topics: list[Message] | None = None) -> Message:
    return AlterPartitionResponse(throttle_time_ms=0, error_code=code(error), topics=topics or [])


def register_broker(call: Call) -> Message:
    """A broker's new incarnation; its process runs from then on, with what its disk holds."""
    error = _refusal(call)
    registered = call.world.brokers.get(call.request.broker_id)
    if error == NONE and not _same_process(call):
        previous = call.request.previous_broker_epoch if call.version >= _PREVIOUS_EPOCH else _NOT_COMPARED
        clean = registered is not None and previous == registered.epoch
        error = call.world.running.register(call.request.broker_id, clean=clean)
        registered = call.world.brokers.get(call.request.broker_id)
    epoch = registered.epoch if error == NONE and registered is not None else _NOT_COMPARED
    return BrokerRegistrationResponse(throttle_time_ms=0, error_code=code(error), broker_epoch=epoch)


def _refusal(call: Call) -> str:
    """Kafka's checks that a simulated broker can fail, in its order; listeners and features are not looked at."""
    request, world = call.request, call.world
    if not world.allowed(CLUSTER, "CLUSTER_ACTION"):
        return DENIED[CLUSTER]
    if request.cluster_id != world.cluster_id:
        return "INCONSISTENT_CLUSTER_ID"
    if not _same_process(call) and world.running.runs(request.broker_id):
        return "DUPLICATE_BROKER_REGISTRATION"
    if call.version >= 1 and request.is_migrating_zk_broker:
        return "BROKER_ID_NOT_REGISTERED"
    no_directory = call.version < _DIRECTORIES or not request.log_dirs
    # A broker of another id has no port here.
    return "INVALID_REGISTRATION" if no_directory or request.broker_id not in world.ports else NONE


def _same_process(call: Call) -> bool:
    """Whether the broker is registered with this incarnation: that is amended, and keeps its broker epoch."""
    registered = call.world.brokers.get(call.request.broker_id)
    if registered is None:
        return False
    own = incarnation_id(call.world.cluster_id, call.request.broker_id, registered.epoch)
    return bool(call.request.incarnation_id == own)


APIS: tuple[Api, ...] = (
    Api(AlterPartitionRequest, AlterPartitionResponse, (2, 3), alter_partition, Nodes.CONTROLLERS),
    Api(BrokerRegistrationRequest, BrokerRegistrationResponse, (0, 4), register_broker, Nodes.CONTROLLERS),
)
