"""A scenario as people see it on a terminal: no line is too long, no sentence is lost."""

from __future__ import annotations

import pytest

from kelr.simulation.language import parse
from kelr.simulation.session import unfold
from kelr.view.simulate import simulate_view
from kelr.view.styled import written

SCENARIO = """\
# A story whose sentences are longer than the terminal is wide; they run on from
# line to line.
#
# - A list stays
# - a list.
cluster rules=elr brokers=1,2,3 min-isr=2
topic a-topic-with-a-name replicas=1,2,3

# The end.
crash 1 2 3
fence 1 2 3
decide
"""


def told(width: int | None) -> list[str]:
    view = simulate_view(width)
    assert view.block is not None
    steps = unfold("a.txt", parse(SCENARIO))
    return [written(text, color=False) for step in steps for text in view.block(step)]


def test_a_pipe_gets_every_line_as_it_is() -> None:
    lines = told(None)
    assert lines[:5] == [line.rstrip() for line in SCENARIO.splitlines()[:5]]
    assert max(map(len, lines)) > 60


@pytest.mark.parametrize("width", [40, 60])
def test_lines_fit_the_terminal_and_lose_nothing(width: int) -> None:
    lines = told(width)
    assert max(map(len, lines)) <= width
    assert [word for line in lines for word in line.split() if word != "#"] == [
        word for line in told(None) for word in line.split() if word != "#"
    ]


def test_sentences_run_on_and_what_continues_is_indented() -> None:
    lines = told(40)
    assert lines[:6] == [
        "# A story whose sentences are longer",
        "# than the terminal is wide; they run on",
        "# from line to line.",
        "#",
        "# - A list stays",
        "# - a list.",
    ]
    assert lines[6:8] == ["> cluster rules=elr brokers=1,2,3", "    min-isr=2"]


def test_a_line_is_free_between_stories_and_not_before_the_first() -> None:
    lines = told(None)
    assert lines[lines.index("# The end.") - 1] == ""
    assert lines.count("") == 1
