"""kelr killed at every moment of a plan's execution: resume, or undo, puts everything right.

A moment is right before and right after each request takes effect and each line is on the disk (`simulated.py`). All of
them are walked, and all pairs of them where resume or undo is killed, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import Election
from kelr.controller.events import BrokerFenced, BrokerUnfenced, Event, LeadersElected, Reassigned
from kelr.durable import AppendOnlyFile
from kelr.errors import UsageError
from kelr.model import ElectionRequest, ElectionType, PartitionState, Plan, TopicPartition
from kelr.model.audit import AuditWhat
from kelr.model.plan import AcceptedLoss, ElectionResult
from kelr.recovery import audit
from kelr.recovery.admin_client import NO_ANSWER
from kelr.recovery.apply import apply_plan
from kelr.recovery.audited import recorded_elections
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from kelr.sources.ground import MACHINE, Moment
from tests.recovery.simulated import (
    CLUSTER_ID,
    LAYOUTS,
    STEADY,
    TOPIC,
    Fault,
    Killed,
    Lagging,
    SimulatedGround,
    World,
    dies,
    leaderless,
    watch_files,
)

pytestmark = pytest.mark.usefixtures("quick")

CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))


AT = TopicPartition(TOPIC, 0)
FEW = ((3, 1, 2), (2, 3, 1))
"""One partition that is reordered and one that is not."""


def _apply(world: World, plan: Plan, state: Path, *, batch: int = 3, keep_order: bool = False) -> None:
    apply_plan(plan, **world.common(state), consented=CONSENT, batch=batch, keep_order=keep_order)


def _resume(world: World, state: Path) -> PutRight | None:
    return _mend(world, state, resume)


def _undo(world: World, state: Path) -> PutRight | None:
    return _mend(world, state, undo)


def _mend(world: World, state: Path, mend: Callable[..., PutRight]) -> PutRight | None:
    """What `kelr recover resume` or `undo` does: the open journal, if there is one."""
    found = open_journals(state, CLUSTER_ID)
    return mend(found[-1].path, **world.common(state)) if found else None


def _moments(monkeypatch: pytest.MonkeyPatch, state: Path, world: World) -> int:
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        _apply(world, world.plan(), state)
    return len(world.moments)


def _killed(world: World, at: int, work: Callable[[], object]) -> bool:
    """Whether the work got so far that it was killed."""
    world.kill_at = at
    try:
        work()
    except Killed:
        world.revive()
        return True
    world.kill_at = None
    world.moments.clear()
    return False


def _assert_in_order(world: World) -> None:
    orders = {at.partition: state.replicas for at, state in _orders(world).items()}
    assert orders == dict(enumerate(FEW if len(orders) == len(FEW) else LAYOUTS)), "a partition stays reordered"
    assert world.state(0, STEADY.topic).replicas == (3, 2)


def _orders(world: World) -> dict[TopicPartition, PartitionState]:
    return {at: state for at, state in world.cluster.controller.partitions.items() if at.topic == TOPIC}


def _leaders(world: World) -> list[int | None]:
    return [state.leader for _, state in sorted(_orders(world).items())]


def _assert_finished(world: World, state: Path) -> None:
    _assert_in_order(world)
    assert set(_leaders(world)) == {2}
    assert world.state(0, STEADY.topic).leader == 3
    assert open_journals(state, CLUSTER_ID) == ()
    told = {(line.topic, line.partition) for line in audit.read(state) if line.result in {"done", "not-needed"}}
    assert told >= {(at.topic, at.partition) for at in _orders(world)}, "an election is missing in the audit log"


def _assert_undone(world: World, state: Path) -> None:
    _assert_in_order(world)
    assert set(_leaders(world)) <= {None, 2}, "somebody was elected whom nobody planned"
    assert open_journals(state, CLUSTER_ID) == ()


def test_there_are_as_many_moments_as_thought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two batches; each with checks, a reordering, an election of each type, a restoring; each a line and an answer."""
    world = leaderless()
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        _apply(world, world.plan(), tmp_path)
    before = [name.removeprefix("before ") for name in world.moments if name.startswith("before")]
    first = ["line intent", "reorder", "line answer", "line intent", "elect", "line answer"]
    back = ["line intent", "reorder", "line answer", "line restored", "audit", "line applied"]
    second = [*first[:3], *first[3:], *first[3:]]
    assert before == ["line begin", *first, *back, *second, *back, "line end"]
    assert len(world.moments) == 2 * len(before)


