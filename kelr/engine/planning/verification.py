"""Judges what is seen of a partition after its planned election: one `Finding` for each thing that can be wrong.

Pure: `kelr.recovery.verify` reads the values, this module says what they mean. A check that could not be looked at is
never passed in silence: it comes out UNKNOWN with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.logs import KnownLogs, rank_logs
from kelr.engine.planning.consumers import group_findings
from kelr.engine.planning.hanging import transaction_finding
from kelr.engine.planning.seen import Seen, finding_of
from kelr.engine.planning.verified_logs import (
    elected_log,
    kept_up_to,
    logs_agree,
    planned_log_end,
    silence_of,
    truncated,
)
from kelr.engine.planning.words import late_election
from kelr.engine.words import brokers, ids
from kelr.model import (
    Check,
    Finding,
    PartitionState,
    Passed,
    PlannedElection,
)

__all__ = ["NOT_APPLIED", "Seen", "findings", "is_unapplied"]

NOT_APPLIED = "it was not applied yet"
"""Ends the text about the leader of a partition whose planned election was not begun."""
_STATUS_COMMAND = "kelr recover status"


def findings(planned: PlannedElection, seen: Seen) -> tuple[Finding, ...]:
    """Every check of one partition, in the order of `Check`.

    Where the partition is gone, or nobody leads it, there is nothing else to look at than that (and the order).
    """
    return tuple(_findings(planned, seen))


def is_unapplied(found: Finding) -> bool:
    """Whether a finding says that the planned election was not begun."""
    return found.check is Check.LEADER and found.passed is Passed.NOT_YET and found.text.endswith(NOT_APPLIED)


def _findings(planned: PlannedElection, seen: Seen) -> Iterator[Finding]:
    state = seen.state
    if state is None:
        yield finding_of(planned, Check.LEADER, Passed.UNKNOWN, f"the partition could not be described: {seen.error}")
        return
    if None not in {planned.topic_id, state.topic_id} and planned.topic_id != state.topic_id:
        text = (
            f"this is another topic of the same name (id {state.topic_id}, the plan has {planned.topic_id}): it was"
            " deleted and made again"
        )
        yield finding_of(planned, Check.LEADER, Passed.NO, text)
        return
    logs = rank_logs(state, seen.logs)
    yield _leader(planned, state, seen, logs)
    if state.leader is not None and state.leader in seen.live:
        yield _isr(planned, state, seen)
    yield _order(planned, state)
    if state.leader is None or state.leader not in seen.live:
        return
    leader_log = logs.heard.get(state.leader)
    yield truncated(planned, state, seen, logs)
    yield logs_agree(planned, state, seen, logs)
    yield transaction_finding(planned.address, state, leader_log, seen.transactions, now_ms=seen.now_ms)
    evidence = elected_log(planned)
    kept = 0 if evidence is None else evidence.high_watermark or 0
    yield from group_findings(planned.address, leader_log, seen.committed, kept=kept)


# The leader.


def _leader(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    leader, epoch = state.leader, state.leader_epoch
    if leader is None:
        if epoch <= planned.evidence.leader_epoch:
            tried = f", and it was refused: {seen.refusal.rstrip('.')}" if seen.refusal else ""
            text = f"no leader, as before the plan (leader epoch {epoch}){tried}: {NOT_APPLIED}"
            return finding_of(planned, Check.LEADER, Passed.NOT_YET, text)
        text = (
            f"no leader (leader epoch {epoch}, {planned.evidence.leader_epoch} in the plan): the leader elected since"
            " is offline again"
        )
        return finding_of(planned, Check.LEADER, Passed.NO, text, f"kelr explain {planned.address}")
    if leader not in seen.live:
        text = f"{leader} is the leader on record (leader epoch {epoch}), and its broker is not live"
        return finding_of(planned, Check.LEADER, Passed.NOT_YET, text, f"kelr explain {planned.address}")
    if leader == planned.elect:
        text = f"{leader} leads, in leader epoch {epoch}"
        if seen.now_ms < seen.late_until_ms:
            late = f"{text}; {late_election(leader, seen.late_until_ms)}"
            return finding_of(planned, Check.LEADER, Passed.NOT_YET, late)
        return finding_of(planned, Check.LEADER, Passed.YES, text)
    return _other_leader(planned, state, seen, logs)


def _other_leader(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    """Leadership may move on after an election (auto.leader.rebalance.enable); what counts is whose log goes on."""
    leader = state.leader
    assert leader is not None
    kept, held = kept_up_to(planned, logs.heard.get(leader)), planned_log_end(planned)
    words = f"{leader} leads (leader epoch {state.leader_epoch}), planned {planned.elect}"
    if kept is None or held is None:
        silence = silence_of(logs, leader)
        passed = Passed.UNKNOWN if silence is None else silence[0]
        text = f"{words}; whether it holds what {planned.elect} held cannot be told from its log"
        return finding_of(planned, Check.LEADER, passed, text, f"kelr log-info --lineage {planned.address}")
    if kept < held:
        text = f"{words}: the plan was to keep offsets up to {held}; its log has them up to {kept}"
        return finding_of(planned, Check.LEADER, Passed.NO, text, f"kelr log-info --lineage {planned.address}")
    if planned.elect not in state.isr:
        down = "" if planned.elect in seen.live else ": its broker is not live"
        text = f"{words}; nothing that {planned.elect} held is missing, but {planned.elect} is not in the ISR{down}"
        return finding_of(planned, Check.LEADER, Passed.NOT_YET, text)
    text = f"{words}: its log holds all of {planned.elect}'s, up to offset {held}; {_since(planned, state)}"
    return finding_of(planned, Check.LEADER, Passed.YES, text)


def _since(planned: PlannedElection, state: PartitionState) -> str:
    """How another replica than the planned one came to lead, as far as leader epochs tell: each has one leader."""
    epochs = state.leader_epoch - planned.evidence.leader_epoch
    if epochs <= 0:
        return "there was no election since the plan"
    if epochs == 1:
        return f"it was elected, and {planned.elect} was not"
    return "leadership moved since the plan"


# In-sync replicas.


def _isr(planned: PlannedElection, state: PartitionState, seen: Seen) -> Finding:
    wanted = [replica for replica in state.replicas if replica in seen.live]
    missing = [replica for replica in wanted if replica not in state.isr]
    absent = [replica for replica in state.replicas if replica not in seen.live]
    down = f"; {brokers(absent)} not live" if absent else ""
    size = f"{ids(sorted(state.isr))} of {ids(sorted(state.replicas))}"  # the same set, the same words
    if seen.min_isr is None and (missing or absent):
        why = f" ({seen.config_error})" if seen.config_error else ""
        text = f"the ISR is {size}{down}; whether that is enough is not known, because min.insync.replicas is not{why}"
        return finding_of(planned, Check.ISR, Passed.NOT_YET if missing else Passed.UNKNOWN, text)
    if seen.min_isr is not None and len(state.isr) < seen.min_isr:
        text = f"the ISR is {size}, under min ISR {seen.min_isr}: acks=all is refused{down}"
        return finding_of(planned, Check.ISR, Passed.NOT_YET, text)
    if missing:
        text = f"the ISR is {size}: {brokers(missing)} catching up{down}"
        return finding_of(planned, Check.ISR, Passed.NOT_YET, text)
    text = f"the ISR is {size}: every live replica{down}"
    return finding_of(planned, Check.ISR, Passed.YES, text, remark=down.removeprefix("; "))


# The replicas' order.


def _order(planned: PlannedElection, state: PartitionState) -> Finding:
    want, found = planned.restores, state.replicas
    if state.adding or state.removing:
        text = (
            f"a reassignment is under way (adding {ids(state.adding)}, removing {ids(state.removing)}): it is not"
            " kelr's, and decides the order"
        )
        return finding_of(planned, Check.ORDER, Passed.UNKNOWN, text)
    if found == want:
        left = [replica for replica in planned.evidence.replicas if replica not in want]
        gone = f", without {brokers(left)} as planned" if left else ""
        return finding_of(
            planned, Check.ORDER, Passed.YES, f"the replicas have the order from before, {ids(found)}{gone}"
        )
    if found == planned.order:
        text = (
            f"the replicas still have the election's order {ids(found)}, not {ids(want)}: right only where it was"
            " applied with --keep-order"
        )
        return finding_of(planned, Check.ORDER, Passed.NO, text, _STATUS_COMMAND)
    text = f"the replicas are {ids(found)}, neither as before ({ids(want)}) nor as planned: somebody else changed them"
    return finding_of(planned, Check.ORDER, Passed.NO, text, f"kelr describe {planned.address}")
