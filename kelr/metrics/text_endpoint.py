"""A Prometheus text endpoint: jmx_exporter, the metrics reporters, or another exporter beside one Kafka process.

Kafka's exporters write tens of thousands of lines, of which some thirty matter, so only lines whose name begins like
one of those are parsed, each by itself: one that cannot be read is counted and left out, and nothing is guessed of it.
"""

from __future__ import annotations

import io
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kelr.metrics.access import Access
from kelr.metrics.asked import Endpoint, Found, Value
from kelr.metrics.catalog import PREFIXES, recognize
from kelr.metrics.http import NotHeardError, Question, ask

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_ACCEPT = "text/plain;version=0.0.4;q=1,*/*;q=0.1"
_PREFIXES = tuple(prefix.encode() for prefix in PREFIXES)
_LONGEST_LINE = 16_384
_LOOKED_AT = 200
"""Lines among which there has to be a series, or the answer is no metrics at all."""
_LATEST_S = 1e12
"""A timestamp beyond that is none."""


@dataclass
class Exposition:
    """What a text answer holds."""

    samples: list[Sample] = field(default_factory=list)
    """Of the series that may be known metrics; timestamps are in seconds."""
    unreadable: int = 0
    """Lines that begin like a known metric and cannot be read."""
    is_metrics: bool = False
    """False where nothing in it looks like a series, such as in a login page."""
    cut_short: bool = False
    """The last line has no end, or OpenMetrics' end mark is missing: the answer broke off."""


def read_endpoint(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, *, timeout_s: float) -> Found:
    """The known metrics that the endpoint serves.

    Raises:
        NotHeardError: it gives no usable answer.
    """
    answer = ask(Question("GET", endpoint.url, {"Accept": _ACCEPT}), access, tls, timeout_s=timeout_s)
    text = read_text(answer.content, open_metrics="openmetrics" in answer.content_type.lower())
    if not text.is_metrics:
        raise NotHeardError(_not_metrics(answer.content, answer.content_type))
    values, strange = _values_of(text.samples)
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


def read_text(content: bytes, *, open_metrics: bool = False) -> Exposition:
    """The series of `content` that may be known metrics.

    Args:
        open_metrics: by its content type it is OpenMetrics, whose timestamps are seconds and which has an end mark.
    """
    end = content.rstrip().rpartition(b"\n")[2]
    cut = end != b"# EOF" if open_metrics else bool(content) and not content.endswith(b"\n")
    read, looked_at = Exposition(cut_short=cut), 0
    for line in io.BytesIO(content):  # which copies no more than a line
        wanted = line.lower().startswith(_PREFIXES)
        if line.startswith(b"#") or line.isspace() or (not wanted and (read.is_metrics or looked_at > _LOOKED_AT)):
            continue
        looked_at += 1
        sample = (
            None if len(line) > _LONGEST_LINE else parse_line(line.decode(errors="replace"), open_metrics=open_metrics)
        )
        read.is_metrics |= sample is not None
        if wanted and sample is None:
            read.unreadable += 1
        elif wanted and sample is not None:
            read.samples.append(sample)
    return read


def parse_line(line: str, *, open_metrics: bool = False) -> Sample | None:
    """One series; None where the line is none."""
    from prometheus_client import parser  # noqa: PLC0415 - only what is asked for
    from prometheus_client.openmetrics import parser as open_parser  # noqa: PLC0415

    try:
        if open_metrics:
            families = open_parser.text_string_to_metric_families(f"{line.strip()}\n# EOF\n")  # type: ignore[no-untyped-call]
        else:
            families = parser.text_string_to_metric_families(line)
        return next((sample for family in families for sample in family.samples), None)
    except (ValueError, IndexError, OverflowError):
        return None


def _values_of(samples: list[Sample]) -> tuple[tuple[Value, ...], int]:
    """The known metrics among the samples, and how many of them hold no number."""
    values, strange = [], 0
    for sample in samples:
        known = recognize(sample.name, sample.labels)
        if known is None:
            continue
        if not abs(sample.value) < float("inf"):
            strange += 1
            continue
        at_ms = _milliseconds(sample)
        said = known.attribute_said
        values.append(Value(known.metric, sample.value, sample.name, sample.labels, at_ms, attribute_said=said))
    return tuple(values), strange


def _milliseconds(sample: Sample) -> int | None:
    at_s = None if sample.timestamp is None else float(sample.timestamp)
    return round(at_s * 1000) if at_s is not None and 0 <= at_s < _LATEST_S else None


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
