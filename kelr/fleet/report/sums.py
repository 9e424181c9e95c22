"""What Spark is asked for a report: sums by cluster, week, broker and scenario, and the first few of each.

Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.window import Window

from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.report.figures import (
    BrokerRestarts,
    Failures,
    Figures,
    Missing,
    RiskySetting,
    Scenario,
    SettingPlace,
    Trouble,
    UncleanDay,
    UncleanElections,
    WeekTrouble,
)
from kelr.fleet.report.standing_sums import FEW, at, clusters, first_few, has, in_order, micros, top_topics
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, INPUTS, LOG_INFO, PARTITION_STATES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from kelr.fleet.lake import Lake

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
        if _is_older(lake, ASSESSMENT_SUMS):
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
    elif _is_older(lake, EXPOSURE):
        found.append(
            Missing(f"what lasted since it was summed up: {_MORE}", ("fleet", "exposure", "--lake", lake.place))
        )
    return found


_MORE = "more was ingested after it"
_INGESTED = (PARTITION_STATES, BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, LOG_INFO)


def _is_older(lake: Lake, table: Table) -> bool:
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
