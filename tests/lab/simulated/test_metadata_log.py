"""``__cluster_metadata`` of a simulated cluster: its schemas, what its records say, and how it is fetched."""

from __future__ import annotations

import json
import random
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import ControllerFailedOver, Election, events
from kelr.lab import wire
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol import metadata_records as metadata
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import DescribeQuorumRequest
from kelr.simulation.logs import Acks
from tests.differential.driver import API_VERSION, class_path
from tests.lab.simulated.on_record import check_replay
from tests.lab.simulated.replayed import Image, fetch_request, image, records
from tests.lab.simulated.stories import ORDERS, PATIENCE_S, cluster, eventually, led_by, power_outage, returns

COMMENTS = re.compile(r"(?m)^\s*//.*\n?")


# Schemas.


def without_words(schema: Any) -> Any:
    """A schema without its explanations."""
    if isinstance(schema, dict):
        return {
            name: without_words(value)
            for name, value in schema.items()
            if name not in {"about", "latestVersionUnstable"}
        }
    return [without_words(one) for one in schema] if isinstance(schema, list) else schema


@pytest.fixture(name="released", scope="module")
def _released() -> Iterator[Callable[[str], Any]]:
    """Kafka's own schemas of metadata records."""
    (jar,) = (path for path in class_path(API_VERSION) if path.name.startswith("kafka-metadata"))
    with zipfile.ZipFile(jar) as found:
        yield lambda kind: json.loads(COMMENTS.sub("", found.read(f"common/metadata/{kind}.json").decode()))


@pytest.mark.parametrize("kind", metadata.KINDS)
def test_schemas_are_those_of_the_released_jar(kind: str, released: Callable[[str], Any]) -> None:
    own = json.loads(COMMENTS.sub("", files("kelr.protocol.schemas").joinpath(f"{kind}.json").read_text("utf-8")))
    assert without_words(own) == without_words(released(kind))


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x02\x05\x02", b"\x01\x7f\x00", b"\x01\x05\x09", b"\xff\xff\xff\xff\xff\xff", b"\x01\x14\x00"],
    ids=["nothing", "cut", "another frame", "another kind", "a newer version", "no end", "NoOpRecord"],
)
def test_what_is_no_known_record_is_said_so(value: bytes) -> None:
    with pytest.raises(metadata.UnknownRecordError):
        metadata.decode(value)


# What the records say.


def says_what_the_world_says(world: World) -> Image:
    """The log, played back, is the cluster."""
    found, state = image(world.metadata.read(0, 1 << 30)), world.running.cluster.controller
    assert len(found.kinds) == world.metadata.end
    assert found.brokers == {
        broker: (one.epoch, one.fenced, one.in_controlled_shutdown) for broker, one in state.brokers.items()
    }
    assert set(found.topics.values()) == set(world.topics())
    assert {topic: world.topic_id(topic) for topic in world.topics()} == {
        name: topic_id for topic_id, name in found.topics.items()
    }
    expected = {
        (world.topic_id(topic), number): told(world, TopicPartition(topic, number))
        for topic in world.topics()
        for number in range(world.partitions(topic))
    }
    assert found.partitions == expected
    assert found.features.get("eligible.leader.replicas.version", 0) == int(state.rules.elr)
    assert found.configs == configs(world)
    check_replay(world, configs(world))
    return found


def told(world: World, address: TopicPartition) -> Mapping[str, Any]:
    state = world.state(address)
    assert state is not None
    return {
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "removing": list(state.removing or ()),
        "adding": list(state.adding or ()),
        "leader": -1 if state.leader is None else state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "recovering": bool(state.recovering),
        "elr": list(state.elr or ()),
        "last_known_elr": list(state.last_known_elr or ()),
    }


def configs(world: World) -> Mapping[tuple[int, str, str], str]:
    state = world.running.cluster.controller
    levels = {(4, ""): state.cluster, **{(2, topic): level for topic, level in state.topics.items()}}
    found = {
        (*key, "min.insync.replicas"): str(level.min_isr) for key, level in levels.items() if level.min_isr is not None
    }
    for key, level in levels.items():
        if level.unclean_leader_election is not None:
            found[*key, "unclean.leader.election.enable"] = str(level.unclean_leader_election).lower()
    for topic, own in world.topic_configs.items():
        found.update({(2, topic, name): value for name, value in own.items()})
    return found


