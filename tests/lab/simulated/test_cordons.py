"""Cordoned brokers (KIP-1066) in the simulated lab, in the words of Kafka 4.4.0: tests/cluster/test_cordons.py."""

from __future__ import annotations

import pytest

from kelr.lab.simulated.handlers.topics import dealt
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition
from tests.lab.simulated.asking import ask, name, world
from tests.lab.simulated.on_record import check_replay, replayed
from tests.lab.simulated.test_configs import BROKER, DELETE, SET, alter
from tests.lab.simulated.test_reassignments import alter as reassign
from tests.lab.simulated.test_reassignments import errors

AT = TopicPartition("orders", 0)
REFUSED = (
    "INVALID_REPLICA_ASSIGNMENT",
    "The manual partition assignment includes broker 3, but all its log directories are cordoned.",
)
TAKEN = ("NONE", None)
CORDONED = "cordoned.log.dirs"


def _cordon(cluster: World, broker: int, value: str | None = "*") -> None:
    change = (CORDONED, DELETE if value is None else SET, value)
    (result,) = ask(cluster, alter((BROKER, str(broker), [change])), node=broker).responses
    assert name(result.error_code) == "NONE"


def _ordered(cluster: World, *replicas: int) -> tuple[str, str | None]:
    return errors(ask(cluster, reassign({AT: replicas})))[AT]


def _on_record(cluster: World) -> dict[int, bool]:
    """As the metadata log has it."""
    return {id_: one.cordoned for id_, one in replayed(cluster.metadata.read(0, 1 << 30)).brokers.items()}


def test_an_order_that_names_a_cordoned_broker_is_refused_until_it_is_uncordoned() -> None:
    cluster = world((1, 2, 3))
    _cordon(cluster, 3)
    assert _on_record(cluster) == {1: False, 2: False, 3: True}
    assert _ordered(cluster, 2, 1, 3) == REFUSED
    assert _ordered(cluster, 2, 1) == TAKEN  # which removes the replica
    assert _ordered(cluster, 2, 1, 3) == REFUSED
    _cordon(cluster, 3, "")
    assert _ordered(cluster, 2, 1, 3) == TAKEN
    _cordon(cluster, 3, None)
    assert _on_record(cluster) == {1: False, 2: False, 3: False}


def test_a_broker_that_died_cordoned_stays_so_and_what_is_written_then_counts_once_it_is_back() -> None:
    cluster = world((1, 2, 3))
    running = cluster.running
    _cordon(cluster, 3)
    running.kill(3)
    running.advance(running.now_ms + 10_000)
    assert _ordered(cluster, 2, 1, 3) == REFUSED
    running.cordon(3, cordoned=False)
    assert _ordered(cluster, 2, 1, 3) == REFUSED
    running.start(3)
    assert _ordered(cluster, 2, 1, 3) == TAKEN
    check_replay(cluster, {(BROKER, "", "min.insync.replicas"): "2", (BROKER, "3", CORDONED): "*"})


def test_a_new_incarnation_tells_of_its_cordon_again() -> None:
    cluster = world((1, 2, 3))
    _cordon(cluster, 3)
    cluster.running.stop(3)
    cluster.running.start(3)
    assert _on_record(cluster)[3]
    assert _ordered(cluster, 2, 1, 3) == REFUSED


def test_a_broker_that_the_controller_does_not_hear() -> None:
    cluster = world((1, 2, 3))
    cluster.running.pause(3)
    cluster.running.cordon(3, cordoned=True)
    assert _ordered(cluster, 2, 1, 3) == TAKEN
    cluster.running.go_on(3)
    assert _ordered(cluster, 1, 2, 3) == REFUSED


def test_the_default_of_all_brokers_and_where_new_replicas_go() -> None:
    cluster = world((1, 2, 3))
    (result,) = ask(cluster, alter((BROKER, "", [(CORDONED, SET, "*")]))).responses
    assert name(result.error_code) == "NONE"
    _cordon(cluster, 1, "")
    assert _on_record(cluster) == {1: False, 2: True, 3: True}
    assert dealt(cluster, 0, 2, 1) == [(1,), (1,)]


@pytest.mark.parametrize("rules", ["elr-4.0", "elr-4.1"])
def test_older_software_knows_no_cordons(rules: str) -> None:
    cluster = world((1, 2, 3), rules=rules)
    _cordon(cluster, 3)
    assert _ordered(cluster, 2, 1, 3) == TAKEN
