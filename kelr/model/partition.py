"""A partition as the controller's records have it, and the names that address it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """The address of a partition; sorts by topic name, then by partition number, and prints as ``orders:3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the controller has decided about one partition.

    Replica lists hold broker ids in Kafka's order: `replicas` in assignment order (the first is the preferred leader).
    Unknown is `None`, never an empty tuple: a broker without DescribeTopicPartitions cannot say what the ELR is, and
    that is not the same as an ELR that is empty.

    Source: KIP-966 "Public Interfaces" (PartitionRecord, PartitionChangeRecord, DescribeTopicPartitionsResponse).
    """

    topic: str
    partition: int
    leader: int | None
    """The broker that leads, or None where the controller has recorded no leader (NO_LEADER, -1 on the wire)."""
    leader_epoch: int
    """Raised by one for each record that carries a leader."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    """On Kafka 4.x at most one id, the last known leader; the KIP's set is in `RecoveryQuorum` where a metadata log was
    replayed. Kafka 4.0 and 4.1.0 can store -1 ("no leader") here, and elect by it: that one is kept as it is."""
    offline_replicas: tuple[int, ...] | None = None
    """Replicas that the answering broker holds to be offline: broker dead or fenced, or its log directory failed."""
    partition_epoch: int | None = None
    """Raised by one for each record; not part of any describe answer, so None for a live cluster."""
    adding: tuple[int, ...] | None = None
    """Replicas that a reassignment under way is adding; None where nobody asked."""
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None
    """True from an unclean election until the leader says that it recovered (LeaderRecoveryState RECOVERING)."""
    topic_id: str | None = None

    @property
    def under_replicated(self) -> bool:
        """Whether replicas are out of sync; those that a reassignment adds are to catch up yet."""
        return len(self.isr) < len({*self.replicas} - {*(self.adding or ())})

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


# Kafka has two effective min ISRs. Those of one topic differ where its partitions have different replica counts.


def leader_min_isr(config_min_isr: int | None, replicas: int) -> int | None:
    """The min ISR that the partition's leader goes by: below it acks=all is refused and nothing is committed.

    Source: KIP-966, "Additional High Watermark advancement requirement"; Partition.effectiveMinIsr of Kafka 4.0 to 4.4.

    Args:
        config_min_isr: min.insync.replicas; None where it is not known.
        replicas: the partition's own replica count, those that a reassignment is adding included.
    """
    return None if config_min_isr is None else min(config_min_isr, replicas)


def controller_min_isr(config_min_isr: int | None, first_replicas: int) -> int | None:
    """The min ISR that the controller keeps the ELR by: below it whoever leaves the ISR goes into the ELR.

    Source: ReplicationControlManager.getTopicEffectiveMinIsr of Kafka 4.0 to 4.4.

    Args:
        config_min_isr: min.insync.replicas; None where it is not known.
        first_replicas: the replica count of the topic's partition 0, whichever partition it is asked for.
    """
    return None if config_min_isr is None else min(config_min_isr, first_replicas)
