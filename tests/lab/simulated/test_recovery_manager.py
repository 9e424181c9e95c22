"""The Unclean Recovery Manager over the network: KIP-966's stories end to end, and whatever goes wrong on the way."""

from __future__ import annotations

import pytest

from kelr.controller import ControllerFailedOver
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.handlers.log_info import LogInfo
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol.dialects import REQUEST_LIMIT_REACHED_CODE, Dialect
from kelr.simulation.logs import Acks
from tests.lab.simulated.stories import ORDERS, cluster, eventually, led_by, log_ends, power_outage, returns, state

LOG_INFO = "GetReplicaLogInfo"
DIALECTS = pytest.mark.parametrize("dialect", [Dialect.KIP, Dialect.PATCH])


class Questions:
    """What brokers were asked, in the order in which it reached them."""

    def __init__(self) -> None:
        self.brokers: list[int] = []
        self.sizes: list[int] = []

    def to(self, broker: int) -> int:
        return self.brokers.count(broker)


@pytest.fixture(name="questions")
def _questions(monkeypatch: pytest.MonkeyPatch) -> Questions:
    seen, handle = Questions(), LogInfo.handle

    def watched(self: LogInfo, call: object) -> object:
        seen.brokers.append(call.node)  # type: ignore[attr-defined]
        asked = call.request.topic_partitions  # type: ignore[attr-defined]
        seen.sizes.append(sum(len(topic.partitions) for topic in asked))
        return handle(self, call)  # type: ignore[arg-type]

    monkeypatch.setattr(LogInfo, "handle", watched)
    return seen


def heard(world: World) -> set[int]:
    """The replicas whose logs the manager knows."""
    task = world.running.cluster.manager.tasks.get(ORDERS)
    return set() if task is None else set(task.heard)


def failed(world: World) -> set[int]:
    """The replicas whose answers failed."""
    task = world.running.cluster.manager.tasks.get(ORDERS)
    return set() if task is None else {replica for replica, one in task.inquiries.items() if one.failed}


def no_question_is_out(world: World) -> bool:
    task = world.running.cluster.manager.tasks.get(ORDERS)
    return task is not None and bool(task.inquiries) and not task.owing


@DIALECTS
def test_balanced_waits_for_the_quorum_and_elects_the_complete_replica(dialect: Dialect, questions: Questions) -> None:
    """Vanlightly, 5.3.3, steps 5 to 10."""
    with cluster("kip966-balanced", log_info=dialect) as server:
        power_outage(server)
        assert (log_ends(server), state(server).elr) == ({1: 8, 2: 12, 3: 9}, (2, 3))
        returns(server, 1)
        returns(server, 2)
        server.advance(60_000)
        assert (state(server).elr, state(server).last_known_elr) == ((3,), (2,))
        assert questions.brokers == []
        returns(server, 3)
        eventually(server, led_by(2))
        assert set(questions.brokers) == {1, 2, 3}
        assert state(server).leader_epoch == 4
        assert log_ends(server) == {1: 12, 2: 12, 3: 12}


def test_nobody_is_elected_before_the_last_of_the_quorum_has_answered() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=3, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 2})
        assert state(server).leader is None
        server.advance(2000)  # the sender gives up on broker 3's answer
        eventually(server, lambda world: failed(world) == {3})
        assert state(server).leader is None
        server.advance(1000)  # and the manager asks again
        eventually(server, led_by(2))


FAULTS = [
    Fault(FaultKind.CLOSE),
    Fault(FaultKind.GARBLE),
    Fault(FaultKind.TRUNCATE, amount=3),
    Fault(FaultKind.TRUNCATE, amount=20),
    Fault(FaultKind.ERROR, amount=56),
    Fault(FaultKind.ERROR, amount=-1),
    Fault(FaultKind.ERROR, amount=REQUEST_LIMIT_REACHED_CODE),
]


