"""How the rows of one run become part of the lake: added, or put in place of folders that change by them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from kelr.fleet.inputs import Input
from kelr.fleet.looking import Looked
from kelr.fleet.planning import Told, told_of
from kelr.fleet.staging import PLACE, STATES, TASK, TELLING
from kelr.fleet.tables import (
    BROKER_EVENTS,
    CLUSTER_EVENTS,
    CONFIGS,
    ELECTIONS,
    INPUTS,
    LOG_ENDS,
    LOG_INFO,
    PARTITION_STATES,
    QUARANTINED_ROWS,
    Table,
)
from kelr.model import ELR_FEATURE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kelr.fleet.lake import Changes, Lake
    from kelr.fleet.tasks import Stage


# Until when a state held: it holds until the next one of its partition; and the folders that change by that.


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


# What an election put at stake, as far as somebody had asked the replicas for their logs while nobody led.
#
# While a partition has no leader nothing is appended to it. So what replicas told in that time, in the leader epoch
# just before the election, is what they held when one of them was elected.


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
                fn.lit(" logs read, the last at "),
                fn.date_format("_read_at", "yyyy-MM-dd HH:mm:ss"),
            ).alias("stake_source"),
        )
    )


# Landing.


@dataclass(frozen=True, slots=True)
class Landing:
    """The rows of one run."""

    lake: Lake
    changes: Changes
    stage: Stage
    failed: frozenset[int]
    """Tasks whose rows are not taken."""
    anew: frozenset[str]
    """Clusters whose logs were told anew: what was told of them before goes."""
    going_on: frozenset[str]
    """Clusters whose logs were told from where an earlier run had ended."""
    clusters: frozenset[str]
    """All clusters of which there are new rows."""
    counts: Mapping[str, int]
    """How many new rows there are, by table."""

    def land(self) -> None:
        """Put all of them into the lake."""
        self._states()
        self._plain(BROKER_EVENTS, self._known(BROKER_EVENTS))
        self._plain(CONFIGS, self._known(CONFIGS))
        self._plain(LOG_INFO, self._known(LOG_INFO))
        self._plain(QUARANTINED_ROWS, self._known(QUARANTINED_ROWS))
        self._cluster_events()
        self._elections()
        self._log_states()

    def _new(self, table: Table) -> DataFrame:
        return self.stage.read(TELLING, table, self.failed)

    def _known(self, table: Table, clusters: Collection[str] | None = None) -> DataFrame:
        """What the lake has of these clusters and keeps."""
        wanted = self.clusters if clusters is None else clusters
        rows = self.lake.read(table).where(fn.col("cluster").isin(sorted(wanted)))
        if not self.anew:
            return rows
        told = fn.col("cluster").isin(sorted(self.anew))
        if "source" in table.columns:
            return rows.where(~(told & (fn.col("source") == "log")))
        return rows.where(~told) if table is ELECTIONS else rows

    def _stays(self, table: Table) -> bool:
        """Whether a table stays as it is: there are no new rows of it, and none of its own are to go."""
        return not self.counts.get(table.name) and not self.anew

    def _plain(self, table: Table, known: DataFrame) -> None:
        """A table whose rows never change; of a log that is told anew they go."""
        if self._stays(table):
            return
        anew = sorted(self.anew) if table is not LOG_INFO else []
        rows = self._new(table).select(*table.columns)
        if anew:
            rows = rows.unionByName(known.where(fn.col("cluster").isin(anew)).select(*table.columns))
        self._put(table, rows, [{"cluster": cluster} for cluster in anew])

    def _cluster_events(self) -> None:
        """Of each log only the newest end is kept."""
        if self._stays(CLUSTER_EVENTS):
            return
        known, table = self._known(CLUSTER_EVENTS), CLUSTER_EVENTS
        ends = (fn.col("event") == "end") & (fn.col("source") == "log") & fn.col("cluster").isin(sorted(self.going_on))
        folders = self._anew_folders()
        if self.going_on:
            folders += [
                {"cluster": row["cluster"], "date": str(row["date"])}
                for row in known.where(ends).select("cluster", "date").distinct().collect()
            ]
        stay = in_folders(known, folders).where(~ends) if folders else None
        new = self._new(table).select(*table.columns)
        self._put(table, new if stay is None else new.unionByName(stay.select(*table.columns)), folders)

    def _states(self) -> None:
        table = PARTITION_STATES
        if self._stays(table):
            return
        new = self._new(table).drop(TASK).withColumn(GONE, fn.col("replicas").isNull())
        known = self._known(table)
        if not self._has(table):
            states = closed(new, known.limit(0))
            self._put(table, states.where(~fn.col(KNOWN)).select(*table.columns), [])
            return
        states = closed(new, may_change(known)).persist(StorageLevel.DISK_ONLY)
        try:
            folders = self._anew_folders()
            again = {folder["cluster"] for folder in folders}
            folders += [folder for folder in changed_folders(states) if folder["cluster"] not in again]
            settled = known.where(~(fn.col("valid_to").isNull() | (fn.col("source") != "log")))
            rows = (
                states.where(~fn.col(KNOWN))
                .select(*table.columns)
                .unionByName(in_folders(states.where(KNOWN), folders).select(*table.columns))
                .unionByName(in_folders(settled, folders).select(*table.columns))
            )
            self._put(table, rows, folders)
        finally:
            states.unpersist()

    def _elections(self) -> None:
        table = ELECTIONS
        new = self._new(table).select(*table.columns)
        if not self._has(LOG_INFO) or not (self.counts.get(table.name) or self._has(table)):
            if not self._stays(table):
                self._put(table, new, self._anew_folders())
            return
        logs, states, events = (self._after(one) for one in (LOG_INFO, PARTITION_STATES, CLUSTER_EVENTS))
        known = self._known(table)
        both = new.withColumn(KNOWN, fn.lit(False)).unionByName(known.withColumn(KNOWN, fn.lit(True)))
        rows = staked(both, logs, states, events).persist(StorageLevel.DISK_ONLY)
        try:
            folders = self._anew_folders()
            again = {folder["cluster"] for folder in folders}
            folders += [one for one in changed_folders(rows.where(KNOWN)) if one["cluster"] not in again]
            kept = in_folders(rows.where(KNOWN), folders)
            self._put(table, rows.where(~fn.col(KNOWN)).unionByName(kept).select(*table.columns), folders)
        finally:
            rows.unpersist()

    def _log_states(self) -> None:
        if not self.counts.get(STATES.name):
            return
        rows = self._new(STATES).select(*STATES.columns)
        clusters = [row["cluster"] for row in rows.select("cluster").distinct().collect()]
        if clusters:
            self.changes.replace(STATES, rows, [{"cluster": cluster} for cluster in sorted(clusters)])

    def _after(self, table: Table) -> DataFrame:
        """A table as it is going to be, of the clusters at hand."""
        return self.changes.read(table).where(fn.col("cluster").isin(sorted(self.clusters)))

    def _anew_folders(self) -> list[dict[str, str]]:
        return [{"cluster": cluster} for cluster in sorted(self.anew)]

    def _has(self, table: Table) -> bool:
        """Whether the lake has rows of a cluster at hand, or is going to have some."""
        return any(file.values["cluster"] in self.clusters for file in self.changes.files_of(table))

    def _put(self, table: Table, rows: DataFrame, folders: Iterable[Mapping[str, str]]) -> None:
        order = [name for name in _ORDER[table.name] if name in table.columns]
        spread = rows.hint("rebalance", "cluster", "date").sortWithinPartitions("cluster", "date", *order)
        self.changes.replace(table, spread, list(folders))


_ORDER = {
    PARTITION_STATES.name: ("topic", "partition", "from_offset", "valid_from"),
    BROKER_EVENTS.name: ("offset", "broker"),
    CLUSTER_EVENTS.name: ("offset",),
    ELECTIONS.name: ("topic", "partition", "offset"),
    CONFIGS.name: ("offset", "resource"),
    LOG_INFO.name: ("topic", "partition", "replica"),
    QUARANTINED_ROWS.name: ("table", "at"),
}
"""How rows lie in a file, so that a filter on topics has little to read."""


# The manifest, and how far logs were told.


def read_manifest(lake: Lake) -> dict[str, Input]:
    """Every file that was looked at, by its path."""
    return {row["path"]: _input(row) for row in lake.rows(INPUTS)}


def write_manifest(changes: Changes, files: Iterable[Input]) -> None:
    """All of it, in place of what was there."""
    rows = [
        {
            "path": one.path,
            "size_bytes": one.size_bytes,
            "modified": None if one.modified_ms is None else datetime.fromtimestamp(one.modified_ms / 1000, UTC),
            "kind": one.kind,
            "cluster": one.cluster,
            "node": one.node,
            "status": one.status,
            "reason": one.reason,
            "run": one.run,
            "taken_at": datetime.fromtimestamp(one.taken_at_ms / 1000, UTC),
            "looked": None if one.looked is None else one.looked.written(),
        }
        for one in sorted(files, key=lambda one: one.path)
    ]
    changes.put(INPUTS, rows)


def _input(row: Mapping[str, Any]) -> Input:
    modified, looked = row["modified"], row["looked"]
    return Input(
        path=row["path"],
        size_bytes=row["size_bytes"],
        modified_ms=None if modified is None else _ms(modified),
        kind=row["kind"],
        cluster=row["cluster"],
        node=row["node"],
        status=row["status"],
        reason=row["reason"],
        run=row["run"],
        taken_at_ms=_ms(row["taken_at"]),
        looked=None if looked is None else Looked.read(looked),
    )


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def read_told(lake: Lake) -> dict[str, Told]:
    """How far each cluster's log was told."""
    return {row["cluster"]: told_of(row["next_offset"], json.loads(row["spans"])) for row in lake.rows(LOG_ENDS)}


def keep_told(changes: Changes, told: Mapping[str, Told]) -> None:
    """Keep it for the next run."""
    rows = [
        {"cluster": cluster, "next_offset": one.offset, "spans": json.dumps(one.spans)}
        for cluster, one in sorted(told.items())
    ]
    changes.put(LOG_ENDS, rows)


__all__ = ["Landing", "keep_told", "read_manifest", "read_told", "write_manifest"]
