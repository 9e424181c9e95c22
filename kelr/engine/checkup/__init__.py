"""What may hurt in the next incident: facts of a cluster in, findings out; pure."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.checkup.features import feature_checks, static_min_isr_checks
from kelr.engine.checkup.nodes import node_checks
from kelr.model.checkup import CheckupFacts, Finding, NotChecked


def cluster_checks(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """Every check that looks at no partition, but for throttles (`kelr.engine.checkup.nodes.throttle_checks`)."""
    yield from node_checks(facts)
    yield from feature_checks(facts)
    yield from static_min_isr_checks(facts)
