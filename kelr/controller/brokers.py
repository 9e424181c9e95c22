"""What becomes of the partitions when brokers come, go and fail.

Source: ReplicationControlManager (handleBroker*, handleDirectoriesOffline, processBrokerHeartbeat) and
ClusterControlManager.registerBroker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kelr.controller import events as ev
from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.handlers import (
    broker_fenced,
    broker_registered,
    broker_unfenced,
    broker_unregistered,
    directory_failed,
    without,
)
from kelr.controller.reach import Handled, Handler, reach, refused
from kelr.controller.state import ControllerState, Registration
from kelr.model import PartitionState, TopicPartition


def registered(state: ControllerState, event: ev.BrokerRegistered) -> Handled:
    broker = event.broker
    clean = event.clean and broker in state.brokers

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return broker_registered(partition, broker, around, clean=clean)

    looks_at_elr = state.rules.elr and not clean
    again = _in_elr(state, broker) if looks_at_elr else ()
    handled = reach(state, _in_isr(state, broker), handler, again)
    epoch = state.next_epoch if event.epoch is None else event.epoch
    after = handled.state.with_broker(broker, Registration(epoch, rack=event.rack))
    after = replace(after, next_epoch=max(state.next_epoch, epoch + 1))
    return replace(handled, state=_with_directories(after, broker, event.lost_directories))


def fenced(state: ControllerState, event: ev.BrokerFenced) -> Handled:
    registration = state.brokers.get(event.broker)
    if registration is None:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    if registration.fenced:
        return Handled(state)
    handled = reach(state, _in_isr(state, event.broker), _by(broker_fenced, event.broker))
    return replace(handled, state=handled.state.with_broker(event.broker, replace(registration, fenced=True)))


def unfenced(state: ControllerState, event: ev.BrokerUnfenced) -> Handled:
    broker, registration = event.broker, state.brokers.get(event.broker)
    if registration is None:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    if not registration.fenced:
        return Handled(state)

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        if broker in (partition.offline_replicas or ()):
            return change_partition(partition, around, election=around.normal_election)
        return broker_unfenced(partition, broker, around)

    handled = reach(state, _leaderless(state), handler)
    return replace(handled, state=handled.state.with_broker(broker, replace(registration, fenced=False)))


def controlled_shutdown(state: ControllerState, event: ev.ControlledShutdown) -> Handled:
    """The first such heartbeat moves the leaders away; one that finds none left lets the broker stop, and fences it."""
    broker, registration = event.broker, state.brokers.get(event.broker)
    if registration is None:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    leads = any(partition.leader == broker for partition in state.partitions.values())
    if registration.in_controlled_shutdown and leads and not registration.fenced:
        return Handled(state)
    handled = reach(state, _in_isr(state, broker), _by(broker_fenced, broker))
    stops_now = registration.fenced or not leads
    stopping = replace(
        registration,
        fenced=registration.fenced or stops_now,
        in_controlled_shutdown=registration.in_controlled_shutdown or not stops_now,
    )
    return replace(handled, state=handled.state.with_broker(broker, stopping))


def unregistered(state: ControllerState, event: ev.BrokerUnregistered) -> Handled:
    if event.broker not in state.brokers:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    handler = _by(broker_unregistered, event.broker)
    handled = reach(state, _in_isr(state, event.broker), handler, _in_elr(state, event.broker))
    return replace(handled, state=handled.state.with_broker(event.broker, None))


def directory_lost(state: ControllerState, event: ev.DirectoryFailed) -> Handled:
    broker = event.broker
    if broker not in state.brokers:
        return refused(state, "BROKER_ID_NOT_REGISTERED")
    lost = tuple(
        address
        for address, partition in sorted(state.partitions.items())
        if broker in partition.replicas
        and broker not in (partition.offline_replicas or ())
        and (event.partitions is None or address in event.partitions)
    )
    handled = reach(state, lost, _by(directory_failed, broker))
    after = handled.state
    for address in lost:
        partition = after.partitions[address]
        after = after.with_partition(replace(partition, offline_replicas=(*(partition.offline_replicas or ()), broker)))
    return replace(handled, state=after)


def directory_assigned(state: ControllerState, event: ev.DirectoryAssigned) -> Handled:
    """The record tells the directory, so there is one in any case; the election in it is always ONLINE."""
    partition = state.partitions.get(event.address)
    if partition is None:
        return Handled(state, answers={event.address: "UNKNOWN_TOPIC_OR_PARTITION"})
    if event.broker not in partition.replicas:
        return Handled(state, answers={event.address: "NOT_LEADER_OR_FOLLOWER"})

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        change = change_partition(partition, around, election=Election.ONLINE)
        if change.written or partition.partition_epoch is None:
            return change
        return replace(change, after=replace(partition, partition_epoch=partition.partition_epoch + 1))

    handled = reach(state, (event.address,), handler)
    known = handled.state.partitions[event.address]
    if known.offline_replicas:
        known = replace(known, offline_replicas=without(known.offline_replicas, event.broker))
    return replace(handled, state=handled.state.with_partition(known), answers={event.address: "NONE"})


def _by(handler: Callable[[PartitionState, int, Circumstances], Change], broker: int) -> Handler:
    return lambda partition, around: handler(partition, broker, around)


def _in_isr(state: ControllerState, broker: int) -> tuple[TopicPartition, ...]:
    """BrokersToIsrs.partitionsWithBrokerInIsr."""
    return tuple(address for address, partition in sorted(state.partitions.items()) if broker in partition.isr)


def _in_elr(state: ControllerState, broker: int) -> tuple[TopicPartition, ...]:
    """BrokersToElrs.partitionsWithBrokerInElr, with what a ClearElrRecord left behind there."""
    return tuple(
        address
        for address, partition in sorted(state.partitions.items())
        if broker in (partition.elr or ()) or (address, broker) in state.cleared_elr
    )


def _leaderless(state: ControllerState) -> tuple[TopicPartition, ...]:
    return tuple(address for address, partition in sorted(state.partitions.items()) if partition.leader is None)


def _with_directories(state: ControllerState, broker: int, lost: frozenset[TopicPartition]) -> ControllerState:
    """Which of the broker's replicas are in a directory that its registration does not name."""
    for address, partition in state.partitions.items():
        was_lost, is_lost = broker in (partition.offline_replicas or ()), address in lost
        if broker in partition.replicas and was_lost != is_lost:
            others = without(partition.offline_replicas or (), broker)
            offline = (*others, broker) if is_lost else others
            state = state.with_partition(replace(partition, offline_replicas=offline))
    return state
