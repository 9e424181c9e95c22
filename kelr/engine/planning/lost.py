"""What elections that have happened lost, as far as anybody can know after them.

Pure. A replica that truncated keeps no count of what it gave up, and no request tells it: what was not read before an
election stays UNKNOWN after it, with the lower bound that was counted. UNKNOWN is never 0, alone or in a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from kelr.engine.logs import KnownLogs, rank_logs
from kelr.engine.planning.saved import SavedOfLoss
from kelr.engine.planning.seen import Seen
from kelr.engine.planning.verified_logs import elected_log, holds_all_others, kept_up_to, planned_log_end
from kelr.engine.words import agree, joined, plural
from kelr.model import Bounds, LossCertainty, Method, PlannedElection, ReplicaLog, TopicPartition
from kelr.model.audit import AuditRecord
from kelr.model.partition import PartitionState
from kelr.model.plan import ElectionResult

__all__ = [
    "ORDER",
    "Elected",
    "Lost",
    "LostInAll",
    "accepted_in_words",
    "at_least",
    "certain",
    "counted",
    "elected_by",
    "led_since",
    "lost_by",
    "lost_in_all",
    "lost_of_replayed",
    "raised",
    "recorded_loss",
    "summed",
    "with_saved",
]

ORDER = (
    LossCertainty.UNKNOWN,
    LossCertainty.BOUNDED,
    LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR,
    LossCertainty.PROVEN_NONE,
)
"""The worst first."""
_UNBOUNDED = Bounds(0)
_NONE = Bounds(0, 0)


class Elected(Enum):
    """Whom an election on record made the leader, as far as its line tells."""

    AS_PLANNED = auto()
    PERHAPS_ANOTHER = auto()
    """Another replica than planned, or it is not known which, or whether any: nothing tells what that gave up."""
    NOBODY = auto()


@dataclass(frozen=True, slots=True)
class Lost:
    """What one election lost."""

    address: TopicPartition
    leader: int | None
    """Who was elected; None: not known."""
    grade: LossCertainty
    committed: Bounds | None
    """Offsets below a high watermark; None: not known."""
    total: Bounds | None
    basis: str
    """What this stands on."""
    at_ms: int | None = None
    unread: tuple[int, ...] = ()
    """Replicas whose logs nobody had read when it was counted, nor, in whole, for a rescue file that is known."""
    truncated: tuple[int, ...] = ()
    """Those of them whose logs hold nothing any more that the leader's lacks: nothing tells what they gave up."""
    accepted: str = ""
    """What was given for it, by whom, as the audit log has it; empty: that is not known."""
    replayed: int = 0
    """Records that it lost and that were produced again since, as the audit log has it."""
    saved: int = 0
    """So many that it lost are in `files`, at least."""
    files: tuple[str, ...] = ()
    """Rescue files that hold some of it, or show that a log held none of it."""
    unchecked: tuple[str, ...] = ()
    """Those of them that were not compared with the SHA-256s in their manifests."""
    read_for_files: tuple[int, ...] = ()
    """Replicas whose logs nobody had read when it was counted, and of which `files` have all that the elected one
    lacked when they were read."""
    unsure: bool = False
    """Whether the planned election came about is not known: who leads may have been elected by another one."""
    leads: int | None = None
    """The one of `unread` that leads now: it follows nobody; whether it followed another leader before is not known."""
    led_first: int | None = None
    """Who led in the first leader epoch after the plan's, where that was not the planned replica, and a request of the
    plan may have elected it all the same; None: the planned one did, or it is not known."""
    was_in_sync: bool = False
    """`led_first` was in the ISR or ELR by the plan: after a clean shutdown Kafka elects it by itself, and it holds all
    that is committed."""
    on_record: Elected | None = None
    """What the audit log of this machine tells of the election; None: it has no line of it, or was not asked."""
    min_isr: int | None = None
    """`Loss.min_isr`."""

    @property
    def promised(self) -> bool:
        """Whether it lost nothing committed if fewer than min ISR replicas lost data (KIP-966, balanced)."""
        none_known = self.committed is None or not self.committed.at_least
        return self.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR and none_known

    @property
    def of_committed(self) -> Bounds:
        """Committed offsets, never None: without an upper bound where that is not known."""
        if self.grade is LossCertainty.PROVEN_NONE or self.promised:
            return _NONE
        return _as_known(self.grade, self.committed)

    @property
    def of_all(self) -> Bounds:
        """Offsets in all, never None."""
        found = _as_known(self.grade, self.total)
        return Bounds(max(found.at_least, self.of_committed.at_least), found.at_most)


