"""Many partitions in little room: those that differ in nothing but their names and epochs share one value.

A cluster of a million partitions has a few thousand different lists of replicas. A `Rows` is a sequence of partitions
that makes each of them when it is asked for it; what looks at all of them can look at each kind once (`count_into`,
`unseen`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from kelr.model.described import Described
from kelr.model.partition import PartitionState

RowT = TypeVar("RowT")


class Kind(Generic[RowT]):
    """What partitions that are alike have in common: one of them, without its name. Equal to itself alone."""

    __slots__ = ("__weakref__", "example")

    def __init__(self, example: RowT) -> None:
        self.example = example
        """With no topic, partition 0, leader epoch 0, and no topic id."""


@dataclass(frozen=True, slots=True)
class Run(Generic[RowT]):
    """Partitions of one topic, in columns of one length."""

    topic: str
    topic_id: str | None
    numbers: Sequence[int]
    leader_epochs: Sequence[int]
    kinds: Sequence[Kind[RowT]]

    def __len__(self) -> int:
        return len(self.numbers)


class Rows(Sequence[RowT]):
    """A sequence of rows, kept in runs; compares with other sequences by its rows."""

    def __init__(self, runs: Iterable[Run[RowT]], name: Callable[[RowT, Run[RowT], int, int], RowT]) -> None:
        self.runs = tuple(run for run in runs if len(run))
        self.name = name
        """Gives an example its name."""

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __iter__(self) -> Iterator[RowT]:
        name = self.name
        for run in self.runs:
            for number, epoch, kind in zip(run.numbers, run.leader_epochs, run.kinds, strict=True):
                yield name(kind.example, run, number, epoch)

    @overload
    def __getitem__(self, index: int) -> RowT: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RowT]: ...

    def __getitem__(self, index: int | slice) -> RowT | Sequence[RowT]:
        if isinstance(index, slice):
            return tuple(self)[index]
        at = index if index >= 0 else len(self) + index
        for run in self.runs:
            if 0 <= at < len(run):
                return self.name(run.kinds[at].example, run, run.numbers[at], run.leader_epochs[at])
            at -= len(run)
        raise IndexError(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(_same, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def named(self, kind: Kind[RowT], topic: str, topic_id: str | None, number: int, epoch: int) -> RowT:
        """A row of this kind."""
        return self.name(kind.example, Run(topic, topic_id, (number,), (epoch,), (kind,)), number, epoch)

    def count_into(self, counts: Counter[Kind[RowT]]) -> None:
        """Count the rows of each kind."""
        for run in self.runs:
            counts.update(run.kinds)


def states(runs: Iterable[Run[PartitionState]]) -> Rows[PartitionState]:
    """Partitions as the controller has them on record."""
    return Rows(runs, _named_state)


def described_rows(runs: Iterable[Run[Described]]) -> Rows[Described]:
    """Partitions with what `describe` says of them."""
    return Rows(runs, _named_described)


_MOST_SEEN = 16_384


def unseen(rows: Sequence[RowT], seen: set[object]) -> Iterator[RowT]:
    """The rows, of those that are alike one; none of a kind that is among `seen`, where each goes."""
    if not isinstance(rows, Rows):
        yield from rows
        return
    for run in rows.runs:
        for kind in set(run.kinds).difference(seen):
            seen.add(kind)
            yield kind.example
    if len(seen) > _MOST_SEEN:
        seen.clear()


def example_of_topics(rows: Sequence[Described]) -> Iterable[tuple[str, Described]]:
    """For each topic a partition of it, which tells what its partitions have in common: its configs."""
    if isinstance(rows, Rows):
        return ((run.topic, run.kinds[0].example) for run in rows.runs)
    return ((row.state.topic, row) for row in rows)


def topics_of(rows: Sequence[PartitionState]) -> dict[str, None]:
    """The topics of these partitions, in their order."""
    if isinstance(rows, Rows):
        return dict.fromkeys(run.topic for run in rows.runs)
    return dict.fromkeys(state.topic for state in rows)


def _named_state(example: PartitionState, run: Run[PartitionState], number: int, epoch: int) -> PartitionState:
    return _state(example, run.topic, run.topic_id, number, epoch)


def _named_described(example: Described, run: Run[Described], number: int, epoch: int) -> Described:
    state = _state(example.state, run.topic, run.topic_id, number, epoch)
    return Described(state, example.situation, example.min_isr, example.config)


def _state(example: PartitionState, topic: str, topic_id: str | None, number: int, epoch: int) -> PartitionState:
    # Written out: dataclasses.replace takes three times as long.
    return PartitionState(
        topic=topic,
        partition=number,
        leader=example.leader,
        leader_epoch=epoch,
        replicas=example.replicas,
        isr=example.isr,
        elr=example.elr,
        last_known_elr=example.last_known_elr,
        offline_replicas=example.offline_replicas,
        partition_epoch=example.partition_epoch,
        adding=example.adding,
        removing=example.removing,
        recovering=example.recovering,
        topic_id=topic_id,
    )


def _same(one: object, other: object) -> bool:
    return one == other
