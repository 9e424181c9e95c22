"""ElectLeaders on the wire: versions 0 to 2 as Kafka answers them, version 3 as KIP-966 has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from confluent_kafka import ElectionType as Wire
from confluent_kafka import TopicPartition as Named
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kelr.controller import RULE_SETS, events
from kelr.engine import decide
from kelr.lab import wire
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import ElectionType, Selection, Situation, Snapshot, TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import ApiVersionsRequest
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.lab.simulated.stories import (
    AGGRESSIVE,
    BALANCED,
    DESIGNATION,
    ORDERS,
    PREFERRED,
    UNCLEAN,
    asked,
    cluster,
    elected,
    errors,
    eventually,
    led_by,
    power_outage,
    request,
    returns,
    state,
)

ELECT_LEADERS = 43
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
NOT_NEEDED = "ELECTION_NOT_NEEDED"
NOT_AVAILABLE = "ELIGIBLE_LEADERS_NOT_AVAILABLE"


@pytest.fixture(name="later")
def _later() -> Iterator[Callable[..., Future[str]]]:
    """Ask for an election while the test goes on."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda *arguments, **named: pool.submit(elected, *arguments, **named)


@pytest.mark.parametrize("node", [1, CONTROLLER_ID])
@pytest.mark.parametrize("rules", RULE_SETS)
def test_version_3_is_spoken_by_the_whole_kip_alone(rules: str, node: int) -> None:
    with SimulatedServer(SimulatedSpec(rules=rules)) as server:
        answer = wire.ask(server.ports[node], ApiVersionsRequest(version=0))
        (found,) = (api for api in answer.api_keys if api.api_key == ELECT_LEADERS)
        assert (found.min_version, found.max_version) == (0, 3 if RULE_SETS[rules].recovers else 2)
        if not RULE_SETS[rules].recovers:
            with pytest.raises(ConnectionError):
                asked(server, request(3, PREFERRED, None), node)


def preferred_is_back(server: SimulatedServer) -> None:
    """Broker 1 was away and is in sync again; 2 leads."""
    server.inside(lambda world: world.running.kill(1))
    server.inside(lambda world: world.running.expire(1))
    returns(server, 1)
    assert (state(server).leader, set(state(server).isr)) == (2, {1, 2, 3})


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("rules", ["kraft", "elr-4.3", "kip966-balanced"])
def test_a_preferred_election_is_done_and_then_not_needed(rules: str, version: int) -> None:
    if version == 3 and not rules.startswith("kip966"):
        pytest.skip("these rules have no version 3")
    with cluster(rules) as server:
        preferred_is_back(server)
        assert elected(server, version, PREFERRED) == "NONE"
        assert state(server).leader == 1
        answer = asked(server, request(version, PREFERRED, {"orders": [0]}))
        (result,) = answer.replica_election_results[0].partition_result
        assert error_name(result.error_code) == NOT_NEEDED
        assert result.error_message == "Leader election not needed for topic partition."


def test_the_controller_answers_as_brokers_do() -> None:
    with cluster("elr-4.3") as server:
        preferred_is_back(server)
        answer = asked(server, request(2, PREFERRED, {"orders": [0]}), CONTROLLER_ID)
        assert (errors(answer), state(server).leader) == ({ORDERS: "NONE"}, 1)


def test_a_preferred_leader_that_is_away_is_not_available() -> None:
    with cluster("elr-4.3") as server:
        server.inside(lambda world: world.running.kill(1))
        server.inside(lambda world: world.running.expire(1))
        assert elected(server, 2, PREFERRED) == "PREFERRED_LEADER_NOT_AVAILABLE"
        assert state(server).leader == 2


def test_an_unclean_election_of_released_kafka_takes_the_first_live_replica() -> None:
    with cluster("elr-4.3", (3, 1, 2)) as server:
        for broker in (1, 2, 3):
            server.inside(lambda world, broker=broker: world.running.kill(broker))  # type: ignore[misc]
        for broker in (2, 1, 3):
            server.inside(lambda world, broker=broker: world.running.expire(broker))  # type: ignore[misc]
        assert elected(server, 1, UNCLEAN) == NOT_AVAILABLE
        returns(server, 1, 2)
        assert state(server).leader is None
        assert elected(server, 1, UNCLEAN) == "NONE"
        assert state(server).leader == 1
        assert elected(server, 1, UNCLEAN) == NOT_NEEDED