def _as_known(grade: LossCertainty, bounds: Bounds | None) -> Bounds:
    """A count that contradicts other evidence, as that of an unknown grade may, bounds nothing."""
    if bounds is None:
        return _UNBOUNDED
    return Bounds(bounds.at_least) if grade is LossCertainty.UNKNOWN else bounds


@dataclass(frozen=True, slots=True)
class LostInAll:
    """What several elections lost together."""

    elections: int
    committed: Bounds
    total: Bounds
    unknown: int
    """Elections whose loss of committed offsets nothing bounds."""
    promised: tuple[int | None, ...]
    """`Lost.min_isr` of each election that lost nothing committed if fewer than so many replicas lost data."""
    unread: tuple[int, ...] = ()
    truncated: tuple[int, ...] = ()
    saved: int = 0
    """Offsets of these that rescue files hold."""
    files: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    read_for_files: tuple[int, ...] = ()
    unsure: int = 0
    """Elections of which it is not known whether they came about."""
    expected: tuple[int, ...] = ()
    """Those of `unread` that are not known to follow the new leaders yet, nor to lead."""
    leading: tuple[int, ...] = ()
    """Those of `unread` that lead now."""

    @property
    def nothing(self) -> bool:
        """Whether it is known, without any condition, that no offset was lost."""
        return self.committed == _NONE and self.total == _NONE and not self.promised


def lost_in_all(found: Sequence[Lost]) -> LostInAll:
    """The sum: a lower bound counts although another election's loss is unknown, and an unknown one leaves no upper
    bound."""
    truncated = {replica for one in found for replica in one.truncated}
    # A broker may have truncated here and be expected there.
    expected = {replica for one in found for replica in one.unread if replica not in {*one.truncated, one.leads}}
    return LostInAll(
        len(found),
        summed(found, lambda one: one.of_committed),
        summed(found, lambda one: one.of_all),
        sum(one.of_committed.at_most is None for one in found),
        tuple(one.min_isr for one in found if one.promised),
        tuple(sorted({replica for one in found for replica in one.unread})),
        tuple(sorted(truncated - expected)),
        sum(one.saved for one in found),
        tuple(sorted({file for one in found for file in one.files})),
        tuple(sorted({file for one in found for file in one.unchecked})),
        tuple(sorted({replica for one in found for replica in one.read_for_files})),
        sum(one.unsure for one in found),
        tuple(sorted(expected)),
        tuple(sorted({one.leads for one in found if one.leads is not None})),
    )


def summed(found: Sequence[Lost], part: Callable[[Lost], Bounds]) -> Bounds:
    """The bounds of several losses together."""
    bounds = [part(one) for one in found]
    mosts = [one.at_most for one in bounds]
    most = None if None in mosts else sum(one for one in mosts if one is not None)
    return Bounds(sum(one.at_least for one in bounds), most)


_MAY_HAVE_ELECTED = frozenset(
    {ElectionResult.OTHER_LEADER, ElectionResult.NOT_RESTORED, ElectionResult.NO_LEADER, ElectionResult.UNKNOWN}
)
"""Results of an older kelr, which does not say whether it had asked, that may come from its election."""


