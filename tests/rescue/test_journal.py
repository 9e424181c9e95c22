"""The journal of a replay: what is written down is there again after a crash, and one replay runs at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kelr.errors import BadInputError, RefusedError
from kelr.model import TopicPartition
from kelr.rescue.journal import SETTLE_S, Checkpoint, ReplayJournal, journal_file, replayed

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)
ABOUT = {"dump": "0" * 64}


def test_it_remembers_the_last_checkpoint_of_each_partition(tmp_path: Path) -> None:
    path = tmp_path / "replays" / "one.jsonl"
    with ReplayJournal(path, ABOUT) as journal:
        assert not journal.resumed
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
        journal.checkpoint(PAYMENTS, Checkpoint(70, 1, full=False))
        journal.checkpoint(ORDERS, Checkpoint(20, 3, (0, 15)))
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.resumed
        assert journal.checkpoints == {
            ORDERS: Checkpoint(20, 3, (0, 15)),
            PAYMENTS: Checkpoint(70, 1, None, full=False),
        }
        journal.finish([ORDERS])
    with ReplayJournal(path, ABOUT) as journal:
        assert not journal.resumed
        assert journal.checkpoints[ORDERS] == Checkpoint(20, 3, (0, 15))
        journal.checkpoint(ORDERS, Checkpoint(30, 4))
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.resumed


@pytest.mark.parametrize("age_s", [0, 3600, -3600])
def test_what_a_killed_run_sent_is_waited_for_however_old_its_journal_is(tmp_path: Path, age_s: int) -> None:
    """It sent records after its last line, and the file's time is a clock's that somebody may set."""
    path = tmp_path / "one.jsonl"
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.settle_s == 0
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
    written = path.stat().st_mtime - age_s
    os.utime(path, (written, written))
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.settle_s == SETTLE_S
        journal.finish([ORDERS])
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.settle_s == 0


def test_a_run_that_sent_nothing_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with ReplayJournal(path, ABOUT):
        assert path.exists()  # its lock keeps others out
    assert not path.exists()
    with ReplayJournal(path, ABOUT) as journal:
        assert not journal.resumed
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
        journal.finish([ORDERS])
    before = path.read_bytes()
    ReplayJournal(path, ABOUT).close()
    assert path.read_bytes() == before


def test_a_torn_last_line_is_as_if_it_had_not_been_written(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with ReplayJournal(path, ABOUT) as journal:
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
        whole = path.read_bytes()
        journal.checkpoint(ORDERS, Checkpoint(20, 3, (0, 15)))
    path.write_bytes(path.read_bytes()[:-5])
    with ReplayJournal(path, ABOUT) as journal:
        assert journal.checkpoints == {ORDERS: Checkpoint(10, 3)}
    assert path.read_bytes() == whole


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    with ReplayJournal(path, ABOUT), pytest.raises(RefusedError, match="another kelr is at work"):
        ReplayJournal(path, ABOUT)


def test_two_files_are_not_replayed_to_one_topic_at_once(tmp_path: Path) -> None:
    """They may hold the same record, and neither would find what the other is about to produce."""
    one, other = (tmp_path / f"{name}.jsonl" for name in ("one", "other"))
    with ReplayJournal(one, ABOUT, topics={"orders", "payments"}):
        with pytest.raises(RefusedError, match="another kelr replays records to topic payments") as refused:
            ReplayJournal(other, ABOUT, topics={"carts", "payments"})
        assert refused.value.code == "another-kelr"
        with ReplayJournal(other, ABOUT, topics={"carts", "refunds"}):
            pass
    with ReplayJournal(other, ABOUT, topics={"carts", "payments"}):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_replay_of_another_file_sent_to_the_same_topic_is_waited_for(tmp_path: Path) -> None:
    one, other = (tmp_path / f"{name}.jsonl" for name in ("one", "other"))
    with ReplayJournal(one, ABOUT, topics={"orders"}) as journal:
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
    with ReplayJournal(other, ABOUT, topics={"orders"}) as journal:
        assert (journal.settle_s, journal.resumed) == (SETTLE_S, False)
    with ReplayJournal(other, ABOUT, topics={"payments"}) as journal:
        assert journal.settle_s == 0
    with ReplayJournal(one, ABOUT, topics={"orders"}) as journal:
        journal.finish([ORDERS])
    with ReplayJournal(other, ABOUT, topics={"orders"}) as journal:
        assert journal.settle_s == 0
    one.write_text("garbled\n")
    with ReplayJournal(other, ABOUT, topics={"orders"}) as journal:
        assert journal.settle_s == SETTLE_S


@pytest.mark.parametrize(
    "line",
    [
        '{"topic": "orders", "partition": 0, "scan_from": -1, "leader_epoch": 3, "done_through": null}',
        '{"topic": "orders", "partition": "0", "scan_from": 1, "leader_epoch": 3, "done_through": null}',
        '{"topic": "orders", "partition": 0, "scan_from": 1, "leader_epoch": 3, "done_through": [1]}',
        '{"topic": null, "partition": 0, "scan_from": 1, "leader_epoch": 3, "done_through": [1, 2]}',
        "[]",
    ],
)
def test_a_garbled_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "one.jsonl"
    with ReplayJournal(path, ABOUT) as journal:
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(BadInputError, match="line 3"):
        ReplayJournal(path, ABOUT)


def test_another_file_in_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"kind": "something else"}\n')
    with pytest.raises(BadInputError, match="line 1"):
        ReplayJournal(path, ABOUT)


def test_each_dump_and_each_choice_of_records_has_its_own(tmp_path: Path) -> None:
    one = journal_file(tmp_path, "a" * 64, {"to": None, "include_open": False})
    assert one == journal_file(tmp_path, "a" * 64, {"include_open": False, "to": None})
    assert one != journal_file(tmp_path, "b" * 64, {"to": None, "include_open": False})
    assert one != journal_file(tmp_path, "a" * 64, {"to": "x", "include_open": False})


def test_it_tells_which_partitions_of_a_dump_came_to_their_end(tmp_path: Path) -> None:
    one, other = journal_file(tmp_path, "0" * 64, {"to": None}), journal_file(tmp_path, "0" * 64, {"to": "x"})
    with ReplayJournal(one, ABOUT) as journal:
        journal.checkpoint(ORDERS, Checkpoint(10, 3))
        assert replayed(tmp_path, "0" * 64) == frozenset()
        journal.finish([ORDERS])
    with ReplayJournal(other, ABOUT) as journal:
        journal.checkpoint(TopicPartition("x", 0), Checkpoint(10, 3))
        journal.finish([PAYMENTS])
    assert replayed(tmp_path, "0" * 64) == {ORDERS, PAYMENTS}
    assert replayed(tmp_path, "1" * 64) == frozenset()
    with ReplayJournal(one, ABOUT) as journal:
        journal.checkpoint(ORDERS, Checkpoint(20, 4))
    assert replayed(tmp_path, "0" * 64) == {PAYMENTS}
    one.write_text('{"dump": "%s"}\n{"finished": true, "partitions": 1}\n' % ("0" * 64))
    with pytest.raises(BadInputError, match="garbled"):
        replayed(tmp_path, "0" * 64)
