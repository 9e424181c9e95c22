"""What an explanation says of the assumptions that it rests on (``--if``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from kelr.engine.what_if.imagine import Happened, PartitionChange
from kelr.engine.what_if.prevention import may_lose
from kelr.engine.words import agree, plural
from kelr.model import Decision, LossCertainty, PartitionState, TopicPartition
from kelr.view.columns import Column, Json, attributes
from kelr.view.layout import Layout
from kelr.view.styled import Span, Style, Text, plain

_HEAD = "Imagined, not what is now:"
_OR_ELSE = "Or else:"
_OR_MIXED = "Or else; and for some of each write, for example, --if '{}':"


@dataclass(frozen=True, slots=True)
class Assumed:
    """One assumption, with what it changed of one partition."""

    text: str
    notes: tuple[str, ...]
    change: PartitionChange | None
    """None where it left the partition as it was."""
    consequence: str
    """What it comes to for the partition, in words."""
    refused: str | None = None
    """Kafka's name of the error by which an election was refused."""


def assumed_of(happened: Sequence[Happened], decision: Decision) -> tuple[Assumed, ...]:
    """The assumptions as they are to one partition, in the order in which they happen.

    Args:
        decision: about the partition as it is in the end.
    """
    address = TopicPartition(decision.topic, decision.partition)
    replicas = [candidate.replica for candidate in decision.candidates]
    return tuple(
        Assumed(one.text, one.notes, one.changes.get(address), one.told_of(address, replicas), one.refused.get(address))
        for one in happened
    )


def assumed_document(assumed: Sequence[Assumed]) -> list[Mapping[str, Json]]:
    """The assumptions of an item: what each changed, or that it changed nothing here."""
    return [
        {
            **attributes(one, "text", "notes", "consequence", "refused"),
            "changes": [] if one.change is None else [_change_document(one.change)],
        }
        for one in assumed
    ]


def happened_document(happened: Sequence[Happened], shown: Collection[TopicPartition]) -> list[Mapping[str, Json]]:
    """The assumptions of a document, with what they changed of the partitions that it shows."""
    return [
        {
            "text": one.text,
            "notes": one.notes,
            "changes": [
                {"topic": address.topic, "partition": address.partition, **_change_document(change)}
                for address, change in one.changes.items()
                if address in shown
            ],
            "changes_not_listed": sum(address not in shown for address in one.changes),
        }
        for one in happened
    ]


def _change_document(change: PartitionChange) -> Mapping[str, Json]:
    return {
        "text": change.text,
        "elected_by": change.elected_by,
        "loss": None if change.loss is None else asdict(change.loss),
        "prevention": change.prevention,
        "before": _state_document(change.before),
        "after": _state_document(change.after),
    }


def _state_document(state: PartitionState) -> Mapping[str, Json]:
    return attributes(state, "leader", "leader_epoch", "isr", "elr", "last_known_elr")


def _condition(assumed: Assumed) -> Text:
    return plain(f"if {assumed.text}")


def _consequence(assumed: Assumed) -> Text:
    return plain("; ".join((assumed.consequence, *assumed.notes)))


_COLUMNS: tuple[Column[Assumed], ...] = (
    Column("condition", "", text=_condition),
    Column("consequence", "", text=_consequence, prose=True),
)


def assumed_lines(layout: Layout, assumed: Sequence[Assumed], otherwise: Sequence[Assumed] = ()) -> Iterator[Text]:
    """The head of one partition's explanation: a line for each assumption with what it changed.

    Args:
        otherwise: the assumptions, had brokers stopped the other way of which nothing tells how.
    """
    for head, ways in ((_HEAD, assumed), (_or_else(assumed, otherwise), otherwise)):
        if ways:
            yield [Span(head, Style.NOTICE)]
            yield from layout.table(_COLUMNS, ways, header=False)


def _or_else(ways: Sequence[Assumed | Happened], others: Sequence[Assumed | Happened]) -> str:
    """The head of the other way to stop; of several brokers some may have stopped so and some otherwise."""
    differing = [(one, other) for one, other in zip(ways, others, strict=False) if one.text != other.text]
    if len(differing) < 2:
        return _OR_ELSE
    (first, _), (_, second) = differing[:2]
    return _OR_MIXED.format(f"{first.text}, then {second.text}")