def test_partitions_and_topics_that_are_not_there_are_told_in_kafkas_words() -> None:
    with cluster("elr-4.3") as server:
        answer = asked(server, request(2, PREFERRED, {"orders": [0, 7], "nothing": [0]}))
        assert errors(answer) == {
            ORDERS: NOT_NEEDED,
            TopicPartition("orders", 7): UNKNOWN,
            TopicPartition("nothing", 0): UNKNOWN,
        }
        words = [one.error_message for topic in answer.replica_election_results for one in topic.partition_result]
        assert words[1:] == ["No such partition as orders-7", "No such topic as nothing"]


def test_no_list_means_all_and_leaves_out_what_is_not_needed() -> None:
    with cluster("elr-4.3", (1, 2, 3), (2, 3, 1)) as server:
        preferred_is_back(server)
        answer = asked(server, request(2, PREFERRED, None))
        assert [topic.topic for topic in answer.replica_election_results] == ["orders"]
        assert errors(answer) == {ORDERS: "NONE"}
        assert errors(asked(server, request(2, PREFERRED, None))) == {}


def test_an_empty_list_is_answered_with_nothing() -> None:
    with cluster("elr-4.3") as server:
        answer = asked(server, request(2, PREFERRED, {}))
        assert (answer.error_code, answer.replica_election_results) == (0, [])


@pytest.mark.parametrize("topics", [None, {"orders": [0, 7]}])
@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ((2, 9, 1000), "INVALID_REQUEST", "Unknown election type 9"),
        ((2, 2, 1000), "INVALID_REQUEST", "Unknown election type 2"),
        ((3, 4, 1000), "INVALID_REQUEST", "Unknown election type 4"),
        ((1, PREFERRED, 0), "REQUEST_TIMED_OUT", None),
        ((3, AGGRESSIVE, -1), "REQUEST_TIMED_OUT", None),
    ],
)
def test_what_is_wrong_with_a_request_is_told_for_each_partition(
    wrong: tuple[int, int, int], error: str, words: str | None, topics: dict[str, list[int]] | None
) -> None:
    version, kind, timeout_ms = wrong
    with cluster("kip966-balanced") as server:
        answer = asked(server, request(version, kind, topics, timeout_ms=timeout_ms))
        assert error_name(answer.error_code) == error
        named = {} if topics is None else {ORDERS: error, TopicPartition("orders", 7): error}
        assert errors(answer) == named
        told = {one.error_message for topic in answer.replica_election_results for one in topic.partition_result}
        assert told == (set() if topics is None else {words})


def test_whoever_may_not_alter_the_cluster_elects_nobody() -> None:
    with cluster("elr-4.3") as server:
        preferred_is_back(server)
        server.inside(lambda world: world.denied.add(Denied("cluster", "ALTER")))
        answer = asked(server, request(2, PREFERRED, {"orders": [0]}))
        assert error_name(answer.error_code) == "CLUSTER_AUTHORIZATION_FAILED"
        assert errors(answer) == {ORDERS: "CLUSTER_AUTHORIZATION_FAILED"}
        assert state(server).leader == 2


def test_librdkafka_elects() -> None:
    with cluster("elr-4.3", clock=MachineClock()) as server:
        server.inside(lambda world: world.running.kill(1))
        server.inside(lambda world: world.running.expire(1))
        server.inside(lambda world: world.running.start(1))
        eventually(server, lambda world: 1 in (world.state(ORDERS) or state(server)).isr)
        admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
        wanted = [Named("orders", 0), Named("orders", 7)]
        found = admin.elect_leaders(Wire.PREFERRED, wanted).result(timeout=20)
        by_partition = {one.partition: error for one, error in found.items()}
        assert by_partition[0] is None
        assert by_partition[7] is not None
        assert "No such partition as orders-7" in by_partition[7].str()
        assert state(server).leader == 1


def test_of_partitions_that_are_alike_only_the_named_one_is_elected() -> None:
    """An election on one of a million is not one on all that have the same replicas."""
    with cluster("elr-4.3", topics=4, partitions=3) as server:
        one, other = TopicPartition("topic-000000", 0), TopicPartition("topic-000001", 0)
        assert state(server, one).replicas == state(server, other).replicas
        away = state(server, one).replicas[0]
        server.inside(lambda world: world.running.kill(away))
        server.inside(lambda world: world.running.expire(away))
        returns(server, away)
        answer = asked(server, request(2, PREFERRED, {one.topic: [0]}))
        assert errors(answer) == {one: "NONE"}
        assert (state(server, one).leader, state(server, other).leader == away) == (away, False)
        told = errors(asked(server, request(2, PREFERRED, None)))
        assert told[other] == "NONE"
        assert one not in told
        assert state(server, other).leader == away


