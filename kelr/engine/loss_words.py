"""A loss in words, for every output: how much, how sure that is, and whose log would tell.

What is not known is UNKNOWN, with its lower bound where there is one, and never "0" or "nothing".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kelr.engine.words import agree, brokers, offsets_in_words
from kelr.model import Bounds, Loss, LossCertainty, ReplicaLog


def promise(min_isrs: Iterable[int | None]) -> str:
    """What a loss of none is of, and the condition that it hangs on: ``of what was committed with min ISR 2, if fewer
    than 2 replicas lost data`` (KIP-966, balanced recovery).

    Args:
        min_isrs: `Loss.min_isr` of each election that this is said of.
    """
    known = set(min_isrs)
    return f"{promised_of(known)}, {promised_if(known)}"


def promise_in_words(min_isr: int | None) -> str:
    """The same as a sentence: what hearing the whole recovery quorum promises."""
    return f"nothing {promised_of([min_isr]).removeprefix('of what was ')} is lost {promised_if([min_isr])}"


def promised_of(min_isrs: Iterable[int | None]) -> str:
    """The first half of `promise`: a record that was committed with a smaller min ISR was on fewer replicas."""
    match [*set(min_isrs)]:
        case [1]:
            return "of what was committed"
        case [int(number)]:
            return f"of what was committed with min ISR {number}"
    return "of what was committed with the present min ISR"


def promised_if(min_isrs: Iterable[int | None]) -> str:
    """The second half."""
    match [*set(min_isrs)]:
        case [1]:
            return "if no replica lost data"
        case [int(number)]:
            return f"if fewer than {number} replicas lost data"
    return "if fewer than min ISR replicas lost data"


def not_read(replicas: Sequence[int]) -> str:
    """``the log of broker 1 was not read``, ``the logs of brokers 1 and 2 were not read``."""
    logs, were = agree(len(replicas), "log", "logs"), agree(len(replicas), "was", "were")
    return f"the {logs} of {brokers(replicas)} {were} not read"


def maybe_cut(replicas: Sequence[int]) -> str:
    """``the log of broker 4 may be cut``; empty without replicas."""
    return f"the {agree(len(replicas), 'log', 'logs')} of {brokers(replicas)} may be cut" if replicas else ""


def gone_in_words(ranges: Sequence[tuple[int, int]], unheard: Sequence[int] = ()) -> str:
    """``offsets 101..162 were committed and are on no usable log: ...``.

    A disk may still hold them beyond a damaged batch (`ReplicaLog.cut_off`): Kafka cuts that off.

    Args:
        unheard: replicas whose logs were not read: they may still hold them.
    """
    count = sum(last - first + 1 for first, last in ranges)
    were, are, they = agree(count, "was", "were"), agree(count, "is", "are"), agree(count, "it is", "they are")
    kept = "no usable log"
    where = f"{kept} of those that were read" if unheard else f"{kept}: {they} lost whichever replica is elected"
    return f"{offsets_in_words(ranges)} {were} committed and {are} on {where}"


def begins_later(log: ReplicaLog, leader: ReplicaLog) -> str:
    """What is wrong with a log with remote storage that begins later than its leader's: it was truncated to before its
    first segment, and the rest is deleted once it leads. Empty where nothing is."""
    start, leads_from = log.log_start or 0, leader.log_start or 0
    if log.local_start is None or start <= leads_from:
        return ""
    return (
        f"the log of {log.replica} begins at {start}, and that of {leader.replica}, which leads, at {leads_from}: if"
        f" {log.replica} leads, Kafka deletes what is in remote storage before {start}. A replica that is made anew"
        " (reassigned away and back) begins where the leader's does"
    )


def certainty_in_words(loss: Loss) -> str:
    """How sure a loss is, for a table's cell."""
    if loss.grade is LossCertainty.PROVEN_NONE:
        return "proven" if loss.total is not None and loss.total.at_most is not None else "committed: proven"
    if loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        return f"none {promise([loss.min_isr])}{_cut(loss)}"
    if loss.grade is LossCertainty.BOUNDED and not loss.unheard:
        return f"all logs read{_cut(loss)}"
    if not loss.counted:
        return loss.reason
    why = [not_read(loss.unheard)] if loss.unheard else []
    why += [f"{brokers(loss.lost_data)} lost committed data"] if loss.lost_data else []
    why += [f"{offsets_in_words(loss.gone_ranges)} on no usable log"] if loss.gone_ranges else []
    why = why or [maybe_cut(loss.may_have_lost) or loss.reason]
    return f"UNKNOWN: {'; '.join(why)}"