@dataclass(frozen=True, slots=True)
class _Summed:
    """One assumption, with how much it changed."""

    happened: Happened
    shown: Collection[TopicPartition]

    @property
    def text(self) -> str:
        changes = self.happened.changes
        if not changes:
            return "; ".join(("no partition changes", *_aside(self.happened)))
        count = f"{plural(len(changes), 'partition')} {agree(len(changes), 'changes', 'change')}"
        parts = [*_leaders(changes.values()), *_losing(changes.values())]
        unlisted = sum(address not in self.shown for address in changes)
        hidden = [f"{unlisted} of them {agree(unlisted, 'is', 'are')} not listed: healthy before and after"]
        counted = f"{count}: {', '.join(parts)}" if parts else count
        return "; ".join((counted, *hidden * bool(unlisted), *_aside(self.happened)))


def _aside(happened: Happened) -> Iterator[str]:
    """What it comes to besides the changes: for brokers, where nothing changes, and what was refused."""
    if not happened.changes:
        yield from happened.brokers.values()
    for error, count in sorted(Counter(happened.refused.values()).items()):
        yield f"{plural(count, 'election')} refused: {error}"
    yield from happened.notes


def _losing(changes: Collection[PartitionChange]) -> Iterator[str]:
    """How many elections lose records that are known to be committed, and how many may lose some."""
    losses = [change.loss for change in changes if change.loss is not None and may_lose(change.loss)]
    known = sum(loss.committed is not None and loss.committed.at_least > 0 for loss in losses)
    if known:
        yield f"{plural(known, 'election')} {agree(known, 'loses', 'lose')} committed records"
    if len(losses) > known:
        yield f"{plural(len(losses) - known, 'election')} may lose committed records"


def _leaders(changes: Collection[PartitionChange]) -> Iterator[str]:
    """How many partitions get a leader, another one, or lose theirs."""
    pairs = [(change.before.leader, change.after.leader) for change in changes]
    gained = sum(before is None and after is not None for before, after in pairs)
    moved = sum(before is not None and after is not None and before != after for before, after in pairs)
    lost = sum(before is not None and after is None for before, after in pairs)
    if gained:
        yield f"{gained} {agree(gained, 'gets', 'get')} a leader"
    if moved:
        yield f"{moved} {agree(moved, 'changes its', 'change their')} leader"
    if lost:
        yield f"{lost} {agree(lost, 'loses its', 'lose their')} leader"


_SUMMED_COLUMNS: tuple[Column[_Summed], ...] = (
    Column("condition", "", text=lambda row: plain(f"if {row.happened.text}")),
    Column("sum", "", text=lambda row: plain(row.text), prose=True),
)


def happened_lines(
    layout: Layout, happened: Sequence[Happened], otherwise: Sequence[Happened], shown: Collection[TopicPartition]
) -> Iterator[Text]:
    """The head of a table of many partitions: a line for each assumption with how much it changed.

    Args:
        otherwise: as for `assumed_lines`.
    """
    for head, ways in ((_HEAD, happened), (_or_else(happened, otherwise), otherwise)):
        if ways:
            yield [Span(head, Style.NOTICE)]
            yield from layout.table(_SUMMED_COLUMNS, [_Summed(one, shown) for one in ways], header=False)


def leader_in_words(assumed: Sequence[Assumed], leader: int | None) -> str:
    """The leader in the end, with the one before where that is another: ``none -> 1``."""
    changes = [one.change for one in assumed if one.change is not None]
    before = changes[0].before.leader if changes else leader
    return _named(leader) if before == leader else f"{_named(before)} -> {_named(leader)}"


def elections_cost(assumed: Sequence[Assumed]) -> tuple[int, bool]:
    """How many offsets the imagined elections lose by the logs that were heard, and whether it may be more."""
    losses = [one.change.loss for one in assumed if one.change is not None and one.change.loss is not None]
    losing = [loss for loss in losses if loss.grade is not LossCertainty.PROVEN_NONE]
    known = sum(loss.total.at_least for loss in losing if loss.total is not None)
    return known, any(loss.total is None or not loss.total.exact for loss in losing)


def _named(leader: int | None) -> str:
    return "none" if leader is None else str(leader)
