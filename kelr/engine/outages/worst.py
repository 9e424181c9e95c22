"""What any k brokers take with them: counts for every set of k, by inclusion and exclusion.

What a set of brokers does to a partition depends only on those among them that the partition names. So the counts of a
set are sums over its subsets of what each adds to its own subsets, and a partition of three replicas adds to eight of
them: 100,000 partitions and every pair of 30 brokers take seconds.

All counts of a partition are one number with a field for each flag, which may run negative on the way and do not in the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from kelr.engine.outages.fate import Fates, KnownCase
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.standing import Standing
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.model import BrokerStatus

MOST_SETS = 1_000_000
"""So many sets are looked at; more are refused, as a search that is not whole names no worst one."""
_WIDTH = 40
_MASK = (1 << _WIDTH) - 1
_FLAGS = tuple(Standing)
_DEPENDS = 2 * len(_FLAGS)


@dataclass(frozen=True, slots=True)
class SetCounts:
    """What a set of brokers takes with it, in numbers of partitions."""

    brokers: tuple[int, ...]
    then: dict[Standing, int]
    new: dict[Standing, int]
    depends: int

    @property
    def severity(self) -> tuple[int, ...]:
        """Higher is worse: what is new counts, the worst first."""
        return tuple(self.new[flag] for flag in _RANKED)


_RANKED = (
    Standing.MAY_LOSE,
    Standing.UNPROVEN,
    Standing.LEADERLESS,
    Standing.UNDER_MIN_ISR,
    Standing.MIN_ISR_UNKNOWN,
    Standing.LAST_REPLICA,
    Standing.LEADER_MOVES,
)


class AnyBrokers:
    """Counts for every set of `size` live brokers that go at once.

    Args:
        brokers: the brokers that may be among them.
        clean: whether they stop cleanly.
    """

    def __init__(self, brokers: Sequence[int], size: int, *, clean: bool) -> None:
        self.brokers = tuple(sorted(brokers))
        self.size = size
        self._happening = Happening.STOPS if clean else Happening.FAILS
        self._parts: dict[tuple[int, ...], int] = {}
        self._of_case: dict[KnownCase, tuple[tuple[tuple[int, ...], int], ...]] = {}
        self._among = frozenset(brokers)
        self.partitions = 0

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return comb(len(self.brokers), self.size)

    def add(self, seen: Seen, count: int) -> None:
        """Count partitions of one case."""
        self.partitions += count
        parts = self._of_case.get(seen.known)
        if parts is None:
            parts = self._of_case[seen.known] = tuple(self._parts_of(seen.known))
        brokers, known, among = seen.brokers, self._parts, self._among
        for names, value in parts:
            key = tuple(sorted([brokers[name] for name in names]))
            if among.issuperset(key):
                known[key] = known.get(key, 0) + count * value

    def counts(self, progress: Callable[[int, int], None] | None = None) -> Iterator[SetCounts]:
        """The counts of each set, in order of ids."""
        most = max(map(len, self._parts), default=0)
        sizes = range(min(most, self.size) + 1)
        known, total = self._parts, self.sets
        for done, brokers in enumerate(combinations(self.brokers, self.size)):
            if progress is not None and done % 4096 == 0:
                progress(done, total)
            value = sum(known.get(part, 0) for size in sizes for part in combinations(brokers, size))
            yield _unpacked(brokers, value)
        if progress is not None:
            progress(total, total)

    def now(self) -> dict[Standing, int]:
        """What holds before anything happens."""
        return _unpacked((), self._parts.get((), 0)).then

    def _parts_of(self, known: KnownCase) -> Iterator[tuple[tuple[int, ...], int]]:
        """What each subset of the partition's brokers adds to what its own subsets do."""
        live = [name for name, status in enumerate(known.case.statuses) if status is BrokerStatus.LIVE]
        added: dict[tuple[int, ...], int] = {}
        for size in range(min(len(live), self.size) + 1):
            for names in combinations(live, size):
                blows = tuple(Assumption(self._happening, broker=name) for name in names)
                whole = _packed(known.fates(blows, at_once=True))
                below = sum(added[part] for less in range(size) for part in combinations(names, less))
                added[names] = whole - below
        return ((names, value) for names, value in added.items() if value)


def _packed(fates: Fates) -> int:
    found = 0
    for place, flag in enumerate(_FLAGS):
        if fates.then & flag:
            found += 1 << _WIDTH * place
        if fates.new & flag:
            found += 1 << _WIDTH * (len(_FLAGS) + place)
    return found + (fates.depends << _WIDTH * _DEPENDS)


def _unpacked(brokers: tuple[int, ...], value: int) -> SetCounts:
    fields = [value >> _WIDTH * place & _MASK for place in range(_DEPENDS + 1)]
    then = dict(zip(_FLAGS, fields[: len(_FLAGS)], strict=True))
    new = dict(zip(_FLAGS, fields[len(_FLAGS) : _DEPENDS], strict=True))
    return SetCounts(brokers, then, new, fields[_DEPENDS])
