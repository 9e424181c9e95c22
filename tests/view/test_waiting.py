"""The display of who has answered and who is missing: a line for each change in a pipe, drawn anew at a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from kelr.model import TopicPartition
from kelr.model.waiting import Waiting
from kelr.view.output import Output
from kelr.view.waiting import WaitingDisplay, waiting_line, waiting_lines

ORDERS = tuple(TopicPartition("orders", number) for number in range(3))
MOMENT = Waiting(
    12.4, 30.0, ORDERS, answered={2: 3, 3: 2}, missing={1: {"unreachable": 2, "fenced": 1}, 3: {"timed-out": 1}}
)
OVER = Waiting(14.0, 30.0, (), answered={1: 3, 2: 3, 3: 3}, missing={})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stderr: io.StringIO, *moments: Waiting) -> str:
    out = io.StringIO()
    with WaitingDisplay(Output(out, stderr), "the recovery quorum") as display:
        for moment in moments:
            display.show(moment)
    assert out.getvalue() == ""
    return stderr.getvalue()


def test_in_a_pipe_a_line_is_written_whenever_something_has_changed() -> None:
    assert shown(io.StringIO(), MOMENT, replace(MOMENT, passed_s=13.4), OVER).splitlines() == [
        "waiting for the recovery quorum of 3 partitions (orders:0-2), 12 s of 30 s: read broker 2 (3 partitions),"
        " broker 3 (2 partitions); missing broker 1: unreachable (2 partitions), fenced (1 partition);"
        " broker 3: timed-out (1 partition)",
        "nothing more to wait for after 14 s: read broker 1 (3 partitions), broker 2 (3 partitions),"
        " broker 3 (3 partitions)",
    ]


@pytest.mark.parametrize("stderr", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_nothing_is_said_where_nobody_has_to_be_waited_for(stderr: io.StringIO) -> None:
    assert shown(stderr, OVER) == ""


def test_at_a_terminal_each_broker_that_is_missing_has_a_line() -> None:
    text = shown(Terminal(), MOMENT, replace(MOMENT, passed_s=13.4))
    for line in waiting_lines(replace(MOMENT, passed_s=13.4), "the recovery quorum"):
        assert line in text
    assert text.index("12 s of 30 s") < text.index("13 s of 30 s")
    # The lines are gone in the end, and the cursor is back.
    assert "\x1b[?25h" in text[text.rindex("Ctrl-C") :]


def test_the_lines_of_one_moment() -> None:
    assert list(waiting_lines(MOMENT, "the recovery quorum")) == [
        "Waiting for the recovery quorum of 3 partitions (orders:0-2): 12 s of 30 s",
        "  read     broker 2 (3 partitions), broker 3 (2 partitions)",
        "  missing  broker 1: unreachable (2 partitions), fenced (1 partition)",
        "  missing  broker 3: timed-out (1 partition)",
        "  Ctrl-C ends it: nothing has been changed.",
    ]


def test_one_partition_is_named_and_none_is_a_word() -> None:
    alone = Waiting(0.0, 30.0, ORDERS[:1], answered={}, missing={1: {"fenced": 1}})
    assert waiting_line(alone, "the live replicas") == (
        "waiting for the live replicas of orders:0, 0 s of 30 s: read none; missing broker 1: fenced (1 partition)"
    )


def test_an_error_text_of_the_network_cannot_drive_the_terminal() -> None:
    hostile = replace(MOMENT, missing={1: {"\x1b[2Jgone\n": 1}})
    text = shown(Terminal(), hostile)
    assert "\x1b[2J" not in text
    assert "\\x1b[2Jgone" in text
