"""A simulated cluster answers what its controller answers as Apache Kafka 4.3.1 does: elections, and its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab import Lab, wire
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.spec import CONTROLLER_ID
from kelr.lab.story import create_topic
from kelr.protocol.messages import AlterPartitionReassignmentsRequest, DescribeQuorumRequest, ElectLeadersRequest
from tests.lab.simulated.replayed import fetch_request

TOPIC = "simulated-controller"
PREFERRED, UNCLEAN = 0, 1

Ask = Callable[[Any, int], Any]
"""Asks a node; the name of the exception where no answer comes."""


@dataclass(frozen=True)
class Both:
    real: Ask
    simulated: Ask

    def answers(self, question: Callable[[], Any], node: int, plain: Callable[[Any], Any]) -> tuple[Any, Any]:
        """What the two clusters answer; each is sent a request of its own."""
        found = [ask(question(), node) for ask in (self.real, self.simulated)]
        real, simulated = [one if isinstance(one, str) else plain(one) for one in found]
        return real, simulated


def asking(port_of: Callable[[int], int]) -> Ask:
    def ask(question: Any, node: int) -> Any:
        try:
            return wire.ask(port_of(node), question, timeout_s=20)
        except ConnectionError as error:
            return type(error).__name__

    return ask


@pytest.fixture(scope="module")
def both(lab_43: Lab) -> Iterator[Both]:
    """Two healthy clusters with one topic: partition 0 is led by 2, which is not the preferred replica, and 1 by 3."""
    lab_43.restore()
    with SimulatedServer(SimulatedSpec(rules="elr-4.3"), clock=MachineClock()) as server:
        found = Both(asking(lab_43.port), asking(server.ports.__getitem__))
        create_topic(lab_43, TOPIC, [(2, 1, 3), (3, 1, 2)], {})
        server.inside(lambda world: world.running.ask(events.TopicCreated(TOPIC, ((2, 1, 3), (3, 1, 2)))))
        for ask in (found.real, found.simulated):
            reorder(ask)
        yield found


def reorder(ask: Ask) -> None:
    """Broker 1 becomes the preferred replica of partition 0."""
    named = AlterPartitionReassignmentsRequest.ReassignableTopic
    one = named.ReassignablePartition(partition_index=0, replicas=[1, 2, 3])
    question = AlterPartitionReassignmentsRequest(
        version=0, timeout_ms=10_000, topics=[named(name=TOPIC, partitions=[one])]
    )
    assert ask(question, 1).error_code == 0


def election(
    version: int, kind: int, topics: Sequence[tuple[str, Sequence[int]]] | None, timeout_ms: int = 10_000
) -> Callable[[], Any]:
    named = ElectLeadersRequest.TopicPartitions

    def made() -> Any:
        asked = topics and [named(topic=topic, partitions=list(numbers)) for topic, numbers in topics]
        listed = None if topics is None else list(asked or ())
        return ElectLeadersRequest(version=version, election_type=kind, topic_partitions=listed, timeout_ms=timeout_ms)

    return made


def results(answer: Any) -> Any:
    """The answer in plain values, of this test's topics alone."""
    topics = [
        (topic.topic, [(one.partition_id, one.error_code, one.error_message) for one in topic.partition_result])
        for topic in answer.replica_election_results
        if topic.topic in {TOPIC, "nothing"}
    ]
    return (answer.error_code if answer.version >= 1 else None, topics)


