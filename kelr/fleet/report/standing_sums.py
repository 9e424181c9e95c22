"""What Spark is asked about how clusters stand: counts of partitions, brokers, and from when to when there is input.

Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn
from pyspark.sql.window import Window

from kelr.fleet.report.figures import Broker, Cluster, Standing, TopicCount
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, PARTITION_STATES
from kelr.model import BrokerStatus

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake

FEW = 5
"""So many topics, places and scenarios of a kind are named; the CSV files have all."""
GONE = "unregistered"
"""The status of a broker that is no more."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_STANDING: Mapping[str, str] = {
    "partitions": "true",
    "leaderless": "leader is null",
    "elr_only": "leader is null and size(isr) = 0 and size(elr) > 0",
    "under_min_isr": "leader is not null and size(isr) < min_isr",
    "last_replica": "leader is not null and size(isr) = 1 and size(replicas) > 1",
    "min_isr_unknown": "leader is not null and min_isr is null",
    "elr_unknown": "leader is null and elr is null",
}
"""What `Trouble` of kelr history means, of one row."""


def clusters(lake: Lake) -> tuple[Cluster, ...]:
    """Every cluster of a lake, by name."""
    states = newest_states(lake)
    counts = states.groupBy("cluster").agg(
        *(fn.count_if(fn.expr(test)).alias(name) for name, test in _STANDING.items())
    )
    standings = {row["cluster"]: Standing(*(row[name] for name in _STANDING)) for row in counts.collect()}
    topics = top_topics(states.where("leader is null"))
    brokers = _brokers(lake)
    times = _times(lake)
    logged = {row["cluster"] for row in _logged(lake).collect()}
    ids = sorted({*standings, *brokers, *times, *lake.version.clusters})
    found = [
        Cluster(
            id,
            lake.version.clusters.get(id, id),
            standings.get(id, Standing()),
            brokers.get(id, ()),
            *times.get(id, (None, None)),
            id in logged,
            topics.get(id, ()),
        )
        for id in ids
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.id)))


def top_topics(partitions: DataFrame) -> dict[str, tuple[TopicCount, ...]]:
    """Of each cluster the few topics with the most of these partitions."""
    by_topic = partitions.groupBy("cluster", "topic").agg(fn.count_distinct("partition").alias("partitions"))
    few = first_few(by_topic, FEW, ["cluster"], fn.desc("partitions"), fn.asc("topic"))
    found: dict[str, list[TopicCount]] = defaultdict(list)
    for row in few.orderBy("cluster", fn.desc("partitions"), "topic").collect():
        found[row["cluster"]].append(TopicCount(row["topic"], row["partitions"]))
    return {cluster: tuple(counts) for cluster, counts in found.items()}


def _brokers(lake: Lake) -> dict[str, tuple[Broker, ...]]:
    """As the newest event of each left it."""
    events = lake.read(BROKER_EVENTS)
    age = fn.struct(fn.col("source") == "log", fn.coalesce("offset", fn.lit(-1)), "at")

    def newest(column: str) -> Column:
        return fn.max_by(column, fn.when(fn.col(column).isNotNull(), age)).alias(column)

    last = events.groupBy("cluster", "broker").agg(
        fn.max_by("status", age).alias("status"), newest("host"), newest("port"), newest("rack")
    )
    found: dict[str, list[Broker]] = defaultdict(list)
    for row in last.where(fn.col("status") != GONE).orderBy("cluster", "broker").collect():
        server = None if row["host"] is None or row["port"] is None else _server(row["host"], row["port"])
        live = row["status"] == BrokerStatus.LIVE.value
        found[row["cluster"]].append(Broker(row["broker"], live, server, row["rack"]))
    return {cluster: tuple(brokers) for cluster, brokers in found.items()}


def _server(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _times(lake: Lake) -> dict[str, tuple[datetime | None, datetime | None]]:
    """From when to when the events of each cluster are."""
    both = lake.read(CLUSTER_EVENTS).select("cluster", "at").union(lake.read(BROKER_EVENTS).select("cluster", "at"))
    rows = both.groupBy("cluster").agg(micros(fn.min("at")).alias("begins"), micros(fn.max("at")).alias("ends"))
    return {row["cluster"]: (at(row["begins"]), at(row["ends"])) for row in rows.collect()}


def newest_states(lake: Lake) -> DataFrame:
    """The rows of `partition_states` that tell how partitions are where a cluster's newest input ends.

    Of a cluster with a metadata log only the log's: what snapshots saw is part of what it tells.
    """
    states = lake.read(PARTITION_STATES).where("valid_to is null")
    logged = _logged(lake)
    return states.join(fn.broadcast(logged), "cluster", "left").where("logged is null or source = 'log'").drop("logged")


def _logged(lake: Lake) -> DataFrame:
    """The clusters of which there is a metadata log: each has told of its end."""
    events = lake.read(CLUSTER_EVENTS).where("source = 'log'")
    return events.select("cluster").distinct().withColumn("logged", fn.lit(True))


def first_few(frame: DataFrame, few: int, by: Sequence[str], *order: Column) -> DataFrame:
    """The first few rows of each group."""
    place = fn.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return frame.withColumn("_place", place).where(fn.col("_place") <= few).drop("_place")


def micros(column: str | Column) -> Column:
    """A time as a number, since Spark gives times to Python in whatever zone this machine is in."""
    return fn.unix_micros(column)


def at(microseconds: int | None) -> datetime | None:
    """A time from `micros`; UTC."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
