"""What Spark is asked for a report: sums by cluster, week, broker and scenario, and the first few of each.

Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.window import Window

from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.report.figures import (
    Broker,
    BrokerRestarts,
    Cluster,
    Failures,
    Figures,
    Missing,
    RiskySetting,
    Scenario,
    SettingPlace,
    Standing,
    TopicCount,
    Trouble,
    UncleanDay,
    UncleanElections,
    WeekTrouble,
)
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, INPUTS, LOG_INFO, PARTITION_STATES, Table
from kelr.model import BrokerStatus

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from kelr.fleet.lake import Lake


# What Spark is asked about how clusters stand: counts of partitions, brokers, and from when to when there is input.
#
# Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.


FEW = 5
"""So many topics, places and scenarios of a kind are named; the CSV files have all."""
LOG = "log"
"""The source of what a metadata log tells."""
GONE = "unregistered"
"""The status of a broker that is no more."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_STANDING: Mapping[str, str] = {
    "partitions": "true",
    "leaderless": "leader is null",
    "elr_only": "leader is null and size(isr) = 0 and size(elr) > 0",
    "under_min_isr": "leader is not null and size(isr) < min_isr",
    "last_replica": "leader is not null and size(isr) = 1 and size(replicas) > 1",
    "min_isr_unknown": "leader is not null and min_isr is null",
    "elr_unknown": "leader is null and elr is null",
}
"""What `Trouble` of kelr history means, of one row."""


def clusters(lake: Lake) -> tuple[Cluster, ...]:
    """Every cluster of a lake, by name.

    Of a cluster with a metadata log only the log's rows count: what snapshots saw is part of what it tells.
    """
    times = _times(lake)
    logged = {cluster for cluster, source in times if source == LOG}
    standings, topics = _standings(lake, logged), _leaderless(lake, logged)
    brokers = _brokers(lake)
    ids = {*standings, *brokers, *(cluster for cluster, _ in times), *lake.version.clusters}
    found = [
        Cluster(
            id,
            lake.version.clusters.get(id, id),
            standings.get(id, Standing()),
            brokers.get(id, ()),
            *_span([times[key] for key in times if key[0] == id]),
            id in logged,
            topics.get(id, ()),
        )
        for id in ids
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.id)))


def newest_states(lake: Lake, logged: Collection[str]) -> DataFrame:
    """The rows of `partition_states` that tell how partitions are where a cluster's newest input ends. Of snapshots
    those of the newest: a partition that it does not show has an older row that nothing follows, and may be gone.

    Args:
        logged: the clusters of which there is a metadata log.
    """
    open_ = lake.read(PARTITION_STATES).where("valid_to is null")
    told = open_.where(~fn.col("cluster").isin(sorted(logged)) | (fn.col("source") == LOG))
    newest = told.groupBy("cluster").agg(fn.max("valid_from").alias("_newest"))
    shown = (fn.col("source") == LOG) | (fn.col("valid_from") == fn.col("_newest"))
    return told.join(fn.broadcast(newest), "cluster").where(shown).drop("_newest")


def _standings(lake: Lake, logged: Collection[str]) -> dict[str, Standing]:
    if not has(lake, PARTITION_STATES):
        return {}
    tests = (fn.count_if(fn.expr(test)).alias(name) for name, test in _STANDING.items())
    rows = newest_states(lake, logged).groupBy("cluster").agg(*tests).collect()
    return {row["cluster"]: Standing(*(row[name] for name in _STANDING)) for row in rows}


def _leaderless(lake: Lake, logged: Collection[str]) -> dict[str, tuple[TopicCount, ...]]:
    return top_topics(newest_states(lake, logged).where("leader is null")) if has(lake, PARTITION_STATES) else {}


def top_topics(partitions: DataFrame) -> dict[str, tuple[TopicCount, ...]]:
    """Of each cluster the few topics with the most of these partitions."""
    by_topic = partitions.groupBy("cluster", "topic").agg(fn.count_distinct("partition").alias("partitions"))
    few = first_few(by_topic, FEW, ["cluster"], fn.desc("partitions"), fn.asc("topic"))
    found: dict[str, list[TopicCount]] = defaultdict(list)
    for row in in_order(few.collect(), "cluster", "-partitions", "topic"):
        found[row["cluster"]].append(TopicCount(row["topic"], row["partitions"]))
    return {cluster: tuple(counts) for cluster, counts in found.items()}


