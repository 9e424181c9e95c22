"""Keys as Spark's rows have them, as the engine's values: patterns, cases, and what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kelr.controller import RuleSet
from kelr.engine.outages.case import OutageCase, case_of_first, case_of_pattern
from kelr.engine.patterns import Pattern
from kelr.engine.what_if.assumptions import Assumption
from kelr.fleet.assess.shapes import blow_of
from kelr.model import (
    BrokerStatus,
    ConfigSource,
    EpochEnd,
    LogAnswer,
    NotHeard,
    PartitionState,
    ReplicaLog,
    TopicConfig,
    Unheard,
)


@dataclass(frozen=True, slots=True)
class Hit:
    """What happens to the brokers of a pattern, by their places; nothing in the scenario ``now``."""

    blows: tuple[Assumption, ...]
    at_once: bool
    parts: tuple[tuple[Assumption, ...], ...] = ()
    """Of a scenario of two parts: what each of them is alone."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Partitions to which every outage does the same."""

    pattern: Pattern
    case: OutageCase


def kind_of_key(key: Mapping[str, Any], rules: Sequence[RuleSet]) -> Kind:
    """What a key (`kelr.fleet.assess.shapes.KEY`) says of the partition.

    Args:
        rules: the rule sets that keys name by their places.
    """
    statuses = tuple(map(BrokerStatus, key["statuses"]))
    pattern = Pattern(
        state=_state(key["state"], key["topic"]),
        statuses=statuses[: key["own"]],
        config=_config(key["config"]),
        first_partition_replicas=key["first_replicas"],
        logs=tuple(map(_log, key["logs"] or ())),
        elr_enabled=key["elr_enabled"],
        rules=rules[key["rules"]],
    )
    if key["is_first"]:
        return Kind(pattern, case_of_first(pattern))
    case = case_of_pattern(pattern)
    if key["first"] is not None:
        # As `beside_first` has it: the brokers that partition 0 alone names come behind the partition's own.
        case = replace(case, statuses=statuses, first=_state(key["first"], key["topic"]))
    return Kind(pattern, case)


def hit_of(row: Mapping[str, Any]) -> Hit:
    """What a hit of a key says."""
    parts = () if row["first"] is None else (_blows(row["first"]), _blows(row["second"]))
    return Hit(_blows(row["blows"]), bool(row["at_once"]), parts)


def _blows(codes: Iterable[int]) -> tuple[Assumption, ...]:
    return tuple(map(blow_of, codes))


def _state(row: Mapping[str, Any], topic: str) -> PartitionState:
    def known(group: Sequence[int] | None) -> tuple[int, ...] | None:
        return None if group is None else tuple(group)

    return PartitionState(
        topic=topic,
        partition=0,
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        replicas=tuple(row["replicas"]),
        isr=tuple(row["isr"]),
        elr=known(row["elr"]),
        last_known_elr=known(row["last_known_elr"]),
        offline_replicas=known(row["offline_replicas"]),
        adding=known(row["adding"]),
        removing=known(row["removing"]),
        recovering=row["recovering"],
    )


def _config(row: Mapping[str, Any]) -> TopicConfig:
    return TopicConfig(
        min_insync_replicas=row["min_isr"],
        min_insync_replicas_source=ConfigSource(row["min_isr_source"]),
        unclean_leader_election=row["unclean"],
        unclean_leader_election_source=ConfigSource(row["unclean_source"]),
        cleanup_policy=None if row["cleanup"] is None else tuple(row["cleanup"]),
        recovery_strategy=row["strategy"],
    )


def _log(row: Mapping[str, Any]) -> LogAnswer:
    if row["unheard"] is not None:
        return NotHeard(row["replica"], Unheard(row["unheard"]))
    lineage = row["lineage"]
    return ReplicaLog(
        replica=row["replica"],
        log_end=row["log_end"],
        last_epoch=row["last_epoch"],
        current_leader_epoch=row["current_leader_epoch"],
        high_watermark=row["high_watermark"],
        log_start=row["log_start"],
        lineage=None if lineage is None else tuple(EpochEnd(one["epoch"], one["end_offset"]) for one in lineage),
        source=row["how"],
        last_stable_offset=row["last_stable_offset"],
        unclean_shutdown=None if row["clean_shutdown"] is None else not row["clean_shutdown"],
        saved_high_watermark=row["saved_high_watermark"],
        saved_epoch=row["saved_epoch"],
        may_have_held_more=bool(row["may_have_held_more"]),
    )
