"""Asking the controller that leads the quorum: found by the answers of all the others, and again when it moves.

A node of the quorum tells with every answer about the metadata log who leads, in which epoch and where (KIP-853), so
that no other request, and no other ACL, is needed to find the leader.

Source: KafkaRaftClient.validateLeaderOnlyRequest and RaftUtil.singletonFetchResponse of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kelr.errors import ConnectError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.protocol.error_codes import error_name
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE, UNKNOWN_TOPIC, login_error
from kelr.sources.live.metadata_requests import describe_controllers
from kelr.sources.live.transport import Failure, FailureKind, Message, NodeAddress, NodeId, Request, Transport

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
TOLD_AFTER_S = 3.0
"""After so long without an answer from a controller that leads, whoever follows the log is told."""
MOST_HINTS = 3
"""So many times in a row somebody is asked at once, because an answer said so; then after a pause."""
_LAST_PORT = 65_535
_NOT_A_CONTROLLER = frozenset({"UNKNOWN_TOPIC_ID", UNKNOWN_TOPIC, "MISMATCHED_ENDPOINT_TYPE"})
_FOR_THE_ASKER = frozenset({NONE, "SNAPSHOT_NOT_FOUND", "POSITION_OUT_OF_RANGE"})
"""What an answer of the leader itself says, for whoever asked."""

Ask = Callable[[int, str | None], Request]
"""Makes a question of the quorum's epoch and the cluster's id, anew for each attempt."""


@dataclass(frozen=True, slots=True)
class FromLeader:
    """The leader's answer about its one partition."""

    partition: Message
    error: str
    """``NONE``, or what is for the asker to know."""
    leader: tuple[NodeId, int]
    """Who answered, and in which epoch: bytes of two answers belong together where these are the same."""


