"""What `kelr fleet assess` says is what `kelr explain` and `kelr whatif` say, of every partition."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any

import pytest

from kelr.controller import ELR_4_0, RuleSet, choose_rules
from kelr.engine import decide, pattern_of, verdict_of
from kelr.engine.outages.reading import CaseReader, Seen
from kelr.engine.outages.scenario import Outage
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.told import PartitionFate, partition_fate
from kelr.fleet.assess.assessing import Assessed, Question, assess, assessments, decided_keys, keys_of
from kelr.fleet.assess.contexts import contexts
from kelr.fleet.assess.deciding import kind_of_key
from kelr.fleet.assess.scenarios import Scenario, Wanted, wanted_scenarios
from kelr.fleet.assess.spreading import Spread, spread
from kelr.fleet.assess.tables import ASSESSMENT_SUMS, ASSESSMENTS, NOW, column_of
from kelr.fleet.lake import Lake
from kelr.model import ConfigSource, ElectionType, PartitionState, Snapshot, TopicPartition
from tests.fleet.assessed import as_of_log, put, rows_of_log, rows_of_snapshot, some_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
AT_US = int(AT.timestamp()) * 1_000_000
RULES: tuple[RuleSet | None, ...] = (None, ELR_4_0)
SCENARIOS = """\
# one after the other
3 away, 1 back: 3 stops, then 3 returns unclean, then 1 fails, then 1 returns
rack az1 and 0: rack az1 fails, 0 stops
"""
Key = tuple[str, str, str, str, int]
"""Cluster, rules, scenario, topic, partition."""


@dataclass(frozen=True)
class World:
    """A lake that was assessed, and the clusters that it is made of."""

    lake: Lake
    snapshots: Mapping[str, Snapshot]
    plan: Spread
    keys: DataFrame
    answer: Assessed
    rows: Mapping[Key, Mapping[str, Any]]
    sums: Mapping[tuple[str, str, str], Mapping[str, Any]]


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    place = tmp_path_factory.mktemp("assess")
    scenarios = place / "scenarios.txt"
    scenarios.write_text(SCENARIOS)
    every = ["each-broker,each-rack,each-pair,rack-while-rolling", str(scenarios)]
    return made(spark, place, Random(7), [""], partitions=32, wanted=wanted_scenarios(every))


def made(
    spark: SparkSession, place: Path, random: Random, fleets: Iterable[str], *, partitions: int, wanted: Wanted
) -> World:
    """A lake with some fleets at random, told apart by what their clusters' names end with."""
    lake = Lake(spark, str(place / "lake"))
    snapshots, rows = {}, []
    for fleet in fleets:
        for name, listed_by in (("alpha", "DescribeCluster v2"), ("gamma", "Metadata v12")):
            drawn = some_snapshot(random, name + fleet, listed_by=listed_by, partitions=partitions)
            snapshots[name + fleet], of_cluster = rows_of_snapshot(drawn, place / f"{name}{fleet}.kelr")
            rows.append(of_cluster)
        drawn = some_snapshot(random, f"beta{fleet}", listed_by="DescribeCluster v2", partitions=partitions)
        snapshots[f"beta{fleet}"] = as_of_log(drawn)
        rows.append(rows_of_log(snapshots[f"beta{fleet}"], AT))
    put(lake, *rows)
    answer = assess(lake, Question(wanted, RULES, at_us=AT_US))
    found = [row.asDict() for row in lake.read(ASSESSMENTS).collect()]
    by_key = {tuple(row[name] for name in ("cluster", "rules", "scenario", "topic", "partition")): row for row in found}
    assert len(by_key) == len(found), "each partition has one row of a scenario"
    sums = [row.asDict() for row in lake.read(ASSESSMENT_SUMS).collect()]
    plan = spread(contexts(lake, sorted(snapshots), AT_US), wanted, RULES)
    return World(
        lake,
        snapshots,
        plan,
        keys_of(lake, plan, AT_US),
        answer,
        by_key,
        {(row["cluster"], row["rules"], row["scenario"]): row for row in sums},
    )


def each_cluster(world: World) -> Iterator[tuple[str, Snapshot, RuleSet]]:
    for name, snapshot in world.snapshots.items():
        for rules in dict.fromkeys(one.rules for one in world.plan.chosen[name]):
            yield name, snapshot, rules


def cases(snapshot: Snapshot, rules: RuleSet) -> list[tuple[PartitionState, Seen]]:
    page = CaseReader(snapshot.cluster, rules).page(
        snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas
    )
    return list(page.partitions(lambda _: True))


def names(flags: Standing) -> list[str]:
    return [column_of(flag) for flag in sorted(Standing, reverse=True) if flags & flag]


