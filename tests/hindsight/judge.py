"""Whether a claim was right, wrong, or honestly left open, by what then happened: pure, for simulated and real ones.

The strictest reading that a user would have counts. What is exact is judged as exact, a bound as a bound. A claim that
hangs on a condition is judged where the condition holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kelr.controller import RULE_SETS
from kelr.engine.planning.lost import Lost, lost_in_all
from kelr.model import (
    Bounds,
    Check,
    Consent,
    Decision,
    ElectedBy,
    ElectionType,
    Finding,
    Forecast,
    HoldDown,
    Loss,
    LossCertainty,
    Outcome,
    Passed,
    PlannedElection,
)
from tests.hindsight.claims import Claim, Kind
from tests.hindsight.hindsight import Happened, Moment, Truth


class Verdict(StrEnum):
    RIGHT = "right"
    UNKNOWN = "unknown"
    """It said that it does not know, or bounded it on one side only."""
    WRONG = "wrong"
    OPEN = "open"
    """Its condition did not hold, or something else happened first: nothing to judge."""


@dataclass(frozen=True, slots=True)
class Judged:
    claim: Claim
    verdict: Verdict
    truth: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A claim, what was, and what became of it."""

    claim: Claim
    truth: Truth
    happened: Happened

    @property
    def deleted_unseen(self) -> frozenset[int]:
        """Those of `lost` that were deleted on purpose, and no log that was read tells so: they were committed, and
        count as that or not."""
        return self.lost & self.truth.deleted_unseen

    @property
    def lost(self) -> frozenset[int]:
        """Records that were on some log, and are not in the leader's in the end."""
        return self.truth.held - self.happened.kept

    @property
    def gone(self) -> frozenset[int]:
        """Promised records that no log holds any more: kelr counts them where a high watermark tells of them."""
        return self.truth.promised - self.truth.held - self.happened.kept


def judge(claim: Claim, truth: Truth, happened: Happened) -> Judged:
    """What became of a claim."""
    case = Case(claim, truth, happened)
    if isinstance(claim.expects, Forecast) and not _as_forecast(claim.expects, case):
        return Judged(claim, Verdict.OPEN, "it returned in another manner, or something else happened before")
    verdict, text = _JUDGES[claim.kind](case)
    return Judged(claim, verdict, text)


_Answer = tuple[Verdict, str]


def _is(holds: bool, text: str) -> _Answer:
    return (Verdict.RIGHT, "") if holds else (Verdict.WRONG, text)


def _as_forecast(forecast: Forecast, case: Case) -> bool:
    """Whether the broker returned as the forecast has it, and nothing else had happened before."""
    return case.happened.returned is not None and case.truth.clean.get(forecast.replica) is forecast.clean


# Who leads.


def _winner(case: Case) -> _Answer:
    outcome: Outcome = case.claim.says
    if isinstance(case.claim.expects, frozenset):
        return _by_unread_logs(case)
    if outcome.elected is None:
        return _is(case.happened.leader is None, f"broker {case.happened.leader} was elected")
    if _unasked(case, outcome.elected):
        return Verdict.OPEN, "the recovery manager does not reach it, and nobody knew"
    return _is(case.happened.leader == outcome.elected, f"{_who(case.happened.leader)} instead of {outcome.elected}")


def _by_unread_logs(case: Case) -> _Answer:
    """Whoever the manager is said to ask may be elected, or nobody, who does not answer it either."""
    leader = case.happened.leader
    return (Verdict.UNKNOWN if leader in {None, *case.claim.expects} else Verdict.WRONG), _who(leader)


def _unasked(case: Case, elected: int) -> bool:
    """Whether it was to be elected by its log, which kelr has heard and the recovery manager cannot ask for."""
    by_name = case.claim.option.election is ElectionType.DESIGNATION
    return not by_name and case.happened.leader is None and elected in case.happened.out_of_reach


def _planned(case: Case) -> _Answer:
    if case.claim.about is not None and _unasked(case, case.claim.about):
        return Verdict.OPEN, "the recovery manager does not reach it, and nobody knew"
    return _is(case.happened.leader == case.claim.about, f"{_who(case.happened.leader)} instead of {case.claim.about}")


