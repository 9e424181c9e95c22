"""The words of a history: what happened, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kelr.model import PartitionState
from kelr.replay.history import (
    BrokerEntry,
    BrokerEvent,
    Cause,
    CauseKind,
    Certainty,
    ClusterEntry,
    ClusterEvent,
    ElectedAs,
    Election,
    Entry,
    PartitionEntry,
    PartitionsEntry,
    ReassignmentStep,
    Restart,
)
from kelr.view.styled import Span, Style, Text, plain

NONE = "none"


def when(at_ms: int) -> str:
    """A moment of the controller's clock in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}"


def what(entry: Entry) -> Text:
    """What happened, in a few words."""
    if isinstance(entry, PartitionEntry):
        return _joined(list(_of_partition(entry)))
    if isinstance(entry, PartitionsEntry):
        return _joined(list(_of_partitions(entry)))
    return plain(_of_broker(entry)) if isinstance(entry, BrokerEntry) else plain(_of_cluster(entry))


def why(entry: Entry) -> Text:
    """The cause of a partition's change; nothing for what is a cause itself."""
    if isinstance(entry, BrokerEntry | ClusterEntry):
        return ()
    first = entry if isinstance(entry, PartitionEntry) else entry.entries[0]
    text = cause_words(entry.cause, first)
    if entry.cause.certainty is Certainty.LIKELY:
        return plain(f"likely: {text}")
    return plain(text)


def cause_words(cause: Cause, entry: PartitionEntry) -> str:
    """A cause in words.

    Args:
        entry: what it did, or the first that it did.
    """
    broker = cause.broker
    fixed = {
        CauseKind.BROKER_FENCED: f"broker {broker} was fenced",
        CauseKind.BROKER_UNFENCED: f"broker {broker} was unfenced",
        CauseKind.CONTROLLED_SHUTDOWN: f"broker {broker} began to shut down",
        CauseKind.BROKER_UNREGISTERED: f"broker {broker} was unregistered",
        CauseKind.TOPIC_CREATED: "topic created",
        CauseKind.PARTITIONS_ADDED: "partitions added",
        CauseKind.TOPIC_DELETED: "topic deleted",
        CauseKind.AS_FOUND: "how it was when this begins",
        CauseKind.NOT_TOLD: "not told: the log breaks off, and a checkpoint goes on",
        CauseKind.UNKNOWN: "unknown: the log does not tell",
    }
    if cause.kind in fixed:
        return fixed[cause.kind]
    if cause.kind is CauseKind.BROKER_REGISTERED:
        return f"broker {broker} registered{_RESTARTS[cause.restart]}"
    if cause.kind is CauseKind.ALTER_PARTITION:
        return _report(cause, entry)
    if cause.kind is CauseKind.DIRECTORY_FAILED:
        return f"a log directory of {'a broker' if broker is None else f'broker {broker}'} failed"
    if cause.kind is CauseKind.MIN_ISR_WRITTEN:
        return f"min.insync.replicas was written{'' if cause.detail is None else f' {cause.detail}'}"
    if cause.kind is CauseKind.REASSIGNMENT:
        return "AlterPartitionReassignments"
    designated = entry.election is not None and entry.election.designated
    kind = "preferred election" if cause.kind is CauseKind.PREFERRED_ELECTION else cause.detail or "an election"
    return f"a designation (it was just put first) by {kind}" if designated else kind


def isr_words(members: Sequence[int] | None) -> str:
    """Members of a set; ``?`` where they are not known."""
    if members is None:
        return "?"
    return " ".join(map(str, members)) or NONE


def lasted(duration_ms: int) -> str:
    """A duration for people: two units at most."""
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    seconds = duration_ms // 1000
    if seconds < 60:
        return f"{duration_ms / 1000:.1f}s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


