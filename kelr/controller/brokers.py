"""What becomes of the partitions when brokers come, go and fail.

Source: ReplicationControlManager (handleBroker*, handleDirectoriesOffline, processBrokerHeartbeat) and
ClusterControlManager.registerBroker.
"""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import events as ev
from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.handlers import broker_unfenced, without
from kelr.controller.reach import NONE, ControllerFailedError, Handled, Handler, reach, refused, unknown
from kelr.controller.state import ControllerState, Registration
from kelr.model import PartitionState, TopicPartition

STALE = "STALE_BROKER_EPOCH"
"""The answer to a request of a broker that is not registered, or no longer with this epoch."""


def registered(state: ControllerState, event: ev.BrokerRegistered) -> Handled:
    broker = event.broker
    clean = event.clean and broker in state.brokers

    looks_at_elr = state.rules.elr and not clean
    if looks_at_elr and broker in state.elr_index.deleted:
        raise ControllerFailedError
    if looks_at_elr:
        unclean_shutdown = frozenset({broker})
        handled = reach(state, _in_isr(state, broker), _leaves(broker, unclean_shutdown), _in_elr(state, broker))
    else:
        handled = reach(state, _in_isr(state, broker), _leaves(broker))
    epoch = state.next_epoch if event.epoch is None else event.epoch
    after = handled.state.with_broker(broker, Registration(epoch, rack=event.rack))
    after = replace(after, next_epoch=max(state.next_epoch, epoch + 1))
    return replace(handled, state=_with_directories(after, broker, event.lost_directories))


def fenced(state: ControllerState, event: ev.BrokerFenced) -> Handled:
    """A fenced broker whose session expires (it registered, and died before it was unfenced) is fenced again."""
    registration = state.brokers.get(event.broker)
    if registration is None:
        return Handled(state)
    handled = reach(state, _in_isr(state, event.broker), _leaves(event.broker))
    return replace(handled, state=handled.state.with_broker(event.broker, replace(registration, fenced=True)))


def unfenced(state: ControllerState, event: ev.BrokerUnfenced) -> Handled:
    broker, registration = event.broker, state.brokers.get(event.broker)
    if registration is None:
        return refused(state, STALE)
    if not registration.fenced:
        return controlled_shutdown(state, ev.ControlledShutdown(broker)) if broker in state.stopping else Handled(state)

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        if broker in (partition.offline_replicas or ()):
            return change_partition(partition, around, election=around.normal_election)
        return broker_unfenced(partition, broker, around)

    handled = reach(state, _leaderless(state), handler)
    return replace(handled, state=handled.state.with_broker(broker, replace(registration, fenced=False)))


def cordoned(state: ControllerState, event: ev.BrokerCordoned) -> Handled:
    """What the controller has on record of it; no partition changes (handleDirectoriesCordoned)."""
    registration = state.brokers.get(event.broker)
    if registration is None:
        return refused(state, STALE)
    return Handled(state.with_broker(event.broker, replace(registration, cordoned=event.cordoned)))


def controlled_shutdown(state: ControllerState, event: ev.ControlledShutdown) -> Handled:
    """The first such heartbeat moves the leaders away; one that finds none left lets the broker stop, and fences it."""
    broker, registration = event.broker, state.brokers.get(event.broker)
    if registration is None:
        return refused(state, STALE)
    leads = any(partition.leader == broker for partition in state.partitions.values())
    if leads and broker in state.stopping:
        return Handled(state)
    handled = reach(state, _in_isr(state, broker), _leaves(broker))
    if registration.fenced or not leads:
        return replace(handled, state=handled.state.with_broker(broker, replace(registration, fenced=True)))
    after = handled.state.with_broker(broker, replace(registration, in_controlled_shutdown=True))
    return replace(handled, state=replace(after, stopping=after.stopping | {broker}))


def unregistered(state: ControllerState, event: ev.BrokerUnregistered) -> Handled:
    if event.broker not in state.brokers:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    if event.broker in state.elr_index.deleted:
        raise ControllerFailedError
    handled = reach(state, _in_isr(state, event.broker), _leaves(event.broker), _in_elr(state, event.broker))
    return replace(handled, state=handled.state.with_broker(event.broker, None))


