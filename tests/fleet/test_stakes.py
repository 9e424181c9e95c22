"""What an election put at stake is a figure where somebody was heard who held all that was committed, or all were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kelr.fleet.stakes import staked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 11, 1, tzinfo=UTC)
ELECTIONS = (
    "cluster string, topic string, topic_id string, partition int, leader_epoch int, offset long, at timestamp,"
    " to_leader int, offsets_at_stake long, stake_source string"
)
LOGS = (
    "cluster string, topic string, partition int, leader_epoch int, replica int, read_at timestamp, log_end long,"
    " last_epoch int"
)
STATES = (
    "cluster string, topic string, topic_id string, partition int, leader int, leader_epoch int, replicas array<int>,"
    " isr array<int>, elr array<int>, valid_from timestamp, valid_to timestamp, source string"
)
CASES = {
    # (ISR, ELR, ends by replica) of an election of 3 among 1, 2 and 3: the stake
    "one of the ISR was heard": ([1], None, {1: 110, 3: 100}, 10),
    "one of the ELR was heard": ([], [2], {2: 104, 3: 100}, 4),
    "all were heard": ([], [], {1: 90, 2: 103, 3: 100}, 3),
    "the elected one alone": ([1], [], {3: 100}, None),
    "one that had fallen behind": ([1], [], {2: 95, 3: 100}, None),
}


def seconds(count: int) -> datetime:
    return START + timedelta(seconds=count)


def test_whom_a_stake_stands_on(spark: SparkSession) -> None:
    elections, logs, states = [], [], []
    for number, (isr, elr, ends, _) in enumerate(CASES.values()):
        elections.append(("c", "orders", "id", number, 5, 100, seconds(60), 3, None, None))
        logs += [("c", "orders", number, 4, replica, seconds(30), end, 3) for replica, end in ends.items()]
        states.append(
            ("c", "orders", "id", number, None, 4, [1, 2, 3], isr, elr, seconds(0), seconds(60), "log"),
        )
    found = staked(
        spark.createDataFrame(elections, ELECTIONS),
        spark.createDataFrame(logs, LOGS),
        spark.createDataFrame(states, STATES),
    )
    stakes = {row["partition"]: row["offsets_at_stake"] for row in found.collect()}
    assert dict(zip(CASES, (stakes[number] for number in range(len(CASES))), strict=True)) == {
        name: stake for name, (*_, stake) in CASES.items()
    }
