"""What of the metrics somebody should be woken for, and what silence about that means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kelr.view.layout import Layout
from kelr.view.styled import Span, Style, Text, styled

if TYPE_CHECKING:
    from kelr.view.metrics import MetricsReport


def alert_lines(report: MetricsReport, layout: Layout) -> Iterator[Text]:
    """The alerts, or what it means that there are none."""
    if not report.alerts:
        text, style = _quiet(report)
        yield [Span(" "), *styled(text, style)]
    for one in report.alerts:
        yield from layout.paragraph(f" {one.name}: ", one.text, Style.BAD)


def _quiet(report: MetricsReport) -> tuple[str, Style]:
    """What it means that there is no alert: as much as was read, and no more."""
    quiet = "nothing to be woken for"
    if report.cluster is not None and not report.partitions:
        return "no partition was seen, so nothing is known to be well", Style.BAD
    if report.cluster is not None:
        return (f"{quiet} in what could be described", Style.NOTICE) if report.errors else (quiet, Style.GOOD)
    if all(one.value is None for one in report.figures):
        return "nothing is known: no endpoint was heard, and no cluster asked", Style.BAD
    leaders = any(one.metric == "offline_partitions" and one.value is not None for one in report.figures)
    unknown = "" if leaders else "; whether partitions have leaders is not known (no controller was read)"
    return f"{quiet} in what was read{unknown}", Style.NOTICE
