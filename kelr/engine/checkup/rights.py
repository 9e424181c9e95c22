"""What a principal may do of all that a command needs: has, lacks, or nobody tells.

Source: KIP-430. The operations on the cluster come as none at all without DESCRIBE on it, and a topic without DESCRIBE
is refused (AuthHelper.authorizedOperations, KafkaApis); so an answer without DESCRIBE says that everything is missing
that implies it, and nothing of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelr.model.acls import COMMAND_ACLS, IMPLIED, AclOperation, AclResource, RequiredAcl, required_acls

IMPLY_DESCRIBE = frozenset({AclOperation.DESCRIBE}) | IMPLIED[AclOperation.DESCRIBE]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What brokers told of a principal's rights; names of operations, None where nobody told."""

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Topics that stand for all that a command may be asked about."""
    named: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Topics that commands need by name (`named_topics`)."""


@dataclass(frozen=True, slots=True)
class Right:
    """One ACL that a command needs."""

    acl: RequiredAcl
    has: bool | None
    """Whether the principal has it; None where nobody tells."""
    refused_on: tuple[str, ...] = ()
    """The topics on which it is missing."""


@dataclass(frozen=True, slots=True)
class CommandRights:
    """What a command needs, and which of it is there."""

    command: str
    rights: tuple[Right, ...]

    @property
    def has(self) -> bool | None:
        """Whether everything is there that it always needs; False where anything is missing, else None where something
        is not known."""
        told = [right.has for right in self.rights if right.acl.only is None]
        return False if False in told else None if None in told else True

    @property
    def lacks(self) -> tuple[Right, ...]:
        return tuple(right for right in self.rights if right.has is False)

    @property
    def not_told(self) -> tuple[Right, ...]:
        return tuple(right for right in self.rights if right.has is None)


def named_topics() -> frozenset[str]:
    """The topics that commands need by name, such as ``__consumer_offsets``."""
    every = (acl for acls in COMMAND_ACLS.values() for acl in acls)
    return frozenset(acl.name for acl in every if acl.resource is AclResource.TOPIC and acl.name is not None)


def all_rights(allowed: Allowed) -> tuple[CommandRights, ...]:
    """Every command that asks a cluster."""
    return tuple(rights_of(command, allowed) for command in COMMAND_ACLS)


def rights_of(command: str, allowed: Allowed) -> CommandRights:
    """One command, or a group of them such as ``recover``.

    Raises:
        KeyError: no command of this name asks a cluster.
    """
    return CommandRights(command, tuple(_right(acl, allowed) for acl in required_acls(command)))


def _right(acl: RequiredAcl, allowed: Allowed) -> Right:
    if acl.resource is AclResource.CLUSTER:
        return Right(acl, _has(acl, allowed.cluster))
    if acl.resource is not AclResource.TOPIC:
        return Right(acl, None)  # no answer tells of groups and transactional ids together
    if acl.name is not None:
        return Right(acl, _has(acl, allowed.named.get(acl.name)))
    told = {topic: _has(acl, operations) for topic, operations in sorted(allowed.topics.items())}
    refused = tuple(topic for topic, has in told.items() if has is False)
    if refused:
        return Right(acl, False, refused)
    return Right(acl, True if told and None not in told.values() else None)


def _has(acl: RequiredAcl, operations: frozenset[str] | None) -> bool | None:
    if operations is None:
        return None
    # The authorizer was asked about each operation: one that is implied is there, and one that is denied is not.
    if acl.operation in operations:
        return True
    if AclOperation.DESCRIBE in operations:
        return False
    return False if acl.operation in IMPLY_DESCRIBE else None
