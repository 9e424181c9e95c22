"""Jolokia: JMX over HTTP. One POST asks for many MBeans, and each has a status of its own behind an HTTP 200.

Source: jolokia.org, "Jolokia Protocol", read requests in bulk.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kelr.metrics.access import Access
from kelr.metrics.asked import Endpoint, Found, Value
from kelr.metrics.catalog import METRICS, Attribute, Metric, recognize_mbean
from kelr.metrics.http import NotHeardError, Question, ask, number, read_json, shortened

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
        gathered.values.extend(_read(told, entry.get("value"), _at_ms(entry.get("timestamp")), gathered))
    elif status == _NOT_THERE:
        gathered.missing += 1
    elif status == _FORBIDDEN:
        gathered.forbidden += 1
    else:
        said = shortened(entry.get("error_type") or entry.get("error") or f"status {status}")
        gathered.failed[said] = gathered.failed.get(said, 0) + 1


def _read(request: Mapping[str, Any], value: Any, at_ms: int | None, gathered: _Gathered) -> Iterator[Value]:
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
