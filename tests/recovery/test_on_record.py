"""An election of kelr that may have given something up counts from the audit log on, whatever came of it; one that came
about without kelr does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import Election, events
from kelr.engine.planning.lost import Elected, accepted_in_words, elected_by
from kelr.model import (
    Check,
    ElectionRequest,
    ElectionType,
    LossCertainty,
    Method,
    Passed,
    RecordedElection,
    TopicPartition,
)
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import NO_ANSWER
from kelr.recovery.apply import apply_plan
from kelr.recovery.audited import recorded_elections
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import Journal
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.mending import requests_of
from kelr.recovery.resume import resume
from kelr.recovery.status import status
from kelr.recovery.undo import undo
from kelr.recovery.verify import verify
from tests.recovery.simulated import (
    BEGIN_MS,
    CLUSTER_ID,
    TOPIC,
    WHO,
    Fault,
    Killed,
    Lagging,
    SimulatedSource,
    World,
    dies,
    leaderless,
    returns,
)

pytestmark = pytest.mark.usefixtures("quick")

AT = TopicPartition(TOPIC, 0)
WISH = {AT: ElectionRequest(ElectionType.DESIGNATION, 2)}
CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))
BEFORE_ELECT, AFTER_ELECT = 2, 3


def _apply(world: World, state: Path) -> Applied:
    (result,) = apply_plan(world.plan(WISH), **world.common(state), consented=CONSENT)
    return result


def _line(state: Path) -> AuditRecord:
    return [line for line in audit.read(state) if line.what is AuditWhat.ELECTION][-1]


def _recorded(state: Path) -> RecordedElection | None:
    return recorded_elections(audit.read(state)).get(AT)


def test_an_unclean_election_that_took_another_one_counts(tmp_path: Path) -> None:
    """2 dies after the last look: its disk has the best log, and nothing but kelr's record tells of that."""
    world = leaderless()
    plan = world.plan(WISH)
    world.happens[BEFORE_ELECT] = dies(world, 2)
    result = _apply(world, tmp_path)
    assert (result.ended, result.leader, result.asked, _line(tmp_path).asked) == (
        ElectionResult.OTHER_LEADER,
        3,
        True,
        True,
    )
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.leader_epoch, found.clean, found.unread) == (3, result.leader_epoch, False, (1, 2))
    # Somebody has 2 elected in its turn: who led in between is on record.
    returns(world, 2)
    dies(world, 3)()
    world.after(events.LeadersElected(Election.UNCLEAN, (AT,)))
    assert world.state().leader == 2
    (lost,) = status(SimulatedSource(world), tmp_path, plan=plan).lost
    assert (lost.grade, lost.committed, lost.basis) == (
        LossCertainty.UNKNOWN,
        None,
        "2 leads, and another one may have been elected before it; whether it held as much is not known",
    )


@pytest.mark.parametrize("answer", ["ELECTION_NOT_NEEDED", "PREFERRED_LEADER_NOT_AVAILABLE"])
def test_that_somebody_leads_already_may_be_by_this_very_election(tmp_path: Path, answer: str) -> None:
    """The controller goes before it answers; the broker that passed the election on sends it to the next one."""
    world = leaderless()
    plan = world.plan(WISH)
    world.faults["elect"] = [Fault(answer, done=True)]
    world.happens[BEFORE_ELECT] = dies(world, 2)
    (result,) = apply_plan(plan, **world.common(tmp_path), consented=CONSENT)
    assert (result.ended, result.leader, result.asked) == (ElectionResult.OTHER_LEADER, 3, True)
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.unread) == (3, (1, 2))


def test_that_nobody_can_lead_may_be_since_whom_this_very_election_elected_has_died(tmp_path: Path) -> None:
    """As above, and there is no replica left when the next controller is asked."""
    world = leaderless()
    plan = world.plan(WISH)
    world.faults["elect"] = [Fault("ELIGIBLE_LEADERS_NOT_AVAILABLE", done=True)]
    world.happens[BEFORE_ELECT] = dies(world, 3)
    world.happens[AFTER_ELECT] = dies(world, 2)
    (result,) = apply_plan(plan, **world.common(tmp_path), consented=CONSENT)
    assert (result.ended, result.leader, result.asked) == (ElectionResult.NO_LEADER, None, True)
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.unread) == (None, (1, 2, 3))


