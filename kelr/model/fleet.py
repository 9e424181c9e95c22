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


@dataclass(frozen=True, slots=True)
class TroubleCounts:
    """How many partitions of a cluster stand how, where its newest input ends."""

    partitions: int
    leaderless: int
    elr_only: int
    under_min_isr: int
    min_isr_unknown: int
    last_replica: int


@dataclass(frozen=True, slots=True)
class ClusterTrend:
    """How a cluster stands, and how it stood after an earlier run."""

    cluster: str
    name: str
    now: TroubleCounts
    before: TroubleCounts | None
    """None: nothing is compared, or the cluster was not in the lake then."""


@dataclass(frozen=True, slots=True)
class FleetRun:
    """What ``kelr fleet run`` did."""

    lake: str
    version: int
    done: tuple[str, ...]
    """The steps that had anything to do, in order."""
    clusters: tuple[ClusterTrend, ...]
    new_files: int
    quarantined: tuple[QuarantinedFile, ...]
    findings: int
    """What there is to fix."""
    written: tuple[str, ...]
    """Files of the report."""
    compared_ms: int | None
    """When the run had ended that this one is compared with, in milliseconds since 1970."""
    unseen: tuple[str, ...] = ()
    """What was not looked at; sentences."""
