"""What the tests of elections and recoveries tell to a simulated cluster, and how they ask it over the wire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import Clock, VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import ElectLeadersRequest
from kelr.simulation.logs import Acks

ORDERS = TopicPartition("orders", 0)
PATIENCE_S = 20.0
PREFERRED, DESIGNATION, BALANCED, AGGRESSIVE = 0, 1, 2, 3
UNCLEAN = 1
"""What 1 means up to version 2."""


def cluster(rules: str, *assignments: Sequence[int], clock: Clock | None = None, **spec: Any) -> SimulatedServer:
    """A cluster with the topic ``orders``; use it in a `with`, and call `begun` in it. Its clock stands still."""
    made = SimulatedServer(SimulatedSpec(rules=rules, **spec), clock=clock or VirtualClock())
    replicas = tuple(tuple(one) for one in assignments) or ((1, 2, 3),)
    made.world.running.ask(events.TopicCreated(ORDERS.topic, replicas))
    return made


def state(server: SimulatedServer, address: TopicPartition = ORDERS) -> PartitionState:
    found = server.inside(lambda world: world.state(address))
    assert found is not None
    return found


def log_ends(server: SimulatedServer, address: TopicPartition = ORDERS) -> Mapping[int, int]:
    def ends(world: World) -> Mapping[int, int]:
        replication = world.replication(address)
        assert replication is not None
        return {replica: log.end for replica, log in sorted(replication.logs.items())}

    return server.inside(ends)


def eventually(server: SimulatedServer, holds: Callable[[World], object]) -> None:
    """Wait until something holds in the world; the clock is not turned."""
    until = time.monotonic() + PATIENCE_S
    while not server.inside(holds):
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.002)


def led_by(leader: int | None, address: TopicPartition = ORDERS) -> Callable[[World], bool]:
    def holds(world: World) -> bool:
        found = world.state(address)
        return found is not None and found.leader == leader

    return holds


def power_outage(server: SimulatedServer) -> None:
    """Vanlightly, 5.3.3, up to its fifth step: logs of 8, 12 and 9 records, of which 10 were committed; all brokers
    are down and fenced."""

    def story(world: World) -> None:
        running = world.running
        running.produce(ORDERS, 10, Acks.ALL)
        running.sever(1, 3)
        running.produce(ORDERS, 2, Acks.LEADER)
        running.sever(1, 2)
        running.produce(ORDERS, 3, Acks.LEADER)
        for broker in (1, 2, 3):
            running.kill(broker)
        running.heal()
        for replica, end in ((1, 8), (3, 9)):
            running.cluster = running.cluster.cut(ORDERS, replica, end)
        for broker in (1, 2, 3):
            running.expire(broker)

    server.inside(story)


def returns(server: SimulatedServer, *brokers: int) -> None:
    """Brokers start, register and are unfenced."""
    for broker in brokers:
        server.inside(lambda world, broker=broker: world.running.start(broker))  # type: ignore[misc]
    server.advance(server.spec.timing.start_ms)


@contextmanager
def time_goes_on(server: SimulatedServer) -> Iterator[None]:
    """The virtual clock turns by itself, ten times as fast as others."""
    over = threading.Event()

    def turn() -> None:
        while not over.wait(0.02):
            server.advance(200)

    turning = threading.Thread(target=turn)
    turning.start()
    try:
        yield
    finally:
        over.set()
        turning.join()


def request(
    version: int,
    kind: int,
    topics: Mapping[str, Sequence[int]] | None,
    *,
    desired: Mapping[str, Sequence[int] | None] | None = None,
    timeout_ms: int = 60_000,
) -> Any:
    """An ElectLeaders request; None for all partitions."""
    named = ElectLeadersRequest.TopicPartitions
    asked = None
    if topics is not None:
        asked = [named(topic=topic, partitions=list(partitions)) for topic, partitions in topics.items()]
        for topic in asked if version >= 3 else ():
            leaders = (desired or {}).get(topic.topic)
            topic.desired_leaders = None if leaders is None else list(leaders)
    return ElectLeadersRequest(version=version, election_type=kind, topic_partitions=asked, timeout_ms=timeout_ms)


def asked(server: SimulatedServer, question: Any, node: int | None = None) -> Any:
    """Ask a node; None for a broker that runs or, without one, the controller."""
    if node is None:
        node = server.inside(lambda world: min(one for one in world.nodes if world.listens(one)))
    return wire.ask(server.ports[node], question, timeout_s=PATIENCE_S)


def errors(answer: Any) -> Mapping[TopicPartition, str]:
    """Kafka's name of each partition's error."""
    return {
        TopicPartition(topic.topic, one.partition_id): error_name(one.error_code)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def elected(server: SimulatedServer, version: int, kind: int, *leaders: int | None, timeout_ms: int = 60_000) -> str:
    """Ask for an election on ``orders:0``, with a desired leader if one is given, and give its error's name."""
    desired = {ORDERS.topic: list(leaders)} if leaders else None
    question = request(version, kind, {ORDERS.topic: [0]}, desired=desired, timeout_ms=timeout_ms)  # type: ignore[arg-type]
    return errors(asked(server, question))[ORDERS]
