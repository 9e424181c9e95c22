"""Which ACLs each command needs where the cluster has an authorizer, as data.

What a set holds was measured on Kafka 4.3.1 with StandardAuthorizer, each ACL taken away by itself
(`tests/cluster/test_command_acls.py`). An operation that implies another stands for both: READ, WRITE, DELETE and ALTER
imply DESCRIBE, ALTER_CONFIGS implies DESCRIBE_CONFIGS (org.apache.kafka.metadata.authorizer.StandardAuthorizerData).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class AclResource(StrEnum):
    """What an ACL is about."""

    CLUSTER = "cluster"
    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional id"


class AclOperation(StrEnum):
    """What may be done with it, by Kafka's names (org.apache.kafka.common.acl.AclOperation)."""

    READ = "READ"
    WRITE = "WRITE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"


@dataclass(frozen=True, slots=True)
class RequiredAcl:
    """One ACL of a command's smallest set."""

    resource: AclResource
    operation: AclOperation
    needed_for: str
    """What kelr asks with it: the requests, or what they tell."""
    without: str
    """What the command does in its absence, all others being there, and what it implies (DESCRIBE for READ)."""
    exit_code: int | None = None
    """The command's exit code in its absence; None: it goes on, and says what is unknown."""
    name: str | None = None
    """The one resource that it is for; None: those that the command is asked about."""
    only: str | None = None
    """The case in which it is needed; None: always."""

    def __str__(self) -> str:
        place = "the cluster" if self.resource is AclResource.CLUSTER else f"{self.resource} {self.name or '*'}"
        return f"{self.operation} on {place}"

    def shell_line(self, principal: str, *, bootstrap_server: str | None = None) -> str:
        """The kafka-acls.sh command that grants it: to all topics (groups, ids) where it is for no one of them."""
        return shell_line((self,), principal, bootstrap_server=bootstrap_server)


IMPLIED: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""An operation, and those of kelr's that imply it: who has one of them needs no ACL of its own."""

WEAKER: Mapping[AclOperation, AclOperation] = {
    stronger: weaker for weaker, operations in IMPLIED.items() for stronger in sorted(operations)
}
"""An operation, and what it implies."""
_ALL = "'*'"
"""All topics, groups or ids, quoted for a shell."""
_C, _T = AclResource.CLUSTER, AclResource.TOPIC
_FOUND, _NOT_AUTHORIZED, _REFUSED, _IN_PART = 1, 4, 6, 7
"""Exit codes (`kelr.errors.ExitCode`)."""

