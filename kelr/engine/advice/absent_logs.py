"""What to say where the log of a broker that is down was heard: from its disk, or in an answer of before.

The best log may then be one that nobody can elect yet, and a broker that Kafka would elect on its return may be known
to have a worse one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kelr.engine.advice.commands import read_the_disk
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.returns import (
    and_in_company,
    holds_all_of,
    kept_down_beside,
    while_others_are_down,
    with_its_return,
)
from kelr.engine.advice.words import or_bring_back_the_best, or_designate
from kelr.engine.case import Case
from kelr.engine.forecast import elected_in_company
from kelr.engine.logs import count_distinct
from kelr.engine.loss import loss_of_electing
from kelr.engine.loss_words import cost_in_words
from kelr.engine.words import agree, brokers, joined, plural
from kelr.model import Advice, AdviceAction, LogUnavailableReason, LossCertainty

BEST_OF_ALL = "the most complete of all replicas"
"""Said of a log that no other exceeds, of those of all replicas at hand."""


def best_absent(case: Case) -> int | None:
    """The absent replica with the best log of all that were heard; None where a live one has as good a log."""
    best = case.logs.best
    if best is None or best.replica in case.electable or any(case.logs.is_best(replica) for replica in case.live):
        return None
    return best.replica


def best_to_bring_back(case: Case, found: Findings) -> int | None:
    """The absent replica with the best log of those that lead once they are back; None where a live one has as good a
    log, or none of them would lead."""
    able = [one for one in case.absent if found.can_lead_on_return(one)]
    best = case.logs.best_of((*case.live, *able))  # of equals the first, so one that is live
    return None if best is None or best.replica in case.live else best.replica


def with_the_best_log(case: Case, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Of several whom Kafka would elect on their return, those with the best log: the first one back leads, and the
    others truncate to it. All of them where a log was not heard."""
    best = case.logs.best_of(replicas)
    if best is None or not case.logs.ranked.keys() >= set(replicas):
        return replicas
    return tuple(one for one in replicas if case.logs.best_of((one, best.replica)) is case.logs.ranked[one])


