"""In which trouble a partition is in each of its states: as `kelr.replay.history.Trouble`, in Spark's own expressions.

A flag is true, false, or null where it is not known. A **piece** is a time of one partition in which its flags hold.
Pieces without any trouble are left out where nothing hangs on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from kelr.replay.history import Trouble

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts

MIN_ISR_UNKNOWN = "min-isr-unknown"
PARTITION = ("cluster", "topic", "partition")
_ENOUGH = "array_size(isr) >= first_replicas"
"""So many in sync are enough whatever min.insync.replicas is: the effective one is at most the replica count of
partition 0 (ReplicationControlManager.getTopicEffectiveMinIsr)."""
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
    known = facts.min_isr_known
    found = [_of_logs(facts.of_logs(states), known=known)] if facts.logged or not facts.observed else []
    if facts.observed:
        found.append(_of_snapshots(facts.of_snapshots(states), known=known))
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def _of_logs(rows: DataFrame, *, known: bool) -> DataFrame:
    told = _with_first_replicas(rows, f"({_TROUBLED}) or {_BACKWARDS} or {_UNTOLD}", known=known)
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


def _of_snapshots(rows: DataFrame, *, known: bool) -> DataFrame:
    """A snapshot tells of one moment. Between two, what both show holds, and nothing is known where they differ."""
    order = Window.partitionBy(*PARTITION).orderBy("valid_from")
    after = sf.lead(sf.struct("valid_from", *_AGREE)).over(order)
    same = " and ".join(["after.valid_from <=> valid_to", *(f"after.{column} <=> {column}" for column in _AGREE)])
    seen = _with_first_replicas(rows.withColumn("after", after), "true", known=known).select(
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


def _with_first_replicas(rows: DataFrame, kept: str, *, known: bool) -> DataFrame:
    """The rows to keep, with the largest replica count of partition 0 where min ISR is not known."""
    none = sf.expr("cast(null as int)").alias("first_replicas")
    found = rows.select("*", none).where(kept)
    if known:
        return found
    first = rows.where("partition = 0 and min_isr is null").groupBy("cluster", "topic")
    counts = first.agg(sf.expr("max(array_size(replicas))").alias("first_replicas"))
    return found.drop("first_replicas").join(counts, ["cluster", "topic"], "left")


def _flags() -> Column:
    known = (sf.struct(sf.lit(name).alias("trouble"), sf.expr(flag).alias("flag")) for name, flag in FLAGS.items())
    return sf.array(*known).alias("flags")