def do_something(world: World, chance: random.Random) -> None:
    """One of the things that happen to clusters."""
    running = world.running
    topics = list(world.topics())
    topic = chance.choice(topics) if topics else "fresh"
    address = TopicPartition(topic, chance.randrange(max(1, world.partitions(topic))))
    broker = chance.choice(sorted(world.brokers))
    replicas = chance.sample(sorted(world.brokers), 3)

    def delete() -> None:
        world.own_topic(topic)
        if running.ask(events.TopicDeleted(topic)).error == "NONE":
            world.forget_topic(topic)

    def produce() -> None:
        world.own(address)
        running.produce(address, chance.randrange(1, 4), chance.choice(list(Acks)))

    def reassign() -> None:
        world.own(address)
        running.ask(events.Reassigned(address, chance.choice([tuple(replicas), None])))

    def elect() -> None:
        world.own(address)
        running.ask(events.LeadersElected(chance.choice([Election.PREFERRED, Election.UNCLEAN]), (address,)))

    def write() -> None:
        world.own_topic(topic)
        running.ask(events.ConfigWritten(chance.choice([topic, None]), min_isr=chance.choice([1, 2, 3, None])))

    def take_back() -> None:
        world.own_topic(topic)
        running.ask(events.ConfigDeleted(topic, min_isr=True, unclean_leader_election=chance.random() < 0.5))

    def other_config() -> None:
        world.topic_configs.setdefault(topic, {})["retention.ms"] = str(chance.randrange(100))

    deeds: list[tuple[int, Callable[[], object]]] = [
        (4, lambda: running.kill(broker)),
        (6, lambda: running.start(broker)),
        (2, lambda: running.stop(broker)),
        (3, lambda: running.expire(broker)),
        (6, lambda: running.advance(running.now_ms + chance.choice([50, 500, 4000]))),
        (2, lambda: running.sever(broker, chance.choice([CONTROLLER_ID, *replicas]))),
        (2, running.heal),
        (4, produce if topics else write),
        (2, reassign),
        (2, elect),
        (1, write),
        (1, take_back),
        (1, other_config if topics else write),
        (1, lambda: running.ask(events.TopicCreated(f"made-{chance.randrange(5)}", (tuple(replicas),) * 2))),
        (1, delete),
        (1, lambda: running.ask(events.ElrFeature(chance.random() < 0.8))),
        (1, lambda: running.ask(ControllerFailedOver())),
        (1, lambda: running.ask(events.LeadersElected(Election.PREFERRED))),
    ]
    chance.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])[0]()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rules", ["kraft", "elr-4.0", "elr-4.1", "elr-4.3", "kip966-balanced", "kip966-aggressive"])
def test_records_played_back_are_the_cluster(rules: str, seed: int) -> None:
    chance = random.Random(f"{rules}/{seed}")
    world = cluster(rules, (1, 2, 3), (2, 3, 4), brokers=4, topics=3, partitions=4).world
    says_what_the_world_says(world)
    for _ in range(60):
        do_something(world, chance)
        if chance.random() < 0.3:
            says_what_the_world_says(world)
    says_what_the_world_says(world)


def test_records_come_in_the_order_of_kafkas_controller() -> None:
    """A broker is fenced after the partitions that it leaves, and unfenced before those that it leads."""
    world = cluster("elr-4.3").world
    first = world.metadata.end
    world.running.kill(1)
    world.running.expire(1)
    world.running.start(1)
    world.running.advance(world.running.now_ms + 100)
    kinds = [metadata.decode(value)[0] for _, value in records(world.metadata.read(first), first)]
    assert kinds == [
        "PartitionChangeRecord",
        "BrokerRegistrationChangeRecord",
        "RegisterBrokerRecord",
        "BrokerRegistrationChangeRecord",
        "PartitionChangeRecord",
    ]


def test_a_config_that_clears_elrs_says_so_with_kafkas_record() -> None:
    world = cluster("elr-4.3").world
    for broker in (3, 2):
        world.running.kill(broker)
        world.running.expire(broker)
    assert told(world, ORDERS)["elr"] == [2]
    first = world.metadata.end
    world.running.ask(events.ConfigWritten("orders", min_isr=1))
    kinds = [metadata.decode(value)[0] for _, value in records(world.metadata.read(first), first)]
    assert kinds == ["ConfigRecord", "ClearElrRecord"]
    says_what_the_world_says(world)


def test_a_million_partitions_that_are_alike_have_no_records() -> None:
    world = cluster("elr-4.3", topics=10_000, partitions=100, brokers=30).world
    found = image(world.metadata.read(0))
    assert set(found.topics.values()) == {"orders"}
    world.running.kill(1)
    world.running.expire(1)
    assert len(image(world.metadata.read(0)).partitions) == 1


# Fetch.


def fetch(server: SimulatedServer, offset: int = 0, *, node: int = CONTROLLER_ID, **asked: Any) -> Any:
    return wire.ask(server.ports[node], fetch_request(offset, **asked), timeout_s=PATIENCE_S)


def told_by(answer: Any) -> Any:
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return partition


