"""What ``kelr rescue dump`` has to save: from a plan, a cluster, and the disks of brokers that are down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.commands.session import Session, now_ms
from kelr.engine.logs import KnownLogs
from kelr.engine.planning.rescue import rescue_from
from kelr.engine.planning.subject import state_of
from kelr.errors import BadInputError, ConnectError, UsageError
from kelr.model import (
    LOG_DIRECTORY,
    LogAnswer,
    LogUnavailable,
    PartitionState,
    ReplicaLog,
    Selection,
    Target,
    TopicError,
    TopicPartition,
)
from kelr.rescue.choose import Choice, Limits, Wanted, choose, deleted_on_purpose, nothing_to_save, wanted_of
from kelr.rescue.dump import held_on_disk
from kelr.sources.base import Source
from kelr.sources.collected import CollectedSource, Merged, collection_of_disk
from kelr.sources.decisions import decide_partitions
from kelr.sources.disk import DiskCollection, DiskLog, PartitionDirectory, read_brokers
from kelr.sources.snapshot_collection import CollectedLog, Collection


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of ``kelr rescue dump``, read."""

    out: Path
    selection: Selection
    everything: bool
    replicas: tuple[int, ...] | None
    from_offset: int | None
    to_offset: int | None
    elect: int | None
    plan: Path | None
    log_directories: tuple[Path, ...]
    logs: tuple[Path, ...]
    overwrite: bool

    @property
    def limits(self) -> Limits:
        return Limits(self.replicas, self.from_offset, self.to_offset)


@dataclass(frozen=True, slots=True)
class Found:
    """What there is to save, and what is known around it."""

    choices: Sequence[Choice]
    cluster_id: str | None
    errors: Sequence[TopicError] = ()
    source: Source | None = None
    plan_id: str | None = None
    silence: ConnectError | None = None
    """Why the cluster that was named was not asked."""


def what_is_meant(options: DumpOptions) -> tuple[Selection, Mapping[TopicPartition, int], str | None]:
    """(partitions, whom the plan elects, the plan's id)."""
    if options.plan is None:
        if options.selection.is_everything and not options.everything:
            raise UsageError(
                "rescue dump wants to know which partitions",
                next_step="name them: kelr rescue dump orders:1 --out FILE; --all-topic-partitions takes all",
            )
        return options.selection, {}, None
    from kelr.engine.planning import plan_id  # noqa: PLC0415 - only where there is a plan
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415

    plan = read_plan(options.plan)
    elects = {one.address: one.elect for one in plan.elections if options.selection.matches(one.topic, one.partition)}
    if not elects:
        raise UsageError(f"{options.plan} elects no leader for these partitions", next_step="name others, or none")
    targets = tuple(Target(topic=at.topic, partitions=(at.partition,)) for at in sorted(elects))
    return Selection(targets), elects, plan_id(plan)


def names_a_source(session: Session) -> bool:
    settings = session.settings
    return bool(settings.bootstrap_server or settings.command_config or settings.saved)


def read_disks(session: Session, options: DumpOptions, selection: Selection) -> Sequence[DiskCollection]:
    if not options.log_directories:
        return ()
    with session.progress("replicas read from disk") as progress:
        disks = read_brokers(
            options.log_directories, selection=selection, lineage=True, progress=progress, clock_ms=now_ms
        )
    for disk in disks:
        for warning in disk.warnings:
            session.output.note(f"broker {disk.broker}: {warning}")
    return disks


def on_disks(
    disks: Sequence[DiskCollection],
    limits: Limits,
    *,
    elects: Mapping[TopicPartition, int],
    everywhere: int | None,
    plan_id: str | None,
    merged: Merged,
) -> Found:
    """Without a cluster: what the replica that is to lead lacks, where its log is known too; else all that the disks
    hold, or the offsets that are named.

    Args:
        merged: what the disks and `--logs` files know.
    """
    cluster_ids = {disk.cluster_id for disk in disks if disk.cluster_id is not None}
    if len(cluster_ids) > 1:
        raise BadInputError(f"the log directories are of different clusters: {', '.join(sorted(cluster_ids))}")
    choices = []
    for address in sorted({address for disk in disks for address in disk.logs}):
        found = {disk.broker: disk.logs[address] for disk in disks if address in disk.logs}
        elect = elects.get(address, everywhere)
        if elect is None or limits.from_offset is not None:
            choices += _whole_logs(found, limits)
        else:
            choices += _compared_on_disks(address, found, elect, merged, limits)
    if not choices and not any(disk.unused for disk in disks):
        raise UsageError("the log directories hold none of these partitions", next_step="name others")
    return Found(choices, next(iter(cluster_ids), None), plan_id=plan_id)


