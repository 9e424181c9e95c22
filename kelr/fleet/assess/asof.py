"""The partitions of a lake as they were at a moment, with what their topics' configs and logs were known to be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kelr.fleet.assess.contexts import KEYS, LOG, SNAPSHOT, Context, day_of, moment, of_clusters, until
from kelr.fleet.assess.shapes import LOG as LOG_SHAPE
from kelr.fleet.assess.shapes import STATE
from kelr.fleet.tables import CONFIGS, LOG_INFO, PARTITION_STATES, Table
from kelr.replay.image import CLEANUP, MIN_ISR, STRATEGY, UNCLEAN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake

COLUMN_OF = {MIN_ISR: "min_isr", UNCLEAN: "unclean", CLEANUP: "cleanup", STRATEGY: "strategy"}
"""What a config is called in columns: ``own_min_isr``, ``own_min_isr_source``, ``default_min_isr``, ..."""
FEW_ROWS = 300_000
"""A table of so many rows is sent to every worker."""


def states(lake: Lake, contexts: Sequence[Context], at_us: int | None, topic: str | None = None) -> DataFrame:
    """The partitions at a moment: cluster, topic, partition, and the fields of `STATE`.

    Of a cluster with a metadata log, rows that hold then; of one with snapshots, what the newest of them has.

    Args:
        topic: a name with ``*`` and ``?``; None: all topics.
    """
    open_then = fn.col("valid_to").isNull()
    if at_us is not None:
        open_then = (open_then | (fn.col("valid_to") > moment(at_us))) & until(at_us, "valid_from")
    frame = _of_sources(lake, PARTITION_STATES, contexts, open_then, "valid_from")
    if topic is not None:
        frame = frame.where(_named(topic))
    return frame.select("cluster", "topic", "partition", *STATE.fieldNames())


def topics(lake: Lake, contexts: Sequence[Context], at_us: int | None, partitions: DataFrame) -> DataFrame:
    """What the partitions of a topic share: cluster, topic, `first_replicas` (null: partition 0 is not known), `first`
    (partition 0, where a reassignment of it is under way, else null), and the configs: ``own_min_isr`` and so on.

    Args:
        partitions: `states`.
    """
    moves = (fn.size(fn.coalesce("adding", fn.array())) > 0) | (fn.size(fn.coalesce("removing", fn.array())) > 0)
    first = fn.struct(*(fn.col(name) for name in STATE.fieldNames()))
    firsts = partitions.where("partition = 0").select(
        "cluster", "topic", fn.size("replicas").alias("first_replicas"), fn.when(moves, first).alias("first")
    )
    return firsts.join(_configs(lake, contexts, at_us), ["cluster", "topic"], "full_outer")


def logs(lake: Lake, contexts: Sequence[Context], at_us: int | None) -> DataFrame | None:
    """What was last known of replicas' logs: cluster, topic, partition, leader_epoch, and `logs`, one `LOG` for each
    replica; None where nothing ever was. What was not asked under a leader epoch is not among them: it may be older."""
    if not lake.files_of(LOG_INFO):
        return None
    frame = lake.read(LOG_INFO).where(of_clusters(one.id for one in contexts) & until(at_us, "read_at"))
    partition = ("cluster", "topic", "partition", "leader_epoch")
    newest = fn.max_by(fn.struct(*(fn.col(name) for name in LOG_SHAPE.fieldNames())), "read_at")
    by_replica = frame.where("leader_epoch is not null").groupBy(*partition, "replica").agg(newest.alias("log"))
    return by_replica.groupBy(*partition).agg(fn.collect_list("log").alias("logs"))


def _of_sources(lake: Lake, table: Table, contexts: Sequence[Context], of_log: Column, time: str) -> DataFrame:
    """Rows of each cluster's source: of logs those that a condition holds for, of snapshots those of the newest."""
    frame = lake.read(table)
    logged = [one.id for one in contexts if one.source == LOG]
    found = frame.where(of_clusters(logged) & (fn.col("source") == LOG) & of_log) if logged else None
    for one in contexts:
        if one.source == SNAPSHOT:
            # Rows of one cluster and day: Spark looks into no other folder.
            here = (fn.col("cluster") == one.id) & (fn.col("date") == fn.lit(day_of(one.at_us)))
            rows = frame.where(here & (fn.col("source") == SNAPSHOT) & (fn.col(time) == moment(one.at_us)))
            found = rows if found is None else found.unionByName(rows)
    return frame.where("false") if found is None else found


def _configs(lake: Lake, contexts: Sequence[Context], at_us: int | None) -> DataFrame:
    """What each topic sets for itself (a metadata log), or what holds for it (a snapshot), newest last."""
    frame = _of_sources(lake, CONFIGS, contexts, until(at_us), "at")
    frame = frame.where((fn.col("resource_type") == "topic") & fn.col("key").isin(*KEYS))
    values: list[Column] = []
    order = fn.struct("at", "offset")
    for key, name in COLUMN_OF.items():
        of_key = fn.col("key") == key
        newest = fn.max_by(fn.struct("value", "value_source"), fn.when(of_key, order))
        values += [newest["value"].alias(f"own_{name}"), newest["value_source"].alias(f"own_{name}_source")]
    return frame.groupBy("cluster", fn.col("resource").alias("topic")).agg(*values)


def _named(pattern: str) -> Column:
    if "*" not in pattern and "?" not in pattern:
        return fn.col("topic") == pattern
    words = {"*": ".*", "?": "."}
    expression = "".join(words.get(letter) or re.sub(r"([^\w-])", r"\\\1", letter) for letter in pattern)
    prefix = re.split(r"[*?]", pattern, maxsplit=1)[0]
    # The prefix is looked up in the files' statistics; the rest is not.
    return fn.col("topic").startswith(prefix) & fn.col("topic").rlike(f"^{expression}$")