def _who(leader: int | None) -> str:
    return "nobody leads" if leader is None else f"broker {leader} leads"


def _by_itself(case: Case) -> _Answer:
    """In ten minutes Kafka's periodic task has run, and nothing else happens."""
    decision: Decision = case.claim.says
    if isinstance(case.claim.expects, frozenset):
        return _by_unread_logs(case)
    if decision.elected is None:
        return _is(case.happened.leader is None, f"{_who(case.happened.leader)}, and nobody did anything")
    if decision.elected_by is not ElectedBy.UNCLEAN:
        return Verdict.OPEN, "it is elected at the next event of this partition"
    # Of one that did not answer it has to say so: it may be gone.
    if decision.elected in case.happened.fenced and (case.claim.expects or "") in case.claim.sentence:
        return Verdict.OPEN, "it was gone, and nobody knew"
    return _is(case.happened.leader == decision.elected, f"{_who(case.happened.leader)} instead of {decision.elected}")


def _return(case: Case) -> _Answer:
    forecast: Forecast = case.claim.says
    stopped = case.truth.clean.get(forecast.replica)
    if (
        case.happened.returned is not None
        and None not in {case.claim.expects, stopped}
        and forecast.replica not in case.truth.outdated
        and stopped is not forecast.clean
    ):
        return Verdict.WRONG, f"its shutdown was {'clean' if stopped else 'unclean'}, and that is not foretold"
    if not _as_forecast(forecast, case) or _by_logs(forecast):
        return Verdict.OPEN, ""
    assert case.happened.returned is not None
    return _is(
        case.happened.returned.leader == forecast.elected,
        f"{_who(case.happened.returned.leader)}, not {forecast.elected}",
    )


def _return_sets(case: Case) -> _Answer:
    forecast: Forecast = case.claim.says
    if not _as_forecast(forecast, case) or _by_logs(forecast):
        return Verdict.OPEN, ""
    assert case.happened.returned is not None
    isr, elr = case.happened.returned.isr, case.happened.returned.elr or ()
    same = {*isr} == {*forecast.isr}
    if same and forecast.elr is None:
        return Verdict.UNKNOWN, f"the ELR is {elr}"
    told = f"ISR and ELR are {(isr, elr)}, not {(forecast.isr, forecast.elr)}"
    return _is(same and {*elr} == {*(forecast.elr or ())}, told)


def _by_logs(forecast: Forecast) -> bool:
    """It says that KIP-966's manager elects by logs that are not known yet."""
    return forecast.elected is None and forecast.warning.startswith("the best log is elected once")


def _waits_for(case: Case) -> _Answer:
    """Whoever is waited for is elected on its return: after a clean shutdown, if Kafka asks for that."""
    if case.happened.returned is None or case.claim.about is None:
        return Verdict.OPEN, ""
    if case.happened.returned.leader == case.claim.about:
        return Verdict.RIGHT, ""
    decision: Decision = case.claim.says
    by_logs = RULE_SETS[decision.rules].recovers and not (decision.isr or decision.elr)
    if by_logs and case.happened.returned.leader is not None:
        return Verdict.RIGHT, ""  # its log was waited for, and another may have the better one
    own = [forecast for forecast in decision.forecasts if forecast.replica == case.claim.about]
    only_if_clean = any(forecast.clean for forecast in own) and not case.truth.clean[case.claim.about]
    return (Verdict.OPEN, "") if only_if_clean else (Verdict.WRONG, _who(case.happened.returned.leader))


def _nobody_returns(case: Case) -> _Answer:
    if case.happened.returned is None:
        return Verdict.OPEN, ""
    leader = case.happened.returned.leader
    return _is(leader is None, f"{_who(leader)} after the return of {case.claim.about}")


# What is lost.


def _bounds(bounds: Bounds | None, count: int, text: str, *, gone: int = 0) -> _Answer:
    """`gone`: so many more may be counted."""
    if bounds is None:
        return Verdict.UNKNOWN, text
    if count + gone < bounds.at_least or (bounds.at_most is not None and count > bounds.at_most):
        return Verdict.WRONG, text
    return (Verdict.UNKNOWN if bounds.at_most is None else Verdict.RIGHT), text


