"""lab.json of a simulated lab: what its process is made from, and how to speak to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kelr.errors import LabError
from kelr.lab.nodes import NodePaths
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.state import STATE_FORMAT, ProcessRecord, of_file
from kelr.protocol.dialects import Dialect
from kelr.simulation.running import Timing

KIND = "simulated"
SNAPSHOT_FILE = "snapshot.kelr"
"""The snapshot that the cluster was made from, in the lab's directory."""


@dataclass(frozen=True, slots=True)
class SimulatedState:
    """Everything that a later kelr needs to drive or end this lab."""

    lab_id: str
    """Random; the lab's process carries it on its command line."""
    cluster_id: str
    spec: SimulatedSpec
    ports: Mapping[int, int]
    """Node id to its TCP port."""
    control_port: int
    token: str
    """Who brings it may drive the cluster: lab.json is for its owner's eyes alone."""
    metrics_port: int | None = None
    """Where the active controller's gauges are served."""
    virtual_clock: bool = False
    from_snapshot: bool = False
    """Whether the cluster was made from `SNAPSHOT_FILE`."""
    log_dirs: bool = False
    """Whether brokers that are down leave their logs on the disk, in Kafka's format."""
    ready: bool = False
    """False until the cluster was up once."""
    process: ProcessRecord | None = None

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.spec.broker_ids

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{self.ports[broker]}" for broker in self.brokers)

    def log_directory(self, directory: Path, broker: int) -> Path:
        """Where a broker's log directory is, with `log_dirs`; `directory` is the lab's."""
        return NodePaths.of(directory, broker).data

    def document(self) -> dict[str, Any]:
        """As lab.json has it."""
        return {"format": STATE_FORMAT, "kind": KIND, **asdict(self)}


def load_simulated(directory: Path) -> SimulatedState:
    """The state of the simulated lab in this directory.

    Raises:
        LabError: there is none, or lab.json is damaged.
    """
    return of_file(directory, _parse)


def _parse(document: dict[str, Any]) -> SimulatedState:
    if document.get("kind") != KIND:
        raise LabError("the lab runs real Kafka", next_step="start a simulated one with 'kelr lab up --simulated'")
    known = {field.name for field in fields(SimulatedState)}
    values = {name: value for name, value in document.items() if name in known}
    process = values["process"]
    return SimulatedState(
        **{
            **values,
            "spec": _spec(values["spec"]),
            "ports": {int(node): int(port) for node, port in values["ports"].items()},
            "process": None if process is None else ProcessRecord(**process),
        }
    )


def _spec(values: dict[str, Any]) -> SimulatedSpec:
    dialect, named = values["log_info"], values.get("named")
    return SimulatedSpec(
        **{
            **values,
            "log_info": None if dialect is None else Dialect(dialect),
            "timing": Timing(**values["timing"]),
            "named": None if named is None else {int(broker): rack for broker, rack in named.items()},
        }
    )
