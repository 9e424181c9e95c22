"""What somebody has to give before an election is carried out."""

from __future__ import annotations

from kelr.model import Consent, ElectedBy, Loss, LossCertainty, Plan

_CLEAN = frozenset({ElectedBy.ISR, ElectedBy.ELR, ElectedBy.LEADER_STAYS})


def consent_of(loss: Loss, by: ElectedBy) -> Consent:
    """The consent that an election with this loss needs.

    A replica that Kafka elects from ISR or ELR by its own rules needs a plain yes whatever acks=1 records go with it:
    it would be elected without being asked for. Where it is put there by name, what is counted is asked about.
    """
    nothing = loss.total is not None and loss.total.none
    if loss.grade is LossCertainty.PROVEN_NONE:
        return Consent.YES if by in _CLEAN or nothing else Consent.LOSS
    if not loss.counted:
        return Consent.FORCE
    return Consent.YES if nothing and loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR else Consent.LOSS


def needs_more(one: Consent, than: Consent) -> bool:
    """Whether one consent is more than another."""
    order = tuple(Consent)
    return order.index(one) > order.index(than)


def why_forced(plan: Plan) -> str:
    """Why a reason is asked for: ``what 2 elections lose cannot be counted``, ``1 election stands on doubtful ground,
    see its notes``."""
    forced = [one for one in plan.elections if one.consent is Consent.FORCE]
    uncounted = sum(one.loss.grade is LossCertainty.UNKNOWN and not one.loss.counted for one in forced)
    doubtful = len(forced) - uncounted
    parts = [f"what {'1 election loses' if uncounted == 1 else f'{uncounted} elections lose'} cannot be counted"]
    if doubtful:
        its = "its" if doubtful == 1 else "their"
        stand = "election stands" if doubtful == 1 else "elections stand"
        parts = [*(parts if uncounted else []), f"{doubtful} {stand} on doubtful ground, see {its} notes"]
    return "; ".join(parts)
