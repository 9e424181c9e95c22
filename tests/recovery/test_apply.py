"""Plans carried out on a simulated cluster: what is sent and when, and what becomes of it when things go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kelr.controller import Election, events
from kelr.durable import AppendOnlyFile
from kelr.errors import (
    BadInputError,
    ConnectError,
    NotAuthorizedError,
    NotRecordedError,
    PartlyDoneError,
    RefusedError,
    UsageError,
)
from kelr.model import ElectionRequest, ElectionType, EpochEnd, Plan, ReplicaLog, TopicPartition
from kelr.model.audit import AuditWhat
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import is_refusal
from kelr.recovery.apply import apply_plan, check_plan
from kelr.recovery.audited import recorded_elections
from kelr.recovery.consent import Confirmation, missing_consent
from kelr.recovery.journal_store import open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from kelr.sources.base import Page
from kelr.sources.live.failures import error_answer
from kelr.sources.memory import MemorySource
from kelr.sources.permissions import Permissions
from tests.recovery.simulated import (
    BEGIN_MS,
    CLUSTER_ID,
    LAYOUTS,
    STEADY,
    TOPIC,
    Fault,
    Killed,
    SimulatedAdminClient,
    SimulatedSource,
    World,
    dies,
    leaderless,
    planned_in_its_order,
    returns,
    silence,
    watch_files,
)

pytestmark = pytest.mark.usefixtures("quick")

CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))
ONE = {TopicPartition(TOPIC, 0): ElectionRequest(ElectionType.DESIGNATION, 2)}
"""The partition [3,1,2], which has to be reordered."""


def _apply(world: World, state: Path, plan: Plan | None = None, **more: object) -> tuple[Applied, ...]:
    arguments = {"consented": CONSENT, **world.common(state), **more}
    return apply_plan(plan or world.plan(), **arguments)  # type: ignore[arg-type]


def _ends(results: tuple[Applied, ...]) -> list[str]:
    return [str(result.ended) for result in results]


def _assert_old_orders(world: World) -> None:
    orders = [world.state(number).replicas for number in range(len(LAYOUTS))]
    assert orders == list(LAYOUTS)


def _assert_true(world: World, results: tuple[Applied, ...]) -> None:
    """No result says more than what is so."""
    for result in results:
        state = world.cluster.controller.partitions[result.address]
        if result.ended in {ElectionResult.DONE, ElectionResult.NOT_NEEDED}:
            assert state.leader == result.wanted, result
        if result.ended is ElectionResult.NO_LEADER:
            assert state.leader is None, result
        if result.ended is ElectionResult.OTHER_LEADER:
            assert state.leader not in {None, result.wanted}, result
        if result.ended not in {
            ElectionResult.UNKNOWN,
            ElectionResult.REFUSED,
        }:  # a refusal tells of the moment of its fences
            assert (result.leader, result.leader_epoch) in {
                (state.leader, state.leader_epoch),
                (None, None),
            }, result


def _moments(monkeypatch: pytest.MonkeyPatch, state: Path) -> list[str]:
    world = leaderless()
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        _apply(world, state)
    return world.moments


# The course of a plan.


def test_every_partition_gets_its_leader_and_its_order_back(tmp_path: Path) -> None:
    world = leaderless()
    told: list[ApplyEvent] = []
    results = _apply(world, tmp_path, report=told.append)
    assert _ends(results) == ["done"] * 5
    assert [(result.address, result.leader) for result in results] == [
        *((TopicPartition(TOPIC, number), 2) for number in range(4)),
        (STEADY, 3),
    ]
    _assert_true(world, results)
    _assert_old_orders(world)
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    stages = [event.stage for event in told]
    assert stages[:2] == [Stage.CHECK, Stage.REORDER]
    assert stages[-2:] == [Stage.RESTORE, Stage.DONE]
    assert told[-1].applied == results
    assert told[-1].text == "5 of 5 done, 5 of them as planned"


def test_what_is_sent_and_in_which_order(tmp_path: Path) -> None:
    world = leaderless()
    sent: list[tuple[object, ...]] = []

    class Recorded(SimulatedAdminClient):
        def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
            sent.append(("reorder", {at.partition: order for at, order in orders.items()}))
            return super().reorder(orders)

        def elect(self, election: Election, partitions: object) -> Mapping[TopicPartition, str]:
            sent.append(("elect", election, [str(at) for at in partitions]))  # type: ignore[attr-defined]
            return super().elect(election, partitions)  # type: ignore[arg-type]

    _apply(world, tmp_path, hand=Recorded(world))
    assert sent == [
        ("reorder", {0: (2, 3, 1), 1: (2, 3, 1), 3: (2, 1, 3)}),
        ("elect", Election.UNCLEAN, ["orders:0", "orders:1", "orders:2", "orders:3"]),
        ("elect", Election.PREFERRED, ["steady:0"]),
        ("reorder", {0: (3, 1, 2), 1: (3, 2, 1), 3: (1, 3, 2)}),
    ]


def test_batches_with_a_pause_between_them(tmp_path: Path) -> None:
    world = leaderless()
    told: list[ApplyEvent] = []
    results = _apply(world, tmp_path, batch=2, pause_s=30, report=told.append)
    assert _ends(results) == ["done"] * 5
    assert [event.done for event in told if event.stage is Stage.DONE] == [2, 4, 5]
    assert sum(event.stage is Stage.PAUSE for event in told) == 2
    assert world.now_s >= 60


def test_the_order_stays_where_that_is_asked_for(tmp_path: Path) -> None:
    world = leaderless()
    results = _apply(world, tmp_path, world.plan(ONE), keep_order=True)
    assert results[0].ended is ElectionResult.DONE
    assert results[0].text == "its order stays [2,3,1], as asked for"
    assert world.state().replicas == (2, 3, 1)
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_again_the_same_plan_has_nothing_to_do(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    _apply(world, tmp_path, plan)
    before = world.cluster
    assert _ends(_apply(world, tmp_path, plan)) == ["not-needed"] * 5
    assert world.cluster == before


def test_a_dead_leader_on_record_is_taken_off_by_the_reordering(tmp_path: Path) -> None:
    """Kafka 4.0 elects a dead last known leader (KAFKA-19522): an unclean election alone is "not needed"."""
    world = leaderless(((3, 1, 2),), rules="elr-4.0")
    state = world.state()
    world.cluster = world.cluster.placed(replace(state, leader=1, elr=(), last_known_elr=()))
    for replica, end in ((3, 10), (2, 20)):
        world.cluster = world.cluster.tell(state.address, _log(replica, end, world.state().leader_epoch))
    plan = world.plan({state.address: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert [one.method for one in plan.elections] == ["reorder"]
    results = _apply(world, tmp_path, plan, consented=Confirmation(AcceptedLoss(1000, unbounded=True), "the only way"))
    assert _ends(results) == ["done"]
    assert (world.state().leader, world.state().replicas) == (2, (3, 1, 2))


def _log(replica: int, end: int, epoch: int) -> ReplicaLog:
    return ReplicaLog(replica, end, 0, epoch, end, 0, lineage=(EpochEnd(0, end),), source="told")


def test_a_broker_that_is_not_registered_leaves_the_assignment(tmp_path: Path) -> None:
    """No order may name it; the order that is restored has the others as they were."""
    world = leaderless()
    world.after(events.BrokerUnregistered(1))
    plan = world.plan(ONE)
    assert (plan.elections[0].order, plan.elections[0].restores) == ((2, 3), (3, 2))
    results = _apply(world, tmp_path, plan)
    assert _ends(results) == ["done"]
    state = world.state()
    assert state.leader == 2
    assert tuple(replica for replica in state.replicas if replica != 1) == (3, 2)
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_checking_changes_nothing() -> None:
    world = leaderless()
    plan, before = world.plan(), world.cluster
    results = check_plan(plan, source=SimulatedSource(world), ground=world.ground)
    assert _ends(results) == ["not-tried"] * 5
    returns(world, 1)
    results = check_plan(plan, source=SimulatedSource(world), ground=world.ground)
    assert _ends(results) == ["refused"] * 4 + ["not-tried"]
    assert before.controller.topics == world.cluster.controller.topics
    assert world.moments == []


# What has changed since the plan.


def test_a_better_replica_came_back(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    returns(world, 1)
    results = _apply(world, tmp_path, plan)
    assert _ends(results) == ["refused"] * 4 + ["done"]
    assert {difference.field for difference in results[0].differences} >= {"leader", "leader_epoch"}
    assert results[0].leader == 1
    assert "before reorder" not in world.moments


def test_the_wanted_replica_died(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    dies(world, 2)()
    results = _apply(world, tmp_path, plan)
    assert _ends(results)[:4] == ["refused"] * 4
    assert "live" in {difference.field for difference in results[0].differences}
    _assert_old_orders(world)
    assert [world.state(number).leader for number in range(4)] == [None] * 4


def test_the_rest_goes_on(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    world.after(events.Reassigned(TopicPartition(TOPIC, 1), (1, 2, 3)))
    world.after(events.TopicDeleted(STEADY.topic))
    results = _apply(world, tmp_path, plan)
    assert _ends(results) == ["done", "refused", "done", "done", "refused"]
    assert [difference.field for difference in results[1].differences] == ["replicas"]
    assert results[4].error == "UNKNOWN_TOPIC_OR_PARTITION"


# Between any two steps.

_HAPPENINGS: dict[str, Callable[[World], Callable[[], None]]] = {
    "2 dies": lambda world: dies(world, 2),
    "3 dies": lambda world: dies(world, 3),
    "1 returns": lambda world: lambda: returns(world, 1),
    "1 returns as it was": lambda world: lambda: returns(world, 1, clean=True),
    "the topic goes": lambda world: lambda: world.after(events.TopicDeleted(TOPIC)),
}


@pytest.mark.parametrize("name", _HAPPENINGS)
def test_at_any_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    for moment in range(len(_moments(monkeypatch, tmp_path / "count"))):
        world, state = leaderless(), tmp_path / str(moment)
        plan = world.plan()
        world.happens[moment] = _HAPPENINGS[name](world)
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            results = _apply(world, state, plan)
        at = (name, moment)
        assert open_journals(state, CLUSTER_ID) == (), at
        if name == "the topic goes":
            assert TopicPartition(TOPIC, 0) not in world.cluster.controller.partitions
            continue
        _assert_old_orders(world)
        if moment < len(world.moments) - 8:  # later ones come after the results were read
            _assert_true(world, results)
        leaders = {world.state(number).leader for number in range(4)}
        if name == "3 dies":
            assert leaders <= {None, 2}, at
        if name.startswith("1 returns"):
            assert 3 not in leaders, at


def test_a_returning_leader_between_reordering_and_election(tmp_path: Path) -> None:
    """It was elected by itself: nobody is asked to elect, and its order is the old one again."""
    world = leaderless()
    plan = world.plan(ONE)
    world.happens[1] = lambda: returns(world, 1, clean=True)  # right after the reordering
    (result,) = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader) == (ElectionResult.OTHER_LEADER, 1)
    assert result.text == (
        "broker 1 became the leader meanwhile, not by this run, and not 2; in the plan its log was not read, and that"
        " of 2 ended at 20"
    )
    assert world.state().replicas == (3, 1, 2)
    assert not any("elect" in moment for moment in world.moments)


def test_the_wanted_replica_dies_between_reordering_and_election(tmp_path: Path) -> None:
    """An unclean election would take the other one: it is not asked for."""
    world = leaderless()
    plan = world.plan({**ONE, TopicPartition(TOPIC, 2): ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert [one.method for one in plan.elections] == ["reorder", "unclean"]
    world.happens[1] = dies(world, 2)
    results = _apply(world, tmp_path, plan)
    assert _ends(results) == ["refused", "refused"]
    assert [difference.field for result in results for difference in result.differences] == ["live", "live"]
    assert (world.state().leader, world.state().replicas) == (None, (3, 1, 2))
    assert world.state(2).leader is None


# Requests that go wrong.


@dataclass(frozen=True, slots=True)
class _Trouble:
    request: str
    number: int
    fault: Fault


_SILENCES = [
    _Trouble(request, number, silence(done=done, late_s=late_s))
    for request, number in (("reorder", 0), ("reorder", 1), ("elect", 0))
    for done in (True, False)
    for late_s in (None, 0.5, 20.0, 59.0)
]
_FINE = Fault("NONE", True)


@pytest.mark.parametrize("trouble", _SILENCES, ids=str)
def test_an_answer_that_never_comes(tmp_path: Path, trouble: _Trouble) -> None:
    """Done or not, or done up to a minute later: the leader is the wanted one, and no order is left behind."""
    world = leaderless()
    world.faults[trouble.request] = [_FINE] * trouble.number + [trouble.fault]
    results = _apply(world, tmp_path, world.plan(ONE))
    assert _ends(results) == ["done"], results
    if trouble.fault.late_s is None:
        sent = [world.moments.count(f"before {request}") for request in ("reorder", "elect")]
        once_more = 0 if trouble.fault.done else 1
        # A restoring is sent until Kafka says that it was done, after the last moment at which a reordering can come.
        repeated = {("reorder", 0): [3 + once_more, 1], ("reorder", 1): [3, 1], ("elect", 0): [2, 1 + once_more]}
        assert sent == repeated[trouble.request, trouble.number], "what was done is not asked for again"
    world.sleep(100)
    assert (world.state().leader, world.state().replicas) == (2, (3, 1, 2))
    assert open_journals(tmp_path, CLUSTER_ID) == ()


_UNTIL_MS = BEGIN_MS + 75_000
_MAY_COME = (
    "an unclean election without an answer may come until 22:14:35 UTC: if broker 2 died before then, it would elect"
    " another one"
)


def test_an_election_that_may_come_after_its_result_was_told(tmp_path: Path) -> None:
    """Somebody leads, so that it is not waited for; it comes, and elects another one, once that one has died."""
    world = leaderless()
    world.faults["elect"] = [silence(done=True, late_s=60.0)]
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert (result.ended, result.leader, result.late_until_ms) == (ElectionResult.DONE, 2, _UNTIL_MS)
    assert result.text == _MAY_COME
    (line,) = audit.read(tmp_path)
    assert line.after == {"leader": 2, "leader_epoch": 3, "late_until_ms": _UNTIL_MS}
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    dies(world, 2)()
    assert world.state().leader is None
    world.sleep(60)
    assert world.state().leader == 3


def test_of_an_election_that_was_answered_nothing_may_come(tmp_path: Path) -> None:
    world = leaderless()
    assert {one.late_until_ms for one in _apply(world, tmp_path)} == {None}


@pytest.mark.parametrize("mend", [resume, undo])
def test_an_election_of_a_killed_run_that_may_come_after_its_result_was_told(
    tmp_path: Path, mend: Callable[..., PutRight]
) -> None:
    world = leaderless()
    world.kill_at = 3
    with pytest.raises(Killed):
        _apply(world, tmp_path, world.plan(ONE))
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = mend(journal.path, **world.common(tmp_path))
    (result,) = done.applied
    assert (done.closed, result.ended, result.late_until_ms) == (True, ElectionResult.DONE, _UNTIL_MS)
    assert result.text.endswith(f"; {_MAY_COME}")
    (line,) = (line for line in audit.read(tmp_path) if line.what is AuditWhat.ELECTION)
    assert line.after["late_until_ms"] == _UNTIL_MS


def test_no_answer_ever_to_a_reordering(tmp_path: Path) -> None:
    """The controller is away for long: nothing is elected, and what could still come is waited for."""
    world = leaderless()
    world.faults["reorder"] = [silence(done=False, late_s=50.0)] + [silence(done=False)] * 30
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert result.ended is ElectionResult.NOT_RESTORED or result.ended is ElectionResult.REFUSED, result
    world.faults.clear()
    for journal in open_journals(tmp_path, CLUSTER_ID):
        resume(journal.path, **world.common(tmp_path))
    world.sleep(100)
    assert world.state().replicas == (3, 1, 2)
    assert world.state().leader in {None, 2}
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_an_election_that_comes_late_elects_nobody_else(tmp_path: Path) -> None:
    """With the old order it would elect 3: the order is not restored before it can come no more."""
    world = leaderless()
    world.faults["elect"] = [silence(done=False, late_s=55.0)] + [silence(done=False)] * 30
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert (result.ended, world.state().leader) == (ElectionResult.DONE, 2)
    assert world.state().replicas == (3, 1, 2)


_NOT_SHOWN = "and the brokers still show leader epoch {} as before: they lag behind, or no leader was elected"


def test_an_election_that_never_comes(tmp_path: Path) -> None:
    world = leaderless()
    world.faults["elect"] = [silence(done=False)] * 100
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert (result.ended, result.error) == (ElectionResult.UNKNOWN, "NO_ANSWER")
    assert result.text == f"the election went without an answer, {_NOT_SHOWN.format(world.state().leader_epoch)}"
    assert (world.state().leader, world.state().replicas) == (None, (3, 1, 2))
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert world.now_s > 75, "an election that may still come finds the planned order"


def test_a_preferred_replica_that_fell_out_of_the_isr(tmp_path: Path) -> None:
    """Kafka answers that it cannot lead; the one that led leads on."""
    world = leaderless()
    plan = world.plan({STEADY: ElectionRequest(ElectionType.PREFERRED)})
    world.happens[0] = dies(world, 3)  # right before the election
    (result,) = _apply(world, tmp_path, plan)
    assert (result.ended, result.error, result.leader) == (ElectionResult.UNKNOWN, "PREFERRED_LEADER_NOT_AVAILABLE", 2)
    still = _NOT_SHOWN.format(world.state(topic=STEADY.topic).leader_epoch)
    assert result.text == f"Kafka answers PREFERRED_LEADER_NOT_AVAILABLE, {still}"


_ERRORS = (
    "CLUSTER_AUTHORIZATION_FAILED",
    "INVALID_REPLICA_ASSIGNMENT",
    "NOT_CONTROLLER",
    "POLICY_VIOLATION",
    "REQUEST_TIMED_OUT",
    "THROTTLING_QUOTA_EXCEEDED",
    "UNKNOWN_SERVER_ERROR",
    "UNKNOWN_TOPIC_OR_PARTITION",
)
_REPEATED = {"NOT_CONTROLLER", "REQUEST_TIMED_OUT", "THROTTLING_QUOTA_EXCEEDED"}


@pytest.mark.parametrize("error", _ERRORS)
def test_a_reordering_that_is_refused(tmp_path: Path, error: str) -> None:
    world = leaderless()
    world.faults["reorder"] = [Fault(error, done=False, only=TopicPartition(TOPIC, 0))]
    results = _apply(world, tmp_path)
    expected = "done" if error in _REPEATED else "refused"
    assert _ends(results) == [expected, "done", "done", "done", "done"]
    if expected == "refused":
        assert (results[0].error, results[0].text) == (error, f"Kafka refused the reordering: {error}")
        assert world.state().leader is None
    _assert_old_orders(world)
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_a_reordering_that_is_refused_says_why(tmp_path: Path) -> None:
    world = leaderless()
    answer = error_answer(
        39, "The manual partition assignment includes broker 1, but all its log directories are cordoned."
    )
    world.faults["reorder"] = [Fault(answer, done=False)]
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    said = (
        "INVALID_REPLICA_ASSIGNMENT: The manual partition assignment includes broker 1, but all its log directories are"
        " cordoned; a broker that is down has to start before its cordon can be taken off, and an unclean election"
        " (--election-type unclean) needs no order"
    )
    assert (result.ended, result.text) == (ElectionResult.REFUSED, f"Kafka refused the reordering: {said}")
    assert result.error == "INVALID_REPLICA_ASSIGNMENT"


def test_an_order_that_cannot_be_restored_says_why(tmp_path: Path) -> None:
    world = leaderless()
    world.faults["reorder"] = [_FINE_FOR_ALL, *[Fault(error_answer(44, "Not by day."), done=False)] * 9]
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert result.ended is ElectionResult.NOT_RESTORED
    assert "could not be restored: Kafka answers POLICY_VIOLATION: Not by day" in result.text


def test_a_reordering_that_was_done_although_the_controller_failed(tmp_path: Path) -> None:
    world = leaderless()
    world.faults["reorder"] = [Fault("UNKNOWN_SERVER_ERROR", done=True)]
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    assert result.ended is ElectionResult.REFUSED
    assert (world.state().leader, world.state().replicas) == (None, (3, 1, 2))
    assert open_journals(tmp_path, CLUSTER_ID) == ()


@pytest.mark.parametrize("error", _ERRORS)
def test_an_election_that_is_refused(tmp_path: Path, error: str) -> None:
    world = leaderless()
    world.faults["elect"] = [Fault(error, done=False, only=TopicPartition(TOPIC, 0))]
    results = _apply(world, tmp_path)
    expected = "done" if error in _REPEATED else "no-leader" if is_refusal(error) else "unknown"
    assert _ends(results) == [expected, "done", "done", "done", "done"]
    if expected != "done":
        still = "" if is_refusal(error) else f", {_NOT_SHOWN.format(world.state().leader_epoch)}"
        assert (results[0].error, results[0].text) == (error, f"Kafka answers {error}{still}")
    _assert_old_orders(world)


@pytest.mark.parametrize("error", _ERRORS)
def test_a_restoring_that_is_refused(tmp_path: Path, error: str) -> None:
    """The journal stays open and says where; resume does it."""
    world = leaderless()
    world.faults["reorder"] = [_FINE_FOR_ALL, Fault(error, done=False, only=TopicPartition(TOPIC, 0))]
    results = _apply(world, tmp_path)
    if error in _REPEATED:
        assert _ends(results) == ["done"] * 5
        return
    assert _ends(results) == ["not-restored", "done", "done", "done", "done"]
    assert results[0].text == (
        f"broker 2 leads; its order is [2,3,1], and [3,1,2] could not be restored: Kafka answers {error}"
    )
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert journal.reordered == (TopicPartition(TOPIC, 0),)
    done = resume(journal.path, **world.common(tmp_path))
    assert done.good
    assert _ends(done.applied) == ["done"] * 5
    _assert_old_orders(world)


_FINE_FOR_ALL = Fault("NONE", True, only=TopicPartition("another", 0))
"""A fault that strikes nobody, to get past one request."""


# Nobody answers any more.


def test_the_cluster_cannot_be_reached_from_some_moment_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is not known is said to be unknown, the journal stays open, and resume finishes it."""
    unknown = 0
    for moment in range(len(_moments(monkeypatch, tmp_path / "count"))):
        world, state = leaderless(), tmp_path / str(moment)
        plan = world.plan()

        def lost(world: World = world) -> None:
            world.reachable = False

        world.happens[moment] = lost
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            try:
                results = _apply(world, state, plan)
            except ConnectError:
                results = ()
        unknown += any(result.ended is ElectionResult.UNKNOWN for result in results)
        world.reachable = True
        world.moments.clear()
        _assert_true(
            world, tuple(one for one in results if one.ended in {ElectionResult.DONE, ElectionResult.NOT_NEEDED})
        )
        for journal in open_journals(state, CLUSTER_ID):
            assert resume(journal.path, **world.common(state)).good, moment
            assert {world.state(number).leader for number in range(4)} == {2}
        _assert_old_orders(world)
        assert open_journals(state, CLUSTER_ID) == ()
    assert unknown > 5


