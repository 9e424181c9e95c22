"""The two forms in which GetReplicaLogInfo was ever written down."""

from __future__ import annotations

from enum import StrEnum


class Dialect(StrEnum):
    """Whose GetReplicaLogInfo a broker speaks."""

    KIP = "kip"
    """KIP-966's text: the request names the broker; what is over the limit is answered with an error."""
    PATCH = "patch"
    """The patch that was merged to trunk in 2025 and reverted: no broker id, and `has_more_replica_log_info`."""

    @property
    def schema(self) -> str:
        """How the names of its schemas begin."""
        return self.value.capitalize()

    @property
    def api_key(self) -> int:
        """The API key that goes with it. A number alone proves nothing: released brokers use both for other things."""
        return {Dialect.KIP: 70, Dialect.PATCH: 93}[self]


REQUEST_LIMIT_REACHED = "REQUEST_LIMIT_REACHED"
"""The KIP's name of the retriable error for each partition over a request's limit."""
REQUEST_LIMIT_REACHED_CODE = 966
"""Its number: kelr's own, since the KIP gives none, and far from any that a release has."""
