"""What to say and do around the advice to start a broker: what its return truncates, and what comes next.

A return is an option like an election. Whoever leads then, the others follow, and give up what that one's log lacks:
the last moment to save it is before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kelr.engine.advice.commands import read_the_disk, save_first, watch_it
from kelr.engine.advice.findings import Findings
from kelr.engine.case import Case
from kelr.engine.forecast import elected_in_company
from kelr.engine.logs import ranges_of, without_parts
from kelr.engine.words import agree, brokers, joined, offsets_in_words, plural
from kelr.model import Advice, AdviceAction, Decision, ElectedBy, Forecast, Loss, Parts, Truncation


def with_its_return(case: Case, found: Findings, advice: Advice, replica: int) -> Advice:
    """The advice to start this replica's broker, with what that truncates, what saves it first, and what comes next."""
    found_advice = _with_what_it_truncates(case, found, advice, replica)
    cut_off = unsaved_cut_off(case, replica)
    if not cut_off:
        return found_advice
    where = offsets_in_words(ranges_of((start, end) for _, start, end in cut_off))
    text = (
        f"First save what the disk of broker {replica} holds beyond a damaged batch, {where}: Kafka deletes that when"
        f" it starts. {found_advice.text}"
    )
    returns = [one for one in found.forecasts if one.replica == replica]
    return replace(found_advice, text=text, rescue=rescue_of_return(case, returns))


def unsaved_cut_off(case: Case, replica: int) -> Parts:
    """What Kafka deletes from the replica's disk when it starts (`ReplicaLog.cut_off`); empty where rescue files hold
    all of it."""
    log = case.logs.ranked.get(replica)
    parts = frozenset(() if log is None else log.cut_off)
    return frozenset() if holding(case, parts) else parts


def _with_what_it_truncates(case: Case, found: Findings, advice: Advice, replica: int) -> Advice:
    returns = [one for one in found.forecasts if one.replica == replica]
    # Reading a disk that nobody has read; else starting the broker comes first, and then looking what that has done.
    advice = replace(advice, command=watch_it(case) if replica in case.logs.ranked else read_the_disk(replica))
    if advice.designate is None and replica in case.logs.ranked and returns and all(map(_is_designated_then, returns)):
        advice = replace(advice, designate=replica)
    rescue = rescue_of_return(case, returns)
    if replica not in case.logs.ranked:
        text = f"{save_what_it_may_truncate(replica)} {advice.text}" if rescue else advice.text
        files = () if rescue else _hold_what_may_go(case)
        if files:
            part = "what the others hold above their high watermarks, or differently from each other"
            text += f" {saved_already(files, part)} If its machine crashed, its return may truncate more."
        return replace(advice, text=text, rescue=rescue)
    worst = next((one for one in returns if one.costs is not None and one.costs.truncations), None)
    if worst is None or worst.costs is None or worst.leads is None:
        return advice
    left, files = unsaved(case, worst.costs.truncations, worst.leads)
    saved = [one for one in worst.costs.truncations if one not in left]
    if files:
        advice = replace(advice, text=f"{advice.text} {saved_already(files, cuts_in_words(saved))}")
    if not left:
        return advice
    cuts = cuts_in_words(left)
    if worst.elected is None and elected_in_company(case, replica):
        text = f"First save what the others truncate once broker {replica} leads: {cuts}. {advice.text}"
    elif worst.elected is None:
        text = f"{advice.text} Before you designate it, save what the others then truncate: {cuts}."
    else:
        text = f"First save what its return truncates: {cuts}. {advice.text}"
    return replace(advice, text=text, rescue=rescue)


def rescue_of_return(case: Case, returns: Sequence[Forecast]) -> tuple[str, ...]:
    """The command that saves what a broker's return truncates, or where its log was not read may truncate, before it
    starts, or before it is designated; empty where no log that was heard is truncated, and none was cut off."""
    cut = next((one.replica for one in returns if unsaved_cut_off(case, one.replica)), None)
    if cut is not None:
        leader = next((one.leads for one in returns if one.leads is not None), cut)
        from_disk = leader not in {cut, *case.electable}
        return save_first((case.name,), leader, on_disks=True, led_from_disk=from_disk)
    unread = next((one.replica for one in returns if one.elected == one.replica not in case.logs.ranked), None)
    if unread is not None:
        holders = {one for one in case.logs.ranked if case.logs.perhaps_truncated(one)}
        if not holders or _hold_what_may_go(case):
            return ()
        return save_first((case.name,), unread, on_disks=bool(holders - case.electable))
    worst = next((one for one in returns if one.costs is not None and one.costs.truncations), None)
    if worst is None or worst.leads is None:
        return ()
    if worst.elected is None and not elected_in_company(case, worst.replica):
        case = replace(case, electable=case.electable | {worst.replica})
    return rescue_before(case, worst.leads, worst.costs)


