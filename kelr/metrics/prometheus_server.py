"""A Prometheus server's query API, or that of something that speaks it (Thanos, Mimir, VictoriaMetrics).

A range selector in an instant query answers with the samples themselves and the times at which they were scraped, so
that old ones are seen to be old; a plain selector would answer with the time of the question.
"""

from __future__ import annotations

import json
import re
import shlex
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from kelr.engine.words import agree
from kelr.errors import UsageError
from kelr.metrics.catalog import METRICS, Attribute, Recognized, recognize
from kelr.metrics.endpoints import (
    Access,
    Answer,
    Endpoint,
    Found,
    NotHeardError,
    Question,
    Value,
    ask,
    read_json,
    shortened,
)
from kelr.model.measured import MetricScope

WINDOW_S = 300
_OLD_WITHOUT_A_GAP_S = 90.0
_APART_S = 30.0
"""Clocks that are further apart than that are told of."""
_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"'
_MATCHERS = re.compile(rf"\s*{_MATCHER}\s*(?:,\s*{_MATCHER}\s*)*,?\s*")
_ERROR_STATUSES = frozenset({400, 404, 405, 422, 503})


def clock_s() -> float:
    """Now, in seconds since 1970 UTC."""
    return time.time()


def checked_match(text: str) -> str:
    """Label matchers as they stand in a selector.

    Raises:
        UsageError: the text is something else.
    """
    if _MATCHERS.fullmatch(text) is None:
        raise UsageError(
            f"--query-match {text} is no list of label matchers",
            next_step="""give something like 'cluster="payments"'""",
        )
    return text.strip().rstrip(",")


def selectors(match: str | None) -> tuple[str, str]:
    """The two queries: one for all that is a figure of a process, one for the series of single partitions."""
    rest = "" if match is None else f",{match}"
    names = sorted({name for one in METRICS if not one.of_each_partition for name in _names(one.base, one.also)})
    labelled = sorted({f"{one.domain}_{one.type}".replace(".", "_").lower() for one in METRICS})
    pattern = "|".join(
        [*names, *(f"{name}_(value|count|oneminuterate)" for name in labelled if "partition" not in name)]
    )
    each = "|".join(
        f"{one.base}(_value)?|{one.base.rsplit('_', 1)[0]}_value" for one in METRICS if one.of_each_partition
    )
    return (
        f'{{__name__=~"(?i)({pattern})"{rest}}}[{WINDOW_S}s]',
        f'{{__name__=~"(?i)({each})"{rest}}} > 0',
    )


def _names(base: str, also: tuple[str, ...]) -> Iterator[str]:
    stem = base.removesuffix("persec")
    per_second = "(persec)?" if stem != base else ""
    yield f"{stem}{per_second}(_value|_count|_total|_count_total|_oneminuterate|_1minuterate|_one_minute_rate)?"
    yield from also


