"""What an election put at stake is a figure where somebody was heard who held all that was committed, or all were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema

from kelr.fleet.stakes import staked
from kelr.fleet.tables import ELECTIONS, LOG_INFO, PARTITION_STATES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 11, 1, tzinfo=UTC)
CASES: dict[str, tuple[list[int], list[int] | None, dict[int, int], int | None]] = {
    # ISR, ELR and log ends by replica, before an election of 3 among 1, 2 and 3; and the stake.
    "one of the ISR was heard": ([1], None, {1: 110, 3: 100}, 10),
    "one of the ELR was heard": ([], [2], {2: 104, 3: 100}, 4),
    "all were heard": ([], [], {1: 90, 2: 103, 3: 100}, 3),
    "the elected one alone": ([1], [], {3: 100}, None),
    "one that had fallen behind": ([1], [], {2: 95, 3: 100}, None),
}


def seconds(count: int) -> datetime:
    return START + timedelta(seconds=count)


def rows(spark: SparkSession, table: Table, given: list[dict[str, Any]]) -> DataFrame:
    filled = [{"cluster": "c", "date": START.date(), "topic": "orders", **row} for row in given]
    content = pyarrow.Table.from_pylist(filled, schema=to_arrow_schema(table.schema, timezone="UTC"))
    return spark.createDataFrame(content, table.schema)


def test_whom_a_stake_stands_on(spark: SparkSession) -> None:
    elections, logs, states = [], [], []
    for number, (isr, elr, ends, _) in enumerate(CASES.values()):
        here = {"topic_id": "id", "partition": number}
        elections.append(here | {"leader_epoch": 5, "offset": 100, "at": seconds(60), "to_leader": 3})
        states.append(
            here
            | {"leader_epoch": 4, "replicas": [1, 2, 3], "isr": isr, "elr": elr, "source": "log"}
            | {"valid_from": seconds(0), "valid_to": seconds(60)}
        )
        logs += [
            {"partition": number, "leader_epoch": 4, "replica": replica, "log_end": end, "last_epoch": 3}
            | {"read_at": seconds(30)}
            for replica, end in ends.items()
        ]
    found = staked(
        rows(spark, ELECTIONS, elections), rows(spark, LOG_INFO, logs), rows(spark, PARTITION_STATES, states)
    ).collect()
    stakes = {row["partition"]: row["offsets_at_stake"] for row in found}
    assert dict(zip(CASES, (stakes[number] for number in range(len(CASES))), strict=True)) == {
        name: stake for name, (*_, stake) in CASES.items()
    }
