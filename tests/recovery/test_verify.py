"""One look at a plan's partitions: what is read, in which order, and how long it is waited for what is not yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kelr.controller import Election, events
from kelr.engine.planning.lost import lost_in_all
from kelr.model import (
    Bounds,
    Check,
    ElectionType,
    Finding,
    LossCertainty,
    PartitionState,
    Passed,
    Plan,
    ReplicaLog,
    TopicPartition,
)
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Transactions, Unread
from kelr.model.audit import AuditWhat
from kelr.model.plan import AcceptedLoss, ElectionRequest, ElectionResult
from kelr.recovery import audit
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.status import status
from kelr.recovery.verify import Verification, Waiting, verify, verify_until_good
from tests.recovery.simulated import SimulatedSource, World, dies, leaderless, returns, silence
from tests.still_ground import StillGround


@dataclass
class Told:
    """What a cluster tells of transactions and groups, and for which partitions it was asked."""

    transactions: Mapping[TopicPartition, Transactions] = field(default_factory=dict)
    committed: CommittedOffsets | Unread = field(default_factory=CommittedOffsets)
    asked: list[TopicPartition] = field(default_factory=list)

    def open_transactions(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, Transactions]:
        self.asked += [state.address for state in partitions]
        return {state.address: self.transactions.get(state.address, ()) for state in partitions}

    def committed_offsets(self, _partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        return self.committed


def catch_up(world: World) -> None:
    """Followers fetch, and leaders take those that are live into the ISR."""
    live = SimulatedSource(world).cluster().live
    for number in range(4):
        at, state = TopicPartition("orders", number), world.state(number)
        world.cluster = world.cluster.replicate(at)
        assert state.leader is not None
        world.after(events.PartitionAltered(at, state.leader, tuple(one for one in state.replicas if one in live)))


def passed(found: Verification, number: int) -> dict[Check, Passed]:
    return {one.check: one.passed for one in found.findings if one.address == TopicPartition("orders", number)}


def test_a_plan_is_looked_at_before_and_after_it_is_applied(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    told = Told()
    before = verify(plan, SimulatedSource(world), told, ground=world.ground)
    assert passed(before, 0) == {Check.LEADER: Passed.NOT_YET, Check.ORDER: Passed.YES}
    assert (before.partitions, before.good, before.may_come) == (5, False, True)
    assert {at.topic for at in told.asked} <= {"steady"}
    consented = Confirmation(AcceptedLoss(10**6, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))
    catch_up(world)
    after = verify(plan, SimulatedSource(world), told, ground=world.ground)
    assert {passed(after, number)[Check.LEADER] for number in range(4)} == {Passed.YES}
    assert {passed(after, number)[Check.ORDER] for number in range(4)} == {Passed.YES}
    assert passed(after, 0)[Check.GROUPS] is Passed.YES
    returns(world, 1)
    later = verify(plan, SimulatedSource(world), told, ground=world.ground)
    assert passed(later, 0)[Check.ISR] is Passed.NOT_YET
    catch_up(world)
    assert passed(verify(plan, SimulatedSource(world), told, ground=world.ground), 0)[Check.ISR] is Passed.YES


def test_an_election_that_may_come_yet_is_waited_for(tmp_path: Path) -> None:
    """It went without an answer: until it can come no more, the planned leader may not last."""
    world = leaderless()
    plan = world.plan({TopicPartition("orders", 0): ElectionRequest(ElectionType.DESIGNATION, 2)})
    world.faults["elect"] = [silence(done=True)]
    consented = Confirmation(AcceptedLoss(10**6, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))
    rows = list(audit.read(tmp_path))

    def look() -> Finding:
        found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=rows)
        return next(one for one in found.findings if one.check is Check.LEADER)

    assert look().passed is Passed.NOT_YET
    assert look().text == (
        "2 leads, in leader epoch 3; an unclean election without an answer may come until 22:14:35 UTC: if broker 2"
        " died before then, it would elect another one"
    )
    world.sleep(74.9 - world.now_s)
    assert look().passed is Passed.NOT_YET
    world.sleep(0.2)
    assert (look().passed, look().text) == (Passed.YES, "2 leads, in leader epoch 3")


def test_an_election_that_was_refused_lost_nothing_whoever_leads_there(tmp_path: Path) -> None:
    """orders:0 is elected by hand after the plan was made, so that the plan's election is never sent."""
    world = leaderless()
    numbers = [TopicPartition("orders", number) for number in range(4)]
    plan = world.plan(dict.fromkeys(numbers, ElectionRequest(ElectionType.DESIGNATION, 2)))
    by_hand = world.plan({numbers[0]: ElectionRequest(ElectionType.DESIGNATION, 3)})
    consented = Confirmation(AcceptedLoss(99, unbounded=True), force_reason="a test", yes=True)
    apply_plan(by_hand, consented=consented, **world.common(tmp_path))
    rest = replace(plan, elections=plan.elections[1:])
    apply_plan(rest, consented=consented, **world.common(tmp_path))
    recorded = list(audit.read(tmp_path))
    found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
    assert passed(found, 0)[Check.LEADER] is Passed.NO
    assert [one.address for one in found.lost] == numbers[1:]
    assert [one.address for one in status(SimulatedSource(world), tmp_path, plan=plan).lost] == numbers[1:]
    # Where nothing was written down, nobody knows who has sent what.
    unknown = verify(plan, SimulatedSource(world), Told(), ground=world.ground)
    assert [one.address for one in unknown.lost] == numbers
    # Who was elected in its place is on record: that the plan's replica leads after it is another matter.
    dies(world, 3)()
    world.after(events.LeadersElected(Election.UNCLEAN, (numbers[0],)))
    assert world.state().leader == 2
    found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
    assert [one.address for one in found.lost] == numbers[1:]
    assert [one.unsure for one in verify(plan, SimulatedSource(world), Told(), ground=world.ground).lost] == [
        True,
        *[False] * 3,
    ]


