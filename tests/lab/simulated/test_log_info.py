"""GetReplicaLogInfo on the wire: both dialects, limits, errors of every kind, and brokers that know old things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied
from kelr.model import ReplicaLog, TopicPartition
from kelr.protocol.dialects import Dialect
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import ApiVersionsRequest, replica_log_info
from kelr.simulation.logs import Acks
from tests.lab.simulated.stories import ORDERS, PATIENCE_S, cluster

DIALECTS = pytest.mark.parametrize("dialect", Dialect)
UNKNOWN = (-1, -1, -1)


def asked(
    server: SimulatedServer, broker: int, wanted: Mapping[UUID, Sequence[int]] | None, *, named: int | None = None
) -> Any:
    """The whole answer of a broker, None asking for everything; `named` is whom the request says that it asks."""
    dialect, key = server.spec.log_info, server.spec.api_key
    assert dialect is not None
    assert key is not None
    kind, _ = replica_log_info(dialect, key)
    topics = wanted and [
        kind.TopicPartitions(topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in wanted.items()
    ]
    fields = {"broker_id": broker if named is None else named} if dialect is Dialect.KIP else {}
    return wire.ask(server.ports[broker], kind(version=0, topic_partitions=topics, **fields), timeout_s=PATIENCE_S)


def told(answer: Any) -> dict[int, tuple[str, tuple[int, int, int]]]:
    """By partition of the one topic: the error and (last epoch, leader epoch, log end)."""
    (topic,) = answer.topic_partition_log_info_list
    return {
        one.partition: (
            error_name(one.error_code),
            (one.last_written_leader_epoch, one.current_leader_epoch, one.log_end_offset),
        )
        for one in topic.partition_log_info
    }


def orders(server: SimulatedServer) -> UUID:
    return server.inside(lambda world: world.topic_id("orders"))


def one(server: SimulatedServer, broker: int, **more: Any) -> tuple[str, tuple[int, int, int]]:
    """What a broker tells of ``orders:0``."""
    return told(asked(server, broker, {orders(server): [0]}, **more))[0]


@DIALECTS
def test_it_tells_what_the_log_holds_and_which_incarnation_answers(dialect: Dialect) -> None:
    with cluster("kip966-balanced", log_info=dialect) as server:
        assert one(server, 2) == ("NONE", (-1, 0, 0)), "a log that never held a record"
        server.inside(lambda world: world.running.produce(ORDERS, 10, Acks.ALL))
        server.inside(lambda world: world.running.kill(1))
        server.inside(lambda world: world.running.expire(1))
        server.inside(lambda world: world.running.produce(ORDERS, 3, Acks.ALL))
        for broker in (2, 3):
            answer = asked(server, broker, {orders(server): [0]})
            assert told(answer) == {0: ("NONE", (1, 1, 13))}
            assert answer.broker_epoch == server.inside(lambda world, broker=broker: world.brokers[broker].epoch)  # type: ignore[misc]
            assert answer.topic_partition_log_info_list[0].partition_log_info[0].error_message is None


@DIALECTS
def test_a_broker_that_came_back_answers_with_its_new_epoch(dialect: Dialect) -> None:
    with cluster("kip966-balanced", log_info=dialect) as server:
        before = asked(server, 3, {orders(server): [0]}).broker_epoch
        server.inside(lambda world: world.running.kill(3))
        server.inside(lambda world: world.running.expire(3))
        server.inside(lambda world: world.running.start(3))
        answer = asked(server, 3, {orders(server): [0]})
        assert answer.broker_epoch > before, "registered, and not unfenced yet"
        assert told(answer)[0][0] == "NONE"


@DIALECTS
def test_errors_are_told_partition_by_partition(dialect: Dialect) -> None:
    with cluster("kip966-balanced", (1, 2), (3, 2), (2, 3), log_info=dialect) as server:
        server.inside(lambda world: world.running.ask(events.DirectoryFailed(3, (TopicPartition("orders", 1),))))
        assert told(asked(server, 3, {orders(server): [0, 1, 2, 9]})) == {
            0: ("NOT_LEADER_OR_FOLLOWER", UNKNOWN),
            1: ("KAFKA_STORAGE_ERROR", UNKNOWN),
            2: ("NONE", (-1, 0, 0)),
            9: ("UNKNOWN_TOPIC_OR_PARTITION", UNKNOWN),
        }
        nobodys = UUID(int=99)
        answer = asked(server, 3, {nobodys: [0], orders(server): [2]})
        first, second = answer.topic_partition_log_info_list
        assert (first.topic_id, error_name(first.partition_log_info[0].error_code)) == (nobodys, "UNKNOWN_TOPIC_ID")
        assert first.partition_log_info[0].error_message
        assert error_name(second.partition_log_info[0].error_code) == "NONE"


@DIALECTS
def test_cluster_action_is_needed(dialect: Dialect) -> None:
    with cluster("kip966-balanced", log_info=dialect) as server:
        server.inside(lambda world: world.denied.add(Denied("cluster", "CLUSTER_ACTION")))
        assert one(server, 1) == ("CLUSTER_AUTHORIZATION_FAILED", UNKNOWN)
        server.inside(lambda world: world.denied.clear())
        assert one(server, 1)[0] == "NONE"


def test_a_request_for_another_broker_is_refused() -> None:
    """Otherwise the logs of the broker that has the address now would pass for those of the one that was meant."""
    with cluster("kip966-balanced") as server:
        assert one(server, 2, named=1) == ("INVALID_REQUEST", UNKNOWN)
        assert one(server, 2, named=2)[0] == "NONE"


def test_no_list_means_every_replica_of_the_broker() -> None:
    """KIP-966 has TopicPartitions nullable."""
    with cluster("kip966-balanced", (1, 2), (3, 2), (2, 3)) as server:
        server.inside(lambda world: world.running.ask(events.TopicCreated("other", ((1, 2),))))
        assert told(asked(server, 3, None)) == {1: ("NONE", (-1, 0, 0)), 2: ("NONE", (-1, 0, 0))}
        both = asked(server, 2, None).topic_partition_log_info_list
        assert [[one.partition for one in topic.partition_log_info] for topic in both] == [[0, 1, 2], [0]]
        server.inside(lambda world: world.denied.add(Denied("cluster", "CLUSTER_ACTION")))
        assert {error for error, _ in told(asked(server, 3, None)).values()} == {"CLUSTER_AUTHORIZATION_FAILED"}


def test_no_list_is_answered_up_to_the_limit() -> None:
    with SimulatedServer(SimulatedSpec(topics=1, partitions=7, log_info_limit=5)) as server:
        found = told(asked(server, 1, None))
        assert [found[number][0] for number in range(7)] == [*5 * ("NONE",), *2 * ("REQUEST_LIMIT_REACHED",)]


def test_over_the_limit_the_kip_answers_with_an_error_for_the_rest() -> None:
    with SimulatedServer(SimulatedSpec(topics=1, partitions=7, log_info_limit=5)) as server:
        topic_id = server.inside(lambda world: world.topic_id("topic-000000"))
        found = told(asked(server, 1, {topic_id: range(7)}))
        assert [found[number][0] for number in range(7)] == [*5 * ("NONE",), *2 * ("REQUEST_LIMIT_REACHED",)]
        assert {told(asked(server, 1, {topic_id: [number]}))[number][0] for number in (5, 6)} == {"NONE"}


def test_over_the_limit_the_patch_leaves_the_rest_out_and_says_so() -> None:
    spec = SimulatedSpec(topics=2, partitions=4, log_info_limit=5, log_info=Dialect.PATCH)
    with SimulatedServer(spec) as server:
        ids = [
            server.inside(lambda world, name=name: world.topic_id(name)) for name in ("topic-000000", "topic-000001")
        ]  # type: ignore[misc]
        answer = asked(server, 1, {topic_id: range(4) for topic_id in ids})
        assert answer.has_more_replica_log_info is True
        got = [
            (topic.topic_id, one.partition)
            for topic in answer.topic_partition_log_info_list
            for one in topic.partition_log_info
        ]
        assert got == [*((ids[0], number) for number in range(4)), (ids[1], 0)]
        rest = asked(server, 1, {ids[1]: [1, 2, 3]})
        assert rest.has_more_replica_log_info is False
        assert set(told(rest)) == {1, 2, 3}
        exactly = asked(server, 1, {ids[0]: range(4), ids[1]: [0]})
        assert exactly.has_more_replica_log_info is False


def test_a_broker_that_lost_touch_with_the_controller_tells_the_epoch_that_it_knew() -> None:
    with cluster("kip966-balanced") as server:
        server.inside(lambda world: world.running.produce(ORDERS, 10, Acks.ALL))
        server.inside(lambda world: world.running.sever(2, world.controller))
        server.inside(lambda world: world.running.kill(1))
        server.inside(lambda world: world.running.expire(1))
        state = server.inside(lambda world: world.state(ORDERS))
        assert state is not None
        assert (one(server, 2)[1][1], one(server, 3)[1][1]) == (0, state.leader_epoch)
        assert state.leader_epoch > 0
        server.inside(lambda world: world.running.heal())
        assert one(server, 2)[1][1] == server.inside(lambda world: world.state(ORDERS)).leader_epoch  # type: ignore[union-attr]


def test_what_is_told_by_hand_counts() -> None:
    with cluster("kip966-balanced") as server:
        server.inside(
            lambda world: setattr(
                world.running,
                "cluster",
                world.running.cluster.tell(ORDERS, ReplicaLog(2, 77, last_epoch=5, current_leader_epoch=0)),
            )
        )
        assert one(server, 2) == ("NONE", (5, 0, 77))
        assert one(server, 3) == ("NONE", (-1, 0, 0))


@pytest.mark.parametrize(("dialect", "key"), [(Dialect.KIP, 70), (Dialect.PATCH, 93), (Dialect.KIP, 5000)])
def test_it_has_the_key_that_the_cluster_was_made_with(dialect: Dialect, key: int) -> None:
    with cluster("kip966-balanced", log_info=dialect, log_info_key=key) as server:
        listed = {api.api_key for api in wire.ask(server.ports[1], ApiVersionsRequest(version=0)).api_keys}
        assert key in listed
        assert one(server, 1)[0] == "NONE"


def test_a_cluster_without_it_hangs_up() -> None:
    with cluster("elr-4.3", log_info=None) as server:
        listed = {api.api_key for api in wire.ask(server.ports[1], ApiVersionsRequest(version=0)).api_keys}
        assert not listed & {70, 93}
        kind, _ = replica_log_info(Dialect.KIP, 70)
        with pytest.raises(ConnectionError):
            wire.ask(server.ports[1], kind(version=0, broker_id=1, topic_partitions=[]))
