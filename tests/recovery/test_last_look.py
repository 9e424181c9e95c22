"""What happens between the fences and a request, or between a request and its repetition: nobody else is elected.

Brokers that hang cost seconds while their logs are asked for, and a controller that moves costs more. In that time one
may come back that the election would take, or the wanted one may die.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.controller import events
from kelr.engine.planning import moved_on
from kelr.model import ElectionRequest, ElectionType, LogAnswer, PartitionState, Plan, TopicPartition
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult, Method
from kelr.recovery.admin_client import NO_ANSWER
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import open_journals
from kelr.recovery.resume import resume
from kelr.sources.base import Progress
from tests.recovery.simulated import (
    CLUSTER_ID,
    STEADY,
    TOPIC,
    Fault,
    Killed,
    SimulatedSource,
    World,
    dies,
    leaderless,
    returns,
    silence,
)

pytestmark = pytest.mark.usefixtures("quick")

AT = TopicPartition(TOPIC, 0)
DESIGNATED = {AT: ElectionRequest(ElectionType.DESIGNATION, 2)}
UNCLEAN = {AT: ElectionRequest(ElectionType.UNCLEAN)}


class _SlowLogs(SimulatedSource):
    """Something happens while the logs are read."""

    def __init__(self, world: World, meanwhile: Callable[[], None]) -> None:
        super().__init__(world)
        self._meanwhile: list[Callable[[], None]] = [meanwhile]

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        found = super().replica_logs(partitions, lineage=lineage, progress=progress)
        while self._meanwhile:
            self._meanwhile.pop()()
        return found


def _world(layout: tuple[int, ...], *, away: int | None = None) -> World:
    world = leaderless((layout,))
    if away is not None:
        dies(world, away)()
    return world


def _apply(world: World, state: Path, plan: Plan, **more: Any) -> Applied:
    consented = Confirmation(AcceptedLoss(1000, unbounded=True), force_reason="a test", yes=True)
    arguments = {**world.common(state), "consented": consented, **more}
    (result,) = apply_plan(plan, **arguments)
    return result


@pytest.mark.parametrize(("wishes", "method"), [(DESIGNATED, Method.REORDER), (UNCLEAN, Method.UNCLEAN)])
def test_the_first_in_order_returns_while_logs_are_read(
    tmp_path: Path, wishes: Mapping[TopicPartition, ElectionRequest], method: Method
) -> None:
    """[3,2,1], 3 and 1 away: by itself an unclean election takes 2, and 3 once it is back, with half of the records.

    A designation puts 2 first, so that 3 may return; an unclean election that was asked for is refused.
    """
    world = _world((3, 2, 1), away=3)
    plan = world.plan(wishes)
    assert [(one.method, one.elect) for one in plan.elections] == [(method, 2)]
    result = _apply(world, tmp_path, plan, source=_SlowLogs(world, lambda: returns(world, 3)))
    if method is Method.REORDER:
        assert (result.ended, world.state().leader) == (ElectionResult.DONE, 2)
    else:
        assert (result.ended, world.state().leader) == (ElectionResult.REFUSED, None)
        assert [(one.field, one.planned, one.now) for one in result.differences] == [("elects", "2", "3")]
        assert "before elect" not in world.moments
    assert (world.state().replicas, open_journals(tmp_path, CLUSTER_ID)) == ((3, 2, 1), ())


@pytest.mark.parametrize("layout", [(3, 1, 2), (2, 3, 1)])
@pytest.mark.parametrize("happens", ["the wanted one dies", "the last leader returns", "sets are cleared"])
def test_what_happens_while_logs_are_read_is_seen_before_anything_is_sent(
    tmp_path: Path, layout: tuple[int, ...], happens: str
) -> None:
    world = _world(layout)
    plan = world.plan(DESIGNATED)
    meanwhile = {
        "the wanted one dies": dies(world, 2),
        "the last leader returns": lambda: returns(world, 1, clean=True),
        "sets are cleared": lambda: world.after(events.ConfigWritten(TOPIC, min_isr=3)),
    }
    result = _apply(world, tmp_path, plan, source=_SlowLogs(world, meanwhile[happens]))
    expected = {
        "the wanted one dies": (ElectionResult.REFUSED, None, {"live"}),
        "the last leader returns": (ElectionResult.OTHER_LEADER, 1, {"leader", "leader_epoch", "isr", "elr", "elects"}),
        "sets are cleared": (ElectionResult.REFUSED, None, {"elr", "last_known_elr"}),
    }
    ended, leader, fields = expected[happens]
    assert (result.ended, world.state().leader) == (ended, leader)
    assert {one.field for one in result.differences} <= fields | {"last_known_elr"}
    assert result.differences
    assert world.moments == []
    assert (world.state().replicas, open_journals(tmp_path, CLUSTER_ID)) == (layout, ())


@pytest.mark.parametrize("answer", ["NOT_CONTROLLER", NO_ANSWER])
@pytest.mark.parametrize("layout", [(3, 1, 2), (2, 3, 1)])
def test_an_election_is_not_repeated_once_the_wanted_replica_died(
    tmp_path: Path, answer: str, layout: tuple[int, ...]
) -> None:
    """It died a second into the wait: repeated, the election would take 3 with half of the records."""
    world = _world(layout)
    plan = world.plan(DESIGNATED)
    world.faults["elect"] = [Fault(answer, done=False)]
    world.scheduled.append((1.0, dies(world, 2)))
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.error, world.state().leader) == (ElectionResult.UNKNOWN, answer, None)
    assert [one.field for one in result.differences] == ["live"]
    assert result.differences[0].text in result.text
    assert world.moments.count("before elect") == 1
    assert (world.state().replicas, open_journals(tmp_path, CLUSTER_ID)) == (layout, ())


@pytest.mark.parametrize("answer", ["NOT_CONTROLLER", NO_ANSWER])
def test_an_election_is_not_repeated_once_another_one_would_be_elected(tmp_path: Path, answer: str) -> None:
    world = _world((3, 2, 1), away=3)
    plan = world.plan(UNCLEAN)
    world.faults["elect"] = [Fault(answer, done=False)]
    world.scheduled.append((1.0, lambda: returns(world, 3)))
    result = _apply(world, tmp_path, plan)
    assert (result.ended, world.state().leader) == (ElectionResult.UNKNOWN, None)
    assert [(one.field, one.now) for one in result.differences] == [("elects", "3")]


@pytest.mark.parametrize("answer", ["NOT_CONTROLLER", NO_ANSWER])
def test_an_election_is_repeated_where_nothing_has_changed(tmp_path: Path, answer: str) -> None:
    world = _world((3, 2, 1))
    world.faults["elect"] = [Fault(answer, done=False)] * 2
    result = _apply(world, tmp_path, world.plan(DESIGNATED))
    assert (result.ended, world.state().leader) == (ElectionResult.DONE, 2)
    assert world.moments.count("before elect") == 3


def test_a_reordering_is_not_repeated_once_the_wanted_replica_died(tmp_path: Path) -> None:
    world = _world((3, 1, 2))
    plan = world.plan(DESIGNATED)
    world.faults["reorder"] = [Fault("NOT_CONTROLLER", done=False)]
    world.scheduled.append((1.0, dies(world, 2)))
    result = _apply(world, tmp_path, plan)
    assert (result.ended, world.state().leader, world.state().replicas) == (ElectionResult.REFUSED, None, (3, 1, 2))


# An election that comes after its answer was given up.


@pytest.mark.parametrize("layout", [(3, 1, 2), (2, 3, 1)])
def test_the_result_is_told_when_an_election_can_come_no_more(tmp_path: Path, layout: tuple[int, ...]) -> None:
    """It comes after a minute, when the wanted replica has died: that another one leads is seen and told."""
    world = _world(layout)
    plan = world.plan(DESIGNATED)
    world.faults["elect"] = [silence(done=False, late_s=60.0)] + [silence(done=False)] * 30
    world.scheduled.append((50.0, dies(world, 2)))
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader, world.state().leader) == (ElectionResult.OTHER_LEADER, 3, 3)
    before = world.cluster
    world.sleep(200)
    assert world.cluster == before, "something came after the result was told"
    assert (world.state().replicas, open_journals(tmp_path, CLUSTER_ID)) == (layout, ())


@pytest.mark.parametrize("layout", [(3, 1, 2), (2, 3, 1)])
def test_resume_waits_for_the_election_of_a_killed_run(tmp_path: Path, layout: tuple[int, ...]) -> None:
    world = _world(layout)
    plan = world.plan(DESIGNATED)
    elects = 0 if layout[0] == 2 else 2
    world.faults["elect"] = [silence(done=False, late_s=60.0)]
    world.kill_at = elects + 1  # right after the request went out
    with pytest.raises(Killed):
        _apply(world, tmp_path, plan)
    world.revive()
    dies(world, 2)()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = resume(journal.path, **world.common(tmp_path))
    assert [(one.ended, one.leader) for one in done.applied] == [(ElectionResult.OTHER_LEADER, 3)]
    assert (world.state().replicas, open_journals(tmp_path, CLUSTER_ID)) == (layout, ())


def test_a_preferred_election_lets_the_isr_come_and_go() -> None:
    """The ISR of a partition that is led changes at any moment; only its leader has to be the same."""
    world = leaderless()
    (planned,) = world.plan({STEADY: ElectionRequest(ElectionType.PREFERRED)}).elections
    judged, now = world.cluster.as_snapshot(), world.state(topic=STEADY.topic)
    assert moved_on(planned, judged, replace(now, isr=(2,)), judged.cluster, now) == ()
    moved = moved_on(planned, judged, now, judged.cluster, replace(now, leader=None))
    assert ("leader", "2", "none") in [(one.field, one.planned, one.now) for one in moved]
    without = moved_on(planned, judged, now, judged.cluster, replace(now, isr=(2,)))
    assert [(one.field, one.planned, one.now) for one in without] == [("elects", "3", "2")]
