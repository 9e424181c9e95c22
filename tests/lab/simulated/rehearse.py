"""A scenario file on a simulated cluster: its directives happen there, and every step can be looked at over the wire.

The cluster does nothing by itself meanwhile, as on paper: its followers fetch, sessions expire and the Unclean Recovery
Manager is answered when the scenario says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.protocol.dialects import Dialect
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive, Scenario, ScenarioError, directives_of
from kelr.simulation.session import Session

NOT_ON_THE_WIRE: Mapping[str, str] = {
    "log": "it says by hand what is known of a log; over the wire every log is read, and tells what it holds",
}
"""Directives that mean nothing to a client of the cluster, with the reason. `decide` goes by them on paper all the
same."""


class Rehearsal:
    """A server that performs a scenario; used in a ``with``.

    Args:
        log_info: the dialect in which its brokers speak GetReplicaLogInfo; None: not at all, as released ones.

    Raises:
        ScenarioError: the scenario does not begin with a cluster.
        UsageError: that cluster is none that a lab can have.
    """

    def __init__(self, scenario: Scenario, *, log_info: Dialect | None = None) -> None:
        directives = [directive for _, directive in directives_of(scenario)]
        self.without_wire = tuple(one for one in directives if one.name in NOT_ON_THE_WIRE)
        """The directives that change nothing that a client can see."""
        if not directives:
            raise ScenarioError(1, "there is nothing to rehearse", next_step="write cluster rules=elr brokers=1,2,3")
        brokers = brokers_of(directives)
        spec = SimulatedSpec(
            brokers=max(1, len(brokers)),
            named=dict.fromkeys(brokers or (1,)),
            rules=directives[0].options.get("rules", "elr"),
            min_isr=1,
            replication=1,
            log_info=log_info,
        )
        self.server = SimulatedServer(spec, clock=VirtualClock())

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()

    @property
    def cluster(self) -> SimulatedCluster:
        """The cluster as the last directive left it."""
        return self.server.inside(lambda world: world.running.cluster)

    def perform(self, directive: Directive) -> Sequence[str]:
        """Perform a directive; what it prints.

        Raises:
            ScenarioError: there is no such directive, or it cannot be done.
        """

        def performed(world: World) -> Sequence[str]:
            session = Session(world.running.cluster if world.running.still else None)
            printed = session.perform(directive)
            if session.cluster is not None:
                before = {address.topic for address in world.running.cluster.controller.partitions}
                world.running.put(session.cluster)
                for topic in before - {address.topic for address in session.cluster.controller.partitions}:
                    world.forget_topic(topic)
            return printed

        return self.server.inside(performed)


def brokers_of(directives: Sequence[Directive]) -> tuple[int, ...]:
    """The ids of all brokers that a scenario ever registers, sorted: each gets a port."""
    found: set[int] = set()
    for directive in directives:
        if directive.name == "cluster":
            found.update(directive.ids("brokers"))
        elif directive.name in {"register", "restart"} and directive.arguments:
            found.add(directive.parsed_number(directive.arguments[0]))
    return tuple(sorted(found))
