"""Requests of leaders and operators: AlterPartition, ElectLeaders, reassignments, configs, features, topics.

Source: ReplicationControlManager (alterPartition, electLeaders, alterPartitionReassignments, maybeElectUncleanLeaders,
maybeBalancePartitionLeaders, createTopics, deleteTopics), ConfigurationControlManager (incrementalAlterConfigs,
updateFeatures).
"""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import events as ev
from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.handlers import elect_leaders, isr_altered, min_isr_written
from kelr.controller.reach import (
    FAILED,
    NONE,
    ControllerFailedError,
    Handled,
    Handler,
    checked,
    reach,
    refused,
    unknown,
    written,
)
from kelr.controller.rules import NEEDED_FOR_ELR
from kelr.controller.state import Configs, ControllerState
from kelr.model import PartitionState, TopicPartition

UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


def partition_altered(state: ControllerState, event: ev.PartitionAltered) -> Handled:
    """The leader reports another ISR (KIP-497; broker epochs by KIP-903)."""
    sender = state.brokers.get(event.leader)
    if sender is None or event.leader_broker_epoch not in {None, sender.epoch}:
        return refused(state, "STALE_BROKER_EPOCH")
    partition = state.partitions.get(event.address)
    if partition is None:
        return _answer(state, event.address, unknown(state, event.address))
    error = _stale(partition, event) or _malformed(partition, event) or _ineligible(state, event)
    if error:
        return _answer(state, event.address, error)

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return isr_altered(partition, event.isr, around, recovering=event.recovering)

    handled = reach(state, (event.address,), handler)
    moved = handled.state.partitions[event.address].leader != event.leader
    return replace(handled, answers={event.address: "NEW_LEADER_ELECTED" if moved else NONE})


def _stale(partition: PartitionState, event: ev.PartitionAltered) -> str | None:
    """A sender that knows more than the controller, or less (validateAlterPartitionData, first part)."""
    current = partition.partition_epoch or 0
    leader_epoch = partition.leader_epoch if event.leader_epoch is None else event.leader_epoch
    partition_epoch = current if event.partition_epoch is None else event.partition_epoch
    if leader_epoch > partition.leader_epoch or partition_epoch > current:
        return "NOT_CONTROLLER"
    if leader_epoch < partition.leader_epoch:
        return "FENCED_LEADER_EPOCH"
    if event.leader != partition.leader:
        return "INVALID_REQUEST"
    return "INVALID_UPDATE_VERSION" if partition_epoch < current else None


def _malformed(partition: PartitionState, event: ev.PartitionAltered) -> str | None:
    """An ISR that cannot be (validateAlterPartitionData, second part)."""
    isr = event.isr
    wrong = (
        len(set(isr)) < len(isr)
        or not set(isr) <= set(partition.replicas)
        or event.leader not in isr
        or (event.recovering and len(isr) > 1)
        or (event.recovering and not partition.recovering)
    )
    return "INVALID_REQUEST" if wrong else None


def _ineligible(state: ControllerState, event: ev.PartitionAltered) -> str | None:
    """A member that is gone, fenced, stopping, or was restarted since it fetched (KIP-903)."""
    for member in event.isr:
        registration = state.brokers.get(member)
        if registration is None or not registration.active:
            return "INELIGIBLE_REPLICA"
        if event.member_epochs.get(member, registration.epoch) != registration.epoch:
            return "INELIGIBLE_REPLICA"
    return None


def leaders_elected(state: ControllerState, event: ev.LeadersElected) -> Handled:
    everything = event.partitions is None
    addresses = sorted(state.partitions) if event.partitions is None else event.partitions
    changes: list[Change] = []
    answers: dict[TopicPartition, str] = {}
    for address in addresses:
        partition = state.partitions.get(address)
        if partition is None:
            answers[address] = UNKNOWN
            continue
        answer = elect_leaders(partition, event.election, state.around(partition))
        if answer.change.written:
            changes.append(checked(answer.change))
        if not everything or answer.error != "ELECTION_NOT_NEEDED":
            answers[address] = answer.error
    return Handled(written(state, changes), tuple(changes), answers=answers)


def unclean_election_task(state: ControllerState, _event: ev.UncleanElectionTask) -> Handled:
    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return elect_leaders(partition, Election.UNCLEAN, around).change

    leaderless = (
        address
        for address, partition in sorted(state.partitions.items())
        if partition.leader is None and state.config(address.topic).unclean_leader_election
    )
    return reach(state, leaderless, handler)


def preferred_election_task(state: ControllerState, _event: ev.PreferredElectionTask) -> Handled:
    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return change_partition(partition, around, election=Election.PREFERRED)

    imbalanced = (
        address for address, partition in sorted(state.partitions.items()) if partition.leader != partition.replicas[0]
    )
    return reach(state, imbalanced, handler)


