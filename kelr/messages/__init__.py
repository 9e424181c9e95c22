"""Kafka messages that no release has, as JSON schemas in Kafka's own format (`resources`), in kafka-python's classes.

The classes (`kelr.messages.classes`) bring kafka-python along, and are imported when they are first asked for.

Source: KIP-966, "ElectLeadersRequest", "GetReplicaLogInfo Request", and the patch to Kafka's trunk that was reverted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kelr.messages.classes import AlterPartitionRequest as AlterPartitionRequest
    from kelr.messages.classes import AlterPartitionResponse as AlterPartitionResponse
    from kelr.messages.classes import BrokerRegistrationRequest as BrokerRegistrationRequest
    from kelr.messages.classes import BrokerRegistrationResponse as BrokerRegistrationResponse
    from kelr.messages.classes import ElectLeadersRequest as ElectLeadersRequest
    from kelr.messages.classes import ElectLeadersResponse as ElectLeadersResponse
    from kelr.messages.classes import Message as Message
    from kelr.messages.classes import replica_log_info as replica_log_info

_CLASSES = frozenset({
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "Message",
    "replica_log_info",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kelr.messages import classes  # noqa: PLC0415 - kafka-python takes its time to load

    return getattr(classes, name)
