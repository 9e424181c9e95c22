"""A watch without a screen: one line for each change, for people and for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kelr.engine.watching import Change, Counts, Elected, PartitionChange, Sight, Watched
from kelr.engine.words import plural
from kelr.model import PartitionState
from kelr.view.columns import Fact, Json, View, datum
from kelr.view.styled import Span, Style, Text
from kelr.view.watch.words import change_name, change_text, clock, plain_words

KIND = "kelr/watch"


@dataclass(frozen=True, slots=True)
class WatchLine:
    """One thing that happened, with what was known then."""

    at_ms: int
    what: str
    """``begin``, ``partition``, ``broker``, ``recovery``, ``topic-deleted``, ``not-read``, ``read-again``,
    ``no-controller``, ``controller-again``, ``healthy``, ``unsaved`` or ``end``."""
    name: str
    words: Text
    change: Change | None = None
    counts: Counts | None = None
    """Of the look; None where there was none."""

    @property
    def topic(self) -> str | None:
        return self.change.address.topic if isinstance(self.change, PartitionChange) else None

    @property
    def partition(self) -> int | None:
        return self.change.address.partition if isinstance(self.change, PartitionChange) else None

    @property
    def broker(self) -> int | None:
        return None if self.change is None or isinstance(self.change, PartitionChange) else self.change.broker

    @property
    def before(self) -> Json:
        """How it stood before: a partition as an object, a broker's status as a string."""
        return _side(self.change, after=False)

    @property
    def after(self) -> Json:
        return _side(self.change, after=True)

    @property
    def election(self) -> Elected | None:
        return self.change.elected if isinstance(self.change, PartitionChange) else None

    @property
    def text(self) -> str:
        return plain_words(self.words)


def watch_view() -> View[WatchLine]:
    """A line for each change; an item for machines."""
    return View(
        KIND,
        (
            datum(
                "at_ms",
                "integer",
                "When it was seen, in milliseconds since 1970 UTC; it happened after the look before.",
            ),
            datum(
                "what",
                "string",
                "begin, partition, broker, recovery, topic-deleted, not-read (the cluster, or some topics),"
                " read-again, no-controller (what follows may be out of date until controller-again), controller-again,"
                " healthy (nothing is leaderless or unsafe), unsaved (by kelr's audit log, disks of brokers that"
                " are down may hold the only copy of records) or end.",
            ),
            datum("topic", "string?", "Topic name; null: it is not about a partition."),
            datum("partition", "integer?", "Partition number; null: it is not about one."),
            datum("broker", "integer?", "Broker id; null: it is not about a broker."),
            datum(
                "before",
                "object?",
                "The partition before: {situation, leader, leader_epoch, replicas, isr, elr, last_known_elr, min_isr,"
                " waits_for}, or the broker: {status}; null: it was in no trouble, or not listed.",
            ),
            datum("after", "object?", "The same after the change; null: it is not there any more."),
            datum(
                "election",
                "string?",
                f"How a new leader was elected, by what two looks tell: {', '.join(Elected)}; null: none was elected.",
            ),
            datum(
                "leaderless",
                "integer?",
                "Partitions without a live leader in this look; null: not known, as no controller answers, no"
                " partition was found, or some topics could not be read.",
                _count("leaderless"),
            ),
            datum("unsafe", "integer?", "Partitions that are led and under min ISR; null as above.", _count("unsafe")),
            datum("under_min_isr", "integer?", "Partitions under min ISR; null as above.", _count("under_min_isr")),
            datum("read", "integer?", "Partitions that were looked at.", _read),
            datum("text", "string", "What happened, in words."),
        ),
        block=_block,
        head=(
            Fact("cluster_id", "string?", "The cluster's id."),
            Fact("targets", "string[]", "What is watched; empty: everything."),
            Fact("interval_s", "number", "Seconds between two looks."),
        ),
    )


NOTHING_FOUND = "no partition was found; topics without DESCRIBE are not listed"


def figure(counts: Counts, name: str) -> str:
    """One of these counts, or ``?``."""
    known = counts.known(name)
    return "?" if known is None else f"{known:,}"


def counts_in_words(counts: Counts) -> str:
    """How many are in trouble."""
    return f"{figure(counts, 'leaderless')} leaderless, {figure(counts, 'in_trouble')} leaderless or unsafe"


def begin_lines(sight: Sight) -> Iterator[WatchLine]:
    """What the first look saw."""
    counts = sight.counts
    day = datetime.fromtimestamp(sight.seen_ms / 1000, UTC).strftime("%Y-%m-%d")
    live = sum(status == "live" for status in sight.brokers.values())
    of = plural(counts.read, "partition")
    stands = f"{counts_in_words(counts)}, {figure(counts, 'under_min_isr')} under min ISR of {of}"
    if counts.controller_silent:
        stands += f", as brokers knew it last: no controller answers ({sight.controller_silence})"
    words = (
        f"{day}, times are UTC: cluster {sight.cluster.cluster_id or '?'},"
        f" {'?' if counts.controller_silent else live} of {len(sight.brokers)} brokers live;"
        f" {stands if counts.read else 'no partition was found'}"
    )
    yield WatchLine(sight.seen_ms, "begin", "", [Span(words)], counts=counts)
    found = [PartitionChange(at, None, one) for at, one in sorted(sight.partitions.items()) if one.in_trouble]
    yield from change_lines(sight, found)


def change_lines(sight: Sight, changes: Sequence[Change]) -> Iterator[WatchLine]:
    """The changes that a look saw."""
    for change in changes:
        if isinstance(change, PartitionChange) and not change.worth_telling:
            continue
        yield WatchLine(
            at_ms=sight.seen_ms,
            what="partition" if isinstance(change, PartitionChange) else "broker",
            name=change_name(change),
            words=change_text(change),
            change=change,
            counts=sight.counts,
        )


def _block(line: WatchLine) -> Iterator[Text]:
    name = [Span(f"{line.name}: ", Style.HEADING)] if line.name else []
    yield [Span(f"{clock(line.at_ms)} "), *name, *line.words]


def _count(name: str) -> Callable[[WatchLine], Json]:
    def value(line: WatchLine) -> Json:
        return None if line.counts is None else line.counts.known(name)

    return value


def _read(line: WatchLine) -> Json:
    return None if line.counts is None else line.counts.read


def _side(change: Change | None, *, after: bool) -> Json:
    if change is None:
        return None
    side = change.after if after else change.before
    if side is None:
        return None
    return _watched(side) if isinstance(side, Watched) else {"status": str(side)}


def _watched(watched: Watched) -> Json:
    state: PartitionState = watched.state
    return {
        "situation": str(watched.situation),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": None if state.elr is None else list(state.elr),
        "last_known_elr": None if state.last_known_elr is None else list(state.last_known_elr),
        "min_isr": watched.min_isr,
        "waits_for": list(watched.waits_for),
    }
