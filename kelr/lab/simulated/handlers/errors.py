"""An error of one thing that a request asked for, with what Kafka says of it."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.lab.simulated.api import code

_WORDS = {
    "CLUSTER_AUTHORIZATION_FAILED": "Cluster authorization failed.",
    "INVALID_REQUEST": (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to"
        " an incompatible broker. See the broker logs for more details."
    ),
    "NO_REASSIGNMENT_IN_PROGRESS": "No partition reassignment is in progress.",
    "NOT_LEADER_OR_FOLLOWER": (
        "For requests intended only for the leader, this error indicates that the broker is not the current leader. For"
        " requests intended for any replica, this error indicates that the broker is not a replica of the topic"
        " partition."
    ),
    "REQUEST_TIMED_OUT": "The request timed out.",
    "TOPIC_AUTHORIZATION_FAILED": "Topic authorization failed.",
    "UNKNOWN_SERVER_ERROR": ("The server experienced an unexpected error when processing the request."),
    "UNKNOWN_TOPIC_ID": "This server does not host this topic ID.",
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
}


def words(error: str) -> str:
    """Kafka's own text for an error (Errors.message)."""
    return _WORDS[error]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something was not done."""

    error: str
    """Kafka's name of it."""
    message: str | None = None

    @property
    def code(self) -> int:
        return code(self.error)


class RefusedError(Exception):
    """A problem, where it is found."""

    def __init__(self, error: str, message: str | None = None) -> None:
        super().__init__(message or error)
        self.problem = Problem(error, message)
