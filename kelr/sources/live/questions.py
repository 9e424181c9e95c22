"""A request as a value: what is asked, before it is known over which connection and in which version.

The requests of a reading of the cluster are such values, so that they can go out without kafka-python being loaded
(`quick.py`), or through it (`for_kafka_python`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from kelr.sources.live.transport import Message


Read = Callable[[bytes, int], Any]
"""Makes an answer of its body and its version; raises ValueError where the bytes are no such answer."""


@dataclass(frozen=True)
class Question:
    """A request by Kafka's names: ``DescribeCluster``, fields in snake_case, structs as mappings."""

    name: str
    fields: Mapping[str, Any]
    min_version: int | None = None
    max_version: int | None = None
    read: Read | None = field(default=None, compare=False)
    """Makes the answer, in place of an object for each of its values."""
    following: Callable[[bytes], Self | None] | None = field(default=None, compare=False)
    """What will be asked next, as far as the answer's body tells at first sight; it is sent ahead, so that the broker
    works on it while this answer is read. A guess: nobody has to ask it."""


def for_kafka_python(question: Question) -> Message:
    """The same as a request of kafka-python."""
    kind = _classes()[question.name]
    message = _built(kind, question.fields, min_version=question.min_version, max_version=question.max_version)
    return message if question.read is None else _Kept(message, question.read)


def _classes() -> Mapping[str, Any]:
    from kafka.protocol.admin import cluster, configs, topics  # noqa: PLC0415 - takes its time to load
    from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415
    from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest  # noqa: PLC0415

    from kelr.messages.classes import FetchSnapshotRequest  # noqa: PLC0415

    return {
        "ApiVersions": ApiVersionsRequest,
        "DescribeCluster": cluster.DescribeClusterRequest,
        "DescribeConfigs": configs.DescribeConfigsRequest,
        "DescribeLogDirs": cluster.DescribeLogDirsRequest,
        "DescribeQuorum": cluster.DescribeQuorumRequest,
        "DescribeTopicPartitions": topics.DescribeTopicPartitionsRequest,
        "Fetch": FetchRequest,
        "FetchSnapshot": FetchSnapshotRequest,
        "ListPartitionReassignments": topics.ListPartitionReassignmentsRequest,
        "Metadata": MetadataRequest,
    }


def _built(kind: Any, fields: Mapping[str, Any], **more: Any) -> Any:
    return kind(**{name: _value(kind._struct.fields[name], value) for name, value in fields.items()}, **more)


def _value(field: Any, value: Any) -> Any:
    if value is None or not (field.is_struct() or field.is_struct_array()):
        return value
    if field.is_struct():
        return _built(field.data_class, value)
    return [_built(field.data_class, one) for one in value]


class _Kept:
    """A request of kafka-python whose answer is made from its bytes."""

    def __init__(self, message: Message, read: Read) -> None:
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "read", read)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.message, name, value)

    @property
    def header(self) -> Any:
        return _KeptHeader(self.message.header, self.read)


class _KeptHeader:
    """The header of such a request, by which kafka-python finds out how an answer is read."""

    def __init__(self, header: Any, read: Read) -> None:
        self._header = header
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> Any:
        return _KeptResponse(self._header.get_response_class(), self._read, self._header.request_api_version)


class _KeptResponse:
    def __init__(self, response: Any, read: Read, version: int) -> None:
        self._response = response
        self._read = read
        self._version = version

    def parse_header(self, data: Any) -> Any:
        return self._response.parse_header(data)

    def decode(self, data: Any) -> Any:
        return self._read(bytes(data.read()), self._version)
