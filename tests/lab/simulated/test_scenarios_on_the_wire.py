"""Scenario files on a server: they print what they print on paper, and clients see the states that they end in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.engine import decide
from kelr.model import BrokerStatus, PartitionState, ReplicaLog, Selection, Snapshot
from kelr.simulation import SimulatedCluster
from kelr.simulation.language import ScenarioError, parse, render, run
from kelr.simulation.session import Session
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.lab.simulated.rehearse import NOT_ON_THE_WIRE, Rehearsal
from tests.scenarios.test_scenarios import FILES

NOBODY_TO_ASK = frozenset[str]()
"""Scenarios at whose end no broker's process runs."""
NO_TOPICS_OF_KAFKAS = frozenset({"designation", "needs-unclean-recovery"})
"""Scenarios with a topic that has a partition 1 and no partition 0."""
TEXTS = {file.stem: file.read_text(encoding="utf-8") for file in FILES}


def topics_with_gaps(cluster: SimulatedCluster) -> tuple[str, ...]:
    """Topics of which a scenario has put some partitions in place and not those before them, sorted.

    No topic of Kafka's is so, and no client can be told of one: a server of these cannot be asked about its partitions.
    """
    counts: dict[str, int] = {}
    last: dict[str, int] = {}
    for address in cluster.controller.partitions:
        counts[address.topic] = counts.get(address.topic, 0) + 1
        last[address.topic] = max(last.get(address.topic, 0), address.partition)
    return tuple(sorted(topic for topic, count in counts.items() if count <= last[topic]))


def read(rehearsal: Rehearsal, cluster: SimulatedCluster) -> Snapshot:
    """What kelr reads over the wire, from the brokers whose process runs."""
    ports = rehearsal.server.ports
    up = [broker for broker in sorted(cluster.controller.brokers) if broker not in cluster.down]
    settings = ConnectionSettings.read(",".join(f"127.0.0.1:{ports[broker]}" for broker in up), timeout_s=20)
    with LiveSource(settings) as source:
        return take_snapshot(source, Selection(), now_ms=0, with_logs=lambda _state: True, lineage=True)


def recorded(state: PartitionState) -> object:
    return (
        *(state.address, state.leader, state.leader_epoch, state.replicas, state.isr),
        *(state.elr or (), state.last_known_elr or (), state.adding or (), state.removing or ()),
    )


def heard(cluster: SimulatedCluster, snapshot: Snapshot) -> dict[object, object]:
    """Every log of a broker that clients reach, as it was read."""
    return {
        (address, one.replica): (one.log_end, one.last_epoch, one.high_watermark, one.log_start, one.lineage)
        for address, answers in snapshot.logs.items()
        for one in answers
        if isinstance(one, ReplicaLog) and cluster.running(one.replica)
    }


def held(cluster: SimulatedCluster) -> dict[object, object]:
    """The same as the cluster on paper has it."""
    return {
        (address, replica): (log.end, log.last_epoch, log.high_watermark, log.start, log.lineage)
        for address, replication in cluster.replication.items()
        for replica, log in replication.logs.items()
        if cluster.running(replica) and replica not in (cluster.controller.partitions[address].offline_replicas or ())
    }


@pytest.mark.parametrize("name", TEXTS)
def test_a_scenario_ends_over_the_wire_as_it_ends_on_paper(name: str) -> None:
    scenario = parse(TEXTS[name])
    session = Session()
    on_paper = render(scenario, run(scenario, session.perform))
    cluster = session.cluster
    assert cluster is not None
    with Rehearsal(scenario) as rehearsal:
        assert render(scenario, run(scenario, rehearsal.perform)) == on_paper
        assert rehearsal.cluster == cluster
        if set(cluster.controller.brokers) <= cluster.down or topics_with_gaps(cluster):
            assert name in NOBODY_TO_ASK or name in NO_TOPICS_OF_KAFKAS
            return
        snapshot = read(rehearsal, cluster)
    assert not rehearsal.server.failures
    live = {id_ for id_, known in cluster.controller.brokers.items() if not known.fenced}
    assert {broker.id for broker in snapshot.cluster.brokers if broker.status is BrokerStatus.LIVE} == live
    expected = [state for _, state in sorted(cluster.controller.partitions.items())]
    assert list(map(recorded, snapshot.partitions)) == list(map(recorded, expected))
    assert heard(cluster, snapshot) == held(cluster)
    if rehearsal.without_wire:
        return  # what was told by hand counts in a decision on paper, and nobody told it over the wire
    rules, paper = cluster.controller.rules, cluster.as_snapshot()
    for read_state, state in zip(snapshot.partitions, paper.partitions, strict=True):
        by_wire, by_hand = decide(snapshot, read_state, rules), decide(paper, state, rules)
        if cluster.replication[state.address].written and not _shutting_down(cluster):
            assert (by_wire.situation, by_wire.elected, by_wire.waits_for) == (
                by_hand.situation,
                by_hand.elected,
                by_hand.waits_for,
            )
            assert [one.elected for one in by_wire.elections] == [one.elected for one in by_hand.elections]


def _shutting_down(cluster: SimulatedCluster) -> bool:
    """No request of released Kafka tells which brokers are in controlled shutdown."""
    return any(known.in_controlled_shutdown and not known.fenced for known in cluster.controller.brokers.values())


def test_the_only_directive_without_a_meaning_on_the_wire_is_named_with_its_reason() -> None:
    told = {name for name, text in TEXTS.items() if any(line.startswith("log ") for line in text.splitlines())}
    named = {name for name in TEXTS if Rehearsal(parse(TEXTS[name])).without_wire}
    assert named == told
    assert all(reason.endswith("holds") for reason in NOT_ON_THE_WIRE.values())


def test_a_scenario_without_a_directive_cannot_be_rehearsed() -> None:
    with pytest.raises(ScenarioError, match="nothing to rehearse"):
        Rehearsal(parse("# only a story\n"))


def test_an_error_is_told_as_on_paper() -> None:
    scenario = parse("cluster brokers=1,2\ntopic orders replicas=1,2\nunfence 3\n")
    with Rehearsal(scenario) as rehearsal, pytest.raises(ScenarioError, match="there is no broker 3"):
        run(scenario, rehearsal.perform)


def test_every_shipped_scenario_is_among_them() -> None:
    assert {file.parent.name for file in map(Path, FILES)} == {"scenarios"}
    assert len(TEXTS) == len(FILES)
