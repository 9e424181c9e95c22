"""A plan, and results, as plain JSON values inside a journal.

A plan file (`kelr.recovery.plan_file`) is made for people and may be edited; a journal is kelr's own, and keeps what
was carried out exactly as it was.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kelr.model.plan import Applied, Plan


def plan_record(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values."""
    return _plans().dump_python(plan, mode="json")  # type: ignore[no-any-return]


def plan_of_record(record: Any) -> Plan:
    """The plan again. Raises ValueError where it is none."""
    return _plans().validate_python(record)  # type: ignore[no-any-return]


def applied_record(applied: Applied) -> dict[str, Any]:
    """A result as JSON values."""
    return _results().dump_python(applied, mode="json")  # type: ignore[no-any-return]


def applied_of_record(record: Any) -> Applied:
    """The result again. Raises ValueError where it is none."""
    return _results().validate_python(record)  # type: ignore[no-any-return]


@cache
def _plans() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 - costs more than most commands take

    return TypeAdapter(Plan)


@cache
def _results() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 - costs more than most commands take

    return TypeAdapter(Applied)
