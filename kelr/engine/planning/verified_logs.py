"""Judges the logs after an election: is all there that was to be kept, and is all gone that was to be given up?"""

from __future__ import annotations

from kelr.engine.logs import KnownLogs, segments
from kelr.engine.loss_words import begins_later
from kelr.engine.planning.seen import Seen, finding_of
from kelr.engine.words import agree, brokers, joined, plural
from kelr.model import (
    LOG_DIRECTORY,
    SAVED,
    Check,
    Finding,
    LogEvidence,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Passed,
    PlannedElection,
    ReplicaLog,
    Truncation,
)

_PASSING = frozenset(
    {
        LogUnavailableReason.STALE,
        LogUnavailableReason.TIMED_OUT,
        LogUnavailableReason.UNREACHABLE,
        LogUnavailableReason.NOT_A_REPLICA,
        LogUnavailableReason.NO_ADDRESS,
        LogUnavailableReason.ERROR,
    }
)
"""Silences that may end by themselves."""


def planned_log_end(planned: PlannedElection) -> int | None:
    """Where the log of the replica that is to lead ended, in the plan; None where that was not known."""
    evidence = elected_log(planned)
    return None if evidence is None else evidence.log_end


def elected_log(planned: PlannedElection) -> LogEvidence | None:
    """What the plan knew of the log of the replica that is to lead."""
    return next((log for log in planned.evidence.logs if log.replica == planned.elect), None)


def kept_up_to(planned: PlannedElection, log: ReplicaLog | None) -> int | None:
    """The offset (exclusive) up to which a log holds the records that the planned replica's log held.

    Only one leader writes in an epoch, so a log that holds the planned log's last epoch up to its end holds all of it.
    What retention has taken since counts as held. None where it is not known, as of another replica's log that begins
    where the planned one ended, or later.
    """
    return _kept_of(elected_log(planned), log)


def holds_all_others(planned: PlannedElection, leader_log: ReplicaLog | None) -> bool:
    """Whether a log is known to hold all that every other replica's log held when the plan was made.

    A log that a broker did not tell itself then, such as one that was read on a disk, may have held more.
    """
    if leader_log is None:
        return False
    by_replica = {one.replica: one for one in planned.evidence.logs}
    return all(
        _is_held(by_replica.get(one), leader_log) for one in planned.evidence.replicas if one != leader_log.replica
    )


def _is_held(evidence: LogEvidence | None, log: ReplicaLog) -> bool:
    if evidence is None or evidence.log_end is None or evidence.unheard is not None:
        return False
    if evidence.source is None or evidence.source == LOG_DIRECTORY or evidence.source.endswith(SAVED):
        return False
    return _kept_of(evidence, log) == evidence.log_end


def _kept_of(evidence: LogEvidence | None, log: ReplicaLog | None) -> int | None:
    if log is None or evidence is None or evidence.log_end is None:
        return None
    held = evidence.log_end
    if evidence.last_epoch is None:
        return held if held == (evidence.log_start or 0) else None
    parts = segments(log)
    if parts is None or log.lineage is None:
        return None
    if (log.log_start or 0) >= held:
        # Its own log lost that to retention since. Another one may never have held it: a follower that begins beyond
        # its leader's end is emptied, and begins anew there (UnifiedLog.truncateTo).
        return held if log.replica == evidence.replica else None
    older = [part for part in parts if part.epoch <= evidence.last_epoch]
    end = older[-1].end if older else log.log_start or 0
    # Without that epoch, at least its last record is gone.
    return min(end, held if older and older[-1].epoch == evidence.last_epoch else held - 1)


