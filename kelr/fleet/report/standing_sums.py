"""What Spark is asked about how clusters stand: counts of partitions, brokers, and from when to when there is input.

Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.window import Window

from kelr.fleet.report.figures import Broker, Cluster, Standing, TopicCount
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, PARTITION_STATES, Table
from kelr.model import BrokerStatus

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from kelr.fleet.lake import Lake

FEW = 5
"""So many topics, places and scenarios of a kind are named; the CSV files have all."""
LOG = "log"
"""The source of what a metadata log tells."""
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
    """Every cluster of a lake, by name.

    Of a cluster with a metadata log only the log's rows count: what snapshots saw is part of what it tells.
    """
    times = _times(lake)
    logged = {cluster for cluster, source in times if source == LOG}
    standings, topics = _standings(lake, logged), _leaderless(lake, logged)
    brokers = _brokers(lake)
    ids = {*standings, *brokers, *(cluster for cluster, _ in times), *lake.version.clusters}
    found = [
        Cluster(
            id,
            lake.version.clusters.get(id, id),
            standings.get(id, Standing()),
            brokers.get(id, ()),
            *_span([times[key] for key in times if key[0] == id]),
            id in logged,
            topics.get(id, ()),
        )
        for id in ids
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.id)))


def newest_states(lake: Lake, logged: Collection[str]) -> DataFrame:
    """The rows of `partition_states` that tell how partitions are where a cluster's newest input ends. Of snapshots
    those of the newest: a partition that it does not show has an older row that nothing follows, and may be gone.

    Args:
        logged: the clusters of which there is a metadata log.
    """
    open_ = lake.read(PARTITION_STATES).where("valid_to is null")
    told = open_.where(~fn.col("cluster").isin(sorted(logged)) | (fn.col("source") == LOG))
    newest = told.groupBy("cluster").agg(fn.max("valid_from").alias("_newest"))
    shown = (fn.col("source") == LOG) | (fn.col("valid_from") == fn.col("_newest"))
    return told.join(fn.broadcast(newest), "cluster").where(shown).drop("_newest")


def _standings(lake: Lake, logged: Collection[str]) -> dict[str, Standing]:
    if not has(lake, PARTITION_STATES):
        return {}
    tests = (fn.count_if(fn.expr(test)).alias(name) for name, test in _STANDING.items())
    rows = newest_states(lake, logged).groupBy("cluster").agg(*tests).collect()
    return {row["cluster"]: Standing(*(row[name] for name in _STANDING)) for row in rows}


def _leaderless(lake: Lake, logged: Collection[str]) -> dict[str, tuple[TopicCount, ...]]:
    return top_topics(newest_states(lake, logged).where("leader is null")) if has(lake, PARTITION_STATES) else {}


def top_topics(partitions: DataFrame) -> dict[str, tuple[TopicCount, ...]]:
    """Of each cluster the few topics with the most of these partitions."""
    by_topic = partitions.groupBy("cluster", "topic").agg(fn.count_distinct("partition").alias("partitions"))
    few = first_few(by_topic, FEW, ["cluster"], fn.desc("partitions"), fn.asc("topic"))
    found: dict[str, list[TopicCount]] = defaultdict(list)
    for row in in_order(few.collect(), "cluster", "-partitions", "topic"):
        found[row["cluster"]].append(TopicCount(row["topic"], row["partitions"]))
    return {cluster: tuple(counts) for cluster, counts in found.items()}


def _brokers(lake: Lake) -> dict[str, tuple[Broker, ...]]:
    """As the newest event of each left it."""
    events = lake.read(BROKER_EVENTS)
    age = fn.struct(fn.col("source") == LOG, fn.coalesce("offset", fn.lit(-1)), "at")

    def newest(column: str) -> Column:
        return fn.max_by(column, fn.when(fn.col(column).isNotNull(), age)).alias(column)

    last = events.groupBy("cluster", "broker").agg(
        fn.max_by("status", age).alias("status"), newest("host"), newest("port"), newest("rack")
    )
    found: dict[str, list[Broker]] = defaultdict(list)
    for row in in_order(last.where(fn.col("status") != GONE).collect(), "cluster", "broker"):
        server = None if row["host"] is None or row["port"] is None else _server(row["host"], row["port"])
        live = row["status"] == BrokerStatus.LIVE.value
        found[row["cluster"]].append(Broker(row["broker"], live, server, row["rack"]))
    return {cluster: tuple(brokers) for cluster, brokers in found.items()}


def _server(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _times(lake: Lake) -> dict[tuple[str, str], tuple[datetime | None, datetime | None]]:
    """From when to when events of each cluster and source are."""
    names = ("cluster", "source", "at")
    both = lake.read(CLUSTER_EVENTS).select(*names).union(lake.read(BROKER_EVENTS).select(*names))
    span = (micros(fn.min("at")).alias("begins"), micros(fn.max("at")).alias("ends"))
    rows = both.groupBy("cluster", "source").agg(*span).collect()
    return {(row["cluster"], row["source"]): (at(row["begins"]), at(row["ends"])) for row in rows}


def _span(
    spans: Iterable[tuple[datetime | None, datetime | None]],
) -> tuple[datetime | None, datetime | None]:
    known = list(spans)
    begins = [begin for begin, _ in known if begin is not None]
    ends = [end for _, end in known if end is not None]
    return min(begins, default=None), max(ends, default=None)


def has(lake: Lake, table: Table) -> bool:
    """Whether a table has any rows; asking Spark for none takes as long as asking for some."""
    return bool(lake.version.tables.get(table.name))


def in_order(rows: Iterable[Row], *names: str) -> list[Row]:
    """Rows that came to the driver, sorted there; a minus in front of a name turns its numbers round."""

    def key(row: Row) -> tuple[Any, ...]:
        values = [(row[name.lstrip("-")], name.startswith("-")) for name in names]
        return tuple((value is None, 0 if value is None else -value if down else value) for value, down in values)

    return sorted(rows, key=key)


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
