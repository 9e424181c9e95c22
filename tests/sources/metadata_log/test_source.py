"""A metadata log as a source: which moment is answered for, and what is not known."""

from __future__ import annotations

import struct
from pathlib import Path
from uuid import UUID

import pytest

from kelr.errors import BadInputError, UsageError
from kelr.lab.simulated.contents import NewRecord, encoded, placed
from kelr.model import BrokerStatus, LogUnavailable, LogUnavailableReason, Selection, select
from kelr.model.cluster import ConfigSource
from kelr.sources.base import take_snapshot
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.replaying import Moment, read_moment
from kelr.sources.metadata_log.source import MetadataLogSource
from tests.metadata_logs import (
    CLUSTER_ID,
    ORDERS,
    START_MS,
    batch,
    checkpoint,
    joined,
    leader_change,
    node_directory,
    partition,
    shrunk,
    story,
    topic,
)

ISRS_AT = {4: (1, 2, 3), 5: (1, 2), 6: (1,), 7: (1,), 8: (1,)}
LEADERS_AT = {4: 1, 5: 1, 6: 1, 7: None, 8: None}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return node_directory(tmp_path / "node", {0: joined(story())})


def at(directory: Path, text: str | None = None) -> MetadataLogSource:
    return MetadataLogSource(open_metadata_log([directory]), None if text is None else read_moment(text))


def first_partition(source: MetadataLogSource) -> tuple[int | None, tuple[int, ...]]:
    (state,) = (state for page in source.pages(select(["orders:0"])) for state in page.partitions)
    return state.leader, state.isr


@pytest.mark.parametrize("offset", ISRS_AT)
def test_an_offset_is_the_state_before_its_record(node: Path, offset: int) -> None:
    source = at(node, str(offset))
    assert first_partition(source) == (LEADERS_AT[offset], ISRS_AT[offset])
    assert source.next_offset == offset
    assert source.taken_at_ms == START_MS + 1000 * max(one for one in (1, 4, 5, 6, 7) if one < offset)
    assert f"metadata log of node 1 at offset {offset}, 2025-10-09T08:53:2" in source.name