def truncated(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    """The replicas whose logs were to be cut: a log that agrees with the leader's was."""
    predicted = [one for one in planned.loss.truncations if one.replica != state.leader]
    unknown = _unknown_tails(planned, state)
    away = [replica for replica in unknown if replica not in seen.live]
    if not predicted and not unknown:
        return finding_of(planned, Check.TRUNCATED, Passed.YES, "no replica had anything to give up")
    later = [one for one in predicted if one.replica not in seen.live or one.replica not in state.replicas]
    now = [one for one in predicted if one not in later]
    assert state.leader is not None
    worst, texts = Passed.YES, []
    for truncation in now:
        passed, text = _cut(truncation, state.leader, logs)
        worst = max(worst, passed, key=_WORSE.index)
        texts.append(text)
    for replica in unknown:
        if replica not in away:
            passed, text = _came_back(planned, replica, state.leader, logs, seen.saved.whole.get(replica))
            worst = max(worst, passed, key=_WORSE.index)
            texts.append(text)
    remarks = [
        f"{one.replica} is not live: it truncates {plural(one.offsets, 'offset')} from {one.from_offset} on when it"
        " returns"
        for one in later
    ]
    unread = planned.loss.unheard
    saved = [one for one in away if one in seen.saved.whole]
    for replicas, why in (
        ([one for one in away if one in unread and one not in saved], "not read"),
        ([one for one in away if one not in unread and one not in saved], f"not compared with that of {planned.elect}"),
    ):
        remarks += [_of_unknown_tails(replicas, why)] if replicas else []
    remarks += [
        f"{one} is not live: what {planned.elect} lacked of its log, as it was read, is saved in {file}"
        for one, file in seen.saved.whole.items()
        if one in away
    ]
    if not texts:
        texts.insert(0, "no live replica had anything to give up")
    command = "" if worst is Passed.YES else f"kelr log-info --lineage {planned.address}"
    text, remark = "; ".join((*texts, *remarks)), "; ".join(remarks)
    return finding_of(planned, Check.TRUNCATED, worst, text, command, remark=remark)


def _unknown_tails(planned: PlannedElection, state: PartitionState) -> list[int]:
    """Replicas of whose logs nobody knew in the plan whether they hold more: those that were not read, and all where
    nothing was counted, since the log of the replica that is to lead was not known or could not be compared."""
    unknown = planned.loss.unheard if planned.loss.total is not None else planned.evidence.replicas
    others = {planned.elect, state.leader}
    return sorted(one for one in unknown if one in state.replicas and one not in others)


def _came_back(
    planned: PlannedElection, replica: int, leader: int, logs: KnownLogs, saved: str | None
) -> tuple[Passed, str]:
    """Of a live replica whose log nobody had read or compared before the election: that of now tells nothing of it.

    Args:
        saved: the rescue file that has what the leader lacks of its log, as it was read; None: none is known.
    """
    silence = silence_of(logs, leader) or silence_of(logs, replica)
    if silence is not None:
        return silence
    agreed, end = logs.agreement(replica, leader), logs.ranked[replica].log_end
    if agreed is None:
        return Passed.UNKNOWN, f"{replica}'s log and the leader's cannot be compared"
    if agreed < end:
        parts = f"its log diverges from the leader's at {agreed}, and ends at {end}"
        return Passed.NOT_YET, f"{replica} still holds what the leader lacks, and will truncate it: {parts}"
    how = "read" if replica in planned.loss.unheard else f"compared with that of {planned.elect}"
    told = f"what it truncated is UNKNOWN: its log was not {how} before the election"
    if saved is not None:
        told = f"what it truncated, as its log was read, is saved in {saved}"
    return Passed.YES, f"{replica} holds nothing that the leader lacks; {told}"


def _of_unknown_tails(replicas: list[int], why: str) -> str:
    logs, disks = (agree(len(replicas), *words) for words in (("log", "logs"), ("its disk", "their disks")))
    returns = agree(len(replicas), "it returns", "they return")
    return (
        f"the {logs} of {brokers(replicas)} {agree(len(replicas), 'was', 'were')} {why}: what only {disks}"
        f" {agree(len(replicas), 'holds', 'hold')} is lost when {returns}, unless saved first"
    )


def _cut(truncation: Truncation, leader: int, logs: KnownLogs) -> tuple[Passed, str]:
    replica = truncation.replica
    silence = silence_of(logs, leader) or silence_of(logs, replica)
    if silence is not None:
        return silence
    agreed = logs.agreement(replica, leader)
    if agreed is None:
        return Passed.UNKNOWN, f"{replica}'s log and the leader's cannot be compared"
    if agreed < logs.ranked[replica].log_end:
        return (
            Passed.NOT_YET,
            f"{replica} still holds what it is to give up: its log diverges from the leader's at {agreed}",
        )
    return Passed.YES, f"{replica} gave up its log from {truncation.from_offset} on"


def logs_agree(planned: PlannedElection, state: PartitionState, seen: Seen, logs: KnownLogs) -> Finding:
    leader = state.leader
    assert leader is not None
    silence = silence_of(logs, leader)
    command = f"kelr log-info --lineage {planned.address}"
    if silence is not None:
        return finding_of(planned, Check.LOGS, silence[0], silence[1], command)
    kept, held = kept_up_to(planned, logs.heard[leader]), planned_log_end(planned)
    if kept is not None and held is not None and kept < held and leader == planned.elect:
        text = (
            f"{leader}'s log ended at {held} in the plan, and of that only what is below {kept} is in the log now:"
            " more was lost than planned"
        )
        return finding_of(planned, Check.LOGS, Passed.NO, text, command)
    if kept is None and leader == planned.elect:
        before = "was not read before the election" if held is None else f"ended at {held} in the plan"
        why = "" if held is None else ": its leader epochs were not asked for"
        text = (
            f"{leader}'s log {before}; whether its log of now, which ends at {logs.heard[leader].log_end}, holds all of"
            f" that is not known{why}"
        )
        return finding_of(planned, Check.LOGS, Passed.UNKNOWN, text, command)
    worst, texts = Passed.YES, []
    for replica in sorted(state.isr):
        if replica == leader:
            continue
        passed, text = _agrees(planned, replica, leader, seen, logs)
        worst = max(worst, passed, key=_WORSE.index)
        if passed is not Passed.YES:
            texts.append(text)
    others = [replica for replica in sorted(state.isr) if replica != leader]
    if worst is Passed.YES:
        end = logs.heard[leader].log_end
        text = f"the leader's log ends at {end}"
        text += f", and {_logs_of(others)} with it" if others else "; no other replica is in sync to compare it with"
        return finding_of(planned, Check.LOGS, worst, text)
    return finding_of(planned, Check.LOGS, worst, "; ".join(texts), command)


def _logs_of(replicas: list[int]) -> str:
    return f"{joined(replicas)} {'agrees' if len(replicas) == 1 else 'agree'}"


def _agrees(planned: PlannedElection, replica: int, leader: int, seen: Seen, logs: KnownLogs) -> tuple[Passed, str]:
    silence = silence_of(logs, replica)
    if silence is not None:
        return silence
    agreed = logs.agreement(replica, leader)
    if agreed is None:
        return Passed.UNKNOWN, f"{replica}'s log and the leader's cannot be compared"
    follower = logs.ranked[replica]
    if agreed < min(follower.log_end, logs.ranked[leader].log_end):
        return Passed.NO, f"{replica} is in the ISR, and its log diverges from the leader's at {agreed}"
    late = begins_later(follower, logs.ranked[leader])
    if late and follower.log_start == planned_log_end(planned):
        return Passed.NO, late
    if seen.earlier_high_watermark is not None and follower.log_end < seen.earlier_high_watermark:
        text = f"{replica} is in the ISR, and its log ends at {follower.log_end}, below the high watermark"
        return Passed.NOT_YET, f"{text} {seen.earlier_high_watermark}"
    return Passed.YES, ""


def silence_of(logs: KnownLogs, replica: int) -> tuple[Passed, str] | None:
    """Why nothing can be said of a replica's log; None where something can."""
    if replica in logs.ranked:
        return None
    heard, unheard = logs.heard.get(replica), logs.unheard.get(replica)
    if heard is not None:
        return Passed.UNKNOWN, f"the epochs of {replica}'s log are not known: {heard.last_epoch_error or 'no epochs'}"
    passed = Passed.NOT_YET if unheard is not None and unheard.reason in _PASSING else Passed.UNKNOWN
    return passed, f"{replica}'s log was not read: {_why(unheard)}"


def _why(unheard: LogUnavailable | None) -> str:
    return "it was not asked for" if unheard is None else unheard.detail or str(unheard.reason)


_WORSE = (Passed.YES, Passed.UNKNOWN, Passed.NOT_YET, Passed.NO)
"""Which result stands for several; NOT_YET before UNKNOWN, so that what comes true is waited for."""
