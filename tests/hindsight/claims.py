"""What kelr claims of a partition, taken from the values behind its output: each with the option in whose hindsight it
is judged.

A claim holds the very value that the output is made of, so that it is the product's own, and not its prose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kelr.engine.forecast import undecided_returns
from kelr.engine.loss import lost_data
from kelr.engine.loss_words import cost_in_words
from kelr.engine.planning.lost import lost_by
from kelr.engine.planning.plan import plan_partition
from kelr.engine.planning.seen import Seen
from kelr.engine.planning.subject import Subject, subject_of
from kelr.engine.planning.verification import findings
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.model import (
    AdviceAction,
    Check,
    Decision,
    ElectedBy,
    ElectionRequest,
    ElectionType,
    Forecast,
    HoldReason,
    Loss,
    Method,
    NotPlanned,
    Outcome,
    PlannedElection,
    SavedLog,
    Situation,
    Snapshot,
    TopicPartition,
    Unplanned,
)
from kelr.view.broker_order import unwelcome
from kelr.view.explain_summary import starts_of
from tests.hindsight.hindsight import WAIT, Moment, Option


class Kind(StrEnum):
    """Kinds of claims: the rows of the table."""

    WINNER = "who an election elects"
    BY_ITSELF = "whom Kafka elects by itself now"
    RETURN = "whom a return elects"
    RETURN_SETS = "ISR and ELR after a return"
    WAITS_FOR = "whose return brings the leader back"
    NOBODY_RETURNS = "no return brings a leader"
    PROMISE = "nothing committed is lost (grade)"
    TOTAL = "offsets lost in all"
    COMMITTED = "committed offsets lost"
    UNCOMMITTED = "uncommitted offsets lost"
    RANGES = "which offsets are lost"
    BEST = "the best log, and what the elected one lacks of it"
    TRUNCATION = "what each replica truncates"
    ALL_CLEAR = "nothing to do"
    RESTORE = "who is to be brought back for min ISR"
    HOLD_ADVICE = "whom to keep down"
    IS_DOWN = "that a broker to start, or to keep down, is down"
    ANY_RETURN = "brokers whose return elects nobody"
    PLANNED = "who a planned election elects"
    CONSENT = "the consent that is asked for"
    HOLD = "who must stay down until the election is done"
    NO_HOLD = "who may come back before it"
    RESCUE = "what a rescue saves"
    FENCED = "whether a plan may still be carried out once a broker is back"
    CHECKED = "what a verification finds, check by check"
    VERIFIED = "the verdict of a verification"
    LOST_AFTERWARDS = "what an election lost, told after it"
    ADVICE = "the advice, followed to the letter"
    RESCUED = "what rescues on the way leave lost"
    WHAT_IF = "a broker's failure or shutdown that is imagined"
    SERVED = "whether producers with acks=all are served"
    OUTAGE = "how many partitions the loss of one or two brokers stops"
    CHECKUP = "what doctor finds of a partition, and foretells"
    REPORT = "who was affected by a report's looks, and for how long"
    REPORT_LOST = "what a report of two looks says was lost"
    REFUSED = "an election that is refused"
    NOT_NEEDED = "an election that is not needed"
    OPEN_TRANSACTION = "an open transaction ends by itself"
    LOST_MARKER = "whose election loses the end of a transaction"
    HANGING = "whether a transaction hangs, told after it"
    GROUPS = "where consumer groups go on, told after it"


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that kelr says of one partition and that hindsight can judge."""

    kind: Kind
    address: TopicPartition
    option: Option
    """What has to happen for it to be judged."""
    says: Any
    """The value: a Loss, an Outcome, a HoldDown, ..."""
    about: int | None = None
    """The replica that it is about, or that is to be elected."""
    sentence: str = ""
    """In the product's words."""
    known: bool = True
    """Whether all logs were known when it was made: then "unknown" was not the best answer."""
    expects: Any = None
    """What else the judge has to know of it."""


def _all_known(subject: Subject) -> bool:
    """Whether everything that logs can tell was known: nobody leads, so that none goes on; all were read, and can be
    compared; and none is known to have been cut, since nothing tells what it held besides."""
    case = subject.case
    ranked = case.logs.ranked
    whole = subject.live_leader is None and ranked.keys() >= set(case.state.replicas) and not lost_data(case)
    return whole and all(case.logs.agreement(one, other) is not None for one in ranked for other in ranked)