def directory_lost(state: ControllerState, event: ev.DirectoryFailed) -> Handled:
    broker = event.broker
    if broker not in state.brokers:
        return refused(state, STALE)
    if any(of == broker and _holds_deleted(state, event, address) for address, of in state.deleted_replicas):
        raise ControllerFailedError
    lost = tuple(
        address
        for address, partition in sorted(state.partitions.items())
        if broker in partition.replicas and broker not in (partition.offline_replicas or ()) and event.holds(address)
    )
    handled = reach(state, lost, _leaves(broker))
    after = handled.state
    offline = (_placed(after.partitions[address], broker, online=False) for address in lost)
    return replace(handled, state=after.with_partitions(offline))


def _placed(partition: PartitionState, broker: int, *, online: bool) -> PartitionState:
    """The partition with this replica, if it still is one, in a directory that is online or not."""
    others = without(partition.offline_replicas or (), broker)
    offline = others if online or broker not in partition.replicas else (*others, broker)
    return partition if offline == (partition.offline_replicas or ()) else replace(partition, offline_replicas=offline)


def _holds_deleted(state: ControllerState, event: ev.DirectoryFailed, address: TopicPartition) -> bool:
    """Whether the directory holds the deleted replica; a name that a topic has again stands for the new one."""
    again = state.partitions.get(address)
    is_new = again is not None and event.broker in again.replicas
    return event.partitions is None or (address in event.partitions and not is_new)


def directory_assigned(state: ControllerState, event: ev.DirectoryAssigned) -> Handled:
    """A new directory is a record of its own, and the election in it is always ONLINE.

    It still goes by the directories from before; a replica that turns out to be offline leaves the ISR in a second
    record (handleAssignReplicasToDirs).
    """
    broker, address = event.broker, event.address
    if broker not in state.brokers:
        return refused(state, STALE)
    partition = state.partitions.get(address)
    if partition is None:
        return Handled(state, answers={address: unknown(state, address)})
    if broker not in partition.replicas:
        return Handled(state, answers={address: "NOT_LEADER_OR_FOLLOWER"})

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        if around.rules.directory_assignment_ignores_elr:
            around = replace(around, rules=replace(around.rules, elr=False))
        change = change_partition(partition, around, election=Election.ONLINE)
        if change.written or not event.moved or partition.partition_epoch is None:
            return change
        return replace(change, after=replace(partition, partition_epoch=partition.partition_epoch + 1))

    again = () if event.online else (address,)
    handled = reach(state, (address,), handler, again, _leaves(broker))
    known = _placed(handled.state.partitions[address], broker, online=event.online)
    return replace(handled, state=handled.state.with_partition(known), answers={address: NONE})


def _leaves(broker: int, unclean_shutdown: frozenset[int] = frozenset()) -> Handler:
    """The broker leaves the ISR and may not lead (ReplicationControlManager.generateLeaderAndIsrUpdates).

    That is asked for also where it is no member: where the index of ELR members is wrong, that runs an election.
    """

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return change_partition(
            partition,
            replace(around, electable=around.electable - {broker}),
            election=around.normal_election,
            target_isr=without(partition.isr, broker),
            unclean_shutdown=unclean_shutdown,
        )

    return handler


def _in_isr(state: ControllerState, broker: int) -> tuple[TopicPartition, ...]:
    """BrokersToIsrs.partitionsWithBrokerInIsr."""
    return tuple(address for address, partition in sorted(state.partitions.items()) if broker in partition.isr)


def _in_elr(state: ControllerState, broker: int) -> tuple[TopicPartition, ...]:
    """BrokersToElrs.partitionsWithBrokerInElr; a partition with entries too many is there more than once."""
    return tuple(
        address
        for address, partition in sorted(state.partitions.items())
        for _ in range((broker in (partition.elr or ())) + state.elr_index.count(address, broker))
    )


def _leaderless(state: ControllerState) -> tuple[TopicPartition, ...]:
    return tuple(address for address, partition in sorted(state.partitions.items()) if partition.leader is None)


def _with_directories(state: ControllerState, broker: int, lost: frozenset[TopicPartition]) -> ControllerState:
    """Which of the broker's replicas are in a directory that its registration does not name."""
    placed = (
        (known, _placed(known, broker, online=address not in lost)) for address, known in state.partitions.items()
    )
    return state.with_partitions(partition for known, partition in placed if partition is not known)
