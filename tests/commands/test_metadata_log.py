"""--metadata-log and --at: what commands say of a cluster that nobody asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.commands.conftest import Kelr
from tests.metadata_logs import START_MS, batch, joined, leader_change, node_directory, partition, story, topic

HEAD = "metadata log of node 1 at offset {}, 2025-10-09T08:53:{}.000Z\n"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return node_directory(tmp_path / "node", {0: joined(story())})


def test_describe_at_the_end_and_before(kelr: Kelr, node: Path) -> None:
    ran = kelr("describe", "--metadata-log", str(node))
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "PARTITION  LEADER  EPOCH  REPLICAS  ISR    ELR  LAST KNOWN  MIN ISR  SITUATION",
        "orders:0   none        1  1! 2! 3!  1!     ?    ?                 ?  no-live-replica",
        "orders:1   2!          1  1! 2! 3!  2! 3!  ?    ?                 ?  leader-not-live",
    ]
    assert ran.err.startswith(HEAD.format(8, 27))
    before = kelr("describe", "orders:0", "--metadata-log", str(node), "--at", "5", "-o", "json")
    (row,) = json.loads(before.out)["items"]
    assert (row["leader"], row["isr"], row["elr"]) == (1, [1, 2], None)
    assert before.err.startswith(HEAD.format(5, 24))


def test_the_next_command_repeats_the_flags(kelr: Kelr, node: Path) -> None:
    ran = kelr("describe", "--metadata-log", str(node), "--at", "7")
    assert f"--metadata-log {node} --at 7" in ran.err.splitlines()[-1]


def test_a_snapshot_of_a_moment_carries_its_time(kelr: Kelr, node: Path, tmp_path: Path) -> None:
    path = tmp_path / "then.kelr"
    assert kelr("snapshot", str(path), "--metadata-log", str(node), "--at", "5").code == 0
    ran = kelr("explain", "orders:0", "--snapshot", str(path), "-o", "json")
    (item,) = json.loads(ran.out)["items"]
    assert item["taken_at_ms"] == START_MS + 4000
    assert item["isr"] == [1, 2]


_MAYBE_NOT_THE_END = "which may not be its end: not all of it could be read"


def test_a_log_that_is_damaged_is_told_from_one_that_ends_in_documents_and_snapshots(
    kelr: Kelr, node: Path, tmp_path: Path
) -> None:
    data, saved = bytearray(joined(story())), tmp_path / "saved.kelr"
    data[len(joined(story()[:3])) + 65] ^= 1
    garbled = str(node_directory(tmp_path / "garbled", {0: bytes(data)}))
    for command in (("describe",), ("explain",)):
        for log, is_said in (((garbled,), True), ((garbled, "--at", "5"), False), ((str(node),), False)):
            document = json.loads(kelr(*command, "-o", "json", "--metadata-log", *log).out)
            assert document["source"].endswith(_MAYBE_NOT_THE_END) is is_said
    assert kelr("snapshot", str(saved), "--metadata-log", garbled).code == 0
    ran = kelr("describe", "--snapshot", str(saved))
    assert f"{saved} was saved from the metadata log of node 1 at offset 5" in ran.err
    assert _MAYBE_NOT_THE_END in ran.err


@pytest.mark.parametrize("damaged", [False, True])
def test_nothing_is_safe_by_a_log_that_is_damaged(damaged: bool, kelr: Kelr, tmp_path: Path) -> None:
    live = [batch(offset, _registered(offset)) for offset in (1, 2, 3)]
    begun = [leader_change(0, 1, [1]), *live, batch(4, topic()), batch(5, partition())]
    later = bytearray(batch(6, partition(1)))
    later[-3] ^= damaged
    node = node_directory(tmp_path / "node", {0: joined([*begun, bytes(later)])})
    ran = kelr("whatif", "--restart", "1", "--keep", "leader", "--check", "--metadata-log", str(node))
    assert ran.code == (1 if damaged else 0)
    assert (_MAYBE_NOT_THE_END in ran.err) is damaged


def _registered(broker: int) -> tuple[str, int, dict[str, Any]]:
    """A broker that is not fenced."""
    fields = {
        "broker_id": broker,
        "incarnation_id": UUID(int=broker),
        "broker_epoch": broker,
        "end_points": [],
        "features": [],
        "rack": None,
        "fenced": False,
        "in_controlled_shutdown": False,
        "log_dirs": [],
    }
    return "RegisterBrokerRecord", 3, fields


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("describe", "--at", "5"), "--at names a moment of a metadata log, and no metadata log answers here"),
        (("describe", "--metadata-log", "NODE", "-b", "127.0.0.1:1", "--at", "5"), "no metadata log answers here"),
        (("describe", "--metadata-log", "NODE", "--at", "99"), "offset 99 is after the metadata log of node 1"),
        (("describe", "--metadata-log", "NODE", "--at", "noon"), "neither an offset of the metadata log nor a time"),
        (("describe", "--metadata-log", "NODE/nowhere"), "cannot be read: No such file or directory"),
        (("log-info", "orders", "--metadata-log", "NODE"), "a metadata log says nothing of what replicas hold"),
        (
            ("elect", "--election-type", "unclean", "orders:0", "--metadata-log", "NODE"),
            "the metadata log says what was: a cluster is changed only on what it says just now",
        ),
    ],
)
def test_what_cannot_be_answered(kelr: Kelr, node: Path, arguments: tuple[str, ...], says: str) -> None:
    ran = kelr(*(argument.replace("NODE", str(node)) for argument in arguments))
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.splitlines()[-1].startswith("  fix: ")
    assert not ran.out


def test_logs_of_different_clusters(kelr: Kelr, node: Path, tmp_path: Path) -> None:
    data = joined([leader_change(0, 1, [1]), batch(1, topic())])
    other = node_directory(tmp_path / "other", {0: data}, cluster_id="another")
    ran = kelr("describe", "--metadata-log", str(node), "--metadata-log", str(other))
    assert ran.code == 2
    assert "different clusters" in ran.err


def test_what_is_odd_is_said_once(kelr: Kelr, tmp_path: Path) -> None:
    node = node_directory(tmp_path / "torn", {0: joined(story())[:-3]})
    ran = kelr("describe", "--metadata-log", str(node))
    assert ran.code == 0
    assert ran.err.count("the log is read up to there") == 1