def test_an_offset_inside_a_batch(node: Path) -> None:
    source = at(node, "3")
    assert [state.partition for page in source.pages(Selection()) for state in page.partitions] == [0]


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (str(START_MS + 4000), 5),
        (str(START_MS + 4999), 5),
        (str(START_MS + 5000), 6),
        ("2025-10-09T08:53:25Z", 6),
        ("2025-10-09T08:53:25", 6),
        ("2025-10-09 10:53:25+02:00", 6),
        ("2025-10-09T08:53:24.999", 5),
    ],
)
def test_a_time_is_the_state_after_the_last_record_until_then(node: Path, text: str, offset: int) -> None:
    assert at(node, text).next_offset == offset


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("9", "offset 9 is after the metadata log of node 1, which ends at offset 8, 2025-10-09T08:53:27.000Z"),
        ("0", "offset 0 is before the first record of the metadata log of node 1"),
        ("2025-10-09T08:53:28Z", "is after the metadata log of node 1, which ends at offset 8"),
        ("2025-10-09T08:53:19Z", "is before the first record"),
        ("yesterday", "neither an offset of the metadata log nor a time"),
        ("-1", "neither an offset of the metadata log nor a time"),
        ("1969-01-01", "neither an offset of the metadata log nor a time"),
        ("9" * 25, "neither an offset of the metadata log nor a time"),
    ],
)
def test_moments_outside_the_log(node: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        at(node, text)


def test_a_log_that_begins_with_a_checkpoint_says_where(tmp_path: Path) -> None:
    data = checkpoint((topic(), partition(0, isr=(1,)), partition(1)), contained_ms=START_MS + 5000)
    node = node_directory(tmp_path / "n", {6: joined(story()[4:])}, {(6, 1): data})
    assert first_partition(at(node, "6")) == (1, (1,))
    assert at(node, str(START_MS + 5000)).next_offset == 6
    begins = "is before the metadata log of node 1, which begins at offset 6, 2025-10-09T08:53:25.000Z"
    for text in ("5", str(START_MS + 4999)):
        with pytest.raises(UsageError, match=begins):
            at(node, text)


def test_a_moment_where_records_are_missing_is_refused(tmp_path: Path) -> None:
    data = checkpoint((topic(), partition(0, isr=(1,)), partition(1)), contained_ms=START_MS + 6000)
    segments = {0: joined(story()[:2]), 7: joined(story()[5:])}
    node = node_directory(tmp_path / "n", segments, {(7, 1): data})
    assert first_partition(at(node, "4")) == (1, (1, 2, 3))
    assert first_partition(at(node, "7")) == (1, (1,))
    for text in ("5", "6", str(START_MS + 3000)):
        with pytest.raises(UsageError, match="records 4 to 6 of the metadata log of node 1 are missing"):
            at(node, text)


def test_transactions_apply_at_their_end_or_never(tmp_path: Path) -> None:
    def mark(kind: str) -> tuple[str, int, dict[str, object]]:
        return (f"{kind}TransactionRecord", 0, {"name": None} if kind == "Begin" else {})

    log = [
        batch(0, topic(), partition(0)),
        batch(2, mark("Begin"), shrunk(0, isr=(1, 2))),
        batch(4, shrunk(0, isr=(1,))),
        batch(5, mark("End")),
        batch(6, mark("Begin"), shrunk(0, isr=(3,))),
        leader_change(8, 2, [1, 2, 3], epoch=2),
        batch(9, mark("Abort"), epoch=2),
    ]
    node = node_directory(tmp_path / "n", {0: joined(log)})
    for offset, isr in {2: (1, 2, 3), 4: (1, 2, 3), 5: (1, 2, 3), 6: (1,), 8: (1,), 9: (1,), 10: (1,)}.items():
        assert first_partition(at(node, str(offset))) == (1, isr)


def registered(broker: int, epoch: int, **fields: object) -> tuple[str, int, dict[str, object]]:
    end_point = {"name": "PLAINTEXT", "host": f"kafka-{broker}", "port": 9092, "security_protocol": 0}
    feature = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 30 - (broker == 2)}
    known = {
        "broker_id": broker,
        "incarnation_id": ORDERS,
        "broker_epoch": epoch,
        "end_points": [end_point],
        "features": [feature],
        "rack": f"az{broker}",
        "fenced": False,
        "in_controlled_shutdown": False,
        "log_dirs": [],
    }
    return ("RegisterBrokerRecord", 3, known | fields)


