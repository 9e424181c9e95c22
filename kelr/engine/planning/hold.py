"""Brokers that have to stay down until an election is done: their return elects another replica before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from kelr.controller import Election, RecoveryStrategy, broker_unfenced, elect_leaders
from kelr.engine.case import Case
from kelr.engine.elections import designation_of, elected_by
from kelr.engine.forecast import (
    MOST_TOGETHER,
    after_return,
    after_returns,
    elected_by_logs,
    shutdowns,
    undecided_returns,
)
from kelr.engine.planning.choice import Choice
from kelr.engine.planning.refusals import is_advised_to_start
from kelr.engine.planning.subject import Subject
from kelr.engine.recovery.prediction import heard_logs, run_now
from kelr.engine.words import agree, brokers
from kelr.model import ElectedBy, ElectionType, Forecast, HoldDown, HoldReason, Loss, LossCertainty, Method

_UNTIL_DONE = "until this is done"
_NOBODY: tuple[bool, tuple[int | None, ElectedBy | None]] = (False, (None, None))

_REASONS = {
    ElectedBy.LAST_KNOWN_LEADER: HoldReason.LAST_KNOWN_LEADER,
    ElectedBy.ISR: HoldReason.ISR_OR_ELR,
    ElectedBy.ELR: HoldReason.ISR_OR_ELR,
    # A leader that is gone and still recorded is in the ISR, and leads on.
    ElectedBy.LEADER_STAYS: HoldReason.ISR_OR_ELR,
    ElectedBy.UNCLEAN: HoldReason.FIRST_IN_ORDER,
    ElectedBy.LONGEST_LOG: HoldReason.RECOVERY,
}

_ROLES = {
    ElectedBy.LAST_KNOWN_LEADER: " as the last known leader",
    ElectedBy.ISR: " as a member of the ISR",
    ElectedBy.ELR: " as a member of the ELR",
    ElectedBy.LEADER_STAYS: " as the leader that is still recorded",
    ElectedBy.UNCLEAN: " as the first live replica in the assignment",
    ElectedBy.LONGEST_LOG: " as the one with the best log",
}


def hold_of(subject: Subject, choice: Choice, method: Method) -> tuple[HoldDown, ...]:
    """The brokers whose return, alone or together, makes another replica the leader before the election or in it. What
    their disks tell of how they stopped counts; where none was read, both ways do."""
    if subject.live_leader is not None:
        return ()
    alone = [_hold(subject, choice, method, replica) for replica in subject.case.returning]
    held = {hold.broker: hold for hold in alone if hold is not None}
    held |= _held_together(subject, choice, method, [one for one in subject.case.returning if one not in held])
    found = (held[replica] for replica in subject.case.returning if replica in held)
    return tuple(replace(one, directory=one.broker in subject.case.without_directory) for one in found)


def _returns(case: Case, replica: int) -> str:
    """How a replica comes back: with its broker, or to a broker that is up."""
    return "restarts with its log directory" if replica in case.without_directory else "returns"


def _return_of(case: Case, replica: int) -> str:
    up = replica in case.without_directory
    return f"a restart of broker {replica} with its log directory" if up else f"the return of broker {replica}"


def _is_back(case: Case, replica: int) -> str:
    return f"broker {replica} {'has its log directory' if replica in case.without_directory else 'is'} back"


def _keep(case: Case, replica: int) -> str:
    """The end of each sentence: what to do about it."""
    up = replica in case.without_directory
    return f"{'leave its log directory offline' if up else 'keep it down'} {_UNTIL_DONE}"


def _hold(subject: Subject, choice: Choice, method: Method, replica: int) -> HoldDown | None:
    forecasts = [one for one in subject.decision.forecasts if one.replica == replica]
    case = subject.case
    if replica in undecided_returns(case):
        text = (
            f"Whether {_return_of(case, replica)} elects another before the election is not known, since one is due by"
            f" itself: {_keep(case, replica)}."
        )
        by = elected_by(broker_unfenced(subject.state, replica, subject.case.around))
        return HoldDown(replica, HoldReason.RECOVERY if by is None else _REASONS[by], text)
    if not forecasts and method is not Method.PREFERRED:
        text = (
            f"Whether {_return_of(case, replica)} elects it is not known, since ELR and LastKnownELR are not:"
            f" {_keep(case, replica)}."
        )
        return HoldDown(replica, HoldReason.ISR_OR_ELR, text)
    another = next((one for one in forecasts if one.elected not in {None, choice.elect}), None)
    if another is not None and another.elected_by is not None:
        return HoldDown(replica, _REASONS[another.elected_by], _text(subject, choice, forecasts))
    if _logs_may_decide(subject.case, method, replica):
        text = (
            f"The recovery manager may elect another, by logs that it asks for, if broker {replica}"
            f" {_returns(case, replica)} before the election: {_keep(case, replica)}."
        )
        return HoldDown(replica, HoldReason.RECOVERY, text)
    found = {
        one.clean: _elected_then(after_return(subject.case, replica, clean=one.clean), choice, method)
        for one in forecasts
    }
    clean, (leader, by) = next(
        ((clean, who) for clean, who in found.items() if who[0] not in {None, choice.elect}), _NOBODY
    )
    if by is None:
        return _nobody_then(subject, method, replica, found)
    how = "" if len(set(found.values())) == 1 else f" after {'a clean' if clean else 'an unclean'} shutdown"
    what = f"that elects {_who(replica, leader, by)}{', even if its log holds less' if by is ElectedBy.UNCLEAN else ''}"
    text = f"If {_is_back(case, replica)}{how} when the election runs, {what}: {_keep(case, replica)}."
    return HoldDown(replica, _REASONS[by], text)


def _logs_may_decide(case: Case, method: Method, replica: int) -> bool:
    """Whether KIP-966's manager compares logs of which one is not known here, once the replica is back."""
    if not case.rules.recovers:
        return False
    asked_by_hand = method in {Method.UNCLEAN, Method.LONGEST_LOG} and replica not in heard_logs(case)
    return asked_by_hand or any(elected_by_logs(case, replica, clean=clean) for clean in shutdowns(case, replica))


