"""What the audit log says of elections, orders and configs; and what it tells of losses afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from kelr.engine.planning.lost import (
    Elected,
    Lost,
    accepted_in_words,
    elected_by,
    lost_by,
    lost_of_replayed,
    raised,
    recorded_loss,
)
from kelr.engine.planning.saved import NO_FILES, SavedOfLoss, before_recorded, saved_of
from kelr.engine.planning.seen import Seen
from kelr.model import (
    LOG_DIRECTORY,
    SAVED,
    Bounds,
    ClearedElr,
    Loss,
    LossCertainty,
    Method,
    PlannedElection,
    RecordedElection,
    SavedLog,
    TopicPartition,
)
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.plan import Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.actor import Actor
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.restoring import Back
from kelr.sources.ground import Instant, Moment


def election_line(
    planned: PlannedElection,
    result: Applied,
    *,
    at: Instant,
    who: Actor,
    command: str,
    cluster_id: str | None,
    plan_id: str | None,
    journal: str | None,
    consented: Confirmation,
    consented_by: Actor,
) -> AuditRecord:
    """The line of one planned election: what it stood on, what was shown and accepted, and by whom, what came of it.

    Args:
        who: had it carried out; after `resume` not who gave the consent.
    """
    evidence = planned.evidence
    return AuditRecord(
        at_ms=at.ms,
        boot_id=at.moment.boot_id,
        boot_ms=None if at.moment.boot_id is None else at.moment.ms,
        what=AuditWhat.ELECTION,
        command=command,
        topic=planned.topic,
        partition=planned.partition,
        cluster_id=cluster_id,
        **audit.by(who),  # type: ignore[arg-type]  # its values go to fields of their type
        result=result.ended,
        plan_id=plan_id,
        journal=journal,
        election=planned.election,
        method=planned.method,
        wanted=planned.elect,
        before={
            "topic_id": planned.topic_id,
            "leader": evidence.leader,
            "leader_epoch": evidence.leader_epoch,
            "replicas": list(evidence.replicas),
            "isr": list(evidence.isr),
            "elr": None if evidence.elr is None else list(evidence.elr),
            "last_known_elr": None if evidence.last_known_elr is None else list(evidence.last_known_elr),
        },
        after={
            "leader": result.leader,
            "leader_epoch": result.leader_epoch,
            **({} if result.late_until_ms is None else {"late_until_ms": result.late_until_ms}),
        },
        evidence=[asdict(log) for log in evidence.logs],
        loss=_loss(planned.loss),
        consent={
            "needed": planned.consent.value,
            "yes": consented.yes,
            "accept_loss": None if consented.accept_loss is None else str(consented.accept_loss),
            **asdict(consented_by),
        },
        force_reason=consented.force_reason,
        error=result.error,
        text=result.text,
        asked=result.asked,
    )


def restore_line(
    planned: PlannedElection, back: Back, *, at_ms: int, who: Actor, command: str, journalled: Journalled
) -> AuditRecord:
    """The line of an order that undo or resume gave again, or could not."""
    state = back.state
    return AuditRecord(
        at_ms=at_ms,
        what=AuditWhat.RESTORE,
        command=command,
        topic=planned.topic,
        partition=planned.partition,
        cluster_id=journalled.cluster_id,
        **audit.by(who),  # type: ignore[arg-type]  # its values go to fields of their type
        result="done" if back.restored else "refused" if back.settled else "failed",
        plan_id=journalled.plan_id,
        journal=journalled.path.name,
        before={"replicas": list(planned.order)},
        after={"replicas": None if state is None else list(state.replicas)},
        error=back.error,
        text=back.text,
    )


def config_line(
    *,
    what: AuditWhat,
    topic: str,
    name: str,
    before: str | None,
    after: str | None,
    result: str,
    at_ms: int,
    who: Actor,
    command: str,
    cluster_id: str | None,
    journal: str | None,
    price: Mapping[str, Any] | None = None,
    force_reason: str | None = None,
    error: str | None = None,
    text: str = "",
) -> AuditRecord:
    """The line of a topic's config that was written and written back; or a broker's, as ``broker 2``."""
    return AuditRecord(
        at_ms=at_ms,
        what=what,
        command=command,
        topic=topic,
        partition=None,
        cluster_id=cluster_id,
        **audit.by(who),  # type: ignore[arg-type]  # its values go to fields of their type
        result=result,
        journal=journal,
        before={name: before},
        after={name: after},
        loss=price,
        force_reason=force_reason,
        error=error,
        text=text,
    )


def recorded_elections(
    rows: Iterable[AuditRecord],
    journals: Iterable[Journalled] = (),
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = NO_FILES,
) -> dict[TopicPartition, RecordedElection]:
    """What the audit log tells of elections that came about: of each partition the newest that may have given something
    up, else the newest. A replica that a later line shows in the ISR has truncated since, and is none of the unread.

    Args:
        journals: of runs that have not ended: elections that were asked for and have no audit line yet count, too.
        saved: what rescue files hold.
    """
    found: dict[TopicPartition, RecordedElection] = {}
    for row in rows:
        if row.partition is None or _refused(row):
            continue  # What a refused one stands on was no longer so.
        at, in_sync = TopicPartition(row.topic, row.partition), row.before.get("isr")
        before = found.get(at)
        if before is not None and isinstance(in_sync, list):
            left = tuple(one for one in before.unread if one not in in_sync)
            before = found[at] = replace(before, unread=left)
        election = _election(row) if row.what is AuditWhat.ELECTION else None
        if election is not None:
            whole = saved_of(before_recorded(row), saved.get(at, ())).whole if election.unread else {}
            left = tuple(one for one in election.unread if one not in whole)
            held = tuple((one, whole[one]) for one in election.unread if one in whole)
            election = replace(election, unread=left, saved=held)
            _add(found, at, election)
    for journal in journals:
        for at, planned in journal.planned.items():
            one = journal.partitions.get(at)
            if one is None or not one.elected or (journal.has_result(at) and one.audited):
                continue
            evidence = planned.evidence
            clean = planned.method is Method.PREFERRED and planned.loss.grade is LossCertainty.PROVEN_NONE
            election = RecordedElection(
                None, evidence.leader_epoch + 1, journal.last_ms, clean, () if clean else evidence.replicas
            )
            _add(found, at, election)
    return found


def recorded_clearings(rows: Iterable[AuditRecord]) -> dict[TopicPartition, ClearedElr]:
    """Partitions without a leader of which kelr cleared ELR and LastKnownELR, the newest time; a line of an older kelr
    does not tell min ISR."""
    found: dict[TopicPartition, ClearedElr] = {}
    for row in rows:
        price = row.loss if row.what is AuditWhat.HOLD and row.loss is not None else {}
        cleared = price.get("cleared")
        for one in cleared if isinstance(cleared, list) else ():
            match price.get("min_isr"), one:
                case int(min_isr), {"partition": int(partition), "leader": None, "leader_epoch": int(epoch), **sets}:
                    # Kafka 4.0 can store -1, "no leader", after another write had cleared them.
                    if sets.get("elr") or sets.get("last_known_elr") not in ([], [-1]):
                        found[TopicPartition(row.topic, partition)] = ClearedElr(epoch, min_isr)
    return found


def _refused(row: AuditRecord) -> bool:
    """Whether this is an election that was refused, and never asked for."""
    return row.what is AuditWhat.ELECTION and row.result == ElectionResult.REFUSED and elected_by(row) is Elected.NOBODY


def _election(row: AuditRecord) -> RecordedElection | None:
    """An election that came about, or may have; None where nobody was elected by it."""
    elected, leader = elected_by(row), row.after.get("leader")
    if elected is Elected.AS_PLANNED:
        epoch, known = row.after.get("leader_epoch"), recorded_loss(row.loss)
        clean = known is not None and known[0] is LossCertainty.PROVEN_NONE
        if not isinstance(epoch, int) or not isinstance(leader, int):
            return None
        return RecordedElection(leader, epoch, row.at_ms, clean, tuple(_unread(row.evidence)))
    before, replicas = row.before.get("leader_epoch"), row.before.get("replicas")
    if elected is Elected.NOBODY or not isinstance(before, int):
        return None
    # What was read of the logs compares them with another replica's than may have been elected. A preferred election
    # may elect the last known leader, too, where ISR and ELR are empty.
    known = recorded_loss(row.loss)
    clean = row.method == Method.PREFERRED and known is not None and known[0] is LossCertainty.PROVEN_NONE
    others = replicas if isinstance(replicas, list) and not clean else ()
    unread = tuple(one for one in others if isinstance(one, int) and one != leader)
    return RecordedElection(leader if isinstance(leader, int) else None, before + 1, row.at_ms, clean, unread)


def _add(found: dict[TopicPartition, RecordedElection], at: TopicPartition, election: RecordedElection) -> None:
    """A newer election: one that gave nothing up does not hide an older one that may have."""
    before = found.get(at)
    if election.clean and before is not None and before.unread:
        return
    unread = {*election.unread, *(() if before is None or before.clean else before.unread)}
    found[at] = replace(election, unread=() if election.clean else tuple(sorted(unread)))


def _unread(evidence: Iterable[Mapping[str, Any]]) -> Iterator[int]:
    """Replicas whose brokers did not answer: nothing was heard of them, or their disks alone were read, or they had
    answered an earlier look."""
    for one in evidence:
        replica, source = one.get("replica"), str(one.get("source"))
        silent = one.get("unheard") is not None or source == LOG_DIRECTORY or source.endswith(SAVED)
        if isinstance(replica, int) and silent:
            yield replica


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the audit log tells of elections, and of what was produced again after them."""

    elections: Mapping[tuple[object, ...], AuditRecord] = field(default_factory=dict)
    """Lines by what they were about: topic, partition, wanted leader, leader epoch before; the newest of each. A plan
    that was edited has another name, and may have the same elections."""
    replays: tuple[AuditRecord, ...] = ()
    late: Mapping[TopicPartition, tuple[int, Instant]] = field(default_factory=dict)
    """Until when an unclean election of a partition may come yet that went without an answer, by the wall clock of when
    it was written."""
    newest: Mapping[tuple[object, ...], int] = field(default_factory=dict)
    """When the newest election of a topic and partition was."""
    came_about: Mapping[tuple[object, ...], int | None] = field(default_factory=dict)
    """Whom an election is known to have elected as planned; by topic, partition and leader epoch before."""

    @classmethod
    def of(cls, rows: Iterable[AuditRecord]) -> Self:
        """The lines that tell of elections and replays."""
        elections: dict[tuple[object, ...], AuditRecord] = {}
        newest: dict[tuple[object, ...], int] = {}
        came_about: dict[tuple[object, ...], int | None] = {}
        late: dict[TopicPartition, tuple[int, Instant]] = {}
        replays = []
        for row in rows:
            if row.what is AuditWhat.ELECTION:
                until_ms = row.after.get("late_until_ms")
                if row.partition is not None and isinstance(until_ms, int):
                    at = Instant(row.at_ms, Moment(row.boot_id, row.boot_ms or 0))
                    late[TopicPartition(row.topic, row.partition)] = until_ms, at
                key = row.topic, row.partition, row.wanted, row.before.get("leader_epoch")
                if _refused(row) and not _refused(elections.get(key, row)):
                    continue  # A plan that is tried again does not undo what it did before.
                elections[key] = row
                newest[row.topic, row.partition] = row.at_ms
                if elected_by(row) is Elected.AS_PLANNED:
                    came_about[row.topic, row.partition, row.before.get("leader_epoch")] = row.wanted
            elif row.what is AuditWhat.RESCUE:
                replays.append(row)
        return cls(elections, tuple(replays), late, newest, came_about)

    def refusal(self, planned: PlannedElection, plan: str) -> str:
        """Why an election was refused when the plan of this id was applied last; empty where it was not, or was not
        tried."""
        at = planned.address
        row = self.elections.get((at.topic, at.partition, planned.elect, planned.evidence.leader_epoch))
        if row is None or row.plan_id != plan or elected_by(row) is not Elected.NOBODY:
            return ""
        return row.text if row.result == ElectionResult.REFUSED or row.error else ""

    def saved(self, planned: PlannedElection, files: Sequence[SavedLog]) -> SavedOfLoss:
        """What rescue files hold of what a planned election lost: nothing, unless it is on record that it came about;
        who leads there now may have been elected by another one."""
        row = self.elections.get((planned.topic, planned.partition, planned.elect, planned.evidence.leader_epoch))
        came_about = row is not None and elected_by(row) is Elected.AS_PLANNED
        return saved_of(before_recorded(row) if row is not None and came_about else None, files)

    def late_until_ms(self, at: TopicPartition, now: Instant) -> int:
        """Until when an unclean election of a partition may come yet, by the wall clock as it is set now; 0: none."""
        until_ms, written = self.late.get(at, (0, now))
        return written.now_of(until_ms, now) if until_ms else 0