_SEE = RequiredAcl(
    _T,
    AclOperation.DESCRIBE,
    "partitions with their leader, ISR and ELR",
    "the topic counts as failed; exit 4 where no topic could be described",
    _NOT_AUTHORIZED,
)
_CONFIGS = RequiredAcl(
    _T,
    AclOperation.DESCRIBE_CONFIGS,
    "min.insync.replicas, unclean.leader.election.enable, cleanup.policy, remote.storage.enable",
    "min ISR is unknown, and so is all that needs it",
)
_READ = RequiredAcl(
    _T,
    AclOperation.READ,
    "partitions; last written epochs and high watermarks of the logs (Fetch)",
    "log ends are known, and not their epochs: logs cannot be compared",
)
_CONTROLLER = RequiredAcl(
    _C,
    AclOperation.DESCRIBE,
    "the active controller, and reassignments under way",
    "both are unknown, and a designation is refused",
)
_ALTER = RequiredAcl(
    _C,
    AclOperation.ALTER,
    "ElectLeaders, AlterPartitionReassignments; reassignments under way",
    "exit 4, nothing is changed",
    _NOT_AUTHORIZED,
)
_STATE = (_CONTROLLER, _SEE, _CONFIGS)
_COUNT = (
    RequiredAcl(
        _T,
        AclOperation.DESCRIBE,
        "partitions with their leader, ISR and ELR",
        "brokers leave the topic out without a word: nothing counts its partitions",
    ),
    _CONFIGS,
)
_LOOK = (_CONTROLLER, _READ, _CONFIGS)
_ELECT = (
    _ALTER,
    RequiredAcl(_T, AclOperation.READ, _READ.needed_for, "no loss can be counted: the election takes --force"),
    _CONFIGS,
)
_APPLY = (
    _ALTER,
    RequiredAcl(_T, AclOperation.READ, _READ.needed_for, "exit 4, nothing is changed", _NOT_AUTHORIZED),
    RequiredAcl(
        _T, AclOperation.DESCRIBE_CONFIGS, _CONFIGS.needed_for, "exit 6: min ISR is not what the plan says", _REFUSED
    ),
)
_GROUPS = "`groups` is UNKNOWN"
_VERIFY = (
    RequiredAcl(_C, AclOperation.DESCRIBE, "every consumer group, and reassignments under way", _GROUPS, _FOUND),
    RequiredAcl(
        _T,
        AclOperation.READ,
        "partitions; the replicas' logs, and open transactions (DescribeProducers)",
        "`logs` and `last-stable-offset` are UNKNOWN, and `truncated` where a live replica had more",
        _FOUND,
    ),
    RequiredAcl(
        _T, AclOperation.DESCRIBE_CONFIGS, "min.insync.replicas", "`isr` is UNKNOWN while a replica is away", _FOUND
    ),
    RequiredAcl(
        AclResource.GROUP,
        AclOperation.DESCRIBE,
        "what consumer groups have committed, and whether their coordinators are ready (groups `kelr-probe-N`)",
        _GROUPS,
        _FOUND,
        only="where there are consumer groups, or have been",
    ),
    RequiredAcl(
        _T,
        AclOperation.DESCRIBE,
        "which brokers coordinate the groups",
        _GROUPS,
        _FOUND,
        name="__consumer_offsets",
    ),
    RequiredAcl(
        AclResource.TRANSACTIONAL_ID,
        AclOperation.DESCRIBE,
        "what the coordinators know of open transactions",
        "`last-stable-offset` is UNKNOWN where a transaction is open",
        _FOUND,
        only="where a transaction is open",
    ),
)
_HISTORY = (
    RequiredAcl(
        _C,
        AclOperation.CLUSTER_ACTION,
        "the metadata log (Fetch, FetchSnapshot) of the controllers",
        "exit 4; files (--metadata-log) need no ACL",
        _NOT_AUTHORIZED,
    ),
    RequiredAcl(
        _C,
        AclOperation.DESCRIBE,
        "where the controllers are (DescribeQuorum)",
        "exit 4; --bootstrap-controller names them instead",
        _NOT_AUTHORIZED,
        only="where brokers alone are named",
    ),
)

COMMAND_ACLS: Mapping[str, tuple[RequiredAcl, ...]] = {
    "describe": (_SEE, _CONFIGS),
    "watch": _LOOK,
    "log-info": (_READ,),
    "explain": _LOOK,
    "whatif": _STATE,
    "snapshot": _LOOK,
    "history": _HISTORY,
    "report": (
        *_LOOK,
        RequiredAcl(
            _C,
            AclOperation.CLUSTER_ACTION,
            _HISTORY[0].needed_for,
            "the page has only what kelr did and saw, and says so",
            only="without --metadata-log",
        ),
    ),
    "metrics read": _COUNT,
    "metrics export": _COUNT,
    "doctor": (
        _CONTROLLER,
        RequiredAcl(
            _C, AclOperation.DESCRIBE_CONFIGS, "the brokers' configs", "what hangs on them is said not to be known"
        ),
        _SEE,
        _CONFIGS,
    ),
    "elect": _ELECT,
    "recover collect": _LOOK,
    "recover plan": _LOOK,
    "recover apply": _APPLY,
    "recover resume": (
        *_APPLY[:2],
        RequiredAcl(
            _T,
            AclOperation.DESCRIBE_CONFIGS,
            _CONFIGS.needed_for,
            "orders are restored, and elections that are left are refused: exit 7",
            _IN_PART,
        ),
    ),
    "recover undo": (
        _ALTER,
        RequiredAcl(
            _T, AclOperation.DESCRIBE, "partitions with their replicas", "exit 4, nothing is changed", _NOT_AUTHORIZED
        ),
    ),
    "recover verify": _VERIFY,
    "recover status": (
        RequiredAcl(
            _T,
            AclOperation.DESCRIBE,
            "where the partitions of open journals stand",
            "where they stand is said not to be known",
            _FOUND,
        ),
        RequiredAcl(
            _T,
            AclOperation.DESCRIBE_CONFIGS,
            "whether min.insync.replicas has its old value",
            "that is said not to be known",
            _FOUND,
            only="where `clear-elr` was cut short",
        ),
    ),
    "recover clear-elr": (
        RequiredAcl(
            _T,
            AclOperation.DESCRIBE,
            "partitions with their ISR and ELR",
            "exit 4, nothing is changed",
            _NOT_AUTHORIZED,
        ),
        RequiredAcl(
            _T,
            AclOperation.ALTER_CONFIGS,
            "IncrementalAlterConfigs of min.insync.replicas",
            "exit 4, nothing is changed",
            _NOT_AUTHORIZED,
        ),
    ),
    "quorum verify": (
        RequiredAcl(
            _C,
            AclOperation.DESCRIBE,
            "who leads, votes and follows (DescribeQuorum)",
            "`leader` and `followers` are UNKNOWN: exit 7",
            _IN_PART,
        ),
        RequiredAcl(_T, AclOperation.DESCRIBE, "the topics and their ids", "`topics` is UNKNOWN: exit 7", _IN_PART),
    ),
    "rescue dump": (
        RequiredAcl(_T, AclOperation.READ, "the records (Fetch)", "exit 4, nothing is saved", _NOT_AUTHORIZED),
    ),
    "rescue replay": (
        RequiredAcl(
            _T,
            AclOperation.WRITE,
            "producing the records (Produce) to the topic that is written to",
            "exit 4, nothing is written",
            _NOT_AUTHORIZED,
        ),
        RequiredAcl(
            _T,
            AclOperation.READ,
            "looking for records that were replayed before",
            "exit 6, nothing is written; --no-scan does not look",
            _REFUSED,
            only="where the topic holds records",
        ),
    ),
}
"""Command, with its sub-command, to the smallest set of ACLs with which it does all that it can do."""