def test_what_the_log_tells_and_what_it_does_not(tmp_path: Path) -> None:
    def config(kind: int, name: str, key: str, value: str) -> tuple[str, int, dict[str, object]]:
        return ("ConfigRecord", 0, {"resource_type": kind, "resource_name": name, "name": key, "value": value})

    log = [
        batch(0, ("FeatureLevelRecord", 0, {"name": "metadata.version", "feature_level": 29})),
        batch(1, topic(), partition(0, isr=(1, 2)), topic("payments", UUID(int=78))),
        batch(4, registered(1, 4), registered(2, 5, in_controlled_shutdown=True), registered(3, 6, fenced=True)),
        batch(7, config(2, "orders", "min.insync.replicas", "2"), config(2, "orders", "cleanup.policy", "compact")),
        batch(9, config(2, "orders", "remote.storage.enable", "true"), config(2, "orders", "mirror.name", "west")),
        batch(11, config(4, "", "unclean.leader.election.enable", "true")),
        batch(12, config(4, "", "log.cleanup.policy", "delete"), config(4, "3", "log.cleanup.policy", "compact")),
    ]
    with at(node_directory(tmp_path / "n", {0: joined(log)})) as source:
        snapshot = take_snapshot(source, Selection(), now_ms=source.taken_at_ms or 0, with_logs=lambda _: True)
    cluster = snapshot.cluster
    assert cluster.cluster_id == CLUSTER_ID
    assert [(one.id, one.status, one.host, one.port, one.rack, one.broker_epoch) for one in cluster.brokers] == [
        (1, BrokerStatus.LIVE, "kafka-1", 9092, "az1", 4),
        (2, BrokerStatus.SHUTTING_DOWN, "kafka-2", 9092, "az2", 5),
        (3, BrokerStatus.FENCED, "kafka-3", 9092, "az3", 6),
    ]
    assert cluster.lists_fenced_brokers
    assert cluster.features.elr_enabled is False
    assert cluster.features.supported == {"metadata.version": 30}
    (state,) = snapshot.partitions
    # ELR is off: nobody keeps one, which is not the same as an empty one.
    assert (state.elr, state.last_known_elr, state.offline_replicas) == (None, None, (3,))
    assert snapshot.first_partition_replicas == {"orders": 3}
    assert snapshot.logs[state.address] == tuple(
        LogUnavailable(replica, LogUnavailableReason.NOT_ASKED, "the metadata log says nothing of what replicas hold")
        for replica in (1, 2, 3)
    )
    orders, payments = (source_config for _, source_config in sorted(_configs(tmp_path / "n").items()))
    assert (orders.min_insync_replicas, orders.min_insync_replicas_source) == (2, ConfigSource.TOPIC)
    assert orders.unclean_leader_election_source is ConfigSource.CLUSTER_DEFAULT
    assert (orders.cleanup_policy, orders.error) == (("compact",), None)
    assert (orders.remote_storage, orders.foreign) == (True, "mirror.name=west")
    assert (payments.remote_storage, payments.foreign) == (False, None)
    # In a file, or Kafka's default: nobody can tell. And one broker differs from the others.
    assert (payments.min_insync_replicas, payments.min_insync_replicas_source) == (None, ConfigSource.UNKNOWN)
    assert payments.cleanup_policy is None
    assert payments.error == "min.insync.replicas is not in the metadata log: it may be in the nodes' files"


def _configs(directory: Path) -> dict[str, object]:
    with at(directory) as source:
        return dict(source.topic_configs(["orders", "payments"]))


def test_a_replica_in_a_failed_directory_is_offline(tmp_path: Path) -> None:
    good, bad, unassigned, lost = UUID(int=1000), UUID(int=1001), UUID(int=1), UUID(int=2)
    name, _, fields = partition(0)
    log = [
        batch(0, *(registered(broker, broker - 1, log_dirs=[good]) for broker in (1, 2, 3))),
        batch(3, topic(), (name, 1, fields | {"directories": [good, bad, lost]})),
        batch(5, (name, 1, fields | {"partition_id": 1, "directories": [unassigned, good, good]})),
    ]
    with at(node_directory(tmp_path / "n", {0: joined(log)})) as source:
        states = [state for page in source.pages(Selection()) for state in page.partitions]
    assert [state.offline_replicas for state in states] == [(2, 3), ()]


def test_records_that_nobody_may_pass_over(tmp_path: Path) -> None:
    def raw(offset: int, value: bytes) -> bytes:
        return placed(encoded([NewRecord(START_MS, None, value)]), offset, 1)

    known = [*story(), raw(8, b"\x01\x63\x00" + struct.pack(">q", 1))]
    source = at(node_directory(tmp_path / "a", {0: joined(known)}))
    assert source.warnings == (
        "1 record of an unknown kind (API key 99), version 0, left out: kelr does not know what it says",
    )
    newer = [*story(), raw(8, b"\x01\x05\x09")]
    with pytest.raises(BadInputError, match="1 record of PartitionChangeRecord version 9, which is newer"):
        at(node_directory(tmp_path / "b", {0: joined(newer)}))
    misfit = [*story()[:1], batch(1, shrunk(0))]
    (warning,) = at(node_directory(tmp_path / "c", {0: joined(misfit)})).warnings
    assert "1 record did not fit what the log said before" in warning


def test_a_closed_source_answers_nothing(node: Path) -> None:
    source = at(node)
    source.close()
    with pytest.raises(UsageError, match="is closed"):
        source.cluster()


def test_numbers_are_offsets_or_milliseconds() -> None:
    assert read_moment(" 4711 ") == Moment(offset=4711)
    assert read_moment("999999999999") == Moment(offset=999_999_999_999)
    assert read_moment("1000000000000") == Moment(time_ms=10**12)