def test_clusters_come_to_the_rules_and_brokers_that_the_sources_tell(world: World) -> None:
    for context in world.plan.contexts:
        cluster = world.snapshots[context.id].cluster
        assert {one.id: (one.status, one.rack) for one in context.cluster.brokers} == {
            one.id: (one.status, one.rack) for one in cluster.brokers
        }
        assert context.cluster.features.elr_enabled == cluster.features.elr_enabled
        assert world.plan.chosen[context.id][0].rules == choose_rules(cluster.features).rules
    assert world.answer.unknown == ()


def test_native_patterns_are_those_of_the_engine(world: World) -> None:
    """Neither coarser, nor finer than that a config's source is kept where the config itself is not known."""
    found = world.keys.select("cluster", "topic", "partition", "key", "brokers").collect()
    assert len(found) == sum(len(snapshot.partitions) for _, snapshot, _ in each_cluster(world))
    states = {name: {one.address: one for one in snapshot.partitions} for name, snapshot in world.snapshots.items()}
    for row in found:
        key = row["key"].asDict(recursive=True)
        pattern = kind_of_key(key, world.plan.rules).pattern
        snapshot = world.snapshots[row["cluster"]]
        state = states[row["cluster"]][TopicPartition(row["topic"], row["partition"])]
        expected = pattern_of(snapshot, state, pattern.rules)
        config = expected.pattern.config
        if config.min_insync_replicas is None:
            config = replace(config, min_insync_replicas_source=ConfigSource.UNKNOWN)
        if config.unclean_leader_election is None:
            config = replace(config, unclean_leader_election_source=ConfigSource.UNKNOWN)
        assert pattern == replace(expected.pattern, config=replace(config, error=None))
        assert tuple(row["brokers"])[: len(expected.brokers)] == expected.brokers


def test_now_is_what_explain_says(world: World) -> None:
    for cluster, snapshot, rules in each_cluster(world):
        for state in snapshot.partitions:
            verdict = verdict_of(decide(snapshot, state, rules))
            unclean = next((one for one in verdict.elections if one.election is ElectionType.UNCLEAN), None)
            row = world.rows[cluster, rules.name, NOW, state.topic, state.partition]
            assert (row["situation"], row["leader"]) == (verdict.situation, state.leader)
            assert (row["elected"], row["elected_by"]) == (verdict.elected, verdict.elected_by)
            assert (tuple(row["waits_for"]), row["advice"]) == (verdict.waits_for, verdict.advice)
            assert row["advised_replica"] == verdict.advised_replica
            assert (row["unclean_elected"], row["unclean_grade"]) == (
                (None, None) if unclean is None else (unclean.elected, unclean.grade)
            )
            assert row["at"].replace(tzinfo=UTC).timestamp() * 1000 == pytest.approx(
                AT.timestamp() * 1000 if cluster.startswith("beta") else snapshot.taken_at_ms
            )


def test_every_scenario_is_what_whatif_says(world: World) -> None:
    """Also of the partitions that have no row: these stay as they are, or as one part of the scenario leaves them."""
    rows = 0
    for cluster, snapshot, rules in each_cluster(world):
        scenarios = [(one, ()) for one in world.plan.scenarios[cluster]]
        joint = [(both, (one, other)) for both, one, other in world.plan.joint(cluster)]
        for state, seen in cases(snapshot, rules):
            for scenario, parts in (*scenarios, *joint):
                fate = partition_fate(state, seen, scenario.outage)
                row = _row(world, (cluster, rules.name), state, scenario, parts)
                rows += row is not None
                if row is None:
                    now = world.rows[cluster, rules.name, NOW, state.topic, state.partition]
                    assert names(fate.then) == now["standing"]
                    assert sums_of(fate.worst.after) == sums_of(state)
                else:
                    _compare(row, fate)
    assert rows > 3_000


@pytest.mark.longer
def test_a_hundred_fleets_at_random_are_assessed_as_explain_and_whatif_say(spark: SparkSession, tmp_path: Path) -> None:
    seed = SystemRandom().randrange(1_000_000)
    print("seed", seed)
    random, partitions, rows = Random(seed), 0, 0
    for lake in range(10):
        place = tmp_path / str(lake)
        place.mkdir()
        wanted = wanted_scenarios(["each-broker,each-rack"])
        some = made(spark, place, random, [f"-{number}" for number in range(10)], partitions=16, wanted=wanted)
        test_now_is_what_explain_says(some)
        test_every_scenario_is_what_whatif_says(some)
        partitions += sum(len(snapshot.partitions) for snapshot in some.snapshots.values())
        rows += len(some.rows)
    print(f"{partitions:,} partitions, {rows:,} rows")


def sums_of(state: PartitionState) -> tuple[object, ...]:
    return state.leader, set(state.isr), state.elr and set(state.elr), state.last_known_elr


def _row(
    world: World, where: tuple[str, str], state: PartitionState, scenario: Scenario, parts: tuple[Scenario, ...]
) -> Mapping[str, Any] | None:
    for one in (scenario, *parts):
        row = world.rows.get((*where, one.name, state.topic, state.partition))
        if row is not None:
            return row
    return None


