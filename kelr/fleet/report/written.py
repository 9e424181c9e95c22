"""A report in a folder: the pages, and the tables behind them as CSV, which Spark writes.

    OUT/report.html  OUT/report.md  OUT/csv/findings.csv  OUT/csv/clusters.csv  OUT/csv/exposure.csv ...

A table of up to `SMALL` rows is one file; a larger one a folder of parts, each with a header. Lists are their members
with blanks between, an empty one ``-``; what is not known is an empty field.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, MapType, StringType, TimestampType

from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSED
from kelr.fleet.files import files_at
from kelr.fleet.folder import Files, relative
from kelr.fleet.reached import not_written
from kelr.fleet.report.figures import Cluster, Standing
from kelr.fleet.report.findings import Evidence
from kelr.fleet.report.pages import Report, html, markdown
from kelr.fleet.report.sums import has, newest_states
from kelr.fleet.tables import INPUTS, PARTITION_STATES, Table

if TYPE_CHECKING:
    from _csv import Writer

    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake


SMALL = 100_000
"""Rows that fit one file."""
HTML, MARKDOWN, CSV = "html", "md", "csv"
"""What a report is written as."""
_PARTIAL = "csv/_writing"
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


@dataclass(frozen=True, slots=True)
class Behind:
    """A table behind a report."""

    name: str
    rows: DataFrame
    order: tuple[str, ...]


def write_report(report: Report, lake: Lake, place: str, formats: Collection[str]) -> tuple[str, ...]:
    """Write a report; the files and folders that were written, relative to the place.

    Args:
        formats: of `HTML`, `MARKDOWN` and `CSV`.

    Raises:
        BadInputError: the place cannot be written.
    """
    files = files_at(place, lake.spark)
    written: list[str] = []
    if HTML in formats:
        written.append(_put(files, "report.html", html(report)))
    if MARKDOWN in formats:
        written.append(_put(files, "report.md", markdown(report)))
    if CSV in formats:
        written.append(_put(files, "csv/findings.csv", findings_csv(report)))
        written.append(_put(files, "csv/clusters.csv", clusters_csv(report.figures.clusters)))
        written += [_table(files, behind) for behind in tables_behind(report, lake)]
    return tuple(written)


def tables_behind(report: Report, lake: Lake) -> Iterator[Behind]:
    """What the figures are sums of, as far as it was computed; the partitions that have no leader now with it."""
    if has(lake, PARTITION_STATES):
        logged = [one.id for one in report.figures.clusters if one.from_log]
        leaderless = newest_states(lake, logged).where("leader is null")
        yield Behind("leaderless_partitions", leaderless, ("cluster", "topic", "partition"))
    if report.figures.quarantined:
        quarantined = lake.read(INPUTS).where("status = 'quarantined'")
        yield Behind("quarantined_inputs", quarantined, ("cluster", "path"))
    for table in (*EXPOSED, ASSESSMENT_SUMS):
        if has(lake, table):
            yield Behind(table.name, lake.read(table), _order(table))


def _order(table: Table) -> tuple[str, ...]:
    names = ("cluster", "scenario", "rules", "dimension", "week", "scope", "setting", "name", "trouble", "broker")
    more = ("topic", "partition", "at", "offset")
    return tuple(name for name in (*names, *more) if name in table.columns)


def _put(files: Files, path: str, text: str) -> str:
    files.write(path, text.encode())
    return path


def _table(files: Files, behind: Behind) -> str:
    """One file where it is small, else a folder of parts; what an earlier report left of it goes."""
    rows = behind.rows.select(*(_plain(behind.rows, name) for name in behind.rows.columns))
    small = rows.limit(SMALL + 1).count() <= SMALL
    root, folder = files.place.rstrip("/"), f"csv/{behind.name}"
    files.delete_below(folder)
    if not small:
        files.delete(f"{folder}.csv")
        _write(rows.orderBy(*behind.order), f"{root}/{folder}")
        return folder + "/"
    partial = f"{_PARTIAL}/{behind.name}"
    _write(rows.repartition(1).sortWithinPartitions(*behind.order), f"{root}/{partial}")
    parts = [relative(root, one.path) for one in files.list(partial) if one.path.endswith(".csv")]
    header = ",".join(rows.columns).encode() + b"\n"
    files.write(f"{folder}.csv", b"".join(map(files.read, parts)) or header)
    files.delete_below(_PARTIAL)
    return f"{folder}.csv"


def _write(rows: DataFrame, place: str) -> None:
    try:
        # Spark would write a quote within quotes as \", which no other program reads.
        rows.write.mode("overwrite").option("header", True).option("escape", '"').csv(place)
    except Exception as error:
        meaning = not_written(error, place)
        if meaning is None:
            raise
        raise meaning from error


def _plain(rows: DataFrame, name: str) -> Column:
    """A column as CSV has it."""
    kind = rows.schema[name].dataType
    column = fn.col(name)
    if isinstance(kind, ArrayType):
        joined = fn.array_join(column.cast("array<string>"), " ")
        return fn.when(fn.size(column) == 0, fn.lit("-")).otherwise(_harmless(joined)).alias(name)
    if isinstance(kind, MapType):
        return fn.to_json(column).alias(name)
    if isinstance(kind, TimestampType):
        return fn.date_format(column, _TIME).alias(name)
    if isinstance(kind, StringType):
        return _harmless(column).alias(name)
    return column


def _harmless(column: Column) -> Column:
    """Text as `kelr.fleet.report.written.harmless`."""
    return fn.when(column.rlike(FORMULA), fn.concat(fn.lit("'"), column)).otherwise(column)


# Findings and clusters as CSV: what does not grow with partitions, and is not written by Spark.
#
# A spreadsheet computes a cell that begins like a formula. Topics may begin with ``-``, and names of clusters, racks
# and files with anything: such text has a ``'`` in front of it, as OWASP says (CSV Injection).


_FINDING_COLUMNS = (
    *("place", "shown", "kind", "cluster", "cluster_name", "subject", "title", "text", "not_known", "partitions"),
    *("certainty", "evidence", "commands"),
)


FORMULA = r"^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20][\s\S]"
"""Text that a spreadsheet may compute, for Python and Java; a ``-`` alone, an empty list, it does not."""
_FORMULA = re.compile(FORMULA)


def harmless(cell: object) -> object:
    """A cell that no spreadsheet computes; numbers stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def findings_csv(report: Report) -> str:
    """All findings, in their order; RFC 4180, commands separated by new lines."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_FINDING_COLUMNS)
    shown = frozenset(map(id, report.chosen.shown))
    for place, one in enumerate(report.findings, 1):
        _write_line(
            writer,
            (
                place,
                "true" if id(one) in shown else "false",
                *(one.kind, one.cluster, one.cluster_name, one.subject, one.title),
                *(" ".join(one.text), " ".join(one.unknown), one.partitions, one.certainty),
                "; ".join(_evidence(evidence) for evidence in one.evidence),
                "\n".join(command.line for command in one.commands),
            ),
        )
    return text.getvalue()


def _write_line(writer: Writer, cells: Sequence[object]) -> None:
    writer.writerow([harmless(cell) for cell in cells])


def _evidence(one: Evidence) -> str:
    return f"{one.table} where {one.where}" if one.where else one.table


def clusters_csv(clusters: Sequence[Cluster]) -> str:
    """All clusters and how they stand."""
    text = io.StringIO()
    writer = csv.writer(text)
    names = tuple(Standing.__dataclass_fields__)
    writer.writerow(("cluster", "name", *names, "brokers", "not_live", "begins", "ends", "source"))
    for one in clusters:
        _write_line(
            writer,
            (
                one.id,
                one.name,
                *(getattr(one.standing, name) for name in names),
                len(one.brokers),
                " ".join(map(str, one.down)) or "-",
                "" if one.begins is None else one.begins.isoformat(),
                "" if one.ends is None else one.ends.isoformat(),
                "log" if one.from_log else "snapshot",
            ),
        )
    return text.getvalue()
