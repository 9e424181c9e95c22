"""JSON from the network, read with care."""

from __future__ import annotations

import json
from typing import Any

from kelr.metrics.http import NotHeardError, Trouble


def read_json(content: bytes, what: str) -> Any:
    """A document.

    Raises:
        NotHeardError: it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        start = content.lstrip()[:1]
        page = " but a web page" if start == b"<" else ""
        raise NotHeardError(Trouble.NOT_UNDERSTOOD, f"its answer is not {what}{page}") from error


def number(value: Any) -> float | None:
    """A finite number; None for all else, truth values too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None


def shortened(text: Any) -> str:
    """What the other side says, in one line of bearable length."""
    words = " ".join(str(text).split())
    return words if len(words) <= 200 else words[:200] + "..."
