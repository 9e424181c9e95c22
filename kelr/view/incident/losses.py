"""What was lost, partition by partition, and how sure that is: the engine's own grades, and nothing that is guessed.

An election gives up what the elected replica's log lacks. What that was is known from what kelr showed before it
carried the election out (audit log), or from an earlier snapshot, where the election came out of just that state; that
an election was clean is known from the metadata log, too. Where none of them tells, it is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.engine.logs import KnownLogs, agreement, committed_and_gone
from kelr.engine.planning.lost import (
    ORDER,
    Elected,
    Lost,
    accepted_in_words,
    at_least,
    certain,
    counted,
    elected_by,
    lost_of_replayed,
    raised,
    recorded_loss,
    with_saved,
)
from kelr.engine.planning.saved import before_recorded, saved_of
from kelr.engine.words import joined
from kelr.model import (
    Bounds,
    Decision,
    ElectionType,
    Loss,
    LossCertainty,
    ReplicaLog,
    SavedLog,
    Situation,
    TopicConfig,
    TopicPartition,
)
from kelr.model.audit import AuditRecord
from kelr.page.words import sentence
from kelr.replay.history import PartitionEntry, PartitionSummary
from kelr.view.explain_columns import Explained
from kelr.view.incident.material import Look, Material, Told


@dataclass(frozen=True, slots=True)
class Replayed:
    """Records of rescue files that brokers confirmed."""

    records: int = 0
    lost: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Those of them that were produced where they came from, because the log there did not hold them any more."""
    partitions: int = 0
    """To so many partitions."""
    unended: int = 0
    """Partitions whose replay began and has no end on record: how many records it produced is not known."""


def replayed(material: Material) -> Replayed:
    """What the audit log tells of it; nothing where there is none."""
    rows = [] if material.done is None else [row for row in material.done.rows if str(row.what) == "rescue"]
    lost: Counter[TopicPartition] = Counter()
    records, reached = 0, set[TopicPartition]()
    for row in _ended(rows):
        at, produced = TopicPartition(row.topic, row.partition or 0), counted(row.after.get("records"))
        records += produced
        lost[at] += lost_of_replayed(at, row.after, row.evidence)
        reached |= {at} if produced else set()
    begun = Counter(_run(row) for row in rows if row.result == "begun")
    ended = Counter(map(_run, _ended(rows)))
    return Replayed(records, {at: many for at, many in lost.items() if many}, len(reached), len(begun - ended))


def _ended(rows: list[AuditRecord]) -> Iterator[AuditRecord]:
    return (row for row in rows if row.result != "begun")


def _run(row: AuditRecord) -> tuple[object, ...]:
    return row.journal, row.topic, row.partition


READ_WITHIN_MS = 60_000
"""A metadata log that ends so shortly before the newest look counts as reaching to it: two clocks tell the times."""


def tells_of_all(material: Material) -> bool:
    """Whether a partition that was in trouble since the earlier look, or ever where there is none, and is well again
    would be known of: the looks and kelr's own audit log know nothing of what others mended, or Kafka by itself."""
    told = material.told
    return (
        _tells_since(material.before, told)
        and told is not None
        and told.to_its_end
        and told.ends_ms + READ_WITHIN_MS >= material.now.taken_at_ms
    )


def _tells_since(before: Look | None, told: Told | None) -> bool:
    """Whether the metadata log leaves out nothing of what came after the earlier look, up to the log's end."""
    if told is None or told.whole_since_ms is None:
        return told is not None
    return before is not None and told.whole_since_ms <= before.taken_at_ms


_FROM_THE_ISR = (
    "metadata log: elected from the ISR, which without ELR proves nothing: who restarted uncleanly stays in it"
)


def losses(material: Material) -> tuple[Lost, ...]:
    """What each election lost that is known to have happened in the incident, sorted by partition."""
    rows: dict[TopicPartition, list[AuditRecord]] = {}
    for row in () if material.done is None else material.done.rows:
        if _elected(row) is not Elected.NOBODY and row.partition is not None:
            rows.setdefault(TopicPartition(row.topic, row.partition), []).append(row)
    again = replayed(material).lost
    found: list[Lost] = []
    for address in material.partitions:
        recorded = rows.get(address, [])
        saved = () if material.done is None else material.done.saved.get(address, ())
        here = [*(_recorded(row, saved) for row in recorded), *_unrecorded(material, address, recorded)]
        found += _with_replayed(_with_gone(here, material, address), address, again.get(address, 0))
    return tuple(found)


