"""What somebody has to give before a plan is carried out, and whether it was given."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.engine.loss_words import not_read
from kelr.engine.planning.consent import why_forced
from kelr.engine.words import plural
from kelr.model.plan import AcceptedLoss, Consent, Plan


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What somebody gave, on a terminal or with flags."""

    accept_loss: AcceptedLoss | None = None
    """The loss that was accepted, typed or given with ``--accept-loss``; None: none was."""
    force_reason: str | None = None
    """The reason that came with ``--force``."""
    yes: bool = False
    """A plain yes, or ``--yes``. It never stands for an accepted loss."""


def accepts_loss(plan: Plan, given: Confirmation) -> bool:
    """Whether what was given covers all that this plan loses and that can be counted, or is not bounded."""
    if all(one.consent is not Consent.LOSS for one in plan.elections):
        return True
    return given.accept_loss is not None and given.accept_loss.covers(plan.loss_to_accept)


def missing_consent(plan: Plan, given: Confirmation) -> str | None:
    """What is still needed for this plan, in words that name the flag; None where enough was given.

    Each kind is asked for by itself: a reason for a forced election accepts no counted loss of another one.
    """
    needed = {one.consent for one in plan.elections}
    missing = []
    if not accepts_loss(plan, given):
        count = sum(one.consent is Consent.LOSS for one in plan.elections)
        what = f"{plural(count, 'election')}: {loss_in_short(plan)}{_limited(plan, given)}"
        missing.append(f"--accept-loss {plan.loss_to_accept} ({what})")
    if Consent.FORCE in needed and not (given.force_reason or "").strip():
        missing.append(f"--force REASON ({why_forced(plan)})")
    if needed == {Consent.YES} and not (given.yes or given.force_reason or given.accept_loss is not None):
        missing.append("--yes (nothing is lost)")
    return " and ".join(missing) or None


def missing_code(plan: Plan, given: Confirmation) -> str:
    """The code of the error that says so: a reason that is missing weighs more than a number, that more than a yes."""
    if Consent.FORCE in {one.consent for one in plan.elections} and not (given.force_reason or "").strip():
        return "evidence-contradictory"
    return "consent-missing" if accepts_loss(plan, given) else "loss-not-accepted"


def loss_in_short(plan: Plan) -> str:
    """What the elections lose that need an accepted loss: ``19 offsets are lost``, ``what is lost is UNKNOWN: the log
    of broker 1 was not read``."""
    needed = plan.loss_to_accept
    lossy = [one for one in plan.elections if one.consent is Consent.LOSS]
    if not needed.unbounded:
        exact = all(one.loss.total is not None and one.loss.total.exact for one in lossy)
        is_are = "is" if needed.known == 1 else "are"
        return f"{'' if exact else 'up to '}{plural(needed.known, 'offset')} {is_are} lost"
    unheard = sorted({replica for one in lossy for replica in one.loss.unheard})
    cut = any(one.loss.lost_data or one.loss.may_have_lost for one in lossy)
    why = not_read(unheard) if unheard else "logs are known to have lost data" if cut else lossy[0].loss.reason
    if not needed.known:
        return f"what is lost is UNKNOWN: {why}"
    lost = f"at least {plural(needed.known, 'offset')} {'is' if needed.known == 1 else 'are'} lost"
    return f"{lost}, and how many more is UNKNOWN: {why}"


def _limited(plan: Plan, given: Confirmation) -> str:
    """Why a number that seems enough is not."""
    needed, accepted = plan.loss_to_accept, given.accept_loss
    if accepted is None or accepted.unbounded or not needed.unbounded or accepted.known < needed.known:
        return ""
    return f"; {accepted} without a plus accepts nothing beyond it"