def test_an_election_counts_when_resume_refuses_it_since_whom_it_elected_has_died(tmp_path: Path) -> None:
    world = leaderless()
    path = _killed_in_its_election(world, tmp_path)
    assert world.state().leader == 2
    dies(world, 2)()
    (result,) = resume(path, **world.common(tmp_path)).applied
    assert (result.ended, result.leader, result.asked) == (ElectionResult.REFUSED, None, True)
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.leader_epoch, found.unread) == (None, 3, (1, 2, 3))


def test_an_election_counts_when_resume_is_interrupted_before_it_is_tried_again(tmp_path: Path) -> None:
    world = leaderless()
    path = _killed_in_its_election(world, tmp_path)
    dies(world, 2)()
    source = SimulatedSource(world)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    source.replica_logs = interrupted  # type: ignore[method-assign,assignment]
    (result,) = resume(path, **{**world.common(tmp_path), "source": source}).applied
    assert (result.ended, result.asked) == (ElectionResult.NOT_TRIED, True)
    assert _recorded(tmp_path) is not None


def test_a_preferred_election_of_the_last_known_leader_may_have_given_something_up() -> None:
    """Rule 10 of the election rules: with ISR and ELR empty every type of election takes it, and asks for no log."""
    line = AuditRecord(
        1, AuditWhat.ELECTION, "recover apply", TOPIC, 0, CLUSTER_ID, "ada", "laptop", None, "unknown",
        wanted=3, method="preferred", before={"leader": None, "leader_epoch": 4, "replicas": [1, 2, 3]}, asked=True,
        loss={"grade": "unknown"},
    )  # fmt: skip
    assert recorded_elections([line])[AT] == RecordedElection(None, 5, 1, clean=False, unread=(1, 2, 3))
    clean = replace(line, loss={"grade": "proven-none"})
    assert recorded_elections([clean])[AT] == RecordedElection(None, 5, 1, clean=True)


@pytest.mark.parametrize(
    ("method", "until_ms"),
    [(Method.REORDER, BEGIN_MS + 75_000), (Method.LONGEST_LOG, BEGIN_MS + 75_000), (Method.NATIVE, None)],
)
def test_of_which_elections_another_replica_may_come_late(tmp_path: Path, method: Method, until_ms: int | None) -> None:
    """An election that names its leader elects nobody else, however late it comes."""
    world = leaderless()
    planned = replace(world.plan(WISH).elections[0], method=method)
    path = _killed_in_its_election(world, tmp_path)
    world.now_s = 0
    with Journal.reopen(path, world.ground, WHO, "recover resume") as journal:
        requests = requests_of(world.site(tmp_path), journal, read_journal(path))
        told = requests.told(planned, Applied(TOPIC, 0, 2, ElectionResult.DONE, leader=2))
    assert told.late_until_ms == until_ms


@pytest.mark.parametrize(
    ("faults", "asked"),
    [
        ([Fault("CLUSTER_AUTHORIZATION_FAILED", done=False)], False),
        ([Fault("ELIGIBLE_LEADERS_NOT_AVAILABLE", done=False)], True),
        ([Fault("PREFERRED_LEADER_NOT_AVAILABLE", done=False)], True),
        ([Fault(NO_ANSWER, done=False), Fault("CLUSTER_AUTHORIZATION_FAILED", done=False)], True),
        ([Fault("UNKNOWN_SERVER_ERROR", done=False)], True),
        ([Fault("ELECTION_NOT_NEEDED", done=False)], True),
    ],
)
def test_an_election_that_was_surely_refused_elected_nobody(tmp_path: Path, faults: list[Fault], asked: bool) -> None:
    """The leader from before came back by itself, and is told as the other leader: only an election that may have been
    carried out may have elected it."""
    world = leaderless()
    world.faults["elect"] = faults
    world.happens[BEFORE_ELECT + 2 * len(faults)] = lambda: returns(world, 1, clean=True)  # before the restoring
    result = _apply(world, tmp_path)
    assert (result.leader, result.asked) == (1, asked)
    (journal,) = journal_files(tmp_path, CLUSTER_ID)
    assert read_journal(journal).partitions[AT].elected is asked
    assert (_recorded(tmp_path) is None) is not asked