@pytest.mark.parametrize("mend", [resume, undo])
def test_an_election_in_its_own_order_of_which_nobody_tells_stays_open(
    tmp_path: Path, mend: Callable[..., PutRight]
) -> None:
    """It was done; resume and undo find that out, and until then it counts as one that may have given records up."""
    world = leaderless()
    plan = world.plan({TopicPartition(TOPIC, 0): ElectionRequest(ElectionType.DESIGNATION, 3)})
    assert [one.method for one in plan.elections] == ["unclean"]
    world.happens[1] = lambda: setattr(world, "reachable", False)
    (result,) = _apply(world, tmp_path, plan)
    assert result.ended is ElectionResult.UNKNOWN
    world.reachable = True
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert list(recorded_elections(audit.read(tmp_path), [journal])) == [TopicPartition(TOPIC, 0)]
    assert [one.ended for one in mend(journal.path, **world.common(tmp_path)).applied] == [ElectionResult.DONE]
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert [line.result for line in audit.read(tmp_path)] == ["unknown", "done"]


# Interrupted.


def test_interrupted_at_any_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The orders are restored before it ends; what was not begun is not tried."""
    moments = _moments(monkeypatch, tmp_path / "count")
    not_tried = 0
    for moment in range(2, len(moments)):
        world, state = leaderless(), tmp_path / str(moment)
        plan = world.plan()
        world.happens[moment] = _interrupt
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            try:
                results = _apply(world, state, plan, batch=3)
            except (PartlyDoneError, KeyboardInterrupt):
                results = ()
        world.happens.clear()
        world.moments.clear()
        not_tried += any(result.ended is ElectionResult.NOT_TRIED for result in results)
        _assert_true(world, results)
        for journal in open_journals(state, CLUSTER_ID):
            assert resume(journal.path, **world.common(state)).good, moment
        _assert_old_orders(world)
        assert open_journals(state, CLUSTER_ID) == ()
    assert not_tried > 5


def test_interrupted_twice(tmp_path: Path) -> None:
    world = leaderless()
    world.happens = {2: _interrupt, 4: _interrupt}  # before the election, and while the orders are restored
    with pytest.raises(PartlyDoneError) as caught:
        _apply(world, tmp_path, world.plan(ONE))
    assert caught.value.next_step == "kelr recover resume"
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert resume(journal.path, **world.common(tmp_path)).good
    assert (world.state().leader, world.state().replicas) == (2, (3, 1, 2))


@pytest.mark.parametrize("refused", [False, True], ids=["restored", "restoring-refused"])
def test_interrupted_at_any_read(tmp_path: Path, refused: bool) -> None:
    """The last read of a batch, too: what was done is told and written down, or the journal is open."""
    for number in range(100):
        world, state = leaderless(), tmp_path / str(number)
        if refused:
            world.faults["reorder"] = [_FINE_FOR_ALL, Fault("UNKNOWN_SERVER_ERROR", done=False)]
        plan, source = world.plan(ONE), _InterruptedAt(world, number)
        results = _apply(world, state, plan, source=source)
        if source.left >= 0:
            break
        (result,) = results
        told = [line.result for line in audit.read(state) if line.what is AuditWhat.ELECTION]
        led = world.state().leader
        in_order = world.state().replicas == (3, 1, 2)
        expected = (
            ElectionResult.NOT_RESTORED
            if not in_order
            else ElectionResult.NOT_TRIED
            if led is None
            else ElectionResult.DONE
        )
        assert (result.ended, result.leader) == (expected, led)
        assert told == ([] if expected is ElectionResult.NOT_TRIED else [expected])
        left = [journal.reordered for journal in open_journals(state, CLUSTER_ID)]
        assert left == ([] if in_order else [(TopicPartition(TOPIC, 0),)])
    assert number > 5


def test_interrupted_twice_while_the_leaders_are_read(tmp_path: Path) -> None:
    """Nothing is told of what is not known, and resume tells it."""
    world = leaderless()
    world.happens[5] = _interrupt  # the order is restored, and is so once more
    counted = _InterruptedAt(world, 1000)
    _apply(world, tmp_path / "counted", world.plan(ONE), source=counted)
    world = leaderless()
    world.happens[5] = _interrupt
    with pytest.raises(PartlyDoneError) as caught:
        _apply(world, tmp_path, world.plan(ONE), source=_InterruptedAt(world, 999 - counted.left))
    assert caught.value.next_step == "kelr recover resume"
    assert list(audit.read(tmp_path)) == []
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert _ends(resume(journal.path, **world.common(tmp_path)).applied) == ["done"]


class _InterruptedAt(SimulatedSource):
    """Somebody presses Ctrl-C while the partitions are read for the n-th time, from 0."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world)
        self.left = number

    def pages(self, *args: Any, **kinds: Any) -> Iterator[Page]:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        return super().pages(*args, **kinds)


