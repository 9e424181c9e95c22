"""The list: which partitions are in it, in which order, and the cells of each, in columns that fit the screen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kelr.engine.watching import Story, Watched
from kelr.model import WORST_FIRST, TopicPartition
from kelr.view.describe import STYLES, standing_text
from kelr.view.explain_columns import Explained
from kelr.view.layout import wrapped
from kelr.view.log_bars import log_bars
from kelr.view.log_picture import picture_texts
from kelr.view.replicas import ReplicaMarks
from kelr.view.styled import Span, Style, Text, plain, styled, width_of
from kelr.view.watch.model import Detail, Shown
from kelr.view.watch.words import clock, duration, leader_word, needs_in_words

GAP = 2
"""Blanks between two columns."""
MOST_ROWS = 10_000
"""Rows that are shown at once; a filter shows others."""
_SEVERITY = {situation: rank for rank, situation in enumerate(WORST_FIRST)}
_COLUMNS = ("PARTITION", "SITUATION", "LEADER", "ISR", "ELR", "WAITS FOR", "SINCE")
_ALWAYS = {"LEADER": 6, "SINCE": 10}
"""Wide enough for what may come: columns do not move for each digit."""
_GIVEN_UP = ("ELR", "ISR", "LEADER")
"""Columns that there may be no room for."""
_LEAST = {"WAITS FOR": 14, "PARTITION": 12, "SITUATION": 12}
"""How narrow columns may become after that, in this order."""
_LOGS = 24
"""Less room than that is none for logs."""


class Sort(Enum):
    """The column that the list is sorted by."""

    PARTITION = "PARTITION"
    SITUATION = "SITUATION"
    WAITS_FOR = "WAITS FOR"
    SINCE = "SINCE"

    @property
    def following(self) -> Sort:
        every = list(Sort)
        return every[(every.index(self) + 1) % len(every)]


@dataclass(frozen=True, slots=True)
class Listed:
    """The partitions of one look, filtered and sorted."""

    rows: Sequence[TopicPartition]
    """`MOST_ROWS` at most."""
    widest: Sequence[TopicPartition]
    """Those of them whose cells say how wide columns are."""
    held: int
    """How many the filter lets through."""
    of: int
    """How many there are without the filter."""


def listed(story: Story | None, sort: Sort, wanted: str) -> Listed:
    """The list of what is in trouble or coming back; sorted by a column, and then by name."""
    partitions: Mapping[TopicPartition, Watched] = {} if story is None else story.sight.partitions
    unsettled = {at: one for at, one in partitions.items() if not one.settled}
    kept = {at: one for at, one in unsettled.items() if wanted in str(at)} if wanted else unsettled
    rows = sorted(kept, key=_order(story, kept, sort))[:MOST_ROWS]
    return Listed(rows, () if story is None else _widest(story, rows), len(kept), len(unsettled))


def _widest(story: Story, rows: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    """One row for each way to stand, and those with the longest name and time."""
    if not rows:
        return ()
    ways: dict[Hashable, TopicPartition] = {}
    for at in rows:
        one = story.sight.partitions[at]
        words = len(needs_in_words(one))
        ways.setdefault((one.situation, words, one.state.leader, one.state.isr, one.state.elr), at)
    longest, oldest = max(rows, key=lambda at: len(str(at))), min(rows, key=lambda at: story.since[at].at_ms)
    return [*ways.values(), longest, oldest]


def _order(
    story: Story | None, kept: Mapping[TopicPartition, Watched], sort: Sort
) -> Callable[[TopicPartition], tuple[object, str, int]]:
    since = {} if story is None else story.since
    keys: Mapping[Sort, Callable[[TopicPartition], object]] = {
        Sort.PARTITION: lambda _: 0,
        Sort.SITUATION: lambda at: _SEVERITY[kept[at].situation],
        Sort.SINCE: lambda at: since[at].at_ms,
        Sort.WAITS_FOR: lambda at: (not kept[at].waits_for, kept[at].waits_for),
    }
    key = keys[sort]
    return lambda at: (key(at), at.topic, at.partition)


def row_cells(shown: Shown, rows: Sequence[TopicPartition]) -> list[Mapping[str, Text]]:
    """Each partition's cells, by the titles of their columns."""
    if shown.story is None:
        return []
    marks = ReplicaMarks(shown.story.sight.cluster)
    return [_cells(shown, shown.story, at, marks) for at in rows]


def _cells(shown: Shown, story: Story, at: TopicPartition, marks: ReplicaMarks) -> Mapping[str, Text]:
    watched, since = story.sight.partitions[at], story.since[at]
    style = STYLES.get(watched.situation, Style.BAD)
    leader, age = watched.state.leader, duration((shown.now_ms - since.at_ms) / 1000)
    stale = shown.stale or at in story.sight.not_renewed
    return {
        "PARTITION": [Span("*" if stale else " ", Style.NOTICE), Span(str(at))],
        "SITUATION": standing_text(watched.situation, watched.state.under_replicated),
        "LEADER": [Span(leader_word(None), Style.BAD) if leader is None else marks.one(leader)],
        "ISR": _members(marks, watched.state.isr),
        "ELR": _members(marks, watched.state.elr),
        "WAITS FOR": [Span(needs_in_words(watched), style)],
        # It was so at the first look already: it may be longer.
        "SINCE": [Span(f">{age}" if since.before_the_watch else age)],
        "LOGS": _logs(shown, at, marks),
    }


