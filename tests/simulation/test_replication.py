"""Leader, followers, high watermark and acknowledgements of one partition."""

from __future__ import annotations

from kelr.simulation.logs import Acks, SimulatedLog
from kelr.simulation.replication import (
    HighWatermarkRule,
    Replication,
    assigned,
    caught_up,
    cut,
    deleted_before,
    fetched,
    led,
    produced,
    proposed,
    settled,
    stopped,
    withdrawn,
)

MIN_ISR_2 = HighWatermarkRule(2)
BEFORE_3_7 = HighWatermarkRule(2, needs_min_isr=False)
FOLLOWERS = {2: 20, 3: 30}


def healthy(*replicas: int, rule: HighWatermarkRule = MIN_ISR_2) -> Replication:
    """Replica 1 leads in epoch 0; all are in sync and empty."""
    replicas = replicas or (1, 2, 3)
    return led(Replication({replica: SimulatedLog() for replica in replicas}), 1, 0, replicas, rule)


def with_records(count: int = 4, acks: Acks = Acks.ALL) -> Replication:
    """Everybody has these records and knows that they are committed."""
    before = produced(healthy(), count, acks, MIN_ISR_2, first_id=0).replication
    return settled(before, dict(FOLLOWERS), MIN_ISR_2)


def high_watermark(state: Replication) -> int:
    assert state.leader_log is not None
    return state.leader_log.high_watermark


def test_a_fetch_commits_only_what_the_follower_had_before_it() -> None:
    state = produced(healthy(1, 2), 3, Acks.ALL, MIN_ISR_2, first_id=0).replication
    first = fetched(state, 2, MIN_ISR_2)
    assert (first.logs[2].end, high_watermark(first), first.ledger.committed) == (3, 0, frozenset())
    second = fetched(first, 2, MIN_ISR_2)
    assert (high_watermark(second), second.logs[2].high_watermark) == (3, 0)
    assert second.ledger.committed == {0, 1, 2}
    assert fetched(second, 2, MIN_ISR_2).logs[2].high_watermark == 3


def test_the_high_watermark_waits_for_every_isr_member() -> None:
    state = produced(healthy(), 3, Acks.ALL, MIN_ISR_2, first_id=0).replication
    assert settled(state, {2: 20}, MIN_ISR_2).ledger.committed == frozenset()
    assert settled(state, dict(FOLLOWERS), MIN_ISR_2).ledger.committed == {0, 1, 2}


def test_under_min_isr_the_high_watermark_stands_still_and_acks_all_is_refused() -> None:
    alone = led(with_records(), 1, 0, (1,), MIN_ISR_2)
    refused = produced(alone, 1, Acks.ALL, MIN_ISR_2, first_id=100)
    assert (refused.error, refused.replication) == ("NOT_ENOUGH_REPLICAS", alone)
    taken = produced(alone, 2, Acks.LEADER, MIN_ISR_2, first_id=100)
    assert (taken.error, high_watermark(taken.replication)) == ("NONE", 4)
    assert taken.replication.ledger.acknowledged == {100, 101}
    assert 100 not in taken.replication.ledger.visible


def test_kafka_before_3_7_advances_the_high_watermark_with_any_isr() -> None:
    alone = led(with_records(), 1, 0, (1,), BEFORE_3_7)
    taken = produced(alone, 2, Acks.LEADER, BEFORE_3_7, first_id=100).replication
    assert high_watermark(taken) == 6
    assert 101 in taken.ledger.visible


def test_the_replica_count_caps_min_isr() -> None:
    state = produced(healthy(1, rule=HighWatermarkRule(3)), 1, Acks.ALL, HighWatermarkRule(3), first_id=0)
    assert state.error == "NONE"
    assert state.replication.ledger.committed == {0}


def test_a_proposed_replica_holds_the_high_watermark_back_but_does_not_count_for_min_isr() -> None:
    """KIP-966's question: ISR=[1], maximal ISR=[1,2], min ISR 2."""
    alone = led(healthy(), 1, 0, (1,), MIN_ISR_2)
    written = produced(alone, 2, Acks.LEADER, MIN_ISR_2, first_id=0).replication
    asking = proposed(settled(written, {2: 20}, MIN_ISR_2), (1, 2))
    assert high_watermark(settled(asking, {2: 20}, MIN_ISR_2)) == 0
    committed = led(asking, 1, 0, (1, 2), MIN_ISR_2)
    assert high_watermark(committed) == 2


