"""What an election put at stake is a figure where somebody was heard who held all that was committed, or all were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from kelr.fleet.stakes import Stakes
from kelr.fleet.tables import CLUSTER_EVENTS, ELECTIONS, LOG_INFO, PARTITION_STATES, Table, arrow_schema
from kelr.model import ELR_FEATURE

START = datetime(2026, 11, 1, tzinfo=UTC)
CASES: dict[str, tuple[list[int], list[int] | None, dict[int, int], int | None]] = {
    # ISR, ELR and log ends by replica, before an election of 3 among 1, 2 and 3; and the stake.
    "one of the ISR was heard": ([1], None, {1: 110, 3: 100}, 10),
    "one of the ELR was heard": ([], [2], {2: 104, 3: 100}, 4),
    "all were heard": ([], [], {1: 90, 2: 103, 3: 100}, 3),
    "the elected one alone": ([1], [], {3: 100}, None),
    "one that had fallen behind": ([1], [], {2: 95, 3: 100}, None),
}
WAITED_FROM, ELECTED_AT = 50, 70
"""Offsets of the records by which nobody led, and by which 3 did."""
ON, OFF = "1", "0"
LEVELS: dict[str, tuple[list[tuple[int, str]], bool]] = {
    # Where ELR was turned on and off; and whether the last one of the ISR is sure to hold all that was committed.
    "on since long": ([(1, ON)], True),
    "on where nobody led any more": ([(WAITED_FROM, ON)], True),
    "on again before": ([(1, ON), (20, OFF), (30, ON)], True),
    "off again by the election": ([(1, ON), (ELECTED_AT, OFF)], True),
    "at another level meanwhile": ([(1, ON), (60, "2")], True),
    "not on record": ([], False),
    "off since long": ([(1, OFF)], False),
    "off before": ([(1, ON), (20, OFF)], False),
    "on only while nobody led": ([(60, ON)], False),
    "off for a while in which nobody led": ([(1, ON), (55, OFF), (60, ON)], False),
}


def seconds(count: int) -> datetime:
    return START + timedelta(seconds=count)


def rows(table: Table, given: list[dict[str, Any]], cluster: str) -> pa.Table:
    filled = [{"cluster": "c", "date": START.date(), "topic": "orders", **row} for row in given]
    known = [{name: value for name, value in row.items() if name in table.columns} for row in filled]
    return pa.Table.from_pylist([row for row in known if row["cluster"] == cluster], schema=arrow_schema(table))


def level(offset: int | None, value: str, **other: str) -> dict[str, Any]:
    given = {"event": "feature", "name": ELR_FEATURE, "after": value, "source": "log"}
    return given | {"at": START, "offset": offset} | other


class Told:
    """What a lake has of elections of 3 among 1, 2 and 3."""

    def __init__(self) -> None:
        self.elections: list[dict[str, Any]] = []
        self.states: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []

    def add(self, here: dict[str, Any], isr: list[int], elr: list[int] | None, ends: dict[int, int]) -> None:
        self.elections.append(
            here | {"topic_id": "id", "leader_epoch": 5, "offset": ELECTED_AT, "at": seconds(60), "to_leader": 3}
        )
        self.states.append(
            here
            | {"topic_id": "id", "leader_epoch": 4, "replicas": [1, 2, 3], "isr": isr, "elr": elr, "source": "log"}
            | {"valid_from": seconds(0), "valid_to": seconds(60), "from_offset": WAITED_FROM}
        )
        self.logs += [
            here | {"leader_epoch": 4, "replica": replica, "log_end": end, "last_epoch": 3, "read_at": seconds(30)}
            for replica, end in ends.items()
        ]

    def stakes(self, levels: list[dict[str, Any]], by: str) -> dict[Any, int | None]:
        found: dict[Any, int | None] = {}
        for cluster in {row.get("cluster", "c") for row in self.elections}:
            stakes = Stakes()
            assert stakes.take_logs([rows(LOG_INFO, self.logs, cluster)])
            stakes.take_levels([rows(CLUSTER_EVENTS, levels, cluster)])
            stakes.take_states([rows(PARTITION_STATES, self.states, cluster)])
            elections = stakes.added(rows(ELECTIONS, self.elections, cluster))
            assert stakes.added(elections) is elections, "nothing changes any more"
            found |= {row[by]: row["offsets_at_stake"] for row in elections.to_pylist()}
        return found


def test_whom_a_stake_stands_on() -> None:
    told = Told()
    for number, (isr, elr, ends, _) in enumerate(CASES.values()):
        told.add({"partition": number}, isr, elr, ends)
    stakes = told.stakes([level(1, ON)], "partition")
    assert dict(zip(CASES, (stakes[number] for number in range(len(CASES))), strict=True)) == {
        name: stake for name, (*_, stake) in CASES.items()
    }


def test_the_last_in_sync_is_one_to_stand_on_only_with_elr() -> None:
    """Without it, the last one of the ISR stays in it after an unclean shutdown, whatever its log lacks then."""
    told, levels = Told(), []
    for name, (turned, _) in LEVELS.items():
        told.add({"cluster": name, "partition": 0}, [1], [], {1: 110, 3: 100})
        levels += [level(offset, value, cluster=name) for offset, value in turned]
    for name in ("not on record", "off since long"):
        told.add({"cluster": name + ", all heard", "partition": 0}, [1], [], {1: 110, 2: 90, 3: 100})
    levels.append(level(None, ON, cluster="not on record", source="snapshot"))
    levels.append(level(1, ON, cluster="not on record", name="another.feature"))
    assert told.stakes(levels, "cluster") == {
        **{name: 10 if sure else None for name, (_, sure) in LEVELS.items()},
        "not on record, all heard": 10,
        "off since long, all heard": 10,
    }


def test_what_tells_nothing_is_no_figure() -> None:
    """Logs that were read too early or too late, of another epoch, or whose epochs cannot be compared."""
    told = Told()
    odd = (
        {"read_at": seconds(-1)},
        {"read_at": seconds(61)},
        {"leader_epoch": 3},
        {"last_epoch": 4},
        {"last_epoch": None},
    )
    for number, change in enumerate(odd):
        told.add({"partition": number}, [1], [], {1: 110, 3: 100})
        told.logs[-2] |= change
    told.add({"partition": len(odd)}, [1], [], {1: 110, 2: 90, 3: 100})
    told.logs[-2] |= {"log_end": None}
    stakes = told.stakes([level(1, ON)], "partition")
    assert stakes == {**dict.fromkeys(range(len(odd))), len(odd): 10}


def test_of_several_readings_the_last_counts_and_is_named() -> None:
    told = Told()
    told.add({"partition": 0}, [1], [], {1: 110, 3: 100})
    told.logs.append(told.logs[0] | {"log_end": 120, "read_at": seconds(45)})
    stakes = Stakes()
    stakes.take_logs([rows(LOG_INFO, told.logs, "c")])
    stakes.take_levels([rows(CLUSTER_EVENTS, [level(1, ON)], "c")])
    stakes.take_states([rows(PARTITION_STATES, told.states, "c")])
    (row,) = stakes.added(rows(ELECTIONS, told.elections, "c")).to_pylist()
    assert row["offsets_at_stake"] == 20
    assert row["stake_source"] == "log_info: 2 logs read, the last at 2026-11-01 00:00:45"
