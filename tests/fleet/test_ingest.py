"""Files of several clusters become one lake: all at once, one after another, and where runs fail."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kelr.commands.main import main
from kelr.errors import BadInputError, ExitCode
from kelr.fleet import merging
from kelr.fleet.files import files_at
from kelr.fleet.ingest import ingest
from kelr.fleet.inputs import Input, Owners
from kelr.fleet.lake import Lake
from kelr.fleet.merging import ClusterWork, _Merging
from kelr.fleet.row_batches import STATE_COLUMNS
from kelr.fleet.tables import ELECTIONS, INGESTED, INPUTS, LOG_INFO, PARTITION_STATES, STATES, Table
from kelr.fleet.telling import tell
from kelr.fleet.workers import SparkWorkers
from kelr.model import ELR_FEATURE, Broker, BrokerStatus, Cluster, PartitionState, ReplicaLog, Snapshot, TopicPartition
from kelr.model.fleet import IngestSummary
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.snapshot_file import write_snapshot
from tests.metadata_logs import CLUSTER_ID, START_MS, batch, node_directory, shrunk, story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHER = "b3RoZXItY2x1c3Rlci1pZA"
ELECTED = [*story(), batch(8, shrunk(0, isr=(2,), leader=2))]
"""With ELR on: without it, nobody knows what the last one of the ISR held."""
ELECTED[2] = batch(4, ("FeatureLevelRecord", 0, {"name": ELR_FEATURE, "feature_level": 1}))


def snapshot(seconds: float) -> Snapshot:
    """``orders-0`` without leader, and what two of its replicas hold."""
    replicas = (1, 2, 3)
    state = PartitionState("orders", 0, None, 1, replicas, (1,), (), (), None, 4)
    return Snapshot(
        taken_at_ms=START_MS + round(seconds * 1000),
        cluster=Cluster(CLUSTER_ID, tuple(Broker(one, BrokerStatus.LIVE) for one in replicas)),
        partitions=(state,),
        logs={TopicPartition("orders", 0): (ReplicaLog(1, 110, 0), ReplicaLog(2, 100, 0))},
    )


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    """Two clusters: copies of one log by two nodes, with snapshots; and another log. Beside them what is no good."""
    place = tmp_path / "collected"
    data = ELECTED
    node_directory(place / "a" / "1", {0: b"".join(data[:2]), 4: b"".join(data[2:])})
    node_directory(place / "a" / "2", {0: b"".join(data[:3])}, node=2)
    node_directory(place / "b" / "1", {0: b"".join(data[:3]), 5: b"".join(data[3:])}, cluster_id=OTHER)
    (place / "a" / "2" / "__cluster_metadata-0" / "00000000000000000005.log").write_bytes(data[3][:-3])
    write_snapshot(snapshot(7), place / "a" / "seen.kelr")
    write_snapshot(snapshot(9.5), place / "a" / "later.kelr")
    (place / "a" / "again.kelr").write_bytes((place / "a" / "seen.kelr").read_bytes())
    (place / "junk.kelr").write_bytes(b"nothing of ours")
    (place / "nobodys").mkdir()
    (place / "nobodys" / "00000000000000000000.log").write_bytes(data[0])
    return place


def rows(lake: Lake, table: Table) -> list[str]:
    """All rows, but for what names the run."""
    left_out = {"run", "taken_at", "modified"}
    return sorted(
        repr({name: value for name, value in row.asDict().items() if name not in left_out})
        for row in lake.read(table).collect()
    )


def content(lake: Lake) -> dict[str, list[str]]:
    return {table.name: rows(lake, table) for table in INGESTED}


def taken(place: Path, lake: Path, spark: SparkSession | None = None) -> IngestSummary:
    """Taken by this process; by Spark's workers, where there is a session."""
    workers = None if spark is None else SparkWorkers(spark)
    return ingest(None, [str(place)], str(lake), now_ms=START_MS, workers=workers)


