"""Kafka 4.3.1's own command line tools on a simulated cluster; each word is from their output on a real one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from kelr.lab import Lab
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition

Run = Callable[..., str]
PATIENCE_MS = 5000


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatedServer]:
    """Three brokers, and two topics of two partitions."""
    with SimulatedServer(SimulatedSpec(rules="elr-4.3", topics=2, partitions=2)) as running:
        yield running


@pytest.fixture
def run(lab_43: Lab, server: SimulatedServer) -> Run:
    """Runs a tool from the real lab's jars on the simulated cluster, and gives what it prints."""

    def done(tool: str, *words: str, controller: bool = False) -> str:
        option = "--bootstrap-controller" if controller else "--bootstrap-server"
        address = server.controller_server if controller else server.bootstrap_servers
        ended = lab_43.stock_tool(tool, option, address, *words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "Exception" not in ended.stderr
        return ended.stdout

    return done


def _partitions(printed: str) -> dict[str, str]:
    """Each partition's leader, ISR and ELR, as kafka-topics.sh prints them."""
    row = re.compile(
        r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\t.*?Isr: (.*?)\tElr: (.*?)\tLastKnownElr: (.*?)\s*$"
    )
    found = (row.search(line) for line in printed.splitlines())
    return {f"{one[1]}:{one[2]}": f"{one[3]} isr={one[4]} elr={one[5]} last={one[6]}" for one in found if one}


def test_topics_and_their_configs(run: Run, server: SimulatedServer) -> None:
    layout = ("--replica-assignment", "1:2:3,2:3:1", "--config", "min.insync.replicas=2")
    assert "Created topic orders." in run("kafka-topics.sh", "--create", "--topic", "orders", *layout)
    assert run("kafka-topics.sh", "--list").split() == ["orders", "topic-000000", "topic-000001"]
    assert server.inside(lambda world: world.partitions("orders")) == 2

    added = "retention.ms=1000,unclean.leader.election.enable=true"
    printed = run("kafka-configs.sh", "--alter", "--topic", "orders", "--add-config", added)
    assert "Completed updating config for topic orders." in printed
    printed = run("kafka-configs.sh", "--describe", "--topic", "orders")
    assert (
        "min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=2,"
        " DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2, DEFAULT_CONFIG:min.insync.replicas=1}" in printed
    )
    assert "retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}" in printed
    assert server.inside(lambda world: world.running.cluster.controller.config("orders").unclean_leader_election)

    run("kafka-topics.sh", "--delete", "--topic", "orders")
    assert server.inside(lambda world: list(world.topics())) == ["topic-000000", "topic-000001"]


def _outage(world: World) -> None:
    """Brokers 3, 2 and 1 die; 2 and 1 are in the ELR, and only broker 3 is back."""
    for broker in (3, 2, 1):
        world.running.kill(broker)
        world.running.expire(broker)
    world.running.start(3)
    world.running.advance(world.running.now_ms + PATIENCE_MS)


def _recovery(world: World) -> None:
    """All brokers are back; what led before does not all lead again."""
    for broker in (1, 2):
        world.running.start(broker)
        world.running.advance(world.running.now_ms + PATIENCE_MS)


def test_an_outage_as_it_is_described_and_ended(run: Run, server: SimulatedServer) -> None:
    everything = [f"topic-00000{topic}:{partition}" for topic in (0, 1) for partition in (0, 1)]
    server.inside(_outage)
    waiting = dict.fromkeys(everything, "none isr= elr=1,2 last=1")
    assert _partitions(run("kafka-topics.sh", "--describe")) == waiting
    pages = run("kafka-topics.sh", "--describe", "--partition-size-limit-per-response", "1")
    assert _partitions(pages) == waiting
    one = _partitions(run("kafka-topics.sh", "--describe", "--topic", "topic-000001"))
    assert list(one) == everything[2:]
    for problem in ("--unavailable-partitions", "--under-min-isr-partitions"):
        assert _partitions(run("kafka-topics.sh", "--describe", problem)) == waiting

    server.inside(_recovery)
    led = server.inside(lambda world: [world.state(TopicPartition(*_split(one))) for one in everything])
    assert all(state is not None and state.leader is not None for state in led)
    away = [state for state in led if state is not None and state.leader != state.replicas[0]]
    printed = run("kafka-leader-election.sh", "--election-type", "preferred", "--all-topic-partitions")
    assert away
    assert "Successfully completed leader election (PREFERRED) for partitions" in printed
    assert all(f"{state.topic}-{state.partition}" in printed for state in away)
    after = server.inside(lambda world: [world.state(TopicPartition(*_split(one))) for one in everything])
    assert all(state is not None and state.leader == state.replicas[0] for state in after)
    assert _partitions(run("kafka-topics.sh", "--describe", "--unavailable-partitions")) == {}


def _split(address: str) -> tuple[str, int]:
    topic, partition = address.split(":")
    return topic, int(partition)


def test_the_cluster_and_its_quorum(run: Run, server: SimulatedServer) -> None:
    for controller in (False, True):
        printed = run("kafka-metadata-quorum.sh", "describe", "--status", controller=controller)
        assert re.search(rf"ClusterId: +{server.world.cluster_id}\n", printed)
        assert re.search(r"LeaderId: +100\n", printed)
        assert f"CONTROLLER://{server.controller_server}" in printed
    assert "No partition reassignments found." in run("kafka-reassign-partitions.sh", "--list")
    printed = run("kafka-configs.sh", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "broker.rack=az1 sensitive=false synonyms={STATIC_BROKER_CONFIG:broker.rack=az1}" in printed
    assert "ssl.keystore.password=null sensitive=true synonyms={}" in printed
    wanted = ("--entity-type", "brokers", "--entity-default", "--add-config", "min.insync.replicas=1")
    run("kafka-configs.sh", "--alter", *wanted)
    assert server.inside(lambda world: world.running.cluster.controller.cluster.min_isr) == 1
    # The level of Kafka 4.4, which has no name in the tools of 4.3.
    assert "UNKNOWN 33" in run("kafka-features.sh", "describe")
    assert run("kafka-consumer-groups.sh", "--list").split() == []
