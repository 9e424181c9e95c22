"""A report in a folder: the pages, and the tables behind them as CSV.

    OUT/report.html  OUT/report.md  OUT/csv/findings.csv  OUT/csv/clusters.csv  OUT/csv/exposure.csv ...

A table of up to `SMALL` rows is sorted; a larger one is as the lake's files have it. Lists are their members with
blanks between, an empty one ``-``; what is not known is an empty field.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSED
from kelr.fleet.files import Files, files_at
from kelr.fleet.report.figures import Cluster, Standing
from kelr.fleet.report.findings import Evidence
from kelr.fleet.report.pages import Report, html, markdown
from kelr.fleet.report.sums import has, newest_states
from kelr.fleet.tables import INPUTS, PARTITION_STATES, Table

if TYPE_CHECKING:
    from _csv import Writer

    from kelr.fleet.lake import Lake


SMALL = 100_000
"""Rows that are sorted."""
HTML, MARKDOWN, CSV = "html", "md", "csv"
"""What a report is written as."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A table behind a report."""

    name: str
    table: Table
    where: pc.Expression | None = None


def write_report(report: Report, lake: Lake, place: str, formats: Collection[str]) -> tuple[str, ...]:
    """Write a report; the files that were written, relative to the place.

    Args:
        formats: of `HTML`, `MARKDOWN` and `CSV`.

    Raises:
        BadInputError: the place cannot be written.
    """
    files = files_at(place, lake.options(place))
    written: list[str] = []
    if HTML in formats:
        written.append(_put(files, "report.html", html(report)))
    if MARKDOWN in formats:
        written.append(_put(files, "report.md", markdown(report)))
    if CSV in formats:
        written.append(_put(files, "csv/findings.csv", findings_csv(report)))
        written.append(_put(files, "csv/clusters.csv", clusters_csv(report.figures.clusters)))
        for behind in tables_behind(report, lake):
            written.append(f"csv/{behind.name}.csv")
            files.write(written[-1], _lines(lake, behind))
    return tuple(written)


def tables_behind(report: Report, lake: Lake) -> Iterator[Behind]:
    """What the figures are sums of, as far as it was computed; the partitions that have no leader now with it."""
    if has(lake, PARTITION_STATES):
        logged = [one.id for one in report.figures.clusters if one.from_log]
        leaderless = newest_states(lake, logged) & pc.field("leader").is_null()
        yield Behind("leaderless_partitions", PARTITION_STATES, leaderless)
    if report.figures.quarantined:
        yield Behind("quarantined_inputs", INPUTS, pc.field("status") == "quarantined")
    for table in (*EXPOSED, ASSESSMENT_SUMS):
        if has(lake, table):
            yield Behind(table.name, table)


def _order(table: Table) -> list[tuple[str, str]]:
    names = ("cluster", "scenario", "rules", "dimension", "week", "scope", "setting", "name", "trouble", "broker")
    more = ("topic", "partition", "at", "offset", "path")
    return [(name, "ascending") for name in (*names, *more) if name in table.columns]


def _put(files: Files, path: str, text: str) -> str:
    files.write(path, [text.encode()])
    return path


def _lines(lake: Lake, behind: Behind) -> Iterator[bytes]:
    """A table as CSV, batch by batch."""
    dataset = lake.dataset(behind.table)
    if dataset.count_rows(filter=behind.where) <= SMALL:
        table = dataset.to_table(list(behind.table.columns), filter=behind.where)
        parts: Iterable[pa.RecordBatch] = table.sort_by(_order(behind.table)).to_batches()
    else:
        parts = dataset.to_batches(columns=list(behind.table.columns), filter=behind.where)
    kinds = [_plain(kind) for kind in dataset.schema.empty_table().select(behind.table.columns).schema.types]
    yield ",".join(behind.table.columns).encode() + b"\n"
    for part in parts:
        text = io.StringIO()
        columns = [map(plain, column.to_pylist()) for plain, column in zip(kinds, part.columns, strict=True)]
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        yield text.getvalue().encode()


def _plain(kind: pa.DataType) -> Callable[[Any], object]:
    """Values of this type as CSV has them."""

    def known(value: Any) -> object:
        if pa.types.is_map(kind):
            return json.dumps(dict(value), separators=(",", ":"), ensure_ascii=False)
        if pa.types.is_list(kind):
            return harmless(" ".join("" if one is None else str(one) for one in value)) if value else "-"
        if isinstance(value, datetime):
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z"
        if isinstance(value, date):
            return value.isoformat()
        return str(value).lower() if isinstance(value, bool) else harmless(value)

    return lambda value: None if value is None else known(value)


# Findings and clusters as CSV.
#
# A spreadsheet computes a cell that begins like a formula. Topics may begin with ``-``, and names of clusters, racks
# and files with anything: such text has a ``'`` in front of it, as OWASP says (CSV Injection).


_FINDING_COLUMNS = (
    *("place", "shown", "kind", "cluster", "cluster_name", "subject", "title", "text", "not_known", "partitions"),
    *("certainty", "evidence", "commands"),
)


_FORMULA = re.compile(r"^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20][\s\S]")
"""Text that a spreadsheet may compute; a ``-`` alone, an empty list, it does not."""


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
