"""Questions to the handlers of a simulated cluster, through the bytes of both messages and without a socket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kelr.controller import events
from kelr.lab.simulated.api import Call, Later
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.lab.spec import CONTROLLER_ID
from kelr.protocol.error_codes import error_name

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def world(*assignments: Sequence[int], topic: str = "orders", **spec: Any) -> World:
    """A cluster of the rules of Kafka 4.3, with the topic ``orders`` where there are assignments."""
    made = SimulatedSpec(**{"rules": "elr-4.3", **spec})
    ports = {node: 9000 + node for node in (*made.broker_ids, CONTROLLER_ID)}
    cluster = World(made, ports, cluster_id=CLUSTER_ID, now_ms=1_700_000_000_000)
    if assignments:
        cluster.running.ask(events.TopicCreated(topic, tuple(tuple(one) for one in assignments)))
    return cluster


def answered(cluster: World, request: Any, *, node: int = 1, spoken: bool = True) -> bytes | Later:
    """The encoded answer, or the one that is still to come."""
    version, key = request.version, request.API_KEY
    api = apis_of(cluster.spec)[key]
    low, high = api.versions
    assert (low <= version <= high) == spoken
    sent = api.request.decode(request.encode(version), version)
    answer = api.handle(Call(cluster, node, sent, version, "test"))
    if answer is None or isinstance(answer, bytes | Later):
        assert answer is not None
        return answer
    return bytes(answer.encode(version))


def ask(cluster: World, request: Any, *, node: int = 1) -> Any:
    """The answer, as a client decodes it."""
    encoded = answered(cluster, request, node=node)
    assert isinstance(encoded, bytes)
    return apis_of(cluster.spec)[request.API_KEY].response.decode(encoded, request.version)


def encoded_again(message: Any, version: int) -> bytes:
    """What comes of a message that was decoded."""
    return bytes(message.encode(version))


def later(cluster: World, request: Any, *, node: int = 1) -> Later:
    """An answer that the node does not have yet."""
    found = answered(cluster, request, node=node)
    assert isinstance(found, Later)
    return found


def name(code: int) -> str:
    return error_name(code)
