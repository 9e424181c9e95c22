"""Plans whose orders name cordoned brokers: the cordon goes while the order changes, and is back whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import events
from kelr.engine.planning import stock_files
from kelr.errors import BadInputError, RefusedError
from kelr.model import Check, ElectionRequest, ElectionType, Plan, TopicPartition, Unplanned
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.apply import apply_plan, check_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import open_journals, refuse_open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.plan_file import read_plan, write_plan
from kelr.recovery.resume import resume
from kelr.recovery.status import status
from kelr.recovery.undo import undo
from kelr.recovery.verify import verify
from kelr.sources.live.failures import error_answer
from kelr.view.recovery_status import standings_of
from tests.recovery.simulated import (
    CLUSTER_ID,
    CORDONED,
    TOPIC,
    Fault,
    Killed,
    SimulatedAdminClient,
    SimulatedSource,
    World,
    dies,
    leaderless,
    returns,
    silence,
    watch_files,
)

pytestmark = pytest.mark.usefixtures("quick")

AT = TopicPartition(TOPIC, 0)
CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))
ORDER = (3, 1, 2)


def _world(*cordoned: int) -> World:
    """Brokers 2 and 3 live, 1 down; partition 0 has the order [3,1,2], and 2 is to lead it."""
    world = leaderless()
    world.cordons = dict.fromkeys((1, 2, 3)) | dict.fromkeys(cordoned, "*")
    return world


def _plan(world: World) -> Plan:
    return world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})


def _apply(world: World, state: Path, plan: Plan) -> Applied:
    (result,) = apply_plan(plan, consented=CONSENT, **world.common(state))
    return result


def _is_as_before(world: World, state: Path, *cordoned: int) -> None:
    assert world.state().replicas == ORDER
    assert {broker for broker, value in world.cordons.items() if value} == {*cordoned}
    assert all(value in {None, "*"} for value in world.cordons.values())
    assert open_journals(state, CLUSTER_ID) == ()


@pytest.mark.parametrize("cordoned", [(2,), (3,), (2, 3)])
def test_the_cordon_of_a_live_broker_goes_and_comes_back(tmp_path: Path, cordoned: tuple[int, ...]) -> None:
    world = _world(*cordoned)
    plan = _plan(world)
    (planned,) = plan.elections
    assert planned.uncordons == tuple(one for one in ORDER if one in cordoned)
    assert any("empties" in warning and "cordoned.log.dirs" in warning for warning in planned.warnings)
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader) == (ElectionResult.DONE, 2)
    _is_as_before(world, tmp_path, *cordoned)
    rows = [row for row in audit.read(tmp_path, cluster_id=CLUSTER_ID) if row.what is audit.AuditWhat.CONFIG]
    assert [(row.before, row.after, row.result) for row in rows] == [
        ({"cordoned.log.dirs": "*"}, {"cordoned.log.dirs": "*"}, "done")
    ] * len(cordoned)


def test_a_cordon_that_is_off_by_now_is_left_alone(tmp_path: Path) -> None:
    world = _world(3)
    plan = _plan(world)
    world.cordons[3] = None
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader) == (ElectionResult.DONE, 2)
    assert "before cordon" not in world.moments
    _is_as_before(world, tmp_path)


def test_a_dead_cordoned_broker_is_an_obstacle_that_is_told() -> None:
    world = _world(1)
    plan = _plan(world)
    assert plan.elections == ()
    (left,) = plan.not_planned
    assert left.why is Unplanned.REFUSED
    assert "Kafka takes no order of the replicas that names broker 1" in left.reason
    assert "Kafka's own unclean election" in left.reason


def test_a_cordon_since_the_plan_refuses_the_election(tmp_path: Path) -> None:
    world = _world()
    plan = _plan(world)
    world.cordons[3] = "*"
    (checked,) = check_plan(plan, source=SimulatedSource(world), ground=world.ground)
    result = _apply(world, tmp_path, plan)
    for one in (checked, result):
        assert one.ended is ElectionResult.REFUSED
        assert [difference.field for difference in one.differences] == ["cordoned"]
        assert "broker 3 was cordoned" in one.text
    _is_as_before(world, tmp_path, 3)


def test_a_cordon_that_kafka_does_not_let_off(tmp_path: Path) -> None:
    world = _world(3)
    world.faults["cordon"] = [Fault("CLUSTER_AUTHORIZATION_FAILED", done=False)]
    result = _apply(world, tmp_path, _plan(world))
    assert result.ended is ElectionResult.REFUSED
    assert "cordoned.log.dirs of broker 3 could not be emptied: CLUSTER_AUTHORIZATION_FAILED" in result.text
    _is_as_before(world, tmp_path, 3)


def test_a_cordon_between_reordering_and_restoring(tmp_path: Path) -> None:
    """Kafka's sentence is told, the journal stays open, and resume goes on once the cordon is off."""
    world = _world()
    plan = _plan(world)
    world.happens[1] = lambda: world.cordons.update({3: "*"})  # right after the reordering
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader) == (ElectionResult.NOT_RESTORED, 2)
    assert "includes broker 3, but all its log directories are cordoned" in result.text
    assert "Take the cordon off" in result.text
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    found = status(SimulatedSource(world), tmp_path, plan=plan)
    assert found.reordered == (AT,)
    (told,) = found.journals[0].partitions
    assert "it still has the order of its election" in told.text
    assert "includes broker 3, but all its log directories are cordoned" in told.text
    assert not undo(journal.path, **world.common(tmp_path)).closed
    world.cordons[3] = None
    assert resume(journal.path, **world.common(tmp_path)).good
    _is_as_before(world, tmp_path)


