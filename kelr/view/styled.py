"""Text with a meaning attached: what tables and explanations are made of before a terminal, or a pipe, gets it.

Styles are ANSI's base colours that read on a light and on a dark background; nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from unicodedata import combining, east_asian_width

from kelr.page.words import harmless


class Style(Enum):
    """What a piece of text means; the value is its SGR sequence."""

    PLAIN = ""
    HEADING = "1"
    GOOD = "32"
    NOTICE = "33"
    BAD = "1;31"
    QUIET = "2"
    COMMAND = "36"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text in one style. A table may break a cell between spans' words, never inside one."""

    text: str
    style: Style = Style.PLAIN


Text = Sequence[Span]
"""One line, or one cell, for a person."""


def plain(text: str) -> Text:
    """Text without a meaning of its own."""
    return (Span(text),)


def styled(text: str, style: Style) -> Text:
    return (Span(text, style),)


def joined(parts: Iterable[Span], separator: str = " ") -> Text:
    """The spans with a separator between them."""
    spans: list[Span] = []
    for part in parts:
        if spans:
            spans.append(Span(separator))
        spans.append(part)
    return spans


def cleaned(text: str) -> str:
    r"""Text that cannot drive a terminal: control and other unprintable characters shown as ``\x1b``, on one
    line.

    Racks, hosts and error texts come from the network or a file, so they may hold anything.
    """
    return harmless(text).replace("\n", "\\n")


def width_of(text: str) -> int:
    """How many terminal columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def written(text: Text, *, color: bool) -> str:
    """The text as it goes to the stream, control characters made harmless."""
    if not color:
        return "".join(cleaned(span.text) for span in text)
    return "".join(_colored(cleaned(span.text), span.style) for span in text)


def _colored(text: str, style: Style) -> str:
    return text if style is Style.PLAIN or not text else f"\x1b[{style.value}m{text}\x1b[0m"
