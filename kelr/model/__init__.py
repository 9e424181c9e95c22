"""kelr's words as types: partitions, brokers, logs, snapshots, decisions. Frozen values, no I/O, no client library.

Modules are loaded when a name of theirs is first asked for: making the classes of decisions and plans takes longer than
reading a small cluster, and `describe` makes neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelr.model.cluster import (
        ELR_FEATURE,
        LOG_INFO_FEATURE,
        METADATA_FEATURE,
        RECOVERY_FEATURE,
        Broker,
        BrokerStatus,
        Cluster,
        ConfigSource,
        Features,
        TopicConfig,
    )
    from kelr.model.decision import (
        LOG_TYPES,
        Advice,
        AdviceAction,
        Bounds,
        Candidate,
        Damage,
        DamageKind,
        Decision,
        ElectedBy,
        ElectionType,
        Forecast,
        Grade,
        KeptOut,
        Loss,
        Outcome,
        Step,
        Truncation,
        Unsaved,
        parse_election_type,
    )
    from kelr.model.logs import LOG_DIRECTORY, SAVED, EpochEnd, LogAnswer, NotHeard, ReplicaLog, Unheard
    from kelr.model.partition import PartitionState, TopicPartition
    from kelr.model.plan import (
        Alternative,
        Applied,
        Check,
        Consent,
        Difference,
        Ended,
        Evidence,
        Finding,
        HoldDown,
        HoldReason,
        LogEvidence,
        Method,
        NotPlanned,
        Passed,
        Plan,
        PlannedElection,
        RescueStep,
        Unplanned,
        Wish,
    )
    from kelr.model.quorum import RecoveryQuorum
    from kelr.model.situation import WORST_FIRST, Situation
    from kelr.model.snapshot import RecordedElection, Snapshot
    from kelr.model.target import Selection, Target, parse_target, select
    from kelr.model.topic_error import TopicError

__all__ = [
    "ELR_FEATURE",
    "LOG_DIRECTORY",
    "LOG_INFO_FEATURE",
    "LOG_TYPES",
    "METADATA_FEATURE",
    "RECOVERY_FEATURE",
    "SAVED",
    "WORST_FIRST",
    "Advice",
    "AdviceAction",
    "Alternative",
    "Applied",
    "Bounds",
    "Broker",
    "BrokerStatus",
    "Candidate",
    "Check",
    "Cluster",
    "ConfigSource",
    "Consent",
    "Damage",
    "DamageKind",
    "Decision",
    "Difference",
    "ElectedBy",
    "ElectionType",
    "Ended",
    "EpochEnd",
    "Evidence",
    "Features",
    "Finding",
    "Forecast",
    "Grade",
    "HoldDown",
    "HoldReason",
    "KeptOut",
    "LogAnswer",
    "LogEvidence",
    "Loss",
    "Method",
    "NotHeard",
    "NotPlanned",
    "Outcome",
    "PartitionState",
    "Passed",
    "Plan",
    "PlannedElection",
    "RecordedElection",
    "RecoveryQuorum",
    "ReplicaLog",
    "RescueStep",
    "Selection",
    "Situation",
    "Snapshot",
    "Step",
    "Target",
    "TopicConfig",
    "TopicError",
    "TopicPartition",
    "Truncation",
    "Unheard",
    "Unplanned",
    "Unsaved",
    "Wish",
    "parse_election_type",
    "parse_target",
    "select",
]

_HOMES = {
    "cluster": (
        "ELR_FEATURE",
        "LOG_INFO_FEATURE",
        "RECOVERY_FEATURE",
        "METADATA_FEATURE",
        "Broker",
        "BrokerStatus",
        "Cluster",
        "ConfigSource",
        "Features",
        "TopicConfig",
    ),
    "decision": (
        "LOG_TYPES",
        "Advice",
        "AdviceAction",
        "Bounds",
        "Candidate",
        "Damage",
        "DamageKind",
        "Decision",
        "ElectedBy",
        "ElectionType",
        "Forecast",
        "Grade",
        "KeptOut",
        "Loss",
        "Outcome",
        "Step",
        "Truncation",
        "Unsaved",
        "parse_election_type",
    ),
    "logs": ("LOG_DIRECTORY", "SAVED", "EpochEnd", "LogAnswer", "NotHeard", "ReplicaLog", "Unheard"),
    "partition": ("PartitionState", "TopicPartition"),
    "plan": (
        "Alternative",
        "Applied",
        "Check",
        "Consent",
        "Difference",
        "Ended",
        "Evidence",
        "Finding",
        "HoldDown",
        "HoldReason",
        "LogEvidence",
        "Method",
        "NotPlanned",
        "Passed",
        "Plan",
        "PlannedElection",
        "RescueStep",
        "Unplanned",
        "Wish",
    ),
    "quorum": ("RecoveryQuorum",),
    "situation": ("WORST_FIRST", "Situation"),
    "snapshot": ("RecordedElection", "Snapshot"),
    "target": ("Selection", "Target", "parse_target", "select"),
    "topic_error": ("TopicError",),
}
_HOME = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found
