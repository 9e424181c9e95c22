"""The list: a line for each partition, in columns that fit the screen."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.watching import Since, Watched
from kelr.model import TopicPartition
from kelr.view.describe import STYLES
from kelr.view.replicas import ReplicaMarks
from kelr.view.styled import Span, Style, Text, width_of
from kelr.view.watch.model import Listed, Shown, replica_cells
from kelr.view.watch.paint import cut
from kelr.view.watch.state import Sort, WatchState
from kelr.view.watch.words import clock, duration, leader_word, needs_in_words

_GAP = "  "
_MARKS = 2
"""Columns for what stands before a row: ``>`` for the selected one, ``*`` for one that was not renewed."""
_LOGS = 24
"""Less room than that is none for logs."""
_FIXED = {"LEADER": 6, "SINCE": 11}
_TITLES = {Sort.PARTITION: "PARTITION", Sort.SITUATION: "SITUATION", Sort.SINCE: "SINCE", Sort.WAITS_FOR: "WAITS FOR"}
_ORDER = ("PARTITION", "SITUATION", "LEADER", "ISR", "ELR", "WAITS FOR", "SINCE", "LOGS")
_WANTED = ("PARTITION", "WAITS FOR", "SINCE", "LEADER", "ISR", "ELR", "SITUATION", "LOGS")
"""Where there is no room for all columns, the first ones of these are shown."""
_LEAST = {"PARTITION": 12, "WAITS FOR": 14}


def columns_of(rows: Listed, width: int) -> dict[str, int]:
    """The columns that fit, in the order of the screen, and how wide each is."""
    wanted = {name: max(len(name), rows.widths.get(name, 0), _FIXED.get(name, 0)) for name in _ORDER}
    room = width - _MARKS
    partition = min(wanted["PARTITION"], max(_LEAST["PARTITION"], room * 2 // 5))
    kept = {"PARTITION": partition, "SINCE": wanted["SINCE"]}
    left = room - partition - wanted["SINCE"] - len(_GAP)
    kept["WAITS FOR"] = max(_LEAST["WAITS FOR"], min(wanted["WAITS FOR"], left - len(_GAP)))
    left -= kept["WAITS FOR"] + len(_GAP)
    for name in _WANTED[3:-1]:
        if left < wanted[name] + len(_GAP):
            break
        kept[name] = wanted[name]
        left -= wanted[name] + len(_GAP)
    if "SITUATION" in kept and left >= _LOGS + len(_GAP):
        kept["LOGS"] = left - len(_GAP)
    return {name: kept[name] for name in _ORDER if name in kept}


def title_line(state: WatchState, rows: Listed, width: int) -> Text:
    """The columns' titles; the one that the list is sorted by is marked."""
    columns = columns_of(rows, width)
    spans = [Span(" " * _MARKS)]
    last = list(columns)[-1]
    for name, size in columns.items():
        shown = f"{name}^" if _TITLES[state.sort] == name and len(name) < size + len(_GAP) else name
        spans.append(Span(shown.ljust(size + len(_GAP)) if name != last else shown, Style.HEADING))
    return spans


def row_lines(
    shown: Shown, visible: Sequence[TopicPartition], rows: Listed, width: int, *, selected: TopicPartition | None
) -> list[Text]:
    """The rows that are on the screen."""
    story = shown.story
    assert story is not None
    marks = ReplicaMarks(story.sight.cluster)
    columns = columns_of(rows, width)
    lines: list[Text] = []
    for at in visible:
        watched = story.sight.partitions[at]
        stale = shown.stale or at in story.sight.not_renewed
        mark = (">" if at == selected else " ") + ("*" if stale else " ")
        spans = [Span(mark, Style.HEADING if at == selected else Style.NOTICE)]
        for name, size in columns.items():
            cell = _cell(name, shown, at, watched, marks, selected=at == selected)
            fitted = cut(cell, size)
            used = sum(width_of(span.text) for span in fitted)
            spans += [*fitted, Span(" " * (size - used) + _GAP)]
        lines.append(spans[:-1])
    return lines


def _cell(
    name: str, shown: Shown, at: TopicPartition, watched: Watched, marks: ReplicaMarks, *, selected: bool
) -> Text:
    state, story = watched.state, shown.story
    assert story is not None
    if name == "PARTITION":
        return [Span(str(at), Style.HEADING if selected else Style.PLAIN)]
    if name == "SITUATION":
        return [Span(watched.situation, STYLES.get(watched.situation, Style.BAD))]
    if name == "LEADER":
        return [Span(leader_word(None), Style.BAD) if state.leader is None else marks.one(state.leader)]
    if name in {"ISR", "ELR"}:
        return _members(marks, state.isr if name == "ISR" else state.elr)
    if name == "WAITS FOR":
        return [Span(needs_in_words(watched), STYLES.get(watched.situation, Style.BAD))]
    if name == "SINCE":
        return [Span(_since(story.since[at], shown.now_ms))]
    detail = shown.details.get(at)
    if detail is None:
        return [Span("...", Style.QUIET)]
    if shown.is_old(detail):
        return [Span(f"* as of {clock(detail.taken_at_ms)}", Style.NOTICE)]
    return replica_cells(marks, detail, at, shown.readings)


def _members(marks: ReplicaMarks, members: tuple[int, ...] | None) -> Text:
    if members is None:
        return [Span("?", Style.NOTICE)]
    spans: list[Span] = []
    for replica in members:
        spans += [Span(",")] if spans else []
        spans.append(marks.one(replica))
    return spans or [Span("-")]


def _since(since: Since, now_ms: int) -> str:
    """How long it has been so; ``>`` where it was so at the first look already."""
    return (">" if since.before_the_watch else "") + duration((now_ms - since.at_ms) / 1000)
