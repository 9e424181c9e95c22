"""``kelr snapshot``, and that every command that looks says the same from its file as from the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.engine.words import utc_time
from kelr.model import ReplicaLog, Snapshot, TopicPartition
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import read_snapshot, write_snapshot
from kelr.sources.snapshot_reader import Body, SnapshotReader
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT


@pytest.mark.usefixtures("incident")
def test_saves_everything(kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kelr("snapshot", "saved.kelr", "-b", "kafka:9092")
    assert ran.code == 0
    size = Path("saved.kelr").stat().st_size
    assert ran.out.splitlines()[1].split() == ["saved.kelr", "5", "yes", str(size)]
    assert ran.err == (
        "configs of 1 topic are not in it: TOPIC_AUTHORIZATION_FAILED\n  next: kelr explain --snapshot saved.kelr\n"
    )
    saved = read_snapshot(Path("saved.kelr"))
    assert saved.partitions == INCIDENT.partitions
    assert saved.configs == INCIDENT.configs
    assert {address: logs for address, logs in saved.logs.items() if address in INCIDENT.logs} == INCIDENT.logs


@pytest.mark.usefixtures("incident")
def test_no_logs_and_targets(kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(kelr("snapshot", "saved.kelr", "orders", "--no-logs", "-o", "json").out)
    assert document["items"][0]["partitions"] == 3
    saved = read_snapshot(Path("saved.kelr"))
    assert {state.topic for state in saved.partitions} == {"orders"}
    assert not saved.logs


def test_a_file_of_some_partitions_says_so_wherever_it_is_used(
    kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_snapshot(INCIDENT, Path("all.kelr"))
    kelr("snapshot", "some.kelr", "orders:0", "payments", "--snapshot", "all.kelr")
    kelr("snapshot", "again.kelr", "--snapshot", "some.kelr", "--logs", "all.kelr")
    told = "holds only orders:0, payments: it tells nothing of other partitions\n"
    for command in (("explain",), ("describe", "--leaderless"), ("doctor",), ("whatif", "--kill", "1")):
        for name in ("some.kelr", "again.kelr"):
            assert f"{name} {told}" in kelr(*command, "--snapshot", name).err
        assert told not in kelr(*command, "--snapshot", "all.kelr").err


@pytest.mark.usefixtures("incident")
def test_topics_that_are_left_out_are_named(kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kelr("snapshot", "saved.kelr", "orders", "nope")
    assert (ran.code, "1 topic could not be described: nope" in ran.err) == (7, True)
    assert {state.topic for state in read_snapshot(Path("saved.kelr")).partitions} == {"orders"}
    assert kelr("snapshot", "none.kelr", "nope").code == 2


@pytest.mark.usefixtures("incident")
def test_an_existing_file_is_kept_unless_told_otherwise(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "saved.kelr"
    path.write_text("precious", encoding="utf-8")
    ran = kelr("snapshot", str(path))
    assert (ran.code, path.read_text(encoding="utf-8")) == (2, "precious")
    assert kelr("snapshot", str(path), "--overwrite").code == 0
    assert len(read_snapshot(path).partitions) == 5


@pytest.mark.usefixtures("incident")
@pytest.mark.parametrize("command", [("describe",), ("log-info", "orders:1", "payments"), ("describe", "--summary")])
@pytest.mark.parametrize("format", ["table", "csv", "ndjson"])
def test_the_file_answers_as_the_cluster_does(
    kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], format: str
) -> None:
    path = tmp_path / "saved.kelr"
    live = kelr(*command, "-o", format)
    kelr("snapshot", str(path))
    monkeypatch.undo()
    assert kelr(*command, "-o", format, "--snapshot", str(path)).out == live.out


@pytest.mark.parametrize("command", [("describe",), ("log-info", "orders", "payments")])
def test_the_file_is_read_once_however_many_pages(
    kelr: Kelr, snapshot_file: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    readings = []
    body = SnapshotReader.body

    def counted(reader: SnapshotReader) -> Iterator[Body]:
        readings.append(reader)
        return body(reader)

    monkeypatch.setattr(SnapshotReader, "body", counted)
    monkeypatch.setattr("kelr.sources.paging.DEFAULT_PAGE_SIZE", 1)
    assert kelr(*command, "--snapshot", snapshot_file).code == 0
    assert len(readings) == 1


@pytest.mark.usefixtures("incident")
def test_what_the_cluster_did_not_tell_is_said_when_it_is_saved(
    kelr: Kelr, cluster: Callable[[Snapshot], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise whoever opens the file elsewhere is the first to find out."""
    monkeypatch.chdir(tmp_path)
    blind = replace(
        next(one for one in INCIDENT.logs[TopicPartition("orders", 1)] if isinstance(one, ReplicaLog)),
        last_epoch=None,
        last_epoch_error="it needs READ on the topic",
    )
    hidden = replace(
        INCIDENT,
        cluster=replace(INCIDENT.cluster, reassignments_error="it needs DESCRIBE on the cluster"),
        logs={TopicPartition("orders", 1): (blind,)},
    )
    cluster(hidden)
    ran = kelr("snapshot", "saved.kelr")
    assert ran.code == 0
    for sentence in (
        "reassignments under way are not in it: it needs DESCRIBE on the cluster",
        "configs of 1 topic are not in it: TOPIC_AUTHORIZATION_FAILED",
        "epochs of 1 log are not in it: it needs READ on the topic",
    ):
        assert sentence in ran.err
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    ran = kelr("snapshot", "none.kelr")
    assert (ran.code, "no partition was found: brokers leave topics" in ran.err) == (1, True)


