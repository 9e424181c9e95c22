"""What ``kelr recover`` and ``kelr rescue`` print, with everything that is rare in it: nobody, nothing, and not known.

Where a command's own function prints an output, that is what is called here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kelr.commands.rescue_show import show_file
from kelr.engine import KnownLogs
from kelr.engine.planning.verification import findings
from kelr.errors import PartlyDoneError
from kelr.model import EpochEnd, LogUnavailable, LogUnavailableReason, Passed, ReplicaLog, TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery.clear_elr import ClearedPartition, ElrPrice
from kelr.recovery.status import ConfigStatus, JournalStatus, PartitionStatus, RecoveryStatus
from kelr.sources.records.records import Record
from kelr.sources.records.stream import Unread, UnreadKind
from kelr.view.disk_logs import DiskRow, ShownDirectory, ShownDisk, UnusedReplica, disk_logs_view, disks_document
from kelr.view.output import Output
from kelr.view.recovery_status import (
    Put,
    audit_view,
    cleared_view,
    price_head,
    price_lines,
    show_put_right,
    show_status,
)
from kelr.view.rescue import ReplayRow, TailRow, dump_view, replay_view
from kelr.view.saved import Collected, show_collection
from kelr.view.verification import Verified, show_verification
from kelr.view.watch.lines import begin_lines, change_lines, watch_view
from tests.recovery.aftermath import AT, NOW_MS, PLAN, PLANNED, WELL, seen
from tests.rescue.batches import batch, batch_bytes, log, marker, partition, raw
from tests.rescue.files import save, tail
from tests.view.context_samples import CONTEXT_SAMPLES
from tests.view.fleet_samples import FLEET_SAMPLES
from tests.view.printing import Printed, listed
from tests.view.quorum_samples import QUORUM_SAMPLES
from tests.view.watched import CHANGES, SAID, at_first, later

STRAY = "/srv/caf\udce9"
"""A directory whose name is not UTF-8, as Python reads it."""
FILE_HEAD = {"file": "lost.kelr-rescue", "cluster_id": None, "taken_at_ms": NOW_MS, "plan_id": None}


# Verification: well, not yet, not well, and not looked at.

SECOND = replace(PLANNED, partition=2)
LEADERLESS = replace(PLANNED, partition=3)
HIDDEN = replace(PLANNED, topic="payments", partition=0)
BEYOND = CommittedOffsets({AT: (CommittedOffset("abrechnung-köln", 150, 3),)}, groups=1)
VERIFIED = Verified(
    replace(PLAN, cluster_id=None, elections=(PLANNED, SECOND, LEADERLESS, HIDDEN)),
    [
        *findings(PLANNED, seen(state={"isr": (2,)}, committed=BEYOND)),
        *findings(SECOND, WELL),
        *findings(LEADERLESS, seen(state={"leader": None, "leader_epoch": 9})),
        *findings(HIDDEN, seen(min_isr=None)),
    ],
    NOW_MS,
)
assert {one.passed for one in VERIFIED.findings} == set(Passed)


def verification(output: Output) -> None:
    show_verification(
        output, VERIFIED, stock_connection="--bootstrap-server k:1", following=("recover", "verify", "plan é.json")
    )


# Status, resume and undo.

JOURNAL = "20231114-221320-1f"
_LEFT = PartitionStatus(
    "orders",
    1,
    2,
    None,
    8,
    (2, 3, 1),
    (3, 1, 2),
    reordered=True,
    begun=True,
    ended=None,
    text="no leader; it still has the order",
)
_GONE = replace(
    _LEFT,
    partition=2,
    order=None,
    restores=(3, 1),
    reordered=False,
    ended="no-leader",
    text="there is no such partition",
)
_CONFIG = ConfigStatus("orders", "min.insync.replicas", None, None, left=True, text="not restored yet")
_HOLD = JournalStatus(
    "20231114-221321-20",
    Path("20.jsonl"),
    "recover clear-elr",
    "ada",
    "laptop",
    NOW_MS,
    NOW_MS,
    None,
    (),
    (),
    "cut short",
    "",
)
STATUS = RecoveryStatus(
    cluster_id=None,
    at_work=True,
    journals=(
        replace(
            _HOLD,
            name=JOURNAL,
            command="recover apply",
            user="žofie",
            last_ms=NOW_MS + 1,
            plan_id="0123456789ab",
            partitions=(_LEFT, _GONE),
            configs=(_CONFIG,),
        ),
        _HOLD,
    ),
    plan_partitions=(
        replace(_LEFT, partition=0, leader=2, restores=(2, 3, 1), reordered=False, text="broker 2 leads"),
    ),
    garbled=(f"{STRAY}/x.jsonl, line 3: garbled journal",),
)


def recovery_status(output: Output) -> None:
    show_status(output, STATUS, following=("recover", "resume", JOURNAL))


PUTS = (
    Put("order", "orders", 0, "restored", True, "3,1,2", "3,1,2"),
    Put("order", "orders", 1, "not restored", False, "2,3,1", "3,1,2", "no answer — né", "REQUEST_TIMED_OUT"),
    Put("order", "orders", 2, "changed by somebody else", False, None, "3,1,2", "there is no such partition"),
    Put("config", "orders", None, "restored", True, "", None),
    Put("election", "orders", 1, "no-leader", False, None, "2", "", "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
)


def put_right(output: Output) -> None:
    show_put_right(output, PUTS, journal=JOURNAL, plan_id=None, closed=False, following=("recover", "status"))


# Hold.

HELD = (
    ClearedPartition("orders", 0, 3, 4, (), (2,), ()),
    ClearedPartition("orders", 1, None, 4, (1,), (1,), (1,), True),
    ClearedPartition("orders", 2, None, 4, (2, 3), (), (), False),
)
PRICE = ElrPrice(
    topic="orders",
    cluster_id=None,
    own_value=None,
    writes="2",
    leaderless=(1, 2),
    cleared=HELD,
    producers="Producers see nothing: the value in force stays the same.",
    defect="Kafka's controller keeps the cleared entries in its index.",
    refusal=None,
    needs_force="broker 1 would lead orders:1 without loss of a committed record",
)


def hold(output: Output) -> None:
    """As ``kelr recover clear-elr`` has it: people get sentences and a table, machines a listing."""
    if output.format.for_people:
        for line in price_lines(output, PRICE):
            output.line(line)
        return
    outcome = {"done": False, "restored": None, "text": "ELR of 1 partition is empty", "next": "kelr recover status"}
    listed(cleared_view(), HELD, price_head(PRICE), outcome)(output)


# The audit log.

AUDITED = (
    AuditRecord(
        at_ms=NOW_MS,
        what=AuditWhat.ELECTION,
        command="recover apply",
        topic="orders",
        partition=1,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        user="žofie",
        host="laptop",
        principal="User:CN=Žofie,OU=On call",
        result="other-leader",
        plan_id="0123456789ab",
        journal=f"{JOURNAL}.jsonl",
        election="designation",
        method="reorder",
        wanted=2,
        before={"leader": None, "isr": [], "elr": [1], "rack": "az\u00e9"},
        after={"leader": 3, "leader_epoch": 9},
        evidence=({"replica": 2, "log_end": 135}, {"replica": 1, "unheard": "unreachable, \u00e9"}),
        loss={"grade": "bounded", "total": [0, None]},
        consent={"needed": "loss", "yes": True, "accept_loss": ["orders:1=19"]},
        force_reason='rack "é" burned;\r\nbrokers 1, 2',
        error="ELECTION_NOT_NEEDED",
        text="broker 3 leads, and not 2",
    ),
    AuditRecord(NOW_MS + 1, AuditWhat.HOLD, "recover clear-elr", "orders", None, None, "ada", "h", None, "done"),
    AuditRecord(NOW_MS + 2, AuditWhat.RESCUE, "rescue replay", "orders", 0, None, "ada", "h", None, "begun"),
)
audit_log = listed(audit_view(), AUDITED, {"file": f"{STRAY}/audit.jsonl"}, {})


# Collection.

COLLECTED = (
    Collected(None, 12, 0),
    Collected(1, 3, 1, clean_shutdown=False, running=True, warnings=("the broker ran", f"{STRAY}: is garbled")),
    Collected(2, 0, 0, clean_shutdown=True, running=None),
)


def collection(output: Output) -> None:
    following = ("recover", "plan", "--logs", STRAY, "--out", "plan.json")
    show_collection(output, STRAY, COLLECTED, notes=("orders:1: files disagree; é",), following=following)


# Rescue files.


def saved_file() -> Path:
    """A rescue file in the working directory: text and bytes, a transaction of each end, a record without an epoch, a
    record without a time, a marker, and a tail of which the end is missing."""
    path = Path("lost.kelr-rescue")
    if path.exists():
        return path
    timeless = Record(42, None, b"", None, (("\u00e9", "k\u00f8benhavn".encode()), ("n", None)))
    pieces = [
        batch(40, 2, epoch=-1, keys=["k\u00f8benhavn".encode(), b"a\r\nb"]),
        raw(batch_bytes([timeless], epoch=7)),
        batch(43, epoch=7, producer=9, transactional=True, keys=[b"\xff\x00", None]),
        marker(45, 9, commit=True, epoch=7),
        batch(46, 1, epoch=7, producer=10, transactional=True, headers=(("h", b"1"), ("h", b"\xff"))),
        marker(47, 10, commit=False, epoch=7),
        batch(48, 1, epoch=8, producer=2**62, transactional=True),
    ]
    broken = [batch(5, 2), Unread(7, None, UnreadKind.NO_ANSWER, "connection refused")]
    nothing = [Unread(0, None, UnreadKind.NO_ANSWER, "connection refused \u2014 no route")]
    tails = [
        tail(pieces, 40, 49, held=log(3, (7, 48), (8, 49))),
        tail(broken, 5, 9, state=partition("payments", 2)),
        tail(nothing, 0, 9, state=partition("payments", 3)),
    ]
    save(path, tails, cluster_id=None)
    return path


def shown(*, records: bool) -> Printed:
    def show(output: Output) -> None:
        with suppress(PartlyDoneError):  # That a tail is not whole is told by the exit code, after all was shown.
            show_file(output, saved_file(), (), records=records, full=False)

    return show


SAVED = TailRow(
    topic="orders",
    partition=0,
    replica=3,
    how="log directory",
    why="replica 2, which leads, lacks these",
    from_offset=40,
    to_offset=47,
    records=6,
    batches=4,
    size_bytes=337,
    epochs=(6, None),
    first_timestamp_ms=NOW_MS,
    last_timestamp_ms=2**62,
    committed=1,
    aborted=0,
    open=1,
    producers=1,
    missing=(f"offsets 40 to 41: {STRAY}: no such file", "the batch at offset 44: é"),
)
NOTHING_SAVED = replace(
    SAVED,
    partition=1,
    records=0,
    batches=0,
    size_bytes=0,
    epochs=(),
    first_timestamp_ms=None,
    last_timestamp_ms=None,
    committed=0,
    open=0,
    producers=0,
    missing=("offsets 40 to 46: connection refused",),
)
NOTES = [{"partition": "orders:2", "text": "nobody can tell what replica 1 has: é"}]
rescue_dump = listed(
    dump_view(),
    (SAVED, NOTHING_SAVED),
    {**FILE_HEAD, "file": None},
    {"notes": NOTES, "next": None},
)
REPLAYED = (
    ReplayRow("orders", 0, "orders", 6, 1, 2, 3, 4, 5, 6, 7),
    ReplayRow("orders", 1, "orders-rescued", 0, 0, 0, 0, 0, 0, 0, 0, "TOPIC_AUTHORIZATION_FAILED: é, denied"),
)
rescue_replay = listed(
    replay_view(done=True),
    REPLAYED,
    {**FILE_HEAD, "dry_run": False, "warnings": ["keys are é"]},
    {"totals": {"records": 6, "partitions": 1, "skipped_partitions": 0, "skipped_records": 0}, "next": None},
)

DISK = ShownDisk(
    broker=1,
    cluster_id=None,
    read_at_ms=5,
    running=None,
    clean_shutdown=None,
    broker_epoch=None,
    logs=1,
    unreadable=1,
    directories=(
        ShownDirectory("/d/1", "id", True, None, False, False, None),
        ShownDirectory("/d/\u00e9", None, None, None, None, True, "Permission denied"),
    ),
    unused=(UnusedReplica(TopicPartition("orders", 3), "stray", "/d/1/orders-3.x-stray"),),
    warnings=("/d/\u00e9 could not be read",),
)
WHOLE = ReplicaLog(1, 10, 2, high_watermark=9, log_start=0, lineage=(EpochEnd(0, 4), EpochEnd(2, 10)))
DISK_ROWS = (
    DiskRow(TopicPartition("orders", 0), "id", WHOLE, "/d/1/orders-0", 7, ("cut off",), KnownLogs({1: WHOLE})),
    DiskRow(
        TopicPartition("orders", 1),
        None,
        LogUnavailable(1, LogUnavailableReason.STORAGE_ERROR, "input/output error"),
        "/d/1/orders-1",
    ),
)
disk_logs = listed(
    disk_logs_view(several=True, lineage=True),
    DISK_ROWS,
    {"source": "log directory", "disks": disks_document([DISK])},
    {"notes": ["no replica of x is there"], "next": None},
)

WATCHED = later(at_first())
assert WATCHED.story is not None
watch = listed(
    watch_view(),
    [*begin_lines(WATCHED.story.sight), *change_lines(WATCHED.story.sight, CHANGES), SAID],
    {"cluster_id": None, "targets": ["caf\u00e9-*"], "interval_s": 0.5},
    {},
)

SAMPLES: Mapping[str, Printed] = {
    "verification": verification,
    "recovery-status": recovery_status,
    "put-right": put_right,
    "hold": hold,
    "audit-log": audit_log,
    "collection": collection,
    "disk-logs": disk_logs,
    "rescue": shown(records=False),
    "rescue-records": shown(records=True),
    "rescue-dump": rescue_dump,
    "rescue-replay": rescue_replay,
    "watch": watch,
    **FLEET_SAMPLES,
    **CONTEXT_SAMPLES,
    **QUORUM_SAMPLES,
}
"""Prints each output that needs what no incident of `tests.incident` has."""
