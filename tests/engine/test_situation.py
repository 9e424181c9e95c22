"""Where a partition stands: every combination of what its records name and who is live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kelr.engine import situation_of
from kelr.model import PartitionState, Situation, controller_min_isr, leader_min_isr
from tests.engine.cases import cluster_of, leaderless

NOBODY = leaderless()


@pytest.mark.parametrize(
    ("state", "live", "situation"),
    [
        (NOBODY, (), Situation.NO_LIVE_REPLICA),
        (NOBODY, (4,), Situation.NO_LIVE_REPLICA),
        (leaderless(isr=(1,)), (1,), Situation.LEADER_PENDING),
        (leaderless(isr=(1,)), (2, 3), Situation.WAITING_FOR_ISR),
        (leaderless(isr=(1,), elr=(2,)), (2,), Situation.WAITING_FOR_ISR),
        (leaderless(elr=(1,)), (1, 3), Situation.LEADER_PENDING),
        (leaderless(elr=(1,)), (2, 3), Situation.WAITING_FOR_ELR),
        (leaderless(elr=(1,), last_known=(2,)), (2,), Situation.WAITING_FOR_ELR),
        (leaderless(elr=None), (1,), Situation.UNKNOWN),
        (leaderless(last_known=None), (1,), Situation.UNKNOWN),
        (leaderless(last_known=(1,)), (1, 2), Situation.LEADER_PENDING),
        (leaderless(last_known=(1,)), (2, 3), Situation.WAITING_FOR_LAST_KNOWN_LEADER),
        (leaderless((0, 1, 2), last_known=(0,)), (1, 2), Situation.WAITING_FOR_LAST_KNOWN_LEADER),
        (leaderless((0, 1, 2), last_known=(0,)), (0,), Situation.LEADER_PENDING),
        (leaderless(last_known=(-1,)), (1,), Situation.NEEDS_UNCLEAN_RECOVERY),
        (leaderless(last_known=(1, 2)), (1,), Situation.NEEDS_UNCLEAN_RECOVERY),
        (NOBODY, (1,), Situation.NEEDS_UNCLEAN_RECOVERY),
    ],
)
def test_a_partition_without_leader(state: PartitionState, live: tuple[int, ...], situation: Situation) -> None:
    dead = tuple({0, 1, 2, 3, 4} - set(live))
    assert situation_of(state, cluster_of(live=live, fenced=dead), 2) is situation


def test_with_elr_off_nobody_waits_for_a_last_known_leader() -> None:
    state = leaderless(last_known=(1,))
    off = cluster_of(live=(1, 2), fenced=(3,), elr=False)
    assert situation_of(state, off, 2) is Situation.NEEDS_UNCLEAN_RECOVERY
    unknown = cluster_of(live=(1, 2), fenced=(3,), elr=None)
    assert situation_of(state, unknown, 2) is Situation.LEADER_PENDING


@pytest.mark.parametrize(
    ("isr", "live", "min_isr", "situation"),
    [
        ((1, 2), (1, 2), 2, Situation.HEALTHY),
        ((1,), (1, 2), 2, Situation.UNDER_MIN_ISR),
        ((1, 2, 3), (2, 3), 2, Situation.LEADER_NOT_LIVE),
        ((1, 2, 3), (1,), None, Situation.HEALTHY),
        ((1, 2), (1, 2, 3), None, Situation.UNKNOWN),
    ],
)
def test_a_partition_with_a_leader(
    isr: tuple[int, ...], live: tuple[int, ...], min_isr: int | None, situation: Situation
) -> None:
    state = replace(leaderless(isr=isr), leader=1)
    assert situation_of(state, cluster_of(live=live, fenced=tuple({1, 2, 3} - set(live))), min_isr) is situation


@pytest.mark.parametrize("capped", [leader_min_isr, controller_min_isr])
def test_the_replica_count_caps_min_isr(capped: Callable[[int | None, int], int | None]) -> None:
    assert (capped(2, 3), capped(3, 1), capped(None, 3)) == (2, 1, None)