def lost_with_audit(planned: PlannedElection, seen: Seen, known: Recorded) -> Lost | None:
    """What a planned election lost, with what was recorded and accepted for it, and produced again since; None where it
    was not carried out."""
    at, epoch = planned.address, planned.evidence.leader_epoch
    if known.came_about.get((planned.topic, planned.partition, epoch), planned.elect) != planned.elect:
        # Another election came about out of the state that it stands on. One that was only refused here may have been
        # carried out by a kelr of another machine.
        return None
    row = known.elections.get((planned.topic, planned.partition, planned.elect, epoch))
    elected = Elected.NOBODY if row is None else elected_by(row)
    recorded = row.loss or {} if row is not None and elected is Elected.AS_PLANNED else None
    found = lost_by(planned, seen, recorded, perhaps_another=elected is Elected.PERHAPS_ANOTHER)
    if found is None or row is None:
        return found
    accepted = accepted_in_words(row)
    again = 0
    if known.newest.get((planned.topic, planned.partition)) == row.at_ms:
        after = (one for one in known.replays if (one.topic, one.partition) == (at.topic, at.partition))
        again = sum(lost_of_replayed(at, one.after, one.evidence) for one in after if one.at_ms >= row.at_ms)
    return replace(raised(found, again), at_ms=row.at_ms, accepted=accepted, replayed=again, on_record=elected)


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "grade": loss.grade.value,
        "committed": _bounds(loss.committed),
        "uncommitted": _bounds(loss.uncommitted),
        "total": _bounds(loss.total),
        "unheard": list(loss.unheard),
        "min_isr": loss.min_isr,
        "gone_ranges": [list(one) for one in loss.gone_ranges],
    }


def _bounds(bounds: Bounds | None) -> list[int | None] | None:
    return None if bounds is None else [bounds.at_least, bounds.at_most]
