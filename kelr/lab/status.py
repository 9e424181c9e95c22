"""What a lab is doing, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    paused: bool = False
    """Whether its process stands still."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a simulated lab is besides: its rules, its time, and what was done to it."""

    rules: str
    """The rule set that its controller runs."""
    metrics_endpoint: str | None
    """HOST:PORT of its active controller's gauges; None for a lab of an older kelr."""
    virtual_clock: bool
    now_ms: int | None
    """Its time, in milliseconds since 1970 UTC; None where its process has ended."""
    severed: tuple[tuple[int, int], ...] = ()
    """Pairs of nodes that do not reach each other."""
    faults: tuple[Mapping[str, Any], ...] = ()
    """Rules for what goes wrong, the first that fits a request first."""
    denied: tuple[Mapping[str, Any], ...] = ()
    """What clients may not do."""
    assumptions: tuple[str, ...] = ()
    """What the snapshot that it was made from does not tell, and was assumed."""
    broken_handlers: tuple[str, ...] = ()
    """Errors of the simulation itself; clients saw UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True)
class LabStatus:
    """The lab as it is now."""

    directory: Path
    kafka: str | None
    """None for a simulated lab."""
    cluster_id: str
    bootstrap_servers: str
    elr: bool
    min_isr: int
    ready: bool
    """False where the lab never came up whole: killed while starting, or starting now."""
    nodes: tuple[NodeStatus, ...]
    security: str = "plaintext"
    """How clients reach the brokers (`kelr.lab.security.kinds.Security`)."""
    sasl_mechanism: str | None = None
    authorizer: bool = False
    client_servers: str | None = None
    """Where clients find the brokers; None: at `bootstrap_servers`."""
    command_config: Path | None = None
    """The properties file with which they do; None where they need none."""
    rehearsal: Rehearsal | None = None
    """None for a real lab."""
