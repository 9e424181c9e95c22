"""The screens of ``kelr watch`` and ``kelr describe --watch``, as Textual apps.

They show what somebody else has read: threads read clusters, and `LiveApp.wake` is called when one has ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.text import Text as RichText
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.coordinate import Coordinate
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import DataTable, Footer, Input, Static

from kelr.engine.watching import Story
from kelr.interrupts import GRACE_S
from kelr.model import TopicPartition
from kelr.view.layout import rich_text, wrapped
from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.watch.head import first_line, gap_lines, head_lines
from kelr.view.watch.lines import NOTHING_FOUND, WatchLine
from kelr.view.watch.model import Order, Printed, Shown, Silence, Trouble
from kelr.view.watch.rows import (
    GAP,
    Listed,
    Sort,
    columns_that_fit,
    detail_lines,
    detail_title,
    explanation_lines,
    listed,
    row_cells,
)
from kelr.view.watch.words import clock, duration

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SCROLLS: list[BindingType] = [
    Binding("k", "scroll_up", show=False),
    Binding("j", "scroll_down", show=False),
    Binding("space", "page_down", show=False),
    Binding("g", "scroll_home", show=False),
    Binding("G", "scroll_end", show=False),
]
_ABOUT = (
    "The list has partitions that are leaderless or under min ISR, and those that were so during the watch, until all"
    " their replicas are in sync. * marks what the last look did not renew. SINCE begins with > where it was so already"
    " when the watch began. Times are UTC. Figures in brackets are changes since the watch began.",
    "LOGS, on a wide screen: each replica's log end, how many offsets of the most complete log it lacks (? where that"
    " is not known), and how fast it grows. ~ fenced or shutting down, ! offline or not registered.",
    "An election is told by what the look before it saw. A leader that was live, and in ISR or ELR, is clean unless it"
    " left them between the two looks. One that was away is clean only if its shutdown was: kelr history can tell from"
    " the metadata log. One that was in neither is not clean. Where more happened than two looks tell, clean or"
    " not is not known.",
)
_HELP = (
    ("up, down, k, j", "choose a partition, or scroll; so do PgUp, PgDn, space, Home, End, g, G and the mouse"),
    ("Tab", "go to the next pane"),
    ("Enter", "the explanation of the chosen partition, as does a click on it; Esc goes back"),
    ("h", "its history, as kelr history prints it; Esc goes back"),
    (
        "P",
        "what kelr recover plan makes of it, a dry run; there w plans as if brokers that it waits for never returned,"
        " and a is kelr recover apply, which asks before it changes anything",
    ),
    ("s", "sort by the next column, as does a click on its title"),
    ("/", "show partitions whose names hold what you type; Enter keeps that, Esc gives it up, and in the list ends it"),
    ("p", "pause: the cluster is left alone, and the screen stays as it is; p goes on"),
    ("r", "look now"),
    ("?", "this help, and back"),
    ("q, Ctrl-C", "end"),
)


class Pane(VerticalScroll):
    """Lines of text that scroll."""

    BINDINGS: ClassVar[list[BindingType]] = _SCROLLS

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._shown = Static(), RichText()

    def compose(self) -> ComposeResult:
        yield self._text

    @property
    def room(self) -> int:
        """Columns of a line."""
        return max(1, self.scrollable_content_region.width)

    def show(self, lines: Sequence[Text | RichText], title: str = "") -> None:
        """Show this in the place of what is there."""
        self.border_title = Content(f" {title} ")
        text = RichText("\n", no_wrap=True).join(one if isinstance(one, RichText) else rich_text(one) for one in lines)
        if text != self._shown or text.spans != self._shown.spans:
            self._shown = text
            self._text.update(text)


class PartitionList(DataTable[RichText]):
    """The list; its cursor stays with its partition when rows come and go."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "explain"),
        Binding("P", "app.order('recover plan')", "plan"),
        Binding("h", "app.order('history')", "history"),
        Binding("s", "app.sort", "sort"),
        # The next keys are typed into the filter, however soon they come.
        Binding("slash", "app.filter", "find", key_display="/", priority=True),
        Binding("k", "cursor_up", show=False),
        Binding("j", "cursor_down", show=False),
        Binding("space", "page_down", show=False),
        Binding("home,g", "scroll_top", show=False),
        Binding("end,G", "scroll_bottom", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="list", cursor_type="row", cell_padding=0)
        self._shown: Shown | None = None
        self._rows: Sequence[TopicPartition] = ()
        self._titles: Mapping[str, int] = {}
        self._names: Sequence[str] = ()
        self._cells: dict[int, list[RichText]] = {}
        """What is in the rows that were on the screen; the others are empty, or old."""

    @property
    def chosen(self) -> TopicPartition | None:
        return self._rows[self.cursor_row] if self._rows else None

    @property
    def in_view(self) -> Sequence[TopicPartition]:
        """Partitions that are on the screen, the chosen one with them."""
        chosen, rows = self.chosen, [self._rows[at] for at in self._places]
        return rows if chosen is None or chosen in rows else [*rows, chosen]

    def show(self, shown: Shown, listed: Listed, sort: Sort) -> None:
        """Show these rows; those that are not on the screen get their cells when they come there."""
        columns = columns_that_fit(row_cells(shown, listed.widest), self.scrollable_content_region.width)
        titles = {f"{name}^" if name == sort.value else name: width for name, width in columns.items()}
        chosen, place, above = self.chosen, self.cursor_row, self.cursor_row - self.scroll_y
        before, self._rows, self._shown, self._names = self._rows, listed.rows, shown, tuple(columns)
        anew = titles != self._titles or len(self._rows) < self.row_count
        if anew:
            self._make_anew(titles)
        for number in range(self.row_count, len(self._rows)):
            self.add_row(*(_EMPTY for _ in titles), key=str(number))
        if anew or self._rows is not before:
            place = self._rows.index(chosen) if chosen in self._rows else max(0, min(place, len(self._rows) - 1))
            self.move_cursor(row=place, animate=False, scroll=False)
            # The chosen row stays in its line of the screen, whatever came or went above it.
            self.call_after_refresh(self.scroll_to, y=place - above, animate=False, immediate=True)
        self._fill()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._fill()

    def _make_anew(self, titles: Mapping[str, int]) -> None:
        self.clear(columns=True)
        for title, width in titles.items():
            self.add_column(title, width=width + GAP, key=title.removesuffix("^"))
        self._titles, self._cells = titles, {}

    @property
    def _places(self) -> range:
        """Which rows are on the screen."""
        first = int(self.scroll_y)
        return range(first, min(first + self.size.height, len(self._rows), self.row_count))

    def _fill(self) -> None:
        """Have the rows on the screen say what is known; cells that say it already are left alone."""
        if self._shown is None:
            return
        places = self._places
        for y, row in zip(places, row_cells(self._shown, [self._rows[at] for at in places]), strict=True):
            cells = [_cell(row[name]) for name in self._names]
            before = self._cells.get(y, [_EMPTY] * len(cells))
            self._cells[y] = cells
            for x, (old, new) in enumerate(zip(before, cells, strict=True)):
                if old != new or old.spans != new.spans:
                    self.update_cell_at(Coordinate(y, x), new)