def least_doubtful(case: Case, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Of several that have a place in ISR or ELR with ELR on: those whose disks show a clean shutdown; where none does,
    those that none shows to have lost the place, and of these those whose disks nothing contradicts."""
    clean = tuple(one for one in replicas if case.stopped_cleanly(one) and not case.is_added_again(one))
    kept = tuple(one for one in replicas if not case.stopped_uncleanly(one))
    return clean or tuple(one for one in kept if not case.logs.doubtful(one)) or kept or replicas


def in_its_place(case: Case, found: Findings, where: str, replicas: Sequence[int]) -> str:
    """Why one of these is started first: ``After a clean shutdown, Kafka elects it and loses no committed record.``"""
    doubtful = tuple(filter(case.logs.doubtful, replicas))
    if doubtful:
        disks = f"the {agree(len(doubtful), 'disk', 'disks')} of {brokers(doubtful)}"
        stale = f"what was read of {disks} is stale, or the log was cut or lacks a segment"
        return f"In the {where}, but the loss is UNKNOWN: {stale}."
    returns = [found.forecast(replica, clean=True) for replica in replicas]
    elects = all(one is not None and one.elected == one.replica for one in returns)
    lost = (
        "Kafka elects it and loses no committed record" if elects else f"in the {where}, so no committed record is lost"
    )
    if not all(map(case.stopped_cleanly, replicas)):
        return f"After a clean shutdown, {lost}."
    disks = agree(len(replicas), "Its disk shows", "Their disks show")
    return f"{disks} a clean shutdown: {lost}."


def its_log_was_read(case: Case, replica: int) -> str:
    """The end of a sentence about a replica whose log was read from its disk."""
    log = case.logs.ranked[replica]
    text = f"its log was read from its disk and ends at {log.log_end}"
    if case.logs.is_best(replica):
        return f"{text}, {_the_best(case)}"
    best = case.logs.best
    assert best is not None  # some log was ranked
    more = lacking_in_words(case, replica, best.replica)
    return f"{text}; it lacks {more} that {best.replica} holds, and {_committed_in_words(case, replica)}"


def _committed_in_words(case: Case, replica: int) -> str:
    """Whether what the replica lacks is known to be committed."""
    known = sum(
        count_distinct(case.logs.missing(other, replica, below=log.high_watermark))
        for other, log in case.logs.ranked.items()
        if other != replica and log.high_watermark is not None and case.logs.agreement(other, replica) is not None
    )
    return "none of them is known to be committed" if not known else "some of them are known to be committed"


def _the_best(case: Case) -> str:
    unheard = case.logs.unranked
    if not unheard:
        return BEST_OF_ALL
    return f"the most complete of those that were read ({brokers(unheard)} {agree(len(unheard), 'was', 'were')} not)"


def with_disks_to_read_again(case: Case, advice: Advice) -> Advice:
    """The advice with the readings of disks that are not believed, where somebody is to be elected: before anything
    else, unless the advice is to keep those brokers down, or to start others."""
    doubtful = tuple(filter(case.logs.doubtful, case.state.replicas))
    if not doubtful or case.state.leader in case.electable:
        return advice
    disks = agree(len(doubtful), "disk", "disks")
    led = "" if all(map(case.logs.read_lacking, doubtful)) else ", or the broker was down already when it was elected"
    starts_others = advice.action is AdviceAction.BRING_BACK and {*doubtful}.isdisjoint(
        advice.start or (advice.replica,)
    )
    stay_down = {*doubtful} <= {*advice.keep_down}
    when = "first" if stay_down or not starts_others else f"before {agree(len(doubtful), 'it starts', 'they start')}"
    again = (
        f"Read the {disks} of {brokers(doubtful)} again {when}: what was read contradicts what the controller records,"
        f" so that it is from before the broker last ran, or the log was cut or lacks a segment{led}."
    )
    return replace(advice, text=f"{advice.text} {again}" if stay_down or starts_others else f"{again} {advice.text}")


def elects_it(found: Findings, replicas: Sequence[int]) -> str:
    """``Kafka elects it the moment it is back``, where Kafka elects these on their return; with the condition, where it
    does so after a clean shutdown alone."""
    first = agree(len(replicas), "it", "the first of them")
    elects = f"Kafka elects {first} the moment it returns"
    returns = [one for one in found.forecasts if one.replica in replicas]
    return elects if all(one.elected == one.replica for one in returns) else f"after a clean shutdown {elects}"


def stay_down(lacking: Sequence[int], awaited: Sequence[int]) -> str:
    """A sentence about brokers whose disks lack committed records, beside the advice to start others."""
    leads = f"{awaited[0]} leads" if len(awaited) == 1 else f"one of {joined(awaited)} leads"
    return f" Keep {brokers(lacking)} down until {leads}: committed records are known that are missing there."


def read_again_first(case: Case, found: Findings, replicas: Sequence[int]) -> Advice:
    """Keep brokers down that Kafka would elect on their return, and of whose disks what was read lacks committed
    records (`KnownLogs.read_lacking`), until the disks are read again."""
    count = len(replicas)
    disks = agree(count, "its disk", "their disks")
    text = (
        f"Keep {brokers(replicas)} down for now: {elects_it(found, replicas)}, and what was read of"
        f" {disks} lacks records that another replica knows to be committed."
    )
    condition = (
        f"If {agree(count, 'it has', 'they have')} not run since {agree(count, 'it was', 'they were')} read,"
        f" {agree(count, 'its log was', 'their logs were')} cut"
    )
    back = or_bring_back_the_best(case, found, tuple(replicas), condition)
    otherwise, designate = or_designate(case, found, condition if not back else "If that cannot be done")
    return Advice(
        AdviceAction.GET_MORE_INFORMATION,
        text,
        alternative=" ".join(filter(None, (back, otherwise))),
        command=read_the_disk(replicas[0]),
        designate=designate,
        keep_down=tuple(replicas),
    )


def bring_the_best_back(case: Case, found: Findings) -> Advice | None:
    """The advice where an absent replica has the best log and nobody else is waited for; None where it does not.

    Its return may elect another one. Then the best of those that can lead is made the leader first.
    """
    holder, designation = best_absent(case), found.best_designation
    if holder is None:
        return None
    best = best_to_bring_back(case, found)
    if best is None and designation is not None:
        designate = designation.designate
        text = f"{keep_down_until(case, found, holder, designate)} Designate {designate} first, which"
        if {one.elected for one in found.forecasts if one.replica == holder} == {designate}:
            text = (
                f"Keep broker {holder} down until what it holds is saved: its log is {_the_best(case)}, and the moment"
                f" it returns Kafka elects {designate} even then. Designate {designate}, which"
            )
        return Advice(AdviceAction.HOLD, f"{text} {cost_in_words(designation.loss)}.", holder, designate=designate)
    best = holder if best is None else best
    spoilers = [one for one in case.returning if one != best and elects_a_worse_one(case, found, one, best)]
    read = " (read from its disk)" if case.read_from_disk(best) else ""
    unheard = case.logs.unranked
    rank = _the_best(case) if best == holder else "the most complete of those that can lead"
    text = f"Start broker {best}: its log{read} is {rank}; {_on_return(case, found, best)}."
    text += "".join(f" {keep_down_until(case, found, one, best)}" for one in spoilers)
    if unheard:
        text += f" Read the {agree(len(unheard), 'log', 'logs')} of {joined(unheard)}, too, before you choose."
    next_best = or_bring_back_the_best(case, found, (best,))
    condition = "If neither can be done" if next_best else f"If {best} cannot return"
    otherwise, designate = or_designate(case, found, condition)
    alternative = " ".join(filter(None, (next_best, otherwise)))
    advice = Advice(
        AdviceAction.BRING_BACK,
        text,
        best,
        alternative,
        designate=designate,
        keep_down=tuple(dict.fromkeys((*kept_down_beside(case, best), *spoilers))),
    )
    return with_its_return(case, found, advice, best)


def elects_a_worse_one(case: Case, found: Findings, replica: int, best: int) -> bool:
    """Whether the broker's return may elect one whose log is not known to hold all that the best one's does."""
    elected = {one.elected for one in found.forecasts if one.replica == replica and one.elected is not None}
    return any(not holds_all_of(case, leader, best) for leader in elected)


def keep_down_until(case: Case, found: Findings, replica: int, leader: int | None) -> str:
    """That a broker whose return elects a worse log, its own or another's, is to stay down until a better one leads."""
    held = f", although its log is {_the_best(case)}" if case.logs.is_best(replica) else ""
    keep = f"Keep broker {replica} down until {leader} leads{held}"
    returns = [one for one in found.forecasts if one.replica == replica and one.elected is not None]
    if not returns:
        return f"{keep}: once it is back, a designation would not make it the leader."
    worst = returns[-1]
    who = "it" if worst.elected == replica else str(worst.elected)
    cleanly = found.forecast(replica, clean=True)
    crashed = " after an unclean shutdown" if cleanly is not None and cleanly.elected is None else ""
    return f"{keep}: the moment it returns{crashed} Kafka elects {who}, which {cost_in_words(worst.loss)}."


def _on_return(case: Case, found: Findings, replica: int) -> str:
    """What happens when this replica is back, and what to do then."""
    returns = [forecast for forecast in found.forecasts if forecast.replica == replica]
    elected = {forecast.elected for forecast in returns}
    if elected == {None}:
        costs = f", which {cost_in_words(returns[0].costs)}" if returns[0].leads == replica else ""
        nobody = f"{while_others_are_down(case, replica)}its return elects no leader"
        return f"{nobody}, so then designate {replica}{costs}{and_in_company(case, replica)}"
    if elected == {replica}:
        return "Kafka elects it the moment it returns"
    if elected == {replica, None} and found.can_lead_on_return(replica):
        return (
            f"after a clean shutdown Kafka elects it then, after an unclean one no leader, and you designate {replica}"
        )
    if elected == {case.state.leader}:
        return f"{case.state.leader} stays the leader on record, so then designate {replica}"
    if len(elected) == 1 and returns[0].loss is not None:
        (other,) = elected
        return f"Kafka elects {other} the moment it returns, which {cost_in_words(returns[0].loss)}"
    return "run kelr explain again then"


def or_elects_another(case: Case, found: Findings, replica: int) -> str:
    """A sentence about the return of the last member of the ELR after an unclean shutdown, where that elects another
    replica, the last known leader; empty where it does not."""
    unclean = found.forecast(replica, clean=False)
    if unclean is None or unclean.elected in {None, replica, case.state.leader}:
        return ""
    cost = f"which {cost_in_words(unclean.loss)}"
    read = "," if case.read_from_disk(replica) else ", read its disk before it starts:"
    text = (
        f" If {replica} was not shut down cleanly{read} its return ends its place in the ELR, and Kafka elects"
        f" {unclean.elected}, {cost}."
    )
    best = found.best_designation
    if best is not None and best.designate not in {None, unclean.elected}:
        text += f" Designate {best.designate} first then."
    return text


def rather_another(case: Case, found: Findings, replica: int) -> Advice | None:
    """The advice where nobody knows whether a member of the ELR was shut down cleanly, its unclean return elects one
    without committed records, and a third, whose log holds all that the member's does, leads without that risk; None
    where that is not so."""
    clean, unclean = found.forecast(replica, clean=True), found.forecast(replica, clean=False)
    if clean is None or clean.elected != replica or unclean is None or unclean.elected in {None, replica}:
        return None
    lost = None if unclean.loss is None else unclean.loss.committed
    member = case.logs.ranked.get(replica)
    cut = member is None or member.may_have_held_more or case.logs.lacks_committed(replica)
    if lost is None or not lost.at_least or case.logs.unranked or cut:
        return None
    live, best = found.best_designation, best_to_bring_back(case, found)
    risk = (
        f"if it was not shut down cleanly, its return ends its place in the ELR, and Kafka elects {unclean.elected},"
        f" which {cost_in_words(unclean.loss)}."
    )
    holds = f"its log holds all that {replica}'s does, which is in the ELR"
    if live is not None and live.designate is not None and holds_all_of(case, live.designate, replica):
        first = live.designate
        text = (
            f"Designate {first} first, which {cost_in_words(live.loss)}: {holds}. Keep broker {replica} down until"
            f" {first} leads: {risk}"
        )
        return Advice(AdviceAction.HOLD, text, replica, designate=first)
    if best is None or best == replica or case.read_before(best) or not holds_all_of(case, best, replica):
        return None
    text = (
        f"Start broker {best} first: {holds}; {_on_return(case, found, best)}. Keep broker {replica} down until"
        f" {best} leads: {risk}"
    )
    otherwise, designate = or_designate(case, found, "If neither can be done")
    alternative = f"If {best} cannot return: start {replica}, and save first what its return may truncate."
    advice = Advice(
        AdviceAction.BRING_BACK,
        text,
        best,
        " ".join(filter(None, (alternative, otherwise))),
        designate=designate,
        keep_down=tuple(dict.fromkeys((*kept_down_beside(case, best), replica))),
    )
    return with_its_return(case, found, advice, best)


def get_all_logs(case: Case, found: Findings) -> tuple[str, tuple[int, ...]]:
    """How to get at the logs that were not read before somebody is designated: by the return of brokers that elects
    nobody, or from their disks. And those that stay down until all logs are known, since Kafka may elect somebody on
    their return."""
    missing, holder = case.logs.unranked, best_absent(case)
    elects = {one.replica for one in found.forecasts if one.elected is not None}
    # One whose return alone elects nobody may get somebody elected once others are back, too.
    together = [one for one in {*missing, holder} if one is not None]
    elects.update(other for one in together for other in elected_in_company(case, one) if other != holder)
    up = [one for one in missing if one in case.electable or one in case.without_directory]
    down = [one for one in missing if one not in up and one not in elects]
    kept = [one for one in missing if one not in up and one in elects]
    parts = []
    if down:
        parts.append(
            f"Start {brokers(down)}, or read {agree(len(down), 'its disk', 'their disks')}, before you choose:"
            " that elects no leader, and all logs can be compared next."
        )
    if kept:
        disks, them = agree(len(kept), "disk", "disks"), agree(len(kept), "it", "them")
        parts.append(
            f"Read the {disks} of {brokers(kept)} before you choose, and do not start {them} before that: Kafka may"
            " elect somebody then."
        )
    if up:
        parts.append(f"{_find_out_why(case, up)}{'' if parts else ' before you choose'}.")
    if holder is not None and holder not in elects:
        too = ", too" if down or up else ""
        parts.append(f"Start {holder}{too}: it has the most complete log of those that were read.")
    elif holder is not None:
        back = _on_return(case, found, holder)
        parts.append(f"Broker {holder} has the most complete log of those that were read. If it returns: {back}.")
    also = tuple(one for one in case.returning if one in elects and one not in missing)
    if also:
        parts.append(down_until_known(also))
    return " ".join(parts), (*kept, *also)


def down_until_known(elects: Sequence[int]) -> str:
    """A sentence about brokers whose return may have a leader elected before logs can be compared."""
    their = agree(len(elects), "its return may elect", "their return may elect")
    return f"Keep {brokers(elects)} down until all logs are known: {their} somebody before that."


def keep_down(case: Case, found: Findings, replica: int) -> Advice | None:
    """Keep a broker down that Kafka would elect with a log that is known to be worse; None where it is not.

    Worse is the log of which more committed records are known to be missing; of equals the one that ranks lower
    (`Findings.best_designation`).
    """
    if replica not in case.logs.ranked:
        return None
    elsewhere, designation = best_to_bring_back(case, found), found.best_designation
    live = None if designation is None else designation.designate
    # Of those that can lead: the return of whoever has a better log may elect a third.
    is_best = case.logs.is_best(replica) or elsewhere == replica
    if elsewhere is not None and not is_best:
        return None if lacks_less(case, replica, elsewhere) else _keep_down_for(case, found, replica, elsewhere)
    if live is None or lacks_less(case, replica, live) or (is_best and not lacks_less(case, live, replica)):
        return None
    if case.logs.agreement(live, replica) is not None and not case.logs.missing(live, replica):
        return None
    keep = _keep(case, replica, live)
    first = ask_the_live_first(case, found, replica, keep, or_designate(case, found, "If that cannot be done"))
    return first or Advice(AdviceAction.HOLD, f"{keep} Designate {live} first.", replica, designate=live)


def keep_worse_down(case: Case, replica: int) -> str:
    """That a dead broker which Kafka elects all the same is to stay down, since its log is known to be worse than the
    best; empty where it is not."""
    best = case.logs.best
    if best is None or replica not in case.logs.ranked or case.logs.is_best(replica):
        return ""
    return "" if lacks_less(case, replica, best.replica) else _keep(case, replica, best.replica)


def ask_the_live_first(
    case: Case, found: Findings, replica: int, keep: str, otherwise: tuple[str, int | None]
) -> Advice | None:
    """Learn what live replicas hold before anybody is elected; None where all of them were heard, or the best
    designation loses nothing committed whatever they hold.

    Args:
        replica: stays down until then, since Kafka would elect it on its return.
        keep: says so, and why.
        otherwise: what to do if that cannot be done, and whom that designates.
    """
    unread = tuple(one for one in case.live if one in case.logs.unranked)
    best = found.best_designation
    sure = best is not None and best.loss is not None and best.loss.grade is not LossCertainty.UNKNOWN
    if not unread or sure:
        return None
    alternative, designate = otherwise
    return Advice(
        AdviceAction.GET_MORE_INFORMATION,
        f"{keep} {_find_out_why(case, unread)} before you choose.",
        alternative=alternative,
        command=("log-info", case.name),
        designate=designate,
        keep_down=(replica,),
    )


def _find_out_why(case: Case, up: Sequence[int]) -> str:
    """Nothing is to be found out of logs that nobody asked for, as those of a broker whose return is imagined."""
    read = agree(len(up), "is up, but its log was", "are up, but their logs were")
    silent = [case.logs.unheard.get(one) for one in up]
    not_asked = all(one is not None and one.reason is LogUnavailableReason.NOT_ASKED for one in silent)
    why = "" if not_asked else "find out why, and "
    return f"{brokers(up).capitalize()} {read} not read: {why}run kelr explain again"


def lacks_less(case: Case, one: int, other: int) -> bool:
    """Whether fewer committed records are known that the first log lacks than that the second does."""
    lacking = [loss_of_electing(case, replica, holds_all_committed=False).committed for replica in (one, other)]
    first, second = (None if bounds is None else bounds.at_least for bounds in lacking)
    return first is not None and second is not None and first < second


def _keep_down_for(case: Case, found: Findings, replica: int, best: int) -> Advice:
    """The best log is on another broker that is down."""
    text = f"{_keep(case, replica, best)} Start {best} first: {_on_return(case, found, best)}."
    live = case.logs.best_of(case.live)
    designate: int | None = None
    alternative = f"If {best} cannot return: start {replica}, whose log is more complete than that of any live replica."
    if live is not None and case.logs.best_of([replica, live.replica]) is live:
        alternative, designate = or_designate(case, found, f"If {best} cannot return")
    elif not case.live:
        alternative = f"If {best} cannot return: explain again with the others, and compare what their logs hold."
    kept_down = kept_down_beside(case, best)
    advice = Advice(AdviceAction.HOLD, text, replica, alternative, designate=designate, keep_down=kept_down)
    return with_its_return(case, found, advice, best)


def _keep(case: Case, replica: int, holder: int) -> str:
    elects = "it leads" if replica == case.state.leader else "Kafka elects it"
    return (
        f"Keep broker {replica} down: {elects} the moment it returns, and its log lacks"
        f" {lacking_in_words(case, replica, holder)} that {holder} holds."
    )


def lacking_in_words(case: Case, replica: int, holder: int) -> str:
    """How many offsets of one log another lacks; where the logs part is not always known."""
    if case.logs.agreement(holder, replica) is None:
        return "offsets"
    return plural(count_distinct(case.logs.missing(holder, replica)), "offset")