def _compared_on_disks(
    address: TopicPartition, found: Mapping[int, DiskLog], elect: int, merged: Merged, limits: Limits
) -> list[Choice]:
    """What these disks hold and the log of the replica that is to lead does not. A log that cannot be compared with it
    is saved whole."""
    read = [log for log in merged.logs.get(address, ()) if log.answer.replica == elect]
    known = [log for log in read if isinstance(log.answer, ReplicaLog) and not merged.running(elect, log.name)]
    own = next(iter(known), None)
    others = {broker: log for broker, log in found.items() if broker != elect}
    topic_id = None if own is None else own.topic_id
    everything: list[DiskLog | CollectedLog | None] = [own, *others.values()]
    of_topic = (log.answer for log in everything if log is not None and log.topic_id == topic_id)
    logs = KnownLogs({log.replica: log for log in of_topic if isinstance(log, ReplicaLog)})
    if elect not in logs.ranked:
        running = own is None and any(isinstance(log.answer, ReplicaLog) for log in read)
        unranked = elect in found and not running
        why = "was read while its broker ran, and is not believed" if running else "was not read"
        why = "cannot be compared with any" if unranked else why
        text = f"the log of replica {elect}, which is to lead, {why}: all that the disks hold is saved"
        return [
            replace(noted, failed=noted.failed or running)
            for noted in (_with_note(choice, text) for choice in _whole_logs(found if unranked else others, limits))
        ]
    comparable = [
        broker
        for broker in logs.ranked
        if broker != elect
        and logs.agreement(broker, elect) is not None
        and (limits.replicas is None or broker in limits.replicas)
    ]
    choices: list[Choice] = []
    own_cut_off = elect in found and bool(logs.ranked[elect].cut_off)
    if comparable or own_cut_off:
        state = _state(found[comparable[0] if comparable else elect], elect, *comparable)
        why = f"replica {elect}, which is to lead, lacks these"
        wanted = tuple(
            wanted_of(state, logs, one, elect, why=why, limits=limits)
            for one in rescue_from(logs, state.replicas, elect)
            if limits.replicas is None or one.replica in limits.replicas
            if limits.until(one.to_offset) > one.from_offset
        )
        note = "" if wanted else nothing_to_save(elect)
        deleted = deleted_on_purpose(logs, state.replicas, elect)
        choices.append(Choice(state, wanted, note, leader=elect, deleted=deleted))
    rest = {broker: log for broker, log in others.items() if broker not in comparable}
    return choices + [
        _with_note(choice, f"the log of replica {broker} cannot be compared with that of {elect}: all of it is saved")
        for broker in rest
        for choice in _whole_logs({broker: rest[broker]}, limits)
    ]


def _state(log: DiskLog, *replicas: int) -> PartitionState:
    """What a disk tells of a partition's state: its topic's id, and no more."""
    return PartitionState(
        topic=log.address.topic,
        partition=log.address.partition,
        leader=None,
        leader_epoch=0,
        replicas=replicas,
        isr=(),
        topic_id=log.topic_id,
    )


def _with_note(choice: Choice, text: str) -> Choice:
    return replace(choice, note="; ".join(filter(None, (text, choice.note))))


def _whole_logs(found: Mapping[int, DiskLog], limits: Limits) -> list[Choice]:
    choices = []
    for broker, log in found.items():
        if limits.replicas is not None and broker not in limits.replicas:
            continue
        choices += _whole_copies(_state(log, broker), log, limits)
    return choices


def _whole_copies(state: PartitionState, log: DiskLog, limits: Limits) -> list[Choice]:
    """All of a log; where it is in several log directories, all of each, since none is known to be the one."""
    detail = log.answer.detail if isinstance(log.answer, LogUnavailable) else ""
    return [
        _with_note(choice, f"{detail}; all of {copy.directory} is saved" if log.copies else "")
        for copy in log.copies or (log,)
        for choice in [_whole_log(replace(state, topic_id=copy.topic_id), copy.answer, copy.directory, limits)]
    ]


