"""``kelr history``: its whole outputs, from the metadata log of a simulated cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.moments import read_moment
from kelr.errors import UsageError
from kelr.lab.simulated.contents import NewRecord, encoded, placed
from kelr.replay.history import Moment
from kelr.view.schema import SCHEMAS
from tests.commands.conftest import Kelr
from tests.metadata_logs import (
    START_MS,
    batch,
    checkpoint,
    joined,
    leader_change,
    node_directory,
    partition,
    shrunk,
    story,
    topic,
)
from tests.told_log import write_told_log


@pytest.fixture(name="log", scope="module")
def _log(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("node") / "__cluster_metadata-0"
    directory.mkdir()
    write_told_log(directory)
    return str(directory)


def test_a_partition(kelr: Kelr, log: str, as_expected: Callable[[str, str], None]) -> None:
    ran = kelr("history", "orders:0", "--metadata-log", log)
    assert ran.code == 0
    as_expected("history-partition", ran.out)
    assert "orders:0: recovery quorum" in ran.err


def test_unclean_elections(kelr: Kelr, log: str, as_expected: Callable[[str, str], None]) -> None:
    ran = kelr("history", "--unclean", "--metadata-log", log)
    assert ran.code == 0
    as_expected("history-unclean", ran.out)
    assert ran.err == f"  next: kelr history orders:0 --metadata-log {log}\n"


def test_a_summary(kelr: Kelr, log: str, as_expected: Callable[[str, str], None]) -> None:
    ran = kelr("history", "--summary", "--metadata-log", log)
    assert ran.code == 0
    as_expected("history-summary", ran.out)


def test_a_drawing(kelr: Kelr, log: str, as_expected: Callable[[str, str], None]) -> None:
    ran = kelr("history", "orders", "--draw", "--metadata-log", log)
    assert ran.code == 0
    as_expected("history-drawing", ran.out)


def test_a_document(kelr: Kelr, log: str) -> None:
    ran = kelr("history", "orders:0", "--metadata-log", log, "-o", "json")
    document = json.loads(ran.out)
    schema: Any = SCHEMAS["history"]()
    assert document.keys() == schema["properties"].keys()
    assert (document["kind"], document["complete"], document["warnings"]) == ("kelr/history", True, [])
    (election,) = [item for item in document["items"] if item["elected_as"] == "unclean"]
    assert election.keys() == schema["properties"]["items"]["items"]["properties"].keys()
    assert {
        key: election[key]
        for key in ("subject", "event", "cause", "certainty", "clean", "last_leader", "designated", "reassignment")
    } == {
        "subject": "partition",
        "event": "elected",
        "cause": "election",
        "certainty": "certain",
        "clean": False,
        "last_leader": 1,
        "designated": True,
        "reassignment": None,
    }
    assert (election["before"]["elr"], election["after"]["isr"], election["after"]["leader"]) == ([1], [2], 2)
    (summary,) = document["partitions"]
    assert summary["spans"]["leaderless"]["times"] == 1
    assert [move["leader"] for move in summary["unclean"]] == [2]


@pytest.mark.parametrize("form", ["ndjson", "csv", "yaml", "wide"])
def test_every_format_has_every_entry(kelr: Kelr, log: str, form: str) -> None:
    ran = kelr("history", "--metadata-log", log, "-o", form)
    assert ran.code == 0
    assert ran.out.count("UNCLEAN, from neither ISR nor ELR") == 1


def test_a_window(kelr: Kelr, log: str) -> None:
    ran = kelr("history", "orders:0", "--since", "12", "--until", "14", "--metadata-log", log, "-o", "ndjson")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [item["event"] for item in told] == ["as-found", "changed", "fenced"]
    assert [item["offset"] for item in told] == [12, 12, 13]


def test_at_is_an_end(kelr: Kelr, log: str) -> None:
    ran = kelr("history", "--at", "14", "--metadata-log", log, "-o", "json")
    assert max(item["offset"] for item in json.loads(ran.out)["items"]) == 13


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orders", "--draw", "--summary"], "two ways"),
        (["--draw"], "which partitions"),
        (["orders", "--draw", "--broker", "1"], "whole partitions"),
        (["orders", "--draw", "-o", "json"], "for people"),
        (["--since", "yesterday"], "no moment"),
        (["--at", "5", "--until", "7"], "--at and --until"),
        (["nowhere"], "not in this metadata log: nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(kelr: Kelr, log: str, arguments: list[str], said: str) -> None:
    ran = kelr("history", *arguments, "--metadata-log", log)
    assert ran.code == 2
    assert said in ran.err
    assert "  fix: " in ran.err


def test_topics_that_are_not_there_are_said_beside_those_that_are(kelr: Kelr, log: str) -> None:
    ran = kelr("history", "orders", "nowhere", "--metadata-log", log)
    assert ran.code == 7
    assert "created, leader 1" in ran.out
    assert "not in this metadata log: nowhere" in ran.err


def test_without_a_log_it_says_where_to_find_one(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KELR_BOOTSTRAP_SERVER", raising=False)
    ran = kelr("history")
    assert ran.code == 2
    assert "--metadata-log" in ran.err


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("120394", Moment(offset=120394)),
        ("2026-03-01T02:10:00Z", Moment(at_ms=1_772_331_000_000)),
        ("2026-03-01T03:10:00+01:00", Moment(at_ms=1_772_331_000_000)),
        ("2h", Moment(at_ms=10_000_000 - 7_200_000)),
        ("1h30m", Moment(at_ms=10_000_000 - 5_400_000)),
        ("9d", Moment(at_ms=0)),
    ],
)
def test_moments(text: str, moment: Moment) -> None:
    assert read_moment("--since", text, now_ms=10_000_000) == moment


@pytest.mark.parametrize("text", ["", "h", "2 parsecs", "-1", "2026-13-01"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        read_moment("--since", text, now_ms=0)


def _with_another_record(directory: Path, value: bytes) -> str:
    """The story's beginning, and behind it a record that kelr may not know."""
    last = placed(encoded([NewRecord(START_MS, None, value)]), 8, 1)
    return str(node_directory(directory, {0: joined([*story(), last])}))


