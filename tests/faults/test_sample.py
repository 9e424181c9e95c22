"""A sample of the faults: every kind at every request name, each at one command of those that make such a request."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from tests.faults.matrix import CASES, FAULTS, SILENT, Case, Ran, good_run, strike_once

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
CHANGING = {"AlterPartitionReassignments", "ElectLeaders"}


@cache
def good(number: int) -> tuple[Ran, tuple[str, ...]]:
    ran, seen = good_run(CASES[number])
    return ran, tuple(seen)


def case_with(name: str, chance: Random) -> int:
    """A command that makes such a request, tried in random order, so that few good runs are needed."""
    numbers = list(range(len(CASES)))
    chance.shuffle(numbers)
    return next(number for number in numbers if name in good(number)[1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_outcome_is_right_or_a_clear_error(fault: str, name: str) -> None:
    chance = Random(f"{SEED}/{fault}/{name}")
    if fault in SILENT and name not in CHANGING and chance.random() < 0.6:
        pytest.skip("each of these waits for a timeout; `make faults` has them all")
    number = case_with(name, chance)
    case: Case = CASES[number]
    ran, seen = good(number)
    at = chance.choice([at for at, one in enumerate(seen) if one == name])
    outcome = strike_once(case, ran, fault, at)
    assert outcome is None or not outcome.findings, (case.shown, fault, outcome.api, outcome.ran)
