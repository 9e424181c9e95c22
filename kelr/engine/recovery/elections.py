"""What each kind of election would give under the whole of KIP-966 (ElectLeaders v3)."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.controller import RULE_SETS, Election, Recovery, RecoveryStrategy, change_partition
from kelr.engine.case import Case
from kelr.engine.elections import elected_by, kafka_election, nobody_to_designate, not_needed
from kelr.engine.loss import loss_of_electing
from kelr.engine.recovery.prediction import awaited, recovery_now, rivals, run_now, unless_better
from kelr.engine.rule_docs import DESIGNATED_IS_LIVE
from kelr.engine.steps import steps_of
from kelr.engine.words import agree, brokers, joined
from kelr.model import Decision, ElectedBy, ElectionType, Outcome

_RECOVERIES = {
    # The unclean election of older requests: "it will be replaced by the unclean recovery".
    ElectionType.UNCLEAN: RecoveryStrategy.AGGRESSIVE,
    ElectionType.LONGEST_LOG_BALANCED: RecoveryStrategy.BALANCED,
    ElectionType.LONGEST_LOG_AGGRESSIVE: RecoveryStrategy.AGGRESSIVE,
}


def outcomes_under_kip966(case: Case) -> tuple[Outcome, ...]:
    """One outcome for each election type, and for a designation one for each live replica, in assignment order."""
    return (kafka_election(case, Election.PREFERRED), *_leaderless_only(case))


def _leaderless_only(case: Case) -> Iterator[Outcome]:
    """All but the preferred election need a partition without leader, whether that leader is live or not."""
    for kind in ElectionType:
        if kind is ElectionType.PREFERRED:
            continue
        if case.state.leader is not None:
            yield not_needed(case, kind)
        elif kind is not ElectionType.DESIGNATION:
            yield _by_logs(case, kind, _RECOVERIES[kind])
        elif case.live:
            yield from (_designation(case, replica) for replica in case.live)
        else:
            yield nobody_to_designate(case)


def _by_logs(case: Case, kind: ElectionType, strategy: RecoveryStrategy) -> Outcome:
    """An unclean recovery that an operator asks for, the known logs being the answers."""
    recovery, change = recovery_now(case, asked_for=strategy), run_now(case, asked_for=strategy)
    leader = change.after.leader
    waits_for = () if leader is not None else awaited(case, recovery)
    return Outcome(
        kind,
        leader,
        elected_by(change),
        steps_of(case, change.ballot, asked_for=True, recovery=strategy),
        None if leader is None else loss_of_electing(case, leader),
        waits_for,
        designate=recovery.choice,
        note=_waits(case, recovery, waits_for),
    )


def _waits(case: Case, recovery: Recovery, waits_for: tuple[int, ...]) -> str:
    if not waits_for:
        return ""
    others = rivals(case, recovery)
    if recovery.choice is not None and others:
        return f"elects {recovery.choice} {unless_better(others)}"
    if case.electable.issuperset(waits_for):
        return f"the recovery manager asks {brokers(waits_for)} for {agree(len(waits_for), 'its log', 'their logs')}"
    return f"waits for {joined(waits_for, 'or' if recovery.strategy is RecoveryStrategy.AGGRESSIVE else 'and')}"


def elects_by_unread_logs(decision: Decision, what: Decision | Outcome) -> bool:
    """Whether live replicas tell the recovery manager by their logs whom to elect, and those logs are not known here:
    then nobody can say whom, and "nobody" would be wrong.

    Args:
        what: one of the decision's elections, or the decision itself for whom Kafka elects unasked.
    """
    live = {one.replica for one in decision.candidates if one.live}
    asked = RULE_SETS[decision.rules].recovers and what.elected is None and bool(what.waits_for)
    return asked and live.issuperset(what.waits_for)


def _designation(case: Case, replica: int) -> Outcome:
    """Elect this replica or nobody: the request names it, and no order has to be changed for it."""
    change = change_partition(case.state, case.around, election=Election.ONLINE, recovered=replica)
    step = DESIGNATED_IS_LIVE.step(True, f"broker {replica} is {case.status(replica)}")
    other = change.after.leader
    if other == replica:
        loss = loss_of_electing(case, replica)
        return Outcome(ElectionType.DESIGNATION, replica, ElectedBy.DESIGNATION, (step,), loss, designate=replica)
    note = f"elects no leader: {other} may lead cleanly, and is elected at the next event" if other is not None else ""
    steps = (step, *steps_of(case, change.ballot, asked_for=True))
    return Outcome(ElectionType.DESIGNATION, None, steps=steps, designate=replica, note=note)
