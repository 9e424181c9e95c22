"""The tables of `kelr fleet exposure`, of clusters small enough to count by hand: two minutes around a Monday."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kelr.fleet.exposure.run import counted, expose, longest
from kelr.fleet.exposure.tables import EXPOSED, EXPOSURE
from kelr.fleet.exposure.wanted import Facts, Wanted
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, ELECTIONS, LOG_INFO, PARTITION_STATES, Table
from kelr.model import ELR_FEATURE
from tests.fleet.exposure_logs import row, when

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.lake import Lake

BEGAN_MS = round(datetime(2026, 11, 1, 23, 59, tzinfo=UTC).timestamp() * 1000)
"""A Sunday; the Monday comes 60 s later."""
BEFORE, AFTER = date(2026, 10, 26), date(2026, 11, 2)
HOUR = 3600

Rows = dict[Table, list[tuple[Any, ...]]]


def at(seconds: float) -> int:
    return BEGAN_MS + round(seconds * 1000)


class Written:
    """Rows of a cluster, seconds from the beginning."""

    def __init__(self, cluster: str, rows: Rows) -> None:
        self.cluster, self.rows = cluster, rows

    def add(self, table: Table, seconds: float, **values: Any) -> None:
        self.rows.setdefault(table, []).append(row(table, self.cluster, at(seconds), **values))

    def state(self, begin: float, end: float | None, offset: int | None, **state: Any) -> None:
        values: dict[str, Any] = {
            "topic": "a",
            "topic_id": "id of a",
            "partition": 0,
            "leader": 1,
            "leader_epoch": 0,
            "replicas": [1, 2, 3],
            "isr": [1, 2, 3],
            "elr": [],
            "min_isr": 2,
            "cause": "alter-partition",
            "source": "log" if offset is not None else "snapshot",
        }
        ends = None if end is None else when(at(end))
        here = {"valid_from": when(at(begin)), "valid_to": ends, "from_offset": offset}
        self.add(PARTITION_STATES, begin, **values | here | state)

    def broker(self, seconds: float, offset: int, broker: int, event: str, **values: Any) -> None:
        known = {"rack": f"az{min(broker, 2)}", "host": f"kafka-{broker}", "port": 9092, "status": "live"}
        here = {"at": when(at(seconds)), "offset": offset, "broker": broker, "event": event, "source": "log"}
        self.add(BROKER_EVENTS, seconds, **known | here | values)

    def end(self, seconds: float, offset: int) -> None:
        self.add(CLUSTER_EVENTS, seconds, at=when(at(seconds)), offset=offset, event="end", source="log")

    def feature(self, level: str, name: str = ELR_FEATURE) -> None:
        here = {"at": when(at(0)), "offset": 0, "event": "feature", "source": "log"}
        self.add(CLUSTER_EVENTS, 0, name=name, after=level, **here)

    def config(self, kind: str, resource: str, key: str, value: str | None) -> None:
        here = {"resource_type": kind, "resource": resource, "key": key, "value": value, "source": "log"}
        self.add(CONFIGS, 0, at=when(at(0)), offset=0, **here)


def logged(rows: Rows) -> None:
    """Topic a: without leader from 30 to 90 s, then elected uncleanly. Topic b: under min ISR from 70 s on. Topic c:
    deleted in trouble. Topic d: the same states to the eye, made by a clock that is behind."""
    one = Written("logged", rows)
    one.state(0, 20, 1)
    one.state(20, 30, 2, isr=[1])
    one.state(30, 40, 3, leader=None, leader_epoch=1, isr=[], elr=[1])
    one.state(40, 90, 4, leader=None, leader_epoch=1, isr=[], elr=[1], cause="not-told")
    one.state(90, None, 9, leader=2, leader_epoch=2, isr=[2], cause="election", recovering=True)
    one.state(0, 70, 5, topic="b", replicas=[1, 2], isr=[1, 2])
    one.state(70, None, 6, topic="b", replicas=[1, 2, 3], isr=[1], adding=[3])
    one.state(0, 10, 7, topic="c", isr=[1])
    one.state(50, 45, 10, topic="d", partition=1, isr=[1])
    one.state(45, 55, 11, topic="d", partition=1)
    one.state(55, None, 12, topic="d", partition=1)
    one.end(120, 13)
    for broker in (1, 2, 3):
        one.broker(0, 0, broker, "seen")
    one.broker(30, 3, 1, "fenced", status="fenced")
    one.broker(10, 1, 2, "registered", restart="unclean", host="fd00::2")
    one.broker(70, 6, 2, "registered", restart="unclean", host="fd00::2")
    one.broker(80, 7, 2, "registered", restart="clean", host="fd00::2")
    one.broker(95, 10, 1, "registered", restart="not-shown")
    elected = {"from_leader": 1, "to_leader": 2, "leader_epoch": 2, "cause": "election", "designated": True}
    partition = {"topic": "a", "topic_id": "id of a", "partition": 0}
    one.add(ELECTIONS, 90, **partition, **elected, at=when(at(90)), offset=9, elected_as="unclean", clean=False)
    one.add(ELECTIONS, 5, **partition, at=when(at(5)), offset=1, elected_as="isr", clean=True, to_leader=1)
    one.add(LOG_INFO, 100, topic="a", partition=0, replica=2, read_at=when(at(100)), log_end=7)
    one.feature("1")
    one.config("cluster", "", "min.insync.replicas", "2")
    one.config("topic", "b", "min.insync.replicas", "2")
    one.config("topic", "a", "unclean.leader.election.enable", "true")


def without_elr(rows: Rows) -> None:
    """ELR off, min ISR in the brokers' files: whether enough are in sync is not known where not all are."""
    one = Written("unknown", rows)
    state = {"replicas": [1, 2], "min_isr": None}
    one.state(0, 30, 1, isr=[1, 2], **state)
    one.state(30, None, 2, isr=[1], **state)
    one.state(0, None, 3, partition=1, isr=[1, 2], replicas=[1, 2], min_isr=None)
    one.feature("30", name="metadata.version")
    one.end(90, 3)