@DIALECTS
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.amount}")
def test_an_answer_that_is_none_elects_nobody_and_is_asked_for_again(fault: Fault, dialect: Dialect) -> None:
    with cluster("kip966-balanced", log_info=dialect) as server:
        power_outage(server)
        server.fault(Fault(fault.kind, fault.amount, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: no_question_is_out(world) and heard(world) == {1, 3})
        assert state(server).leader is None
        server.advance(1000)
        eventually(server, led_by(2))
        assert log_ends(server) == {1: 12, 2: 12, 3: 12}


@pytest.mark.parametrize("kind", [FaultKind.DROP, FaultKind.LOSE])
def test_an_answer_that_never_comes_is_given_up_by_the_clusters_clock(kind: FaultKind) -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(kind, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.advance(1999)
        assert server.inside(lambda world: world.running.cluster.manager.tasks[ORDERS].owing) == (2,)
        server.advance(1)
        eventually(server, no_question_is_out)
        server.advance(1000)
        eventually(server, led_by(2))


def test_a_late_answer_is_used_while_its_time_lasts() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.DELAY, 1500, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.advance(1499)
        assert state(server).leader is None
        server.advance(1)
        eventually(server, led_by(2))


def empty_outage(server: SimulatedServer) -> None:
    """All brokers are down; logs of 10, 12 and 15 records on 3, 2 and 1."""

    def story(world: World) -> None:
        running = world.running
        running.produce(ORDERS, 10, Acks.ALL)
        running.sever(1, 3)
        running.produce(ORDERS, 2, Acks.LEADER)
        running.sever(1, 2)
        running.produce(ORDERS, 3, Acks.LEADER)
        for broker in (1, 2, 3):
            running.kill(broker)
        running.heal()
        for broker in (3, 2, 1):
            running.expire(broker)

    server.inside(story)


def test_aggressive_takes_the_best_of_those_that_answer_within_its_window() -> None:
    with cluster("kip966-aggressive") as server:
        empty_outage(server)
        returns(server, 3, 2)
        eventually(server, lambda world: heard(world) == {2, 3})
        server.advance(4800)
        assert state(server).leader is None
        server.advance(100)
        eventually(server, led_by(2))
        assert log_ends(server)[2] == 12


def test_aggressive_does_not_wait_for_a_better_log_that_is_late() -> None:
    with cluster("kip966-aggressive") as server:
        empty_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=1, api=LOG_INFO))
        returns(server, 3, 2)
        eventually(server, lambda world: heard(world) == {2, 3})
        server.advance(4700)
        returns(server, 1)
        server.advance(100)
        eventually(server, led_by(2))


def test_aggressive_elects_at_once_where_all_have_answered() -> None:
    with cluster("kip966-aggressive") as server:
        power_outage(server)
        server.inside(lambda world: [world.running.sever(CONTROLLER_ID, broker) for broker in (1, 2, 3)])
        for broker in (1, 2, 3):
            server.inside(lambda world, broker=broker: world.running.start(broker))  # type: ignore[misc]
        server.inside(lambda world: world.running.heal())
        server.advance(100)
        eventually(server, led_by(2))


def test_the_answer_of_an_incarnation_that_is_gone_is_refused(questions: Questions) -> None:
    """Broker 2 answers, and starts again without its log before the controller has heard the others."""
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=3, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 2})

        def again(world: World) -> None:
            world.running.kill(2)
            world.running.expire(2)
            world.running.cluster = world.running.cluster.cut(ORDERS, 2, 7)
            world.running.start(2)

        server.inside(again)
        assert server.inside(heard) == {1}
        server.advance(2000)
        eventually(server, lambda world: failed(world) == {3} and heard(world) == {1, 2})
        server.advance(1000)
        eventually(server, led_by(3))
        assert questions.to(2) >= 2
        assert log_ends(server) == {1: 9, 2: 9, 3: 9}


def test_an_answer_that_was_on_its_way_when_the_broker_restarted_is_refused() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.DELAY, 1000, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})

        def again(world: World) -> None:
            world.running.kill(2)
            world.running.expire(2)
            world.running.cluster = world.running.cluster.cut(ORDERS, 2, 7)
            world.running.start(2)

        server.inside(again)
        server.advance(100)
        server.advance(1000)
        eventually(server, led_by(3))


