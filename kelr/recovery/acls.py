"""Which ACLs carrying out a plan needs, looked at before anything is changed.

A reordering that is allowed and an election that is not would leave a partition reordered. Both need ALTER on the
cluster, and DescribeCluster tells whether the principal has it (KIP-430).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from kelr.errors import NotAuthorizedError
from kelr.model import Method, Plan, PlannedElection
from kelr.recovery.admin_client import AdminClient
from kelr.sources.permissions import Permissions, TellsPermissions

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class MissingAcl:
    """An operation that the principal may not do."""

    operation: str
    """Such as ``ALTER``."""
    resource: str
    """``the cluster``, or ``topic NAME``."""
    needed_for: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} ({self.needed_for})"


def check_authorization(hand: AdminClient, plan: Plan, *, elects: bool = True) -> tuple[MissingAcl, ...]:
    """What the principal lacks for this plan; empty where it lacks nothing, or where nobody tells.

    Args:
        elects: False where orders are restored alone, for which no log is read.

    Raises:
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    topics = tuple(sorted({one.topic for one in plan.elections}))
    permissions = permissions_of(hand, topics)
    missing = []
    if permissions.cluster is not None and "ALTER" not in permissions.cluster:
        missing.append(MissingAcl("ALTER", "the cluster", "ElectLeaders, AlterPartitionReassignments"))
    if permissions.cluster is not None and any(one.uncordons for one in plan.elections):
        needed = ("ALTER_CONFIGS", "DESCRIBE_CONFIGS")
        lacking = (one for one in needed if one not in permissions.cluster)
        missing.extend(MissingAcl(one, "the cluster", "taking the cordon of a broker off") for one in lacking)
    for topic in topics:
        granted = permissions.topics.get(topic)
        if granted is None:
            continue
        if "DESCRIBE" not in granted:
            missing.append(MissingAcl("DESCRIBE", f"topic {topic}", "reading the partitions again"))
        if elects and "READ" not in granted and any(_reads_logs(one) for one in plan.elections if one.topic == topic):
            missing.append(MissingAcl("READ", f"topic {topic}", "reading the replicas' logs again"))
    return tuple(missing)


def require_authorization(hand: AdminClient, plan: Plan, *, elects: bool = True) -> None:
    """Raises NotAuthorizedError, naming every ACL that is missing; then nothing was changed."""
    refuse(check_authorization(hand, plan, elects=elects))


def refuse(missing: tuple[MissingAcl, ...]) -> None:
    """Raises NotAuthorizedError where anything is missing."""
    if not missing:
        return
    shown = ", ".join(map(str, missing[:_SHOWN]))
    more = f", and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    raise NotAuthorizedError(
        f"the principal lacks {shown}{more}; nothing was changed", next_step="grant it, or use another principal"
    )


def permissions_of(hand: AdminClient, topics: tuple[str, ...]) -> Permissions:
    """What the hand's principal may do; all unknown where the hand cannot ask."""
    if not hasattr(hand, "permissions"):
        return Permissions()
    return cast(TellsPermissions, hand).permissions(topics)


def _reads_logs(planned: PlannedElection) -> bool:
    """Whether the plan stands on epochs that a Fetch told."""
    fetched = any("Fetch" in (log.source or "") and log.last_epoch is not None for log in planned.evidence.logs)
    return planned.method is not Method.PREFERRED and fetched
