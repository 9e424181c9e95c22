"""What people see of the tables: the names that stood in trouble longest, and counts of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.model.exposed import ExposedName, FleetExposure, TroubleTime
from kelr.replay.history import Trouble

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted
    from kelr.fleet.lake import Lake

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
