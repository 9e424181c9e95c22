"""What can happen to a cluster, as the controller sees it: one frozen value for each kind of event.

`kelr.controller.machine.handle` says what each does. Events that a broker or an operator asks for may be refused; the
answer then has Kafka's name of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kelr.controller.election import Election
from kelr.controller.rules import RecoveryStrategy
from kelr.model import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic with its assignment; the first live replica of each partition leads, all live ones are in sync."""

    topic: str
    replicas: tuple[tuple[int, ...], ...]
    """The assignment of partition 0, 1, 2 and so on."""


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    topic: str


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker's new incarnation registers; it stays fenced until it has caught up with the metadata."""

    broker: int
    clean: bool
    """Whether the request carries the broker epoch of the last registration (KIP-966, CleanShutdownFile)."""
    rack: str | None = None
    lost_directories: frozenset[TopicPartition] = frozenset()
    """Partitions whose log directory on this broker is missing in the registration."""
    epoch: int | None = None
    """The new broker epoch; None takes the next free one."""


@dataclass(frozen=True, slots=True)
class BrokerFenced:
    """The broker's session expired: no heartbeat came for broker.session.timeout.ms."""

    broker: int


@dataclass(frozen=True, slots=True)
class BrokerUnfenced:
    """The broker's heartbeat says that it has caught up with the metadata."""

    broker: int


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """The broker's heartbeat asks to shut down; it may stop once it leads nothing any more."""

    broker: int


@dataclass(frozen=True, slots=True)
class BrokerCordoned:
    """The broker's heartbeat says that all its log directories are cordoned, or that they are no more (KIP-1066); of
    Kafka 4.4 and newer."""

    broker: int
    cordoned: bool = True


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """An operator removed a broker's registration (UnregisterBroker)."""

    broker: int


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    """A live broker reports a log directory offline."""

    broker: int
    partitions: frozenset[TopicPartition] | None = None
    """The partitions whose replicas are in it; None for all of the broker's."""

    def holds(self, address: TopicPartition) -> bool:
        return self.partitions is None or address in self.partitions


@dataclass(frozen=True, slots=True)
class PartitionAltered:
    """AlterPartition from a partition's leader (KIP-497, KIP-903)."""

    address: TopicPartition
    leader: int
    """The broker that sends it."""
    isr: tuple[int, ...]
    member_epochs: Mapping[int, int] = field(default_factory=dict)
    """Broker epochs of the members as the leader knows them from their fetches; a member that is missing is not checked
    (an epoch of -1 on the wire)."""
    recovering: bool = False
    leader_broker_epoch: int | None = None
    """The sender's own broker epoch; None for the right one."""
    leader_epoch: int | None = None
    """The leader epoch that the sender goes by; None for the right one."""
    partition_epoch: int | None = None
    """The partition epoch that the sender goes by; None for the right one."""


@dataclass(frozen=True, slots=True)
class LeadersElected:
    """ElectLeaders for some partitions, or for all."""

    election: Election
    """PREFERRED or UNCLEAN."""
    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class UncleanElectionTask:
    """The periodic unclean elections of topics that allow them (unclean.leader.election.interval.ms)."""


@dataclass(frozen=True, slots=True)
class PreferredElectionTask:
    """The periodic preferred elections (auto.leader.rebalance.enable)."""


@dataclass(frozen=True, slots=True)
class Reassigned:
    """AlterPartitionReassignments for one partition: another assignment, or None to cancel the one under way."""

    address: TopicPartition
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class DirectoryAssigned:
    """A broker tells in which log directory it has put its replica (AssignReplicasToDirs)."""

    broker: int
    address: TopicPartition
    online: bool = True
    """False where that directory has failed: the replica is then offline."""
    moved: bool = True
    """False where the controller knows that already."""


@dataclass(frozen=True, slots=True)
class ConfigWritten:
    """A config that elections depend on written for a topic or, without one, cluster-wide.

    A config that is None is not written at all.
    """

    topic: str | None = None
    min_isr: int | None = None
    unclean_leader_election: bool | None = None
    recovery_strategy: RecoveryStrategy | None = None
    recovery_timeout_ms: int | None = None
    """Cluster-wide alone."""


@dataclass(frozen=True, slots=True)
class ConfigDeleted:
    """A topic's own value, or the cluster-wide dynamic one, is taken back."""

    topic: str | None = None
    min_isr: bool = False
    unclean_leader_election: bool = False
    recovery_strategy: bool = False
    recovery_timeout_ms: bool = False


@dataclass(frozen=True, slots=True)
class ElrFeature:
    """eligible.leader.replicas.version is set to 1 (on) or 0."""

    on: bool


@dataclass(frozen=True, slots=True)
class MetadataVersion:
    """metadata.version is set to another level, however much metadata that loses."""

    level: int
    """As Kafka numbers them: 23 is 4.0-IV1."""


Event: TypeAlias = (
    TopicCreated
    | TopicDeleted
    | BrokerRegistered
    | BrokerFenced
    | BrokerUnfenced
    | ControlledShutdown
    | BrokerCordoned
    | BrokerUnregistered
    | DirectoryFailed
    | PartitionAltered
    | LeadersElected
    | UncleanElectionTask
    | PreferredElectionTask
    | Reassigned
    | DirectoryAssigned
    | ConfigWritten
    | ConfigDeleted
    | ElrFeature
    | MetadataVersion
)
