"""Values as the fields of a document."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def as_fields(value: Any) -> Any:
    """A dataclass as `dataclasses.asdict` gives it: names and values, those within it too.

    What is no dataclass, tuple, list or dictionary is taken as it is and not copied, as values here never change. That
    makes it several times as quick, which thousands of decisions feel.
    """
    kind: type = type(value)
    names = _names(kind)
    if names is not None:
        return {name: as_fields(getattr(value, name)) for name in names}
    if kind is tuple or kind is list:
        return kind([as_fields(one) for one in value]) if value else value
    if kind is dict:
        return {as_fields(key): as_fields(one) for key, one in value.items()}
    return value


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None of anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
