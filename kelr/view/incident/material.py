"""What a report on an incident is made of: what there was to be read, and what there was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kelr.engine import is_leaderless_or_unsafe
from kelr.model import Cluster, PartitionState, SavedLog, TopicConfig, TopicError, TopicPartition
from kelr.model.audit import AuditRecord
from kelr.model.plan import Plan
from kelr.replay.history import Entry, PartitionSummary
from kelr.view.explain_columns import Explained


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the cluster: live, or as a snapshot or a metadata log has it."""

    name: str
    """Where it comes from."""
    taken_at_ms: int
    cluster: Cluster
    rows: Mapping[TopicPartition, Explained]
    """The partitions that the report is about, as far as they were found."""
    errors: tuple[TopicError, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """As far as they are known."""
    configs: Mapping[str, TopicConfig] = field(default_factory=dict)
    saw_any: bool = True
    """Whether any partition was shown at all: brokers leave out what a principal may not describe."""

    @property
    def in_trouble(self) -> tuple[TopicPartition, ...]:
        """Those without a live leader, or under min ISR, sorted."""
        return tuple(sorted(at for at, row in self.rows.items() if row.decision.situation.value != "healthy"))

    @property
    def leaderless(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(at for at, row in self.rows.items() if row.decision.leader is None))


class Light(StrEnum):
    """How a partition stood for a while."""

    LED = "led"
    ALONE = "alone"
    """Led, and of several replicas the leader alone was in sync."""
    LEADERLESS = "leaderless"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Turn:
    """A partition began to stand in another way, or another replica was elected."""

    at_ms: int
    light: Light
    elected: int | None = None
    """Who was elected at this moment; None: nobody."""
    clean: bool | None = None
    """Whether the elected was sure to hold all that was committed; None: nobody was elected, or not told."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a metadata log tells."""

    name: str
    begins_ms: int
    """When the log, or the part of it that was asked for, begins."""
    whole_since_ms: int | None
    """Since when nothing is left out; None: since the cluster's first record. A checkpoint tells how all stood, and
    nothing of what was before."""
    ends_ms: int
    to_its_end: bool
    """Whether it was read to the end that it had then, and not to a moment that was asked for, or to damage."""
    elr_on: bool
    """Whether ELR was on all the time; then min ISR is on record, too."""
    at_end: Callable[[TopicPartition], PartitionState | None]
    """How a partition stood where the log ends; None where there was none."""
    ends_offset: int
    entries: tuple[Entry, ...]
    """What happened, grouped by cause, in order; the least telling are left out where there are very many."""
    entries_left_out: int
    summaries: Mapping[TopicPartition, PartitionSummary]
    """Of partitions without a leader, or under min ISR, at some time, or with an election that is not sure to have been
    clean."""
    turns: Mapping[TopicPartition, Sequence[Turn]]
    """How those stood, one after the other; the first may be from before the beginning."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run of kelr that was cut short: something may be left to put right."""

    journal: str
    command: str
    who: str
    begun_ms: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Done:
    """What kelr did, by its own records on this machine."""

    file: str
    rows: tuple[AuditRecord, ...]
    """Oldest first."""
    open_runs: tuple[OpenRun, ...] = ()
    journals: int = 0
    """How many journals of the cluster there are."""
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = field(default_factory=dict)
    """What rescue files that are known hold."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that was given."""

    file: str
    plan: Plan
    plan_id: str

    @property
    def in_trouble(self) -> frozenset[TopicPartition]:
        """Partitions that it has an election for, or that needed something else when it was made."""
        others = (one.address for one in self.plan.not_planned if is_leaderless_or_unsafe(one.situation))
        return frozenset([*(one.address for one in self.plan.elections), *others])

    @property
    def leaderless(self) -> frozenset[TopicPartition]:
        """Those that nobody led when it was made."""
        elected = (one.address for one in self.plan.elections if one.evidence.leader is None)
        others = (one for one in self.plan.not_planned if is_leaderless_or_unsafe(one.situation))
        return frozenset([*elected, *(one.address for one in others if one.leader is None)])


@dataclass(frozen=True, slots=True)
class Gap:
    """What the report cannot tell, and the command or option after which it can."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that a report is made of."""

    title: str
    made_at_ms: int
    version: str
    """Of kelr."""
    command: str
    """The command line that made it."""
    partitions: tuple[TopicPartition, ...]
    """What the report is about, sorted."""
    now: Look
    """The newest look."""
    named: bool = False
    """Whether somebody named the partitions; else they are those that were in trouble, or were changed."""
    before: Look | None = None
    """An earlier look, at the incident itself."""
    told: Told | None = None
    done: Done | None = None
    planned: Planned | None = None
    gaps: tuple[Gap, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    """Whole command lines by what they are for: ``explain``, ``history``, ``log``, ``verify``, ``csv``."""
    advice: Mapping[TopicPartition, str] = field(default_factory=dict)
    """The advice's command for partitions that need one, whole."""
