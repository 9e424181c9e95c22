"""What somebody has to give before a plan is carried out, and whether it was given."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.model.plan import Consent, Plan


@dataclass(frozen=True, slots=True)
class Consented:
    """What somebody gave, on a terminal or with flags."""

    accept_loss: int | None = None
    """The number of offsets that may be lost, typed or given with ``--accept-loss``; None: none was given."""
    force_reason: str | None = None
    """The reason that came with ``--force``."""
    yes: bool = False
    """A plain yes, or ``--yes``. It never stands for an accepted loss."""


def missing_consent(plan: Plan, given: Consented) -> str | None:
    """What is still needed for this plan, in words that name the flag; None where enough was given.

    Each kind is asked for by itself: a reason for a forced election accepts no counted loss of another one.
    """
    needed = {one.consent for one in plan.elections}
    missing = []
    if Consent.LOSS in needed:
        least = plan.loss_to_accept
        if given.accept_loss is None or given.accept_loss < least:
            missing.append(f"--accept-loss {least} ({_lossy(plan)})")
    if Consent.FORCE in needed and not (given.force_reason or "").strip():
        missing.append(f"--force REASON ({_uncountable(plan)})")
    if needed == {Consent.YES} and not (given.yes or given.force_reason or given.accept_loss is not None):
        missing.append("--yes (nothing is lost)")
    return " and ".join(missing) or None


def _lossy(plan: Plan) -> str:
    count = sum(one.consent is Consent.LOSS for one in plan.elections)
    unbounded = any(
        one.loss.total is None or one.loss.total.at_most is None
        for one in plan.elections
        if one.consent is Consent.LOSS
    )
    words = "1 election loses" if count == 1 else f"{count} elections lose"
    number = plan.loss_to_accept
    return f"{words} {'at least' if unbounded else 'up to'} {number} {'offset' if number == 1 else 'offsets'}"


def _uncountable(plan: Plan) -> str:
    count = sum(one.consent is Consent.FORCE for one in plan.elections)
    return f"what {'1 election loses' if count == 1 else f'{count} elections lose'} cannot be counted"
