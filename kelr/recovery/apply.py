"""Carrying out a plan: batch by batch, under a journal, with an audit line for each election.

`docs/recovery.md` tells the course of a batch, and what a crash at any moment leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.controller import Election, RuleSet
from kelr.engine.planning import plan_id
from kelr.engine.words import length_of_time
from kelr.errors import (
    ConnectError,
    KelrError,
    NotRecordedError,
    OtherClusterError,
    PartlyDoneError,
    RefusedError,
    UsageError,
)
from kelr.interrupts import taken
from kelr.model import ElectionType, Plan, PlannedElection, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.plan import Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.acls import require_authorization
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply_context import Site, Timeouts
from kelr.recovery.audited import config_line, election_line
from kelr.recovery.batches import Batch, BatchDone
from kelr.recovery.configs import ConfigBack
from kelr.recovery.consent import Confirmation, accepts_loss, missing_code, missing_consent
from kelr.recovery.fences import result_of, verdict
from kelr.recovery.journal import Ending, Journal, cluster_lock, journal_path
from kelr.recovery.journal_store import refuse_open_journals, refuse_restored_orders
from kelr.recovery.progress import ApplyEvent, Report, Stage, silent
from kelr.recovery.reading import read_decided
from kelr.sources.base import Source
from kelr.sources.ground import Ground

DEFAULT_BATCH = 100
MOST_IN_A_BATCH = 1000
_INTERRUPTED = "interrupted before it was begun"
_CUT_SHORT = "interrupted before orders were restored and it was read who leads: that is left to resume"
_EXPIRED = "the plan expired before it was begun: look again and make a new one"


def apply_plan(
    plan: Plan,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    consented: Confirmation,
    rules: RuleSet | None = None,
    batch: int = DEFAULT_BATCH,
    pause_s: float = 0,
    keep_order: bool = False,
    report: Report = silent,
    command: str = "recover apply",
    patience: Timeouts | None = None,
) -> tuple[Applied, ...]:
    """Carry out a plan and say what became of each election, in the plan's order.

    Just before its elections each batch is read again; an election whose grounds have changed is refused with the
    differences, and the rest goes on. Ctrl-C ends after the present batch's orders are restored, with the elections
    that were not begun as `ElectionResult.NOT_TRIED`.

    Args:
        source: the live cluster; it is asked anew for every step (`Source.forget`).
        consented: what somebody gave; see `missing_consent`.
        rules: the rule set; None takes the one that the cluster runs.
        batch: elections whose requests are sent together, 1 to 1000.
        pause_s: between two batches.
        keep_order: leave the wanted replica first where it was elected.
        command: the command's name for the audit log.
        patience: how long to wait for what; None for the usual.

    Raises:
        RefusedError: the plan is of another cluster, expired, or lacks consent; another kelr is at work; a journal is
            open that concerns the same partitions. Nothing was changed.
        NotAuthorizedError: the principal lacks an ACL. Nothing was changed.
        ConnectError, AuthenticationError: the cluster cannot be reached. Nothing was changed.
        UsageError: the journal or the audit log cannot be written. Nothing was changed.
        NotRecordedError: one of them could not be written after something was changed; it has the results.
        PartlyDoneError: interrupted a second time, before it was known what became of a batch; resume tells.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    _check_batch(batch)
    site.require_live()
    cluster_id = refuse_unfit(plan, site)
    missing = missing_consent(plan, consented)
    if missing is not None and plan.elections:
        raise RefusedError(
            f"{'not confirmed' if accepts_loss(plan, consented) else 'loss not accepted'}; nothing changed",
            why=f"missing: {missing}",
            next_step=f"read the plan, then add {missing}",
            code=missing_code(plan, consented),
        )
    if not plan.elections:
        return ()
    require_authorization(hand, plan)
    name = plan_id(plan)
    with cluster_lock(state_directory, cluster_id, ground.files):
        wanted, brokers = [one.address for one in plan.elections], plan.uncordons
        refuse_open_journals(state_directory, cluster_id, wanted, brokers=brokers, files=ground.files)
        refuse_restored_orders(plan, state_directory, cluster_id, for_s=site.patience.rival_s, ground=ground)
        audit.append(state_directory, ground=ground)
        path = journal_path(state_directory, cluster_id, name, ground.now_ms())
        with Journal.begin(
            path,
            ground,
            cluster_id=cluster_id,
            who=who,
            command=command,
            plan=plan,
            plan_id=name,
            consented=consented,
            keep_order=keep_order,
        ) as journal:
            run = Run(
                site=site,
                journal=journal,
                cluster_id=cluster_id,
                plan_id=name,
                command=command,
                who=who,
                consented=consented,
                consented_by=who,
                keep_order=keep_order,
                expires_at_ms=plan.expires_at_ms,
            )
            return run.all(plan.elections, batch=batch, pause_s=pause_s, ending=Ending.APPLIED)