class ActiveController:
    """Sends questions to the controller that leads.

    Args:
        transport: its bootstrap servers are controllers.
        cluster_id: the cluster that is meant; None takes the one that is found there.

    Raises (every method):
        ConnectError, AuthenticationError: no controller that leads can be reached in time.
        NotAuthorizedError: without CLUSTER_ACTION on the cluster.
        RefusedError: it is another cluster than the one that is meant.
        UnsupportedError: no controller is there, but a broker, or a node before Kafka 3.1.
    """

    def __init__(self, transport: Transport, settings: ConnectionSettings, *, cluster_id: str | None = None) -> None:
        self.transport = transport
        self._settings = settings
        self._nodes: list[NodeId] = []
        """Whom to ask, the favourite first."""
        self._addresses: dict[int, NodeAddress] = {}
        self.cluster_id = cluster_id
        self.epoch = 0
        """The newest leader epoch of the quorum that was heard of."""
        self.on_silence: Callable[[str], None] | None = None
        """Told in a sentence when nobody who leads answers, and again when somebody does."""
        self._silent = False

    def reach(self) -> None:
        """Reach one of the controllers, and learn of the others as far as that one may tell."""
        try:
            first, _ = reach(self.transport, self._settings)
        except ConnectError as error:
            step = (error.next_step or "").replace("--bootstrap-server", "--bootstrap-controller")
            raise type(error)(error.message, next_step=step or None) from error
        others = [node for node in self.transport.bootstrap_nodes() if node != first]
        self._nodes = [first, *others]
        self._describe(first)

    def ask(self, question: Ask, *, patience_s: float, wait_s: float = 0.0) -> FromLeader:
        """The leader's answer.

        Args:
            patience_s: how long to look for a leader that answers, in seconds, `wait_s` left out.
            wait_s: how long the leader itself waits before it answers, by the question.
        """
        begun = self.transport.ground.steady_s()
        deadline, pause_s, hints = begun + wait_s + patience_s, FIRST_PAUSE_S, 0
        refused: Failure | None = None
        while True:
            node, epoch = self._nodes[0], self.epoch
            timeout_s = wait_s + self._share(deadline - self.transport.ground.steady_s() - wait_s)
            answer = self.transport.exchange(node, question(epoch, self.cluster_id), timeout_s=timeout_s)
            if isinstance(answer, Failure):
                words, hinted = self._failed(answer), False
                refused = answer if answer.kind is FailureKind.AUTHENTICATION else refused
            else:
                partition = self._partition(answer)
                error = error_name(partition.error_code)
                if error in _FOR_THE_ASKER:
                    self._heard(node)
                    return FromLeader(partition, error, (node, epoch))
                words, hinted = self._elsewhere(error, answer, partition)
            if self.transport.ground.steady_s() - begun >= TOLD_AFTER_S:
                self._not_heard(words)
            if not hinted:
                self._nodes.append(self._nodes.pop(0))
            if deadline - self.transport.ground.steady_s() <= max(pause_s, wait_s):
                raise self._gave_up(words, refused, patience_s)
            hints = hints + 1 if hinted else 0
            if not 0 < hints <= MOST_HINTS:
                self.transport.ground.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _not_heard(self, words: str) -> None:
        if self.on_silence is not None and not self._silent:
            self._silent = True
            self.on_silence(f"no controller that leads the quorum answers; the last one: {words}. kelr goes on asking")

    def _heard(self, node: NodeId) -> None:
        if self.on_silence is not None and self._silent:
            self._silent = False
            who = f"controller {node}" if isinstance(node, int) else "a controller"
            self.on_silence(f"{who} leads the quorum and answers again, in epoch {self.epoch}")

    def _describe(self, node: NodeId) -> None:
        """The cluster's id and its controllers, where the principal may ask for them (ALTER on the cluster) and the
        controller knows the question (3.7 and newer)."""
        answer = self.transport.exchange(node, describe_controllers(), timeout_s=self._settings.timeout_s / 2)
        if isinstance(answer, Failure):
            return
        error = error_name(answer.error_code)
        if error in _NOT_A_CONTROLLER:
            raise _is_a_broker(self._settings)
        if error != NONE:
            return
        if self.cluster_id is not None and answer.cluster_id != self.cluster_id:
            raise _another_cluster(self.cluster_id, answer.cluster_id)
        self.cluster_id = answer.cluster_id or self.cluster_id
        self._learn((one.broker_id, one.host, one.port) for one in answer.brokers)

    def _failed(self, failure: Failure) -> str:
        if failure.kind is FailureKind.UNSUPPORTED:
            raise UnsupportedError(
                f"the node does not serve its metadata log: {failure.detail}",
                next_step="give a controller of Kafka 3.1 or newer with --bootstrap-controller",
            )
        return failure.detail

    def _partition(self, answer: Message) -> Message:
        """The one partition of the answer, or the reason why there is none."""
        error = error_name(answer.error_code)
        if error == CLUSTER_UNAUTHORIZED:
            raise NotAuthorizedError(
                f"the metadata log may not be read ({error}): it needs CLUSTER_ACTION on the cluster",
                next_step="kafka-acls.sh --add --allow-principal User:NAME --operation ClusterAction --cluster,"
                " or read the files of a node with --metadata-log",
            )
        if error == "INCONSISTENT_CLUSTER_ID":
            raise _another_cluster(self.cluster_id, None)
        topics = answer.responses if hasattr(answer, "responses") else answer.topics
        partitions = [partition for topic in topics for partition in topic.partitions]
        if error != NONE:
            return _Unanswered(answer.error_code)
        if len(partitions) != 1:
            raise ConnectError(
                f"the answer about the metadata log has {len(partitions)} partitions, and not one",
                next_step="check that this is a Kafka controller's port, and what is between it and kelr",
            )
        if error_name(partitions[0].error_code) in _NOT_A_CONTROLLER:
            raise _is_a_broker(self._settings)
        return partitions[0]

    def _elsewhere(self, error: str, answer: Message, partition: Message) -> tuple[str, bool]:
        """(what was said, whether it tells whom to ask at once): this node does not lead, or in another epoch."""
        leader = partition.current_leader
        self._learn((one.node_id, one.host, one.port) for one in answer.node_endpoints or ())
        if leader is None:
            return f"it answered {error}", False
        newer = leader.leader_epoch > self.epoch
        self.epoch = max(self.epoch, leader.leader_epoch)
        if error == "FENCED_LEADER_EPOCH" and newer:
            return "the quorum has a newer leader epoch", True  # the same node again: it may lead itself
        if (
            error == "NOT_LEADER_OR_FOLLOWER"
            and leader.leader_epoch >= self.epoch
            and leader.leader_id in self._addresses
        ):
            # Behind those that were not asked yet, since the leader's address may be one that only its peers can reach.
            self._nodes.append(self._nodes.pop(0))
            self._nodes.remove(leader.leader_id)
            self._nodes.insert(0, leader.leader_id)
            return f"the controller {leader.leader_id} is said to lead", True
        return f"it answered {error}, and knows no leader" if leader.leader_id < 0 else f"it answered {error}", False

    def _learn(self, nodes: Iterable[tuple[int, str, int]]) -> None:
        """Where controllers are; what cannot be an address is passed over."""
        found = {
            node: NodeAddress(host, port) for node, host, port in nodes if node >= 0 and host and 0 < port <= _LAST_PORT
        }
        if not found or all(self._addresses.get(node) == address for node, address in found.items()):
            return
        self._addresses.update(found)
        self.transport.add_nodes(self._addresses)
        self._nodes.extend(node for node in sorted(found) if node not in self._nodes)

    def _share(self, left_s: float) -> float:
        """A controller that hangs must leave time for the others."""
        return max(0.05, left_s if len(self._nodes) == 1 else left_s / 2)

    def _gave_up(self, words: str, refused: Failure | None, patience_s: float) -> ConnectError:
        if refused is not None:
            return login_error("the controllers", refused)
        return ConnectError(
            f"no controller that leads the quorum answered within {patience_s:g} s; the last one: {words}",
            next_step="check that the controllers are up and reachable from here; give a longer --timeout if a leader"
            " is being elected",
        )


class _Unanswered:
    """Stands for the partition of an answer that is refused as a whole."""

    current_leader = None

    def __init__(self, error_code: int) -> None:
        self.error_code = error_code


def _is_a_broker(settings: ConnectionSettings) -> UnsupportedError:
    return UnsupportedError(
        f"{settings.servers_text} is a broker's listener, and brokers do not give the metadata log to clients",
        next_step="give a controller's listener with --bootstrap-controller, or only the brokers with"
        " --bootstrap-server: they tell where the controllers are",
        code="not-a-controller",
    )


def _another_cluster(wanted: str | None, found: str | None) -> RefusedError:
    what = "another one" if found is None else f"cluster {found}"
    return RefusedError(
        f"cluster {wanted} is meant, and this controller is of {what}",
        next_step="check --bootstrap-controller",
        code="wrong-cluster",
    )
