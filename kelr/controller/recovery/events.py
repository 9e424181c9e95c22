"""What the Unclean Recovery Manager is told, what it asks for, and what it refuses: frozen values.

Source: KIP-966, "Unclean Recovery Manager", "Broker Request Sender", ElectLeaders v3, GetReplicaLogInfo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kelr.controller.reach import NONE
from kelr.controller.recovery.rules import LogInfo
from kelr.model import ElectionType, TopicPartition


@dataclass(frozen=True, slots=True)
class LogInfoRequest:
    """GetReplicaLogInfo to one broker."""

    id: int
    """A number that no other request of this manager has."""
    broker: int
    partitions: tuple[TopicPartition, ...]
    """Sorted; no more than the limit of a request."""


@dataclass(frozen=True, slots=True)
class LogInfoEntry:
    """The answer for one partition (PartitionLogInfo)."""

    log_end: int
    last_epoch: int | None
    """Last written leader epoch; None for a log that never held a record."""
    current_leader_epoch: int
    """The partition's leader epoch as the broker knows it."""
    error: str = NONE
    """Kafka's name of the error; the other fields mean nothing then."""

    @property
    def log(self) -> LogInfo:
        return LogInfo(self.last_epoch, self.log_end)


@dataclass(frozen=True, slots=True)
class LogInfoAnswered:
    """A broker answered GetReplicaLogInfo."""

    broker: int
    broker_epoch: int
    """The epoch of the broker's incarnation that answered."""
    entries: Mapping[TopicPartition, LogInfoEntry]
    request: int | None = None
    """The request that it answers, whose other partitions are asked again then. None for whatever is outstanding: then
    nothing can tell an answer about a directory, or a topic of the same name, that is gone."""


@dataclass(frozen=True, slots=True)
class LogInfoFailed:
    """No answer will come: network error, or the sender's retries ran out. The next round asks again."""

    broker: int
    request: int | None = None
    """The request that failed; None for all that the broker owes."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """It is this late now."""

    now_ms: int
    """In milliseconds since any one moment; never less than before."""


@dataclass(frozen=True, slots=True)
class ControllerFailedOver:
    """Another controller took over: it has the metadata log, and nothing of what the manager knew."""


@dataclass(frozen=True, slots=True)
class ManualRecovery:
    """ElectLeaders v3 with one of the types that the KIP adds, for partitions without leader."""

    election: ElectionType
    """DESIGNATION, LONGEST_LOG_BALANCED or LONGEST_LOG_AGGRESSIVE."""
    partitions: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """With DESIGNATION: the desired leader of each; otherwise None."""
    timeout_ms: int = 60_000
    """How long the request waits for logs (TimeoutMs); then it is given up, not what the topic's strategy does."""


RecoveryEvent: TypeAlias = LogInfoAnswered | LogInfoFailed | TimePassed | ControllerFailedOver | ManualRecovery


class Refusal(StrEnum):
    """Why an answer was not used."""

    NO_TASK = "no-task"
    """The partition is not under recovery (any more)."""
    NOT_A_REPLICA = "not-a-replica"
    BROKER_EPOCH = "broker-epoch"
    """It is not the epoch of the registration: the broker rebooted since, or was never heard of."""
    OLD_REQUEST = "old-request"
    """Not the last request that asked for it: it may tell of a log directory that failed since, or of a deleted topic
    of the same name (Kafka tells those apart by TopicId)."""
    LEADER_EPOCH = "leader-epoch"
    """The broker knows another leader epoch than the controller: its metadata cache is stale."""
    ERROR = "error"
    """The broker could not tell."""
    CONTRADICTS = "contradicts"
    """The same incarnation has told of another log, though a log without a leader to follow does not change."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that was not used, or that part of it."""

    broker: int
    address: TopicPartition
    reason: Refusal
    detail: str = ""
    """The two epochs, requests or logs, or the error's name."""