_EMPTY = RichText()


def _cell(text: Text) -> RichText:
    cell = rich_text(text)
    cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell


class Filter(Input):
    """What names of partitions hold that are shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # What is typed next is no part of it, however soon it comes.
        Binding("enter", "app.keep_filter", "keep it", priority=True),
        Binding("escape", "app.leave", "give it up"),
    ]


class TextScreen(Screen[None]):
    """Text in the place of the list.

    Args:
        lines: the text, for so many columns.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back"),
        Binding("enter,backspace", "dismiss", show=False),
    ]

    def __init__(self, lines: Callable[[int], Sequence[Text | RichText]]) -> None:
        super().__init__()
        self._lines = lines
        self.head, self.pane = Static(classes="head"), Pane()

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.pane
        yield Footer()

    def on_resize(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.pane.show(self._lines(self.pane.room))


class CommandScreen(TextScreen):
    """What a command prints, and what can be done with it."""

    app: WatchApp
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", "apply (asks before it changes anything)"),
        Binding("w", "without", "plan as if they never returned"),
    ]

    def __init__(self, order: Order) -> None:
        super().__init__(self._printed_lines)
        self.order = order
        self._told: Printed | None = None

    @property
    def printed(self) -> Printed | None:
        """What it has printed; None: it is under way."""
        found = self.app.printed
        return found if found is not None and found.order is self.order else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "apply":
            return self.printed is not None and self.printed.plan is not None
        if action == "without":
            return self.printed is not None and bool(self.printed.awaited)
        return super().check_action(action, parameters)

    def renew(self) -> None:
        super().renew()
        if self._told is not self.printed:
            self._told = self.printed
            self.refresh_bindings()

    def action_apply(self) -> None:
        printed = self.printed
        if printed is not None and printed.plan is not None:
            self.dismiss()
            self.app.apply(printed.plan)

    def action_without(self) -> None:
        printed = self.printed
        if printed is not None and printed.awaited:
            self.order = self.app.ordered = replace(self.order, gone=printed.awaited)
            self.app.renew()

    def _printed_lines(self, width: int) -> list[Text | RichText]:
        head = [Span(self.order.words, Style.HEADING)]
        if self.printed is None:
            return [head, plain(""), styled("the cluster is being read", Style.QUIET)]
        # Laid out for the screen as it was: on a narrower one nothing is cut off.
        lines = (RichText.from_ansi(line) for line in self.printed.lines)
        return [head, plain(""), *(part for line in lines for part in _in_width(line, self.app.console, width))]