@pytest.mark.parametrize("format", ["table", "wide", "json", "ndjson", "csv"])
@pytest.mark.parametrize("arguments", [("--unclean",), ("--summary",), ("orders:1",), ("--broker", "1")])
def test_what_a_newer_record_says_of_leaders_is_not_left_out(
    kelr: Kelr, tmp_path: Path, format: str, arguments: tuple[str, ...]
) -> None:
    newer = _with_another_record(tmp_path / "a", b"\x01\x05\x09")
    ran = kelr("history", *arguments, "--metadata-log", newer, "-o", format)
    assert ran.code == 2
    assert "1 record of PartitionChangeRecord version 9, which is newer than kelr knows" in ran.err
    assert "nothing of this" not in ran.err
    assert format != "json" or json.loads(ran.out)["complete"] is False
    other = _with_another_record(tmp_path / "b", b"\x01\x63\x00")
    ran = kelr("history", *arguments, "--metadata-log", other, "-o", format)
    warning = "1 record of an unknown kind (API key 99), version 0, left out: kelr does not know what it says"
    assert ran.code == 0
    assert warning in (json.loads(ran.out)["warnings"] if format == "json" else ran.err)
    known = _with_another_record(tmp_path / "c", b"\x01\x1d\x00" + (7).to_bytes(4, "big"))
    assert "left out" not in kelr("history", *arguments, "--metadata-log", known).err, "UnregisterControllerRecord"


def _of(tmp_path: Path, segments: dict[int, bytes], checkpoints: dict[tuple[int, int], bytes] | None = None) -> str:
    return str(node_directory(tmp_path / "node", segments, checkpoints))


