"""What to do where a live last known leader with a worse log is in the way of a better one.

With ISR and ELR empty it leads after any kind of election as long as it is live, a designation of another one included
(`PartitionChangeBuilder.canElectLastKnownLeader`): the better one leads only while it is down.
"""

from __future__ import annotations

from dataclasses import replace

from kelr.engine.advice.absent_logs import best_to_bring_back, bring_the_best_back, lacking_in_words, lacks_less
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.words import or_bring_back_the_best, or_designate
from kelr.engine.alike import Alike
from kelr.engine.case import Case
from kelr.engine.elections import outcomes_of
from kelr.engine.forecast import forecasts_of
from kelr.engine.loss import loss_of_electing
from kelr.engine.loss_words import cost_in_words
from kelr.model import Advice, AdviceAction, ElectedBy


def stop_the_last_known_leader(case: Case, found: Findings) -> Advice | None:
    """The advice to stop it, and then to bring back or designate the replica with the best log, where every other way
    is known to lose more committed records; None where nothing is in the way, or another way loses no more."""
    stopped, best = case.last_known_leader, case.logs.best
    if stopped not in case.electable or stopped not in case.logs.ranked or best is None or best.replica == stopped:
        return None
    holder, when, designation = best.replica, _when_elected(found, stopped, best.replica), found.best_designation
    designate = None if designation is None else designation.designate
    others = (stopped, best_to_bring_back(case, found), designate)
    if not when or not all(lacks_less(case, holder, one) for one in others if one is not None):
        return None
    then = _without_it(case, found, stopped, holder)
    if then is None:
        return None
    unless = f", unless {holder} is known to have been shut down cleanly" if when.startswith("if") else ""
    text = (
        f"Stop broker {stopped} first{unless}: Kafka elects it as the last known leader {when}, and its log lacks"
        f" {lacking_in_words(case, stopped, holder)} that {holder} holds. Look first what else that stops"
        f" (whatif --stop {stopped}), and save what is known now: once {stopped} is down kelr reads its log no more,"
        f" and without that file (--logs) may advise to start it. Do not do that before {holder} leads."
        f" {then.text}"
    )
    keep_down = then.keep_down
    if stopped not in keep_down:
        text += f" Start {stopped} again once {holder} leads."
        keep_down = keep_down if then.replica == stopped else (*keep_down, stopped)
    alternative, designate = _if_it_goes_on(case, found, stopped, holder)
    return replace(
        then,
        text=text,
        alternative=alternative,
        designate=holder if designate is None else designate,
        keep_down=keep_down,
        stop=(stopped,),
    )


def _if_it_goes_on(case: Case, found: Findings, stopped: int, holder: int) -> tuple[str, int | None]:
    """What else there is than to stop it, and whom that designates."""
    condition = f"If {stopped} cannot be stopped"
    if found.elected is not None:
        cost = cost_in_words(loss_of_electing(case, stopped, holds_all_committed=False))
        return f"{condition}, Kafka elects it, which {cost}.", None
    condition += f", or {holder} cannot return"
    back = or_bring_back_the_best(case, found, (holder,), condition)
    otherwise, designate = or_designate(case, found, condition if not back else "If neither can be done")
    return " ".join(filter(None, (back, otherwise))), designate


def _when_elected(found: Findings, leader: int, holder: int) -> str:
    """When Kafka elects the last known leader in place of the one with the best log; empty where it does not."""
    if found.elected is not None:
        pending = found.elected == leader and found.elected_by is ElectedBy.LAST_KNOWN_LEADER
        return "at its next event for this partition" if pending else ""
    returns = [one for one in found.forecasts if one.replica == holder]
    elects = [one for one in returns if one.elected == leader and one.elected_by is ElectedBy.LAST_KNOWN_LEADER]
    if len(elects) == len(returns) > 0:
        return f"the moment {holder} is back"
    return f"if {holder} returns otherwise" if elects else ""


def _without_it(case: Case, found: Findings, stopped: int, holder: int) -> Advice | None:
    """What to do once the last known leader is down; None where the one with the best log would not lead then."""
    case = replace(case, electable=case.electable - {stopped}, alike=Alike())
    found = replace(found, elected=None, elected_by=None, outcomes=outcomes_of(case), forecasts=forecasts_of(case))
    best = found.best_log_designation
    if holder in case.electable:
        if best is None or best.designate != holder:
            return None
        return Advice(AdviceAction.HOLD, f"Then designate {holder}, which {cost_in_words(best.loss)}.", stopped)
    back = bring_the_best_back(case, found)
    if back is None or back.action is not AdviceAction.BRING_BACK or back.replica != holder:
        return None
    return back
