"""Elections by name (ElectLeaders v3) on a simulated cluster that has the whole of KIP-966, over the wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.controller import Election
from kelr.engine.planning import plan_of, stock_files
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.world import Denied, World
from kelr.model import LOG_TYPES, ElectionRequest, ElectionType, Method, Plan, Selection, Target, TopicPartition
from kelr.model.plan import AcceptedLoss, ElectionResult
from kelr.protocol.messages import ElectLeadersResponse
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import NO_ANSWER, AdminClient
from kelr.recovery.apply import apply_plan, check_plan
from kelr.recovery.apply_context import Timeouts
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import open_journals
from kelr.recovery.resume import resume
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.ground import MACHINE
from kelr.sources.live import LiveSource, requests
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.transport import Failure, FailureKind
from kelr.view.plan_words import method_in_words
from tests.lab.simulated.stories import ORDERS, cluster, power_outage, returns, state

CONSENT = Confirmation(AcceptedLoss(100, unbounded=True), "a test")
WHO = Actor("ada", "laptop", "User:ada")
NATIVE_TYPES = {
    "designation": ElectionRequest(ElectionType.DESIGNATION, desired_leader=2),
    "so many logs": ElectionRequest(ElectionType.LONGEST_LOG_AGGRESSIVE, minimal_replicas=2),
    "recommended": ElectionRequest(),
}
"""Each elects broker 2 in the story below."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def leaderless(rules: str = "kip966-none", back: tuple[int, ...] = (2, 3)) -> Iterator[SimulatedServer]:
    """``orders:0`` with replicas [3, 1, 2] after a power outage: 2 (log end 15) and 3 (log end 9) are back, not 1."""
    with cluster(rules, (3, 1, 2)) as server:
        power_outage(server)
        returns(server, *back)
        assert state(server).leader is None
        yield server


def _source(server: SimulatedServer) -> LiveSource:
    return LiveSource(ConnectionSettings.read(server.bootstrap_servers, timeout_s=30))


def _plan(source: LiveSource, wish: ElectionRequest) -> Plan:
    (page,) = decide_partitions(source, Selection((Target(topic=ORDERS.topic),)), clock_ms=_now_ms)
    return plan_of(page.snapshot, page.decisions, lambda _at: wish, now_ms=_now_ms(), made_by="kelr/test")


class Watched:
    """A live hand; tells what was asked of it, and lets something happen before and after."""

    def __init__(self, hand: AdminClient) -> None:
        self._hand = hand
        self.asked: list[Any] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        self.asked.append(("reorder", dict(orders)))
        return self._hand.reorder(orders)

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        self.asked.append((election, list(partitions)))
        return self._hand.elect(election, partitions)

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        self.asked.append(("designate", dict(leaders)))
        self.before()
        answers = self._hand.designate(leaders)
        self.after()
        return answers

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        self.asked.append((kind, list(partitions)))
        self.before()
        return self._hand.elect_by_log(kind, partitions)

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        raise AssertionError(f"no config is written, and not {name}={value} of {topic}")


def _common(source: LiveSource, hand: AdminClient, directory: Path) -> dict[str, Any]:
    return {
        "source": source,
        "hand": hand,
        "state_directory": directory,
        "ground": MACHINE,
        "who": WHO,
        "patience": Timeouts(late_s=0.2, answer_s=1, settle_s=5),
    }


@pytest.mark.parametrize("kind", NATIVE_TYPES)
def test_what_was_shown_is_what_is_done_in_one_request(kind: str, tmp_path: Path) -> None:
    """Also where the choice was made by logs, and kelr's advice or the file ask for more than the request can say."""
    with leaderless() as server, _source(server) as source:
        plan = _plan(source, NATIVE_TYPES[kind])
        (planned,) = plan.elections
        assert (planned.method, planned.elect, planned.order) == (Method.NATIVE, 2, (3, 1, 2))
        hand = Watched(LiveAdminClient.of(source))
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, applied.leader, applied.error) == (ElectionResult.DONE, 2, None)
        assert hand.asked == [("designate", {ORDERS: 2})]
        after = state(server)
        assert (after.leader, after.replicas) == (2, (3, 1, 2))
        assert open_journals(tmp_path, source.cluster().cluster_id) == ()


