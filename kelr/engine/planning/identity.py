"""The name of a plan: a hash over its content, so that a plan that was changed has another name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from kelr.model import Plan
from kelr.model.plan import SPARSE

ID_DIGITS = 12


def plan_digest(plan: Plan) -> str:
    """SHA-256 over the plan's canonical content, as 64 hex digits."""
    return digest_of(content_of(plan))


def plan_id(plan: Plan) -> str:
    """The first 12 hex digits of `plan_digest`: how people and journals name a plan."""
    return plan_digest(plan)[:ID_DIGITS]


def digest_of(content: Any) -> str:
    """SHA-256 over a `content_of`, as 64 hex digits."""
    # Sorted keys, no blanks, ASCII alone: the same value gives the same bytes everywhere.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def content_of(value: Any, lacks: AbstractSet[str] = frozenset()) -> Any:
    """A value of the model as JSON has it: objects for values, lists for tuples. (`dataclasses.asdict` copies each
    leaf, which takes ten times as long.)

    Args:
        lacks: `Plan.lacks`, where the value is of such a plan; a plan brings its own.
    """
    if not is_dataclass(value):
        return [content_of(one, lacks) for one in value] if isinstance(value, tuple) else value
    if isinstance(value, Plan):
        lacks = frozenset(value.lacks)
    kind: Any = type(value)
    return {
        name: held if isinstance(held, str) else content_of(held, lacks)
        for name, default, sparse, in_full in _fields_of(kind)
        if (held := getattr(value, name)) != default or not (sparse or in_full in lacks)
    }


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, Any, bool, str], ...]:
    """The fields that content has, each with its default, whether it is left out where it has that, and its name in
    `Plan.lacks`."""
    return tuple(
        (one.name, one.default, bool(one.metadata.get(SPARSE)), f"{kind.__name__}.{one.name}")
        for one in fields(kind)
        if one.name != "lacks"
    )