def recovering(rules: str = "kip966-balanced") -> SimulatedServer:
    """A cluster whose topic has two partitions, so that one can be led while the other is not."""
    return cluster(rules, (1, 2, 3), (1, 2, 3))


def test_the_desired_leader_is_elected_whatever_its_log() -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 3)
        assert elected(server, 3, DESIGNATION, 1) == "NONE"
        assert (state(server).leader, state(server).isr[0]) == (1, 1)


@pytest.mark.parametrize("desired", [2, 9, -1], ids=["not live", "no replica", "nobody"])
def test_a_desired_leader_that_cannot_lead_is_not_replaced_by_another(desired: int) -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 3)
        assert elected(server, 3, DESIGNATION, desired) == NOT_AVAILABLE
        assert state(server).leader is None


def test_a_designation_is_for_partitions_without_leader() -> None:
    with cluster("kip966-balanced") as server:
        assert elected(server, 3, DESIGNATION, 2) == NOT_NEEDED
        assert state(server).leader == 1


@pytest.mark.parametrize(
    ("kind", "partitions", "desired", "words"),
    [
        (DESIGNATION, [0, 1], [2], "Topic orders has 2 partitions and 1 desired leaders"),
        (DESIGNATION, [0], [2, 3], "Topic orders has 1 partitions and 2 desired leaders"),
        (DESIGNATION, [0, 0], [2, 3], "Two desired leaders for orders-0"),
        (BALANCED, [0, 1], [2, 3], "Desired leaders are for a designation alone, and topic orders has some"),
    ],
)
def test_each_partition_of_a_designation_has_one_desired_leader(
    kind: int, partitions: list[int], desired: list[int] | None, words: str
) -> None:
    with recovering("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        answer = asked(server, request(3, kind, {"orders": partitions}, desired={"orders": desired}))
        assert error_name(answer.error_code) == "INVALID_REQUEST"
        assert {one.error_message for one in answer.replica_election_results[0].partition_result} == {words}
        assert state(server).leader is None


def test_a_designation_names_a_leader_for_every_partition() -> None:
    with recovering("kip966-none") as server:
        server.inside(lambda world: world.running.ask(events.TopicCreated("other", ((1, 2, 3),))))
        question = request(3, DESIGNATION, {"orders": [0], "other": [0]}, desired={"orders": [2]})
        assert error_name(asked(server, question).error_code) == "INVALID_REQUEST"


def test_a_preferred_election_may_have_an_empty_list_of_desired_leaders() -> None:
    """The KIP gives the field no default: clients made from its schema send an empty list."""
    with cluster("kip966-none") as server:
        question = request(3, PREFERRED, {"orders": [0]}, desired={"orders": []})
        assert errors(asked(server, question)) == {ORDERS: NOT_NEEDED}


@pytest.mark.parametrize("kind", [BALANCED, AGGRESSIVE])
def test_the_longest_log_is_elected_and_then_the_request_answered(kind: int) -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        assert state(server).leader is None  # the strategy is none: it waits for an operator
        assert elected(server, 3, kind) == "NONE"
        assert state(server).leader == 2


def test_balanced_is_answered_when_the_whole_quorum_is_back(later: Callable[..., Future[str]]) -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2)
        answer = later(server, 3, BALANCED)
        eventually(server, lambda world: ORDERS in world.running.cluster.manager.tasks)
        server.advance(1000)
        assert not answer.done()
        returns(server, 3)
        assert answer.result() == "NONE"
        assert state(server).leader == 2


def test_a_recovery_that_takes_too_long_is_answered_at_its_time(later: Callable[..., Future[str]]) -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2)
        answer = later(server, 3, BALANCED, timeout_ms=5000)
        eventually(server, lambda world: ORDERS in world.running.cluster.manager.tasks)
        server.advance(4900)
        assert not answer.done()
        server.advance(200)
        assert answer.result() == "REQUEST_TIMED_OUT"
        returns(server, 3)
        assert state(server).leader is None  # it was given up, and the topic's own strategy is none


