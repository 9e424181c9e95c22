"""A sample of the faults: every kind, at requests of many names, each in one command. `make faults` has all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from tests.faults.matrix import CASES, FAULTS, SILENT, Ran, good_run, strike_once

SEED = 966
NAMES = (
    "AlterPartitionReassignments",
    "ApiVersions",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeQuorum",
    "DescribeTopicPartitions",
    "ElectLeaders",
    "Fetch",
    "GetReplicaLogInfo",
    "InitProducerId",
    "ListGroups",
    "ListOffsets",
    "ListPartitionReassignments",
    "Metadata",
    "Produce",
)
WAITING, NAMED = 3, 6
"""At how many names a fault is tried that costs a timeout, and each of the error codes; the others at all."""


def pairs() -> Iterator[tuple[str, str]]:
    """(fault, name of the request), the same in each run."""
    chance = Random(SEED)
    for fault in FAULTS:
        few = WAITING if fault in SILENT else NAMED if fault.startswith("error") else len(NAMES)
        for name in sorted(chance.sample(NAMES, few)):
            yield fault, name


@cache
def good(number: int) -> tuple[Ran, tuple[str, ...]]:
    ran, seen = good_run(CASES[number])
    return ran, tuple(seen)


@cache
def cases_with(name: str) -> tuple[int, ...]:
    """Commands that make such a request: those that need no others before them, where there are any."""
    alone = [number for number, case in enumerate(CASES) if not case.before]
    others = [number for number, case in enumerate(CASES) if case.before]
    return next(found for group in (alone, others) if (found := tuple(one for one in group if name in good(one)[1])))


@pytest.mark.parametrize(("fault", "name"), list(pairs()))
def test_the_outcome_is_right_or_a_clear_error(fault: str, name: str) -> None:
    chance = Random(f"{SEED}/{fault}/{name}")
    number = chance.choice(cases_with(name))
    ran, seen = good(number)
    at = chance.choice([at for at, one in enumerate(seen) if one == name])
    outcome = strike_once(CASES[number], ran, fault, at)
    assert outcome is None or not outcome.findings, (CASES[number].shown, fault, outcome.api, outcome.ran)
