"""What resume and undo have in common: the old orders and configs of a journal, put back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kelr.errors import KelrError, RefusedError, UsageError
from kelr.model import Plan, PlannedElection, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.plan import Applied
from kelr.recovery import audit
from kelr.recovery.apply_context import Site
from kelr.recovery.audited import config_line, election_line, restore_line
from kelr.recovery.configs import ConfigBack, ConfigWriter
from kelr.recovery.cordons import stays_off
from kelr.recovery.journal import Ending, Journal, JournalStep
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.recovery.requests import Requests
from kelr.recovery.restoring import Back, outlast_elections, put_back
from kelr.sources.ground import Instant


@dataclass(frozen=True, slots=True)
class OrderBack:
    """A partition's order, given again."""

    topic: str
    partition: int
    order: tuple[int, ...] | None
    """As it is now; None where it could not be read."""
    restores: tuple[int, ...]
    """As it should be."""
    restored: bool
    settled: bool
    """Nothing is left for kelr to do: restored, or changed by somebody else, or gone."""
    text: str = ""
    error: str | None = None

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class PutRight:
    """What resume or undo did with one journal."""

    journal: str
    """Its name."""
    plan_id: str | None
    plan: Plan | None
    """None for a hold."""
    orders: tuple[OrderBack, ...]
    configs: tuple[ConfigBack, ...]
    applied: tuple[Applied, ...]
    """Resume: what became of each planned election. Undo: elections that were done, which cannot be undone."""
    closed: bool
    """Nothing to repair."""
    unrecorded: str = ""
    """Why a record of what was done could not be written; the journal is open then."""

    @property
    def good(self) -> bool:
        """Closed, and everything has its old order and config."""
        orders = all(order.restored for order in self.orders)
        return self.closed and orders and all(config.restored for config in self.configs)


def requests_of(site: Site, journal: Journal, journalled: Journalled) -> Requests:
    """Requests that know which ones of the run that was cut short may still take effect: from now on for the whole
    time. When they were sent nothing tells: a process may have been suspended between line and request."""
    requests = Requests(site, journal, lambda stage, text: site.tell(ApplyEvent(stage, text, 0, 0)))
    requests.moved.update(at for at, one in journalled.partitions.items() if one.moved and not one.in_order)
    requests.stands.update(at for at, one in journalled.partitions.items() if one.stands and not one.in_order)
    requests.elected.update(at for at, one in journalled.partitions.items() if one.elected)
    requests.seen.update((at, one.seen) for at, one in journalled.partitions.items() if one.seen is not None)
    for at, one in journalled.partitions.items():
        for step in (JournalStep.REORDER, JournalStep.ELECT, JournalStep.RESTORE):
            if one.is_loose(step) and not one.in_order:
                requests.late[step, at] = site.ground.steady_s() + site.patience.late_s
    return requests


def _config_late_s(site: Site, journalled: Journalled) -> float:
    """Until when (`Ground.steady_s`) a write of the run that was cut short may still take effect; 0: none may."""
    loose = any(config.sent or config.uncertain for config in journalled.configs_left)
    return site.ground.steady_s() + site.patience.late_s if loose else 0.0


@dataclass(frozen=True, slots=True)
class Mended:
    """The orders and configs that were put back."""

    backs: Mapping[TopicPartition, Back]
    configs: tuple[ConfigBack, ...]
    unrecorded: str = ""
    """Why a record of it could not be written."""

    @property
    def settled(self) -> bool:
        """Nothing of them is left to do, and it is written down."""
        done = all(back.settled for back in self.backs.values()) and all(one.settled for one in self.configs)
        return done and not self.unrecorded


