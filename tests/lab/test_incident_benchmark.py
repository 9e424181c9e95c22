"""The book-keeping of `benchmarks.incidents`: what counts as lost, and what counts as worse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.incidents.__main__ import findings
from benchmarks.incidents.advice import Advised, Do, Step, next_step
from benchmarks.incidents.chaos import Chaos
from benchmarks.incidents.count import Lost, lost, total, worse
from benchmarks.incidents.disks import FIRST_MARKER, read_dump
from benchmarks.incidents.engineer import PlanRead
from benchmarks.incidents.ledger import Acked
from benchmarks.incidents.play import has_left, is_settled
from benchmarks.incidents.report import markdown
from benchmarks.incidents.rounds import Round
from kelr.lab.produce import Acks
from kelr.model import PartitionState

DUMP = """\
Dumping /data/broker-1/data/incident-3/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 position: 0
| offset: 0 CreateTime: 7 keySize: 8 valueSize: 16 sequence: -1 headerKeys: [] key: k0000000 payload: acks=all epoch 0
| offset: 1 CreateTime: 7 keySize: 8 valueSize: 16 sequence: -1 headerKeys: [] key: k0000001 payload: acks=all epoch 0
Dumping /data/broker-1/data/incident-12/00000000000000000000.log
Log starting offset: 0
| offset: 7 CreateTime: 1795 keySize: 8 valueSize: 14 sequence: -1 headerKeys: [] key: k0000042 payload: acks=1 epoch 3
"""


def acked(key: str, partition: int, acks: Acks) -> Acked:
    return Acked(key, partition, 0, acks, 0)


def test_a_dump_of_several_segments() -> None:
    assert read_dump(DUMP) == {
        "/data/broker-1/data/incident-3": {"k0000000": 0, "k0000001": 1},
        "/data/broker-1/data/incident-12": {"k0000042": 7},
    }


def test_a_dump_with_a_transaction_of_a_compacted_topic() -> None:
    dump = """\
