"""The client that changes a cluster: the only requests of kelr that change anything.

Everything that is changed goes through an `AdminClient`, so that the journal, the fences and the tests have one place
to stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kelr.controller import Election
from kelr.model import ElectionType, TopicPartition

NO_ERROR = "NONE"
"""Kafka's name for success."""
NO_ANSWER = "NO_ANSWER"
"""kelr's name where a request was sent and its answer never came: it may have been carried out or not."""
NOT_SENT = "NOT_SENT"
"""kelr's name where no broker could be reached, so that the request was not sent."""
UNCERTAIN = frozenset({NO_ANSWER, "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"})
"""Answers after which a request may have been carried out, or may be yet."""
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
NOT_REGISTERED = "BROKER_ID_NOT_REGISTERED"
INVALID_REPLICA_ASSIGNMENT = "INVALID_REPLICA_ASSIGNMENT"
CORDON_NAMED = "log directories are cordoned"
"""In what Kafka says of an INVALID_REPLICA_ASSIGNMENT that is for a cordon (KIP-1066)."""
_REFUSALS = frozenset({
    "POLICY_VIOLATION",
    "INVALID_CONFIG",
    INVALID_REPLICA_ASSIGNMENT,
    "INVALID_REQUEST",
    "UNSUPPORTED_VERSION",
    NOT_SENT,
})  # fmt: skip


def is_refusal(error: str) -> bool:
    """Whether an answer proves that a request was not carried out, and never will be.

    The lack of an ACL does, too. No other answer does: a controller that resigns right after it has written answers
    NOT_CONTROLLER. And a broker sends what it passes on once more where the controller goes before it answers
    (NodeToControllerRequestThread.handleResponse), so that the answer is that of the second time: an election is
    ELECTION_NOT_NEEDED since the first time elected the leader, PREFERRED_LEADER_NOT_AVAILABLE since it elected another
    than the preferred one, ELIGIBLE_LEADERS_NOT_AVAILABLE since whom it elected has died meanwhile, and
    UNKNOWN_TOPIC_OR_PARTITION since the topic was deleted meanwhile (ReplicationControlManager.electLeader, which
    answers each of them for want of a record to write, this time).
    """
    return error in _REFUSALS or error.endswith("_AUTHORIZATION_FAILED")


class AdminClient(Protocol):
    """Sends requests that change the cluster. Each answer is Kafka's name of an error for each partition or topic:
    ``NONE``, ``CLUSTER_AUTHORIZATION_FAILED``, ..., or ``NO_ANSWER``.

    Raises (every method):
        ConnectError, AuthenticationError: no broker could be reached, so that nothing was sent.
    """

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        """AlterPartitionReassignments: give each partition these replicas in this order.

        Used only with replicas that each partition has already, so that no data moves and it completes at once.
        """

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        """ElectLeaders of one type for these partitions, named one by one: never for all of the cluster.

        ``NONE`` does not mean that the wanted replica leads: read the partition again.
        """

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        """ElectLeaders v3: elect exactly this replica of each partition, or nobody (KIP-966).

        ``UNSUPPORTED_VERSION`` where the cluster does not take that version; then nothing was sent.
        """

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        """ElectLeaders v3: let the controller elect the longest log, balanced or aggressive (KIP-966).

        ``UNSUPPORTED_VERSION`` as above.
        """

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        """IncrementalAlterConfigs: set one config of one topic, or with None remove the topic's own value."""

    def write_broker_config(self, broker: int, name: str, value: str | None) -> str:
        """The same of one broker, asked of that broker: no other one takes it."""

    def read_broker_config(self, broker: int, name: str) -> tuple[bool, str | None]:
        """(whether that broker told, its own dynamic value or None): changes nothing."""
