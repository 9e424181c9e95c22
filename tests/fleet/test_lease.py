"""A lock that is a file: who holds it, who is refused, and what becomes of one whose run was killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kelr.errors import ConnectError, RefusedError
from kelr.fleet.files import leased

BEAT_S, STALE_S = 0.02, 0.5


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file is read again soon."""
    monkeypatch.setattr("kelr.fleet.files._READ_AGAIN_AFTER_S", BEAT_S)


@dataclass
class Marks:
    """The file, in memory."""

    place: str = "store://lake"
    content: bytes | None = None
    written: threading.Event = field(default_factory=threading.Event)
    silent: bool = False
    slow_s: float = 0.0
    """For so long it is empty while it is written again, as a file of HDFS is."""
    cut_short: bool = False
    """The next write again fails, and leaves it empty."""

    def first(self, mark: bytes) -> bool:
        if self.content is not None:
            return False
        self.content = mark
        return True

    def again(self, mark: bytes) -> None:
        if self.silent:
            raise ConnectError("away")
        self.content = b""
        if self.cut_short:
            self.cut_short = False
            raise ConnectError("away in the middle of it")
        time.sleep(self.slow_s)
        self.content = mark
        self.written.set()

    def read(self) -> bytes | None:
        return self.content

    def delete(self) -> None:
        self.content = None


def test_it_is_written_again_and_again_and_goes_in_the_end() -> None:
    marks = Marks()
    with leased(marks, beat_s=BEAT_S, stale_s=STALE_S) as check:
        first = marks.content
        assert marks.written.wait(10)
        assert marks.content not in {None, first}
        check()
    assert marks.content is None


def test_a_slow_store_leaves_nothing_behind() -> None:
    """The write that is under way at the end takes longer than the time between two."""
    marks = Marks(slow_s=10 * BEAT_S)
    with leased(marks, beat_s=BEAT_S, stale_s=STALE_S):
        while marks.content != b"":
            time.sleep(BEAT_S / 10)
    assert marks.content is None


def test_a_second_run_is_refused_while_the_first_lives() -> None:
    marks = Marks()
    with (
        leased(marks, beat_s=BEAT_S),
        pytest.raises(RefusedError, match="another run of kelr fleet is changing"),
        leased(marks, beat_s=BEAT_S, stale_s=60),
    ):
        pass
    assert marks.content is None


def test_what_a_killed_run_left_is_taken_over_when_it_has_stood_still() -> None:
    marks = Marks(content=b"killed 7")
    began = time.monotonic()
    with leased(marks, beat_s=BEAT_S, stale_s=STALE_S) as check:
        assert time.monotonic() - began >= STALE_S
        check()
    assert marks.content is None


def test_one_that_goes_meanwhile_is_not_waited_for() -> None:
    marks = Marks(content=b"other 1")
    threading.Timer(0.05, marks.delete).start()
    with leased(marks, beat_s=BEAT_S, stale_s=60) as check:
        check()


def test_a_run_that_stood_still_makes_nothing_appear() -> None:
    marks = Marks()
    with leased(marks, beat_s=60) as check:
        marks.content = b"other 0"
        with pytest.raises(RefusedError, match="may have taken this lake over"):
            check()
    assert marks.content == b"other 0", "the lock of the other run stays"


def test_a_store_that_does_not_answer_for_a_while_is_no_end() -> None:
    marks = Marks(silent=True)
    with leased(marks, beat_s=BEAT_S) as check:
        time.sleep(5 * BEAT_S)
        marks.silent = False
        assert marks.written.wait(10)
        check()


def test_while_it_is_written_again_it_is_still_held() -> None:
    marks = Marks(slow_s=0.05)
    with leased(marks, beat_s=0.001, stale_s=60) as check:
        for _ in range(5):
            marks.written.clear()
            while not marks.written.is_set():
                check()
    assert marks.content is None


def test_a_write_that_was_cut_short_is_made_up_for() -> None:
    marks = Marks(cut_short=True)
    with leased(marks, beat_s=BEAT_S, stale_s=60) as check:
        assert marks.written.wait(10)
        assert not marks.cut_short
        check()
    assert marks.content is None


def test_what_was_cut_short_is_this_run_s_until_it_writes_again() -> None:
    marks = Marks(cut_short=True)
    with leased(marks, beat_s=0.5, stale_s=60) as check:
        _wait_for(lambda: marks.content == b"")
        marks.silent = True
        check()
    assert marks.content is None


def test_a_mark_that_another_run_is_writing_is_not_written_over() -> None:
    """Whoever took it over writes it again as well: empty is not whose it was."""
    marks = Marks()
    with leased(marks, beat_s=0.2, stale_s=60) as check:
        assert marks.written.wait(10)
        marks.content = b""
        time.sleep(0.5)
        assert marks.content == b""
        with pytest.raises(RefusedError, match="may have taken this lake over"):
            check()
        marks.content = b"other 3"
    assert marks.content == b"other 3"


def test_what_was_cut_short_a_minute_ago_may_be_another_run_s() -> None:
    marks = Marks(cut_short=True)

    def hold() -> None:
        with leased(marks, beat_s=BEAT_S, stale_s=0.001) as check:
            _wait_for(lambda: marks.content == b"")
            check()

    # On a busy machine the first beat comes before the lock is handed over, and is noticed there.
    with pytest.raises(RefusedError, match="may have taken this lake over"):
        hold()
    assert marks.content == b""


@dataclass
class Late(Marks):
    """A waiting run that deletes what another has put there since it looked."""

    looked: threading.Event = field(default_factory=threading.Event)
    other_has_it: threading.Event = field(default_factory=threading.Event)
    deletes: int = 0

    def delete(self) -> None:
        if threading.current_thread().name == "late":
            self.deletes += 1
            if self.deletes == 1:
                self.looked.set()
                assert self.other_has_it.wait(10)
        elif threading.current_thread().name == "early" and self.deletes == 0:
            assert self.looked.wait(10)
        super().delete()

    def first(self, mark: bytes) -> bool:
        got = super().first(mark)
        if got and threading.current_thread().name == "early":
            self.other_has_it.set()
        return got


def test_of_two_that_wait_for_a_dead_one_a_single_one_gets_it() -> None:
    marks = Late(content=b"killed 7")
    said: dict[str, str] = {}
    done = threading.Barrier(2)

    def take() -> None:
        name = threading.current_thread().name
        try:
            with leased(marks, beat_s=1, stale_s=0.3) as check:
                check()
                said[name] = "got it"
                done.wait(10)
        except RefusedError as error:
            said[name] = str(error)
            done.wait(10)

    runs = [threading.Thread(target=take, name=name) for name in ("early", "late")]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert said == {"early": "store://lake: another run of kelr fleet is changing this lake", "late": "got it"}


def _wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)