def option_of(outcome: Outcome, *, natively: bool) -> Option | None:
    """How this election is carried out; None where it elects nobody by kelr's own rules alone.

    Args:
        natively: the controller takes every type of election.
    """
    by_logs = outcome.election in {ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE}
    if outcome.election in {ElectionType.PREFERRED, ElectionType.UNCLEAN} or (natively and by_logs):
        return Option(election=outcome.election)
    if outcome.designate is None:
        return None
    return Option(election=ElectionType.DESIGNATION, desired=outcome.designate)


def claims_of_decision(snapshot: Snapshot, decision: Decision) -> Iterator[Claim]:
    """Everything that a decision says and hindsight can judge."""
    address = TopicPartition(decision.topic, decision.partition)
    subject = subject_of(snapshot, decision)
    assert subject is not None
    known = _all_known(subject)
    for outcome in decision.elections:
        yield from _of_outcome(decision, outcome, known=known, natively=subject.case.rules.recovers)
    manners = Counter(forecast.replica for forecast in decision.forecasts)
    for forecast in decision.forecasts:
        yield from _of_forecast(address, forecast, only=manners[forecast.replica] == 1, known=known)
    if decision.leader is None:
        text = decision.summary
        expects = _asked_by_the_manager(decision, decision) or subject.case.silence_of(decision.elected)
        yield Claim(Kind.BY_ITSELF, address, WAIT, decision, decision.elected, text, expects=expects)
        yield from _of_returns(address, decision)
    yield from _of_advice(address, decision, subject)


def _of_outcome(decision: Decision, outcome: Outcome, *, known: bool, natively: bool) -> Iterator[Claim]:
    address = TopicPartition(decision.topic, decision.partition)
    option = option_of(outcome, natively=natively)
    if option is None or outcome.elected_by is ElectedBy.LEADER_STAYS:
        return
    sentence = f"{outcome.election} elects {outcome.elected} ({outcome.elected_by}); {outcome.note}"
    asked = _asked_by_the_manager(decision, outcome)
    yield Claim(Kind.WINNER, address, option, outcome, outcome.elected, sentence, expects=asked)
    if outcome.loss is not None and outcome.elected is not None:
        yield from claims_of_loss(address, option, outcome.loss, outcome.elected, sentence, known=known)


def _asked_by_the_manager(decision: Decision, what: Decision | Outcome) -> frozenset[int] | None:
    """Live replicas of which the recovery manager may elect any, where nobody can say which; None elsewhere."""
    unread = elects_by_unread_logs(decision, what)
    return frozenset(one.replica for one in decision.candidates if one.live) if unread else None


def _of_forecast(address: TopicPartition, forecast: Forecast, *, only: bool, known: bool) -> Iterator[Claim]:
    option = Option(returns=(forecast.replica,))
    how = "clean" if forecast.clean else "unclean"
    sentence = f"{how} return of {forecast.replica}: elects {forecast.elected} ({forecast.elected_by})"
    alone = "the only manner" if only else None
    yield Claim(Kind.RETURN, address, option, forecast, forecast.replica, sentence, expects=alone)
    yield Claim(Kind.RETURN_SETS, address, option, forecast, forecast.replica, sentence)
    if forecast.loss is not None and forecast.elected is not None:
        for claim in claims_of_loss(address, option, forecast.loss, forecast.elected, sentence, known=known):
            yield _conditional(claim, forecast)
    if forecast.then is not None and forecast.then.designate is not None:
        again = Option((forecast.replica,), ElectionType.DESIGNATION, forecast.then.designate)
        text = f"{sentence}; then {forecast.then.election} elects {forecast.then.elected}"
        yield Claim(Kind.WINNER, address, again, forecast.then, forecast.then.elected, text, expects=forecast)
        if forecast.then.loss is not None and forecast.then.elected is not None:
            for claim in claims_of_loss(address, again, forecast.then.loss, forecast.then.elected, text, known=known):
                yield _conditional(claim, forecast)


def _conditional(claim: Claim, forecast: Forecast) -> Claim:
    """A forecast is about one manner of return: it counts where the broker did stop so."""
    return Claim(
        claim.kind, claim.address, claim.option, claim.says, claim.about, claim.sentence, claim.known, forecast
    )


def claims_of_loss(
    address: TopicPartition, option: Option, loss: Loss, elected: int, sentence: str, *, known: bool
) -> Iterator[Claim]:
    """What a loss says, in the hindsight of the option that has it."""
    sentence = f"{sentence}: it {cost_in_words(loss)} ({loss.grade}: {loss.reason})"
    kinds = [Kind.PROMISE, Kind.TOTAL, Kind.COMMITTED, Kind.UNCOMMITTED, Kind.RANGES, Kind.BEST, Kind.TRUNCATION]
    for kind in kinds:
        yield Claim(kind, address, option, loss, elected, sentence, known)


