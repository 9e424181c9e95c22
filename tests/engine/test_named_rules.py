"""A rule set that somebody names is told from the one that the cluster runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_1, ELR_4_1_0, ELR_4_3, KIP966, KRAFT, RuleSet
from kelr.engine import decide, decide_all
from kelr.model import ELR_FEATURE, METADATA_FEATURE, Features, Situation, Snapshot
from tests.incident import CLUSTER, INCIDENT

CERTAIN = INCIDENT
"""Found to run elr-4.1, and nothing else fits."""
GUESSED = replace(
    INCIDENT,
    cluster=replace(CLUSTER, features=Features({ELR_FEATURE: 1, METADATA_FEATURE: 27}, {METADATA_FEATURE: 27})),
)
"""May run elr-4.1 or elr-4.1.0."""
ON_PAPER = replace(INCIDENT, cluster=replace(CLUSTER, partitions_source="scenario"))


@pytest.mark.parametrize(
    ("snapshot", "rules", "cluster_rules"),
    [
        (CERTAIN, None, None),
        (CERTAIN, ELR_4_1, None),
        (CERTAIN, ELR_4_0, "elr-4.1"),
        (CERTAIN, KRAFT, "elr-4.1"),
        (CERTAIN, KIP966, "elr-4.1"),
        (GUESSED, ELR_4_1_0, None),
        (GUESSED, KIP966, "elr-4.1"),
        (ON_PAPER, ELR_4_3, None),
        (ON_PAPER, KIP966, None),
    ],
)
def test_the_cluster_runs_others(snapshot: Snapshot, rules: RuleSet | None, cluster_rules: str | None) -> None:
    assert {decision.cluster_rules for decision in decide_all(snapshot, rules)} == {cluster_rules}


def test_no_summary_says_that_an_unknown_min_isr_is_met() -> None:
    secret = decide(INCIDENT, INCIDENT.partitions[4])
    assert (secret.min_isr, secret.situation) == (None, Situation.UNKNOWN)
    assert secret.summary.endswith("whether min ISR is met is not known; 2 is not in sync.")
    for rules in (None, ELR_4_0, KRAFT, KIP966):
        for decided in decide_all(replace(INCIDENT, configs={}), rules):
            assert decided.min_isr is None
            assert "min ISR is met;" not in decided.summary
