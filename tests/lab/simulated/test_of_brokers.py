"""AlterPartition (KIP-903) and BrokerRegistration with PreviousBrokerEpoch (KIP-966) at the simulated controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.metadata_log import incarnation_id
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import PartitionState
from kelr.protocol.messages import AlterPartitionRequest, BrokerRegistrationRequest, FetchRequest
from kelr.simulation.logs import Acks
from tests.lab.simulated.asking import CLUSTER_ID, ask, name, world
from tests.lab.simulated.stories import ORDERS, PATIENCE_S, cluster, returns

SOME_ID = UUID(int=7)


def state(cluster: World) -> PartitionState:
    return cluster.running.cluster.controller.partitions[ORDERS]


def epoch(cluster: World, broker: int) -> int:
    return cluster.brokers[broker].epoch


def altering(
    cluster: World, isr: Mapping[int, int], *, version: int = 3, leader: int = 1, partition: int = 0, **more: Any
) -> Any:
    """The request of a leader: the proposed ISR, each member with its broker epoch; version 2 has none."""
    topic = AlterPartitionRequest.TopicData
    one = topic.PartitionData
    members = (
        {"new_isr": list(isr)}
        if version < 3
        else {
            "new_isr_with_epochs": [
                one.BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in isr.items()
            ]
        }
    )
    fields = {"leader_epoch": state(cluster).leader_epoch, "partition_epoch": state(cluster).partition_epoch, **more}
    broker_epoch = fields.pop("broker_epoch", epoch(cluster, leader))
    topic_id = fields.pop("topic_id", cluster.topic_id("orders"))
    asked = one(partition_index=partition, leader_recovery_state=0, **members, **fields)
    return AlterPartitionRequest(
        version=version,
        broker_id=leader,
        broker_epoch=broker_epoch,
        topics=[topic(topic_id=topic_id, partitions=[asked])],
    )


def altered(cluster: World, *arguments: Any, **more: Any) -> Any:
    """The answer for the one partition."""
    answer = ask(cluster, altering(cluster, *arguments, **more), node=CONTROLLER_ID)
    assert answer.error_code == 0
    return answer.topics[0].partitions[0]


def shrunk() -> World:
    """Broker 1 leads alone; the others run, and cannot fetch from it."""
    made = world((1, 2, 3))
    for follower in (2, 3):
        made.running.sever(1, follower)
    made.running.produce(ORDERS, 1, Acks.LEADER)
    made.running.advance(made.running.now_ms + 60_000)
    assert state(made).isr == (1,)
    return made


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_adds_a_member_by_its_broker_epoch(version: int) -> None:
    made = shrunk()
    before = state(made)
    found = altered(made, {1: epoch(made, 1), 2: epoch(made, 2)}, version=version)
    assert (name(found.error_code), found.isr, found.leader_id) == ("NONE", [1, 2], 1)
    assert found.partition_epoch == (before.partition_epoch or 0) + 1
    assert state(made).isr == (1, 2)


def test_a_member_with_a_stale_broker_epoch_is_not_let_in() -> None:
    """KIP-903: "The controller will make sure all the broker epochs in the ISR match with the latest broker epochs"."""
    made = shrunk()
    stale = epoch(made, 2)
    made.running.kill(2)
    made.running.expire(2)
    made.running.start(2)
    made.running.advance(made.running.now_ms + 10_000)
    assert epoch(made, 2) != stale
    assert name(altered(made, {1: epoch(made, 1), 2: stale}).error_code) == "INELIGIBLE_REPLICA"
    assert state(made).isr == (1,)
    assert name(altered(made, {1: epoch(made, 1), 2: epoch(made, 2)}).error_code) == "NONE"


def test_an_epoch_that_is_not_known_is_not_compared() -> None:
    made = shrunk()
    assert name(altered(made, {1: -1, 2: -1}).error_code) == "NONE"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"leader_epoch": 9}, "NOT_CONTROLLER"),
        ({"partition_epoch": 99}, "NOT_CONTROLLER"),
        ({"partition_epoch": 0}, "INVALID_UPDATE_VERSION"),
        ({"partition": 7}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"topic_id": SOME_ID}, "UNKNOWN_TOPIC_ID"),
        ({"leader": 2}, "INVALID_REQUEST"),
    ],
)
def test_what_a_leader_may_not_ask_for(more: dict[str, Any], error: str) -> None:
    made = shrunk()
    assert name(altered(made, {1: -1, 2: -1}, **more).error_code) == error
    assert state(made).isr == (1,)


def test_a_fenced_member_is_not_let_in() -> None:
    made = shrunk()
    made.running.ask(events.BrokerFenced(3))
    assert name(altered(made, {1: -1, 3: -1}).error_code) == "INELIGIBLE_REPLICA"


def test_who_asks_is_looked_at_first() -> None:
    made = shrunk()
    answer = ask(made, altering(made, {1: -1, 2: -1}, broker_epoch=99), node=CONTROLLER_ID)
    assert (name(answer.error_code), answer.topics) == ("STALE_BROKER_EPOCH", [])
    made.denied.add(Denied("cluster", "CLUSTER_ACTION"))
    answer = ask(made, altering(made, {1: -1, 2: -1}), node=CONTROLLER_ID)
    assert name(answer.error_code) == "CLUSTER_AUTHORIZATION_FAILED"


def fetching(cluster: World, follower: int, epoch: int) -> str:
    """The error of a follower's Fetch v15, which carries its broker epoch (ReplicaState)."""
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(
        partition=0,
        current_leader_epoch=state(cluster).leader_epoch,
        fetch_offset=0,
        last_fetched_epoch=-1,
        log_start_offset=0,
        partition_max_bytes=1000,
    )
    question = FetchRequest(
        version=15,
        replica_state=FetchRequest.ReplicaState(replica_id=follower, replica_epoch=epoch),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic(topic_id=cluster.topic_id("orders"), partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return name(ask(cluster, question).responses[0].partitions[0].error_code)


def test_the_leader_remembers_the_broker_epoch_of_a_fetch_and_takes_none_that_is_stale() -> None:
    """KIP-903: "The leader will keep track of the follower epochs received through the Fetch request"."""
    made = shrunk()

    def of_the_leader() -> int | None:
        leadership = made.running.cluster.replication[ORDERS].leadership
        assert leadership is not None
        return leadership.broker_epochs.get(2)

    assert fetching(made, 2, epoch(made, 2) - 1) == "NOT_LEADER_OR_FOLLOWER"
    assert fetching(made, 2, epoch(made, 2)) == "NONE"
    assert of_the_leader() == epoch(made, 2)
    assert made.running.cluster.not_let_in(ORDERS, 2) is None
    assert fetching(made, 2, 99) == "NONE", "one that the leader has not heard of yet"
    assert "last fetched with broker epoch 99" in str(made.running.cluster.not_let_in(ORDERS, 2))
    assert fetching(made, 2, -1) == "NONE"
    assert of_the_leader() is None


def registering(broker: int, *, version: int = 4, directories: Sequence[UUID] = (SOME_ID,), **more: Any) -> Any:
    fields = {"cluster_id": CLUSTER_ID, "incarnation_id": SOME_ID, **more}
    return BrokerRegistrationRequest(
        version=version, broker_id=broker, listeners=[], features=[], rack=None, log_dirs=list(directories), **fields
    )


def registered(cluster: World, broker: int, **more: Any) -> tuple[str, int]:
    answer = ask(cluster, registering(broker, **more), node=CONTROLLER_ID)
    return name(answer.error_code), answer.broker_epoch


def down() -> World:
    """Broker 2 has crashed, its session is over, and it is in the ELR; 1 leads alone."""
    made = world((1, 2, 3))
    for broker in (3, 2):
        made.running.kill(broker)
        made.running.expire(broker)
    assert (state(made).isr, state(made).elr) == ((1,), (2,))
    return made


@pytest.mark.parametrize("version", [3, 4])
def test_the_previous_broker_epoch_makes_a_registration_clean(version: int) -> None:
    """KIP-966: "If it is the same, it is a clean shutdown"."""
    made = down()
    before = epoch(made, 2)
    error, given = registered(made, 2, version=version, previous_broker_epoch=before)
    assert (error, given) == ("NONE", epoch(made, 2))
    assert given > before
    assert state(made).elr == (2,)


@pytest.mark.parametrize(
    ("version", "more"),
    [(4, {"previous_broker_epoch": -1}), (4, {}), (3, {"previous_broker_epoch": 1}), (2, {})],
    ids=["none", "default", "another", "a version without it"],
)
def test_without_it_the_shutdown_was_unclean_and_the_elr_loses_the_broker(version: int, more: dict[str, int]) -> None:
    made = down()
    assert registered(made, 2, version=version, **more)[0] == "NONE"
    assert state(made).elr == ()


def test_who_registers_runs_and_is_unfenced_later() -> None:
    made = down()
    registered(made, 2, previous_broker_epoch=epoch(made, 2))
    assert made.listens(2)
    assert made.brokers[2].fenced
    made.running.advance(made.running.now_ms + 10_000)
    assert not made.brokers[2].fenced
    assert set(state(made).isr) == {1, 2}


def test_who_may_not_register() -> None:
    made = down()
    running = epoch(made, 1)
    assert registered(made, 1) == ("DUPLICATE_BROKER_REGISTRATION", -1)
    own = incarnation_id(CLUSTER_ID, 1, running)
    assert registered(made, 1, incarnation_id=own) == ("NONE", running), "the same process keeps its epoch"
    assert registered(made, 2, cluster_id="another") == ("INCONSISTENT_CLUSTER_ID", -1)
    assert registered(made, 2, directories=()) == ("INVALID_REGISTRATION", -1)
    assert registered(made, 77) == ("INVALID_REGISTRATION", -1), "a broker that has no port here"
    assert registered(made, 2, is_migrating_zk_broker=True) == ("BROKER_ID_NOT_REGISTERED", -1)
    made.denied.add(Denied("cluster", "CLUSTER_ACTION"))
    assert registered(made, 2) == ("CLUSTER_AUTHORIZATION_FAILED", -1)
    assert epoch(made, 1) == running
    assert state(made).elr == (2,)


def test_a_session_that_is_not_over_is_another_brokers() -> None:
    made = world((1, 2, 3))
    made.running.kill(2)
    assert registered(made, 2)[0] == "DUPLICATE_BROKER_REGISTRATION"


def test_both_are_served_at_the_controllers_port_and_nowhere_else() -> None:
    with cluster("kip966-balanced") as server:
        server.inside(lambda one: (one.running.kill(3), one.running.expire(3)))
        question = registering(3, cluster_id=server.world.cluster_id, previous_broker_epoch=1)
        with pytest.raises(ConnectionError):
            wire.ask(server.ports[1], question, timeout_s=PATIENCE_S)
        answer = wire.ask(server.ports[server.world.controller], question, timeout_s=PATIENCE_S)
        assert answer.error_code == 0
        returns(server)
        leader = server.inside(lambda one: one.brokers[1].epoch)
        stale = server.inside(lambda one: altering(one, {1: leader, 2: 99}))
        answer = wire.ask(server.ports[server.world.controller], stale, timeout_s=PATIENCE_S)
        assert name(answer.topics[0].partitions[0].error_code) == "INELIGIBLE_REPLICA"
