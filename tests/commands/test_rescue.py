"""kelr rescue from the command line, without a cluster: what a file holds, and what a disk gives."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    Features,
    LogUnavailable,
    LogUnavailableReason,
    Snapshot,
)
from kelr.sources.records.stream import Unread, UnreadKind
from kelr.sources.snapshot_file import write_snapshot
from kelr.view.rescue import preview, time_text
from kelr.view.schema import SCHEMAS
from tests.commands.conftest import Kelr
from tests.rescue.batches import TOPIC_ID, batch, log, marker, partition
from tests.rescue.files import save, tail
from tests.sources.disks import Disk, Run, batches

CLUSTER = "dGVzdC1jbHVzdGVyLTAwMQ"


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    return iter(())


@pytest.fixture
def file(tmp_path: Path) -> str:
    pieces = [
        batch(40, 3, epoch=6),
        batch(43, epoch=7, producer=9, transactional=True, keys=[b"k", b"\xff\x00"]),
        marker(45, 9, commit=True, epoch=7),
        batch(46, 1, epoch=7, producer=9, transactional=True, headers=(("h", b"1"), ("n", None))),
    ]
    broken = [batch(5, 2), Unread(7, None, UnreadKind.NO_ANSWER, "connection refused")]
    held = log(3, (6, 43), (7, 47))
    save(
        tmp_path / "lost.kelr-rescue",
        [tail(pieces, 40, 47, held=held), tail(broken, 5, 9, state=partition("payments", 2))],
    )
    return "lost.kelr-rescue"


def test_show_says_what_is_there_and_what_is_missing(kelr: Kelr, file: str) -> None:
    ran = kelr("rescue", "show", file)
    assert ran.code == 7
    assert ran.out.splitlines() == [
        "PARTITION   REPLICA  READ BY  FROM  TO  EPOCHS  RECORDS  BYTES  NEWEST                    TRANSACTIONS  "
        "       MISSING",
        "orders:0          3  Fetch      40  47  6 7           6    337  1970-01-01 00:00:01.046Z  1 committed, 1 open"
        "  whole",
        "payments:2        3  Fetch       5   9  0             2     81  1970-01-01 00:00:01.006Z  -                   "
        " offsets 7 to 8: connection refused",
    ]
    assert ran.err.splitlines() == [
        "  next: kelr rescue replay lost.kelr-rescue --dry-run",
        "error: lost.kelr-rescue does not hold all that was asked for: payments:2",
        "  fix: MISSING says what; read it from another replica or from a disk",
    ]


def test_one_partition_of_it(kelr: Kelr, file: str) -> None:
    ran = kelr("rescue", "show", file, "orders:0", "-o", "csv")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2
    ran = kelr("rescue", "show", file, "orders:1")
    assert (ran.code, ran.out) == (2, "")
    assert "holds none of these partitions" in ran.err


def test_records_one_by_one(kelr: Kelr, file: str) -> None:
    ran = kelr("rescue", "show", file, "orders:0", "--records")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "PARTITION  OFFSET  EPOCH  TIMESTAMP                 TRANSACTION  KEY     VALUE",
        "orders:0       40      6  1970-01-01 00:00:01.040Z  -            null    6/40",
        "orders:0       41      6  1970-01-01 00:00:01.041Z  -            null    6/41",
        "orders:0       42      6  1970-01-01 00:00:01.042Z  -            null    6/42",
        "orders:0       43      7  1970-01-01 00:00:01.043Z  committed    k       7/43",
        "orders:0       44      7  1970-01-01 00:00:01.044Z  committed    0xff00  7/44",
        "orders:0       45      7  1970-01-01 00:00:01.045Z  COMMIT       -       -",
        "orders:0       46      7  1970-01-01 00:00:01.046Z  open         null    7/46",
    ]


def test_documents_are_as_their_schema_says(kelr: Kelr, file: str) -> None:
    for name, arguments in (("rescue", []), ("rescue-records", ["--records"])):
        document = json.loads(kelr("rescue", "show", file, *arguments, "-o", "json").out)
        assert document["items"]
        assert list(Draft202012Validator(SCHEMAS[name]()).iter_errors(document)) == []
    keys = [item["key"] for item in document["items"] if item["topic"] == "orders"]
    assert keys == [None, None, None, {"utf8": "k"}, {"base64": "/wA="}, keys[5], None]
    assert document["items"][6]["headers"] == [
        {"key": "h", "value": {"utf8": "1"}},
        {"key": "n", "value": None},
    ]


def test_a_file_that_was_changed_is_refused(kelr: Kelr, file: str) -> None:
    path = Path(file)
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    ran = kelr("rescue", "show", file)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")


@pytest.mark.parametrize(
    ("data", "full", "shown"),
    [
        (None, False, "null"),
        (b"", False, ""),
        (b"hello", False, "hello"),
        (b"x" * 41, False, "x" * 39 + "…"),
        (b"x" * 41, True, "x" * 41),
        (b"\x00\x01", False, "0x0001"),
        (b"\xff", False, "0xff"),
        ("grün".encode(), False, "grün"),
    ],
)
def test_previews(data: bytes | None, full: bool, shown: str) -> None:
    assert preview(data, full=full) == shown


def test_a_value_cannot_drive_the_terminal(kelr: Kelr, tmp_path: Path) -> None:
    save(tmp_path / "evil", [tail([batch(0, keys=[b"a long enough key with \x1b[2J in it"])], 0, 1)])
    ran = kelr("rescue", "show", "evil", "--records", "--full")
    assert r"\x1b[2J" in ran.out
    assert "\x1b" not in ran.out


def test_times_that_no_calendar_has_are_numbers() -> None:
    assert time_text(2**62) == f"{2**62} ms"
    assert time_text(None) == "-"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The log directory of broker 1: orders:0 with 6 records in two segments."""
    directory = tmp_path / "kafka"
    (directory / "orders-0").mkdir(parents=True)
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    (directory / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (directory / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n4 0\n")
    first, second = batch(0, 4, epoch=4).data, batch(4, 2, epoch=4).data
    (directory / "orders-0" / f"{0:020}.log").write_bytes(first)
    (directory / "orders-0" / f"{4:020}.log").write_bytes(second)
    return directory


def test_a_disk_is_saved_without_a_cluster(kelr: Kelr, disk: Path) -> None:
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "disk.kelr-rescue", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert list(Draft202012Validator(SCHEMAS["rescue-dump"]()).iter_errors(document)) == []
    assert (document["cluster_id"], document["file"]) == (CLUSTER, "disk.kelr-rescue")
    (item,) = document["items"]
    assert (item["replica"], item["how"], item["records"], item["missing"]) == (1, "log directory", 6, [])
    assert (item["from_offset"], item["to_offset"]) == (0, 6)
    with zipfile.ZipFile("disk.kelr-rescue") as content:
        saved = content.read(f"orders-0/{0:020}.log")
    assert saved == batch(0, 4, epoch=4).data + batch(4, 2, epoch=4).data


DEAD = ("-b", "127.0.0.1:1")
SILENT = "error: only disks were read, as the cluster could not be asked: "


def test_a_disk_is_saved_where_the_cluster_does_not_answer(kelr: Kelr, disk: Path) -> None:
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "disk.kelr-rescue", *DEAD)
    assert ran.code == 7
    assert [line.split()[:7] for line in ran.out.splitlines()[1:]] == [
        ["orders:0", "1", "log", "directory", "0", "6", "4"]
    ]
    err = ran.err.splitlines()
    assert err[0] == (
        "In all: 6 records of 1 partition saved: 6 from the disk of broker 1. Without a cluster nothing tells what"
        " is lost, so all is saved. --elect BROKER compares the disks with that broker's."
    )
    assert err[1] == "  next: kelr rescue show disk.kelr-rescue"
    assert err[2].startswith(SILENT)
    assert Path("disk.kelr-rescue").exists()


@pytest.fixture
def longer(tmp_path: Path) -> Path:
    """The log directory of broker 2: orders:0 with the records of broker 1, and 4 more of a later epoch."""
    directory = tmp_path / "kafka-2"
    (directory / "orders-0").mkdir(parents=True)
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=2\n")
    (directory / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (directory / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n4 0\n5 6\n")
    (directory / "orders-0" / f"{0:020}.log").write_bytes(batch(0, 6, epoch=4).data + batch(6, 4, epoch=5).data)
    return directory


def test_disks_are_compared_with_the_one_that_is_to_lead_also_without_a_cluster(
    kelr: Kelr, disk: Path, longer: Path
) -> None:
    both = ("rescue", "dump", "orders:0", "--log-dir", str(disk), "--log-dir", str(longer))
    ran = kelr(*both, "--elect", "1", "--out", "one.kelr-rescue", *DEAD)
    assert ran.code == 7
    (row,) = [line.split()[:6] for line in ran.out.splitlines()[1:]]
    assert row == ["orders:0", "2", "log", "directory", "6", "10"]
    ran = kelr(*both, "--elect", "2", "--out", "two.kelr-rescue", *DEAD)
    assert ran.code == 7
    assert "orders:0: nothing to save: no log that was read holds what replica 2 lacks" in ran.err
    ran = kelr(*both, "--elect", "3", "--out", "three.kelr-rescue")
    assert ran.code == 0
    assert "orders:0: the log of replica 3, which is to lead, was not read: all that the disks hold is saved" in ran.err
    assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["1", "2"]


def test_what_can_be_read_of_the_one_that_is_to_lead_is_saved_where_it_cannot_be_compared(
    kelr: Kelr, disk: Path, longer: Path
) -> None:
    """Only the others' was."""
    first = disk / "orders-0" / f"{0:020}.log"
    first.write_bytes(batch(0, 2, epoch=4).data + batch(2, 2, epoch=4).data[:-3] + b"xyz")
    both = ("rescue", "dump", "orders:0", "--log-dir", str(disk), "--log-dir", str(longer))
    ran = kelr(*both, "--elect", "1", "--out", "one.kelr-rescue")
    assert ran.code == 7
    assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["1", "2"]
    said = " ".join(ran.err.split())
    assert "the log of replica 1, which is to lead, cannot be compared with any: all that the disks hold is" in said
    assert "Kafka would not load this log" in said


@pytest.mark.parametrize("epochs", [None, "0\n2\n4 0\n5 8\n"])
def test_a_copy_of_a_disk_without_its_first_segments_deleted_nothing(
    kelr: Kelr, disk: Path, tmp_path: Path, epochs: str | None
) -> None:
    """It was "nothing to save", and broker 2's start deletes offsets 0 to 5 everywhere."""
    copied = tmp_path / "copied"
    (copied / "orders-0").mkdir(parents=True)
    (copied / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=2\n")
    (copied / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    if epochs is not None:
        (copied / "orders-0" / "leader-epoch-checkpoint").write_text(epochs)
    segment = batch(6, 2, epoch=4).data + batch(8, 2, epoch=5).data
    (copied / "orders-0" / f"{6:020}.log").write_bytes(segment)
    assert kelr("recover", "collect", "--log-dir", str(copied), "--out", "two.kelr").code == 0
    here = ("rescue", "dump", "orders:0", "--log-dir", str(disk), "--elect", "2", "--overwrite", "--out")
    for second in (("--log-dir", str(copied)), ("--logs", "two.kelr")):
        ran = kelr(*here, "x.kelr-rescue", *second)
        assert ran.code == 0, ran.err
        (row,) = [line.split()[:6] for line in ran.out.splitlines()[1:]]
        assert row == ["orders:0", "1", "log", "directory", "0", "6"]


def test_a_collection_tells_where_the_log_that_is_to_lead_ends(kelr: Kelr, disk: Path, longer: Path) -> None:
    assert kelr("recover", "collect", "--log-dir", str(disk), "--out", "broker-1.kelr").code == 0
    here = ("rescue", "dump", "orders:0", "--log-dir", str(longer), "--logs", "broker-1.kelr")
    ran = kelr(*here, "--elect", "1", "--out", "one.kelr-rescue")
    assert ran.code == 0
    (row,) = [line.split()[:6] for line in ran.out.splitlines()[1:]]
    assert row == ["orders:0", "2", "log", "directory", "6", "10"]


def test_a_disk_that_was_read_while_its_broker_ran_says_nothing_of_the_leader_to_come(
    kelr: Kelr, disk: Path, longer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.sources.disk.reading._runs", lambda place: Path(place) == disk)
    both = ("rescue", "dump", "orders:0", "--log-dir", str(disk), "--log-dir", str(longer))
    ran = kelr(*both, "--elect", "1", "--out", "one.kelr-rescue")
    assert ran.code == 7
    (row,) = [line.split()[:6] for line in ran.out.splitlines()[1:]]
    assert row == ["orders:0", "2", "log", "directory", "0", "10"]
    assert "the log of replica 1, which is to lead, was read while its broker ran, and is not believed" in ran.err


def test_log_info_shows_a_disk_where_the_cluster_does_not_answer(kelr: Kelr, disk: Path) -> None:
    for targets in (("orders",), ()):
        ran = kelr("log-info", *targets, "--log-dir", str(disk), *DEAD)
        assert ran.code == 7
        assert [line.split()[:6] for line in ran.out.splitlines()[1:]] == [["orders:0", "1", "4", "0", "6", "0"]]
        assert "the cluster could not be asked: the log directories alone were read" in ran.err
        # It reads the disk alone, so that no connection goes with it.
        following = ["recover", "collect", *targets, "--log-dir", str(disk), "--out", "disks.kelr"]
        assert f"  next: kelr {' '.join(following)}" in ran.err.splitlines()
        assert SILENT in ran.err
    document = json.loads(kelr("log-info", "orders", "--log-dir", str(disk), *DEAD, "-o", "json").out)
    assert list(Draft202012Validator(SCHEMAS["disk-logs"]()).iter_errors(document)) == []
    assert [item["log_end"] for item in document["items"]] == [6]


@pytest.mark.parametrize("offsets", [(), ("--from-offset", "0"), ("--from-offset", "0", "--to-offset", "6")])
def test_a_damaged_segment_is_stepped_over_and_named(kelr: Kelr, disk: Path, offsets: tuple[str, ...]) -> None:
    path = disk / "orders-0" / f"{0:020}.log"
    path.write_bytes(batch(0, 2, epoch=4).data + batch(2, 2, epoch=4).data[:-3] + b"xyz")
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "d.kelr-rescue", *offsets, "-o", "json")
    assert ran.code == 7
    document = json.loads(ran.out)
    assert "Kafka would not load this log" in document["notes"][0]["text"]
    (item,) = document["items"]
    assert (item["from_offset"], item["to_offset"], item["records"]) == (0, 6, 4)
    (missing,) = item["missing"]
    assert missing.startswith("offsets 2 to 3: ")
    assert "does not match its checksum" in missing


@pytest.mark.parametrize("options", [(), ("--elect", "1"), ("--from-offset", "0")])
def test_what_kafka_would_cut_off_behind_a_damaged_batch_is_saved(
    kelr: Kelr, tmp_path: Path, options: tuple[str, ...]
) -> None:
    made = Disk(tmp_path / "d1")
    replica = made.replica("orders-0")
    for base in (0, 20, 40):
        replica.segment(base, batches(base, [Run(0, 4)]))
    replica.epochs((0, 0))
    made.high_watermarks(**{"orders-0": 60})
    first = replica.path / f"{0:020}.log"
    content = bytearray(first.read_bytes())
    content[len(content) // 4 + 80] ^= 1
    first.write_bytes(content)
    ran = kelr(
        "rescue", "dump", "orders:0", "--log-dir", str(made.path), "--out", "d.kelr-rescue", *options, "-o", "json"
    )
    assert ran.code == 7
    (item,) = json.loads(ran.out)["items"]
    begins, gap, records = (5, "offsets 5 to 19: ", 40) if "--elect" in options else (0, "offsets 5 to 19: ", 45)
    assert (item["from_offset"], item["to_offset"], item["records"]) == (begins, 60, records)
    (missing,) = item["missing"]
    assert missing.startswith(gap)


DUMP = ["rescue", "dump", "orders", "--out", "x.kelr-rescue"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rescue", "dump", "--out", "x.kelr-rescue"], "wants to know which partitions"),
        (["rescue", "dump", "orders", "--out", "lost.kelr-rescue"], "exists already"),
        (
            ["rescue", "dump", "orders", "--out", "x.kelr-rescue", "--from-offset", "5", "--to-offset", "5"],
            "there is nothing from",
        ),
        (
            ["rescue", "dump", "orders", "--out", "x.kelr-rescue", "--elect", "1", "--plan", "p"],
            "both say who is to lead",
        ),
        ([*DUMP, "--log-dir", "nowhere"], "nowhere"),
        (DUMP, "nothing says which cluster to ask"),
        (["rescue", "dump", "orders", "--out", "x.zip"], "fix: write --out x.kelr-rescue"),
        (["rescue", "replay", "lost.kelr-rescue"], "nothing says which cluster to ask"),
        (["rescue", "replay", "none", "-b", "127.0.0.1:1"], "No such file"),
        (["rescue", "show", "none"], "No such file"),
    ],
)
@pytest.mark.usefixtures("file")
def test_what_cannot_be_done_is_said(kelr: Kelr, arguments: list[str], message: str) -> None:
    ran = kelr(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert not Path("x.kelr-rescue").exists()


def test_what_compaction_removed_is_told_and_is_not_lost(kelr: Kelr, tmp_path: Path) -> None:
    pieces = [batch(40, 1, keys=[b"a"]), batch(44, 2, keys=[b"b", b"c"])]
    save(tmp_path / "kept.kelr-rescue", [tail(pieces, 40, 46, compacted=True)])
    save(tmp_path / "holes.kelr-rescue", [tail(pieces, 40, 46, compacted=False)])
    for name, away in (("kept", 3), ("holes", 0)):
        (item,) = json.loads(kelr("rescue", "show", f"{name}.kelr-rescue", "-o", "json").out)["items"]
        assert (item["records"], item["compacted_away"]) == (3, away)


def test_a_dump_that_cannot_tell_all_says_itself_what_where_and_what_next(
    kelr: Kelr, disk: Path, longer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.sources.disk.reading._runs", lambda place: Path(place) == disk)
    both = ("rescue", "dump", "orders:0", "--log-dir", str(disk), "--log-dir", str(longer), "--elect", "1")
    err = kelr(*both, "--out", "one.kelr-rescue", "-o", "json").err.splitlines()
    assert err[-2].startswith(
        "error: not all that is to be saved is known: orders:0: the log of replica 1, which is to lead, was"
        " read while its broker ran, and is not believed"
    )
    assert err[-1].startswith(
        "  fix: once the broker is down, the same command on its host with --log-dir DIRECTORY saves what"
    )
    # Said once: not in a note as well.
    assert kelr(*both, "--out", "two.kelr-rescue").err.count("is not believed") == 1


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """orders:0 without a leader: broker 3 lives with 4 offsets, and the ELR, broker 1, does not answer."""
    brokers = (Broker(1, BrokerStatus.FENCED, "127.0.0.1", 9101), Broker(3, BrokerStatus.LIVE, "127.0.0.1", 9103))
    features = Features({"eligible.leader.replicas.version": 1}, {"metadata.version": 30})
    state = partition(leader=None, replicas=(1, 3), isr=(), elr=(1,), last_known_elr=())
    unread = LogUnavailable(1, LogUnavailableReason.UNREACHABLE, "connection refused")
    logs = {state.address: (unread, log(3, (4, 4)))}
    write_snapshot(Snapshot(0, Cluster(CLUSTER, brokers, features), (state,), {}, logs), tmp_path / "saved.kelr")
    return "saved.kelr"


IN_SNAPSHOT = ("rescue", "dump", "orders:0", "--elect", "3", "--out", "x.kelr-rescue", "--snapshot", "saved.kelr")


@pytest.mark.usefixtures("snapshot")
def test_no_election_is_next_where_no_disk_of_the_elr_was_read(kelr: Kelr) -> None:
    ran = kelr(*IN_SNAPSHOT)
    assert (ran.code, ran.out) == (7, "")
    assert "what replica 1 holds is not known" in ran.err
    assert "next:" not in ran.err


@pytest.mark.usefixtures("snapshot")
def test_a_disk_that_cannot_be_compared_is_saved_whole_in_the_cluster_too(kelr: Kelr, disk: Path) -> None:
    """It counted as nothing to save, and `elect` came next."""
    last = disk / "orders-0" / f"{4:020}.log"
    last.with_suffix(".index").write_bytes(b"")
    last.write_bytes(last.read_bytes() + bytes(500))
    (disk / ".kafka_cleanshutdown").write_text('{"version": 0, "brokerEpoch": 77}')
    ran = kelr(*IN_SNAPSHOT, "--log-dir", str(disk))
    assert ran.code == 0, ran.err
    (row,) = [line.split()[:8] for line in ran.out.splitlines()[1:]]
    assert row == ["orders:0", "1", "log", "directory", "0", "6", "4", "6"]
    assert "broker 1: Kafka would not load this log" in ran.err
    assert "nothing to save" not in ran.err
    # Of another topic of this name it is none of this partition's records.
    (disk / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: oSNx-MM6QOmtD1MAN56DDg\n")
    ran = kelr(*IN_SNAPSHOT, "--log-dir", str(disk), "--overwrite")
    assert (ran.code, ran.out) == (7, "")


@pytest.mark.usefixtures("snapshot")
def test_what_is_saved_beside_a_snapshot_asks_for_no_cluster_and_is_in_the_audit_log(
    kelr: Kelr, longer: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file was written, and the run ended with 'no cluster was named'."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    (longer / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    ran = kelr(*IN_SNAPSHOT, "--log-dir", str(longer))
    assert ran.code == 0, ran.err
    assert [line.split()[4:6] for line in ran.out.splitlines()[1:]] == [["4", "10"]]
    (audit,) = (tmp_path / "state").rglob("audit*")
    assert "records saved in x.kelr-rescue" in audit.read_text()


def test_a_replica_in_two_log_directories_is_saved_from_both(kelr: Kelr, disk: Path, longer: Path) -> None:
    """The first one was saved, as 'whole' and 'all': the order of the flags told which."""
    for path in (disk, longer):
        (path / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    for number, (one, other) in enumerate(((disk, longer), (longer, disk))):
        out = ("--log-dir", str(one), "--log-dir", str(other), "--out", f"{number}.kelr-rescue")
        ran = kelr("rescue", "dump", "orders:0", *out)
        assert ran.code == 0, ran.err
        rows = [line.split()[4:6] for line in ran.out.splitlines()[1:]]
        assert sorted(rows) == [["0", "10"], ["0", "6"]]
        for path in (one, other):
            assert f"Kafka does not start; all of {path}/orders-0 is saved" in " ".join(ran.err.split())


@pytest.mark.usefixtures("snapshot")
def test_a_replica_in_two_log_directories_is_saved_from_both_in_the_cluster(
    kelr: Kelr, disk: Path, longer: Path
) -> None:
    (longer / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n")
    ran = kelr(*IN_SNAPSHOT, "--log-dir", str(disk), "--log-dir", str(longer))
    assert ran.code == 0, ran.err
    assert sorted(line.split()[4:6] for line in ran.out.splitlines()[1:]) == [["0", "10"], ["0", "6"]]
    ran = kelr("rescue", "show", "x.kelr-rescue")
    assert (ran.code, len(ran.out.splitlines())) == (0, 3)


def test_a_log_directory_that_cannot_be_read_leaves_open_what_is_in_it(kelr: Kelr, disk: Path, tmp_path: Path) -> None:
    """The dump ended with 0 and 'all is saved'."""
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "meta.properties").write_text("version=9\nnode.id=1\n")
    ran = kelr("rescue", "dump", "orders", "--log-dir", str(disk), "--log-dir", str(bad), "--out", "d.kelr-rescue")
    assert ran.code == 7
    assert "all that could be read is saved" in ran.err
    assert "next:" not in ran.err
    assert f"error: any replica may be in log directories that could not be read: {bad}" in ran.err


def test_directories_of_the_partition_that_are_not_the_replica_are_named(kelr: Kelr, disk: Path) -> None:
    for kind in ("future", "stray", "delete"):
        (disk / f"orders-0.0123456789abcdef0123456789abcdef-{kind}").mkdir()
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "d.kelr-rescue")
    assert ran.code == 0, ran.err
    said = " ".join(ran.err.split())
    for suffix, kind in (("future", "future"), ("stray", "stray"), ("delete", "deleted")):
        assert f"-{suffix} ({kind}, not the replica itself)" in said
    assert "all that could be read is saved" in said


@pytest.mark.parametrize("kind", ["future", "stray", "delete"])
@pytest.mark.parametrize("elect", [(), ("--elect", "2")])
def test_a_partition_of_which_a_disk_has_only_such_directories_is_not_saved(
    kelr: Kelr, disk: Path, elect: tuple[str, ...], kind: str
) -> None:
    """It was "the log directories hold none of these partitions"."""
    aside = disk / f"orders-0.0123456789abcdef0123456789abcdef-{kind}"
    (disk / "orders-0").rename(aside)
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "d.kelr-rescue", *elect)
    assert (ran.code, ran.out) == (7, "")
    assert f"orders:0: not saved: {aside} ({kind.replace('te', 'ted')}, not the replica itself)" in " ".join(
        ran.err.split()
    )
    assert "nothing was saved: there is no file" in ran.err


def test_a_batch_of_an_old_format_hides_none_of_those_behind_it(kelr: Kelr, disk: Path) -> None:
    """Of orders:0, offsets 4 and 5 were of format 1, and all from there on counted as not read."""
    old = b"".join(old_batch(offset) for offset in (4, 5))
    (disk / "orders-0" / f"{4:020}.log").write_bytes(old + batch(6, 2, epoch=4).data)
    (disk / "orders-0" / f"{8:020}.log").write_bytes(batch(8, 1, epoch=4).data)
    ran = kelr("rescue", "dump", "orders:0", "--log-dir", str(disk), "--out", "d.kelr-rescue", "-o", "json")
    assert ran.code == 7
    (item,) = json.loads(ran.out)["items"]
    assert (item["from_offset"], item["to_offset"], item["records"]) == (0, 9, 7)
    assert item["missing"] == ["offsets 4 to 5: message format 1 is too old: kelr reads format 2, Kafka 0.11's"]


def old_batch(offset: int) -> bytes:
    """A record of message format 1."""
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=10_000)
    builder.append(0, 1_700_000_000_000, b"k", b"v")
    return struct.pack(">q", offset) + bytes(builder.build())[8:]