def _members(marks: ReplicaMarks, members: tuple[int, ...] | None) -> Text:
    if members is None:
        return [Span("?", Style.NOTICE)]
    return [span for replica in members for span in (Span(","), marks.one(replica))][1:] or [Span("-")]


def _logs(shown: Shown, at: TopicPartition, marks: ReplicaMarks) -> Text:
    detail = shown.details.get(at)
    if detail is None:
        return [Span("...", Style.QUIET)]
    if shown.is_old(detail):
        return [Span(f"* as of {clock(detail.taken_at_ms)}", Style.NOTICE)]
    return _replica_logs(shown, detail, at, marks)


def _replica_logs(shown: Shown, detail: Detail, at: TopicPartition, marks: ReplicaMarks) -> Text:
    """What each replica's log holds, in few words."""
    spans: list[Span] = []
    for candidate in detail.decision.candidates:
        spans += [Span("  ")] if spans else []
        spans.append(marks.one(candidate.replica))
        if not candidate.heard:
            spans.append(Span(" ?"))
            continue
        behind = "" if candidate.best else " ?" if candidate.behind_best is None else f" -{candidate.behind_best}"
        pace = shown.readings.pace(at, candidate.replica)
        spans.append(Span(f" {candidate.log_end}{behind}{f' +{pace:.0f}/s' if pace else ''}"))
    return spans


def columns_that_fit(cells: Sequence[Mapping[str, Text]], width: int) -> dict[str, int]:
    """The columns for which there is room, and how wide each is: one line for each partition, whose situation always
    has a place. What is left on a wide screen is for the logs."""
    sizes = {name: max([len(name), _ALWAYS.get(name, 0), *(_width(row[name]) for row in cells)]) for name in _COLUMNS}
    sizes["PARTITION"] = min(sizes["PARTITION"], max(_LEAST["PARTITION"], width * 2 // 5))
    for name in _GIVEN_UP:
        if _total(sizes) > width:
            del sizes[name]
    for name, least in _LEAST.items():
        sizes[name] = max(min(sizes[name], least), sizes[name] - max(0, _total(sizes) - width))
    left = width - _total(sizes) - GAP
    return {**sizes, "LOGS": left} if left >= _LOGS and len(sizes) == len(_COLUMNS) else sizes


def _width(text: Text) -> int:
    return sum(width_of(span.text) for span in text)


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values()) + GAP * (len(sizes) - 1)


# One partition.


_ASKED_FOR = "its replicas' logs are being read"


def detail_title(shown: Shown, at: TopicPartition) -> str:
    """Of the pane: how old what is below is, and whether looks have come and gone without it."""
    detail = shown.details.get(at)
    if detail is None:
        return str(at)
    age = duration((shown.now_ms - detail.taken_at_ms) / 1000)
    text = f"{at}, logs as of {clock(detail.taken_at_ms)}, {age} ago"
    return f"* {text}, not renewed since" if shown.is_old(detail) else text


def detail_lines(shown: Shown, at: TopicPartition, width: int) -> list[Text]:
    """What the chosen partition's replicas told."""
    detail = shown.details.get(at)
    if detail is None:
        return [styled(_ASKED_FOR, Style.QUIET)]
    lines = wrapped(plain(detail.decision.summary), width)
    growing = list(_growing(shown, detail, at))
    if growing:
        lines += wrapped([Span("Growth: ", Style.HEADING), Span("; ".join(growing))], width)
    return [*lines, *picture_texts(log_bars(detail.decision, detail.logs), width=width, ink=shown.ink)]


def _growing(shown: Shown, detail: Detail, at: TopicPartition) -> Iterator[str]:
    """How fast logs grow, and in how much time each is level with the best one if both go on as they do."""
    best = next((one.replica for one in detail.decision.candidates if one.best), None)
    for candidate in detail.decision.candidates:
        pace = shown.readings.pace(at, candidate.replica)
        if candidate.heard and pace:
            left_s = shown.readings.left_s(at, candidate.replica, best=best, behind=candidate.behind_best)
            level = "" if left_s is None else f", level with {best} in {duration(left_s)}"
            yield f"{candidate.replica} +{pace:,.0f}/s{level}"


def explanation_lines(shown: Shown, at: TopicPartition, width: int) -> list[Text]:
    """The same lines as ``kelr explain`` prints."""
    detail = shown.details.get(at)
    if detail is None:
        return [styled(f"{at}: {_ASKED_FOR}", Style.NOTICE)]
    lines = [styled(detail_title(shown, at), Style.NOTICE)] if shown.is_old(detail) else []
    block = replace(shown.explanation, width=width).full().block
    assert block is not None
    return [*lines, *block(Explained(detail.decision, detail.taken_at_ms, logs=detail.logs))]
