"""Plan files: one JSON document that people read, may edit within limits, and hand to `kelr recover apply`.

The format, and what its hash protects from, is in docs/plans.md.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from kelr.durable import whole_file
from kelr.engine.planning import content_of, digest_of
from kelr.errors import BadInputError, UsageError
from kelr.files import FILES, Files
from kelr.model import ElectionType, NotPlanned, Plan, PlannedElection, TopicPartition, Wish
from kelr.model.fields import Offset, matching
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
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
LATER = {
    "Loss": {"gone_ranges", "lost_data", "may_have_lost", "contradictory"},
    "Alternative": {"start", "leader", "rescue"},
    "Advice": {"keep_down", "start", "stop", "stock"},
    "PlannedElection": {"against"},
    "NotPlanned": {"rescue", "keep_down", "stop", "stock", "alternatives"},
}
"""Fields that plans of older kelrs lack."""
_PLAN_AGAIN = "make the plan again with kelr recover plan; what is left of this one is not used"


_Value = TypeVar("_Value")
Hex12 = Annotated[str, matching(r"^[0-9a-f]{12}$")]
Hex64 = Annotated[str, matching(r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan as it was read, and whether it is the one that kelr wrote."""

    plan: Plan
    plan_id: str
    """The id under which it was written: that of another content, if it was edited."""
    edited: bool
    """Whether its content is another than the one that kelr wrote. Then what it loses and stands on is not what was
    planned: it has to be planned again, from a fresh snapshot, with `wishes`."""
    edited_elections: tuple[TopicPartition, ...] = ()
    """Partitions whose election a person has changed."""
    removed: int = 0
    """How many elections a person has taken out."""

    def wishes(self) -> Callable[[TopicPartition], Wish]:
        """What the plan's elections come down to: which replica is to lead each partition.

        The callable raises KeyError for a partition that the plan does not elect.
        """
        edited = frozenset(self.edited_elections)
        known = {one.address: _wish(one, edited=one.address in edited) for one in self.plan.elections}
        return lambda address: known[address]


def _wish(planned: PlannedElection, *, edited: bool) -> Wish:
    if planned.election is ElectionType.PREFERRED and not edited:
        return Wish(ElectionType.PREFERRED, minimal_replicas=planned.minimal_replicas)
    return Wish(ElectionType.DESIGNATION, planned.elect, planned.minimal_replicas)


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


def read_plan(path: Path, files: Files = FILES) -> SavedPlan:
    """Read a plan file.

    Raises:
        BadInputError: not a plan, garbled, of a newer version, or at odds with itself; names file and place.
    """
    _, document = read_json(path, "plan", max_bytes=MAX_PLAN_BYTES, files=files)
    return _saved(document, str(path))


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as the object of a plan file, with its hashes; journals hold the same object."""
    content = content_of(plan)
    digest, digests = _digests(content)
    shown = _with_moments(content)
    for election, of_election in zip(shown["elections"], digests, strict=True):
        election["digest"] = of_election
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "plan_id": digest[:_DIGITS],
        "sha256": digest,
        "signed_elections": len(plan.elections),
    }
    return {**head, **shown}


def _digests(content: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The hash of the whole, and the beginning of that of each election."""
    return digest_of(content), tuple(digest_of(election)[:_DIGITS] for election in content["elections"])


def _saved(document: Any, where: str) -> SavedPlan:
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
    digest, digests = _digests(content_of(plan))
    written = [election.digest for election in line.elections]
    changed = frozenset(at for at, one in enumerate(digests) if one != written[at])
    problem = next(problems(plan, changed), None)
    if problem is not None:
        raise _garbled(where, problem)
    return SavedPlan(
        plan=plan,
        plan_id=line.plan_id,
        edited=digest != line.sha256,
        edited_elections=tuple(plan.elections[at].address for at in sorted(changed)),
        removed=max(0, line.signed_elections - len(plan.elections)),
    )


def _key(name: str) -> str:
    """A field's name in the file: moments, which end in ``_at_ms`` in the model, are ISO 8601 there."""
    return name.removesuffix("_ms") if name.endswith("_at_ms") else name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signed(PlannedElection):
    """One planned election, with the hash that tells whether somebody has edited it."""

    digest: Hex12


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(Plan):
    """The whole file: a plan, and what tells whether somebody has edited it."""

    __pydantic_config__ = {**STRICT, "alias_generator": _key}  # noqa: RUF012 - pydantic's

    format: Literal["kelr-plan"]
    version: Literal[1]
    plan_id: Hex12
    sha256: Hex64
    signed_elections: Offset
    elections: tuple[_Signed, ...]
    not_planned: tuple[NotPlanned, ...]
    lacks: tuple[str, ...] = field(default=(), init=False)


def _plan_of(file: _File, document: Any) -> Plan:
    """The plan of a file, with what it lacks. Raises ValueError where that is no field that came later."""
    plan = _bare(Plan, file, elections=tuple(_bare(PlannedElection, one) for one in file.elections))
    given, lacks = set[str](), set[str]()
    for kind, name, place, is_given in _fields(plan, document):
        if not is_given and name not in LATER.get(kind, ()):
            raise ValueError(f"{place}: this field is missing")
        (given if is_given else lacks).add(f"{kind}.{name}")
    return replace(plan, lacks=tuple(sorted(lacks - given)))


def _bare(kind: type[_Value], held: Any, **others: Any) -> _Value:
    """A value of the model without what the file adds to it."""
    return kind(**{one.name: getattr(held, one.name) for one in fields(kind)} | others)  # type: ignore[arg-type]


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
    """A file's document with its moments in milliseconds.

    Raises:
        ValueError: a moment that is none, or a text that is not to be shown on a terminal; names the place.
    """
    if isinstance(held, dict):
        return {key: _taken(one, f"{place}.{key}" if place else key) for key, one in held.items()}
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
        if any((unicodedata.category(char) == "Cc" and char not in "\n\t") or char in _BIDI for char in held):
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
