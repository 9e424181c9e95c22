"""What one record of the metadata log did: before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kelr.model import PartitionState
from kelr.replay.records import BrokerRegistered


@dataclass(frozen=True, slots=True)
class BrokerOnRecord:
    """A broker as the metadata log has it."""

    registration: BrokerRegistered
    """The record of its incarnation; `fenced` and `in_controlled_shutdown` there are those of the moment."""
    fenced: bool
    in_controlled_shutdown: bool
    registered_at_offset: int
    registered_at_ms: int | None
    """None where a checkpoint told of it: that was later."""
    directories: tuple[str, ...] = ()
    registered_by_ms: int | None = None
    """`registered_at_ms`; where a checkpoint told of it, that one's time."""
    cordoned_directories: tuple[str, ...] | None = None
    """Those that take no new replica (KIP-1066); None: nobody told."""

    @property
    def active(self) -> bool:
        """Whether its replicas may lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def cordoned(self) -> bool:
        """Whether all its log directories are cordoned (BrokerRegistration.hasUncordonedDirs says the opposite)."""
        return bool(self.directories) and {*self.directories} <= {*(self.cordoned_directories or ())}


@dataclass(frozen=True, slots=True)
class At:
    """A place in the metadata log."""

    offset: int
    epoch: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionMoved:
    """A partition was made (`before` is None), changed, or deleted with its topic (`after` is None).

    `by` is the name of the record's kind: ``PartitionRecord``, ``PartitionChangeRecord``, ``ClearElrRecord`` or
    ``RemoveTopicRecord``.
    """

    at: At
    before: PartitionState | None
    after: PartitionState | None
    by: str


@dataclass(frozen=True, slots=True)
class BrokerMoved:
    """A broker registered, was fenced or unfenced, began to shut down, lost a directory, or was unregistered."""

    at: At
    broker: int
    before: BrokerOnRecord | None
    after: BrokerOnRecord | None


@dataclass(frozen=True, slots=True)
class ConfigMoved:
    """A config was written or deleted (`after` is None)."""

    at: At
    resource_type: int
    resource: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FeatureMoved:
    """A feature has another level."""

    at: At
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ControllerMoved:
    """Another controller leads the quorum."""

    at: At
    controller: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """A checkpoint begins: everything that was known is forgotten, and what follows is told whole."""

    at: At


Change: TypeAlias = PartitionMoved | BrokerMoved | ConfigMoved | FeatureMoved | ControllerMoved | Restarted
