"""What an election would cut off, saved from a simulated cluster and produced again there: kelr's own commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab.simulated import disks
from kelr.lab.simulated.clock import MachineClock
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.world import World
from tests.lab.simulated.data import batch, fetch, produce
from tests.lab.simulated.stories import ORDERS, cluster, eventually
from tests.lab.simulated.test_contents import records_of

TOPIC = ORDERS.topic


@pytest.fixture(name="server")
def _server() -> Iterator[SimulatedServer]:
    """Broker 3 has 10 records, broker 2 has 16, broker 1 is dead with 20; nobody leads."""
    with cluster("elr-4.3", clock=MachineClock()) as server:
        produce(server.ports[1], TOPIC, batch(0, 10))
        dies(server, 3)
        produce(server.ports[1], TOPIC, batch(10, 6))
        dies(server, 2)
        produce(server.ports[1], TOPIC, batch(16, 4), acks=1)
        dies(server, 1)
        server.inside(lambda world: [world.running.start(broker) for broker in (2, 3)])
        eventually(server, lambda world: not (world.brokers[2].fenced or world.brokers[3].fenced))
        yield server


def dies(server: SimulatedServer, broker: int) -> None:
    server.inside(lambda world: (world.running.kill(broker), world.running.expire(broker)))


def keys(server: SimulatedServer, broker: int) -> list[bytes | None]:
    return [record.key for record in records_of(fetch(server.ports[broker], TOPIC, 0).records)]


def numbered(*numbers: int) -> list[bytes]:
    return [f"k{number}".encode() for number in numbers]


def kelr(server: SimulatedServer, *arguments: str) -> int:
    return main([*arguments, "-b", server.bootstrap_servers])


@pytest.mark.parametrize("from_disk", [False, True])
def test_what_a_shorter_replica_cuts_off_comes_back(
    server: SimulatedServer, tmp_path: Path, *, from_disk: bool
) -> None:
    saved, disk = str(tmp_path / "saved.kelr-rescue"), tmp_path / "disk"
    from_where = []
    if from_disk:
        server.inside(lambda world: disks.write(world, 1, disk))
        from_where = ["--log-dir", str(disk)]
    assert kelr(server, "rescue", "dump", f"{TOPIC}:0", "--elect", "3", "--out", saved, *from_where) == 0
    elect = ("elect", "--election-type", "designation", "--designate", "3", f"{TOPIC}:0", "--yes")
    assert kelr(server, *elect, "--accept-loss", "6+") == 0
    eventually(server, led_by_3_and_followed)
    assert keys(server, 3) == numbered(*range(10))
    assert kelr(server, "rescue", "replay", saved, "--yes") == 0
    assert keys(server, 3) == numbered(*range(20 if from_disk else 16))


def led_by_3_and_followed(world: World) -> bool:
    state = world.state(ORDERS)
    return state is not None and state.leader == 3 and set(state.isr) == {2, 3}


def test_the_disk_of_a_dead_broker_counts_in_a_decision(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk, collected = tmp_path / "disk", str(tmp_path / "broker-1.kelr")
    server.inside(lambda world: disks.write(world, 1, disk))
    assert main(["recover", "collect", "--log-dir", str(disk), "--out", collected]) == 0
    capsys.readouterr()
    assert kelr(server, "explain", f"{TOPIC}:0", "--logs", collected, "-o", "json") == 0
    (found,) = json.loads(capsys.readouterr().out)["items"]
    known = {one["replica"]: (one["log_end"], one["behind_best"], one["source"]) for one in found["candidates"]}
    by_broker = "GetReplicaLogInfo v0 (key 70)+Fetch"
    assert known == {1: (20, 0, "log directory"), 2: (16, 4, by_broker), 3: (10, 10, by_broker)}
