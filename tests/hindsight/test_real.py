"""What `make hindsight-real` does without a cluster: what it judges by, and what it does not wait for."""

from __future__ import annotations

import pytest

from kelr.model import Bounds, Grade, Loss, PartitionState, TopicPartition
from tests.hindsight.claims import Claim, Kind
from tests.hindsight.hindsight import WAIT, Happened, Truth
from tests.hindsight.judge import Verdict
from tests.hindsight.real import hangs_on_the_end, judged_anyhow

AT = TopicPartition("incident", 0)
TRUTH = Truth(
    state=PartitionState("incident", 0, None, 4, (1, 2), ()),
    logs={1: {0: 0, 1: 1}, 2: {0: 0, 1: 1, 2: 2, 3: 3}},
    committed=frozenset({0, 1}),
    acknowledged=frozenset({2, 3}),
    visible=frozenset(),
    deleted=frozenset(),
    deleted_unseen=frozenset(),
    given_up=frozenset(),
    clean={},
    torn=frozenset(),
    marks={},
    offsets={},
)
HAPPENED = Happened(WAIT, None, 1, frozenset({1}), {1: {0: 0, 1: 1}, 2: {0: 0, 1: 1}}, 1)


def claim(kind: Kind, *, total: int = 2, committed: int = 0) -> Claim:
    loss = Loss(Grade.BOUNDED, committed=Bounds(committed, committed), total=Bounds(total, total))
    return Claim(kind, AT, WAIT, loss, 1)


@pytest.mark.parametrize(("committed", "verdict"), [(0, "right"), (1, "right"), (2, "right"), (3, "wrong")])
def test_how_far_a_dead_leaders_high_watermark_had_come_is_left_open(committed: int, verdict: str) -> None:
    assert judged_anyhow(claim(Kind.COMMITTED, committed=committed), TRUTH, HAPPENED).verdict == Verdict(verdict)


def test_what_is_lost_in_all_hangs_on_no_high_watermark() -> None:
    assert judged_anyhow(claim(Kind.TOTAL, total=2), TRUTH, HAPPENED).verdict is Verdict.RIGHT
    assert judged_anyhow(claim(Kind.TOTAL, total=1), TRUTH, HAPPENED).verdict is Verdict.WRONG


def test_a_loss_is_seen_in_the_end_where_its_replica_was_elected() -> None:
    assert hangs_on_the_end(claim(Kind.TOTAL), {0: 1})
    assert not hangs_on_the_end(claim(Kind.TOTAL), {0: 2})
    assert not hangs_on_the_end(claim(Kind.WINNER), {0: 1})
    assert hangs_on_the_end(Claim(Kind.ALL_CLEAR, AT, WAIT, None), {0: 1})
