"""Requests that brokers hand on to the controller, and what becomes of them while they do not reach it.

Source: ForwardingManager of Apache Kafka; a broker tries for as long as request.timeout.ms says.
"""

from __future__ import annotations

from collections.abc import Callable

from kelr.lab.simulated.api import Answer, Call, Later, Message

REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms of brokers."""


def forwarded(handle: Callable[[Call], Answer], timed_out: Callable[[Call], Message]) -> Callable[[Call], Answer]:
    """A handler that answers as the controller, once the node reaches it.

    Args:
        timed_out: the answer where it did not in time.
    """

    def answer(call: Call) -> Answer:
        if _reaches_controller(call):
            return handle(call)

        def poll() -> Message | None:
            return handle(call) if _reaches_controller(call) else None

        return Later(call.world.running.now_ms + REQUEST_TIMEOUT_MS, poll, lambda: timed_out(call))

    return answer


def _reaches_controller(call: Call) -> bool:
    world = call.world
    return call.node == world.controller or world.running.linked(call.node, world.controller)