def test_interrupted_while_an_election_is_on_its_way(tmp_path: Path) -> None:
    """It comes 20 s later: the order is not restored before."""
    world = leaderless()
    elected = events.LeadersElected(Election.UNCLEAN, (TopicPartition(TOPIC, 0),))

    def interrupt() -> None:
        world.scheduled.append((world.now_s + 20, lambda: world.after(elected)))
        raise KeyboardInterrupt

    world.happens[2] = interrupt
    (result,) = _apply(world, tmp_path, world.plan(ONE))
    world.sleep(100)
    assert (result.ended, result.leader) == (ElectionResult.DONE, 2)
    assert (world.state().leader, world.state().replicas) == (2, (3, 1, 2))


def _interrupt() -> None:
    raise KeyboardInterrupt


# The journal cannot be written.


def _full_after(room: int) -> Callable[..., None]:
    """`AppendOnlyFile.append` of a disk that has room for so many lines, of journal and audit log together."""
    append, written = AppendOnlyFile.append, [0]

    def limited(file: AppendOnlyFile, *records: Mapping[str, object]) -> None:
        if records and written[0] >= room:
            raise UsageError("no space left")
        written[0] += bool(records)
        append(file, *records)

    return limited


def _on_a_full_disk(world: World, state: Path, plan: Plan) -> UsageError | NotRecordedError | None:
    try:
        _apply(world, state, plan)
    except (UsageError, NotRecordedError) as error:
        return error
    return None