def test_where_the_broker_that_was_away_came_back_first_no_election_of_the_plan_lost_anything(tmp_path: Path) -> None:
    """The last known leader returns after the plan was made, and Kafka elects it; the plan is refused then."""
    world = leaderless()
    numbers = [TopicPartition("orders", number) for number in range(4)]
    plan = world.plan({at: ElectionRequest(gone=frozenset({1})) for at in numbers})
    plan = replace(plan, elections=tuple(one for one in plan.elections if one.topic == "orders"))
    assert all(one.loss.unheard == (1,) and one.elect == 2 for one in plan.elections)
    returns(world, 1)
    catch_up(world)
    where = {one.address for one in plan.elections}
    assert {world.state(at.partition).leader for at in where} == {1}
    for refused in (False, True):
        if refused:
            consented = Confirmation(AcceptedLoss(0, unbounded=True), force_reason="a test", yes=True)
            results = apply_plan(plan, consented=consented, **world.common(tmp_path))
            assert {one.ended for one in results} == {ElectionResult.REFUSED}
        recorded = list(audit.read(tmp_path)) if refused else []
        found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
        assert (found.lost, found.instead) == ((), dict.fromkeys(where, 1))
    # Whoever leads after it: whom another election elected first is not known any more, nor what that cost.
    dies(world, 1)()
    found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
    assert (len(found.lost), found.instead) == (len(where), {})
    assert all(one.unsure and one.grade is LossCertainty.UNKNOWN for one in found.lost)


