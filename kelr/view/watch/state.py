"""What keys do: a state and a key in, the next state out. Nothing here knows a terminal or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kelr.model import TopicPartition


class Mode(Enum):
    """What is on the screen."""

    LIST = "list"
    EXPLAIN = "explain"
    HELP = "help"


class Sort(Enum):
    """The column that the list is sorted by."""

    PARTITION = "partition"
    SITUATION = "situation"
    SINCE = "since"
    WAITS_FOR = "waits for"

    @property
    def following(self) -> Sort:
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


@dataclass(frozen=True, slots=True)
class WatchState:
    """What somebody at the keyboard has chosen."""

    mode: Mode = Mode.LIST
    sort: Sort = Sort.SITUATION
    filter: str = ""
    """Topics whose names hold this are shown; empty: all."""
    typing: str | None = None
    """The filter that is being typed; None: none is."""
    selected: TopicPartition | None = None
    """Stays with its partition when the list changes; None: the first one."""
    place: int = 0
    """Where in the list it was: its neighbour is selected when it goes."""
    scroll: int = 0
    """The first line that is shown of an explanation or of the help."""
    paused: bool = False
    asked: int = 0
    """How often a look was asked for."""
    quits: bool = False
    redraws: int = 0
    """How often a whole redraw was asked for (Ctrl-L)."""

    @property
    def wanted(self) -> str:
        """The filter, also while it is typed."""
        return self.filter if self.typing is None else self.typing


@dataclass(frozen=True, slots=True)
class Around:
    """What a key's meaning hangs on."""

    rows: Sequence[TopicPartition]
    """The list as it is shown, filtered and sorted."""
    page: int
    """Lines of the list, or of the text, that are on the screen."""
    lines: int = 0
    """Lines of the text that is shown in place of the list."""


def press(state: WatchState, key: str, around: Around) -> WatchState:
    """The state after a key; one without a meaning changes nothing."""
    if state.typing is not None:
        return _typed(state, state.typing, key)
    if key in _ANYWHERE:
        return _ANYWHERE[key](state)
    if state.mode is Mode.LIST:
        if key in _MOVES:
            return _moved(state, _MOVES[key](around), around)
        return _IN_LIST[key](state, around) if key in _IN_LIST else state
    if key in _MOVES:
        return replace(state, scroll=_scrolled(state.scroll, _MOVES[key](around), around))
    return replace(state, mode=Mode.LIST, scroll=0) if key in _BACK else state


def _typed(state: WatchState, typed: str, key: str) -> WatchState:
    if key == "enter":
        return replace(state, filter=typed, typing=None)
    if key == "esc":
        return replace(state, typing=None)
    if key == "backspace":
        return replace(state, typing=typed[:-1])
    if key == "kill":
        return replace(state, typing="")
    return replace(state, typing=typed + key) if len(key) == 1 else state


_BACK = frozenset({"esc", "enter", "backspace"})
_FAR = 1 << 40
_MOVES: Mapping[str, Callable[[Around], int]] = {
    "up": lambda _: -1,
    "k": lambda _: -1,
    "down": lambda _: 1,
    "j": lambda _: 1,
    "pgup": lambda around: -max(1, around.page),
    "pgdn": lambda around: max(1, around.page),
    " ": lambda around: max(1, around.page),
    "home": lambda _: -_FAR,
    "g": lambda _: -_FAR,
    "end": lambda _: _FAR,
    "G": lambda _: _FAR,
}
_ANYWHERE: Mapping[str, Callable[[WatchState], WatchState]] = {
    "q": lambda state: replace(state, quits=True),
    "p": lambda state: replace(state, paused=not state.paused),
    "r": lambda state: replace(state, asked=state.asked + 1),
    "redraw": lambda state: replace(state, redraws=state.redraws + 1),
    "?": lambda state: replace(state, mode=Mode.LIST if state.mode is Mode.HELP else Mode.HELP, scroll=0),
}


def _explain(state: WatchState, around: Around) -> WatchState:
    if not around.rows:
        return state
    place = place_of(state, around.rows)
    return replace(state, mode=Mode.EXPLAIN, scroll=0, selected=around.rows[place], place=place)


_IN_LIST: Mapping[str, Callable[[WatchState, Around], WatchState]] = {
    "s": lambda state, _: replace(state, sort=state.sort.following),
    "/": lambda state, _: replace(state, typing=state.filter),
    "enter": _explain,
    "esc": lambda state, _: replace(state, filter=""),
}


def place_of(state: WatchState, rows: Sequence[TopicPartition]) -> int:
    """Where in the list the selected partition is; where it is gone, the one that has come to its place."""
    if state.selected is None:
        return 0
    try:
        return rows.index(state.selected)
    except ValueError:
        return max(0, min(state.place, len(rows) - 1))


def kept(state: WatchState, rows: Sequence[TopicPartition]) -> WatchState:
    """The state once the list has become this: what is selected stays so, or its neighbour is."""
    if state.selected is None or not rows:
        return state
    place = place_of(state, rows)
    return replace(state, selected=rows[place], place=place)


def _moved(state: WatchState, by: int, around: Around) -> WatchState:
    if not around.rows:
        return state
    place = max(0, min(place_of(state, around.rows) + by, len(around.rows) - 1))
    return replace(state, selected=around.rows[place], place=place)


def _scrolled(scroll: int, by: int, around: Around) -> int:
    return max(0, min(scroll + by, around.lines - around.page))