def bounded(bounds: Bounds, count: int, *, gone: int = 0) -> Verdict:
    """Whether so many are within the bounds; `gone`: so many more may be counted."""
    return _bounds(bounds, count, "", gone=gone)[0]


def _ended(case: Case) -> bool:
    """Whether the replica that the loss is of was elected, and led on."""
    return case.happened.led_in_the_end is not None and case.happened.leader == case.claim.about


def _total(case: Case) -> _Answer:
    if not _ended(case):
        return Verdict.OPEN, ""
    loss: Loss = case.claim.says
    gone = case.lost
    if loss.grade is LossCertainty.PROVEN_NONE and loss.total is None:
        return Verdict.UNKNOWN, f"{len(gone)} records were lost"
    text = f"{len(gone)} records were lost, and {len(case.gone)} before, not {loss.total}"
    return _bounds(loss.total, len(gone), text, gone=len(case.gone))


def _committed(case: Case) -> _Answer:
    if not _ended(case):
        return Verdict.OPEN, ""
    loss: Loss = case.claim.says
    gone = case.lost & case.truth.promised
    if loss.grade in {LossCertainty.PROVEN_NONE, LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR}:
        gone -= case.truth.given_up
    text = f"{len(gone)} committed records were lost, and {len(case.gone)} before, not {loss.committed}"
    found = _bounds(loss.committed, len(gone), text, gone=len(case.gone))
    if found[0] is Verdict.WRONG and case.deleted_unseen:
        found = _bounds(loss.committed, len(gone | case.deleted_unseen), text, gone=len(case.gone))
    # "None, if fewer than min ISR replicas lost data": that is judged with the promise.
    conditional = loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR and len(case.truth.torn) >= (loss.min_isr or 1)
    return (Verdict.UNKNOWN, text) if conditional and found[0] is Verdict.WRONG else found


def _uncommitted(case: Case) -> _Answer:
    if not _ended(case):
        return Verdict.OPEN, ""
    loss: Loss = case.claim.says
    gone = case.lost - case.truth.promised
    text = f"{len(gone)} uncommitted records were lost, not {loss.uncommitted}"
    found = _bounds(loss.uncommitted, len(gone), text)
    if found[0] is Verdict.WRONG and loss.grade in {
        LossCertainty.PROVEN_NONE,
        LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR,
    }:
        # Those are not counted as committed (`_committed`), and so may be counted here.
        found = _bounds(loss.uncommitted, len(gone | (case.lost & case.truth.given_up)), text)
    if found[0] is Verdict.WRONG and case.deleted_unseen:
        found = _bounds(loss.uncommitted, len(gone - case.deleted_unseen), text)
    return found


def _promise(case: Case) -> _Answer:
    """Records that were promised are there, but for those that an earlier election gave up."""
    loss: Loss = case.claim.says
    if not _ended(case):
        return Verdict.OPEN, ""
    if loss.grade is LossCertainty.UNKNOWN:
        return Verdict.UNKNOWN, ""
    if loss.grade is LossCertainty.BOUNDED:
        return _committed(case)
    missing = case.truth.promised - case.truth.given_up - case.happened.kept
    text = f"{len(missing)} committed records are gone: offsets {_offsets(case, missing)}"
    if not missing:
        return Verdict.RIGHT, ""
    if loss.grade is LossCertainty.PROVEN_NONE or not case.truth.torn:
        return Verdict.WRONG, text
    return _conditional_promise(case, missing, text)


