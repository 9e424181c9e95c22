"""What any lab's cluster says of itself over Kafka's protocol, and waiting until it says something."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from kelr.errors import LabError, UsageError
from kelr.lab import processes, wire
from kelr.lab.disk import CutTail
from kelr.lab.nodes import HOST
from kelr.lab.state import claim_directory
from kelr.lab.teardown import file_errors, take_down
from kelr.model import PartitionState, TopicPartition

Report: TypeAlias = Callable[[str], None]
PATIENCE_S = 180.0
"""How long what does come may take: beside twenty busy processes a broker starts in more than a minute."""


# What a lab is doing, as values.


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


class SpecOfLab(Protocol):
    """What every lab's specification tells."""

    @property
    def min_isr(self) -> int: ...
    @property
    def elr(self) -> bool: ...
    @property
    def broker_ids(self) -> tuple[int, ...]: ...
    @property
    def controller_ids(self) -> tuple[int, ...]: ...
    @property
    def rack_of(self) -> Mapping[int, str]: ...


class StateOfLab(Protocol):
    """What every lab.json has."""

    def document(self) -> dict[str, Any]: ...
    @property
    def lab_id(self) -> str: ...
    @property
    def spec(self) -> SpecOfLab: ...
    @property
    def ports(self) -> Mapping[int, int]: ...


class AnyLab(ABC):
    """A cluster on ports of this machine, real or simulated; in a `with` it is taken down at the end.

    `kelr.lab.cluster.Lab` says what each method does, and raises.
    """

    _state: StateOfLab

    def __init__(self, directory: Path, state: StateOfLab) -> None:
        self.directory = directory
        self._state = state

    @classmethod
    def _started(cls, directory: Path, state: StateOfLab, start: Callable[[Self], None]) -> Self:
        """The lab of a directory that becomes its own, once it has started; nothing is left behind where it does not.

        Raises:
            LabError: a lab is there already, or it does not start.
        """
        with file_errors(directory):
            claim_directory(directory, state)
        lab = cls(directory, state)
        try:
            with file_errors(directory):
                start(lab)
        except BaseException:
            lab.down()
            raise
        return lab

    @property
    @abstractmethod
    def simulated(self) -> bool: ...
    @property
    def lab_id(self) -> str:
        """Random; on the command line of every process of the lab."""
        return self._state.lab_id

    @property
    def spec(self) -> SpecOfLab:
        return self._state.spec

    @property
    def brokers(self) -> tuple[int, ...]:
        """Broker ids; those of controllers are others."""
        return self.spec.broker_ids

    @property
    def controllers(self) -> tuple[int, ...]:
        """Ids of the controllers, running or not."""
        return self.spec.controller_ids

    @property
    def racks(self) -> Mapping[int, str]:
        return self.spec.rack_of

    def port(self, node: int) -> int:
        """A node's TCP port."""
        return self._state.ports[node]

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, comma separated, running or not."""
        return ",".join(f"{HOST}:{self.port(broker)}" for broker in self.brokers)

    @property
    def bootstrap_controllers(self) -> str:
        """All controllers, comma separated, running or not."""
        return ",".join(f"{HOST}:{self.port(node)}" for node in self.controllers)

    @property
    def client_servers(self) -> str:
        """As `bootstrap_servers`, for clients: with security they have a listener of their own."""
        return self.bootstrap_servers

    @property
    def connection(self) -> tuple[str, ...]:
        """The flags with which kelr, as the lab's own user, reaches the cluster."""
        return ("-b", self.client_servers)

    @abstractmethod
    def is_running(self, broker: int) -> bool: ...
    @abstractmethod
    def kill(self, broker: int) -> None: ...
    @abstractmethod
    def stop(self, broker: int) -> None: ...
    @abstractmethod
    def start(self, broker: int, *, wait: bool = True) -> None: ...
    @abstractmethod
    def wait_unfenced(self, *brokers: int) -> None: ...
    @abstractmethod
    def notice(self, *brokers: int) -> None: ...
    @abstractmethod
    def restore(self) -> tuple[TopicPartition, ...]: ...
    @abstractmethod
    def saved_high_watermarks(self, broker: int, topic: str) -> Mapping[int, int]: ...
    @abstractmethod
    def cut_tail(self, broker: int, topic: str, partition: int, *, batches: int) -> CutTail: ...
    @abstractmethod
    def fail_to_start(self, broker: int) -> None: ...
    @abstractmethod
    def status(self) -> LabStatus: ...

    def down(self, *, keep_data: bool = False) -> None:
        """End every process of the lab, and delete its directory unless `keep_data`."""
        take_down(self.directory, lambda: processes.all_of(self.lab_id), keep_data=keep_data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def partitions(self, *topics: str) -> Mapping[TopicPartition, PartitionState]:
        """The partitions of these topics (none: of all), as the first broker that answers has them.

        Raises:
            LabError: no broker answers.
        """
        for seen in wire.views(map(self.port, self.brokers), topics):
            return seen
        raise LabError("no broker of the lab answers", next_step="start one, or look at 'kelr lab status'")

    def views(self, *topics: str) -> list[Mapping[TopicPartition, PartitionState]]:
        """As `partitions`, of each broker that answers: one may know what another has not read yet."""
        return list(wire.views(map(self.port, self.brokers), topics))

    def wait_partitions(
        self, topic: str, what: str, holds: Callable[[PartitionState], bool], *, timeout_s: float = PATIENCE_S
    ) -> None:
        """Wait until something holds for every partition of a topic, in the view of every broker that answers.

        Raises:
            LabError: it did not come in time; the message has `what` and a partition for which it does not hold.
        """
        seen: list[Mapping[TopicPartition, PartitionState]] = []

        def all_hold() -> bool:
            seen[:] = self.views(topic)
            return bool(seen) and all(view and all(map(holds, view.values())) for view in seen)

        try:
            self.wait_until(what, all_hold, timeout_s=timeout_s)
        except LabError as error:
            others = [state for view in seen for state in view.values() if not holds(state)]
            raise LabError(f"{error.message}; {others[0] if others else 'no broker answers'}") from None

    def refuses_acks_all(self, address: TopicPartition) -> bool:
        """Whether the partition's leader refuses records with acks=all because of its ISR; False where it has none, or
        that does not answer. Nothing is written."""
        leader = self.partitions(address.topic)[address].leader
        if leader is None:
            return False
        with suppress(OSError):
            return wire.refuses_acks_all(self.port(leader), address.topic, address.partition)
        return False

    def wait_until(self, what: str, holds: Callable[[], bool], *, timeout_s: float = PATIENCE_S) -> None:
        """Wait for a condition, asking again and again.

        Raises:
            LabError: it did not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline:
                raise LabError(f"waited {timeout_s:.0f} s in vain until {what}")
            self._rest()

    def check_broker(self, broker: int) -> None:
        """Refuse a broker that the lab does not have.

        Raises:
            UsageError: there is none with this id.
        """
        if broker not in self.brokers:
            raise UsageError(
                f"the lab has no broker {broker}", next_step=f"its brokers are {', '.join(map(str, self.brokers))}"
            )

    def _leaderless(self, *, timeout_s: float = 5.0) -> tuple[TopicPartition, ...]:
        """Wait until no partition is without a leader; those that stay so are returned."""
        found: list[TopicPartition] = []

        def all_led() -> bool:
            found[:] = [address for address, state in self.partitions().items() if state.leader is None]
            return not found

        with suppress(LabError):
            self.wait_until("every partition has a leader", all_led, timeout_s=timeout_s)
        return tuple(found)

    def _rest(self) -> None:
        """Between one look and the next."""
        time.sleep(0.1)
