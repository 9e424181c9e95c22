"""The one place that turns kafka-python's errors into kelr's values, and Kafka's error codes into their names."""

from __future__ import annotations

import errno
from functools import cache

from kelr.messages.dialects import REQUEST_LIMIT_REACHED, REQUEST_LIMIT_REACHED_CODE
from kelr.sources.live.transport import Failure, FailureKind

NONE = "NONE"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
TOPIC_UNAUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
REFUSED = "connection refused"
CLUSTER_UNAUTHORIZED = "CLUSTER_AUTHORIZATION_FAILED"

_CLOSED = "connection closed"
_NO_MECHANISM = "the listener does not offer this sasl.mechanism"
_ERRNO_WORDS = {
    "ECONNREFUSED": REFUSED,
    "EHOSTUNREACH": "no route to host",
    "ENETUNREACH": "network unreachable",
    "ETIMEDOUT": "connection timed out",
    "ECONNRESET": "connection reset",
}


_RESOURCES = {CLUSTER_UNAUTHORIZED: "the cluster", TOPIC_UNAUTHORIZED: "the topic"}


def with_acl(error: str, operation: str) -> str:
    """An error's name with the ACL that was missing, which Kafka does not tell; other errors as they are.

    Args:
        operation: what the request takes, by Kafka's name, such as ``DESCRIBE_CONFIGS``.
    """
    resource = _RESOURCES.get(error)
    return error if resource is None else f"{error}: it needs {operation} on {resource}"


def failure_of(error: Exception) -> Failure:
    """What an exception of kafka-python (or Python's network layer) means for the node that was asked."""
    from kafka import errors  # noqa: PLC0415

    text = _words(error)
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        # kafka-python gives it no words where the broker refuses the handshake.
        return Failure(FailureKind.AUTHENTICATION, _NO_MECHANISM if text == _CLOSED else text)
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return Failure(FailureKind.AUTHENTICATION, text)
    if isinstance(error, errors.IllegalSaslStateError):
        return Failure(FailureKind.AUTHENTICATION, "the listener expects no SASL login, or another kind")
    if isinstance(error, errors.IncompatibleBrokerVersion | errors.UnsupportedVersionError):
        return Failure(FailureKind.UNSUPPORTED, text)
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError | TimeoutError):
        return Failure(FailureKind.TIMED_OUT, "no answer in time")
    if isinstance(error, errors.KafkaConnectionError | errors.NodeNotReadyError | errors.Cancelled | OSError):
        kind = FailureKind.TIMED_OUT if "timed out" in text.lower() else FailureKind.UNREACHABLE
        return Failure(kind, text)
    return Failure(FailureKind.GARBLED, f"not an answer of a Kafka broker: {text}")


def socket_words(error: OSError) -> str:
    """What an error of a socket means, in the words that are used for kafka-python's."""
    name = errno.errorcode.get(error.errno or 0, "")
    return _ERRNO_WORDS.get(name) or error.strerror or str(error) or "connection closed"


def _words(error: Exception) -> str:
    """The error's own words, without kafka-python's class names and numbers around them."""
    text = str(error.args[0]) if len(error.args) == 1 else str(error)
    text = text.removeprefix("SaslAuthenticationFailedError: ")
    for name, words in _ERRNO_WORDS.items():
        if name in text:
            return words
    return _CLOSED if text.strip() in {"", "socket disconnected", "closed"} or not error.args else text


_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: NONE,
    1: "OFFSET_OUT_OF_RANGE",
    3: UNKNOWN_TOPIC,
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    9: "REPLICA_NOT_AVAILABLE",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    29: TOPIC_UNAUTHORIZED,
    31: CLUSTER_UNAUTHORIZED,
    35: "UNSUPPORTED_VERSION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    41: "NOT_CONTROLLER",
    42: "INVALID_REQUEST",
    56: "KAFKA_STORAGE_ERROR",
    72: "LISTENER_NOT_FOUND",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
    98: "SNAPSHOT_NOT_FOUND",
    99: "POSITION_OUT_OF_RANGE",
    100: "UNKNOWN_TOPIC_ID",
    103: "INCONSISTENT_TOPIC_ID",
    104: "INCONSISTENT_CLUSTER_ID",
    # Newer than kafka-python's own.
    128: "INVALID_REGULAR_EXPRESSION",
    129: "REBOOTSTRAP_REQUIRED",
    130: "STREAMS_INVALID_TOPOLOGY",
    131: "STREAMS_INVALID_TOPOLOGY_EPOCH",
    132: "STREAMS_TOPOLOGY_FENCED",
    133: "SHARE_SESSION_LIMIT_REACHED",
    134: "GROUP_DELETION_FAILED",
    135: "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
    136: "CONTROLLER_ID_NOT_REGISTERED",
    REQUEST_LIMIT_REACHED_CODE: REQUEST_LIMIT_REACHED,
}


@cache
def error_name(code: int) -> str:
    """Kafka's name of an error code, such as ``NOT_LEADER_OR_FOLLOWER``; ``ERROR_CODE_999`` for an unknown one.

    Source: org.apache.kafka.common.protocol.Errors. The codes that kelr meets are named here, because kafka-python
    keeps some names that Kafka has given up.
    """
    if code in _NAMES:
        return _NAMES[code]
    from kafka import errors  # noqa: PLC0415

    known = errors.kafka_errors.get(code)
    return f"ERROR_CODE_{code}" if known is None else str(known.message)


class ErrorAnswer(str):
    """Kafka's name of an error, as `error_name` has it, that also knows what Kafka says of it (`error_in_words`)."""

    message: str

    __slots__ = ("message",)


LONGEST_MESSAGE = 500
"""Characters of what Kafka says that are shown."""


def error_answer(code: int, message: str | None) -> str:
    """The name of an error code, with the answer's ErrorMessage where it has one that says more."""
    name = ErrorAnswer(error_name(code))
    text = " ".join("".join(char if char.isprintable() else " " for char in message or "").split())
    name.message = text[:LONGEST_MESSAGE].rstrip(".")
    return name


def error_in_words(error: str) -> str:
    """``INVALID_REPLICA_ASSIGNMENT: The manual partition assignment includes ...``: the name, and what Kafka says."""
    message = error.message if isinstance(error, ErrorAnswer) else ""
    return f"{error}: {message}" if message else str(error)


RETRIABLE = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_LEADER_OR_FOLLOWER",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_ID",
        "THROTTLING_QUOTA_EXCEEDED",
    }
)
"""Errors that Kafka's own clients ask again after."""
