"""The lines at the top: which cluster, when it was read, how it stands, and what is wrong with the watch itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kelr.engine.watching import Counts, Story
from kelr.engine.words import agree, plural
from kelr.model import BrokerStatus
from kelr.view.layout import cut, wrapped
from kelr.view.styled import Span, Style, Text, styled
from kelr.view.watch.model import RecoveryProgress, Shown, Silence, Trouble, not_renewed_in_words, silence_in_words
from kelr.view.watch.words import clock, duration

_GAP = "  "
_MOST_LINES = 3
"""Of one message."""
_MOST_BROKERS = 5
_LEAST_TITLE = 12


def head_lines(shown: Shown, width: int) -> list[Text]:
    """Two lines always; more where there is more to say."""
    lines: list[Text] = [first_line("kelr watch", shown.title, _age(shown), width)]
    # A low screen shows the first of these lines: before the figures stands that they are old.
    lines += gap_lines(shown.trouble, shown.silent, width)
    if shown.story is not None:
        lines += _packed(_counts(shown.story, fresh=not shown.stale), width)
    lines += [line for text in _also(shown) for line in _few_lines(text, width)]
    return lines


def first_line(name: str, title: str, age: Sequence[Span], width: int) -> Text:
    """What is watched, and how old it is, which is never cut: where there is no room, the name goes, and then the
    title's end."""
    room = width - sum(len(span.text) for span in age)
    named = len(name) + len(_GAP) + min(len(title), _LEAST_TITLE) <= room
    head = [Span(name, Style.HEADING), Span(f"{_GAP}{title}")] if named else [Span(title)]
    return [*cut(head, max(0, room)), *age]


def gap_lines(trouble: Trouble | None, silent: Silence | None, width: int) -> list[Text]:
    """Why what is shown may be out of date."""
    told = [] if trouble is None else [not_renewed_in_words(trouble)]
    told += [] if silent is None else [silence_in_words(silent)]
    return [line for words in told for line in _few_lines(styled(words, Style.BAD), width)]


def _few_lines(text: Text, width: int) -> list[Text]:
    """The text's first lines; the last one says where there are more."""
    lines = [*wrapped(text, width)]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1] = [*lines[_MOST_LINES - 1], Span(" >", Style.QUIET)]
    return lines[:_MOST_LINES]


def _age(shown: Shown) -> list[Span]:
    parts: list[Span] = []
    if shown.story is None:
        read = Span(f"  nothing read yet, for {duration((shown.now_ms - shown.begun_ms) / 1000)}", Style.NOTICE)
    else:
        at_ms = shown.story.sight.taken_at_ms
        style = Style.BAD if shown.stale else Style.PLAIN
        read = Span(f"  {clock(at_ms)} UTC, {duration((shown.now_ms - at_ms) / 1000)} ago", style)
    parts.append(read)
    if shown.paused:
        parts.append(Span("  PAUSED", Style.NOTICE))
    elif shown.looking_since_ms is not None and shown.now_ms - shown.looking_since_ms >= 2000:
        parts.append(Span(f"  reading for {duration((shown.now_ms - shown.looking_since_ms) / 1000)}", Style.NOTICE))
    return parts


def _counts(story: Story, *, fresh: bool) -> Iterator[Span]:
    """Pieces that are not broken."""
    sight, begun = story.sight, story.begun
    live = sum(status is BrokerStatus.LIVE for status in sight.brokers.values())
    all_live = Style.GOOD if fresh else Style.PLAIN
    yield Span(f"{live} of {len(sight.brokers)} brokers live", all_live if live == len(sight.brokers) else Style.BAD)
    for status in BrokerStatus:
        named = [broker for broker, one in sight.brokers.items() if one is status]
        if named and status is not BrokerStatus.LIVE:
            ids = ",".join(map(str, named[:_MOST_BROKERS])) + (",..." if len(named) > _MOST_BROKERS else "")
            yield Span(f"{ids} {str(status).replace('-', ' ')}", Style.BAD)
    following = sight.cluster.controllers
    if following:
        count = sum(following.values())
        style = all_live if count == len(following) else Style.BAD
        yield Span(f"{count} of {plural(len(following), 'controller')} {agree(count, 'follows', 'follow')}", style)
    yield Span(f"{sight.counts.read:,} partitions:")
    for name, value, before, bad in _figures(sight.counts, begun):
        style = Style.PLAIN if value == 0 else Style.BAD if value and bad else Style.NOTICE
        change = "" if value is None or before is None or value == before else f" ({value - before:+,})"
        yield Span(f"{'?' if value is None else f'{value:,}'} {name}{change}", style)


def _packed(pieces: Iterable[Span], width: int) -> list[Text]:
    """The pieces in lines that fit, none of them broken."""
    lines: list[list[Span]] = [[]]
    used = 0
    for piece in pieces:
        size = len(piece.text)
        if used and used + len(_GAP) + size > width:
            lines.append([])
            used = 0
        lines[-1] += [Span(_GAP), piece] if used else [piece]
        used += size + (len(_GAP) if used else 0)
    return list(lines)


def _figures(counts: Counts, begun: Counts) -> Iterator[tuple[str, int | None, int | None, bool]]:
    """Each with what it was when the watch began; None where a smaller figure may be a worse one. None, too, of what is
    not known."""
    yield "leaderless", counts.known("leaderless"), begun.known("leaderless"), True
    yield "under min ISR", counts.known("under_min_isr"), begun.known("under_min_isr"), True
    if counts.not_known:
        yield "not known", counts.not_known, None, False
    if counts.catching_up:
        yield "under-replicated", counts.catching_up, None, False


def _also(shown: Shown) -> Iterator[Text]:
    if shown.detail_trouble:
        yield styled(f"logs not asked: {shown.detail_trouble}", Style.NOTICE)
    if shown.recovery is not None:
        yield recovery_text(shown.recovery, shown.now_ms)
    if shown.story is not None and shown.story.sight.topic_errors:
        errors = shown.story.sight.topic_errors
        first = ", ".join(f"{error.topic} ({error.error})" for error in errors[:3])
        more = f" and {len(errors) - 3:,} more topics" if len(errors) > 3 else ""
        yield styled(f"not read: {first}{more}", Style.NOTICE)
    for note in shown.notes:
        yield styled(note, Style.NOTICE)


def recovery_text(recovery: RecoveryProgress, now_ms: int) -> Text:
    """How far a recovery has come, and how long ago it last did something."""
    last = (
        "" if recovery.ending is not None else f"; its last step was {duration((now_ms - recovery.last_ms) / 1000)} ago"
    )
    others = f"; {recovery.others} more journals are open" if recovery.others else ""
    return styled(f"{recovery_words(recovery)}{last}{others}", Style.BAD if recovery.bad else Style.HEADING)


def recovery_words(recovery: RecoveryProgress) -> str:
    """How far a recovery has come."""
    done = recovery.good + recovery.bad
    what = f"{done:,} of {recovery.total:,} elections have a result" if recovery.total else "clearing ELR"
    bad = f", {recovery.bad:,} of them not as planned" if recovery.bad else ""
    ended = f"; ended ({recovery.ending})" if recovery.ending is not None else ""
    return f"{recovery.command} by {recovery.who}: {what}{bad}{ended}"
