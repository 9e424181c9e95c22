"""What earlier runs left behind is found, with its journal or without; what others changed is left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kelr.controller import events
from kelr.errors import BadInputError, RefusedError
from kelr.model import ElectionRequest, ElectionType, TopicError, TopicPartition
from kelr.model.plan import AcceptedLoss, ElectionResult
from kelr.recovery import audit
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import cluster_lock
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import find_journal, journal_files, open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.places import cluster_directory
from kelr.recovery.resume import resume
from kelr.recovery.status import status
from kelr.recovery.undo import undo, undo_plan
from kelr.sources.base import Page
from kelr.view.recovery_status import Standing
from tests.recovery.simulated import (
    CLUSTER_ID,
    TOPIC,
    Killed,
    SimulatedSource,
    World,
    dies,
    leaderless,
    returns,
    watch_files,
)

pytestmark = pytest.mark.usefixtures("quick")

AT = TopicPartition(TOPIC, 0)
ONE = {AT: ElectionRequest(ElectionType.DESIGNATION, 2)}


def _cut_short(world: World, state: Path, monkeypatch: pytest.MonkeyPatch, *, at: int = 6) -> None:
    """A run that was killed with the partition reordered, before its election."""
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        world.kill_at = at
        with pytest.raises(Killed):
            apply_plan(
                world.plan(ONE), **world.common(state), consented=Confirmation(AcceptedLoss(1000, unbounded=True))
            )
    world.revive()
    assert world.state().replicas == (2, 3, 1)


def test_nothing_is_left(tmp_path: Path) -> None:
    found = status(SimulatedSource(leaderless()), tmp_path)
    assert found.clean
    assert (found.cluster_id, found.at_work, found.journals) == (CLUSTER_ID, False, ())


def test_a_run_that_was_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    found = status(SimulatedSource(world), tmp_path)
    assert not found.clean
    assert found.reordered == (AT,)
    (journal,) = found.journals
    assert journal.text == "cut short: 0 of 1 elections have a result; 1 partition has the order of its election"
    assert journal.next_step == f"recover resume {journal.name}"
    (one,) = journal.partitions
    assert (one.order, one.restores, one.reordered, one.begun, one.ended) == ((2, 3, 1), (3, 1, 2), True, True, None)
    assert one.text == "no leader; it still has the order of its election"


def test_another_kelr_is_at_work(tmp_path: Path) -> None:
    world = leaderless()
    with cluster_lock(tmp_path, CLUSTER_ID):
        assert status(SimulatedSource(world), tmp_path).at_work
    assert not status(SimulatedSource(world), tmp_path).at_work


def test_an_order_that_was_left_behind_is_seen_without_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = leaderless()
    plan = world.plan(ONE)
    _cut_short(world, tmp_path / "lost", monkeypatch)
    found = status(SimulatedSource(world), tmp_path, plan=plan)
    assert found.journals == ()
    assert found.reordered == (AT,)
    assert not found.clean
    done = undo_plan(plan, **world.common(tmp_path))
    assert done.good
    assert [(order.address, order.order) for order in done.orders] == [(AT, (3, 1, 2))]
    assert world.state().replicas == (3, 1, 2)
    assert status(SimulatedSource(world), tmp_path, plan=plan).clean


def test_undo_leaves_alone_what_somebody_else_has_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.Reassigned(AT, (1, 3, 2)))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = undo(journal.path, **world.common(tmp_path))
    assert (done.closed, done.good) == (True, False)
    (order,) = done.orders
    assert (order.restored, order.settled) == (False, True)
    assert order.text == "somebody else gave it the order [1,3,2] meanwhile: left alone"
    assert world.state().replicas == (1, 3, 2)
    (line,) = audit.read(tmp_path)
    assert (line.what, line.result, line.command) == ("restore", "refused", "recover undo")


@pytest.mark.parametrize("error", ["TOPIC_AUTHORIZATION_FAILED", "INCONSISTENT_ISR"])
def test_what_may_not_be_described_is_not_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """The journal was closed, "there is no such partition any more", and the order of the election stayed."""
    world = leaderless()
    plan = world.plan(ONE)
    _cut_short(world, tmp_path, monkeypatch)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    order = world.state().replicas
    world.hidden[TOPIC] = error
    for mend in (undo, resume):
        done = mend(journal.path, **world.common(tmp_path))
        assert (done.closed, done.good) == (False, False)
        if mend is undo:
            (back,) = done.orders
            assert back.text == f"it could not be described ({error}): whether its order was restored is not known"
    assert open_journals(tmp_path, CLUSTER_ID) != ()
    assert not status(SimulatedSource(world), tmp_path).clean
    with pytest.raises(RefusedError, match=rf"order of 1 partition still stands .* could not be described \({error}\)"):
        undo_plan(plan, **world.common(tmp_path / "elsewhere"))
    world.hidden.clear()
    assert undo(journal.path, **world.common(tmp_path)).closed
    assert sorted(world.state().replicas) == sorted(order)
    assert status(SimulatedSource(world), tmp_path).clean


@pytest.mark.parametrize("rebooted", [False, True])
def test_an_order_by_which_another_kelr_may_elect_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebooted: bool
) -> None:
    """It would give the order of this run back; one that stands for longer than that takes is somebody's own."""
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.Reassigned(AT, (1, 2, 3)))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    (told,) = status(SimulatedSource(world), tmp_path).journals[0].partitions
    assert told.text == (
        "no leader; its order is neither the old one nor that of its election: somebody else has changed it, or a"
        " kelr of another machine or user is electing by it"
    )
    done = undo(journal.path, **world.common(tmp_path))
    (order,) = done.orders
    assert (done.closed, order.restored, order.settled) == (False, False, False)
    assert order.text == (
        "its order is [1,2,3]: a kelr of another machine or user may be electing by it, and restore [2,3,1] then;"
        " look again when it has ended, or in 21 min"
    )
    if rebooted:
        world.boot_id = "second"
        assert not undo(journal.path, **world.common(tmp_path)).closed
    world.sleep(1100)
    assert not undo(journal.path, **world.common(tmp_path)).closed
    world.sleep(200)
    done = undo(journal.path, **world.common(tmp_path))
    assert (done.closed, done.good, done.orders[0].text) == (
        True,
        False,
        "somebody else gave it the order [1,2,3] meanwhile: left alone",
    )
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert world.state().replicas == (1, 2, 3)