def _conditional_promise(case: Case, missing: frozenset[int], text: str) -> _Answer:
    """None is lost "of what was committed with min ISR 2, if fewer than 2 replicas lost data": an honest condition,
    unless it is known not to hold. Wrong where it holds, and some is lost."""
    seen = max(case.truth.marks.values(), default=0)
    refuted = sorted(
        case.truth.offsets[one] for one in missing if one in case.truth.offsets and case.truth.offsets[one] < seen
    )
    if refuted:
        return Verdict.WRONG, f"{text}; a high watermark of {seen} was there to see"
    loss, state, torn = case.claim.says, case.truth.state, len(case.truth.torn)
    # It is of what was committed with its min ISR, unless it is to be seen that this has been written since.
    written = (state.leader, state.isr, state.elr, state.last_known_elr) == (None, (), (), ())
    least = 1 if written or loss.min_isr is None else loss.min_isr
    held = {one: case.truth.promised_with.get(one, 0) for one in missing}
    broken = {one for one, number in held.items() if number >= least and torn < (loss.min_isr or number)}
    if broken:
        return Verdict.WRONG, f"{text}; lost by {sorted(case.truth.torn)} alone; min ISR was {sorted({*held.values()})}"
    return Verdict.UNKNOWN, text


def _offsets(case: Case, records: frozenset[int]) -> str:
    return str(sorted(case.truth.offsets.get(record, -1) for record in records))


def _ranges(case: Case) -> _Answer:
    """Each offset that is named is lost: of the best log, or below some high watermark."""
    if not _ended(case):
        return Verdict.OPEN, ""
    loss: Loss = case.claim.says
    gone = case.lost
    if loss.total is None:
        return Verdict.UNKNOWN, ""
    if loss.best is not None and loss.best in case.truth.logs:
        best = case.truth.logs[loss.best]
        named = {offset for first, last in loss.lost_ranges for offset in range(first, last + 1)}
        found = {offset for offset, record in best.items() if record in gone}
        if named != found:
            return Verdict.WRONG, f"of the best log {sorted(found)} were lost, not {sorted(named)}"
    held = {
        offset
        for log in case.truth.logs.values()
        for offset, record in log.items()
        if record in (gone & case.truth.promised) | case.deleted_unseen
    }
    held |= {case.truth.offsets[record] for record in case.gone if record in case.truth.offsets}
    named = {offset for first, last in loss.committed_ranges for offset in range(first, last + 1)}
    return _is(named <= held, f"committed offsets {sorted(held)} were lost, and {sorted(named)} are named")


def _best(case: Case) -> _Answer:
    loss: Loss = case.claim.says
    if loss.best is None or loss.behind_best is None or case.claim.about is None:
        return Verdict.UNKNOWN, ""
    own = set(case.truth.logs[case.claim.about].values())
    lacking = [
        record
        for record in case.truth.logs[loss.best].values()
        if record not in own and record not in case.truth.deleted
    ]
    return _is(len(lacking) == loss.behind_best, f"it lacks {len(lacking)} of {loss.best}'s, not {loss.behind_best}")


def _truncation(case: Case) -> _Answer:
    """What each heard replica gives up, once it has followed."""
    loss: Loss = case.claim.says
    if not _ended(case) or loss.total is None:
        return Verdict.OPEN, ""
    told = {one.replica: one for one in loss.truncations}
    wrong = []
    for replica, log in sorted(case.truth.logs.items()):
        if replica in loss.unheard or replica == case.claim.about or replica not in case.happened.logs:
            continue
        after = set(case.happened.logs[replica].values())
        gone = sorted(offset for offset, record in log.items() if record not in after)
        cut = [offset for offset in gone if log[offset] not in case.truth.deleted]
        count = told[replica].offsets if replica in told else 0
        # Records that were deleted on purpose elsewhere may be counted, since they go, too.
        if count not in {len(cut), len(gone)} or (count and cut and cut[0] < told[replica].from_offset):
            wrong.append(f"{replica} truncates {len(cut)}{f' from {cut[0]}' if cut else ''}, not {told.get(replica)}")
    return _is(not wrong, "; ".join(wrong))


# Advice.


def _all_clear(case: Case) -> _Answer:
    """Nothing is to be done: then nothing that kelr has seen on any log is lost where nothing is done, and the leader
    that answered is not gone."""
    if case.truth.state.leader in case.happened.fenced:
        return Verdict.OPEN, "its leader was gone, and nobody knew"
    if case.happened.led_in_the_end is None:
        return Verdict.WRONG, "nobody leads in the end"
    state = case.truth.state
    if len(state.isr) == 1 and len({*state.replicas} - {*(state.adding or ())}) > 1:
        return Verdict.WRONG, f"{state.isr[0]} alone is in sync, and without it nobody leads"
    seen = {record for replica in case.claim.expects for record in case.truth.logs.get(replica, {}).values()}
    gone = seen - case.truth.deleted - case.truth.deleted_unseen - case.happened.kept
    return _is(not gone, f"{len(gone)} records that it had seen were lost by doing nothing")


