"""Pictures of replicas' logs: the layout's properties, and whole pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine import decide
from kelr.engine.logs import agreement
from kelr.model import (
    ElectionType,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)
from kelr.view.log_bars import Holds, LogBars, log_bars
from kelr.view.log_picture import ink_for, picture_texts
from kelr.view.log_scale import ASCII, BLOCKS, Ink, picture, scale_of
from kelr.view.styled import width_of, written
from tests.incident import INCIDENT

STATE = INCIDENT.partitions[1]
OFFSETS = st.sets(st.integers(0, 2**63 - 1) | st.integers(0, 300), min_size=2, max_size=14)


@given(OFFSETS, st.integers(14, 200), st.integers(1, 4), st.integers(1, 20))
def test_offsets_are_drawn_in_their_order_and_apart(offsets: set[int], columns: int, least: int, widest: int) -> None:
    scale = scale_of(offsets, columns, least=least, widest=widest)
    if scale is None:
        assert (len(offsets) - 1) * least > columns
        return
    places = [scale.column(offset) for offset in sorted(offsets)]
    assert places[0] == 0
    assert places[-1] == scale.columns <= columns
    assert all(right - left >= least for left, right in pairwise(places))
    assert [(one.start, one.end) for one in scale.stretches] == list(pairwise(sorted(offsets)))


@given(OFFSETS, st.integers(40, 200))
def test_what_is_not_marked_is_to_scale(offsets: set[int], columns: int) -> None:
    scale = scale_of(offsets, columns)
    assert scale is not None
    for one in scale.stretches:
        if not one.squeezed and not one.widened:
            assert scale.per_column is not None
            # To the column: what others were widened by is taken from the long ones.
            assert (one.end - one.start) / scale.per_column >= one.right - one.left - 1


@given(OFFSETS, st.integers(40, 200), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_between_them_columns_never_fall(offsets: set[int], columns: int, one: int, other: int) -> None:
    scale = scale_of(offsets, columns)
    assert scale is not None
    assert scale.column(min(one, other)) <= scale.column(max(one, other))


def test_a_long_common_part_is_squeezed_and_a_single_lost_offset_is_seen() -> None:
    scale = scale_of((0, 10**12, 10**12 + 1), 40)
    assert scale is not None
    assert [(one.squeezed, one.right - one.left) for one in scale.stretches] == [(True, 39), (False, 1)]
    assert scale_of((0, 1, 2, 3), 2) is None


@st.composite
def logs(draw: st.DrawFn) -> tuple[LogAnswer, ...]:
    """Logs of three replicas that have each lived through some of the same epochs, and left them at other offsets."""
    found: list[LogAnswer] = []
    for replica in STATE.replicas:
        if draw(st.integers(0, 5)) == 0:
            found.append(LogUnavailable(replica, LogUnavailableReason.TIMED_OUT, "no answer"))
            continue
        start = draw(st.sampled_from((0, 0, 7, 60)))
        lineage, end = [], 0
        for epoch in range(draw(st.integers(1, 3))):
            end += draw(st.sampled_from((0, 1, 5, 90, 90_000_000, 10**18)))
            lineage.append(EpochEnd(epoch, end))
        end = max(end, start)
        known = draw(st.booleans()) or draw(st.booleans())
        mark = draw(st.none() | st.integers(start, end))
        found.append(
            ReplicaLog(
                replica,
                end,
                lineage[-1].epoch if known else None,
                STATE.leader_epoch,
                mark,
                draw(st.sampled_from((start, start, None))),
                tuple(lineage) if known else None,
            )
        )
    return tuple(found)


def bars_of(answers: Sequence[LogAnswer], election: ElectionType | None = None) -> LogBars:
    snapshot: Snapshot = replace(INCIDENT, logs={TopicPartition("orders", 1): tuple(answers)})
    return log_bars(decide(snapshot, STATE), answers, election)


@given(logs(), st.sampled_from((None, *ElectionType)), st.integers(40, 160))
def test_a_picture_shows_every_difference(
    answers: tuple[LogAnswer, ...], election: ElectionType | None, columns: int
) -> None:
    bars = bars_of(answers, election)
    drawn = picture(bars, columns)
    heard = {one.replica: one for one in answers if isinstance(one, ReplicaLog)}
    assert {bar.replica for bar in bars.heard} == set(heard)
    assert len({len(line.cells) for line in drawn.lines if line.bar.unheard is None}) <= 1
    for line in drawn.lines:
        bar, cells = line.bar, line.cells
        if bar.unheard is not None or drawn.scale is None or not cells:
            continue
        assert len(cells) <= columns
        assert [cell.offset for cell in cells] == sorted(cell.offset for cell in cells)
        kinds = {cell.holds for cell in cells}
        # No loss is drawn as nothing, and nothing is drawn as a loss.
        assert bool(kinds & {Holds.CUT, Holds.CUT_DIFFERENT, Holds.CUT_UNSURE}) == (bar.cut > 0)
        assert (Holds.LACKS in kinds) == (bar.end < max(one.end for one in bars.heard))
        assert (
            bool(kinds & {Holds.SAME, Holds.CUT, Holds.DIFFERENT, Holds.CUT_DIFFERENT, Holds.UNSURE, Holds.CUT_UNSURE})
            != bar.empty
        )
        leader = None if bars.leads is None else heard.get(bars.leads)
        if leader is not None and bar.replica != bars.leads:
            agreed = agreement(heard[bar.replica], leader)
            assert bar.cut_known == (agreed is not None)
            assert bar.cut == (0 if agreed is None else max(0, bar.end - max(agreed, bar.start)))
        assert sum(cell.character == BLOCKS.high_watermark for cell in cells) <= 1


@given(logs(), st.sampled_from((40, 80, 110, 160)))
def test_it_keeps_to_the_terminals_width(answers: tuple[LogAnswer, ...], width: int) -> None:
    texts = list(picture_texts(bars_of(answers), width=width))
    assert max(width_of(written(text, color=False)) for text in texts) <= width


BEHIND = """\
Logs: if 3 were elected now: unclean (stock)
 3 live (would lead)     ████████≈███████┃····················  end 116 HW 116
 1 fenced                not read: connection refused
 2 live (most complete)  ████████≈███████ ░░░░┃░░░░░░░░░░░░░░░  end 135 HW 120
                         ^0              ^116 ^120            ^135
  2 would truncate 19 offsets (116..134) to follow 3
  1 is not drawn: it may hold more than all others
  █ as in the most complete log   ░ as in the most complete log, and would be
    truncated   · not there   ┃ high watermark
