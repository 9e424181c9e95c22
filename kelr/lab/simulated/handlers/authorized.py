"""What clients may do, as answers tell it: which operations of a resource, and that an operation is denied.

Source: AuthHelper.authorizedOperations and AclEntry.supportedOperations of Apache Kafka.
"""

from __future__ import annotations

from kelr.lab.simulated.world import World

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
_SUPPORTED = {TOPIC: (*_OF_BOTH, "READ", "WRITE", "DELETE"), CLUSTER: (*_OF_BOTH, "CLUSTER_ACTION", "IDEMPOTENT_WRITE")}


def operations(world: World, kind: str, name: str | None = None) -> set[int]:
    """The codes of the operations that are allowed on a resource."""
    return {_CODES[one] for one in _SUPPORTED[kind] if world.allowed(kind, one, name)}


def cluster_operations(world: World, *, asked: bool) -> set[int] | None:
    """The same for the cluster, as Metadata and DescribeCluster answer it: none where even DESCRIBE is denied.

    None where nobody asked.
    """
    if not asked:
        return None
    return operations(world, CLUSTER) if world.allowed(CLUSTER, "DESCRIBE") else set()
