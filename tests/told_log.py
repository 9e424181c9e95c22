"""A metadata log with a story in it, as a simulated cluster writes it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kelr.controller import Election, events
from tests.lab.simulated.stories import ORDERS, cluster

LOG = f"{0:020}.log"
"""The name of its one segment."""


def write_told_log(directory: Path) -> None:
    """Put the segment there."""
    (directory / LOG).write_bytes(_told_log())


@cache
def _told_log() -> bytes:
    """All brokers fail one after the other; 3 and 2 return; 2 is designated, 1 returns and is preferred."""
    world = cluster("elr-4.3").world
    running = world.running
    for broker in (3, 2, 1):
        running.kill(broker)
        running.advance(running.now_ms + 1700)
        running.expire(broker)
        running.advance(running.now_ms + 2500)
    for broker in (3, 2):
        running.start(broker)
        running.advance(running.now_ms + 3000)
    running.ask(events.Reassigned(ORDERS, (2, 3, 1)))
    running.ask(events.LeadersElected(Election.UNCLEAN, (ORDERS,)))
    running.ask(events.Reassigned(ORDERS, (1, 2, 3)))
    running.advance(running.now_ms + 5000)
    running.start(1)
    running.advance(running.now_ms + 5000)
    running.ask(events.LeadersElected(Election.PREFERRED, (ORDERS,)))
    return world.metadata.read(0, 1 << 30)