def _restore(case: Case) -> _Answer:
    """Once everybody is back the partition has min ISR again."""
    decision: Decision = case.claim.says
    led = case.happened.led_in_the_end is not None
    return _is(led or decision.min_isr is None, "nobody leads in the end")


def _is_down(case: Case) -> _Answer:
    """One that is up, and lacks this log's directory alone, is neither to be started nor kept down."""
    if case.truth.clean.get(case.claim.about or 0) is not None:
        return Verdict.RIGHT, ""
    if case.claim.about not in case.claim.expects:
        return Verdict.OPEN, "its log directory has failed, and it did not tell so"
    return Verdict.WRONG, "it is up, and its log directory has failed"


def _hold_advice(case: Case) -> _Answer:
    """Its return elects it, or another one as was foretold, with a log that lacks something; or nobody, and it cannot
    be designated then."""
    if case.happened.returned is None:
        return Verdict.OPEN, ""
    decision: Decision = case.claim.says
    if case.claim.option.election is not None:
        return _is(case.happened.leader != case.claim.about, f"{_who(case.happened.leader)} once it is designated")
    elected = {one.elected for one in decision.forecasts if one.replica == case.claim.about} or {case.claim.about}
    if case.happened.returned.leader not in elected - {None}:
        own = [one for one in decision.forecasts if one.replica == case.claim.about and one.elected == case.claim.about]
        conditional = bool(own) and all(one.clean is not case.truth.clean[one.replica] for one in own)
        return (Verdict.OPEN, "") if conditional else (Verdict.WRONG, _who(case.happened.returned.leader))
    return _is(bool(case.lost), "its return lost nothing")


# Plans.


def _consent(case: Case) -> _Answer:
    """A plain yes: nothing is lost that was committed; and nothing at all where nobody but the engineer chose."""
    planned: PlannedElection = case.claim.says
    if not _ended(case):
        return Verdict.OPEN, ""
    gone = case.lost
    committed = gone & case.truth.promised
    if planned.consent is Consent.FORCE:
        return Verdict.UNKNOWN, ""
    by_kafka = planned.elected_by in {ElectedBy.ISR, ElectedBy.ELR, ElectedBy.LEADER_STAYS}
    if planned.consent is Consent.YES:
        asked = committed if by_kafka else gone
        if planned.loss.unheard and asked:
            return Verdict.WRONG, f"a plain yes, and {len(asked)} records were lost"
        return _is(not asked, f"a plain yes, and {len(asked)} records were lost")
    most = None if planned.loss.total is None else planned.loss.total.at_most
    if most is None:
        return Verdict.UNKNOWN, ""
    return _is(len(gone) <= most, f"{most} accepted, {len(gone)} lost")


def _hold(case: Case) -> _Answer:
    hold: HoldDown = case.claim.says
    if case.claim.expects is not None and case.truth.clean[hold.broker] not in case.claim.expects:
        return Verdict.OPEN, ""
    if case.happened.returned is None:
        return Verdict.OPEN, ""
    if case.truth.clean[hold.broker] is None:
        return Verdict.OPEN, "its log directory has failed, which nothing tells while it is away"
    if case.happened.returned.leader not in {None, case.claim.about}:
        return Verdict.RIGHT, ""
    return _is(case.happened.leader != case.claim.about, f"broker {case.claim.about} is elected all the same")


def _no_hold(case: Case) -> _Answer:
    if case.happened.returned is None or case.claim.about not in case.happened.active:
        return Verdict.OPEN, ""
    if case.happened.returned.leader == case.claim.about:
        return Verdict.RIGHT, ""  # its return elects the same, and nothing is left to be done
    return _is(case.happened.leader == case.claim.about, f"{_who(case.happened.leader)} once it is back")


