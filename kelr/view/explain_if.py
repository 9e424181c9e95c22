"""What an explanation says of the assumptions that it rests on (``--if``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from kelr.engine.what_if.imagine import Happened, PartitionChange
from kelr.engine.what_if.words import NOTHING
from kelr.engine.words import agree, plural
from kelr.model import PartitionState, TopicPartition
from kelr.view.columns import Column, Json
from kelr.view.layout import Layout
from kelr.view.styled import Span, Style, Text, plain

_HEAD = "Imagined, not what is now:"


@dataclass(frozen=True, slots=True)
class Assumed:
    """One assumption, with what it changed of one partition."""

    text: str
    notes: tuple[str, ...]
    change: PartitionChange | None
    """None where it left the partition as it was."""


def assumed_of(happened: Sequence[Happened], address: TopicPartition) -> tuple[Assumed, ...]:
    """The assumptions as they are to one partition, in the order in which they happen."""
    return tuple(Assumed(one.text, one.notes, one.changes.get(address)) for one in happened)


def assumed_document(assumed: Sequence[Assumed]) -> list[Mapping[str, Json]]:
    """The assumptions of an item: what each changed, or that it changed nothing here."""
    return [
        {"text": one.text, "notes": one.notes, "changes": [] if one.change is None else [_change_document(one.change)]}
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
        "before": _state_document(change.before),
        "after": _state_document(change.after),
    }


def _state_document(state: PartitionState) -> Mapping[str, Json]:
    return {
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "elr": state.elr,
        "last_known_elr": state.last_known_elr,
    }


def _condition(assumed: Assumed) -> Text:
    return plain(f"if {assumed.text}")


def _consequence(assumed: Assumed) -> Text:
    text = NOTHING if assumed.change is None else assumed.change.text
    return plain("; ".join((text, *assumed.notes)))


_COLUMNS: tuple[Column[Assumed], ...] = (
    Column("condition", "", text=_condition),
    Column("consequence", "", text=_consequence),
)


def assumed_lines(layout: Layout, assumed: Sequence[Assumed]) -> Iterator[Text]:
    """The head of one partition's explanation: a line for each assumption with what it changed."""
    if assumed:
        yield [Span(_HEAD, Style.NOTICE)]
        yield from layout.table(_COLUMNS, assumed, header=False)


@dataclass(frozen=True, slots=True)
class _Summed:
    """One assumption, with how much it changed."""

    happened: Happened
    shown: Collection[TopicPartition]

    @property
    def text(self) -> str:
        changes = self.happened.changes
        if not changes:
            return "; ".join(("no partition changes", *self.happened.notes))
        count = f"{plural(len(changes), 'partition')} {agree(len(changes), 'changes', 'change')}"
        parts = list(_leaders(changes.values()))
        unlisted = sum(address not in self.shown for address in changes)
        hidden = [f"{unlisted} of them {agree(unlisted, 'is', 'are')} not listed: healthy before and after"]
        counted = f"{count}: {', '.join(parts)}" if parts else count
        return "; ".join((counted, *hidden * bool(unlisted), *self.happened.notes))


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
    Column("sum", "", text=lambda row: plain(row.text)),
)


def happened_lines(layout: Layout, happened: Sequence[Happened], shown: Collection[TopicPartition]) -> Iterator[Text]:
    """The head of a table of many partitions: a line for each assumption with how much it changed."""
    if happened:
        yield [Span(_HEAD, Style.NOTICE)]
        yield from layout.table(_SUMMED_COLUMNS, [_Summed(one, shown) for one in happened], header=False)


def leader_in_words(assumed: Sequence[Assumed], leader: int | None) -> str:
    """The leader in the end, with the one before where that is another: ``none -> 1``."""
    changes = [one.change for one in assumed if one.change is not None]
    before = changes[0].before.leader if changes else leader
    return _named(leader) if before == leader else f"{_named(before)} -> {_named(leader)}"


def _named(leader: int | None) -> str:
    return "none" if leader is None else str(leader)
