"""JSON that people read and edit: what fits on a line stands on one."""

from __future__ import annotations

import json
from typing import Any

_WIDTH = 110
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def pretty(value: Any) -> str:
    """The value as JSON; objects and lists that do not fit on a line take one for each member."""
    return _rendered(value, 0)[0]


def _rendered(value: Any, indent: int) -> tuple[str, bool]:
    """The text, and whether it stands on one line."""
    if not value or not isinstance(value, (dict, list)):
        return _encode(value), True
    parts = [_rendered(held, indent + 2) for held in (value.values() if isinstance(value, dict) else value)]
    members = [text for text, _ in parts]
    if isinstance(value, dict):
        members = [f"{_encode(key)}: {text}" for key, text in zip(value, members, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if all(flat for _, flat in parts) and indent + sum(map(len, members)) + 2 * len(members) <= _WIDTH:
        return f"{opening}{', '.join(members)}{closing}", True
    inner = " " * (indent + 2)
    return f"{opening}\n{inner}" + f",\n{inner}".join(members) + f"\n{' ' * indent}{closing}", False
