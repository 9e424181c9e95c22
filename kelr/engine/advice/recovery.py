"""What to do about a partition without leader under the whole of KIP-966, where the recovery manager elects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kelr.controller import Recovery, RecoveryStrategy, Standing
from kelr.engine.advice.absent_logs import (
    best_absent,
    in_its_place,
    least_doubtful,
    read_again_first,
    stay_down,
    with_disks_to_read_again,
)
from kelr.engine.advice.commands import watch_it
from kelr.engine.advice.findings import Findings
from kelr.engine.advice.lost_directory import and_not, mend, not_without_the_data, with_their_logs
from kelr.engine.advice.returns import with_its_return
from kelr.engine.advice.words import and_the_others_truncate, until_the_outage_costs_more
from kelr.engine.case import Case
from kelr.engine.loss import lost_data, min_isr_of_the_promise, on_fewer
from kelr.engine.loss_words import cost_in_words, promise_in_words
from kelr.engine.recovery.prediction import recovery_now, rivals
from kelr.engine.words import agree, brokers, ids, joined
from kelr.model import Advice, AdviceAction, ElectedBy, ElectionType, Situation


def advise_under_kip966(case: Case, found: Findings) -> Advice:
    """The advice for a partition without leader.

    There are no lines for public tools: no release has these rules, nor the requests that they come with. Where the
    cluster has them all the same (ElectLeaders v3), an election that is advised comes with its command.
    """
    command = watch_it(case)
    if found.elected is not None:
        return Advice(AdviceAction.WAIT, _elected(found), found.elected, command=command)
    if found.situation is Situation.UNKNOWN:
        text = "ELR and LastKnownELR could not be read, and this decision needs them: see the notes for the reason."
        return Advice(AdviceAction.GET_MORE_INFORMATION, text, command=("describe", case.name))
    recovery = recovery_now(case)
    again = _to_read_again(case, recovery)
    if again and {*again} == {*_members(case)}:
        advice = with_disks_to_read_again(case, read_again_first(case, found, again))
        return replace(advice, alternative=_alternative(found), designate=None)
    action, text, replicas = _TABLE[recovery.standing](case, recovery, found)
    if again:
        text += stay_down(again, replicas)
    if action is AdviceAction.LONGEST_LOG_BALANCED and case.cluster.features.elects_natively:
        command = ("elect", "--election-type", ElectionType.LONGEST_LOG_BALANCED.value, case.name)
    stands_still = action is AdviceAction.BRING_BACK
    replica = replicas[0] if replicas else None
    advice = Advice(
        action,
        text,
        replica,
        "" if action is AdviceAction.LONGEST_LOG_BALANCED else _alternative(found),
        command=command,
        until=until_the_outage_costs_more(case, found.best_designation) if stands_still else "",
        start=replicas if stands_still else (),
        keep_down=again,
    )
    if stands_still and replica is not None:
        advice = with_its_return(case, found, advice, replica)
    return with_disks_to_read_again(case, advice)


def _elected(found: Findings) -> str:
    if found.elected_by is not ElectedBy.LONGEST_LOG:
        return (
            f"Kafka elects {found.elected} at its next event for this partition:"
            " run kelr explain again in a few seconds."
        )
    loss = next((one.loss for one in found.outcomes if one.elected == found.elected and one.loss is not None), None)
    return (
        f"The recovery manager elects {found.elected}, which {cost_in_words(loss)}:"
        " run kelr explain again in a few seconds."
    )


_Said = tuple[AdviceAction, str, tuple[int, ...]]
"""What to do, in words, and the brokers that this is about."""


def _member(case: Case, recovery: Recovery, found: Findings) -> _Said:
    name, named = ("ISR", case.state.isr) if case.state.isr else ("ELR", case.elr)
    whole = _members(case)
    if not whole:
        return AdviceAction.HOLD, not_without_the_data(case, named), named[:1]
    again = _to_read_again(case, recovery)
    members = least_doubtful(case, tuple(replica for replica in whole if replica not in again))
    text = f"Start {_one_of(members)}. {in_its_place(case, found, name, members)}"
    if all(map(case.stopped_uncleanly, members)):
        were = agree(len(members), "it was", "they were")
        text = (
            f"Start {brokers(members)}: {were} not shut down cleanly, so the return elects no leader from the {name}."
        )
    text += and_not(tuple(filter(case.logs.lost_directory, named)))
    if name == "ELR":
        text += (
            " After an unclean one it moves to LastKnownELR; once the ELR is empty, the recovery strategy decides"
            f" ({case.rules.recovery})."
        )
    return AdviceAction.BRING_BACK, text, members


def _members(case: Case) -> tuple[int, ...]:
    """Those that ISR or ELR names, whose log directories are not known to have failed."""
    return with_their_logs(case, case.state.isr or case.elr)


def _to_read_again(case: Case, recovery: Recovery) -> tuple[int, ...]:
    """Those of whom the partition waits for one, and whose disks what was read lacks committed records: unless it is
    read again Kafka elects them all the same (`KnownLogs.read_lacking`)."""
    waits = recovery.standing is Standing.WAITS_FOR_MEMBER
    return tuple(filter(case.logs.read_lacking, _members(case))) if waits else ()


def _operator(case: Case, _recovery: Recovery, found: Findings) -> _Said:
    """The strategy is none: an operator has to ask for an election, best a balanced one."""
    none = "unclean.recovery.strategy is none: Kafka elects no leader before you choose."
    balanced = found.outcome(ElectionType.LONGEST_LOG_BALANCED)
    if balanced is not None and balanced.elected is not None:
        text = f"{none} longest_log_balanced elects {balanced.elected}, which {cost_in_words(balanced.loss)}."
        return AdviceAction.LONGEST_LOG_BALANCED, text, (balanced.elected,)
    quorum = case.recovery_quorum
    then = f"{none} With {ids(quorum)} live, longest_log_balanced elects the best log: {_promise(case, quorum)}."
    absent = tuple(replica for replica in quorum if replica not in case.electable)
    if absent:
        return _bring_back(case, quorum, absent, then)
    unheard = tuple(replica for replica in quorum if replica in case.logs.unranked)
    if not unheard and balanced is not None:
        unheard = balanced.waits_for
    return (
        AdviceAction.GET_MORE_INFORMATION,
        f"Learn what {joined(unheard)} {agree(len(unheard), 'holds', 'hold')}. {then}",
        (),
    )


def _quorum(case: Case, recovery: Recovery, _found: Findings) -> _Said:
    promise = _not_waited_for(case, recovery) or _promise(case, recovery.quorum)
    then = f"The recovery needs {ids(recovery.quorum)} live, asks for their logs then, and elects the best: {promise}."
    return _bring_back(case, recovery.quorum, recovery.not_live, then)


def _bring_back(case: Case, quorum: tuple[int, ...], absent: tuple[int, ...], then: str) -> _Said:
    """Those of the quorum that are not live are started; or, where a broker is up without this log's directory, that is
    mended.

    Args:
        then: what that is for, as a sentence.
    """
    up = tuple(replica for replica in absent if replica in case.without_directory)
    down = tuple(replica for replica in absent if replica not in up)
    if not down:
        return AdviceAction.HOLD, f"{mend(up)} {then}", up
    outside, start = _better_outside(case, quorum)
    mended = f" {mend(up)}" if up else ""
    return AdviceAction.BRING_BACK, f"{start} {brokers(down)}{_all(down)}.{mended} {then}", (*outside, *down)


def _better_outside(case: Case, quorum: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """The absent replica with a better log than the whole recovery quorum is known to have, if there is one, and how
    the sentence begins that has the quorum brought back. It is elected if it is live when the quorum has answered, and
    truncates if not."""
    best = best_absent(case)
    if best is None or best in quorum or not case.logs.ranked.keys() >= {*quorum}:
        return (), "Start"
    why = "only live replicas count in the recovery, and of the logs that were read its own is the most complete"
    return (best,), f"Start broker {best} first: {why}. Then start"


def _promise(case: Case, quorum: tuple[int, ...]) -> str:
    """What the best log of these replicas promises, unless too many of them are known to have lost data."""
    lost = tuple(replica for replica in lost_data(case) if replica in quorum)
    if case.min_isr is not None and len(lost) >= case.min_isr:
        return f"nothing is promised, since {brokers(lost)} {agree(len(lost), 'has', 'have')} lost committed data"
    fewer = on_fewer(case)
    return f"nothing is promised: {fewer}" if fewer else promise_in_words(min_isr_of_the_promise(case))


def _not_waited_for(case: Case, recovery: Recovery) -> str:
    """Who may hold more than LastKnownELR, where that has fewer than min ISR members: the recovery does not ask."""
    others = tuple(replica for replica in case.recovery_quorum if replica not in recovery.quorum)
    return f"{brokers(others)} may hold more and {agree(len(others), 'is', 'are')} not waited for" if others else ""


def _logs(case: Case, recovery: Recovery, _found: Findings) -> _Said:
    if recovery.strategy is RecoveryStrategy.BALANCED:
        logs = agree(len(recovery.unheard), "the log", "the logs")
        others = _not_waited_for(case, recovery)
        after = f": {others}" if others else ""
        text = (
            f"The recovery manager asks for {logs} of {brokers(recovery.unheard)}, and elects the best when it knows"
            f"{after}."
        )
        return AdviceAction.WAIT, text, recovery.unheard[:1]
    if case.live:
        text = f"The recovery manager asks {brokers(case.live)}, and elects the best log of those that answer."
        return AdviceAction.WAIT, text, ()
    best = case.logs.best
    text = (
        "Start the replica with the most complete log first: the strategy is aggressive, so Kafka elects the first to"
        f" answer{and_the_others_truncate(case)}."
    )
    if best is not None:
        text += f" Of the logs that are known, that is the one of {best.replica}."
    return AdviceAction.BRING_BACK, text, () if best is None else (best.replica,)


def _ready(case: Case, recovery: Recovery, found: Findings) -> _Said:
    choice = recovery.choice
    assert choice is not None  # its standing says so
    designation = found.best_designation
    cost = (
        "" if designation is None or designation.designate != choice else f", which {cost_in_words(designation.loss)}"
    )
    text = (
        f"The recovery manager elects {choice}{cost}: run kelr explain again in a few seconds. If"
        f" {joined(rivals(case, recovery), 'or')} still shows a better log, that one."
    )
    return AdviceAction.WAIT, text, (choice,)


def _all(members: tuple[int, ...]) -> str:
    return agree(len(members), "", ", all of them")


def _alternative(found: Findings) -> str:
    """Electing the best log of those that answer, where the partition cannot wait."""
    best = found.best_designation
    if best is None:
        return ""
    how = "a designation" if best.election is ElectionType.DESIGNATION else str(best.election)
    return f"If that cannot be done: {how} elects {best.designate}, which {cost_in_words(best.loss)}."


def _one_of(members: tuple[int, ...]) -> str:
    return f"broker {joined(sorted(members), 'or')}"


_TABLE: dict[Standing, Callable[[Case, Recovery, Findings], _Said]] = {
    Standing.WAITS_FOR_MEMBER: _member,
    Standing.WAITS_FOR_OPERATOR: _operator,
    Standing.WAITS_FOR_QUORUM: _quorum,
    Standing.WAITS_FOR_LOGS: _logs,
    Standing.READY: _ready,
}