def _rescue(case: Case) -> _Answer:
    """It saves each record that a heard log holds and the elected one does not, once, and none that was deleted: but
    where the elected one begins behind a log's end, nothing shows whether it ever held what that has."""
    planned: PlannedElection = case.claim.says
    if planned.elect not in case.truth.logs or planned.evidence.leader is not None:
        return Verdict.OPEN, ""
    if planned.elect in planned.loss.unheard or planned.loss.total is None:
        return Verdict.UNKNOWN, ""
    own = set(case.truth.logs[planned.elect].values())
    wanted = {
        record
        for replica in case.claim.expects
        for record in case.truth.logs[replica].values()
        if record not in own and record not in case.truth.deleted
    }
    saved = [
        record
        for step in planned.rescue
        for offset, record in case.truth.logs[step.replica].items()
        if step.from_offset <= offset < step.to_offset
    ]
    evidence = {log.replica: log for log in planned.evidence.logs}
    begins = evidence[planned.elect].log_start or 0
    unshown = {step.replica for step in planned.rescue if (evidence[step.replica].log_end or 0) <= begins}
    may = {record for replica in unshown for record in case.truth.logs[replica].values()}
    problems = {
        "not saved": wanted - set(saved),
        "saved twice": {record for record in saved if saved.count(record) > 1},
        "saved and not lost": set(saved) & own,
        "saved and deleted on purpose": set(saved) & case.truth.deleted - may,
    }
    return _is(
        not any(problems.values()), "; ".join(f"{len(which)} {text}" for text, which in problems.items() if which)
    )


def _lost_afterwards(case: Case) -> _Answer:
    """What it says was lost is what is lost once everybody is back."""
    if not _ended(case):
        return Verdict.OPEN, ""
    told: Lost = case.claim.says
    gone = case.lost
    committed = gone & case.truth.promised
    text = f"{len(gone)} records were lost, {len(committed)} of them committed"
    found = [_bounds(told.of_all, len(gone), text, gone=len(case.gone))[0]]
    if not told.promised:
        found.append(_bounds(told.of_committed, len(committed), text, gone=len(case.gone))[0])
    wrong = _not_as_saved(case, told)
    if wrong:
        return Verdict.WRONG, wrong
    return next(one for one in (Verdict.WRONG, Verdict.UNKNOWN, Verdict.RIGHT) if one in found), text


def _not_as_saved(case: Case, told: Lost) -> str:
    """What is wrong with what it says of rescue files: they hold less of what is lost, or what they do not hold is lost
    of a log that is said to be in them; empty where nothing is."""
    planned, files = case.claim.expects
    held = {
        record
        for one in files
        for offset, record in case.truth.logs.get(one.replica, {}).items()
        if any(first <= offset < until for _, first, until in one.parts)
    }
    if told.saved > len(held & case.lost):
        return f"{len(held & case.lost)} records that are lost were saved"
    own = case.truth.logs.get(planned.elect, {}).values()
    read = {record for one in told.read_for_files for record in case.truth.logs.get(one, {}).values()}
    left = (read & case.lost) - held - set(own)
    return f"{len(left)} records are lost of a log that was saved" if left else ""


def _troubles(case: Case, planned: PlannedElection, moment: Moment) -> Mapping[Check, str]:
    """What is really not well at a moment after a planned election, by the check that is to find it."""
    leader, replicas, found = moment.state.leader, moment.state.replicas, {}
    if replicas != planned.restores:
        found[Check.ORDER] = f"the replicas are {replicas}"
    if leader is None or leader not in moment.live or leader not in moment.logs:
        return {**found, Check.LEADER: _who(leader)}
    own = set(moment.logs[leader].values())
    kept = set(case.truth.logs.get(planned.elect, {}).values()) - case.truth.deleted - case.truth.deleted_unseen
    if leader != planned.elect and (kept - own or planned.elect not in moment.state.isr):
        found[Check.LEADER] = f"{_who(leader)} without {len(kept - own)} records of {planned.elect}"
    out = sorted(moment.live - {*moment.state.isr})
    if out or moment.refuses:
        found[Check.ISR] = f"{out} are live and not in sync; in sync are {moment.state.isr}"
    others = [replica for replica in sorted(moment.live) if replica != leader and replica in moment.logs]
    more = {replica: set(moment.logs[replica].values()) - own - case.truth.deleted for replica in others}
    if any(more.values()):
        found[Check.TRUNCATED] = f"what the leader lacks: {more}"
    if (leader == planned.elect and kept - own) or any(more[one] for one in others if one in moment.state.isr):
        found[Check.LOGS] = f"{len(kept - own)} records are gone of the elected log; beside the leader's: {more}"
    return found