def elected_by(row: AuditRecord) -> Elected:
    """Whom a recorded election made the leader. A leader that came back by itself is not its result; one that leads
    after it was asked for may be."""
    leader = row.after.get("leader")
    if row.result == ElectionResult.DONE or (
        row.result == ElectionResult.NOT_RESTORED and leader is not None and leader == row.wanted
    ):
        return Elected.AS_PLANNED
    asked = row.result in _MAY_HAVE_ELECTED if row.asked is None else row.asked
    if not asked:
        return Elected.NOBODY
    epoch, before = row.after.get("leader_epoch"), row.before.get("leader_epoch")
    # Brokers that show the epoch of before may lag behind, or show what is older than a request: it proves nothing.
    known = (
        row.result != ElectionResult.UNKNOWN and isinstance(epoch, int) and isinstance(before, int) and epoch > before
    )
    if known and not led_since(row.before.get("leader"), before, epoch):  # type: ignore[arg-type]  # both are numbers
        return Elected.NOBODY
    return Elected.PERHAPS_ANOTHER


def led_since(leader: int | None, before: int, epoch: int) -> bool:
    """Whether somebody has been elected between two leader epochs: that a leader goes takes one, too.

    Args:
        leader: in the epoch before.
    """
    return epoch > before + (leader is not None)


_Recorded = tuple[LossCertainty, Bounds | None, Bounds | None, tuple[int, ...]]


def recorded_loss(loss: Mapping[str, Any] | None) -> _Recorded | None:
    """Grade, committed, total and the replicas not read, as the audit log has them; None where it has none."""
    try:
        grade = LossCertainty(str((loss or {}).get("grade")))
    except ValueError:
        return None
    assert loss is not None
    unheard = loss.get("unheard")
    unread = tuple(one for one in unheard if isinstance(one, int)) if isinstance(unheard, list) else ()
    total = _bounds(loss, "total")
    return certain(grade, total), _bounds(loss, "committed"), total, unread


def certain(grade: LossCertainty, total: Bounds | None) -> LossCertainty:
    """The grade of a loss that was counted: what nothing bounds is UNKNOWN, whatever an older kelr called it."""
    return (
        LossCertainty.UNKNOWN if grade is LossCertainty.BOUNDED and (total is None or total.at_most is None) else grade
    )


def _bounds(loss: Mapping[str, Any], name: str) -> Bounds | None:
    """Bounds as the audit log has them; None where they are something else."""
    match loss.get(name):
        case [int(least), int(most)]:
            return Bounds(least, most)
        case [int(least), None]:
            return Bounds(least)
        case _:
            return None


def accepted_in_words(row: AuditRecord) -> str:
    """What was given for a recorded election, and by whom: ``--accept-loss 19+ by ada@laptop``; empty for a yes, and
    where nothing came of it."""
    if elected_by(row) is Elected.NOBODY:
        return ""
    accepted = row.consent.get("accept_loss")
    given = [] if accepted is None else [f"--accept-loss {accepted}"]
    given += ["--force"] if row.force_reason else []
    # An older kelr wrote down nobody else than who had it carried out.
    who = f"{row.consent.get('user', row.user)}@{row.consent.get('host', row.host)}"
    return f"{' '.join(given)} by {who}" if given else ""


def lost_of_replayed(at: TopicPartition, after: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]) -> int:
    """Of the records that a recorded replay produced, those that the partition had lost; in a line of an older kelr
    all of them, if they came from there."""
    if "lost" in after:
        return counted(after["lost"])
    return counted(after.get("records")) if any(one.get("source") == str(at) for one in evidence) else 0


