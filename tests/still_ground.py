"""A machine on which nothing takes time but waiting."""

from __future__ import annotations

from kelr.sources.ground import Ground, Moment


class StillGround(Ground):
    """Time that only waiting moves."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def moment(self) -> Moment:
        return Moment(None, round(1000 * sum(self.slept)))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
