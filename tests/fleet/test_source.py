"""Metadata logs and snapshots as sources of PySpark's, without a lake; and the example of the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException

from kelr.fleet.ingest import ingest
from kelr.fleet.lake import Lake
from kelr.fleet.source import MetadataLogSource, SnapshotSource, register
from kelr.fleet.tables import CLUSTER_EVENTS, ELECTIONS, LOG_INFO, PARTITION_STATES
from kelr.sources.snapshot_file import write_snapshot
from tests.fleet.test_ingest import ELECTED, OTHER, snapshot
from tests.metadata_logs import CLUSTER_ID, START_MS, node_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG, SEEN = MetadataLogSource.name(), SnapshotSource.name()
DOCS = Path(__file__).parents[2] / "docs" / "fleet-ingest.md"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes' copies of a log, neither of which has all of it; another log; and snapshots."""
    place = tmp_path_factory.mktemp("collected")
    node_directory(place / "a" / "1", {0: b"".join(ELECTED[:2])})
    node_directory(place / "a" / "2", {0: b"".join(ELECTED[:1]), 4: b"".join(ELECTED[2:])}, node=2)
    node_directory(place / "b" / "1", {0: b"".join(ELECTED)}, cluster_id=OTHER)
    write_snapshot(snapshot(9.5), place / "a" / "0.kelr")
    write_snapshot(snapshot(7), place / "a" / "1.kelr")
    (place / "a" / "again.kelr").write_bytes((place / "a" / "1.kelr").read_bytes())
    return place


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def rows(found: Any) -> list[str]:
    return sorted(repr(row) for row in found.collect())


def test_rows_are_those_of_a_lake(session: SparkSession, collected: Path, tmp_path: Path) -> None:
    ingest(None, [str(collected)], str(tmp_path / "lake"), now_ms=START_MS)
    lake = Lake(session, str(tmp_path / "lake"))
    log = session.read.format(LOG).load(str(collected))
    assert log.rdd.getNumPartitions() == 2, "a task for each cluster"
    seen = session.read.format(SEEN).load(str(collected))
    assert rows(log.unionByName(seen)) == rows(lake.read(PARTITION_STATES))
    assert {row["cluster"] for row in log.select("cluster").collect()} == {CLUSTER_ID, OTHER}
    logs = session.read.format(SEEN).option("table", LOG_INFO.name).load(str(collected))
    assert rows(logs) == rows(lake.read(LOG_INFO))
    stakes = ("offsets_at_stake", "stake_source")
    elections = session.read.format(LOG).option("table", ELECTIONS.name).load(str(collected))
    assert rows(elections.drop(*stakes)) == rows(lake.read(ELECTIONS).drop(*stakes))
    assert elections.count() > 1


def test_several_places_and_files_whose_cluster_is_named(
    session: SparkSession, collected: Path, tmp_path: Path
) -> None:
    nobodys = tmp_path / "some"
    nobodys.mkdir()
    (nobodys / f"{0:020}.log").write_bytes(b"".join(ELECTED))
    reader = session.read.format(LOG).option("table", CLUSTER_EVENTS.name)
    with pytest.raises(AnalysisException, match="which cluster it is of is not known"):
        reader.load(str(nobodys)).collect()
    found = reader.option("cluster", "mine").load([str(nobodys), str(collected / "b")]).where("event = 'end'").collect()
    assert {(row["cluster"], row["offset"]) for row in found} == {("mine", 8), (OTHER, 8)}


def test_what_is_damaged_is_refused_unless_it_is_to_be_skipped(session: SparkSession, tmp_path: Path) -> None:
    data = bytearray(b"".join(ELECTED))
    data[len(b"".join(ELECTED[:3])) + 70] ^= 1
    node_directory(tmp_path, {0: bytes(data)})
    reader = session.read.format(LOG).option("table", CLUSTER_EVENTS.name)
    with pytest.raises(AnalysisException, match="does not match its checksum"):
        reader.load(str(tmp_path)).collect()
    (end,) = reader.option("damaged", "skip").load(str(tmp_path)).where("event = 'end'").collect()
    assert end["offset"] == 4
    (tmp_path / "cut.kelr").write_bytes(Path(_snapshot(tmp_path)).read_bytes()[:-30])
    with pytest.raises(PythonException, match=r"cut\.kelr was cut short"):
        session.read.format(SEEN).load(str(tmp_path)).collect()
    skipping = session.read.format(SEEN).option("damaged", "skip")
    assert skipping.load(str(tmp_path)).count() == 1


def _snapshot(place: Path) -> Path:
    write_snapshot(snapshot(7), place / "whole.kelr")
    return place / "whole.kelr"


@pytest.mark.parametrize(
    ("format_", "options", "says"),
    [
        (LOG, {"table": "log_info"}, "kafka-metadata-log has no rows of log_info"),
        (SEEN, {"table": "elections"}, "kelr-snapshot has no rows of elections"),
        (LOG, {"damaged": "maybe"}, "maybe is neither fail nor skip"),
        (LOG, {}, "no such file or directory"),
    ],
)
def test_what_cannot_be_asked(
    session: SparkSession, tmp_path: Path, format_: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(AnalysisException, match=says):
        session.read.format(format_).options(**options).load(str(tmp_path / "none")).collect()


def test_nothing_of_use(session: SparkSession, tmp_path: Path) -> None:
    write_snapshot(snapshot(7), tmp_path / "whole.kelr")
    with pytest.raises(AnalysisException, match="nothing in it is of use"):
        session.read.format(LOG).load(str(tmp_path)).collect()


def test_the_example_of_the_docs(session: SparkSession, collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"    from kelr\.fleet\.source import register\n(.+?)\n\n[^ ]", DOCS.read_text(), re.DOTALL)
    assert found is not None
    example = "\n".join(line.removeprefix("    ") for line in found[0].splitlines()[:-1])
    exec(example.replace("/collected", str(collected)), {"spark": session})
    shown = capsys.readouterr().out
    assert "orders" in shown
