"""The order in which the controller writes an ELR: that of a Java HashSet.

The order elects nobody (elections go by assignment order), but the controller compares the ELR it computes with the one
it stored as lists: a stored ELR in another order makes it write a record where nothing else changes, and ElectLeaders
then answers NONE instead of ELIGIBLE_LEADERS_NOT_AVAILABLE.

Source: PartitionChangeBuilder.maybePopulateTargetElr; java.util.HashMap (hash, tableSizeFor, resize).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LEAST_CAPACITY = 16
_LOAD_FACTOR = 0.75


def hash_set_order(first: Sequence[int], more: Iterable[int]) -> tuple[int, ...]:
    """The distinct ids as a Java HashSet yields them that was made of `first` and given `more` afterwards."""
    ids = tuple(dict.fromkeys((*first, *more)))
    if len(ids) < 2:
        return ids
    capacity = _LEAST_CAPACITY
    while capacity < int(len(first) / _LOAD_FACTOR) + 1 or capacity * _LOAD_FACTOR < len(ids):
        capacity *= 2
    return tuple(sorted(ids, key=lambda broker: (broker ^ broker >> 16) & (capacity - 1)))
