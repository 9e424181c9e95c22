"""The classes of kelr's own messages; importing this brings kafka-python along."""

from __future__ import annotations

from functools import cache
from typing import Any

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.api_message import ApiMessage

from kelr.messages.dialects import Dialect

_RESOURCES = "kelr.messages.resources"

Message = Any
"""A request or response class of kafka-python, which is not typed."""


class ElectLeadersRequest(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]  # kafka-python has no types
    """ElectLeaders v0 to v3; v3 is KIP-966's, with `desired_leaders`."""


class ElectLeadersResponse(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """The answer to ElectLeaders v0 to v3."""


class FetchSnapshotRequest(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """FetchSnapshot v0 and v1."""


class FetchSnapshotResponse(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """The answer to FetchSnapshot v0 and v1."""


class AlterPartitionRequest(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """AlterPartition v2 and v3; v3 carries the broker epochs of the proposed ISR (KIP-903)."""


class AlterPartitionResponse(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """The answer to AlterPartition v2 and v3."""


class BrokerRegistrationRequest(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """BrokerRegistration v0 to v4; from v3 on with PreviousBrokerEpoch (KIP-966)."""


class BrokerRegistrationResponse(ApiMessage, load_json=_RESOURCES):  # type: ignore[call-arg,misc]
    """The answer to BrokerRegistration v0 to v4."""


@cache
def replica_log_info(dialect: Dialect, api_key: int) -> tuple[Message, Message]:
    """The classes of GetReplicaLogInfo's request and response in a dialect, under the API key that was configured."""

    def with_key(_metaclass: type, json: dict[str, Any]) -> dict[str, Any]:
        return {**json, "apiKey": api_key}

    def made(kind: str, **attributes: Any) -> Message:
        name = f"{dialect.schema}ReplicaLogInfo{kind}"
        attributes.update(json_patch=classmethod(with_key), __module__=__name__)
        return type(ApiMessage)(name, (ApiMessage,), attributes, load_json=_RESOURCES)

    response = made("Response")
    return made("Request", with_header=_answered_as(response)), response


def _answered_as(response: Message) -> Any:
    """`with_header` of a request whose answer is decoded as this response.

    kafka-python finds the class of an answer by the API key alone, in one table for the whole process: another dialect
    under the same key, or a message of its own that has the key, would take the answer.
    """

    def get_response_class(header: Message) -> Message:
        return response[header.request_api_version]

    # No schema of its own (init=False), as for the parent's other versions.
    header_class = type(RequestHeader)(
        "ReplicaLogInfoHeader", (RequestHeader,), {"get_response_class": get_response_class}, init=False
    )

    def with_header(request: Message, correlation_id: int = 0, client_id: str = "kafka-python") -> None:
        request._header = header_class(
            request_api_key=request.API_KEY,
            request_api_version=request.API_VERSION,
            correlation_id=correlation_id,
            client_id=client_id,
        )

    return with_header
