"""Patterns: what is decided once for many partitions is what `decide` says of each."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelr.controller import ELR_4_0, ELR_4_3, KRAFT, RuleSet
from kelr.engine import (
    Pattern,
    PatternCache,
    PatternReader,
    Verdict,
    count_patterns,
    decide,
    pattern_of,
    verdict_of,
    verdicts,
)
from kelr.model import (
    AdviceAction,
    Broker,
    BrokerStatus,
    ConfigSource,
    ElectionType,
    PartitionState,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of
from tests.engine.snapshots import IDS, NO_LEADER, rule_sets, snapshots, with_brokers_called
from tests.properties import examples


def decided_one_by_one(snapshot: Snapshot, rules: RuleSet | None) -> list[Verdict]:
    # Patterns take brokers' word for the present state; who counts them tells that no controller answered.
    snapshot = replace(snapshot, cluster=snapshot.cluster.as_told)
    return [verdict_of(decide(snapshot, state, rules)) for state in snapshot.partitions]


@settings(deadline=None)
@given(snapshots(), st.lists(rule_sets, min_size=1, max_size=3, unique=True))
def test_the_batch_says_what_decide_says_of_each(snapshot: Snapshot, several: list[RuleSet | None]) -> None:
    """Also where the cache knows the patterns from other rules, and where it knows them from the same."""
    cache = PatternCache()
    for rules in (*several, *several):
        assert list(verdicts(snapshot, rules, cache=cache)) == decided_one_by_one(snapshot, rules)


def test_an_answer_to_an_earlier_look_stays_one() -> None:
    """Its broker's machine may have crashed since: its return was promised to lose nothing."""
    state, cluster = leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,))
    saved = replace(log_of(1, (0, 9)), source="ListOffsets+Fetch, saved")
    snapshot = snapshot_of(state, cluster, (saved, log_of(2, (0, 5)), log_of(3, (0, 5))))
    assert [log.is_earlier for log in pattern_of(snapshot, state).pattern.logs if isinstance(log, ReplicaLog)] == [
        True, False, False,
    ]  # fmt: skip


@examples(50)
@given(snapshots(), rule_sets)
def test_a_cache_that_forgets_all_the_time_says_the_same(snapshot: Snapshot, rules: RuleSet | None) -> None:
    cache = PatternCache(limit=1)
    assert list(verdicts(snapshot, rules, cache=cache)) == decided_one_by_one(snapshot, rules)
    assert len(cache) == 1


@settings(deadline=None)
@given(snapshots(), rule_sets, st.permutations(IDS))
def test_partitions_that_differ_in_their_brokers_names_only_have_one_pattern_and_one_verdict(
    snapshot: Snapshot, rules: RuleSet | None, names: list[int]
) -> None:
    called = dict(zip(IDS, names, strict=True)) | {NO_LEADER: NO_LEADER}
    other = with_brokers_called(snapshot, called.__getitem__)
    for state, same in zip(snapshot.partitions, other.partitions, strict=True):
        assert pattern_of(other, same, rules).pattern == pattern_of(snapshot, state, rules).pattern
        verdict = verdict_of(decide(snapshot, state, rules))
        assert verdict_of(decide(other, same, rules)) == verdict.renamed(called.__getitem__)


@examples(50)
@given(snapshots(), rule_sets)
def test_a_pattern_that_is_recognized_is_the_pattern_itself(snapshot: Snapshot, rules: RuleSet | None) -> None:
    """The quick way, by shapes that were seen before, leads to the pattern that the slow way finds."""
    reader = PatternReader(snapshot, rules)
    expected = [pattern_of(snapshot, state, rules) for state in snapshot.partitions]
    for _ in range(2):
        assert [reader.occurrence(state) for state in snapshot.partitions] == expected
    counted = count_patterns(snapshot, rules)
    assert counted == Counter(found.pattern for found in expected)
    for found in expected:
        assert found.tell(found.pattern.decide()) == PatternCache().verdict(found)


@examples(50)
@given(snapshots(), rule_sets)
def test_a_pattern_is_its_own_pattern(snapshot: Snapshot, rules: RuleSet | None) -> None:
    for state in snapshot.partitions:
        pattern = pattern_of(snapshot, state, rules).pattern
        again = pattern_of(pattern.snapshot(), pattern.state, pattern.rules)
        assert again.pattern == pattern
        assert again.brokers == tuple(range(len(pattern.statuses)))


