"""Watching: what two looks tell of what happened between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine.watching import (
    BrokerChange,
    Counts,
    Elected,
    PartitionChange,
    Readings,
    Sight,
    Story,
    Watched,
    changes_between,
    elected_between,
)
from kelr.model import (
    BrokerStatus,
    Cluster,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Situation,
    TopicError,
    TopicPartition,
)

AT = TopicPartition("orders", 3)
NO_LEADER = PartitionState("orders", 3, None, 5, (1, 2, 3), (), (2,), (1,), topic_id="a")
LED = replace(NO_LEADER, leader=1, leader_epoch=4, isr=(1, 2), elr=(), last_known_elr=())


def sight(partitions: dict[TopicPartition, Watched], brokers: dict[int, BrokerStatus], at_ms: int = 0) -> Sight:
    return Sight(at_ms, Cluster("c", ()), brokers, partitions)


# Changes.

ADDRESSES = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))
MEMBERS = st.lists(st.integers(1, 3), unique=True).map(tuple)
WATCHED = st.builds(
    Watched,
    st.builds(
        PartitionState,
        st.just("a"),
        st.just(0),
        st.none() | st.integers(1, 3),
        st.integers(0, 3),
        st.just((1, 2, 3)),
        MEMBERS,
        st.none() | MEMBERS,
    ),
    st.sampled_from(Situation),
)
SIGHTS = st.builds(
    sight,
    st.dictionaries(ADDRESSES, WATCHED),
    st.dictionaries(st.integers(1, 4), st.sampled_from(BrokerStatus)),
)


@given(SIGHTS, SIGHTS)
def test_the_changes_make_the_second_look_of_the_first(before: Sight, after: Sight) -> None:
    brokers, partitions = dict(before.brokers), dict(before.partitions)
    for change in changes_between(before, after):
        if isinstance(change, BrokerChange):
            put(brokers, change.broker, change.after)
        else:
            put(partitions, change.address, change.after)
    assert (brokers, partitions) == (after.brokers, after.partitions)


def put(into: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = value


@given(SIGHTS)
def test_where_nothing_changed_there_is_no_change(one: Sight) -> None:
    assert changes_between(one, one) == ()


@given(SIGHTS, SIGHTS)
def test_each_change_is_one_and_in_order(before: Sight, after: Sight) -> None:
    changes = changes_between(before, after)
    brokers = [one.broker for one in changes if isinstance(one, BrokerChange)]
    partitions = [one.address for one in changes if isinstance(one, PartitionChange)]
    assert brokers == sorted(set(brokers))
    assert partitions == sorted(set(partitions))
    assert list(changes[: len(brokers)]) == [one for one in changes if isinstance(one, BrokerChange)]
    assert all(one.before != one.after for one in changes)


def test_whether_a_reassignment_was_read_is_no_change() -> None:
    def seen(adding: tuple[int, ...] | None) -> Sight:
        state = replace(NO_LEADER, adding=adding, removing=adding)
        return sight({AT: Watched(state, Situation.WAITING_FOR_ELR)}, {})

    for before, after in ((None, ()), ((), None), ((4,), None), (None, None)):
        assert changes_between(seen(before), seen(after)) == ()
    for before, after in ((None, (4,)), ((), (4,)), ((4,), ())):
        assert len(changes_between(seen(before), seen(after))) == 1


def test_what_is_settled_may_go_without_a_word_and_what_is_not_may_not() -> None:
    settled = Watched(replace(LED, isr=(1, 2, 3)), Situation.HEALTHY)
    behind = Watched(LED, Situation.HEALTHY)
    assert not PartitionChange(AT, settled, None).worth_telling
    assert PartitionChange(AT, behind, None).worth_telling
    assert PartitionChange(AT, Watched(NO_LEADER, Situation.WAITING_FOR_ELR), None).worth_telling


# Elections.


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        # From ISR and ELR, as far as the look before could tell.
        (LED, replace(LED, leader=2, leader_epoch=5), Elected.FROM_ISR),
        (NO_LEADER, replace(NO_LEADER, leader=2, leader_epoch=6), Elected.FROM_ELR),
        # Without a leader nobody joins the ISR: whoever is in neither is elected uncleanly.
        (NO_LEADER, replace(NO_LEADER, leader=3, leader_epoch=6), Elected.UNCLEAN),
        (NO_LEADER, replace(NO_LEADER, leader=1, leader_epoch=6), Elected.LAST_KNOWN_LEADER),
        # With a leader it may have joined between the looks.
        (LED, replace(LED, leader=3, leader_epoch=5), Elected.NOT_KNOWN),
        # Two steps of the epoch hide an election, or a time without a leader.
        (LED, replace(LED, leader=2, leader_epoch=6), Elected.NOT_KNOWN),
        (NO_LEADER, replace(NO_LEADER, leader=2, leader_epoch=7), Elected.NOT_KNOWN),
        (LED, replace(LED, leader_epoch=6), Elected.NOT_KNOWN),
        # The ELR is not known: it might have been in it.
        (replace(NO_LEADER, elr=None), replace(NO_LEADER, leader=3, leader_epoch=6), Elected.NOT_KNOWN),
        # No election at all.
        (LED, replace(LED, leader_epoch=5), None),
        (LED, LED, None),
        (LED, NO_LEADER, None),
        (LED, replace(LED, topic_id="b", leader=2, leader_epoch=5), None),
    ],
)
def test_how_a_leader_was_elected(before: PartitionState, after: PartitionState, how: Elected | None) -> None:
    assert elected_between(before, after, live={1, 2, 3}, elr_enabled=True) is how


def test_who_was_away_is_clean_only_if_its_shutdown_was() -> None:
    back = replace(NO_LEADER, leader=2, leader_epoch=6)
    assert elected_between(NO_LEADER, back, live={1, 3}, elr_enabled=True) is Elected.RETURNED
    in_isr = replace(NO_LEADER, isr=(2,), elr=())
    assert elected_between(in_isr, back, live={1, 3}, elr_enabled=False) is Elected.RETURNED
    # That it was in neither is certain whether it was away or not.
    other = replace(back, leader=3)
    assert elected_between(NO_LEADER, other, live={1}, elr_enabled=True) is Elected.UNCLEAN


def test_changes_tell_elections_by_who_was_live_at_the_look_before() -> None:
    waiting = Watched(NO_LEADER, Situation.WAITING_FOR_ELR)
    led = Watched(replace(NO_LEADER, leader=2, leader_epoch=6), Situation.UNDER_MIN_ISR)
    for status, how in ((BrokerStatus.FENCED, Elected.RETURNED), (BrokerStatus.LIVE, Elected.FROM_ELR)):
        before, after = sight({AT: waiting}, {2: status}), sight({AT: led}, {2: BrokerStatus.LIVE})
        (*_, change) = changes_between(before, after)
        assert isinstance(change, PartitionChange)
        assert change.elected is how


def test_with_elr_off_an_elr_that_is_not_told_is_empty() -> None:
    before = replace(NO_LEADER, elr=None, isr=(1,), last_known_elr=None)
    uncleanly = replace(before, leader=3, leader_epoch=6, isr=(3,))
    live = {1, 2, 3}
    assert elected_between(before, uncleanly, live=live, elr_enabled=False) is Elected.UNCLEAN
    assert elected_between(before, uncleanly, live=live, elr_enabled=None) is Elected.NOT_KNOWN
    assert elected_between(before, replace(uncleanly, leader=1), live=live, elr_enabled=False) is Elected.FROM_ISR


# Since when, and whether all is well.


def test_since_when_begins_anew_with_the_situation_and_not_with_a_look() -> None:
    waiting, unsafe = Watched(NO_LEADER, Situation.WAITING_FOR_ELR), Watched(LED, Situation.UNDER_MIN_ISR)
    story = Story.beginning(sight({AT: waiting}, {}, 1000))
    assert (story.since[AT].at_ms, story.since[AT].before_the_watch) == (1000, True)
    story, _ = story.after(sight({AT: replace(waiting, state=replace(NO_LEADER, isr=(3,)))}, {}, 2000))
    assert (story.since[AT].at_ms, story.since[AT].before_the_watch) == (1000, True)
    story, changes = story.after(sight({AT: unsafe}, {}, 3000))
    assert (story.since[AT].at_ms, story.since[AT].before_the_watch) == (3000, False)
    assert [one.after for one in changes if isinstance(one, PartitionChange)] == [unsafe]


def test_since_when_begins_anew_with_a_topic_of_the_same_name() -> None:
    waiting = Watched(NO_LEADER, Situation.WAITING_FOR_ELR)
    story = Story.beginning(sight({AT: waiting}, {}, 1000))
    anew = replace(waiting, state=replace(NO_LEADER, topic_id="another", leader_epoch=1))
    story, _ = story.after(sight({AT: anew}, {}, 2000))
    assert (story.since[AT].at_ms, story.since[AT].before_the_watch) == (2000, False)


def test_what_could_not_be_read_is_not_healthy() -> None:
    fine = sight({AT: Watched(LED, Situation.HEALTHY)}, {})
    assert fine.healthy
    assert not replace(fine, topic_errors=(TopicError("secret", "TOPIC_AUTHORIZATION_FAILED"),)).healthy
    assert not sight({AT: Watched(LED, Situation.UNKNOWN)}, {}).healthy


def test_what_brokers_tell_that_hear_no_controller_is_not_healthy() -> None:
    assert not replace(sight({AT: Watched(LED, Situation.HEALTHY)}, {}), controller_silence="no answer").healthy


def test_up_to_when_a_controller_was_heard() -> None:
    story = Story.beginning(replace(sight({}, {}, 1000), controller_silence="no answer"))
    heard = [story.heard_ms]
    for at_ms, silence in ((2000, None), (3000, "no answer"), (4000, "no answer"), (5000, None)):
        story, _ = story.after(replace(sight({}, {}, at_ms), controller_silence=silence))
        heard.append(story.heard_ms)
    assert heard == [None, 2000, 2000, 2000, 5000]
    assert Story.beginning(sight({}, {}, 1000)).heard_ms == 1000


# Log ends as they arrive.


def answers(at_ms: int, best: int, behind: int) -> dict[TopicPartition, tuple[ReplicaLog, ReplicaLog]]:
    return {AT: (ReplicaLog(1, best, read_at_ms=at_ms), ReplicaLog(2, behind, read_at_ms=at_ms))}


def test_the_pace_and_what_is_left() -> None:
    readings = Readings().with_answers(answers(1000, 1000, 100))
    assert readings.pace(AT, 2) is None
    readings = readings.with_answers(answers(3000, 1020, 320))
    assert readings.pace(AT, 2) == 110.0
    # 700 are missing; it comes nearer by 110 - 10 in a second.
    assert readings.left_s(AT, 2, best=1, behind=700) == 7.0
    assert readings.left_s(AT, 2, best=1, behind=None) is None
    assert readings.left_s(AT, 1, best=1, behind=0) is None


def test_who_does_not_come_nearer_never_catches_up() -> None:
    readings = Readings().with_answers(answers(1000, 1000, 100)).with_answers(answers(2000, 1200, 200))
    assert readings.left_s(AT, 2, best=1, behind=1000) is None


def test_what_a_log_did_long_ago_does_not_count_while_there_is_something_newer() -> None:
    readings = Readings()
    for at_ms, end in ((0, 0), (8_000, 8_000), (16_000, 8_000), (24_000, 8_000)):
        readings = readings.with_answers({AT: (ReplicaLog(2, end, read_at_ms=at_ms),)})
    assert readings.pace(AT, 2) == 0.0
    assert readings.with_answers({AT: (ReplicaLog(2, 8_100, read_at_ms=44_000),)}).pace(AT, 2) == 5.0


@pytest.mark.parametrize(
    "then",
    [
        {AT: (LogUnavailable(2, LogUnavailableReason.TIMED_OUT),)},  # it was not heard
        {AT: (ReplicaLog(2, 50, read_at_ms=3000),)},  # it was truncated
        {},  # it was not asked
        {AT: (ReplicaLog(2, 500, read_at_ms=3000 + 61_000),)},  # the readings are too old
    ],
)
def test_a_gap_ends_a_pace(then: dict[TopicPartition, tuple[ReplicaLog | LogUnavailable, ...]]) -> None:
    readings = Readings().with_answers(answers(1000, 0, 100)).with_answers(answers(2000, 0, 200))
    assert readings.pace(AT, 2) is not None
    assert readings.with_answers(then).pace(AT, 2) is None


def test_a_figure_is_not_known_where_min_isr_is_not() -> None:
    judged, unjudged = Counts(read=6), Counts(read=6, not_known=6)
    assert [judged.known(one) for one in ("leaderless", "unsafe", "under_min_isr", "in_trouble")] == [0, 0, 0, 0]
    assert [unjudged.known(one) for one in ("leaderless", "unsafe", "under_min_isr", "in_trouble")] == [
        0,
        None,
        None,
        None,
    ]
    assert Counts(read=6, under_min_isr=2, not_known=1).known("under_min_isr") == 2
    assert [Counts().known(one) for one in ("leaderless", "unsafe")] == [None, None]
