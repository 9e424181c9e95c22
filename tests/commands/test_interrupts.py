"""A sample of the interrupts of `tests.interrupts`: one of each of some commands; `make interrupts` has all of them."""

from __future__ import annotations

from random import Random

import pytest

from kelr.commands.registry import COMMANDS, load
from tests.faults.matrix import Case
from tests.interrupts import EVERY, LIKE_OTHERS, interrupted, marked, of_command

SEED = 966


@pytest.mark.parametrize("case", Random(SEED).sample(EVERY, 8), ids=lambda case: case.command)
def test_a_sample_of_interrupts(case: Case) -> None:
    with marked():
        one = interrupted(case, 0, SEED, span_s=1.0)
    assert not one.findings, str(one)


def test_forked_processes_are_interrupted_as_new_ones() -> None:
    undo = next(at for at, case in enumerate(EVERY) if case.name == "recover undo")
    found = of_command(undo, 4, SEED, None)
    assert [one.new for one in found] == [True, False, False, False]
    assert not any(one.findings for one in found), [str(one) for one in found]


def test_every_command_is_interrupted_or_like_one_that_is() -> None:
    names = set()
    for registered in COMMANDS:
        under = getattr(load(registered), "commands", None)
        names |= {f"{registered.name} {name}" for name in under} if under else {registered.name}
    pressed = {" ".join(case.command.split()[: len(name.split())]) for case in EVERY for name in names}
    assert names - pressed == LIKE_OTHERS