def _strategy(choice: Choice) -> RecoveryStrategy:
    """How the manager elects where an operator asks: KIP-966 answers an unclean election with an aggressive one."""
    return (
        RecoveryStrategy.BALANCED if choice.kind is ElectionType.LONGEST_LOG_BALANCED else RecoveryStrategy.AGGRESSIVE
    )


def _nobody_then(
    subject: Subject, method: Method, replica: int, found: Mapping[bool, tuple[int | None, ElectedBy | None]]
) -> HoldDown | None:
    """A broker whose return leaves the planned election nobody to elect: Kafka 4.0 then records "no leader" as last
    known leader, and elects by it."""
    by_requests = method in {Method.UNCLEAN, Method.REORDER} and not subject.case.rules.recovers
    backs = (after_return(subject.case, replica, clean=clean) for clean, (leader, _) in found.items() if leader is None)
    if not by_requests or not any(back.state.leader is None for back in backs):
        return None
    back = _is_back(subject.case, replica)
    text = f"If {back} when the election runs, that elects no leader: {_keep(subject.case, replica)}."
    return HoldDown(replica, HoldReason.LAST_KNOWN_LEADER, text)


def _elected_then(back: Case, choice: Choice, method: Method) -> tuple[int | None, ElectedBy | None]:
    """Whom the planned requests make the leader of a partition as it is once somebody is back."""
    if back.state.leader is not None or method not in {Method.UNCLEAN, Method.LONGEST_LOG, Method.REORDER}:
        return None, None
    if back.rules.recovers:
        change = run_now(back, asked_for=_strategy(choice))
        return change.after.leader, elected_by(change)
    if method is Method.REORDER:
        outcome = designation_of(back, choice.elect)
        return outcome.elected, outcome.elected_by
    change = elect_leaders(back.state, Election.UNCLEAN, back.around).change
    return change.after.leader, elected_by(change)


