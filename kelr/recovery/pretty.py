"""JSON that people read and edit: what fits on a line stands on one."""

from __future__ import annotations

import json
from typing import Any

_WIDTH = 120


def pretty(value: Any, indent: int = 0) -> str:
    """The value as JSON; objects and lists that do not fit on a line take one for each member."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value or indent + len(flat) <= _WIDTH:
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        keys = ((json.dumps(key, ensure_ascii=False) + ": ", held) for key, held in value.items())
        members = [f"{key}{pretty(held, indent + 2)}" for key, held in keys]
        opening, closing = "{", "}"
    else:
        members = [pretty(held, indent + 2) for held in value]
        opening, closing = "[", "]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(members) + f"\n{' ' * indent}{closing}"
