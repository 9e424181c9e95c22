"""The display of who has answered and who is missing, while an election waits for replicas' logs.

On a terminal it is a few lines that are drawn anew; in a pipe a line whenever something has changed. Always on stderr.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kelr.model.waiting import Waiting
from kelr.view.output import Output
from kelr.view.plan_words import named, partitions_in_words
from kelr.view.styled import cleaned

if TYPE_CHECKING:
    from rich.live import Live

_LEAVE = "Ctrl-C ends it: nothing has been changed."


class WaitingDisplay:
    """Shows one moment of the waiting after another; use as a context manager.

    Args:
        what: what is waited for, such as ``the recovery quorum``.
    """

    def __init__(self, output: Output, what: str) -> None:
        self._output, self._what = output, what
        self._live: Live | None = None
        self._said: tuple[Any, ...] | None = None

    def show(self, waiting: Waiting) -> None:
        """The present moment. A waiting that never begins, since everybody has answered, shows nothing."""
        self._output.end_progress()
        if self._said is None and not waiting.open:
            return
        state = (waiting.open, tuple(waiting.answered.items()), _reasons(waiting.missing))
        if self._output.stderr.isatty():
            self._draw(waiting)
        elif state != self._said:
            self._output.note(waiting_line(waiting, self._what))
        self._said = state

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, waiting: Waiting) -> None:
        from rich.console import Console  # noqa: PLC0415 - only while somebody watches
        from rich.live import Live  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        if self._live is None:
            console = Console(file=self._output.stderr, no_color=not self._output.stderr_color, highlight=False)
            # Transient: what came of it is said afterwards, in the plan.
            self._live = Live(console=console, transient=True, auto_refresh=False)
            self._live.start()
        lines = "\n".join(cleaned(line) for line in waiting_lines(waiting, self._what))
        self._live.update(Text(lines, overflow="fold"), refresh=True)


def waiting_lines(waiting: Waiting, what: str) -> Iterator[str]:
    """The moment as a few lines for a terminal."""
    yield f"Waiting for {what} of {_open(waiting)}: {_time(waiting)}"
    yield f"  read     {_answered(waiting.answered)}"
    for broker, reasons in waiting.missing.items():
        yield f"  missing  broker {broker}: {_why(reasons)}"
    yield f"  {_LEAVE}"


def waiting_line(waiting: Waiting, what: str) -> str:
    """The moment as one line for a pipe."""
    if not waiting.open:
        return f"nothing more to wait for after {waiting.passed_s:.0f} s: read {_answered(waiting.answered)}"
    missing = "; ".join(f"broker {broker}: {_why(reasons)}" for broker, reasons in waiting.missing.items())
    read = _answered(waiting.answered)
    return f"waiting for {what} of {_open(waiting)}, {_time(waiting)}: read {read}; missing {missing}"


def _open(waiting: Waiting) -> str:
    if len(waiting.open) == 1:
        return str(waiting.open[0])
    return f"{partitions_in_words(len(waiting.open))} ({named(waiting.open, most=3)})"


def _time(waiting: Waiting) -> str:
    return f"{waiting.passed_s:.0f} s of {waiting.limit_s:.0f} s"


def _answered(answered: Mapping[int, int]) -> str:
    return ", ".join(f"broker {broker} ({partitions_in_words(count)})" for broker, count in answered.items()) or "none"


def _why(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{why} ({partitions_in_words(count)})" for why, count in reasons.items())


def _reasons(missing: Mapping[int, Mapping[str, int]]) -> tuple[Any, ...]:
    return tuple((broker, tuple(reasons.items())) for broker, reasons in missing.items())