def mend(
    site: Site, requests: Requests, journalled: Journalled, wanted: Collection[TopicPartition], command: str
) -> Mended:
    """Give these partitions, and all configs, what they had before; each goes into the audit log, with what that lacks
    of the run that was cut short.

    Raises:
        UsageError: journal or audit log cannot be written. Nothing was changed.
        RefusedError: another process holds the audit log. Nothing was changed.
    """
    audit.append(site.state_directory, *_missing_lines(journalled), ground=site.ground)
    if journalled.not_audited:
        requests.journal.applied([_applied(journalled, one) for one in journalled.not_audited])
    planned = journalled.planned
    backs: Mapping[TopicPartition, Back] = {}
    on_their_way = journalled.on_their_way
    if requests.late_until((JournalStep.ELECT,), on_their_way) is not None:
        outlast_elections(requests, on_their_way)
        requests.journal.restored(on_their_way)
    if wanted:
        requests.tell(Stage.RESTORE, f"restoring the order of {len(wanted)} partitions")
        backs = put_back(requests, [planned[at] for at in sorted(wanted)])
    writer = ConfigWriter(site, requests.journal, requests.tell, _config_late_s(site, journalled))
    in_order = all(back.settled for back in backs.values())
    configs = tuple(
        writer.put_back(config) if config.broker is None or in_order else stays_off(config)
        for config in journalled.configs_left
    )
    now_ms = site.ground.now_ms()
    failure: KelrError | None = requests.write_failure or writer.write_failure
    try:
        audit.append(
            site.state_directory,
            *(
                restore_line(planned[at], back, at_ms=now_ms, who=site.who, command=command, journalled=journalled)
                for at, back in sorted(backs.items())
            ),
            *(_config_line(site, journalled, config, command, now_ms) for config in configs),
            ground=site.ground,
        )
    except (UsageError, RefusedError) as error:
        failure = failure or error
    return Mended(backs, configs, "" if failure is None else failure.message)


def _missing_lines(journalled: Journalled) -> Iterator[AuditRecord]:
    """What the run did and could not record: results of its elections, and a hold that was put back."""
    for planned in journalled.not_audited:
        at = journalled.partitions[planned.address].applied_at
        yield found_line(planned, _applied(journalled, planned), journalled, at=at)
    if journalled.plan is None and journalled.ending is None and not journalled.configs_left:
        for config in journalled.configs.values():
            yield config_line(
                what=AuditWhat.HOLD,
                topic=config.topic,
                name=config.name,
                before=config.old,
                after=config.old,
                result="done",
                at_ms=journalled.last_ms,
                who=journalled.who,
                command=journalled.command,
                cluster_id=journalled.cluster_id,
                journal=journalled.path.name,
                force_reason=journalled.consented.force_reason,
                text=f"{', '.join(value or 'no value' for value in config.written)} was written and taken back",
            )


def found_line(planned: PlannedElection, result: Applied, journalled: Journalled, *, at: Instant) -> AuditRecord:
    """The line of an election that the journal's run asked for and could not record: it names who did and consented."""
    who, command = journalled.begun_by(planned.address)
    return election_line(
        planned,
        result,
        at=at,
        who=who,
        command=command,
        cluster_id=journalled.cluster_id,
        plan_id=journalled.plan_id,
        journal=journalled.path.name,
        consented=journalled.consented,
        consented_by=journalled.who,
    )


def _applied(journalled: Journalled, planned: PlannedElection) -> Applied:
    found = journalled.partitions[planned.address].applied
    assert found is not None  # only a result can lack its line
    return found


def end_of(journal: Journal, ending: Ending) -> str:
    """End a journal; why its last line could not be written, where it could not."""
    try:
        journal.end(ending)
    except UsageError as error:
        return error.message
    return ""


def order_backs(journalled: Journalled, backs: Mapping[TopicPartition, Back]) -> tuple[OrderBack, ...]:
    """The orders for whoever reads the result."""
    planned = journalled.planned
    return tuple(
        OrderBack(
            topic=at.topic,
            partition=at.partition,
            order=None if back.state is None else back.state.replicas,
            restores=planned[at].restores,
            restored=back.restored,
            settled=back.settled,
            text=back.text,
            error=back.error,
        )
        for at, back in sorted(backs.items())
    )


def _config_line(site: Site, journalled: Journalled, config: ConfigBack, command: str, now_ms: int) -> AuditRecord:
    return config_line(
        what=AuditWhat.CONFIG,
        topic=config.whose,
        name=config.name,
        before=config.old,
        after=config.now,
        result=config.result,
        at_ms=now_ms,
        who=site.who,
        command=command,
        cluster_id=journalled.cluster_id,
        journal=journalled.path.name,
        error=config.error,
        text=config.text,
    )