def reassigned(state: ControllerState, event: ev.Reassigned) -> Handled:
    partition = state.partitions.get(event.address)
    if partition is None:
        return _answer(state, event.address, UNKNOWN)
    if event.replicas is None:
        return _cancelled(state, partition)
    wanted = event.replicas
    if not wanted or not _may_be_named(state, wanted):
        return _answer(state, event.address, "INVALID_REPLICA_ASSIGNMENT")

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        removing = tuple(sorted(set(partition.replicas) - set(wanted)))
        adding = tuple(sorted(set(wanted) - set(partition.replicas)))
        return change_partition(
            partition,
            around,
            election=Election.ONLINE,
            target_replicas=(*wanted, *removing),
            target_adding=adding or None,
            target_removing=removing or None,
        )

    return _reassigned(state, event.address, handler)


def _may_be_named(state: ControllerState, replicas: tuple[int, ...]) -> bool:
    """Whether an assignment may be these (validateManualPartitionAssignment)."""
    brokers = [state.brokers.get(replica) for replica in {*replicas}]
    return len(brokers) == len(replicas) and all(one is not None and not one.cordoned for one in brokers)


def _reassigned(state: ControllerState, address: TopicPartition, handler: Handler) -> Handled:
    """Here alone a failure of the controller is caught, and told for the partition."""
    try:
        return replace(reach(state, (address,), handler), answers={address: NONE})
    except ControllerFailedError:
        return _answer(state, address, FAILED)


def _cancelled(state: ControllerState, partition: PartitionState) -> Handled:
    """Back to the replicas from before the reassignment (PartitionReassignmentRevert)."""
    adding, address = partition.adding or (), partition.address
    if not adding and not partition.removing:
        return _answer(state, address, "NO_REASSIGNMENT_IN_PROGRESS")
    replicas = tuple(replica for replica in partition.replicas if replica not in adding)
    isr = tuple(replica for replica in partition.isr if replica not in adding)
    around = state.around(partition)
    if not isr and not around.unclean_leader_election:
        return _answer(state, address, "INVALID_REPLICA_ASSIGNMENT")
    if around.rules.kip966 and len(isr) < min(around.min_isr, len(replicas)):
        # KIP-966, AlterPartitionReassignments: min ISR also counts where a reassignment is cancelled.
        return _answer(state, address, "INVALID_REPLICA_ASSIGNMENT")

    def handler(partition: PartitionState, around: Circumstances) -> Change:
        return change_partition(
            partition,
            around,
            election=around.normal_election,
            target_isr=isr or replicas[:1],
            target_replicas=replicas,
            target_adding=(),
            target_removing=(),
        )

    return _reassigned(state, address, handler)


def topic_created(state: ControllerState, event: ev.TopicCreated) -> Handled:
    if state.of_topic(event.topic):
        return refused(state, "TOPIC_ALREADY_EXISTS")
    created = []
    for number, replicas in enumerate(event.replicas):
        isr = tuple(replica for replica in replicas if state.active(replica))
        if not isr or not _may_be_named(state, replicas) or len(replicas) != len(event.replicas[0]):
            return refused(state, "INVALID_REPLICA_ASSIGNMENT")
        created.append(_created(event.topic, number, replicas, isr))
    return Handled(state.with_partitions(created))


