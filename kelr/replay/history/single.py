"""The cause of a partition's change beside which no broker came or went.

What remains are requests (AlterPartition, ElectLeaders, AlterPartitionReassignments, AssignReplicasToDirs) and the
controller's own tasks. Each leaves a mark of its own: only a leader's report lets the ISR grow while the leader stays,
only a preferred election moves the leadership away from a replica that stays in sync.

Source: ReplicationControlManager of Apache Kafka (alterPartition, electLeaders, alterPartitionReassignments,
maybeElectUncleanLeaders, maybeBalancePartitionLeaders, handleAssignReplicasToDirs).
"""

from __future__ import annotations

from kelr.model import PartitionState
from kelr.replay.history.elections import elected_as, reassignment_step
from kelr.replay.history.entries import Cause, CauseKind, Certainty, ElectedAs, ReassignmentStep

UNKNOWN = Cause(CauseKind.UNKNOWN, Certainty.UNKNOWN)

REQUESTED = frozenset(ReassignmentStep) - {ReassignmentStep.COMPLETED}
"""Steps that only AlterPartitionReassignments takes."""


def cause_alone(
    before: PartitionState,
    after: PartitionState,
    *,
    unclean_allowed: bool | None,
    directories_written: bool,
    recovery: str | None = None,
) -> Cause:
    """Why the partition changed, where no broker's record explains it.

    Args:
        unclean_allowed: unclean.leader.election.enable as it is on record.
        directories_written: a record beside it says in which log directories its replicas are.
        recovery: what is known of an unclean recovery (`recoveries.told_of`); None where there is no recovery manager.
    """
    step = reassignment_step(before, after)
    if step in REQUESTED:
        return Cause(CauseKind.REASSIGNMENT)
    if after.leader is not None and after.leader != before.leader:
        return _of_new_leader(before, after, step, unclean_allowed, recovery)
    if before.leader is None or after.leader is None:
        return UNKNOWN
    return _of_same_leader(before, after, step, directories_written)


def _of_new_leader(
    before: PartitionState,
    after: PartitionState,
    step: ReassignmentStep | None,
    unclean_allowed: bool | None,
    recovery: str | None,
) -> Cause:
    chosen = elected_as(before, after, recovers=recovery is not None)
    if chosen is ElectedAs.UNCLEAN_RECOVERY:
        return Cause(CauseKind.ELECTION, detail=recovery)
    if before.leader is None:
        return Cause(CauseKind.ELECTION, detail=_who_asked(chosen, unclean_allowed))
    if step is ReassignmentStep.COMPLETED and set(after.isr) - set(before.isr) and before.leader not in after.replicas:
        return Cause(CauseKind.ALTER_PARTITION, broker=before.leader)
    stays_in_sync = before.leader in after.isr and before.isr == after.isr
    if chosen is ElectedAs.ISR and stays_in_sync and after.leader == after.replicas[0]:
        return Cause(CauseKind.PREFERRED_ELECTION)
    return UNKNOWN


def _who_asked(chosen: ElectedAs | None, unclean_allowed: bool | None) -> str | None:
    if chosen is not ElectedAs.UNCLEAN:
        return None
    if unclean_allowed is False:
        return "ElectLeaders UNCLEAN (unclean.leader.election.enable is false)"
    if unclean_allowed:
        return "ElectLeaders UNCLEAN or by itself (unclean.leader.election.enable is true)"
    return "ElectLeaders UNCLEAN (or by itself, if the controller's file has unclean.leader.election.enable=true)"


def _of_same_leader(
    before: PartitionState, after: PartitionState, step: ReassignmentStep | None, directories_written: bool
) -> Cause:
    leader = after.leader
    grown, lost = set(after.isr) - set(before.isr), set(before.isr) - set(after.isr)
    if grown or (before.recovering and not after.recovering):
        return Cause(CauseKind.ALTER_PARTITION, broker=leader)
    if step is ReassignmentStep.COMPLETED:
        return Cause(CauseKind.ALTER_PARTITION, Certainty.LIKELY, broker=leader)
    if lost and directories_written:
        broker = next(iter(lost)) if len(lost) == 1 else None
        return Cause(CauseKind.DIRECTORY_FAILED, Certainty.LIKELY, broker=broker)
    if lost:
        return Cause(CauseKind.ALTER_PARTITION, broker=leader)
    return UNKNOWN
