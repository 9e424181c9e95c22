"""Tables: widths, narrow terminals, marks and colours, and text that would drive a terminal."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.view.columns import Column, Shown, View
from kelr.view.styled import Span, Style, Text, cleaned, plain, width_of, written
from kelr.view.table import Table, wrap


@dataclass(frozen=True)
class Row:
    name: str
    members: tuple[int, ...] = ()
    count: int | None = None


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "NAME", value=lambda row: row.name),
    Column(
        "members", "MEMBERS", value=lambda row: row.members, text=lambda row: plain(" ".join(map(str, row.members)))
    ),
    Column("count", "COUNT", value=lambda row: row.count, right=True, yields=1),
)


def table(*rows: Row, width: int | None = None, color: bool = False) -> list[str]:
    return list(Table(COLUMNS, width=width, color=color).lines(rows))


def test_aligned_by_the_widest_cell_and_nothing_is_a_dash() -> None:
    assert table(Row("orders", (1, 2, 3), 12), Row("a")) == [
        "NAME    MEMBERS  COUNT",
        "orders  1 2 3       12",
        "a       -            -",
    ]


def test_later_batches_keep_the_columns_and_have_no_header() -> None:
    made = Table(COLUMNS, width=None, color=False)
    list(made.lines([Row("orders", (1,), 1)]))
    assert list(made.lines([Row("a-much-longer-name", (1,), 1), Row("b", (2,), 2)])) == [
        "a-much-longer-name  1            1",
        "b       2            2",
    ]


def test_a_narrow_terminal_leaves_out_what_yields_and_says_so() -> None:
    made = Table(COLUMNS, width=18, color=False)
    assert list(made.lines([Row("orders", (1, 2, 3), 12)])) == ["NAME    MEMBERS", "orders  1 2 3"]
    assert made.left_out == ("COUNT",)


def test_sentences_are_wrapped_before_a_name_loses_its_place() -> None:
    about: Column[Row] = Column(
        "about", "ABOUT", value=lambda _: "It is a long story, of several lines here.", prose=True
    )
    made = Table((COLUMNS[0], about), width=56)
    assert list(made.lines([Row("a-name-of-20-letters")])) == [
        "NAME                  ABOUT",
        "a-name-of-20-letters  It is a long story, of several",
        "                      lines here.",
    ]


def test_a_column_that_was_asked_for_is_never_left_out() -> None:
    made = Table(COLUMNS, width=18, color=False, may_leave_out=False)
    assert "COUNT" in "\n".join(made.lines([Row("orders", (1, 2, 3), 12)]))
    assert made.left_out == ()


def test_lists_are_wrapped_between_members() -> None:
    assert table(Row("t", tuple(range(100, 108))), width=20) == [
        "NAME  MEMBERS",
        "t     100 101 102",
        "      103 104 105",
        "      106 107",
    ]


def test_a_name_that_is_too_long_gets_a_line_of_its_own() -> None:
    assert table(Row("payments.dead.letter.queue", (1, 2, 3)), width=20) == [
        "NAME         MEMBERS",
        "payments.dead.letter.queue",
        "             1 2 3",
    ]


@dataclass(frozen=True)
class Named:
    name: str
    situation: str
    lost: str


NAMED: tuple[Column[Named], ...] = (
    Column("name", "PARTITION", value=lambda row: row.name),
    Column("situation", "SITUATION", value=lambda row: row.situation, hyphenated=True),
    Column("lost", "LOST IN ALL", value=lambda row: row.lost),
)


def test_a_title_has_at_most_two_lines_and_a_short_name_no_line_of_its_own() -> None:
    made = Table(NAMED, width=34, color=False, may_leave_out=False)
    assert list(made.lines([Named("payments:0", "waiting-for-elr", "?"), Named("o:1", "healthy", "?")])) == [
        "PARTITION   SITUATION       LOST",
        "                            IN ALL",
        "payments:0  waiting-for-    ?",
        "            elr",
        "o:1         healthy         ?",
    ]


@given(
    names=st.lists(st.from_regex(r"[a-z.-]{1,30}:[0-9]{1,3}", fullmatch=True), min_size=1, max_size=5),
    members=st.lists(st.integers(0, 10**6), max_size=12),
    width=st.integers(10, 200),
)
def test_no_name_and_no_id_is_ever_cut(names: list[str], members: list[int], width: int) -> None:
    words = "\n".join(table(*(Row(name, tuple(members), 7) for name in names), width=width)).split()
    assert set(names) <= set(words)
    assert {str(member) for member in members} <= set(words)


@given(text=st.from_regex(r"[a-z -]{0,60}", fullmatch=True), width=st.integers(1, 40))
def test_wrapping_loses_no_character_but_spaces(text: str, width: int) -> None:
    lines = wrap(plain(text), width, hyphens=True)
    assert "".join(span.text for line in lines for span in line).replace(" ", "") == text.replace(" ", "")


def test_a_hyphenated_word_is_broken_behind_its_hyphens() -> None:
    lines = wrap(plain("waiting-for-last-known-leader"), 16, hyphens=True)
    assert [written(line, color=False) for line in lines] == ["waiting-for-", "last-known-", "leader"]


def test_colour_only_where_asked_and_marks_without_it() -> None:
    text: Text = (Span("2~", Style.NOTICE), Span(" 3"))
    assert written(text, color=False) == "2~ 3"
    assert written(text, color=True) == "\x1b[33m2~\x1b[0m 3"


def test_a_rack_cannot_drive_the_terminal() -> None:
    assert written(plain("az\x1b[31m1\n"), color=True) == "az\\x1b[31m1\\n"


@given(st.text())
def test_cleaned_text_is_printable(text: str) -> None:
    assert cleaned(text).isprintable()


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("", 0)])
def test_width(text: str, width: int) -> None:
    assert width_of(text) == width


def test_columns_by_format() -> None:
    view: View[Row] = View(
        "kelr/test",
        (
            Column("a", "A", value=lambda row: row.name, shown=Shown.MACHINE),
            Column("b", "B", value=lambda row: row.name),
            Column("c", "C", value=lambda row: row.name, shown=Shown.WIDE),
            Column("d", "D", text=lambda row: plain(row.name), shown=Shown.PEOPLE),
            Column("e", "E", text=lambda row: plain(row.name), shown=Shown.PEOPLE_WIDE),
        ),
    )
    assert [column.key for column in view.table_columns(wide=False)] == ["b", "d"]
    assert [column.key for column in view.table_columns(wide=True)] == ["b", "c", "d", "e"]
    assert list(view.as_item(Row("x"))) == ["a", "b", "c"]


@given(
    st.lists(st.builds(Row, st.text(), st.lists(st.integers(0, 99)).map(tuple), st.none() | st.integers()), max_size=5)
)
def test_a_pipe_gets_the_lines_that_the_general_way_lays_out(rows: list[Row]) -> None:
    general = [written(text, color=False) for text in Table(COLUMNS, width=None).texts(rows)]
    assert table(*rows) == general


def test_one_long_name_in_a_pipe_sticks_out_and_pads_no_other_row() -> None:
    long = "x" * 249
    assert table(Row("orders", (1, 2), 12), Row(long, (3,), 4), Row("a", (5,), 6)) == [
        "NAME    MEMBERS  COUNT",
        "orders  1 2         12",
        f"{long}  3            4",
        "a       5            6",
    ]
    assert table(Row(long, (1,), 2)) == [f"NAME{' ' * 245}  MEMBERS  COUNT", f"{long}  1            2"]


def test_names_of_forty_characters_in_a_pipe_are_aligned() -> None:
    lines = table(Row("a"), Row("b"), Row("x" * 40))
    assert len({line.index("-") for line in lines[1:]}) == 1


def test_where_not_even_the_words_fit_cells_come_below_each_other() -> None:
    made = Table(COLUMNS, width=14, color=False)
    assert list(made.lines([Row("orders", (100, 200, 300, 400), 12), Row("a")])) == [
        "NAME: orders",
        "  MEMBERS:",
        "    100 200",
        "    300 400",
        "  COUNT: 12",
        "NAME: a",
        "  MEMBERS: -",
        "  COUNT: -",
    ]
    assert made.left_out == ()
    assert list(made.lines([Row("b", (1,), 2)])) == ["NAME: b", "  MEMBERS: 1", "  COUNT: 2"]


def test_cells_without_titles_come_behind_each_other_there() -> None:
    made = Table(COLUMNS, width=16, color=False, header=False, may_leave_out=False)
    assert list(made.lines([Row("orders", (1000, 2000), 123456)])) == ["orders  1000", "    2000  123456"]
