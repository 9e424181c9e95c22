"""``kelr report``: what it writes, what it says is missing, and what it refuses."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.model import BrokerStatus, EpochEnd, PartitionState, ReplicaLog, Snapshot
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery import audit
from kelr.recovery.places import state_directory
from kelr.sources.snapshot_file import write_snapshot
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER_ID, INCIDENT, ORDERS_ID
from tests.metadata_logs import START_MS, checkpoint, joined, node_directory, partition, story, topic
from tests.told_log import LOG, write_told_log


@pytest.fixture
def then(tmp_path: Path) -> Path:
    """The incident."""
    return saved(INCIDENT, tmp_path / "then.kelr")


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Later: 3 leads orders:1."""
    states = [*INCIDENT.partitions]
    states[1] = replace(states[1], leader=3, leader_epoch=3, isr=(3, 2), elr=())
    later = replace(INCIDENT, partitions=tuple(states), taken_at_ms=INCIDENT.taken_at_ms + 60_000)
    return saved(later, tmp_path / "after.kelr")


def saved(snapshot: Snapshot, path: Path) -> Path:
    write_snapshot(snapshot, path)
    return path


def words(page: Path) -> str:
    """The page's text."""
    text = re.sub(r"<(style|title)[^>]*>.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def elected(**more: object) -> AuditRecord:
    record = AuditRecord(
        INCIDENT.taken_at_ms + 30_000,
        AuditWhat.ELECTION,
        "elect",
        "orders",
        1,
        CLUSTER_ID,
        "ada",
        "laptop",
        None,
        "done",
        election="unclean",
        wanted=3,
        before={"leader_epoch": 2},
        after={"leader": 3, "leader_epoch": 3},
        loss={"grade": "bounded", "committed": [4, None], "total": [19, None], "unheard": [1]},
    )
    return replace(record, **more)  # type: ignore[arg-type]


def test_a_page_from_two_snapshots(kelr: Kelr, tmp_path: Path, then: Path, after: Path) -> None:
    page = tmp_path / "review.html"
    ran = kelr("report", str(page), "--before", str(then), "--snapshot", str(after))
    assert (ran.code, ran.out.split()[:4]) == (0, ["FILE", "PARTITIONS", "AFFECTED", "LEADERLESS"])
    text = words(page)
    # orders:1 was leaderless and is led; orders:2, payments:0 and secret:0 are as they were.
    assert (
        "4 partitions were affected, as far as is known without a metadata log: orders:1-2, payments:0, secret:0."
        in text
    )
    said = "Committed offsets lost: UNKNOWN, at least 4. Offsets lost in all: UNKNOWN, at least 19"
    assert f"{said} (1 election; unknown: 1)." in text
    assert "As the logs were read before 3 was elected." in text
    assert "2 would truncate 19 offsets (116..134) to follow 3." in text
    assert "orders:1 has no leader (leader epoch 2) and waits for broker 1." in text
    assert f"kelr report {page} --before {then} --snapshot {after}" in text


def log(replica: int, current: int, *lineage: tuple[int, int], high_watermark: int | None = None) -> ReplicaLog:
    ends = tuple(EpochEnd(*one) for one in lineage)
    end = ends[-1].end_offset
    return ReplicaLog(
        replica, end, ends[-1].epoch, current, end if high_watermark is None else high_watermark, 0, lineage=ends
    )


def well(partition: int, leader: int, epoch: int) -> PartitionState:
    replicas = isr = (1, 2, 3)
    return PartitionState("orders", partition, leader, epoch, replicas, isr, (), (), topic_id=ORDERS_ID)


def logs_of(*partitions: tuple[PartitionState, tuple[tuple[int, int], ...]]) -> Snapshot:
    """A healthy cluster with three live brokers."""
    brokers = tuple(replace(one, status=BrokerStatus.LIVE) for one in INCIDENT.cluster.brokers)
    logs = {
        state.address: tuple(log(replica, state.leader_epoch, *lineage) for replica in state.replicas)
        for state, lineage in partitions
    }
    states = tuple(state for state, _ in partitions)
    return replace(INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers), partitions=states, logs=logs)