@pytest.mark.parametrize("mend", [resume, undo])
@pytest.mark.parametrize("back", [True, False], ids=["registered-again", "given-up"])
def test_an_order_that_names_a_broker_that_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mend: Callable[..., PutRight], back: bool
) -> None:
    """Kafka takes none that does: the journal is open until the broker is back, or the partition does without it."""
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.BrokerUnregistered(1))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = mend(journal.path, **world.common(tmp_path))
    assert (done.closed, done.orders[0].text) == (
        False,
        "its order is [2,3,1], and [3,1,2] could not be restored: Kafka answers INVALID_REPLICA_ASSIGNMENT: broker 1 is"
        " not registered. Run this again when that has changed; or, if it stays so, give the partition replicas without"
        " it, such as [3,2], with kafka-reassign-partitions.sh, and run this again then: that ends it",
    )
    if back:
        returns(world, 1)
    else:
        world.after(events.Reassigned(AT, (3, 2)))
    done = mend(journal.path, **world.common(tmp_path))
    assert (done.closed, done.orders[0].restored) == (True, back)
    assert world.state().replicas == ((3, 1, 2) if back else (3, 2, 1))  # 1 goes when the reassignment is complete


def test_an_order_that_could_not_be_restored_is_no_sign_of_the_planned_election(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader from before came back by itself: nothing was lost, and nobody has elected 2."""
    world = leaderless()
    plan = world.plan(ONE)
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.Reassigned(AT, (1, 2, 3)))
    returns(world, 1, clean=True)
    assert world.state().leader == 1
    before = status(SimulatedSource(world), tmp_path, plan=plan).lost
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert [one.ended for one in resume(journal.path, **world.common(tmp_path)).applied] == [
        ElectionResult.NOT_RESTORED
    ]
    after = status(SimulatedSource(world), tmp_path, plan=plan).lost
    assert [(one.leader, one.grade, one.committed, one.total) for one in after] == [
        (one.leader, one.grade, one.committed, one.total) for one in before
    ]


def test_how_long_an_order_has_stood_is_not_told_without_a_clock_of_the_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes would never be over: the way out is named, and is one."""
    world = leaderless()
    world.boot_id = None
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.Reassigned(AT, (1, 2, 3)))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    for _ in range(2):
        done = undo(journal.path, **world.common(tmp_path))
        assert not done.closed
        assert done.orders[0].text.endswith(
            "; look again when it has ended, or when you have given it [3,1,2] by hand: this system does not tell for"
            " how long it has stood"
        )
        world.sleep(1000)
    world.after(events.Reassigned(AT, (3, 1, 2)))
    assert undo(journal.path, **world.common(tmp_path)).good
    assert open_journals(tmp_path, CLUSTER_ID) == ()


def test_resume_names_what_has_changed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    dies(world, 2)()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = resume(journal.path, **world.common(tmp_path))
    assert done.good
    (result,) = done.applied
    assert result.ended is ElectionResult.REFUSED
    assert "live" in {difference.field for difference in result.differences}
    assert (world.state().leader, world.state().replicas) == (None, (3, 1, 2))


