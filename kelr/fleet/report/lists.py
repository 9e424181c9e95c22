"""Findings and clusters as CSV: what does not grow with partitions, and is not written by Spark.

A spreadsheet computes a cell that begins like a formula. Topics may begin with ``-``, and names of clusters, racks and
files with anything: such text has a ``'`` in front of it, as OWASP says (CSV Injection).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kelr.fleet.report.figures import Cluster, Standing
from kelr.fleet.report.findings import Evidence
from kelr.fleet.report.pages import Report

if TYPE_CHECKING:
    from _csv import Writer

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
        _write(
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


def _write(writer: Writer, cells: Sequence[object]) -> None:
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
        _write(
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
