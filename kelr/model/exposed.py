"""What ``kelr fleet exposure`` shows: how long the partitions of one name stood in which trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TroubleTime:
    """One trouble over the whole window, of all partitions of a name together."""

    partitions: int
    spells: int
    seconds: float
    longest_seconds: float
    unknown_seconds: float
    """Time for which nobody can tell whether they stood in it."""
    share: float | None
    """Of the time that the partitions were there; None where there was none."""
    unknown_share: float | None
    lasting: int
    """Spells that have not ended."""
    lasting_since_ms: int | None
    unsure_spells: int
    """Spells that began or ended at a moment that is not on record."""


@dataclass(frozen=True, slots=True)
class ExposedName:
    """A cluster, topic, broker or rack, and the troubles of its partitions."""

    cluster: str
    cluster_name: str | None
    dimension: str
    name: str
    partition_seconds: float
    troubles: Mapping[str, TroubleTime]
    over: tuple[str, ...] = ()
    """Troubles that lasted longer than their budget, or may have."""


@dataclass(frozen=True, slots=True)
class FleetExposure:
    """What a run found besides the names that it shows."""

    clusters: int
    observed: int
    """Clusters of which there are snapshots alone."""
    names: int
    """How many names there are, shown or not."""
    over: int
    """How many of them are over a budget."""
    unclean_elections: int
    unknown_elections: int
    """Elections of which it is not told whether they were unclean."""
    again: int
    """Brokers that came back after an unclean shutdown more than once."""
    settings: int
    """Risky settings."""
