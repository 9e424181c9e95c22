"""The first sentences of an explanation: what is lost, by whose election, and why no more is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.controller import RULE_SETS
from kelr.engine.loss_words import PROMISE, amount_in_words, where_in_words
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.words import agree, brokers, former_in_words, time_of_day
from kelr.model import (
    LOG_DIRECTORY,
    AdviceAction,
    Candidate,
    Decision,
    ElectionType,
    Loss,
    LossCertainty,
    Outcome,
    ReplicaLog,
)
from kelr.page.words import full
from kelr.view.explain_columns import Explained
from kelr.view.styled import Span, Style, Text, plain


def loss_now(row: Explained) -> Text:
    """Nothing, where following the advice loses nothing; else what the best election loses now, and why no more is
    known."""
    decision = row.decision
    if decision.elected is not None and decision.elected != decision.leader:
        found = next((one for one in decision.elections if one.elected == decision.elected), None)
        return _loss(row, None if found is None else found.loss, f"when Kafka elects {decision.elected}")
    back = _lossless_return(decision)
    if back is not None:
        return plain(" ".join(_of_the_return(row, back)))
    asked = best_election(decision)
    if asked is None:
        return [Span("UNKNOWN.", Style.BAD), Span(f" No broker can be elected now.{_unread(row, _unheard(decision))}")]
    known = [one for one in decision.elections if one.loss is not None and _counts(one.loss)]
    designated = asked.election is ElectionType.DESIGNATION and bool(known)
    return _loss(row, asked.loss, f"if you designate {asked.designate} now" if designated else "if you elect now")


def _loss(row: Explained, loss: Loss | None, when: str) -> Text:
    """``UNKNOWN if you elect now: at least 19 offsets (116..134), at least 4 of them committed.`` and why."""
    if loss is None:
        return [Span("UNKNOWN", Style.BAD), Span(f" {when}.")]
    total, committed = loss.total, loss.committed
    unread = _unread(row, loss.unheard)
    reason = "" if unread or not loss.reason or loss.grade is not LossCertainty.UNKNOWN else f" {full(loss.reason)}"
    if loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        reason = f" No committed record is lost {PROMISE}."
        if total is not None and total.none:
            # The condition, in the same sentence: with min ISR 1 it may be all that there is to say.
            few = "no replica" if row.decision.min_isr == 1 else "fewer than min ISR replicas"
            return plain(f"None {when}, if {few} lost data.{unread}")
    of_them = f", {committed} of them committed" if committed is not None and _tells(loss) else ""
    if total is not None and total.none:
        return plain(f"None {when}.{reason}{unread}")
    if loss.grade is LossCertainty.PROVEN_NONE:
        others = f"; {amount_in_words(total)} that never were" if total is not None and total.at_least else ""
        return plain(f"No committed record {when}{others}.{unread}")
    if total is None or total.at_most is None:
        least = f": {amount_in_words(total)}{where_in_words(loss)}{of_them}" if total and total.at_least else ""
        return [Span("UNKNOWN", Style.BAD), Span(f" {when}{least}.{unread}{reason}")]
    return plain(f"{amount_in_words(total)}{where_in_words(loss)} {when}{of_them}.{reason}{unread}")


def _tells(loss: Loss) -> bool:
    """Whether the number of committed offsets says something: it is known to some extent, and no promise."""
    promised = loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    return loss.committed is not None and not promised and str(loss.committed) != "UNKNOWN"


def _counts(loss: Loss) -> bool:
    return loss.total is not None and (loss.total.at_least > 0 or loss.total.at_most is not None)


def best_election(decision: Decision) -> Outcome | None:
    """The election that the advice speaks of; else the one that is known to lose the fewest committed offsets."""
    asked = [
        one
        for one in decision.elections
        if one.elected is not None and one.loss is not None and not elects_by_unread_logs(decision, one)
    ]
    advised = (one for one in asked if one.designate is not None and one.designate == decision.advice.designate)
    return next(advised, None) or min(asked, key=_rank, default=None)


def _rank(outcome: Outcome) -> tuple[bool, tuple[bool, int]]:
    committed = None if outcome.loss is None else outcome.loss.committed
    return committed is None, (True, 0) if committed is None else committed.rank


def _lossless_return(decision: Decision) -> int | None:
    """The broker to start, where its return is known to lose nothing, however it stopped."""
    advice = decision.advice
    returns = [one for one in decision.forecasts if one.replica == advice.replica]
    none = [one.costs is not None and one.costs.total is not None and one.costs.total.none for one in returns]
    able = all(one.leads == advice.replica for one in returns)
    return advice.replica if advice.action is AdviceAction.BRING_BACK and none and all(none) and able else None


def _of_the_return(row: Explained, replica: int) -> Iterator[str]:
    candidates = row.decision.candidates
    best = any(one.best for one in candidates if one.replica == replica)
    read = sum(one.heard for one in candidates)
    why = f"its log is the most complete of {read}" if best else "its log lacks nothing that the others hold"
    elected = {one.elected for one in row.decision.forecasts if one.replica == replica}
    then = " and you designate it" if elected == {None} else " and leads" if None in elected else ""
    yield f"None if broker {replica} returns{then}: {why}."
    log = next((one for one in row.logs if isinstance(one, ReplicaLog) and one.replica == replica), None)
    if log is not None and log.source == LOG_DIRECTORY:
        when = "" if log.read_at_ms is None else f" {time_of_day(log.read_at_ms)}"
        how = {True: ", unclean shutdown", False: ", clean shutdown", None: ""}[log.unclean_shutdown]
        yield f"Disk read{when}: log end {log.log_end}{how}."


def _unheard(decision: Decision) -> tuple[int, ...]:
    return tuple(one.replica for one in decision.candidates if not one.heard)


def _unread(row: Explained, unheard: Sequence[int]) -> str:
    """Whose logs would tell more: a sentence behind another, and what their place promises; empty where all told."""
    decision = row.decision
    unread = [one for one in decision.candidates if one.replica in unheard]
    former = [one for one in unheard if one not in {candidate.replica for candidate in unread}]
    said = f" {full(former_in_words(former))}" if former else ""
    if not unread:
        return said
    names = brokers([one.replica for one in unread])
    place = _place(decision, unread)
    if all(row.unreachable(one.replica) for one in unread):
        said += f" {names.capitalize()}{place} {agree(len(unread), 'is', 'are')} unreachable."
        if place and not any(one.live for one in unread):
            hold = agree(len(unread), "It holds", "They hold")
            logs = agree(len(unread), "its log", "their logs")
            return f"{said} {hold} every committed record unless a crash cut {logs}."
        return said
    logs, were = agree(len(unread), "log", "logs"), agree(len(unread), "was", "were")
    return f"{said} The {logs} of {names}{place} {were} not read."


def _place(decision: Decision, replicas: Sequence[Candidate]) -> str:
    """`` (ELR)`` where all of them are members and the rules make that a promise; empty else."""
    if not RULE_SETS[decision.rules].elr:
        return ""
    if all(one.in_isr for one in replicas):
        return " (ISR)"
    return " (ELR)" if all(one.in_elr for one in replicas) else ""