def observed(rows: Rows) -> None:
    """Three snapshots, an hour apart: partition 0 has no leader in the first two of them, and one in the third."""
    one = Written("observed", rows)
    nobody = {"leader": None, "leader_epoch": 3, "isr": [], "elr": [2]}
    one.state(0, HOUR, None, **nobody)
    one.state(HOUR, 2 * HOUR, None, **nobody)
    one.state(2 * HOUR, None, None, leader=2, leader_epoch=4, isr=[2])
    for begin, end in ((0, HOUR), (HOUR, 2 * HOUR), (2 * HOUR, None)):
        one.state(begin, end, None, partition=1)
    # A snapshot of a cluster that has a log adds nothing.
    Written("logged", rows).state(60, None, None, topic="e", leader=None)


@pytest.fixture(scope="module")
def exposed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Facts]:
    from kelr.fleet.lake import Lake  # noqa: PLC0415 - PySpark is loaded where it is used

    rows: Rows = {}
    for tell in (logged, without_elr, observed):
        tell(rows)
    lake = Lake(spark, str(tmp_path_factory.mktemp("exposure") / "lake"))
    with lake.changing() as changes:
        for table, found in rows.items():
            changes.append(table, spark.createDataFrame(found, table.schema).coalesce(1))
        changes.name({"logged": "payments"})
    known = expose(lake, Wanted())
    return lake, known


@pytest.fixture(scope="module")
def tables(exposed: tuple[Lake, Facts]) -> dict[str, list[dict[str, Any]]]:
    lake, _ = exposed
    return {table.name: [one.asDict(recursive=True) for one in lake.read(table).collect()] for table in EXPOSED}


def time_of(tables: dict[str, list[dict[str, Any]]], *key: object) -> tuple[Any, ...]:
    """partitions, spells, seconds, longest, unknown, lasting of (cluster, dimension, name, week, trouble)."""
    found = row_of(tables, *key)
    shown = ("partitions", "spells", "seconds", "longest_seconds", "unknown_seconds", "lasting")
    return tuple(found[name] for name in shown)


def row_of(tables: dict[str, list[dict[str, Any]]], *key: object) -> dict[str, Any]:
    names = ("cluster", "dimension", "name", "week", "trouble")
    (found,) = [one for one in tables["exposure"] if tuple(one[name] for name in names) == key]
    return found


def test_a_spell_over_a_monday_counts_in_both_weeks_and_once_in_all(tables: dict[str, Any]) -> None:
    topic = ("logged", "topic", "a")
    assert time_of(tables, *topic, None, "leaderless") == (1, 1, 60.0, 60.0, 0.0, 0)
    assert time_of(tables, *topic, BEFORE, "leaderless") == (1, 1, 30.0, 30.0, 0.0, 0)
    assert time_of(tables, *topic, AFTER, "leaderless") == (1, 1, 30.0, 30.0, 0.0, 0)
    assert time_of(tables, *topic, None, "elr-only") == (1, 1, 60.0, 60.0, 0.0, 0)
    assert time_of(tables, *topic, None, "last-replica") == (1, 2, 40.0, 30.0, 0.0, 1)
    assert time_of(tables, *topic, BEFORE, "last-replica") == (1, 1, 10.0, 10.0, 0.0, 0)
    assert row_of(tables, *topic, None, "leaderless")["unsure_spells"] == 0, "what is not told lies within it"