@pytest.mark.parametrize(("mend", "check"), [(_resume, _assert_finished), (_undo, _assert_undone)])
def test_killed_at_any_moment(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mend: Callable[[World, Path], PutRight | None],
    check: Callable[[World, Path], None],
) -> None:
    count = _moments(monkeypatch, tmp_path / "count", leaderless())
    for moment in range(count):
        world, state = leaderless(), tmp_path / str(moment)
        untouched = world.cluster
        plan = world.plan()
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            assert _killed(world, moment, lambda: _apply(world, plan, state)), moment  # noqa: B023
        begun = bool(open_journals(state, CLUSTER_ID))
        done = mend(world, state)
        if begun:
            assert done is not None
            assert done.good, (moment, done)
            check(world, state)
        elif moment < count - 1:
            assert world.cluster == untouched, "something was changed without a journal"
        else:
            _assert_finished(world, state)


@pytest.mark.parametrize("mend", [_resume, _undo])
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.longer)])
def test_killed_again_while_it_is_put_right(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mend: Callable[[World, Path], PutRight | None], every: int
) -> None:
    """Pairs: killed at a moment of the plan, and at each one of the mending; the third run comes to the end."""
    count = _moments(monkeypatch, tmp_path / "count", leaderless(FEW))
    pairs = 0
    for moment in range(1, count, every) if every > 1 else range(count):
        for second in range(10_000):
            world, state = leaderless(FEW), tmp_path / f"{moment}-{second}"
            plan = world.plan()
            with monkeypatch.context() as patch:
                watch_files(world, patch)
                _killed(world, moment, lambda: _apply(world, plan, state))  # noqa: B023
                struck = _killed(world, second, lambda: mend(world, state))  # noqa: B023
            if not struck:
                break
            pairs += 1
            mend(world, state)
            if journal_files(state, CLUSTER_ID) and mend is _resume and moment > 1:
                _assert_finished(world, state)
            else:
                _assert_undone(world, state)
    assert pairs > count // every


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.longer)])
def test_resume_of_one_and_undo_of_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, every: int) -> None:
    """Resume is killed, and somebody decides to undo instead; and the other way round."""
    count = _moments(monkeypatch, tmp_path / "count", leaderless(FEW))
    for moment in range(2, count, every):
        for first, then in ((_resume, _undo), (_undo, _resume)):
            for second in range(1, 10_000, every):
                world, state = leaderless(FEW), tmp_path / f"{moment}-{second}-{first.__name__}"
                plan = world.plan()
                with monkeypatch.context() as patch:
                    watch_files(world, patch)
                    _killed(world, moment, lambda: _apply(world, plan, state))  # noqa: B023
                    struck = _killed(world, second, lambda: first(world, state))  # noqa: B023
                if not struck:
                    break
                then(world, state)
                _assert_undone(world, state)


@pytest.mark.parametrize("mend", [_resume, _undo])
@pytest.mark.parametrize(
    ("moment", "event"), [(0, Reassigned(AT, (2, 3, 1))), (2, LeadersElected(Election.UNCLEAN, (AT,)))]
)
def test_what_the_killed_process_sent_comes_late(
    tmp_path: Path, mend: Callable[[World, Path], PutRight | None], moment: int, event: Event
) -> None:
    """A broker passes its last request on 20 s later: no order is left behind by it, and nobody else is elected."""
    world = leaderless(FEW)
    world.scheduled.append((20.0, lambda: world.after(event)))
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, moment, lambda: _apply(world, plan, tmp_path))
    assert mend(world, tmp_path) is not None
    world.sleep(100)
    assert world.scheduled == []
    assert world.state().replicas == FEW[0]
    late_election = moment == 2
    assert world.state().leader == (2 if late_election or mend is _resume else None)


@pytest.mark.parametrize("mend", [_resume, _undo])
@pytest.mark.parametrize("set_by_s", [90, 3600, -90])
def test_the_clock_is_set_before_what_a_killed_process_sent_comes(
    tmp_path: Path, mend: Callable[[World, Path], PutRight | None], set_by_s: float
) -> None:
    """What was sent 5 s ago may come for 70 s yet, whatever the wall clock says."""
    world = leaderless(FEW)
    world.scheduled.append((60.0, lambda: world.after(Reassigned(AT, (2, 3, 1)))))
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, 0, lambda: _apply(world, plan, tmp_path))
    world.sleep(5)
    world.clock_set_by_s = set_by_s
    done = mend(world, tmp_path)
    assert done is not None
    assert (done.good, world.now_s < 90) == (True, True)
    world.sleep(100)
    assert world.scheduled == []
    assert world.state().replicas == FEW[0]


