"""The selected partition: a sentence, its replicas' logs and how they get on, and the whole explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kelr.engine.words import in_short
from kelr.model import Candidate, TopicPartition
from kelr.view.explain_columns import Explained
from kelr.view.layout import wrapped
from kelr.view.styled import Span, Style, Text, plain, styled
from kelr.view.watch.model import Detail, Shown
from kelr.view.watch.words import clock, duration

_MOST_SUMMARY = 3


def rule(text: str, width: int) -> Text:
    """A line that parts the screen."""
    return styled(f"-- {text} ".ljust(width, "-")[:width], Style.QUIET)


def detail_lines(shown: Shown, at: TopicPartition, width: int) -> list[Text]:
    """What the selected partition's replicas told."""
    detail = shown.details.get(at)
    if detail is None:
        return [rule(str(at), width), styled("its replicas' logs are being asked for", Style.QUIET)]
    lines: list[Text] = [_title(shown, detail, at, width)]
    lines += wrapped(plain(detail.decision.summary), width)[:_MOST_SUMMARY]
    lines += [line for candidate in detail.decision.candidates for line in [_replica(shown, detail, at, candidate)]]
    return lines


def explanation_lines(shown: Shown, at: TopicPartition | None, width: int) -> list[Text]:
    """The same lines as ``kelr explain`` prints."""
    detail = None if at is None else shown.details.get(at)
    if detail is None:
        what = "it is not in the list any more" if at is None else f"{at}: its replicas' logs are being asked for"
        return [styled(what, Style.NOTICE)]
    lines = [] if not shown.is_old(detail) else [_title(shown, detail, TopicPartition(*_name(detail)), width)]
    block = replace(shown.explanation, width=width).full().block
    assert block is not None
    return [*lines, *block(Explained(detail.decision, detail.taken_at_ms, logs=detail.logs))]


def _name(detail: Detail) -> tuple[str, int]:
    return detail.decision.topic, detail.decision.partition


def _title(shown: Shown, detail: Detail, at: TopicPartition, width: int) -> Text:
    age = duration((shown.now_ms - detail.taken_at_ms) / 1000)
    text = f"{at}, logs as of {clock(detail.taken_at_ms)}, {age} ago"
    return rule(text, width) if not shown.is_old(detail) else styled(f"-- * {text}, not renewed since ", Style.NOTICE)


def _replica(shown: Shown, detail: Detail, at: TopicPartition, candidate: Candidate) -> Text:
    style = Style.GOOD if candidate.live else Style.BAD
    head = [Span(f"  {candidate.replica:>5} "), Span(f"{candidate.status:<14} ", style)]
    if not candidate.heard:
        return [*head, Span(f"log not heard ({in_short(candidate.unheard_reason or '')})", Style.NOTICE)]
    return [*head, *_log(shown, detail, at, candidate)]


def _log(shown: Shown, detail: Detail, at: TopicPartition, candidate: Candidate) -> Iterator[Span]:
    yield Span(f"end {candidate.log_end}  ")
    if candidate.best:
        yield Span("best", Style.GOOD)
    elif candidate.behind_best is None:
        yield Span("behind by ?", Style.NOTICE)
    elif candidate.behind_best:
        yield Span(f"{candidate.behind_best} behind", Style.BAD)
    else:
        yield Span("level with the best")
    if candidate.diverges_at is not None:
        yield Span(f", parts from it at {candidate.diverges_at}", Style.NOTICE)
    pace = shown.readings.pace(at, candidate.replica)
    if pace is not None and pace > 0:
        yield Span(f"  +{pace:,.0f}/s")
    best = next((one.replica for one in detail.decision.candidates if one.best), None)
    left_s = shown.readings.left_s(at, candidate.replica, best=best, behind=candidate.behind_best)
    if left_s is not None:
        yield Span(f"  level in {duration(left_s)}", Style.NOTICE)
