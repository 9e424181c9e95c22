"""Shrinking: of a history that goes wrong, what is needed for that."""

from __future__ import annotations

from collections.abc import Callable

from tests.histories.chance import Schedule
from tests.histories.history import play


def shrunk(seed: int, schedule: Schedule, fails: Callable[[Schedule], bool] | None = None) -> Schedule:
    """A schedule that still goes wrong, and no more when any one thing is left out of it.

    Args:
        fails: whether a schedule goes wrong; None: in any way.
    """
    goes_wrong = fails or (lambda tried: bool(play(seed, tried).wrong))
    left, size = dict(schedule), max(1, len(schedule) // 2)
    while True:
        found = False
        places = list(left)
        for at in range(0, len(places), size):
            tried = {place: what for place, what in left.items() if place not in places[at : at + size]}
            if len(tried) < len(left) and goes_wrong(tried):
                left, found = tried, True
        if not found and size == 1:
            return left
        size = size if found else max(1, size // 2)