def test_the_maximal_isr_counts_until_the_request_is_withdrawn() -> None:
    rule = HighWatermarkRule(1)
    state = led(healthy(), 1, 0, (1,), rule)
    asking = proposed(state, (1, 2))
    written = produced(asking, 2, Acks.ALL, rule, first_id=0).replication
    assert high_watermark(written) == 0
    assert withdrawn(written, rule).ledger.committed == {0, 1}


def test_a_proposal_carries_the_broker_epochs_of_the_last_fetches() -> None:
    state = proposed(fetched(led(healthy(), 1, 0, (1,), MIN_ISR_2), 2, MIN_ISR_2, broker_epoch=20), (1, 2))
    assert state.leadership is not None
    assert dict(state.leadership.proposed_epochs) == {2: 20}


def test_a_new_leader_keeps_its_log_and_forgets_what_followers_had() -> None:
    ahead = produced(with_records(), 2, Acks.LEADER, MIN_ISR_2, first_id=100).replication
    state = led(ahead, 2, 1, (2, 3), MIN_ISR_2)
    assert state.leadership is not None
    assert (state.leadership.epoch_start, dict(state.leadership.ends)) == (4, {})
    assert state.logs[1].end == 6


def test_an_old_leader_gives_up_what_only_it_had() -> None:
    ahead = produced(with_records(), 2, Acks.LEADER, MIN_ISR_2, first_id=100).replication
    state = produced(led(ahead, 2, 1, (2, 3), MIN_ISR_2), 1, Acks.LEADER, MIN_ISR_2, first_id=200).replication
    state = settled(state, {1: 11, 3: 30}, MIN_ISR_2)
    assert state.logs[1].records == state.logs[2].records == state.logs[3].records
    assert {100, 101}.isdisjoint(state.logs[1].ids)


def test_producers_that_waited_at_another_leader_get_no_acknowledgement() -> None:
    state = produced(with_records(), 1, Acks.ALL, MIN_ISR_2, first_id=100).replication
    state = settled(state, {2: 20}, MIN_ISR_2)
    state = settled(led(state, 2, 1, (2, 3), MIN_ISR_2), {3: 30}, MIN_ISR_2)
    assert 100 in state.ledger.visible
    assert 100 not in state.ledger.committed


def test_a_smaller_isr_commits_what_waited_for_the_replica_that_left() -> None:
    state = settled(produced(with_records(), 2, Acks.ALL, MIN_ISR_2, first_id=100).replication, {2: 20}, MIN_ISR_2)
    assert 100 not in state.ledger.committed
    assert {100, 101} <= led(state, 1, 0, (1, 2), MIN_ISR_2).ledger.committed


def test_records_of_an_isr_that_fell_below_min_isr_are_not_acknowledged() -> None:
    state = settled(produced(with_records(), 2, Acks.ALL, BEFORE_3_7, first_id=100).replication, {}, BEFORE_3_7)
    alone = led(state, 1, 0, (1,), BEFORE_3_7)
    assert 100 in alone.ledger.visible
    assert 100 not in alone.ledger.committed


def test_nobody_leads() -> None:
    state = led(with_records(), None, 1, (), MIN_ISR_2)
    assert produced(state, 1, Acks.LEADER, MIN_ISR_2, first_id=9).error == "LEADER_NOT_AVAILABLE"
    assert fetched(state, 2, MIN_ISR_2) == state
    assert deleted_before(state, 2) == state
    assert not caught_up(state, 1)


def test_who_has_caught_up() -> None:
    state = led(with_records(), 1, 0, (1, 2), MIN_ISR_2)
    assert caught_up(state, 1)
    assert caught_up(state, 3)
    ahead = settled(produced(state, 2, Acks.ALL, MIN_ISR_2, first_id=100).replication, {2: 20}, MIN_ISR_2)
    assert not caught_up(ahead, 3)
    assert caught_up(settled(ahead, {3: 30}, MIN_ISR_2), 3)