@pytest.mark.parametrize("mend", [_resume, _undo])
@pytest.mark.parametrize("how", ["rebooted", "an old journal", "no such clock"])
def test_how_old_a_journal_is_is_not_known(
    tmp_path: Path, mend: Callable[[World, Path], PutRight | None], how: str
) -> None:
    """Then all the time is waited that a request may take."""
    world = leaderless(FEW)
    world.boot_id = None if how == "no such clock" else "first"
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, 0, lambda: _apply(world, plan, tmp_path))
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    if how == "an old journal":
        path.write_text(re.sub(r'"boot_id":"first","boot_ms":\d+,', "", path.read_text()))
    elif how == "rebooted":
        world.boot_id = "second"
    world.sleep(50)
    world.scheduled.append((100.0, lambda: world.after(Reassigned(AT, (2, 3, 1)))))
    done = mend(world, tmp_path)
    assert done is not None
    assert done.good
    world.sleep(100)
    assert world.scheduled == []
    assert world.state().replicas == FEW[0]


def test_the_clock_of_journals_is_that_of_the_boot() -> None:
    """It goes on in another process, and does not step."""
    first, then = MACHINE.moment(), MACHINE.moment()
    assert first.boot_id is not None
    assert 0 <= first.age_s(then) < 60
    assert first.age_s(Moment("another", then.ms + 90_000)) == 0
    assert then.age_s(replace(then, ms=then.ms - 1000)) == 0


@pytest.mark.parametrize("mend", [_resume, _undo])
@pytest.mark.parametrize("wanted", [2, 3], ids=["reordered", "in-its-order"])
def test_an_election_is_audited_whenever_its_run_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mend: Callable[[World, Path], PutRight | None], wanted: int
) -> None:
    """With the consent that was given for it, and once, from the moment on at which it was done."""
    for moment in range(2, 100):
        world, state = leaderless(FEW), tmp_path / str(moment)
        plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, wanted)})
        given = replace(CONSENT, force_reason="we know")
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            if not _killed(world, moment, lambda: apply_plan(plan, **world.common(state), consented=given)):  # noqa: B023
                break
        led = world.state().leader is not None
        asked = world.before_revival.count("after line intent") >= (2 if wanted == 2 else 1)
        audited = "after audit" in world.before_revival
        mend(world, state)
        told = [line for line in audit.read(state) if line.what is AuditWhat.ELECTION]
        result = "done" if led or mend is _resume else "unknown"
        assert [line.result for line in told][:1] == ([result] if asked or mend is _resume else []), moment
        # Killed between the audit line and the journal's, there are two.
        assert len(told) == bool(told) + (audited and "after line applied" not in world.before_revival)
        for line in told:
            assert (line.after["leader"], line.force_reason) == (wanted if result == "done" else None, "we know")
            given_by = {"user": "ada", "host": "laptop", "principal": "User:ada"}
            assert line.consent == {"needed": "loss", "yes": False, "accept_loss": "1000+", **given_by}
        assert open_journals(state, CLUSTER_ID) == ()
    assert moment > 12


def test_an_election_of_which_nobody_is_left_is_audited_by_undo(tmp_path: Path) -> None:
    """Whom it had elected has died since: what was consented to is told all the same."""
    world = leaderless(FEW)
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, 3, lambda: _apply(world, plan, tmp_path))
    assert world.state().leader == 2
    dies(world, 2)()
    done = _undo(world, tmp_path)
    assert done is not None
    assert ([one.ended for one in done.applied], done.closed) == ([ElectionResult.NO_LEADER], True)
    (line,) = (line for line in audit.read(tmp_path) if line.what is AuditWhat.ELECTION)
    assert (line.result, line.command, line.text) == (
        "no-leader",
        "recover apply",
        "an election was asked for, and whom it elected leads no more (epoch 4)",
    )


