"""Several controllers: one dies, another takes over, and a recovery survives it as KIP-966 says."""

from __future__ import annotations

from typing import Any

import pytest

from kelr.errors import LabError, UsageError
from kelr.lab import wire
from kelr.lab.simulated.control import Operator
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import ApiVersionsRequest, DescribeClusterRequest, DescribeQuorumRequest
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.lab.simulated.stories import (
    BALANCED,
    ORDERS,
    PATIENCE_S,
    asked,
    cluster,
    errors,
    eventually,
    led_by,
    power_outage,
    request,
    returns,
    state,
)

LOG_INFO = "GetReplicaLogInfo"


def heard(world: World) -> set[int]:
    task = world.running.cluster.manager.tasks.get(ORDERS)
    return set() if task is None else set(task.heard)


def failed(world: World) -> set[int]:
    task = world.running.cluster.manager.tasks.get(ORDERS)
    return set() if task is None else {replica for replica, one in task.inquiries.items() if one.failed}


def quorum(server: SimulatedServer, node: int) -> Any:
    topic = DescribeQuorumRequest.TopicData
    partitions = [topic.PartitionData(partition_index=0)]
    question = DescribeQuorumRequest(version=2, topics=[topic(topic_name="__cluster_metadata", partitions=partitions)])
    answer = wire.ask(server.ports[node], question, timeout_s=PATIENCE_S)
    return answer.topics[0].partitions[0]


def kill(server: SimulatedServer, node: int) -> None:
    server.inside(lambda world: world.kill_controller(node))


def test_a_new_controller_begins_the_recovery_anew_and_ends_it() -> None:
    """KIP-966: "The controller does not store anything in the metadata log, every controller failover will result in a
    new unclean recovery." """
    with cluster("kip966-balanced", controllers=3) as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        assert (quorum(server, 1).leader_id, quorum(server, 1).leader_epoch) == (100, 1)
        kill(server, 100)
        assert (quorum(server, 1).leader_id, quorum(server, 1).leader_epoch) == (101, 2)
        eventually(server, led_by(2))
        with pytest.raises(ConnectionError):
            wire.ask(server.ports[100], ApiVersionsRequest(version=0), timeout_s=PATIENCE_S)


def test_an_answer_to_the_last_controller_is_not_the_new_ones() -> None:
    with cluster("kip966-balanced", controllers=3) as server:
        power_outage(server)
        server.fault(Fault(FaultKind.DELAY, 1000, node=2, api=LOG_INFO, times=1))
        server.fault(Fault(FaultKind.LOSE, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        kill(server, 100)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.advance(1000)
        assert server.inside(heard) == {1, 3}, "what was on its way to the dead controller got nowhere"
        server.advance(1000)
        eventually(server, lambda world: failed(world) == {2})
        server.advance(1000)
        eventually(server, led_by(2))


def test_the_count_of_finished_recoveries_begins_anew() -> None:
    with cluster("kip966-balanced", controllers=3) as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        eventually(server, led_by(2))
        assert server.inside(lambda world: world.running.cluster.manager.finished) == 1
        kill(server, 100)
        assert server.inside(lambda world: world.running.cluster.manager.finished) == 0
        assert state(server).leader == 2


def test_who_does_not_lead_says_so() -> None:
    with cluster("kip966-none", controllers=3) as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        answer = asked(server, request(3, BALANCED, {"orders": [0]}), 102)
        assert (error_name(answer.error_code), errors(answer)) == ("NOT_CONTROLLER", {ORDERS: "NOT_CONTROLLER"})
        assert error_name(quorum(server, 102).error_code) == "NOT_LEADER_OR_FOLLOWER"
        question = DescribeClusterRequest(version=1, endpoint_type=2, include_cluster_authorized_operations=False)
        found = wire.ask(server.ports[102], question, timeout_s=PATIENCE_S)
        assert (found.controller_id, [one.broker_id for one in found.brokers]) == (100, [100, 101, 102])
        assert errors(asked(server, request(3, BALANCED, {"orders": [0]}), 100)) == {ORDERS: "NONE"}


def test_a_controller_that_is_back_leads_when_its_turn_comes() -> None:
    with cluster("elr-4.3", controllers=3) as server:
        kill(server, 100)
        voters = {one.replica_id: one.last_fetch_timestamp for one in quorum(server, 1).current_voters}
        server.advance(5000)
        later = {one.replica_id: one.last_fetch_timestamp for one in quorum(server, 1).current_voters}
        assert (later[100], later[101]) == (voters[100], voters[101] + 5000)
        with pytest.raises(LabError, match="no majority") as refused:
            kill(server, 101)
        assert "a lost quorum is rehearsed on a real one: kelr lab up --controllers 3" in (
            refused.value.next_step or ""
        )
        server.inside(lambda world: world.start_controller(100))
        kill(server, 101)
        assert (quorum(server, 1).leader_id, quorum(server, 1).leader_epoch) == (102, 3)


def test_no_link_is_between_controllers() -> None:
    with cluster("elr-4.3", controllers=3) as server, pytest.raises(UsageError, match="are controllers"):
        server.perform(lambda running: Operator(running).sever(one=101, other=102))


def test_kelr_names_the_controller_that_leads() -> None:
    with cluster("kip966-balanced", controllers=3) as server:
        kill(server, 100)
        settings = ConnectionSettings.read(server.bootstrap_servers, timeout_s=PATIENCE_S)
        with LiveSource(settings) as source:
            assert source.cluster().controller == 101


def test_the_verbs_kill_and_start_controllers_where_there_are_several() -> None:
    with SimulatedServer(SimulatedSpec(controllers=3)) as server:

        def told(*verbs: tuple[str, int]) -> list[str | None]:
            def do(served: Any) -> list[str | None]:
                operator = Operator(served)
                for verb, node in verbs:
                    getattr(operator, verb)(broker=node)
                return [node["controller"] for node in operator.status()["nodes"] if node["running"]]

            return server.perform(do)

        assert told() == ["active", "standby", "standby", None, None, None]
        assert told(("kill", 100)) == ["active", "standby", None, None, None]
        assert told(("start", 100)) == ["standby", "active", "standby", None, None, None]
    with SimulatedServer() as server, pytest.raises(UsageError, match="no broker 100"):
        server.perform(lambda served: Operator(served).kill(broker=100))
