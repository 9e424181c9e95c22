"""The one place for output: which format, which stream, how wide, in colour or not.

Data goes to stdout; notes, footnotes and the next command go to stderr, except in json and yaml, whose documents hold
them. Nothing here knows what is shown: a `View` does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TextIO

from kelr.model.rows import Rows
from kelr.view.columns import Json, RowT, Shown, View
from kelr.view.following import whole_command
from kelr.view.formats import OutputFormat
from kelr.view.streams import lines_for, write_utf8
from kelr.view.styled import Style, Text, cleaned, plain, styled, written
from kelr.view.table import Table

if TYPE_CHECKING:
    from kelr.view.machine import Writer


_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Counts on the last line of the terminal that a stream is; does nothing in a pipe.

    Kept narrower than the terminal: a line that wraps cannot be cleared.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False

    def show(self, done: int, total: int, *, what: str = "") -> None:
        """Show the count in place of the one before; where there is no room for `what`, the numbers alone."""
        if not self._stream.isatty():
            return
        room = _columns(self._stream) - 1
        count = f"{done:,} of {total:,}"
        text = f"{what}: {count}" if what and len(what) + len(count) + 2 <= room else count
        self._stream.write(_CLEAR + cleaned(text)[:room])
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away, if it is there."""
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = False


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


@dataclass(frozen=True, slots=True)
class Output:
    """Where output goes and what it looks like there.

    Args:
        width: columns of the terminal that stdout is; None where it is not one.
        connection_flags: the flags that a next command has to repeat to talk to the same cluster.
        log_flags: those that it has to repeat to count the same collections.
    """

    stdout: TextIO
    stderr: TextIO
    format: OutputFormat = OutputFormat.TABLE
    width: int | None = None
    color: bool = False
    stderr_color: bool = False
    connection_flags: tuple[str, ...] = field(default=())
    log_flags: tuple[str, ...] = field(default=())
    heading: Callable[[], Text | None] | None = None
    """What people read before the first line of data; asked for then, and None where there is nothing to say."""
    _counted: ProgressLine = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_counted", ProgressLine(self.stderr))

    @classmethod
    def for_streams(
        cls,
        stdout: TextIO,
        stderr: TextIO,
        *,
        format: OutputFormat = OutputFormat.TABLE,
        environ: Mapping[str, str] | None = None,
        connection_flags: tuple[str, ...] = (),
    ) -> Output:
        """Decide width and colour: none in a pipe, none with NO_COLOR set or on a dumb terminal.

        Makes stdout write UTF-8 where the format is one for machines.
        """
        if not format.for_people:
            write_utf8(stdout)
        variables = os.environ if environ is None else environ
        may_color = not variables.get("NO_COLOR") and variables.get("TERM") != "dumb"
        return cls(
            stdout,
            stderr,
            format=format,
            width=shutil.get_terminal_size().columns if stdout.isatty() else None,
            color=may_color and stdout.isatty(),
            stderr_color=may_color and stderr.isatty(),
            connection_flags=connection_flags,
        )

    def listing(self, view: View[RowT], head: Mapping[str, Json] | None = None) -> Listing[RowT]:
        """Begin a listing; use it as a context manager."""
        return Listing(self, view, head or {})

    def begin(self) -> None:
        """Write what stands before the data, where people read it."""
        text = self.heading() if self.heading is not None and self.format.for_people else None
        if text is not None:
            self.stdout.write(written(text, color=self.color) + "\n")

    def line(self, text: Text | str = "") -> None:
        """A line of data for people."""
        self.end_progress()
        self.begin()
        self.stdout.write(written(plain(text) if isinstance(text, str) else text, color=self.color) + "\n")

    def note(self, text: Text | str) -> None:
        """A line beside the data, to stderr; a sentence on a terminal in as many as it takes."""
        self.end_progress()
        self.stdout.flush()
        lines = map(plain, lines_for(self.stderr, text)) if isinstance(text, str) else [text]
        self.stderr.write("".join(f"{written(line, color=self.stderr_color)}\n" for line in lines))

    def next_command(self, arguments: Iterable[str]) -> str:
        """The exact command line to type next: these arguments, and the flags that it has to repeat."""
        import shlex  # noqa: PLC0415 - nothing else needs it

        return shlex.join(whole_command(arguments, connection_flags=self.connection_flags, log_flags=self.log_flags))

    def next(self, arguments: Iterable[str]) -> None:
        """Print the next command beside the data."""
        self.note([*styled("  next:", Style.HEADING), *plain(" " + self.next_command(arguments))])

    def progress(self, done: int, total: int, *, what: str = "") -> None:
        """Count on a line of the terminal that stderr is; nothing in a pipe. Whatever is written next clears it."""
        if done < total:
            self._counted.show(done, total, what=what)
        else:
            self.end_progress()

    def end_progress(self) -> None:
        """Clear the line that counts, if it is there."""
        self._counted.clear()


