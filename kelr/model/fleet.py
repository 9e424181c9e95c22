"""What the steps of ``kelr fleet`` say of themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input that was not taken, or not all of it."""

    path: str
    cluster: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class IngestedCluster:
    """What a run took of one cluster."""

    cluster: str
    name: str | None
    """What it is called in reports."""
    files: int
    """Files that were new and are told, or stand beside one that is."""
    records: int
    """Records of the metadata log that were told."""
    partitions: int
    """Partitions that there are after it."""
    states: int
    """Rows of partition_states that were added."""
    elections: int
    log_info: int
    """Replicas' logs that were read, or asked for."""
    begun_ms: int | None
    """When the first of it was written or seen, in milliseconds since 1970."""
    ended_ms: int | None
    quarantined: tuple[QuarantinedFile, ...] = ()
    notes: tuple[str, ...] = ()
    """What is odd, a sentence each."""


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What a run of ``kelr fleet ingest`` did."""

    lake: str
    version: int
    """Of the lake, after it."""
    changed: bool
    """Whether there was anything new."""
    clusters: tuple[IngestedCluster, ...]
    nowhere: tuple[QuarantinedFile, ...]
    """Inputs in quarantine whose cluster is not known."""
    new_files: int
    known_files: int
    """Files that an earlier run had taken."""

    @property
    def quarantined(self) -> tuple[QuarantinedFile, ...]:
        """All of them."""
        return (*self.nowhere, *(file for cluster in self.clusters for file in cluster.quarantined))
