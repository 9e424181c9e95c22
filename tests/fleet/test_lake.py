"""What a lake is after runs that end, fail, are killed, or meet another one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import IntegerType, StringType

from kelr.errors import BadInputError, RefusedError
from kelr.fleet import lake as lakes
from kelr.fleet.delta import NO_TABLE, DeltaTables
from kelr.fleet.lake import Lake
from kelr.fleet.tables import RUNS, DataFile, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THINGS = table("things", ("name", StringType(), ""), ("size", IntegerType(), ""))
OTHERS = table("others", ("name", StringType(), ""), partitions=())
FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)
ROWS = [("a", 1, "x", FIRST), ("b", 2, "x", SECOND), ("c", 3, "y=/%: é", FIRST)]
MORE = ("e", 5, "x", FIRST)


def rows(spark: SparkSession, values: Iterable[tuple[str, int, str, date]]) -> DataFrame:
    return spark.createDataFrame(list(values), THINGS.schema)


def add(lake: Lake, *values: tuple[str, int, str, date]) -> None:
    with lake.changing("ingest") as changes:
        changes.append(THINGS, rows(lake.spark, values))


def content(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.read(THINGS).collect())


def by_another(lake: Lake) -> list[tuple[object, ...]]:
    """The rows that the newest run names, as whoever knows Delta Lake, and not kelr, reads them."""
    run = DeltaTable(f"{lake.place}/runs").to_pyarrow_table().sort_by("number").to_pylist()[-1]
    found = DeltaTable(f"{lake.place}/things", version=dict(run["tables"])["things"]).to_pyarrow_table().to_pylist()
    return sorted(tuple(row[name] for name in THINGS.columns) for row in found)


def test_what_was_written_is_read_by_whoever_opens_the_lake(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    assert content(lake) == content(Lake(spark, lake.place)) == by_another(lake) == ROWS


def test_a_lake_without_anything_is_empty_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "none"))
    assert content(lake) == []
    with pytest.raises(BadInputError, match="is no lake"):
        lake.exists()
    assert not (tmp_path / "none").exists()


def test_folders_are_replaced_and_the_others_stay(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [("d", 4, "x", FIRST)]), [{"cluster": "x", "date": "2026-11-01"}])
        changes.replace(THINGS, rows(spark, [("e", 5, "y=/%: é", SECOND)]), [{"cluster": "y=/%: é"}])
        changes.append(THINGS, rows(spark, [("f", 6, "z", FIRST)]))
        wanted = [("b", 2, "x", SECOND), ("d", 4, "x", FIRST), ("e", 5, "y=/%: é", SECOND), ("f", 6, "z", FIRST)]
        assert sorted(tuple(row) for row in changes.read(THINGS).collect()) == wanted
        assert content(Lake(spark, lake.place)) == ROWS, "nobody else sees any of it yet"
    assert content(lake) == by_another(lake) == wanted
    assert lake.version.number == 2
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [MORE]), [{}])
    assert content(lake) == by_another(lake) == [MORE]


def test_a_run_without_changes_is_no_row(lake: Lake) -> None:
    add(lake, *ROWS)
    with lake.changing():
        pass
    assert (lake.version.number, lake.refresh(), lake.version.number) == (1, None, 1)


def test_several_tables_appear_at_once_and_a_small_one_needs_no_spark(spark: SparkSession, lake: Lake) -> None:
    with lake.changing("assess") as changes:
        changes.append(THINGS, rows(spark, ROWS))
        changes.put(OTHERS, [{"name": "b"}, {"name": None}])
        changes.name({"x": "payments"})
    assert Lake(spark, lake.place).rows(OTHERS) == [{"name": "b"}, {"name": None}]
    assert [tuple(row) for row in lake.read(OTHERS).collect()] == [("b",), (None,)]
    with lake.changing("ingest") as changes:
        changes.put(OTHERS, [{"name": "c"}])
    assert lake.rows(OTHERS) == [{"name": "c"}]
    first, second = DeltaTable(f"{lake.place}/runs").to_pyarrow_table().sort_by("number").to_pylist()
    assert [(one["number"], one["command"]) for one in (first, second)] == [(1, "assess"), (2, "ingest")]
    assert dict(second["changed"]) == {"things": 1, "others": 2}
    assert [lake.command_of(one) for one in (THINGS, OTHERS, RUNS)] == ["assess", "ingest", None]
    assert dict(second["clusters"]) == {"x": "payments"}
    assert lake.version == Lake(spark, lake.place).version


def test_a_run_that_fails_leaves_the_tables_as_they_were(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    with pytest.raises(ZeroDivisionError):
        _change_and_fail(spark, lake)
    assert content(lake) == content(Lake(spark, lake.place)) == ROWS
    add(lake, MORE)
    assert content(lake) == by_another(lake) == sorted([*ROWS, MORE])


def test_a_run_that_is_cut_short_between_its_tables_leaves_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit of a table is there, and no row names it: the next run leaves it out, and so does every reader."""
    add(lake, *ROWS)
    with monkeypatch.context() as broken:
        broken.setattr(Lake, "put", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            add(lake, ("lost", 9, "x", FIRST))
    assert DeltaTable(f"{lake.place}/things").version() > lake.version.tables["things"]
    assert content(Lake(spark, lake.place)) == by_another(lake) == ROWS
    add(lake, MORE)
    assert content(Lake(spark, lake.place)) == by_another(lake) == sorted([*ROWS, MORE])
    newest = DeltaTable(f"{lake.place}/things").to_pyarrow_table().to_pylist()
    assert sorted(row["name"] for row in newest) == ["a", "b", "c", "e"], (
        "the table's own newest version has it no more"
    )


@pytest.mark.parametrize("begun", [False, True], ids=["empty", "begun"])
def test_of_two_runs_at_once_one_is_taken_whole(spark: SparkSession, lake: Lake, begun: bool) -> None:
    if begun:
        add(lake, *ROWS)
    before = content(lake)
    with pytest.raises(RefusedError, match="another run has changed this lake meanwhile") as raised:
        _change_beside_another(lake)
    assert raised.value.code == "lake-busy"
    assert content(Lake(spark, lake.place)) == by_another(lake) == sorted([*before, MORE])
    add(lake, ("f", 6, "z", FIRST))
    assert content(lake) == by_another(lake) == sorted([*before, MORE, ("f", 6, "z", FIRST)])


def test_a_run_that_meets_another_one_between_its_tables_is_refused(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one goes on from what this one has committed, without keeping any of it, and is first to be a row."""
    add(lake, *ROWS)
    put, met = Lake.put, []

    def meet(one: Lake, *given: object) -> object:
        if not met:
            met.append(one)
            add(Lake(spark, lake.place), MORE)
        return put(one, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Lake, "put", meet)
    with pytest.raises(RefusedError, match="meanwhile"):
        add(lake, ("lost", 9, "x", FIRST))
    assert content(Lake(spark, lake.place)) == by_another(lake) == sorted([*ROWS, MORE])


def test_whoever_reads_goes_on_with_what_was_there_when_it_began(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    reader = Lake(spark, lake.place)
    frame = reader.read(THINGS)
    for size in range(3):
        with lake.changing() as changes:
            changes.replace(THINGS, rows(spark, [("d", size, "x", FIRST)]), [{}])
    assert sorted(tuple(row) for row in frame.collect()) == content(reader) == ROWS
    reader.refresh()
    assert content(reader) == [("d", 2, "x", FIRST)]


def test_files_go_when_they_are_too_old_for_any_reader(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(lake, *ROWS)
    with pytest.raises(ZeroDivisionError):
        _change_and_fail(spark, lake)
    add(lake, MORE)
    assert len(_parquet(lake)) == 5, "the failed run's file stays for a while"
    assert lake.rows(RUNS) == []

    _age(Path(lake.place))
    monkeypatch.setattr(lakes, "_VACUUMED_EVERY", timedelta(0))
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [("d", 4, "x", FIRST)]), [{"cluster": "x"}])
    wanted = [ROWS[2], ("d", 4, "x", FIRST)]
    assert content(lake) == content(Lake(spark, lake.place)) == by_another(lake) == wanted
    assert len(_parquet(lake)) == 5, "of what the run before had nothing is deleted; of the failed one's file"
    _age(Path(lake.place))
    add(lake, MORE)
    assert content(lake) == content(Lake(spark, lake.place)) == by_another(lake) == sorted([*wanted, MORE])
    assert len(_parquet(lake)) == 3
    vacuumed = datetime.fromtimestamp(lake.version.vacuumed_ms / 1000, UTC)
    assert datetime.now(UTC) - vacuumed < timedelta(minutes=5)


def test_a_lake_of_an_older_kelr_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "_kelr/versions").mkdir(parents=True)
    (tmp_path / "_kelr/versions/00000001.json").write_text("{}")
    with pytest.raises(BadInputError, match="made by an older kelr") as raised:
        Lake(spark, str(tmp_path))
    assert raised.value.code == "lake-too-old"


def test_what_is_damaged_is_named(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    (file,) = Path(lake.place, "runs").glob("*.parquet")
    kept = file.read_bytes()
    file.write_bytes(b"PAR1")
    with pytest.raises(BadInputError, match=r"runs is damaged: .*runs/00000001-.*parquet"):
        Lake(spark, lake.place)
    file.write_bytes(kept)
    log = Path(lake.place, "runs/_delta_log/00000000000000000001.json")
    log.write_text("{")
    with pytest.raises(BadInputError, match="/runs cannot be read"):
        Lake(spark, lake.place)


def test_a_version_that_is_gone_is_told(spark: SparkSession, lake: Lake) -> None:
    add(lake, *ROWS)
    Path(lake.place, "things").rename(Path(lake.place, "away"))
    with pytest.raises(BadInputError, match="things is not there"):
        Lake(spark, lake.place).read(THINGS)


def test_only_the_folders_that_a_filter_asks_for_are_read(lake: Lake) -> None:
    add(lake, *ROWS)
    frame = lake.read(THINGS).where("cluster = 'x' and date = date'2026-11-02' and size > 1")
    assert [tuple(row) for row in frame.collect()] == [ROWS[1]]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(cluster" in plan
    assert "PushedFilters: [IsNotNull(size), GreaterThan(size,1)]" in plan


def test_a_place_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="things cannot be written: ParentNotDirectory"):
        add(Lake(spark, str(tmp_path / "file" / "lake")), *ROWS)


def test_the_columns_of_a_table_say_what_they_mean(lake: Lake) -> None:
    with lake.changing() as changes:
        changes.name({"x": "payments"})
    (number, *_) = DeltaTable(f"{lake.place}/runs").schema().fields
    assert (number.name, number.metadata) == ("number", {"comment": "1, 2, ..."})


def test_a_commit_needs_the_version_that_it_follows(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), {})
    assert tables.newest("others") == NO_TABLE
    assert (tables.commit(OTHERS, []), tables.newest("others")) == (0, 0)
    lake_file = tmp_path / "others" / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"name": ["a"]}), lake_file)
    file = DataFile("a.parquet", lake_file.stat().st_size, 0, {})
    assert tables.commit(OTHERS, [file], after=0) == 1
    with pytest.raises(RefusedError, match="meanwhile"):
        tables.commit(OTHERS, [DataFile("b.parquet", 1, 0, {})], after=0)
    assert tables.files("others", 1) == {file}


def _age(place: Path) -> None:
    """As if all of it had been written a month ago."""
    then = time.time() - 30 * 86_400
    for path in place.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
    for log in place.glob("things/_delta_log/*.json"):
        text = log.read_text()
        log.write_text(re.sub(r'("deletionTimestamp":)(\d+)', lambda one: f"{one[1]}{int(then * 1000)}", text))


def _parquet(lake: Lake) -> list[Path]:
    return list(Path(lake.place, "things").rglob("*.parquet"))


def _change_and_fail(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [("d", 4, "x", FIRST)]), [{}])
        raise ZeroDivisionError


def _change_beside_another(lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(lake.spark, [("lost", 9, "x", FIRST)]))
        add(Lake(lake.spark, lake.place), MORE)