def test_resume_elects_nobody_by_a_plan_that_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    world.sleep(3600)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = resume(journal.path, **world.common(tmp_path))
    assert [result.ended for result in done.applied] == [ElectionResult.REFUSED]
    assert done.applied[0].text == "the plan has expired meanwhile: look again and make a new one"
    assert (world.state().leader, world.state().replicas) == (None, (3, 1, 2))
    assert done.closed


def test_a_topic_that_was_deleted_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    world.after(events.TopicDeleted(TOPIC))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = resume(journal.path, **world.common(tmp_path))
    assert done.closed
    assert [order.text for order in done.orders] == ["there is no such partition any more"]


def test_a_journal_of_another_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    journal.path.write_text(journal.path.read_text().replace(CLUSTER_ID, "another"))
    for mend in (resume, undo):
        with pytest.raises(RefusedError, match=f"is for cluster another, and cluster {CLUSTER_ID} answered; nothing"):
            mend(journal.path, **world.common(tmp_path))


def test_journals_are_found_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    with pytest.raises(BadInputError, match="no journal of this cluster is open"):
        find_journal(tmp_path, CLUSTER_ID, None)
    _cut_short(world, tmp_path, monkeypatch)
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    for name in (None, path.name, path.stem, path.stem[:12], str(path)):
        assert find_journal(tmp_path, CLUSTER_ID, name) == path
    with pytest.raises(BadInputError, match="no journal is called nope"):
        find_journal(tmp_path, CLUSTER_ID, "nope")
    path.with_name(f"{path.stem[:12]}-9.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(BadInputError, match="2 journals begin with"):
        find_journal(tmp_path, CLUSTER_ID, path.stem[:12])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "garbled journal"),
        ('{"line":"what","at_ms":1}', "line 2: garbled journal"),
        ('{"line":"intent","at_ms":1,"step":"reorder","changes":[{"topic":"t"}]}', "lacks 'partition'"),
        ('{"at_ms":1}', "lacks 'line'"),
        ("[]", "not an object"),
    ],
)
def test_a_garbled_journal_is_named_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    world = leaderless()
    apply_plan(world.plan(ONE), **world.common(tmp_path), consented=Confirmation(AcceptedLoss(1000, unbounded=True)))
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    path.write_text(path.read_text().splitlines()[0] + "\n" + line + "\n")
    with pytest.raises(BadInputError, match=words) as caught:
        read_journal(path)
    assert f"{path}, line 2" in caught.value.message
    found = status(SimulatedSource(world), tmp_path)
    assert not found.clean
    assert len(found.garbled) == 1


def test_a_journal_of_a_newer_kelr(tmp_path: Path) -> None:
    world = leaderless()
    apply_plan(world.plan(ONE), **world.common(tmp_path), consented=Confirmation(AcceptedLoss(1000, unbounded=True)))
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    path.write_text(path.read_text().replace('"version":1,', '"version":2,', 1))
    with pytest.raises(BadInputError, match="version 2 is of a newer kelr"):
        read_journal(path)


def test_a_journal_without_a_whole_line_has_asked_nothing(tmp_path: Path) -> None:
    directory = cluster_directory(tmp_path, CLUSTER_ID) / "journals"
    directory.mkdir(parents=True)
    (directory / "abc-1.jsonl").write_text('{"line":"begi')
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert status(SimulatedSource(leaderless()), tmp_path).clean


def test_what_may_not_be_described_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's answer to who may not DESCRIBE a topic says nothing of the topic."""
    world = leaderless()
    _cut_short(world, tmp_path, monkeypatch)
    source = SimulatedSource(world)
    hidden = Page((), topic_errors=(TopicError(TOPIC, "TOPIC_AUTHORIZATION_FAILED"),))
    monkeypatch.setattr(source, "pages", lambda _selection: iter([hidden]))
    (journal,) = status(source, tmp_path).journals
    (one,) = journal.partitions
    assert one.unread == "TOPIC_AUTHORIZATION_FAILED"
    assert one.text == (
        "where it stands is not known: it could not be described"
        " (TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE on the topic)"
    )
    assert Standing(None, TOPIC, 0, one.text, one.reordered, 2, described=False).state == "not known"
    found = status(source, tmp_path / "elsewhere", plan=world.plan(ONE))
    assert not found.clean, "an order that was left behind cannot be seen"
    gone = Page((), topic_errors=(TopicError(TOPIC, "UNKNOWN_TOPIC_OR_PARTITION"),))
    monkeypatch.setattr(source, "pages", lambda _selection: iter([gone]))
    assert status(source, tmp_path).journals[0].partitions[0].text == "there is no such partition any more"
    assert status(source, tmp_path / "elsewhere", plan=world.plan(ONE)).clean