def test_partitions_that_were_well_in_both_looks_and_had_elections_in_between_are_told_of(
    kelr: Kelr, tmp_path: Path
) -> None:
    """All three brokers lost power between the looks, and 30 committed offsets with it; the report said "No partition
    was found in trouble" of 0 partitions."""
    held = ((0, 50),)
    then = logs_of(*((well(number, 1, 0), held) for number in range(5)))
    # Lost 20..49; lost them and went on; had a leader moved there and back; moved in one step; nothing happened.
    later = logs_of(
        (well(0, 3, 4), ((0, 20),)),
        (well(1, 3, 4), ((0, 20), (4, 90))),
        (well(2, 1, 2), ((0, 60),)),
        (well(3, 2, 1), held),
        (well(4, 1, 0), held),
    )
    files = (
        saved(then, tmp_path / "a.kelr"),
        saved(replace(later, taken_at_ms=then.taken_at_ms + 9), tmp_path / "b.kelr"),
    )
    page = tmp_path / "page.html"
    ran = kelr("report", str(page), "--before", str(files[0]), "--snapshot", str(files[1]), "-o", "json")
    found = json.loads(ran.out)["items"][0]
    assert (found["partitions"], found["affected"], found["lost"]["committed"]) == (3, 2, [60, None])
    text = words(page)
    assert "2 partitions were affected, as far as is known without a metadata log: orders:0-1." in text
    assert "1 more partition had elections that may have lost something: orders:2." in text
    assert "Committed offsets lost: UNKNOWN, at least 60." in text
    assert "committed in the earlier look, and not in the log of 3, which leads now: 20..49" in text
    assert "No partition was found in trouble" not in text


def test_a_single_step_to_another_leader_is_told_of_where_kafka_may_elect_uncleanly(kelr: Kelr, tmp_path: Path) -> None:
    for unclean, partitions in ((False, 0), (True, 1), (None, 1)):
        configs = {"orders": replace(INCIDENT.configs["orders"], unclean_leader_election=unclean)}
        then, later = (
            replace(logs_of((well(0, leader, leader), ((0, 50),))), configs=configs, taken_at_ms=leader)
            for leader in (1, 2)
        )
        files = saved(then, tmp_path / f"a{unclean}"), saved(later, tmp_path / f"b{unclean}")
        page = tmp_path / f"{unclean}.md"
        ran = kelr("report", str(page), "--before", str(files[0]), "--snapshot", str(files[1]), "-o", "json")
        assert json.loads(ran.out)["items"][0]["partitions"] == partitions
        words_of_it = page.read_text()
        assert ("In neither look was a partition in trouble." in words_of_it) is True
        assert ("1 partition had elections that may have lost something: orders:0." in words_of_it) == bool(partitions)


def test_snapshots_the_wrong_way_round_are_refused(kelr: Kelr, tmp_path: Path, then: Path, after: Path) -> None:
    page = tmp_path / "page.html"
    result = kelr("report", str(page), "--before", str(after), "--snapshot", str(then))
    assert result.code == 2
    assert "wrong way round" in result.err
    assert not page.exists()


