"""``kelr recover`` on a real cluster: from the incident to the last finding, as somebody would type it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as WirePartition

from kelr.commands.main import main
from kelr.lab import Lab, run_incident
from kelr.lab.observed import PATIENCE_S
from kelr.lab.story import create_topic
from kelr.model import PartitionState, TopicPartition
from kelr.model.afterwards import CommittedOffsets, Unread
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.afterwards import LiveAfterwards
from kelr.sources.live.source import LiveSource

Kelr = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def kelr(lab_43: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kelr:
    """Runs ``kelr recover ... -o json`` against the lab, in an empty directory; its exit code and document."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", lab_43.bootstrap_servers)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(["recover", *arguments, "-o", "json"])
        captured = capsys.readouterr()
        assert captured.out, captured.err
        return code, json.loads(captured.out)

    return run


def ended(document: dict[str, Any]) -> dict[int, str]:
    return {item["partition"]: item["result"]["ended"] for item in document["items"] if item["result"]}


def not_well(document: dict[str, Any]) -> list[tuple[int, str, str]]:
    return [(item["partition"], item["check"], item["text"]) for item in document["items"] if item["passed"] != "yes"]


def test_from_the_incident_to_the_last_finding(lab_43: Lab, kelr: Kelr) -> None:
    """Broker 1 died as the last leader, with 10 records that 2 does not have; 3 misses 20 more."""
    topic = run_incident(lab_43, "needs-unclean-recovery").topic
    disk = lab_43.directory / "broker-1" / "data"

    code, live = kelr("collect", topic, "--out", "live.kelr")
    assert (code, live["items"][0]["logs"], live["items"][0]["unreadable"]) == (0, 12, 6)
    code, dead = kelr("collect", topic, "--log-dir", str(disk), "--out", "disk.kelr")
    assert (code, [(item["broker"], item["logs"]) for item in dead["items"]]) == (0, [(1, 6)])

    wanted = ("--election-type", "longest_log_aggressive", "--logs", "disk.kelr", "--out")
    code, first = kelr("plan", f"{topic}:0-4", *wanted, "first.json")
    assert (code, first["elections"], first["accept_loss"], first["lost_at_most"]) == (0, 5, "50", 50)
    assert {item["planned"]["elect"] for item in first["items"]} == {2}
    code, _ = kelr("plan", f"{topic}:5", *wanted, "late.json")
    assert code == 0

    code, dry = kelr("apply", "first.json", "--logs", "disk.kelr", "--dry-run", "--accept-loss", "50")
    assert (code, set(ended(dry).values())) == (0, {"not-tried"})
    code, applied = kelr("apply", "first.json", "--logs", "disk.kelr", "--yes", "--accept-loss", "50")
    assert (code, set(ended(applied).values())) == (0, {"done"})

    lab_43.start(1)  # and elected where nobody else was
    code, refused = kelr("apply", "late.json", "--logs", "disk.kelr", "--yes", "--accept-loss", "10")
    assert (code, ended(refused)) == (6, {5: "refused"})
    assert ("leader", "none", "1") in {
        (one["field"], one["planned"], one["now"]) for one in refused["items"][0]["result"]["differences"]
    }

    code, verified = kelr("verify", "first.json", "--wait-for", "60")
    assert (code, not_well(verified)) == (0, [])
    gave_up = [item["text"] for item in verified["items"] if item["check"] == "truncated"]
    assert all("1 gave up its log from 40 on" in text for text in gave_up), gave_up
    code, log = kelr_log(kelr)
    told = [(item["partition"], item["result"]) for item in log["items"]]
    assert told == [*((number, "done") for number in range(5)), (5, "refused")]
    assert kelr("status", "first.json")[1]["clean"] is True


def kelr_log(kelr: Kelr) -> tuple[int, dict[str, Any]]:
    return kelr("log")


