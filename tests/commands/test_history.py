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
from tests.metadata_logs import START_MS, joined, node_directory, story
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
