"""What changed between two looks, as a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kelr.engine.watching import BrokerChange, Change, Elected, Watched
from kelr.model import PartitionState, Situation
from kelr.view.describe import STYLES, standing_text
from kelr.view.styled import Span, Style, Text, written

_HOW = {
    Elected.FROM_ISR: "it was in the ISR",
    Elected.FROM_ELR: "it was in the ELR",
    Elected.RETURNED: "in ISR or ELR before it was away: clean only if its shutdown was",
    Elected.LAST_KNOWN_LEADER: "not clean: the last known leader, and in neither ISR nor ELR",
    Elected.UNCLEAN: "not clean: it was in neither ISR nor ELR",
    Elected.NOT_KNOWN: "clean or not is not known",
}
_JOINED = ": it may have joined the ISR in between"
_ALONE = {
    Situation.NO_LIVE_REPLICA: "no replica is live",
    Situation.NEEDS_UNCLEAN_RECOVERY: "an unclean election: Kafka elects no leader by itself",
    Situation.UNKNOWN: "not known",
}


def clock(at_ms: int) -> str:
    """``14:03:10``, UTC."""
    second = at_ms // 1000 % 86_400
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def duration(seconds: float) -> str:
    """``7 s``, ``3 m 07 s``, ``2 h 05 m``, ``3 d 04 h``."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3600:02} h"


def members(replicas: Iterable[int] | None) -> str:
    """``1,2``; ``-`` for none, ``?`` where it is not known."""
    return "?" if replicas is None else ",".join(map(str, replicas)) or "-"


def leader_word(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def waits_in_words(watched: Watched) -> str:
    """Whom a partition waits for, or why it is unsafe; empty for a healthy one."""
    state = watched.state
    if watched.elected is not None and state.leader is None:
        return f"broker {watched.elected} is about to be elected"
    if watched.awaits:
        return watched.awaits
    if watched.situation is Situation.UNDER_MIN_ISR:
        return f"{len(state.isr)} in sync of {watched.min_isr} needed"
    if watched.situation is Situation.LEADER_NOT_LIVE:
        return f"leader {state.leader} is not live"
    if watched.situation in {Situation.WAITING_FOR_ISR, Situation.WAITING_FOR_ELR}:
        return f"its {'ISR' if state.isr else 'ELR'}, {members(state.isr or state.elr)}"
    return _ALONE.get(watched.situation, "")


def needs_in_words(watched: Watched) -> str:
    """What the list says of a partition: whom it waits for, or which replicas are not in sync yet."""
    if watched.in_trouble:
        return waits_in_words(watched)
    return f"not in sync: {members(one for one in watched.state.replicas if one not in watched.state.isr)}"


def standing_in_words(watched: Watched) -> str:
    """How a partition stands, for the end of a line."""
    waits = waits_in_words(watched)
    if watched.awaits and watched.elected is None:
        return f"waits for {waits}"
    return waits or written(standing_text(watched.situation, watched.state.under_replicated), color=False)


def change_text(change: Change) -> Text:
    """The change without its time and its partition's name."""
    if isinstance(change, BrokerChange):
        was = "not listed" if change.before is None else str(change.before)
        now = "not listed" if change.after is None else str(change.after)
        return [Span(f"{was} -> "), Span(now, Style.GOOD if now == "live" else Style.BAD)]
    if change.after is None:
        return [Span("is not there any more", Style.NOTICE)]
    after = change.after
    if change.before is None or _made_anew(change.before.state, after.state):
        anew = "" if change.before is None else "was deleted and made anew; "
        return [Span(f"{anew}leader {leader_word(after.state.leader)}, ISR {members(after.state.isr)}"), *_end(after)]
    parts = list(_parts(change.before, after, change.elected)) or list(_offline(change.before, after))
    return [Span("; ".join(parts)), *_end(after)] if parts else list(_end(after))[1:]


def change_name(change: Change) -> str:
    """``broker 3``, or the partition."""
    return f"broker {change.broker}" if isinstance(change, BrokerChange) else str(change.address)


def plain_words(text: Text) -> str:
    return "".join(span.text for span in text)


def _made_anew(before: PartitionState, after: PartitionState) -> bool:
    return None not in {before.topic_id, after.topic_id} and before.topic_id != after.topic_id


def _end(after: Watched) -> Sequence[Span]:
    style = STYLES.get(after.situation, Style.BAD)
    return [Span(" "), Span(f"({standing_in_words(after)})", style)]


def _parts(before: Watched, after: Watched, how: Elected | None) -> Iterator[str]:
    old, new = before.state, after.state
    if old.leader != new.leader:
        yield f"leader {leader_word(old.leader)} -> {leader_word(new.leader)}{_elected(how, old, new)}"
    elif how is not None:
        yield f"leader {leader_word(new.leader)} again{_elected(how, old, new)}"
    elif old.leader_epoch != new.leader_epoch:
        yield f"leader epoch {old.leader_epoch} -> {new.leader_epoch}"
    for name, was, now in (
        ("ISR", old.isr, new.isr),
        ("ELR", old.elr, new.elr),
        ("last known leader", old.last_known_elr, new.last_known_elr),
        ("replicas", old.replicas, new.replicas),
        ("adding", old.adding, new.adding),
        ("removing", old.removing, new.removing),
    ):
        if was != now:
            yield f"{name} {members(was)} -> {members(now)}"
    told_at_the_end = old.leader != new.leader or after.situation is Situation.HEALTHY
    if before.situation is not after.situation and not told_at_the_end:
        yield f"{before.situation} -> {after.situation}"
    if before.min_isr != after.min_isr:
        yield f"min ISR {_number(before.min_isr)} -> {_number(after.min_isr)}"


def _offline(before: Watched, after: Watched) -> Iterator[str]:
    """Told where nothing else has changed: mostly it follows from a broker's status, which is told by itself."""
    was, now = (
        None if one is None else sorted(one) for one in (before.state.offline_replicas, after.state.offline_replicas)
    )
    if was != now:
        yield f"offline {members(was)} -> {members(now)}"


def _elected(how: Elected | None, old: PartitionState, new: PartitionState) -> str:
    if how is None:
        return ""
    steps = new.leader_epoch - old.leader_epoch
    why = "" if how is not Elected.NOT_KNOWN else f": {steps} leader epochs passed" if steps > 1 else _JOINED
    return f", {_HOW[how]}{why}"


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)
