"""Judges what is seen of a partition after its planned election: one `Finding` for each thing that can be wrong.

Pure: `kelr.recovery.verify` reads the values, this module says what they mean. A check that could not be looked at is
never passed in silence: it comes out UNKNOWN with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.engine.logs import KnownLogs, rank_logs, segments
from kelr.engine.planning.consumers import group_findings
from kelr.engine.planning.hanging import transaction_finding
from kelr.engine.words import brokers, ids, joined, plural
from kelr.model import (
    Check,
    Finding,
    LogAnswer,
    LogEvidence,
    NotHeard,
    PartitionState,
    Passed,
    PlannedElection,
    ReplicaLog,
    Truncation,
    Unheard,
)
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread

NOT_ASKED = Unread("nobody asked")
STATUS_COMMAND = "kelr recover status"
_PASSING = frozenset(
    {Unheard.STALE, Unheard.TIMED_OUT, Unheard.UNREACHABLE, Unheard.NOT_A_REPLICA, Unheard.NO_ADDRESS, Unheard.ERROR}
)
"""Silences that may end by themselves."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a cluster shows of one planned partition."""

    state: PartitionState | None
    """None: the partition could not be described; `error` says why."""
    live: frozenset[int] = frozenset()
    """Brokers that are registered and not fenced."""
    min_isr: int | None = None
    """Effective min ISR; None where it is not known."""
    logs: tuple[LogAnswer, ...] = ()
    earlier_high_watermark: int | None = None
    """The leader's high watermark from before `logs` were read, so that a replica in sync holds everything below it."""
    transactions: Transactions = NOT_ASKED
    committed: CommittedOffsets | Unread = NOT_ASKED
    now_ms: int = 0
    error: str = ""


def findings(planned: PlannedElection, seen: Seen) -> tuple[Finding, ...]:
    """Every check of one partition, in the order of `Check`.

    Where the partition is gone, or nobody leads it, there is nothing else to look at than that (and the order).
    """
    return tuple(_findings(planned, seen))


def _findings(planned: PlannedElection, seen: Seen) -> Iterator[Finding]:
    state = seen.state
    if state is None:
        yield _finding(planned, Check.LEADER, Passed.UNKNOWN, f"the partition could not be described: {seen.error}")
        return
    if None not in {planned.topic_id, state.topic_id} and planned.topic_id != state.topic_id:
        text = (
            f"this is another topic of the same name (id {state.topic_id}, the plan has {planned.topic_id}): it was"
            " deleted and made again"
        )
        yield _finding(planned, Check.LEADER, Passed.NO, text)
        return
    logs = rank_logs(state, seen.logs)
    yield _leader(planned, state, seen, logs)
    if state.leader is not None and state.leader in seen.live:
        yield _isr(planned, state, seen)
    yield _order(planned, state)
    if state.leader is None or state.leader not in seen.live:
        return
    leader_log = logs.heard.get(state.leader)
    yield _truncated(planned, state, seen, logs)
    yield _logs_agree(planned, state, seen, logs)
    yield transaction_finding(planned.address, state, leader_log, seen.transactions, now_ms=seen.now_ms)
    evidence = _elected_log(planned)
    kept = 0 if evidence is None else evidence.high_watermark or 0
    yield from group_findings(planned.address, leader_log, seen.committed, kept=kept)


def _finding(planned: PlannedElection, check: Check, passed: Passed, text: str, command: str = "") -> Finding:
    return Finding(planned.topic, planned.partition, check, passed, text, command)


# The leader.


