"""Keys of the watch's screen: from bytes to names, and from a state to the next, without a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.model import TopicPartition
from kelr.view.watch.state import Around, Mode, Sort, WatchState, kept, place_of, press
from kelr.view.watch.terminal import KeyDecoder

ROWS = tuple(TopicPartition("orders", number) for number in range(10))
AROUND = Around(ROWS, page=4)


def pressed(*keys: str, state: WatchState | None = None, around: Around = AROUND) -> WatchState:
    found = state or WatchState()
    for key in keys:
        found = press(found, key, around)
    return found


# Bytes.


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["pgup", "pgdn", "home", "end"]),
        (b"\r\n\x7f\x15\x0c", ["enter", "enter", "backspace", "kill", "redraw"]),
        ("köln".encode(), ["k", "ö", "l", "n"]),
        (b"\x1b[200~x", ["x"]),  # a sequence that means nothing here is no key, and no keys
        (b"\x1b[1;5Cx", ["x"]),
        (b"\x1b\x1b[A", ["esc", "up"]),
        (b"\x00\x01", []),
    ],
)
def test_bytes_become_keys(data: bytes, keys: list[str]) -> None:
    assert KeyDecoder().feed(data) == keys
    pieces = KeyDecoder()
    assert [key for byte in data for key in pieces.feed(bytes([byte]))] == keys


def test_an_escape_is_one_only_when_nothing_follows() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.waiting
    assert decoder.flush() == ["esc"]
    assert not decoder.waiting
    assert decoder.flush() == []


@given(st.binary())
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    decoder = KeyDecoder()
    assert all(isinstance(key, str) and key for key in [*decoder.feed(data), *decoder.flush()])
    assert not decoder.waiting
    assert decoder.feed(b"") == []


# States.


def test_moving_stays_in_the_list() -> None:
    assert place_of(pressed("up"), ROWS) == 0
    assert place_of(pressed("down", "down"), ROWS) == 2
    assert place_of(pressed("pgdn"), ROWS) == 4
    assert place_of(pressed("pgdn", "pgdn", "pgdn"), ROWS) == 9
    assert place_of(pressed("end", "up"), ROWS) == 8
    assert place_of(pressed("end", "pgup", "home"), ROWS) == 0
    assert pressed("down", around=Around((), 4)) == WatchState()


def test_the_selection_stays_with_its_partition_and_then_with_its_place() -> None:
    state = pressed("down", "down")
    turned = tuple(reversed(ROWS))
    assert place_of(state, turned) == 7
    without = tuple(at for at in ROWS if at != ROWS[2])
    assert kept(state, without).selected == ROWS[3]
    assert kept(state, ROWS[:1]).selected == ROWS[0]
    assert kept(state, ()) == state


def test_sorting_comes_round() -> None:
    state = WatchState()
    seen = [state.sort]
    for _ in Sort:
        state = press(state, "s", AROUND)
        seen.append(state.sort)
    assert seen[0] is seen[-1]
    assert set(seen) == set(Sort)


def test_a_filter_is_typed_kept_and_ended() -> None:
    state = pressed("/", "p", "a", "x", "backspace", "q")
    assert (state.typing, state.wanted, state.quits) == ("paq", "paq", False)
    assert pressed("enter", state=state) == WatchState(filter="paq")
    assert pressed("enter", "esc", state=state) == WatchState()
    assert pressed("esc", state=state) == WatchState()
    assert pressed("kill", "enter", state=state) == WatchState()
    assert pressed("down", "pgup", state=state) == state


def test_enter_explains_and_esc_goes_back() -> None:
    state = pressed("down", "enter")
    assert (state.mode, state.selected, state.scroll) == (Mode.EXPLAIN, ROWS[1], 0)
    text = Around(ROWS, page=5, lines=12)
    assert pressed("down", "pgdn", state=state, around=text).scroll == 6
    assert pressed("end", state=state, around=text).scroll == 7
    assert pressed("end", "esc", state=state, around=text) == replace(state, mode=Mode.LIST)
    assert pressed("enter", around=Around((), 4)).mode is Mode.LIST


def test_help_pause_look_and_end() -> None:
    assert pressed("?").mode is Mode.HELP
    assert pressed("?", "?") == WatchState()
    assert pressed("p").paused
    assert not pressed("p", "p").paused
    assert pressed("r", "r").asked == 2
    assert pressed("q").quits
    assert pressed("enter", "q").quits


KEYS = st.sampled_from(
    [*"qsprjkgG/?x ", "up", "down", "pgup", "pgdn", "home", "end", "enter", "esc", "backspace", "F1"]
)


@given(st.lists(st.tuples(KEYS, st.integers(0, 10), st.integers(0, 30))))
def test_whatever_is_pressed_the_state_makes_sense(strokes: list[tuple[str, int, int]]) -> None:
    state = WatchState()
    for key, rows, lines in strokes:
        around = Around(ROWS[:rows], page=3, lines=lines)
        state = kept(press(kept(state, around.rows), key, around), around.rows)
        assert 0 <= place_of(state, around.rows) < max(1, rows)
        assert state.scroll >= 0
        assert state.typing is None or state.mode is Mode.LIST