def test_a_controller_that_lost_its_link_hears_nobody_until_it_is_back() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.inside(lambda world: world.running.sever(CONTROLLER_ID, 2))
        server.advance(2000)
        eventually(server, lambda world: failed(world) == {2})
        server.advance(1000)  # asked again, through a link that is no more; its session ends, too
        server.advance(2000)
        assert (state(server).leader, 2 in server.inside(heard)) == (None, False)
        server.inside(lambda world: world.running.heal())
        server.advance(100)
        server.advance(1000)
        eventually(server, led_by(2))


def test_what_was_answered_before_the_link_broke_and_arrives_after_is_lost() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.DELAY, 500, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.inside(lambda world: world.running.sever(CONTROLLER_ID, 2))
        server.advance(500)
        eventually(server, lambda world: failed(world) == {2})
        assert state(server).leader is None


def test_a_broker_that_stands_still_is_waited_for_and_heard_when_it_goes_on() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.inside(lambda world: world.running.pause(2))
        server.advance(2000)
        eventually(server, lambda world: failed(world) == {2})
        assert state(server).leader is None
        server.inside(lambda world: world.running.go_on(2))
        server.advance(1000)
        eventually(server, led_by(2))


def test_a_broker_that_dies_while_it_is_asked_is_asked_again_when_it_is_back() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=2, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 3})
        server.inside(lambda world: world.running.kill(2))
        eventually(server, lambda world: failed(world) == {2})
        server.advance(3000)
        assert state(server).leader is None
        returns(server, 2)
        server.advance(1000)
        eventually(server, led_by(2))


def test_a_new_controller_asks_everybody_again(questions: Questions) -> None:
    """The manager's memory is in no record: "every controller failover will result in a new unclean recovery"."""
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.DELAY, 500, node=3, api=LOG_INFO, times=1))
        returns(server, 1, 2, 3)
        eventually(server, lambda world: heard(world) == {1, 2})
        server.inside(lambda world: world.running.ask(ControllerFailedOver()))
        eventually(server, lambda world: heard(world) == {1, 2})
        server.advance(500)
        eventually(server, led_by(2))
        assert (questions.to(1), questions.to(2)) == (2, 2)


@DIALECTS
def test_more_partitions_than_a_broker_answers_for_are_asked_for_in_pieces(
    dialect: Dialect, questions: Questions
) -> None:
    count, limit = 25, 10
    with cluster("kip966-balanced", *([(1, 2, 3)] * count), log_info=dialect, log_info_limit=limit) as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        eventually(server, led_by(2))
        for number in range(1, count):  # of equal logs, the first in the assignment
            eventually(server, led_by(1, TopicPartition("orders", number)))
        sizes = [size for broker, size in zip(questions.brokers, questions.sizes, strict=True) if broker == 2]
        assert sizes == [25, 15, 5]


def test_brokers_that_do_not_speak_it_leave_the_partition_to_wait() -> None:
    with cluster("kip966-balanced", log_info=None) as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        eventually(server, lambda world: failed(world) == {1, 2, 3})
        server.advance(10_000)
        assert state(server).leader is None


def test_what_clients_are_denied_does_not_stop_the_controller() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.inside(lambda world: world.denied.add(Denied("cluster", "CLUSTER_ACTION")))
        returns(server, 1, 2, 3)
        eventually(server, led_by(2))


def test_partitions_that_are_alike_are_recovered_as_one(questions: Questions) -> None:
    with cluster("kip966-balanced", topics=50, partitions=20) as server:

        def outage(world: World) -> None:
            for broker in (1, 2, 3):
                world.running.kill(broker)
            for broker in (1, 2, 3):
                world.running.expire(broker)

        server.inside(outage)
        one = TopicPartition("topic-000049", 19)
        assert state(server, one).leader is None
        returns(server, 1, 2, 3)
        eventually(server, lambda world: all(world.state(TopicPartition("topic-000000", n)) for n in range(20)))
        eventually(server, lambda world: world.state(one).leader is not None)  # type: ignore[union-attr]
        assert max(questions.sizes) < 20
