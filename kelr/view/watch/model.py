"""What the screen shows: values that somebody else brings."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelr.engine.watching import BrokerChange, Change, Counts, PartitionChange, Readings, Story, Watched
from kelr.engine.words import brokers
from kelr.model import Decision, LogAnswer, TopicPartition
from kelr.view.explain import Explanation
from kelr.view.log_scale import BLOCKS, Ink
from kelr.view.plan_words import named, partitions_in_words
from kelr.view.styled import Style, Text, styled
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.words import change_text, clock, duration, plain_words

_MOST_NAMED = 3
_LONGEST_NAMES = 60
_MOST_SPELT = 1000
"""Of more partitions than this the list is too long in any case."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What a partition's replicas told, and what the engine makes of it."""

    decision: Decision
    taken_at_ms: int
    """When its reading began."""
    logs: tuple[LogAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing new is learnt of the cluster."""

    since_ms: int
    """When the newest look began that came through; where none did, the watch."""
    message: str
    next_step: str = ""
    never_read: bool = False
    """No look has come through so far."""


@dataclass(frozen=True, slots=True)
class Silence:
    """That no controller answers: brokers tell what they knew last, however old that is."""

    why: str
    """`Sight.controller_silence`."""
    heard_ms: int | None
    """`Story.heard_ms`."""


@dataclass(frozen=True, slots=True)
class RecoveryProgress:
    """How far a recovery has come that this machine's state directory knows of."""

    journal: str
    command: str
    who: str
    total: int
    """Elections of its plan; 0 where it clears an ELR."""
    good: int
    bad: int
    last_ms: int
    """When its last line was written."""
    ending: str | None = None
    """How it ended; None: it is open."""
    others: int = 0
    """Further journals that are open."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A command of kelr's own that somebody at the screen asks for."""

    command: str
    """``recover plan`` or ``history``."""
    at: TopicPartition
    width: int
    """Columns that there are for what it prints."""
    gone: str = ""
    """Brokers that a plan does without, as ``--gone`` takes them."""

    @property
    def words(self) -> str:
        return f"kelr {self.command} {self.at}{f' --gone {self.gone}' if self.gone else ''}"


@dataclass(frozen=True, slots=True)
class Printed:
    """What such a command printed."""

    order: Order
    lines: Sequence[str]
    """As they were written for a terminal."""
    plan: Path | None = None
    """The file of a plan that elects somebody."""
    awaited: str = ""
    """Brokers that a plan without an election waits for, as ``--gone`` takes them."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything that the screen is made of, but for what somebody at the keyboard has chosen."""

    title: str
    """What is watched, such as the bootstrap servers and targets."""
    interval_s: float
    now_ms: int
    explanation: Explanation
    """How explanations are shown, but for their width."""
    ink: Ink = BLOCKS
    """What logs are drawn with."""
    story: Story | None = None
    """None: no look has come through so far."""
    log: Sequence[WatchLine] = ()
    """Oldest first."""
    forgotten: int = 0
    """Lines that the log had no more room for."""
    details: Mapping[TopicPartition, Detail] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    trouble: Trouble | None = None
    """Why the newest look failed; None: it did not."""
    silent: Silence | None = None
    """Why no controller answered in the newest look that came through; None: one did, or nobody knows."""
    detail_trouble: str = ""
    """Why the logs could not be asked for the last time."""
    recovery: RecoveryProgress | None = None
    paused: bool = False
    looking_since_ms: int | None = None
    """A look is under way since then."""
    begun_ms: int = 0
    notes: Sequence[str] = ()
    """What is odd about what was read, such as a metadata log that is torn."""

    def is_old(self, detail: Detail) -> bool:
        """Whether looks came and went since its logs were read."""
        return self.now_ms - detail.taken_at_ms > self._few_looks_ms

    @property
    def stale(self) -> bool:
        """Whether the list may be out of date: the newest look failed, or heard no controller, or is longer ago than
        looks are apart (it is paused, or one hangs)."""
        if self.trouble is not None or self.silent is not None or self.story is None:
            return True
        sight = self.story.sight
        return self.now_ms - sight.seen_ms > self._few_looks_ms + sight.took_ms

    @property
    def _few_looks_ms(self) -> float:
        return 1000 * (3 * self.interval_s + 2)


def log_lines(at_ms: int, changes: Sequence[Change]) -> list[WatchLine]:
    """The changes of one look as lines: those that are told in the same words are one."""
    grouped: dict[str, tuple[Text, list[Change]]] = {}
    for text, same in alike_changes(changes):
        grouped.setdefault(plain_words(text), (text, []))[1].extend(same)
    return [WatchLine(at_ms, "", _names(same), text) for text, same in grouped.values()]


def alike_changes(changes: Sequence[Change]) -> Iterator[tuple[Text, Sequence[Change]]]:
    """Those changes that somebody should hear of, with those together that happened in the same way, and its words."""
    # Ten thousand partitions change at once, in a few ways: each way is put into words once.
    alike: dict[object, list[Change]] = {}
    for change in changes:
        if isinstance(change, PartitionChange):
            if change.worth_telling:
                alike.setdefault(_way(change), []).append(change)
        else:
            alike.setdefault((change.before, change.after), []).append(change)
    for same in alike.values():
        yield change_text(same[0]), same


def _way(change: PartitionChange) -> Hashable:
    """Two partitions whose ways are equal changed in the same words."""
    before, after = change.before, change.after
    epochs = () if before is None or after is None else (before.state.leader_epoch, after.state.leader_epoch)
    remade = before is not None and after is not None and before.state.topic_id != after.state.topic_id
    return (*epochs, change.elected, remade, _side(before), _side(after))


def _side(watched: Watched | None) -> Hashable:
    if watched is None:
        return None
    state = watched.state
    return (
        watched.situation,
        watched.min_isr,
        watched.awaits,
        watched.elected,
        state.leader,
        state.isr,
        state.elr,
        state.last_known_elr,
        state.replicas,
        state.offline_replicas,
        state.adding,
        state.removing,
        state.topic_id is None,
    )


def _names(changes: Sequence[Change]) -> str:
    partitions = [change.address for change in changes if isinstance(change, PartitionChange)]
    if not partitions:
        return brokers([change.broker for change in changes if isinstance(change, BrokerChange)])
    if len(partitions) <= _MOST_SPELT:
        names = named(partitions, most=_MOST_NAMED)
        if len(names) <= _LONGEST_NAMES:
            return names
    topics = sorted({at.topic for at in partitions})
    of = topics[0] if len(topics) == 1 else f"{len(topics):,} topics"
    return f"{partitions_in_words(len(partitions))} of {of}"


# Gaps.


_MEANS = "what brokers tell may be out of date"
_LOOK_AT = "check that most controllers are up (kelr doctor)"


def not_renewed_in_words(trouble: Trouble) -> str:
    """For the top of a screen."""
    what = "NOTHING READ YET" if trouble.never_read else f"NOT RENEWED since {clock(trouble.since_ms)}"
    return f"{what}: {trouble.message}{_step(trouble)}"


def silence_in_words(silent: Silence) -> str:
    """For the top of a screen."""
    return f"NO CONTROLLER ANSWERS {silent_since(silent)} ({silent.why}): {_MEANS}; {_LOOK_AT}"


def silent_since(silent: Silence) -> str:
    """``since 14:03:10``; where no look heard a controller, nobody knows since when."""
    return "since the watch began or before" if silent.heard_ms is None else f"since {clock(silent.heard_ms)}"


def late(began_ms: int, taken_at_ms: int) -> Trouble:
    """That a look goes on for much longer than others.

    Args:
        began_ms: when it began.
        taken_at_ms: when the newest one began that came through.
    """
    return Trouble(taken_at_ms, f"a look began at {clock(began_ms)} and has not come through so far")


class Gaps:
    """Remembers what was told of such times, so that a beginning and an end are told once each.

    Args:
        steps: whether it is told what to do; a screen has that at its top.
    """

    def __init__(self, *, steps: bool) -> None:
        self._steps = steps
        self._trouble: Trouble | None = None
        self._silent: Silence | None = None
        self._told: set[str] = set()
        """The messages of the trouble that goes on: two that take turns are told once each."""

    def lines(
        self, trouble: Trouble | None, silent: Silence | None, at_ms: int, counts: Counts | None = None
    ) -> Iterator[WatchLine]:
        """What is new of them.

        Args:
            trouble: why the newest look failed; None: it did not.
            silent: as in `Shown`.
            at_ms: when that became known.
            counts: of the newest look that came through.
        """
        failed, self._trouble = self._trouble, trouble
        if trouble is not None:
            if trouble.message not in self._told:
                self._told.add(trouble.message)
                last = "" if trouble.never_read else f", and was last at {clock(trouble.since_ms)}"
                words = f"the cluster cannot be read{last}: {trouble.message}{self._step(trouble)}"
                yield _line(at_ms, "not-read", words, Style.BAD, None)
            return
        if failed is not None:
            self._told.clear()
            again = "" if failed.never_read else " again"
            words = f"the cluster can be read{again}, after {_lasted(failed.since_ms, at_ms)} in which nothing was seen"
            yield _line(at_ms, "read-again", words, Style.NOTICE, counts)
        before, self._silent = self._silent, silent
        if silent is not None and before is None:
            step = f"; {_LOOK_AT}" if self._steps else ""
            words = f"no controller answers {silent_since(silent)} ({silent.why}): {_MEANS}{step}"
            yield _line(at_ms, "no-controller", words, Style.BAD, counts)
        if silent is None and before is not None:
            lasted = None if before.heard_ms is None else _lasted(before.heard_ms, at_ms)
            words = f"a controller answers{' now' if lasted is None else f' again, after {lasted}'}"
            yield _line(at_ms, "controller-again", words, Style.NOTICE, counts)

    def _step(self, trouble: Trouble) -> str:
        return _step(trouble) if self._steps else ""


def _line(at_ms: int, what: str, words: str, style: Style, counts: Counts | None) -> WatchLine:
    return WatchLine(at_ms, what, "", styled(words, style), counts=counts)


def _lasted(since_ms: int, at_ms: int) -> str:
    return duration((at_ms - since_ms) / 1000)


def _step(trouble: Trouble) -> str:
    return f"; {trouble.next_step}" if trouble.next_step else ""