def _whole_log(state: PartitionState, answer: LogAnswer, directory: str, limits: Limits) -> Choice:
    try:
        log = answer if isinstance(answer, ReplicaLog) else _damaged(state, answer, directory)
    except (OSError, BadInputError) as error:
        return Choice(state, (), f"the log cannot be read: {error}", failed=True)
    note = "" if isinstance(answer, ReplicaLog) else f"Kafka would not load this log: {answer.detail}"
    start = limits.from_offset if limits.from_offset is not None else log.log_start or 0
    end = log.held_end if limits.to_offset is None else limits.to_offset
    if end <= start:
        return Choice(state, (), note or "nothing to save: the log holds no record of these offsets")
    why = "named outright" if limits.from_offset is not None else "all that the disk holds: nothing to compare it with"
    return Choice(state, (Wanted(state, answer.replica, start, end, why, log, directory=directory),), note)


def _damaged(state: PartitionState, answer: LogUnavailable, directory: str) -> ReplicaLog:
    """What can be read of a log that Kafka would not load. Raises OSError, BadInputError."""
    first, end = held_on_disk(PartitionDirectory(directory, state.address))
    return ReplicaLog(answer.replica, end, log_start=first, source=LOG_DIRECTORY, read_at_ms=answer.read_at_ms)


def _whole_disks(
    state: PartitionState, disks: Sequence[DiskCollection], unread: Sequence[int], limits: Limits
) -> Mapping[int, Sequence[Choice]]:
    """By broker, all that can be read of a log on a disk that cannot be compared with the leader's."""
    found: dict[int, Sequence[Choice]] = {}
    for disk in disks:
        log = disk.logs.get(state.address) if disk.broker in unread else None
        copies = [] if log is None else _whole_copies(state, log, limits)
        copies = [one for one in copies if len({one.state.topic_id, state.topic_id} - {None}) < 2]
        if copies:
            found[disk.broker] = copies
    return found


def _with_disks(choice: Choice, disks: Mapping[int, Sequence[Choice]]) -> Choice:
    """What is to be saved of a partition, with all that these disks hold of it."""
    for broker, whole in ((broker, one) for broker, copies in disks.items() for one in copies):
        note = f"broker {broker}: {whole.note or 'all that its disk holds is saved'}"
        choice = replace(
            choice,
            wanted=(*choice.wanted, *whole.wanted),
            note="; ".join(filter(None, (choice.note, note))),
            failed=choice.failed or whole.failed,
        )
    return choice


def in_the_cluster(
    session: Session,
    selection: Selection,
    disks: Sequence[DiskCollection],
    collections: Sequence[Collection],
    limits: Limits,
    *,
    elects: Mapping[TopicPartition, int],
    everywhere: int | None,
    plan_id: str | None,
) -> Found:
    """
    Args:
        collections: what `--logs` files know.
        elects: whom the plan elects.
        everywhere: who is to lead every partition that the plan does not name.
    """
    source = session.source()
    asked: Source | CollectedSource = source
    if disks or collections:
        # Saving more than is lost harms nobody: what is on the disk counts, whatever contradicts it.
        asked = CollectedSource(source, [*map(collection_of_disk, disks), *collections], believing=True)
    choices: list[Choice] = []
    without: list[Choice] = []
    errors: list[TopicError] = []
    with session.progress("replicas' logs read") as progress:
        for page in decide_partitions(asked, selection, clock_ms=now_ms, progress=progress):
            errors.extend(page.snapshot.topic_errors)
            for decision in page.decisions:
                address = TopicPartition(decision.topic, decision.partition)
                elect = elects.get(address, everywhere)
                state = state_of(page.snapshot, address)
                assert state is not None
                if address not in elects and everywhere is not None and everywhere not in decision.replicas:
                    without.append(Choice(state, (), f"broker {everywhere} holds no replica of it"))
                else:
                    answers = page.snapshot.logs.get(address, ())
                    doubts = asked.doubts(state, answers) if isinstance(asked, CollectedSource) else {}
                    choice = choose(page.snapshot, decision, limits, elect=elect, doubts=doubts)
                    whole = _whole_disks(state, disks, choice.unread, limits)
                    if whole:
                        left = replace(limits, whole=tuple(whole))
                        choice = choose(page.snapshot, decision, left, elect=elect, doubts=doubts)
                    choices.append(_with_disks(choice, whole))
    if without and not choices:
        held = ", ".join(map(str, sorted({replica for one in without for replica in one.state.replicas})))
        raise UsageError(
            f"--elect {everywhere}: none of these partitions has a replica there, only on brokers {held}",
            next_step="name one of their replicas",
        )
    return Found([*choices, *without], source.cluster().cluster_id, errors, source, plan_id)