def test_who_came_back_by_itself_is_not_counted_where_the_order_could_not_be_restored(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan(WISH)
    world.kill_at = 1
    with pytest.raises(Killed):
        apply_plan(plan, **world.common(tmp_path), consented=CONSENT)
    world.revive()
    world.after(events.Reassigned(AT, (1, 2, 3)))
    returns(world, 1, clean=True)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    (result,) = resume(journal.path, **world.common(tmp_path)).applied
    assert (result.ended, result.leader, result.asked) == (ElectionResult.NOT_RESTORED, 1, False)
    assert _recorded(tmp_path) is None


@pytest.mark.parametrize("mend", [resume, undo])
def test_an_election_of_a_killed_run_that_took_another_one_counts(tmp_path: Path, mend: Callable[..., object]) -> None:
    world = leaderless()
    plan = world.plan(WISH)
    world.happens[BEFORE_ELECT] = dies(world, 2)
    world.kill_at = AFTER_ELECT
    with pytest.raises(Killed):
        apply_plan(plan, **world.common(tmp_path), consented=CONSENT)
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert recorded_elections((), [journal])[AT].unread == (1, 2, 3)  # who was elected is not known yet
    mend(journal.path, **world.common(tmp_path))
    assert (_line(tmp_path).result, _line(tmp_path).asked) == ("other-leader", True)
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.unread) == (3, (1, 2))


@pytest.mark.parametrize(
    ("result", "leader", "asked", "expected"),
    [
        ("done", 3, True, Elected.AS_PLANNED),
        ("done", 3, False, Elected.AS_PLANNED),  # the reordering's own election
        ("not-restored", 3, True, Elected.AS_PLANNED),
        ("not-restored", 2, True, Elected.PERHAPS_ANOTHER),
        ("not-restored", 2, False, Elected.NOBODY),
        ("other-leader", 2, True, Elected.PERHAPS_ANOTHER),
        ("other-leader", 2, False, Elected.NOBODY),
        ("refused", 2, True, Elected.PERHAPS_ANOTHER),
        ("unknown", None, True, Elected.PERHAPS_ANOTHER),
        ("unknown", None, False, Elected.NOBODY),
        # An older kelr did not write down whether it had asked.
        ("other-leader", 2, None, Elected.PERHAPS_ANOTHER),
        ("not-restored", 2, None, Elected.PERHAPS_ANOTHER),
        ("unknown", None, None, Elected.PERHAPS_ANOTHER),
        ("refused", 2, None, Elected.NOBODY),
        ("not-needed", 3, None, Elected.NOBODY),
    ],
)
def test_whom_a_line_says_was_elected(result: str, leader: int | None, asked: bool | None, expected: Elected) -> None:
    line = AuditRecord(
        1, AuditWhat.ELECTION, "recover apply", TOPIC, 0, CLUSTER_ID, "ada", "laptop", None, result,
        wanted=3, before={"leader": None, "leader_epoch": 4}, after={"leader": leader, "leader_epoch": 5}, asked=asked,
    )  # fmt: skip
    assert elected_by(line) is expected
    if expected is Elected.PERHAPS_ANOTHER:
        for epoch in (4, None):  # the epoch of before: the broker that was asked may lag behind
            assert elected_by(replace(line, after={"leader": None, "leader_epoch": epoch})) is expected
    if expected is Elected.PERHAPS_ANOTHER and result != "unknown":
        led = {"leader": 1, "leader_epoch": 4}
        assert elected_by(replace(line, before=led, after={"leader": None, "leader_epoch": 5})) is Elected.NOBODY


def _killed_in_its_election(world: World, state: Path) -> Path:
    world.kill_at = AFTER_ELECT
    with pytest.raises(Killed):
        apply_plan(world.plan(WISH), **world.common(state), consented=CONSENT)
    world.revive()
    world.sleep(100)
    (journal,) = open_journals(state, CLUSTER_ID)
    return journal.path


