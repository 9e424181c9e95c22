"""What a lab is made of: how many brokers, which Kafka, which durability settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.errors import UsageError
from kelr.lab.security.kinds import DEFAULT_MECHANISM, Mechanism, Security, checked

CONTROLLER_ID = 100
"""Node id of the first controller, the others follow; brokers are numbered from 1."""
MOST_BROKERS = 9
MOST_CONTROLLERS = 5
DEFAULT_KAFKA = "4.4.0"


@dataclass(frozen=True, slots=True)
class LabSpec:
    """A cluster to build: KRaft controllers, and `brokers` brokers spread over `racks` racks.

    Raises:
        UsageError: a number is out of range.
    """

    brokers: int = 3
    kafka: str = DEFAULT_KAFKA
    min_isr: int = 2
    racks: int = 3
    elr: bool = True
    """Whether the feature eligible.leader.replicas.version is 1 (KIP-966) or 0."""
    heap_mb: int = 320
    """Java heap of each broker, in MiB."""
    controllers: int = 1
    """Nodes that are controllers alone, and the voters of the quorum."""
    security: str = Security.PLAINTEXT
    """How clients reach the brokers (`Security`)."""
    sasl_mechanism: str | None = None
    """How they log in (`Mechanism`), where they do; None there takes `DEFAULT_MECHANISM`."""
    authorizer: bool = False
    """Whether there is a StandardAuthorizer, which asks for ACLs."""

    def __post_init__(self) -> None:
        _within("brokers", self.brokers, 1, MOST_BROKERS)
        _within("min-isr", self.min_isr, 1, self.brokers)
        _within("racks", self.racks, 1, MOST_BROKERS)
        _within("heap-mb", self.heap_mb, 128, 16384)
        _within("controllers", self.controllers, 1, MOST_CONTROLLERS)
        checked(self.security, self.sasl_mechanism)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.brokers + 1))

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(range(CONTROLLER_ID, CONTROLLER_ID + self.controllers))

    @property
    def mechanism(self) -> Mechanism | None:
        """How clients log in; None where they do not."""
        return Mechanism(self.sasl_mechanism or DEFAULT_MECHANISM) if Security(self.security).sasl else None

    @property
    def rack_of(self) -> Mapping[int, str]:
        """Broker id to rack: az1, az2, ... dealt round robin, so that neighbouring ids are in different racks."""
        return {broker: f"az{(broker - 1) % self.racks + 1}" for broker in self.broker_ids}


def is_controller(node: int) -> bool:
    """Whether this node of a real lab is a controller."""
    return node >= CONTROLLER_ID


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(
            f"a lab's {name} is {value}, outside {low} to {high}", next_step=f"give --{name} in that range"
        )