def _checkpoint(tmp_path: Path) -> str:
    """A log that begins at offset 5 with a checkpoint of partitions that are well."""
    begins = checkpoint((topic(), partition(0), partition(1)), contained_ms=START_MS + 4000)
    return _of(tmp_path, {5: batch(5, shrunk(0, isr=(1, 2)))}, {(5, 1): begins})


@pytest.mark.parametrize("arguments", [["--summary"], ["--summary", "orders:0"], ["orders:0"]])
def test_a_window_after_the_end_of_the_log_denies_nothing(kelr: Kelr, tmp_path: Path, arguments: list[str]) -> None:
    log = _of(tmp_path, {0: joined(story())})
    ran = kelr("history", *arguments, "--since", "2030-01-01T00:00Z", "--metadata-log", log)
    assert ran.code == 1
    assert "orders:0" in ran.out
    assert "none" in ran.out or "no leader" in ran.out
    assert "the metadata log ends at 2025-10-09 08:53:27 UTC, before the time that was asked for" in ran.err
    assert "no partition was in trouble" not in ran.err


@pytest.mark.parametrize("target", ["ordrs-*", "orders:99"])
@pytest.mark.parametrize("form", [[], ["--summary"], ["--draw"]])
def test_no_partition_seen_is_no_all_clear(kelr: Kelr, tmp_path: Path, target: str, form: list[str]) -> None:
    ran = kelr("history", target, *form, "--metadata-log", _of(tmp_path, {0: joined(story())}))
    assert (ran.code, ran.out.count("orders")) == (1, 0)
    assert "no partition was seen, so nothing is known to be well" in ran.err
    assert "in trouble" not in ran.err


def test_without_unclean_elections_only_those_are_denied(kelr: Kelr, tmp_path: Path) -> None:
    log = _of(tmp_path, {0: joined(story()[:5])})
    ran = kelr("history", "--summary", "--unclean", "--metadata-log", log)
    assert ran.code == 0
    assert "from 2025-10-09 08:53:20 to 2025-10-09 08:53:26 UTC no election was unclean" in ran.err
    assert "in trouble" not in ran.err


def test_a_log_that_begins_with_a_checkpoint_tells_from_when_on(kelr: Kelr, tmp_path: Path) -> None:
    log = _checkpoint(tmp_path)
    for since, warned in (([], False), (["--since", "2"], True), (["--since", "2025-10-09T08:53:25Z"], False)):
        ran = kelr("history", "--summary", *since, "--metadata-log", log)
        assert ran.code == 0
        span = f"from 2025-10-09 08:53:2{4 if warned or not since else 5} to 2025-10-09 08:53:25 UTC"
        assert f"{span} no partition was without a leader" in ran.err
        assert "whether one was under min ISR is not known" in ran.err
        assert ("before 2025-10-09 08:53:24 UTC is not told: a checkpoint" in ran.err) is warned


def test_a_window_before_the_checkpoint_shows_no_later_state(kelr: Kelr, tmp_path: Path) -> None:
    ran = kelr("history", "orders:0", "--until", "2", "--metadata-log", _checkpoint(tmp_path))
    assert (ran.code, ran.out.count("orders")) == (1, 0)
    assert "no partition was seen" in ran.err


@pytest.mark.parametrize("bridged", [True, False])
def test_records_that_are_missing_deny_nothing(kelr: Kelr, tmp_path: Path, *, bridged: bool) -> None:
    parts = [topic(), partition(0), partition(1)]
    segments = {0: leader_change(0, 1, [1]) + batch(1, *parts), 9: batch(9, shrunk(0, isr=(1, 2)))}
    bridge = {(9, 1): checkpoint(tuple(parts), contained_ms=START_MS + 8000)} if bridged else None
    ran = kelr("history", "--summary", "--metadata-log", _of(tmp_path, segments, bridge))
    assert "records are missing: whether a partition was in trouble, or an election was unclean is not known" in ran.err
    ran = kelr("history", "--summary", "--unclean", "--metadata-log", str(tmp_path / "node"))
    assert "records are missing: whether an election was unclean is not known" in ran.err
