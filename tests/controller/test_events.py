"""Events as ReplicationControlManager composes them from runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import (
    ELR_4_0,
    ELR_4_3,
    KRAFT,
    Circumstances,
    Election,
    broker_fenced,
    broker_registered,
    broker_returns,
    broker_unfenced,
    broker_unregistered,
    change_partition,
    directory_failed,
    elect_leaders,
    isr_altered,
    min_isr_written,
    replicas_in_order,
    replicas_reordered,
)
from kelr.controller.change import hash_set_order
from kelr.model import ElectedBy, PartitionState

HEALTHY = PartitionState(
    "orders", 0, 1, 5, (1, 2, 3), (1, 2, 3), elr=(), last_known_elr=(), partition_epoch=9, recovering=False
)
WAITING = replace(HEALTHY, leader=None, isr=(), elr=(1, 2), last_known_elr=(1,))
ALL = Circumstances(frozenset({1, 2, 3}), 2, ELR_4_3)
NONE_LIVE = replace(ALL, electable=frozenset())


def test_an_event_of_a_broker_that_is_in_no_set_runs_nothing() -> None:
    """Runs tidy (here: a stale ELR beside a full ISR), so a run where Kafka makes none would be seen."""
    stale = replace(HEALTHY, isr=(1, 2), elr=(2,))
    assert not broker_fenced(stale, 3, ALL).written
    assert not broker_registered(stale, 3, ALL, clean=False).written
    assert not broker_unregistered(stale, 3, ALL).written
    assert not broker_unfenced(stale, 3, ALL).written
    assert directory_failed(stale, 3, ALL).after.elr == ()


def test_the_broker_of_the_event_cannot_be_elected_by_it() -> None:
    lonely = replace(HEALTHY, isr=(1,))
    unclean = replace(ALL, unclean_leader_election=True, electable=frozenset({1}))
    for change in (
        broker_fenced(lonely, 1, unclean),
        broker_registered(lonely, 1, unclean, clean=False),
        broker_unregistered(lonely, 1, unclean),
        directory_failed(lonely, 1, unclean),
    ):
        assert change.after.leader is None


def test_unregistering_looks_at_elr_members_too_and_leaves_them_there() -> None:
    led = replace(HEALTHY, leader=1, isr=(1, 3), elr=(2,))
    assert broker_unregistered(led, 2, ALL).after.elr == ()  # that run finds min ISR met
    assert broker_unregistered(WAITING, 2, NONE_LIVE).after.elr == (1, 2)


def test_a_return_tells_of_the_run_that_elected() -> None:
    """2 leaves the ELR when it registers; that run elects the live last known leader, and unfencing adds nothing."""
    around = replace(ALL, electable=frozenset({1}))
    returned = broker_returns(replace(WAITING, elr=(2,)), 2, around, clean=False)
    assert returned.after.leader == 1
    assert returned.elected.rule is not None
    assert returned.elected.rule.by is ElectedBy.LAST_KNOWN_LEADER
    assert returned.before.elr == (2,)


def test_a_clean_return_is_elected_from_the_elr() -> None:
    returned = broker_returns(WAITING, 2, NONE_LIVE, clean=True)
    assert (returned.after.leader, returned.after.isr, returned.after.elr) == (2, (2,), (1,))
    assert returned.after.last_known_elr == ()


def test_with_elr_off_an_unclean_registration_is_like_a_clean_one() -> None:
    around = replace(ALL, rules=KRAFT)
    clean = broker_registered(HEALTHY, 1, around, clean=True)
    assert broker_registered(HEALTHY, 1, around, clean=False) == clean
    assert clean.after.isr == (2, 3)


def test_the_leader_reports_its_recovery() -> None:
    recovering = replace(HEALTHY, isr=(1,), recovering=True)
    after = isr_altered(recovering, (1, 2), ALL).after
    assert (after.isr, after.recovering, after.leader_epoch) == ((1, 2), False, 5)
    assert isr_altered(recovering, (1,), ALL, recovering=True).written is False


def test_an_unknown_recovery_state_is_not_a_change() -> None:
    assert not isr_altered(replace(HEALTHY, recovering=None), (1, 2, 3), ALL).written


def test_a_min_isr_write_clears_with_elr_on_and_counts_as_one_record() -> None:
    cleared = min_isr_written(WAITING, ALL)
    assert (cleared.elr, cleared.last_known_elr, cleared.partition_epoch) == ((), (), 10)
    assert (cleared.leader, cleared.leader_epoch) == (None, 5)
    assert min_isr_written(WAITING, replace(ALL, rules=KRAFT)) == WAITING
    assert min_isr_written(HEALTHY, ALL) == HEALTHY


@pytest.mark.parametrize(
    ("state", "election", "around", "error"),
    [
        (HEALTHY, Election.PREFERRED, NONE_LIVE, "ELECTION_NOT_NEEDED"),
        (HEALTHY, Election.UNCLEAN, NONE_LIVE, "ELECTION_NOT_NEEDED"),
        (replace(HEALTHY, leader=2), Election.UNCLEAN, ALL, "ELECTION_NOT_NEEDED"),
        (replace(HEALTHY, leader=2), Election.PREFERRED, ALL, "NONE"),
        (replace(HEALTHY, leader=2, isr=(2, 3)), Election.PREFERRED, ALL, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (WAITING, Election.PREFERRED, NONE_LIVE, "PREFERRED_LEADER_NOT_AVAILABLE"),
        (WAITING, Election.UNCLEAN, NONE_LIVE, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        (WAITING, Election.PREFERRED, ALL, "NONE"),
    ],
)
def test_what_elect_leaders_answers(
    state: PartitionState, election: Election, around: Circumstances, error: str
) -> None:
    answer = elect_leaders(state, election, around)
    assert answer.error == error
    assert answer.change.written == (error == "NONE")


def test_reordering_moves_no_live_leader_and_never_elects_uncleanly() -> None:
    moved = replicas_reordered(HEALTHY, 3, replace(ALL, unclean_leader_election=True)).after
    assert (moved.replicas, moved.leader, moved.leader_epoch) == ((3, 1, 2), 1, 5)
    back = replicas_in_order(moved, (1, 2, 3), ALL).after
    assert back == replace(HEALTHY, partition_epoch=11)
    dead = replace(ALL, electable=frozenset({3}), unclean_leader_election=True)
    assert replicas_reordered(WAITING, 3, dead).after.leader is None


def test_reordering_leaves_a_reassignment_under_way() -> None:
    moving = replace(HEALTHY, isr=(1, 2), adding=(3,), removing=(2,))
    after = replicas_reordered(moving, 2, ALL).after
    assert (after.replicas, after.adding, after.removing) == ((2, 1, 3), (3,), (2,))


def test_dropping_replicas_raises_the_leader_epoch_of_the_same_leader() -> None:
    moving = replace(HEALTHY, removing=(3,))
    after = change_partition(moving, ALL, election=Election.ONLINE).after
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((1, 2), (1, 2), 1, 6)


def test_an_unknown_elr_stays_unknown_until_an_isr_at_min_isr_empties_it() -> None:
    """Whoever leaves the ISR below min ISR is in the ELR then, but who else is, nobody can tell."""
    unknown = replace(HEALTHY, isr=(1, 2), elr=None, last_known_elr=None)
    alone = broker_fenced(unknown, 2, ALL).after
    assert (alone.isr, alone.elr, alone.last_known_elr) == ((1,), None, None)
    assert broker_fenced(alone, 1, ALL).after.elr is None
    full = isr_altered(alone, (1, 3), ALL).after
    assert full.elr == ()
    assert broker_fenced(full, 3, ALL).after.elr == (3,)


def test_an_elr_that_hangs_on_an_unknown_min_isr_is_unknown() -> None:
    guessed = replace(ALL, min_isr=1, min_isr_known=False)
    two = replace(HEALTHY, isr=(1, 3), elr=(2,))
    assert broker_fenced(two, 3, guessed).after.elr is None
    assert broker_fenced(replace(two, isr=(1,)), 1, replace(guessed, electable=frozenset())).after.elr == (1, 2)
    assert isr_altered(two, (1, 2, 3), guessed).after.elr == ()
    assert not broker_unfenced(replace(two, leader=None), 9, replace(guessed, electable=frozenset())).written


def test_kafka_4_0_takes_the_leadership_off_a_dead_leader_in_the_next_run() -> None:
    on_paper = replace(HEALTHY, leader=1, isr=(1,), recovering=True)
    around = Circumstances(frozenset({2, 3}), 2, ELR_4_0)
    assert replicas_reordered(on_paper, 3, around).after.leader is None


@pytest.mark.parametrize(
    ("first", "more", "order"),
    [
        ((), (3, 1, 2), (1, 2, 3)),
        ((2,), (17,), (17, 2)),  # 17 falls into bucket 1 of 16
        ((17, 1), (), (17, 1)),  # one bucket: as inserted
        ((), (1, 17), (1, 17)),
        ((), (1001, 1002, 1003), (1001, 1002, 1003)),
        ((65553,), (0, 1), (65553, 0, 1)),  # the high bits are folded in: 65553 ^ 1 is in bucket 0
        ((), tuple(range(20, 7, -1)), tuple(range(8, 21))),  # 13 members: 32 buckets
        ((), tuple(range(20, 8, -1)), (16, 17, 18, 19, 20, 9, 10, 11, 12, 13, 14, 15)),  # 12 members: 16 buckets
        (tuple(range(20, 8, -1)), (), tuple(range(9, 21))),  # a set made of 12 at once takes 32 buckets
    ],
)
def test_order_of_a_java_hash_set(first: tuple[int, ...], more: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert hash_set_order(first, more) == order