def _compare(row: Mapping[str, Any], fate: PartitionFate) -> None:
    end = fate.worst
    assert (row["leader"], row["elected_by"]) == (end.after.leader, end.elected_by)
    assert row["elected"] == (None if end.elected_by is None else end.after.leader)
    assert (row["standing"], row["worse"], row["depends"]) == (names(fate.then), names(fate.new), fate.depends)
    assert row["doubts"] == list(dict.fromkeys(doubt for one in fate.ends for doubt in one.doubts))
    ways: dict[int, list[bool]] = defaultdict(list)
    for back in end.comebacks:
        ways[back.broker].append(back.loses_nothing)
    assert set(row["waits_for"]) == {back.broker for back in end.comebacks if back.elected is not None}
    assert set(row["waits_safely"]) == {broker for broker, safe in ways.items() if all(safe)}
    if "may_lose" in row["standing"]:
        assert row["grade"] is not None
    elif end.elected_by is None:
        assert row["grade"] is None


def test_sums_are_those_of_whatif(world: World) -> None:
    for cluster, snapshot, rules in each_cluster(world):
        seen = [one for _, one in cases(snapshot, rules)]
        scenarios = [*world.plan.scenarios[cluster], *(both for both, _, _ in world.plan.joint(cluster))]
        for scenario in scenarios:
            tally = Tally(scenario.outage)
            for one in seen:
                tally.add(one, 1)
            row = world.sums[cluster, rules.name, scenario.name]
            assert row["partitions"] == tally.partitions == len(snapshot.partitions)
            assert {flag: row[column_of(flag)] for flag in Standing} == {flag: tally.new[flag] for flag in Standing}
            assert row["then"] == {column_of(flag): tally.then[flag] for flag in Standing}
            assert row["depends"] == tally.depends
            assert sum(row["situations"].values()) == tally.partitions
            assert tuple(row["brokers"]) == scenario.outage.brokers
        now = world.sums[cluster, rules.name, NOW]
        still = Tally(Outage((), at_once=False))
        for one in seen:
            still.add(one, 1)
        assert now["then"] == {column_of(flag): still.then[flag] for flag in Standing}
        assert {flag: now[column_of(flag)] for flag in Standing} == {flag: still.then[flag] for flag in Standing}
        assert now["touched"] == 0


def test_plans_read_what_they_need_and_ask_python_for_patterns_alone(world: World) -> None:
    plan = _plan(world.keys)
    assert "PartitionFilters: [isnotnull(cluster" in plan or "PartitionFilters: [cluster" in plan
    assert "(date#" in plan
    assert "Python" not in plan
    decided = decided_keys(world.keys, world.plan.rules)
    joined = _plan(assessments(world.keys, decided, world.plan, few=True))
    assert "MapInArrow" in joined
    for slow in ("BatchEvalPython", "ArrowEvalPython", "FlatMapGroups"):
        assert slow not in joined
    assert "BroadcastHashJoin" in joined
    # Rows are never brought together by cluster: the largest one is spread over as many tasks as any.
    exchanges = re.findall(r"hashpartitioning\(([^)]*)\)", joined)
    assert not [one for one in exchanges if re.match(r"cluster#\d+, \d+$", one)]


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_partitions_of_one_file_are_shared_out(world: World, spark: SparkSession) -> None:
    """Each of them becomes many rows: no task may have a large cluster to itself because its file is small."""
    from pyspark.sql import functions as fn  # noqa: PLC0415 - PySpark is loaded where it is used

    assert len(list(Path(world.lake.place).glob("partition_states/*/cluster=alpha/*/*.parquet"))) == 1
    small = {"adaptive.advisoryPartitionSizeInBytes": "64B", "adaptive.coalescePartitions.minPartitionSize": "1B"}
    before = {name: spark.conf.get(f"spark.sql.{name}") for name in small}
    try:
        for name, value in small.items():
            spark.conf.set(f"spark.sql.{name}", value)
        frame = keys_of(world.lake, world.plan, AT_US).where("cluster = 'alpha'")
        shares = [row["count"] for row in frame.groupBy(fn.spark_partition_id()).count().collect()]
    finally:
        for name, value in before.items():
            spark.conf.set(f"spark.sql.{name}", str(value))
    assert max(shares) <= sum(shares) / 2


def test_again_and_for_one_cluster_takes_the_place_of_what_was_there(world: World) -> None:
    before = world.lake.read(ASSESSMENTS).where("cluster != 'alpha'").count()
    answer = assess(world.lake, Question(wanted_scenarios(["now"]), at_us=AT_US, clusters=("alpha",), topic="pay*"))
    frame = world.lake.read(ASSESSMENTS)
    assert {row["topic"] for row in frame.where("cluster = 'alpha'").select("topic").distinct().collect()} == {
        "payments"
    }
    assert frame.where("cluster != 'alpha'").count() == before
    assert [one.scenario for one in answer.sums] == [None]
