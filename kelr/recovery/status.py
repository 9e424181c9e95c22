"""What earlier runs left behind: open journals, and partitions that still have the order of an election."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.engine.planning import plan_id
from kelr.engine.planning.lost import Lost
from kelr.engine.planning.saved import NO_FILES, SavedOfLoss
from kelr.engine.planning.seen import Seen
from kelr.errors import BadInputError, OtherClusterError, RefusedError
from kelr.files import FILES, Files
from kelr.model import PartitionState, Plan, PlannedElection, SavedLog, TopicPartition
from kelr.model.plan import ElectionResult
from kelr.recovery import audit
from kelr.recovery.admin_client import CORDON_NAMED, UNKNOWN_TOPIC
from kelr.recovery.audited import Recorded, lost_with_audit
from kelr.recovery.configs import own_value
from kelr.recovery.journal import LOCK_FILE, cluster_lock
from kelr.recovery.journal_reader import Journalled, read_journal
from kelr.recovery.journal_store import is_blank, is_ended, journal_files
from kelr.recovery.places import cluster_directory
from kelr.recovery.reading import States, selection_of
from kelr.recovery.restoring import may_be_a_rivals, order_of, same_topic
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.base import Source, silence_of


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition of a journal, or of a plan."""

    topic: str
    partition: int
    wanted: int
    """The replica that was to lead."""
    leader: int | None
    leader_epoch: int | None
    order: tuple[int, ...] | None
    """Its replicas now; None where there is no such partition."""
    restores: tuple[int, ...]
    """The order that it should have."""
    reordered: bool
    """It has the temporary order of its election."""
    begun: bool
    """A request was sent for it, or may have been."""
    ended: str | None
    """The result that the journal has for it (`kelr.model.plan.ElectionResult`)."""
    text: str
    unread: str | None = None
    """Why it could not be described; None where it was, or is gone."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class ConfigStatus:
    """A topic's config that a hold wrote, or a broker's cordon."""

    topic: str
    """Or ``broker 2``."""
    name: str
    old: str | None
    """The topic's own value from before; None: it had none."""
    now: str | None
    left: bool
    """It may not have its old value."""
    text: str
    asked: bool = True
    """False: `now` says nothing, since only the broker tells it, and was not asked."""


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """A journal that is open, or whose partitions are reordered."""

    name: str
    path: Path
    command: str
    user: str
    host: str
    begun_ms: int
    last_ms: int
    """When its last line was written."""
    plan_id: str | None
    partitions: tuple[PartitionStatus, ...]
    configs: tuple[ConfigStatus, ...]
    text: str
    next_step: str
    """The command that goes on, as arguments after ``kelr`` in one line."""

    @property
    def who(self) -> str:
        return f"{self.user}@{self.host}"


@dataclass(frozen=True, slots=True)
class RecoveryStatus:
    """Everything that is left to do on one cluster, as far as this machine knows."""

    cluster_id: str | None
    at_work: bool
    """Another kelr of this machine changes the cluster just now."""
    journals: tuple[JournalStatus, ...]
    """Open ones, oldest first."""
    plan_id: str | None = None
    plan_partitions: tuple[PartitionStatus, ...] = ()
    """Where a plan was given: all its partitions, journal or not."""
    garbled: tuple[str, ...] = ()
    """Journals, or the audit log, that cannot be read, and why."""
    lost: tuple[Lost, ...] = ()
    """Where a plan was given: what each of its elections lost that was carried out, by the plan and the audit log."""
    silence: str | None = None
    """Why no controller answered: what brokers told of the plan's partitions may be out of date. None: one did."""

    @property
    def reordered(self) -> tuple[TopicPartition, ...]:
        """Partitions that still have the order of an election."""
        everything = (*self.plan_partitions, *(one for journal in self.journals for one in journal.partitions))
        return tuple(sorted({one.address for one in everything if one.reordered}))

    @property
    def clean(self) -> bool:
        """Nothing is left to repair, and all was seen that there is to say it of."""
        unread = any(one.unread is not None for one in self.plan_partitions)
        unread = unread or bool(self.plan_partitions and self.silence is not None)
        return not (self.journals or self.reordered or self.garbled or unread)


