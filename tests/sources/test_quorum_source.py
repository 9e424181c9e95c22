"""A source beside a metadata log: whose quorums it gives, and when it says that the log does not reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.errors import RefusedError
from kelr.model import Broker, BrokerStatus, Cluster, PartitionState, Selection, Snapshot, TopicPartition
from kelr.replay import records as rec
from kelr.replay.records import RecordBatch
from kelr.sources.base import Progress, take_snapshot
from kelr.sources.collected import CollectedSource
from kelr.sources.memory import MemorySource
from kelr.sources.quorum_source import QuorumSource, without_log
from kelr.sources.snapshot_file import SnapshotFileSource, read_snapshot, save_snapshot, write_snapshot
from tests.replay.written import TOPIC_ID, made, registered

ORDERS = TopicPartition("orders", 0)
BEGUN = PartitionState("orders", 0, 1, 0, (1, 2, 3), (1, 2, 3), (), (), partition_epoch=0, topic_id=TOPIC_ID)
NOW = replace(BEGUN, leader=None, leader_epoch=1, isr=(), elr=(1, 2), last_known_elr=(1,), partition_epoch=None)


class Log:
    """A metadata log in memory."""

    name = "metadata log of node 1"
    warnings: Sequence[str] = ()

    def __init__(self, *later: rec.MetadataRecord, cluster_id: str | None = "test") -> None:
        self.cluster_id = cluster_id
        self.read = 0
        self.records: list[rec.MetadataRecord] = [
            rec.FeatureLevel("eligible.leader.replicas.version", 1),
            rec.ConfigSet(4, "", "min.insync.replicas", "2"),
            *(registered(broker, broker, fenced=False) for broker in (1, 2, 3)),
            rec.TopicMade("orders", TOPIC_ID),
            made(BEGUN),
            rec.PartitionChanged(TOPIC_ID, 0, isr=(1, 2)),
            rec.PartitionChanged(TOPIC_ID, 0, isr=(1,), elr=(2,)),
            *later,
        ]

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:  # noqa: ARG002 - as a reader takes it
        self.read += 1
        for offset, record in enumerate(self.records):
            yield RecordBatch(offset, 1, 1_700_000_000_000, (record,))


NOBODY = rec.PartitionChanged(TOPIC_ID, 0, leader=rec.NO_LEADER, isr=(), elr=(1, 2), last_known_elr=(1,))


def source_of(state: PartitionState = NOW, log: Log | None = None, *, follows: bool = False) -> QuorumSource:
    cluster = Cluster("test", (Broker(3, BrokerStatus.LIVE),))
    return QuorumSource(MemorySource(Snapshot(0, cluster, (state,))), log or Log(NOBODY), follows=follows)


def quorum_of(source: QuorumSource):  # type: ignore[no-untyped-def]
    return take_snapshot(source, Selection(), now_ms=0).quorums.get(ORDERS)


def test_a_metadata_log_tells_how_brokers_are_registered() -> None:
    copied, live = source_of().registrations(), source_of(follows=True).registrations()
    assert {one: broker.broker_epoch for one, broker in copied.brokers.items()} == {1: 1, 2: 2, 3: 3}
    assert copied.brokers[1].registered_by_ms == 1_700_000_000_000
    assert (copied.as_of_ms, live.as_of_ms, live.brokers) == (1_700_000_000_000, None, copied.brokers)


def test_a_snapshot_carries_the_quorum_and_a_file_keeps_it(tmp_path: Path) -> None:
    source = source_of()
    taken = take_snapshot(source, Selection(), now_ms=0)
    quorum = taken.quorums[ORDERS]
    assert (quorum.members, quorum.last_known_elr, quorum.doubt) == ((1, 2), (), None)
    write_snapshot(taken, tmp_path / "one.kelr")
    assert read_snapshot(tmp_path / "one.kelr").quorums == taken.quorums
    save_snapshot(source, Selection(), tmp_path / "two.kelr", now_ms=0)
    with SnapshotFileSource(tmp_path / "two.kelr") as saved:
        assert take_snapshot(saved, Selection(), now_ms=0).quorums == taken.quorums
        assert saved.quorums([NOW]) == taken.quorums
    assert take_snapshot(CollectedSource(source, ()), Selection(), now_ms=0).quorums == taken.quorums


def test_the_log_is_read_once() -> None:
    log = Log(NOBODY)
    source = source_of(log=log)
    quorum_of(source)
    source.forget()
    quorum_of(source)
    assert log.read == 1


def test_a_log_that_grows_is_read_again_only_where_it_ends_too_early() -> None:
    log = Log()
    source = source_of(log=log, follows=True)
    assert "before the partition's, 1" in quorum_of(source).doubt
    log.records.append(NOBODY)
    source.forget()
    assert quorum_of(source).doubt is None
    source.forget()
    assert quorum_of(source).doubt is None
    assert log.read == 2


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (replace(NOW, leader_epoch=2), "in leader epoch 1: before the partition's, 2"),
        (replace(NOW, leader_epoch=0), "and the state is an older one, of 0"),
        (replace(NOW, isr=(3,)), "before the partition's last change, of its isr"),
        (replace(NOW, leader=3, isr=(3,)), "before the partition's last change, of its leader"),
        (replace(NOW, replicas=(1, 2, 4)), "before the partition's last change, of its replicas"),
    ],
    ids=["newer", "older", "isr", "leader", "replicas"],
)
def test_a_log_that_does_not_reach_says_so(state: PartitionState, why: str) -> None:
    assert why in quorum_of(source_of(state)).doubt


def test_of_a_partition_that_is_led_a_copy_may_lack_who_came_and_went() -> None:
    """Broker 2 may have come back, let 3 in, and left for it again: leader, epoch and ISR are the same then."""
    led = replace(BEGUN, isr=(1,), elr=(), partition_epoch=None)
    assert "let into the ISR and out again since" in quorum_of(source_of(led, Log())).doubt
    assert quorum_of(source_of(led, Log(), follows=True)).doubt is None
    healthy = replace(BEGUN, partition_epoch=None)
    whole = rec.PartitionChanged(TOPIC_ID, 0, isr=(1, 2, 3), elr=())
    assert quorum_of(source_of(healthy, Log(whole))).doubt is None


def test_another_order_of_the_replicas_is_no_other_partition() -> None:
    assert quorum_of(source_of(replace(NOW, replicas=(3, 1, 2)))).doubt is None


def test_who_has_fallen_out_of_the_elr_since_counts_as_restarted() -> None:
    quorum = quorum_of(source_of(replace(NOW, elr=(1,))))
    assert (quorum.members, quorum.restarted, quorum.last_known_elr, quorum.doubt) == ((1, 2), (2,), (2,), None)


def test_a_topic_of_another_id_has_no_quorum() -> None:
    assert quorum_of(source_of(replace(NOW, topic_id=TOPIC_ID[:-1] + "B"))) is None


def test_a_log_of_another_cluster_is_refused() -> None:
    with pytest.raises(RefusedError, match="is of cluster other, and this is cluster test"):
        quorum_of(source_of(log=Log(NOBODY, cluster_id="other")))
    assert quorum_of(source_of(log=Log(NOBODY, cluster_id=None))).doubt is None


def test_what_is_changed_is_the_source_beneath() -> None:
    source = source_of()
    assert without_log(source) is source.beneath
    assert without_log(source.beneath) is source.beneath
