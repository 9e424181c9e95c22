"""Brokers whose log directories are all cordoned (KIP-1066): Kafka 4.4 takes no order of replicas that names one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.model import METADATA_FEATURE, Cluster, ElectionType, Features, Method, Snapshot
from tests.engine.planned import all_heard, asked, decided, designated, election, incident, refusal, with_cluster

_4_3, _4_4 = 30, 33


def _cordoned(snapshot: Snapshot, *brokers: int, software: int = _4_4, others: bool | None = False) -> Snapshot:
    """The snapshot with these cordoned; of the others it is known (or not, with None) that they are not."""
    cluster = snapshot.cluster
    told = tuple(replace(one, cordoned=True if one.id in brokers else others) for one in cluster.brokers)
    features = Features(
        {**(cluster.features.finalized or {}), METADATA_FEATURE: software}, {METADATA_FEATURE: software}
    )
    return with_cluster(snapshot, replace(cluster, brokers=told, features=features))


def test_an_order_that_names_a_dead_cordoned_broker_is_not_planned() -> None:
    """Nobody can take the cordon off: the controller learns of it by heartbeats."""
    found = refusal(_cordoned(incident(), 1), designated(2))
    assert found.reason == (
        "Designating 2 would not make it the leader. Kafka takes no order of the replicas that names broker 1: all its"
        " log directories are cordoned, and that cannot be changed while it is fenced. Start broker 1, so that"
        " the cordon can be taken off; or leave it to Kafka's own unclean election (--election-type unclean), which"
        " needs no order: it elects 3, and loses at least 19 offsets, 4 of them known to be committed; the log of"
        " broker 1 was not read."
    )


def test_an_explanation_with_a_dead_cordoned_broker() -> None:
    decision = decided(_cordoned(all_heard(), 1))
    outcomes = [one for one in decision.elections if one.election is ElectionType.DESIGNATION]
    assert {(one.designate, one.elected) for one in outcomes if one.designate == 2} == {(2, None)}
    assert decision.advice.designate != 2
    assert any(note.startswith("Kafka takes no order of the replicas that names broker 1") for note in decision.notes)


def test_what_needs_no_order_is_planned() -> None:
    """3 comes first of the live replicas: an unclean election elects it as it is."""
    planned = election(_cordoned(incident(), 1), asked(ElectionType.UNCLEAN))
    assert (planned.method, planned.elect) == (Method.UNCLEAN, 3)


@pytest.mark.parametrize("cordoned", [(), (1,), (2,), (1, 2, 3)])
def test_kafka_before_4_4_takes_such_an_order(cordoned: tuple[int, ...]) -> None:
    planned = election(_cordoned(incident(), *cordoned, software=_4_3), designated(2))
    assert (planned.method, planned.order) == (Method.REORDER, (2, 3, 1))
    assert not any("cordon" in warning for warning in planned.warnings)


def test_whether_a_dead_broker_is_cordoned_is_not_known() -> None:
    planned = election(_cordoned(incident(), others=None), designated(2))
    (told,) = [warning for warning in planned.warnings if "cordon" in warning]
    assert told.startswith("Whether broker 1 is cordoned (cordoned.log.dirs) is not known: if so, Kafka refuses")
    assert "--bootstrap-controller" in told


def test_what_is_told_later_fills_what_was_not_known() -> None:
    cluster: Cluster = incident().cluster.with_cordons({2: True})
    assert [broker.cordoned for broker in cluster.brokers] == [None, True, None]
    assert [broker.cordoned for broker in cluster.with_cordons({1: False, 2: False}).brokers] == [False, True, None]


def test_the_cordon_of_a_broker_that_is_back_can_be_taken_off() -> None:
    """What is said of a return is of a broker that runs then, though it does not now."""
    found = _cordoned(all_heard(), 1)
    cleared = tuple(replace(one, elr=(), last_known_elr=()) for one in found.partitions)
    forecasts = decided(replace(found, partitions=cleared)).forecasts
    assert {(one.replica, one.elected, one.then and one.then.elected) for one in forecasts} == {(1, None, 1)}
