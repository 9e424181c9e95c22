"""kelr shows and explains Kafka partitions that lost their leader (KIP-966).

The library that the commands stand on::

    from kelr import ConnectionSettings, LiveSource, decide_partitions, select

    with LiveSource(ConnectionSettings.read("kafka-1:9092")) as source:
        for page in decide_partitions(source, select(["orders"]), clock_ms=lambda: 0):
            for decision in page.decisions:
                print(decision.summary, decision.advice.text)

What would happen next, by the controller's rules (`kelr.simulation.SimulatedCluster` adds the logs)::

    from kelr import controller_state, events, handle, read_snapshot, rule_set

    state = controller_state(read_snapshot(path), rule_set("elr-4.3"))
    for change in handle(state, events.BrokerFenced(2)).changes:
        print(change.before, change.after)

Names are loaded when they are first used, so that importing kelr costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's, which every start of kelr would wait for before it takes Ctrl-C

if TYPE_CHECKING:
    from typing import Any

    from kelr.controller import (
        ControllerState,
        RuleSet,
        choose_rules,
        controller_state,
        events,
        handle,
        rule_set,
        snapshot_of,
    )
    from kelr.engine import (
        Pattern,
        PatternCache,
        PatternReader,
        Verdict,
        count_patterns,
        decide,
        decide_all,
        pattern_of,
        verdict_of,
        verdicts,
    )
    from kelr.engine.what_if.assumptions import Assumption, parse_assumptions
    from kelr.engine.what_if.imagine import Imagined, imagine
    from kelr.errors import ExitCode, KelrError
    from kelr.model import Decision, Selection, Situation, Snapshot, TopicPartition, select
    from kelr.sources.base import Source, take_snapshot
    from kelr.sources.connection import ConnectionSettings
    from kelr.sources.decisions import decide_partitions
    from kelr.sources.live import LiveSource
    from kelr.sources.memory import MemorySource
    from kelr.sources.metadata_log.log import MetadataLog, open_metadata_log
    from kelr.sources.metadata_log.replaying import Moment, read_moment
    from kelr.sources.metadata_log.source import MetadataLogSource
    from kelr.sources.side_by_side import decide_side_by_side
    from kelr.sources.snapshot_file import SnapshotFileSource, read_snapshot, save_snapshot, write_snapshot

__version__ = "0.1.0"

__all__ = [
    "Assumption",
    "ConnectionSettings",
    "ControllerState",
    "Decision",
    "ExitCode",
    "Imagined",
    "KelrError",
    "LiveSource",
    "MemorySource",
    "MetadataLog",
    "MetadataLogSource",
    "Moment",
    "Pattern",
    "PatternCache",
    "PatternReader",
    "RuleSet",
    "Selection",
    "Situation",
    "Snapshot",
    "SnapshotFileSource",
    "Source",
    "TopicPartition",
    "Verdict",
    "__version__",
    "choose_rules",
    "controller_state",
    "count_patterns",
    "decide",
    "decide_all",
    "decide_partitions",
    "decide_side_by_side",
    "events",
    "handle",
    "imagine",
    "open_metadata_log",
    "parse_assumptions",
    "pattern_of",
    "read_moment",
    "read_snapshot",
    "rule_set",
    "save_snapshot",
    "select",
    "snapshot_of",
    "take_snapshot",
    "verdict_of",
    "verdicts",
    "write_snapshot",
]

_HOMES = {
    "kelr.controller": (
        "ControllerState",
        "RuleSet",
        "choose_rules",
        "controller_state",
        "events",
        "handle",
        "rule_set",
        "snapshot_of",
    ),
    "kelr.engine": (
        "Pattern",
        "PatternCache",
        "PatternReader",
        "Verdict",
        "count_patterns",
        "decide",
        "decide_all",
        "pattern_of",
        "verdict_of",
        "verdicts",
    ),
    "kelr.engine.what_if.assumptions": ("Assumption", "parse_assumptions"),
    "kelr.engine.what_if.imagine": ("Imagined", "imagine"),
    "kelr.errors": ("ExitCode", "KelrError"),
    "kelr.model": ("Decision", "Selection", "Situation", "Snapshot", "TopicPartition", "select"),
    "kelr.sources.base": ("Source", "take_snapshot"),
    "kelr.sources.connection": ("ConnectionSettings",),
    "kelr.sources.decisions": ("decide_partitions",),
    "kelr.sources.live": ("LiveSource",),
    "kelr.sources.memory": ("MemorySource",),
    "kelr.sources.metadata_log.log": ("MetadataLog", "open_metadata_log"),
    "kelr.sources.metadata_log.replaying": ("Moment", "read_moment"),
    "kelr.sources.metadata_log.source": ("MetadataLogSource",),
    "kelr.sources.side_by_side": ("decide_side_by_side",),
    "kelr.sources.snapshot_file": ("SnapshotFileSource", "read_snapshot", "save_snapshot", "write_snapshot"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'kelr' has no attribute {name!r}")