def test_twice_the_same_snapshot_is_said(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    result = kelr("report", str(tmp_path / "page.html"), "--before", str(then), "--snapshot", str(then))
    assert result.code == 0
    assert "not older than the newest look" in result.err


def test_a_snapshot_that_heard_no_controller_is_told_apart(kelr: Kelr, tmp_path: Path, then: Path, after: Path) -> None:
    silent = replace(INCIDENT, cluster=replace(INCIDENT.cluster, controller_silence="no answer in time"))
    deaf = saved(silent, tmp_path / "deaf.kelr")
    said = "No controller answered (no answer in time) when {} was taken: what brokers told may have been out of date."
    before, now = said.format("the snapshot from the incident (--before)"), said.format("the newest look")
    page = tmp_path / "page.html"
    for files, told, not_told in (
        (("--before", str(deaf), "--snapshot", str(after)), before, now),
        (("--snapshot", str(deaf)), now, before),
    ):
        assert kelr("report", str(page), *files, "--overwrite").code == 0
        assert told in words(page)
        assert not_told not in words(page)
    assert kelr("report", str(page), "--before", str(then), "--snapshot", str(after), "--overwrite").code == 0
    assert "No controller answered" not in words(page)


def test_what_is_missing_is_said(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    page = tmp_path / "review.html"
    ran = kelr("report", str(page), "--snapshot", str(then))
    for missing in (
        "No metadata log was given",
        "No plan was given",
        "No snapshot from the incident was given",
        "There is no audit log on this machine",
    ):
        assert f"not told: {missing}" in ran.err
        assert missing in words(page)
    assert "Whether anything was lost is UNKNOWN: nothing tells of elections." in words(page)


def test_what_kelr_did_is_told_with_who_did_it(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    audit.append(
        state_directory(),
        elected(),
        elected(topic="other", cluster_id="another"),
        elected(topic="payments", partition=0, result="refused", text="the leader changed"),
    )
    page = tmp_path / "review.html"
    assert kelr("report", str(page), "--snapshot", str(then)).code == 0
    text = words(page)
    assert "kelr was asked for 2 elections, of which 1 came out as planned, by ada@laptop." in text
    assert "unclean election: 3 refused the leader changed" in text
    assert "other:1" not in text
    assert "audit log: counted just before the election; log not read: 1" in text


def test_an_election_that_was_written_down_twice_is_counted_once(kelr: Kelr, tmp_path: Path, after: Path) -> None:
    once = elected(journal="2026-1.journal", loss={"grade": "bounded", "committed": [4, 4], "total": [19, 19]})
    other = replace(once, journal="2026-2.journal", at_ms=once.at_ms + 1)
    audit.append(state_directory(), once, replace(once, at_ms=once.at_ms + 5000))
    page = tmp_path / "review.html"
    assert kelr("report", str(page), "--snapshot", str(after)).code == 0
    assert "Committed offsets lost: 4. Offsets lost in all: 19 (1 election; bounded: 1)." in words(page)
    audit.append(state_directory(), other)
    assert kelr("report", str(page), "--force", "--snapshot", str(after)).code == 0
    assert "Committed offsets lost: 8. Offsets lost in all: 38 (2 elections; bounded: 2)." in words(page)


def test_a_timeline_from_a_metadata_log(kelr: Kelr, tmp_path: Path) -> None:
    write_told_log(tmp_path)
    page = tmp_path / "review.html"
    ran = kelr("report", str(page), "--metadata-log", str(tmp_path / LOG), "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["items"][0]["affected"], document["items"][0]["leaderless"]) == (0, 1, 0)
    text = words(page)
    summary = kelr("history", "orders", "--summary", "--metadata-log", str(tmp_path / LOG), "-o", "json")
    spans = json.loads(summary.out)["items"][0]["spans"]
    longest = f"The longest time without a leader was {spans['leaderless']['longest_ms'] / 1000:.1f}s (orders:0)"
    assert longest in text
    assert "1 partition was affected: orders:0." in text
    assert "UNCLEAN, from neither ISR nor ELR" in text
    assert page.read_text().count('class="leaderless"') == 2  # the band, and the legend
    assert "metadata log: elected as unclean; what the logs held then is not known" in text


def test_of_times_that_a_metadata_log_does_not_tell_of_nothing_is_denied(kelr: Kelr, tmp_path: Path) -> None:
    write_told_log(tmp_path)
    page, given = tmp_path / "review.html", ("--metadata-log", str(tmp_path / LOG), "--overwrite")
    for window, tells in (
        (("--until", "2023-11-14T22:13:23Z"), "What happened between 2023-11-14 22:13:23 UTC (--until) and the newest"),
        (
            ("--since", "2023-11-14T22:13:48Z"),
            "What happened before 2023-11-14 22:13:48 UTC is not told by the metadata log",
        ),
    ):
        assert kelr("report", str(page), *given, *window).code == 0
        text = words(page)
        assert tells in text
        assert re.search("By the metadata log, from [^,]+ to [^,]+ UTC, and in the newest look, no partition was", text)
        assert "all of them were clean. Of other times it tells nothing." in text
        assert "partitions affected, as far as is known" in text


def test_of_what_was_before_a_checkpoint_nothing_is_denied(kelr: Kelr, tmp_path: Path) -> None:
    data = checkpoint((topic(), partition(0), partition(1)), contained_ms=START_MS + 5000)
    node = node_directory(tmp_path / "n", {6: joined(story()[4:])}, {(6, 1): data})
    page = tmp_path / "review.md"
    kelr("report", str(page), "--metadata-log", str(node))
    text = page.read_text()
    assert "What happened before 2025-10-09 08:53:25 UTC is not told by the metadata log" in text
    assert "as far as is known" in text


def test_a_partition_that_was_led_under_min_isr_was_in_trouble(kelr: Kelr, tmp_path: Path) -> None:
    write_told_log(tmp_path)
    page, given = tmp_path / "review.html", ("--metadata-log", str(tmp_path / LOG), "--until", "2023-11-14T22:13:28Z")
    assert kelr("report", str(page), *given).code == 0
    text = words(page)
    assert "1 partition was affected, as far as is known without a metadata log of the whole time: orders:0." in text
    assert "longest time without a leader, from 2023-11-14 22:13:20 to 2023-11-14 22:13:28 UTC none" in text


def test_named_partitions_alone(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    page = tmp_path / "review.html"
    assert kelr("report", str(page), "orders:0,1", "--snapshot", str(then)).code == 0
    text = words(page)
    assert "1 partition was affected, as far as is known without a metadata log: orders:1." in text
    assert "payments:0" not in text
    assert "orders:0 under-replicated 2" in text


def test_a_message_for_a_chat_channel(kelr: Kelr, tmp_path: Path, then: Path, after: Path) -> None:
    message = tmp_path / "review.md"
    assert kelr("report", str(message), "--before", str(then), "--snapshot", str(after), "--title", "INC-7").code == 0
    text = message.read_text()
    assert text.startswith(f"*INC-7* · cluster `{CLUSTER_ID}`\n")
    assert len(text) < 4000
    said = "Committed offsets lost: UNKNOWN, at least 4. Offsets lost in all: UNKNOWN, at least 19"
    assert f"{said} (1 election; unknown: 1)." in text


def test_a_file_is_never_replaced_unasked(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    page = tmp_path / "review.html"
    page.write_text("mine")
    ran = kelr("report", str(page), "--snapshot", str(then))
    assert (ran.code, page.read_text()) == (2, "mine")
    assert "exists already" in ran.err
    for flag in ("--force", "--overwrite"):
        assert kelr("report", str(page), "--snapshot", str(then), flag).code == 0
        assert page.read_text().startswith("<!doctype html>")
    assert [path.name for path in tmp_path.glob(".*.part")] == []


@pytest.mark.parametrize("name", ["review", "review.pdf", "html"])
def test_a_name_that_says_nothing_of_its_kind(kelr: Kelr, tmp_path: Path, then: Path, name: str) -> None:
    ran = kelr("report", str(tmp_path / name), "--snapshot", str(then))
    assert ran.code == 2
    assert ".html for a page" in ran.err
    assert not (tmp_path / name).exists()


def test_files_of_another_cluster_are_refused(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    other = replace(INCIDENT, cluster=replace(INCIDENT.cluster, cluster_id="AAAAAAAAAAAAAAAAAAAAAA"))
    before = saved(other, tmp_path / "other.kelr")
    ran = kelr("report", str(tmp_path / "x.html"), "--before", str(before), "--snapshot", str(then))
    assert (ran.code, (tmp_path / "x.html").exists()) == (6, False)


def test_a_topic_that_is_not_there_is_done_in_part(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    page = tmp_path / "review.html"
    ran = kelr("report", str(page), "orders:1", "nowhere", "--snapshot", str(then))
    assert ran.code == 7
    assert "could not be described, such as nowhere" in words(page)


def test_a_garbled_audit_log_is_said_to_be_one(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    audit.append(state_directory(), elected())
    file = audit.audit_file(state_directory())
    file.write_text("{}\n" + file.read_text())
    page = tmp_path / "review.html"
    assert kelr("report", str(page), "--snapshot", str(then)).code == 0
    assert "What kelr did is not told" in words(page)


def test_since_when_is_a_matter_of_choice(kelr: Kelr, tmp_path: Path, then: Path) -> None:
    audit.append(state_directory(), elected(user="grace"), elected(at_ms=INCIDENT.taken_at_ms - 3_600_000))
    page = tmp_path / "review.html"
    since = ("--since", "2023-11-14T22:00Z", "--until", "2023-11-14T23:00Z")
    assert kelr("report", str(page), "--snapshot", str(then), *since).code == 0
    assert "of which 1 came out as planned, by grace@laptop." in words(page)


def test_of_a_cluster_that_is_not_known_no_record_is_told(kelr: Kelr, tmp_path: Path) -> None:
    audit.append(state_directory(), elected(cluster_id="another"))
    unknown = replace(INCIDENT, cluster=replace(INCIDENT.cluster, cluster_id=None))
    page = tmp_path / "review.html"
    assert kelr("report", str(page), "--snapshot", str(saved(unknown, tmp_path / "unknown.kelr"))).code == 0
    text = words(page)
    assert "Which cluster this is, is not known" in text
    assert "ada@laptop" not in text
