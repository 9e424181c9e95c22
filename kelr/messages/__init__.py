"""Kafka messages that no release has, as JSON schemas in Kafka's own format (`resources`), in kafka-python's classes.

Importing this brings kafka-python along: import it where it is used.

Source: KIP-966, "ElectLeadersRequest", "GetReplicaLogInfo Request", and the patch to Kafka's trunk that was reverted.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kafka.protocol.api_message import ApiMessage

from kelr.messages.dialects import Dialect

_RESOURCES = "kelr.messages.resources"

Message = Any
"""A request or response class of kafka-python, which is not typed."""


class ElectLeadersRequest(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]  # kafka-python has no types
    """ElectLeaders v0 to v3; v3 is KIP-966's, with `desired_leaders`."""


class ElectLeadersResponse(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """The answer to ElectLeaders v0 to v3."""


@cache
def replica_log_info(dialect: Dialect, api_key: int) -> tuple[Message, Message]:
    """The classes of GetReplicaLogInfo's request and response in a dialect, under the API key that was configured."""

    def with_key(_metaclass: type, json: dict[str, Any]) -> dict[str, Any]:
        return {**json, "apiKey": api_key}

    def made(kind: str) -> Message:
        name = f"{dialect.schema}ReplicaLogInfo{kind}"
        attributes = {"json_patch": classmethod(with_key), "__module__": __name__}
        return type(ApiMessage)(name, (ApiMessage,), attributes, load_json=_RESOURCES)

    return made("Request"), made("Response")