@pytest.mark.parametrize(
    ("named", "ended", "waits"), [(3, ElectionResult.DONE, True), (1, ElectionResult.REFUSED, False)]
)
def test_only_a_cordon_that_was_taken_off_is_waited_for(
    tmp_path: Path, named: int, ended: ElectionResult, *, waits: bool
) -> None:
    """The controller learns by a heartbeat that it is off; of another broker's cordon it has nothing to learn."""
    world = _world(3)
    plan = _plan(world)
    asked = [Fault(error_answer(39, CORDONED.format(named)), done=False)]
    world.faults["reorder"] = list(asked)
    began_s = world.ground.steady_s()
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.leader) == (ended, 2 if waits else None)
    assert (world.ground.steady_s() > began_s) is waits
    _is_as_before(world, tmp_path, 3)


def test_verify_tells_why_kafka_refused(tmp_path: Path) -> None:
    """Not only that it was not applied."""
    world = _world()
    plan = _plan(world)
    world.faults["reorder"] = [Fault(error_answer(39, CORDONED.format(3)), done=False)]
    result = _apply(world, tmp_path, plan)
    assert (result.ended, result.error) == (ElectionResult.REFUSED, "INVALID_REPLICA_ASSIGNMENT")
    rows = audit.read(tmp_path, cluster_id=CLUSTER_ID)
    found = verify(plan, SimulatedSource(world), None, ground=world.ground, recorded=rows)
    (leader,) = [one for one in found.findings if one.check is Check.LEADER]
    assert "it was refused: Kafka refused the reordering: INVALID_REPLICA_ASSIGNMENT" in leader.text
    assert (
        "includes broker 3, but all its log directories are cordoned; a broker that is down has to start" in leader.text
    )
    assert leader.text.endswith("(--election-type unclean) needs no order: it was not applied yet")


def test_status_tells_which_elections_were_refused_for_a_cordon(tmp_path: Path) -> None:
    world = _world()
    plan = _plan(world)
    world.faults["reorder"] = [Fault(error_answer(39, CORDONED.format(3)), done=False)]
    assert _apply(world, tmp_path, plan).ended is ElectionResult.REFUSED
    (told,) = status(SimulatedSource(world), tmp_path, plan=plan).plan_partitions
    assert told.text == (
        "no leader: Kafka refused the reordering: INVALID_REPLICA_ASSIGNMENT: The manual partition assignment"
        " includes broker 3, but all its log directories are cordoned; a broker that is down has to start"
        " before its cordon can be taken off, and an unclean election (--election-type unclean) needs no order"
    )
    assert _apply(world, tmp_path, plan).ended is ElectionResult.DONE
    (told,) = status(SimulatedSource(world), tmp_path, plan=plan).plan_partitions
    assert told.text == "broker 2 leads"


