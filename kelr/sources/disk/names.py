"""The names in a broker's log directory: which of them is a replica, and which only looks like one.

Source: `LocalLog.parseTopicPartitionName`, `LogFileUtils`, `LogManager.loadLogs` of Apache Kafka.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from kelr.model import TopicPartition

METADATA_TOPIC = "__cluster_metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_NOT_LOGS = frozenset({"remote-log-index-cache"})
"""Directories that Kafka skips."""
_SUFFIXED = re.compile(r"(\S+)-([0-9]+)\.([^.\s]+)-(delete|future|stray)")
_CURRENT = re.compile(r"(.+)-([0-9]+)", re.DOTALL)
_LEGAL_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SEGMENT = re.compile(r"([0-9]{20})\.log")
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


class Kind(StrEnum):
    """What a directory in a log directory is to Kafka."""

    CURRENT = "current"
    """The replica itself."""
    FUTURE = "future"
    """A copy on its way to this log directory from another one of the same broker."""
    DELETED = "deleted"
    """A replica that Kafka is deleting."""
    STRAY = "stray"
    """A replica that Kafka has put aside: the topic was deleted, or the broker no longer holds this partition."""


@dataclass(frozen=True, slots=True)
class ReplicaName:
    """A directory name that holds, or held, a replica."""

    address: TopicPartition
    kind: Kind


def replica_name(name: str) -> ReplicaName | None:
    """What the name of a directory says; None where it names no replica (see `stops_kafka`)."""
    suffixed = _SUFFIXED.fullmatch(name)
    if suffixed is not None:
        kind = {"delete": Kind.DELETED, "future": Kind.FUTURE, "stray": Kind.STRAY}[suffixed[4]]
        return _named(suffixed[1], suffixed[2], kind)
    current = _CURRENT.fullmatch(name)
    return None if current is None else _named(current[1], current[2], Kind.CURRENT)


def _named(topic: str, partition: str, kind: Kind) -> ReplicaName | None:
    if _LEGAL_TOPIC.fullmatch(topic) is None or topic in {".", ".."} or int(partition) > _MAX_PARTITION:
        return None
    return ReplicaName(TopicPartition(topic, int(partition)), kind)


def stops_kafka(name: str) -> bool:
    """Whether a broker dies at its start of this directory's name, which it can take for no replica's: ``lost+found``
    at a mount point, for one."""
    return name not in _NOT_LOGS and replica_name(name) is None


def printable(text: str) -> str:
    """The text for a terminal or a file: a name on a disk may hold any bytes but two."""
    return "".join(character if character.isprintable() else "?" for character in text)


def segment_base(name: str) -> int | None:
    """The base offset that the name of a segment file gives; None where it is no segment."""
    match = _SEGMENT.fullmatch(name)
    if match is None:
        return None
    base = int(match[1])
    return base if base <= _MAX_OFFSET else None
