"""Which records of which replicas are worth saving: those that the log of the coming, or present, leader lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from kelr.engine.logs import KnownLogs, count_distinct, missing
from kelr.engine.planning.rescue import rescue_from, rescue_from_anyone, rescue_from_unread
from kelr.engine.planning.subject import Subject, subject_of
from kelr.engine.words import agree, brokers, joined
from kelr.errors import UsageError
from kelr.model import (
    LOG_DIRECTORY,
    AdviceAction,
    Decision,
    LogUnavailable,
    PartitionState,
    ReplicaLog,
    RescueStep,
    Situation,
    Snapshot,
    TopicConfig,
)

KAFKA_CUTS_OFF = "Kafka cuts these off its disk when the broker starts"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Offsets `[from_offset, to_offset)` of one replica's log that are to be saved."""

    state: PartitionState
    replica: int
    from_offset: int
    to_offset: int
    why: str
    log: ReplicaLog
    compacted: bool | None = None
    open_since: int | None = None
    """Where at the earliest a transaction begins that is open in the log of the leader to come; None where that is not
    known, or behind `from_offset`. If its end is among what is lost, it hangs there."""
    lost_from: int | None = None
    """Where what is lost begins, where `from_offset` is earlier than that; else None."""
    lacked_by: int | None = None
    """The replica whose log lacks these, compared with it."""
    perhaps_held_by: int | None = None
    """The one whose log begins behind these, so that whether it held them is not known."""
    tiered: bool | None = None
    """Whether the topic has remote storage; None where its config is not known."""
    directory: str = ""
    """The replica's directory; empty: the one in which its disk has it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to save of one partition, and what to say of it."""

    state: PartitionState
    wanted: tuple[Wanted, ...] = ()
    note: str = ""
    """Why there is nothing to save, or what could not be looked at; empty where there is nothing to say."""
    failed: bool = False
    """Whether `note` says that nobody can tell what is to be saved."""
    leader: int | None = None
    """The replica whose log the others were compared with; None where none was."""
    leads: bool = False
    """Whether that one leads now."""
    covered: tuple[Wanted, ...] = ()
    """Of logs on disks that hold nothing that is not saved from elsewhere: no offsets, but what those logs were."""
    deleted: int = 0
    """Offsets that a log still holds and that one lacks, and that were deleted on purpose: they are not saved."""
    unread: tuple[int, ...] = ()
    """Replicas that were asked for and whose logs were not read, or cannot be compared with the leader's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What somebody asked for; None where kelr is to find it out.

    Args:
        replicas: save from these replicas only.
        from_offset, to_offset: save these offsets, `[from, to)`.
        whole: of `Choice.unread`: replicas whose disks are saved whole, beside what is chosen here.
    """

    replicas: Collection[int] | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    whole: Collection[int] = ()

    def __post_init__(self) -> None:
        if self.from_offset is not None and self.to_offset is not None and self.to_offset <= self.from_offset:
            raise UsageError(
                f"there is nothing from offset {self.from_offset} to {self.to_offset}",
                next_step="--to-offset is the first offset that is left out, so give a greater one",
            )

    def until(self, end: int) -> int:
        """Where what would end there is to end."""
        return end if self.to_offset is None else min(end, self.to_offset)


def choose(
    snapshot: Snapshot,
    decision: Decision,
    limits: Limits,
    *,
    elect: int | None = None,
    doubts: Mapping[int, LogUnavailable] = MappingProxyType({}),
) -> Choice:
    """What to save of the decision's partition before (or after) an election.

    Args:
        elect: who is to be elected; None: the present leader, else whom kelr advises to designate, else whom
            Kafka elects by itself, else the replica with the best log among those that can be elected; anybody, where
            ELR and LastKnownELR are not known.
        doubts: by replica, why its disk's reading, which the snapshot has, is not to be believed. What it holds is
            worth saving all the same; to the leader to come it does not count, and all that others hold is saved.
    """
    subject = subject_of(snapshot, decision)
    if subject is None:
        raise UsageError(f"{decision.topic}:{decision.partition} is not in the snapshot")
    config = snapshot.configs.get(decision.topic, TopicConfig())
    choice = _chosen(subject, limits, elect, doubts, _is_compacted(config))
    wanted = tuple(replace(one, tiered=config.remote_storage) for one in choice.wanted)
    return replace(choice, wanted=wanted, unread=_not_compared(subject, choice.leader, limits))


