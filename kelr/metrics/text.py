"""Reads the few series that matter out of Prometheus' text format, and of OpenMetrics.

Kafka's exporters write tens of thousands of lines, of which some thirty matter, so only lines whose name begins like
one of those are looked at. A line of those that cannot be read is counted and left out; nothing is guessed from it.

Source: prometheus.io, "Exposition formats"; OpenMetrics 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kelr.metrics.catalog import PREFIXES

_LONGEST_LINE = 65_536
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[Ii]nf|NaN"
_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*")
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*')
_REST = re.compile(rf"[ \t]+({_NUMBER})(?:[ \t]+({_NUMBER}))?[ \t]*(?:#[ \t].*)?$")
_BARE_REST = re.compile(rf"({_NUMBER})(?:[ \t]+({_NUMBER}))?[ \t]*(?:#[ \t].*)?$")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_LOOKED_AT = 200
"""Lines among which there has to be a series, or the answer is no metrics at all."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series' value."""

    name: str
    labels: Mapping[str, str]
    value: float
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Exposition:
    """What a text answer held."""

    samples: tuple[Sample, ...]
    unreadable: int = 0
    """Lines that began like a known metric and could not be read."""
    is_metrics: bool = True
    """False where nothing in it looks like a series, such as in a login page."""
    cut_short: bool = False
    """The last line has no end, or OpenMetrics' end mark is missing: the answer broke off."""


@dataclass
class _Reading:
    open_metrics: bool
    samples: list[Sample] = field(default_factory=list)
    unreadable: int = 0
    looked_at: int = 0
    like_series: int = 0

    def line(self, line: bytes) -> None:
        if not line or line.startswith(b"#") or line.isspace():
            return
        wanted = line.lower().startswith(_PREFIXES)
        if not wanted and (self.like_series or self.looked_at > _LOOKED_AT):
            return
        self.looked_at += 1
        sample = None if len(line) > _LONGEST_LINE else parse_line(_text(line), open_metrics=self.open_metrics)
        self.like_series += sample is not None
        if wanted and sample is None:
            self.unreadable += 1
        elif wanted and sample is not None:
            self.samples.append(sample)


_PREFIXES = tuple(prefix.encode() for prefix in PREFIXES)


def read_text(content: bytes, *, open_metrics: bool = False) -> Exposition:
    """The series of `content` that may be known metrics.

    Args:
        open_metrics: by its content type it is OpenMetrics, whose timestamps are seconds and which has an end mark.
    """
    reading = _Reading(open_metrics)
    last = b""
    for line in _lines(content):
        reading.line(line)
        last = line if line.strip() else last
    cut = last != b"# EOF" if open_metrics else bool(content) and not content.endswith(b"\n")
    return Exposition(tuple(reading.samples), reading.unreadable, reading.like_series > 0, cut)


def _lines(content: bytes) -> Iterator[bytes]:
    """Line by line, without a second copy of the whole."""
    start, size = 0, len(content)
    while start < size:
        end = content.find(b"\n", start)
        end = size if end < 0 else end
        yield content[start:end].rstrip(b"\r")
        start = end + 1


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def parse_line(line: str, *, open_metrics: bool = False) -> Sample | None:
    """One series; None where the line is none."""
    head = _NAME.match(line)
    if head is None:
        return None
    at, labels = head.end(), dict[str, str]()
    if at < len(line) and line[at] == "{":
        after = _labels(line, at + 1, labels)
        if after is None:
            return None
        rest = _REST.match(line, after) or _BARE_REST.match(line, after)
    else:
        # The name's pattern takes the space behind it.
        rest = _BARE_REST.match(line, at) if at > head.end(1) else None
    if rest is None:
        return None
    stamp = rest.group(2)
    return Sample(head.group(1), labels, float(rest.group(1)), _milliseconds(stamp, open_metrics=open_metrics))


def _labels(line: str, at: int, labels: dict[str, str]) -> int | None:
    """Read labels up to the brace that closes them; the place behind it, or None where they are garbled."""
    while True:
        if (found := _LABEL.match(line, at)) is not None:
            name = found.group(1)
            if name in labels:
                return None
            labels[name] = _ESCAPE.sub(lambda one: _ESCAPED.get(one[1], one[0]), found.group(2))
            at = found.end()
            if at < len(line) and line[at] == ",":
                at += 1
                continue
        while at < len(line) and line[at] in " \t":
            at += 1
        return at + 1 if at < len(line) and line[at] == "}" else None


def _milliseconds(stamp: str | None, *, open_metrics: bool) -> int | None:
    if stamp is None:
        return None
    value = float(stamp) * (1000 if open_metrics else 1)
    # Not a number, or not a time.
    return int(value) if 0 <= value < 1e15 else None