def _in_width(line: RichText, console: Console, width: int) -> Sequence[RichText]:
    return [line] if line.cell_len <= width else list(line.wrap(console, width))


class _Terminal(LinuxDriver):
    """Textual's driver, which tells the app sizes of the terminal in their order.

    Its handler of SIGWINCH reads the size and then tells it: the next SIGWINCH interrupts that, its newer size is told
    first, and the older one, told last, stays. Within the loop one ends before the next.
    """

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        tell = signal.getsignal(signal.SIGWINCH)
        if callable(tell):
            asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, tell, signal.SIGWINCH, None)


class LiveApp(App[bool]):
    """A screen that is kept up to date until somebody, a signal or its own `step` ends it."""

    class Woken(Message):
        """A thread has ended what it was to read."""

    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-high")]  # noqa: RUF012 - as Textual has it
    CSS = """
    Screen { overflow: hidden; }
    * { scrollbar-size-vertical: 1; }
    .head { height: auto; max-height: 70%; }
    Pane { height: 1fr; overflow-x: hidden; scrollbar-gutter: stable; }
    #list, #detail, #changes { border-top: solid ansi_bright_black; border-title-style: none; }
    #list { height: 5fr; min-height: 4; overflow-x: hidden; scrollbar-gutter: stable; }
    #detail { height: 5fr; }
    #changes { height: 3fr; }
    #list:focus, #detail:focus, #changes:focus { border-top: heavy ansi_green; }
    #list > .datatable--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    #list > .datatable--header { background: ansi_default; color: ansi_default; text-style: bold; }
    #list > .datatable--hover, #list > .datatable--header-hover { background: ansi_default; text-style: underline; }
    #filter { height: 1; border: none; display: none; }
    .-low #detail { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause"),
        Binding("r", "look", "renew"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self) -> None:
        # The terminal's own colours: they read on a dark background and on a light one.
        super().__init__(_Terminal, ansi_color=True)
        self.theme = "ansi-dark"
        self.paused = False
        self.look_asked = False
        """Somebody wants the cluster to be looked at now."""
        self.ended_by: signal.Signals | None = None
        self.failure: BaseException | None = None
        self._timer: Timer | None = None
        self._handlers: Mapping[signal.Signals, Any] = {}

    @abstractmethod
    def step(self) -> float:
        """Take what was read, begin what is due, and show it; in how many seconds it is to be called again."""

    def run_until_ended(self) -> bool:
        """Show the screen; what `exit` was called with.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
            BaseException: what `step` raised, or the handler of a signal: it gets the signal once the screen is gone,
                and without one the signal ends the process, as it would have without a screen.
        """
        os.environ["TEXTUAL_ALLOW_SIGNALS"] = "1"  # Ctrl-C is a signal as ever, which comes through whatever is drawn
        self._handlers = {number: signal.getsignal(number) for number in _ENDS}
        try:
            with asyncio.Runner() as runner:
                self._end_by_signals(runner.get_loop())
                ended = runner.run(self.run_async())
        finally:
            self._give_signals_back()
        if self.failure is not None:
            raise self.failure
        if self.ended_by is signal.SIGINT:
            raise KeyboardInterrupt
        if self.ended_by is not None:
            if not callable(signal.getsignal(self.ended_by)):
                signal.signal(self.ended_by, signal.SIG_DFL)
            os.kill(os.getpid(), self.ended_by)
        if self.return_code:
            raise RuntimeError("the screen failed")  # Textual has printed why
        return bool(ended)

    @contextmanager
    def without_screen(self) -> Iterator[None]:
        """The terminal and the signals as any command has them, until this is left; nothing may be raised within."""
        with self.suspend():
            self._give_signals_back()
            yield
            self._end_by_signals(asyncio.get_running_loop())

    def _give_signals_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _end_by_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        def end(number: int, _: object) -> None:
            loop.call_soon_threadsafe(self.end_by, signal.Signals(number))
            # A terminal that takes nothing any more may hold the loop up.
            at_last = threading.Timer(GRACE_S, os._exit, [128 + number])
            at_last.daemon = True
            at_last.start()

        for number in _ENDS:
            signal.signal(number, end)

    def wake(self) -> None:
        """Something was read: may be called from any thread."""
        with suppress(RuntimeError):  # the loop may have ended
            self.post_message(self.Woken())

    def end_by(self, number: signal.Signals) -> None:
        self.ended_by = number
        self.exit()

    def on_mount(self) -> None:
        self.renew_later()

    @on(Woken)
    def renew(self) -> None:
        """One `step`."""
        if self._timer is not None:
            self._timer.stop()
        try:
            wait_s = self.step()
        except BaseException as error:
            self.failure = error
            self.exit()
            return
        self._timer = self.set_timer(max(0.001, wait_s), self.renew)

    def renew_later(self) -> None:
        """Once the widgets have their places."""
        self.call_after_refresh(self.renew)

    def on_resize(self, _: Resize) -> None:
        self.renew_later()

    def action_interrupt(self) -> None:
        self.end_by(signal.SIGINT)

    def action_pause(self) -> None:
        self.paused = not self.paused
        self.renew()

    def action_look(self) -> None:
        self.look_asked = True
        self.renew()


class WatchApp(LiveApp):
    """The partitions in trouble, the chosen one with its replicas' logs, and what has changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "about", "help", key_display="?"),
        Binding("escape", "leave", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sort, self.wanted, self._wanted_before = Sort.SITUATION, "", ""
        self._shown: Shown | None = None
        self.head, self.partitions = Static(classes="head"), PartitionList()
        self.detail, self.changes = Pane("detail"), Pane("changes")
        self.filter = Filter(id="filter", placeholder="partitions whose names hold ...")
        self.ordered: Order | None = None
        """A command that was asked for and is not begun."""
        self.printed: Printed | None = None
        """What the newest one printed."""
        self._listed: tuple[Story | None, Sort, str, Listed] | None = None
        self._changes_of: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.partitions
        yield self.detail
        yield self.changes
        yield self.filter
        yield Footer()

    def on_mount(self) -> None:
        super().on_mount()
        self.partitions.focus()
        self.changes.anchor()  # the newest one stays on the screen, unless somebody scrolls

    @property
    def on_screen(self) -> Sequence[TopicPartition]:
        """Partitions whose logs are looked at."""
        chosen = self.partitions.chosen
        if len(self.screen_stack) > 1:
            return [] if chosen is None else [chosen]
        return self.partitions.in_view

    def show(self, shown: Shown) -> None:
        """Show this."""
        self._shown = shown
        rows = self._rows(shown)
        self.partitions.border_title = Content(f" {_list_title(shown, rows, self.sort, self.wanted)} ")
        self.partitions.show(shown, rows, self.sort)
        head = RichText("\n").join(map(rich_text, head_lines(shown, self.size.width)))
        self.head.update(head)
        chosen = self.partitions.chosen
        if chosen is None:
            self.detail.show(wrapped(_nothing(shown, rows, self.wanted), self.detail.room))
        else:
            self.detail.show(detail_lines(shown, chosen, self.detail.room), detail_title(shown, chosen))
        told = (len(shown.log), shown.forgotten, self.changes.room, shown.story is None)
        if told != self._changes_of:
            self._changes_of = told
            self.changes.show(_log(shown.log, self.changes.room), _log_title(shown))
        if isinstance(self.screen, TextScreen):
            self.screen.head.update(head)
            self.screen.renew()

    def _rows(self, shown: Shown) -> Listed:
        """The list; made anew only when what it is made of has changed."""
        if self._listed is None or self._listed[0] is not shown.story or self._listed[1:3] != (self.sort, self.wanted):
            self._listed = (shown.story, self.sort, self.wanted, listed(shown.story, self.sort, self.wanted))
        return self._listed[3]

    @on(DataTable.RowHighlighted)
    def another_is_chosen(self) -> None:
        if self._shown is not None:
            self.renew()

    @on(DataTable.HeaderSelected)
    def sort_by(self, event: DataTable.HeaderSelected) -> None:
        self.sort = next((one for one in Sort if one.value == event.column_key.value), self.sort)
        self.renew()

    @on(Input.Changed)
    def filter_typed(self, event: Input.Changed) -> None:
        self.wanted = event.value
        self.renew()

    def action_keep_filter(self) -> None:
        self.filter.display = False
        self.screen.set_focus(self.partitions)  # at once: the next key may have come already
        self.renew_later()

    def action_filter(self) -> None:
        self._wanted_before, self.filter.value, self.filter.display = self.wanted, self.wanted, True
        self.screen.set_focus(self.filter)  # at once: the next key may have come already

    def action_leave(self) -> None:
        self.filter.value = self.wanted = self._wanted_before if self.filter.display else ""
        self.action_keep_filter()

    def action_sort(self) -> None:
        self.sort = self.sort.following
        self.renew()

    @on(DataTable.RowSelected)
    def explain(self) -> None:
        chosen = self.partitions.chosen
        if chosen is not None:
            self._open(lambda width: [] if self._shown is None else explanation_lines(self._shown, chosen, width))

    def apply(self, plan: Path) -> None:
        """Carry a plan out, as ``kelr recover apply`` does, which asks first."""
        raise NotImplementedError

    def action_order(self, command: str) -> None:
        chosen = self.partitions.chosen
        if chosen is not None:
            self.ordered = Order(command, chosen, self.detail.room)
            self._push(CommandScreen(self.ordered))

    def action_about(self) -> None:
        if isinstance(self.screen, TextScreen):
            self.screen.dismiss()
        else:
            self._open(_help)

    def _open(self, lines: Callable[[int], Sequence[Text]]) -> None:
        self._push(TextScreen(lines))

    def _push(self, screen: TextScreen) -> None:
        self.push_screen(screen, lambda _: self.renew_later())
        self.renew_later()


def _list_title(shown: Shown, rows: Listed, sort: Sort, wanted: str) -> str:
    few = f", the first {len(rows.rows):,} of them" if len(rows.rows) < rows.held else ""
    what = f"{rows.held:,} of {rows.of:,} hold {wanted!r}" if wanted else f"{rows.of:,} partitions"
    stale = shown.story is not None and (shown.stale or shown.story.sight.not_renewed)
    return f"{what} by {sort.value.lower()}{few}{'  * not renewed' if stale else ''}"


def _nothing(shown: Shown, rows: Listed, wanted: str) -> Text:
    if shown.story is None:
        return styled("nothing was read so far", Style.NOTICE)
    if rows.of:
        return styled(f"none of the {rows.of:,} partitions here holds {wanted!r}", Style.NOTICE)
    sight = shown.story.sight
    if not sight.counts.read:
        return styled("no partition could be read" if sight.topic_errors else NOTHING_FOUND, Style.NOTICE)
    of_what = " of what could be read" if sight.topic_errors else ""
    if shown.silent is not None:
        # When brokers learnt it is not known: not even of the look's own time can anything be said.
        words = f"nothing is leaderless or unsafe{of_what} by what brokers told; it may be out of date"
        return styled(words, Style.NOTICE)
    if shown.stale:
        at = clock(sight.taken_at_ms)
        words = f"nothing was leaderless or unsafe{of_what} at {at}; how it stands now is not known"
        return styled(words, Style.NOTICE)
    return styled(f"nothing is leaderless or unsafe{of_what}", Style.NOTICE if of_what else Style.GOOD)


def _log(log: Sequence[WatchLine], width: int) -> list[Text]:
    """What has changed, the newest lowest, each with a hanging indent."""
    lines: list[Text] = []
    for entry in log:
        name = [Span(f"{entry.name}: ", Style.HEADING)] if entry.name else []
        for number, line in enumerate(wrapped([*name, *entry.words], width - 9)):
            lines.append([Span(" " * 9 if number else f"{clock(entry.at_ms)} ", Style.QUIET), *line])
    return lines or [styled("none so far", Style.QUIET)]


def _log_title(shown: Shown) -> str:
    since = "" if shown.story is None else f" since {clock(shown.story.begun_ms)}"
    return f"changes{since}" + (f" ({shown.forgotten:,} earlier)" if shown.forgotten else "")


def _help(width: int) -> list[Text]:
    lines: list[Text] = []
    for keys, text in _HELP:
        for number, line in enumerate(wrapped(plain(text), width - 17)):
            lines.append([Span(f"{'' if number else keys:<17}", Style.HEADING), *line])
    return [*lines, *(line for text in _ABOUT for line in [plain(""), *wrapped(plain(text), width)])]


class TableApp(LiveApp):
    """A table that was laid out already, with its age above it."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._head, self._pane = Static(classes="head"), Pane()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._pane
        yield Footer()

    def on_mount(self) -> None:
        super().on_mount()
        self._pane.focus()

    @property
    def room(self) -> int:
        """How wide the table may be."""
        return self._pane.room

    def show(
        self,
        lines: Sequence[str],
        now_ms: int,
        taken_at_ms: int,
        *,
        read: bool,
        trouble: Trouble | None = None,
        silent: Silence | None = None,
    ) -> None:
        """Show this.

        Args:
            lines: as they were written for a terminal.
            taken_at_ms: when their reading began; where nothing was read, when the watch began.
        """
        ago = duration((now_ms - taken_at_ms) / 1000)
        told = f"  {clock(taken_at_ms)} UTC, {ago} ago" if read else f"  nothing read yet, for {ago}"
        age = [Span(told, Style.PLAIN if trouble is None and silent is None else Style.BAD)]
        age += [Span("  PAUSED", Style.NOTICE)] if self.paused else []
        width = self.size.width
        head = [first_line("kelr describe --watch", self._title, age, width), *gap_lines(trouble, silent, width)]
        self._head.update(RichText("\n").join(map(rich_text, head)))
        self._pane.show([RichText.from_ansi(line) for line in lines])
