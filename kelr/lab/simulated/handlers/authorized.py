"""What clients may do, as answers tell it: which operations of a resource, in bits, and that an operation is denied.

Source: AuthHelper.authorizedOperations and AclEntry.supportedOperations of Apache Kafka.
"""

from __future__ import annotations

from kelr.lab.simulated.world import World

NOT_ASKED = -(2**31)
"""Nobody asked for the operations."""
CLUSTER, TOPIC = "cluster", "topic"
DENIED = {CLUSTER: "CLUSTER_AUTHORIZATION_FAILED", TOPIC: "TOPIC_AUTHORIZATION_FAILED"}
"""The error of a resource that a client may not do something with."""

_CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
_OF_BOTH = ("CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
SUPPORTED = {TOPIC: (*_OF_BOTH, "READ", "WRITE", "DELETE"), CLUSTER: (*_OF_BOTH, "CLUSTER_ACTION", "IDEMPOTENT_WRITE")}
_ALL = {kind: sum(1 << _CODES[one] for one in supported) for kind, supported in SUPPORTED.items()}


def operations(world: World, kind: str, name: str | None = None) -> int:
    """The operations that are allowed on a resource, as Kafka's field of 32 bits."""
    if not world.denied:
        return _ALL[kind]
    return sum(1 << _CODES[one] for one in SUPPORTED[kind] if world.allowed(kind, one, name))


def cluster_operations(world: World, *, asked: bool) -> int:
    """The same for the cluster, as Metadata and DescribeCluster answer it: 0 where even DESCRIBE is denied."""
    if not asked:
        return NOT_ASKED
    return operations(world, CLUSTER) if world.allowed(CLUSTER, "DESCRIBE") else 0