def test_a_follower_that_has_not_fetched_in_this_epoch_has_not_caught_up() -> None:
    state = led(with_records(), 2, 1, (2, 3), MIN_ISR_2)
    assert not caught_up(state, 1)


def test_a_follower_must_reach_the_start_of_the_leaders_epoch() -> None:
    """Its high watermark may lag; what the new leader had when its epoch began may be committed all the same."""
    state = settled(produced(with_records(), 2, Acks.ALL, MIN_ISR_2, first_id=100).replication, {2: 20}, MIN_ISR_2)
    state = fetched(led(state, 2, 1, (2,), MIN_ISR_2), 3, MIN_ISR_2, limit=0)
    assert state.logs[3].end == high_watermark(state) == 4
    assert not caught_up(state, 3)


def test_what_a_leader_loses_is_lost_only_where_no_log_has_it() -> None:
    state = cut(with_records(), 1, 2)
    assert state.lost_by(1) == {2, 3}
    assert state.gone == frozenset()
    following_it = settled(led(state, 1, 1, (1,), MIN_ISR_2), dict(FOLLOWERS), MIN_ISR_2)
    assert following_it.gone == {2, 3}


def test_records_of_acks_1_count_for_no_loss_of_committed_data() -> None:
    state = cut(with_records(acks=Acks.LEADER), 1, 0)
    assert state.lost_by(1) == frozenset()


def test_what_was_deleted_on_purpose_is_not_lost() -> None:
    state = settled(deleted_before(with_records(), 3), dict(FOLLOWERS), MIN_ISR_2)
    assert [log.start for log in state.logs.values()] == [3, 3, 3]
    assert state.gone == frozenset()


def test_nothing_above_the_high_watermark_is_deleted() -> None:
    alone = led(with_records(), 1, 0, (1,), MIN_ISR_2)
    ahead = produced(alone, 5, Acks.LEADER, MIN_ISR_2, first_id=100).replication
    assert deleted_before(ahead, 9).logs[1].start == 4


def test_another_assignment_adds_empty_logs_and_deletes_dropped_ones() -> None:
    state = assigned(with_records(), (1, 2, 4))
    assert (sorted(state.logs), state.logs[4]) == ([1, 2, 4], SimulatedLog())
    assert assigned(state, (4, 2, 1)) == state


def test_a_leader_outside_the_assignment_leads_nothing() -> None:
    assert led(with_records(), 7, 3, (7,), MIN_ISR_2).leadership is None


def test_the_same_leader_in_a_new_epoch_keeps_its_producers_waiting() -> None:
    state = produced(with_records(), 1, Acks.ALL, MIN_ISR_2, first_id=100).replication
    state = led(state, 1, 1, (1, 2, 3), MIN_ISR_2)
    assert 100 in settled(state, dict(FOLLOWERS), MIN_ISR_2).ledger.committed


def test_a_leader_that_does_not_run_commits_nothing() -> None:
    state = settled(produced(with_records(), 1, Acks.ALL, MIN_ISR_2, first_id=100).replication, {2: 20}, MIN_ISR_2)
    assert 100 not in led(state, 1, 0, (1, 2), MIN_ISR_2, running=False).ledger.committed
    asking = proposed(led(state, 1, 0, (1, 2), MIN_ISR_2, running=False), (1, 2, 3))
    assert 100 not in withdrawn(asking, MIN_ISR_2, running=False).ledger.committed
    assert 100 in withdrawn(asking, MIN_ISR_2).ledger.committed


def test_a_process_that_ends_forgets_followers_and_producers_and_cannot_take_back_its_request() -> None:
    state = settled(produced(with_records(), 1, Acks.ALL, MIN_ISR_2, first_id=100).replication, {2: 20}, MIN_ISR_2)
    state = proposed(state, (1, 2))
    ended = stopped(state, 1).leadership
    assert ended is not None
    assert (ended.ends, ended.broker_epochs, ended.waiting) == ({}, {}, frozenset())
    assert (ended.proposed, ended.proposed_epochs) == ((1, 2), {2: 20})
    assert stopped(state, 2) == state
