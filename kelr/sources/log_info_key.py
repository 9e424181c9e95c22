"""Where GetReplicaLogInfo may be sent: only under a key that somebody configured, or that a broker announces.

In released brokers 70 is ControllerRegistration and, from 4.4 on, 93 is StreamsGroupTopologyDescriptionUpdate and 94
UnregisterController: a key that a broker lists proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from kelr.errors import UsageError
from kelr.model import LOG_INFO_FEATURE, Features
from kelr.protocol.dialects import Dialect

FIRST_FREE_KEY = 95
"""From here on no request of Kafka 4.4 has its key. Below it a request of the wrong kind could change a cluster."""
LAST_KEY = 32767
"""API keys are int16."""


@dataclass(frozen=True, slots=True)
class LogInfoKey:
    """GetReplicaLogInfo's API key in a cluster, and the dialect that is spoken under it."""

    api_key: int
    dialect: Dialect

    @classmethod
    def chosen(cls, api_key: int, dialect: str | None = None) -> Self:
        """What somebody configured.

        Args:
            dialect: ``kip`` or ``patch``; None takes the one that goes with the key: 93 is the patch's.

        Raises:
            UsageError: the key belongs to another request of every released Kafka, or there is no such dialect.
        """
        if not is_possible(api_key):
            raise UsageError(
                f"GetReplicaLogInfo cannot have the API key {api_key}: released brokers take another request under it",
                next_step=f"give {Dialect.KIP.api_key} (KIP-966), or {FIRST_FREE_KEY} or more",
            )
        if dialect is None:
            return cls(api_key, Dialect.PATCH if api_key == Dialect.PATCH.api_key else Dialect.KIP)
        try:
            return cls(api_key, Dialect(dialect.lower()))
        except ValueError:
            raise UsageError(
                f"GetReplicaLogInfo has no dialect {dialect!r}", next_step=f"give one of {', '.join(Dialect)}"
            ) from None

    @classmethod
    def announced(cls, versions: Any) -> Self | None:
        """What the broker that gave this ApiVersions answer announces by `LOG_INFO_FEATURE`; None for nothing."""
        if versions is None or versions.version < 3:
            return None
        for feature in versions.supported_features or ():
            if feature.name == LOG_INFO_FEATURE and is_possible(feature.max_version):
                dialect = {0: Dialect.KIP, 1: Dialect.PATCH}.get(feature.min_version)
                return None if dialect is None else cls(feature.max_version, dialect)
        return None

    def taken_by(self, features: Features) -> str | None:
        """Why brokers of this software are not sent it, though they list its key; None: nothing is known against it."""
        taken = self.api_key == Dialect.PATCH.api_key and features.is_4_4
        return "from Kafka 4.4 on the key is StreamsGroupTopologyDescriptionUpdate's" if taken else None

    def __str__(self) -> str:
        return f"GetReplicaLogInfo v0 (key {self.api_key})"


def is_possible(api_key: int) -> bool:
    """Whether GetReplicaLogInfo can have this key: the KIP's, the patch's, or one that no request of Kafka 4.4 has."""
    return api_key in {dialect.api_key for dialect in Dialect} or FIRST_FREE_KEY <= api_key <= LAST_KEY