def _created(topic: str, number: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionState:
    return PartitionState(
        topic=topic,
        partition=number,
        leader=isr[0],
        leader_epoch=0,
        replicas=replicas,
        isr=isr,
        elr=(),
        last_known_elr=(),
        offline_replicas=(),
        partition_epoch=0,
        adding=(),
        removing=(),
        recovering=False,
    )


def topic_deleted(state: ControllerState, event: ev.TopicDeleted) -> Handled:
    if not state.of_topic(event.topic):
        return refused(state, UNKNOWN)
    left = {address: partition for address, partition in state.partitions.items() if address.topic != event.topic}
    topics = {topic: configs for topic, configs in state.topics.items() if topic != event.topic}
    members = {broker for address in state.of_topic(event.topic) for broker in state.partitions[address].elr or ()}
    index = state.elr_index.without_topic(event.topic, members)
    kept = {
        (address, broker)
        for address in state.of_topic(event.topic)
        for broker in state.partitions[address].replicas
        if not state.partitions[address].isr and not state.rules.kip966
    }
    deleted = state.deleted_replicas | kept
    return Handled(replace(state, partitions=left, topics=topics, elr_index=index, deleted_replicas=deleted))


def config_written(state: ControllerState, event: ev.ConfigWritten) -> Handled:
    if event.topic is not None and not state.of_topic(event.topic):
        return refused(state, UNKNOWN)
    level = _level(state, event.topic)
    new = Configs(
        level.min_isr if event.min_isr is None else event.min_isr,
        level.unclean_leader_election if event.unclean_leader_election is None else event.unclean_leader_election,
        event.recovery_strategy or level.recovery_strategy,
        level.recovery_timeout_ms if event.recovery_timeout_ms is None else event.recovery_timeout_ms,
    )
    if event.topic is not None and event.min_isr is not None:
        state = replace(state, min_isr_unknown=state.min_isr_unknown - {event.topic})
    # A value that a topic has already is not written again; a cluster-wide one is, and clears the ELR again.
    rewritten = event.min_isr is not None and (event.topic is None or new.min_isr != level.min_isr)
    return _min_isr_cleared(_with_level(state, event.topic, new), event.topic, rewritten)


def config_deleted(state: ControllerState, event: ev.ConfigDeleted) -> Handled:
    if event.topic is not None and not state.of_topic(event.topic):
        return refused(state, UNKNOWN)
    if event.topic is None and event.min_isr and state.rules.elr:
        return refused(state, "INVALID_CONFIG")
    level = _level(state, event.topic)
    new = Configs(
        None if event.min_isr else level.min_isr,
        None if event.unclean_leader_election else level.unclean_leader_election,
        None if event.recovery_strategy else level.recovery_strategy,
        None if event.recovery_timeout_ms else level.recovery_timeout_ms,
    )
    rewritten = event.min_isr and (event.topic is None or level.min_isr is not None)
    return _min_isr_cleared(_with_level(state, event.topic, new), event.topic, rewritten)


def _min_isr_cleared(state: ControllerState, topic: str | None, rewritten: bool) -> Handled:
    """A record of min.insync.replicas brings a ClearElrRecord with it (createClearElrRecordsAsNeeded)."""
    if not rewritten or not state.rules.elr:
        return Handled(state)
    addresses = sorted(state.partitions) if topic is None else state.of_topic(topic)
    changes, index = [], state.elr_index
    for address in addresses:
        partition = state.partitions[address]
        around = state.around(partition)
        cleared = min_isr_written(partition, around)
        if cleared != partition:
            changes.append(replace(change_partition(partition, around, election=Election.ONLINE), after=cleared))
            if not state.rules.kip966:
                index = index.with_cleared(address, partition.elr or ())
    after = state.with_partitions(change.after for change in changes)
    return Handled(replace(after, elr_index=index), tuple(changes))


def elr_feature(state: ControllerState, event: ev.ElrFeature) -> Handled:
    """eligible.leader.replicas.version changes; partitions keep what they have until their next change.

    Turning it on pins min.insync.replicas cluster-wide (maybeGenerateElrSafetyRecords), which clears nothing.
    """
    after = replace(state, rules=replace(state.rules, elr=event.on))
    if event.on and after.cluster.min_isr is None:
        after = replace(after, cluster=replace(after.cluster, min_isr=after.static.min_isr or 1))
    return Handled(after)


def metadata_version(state: ControllerState, event: ev.MetadataVersion) -> Handled:
    """Below the level that ELR needs it goes off, and every partition's record loses what is left of it.

    Source: KIP-966, "Compatibility, Deprecation, and Migration Plan", ELR: "Once the MV version is downgraded, all the
    ELR related fields will be removed on the next partition change"; for a software downgrade "a metadata delta will be
    generated to capture the current status", which is that change, of all partitions at once. It elects nobody.
    """
    if event.level >= NEEDED_FOR_ELR or not state.rules.kip966:
        return Handled(state)
    after = replace(state, rules=replace(state.rules, elr=False))
    changes = []
    for _, partition in sorted(after.partitions.items()):
        if partition.elr or partition.last_known_elr:
            change = change_partition(partition, after.around(partition), election=Election.ONLINE)
            epoch = None if partition.partition_epoch is None else partition.partition_epoch + 1
            left = replace(partition, elr=(), last_known_elr=(), partition_epoch=epoch)
            changes.append(replace(change, after=left))
    return Handled(after.with_partitions(change.after for change in changes), tuple(changes))


def _level(state: ControllerState, topic: str | None) -> Configs:
    return state.cluster if topic is None else state.topics.get(topic, Configs())


def _with_level(state: ControllerState, topic: str | None, configs: Configs) -> ControllerState:
    if topic is None:
        return replace(state, cluster=configs)
    return replace(state, topics={**state.topics, topic: configs})


def _answer(state: ControllerState, address: TopicPartition, error: str) -> Handled:
    return Handled(state, answers={address: error})
