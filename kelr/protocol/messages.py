"""The classes of Kafka's messages by name (``from kelr.protocol.messages import FetchRequest``), each compiled from its
schema when it is first asked for, and GetReplicaLogInfo, whose key is configured.

Source: the schemas in Apache Kafka 4.4.0's ``kafka-clients``; KIP-966, "ElectLeadersRequest", "GetReplicaLogInfo
Request", and the patch to Kafka's trunk that was reverted, for what no release has.
"""

from __future__ import annotations

from typing import Any

from kelr.protocol.codec import Message, message_class, under_key
from kelr.protocol.dialects import Dialect


def __getattr__(name: str) -> Any:
    if not name.endswith(("Request", "Response", "Record")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return message_class(name)
    except FileNotFoundError:
        raise AttributeError(f"there is no schema of {name}") from None


def replica_log_info(dialect: Dialect, api_key: int) -> tuple[type[Message], type[Message]]:
    """The classes of GetReplicaLogInfo's request and response in a dialect, under the API key that was configured."""
    name = f"{dialect.schema}ReplicaLogInfo"
    return under_key(message_class(f"{name}Request"), api_key), under_key(message_class(f"{name}Response"), api_key)
