"""From a lake's states and events to what they exposed, as tables of the same lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType

from kelr.errors import BadInputError
from kelr.fleet.exposure.elections import unclean_elections, unclean_restarts
from kelr.fleet.exposure.settings import risky_settings
from kelr.fleet.exposure.spells import spells
from kelr.fleet.exposure.sums import sums
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.exposure.troubles import pieces
from kelr.fleet.exposure.wanted import facts
from kelr.fleet.tables import PARTITION_STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from kelr.fleet.exposure.wanted import Facts, Wanted
    from kelr.fleet.lake import Lake
    from kelr.fleet.tables import Table


def expose(lake: Lake, wanted: Wanted) -> Facts:
    """Sum up the clusters and write the four tables anew for them; what other clusters have in them stays.

    Returns: what is known of the clusters that have anything in the window.

    Raises:
        BadInputError: a cluster is not in the lake, or nothing is in the window.
        RefusedError: another run is changing the lake.
    """
    folders = [{"cluster": cluster} for cluster in wanted.clusters] or [{}]
    with lake.changing() as changes:
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