def query_server(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, *, timeout_s: float) -> Found:
    """The known metrics that the server has, with the times at which they were scraped.

    Raises:
        NotHeardError: it gives no usable answer, or its series are of several clusters.
    """
    deadline = time.monotonic() + timeout_s
    notes: list[str] = []
    values: list[Value] = []
    partial = False
    for query in selectors(endpoint.query_match):
        left = deadline - time.monotonic()
        if left <= 0:
            raise NotHeardError(f"no answer within {timeout_s:g} s")
        document, clocks = _query(endpoint.url, query, access, tls, timeout_s=left)
        warnings = [f"it warns: {shortened(one)}" for one in _texts(document.get("warnings"))]
        partial = partial or bool(warnings)
        notes += [note for note in warnings if note not in notes]
        values += _values(document.get("data"), clocks)
        if abs(clocks.apart_s) > _APART_S and (note := f"its clock is {clocks.apart_s:+.0f} s from ours") not in notes:
            notes.append(note)
    if (apart := falls_apart(values, endpoint.query_match)) is not None:
        raise NotHeardError(apart.text, apart.next_step(endpoint.query_match))
    if not values:
        narrowed = " among those that --query-match leaves" if endpoint.query_match else ""
        notes.append(f"it has none of the metrics that are looked for{narrowed}")
    return Found(tuple(values), tuple(notes), partial)


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The server's clock, by which samples are old, and this machine's, by which ages are told."""

    server_s: float
    ours_s: float

    @property
    def apart_s(self) -> float:
        return self.server_s - self.ours_s


def _query(
    url: str, query: str, access: Access, tls: ssl.SSLContext, *, timeout_s: float
) -> tuple[Mapping[str, Any], _Clocks]:
    parts = urlsplit(url)
    where = parts._replace(path=f"{parts.path.rstrip('/')}/api/v1/query").geturl()
    form = {"query": query, "timeout": f"{max(1, int(timeout_s))}s"}
    headers = {"Accept": "application/json"}
    answer = ask(
        Question("POST", where, headers, form=form), access, tls, timeout_s=timeout_s, accepted=_ERROR_STATUSES
    )
    if answer.status == 404 and not answer.content.lstrip().startswith(b"{"):
        raise NotHeardError("it has no query API under this address (HTTP 404)")
    document = _document(answer)
    if document.get("status") != "success" or answer.status != 200:
        kind, text = shortened(document.get("errorType", "error")), shortened(document.get("error", "no reason given"))
        raise NotHeardError(f"it cannot answer the query: {kind}: {text}")
    ours_s = clock_s()
    return document, _Clocks(ours_s if answer.date_s is None else answer.date_s, ours_s)


def _document(answer: Answer) -> Mapping[str, Any]:
    try:
        document = read_json(answer.content, "that of Prometheus' query API")
    except NotHeardError:
        if answer.status == 200:
            raise
        raise NotHeardError(f"it answers HTTP {answer.status}") from None
    if not isinstance(document, dict) or "status" not in document:
        raise NotHeardError("its answer is not that of Prometheus' query API")
    return document


def _texts(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _values(data: Any, clocks: _Clocks) -> Iterator[Value]:
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list) or data.get("resultType") not in ("matrix", "vector"):
        raise NotHeardError("its answer holds no series")
    for series in result:
        labels = series.get("metric") if isinstance(series, dict) else None
        if not isinstance(labels, dict):
            raise NotHeardError("a series of its answer has no labels")
        known = recognize(str(labels.get("__name__", "")), {str(k): str(v) for k, v in labels.items()})
        points = _points(series)
        if known is None or not points:
            continue
        if data["resultType"] == "vector":  # carries the time of the question, and not that of the scrape
            said = {str(key): str(one) for key, one in labels.items()}
            yield Value(
                known.metric, points[-1][1], said.get("__name__", ""), said, attribute_said=known.attribute_said
            )
        else:
            yield _value(known, labels, points, clocks)


def _points(series: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Time in seconds and value, oldest first; what is no number is left out."""
    raw = series.get("values") if "values" in series else [series.get("value")]
    points = []
    for one in raw if isinstance(raw, list) else []:
        try:
            at, value = float(one[0]), float(one[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            continue
        if abs(at) < float("inf") and abs(value) < float("inf"):
            points.append((at, value))
    return sorted(points)


def _value(known: Recognized, labels: Mapping[str, Any], points: list[tuple[float, float]], clocks: _Clocks) -> Value:
    at, value = points[-1]
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    # A scrape that failed once is no reason to give a process up.
    patience_s = 2.5 * max(gaps) + 5 if gaps else _OLD_WITHOUT_A_GAP_S
    # A counter that fell began anew with its process.
    rises = [max(0.0, b[1] - a[1]) if b[1] >= a[1] else b[1] for a, b in pairwise(points)]
    return Value(
        known.metric,
        value,
        str(labels.get("__name__", "")),
        {str(key): str(one) for key, one in labels.items()},
        int((at - clocks.apart_s) * 1000),
        old=clocks.server_s - at > patience_s,
        attribute_said=known.attribute_said,
        increase=sum(rises) if gaps and known.metric.attribute is Attribute.COUNT else None,
    )


# Which cluster: figures of two are never added up. One server often has several. Where controllers are among the
# processes, two of them say that they are the active one; where there are only brokers, nothing but labels tells.


JOB = "job"
_OF_CLUSTERS = re.compile(r".*cluster.*|.*namespace.*|env|environment|stage|tenant|kafka", re.IGNORECASE)
"""Labels whose values name clusters, or what clusters are in: a name that comes in two namespaces is two clusters."""
_CHOSEN = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=~\s*"')
_SAFE = re.compile(r"[A-Za-z0-9_/ -]+")
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Apart:
    """A label by which the processes of a server fall apart.

    Args:
        processes: each of its values, empty where a process lacks the label, and how many processes have it; sorted.
    """

    label: str
    processes: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """What is the matter, in words."""
        shown = [
            f'{self.label}="{shortened(value)}" ({count} {agree(count, "process", "processes")})'
            for value, count in self.processes
        ]
        more = len(shown) - _MOST_SHOWN
        listed = ", ".join(shown[:_MOST_SHOWN]) + (f", and {more} more" if more > 0 else "")
        if self.label == JOB:
            return f"its brokers are scraped by several jobs, which may be those of several clusters: {listed}"
        return f"it has series of several clusters, and which one is meant was not said: {listed}"

    def next_step(self, match: str | None) -> str:
        """The options that say which cluster is meant, or that all of them are one.

        Args:
            match: the matchers that were given.
        """
        values = [value for value, _ in self.processes]
        whole = "|".join(values) if all(_SAFE.fullmatch(value) for value in values) else ".*"
        return (
            f"say which one: {self._option(match, '=', next(filter(None, values)))};"
            f" or that they are one: {self._option(match, '=~', whole)}"
        )

    def _option(self, match: str | None, operator: str, value: str) -> str:
        before = "" if match is None else f"{match},"
        return f"--query-match {shlex.quote(f'{before}{self.label}{operator}{json.dumps(value)}')}"


def falls_apart(values: Iterable[Value], match: str | None) -> Apart | None:
    """The label by which these series are several clusters'; None where nothing says that they are.

    A label that ``match`` has with ``=~`` tells no clusters apart: somebody named all of its values on purpose. Neither
    does one that only repeats what such a label says. Series that ended are not looked at: their cluster may be gone.
    """
    fresh = [one for one in values if not one.old]
    meant = _CHOSEN.findall(match or "")
    # Metrics that no Kafka has are kelr's own exporter's, which need not live where the brokers do.
    for those in ([one for one in fresh if one.metric.shipped == shipped] for shipped in (True, False)):
        labels = {label for one in those for label in one.labels if _OF_CLUSTERS.fullmatch(label)}.difference(meant)
        for label in sorted(labels, key=_plainest):
            # A sum that a rule recorded has neither the label nor an instance.
            told = [one for one in those if label in one.labels or one.labels.get("instance")]
            if _differs(label, told, meant):
                return _apart(label, told)
    brokers = [one for one in fresh if one.metric.scope is MetricScope.BROKER and one.labels.get("instance")]
    if JOB not in meant and _differs(JOB, brokers, meant) and _one_job_each(brokers):
        return _apart(JOB, brokers)
    return None


def _plainest(label: str) -> tuple[bool, int, str]:
    """Those that say cluster first, and of these the shortest."""
    return "cluster" not in label.lower(), len(label), label


def _differs(label: str, values: Sequence[Value], meant: Sequence[str]) -> bool:
    """Whether it has several values where the labels that somebody chose have one."""
    groups: dict[tuple[str, ...], set[str]] = {}
    for one in values:
        groups.setdefault(tuple(one.labels.get(name, "") for name in meant), set()).add(one.labels.get(label, ""))
    return any(len(found) > 1 for found in groups.values())


def _one_job_each(values: Sequence[Value]) -> bool:
    """Whether each instance has one job: a process that two jobs scrape is one process."""
    found: dict[str, set[str]] = {}
    for one in values:
        found.setdefault(one.labels["instance"], set()).add(one.labels.get(JOB, ""))
    return all(len(jobs) == 1 for jobs in found.values())


def _apart(label: str, values: Sequence[Value]) -> Apart:
    processes: dict[str, set[str]] = {}
    for one in values:
        process = one.labels.get("instance") or str(sorted(one.labels.items()))
        processes.setdefault(one.labels.get(label, ""), set()).add(process)
    return Apart(label, tuple(sorted((value, len(found)) for value, found in processes.items())))
