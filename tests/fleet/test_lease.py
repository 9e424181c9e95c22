"""A lock that is a file: who holds it, who is refused, and what becomes of one whose run was killed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from kelr.errors import ConnectError, RefusedError
from kelr.fleet.lease import leased

BEAT_S, STALE_S = 0.02, 0.5


@dataclass
class Marks:
    """The file, in memory."""

    place: str = "store://lake"
    content: bytes | None = None
    written: threading.Event = field(default_factory=threading.Event)
    silent: bool = False

    def first(self, mark: bytes) -> bool:
        if self.content is not None:
            return False
        self.content = mark
        return True

    def again(self, mark: bytes) -> None:
        if self.silent:
            raise ConnectError("away")
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
        with pytest.raises(RefusedError, match="taken this lake over"):
            check()
    assert marks.content == b"other 0", "the lock of the other run stays"


def test_a_store_that_does_not_answer_for_a_while_is_no_end() -> None:
    marks = Marks(silent=True)
    with leased(marks, beat_s=BEAT_S) as check:
        time.sleep(5 * BEAT_S)
        marks.silent = False
        assert marks.written.wait(10)
        check()