def test_what_lasts_lasts_to_the_end_of_the_record(tables: dict[str, Any]) -> None:
    assert time_of(tables, "logged", "topic", "b", None, "under-min-isr") == (1, 1, 50.0, 50.0, 0.0, 1)
    found = row_of(tables, "logged", "topic", "b", AFTER, "under-min-isr")
    assert found["lasting"] == 1
    assert found["lasting_since"].timestamp() * 1000 == at(70)
    assert found["share"] == 50 / 60


def test_a_deleted_topic_is_in_trouble_no_more_and_a_clock_behind_takes_no_time(tables: dict[str, Any]) -> None:
    assert time_of(tables, "logged", "topic", "c", None, "last-replica") == (1, 1, 10.0, 10.0, 0.0, 0)
    assert time_of(tables, "logged", "topic", "d", None, "last-replica") == (1, 1, 0.0, 0.0, 0.0, 0)
    assert row_of(tables, "logged", "topic", "c", None, "last-replica")["partition_seconds"] == 10


def test_a_cluster_has_a_row_for_every_trouble_and_the_time_of_all_partitions(tables: dict[str, Any]) -> None:
    whole = [one for one in tables["exposure"] if one["dimension"] == "cluster" and one["week"] is None]
    assert len(whole) == 3 * 5
    assert {one["partition_seconds"] for one in whole if one["cluster"] == "logged"} == {120.0 + 120 + 10 + 70}
    assert time_of(tables, "logged", "cluster", "logged", None, "min-isr-unknown") == (0, 0, 0.0, 0.0, 0.0, 0)
    assert time_of(tables, "logged", "cluster", "logged", None, "last-replica") == (4, 5, 100.0, 50.0, 0.0, 2)


def test_who_was_missing_is_counted_for_brokers_and_racks(tables: dict[str, Any]) -> None:
    """Broker 1 was missing while nobody led a (60 s), and while broker 2 led it alone (30 s)."""
    assert time_of(tables, "logged", "broker", "1", None, "leaderless") == (1, 1, 60.0, 60.0, 0.0, 0)
    assert time_of(tables, "logged", "broker", "1", None, "last-replica") == (1, 1, 30.0, 30.0, 0.0, 1)
    assert time_of(tables, "logged", "broker", "3", None, "last-replica") == (4, 5, 100.0, 50.0, 0.0, 2)
    assert time_of(tables, "logged", "rack", "az1", None, "last-replica") == (1, 1, 30.0, 30.0, 0.0, 1)
    assert time_of(tables, "logged", "rack", "az2", None, "last-replica") == (4, 5, 100.0, 50.0, 0.0, 2)
    times = {
        (one["dimension"], one["name"]): one["partition_seconds"]
        for one in tables["exposure"]
        if one["cluster"] == "logged" and one["week"] is None
    }
    assert times["broker", "1"] == 320
    assert times["broker", "3"] == 320 - 70
    assert times["rack", "az1"] == times["rack", "az2"] == 320


def test_an_unknown_min_isr_is_told_and_counts_as_unknown(tables: dict[str, Any]) -> None:
    """Where both replicas are in sync, enough are, whatever it is."""
    topic = ("unknown", "topic", "a", None)
    assert time_of(tables, *topic, "min-isr-unknown") == (1, 1, 60.0, 60.0, 0.0, 1)
    assert time_of(tables, *topic, "under-min-isr") == (0, 0, 0.0, 0.0, 60.0, 0)
    assert time_of(tables, *topic, "last-replica") == (1, 1, 60.0, 60.0, 0.0, 1)


def test_between_two_snapshots_only_what_both_show_holds(tables: dict[str, Any]) -> None:
    topic = ("observed", "topic", "a", None)
    assert time_of(tables, *topic, "leaderless") == (1, 1, HOUR, HOUR, HOUR, 0)
    assert time_of(tables, *topic, "elr-only") == (1, 1, HOUR, HOUR, HOUR, 0)
    assert time_of(tables, *topic, "last-replica") == (1, 1, 0.0, 0.0, HOUR, 1)
    found = [one for one in tables["exposure"] if one["cluster"] == "observed" and one["dimension"] == "cluster"]
    assert {one["unknown_share"] for one in found if one["week"] is None} == {0.25}
    assert {one["unsure_spells"] for one in found if one["trouble"] == "leaderless" and one["week"] is None} == {1}