ELECTIONS: Mapping[str, Callable[[], Any]] = {
    **{f"what is not there, v{v}": election(v, PREFERRED, [(TOPIC, [1, 7]), ("nothing", [0])]) for v in (0, 1, 2)},
    "an unclean one where there is a leader": election(2, UNCLEAN, [(TOPIC, [0, 1])]),
    "no partitions": election(2, PREFERRED, []),
    "a topic without partitions": election(2, PREFERRED, [(TOPIC, [])]),
    "of no kind": election(2, 9, [(TOPIC, [0]), ("nothing", [0])]),
    "of a kind of version 3": election(1, 2, [(TOPIC, [0])]),
    "of no kind, everywhere": election(2, 9, None),
    "in version 3": election(3, PREFERRED, [(TOPIC, [0])]),
    "a partition twice": election(2, PREFERRED, [(TOPIC, [1, 1])]),
    "a topic twice": election(2, PREFERRED, [(TOPIC, [1]), (TOPIC, [1])]),
    "in no time": election(2, PREFERRED, [(TOPIC, [1])], timeout_ms=0),
    "in less than no time": election(2, PREFERRED, [(TOPIC, [1])], timeout_ms=-1),
    "the preferred one": election(2, PREFERRED, [(TOPIC, [0])]),
    "the preferred one again": election(2, PREFERRED, [(TOPIC, [0])]),
    "everywhere": election(2, PREFERRED, None),
    "unclean everywhere": election(2, UNCLEAN, None),
}
"""In this order: one elects, so that it is not needed again."""


def test_elections_are_answered_alike(both: Both) -> None:
    for node in (1, CONTROLLER_ID):
        for name, question in ELECTIONS.items():
            real, simulated = both.answers(question, node, results)
            assert simulated == real, f"{name}, asked at {node}"


def fetched(answer: Any) -> Any:
    """What a Fetch of the metadata log says, but for records and offsets."""
    partitions = [
        (
            topic.topic,
            topic.topic_id,
            one.partition_index,
            one.error_code,
            one.high_watermark >= 0,
            one.log_start_offset,
            one.last_stable_offset,
            bool(one.records),
            one.aborted_transactions,
            one.preferred_read_replica,
            one.current_leader is not None and one.current_leader.leader_id,
            one.diverging_epoch is not None and one.diverging_epoch.epoch,
        )
        for topic in answer.responses
        for one in topic.partitions
    ]
    return (
        answer.error_code,
        answer.session_id,
        partitions,
        [one.node_id for one in getattr(answer, "node_endpoints", None) or ()],
    )


ASKED: Sequence[Mapping[str, Any]] = (
    {},
    {"version": 12},
    {"version": 17},
    {"last_epoch": -1},
    {"offset": -1},
    {"partition": 1},
    {"topic_id": UUID(int=2)},
    {"cluster_id": "another"},
    {"version": 11},
    {"version": 4},
    {"offset": 1 << 40, "last_epoch": 1},
)


def test_the_metadata_log_is_fetched_alike(both: Both) -> None:
    real, simulated = (
        {
            f"{asked}, epoch {epoch:+}": fetched_by(ask, _of_epoch(max(-1, now + epoch), asked))
            for asked in ASKED
            for epoch in (0, -1, 1, -(1 << 20))
        }
        for ask, now in ((ask, epoch_of(ask)) for ask in (both.real, both.simulated))
    )
    assert simulated == real


def _of_epoch(epoch: int, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The question in this epoch. What was fetched last is of no later one: the real controller may have been elected
    many times, so that an epoch before its own is after the simulated one's."""
    last = {"last_epoch": min(asked["last_epoch"], epoch)} if "last_epoch" in asked else {}
    return {"epoch": epoch, **asked, **last}


def fetched_by(ask: Ask, asked: Mapping[str, Any]) -> Any:
    answer = ask(fetch_request(**asked), CONTROLLER_ID)
    return answer if isinstance(answer, str) else fetched(answer)


def epoch_of(ask: Ask) -> int:
    """The quorum's leader epoch."""
    named = DescribeQuorumRequest.TopicData
    one = named(topic_name="__cluster_metadata", partitions=[named.PartitionData(partition_index=0)])
    (topic,) = ask(DescribeQuorumRequest(version=1, topics=[one]), 1).topics
    return int(topic.partitions[0].leader_epoch)
