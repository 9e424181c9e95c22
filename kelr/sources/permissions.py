"""What the principal may do, as brokers tell it beside other answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Permissions:
    """Names of ACL operations, such as ``ALTER``; None where nobody tells."""

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)


class TellsPermissions(Protocol):
    """Whatever can ask a cluster what its principal may do."""

    def permissions(self, topics: tuple[str, ...]) -> Permissions:
        """On the cluster, and on these topics. Raises ConnectError, AuthenticationError."""