def test_all_at_once_and_one_after_another_are_the_same(
    spark: SparkSession,
    collected: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = main(["fleet", "ingest", str(collected), "--out", str(tmp_path / "once"), "-o", "json"])
    said = capsys.readouterr()
    assert code == ExitCode.PARTLY_DONE, said.err
    _check_document(json.loads(said.out), collected)
    once = Lake(spark, str(tmp_path / "once"))
    _check_states(once, collected)
    _check_stake(once)

    steps = tmp_path / "steps"
    waiting = tmp_path / "waiting"
    shutil.copytree(collected, waiting)
    behind = waiting / "a" / "1" / "__cluster_metadata-0" / f"{4:020}.log"
    held_back = [behind, waiting / "a" / "seen.kelr", waiting / "a" / "again.kelr", waiting / "b"]
    away = tmp_path / "away"
    away.mkdir()
    for number, path in enumerate(held_back):
        path.rename(away / str(number))
    taken(waiting, steps)
    before = content(Lake(spark, str(steps)))
    for number, path in enumerate(held_back):
        (away / str(number)).rename(path)
    with monkeypatch.context() as broken:
        broken.setattr(_Merging, "elections", _fail)
        with pytest.raises(ZeroDivisionError):
            taken(waiting, steps)
    assert content(Lake(spark, str(steps))) == before
    taken(waiting, steps, spark)
    left = {INPUTS.name}
    after = {name: found for name, found in content(Lake(spark, str(steps))).items() if name not in left}
    assert after == {name: found for name, found in content(once).items() if name not in left}

    version = Lake(spark, str(steps)).version
    again = taken(waiting, steps)
    assert not again.changed
    assert (again.new_files, again.known_files) == (0, 11)
    assert Lake(spark, str(steps)).version == version


def _fail(_merging: _Merging) -> None:
    raise ZeroDivisionError


def _check_document(document: dict[str, Any], collected: Path) -> None:
    assert document["kind"] == "kelr/fleet-ingest"
    assert {one["cluster"]: one["records"] for one in document["items"]} == {CLUSTER_ID: 9, OTHER: 9}
    assert {Path(one["path"]).relative_to(collected).as_posix(): one["reason"] for one in document["quarantined"]} == {
        "junk.kelr": f"{collected}/junk.kelr is not a snapshot file: Not a gzipped file (b'no')",
        "nobodys/00000000000000000000.log": "which cluster it is of is not known: no meta.properties beside it says so,"
        " and no --cluster",
    }


def _check_states(lake: Lake, collected: Path) -> None:
    """Every state is what telling the log in one go says, and holds until the next one."""
    told = [
        one.row for one in tell(open_metadata_log([collected / "b"]).batches()) if one.table == PARTITION_STATES.name
    ]
    found = [
        row.asDict()
        for row in lake.read(PARTITION_STATES)
        .where(f"cluster = '{OTHER}'")
        .orderBy("from_offset", "partition")
        .collect()
    ]
    names = [name for name in PARTITION_STATES.columns if name not in {"valid_from", "valid_to", "cluster", "date"}]
    expected = sorted(told, key=lambda row: (row["from_offset"], row["partition"]))
    assert [[_plain(row[name]) for name in names] for row in found] == [
        [_plain(row[name]) for name in names] for row in expected
    ]
    for place, row in enumerate(found):
        following = [one["valid_from"] for one in found[place + 1 :] if one["partition"] == row["partition"]]
        assert row["valid_to"] == (following[0] if following else None)
    seen = lake.read(PARTITION_STATES).where("source = 'snapshot'").orderBy("valid_from").collect()
    assert [_ms(row["valid_from"]) for row in seen] == [START_MS + 7000, START_MS + 9500]
    assert seen[0]["valid_to"] == seen[1]["valid_from"]
    assert seen[1]["valid_to"] is None


def _check_stake(lake: Lake) -> None:
    rows = lake.read(ELECTIONS).where("partition = 0 and to_leader = 2").orderBy("cluster").collect()
    stakes = {row["cluster"]: row["offsets_at_stake"] for row in rows}
    assert stakes == {CLUSTER_ID: 10, OTHER: None}
    assert lake.read(LOG_INFO).count() == 4


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _ms(time: datetime) -> int:
    return round(time.astimezone(UTC).timestamp() * 1000)


def test_what_is_no_input_at_all(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="no such file or directory"):
        ingest(None, [str(tmp_path / "none")], lake, now_ms=0)
    with pytest.raises(BadInputError, match="nothing in it is of use"):
        ingest(None, [str(tmp_path / "empty")], lake, now_ms=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="nothing of the inputs can be read"):
        ingest(None, [str(tmp_path)], lake, now_ms=0)
    assert not Path(lake).exists()


def test_a_cluster_that_is_given_for_a_folder_is_not_that_of_the_next(tmp_path: Path) -> None:
    owners = Owners(files_at, {f"{tmp_path}/node-1/": "one", f"{tmp_path}/node-2": "two", f"{tmp_path}/node-2/b": "b"})

    def owner(path: str) -> str | None:
        return owners.owned(Input(str(tmp_path / path), 0, 0)).cluster

    assert [owner(path) for path in ("node-1/x", "node-10/x", "node-2/a/x", "node-2/b", "node-2/b/x", "node-20")] == [
        *("one", None, "two", "b", "b", None)
    ]


def test_a_run_reads_of_the_lake_what_its_clusters_have_and_no_state_that_is_settled(
    collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    write_snapshot(snapshot(7), tmp_path / "new.kelr")
    (collected / "a" / "seen.kelr").rename(tmp_path / "away")
    (collected / "a" / "again.kelr").unlink()
    taken(collected, lake)
    asked: list[tuple[str, str]] = []
    parquet = merging._parquet

    def noted(work: ClusterWork, table: Table, path: str) -> pq.ParquetFile:
        asked.append((table.name, path))
        return parquet(work, table, path)

    monkeypatch.setattr(merging, "_parquet", noted)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", _counted(counts := []))
    (tmp_path / "new.kelr").rename(collected / "a" / "new.kelr")
    taken(collected, lake)
    assert asked
    assert all(f"/cluster={CLUSTER_ID}/" in path for _, path in asked)
    of_states = [group for columns, group in counts if columns and set(columns) == {*STATE_COLUMNS}]
    assert of_states
    assert not any(settled(group) for group in of_states)
    known = Lake(None, str(lake)).files_of(STATES)
    assert {file.values["cluster"] for file in known} == {CLUSTER_ID, OTHER}


def settled(rows: pa.Table) -> bool:
    return not rows["valid_to"].null_count and set(rows["source"].to_pylist()) == {"log"}


def _counted(counts: list[tuple[Any, pa.Table]]) -> Any:
    read = pq.ParquetFile.read_row_group

    def counted(file: pq.ParquetFile, number: int, columns: Any = None) -> pa.Table:
        found = read(file, number, columns)
        counts.append((columns, found))
        return found

    return counted


def test_a_lake_that_cannot_be_written(collected: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / PARTITION_STATES.name).write_text("a file")
    with pytest.raises(BadInputError, match="cannot be written"):
        taken(collected, tmp_path / "lake")
