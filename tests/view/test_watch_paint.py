"""Frames: what is written turns one screen into the next, and is no more than what changed."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from kelr.view.styled import Span, Style, Text, plain, styled, width_of, written
from kelr.view.watch.paint import Painter, cut, spans_of

WIDTH, HEIGHT = 20, 4
_CODES = re.compile(r"\x1b\[(\?2026[hl]|0m\x1b\[2J|\d+;\d+H|[\d;]*m|K)")


class Emulated:
    """A terminal that knows what the painter uses, and nothing else: characters with their styles."""

    def __init__(self) -> None:
        self.cells = [[(" ", "0")] * WIDTH for _ in range(HEIGHT)]

    def feed(self, text: str) -> None:
        row = column = 0
        style = "0"
        while text:
            match = _CODES.match(text)
            if match is None:
                assert text[0] != "\x1b", f"an unknown code: {text[:8]!r}"
                for offset in range(width_of(text[0])):
                    self.cells[row][min(column + offset, WIDTH - 1)] = (text[0] if not offset else "", style)
                column, text = min(column + width_of(text[0]), WIDTH - 1), text[1:]
                continue
            code, text = match[1], text[match.end() :]
            if code.endswith("2J"):
                self.cells = [[(" ", "0")] * WIDTH for _ in range(HEIGHT)]
            elif code.endswith("H"):
                row, column = (int(number) - 1 for number in code[:-1].split(";"))
            elif code == "K":
                self.cells[row][column:] = [(" ", "0")] * (WIDTH - column)
            elif code.endswith("m"):
                style = code[:-1] or "0"


SPANS = st.builds(Span, st.text("ab 表", max_size=12), st.sampled_from(Style))
LINES = st.lists(st.lists(SPANS, max_size=4), max_size=HEIGHT)


@given(st.lists(LINES, min_size=1, max_size=4))
def test_after_each_frame_the_screen_shows_it_and_nothing_else(frames: list[list[Text]]) -> None:
    painter, terminal = Painter(color=True), Emulated()
    for lines in frames:
        terminal.feed(painter.frame(lines, WIDTH, HEIGHT))
        fresh = Emulated()
        fresh.feed(Painter(color=True).frame(lines, WIDTH, HEIGHT))
        assert terminal.cells == fresh.cells


@given(LINES)
def test_the_same_frame_again_writes_nothing(lines: list[Text]) -> None:
    painter = Painter(color=True)
    assert painter.frame(lines, WIDTH, HEIGHT)
    assert painter.frame(lines, WIDTH, HEIGHT) == ""
    painter.forget()
    assert painter.frame(lines, WIDTH, HEIGHT)


def test_a_change_in_a_cell_writes_the_cell() -> None:
    painter = Painter(color=True)
    row = [Span("orders:1  "), Span("none", Style.BAD), Span("  12 s")]
    painter.frame([row], 80, 24)
    changed = painter.frame([[*row[:2], Span("  13 s")]], 80, 24)
    assert changed == "\x1b[?2026h\x1b[1;15H  13 s\x1b[?2026l"
    middle = painter.frame([[row[0], Span("   3", Style.GOOD), Span("  13 s")]], 80, 24)
    assert middle == "\x1b[?2026h\x1b[1;11H\x1b[32m   3\x1b[0m\x1b[?2026l"


@example([Span("aaa\u8868\u8868"), Span(""), Span("a")], 7)
@given(st.lists(SPANS, max_size=6), st.integers(1, 30))
def test_what_is_cut_fits_and_says_so(text: list[Span], width: int) -> None:
    whole = "".join(span.text for span in text)
    shown = "".join(span.text for span in cut(text, width))
    assert width_of(shown) <= width
    assert shown == whole if width_of(whole) <= width else shown.endswith(">")


def test_what_comes_from_the_network_drives_no_terminal() -> None:
    frame = Painter(color=True).frame([plain("a\x1b[2Jb\x07")], 40, 1)
    assert "a\\x1b[2Jb\\x07" in frame


def test_without_colour_nothing_is_styled() -> None:
    assert "\x1b[1;31m" not in Painter(color=False).frame([styled("none", Style.BAD)], 40, 1)


@given(st.lists(st.builds(Span, st.text("ab ", min_size=1, max_size=5), st.sampled_from(Style)), max_size=5))
def test_a_written_line_can_be_read_back(text: list[Span]) -> None:
    line = written(text, color=True)
    assert written(spans_of(line), color=True) == line
