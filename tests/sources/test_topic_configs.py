"""The configs that elections depend on, as DescribeConfigs tells them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kelr.sources.live.topic_configs import _config

TOPIC, BROKER, CLUSTER, STATIC, DEFAULT = 1, 2, 3, 4, 5


@pytest.mark.parametrize(
    ("strategy", "source", "unclean", "known"),
    [
        ("None", TOPIC, "true", "none"),
        ("Aggressive", CLUSTER, "false", "aggressive"),
        ("balanced", STATIC, "true", "balanced"),
        ("balanced", DEFAULT, "false", "balanced"),
        # unclean.leader.election.enable "will be set to Aggressive" (KIP-966, "Compatibility").
        ("balanced", DEFAULT, "true", None),
        # A value of the broker that answered; the controller elects.
        ("aggressive", BROKER, "false", None),
    ],
)
def test_the_recovery_strategy_is_the_controllers(strategy: str, source: int, unclean: str, known: str | None) -> None:
    configs = [
        SimpleNamespace(name="unclean.leader.election.enable", value=unclean, config_source=TOPIC),
        SimpleNamespace(name="unclean.recovery.strategy", value=strategy, config_source=source),
    ]
    assert _config(configs).recovery_strategy == known
