"""Formats and streams: documents, csv quoting, streaming, colour and width decisions, the next command."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import struct
import termios
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kelr.view.columns import Column, Fact, View
from kelr.view.output import Output, OutputFormat
from kelr.view.streams import lines_for
from kelr.view.styled import plain


@dataclass(frozen=True)
class Row:
    text: str | None
    numbers: tuple[int, ...] | None = ()
    flag: bool | None = None


VIEW: View[Row] = View(
    "kelr/test",
    (
        Column("text", "TEXT", value=lambda row: row.text),
        Column("numbers", "NUMBERS", value=lambda row: row.numbers),
        Column("flag", "FLAG", value=lambda row: row.flag),
    ),
    head=(Fact("cluster_id", "string", ""),),
)
ROWS = st.lists(
    st.builds(
        Row,
        st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.lists(st.integers(), max_size=3).map(tuple),
        st.none() | st.booleans(),
    ),
    max_size=5,
)


def listed(format: OutputFormat, batches: list[list[Row]], **streams: Any) -> str:
    stdout = io.StringIO(newline="")
    with Output(stdout, io.StringIO(), format=format, **streams).listing(VIEW, {"cluster_id": "x"}) as listing:
        for batch in batches:
            listing.add(batch)
        listing.finish({"next": None})
    return stdout.getvalue()


def expected(rows: list[Row]) -> Mapping[str, Any]:
    items = [
        {"text": row.text, "numbers": None if row.numbers is None else list(row.numbers), "flag": row.flag}
        for row in rows
    ]
    head = {"kind": "kelr/test", "version": 1, "cluster_id": "x"}
    return {**head, "items": items, "next": None, "complete": True}


@given(ROWS)
def test_json_says_what_was_put_in_however_it_was_batched(rows: list[Row]) -> None:
    assert json.loads(listed(OutputFormat.JSON, [rows])) == expected(rows)
    assert listed(OutputFormat.JSON, [[row] for row in rows]) == listed(OutputFormat.JSON, [rows])


@given(ROWS)
def test_ndjson_is_one_item_a_line(rows: list[Row]) -> None:
    lines = listed(OutputFormat.NDJSON, [rows]).split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == expected(rows)["items"]


@given(ROWS)
def test_yaml_says_what_json_says(rows: list[Row]) -> None:
    assert yaml.safe_load(listed(OutputFormat.YAML, [rows])) == expected(rows)


@pytest.mark.parametrize("text", ["no", "1:20", "~", "2026-01-01", "a: b", "- x", "é", "\x85", "a\u2028b"])
def test_yaml_keeps_text_that_looks_like_something_else(text: str) -> None:
    assert yaml.safe_load(listed(OutputFormat.YAML, [[Row(text)]]))["items"][0]["text"] == text


def test_csv_quotes_by_rfc_4180() -> None:
    written = listed(OutputFormat.CSV, [[Row('say "a, b"\nc', (1, 2), True), Row(None, None, None), Row("", ())]])
    assert written == 'text,numbers,flag\r\n"say ""a, b""\nc",1 2,true\r\n,,\r\n,-,\r\n'
    assert list(csv.reader(io.StringIO(written, newline="")))[1] == ['say "a, b"\nc', "1 2", "true"]


def test_every_batch_is_flushed_as_it_comes() -> None:
    class Stream(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed = len(self.getvalue())

    for format in OutputFormat:
        stream = Stream()
        with Output(stream, io.StringIO(), format=format).listing(VIEW) as listing:
            listing.add([Row("first")])
            assert "first" in stream.getvalue()[: stream.flushed], format
            listing.finish()


def test_a_failed_document_can_be_parsed_and_says_that_it_is_not_whole() -> None:
    def failing(format: OutputFormat) -> str:
        stdout = io.StringIO()
        try:
            with Output(stdout, io.StringIO(), format=format).listing(VIEW) as listing:
                listing.add([Row("first")])
                raise ZeroDivisionError
        except ZeroDivisionError:
            return stdout.getvalue()

    for document in (json.loads(failing(OutputFormat.JSON)), yaml.safe_load(failing(OutputFormat.YAML))):
        assert (len(document["items"]), document["complete"]) == (1, False)


def test_blocks_take_the_place_of_the_table() -> None:
    view: View[Row] = View("kelr/test", VIEW.columns, block=lambda row: [plain(f"<{row.text}>"), plain("")])
    stdout = io.StringIO()
    with Output(stdout, io.StringIO()).listing(view) as listing:
        listing.add([Row("a"), Row("b")])
    assert stdout.getvalue() == "<a>\n\n<b>\n\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdout", "environ", "color"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour(stdout: io.StringIO, environ: dict[str, str], color: bool) -> None:
    assert Output.for_streams(stdout, io.StringIO(), environ=environ).color is color


def test_width_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "97")
    assert Output.for_streams(Terminal(), io.StringIO()).width == 97
    assert Output.for_streams(io.StringIO(), Terminal()).width is None


def test_a_narrow_terminal_is_told_what_is_missing() -> None:
    view: View[Row] = View("kelr/test", (Column("a", "A", value=lambda row: row.text), Column("b", "BEE", yields=1)))
    stdout, stderr = io.StringIO(), io.StringIO()
    with Output(stdout, stderr, width=5).listing(view) as listing:
        listing.add([Row("four")])
    assert stdout.getvalue() == "A\nfour\n"
    assert stderr.getvalue() == "(no room here for BEE; -o wide shows everything)\n"


def test_the_next_command_can_be_pasted() -> None:
    output = Output(io.StringIO(), io.StringIO(), connection_flags=("-b", "a:1", "--command-config", "my file"))
    assert output.next_command(["explain", "orders-*"]) == "kelr explain 'orders-*' -b a:1 --command-config 'my file'"


def test_progress_only_on_a_terminal() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    Output(io.StringIO(), pipe).progress(1, 2, what="logs")
    Output(io.StringIO(), terminal).progress(1, 2000, what="logs")
    assert pipe.getvalue() == ""
    assert terminal.getvalue() == "\r\x1b[Klogs: 1 of 2,000"


def test_progress_stays_narrower_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that wraps could not be cleared."""
    for columns, shown in ((40, "logs that were asked for: 1 of 9"), (32, "1 of 9"), (4, "1 o")):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal = Terminal()
        Output(io.StringIO(), terminal).progress(1, 9, what="logs that were asked for")
        assert terminal.getvalue() == "\r\x1b[K" + shown


