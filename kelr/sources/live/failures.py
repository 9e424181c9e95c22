"""The one place that turns errors of the network into kelr's values, and what is said of Kafka's error codes."""

from __future__ import annotations

import errno
import re

from kelr.errors import AuthenticationError
from kelr.protocol.error_codes import error_name
from kelr.sources.live.transport import Failure, FailureKind
from kelr.sources.security import NO_TICKET

NONE = "NONE"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
TOPIC_UNAUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
REFUSED = "connection refused"
CLUSTER_UNAUTHORIZED = "CLUSTER_AUTHORIZATION_FAILED"
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"

UNSUPPORTED_SASL_MECHANISM = "UNSUPPORTED_SASL_MECHANISM"
ILLEGAL_SASL_STATE = "ILLEGAL_SASL_STATE"
NO_MECHANISM = "the listener does not offer this sasl.mechanism"
NO_SASL = "the listener expects no SASL login, or another kind"
REBOOTSTRAP_REQUIRED = "REBOOTSTRAP_REQUIRED"
ELSEWHERE = "another broker is there"
"""How the detail of a failure begins where a broker says that it is not the one that was meant."""
GARBLED = "not an answer of a Kafka broker: "
"""How the detail of a `FailureKind.GARBLED` begins."""
NO_ANSWER = Failure(FailureKind.TIMED_OUT, "no answer in time")
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


def failure_of(error: OSError) -> Failure:
    """What an error of a socket, or of TLS, means for the node that was asked."""
    name = errno.errorcode.get(error.errno or 0, "")
    words = _ERRNO_WORDS.get(name) or error.strerror or str(error) or "connection closed"
    late = isinstance(error, TimeoutError) or "timed out" in words.lower()
    return Failure(FailureKind.TIMED_OUT if late else FailureKind.UNREACHABLE, words)


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


# A login that did not come about, in words: the one place that tells whose fault it is, and what to do.


_JUDGED_A_TICKET = re.compile(r"SASL (mechanism )?GSSAPI")
"""In the words of brokers (SaslServerAuthenticator)."""


def login_error(who: str, failure: Failure, *, also: str = "") -> AuthenticationError:
    """The error for a failure of the kind `FailureKind.AUTHENTICATION`.

    Args:
        who: who was to be logged in to, such as ``the brokers``.
        also: what else there is to say, at the end of the message.
    """
    if failure.detail.startswith(NO_TICKET):
        why = failure.detail.removeprefix(NO_TICKET)
        return AuthenticationError(
            f"{NO_TICKET} for {who}{why}{also}",
            next_step="klist shows what tickets there are: run kinit PRINCIPAL, or kinit -kt KEYTAB PRINCIPAL, if they"
            " ended; else check the names of the brokers, and that the KDC answers",
            code="no-kerberos-ticket",
        )
    return AuthenticationError(
        f"{who} refused the credentials: {failure.detail}{also}",
        next_step="klist shows whose tickets there are; check sasl.kerberos.service.name, and that the broker's key"
        " table has a principal with the name that it was reached by"
        if _JUDGED_A_TICKET.search(failure.detail)
        else "check user name, password and sasl.mechanism: kelr config show says where they come from",
        code="credentials-refused",
    )