def _chosen(
    subject: Subject,
    limits: Limits,
    elect: int | None,
    doubts: Mapping[int, LogUnavailable],
    compacted: bool | None,
) -> Choice:
    if limits.from_offset is not None:
        return _named(subject, limits, compacted)
    if elect is not None and elect not in subject.state.replicas:
        return _unknown(subject, f"broker {elect}, which is to lead, is none of its replicas")
    if elect is None:
        elect = returning(subject)
    if elect is None and subject.live_leader is None and subject.decision.situation is Situation.UNKNOWN:
        return _whoever_leads(subject, limits, compacted)
    leader = elect if elect is not None else coming_leader(subject)
    if leader is None:
        return _unknown(subject, "it has no leader and none can be elected, so there is no log to compare with")
    if leader not in subject.case.logs.ranked:
        return _unread(subject, leader, limits, compacted)
    doubt = doubts.get(leader)
    if doubt is not None:
        return _doubtful(subject, doubt, limits, compacted)
    return _compared(subject, leader, limits, compacted, planned=elect is not None)


def _doubtful(subject: Subject, doubt: LogUnavailable, limits: Limits, compacted: bool | None) -> Choice:
    """All that the others hold, where nothing that is believed says what the leader to come holds."""
    leader, logs = doubt.replica, subject.case.logs
    own = logs.heard[leader]
    believed = ReplicaLog(leader, 0, log_start=0, source=own.source, cut_off=own.cut_off)
    nothing = KnownLogs({**logs.heard, leader: believed}, logs.unheard)
    alone = replace(subject, case=replace(subject.case, logs=nothing))
    choice = _compared(alone, leader, limits, compacted, planned=True)
    why = _lacks_unknown(leader)
    said = f"broker {leader}: {doubt.detail}; it counts as not read, so all that the others hold is saved"
    return replace(
        choice,
        wanted=tuple(
            replace(one, why=one.why if one.replica == leader else why, lacked_by=None, perhaps_held_by=None)
            for one in choice.wanted
        ),
        note=f"{said}; {choice.note}" if choice.note else said,
        failed=True,
    )


def returning(subject: Subject) -> int | None:
    """Whom kelr advises to bring back so that it leads; None where that is not the advice."""
    advice = subject.decision.advice
    if subject.live_leader is not None or advice.action is not AdviceAction.BRING_BACK:
        return None
    return advice.replica


def coming_leader(subject: Subject) -> int | None:
    """The replica whose log the others will follow; None where nobody can be elected."""
    if subject.live_leader is not None:
        return subject.live_leader
    advice = subject.decision.advice
    if advice.action is AdviceAction.DESIGNATE and advice.replica is not None:
        return advice.replica
    if subject.decision.elected is not None:
        return subject.decision.elected
    best = subject.case.logs.best_of(subject.case.electable)
    return None if best is None else best.replica