@pytest.mark.parametrize("kind", LOG_TYPES)
def test_an_election_by_logs_that_was_asked_for_is_left_to_the_controller(kind: ElectionType, tmp_path: Path) -> None:
    """ElectLeaders v3, types 2 and 3: the controller asks the replicas, and elects the best log."""
    with leaderless(back=(1, 2, 3)) as server, _source(server) as source:
        plan = _plan(source, ElectionRequest(kind))
        (planned,) = plan.elections
        assert (planned.method, planned.elect, planned.order) == (Method.LONGEST_LOG, 2, (3, 1, 2))
        hand = Watched(LiveAdminClient.of(source))
        lines: list[str] = []
        hand.before = lambda: lines.extend(_journal(tmp_path).read_text(encoding="utf-8").splitlines())
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, applied.leader, applied.error) == (ElectionResult.DONE, 2, None)
        assert hand.asked == [(kind, [ORDERS])]
        assert f'"election":"{kind}"' in lines[-1].replace(" ", "")
        assert (state(server).leader, state(server).replicas) == (2, (3, 1, 2))


def test_a_log_that_is_cut_at_the_last_moment_is_not_elected_by_the_controller(tmp_path: Path) -> None:
    """What the controller elects in place of the planned replica is told."""
    with leaderless(back=(1, 2, 3)) as server, _source(server) as source:
        plan = _plan(source, ElectionRequest(ElectionType.LONGEST_LOG_BALANCED))

        def cut(world: World) -> None:
            world.running.cluster = world.running.cluster.cut(ORDERS, 2, 5)

        hand = Watched(LiveAdminClient.of(source))
        hand.before = lambda: server.inside(cut)
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, applied.leader) == (ElectionResult.OTHER_LEADER, 3)


@pytest.mark.parametrize("kind", LOG_TYPES)
def test_a_plan_by_logs_says_that_another_one_may_be_elected(kind: ElectionType, tmp_path: Path) -> None:
    """Whoever consents reads that the request names nobody, and that 1 is to stay down: back at the last moment, it is
    elected by a log that nobody had read, also by a balanced election, whose quorum it is not in."""

    def cut(world: World) -> None:
        world.running.cluster = world.running.cluster.cut(ORDERS, 2, 5).cut(ORDERS, 3, 4)

    with leaderless() as server, _source(server) as source:
        server.inside(cut)
        plan = _plan(source, ElectionRequest(kind))
        (planned,) = plan.elections
        assert "if the logs differ then, another one is elected" in method_in_words(planned)
        assert (planned.elect, [hold.broker for hold in planned.hold]) == (2, [1])
        hand = Watched(LiveAdminClient.of(source))
        hand.before = lambda: returns(server, 1)
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, applied.leader) == (ElectionResult.OTHER_LEADER, 1)


@pytest.mark.parametrize(("kind", "number"), [(LOG_TYPES[0], 2), (LOG_TYPES[1], 3)])
def test_the_number_of_the_type_on_the_wire(kind: ElectionType, number: int) -> None:
    made = requests.elect_by_log(kind, [ORDERS], timeout_s=1).message
    assert (made.election_type, made.topic_partitions[0].desired_leaders) == (number, None)
    with pytest.raises(ValueError, match="names its partitions"):
        requests.elect_by_log(kind, [], timeout_s=1)


def test_the_plan_by_logs_for_kafkas_own_tool() -> None:
    with leaderless(back=(1, 2, 3)) as server, _source(server) as source:
        (step,) = stock_files(_plan(source, ElectionRequest(ElectionType.LONGEST_LOG_BALANCED))).steps
    assert step.lines == (
        "kafka-leader-election.sh {stock} --election-type longest_log_balanced"
        " --path-to-json-file elect-longest_log_balanced.json",
    )


def test_the_method_is_the_clusters_and_not_the_types() -> None:
    with leaderless("elr-4.3", back=(2,)) as server, _source(server) as source:
        assert source.cluster().features.elect_leaders == 2
        (planned,) = _plan(source, NATIVE_TYPES["designation"]).elections
        assert (planned.method, planned.order) == (Method.REORDER, (2, 3, 1))


