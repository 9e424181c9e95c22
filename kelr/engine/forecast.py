"""What Kafka does by itself at the moment an absent broker is back, after a clean and after an unclean shutdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from kelr.controller import Change, broker_returns, broker_unfenced
from kelr.engine.alike import Alike
from kelr.engine.case import Case
from kelr.engine.elections import designation_of, elected_by
from kelr.engine.loss import loss_of_electing, loss_on_paper
from kelr.engine.recovery.prediction import run_now, run_on_return
from kelr.engine.words import holds_up_to, ids
from kelr.model import BrokerStatus, ElectedBy, Forecast, Loss, LossCertainty, Outcome

MOST_TOGETHER = 3
"""So many brokers' returns are looked at together: with a replication factor of 3 there are no more."""


def forecasts_of(case: Case) -> tuple[Forecast, ...]:
    """Forecasts for each broker whose return counts (`Case.returning`) for a partition that nobody leads: clean return,
    unclean return; where it is known how its shutdown counts only that one. None where the ELR decides and is not
    known, and none of `undecided_returns`. They hold for a return that comes before an election that is due
    (`change_now`)."""
    state = case.state
    if state.leader is not None and state.leader in case.electable:
        return ()
    if case.rules.elr and state.elr is None:
        return ()
    undecided = undecided_returns(case)
    told = (broker for broker in case.returning if broker not in undecided)
    return tuple(_forecast(case, replica, clean) for replica in told for clean in shutdowns(case, replica))


def undecided_returns(case: Case) -> tuple[int, ...]:
    """Absent replicas of which nothing tells whether their return elects them, or whom an election elects that is due,
    in assignment order. None without such an election.

    Any run of the controller on the partition is that election, also the one of a broker's registration, before it may
    be elected itself. A broker that stood still, and goes on, does not register. And Kafka runs it as well for one that
    returns uncleanly and that an ELR has named which a write of min.insync.replicas cleared: no broker tells of that
    (`kelr.controller.state`).
    """
    due = change_now(case).after.leader
    if due is None or case.rules.recovers:
        return ()
    return tuple(replica for replica in case.absent if _is_undecided(case, replica, due))


def _is_undecided(case: Case, replica: int, due: int) -> bool:
    leaders = {clean: _run_on_return(case, replica, clean).after.leader for clean in shutdowns(case, replica)}
    if True in leaders and leaders[True] != broker_unfenced(case.state, replica, case.around).after.leader:
        return True
    named = {*case.state.isr, *case.elr}
    return case.rules.elr and replica not in named and leaders.get(False, due) != due


def change_now(case: Case) -> Change:
    """The run that elects by itself now."""
    # The KIP's manager looks at logs, and never finds its runs among those of others (`DecisionCache.of`).
    return case.alike.runs.get(None, lambda: run_now(case))


def shutdowns(case: Case, replica: int) -> tuple[bool, ...]:
    """Which shutdowns (clean or not) Kafka can see in the replica's next registration.

    A broker that is not registered has no broker epoch that its registration could repeat, so with ELR on it counts as
    unclean in any case (ClusterControlManager.registerBroker).
    """
    unregistered = case.cluster.status(replica) is BrokerStatus.UNREGISTERED
    if case.stopped_uncleanly(replica) or (unregistered and case.rules.elr):
        return (False,)
    return (True,) if case.stopped_cleanly(replica) else (True, False)


def _forecast(case: Case, replica: int, clean: bool) -> Forecast:
    change, outlook = _run_on_return(case, replica, clean), ""
    if change.after.leader is None and case.rules.recovers:
        recovery = run_on_return(case, change, replica, clean=clean)
        change, outlook = recovery.change, recovery.outlook
    leader, by = change.after.leader, elected_by(change)
    if leader is not None and case.state.leader == leader:
        by = ElectedBy.LEADER_STAYS
    loss = None if leader is None else _loss(case, replica, leader, guaranteed=_guaranteed(case, by, clean))
    is_designated = leader is None and not case.rules.recovers and replica in case.state.replicas
    return Forecast(
        replica=replica,
        clean=clean,
        elected=leader,
        elected_by=by if leader is not None else None,
        isr=change.after.isr,
        elr=change.after.elr,
        loss=loss,
        warning=outlook or _cleared(case, change) or _warning(case, replica, leader, by, loss),
        then=_designated(case, change, replica, clean) if is_designated else None,
    )


def elected_by_logs(case: Case, replica: int, *, clean: bool) -> bool:
    """Whether the replica's return has KIP-966's manager elect by logs that are not known here."""
    change = _run_on_return(case, replica, clean)
    return change.after.leader is None and run_on_return(case, change, replica, clean=clean).asks


def _loss(case: Case, replica: int, leader: int, *, guaranteed: bool) -> Loss:
    """What is lost once the replica is back and this one is recorded as the leader."""
    on_paper = None if leader in {replica, *case.electable} else loss_on_paper(case, leader)
    return on_paper or loss_of_electing(case, leader, holds_all_committed=guaranteed)


