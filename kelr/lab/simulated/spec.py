"""What a simulated cluster is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from kelr.controller import RULE_SETS, RuleSet, rule_set
from kelr.errors import LabError, UsageError
from kelr.lab.nodes import NodePaths
from kelr.lab.spec import CONTROLLER_ID, MOST_CONTROLLERS
from kelr.lab.state import STATE_FORMAT, ProcessRecord, of_file
from kelr.protocol.dialects import Dialect
from kelr.simulation.running import Timing
from kelr.sources.log_info_key import LogInfoKey

MOST_BROKERS = CONTROLLER_ID - 1
MOST_NAMED = 1000
"""Brokers of a snapshot: each listens on a port."""
MOST_PARTITIONS = 10_000_000


@dataclass(frozen=True, slots=True)
class SimulatedSpec:
    """Controllers, brokers over `racks` racks, and `topics` healthy topics of `partitions` partitions.

    Raises:
        UsageError: a number is out of range, or there is no such rule set.
    """

    brokers: int = 3
    racks: int = 3
    rules: str = "kip966-balanced"
    """The rule set that the controller runs."""
    min_isr: int = 2
    """min.insync.replicas of the cluster."""
    topics: int = 0
    partitions: int = 1
    """Partitions of each of those topics."""
    replication: int = 3
    log_info: Dialect | None = Dialect.KIP
    """In which dialect brokers speak GetReplicaLogInfo; None: not at all, as released brokers."""
    log_info_key: int | None = None
    """Its API key; None takes the dialect's."""
    page_limit: int = 2000
    """max.request.partition.size.limit: the most partitions in one answer of DescribeTopicPartitions."""
    log_info_limit: int = 1000
    """The most partitions that GetReplicaLogInfo answers for."""
    timing: Timing = field(default_factory=Timing)
    controllers: int = 1
    named: Mapping[int, str | None] | None = None
    """The brokers' ids, each with its rack, where they are not 1, 2, 3 and so on."""

    def __post_init__(self) -> None:
        _within("brokers", self.brokers, 1, MOST_BROKERS if self.named is None else MOST_NAMED)
        _within("controllers", self.controllers, 1, MOST_CONTROLLERS)
        _within("racks", self.racks, 1, MOST_BROKERS)
        _within("min-isr", self.min_isr, 1, self.brokers)
        _within("replication", self.replication, 1, self.brokers)
        _within("topics", self.topics, 0, MOST_PARTITIONS)
        _within("partitions", self.partitions, 1, MOST_PARTITIONS // max(1, self.topics))
        _within("page-limit", self.page_limit, 1, 2**31 - 1)
        if self.log_info_key is not None:
            _within("log-info-api-key", self.log_info_key, 0, 2**15 - 1)
            LogInfoKey.chosen(self.log_info_key)  # one that kelr refuses is of use to nobody
        try:
            rule_set(self.rules)
        except ValueError as error:
            raise UsageError(str(error), next_step=f"give one of {', '.join(RULE_SETS)}") from None

    @property
    def rule_set(self) -> RuleSet:
        return rule_set(self.rules)

    @property
    def elr(self) -> bool:
        """Whether its controller keeps ELR."""
        return self.rule_set.elr

    @property
    def controller(self) -> int:
        """The node id of the first controller: the usual one, or above those of all brokers."""
        taken = self.named or {}
        return max(taken) + 1 if max(taken, default=0) >= CONTROLLER_ID else CONTROLLER_ID

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(range(self.controller, self.controller + self.controllers))

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.brokers + 1)) if self.named is None else tuple(sorted(self.named))

    @property
    def rack_of(self) -> Mapping[int, str]:
        if self.named is not None:
            return {broker: rack for broker, rack in sorted(self.named.items()) if rack is not None}
        return {broker: f"az{(broker - 1) % self.racks + 1}" for broker in self.broker_ids}

    @property
    def api_key(self) -> int | None:
        """The API key of GetReplicaLogInfo; None where brokers do not speak it."""
        if self.log_info is None:
            return None
        return self.log_info.api_key if self.log_info_key is None else self.log_info_key


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"a simulated lab's {name} is {value}, outside {low} to {high}", next_step=f"give --{name} in that range"
        )


# lab.json of a simulated lab: what its process is made from, and how to speak to it.


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