def test_a_designation_ends_what_another_operator_waits_for(later: Callable[..., Future[str]]) -> None:
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2)
        answer = later(server, 3, BALANCED)
        eventually(server, lambda world: ORDERS in world.running.cluster.manager.tasks)
        assert elected(server, 3, DESIGNATION, 3) == NOT_AVAILABLE
        assert not answer.done()
        assert elected(server, 3, DESIGNATION, 1) == "NONE"
        assert (answer.result(), state(server).leader) == ("NONE", 1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_unclean_election_by_the_whole_kip_looks_at_logs(version: int) -> None:
    """ "Unclean leader election will be replaced by the unclean recovery", for old clients too. In version 3 number 1
    is unclean where no leaders are desired: the KIP's newest text leaves ElectionType as it is released."""
    with cluster("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        assert elected(server, version, UNCLEAN) == "NONE"
        assert state(server).leader == 2


def test_all_partitions_without_leader_are_recovered_at_once() -> None:
    with recovering("kip966-none") as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        without_leader = {ORDERS: "NONE", TopicPartition("orders", 1): "NONE"}
        assert errors(asked(server, request(3, AGGRESSIVE, None))) == without_leader
        eventually(server, led_by(2))


def test_what_is_over_the_limit_is_told_so_and_not_served() -> None:
    with cluster("kip966-balanced", *([(1, 2, 3)] * 1002)) as server:
        question = request(3, PREFERRED, {"orders": range(1001), "nothing": [0]})
        found = errors(asked(server, question))
        assert {found[TopicPartition("orders", number)] for number in range(1000)} == {NOT_NEEDED}
        assert found[TopicPartition("orders", 1000)] == "REQUEST_LIMIT_REACHED"
        assert found[TopicPartition("nothing", 0)] == "REQUEST_LIMIT_REACHED"
        older = errors(asked(server, request(2, PREFERRED, {"orders": range(1001)})))
        assert set(older.values()) == {NOT_NEEDED}


def test_elections_that_take_too_many_records_are_refused_together() -> None:
    """A controller writes 10,000 records for one request, or none."""
    with cluster("elr-4.3", topics=301, partitions=100) as server:
        server.inside(lambda world: world.running.kill(1))
        server.inside(lambda world: world.running.expire(1))
        returns(server, 1)
        everything = asked(server, request(2, PREFERRED, None))
        assert (error_name(everything.error_code), errors(everything)) == ("POLICY_VIOLATION", {})
        led = [state(server, TopicPartition("topic-000000", number)).leader for number in range(6)]
        assert 1 not in led
        some = asked(server, request(2, PREFERRED, {f"topic-{number:06}": range(100) for number in range(20)}))
        assert (some.error_code, set(errors(some).values())) == (0, {"NONE", NOT_NEEDED})


def test_what_is_foretold_of_a_topics_own_strategy_comes() -> None:
    """A strategy that is set while the cluster runs is obeyed by the controller, and read by kelr."""
    with cluster("kip966-balanced") as server:
        power_outage(server)
        returns(server, 3)
        server.advance(10_000)
        assert (foretold(server), state(server).leader) == (None, None)
        set_strategy(server, "none")
        assert foretold(server) is None
        set_strategy(server, "aggressive")
        assert foretold(server) == 3
        server.advance(10_000)
        eventually(server, lambda world: world.running.cluster.controller.partitions[ORDERS].leader == 3)


def test_without_the_recovery_manager_an_unclean_election_looks_at_no_logs() -> None:
    """KIP-966, "Config changes": "False means the random election will be used", and as it is today that takes the
    first live replica. Kelr knows such a cluster by its feature flag, and foretells what its controller does."""
    with cluster("kip966-manager-off") as server:
        power_outage(server)
        returns(server, 1, 2)
        snapshot = seen(server, 2)
        decision = decide(snapshot, snapshot.partitions[0])
        assert decision.rules == "kip966-manager-off"
        assert (decision.situation, decision.waits_for) == (Situation.WAITING_FOR_ELR, (3,))
        assert [one.elected for one in decision.elections if one.election is ElectionType.UNCLEAN] == [1]
        assert state(server).leader is None
        assert elected(server, 2, UNCLEAN) == "NONE"
        assert state(server).leader == 1, "the first live replica, though 2 has the longer log"


def foretold(server: SimulatedServer) -> int | None:
    """Whom the controller elects by itself, as kelr reads the cluster."""
    snapshot = seen(server, 3)
    return decide(snapshot, snapshot.partitions[0]).elected


def seen(server: SimulatedServer, broker: int) -> Snapshot:
    """What kelr reads of the cluster from a broker."""
    with LiveSource(ConnectionSettings.read(f"127.0.0.1:{server.ports[broker]}", timeout_s=20)) as source:
        return take_snapshot(source, Selection(), now_ms=0, with_logs=lambda _state: True, lineage=True)


def set_strategy(server: SimulatedServer, strategy: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    entry = ConfigEntry("unclean.recovery.strategy", strategy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(20)
