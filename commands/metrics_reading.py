"""``kelr metrics read``: reads endpoints and the cluster at once, compares, and looks again where they differ."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from kelr.apart import Apart
from kelr.commands.disk_logs import names_cluster
from kelr.commands.session import Session, now_ms
from kelr.engine.words import joined, plural
from kelr.errors import ConnectError, ExitCode, KelrError, PartlyDoneError, UsageError
from kelr.metrics.access import Access
from kelr.metrics.alerts import alerts
from kelr.metrics.asked import Endpoint
from kelr.metrics.combining import brokers_notes
from kelr.metrics.computed import Computed, compute
from kelr.metrics.figures import figures
from kelr.metrics.reading import Heard, longest_s, read_all
from kelr.model.measured import Comparison, MetricFigure
from kelr.view.describe import NOTHING_READ
from kelr.view.metrics import MetricsReport, show_metrics

_LATE_S = 60.0
"""The reading ends by itself; on a busy machine its thread may begin late."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The endpoints, and how to ask them."""

    endpoints: tuple[Endpoint, ...]
    access: Access
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Look:
    """What endpoints and cluster said at one time."""

    heard: tuple[Heard, ...]
    computed: Computed | None
    failure: KelrError | None
    at_ms: int

    def figures(self) -> tuple[MetricFigure, ...]:
        why = "no cluster was named" if self.failure is None else f"the cluster was not read: {self.failure.message}"
        return figures(self.heard, self.computed, now_ms=self.at_ms, not_computed=why)


def read_metrics(session: Session, asked: Asked, *, check: bool) -> None:
    """Read, compare, show.

    Raises:
        UsageError: neither an endpoint nor a cluster was named, or an endpoint has several clusters.
        ConnectError, PartlyDoneError: all, or some, of what was asked could not be reached; it was shown all the same.
    """
    named = names_cluster(session)
    if not asked.endpoints and not named:
        raise UsageError(
            "nothing says what to read",
            next_step="give --endpoint, --prometheus or --jolokia, and --bootstrap-server for kelr's own figures",
            code="no-endpoint-named",
        )
    look = _look(session, asked, named=named)
    found = look.figures()
    again = False
    if _may_have_moved(found, look):
        # Gauges follow the cluster at some distance: only what differs twice differs.
        look, again = _look(session, asked, named=named), True
        found = look.figures()
    report = _report(look, found, asked, again=again)
    show_metrics(session.output, report)
    saw_nothing = report.cluster is not None and not report.partitions
    if check and (report.alerts or saw_nothing):
        raise typer.Exit(ExitCode.FOUND)
    _end(look)


def _look(session: Session, asked: Asked, *, named: bool) -> _Look:
    reading = Apart(lambda: read_all(asked.endpoints, asked.access, timeout_s=asked.timeout_s))
    computed, failure = None, None
    if named:
        try:
            source = session.source()
            source.forget()
            computed = compute(source)
        except UsageError:
            raise
        except KelrError as error:
            failure = error
    heard = reading.result(longest_s(len(asked.endpoints), asked.timeout_s) + _LATE_S)
    return _Look(heard, computed, failure, now_ms())


def _may_have_moved(found: tuple[MetricFigure, ...], look: _Look) -> bool:
    if look.computed is None or look.computed.taken_at_ms is not None:
        return False
    return any(one.comparison in {Comparison.DIFFERENT, Comparison.EXPLAINED} for one in found)


def _report(look: _Look, found: tuple[MetricFigure, ...], asked: Asked, *, again: bool) -> MetricsReport:
    computed = look.computed
    endpoints = tuple(one.asked for one in look.heard)
    notes = [*brokers_notes(look.heard, computed)]
    if again and any(one.comparison is Comparison.DIFFERENT for one in found):
        notes.append("what differs was read a second time, and differs still")
    if look.failure is not None:
        notes.append(f"the cluster was not read: {look.failure.message}")
    notes += _not_counted(computed)
    plain = sorted({one.shown for one in asked.endpoints if one.url.startswith("http:")})
    if asked.access.has_secrets and plain:
        notes.append(f"the password or token went to {', '.join(plain)} without TLS")
    leaderless = computed is not None and (computed.figures.get("offline_partitions") or computed.dead_leader)
    taken = None if computed is None else computed.taken_at_ms or look.at_ms
    return MetricsReport(
        figures=found,
        asked=endpoints,
        alerts=alerts(found, endpoints, computed),
        cluster=None if computed is None else computed.cluster,
        source=None if computed is None else computed.source,
        computed_at_ms=taken,
        partitions=None if computed is None else computed.partitions,
        notes=tuple(notes),
        errors=() if computed is None else computed.errors,
        next_command=("explain",) if leaderless else None,
    )


def _not_counted(computed: Computed | None) -> list[str]:
    """What kelr's own figures leave out, which no figure tells."""
    if computed is None:
        return []
    if not computed.partitions and not computed.errors:
        return [NOTHING_READ]
    by_count: dict[int, list[str]] = {}
    for name, count in sorted(computed.unknown.items()):
        by_count.setdefault(count, []).append(name)
    return [
        f"of {plural(count, 'partition')} it is not known whether kelr's {joined(names)} should count them"
        for count, names in sorted(by_count.items())
        if count
    ]


def _end(look: _Look) -> None:
    """Say by the exit code what could not be reached; all that could was shown."""
    for one in look.heard:
        if one.next_step is not None:
            raise UsageError(
                f"{one.asked.endpoint} is not read: {one.asked.problem}",
                next_step=one.next_step,
                code="several-clusters",
            )
    silent = [one.asked.endpoint for one in look.heard if not one.asked.heard]
    reached = look.computed is not None or len(silent) < len(look.heard)
    if not reached:
        if look.failure is not None and not look.heard:
            raise look.failure
        raise ConnectError(
            "nothing that was asked could be reached",
            next_step="check the addresses, and what each row says",
            code="no-endpoint-answers",
        )
    if silent or look.failure is not None:
        what = [*silent, *(["the cluster"] if look.failure is not None else [])]
        raise PartlyDoneError(
            f"not reached: {', '.join(what)}",
            next_step="check the addresses; what the others say is above",
            code="some-endpoints-silent",
        )