def _with_gone(found: list[Lost], material: Material, address: TopicPartition) -> list[Lost]:
    """The losses of one partition; what was committed in the earlier look, and is not in the log that leads now, was
    lost between them, whatever was counted."""
    before, gone = material.before, _gone(material, address)
    if before is None or gone is None:
        return found
    start, end = gone
    leader = material.now.rows[address].decision.leader
    what = f"committed in the earlier look, and not in the log of {leader}, which leads now: {start:,}..{end - 1:,}"
    between = [one for one in found if one.at_ms is None or one.at_ms >= before.taken_at_ms]
    missing = end - start - sum(one.of_committed.at_least for one in between)
    if missing <= 0:
        return found
    if not between:
        least = Bounds(end - start)
        return [*found, Lost(address, leader, LossCertainty.UNKNOWN, least, least, f"two looks: {what}")]
    last = max(between, key=lambda one: one.of_committed.at_most is None)
    return [one if one is not last else at_least(one, one.of_committed.at_least + missing, what) for one in found]


def _gone(material: Material, address: TopicPartition) -> tuple[int, int] | None:
    """Offsets `[start, end)` that were committed in the earlier look, and that the leader's log does not hold in the
    newest; None: none are known."""
    before, now = material.before, material.now
    if before is None or before.taken_at_ms >= now.taken_at_ms or _same_topic(material, address) is not True:
        return None
    then, leading = before.rows.get(address), _leading(now, address)
    if then is None or leading is None:
        return None
    was, held = then.decision, _logs(then, then.decision.replicas)
    # Who was not in sync may have held what an unclean election gave up before.
    best = held.best if was.leader is None else held.ranked.get(was.leader) or held.best_of(was.isr)
    if best is None:
        return None
    configs = [look.configs.get(address.topic, TopicConfig()) for look in (before, now)]
    by_epochs = all(one.cleanup_policy == ("delete",) and not one.remote_storage for one in configs)
    start, end = committed_and_gone(best, leading, by_epochs=by_epochs) or (0, 0)
    start = max(start, held.deleted_below(best.replica))
    return (start, end) if start < end else None


def _leading(now: Look, address: TopicPartition) -> ReplicaLog | None:
    """The log of who leads in the newest look; None: it was not read, or before it led."""
    row = now.rows.get(address)
    leader = None if row is None else row.decision.leader
    if row is None or leader is None:
        return None
    log = _logs(row, [leader]).heard.get(leader)
    return log if log is not None and log.current_leader_epoch == row.decision.leader_epoch else None


def _held_on(material: Material, address: TopicPartition, elected: int) -> bool:
    """Whether who was elected had lost nothing since the earlier look: the log that leads now goes on from all that it
    held there."""
    then = None if material.before is None else material.before.rows.get(address)
    leading = _leading(material.now, address)
    held = None if then is None else _logs(then, then.decision.replicas).ranked.get(elected)
    if held is None or leading is None or _same_topic(material, address) is False:
        return False
    agreed = agreement(held, leading)
    return agreed is not None and agreed >= held.log_end


def _logs(row: Explained, replicas: Sequence[int]) -> KnownLogs:
    """What these replicas' logs held at a look, without answers from before its leader epoch."""
    epoch = row.decision.leader_epoch
    logs = [one for one in row.logs if isinstance(one, ReplicaLog) and one.replica in replicas]
    stale = {one.replica for one in logs if one.current_leader_epoch is not None and one.current_leader_epoch < epoch}
    return KnownLogs({one.replica: one for one in logs if one.replica not in stale})


def _same_topic(material: Material, address: TopicPartition) -> bool | None:
    """Whether both looks are of one topic, and not of one that was made anew under its name; None: not known."""
    ids = {None if look is None else look.topic_ids.get(address.topic) for look in (material.before, material.now)}
    return None if None in ids else len(ids) == 1


def _with_replayed(found: list[Lost], address: TopicPartition, records: int) -> list[Lost]:
    """The losses of one partition; what was produced again because its log lacked it was lost, whatever was counted."""
    if not records:
        return found
    if not found:
        found = [Lost(address, None, LossCertainty.UNKNOWN, None, None, "audit log: no election is on record")]
    *others, last = sorted(found, key=lambda one: one.of_all.at_most is None)
    least = records - sum(one.of_all.at_least for one in others)
    return [*others, replace(raised(last, least), replayed=records)]


