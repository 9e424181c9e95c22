"""The controller's gauges of KIP-966 on the simulated lab: served, read, and the same as kelr's own figures."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Callable
from typing import TypeVar

import pytest

from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.process import figures, listen
from kelr.lab.simulated.world import Denied
from kelr.metrics.catalog import METRICS, recognize
from kelr.metrics.computed import compute, look
from kelr.metrics.endpoints import Access, Kind, endpoint_of
from kelr.metrics.figures import recoveries_finished
from kelr.metrics.reading import parse_line
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.lab.simulated.stories import PATIENCE_S, cluster, eventually, led_by, power_outage, returns

T = TypeVar("T")
OF_THE_KIP = {metric.key for metric in METRICS if not metric.shipped}


def at_its_endpoint(server: SimulatedServer, ask: Callable[[str], T]) -> T:
    """What is answered at the URL of the controller's metrics."""

    async def asked() -> T:
        serving = await listen(server.world, 0)
        try:
            return await asyncio.to_thread(ask, f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/metrics")
        finally:
            serving.close()

    return asyncio.run(asked())


def served(server: SimulatedServer) -> dict[str, float]:
    text = at_its_endpoint(server, lambda url: urllib.request.urlopen(url, timeout=PATIENCE_S).read().decode())
    found = {}
    for line in text.splitlines():
        sample = None if line.startswith("#") else parse_line(line)
        if sample is not None:
            known = recognize(sample.name, sample.labels)
            assert known is not None, line
            found[known.metric.key] = sample.value
    return found


@pytest.mark.parametrize(
    ("rules", "recovering", "manual"),
    [("kip966-balanced", 1, 0), ("kip966-none", 0, 1), ("kip966-aggressive", 1, 0)],
)
def test_what_the_controller_says_is_what_kelr_counts(rules: str, recovering: int, manual: int) -> None:
    with cluster(rules) as server:
        power_outage(server)
        told = served(server)
        assert told.keys() == OF_THE_KIP
        if rules != "kip966-aggressive":
            assert (told["unclean_recoveries"], told["manual_election_required"]) == (0, 0), "the ELR is waited for"
        server.fault(Fault(FaultKind.LOSE, node=2, api="GetReplicaLogInfo"))
        returns(server, 2, 3)  # uncleanly, which empties the ELR
        with LiveSource(ConnectionSettings.read(server.bootstrap_servers, timeout_s=PATIENCE_S)) as source:
            computed, seen = compute(source), look(source, most=5)
        told = served(server)
        keys = OF_THE_KIP - {"unclean_recoveries_finished"}
        assert {key: computed.figures[key] for key in keys} == {key: told[key] for key in keys}
        assert (told["unclean_recoveries"], told["manual_election_required"]) == (recovering, manual)
        assert (seen.in_recovery, seen.needs_operator) == (recovering, manual)
        assert seen.electable == told["electable_replicas"]


def test_finished_recoveries_are_counted_until_another_controller_takes_over() -> None:
    with cluster("kip966-balanced", controllers=3) as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        eventually(server, led_by(2))
        assert served(server)["unclean_recoveries_finished"] == 1
        assert server.inside(figures)["unclean_recovery_finished_count"] == 1
        assert at_its_endpoint(server, lambda url: recoveries_finished([endpoint_of(Kind.TEXT, url)], Access())) == 1
        server.inside(lambda world: world.kill_controller(100))
        assert served(server)["unclean_recoveries_finished"] == 0
    assert recoveries_finished([endpoint_of(Kind.TEXT, "127.0.0.1:1")], Access()) is None


def test_where_the_strategy_is_not_known_nobody_is_counted() -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        server.fault(Fault(FaultKind.LOSE, node=2, api="GetReplicaLogInfo"))
        returns(server, 2, 3)
        server.inside(lambda world: world.denied.add(Denied("topic", "DESCRIBE_CONFIGS")))
        with LiveSource(ConnectionSettings.read(server.bootstrap_servers, timeout_s=PATIENCE_S)) as source:
            computed = compute(source)
        assert (computed.figures["unclean_recoveries"], computed.figures["manual_election_required"]) == (0, 0)
        assert computed.unknown["unclean_recoveries"] == computed.unknown["manual_election_required"] == 1