@pytest.mark.parametrize(
    "written",
    [
        lambda output: output.line("x"),
        lambda output: output.note("x"),
        lambda output: output.listing(VIEW).__enter__().add([Row("x")]),
        lambda output: output.listing(VIEW).__enter__().finish(),
        lambda output: output.progress(9, 9),
        lambda output: output.end_progress(),
    ],
)
def test_whatever_is_written_next_clears_the_count_once(written: Callable[[Output], None]) -> None:
    terminal = Terminal()
    output = Output(io.StringIO(), terminal)
    written(output)
    assert "\x1b[K" not in terminal.getvalue()
    output.progress(1, 9)
    counted = len(terminal.getvalue())
    written(output)
    assert terminal.getvalue()[counted:].startswith("\r\x1b[K")
    cleared = len(terminal.getvalue())
    written(output)
    assert "\x1b[K" not in terminal.getvalue()[cleared:]


@pytest.mark.parametrize(
    ("columns", "text", "lines"),
    [
        (
            40,
            "fix: give the port of a listener, not of a web page",
            ["fix: give the port of a listener, not of", "     a web page"],
        ),
        (40, "fix: kelr explain orders:1 orders:2 orders:3 orders:4", None),
        (
            40,
            "did you mean orders? `kelr describe` without a target lists",
            ["did you mean orders?", "     `kelr describe` without a target lists"],
        ),
        (40, "a-name-that-is-longer-than-a-line-of-this-terminal/server.properties", None),
        (39, "a terminal that is too narrow for sentences breaks them itself", None),
        (0, "a terminal that does not know how wide it is breaks them itself", None),
    ],
)
def test_a_terminal_breaks_no_word_of_a_sentence_and_no_command(
    columns: int, text: str, lines: list[str] | None
) -> None:
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(writer, "w") as stream:
        assert lines_for(stream, text, indent=" " * 5) == (lines or [text])
    os.close(reader)
    assert lines_for(io.StringIO(), text) == [text]
