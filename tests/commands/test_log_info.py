"""``kelr log-info``: whole outputs, lineages, and replicas that nobody heard."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from kelr.model import EpochEnd, LogAnswer, ReplicaLog, Snapshot, TopicPartition
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT
from tests.sources.test_log_pages import LiveLike

pytestmark = pytest.mark.usefixtures("incident")


def test_table(kelr: Kelr) -> None:
    ran = kelr("log-info", "orders:1", "payments", "-b", "kafka:9092")
    assert ran.code == 0
    assert (
        ran.out
        == """\
PARTITION   REPLICA  BROKER      ROLE            EPOCH  START  END   HW          BEHIND  SOURCE
orders:1    3        live az3    -                   0      0  116  116              19  ListOffsets+Fetch
orders:1    1~       fenced az1  elr last-known      ?      ?    ?    ?               ?  not read: connection refused
orders:1    2        live az2    -                   0      0  135  120  best of 2 read  ListOffsets+Fetch
payments:0  3        live az3    leader isr          1      0   50   40  best of 2 read  ListOffsets+Fetch
payments:0  2        live az2    elr                 0     10   45   40              20  ListOffsets+Fetch
payments:0  1~       fenced az1  -                   ?      ?    ?    ?               ?  not read: connection refused
"""
    )
    assert ran.err == "  next: kelr explain orders:1 payments -b kafka:9092\n"


def test_lineage_shows_epochs_and_where_logs_part(kelr: Kelr) -> None:
    ran = kelr("log-info", "payments", "--lineage")
    assert [line[ran.out.index("PARTS AT") :].split() for line in ran.out.splitlines()] == [
        ["PARTS", "AT", "EPOCHS"],
        ["-", "0:0..30", "1:30..50"],
        ["30", "0:10..45"],
        ["?", "?"],
    ]


def test_json(kelr: Kelr) -> None:
    items = json.loads(kelr("log-info", "payments", "--lineage", "-o", "json").out)["items"]
    assert items[1] == {
        "topic": "payments",
        "partition": 0,
        "leader": 3,
        "leader_epoch": 1,
        "replica": 2,
        "broker_status": "live",
        "rack": "az2",
        "roles": ["elr"],
        "heard": True,
        "broker_epoch": None,
        "last_epoch": 0,
        "current_leader_epoch": 1,
        "log_start": 10,
        "local_start": None,
        "remote_end": None,
        "log_end": 45,
        "high_watermark": 40,
        "behind_best": 20,
        "best": False,
        "parts_at": 30,
        "lineage": [{"epoch": 0, "start_offset": 10, "end_offset": 45}],
        "source": "ListOffsets+Fetch",
        "read_at_ms": None,
        "last_epoch_error": None,
        "saved_high_watermark": None,
        "last_stable_offset": None,
        "not_heard": None,
        "not_heard_detail": None,
    }
    assert (items[2]["heard"], items[2]["not_heard"], items[2]["log_end"]) == (False, "unreachable", None)


def test_an_answer_older_than_the_partition_is_not_used(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    address = TopicPartition("orders", 1)
    stale = ReplicaLog(3, 999, 0, current_leader_epoch=1, source="ListOffsets+Fetch")
    cluster(replace(INCIDENT, logs={address: (stale, *INCIDENT.logs[address][1:])}))
    ran = kelr("log-info", "orders:1", "-o", "ndjson")
    first = json.loads(ran.out.splitlines()[0])
    assert (first["heard"], first["not_heard"], first["log_end"]) == (False, "stale", None)


def test_a_newer_leader_epoch_is_said(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    address = TopicPartition("orders", 1)
    newer = ReplicaLog(3, 116, 0, current_leader_epoch=3, source="ListOffsets+Fetch")
    cluster(replace(INCIDENT, logs={address: (newer, *INCIDENT.logs[address][1:])}))
    assert "orders:1 moved on while it was read: a broker knows leader epoch 3\n" in kelr("log-info", "orders:1").err


def test_an_epoch_that_could_not_be_read_is_said_in_its_row(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    address = TopicPartition("orders", 1)
    refused = ReplicaLog(3, 116, source="ListOffsets", last_epoch_error="TOPIC_AUTHORIZATION_FAILED (READ)")
    cluster(replace(INCIDENT, logs={address: (refused, *INCIDENT.logs[address][1:])}))
    row = kelr("log-info", "orders:1").out.splitlines()[1]
    assert row.endswith("?      ?  116    ?               ?  ListOffsets; epochs: TOPIC_AUTHORIZATION_FAILED (READ)")
    assert "a log whose epochs are not known (SOURCE says why) cannot be compared\n" in kelr("log-info", "orders:1").err


def test_behind_is_known_without_asking_for_lineage(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: LiveLike())
    ran = kelr("log-info", "payments")
    first, second = (line.split() for line in ran.out.splitlines()[1:3])
    assert (first[-7:-1], second[-4:-1]) == (["50", "40", "best", "of", "2", "read"], ["45", "40", "20"])
    assert "EPOCHS" not in ran.out
    assert ran.err == "  next: kelr explain payments\n"


def test_why_behind_is_not_known_is_said_to_people(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    unknown = {address: tuple(map(without_lineage, logs)) for address, logs in INCIDENT.logs.items()}
    cluster(replace(INCIDENT, logs=unknown))
    ran = kelr("log-info", "payments")
    assert ran.out.splitlines()[2].split()[-2] == "?"
    assert ran.err.splitlines()[0] == (
        "BEHIND is not known for some logs that were read: logs that end in different epochs are compared by all their"
        " epochs, and those are not known here"
    )
    assert kelr("log-info", "payments", "-o", "csv").err == "  next: kelr explain payments\n"
    assert "BEHIND" not in kelr("log-info", "orders:1").err


def without_lineage(answer: LogAnswer) -> LogAnswer:
    return replace(answer, lineage=None) if isinstance(answer, ReplicaLog) else answer


def test_targets_are_required(kelr: Kelr) -> None:
    ran = kelr("log-info")
    assert ran.code == 2
    assert "--all-topic-partitions asks all" in ran.err
    assert kelr("log-info", "--all-topic-partitions").code == 0


@pytest.mark.parametrize("target", ["nope-*", "payments-*"])
def test_no_partition_seen_is_said(kelr: Kelr, target: str) -> None:
    ran = kelr("log-info", target)
    assert ran.code == 1
    assert "no partition was found: brokers leave topics that this principal may not describe" in ran.err


def test_the_best_log_is_best_of_all_where_all_were_read(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    payments = TopicPartition("payments", 0)
    (state,) = (one for one in INCIDENT.partitions if one.address == payments)
    cluster(replace(INCIDENT, partitions=(replace(state, replicas=(3, 2)),)))
    cells = kelr("log-info", "payments").out.splitlines()[1].split()
    assert (cells.count("best"), cells.count("read")) == (1, 0)


def test_unknown_topics(kelr: Kelr) -> None:
    assert kelr("log-info", "nope").code == 2
    assert kelr("log-info", "nope", "orders").code == 7


def test_remote_storage_is_told_and_a_log_that_begins_later_than_its_leaders(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    """As Kafka 4.4.0 leaves a follower that it truncated to before its first segment."""
    ends = (EpochEnd(0, 60), EpochEnd(2, 80))
    led = ReplicaLog(3, 80, 2, 2, 80, 0, ends, source="Fetch", local_start=70, remote_end=75)
    follows = ReplicaLog(2, 80, 2, 2, 80, 60, ends[1:], source="Fetch", local_start=80)
    state = replace(INCIDENT.partitions[0], leader=3, leader_epoch=2, replicas=(2, 3), isr=(2, 3), elr=())
    cluster(replace(INCIDENT, partitions=(state,), logs={state.address: (follows, led)}))
    ran = kelr("log-info", str(state.address), "-o", "wide")
    assert (
        ran.out
        == """\
PARTITION  REPLICA  BROKER    ROLE        EPOCH  LEADER EPOCH  BROKER EPOCH  START  ON DISK  END  HW  BEHIND  SOURCE
orders:0   2        live az2  isr             2             2             ?     60       80   80  80    best  Fetch
orders:0   3        live az3  leader isr      2             2             ?      0       70   80  80    best  Fetch
"""
    )
    assert ran.err.splitlines()[0] == (
        "orders:0: the log of 2 begins at 60, and that of 3, which leads, at 0: if 2 leads, Kafka deletes what is in"
        " remote storage before 60. A replica that is made anew (reassigned away and back) begins where the leader's"
        " does"
    )
