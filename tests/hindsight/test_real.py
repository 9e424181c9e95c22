"""What `make hindsight-real` does without a cluster: what it judges by, and what it does not wait for."""

from __future__ import annotations

import pytest

from benchmarks.incidents.disks import FIRST_MARKER
from benchmarks.incidents.ledger import Acked
from kelr.lab.produce import Acks
from kelr.model import Bounds, Loss, LossCertainty, PartitionState, TopicPartition
from tests.hindsight.breakable import broker_of
from tests.hindsight.claims import Claim, Kind
from tests.hindsight.hindsight import WAIT, Happened, Truth
from tests.hindsight.judge import Verdict
from tests.hindsight.real import hangs_on_the_end, judged_anyhow, uncleaned

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
    loss = Loss(LossCertainty.BOUNDED, committed=Bounds(committed, committed), total=Bounds(total, total))
    return Claim(kind, AT, WAIT, loss, 1)


@pytest.mark.parametrize(("committed", "verdict"), [(0, "right"), (1, "right"), (2, "right"), (3, "wrong")])
def test_how_far_a_dead_leaders_high_watermark_had_come_is_left_open(committed: int, verdict: str) -> None:
    assert judged_anyhow(claim(Kind.COMMITTED, committed=committed), TRUTH, HAPPENED).verdict == Verdict(verdict)


def test_what_is_lost_in_all_hangs_on_no_high_watermark() -> None:
    assert judged_anyhow(claim(Kind.TOTAL, total=2), TRUTH, HAPPENED).verdict is Verdict.RIGHT
    assert judged_anyhow(claim(Kind.TOTAL, total=1), TRUTH, HAPPENED).verdict is Verdict.WRONG


def test_what_a_log_cleaner_took_is_still_held() -> None:
    acked = [Acked(f"k{record}", 0, offset, Acks.ALL, 1) for record, offset in ((1, 0), (2, 1), (3, 2), (4, 1), (5, 2))]
    marker = FIRST_MARKER + 3
    # 1 and 2 were taken; 4 was written at the offset of 2 after another election, and what is left is older.
    assert uncleaned({2: 3, 3: marker}, acked) == {0: 1, 1: 2, 2: 3, 3: marker}
    assert uncleaned({2: 5}, acked) == {0: 1, 1: 4, 2: 5}
    assert uncleaned({}, acked) == {}


@pytest.mark.parametrize(("client", "broker"), [("1", 1), ("raft-client-2", 2), ("broker-3-fetcher-0", 3)])
def test_a_relay_knows_whose_request_it_is(client: str, broker: int) -> None:
    head = (40).to_bytes(4, "big") + bytes(8) + len(client).to_bytes(2, "big")
    assert broker_of(head + client.encode() + b"\x00\x05 9") == broker


def test_a_loss_is_seen_in_the_end_where_its_replica_was_elected() -> None:
    assert hangs_on_the_end(claim(Kind.TOTAL), {0: 1})
    assert not hangs_on_the_end(claim(Kind.TOTAL), {0: 2})
    assert not hangs_on_the_end(claim(Kind.WINNER), {0: 1})
    assert hangs_on_the_end(Claim(Kind.ALL_CLEAR, AT, WAIT, None), {0: 1})