def _compared(subject: Subject, leader: int, limits: Limits, compacted: bool | None, *, planned: bool) -> Choice:
    logs, state = subject.case.logs, subject.state
    role = "leads" if subject.live_leader == leader else "is to lead" if planned else "would lead"
    why = f"replica {leader}, which {role}, lacks these"
    named = [one for one in state.replicas if limits.replicas is None or one in limits.replicas]
    if not named:
        holds = agree(len(limits.replicas or ()), "holds", "hold")
        return Choice(state, (), f"{brokers(sorted(limits.replicas or ()))} {holds} no replica of it", leader=leader)
    stable = logs.heard[leader].last_stable_offset
    wanted = tuple(
        replace(
            wanted_of(state, logs, step, leader, why=why, limits=limits),
            compacted=compacted,
            open_since=stable if stable is not None and stable < step.from_offset else None,
        )
        for step in rescue_from(logs, named, leader)
        if step.from_offset < limits.until(step.to_offset)
    )
    others = [one for one in named if one != leader]
    unknown = [one for one in _not_compared(subject, leader, limits) if one not in limits.whole]
    covered = tuple(
        Wanted(state, one, end, end, f"what replica {leader} lacks of it is saved from elsewhere", log, compacted)
        for one in others
        if one not in {*unknown, *limits.whole, *(step.replica for step in wanted)}
        if (log := logs.heard[one]).source == LOG_DIRECTORY
        for end in [log.log_end]
    )
    note = _left_open(leader, unknown, nothing=not wanted and not limits.whole)
    failed = [one for one in unknown if limits.replicas is not None or _may_hold_more(subject, one)]
    if limits.replicas is not None and unknown:
        logs_of = agree(len(unknown), "the log of broker", "the logs of brokers")
        were = agree(len(unknown), "was", "were")
        note = (
            f"{logs_of} {joined(unknown)} {were} not read, or cannot be compared: name --from-replica and --from-offset"
        )
    return Choice(
        state,
        wanted,
        note,
        failed=bool(failed),
        leader=leader,
        leads=subject.live_leader == leader,
        covered=() if limits.to_offset is not None else covered,
        deleted=deleted_on_purpose(logs, state.replicas, leader),
    )


def wanted_of(
    state: PartitionState, logs: KnownLogs, step: RescueStep, leader: int, *, why: str, limits: Limits
) -> Wanted:
    """What a step of `rescue_from` saves."""
    named = step.replica, step.from_offset, limits.until(step.to_offset)
    if step.replica == leader:
        return Wanted(state, *named, KAFKA_CUTS_OFF, logs.heard[step.replica], lacked_by=leader)
    if logs.agreement(step.replica, leader) is not None:
        perhaps = logs.perhaps_missing(step.replica, leader, shown_only=True)
        if any(start < step.to_offset and end > step.from_offset for _, start, end in perhaps):
            why = f"the log of replica {leader} begins behind some of these: whether it held them is not known"
            return Wanted(state, *named, why, logs.heard[step.replica], perhaps_held_by=leader)
    return Wanted(state, *named, why, logs.heard[step.replica], lacked_by=leader)


def deleted_on_purpose(logs: KnownLogs, replicas: Iterable[int], leader: int) -> int:
    """Offsets that these logs still hold and the leader's lacks, and that DeleteRecords or retention took from another
    replica that held the same: nobody was to read them any more."""
    others = [one for one in replicas if one != leader and one in logs.ranked]
    others = [one for one in others if logs.agreement(one, leader) is not None]
    held = {part for one in others for part in missing(logs.ranked[one], logs.ranked[leader])}
    saved = {part for one in others for part in logs.missing(one, leader)}
    saved |= {part for one in others for part in logs.perhaps_missing(one, leader, shown_only=True)}
    return count_distinct(held | saved) - count_distinct(saved)


def _named(subject: Subject, limits: Limits, compacted: bool | None) -> Choice:
    """The offsets that somebody named, of the replicas that they named, or of the one with the best log."""
    logs, state = subject.case.logs, subject.state
    assert limits.from_offset is not None
    best = logs.best
    replicas = sorted(limits.replicas) if limits.replicas is not None else [] if best is None else [best.replica]
    if not replicas and not limits.whole:
        return _unknown(subject, "no replica's log was read")
    wanted = []
    for replica in replicas:
        if replica in limits.whole:
            continue
        log = logs.heard.get(replica)
        if log is None:
            return _unknown(subject, f"the log of replica {replica} was not read")
        end = log.held_end if limits.to_offset is None else limits.to_offset
        if end > limits.from_offset:
            wanted.append(Wanted(state, replica, limits.from_offset, end, "named outright", log, compacted))
    note = "" if wanted or limits.whole else f"nothing: the log ends at or before offset {limits.from_offset}"
    return Choice(state, tuple(wanted), note)


def nothing_to_save(leader: int) -> str:
    """Why nothing is saved of a partition whose logs were compared with this one."""
    return f"nothing to save: no log that was read holds what replica {leader} lacks"