class Live(MemorySource):
    """The cluster itself, and no snapshot of it."""

    taken_at_ms = None


SILENT = replace(INCIDENT, cluster=replace(INCIDENT.cluster, controller_silence="no answer in time"))
WHEN_TAKEN = (
    "no controller answered (no answer in time) when this was taken: what brokers told may have been out of date"
)


@pytest.mark.parametrize("command", [("snapshot", "saved.kelr"), ("recover", "collect", "--out", "saved.kelr")])
def test_what_was_saved_while_no_controller_answered_is_never_fresh(
    kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as live:
        live.setattr("kelr.commands.session.open_source", lambda _: Live(SILENT))
        ran = kelr(*command, "orders")
    assert ran.code == 0
    assert ran.err.lower().count("no controller") == 1
    assert "no controller answered (no answer in time): what brokers told may have been out of date" in ran.err
    for filters in ((), ("--leaderless",)):
        ran = kelr("describe", "orders:0", "--check", *filters, "--snapshot", "saved.kelr")
        assert ran.code == 1
        assert (ran.out + ran.err).lower().count("no controller") == 1
        assert ran.out.startswith(f"N{WHEN_TAKEN[1:]}")
    assert kelr("describe", "orders:0", "--snapshot", "saved.kelr").code == 0
    assert kelr("explain", "orders:1", "--snapshot", "saved.kelr").out.startswith(f"N{WHEN_TAKEN[1:]}")
    again = kelr("snapshot", "again.kelr", "--snapshot", "saved.kelr")
    assert again.err.lower().count("no controller") == 1
    assert read_snapshot(Path("again.kelr")).cluster.controller_silence == "no answer in time"


def test_a_snapshot_whose_controller_answered_passes_a_check(kelr: Kelr, snapshot_file: str) -> None:
    ran = kelr("describe", "orders:0", "--check", "--snapshot", snapshot_file)
    assert ran.code == 0
    assert "controller" not in ran.err


@pytest.mark.parametrize("command", [("collect", "--out", "none.kelr"), ("plan",)])
def test_nothing_to_recover_where_nothing_is_seen_is_not_well(
    kelr: Kelr, cluster: Callable[[Snapshot], None], command: tuple[str, ...]
) -> None:
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    ran = kelr("recover", *command, "-b", "kafka-1:9092")
    assert "no partition was found: brokers leave topics" in ran.err
    assert "has its leader" not in ran.err


def test_an_old_snapshot_is_said_to_be_old(kelr: Kelr, snapshot_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is down and what logs hold is of then; brokers and logs go on."""
    said = f"{snapshot_file} is of {utc_time(INCIDENT.taken_at_ms)}, 3 days ago\n"
    for arguments in (("describe",), ("explain",), ("recover", "plan"), ("whatif", "--kill", "1"), ("doctor",)):
        assert " is of " not in kelr(*arguments, "--snapshot", snapshot_file).err
        with monkeypatch.context() as later:
            later.setattr("kelr.commands.session.now_ms", lambda: INCIDENT.taken_at_ms + 3 * 86_400_000)
            assert kelr(*arguments, "--snapshot", snapshot_file).err.startswith(said)
            assert " is of " not in kelr(*arguments, "--snapshot", snapshot_file, "-o", "json").err
