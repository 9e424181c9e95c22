"""How long partitions were in trouble: the same as `kelr history --summary` says, of many clusters at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kelr.fleet.exposure.spells import OF_PARTITION, pieces, spells
from kelr.fleet.exposure.wanted import Wanted, facts
from kelr.fleet.tables import CLUSTER_EVENTS, PARTITION_STATES
from kelr.replay.history import PartitionSummary, Trouble
from kelr.replay.records import ConfigSet, RecordBatch
from tests.fleet.exposure_logs import summarized, told
from tests.replay.history.observed import merged, random_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.lake import Lake

RULES = ("kraft", "elr-4.0", "elr-4.1", "elr-4.3")
KINDS = ("single", "several", "backwards")


def logs() -> dict[str, list[RecordBatch]]:
    """Random clusters by name; some with several events a batch, some with clocks that go backwards."""
    found: dict[str, list[RecordBatch]] = {}
    for number, rules in enumerate((*RULES, *RULES)):
        chance = random.Random(f"exposure/{rules}/{number}")
        batches = random_cluster(rules, f"exposure {number}", deeds=60).batches()
        kind = KINDS[number % 3]
        if kind == "several":
            batches = list(_several(batches, chance))
        if kind == "backwards":
            batches = [_shifted(batch, chance.choice((0, 0, 0, -7_000, 3_000))) for batch in batches]
        found[f"{number}-{kind}"] = batches
    return found


def _several(batches: Sequence[RecordBatch], chance: random.Random) -> Iterator[RecordBatch]:
    """Configs stay alone: of one within a batch, a history takes the state that the whole batch leaves."""
    for alone, group in groupby(batches, lambda batch: any(isinstance(one, ConfigSet) for one in batch.records)):
        found = list(group)
        yield from found if alone else merged(found, chance)


def _shifted(batch: RecordBatch, by_ms: int) -> RecordBatch:
    return replace(batch, timestamp_ms=batch.timestamp_ms + by_ms)


def of_summaries(cluster: str, summaries: Sequence[PartitionSummary]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By partition and trouble: how often, how long, the longest, since when it lasts; milliseconds."""
    return {
        (cluster, summary.address.topic, summary.address.partition, str(trouble)): (
            span.times,
            span.total_ms,
            span.longest_ms,
            summary.lasting.get(trouble),
        )
        for summary in summaries
        for trouble, span in summary.spans.items()
    }


def of_lake(lake: Lake, wanted: Wanted) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    states = wanted.states(lake)
    known = facts(lake, wanted, states)
    rows = spells(pieces(states, known), known, wanted).where(f"dimension = '{OF_PARTITION}'").collect()
    found: dict[tuple[Any, ...], list[Any]] = {}
    for one in rows:
        if one.known and one.trouble in list(Trouble):
            found.setdefault((one.cluster, one.topic, one.partition, one.trouble), []).append(one)
    return {
        key: (
            len(group),
            sum(one.finish - one.begin for one in group) / 1000,
            max(one.finish - one.begin for one in group) / 1000,
            next((one.begin / 1000 for one in group if one.lasting), None),
        )
        for key, group in found.items()
    }


def test_every_spell_is_as_one_machine_counts_it(spark: SparkSession, lake: Lake) -> None:
    batches = logs()
    tables = {cluster: told(cluster, log) for cluster, log in batches.items()}
    with lake.changing() as changes:
        for table, rows in (
            (PARTITION_STATES, [row for found in tables.values() for row in found.states]),
            (CLUSTER_EVENTS, [row for found in tables.values() for row in found.ends]),
        ):
            changes.append(table, spark.createDataFrame(rows, table.schema).coalesce(1))
    expected: dict[Any, Any] = {}
    for cluster, found in tables.items():
        expected |= of_summaries(cluster, found.summaries)
    assert len(expected) > 150
    assert of_lake(lake, Wanted()) == expected

    forwards = [cluster for cluster in batches if not cluster.endswith("backwards")]
    begin = min(batches[cluster][0].timestamp_ms for cluster in forwards)
    end = max(tables[cluster].end_ms for cluster in forwards)
    third = (end - begin) // 3
    since, until = begin + third, begin + 2 * third
    expected = {}
    for cluster in forwards:
        expected |= of_summaries(cluster, summarized(batches[cluster], since, until))
    assert len(expected) > 20
    assert of_lake(lake, Wanted(tuple(forwards), since, until)) == expected
