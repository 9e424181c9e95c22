"""What ``kelr rescue dump`` has to save: from a plan, a cluster, and the disks of brokers that are down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.commands.session import Session, now_ms
from kelr.errors import BadInputError, UsageError
from kelr.model import (
    LogAnswer,
    NotHeard,
    PartitionState,
    ReplicaLog,
    Selection,
    Target,
    TopicError,
    TopicPartition,
)
from kelr.rescue.choose import Choice, Limits, Wanted, choose
from kelr.rescue.dump import held_on_disk
from kelr.sources.base import Source
from kelr.sources.decisions import decide_partitions
from kelr.sources.disk import DiskCollection, PartitionDirectory, read_brokers

DISK = "log directory"


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


def what_is_meant(options: DumpOptions) -> tuple[Selection, Mapping[TopicPartition, int], str | None]:
    """(partitions, whom the plan elects, the plan's id)."""
    if options.plan is None:
        if options.selection.is_everything and not options.everything:
            raise UsageError(
                "rescue dump wants to know which partitions",
                next_step="name them: kelr rescue dump orders:1 --out FILE; --all-topic-partitions takes all",
            )
        return options.selection, {}, None
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415 - only where there is a plan

    saved = read_plan(options.plan)
    elects = {
        one.address: one.elect for one in saved.plan.elections if options.selection.matches(one.topic, one.partition)
    }
    if not elects:
        raise UsageError(f"{options.plan} elects nobody for these partitions", next_step="name others, or none")
    targets = tuple(Target(topic=at.topic, partitions=(at.partition,)) for at in sorted(elects))
    return Selection(targets), elects, saved.plan_id


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


def on_disks(disks: Sequence[DiskCollection], limits: Limits) -> Found:
    """Without a cluster nobody knows what is lost: all that the disks hold, or the offsets that are named."""
    choices = []
    for disk in disks:
        if limits.replicas is not None and disk.broker not in limits.replicas:
            continue
        for address, log in disk.logs.items():
            state = PartitionState(
                topic=address.topic,
                partition=address.partition,
                leader=None,
                leader_epoch=0,
                replicas=(disk.broker,),
                isr=(),
                topic_id=log.topic_id,
            )
            choices.append(_whole_log(state, log.answer, log.directory, limits))
    if not choices:
        raise UsageError("the log directories hold none of these partitions", next_step="name others")
    cluster_ids = {disk.cluster_id for disk in disks if disk.cluster_id is not None}
    if len(cluster_ids) > 1:
        raise BadInputError(f"the log directories are of different clusters: {', '.join(sorted(cluster_ids))}")
    return Found(choices, next(iter(cluster_ids), None))


def _whole_log(state: PartitionState, answer: LogAnswer, directory: str, limits: Limits) -> Choice:
    try:
        log = answer if isinstance(answer, ReplicaLog) else _damaged(state, answer, directory)
    except (OSError, BadInputError) as error:
        return Choice(state, (), f"the log cannot be read: {error}", failed=True)
    note = "" if isinstance(answer, ReplicaLog) else f"Kafka would not load this log: {answer.detail}"
    start = limits.from_offset if limits.from_offset is not None else log.log_start or 0
    end = log.log_end if limits.to_offset is None else limits.to_offset
    if end <= start:
        return Choice(state, (), note or "nothing to save: the log holds no record of these offsets")
    why = "named outright" if limits.from_offset is not None else "all that the disk holds: no cluster was asked"
    return Choice(state, (Wanted(state, answer.replica, start, end, why, log),), note)


def _damaged(state: PartitionState, answer: NotHeard, directory: str) -> ReplicaLog:
    """What can be read of a log that Kafka would not load. Raises OSError, BadInputError."""
    first, end = held_on_disk(PartitionDirectory(directory, state.address))
    return ReplicaLog(answer.replica, end, log_start=first, source=DISK, read_at_ms=answer.read_at_ms)


def in_the_cluster(
    session: Session,
    selection: Selection,
    disks: Sequence[DiskCollection],
    limits: Limits,
    *,
    elects: Mapping[TopicPartition, int],
    everywhere: int | None,
    plan_id: str | None,
) -> Found:
    """
    Args:
        elects: whom the plan elects.
        everywhere: who is to lead every partition that the plan does not name.
    """
    source = session.source()
    asked: Source = source
    if disks:
        from kelr.sources.collected import CollectedSource, collection_of_disk  # noqa: PLC0415

        # Saving more than is lost harms nobody: what is on the disk counts, whatever contradicts it.
        asked = CollectedSource(source, [collection_of_disk(disk) for disk in disks], believing=True)
    choices: list[Choice] = []
    errors: list[TopicError] = []
    with session.progress("replicas' logs read") as progress:
        for page in decide_partitions(asked, selection, clock_ms=now_ms, progress=progress):
            errors.extend(page.snapshot.topic_errors)
            for decision in page.decisions:
                elect = elects.get(TopicPartition(decision.topic, decision.partition), everywhere)
                choices.append(choose(page.snapshot, decision, limits, elect=elect))
    return Found(choices, source.cluster().cluster_id, errors, source, plan_id)
