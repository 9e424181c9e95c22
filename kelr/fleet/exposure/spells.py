"""From pieces to spells: the times through which a partition stood in one trouble without a break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from kelr.replay.history import Trouble

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted


# In which trouble a partition is in each of its states: as `kelr.replay.history.Trouble`, in Spark's own expressions.
#
# A flag is true, false, or null where it is not known. A **piece** is a time of one partition in which its flags hold.
# Pieces without any trouble are left out where nothing hangs on them.


MIN_ISR_UNKNOWN = "min-isr-unknown"
PARTITION = ("cluster", "topic", "partition")
_ENOUGH = "array_size(isr) >= array_size(replicas)"
"""So many in sync are enough whatever min.insync.replicas is (`leader_min_isr`)."""
FLAGS = {
    str(Trouble.LEADERLESS): "leader is null",
    str(Trouble.UNDER_MIN_ISR): "leader is not null and"
    f" case when min_isr is null and {_ENOUGH} then false else array_size(isr) < min_isr end",
    str(Trouble.LAST_REPLICA): "leader is not null and array_size(isr) = 1 and array_size(replicas) > 1",
    str(Trouble.ELR_ONLY): "leader is null and array_size(isr) = 0 and array_size(elr) > 0",
    MIN_ISR_UNKNOWN: f"leader is not null and min_isr is null and not coalesce({_ENOUGH}, false)",
}
"""Each trouble as a condition on a row of `partition_states`, by SQL's logic of three values."""
TROUBLES = tuple(FLAGS)
_TROUBLED = " or ".join(f"({flag}) is distinct from false" for flag in FLAGS.values())
_BACKWARDS = "valid_to <= valid_from"
"""A state that lasted no time, by clocks that may go backwards: two states around it do not follow each other."""
_UNTOLD = "cause <=> 'not-told'"
_AGREE = ("topic_id", "leader", "leader_epoch", "replicas", "isr", "elr", "min_isr")


def pieces(states: DataFrame, facts: Facts) -> DataFrame:
    """The pieces of all partitions.

    Returns:
        cluster, topic, topic_id, partition; ``place`` (puts the pieces of a partition in order); ``start`` and ``stop``
        in microseconds, ``stop`` null at the end of what is on record; ``lasts`` (nothing after it is on record);
        ``untold`` (when it began is not known); ``missing`` (replicas that were not in sync); and ``flags``, an array
        of (trouble, flag).
    """
    found = [_of_logs(facts.of_logs(states))] if facts.logged or not facts.observed else []
    if facts.observed:
        found.append(_of_snapshots(facts.of_snapshots(states)))
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def _of_logs(rows: DataFrame) -> DataFrame:
    told = rows.where(f"({_TROUBLED}) or {_BACKWARDS} or {_UNTOLD}")
    return told.select(
        *PARTITION,
        "topic_id",
        sf.col("from_offset").alias("place"),
        sf.expr("unix_micros(valid_from)").alias("start"),
        sf.expr("unix_micros(valid_to)").alias("stop"),
        sf.expr("valid_to is null").alias("lasts"),
        sf.expr(_UNTOLD).alias("untold"),
        sf.expr("coalesce(array_except(replicas, isr), replicas)").alias("missing"),
        _flags(),
    )


def _of_snapshots(rows: DataFrame) -> DataFrame:
    """A snapshot tells of one moment. Between two, what both show holds, and nothing is known where they differ."""
    order = Window.partitionBy(*PARTITION).orderBy("valid_from")
    after = sf.lead(sf.struct("valid_from", *_AGREE)).over(order)
    same = " and ".join(["after.valid_from <=> valid_to", *(f"after.{column} <=> {column}" for column in _AGREE)])
    seen = rows.withColumn("after", after).select(
        *PARTITION,
        "topic_id",
        sf.expr("unix_micros(valid_from)").alias("seen"),
        sf.expr("unix_micros(valid_to)").alias("next"),
        sf.expr("coalesce(array_except(replicas, isr), replicas)").alias("missing"),
        sf.expr("array_distinct(concat(replicas, coalesce(after.replicas, array())))").alias("any"),
        sf.expr(same).alias("same"),
        _flags(),
    )
    unknown = sf.array(
        *(sf.struct(sf.lit(name).alias("trouble"), sf.expr("cast(null as boolean)").alias("flag")) for name in TROUBLES)
    )
    halves = sf.array(
        sf.struct(
            sf.lit(0).alias("half"),
            sf.col("seen").alias("stop"),
            sf.expr("next is null").alias("lasts"),
            sf.col("missing").alias("missing"),
            sf.col("flags").alias("flags"),
        ),
        sf.struct(
            sf.lit(1).alias("half"),
            sf.col("next").alias("stop"),
            sf.expr("next is null").alias("lasts"),
            sf.when(sf.col("same"), sf.col("missing")).otherwise(sf.col("any")).alias("missing"),
            sf.when(sf.col("same"), sf.col("flags")).otherwise(unknown).alias("flags"),
        ),
    )
    return seen.select(*PARTITION, "topic_id", "seen", sf.explode(halves).alias("piece")).select(
        *PARTITION,
        "topic_id",
        sf.expr("2 * seen + piece.half").alias("place"),
        sf.col("seen").alias("start"),
        sf.col("piece.stop"),
        sf.col("piece.lasts"),
        sf.lit(True).alias("untold"),
        sf.col("piece.missing"),
        sf.col("piece.flags"),
    )


def _flags() -> Column:
    known = (sf.struct(sf.lit(name).alias("trouble"), sf.expr(flag).alias("flag")) for name, flag in FLAGS.items())
    return sf.array(*known).alias("flags")


# Spells.


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
        pieces: as `kelr.fleet.exposure.spells.pieces`.

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