def _held_together(subject: Subject, choice: Choice, method: Method, harmless: Sequence[int]) -> Mapping[int, HoldDown]:
    """Those that may each return alone, but not all of a few: the last of the ELR to return uncleanly empties it, and
    the last known leader is elected then."""
    held: dict[int, HoldDown] = {}
    if subject.case.rules.recovers:
        return held
    for count in range(2, min(len(harmless), MOST_TOGETHER) + 1):
        for group in combinations(harmless, count):
            if held.keys() & set(group):
                continue
            found = next(_undone_by(subject.case, choice, method, group), None)
            if found is not None:
                leader, by = found
                both = agree(count - 1, "both", "all")
                up = {*group} & {*subject.case.without_directory}
                keep = "keep one of these replicas offline" if up else "keep one of them down"
                text = (
                    f"If {brokers(group)} are {both} back before the election, Kafka elects broker"
                    f" {leader}{_ROLES.get(by, '')}: {keep} {_UNTIL_DONE}."
                )
                held |= {replica: HoldDown(replica, _REASONS[by], text) for replica in group}
    return held


def _undone_by(case: Case, choice: Choice, method: Method, group: tuple[int, ...]) -> Iterator[tuple[int, ElectedBy]]:
    """Others than the wanted replica that lead once all of the group are back, in whatever order and however they
    stopped."""
    for back, returned_by in after_returns(case, group):
        leader, by = back.state.leader, returned_by
        if leader is None:
            leader, by = _elected_then(back, choice, method)
        if leader is not None and leader != choice.elect and by is not None:
            yield leader, by


def _text(subject: Subject, choice: Choice, forecasts: Sequence[Forecast]) -> str:
    replica = forecasts[0].replica
    ways = {one.clean: _what_is_elected(choice, one) for one in forecasts}
    what = ways[min(ways)]
    if len(set(ways.values())) > 1:
        what = f"after a clean shutdown {ways[True]}; after an unclean one {what}"
    keep = _keep(subject.case, replica)
    if not choice.advice and is_advised_to_start(subject, replica):
        keep = "the advice is to bring it back instead; for this election keep it down until it is done"
    return f"If broker {replica} {_returns(subject.case, replica)} before the election, {what}: {keep}."


def _what_is_elected(choice: Choice, forecast: Forecast) -> str:
    """``Kafka elects it as a member of the ELR, with all that was committed``; ``its return elects no leader``."""
    if forecast.elected is None:
        return "its return elects no leader"
    less = f", which loses less than electing {choice.elect}" if loses_less(forecast.loss, choice.loss) else ""
    return f"Kafka elects {who_is_elected(forecast)}{_holding(forecast) or _whatever(forecast) or less}"


def who_is_elected(forecast: Forecast) -> str:
    """``it as a member of the ELR``, ``broker 3 as the last known leader``."""
    return _who(forecast.replica, forecast.elected, forecast.elected_by)


def _who(returning: int, leader: int | None, by: ElectedBy | None) -> str:
    who = "it" if leader == returning else f"broker {leader}"
    return who if by is None else f"{who}{_ROLES.get(by, '')}"


def _holding(forecast: Forecast) -> str:
    proven = forecast.loss is not None and forecast.loss.grade is LossCertainty.PROVEN_NONE
    return ", with all that was committed" if proven else ""


def _whatever(forecast: Forecast) -> str:
    """Nothing where its log is known: the loss is counted then."""
    known = forecast.loss is not None and forecast.loss.counted
    return "" if known else ", even if its log was cut"


def loses_less(one: Loss | None, other: Loss) -> bool:
    """Whether one loss is known to be less than another: by its grade, or counted to the end."""
    if one is None or one.grade is LossCertainty.UNKNOWN:
        return False
    if one.grade is LossCertainty.PROVEN_NONE:
        return other.grade is not LossCertainty.PROVEN_NONE and _counts_or_may(other)
    most = _most_of_what_is_left(one)
    return most is not None and other.total is not None and most < other.total.at_least


def _most_of_what_is_left(loss: Loss) -> int | None:
    """The most that is lost of what some log still holds: what those lost that have lost data, every option loses."""
    if loss.total is None:
        return None
    cut = loss.lost_data or loss.may_have_lost
    return loss.total.at_least if cut and not loss.unheard else loss.total.at_most


def _counts_or_may(loss: Loss) -> bool:
    """Whether something is, or may be, lost."""
    return loss.total is None or loss.total.at_most is None or loss.total.at_most > 0
