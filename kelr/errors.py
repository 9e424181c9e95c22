"""Every error that kelr raises on purpose, in one tree.

    KelrError                      exit code
    ├── UsageError                 2   the command line or an argument is wrong
    ├── BadInputError              2   a file (snapshot, plan, properties, ...) is not what it should be
    ├── ConnectError               3   no broker could be reached, or TLS failed
    │   └── AuthenticationError    3   a broker was reached and refused the credentials
    ├── NotAuthorizedError         4   the principal lacks an ACL
    ├── UnsupportedError           5   this cluster, or this machine, cannot do what was asked
    │   └── LabError               5   the lab's own cluster could not be set up or driven
    ├── RefusedError               6   refused for safety
    └── PartlyDoneError            7   some of it was done; the rest is named
        └── NotRecordedError       7   it was done, and the record of it could not be written

Exit code 1 is not an error: ``--check`` found something, or a verification failed (see `ExitCode`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """The documented exit codes of every kelr command."""

    DONE = 0
    FOUND = 1
    USAGE = 2
    CONNECT = 3
    NOT_AUTHORIZED = 4
    UNSUPPORTED = 5
    REFUSED = 6
    PARTLY_DONE = 7


class KelrError(Exception):
    """What happened, to which thing, and what to do next.

    Args:
        message: what happened, naming the topic, partition, file and line, or broker that it happened to.
        next_step: what the reader can do about it; one sentence or a command.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return self.message


class UsageError(KelrError):
    """The command line, or an argument of a library function, is wrong."""


class BadInputError(KelrError):
    """A file is garbled, truncated, of another kind, or of a newer version."""


class ConnectError(KelrError):
    """No broker could be reached within the timeout, or the connection could not be made secure."""

    exit_code = ExitCode.CONNECT


class AuthenticationError(ConnectError):
    """A broker was reached and did not accept who we say we are."""


class NotAuthorizedError(KelrError):
    """The principal lacks an ACL that the command needs."""

    exit_code = ExitCode.NOT_AUTHORIZED


class UnsupportedError(KelrError):
    """This cluster or this machine cannot do what was asked."""

    exit_code = ExitCode.UNSUPPORTED


class LabError(UnsupportedError):
    """The lab's own cluster could not be set up, started, or driven."""


class RefusedError(KelrError):
    """kelr will not do this, because data would be at risk."""

    exit_code = ExitCode.REFUSED


class PartlyDoneError(KelrError):
    """Some of what was asked was done; the message names what was not."""

    exit_code = ExitCode.PARTLY_DONE


class NotRecordedError(PartlyDoneError):
    """Something was done that could not be recorded as it should; nothing goes on until it is.

    Args:
        results: what became of all that was asked for, to be told all the same.
    """

    def __init__(self, message: str, *, results: tuple[Any, ...], next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.results = results