def _not_compared(subject: Subject, leader: int | None, limits: Limits) -> tuple[int, ...]:
    """`Choice.unread`."""
    logs, named = subject.case.logs, limits.replicas
    if limits.from_offset is not None and named is None and logs.best is not None:
        named = ()
    comparable = leader is not None and leader in logs.ranked
    return tuple(
        one
        for one in subject.state.replicas
        if named is None or one in named
        if one != leader or not comparable
        if one not in logs.ranked or (comparable and logs.agreement(one, leader or 0) is None)
    )


def _may_hold_more(subject: Subject, replica: int) -> bool:
    """Whether the log of a replica, which was not read, may hold what the others do not: who is in sync with a live
    leader follows it already."""
    return subject.live_leader is None or replica not in subject.state.isr


def _left_open(leader: int, unknown: Sequence[int], *, nothing: bool) -> str:
    """What to say beside the records that are saved: nothing to save, and replicas that were not heard."""
    said = [nothing_to_save(leader)] if nothing else []
    if unknown:
        which = ", ".join(map(str, unknown))
        said.append(f"what replica {which} holds is not known: --log-dir reads it from its broker's disk")
    return "; ".join(said)


def _within(
    limits: Limits, subject: Subject, steps: Iterable[RescueStep], why: str, compacted: bool | None
) -> tuple[Wanted, ...]:
    """What of these steps the limits leave."""
    heard = subject.case.logs.heard
    return tuple(
        Wanted(subject.state, step.replica, step.from_offset, end, why, heard[step.replica], compacted)
        for step in steps
        if limits.replicas is None or step.replica in limits.replicas
        if (end := limits.until(step.to_offset)) > step.from_offset
    )


def _whoever_leads(subject: Subject, limits: Limits, compacted: bool | None) -> Choice:
    """What any log may have to give up, where ELR and LastKnownELR are not known: any return may elect any replica."""
    logs = subject.case.logs
    why = "who is to lead is not known"
    wanted = _within(limits, subject, rescue_from_anyone(logs, subject.state.replicas), why, compacted)
    what = "what one log lacks of another, and what is above the high watermarks,"
    note = (
        f"{why}, since ELR and LastKnownELR are not: {what if wanted else 'nothing'} is saved; --elect ID saves what"
        " that replica lacks"
    )
    unheard = [str(one) for one in subject.state.replicas if one not in logs.ranked and one not in limits.whole]
    if unheard:
        note += f"; what replica {', '.join(unheard)} holds is not known: --log-dir reads it from its broker's disk"
    return Choice(subject.state, wanted, note, failed=True)


def _unread(subject: Subject, leader: int, limits: Limits, compacted: bool | None) -> Choice:
    """What the others may truncate, where nobody has read the log of the leader to come."""
    logs = subject.case.logs
    why = _lacks_unknown(leader)
    wanted = _within(limits, subject, rescue_from_unread(logs, subject.state.replicas, leader), why, compacted)
    held = "above their high watermarks, or differently from each other"
    note = (
        f"the log of replica {leader}, which is to lead, was not read or tells no epochs: what the others truncate is"
        " UNKNOWN. "
    )
    if wanted:
        note += f"Saved: what they hold {held}. If {leader} holds everything committed, they truncate no more"
    else:
        note += f"Nothing is saved: no log that was read holds anything {held}"
    note += (
        f". After a crash of its machine {leader} may lack committed records, too: read its disk with --log-dir, or"
        " give what `kelr recover collect` read there with --logs"
    )
    others = [
        replica
        for replica in subject.state.replicas
        if replica != leader and replica not in limits.whole
        if replica not in logs.ranked or logs.ranked[replica].high_watermark is None
    ]
    if others:
        note += f". What replica {', '.join(map(str, others))} holds there is not known either"
    return Choice(subject.state, wanted, note, failed=True, leader=leader)


def _lacks_unknown(leader: int) -> str:
    return f"what replica {leader}, which is to lead, lacks of these is not known"


def _unknown(subject: Subject, why: str) -> Choice:
    return Choice(subject.state, (), f"{why}: name --from-replica and --from-offset", failed=True)


def _is_compacted(config: TopicConfig) -> bool | None:
    return None if config.cleanup_policy is None else "compact" in config.cleanup_policy