_RESTARTS = {
    Restart.FIRST: " (none before it is on record)",
    Restart.SAME_INCARNATION: " again, without a restart",
    Restart.CLEAN: " after a clean restart",
    Restart.UNCLEAN: " after an unclean restart",
    Restart.NOT_SHOWN: " after a restart (clean or unclean: nothing shows it)",
    None: "",
}
_ELECTED = {
    ElectedAs.ELR: "from the ELR",
    ElectedAs.LAST_KNOWN_LEADER: "the last known leader, from neither ISR nor ELR",
    ElectedAs.UNCLEAN: "UNCLEAN, from neither ISR nor ELR",
    ElectedAs.UNCLEAN_RECOVERY: "by unclean recovery or designated, from neither ISR nor ELR",
    ElectedAs.UNKNOWN: "clean or unclean is not told",
}
_STEPS = {
    ReassignmentStep.BEGUN: "reassignment begun",
    ReassignmentStep.COMPLETED: "reassignment completed",
    ReassignmentStep.CANCELLED: "reassignment cancelled",
    ReassignmentStep.CHANGED: "reassignment changed",
    ReassignmentStep.AT_ONCE: "reassigned at once",
    ReassignmentStep.REORDERED: "replicas reordered",
}


def _of_partition(entry: PartitionEntry) -> Iterator[Text]:
    before, after = entry.before, entry.after
    if after is None:
        yield plain("deleted")
        return
    if before is None:
        yield from _whole(after, made=entry.cause.kind is not CauseKind.AS_FOUND)
        return
    if entry.reassignment is not None:
        yield plain(_reassigned(entry.reassignment, before, after))
    if before.leader != after.leader or before.leader_epoch != after.leader_epoch:
        yield from _leader(before, after, entry.election)
    for name, was, now in (
        ("ISR", before.isr, after.isr),
        ("ELR", before.elr, after.elr),
        ("last known", before.last_known_elr, after.last_known_elr),
    ):
        if was != now:
            yield plain(f"{name} {isr_words(was)} -> {isr_words(now)}")
    if before.recovering and not after.recovering:
        yield plain("recovered")


def _leader(before: PartitionState, after: PartitionState, election: Election | None) -> Iterator[Text]:
    was, now = before.leader, after.leader
    epoch = f"(epoch {after.leader_epoch})"
    if was == now:
        yield plain(f"leader {_id(now)} {epoch}")
        return
    text = f"leader {_id(was)} -> {_id(now)} {epoch}"
    if now is None:
        yield [Span(text, Style.BAD)]
        return
    chosen = None if election is None else _ELECTED.get(election.elected_as)
    if election is None or chosen is None:
        yield plain(text)
        return
    last = "" if was is not None or election.last_leader is None else f"; {election.last_leader} led before"
    style = Style.BAD if election.elected_as.clean is False else Style.NOTICE
    yield [Span(text + " "), Span(chosen, style), Span(last)]


def _whole(state: PartitionState, *, made: bool) -> Iterator[Text]:
    if made:
        yield plain("created")
    leader = f"leader {_id(state.leader)} (epoch {state.leader_epoch})"
    yield [Span(leader, Style.BAD)] if state.leader is None else plain(leader)
    yield plain(f"replicas {isr_words(state.replicas)}")
    yield plain(f"ISR {isr_words(state.isr)}")
    if state.elr:
        yield plain(f"ELR {isr_words(state.elr)}")
    if state.last_known_elr:
        yield plain(f"last known {isr_words(state.last_known_elr)}")
    if state.adding or state.removing:
        yield plain(f"adding {isr_words(state.adding)}, removing {isr_words(state.removing)}")
    if state.recovering:
        yield plain("recovering from an unclean election")


def _reassigned(step: ReassignmentStep, before: PartitionState, after: PartitionState) -> str:
    replicas = f"replicas {isr_words(before.replicas)} -> {isr_words(after.replicas)}"
    text = _STEPS[step]
    if step is ReassignmentStep.REORDERED:
        return replicas
    if step in {ReassignmentStep.BEGUN, ReassignmentStep.CHANGED} and (after.adding or after.removing):
        return f"{text} (adding {isr_words(after.adding)}, removing {isr_words(after.removing)})"
    return f"{text}: {replicas}" if before.replicas != after.replicas else text


