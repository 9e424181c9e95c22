"""Who changes a cluster, for journal and audit log."""

from __future__ import annotations

import getpass
import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """The person as the machine and the cluster know them."""

    user: str
    """The operating system's name of the user."""
    host: str
    principal: str | None = None
    """The name that the cluster knows; None where the connection has no login."""


def whoever_runs_this(principal: str | None = None) -> Actor:
    """The user and host of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        user = "unknown"
    return Actor(user, socket.gethostname(), principal)
