"""What a watch tells beside the changes between two looks: on the screen's list of changes and in a pipe alike."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.commands.session import now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.commands.watching import NOTHING_LEFT, Watching
from kelr.engine.watching import Sight
from kelr.engine.words import agree, joined
from kelr.view.styled import Style, styled
from kelr.view.watch.head import recovery_words
from kelr.view.watch.lines import NOTHING_FOUND, WatchLine
from kelr.view.watch.model import Gaps, RecoveryProgress

_MOST_NAMED = 5
_LOOK_AT = "check what this principal may read (kelr doctor --acls watch)"


class HistoryBuilder:
    """Tells once what goes on for longer: that nothing can be read, or some topics cannot, that no controller answers,
    how a recovery comes on, that nothing is left.

    Args:
        on_screen: below a head that says how a recovery comes on, and what to do where nothing can be read: neither is
            told then.
    """

    def __init__(self, *, on_screen: bool) -> None:
        self._on_screen = on_screen
        self._gaps = Gaps(steps=not on_screen)
        self._unread = ""
        self._deleted: frozenset[str] = frozenset()
        self._healthy = False
        self._unsaved = ""
        self._recovery: RecoveryProgress | None = None

    def gaps(self, watching: Watching) -> Iterator[WatchLine]:
        """What is new of times in which nothing was learnt: before the changes that a look saw since."""
        story, trouble = watching.story, watching.trouble
        if story is None or trouble is not None:
            yield from self._gaps.lines(trouble, None, now_ms())
            return
        yield from self._gaps.lines(None, watching.silent, story.sight.seen_ms, story.sight.counts)
        yield from self._topics(story.sight)

    def _topics(self, sight: Sight) -> Iterator[WatchLine]:
        """Which topics were deleted, and which could not be read."""
        deleted, self._deleted = sorted(sight.deleted - self._deleted), sight.deleted
        if deleted:
            more = len(deleted) - _MOST_NAMED
            names = joined(deleted if more <= 0 else [*deleted[:_MOST_NAMED], f"{more:,} more"])
            words = f"{agree(len(deleted), 'topic', 'topics')} {names}: not there any more"
            yield _line("topic-deleted", words, Style.NOTICE, sight)
        before, self._unread = self._unread, _unread_in_words(sight)
        if self._unread and self._unread != before:
            yield _line("not-read", self._unread, Style.BAD, sight)
        if before and not self._unread:
            yield _line("read-again", "every watched topic can be read now", Style.NOTICE, sight)

    def rest(self, watching: Watching) -> Iterator[WatchLine]:
        """What is new besides, once a look has come through: behind the changes that it saw."""
        if watching.newest is None or watching.trouble is not None:
            return
        sight, recovery = watching.newest.story.sight, watching.newest.recovery
        if recovery is not None and self._progress(recovery) != self._progress(self._recovery):
            yield _line("recovery", recovery_words(recovery), Style.HEADING, sight)
        self._recovery = recovery
        unsaved = watching.newest.unsaved
        if unsaved and unsaved != self._unsaved:
            yield _line("unsaved", unsaved, Style.BAD, sight)
        self._unsaved = unsaved
        if watching.healthy and not self._healthy:
            yield _line("healthy", NOTHING_LEFT, Style.GOOD, sight)
        self._healthy = watching.healthy

    def _progress(self, recovery: RecoveryProgress | None) -> tuple[object, ...] | None:
        if recovery is None:
            return None
        steps = () if self._on_screen else (recovery.good, recovery.bad)
        return recovery.journal, recovery.ending, *steps


def _unread_in_words(sight: Sight) -> str:
    """Why not everything that is watched could be read, and what to do; empty where it could."""
    if sight.topic_errors:
        failed = topics_failed(sight.topic_errors, some_worked=False)
        return f"{failed.message}; {failed.next_step}"
    return "" if sight.counts.read else f"{NOTHING_FOUND}; {_LOOK_AT}"


def _line(what: str, text: str, style: Style, sight: Sight) -> WatchLine:
    return WatchLine(sight.seen_ms, what, "", styled(text, style), counts=sight.counts)