def test_a_broker_that_dies_uncordoned_is_cordoned_when_it_is_back(tmp_path: Path) -> None:
    """Only the broker itself takes its config: until then the journal is open, and says so."""
    world, plan, result = _died_uncordoned(tmp_path)
    assert (result.ended, result.leader) == (ElectionResult.NOT_RESTORED, 2)
    assert "cordoned.log.dirs of broker 3 could not be read" in result.text
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    left = undo(journal.path, **world.common(tmp_path))
    assert not left.closed
    found = status(SimulatedSource(world), tmp_path, plan=plan)
    assert [(one.name, one.left) for one in found.journals[0].configs] == [("cordoned.log.dirs", True)]
    (told,) = [one for one in standings_of(found) if one.partition is None]
    assert (told.name, told.text) == ("broker 3", "cordoned.log.dirs: not known to be restored, was *")
    assert {row.topic for row in audit.read(tmp_path) if row.what is audit.AuditWhat.CONFIG} == {"broker 3"}
    returns(world, 3)
    assert undo(journal.path, **world.common(tmp_path)).closed
    _is_as_before(world, tmp_path, 3)


def _died_uncordoned(state: Path) -> tuple[World, Plan, Applied]:
    """3 dies right after the election, so that its cordon stays off."""
    world = _world(3)
    plan = _plan(world)
    number = next(at for at, name in enumerate(_course(_world(3), state / "course")) if name == "after elect")
    world.happens[number] = dies(world, 3)
    return world, plan, _apply(world, state, plan)


def _config_rows(state: Path) -> list[tuple[str, str]]:
    rows = audit.read(state, cluster_id=CLUSTER_ID)
    return [(row.result, row.text) for row in rows if row.what is audit.AuditWhat.CONFIG]


def test_a_refused_write_is_not_told_as_emptied_and_restored(tmp_path: Path) -> None:
    """Nothing was changed, neither by kelr nor by somebody else."""
    world = _world(3)
    world.faults["cordon"] = [Fault("POLICY_VIOLATION", done=False)]
    result = _apply(world, tmp_path, _plan(world))
    why = "its order was not asked for: cordoned.log.dirs of broker 3 could not be emptied: POLICY_VIOLATION"
    assert (result.ended, result.text, result.differences) == (ElectionResult.REFUSED, why, ())
    assert _config_rows(tmp_path) == []
    _is_as_before(world, tmp_path, 3)


def test_a_cordon_that_somebody_else_wrote_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """The audit log calls it what it does after undo and resume."""
    world = _world(3)
    plan = _plan(world)
    course = _course(_world(3), tmp_path / "course")
    restored = len(course) - 1 - course[::-1].index("after reorder")
    world.happens[restored] = lambda: world.cordons.update({3: "/data/a"})
    assert _apply(world, tmp_path / "state", plan).ended is ElectionResult.DONE
    told = "somebody else set cordoned.log.dirs of broker 3 to /data/a meanwhile: left alone"
    assert _config_rows(tmp_path / "state") == [("refused", told)]
    assert world.cordons[3] == "/data/a"


@pytest.mark.parametrize("mend", [resume, undo])
def test_a_broker_that_is_unregistered_ends_the_journal(tmp_path: Path, mend: Callable[..., PutRight]) -> None:
    """Nobody takes its config any more: what to write if it comes back is told."""
    world, _plan_of_it, _result = _died_uncordoned(tmp_path)
    world.after(events.BrokerUnregistered(3))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    before_s = world.now_s
    done = mend(journal.path, **world.common(tmp_path))
    assert world.now_s == before_s, "it waited for a broker that there is not"
    (config,) = done.configs
    assert (done.closed, done.good, config.settled, config.restored) == (True, False, True, False)
    assert "broker 3 is not registered any more" in config.text
    assert "--entity-name 3 --add-config 'cordoned.log.dirs=[*]'" in config.text
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_what_a_silent_controller_lists_is_no_unregistered_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers tell what they knew last: it may have registered since."""
    world, _plan_of_it, _result = _died_uncordoned(tmp_path)
    world.after(events.BrokerUnregistered(3))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    told = SimulatedSource.cluster
    monkeypatch.setattr(SimulatedSource, "cluster", lambda self: replace(told(self), controller_silence="no answer"))
    assert not undo(journal.path, **world.common(tmp_path)).closed


def test_a_dead_brokers_cordon_alone_keeps_no_partition_from_its_recovery(tmp_path: Path) -> None:
    """But what else the journal has left does, and so does a plan that takes a cordon of that broker off."""
    world, _plan_of_it, _result = _died_uncordoned(tmp_path)
    with pytest.raises(RefusedError, match="concerns broker 3: journal"):
        refuse_open_journals(tmp_path, CLUSTER_ID, [AT], brokers=(3,))
    refuse_open_journals(tmp_path, CLUSTER_ID, [AT], brokers=(2,))
    dies(world, 2)()
    returns(world, 1)
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 1)})
    assert _apply(world, tmp_path, plan).ended is ElectionResult.DONE


def test_a_cordon_and_an_order_that_are_left_refuse_others(tmp_path: Path) -> None:
    world = _world(3)
    plan = _plan(world)
    world.kill_at = next(at for at, name in enumerate(_course(_world(3), tmp_path / "one")) if name == "after elect")
    with pytest.raises(Killed):
        _apply(world, tmp_path, plan)
    world.revive()
    with pytest.raises(RefusedError, match="concerns orders:0: journal"):
        refuse_open_journals(tmp_path, CLUSTER_ID, [AT])


def _kill_when_emptied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies as soon as a broker has taken a write that empties its cordon."""
    write = SimulatedAdminClient.write_broker_config

    def killing(hand: SimulatedAdminClient, broker: int, name: str, value: str | None) -> str:
        answer = write(hand, broker, name, value)
        if value == "":
            monkeypatch.setattr(SimulatedAdminClient, "write_broker_config", write)
            world.kill_at = len(world.moments)
            world.moment("emptied")
        return answer

    monkeypatch.setattr(SimulatedAdminClient, "write_broker_config", killing)