def _designated(case: Case, change: Change, replica: int, clean: bool) -> Outcome:
    """Designating the replica once it is back: its return elects nobody, so that nothing comes before that."""
    found = case.alike.designations.get((replica, clean), lambda: designation_of(_back(case, change, replica), replica))
    after = change.after
    in_place = case.rules.elr and replica in (*after.isr, *(after.elr or ()))
    loss = None if found.elected is None else loss_of_electing(case, found.elected, holds_all_committed=in_place)
    return replace(found, steps=(), loss=loss)


def _back(case: Case, change: Change, replica: int) -> Case:
    """The case once this broker is back."""
    electable = case.electable | {*case.state.replicas} & {replica}
    return replace(case, state=change.after, electable=electable, alike=Alike())


def after_return(case: Case, replica: int, *, clean: bool) -> Case:
    """The case once an absent replica's broker is back, and Kafka has elected whom it then elects by itself."""
    return _back(case, _run_on_return(case, replica, clean), replica)


def after_returns(case: Case, group: tuple[int, ...]) -> Iterator[tuple[Case, ElectedBy | None]]:
    """The case once the absent brokers of a group are back, up to the one whose return elects somebody, and the rule
    by which it does; in whatever order they return and however they stopped."""
    for replica in group:
        rest = tuple(one for one in group if one != replica)
        for clean in shutdowns(case, replica):
            back = after_return(case, replica, clean=clean)
            if back.state.leader is None and rest:
                yield from after_returns(back, rest)
            else:
                yield back, elected_by_return(case, replica, clean=clean)


def elected_in_company(case: Case, replica: int) -> dict[int, frozenset[int]]:
    """Other absent brokers beside which the replica's return elects somebody, although none of their returns alone
    does; each with whom that elects. The last of the ELR to return uncleanly empties it, and the last known leader is
    elected then."""
    harmless = [
        one
        for one in case.returning
        if all(after_return(case, one, clean=clean).state.leader is None for clean in shutdowns(case, one))
    ]
    found: dict[int, frozenset[int]] = {}
    if case.rules.recovers or replica not in harmless:
        return found
    for count in range(1, MOST_TOGETHER):
        for others in combinations([one for one in harmless if one != replica], count):
            leaders = frozenset(back.state.leader for back, _ in after_returns(case, (replica, *others)))
            elected = frozenset(leader for leader in leaders if leader is not None)
            if elected and not found.keys() & set(others):
                found |= dict.fromkeys(others, elected)
    return found


def elected_by_return(case: Case, replica: int, *, clean: bool) -> ElectedBy | None:
    """The rule by which the replica's return elects somebody; None where it elects nobody."""
    return elected_by(_run_on_return(case, replica, clean))


def _run_on_return(case: Case, replica: int, clean: bool) -> Change:
    return case.alike.runs.get((replica, clean), lambda: broker_returns(case.state, replica, case.around, clean=clean))


def _guaranteed(case: Case, by: ElectedBy | None, clean: bool) -> bool:
    """Whether a replica that is elected by this rule on its return holds everything committed.

    With ELR on, ISR and ELR have no members that restarted uncleanly. With ELR off the ISR keeps them, so that only a
    clean return proves anything.
    """
    if by not in {ElectedBy.ISR, ElectedBy.ELR}:
        return False
    return case.rules.elr or clean


def _cleared(case: Case, change: Change) -> str:
    """With ELR off any record drops an ELR that is left over (PartitionChangeBuilder.maybeUpdateRecordElr)."""
    if change.after.leader is not None or case.rules.elr or not case.elr or change.after.elr:
        return ""
    return (
        f"Kafka elects no leader, and the leftover ELR {ids(case.elr)} is cleared:"
        " none of it is elected on its return then"
    )


def _warning(case: Case, replica: int, leader: int | None, by: ElectedBy | None, loss: Loss | None) -> str:
    if leader is None or loss is None or loss.grade is LossCertainty.PROVEN_NONE:
        return ""
    if leader != replica:
        if by not in {ElectedBy.UNCLEAN, ElectedBy.LAST_KNOWN_LEADER}:
            return ""
        return f"and not {replica}, even if its log holds more"
    best = case.logs.best
    held = "" if best is None or best.replica == replica else _held_by(best.replica, best.log_end, best.high_watermark)
    if case.read_from_disk(replica):
        return "" if case.logs.is_best(replica) else f"although its log, read from its disk, is not the best{held}"
    if by is ElectedBy.LAST_KNOWN_LEADER:
        return f"even if its log was cut, and no config forbids it{held}"
    if by in {ElectedBy.ISR, ElectedBy.ELR} and case.logs.lost_directory(replica):
        return f"although its log directory has failed: its log is empty if the disk was replaced{held}"
    if by in {ElectedBy.ISR, ElectedBy.ELR} and case.logs.doubtful(replica):
        return f"although what was read of its disk contradicts its place in the {by.upper()}{held}"
    if by in {ElectedBy.ISR, ElectedBy.ELR}:
        return f"although it may have lost its log's tail: with ELR off it stays in the {by.upper()}{held}"
    return ""


def _held_by(replica: int, log_end: int, high_watermark: int | None) -> str:
    return f"; {holds_up_to(replica, log_end, high_watermark)} and would truncate to it"