def test_an_unclean_election_with_what_is_known_around_it(tables: dict[str, Any]) -> None:
    (found,) = tables["unclean_elections"]
    told = ("topic", "partition", "from_leader", "to_leader", "designated", "leaderless_seconds", "replicas")
    assert tuple(found[name] for name in told) == ("a", 0, 1, 2, True, 60.0, [1, 2, 3])
    assert (found["others_alive"], found["others_unknown"]) == ([3], [])
    assert (found["offsets_at_stake"], found["stake_unknown"]) == (None, "read-later")


def test_restarts_of_a_broker_by_week(tables: dict[str, Any]) -> None:
    names = ("broker", "week", "registrations", "clean", "unclean", "not_shown")
    assert {tuple(one[name] for name in names) for one in tables["unclean_restarts"]} == {
        (1, None, 1, 0, 0, 1),
        (1, AFTER, 1, 0, 0, 1),
        (2, None, 3, 1, 2, 0),
        (2, BEFORE, 1, 0, 1, 0),
        (2, AFTER, 2, 1, 1, 0),
    }
    assert {one["rack"] for one in tables["unclean_restarts"] if one["broker"] == 2} == {"az2"}


def test_risky_settings_and_where_they_are(tables: dict[str, Any]) -> None:
    names = ("cluster", "scope", "name", "setting", "value", "topics", "partitions")
    assert {tuple(one[name] for name in names) for one in tables["risky_settings"]} == {
        ("logged", "topic", "a", "unclean-enabled", "true", 1, 1),
        ("unknown", "topic", "a", "rf-2", "2", 1, 2),
        ("unknown", "cluster", "", "elr-off", "0", 1, 2),
        ("unknown", "cluster", "", "min-isr-unknown", None, 1, 2),
        ("observed", "cluster", "", "elr-unknown", None, 1, 2),
    }
    commands = {(one["cluster"], one["setting"]): one["command"] for one in tables["risky_settings"]}
    assert commands["logged", "unclean-enabled"] == (
        "kafka-configs.sh --bootstrap-server kafka-1:9092,[fd00::2]:9092,kafka-3:9092 --alter --entity-type topics"
        " --entity-name a"
        " --delete-config unclean.leader.election.enable"
    )
    assert commands["unknown", "min-isr-unknown"] is None, "with two replicas there is no good min ISR"


def test_the_longest_in_trouble_and_those_over_budget(exposed: tuple[Lake, Facts]) -> None:
    lake, known = exposed
    rows = longest(lake, Wanted(), "topic", 2, {"under-min-isr": 55.0})
    assert [(one.cluster, one.cluster_name, one.name, one.over) for one in rows] == [
        ("observed", None, "a", ("under-min-isr",)),
        ("unknown", None, "a", ("under-min-isr",)),
    ]
    found = counted(lake, Wanted(), known, "topic", {"under-min-isr": 55.0})
    assert (found.clusters, found.observed, found.names, found.over) == (3, 1, 6, 2)
    assert (found.unclean_elections, found.unknown_elections, found.again, found.settings) == (1, 0, 1, 5)


def test_only_the_folders_of_the_cluster_and_up_to_the_end_are_read(exposed: tuple[Lake, Facts]) -> None:
    lake, _ = exposed
    wanted = Wanted(("logged",), since_ms=at(30), until_ms=at(50))
    plan = wanted.states(lake)._jdf.queryExecution().executedPlan().toString()
    partitions = plan.partition("PartitionFilters: [")[2].partition("]")[0]
    assert "cluster" in partitions
    assert "logged" in partitions
    assert "date" in partitions
    assert "2026-11-01" in partitions
    pushed = plan.partition("PushedFilters: [")[2].partition("]")[0]
    assert "LessThan(valid_from" in pushed
    assert "Or(IsNull(valid_to)" in pushed


def test_one_cluster_can_be_summed_up_again_and_the_others_stay(exposed: tuple[Lake, Facts]) -> None:
    """The last test: it changes the lake."""
    lake, _ = exposed
    expose(lake, Wanted(("logged",), since_ms=at(40), until_ms=at(80)))
    rows = lake.read(EXPOSURE).where("week is null and trouble = 'leaderless' and dimension = 'cluster'").collect()
    assert {(one.cluster, one.seconds, one.lasting, one.partition_seconds) for one in rows} == {
        ("logged", 40.0, 1, 40.0 + 40 + 30),
        ("unknown", 0.0, 0, 180.0),
        ("observed", float(HOUR), 0, 4.0 * HOUR),
    }
