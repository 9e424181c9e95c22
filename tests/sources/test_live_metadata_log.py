"""The metadata log from a quorum of fakes: only what is committed, nothing left out, whoever leads."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import ConnectError, KelrError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.replay.records import RecordBatch, SnapshotBegins, SnapshotEnds
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import active_controller
from kelr.sources.live.metadata_log import LiveMetadataLog, oldest_epoch
from kelr.sources.live.metadata_requests import SnapshotId, describe_controllers, fetch_metadata, fetch_snapshot
from kelr.sources.live.transport import Failure, FailureKind, Request
from tests import kafka_python
from tests.metadata_logs import START_MS, batch, checkpoint, leader_change, partition, shrunk, story, topic
from tests.sources.fake_quorum import FakeControllers, FakeQuorum
from tests.still_ground import StillGround

SETTINGS = ConnectionSettings((("localhost", 9100),), timeout_s=0.3)
THREE = (100, 101, 102)


def reader(quorum: FakeQuorum, *bootstrap: int, cluster_id: str | None = None) -> LiveMetadataLog:
    return LiveMetadataLog(
        SETTINGS, cluster_id=cluster_id, connect=lambda _settings: FakeControllers(quorum, bootstrap or None)
    )


def offsets(batches: Iterator[RecordBatch] | list[RecordBatch]) -> list[tuple[int, int]]:
    return [(one.base_offset, one.next_offset) for one in batches]


WHOLE = [(0, 1), (1, 4), (4, 5), (5, 6), (6, 7), (7, 8)]


@pytest.mark.parametrize("most_bytes", [1, 300, 1 << 20])
def test_all_that_is_committed_is_read_in_however_many_answers(most_bytes: int) -> None:
    quorum = FakeQuorum(story(), most_bytes=most_bytes)
    counted: list[tuple[int, int]] = []
    with reader(quorum) as log:
        assert offsets(log.batches(lambda done, total: counted.append((done, total)))) == WHOLE
        assert (log.cluster_id, log.committed, log.warnings) == ("the-cluster", 8, [])
    assert counted[-1] == (8, 8)


@pytest.mark.parametrize(("high_watermark", "read"), [(8, 6), (7, 5), (6, 4), (4, 2), (3, 1), (1, 1), (0, 0)])
def test_what_is_not_committed_is_not_told(high_watermark: int, read: int) -> None:
    with reader(FakeQuorum(story(), high_watermark=high_watermark)) as log:
        found = list(itertools.islice(log.follow(), read))
        assert offsets(found) == WHOLE[:read]
        assert all(one.next_offset <= high_watermark for one in found)


def test_following_tells_each_batch_once_it_is_committed() -> None:
    quorum = FakeQuorum(story(), high_watermark=5)
    with reader(quorum) as log:
        assert offsets(log.batches()) == WHOLE[:3]
        following = log.follow()
        quorum.high_watermark = 6
        assert offsets([next(following)]) == WHOLE[3:4]
        quorum.log.append(batch(8, shrunk(1, isr=(2,))))
        quorum.high_watermark = 9
        assert offsets(itertools.islice(following, 3)) == [*WHOLE[4:], (8, 9)]


def test_without_a_high_watermark_nothing_is_known_to_be_committed() -> None:
    with reader(FakeQuorum(story(), high_watermark=-1)) as log, pytest.raises(ConnectError, match="no high watermark"):
        list(log.batches())


# Whoever leads.


@pytest.mark.parametrize("knows_peers", [True, False])
@pytest.mark.parametrize("leader", THREE)
@pytest.mark.parametrize("epoch", [1, 77])
def test_any_controller_leads_to_the_leader(leader: int, epoch: int, knows_peers: bool) -> None:
    quorum = FakeQuorum(story(), controllers=THREE, leader=leader, epoch=epoch, knows_peers=knows_peers)
    with reader(quorum, 101) as log:
        assert offsets(log.batches()) == WHOLE


def test_a_leader_whose_address_nobody_tells_is_found_among_the_servers_that_were_named() -> None:
    quorum = FakeQuorum(story(), controllers=THREE, leader=102, knows_peers=False, endpoints=False)
    with reader(quorum, *THREE) as log:
        assert offsets(log.batches()) == WHOLE


def test_a_leader_whose_own_address_leads_nowhere_is_reached_by_the_one_that_was_named() -> None:
    """Controllers behind port forwarding: the addresses that they tell of one another are of no use here."""
    quorum = FakeQuorum(story(), controllers=THREE, leader=102, knows_peers=False)
    controllers = FakeControllers(quorum, THREE)
    exchange = controllers.exchange

    def forwarded(node: int | str, request: Any, *, timeout_s: float | None = None) -> Any:
        if isinstance(node, int):
            return Failure(FailureKind.UNREACHABLE, "unknown host")
        return exchange(node, request, timeout_s=timeout_s)

    controllers.exchange = forwarded  # type: ignore[method-assign]
    with LiveMetadataLog(SETTINGS, connect=lambda _settings: controllers) as log:
        assert offsets(log.batches()) == WHOLE


def test_the_next_leader_goes_on_where_the_last_one_ended() -> None:
    quorum = FakeQuorum(story()[:3], controllers=THREE, most_bytes=1)
    with reader(quorum, *THREE) as log:
        following = log.follow()
        assert offsets(itertools.islice(following, 3)) == WHOLE[:3]
        quorum.log += [leader_change(5, 101, THREE, epoch=4), batch(6, shrunk(0, isr=(1,)), epoch=4)]
        quorum.dead, quorum.leader, quorum.epoch = {100}, 101, 4
        assert [(one.base_offset, one.epoch) for one in itertools.islice(following, 2)] == [(5, 4), (6, 4)]
        last = quorum.asked[-1]
        assert (last[0], last[2]["last_fetched_epoch"], last[2]["current_leader_epoch"]) == (101, 4, 4)


def test_a_node_that_lags_behind_the_quorum_does_not_take_the_reading_back() -> None:
    """A controller that has not heard of the election says that nobody is at this epoch yet."""
    quorum = FakeQuorum(story(), controllers=(100, 101), leader=101, epoch=5)
    with reader(quorum, 100, 101) as log:
        assert offsets(log.batches()) == WHOLE

        def behind(there: FakeQuorum, node: int, _name: str) -> None:
            there.epoch = 3 if node == 100 else 5

        quorum.before = behind
        quorum.log.append(batch(8, shrunk(1, isr=(2,)), epoch=5))
        assert offsets([next(log.follow())]) == [(8, 9)]
        epochs = [fields["current_leader_epoch"] for _, _, fields in quorum.asked]
        assert epochs == sorted(epochs)


def test_nobody_leads() -> None:
    began = time.monotonic()
    with (
        reader(FakeQuorum(story(), controllers=THREE, leader=-1), *THREE) as log,
        pytest.raises(ConnectError, match=r"no controller that leads the quorum answered within 0\.3 s"),
    ):
        list(log.batches())
    assert time.monotonic() - began < 5


def test_all_controllers_hang() -> None:
    hanging = Failure(FailureKind.TIMED_OUT, "no answer in time")
    quorum = FakeQuorum(story(), before=lambda _quorum, _node, name: hanging if name == "Fetch" else None)
    with reader(quorum) as log, pytest.raises(ConnectError, match="no answer in time"):
        list(log.batches())


@pytest.mark.parametrize(
    ("quorum", "error", "words"),
    [
        (FakeQuorum(story(), unauthorized=frozenset({"Fetch"})), NotAuthorizedError, "it needs CLUSTER_ACTION"),
        (
            FakeQuorum(story(), cluster_id="another"),
            RefusedError,
            "cluster the-cluster is meant, and .* of cluster another",
        ),
        (
            FakeQuorum(story(), cluster_id="another", unauthorized=frozenset({"DescribeCluster"})),
            RefusedError,
            "cluster the-cluster is meant, and this controller is of another one",
        ),
        (FakeQuorum(story(), are_brokers=True), UnsupportedError, "is a broker's listener"),
        (
            FakeQuorum(
                story(),
                before=lambda _quorum, _node, name: (
                    Failure(FailureKind.UNSUPPORTED, "does not support Fetch") if name == "Fetch" else None
                ),
            ),
            UnsupportedError,
            "does not serve its metadata log",
        ),
    ],
)
def test_what_no_other_controller_would_answer_otherwise(
    quorum: FakeQuorum, error: type[KelrError], words: str
) -> None:
    with reader(quorum, cluster_id="the-cluster") as log, pytest.raises(error, match=words) as raised:
        list(log.batches())
    assert raised.value.next_step


def test_the_cluster_is_unknown_where_it_is_not_told() -> None:
    with reader(FakeQuorum(story(), unauthorized=frozenset({"DescribeCluster"}))) as log:
        assert log.cluster_id is None
        assert offsets(log.batches()) == WHOLE


# Snapshots.


def state(isr: tuple[int, ...]) -> bytes:
    return checkpoint((topic(),), (partition(0, isr=isr), partition(1)), contained_ms=START_MS + 7)


def shortened(**more: Any) -> FakeQuorum:
    """A log that begins at offset 6, in epoch 4; the oldest snapshot is of epoch 3."""
    batches = [
        batch(offset, shrunk(0, isr=(1, offset % 2 + 2)), epoch=epoch) for offset, epoch in ((6, 4), (7, 4), (8, 9))
    ]
    return FakeQuorum(
        batches, epoch=9, snapshots={(6, 3): state((1,)), (7, 4): state((1, 2)), (8, 4): state((1, 3))}, **more
    )


def test_a_log_that_has_lost_its_beginning_starts_with_the_oldest_snapshot() -> None:
    with reader(shortened()) as log:
        found = list(log.batches())
        assert log.warnings == []
    inside = [one for one in found if one.of_checkpoint]
    assert isinstance(inside[0].records[0], SnapshotBegins)
    assert isinstance(inside[-1].records[-1], SnapshotEnds)
    assert {(one.checkpoint_end, one.timestamp_ms) for one in inside} == {(6, START_MS + 7)}
    assert offsets(found[len(inside) :]) == [(6, 7), (7, 8), (8, 9)]


@given(oldest=st.integers(0, 10_000), above=st.integers(0, 10_000))
def test_the_epoch_of_the_oldest_snapshot_is_found(oldest: int, above: int) -> None:
    asked: list[int] = []

    def answered_by_snapshot(epoch: int) -> bool:
        asked.append(epoch)
        return epoch < oldest

    assert oldest_epoch(answered_by_snapshot, oldest + above) == oldest
    assert len(asked) <= 15


def test_a_whole_log_is_read_from_a_controller_that_answers_offset_0_with_a_snapshot() -> None:
    quorum = FakeQuorum(story(), snapshots={(5, 1): state((1,))})
    quorum.log[0] = leader_change(0, 100, [100])
    with reader(quorum) as log:
        assert offsets(log.batches()) == WHOLE[1:]
        assert "the first record of the metadata log" in log.warnings[0]
    wide = FakeQuorum([batch(0, topic(), partition(0)), batch(2, shrunk(0))], snapshots={(2, 1): state((1,))})
    with reader(wide) as log:
        assert offsets(log.batches()) == [(0, 2), (2, 3)]
        assert log.warnings == []


@pytest.mark.parametrize("piece_bytes", [1, 61, 100, 10_000])
def test_a_snapshot_comes_in_pieces(piece_bytes: int) -> None:
    quorum = shortened(piece_bytes=piece_bytes)
    with reader(quorum) as log, reader(shortened()) as whole:
        assert list(log.batches()) == list(whole.batches())
    positions = [fields["position"] for _, name, fields in quorum.asked if name == "FetchSnapshot"]
    assert positions == list(range(0, len(quorum.snapshots[6, 3]), piece_bytes))


def test_a_snapshot_is_fetched_anew_from_the_next_leader() -> None:
    """Its snapshot of the same name says the same, and need not have the same bytes."""
    quorum = shortened(controllers=THREE, piece_bytes=50)
    seen: list[int] = []

    def falls(there: FakeQuorum, node: int, name: str) -> None:
        if name == "FetchSnapshot":
            seen.append(node)
            if len(seen) == 3:
                there.dead, there.leader, there.epoch = {100}, 102, 12
                there.snapshots[6, 3] = checkpoint((topic(), partition(1), partition(0, isr=(3,))), contained_ms=5)

    quorum.before = falls
    with reader(quorum, *THREE) as log:
        found = list(log.batches())
    (state_of_topic,) = (one for one in found if one.of_checkpoint and len(one.records) == 3)
    assert [getattr(record, "isr", None) for record in state_of_topic.records] == [None, (1, 2, 3), (3,)]
    assert {one.timestamp_ms for one in found if one.of_checkpoint} == {5}
    positions = [fields["position"] for node, name, fields in quorum.asked if name == "FetchSnapshot" and node == 102]
    assert 0 in positions


def test_a_snapshot_that_is_deleted_meanwhile_gives_way_to_the_next() -> None:
    quorum = shortened()

    def deleted(there: FakeQuorum, _node: int, name: str) -> None:
        if name == "FetchSnapshot" and (6, 3) in there.snapshots:
            del there.snapshots[6, 3], there.log[0]

    quorum.before = deleted
    with reader(quorum) as log:
        found = list(log.batches())
    assert {one.checkpoint_end for one in found if one.of_checkpoint} == {7}
    assert offsets([one for one in found if not one.of_checkpoint]) == [(7, 8), (8, 9)]


def test_a_log_that_is_deleted_before_it_is_read_goes_on_with_a_snapshot_and_says_so() -> None:
    quorum = FakeQuorum(story()[:3])
    with reader(quorum) as log:
        assert offsets(log.batches()) == WHOLE[:3]
        following = log.follow()
        later = shortened()
        quorum.log, quorum.snapshots, quorum.epoch = later.log, later.snapshots, later.epoch
        after = list(itertools.islice(following, 5))
        assert {one.checkpoint_end for one in after if one.of_checkpoint} == {8}
        assert offsets(after[-1:]) == [(8, 9)]
        (warning,) = log.warnings
        assert "deleted its log from offset 5 on" in warning
        assert "what happened in between is not known" in warning


def test_who_follows_is_told_once_that_nobody_leads_and_once_that_somebody_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quorum, told, pauses = FakeQuorum(story()), list[str](), itertools.count(1)

    def paused(_ground: StillGround, _seconds: float) -> None:
        assert len(told) == 1
        if next(pauses) == 3:
            quorum.leader, quorum.epoch = 100, quorum.epoch + 1
            quorum.log.append(batch(8, shrunk(0), epoch=quorum.epoch))

    with reader(quorum) as log:
        following = log.follow(told.append)
        assert offsets(list(itertools.islice(following, 6))) == WHOLE
        assert told == []
        monkeypatch.setattr(active_controller, "TOLD_AFTER_S", 0.0)
        monkeypatch.setattr(StillGround, "sleep", paused)
        quorum.leader = -1
        assert offsets([next(following)]) == [(8, 9)]
    assert told == [
        "no controller that leads the quorum answers; the last one: it answered NOT_LEADER_OR_FOLLOWER, and knows no"
        " leader. kelr goes on asking",
        f"controller 100 leads the quorum and answers again, in epoch {quorum.epoch}",
    ]


# Answers that make no sense.


def _set(name: str, **fields: Any) -> Any:
    def altered(of: str, partition_: dict[str, Any]) -> None:
        if of == name and partition_["error_code"] == 0:
            partition_.update(fields)

    return altered


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        (_set("Fetch", records=batch(3, shrunk(0))), "comes a batch of offset 3"),
        (_set("Fetch", records=story()[0] + story()[2]), "after offset 1 of epoch 1 comes a batch of offset 4"),
        (_set("Fetch", records=story()[0] + story()[0]), "comes a batch of offset 0"),
        (_set("Fetch", records=batch(0, topic(), epoch=5) + batch(1, shrunk(0), epoch=2)), "epoch 5 comes .* epoch 2"),
        (_set("Fetch", records=story()[0][:-1] + b"\xff"), "cannot be read from offset 0 on"),
        (_set("Fetch", records=b"\xff" * 100), "cannot be read from offset 0 on"),
        (_set("Fetch", records=b""), "committed up to offset 8, and gives nothing from 0 on"),
        (_set("Fetch", records=story()[0][:-3]), "committed up to offset 8, and gives nothing from 0 on"),
        (_set("Fetch", diverging_epoch={"epoch": 1, "end_offset": 0}), "the quorum has lost records"),
        (_set("Fetch", snapshot_id={"end_offset": 5, "epoch": -1}), "which cannot be"),
    ],
)
def test_an_answer_that_makes_no_sense_is_no_history(altered: Any, words: str) -> None:
    with reader(FakeQuorum(story(), altered=altered)) as log, pytest.raises(ConnectError, match=words) as raised:
        list(log.batches())
    assert raised.value.next_step


@pytest.mark.parametrize(
    ("altered", "words"),
    [
        (_set("FetchSnapshot", position=1), "makes no sense"),
        (_set("FetchSnapshot", size=3), "makes no sense"),
        (_set("FetchSnapshot", unaligned_records=b""), "makes no sense"),
        (_set("FetchSnapshot", snapshot_id={"end_offset": 7, "epoch": 3}), "makes no sense"),
        (_set("FetchSnapshot", unaligned_records=b"\x07" * 90, size=90), "is not whole"),
        (
            _set(
                "FetchSnapshot",
                unaligned_records=checkpoint((topic(),), contained_ms=1, footer=False),
                size=len(checkpoint((topic(),), contained_ms=1, footer=False)),
            ),
            "no footer",
        ),
    ],
)
def test_a_snapshot_that_is_none_is_not_used(altered: Any, words: str) -> None:
    with reader(shortened(altered=altered)) as log, pytest.raises(ConnectError, match=words):
        list(log.batches())


def test_committed_records_that_the_next_leader_lacks_end_the_reading() -> None:
    quorum = FakeQuorum(story(), controllers=(100, 101))
    with reader(quorum, 100, 101) as log:
        assert offsets(log.batches()) == WHOLE
        quorum.log = [*story()[:3], leader_change(5, 101, (100, 101), epoch=2)]
        quorum.leader, quorum.epoch, quorum.high_watermark = 101, 2, 6
        with pytest.raises(ConnectError, match="parts at offset 5 from what was read up to offset 8"):
            next(log.follow())


# On the wire.


QUESTIONS = (
    fetch_metadata(offset=7, last_epoch=2, leader_epoch=3, cluster_id="ü-cluster", wait_ms=900),
    fetch_metadata(offset=0, last_epoch=0, leader_epoch=0, cluster_id=None),
    fetch_snapshot(SnapshotId(7, 3), position=11, leader_epoch=4, cluster_id="c"),
    fetch_snapshot(SnapshotId(0, 0), position=0, leader_epoch=4, cluster_id=None),
    describe_controllers(),
)


@pytest.mark.parametrize(
    "question", [one for one in QUESTIONS if one.name != "FetchSnapshot"], ids=lambda question: question.name
)
def test_requests_are_the_bytes_that_kafka_python_sends(question: Request) -> None:
    for version in range(question.min_version or 0, question.newest + 1):
        assert question.message.encode(version) == kafka_python.encoded(question, version), version