def _of_partitions(entry: PartitionsEntry) -> Iterator[Text]:
    if entry.reassignment is not None:
        yield plain(_STEPS[entry.reassignment])
    for count, text, style in (
        (entry.created, "created", Style.PLAIN),
        (entry.deleted, "deleted", Style.PLAIN),
        (entry.lost_leader, "lost their leader", Style.BAD),
        (entry.unclean, "elected uncleanly", Style.BAD),
        (entry.clean_unknown, "elected, clean or unclean is not told", Style.NOTICE),
        (entry.got_leader, "got a leader again", Style.PLAIN),
        (entry.moved_leader, "changed the leader", Style.PLAIN),
        (entry.isr_shrank, "lost ISR members", Style.PLAIN),
        (entry.isr_grew, "got ISR members", Style.PLAIN),
        (entry.elr_struck, "lost an ELR member", Style.NOTICE),
    ):
        if count:
            yield [Span(f"{'all' if count == entry.count else count} {text}", style)]


def _of_broker(entry: BrokerEntry) -> str:
    if entry.event is BrokerEvent.REGISTERED and entry.after is not None:
        cordoned = ", cordoned" if entry.after.cordoned else ""
        return f"registered{_RESTARTS[entry.restart]}, broker epoch {entry.after.registration.epoch}{cordoned}"
    if entry.event is BrokerEvent.DIRECTORIES_CHANGED:
        lost = len(entry.directories_lost)
        return f"lost {lost} log {'directory' if lost == 1 else 'directories'}" if lost else "has other log directories"
    if entry.event is BrokerEvent.FENCED:
        stopping = entry.before is not None and entry.before.in_controlled_shutdown
        return "fenced, at the end of its shutdown" if stopping else "fenced"
    return {
        BrokerEvent.UNFENCED: "unfenced",
        BrokerEvent.SHUTDOWN_BEGUN: "began to shut down",
        BrokerEvent.UNREGISTERED: "unregistered",
        BrokerEvent.CORDONED: "cordoned: Kafka 4.4 takes no order of replicas that names it",
        BrokerEvent.UNCORDONED: "uncordoned",
    }.get(entry.event, str(entry.event))


def _of_cluster(entry: ClusterEntry) -> str:
    if entry.event is ClusterEvent.CONTROLLER:
        return f"controller {entry.after} is active, in epoch {entry.at.epoch}"
    if entry.event is ClusterEvent.CHECKPOINT:
        return "the log goes on from a checkpoint: what came before it and is not told above is not known"
    where = "" if entry.event is ClusterEvent.FEATURE else f" of {entry.topic}" if entry.topic else " of all topics"
    before, after = (NONE if value is None else value for value in (entry.before, entry.after))
    return f"{entry.name}{where}: {before} -> {after}"


def _report(cause: Cause, entry: PartitionEntry) -> str:
    """What a leader reported. Of several partitions the first stands for all."""
    before, after = entry.before, entry.after
    if before is None or after is None:
        return f"leader {cause.broker} reported"
    into = sorted(set(after.isr) - set(before.isr))
    out = sorted(set(before.isr) - set(after.isr) - set(before.removing or ()))
    parts = [
        f"let {isr_words(into)} into the ISR" if into else "",
        f"took {isr_words(out)} out of the ISR" if out else "",
        "has recovered" if before.recovering and not after.recovering else "",
    ]
    return f"leader {cause.broker} {' and '.join(filter(None, parts)) or 'reported'}"


def _id(broker: int | None) -> str:
    return NONE if broker is None else str(broker)


def _joined(parts: Sequence[Text]) -> Text:
    """The parts with commas behind all but the last; a comma never begins a line."""
    spans: list[Span] = []
    for part in parts:
        if spans:
            last = spans.pop()
            spans += [Span(f"{last.text},", last.style), Span(" ")]
        spans.extend(part)
    return spans