def _leader(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    leader, epoch = state.leader, state.leader_epoch
    if leader is None:
        if epoch <= planned.evidence.leader_epoch:
            text = f"nobody leads, as before the plan (leader epoch {epoch}): it was not applied yet"
            return _finding(planned, Check.LEADER, Passed.NOT_YET, text)
        text = (
            f"nobody leads (leader epoch {epoch}, {planned.evidence.leader_epoch} in the plan): whoever led since"
            " is gone again"
        )
        return _finding(planned, Check.LEADER, Passed.NO, text, f"kelr explain {planned.address}")
    if leader not in seen.live:
        text = f"{leader} is the leader on record (leader epoch {epoch}), and its broker is not live"
        return _finding(planned, Check.LEADER, Passed.NOT_YET, text, f"kelr explain {planned.address}")
    if leader == planned.elect:
        return _finding(planned, Check.LEADER, Passed.YES, f"{leader} leads, in leader epoch {epoch}")
    return _other_leader(planned, state, seen, logs)


def _other_leader(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    """Leadership may move on after an election (auto.leader.rebalance.enable); what counts is whose log goes on."""
    leader = state.leader
    assert leader is not None
    kept, held = _kept(planned, logs.heard.get(leader)), _planned_log_end(planned)
    words = f"{leader} leads (leader epoch {state.leader_epoch}), and {planned.elect} was to lead"
    if kept is None or held is None:
        silence = _silence(logs, leader)
        passed = Passed.NO if silence is None else silence[0]
        text = f"{words}; whether it holds what {planned.elect} held cannot be told from its log"
        return _finding(planned, Check.LEADER, passed, text, f"kelr log-info --lineage {planned.address}")
    if kept < held:
        text = f"{words}: of the {held} offsets that the plan was to keep, its log goes on from {kept}"
        return _finding(planned, Check.LEADER, Passed.NO, text, f"kelr log-info --lineage {planned.address}")
    if planned.elect not in state.isr:
        down = "" if planned.elect in seen.live else ": its broker is not live"
        text = f"{words}; nothing that {planned.elect} held is missing, but {planned.elect} is not in the ISR{down}"
        return _finding(planned, Check.LEADER, Passed.NOT_YET, text)
    text = f"{words}: its log holds all of {planned.elect}'s, up to offset {held}; leadership moved after the election"
    return _finding(planned, Check.LEADER, Passed.YES, text)


def _planned_log_end(planned: PlannedElection) -> int | None:
    evidence = _elected_log(planned)
    return None if evidence is None else evidence.log_end


def _elected_log(planned: PlannedElection) -> LogEvidence | None:
    """What the plan knew of the log of the replica that is to lead."""
    return next((log for log in planned.evidence.logs if log.replica == planned.elect), None)


def _kept(planned: PlannedElection, log: ReplicaLog | None) -> int | None:
    """The offset (exclusive) up to which a log holds the records that the planned replica's log held.

    Only one leader writes in an epoch, so a log that holds the planned log's last epoch up to its end holds all of it.
    What retention has taken since counts as held. None where it is not known.
    """
    evidence = _elected_log(planned)
    if log is None or evidence is None or evidence.log_end is None:
        return None
    held = evidence.log_end
    if evidence.last_epoch is None:
        return held if held == (evidence.log_start or 0) else None
    parts = segments(log)
    if parts is None or log.lineage is None:
        return None
    if (log.log_start or 0) >= held:
        return held  # retention has taken all of it since
    older = [part for part in parts if part.epoch <= evidence.last_epoch]
    end = older[-1].end if older else log.log_start or 0
    # Without that epoch, at least its last record is gone.
    return min(end, held if older and older[-1].epoch == evidence.last_epoch else held - 1)


# In-sync replicas.


def _isr(planned: PlannedElection, state: PartitionState, seen: Seen) -> Finding:
    wanted = [replica for replica in state.replicas if replica in seen.live]
    missing = [replica for replica in wanted if replica not in state.isr]
    absent = [replica for replica in state.replicas if replica not in seen.live]
    down = f"; {brokers(absent)} not live" if absent else ""
    size = f"{ids(state.isr)} of {ids(state.replicas)}"
    if seen.min_isr is None and (missing or absent):
        text = f"the ISR is {size}{down}; whether that is enough is not known, because min.insync.replicas is not"
        return _finding(planned, Check.ISR, Passed.NOT_YET if missing else Passed.UNKNOWN, text)
    if seen.min_isr is not None and len(state.isr) < seen.min_isr:
        text = f"the ISR is {size}, under min ISR {seen.min_isr}: acks=all is refused{down}"
        return _finding(planned, Check.ISR, Passed.NOT_YET, text)
    if missing:
        return _finding(planned, Check.ISR, Passed.NOT_YET, f"the ISR is {size}: {brokers(missing)} catching up{down}")
    return _finding(planned, Check.ISR, Passed.YES, f"the ISR is {size}: every live replica{down}")


# The replicas' order.


def _order(planned: PlannedElection, state: PartitionState) -> Finding:
    want, found = planned.restores, state.replicas
    if state.adding or state.removing:
        text = (
            f"a reassignment is under way (adding {ids(state.adding)}, removing {ids(state.removing)}): it is not"
            " kelr's, and decides the order"
        )
        return _finding(planned, Check.ORDER, Passed.UNKNOWN, text)
    if found == want:
        left = [replica for replica in planned.evidence.replicas if replica not in want]
        gone = f", without {brokers(left)} as planned" if left else ""
        return _finding(
            planned, Check.ORDER, Passed.YES, f"the replicas have the order from before, {ids(found)}{gone}"
        )
    if found == planned.order:
        text = (
            f"the replicas still have the election's order {ids(found)}, not {ids(want)}: right only where it was"
            " applied with --keep-order"
        )
        return _finding(planned, Check.ORDER, Passed.NO, text, STATUS_COMMAND)
    text = f"the replicas are {ids(found)}, neither as before ({ids(want)}) nor as planned: somebody else changed them"
    return _finding(planned, Check.ORDER, Passed.NO, text, f"kelr describe {planned.address}")


# Logs.


def _truncated(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    """The replicas whose logs were to be cut: a log that agrees with the leader's was."""
    predicted = [one for one in planned.loss.truncations if one.replica != state.leader]
    if not predicted:
        return _finding(planned, Check.TRUNCATED, Passed.YES, "no replica had anything to give up")
    later = [one for one in predicted if one.replica not in seen.live or one.replica not in state.replicas]
    now = [one for one in predicted if one not in later]
    assert state.leader is not None
    worst, texts = Passed.YES, []
    for truncation in now:
        passed, text = _cut(truncation, state.leader, logs)
        worst = max(worst, passed, key=_WORSE.index)
        texts.append(text)
    texts += [f"{one.replica} is not live: {_gives_up(one)} when it returns" for one in later]
    if not now:
        texts.insert(0, "no live replica had anything to give up")
    command = "" if worst is Passed.YES else f"kelr log-info --lineage {planned.address}"
    return _finding(planned, Check.TRUNCATED, worst, "; ".join(texts), command)


def _gives_up(truncation: Truncation) -> str:
    return f"{plural(truncation.offsets, 'offset')} from {truncation.from_offset} on go"


def _cut(truncation: Truncation, leader: int, logs: KnownLogs) -> tuple[Passed, str]:
    replica = truncation.replica
    silence = _silence(logs, leader) or _silence(logs, replica)
    if silence is not None:
        return silence
    agreed = logs.agreement(replica, leader)
    if agreed is None:
        return Passed.UNKNOWN, f"{replica}'s log and the leader's cannot be compared"
    if agreed < logs.ranked[replica].log_end:
        return (
            Passed.NOT_YET,
            f"{replica} still holds what it is to give up: its log parts from the leader's at {agreed}",
        )
    return Passed.YES, f"{replica} gave up its log from {truncation.from_offset} on"


def _logs_agree(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    leader = state.leader
    assert leader is not None
    silence = _silence(logs, leader)
    command = f"kelr log-info --lineage {planned.address}"
    if silence is not None:
        return _finding(planned, Check.LOGS, silence[0], silence[1], command)
    kept, held = _kept(planned, logs.heard[leader]), _planned_log_end(planned)
    if kept is not None and held is not None and kept < held and leader == planned.elect:
        text = (
            f"{leader}'s log ended at {held} in the plan, and of that only what is below {kept} is in the log now:"
            " more was lost than planned"
        )
        return _finding(planned, Check.LOGS, Passed.NO, text, command)
    worst, texts = Passed.YES, []
    for replica in state.isr:
        if replica == leader:
            continue
        passed, text = _agrees(replica, leader, seen, logs)
        worst = max(worst, passed, key=_WORSE.index)
        if passed is not Passed.YES:
            texts.append(text)
    others = [replica for replica in state.isr if replica != leader]
    if worst is Passed.YES:
        end = logs.heard[leader].log_end
        text = f"the leader's log ends at {end}"
        text += f", and {_logs_of(others)} with it" if others else "; no other replica is in sync to compare it with"
        return _finding(planned, Check.LOGS, worst, text)
    return _finding(planned, Check.LOGS, worst, "; ".join(texts), command)


def _logs_of(replicas: list[int]) -> str:
    return f"{joined(replicas)} {'agrees' if len(replicas) == 1 else 'agree'}"


def _agrees(replica: int, leader: int, seen: Seen, logs: KnownLogs) -> tuple[Passed, str]:
    silence = _silence(logs, replica)
    if silence is not None:
        return silence
    agreed = logs.agreement(replica, leader)
    if agreed is None:
        return Passed.UNKNOWN, f"{replica}'s log and the leader's cannot be compared"
    follower = logs.ranked[replica]
    if agreed < min(follower.log_end, logs.ranked[leader].log_end):
        return Passed.NO, f"{replica} is in the ISR, and its log parts from the leader's at {agreed}"
    if seen.earlier_high_watermark is not None and follower.log_end < seen.earlier_high_watermark:
        text = f"{replica} is in the ISR, and its log ends at {follower.log_end}, below the high watermark"
        return Passed.NOT_YET, f"{text} {seen.earlier_high_watermark}"
    return Passed.YES, ""


def _silence(logs: KnownLogs, replica: int) -> tuple[Passed, str] | None:
    """Why nothing can be said of a replica's log; None where something can."""
    if replica in logs.ranked:
        return None
    heard, unheard = logs.heard.get(replica), logs.unheard.get(replica)
    if heard is not None:
        return Passed.UNKNOWN, f"the epochs of {replica}'s log are not known: {heard.last_epoch_error or 'no epochs'}"
    passed = Passed.NOT_YET if unheard is not None and unheard.reason in _PASSING else Passed.UNKNOWN
    return passed, f"{replica}'s log was not heard: {_why(unheard)}"


def _why(unheard: NotHeard | None) -> str:
    return "it was not asked for" if unheard is None else unheard.detail or str(unheard.reason)


_WORSE = (Passed.YES, Passed.UNKNOWN, Passed.NOT_YET, Passed.NO)
"""Which result stands for several; NOT_YET before UNKNOWN, so that what comes true is waited for."""