def elected_since(material: Material, before: Decision) -> int | None:
    """Who was elected out of just the state that an earlier decision is about; None: nobody, or not known."""
    address, epoch = TopicPartition(before.topic, before.partition), before.leader_epoch
    for row in () if material.done is None else material.done.rows:
        here = (row.topic, row.partition) == (address.topic, address.partition)
        if here and _elected(row) is Elected.AS_PLANNED and _number(row.before.get("leader_epoch")) == epoch:
            return _number(row.after.get("leader"))
    summary = None if material.told is None else material.told.summaries.get(address)
    for entry in () if summary is None else summary.unsafe:
        if entry.before is not None and entry.before.leader_epoch == epoch and entry.election is not None:
            return entry.election.leader
    now = material.now.rows.get(address)
    return now.decision.leader if now is not None and now.decision.leader_epoch == epoch + 1 else None


def _elected(row: AuditRecord) -> Elected:
    return elected_by(row) if str(row.what) == "election" else Elected.NOBODY


def worst_first(found: Sequence[Lost]) -> list[Lost]:
    """Those with the largest loss that is known first, then by how little is known."""

    def known(one: Lost) -> int:
        return one.of_all.at_least

    return sorted(found, key=lambda one: (-known(one), ORDER.index(one.grade), one.address))


def _recorded(row: AuditRecord, saved: Sequence[SavedLog]) -> Lost:
    """An election that kelr carried out."""
    address = TopicPartition(row.topic, row.partition or 0)
    leader = _number(row.after.get("leader"))
    if _elected(row) is not Elected.AS_PLANNED:
        another = leader is not None and leader != row.wanted
        why = "another replica leads than was planned" if another else "how it ended is not known"
        return Lost(address, leader, LossCertainty.UNKNOWN, None, None, f"audit log: {why}", row.at_ms)
    known = recorded_loss(row.loss)
    if known is None:
        return Lost(
            address, leader, LossCertainty.UNKNOWN, None, None, "audit log: no loss is recorded there", row.at_ms
        )
    grade, committed, total, unread = known
    accepted = accepted_in_words(row)
    of_files = saved_of(before_recorded(row), saved)
    left = [one for one in unread if one not in of_files.whole]
    basis = "audit log: counted just before the election"
    basis += f"; log not read: {joined(left)}" if left else ""
    basis += f"; accepted: {accepted}" if accepted else ""
    found = Lost(address, leader, grade, committed, total, basis, row.at_ms, unread=unread, accepted=accepted)
    found = replace(found, min_isr=_number((row.loss or {}).get("min_isr")))
    return with_saved(found, of_files)


def _unrecorded(material: Material, address: TopicPartition, recorded: Sequence[AuditRecord]) -> Iterator[Lost]:
    """Elections that kelr did not carry out, or not on this machine."""
    known = {(_number(row.after.get("leader")), _number(row.after.get("leader_epoch"))) for row in recorded}
    before = None if material.before is None else material.before.rows.get(address)
    if _same_topic(material, address) is False:
        # Epochs of two topics are not compared.
        if before is not None and before.decision.leader is None:
            basis = "the topic was deleted, and another one made under its name"
            yield Lost(address, None, LossCertainty.UNKNOWN, None, None, basis)
        before = None
    summary = None if material.told is None else material.told.summaries.get(address)
    unsafe = () if summary is None else summary.unsafe
    for entry in unsafe:
        leader = entry.election.leader if entry.election is not None else None
        if entry.after is None or (leader, entry.after.leader_epoch) not in known:
            yield _by_log(material, entry, None if before is None else before.decision)
    if before is not None:
        yield from _before_the_records(material, before, summary, recorded)
    now = material.now.rows.get(address)
    if now is None and not unsafe and not recorded and _was_in_trouble(material, address):
        basis = "it is not in the newest look, and what became of it is not known"
        yield Lost(address, None, LossCertainty.UNKNOWN, None, None, basis)
    if now is None or now.decision.leader is None:
        return
    waited = before.decision if before is not None and before.decision.leader is None else None
    told_to = _told_to(material, address, recorded)
    if told_to is not None and told_to < now.decision.leader_epoch:
        yield _after_the_records(material, waited, now.decision, told_to)
    elif waited is not None and not unsafe and not recorded:
        if before is not None and _covers(material, summary, before.taken_at_ms):
            yield _of_members(material, waited, now.decision)
        else:
            yield _between(material, waited, now.decision)
    elif before is not None and not unsafe and not recorded and not _led_on(before.decision, now.decision):
        yield from _while_it_was_led(material, before, now.decision)


