"""What each kind of election would give now."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.controller import Change, Election, change_partition, elect_leaders, replicas_in_order, replicas_reordered
from kelr.engine.case import Case
from kelr.engine.loss import loss_of_electing, loss_on_paper
from kelr.engine.loss_words import not_read
from kelr.engine.quorum_words import held_everything
from kelr.engine.reordering import cordoned_in_words, kept_cordoned, left_out, needs_reordering
from kelr.engine.rule_docs import (
    ANY_REPLICA_HEARD,
    BEST_LOG,
    BEST_LOG_IS_LIVE,
    DESIGNATED_IS_LIVE,
    LOGS_CAN_BE_RANKED,
    RECOVERY_QUORUM_HEARD,
)
from kelr.engine.steps import standing_of, steps_of
from kelr.engine.words import agree, former_in_words, ids, joined
from kelr.model import Bounds, BrokerStatus, ElectedBy, ElectionType, Loss, LossCertainty, Outcome, PartitionState, Step


def outcomes_of(case: Case) -> tuple[Outcome, ...]:
    """One outcome for each election type, and for a designation one for each live replica, in assignment order."""
    kafka = (kafka_election(case, Election.PREFERRED), kafka_election(case, Election.UNCLEAN))
    if case.state.leader is not None and case.cluster.status(case.state.leader) is BrokerStatus.LIVE:
        return (*kafka, *(not_needed(case, kind) for kind in _LEADERLESS_ONLY))
    designations = {replica: designation_of(case, replica) for replica in case.live}
    each = tuple(designations.values()) or (nobody_to_designate(case),)
    return (*kafka, *each, _balanced(case, designations), _aggressive(case, designations))


_LEADERLESS_ONLY = (
    ElectionType.DESIGNATION,
    ElectionType.LONGEST_LOG_BALANCED,
    ElectionType.LONGEST_LOG_AGGRESSIVE,
)


def elected_by(change: Change) -> ElectedBy | None:
    """The rule that made the leader; a leader that the ELR supplied counts as elected from the ELR."""
    rule = change.elected.rule
    if rule is None or change.elected.leader is None:
        # Kafka 4.0 elects a stored "no leader" by a rule.
        return None
    if rule.by is ElectedBy.ISR and change.elected.leader not in change.ballot.isr:
        return ElectedBy.ELR
    return rule.by


def kafka_election(case: Case, election: Election) -> Outcome:
    """ElectLeaders of type PREFERRED or UNCLEAN, exactly as the controller answers it."""
    kind = ElectionType.PREFERRED if election is Election.PREFERRED else ElectionType.UNCLEAN
    found = case.alike.outcomes.get((kind, None), lambda: _kafka_election(case, kind, election))
    return found if found.elected in {None, case.state.leader} else _with_its_loss(case, found)


def _kafka_election(case: Case, kind: ElectionType, election: Election) -> Outcome:
    answer = elect_leaders(case.state, election, case.around)
    if answer.error == "ELECTION_NOT_NEEDED":
        return not_needed(case, kind)
    change = answer.change
    return Outcome(
        election=kind,
        elected=change.after.leader,
        elected_by=elected_by(change),
        steps=steps_of(case, change.ballot, asked_for=True),
        note=_note(case, kind, answer.error, change.after.leader),
    )


def _with_its_loss(case: Case, found: Outcome) -> Outcome:
    """What partitions that stand alike have in common, with what this one loses."""
    if found.elected is None:
        return found
    return Outcome(
        found.election,
        found.elected,
        found.elected_by,
        found.steps,
        _loss_of(case, found.elected),
        designate=found.designate,
        note=found.note,
    )


def _loss_of(case: Case, elected: int) -> Loss:
    on_paper = None if elected in case.electable else loss_on_paper(case, elected)
    return on_paper or _handed_over(case, elected) or loss_of_electing(case, elected)


def _handed_over(case: Case, elected: int) -> Loss | None:
    """The loss where a live leader hands over to a member of its ISR; None for another election.

    The logs that were read say nothing then: they grow while they are read, one after the other, and the follower that
    was read first only seems to lack committed records. What only a replica out of sync holds was lost before. One
    that does not answer may be gone, and the leader with it: what it holds once it is back, and who leads by then, the
    controller's records do not tell.
    """
    if case.state.leader not in case.electable or elected not in case.state.isr or case.logs.lost_directory(elected):
        return None
    silence = case.silence_of(elected)
    if silence is not None:
        reason = f"{elected} is in the ISR, but did not answer ({silence}): it may be gone, and lead on paper only"
        return Loss(LossCertainty.UNKNOWN, unheard=(elected,), reason=reason)
    reason = f"{elected} is in the ISR, so it holds all that was committed"
    return Loss(LossCertainty.PROVEN_NONE, committed=Bounds(0, 0), reason=reason)


def _note(case: Case, kind: ElectionType, error: str, leader: int | None) -> str:
    if leader is None:
        return f"Kafka refuses: {error}"
    if leader not in case.electable:
        return f"broker {leader} is {case.status(leader)}: it would be the recorded leader only"
    if kind is ElectionType.PREFERRED and leader != case.state.replicas[0]:
        return f"the preferred replica, {case.state.replicas[0]}, cannot lead now"
    return ""


def not_needed(case: Case, kind: ElectionType) -> Outcome:
    leader = case.state.leader
    leads = f"broker {leader} leads" if leader in case.electable else f"recorded leader {leader}"
    return Outcome(kind, leader, ElectedBy.LEADER_STAYS, note=f"not needed: {leads}")


def designation_of(case: Case, replica: int) -> Outcome:
    """Designate one replica on released Kafka: reorder, elect uncleanly, restore.

    It works on a partition without a leader, and on one whose leader is not live: an unclean election is refused there
    as not needed, but the reordering runs an election that takes the leadership off such a leader.
    """
    found = case.alike.outcomes.get((ElectionType.DESIGNATION, replica), lambda: _designation_of(case, replica))
    return _with_its_loss(case, found)


def _designation_of(case: Case, replica: int) -> Outcome:
    stuck = kept_cordoned(case) if needs_reordering(case, replica) else ()
    if stuck:
        is_live = DESIGNATED_IS_LIVE.step(replica in case.electable, f"broker {replica} is {case.status(replica)}")
        note = cordoned_in_words(case, stuck)
        return Outcome(ElectionType.DESIGNATION, None, steps=(is_live,), designate=replica, note=note)
    reordered = _put_first(case, replica)
    change = reordered
    if reordered.after.leader is None:
        change = elect_leaders(reordered.after, Election.UNCLEAN, case.around).change
    leader = _leader_once_restored(case, change.after)
    steps = (
        DESIGNATED_IS_LIVE.step(replica in case.electable, f"broker {replica} is {case.status(replica)}"),
        *steps_of(case, change.ballot, asked_for=True),
    )
    note = ""
    if leader != replica:
        note = "Kafka would elect no leader" if leader is None else f"Kafka would elect {leader} instead"
    if leader is None and change.after.leader is not None:
        dead = change.after.leader
        note = (
            f"Kafka would elect {dead}, which is {case.status(dead)}, and there is no leader once the order is restored"
        )
    by = None if leader is None else ElectedBy.DESIGNATION if leader == replica else elected_by(change)
    return Outcome(ElectionType.DESIGNATION, leader, by, steps, designate=replica, note=note)


def _leader_once_restored(case: Case, state: PartitionState) -> int | None:
    """Who leads once the replicas have their order back. That is an election, too, and takes the leadership off a
    leader that is not live: Kafka 4.0 elects such a one (KAFKA-19522)."""
    order = tuple(one for one in case.state.replicas if one in state.replicas)
    return state.leader if order == state.replicas else replicas_in_order(state, order, case.around).after.leader


def _put_first(case: Case, replica: int) -> Change:
    """The reordering of a designation; replicas that no order may name are left out, which removes them."""
    gone = left_out(case)
    if not gone or not needs_reordering(case, replica):
        return replicas_reordered(case.state, replica, case.around)
    kept = (other for other in case.state.replicas if other not in {replica, *gone})
    return change_partition(
        case.state,
        case.around,
        election=Election.ONLINE,
        target_replicas=(replica, *kept, *(other for other in gone if other != replica)),
        target_removing=tuple(other for other in gone if other != replica),
    )


def nobody_to_designate(case: Case) -> Outcome:
    evidence = f"replicas are {ids(case.state.replicas)}; {standing_of(case, case.state.replicas)}"
    step = DESIGNATED_IS_LIVE.step(False, evidence, text="a live replica to designate")
    return Outcome(ElectionType.DESIGNATION, None, steps=(step,), note="no replica is live")


def _balanced(case: Case, designations: Mapping[int, Outcome]) -> Outcome:
    """Longest log among the recovery quorum; elects nobody before the whole quorum was heard."""
    quorum = case.recovery_quorum
    missing = tuple(replica for replica in quorum if replica not in case.logs.ranked)
    named = {*case.state.isr, *case.elr, *(case.state.last_known_elr or ())} & set(case.state.replicas)
    if case.proven_quorum is not None:
        which = held_everything(case.proven_quorum)
    elif set(quorum) == named:
        which = f"recovery quorum {ids(quorum)}"
    else:
        which = f"Kafka names {len(named)} of the recovery quorum's members, so all replicas {ids(quorum)} count"
    evidence = which + (f"; {not_read(missing)}" if missing else "; all logs read")
    former = case.former_members
    if former:
        evidence += f"; {former_in_words(former)}"
    steps = (RECOVERY_QUORUM_HEARD.step(not missing and not former, evidence),)
    if former:
        note = f"{former_in_words(former)}, so the quorum's logs cannot all be read"
        return Outcome(ElectionType.LONGEST_LOG_BALANCED, None, steps=steps, note=note)
    if missing:
        note = f"needs {agree(len(missing), 'log', 'logs')} of {joined(missing)}"
        return Outcome(ElectionType.LONGEST_LOG_BALANCED, None, steps=steps, waits_for=missing, note=note)
    return _longest(case, ElectionType.LONGEST_LOG_BALANCED, steps, designations, must_be_best=True)


def _aggressive(case: Case, designations: Mapping[int, Outcome]) -> Outcome:
    """The best log among the live replicas that were heard."""
    heard = tuple(replica for replica in case.live if replica in case.logs.heard)
    evidence = f"live, and log read: {ids(heard)}" if heard else "no live log was read"
    steps = (ANY_REPLICA_HEARD.step(bool(heard), evidence),)
    return _longest(case, ElectionType.LONGEST_LOG_AGGRESSIVE, steps, designations, must_be_best=False)


def _longest(
    case: Case,
    kind: ElectionType,
    steps: tuple[Step, ...],
    designations: Mapping[int, Outcome],
    *,
    must_be_best: bool,
) -> Outcome:
    best, best_live = case.logs.best, case.logs.best_of(case.live)
    if case.logs.heard and not case.logs.ranked:
        note = "the logs cannot be ranked: their leader epochs are not known"
        ranked = LOGS_CAN_BE_RANKED.step(False, note)
        return Outcome(kind, None, steps=(*steps, ranked), note=note)
    if best is None or best_live is None:
        return Outcome(kind, None, steps=steps, note="no live log was read")
    if must_be_best and not case.logs.is_best(best_live.replica):
        evidence = f"{best.replica} has the best log and is {case.status(best.replica)}"
        live = BEST_LOG_IS_LIVE.step(False, evidence)
        return Outcome(
            kind, None, steps=(*steps, live), waits_for=(best.replica,), note=f"needs broker {best.replica} live"
        )
    epoch = "no epoch" if best_live.last_epoch is None else f"last epoch {best_live.last_epoch}"
    evidence = f"{best_live.replica}: {epoch}, log end {best_live.log_end}"
    chosen = BEST_LOG.step(True, evidence)
    designation = designations[best_live.replica]
    by = ElectedBy.LONGEST_LOG if designation.elected == best_live.replica else designation.elected_by
    return Outcome(
        kind,
        designation.elected,
        by,
        (*steps, chosen),
        designation.loss,
        designate=best_live.replica,
        note=designation.note,
    )
