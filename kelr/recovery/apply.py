"""Carrying out a plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kelr.controller import RuleSet
from kelr.model.plan import Applied, Plan
from kelr.recovery.consent import Consented
from kelr.recovery.hand import Hand
from kelr.recovery.progress import Report, silent
from kelr.recovery.site import Patience
from kelr.recovery.who import Who
from kelr.sources.base import Source

DEFAULT_BATCH = 100


def apply_plan(
    plan: Plan,
    *,
    source: Source,
    hand: Hand,
    state_directory: Path,
    clock_ms: Callable[[], int],
    who: Who,
    consented: Consented,
    rules: RuleSet | None = None,
    batch: int = DEFAULT_BATCH,
    pause_s: float = 0,
    keep_order: bool = False,
    report: Report = silent,
    command: str = "recover apply",
    patience: Patience | None = None,
) -> tuple[Applied, ...]:
    """Carry out a plan, batch by batch."""
    raise NotImplementedError


def check_plan(
    plan: Plan,
    *,
    source: Source,
    clock_ms: Callable[[], int],
    rules: RuleSet | None = None,
    batch: int = DEFAULT_BATCH,
    report: Report = silent,
) -> tuple[Applied, ...]:
    """The fences alone; nothing is changed. An election that would be carried out is `Ended.NOT_TRIED`, without a text;
    the others are what `apply_plan` would make of them (`REFUSED` with differences, `NOT_NEEDED`)."""
    raise NotImplementedError
