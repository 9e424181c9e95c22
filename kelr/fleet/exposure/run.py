"""From a lake's states and events to what they exposed, as tables of the same lake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType

from kelr.errors import BadInputError
from kelr.fleet.exposure.settings import risky_settings
from kelr.fleet.exposure.spells import (
    OF_BROKER,
    OF_PARTITION,
    OF_RACK,
    PARTITION,
    SECOND,
    TROUBLES,
    WHOLE,
    parts,
    pieces,
    spells,
)
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.exposure.wanted import facts, newest_of_brokers
from kelr.fleet.tables import BROKER_EVENTS, ELECTIONS, LOG_INFO, PARTITION_STATES
from kelr.model import BrokerStatus
from kelr.model.exposed import ExposedName, FleetExposure, TroubleTime
from kelr.replay.history import BrokerEvent, CauseKind, Restart, Trouble

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted
    from kelr.fleet.lake import Lake
    from kelr.fleet.tables import Table


# From spells to the table `EXPOSURE`: sums by cluster, topic, broker, rack and week, and shares of time.


CLUSTER, TOPIC, BROKER, RACK = "cluster", "topic", OF_BROKER, OF_RACK
DIMENSIONS = (CLUSTER, TOPIC, BROKER, RACK)
_NAME = ("cluster", "dimension", "name", "week")


def sums(spells: DataFrame, states: DataFrame, facts: Facts, wanted: Wanted) -> DataFrame:
    """The rows of `kelr.fleet.exposure.tables.EXPOSURE`, but for ``date`` and the window.

    Args:
        spells: as `kelr.fleet.exposure.spells.spells`.
        states: as `Wanted.states`.
    """
    time = _time(states, facts, wanted).select(
        *_NAME, sf.explode(sf.array(*map(sf.lit, TROUBLES))).alias("trouble"), "partition_seconds"
    )
    both = _by_name(spells).unionByName(time, allowMissingColumns=True)
    counts = ("partitions", "spells", "lasting", "unsure_spells")
    found = both.groupBy(*_NAME, "trouble").agg(
        *(sf.coalesce(sf.sum(one), sf.lit(0)).alias(one) for one in counts),
        *(sf.sum(one).alias(one) for one in ("seconds", "unknown_seconds", "partition_seconds")),
        sf.max("longest_seconds").alias("longest_seconds"),
        sf.min("lasting_since").alias("lasting_since"),
    )
    # A cluster without a trouble was looked at, and is told from one that was not.
    told = found.where((sf.col("dimension") == CLUSTER) | (sf.col("spells") > 0) | (sf.col("unknown_seconds") > 0))
    return told.select(
        "cluster",
        "dimension",
        "name",
        sf.nullif("week", sf.lit(WHOLE).cast("date")).alias("week"),
        "trouble",
        *counts,
        *(_seconds(name) for name in ("seconds", "longest_seconds", "unknown_seconds", "partition_seconds")),
        _share("seconds").alias("share"),
        _share("unknown_seconds").alias("unknown_share"),
        sf.timestamp_micros("lasting_since").alias("lasting_since"),
    )


def _by_name(spells: DataFrame) -> DataFrame:
    """Sums of spells, in microseconds: of each partition first, so that partitions can be counted."""
    split = spells.withColumn("part", sf.explode(parts(sf.col("begin"), sf.col("finish"))))
    lasted = sf.greatest(sf.col("part.to_micros") - sf.col("part.from_micros"), sf.lit(0))
    # Of a spell that lasts, the last of its weeks lasts.
    ends_here = sf.col("lasting") & (sf.col("part.to_micros") == sf.col("finish"))
    each = split.select(
        *PARTITION,
        "dimension",
        "name",
        sf.col("part.week").alias("week"),
        "trouble",
        "known",
        "unsure",
        lasted.alias("lasted"),
        sf.when(ends_here, sf.col("begin")).alias("since"),
    )
    known, unknown = sf.col("known"), ~sf.col("known")
    of_partition = each.groupBy(*PARTITION, "dimension", "name", "week", "trouble").agg(
        sf.count_if(known).alias("spells"),
        sf.sum(sf.when(known, sf.col("lasted"))).alias("seconds"),
        sf.max(sf.when(known, sf.col("lasted"))).alias("longest_seconds"),
        sf.sum(sf.when(unknown, sf.col("lasted"))).alias("unknown_seconds"),
        sf.count(sf.when(known, sf.col("since"))).alias("lasting"),
        sf.min(sf.when(known, sf.col("since"))).alias("lasting_since"),
        sf.count_if(known & sf.col("unsure")).alias("unsure_spells"),
    )
    owners = sf.when(
        sf.col("dimension") == OF_PARTITION,
        sf.array(_named(CLUSTER, sf.col("cluster")), _named(TOPIC, sf.col("topic"))),
    ).otherwise(sf.array(sf.struct("dimension", "name")))
    owned = of_partition.withColumn("owner", sf.explode(owners)).drop("dimension", "name")
    return owned.groupBy("cluster", "owner.dimension", "owner.name", "week", "trouble").agg(
        sf.count_if(sf.col("spells") > 0).alias("partitions"),
        *(sf.sum(column).alias(column) for column in ("spells", "seconds", "unknown_seconds")),
        sf.max("longest_seconds").alias("longest_seconds"),
        *(sf.sum(column).alias(column) for column in ("lasting", "unsure_spells")),
        sf.min("lasting_since").alias("lasting_since"),
    )


def _time(states: DataFrame, facts: Facts, wanted: Wanted) -> DataFrame:
    """How long the partitions of each name were there: cluster, dimension, name, week, partition_seconds (micros)."""
    rows = facts.told(states).join(sf.broadcast(facts.frame), "cluster")
    begin = wanted.clip(sf.unix_micros("valid_from"))
    finish = wanted.clip(sf.coalesce(sf.unix_micros("valid_to"), "end"))
    split = rows.select("cluster", "topic", "replicas", sf.explode(parts(begin, finish)).alias("part")).select(
        "cluster",
        "topic",
        "replicas",
        sf.col("part.week").alias("week"),
        (sf.col("part.to_micros") - sf.col("part.from_micros")).alias("micros"),
    )
    # By list of replicas first: of a topic there are few, however often its partitions changed.
    lists = split.groupBy("cluster", "topic", "replicas", "week").agg(sf.sum("micros").alias("micros"))
    racks = sf.array_compact(sf.array_distinct(sf.transform("replicas", lambda one: sf.try_element_at("racks", one))))
    owners = sf.concat(
        sf.array(_named(CLUSTER, sf.col("cluster")), _named(TOPIC, sf.col("topic"))),
        sf.transform("replicas", lambda broker: _named(BROKER, broker.cast("string"))),
        sf.transform(racks, lambda rack: _named(RACK, rack)),
    )
    owned = lists.join(sf.broadcast(facts.frame), "cluster").withColumn("owner", sf.explode(owners))
    return owned.groupBy("cluster", "owner.dimension", "owner.name", "week").agg(
        sf.sum("micros").alias("partition_seconds")
    )


def _named(dimension: str, name: Column) -> Column:
    return sf.struct(sf.lit(dimension).alias("dimension"), name.alias("name"))


def _seconds(name: str) -> Column:
    return (sf.greatest(sf.coalesce(name, sf.lit(0)), sf.lit(0)) / sf.lit(SECOND)).cast("double").alias(name)


def _share(name: str) -> Column:
    return sf.when(
        sf.col("partition_seconds") > 0,
        sf.coalesce(sf.col(name), sf.lit(0)).cast("double") / sf.col("partition_seconds"),
    )


# Elections of replicas that may lack what was committed, and brokers whose shutdowns before a restart were unclean.


_PARTITION = ("cluster", "topic", "partition")
_KEY = (*_PARTITION, "offset")
_GOES = (
    CauseKind.BROKER_FENCED,
    CauseKind.CONTROLLED_SHUTDOWN,
    CauseKind.BROKER_REGISTERED,
    CauseKind.BROKER_UNREGISTERED,
    CauseKind.DIRECTORY_FAILED,
)
"""Causes whose broker cannot lead while the controller handles them, whatever its own record says; that of a fencing
stands behind the elections."""
NO_LOG_INFO, READ_LATER, NOT_TOLD = "no-log-info", "read-later", "not-told"


def unclean_elections(lake: Lake, wanted: Wanted) -> DataFrame:
    """The rows of `kelr.fleet.exposure.tables.UNCLEAN_ELECTIONS`, but for the window."""
    found = wanted.within(wanted.read(lake, ELECTIONS), "at").where("clean is distinct from true")
    around = _around(lake, wanted, found)
    return (
        found.join(around, [*_KEY], "left")
        .join(_others(lake, wanted, found, around), [*_KEY], "left")
        .join(_logs_read(lake, wanted), [*_PARTITION], "left")
        .select(
            "*",
            sf.expr(
                f"case when offsets_at_stake is not null then null when first_read is null then '{NO_LOG_INFO}'"
                f" when first_read > at then '{READ_LATER}' else '{NOT_TOLD}' end"
            ).alias("stake_unknown"),
        )
    )


def unclean_restarts(lake: Lake, wanted: Wanted) -> DataFrame:
    """The rows of `kelr.fleet.exposure.tables.UNCLEAN_RESTARTS`, but for ``date`` and the window."""
    events = wanted.within(wanted.read(lake, BROKER_EVENTS), "at").where(f"event = '{BrokerEvent.REGISTERED}'")
    weeks = sf.array(sf.lit(WHOLE).cast("date"), sf.to_date(sf.date_trunc("week", "at")))
    counted = events.select("cluster", "broker", "restart", "at", sf.explode(weeks).alias("week"))
    sums = counted.groupBy("cluster", "broker", "week").agg(
        sf.count(sf.lit(1)).alias("registrations"),
        *(
            sf.expr(f"count_if(restart = '{restart}')").alias(str(restart).replace("-", "_"))
            for restart in (Restart.CLEAN, Restart.UNCLEAN, Restart.FIRST, Restart.SAME_INCARNATION)
        ),
        sf.expr(f"count_if(restart is null or restart = '{Restart.NOT_SHOWN}')").alias("not_shown"),
        sf.expr(f"max(at) filter (where restart = '{Restart.UNCLEAN}')").alias("last_unclean"),
    )
    return sums.withColumn("week", sf.nullif("week", sf.lit(WHOLE).cast("date"))).join(
        newest_of_brokers(lake, wanted), ["cluster", "broker"], "left"
    )


def _around(lake: Lake, wanted: Wanted, elections: DataFrame) -> DataFrame:
    """Of each election: the replicas, and how long nobody had led, up to the end of the last state with a leader."""
    states = wanted.up_to(wanted.read(lake, PARTITION_STATES), "valid_from").where("source = 'log'")
    same = elections.select(*_KEY, "at", sf.col("topic_id").alias("id"))
    return (
        states.join(same, [*_PARTITION])
        .where("topic_id <=> id and from_offset <= offset")
        .groupBy(*_KEY)
        .agg(
            sf.expr("any_value(replicas) filter (where from_offset = offset)").alias("replicas"),
            sf.expr("unix_micros(any_value(at))").alias("elected"),
            sf.expr(
                "max_by(unix_micros(valid_to), from_offset) filter (where leader is not null and from_offset < offset)"
            ).alias("left"),
        )
        # Another controller's clock may be behind; where no leader before is on record, it is not known.
        .select(
            *_KEY,
            "replicas",
            sf.expr("case when left is not null then greatest(0, elected - left) / 1e6D end").alias(
                "leaderless_seconds"
            ),
        )
    )


def _others(lake: Lake, wanted: Wanted, elections: DataFrame, around: DataFrame) -> DataFrame:
    """Of each election: which of the other replicas were on live brokers, and of which that is not on record."""
    replicas = elections.join(around, [*_KEY]).select(
        *_KEY, "to_leader", "cause", "cause_broker", sf.explode("replicas").alias("broker")
    )
    events = (
        wanted.read(lake, BROKER_EVENTS)
        .where("source = 'log'")
        .select("cluster", "broker", "status", sf.coalesce("offset", sf.lit(-1)).alias("told_at"))
    )
    goes = sf.col("cause").isin(*map(str, _GOES)) & sf.col("cause_broker").eqNullSafe(sf.col("broker"))
    newest = (
        replicas.where("broker is distinct from to_leader")
        .join(events, ["cluster", "broker"], "left")
        .groupBy(*_KEY, "broker")
        .agg(
            sf.expr("max_by(status, told_at) filter (where told_at <= offset)").alias("status"),
            sf.bool_or(goes).alias("goes"),
        )
    )
    live = f"status = '{BrokerStatus.LIVE}' and not goes"
    return newest.groupBy(*_KEY).agg(
        sf.expr(f"array_sort(collect_list(broker) filter (where {live}))").alias("others_alive"),
        sf.expr("array_sort(collect_list(broker) filter (where status is null and not goes))").alias("others_unknown"),
    )


def _logs_read(lake: Lake, wanted: Wanted) -> DataFrame:
    """Of each partition: when a log of it was read first."""
    return (
        wanted.read(lake, LOG_INFO)
        .where("log_end is not null")
        .groupBy(*_PARTITION)
        .agg(sf.min("read_at").alias("first_read"))
    )


# The run.


def expose(lake: Lake, wanted: Wanted, *, command: str = "exposure") -> Facts:
    """Sum up the clusters and write the four tables anew for them; what other clusters have in them stays.

    Returns: what is known of the clusters that have anything in the window.

    Raises:
        BadInputError: a cluster is not in the lake, or nothing is in the window.
        RefusedError: another run is changing the lake.
    """
    folders = [{"cluster": cluster} for cluster in wanted.clusters] or [{}]
    with lake.changing(command) as changes:
        known = check(lake, wanted)
        for table, rows in exposed(lake, wanted, known).items():
            changes.replace(table, rows.repartition("cluster", "date"), folders)
    return known


def check(lake: Lake, wanted: Wanted) -> Facts:
    """What is known of the clusters that were asked for.

    Raises:
        BadInputError: as `expose`.
    """
    known = facts(lake, wanted, wanted.states(lake))
    if known.logged or known.observed:
        missing = sorted(set(wanted.clusters) - {*known.logged, *known.observed})
        if not missing:
            return known
    else:
        missing = sorted(wanted.clusters)
    present = _clusters(lake)
    unknown = [cluster for cluster in missing if cluster not in present]
    if unknown:
        raise BadInputError(
            f"{lake.place}: no cluster {', '.join(unknown)} is in it",
            next_step=f"it has {', '.join(sorted(present)) or 'none'}",
        )
    if known.logged or known.observed:
        return known
    if not present:
        raise BadInputError(f"{lake.place}: no partition is in it", next_step="kelr fleet ingest INPUT... --out LAKE")
    raise BadInputError(
        f"{lake.place}: nothing is on record between --since and --until", next_step="leave one of them out"
    )


def exposed(lake: Lake, wanted: Wanted, known: Facts) -> Mapping[Table, DataFrame]:
    """The rows of each table."""
    states = wanted.states(lake)
    found = spells(pieces(states, known), known, wanted)
    end = known.frame.select("cluster", sf.to_date(sf.timestamp_micros("end")).alias("ended"))

    def dated(rows: DataFrame) -> DataFrame:
        """Weeks by their Monday; what is of the whole window, by its end."""
        return rows.join(sf.broadcast(end), "cluster").withColumn("date", sf.coalesce("week", "ended"))

    frames = {
        EXPOSURE: dated(sums(found, states, known, wanted)),
        UNCLEAN_ELECTIONS: unclean_elections(lake, wanted),
        UNCLEAN_RESTARTS: dated(unclean_restarts(lake, wanted)),
        RISKY_SETTINGS: risky_settings(lake, wanted, known).withColumn("date", sf.to_date("as_of")),
    }
    window = {"window_from": wanted.since(), "window_to": wanted.until()}
    return {table: rows.withColumns(window).select(*_columns(table)) for table, rows in frames.items()}


def _columns(table: Table) -> list[Column]:
    return [
        sf.col(field.name) if isinstance(field.dataType, ArrayType) else sf.col(field.name).cast(field.dataType)
        for field in table.schema.fields
    ]


def _clusters(lake: Lake) -> set[str]:
    return {row["cluster"] for row in lake.read(PARTITION_STATES).select("cluster").distinct().collect()}


# What people see of the tables: the names that stood in trouble longest, and counts of the rest.


_WORST = (Trouble.LEADERLESS, Trouble.ELR_ONLY, Trouble.UNDER_MIN_ISR, Trouble.LAST_REPLICA)
_FIGURES = (
    *("partitions", "spells", "seconds", "longest_seconds", "unknown_seconds", "share", "unknown_share", "lasting"),
    *("lasting_since", "unsure_spells"),
)


def longest(
    lake: Lake, wanted: Wanted, dimension: str, limit: int, budgets: Mapping[str, float] | None = None
) -> list[ExposedName]:
    """The names of a dimension, those over a budget first, then by time without a leader, on ELR only, under min ISR
    and with one replica in sync.

    Args:
        budgets: trouble to seconds that it may have lasted in all.
    """
    order = [sf.expr("array_size(over)").desc()]
    order += [
        sf.coalesce(sf.try_element_at("troubles", sf.lit(str(trouble)))["seconds"], sf.lit(0)).desc()
        for trouble in _WORST
    ]
    rows = _names(lake, wanted, dimension, budgets or {}).orderBy(*order, "cluster", "name").limit(limit).collect()
    return [_exposed(lake, dimension, row.asDict(recursive=True)) for row in rows]


def counted(
    lake: Lake, wanted: Wanted, known: Facts, dimension: str, budgets: Mapping[str, float] | None = None
) -> FleetExposure:
    """What there is besides."""
    names = _names(lake, wanted, dimension, budgets or {}).agg(
        sf.count(sf.lit(1)).alias("names"), sf.count_if(sf.expr("array_size(over) > 0")).alias("over")
    )
    named = names.collect()[0]
    elections = wanted.read(lake, UNCLEAN_ELECTIONS).agg(
        sf.count(sf.lit(1)).alias("all"), sf.count_if(sf.col("elected_as") == "unknown").alias("unknown")
    )
    elected = elections.collect()[0]
    again = wanted.read(lake, UNCLEAN_RESTARTS).where("week is null and unclean > 1").count()
    settings = wanted.read(lake, RISKY_SETTINGS).count()
    return FleetExposure(
        clusters=len(known.logged) + len(known.observed),
        observed=len(known.observed),
        names=named["names"],
        over=named["over"],
        unclean_elections=elected["all"] - elected["unknown"],
        unknown_elections=elected["unknown"],
        again=again,
        settings=settings,
    )


def _names(lake: Lake, wanted: Wanted, dimension: str, budgets: Mapping[str, float]) -> DataFrame:
    """One row for each name: its troubles as a map, and those over their budgets."""
    rows = wanted.read(lake, EXPOSURE).where((sf.col("dimension") == dimension) & sf.col("week").isNull())
    return rows.groupBy("cluster", "name").agg(
        sf.max("partition_seconds").alias("partition_seconds"),
        sf.map_from_entries(sf.collect_list(sf.struct("trouble", sf.struct(*_FIGURES)))).alias("troubles"),
        sf.array_sort(sf.collect_list(sf.when(_over(budgets), sf.col("trouble")))).alias("over"),
    )


def _over(budgets: Mapping[str, float]) -> Column:
    """Whether a trouble lasted, or may have lasted, longer than it may."""
    found = sf.lit(False)
    most = sf.col("seconds") + sf.col("unknown_seconds")
    for trouble, seconds in budgets.items():
        found |= (sf.col("trouble") == trouble) & (most > seconds)
    return found


def _exposed(lake: Lake, dimension: str, row: Mapping[str, Any]) -> ExposedName:
    cluster = row["cluster"]
    troubles = {}
    for trouble, figures in sorted(row["troubles"].items()):
        since = figures.pop("lasting_since")
        troubles[trouble] = TroubleTime(
            **figures, lasting_since_ms=None if since is None else round(since.timestamp() * 1000)
        )
    return ExposedName(
        cluster,
        lake.version.clusters.get(cluster),
        dimension,
        row["name"],
        row["partition_seconds"],
        troubles,
        tuple(row["over"]),
    )
