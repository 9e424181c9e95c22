"""A line of the audit log: who changed what, when, with which consent and which result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class AuditWhat(StrEnum):
    """What kind of change a line tells of."""

    ELECTION = "election"
    """A planned election, with the reordering around it."""
    RESTORE = "restore"
    """A partition's old order, given again by undo or resume."""
    HOLD = "hold"
    """A topic's ELR and LastKnownELR cleared through its min.insync.replicas."""
    CONFIG = "config"
    """A topic's config, written back by undo or resume; or a broker's that a run had written for a while."""
    RESCUE = "rescue"
    """Saved records, produced again."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One line."""

    at_ms: int
    """Milliseconds since 1970 UTC."""
    what: AuditWhat
    command: str
    """The command, such as ``recover apply``."""
    topic: str
    """Of a broker's config ``broker 3``, which no topic can be called."""
    partition: int | None
    """None where a whole topic, or a broker, was changed."""
    cluster_id: str | None
    user: str
    host: str
    principal: str | None
    result: str
    """`kelr.model.plan.ElectionResult` of an election; ``done``, ``refused`` or ``failed`` of anything else."""
    version: str = ""
    """Of kelr; empty: not recorded."""
    plan_id: str | None = None
    journal: str | None = None
    """The journal's file name. A line can be there twice where kelr was killed right after it: same journal, partition
    and result."""
    election: str | None = None
    method: str | None = None
    wanted: int | None = None
    """The replica that was to lead."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """Leader, leader epoch, ISR, ELR, replicas or config from before."""
    after: Mapping[str, Any] = field(default_factory=dict)
    evidence: Sequence[Mapping[str, Any]] = ()
    """What each replica's log was known to hold."""
    loss: Mapping[str, Any] | None = None
    """The loss that was shown: grade, and bounds as [at least, at most]."""
    consent: Mapping[str, Any] = field(default_factory=dict)
    """What was needed, and what was given: ``needed``, ``yes``, ``accept_loss``; and who gave it: ``user``, ``host``,
    ``principal``."""
    force_reason: str | None = None
    error: str | None = None
    """Kafka's name of an error."""
    text: str = ""
    asked: bool | None = None
    """Of an election: whether it was asked for, and may have been carried out; None: not recorded."""
    boot_id: str | None = None
    boot_ms: int | None = None
    """Of an election: the same time as `at_ms`, by a clock that nobody sets (`kelr.sources.ground.Moment`)."""

    @property
    def when(self) -> str:
        """The time in ISO 8601, UTC, with milliseconds."""
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
