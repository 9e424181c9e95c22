"""``--log-dir`` of ``kelr log-info`` and ``kelr snapshot``: dead brokers' disks, without a cluster and beside one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kelr.commands.session import open_source
from kelr.model import LOG_DIRECTORY, ReplicaLog, TopicPartition
from kelr.sources.collected import read_collection
from kelr.sources.snapshot_file import read_snapshot
from kelr.view.schema import SCHEMAS
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT
from tests.sources.disks import OTHER_TOPIC_ID, Disk, Run

AT = TopicPartition("orders", 1)
ORDERS_ID = "xwLcnDBAQ0KnZEKZX0bXVA"
CLUSTER_ID = INCIDENT.cluster.cluster_id or ""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Paths are short, and the same in every run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def disk() -> Disk:
    """The last known leader's disk: orders:1 up to 140, with the epoch in which it led last, and some leftovers."""
    made = Disk(Path("d1"), 1, cluster_id=CLUSTER_ID)
    replica = made.replica("orders-1", ORDERS_ID)
    whole = Disk(Path("other"), 9, cluster_id=CLUSTER_ID).filled("orders-1", [Run(0, 28)])
    for name in ("00000000000000000000.log", "00000000000000000000.index"):
        (replica.path / name).write_bytes((whole.path / name).read_bytes())
    replica.epochs((0, 0), (1, 140))
    empty = made.replica("old-0", None)
    empty.segment(0, [])
    made.high_watermarks(**{"orders-1": 135})
    made.replica("orders-0.5a5f7d6b2f5b4b2d8f2b-future")
    made.replica("gone-3.5a5f7d6b2f5b4b2d8f2b-stray")
    made.clean()
    return made


@pytest.mark.usefixtures("disk")
def test_a_disk_is_shown_without_a_cluster(kelr: Kelr) -> None:
    ran = kelr("log-info", "--log-dir", "d1")
    assert ran.code == 0
    assert ran.out == (
        "PARTITION  BROKER  EPOCH  START  END   HW  TOPIC ID                NOTES\n"
        "old-0           1      -      0    0    0  ?"
        "                       d1/old-0/partition.metadata gives no topic id: No such file or directory\n"
        f"orders:1        1      0      0  140  135  {ORDERS_ID}  -\n"
    ).replace("old-0  ", "old:0  ", 1)
    assert ran.err == (
        f"broker 1 of cluster {CLUSTER_ID}: 2 logs; it was shut down cleanly, broker epoch 77\n"
        "  d1, directory id SukGHeybTqSFiTKFg73fMA: mark of a clean shutdown, broker epoch 77\n"
        "  future, not read: orders:0\n"
        "  stray, not read: gone:3\n"
        "  next: kelr snapshot disks.kelr --log-dir d1\n"
    )


@pytest.mark.usefixtures("disk")
def test_its_document_holds_all_that_the_issue_of_a_dead_broker_asks_for(kelr: Kelr) -> None:
    document = json.loads(kelr("log-info", "--log-dir", "d1", "--lineage", "-o", "json").out)
    Draft202012Validator(SCHEMAS["disk-logs"]()).validate(document)
    (told,) = document["disks"]
    assert (told["broker"], told["cluster_id"], told["running"]) == (1, CLUSTER_ID, False)
    assert (told["clean_shutdown"], told["broker_epoch"], told["logs"], told["unreadable"]) == (True, 77, 2, 0)
    assert [(one["kind"], one["topic"], one["partition"]) for one in told["unused"]] == [
        ("stray", "gone", 3),
        ("future", "orders", 0),
    ]
    orders = document["items"][1]
    assert (orders["topic_id"], orders["log_end"], orders["high_watermark"]) == (ORDERS_ID, 140, 135)
    assert orders["lineage"] == [{"epoch": 0, "start_offset": 0, "end_offset": 140}]


def test_disks_of_several_brokers_are_set_against_each_other(kelr: Kelr) -> None:
    for broker, batches in ((1, 4), (2, 6)):
        made = Disk(Path(f"b{broker}"), broker)
        made.filled("orders-0", [Run(0, batches)])
        made.filled(f"own-{broker}", [Run(0, 1)])
    ran = kelr("log-info", "orders", "--log-dir", "b1", "--log-dir", "b2", "-o", "json")
    assert [(item["broker"], item["log_end"], item["behind_best"]) for item in json.loads(ran.out)["items"]] == [
        (1, 20, 10),
        (2, 30, 0),
    ]
    assert "BEHIND" in kelr("log-info", "--log-dir", "b1", "--log-dir", "b2").out


def test_logs_of_a_topic_that_was_made_again_are_not_set_against_each_other(kelr: Kelr) -> None:
    Disk(Path("b1"), 1).filled("orders-0", [Run(0, 4)])
    other = Disk(Path("b2"), 2).filled("orders-0", [Run(0, 6)])
    (other.path / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_TOPIC_ID}")
    ran = kelr("log-info", "--log-dir", "b1", "--log-dir", "b2", "-o", "json")
    assert [item["behind_best"] for item in json.loads(ran.out)["items"]] == [None, None]


def test_disks_of_two_clusters_are_refused(kelr: Kelr) -> None:
    Disk(Path("b1"), 1)
    Disk(Path("b2"), 2, cluster_id=CLUSTER_ID)
    assert kelr("log-info", "--log-dir", "b1", "--log-dir", "b2").code == 6


def test_a_directory_that_lacks_the_mark_makes_the_shutdown_unclean(kelr: Kelr) -> None:
    Disk(Path("a"), 1).clean()
    Disk(Path("b"), 1)
    ran = kelr("log-info", "--log-dir", "a", "--log-dir", "b")
    assert ": 0 logs; it was not shut down cleanly\n" in ran.err
    assert "  b, directory id SukGHeybTqSFiTKFg73fMA: no mark of a clean shutdown\n" in ran.err


