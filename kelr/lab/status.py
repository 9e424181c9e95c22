"""What a lab is doing, as values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node of the lab."""

    node: int
    name: str
    port: int
    rack: str | None
    pid: int | None
    """None where the process does not run."""
    fenced: bool | None
    """As the cluster says; None where it is not registered, or nobody could be asked."""


@dataclass(frozen=True, slots=True)
class LabStatus:
    """The lab as it is now."""

    directory: Path
    kafka: str
    cluster_id: str
    bootstrap_servers: str
    elr: bool
    min_isr: int
    ready: bool
    """False where the lab never came up whole: killed while starting, or starting now."""
    nodes: tuple[NodeStatus, ...]
