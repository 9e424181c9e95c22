"""`kelr fleet report` on a lake: the sums, the files that it writes, and the command."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

from kelr.commands.main import main
from kelr.errors import BadInputError
from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.lake import Lake, Version
from kelr.fleet.report import written
from kelr.fleet.report.figures import (
    Broker,
    BrokerRestarts,
    Failures,
    Figures,
    Standing,
    TopicCount,
    UncleanDay,
    UncleanElections,
    WeekTrouble,
)
from kelr.fleet.report.pages import report_of
from kelr.fleet.report.sums import clusters, figures_of, newest_states
from kelr.fleet.report.written import write_report
from kelr.fleet.tables import (
    BROKER_EVENTS,
    CLUSTER_EVENTS,
    INPUTS,
    PARTITION_STATES,
    DataFile,
    Table,
    arrow_schema,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)
DAY = NOON.date()
MONDAY = date(2026, 11, 9)


def content(table: Table, given: Iterable[Mapping[str, Any]]) -> pyarrow.Table:
    """Rows of which what is not given is not known."""
    return pyarrow.Table.from_pylist([{"date": DAY, **row} for row in given], schema=arrow_schema(table))


def rows(spark: SparkSession, table: Table, given: Iterable[Mapping[str, Any]]) -> DataFrame:
    """The same for Spark; by Arrow, so that no Python worker has to bring them."""
    return spark.createDataFrame(content(table, given), table.schema)


def state(cluster: str, topic: str, partition: int, **more: Any) -> dict[str, Any]:
    """How a partition of three replicas stands since noon: led by 1, all in sync."""
    return {
        **{"cluster": cluster, "topic": topic, "partition": partition, "valid_from": NOON, "leader": 1},
        **{"replicas": [1, 2, 3], "isr": [1, 2, 3], "elr": [], "min_isr": 2, "source": "log", **more},
    }


STATES = (
    state("a", "t", 0),
    state("a", "t", 1, leader=None, isr=[], elr=[2]),
    state("a", "t", 2, leader=None, isr=[3], elr=None),
    state("a", "u", 0, isr=[1]),
    state("a", "u", 1, min_isr=None),
    state("a", "u", 2, leader=None, isr=[], valid_to=NOON + timedelta(hours=1)),
    state("a", "t", 0, source="snapshot", leader=None, isr=[]),
    state("b", "v", 0, source="snapshot", replicas=[1], isr=[1], min_isr=1),
    state("b", "gone", 0, source="snapshot", leader=None, isr=[], valid_from=NOON - timedelta(hours=1)),
)
"""a has a log, and a snapshot that saw less; one row of it is no longer so. b has snapshots alone, the newer of which
does not show a topic that had no leader in the older one."""
BROKERS = (
    *(
        {"cluster": "a", "broker": 1, "at": NOON - timedelta(hours=hours), "offset": offset, "status": status, **more}
        for hours, offset, status, more in (
            (9, 5, "live", {"host": "one", "port": 9092, "rack": "az1"}),
            # The clock of another controller went back.
            (10, 7, "fenced", {}),
        )
    ),
    {"cluster": "a", "broker": 2, "at": NOON, "offset": 6, "status": "live", "host": "fe80::2", "port": 1},
    {"cluster": "a", "broker": 3, "at": NOON, "offset": 8, "status": "unregistered", "host": "three", "port": 1},
)
SUMS = dict.fromkeys(("may_lose", "unproven", "leaderless", "elr_only", "under_min_isr", "min_isr_unknown"), 0)


def assessed(scenario: str, kind: str, rules: str, certain: bool, **counts: Any) -> dict[str, Any]:
    return {
        **{
            "cluster": "a",
            "scenario": scenario,
            "kind": kind,
            "rules": rules,
            "rules_certain": certain,
            "newest": True,
            "partitions": 5,
        },
        **{"brokers": [1], "happens": f"{scenario}!", **SUMS, "last_replica": 0, "doubtful": 0, **counts},
    }


def election(partition: int, elected_as: str, hour: int, **more: Any) -> dict[str, Any]:
    at = NOON.replace(hour=hour)
    return {"cluster": "a", "topic": "t", "partition": partition, "at": at, "elected_as": elected_as, **more}


def exposed(name: str, dimension: str, trouble: str, seconds: float, week: date | None = None) -> dict[str, Any]:
    return {
        **{"cluster": "a", "dimension": dimension, "name": name, "week": week, "trouble": trouble, "window_from": NOON},
        **{"partitions": 2, "spells": 3, "seconds": seconds, "longest_seconds": seconds, "unknown_seconds": 1.0},
        **{"share": 0.5, "unknown_share": 0.1, "lasting": 1, "unsure_spells": 0},
    }


class InMemory:
    """Stands for a lake whose tables need not be written first."""

    place = "lake"

    def __init__(self, given: Mapping[Table, Iterable[Mapping[str, Any]]]) -> None:
        self._tables = {table.name: content(table, some) for table, some in given.items()}
        self.version = Version(3, 1_000, tables=dict.fromkeys(self._tables, 1), clusters={"a": "payments"})

    def files_of(self, table: Table) -> frozenset[DataFile]:
        return frozenset({DataFile("part-0.parquet", 1, 0, {})} if table.name in self._tables else ())

    def dataset(self, table: Table) -> pyarrow.dataset.Dataset:
        return pyarrow.dataset.dataset(self._tables[table.name])

    def options(self, place: str) -> tuple[()]:
        del place
        return ()


@pytest.fixture(scope="module")
def full() -> Lake:
    """What every step has written to."""
    given: dict[Table, Iterable[Mapping[str, Any]]] = {
        PARTITION_STATES: STATES,
        BROKER_EVENTS: [{"source": "log", **row} for row in BROKERS],
        CLUSTER_EVENTS: [{"cluster": "a", "at": NOON, "offset": 9, "event": "end", "source": "log"}],
        ASSESSMENT_SUMS: (
            assessed("now", "now", "elr-4.3", True, leaderless=2, unproven=1),
            assessed("broker 1 killed", "broker", "elr-4.3", True, may_lose=4, doubtful=1, worst_topics=["t"]),
            assessed("broker 2 killed", "broker", "elr-4.3", True, leaderless=9),
            *(assessed(f"broker {n} stopped", "broker", "elr-4.3", True) for n in range(3, 20)),
            assessed("broker 1 killed", "broker", "kraft", False, may_lose=400),
        ),
        EXPOSURE: (
            exposed("a", "cluster", "leaderless", 7_200.0),
            exposed("a", "cluster", "leaderless", 7_000.0, MONDAY),
            *(exposed(f"t{size}", "topic", "leaderless", float(size)) for size in range(9)),
        ),
        UNCLEAN_ELECTIONS: (
            election(0, "unclean", 1, offsets_at_stake=5, designated=True),
            election(0, "last-known-leader", 3),
            election(1, "unclean", 2, offsets_at_stake=7),
            election(2, "unknown", 4),
        ),
        UNCLEAN_RESTARTS: (
            {
                "cluster": "a",
                "broker": 1,
                "clean": 1,
                "unclean": 2,
                "not_shown": 3,
                "last_unclean": NOON,
                "rack": "az1",
            },
            {"cluster": "a", "broker": 1, "clean": 1, "unclean": 2, "not_shown": 3, "week": MONDAY},
            {"cluster": "a", "broker": 2, "clean": 1, "unclean": 0, "not_shown": 3},
        ),
        RISKY_SETTINGS: (
            *(
                {
                    "cluster": "a",
                    "scope": "topic",
                    "name": f"t{size}",
                    "setting": "rf-1",
                    "why": "one replica",
                    "rule": "Kafka",
                    "topics": 1,
                    "partitions": size,
                }
                for size in range(1, 10)
            ),
        ),
    }
    given[INPUTS] = ({"path": "x", "cluster": "a", "status": status} for status in ("ingested", "quarantined"))
    return cast("Lake", InMemory(given))


@pytest.fixture(scope="module")
def figures(full: Lake) -> Figures:
    return figures_of(full)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is in a time zone of its own."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_how_clusters_stand(figures: Figures) -> None:
    a, b = sorted(figures.clusters, key=lambda one: one.id)
    assert a.standing == Standing(5, 2, 1, 1, 1, 1, 1), "by the log alone, as it is now"
    assert a.brokers == (Broker(1, False, "one:9092", "az1"), Broker(2, True, "[fe80::2]:1", None))
    assert (a.name, a.from_log, a.servers) == ("payments", True, ("[fe80::2]:1",))
    assert (a.begins, a.ends) == (NOON - timedelta(hours=10), NOON)
    assert a.leaderless_topics == (TopicCount("t", 2),)
    assert b.standing == Standing(1)
    assert (b.name, b.from_log, b.begins, b.brokers) == ("b", False, None, ())


def test_what_they_went_through(figures: Figures) -> None:
    assert figures.windows == (("a", NOON, None),)
    assert figures.weeks == (WeekTrouble("a", MONDAY, "leaderless", 2, 3, 7_000.0, 1.0),)
    assert [(one.topic, one.seconds) for one in figures.troubles] == [
        (None, 7_200.0),
        *((f"t{size}", float(size)) for size in (8, 7, 6, 5, 4)),
    ]
    first, last = NOON.replace(hour=1), NOON.replace(hour=4)
    topics = (TopicCount("t", 3),)
    assert figures.elections == (UncleanElections("a", 2, 1, 1, 2, first, last, 12, 2, 1, topics),)
    assert figures.election_days == (UncleanDay("a", DAY, 3),)
    assert figures.restarts == (BrokerRestarts("a", 1, "az1", None, 1, 2, 3, NOON),)
    (setting,) = figures.settings
    assert (setting.places, setting.topics, setting.partitions) == (9, 9, 45)
    assert [place.name for place in setting.examples] == ["t9", "t8", "t7", "t6", "t5"]
    assert figures.quarantined == 1
    assert [one.what for one in figures.missing] == [
        "what failures would do in b: not assessed, as none of its brokers is on record: ingest its metadata log first",
        "how long there was trouble, unclean elections and restarts, risky settings in b: not summed up, or nothing of"
        " it is in the window",
    ]
    assert figures.missing[1].command == ("fleet", "exposure", "--lake", "lake", "--cluster", "b")


SOURCES = (("a", "log"), ("b", "snapshot"))


def test_a_cluster_stands_as_of_the_end_of_its_log_also_where_a_snapshot_is_newer() -> None:
    later = {"cluster": "a", "at": NOON + timedelta(days=9), "event": "brokers-source", "source": "snapshot"}
    end = {"cluster": "a", "at": NOON, "offset": 9, "event": "end", "source": "log"}
    lake = InMemory({PARTITION_STATES: STATES, BROKER_EVENTS: [], CLUSTER_EVENTS: [end, later]})
    assert {one.id: one.ends for one in clusters(cast("Lake", lake))} == {"a": NOON, "b": None}


def of_steps(*sums: Mapping[str, Any], expose: str) -> InMemory:
    """A lake of two clusters, of which some were looked at."""
    return InMemory(
        {
            PARTITION_STATES: STATES,
            BROKER_EVENTS: [{**BROKERS[0], "cluster": one, "source": source} for one, source in SOURCES],
            CLUSTER_EVENTS: [],
            INPUTS: [],
            EXPOSURE: [exposed(one, "cluster", "leaderless", 1.0) | {"cluster": one} for one in expose],
            ASSESSMENT_SUMS: sums,
        }
    )


BROKER_OF_A = assessed("broker 1 killed", "broker", "elr-4.3", True)
BROKER_OF_B = {**BROKER_OF_A, "cluster": "b", "partitions": 1}


@pytest.mark.parametrize(
    ("sums", "expose", "told"),
    [
        ((BROKER_OF_A, BROKER_OF_B), "ab", []),
        ((BROKER_OF_A,), "ab", ["what failures would do in b: not assessed"]),
        ((BROKER_OF_A, {**BROKER_OF_B, "newest": False}), "ab", ["in b: assessed as of another moment"]),
        (({**BROKER_OF_A, "partitions": 2}, BROKER_OF_B), "ab", ["in payments: 2 of 5 partitions were assessed"]),
        (
            (BROKER_OF_A, {**BROKER_OF_B, "kind": "file"}),
            "b",
            ["in b: the failure of one broker was not assessed", "risky settings in payments: not summed up"],
        ),
        ((), "", ["in b, payments: not assessed", "in b, payments: not summed up"]),
    ],
)
def test_clusters_that_a_step_did_not_look_at_are_missing(
    sums: tuple[Mapping[str, Any], ...], expose: str, told: list[str]
) -> None:
    found = [one.what for one in figures_of(cast("Lake", of_steps(*sums, expose=expose))).missing]
    assert len(found) == len(told)
    assert all(some in one for one, some in zip(found, told, strict=True)), found


def test_what_failures_would_do_by_the_rules_that_the_cluster_runs(figures: Figures) -> None:
    assert {one.rules for one in figures.scenarios} == {"elr-4.3"}
    assert figures.failures == (Failures("a", "broker", 19, 1, 1),)
    assert [one.name for one in figures.scenarios if one.may_lose or one.leaderless] == [
        "broker 1 killed",
        "broker 2 killed",
        "now",
    ]
    assert len(figures.scenarios) <= 2 * 5 + 1, "what is kept does not grow with the scenarios"
    killed = next(one for one in figures.scenarios if one.may_lose)
    assert (killed.uncertain, killed.worst_topics, killed.happens) == (1, ("t",), "broker 1 killed!")


def test_times_do_not_depend_on_where_this_runs(full: Lake, figures: Figures, elsewhere: None) -> None:
    del elsewhere
    assert clusters(full) == figures.clusters


def test_everything_behind_it_is_written_as_csv(
    full: Lake, figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(figures)
    behind = {one.name: one for one in written.tables_behind(report, full)}
    assert set(behind) == {
        *("leaderless_partitions", "quarantined_inputs", "assessment_sums", "exposure", "unclean_elections"),
        *("unclean_restarts", "risky_settings"),
    }
    monkeypatch.setattr(
        written, "tables_behind", lambda *_: [behind["assessment_sums"], behind["leaderless_partitions"]]
    )
    paths = write_report(report, full, str(tmp_path), {"html", "md", "csv"})
    assert set(paths) == {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    with (tmp_path / "csv" / "assessment_sums.csv").open(newline="") as file:
        (row,) = [one for one in csv.DictReader(file) if one["may_lose"] == "4"]
    assert (row["brokers"], row["worst_topics"], row["at"], row["cluster"]) == ("1", "t", "", "a")
    with (tmp_path / "csv" / "leaderless_partitions.csv").open(newline="") as file:
        leaderless = list(csv.DictReader(file))
    assert [(one["partition"], one["isr"], one["elr"], one["leader"]) for one in leaderless] == [
        ("1", "-", "2", ""),
        ("2", "3", "", ""),
    ]
    assert leaderless[0]["valid_from"] == "2026-11-10T12:00:00.000Z"


def test_no_spreadsheet_computes_what_somebody_named(
    figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = state("a", "-1+1", 0, cause="=1+1", certainty="@SUM(1)", source="a=1", isr=[])
    lake = cast("Lake", InMemory({PARTITION_STATES: [evil]}))
    monkeypatch.setattr(written, "tables_behind", lambda *_: [written.Behind("formulas", PARTITION_STATES)])
    write_report(report_of(figures), lake, str(tmp_path), {"csv"})
    with (tmp_path / "csv" / "formulas.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["topic"], row["cause"], row["certainty"], row["source"]) == ("'-1+1", "'=1+1", "'@SUM(1)", "a=1")
    assert (row["isr"], row["from_offset"], row["leader"]) == ("-", "", "1")


def test_a_large_table_is_not_sorted(
    full: Lake, figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written_names() -> list[str]:
        write_report(report_of(figures), full, str(tmp_path), {"csv"})
        with (tmp_path / "csv" / "risky_settings.csv").open(newline="") as file:
            return [row["partitions"] for row in csv.DictReader(file)]

    before = written_names()
    assert before == sorted(before)
    backwards = {RISKY_SETTINGS: [{"cluster": "a", "name": name, "partitions": 1} for name in ("b", "a")]}
    lake = cast("Lake", InMemory(backwards))
    only = [written.Behind("risky_settings", RISKY_SETTINGS)]
    monkeypatch.setattr(written, "tables_behind", lambda *_: only)
    for small, names in ((2, ["a", "b"]), (1, ["b", "a"])):
        monkeypatch.setattr(written, "SMALL", small)
        write_report(report_of(figures), lake, str(tmp_path), {"csv"})
        with (tmp_path / "csv" / "risky_settings.csv").open(newline="") as file:
            assert [row["name"] for row in csv.DictReader(file)] == names


def test_a_place_that_cannot_be_written(full: Lake, figures: Figures, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be written"):
        write_report(report_of(figures), full, str(tmp_path / "file"), {"html"})


@pytest.fixture
def filled(spark: SparkSession, lake: Lake) -> Lake:
    """A lake that nothing but ingest has written to."""
    with lake.changing() as changes:
        changes.append(PARTITION_STATES, rows(spark, PARTITION_STATES, STATES).coalesce(1))
    return lake


def test_what_is_older_than_its_ground_or_of_another_moment_is_said(spark: SparkSession, filled: Lake) -> None:
    def told() -> list[str]:
        return [one.what for one in figures_of(filled).missing]

    with filled.changing() as changes:
        lasted = [exposed("a", "cluster", "leaderless", 7_200.0) | {"cluster": cluster} for cluster in "ab"]
        changes.append(EXPOSURE, rows(spark, EXPOSURE, lasted))
        now = [assessed("broker 1 killed", "broker", "elr-4.3", True, partitions=6), BROKER_OF_B]
        changes.append(ASSESSMENT_SUMS, rows(spark, ASSESSMENT_SUMS, now))
    assert told() == []
    with filled.changing() as changes:
        changes.append(PARTITION_STATES, rows(spark, PARTITION_STATES, STATES[:1]))
    assert told() == [
        "what failures would do since they were assessed: more was ingested after it",
        "what lasted since it was summed up: more was ingested after it",
    ]
    with filled.changing() as changes:
        then = [{**one, "newest": False} for one in now]
        changes.replace(ASSESSMENT_SUMS, rows(spark, ASSESSMENT_SUMS, then), [{}])
    assert told()[0] == "what failures would do in a, b: assessed as of another moment"
    assert figures_of(filled).scenarios == ()


def test_only_what_is_asked_for_is_read(spark: SparkSession, filled: Lake) -> None:
    """Folders of other clusters are left out by their names, and files in which nothing is open by what they say."""
    ended = [state("a", "t", 7, valid_to=NOON, date=MONDAY)]
    with filled.changing() as changes:
        changes.append(PARTITION_STATES, rows(spark, PARTITION_STATES, ended))
    where = newest_states(filled, ["a"]) & (pc.field("cluster") == "a")
    files = list(filled.dataset(PARTITION_STATES).get_fragments(filter=where))
    assert len(filled.files_of(PARTITION_STATES)) == 3
    still = pc.field("valid_to").is_null()
    assert [len(file.split_by_row_group(still)) for file in sorted(files, key=lambda one: "-09/" in one.path)] == [1, 0]
    assert all("cluster=a" in file.path for file in files)


def test_the_command_says_what_is_missing_too(filled: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    arguments = ["fleet", "report", "--lake", filled.place, "--out", out, "--format", "html,md", "--top", "1"]
    assert main([*arguments, "--check", "--title", "Ours", "-o", "json"]) == 1
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["kind"], document["complete"], document["others"]) == ("kelr/fleet-report", True, 1)
    (item,) = document["items"]
    assert (item["kind"], item["cluster"], item["partitions"]) == ("leaderless", "a", 3)
    assert item["commands"][0] == "kelr explain -b HOST:PORT"
    assert document["written"] == [f"{out}/report.html", f"{out}/report.md"]
    assert [note.partition(":")[0] for note in document["notes"]] == [
        *("not told", "not told", "min.insync.replicas of 1 partition"),
        "2 clusters (a, b) known by snapshots alone",
        "1 more to fix",
    ]
    assert said.err == ""
    assert "<h1>Ours</h1>" in Path(out, "report.html").read_text()
    text = Path(out, "report.md").read_text()
    assert f"kelr fleet assess --lake {filled.place} --scenarios now,each-broker,each-rack" in text
    assert f"kelr fleet exposure --lake {filled.place}" in text


@pytest.mark.parametrize("status", ["ingested", "quarantined"])
def test_check_fails_where_not_everything_was_looked_at(
    status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = InMemory(
        {
            PARTITION_STATES: STATES[:1],
            BROKER_EVENTS: [{**BROKERS[0], "source": "log"}],
            CLUSTER_EVENTS: [{"cluster": "a", "at": NOON, "offset": 9, "event": "end", "source": "log"}],
            INPUTS: [{"path": "x", "cluster": "a", "status": status}],
            EXPOSURE: [exposed("a", "cluster", "leaderless", 0.0) | {"unknown_share": 0.0}],
            ASSESSMENT_SUMS: [assessed("broker 1 killed", "broker", "elr-4.3", True)],
        }
    )
    monkeypatch.setattr("kelr.commands.fleet_report.open_lake", lambda *_: lake)
    arguments = ["fleet", "report", "--lake", "lake", "--out", str(tmp_path), "--format", "md", "--check", "-o", "json"]
    code = main(arguments)
    document = json.loads(capsys.readouterr().out)
    notes = ["nothing was found that has to be fixed"]
    if status == "quarantined":
        notes = [
            "nothing was found in what was looked at, and not everything was",
            "1 file could not be read: table inputs of the lake says which, and why",
        ]
    window = "unclean elections, restarts and times are counted from 2026-11-10 12:00 UTC"
    assert (code, document["items"], document["notes"]) == (len(notes) - 1, [], [*notes, window])


@pytest.mark.parametrize(("formats", "complaint"), [("pdf", "there is no pdf"), (",", "there is no format")])
def test_wrong_formats(formats: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["fleet", "report", "--lake", "x", "--out", str(tmp_path / "out"), "--format", formats])
    assert (code, complaint in capsys.readouterr().err) == (2, True)
    assert not (tmp_path / "out").exists()


def test_no_lake(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del spark
    assert main(["fleet", "report", "--lake", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "is no lake" in capsys.readouterr().err