@pytest.mark.usefixtures("disk")
def test_what_is_not_there_is_said(kelr: Kelr) -> None:
    ran = kelr("log-info", "orders:1", "orders:7", "nope", "--log-dir", "d1")
    assert ran.code == 0
    assert "no replica of orders:7 is in d1\n" in ran.err
    assert "no replica of nope is in d1\n" in ran.err
    assert "no replica of orders:1 is" not in ran.err


@pytest.mark.usefixtures("disk", "incident")
def test_beside_a_cluster_the_disk_stands_in_for_its_broker(kelr: Kelr) -> None:
    ran = kelr("log-info", "orders:1", "--log-dir", "d1", "-b", "kafka:9092")
    assert ran.out == (
        "PARTITION  REPLICA  BROKER      ROLE            EPOCH  START  END   HW  BEHIND  SOURCE\n"
        "orders:1   3        live az3    -                   0      0  116  116      24  ListOffsets+Fetch\n"
        "orders:1   1~       fenced az1  elr last-known      0      0  140  135    best  log directory\n"
        "orders:1   2        live az2    -                   0      0  135  120       5  ListOffsets+Fetch\n"
    )
    assert ran.err.endswith("  next: kelr snapshot incident.kelr orders:1 --log-dir d1 -b kafka:9092\n")
    document = json.loads(kelr("log-info", "orders:1", "--log-dir", "d1", "-b", "k:1", "-o", "json").out)
    Draft202012Validator(SCHEMAS["log-info"]()).validate(document)
    assert [one["broker"] for one in document["disks"]] == [1]


@pytest.mark.usefixtures("incident")
def test_a_disk_of_another_cluster_is_refused(kelr: Kelr) -> None:
    Disk(Path("d1"), 1).filled("orders-1")
    assert kelr("log-info", "orders:1", "--log-dir", "d1", "-b", "kafka:9092").code == 6
    assert kelr("snapshot", "x.kelr", "--log-dir", "d1", "-b", "kafka:9092").code == 6
    assert not Path("x.kelr").exists()


@pytest.mark.usefixtures("disk", "incident")
def test_a_snapshot_with_a_disk_is_explained_as_with_its_collection(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = kelr("snapshot", "disk.kelr", "--log-dir", "d1")
    assert alone.code == 0
    assert alone.err.endswith("  next: kelr snapshot incident.kelr --logs disk.kelr -b HOST:PORT\n")
    assert read_collection(Path("disk.kelr")).disks[0].broker == 1

    assert kelr("snapshot", "elsewhere.kelr", "--logs", "disk.kelr", "-b", "kafka:9092").code == 0
    assert kelr("snapshot", "here.kelr", "--log-dir", "d1", "-b", "kafka:9092").code == 0
    both = [read_snapshot(Path(name)).logs[AT] for name in ("elsewhere.kelr", "here.kelr")]
    for logs in both:
        (found,) = (log for log in logs if log.replica == 1)
        assert isinstance(found, ReplicaLog)
        assert (found.log_end, found.source, found.unclean_shutdown) == (140, LOG_DIRECTORY, None)

    monkeypatch.setattr("kelr.commands.session.open_source", open_source)
    explained = kelr("explain", "orders:1", "--snapshot", "here.kelr", "-o", "json")
    (item,) = json.loads(explained.out)["items"]
    (candidate,) = (one for one in item["candidates"] if one["replica"] == 1)
    assert (candidate["log_end"], candidate["source"]) == (140, LOG_DIRECTORY)


@pytest.mark.usefixtures("disk", "incident")
def test_a_collection_counts_in_log_info_as_the_disk_does(kelr: Kelr) -> None:
    assert kelr("snapshot", "disk.kelr", "--log-dir", "d1").code == 0
    ran = kelr("log-info", "orders:1", "--logs", "disk.kelr", "-b", "kafka:9092")
    assert ran.out.splitlines()[2].split()[-7:] == ["0", "0", "140", "135", "best", "log", "directory"]
    assert ran.err.endswith("  next: kelr explain orders:1 --logs disk.kelr -b kafka:9092\n")


@pytest.mark.usefixtures("disk", "incident")
def test_a_snapshot_without_logs_takes_no_disk(kelr: Kelr) -> None:
    assert kelr("snapshot", "x.kelr", "--no-logs", "--log-dir", "d1").code == 2


@pytest.mark.usefixtures("disk", "incident")
def test_a_snapshot_that_holds_a_disk_is_no_collection_of_it(kelr: Kelr) -> None:
    """It does not hold what tells a stale reading from a true one."""
    assert kelr("snapshot", "here.kelr", "--log-dir", "d1", "-b", "kafka:9092").code == 0
    ran = kelr("log-info", "orders:1", "--logs", "here.kelr", "-b", "kafka:9092")
    assert "not read: connection refused" in ran.out.splitlines()[2]
    assert "here.kelr is a snapshot in which logs of broker 1 are from disks: beside a cluster they are not" in ran.err


@pytest.mark.usefixtures("disk", "incident")
@pytest.mark.parametrize(
    "flags",
    [("--snapshot", "s.kelr"), ("--metadata-log", "log"), ("--bootstrap-controller", "c:9093"), ("-b", "k:9092")],
)
def test_whatever_knows_the_cluster_is_asked_beside_the_disk(kelr: Kelr, flags: tuple[str, str]) -> None:
    assert "SOURCE" in kelr("log-info", "orders:1", "--log-dir", "d1", *flags).out
