"""Until when a state held: it holds until the next one of its partition; and the folders that change by that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kelr.fleet.staging import PLACE
from kelr.fleet.tables import PARTITION_STATES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GONE = "_gone"
"""Whether a row only says that its partition was deleted."""
KNOWN, CHANGED = "_known", "_changed"
_PARTITION = ("cluster", "source", "_topic", "partition")
_WAS = "_was"


def closed(told: DataFrame, known: DataFrame) -> DataFrame:
    """States with the end of each.

    Args:
        told: new rows of partition_states, with `PLACE` (their order where offsets are equal) and `GONE`.
        known: rows of the lake that may get another end, of the same clusters: see `may_change`.

    Returns: rows of partition_states without those that only say that a partition was deleted; `KNOWN` tells the lake's
        own rows, and `CHANGED` those of them that have another end now.
    """
    order = Window.partitionBy(*_PARTITION).orderBy(
        fn.col("from_offset").asc_nulls_first(), "valid_from", fn.col(KNOWN).desc(), PLACE
    )
    new = told.withColumns({KNOWN: fn.lit(False), _WAS: fn.col("valid_to")})
    old = known.withColumns(
        {KNOWN: fn.lit(True), _WAS: fn.col("valid_to"), GONE: fn.lit(False), PLACE: fn.lit(-1).cast("long")}
    )
    followed = (
        new.unionByName(old)
        .withColumn("_topic", fn.coalesce("topic_id", "topic"))
        .withColumn("valid_to", fn.lead("valid_from").over(order))
        .where(~fn.col(GONE))
    )
    changed = fn.col(KNOWN) & ~fn.col("valid_to").eqNullSafe(fn.col(_WAS))
    return followed.select(*PARTITION_STATES.columns, KNOWN, changed.alias(CHANGED))


def may_change(states: DataFrame) -> DataFrame:
    """The rows whose end is not settled: open ones of logs, which only grow at their end, and all of snapshots, which
    come in any order."""
    return states.where(fn.col("valid_to").isNull() | (fn.col("source") != "log"))


def changed_folders(states: DataFrame) -> list[dict[str, str]]:
    """The folders (cluster, date) of the lake in which a row has got another end."""
    found = states.where(CHANGED).select("cluster", fn.col("date").cast("string").alias("date")).distinct().collect()
    return [{"cluster": row["cluster"], "date": row["date"]} for row in found]


def in_folders(frame: DataFrame, folders: Sequence[Mapping[str, str]]) -> DataFrame:
    """The rows of these folders: of a cluster, or of a date of one."""
    whole = sorted(one["cluster"] for one in folders if "date" not in one)
    dates: dict[str, list[str]] = {}
    for one in folders:
        if "date" in one:
            dates.setdefault(one["cluster"], []).append(one["date"])
    wanted = [fn.col("cluster").isin(whole)] if whole else []
    wanted += [
        (fn.col("cluster") == cluster) & fn.col("date").isin([date.fromisoformat(one) for one in sorted(of)])
        for cluster, of in sorted(dates.items())
    ]
    return frame.where(reduce(or_, wanted, fn.lit(False)))