class Listing(Generic[RowT]):
    """Rows on their way out, in whichever format.

    `add` writes and flushes a batch, `finish` ends it with what belongs after the rows. Left by an exception, a
    document is still closed, with ``"complete": false``, so that it can be parsed and not be taken for the whole.
    """

    def __init__(self, output: Output, view: View[RowT], head: Mapping[str, Json]) -> None:
        self._output, self._view, self._head = output, view, head
        self._finished = False
        self._table: Table[RowT] | None = None
        self._writer: Writer[RowT] | None = None
        self.rows = 0
        """How many rows were written."""

    def __enter__(self) -> Self:
        if self._output.format.for_people:
            wide = self._output.format is OutputFormat.WIDE
            columns = self._view.table_columns(wide=wide)
            yields = not wide or any(one.yields for one in columns if one.shown is Shown.PEOPLE_WIDE)
            self._table = Table(columns, width=self._output.width, color=self._output.color, may_leave_out=yields)
        else:
            self._writer = _writer_for(self._output.format, self._view, self._output.stdout)
            self._writer.begin(self._head)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._finished or isinstance(error, BrokenPipeError):
            return
        if kind is None:
            self.finish()
        elif self._writer is not None:
            self._writer.end({"complete": False})
            self._output.stdout.flush()

    def add(self, rows: Iterable[RowT]) -> None:
        """Write a batch of rows and flush it."""
        batch: Sequence[RowT] = rows if isinstance(rows, Rows) else list(rows)
        if not batch:
            return
        self.rows += len(batch)
        self._output.end_progress()
        if self._writer is not None:
            self._writer.items(batch)
        else:
            self._add_for_people(batch)
        self._output.stdout.flush()

    def finish(self, tail: Mapping[str, Json] | None = None) -> None:
        """End the listing; `tail` holds what a document says after its items."""
        self._finished = True
        self._output.end_progress()
        if self._writer is not None:
            self._writer.end({**(tail or {}), "complete": True})
            self._output.stdout.flush()
        elif self._table is not None:
            self._output.begin()
        if self._table is not None and self._table.left_out:
            more = "a wider terminal or a pipe" if self._output.format is OutputFormat.WIDE else "-o wide"
            self._output.note(f"(no room here for {', '.join(self._table.left_out)}; {more} shows everything)")

    def _add_for_people(self, batch: Sequence[RowT]) -> None:
        self._output.begin()
        if self._view.block is not None:
            for row in batch:
                for text in self._view.block(row):
                    self._output.line(text)
        elif self._table is not None:
            self._output.stdout.writelines(line + "\n" for line in self._table.lines(batch))


def _writer_for(format: OutputFormat, view: View[RowT], stream: TextIO) -> Writer[RowT]:
    from kelr.view.machine import CsvWriter, JsonWriter, NdjsonWriter, YamlWriter  # noqa: PLC0415 - not for people

    if format is OutputFormat.JSON:
        return JsonWriter(view, stream)
    if format is OutputFormat.NDJSON:
        return NdjsonWriter(view, stream)
    return YamlWriter(view, stream) if format is OutputFormat.YAML else CsvWriter(view, stream)


__all__ = ["Listing", "Output", "OutputFormat"]
