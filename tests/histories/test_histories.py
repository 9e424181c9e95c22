"""Whole histories: a sample with fixed seeds, and every one that once went wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext

import pytest

from tests.histories import history
from tests.histories.found import FOUND
from tests.histories.history import play
from tests.histories.shrink import shrunk
from tests.histories.sometimes import missed, wanted

SAMPLE = 3000
"""`make histories` plays more."""


@pytest.mark.parametrize("part", range(10))
def test_a_sample(part: int) -> None:
    wrong = [played for seed in range(part, SAMPLE, 10) if (played := play(seed)).wrong]
    assert not wrong, {one.seed: (one.wrong, shrunk(one.seed, one.schedule)) for one in wrong[:1]}


@pytest.mark.parametrize("name", FOUND)
def test_what_went_wrong_once(name: str) -> None:
    played = play(*FOUND[name])
    assert not played.wrong, played.trace


def test_what_never_came_about_is_named() -> None:
    reached: Counter[str] = Counter()
    for seed in range(20):
        reached.update(play(seed).reached)
    never = set(missed(reached))
    assert missed({}) == tuple(dict.fromkeys(wanted()))
    assert "told done" not in never
    assert never < set(wanted())
    assert any(name.startswith("refused by recovery/journal_store.py: refuse_open_journals") for name in wanted())


def test_a_history_is_the_same_from_its_schedule() -> None:
    for seed in range(20):
        drawn = play(seed)
        assert play(seed, drawn.schedule).digest == drawn.digest


def test_a_history_is_the_same_where_every_decision_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = [play(seed).digest for seed in range(20)]
    monkeypatch.setattr(history, "Decided", nullcontext)
    assert [play(seed).digest for seed in range(20)] == shared


def test_a_history_is_the_same_whatever_python_hashes_with() -> None:
    """Nothing of it hangs on the order of a set."""
    program = "from tests.histories.history import play; print(*(play(seed).digest for seed in range(20)))"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop().split()) == 20
