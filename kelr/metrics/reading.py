"""Asks many endpoints at once, some at a time, and comes back in time whatever they do."""

from __future__ import annotations

import io
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from kelr.metrics.catalog import METRICS, PREFIXES, Attribute, Metric, recognize, recognize_mbean
from kelr.metrics.endpoints import (
    Access,
    Endpoint,
    Found,
    Kind,
    NotHeardError,
    Question,
    Value,
    ask,
    number,
    read_json,
    shortened,
)
from kelr.model.measured import AskedEndpoint

if TYPE_CHECKING:
    import ssl

    from prometheus_client.samples import Sample

    from kelr.metrics.endpoints import Access

# The endpoints of single processes: Prometheus text, and Jolokia.


# A Prometheus text endpoint: jmx_exporter, the metrics reporters, or another exporter beside one Kafka process.
#
# Kafka's exporters write tens of thousands of lines, of which some thirty matter, so only lines whose name begins like
# one of those are parsed, each by itself: one that cannot be read is counted and left out; nothing is guessed of it.


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


# Jolokia: JMX over HTTP. One POST asks for many MBeans, and each has a status of its own behind an HTTP 200.
#
# Source: jolokia.org, "Jolokia Protocol", read requests in bulk.


_KEY = re.compile(r'([^=,:*?"]+)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)')
_NOT_THERE = 404
_FORBIDDEN = 403


def requests() -> list[Mapping[str, str]]:
    """What is asked: an attribute of each gauge, each meter whole, and a pattern where there are many of a kind."""
    asked: dict[str, Mapping[str, str]] = {}
    for metric in METRICS:
        many = metric.of_each_partition or metric.key == "logs_to_recover"
        one: dict[str, str] = {"type": "read", "mbean": f"{metric.mbean},*" if many else metric.mbean}
        if metric.attribute is Attribute.VALUE and not many:
            one["attribute"] = "Value"
        asked.setdefault(metric.mbean, one)
    return list(asked.values())


@dataclass
class _Gathered:
    values: list[Value] = field(default_factory=list)
    missing: int = 0
    forbidden: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    """Other errors of single requests, and how often."""
    strange: int = 0
    """Values of known metrics that are no numbers."""


def ask_jolokia(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, *, timeout_s: float) -> Found:
    """The known metrics that the agent can see.

    Raises:
        NotHeardError: it gives no usable answer.
    """
    asked = requests()
    question = Question("POST", endpoint.url, {"Accept": "application/json"}, json=asked)
    answer = ask(question, access, tls, timeout_s=timeout_s)
    document = read_json(answer.content, "that of a Jolokia agent")
    if isinstance(document, dict) and "status" in document:
        # One error for the whole request, such as of an agent that refuses POST.
        said = shortened(document.get("error", "no reason given"))
        raise NotHeardError(f"the agent answers with status {shortened(document['status'])}: {said}")
    if not isinstance(document, list):
        raise NotHeardError("its answer is not that of a Jolokia agent")
    gathered = _Gathered()
    for number_, entry in enumerate(document):
        _gather(entry, asked[number_] if number_ < len(asked) else {}, gathered)
    short = len(document) < len(asked)
    return Found(tuple(gathered.values), tuple(_notes(gathered, short=short)), partial=_partial(gathered) or short)


def _gather(entry: Any, asked: Mapping[str, str], gathered: _Gathered) -> None:
    if not isinstance(entry, dict):
        gathered.failed["an entry of its answer is no object"] = 1
        return
    status = entry.get("status")
    if status == 200:
        request = entry.get("request")
        told = request if isinstance(request, dict) else asked
        gathered.values.extend(_of_entry(told, entry.get("value"), _at_ms(entry.get("timestamp")), gathered))
    elif status == _NOT_THERE:
        gathered.missing += 1
    elif status == _FORBIDDEN:
        gathered.forbidden += 1
    else:
        said = shortened(entry.get("error_type") or entry.get("error") or f"status {status}")
        gathered.failed[said] = gathered.failed.get(said, 0) + 1


def _of_entry(request: Mapping[str, Any], value: Any, at_ms: int | None, gathered: _Gathered) -> Iterator[Value]:
    """The values of one entry, whichever of its three shapes it has: bare, by attribute, or by MBean and attribute."""
    mbean = str(request.get("mbean", ""))
    attribute = request.get("attribute")
    if isinstance(value, dict) and _is_pattern(mbean):
        for name, attributes in value.items():
            yield from _of_mbean(str(name), attributes, at_ms, gathered)
    elif isinstance(value, dict):
        yield from _of_mbean(mbean, value, at_ms, gathered)
    elif isinstance(attribute, str):
        yield from _of_mbean(mbean, {attribute: value}, at_ms, gathered)
    else:
        gathered.strange += 1


def _is_pattern(mbean: str) -> bool:
    return "*" in mbean or "?" in mbean


def _of_mbean(mbean: str, attributes: Any, at_ms: int | None, gathered: _Gathered) -> Iterator[Value]:
    domain, keys = parse_mbean(mbean)
    for attribute, value in attributes.items() if isinstance(attributes, dict) else ():
        metric: Metric | None = recognize_mbean(domain, keys, str(attribute))
        if metric is None:
            continue
        found = number(value)
        if found is None:
            gathered.strange += 1
        else:
            yield Value(metric, found, mbean, keys, at_ms)


