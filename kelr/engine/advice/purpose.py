"""What Kafka's own topics are for, and what it means when one of their partitions stands still or loses records.

Sources: Topic (names), GroupCoordinator and CoordinatorRuntime (a write that is short of in-sync replicas is answered
COORDINATOR_NOT_AVAILABLE), TransactionCoordinator.endTransaction (the producer is answered once the prepared commit is
in the log, before any marker is written), KIP-932 (share groups), KIP-405 (tiered storage) of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.model import DamageKind

METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class Purpose:
    """One of Kafka's own topics."""

    kind: DamageKind
    leaderless: str
    """What stands still while nobody leads a partition of it."""
    under_min_isr: str
    """What stands still while it is led and acks=all is refused."""
    lost: str
    """What it means to lose records of it."""
    afterwards: str = ""
    """What shows, after an election, what was lost (`Damage`)."""
    clients: str = ""
    """Who cannot go on, in whatever other topic, while a partition of it stands still."""


_CONSUMER_OFFSETS = Purpose(
    DamageKind.CONSUMER_OFFSETS,
    leaderless="Groups whose id hashes to this partition cannot join, rebalance or commit until it is led.",
    under_min_isr="Groups whose id hashes to this partition cannot rebalance or commit until min ISR is met.",
    lost="A lost commit sends its group back to the one before: records are processed again. A group that loses its"
    " only commit starts where auto.offset.reset says.",
    afterwards=f"kafka-consumer-groups.sh {STOCK_CONNECTION} --describe --all-groups",
    clients="consumer groups",
)
_TRANSACTION_STATE = Purpose(
    DamageKind.TRANSACTION_STATE,
    leaderless="Producers whose transactional.id hashes to this partition can neither begin nor end a transaction until"
    " it is led.",
    under_min_isr="Producers whose transactional.id hashes to this partition can neither begin nor end a transaction"
    " until min ISR is met.",
    lost="A lost prepared commit undoes a transaction whose producer was told that it is committed, in every partition"
    " that has no marker yet; if its beginning is lost too, nothing ends it, and it hangs there.",
    afterwards=f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging --broker-id N",
    clients="transactional producers",
)
_SHARE_GROUP_STATE = Purpose(
    DamageKind.SHARE_GROUP_STATE,
    leaderless="Acknowledgements of the share groups whose state is in this partition cannot be stored until it is"
    " led.",
    under_min_isr="Acknowledgements of the share groups whose state is in this partition cannot be stored until min ISR"
    " is met.",
    lost="Lost state takes a share group back: records that it acknowledged are delivered again, and deliveries are"
    " counted anew.",
    afterwards=f"kafka-share-groups.sh {STOCK_CONNECTION} --describe --group GROUP",
    clients="share groups",
)
_REMOTE_LOG_METADATA = Purpose(
    DamageKind.REMOTE_LOG_METADATA,
    leaderless="Segments of the tiered partitions that hash here cannot be moved to remote storage until it is led:"
    " local disks fill.",
    under_min_isr="Segments of the tiered partitions that hash here cannot be moved to remote storage until min ISR is"
    " met: local disks fill.",
    lost="Segments in remote storage whose metadata is lost are still there, but can be neither read nor deleted.",
)
_METADATA_WORDS = (
    "The controllers elect this log's leader among themselves, by votes (Raft): no ISR, ELR or election type decides,"
    " and an election that is asked for is answered UNKNOWN_TOPIC_OR_PARTITION."
)
_CLUSTER_METADATA = Purpose(
    DamageKind.CLUSTER_METADATA,
    leaderless=_METADATA_WORDS,
    under_min_isr=_METADATA_WORDS,
    lost="",
)

PURPOSES: Mapping[str, Purpose] = {
    "__consumer_offsets": _CONSUMER_OFFSETS,
    "__transaction_state": _TRANSACTION_STATE,
    "__share_group_state": _SHARE_GROUP_STATE,
    "__remote_log_metadata": _REMOTE_LOG_METADATA,
    METADATA_TOPIC: _CLUSTER_METADATA,
}
"""Topic name to what it is for."""