Dumping /data/incident-3/00000000000000000000.log
baseOffset: 4 lastOffset: 4 count: 1 producerId: 2 producerEpoch: 0 partitionLeaderEpoch: 6 isTransactional: true
| offset: 4 CreateTime: 7 keySize: 2 valueSize: 24 sequence: 0 headerKeys: [] key: c3 payload: k0000017 acks=all epoch 6
baseOffset: 5 lastOffset: 5 count: 1 producerId: 2 producerEpoch: 0 partitionLeaderEpoch: 7 isTransactional: true
| offset: 5 CreateTime: 7 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 0
"""
    assert read_dump(dump) == {"/data/incident-3": {"k0000017": 4, f"k{FIRST_MARKER + 7 * 10**9 + 5}": 5}}


def test_what_was_acknowledged_and_is_nowhere_is_lost() -> None:
    records = [acked("a", 0, Acks.ALL), acked("b", 0, Acks.LEADER), acked("c", 0, Acks.LEADER), acked("d", 1, Acks.ALL)]
    # A key in another partition is no help, and a record that nobody acknowledged is no loss.
    assert lost(records, {0: {"a", "x"}, 1: {"b"}}) == {0: Lost(0, 2), 1: Lost(1, 0)}
    assert total(lost(records, {})) == Lost(2, 2)


def test_records_with_acks_all_weigh_more_than_any_others() -> None:
    mine = {0: Lost(1, 0), 1: Lost(0, 50), 2: Lost(0, 3), 3: Lost(2, 2)}
    theirs = {0: Lost(0, 99), 1: Lost(1, 0), 2: Lost(0, 2), 3: Lost(2, 2)}
    assert worse(mine, theirs) == (0, 2)


def round_of(**losses: Lost) -> Round:
    state = PartitionState("incident", 0, None, 4, (1, 2, 3), ())
    chaos = Chaos("966-1", ((1, 2, 3),), (), (1,), (2,), {3: True})
    records = (acked("a", 0, Acks.ALL), acked("b", 0, Acks.LEADER))
    return Round(chaos, 3, records, 0, {0: state}, {0: Lost(0, 1)}, {name: {0: loss} for name, loss in losses.items()})


def test_findings_name_the_round_and_the_partition() -> None:
    assert findings(round_of(stock=Lost(1, 1), kelr=Lost(0, 1), rescue=Lost(0, 1))) == []
    (worse_than_stock,) = findings(round_of(stock=Lost(0, 1), kelr=Lost(1, 0), rescue=Lost(0, 1)))
    assert worse_than_stock.startswith("round 966-1, partition 0: kelr lost 1 records with acks=all")
    found = findings(round_of(stock=Lost(1, 1), kelr=Lost(1, 1), rescue=Lost(1, 1)))
    assert [line.split(":")[1].split(",")[0] for line in found] == [
        " rescue lost 1 records with acks=all and 1 with acks=1"
    ]


def test_the_table_adds_up() -> None:
    rounds = [round_of(stock=Lost(1200, 1), kelr=Lost(0, 1)), round_of(stock=Lost(1, 0), kelr=Lost())]
    lines = markdown(rounds, ["stock", "kelr"]).splitlines()
    assert "| `kafka-leader-election.sh --election-type UNCLEAN` | 1,201 | 1 | 2 |" in lines
    assert "| `kelr recover plan` and `apply` | 0 | 1 | 1 |" in lines
    assert "| on no disk that anybody could read | 0 | 2 | 2 |" in lines
    assert "| 966-1 | 3 | 3 (disk) | 1 of 1 | 1200 + 1 | 0 + 1 | 0 + 1 |" in lines


def advised(partition: int, action: str, brokers: tuple[int, ...], reason: str) -> Advised:
    return Advised(partition, True, action, brokers, reason)


BACK_1 = advised(
    0, "bring-back", (1,), "Start broker 1. After a clean shutdown, Kafka elects it. If 1 cannot return: look again."
)
HOLD_1 = advised(
    1,
    "hold",
    (1,),
    "Keep broker 1 down: its log lacks 10 offsets that 3 holds. Start 3 first: its return elects no leader, so then"
    " designate 3. If 3 cannot return: start 1, whose log is more complete than that of any live replica.",
)
FIRST_1 = advised(2, "bring-back", (1, 3), "Broker 2 was said to be gone for good. Start broker 1. In the ELR.")
EITHER = advised(3, "bring-back", (1, 3), "Start broker 1 or 3. In the ELR.")
START_1 = advised(4, "bring-back", (1, 3), "Start broker 1 first. Kafka elects it the moment it returns.")
ELECTED_SOON = advised(5, "wait", (1,), "Kafka elects 1 at its next event for this partition: look again.")
LED = Advised(6, False, "restore-replication", (3,), "Start broker 3 (fenced).")


@pytest.mark.parametrize(
    ("plan", "startable", "step"),
    [
        ([BACK_1], (1, 4), Step(Do.START, 1)),
        # 1 can be started, and is not while 3 is the better one for partition 1.
        ([BACK_1, HOLD_1], (1, 3), Step(Do.START, 3)),
        # One partition wants 3 later than 1, another 1 later than 3: as few as can be come out worse.
        ([FIRST_1, HOLD_1, START_1], (1, 3), Step(Do.START, 1)),
        ([FIRST_1, HOLD_1, replace(HOLD_1, partition=7)], (1, 3), Step(Do.START, 3)),
        # Whom it is all the same decides for nobody.
        ([EITHER, HOLD_1], (1, 3), Step(Do.START, 3)),
        ([EITHER], (3,), Step(Do.START, 3)),
        ([ELECTED_SOON, LED], (3,), Step(Do.LOOK_AGAIN)),
        ([LED], (3,), Step(Do.FINISH)),
        ([], (1,), Step(Do.FINISH)),
    ],
)
def test_what_is_done_next(plan: list[Advised], startable: tuple[int, ...], step: Step) -> None:
    assert next_step(plan, startable) == step


def test_a_broker_stays_down_until_what_another_partition_asks_for_is_known() -> None:
    asking = Advised(8, True, "get-more-information", (2,), "Keep broker 1 down for now.", keep_down=(1,))
    assert next_step([BACK_1, asking], (1, 4), can_learn=True) == Step(Do.LOOK_AGAIN)
    assert next_step([BACK_1, asking], (1, 2), can_learn=True) == Step(Do.START, 2)
    assert next_step([BACK_1, asking], (1, 4)) == Step(Do.START, 1)


def test_a_plan_as_kelr_prints_it() -> None:
    left = {"action": "bring-back", "brokers": [1], "reason": BACK_1.reason}
    items = [
        {"partition": 0, "planned": None, "not_planned": left},
        {"partition": 1, "planned": {"rescue": []}, "not_planned": None},
    ]
    plan = PlanRead(Path("plan.json"), {"items": items}, frozenset({0}))
    assert plan.advised == [BACK_1]
    assert len(plan.elections) == 1
    assert not plan.gives_up


def test_a_partition_that_stands_still() -> None:
    led = PartitionState("incident", 0, 1, 4, (1, 2, 3), (1, 2))
    assert is_settled(led, {1, 2})
    assert not is_settled(led, {1, 2, 3})
    assert not is_settled(led, {2, 3})
    assert is_settled(PartitionState("incident", 0, None, 4, (1, 2, 3), ()), {1, 2})


def test_the_last_in_sync_replica_stays_in_the_isr_with_elr_off() -> None:
    led = PartitionState("incident", 0, 1, 4, (1, 2, 3), (1, 2))
    assert has_left(led, {3})
    assert not has_left(led, {2})
    assert not has_left(led, {1})
    assert has_left(PartitionState("incident", 0, None, 4, (1, 2, 3), (1,)), {1})
