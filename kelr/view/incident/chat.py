"""The report for a chat channel: short, and in a form that Slack and GitHub both leave as it is.

Slack draws no Markdown tables, so tables are columns in code blocks; ``*bold*`` is bold in Slack and italic on GitHub.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.engine.planning.lost import Lost
from kelr.model import Situation
from kelr.page.words import count, harmless
from kelr.view.history_words import when
from kelr.view.incident.figures import Figures, figures
from kelr.view.incident.kinds import Kind, kinds, named
from kelr.view.incident.losses import worst_first
from kelr.view.incident.material import Material
from kelr.view.incident.pages import next_steps
from kelr.view.incident.summary import paragraph, tiles
from kelr.view.incident.tables import graded
from kelr.view.lost_words import bounds_in_words
from kelr.view.styled import width_of

LONGEST = 4_000
"""Characters that a message of a chat channel has at most."""
_MOST_ROWS = 8
_LONGEST_CELL, _LONGEST_LINE = 44, 300
_MARKS = str.maketrans({"`": "'", "<": "‹", ">": "›", "*": "∗", "[": "(", "]": ")"})
"""What Slack or GitHub would take for the beginning of something else."""


def chat(material: Material) -> str:
    """The report in fewer than `LONGEST` characters; rows go first where there is too much to say."""
    known, every = figures(material), kinds(material.now.rows)
    for most in range(_MOST_ROWS, -1, -1):
        text = "\n".join(_lines(material, known, every, most)) + "\n"
        if len(text) < LONGEST:
            return text
    lines = text.splitlines(keepends=True)
    note = "(cut: this is too long for a chat channel; write it as .html)\n"
    while len("".join(lines)) + len(note) + 4 >= LONGEST:
        lines.pop()
    fences = sum(line.startswith("```") for line in lines)
    return "".join(lines) + ("```\n" if fences % 2 else "") + note


def _lines(material: Material, known: Figures, every: Sequence[Kind], most: int) -> Iterator[str]:
    yield f"*{_plain(material.title)}* · cluster {_code(material.now.cluster.cluster_id or 'unknown')}"
    yield ""
    yield _plain(paragraph(material, known), 1_200)
    yield ""
    yield from _block([(_cell(tile.label, 100), _cell(tile.value)) for tile in tiles(material, known)])
    yield from _states(every, most)
    yield from _lost(known.lost, most)
    yield from _done(material, most)
    yield from _next(material, most)
    for gap in material.gaps if most else ():
        yield f"- Not told: {_plain(gap.text)}"
    at = when(material.made_at_ms)[:19]
    yield f"Made by kelr {material.version} at {at} UTC from {_plain(material.now.name, 80)}."


def _states(every: Sequence[Kind], most: int) -> Iterator[str]:
    troubled = [kind for kind in every if kind.row.decision.situation is not Situation.HEALTHY]
    if not troubled:
        return
    yield "*Not healthy now*"
    rows = [("partitions", "situation", "leader", "what to do")]
    for kind in troubled[:most]:
        decision = kind.row.decision
        advice = decision.advice
        what = advice.action.value + ("" if advice.replica is None else f" {advice.replica}")
        names = f"{len(kind.addresses):,}: {named(kind.addresses, 3, longest=24)}"
        leader = "none" if decision.leader is None else str(decision.leader)
        rows.append((_cell(names), decision.situation.value, leader, what))
    yield from _block(rows) if most else ()
    yield from _more(len(troubled) - most, "kind")


def _lost(found: Sequence[Lost], most: int) -> Iterator[str]:
    if not found:
        return
    yield "*Lost (offsets)*"
    rows = [("partition", "elected", "committed", "in all", "grade")]
    for one in worst_first(found)[:most]:
        elected = "?" if one.leader is None else str(one.leader)
        lost = bounds_in_words(one.committed), bounds_in_words(one.total)
        rows.append((_cell(str(one.address)), elected, *lost, graded(one.grade, [one.min_isr])))
    yield from _block(rows) if most else ()
    yield from _more(len(found) - most, "election")


def _done(material: Material, most: int) -> Iterator[str]:
    rows = () if material.done is None else material.done.rows
    if not rows:
        return
    yield "*Done by kelr*"
    table = [("when (UTC)", "who", "where", "result")]
    for row in rows[-most:] if most else ():
        where = row.topic if row.partition is None else f"{row.topic}:{row.partition}"
        table.append((when(row.at_ms)[:19], _cell(f"{row.user}@{row.host}", 24), _cell(where), row.result))
    yield from _block(table) if most else ()
    yield from _more(len(rows) - most, "line")


def _next(material: Material, most: int) -> Iterator[str]:
    commands = list(dict.fromkeys(step.command for step in next_steps(material) if step.command))
    # A command that is cut is none.
    shown = [one for one in commands if _cell(one, _LONGEST_LINE) == one][: max(1, most // 3)]
    if not shown:
        return
    yield "*Next*"
    yield from ("```", *shown, "```")
    yield from _more(len(commands) - len(shown), "command")


def _more(left: int, noun: str) -> Iterator[str]:
    if left > 0:
        yield f"{count(left, f'more {noun}')} in the report as a page (.html)."


def _block(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns in a code block."""
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(rows[0]))]
    yield "```"
    for row in rows:
        cells = (cell + " " * (width - width_of(cell)) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    yield "```"


def _cell(text: str, most: int = _LONGEST_CELL) -> str:
    """Text that fits a column, and cannot end the code block that it is in."""
    one_line = harmless(" ".join(text.split())).replace("`", "'")
    return one_line if len(one_line) <= most else f"{one_line[: most - 1]}…"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _plain(text: str, most: int = _LONGEST_LINE) -> str:
    """Text outside of code, in which no tag, link or code begins."""
    safe = harmless(" ".join(text.split())).translate(_MARKS)
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"