def many(count: int) -> Snapshot:
    """Partitions of three replicas on eleven brokers, of which one is dead, in an order that repeats late."""
    brokers = tuple(Broker(n, BrokerStatus.FENCED if n == 4 else BrokerStatus.LIVE) for n in range(1, 12))
    states = []
    for number in range(count):
        first, step = number % 11, 1 + number // 11 % 5
        replicas = tuple(1 + (first + step * place) % 11 for place in range(3))
        live = tuple(broker for broker in replicas if broker != 4)
        states.append(PartitionState(f"topic-{number // 50}", number % 50, live[0], number, replicas, live, (), ()))
    config = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    cluster = replace(cluster_of(live=()), brokers=brokers)
    return Snapshot(0, cluster, tuple(states), {state.topic: config for state in states})


def test_each_pattern_is_found_and_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[Pattern] = []
    found_slowly: list[PartitionState] = []
    one = Pattern.decide
    monkeypatch.setattr(
        "kelr.engine.batch.pattern_of",
        lambda snapshot, state, rules: found_slowly.append(state) or pattern_of(snapshot, state, rules),
    )
    monkeypatch.setattr(Pattern, "decide", lambda pattern: decided.append(pattern) or one(pattern))
    snapshot, cache = many(500), PatternCache()
    found = list(verdicts(snapshot, cache=cache))
    # All three live, or the first, the second or the third of them dead.
    assert len(decided) == len(set(decided)) == len(cache) == len(found_slowly) == 4
    assert found == decided_one_by_one(snapshot, None)
    assert list(verdicts(replace(snapshot, taken_at_ms=1), cache=cache)) == found
    assert len(decided) == 4


def test_patterns_can_be_decided_elsewhere_and_joined() -> None:
    """What the module's documentation shows, with the patterns sent to another machine and back."""
    snapshot = many(200)
    reader = PatternReader(snapshot)
    sent = pickle.loads(pickle.dumps(list(count_patterns(snapshot))))
    decided = {pattern: pattern.decide() for pattern in sent}
    found = map(reader.occurrence, snapshot.partitions)
    assert [one.tell(decided[one.pattern]) for one in found] == decided_one_by_one(snapshot, None)


def test_partitions_are_read_as_verdicts_are_taken() -> None:
    snapshot, read = many(20), 0

    def stream() -> Iterator[PartitionState]:
        nonlocal read
        for state in snapshot.partitions:
            read += 1
            yield state

    found = verdicts(replace(snapshot, partitions=()), partitions=stream())
    assert next(found).situation is Situation.HEALTHY
    assert read == 1
    assert [next(found), *found] == decided_one_by_one(snapshot, None)[1:]


def test_a_verdict_is_told_in_the_partitions_own_ids() -> None:
    state = leaderless((30, 10, 20), elr=(10,), last_known=(10,))
    snapshot = snapshot_of(state, cluster_of(live=(20, 30), fenced=(10,)))
    (verdict,) = verdicts(snapshot)
    assert (verdict.situation, verdict.elected, verdict.waits_for) == (Situation.WAITING_FOR_ELR, None, (10,))
    elected = {(e.election, e.designate): e.elected for e in verdict.elections}
    assert elected[ElectionType.UNCLEAN, None] == 30
    assert elected[ElectionType.DESIGNATION, 20] == 20
    assert {forecast.replica for forecast in verdict.forecasts} == {10}
    assert verdict.brokers == (10, 20, 30)


def test_a_broker_that_only_the_advice_names_is_named() -> None:
    verdict = Verdict(Situation.WAITING_FOR_ISR, None, None, (), (), (), AdviceAction.BRING_BACK, 7)
    assert verdict.brokers == (7,)
    assert verdict.renamed(lambda broker: broker + 1).brokers == (8,)


def test_verdicts_that_name_other_brokers_are_told_apart() -> None:
    """One pattern, and the first of the named brokers is the same: the others still count."""
    states = tuple(
        replace(leaderless((30, *rest), elr=rest[:1], last_known=rest[:1]), partition=number)
        for number, rest in enumerate(((10, 20), (10, 40), (50, 20)))
    )
    config = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    snapshot = Snapshot(0, cluster_of(live=(20, 30, 40), fenced=(10, 50)), states, {"orders": config})
    assert len(count_patterns(snapshot)) == 1
    assert list(verdicts(snapshot)) == decided_one_by_one(snapshot, None)


