"""Which logs go on where they ended, which are told anew, and which files are not used."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest

from kelr.fleet.inputs import INGESTED, QUARANTINED, SUPERSEDED, Input, is_passed_over
from kelr.fleet.looking import CHECKPOINT, SEGMENT, SNAPSHOT, Looked, Mark
from kelr.fleet.planning import LogFiles, Told, Work, plan_log, plan_seen, told_of

CLUSTER = "c"
FIRST, SECOND, THIRD = ("/n1/log/a", 0, 10), ("/n1/log/b", 10, 20), ("/n1/log/c", 20, 30)


def segment(path: str, first: int, end: int, *, epoch: int = 1, status: str = QUARANTINED) -> Input:
    marks = tuple(Mark(offset, (offset - first) * 100, offset * 1000 + epoch) for offset in range(first, end))
    looked = Looked(SEGMENT, first, end, (end - first) * 100, end - first, ((epoch, first),), marks)
    return Input(path, (end - first) * 100, 1, SEGMENT, CLUSTER, 1, status, run="r", looked=looked)


def planned(files: Iterable[Input], new: Iterable[str], told: Told | None = None, gone: Iterable[str] = ()) -> Work:
    work, missing = Work(), set(gone)
    log = LogFiles(CLUSTER, tuple(files), frozenset(new), told)
    plan_log(log, lambda paths: {path for path in paths if path not in missing}, work)
    return work


def test_a_log_goes_on_from_where_it_ended_though_older_files_are_gone() -> None:
    files = [segment(*FIRST, status=INGESTED), segment(*SECOND)]
    told = Told(8, ((SEGMENT, 1, 0, 8),))
    work = planned([files[0], files[1]], [SECOND[0]], told)
    (log,) = work.logs
    assert (log.goes_on_from, log.anew) == (8, False)
    assert [(piece.path, piece.from_offset, piece.to_offset, piece.from_byte) for piece in log.pieces] == [
        (FIRST[0], 8, 10, 800),
        (SECOND[0], 10, 20, 0),
    ]
    told = Told(10, ((SEGMENT, 1, 0, 10),))
    (log,) = planned(files, [SECOND[0]], told, gone=[FIRST[0]]).logs
    assert [piece.path for piece in log.pieces] == [SECOND[0]]


def test_what_fills_a_gap_makes_the_log_be_told_anew_or_waits_outside() -> None:
    looked = Looked(CHECKPOINT, end_offset=20, readable_bytes=500, epochs=((1, 19),))
    point = Input("/n1/log/p", 500, 1, CHECKPOINT, CLUSTER, 1, INGESTED, run="r", looked=looked)
    files = [segment(*FIRST, status=INGESTED), point, segment(*THIRD, status=INGESTED), segment(*SECOND)]
    told = Told(30, ((SEGMENT, 1, 0, 10), (CHECKPOINT, 1, 10, 20), (SEGMENT, 1, 20, 30)))
    (log,) = planned(files, [SECOND[0]], told).logs
    assert (log.goes_on_from, log.anew) == (None, True)
    assert [piece.path for piece in log.pieces] == [FIRST[0], SECOND[0], THIRD[0]]
    work = planned(files, [SECOND[0]], told, gone=[FIRST[0]])
    assert not work.logs
    assert work.changed[SECOND[0]].status == QUARANTINED
    assert f"{FIRST[0]} would be needed, which is gone" in str(work.changed[SECOND[0]].reason)


def test_a_newer_epoch_undoes_a_tail() -> None:
    old = segment(*FIRST, status=INGESTED)
    new = segment("/n2/log/a", 7, 12, epoch=2)
    (log,) = planned([old, new], [new.path], Told(10, ((SEGMENT, 1, 0, 10),))).logs
    assert log.anew
    assert [(piece.path, piece.from_offset, piece.to_offset) for piece in log.pieces] == [
        (old.path, 0, 7),
        (new.path, 7, 12),
    ]


def test_records_that_nobody_has_keep_what_comes_behind_out_until_they_come() -> None:
    work = planned([segment(*FIRST), segment(*THIRD)], [FIRST[0], THIRD[0]])
    assert [piece.path for log in work.logs for piece in log.pieces] == [FIRST[0]]
    assert work.changed[THIRD[0]].reason == "records 10 to 19 are missing, and no checkpoint stands in for them"
    told = Told(10, ((SEGMENT, 1, 0, 10),))
    work = planned([segment(*FIRST, status=INGESTED), segment(*THIRD), segment(*SECOND)], [SECOND[0]], told)
    assert [piece.path for log in work.logs for piece in log.pieces] == [SECOND[0], THIRD[0]]
    assert work.changed[THIRD[0]].status == INGESTED


def test_of_two_logs_under_one_cluster_id_none_is_told_until_one_is_taken_away() -> None:
    """Which of them is named first, and which is longer, says nothing."""
    other = segment("/a/log/a", 0, 7)
    assert other.looked is not None
    marks = tuple(replace(mark, crc=mark.crc + 5) for mark in other.looked.marks)
    other = replace(other, looked=replace(other.looked, marks=marks))
    mine, far = segment(*FIRST), segment("/n3/log/c", 20, 30)
    work = planned([mine, other, far], [FIRST[0], other.path, far.path])
    assert work.logs == []
    assert {one.status for one in work.changed.values()} == {QUARANTINED}
    assert len(work.changed) == 3
    for one in work.changed.values():
        assert "two logs under one cluster id" in str(one.reason)
        assert "/n1/log" in str(one.reason)
        assert "/a/log" in str(one.reason)
    again = planned(work.changed.values(), [], gone=[other.path, far.path])
    assert [piece.path for log in again.logs for piece in log.pieces] == [FIRST[0]]
    assert again.changed[FIRST[0]].status == INGESTED
    assert again.changed[other.path].reason == "it is gone"
    # What was told before stays.
    told = planned([replace(mine, status=INGESTED), other], [other.path], Told(10, ((SEGMENT, 1, 0, 10),)))
    assert told.logs == []
    assert "another log than that of /n1/log" in str(told.changed[other.path].reason)


def test_another_copy_is_superseded() -> None:
    twin = replace(segment(*FIRST), path="/n2/log/a")
    work = planned([segment(*FIRST), segment(*SECOND), twin], [FIRST[0], SECOND[0], twin.path])
    assert {path: one.status for path, one in work.changed.items() if one.status != INGESTED} == {twin.path: SUPERSEDED}


def test_the_same_snapshot_is_taken_once() -> None:
    looked = Looked(SNAPSHOT, readable_bytes=5, taken_at_ms=1, digest="d")
    one = Input("/b", 5, 1, SNAPSHOT, CLUSTER, looked=looked)
    work = Work()
    plan_seen([one, replace(one, path="/a")], {}, work)
    assert [file.path for file in work.seen] == ["/a"]
    assert (work.changed["/b"].status, work.changed["/b"].reason) == (SUPERSEDED, "it is the same as /a")


def test_how_far_a_log_was_told_is_kept() -> None:
    told = Told(30, ((SEGMENT, 1, 0, 10), (CHECKPOINT, 1, 10, 20)))
    assert told_of(told.offset, json.loads(json.dumps(told.spans))) == told


@pytest.mark.parametrize(
    ("path", "passed_over"),
    [
        ("/n/__cluster_metadata-0/00000000000000000000.log", False),
        ("/n/orders-3/00000000000000000000.log", True),
        ("/n/__cluster_metadata-0/00000000000000000000.index", True),
        ("/n/__cluster_metadata-0/quorum-state", True),
        ("/n/truth.json", True),
        ("/n/saved.kelr", False),
        ("/n/00000000000000000000/00000000000000000000.log", False),
    ],
)
def test_what_is_passed_over(path: str, *, passed_over: bool) -> None:
    assert is_passed_over(path) is passed_over
