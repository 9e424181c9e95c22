"""A plan file's content: strict models of what is on disk, and the way to and from kelr's values.

The format is described in docs/plans.md. A field that is not known, is missing or out of range is an error: whoever
adds a field raises `FORMAT_VERSION`, so that an older kelr never carries out half of what was planned. (Until the first
release of kelr version 1 may still grow by optional fields.)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kelr.model import (
    Advice,
    AdviceAction,
    Alternative,
    Bounds,
    Consent,
    Damage,
    DamageKind,
    ElectedBy,
    ElectionType,
    Evidence,
    Grade,
    HoldDown,
    HoldReason,
    LogEvidence,
    Loss,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    RescueStep,
    Situation,
    Truncation,
    Unplanned,
)
from kelr.model.plan import SPARSE
from kelr.recovery.times import from_iso, to_iso
from kelr.sources.snapshot_lines import Int32, Offset, Replicas, Topic

FORMAT = "kelr-plan"
FORMAT_VERSION = 1
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _unique(ids: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(ids)) != len(ids):
        raise ValueError("a broker is listed twice")
    return ids


def _harmless(text: str) -> str:
    """Text is shown on terminals: nothing in it may move the cursor or turn the direction of what follows."""
    if any((unicodedata.category(char) == "Cc" and char not in "\n\t") or char in _BIDI for char in text):
        raise ValueError("has control characters")
    return text


def _moment(text: str) -> str:
    from_iso(text)
    return text


Ids = Annotated[
    tuple[Annotated[int, Field(ge=-1, le=2**31 - 1)], ...], Field(max_length=10_000), AfterValidator(_unique)
]
"""Brokers; Kafka 4.0 can seat -1, "no leader", in the sets."""
Text = Annotated[str, Field(max_length=10_000), AfterValidator(_harmless)]
Moment = Annotated[str, Field(max_length=40), AfterValidator(_moment)]
Range = tuple[Offset, Offset]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Hex12 = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


class _Line(BaseModel):
    """One value of kelr's model, with the same fields; moments, which end in ``_ms`` there, are ISO 8601 here."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    _made: ClassVar[type[Any]]
    _own: ClassVar[frozenset[str]] = frozenset()
    """Fields of the file alone."""

    def value(self) -> Any:
        """The value that these fields describe."""
        fields = {}
        for name in type(self).model_fields:
            if name not in self._own:
                held = getattr(self, name)
                is_moment = name.endswith("_at")
                key = f"{name}_ms" if is_moment else name
                fields[key] = from_iso(held) if is_moment and held is not None else _value(held)
        return self._made(**fields)


def _value(held: Any) -> Any:
    if isinstance(held, _Line):
        return held.value()
    return tuple(_value(one) for one in held) if isinstance(held, tuple) else held


def _lines(held: Any) -> Iterator[_Line]:
    """All values in a file's field."""
    if isinstance(held, _Line):
        yield held
        for name in held.model_fields_set:
            yield from _lines(getattr(held, name))
    for one in held if isinstance(held, tuple) else ():
        yield from _lines(one)


class BoundsLine(_Line):
    """At least and at most so many offsets."""

    _made = Bounds
    at_least: Offset
    at_most: Offset | None


class TruncationLine(_Line):
    """What a replica cuts off when it follows the elected one."""

    _made = Truncation
    replica: Int32
    from_offset: Offset
    offsets: Offset


class LossLine(_Line):
    """What an election loses, and how certain that is."""

    _made = Loss
    grade: Grade
    committed: BoundsLine | None
    uncommitted: BoundsLine | None
    total: BoundsLine | None
    unheard: Ids
    behind_best: Offset | None
    best: Int32 | None
    agrees_to: Offset | None
    committed_ranges: tuple[Range, ...]
    gone_ranges: tuple[Range, ...] = ()
    lost_data: Ids = ()
    may_have_lost: Ids = ()
    contradictory: bool = False
    lost_ranges: tuple[Range, ...]
    truncations: tuple[TruncationLine, ...]
    reason: Text


class LogLine(_Line):
    """A replica's log as it was heard, or why it was not."""

    _made = LogEvidence
    replica: Int32
    log_end: Offset | None
    last_epoch: Int32 | None
    high_watermark: Offset | None
    log_start: Offset | None
    broker_epoch: Offset | None
    source: Text | None
    read_at: Moment | None
    unheard: Text | None