def test_another_cordon_of_the_operator_comes_back_after_a_second_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is killed uncordoned, resume restores, takes off what the operator has written since, and is killed."""
    world = _world(3)
    plan = _plan(world)
    _kill_when_emptied(world, monkeypatch)
    with pytest.raises(Killed):
        _apply(world, tmp_path, plan)
    world.revive()
    world.cordons[3] = "/data/a"
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    _kill_when_emptied(world, monkeypatch)
    with pytest.raises(Killed):
        resume(journal.path, **world.common(tmp_path))
    assert world.cordons[3] == ""
    world.revive()
    assert resume(journal.path, **world.common(tmp_path)).closed
    assert world.cordons[3] == "/data/a"


def test_a_write_without_an_answer(tmp_path: Path) -> None:
    world = _world(3)
    world.faults["cordon"] = [silence(done=True), silence(done=False), silence(done=True)]
    result = _apply(world, tmp_path, _plan(world))
    assert (result.ended, result.leader) == (ElectionResult.DONE, 2)
    _is_as_before(world, tmp_path, 3)


def _course(world: World, state: Path) -> list[str]:
    _apply(world, state, _plan(world))
    return world.moments


@pytest.mark.parametrize("mend", [resume, undo])
def test_killed_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mend: object) -> None:
    """Order and cordon are as before afterwards, and no journal is open."""
    with monkeypatch.context() as patch:
        world = _world(3)
        watch_files(world, patch)
        moments = _course(world, tmp_path / "whole")
    for kill_at in range(len(moments)):
        state = tmp_path / str(kill_at)
        world = _world(3)
        plan = _plan(world)
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            world.kill_at = kill_at
            with pytest.raises(Killed):
                _apply(world, state, plan)
        world.revive()
        for journal in open_journals(state, CLUSTER_ID):
            assert mend(journal.path, **world.common(state)).closed, moments[kill_at]  # type: ignore[operator]
        _is_as_before(world, state, 3)


def test_the_shell_line_that_takes_a_cordon_off_is_quoted() -> None:
    """zsh takes brackets for a pattern."""
    limits = " ".join(stock_files(_plan(_world(3))).limits)
    assert "--entity-name 3 --add-config 'cordoned.log.dirs=[]'; at the end" in limits


def test_a_plan_takes_no_other_cordon_off(tmp_path: Path) -> None:
    (planned,) = (plan := _plan(_world(3))).elections
    with pytest.raises(BadInputError, match="uncordons: names others"):
        write_plan(replace(plan, elections=(replace(planned, uncordons=(3, 4)),)), tmp_path / "plan.json")


def test_a_plan_file_says_whose_cordon_goes(tmp_path: Path) -> None:
    """It is in the file and its hash; a plan without one is as it was before."""
    with_one, without = _plan(_world(3)), _plan(_world())
    write_plan(with_one, tmp_path / "with.json")
    write_plan(without, tmp_path / "without.json")
    assert read_plan(tmp_path / "with.json").elections[0].uncordons == (3,)
    assert "uncordons" not in json.loads((tmp_path / "without.json").read_text())["elections"][0]
    assert read_plan(tmp_path / "without.json").elections[0].uncordons == ()
