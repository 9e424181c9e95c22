"""``kelr fleet run``: ingest, assess, exposure and report, one after another, of what a file names; again and again.

A step whose tables are newer than everything that they are made of is left out, so that a run that finds nothing new
changes nothing.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kelr.errors import BadInputError
from kelr.fleet.assess.assessing import Question, assess
from kelr.fleet.assess.scenarios import wanted_scenarios
from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.run import expose
from kelr.fleet.exposure.tables import EXPOSURE
from kelr.fleet.exposure.wanted import Wanted
from kelr.fleet.files import files_at
from kelr.fleet.ingest import ingest
from kelr.fleet.lake import Lake
from kelr.fleet.report.pages import TITLE, gaps, report_of
from kelr.fleet.report.sums import figures_of, is_older
from kelr.fleet.report.written import CSV, HTML, MARKDOWN, write_report
from kelr.fleet.session import is_there
from kelr.fleet.tables import TRENDS, Table
from kelr.model.fleet import ClusterTrend, FleetRun, TroubleCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from kelr.fleet.report.figures import Figures

_DAY_MS = 86_400_000
_NEXT = "docs/fleet-run.md has an example"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What a file says of a run. Paths in it are relative to its folder."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    lake: str
    inputs: tuple[str, ...]
    report: str | None = None
    """The folder of the report; None: none is written."""
    title: str = TITLE
    top: int = 10
    scenarios: tuple[str, ...] = ()
    exposure_days: int | None = None
    """So many days up to now are summed up; None: all that is on record."""
    names_of_folders: bool = False
    clusters: dict[str, str] = field(default_factory=dict)
    """Cluster ids by the beginning of paths."""
    names: dict[str, str] = field(default_factory=dict)
    """What clusters are to be called, by their ids."""
    master: str | None = None
    remote: str | None = None
    spark: dict[str, str] = field(default_factory=dict)
    """Settings of Spark's."""


def read_config(path: Path) -> RunConfig:
    """Read a file.

    Raises:
        BadInputError: it cannot be read, is no TOML, or says what no run knows.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - slow to load

    try:
        told = TypeAdapter(RunConfig).validate_python(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}", next_step=_NEXT) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is no TOML: {error}", next_step=_NEXT) from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise BadInputError(f"{path}: {name}: {first['msg']}", next_step=_NEXT) from error

    if not told.inputs:
        raise BadInputError(f"{path}: inputs: none is named", next_step=_NEXT)

    def here(place: str) -> str:
        return place if "://" in place else str(path.absolute().parent / place)

    return replace(
        told,
        lake=here(told.lake),
        inputs=tuple(map(here, told.inputs)),
        report=None if told.report is None else here(told.report),
        clusters={here(place): cluster for place, cluster in told.clusters.items()},
        scenarios=tuple(here(one) if one.endswith((".yaml", ".yml", ".json")) else one for one in told.scenarios),
    )


def run(spark: Callable[[], SparkSession], config: RunConfig, *, now_ms: int, since_ms: int | None = None) -> FleetRun:
    """Do what there is to do.

    Args:
        spark: gives the session, which is asked for where a step needs it: assess, exposure, and ingest by the workers
            of a cluster.
        since_ms: with which earlier run the newest is compared: the last one that had ended then.

    Raises:
        BadInputError: an input is not there, nothing can be read, or there is no run to compare with.
        RefusedError: another run has changed the lake meanwhile; what this one had done before stays.
    """
    on_cluster = config.master is not None or config.remote is not None or is_there()
    taken = ingest(
        spark() if on_cluster else None,
        config.inputs,
        config.lake,
        now_ms=now_ms,
        clusters=config.clusters,
        names=config.names,
        names_of_folders=config.names_of_folders,
        settings=config.spark,
    )
    lake = Lake(None, config.lake, config.spark).exists()
    done = ["ingest"] if taken.changed else []
    since = None if config.exposure_days is None else now_ms - config.exposure_days * _DAY_MS
    steps: Sequence[tuple[str, object, Table, Callable[[Lake, str], object]]] = (
        (
            "assess",
            config.scenarios,
            ASSESSMENT_SUMS,
            lambda lake, command: assess(lake, Question(wanted_scenarios(config.scenarios)), command=command),
        ),
        (
            "exposure",
            config.exposure_days,
            EXPOSURE,
            lambda lake, command: expose(lake, Wanted(since_ms=since), command=command),
        ),
    )
    for name, settings, table, do in steps:
        command = f"{name} {json.dumps(settings)}"
        if is_older(lake, table) or lake.command_of(table) != command:
            do(Lake(spark(), config.lake), command)
            lake.refresh()
            done.append(name)
    figures = figures_of(lake)
    if done:
        _keep(lake, figures)
    report = report_of(figures, top=config.top, title=config.title)
    written: tuple[str, ...] = ()
    place = (config.report or "").rstrip("/")
    if place and (done or not any(files_at(place, lake.options(place)).list("report.html"))):
        written = tuple(f"{place}/{path}" for path in write_report(report, lake, place, {HTML, MARKDOWN, CSV}))
        done.append("report")
    compared = None if since_ms is None else _as_of(lake, since_ms)
    return FleetRun(
        lake=lake.place,
        version=lake.version.number,
        done=tuple(done),
        clusters=tuple(
            ClusterTrend(one.id, one.name, _counts(one.standing), None if compared is None else compared[1].get(one.id))
            for one in figures.clusters
        ),
        new_files=taken.new_files,
        quarantined=taken.quarantined,
        findings=len(report.findings),
        written=written,
        compared_ms=None if compared is None else compared[0],
        unseen=tuple(gap.text for gap in gaps(figures)),
    )


def _keep(lake: Lake, figures: Figures) -> None:
    """How the clusters stand, for runs to come that compare with it."""
    with lake.changing("run") as changes:
        rows = [
            {
                "run": lake.version.number,
                "at": datetime.fromtimestamp(lake.version.at_ms / 1000, UTC),
                "cluster": one.id,
            }
            | asdict(_counts(one.standing))
            for one in figures.clusters
        ]
        changes.put(TRENDS, [*lake.rows(TRENDS), *rows])


def _counts(standing: Any) -> TroubleCounts:
    return TroubleCounts(**{one.name: getattr(standing, one.name) for one in fields(TroubleCounts)})


def _as_of(lake: Lake, since_ms: int) -> tuple[int, dict[str, TroubleCounts]]:
    """When the last run before a moment had ended, and how clusters stood then."""
    rows = lake.rows(TRENDS)
    ended = max((row["at"] for row in rows if row["at"].timestamp() * 1000 <= since_ms), default=None)
    if ended is None:
        first = min((row["at"] for row in rows), default=None)
        since = "none has ended yet" if first is None else f"the first ended at {first:%Y-%m-%d %H:%M:%S} UTC"
        raise BadInputError(f"no run is on record to compare with: {since}", next_step="give --since a later time")
    counts = [one.name for one in fields(TroubleCounts)]
    found = {
        row["cluster"]: TroubleCounts(**{name: row[name] for name in counts}) for row in rows if row["at"] == ended
    }
    return round(ended.timestamp() * 1000), found