def check_plan(
    plan: Plan,
    *,
    source: Source,
    ground: Ground,
    rules: RuleSet | None = None,
    batch: int = DEFAULT_BATCH,
    report: Report = silent,
) -> tuple[Applied, ...]:
    """The fences alone; nothing is changed. An election that would be carried out is `ElectionResult.NOT_TRIED`,
    without a text; the others are what `apply_plan` would make of them (`REFUSED` with differences, `NOT_NEEDED`).

    Raises:
        RefusedError: the plan is of another cluster, or expired.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    site = Site(source, _NoAdminClient(), Path(), ground, Actor("", ""), rules, report)
    _check_batch(batch)
    site.require_live()
    refuse_unfit(plan, site)
    results: list[Applied] = []
    for part in _parts(plan.elections, batch):
        report(ApplyEvent(Stage.CHECK, f"checking {len(part)} elections", len(results), len(plan.elections)))
        reading = read_decided(site, [one.address for one in part])
        results.extend(verdict(one, reading) or result_of(one, ElectionResult.NOT_TRIED) for one in part)
    return tuple(results)


def record_refused(
    plan: Plan,
    results: Sequence[Applied],
    *,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    consented: Confirmation,
    command: str = "recover apply",
) -> None:
    """The audit lines of elections that `check_plan` refused: they get into no batch, which would write them.

    Raises:
        UsageError, RefusedError: the audit log cannot be written.
    """
    planned = {one.address: one for one in plan.elections}
    lines = [
        election_line(
            planned[one.address],
            one,
            at=ground.now(),
            who=who,
            command=command,
            cluster_id=plan.cluster_id,
            plan_id=plan_id(plan),
            journal=None,
            consented=consented,
            consented_by=who,
        )
        for one in results
        if one.ended is ElectionResult.REFUSED
    ]
    if lines:
        audit.append(state_directory, *lines, ground=ground)


def refuse_another(plan: Plan, site: Site) -> str | None:
    """The cluster's id, where the plan is of this cluster.

    Raises:
        RefusedError: it is not.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    site.source.forget()
    cluster_id = site.source.cluster().cluster_id
    if plan.cluster_id is not None and cluster_id != plan.cluster_id:
        raise OtherClusterError("the plan", plan.cluster_id, cluster_id, code="plan-other-cluster")
    return cluster_id


