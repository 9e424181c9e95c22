"""The history that a metadata log tells: what happened to partitions and brokers, and why; pure."""

from kelr.replay.history.entries import (
    BrokerEntry,
    BrokerEvent,
    Cause,
    CauseKind,
    Certainty,
    ClusterEntry,
    ClusterEvent,
    ElectedAs,
    Election,
    Entry,
    PartitionEntry,
    PartitionsEntry,
    PartitionSummary,
    ReassignmentStep,
    Restart,
    Span,
    Trouble,
)
from kelr.replay.history.telling import History
from kelr.replay.history.window import Carried, Interest, Moment, Window, grouped

__all__ = [
    "BrokerEntry",
    "BrokerEvent",
    "Carried",
    "Cause",
    "CauseKind",
    "Certainty",
    "ClusterEntry",
    "ClusterEvent",
    "ElectedAs",
    "Election",
    "Entry",
    "History",
    "Interest",
    "Moment",
    "PartitionEntry",
    "PartitionSummary",
    "PartitionsEntry",
    "ReassignmentStep",
    "Restart",
    "Span",
    "Trouble",
    "Window",
    "grouped",
]