def test_an_election_counts_when_undo_has_closed_the_journal_and_whom_it_elected_has_died(tmp_path: Path) -> None:
    """The disks that nobody had read hold what it gave up, whoever is down now."""
    world = leaderless(FEW)
    dies(world, 2)()
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 3)})
    assert _killed(world, 1, lambda: _apply(world, plan, tmp_path))
    assert world.state().leader == 3
    before = recorded_elections(audit.read(tmp_path), open_journals(tmp_path, CLUSTER_ID))
    assert before[AT].unread == (1, 2, 3)  # who was elected, nobody has read
    dies(world, 3)()
    _undo(world, tmp_path)
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    after = recorded_elections(audit.read(tmp_path))[AT]
    assert replace(after, at_ms=before[AT].at_ms) == before[AT]


def test_that_nobody_leads_is_no_sign_that_an_election_came_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was not sent yet; that the leader from before died is all that happened."""
    world = leaderless(FEW)
    plan = world.plan({STEADY: ElectionRequest(ElectionType.PREFERRED)})
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        assert _killed(world, 3, lambda: _apply(world, plan, tmp_path))
    assert world.before_revival[-1] == "after line intent"
    dies(world, 3)()
    dies(world, 2)()
    _undo(world, tmp_path)
    (line,) = (line for line in audit.read(tmp_path) if line.what is AuditWhat.ELECTION)
    assert (line.result, line.text) == (
        "no-leader",
        "an election was asked for, or about to be, and there is no leader (epoch 1)",
    )
    assert recorded_elections(audit.read(tmp_path)) == {}


def test_an_election_that_a_lagging_broker_does_not_show_is_audited_by_undo(tmp_path: Path) -> None:
    world = leaderless(FEW)
    before, plan = world.cluster, world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, 3, lambda: _apply(world, plan, tmp_path))
    world.sleep(100)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    source = Lagging(world, before, world.now_s + 1000)
    (shown,) = undo(journal.path, **{**world.common(tmp_path), "source": source}).applied
    assert shown.ended is ElectionResult.UNKNOWN
    (line,) = (line for line in audit.read(tmp_path) if line.what is AuditWhat.ELECTION)
    assert (line.result, line.consent["accept_loss"]) == ("unknown", "1000+")
    assert line.text == "an election was asked for, or about to be, and none is seen (epoch 2)"


@pytest.mark.parametrize("where", ["audit log", "journal"])
def test_undo_that_cannot_write_an_election_down_leaves_the_journal_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    world = leaderless(FEW)
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 3)})
    assert _killed(world, 1, lambda: _apply(world, plan, tmp_path))
    append = AppendOnlyFile.append

    def full(file: AppendOnlyFile, *records: Mapping[str, object]) -> None:
        about = [record for record in records if record.get("what") == "election" or record.get("line") == "applied"]
        if about and (file.path.name == "audit.jsonl") is (where == "audit log"):
            raise UsageError("no space left")
        append(file, *records)

    with monkeypatch.context() as patch:
        patch.setattr(AppendOnlyFile, "append", full)
        done = _undo(world, tmp_path)
    assert done is not None
    assert (done.closed, done.unrecorded) == (False, "no space left")
    assert _undo(world, tmp_path) is not None
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert [line.result for line in audit.read(tmp_path)] == ["done"] * (1 if where == "audit log" else 2)


@pytest.mark.parametrize("mend", [resume, undo])
@pytest.mark.parametrize(
    ("layout", "answered", "seen_from"),
    [((3, 1, 2), False, 5), ((3, 2, 1), True, 5), ((3, 2, 1), False, 11)],
    ids=["another-order", "the-old-order", "the-old-order-unanswered"],
)
def test_another_host_has_planned_by_the_order_of_a_killed_run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mend: Callable[..., PutRight],
    layout: tuple[int, ...],
    *,
    answered: bool,
    seen_from: int,
) -> None:
    """It restores that order in the end. Whenever the killed run is mended, its journal is open until that is undone.

    But for the milliseconds between the rival's last look and its reordering (2 to 4): nothing that kelr can ask of
    Kafka is bound to the order that was there before. Where the wanted replica was the second, as with two replicas,
    the rival elects by the old order; without an answer to the killed run's reordering only its election shows that.
    """
    still_open = 0
    for moment in (0, 1, *range(seen_from, 100)):
        world, here, there = leaderless((layout,)), tmp_path / f"{moment}-here", tmp_path / f"{moment}-there"
        path = _cut_short_reordered(world, here, monkeypatch, answered=answered)
        rival = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 3)})
        assert [(one.restores, one.order[0]) for one in rival.elections] == [(world.state().replicas, 3)]
        world.happens[moment] = lambda: mend(path, **world.common(here))  # noqa: B023
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            _apply(world, rival, there)
        assert open_journals(there, CLUSTER_ID) == ()
        if world.happens:
            break
        left = open_journals(here, CLUSTER_ID)
        still_open += bool(left)
        for journal in left:
            assert mend(journal.path, **world.common(here)).good
        assert open_journals(here, CLUSTER_ID) == ()
        assert world.state().replicas == layout, moment
    assert (moment > 20, still_open > 5) == (True, True)


@pytest.mark.parametrize("mend", [resume, undo])
def test_the_old_order_that_kelr_has_not_given_is_held_for_a_rivals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mend: Callable[..., PutRight]
) -> None:
    """Until it has stood for longer than a rival's would; then it is the partition's own."""
    world = leaderless(((3, 2, 1),))
    path = _cut_short_reordered(world, tmp_path, monkeypatch, answered=True)
    world.after(Reassigned(AT, (3, 2, 1)))
    for _ in range(2):
        (order,) = mend(path, **world.common(tmp_path)).orders
        assert (order.settled, order.text.split(";")[0]) == (
            False,
            "its order is [3,2,1]: a kelr of another machine or user may be electing by it, and restore [2,3,1] then",
        )
        world.sleep(600)
    world.sleep(100)
    assert mend(path, **world.common(tmp_path)).good


def test_the_first_of_the_old_order_that_led_before_that_was_restored_is_no_rivals(tmp_path: Path) -> None:
    """It was elected while the temporary order stood: not by a kelr that gives another one before it elects."""
    world = leaderless(((3, 2, 1),))
    path = _cut_short_reordered(world, tmp_path)
    for event in (BrokerFenced(2), LeadersElected(Election.UNCLEAN, (AT,)), BrokerUnfenced(2)):
        world.after(event)
    assert (world.state().leader, world.state().replicas) == (3, (2, 3, 1))
    assert resume(path, **world.common(tmp_path)).good


def test_an_order_stands_for_less_than_a_rivals_is_looked_out_for(tmp_path: Path) -> None:
    """No request is answered, and somebody presses Ctrl-C in the last wait."""
    world = leaderless(FEW)
    world.faults["reorder"] = [Fault(NO_ANSWER, done=True), *[Fault(NO_ANSWER, done=False)] * 1000]
    world.faults["elect"] = [Fault(NO_ANSWER, done=False)] * 1000
    interrupts = [250.0]

    class Interrupting(SimulatedGround):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if interrupts and world.now_s > interrupts[0]:
                interrupts.clear()
                raise KeyboardInterrupt

    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    apply_plan(plan, **{**world.common(tmp_path), "ground": Interrupting(world)}, consented=CONSENT)
    assert interrupts == []
    assert 400 < world.now_s < world.patience().rival_s


def _cut_short_reordered(
    world: World, state: Path, monkeypatch: pytest.MonkeyPatch | None = None, *, answered: bool = False
) -> Path:
    """Killed right after the reordering, or after the line of its answer; nothing can come late any more."""
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    if answered and monkeypatch is not None:
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            assert _killed(world, 7, lambda: _apply(world, plan, state))
        assert world.before_revival[-1] == "after line answer"
    else:
        assert _killed(world, 1, lambda: _apply(world, plan, state))
    assert world.state().replicas == plan.elections[0].order
    world.sleep(100)
    (journal,) = open_journals(state, CLUSTER_ID)
    return journal.path


@pytest.mark.parametrize("mend", [resume, undo])
@pytest.mark.parametrize("answer", ["NONE", "NOT_CONTROLLER", "NOT_SENT", NO_ANSWER])
@pytest.mark.parametrize("lag_s", [1, 12, 1000])
def test_what_a_lagging_broker_shows_was_not_restored_by_that(
    tmp_path: Path, mend: Callable[..., PutRight], answer: str, lag_s: float
) -> None:
    """It shows the old order, and the restoring was not done: it is sent until Kafka says that it was."""
    world = leaderless(FEW)
    before = world.cluster
    path = _cut_short_reordered(world, tmp_path)
    world.faults["reorder"] = [] if answer == "NONE" else [Fault(answer, done=False)]
    source = Lagging(world, before, world.now_s + lag_s)
    done = mend(path, **{**world.common(tmp_path), "source": source})
    assert world.state().replicas == FEW[0]
    assert [one.restored for one in done.orders] == [True]


@pytest.mark.parametrize("mend", [resume, undo])
def test_a_restoring_that_fails_is_told_of_although_a_lagging_broker_shows_the_old_order(
    tmp_path: Path, mend: Callable[..., PutRight]
) -> None:
    world = leaderless(FEW)
    before = world.cluster
    path = _cut_short_reordered(world, tmp_path)
    world.faults["reorder"] = [Fault("NOT_CONTROLLER", done=False)] * 100
    done = mend(path, **{**world.common(tmp_path), "source": Lagging(world, before, world.now_s + 1000)})
    (order,) = done.orders
    assert (done.closed, order.restored, order.settled) == (False, False, False)
    assert order.text == (
        "its order is told to be [3,1,2], and it is not sure that it was restored: Kafka answers NOT_CONTROLLER"
    )
    world.faults.clear()
    assert mend(path, **world.common(tmp_path)).good
    assert world.state().replicas == FEW[0]


@pytest.mark.parametrize("mend", [resume, undo])
def test_a_reordering_that_comes_late_unseen(tmp_path: Path, mend: Callable[..., PutRight]) -> None:
    """It comes after the old order was written, and the broker that is asked does not show it."""
    world = leaderless(FEW)
    before = world.cluster
    world.scheduled.append((60.0, lambda: world.after(Reassigned(AT, (2, 3, 1)))))
    plan = world.plan({AT: ElectionRequest(ElectionType.DESIGNATION, 2)})
    assert _killed(world, 0, lambda: _apply(world, plan, tmp_path))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = mend(journal.path, **{**world.common(tmp_path), "source": Lagging(world, before, 1000)})
    assert world.scheduled == []
    assert world.state().replicas == FEW[0]
    assert [one.restored for one in done.orders] == [True]


def test_a_closed_journal_is_left_alone(tmp_path: Path) -> None:
    world = leaderless()
    _apply(world, world.plan(), tmp_path)
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    before, lines = world.cluster, path.read_bytes()
    for mend in (resume, undo):
        done = mend(path, **world.common(tmp_path))
        assert done.closed
        assert done.orders == ()
    assert world.cluster == before
    assert path.read_bytes() == lines


def test_orders_that_were_kept_are_undone_when_asked_for(tmp_path: Path) -> None:
    world = leaderless()
    _apply(world, world.plan(), tmp_path, keep_order=True)
    assert [world.state(number).replicas[0] for number in range(4)] == [2, 2, 2, 2]
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    assert read_journal(path).ending is not None
    done = undo(path, **world.common(tmp_path))
    assert done.good
    assert [order.restored for order in done.orders] == [True, True, True]
    assert all("cannot be undone" in one.text for one in done.applied)
    _assert_in_order(world)
    assert _leaders(world) == [2, 2, 2, 2], "restoring an order moves no leader"


def test_undo_of_kept_orders_is_killed_at_any_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The journal was closed; from the first line of the undo on it is open again."""
    for moment in range(100):
        world, state = leaderless(FEW), tmp_path / str(moment)
        _apply(world, world.plan(), state, keep_order=True)
        assert open_journals(state, CLUSTER_ID) == ()
        (path,) = journal_files(state, CLUSTER_ID)
        world.moments.clear()
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            struck = _killed(world, moment, lambda: undo(path, **world.common(state)))  # noqa: B023
        if not struck:
            break
        ended = world.before_revival[-1] == "after line end"
        assert bool(open_journals(state, CLUSTER_ID)) is (moment > 0 and not ended)
        assert undo(path, **world.common(state)).good
        _assert_in_order(world)
        assert open_journals(state, CLUSTER_ID) == ()
    assert moment > 8


def test_a_kill_with_orders_that_are_to_be_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was elected keeps its order, and resume elects the rest."""
    for moment in range(2, 1000):
        world, state = leaderless(), tmp_path / str(moment)
        plan = world.plan()
        with monkeypatch.context() as patch:
            watch_files(world, patch)
            if not _killed(world, moment, lambda: _apply(world, plan, state, keep_order=True)):  # noqa: B023
                break
        _resume(world, state)
        assert _leaders(world) == [2, 2, 2, 2], moment
        assert [world.state(number).replicas[0] for number in range(4)] == [2, 2, 2, 2], moment
        assert open_journals(state, CLUSTER_ID) == ()
    assert moment > 20
