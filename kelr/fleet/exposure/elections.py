"""Elections of replicas that may lack what was committed, and brokers whose shutdowns before a restart were unclean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from kelr.fleet.exposure.spells import WHOLE
from kelr.fleet.exposure.wanted import newest_of_brokers
from kelr.fleet.tables import BROKER_EVENTS, ELECTIONS, LOG_INFO, PARTITION_STATES
from kelr.model import BrokerStatus
from kelr.replay.history import BrokerEvent, CauseKind, Restart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kelr.fleet.exposure.wanted import Wanted
    from kelr.fleet.lake import Lake

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
