"""Predictions in corners that the six incidents do not reach, each made to happen on a real 4.3.1 cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import ElectionType as Wire
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import AdminClient

from kelr.lab import Acks, Lab, LabSpec
from kelr.lab.produce import produce
from kelr.lab.story import create_topic
from kelr.model import (
    Bounds,
    Decision,
    ElectionType,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicPartition,
    Truncation,
    select,
)
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab that a test may spoil."""
    with Lab.up(LabSpec(), tmp_path / "lab") as lab:
        yield lab


def explain(lab: Lab, topic: str) -> tuple[Snapshot, Decision]:
    source = LiveSource(ConnectionSettings.read(lab.bootstrap_servers))
    try:
        (page,) = decide_partitions(source, select([topic]), clock_ms=lambda: 0)
    finally:
        source.close()
    (decision,) = page.decisions
    return page.snapshot, decision


def logs_of(snapshot: Snapshot, topic: str) -> Mapping[int, tuple[int | None, int]]:
    answers = snapshot.logs[TopicPartition(topic, 0)]
    return {answer.replica: (answer.log_start, answer.log_end) for answer in answers if isinstance(answer, ReplicaLog)}


def send(lab: Lab, topic: str, batches: int, acks: Acks) -> None:
    produce(lab.bootstrap_servers, topic, (0,), batches=batches, records=5, acks=acks, label="corner")


def without_3(lab: Lab, topic: str) -> None:
    """Replicas [3, 1, 2]: 3 misses what 1 and 2 commit, then 2 and 1 are killed, and 2 and 3 come back."""
    create_topic(lab, topic, [[3, 1, 2]], {})
    lab.wait_partitions(topic, "all in sync", lambda state: len(state.isr) == 3)
    send(lab, topic, 4, Acks.ALL)
    lab.kill(3)
    lab.wait_partitions(topic, "3 is out", lambda state: state.leader == 1 and 3 not in state.isr)
    send(lab, topic, 4, Acks.ALL)


def admin_of(lab: Lab) -> AdminClient:
    """A new client each time: one that is kept may wait for a broker that has died since."""
    return AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})


def kill_the_rest(lab: Lab, topic: str) -> None:
    lab.kill(2)
    lab.wait_partitions(topic, "1 alone", lambda state: state.isr == (1,))
    lab.kill(1)
    lab.start(2, wait=False)
    lab.start(3, wait=False)
    lab.wait_unfenced(2, 3)
    lab.wait_partitions(topic, "leaderless", lambda state: state.leader is None and state.elr == (1,))


def test_logs_whose_common_epochs_are_gone(healthy_43: Lab) -> None:
    """Retention took epoch 0 from the better log: what the election loses is still counted, and comes true."""
    lab, topic = healthy_43, "retention"
    without_3(lab, topic)
    admin = admin_of(lab)
    admin.delete_records([WirePartition(topic, 0, 30)])[WirePartition(topic, 0)].result(30)
    lab.wait_until("2 has dropped the records", lambda: logs_of(explain(lab, topic)[0], topic).get(2) == (30, 40))
    # A clean restart saves the log's start, which a broker writes down once a minute only.
    lab.stop(2)
    lab.start(2)
    lab.wait_partitions(topic, "2 is back in sync", lambda state: set(state.isr) == {1, 2})
    kill_the_rest(lab, topic)
    snapshot, decision = explain(lab, topic)
    assert logs_of(snapshot, topic) == {3: (0, 20), 2: (30, 40)}
    unclean = next(o for o in decision.elections if o.election is ElectionType.UNCLEAN)
    assert unclean.elected == 3
    assert unclean.loss is not None
    assert unclean.loss.total == Bounds(10, None)
    assert unclean.loss.lost_ranges == ((30, 39),)
    assert unclean.loss.truncations == (Truncation(2, 20, 10),)
    admin = admin_of(lab)
    admin.elect_leaders(Wire.UNCLEAN, [WirePartition(topic, 0)]).result(30)
    lab.wait_partitions(topic, "3 leads with 2", lambda state: state.leader == 3 and set(state.isr) == {2, 3})
    assert logs_of(explain(lab, topic)[0], topic)[2][1] == 20


def test_an_unclean_setting_in_the_brokers_files_alone_elects_nobody(own_lab: Lab) -> None:
    """The controller's file says false and decides, whatever the brokers' files say."""
    lab, topic = own_lab, "whose-setting"
    # 2 and 3, which are live when nobody is elected, start after this.
    for broker in lab.brokers:
        with Path(lab.directory, f"broker-{broker}", "server.properties").open("a") as file:
            file.write("\nunclean.leader.election.enable=true\n")
    without_3(lab, topic)
    kill_the_rest(lab, topic)
    snapshot, decision = explain(lab, topic)
    assert snapshot.configs[topic].unclean_leader_election is True
    assert decision.elected is None
    assert decision.situation is Situation.WAITING_FOR_ELR
    assert any("the controller decides by its own file" in note for note in decision.notes)
    lab.start(1)
    lab.wait_partitions(topic, "1 leads", lambda state: state.leader == 1)