def counted(value: object) -> int:
    """A number of a record that may hold anything."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def raised(found: Lost, records: int) -> Lost:
    """The loss where so many records were produced again because the log lacked them: they were lost, whatever was
    counted, and a count that is smaller is none."""
    if records <= found.of_all.at_least:
        return found
    were = agree(records, "was", "were")
    basis = f"{found.basis}; {plural(records, 'record')} that its log had lost {were} produced again"
    return replace(_at_least(found, records), basis=basis)


def at_least(found: Lost, committed: int, why: str) -> Lost:
    """The loss where so many committed offsets are known to be gone, whatever was counted."""
    return replace(_at_least(found, committed, committed), basis=f"{found.basis}; {why}")


def with_saved(found: Lost, saved: SavedOfLoss) -> Lost:
    """The loss with what rescue files prove of it: they give an unknown one a lower bound, and no upper one."""
    if not saved.files:
        return found
    many = f"{plural(saved.offsets, 'offset')} of it at least" if saved.offsets else "nothing of it"
    return replace(
        _at_least(found, saved.offsets, saved.committed),
        basis=f"{found.basis}; {many} saved in {joined(saved.files)}",
        unread=tuple(one for one in found.unread if one not in saved.whole),
        truncated=tuple(one for one in found.truncated if one not in saved.whole),
        saved=saved.offsets,
        files=saved.files,
        unchecked=saved.unchecked,
        read_for_files=tuple(one for one in found.unread if one in saved.whole),
    )


def _at_least(found: Lost, total: int, committed: int = 0) -> Lost:
    """The loss with lower bounds that are proven; where what was counted is less than that, it is UNKNOWN."""
    known, of_committed = found.of_all, found.of_committed
    if total <= known.at_least and committed <= of_committed.at_least:
        return found
    total, committed = max(total, known.at_least), max(committed, of_committed.at_least)
    fits = all(
        most is None or most >= least for most, least in ((known.at_most, total), (of_committed.at_most, committed))
    )
    committed_most = found.committed.at_most if fits and found.committed is not None else None
    keeps = fits and committed == of_committed.at_least
    return replace(
        found,
        grade=found.grade if fits else LossCertainty.UNKNOWN,
        committed=found.committed if keeps else Bounds(committed, committed_most),
        total=Bounds(total, known.at_most if fits else None),
    )


# After the elections of a plan.


def lost_by(
    planned: PlannedElection,
    seen: Seen,
    recorded: Mapping[str, Any] | None = None,
    *,
    perhaps_another: bool = False,
) -> Lost | None:
    """What a planned election lost, by its plan and by what is seen now; None where it was not carried out: not yet, or
    another replica was elected first.

    Args:
        recorded: the loss that the audit log has for it, where it elected as planned. The larger of the two stands.
        perhaps_another: by the audit log it may have elected another replica.
    """
    found = _lost_by(planned, seen, recorded, perhaps_another=perhaps_another)
    leader = None if seen.state is None else seen.state.leader
    if found is None or seen.state is None or leader is None:
        return found
    if found.unsure and _is_another_first(planned, seen.state):
        # It followed nobody since the plan: what only it held is in the log that goes on.
        placed = {*planned.evidence.isr, *(planned.evidence.elr or ())}
        unread = tuple(one for one in found.unread if one != leader)
        return replace(found, unread=unread, led_first=leader, was_in_sync=leader in placed)
    return replace(found, leads=leader) if leader in found.unread else found


def _lost_by(
    planned: PlannedElection, seen: Seen, recorded: Mapping[str, Any] | None, *, perhaps_another: bool
) -> Lost | None:
    state = seen.state
    if state is None:
        return _unknown(planned, f"the partition could not be described: {seen.error}")
    if None not in {planned.topic_id, state.topic_id} and planned.topic_id != state.topic_id:
        return _unknown(planned, "the topic was deleted, and another one made under its name")
    leader, epoch, before = state.leader, state.leader_epoch, planned.evidence.leader_epoch
    if recorded is None and epoch <= before:
        return None
    if leader is None:
        if recorded is None and not led_since(planned.evidence.leader, before, epoch):
            return None
        why = "an election came after the plan, and there is no leader now"
        return replace(_unknown(planned, why), unsure=recorded is None)
    logs = rank_logs(state, seen.logs)
    kept, held = kept_up_to(planned, logs.heard.get(leader)), planned_log_end(planned)
    # The first election since the plan takes the next leader epoch; who leads in a later one came to it by another.
    is_planned = leader == planned.elect and epoch == before + 1 and not perhaps_another
    unsure = recorded is None and not is_planned
    if unsure and not perhaps_another and _elected_instead(planned, state, logs.heard.get(leader)):
        return None
    if kept is not None and held is not None and kept < held:
        return replace(_lost_more(planned, leader, kept, held), unsure=unsure)
    found = _with_recorded(_by_plan(planned, seen, logs), recorded)
    if not unsure:
        return with_saved(found, seen.saved)
    if kept is None or held is None:
        why = f"{leader} leads instead of {planned.elect}"
        if leader == planned.elect:
            why = f"{leader} leads, and another one may have been elected before it"
        return replace(_unknown(planned, f"{why}; whether it held as much is not known"), unsure=True)
    # It holds all that the planned leader held, and may have held more when it was elected.
    committed, total = _at_most(found.committed), _at_most(found.total)
    return replace(found, leader=leader, committed=committed, total=total, unsure=True)


def _elected_instead(planned: PlannedElection, state: PartitionState, leader_log: ReplicaLog | None) -> bool:
    """Whether another replica than planned was surely elected in the first epoch since the plan, and no request of the
    plan can have cost anything by that.

    A leader epoch has one leader, so the planned replica did not lead in it. ElectLeaders that names no replica may
    have elected the other one, where the planned one was not live: then what every other log held has to be in its log.
    """
    if not _is_another_first(planned, state):
        return False
    return planned.method is Method.NATIVE or holds_all_others(planned, leader_log)


def _is_another_first(planned: PlannedElection, state: PartitionState) -> bool:
    """Whether another replica than planned leads in the first epoch since a plan that nobody led in."""
    evidence = planned.evidence
    first = evidence.leader is None and state.leader_epoch == evidence.leader_epoch + 1
    return first and state.leader is not None and state.leader != planned.elect


def _by_plan(planned: PlannedElection, seen: Seen, logs: KnownLogs) -> Lost:
    loss, state = planned.loss, seen.state
    assert state is not None
    assert state.leader is not None
    # Without the leader's log nobody can tell who has truncated to it.
    back = [
        one
        for one in loss.unheard
        if one in seen.live and one != state.leader and {one, state.leader} <= logs.ranked.keys()
    ]
    agreed = {one: logs.agreement(one, state.leader) for one in back}
    truncated = tuple(one for one, at in agreed.items() if at is not None and at >= logs.ranked[one].log_end)
    return Lost(
        planned.address,
        planned.elect,
        certain(loss.grade, loss.total),
        loss.committed,
        loss.total,
        "the plan",
        unread=loss.unheard,
        truncated=truncated,
        min_isr=loss.min_isr,
    )


def _with_recorded(found: Lost, recorded: Mapping[str, Any] | None) -> Lost:
    known = recorded_loss(recorded)
    if known is None:
        return found
    grade, committed, total, unread = known
    return replace(
        found,
        grade=min(found.grade, grade, key=ORDER.index),
        committed=_larger(found.committed, committed),
        total=_larger(found.total, total),
        unread=tuple(dict.fromkeys((*found.unread, *unread))),
    )


def _larger(one: Bounds | None, other: Bounds | None) -> Bounds | None:
    if one is None or other is None:
        known = one or other
        return None if known is None else Bounds(known.at_least)
    most = None if one.at_most is None or other.at_most is None else max(one.at_most, other.at_most)
    return Bounds(max(one.at_least, other.at_least), most)


def _at_most(bounds: Bounds | None) -> Bounds | None:
    return None if bounds is None else Bounds(0, bounds.at_most)


def _lost_more(planned: PlannedElection, leader: int, kept: int, held: int) -> Lost:
    """The log that leads now lacks a part of what the plan was to keep. What the plan was to give up may be in it: who
    led meanwhile is not known."""
    evidence = elected_log(planned)
    known = 0 if evidence is None else evidence.high_watermark or 0
    basis = f"of what the plan was to keep up to {held}, the log of {leader} has what is below {kept}"
    return Lost(
        planned.address,
        leader,
        LossCertainty.UNKNOWN,
        Bounds(max(0, known - kept)),
        Bounds(held - kept),
        basis,
        unread=planned.loss.unheard,
    )


def _unknown(planned: PlannedElection, why: str) -> Lost:
    return Lost(planned.address, None, LossCertainty.UNKNOWN, None, None, why, unread=planned.loss.unheard)
