"""docs/tla: a broken rule does not keep what the rules keep, and what kelr and Kafka do is what the rules allow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from kelr.controller import ELR_4_3, KIP966_AGGRESSIVE, KIP966_BALANCED, KIP966_NONE, KRAFT, RuleSet
from tests.controller.histories import History, histories
from tests.differential.versions import VERSIONS
from tests.properties import examples
from tests.simulation.lives import Life, Move, Setup
from tests.tla.histories import of_apache, of_state_machine
from tests.tla.models import ENDS, TEETH, Tooth
from tests.tla.recorded_lives import not_accepted, recorded_lives
from tests.tla.steps import RULE_SETS, Step, rejected

SAMPLE = 2
"""How many of the broken rules, and of the rule sets for lives, `make test` tries; `make tla` tries all."""
WITH_LOGS = (ELR_4_3, KIP966_BALANCED, KIP966_NONE, KIP966_AGGRESSIVE, KRAFT)


@pytest.mark.parametrize("tooth", TEETH[:SAMPLE], ids=str)
def test_a_broken_rule_is_found(tooth: Tooth, tmp_path: Path) -> None:
    assert tooth.check(tmp_path / "tlc").violated == tooth.invariant


@pytest.mark.longer
@pytest.mark.parametrize("tooth", [*TEETH[SAMPLE:], *ENDS], ids=str)
def test_every_broken_rule_is_found_and_so_is_what_the_rules_do_not_promise(tooth: Tooth, tmp_path: Path) -> None:
    assert tooth.check(tmp_path / "tlc").violated == tooth.invariant


def _of(rules: RuleSet) -> str:
    return rules.name


@pytest.mark.parametrize("rules", WITH_LOGS[:SAMPLE], ids=_of)
def test_lives_of_partitions_with_logs_are_accepted(rules: RuleSet, tmp_path: Path) -> None:
    assert not_accepted(tmp_path / "tlc", rules, _lives(rules, 60)) is None


@pytest.mark.longer
@pytest.mark.parametrize("rules", WITH_LOGS, ids=_of)
def test_many_lives_of_all_rules_are_accepted(rules: RuleSet, tmp_path: Path) -> None:
    assert not_accepted(tmp_path / "tlc", rules, _lives(rules, 300)) is None


def test_a_life_by_other_rules_is_not_accepted(tmp_path: Path) -> None:
    """Without ELR the last member stays in the ISR."""
    life = Life(Setup(KRAFT), (Move("fence", 1), Move("fence", 2), Move("fence", 3)))
    found = not_accepted(tmp_path / "tlc", ELR_4_3, [life])
    assert found is not None
    assert "fence 2, move 2 of" in found


def test_histories_of_the_state_machine_are_accepted(tmp_path: Path) -> None:
    assert rejected(tmp_path / "tlc", _of_state_machine(200)) == []


def test_what_apaches_classes_do_is_accepted(tmp_path: Path, sequences: int, seed: int) -> None:
    steps = [
        step for kafka, rules in VERSIONS.items() for step in of_apache(kafka, rules, seed, max(1, sequences // 4))
    ]
    assert {step.event for step in steps} >= _OF_APACHE
    assert rejected(tmp_path / "tlc", steps) == []


def test_a_step_that_no_event_makes_is_rejected(tmp_path: Path) -> None:
    """Each set, the leader and its epoch are looked at."""
    step = next(step for step in _of_state_machine(20) if step.after.elr and step.after != step.before)
    after = step.after
    wrong = (
        replace(after, elr=frozenset()),
        replace(after, isr=after.isr | after.elr),
        replace(after, last_known=after.last_known | {9}),
        replace(after, leader=9),
        replace(after, epoch=after.epoch + 1),
    )
    others = [replace(step, after=other) for other in wrong]
    assert set(rejected(tmp_path / "tlc", [step, *others])) == set(others)


def _of_state_machine(count: int) -> list[Step]:
    """The steps of random histories of tests/controller, of every rule set that Controller.tla has."""
    steps: list[Step] = []

    @examples(count)
    @given(histories(tuple(RULE_SETS)))
    def gather(history: History) -> None:
        steps.extend(of_state_machine(history))

    gather()
    return steps


def _lives(rules: RuleSet, count: int) -> list[Life]:
    lives: list[Life] = []

    @examples(count)
    @given(recorded_lives(rules))
    def gather(life: Life) -> None:
        lives.append(life)

    gather()
    return lives


_OF_APACHE = {
    *("nothing", "fenced", "controlled shutdown", "registered", "registered uncleanly", "unfenced", "unregistered"),
    *("directory failed", "directory assigned", "ISR altered", "preferred election", "unclean election"),
    *("reassigned", "cancelled", "min ISR written"),
}