def test_an_unclean_election_that_was_asked_for_goes_by_the_older_request() -> None:
    """Version 3 has no unclean election; KIP-966's controller answers the older ones with a recovery by logs."""
    with leaderless() as server, _source(server) as source:
        (planned,) = _plan(source, ElectionRequest(ElectionType.UNCLEAN)).elections
        assert (planned.method, planned.elect) == (Method.UNCLEAN, 2)


def test_the_older_request_is_still_sent_to_such_a_cluster() -> None:
    """With a clock that goes on: a recovery has its time."""
    with cluster("kip966-none", (3, 1, 2), clock=MachineClock()) as server:
        for broker in (1, 2, 3):
            server.inside(lambda world, broker=broker: (world.running.kill(broker), world.running.expire(broker)))  # type: ignore[misc]
        server.inside(lambda world: world.running.start(2))
        with _source(server) as source:
            _until(lambda: 2 in source.cluster().live, source)
            assert state(server).leader is None
            assert LiveAdminClient.of(source).elect(Election.UNCLEAN, [ORDERS]) == {ORDERS: "NONE"}
            assert state(server).leader == 2


def _until(holds: Callable[[], bool], source: LiveSource) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)
        source.forget()


def test_the_journal_names_the_leaders_before_they_are_asked_for(tmp_path: Path) -> None:
    with leaderless() as server, _source(server) as source:
        hand = Watched(LiveAdminClient.of(source))
        lines: list[str] = []
        hand.before = lambda: lines.extend(_journal(tmp_path).read_text(encoding="utf-8").splitlines())
        apply_plan(_plan(source, NATIVE_TYPES["designation"]), consented=CONSENT, **_common(source, hand, tmp_path))
        assert '"election":"designation"' in lines[-1].replace(" ", "")
        assert '"leader":2' in lines[-1].replace(" ", "")
        assert '"line":"intent"' in lines[-1].replace(" ", "")


def _journal(directory: Path) -> Path:
    (path,) = directory.rglob("journals/*.jsonl")
    return path


def test_a_replica_that_dies_at_the_last_moment_is_not_replaced_by_another(tmp_path: Path) -> None:
    with leaderless() as server, _source(server) as source:
        hand = Watched(LiveAdminClient.of(source))
        hand.before = lambda: server.inside(lambda world: (world.running.kill(2), world.running.expire(2)))
        plan = _plan(source, NATIVE_TYPES["designation"])
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, applied.leader) == (ElectionResult.UNKNOWN, None)
        assert applied.error == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
        assert state(server).leader is None


def test_a_plan_whose_replica_died_since_is_refused(tmp_path: Path) -> None:
    with leaderless() as server, _source(server) as source:
        plan = _plan(source, NATIVE_TYPES["designation"])
        server.inside(lambda world: (world.running.kill(2), world.running.expire(2)))
        hand = Watched(LiveAdminClient.of(source))
        (applied,) = apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        assert (applied.ended, hand.asked) == (ElectionResult.REFUSED, [])
        assert "live" in {difference.field for difference in applied.differences}


def test_a_check_changes_nothing() -> None:
    with leaderless() as server, _source(server) as source:
        plan = _plan(source, NATIVE_TYPES["designation"])
        (found,) = check_plan(plan, source=source, ground=MACHINE)
        assert (found.ended, found.text) == (ElectionResult.NOT_TRIED, "")
        assert state(server).leader is None


class _Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kelr_that_is_killed_in_the_middle_is_resumed(moment: str, tmp_path: Path) -> None:
    def killed() -> None:
        raise _Killed

    with leaderless() as server, _source(server) as source:
        hand = Watched(LiveAdminClient.of(source))
        setattr(hand, moment, killed)
        plan = _plan(source, NATIVE_TYPES["designation"])
        with pytest.raises(_Killed):
            apply_plan(plan, consented=CONSENT, **_common(source, hand, tmp_path))
        journal = _journal(tmp_path)
        assert read_journal(journal).ending is None
        again = Watched(LiveAdminClient.of(source))
        done = resume(journal, **_common(source, again, tmp_path))
        assert [one.ended for one in done.applied] == [ElectionResult.DONE]
        assert done.orders == ()
        assert state(server).leader == 2
        assert again.asked == ([] if moment == "after" else [("designate", {ORDERS: 2})])
        assert read_journal(journal).ending is not None


