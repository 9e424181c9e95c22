"""Tables and paragraphs that Rich lays out: whole at any width, harmless, and in kelr's own styles."""

from __future__ import annotations

import pytest

from kelr.view.columns import Column
from kelr.view.rich_lines import labelled, lines_of, rich_text, table_lines
from kelr.view.styled import Span, Style, plain, width_of, written

ROWS = (("orders:0", "a name.that.has.no.space.and.is.long here"), ("payments:12", "short"))
COLUMNS: tuple[Column[tuple[str, str]], ...] = (
    Column("name", "NAME", text=lambda row: plain(row[0])),
    Column("text", "TEXT", text=lambda row: plain(row[1])),
)


@pytest.mark.parametrize("width", [12, 20, 45, 80])
def test_nothing_is_cut_off_and_no_line_is_too_long(width: int) -> None:
    lines = [written(line, color=False) for line in table_lines(COLUMNS, ROWS, width=width)]
    assert max(map(width_of, lines)) <= width
    for name, text in ROWS:
        letters = sorted("".join(lines).replace(" ", ""))
        for letter in set(f"{name}{text}".replace(" ", "")):
            assert letters.count(letter) >= f"{name}{text}".count(letter)


def test_words_stay_whole_where_they_fit_side_by_side() -> None:
    lines = [written(line, color=False) for line in table_lines(COLUMNS, ROWS, width=50)]
    assert any("name.that.has.no.space.and.is.long" in line for line in lines)
    assert "orders:0" in lines[1]


def test_what_comes_from_the_network_drives_no_terminal() -> None:
    (line,) = lines_of(rich_text(plain("rack \x1b[31m")), width=40)
    assert "\x1b" not in written(line, color=True)


def test_styles_arrive_as_they_left() -> None:
    (line,) = labelled("Loss", [Span("UNKNOWN", Style.BAD), Span(" if you elect now.")], width=60)
    assert [span.style for span in line if span.text.strip()] == [Style.HEADING, Style.BAD, Style.PLAIN]
    assert written(line, color=False) == "Loss  UNKNOWN if you elect now."
