"""The unclean recovery of KIP-966 in decisions: what the manager would do with the logs that are known.

Who is elected comes from `kelr.controller.recovery.rules`, by which the manager elects as well; here it is asked of a
case, and put into steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kelr.controller import (
    Change,
    LogInfo,
    Recovery,
    RecoveryStrategy,
    Standing,
    change_partition,
    recovery_of,
)
from kelr.controller.election import UNCLEAN_RECOVERY
from kelr.engine.case import Case
from kelr.engine.loss_words import not_read
from kelr.engine.rule_docs import (
    ANY_REPLICA_HEARD,
    BEST_LOG,
    RECOVERY_QUORUM_HEARD,
    RECOVERY_QUORUM_LIVE,
    rule_of,
)
from kelr.engine.words import agree, brokers, ids, joined
from kelr.model import Situation, Step

_BALANCED, _AGGRESSIVE = RecoveryStrategy.BALANCED, RecoveryStrategy.AGGRESSIVE


def heard_logs(case: Case) -> Mapping[int, LogInfo]:
    """What the manager would have accepted of the logs that are known: those that can be ranked, and whose brokers go
    by the partition's own leader epoch."""
    epoch = case.state.leader_epoch
    return {
        replica: LogInfo(log.last_epoch, log.log_end)
        for replica, log in case.logs.ranked.items()
        if log.current_leader_epoch in {None, epoch}
    }


def recovery_now(case: Case, *, asked_for: RecoveryStrategy | None = None) -> Recovery:
    """Where the partition's unclean recovery stands, the known logs being the answers.

    Args:
        asked_for: the strategy of an election that an operator asks for; None takes the topic's.
    """
    return recovery_of(case.state, case.around, heard_logs(case), asked_for=asked_for)


def run_now(case: Case, *, asked_for: RecoveryStrategy | None = None) -> Change:
    """The run that elects by itself now, or that an operator asks for, with the manager's choice if it has made one."""
    recovery = recovery_now(case, asked_for=asked_for) if case.rules.recovers else None
    choice = None if recovery is None or rivals(case, recovery) else recovery.choice
    return change_partition(case.state, case.around, election=case.around.normal_election, recovered=choice)


def rivals(case: Case, recovery: Recovery) -> tuple[int, ...]:
    """Live replicas whose logs are not known, where the manager has its choice of those that are, in assignment order.

    It asks them as well, and elects the one that tells of a better log (`kelr.controller.recovery.task.may_elect`).
    """
    if recovery.choice is None:
        return ()
    heard = heard_logs(case)
    return tuple(replica for replica in case.live if replica not in heard)


def unless_better(others: tuple[int, ...]) -> str:
    """``unless 1 or 2 tells of a better log``."""
    return f"unless {joined(others, 'or')} tells of a better log"


@dataclass(frozen=True, slots=True)
class RecoveryOnReturn:
    """What the manager makes of a broker's return that left the partition without a leader."""

    change: Change
    """The run that elects, or finds that nobody can be elected yet."""
    outlook: str
    """What has to be seen before anybody is elected; empty where nothing happens, or somebody is elected."""
    asks: bool = False
    """Whether that is logs, for which the manager asks by itself."""


def run_on_return(case: Case, returned: Change, replica: int, *, clean: bool) -> RecoveryOnReturn:
    """What the recovery does once an absent broker is back.

    The known logs stay the answers, but for that of a broker that returns from an unclean shutdown: it may have lost
    its tail, and tells when it is asked. Where no other replica is live, whatever it tells, it is elected.

    Args:
        returned: its return (`broker_returns`), after which nobody leads.
    """
    state = returned.after
    around = replace(case.around, electable=case.electable | {replica})
    heard = {one: log for one, log in heard_logs(case).items() if clean or one != replica}
    recovery = recovery_of(state, around, heard)
    asking = recovery.standing in {Standing.WAITS_FOR_LOGS, Standing.READY}
    alone = all(one == replica or one not in around.electable for one in state.replicas)
    unheard = tuple(one for one in state.replicas if one in around.electable and one not in heard)
    choice = replica if asking and alone else None if unheard else recovery.choice
    change = change_partition(state, around, election=around.normal_election, recovered=choice)
    if choice is not None or not recovery.standing.under_recovery:
        return RecoveryOnReturn(change, "")
    if recovery.standing is Standing.WAITS_FOR_QUORUM:
        return RecoveryOnReturn(change, f"the recovery then waits for {brokers(recovery.not_live)}")
    logs = agree(len(unheard), f"the log of {joined(unheard)} is", f"the logs of {joined(unheard)} are")
    return RecoveryOnReturn(change, f"the best log is elected once {logs} known", asks=True)