def _was_in_trouble(material: Material, address: TopicPartition) -> bool:
    """Whether it was without a leader, or unsafe, when something last told of it; one that was deleted is no more."""
    summary = None if material.told is None else material.told.summaries.get(address)
    if summary is not None:
        return summary.state is not None and summary.state.leader is None
    before = None if material.before is None else material.before.rows.get(address)
    return before is not None and before.decision.leader is None


def _told_to(material: Material, address: TopicPartition, recorded: Sequence[AuditRecord]) -> int | None:
    """The newest leader epoch that the metadata log or the audit log tells of; None: they tell of none."""
    epochs = [_number(row.after.get("leader_epoch")) for row in recorded]
    ended = None if material.told is None else material.told.at_end(address)
    if ended is not None:
        epochs.append(ended.leader_epoch)
    return max((epoch for epoch in epochs if epoch is not None), default=None)


def _covers(material: Material, summary: PartitionSummary | None, since_ms: int) -> bool:
    """Whether the metadata log tells of the time from this moment on, and of an election in it."""
    return (
        material.told is not None
        and summary is not None
        and summary.state is not None
        and bool(summary.elections)
        and max(material.told.whole_since_ms or 0, material.told.begins_ms, summary.known_since_ms) <= since_ms
    )


def elr_is_on(material: Material) -> bool:
    """Whether every look found ELR on, and the metadata log at all times: a replica that restarted uncleanly then
    leaves ISR and ELR. With ELR off it stays in the ISR, so that being elected from there proves nothing of its log
    (KIP-966, "last replica standing")."""
    looks = (material.now, material.before)
    if material.told is not None and not material.told.elr_on:
        return False
    return all(look is None or look.cluster.features.elr_enabled is True for look in looks)


def _of_members(material: Material, waited: Decision, now: Decision) -> Lost:
    """The metadata log tells of all elections since, and each was of a member of ISR or ELR."""
    address = TopicPartition(now.topic, now.partition)
    if elr_is_on(material):
        basis = "metadata log: every election in its time was of a member of ISR or ELR"
        return Lost(address, now.leader, LossCertainty.PROVEN_NONE, Bounds(0, 0), None, basis)
    found = _between(material, waited, now)
    return replace(found, basis=f"{_FROM_THE_ISR}. {sentence(found.basis)}")


def _before_the_records(
    material: Material, before: Explained, summary: PartitionSummary | None, recorded: Sequence[AuditRecord]
) -> Iterator[Lost]:
    """What came between the earlier look and the first election that anything tells of."""
    unsafe = () if summary is None else summary.unsafe
    epochs = [_number(row.before.get("leader_epoch")) for row in recorded]
    epochs += [entry.before.leader_epoch for entry in unsafe if entry.before is not None]
    first = min((epoch for epoch in epochs if epoch is not None), default=None)
    # To lose its leader takes a partition one epoch, and is no election.
    seen = before.decision.leader_epoch + (before.decision.leader is not None)
    if first is not None and first > seen and not _covers(material, summary, before.taken_at_ms):
        address = TopicPartition(before.decision.topic, before.decision.partition)
        basis = f"nothing tells of what came between leader epoch {seen}, of the earlier look, and {first}"
        yield Lost(address, None, LossCertainty.UNKNOWN, None, None, basis)


def _led_on(before: Decision, now: Decision) -> bool:
    """Whether no election since can have been unclean, as far as leader epochs tell.

    The earlier leader has led ever since, or a healthy partition went over to another in a single step where Kafka may
    not elect uncleanly: to lose its leader and to be given one by whatever tool takes two. That it is healthy now as it
    was then tells nothing: replicas that cut their logs to follow an unclean leader are in sync again soon.
    """
    if now.leader_epoch > before.leader_epoch + 1:
        return False
    forbidden = before.unclean_leader_election is False and now.unclean_leader_election is False
    return now.leader == before.leader or (before.situation is Situation.HEALTHY and forbidden)