def test_the_plan_for_kafkas_own_tool() -> None:
    with leaderless() as server, _source(server) as source:
        (step,) = stock_files(_plan(source, NATIVE_TYPES["designation"])).steps
    assert step.file == "elect-designation.json"
    assert '"desiredLeader": 2' in step.text
    assert step.lines == (
        "kafka-leader-election.sh {stock} --election-type designation --path-to-json-file elect-designation.json",
    )


# The hand.


def test_an_error_of_the_whole_is_one_of_each() -> None:
    with leaderless() as server, _source(server) as source:
        server.inside(lambda world: world.denied.add(Denied("cluster", "ALTER")))
        assert LiveAdminClient.of(source).designate({ORDERS: 2}) == {ORDERS: "CLUSTER_AUTHORIZATION_FAILED"}


def test_each_partition_has_its_own_answer() -> None:
    nowhere = TopicPartition("nowhere", 3)
    with leaderless() as server, _source(server) as source:
        answers = LiveAdminClient.of(source).designate({ORDERS: 2, nowhere: 1})
        assert answers == {ORDERS: "NONE", nowhere: "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_released_cluster_is_told_nothing() -> None:
    with leaderless("elr-4.3", back=(2,)) as server, _source(server) as source:
        assert LiveAdminClient.of(source).designate({ORDERS: 2}) == {ORDERS: "UNSUPPORTED_VERSION"}
        assert state(server).leader is None


def test_an_answer_that_never_comes_is_none() -> None:
    """Only the hand is impatient: all that comes before has the time that a busy machine takes."""
    with leaderless() as server, _source(server) as source:
        source.cluster()
        settings, transport, brokers = source.reached()
        hand = LiveAdminClient(replace(settings, timeout_s=0.1), transport, brokers)
        server.fault(Fault(FaultKind.DROP, api="ElectLeaders"))
        assert hand.designate({ORDERS: 2}) == {ORDERS: NO_ANSWER}
        _until(lambda: state(server).leader == 2, source)  # it was carried out all the same


def test_nobody_is_asked_for_no_partition_and_never_for_all_of_them() -> None:
    with pytest.raises(ValueError, match="names its partitions"):
        requests.designate({}, timeout_s=1)


class _Nodes:
    """Brokers that elect whoever is wanted; `answers` is what each exchange gives instead, where it is not None."""

    nodes = (1,)

    def __init__(self, *answers: Failure | None) -> None:
        self._answers = list(answers)
        self.sizes: list[int] = []

    def exchange(self, _node: object, request: Any, *, timeout_s: float | None = None) -> Any:
        assert timeout_s is not None
        (topic,) = request.message.topic_partitions
        assert len(topic.partitions) == len(topic.desired_leaders)
        self.sizes.append(len(topic.partitions))
        instead = self._answers.pop(0) if self._answers else None
        if instead is not None:
            return instead
        kind = ElectLeadersResponse.ReplicaElectionResult
        results = [kind.PartitionResult(partition_id=at, error_code=0, error_message=None) for at in topic.partitions]
        return ElectLeadersResponse(
            version=3,
            error_code=0,
            replica_election_results=[kind(topic=topic.topic, partition_result=results)],
        )


def _hand(nodes: _Nodes) -> LiveAdminClient:
    return LiveAdminClient(ConnectionSettings((("127.0.0.1", 1),), timeout_s=5), nodes, nodes)  # type: ignore[arg-type]


def test_no_more_partitions_than_a_request_may_have() -> None:
    nodes = _Nodes()
    leaders = {TopicPartition("t", number): 1 for number in range(2500)}
    assert set(_hand(nodes).designate(leaders).values()) == {"NONE"}
    assert nodes.sizes == [1000, 1000, 500]


def test_a_cluster_that_goes_away_between_two_requests() -> None:
    """What was sent was sent; the rest was not."""
    nodes = _Nodes(None, Failure(FailureKind.UNREACHABLE, "connection refused"))
    answers = _hand(nodes).designate({TopicPartition("t", number): 1 for number in range(1001)})
    assert [answers[TopicPartition("t", number)] for number in (0, 999, 1000)] == [
        "NONE",
        "NONE",
        "BROKER_NOT_AVAILABLE",
    ]
