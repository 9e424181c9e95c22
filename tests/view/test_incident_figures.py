"""A report agrees with itself: no sentence of its summary says otherwise than one of its tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelr.model import Bounds, LossCertainty, NotPlanned, Situation, Snapshot, TopicError, TopicPartition, Unplanned
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.replay.history import ElectedAs, Trouble
from kelr.view.incident.chat import chat
from kelr.view.incident.figures import Figures, figures
from kelr.view.incident.material import Done, Look, Material, Planned
from kelr.view.incident.pages import html
from kelr.view.incident.summary import (
    loss_sentence,
    nothing_in_trouble,
    nothing_left,
    nothing_to_explain,
    paragraph,
    tiles,
)
from kelr.view.incident.tables import lost_table
from kelr.view.lost_words import lost_document
from tests.incident import INCIDENT
from tests.view.plans import plan
from tests.view.test_incident import NOW_MS, ONE, THEN, a_log, audited, healthy, led, look, material, told

NOTHING = material(look(replace(INCIDENT, partitions=())))


def replay(records: int, result: str = "done", partition: int = 1, **after: Any) -> AuditRecord:
    """A line of `kelr rescue replay`."""
    names = ("rescue replay", "orders", partition, None, "ada", "laptop", None, result)
    told = {} if result == "begun" else {"records": records, **after}
    evidence = [{"file": "a.kelr-rescue", "source": f"orders:{partition}"}]
    return AuditRecord(NOW_MS, AuditWhat.RESCUE, *names, after=told, evidence=evidence, journal="j")


def said(made: Material) -> tuple[Figures, str]:
    known = figures(made)
    return known, loss_sentence(made, known)


def test_whom_a_plan_elected_nobody_for_was_affected_too() -> None:
    """Nineteen partitions were leaderless; the report counted the two with an election."""
    needs = NotPlanned("orders", 1, Unplanned.ADVISED, Situation.WAITING_FOR_ELR, "Start broker 1.")
    led_then = replace(needs, situation=Situation.UNDER_MIN_ISR, leader=3)
    well = replace(led_then, situation=Situation.HEALTHY, why=Unplanned.NOT_NEEDED)
    now = replace(INCIDENT, partitions=(replace(INCIDENT.partitions[1], leader=3, isr=(1, 2, 3), elr=()),))
    for one, affected, without in ((needs, 1, 1), (led_then, 1, 0), (well, 0, 0)):
        known = figures(material(look(now), planned=Planned("plan.json", plan(one), "p")))
        assert (len(known.affected), len(known.without)) == (affected, without)


# Lost, and produced again.


@pytest.mark.parametrize(
    "loss", [{"grade": "bounded", "committed": [0, None], "total": [0, None], "unheard": [1]}, None]
)
def test_what_was_produced_again_was_lost(loss: dict[str, Any] | None) -> None:
    """Sixty records were produced again, and the report said "lost in all 0 known"."""
    made = material(look(led(3, 3)), before=THEN, done=Done("a", (audited(loss=loss), replay(0, "begun"), replay(60))))
    known, sentence = said(made)
    assert known.in_all.total == Bounds(60)
    assert "Offsets lost in all: UNKNOWN, at least 60" in sentence
    assert "60 records were produced again to 1 partition." in sentence
    (row,) = lost_table(known.lost).rows
    assert row[3] == "UNKNOWN, at least 60"
    assert "60 records that its log had lost were produced again" in row[5]
    assert lost_document(known.lost)["replayed"] == known.replayed.records  # type: ignore[call-overload, index]
    assert ("records produced again", "60") in {(tile.label, tile.value) for tile in tiles(made, known)}
    assert "0 known" not in html(made) + chat(made)


def test_a_count_that_is_too_small_is_none() -> None:
    exact = {"grade": "bounded", "committed": [4, 4], "total": [19, 19], "unheard": []}
    made = material(look(led(3, 3)), before=THEN, done=Done("a", (audited(loss=exact), replay(60))))
    (lost,) = figures(made).lost
    assert (lost.grade, lost.of_all, lost.of_committed) == (LossCertainty.UNKNOWN, Bounds(60), Bounds(4))
    fewer = material(look(led(3, 3)), before=THEN, done=Done("a", (audited(loss=exact), replay(5))))
    assert figures(fewer).in_all.total == Bounds(19, 19)


def test_records_that_were_produced_without_an_election_on_record_were_lost_all_the_same() -> None:
    made = material(look(led(3, 3)), done=Done("a", (replay(7),)))
    assert figures(made).in_all.total == Bounds(7)


def test_what_went_to_another_topic_or_came_from_another_cluster_was_not_lost_here() -> None:
    made = material(look(led(3, 3)), done=Done("a", (replay(7, lost=0),)))
    known, sentence = said(made)
    assert (known.lost, known.replayed.records) == ((), 7)
    assert "7 records were produced again" in sentence


def test_a_replay_that_has_no_end_on_record_leaves_its_number_unknown() -> None:
    made = material(look(led(3, 3)), done=Done("a", (replay(0, "begun"), replay(3), replay(0, "begun", 0))))
    known, sentence = said(made)
    assert known.replayed.unended == 1
    assert "How many more were produced again is not known" in sentence
    assert ("records produced again", "at least 3") in {(tile.label, tile.value) for tile in tiles(made, known)}


# Outages, and looks.


def test_healthy_at_two_looks_is_not_healthy_all_the_time() -> None:
    """Three minutes without a leader between the looks, and the page said "healthy whenever it was looked at"."""
    now = replace(look(led(2, 6)), name="live")
    made = material(now, before=healthy(), told=told(ElectedAs.UNCLEAN))
    page = html(made)
    assert "healthy whenever" not in page
    assert "every partition that was seen was healthy" in page
    assert "At other times 1 partition had no leader, for up to 40.0s: see the timeline." in page


WELL = material(look(led(3, 3)), told=replace(a_log(NOW_MS - 60_000, epochs={ONE: 3}), whole_since_ms=None))
SPAN = "from 2023-11-14 22:13:20 to 2023-11-14 22:14:20 UTC"


@pytest.mark.parametrize(
    "limits",
    [{}, {"whole_since_ms": NOW_MS - 60_000}, {"to_its_end": False}, {"ends_ms": NOW_MS - 60_001}, {"elr_on": False}],
)
def test_that_all_was_well_is_said_of_the_time_that_the_metadata_log_tells_of(limits: dict[str, Any]) -> None:
    """The log was begun by a checkpoint, or asked for from or up to a moment, and the page said 0 and "none" of all
    times."""
    assert WELL.told is not None
    made = replace(WELL, told=replace(WELL.told, **limits))
    known = figures(made)
    shown, text = {tile.label: tile.value for tile in tiles(made, known)}, paragraph(made, known)
    of_all = limits.keys() <= {"elr_on"}
    span = SPAN if "ends_ms" not in limits else SPAN.replace("22:14:20", "22:13:19")
    if limits == {"elr_on": False}:
        assert text.startswith(f"By the metadata log, {span}, no partition was without a leader, and in the newest")
        assert "which without ELR proves nothing" in text
    else:
        assert text.startswith(f"By the metadata log, {span}, and in the newest look, no partition was in trouble.")
        assert ("Of other times it tells nothing." in text) is not of_all
    within = "" if of_all else f", {span}"
    assert shown[f"longest time without a leader{within}"] == "none"
    assert [label for label in shown if "affected" in label] == [
        "partitions affected" + ("" if of_all else ", as far as is known")
    ]
    if "elr_on" not in limits:
        assert shown[f"committed offsets lost{within}; every election that the metadata log tells of was clean"] == "0"


def test_an_outage_is_the_longest_only_where_all_times_are_told_of() -> None:
    for whole_since_ms, longest in ((None, "longest"), (NOW_MS - 100_000, "longest known")):
        made = material(look(led(3, 3)), told=replace(told(ElectedAs.UNCLEAN), whole_since_ms=whole_since_ms))
        known = figures(made)
        assert f"The {longest} time without a leader was 40.0s (orders:1)" in paragraph(made, known)
        (label,) = (tile.label for tile in tiles(made, known) if "longest" in tile.label)
        assert label.endswith(", as far as is known") is (whole_since_ms is not None)


def test_a_partition_that_was_seen_without_a_leader_was_without_one_for_some_time() -> None:
    # The metadata log begins later, and tells of no time without a leader.
    quiet = a_log(NOW_MS - 1000, epochs={ONE: 3})
    made = material(look(led(3, 3)), before=THEN, told=quiet)
    known = figures(made)
    assert (known.outage, known.longest_is_known) == (None, False)
    assert {tile.value for tile in tiles(made, known) if "longest" in tile.label} == {"?"}
    assert "1 partition had no leader for a time; for how long is not known." in paragraph(made, known)
    # In the same leader epoch nobody led between two looks.
    still = material(look(replace(INCIDENT, partitions=(INCIDENT.partitions[1],))), before=THEN)
    assert "The longest known time without a leader was at least 1m00s (orders:1), from one look to the other." in (
        paragraph(still, figures(still))
    )


def deaf(one: Look) -> Look:
    return replace(one, cluster=replace(one.cluster, controller_silence="REQUEST_TIMED_OUT"))


HEALTHY = look(replace(INCIDENT, partitions=(INCIDENT.partitions[0],)))


@pytest.mark.parametrize(
    "made",
    [
        material(deaf(HEALTHY)),
        material(replace(HEALTHY, rows={}), partitions=(ONE,)),
        material(replace(HEALTHY, rows={}, saw_any=False), partitions=()),
        material(replace(HEALTHY, errors=(TopicError("secret", "TOPIC_AUTHORIZATION_FAILED"),))),
    ],
)
def test_a_look_that_was_not_whole_gives_no_all_clear(made: Material) -> None:
    known = figures(made)
    assert not known.current
    assert {tile.value for tile in tiles(made, known) if tile.label == "without a leader now"} == {"?"}
    assert "nothing is left to do" not in nothing_left(known)
    assert "No partition is in trouble" not in nothing_in_trouble(made, known)
    text = paragraph(made, known)
    assert "UNKNOWN" in text
    assert re.search("No partition was found in trouble\\.", text) is None or not made.now.errors
    assert made.now.saw_any or "nothing is known of any" in text


def test_a_whole_look_gives_one() -> None:
    known = figures(NOTHING)
    assert known.current
    assert nothing_left(known) == "As far as these sources tell, nothing is left to do."
    assert nothing_in_trouble(NOTHING, known).startswith("No partition is in trouble")


def test_a_partition_that_was_leaderless_and_is_not_seen_any_more_may_have_lost_something() -> None:
    made = material(replace(HEALTHY, rows={}), before=THEN, partitions=(ONE,))
    known, sentence = said(made)
    assert known.in_all.unknown == 1
    assert "Committed offsets lost: UNKNOWN." in sentence


# Whatever the material is.

bounds = st.none() | st.tuples(st.integers(0, 40), st.none() | st.integers(0, 40)).map(
    lambda pair: [pair[0], None if pair[1] is None else pair[0] + pair[1]]
)
records = st.builds(
    lambda grade, committed, total, unheard, result: audited(
        result, loss={"grade": grade, "committed": committed, "total": total, "unheard": unheard}
    ),
    st.sampled_from([*LossCertainty, "made-up"]).map(str),
    bounds,
    bounds,
    st.lists(st.integers(1, 3), max_size=2),
    st.sampled_from(["done", "other-leader", "refused", "unknown", "not-restored"]),
)
replays = st.builds(replay, st.integers(0, 60), st.sampled_from(["done", "failed", "begun"]))
LEFT: Snapshot = replace(INCIDENT, partitions=(INCIDENT.partitions[1],))
looks: st.SearchStrategy[Look] = st.sampled_from(
    [look(led(3, 3)), look(led(2, 5)), look(LEFT), deaf(look(led(3, 3))), replace(HEALTHY, rows={})]
)
logs = st.none() | st.sampled_from([None, *ElectedAs]).map(told)
materials = st.builds(
    lambda now, before, log, elections, again, audit: material(
        now,
        before=before,
        told=log,
        done=Done("a", (*elections, *again)) if audit else None,
        partitions=(ONE,),
    ),
    looks,
    st.sampled_from([None, THEN, healthy()]),
    logs,
    st.lists(records, max_size=2),
    st.lists(replays, max_size=2),
    st.booleans(),
)


def _no_zero_where_a_row_is_unknown(made: Material, known: Figures, text: str) -> None:
    rows = lost_table(known.lost).rows
    lost = {tile.label.partition(";")[0]: tile.value for tile in tiles(made, known)}
    for column, sentence, label in (
        (2, "Committed offsets lost", "committed offsets lost"),
        (3, "Offsets lost in all", "offsets lost in all, committed or not"),
    ):
        if any("UNKNOWN" in row[column] for row in rows):
            assert f"{sentence}: UNKNOWN" in text
            assert lost[label].startswith("UNKNOWN")
    least = sum(int(found[-1]) for row in rows if (found := re.findall("[0-9]+", row[3].partition(" to ")[0])))
    assert known.in_all.total.at_least == least


def _nothing_is_lost_only_where_nothing_speaks_against_it(made: Material, known: Figures, text: str) -> None:
    if "No election is known that lost anything" in text:
        assert not known.lost
        assert made.told is not None
        assert not known.replayed.lost
        assert not any(one.unsafe for one in made.told.summaries.values())


def _what_was_produced_again_was_lost(made: Material, known: Figures, text: str) -> None:
    rows = () if made.done is None else made.done.rows
    again = sum(row.after.get("records", 0) for row in rows if row.what == AuditWhat.RESCUE)
    assert known.in_all.total.at_least >= again
    assert (f"{again:,} record" in text) or not again


def _who_had_no_leader_is_never_healthy_throughout(made: Material, known: Figures, text: str) -> None:
    spans = (
        [] if made.told is None else [one for one in made.told.summaries.values() if Trouble.LEADERLESS in one.spans]
    )
    explained = nothing_to_explain(made, known)
    if spans or (made.before is not None and made.before.leaderless):
        assert known.without
        assert known.affected
        assert "no partition was" not in text.lower()
        assert "neither look" not in text
        assert "had no leader" in explained or "No partition of this report was seen" in explained
        assert {tile.value for tile in tiles(made, known) if "longest" in tile.label} != {"none"}


@pytest.mark.parametrize(
    "agrees",
    [
        _no_zero_where_a_row_is_unknown,
        _nothing_is_lost_only_where_nothing_speaks_against_it,
        _what_was_produced_again_was_lost,
        _who_had_no_leader_is_never_healthy_throughout,
    ],
)
@given(made=materials)
def test_no_sentence_says_otherwise_than_a_table(
    agrees: Callable[[Material, Figures, str], None], made: Material
) -> None:
    known = figures(made)
    agrees(made, known, paragraph(made, known))


@settings(max_examples=30)
@given(materials)
def test_page_message_and_document_have_the_same_figures(made: Material) -> None:
    known = figures(made)
    page, message = html(made), chat(made)
    assert "0 known" not in page + message
    for tile in tiles(made, known):
        assert tile.value in page
        assert tile.value in message
    assert TopicPartition("orders", 1) in {*known.affected, ONE}