def test_counts_are_right_where_the_cache_forgets() -> None:
    """Patterns with logs are looked up in the cache each time, which here holds one of the two."""
    states = tuple(replace(leaderless((1, 2)), partition=number) for number in range(4))
    logs = {state.address: (log_of(1, (0, 9 + state.partition % 2)),) for state in states}
    snapshot = Snapshot(0, cluster_of(live=(1, 2)), states, logs=logs)
    counted = PatternReader(snapshot, cache=PatternCache(limit=1)).count(states)
    assert counted == count_patterns(snapshot)
    assert sorted(counted.values()) == [2, 2]


def test_a_pattern_calls_brokers_by_their_place_and_keeps_nothing_that_is_the_partitions_own() -> None:
    state = replace(
        leaderless((30, 10, 20), elr=(10,), last_known=(99,)), partition=7, topic_id="id", partition_epoch=4
    )
    found = pattern_of(snapshot_of(state, cluster_of(live=(20, 30), fenced=(10,))), state)
    assert found.brokers == (30, 10, 20, 99)
    # Of its leader epoch, without logs, whether anybody has led before.
    assert found.pattern.state == PartitionState("topic", 0, None, 1, (0, 1, 2), (), (1,), (3,))
    live, fenced, gone = BrokerStatus.LIVE, BrokerStatus.FENCED, BrokerStatus.UNREGISTERED
    assert found.pattern.statuses == (live, fenced, live, gone)


def test_of_equal_logs_the_first_in_the_assignment_is_the_best_whatever_its_id() -> None:
    """As for the KIP's recovery manager, so that partitions with their brokers called otherwise are decided alike."""
    for replicas in ((1, 2), (2, 1)):
        state = leaderless(replicas)
        snapshot = snapshot_of(state, cluster_of(live=(1, 2)), [log_of(1, (0, 9)), log_of(2, (0, 9))])
        snapshot = replace(snapshot, cleared={})  # what kelr's audit log tells is of one partition
        (verdict,) = verdicts(snapshot)
        assert verdict == verdict_of(decide(snapshot, state))
        assert verdict.advised_replica == replicas[0]


def test_an_answer_of_another_incarnation_is_stale() -> None:
    """KIP-966: the broker epoch of an answer has to be that of the registration, where both are known."""
    log = replace(log_of(1, (0, 9)), broker_epoch=7)
    for registered, heard in ((7, True), (8, False), (6, False), (None, True)):
        cluster = replace(cluster_of(live=(1,)), brokers=(Broker(1, BrokerStatus.LIVE, broker_epoch=registered),))
        snapshot = snapshot_of(leaderless((1,)), cluster, [log])
        assert decide(snapshot, snapshot.partitions[0]).candidates[0].heard is heard
        (verdict,) = verdicts(snapshot)
        assert verdict == verdict_of(decide(snapshot, snapshot.partitions[0]))


def test_logs_are_judged_by_their_leader_epoch() -> None:
    """An answer of epoch 4 is stale for a partition of epoch 5, and not for one of epoch 4."""
    logs = [log_of(1, (0, 9), leader_epoch=4), silent(2)]
    heard, stale = (replace(leaderless((1, 2)), leader_epoch=epoch) for epoch in (4, 5))
    found = [next(verdicts(snapshot_of(state, cluster_of(live=(1, 2)), logs))) for state in (heard, stale)]
    best = [{e.election: e.elected for e in verdict.elections} for verdict in found]
    assert [elected[ElectionType.LONGEST_LOG_AGGRESSIVE] for elected in best] == [1, None]


def test_what_only_explanations_tell_of_a_log_is_not_in_its_pattern() -> None:
    state = leaderless((1, 2))
    told = replace(log_of(1, (0, 9)), source="disk", read_at_ms=7, last_epoch_error="never mind")
    cluster = cluster_of(live=(1, 2))
    one = pattern_of(snapshot_of(state, cluster, [log_of(1, (0, 9)), silent(2)]), state)
    other = pattern_of(snapshot_of(state, cluster, [told, replace(silent(2), detail="reset", read_at_ms=8)]), state)
    assert one == other