def _of_returns(address: TopicPartition, decision: Decision) -> Iterator[Claim]:
    """Whom it waits for, and that nobody else's return brings a leader."""
    for broker in () if "waits for all of" in decision.summary else decision.waits_for:
        yield Claim(Kind.WAITS_FOR, address, Option(returns=(broker,)), decision, broker, decision.summary)
    if not decision.waits_for and decision.elected is None and decision.situation is Situation.NEEDS_UNCLEAN_RECOVERY:
        for broker in decision.replicas:
            option = Option(returns=(broker,))
            yield Claim(Kind.NOBODY_RETURNS, address, option, decision, broker, decision.summary)


def _of_advice(address: TopicPartition, decision: Decision, subject: Subject) -> Iterator[Claim]:
    advice, text = decision.advice, f"{decision.advice.text} {decision.advice.alternative}".strip()
    for broker in sorted({*starts_of(decision), *unwelcome(decision)} - {*advice.stop}):
        yield Claim(Kind.IS_DOWN, address, WAIT, decision, broker, text, expects=subject.case.without_directory)
    if advice.action is AdviceAction.NOTHING:
        yield Claim(Kind.ALL_CLEAR, address, WAIT, decision, None, text, expects=_comparable(subject))
    elif advice.action is AdviceAction.RESTORE_REPLICATION:
        yield Claim(Kind.RESTORE, address, WAIT, decision, None, text)
    elif advice.action is AdviceAction.HOLD and advice.replica is not None and not advice.stop:
        option = Option(returns=(advice.replica,))
        if {one.elected for one in decision.forecasts if one.replica == advice.replica} == {None}:
            option = Option((advice.replica,), ElectionType.DESIGNATION, advice.replica)
        yield Claim(Kind.HOLD_ADVICE, address, option, decision, advice.replica, text)
    elif (
        advice.action is AdviceAction.GET_MORE_INFORMATION
        and decision.situation is Situation.NEEDS_UNCLEAN_RECOVERY
        and subject.case.logs.ranked
        and not subject.case.former_members
    ):
        for broker in subject.case.logs.unranked:
            yield Claim(Kind.ANY_RETURN, address, Option(returns=(broker,)), decision, broker, text)


def _comparable(subject: Subject) -> tuple[int, ...]:
    """Replicas of whose logs it is known what the leader's lacks."""
    logs, leader = subject.case.logs, subject.live_leader
    if leader is None or leader not in logs.ranked:
        return ()
    return tuple(one for one in sorted(logs.ranked) if logs.agreement(one, leader) is not None)


# Plans.


def wishes_of(decision: Decision, gone: frozenset[int]) -> Sequence[ElectionRequest]:
    """What people ask for: what kelr recommends, the same with brokers gone for good, and each kind of election."""
    kinds = (
        ElectionType.PREFERRED,
        ElectionType.UNCLEAN,
        ElectionType.LONGEST_LOG_BALANCED,
        ElectionType.LONGEST_LOG_AGGRESSIVE,
    )
    designations = (ElectionRequest(ElectionType.DESIGNATION, replica) for replica in decision.replicas)
    return (ElectionRequest(), ElectionRequest(gone=gone), *map(ElectionRequest, kinds), *designations)


Planned = PlannedElection | NotPlanned | None


def planned_of(snapshot: Snapshot, decision: Decision, wish: ElectionRequest) -> Planned:
    """What a plan has for one partition."""
    subject = subject_of(snapshot, decision)
    assert subject is not None
    return plan_partition(subject, wish)


def claims_of_plan(snapshot: Snapshot, decision: Decision, wish: ElectionRequest, found: Planned) -> Iterator[Claim]:
    """What a plan says of one partition."""
    subject = subject_of(snapshot, decision)
    assert subject is not None
    if isinstance(found, PlannedElection):
        yield from _of_planned(subject, found)
    elif isinstance(found, NotPlanned):
        if found.action in {AdviceAction.BRING_BACK, AdviceAction.HOLD}:
            up = subject.case.without_directory
            for broker in sorted({*found.brokers, *found.keep_down} - {*found.stop}):
                yield Claim(Kind.IS_DOWN, found.address, WAIT, found, broker, found.reason, expects=up)
        yield from _of_not_planned(subject, found, wish)


def option_of_planned(planned: PlannedElection) -> Option:
    if planned.method is Method.PREFERRED:
        return Option(election=ElectionType.PREFERRED)
    if planned.method is Method.UNCLEAN:
        return Option(election=ElectionType.UNCLEAN)
    return Option(election=ElectionType.DESIGNATION, desired=planned.elect)


