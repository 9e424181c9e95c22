"""A simulated cluster in an incident, and faults that strike one request of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kelr.controller import events
from kelr.lab.simulated.faults import Fault, Faults
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition
from kelr.protocol.dialects import Dialect
from kelr.simulation.following import Timing
from kelr.simulation.logs import Acks

TOPIC = "orders"
ORDERS = (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1))
ASSIGNED = {ORDERS[0]: (3, 1, 2), ORDERS[1]: (1, 3, 2)}
"""Broker 1 does not run; of 2 and 3, 2 holds more, and comes later."""
BEST, ENDS = 2, {2: 30, 3: 10}
PATIENCE_S = 10.0


@dataclass(slots=True)
class Struck(Faults):
    """Strikes the `at`-th request of a run, from 0 on, and remembers all of them."""

    fault: Fault | None = None
    at: int | None = None
    every: str | None = None
    """Strike all requests of this name in place of one."""
    seen: list[str] = field(default_factory=list)
    struck: str | None = None
    """The name of the request that was struck."""

    def strike(self, node: int, api: str) -> Fault | None:  # noqa: ARG002 - every node's requests count
        self.seen.append(api)
        if self.fault is None or (len(self.seen) - 1 != self.at and api != self.every):
            return None
        self.struck = api
        return self.fault


@contextmanager
def incident(rules: str) -> Iterator[SimulatedServer]:
    """``orders`` lost its leaders: broker 1, the last one, does not run; 2 and 3 do, each with a part of the log."""
    native = rules.startswith("kip966")
    spec = SimulatedSpec(
        rules=rules,
        log_info=Dialect.KIP if native else None,
        # Nothing but kelr moves the cluster while it is asked.
        timing=Timing(session_ms=600_000, lag_ms=600_000, start_ms=0, flush_ms=None, unclean_ms=None),
    )
    made = SimulatedServer(spec)
    made.world.running.ask(events.TopicCreated(TOPIC, tuple(ASSIGNED.values())))
    with made as server:
        server.inside(_lost)
        until = time.monotonic() + PATIENCE_S
        while not server.inside(_back):
            assert time.monotonic() < until, "brokers do not come back"
            time.sleep(0.002)
        assert states(server) == {at: (None, ASSIGNED[at]) for at in ORDERS}
        yield server


def _lost(world: World) -> None:
    running = world.running
    for at in ORDERS:
        running.produce(at, 10, Acks.ALL)
    running.kill(3)
    running.expire(3)
    for at in ORDERS:
        running.produce(at, 20, Acks.ALL)
    running.kill(2)
    running.expire(2)
    for at in ORDERS:
        running.produce(at, 5, Acks.LEADER)
    running.kill(1)
    running.expire(1)
    running.start(2)
    running.start(3)


def _back(world: World) -> bool:
    return not any(world.brokers[broker].fenced for broker in (2, 3))


def states(server: SimulatedServer) -> dict[TopicPartition, tuple[int | None, tuple[int, ...]]]:
    """Leader and replicas in their order."""

    def read(world: World) -> dict[TopicPartition, tuple[int | None, tuple[int, ...]]]:
        found = {at: world.state(at) for at in ORDERS}
        return {at: (state.leader, tuple(state.replicas)) for at, state in found.items() if state is not None}

    return server.inside(read)


def strike(server: SimulatedServer, faults: Struck) -> Struck:
    """From now on these are the faults."""

    def put(there: object) -> None:
        there.faults = faults  # type: ignore[attr-defined]

    server.perform(put)
    return faults


def servers_of(server: SimulatedServer) -> str:
    """The brokers that run."""
    return ",".join(f"127.0.0.1:{server.ports[broker]}" for broker in (2, 3))
