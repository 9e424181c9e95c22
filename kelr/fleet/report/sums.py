"""What Spark is asked for a report: sums by cluster, week, broker and scenario, and the first few of each.

Everything here is added up and cut off by Spark; what comes to the driver does not grow with partitions or events.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

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
from kelr.fleet.report.standing_sums import FEW, at, clusters, first_few, micros, top_topics
from kelr.fleet.tables import INPUTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from kelr.fleet.lake import Lake

NOT_TOLD = "unknown"
"""`elected_as` where it is not told whether an election was unclean."""


def figures_of(lake: Lake) -> Figures:
    """All figures of a report on a lake; of steps that were not run, that they were not."""
    at_ms = lake.version.at_ms
    return Figures(
        lake.place,
        lake.version.number,
        datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None,
        clusters(lake),
        _weeks(lake),
        _troubles(lake),
        _elections(lake),
        _election_days(lake),
        _restarts(lake),
        _settings(lake),
        _scenarios(lake),
        _failures(lake),
        tuple(_missing(lake)),
        lake.read(INPUTS).where("status = 'quarantined'").count(),
    )


def _missing(lake: Lake) -> list[Missing]:
    found = []
    if ASSESSMENT_SUMS.name not in lake.version.tables:
        found.append(
            Missing(
                "what failures would do: kelr fleet assess was not run",
                ("fleet", "assess", "--lake", lake.place, "--scenarios", "now,each-broker,each-rack"),
            )
        )
    if EXPOSURE.name not in lake.version.tables:
        found.append(
            Missing(
                "how long there was trouble, unclean elections and restarts, risky settings: kelr fleet exposure"
                " was not run",
                ("fleet", "exposure", "--lake", lake.place),
            )
        )
    return found


# What they went through.


def _weeks(lake: Lake) -> tuple[WeekTrouble, ...]:
    rows = lake.read(EXPOSURE).where("dimension = 'cluster' and week is not null and seconds > 0")
    names = ("cluster", "week", "trouble", "partitions", "spells", "seconds", "unknown_seconds")
    return tuple(
        WeekTrouble(*(row[name] for name in names)) for row in rows.orderBy("cluster", "week", "trouble").collect()
    )


def _troubles(lake: Lake) -> tuple[Trouble, ...]:
    whole = lake.read(EXPOSURE).where("week is null")
    clusters = whole.where("dimension = 'cluster'")
    topics = first_few(
        whole.where("dimension = 'topic' and seconds > 0"),
        FEW,
        ["cluster", "trouble"],
        fn.desc("seconds"),
        fn.asc("name"),
    )
    rows = clusters.unionByName(topics).orderBy("cluster", "dimension", "trouble", fn.desc("seconds"), "name").collect()
    names = (
        *("partitions", "spells", "seconds", "longest_seconds", "unknown_seconds", "share", "unknown_share", "lasting"),
        "unsure_spells",
    )
    return tuple(
        Trouble(
            row["cluster"],
            row["name"] if row["dimension"] == "topic" else None,
            row["trouble"],
            *(row[name] for name in names),
        )
        for row in rows
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
    for row in sums.orderBy("cluster").collect():
        values = {**row.asDict(), "first": at(row["first"]), "last": at(row["last"])}
        found.append(UncleanElections(**values, topics=topics.get(row["cluster"], ())))
    return tuple(found)


def _election_days(lake: Lake) -> tuple[UncleanDay, ...]:
    sure = lake.read(UNCLEAN_ELECTIONS).where(fn.col("elected_as") != NOT_TOLD)
    days = sure.groupBy("cluster", "date").agg(fn.count("*").alias("elections")).orderBy("cluster", "date")
    return tuple(UncleanDay(row["cluster"], row["date"], row["elections"]) for row in days.collect())


def _restarts(lake: Lake) -> tuple[BrokerRestarts, ...]:
    rows = lake.read(UNCLEAN_RESTARTS).where("week is null and unclean > 0").orderBy("cluster", "broker")
    names = ("cluster", "broker", "rack", "host", "clean", "unclean", "not_shown")
    found = rows.select(*names, micros("last_unclean").alias("last_unclean")).collect()
    return tuple(BrokerRestarts(**{**row.asDict(), "last_unclean": at(row["last_unclean"])}) for row in found)


def _settings(lake: Lake) -> tuple[RiskySetting, ...]:
    settings = lake.read(RISKY_SETTINGS)
    by = ["cluster", "setting"]
    places: dict[tuple[str, str], list[SettingPlace]] = defaultdict(list)
    few = first_few(settings, FEW, by, fn.desc("partitions"), fn.asc("scope"), fn.asc("name"))
    for row in few.orderBy(*by, fn.desc("partitions"), "scope", "name").collect():
        place = SettingPlace(*(row[name] for name in SettingPlace.__dataclass_fields__))
        places[row["cluster"], row["setting"]].append(place)
    sums = settings.groupBy(*by).agg(
        fn.count("*").alias("places"),
        fn.sum("topics").alias("topics"),
        fn.sum("partitions").alias("partitions"),
        fn.min("why").alias("why"),
        fn.min("rule").alias("rule"),
    )
    return tuple(
        RiskySetting(**row.asDict(), examples=tuple(places[row["cluster"], row["setting"]]))
        for row in sums.orderBy(*by).collect()
    )


# What failures would do.


def _assessed(lake: Lake) -> DataFrame:
    """The sums by one rule set for each cluster: what it is known to run, if that was assessed."""
    sums = lake.read(ASSESSMENT_SUMS)
    place = fn.dense_rank().over(Window.partitionBy("cluster").orderBy(fn.desc("rules_certain"), fn.desc("rules")))
    return sums.withColumn("_place", place).where("_place = 1").drop("_place")


def _scenarios(lake: Lake) -> tuple[Scenario, ...]:
    worst = [fn.desc(name) for name in ("may_lose", "unproven", "leaderless", "under_min_isr", "last_replica")]
    stops = [fn.desc(name) for name in ("leaderless", "under_min_isr", "may_lose", "last_replica")]
    assessed = _assessed(lake)
    # Those that lose the most and those that stop the most need not be the same.
    few = first_few(assessed, FEW, ["cluster", "kind"], *worst, fn.asc("scenario")).unionByName(
        first_few(assessed, FEW, ["cluster", "kind"], *stops, fn.asc("scenario"))
    )
    found: dict[tuple[str, str], Scenario] = {}
    for row in few.orderBy("cluster", "kind", *worst, "scenario").collect():
        found.setdefault((row["cluster"], row["scenario"]), _scenario(row))
    return tuple(found.values())


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
    return tuple(Failures(*row) for row in sums.orderBy("cluster", "kind").collect())
