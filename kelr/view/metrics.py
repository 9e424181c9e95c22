"""What ``kelr metrics`` shows: Kafka's gauges beside kelr's figures, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kelr.engine.words import plural
from kelr.model import Cluster, TopicError
from kelr.model.measured import AskedEndpoint, Comparison, MetricAlert, MetricFigure, MetricScope, Reading
from kelr.view.columns import Column, Fact, Json, Shown, View, column, datum
from kelr.view.describe import ERRORS_TAIL, error_items, say_below
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Span, Style, Text, plain, styled

KIND = "kelr/metrics"

_BAD_ABOVE_0 = frozenset(
    {
        "offline_partitions",
        "under_min_isr",
        "partitions_under_min_isr",
        "global_under_min_isr",
        "manual_election_required",
        "unclean_recoveries",
        "metadata_errors",
        "offline_log_dirs",
        "offline_replicas",
        "logs_to_recover",
    }
)
_WORDS: Mapping[Comparison, tuple[str, Style]] = {
    Comparison.SAME: ("same", Style.GOOD),
    Comparison.EXPLAINED: ("explained", Style.NOTICE),
    Comparison.DIFFERENT: ("DIFFERENT", Style.BAD),
    Comparison.NOT_COMPARABLE: ("not comparable", Style.PLAIN),
    Comparison.KELR_ALONE: ("kelr alone", Style.PLAIN),
    Comparison.NOT_READ: ("not read", Style.PLAIN),
}


@dataclass(frozen=True, slots=True)
class MetricsReport:
    """All that there is to show."""

    figures: tuple[MetricFigure, ...]
    asked: tuple[AskedEndpoint, ...]
    alerts: tuple[MetricAlert, ...]
    cluster: Cluster | None
    """None where no cluster was named or reached."""
    source: str | None
    computed_at_ms: int | None
    partitions: int | None
    notes: tuple[str, ...] = ()
    errors: tuple[TopicError, ...] = ()
    next_command: tuple[str, ...] | None = None

    @property
    def tells_of_leaders(self) -> bool:
        """Whether it is known how many partitions have no leader."""
        if self.cluster is not None:
            return bool(self.partitions)
        return any(one.metric == "offline_partitions" and one.value is not None for one in self.figures)


def metrics_view() -> View[MetricFigure]:
    """One item for each metric."""
    return View(
        KIND,
        (
            datum("metric", "string", "kelr's name for the metric."),
            column("title", "METRIC", "string", "The metric in words; `(led)`: each broker counts what it leads."),
            datum("mbean", "string", "Its MBean in Kafka."),
            datum(
                "scope", "string", f"Whose figure it is: one of {', '.join(MetricScope)}.", lambda row: str(row.scope)
            ),
            column(
                "value",
                "KAFKA",
                "number?",
                "What the endpoints say together: the highest of the controllers', the sum of the brokers';"
                " null: none says it.",
                lambda row: _number(row.value),
                text=_said,
                right=True,
            ),
            column(
                "computed",
                "KELR",
                "integer?",
                "What kelr counts by the same definition; null: it cannot, or counts 0 and not all was seen.",
                text=_counted,
                right=True,
            ),
            column(
                "comparison",
                "COMPARISON",
                "string",
                f"How the two stand to each other: one of {', '.join(Comparison)}.",
                lambda row: str(row.comparison),
                text=lambda row: styled(*_WORDS[row.comparison]),
            ),
            datum("why", "string", "What explains the difference, and what to know about the metric."),
            datum(
                "age_s",
                "number?",
                "Seconds since the oldest value that was counted was measured; null: not known.",
                lambda row: None if row.age_s is None else round(row.age_s, 3),
            ),
            datum(
                "increase",
                "number?",
                "How far a counter rose in the last minutes; null: only a Prometheus server knows.",
                lambda row: _number(row.increase),
            ),
            datum(
                "readings",
                "object[]",
                "What each process says: {endpoint, process, name, value, at_ms, old, increase}.",
                lambda row: [_reading(one) for one in row.readings],
            ),
            datum("heard", "integer", "How many processes say it; one that is read in two ways is one."),
            Column("from", "FROM", text=lambda row: plain(_from(row)), shown=Shown.PEOPLE, yields=1),
            Column("age", "AGE", text=lambda row: plain(_age(row)), right=True, shown=Shown.PEOPLE, yields=2),
        ),
        head=_HEAD,
        tail=_TAIL,
    )


_HEAD = (
    Fact("cluster_id", "string?", "The cluster's id; null where no cluster was asked."),
    Fact("source", "string?", "What kelr counted: `live`, or the name of a file; null where no cluster was asked."),
    Fact("computed_at_ms", "integer?", "When kelr's figures were true, in milliseconds since 1970 UTC."),
    Fact("partitions", "integer?", "Partitions that kelr counted."),
)
_TAIL = (
    Fact("endpoints", "object[]", "Each address: {endpoint, kind, heard, took_s, readings, problem, notes}."),
    Fact("alerts", "object[]", "What --check fails on: {name, text}."),
    Fact("notes", "string[]", "What the reader has to know besides."),
    *ERRORS_TAIL,
)


def show_metrics(output: Output, report: MetricsReport) -> None:
    """Show the figures, what is to be known of them, the endpoints, and what somebody should be woken for."""
    if output.format.for_people:
        _show_people(output, report, wide=output.format is output.format.WIDE)
    else:
        with output.listing(metrics_view(), _head(report)) as listing:
            listing.add(report.figures)
            listing.finish(_tail(output, report))
    say_below(output, report.notes, report.errors, report.next_command)


def _show_people(output: Output, report: MetricsReport, *, wide: bool) -> None:
    layout = Layout(output.width)
    rows = [one for one in report.figures if wide or one.value is not None or one.computed is not None or one.unseen]
    columns = tuple(
        one for one in metrics_view().table_columns(wide=wide) if one.key not in {"from", "age"} or report.asked
    )
    for line in _headline(report):
        output.line(line)
    for line in layout.table(columns, rows):
        output.line(line)
    told = [one for one in rows if one.why and _worth_telling(one, wide=wide)]
    if told:
        output.line()
    for one in told:
        style = Style.BAD if one.comparison is Comparison.DIFFERENT else Style.HEADING
        for line in layout.paragraph(f" {one.title}: ", one.why, style):
            output.line(line)
    if report.asked:
        output.line()
        for line in layout.table(_ENDPOINT_COLUMNS, report.asked):
            output.line(line)
    output.line()
    for line in alert_lines(report, layout):
        output.line(line)


def _worth_telling(row: MetricFigure, *, wide: bool) -> bool:
    """What a table of many metrics tells of each: the reasons, and not what is always so."""
    if wide or row.comparison in {Comparison.EXPLAINED, Comparison.DIFFERENT}:
        return True
    if row.comparison is Comparison.SAME:
        return True
    return row.comparison is Comparison.NOT_COMPARABLE and bool(row.value)


def _headline(report: MetricsReport) -> Iterator[Text]:
    silent = sum(not one.heard for one in report.asked)
    asked = f"{plural(len(report.asked), 'endpoint')} asked" if report.asked else "no endpoint asked"
    heard = f", {silent} without an answer" if silent else ""
    about = "no cluster" if report.cluster is None else f"cluster {report.cluster.cluster_id or '?'}"
    counted = (
        "" if report.partitions is None else f", {plural(report.partitions, 'partition')} counted ({report.source})"
    )
    if report.partitions == 0:
        counted = f", no partition seen ({report.source})"
    yield [*styled(about, Style.HEADING), *plain(counted), *plain(f"; {asked}"), *styled(heard, Style.BAD)]


def _said(row: MetricFigure) -> Text:
    if row.value is None:
        return plain("-")
    return (
        styled(_shown(row.value), Style.BAD) if row.value and row.metric in _BAD_ABOVE_0 else plain(_shown(row.value))
    )


def _counted(row: MetricFigure) -> Text:
    if row.computed is None:
        return styled("?", Style.NOTICE) if row.unseen else plain("-")
    text = f"{row.computed:,}"
    return styled(text, Style.BAD) if row.computed and row.metric in _BAD_ABOVE_0 else plain(text)


def _shown(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return "<0.001" if 0 < value < 0.001 else f"{value:.3g}"


def _from(row: MetricFigure) -> str:
    return plural(row.heard, str(row.scope)) if row.heard else "-"


def _age(row: MetricFigure) -> str:
    return "-" if row.age_s is None else f"{row.age_s:.0f} s"


def _number(value: float | None) -> Json:
    """Whole numbers as such."""
    return None if value is None else int(value) if value == int(value) else value


def _reading(one: Reading) -> Mapping[str, Json]:
    return {
        "endpoint": one.endpoint,
        "process": one.process,
        "name": one.name,
        "value": _number(one.value),
        "at_ms": one.at_ms,
        "old": one.old,
        "increase": _number(one.increase),
    }


def _head(report: MetricsReport) -> Mapping[str, Json]:
    return {
        "cluster_id": None if report.cluster is None else report.cluster.cluster_id,
        "source": report.source,
        "computed_at_ms": report.computed_at_ms,
        "partitions": report.partitions,
    }


def _tail(output: Output, report: MetricsReport) -> Mapping[str, Json]:
    return {
        "endpoints": [_endpoint(one) for one in report.asked],
        "alerts": [{"name": one.name, "text": one.text} for one in report.alerts],
        "notes": list(report.notes),
        "errors": error_items(report.errors),
        "next": None if report.next_command is None else output.next_command(report.next_command),
    }


def _endpoint(one: AskedEndpoint) -> Mapping[str, Json]:
    return {
        "endpoint": one.endpoint,
        "kind": one.kind,
        "heard": one.heard,
        "took_s": round(one.took_s, 3),
        "readings": one.readings,
        "problem": one.problem,
        "notes": list(one.notes),
    }


def _endpoint_says(one: AskedEndpoint) -> Text:
    if one.problem is not None:
        return styled(one.problem, Style.BAD)
    return styled("; ".join(one.notes), Style.NOTICE) if one.notes else plain("-")


def _text_of(value: Callable[[AskedEndpoint], str]) -> Callable[[AskedEndpoint], Text]:
    return lambda row: plain(value(row))


_ENDPOINT_COLUMNS: tuple[Column[AskedEndpoint], ...] = (
    Column("endpoint", "ENDPOINT", text=_text_of(lambda row: row.endpoint)),
    Column("kind", "KIND", text=_text_of(lambda row: row.kind)),
    Column("readings", "VALUES", text=_text_of(lambda row: str(row.readings) if row.heard else "?"), right=True),
    Column("took", "TOOK", text=_text_of(lambda row: f"{row.took_s:.1f} s"), right=True),
    Column("says", "PROBLEM", text=_endpoint_says, prose=True),
)


# What of the metrics somebody should be woken for, and what silence about that means.


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
        answered = any(one.heard for one in report.asked)
        endpoints = "no endpoint that answered has any of these figures" if answered else "no endpoint answered"
        return f"nothing is known: {endpoints}, and no cluster was read", Style.BAD
    unknown = "; whether partitions have leaders is not known (no controller was read)"
    return f"{quiet} in what was read{'' if report.tells_of_leaders else unknown}", Style.NOTICE
