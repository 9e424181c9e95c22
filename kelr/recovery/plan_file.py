"""Plan files: one JSON document that people read and hand to `kelr recover apply`, unchanged.

The format, and what its hash protects from, is in docs/plans.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from kelr.durable import whole_file
from kelr.engine.planning import content_of, plan_digest
from kelr.errors import BadInputError, UsageError
from kelr.files import FILES, Files
from kelr.model import NotPlanned, Plan
from kelr.model.fields import matching
from kelr.model.plan import SPARSE
from kelr.recovery.json_file import STRICT, adapter, first_problem, read_json
from kelr.recovery.plan_checks import problems
from kelr.recovery.pretty import pretty
from kelr.recovery.times import from_iso, to_iso

FORMAT = "kelr-plan"
FORMAT_VERSION = 1
"""Whoever adds a field raises it, so that an older kelr never carries out half of what was planned. (Until the first
release of kelr version 1 may still grow by optional fields, which are `LATER`.)"""
MAX_PLAN_BYTES = 64 * 1024 * 1024
"""A longer plan is neither written nor read: it would be some 20,000 elections, which nobody reviews."""
_DIGITS = 12
_LONGEST_TEXT = 10_000
_LONGEST_PLACE = 300
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for line feed and tab, and those that turn the direction of what follows."""
LATER = {
    "Loss": {"gone_ranges", "lost_data", "may_have_lost", "min_isr", "contradictory"},
    "Alternative": {"start", "leader", "rescue"},
    "Advice": {"keep_down", "start", "stop", "stock"},
    "PlannedElection": {"against"},
    "NotPlanned": {"rescue", "keep_down", "stop", "stock", "alternatives", "then_designate"},
}
"""Fields that plans of older kelrs lack."""
_FORMER = {"signed_elections", "elections[].digest"}
"""Fields that plans of older kelrs have, and that say nothing any more."""
_FORMER_KEYS = {place.rpartition(".")[2] for place in _FORMER}
_PLAN_AGAIN = "make the plan again with kelr recover plan; what is left of this one is not used"


Hex12 = Annotated[str, matching(r"^[0-9a-f]{12}$")]
Hex64 = Annotated[str, matching(r"^[0-9a-f]{64}$")]


def write_plan(plan: Plan, path: Path, *, overwrite: bool = False, files: Files = FILES) -> None:
    """Save a plan, readable by its owner only.

    Raises:
        UsageError: the file exists and `overwrite` is not set, it cannot be written, or the plan is too large.
        BadInputError: the plan is at odds with itself, so that it could not be read again.
    """
    document = plan_document(plan)
    text = pretty(document).encode() + b"\n"
    if len(text) > MAX_PLAN_BYTES:
        raise UsageError(
            f"a plan of {len(plan.elections)} elections is larger than {MAX_PLAN_BYTES // 2**20} MiB",
            next_step="make several plans, each of some topics",
        )
    _saved(document, f"the plan for {path}")  # what cannot be read again is not written
    with whole_file(path, "plan", overwrite=overwrite, files=files) as file:
        file.write(text)


def read_plan(path: Path, files: Files = FILES) -> Plan:
    """Read a plan file.

    Raises:
        BadInputError: not a plan, garbled, of a newer version, at odds with itself, or not as kelr wrote it; names file
            and, where there is one, the place.
    """
    _, document = read_json(path, "plan", max_bytes=MAX_PLAN_BYTES, files=files)
    return _saved(document, str(path))


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as the object of a plan file, with its hash."""
    digest = plan_digest(plan)
    head = {"format": FORMAT, "version": FORMAT_VERSION, "plan_id": digest[:_DIGITS], "sha256": digest}
    return {**head, **_with_moments(content_of(plan))}


def _saved(document: Any, where: str) -> Plan:
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadInputError(
            f"{where} is not a plan: it does not say that it is one",
            next_step="name a file of kelr recover plan",
            code="not-a-plan",
        )
    version = document.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT_VERSION:
        raise BadInputError(
            f"{where} is of format version {version}, and this kelr reads up to {FORMAT_VERSION}",
            next_step="install a newer kelr",
            code="newer-format",
        )
    if document.get("version", FORMAT_VERSION) != FORMAT_VERSION:
        raise _garbled(where, f"version: not {FORMAT_VERSION}")
    try:
        line = adapter(_File).validate_json(json.dumps(_taken(document)))
        plan = _plan_of(line, document)
    except ValidationError as error:
        raise _garbled(where, first_problem(error, _File)) from error
    except ValueError as error:
        raise _garbled(where, str(error)) from error
    except RecursionError as error:
        raise _garbled(where, "nested deeper than any plan") from error
    if line.plan_id != line.sha256[:_DIGITS]:
        raise _garbled(where, "plan_id: not the beginning of sha256")
    problem = next(problems(plan), None)
    if problem is not None:
        raise _garbled(where, problem)
    if plan_digest(plan) != line.sha256:
        raise _garbled(where, "its content is not the one that kelr wrote")
    return plan


def _key(name: str) -> str:
    """A field's name in the file: moments, which end in ``_at_ms`` in the model, are ISO 8601 there."""
    return name.removesuffix("_ms") if name.endswith("_at_ms") else name


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(Plan):
    """The whole file: a plan, and what tells whether it is the one that kelr wrote."""

    __pydantic_config__ = {**STRICT, "alias_generator": _key}  # noqa: RUF012 - pydantic's

    format: Literal["kelr-plan"]
    version: Literal[1]
    plan_id: Hex12
    sha256: Hex64
    not_planned: tuple[NotPlanned, ...]
    lacks: tuple[str, ...] = field(default=(), init=False)


