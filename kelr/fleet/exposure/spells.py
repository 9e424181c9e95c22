"""From pieces to spells: the times through which a partition stood in one trouble without a break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from kelr.fleet.exposure.troubles import PARTITION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted

OF_PARTITION = "partition"
OF_BROKER = "broker"
OF_RACK = "rack"
SECOND = 1_000_000
"""In microseconds."""
WHOLE = "1970-01-01"
"""Stands for the whole window where a week is asked for: a Thursday."""
_ABOUT = ("trouble", "known", "dimension", "name")
"""Whose spell it is: ``dimension`` is `OF_PARTITION` (all of it), `OF_BROKER` or `OF_RACK` (while it was missing)."""


def spells(pieces: DataFrame, facts: Facts, wanted: Wanted) -> DataFrame:
    """The spells of each partition, and those of the brokers and racks that were missing.

    Adjacent pieces are one spell, however the partition changed meanwhile. A spell goes from the beginning of its first
    piece to the end of its last; where another controller's clock was behind, it lasted no time.

    Args:
        pieces: as `kelr.fleet.exposure.troubles.pieces`.

    Returns:
        cluster, topic, partition, trouble; known (false: nobody can tell whether it was so); dimension, name; begin,
        finish (microseconds, within the window), lasting, unsure; first_place, last_place (of its pieces).
    """
    flat = (
        _linked(pieces)
        .join(sf.broadcast(facts.frame), "cluster")
        .select(
            *PARTITION,
            "seq",
            "joined",
            "place",
            "start",
            "stop",
            "lasts",
            "untold",
            "untold_end",
            "end",
            sf.explode(_dimensions()).alias("about"),
            "flags",
        )
    )
    each = flat.select(
        "*", sf.explode(sf.filter("flags", lambda one: sf.coalesce(one["flag"], sf.lit(True)))).alias("one")
    ).select(
        *PARTITION,
        sf.col("one.trouble").alias("trouble"),
        sf.col("one.flag").isNotNull().alias("known"),
        "about.dimension",
        "about.name",
        *("seq", "joined", "place", "start", "stop", "lasts", "untold", "untold_end", "end"),
    )
    order = Window.partitionBy(*PARTITION, *_ABOUT).orderBy("seq")
    follows = sf.coalesce(sf.col("joined") & (sf.lag("seq").over(order) == sf.col("seq") - 1), sf.lit(False))
    numbered = each.withColumn("begins", sf.when(follows, 0).otherwise(1)).withColumn(
        "number", sf.sum("begins").over(order)
    )
    first, last = "min_by({}, seq)", "max_by({}, seq)"
    merged = numbered.groupBy(*PARTITION, *_ABOUT, "number").agg(
        sf.expr(first.format("start")).alias("start"),
        sf.expr(last.format("stop")).alias("stop"),
        sf.expr(last.format("lasts")).alias("lasts"),
        sf.expr(f"{first.format('untold')} or {last.format('untold_end')}").alias("unsure"),
        sf.expr(first.format("place")).alias("first_place"),
        sf.expr(last.format("place")).alias("last_place"),
        sf.first("end").alias("end"),
    )
    begin = wanted.clip(sf.col("start"))
    finish = wanted.clip(sf.coalesce("stop", "end"))
    return merged.select(
        *PARTITION,
        *_ABOUT,
        begin.alias("begin"),
        sf.greatest(begin, finish).alias("finish"),
        _lasting(wanted).alias("lasting"),
        "unsure",
        "first_place",
        "last_place",
    )


def parts(begin: Column, finish: Column) -> Column:
    """A time in microseconds, as a whole and by weeks: an array of (week, from_micros, to_micros), `WHOLE` being the
    whole. Where it ends before it begins, so do its parts: sums over pieces that follow each other come out right."""
    low, high = sf.least(begin, finish), sf.greatest(begin, finish)
    # What ends at midnight on a Monday is not in the week that begins there.
    last = sf.greatest(low, high - 1)
    weeks = sf.sequence(_monday(low), _monday(last), sf.expr("interval 7 days"))

    def part(week: Column) -> Column:
        monday = sf.unix_micros(week.cast("timestamp"))
        next_monday = monday + 7 * 86_400 * SECOND
        return sf.struct(
            week.alias("week"),
            sf.least(sf.greatest(begin, monday), next_monday).alias("from_micros"),
            sf.least(sf.greatest(finish, monday), next_monday).alias("to_micros"),
        )

    whole = sf.struct(sf.lit(WHOLE).cast("date").alias("week"), begin.alias("from_micros"), finish.alias("to_micros"))
    return sf.concat(sf.array(whole), sf.transform(weeks, part))


def _linked(pieces: DataFrame) -> DataFrame:
    """The pieces with their order, and which of them follow the one before without a break."""
    # Of several states that one record made, the last is the one that lasted.
    order = Window.partitionBy(*PARTITION).orderBy("place", "start", sf.col("stop").asc_nulls_last())
    joined = sf.lag("stop").over(order).eqNullSafe(sf.col("start")) & sf.lag("topic_id").over(order).eqNullSafe(
        sf.col("topic_id")
    )
    told = sf.lead(sf.struct("start", "untold")).over(order)
    # One big topic must not be the work of one task.
    return pieces.repartition(*PARTITION).select(
        "*",
        sf.row_number().over(order).alias("seq"),
        joined.alias("joined"),
        sf.coalesce(told["untold"] & (told["start"] == sf.col("stop")), sf.lit(False)).alias("untold_end"),
    )


def _dimensions() -> Column:
    """Whom a piece is about: the partition, the brokers that were missing, and their racks."""

    def named(dimension: str, name: Column) -> Column:
        return sf.struct(sf.lit(dimension).alias("dimension"), name.alias("name"))

    racks = sf.array_distinct(sf.transform("missing", lambda broker: sf.try_element_at("racks", broker)))
    return sf.concat(
        sf.array(named(OF_PARTITION, sf.lit(""))),
        sf.transform("missing", lambda broker: named(OF_BROKER, broker.cast("string"))),
        sf.transform(sf.filter(racks, lambda rack: rack.isNotNull()), lambda rack: named(OF_RACK, rack)),
    )


def _lasting(wanted: Wanted) -> Column:
    # A partition that the newest snapshot does not show any more may be well again, or gone.
    lasts = sf.col("lasts") & (sf.coalesce("stop", "end") >= sf.col("end"))
    if wanted.until_ms is None:
        return lasts
    return lasts | sf.coalesce(sf.col("stop") >= sf.unix_micros(wanted.until()), sf.lit(False))


def _monday(micros: Column) -> Column:
    return sf.to_date(sf.date_trunc("week", sf.timestamp_micros(micros)))
