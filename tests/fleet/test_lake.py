"""What a lake is after runs that end, fail, are killed, or meet another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import IntegerType, StringType

from kelr.errors import BadInputError, RefusedError
from kelr.fleet.files import LocalFiles
from kelr.fleet.folder import Listed
from kelr.fleet.lake import Lake
from kelr.fleet.tables import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THINGS = table("things", ("name", StringType(), ""), ("size", IntegerType(), ""))
FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)
ROWS = [("a", 1, "x", FIRST), ("b", 2, "x", SECOND), ("c", 3, "y=/%:", FIRST)]


def rows(spark: SparkSession, values: Iterable[tuple[str, int, str, date]]) -> DataFrame:
    return spark.createDataFrame(list(values), THINGS.schema)


def content(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.read(THINGS).collect())


def test_what_was_written_is_read_by_whoever_opens_the_lake(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS))
    assert content(lake) == content(Lake(spark, lake.place)) == ROWS


def test_a_lake_without_anything_is_empty_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "none"))
    assert content(lake) == []
    with pytest.raises(BadInputError, match="is no lake"):
        lake.exists()
    assert not (tmp_path / "none").exists()


def test_folders_are_replaced_and_the_others_stay(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS))
    before = lake.version
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [("d", 4, "x", FIRST)]), [{"cluster": "x", "date": "2026-11-01"}])
        changes.replace(THINGS, rows(spark, [("e", 5, "y=/%:", SECOND)]), [{"cluster": "y=/%:"}])
        changes.append(THINGS, rows(spark, [("f", 6, "z", FIRST)]))
    assert content(lake) == [
        ("b", 2, "x", SECOND),
        ("d", 4, "x", FIRST),
        ("e", 5, "y=/%:", SECOND),
        ("f", 6, "z", FIRST),
    ]
    assert lake.version.number == before.number + 1


def test_a_run_that_fails_leaves_the_tables_as_they_were(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS))
    with pytest.raises(ZeroDivisionError):
        _change_and_fail(spark, lake)
    assert content(lake) == content(Lake(spark, lake.place)) == ROWS
    assert len(list(Path(lake.place).glob("things/*/*/*.parquet"))) == 4
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, [("e", 5, "x", FIRST)]))
    assert content(lake) == sorted([*ROWS, ("e", 5, "x", FIRST)])
    assert len(list(Path(lake.place).glob("things/*/*/*.parquet"))) == 4, "what the failed run wrote is gone"


def test_what_tasks_of_a_killed_run_had_ended_is_no_row_of_the_next(spark: SparkSession, lake: Lake) -> None:
    """Hadoop's committer takes whatever tasks have left in its folder; a lake's first run may have been killed."""
    left = Path(lake.place, "things/_temporary/0/task_202611010000000000000_0001_m_000000")
    rows(spark, ROWS[:1]).write.partitionBy("cluster", "date").parquet(str(left))
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS[1:]))
    assert content(lake) == ROWS[1:]
    assert not Path(lake.place, "things/_temporary").exists()


def test_two_runs_at_once_the_second_is_refused(spark: SparkSession, lake: Lake) -> None:
    other = Lake(spark, lake.place)
    with lake.changing(), pytest.raises(RefusedError, match="another run"), other.changing():
        pass


def test_a_version_that_somebody_else_has_written_is_not_overwritten(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS[:1]))
    with pytest.raises(RefusedError, match="meanwhile"):
        _change_beside_another(spark, lake)


def test_small_files_are_kept_by_purpose_and_old_versions_go(lake: Lake) -> None:
    for content_ in (b"one", b"two", b"three", b"four"):
        with lake.changing() as changes:
            changes.keep("state of x", {"state": content_})
            changes.name({"x": "payments"})
    (path,) = lake.version.kept["state of x"]
    assert lake.files.read(path) == b"four"
    assert lake.version.clusters == {"x": "payments"}
    assert len(list(Path(lake.place, "_kelr/versions").iterdir())) == 2
    assert len([file for file in Path(lake.place, "_kelr/kept").rglob("*") if file.is_file()]) == 2


@pytest.mark.parametrize("text", ["{", "{}", '{"format": "other", "format_version": 1}', "[]"])
def test_a_damaged_version_is_named(spark: SparkSession, lake: Lake, text: str) -> None:
    Path(lake.place, "_kelr/versions").mkdir(parents=True)
    Path(lake.place, "_kelr/versions/00000001.json").write_text(text)
    with pytest.raises(BadInputError, match=r"versions/00000001\.json"):
        Lake(spark, lake.place)


def test_only_the_folders_that_a_filter_asks_for_are_read(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS))
    frame = lake.read(THINGS).where("cluster = 'x' and date = date'2026-11-02' and size > 1")
    assert [tuple(row) for row in frame.collect()] == [ROWS[1]]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(cluster" in plan
    assert "PushedFilters: [IsNotNull(size), GreaterThan(size,1)]" in plan


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be written"), LocalFiles(tmp_path / "file").locked():
        pass


def test_a_run_whose_lock_was_taken_makes_no_version(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken() -> None:
        raise RefusedError("another run has taken this lake over")

    monkeypatch.setattr(LocalFiles, "locked", lambda _: nullcontext(taken))
    with pytest.raises(RefusedError, match="taken this lake over"):
        _name(lake)
    assert not list(lake.files.list("_kelr/versions"))


@dataclass
class Another:
    """A run that takes a lake over, and has written files of its own that no version has yet."""

    place: Path
    at_it: bool = False

    @property
    def files(self) -> list[Path]:
        task = "things/_temporary/0/task_202611010000000000000_0001_m_000000/part-0.parquet"
        names = (task, "things/cluster=x/date=2026-11-01/part-other.parquet", "_kelr/kept/state/00000002-state")
        return [self.place / name for name in names]

    def begin(self, *_: object) -> None:
        self.at_it = True
        for path in self.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"of another run")

    def check(self) -> None:
        if self.at_it:
            raise RefusedError("another run has taken this lake over")


@pytest.fixture
def another(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Another:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS[:1]))
    found = Another(Path(lake.place))
    monkeypatch.setattr(LocalFiles, "locked", lambda _: nullcontext(found.check))
    return found


def test_a_run_whose_lock_was_taken_writes_no_more(spark: SparkSession, lake: Lake, another: Another) -> None:
    with lake.changing() as changes:
        another.begin()
        with pytest.raises(RefusedError, match="taken this lake over"):
            changes.append(THINGS, rows(spark, ROWS[1:]))
        with pytest.raises(RefusedError, match="taken this lake over"):
            changes.keep("state", {"state": b"of this run"})
        assert [path.read_bytes() for path in another.files] == [b"of another run"] * 3
        another.at_it = False


def test_a_run_whose_lock_is_taken_while_it_writes_takes_nothing_of_the_other_s(
    spark: SparkSession, lake: Lake, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = LocalFiles.list

    def list_and_stand_still(files: LocalFiles, below: str = "") -> Iterator[Listed]:
        found = [*listed(files, below)]
        another.begin()
        return iter(found)

    with lake.changing() as changes:
        before = changes.version
        monkeypatch.setattr(LocalFiles, "list", list_and_stand_still)
        with pytest.raises(RefusedError, match="taken this lake over"):
            changes.append(THINGS, rows(spark, ROWS[1:]))
        assert changes.version == before
        another.at_it = False


def test_a_run_whose_lock_is_taken_when_it_has_committed_deletes_nothing(
    lake: Lake, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Lake._commit
    monkeypatch.setattr(Lake, "_commit", lambda lake, version: another.begin(commit(lake, version)))
    before = lake.version.number
    _name(lake)
    assert lake.version.number == before + 1
    assert [path.read_bytes() for path in another.files] == [b"of another run"] * 3


def _name(lake: Lake) -> None:
    with lake.changing() as changes:
        changes.name({"x": "payments"})


def _change_and_fail(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.replace(THINGS, rows(spark, [("d", 4, "x", FIRST)]), [{}])
        raise ZeroDivisionError


def _change_beside_another(spark: SparkSession, lake: Lake) -> None:
    with lake.changing() as changes:
        changes.append(THINGS, rows(spark, ROWS[1:]))
        lake.files.write_new("_kelr/versions/00000002.json", b"{}")
