"""Which clusters and which time are looked at, and what of each cluster has to be known for that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, PARTITION_STATES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake
    from kelr.fleet.tables import Table

_MICROS = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be summed up.

    Args:
        clusters: their ids; empty: all.
        since_ms: the first moment that counts; None: the beginning of what is on record.
        until_ms: the first that counts no more; None: the end of it.
    """

    clusters: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def read(self, lake: Lake, table: Table) -> DataFrame:
        """A table, of these clusters."""
        rows = lake.read(table)
        return rows.where(sf.col("cluster").isin(*self.clusters)) if self.clusters else rows

    def up_to(self, rows: DataFrame, when: str) -> DataFrame:
        """Rows that lie before the end; a row's folder is the date of its time `when`."""
        if self.until_ms is None:
            return rows
        return rows.where(sf.col("date") <= sf.lit(_moment(self.until_ms).date())).where(sf.col(when) < self.until())

    def states(self, lake: Lake) -> DataFrame:
        """The partitions' states that reach into the window."""
        rows = self.up_to(self.read(lake, PARTITION_STATES), "valid_from")
        if self.since_ms is None:
            return rows
        return rows.where(sf.col("valid_to").isNull() | (sf.col("valid_to") >= self.since()))

    def within(self, rows: DataFrame, when: str) -> DataFrame:
        """Rows that lie in the window."""
        rows = self.up_to(rows, when)
        if self.since_ms is None:
            return rows
        return rows.where(sf.col("date") >= sf.lit(_moment(self.since_ms).date())).where(sf.col(when) >= self.since())

    def since(self) -> Column:
        """The beginning as a timestamp; null: none."""
        return _timestamp(self.since_ms)

    def until(self) -> Column:
        """The end as a timestamp; null: none."""
        return _timestamp(self.until_ms)

    def clip(self, micros: Column) -> Column:
        """A time in microseconds, moved into the window."""
        if self.until_ms is not None:
            micros = sf.least(micros, sf.lit(self.until_ms * _MICROS))
        return micros if self.since_ms is None else sf.greatest(micros, sf.lit(self.since_ms * _MICROS))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the clusters that have anything in the window.

    Args:
        frame: cluster, ``end`` (microseconds: where the window or the record ends), ``racks`` (broker to rack).
        logged: the clusters with a metadata log: whatever snapshots of them there are tell nothing more.
        observed: those with snapshots alone.
    """

    frame: DataFrame
    logged: tuple[str, ...]
    observed: tuple[str, ...]

    def of_logs(self, states: DataFrame) -> DataFrame:
        """The states that metadata logs tell."""
        return states.where(sf.col("cluster").isin(*self.logged) & (sf.col("source") == "log"))

    def of_snapshots(self, states: DataFrame) -> DataFrame:
        """The states that nothing but snapshots show."""
        return states.where(sf.col("cluster").isin(*self.observed) & (sf.col("source") == "snapshot"))

    def told(self, states: DataFrame) -> DataFrame:
        """The states that count: one at any time of each partition."""
        log = sf.col("cluster").isin(*self.logged) & (sf.col("source") == "log")
        snapshot = sf.col("cluster").isin(*self.observed) & (sf.col("source") == "snapshot")
        return states.where(log | snapshot)


def facts(lake: Lake, wanted: Wanted, states: DataFrame) -> Facts:
    """What is known of the clusters. A log's record ends with the newest that was read; that of snapshots, with the
    newest of them."""
    ends = wanted.read(lake, CLUSTER_EVENTS).where("event = 'end'")
    told = ends.groupBy("cluster").agg(sf.expr("max_by(unix_micros(at), coalesce(offset, -1))").alias("told"))
    newest = "max(unix_micros(coalesce(greatest(valid_from, valid_to), valid_from)))"
    seen = states.groupBy("cluster").agg(
        sf.expr("bool_or(source = 'log')").alias("logged"),
        sf.expr(f"{newest} filter (where source = 'log')").alias("seen"),
        sf.expr(f"{newest} filter (where source = 'snapshot')").alias("observed"),
    )
    known = seen.join(sf.broadcast(told), "cluster", "left").join(sf.broadcast(_racks(lake, wanted)), "cluster", "left")
    end = sf.when(sf.col("logged"), sf.coalesce("told", "seen")).otherwise(sf.col("observed"))
    if wanted.until_ms is not None:
        end = sf.least(end, sf.lit(wanted.until_ms * _MICROS))
    found = known.select("cluster", end.alias("end"), "racks", "logged")
    if wanted.since_ms is not None:
        found = found.where(sf.col("end") >= sf.lit(wanted.since_ms * _MICROS))
    # As many rows as there are clusters, which several queries need.
    rows = sorted(found.collect(), key=lambda row: str(row["cluster"]))
    frame = lake.spark.createDataFrame(rows, found.schema).drop("logged")
    return Facts(
        frame,
        tuple(row["cluster"] for row in rows if row["logged"]),
        tuple(row["cluster"] for row in rows if not row["logged"]),
    )


def newest_of_brokers(lake: Lake, wanted: Wanted) -> DataFrame:
    """The rack and host of each broker, as they are on record last."""
    events = wanted.read(lake, BROKER_EVENTS)
    place = "struct(at, coalesce(offset, -1))"
    return events.groupBy("cluster", "broker").agg(
        *(
            sf.expr(f"max_by({column}, {place}) filter (where {column} is not null)").alias(column)
            for column in ("rack", "host", "port")
        )
    )


def _racks(lake: Lake, wanted: Wanted) -> DataFrame:
    racks = newest_of_brokers(lake, wanted).where("rack is not null")
    return racks.groupBy("cluster").agg(sf.expr("map_from_entries(collect_list(struct(broker, rack)))").alias("racks"))


def _timestamp(at_ms: int | None) -> Column:
    return sf.lit(None).cast("timestamp") if at_ms is None else sf.timestamp_millis(sf.lit(at_ms))


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