@pytest.mark.parametrize("version", [13, 15, 17, 18])
def test_the_controller_gives_its_log(version: int) -> None:
    with cluster("kip966-balanced") as server:
        power_outage(server)
        returns(server, 1, 2, 3)
        eventually(server, led_by(2))
        found = told_by(fetch(server, version=version))
        end = server.inside(lambda world: world.metadata.end)
        assert (error_name(found.error_code), found.high_watermark) == ("NONE", end)
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (CONTROLLER_ID, 1)
        played = image(bytes(found.records))
        assert [one["elr"] for one in played.partitions.values()] == [[]]
        assert len(played.kinds) == end


def test_the_end_of_the_log_is_that_of_the_quorum() -> None:
    with cluster("elr-4.3") as server:
        asked = DescribeQuorumRequest.TopicData
        one = asked(topic_name="__cluster_metadata", partitions=[asked.PartitionData(partition_index=0)])
        quorum = wire.ask(server.ports[1], DescribeQuorumRequest(version=1, topics=[one]))
        (partition,) = quorum.topics[0].partitions
        found = told_by(fetch(server, partition.high_watermark, epoch=partition.leader_epoch, last_epoch=1))
        assert (error_name(found.error_code), bytes(found.records or b"")) == ("NONE", b"")


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"epoch": -1, "last_epoch": -1}, "INVALID_REQUEST"),
        ({"epoch": -1}, "INVALID_REQUEST"),
        ({"last_epoch": -1}, "INVALID_REQUEST"),
        ({"last_epoch": 2}, "INVALID_REQUEST"),
        ({"offset": -1}, "INVALID_REQUEST"),
        ({"epoch": 0}, "FENCED_LEADER_EPOCH"),
        ({"epoch": 2}, "UNKNOWN_LEADER_EPOCH"),
    ],
)
def test_a_request_that_does_not_fit_is_told_so_for_the_partition(asked: dict[str, Any], error: str) -> None:
    with cluster("elr-4.3") as server:
        answer = fetch(server, **asked)
        assert error_name(answer.error_code) == "NONE"
        found = told_by(answer)
        assert error_name(found.error_code) == error
        assert not found.records
        assert found.current_leader.leader_epoch == 1


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"partition": 1}, "INVALID_REQUEST"),
        ({"version": 12}, "INVALID_REQUEST"),
        ({"topic_id": UUID(int=2)}, "INVALID_REQUEST"),
        ({"cluster_id": "another"}, "INCONSISTENT_CLUSTER_ID"),
    ],
)
def test_a_request_for_something_else_is_refused_whole(asked: dict[str, Any], error: str) -> None:
    with cluster("elr-4.3") as server:
        answer = fetch(server, **asked)
        assert (error_name(answer.error_code), answer.responses) == (error, [])


def test_the_log_is_for_those_that_may_act_for_the_cluster() -> None:
    with cluster("elr-4.3") as server:
        server.inside(lambda world: world.denied.add(Denied("cluster", "CLUSTER_ACTION")))
        assert error_name(fetch(server).error_code) == "CLUSTER_AUTHORIZATION_FAILED"


def test_a_new_controller_has_a_new_epoch_and_the_same_log() -> None:
    with cluster("elr-4.3") as server:
        end = server.inside(lambda world: world.metadata.end)
        server.inside(lambda world: world.running.ask(ControllerFailedOver()))
        server.inside(lambda world: world.running.expire(1))
        assert error_name(told_by(fetch(server, end, last_epoch=1)).error_code) == "FENCED_LEADER_EPOCH"
        found = told_by(fetch(server, end, epoch=2, last_epoch=1))
        ((first, _), *_) = records(bytes(found.records), end)
        assert first == end
        parted = told_by(fetch(server, end + 1, epoch=2, last_epoch=1))
        assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset) == (1, end)


def test_a_fetch_at_the_end_waits_for_the_next_record() -> None:
    with cluster("elr-4.3") as server, ThreadPoolExecutor(1) as pool:
        end = server.inside(lambda world: world.metadata.end)
        waiting = pool.submit(fetch, server, end, last_epoch=1, wait_ms=10_000)
        late = pool.submit(fetch, server, end, last_epoch=1, wait_ms=0)
        assert not waiting.done()
        server.inside(lambda world: world.running.expire(1))
        ((first, value), *_) = records(bytes(told_by(waiting.result()).records), end)
        assert (first, metadata.decode(value)[0]) == (end, "PartitionChangeRecord")
        assert late.result() is not None


def test_a_fetch_whose_time_is_over_is_answered_with_nothing() -> None:
    with cluster("elr-4.3") as server, ThreadPoolExecutor(1) as pool:
        end = server.inside(lambda world: world.metadata.end)
        waiting = pool.submit(fetch, server, end, last_epoch=1, wait_ms=400)
        while not waiting.done():
            server.advance(100)
        found = told_by(waiting.result())
        assert (error_name(found.error_code), found.high_watermark, bytes(found.records or b"")) == ("NONE", end, b"")
