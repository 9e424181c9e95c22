"""The page for an incident's review: what was lost and how sure that is, and a page that does no harm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine import decide
from kelr.engine.planning.lost import Lost, lost_in_all
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Bounds,
    Cluster,
    EpochEnd,
    Features,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.replay.history import Cause, CauseKind, ElectedAs, Election, PartitionEntry, PartitionSummary, Span, Trouble
from kelr.replay.records import At
from kelr.view.explain_columns import Explained
from kelr.view.incident.bands import bands
from kelr.view.incident.chat import LONGEST, chat
from kelr.view.incident.figures import figures
from kelr.view.incident.happenings import timeline
from kelr.view.incident.kinds import kinds, named
from kelr.view.incident.log_drawing import draw_logs
from kelr.view.incident.losses import elected_since, losses
from kelr.view.incident.material import Done, Gap, Light, Look, Material, OpenRun, Told, Turn
from kelr.view.incident.pages import html
from kelr.view.incident.summary import loss_sentence, paragraph, tiles
from kelr.view.log_bars import log_bars
from tests.incident import INCIDENT

ONE = TopicPartition("orders", 1)
LEADERLESS = INCIDENT.partitions[1]
NOW_MS = INCIDENT.taken_at_ms + 60_000
HOSTILE = "</td></svg></style><script>alert(1)</script><img src=x onerror=y>\u202egpj.\x1b[2J`*_|[x](http://e.x)"


def look(snapshot: Snapshot, at_ms: int = NOW_MS, name: str = "live") -> Look:
    rows = {
        state.address: Explained(decide(snapshot, state), at_ms, logs=tuple(snapshot.logs.get(state.address, ())))
        for state in snapshot.partitions
    }
    return Look(name, at_ms, snapshot.cluster, rows)


def led(leader: int, epoch: int) -> Snapshot:
    """The incident later: orders:1 is led."""
    state = replace(LEADERLESS, leader=leader, leader_epoch=epoch, isr=(leader, 2 if leader == 3 else 3), elr=())
    return replace(INCIDENT, partitions=(state,))


THEN = look(replace(INCIDENT, partitions=(LEADERLESS,)), INCIDENT.taken_at_ms, "then.kelr")


def material(now: Look, **more: Any) -> Material:
    fields: dict[str, Any] = {
        "title": "A title",
        "made_at_ms": NOW_MS + 1,
        "version": "1.2.3",
        "command": "kelr report x.html",
        "partitions": tuple(sorted(now.rows)),
        "now": now,
    }
    return Material(**{**fields, **more})


def audited(result: str = "done", leader: int | None = 3, **more: Any) -> AuditRecord:
    fields: dict[str, Any] = {
        "before": {"leader": None, "leader_epoch": 2},
        "after": {"leader": leader, "leader_epoch": 3},
        "loss": {"grade": "bounded", "committed": [4, None], "total": [19, None], "unheard": [1]},
        "election": "unclean",
        "wanted": 3,
    }
    names = ("recover apply", "orders", 1, None, "ada", "laptop", None, result)
    return AuditRecord(NOW_MS - 1000, AuditWhat.ELECTION, *names, **{**fields, **more})


def a_log(begins_ms: int, *summaries: PartitionSummary, epochs: Mapping[TopicPartition, int] | None = None) -> Told:
    """A metadata log from this moment to the newest look.

    Args:
        epochs: leader epochs where it ends, of partitions without a summary.
    """
    states = {at: replace(LEADERLESS, leader=2, leader_epoch=epoch) for at, epoch in (epochs or {}).items()}
    states |= {one.address: one.state for one in summaries if one.state is not None}
    told = {one.address: one for one in summaries}
    return Told("a log", begins_ms, begins_ms, NOW_MS, True, True, states.get, 99, (), 0, told, {})


def told(elected_as: ElectedAs | None, leader: int = 3) -> Told:
    """A metadata log in which orders:1 lost its leader, and, perhaps, got another."""
    summary = PartitionSummary(ONE, LEADERLESS, NOW_MS - 90_000, spans={Trouble.LEADERLESS: Span(1, 40_000, 40_000)})
    turns = [Turn(0, Light.LED), Turn(NOW_MS - 80_000, Light.LEADERLESS)]
    if elected_as is not None:
        after = replace(LEADERLESS, leader=leader, leader_epoch=3, isr=(leader,))
        election = Election(elected_as, 1, leader)
        entry = PartitionEntry(At(7, 1, NOW_MS - 40_000), LEADERLESS, after, Cause(CauseKind.ELECTION), election)
        summary.state, summary.elections = after, 1
        if elected_as.clean is not True:
            summary.unsafe.append(entry)
        turns.append(Turn(NOW_MS - 40_000, Light.ALONE, leader, elected_as.clean))
    return replace(a_log(NOW_MS - 100_000, summary), turns={ONE: tuple(turns)})


def only(found: Sequence[Lost]) -> tuple[int | None, LossCertainty, Bounds | None, str]:
    (one,) = found
    return one.leader, one.grade, one.committed, one.basis.partition(":")[0]


# What was lost.


def test_what_kelr_recorded_counts_once() -> None:
    found = losses(material(look(led(3, 3)), before=THEN, told=told(ElectedAs.UNCLEAN), done=Done("a", (audited(),))))
    assert only(found) == (3, LossCertainty.UNKNOWN, Bounds(4), "audit log")
    assert found[0].total == Bounds(19)
    assert "log not read: 1" in found[0].basis


NOBODY_ELECTED = {"leader": None, "leader_epoch": 2}


@pytest.mark.parametrize(
    "record",
    [
        *map(audited, ("refused", "not-tried", "not-needed", "begun")),
        audited("other-leader", 1, asked=False),  # it came back by itself
        audited("not-restored", 1, asked=False),
    ],
    ids=lambda record: f"{record.result}-{record.asked}",
)
def test_what_did_not_happen_lost_nothing(record: AuditRecord) -> None:
    assert losses(material(look(replace(INCIDENT, partitions=(LEADERLESS,))), done=Done("a", (record,)))) == ()


@pytest.mark.parametrize("result", ["no-leader", "refused"])
def test_what_was_asked_for_and_is_not_seen_may_have_lost(result: str) -> None:
    """Brokers that lag show the epoch of before, whatever Kafka answered."""
    record = audited(result, after=NOBODY_ELECTED, asked=True)
    (lost,) = losses(material(look(replace(INCIDENT, partitions=(LEADERLESS,))), done=Done("a", (record,))))
    assert (lost.grade, lost.total) == (LossCertainty.UNKNOWN, None)


@pytest.mark.parametrize(
    "record",
    [
        audited("other-leader"),
        audited("unknown"),
        audited(loss=None),
        audited("refused", asked=True),
        audited("no-leader", asked=True),
    ],
)
def test_what_the_record_does_not_tell_is_unknown(record: AuditRecord) -> None:
    found = losses(material(look(led(3, 3)), done=Done("a", (record,))))
    assert only(found) == (3, LossCertainty.UNKNOWN, None, "audit log")


def test_an_unclean_election_is_counted_by_the_logs_from_before() -> None:
    found = losses(material(look(led(3, 3)), before=THEN, told=told(ElectedAs.UNCLEAN)))
    assert only(found) == (3, LossCertainty.UNKNOWN, Bounds(4), "metadata log")


def test_an_election_that_nothing_tells_to_be_clean_is_not_called_unclean() -> None:
    """With ELR off the last ISR member led again after a restart: its log may have been cut."""
    (found,) = losses(material(without_elr(look(led(1, 3))), before=THEN, told=told(ElectedAs.UNKNOWN, 1)))
    assert (found.leader, found.grade, found.committed) == (1, LossCertainty.UNKNOWN, None)
    assert found.basis.startswith("metadata log: whether the election was clean is not told")


def test_without_logs_it_is_unknown() -> None:
    assert only(losses(material(look(led(3, 3)), told=told(ElectedAs.UNCLEAN)))) == (
        3,
        LossCertainty.UNKNOWN,
        None,
        "metadata log",
    )
    # Of another state than the one that was looked at, the logs say nothing.
    older = replace(LEADERLESS, leader_epoch=1)
    other = look(replace(INCIDENT, partitions=(older,)), 0)
    found = losses(material(look(led(3, 3)), before=other, told=told(ElectedAs.UNCLEAN)))
    assert [(one.leader, one.grade) for one in found] == [(3, LossCertainty.UNKNOWN), (None, LossCertainty.UNKNOWN)]


def test_a_clean_election_lost_nothing() -> None:
    found = losses(material(look(led(1, 3)), before=THEN, told=told(ElectedAs.ELR, 1)))
    assert only(found) == (1, LossCertainty.PROVEN_NONE, Bounds(0, 0), "metadata log")


@pytest.mark.parametrize("before", [None, THEN])
def test_a_metadata_log_that_ends_before_the_election_proves_nothing_of_it(before: Look | None) -> None:
    ended = told(None)
    ended.summaries[ONE].elections = 1  # an earlier one, before all of them were gone
    made = material(look(led(1, 3)), before=before, told=replace(ended, ends_ms=NOW_MS - 50_000))
    assert only(losses(made))[:3] == (1, LossCertainty.UNKNOWN, None)
    assert "UNKNOWN (1 election; unknown: 1)" in loss_sentence(made, figures(made))
    # With the logs of before, an election of one that was live then can be counted all the same.
    assert only(losses(replace(made, now=look(led(3, 3)), before=THEN)))[:3] == (3, LossCertainty.UNKNOWN, Bounds(4))


def test_a_time_without_a_leader_that_had_not_ended_is_said_to_be_no_shorter() -> None:
    ended = told(None)
    ended.summaries[ONE].lasting = {Trouble.LEADERLESS: NOW_MS - 80_000}
    made = material(look(led(1, 3)), told=ended)
    assert [tile.value for tile in tiles(made, figures(made)) if "longest" in tile.label] == ["at least 40.0s"]
    assert "without a leader was at least 40.0s (orders:1)" in paragraph(made, figures(made))


def test_a_metadata_log_that_begins_after_the_election_proves_nothing_of_it() -> None:
    late = told(ElectedAs.ELR, 1)
    for summaries in ({}, late.summaries):
        made = replace(late, begins_ms=NOW_MS - 1000, summaries=summaries)
        assert only(losses(material(look(led(1, 3)), before=THEN, told=made)))[:3] == (1, LossCertainty.UNKNOWN, None)


def test_an_election_after_that_of_kelr_is_not_passed_over() -> None:
    found = losses(material(look(led(2, 5)), done=Done("a", (audited(),))))
    assert [(one.leader, one.grade) for one in found] == [(3, LossCertainty.UNKNOWN), (2, LossCertainty.UNKNOWN)]


def test_between_two_snapshots_one_election_is_counted_and_several_are_not() -> None:
    assert only(losses(material(look(led(3, 3)), before=THEN)))[:3] == (3, LossCertainty.UNKNOWN, Bounds(4))
    assert only(losses(material(look(led(2, 3)), before=THEN)))[:3] == (2, LossCertainty.UNKNOWN, Bounds(0))
    assert only(losses(material(look(led(3, 4)), before=THEN)))[:3] == (3, LossCertainty.UNKNOWN, None)
    # 1 was down: whether it came back whole is not known.
    assert only(losses(material(look(led(1, 3)), before=THEN)))[:3] == (1, LossCertainty.UNKNOWN, None)
    assert losses(material(THEN, before=THEN)) == ()


def without_elr(one: Look) -> Look:
    return replace(one, cluster=replace(one.cluster, features=Features({ELR_FEATURE: 0, METADATA_FEATURE: 29})))


@pytest.mark.parametrize("unsure", ["now", "before"])
def test_without_elr_an_election_from_the_isr_proves_nothing(unsure: str) -> None:
    now, before = look(led(1, 3)), THEN
    if unsure == "now":
        now = without_elr(now)
    else:
        before = without_elr(before)
    made = material(now, before=before, told=told(ElectedAs.ISR, 1))
    assert only(losses(made)) == (1, LossCertainty.UNKNOWN, None, "metadata log")
    assert "whether it came back whole is not known" in losses(made)[0].basis
    # One that was live then has what it had then.
    counted = losses(material(without_elr(look(led(3, 3))), before=THEN, told=told(ElectedAs.ISR, 3)))
    assert only(counted) == (3, LossCertainty.UNKNOWN, Bounds(4), "metadata log")
    alone = material(without_elr(look(led(1, 3))), told=told(ElectedAs.ISR, 1))
    assert "of members of the ISR, which without ELR proves nothing." in loss_sentence(alone, figures(alone))


def test_what_came_between_the_earlier_look_and_the_first_known_election_is_unknown() -> None:
    later = audited(before={"leader": None, "leader_epoch": 5}, after={"leader": 3, "leader_epoch": 6})
    found = losses(material(look(led(3, 6)), before=THEN, done=Done("a", (later,))))
    assert [(one.leader, one.grade) for one in found] == [(3, LossCertainty.UNKNOWN), (None, LossCertainty.UNKNOWN)]
    assert "between leader epoch 2, of the earlier look, and 5" in found[1].basis
    # It was led then: losing its leader is no election.
    leading = look(replace(INCIDENT, partitions=(replace(LEADERLESS, leader=1, isr=(1,), leader_epoch=4),)), 0)
    assert len(losses(material(look(led(3, 6)), before=leading, done=Done("a", (later,))))) == 1


def test_elections_of_a_partition_that_was_led_under_min_isr_are_not_passed_over() -> None:
    alone = replace(LEADERLESS, leader=3, isr=(3,), elr=(), leader_epoch=4)
    leading = look(replace(INCIDENT, partitions=(alone,)), INCIDENT.taken_at_ms)
    assert leading.in_trouble == (ONE,)
    found = losses(material(look(led(2, 6)), before=leading))
    assert only(found) == (2, LossCertainty.UNKNOWN, None, "two looks")
    assert losses(material(look(led(3, 6)), before=leading)) != ()  # it was lost, and elected again
    assert losses(material(look(led(3, 4)), before=leading)) == ()
    # A metadata log without trouble from then to now tells that all were clean.
    quiet = a_log(INCIDENT.taken_at_ms - 1, epochs={ONE: 6})
    assert losses(material(look(led(2, 6)), before=leading, told=quiet)) == ()
    assert losses(material(look(led(2, 6)), before=leading, told=replace(quiet, whole_since_ms=NOW_MS))) != ()
    # It ended a second ago, and the leader is one of an election after that.
    ended = a_log(INCIDENT.taken_at_ms - 1, epochs={ONE: 5})
    for ends_ms in (NOW_MS, NOW_MS - 1_000, NOW_MS - 60_001):
        (lost,) = losses(material(look(led(2, 6)), before=leading, told=replace(ended, ends_ms=ends_ms)))
        assert (lost.grade, lost.basis.partition(";")[0]) == (
            LossCertainty.UNKNOWN,
            "nothing tells of what came after leader epoch 5",
        )
    # Nor does a log that never knew of it.
    assert losses(material(look(led(2, 6)), before=leading, told=a_log(INCIDENT.taken_at_ms - 1))) != ()


@pytest.mark.parametrize("unsure", ["now", "before"])
def test_without_elr_a_log_of_clean_elections_proves_nothing_of_one_that_was_led_by_the_last_in_sync(
    unsure: str,
) -> None:
    """1 alone was in sync, restarted uncleanly, and was elected again from the ISR in which it stays without ELR."""
    alone = replace(LEADERLESS, leader=1, isr=(1,), elr=(), leader_epoch=1)
    before, now = look(replace(INCIDENT, partitions=(alone,)), NOW_MS - 95_000), look(led(1, 3))
    log = told(ElectedAs.ISR, 1)
    assert log.begins_ms < before.taken_at_ms
    assert log.summaries[ONE].unsafe == []
    assert losses(material(now, before=before, told=log)) == ()
    made = material(
        without_elr(now) if unsure == "now" else now,
        before=without_elr(before) if unsure == "before" else before,
        told=log,
    )
    assert only(losses(made)) == (1, LossCertainty.UNKNOWN, None, "metadata log")
    assert "elected from the ISR, which without ELR proves nothing" in losses(made)[0].basis


def healthy(unclean: bool | None = False, epoch: int = 4) -> Look:
    """orders:1 before the incident, led by 2."""
    state = replace(LEADERLESS, leader=2, isr=(2, 3), elr=(), leader_epoch=epoch)
    config = replace(INCIDENT.configs["orders"], unclean_leader_election=unclean)
    snapshot = replace(INCIDENT, partitions=(state,), configs={"orders": config})
    return look(snapshot, INCIDENT.taken_at_ms - 3_600_000)


@pytest.mark.parametrize("isr", [(3,), (3, 2)])
def test_elections_of_a_partition_that_was_healthy_are_not_passed_over(isr: tuple[int, ...]) -> None:
    assert healthy().in_trouble == ()
    state = replace(LEADERLESS, leader=3, isr=isr, elr=(), leader_epoch=8)
    now = look(replace(INCIDENT, partitions=(state,)))
    (found,) = losses(material(now, before=healthy()))
    assert (found.leader, found.grade, found.committed) == (3, LossCertainty.UNKNOWN, None)
    assert "2 led in leader epoch 4 of the earlier one, and 3 leads in 8" in found.basis
    # Nothing that is proven elsewhere makes it proven here.
    proven = replace(audited(loss={"grade": "proven-none", "committed": [0, 0], "total": [0, 0]}), partition=0)
    made = material(replace(now, rows={**now.rows, **look(INCIDENT).rows}), before=healthy(), done=Done("a", (proven,)))
    made = replace(made, partitions=(TopicPartition("orders", 0), ONE))
    assert [one.grade for one in losses(made)] == [LossCertainty.PROVEN_NONE, LossCertainty.UNKNOWN]
    assert [tile.label for tile in tiles(made, figures(made)) if "lost" in tile.label] == [
        "committed offsets lost; UNKNOWN for 1 election of 2",
        "offsets lost in all, committed or not",
    ]
    # Nor is one needed where a metadata log tells that all of them were clean.
    quiet = a_log(healthy().taken_at_ms - 1, epochs={ONE: 8})
    assert losses(material(now, before=healthy(), told=quiet)) == ()


def test_one_step_from_a_healthy_leader_to_another_is_clean_where_kafka_may_not_elect_uncleanly() -> None:
    assert losses(material(look(led(3, 5)), before=healthy())) == ()
    assert losses(material(look(led(3, 6)), before=healthy())) != ()
    # Kafka elects uncleanly in one step where it may, and whether it may is not known either.
    assert only(losses(material(look(led(3, 5)), before=healthy(unclean=True))))[:2] == (3, LossCertainty.UNKNOWN)
    assert only(losses(material(look(led(3, 5)), before=healthy(unclean=None))))[:2] == (3, LossCertainty.UNKNOWN)
    # The same leader all the time is no election.
    assert losses(material(look(led(2, 5)), before=healthy(unclean=True))) == ()


def read(one: Look, topic_id: str | None = "an id", policy: str = "delete", **logs: Any) -> Look:
    """The look with these logs of orders:1, by the replica's name, such as ``r2``: each with its lineage and, perhaps,
    a high watermark and a log start."""
    row = one.rows[ONE]
    found = tuple(
        ReplicaLog(
            int(name[1:]),
            lineage[-1][1],
            lineage[-1][0],
            row.decision.leader_epoch,
            more.get("hw", lineage[-1][1]),
            more.get("start", 0),
            lineage=tuple(EpochEnd(*part) for part in lineage),
        )
        for name, (lineage, more) in logs.items()
    )
    config = replace(INCIDENT.configs["orders"], cleanup_policy=(policy,))
    ids = {} if topic_id is None else {"orders": topic_id}
    rows = {ONE: replace(row, logs=found)}
    return replace(one, rows=rows, topic_ids=ids, configs={"orders": config})


LED_THEN = read(healthy(), r2=([(0, 40), (4, 60)], {"hw": 50}), r3=([(0, 40), (4, 50)], {}))


def gone(now: Look, before: Look = LED_THEN, **more: Any) -> tuple[int, int | None] | None:
    """Committed offsets lost, at least and at most; None: no loss is told of."""
    found = losses(material(now, before=before, **more))
    known = lost_in_all(found).committed
    return (known.at_least, known.at_most) if found else None


@pytest.mark.parametrize(
    ("lineage", "more", "least"),
    [
        ([(0, 30)], {}, 20),
        ([(0, 30), (8, 900)], {}, 20),  # and producers went on
        ([(8, 900)], {}, 50),
        ([(0, 40), (4, 50), (8, 51)], {}, 0),
        ([(8, 900)], {"start": 45}, 5),  # deleted since, or lost: not known
        ([(8, 900)], {"start": 70}, 0),
    ],
)
def test_what_was_committed_in_the_earlier_look_and_is_not_in_the_leaders_log_is_lost(
    lineage: list[tuple[int, int]], more: dict[str, int], least: int
) -> None:
    now = look(led(3, 8))
    assert gone(read(now, r3=(lineage, more))) == (least, None)
    # Of another topic of that name nothing is compared, and without its log nothing is known.
    assert gone(read(now, topic_id=None, r3=(lineage, more))) == (0, None)
    assert gone(read(now, topic_id="another", r3=(lineage, more))) is None
    assert gone(read(now, r2=(lineage, more))) == (0, None)
    # A compacted log may not show all its epochs: what is beyond its end is gone all the same.
    beyond = max(0, 50 - lineage[-1][1])
    assert gone(read(now, policy="compact", r3=(lineage, more))) == (beyond, None)


def test_that_offsets_are_gone_outweighs_what_else_tells_of_the_elections() -> None:
    cut = read(look(led(2, 5)), r2=([(0, 30)], {}))
    assert gone(read(look(led(2, 5)), r2=([(0, 40), (4, 60)], {}))) is None
    assert gone(cut) == (20, None)
    # A metadata log of clean elections alone: somebody was elected as a member and had lost its disk.
    quiet = a_log(healthy().taken_at_ms - 1, epochs={ONE: 5})
    assert gone(cut, told=quiet) == (20, None)
    made = material(cut, before=LED_THEN, told=quiet)
    assert "clean" not in loss_sentence(made, figures(made))
    # Two elections, one of which is counted: both together lost no less.
    counted = audited(loss={"grade": "bounded", "committed": [4, 4], "total": [19, 19], "unheard": []})
    done = Done("a", (counted,))
    assert gone(cut, done=done) == (20, None)
    older = Done("a", (replace(counted, at_ms=LED_THEN.taken_at_ms - 1),))
    assert gone(cut, done=older) == (24, None)
    affected = figures(material(cut, before=LED_THEN)).affected
    assert affected == (ONE,)


def test_who_was_elected_may_have_lost_its_tail_after_the_earlier_look() -> None:
    """Counted between the logs of before: 0. All brokers lost power since, and the one that was elected its tail."""
    then = read(THEN, r3=([(0, 116)], {}), r2=([(0, 116)], {}), r1=([(0, 116)], {}))
    then = look(replace(INCIDENT, partitions=(LEADERLESS,), logs={ONE: then.rows[ONE].logs}), THEN.taken_at_ms)
    whole = read(look(led(3, 3)), None, r3=([(0, 116), (3, 120)], {}))
    (found,) = losses(material(whole, before=then))
    assert (found.of_all, "is not shown" in found.basis) == (Bounds(0, 0), False)
    for logs in ({"r3": ([(0, 115), (3, 120)], {})}, {}):
        (found,) = losses(material(read(look(led(3, 3)), None, **logs), before=then))
        assert (found.grade, found.of_all) == (LossCertainty.UNKNOWN, Bounds(0))
        assert "That 3 still held all of its log when it was elected is not shown" in found.basis


def test_of_a_topic_that_was_made_anew_no_epochs_are_compared() -> None:
    before = replace(THEN, topic_ids={"orders": "one"})
    (found,) = losses(material(replace(look(led(3, 3)), topic_ids={"orders": "another"}), before=before))
    assert (found.grade, found.committed) == (LossCertainty.UNKNOWN, None)
    assert found.basis == "the topic was deleted, and another one made under its name"


def test_who_was_elected_is_known_from_each_source() -> None:
    decision = THEN.rows[ONE].decision
    assert elected_since(material(look(led(3, 9)), done=Done("a", (audited(),))), decision) == 3
    assert elected_since(material(look(led(2, 9)), told=told(ElectedAs.UNCLEAN)), decision) == 3
    assert elected_since(material(look(led(2, 3))), decision) == 2
    assert elected_since(material(look(led(2, 4))), decision) is None


def lost(grade: LossCertainty, committed: Bounds | None) -> Lost:
    return Lost(ONE, 3, grade, committed, None, "")


def test_a_sum_is_no_surer_than_its_parts() -> None:
    bounded, exact = lost(LossCertainty.BOUNDED, Bounds(4, 9)), lost(LossCertainty.PROVEN_NONE, Bounds(0, 0))
    assert lost_in_all([bounded, exact]).committed == Bounds(4, 9)
    assert lost_in_all([bounded, lost(LossCertainty.BOUNDED, Bounds(3))]).committed == Bounds(7)
    assert lost_in_all([bounded, lost(LossCertainty.UNKNOWN, None)]).committed == Bounds(4)
    assert lost_in_all([lost(LossCertainty.UNKNOWN, None)]).committed == Bounds(0)


def test_that_all_was_clean_is_said_of_the_time_that_was_told_and_no_other() -> None:
    made = material(THEN, told=replace(told(None), begins_ms=NOW_MS - 60_000, whole_since_ms=None))
    assert loss_sentence(made, figures(made)) == (
        "No election is known that lost anything committed: by the metadata log, from 2023-11-14 22:13:20 to"
        " 2023-11-14 22:14:20 UTC, all of them were clean."
    )


def test_nothing_known_is_not_nothing_lost() -> None:
    alone = material(THEN)
    assert "UNKNOWN" in loss_sentence(alone, figures(alone))
    assert {tile.value for tile in tiles(alone, figures(alone)) if "lost" in tile.label or "longest" in tile.label} == {
        "?",
        "UNKNOWN",
    }
    unknown = material(look(led(3, 4)), before=THEN)
    assert loss_sentence(unknown, figures(unknown)) == (
        "Committed offsets lost: UNKNOWN. Offsets lost in all: UNKNOWN (1 election; unknown: 1)."
    )  # Partitions.


def test_partitions_are_named_as_ranges() -> None:
    some = [TopicPartition("orders", number) for number in (0, 1, 2, 7)] + [TopicPartition("payments", 3)]
    assert named(some) == "orders:0-2,7, payments:3"
    assert named(some, 2) == "orders:0-2,7 and 1 more"
    assert named(some, 1) == "orders:0-2 and 2 more"
    assert named([TopicPartition("x" * 100, 1)], longest=10) == "xxxxx…xxxx:1"


def many(count: int, topic: str = "t") -> Snapshot:
    states = tuple(replace(LEADERLESS, topic=topic, partition=number) for number in range(count))
    logs = {state.address: INCIDENT.logs[ONE] for state in states}
    return replace(
        INCIDENT, partitions=states, configs={topic: INCIDENT.configs["orders"]}, logs=logs, first_partition_replicas={}
    )


def test_what_is_alike_is_told_once_and_the_rest_is_counted() -> None:
    every = look(many(300))
    (kind,) = kinds(every.rows)
    assert len(kind.addresses) == 300
    text = html(material(every, commands={"csv": "kelr explain -o csv"}))
    assert len(text) < 100_000
    assert text.count("<article") == 1
    assert "Stands for 300 partitions; none of them is known to have more to lose." in text
    assert "300 partitions, put together" in text
    assert "kelr explain -o csv" in text


def test_partitions_that_came_to_other_leaders_have_stories_of_their_own() -> None:
    then = look(replace(many(3), logs={}), INCIDENT.taken_at_ms)
    at = sorted(then.rows)
    states = [
        replace(row, leader=leader, leader_epoch=3, isr=(leader,))
        for row, leader in zip(many(3).partitions, (3, 2, 2), strict=True)
    ]
    now = look(replace(INCIDENT, partitions=tuple(states)))
    page = html(material(now, before=then, partitions=tuple(at)))
    assert [re.findall(r">(t:\d)</h3>", page), page.count("Stands for 2 partitions")] == [["t:1", "t:0"], 1]
    assert "The others: t:2" in page


def test_affected_are_those_with_a_reason() -> None:
    healthy = look(replace(INCIDENT, partitions=(INCIDENT.partitions[0],)))
    assert figures(material(healthy)).affected == ()
    record = replace(audited(), partition=0)
    assert figures(material(healthy, done=Done("a", (record,)))).affected == (TopicPartition("orders", 0),)


# The page.


class Page(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


def whole() -> Material:
    """Everything that there can be, with hostile words wherever words come from elsewhere."""
    brokers = tuple(replace(broker, rack=HOSTILE) for broker in INCIDENT.cluster.brokers)
    cluster: Cluster = replace(INCIDENT.cluster, brokers=brokers)
    states: tuple[PartitionState, ...] = (*INCIDENT.partitions, replace(LEADERLESS, topic="x" * 249, partition=0))
    now = look(replace(INCIDENT, cluster=cluster, partitions=states), name=HOSTILE)
    record = audited(error=HOSTILE, force_reason=HOSTILE, text=HOSTILE)
    run = OpenRun(HOSTILE, HOSTILE, HOSTILE, NOW_MS, 3)
    return material(
        now,
        title=HOSTILE,
        before=THEN,
        told=told(ElectedAs.UNCLEAN),
        done=Done(HOSTILE, (record, replace(record, user=HOSTILE, host=HOSTILE)), (run,), 2),
        gaps=(Gap(HOSTILE, HOSTILE),),
        advice={ONE: HOSTILE},
        commands=dict.fromkeys(("explain", "csv", "resume"), HOSTILE),
    )


@pytest.mark.parametrize("made", [whole(), material(look(replace(INCIDENT, partitions=())))])
def test_a_page_is_whole_and_asks_for_nothing(made: Material) -> None:
    text = html(made)
    page = Page(text)
    assert page.open == []
    assert page.of("script", "link", "img", "iframe", "object", "embed", "base", "form") == []
    assert not [
        value for _, attributes in page.tags for value in (attributes.get("src"), attributes.get("href")) if value
    ]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert re.findall(r"url\((?!#)", text) == []
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_a_page_can_be_read_without_eyes() -> None:
    text = html(whole())
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    drawings = [one for one in page.of("svg") if one.get("aria-hidden") != "true"]
    assert drawings
    for one in drawings:
        assert one["role"] == "img"
        assert set((one["aria-labelledby"] or "").split()) <= set(ids)
    assert len(page.of("table")) == len(page.of("caption")) == len(page.of("thead"))
    assert all(one.get("scope") in {"col", "row"} for one in page.of("th"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def rgb(color: str) -> list[float]:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    lights = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (rgb(one), rgb(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def test_colours_stand_out_by_day_by_night_and_on_paper() -> None:
    style = files("kelr.page").joinpath("templates", "page.css").read_text(encoding="utf-8")
    schemes: Iterable[str] = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    schemes = list(schemes)
    assert len(schemes) == 3
    for scheme in schemes:
        colors = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        for letters in ("ink", "soft", "bad"):
            assert min(contrast(colors[letters], colors[paper]) for paper in ("paper", "raised")) >= 4.5
        for shape in ("info", "warn", "bad", "good", "soft"):
            assert contrast(colors[shape], colors["paper"]) >= 3


def test_a_moment_without_a_leader_is_seen_in_a_band() -> None:
    day = 86_400_000
    turns = (Turn(0, Light.LED), Turn(NOW_MS - day, Light.LEADERLESS), Turn(NOW_MS - day + 5, Light.LED, 2, False))
    drawn = bands(material(THEN, told=replace(told(None), turns={ONE: turns}, begins_ms=NOW_MS - 2 * day)))
    assert drawn is not None
    (_, wide) = re.findall(r'width="([0-9.]+)" height="[0-9.]+" class="leaderless"', drawn.svg)
    assert float(wide) >= 2
    assert drawn.svg.count('class="unclean"') == 2
    assert bands(material(THEN)) is None


def test_partitions_that_never_rest_make_no_endless_page() -> None:
    lights = (Light.LEADERLESS, Light.ALONE, Light.LED)
    turns = tuple(Turn(NOW_MS - 20_000 + number, lights[number % 3], number % 3, False) for number in range(20_000))
    addresses = [TopicPartition("orders", number) for number in range(40)]
    told_much = replace(told(None), turns=dict.fromkeys(addresses, turns), begins_ms=NOW_MS - 30_000)
    drawn = bands(material(THEN, told=told_much))
    assert drawn is not None
    assert (len(drawn.shown), drawn.left_out) == (24, 16)
    assert len(drawn.svg) < 3_000_000


def test_a_timeline_leaves_out_what_tells_least_and_says_so() -> None:
    records = tuple(replace(audited(), at_ms=NOW_MS - number, plan_id=str(number)) for number in range(300))
    found = timeline(material(THEN, done=Done("a", records)), most=50)
    assert (len(found.rows), found.left_out) == (50, 251)
    assert [row.at_ms for row in found.rows] == sorted(row.at_ms for row in found.rows)


# For a chat channel.


@cache
def look_at(count: int, topic: str) -> Look:
    return look(many(count, topic))


@given(st.integers(0, 400), st.text(max_size=300), st.sampled_from((1, 60, 249)))
def test_a_chat_message_is_short_and_its_blocks_are_closed(count: int, words: str, length: int) -> None:
    every = look_at(min(count, 15), "t" * length)
    records = tuple(replace(audited(), partition=number, text=words, host=words or "h") for number in range(count))
    made = material(every, title=words, done=Done(words, records), gaps=(Gap(words),) * 5)
    text = chat(made)
    assert len(text) < LONGEST
    assert sum(line.startswith("```") for line in text.splitlines()) % 2 == 0
    assert text.isprintable() or set(text) - {"\n"} == {one for one in text if one.isprintable()}


def test_a_chat_message_has_the_whole_condition_of_a_promise() -> None:
    grade = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    promised = audited(loss={"grade": grade, "committed": [0, 0], "total": [0, 0], "min_isr": 2})
    text = chat(material(look(led(3, 3)), done=Done("a", (promised,))))
    condition = "of what was committed with min ISR 2, if fewer than 2 replicas lost data"
    assert any(line.startswith("orders:1") and line.endswith(f"none {condition}") for line in text.splitlines())
    assert f"committed offsets lost; {condition} " in text


def test_a_chat_message_says_the_same() -> None:
    made = material(look(led(3, 3)), before=THEN, done=Done("a", (audited(),)))
    text = chat(made)
    said = "Committed offsets lost: UNKNOWN, at least 4. Offsets lost in all: UNKNOWN, at least 19"
    assert f"{said} (1 election; unknown: 1)." in text
    assert re.search(r"orders:1 +3 +UNKNOWN, at least 4 +UNKNOWN, at least 19 +unknown\n", text)
    assert re.search(r"ada@laptop +orders:1 +done\n", text)
    assert "<script" not in chat(whole())


# Logs as drawings.


def test_drawn_logs_stay_within_their_frame_and_in_order() -> None:
    state = INCIDENT.partitions[3]
    bars = log_bars(decide(INCIDENT, state), INCIDENT.logs[state.address])
    svg = draw_logs("logs-1", "Logs", bars)
    width, height = map(float, re.findall(r'viewBox="0 0 ([0-9]+) ([0-9]+)"', svg)[0])
    rects = re.findall(r'<rect x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)" height="([0-9.]+)" class="([a-z-]+)"', svg)
    assert all(float(x) + float(wide) <= width and float(y) + float(tall) <= height for x, y, wide, tall, _ in rects)
    assert all(float(wide) >= 6 for _, _, wide, _, _ in rects)
    # Broker 3 leads with the best log; 2 parted from it at 30 and gives 30 to 44 up; 1 was not heard.
    shown = [kind for _, y, _, tall, kind in rects if float(tall) == 16]
    assert (shown.count("same"), shown.count("cut-different"), shown.count("cut")) == (6, 2, 0)
    assert svg.count('class="unheard"') == 1
    assert "2 would truncate 15 offsets (30..44) to follow 3" in svg


def test_without_any_log_nothing_is_drawn() -> None:
    assert draw_logs("logs-1", "Logs", log_bars(decide(INCIDENT, LEADERLESS), ())) == ""
