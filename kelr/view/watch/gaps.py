"""Times in which nothing new was learnt, in words: the cluster cannot be read, or its brokers hear no controller."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.watching import Counts
from kelr.view.styled import Style, styled
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Silence, Trouble
from kelr.view.watch.words import clock, duration

_MEANS = "what brokers tell may be out of date"
_LOOK_AT = "check that most controllers are up (kelr doctor)"


def not_renewed_in_words(trouble: Trouble) -> str:
    """For the top of a screen."""
    what = "NOTHING READ YET" if trouble.never_read else f"NOT RENEWED since {clock(trouble.since_ms)}"
    return f"{what}: {trouble.message}{_step(trouble)}"


def silence_in_words(silent: Silence) -> str:
    """For the top of a screen."""
    return f"NO CONTROLLER ANSWERS {silent_since(silent)} ({silent.why}): {_MEANS}; {_LOOK_AT}"


def silent_since(silent: Silence) -> str:
    """``since 14:03:10``; where no look heard a controller, nobody knows since when."""
    return "since the watch began or before" if silent.heard_ms is None else f"since {clock(silent.heard_ms)}"


def late(began_ms: int, taken_at_ms: int) -> Trouble:
    """That a look goes on for much longer than others.

    Args:
        began_ms: when it began.
        taken_at_ms: when the newest one began that came through.
    """
    return Trouble(taken_at_ms, f"a look began at {clock(began_ms)} and has not come through so far")


class Gaps:
    """Remembers what was told of such times, so that a beginning and an end are told once each.

    Args:
        steps: whether it is told what to do; a screen has that at its top.
    """

    def __init__(self, *, steps: bool) -> None:
        self._steps = steps
        self._trouble: Trouble | None = None
        self._silent: Silence | None = None
        self._told: set[str] = set()
        """The messages of the trouble that goes on: two that take turns are told once each."""

    def lines(
        self, trouble: Trouble | None, silent: Silence | None, at_ms: int, counts: Counts | None = None
    ) -> Iterator[WatchLine]:
        """What is new of them.

        Args:
            trouble: why the newest look failed; None: it did not.
            silent: as in `Shown`.
            at_ms: when that became known.
            counts: of the newest look that came through.
        """
        failed, self._trouble = self._trouble, trouble
        if trouble is not None:
            if trouble.message not in self._told:
                self._told.add(trouble.message)
                last = "" if trouble.never_read else f", and was last at {clock(trouble.since_ms)}"
                words = f"the cluster cannot be read{last}: {trouble.message}{self._step(trouble)}"
                yield _line(at_ms, "not-read", words, Style.BAD, None)
            return
        if failed is not None:
            self._told.clear()
            again = "" if failed.never_read else " again"
            words = f"the cluster can be read{again}, after {_lasted(failed.since_ms, at_ms)} in which nothing was seen"
            yield _line(at_ms, "read-again", words, Style.NOTICE, counts)
        before, self._silent = self._silent, silent
        if silent is not None and before is None:
            step = f"; {_LOOK_AT}" if self._steps else ""
            words = f"no controller answers {silent_since(silent)} ({silent.why}): {_MEANS}{step}"
            yield _line(at_ms, "no-controller", words, Style.BAD, counts)
        if silent is None and before is not None:
            lasted = None if before.heard_ms is None else _lasted(before.heard_ms, at_ms)
            words = f"a controller answers{' now' if lasted is None else f' again, after {lasted}'}"
            yield _line(at_ms, "controller-again", words, Style.NOTICE, counts)

    def _step(self, trouble: Trouble) -> str:
        return _step(trouble) if self._steps else ""


def _line(at_ms: int, what: str, words: str, style: Style, counts: Counts | None) -> WatchLine:
    return WatchLine(at_ms, what, "", styled(words, style), counts=counts)


def _lasted(since_ms: int, at_ms: int) -> str:
    return duration((at_ms - since_ms) / 1000)


def _step(trouble: Trouble) -> str:
    return f"; {trouble.next_step}" if trouble.next_step else ""