def test_undo_that_sees_no_election_leaves_it_on_record(tmp_path: Path) -> None:
    """None can come any more, so that the journal ends; the broker that was asked may lag behind all the same."""
    world = leaderless()
    source = Lagging(world, world.cluster, 1000)
    path = _killed_in_its_election(world, tmp_path)
    done = undo(path, **{**world.common(tmp_path), "source": source})
    assert done.closed
    assert [(one.ended, one.leader) for one in done.applied] == [(ElectionResult.UNKNOWN, None)]  # undo shows it, too
    assert (_line(tmp_path).result, _line(tmp_path).asked) == ("unknown", True)
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.leader_epoch, found.unread) == (None, 3, (1, 2, 3))


_ANSWERS = pytest.mark.parametrize("answer", ["NONE", "UNKNOWN_SERVER_ERROR", "ELIGIBLE_LEADERS_NOT_AVAILABLE"])


def _apply_lagging(
    world: World,
    state: Path,
    answer: str,
    lag_s: float,
    *,
    wish: ElectionRequest = WISH[AT],
    before_elect: int = BEFORE_ELECT,
) -> Applied:
    """The election is carried out, whatever Kafka answers, and the brokers do not show it for so long."""
    plan, source = world.plan({AT: wish}), Lagging(world, world.cluster, 0)
    world.faults["elect"] = [Fault(answer, done=True)]

    def lags() -> None:
        source.before, source.caught_up_s = world.cluster, world.now_s + lag_s

    world.happens[before_elect] = lags
    (result,) = apply_plan(plan, **{**world.common(state), "source": source}, consented=CONSENT)
    return result


@_ANSWERS
def test_an_election_that_is_done_and_not_seen_stays_on_record(tmp_path: Path, answer: str) -> None:
    """The broker that was asked lags behind for longer than kelr waits: it was "nobody leads", and elected nobody."""
    world = leaderless()
    result = _apply_lagging(world, tmp_path, answer, 1000)
    assert (result.ended, result.leader, result.asked) == (ElectionResult.UNKNOWN, None, True)
    assert "they lag behind, or no leader was elected" in result.text
    found = _recorded(tmp_path)
    assert found is not None
    assert (found.leader, found.unread) == (None, (1, 2, 3))
    world.sleep(1000)
    (journal,) = journal_files(tmp_path, CLUSTER_ID)
    undo(journal, **world.common(tmp_path))
    assert (_line(tmp_path).result, elected_by(_line(tmp_path))) == ("done", Elected.AS_PLANNED)


@_ANSWERS
def test_an_election_is_waited_for_whatever_kafka_answers_but_a_refusal(tmp_path: Path, answer: str) -> None:
    world = leaderless()
    result = _apply_lagging(world, tmp_path, answer, 3, wish=ElectionRequest(ElectionType.UNCLEAN), before_elect=0)
    assert (result.ended, result.leader, _line(tmp_path).result) == (ElectionResult.DONE, 3, "done")


@pytest.mark.parametrize("ended", [ElectionResult.NOT_RESTORED, ElectionResult.REFUSED, ElectionResult.NO_LEADER])
def test_undo_records_an_election_whose_result_was_of_the_epoch_of_before(
    tmp_path: Path, ended: ElectionResult
) -> None:
    world = leaderless()
    result = _apply(world, tmp_path)
    (path,) = journal_files(tmp_path, CLUSTER_ID)
    early = replace(result, ended=ended, leader=None, leader_epoch=(result.leader_epoch or 0) - 1)
    with Journal.reopen(path, world.ground, WHO, "recover resume") as journal:
        journal.applied((early,))
    before = len(list(audit.read(tmp_path)))
    undo(path, **world.common(tmp_path))
    assert len(list(audit.read(tmp_path))) == before + 1
    assert (_line(tmp_path).result, read_journal(path).has_result(AT)) == ("done", True)


def test_undo_waits_for_what_the_brokers_do_not_show_yet(tmp_path: Path) -> None:
    world = leaderless()
    source = Lagging(world, world.cluster, 110)
    path = _killed_in_its_election(world, tmp_path)
    (result,) = undo(path, **{**world.common(tmp_path), "source": source}).applied
    assert (result.ended, _line(tmp_path).result) == (ElectionResult.DONE, "done")


