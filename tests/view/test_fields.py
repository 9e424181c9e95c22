"""Values as the fields of a document, as `dataclasses.asdict` has them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import given

from kelr.controller import RuleSet
from kelr.engine import decide_all
from kelr.model import Snapshot
from kelr.view.explain import as_fields
from tests.engine.snapshots import rule_sets, snapshots


@given(snapshots(), rule_sets)
def test_decisions_have_the_fields_that_asdict_gives(snapshot: Snapshot, rules: RuleSet | None) -> None:
    for decision in decide_all(snapshot, rules):
        found = as_fields(decision)
        assert found == asdict(decision)
        assert list(found) == list(asdict(decision))


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Outer:
    held: Any


@pytest.mark.parametrize("held", [(), [], {}, (Inner(1), None), [Inner(1), (Inner(2),)], {"a": Inner(3)}, "ab", {1, 2}])
def test_what_is_held_becomes_fields_too(held: object) -> None:
    assert as_fields(Outer(held)) == asdict(Outer(held))
    assert type(as_fields(Outer(held))["held"]) is type(held)


def test_what_is_something_else_is_taken_as_it_is() -> None:
    kept = OrderedDict(a=1)
    assert as_fields(Outer(kept))["held"] is kept