def _while_it_was_led(material: Material, before: Explained, now: Decision) -> Iterator[Lost]:
    """It was led, and has had elections since: of a replica that was behind, perhaps."""
    # The metadata log tells of all that had no leader, or an election that is not sure to have been clean; that it goes
    # as far as the newest look's leader epoch has been looked at.
    address = TopicPartition(now.topic, now.partition)
    reaches = _tells_since(material.before, material.told) and _told_to(material, address, ()) is not None
    if reaches and elr_is_on(material):
        return
    was, epoch = before.decision.leader, before.decision.leader_epoch
    # There is no counting between the logs of the earlier look: its leader went on writing.
    basis = (
        _FROM_THE_ISR
        if reaches
        else f"two looks: {was} led in leader epoch {epoch} of the earlier one, and {now.leader} leads in"
        f" {now.leader_epoch}; nothing tells of the elections between them"
    )
    yield Lost(address, now.leader, LossCertainty.UNKNOWN, None, None, basis)


def _after_the_records(material: Material, waited: Decision | None, now: Decision, told_to: int) -> Lost:
    """Who leads now came to it after the metadata log and the audit log end: they prove nothing of that."""
    if waited is not None and now.leader_epoch == waited.leader_epoch + 1:
        return _between(material, waited, now)
    basis = (
        f"nothing tells of what came after leader epoch {told_to}; it is {now.leader_epoch} now. A metadata log up to"
        " now would tell"
    )
    return Lost(TopicPartition(now.topic, now.partition), now.leader, LossCertainty.UNKNOWN, None, None, basis)


def _by_log(material: Material, entry: PartitionEntry, before: Decision | None) -> Lost:
    """An election that the metadata log tells of, and that is not sure to have been clean."""
    election, at_ms = entry.election, entry.at.timestamp_ms
    leader = None if election is None else election.leader
    kind = "whether the election was clean is not told"
    if election is not None and election.elected_as.clean is False:
        kind = f"elected as {election.elected_as}"
    fits = (
        before is not None
        and before.leader is None
        and entry.before is not None
        and entry.before.leader_epoch == before.leader_epoch
    )
    found = _designation(before, leader) if fits and before is not None else None
    if found is None:
        reason = "what the logs held then is not known"
        return Lost(entry.address, leader, LossCertainty.UNKNOWN, None, None, f"metadata log: {kind}; {reason}", at_ms)
    basis = f"metadata log: {kind}; counted between the logs of the earlier snapshot. {found.reason}"
    return replace(_counted(material, entry.address, leader, found, basis), at_ms=at_ms)


def _between(material: Material, before: Decision, now: Decision) -> Lost:
    """Leaderless in the earlier snapshot and led now, and nothing tells how that came."""
    address = TopicPartition(now.topic, now.partition)
    if now.leader_epoch != before.leader_epoch + 1:
        basis = "two snapshots: there was more than one election between them, and nothing tells of the first"
        return Lost(address, now.leader, LossCertainty.UNKNOWN, None, None, basis)
    found = _designation(before, now.leader)
    if found is None:
        basis = f"two snapshots: {now.leader} was not live in the earlier one; whether it came back whole is not known"
        return Lost(address, now.leader, LossCertainty.UNKNOWN, None, None, basis)
    basis = f"two snapshots with one election between them; counted between the logs of the earlier one. {found.reason}"
    return _counted(material, address, now.leader, found, basis)


def _counted(material: Material, address: TopicPartition, leader: int | None, loss: Loss, basis: str) -> Lost:
    """A loss by the logs of the earlier look: a lower bound, unless who was elected is seen to have held on to all that
    it held there."""
    grade = certain(loss.grade, loss.total)
    if leader is None or not _held_on(material, address, leader):
        grade = LossCertainty.UNKNOWN
        basis = f"{basis}. That {leader} still held all of its log when it was elected is not shown"
    return Lost(address, leader, grade, loss.committed, loss.total, basis, unread=loss.unheard, min_isr=loss.min_isr)


def _designation(before: Decision | None, leader: int | None) -> Loss | None:
    """What electing this replica would have lost in the earlier state; None where it was not live then."""
    if before is None or leader is None:
        return None
    outcomes = (one for one in before.elections if one.election is ElectionType.DESIGNATION)
    return next((one.loss for one in outcomes if one.designate == leader and one.elected == leader), None)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
