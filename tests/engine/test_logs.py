"""Comparing logs: agreement is where Kafka truncates, and what is missing is counted by (epoch, offset)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine import agreement, diverges_at, rank_logs, segments
from kelr.engine.logs import KnownLogs, Segment, count_distinct, missing, verified
from kelr.model import Broker, BrokerStatus, Cluster, EpochEnd, LogUnavailable, LogUnavailableReason, ReplicaLog
from tests.engine.cases import leaderless, log_of, silent

Record = tuple[int, int]
"""(epoch, offset)"""


def test_the_shorter_log_of_one_lineage_ends_where_they_agree() -> None:
    assert agreement(log_of(1, (0, 100)), log_of(2, (0, 80))) == 80
    assert diverges_at(log_of(1, (0, 100)), log_of(2, (0, 80))) is None


def test_logs_of_two_leaders_part_where_the_newer_epoch_began() -> None:
    old, new = log_of(1, (0, 100)), log_of(2, (0, 80), (1, 90))
    assert agreement(old, new) == 80
    assert diverges_at(old, new) == 80
    assert missing(old, new) == {(0, 80, 100)}
    assert missing(new, old) == {(1, 80, 90)}


def test_last_epochs_alone_are_enough_only_where_they_are_the_same() -> None:
    known = ReplicaLog(1, 100, last_epoch=3, log_start=0)
    assert agreement(known, ReplicaLog(2, 80, last_epoch=3, log_start=0)) == 80
    assert agreement(known, ReplicaLog(2, 80, last_epoch=2, log_start=0)) is None


def test_an_empty_log_agrees_with_everything_up_to_its_end() -> None:
    assert agreement(log_of(1), log_of(2, (4, 50))) == 0
    assert missing(log_of(2, (4, 50)), log_of(1)) == {(4, 0, 50)}
    assert agreement(log_of(1, start=30), log_of(2, (4, 50), start=30)) == 30


def test_lineages_that_retention_left_nothing_in_common_part_where_kafka_truncates() -> None:
    """Seen on 4.3.1: logs of epoch 0, offsets 0..20, and of epoch 1, offsets 30..40; a leader with the first makes the
    other truncate to 20, and 30 to 39 are gone."""
    old, new = log_of(3, (0, 20)), log_of(2, (1, 40), start=30)
    assert agreement(new, old) == agreement(old, new) == 20
    assert missing(new, old) == {(1, 30, 40)}
    assert missing(old, new) == frozenset()
    overlapping = log_of(3, (0, 50))
    assert agreement(overlapping, new) == 30
    assert missing(overlapping, new) == {(0, 30, 50)}


def test_where_a_lineage_was_not_asked_for_other_epochs_stay_unknown() -> None:
    blind, other = ReplicaLog(1, 100, last_epoch=3, log_start=0), log_of(2, (0, 40), (2, 80))
    assert agreement(blind, other) is None
    assert agreement(log_of(2, (0, 40), (3, 80)), blind) == 80


def test_the_newest_epoch_beats_the_longer_log() -> None:
    state = leaderless()
    logs = rank_logs(state, [log_of(1, (0, 100)), log_of(2, (0, 80), (1, 85)), silent(3)])
    assert logs.best is not None
    assert logs.best.replica == 2
    assert logs.longest is not None
    assert logs.longest.replica == 1
    assert logs.behind_best(1) == 5
    assert logs.behind_best(2) == 0


def test_a_stale_answer_is_not_heard_and_a_newer_one_says_that_the_state_is_old() -> None:
    state = leaderless()
    logs = rank_logs(state, [log_of(1, (0, 9), leader_epoch=4), log_of(2, (0, 9), leader_epoch=6)])
    assert logs.unheard[1].reason is LogUnavailableReason.STALE
    assert "leader epoch 4" in logs.unheard[1].detail
    assert logs.unheard[3].reason is LogUnavailableReason.NOT_ASKED
    assert list(logs.heard) == [2]
    assert logs.newer_leader_epoch == 6


def test_a_log_without_known_epochs_is_not_ranked_and_the_others_are() -> None:
    blind = ReplicaLog(
        1, 100, current_leader_epoch=5, log_start=0, last_epoch_error="TOPIC_AUTHORIZATION_FAILED (READ)"
    )
    logs = rank_logs(leaderless(), [blind, log_of(2, (0, 80)), silent(3)])
    assert list(logs.ranked) == [2]
    assert logs.unranked == (1, 3)
    assert logs.behind_best(1) is None
    assert logs.behind_best(2) == 0


@pytest.mark.parametrize(
    ("ranges", "count"),
    [
        ([], 0),
        ([(0, 5, 10)], 5),
        ([(0, 5, 10), (0, 7, 12)], 7),
        ([(0, 5, 10), (1, 5, 10)], 10),
        ([(0, 5, 10), (0, 5, 7), (0, 9, 9)], 5),
    ],
)
def test_overlapping_ranges_count_once(ranges: list[tuple[int, int, int]], count: int) -> None:
    assert count_distinct(ranges) == count


# A history of leaders, and replicas that copied a prefix of what each leader wrote: every log that Kafka can produce.


@st.composite
def histories(draw: st.DrawFn) -> list[ReplicaLog]:
    """Logs of one partition, made as Kafka makes them: a leader per epoch appends, followers copy, truncate, stop."""
    logs: list[list[int]] = [[], [], []]
    for epoch in range(draw(st.integers(1, 4))):
        leader = draw(st.integers(0, 2))
        logs[leader] = logs[leader] + [epoch] * draw(st.integers(0, 4))
        for follower in {0, 1, 2} - {leader}:
            if draw(st.booleans()):
                kept = draw(st.integers(0, len(logs[leader])))
                common = _common(logs[follower], logs[leader])
                if kept >= common:
                    logs[follower] = logs[leader][:kept]
        lossy = draw(st.integers(0, 2))
        logs[lossy] = logs[lossy][: draw(st.integers(0, len(logs[lossy])))] if draw(st.booleans()) else logs[lossy]
    return [_as_log(number + 1, records) for number, records in enumerate(logs)]


def _common(one: list[int], other: list[int]) -> int:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


def _as_log(replica: int, epochs: list[int]) -> ReplicaLog:
    ends: dict[int, int] = {}
    for offset, epoch in enumerate(epochs):
        ends[epoch] = offset + 1
    return log_of(replica, *ends.items())


def _records(log: ReplicaLog) -> set[Record]:
    return {(part.epoch, offset) for part in segments(log) or () for offset in range(part.start, part.end)}


@given(histories())
def test_agreement_is_the_common_prefix_and_missing_is_the_rest(logs: list[ReplicaLog]) -> None:
    for one in logs:
        for other in logs:
            common = len(_records(one) & _records(other))
            agreed = agreement(one, other)
            if agreed is None:
                assert common == 0
                continue
            assert agreed == agreement(other, one)
            assert agreed == common
            gone = {(epoch, offset) for epoch, start, end in missing(one, other) for offset in range(start, end)}
            assert gone == _records(one) - _records(other)


@given(histories())
def test_the_best_log_has_the_newest_epoch_and_nobody_ahead_of_it(logs: list[ReplicaLog]) -> None:
    known = KnownLogs({log.replica: log for log in logs})
    best = known.best
    assert best is not None
    for log in logs:
        assert _standing(log) <= _standing(best)
        behind = known.behind_best(log.replica)
        assert behind is None or behind == len(_records(best) - _records(log))


def _standing(log: ReplicaLog) -> tuple[int, int]:
    return (-1 if log.last_epoch is None else log.last_epoch, log.log_end)


def test_answers_are_sorted_into_heard_and_not_heard_with_the_reason() -> None:
    stale = replace(log_of(3, (0, 10), leader_epoch=4), read_at_ms=7)
    known = rank_logs(leaderless(), [log_of(1, (0, 10)), stale])
    assert dict(known.unheard) == {
        2: LogUnavailable(2, LogUnavailableReason.NOT_ASKED, "its log was not asked for"),
        3: LogUnavailable(3, LogUnavailableReason.STALE, "answered with leader epoch 4; the partition's is 5", 7),
    }
    assert (set(known.heard), known.newer_leader_epoch) == ({1}, None)


@pytest.mark.parametrize(
    ("epochs", "newer"), [((5, 5), None), ((6, 8), 8), ((8, 6), 8), ((5, 6), 6), ((None, 5), None)]
)
def test_a_newer_leader_epoch_is_noticed(epochs: tuple[int | None, int | None], newer: int | None) -> None:
    answers = [log_of(replica, (0, 10), leader_epoch=epoch) for replica, epoch in zip((1, 2), epochs, strict=True)]
    assert rank_logs(leaderless(), answers).newer_leader_epoch == newer


def test_a_leader_epoch_of_1_is_newer_than_0() -> None:
    first = replace(leaderless(), leader_epoch=0)
    assert rank_logs(first, [log_of(1, (0, 10), leader_epoch=1)]).newer_leader_epoch == 1


def test_what_is_missing_can_be_cut_off_at_an_offset() -> None:
    old, new = log_of(1, (0, 100)), log_of(2, (0, 80), (1, 90))
    assert missing(old, new, below=85) == {(0, 80, 85)}
    assert missing(old, new, below=80) == frozenset()


def test_a_log_without_a_last_epoch_agrees_with_none_that_has_one() -> None:
    blind, other = ReplicaLog(1, 100, log_start=0), log_of(2, (0, 40))
    assert agreement(blind, other) is agreement(other, blind) is None


def test_an_epoch_without_records_is_no_segment() -> None:
    """Its end is that of the epoch before; retention took it, or nothing was ever written in it."""
    assert segments(log_of(1, (0, 10), (1, 10), (2, 20))) == (Segment(0, 0, 10), Segment(2, 10, 20))


def test_an_answer_of_another_incarnation_is_stale() -> None:
    answer = replace(log_of(3, (0, 10)), broker_epoch=7, read_at_ms=9)
    brokers = (Broker(3, BrokerStatus.LIVE, broker_epoch=8), Broker(4, BrokerStatus.LIVE))
    cluster = Cluster("test", brokers)
    assert verified(answer, cluster) == LogUnavailable(
        3, LogUnavailableReason.STALE, "answered with broker epoch 7; the broker is registered with 8", 9
    )
    assert verified(replace(answer, broker_epoch=8), cluster) == replace(answer, broker_epoch=8)
    assert verified(replace(answer, replica=4), cluster) == replace(answer, replica=4)


def test_an_epoch_that_compaction_has_hidden_from_a_follower_does_not_count_its_offsets_twice() -> None:
    """2 copied the log when the cleaner had left no record of epoch 1 (LeaderEpochFileCache.assign)."""

    def log(replica: int, *lineage: tuple[int, int]) -> ReplicaLog:
        ends = tuple(EpochEnd(epoch, end) for epoch, end in lineage)
        return ReplicaLog(replica, ends[-1].end_offset, ends[-1].epoch, log_start=0, lineage=ends)

    logs = {1: log(1, (0, 5), (1, 8), (2, 10)), 2: log(2, (0, 8), (2, 10)), 3: log(3, (0, 3))}
    for heard in (logs, dict(reversed(logs.items()))):
        known = KnownLogs(heard)
        assert count_distinct(known.missing(1, 3) | known.missing(2, 3)) == 7
        assert known.missing(1, 2) == known.missing(2, 1) == frozenset()
        assert known.ranked[2].lineage == logs[1].lineage
