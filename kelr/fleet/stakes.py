"""What an election put at stake, as far as somebody had asked the replicas for their logs while nobody led.

While a partition has no leader nothing is appended to it. So what replicas told in that time, in the leader epoch just
before the election, is what they held when one of them was elected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kelr.fleet.closing import CHANGED
from kelr.model import ELR_FEATURE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ELECTION = ("cluster", "topic", "topic_id", "partition", "leader_epoch", "offset")
_KEPT_ELR = (
    "coalesce(array_max(filter(_levels, known -> known.offset <= from_offset)).kept, false)"
    " and forall(_levels, known -> known.offset <= from_offset or known.offset >= offset or known.kept)"
)
"""Whether ELR was on from when nobody led up to the election; not so where no record tells."""


def staked(elections: DataFrame, logs: DataFrame, states: DataFrame, events: DataFrame) -> DataFrame:
    """Elections with what was at stake in each, and `CHANGED` where that is another figure than before.

    The figure is how many records the best known log had behind the end of the elected one, where both end in one
    epoch: then they are of one line. Where the best log ends in a newer epoch than the elected one, or an end or epoch
    was not heard, it is null; and also where neither all replicas were heard nor one that held all that was committed
    (of ISR or ELR while nobody led, with ELR on): whoever was not heard may have had more. With ELR off
    no ISR is emptied (PartitionChangeBuilder.build): the last one stays in it after an unclean shutdown, though its log
    may lack what it had.

    Args:
        logs: rows of log_info.
        states: rows of partition_states, with their ends.
        events: rows of cluster_events, which tell when ELR was on.
    """
    found = _stakes(elections, logs, states, _levels(events))
    # Under other names: both sides of the join come from one frame.
    found = found.withColumnsRenamed({name: f"_of_{name}" for name in _ELECTION})
    both = elections.withColumnsRenamed({"offsets_at_stake": "_stake", "stake_source": "_source"})
    same = [fn.col(name).eqNullSafe(fn.col(f"_of_{name}")) for name in _ELECTION]
    joined = both.join(found, same, "left").drop(*(f"_of_{name}" for name in _ELECTION))
    changed = ~fn.col("offsets_at_stake").eqNullSafe(fn.col("_stake")) | ~fn.col("stake_source").eqNullSafe(
        fn.col("_source")
    )
    return joined.withColumn(CHANGED, changed).drop("_stake", "_source")


def _levels(events: DataFrame) -> DataFrame:
    """Of each cluster, where in its log ELR was turned on or off."""
    told = events.where((fn.col("event") == "feature") & (fn.col("name") == ELR_FEATURE) & (fn.col("source") == "log"))
    level = fn.struct("offset", (fn.col("after").cast("int") > 0).alias("kept"))
    return told.groupBy("cluster").agg(fn.collect_list(level).alias("_levels"))


def _stakes(elections: DataFrame, logs: DataFrame, states: DataFrame, levels: DataFrame) -> DataFrame:
    waited = states.where("leader is null and source = 'log'").select(
        "cluster", "topic", "topic_id", "partition", fn.col("leader_epoch").alias("_epoch"), "valid_from", "valid_to",
        "from_offset", "replicas",
        fn.array_union("isr", fn.coalesce("elr", fn.array().cast("array<int>"))).alias("_in_sync"),
    )  # fmt: skip
    asked = elections.select(*_ELECTION, "at", "to_leader", (fn.col("leader_epoch") - 1).alias("_epoch"))
    heard = logs.select(
        "cluster", "topic", "partition", fn.col("leader_epoch").alias("_epoch"), "replica", "read_at", "log_end",
        "last_epoch",
    )  # fmt: skip
    leaderless = (
        asked.join(heard, ["cluster", "topic", "partition", "_epoch"])
        .join(waited, ["cluster", "topic", "topic_id", "partition", "_epoch"])
        .where("read_at >= valid_from and read_at <= at and (valid_to is null or read_at <= valid_to)")
        .join(levels, "cluster", "left")
        .withColumn(
            "_complete", fn.when(fn.expr(_KEPT_ELR), fn.col("_in_sync")).otherwise(fn.array().cast("array<int>"))
        )
    )
    newest = Window.partitionBy(*_ELECTION, "replica").orderBy(fn.col("read_at").desc(), fn.col("log_end").desc())
    each = leaderless.where("log_end is not null").withColumn("_nth", fn.row_number().over(newest)).where("_nth = 1")
    return (
        each.groupBy(*_ELECTION)
        .agg(
            fn.max(fn.struct("last_epoch", "log_end")).alias("_best"),
            fn.max(fn.when(fn.col("replica") == fn.col("to_leader"), fn.struct("last_epoch", "log_end"))).alias("_own"),
            fn.bool_and(fn.col("last_epoch").isNotNull()).alias("_comparable"),
            fn.count("*").alias("_heard"),
            fn.max("read_at").alias("_read_at"),
            fn.bool_or(fn.array_contains("_complete", fn.col("replica"))).alias("_one_complete"),
            fn.size(fn.array_except(fn.first("replicas"), fn.collect_set("replica"))).alias("_unheard"),
        )
        .where("_one_complete or _unheard = 0")
        .where("_comparable and _own is not null and _own.last_epoch = _best.last_epoch")
        .select(
            *_ELECTION,
            (fn.col("_best.log_end") - fn.col("_own.log_end")).alias("offsets_at_stake"),
            fn.concat(
                fn.lit("log_info: "),
                fn.col("_heard").cast("string"),
                fn.lit(" replicas heard, the last at "),
                fn.date_format("_read_at", "yyyy-MM-dd HH:mm:ss"),
            ).alias("stake_source"),
        )
    )