def refuse_unfit(plan: Plan, site: Site) -> str | None:
    """The cluster's id, where the plan is of this cluster and in time.

    Raises:
        RefusedError: it is not.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    cluster_id = refuse_another(plan, site)
    late_s = (site.ground.now_ms() - plan.expires_at_ms) / 1000
    if late_s > 0:
        raise RefusedError(
            f"plan expired {length_of_time(int(late_s * 1000))} ago; nothing changed",
            why="the cluster may have changed since",
            next_step="make a new plan (kelr recover plan)",
            code="plan-expired",
        )
    return cluster_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The batches of one plan under one journal; also what `resume` goes on with."""

    site: Site
    journal: Journal
    cluster_id: str | None
    plan_id: str | None
    command: str
    who: Actor
    """Who has it carried out."""
    consented: Confirmation
    consented_by: Actor
    keep_order: bool
    expires_at_ms: int
    """No batch is begun after this, in milliseconds since 1970 UTC."""
    may_end: bool = True
    """Whether the journal may be ended by these batches: False where something else is left to repair."""
    elected: frozenset[TopicPartition] = frozenset()
    """Partitions whose election a run that was cut short has asked for, so that it may have been carried out."""

    def all(
        self, elections: Sequence[PlannedElection], *, batch: int, pause_s: float, ending: Ending
    ) -> tuple[Applied, ...]:
        """Every batch; the journal is ended where nothing is left to repair.

        Raises:
            NotRecordedError: a record could not be written after something was changed; it has the results, and the
                journal is open.
            UsageError: the journal cannot be written, and nothing was changed.
            ConnectError: the cluster cannot be reached, and nothing was changed.
        """
        results: list[Applied] = []
        settled, stopped = True, ""
        unwritten: KelrError | None = None
        for part in _parts(elections, batch):
            if results and pause_s and not stopped:
                stopped = self._pause(pause_s, len(results), len(elections))
            stopped = stopped or (_EXPIRED if self.site.ground.now_ms() > self.expires_at_ms else "")
            attempt = Batch(self.site, self.journal, part, len(results), len(elections), self.keep_order)
            try:
                done = _left(part, stopped) if stopped else attempt.run()
            except KeyboardInterrupt:
                if attempt.begun:
                    raise PartlyDoneError(_CUT_SHORT, next_step="kelr recover resume") from None
                taken()
                stopped = _INTERRUPTED
                done = _left(part, stopped)
            except (ConnectError, UsageError) as error:
                if not results:
                    if ending is Ending.APPLIED and isinstance(error, ConnectError):
                        self.journal.end(ending)
                    raise
                unwritten = unwritten or (error if isinstance(error, UsageError) else None)
                stopped = error.message
                done = _left(part, stopped)
            settled = settled and done.settled
            unwritten = unwritten or done.failure
            new = tuple(replace(one, asked=True) if one.address in self.elected else one for one in done.results)
            unwritten = self._audit_cordons(done.cordons) or unwritten
            unwritten = self._tell(part, results, elections, new, skip=unwritten is not None) or unwritten
            stopped = stopped or _why_to_stop(done, unwritten)
        if settled and self.may_end and unwritten is None:
            unwritten = self._ended(ending)
        if unwritten is not None:
            raise _not_recorded(unwritten, results)
        return tuple(results)

    def _ended(self, ending: Ending) -> KelrError | None:
        """Why the journal's end could not be written; None where it was."""
        try:
            self.journal.end(ending)
        except UsageError as error:
            return error
        return None

    def _tell(
        self,
        part: Sequence[PlannedElection],
        results: list[Applied],
        elections: Sequence[PlannedElection],
        new: tuple[Applied, ...],
        *,
        skip: bool,
    ) -> KelrError | None:
        """Into the audit log, the journal, and to whoever watches; the journal last, so that no audit line is lost.

        Returns why one of them could not be written: what was done is told all the same.

        Args:
            skip: a record is missing already: those of elections that were not begun can wait.
        """
        failure: KelrError | None = None
        if not (skip and all(result.ended is ElectionResult.NOT_TRIED for result in new)):
            failure = self.record(part, new)
        results.extend(new)
        good = sum(result.good for result in results)
        text = f"{len(results)} of {len(elections)} done, {good} of them as planned"
        self.site.tell(ApplyEvent(Stage.DONE, text, len(results), len(elections), new))
        return failure

    def _audit_cordons(self, cordons: Sequence[ConfigBack]) -> KelrError | None:
        """Into the audit log; why that could not be written, where it could not."""
        if not cordons:
            return None
        lines = [
            config_line(
                what=AuditWhat.CONFIG,
                topic=one.whose,
                name=one.name,
                before=one.old,
                after=one.now,
                result=one.result,
                at_ms=self.site.ground.now_ms(),
                who=self.who,
                command=self.command,
                cluster_id=self.cluster_id,
                journal=self.journal.path.name,
                error=one.error,
                text=one.text or "emptied while orders changed, and restored",
            )
            for one in cordons
        ]
        try:
            audit.append(self.site.state_directory, *lines, ground=self.site.ground)
        except (UsageError, RefusedError) as error:
            return error
        return None

    def record(self, part: Sequence[PlannedElection], new: Sequence[Applied]) -> KelrError | None:
        """Results into the audit log and the journal; why one of them could not be written, where it could not."""
        failure: KelrError | None = None
        try:
            audit.append(self.site.state_directory, *self._lines(part, new), ground=self.site.ground)
        except (UsageError, RefusedError) as error:
            failure = error
        try:
            self.journal.applied(new, audited=failure is None)
        except UsageError as error:
            failure = failure or error
        return failure

    def _lines(self, part: Sequence[PlannedElection], new: Sequence[Applied]) -> Iterator[AuditRecord]:
        for one, result in zip(part, new, strict=True):
            if result.ended is not ElectionResult.NOT_TRIED or result.asked:
                yield election_line(
                    one,
                    result,
                    at=self.site.ground.now(),
                    who=self.who,
                    command=self.command,
                    cluster_id=self.cluster_id,
                    plan_id=self.plan_id,
                    journal=self.journal.path.name,
                    consented=self.consented,
                    consented_by=self.consented_by,
                )

    def _pause(self, pause_s: float, done: int, total: int) -> str:
        self.site.tell(ApplyEvent(Stage.PAUSE, f"waiting {pause_s:g} s, as asked for", done, total))
        try:
            self.site.ground.sleep(pause_s)
        except KeyboardInterrupt:
            taken()
            return _INTERRUPTED
        return ""


