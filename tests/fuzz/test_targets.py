"""Every fuzzing target with its seeds, and with what a hostile network makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.messages import mutated, mutations
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS
from tests.properties import examples


@pytest.mark.parametrize("name", TARGETS)
def test_true_bytes_are_well(name: str) -> None:
    for seed in seeds()[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data(), changes=mutations())
@examples(60)
def test_mutated_bytes_break_nothing(name: str, data: st.DataObject, changes: Any) -> None:
    TARGETS[name](mutated(data.draw(st.sampled_from(seeds()[name])), changes))
