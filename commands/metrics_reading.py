"""``kelr metrics read``: reads endpoints and the cluster at once, compares, and looks again where they differ."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import typer

from kelr.apart import Apart
from kelr.commands.disk_logs import names_cluster
from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import fail_unseen
from kelr.engine.words import joined, plural
from kelr.errors import ConnectError, ExitCode, KelrError, PartlyDoneError, UsageError
from kelr.metrics.computed import Computed, Watcher, compute
from kelr.metrics.endpoints import Access, Endpoint
from kelr.metrics.exporter import serve
from kelr.metrics.figures import alerts, brokers_notes, figures, recoveries_finished
from kelr.metrics.reading import Heard, longest_s, read_all
from kelr.model.measured import Comparison, MetricFigure
from kelr.model.numbers import whole_number
from kelr.sources.base import Source
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
    if check and (report.alerts or (report.cluster is not None and not report.tells_of_leaders)):
        raise typer.Exit(ExitCode.FOUND)
    _end(look)
    if check:
        fail_unseen(seen=report.tells_of_leaders)


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


# ``kelr metrics export``: a watcher and a server, until somebody ends them.


_STEP_S = 0.2
"""A signal that comes the moment before a wait does not wake it."""


def run_exporter(
    session: Session, *, listen: str, interval_s: float, most: int, endpoints: Sequence[Endpoint], access: Access
) -> None:
    """Look and serve until SIGTERM.

    Raises:
        UsageError: the address is none, or nothing says which cluster to watch.
        BadInputError, RefusedError: the cluster's settings are wrong. One that is only not reached is waited for.
    """
    host, port = listen_address(listen)
    if session.settings.saved is not None:
        raise UsageError(
            f"{session.settings.saved}, and nothing in it will change",
            next_step="give --bootstrap-server HOST:PORT",
            code="saved-does-not-change",
        )
    output = session.output
    try:
        session.source()
    except ConnectError as error:
        output.note(f"the cluster is not reached yet: {error.message}")

    @contextmanager
    def opened() -> Iterator[Source]:
        # A session of its own for each attempt: the thread's connections are nobody else's.
        with Session(session.settings, output=output) as one:
            yield one.source()

    watcher = Watcher(
        opened,
        interval_s=interval_s,
        most=most,
        recoveries_finished=lambda: recoveries_finished(endpoints, access),
        told=output.note,
    )
    exporter = serve(host, port, lambda: watcher.board, told=output.note)
    try:
        with _until_terminated() as ended:
            shown = f"[{host}]" if ":" in host else host
            output.note(f"serving http://{shown}:{exporter.port}/metrics, looking every {interval_s:g} s")
            watcher.start()
            while not ended:
                time.sleep(_STEP_S)
    finally:
        exporter.close()
        watcher.stop()


def listen_address(text: str) -> tuple[str, int]:
    """Host and port; ``[::1]:9966`` is an IPv6 address, ``:9966`` is every IPv4 one.

    Raises:
        UsageError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or whole_number(port, 65_535) is None or (":" in bare and bare == host):
        raise UsageError(f"--listen {text} is no address", next_step="give something like 127.0.0.1:9966")
    return bare or "0.0.0.0", int(port)


@contextmanager
def _until_terminated() -> Iterator[list[int]]:
    """A list that SIGTERM puts something into; the handler from before is put back."""
    ended: list[int] = []  # an Event's lock may be held by what the signal interrupts

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, before)
