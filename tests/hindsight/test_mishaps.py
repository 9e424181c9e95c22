"""What happens to the clusters of `make hindsight-real` besides their scripts."""

from __future__ import annotations

from kelr.lab.chaos import random_chaos
from tests.hindsight.mishaps import MISHAPS, Setting, setting


def _of(number: int) -> Setting:
    brokers = 3 + number % 3
    return setting(random_chaos(f"966-{number}", brokers=brokers, partitions=12), brokers)


def test_a_seed_is_a_setting() -> None:
    assert _of(7) == _of(7)
    assert _of(7) != _of(10)


def test_thirty_rounds_have_every_mishap_and_every_number_of_replicas() -> None:
    rounds = [_of(number) for number in range(1, 31)]
    drawn = {mishap.name for one in rounds for due in one.mishaps.values() for mishap in due}
    assert drawn == set(MISHAPS)
    assert {len(one.chaos.layouts[0]) for one in rounds} == {1, 2, 3, 4}
    assert {one.elr for one in rounds} == {True, False}
    assert all(len(set(layout)) == len(layout) for one in rounds for layout in one.chaos.layouts)
