"""What a scenario prints: one fact a line, short, the same for the same cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kelr.controller import Change, LogInfo, LogInfoRequest, Recovery, Refused, Stepped
from kelr.controller.reach import NONE
from kelr.engine.elections import elected_by
from kelr.model import (
    Bounds,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    Loss,
    LossCertainty,
    Outcome,
    PartitionState,
    TopicPartition,
)
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.logs import SimulatedLog
from kelr.simulation.replication import Replication

_GRADES = {LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR: "none-if-fewer-than-min-isr"}
_ELECTIONS = {ElectionType.LONGEST_LOG_BALANCED: "balanced", ElectionType.LONGEST_LOG_AGGRESSIVE: "aggressive"}
NOTHING_CHANGES = "nothing changes"


def ids(brokers: Iterable[int] | None) -> str:
    """``1,2``; ``-`` for none, ``?`` where not known."""
    return "?" if brokers is None else ",".join(map(str, brokers)) or "-"


def state_line(state: PartitionState, by: ElectedBy | None = None) -> str:
    """``orders:0 leader=2 by=elr epoch=3 isr=2 elr=1 last=-``; `by` where the leader is a new one."""
    parts = [f"{state.address} leader={'none' if state.leader is None else state.leader}"]
    parts += [f"by={by}"] if by else []
    parts += [f"epoch={state.leader_epoch}", f"isr={ids(state.isr)}", f"elr={ids(state.elr)}"]
    parts += [f"last={ids(state.last_known_elr)}"]
    parts += ["recovering"] if state.recovering else []
    return " ".join(parts)


def change_lines(changes: Iterable[Change], by: ElectedBy | None = None) -> list[str]:
    """The partitions that an event changed, each once: as the last of its records leaves it.

    Args:
        by: why new leaders were elected, where the event itself says it.
    """
    last: dict[TopicPartition, Change] = {}
    electing: dict[TopicPartition, Change] = {}
    for change in changes:
        if change.written:
            last[change.after.address] = change
            if change.after.leader is not None and change.after.leader != change.before.leader:
                electing[change.after.address] = change
    reasons = {address: by or elected_by(change) for address, change in electing.items()}
    return [state_line(change.after, reasons.get(address)) for address, change in sorted(last.items())]


def answer_lines(answers: Mapping[TopicPartition, str], *, only_errors: bool) -> list[str]:
    """Kafka's names of errors, with the partition where several were asked about."""
    shown = {address: error for address, error in answers.items() if error != NONE or not only_errors}
    if len(answers) == 1:
        return list(shown.values())
    return [f"{address} {error}" for address, error in sorted(shown.items())]


FIELDS = ("leader", "isr", "elr", "last-known-elr")


def fields_line(state: PartitionState, fields: Iterable[str]) -> str:
    """``Leader=1, ISR=[1, 3], ELR=[2]``: a state as papers about the protocol write it."""
    values = {
        "leader": f"Leader={'NoLeader' if state.leader is None else state.leader}",
        "isr": f"ISR={_bracketed(state.isr)}",
        "elr": f"ELR={_bracketed(state.elr or ())}",
        "last-known-elr": f"LastKnownELR={_bracketed(state.last_known_elr or ())}",
    }
    return ", ".join(values[field] for field in fields)


def log_line(replica: int, log: SimulatedLog) -> str:
    """``Replica 1: LEO=15, HWM=10``."""
    return f"Replica {replica}: LEO={log.end}, HWM={log.high_watermark}"


def log_text(address: TopicPartition, replica: int, log: SimulatedLog) -> str:
    """``orders:0@1 end=15 hw=10 epochs=0:12,3:15``; the start, and what is flushed, where they tell something."""
    epochs = ",".join(f"{entry.epoch}:{entry.end_offset}" for entry in log.lineage) or "-"
    parts = [f"{address}@{replica} end={log.end} hw={log.high_watermark} epochs={epochs}"]
    parts += [f"start={log.start}"] if log.start else []
    parts += [f"flushed={log.flushed}"] if log.start < log.flushed < log.end else []
    return " ".join(parts)


def committed_line(address: TopicPartition, logs: Replication) -> str:
    """``orders:0 committed=10 lost=2 gone=0 lacking=1:0,2:2``: what became of the records acknowledged with acks=all.

    `lost` is what the leader's log does not hold, ``-`` where nobody leads; `gone` what no log holds any more;
    `lacking` counts for each replica.
    """
    lost = "-" if logs.leadership is None else str(len(logs.lost_by(logs.leadership.leader)))
    lacking = ",".join(f"{replica}:{len(logs.lost_by(replica))}" for replica in sorted(logs.logs))
    return f"{address} committed={len(logs.ledger.committed)} lost={lost} gone={len(logs.gone)} lacking={lacking}"


def recovery_line(address: TopicPartition, recovery: Recovery, heard: Mapping[int, LogInfo]) -> str:
    """``orders:0 waits-for-logs balanced quorum=1,2 heard=1:15@0``: where an unclean recovery stands.

    What was heard is a log's end and its last epoch, for each replica.
    """
    parts = [f"{address} {recovery.standing}"]
    parts += [str(recovery.strategy)] if recovery.strategy else []
    parts += [f"quorum={ids(recovery.quorum)}"] if recovery.quorum else []
    parts += [f"not-live={ids(recovery.not_live)}"] if recovery.not_live else []
    logs = (
        f"{replica}:{log.log_end}@{'-' if log.last_epoch is None else log.last_epoch}"
        for replica, log in sorted(heard.items())
    )
    parts += [f"heard={','.join(logs)}"] if heard else []
    parts += [] if recovery.choice is None else [f"choice={recovery.choice}"]
    return " ".join(parts)