@pytest.mark.parametrize("first", [None, 1, 3])
def test_the_controllers_min_isr_counts_the_replicas_of_partition_0(first: int | None) -> None:
    """Two replicas, one in sync, min ISR 2; the last one fails, and is the only one that was left."""
    state = PartitionState("orders", 1, 1, 5, (1, 2), (1,), (), ())
    counts = {} if first is None else {"orders": first}
    snapshot = replace(snapshot_of(state, cluster_of(live=(1, 2))), first_partition_replicas=counts)
    (verdict,) = verdicts(snapshot)
    assert verdict == verdict_of(decide(snapshot, state))
    assert verdict.situation is Situation.UNDER_MIN_ISR
    assert pattern_of(snapshot, state).pattern.first_partition_replicas == (first or 2)


def test_rules_by_name_do_not_hide_that_elr_is_off() -> None:
    state = leaderless((1, 2), last_known=(2,))
    for elr in (True, False):
        snapshot = snapshot_of(state, cluster_of(live=(1,), fenced=(2,), elr=elr))
        assert list(verdicts(snapshot, ELR_4_3)) == [verdict_of(decide(snapshot, state, ELR_4_3))]


def test_a_replica_that_is_nobody_is_not_taken_for_a_broker_of_the_same_status() -> None:
    """No source lets -1 pass as a replica; if one did, it would still be -1 in the verdict and no other broker."""
    broker, nobody = leaderless((7, 2), elr=(2,)), leaderless((-1, 2), elr=(2,))
    reader = PatternReader(snapshot_of(broker, cluster_of(live=(), fenced=(2,))))
    for state in (nobody, broker, nobody):
        assert reader.verdict(state) == verdict_of(decide(snapshot_of(state, cluster_of(live=(), fenced=(2,))), state))


def test_no_leader_that_kafka_4_0_seated_stays_nobody() -> None:
    state = leaderless((1, 2), isr=(-1,), last_known=(-1,))
    snapshot = snapshot_of(state, cluster_of(live=(1, 2)))
    assert pattern_of(snapshot, state).brokers == (1, 2)
    assert list(verdicts(snapshot, ELR_4_0)) == [verdict_of(decide(snapshot, state, ELR_4_0))]


EMPTY = leaderless((1, 2, 3))
NEAR = (
    replace(EMPTY, elr=None),
    replace(EMPTY, last_known_elr=None),
    replace(EMPTY, offline_replicas=()),
    replace(EMPTY, offline_replicas=(2,)),
    replace(EMPTY, adding=()),
    replace(EMPTY, removing=()),
    replace(EMPTY, recovering=False),
    replace(EMPTY, recovering=True),
    replace(EMPTY, leader=1),
    replace(EMPTY, isr=(1, 2)),
    replace(EMPTY, isr=(2, 1)),
    replace(EMPTY, last_known_elr=(-1,)),
    replace(EMPTY, last_known_elr=(9,)),
    replace(EMPTY, replicas=(1, 2)),
    replace(EMPTY, replicas=(1, 2, 2)),
    replace(EMPTY, replicas=(1, 2, 4)),
    replace(EMPTY, topic="__consumer_offsets"),
    replace(EMPTY, topic="other-config"),
    replace(EMPTY, topic="other-count"),
)


def test_what_a_decision_can_tell_apart_are_different_patterns() -> None:
    config = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    states = (EMPTY, *NEAR)
    kinds = {state.topic: config for state in states} | {"other-config": replace(config, min_insync_replicas=1)}
    snapshot = Snapshot(
        0, cluster_of(live=(1, 2, 3), fenced=(4,)), states, kinds, first_partition_replicas={"other-count": 1}
    )
    for rules in (ELR_4_3, KRAFT):
        counted = count_patterns(snapshot, rules)
        assert set(counted.values()) == {1}
        assert len(counted) == len(states)
    assert not set(count_patterns(snapshot, ELR_4_3)) & set(count_patterns(snapshot, KRAFT))


def test_what_a_decision_cannot_tell_apart_is_one_pattern() -> None:
    config = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    states = (
        EMPTY,
        replace(EMPTY, partition=1, leader_epoch=9, partition_epoch=9, topic_id="id"),
        replace(EMPTY, partition=2, replicas=(3, 1, 2)),
        replace(EMPTY, topic="payments"),
    )
    snapshot = Snapshot(0, cluster_of(live=(1, 2, 3)), states, {state.topic: config for state in states})
    asked_for_nothing = replace(snapshot, logs={TopicPartition("orders", 1): ()})
    for found in (snapshot, asked_for_nothing):
        assert list(count_patterns(found).values()) == [4]
