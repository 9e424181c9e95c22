"""What is known of each cluster besides its partitions, at a moment: few rows, which the driver may have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn

from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, PARTITION_STATES
from kelr.model import Broker, BrokerStatus, Cluster, Features
from kelr.replay.image import BROKERS_CLEANUP, CLEANUP, MIN_ISR, STRATEGY, UNCLEAN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from kelr.fleet.lake import Lake

LOG, SNAPSHOT = "log", "snapshot"
"""Where the rows of a cluster come from: `log` goes before, as it is complete."""
KEYS = (MIN_ISR, UNCLEAN, CLEANUP, STRATEGY)
"""The configs of topics that elections, or what they cost, depend on."""
OF_BROKERS = {MIN_ISR: MIN_ISR, UNCLEAN: UNCLEAN, CLEANUP: BROKERS_CLEANUP, STRATEGY: STRATEGY}
"""What brokers call them."""
_GONE = "unregistered"


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster at a moment."""

    id: str
    name: str
    """What people call it."""
    source: str
    at_us: int
    """The moment, in microseconds since 1970 UTC: as it was asked for, or the newest that is known. Of snapshots: when
    the newest of them was taken."""
    newest: bool
    """Whether that is the newest that the lake knows, as nobody asked for another moment."""
    cluster: Cluster
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Cluster-wide configs by the topics' names for them, where they hold for every broker; of a metadata log only,
    since snapshots have what holds for each topic."""
    lost_directories: tuple[int, ...] = ()
    """Brokers that have lost a log directory since they registered, by the metadata log: which replicas were in it is
    not in the lake."""


def known_clusters(lake: Lake) -> tuple[str, ...]:
    """The ids of the clusters that have partitions, by the names of their folders."""
    return tuple(sorted({str(file.values["cluster"]) for file in lake.files_of(PARTITION_STATES)}))


def contexts(lake: Lake, clusters: Collection[str], at_us: int | None) -> tuple[Context, ...]:
    """Those of these clusters of which the brokers are known at that moment.

    Args:
        at_us: microseconds since 1970 UTC; None: the newest that is known of each.
    """
    if not clusters:
        return ()
    brokers = _brokers(lake, clusters, at_us)
    features = _features(lake, clusters, at_us)
    configs = _configs(lake, clusters, at_us)
    newest = {row["cluster"]: row["at_us"] for row in _ends(lake, clusters, at_us)}
    found = []
    for cluster in sorted({row["cluster"] for row in brokers}):
        rows = [row for row in brokers if row["cluster"] == cluster]
        source = LOG if any(row["source"] == LOG for row in rows) else SNAPSHOT
        rows = [row for row in rows if row["source"] == source]
        seen = max(row["at_us"] for row in rows)
        if source == SNAPSHOT:
            # Brokers that only older ones list are not in this one.
            rows = [row for row in rows if row["at_us"] == seen]
        of_cluster = [row for row in features if row["cluster"] == cluster and row["source"] == source]
        if source == SNAPSHOT:
            of_cluster = [row for row in of_cluster if row["at_us"] == seen]
        end = max(newest.get(cluster, seen), seen) if at_us is None else at_us
        found.append(
            Context(
                id=cluster,
                name=lake.version.clusters.get(cluster, cluster),
                source=source,
                at_us=seen if source == SNAPSHOT else end,
                newest=at_us is None,
                cluster=_cluster(cluster, source, rows, of_cluster),
                lost_directories=_without_directory(rows),
                defaults=_defaults([row for row in configs if row["cluster"] == cluster]) if source == LOG else {},
            )
        )
    return tuple(found)


def of_clusters(clusters: Iterable[str]) -> Column:
    """A filter that leaves out the folders of other clusters."""
    return fn.col("cluster").isin(sorted(clusters))


def until(at_us: int | None, time: str = "at") -> Column:
    """A filter on what was before or at a moment, and on the folders of its days."""
    if at_us is None:
        return fn.lit(True)
    return (fn.col("date") <= fn.lit(day_of(at_us))) & (fn.col(time) <= moment(at_us))


def moment(at_us: int) -> Column:
    """A time as Spark has it, whatever the zone of this machine is."""
    return fn.timestamp_micros(fn.lit(at_us))


def day_of(at_us: int) -> date:
    """Its UTC date: the folder of rows of this time."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)).date()


def _latest(
    frame: DataFrame, keys: Sequence[str], values: Sequence[str], others: Mapping[str, Column] | None = None
) -> list[Row]:
    """The newest row for each of some keys, and other sums over them."""
    row = fn.struct(fn.unix_micros("at").alias("at_us"), *values)
    newest = fn.max_by(row, fn.struct("at", "offset")).alias("newest")
    more = [value.alias(name) for name, value in (others or {}).items()]
    return frame.groupBy(*keys).agg(newest, *more).select(*keys, "newest.*", *(others or {})).collect()