def _checked(case: Case) -> _Answer:
    """What is well, is, and what is not, is not. Where a log was silent it waits without knowing."""
    finding: Finding = case.claim.says
    planned, moment = case.claim.expects
    trouble = _troubles(case, planned, moment).get(finding.check)
    if finding.passed is Passed.YES:
        return _is(trouble is None, trouble or "")
    if finding.passed is Passed.NO:
        return _is(trouble is not None, "nothing is wrong with it")
    return (Verdict.UNKNOWN if trouble is None or finding.passed is Passed.UNKNOWN else Verdict.RIGHT), ""


def _verified(case: Case) -> _Answer:
    """Where all is well, nothing was lost, and nothing will be; where it is not, something is the matter, was lost, or
    is still away."""
    planned, moment, told = case.claim.expects
    lost: Lost | None = told
    well = all(one.passed is Passed.YES and not one.remark for one in case.claim.says)
    troubles = {} if moment is None else _troubles(case, planned, moment)
    if well and lost is not None and lost_in_all([lost]).nothing:
        if not _ended(case):
            return Verdict.OPEN, ""
        return _is(not case.lost and not troubles, f"all is well, and {len(case.lost)} records are lost; {troubles}")
    away = moment is not None and set(moment.state.replicas) - moment.live
    if troubles or away or (_ended(case) and case.lost):
        return Verdict.RIGHT, ""
    return (Verdict.UNKNOWN if _ended(case) else Verdict.OPEN), ""


def _refused(case: Case) -> _Answer:
    """What Kafka would do is not refused. A leader that is only recorded, without its log directory, is none."""
    leader, wanted, was = case.happened.leader, case.claim.about, case.truth.state
    serves = leader in case.happened.active and leader not in (was.offline_replicas or ())
    anew = leader is not None and leader != was.leader and serves
    elected = anew and wanted in {None, leader}
    return _is(not elected, f"Kafka elects {leader}")


def _not_needed(case: Case) -> _Answer:
    return _is(case.happened.leader == case.truth.state.leader, f"{_who(case.happened.leader)} after it")


_JUDGES: Mapping[Kind, Callable[[Case], _Answer]] = {
    Kind.WINNER: _winner,
    Kind.BY_ITSELF: _by_itself,
    Kind.RETURN: _return,
    Kind.RETURN_SETS: _return_sets,
    Kind.WAITS_FOR: _waits_for,
    Kind.NOBODY_RETURNS: _nobody_returns,
    Kind.PROMISE: _promise,
    Kind.TOTAL: _total,
    Kind.COMMITTED: _committed,
    Kind.UNCOMMITTED: _uncommitted,
    Kind.RANGES: _ranges,
    Kind.BEST: _best,
    Kind.TRUNCATION: _truncation,
    Kind.ALL_CLEAR: _all_clear,
    Kind.RESTORE: _restore,
    Kind.HOLD_ADVICE: _hold_advice,
    Kind.IS_DOWN: _is_down,
    Kind.ANY_RETURN: _nobody_returns,
    Kind.PLANNED: _planned,
    Kind.CONSENT: _consent,
    Kind.HOLD: _hold,
    Kind.NO_HOLD: _no_hold,
    Kind.RESCUE: _rescue,
    Kind.LOST_AFTERWARDS: _lost_afterwards,
    Kind.CHECKED: _checked,
    Kind.VERIFIED: _verified,
    Kind.REFUSED: _refused,
    Kind.NOT_NEEDED: _not_needed,
}