def test_a_full_disk_from_any_line_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is asked of the cluster without its line, orders are restored all the same, what was done is told."""
    lines = sum(name.startswith("before ") for name in _moments(monkeypatch, tmp_path / "count"))
    nothing_done = told = 0
    for room in range(lines):
        world, state = leaderless(), tmp_path / str(room)
        plan, before = world.plan(), world.cluster
        with monkeypatch.context() as patch:
            patch.setattr(AppendOnlyFile, "append", _full_after(room))
            error = _on_a_full_disk(world, state, plan)
        if isinstance(error, NotRecordedError):
            told += 1
            assert "no space left" in error.message
            assert [result.address for result in error.results] == [one.address for one in plan.elections]
            _assert_true(world, error.results)
            assert open_journals(state, CLUSTER_ID), "resume has nothing to go on with"
        elif error is not None:
            nothing_done += 1
            assert world.cluster == before, "something was changed without its line"
        _assert_old_orders(world)
        for journal in open_journals(state, CLUSTER_ID):
            resumed = resume(journal.path, **world.common(state))
            if not resumed.closed:  # the line of the restoring is missing: somebody else may have given the old order
                assert {order.address for order in resumed.orders if not order.settled} == {TopicPartition(TOPIC, 1)}
                world.sleep(world.patience().rival_s)
                resumed = resume(journal.path, **world.common(state))
            assert resumed.good
        assert {world.state(number).leader for number in range(4)} == ({2} if room else {None})
        assert open_journals(state, CLUSTER_ID) == ()
        done = {TopicPartition(line.topic, line.partition or 0) for line in audit.read(state) if line.result == "done"}
        assert done == ({one.address for one in plan.elections} if room else set())
    assert (nothing_done, told > 10) == (2, True)


def _full_for_the_audit_log() -> Callable[..., None]:
    append = AppendOnlyFile.append

    def limited(file: AppendOnlyFile, *records: Mapping[str, object]) -> None:
        if records and file.path.name == "audit.jsonl":
            raise UsageError(f"cannot write {file.path}: No space left on device")
        append(file, *records)

    return limited


def test_an_audit_log_that_is_full_once_the_elections_are_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All results are told, with what to do; resume writes the lines under the names of those who elected."""
    world = leaderless()
    with monkeypatch.context() as patch:
        patch.setattr(AppendOnlyFile, "append", _full_for_the_audit_log())
        with pytest.raises(NotRecordedError) as caught:
            _apply(world, tmp_path, batch=2, command="elect")
    error = caught.value
    assert _ends(error.results) == ["done", "done", "not-tried", "not-tried", "not-tried"]
    assert (error.exit_code, "No space left on device" in error.message) == (7, True)
    assert "kelr recover resume" in (error.next_step or "")
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert [one.partition for one in journal.not_audited] == [0, 1]
    world.sleep(600)
    common = {**world.common(tmp_path), "who": Actor("bob", "desk", None)}
    assert _ends(resume(journal.path, **common).applied) == ["done"] * 5
    lines = list(audit.read(tmp_path))
    assert [(line.partition, line.result, line.user, line.command) for line in lines] == [
        (0, "done", "ada", "elect"),
        (1, "done", "ada", "elect"),
        (2, "done", "bob", "recover resume"),
        (3, "done", "bob", "recover resume"),
        (0, "done", "bob", "recover resume"),
    ]
    assert lines[0].at_ms < lines[2].at_ms - 500_000
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_undo_writes_the_missing_audit_lines_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = leaderless()
    with monkeypatch.context() as patch:
        patch.setattr(AppendOnlyFile, "append", _full_for_the_audit_log())
        with pytest.raises(NotRecordedError):
            _apply(world, tmp_path, world.plan(ONE))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert undo(journal.path, **world.common(tmp_path)).closed
    assert [(line.what, line.partition, line.result) for line in audit.read(tmp_path)] == [("election", 0, "done")]
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_an_audit_log_that_cannot_be_written(tmp_path: Path) -> None:
    world = leaderless()
    (tmp_path / "audit.jsonl").mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*audit\.jsonl"):
        _apply(world, tmp_path)
    _assert_untouched(world, tmp_path)


