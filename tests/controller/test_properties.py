"""What holds for every run of the controller, whatever the state and the event."""

from __future__ import annotations

from hypothesis import assume, given

from kelr.controller import ELR_4_1_0, KRAFT, Change, Circumstances, Election, change_partition, elect, walk
from kelr.model import ElectedBy, PartitionState
from tests.controller.strategies import MENDED, Passed, circumstances, elections, histories, states
from tests.properties import examples

STEPS = examples(750)


@STEPS
@given(states(), circumstances(), elections)
def test_walk_tells_what_elect_does(state: PartitionState, around: Circumstances, election: Election) -> None:
    ballot = change_partition(state, around, election=election).ballot
    walked = list(walk(ballot))
    decided = [(rule, choice) for rule, choice in walked if choice is not None]
    elected = elect(ballot)
    assert decided in ([], walked[-1:])
    assert (elected.rule, elected.leader) == (decided[0] if decided else (None, None))


@STEPS
@given(states(), circumstances(), elections)
def test_epochs_rise_by_one_exactly_when_something_is_written(
    state: PartitionState, around: Circumstances, election: Election
) -> None:
    change = change_partition(state, around, election=election)
    after = change.after
    assert state.partition_epoch is not None
    assert after.partition_epoch == state.partition_epoch + change.written
    # No replica is dropped here, so only another leader raises the leader epoch.
    assert after.leader_epoch == state.leader_epoch + (after.leader != state.leader)


@STEPS
@given(states(), circumstances(), elections)
def test_a_clean_election_elects_a_live_member_of_the_isr_or_else_of_the_elr(
    state: PartitionState, around: Circumstances, election: Election
) -> None:
    change = change_partition(state, around, election=election)
    leader = change.elected.leader
    if leader is None or change.elected.unclean:
        return
    assert leader in around.electable
    assert leader in (change.ballot.isr or change.ballot.elr)
    assert change.after.recovering == state.recovering


@STEPS
@given(states(), circumstances(MENDED), elections)
def test_an_unclean_election_leaves_only_the_leader_behind(
    state: PartitionState, around: Circumstances, election: Election
) -> None:
    change = change_partition(state, around, election=election)
    if not change.elected.unclean or change.after.leader == state.leader:
        return
    assert change.after.leader in around.electable
    assert (change.after.isr, change.after.elr, change.after.last_known_elr) == ((change.after.leader,), (), ())
    assert change.after.recovering


@STEPS
@given(states(), circumstances(), elections)
def test_the_elr_is_computed_only_below_min_isr(
    state: PartitionState, around: Circumstances, election: Election
) -> None:
    """Before the election: an election from the ELR may leave an ELR beside an ISR at min size until the next run."""
    change = change_partition(state, around, election=election)
    if around.rules.elr and change.ballot.elr:
        assert len(change.ballot.isr) < around.min_isr
    if not around.rules.elr:
        assert change.after.elr == ()


@STEPS
@given(states(), circumstances((KRAFT, ELR_4_1_0, *MENDED)), elections)
def test_a_run_on_its_own_result_settles(state: PartitionState, around: Circumstances, election: Election) -> None:
    """At most one more run writes (it tidies an ELR that an election left behind); then nothing is written.

    Not so on Kafka 4.0: the next run takes the leadership off the dead leader that the first one elected.
    """
    assume(state.leader is None or state.leader in state.isr)
    again = change_partition(change_partition(state, around, election=election).after, around, election=election)
    assert again.after.leader == again.before.leader
    assert not change_partition(again.after, around, election=election).written


@STEPS
@given(histories())
def test_isr_and_elr_never_share_a_member(history: tuple[Passed, ...]) -> None:
    for passed in history:
        assert not set(passed.change.after.isr) & set(passed.change.after.elr or ())


@STEPS
@given(histories(MENDED))
def test_an_unclean_restart_ends_a_place_in_isr_and_elr(history: tuple[Passed, ...]) -> None:
    for passed in history:
        if passed.name == "registered unclean":
            assert passed.broker not in (*passed.change.after.isr, *(passed.change.after.elr or ()))


@STEPS
@given(histories(MENDED))
def test_a_leader_is_a_member_of_its_isr_and_was_live_when_elected(history: tuple[Passed, ...]) -> None:
    for passed in history:
        after = passed.change.after
        if after.leader is None:
            continue
        assert after.leader in after.isr
        if after.leader != passed.change.before.leader:
            assert after.leader in passed.around.electable | {passed.broker}


@STEPS
@given(histories((KRAFT,)))
def test_without_elr_the_isr_never_empties(history: tuple[Passed, ...]) -> None:
    for passed in history:
        assert passed.change.after.isr
        assert passed.change.after.elr == passed.change.after.last_known_elr == ()


@STEPS
@given(histories(MENDED, unclean=False))
def test_unasked_only_the_last_known_leader_is_elected_uncleanly(history: tuple[Passed, ...]) -> None:
    for passed in history:
        if _elected_uncleanly(passed.change):
            assert passed.change.elected.rule is not None
            assert passed.change.elected.rule.by is ElectedBy.LAST_KNOWN_LEADER
            assert passed.change.before.last_known_elr == (passed.change.after.leader,)


def _elected_uncleanly(change: Change) -> bool:
    return change.written and change.after.leader != change.before.leader and change.elected.unclean


@STEPS
@given(histories(MENDED))
def test_a_leaderless_partition_remembers_one_last_known_leader_until_it_is_led(history: tuple[Passed, ...]) -> None:
    for passed in history:
        before, after = passed.change.before, passed.change.after
        if after.leader is not None:
            assert after.last_known_elr == ()
        elif before.leader is not None:
            assert after.last_known_elr == (before.leader,)
        else:
            assert after.last_known_elr == before.last_known_elr