def status(
    source: Source,
    state_directory: Path,
    *,
    plan: Plan | None = None,
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = NO_FILES,
    files: Files = FILES,
) -> RecoveryStatus:
    """What is left of earlier runs on the source's cluster.

    Args:
        plan: look also at this plan's partitions: an order that was left behind is seen without its journal.
        saved: what rescue files hold.

    Raises:
        RefusedError: the plan is of another cluster.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    source.forget()
    cluster_id = source.cluster().cluster_id
    if plan is not None and plan.cluster_id not in {None, cluster_id}:
        raise OtherClusterError("the plan", plan.cluster_id, cluster_id, code="plan-other-cluster", reads=True)
    journals, garbled = [], []
    for path in journal_files(state_directory, cluster_id, files):
        if is_blank(path, files) or is_ended(path, files):
            continue
        try:
            journalled = read_journal(path, files)
        except BadInputError as error:
            garbled.append(error.message)
            continue
        if journalled.ending is None:
            journals.append(_journal(source, journalled))
    elections = () if plan is None else plan.elections
    told, known, named = _read(source, elections), Recorded(), None if plan is None else plan_id(plan)
    try:
        if elections:
            known = Recorded.of(audit.read(state_directory, cluster_id=cluster_id, files=files))
    except BadInputError as error:
        garbled.append(error.message)
    of_loss = {one.address: known.saved(one, saved.get(one.address, ())) for one in elections}
    return RecoveryStatus(
        cluster_id=cluster_id,
        at_work=_at_work(state_directory, cluster_id, files),
        journals=tuple(journals),
        plan_id=named,
        plan_partitions=_partitions(told, elections, lambda one: known.refusal(one, named or "")),
        garbled=tuple(garbled),
        lost=_lost(told, elections, known, of_loss),
        silence=silence_of(source),
    )


def _lost(
    states: States,
    elections: tuple[PlannedElection, ...],
    known: Recorded,
    saved: Mapping[TopicPartition, SavedOfLoss],
) -> tuple[Lost, ...]:
    found = (
        lost_with_audit(
            one,
            Seen(
                states.get(one.address),
                error=states.why_unread(one.address) or UNKNOWN_TOPIC,
                saved=saved[one.address],
            ),
            known,
        )
        for one in elections
    )
    return tuple(one for one in found if one is not None)


def _journal(source: Source, journalled: Journalled) -> JournalStatus:
    elections = () if journalled.plan is None else journalled.plan.elections

    def refusal(planned: PlannedElection) -> str:
        known = journalled.partitions.get(planned.address)
        applied = None if known is None else known.applied
        tells = applied is not None and (applied.ended is ElectionResult.REFUSED or CORDON_NAMED in applied.text)
        return applied.text if applied is not None and tells else ""

    partitions = _partitions(_read(source, elections), elections, refusal, journalled)
    configs = _configs(source, journalled)
    reordered = sum(one.reordered for one in partitions)
    left = sum(config.left for config in configs)
    parts = [
        f"{sum(one.ended is not None for one in partitions)} of {len(partitions)} elections have a result"
        if partitions
        else "",
        f"{reordered} {'partition has' if reordered == 1 else 'partitions have'} the order of its election"
        if reordered
        else "",
        f"{left} {'config is' if left == 1 else 'configs are'} not restored" if left else "",
    ]
    return JournalStatus(
        name=journalled.path.stem,
        path=journalled.path,
        command=journalled.command,
        user=journalled.who.user,
        host=journalled.who.host,
        begun_ms=journalled.begun_ms,
        last_ms=journalled.last_ms,
        plan_id=journalled.plan_id,
        partitions=partitions,
        configs=configs,
        text="cut short: " + ("; ".join(filter(None, parts)) or "nothing was begun"),
        next_step=f"recover resume {journalled.path.stem}",
    )


def _read(source: Source, elections: tuple[PlannedElection, ...]) -> States:
    return States.of(source.pages(selection_of([one.address for one in elections])) if elections else ())


def _partitions(
    states: States,
    elections: tuple[PlannedElection, ...],
    refusal: Callable[[PlannedElection], str],
    journalled: Journalled | None = None,
) -> tuple[PartitionStatus, ...]:
    return tuple(
        _partition(one, states.get(one.address), journalled, states.why_unread(one.address), refusal(one))
        for one in elections
    )


def _partition(
    planned: PlannedElection, state: PartitionState | None, journalled: Journalled | None, unread: str | None, why: str
) -> PartitionStatus:
    known = None if journalled is None else journalled.partitions.get(planned.address)
    applied = None if known is None else known.applied
    same = state is not None and same_topic(planned, state)
    temporary = planned.order != planned.restores
    reordered = state is not None and same and temporary and order_of(planned, state) == planned.order
    tells = why and state is not None and same and (reordered or state.leader != planned.elect)
    return PartitionStatus(
        topic=planned.topic,
        partition=planned.partition,
        wanted=planned.elect,
        leader=None if state is None else state.leader,
        leader_epoch=None if state is None else state.leader_epoch,
        order=None if state is None else state.replicas,
        restores=planned.restores,
        reordered=reordered,
        begun=known is not None and (known.order is not None or known.elected),
        ended=None if applied is None else applied.ended.value,
        text=_text(planned, state, same=same, reordered=reordered, unread=unread) + (f": {why}" if tells else ""),
        unread=unread if state is None else None,
    )


def _text(
    planned: PlannedElection, state: PartitionState | None, *, same: bool, reordered: bool, unread: str | None
) -> str:
    if state is None and unread is not None:
        lacking = ": it needs DESCRIBE on the topic" if "AUTHORIZATION" in unread else ""
        return f"where it stands is not known: it could not be described ({unread}{lacking})"
    if state is None:
        return "there is no such partition any more"
    if not same:
        return "the topic was deleted, and another one made under its name"
    leads = "no leader" if state.leader is None else f"broker {state.leader} leads"
    if reordered:
        return f"{leads}; it still has the order of its election"
    order = order_of(planned, state)
    if order != planned.restores:
        electing = ", or a kelr of another machine or user is electing by it" if may_be_a_rivals(planned, state) else ""
        third = "its order is neither the old one nor that of its election: somebody else has changed it"
        return f"{leads}; {third}{electing}"
    return leads


def _configs(source: Source, journalled: Journalled) -> tuple[ConfigStatus, ...]:
    topics = sorted({config.topic for config in journalled.configs.values() if config.broker is None})
    read = source.topic_configs(topics) if topics else {}
    found = []
    for config in journalled.configs.values():
        if config.broker is not None:
            found.append(_of_broker(config))
            continue
        now, error = own_value(read[config.topic]), read[config.topic].error
        left, text = _of_config(config, now, error)
        found.append(ConfigStatus(config.topic, config.name, config.old, now, left, text))
    return tuple(found)


def _of_broker(config: WrittenConfig) -> ConfigStatus:
    """A broker's config by the journal alone: the broker tells, and is asked when it is restored."""
    left = not config.restored
    text = f"not known to be restored, was {config.old or 'not set'}" if left else "restored"
    return ConfigStatus(config.where, config.name, config.old, None, left, text, asked=False)


def _of_config(config: WrittenConfig, now: str | None, error: str | None) -> tuple[bool, str]:
    """(whether something may be left to put right, and how it stands in words)."""
    if error == UNKNOWN_TOPIC:
        return False, "there is no such topic any more"
    if error is not None:
        return not config.restored, f"whether it is restored is not known: it could not be read ({error})"
    if config.is_somebody_elses(now):
        return False, "changed by somebody else"
    if config.restored or (now == config.old and not config.in_force):
        return False, "restored" if now == config.old else "changed by somebody else"
    if now == config.old:
        return True, "not known to be restored: this may be what a broker told before it read kelr's value"
    return True, "not restored yet"


def _at_work(state_directory: Path, cluster_id: str | None, files: Files) -> bool:
    if not files.exists(cluster_directory(state_directory, cluster_id) / LOCK_FILE):
        return False
    try:
        cluster_lock(state_directory, cluster_id, files).close()
    except RefusedError:
        return True
    return False