def test_a_report_that_fails(tmp_path: Path) -> None:
    """A terminal that is gone does not keep an order from being restored."""
    world = leaderless()

    def broken(_event: ApplyEvent) -> None:
        raise BrokenPipeError

    assert _ends(_apply(world, tmp_path, report=broken)) == ["done"] * 5


# Two at once.


@pytest.mark.parametrize("other", [2, 3])
def test_another_kelr_on_another_host_at_any_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, other: int
) -> None:
    """A plan that was made at the same time, with the same wish or another one, is carried out in between."""
    for moment in range(len(_moments(monkeypatch, tmp_path / "count"))):
        world, state = leaderless(), tmp_path / f"{moment}"
        plan = world.plan()
        rival = world.plan(
            {TopicPartition(TOPIC, n): ElectionRequest(ElectionType.DESIGNATION, other) for n in range(4)}
        )
        seconds: list[tuple[Applied, ...]] = []

        def meanwhile(world: World = world, state: Path = state, rival: Plan = rival) -> None:
            seconds.append(_apply(world, state.with_name(f"{state.name}-other"), rival))  # noqa: B023

        world.happens[moment] = meanwhile
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            results = _apply(world, state, plan)
        _assert_old_orders(world)
        _assert_true(world, results)
        _assert_true(world, seconds[0])
        assert open_journals(state, CLUSTER_ID) == ()