def _brokers(lake: Lake, clusters: Collection[str], at_us: int | None) -> list[Row]:
    frame = lake.read(BROKER_EVENTS).where(of_clusters(clusters) & until(at_us))
    values = ("event", "status", "rack", "host", "port", "features", "broker_epoch")
    lost = fn.when(fn.size("directories_lost") > 0, fn.col("offset"))
    registered = fn.when(fn.col("event") == "registered", fn.col("offset"))
    since = {"lost_at": fn.max(lost), "registered_at": fn.max(registered)}
    return _latest(frame, ("cluster", "source", "broker"), values, since)


def _features(lake: Lake, clusters: Collection[str], at_us: int | None) -> list[Row]:
    """Levels of features, finalized and supported, and which request listed the brokers of a snapshot."""
    events = fn.col("event").isin("feature", "supported", "brokers-source")
    frame = lake.read(CLUSTER_EVENTS).where(of_clusters(clusters) & until(at_us) & events)
    return _latest(frame, ("cluster", "source", "event", "name"), ("after",))


def _configs(lake: Lake, clusters: Collection[str], at_us: int | None) -> list[Row]:
    """What is written for all brokers of a cluster, and for single ones."""
    kinds = fn.col("resource_type").isin("cluster", "broker") & fn.col("key").isin(sorted({*OF_BROKERS.values()}))
    frame = lake.read(CONFIGS).where(of_clusters(clusters) & until(at_us) & kinds & (fn.col("source") == LOG))
    return _latest(frame, ("cluster", "resource_type", "resource", "key"), ("value",))


def _ends(lake: Lake, clusters: Collection[str], at_us: int | None) -> list[Row]:
    """The newest time that a log tells of each cluster."""
    frame = lake.read(CLUSTER_EVENTS).where(of_clusters(clusters) & until(at_us) & (fn.col("source") == LOG))
    return frame.groupBy("cluster").agg(fn.unix_micros(fn.max("at")).alias("at_us")).collect()


def _cluster(id_: str, source: str, rows: Sequence[Row], features: Sequence[Row]) -> Cluster:
    brokers = tuple(sorted(_registered(rows), key=lambda one: one.id))
    finalized = {
        row["name"]: int(row["after"]) for row in features if row["event"] == "feature" and row["after"] is not None
    }
    asked = next((row["after"] for row in features if row["event"] == "brokers-source"), None)
    # Of a log, a feature that is not on record is off; of a snapshot nobody knows, unless it has any.
    known = finalized if finalized or source == LOG else None
    if source == LOG:
        supported, listed_by = _supported(rows), "metadata log"
    else:
        told = {row["name"]: int(row["after"]) for row in features if row["event"] == "supported"}
        supported, listed_by = told or None, asked or "unknown"
    return Cluster(id_, brokers, Features(known, supported), brokers_source=listed_by, partitions_source=source)


def _registered(rows: Iterable[Row]) -> Iterator[Broker]:
    for row in rows:
        status = row["status"]
        if status is not None and status != _GONE and row["event"] != _GONE:
            yield Broker(
                row["broker"], BrokerStatus(status), row["host"], row["port"], row["rack"], row["broker_epoch"]
            )


def _without_directory(rows: Iterable[Row]) -> tuple[int, ...]:
    lost = (
        row["broker"]
        for row in rows
        if row["lost_at"] is not None
        and row["lost_at"] >= (row["registered_at"] or 0)
        and row["status"] not in {None, _GONE}
    )
    return tuple(sorted(lost))


def _supported(rows: Sequence[Row]) -> dict[str, int] | None:
    """What the software of every broker that may lead supports (of every registered one, where none may): the oldest
    of them, as `kelr.replay.snapshots` has it."""
    registered = [row for row in rows if row["status"] not in {None, _GONE} and row["features"] is not None]
    told: list[dict[str, Any]] = [row["features"] for row in registered if row["status"] == BrokerStatus.LIVE]
    told = told or [row["features"] for row in registered]
    if not told:
        return None
    names = sorted(set.intersection(*(set(one) for one in told)))
    return {name: min(one[name] for one in told) for name in names}


def _defaults(rows: Sequence[Row]) -> dict[str, str]:
    """Cluster-wide values; none where single brokers have values of their own, as then nobody knows the
    controller's."""
    single = {
        row["key"] for row in rows if row["resource_type"] == "broker" and row["resource"] and row["value"] is not None
    }
    for_all = {
        row["key"]: row["value"]
        for row in rows
        if (row["resource_type"] == "cluster" or not row["resource"]) and row["value"] is not None
    }
    return {key: for_all[name] for key, name in OF_BROKERS.items() if name in for_all and name not in single}
