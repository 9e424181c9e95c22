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
    time = _time(states, facts, wanted).select(
        *_NAME, sf.explode(sf.array(*map(sf.lit, TROUBLES))).alias("trouble"), "partition_seconds"
    )
    both = _by_name(spells).unionByName(time, allowMissingColumns=True)
    counts = ("partitions", "spells", "lasting", "unsure_spells")
    found = both.groupBy(*_NAME, "trouble").agg(
        *(sf.coalesce(sf.sum(one), sf.lit(0)).alias(one) for one in counts),
        *(sf.sum(one).alias(one) for one in ("seconds", "unknown_seconds", "partition_seconds")),
        sf.max("longest_seconds").alias("longest_seconds"),
        sf.min("lasting_since").alias("lasting_since"),
    )
    # A cluster without a trouble was looked at, and is told from one that was not.
    told = found.where((sf.col("dimension") == CLUSTER) | (sf.col("spells") > 0) | (sf.col("unknown_seconds") > 0))
    return told.select(
        "cluster",
        "dimension",
        "name",
        sf.nullif("week", sf.lit(WHOLE).cast("date")).alias("week"),
        "trouble",
        *counts,
        *(_seconds(name) for name in ("seconds", "longest_seconds", "unknown_seconds", "partition_seconds")),
        _share("seconds").alias("share"),
        _share("unknown_seconds").alias("unknown_share"),
        sf.timestamp_micros("lasting_since").alias("lasting_since"),
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
    return owned.groupBy("cluster", "owner.dimension", "owner.name", "week", "trouble").agg(
        sf.count_if(sf.col("spells") > 0).alias("partitions"),
        *(sf.sum(column).alias(column) for column in ("spells", "seconds", "unknown_seconds")),
        sf.max("longest_seconds").alias("longest_seconds"),
        *(sf.sum(column).alias(column) for column in ("lasting", "unsure_spells")),
        sf.min("lasting_since").alias("lasting_since"),
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
    # By list of replicas first: of a topic there are few, however often its partitions changed.
    lists = split.groupBy("cluster", "topic", "replicas", "week").agg(sf.sum("micros").alias("micros"))
    racks = sf.array_compact(sf.array_distinct(sf.transform("replicas", lambda one: sf.try_element_at("racks", one))))
    owners = sf.concat(
        sf.array(_named(CLUSTER, sf.col("cluster")), _named(TOPIC, sf.col("topic"))),
        sf.transform("replicas", lambda broker: _named(BROKER, broker.cast("string"))),
        sf.transform(racks, lambda rack: _named(RACK, rack)),
    )
    owned = lists.join(sf.broadcast(facts.frame), "cluster").withColumn("owner", sf.explode(owners))
    return owned.groupBy("cluster", "owner.dimension", "owner.name", "week").agg(
        sf.sum("micros").alias("partition_seconds")
    )


def _named(dimension: str, name: Column) -> Column:
    return sf.struct(sf.lit(dimension).alias("dimension"), name.alias("name"))


def _seconds(name: str) -> Column:
    return (sf.greatest(sf.coalesce(name, sf.lit(0)), sf.lit(0)) / sf.lit(SECOND)).cast("double").alias(name)


def _share(name: str) -> Column:
    return sf.when(
        sf.col("partition_seconds") > 0,
        sf.coalesce(sf.col(name), sf.lit(0)).cast("double") / sf.col("partition_seconds"),
    )