def save_what_it_may_truncate(replica: int) -> str:
    """What to do before a broker starts whose log nobody has read. It counts nothing, so that a plan says it once of
    all partitions; the rescue counts."""
    return (
        "First save what the others hold above their high watermarks, or differently from each other: the log of broker"
        f" {replica} was not read, so its return may truncate that, or more after a crash (exit code 7)."
    )


def while_others_are_down(case: Case, replica: int) -> str:
    """``while broker 2 is down, ``: the condition under which the replica's return elects nobody; empty for none."""
    others = sorted(elected_in_company(case, replica))
    return f"while {brokers(others)} {agree(len(others), 'is', 'are')} down, " if others else ""


def kept_down_beside(case: Case, replica: int) -> tuple[int, ...]:
    """Absent brokers that stay down until this one, whose return alone elects nobody, is designated: beside it they get
    somebody elected whose log lacks what this one's holds."""
    company = elected_in_company(case, replica)
    leaders = frozenset[int]().union(*company.values())
    return () if all(holds_all_of(case, leader, replica) for leader in leaders) else tuple(sorted(company))


def and_in_company(case: Case, replica: int) -> str:
    """The end of what is said of a return that alone elects nobody: whom it elects with others back, too."""
    company = elected_in_company(case, replica)
    if not company:
        return ""
    leaders = sorted(frozenset[int]().union(*company.values()))
    elects = f"back, too, Kafka elects {joined(leaders, 'or')} at once"
    others = brokers(sorted(company))
    if not kept_down_beside(case, replica):
        return f". With {others} {elects}"
    return f". Keep {others} down until {replica} leads: with {agree(len(company), 'it', 'them')} {elects}"


def holds_all_of(case: Case, leader: int, replica: int) -> bool:
    """Whether the leader's log is known to lack nothing of the replica's."""
    heard = {leader, replica} <= case.logs.ranked.keys()
    return leader == replica or (
        heard and case.logs.agreement(replica, leader) is not None and not case.logs.missing(replica, leader)
    )


def rescue_before(case: Case, leader: int, loss: Loss | None) -> tuple[str, ...]:
    """The command that saves what others truncate to follow this leader; empty where no log that was heard does, or
    rescue files hold all of it."""
    left, _ = ([], ()) if loss is None else unsaved(case, loss.truncations, leader)
    if not left:
        return ()
    away = {cut.replica for cut in left} - case.electable
    return save_first((case.name,), leader, on_disks=bool(away), led_from_disk=leader not in case.electable)


def unsaved(case: Case, cuts: Sequence[Truncation], leader: int) -> tuple[list[Truncation], tuple[str, ...]]:
    """Which of these truncations no rescue file covers, and the files that cover the others. A record is the same one
    wherever it was saved from: only one leader writes in an epoch."""
    left, used = [], dict[str, None]()
    for cut in cuts:
        comparable = {cut.replica, leader} <= case.logs.ranked.keys()
        files = holding(case, case.logs.missing(cut.replica, leader)) if comparable else ()
        used.update(dict.fromkeys(files))
        left += [] if files else [cut]
    return left, tuple(sorted(used))


def holding(case: Case, records: Parts) -> tuple[str, ...]:
    """The rescue files that hold all of these records between them; none where they do not."""
    rest, used = sorted(records), list[str]()
    for one in case.saved:
        fewer = without_parts(rest, one.parts | one.covered)
        used += [one.file] if fewer != rest else []
        rest = fewer
    return () if rest else tuple(dict.fromkeys(used))


def saved_already(files: Sequence[str], what: str) -> str:
    """What need not be saved again, in a sentence: the manifest of a file says what it holds."""
    return f"Saved already, as {joined(files)} {agree(len(files), 'says', 'say')}: {what}."


def _hold_what_may_go(case: Case) -> tuple[str, ...]:
    """The rescue files that hold all that a leader whose log nobody read may have the others truncate."""
    return holding(case, frozenset[tuple[int, int, int]]().union(*map(case.logs.perhaps_truncated, case.logs.ranked)))


def cuts_in_words(cuts: Sequence[Truncation]) -> str:
    """``225 offsets of broker 3, from 160 on, and 5 offsets of broker 2, from 380 on``."""
    return joined(
        f"{plural(cut.offsets, 'offset')} of broker {cut.replica}, from {cut.from_offset} on," for cut in cuts
    )[:-1]


def _is_designated_then(back: Forecast) -> bool:
    """Whether a broker leads once it is back and somebody designates it, and not before."""
    if back.elected is None:
        return back.leads == back.replica
    return back.elected_by is ElectedBy.LEADER_STAYS and back.elected != back.replica


def started(decision: Decision) -> tuple[int, ...]:
    """The brokers that the advice is to start; empty where it is another, or speaks of any."""
    advice = decision.advice
    if advice.action is not AdviceAction.BRING_BACK or advice.replica is None:
        return ()
    return advice.start or (advice.replica,)


def is_elected_by_nobody(decision: Decision) -> bool:
    """Whether the brokers that the advice is to start return without an election, so that one is designated then."""
    returns = [one for one in decision.forecasts if one.replica in started(decision)]
    return bool(returns) and all(one.elected is None and one.then is not None for one in returns)