class EvidenceLine(_Line):
    """What the cluster said when the plan was made; the fences hold the present against it."""

    _made = Evidence
    situation: Situation
    leader: Int32 | None
    leader_epoch: Int32
    replicas: Replicas
    isr: Ids
    elr: Ids | None
    last_known_elr: Ids | None
    adding: Ids | None
    removing: Ids | None
    min_isr: Int32 | None
    unclean_leader_election: bool | None
    live: Ids
    logs: tuple[LogLine, ...]


class AlternativeLine(_Line):
    """What else could be elected, and what that loses."""

    _made = Alternative
    election: ElectionType
    elect: Int32 | None
    loss: LossLine | None
    note: Text
    start: Int32 | None = None
    leader: Int32 | None = None
    rescue: tuple[Text, ...] = ()


class HoldLine(_Line):
    """A broker that stays down until the election is done."""

    _made = HoldDown
    broker: Int32
    reason: HoldReason
    text: Text


class RescueLine(_Line):
    """Records that can be saved before the election."""

    _made = RescueStep
    replica: Int32
    from_offset: Offset
    to_offset: Offset
    reachable: bool


class DamageLine(_Line):
    """What an election does beside losing records."""

    _made = Damage
    kind: DamageKind
    text: Text
    afterwards: Text


class AdviceLine(_Line):
    """What kelr advised, where somebody asked for something else."""

    _made = Advice
    action: AdviceAction
    text: Text
    replica: Int32 | None
    alternative: Text
    until: Text
    command: tuple[Text, ...]
    designate: Int32 | None
    elect: tuple[Text, ...]
    rescue: tuple[Text, ...]
    keep_down: Ids = ()
    start: Ids = ()
    stop: Ids = ()
    stock: Text = ""


class ElectionLine(_Line):
    """One planned election, with the hash that tells whether somebody has edited it."""

    _made = PlannedElection
    _own = frozenset({"digest"})
    topic: Topic
    partition: Int32
    topic_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22}$")] | None
    election: ElectionType
    method: Method
    elect: Int32
    order: Replicas
    elected_by: ElectedBy
    reason: Text
    loss: LossLine
    consent: Consent
    evidence: EvidenceLine
    recommended: bool
    minimal_replicas: Annotated[int, Field(ge=1, le=2**31 - 1)] | None
    alternatives: tuple[AlternativeLine, ...]
    hold: tuple[HoldLine, ...]
    rescue: tuple[RescueLine, ...]
    damage: tuple[DamageLine, ...]
    warnings: tuple[Text, ...]
    against: AdviceLine | None = None
    uncordons: Ids = ()
    digest: Hex12


class NotPlannedLine(_Line):
    """A partition without an election, and why."""

    _made = NotPlanned
    topic: Topic
    partition: Int32
    why: Unplanned
    situation: Situation
    reason: Text
    leader: Int32 | None
    action: AdviceAction | None
    brokers: Ids
    until: Text
    command: tuple[Text, ...]
    rescue: tuple[Text, ...] = ()
    keep_down: Ids = ()
    stop: Ids = ()
    stock: Text = ""
    alternatives: tuple[AlternativeLine, ...] = ()


class PlanLine(_Line):
    """The whole file."""

    _made = Plan
    _own = frozenset({"format", "version", "plan_id", "sha256", "signed_elections"})
    format: Literal["kelr-plan"]
    version: Literal[1]
    plan_id: Hex12
    sha256: Hex64
    signed_elections: Offset
    cluster_id: Text | None
    created_at: Moment
    expires_at: Moment
    rules: Text
    made_by: Text
    elections: tuple[ElectionLine, ...]
    not_planned: tuple[NotPlannedLine, ...]

    def value(self) -> Plan:
        """The plan, with what the file lacks."""
        given, known = set[str](), set[str]()
        for line in _lines(self):
            kind = line._made.__name__
            given.update(f"{kind}.{name}" for name in line.model_fields_set)
            sparse = {field.name for field in fields(line._made) if field.metadata.get(SPARSE)}
            known.update(f"{kind}.{name}" for name in type(line).model_fields if name not in sparse)
        plan: Plan = super().value()
        return replace(plan, lacks=tuple(sorted(known - given)))


FIELDS = frozenset(name for line in _Line.__subclasses__() for name in line.model_fields)
"""The names of all fields there are."""


def with_moments(content: Any) -> Any:
    """A plan's `content_of` as a document: fields that end in ``_at_ms`` as ISO 8601 without the ``_ms``."""
    if isinstance(content, dict):
        found = {}
        for key, held in content.items():
            if key.endswith("_at_ms"):
                found[key.removesuffix("_ms")] = None if held is None else to_iso(held)
            else:
                found[key] = with_moments(held)
        return found
    return [with_moments(one) for one in content] if isinstance(content, (list, tuple)) else content
