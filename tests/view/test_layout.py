"""Tables and paragraphs: whole at any width, harmless, and in kelr's own styles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.view.columns import Column
from kelr.view.layout import Layout, table_lines, wrapped
from kelr.view.styled import Span, Style, plain, width_of, written

ROWS = (("orders:0", "a name.that.has.no.space.and.is.long here"), ("payments:12", "short"))
COLUMNS: tuple[Column[tuple[str, str]], ...] = (
    Column("name", "NAME", text=lambda row: plain(row[0])),
    Column("text", "TEXT", text=lambda row: plain(row[1])),
)


@pytest.mark.parametrize("width", [12, 20, 47, 80, 200])
@pytest.mark.parametrize("swapped", [False, True])
def test_no_word_is_cut_and_no_line_is_too_long_where_the_words_fit(width: int, swapped: bool) -> None:
    columns = COLUMNS[::-1] if swapped else COLUMNS
    lines = [written(line, color=False) for line in table_lines(columns, ROWS, width=width)]
    words = [word for line in lines for word in line.split()]
    assert sorted(words) == sorted(["NAME", "TEXT", *(word for row in ROWS for cell in row for word in cell.split())])
    if width >= 47:
        assert max(map(width_of, lines)) <= width


def test_a_name_that_leaves_no_room_gets_a_line_of_its_own() -> None:
    rows = ((f"{'long.' * 12}topic:0", "one two three"), ("orders:0", "four five six"))
    lines = [written(line, color=False) for line in table_lines(COLUMNS, rows, width=40)]
    name = f"{'long.' * 12}topic:0"
    assert lines == [f"{'NAME':27}TEXT", name, f"{'':27}one two three", f"{'orders:0':27}four five six"]


def test_sentences_give_way_before_anything_else() -> None:
    columns = (COLUMNS[0], replace(COLUMNS[1], prose=True))
    rows = (("broker 1 returns, clean", "Kafka elects it from the ELR, and it loses nothing of what was committed"),)
    assert written(next(iter(table_lines(columns, rows, width=60, header=False))), color=False).startswith(
        "broker 1 returns, clean  Kafka elects it from the ELR, and"
    )


def test_what_comes_from_the_network_drives_no_terminal() -> None:
    (line,) = wrapped(plain("rack \x1b[31m"), 40)
    assert "\x1b" not in written(line, color=True)


def test_styles_arrive_as_they_left() -> None:
    (line,) = Layout(60).paragraph("Loss  ", [Span("UNKNOWN", Style.BAD), Span(" if you elect now.")])
    assert [span.style for span in line if span.text.strip()] == [Style.HEADING, Style.BAD, Style.PLAIN]
    assert written(line, color=False) == "Loss  UNKNOWN if you elect now."
