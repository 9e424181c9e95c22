"""The demo's power outage: what each rule set makes of it, and that the numbers are those of the logs."""

from __future__ import annotations

import pytest

from kelr.controller import RULE_SETS, rule_set
from kelr.simulation.outage import BROKERS, IN_MEMORY, WHOLE, outage_under


@pytest.mark.parametrize(
    ("rules", "elected", "back", "lost"),
    [
        # Without ELR the last ISR member leads again, with ELR the last known leader: broker 3, whose log is cut.
        ("kraft", 3, BROKERS, IN_MEMORY),
        ("elr-4.0", 3, BROKERS, IN_MEMORY),
        ("elr-4.1", 3, BROKERS, IN_MEMORY),
        ("elr-4.3", 3, BROKERS, IN_MEMORY),
        ("kip966-none", None, BROKERS, 0),
        # Vanlightly, 5.3.3: both members of LastKnownELR are heard, and the complete one is elected.
        ("kip966-balanced", WHOLE, BROKERS, 0),
        # The first that is back is asked, and nobody else within the window.
        ("kip966-aggressive", 1, (1,), IN_MEMORY),
    ],
)
def test_who_is_elected_and_what_is_lost(rules: str, elected: int | None, back: tuple[int, ...], lost: int) -> None:
    outcome = outage_under(rule_set(rules))
    assert (outcome.elected, outcome.back, outcome.lost) == (elected, back, lost)


@pytest.mark.parametrize("name", RULE_SETS)
def test_every_rule_set_has_an_outcome(name: str) -> None:
    outcome = outage_under(RULE_SETS[name])
    assert outcome.lost in {0, IN_MEMORY}
    assert (outcome.lost == 0) == (outcome.elected in {None, WHOLE})