def situation_under_recovery(recovery: Recovery, by_state: Situation) -> Situation:
    """The situation of a partition without leader and with live replicas, of which none is elected now.

    Args:
        by_state: what the state alone says.
    """
    if recovery.standing is Standing.WAITS_FOR_MEMBER or by_state is Situation.UNKNOWN:
        return by_state
    return Situation.NEEDS_UNCLEAN_RECOVERY


def awaited(case: Case, recovery: Recovery) -> tuple[int, ...]:
    """The replicas that a recovery waits for, in assignment order: all of them for balanced (to be live and to tell
    their logs), any of them for aggressive. Where it has its choice, those that may tell of a better log."""
    if recovery.standing is Standing.READY:
        return rivals(case, recovery)
    if recovery.standing not in {Standing.WAITS_FOR_QUORUM, Standing.WAITS_FOR_LOGS}:
        return ()
    if recovery.strategy is _AGGRESSIVE:
        return case.live or case.state.replicas
    missing = {*recovery.not_live, *recovery.unheard}
    return tuple(replica for replica in recovery.quorum if replica in missing)


def recovery_steps(case: Case, choice: int | None, *, asked_for: RecoveryStrategy | None = None) -> tuple[Step, ...]:
    """The questions that the manager asks, and the rule that its answer goes into.

    Args:
        choice: whom the election made the leader by `UNCLEAN_RECOVERY`.
    """
    recovery = recovery_now(case, asked_for=asked_for)
    evidence = _evidence(case, recovery, by_hand=asked_for is not None)
    return (*_questions(case, recovery), rule_of(UNCLEAN_RECOVERY).step(choice is not None, evidence))


def _questions(case: Case, recovery: Recovery) -> Iterator[Step]:
    if not recovery.standing.under_recovery:
        return
    heard = heard_logs(case)
    if recovery.strategy is _BALANCED:
        yield _quorum_live(case, recovery)
        if recovery.not_live:
            return
        missing = f"; {not_read(recovery.unheard)}" if recovery.unheard else "; all logs read"
        yield RECOVERY_QUORUM_HEARD.step(not recovery.unheard, f"recovery quorum {ids(recovery.quorum)}{missing}")
    else:
        live = tuple(replica for replica in case.live if replica in heard)
        yield ANY_REPLICA_HEARD.step(bool(live), f"live, and log read: {ids(live)}" if live else "no live log was read")
    if recovery.choice is not None:
        yield BEST_LOG.step(True, f"{recovery.choice}: {_log_in_words(heard[recovery.choice])}")


def _quorum_live(case: Case, recovery: Recovery) -> Step:
    named = {*case.state.isr, *case.elr, *(case.state.last_known_elr or ())}
    if not named:
        which = f"LastKnownELR is empty: all of {ids(recovery.quorum)} count"
    elif not named <= set(case.state.replicas):
        which = (
            f"{ids(sorted(named))} is recorded, and not all of them are replicas: all of {ids(recovery.quorum)} count"
        )
    else:
        which = f"LastKnownELR is {ids(recovery.quorum)}"
        if not set(case.recovery_quorum) <= named:
            # The recovery goes by it all the same; the best log of so few is not known to hold everything committed.
            which += ", fewer than min ISR" if case.min_isr is None else f", fewer than {case.min_isr} (min ISR)"
    if not recovery.not_live:
        return RECOVERY_QUORUM_LIVE.step(True, f"{which}; all live")
    standing = joined(f"{member} is {case.status(member)}" for member in recovery.not_live)
    return RECOVERY_QUORUM_LIVE.step(False, f"{which}; {standing}")


def _log_in_words(log: LogInfo) -> str:
    epoch = "no epoch" if log.last_epoch is None else f"last epoch {log.last_epoch}"
    return f"{epoch}, log end {log.log_end}"


def _evidence(case: Case, recovery: Recovery, *, by_hand: bool) -> str:
    """Why the manager elects, or does not."""
    why = "asked for" if by_hand else f"unclean.recovery.strategy is {recovery.strategy}"
    match recovery.standing:
        case Standing.WAITS_FOR_MEMBER:
            name, members = ("ISR", case.state.isr) if case.state.isr else ("ELR", case.elr)
            return f"{why}: asked only when ISR and ELR are both empty; {name} is {ids(members)}"
        case Standing.WAITS_FOR_OPERATOR:
            return f"{why}: no leader is elected before an operator says so"
        case Standing.READY:
            others = rivals(case, recovery)
            undecided = f"; {joined(others)} {agree(len(others), 'is', 'are')} live and not read" if others else ""
            return (
                f"{why}: broker {recovery.choice} has the most complete log of the live replicas that were"
                f" read{undecided}"
            )
        case Standing.WAITS_FOR_QUORUM:
            return f"{why}: no replica is asked before every member of the recovery quorum is live"
        case _:
            return f"{why}: the replicas are asked for their logs"
