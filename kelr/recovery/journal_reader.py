"""What a journal says: how far its plan came, and what may be left to put right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kelr.durable import read_lines
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.model import TopicPartition
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult, Plan, PlannedElection
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import NO_ERROR, UNCERTAIN, is_refusal
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import VERSION, Ending, JournalStep, Line
from kelr.recovery.json_file import adapter
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.ground import UNKNOWN, Instant, Moment


@dataclass(slots=True)
class OnePartition:
    """What a journal says of one partition."""

    order: tuple[int, ...] | None = None
    """The order that was asked for to elect; None where none was."""
    sent: set[JournalStep] = field(default_factory=set)
    """Requests without any answer."""
    uncertain: set[JournalStep] = field(default_factory=set)
    """Requests before these that may take effect yet: a later answer says nothing of them."""
    moved: bool = False
    """It may have that order, or get it from another kelr (`Requests.moved`)."""
    elected: bool = False
    """An election was asked for, and not surely without effect."""
    elected_before: bool = False
    """What `elected` was before the last election was asked for."""
    stands: bool = False
    """Kafka answered that it gave that order, and kelr has asked for none since."""
    in_order: bool = False
    """It was read with the order that it should have, after everything else, and nothing can change it any more."""
    moved_before: bool = False
    """What `moved` was before the last reordering."""
    seen: tuple[tuple[int, ...], Moment] | None = None
    """The order by which another kelr may be electing, and when it was seen first in this boot."""
    applied: Applied | None = None
    applied_at: Instant = field(default_factory=Instant)
    """When that was written."""
    audited: bool = True
    """The audit log has it."""
    by: tuple[Actor, str] | None = None
    """Who asked last for the election, or for its order, and by which command; None: whoever began the journal."""

    def is_loose(self, step: JournalStep) -> bool:
        """Whether the fate of a request of this kind is not known."""
        return step in self.sent or step in self.uncertain


@dataclass(slots=True)
class Journalled:
    """A whole journal."""

    path: Path
    cluster_id: str | None
    who: Actor
    command: str
    begun_ms: int
    kelr: str
    plan: Plan | None
    """None for a hold."""
    plan_id: str | None
    keep_order: bool
    consented: Confirmation
    partitions: dict[TopicPartition, OnePartition] = field(default_factory=dict)
    configs: dict[tuple[str, int | None, str], WrittenConfig] = field(default_factory=dict)
    """By topic, broker and name."""
    ending: Ending | None = None
    """None: it is open."""
    last_ms: int = 0

    @property
    def planned(self) -> Mapping[TopicPartition, PlannedElection]:
        return {} if self.plan is None else {one.address: one for one in self.plan.elections}

    @property
    def reordered(self) -> tuple[TopicPartition, ...]:
        """Partitions that may still have the order that they got for their election."""
        return tuple(at for at, one in sorted(self.partitions.items()) if one.order is not None and not one.in_order)

    @property
    def on_their_way(self) -> tuple[TopicPartition, ...]:
        """Partitions in their own order whose election was asked for without an answer: it may come yet."""
        return tuple(
            at
            for at, one in sorted(self.partitions.items())
            if one.order is None and not one.in_order and one.is_loose(JournalStep.ELECT)
        )

    @property
    def not_audited(self) -> tuple[PlannedElection, ...]:
        """Elections whose results the audit log lacks."""
        planned = self.planned
        return tuple(planned[at] for at, one in sorted(self.partitions.items()) if not one.audited and at in planned)

    def begun_by(self, at: TopicPartition) -> tuple[Actor, str]:
        """Who had the election of a partition carried out, and by which command."""
        one = self.partitions.get(at)
        return (self.who, self.command) if one is None or one.by is None else one.by

    def has_result(self, at: TopicPartition) -> bool:
        """Whether it is known what became of an election: not where brokers still showed the epoch of before."""
        one = self.partitions.get(at)
        result = None if one is None else one.applied
        if result is None or result.ended is ElectionResult.UNKNOWN:
            return False
        before = self.planned[at].evidence.leader_epoch
        return not result.asked or result.ended is ElectionResult.DONE or (result.leader_epoch or 0) > before

    @property
    def configs_left(self) -> tuple[WrittenConfig, ...]:
        """Configs that may not have their old value."""
        return tuple(config for config in self.configs.values() if not config.restored)


def read_journal(path: Path, files: Files = FILES) -> Journalled:
    """A journal from its file; a last line that a crash has torn is left out.

    Raises:
        BadInputError: it is none, or of a newer version; names the line.
    """
    found: Journalled | None = None
    for number, line in read_lines(path, "journal", files):
        try:
            if found is None:
                found = _begun(path, line)
            else:
                _add(found, line)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"lacks {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            raise BadInputError(
                f"{path}, line {number}: garbled journal: {reason}",
                next_step="kelr recover status PLAN finds orders that were left behind; then move the file away",
                code="journal-garbled",
            ) from error
    if found is None:
        raise BadInputError(f"{path} holds no journal: nothing was asked of the cluster", next_step="delete the file")
    return found


def _begun(path: Path, line: Mapping[str, Any]) -> Journalled:
    if line["line"] != Line.BEGIN or line["format"] != "kelr-journal":
        raise ValueError("its first line is none of a journal")
    if line["version"] > VERSION:
        raise ValueError(f"version {line['version']} is of a newer kelr ({line['kelr']})")
    return Journalled(
        path=path,
        cluster_id=line["cluster_id"],
        who=Actor(line["user"], line["host"], line["principal"]),
        command=line["command"],
        begun_ms=int(line["at_ms"]),
        kelr=line["kelr"],
        plan=None if line["plan"] is None else adapter(Plan).validate_python(line["plan"]),
        plan_id=line["plan_id"],
        keep_order=bool(line["keep_order"]),
        consented=Confirmation(_accepted(line["accept_loss"]), line["force_reason"], line["yes"]),
        last_ms=int(line["at_ms"]),
    )


def _accepted(text: str | None) -> AcceptedLoss | None:
    return None if text is None else AcceptedLoss.parse(text)


def _add(found: Journalled, line: Mapping[str, Any]) -> None:
    found.last_ms = int(line["at_ms"])
    kind = Line(line["line"])
    if kind is Line.END:
        found.ending = Ending(line["ending"])
        return
    if kind in {Line.INTENT, Line.SEEN}:
        found.ending = None  # undo of a closed journal: open until that has ended, too
    if kind is Line.APPLIED:
        for record in line["results"]:
            result = adapter(Applied).validate_python(record)
            one = _one(found, result.address)
            one.applied, one.audited = result, bool(line.get("audited", True))
            one.applied_at = Instant(found.last_ms, moment_of(line))
    elif "name" in line:
        _config(found, kind, line)
    elif kind is Line.RESTORED:
        for names in line["partitions"]:
            _one(found, _address(names)).in_order = True
    elif kind is Line.SEEN:
        for names in line["orders"]:
            one = _one(found, _address(names))
            one.seen, one.moved = (_order(names), moment_of(line)), True
    elif kind is Line.INTENT:
        _intent(found, line)
    elif kind is Line.ANSWER:
        _answer(found, line)
    else:
        raise ValueError(f"a second line {kind}")


def _intent(found: Journalled, line: Mapping[str, Any]) -> None:
    step = JournalStep(line["step"])
    for change in line["changes"]:
        one = _one(found, _address(change))
        if step in one.sent:
            one.uncertain.add(step)
        one.sent.add(step)
        one.stands = one.stands and step is JournalStep.ELECT
        if step is not JournalStep.RESTORE:
            one.by = _by(line.get("by"))
            one.applied, one.audited = None, True  # what the run before told of it is on record, and over
        if step is JournalStep.REORDER:
            one.moved_before, one.moved = one.moved, True
            one.order = _order(change)
            one.in_order = False
        if step is JournalStep.ELECT:
            one.elected_before, one.elected, one.in_order = one.elected, True, False


def _answer(found: Journalled, line: Mapping[str, Any]) -> None:
    step = JournalStep(line["step"])
    for names in line["answers"]:
        one = _one(found, _address(names))
        one.sent.discard(step)
        if names["error"] in UNCERTAIN:
            one.uncertain.add(step)
        elif step is JournalStep.REORDER and names["error"] == NO_ERROR:
            one.stands = not one.is_loose(JournalStep.RESTORE)
        elif step is JournalStep.ELECT and is_refusal(names["error"]):
            one.elected = one.elected_before
        elif step is JournalStep.REORDER and is_refusal(names["error"]):
            one.moved = one.moved_before
        elif step is JournalStep.RESTORE and names["error"] == NO_ERROR and not one.is_loose(JournalStep.REORDER):
            one.moved = False


def _config(found: Journalled, kind: Line, line: Mapping[str, Any]) -> None:
    topic, broker, name = key = (line["topic"], line.get("broker"), line["name"])
    known = found.configs.get(key)
    if kind is Line.INTENT and (known is None or (known.restored and not line["restores"])):
        # Written for another time: what is to come back is what stood there then.
        found.configs[key] = WrittenConfig(topic, name, old=line["old"], broker=broker)
    known = found.configs[key]
    if kind is Line.RESTORED:
        known.restored = True
    elif kind is Line.INTENT:
        known.send(line["new"], restores=bool(line["restores"]))
    elif kind is Line.ANSWER:
        known.answer(line["error"])


def _by(names: Mapping[str, Any] | None) -> tuple[Actor, str] | None:
    return None if names is None else (Actor(names["user"], names["host"], names["principal"]), str(names["command"]))


def _order(names: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(replica) for replica in names["replicas"])


def moment_of(line: Mapping[str, Any]) -> Moment:
    """When a line was written; older journals know the wall clock's time alone."""
    boot_id = line.get("boot_id")
    return UNKNOWN if boot_id is None else Moment(str(boot_id), int(line["boot_ms"]))


def _one(found: Journalled, address: TopicPartition) -> OnePartition:
    return found.partitions.setdefault(address, OnePartition())


def _address(names: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(str(names["topic"]), int(names["partition"]))