def _bracketed(brokers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, brokers))}]"


def verdict_line(decision: Decision) -> str:
    """Where a partition stands: ``orders:0 waiting-for-elr: no leader by itself, waits for 1; advice: wait 1``."""
    waits = f", waits for {ids(decision.waits_for)}" if decision.waits_for else ""
    by_itself = (
        "" if decision.leader is not None else f"{_who(decision.elected, decision.elected_by)} by itself{waits}; "
    )
    replica = "" if decision.advice.replica is None else f" {decision.advice.replica}"
    advice = f"advice: {decision.advice.action}{replica}"
    return f"{decision.topic}:{decision.partition} {decision.situation}: {by_itself}{advice}"


def decision_lines(decision: Decision) -> Iterator[str]:
    """Situation, who is elected by itself, what each election and each return would give, and the advice."""
    yield f"{decision.topic}:{decision.partition} {decision.situation} min-isr={decision.min_isr}"
    waits = f", waits for {ids(decision.waits_for)}" if decision.waits_for else ""
    yield f"  by itself: {_who(decision.elected, decision.elected_by)}{waits}"
    for outcome in decision.elections:
        yield f"  {_kind(outcome)}: {_outcome(outcome)}"
    for forecast in decision.forecasts:
        yield f"  if {forecast.replica} returns {'clean' if forecast.clean else 'unclean'}: {_forecast(forecast)}"
    replica = "" if decision.advice.replica is None else f" {decision.advice.replica}"
    yield f"  advice: {decision.advice.action}{replica}"


def _kind(outcome: Outcome) -> str:
    if outcome.election is ElectionType.DESIGNATION and outcome.designate is not None:
        return f"designate {outcome.designate}"
    return _ELECTIONS.get(outcome.election, outcome.election.value)


def _outcome(outcome: Outcome) -> str:
    if outcome.note.startswith("not needed"):
        return f"not needed, {outcome.elected} leads"
    waits = f", waits for {ids(outcome.waits_for)}" if outcome.waits_for else ""
    return f"{_who(outcome.elected, outcome.elected_by)}{waits}{_loss(outcome.loss)}"


def _forecast(forecast: Forecast) -> str:
    warned = ", warned" if forecast.warning else ""
    return f"{_who(forecast.elected, forecast.elected_by)}{_loss(forecast.loss)}{warned}"


def _who(leader: int | None, by: ElectedBy | None) -> str:
    return "no leader" if leader is None else f"{leader} by {by}"


def _loss(loss: Loss | None) -> str:
    if loss is None:
        return ""
    counted = [
        f"{name} {_bounds(bounds)}"
        for name, bounds in (("lost", loss.total), ("committed", loss.committed))
        if bounds is not None and loss.total is not None
    ]
    unread = [f"not read {ids(loss.unheard)}"] if loss.unheard else []
    return "; " + ", ".join([_GRADES.get(loss.grade, loss.grade.value), *counted, *unread])


def _bounds(bounds: Bounds) -> str:
    if bounds.at_most is None:
        return f"{bounds.at_least}+" if bounds.at_least else "UNKNOWN"
    return str(bounds.at_least) if bounds.exact else f"{bounds.at_least}..{bounds.at_most}"


# What an event's outcome looks like in a scenario's output.


def outcome_lines(*steps: Stepped) -> list[str]:
    """Refusals, then the partitions that these events changed, event by event; or that nothing changes."""
    lines: list[str] = []
    for done in steps:
        lines += [] if done.error == NONE else [done.error]
        lines += answer_lines(done.answers, only_errors=True)
        lines += _what_it_did(done)
    return lines or [NOTHING_CHANGES]


def answered_lines(done: Stepped, *, by: ElectedBy | None = None) -> list[str]:
    """What a request was answered, and what it changed.

    Args:
        by: the reason of an election that the request itself names.
    """
    answers = [done.error] if done.error != NONE else answer_lines(done.answers, only_errors=False)
    return [*answers, *(_what_it_did(done, by) or [NOTHING_CHANGES])]


def _what_it_did(done: Stepped, by: ElectedBy | None = None) -> list[str]:
    return [
        *map(_refused_line, done.refused),
        *change_lines(done.changes, by),
        *map(_request_line, done.requests),
    ]


def _refused_line(refused: Refused) -> str:
    detail = f": {refused.detail}" if refused.detail else ""
    return f"{refused.address} refuses the answer of {refused.broker}, {refused.reason}{detail}"


def _request_line(request: LogInfoRequest) -> str:
    return f"asks {request.broker} for the log of {', '.join(map(str, request.partitions))}"


def changed_logs(
    before: SimulatedCluster, after: SimulatedCluster, addresses: Iterable[TopicPartition]
) -> Sequence[str]:
    """The logs that are not what they were; or that nothing changes."""
    lines = []
    for address in addresses:
        old, new = before.replication[address].logs, after.replication[address].logs
        lines += [log_text(address, replica, log) for replica, log in sorted(new.items()) if log != old.get(replica)]
    return lines or [NOTHING_CHANGES]