def parse_mbean(name: str) -> tuple[str, Mapping[str, str]]:
    """Domain and keys of an object name; its keys come in any order."""
    domain, _, rest = name.partition(":")
    return domain, {key.strip(): _unquoted(value) for key, value in _KEY.findall(rest)}


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def _at_ms(stamp: Any) -> int | None:
    found = number(stamp)
    return int(found * 1000) if found is not None and 0 < found < 1e11 else None


def _partial(gathered: _Gathered) -> bool:
    return bool(gathered.forbidden or gathered.failed or gathered.strange)


def _notes(gathered: _Gathered, *, short: bool) -> Sequence[str]:
    notes = []
    if gathered.forbidden:
        notes.append(f"its policy forbids {gathered.forbidden} of the reads")
    notes += [f"{count} of the reads failed: {text}" for text, count in sorted(gathered.failed.items())]
    if gathered.strange:
        notes.append(f"{gathered.strange} of its values are no numbers, and are left out")
    if short:
        notes.append("it answered fewer reads than it was asked for")
    if not gathered.values:
        notes.append("it has none of the MBeans that are looked for: is it a Kafka process?")
    return notes


AT_ONCE = 8
"""Endpoints that are asked at the same time."""
_MOST = 2.0**53
"""A count beyond that is none, and could not be told to the unit."""
_GRACE_S = 2.0
"""How long beyond its timeout a request may take to notice that, before it is left to itself."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One endpoint, what it said, and how that went."""

    endpoint: Endpoint
    asked: AskedEndpoint
    found: Found = field(default_factory=lambda: Found(()))
    next_step: str | None = None
    """What would make it usable, where it was not heard and that is known."""


def read_all(
    endpoints: Sequence[Endpoint], access: Access, *, timeout_s: float, at_once: int = AT_ONCE
) -> tuple[Heard, ...]:
    """Ask all endpoints; one that fails is a value among the others, in their order.

    A request that is held up in spite of all timeouts (headers that come a byte at a time) is left behind in its
    thread, which does not keep the process from ending.

    Raises:
        BadInputError: the files for TLS cannot be used.
    """
    tls = access.tls()
    waiting: Queue[tuple[int, Endpoint]] = Queue()
    done: Queue[tuple[int, Heard]] = Queue()
    for job in enumerate(endpoints):
        waiting.put(job)
    for _ in range(min(at_once, len(endpoints))):
        threading.Thread(
            target=_work, args=(waiting, done, access, tls, timeout_s), name="kelr-metrics", daemon=True
        ).start()
    heard: dict[int, Heard] = {}
    deadline = time.monotonic() + longest_s(len(endpoints), timeout_s, at_once=at_once)
    while len(heard) < len(endpoints):
        try:
            number, one = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        heard[number] = one
    late = NotHeardError(f"no answer within {timeout_s:g} s")
    return tuple(heard.get(number) or _failed(one, late, timeout_s) for number, one in enumerate(endpoints))


def longest_s(endpoints: int, timeout_s: float, *, at_once: int = AT_ONCE) -> float:
    """How long `read_all` may take, in seconds: those that wait for the cap of others need no more than those do."""
    return -(-endpoints // at_once) * (timeout_s + _GRACE_S)


def _work(
    waiting: Queue[tuple[int, Endpoint]],
    done: Queue[tuple[int, Heard]],
    access: Access,
    tls: ssl.SSLContext,
    timeout_s: float,
) -> None:
    while True:
        try:
            number, endpoint = waiting.get_nowait()
        except Empty:
            return
        done.put((number, _read(endpoint, access, tls, timeout_s)))


def _read(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, timeout_s: float) -> Heard:
    began = time.monotonic()
    try:
        found = _counts(_reader(endpoint.kind)(endpoint, access, tls, timeout_s=timeout_s))
    except NotHeardError as error:
        told = NotHeardError(access.hidden(error.text), error.next_step)
        return _failed(endpoint, told, time.monotonic() - began)
    except Exception as error:  # a defect, in a thread that would swallow it: better a row than a hang
        defect = NotHeardError(f"its answer cannot be read ({type(error).__name__})")
        return _failed(endpoint, defect, time.monotonic() - began)
    took_s = time.monotonic() - began
    notes = tuple(map(access.hidden, found.notes))
    asked = AskedEndpoint(endpoint.shown, endpoint.kind, True, took_s, len(found.values), None, notes)
    return Heard(endpoint, asked, found)


def _counts(found: Found) -> Found:
    """What was found, without values that can be no counts."""
    kept = tuple(one for one in found.values if abs(one.value) <= _MOST and (one.increase or 0.0) <= _MOST)
    left_out = len(found.values) - len(kept)
    if not left_out:
        return found
    note = f"{left_out:,} of its values are too large for any count, and are left out"
    return replace(found, values=kept, notes=(*found.notes, note), partial=True)


def _reader(kind: Kind) -> Callable[..., Found]:
    if kind is Kind.SERVER:
        from kelr.metrics.prometheus_server import query_server  # noqa: PLC0415 - only what is asked for

        return query_server
    return ask_jolokia if kind is Kind.JOLOKIA else read_endpoint


def _failed(endpoint: Endpoint, error: NotHeardError, took_s: float) -> Heard:
    asked = AskedEndpoint(endpoint.shown, endpoint.kind, False, took_s, problem=error.text)
    return Heard(endpoint, asked, next_step=error.next_step)
