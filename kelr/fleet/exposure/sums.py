"""From spells to the table `EXPOSURE`: sums by cluster, topic, broker, rack and week, and shares of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from kelr.fleet.exposure.spells import OF_BROKER, OF_PARTITION, OF_RACK, SECOND, WHOLE, parts
from kelr.fleet.exposure.troubles import PARTITION, TROUBLES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted

CLUSTER, TOPIC, BROKER, RACK = "cluster", "topic", OF_BROKER, OF_RACK
DIMENSIONS = (CLUSTER, TOPIC, BROKER, RACK)
_NAME = ("cluster", "dimension", "name", "week")


def sums(spells: DataFrame, states: DataFrame, facts: Facts, wanted: Wanted) -> DataFrame:
    """The rows of `kelr.fleet.exposure.tables.EXPOSURE`, but for ``date`` and the window.

    Args:
        spells: as `kelr.fleet.exposure.spells.spells`.
        states: as `Wanted.states`.
    """
    time = _time(states, facts, wanted)
    of_clusters = time.where(sf.col("dimension") == CLUSTER).select(
        *_NAME, sf.explode(sf.array(*map(sf.lit, TROUBLES))).alias("trouble")
    )
    troubled = _by_name(spells)
    none = of_clusters.join(troubled, [*_NAME, "trouble"], "left_anti")
    rows = troubled.unionByName(none, allowMissingColumns=True)
    return rows.join(time, [*_NAME], "left").select(
        "cluster",
        "dimension",
        "name",
        sf.nullif("week", sf.lit(WHOLE).cast("date")).alias("week"),
        "trouble",
        *(sf.coalesce(column, sf.lit(0)).alias(column) for column in ("partitions", "spells")),
        *(_seconds(name) for name in ("seconds", "longest_seconds", "unknown_seconds", "partition_seconds")),
        _share("seconds").alias("share"),
        _share("unknown_seconds").alias("unknown_share"),
        sf.coalesce("lasting", sf.lit(0)).alias("lasting"),
        sf.timestamp_micros("lasting_since").alias("lasting_since"),
        sf.coalesce("unsure_spells", sf.lit(0)).alias("unsure_spells"),
    )


def _by_name(spells: DataFrame) -> DataFrame:
    """Sums of spells, in microseconds: of each partition first, so that partitions can be counted."""
    split = spells.withColumn("part", sf.explode(parts(sf.col("begin"), sf.col("finish"))))
    lasted = sf.greatest(sf.col("part.to_micros") - sf.col("part.from_micros"), sf.lit(0))
    # Of a spell that lasts, the last of its weeks lasts.
    ends_here = sf.col("lasting") & (sf.col("part.to_micros") == sf.col("finish"))
    each = split.select(
        *PARTITION,
        "dimension",
        "name",
        sf.col("part.week").alias("week"),
        "trouble",
        "known",
        "unsure",
        lasted.alias("lasted"),
        sf.when(ends_here, sf.col("begin")).alias("since"),
    )
    known, unknown = sf.col("known"), ~sf.col("known")
    of_partition = each.groupBy(*PARTITION, "dimension", "name", "week", "trouble").agg(
        sf.count_if(known).alias("spells"),
        sf.sum(sf.when(known, sf.col("lasted"))).alias("seconds"),
        sf.max(sf.when(known, sf.col("lasted"))).alias("longest_seconds"),
        sf.sum(sf.when(unknown, sf.col("lasted"))).alias("unknown_seconds"),
        sf.count(sf.when(known, sf.col("since"))).alias("lasting"),
        sf.min(sf.when(known, sf.col("since"))).alias("lasting_since"),
        sf.count_if(known & sf.col("unsure")).alias("unsure_spells"),
    )
    owners = sf.when(
        sf.col("dimension") == OF_PARTITION,
        sf.array(_named(CLUSTER, sf.col("cluster")), _named(TOPIC, sf.col("topic"))),
    ).otherwise(sf.array(sf.struct("dimension", "name")))
    owned = of_partition.withColumn("owner", sf.explode(owners)).drop("dimension", "name")
    return (
        owned.groupBy("cluster", sf.col("owner.dimension"), sf.col("owner.name"), "week", "trouble")
        .agg(
            sf.count_if(sf.col("spells") > 0).alias("partitions"),
            *(sf.sum(column).alias(column) for column in ("spells", "seconds", "unknown_seconds")),
            sf.max("longest_seconds").alias("longest_seconds"),
            *(sf.sum(column).alias(column) for column in ("lasting", "unsure_spells")),
            sf.min("lasting_since").alias("lasting_since"),
        )
        .where("spells > 0 or unknown_seconds > 0")
    )


def _time(states: DataFrame, facts: Facts, wanted: Wanted) -> DataFrame:
    """How long the partitions of each name were there: cluster, dimension, name, week, partition_seconds (micros)."""
    rows = facts.told(states).join(sf.broadcast(facts.frame), "cluster")
    begin = wanted.clip(sf.unix_micros("valid_from"))
    finish = wanted.clip(sf.coalesce(sf.unix_micros("valid_to"), "end"))
    split = rows.select("cluster", "topic", "replicas", sf.explode(parts(begin, finish)).alias("part")).select(
        "cluster",
        "topic",
        "replicas",
        sf.col("part.week").alias("week"),
        (sf.col("part.to_micros") - sf.col("part.from_micros")).alias("micros"),
    )
    # By list of replicas first: there are few of them, however many partitions.
    lists = split.groupBy("cluster", "replicas", "week").agg(sf.sum("micros").alias("micros"))
    topics = split.groupBy("cluster", "topic", "week").agg(sf.sum("micros").alias("micros"))
    held = lists.join(sf.broadcast(facts.frame), "cluster")
    brokers = sf.transform("replicas", lambda broker: broker.cast("string"))
    racks = sf.array_compact(sf.array_distinct(sf.transform("replicas", lambda one: sf.try_element_at("racks", one))))
    found = [
        topics.select("cluster", sf.lit(TOPIC).alias("dimension"), sf.col("topic").alias("name"), "week", "micros"),
        held.select("cluster", sf.lit(CLUSTER).alias("dimension"), sf.col("cluster").alias("name"), "week", "micros"),
        held.select("cluster", sf.lit(BROKER).alias("dimension"), sf.explode(brokers).alias("name"), "week", "micros"),
        held.select("cluster", sf.lit(RACK).alias("dimension"), sf.explode(racks).alias("name"), "week", "micros"),
    ]
    union = found[0]
    for other in found[1:]:
        union = union.unionByName(other)
    return union.groupBy(*_NAME).agg(sf.sum("micros").alias("partition_seconds"))


def _named(dimension: str, name: Column) -> Column:
    return sf.struct(sf.lit(dimension).alias("dimension"), name.alias("name"))


def _seconds(name: str) -> Column:
    return (sf.greatest(sf.coalesce(name, sf.lit(0)), sf.lit(0)) / sf.lit(SECOND)).cast("double").alias(name)


def _share(name: str) -> Column:
    return sf.when(
        sf.col("partition_seconds") > 0,
        sf.coalesce(sf.col(name), sf.lit(0)).cast("double") / sf.col("partition_seconds"),
    )
