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
    │   └── OtherClusterError      6   a plan or a journal is for another cluster than the one that answered
    └── PartlyDoneError            7   some of it was done; the rest is named
        └── NotRecordedError       7   it was done, and the record of it could not be written

Each error has a `code` that does not change: that of its class, or, where a person would want to look it up, one of its
own. `kelr.errors.catalogue` tells what each means and what to do; ``kelr errors CODE`` shows it.

Exit code 1 is not an error: ``--check`` found something, or a verification failed (see `ExitCode`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
        why: the cause, where the message is short without it.
        next_step: what the reader can do about it; one sentence or a command.
        code: the situation in the catalogue, where it has an entry of its own; None: that of the class.
    """

    exit_code: ExitCode = ExitCode.USAGE
    class_code: str = "error"
    """The code of errors of this class that have none of their own."""

    def __init__(
        self, message: str, *, why: str | None = None, next_step: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.next_step = next_step
        self.code = code or self.class_code

    @property
    def is_specific(self) -> bool:
        """Whether the catalogue tells more of it than its class does."""
        return self.code != self.class_code

    def __str__(self) -> str:
        return f"{self.message}: {self.why}" if self.why else self.message


class UsageError(KelrError):
    """The command line, or an argument of a library function, is wrong."""

    class_code = "usage"


class BadInputError(KelrError):
    """A file is garbled, truncated, of another kind, or of a newer version."""

    class_code = "bad-input"


class ConnectError(KelrError):
    """No broker could be reached within the timeout, or the connection could not be made secure."""

    exit_code = ExitCode.CONNECT
    class_code = "connect"


class AuthenticationError(ConnectError):
    """A broker was reached and did not accept who we say we are."""

    class_code = "authentication"


class NotAuthorizedError(KelrError):
    """The principal lacks an ACL that the command needs."""

    exit_code = ExitCode.NOT_AUTHORIZED
    class_code = "not-authorized"


class UnsupportedError(KelrError):
    """This cluster or this machine cannot do what was asked."""

    exit_code = ExitCode.UNSUPPORTED
    class_code = "unsupported"


class LabError(UnsupportedError):
    """The lab's own cluster could not be set up, started, or driven."""

    class_code = "lab"


class RefusedError(KelrError):
    """kelr will not do this, because data would be at risk."""

    exit_code = ExitCode.REFUSED
    class_code = "refused"


class OtherClusterError(RefusedError):
    """A plan or a journal is for another cluster than the one that answered.

    Args:
        what: the plan or journal, as the reader named it.
        wanted: the id of the cluster that it is for; None: it does not say.
        found: the id of the cluster that answered; None: it has told none.
        reads: nothing was about to be changed, so that it need not be said that nothing was.
    """

    def __init__(self, what: str, wanted: str | None, found: str | None, *, code: str, reads: bool = False) -> None:
        self.what, self.wanted, self.found, self._reads = what, wanted, found, reads
        super().__init__(self._message(""), code=code)
        self.connected()

    def connected(self, server: str | None = None, contexts: Sequence[str] = ()) -> None:
        """Say where that cluster answered, and how to reach the other one.

        Args:
            server: the address that was asked.
            contexts: names of those that are for the wanted cluster.
        """
        self.message = self._message("" if server is None else f" at {server}")
        self.next_step = f"name a broker of cluster {self.wanted} with -b, or a context of it with -c"
        if self.wanted is None:
            self.next_step = "make it again from the right cluster"
        elif contexts:
            self.next_step = f"connect to cluster {self.wanted} with {' or '.join(f'-c {one}' for one in contexts)}"

    def _message(self, where: str) -> str:
        wanted = "does not say which cluster it is for" if self.wanted is None else f"is for cluster {self.wanted}"
        found = f"a cluster without an id answered{where}"
        if self.found is not None:
            found = f"cluster {self.found} answered{where}"
        return f"{self.what} {wanted}, and {found}" + ("" if self._reads else "; nothing changed")


class PartlyDoneError(KelrError):
    """Some of what was asked was done; the message names what was not."""

    exit_code = ExitCode.PARTLY_DONE
    class_code = "partly-done"


class NotRecordedError(PartlyDoneError):
    """Something was done that could not be recorded as it should; nothing goes on until it is.

    Args:
        results: what became of all that was asked for, to be told all the same.
    """

    class_code = "not-recorded"

    def __init__(self, message: str, *, results: tuple[Any, ...], next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.results = results
