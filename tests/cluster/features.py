"""Features of a cluster raised and lowered, as kafka-features.sh does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kelr.lab import Lab
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.transport import Failure, Request

ELR = "eligible.leader.replicas.version"


def ask(lab: Lab, question: Request, *, node: int | None = None) -> Any:
    """One request to a broker; any will do unless one is named."""
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        source.cluster()
        _, transport, brokers = source.reached()
        answer = transport.exchange(brokers.favourite if node is None else node, question)
    assert not isinstance(answer, Failure), answer
    return answer


def set_features(lab: Lab, levels: Mapping[str, int], *, up: bool) -> None:
    """Raise or lower feature levels."""
    updates = [
        {"feature": name, "max_version_level": level, "upgrade_type": 1 if up else 2} for name, level in levels.items()
    ]
    fields = {"timeout_ms": 20_000, "feature_updates": updates, "validate_only": False}
    answer = ask(lab, Request("UpdateFeatures", fields, min_version=1))
    assert answer.error_code == 0, answer
