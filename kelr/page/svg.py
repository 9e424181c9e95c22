"""Drawings that stand in a page itself: no script, colours from the page's style sheet (``class``).

Every function gives a piece of SVG; texts are made harmless here, so that callers hand down what they have.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kelr.page.words import harmless

WIDTH = 520
"""Of a drawing: at this width its letters have the size of the page's, on a phone three quarters of that."""


def drawing(id: str, title: str, about: str, height: float, parts: Iterable[str], *, width: float = WIDTH) -> str:
    """A whole drawing. What it shows is said in its title and description.

    Args:
        id: of the drawing within its page; letters, digits and ``-``.
    """
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="{id}-title {id}-about"'
        f' xmlns="http://www.w3.org/2000/svg"><title id="{id}-title">{_safe(title)}</title>'
        f'<desc id="{id}-about">{_safe(about)}</desc>{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, kind: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{_safe(words)}</text>'


def rect(x: float, y: float, wide: float, tall: float, kind: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" class="{kind}"/>'


def line(x: float, y: float, x2: float, y2: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="axis"/>'


def circle(x: float, y: float, radius: float, kind: str, words: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="{kind}"><title>{_safe(words)}</title></circle>'


def _safe(words: str) -> str:
    return escape(harmless(words))