def test_a_refusal_is_told_of_the_plan_that_was_refused_and_of_no_other(tmp_path: Path) -> None:
    """The plan's replica is dead when it is applied: it is refused. Another plan has the same elections."""
    world = leaderless()
    wishes = {TopicPartition("orders", 0): ElectionRequest(ElectionType.DESIGNATION, 2)}
    plan, another = world.plan(wishes), world.plan(wishes, lifetime_ms=1_700_000)
    dies(world, 2)()
    consented = Confirmation(AcceptedLoss(99, unbounded=True), force_reason="a test", yes=True)
    (result,) = apply_plan(plan, consented=consented, **world.common(tmp_path))
    assert result.ended is ElectionResult.REFUSED
    recorded = list(audit.read(tmp_path))

    def told(of: Plan) -> str:
        found = verify(of, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
        return next(one.text for one in found.findings if one.check is Check.LEADER)

    as_before = "no leader, as before the plan (leader epoch 2)"
    assert told(plan).startswith(f"{as_before}, and it was refused: {result.text.rstrip('.')}: ")
    assert told(another).startswith(f"{as_before}: ")
    # Kafka's refusal is none of kelr's, and is told as well.
    (row,) = recorded
    recorded = [
        replace(row, result=ElectionResult.NO_LEADER, error="INVALID_REPLICA_ASSIGNMENT", text="Kafka answers that")
    ]
    assert ", and it was refused: Kafka answers that: " in told(plan)


def test_what_was_refused_here_and_applied_from_elsewhere_is_no_election_that_lost_nothing(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan({TopicPartition("orders", 0): ElectionRequest(ElectionType.DESIGNATION, 2)})
    consented = Confirmation(AcceptedLoss(99, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path / "elsewhere"))
    (result,) = apply_plan(plan, consented=consented, **world.common(tmp_path / "here"))
    assert result.ended is not ElectionResult.DONE
    dies(world, 2)()
    recorded = list(audit.read(tmp_path / "here"))
    (lost,) = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded).lost
    assert (lost.grade, lost.accepted) == (LossCertainty.UNKNOWN, ""), "what was accepted here was for no election"


def test_a_loss_that_was_unknown_stays_so_when_everybody_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two members of the ELR die with records that 3 lacks; 3 is designated, and they return and follow it."""
    world = leaderless()
    dies(world, 2)()
    plan = world.plan(
        {at: ElectionRequest(gone=frozenset({1, 2})) for at in map(TopicPartition, ["orders"] * 4, range(4))}
    )
    plan = replace(plan, elections=tuple(one for one in plan.elections if one.topic == "orders"))
    assert {one.elect for one in plan.elections} == {3}
    assert all(set(one.loss.unheard) == {1, 2} for one in plan.elections)
    consented = Confirmation(AcceptedLoss(0, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))
    returns(world, 1)
    returns(world, 2)
    for _ in range(3):
        catch_up(world)
    assert all(world.cluster.replication[one.address].gone for one in plan.elections)
    recorded = list(audit.read(tmp_path))
    found = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=recorded)
    # The simulated source tells no last stable offset; all else is well.
    assert {one.check for one in found.findings if one.passed is not Passed.YES} == {Check.LAST_STABLE_OFFSET}
    lost = lost_in_all(found.lost)
    assert (lost.elections, lost.unknown) == (4, 4)
    assert (lost.committed.at_most, lost.total.at_most) == (None, None)
    assert (lost.unread, lost.truncated) == ((1, 2), (1, 2))
    assert all(one.accepted.startswith("--accept-loss unknown") for one in found.lost)
    # What was produced again had been lost: the audit log gives the unknown loss a lower bound.
    again = [
        replace(row, what=AuditWhat.RESCUE, at_ms=row.at_ms + 1, after={"records": 10, "lost": 10}) for row in recorded
    ]
    since = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=[*recorded, *again])
    assert lost_in_all(since.lost).total == Bounds(40)
    assert [one.replayed for one in since.lost] == [10] * 4
    earlier = [replace(row, at_ms=row.at_ms - 2) for row in again]
    before = verify(plan, SimulatedSource(world), Told(), ground=world.ground, recorded=[*recorded, *earlier])
    assert lost_in_all(before.lost).total == Bounds(0)
    left = status(SimulatedSource(world), tmp_path, plan=plan)
    assert (left.clean, lost_in_all(left.lost).unknown) == (True, 4)
    monkeypatch.setattr(SimulatedSource, "controller_silence", "REQUEST_TIMED_OUT", raising=False)
    assert not status(SimulatedSource(world), tmp_path, plan=plan).clean


def test_without_a_controller_or_without_an_election_nothing_is_well() -> None:
    world = leaderless()
    nothing = verify(replace(world.plan(), elections=()), SimulatedSource(world), Told(), ground=world.ground)
    assert (nothing.findings, nothing.good) == ((), False)
    well = Verification((Finding("t", 0, Check.ISR, Passed.YES, ""),), 0, 1)
    assert well.good
    assert not replace(well, silence="REQUEST_TIMED_OUT").good


def test_a_source_that_cannot_tell_of_transactions_and_groups_leaves_them_unknown(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    consented = Confirmation(AcceptedLoss(10**6, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))
    found = verify(plan, SimulatedSource(world), None, ground=world.ground)
    (groups,) = [one for one in found.findings if one.check is Check.GROUPS and one.address.partition == 0][:1]
    assert (groups.passed, "only a live cluster tells" in groups.text) == (Passed.UNKNOWN, True)


def test_transactions_are_asked_for_where_one_may_be_open_and_nowhere_else(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    consented = Confirmation(AcceptedLoss(10**6, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))

    class Stable(SimulatedSource):
        """Of ``orders:0`` the last stable offset is the log's end, of ``orders:1`` it is the log's start."""

        def replica_logs(self, partitions, *, lineage=False, progress=None):  # type: ignore[no-untyped-def]
            found = super().replica_logs(partitions, lineage=lineage, progress=progress)
            return {at: tuple(_stable(log, at) for log in logs) for at, logs in found.items()}

    def _stable(log: object, at: TopicPartition) -> object:
        if not isinstance(log, ReplicaLog):
            return log
        return replace(log, last_stable_offset=0 if at.partition == 1 and at.topic == "orders" else log.log_end)

    told = Told()
    verify(plan, Stable(world), told, ground=world.ground)
    assert told.asked == [TopicPartition("orders", 1)]


def test_an_offset_beyond_the_end_is_a_finding(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan()
    consented = Confirmation(AcceptedLoss(10**6, unbounded=True), force_reason="a test", yes=True)
    apply_plan(plan, consented=consented, **world.common(tmp_path))
    at = TopicPartition("orders", 2)
    told = Told(committed=CommittedOffsets({at: (CommittedOffset("readers", 10**6),)}, groups=1))
    found = verify(plan, SimulatedSource(world), told, ground=world.ground)
    assert [one.address for one in found.findings if one.check is Check.GROUPS and one.passed is Passed.NO] == [at]


def look_that_gives(*results: Passed) -> list[Verification]:
    return [Verification((Finding("t", 0, Check.ISR, one, ""),), 0, 1) for one in results]


def test_it_is_waited_for_what_is_not_yet_and_no_longer() -> None:
    found = look_that_gives(Passed.NOT_YET, Passed.NOT_YET, Passed.NO, Passed.YES)
    ground = StillGround()
    told: list[float] = []
    waiting = Waiting(10, ground, pause_s=2)
    end = verify_until_good(lambda: found.pop(0), waiting, report=lambda _, left_s: told.append(left_s))
    # What has failed does not come true by waiting.
    assert (end.count(Passed.NO), ground.slept, told) == (1, [2, 2], [10, 8])


def test_the_time_is_up() -> None:
    found = look_that_gives(*[Passed.NOT_YET] * 9)
    ground = StillGround()
    waiting = Waiting(5, ground, pause_s=2)
    end = verify_until_good(lambda: found.pop(0), waiting, report=lambda *_: None)
    assert (end.may_come, ground.slept) == (True, [2, 2, 1])