def _of_planned(subject: Subject, planned: PlannedElection) -> Iterator[Claim]:
    address, option, elect = planned.address, option_of_planned(planned), planned.elect
    known = _all_known(subject)
    sentence = f"plan ({planned.election}): {planned.reason}"
    yield Claim(Kind.PLANNED, address, option, planned, elect, sentence)
    if planned.evidence.leader is None:
        yield from claims_of_loss(address, option, planned.loss, elect, sentence, known=known)
        yield Claim(Kind.CONSENT, address, option, planned, elect, f"{sentence} Consent: {planned.consent}", known)
    heard = tuple(sorted(subject.case.logs.ranked))
    rescue = f"{sentence} Rescue: {planned.rescue}"
    yield Claim(Kind.RESCUE, address, option, planned, elect, rescue, known, expects=heard)
    if subject.live_leader is not None:
        return
    held = {one.broker: one for one in planned.hold}
    for broker in subject.case.absent:
        again = Option((broker,), option.election, option.desired)
        if broker in held:
            hold = held[broker]
            manners = frozenset(
                forecast.clean
                for forecast in subject.decision.forecasts
                if forecast.replica == broker and forecast.elected not in {None, elect}
            )
            # Without a forecast that elects another, the sentence is about the moment of the election, with no if.
            always = not manners and hold.reason is HoldReason.ISR_OR_ELR
            expects = None if always or hold.reason is HoldReason.FIRST_IN_ORDER else manners
            blind = subject.state.elr is None and subject.case.rules.elr
            if blind or broker in undecided_returns(subject.case):
                expects = frozenset()  # whether it elects another is not known, and the text says so
            yield Claim(Kind.HOLD, address, again, hold, elect, hold.text, expects=expects)
        else:
            text = f"{sentence} Hold: {[one.broker for one in planned.hold]}, not {broker}"
            yield Claim(Kind.NO_HOLD, address, again, planned, elect, text)


def _of_not_planned(subject: Subject, found: NotPlanned, wish: ElectionRequest) -> Iterator[Claim]:
    if wish.election is None:
        return
    option = Option(election=wish.election, desired=-1 if wish.desired_leader is None else wish.desired_leader)
    sentence = f"{wish.election} of {wish.desired_leader}: {found.reason}"
    if wish.election not in {ElectionType.PREFERRED, ElectionType.UNCLEAN, ElectionType.DESIGNATION}:
        return
    if found.why is Unplanned.REFUSED:
        state = subject.state
        # What kelr will not do beside somebody else's reassignment, or without knowing whom Kafka would elect.
        blind = state.elr is None or subject.case.config.error is not None
        blind = blind or state.adding is None or bool(state.adding or state.removing)
        outcome = subject.outcome(wish.election)
        blind = blind or (outcome is not None and elects_by_unread_logs(subject.decision, outcome))
        if not blind:
            yield Claim(Kind.REFUSED, found.address, option, found, wish.desired_leader, sentence)
    elif found.why is Unplanned.NOT_NEEDED:
        yield Claim(Kind.NOT_NEEDED, found.address, option, found, found.leader, sentence)


def claims_of_verification(
    planned: PlannedElection,
    seen: Seen,
    when: str,
    moment: Moment | None = None,
    files: tuple[SavedLog, ...] = (),
) -> Iterator[Claim]:
    """What a verification says once a planned election has been carried out, or while it is.

    Args:
        moment: how the partition really stands then; None where that cannot be told.
        files: what was saved before.
    """
    option, sentence = option_of_planned(planned), f"verified {when}, plan ({planned.election}) elects {planned.elect}"
    found = tuple(one for one in findings(planned, seen) if one.check not in _OF_CLIENTS)
    lost = lost_by(planned, seen)
    said = "; ".join(f"{one.check} {one.passed}: {one.text}" for one in found)
    address, elect, known = planned.address, planned.elect, not planned.loss.unheard and not planned.loss.lost_data
    for one in found if moment is not None else ():
        text = f"{sentence}: {one.check} {one.passed}: {one.text}"
        yield Claim(Kind.CHECKED, address, option, one, elect, text, known, (planned, moment))
    if lost is not None:
        yield Claim(
            Kind.LOST_AFTERWARDS, address, option, lost, elect, f"{sentence}: lost {lost}", known, (planned, files)
        )
    yield Claim(
        Kind.VERIFIED, address, option, found, elect, f"{sentence}: {said}", known, expects=(planned, moment, lost)
    )


_OF_CLIENTS = frozenset({Check.LAST_STABLE_OFFSET, Check.GROUPS})
"""Judged by themselves (`client_claims`): other things hang on them than on the logs."""
