"""Plan files: one JSON document that people read, may edit within limits, and hand to `kelr recover apply`.

The format, and what its hash protects from, is in docs/plans.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kelr.durable import whole_file
from kelr.engine.planning import content_of, digest_of
from kelr.errors import BadInputError, UsageError
from kelr.files import FILES, Files
from kelr.model import ElectionType, Plan, PlannedElection, TopicPartition, Wish
from kelr.recovery.json_file import first_problem, read_json
from kelr.recovery.plan_checks import problems
from kelr.recovery.pretty import pretty

MAX_PLAN_BYTES = 64 * 1024 * 1024
"""A longer plan is neither written nor read: it would be some 20,000 elections, which nobody reviews."""
_DIGITS = 12
_PLAN_AGAIN = "make the plan again with kelr recover plan; what is left of this one is not used"


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
    _saved(text, document, f"the plan for {path}")  # what cannot be read again is not written
    with whole_file(path, "plan", overwrite=overwrite, files=files) as file:
        file.write(text)


def read_plan(path: Path, files: Files = FILES) -> SavedPlan:
    """Read a plan file.

    Raises:
        BadInputError: not a plan, garbled, of a newer version, or at odds with itself; names file and place.
    """
    text, document = read_json(path, "plan", max_bytes=MAX_PLAN_BYTES, files=files)
    return _saved(text, document, str(path))


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as the object of a plan file, with its hashes; journals hold the same object."""
    from kelr.recovery.plan_lines import FORMAT, FORMAT_VERSION, with_moments  # noqa: PLC0415 - pydantic is heavy

    content = content_of(plan)
    digest, digests = _digests(content)
    shown = with_moments(content)
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


def _saved(text: bytes, document: Any, where: str) -> SavedPlan:
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    from kelr.recovery.plan_lines import FIELDS, FORMAT, FORMAT_VERSION, PlanLine  # noqa: PLC0415

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
    try:
        line = PlanLine.model_validate_json(text)
    except ValidationError as error:
        raise _garbled(where, first_problem(error, FIELDS)) from error
    if line.plan_id != line.sha256[:_DIGITS]:
        raise _garbled(where, "plan_id: not the beginning of sha256")
    plan = line.value()
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


def _garbled(where: str, problem: str) -> BadInputError:
    return BadInputError(f"{where}: garbled plan: {problem}", next_step=_PLAN_AGAIN, code="plan-garbled")
