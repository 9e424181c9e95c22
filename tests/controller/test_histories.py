"""What holds of ISR, ELR and LastKnownELR whatever happens to a cluster, and the histories in which it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kelr.controller import RuleSet
from tests.controller.histories import ALL_RULES, KIP966, TOPIC, WITH_ELR, History, Move, Setup, changes, histories
from tests.controller.invariants import COUNTEREXAMPLES, INVARIANTS, Counterexample, Invariant, elr_only_under_min_isr
from tests.properties import examples

PAGE = Path(__file__).resolve().parents[2] / "docs" / "invariants.md"


@pytest.mark.parametrize("invariant", INVARIANTS, ids=str)
def test_promise_is_kept(invariant: Invariant) -> None:
    @examples(50)
    @given(histories(invariant.rules, invariant.moves))
    def kept(history: History) -> None:
        assert invariant.holds(history), described(history)

    kept()


@pytest.mark.parametrize("example", COUNTEREXAMPLES, ids=str)
def test_exception_breaks_the_promise_and_nothing_in_it_is_superfluous(example: Counterexample) -> None:
    moves = example.history.moves
    assert not example.holds(example.history)
    assert len(example.history.steps) == len(moves)
    for left_out in range(len(moves)):
        shorter = History(example.history.setup, moves[:left_out] + moves[left_out + 1 :])
        assert example.holds(shorter), f"{moves[left_out]} is not needed"


@pytest.mark.parametrize("rules", KIP966, ids=str)
def test_no_elr_stays_beside_an_isr_that_meets_a_lowered_min_isr(rules: RuleSet) -> None:
    """Chance alone hardly comes to it: min ISR is lowered while nobody leads, and a member of the ELR returns."""
    moves = (*(Move("fence", broker) for broker in (1, 2, 3)), Move("min isr", number=0), Move("unfence", 2))
    history = History(Setup(rules), moves)
    assert (history.end.min_isr(TOPIC), len(history.steps)) == (1, len(moves))
    assert elr_only_under_min_isr(history), described(history)


def test_page_tells_every_counterexample() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for example in COUNTEREXAMPLES:
        assert f"{example.id}: {told(example.history)}" in " ".join(page.split())


@examples(100)
@given(histories(WITH_ELR))
def test_elr_is_recomputed_under_min_isr_only(history: History) -> None:
    """What remains of "if the ELR is not empty, the ISR is under min ISR": so it is in each run, before it elects."""
    for step, change in changes(history):
        if step.before.rules.elr and change.ballot.elr and change.ballot.elr != change.before.elr:
            assert len(change.ballot.isr) < step.before.min_isr(change.before.topic)


@examples(100)
@given(histories(ALL_RULES))
def test_records_follow_each_other(history: History) -> None:
    """Each record stands on the one before it: epochs never fall, and each record has a partition epoch of its own."""
    for step in history.steps:
        current = dict(step.before.partitions)
        for change in step.handled.changes:
            before, after = current[change.after.address], change.after
            assert change.before == before
            assert after.partition_epoch == (before.partition_epoch or 0) + 1
            assert after.leader_epoch - before.leader_epoch in {0, 1}
            assert after.leader == before.leader or after.leader_epoch > before.leader_epoch
            current[after.address] = after
        assert {address: state.isr for address, state in current.items()} == {
            address: state.isr for address, state in step.after.partitions.items()
        }


def described(history: History) -> str:
    """A history for a person who reads why a property failed."""
    lines = [f"{history.setup}"]
    for step in history.steps:
        lines.append(f"  {step.event}")
        lines += [
            f"    {after.address} leader={after.leader} replicas={after.replicas} isr={after.isr} elr={after.elr}"
            f" last known={after.last_known_elr}"
            for before, after in step.partitions()
            if after != before
        ]
    return "\n".join(lines)


def told(history: History) -> str:
    """A history in one line."""
    setup = history.setup
    unclean = ", unclean elections allowed" if setup.unclean else ""
    moves = ", ".join(_words(move.name, move.broker, move.number) for move in history.moves)
    return (
        f"`{setup.rules.name}`, RF {setup.replication_factor}, min.insync.replicas {setup.min_isr}{unclean}; {moves}."
    )


_VALUES = {"min isr": 1, "cluster min isr": 1, "elr feature": 0}


def _words(name: str, broker: int, number: int) -> str:
    if name in _VALUES:
        return f"{name} {number + _VALUES[name]}"
    return name if name in {"cancel"} else f"{name} {broker}"