NO_CLUSTER = frozenset({"config show", "context add", "options", "recover log"})
"""Commands that take a cluster's address, and ask it nothing that needs an ACL."""


def required_acls(command: str) -> tuple[RequiredAcl, ...]:
    """The smallest set for a command such as ``describe`` or ``recover plan``; of a group, such as ``recover``, what
    all of its sub-commands need together, nothing twice.

    Raises:
        KeyError: no command of this name asks a cluster.
    """
    if command in COMMAND_ACLS:
        return COMMAND_ACLS[command]
    under = [acls for name, acls in COMMAND_ACLS.items() if name.startswith(f"{command} ")]
    if not under:
        raise KeyError(command)
    return together(acl for acls in under for acl in acls)


def together(acls: Iterable[RequiredAcl]) -> tuple[RequiredAcl, ...]:
    """The smallest set that holds all of these: none twice, and none that another of them implies."""
    first: dict[tuple[AclResource, AclOperation, str | None], RequiredAcl] = {}
    for acl in acls:
        first.setdefault((acl.resource, acl.operation, acl.name), acl)
    return tuple(acl for acl in first.values() if not _is_implied(acl, first))


def shell_line(acls: Iterable[RequiredAcl], principal: str, *, bootstrap_server: str | None = None) -> str:
    """One kafka-acls.sh command for ACLs of one resource.

    Raises:
        ValueError: there are none, or they are for several resources.
    """
    held = tuple(acls)
    places = {(acl.resource, acl.name) for acl in held}
    if len(places) != 1:
        raise ValueError(f"one line is for one resource, and these are for {len(places)}")
    ((resource, name),) = places
    flag = "--" + resource.replace(" ", "-")
    place = flag if resource is AclResource.CLUSTER else f"{flag} {name or _ALL}"
    server = "" if bootstrap_server is None else f" --bootstrap-server {bootstrap_server}"
    operations = " ".join(f"--operation {_camel(acl.operation)}" for acl in held)
    return f"kafka-acls.sh{server} --add --allow-principal {shlex.quote(principal)} {operations} {place}"


def shell_lines(acls: Iterable[RequiredAcl], principal: str, *, bootstrap_server: str | None = None) -> tuple[str, ...]:
    """The kafka-acls.sh commands that grant a whole set, one for each resource, in the set's order."""
    by_place: dict[tuple[AclResource, str | None], list[RequiredAcl]] = {}
    for acl in together(acls):
        by_place.setdefault((acl.resource, acl.name), []).append(acl)
    return tuple(shell_line(held, principal, bootstrap_server=bootstrap_server) for held in by_place.values())


def _is_implied(acl: RequiredAcl, beside: Mapping[tuple[AclResource, AclOperation, str | None], RequiredAcl]) -> bool:
    """Whether another one, of the same resource or of all of its kind, gives this one too."""
    names = {acl.name, None}
    stronger = IMPLIED.get(acl.operation, frozenset())
    also = acl.name is not None and (acl.resource, acl.operation, None) in beside
    return also or any((acl.resource, operation, name) in beside for operation in stronger for name in names)


def _camel(operation: AclOperation) -> str:
    """As kafka-acls.sh names it: ``DescribeConfigs``."""
    return "".join(word.capitalize() for word in operation.split("_"))