def loss_in_words(loss: Loss) -> str:
    """What electing a replica loses, as a sentence: how many offsets, how many of them committed, and how sure that
    is."""
    counted = _counted(loss)
    return f"{counted}: {loss.reason}." if loss.reason else f"{counted}."


def loss_in_short(loss: Loss) -> str:
    """The same as the end of a sentence, without how it is known: ``at least 19 offsets; the log of broker 1 was not
    read``."""
    counted = _counted(loss)
    text = counted if counted.startswith("UNKNOWN") else f"{counted[:1].lower()}{counted[1:]}"
    return f"{text}{_aside(loss)}"


def cost_in_words(loss: Loss | None) -> str:
    """A loss as the end of a sentence about an election: ``which loses at least 19 offsets; ...``."""
    if loss is None or loss.total is None:
        return "loses an UNKNOWN number of offsets"
    total, known = loss.total, loss.committed.at_least if loss.committed else 0
    if total.none:
        return f"loses nothing of any log{_aside(loss)}"
    of_them = f"{known} of them" if known < total.at_least else "all of them"
    committed = f", {of_them} known to be committed" if known else ""
    amount = "an UNKNOWN number of offsets" if not total.at_least and total.at_most is None else amount_in_words(total)
    return f"loses {amount}{committed}{_aside(loss)}"


def lost_in_words(loss: Loss) -> str:
    """A loss in a cell, committed offsets first."""
    committed, total = loss.committed, loss.total
    if total is None:
        return "nothing committed" if committed is not None and committed.none else "UNKNOWN"
    if total.none:
        return "nothing"
    if committed is not None and committed.none:
        return f"nothing committed, {total} in all"
    if not total.at_least and total.at_most is None:
        return "UNKNOWN"
    known = "none known to be" if committed is None or not committed.at_least else str(committed)
    return f"{known} committed, {total} in all"


def amount_in_words(bounds: Bounds) -> str:
    """``1 offset``, ``at least 19 offsets``, ``0 to 5 offsets``."""
    return f"{bounds} offset{'' if bounds.exact and bounds.at_least == 1 else 's'}"


def _aside(loss: Loss) -> str:
    """What a count does not show: logs that were not read, what is on no log, and what nobody can see any more."""
    unread = f"; {not_read(loss.unheard)}" if loss.unheard else _cut(loss)
    return unread + (f"; {gone_in_words(loss.gone_ranges, loss.unheard)}" if loss.gone_ranges else "")


def _cut(loss: Loss) -> str:
    """That more may be lost than any log shows, because some have lost data; empty where all is counted."""
    if loss.total is None or loss.total.at_most is not None:
        return ""
    if not loss.lost_data:
        return f"; {maybe_cut(loss.may_have_lost)}" if loss.may_have_lost else ""
    has = agree(len(loss.lost_data), "has", "have")
    return f"; {brokers(loss.lost_data)} {has} lost data, perhaps more than any log shows"


def _counted(loss: Loss) -> str:
    total, proven = loss.total, loss.grade is LossCertainty.PROVEN_NONE
    if total is None or (not total.at_least and total.at_most is None):
        promised = (
            loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
            and loss.committed is not None
            and loss.committed.none
        )
        unknown = "UNKNOWN, none of it committed" if promised else "UNKNOWN"
        return "Nothing that was committed; what else is UNKNOWN" if proven else unknown
    if total.none:
        return "Nothing"
    offsets = f"{amount_in_words(total)}{where_in_words(loss)}"
    if total.at_most is None and not proven:
        offsets = f"UNKNOWN, {offsets}"
    if proven:
        return f"Nothing that was committed; {offsets} that never were"
    if loss.committed is None:
        return offsets
    if loss.committed.none:
        return f"{offsets}, none of them committed"
    if not loss.committed.at_least and loss.committed.at_most is None:
        return f"{offsets}; how many of them were committed is UNKNOWN"
    return f"{offsets}; {loss.committed} of them committed"


def where_in_words(loss: Loss) -> str:
    """The offsets, where one range holds exactly as many as are known to be lost."""
    if loss.total is None or len(loss.lost_ranges) != 1:
        return ""
    first, last = loss.lost_ranges[0]
    return f" ({first}..{last})" if last - first + 1 == loss.total.at_least else ""