def _plan_of(file: _File, document: Any) -> Plan:
    """The plan of a file, with what it lacks. Raises ValueError where that is no field that came later."""
    plan = Plan(**{one.name: getattr(file, one.name) for one in fields(Plan)})
    given, lacks = set[str](), set[str]()
    for kind, name, place, is_given in _fields(plan, document):
        if not is_given and name not in LATER.get(kind, ()):
            raise ValueError(f"{place}: this field is missing")
        (given if is_given else lacks).add(f"{kind}.{name}")
    return replace(plan, lacks=tuple(sorted(lacks - given)))


def _fields(value: Any, held: Any, place: str = "") -> Iterator[tuple[str, str, str, bool]]:
    """Every field that a file should have: the kind of its value, its name, its place, and whether the file has it."""
    if isinstance(value, tuple):
        for at, (one, of_one) in enumerate(zip(value, held, strict=True)):
            yield from _fields(one, of_one, f"{place}[{at}]")
    elif is_dataclass(value):
        for one in fields(value):
            key = _key(one.name)
            here = f"{place}.{key}" if place else key
            if not one.metadata.get(SPARSE) and key != "lacks":
                yield type(value).__name__, key, here, key in held
            if key in held:
                yield from _fields(getattr(value, one.name), held[key], here)


def _taken(held: Any, place: str = "") -> Any:
    """A file's document with its moments in milliseconds, without what says nothing any more.

    Raises:
        ValueError: a moment that is none, or a text that is not to be shown on a terminal; names the place.
    """
    if isinstance(held, dict):
        within = f"{place}." if place else ""
        left = {key for key in held if key in _FORMER_KEYS and re.sub(r"\d+", "", within + key) in _FORMER}
        return {key: _taken(one, within + key) for key, one in held.items() if key not in left}
    if isinstance(held, list):
        return [_taken(one, f"{place}[{at}]") for at, one in enumerate(held)]
    try:
        return _moment(held) if place.endswith("_at") else _harmless(held)
    except ValueError as error:
        raise ValueError(f"{place[:_LONGEST_PLACE]}: {error}") from None


def _moment(held: Any) -> int | None:
    if held is not None and not isinstance(held, str):
        raise ValueError("not a text in quotes")
    return None if held is None else from_iso(held)


def _harmless(held: Any) -> Any:
    """Text is shown on terminals: nothing in it may move the cursor or turn the direction of what follows."""
    if isinstance(held, str):
        if len(held) > _LONGEST_TEXT:
            raise ValueError(f"longer than {_LONGEST_TEXT} characters")
        if _HARMFUL.search(held):
            raise ValueError("has control characters")
    return held


def _with_moments(content: Any) -> Any:
    """A plan's `content_of` as the file has it."""
    if isinstance(content, dict):
        return {
            _key(name): to_iso(held) if name.endswith("_at_ms") and held is not None else _with_moments(held)
            for name, held in content.items()
        }
    return [_with_moments(one) for one in content] if isinstance(content, list) else content


def _garbled(where: str, problem: str) -> BadInputError:
    return BadInputError(f"{where}: garbled plan: {problem}", next_step=_PLAN_AGAIN, code="plan-garbled")