"""


def shown(bars: LogBars, *, width: int | None = 80, ink: Ink = BLOCKS) -> str:
    lines = [written(text, color=False) for text in picture_texts(bars, width=width, ink=ink)]
    return "".join(line + "\n" for line in lines)


def test_what_the_stock_election_would_cut_off() -> None:
    text = shown(bars_of(INCIDENT.logs[STATE.address], ElectionType.UNCLEAN))
    assert text.startswith(BEHIND)


def test_where_logs_part() -> None:
    snapshot, state = INCIDENT, INCIDENT.partitions[3]
    bars = log_bars(decide(snapshot, state), snapshot.logs[state.address])
    assert [(bar.replica, bar.parts_at, bar.parts_in, bar.cut) for bar in bars.heard] == [
        (3, None, None, 0),
        (2, 30, (0, 1), 15),
    ]
    said = " ".join(shown(bars).split())
    assert "2 diverges from the most complete log (3) at offset 30: epoch 0 here, 1 there" in said
    lines = shown(bars, ink=ASCII).splitlines()
    assert lines[0] == "Logs: 3 leads"
    assert set(lines[2].split("  ")[1].strip()) <= set("=x|.")


def test_logs_that_cannot_be_compared_are_not_said_to_be_the_same() -> None:
    answers = [
        replace(one, last_epoch=None, lineage=None) if one.replica == 3 and isinstance(one, ReplicaLog) else one
        for one in INCIDENT.logs[STATE.address]
    ]
    text = shown(bars_of(answers, ElectionType.UNCLEAN))
    assert "what 2 would truncate to follow 3 is not known" in text
    assert "3 cannot be compared with the most complete log: where they diverge is not known" in " ".join(text.split())
    assert "?" * 8 in text


def test_without_any_log_there_is_no_picture() -> None:
    assert shown(bars_of(())) == "Logs: no replica's log was read: nothing can be drawn\n"


@pytest.mark.parametrize(
    ("encoding", "environ", "ink"),
    [
        ("utf-8", {}, BLOCKS),
        ("utf-8", {"LANG": "de_DE.UTF-8", "NO_COLOR": "1"}, BLOCKS),
        ("ascii", {}, ASCII),
        ("iso8859-1", {}, ASCII),
        ("utf-8", {"NO_UNICODE": "1"}, ASCII),
        ("utf-8", {"TERM": "dumb"}, ASCII),
        ("utf-8", {"LC_ALL": "C", "LANG": "en_US.UTF-8"}, ASCII),
    ],
)
def test_blocks_where_they_can_be_written(encoding: str, environ: dict[str, str], ink: Ink) -> None:
    assert ink_for(io.TextIOWrapper(io.BytesIO(), encoding=encoding), environ) is ink


def test_every_kind_of_cell_has_a_character_of_its_own() -> None:
    for ink in (BLOCKS, ASCII):
        characters = [*ink.cells.values(), ink.high_watermark, ink.break_]
        assert len(set(characters)) == len(characters) == len(Holds) + 2
    assert "".join((*ASCII.cells.values(), ASCII.high_watermark, ASCII.break_)).isascii()