def test_another_kelr_on_this_host(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    refused: list[RefusedError] = []

    def meanwhile() -> None:
        with pytest.raises(RefusedError) as caught:
            _apply(world, tmp_path, plan)
        refused.append(caught.value)

    world.happens[1] = meanwhile
    assert _ends(_apply(world, tmp_path, plan)) == ["done"] * 5
    assert "another kelr is at work" in refused[0].message


# Before anything is begun.


def _assert_untouched(world: World, state: Path) -> None:
    assert world.moments == []
    assert not (state / "clusters").exists() or open_journals(state, CLUSTER_ID) == ()


def test_a_plan_of_another_cluster(tmp_path: Path) -> None:
    world = leaderless()
    with pytest.raises(RefusedError, match="the plan is for cluster other, and cluster 4L6g3nShT"):
        _apply(world, tmp_path, replace(world.plan(), cluster_id="other"))
    _assert_untouched(world, tmp_path)


def test_an_expired_plan(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan(lifetime_ms=60_000)
    world.sleep(61)
    with pytest.raises(RefusedError, match=r"expired 1 second ago"):
        _apply(world, tmp_path, plan)
    _assert_untouched(world, tmp_path)


@pytest.mark.parametrize("given", [Confirmation(), Confirmation(yes=True), Confirmation(force_reason="because")])
def test_a_loss_that_nobody_accepted(tmp_path: Path, given: Confirmation) -> None:
    world = leaderless()
    plan = world.plan()
    assert missing_consent(plan, given) == (
        "--accept-loss unknown (4 elections: what is lost is UNKNOWN: the log of broker 1 was not read)"
    )
    with pytest.raises(RefusedError, match=r"--accept-loss unknown "):
        _apply(world, tmp_path, plan, consented=given)
    _assert_untouched(world, tmp_path)


def test_a_plan_that_expires_between_two_batches(tmp_path: Path) -> None:
    """What was done stays done; of a plan of yesterday nothing more is begun."""
    world = leaderless()
    results = _apply(world, tmp_path, world.plan(lifetime_ms=60_000), batch=2, pause_s=40)
    assert _ends(results) == ["done", "done", "done", "done", "not-tried"]
    assert results[4].text == "the plan expired before it was begun: look again and make a new one"
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_a_saved_snapshot_is_no_cluster(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    with pytest.raises(RefusedError, match="saved snapshot"):
        _apply(world, tmp_path, plan, source=MemorySource(world.cluster.as_snapshot()))
    _assert_untouched(world, tmp_path)


@pytest.mark.parametrize("batch", [0, 1001])
def test_a_batch_that_is_too_small_or_too_large(tmp_path: Path, batch: int) -> None:
    world = leaderless()
    with pytest.raises(UsageError, match=f"a batch of {batch}"):
        _apply(world, tmp_path, batch=batch)


def test_a_missing_acl_is_named_before_anything_is_changed(tmp_path: Path) -> None:
    world = leaderless()

    class Restricted(SimulatedAdminClient):
        def permissions(self, topics: tuple[str, ...]) -> Permissions:
            granted = dict.fromkeys(topics, frozenset({"DESCRIBE"}))
            return Permissions(frozenset({"DESCRIBE"}), {**granted, STEADY.topic: frozenset()})

    with pytest.raises(NotAuthorizedError) as caught:
        _apply(world, tmp_path, hand=Restricted(world))
    assert caught.value.message == (
        "the principal lacks ALTER on the cluster (ElectLeaders, AlterPartitionReassignments), "
        "DESCRIBE on topic steady (reading the partitions again); nothing was changed"
    )
    _assert_untouched(world, tmp_path)


def test_an_open_journal_about_the_same_partitions(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan(ONE)
    world.faults["reorder"] = [_FINE_FOR_ALL, Fault("UNKNOWN_SERVER_ERROR", done=False)]
    assert _ends(_apply(world, tmp_path, plan)) == ["not-restored"]
    with pytest.raises(RefusedError, match="an earlier run was cut short that concerns orders:0"):
        _apply(world, tmp_path, plan)
    others = {TopicPartition(TOPIC, 2): ElectionRequest(ElectionType.DESIGNATION, 2)}
    assert _ends(_apply(world, tmp_path, world.plan(others))) == ["done"]


# The audit log.


def test_each_election_is_audited(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    world.after(events.Reassigned(TopicPartition(TOPIC, 1), (1, 2, 3)))
    _apply(world, tmp_path, plan, consented=Confirmation(AcceptedLoss(7, unbounded=True), "we know"), command="elect")
    lines = list(audit.read(tmp_path))
    assert [(line.topic, line.partition, line.result) for line in lines] == [
        (TOPIC, 0, "done"),
        (TOPIC, 1, "refused"),
        (TOPIC, 2, "done"),
        (TOPIC, 3, "done"),
        ("steady", 0, "done"),
    ]
    first = lines[0]
    assert (first.what, first.command, first.user, first.host, first.principal) == (
        "election",
        "elect",
        "ada",
        "laptop",
        "User:ada",
    )
    assert first.when == "2023-11-14T22:13:20.000Z"
    assert first.before == {
        "topic_id": plan.elections[0].topic_id,
        "leader": None,
        "leader_epoch": 2,
        "replicas": [3, 1, 2],
        "isr": [],
        "elr": [1],
        "last_known_elr": [1],
    }
    assert first.after == {"leader": 2, "leader_epoch": 3}
    assert [log["replica"] for log in first.evidence] == [3, 1, 2]
    given_by = {"user": "ada", "host": "laptop", "principal": "User:ada"}
    assert first.consent == {"needed": "loss", "yes": False, "accept_loss": "7+", **given_by}
    assert first.force_reason == "we know"
    assert first.loss is not None
    assert first.loss["unheard"] == [1]


# Right after a run.


@pytest.mark.parametrize("boot_id", ["first", "second"])
def test_an_order_that_was_restored_is_not_planned_on(tmp_path: Path, boot_id: str) -> None:
    """It would be given back in the end, for good."""
    world = leaderless()
    plan = world.plan(ONE, lifetime_ms=10_000_000)
    _apply(world, tmp_path, plan)
    lagging = planned_in_its_order(plan)
    world.now_s += 10
    world.boot_id = boot_id
    world.moments.clear()
    with pytest.raises(RefusedError, match=r"shown with the order \[2,3,1\], .* restored to \[3,1,2\]") as caught:
        _apply(world, tmp_path, lagging)
    assert caught.value.code == "order-restored"
    assert "or in 20 min" in (caught.value.next_step or "")
    assert world.moments == []
    world.now_s += world.patience().rival_s  # long enough for an order of somebody's own
    (result,) = _apply(world, tmp_path, lagging)
    assert result.ended is ElectionResult.REFUSED  # by what the brokers show now


def test_an_order_that_was_kept_is_planned_on(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan(ONE)
    _apply(world, tmp_path, plan, keep_order=True)
    (result,) = _apply(world, tmp_path, planned_in_its_order(plan))
    assert result.ended is ElectionResult.REFUSED
    assert "Broker 2 leads now" in result.text


def test_an_order_that_was_kept_after_it_was_restored_is_planned_on(tmp_path: Path) -> None:
    """The run that ended last decides."""
    world = leaderless()
    plan = world.plan(ONE, lifetime_ms=10_000_000)
    world.faults["elect"] = [Fault("INVALID_REQUEST", done=False)]
    assert _ends(_apply(world, tmp_path, plan)) == ["no-leader"]
    world.now_s += 10
    assert _ends(_apply(world, tmp_path, world.plan(ONE), keep_order=True)) == ["done"]
    (result,) = _apply(world, tmp_path, planned_in_its_order(plan))
    assert result.ended is ElectionResult.REFUSED
    assert "Broker 2 leads now" in result.text


def test_where_no_clock_tells_an_order_that_was_restored_is_planned_on(tmp_path: Path) -> None:
    world = leaderless()
    world.boot_id = None
    plan = world.plan(ONE)
    _apply(world, tmp_path, plan)
    assert _ends(_apply(world, tmp_path, planned_in_its_order(plan))) == ["refused"]


def test_a_garbled_last_line_of_a_journal_is_named(tmp_path: Path) -> None:
    world = leaderless()
    _apply(world, tmp_path)
    (path,) = (tmp_path / "clusters").glob("*/journals/*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"ending":"applied"', b'"ending":'))
    with pytest.raises(BadInputError, match=r"line \d+: "):
        open_journals(tmp_path, CLUSTER_ID)
