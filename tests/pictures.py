"""The text in a picture of a terminal, as Rich and Textual draw them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_CELL = 12.2
"""How wide a character is: 20 pixels high, of a font 0.61 times as wide."""


def text_of(picture: str) -> str:
    """The lines of a terminal, put together again from where the pieces of text stand in its picture."""
    lines: dict[int, list[str]] = {}
    for piece in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        line = re.fullmatch(r"url\(#.*-line-(\d+)\)", piece.get("clip-path", ""))
        if line is None:
            continue
        row = lines.setdefault(int(line[1]), [])
        column = round(float(piece.get("x", "0")) / _CELL)
        row += [" "] * (column - len(row))
        row[column:] = (piece.text or "").replace("\xa0", " ")
    rows = ["".join(lines.get(number, [])).rstrip() for number in range(max(lines, default=0) + 1)]
    return "\n".join(rows).rstrip("\n") + "\n"