def test_a_lost_marker_and_a_group_beyond_the_end_are_found_and_mended(healthy_43: Lab, kelr: Kelr) -> None:
    """A transaction is committed while 2 is away, and read by a group; then 1 dies, and 2 is elected without both."""
    lab, topic = healthy_43, "lost-marker"
    create_topic(lab, topic, [[1, 2]], {"min.insync.replicas": "1"})
    quiet = {"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
    producer = _open_transaction(quiet, topic)
    lab.wait_partitions(topic, "both in sync", lambda state: len(state.isr) == 2)
    lab.kill(2)
    lab.wait_partitions(topic, "2 is out", lambda state: state.isr == (1,))
    producer.commit_transaction(30)
    _read_and_commit(quiet, topic, group="it's-a-group", records=10)
    lab.kill(1)
    lab.wait_partitions(topic, "nobody leads", lambda state: state.leader is None)
    lab.start(2)

    # 1 may hold what nobody has read: that takes a reason.
    code, _ = kelr("plan", topic, "--election-type", "designation", "--designate", "2", "--out", "plan.json")
    assert code == 0
    agreed = ("--yes", "--accept-loss", "0+", "--force", "the machine of 1 is gone")
    code, applied = kelr("apply", "plan.json", *agreed)
    assert (code, ended(applied)) == (0, {0: "done"})

    code, found = kelr("verify", "plan.json", "--wait-for", "30")
    bad = {item["check"]: item for item in found["items"] if item["passed"] == "no"}
    assert (code, set(bad)) == (1, {"last-stable-offset", "groups"}), not_well(found)
    assert (
        "open from offset 0 on, and hangs: its coordinator has it as CompleteCommit"
        in bad["last-stable-offset"]["text"]
    )
    assert "it's-a-group has committed 11, beyond the log's end 10" in bad["groups"]["text"]

    for item in bad.values():
        ran = lab.stock_tool(*shlex.split(item["command"]))
        assert ran.returncode == 0, ran.stdout + ran.stderr
    lab.start(1)
    code, mended = kelr("verify", "plan.json", "--wait-for", "60")
    assert (code, not_well(mended)) == (0, [])


def _open_transaction(config: dict[str, Any], topic: str) -> Producer:
    """A transaction with ten records that are on every replica."""
    producer = Producer({**config, "transactional.id": f"writer-of-{topic}", "acks": "all"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(10):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(30) == 0
    return producer


def _read_and_commit(config: dict[str, Any], topic: str, *, group: str, records: int) -> None:
    """Read so many records, and commit behind the marker that follows them."""
    consumer = Consumer({**config, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    try:
        consumer.assign([WirePartition(topic, 0, 0)])
        deadline_s, read = time.monotonic() + PATIENCE_S, 0
        while read < records:
            message = consumer.poll(1)
            read += message is not None and message.error() is None
            assert time.monotonic() < deadline_s, f"read {read} of {records} records"
        committed = WirePartition(topic, 0, records + 1, leader_epoch=0)
        (told,) = consumer.commit(offsets=[committed], asynchronous=False)
        assert told.error is None, told
        (kept,) = consumer.committed([WirePartition(topic, 0)], 30)
        assert kept.offset == records + 1
    finally:
        consumer.close()


def test_commits_that_wait_for_min_isr_are_not_taken_for_none(healthy_43: Lab) -> None:
    """The last leader returns alone: it has loaded all groups, and shows those below an old high watermark."""
    lab, topic, groups = healthy_43, "unseen-commits", [f"unseen-{number}" for number in range(9)]
    create_topic(lab, topic, [[1, 2, 3]], {})
    quiet = {"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
    at = TopicPartition(topic, 0)
    for group in groups:
        _commit(quiet, at, group, 1)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        healthy = LiveAfterwards(source).committed_offsets([at])
    assert isinstance(healthy, CommittedOffsets)
    assert healthy.not_listed is None
    assert {one.group: one.offset for one in healthy.offsets[at]} == dict.fromkeys(groups, 1)

    offsets = "__consumer_offsets"
    marks = _high_watermarks(quiet, offsets)
    lab.wait_until(
        "the first commits' high watermarks are on disk",
        lambda: all(lab.saved_high_watermarks(broker, offsets) == marks for broker in lab.brokers),
    )
    files = [lab.data_directory(broker) / "replication-offset-checkpoint" for broker in lab.brokers]
    saved = [file.read_bytes() for file in files]
    for group in groups:
        _commit(quiet, at, group, 2)
    for broker in (3, 2, 1):
        lab.kill(broker)
    for file, content in zip(files, saved, strict=True):
        file.write_bytes(content)  # as if none had come to save a newer one, however long that took
    last = _lead_alone(lab, offsets)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        alone = LiveAfterwards(source).committed_offsets([at])
    assert isinstance(alone, CommittedOffsets)
    shown = {one.group: one.offset for one in alone.offsets.get(at, ())}
    assert shown == dict.fromkeys(groups, 1)  # and no error said so
    assert not alone.unread
    unready = Unread(f"broker {last}: NOT_COORDINATOR for partitions 0, 1, 2 of {offsets}", passing=True)
    assert alone.not_listed == unready

    lab.start(1 if last != 1 else 2)
    lab.wait_partitions(offsets, "min ISR is met", lambda state: len(state.isr) == 2)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        together = LiveAfterwards(source).committed_offsets([at])
    assert isinstance(together, CommittedOffsets)
    assert together.not_listed is None
    assert {one.group: one.offset for one in together.offsets[at]} == dict.fromkeys(groups, 2)


def _lead_alone(lab: Lab, topic: str) -> int:
    """The last leader of a topic's partitions, all brokers having been killed at once, leads again, and is alone."""
    lab.start(1, wait=False)
    lab.wait_partitions(topic, "all are fenced", lambda state: set(state.isr) <= {1})
    [(elr, last)] = {(state.elr or (), state.last_known_elr or state.isr) for state in lab.partitions(topic).values()}
    for broker in (*elr, *last):
        for other in {*lab.brokers} - {broker}:
            lab.kill(other)
        lab.start(broker)
        # It was not shut down cleanly: it leaves the ELR, which has to be empty for the last known leader.
        lab.wait_partitions(topic, "it is out of the ELR", partial(_is_out_of_the_elr, broker))
    lab.wait_partitions(topic, "it leads alone", lambda state: state.isr == last)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:

        def is_alone() -> bool:
            source.forget()
            return set(source.cluster().live) == set(last)

        lab.wait_until("the other one is fenced", is_alone)
    return last[0]


def _is_out_of_the_elr(broker: int, state: PartitionState) -> bool:
    return broker not in (state.elr or ())


def _commit(config: dict[str, Any], at: TopicPartition, group: str, offset: int) -> None:
    consumer = Consumer({**config, "group.id": group, "enable.auto.commit": False})
    try:
        (told,) = consumer.commit(offsets=[WirePartition(at.topic, at.partition, offset)], asynchronous=False)
        assert told.error is None, told
    finally:
        consumer.close()


def _high_watermarks(config: dict[str, Any], topic: str) -> dict[int, int]:
    consumer = Consumer({**config, "group.id": "none"})
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        return {one: consumer.get_watermark_offsets(WirePartition(topic, one), 10)[1] for one in partitions}
    finally:
        consumer.close()


def test_a_transaction_that_is_alive_holds_nothing_up(healthy_43: Lab, kelr: Kelr) -> None:
    """The last stable offset stands still, and the coordinator knows why."""
    lab, topic = healthy_43, "alive"
    create_topic(lab, topic, [[2, 3]], {})
    lab.wait_partitions(topic, "both in sync", lambda state: len(state.isr) == 2)
    quiet = {"bootstrap.servers": lab.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
    producer = _open_transaction({**quiet, "transaction.timeout.ms": 120_000}, topic)
    lab.stop(2)
    lab.wait_partitions(topic, "3 leads", lambda state: state.leader == 3)
    lab.start(2)
    lab.wait_partitions(topic, "both in sync", lambda state: len(state.isr) == 2)
    code, _ = kelr("plan", topic, "--election-type", "preferred", "--out", "plan.json")
    assert code == 0
    code, applied = kelr("apply", "plan.json", "--yes")
    assert (code, ended(applied)) == (0, {0: "done"})
    code, verified = kelr("verify", "plan.json", "--wait-for", "30")
    (text,) = [item["text"] for item in verified["items"] if item["check"] == "last-stable-offset"]
    assert (code, not_well(verified)) == (0, [])
    assert f"transactional.id writer-of-{topic}) is open from offset 0 on; its coordinator has it under way" in text
    producer.abort_transaction(30)
