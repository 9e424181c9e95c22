"""The chosen partition: a sentence, its replicas' logs drawn, how they get on, and the whole explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kelr.model import TopicPartition
from kelr.view.explain_columns import Explained
from kelr.view.layout import wrapped
from kelr.view.log_bars import log_bars
from kelr.view.log_picture import picture_texts
from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.watch.model import Detail, Shown
from kelr.view.watch.words import clock, duration

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