def test_undo_of_an_election_that_no_broker_tells_of_leaves_the_journal_open(tmp_path: Path) -> None:
    world = leaderless([(2, 3, 1)])
    world.kill_at = 1
    with pytest.raises(Killed):
        apply_plan(world.plan(WISH), **world.common(tmp_path), consented=CONSENT)
    world.revive()
    world.sleep(100)
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    source = SimulatedSource(world)
    cluster = source.cluster
    reads = []

    def from_then_on_nobody_answers():  # type: ignore[no-untyped-def]
        reads.append(None)
        world.reachable = len(reads) < 2
        return cluster()

    source.cluster = from_then_on_nobody_answers  # type: ignore[method-assign]
    assert not undo(journal.path, **{**world.common(tmp_path), "source": source}).closed
    world.reachable = True
    assert undo(journal.path, **world.common(tmp_path)).closed
    assert _line(tmp_path).result == "done"


def test_undo_tells_the_consent_of_an_election_whose_topic_is_gone(tmp_path: Path) -> None:
    world = leaderless()
    path = _killed_in_its_election(world, tmp_path)
    world.after(events.TopicDeleted(TOPIC))
    assert undo(path, **world.common(tmp_path)).closed
    line = _line(tmp_path)
    assert (line.result, line.asked, line.consent["accept_loss"]) == ("unknown", True, "1000+")


@pytest.mark.parametrize(
    ("kill_at", "command", "user"), [(1, "recover resume", "grace"), (AFTER_ELECT, "recover apply", "ada")]
)
def test_who_gave_the_consent_is_on_record_whoever_resumes(
    tmp_path: Path, kill_at: int, command: str, user: str
) -> None:
    """An election that the run before had done is that one's."""
    world = leaderless()
    world.kill_at = kill_at
    with pytest.raises(Killed):
        apply_plan(world.plan(WISH), **world.common(tmp_path), consented=CONSENT)
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    resume(journal.path, **{**world.common(tmp_path), "who": Actor("grace", "jumphost")})
    line = _line(tmp_path)
    assert (line.result, line.command, line.user) == ("done", command, user)
    assert accepted_in_words(line) == "--accept-loss 1000+ by ada@laptop"


@pytest.mark.parametrize("mend", [resume, undo])
def test_an_election_of_a_resume_that_is_killed_in_its_turn_is_that_ones(
    tmp_path: Path, mend: Callable[..., object]
) -> None:
    world = leaderless()
    world.kill_at = 1
    with pytest.raises(Killed):
        apply_plan(world.plan(WISH), **world.common(tmp_path), consented=CONSENT)
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    world.kill_at = 7
    with pytest.raises(Killed):
        resume(journal.path, **{**world.common(tmp_path), "who": Actor("grace", "jumphost")})
    assert world.moments[-1] == "after elect"
    world.revive()
    mend(journal.path, **{**world.common(tmp_path), "who": Actor("eve", "jumphost")})
    line = _line(tmp_path)
    assert (line.result, line.command, line.user) == ("done", "recover resume", "grace")
    assert accepted_in_words(line) == "--accept-loss 1000+ by ada@laptop"


@pytest.mark.parametrize("set_by_s", [3600, -3600])
@pytest.mark.parametrize("mend", [None, resume, undo])
def test_the_clock_is_set_while_an_election_may_still_come(
    tmp_path: Path, set_by_s: float, mend: Callable[..., object] | None
) -> None:
    """verify passes no such leader before the request can come no more, and does then; in another boot it goes by the
    wall clock."""
    world = leaderless()
    plan = world.plan(WISH)
    world.faults["elect"] = [Fault(NO_ANSWER, done=True)]
    if mend is not None:
        world.kill_at = AFTER_ELECT
        with pytest.raises(Killed):
            apply_plan(plan, **world.common(tmp_path), consented=CONSENT)
        world.revive()
        (journal,) = open_journals(tmp_path, CLUSTER_ID)
        mend(journal.path, **world.common(tmp_path))
    else:
        apply_plan(plan, **world.common(tmp_path), consented=CONSENT)

    def leader() -> Passed:
        found = verify(
            plan,
            SimulatedSource(world),
            None,
            ground=world.ground,
            recorded=audit.read(tmp_path),
        )
        return next(one.passed for one in found.findings if one.check is Check.LEADER)

    world.clock_set_by_s = set_by_s
    assert leader() is Passed.NOT_YET
    world.sleep(80)
    assert leader() is Passed.YES
    world.boot_id = "second"
    assert leader() is (Passed.YES if set_by_s > 0 else Passed.NOT_YET)
