"""Lakes of any size for assessments, made by Spark alone: partitions as they stand, and what else an assessment asks.

    python -m benchmarks.fleet.lakes LAKE --partitions 10000000

Replicas are placed at random, which is the hardest for an assessment: nearly every partition has brokers of its own.
One cluster has 70% of the partitions. One partition of 50 lacks a replica in sync, and one of 1,000 its leader.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema

from kelr.fleet.lake import Lake
from kelr.fleet.session import running_session
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, PARTITION_STATES, Table
from kelr.model import ELR_FEATURE, METADATA_FEATURE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLUSTERS = 10
BROKERS = 20
RACKS = 3
PER_TOPIC = 100
METADATA_LEVEL = 29
"""Of Kafka 4.3."""
AT = datetime(2026, 11, 1, tzinfo=UTC)
BIG_SHARE = 70
"""Per cent of the partitions that are in the first cluster."""


def main() -> None:
    """Make a lake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    given = parser.parse_args()
    with running_session("local[2]") as spark:
        make(spark, given.lake, given.partitions)


def make(spark: SparkSession, place: str, partitions: int) -> None:
    """Write the lake."""
    clusters = [f"cluster-{number:02}" for number in range(CLUSTERS)]
    with Lake(spark, place).changing() as changes:
        changes.append(PARTITION_STATES, _partitions(spark, partitions))
        for table, rows in (
            (BROKER_EVENTS, [row for cluster in clusters for row in _brokers(cluster)]),
            (CLUSTER_EVENTS, [row for cluster in clusters for row in _features(cluster)]),
            (CONFIGS, [row for cluster in clusters for row in _configs(cluster)]),
        ):
            changes.append(table, _frame(spark, table, rows))


def _partitions(spark: SparkSession, count: int) -> DataFrame:
    at = fn.lit(AT)
    number = fn.col("id")
    share = fn.pmod(fn.xxhash64(number, fn.lit(1)), fn.lit(100))
    other = 1 + fn.pmod(fn.xxhash64(number, fn.lit(2)), fn.lit(CLUSTERS - 1))
    cluster = fn.format_string("cluster-%02d", fn.when(share < BIG_SHARE, 0).otherwise(other))
    first = fn.pmod(fn.xxhash64(number, fn.lit(3)), fn.lit(BROKERS))
    # Three different brokers: the second and third are steps from the first on.
    step = 1 + fn.pmod(fn.xxhash64(number, fn.lit(4)), fn.lit(BROKERS - 2))
    places = (first, first + step, first + step + 1)
    replicas = fn.array(*((1 + fn.pmod(place, fn.lit(BROKERS))).cast("int") for place in places))
    lame = fn.pmod(number, fn.lit(50)) == 7
    led = fn.pmod(number, fn.lit(1_000)) != 507
    columns = {
        "topic": fn.format_string("topic-%06d", (number / PER_TOPIC).cast("long")),
        "topic_id": fn.lit(None).cast("string"),
        "partition": fn.pmod(number, fn.lit(PER_TOPIC)).cast("int"),
        "valid_from": at,
        "valid_to": fn.lit(None).cast("timestamp"),
        "from_offset": number,
        "replicas": replicas,
        "leader": fn.when(led, replicas[0]),
        "leader_epoch": fn.lit(3),
        "partition_epoch": fn.lit(5),
        "isr": fn.when(~led, fn.array().cast("array<int>")).when(lame, fn.slice(replicas, 1, 2)).otherwise(replicas),
        "elr": fn.when(led, fn.array().cast("array<int>")).otherwise(fn.slice(replicas, 2, 1)),
        **{
            name: fn.array().cast("array<int>") for name in ("last_known_elr", "offline_replicas", "adding", "removing")
        },
        "recovering": fn.lit(False),
        "min_isr": fn.lit(2),
        "cause": fn.lit("as-found"),
        "certainty": fn.lit("certain"),
        "cause_broker": fn.lit(None).cast("int"),
        "source": fn.lit("log"),
        "cluster": cluster,
        "date": fn.lit(AT.date()),
    }
    return spark.range(0, count, 1, max(1, min(16, count // 50_000))).select(
        *(columns[name].alias(name) for name in PARTITION_STATES.columns)
    )


def _brokers(cluster: str) -> Iterator[dict[str, Any]]:
    for broker in range(1, BROKERS + 1):
        yield {
            **{"cluster": cluster, "broker": broker, "offset": broker, "event": "seen", "status": "live"},
            **{"broker_epoch": broker, "rack": f"az{broker % RACKS}", "host": f"kafka-{broker}", "port": 9092},
            "features": {METADATA_FEATURE: METADATA_LEVEL, ELR_FEATURE: 1},
        }


def _features(cluster: str) -> Iterator[dict[str, Any]]:
    for name, level in ((METADATA_FEATURE, METADATA_LEVEL), (ELR_FEATURE, 1)):
        yield {"cluster": cluster, "offset": 1, "event": "feature", "name": name, "after": str(level)}
    yield {"cluster": cluster, "offset": 100, "event": "end"}


def _configs(cluster: str) -> Iterator[dict[str, Any]]:
    yield {
        **{"cluster": cluster, "resource_type": "cluster", "resource": "", "offset": 2},
        **{"key": "min.insync.replicas", "value": "2"},
    }


def _frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    filled = [{"source": "log", "at": AT, "date": AT.date(), **row} for row in rows]
    content = pyarrow.Table.from_pylist(filled, schema=to_arrow_schema(table.schema, timezone="UTC"))
    return spark.createDataFrame(content, table.schema)


if __name__ == "__main__":
    main()