def _brokers(lake: Lake) -> dict[str, tuple[Broker, ...]]:
    """As the newest event of each left it."""
    events = lake.read(BROKER_EVENTS)
    age = fn.struct(fn.col("source") == LOG, fn.coalesce("offset", fn.lit(-1)), "at")

    def newest(column: str) -> Column:
        return fn.max_by(column, fn.when(fn.col(column).isNotNull(), age)).alias(column)

    last = events.groupBy("cluster", "broker").agg(
        fn.max_by("status", age).alias("status"), newest("host"), newest("port"), newest("rack")
    )
    found: dict[str, list[Broker]] = defaultdict(list)
    for row in in_order(last.where(fn.col("status") != GONE).collect(), "cluster", "broker"):
        server = None if row["host"] is None or row["port"] is None else _server(row["host"], row["port"])
        live = row["status"] == BrokerStatus.LIVE.value
        found[row["cluster"]].append(Broker(row["broker"], live, server, row["rack"]))
    return {cluster: tuple(brokers) for cluster, brokers in found.items()}


def _server(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _times(lake: Lake) -> dict[tuple[str, str], tuple[datetime | None, datetime | None]]:
    """From when to when events of each cluster and source are."""
    names = ("cluster", "source", "at")
    both = lake.read(CLUSTER_EVENTS).select(*names).union(lake.read(BROKER_EVENTS).select(*names))
    span = (micros(fn.min("at")).alias("begins"), micros(fn.max("at")).alias("ends"))
    rows = both.groupBy("cluster", "source").agg(*span).collect()
    return {(row["cluster"], row["source"]): (at(row["begins"]), at(row["ends"])) for row in rows}


def _span(
    spans: Iterable[tuple[datetime | None, datetime | None]],
) -> tuple[datetime | None, datetime | None]:
    known = list(spans)
    begins = [begin for begin, _ in known if begin is not None]
    ends = [end for _, end in known if end is not None]
    return min(begins, default=None), max(ends, default=None)


def has(lake: Lake, table: Table) -> bool:
    """Whether a table has any rows; asking Spark for none takes as long as asking for some."""
    return bool(lake.files_of(table))


def in_order(rows: Iterable[Row], *names: str) -> list[Row]:
    """Rows that came to the driver, sorted there; a minus in front of a name turns its numbers round."""

    def key(row: Row) -> tuple[Any, ...]:
        values = [(row[name.lstrip("-")], name.startswith("-")) for name in names]
        return tuple((value is None, 0 if value is None else -value if down else value) for value, down in values)

    return sorted(rows, key=key)


def first_few(frame: DataFrame, few: int, by: Sequence[str], *order: Column) -> DataFrame:
    """The first few rows of each group."""
    place = fn.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return frame.withColumn("_place", place).where(fn.col("_place") <= few).drop("_place")


def micros(column: str | Column) -> Column:
    """A time as a number, since Spark gives times to Python in whatever zone this machine is in."""
    return fn.unix_micros(column)


def at(microseconds: int | None) -> datetime | None:
    """A time from `micros`; UTC."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


# All sums.


NOT_TOLD = "unknown"
"""`elected_as` where it is not told whether an election was unclean."""


def figures_of(lake: Lake) -> Figures:
    """All figures of a report on a lake; of steps that were not run, that they were not."""
    at_ms = lake.version.at_ms
    exposed = {
        "weeks": (EXPOSURE, _weeks),
        "troubles": (EXPOSURE, _troubles),
        "elections": (UNCLEAN_ELECTIONS, _elections),
        "election_days": (UNCLEAN_ELECTIONS, _election_days),
        "restarts": (UNCLEAN_RESTARTS, _restarts),
        "settings": (RISKY_SETTINGS, _settings),
        "scenarios": (ASSESSMENT_SUMS, _scenarios),
        "failures": (ASSESSMENT_SUMS, _failures),
    }
    sums: dict[str, Any] = {name: ask(lake) for name, (table, ask) in exposed.items() if has(lake, table)}
    return Figures(
        lake.place,
        lake.version.number,
        datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None,
        clusters(lake),
        **sums,
        missing=tuple(_missing(lake)),
        quarantined=lake.read(INPUTS).where("status = 'quarantined'").count() if has(lake, INPUTS) else 0,
    )


def _missing(lake: Lake) -> list[Missing]:
    found = []
    assess = ("fleet", "assess", "--lake", lake.place, "--scenarios", "now,each-broker,each-rack")
    if ASSESSMENT_SUMS.name not in lake.version.tables:
        found.append(Missing("what failures would do: kelr fleet assess was not run", assess))
    else:
        if is_older(lake, ASSESSMENT_SUMS):
            found.append(Missing(f"what failures would do since they were assessed: {_MORE}", assess))
        then = _assessed_then(lake)
        if then:
            found.append(
                Missing(f"what failures would do now in {', '.join(then)}: assessed as of another moment", assess)
            )
    if EXPOSURE.name not in lake.version.tables:
        found.append(
            Missing(
                "how long there was trouble, unclean elections and restarts, risky settings: kelr fleet exposure"
                " was not run",
                ("fleet", "exposure", "--lake", lake.place),
            )
        )
    elif is_older(lake, EXPOSURE):
        found.append(
            Missing(f"what lasted since it was summed up: {_MORE}", ("fleet", "exposure", "--lake", lake.place))
        )
    return found


_MORE = "more was ingested after it"
_INGESTED = (PARTITION_STATES, BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, LOG_INFO)


def is_older(lake: Lake, table: Table) -> bool:
    """Whether a table was made before something that it is made of was ingested."""
    changed = lake.version.changed
    return changed.get(table.name, 0) < max(changed.get(one.name, 0) for one in _INGESTED)


def _assessed_then(lake: Lake) -> list[str]:
    """Clusters that were assessed as they were at an earlier moment: beside what is now, that would mislead."""
    then = lake.read(ASSESSMENT_SUMS).where("not newest").select("cluster").distinct()
    return sorted(lake.version.clusters.get(row.cluster, row.cluster) for row in then.collect())


# What they went through.


def _weeks(lake: Lake) -> tuple[WeekTrouble, ...]:
    rows = lake.read(EXPOSURE).where("dimension = 'cluster' and week is not null and seconds > 0")
    names = ("cluster", "week", "trouble", "partitions", "spells", "seconds", "unknown_seconds")
    found = in_order(rows.select(*names).collect(), "cluster", "week", "trouble")
    return tuple(WeekTrouble(**row.asDict()) for row in found)


def _troubles(lake: Lake) -> tuple[Trouble, ...]:
    whole = lake.read(EXPOSURE).where("week is null and (dimension = 'cluster' or dimension = 'topic' and seconds > 0)")
    few = first_few(whole, FEW, ["cluster", "dimension", "trouble"], fn.desc("seconds"), fn.asc("name"))
    names = (
        *("cluster", "trouble", "partitions", "spells", "seconds", "longest_seconds", "unknown_seconds", "share"),
        *("unknown_share", "lasting", "unsure_spells"),
    )
    found = in_order(few.collect(), "cluster", "dimension", "trouble", "-seconds", "name")
    return tuple(
        Trouble(**{name: row[name] for name in names}, topic=row["name"] if row["dimension"] == "topic" else None)
        for row in found
    )


def _elections(lake: Lake) -> tuple[UncleanElections, ...]:
    elections = lake.read(UNCLEAN_ELECTIONS)
    topics = top_topics(elections)
    sure = fn.col("elected_as") != NOT_TOLD
    sums = elections.groupBy("cluster").agg(
        fn.count_if(~fn.col("elected_as").isin("last-known-leader", NOT_TOLD)).alias("unclean"),
        fn.count_if(fn.col("elected_as") == "last-known-leader").alias("last_known_leader"),
        fn.count_if(fn.col("elected_as") == NOT_TOLD).alias("not_told"),
        fn.count_distinct(fn.when(sure, fn.struct("topic", "partition"))).alias("partitions"),
        micros(fn.min("at")).alias("first"),
        micros(fn.max("at")).alias("last"),
        fn.sum("offsets_at_stake").alias("at_stake"),
        fn.count_if(fn.col("offsets_at_stake").isNull()).alias("at_stake_unknown"),
        fn.count_if("designated").alias("designated"),
    )
    found = []
    for row in in_order(sums.collect(), "cluster"):
        values = {**row.asDict(), "first": at(row["first"]), "last": at(row["last"])}
        found.append(UncleanElections(**values, topics=topics.get(row["cluster"], ())))
    return tuple(found)


def _election_days(lake: Lake) -> tuple[UncleanDay, ...]:
    sure = lake.read(UNCLEAN_ELECTIONS).where(fn.col("elected_as") != NOT_TOLD)
    days = sure.groupBy("cluster", "date").agg(fn.count("*").alias("elections")).collect()
    return tuple(UncleanDay(row["cluster"], row["date"], row["elections"]) for row in in_order(days, "cluster", "date"))


def _restarts(lake: Lake) -> tuple[BrokerRestarts, ...]:
    rows = lake.read(UNCLEAN_RESTARTS).where("week is null and unclean > 0")
    names = ("cluster", "broker", "rack", "host", "clean", "unclean", "not_shown")
    found = rows.select(*names, micros("last_unclean").alias("last_unclean")).collect()
    return tuple(
        BrokerRestarts(**{**row.asDict(), "last_unclean": at(row["last_unclean"])})
        for row in in_order(found, "cluster", "broker")
    )


def _settings(lake: Lake) -> tuple[RiskySetting, ...]:
    by = ("cluster", "setting")
    every = Window.partitionBy(*by)
    sums = {
        "places": fn.count("*").over(every),
        "all_topics": fn.sum("topics").over(every),
        "all_partitions": fn.sum("partitions").over(every),
    }
    summed = lake.read(RISKY_SETTINGS).withColumns(sums)
    few = first_few(summed, FEW, by, fn.desc("partitions"), fn.asc("scope"), fn.asc("name"))
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in in_order(few.collect(), *by, "-partitions", "scope", "name"):
        found[row["cluster"], row["setting"]].append(row)
    names = tuple(SettingPlace.__dataclass_fields__)
    return tuple(
        RiskySetting(
            cluster,
            setting,
            places=rows[0]["places"],
            topics=rows[0]["all_topics"],
            partitions=rows[0]["all_partitions"],
            why=rows[0]["why"],
            rule=rows[0]["rule"],
            examples=tuple(SettingPlace(**{name: row[name] for name in names}) for row in rows),
        )
        for (cluster, setting), rows in found.items()
    )


# What failures would do.


def _assessed(lake: Lake) -> DataFrame:
    """The sums by one rule set for each cluster: what it is known to run, if that was assessed."""
    sums = lake.read(ASSESSMENT_SUMS).where("newest")
    place = fn.dense_rank().over(Window.partitionBy("cluster").orderBy(fn.desc("rules_certain"), fn.desc("rules")))
    return sums.withColumn("_place", place).where("_place = 1").drop("_place")


def _scenarios(lake: Lake) -> tuple[Scenario, ...]:
    """Of each kind the few that lose the most, and the few that stop the most, which need not be the same."""
    by = ("cluster", "kind")
    loses = [*map(fn.desc, ("may_lose", "unproven", "leaderless", "under_min_isr", "last_replica")), fn.asc("scenario")]
    stops = [*map(fn.desc, ("leaderless", "under_min_isr", "may_lose", "last_replica")), fn.asc("scenario")]
    placed = _assessed(lake).withColumns(
        {
            "_loses": fn.row_number().over(Window.partitionBy(*by).orderBy(*loses)),
            "_stops": fn.row_number().over(Window.partitionBy(*by).orderBy(*stops)),
        }
    )
    few = placed.where((fn.col("_loses") <= FEW) | (fn.col("_stops") <= FEW)).collect()
    return tuple(map(_scenario, in_order(few, *by, "_loses")))


def _scenario(row: Row) -> Scenario:
    same = ("cluster", "kind", "how", "rules", "may_lose", "leaderless", "unproven", "under_min_isr", "last_replica")
    return Scenario(
        **{name: row[name] for name in same},
        name=row["scenario"],
        brokers=tuple(row["brokers"] or ()),
        racks=tuple(row["racks"] or ()),
        happens=row["happens"] or row["scenario"],
        rules_certain=bool(row["rules_certain"]),
        uncertain=row["doubtful"] + row["min_isr_unknown"],
        worst_topics=tuple(row["worst_topics"] or ()),
    )


def _failures(lake: Lake) -> tuple[Failures, ...]:
    sums = (
        _assessed(lake)
        .where("kind <> 'now'")
        .groupBy("cluster", "kind")
        .agg(
            fn.count("*").alias("all"),
            fn.count_if(fn.col("may_lose") > 0).alias("losing"),
            fn.count_if((fn.col("leaderless") > 0) | (fn.col("under_min_isr") > 0)).alias("stopping"),
        )
    )
    return tuple(Failures(**row.asDict()) for row in in_order(sums.collect(), "cluster", "kind"))
