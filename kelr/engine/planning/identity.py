"""The name of a plan: a hash over its content, so that a plan that was changed has another name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from kelr.model import Plan, PlannedElection

ID_DIGITS = 12


def plan_digest(plan: Plan) -> str:
    """SHA-256 over the plan's canonical content, as 64 hex digits."""
    return _digest(asdict(plan))


def plan_id(plan: Plan) -> str:
    """The first 12 hex digits of `plan_digest`: how people and journals name a plan."""
    return plan_digest(plan)[:ID_DIGITS]


def election_digest(planned: PlannedElection) -> str:
    """SHA-256 over one election of a plan, as 64 hex digits."""
    return _digest(asdict(planned))


def _digest(content: object) -> str:
    # Sorted keys, no blanks, ASCII alone: the same value gives the same bytes everywhere.
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
