"""A mapping by partition that is never changed in place, and of which a changed copy is cheap however large it is.

`SimulatedCluster` is a frozen value, and each record of each partition makes another one. With a plain dict that would
copy ten thousand entries for one produced record. Here the entries lie in about as many shards as the square root of
their number, and a copy shares all shards but those that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar
from zlib import crc32

from kelr.model import TopicPartition

V = TypeVar("V")

_FEWEST = 8
_FULL = 4
"""A shard holds on average up to so many times as many entries as there are shards."""


class PartitionMap(Mapping[TopicPartition, V]):
    """An immutable mapping; `updated` and `without` give another one.

    The order of its entries is the same in every process, and not that of their insertion.
    """

    __slots__ = ("_shards", "_size")

    def __init__(self, entries: Mapping[TopicPartition, V] | None = None) -> None:
        count = _FEWEST
        while entries is not None and len(entries) > count * count:
            count *= 2
        shards: list[dict[TopicPartition, V]] = [{} for _ in range(count)]
        for address, value in () if entries is None else entries.items():
            shards[_place(address) & (count - 1)][address] = value
        self._shards = tuple(shards)
        self._size = 0 if entries is None else len(entries)

    @classmethod
    def of(cls, entries: Mapping[TopicPartition, V]) -> PartitionMap[V]:
        """These entries; the same object where they are such a mapping already."""
        return entries if isinstance(entries, PartitionMap) else cls(entries)

    def __getitem__(self, address: TopicPartition) -> V:
        return self._shards[_place(address) & (len(self._shards) - 1)][address]

    def __iter__(self) -> Iterator[TopicPartition]:
        for shard in self._shards:
            yield from shard

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, PartitionMap) and len(other._shards) == len(self._shards):
            # Shared shards are the same object, which dict compares at once.
            return self._size == other._size and self._shards == other._shards
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]  # as a dict

    def __repr__(self) -> str:
        return f"PartitionMap({dict(self)!r})"

    def updated(self, changes: Mapping[TopicPartition, V]) -> PartitionMap[V]:
        """The mapping with these entries in it, in the place of those that it had."""
        if not changes:
            return self
        shards, copied, size = list(self._shards), set(), self._size
        for address, value in changes.items():
            place = _place(address) & (len(shards) - 1)
            if place not in copied:
                shards[place] = dict(shards[place])
                copied.add(place)
            size += address not in shards[place]
            shards[place][address] = value
        return self._made(shards, size)

    def without(self, addresses: Iterable[TopicPartition]) -> PartitionMap[V]:
        """The mapping without these entries; those that it does not have are no error."""
        shards, size = list(self._shards), self._size
        for address in addresses:
            place = _place(address) & (len(shards) - 1)
            if address in shards[place]:
                shards[place] = {known: value for known, value in shards[place].items() if known != address}
                size -= 1
        return self if size == self._size else self._made(shards, size)

    def _made(self, shards: list[dict[TopicPartition, V]], size: int) -> PartitionMap[V]:
        made: PartitionMap[V] = object.__new__(PartitionMap)
        made._shards, made._size = tuple(shards), size
        return PartitionMap(dict(made)) if size > _FULL * len(shards) * len(shards) else made


def _place(address: TopicPartition) -> int:
    # Not hash(): that differs from process to process, and with it the order of the entries would.
    return crc32(address.topic.encode()) + address.partition
