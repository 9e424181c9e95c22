"""A Prometheus text endpoint: jmx_exporter, the metrics reporters, or another exporter beside one Kafka process."""

from __future__ import annotations

import ssl

from kelr.metrics.access import Access
from kelr.metrics.asked import Endpoint, Found, Value
from kelr.metrics.catalog import recognize
from kelr.metrics.http import NotHeardError, Question, Trouble, ask
from kelr.metrics.text import Sample, read_text

_ACCEPT = "text/plain;version=0.0.4;q=1,*/*;q=0.1"


def read_endpoint(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, *, timeout_s: float) -> Found:
    """The known metrics that the endpoint serves.

    Raises:
        NotHeardError: it gives no usable answer.
    """
    answer = ask(Question("GET", endpoint.url, {"Accept": _ACCEPT}), access, tls, timeout_s=timeout_s)
    text = read_text(answer.content, open_metrics="openmetrics" in answer.content_type.lower())
    if not text.is_metrics:
        raise NotHeardError(Trouble.NOT_UNDERSTOOD, _not_metrics(answer.content, answer.content_type))
    values, strange = values_of(text.samples)
    notes = []
    if text.unreadable:
        notes.append(f"{text.unreadable:,} of its lines cannot be read, and are left out")
    if strange:
        notes.append(f"{strange:,} of its values are no numbers, and are left out")
    if text.cut_short:
        notes.append("its answer breaks off: something may be missing")
    if not values:
        notes.append("it serves metrics, and none of those that are looked for")
    return Found(values, tuple(notes), partial=text.cut_short or text.unreadable > 0)


def values_of(samples: tuple[Sample, ...]) -> tuple[tuple[Value, ...], int]:
    """The known metrics among the samples, and how many of them hold no number."""
    values, strange = [], 0
    for sample in samples:
        known = recognize(sample.name, sample.labels)
        if known is None:
            continue
        if sample.value != sample.value or abs(sample.value) == float("inf"):
            strange += 1
            continue
        values.append(
            Value(
                known.metric,
                sample.value,
                sample.name,
                sample.labels,
                sample.at_ms,
                attribute_said=known.attribute_said,
            )
        )
    return tuple(values), strange


def _not_metrics(content: bytes, content_type: str) -> str:
    if not content.strip():
        return "its answer is empty"
    start = content.lstrip()[:200].lower()
    if start.startswith((b"<!doctype", b"<html")):
        return "it answers with a web page, not with metrics: a login page, or another path is meant"
    if start.startswith((b"{", b"[")):
        return "it answers with JSON, not with metrics: --jolokia or --prometheus may be meant"
    kind = content_type.split(";", 1)[0].strip()
    return f"its answer holds no metrics{f' ({kind})' if kind else ''}"