def _left(part: Sequence[PlannedElection], why: str) -> BatchDone:
    """A batch that was not begun."""
    return BatchDone(
        tuple(result_of(one, ElectionResult.NOT_TRIED, text=why) for one in part), settled=True, interrupted=False
    )


def _why_to_stop(done: BatchDone, unwritten: KelrError | None) -> str:
    if unwritten is not None:
        return f"not begun: {unwritten.message}"
    return _INTERRUPTED if done.interrupted else ""


def _not_recorded(error: KelrError, results: Sequence[Applied]) -> NotRecordedError:
    return NotRecordedError(
        f"what was done is told here, and could not be written down: {error.message}",
        results=tuple(results),
        next_step="free space, then kelr recover resume: it writes what is missing, and does what was not begun",
    )


def _parts(elections: Sequence[PlannedElection], batch: int) -> list[Sequence[PlannedElection]]:
    return [elections[at : at + batch] for at in range(0, len(elections), batch)]


def _check_batch(batch: int) -> None:
    if not 1 <= batch <= MOST_IN_A_BATCH:
        raise UsageError(f"a batch of {batch}, outside 1 to {MOST_IN_A_BATCH}")


class _NoAdminClient:
    """For looking alone: a hand that changes nothing."""

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        raise UsageError(f"nothing is reordered while a plan is only checked: {len(orders)} partitions")

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        raise UsageError(f"nothing is elected while a plan is only checked: {len(partitions)} partitions ({election})")

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        raise UsageError(f"nothing is elected while a plan is only checked: {len(leaders)} partitions")

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        raise UsageError(f"nothing is elected while a plan is only checked: {len(partitions)} partitions ({kind})")

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        raise UsageError(f"nothing is written while a plan is only checked: {name}={value} of {topic}")

    def write_broker_config(self, broker: int, name: str, value: str | None) -> str:
        raise UsageError(f"nothing is written while a plan is only checked: {name}={value} of broker {broker}")

    def read_broker_config(self, broker: int, name: str) -> tuple[bool, str | None]:
        raise UsageError(f"nothing is read for a write while a plan is only checked: {name} of broker {broker}")
