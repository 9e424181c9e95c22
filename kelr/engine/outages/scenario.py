"""Outages: which brokers stop, how, and whether one after the other or at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kelr.engine.what_if.assumptions import RETURNS, Assumption, Happening
from kelr.engine.words import brokers as named
from kelr.engine.words import joined

BLOWS = frozenset({Happening.FAILS, Happening.STOPS, *RETURNS})
"""What can happen to a broker in an outage."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Brokers that stop or come back.

    Source: KIP-966, "Broker shutdown"; ReplicationControlManager.handleBrokerFenced and processBrokerHeartbeat.
    """

    blows: tuple[Assumption, ...]
    """What happens, each to one broker: `BLOWS`."""
    at_once: bool
    """All of it happens at about the same time. The controller still takes one broker after the other: a killed one
    when its session ends, a stopped one at its heartbeat. Nobody can tell in which order, so each is looked at."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that it happens to, each once, in order of their first mention."""
        return tuple(dict.fromkeys(blow.broker for blow in self.blows if blow.broker is not None))

    @property
    def gone(self) -> tuple[int, ...]:
        """The brokers that are down in the end."""
        last = {blow.broker: blow.happening for blow in self.blows if blow.broker is not None}
        return tuple(broker for broker, happening in last.items() if happening not in RETURNS)

    def __str__(self) -> str:
        """In words: ``brokers 1 and 2 are killed at once``."""
        if not self.at_once or len(self.blows) == 1:
            return ", then ".join(map(_words, self.blows))
        parts = []
        for happening, one, many in _AT_ONCE:
            members = [blow.broker for blow in self.blows if blow.happening is happening and blow.broker is not None]
            if members:
                parts.append(f"{named(members)} {one if len(members) == 1 else many}")
        return f"{joined(parts)} at once"


_AT_ONCE = (
    (Happening.STOPS, "is stopped cleanly", "are stopped cleanly"),
    (Happening.FAILS, "is killed", "are killed"),
)
_ONE = {
    Happening.STOPS: "is stopped cleanly",
    Happening.FAILS: "is killed",
    Happening.RETURNS: "returns",
    Happening.RETURNS_CLEAN: "returns clean",
    Happening.RETURNS_UNCLEAN: "returns unclean",
}


def _words(blow: Assumption) -> str:
    return f"broker {blow.broker} {_ONE[blow.happening]}"


def outage(stopped: Iterable[int] = (), killed: Iterable[int] = ()) -> Outage:
    """These brokers stop cleanly and those are killed, all at about the same time."""
    blows = [Assumption(Happening.STOPS, broker=broker) for broker in dict.fromkeys(stopped)]
    blows += [Assumption(Happening.FAILS, broker=broker) for broker in dict.fromkeys(killed)]
    return Outage(tuple(blows), at_once=True)
