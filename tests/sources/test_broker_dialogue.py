"""The exchange with one broker: what each kind of answer, silence and refusal becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.model import LogAnswer, LogUnavailable, LogUnavailableReason, PartitionState, ReplicaLog, TopicPartition
from kelr.sources.live import broker_dialogue
from kelr.sources.live.broker_dialogue import BrokerDialogue
from kelr.sources.live.transport import Failure, FailureKind
from tests.sources.fake_cluster import BEFORE_3_8, MODERN, FakeCluster, FakeLog, FakeTransport
from tests.sources.samples import CLUSTER, NOW_MS, PARTITIONS, fake_cluster, fake_log, state


def _hold(cluster: FakeCluster, *partitions: PartitionState, lineage: bool = False) -> dict[TopicPartition, LogAnswer]:
    answers, _ = _hold_with(FakeTransport(cluster), *partitions, lineage=lineage)
    return answers


def _hold_with(
    transport: FakeTransport, *partitions: PartitionState, lineage: bool = False
) -> tuple[dict[TopicPartition, LogAnswer], list[float]]:
    dialogue = BrokerDialogue(2, partitions, lineage=lineage, timeout_s=5, clock_ms=lambda: NOW_MS)
    return transport.run({2: dialogue.hold})[2], transport.ground.slept


def _one(log: FakeLog, partition: PartitionState = PARTITIONS[0], **changes: Any) -> LogAnswer:
    cluster = FakeCluster(CLUSTER, {partition.address: partition}, {(2, partition.address): log}, **changes)
    return _hold(cluster, partition)[partition.address]


def test_a_log_as_the_broker_has_it() -> None:
    assert _one(fake_log(PARTITIONS[0], 20, (0, 0), (3, 10))) == ReplicaLog(
        replica=2,
        log_end=20,
        last_epoch=3,
        current_leader_epoch=5,
        high_watermark=17,
        log_start=0,
        source="ListOffsets+Fetch",
        read_at_ms=NOW_MS,
        last_stable_offset=17,
    )


@pytest.mark.parametrize("epochs", [[(0, 0), (3, 10)], []])
@pytest.mark.parametrize(("open_from", "last_stable_offset"), [(None, 17), (12, 12), (18, 17)])
def test_the_last_stable_offset_comes_with_the_answers_that_are_asked_for_anyway(
    epochs: list[tuple[int, int]], open_from: int | None, last_stable_offset: int
) -> None:
    """Without an epoch in the log's history, it comes with the position."""
    log = FakeLog(epochs, log_end=20, high_watermark=17, open_from=open_from, leader_epoch=5)
    answer = _one(log)
    assert isinstance(answer, ReplicaLog)
    assert (answer.high_watermark, answer.last_stable_offset) == (17, last_stable_offset)


def test_a_broker_that_leaves_the_last_stable_offset_out_leaves_it_unknown() -> None:
    fetched = broker_dialogue._fetched(_Nothing())
    assert fetched == broker_dialogue.Position(None, None, None)


class _Nothing:
    """A partition of a Fetch answer in which every offset is left at "not known"."""

    error_code = 0
    high_watermark = last_stable_offset = log_start_offset = -1
    diverging_epoch = None


REMOTE = FakeLog([(0, 0), (3, 10)], log_end=20, high_watermark=17, local_start=12, remote_end=14, leader_epoch=5)


def _tiered(log: FakeLog, tiered: list[str], **changes: Any) -> tuple[tuple[int | None, ...], list[str]]:
    """Log start, local start and remote end, and the requests by which they were learnt."""
    partition = PARTITIONS[0]
    cluster = FakeCluster(CLUSTER, {partition.address: partition}, {(2, partition.address): log}, **changes)
    dialogue = BrokerDialogue(2, [partition], lineage=False, timeout_s=5, clock_ms=lambda: NOW_MS, tiered=tiered)
    answer = FakeTransport(cluster).run({2: dialogue.hold})[2][partition.address]
    assert isinstance(answer, ReplicaLog)
    return (answer.log_start, answer.local_start, answer.remote_end), [name for _, name, _ in cluster.requests]


@pytest.mark.parametrize(
    ("newest", "told"), [(10, (0, 12, 14)), (9, (0, 12, 14)), (8, (0, 12, None)), (7, (0, None, None))]
)
def test_what_is_in_remote_storage_as_far_as_the_broker_knows_the_question(
    newest: int, told: tuple[int | None, ...]
) -> None:
    assert _tiered(REMOTE, [PARTITIONS[0].topic], versions={**MODERN, 2: newest})[0] == told


def test_a_broker_that_has_just_started_knows_of_nothing_in_remote_storage() -> None:
    assert _tiered(replace(REMOTE, remote_end=0), [PARTITIONS[0].topic])[0] == (0, 12, None)


def test_bounds_behind_the_logs_end_are_of_another_moment() -> None:
    assert _tiered(replace(REMOTE, local_start=21, remote_end=21), [PARTITIONS[0].topic])[0] == (0, None, None)


def test_topics_without_remote_storage_are_not_asked_about_it() -> None:
    told, asked = _tiered(REMOTE, ["others"])
    assert told == (0, None, None)
    assert asked.count("ListOffsets") == 1
    assert _tiered(REMOTE, [PARTITIONS[0].topic])[1].count("ListOffsets") == 3


def test_an_empty_log_has_no_epoch_and_no_error() -> None:
    answer = _one(FakeLog(leader_epoch=5))
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.last_epoch, answer.last_epoch_error) == (0, None, None)
    assert (answer.high_watermark, answer.log_start, answer.is_empty) == (0, 0, True)


def test_records_without_an_epoch_are_said_to_have_none() -> None:
    answer = _one(FakeLog(leader_epoch=5, log_end=9, high_watermark=9))
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.high_watermark, answer.last_epoch) == (9, 9, None)
    assert answer.last_epoch_error == "its epoch history names none"


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        (6, LogUnavailableReason.NOT_A_REPLICA, "NOT_LEADER_OR_FOLLOWER"),
        (3, LogUnavailableReason.NOT_A_REPLICA, "UNKNOWN_TOPIC_OR_PARTITION"),
        (56, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR"),
        (29, LogUnavailableReason.NOT_AUTHORIZED, "TOPIC_AUTHORIZATION_FAILED"),
        (7, LogUnavailableReason.TIMED_OUT, "REQUEST_TIMED_OUT"),
        (-1, LogUnavailableReason.ERROR, "UNKNOWN_SERVER_ERROR"),
        (999, LogUnavailableReason.ERROR, "ERROR_CODE_999"),
    ],
)
def test_an_error_of_a_partition_is_a_reason(code: int, reason: LogUnavailableReason, detail: str) -> None:
    assert _one(FakeLog(error=code)) == LogUnavailable(2, reason, detail, NOW_MS)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (FailureKind.UNREACHABLE, LogUnavailableReason.UNREACHABLE),
        (FailureKind.TIMED_OUT, LogUnavailableReason.TIMED_OUT),
        (FailureKind.AUTHENTICATION, LogUnavailableReason.AUTHENTICATION_FAILED),
        (FailureKind.UNSUPPORTED, LogUnavailableReason.UNSUPPORTED),
        (FailureKind.GARBLED, LogUnavailableReason.ERROR),
    ],
)
def test_a_broker_without_an_answer_is_a_reason_for_each_partition(
    kind: FailureKind, reason: LogUnavailableReason
) -> None:
    cluster = fake_cluster()
    cluster.failures[2] = Failure(kind, "so it is")
    answers = _hold(cluster, *PARTITIONS)
    assert list(answers.values()) == [LogUnavailable(2, reason, "so it is", NOW_MS)] * len(PARTITIONS)


def test_a_slow_broker_is_asked_once_however_many_requests_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_dialogue, "PARTITIONS_A_REQUEST", 2)
    asked: list[str] = []

    def silent(_node: object, name: str) -> Failure:
        asked.append(name)
        return Failure(FailureKind.TIMED_OUT, "no answer in time")

    cluster = fake_cluster()
    cluster.before = silent
    assert len(_hold(cluster, *PARTITIONS)) == 5
    assert asked == ["ListOffsets"]


def test_a_connection_that_breaks_is_tried_again() -> None:
    broken = [Failure(FailureKind.UNREACHABLE, "connection closed")]
    cluster = fake_cluster()
    cluster.before = lambda _node, _name: broken.pop() if broken else None
    answers = _hold(cluster, *PARTITIONS)
    assert all(isinstance(answer, ReplicaLog) for answer in answers.values())


def test_fetch_without_the_right_to_read_leaves_the_log_end() -> None:
    log = fake_log(PARTITIONS[0], 20, (0, 0))
    log.fetch_error = 29
    answer = _one(log)
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.last_epoch, answer.source) == (20, None, "ListOffsets")
    assert answer.last_epoch_error == "TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic"


def test_a_broker_too_old_for_epochs_leaves_the_log_end() -> None:
    answer = _one(fake_log(PARTITIONS[0], 20, (0, 0)), versions={1: 11, 2: 5})
    assert isinstance(answer, ReplicaLog)
    assert answer.log_end == 20
    assert answer.last_epoch_error is not None
    assert answer.last_epoch_error.startswith("unsupported (Fetch)")


def test_fetch_by_topic_name_where_the_id_is_not_known() -> None:
    partition = state("orders", 0, topic_id=None)
    answer = _one(fake_log(partition, 20, (0, 0), (3, 10)), partition)
    assert isinstance(answer, ReplicaLog)
    assert answer.last_epoch == 3


def test_fetch_v12_and_v15_give_the_same() -> None:
    new, old = fake_cluster(), fake_cluster()
    old.versions = BEFORE_3_8
    oldest = fake_cluster()
    oldest.versions = {**BEFORE_3_8, 1: 12}
    first = _hold(new, *PARTITIONS, lineage=True)
    assert _hold(old, *PARTITIONS, lineage=True) == first == _hold(oldest, *PARTITIONS, lineage=True)


def test_a_stale_answer_is_asked_again_until_it_is_current() -> None:
    log = fake_log(PARTITIONS[0], 20, (0, 0))
    log.leader_epoch = 4
    cluster = FakeCluster(CLUSTER, {PARTITIONS[0].address: PARTITIONS[0]}, {(2, PARTITIONS[0].address): log})
    asked = 0

    def catch_up(_node: object, name: str) -> None:
        nonlocal asked
        asked += name == "ListOffsets"
        log.leader_epoch = 5 if asked == 3 else 4

    cluster.before = catch_up  # type: ignore[assignment]
    answers, paused_s = _hold_with(FakeTransport(cluster), PARTITIONS[0])
    answer = answers[PARTITIONS[0].address]
    assert isinstance(answer, ReplicaLog)
    assert (answer.current_leader_epoch, asked) == (5, 3)
    assert paused_s == [0.1, 0.2]


def test_an_answer_that_stays_stale_is_not_heard() -> None:
    log = fake_log(PARTITIONS[0], 20, (0, 0))
    log.leader_epoch = 4
    assert _one(log) == LogUnavailable(
        2, LogUnavailableReason.STALE, "the broker is at leader epoch 4, the partition at 5", NOW_MS
    )


def test_a_newer_answer_is_kept_with_its_epoch() -> None:
    log = fake_log(PARTITIONS[0], 20, (0, 0), (6, 18))
    log.leader_epoch = 8
    answer = _one(log)
    assert isinstance(answer, ReplicaLog)
    assert (answer.current_leader_epoch, answer.last_epoch) == (8, 6)


def test_a_leader_change_between_log_end_and_epochs_reads_the_log_anew() -> None:
    log = fake_log(PARTITIONS[0], 20, (0, 0), (5, 15))
    cluster = FakeCluster(CLUSTER, {PARTITIONS[0].address: PARTITIONS[0]}, {(2, PARTITIONS[0].address): log})
    changed = False

    def change(_node: object, name: str) -> None:
        nonlocal changed
        if name == "Fetch" and not changed:
            changed = True
            log.leader_epoch, log.epochs, log.log_end = 6, [(0, 0), (6, 12)], 14

    cluster.before = change  # type: ignore[assignment]
    answer = _hold(cluster, PARTITIONS[0], lineage=True)[PARTITIONS[0].address]
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.last_epoch, answer.current_leader_epoch) == (14, 6, 6)


def test_requests_grow_with_the_epochs_and_not_with_the_partitions() -> None:
    def requests(count: int) -> int:
        partitions = [state("orders", number, leader_epoch=63) for number in range(count)]
        logs = {
            (2, partition.address): fake_log(partition, 100, (0, 0), (number % 60, 50))
            if number % 60
            else fake_log(partition, 100, (0, 0))
            for number, partition in enumerate(partitions)
        }
        cluster = FakeCluster(CLUSTER, {partition.address: partition for partition in partitions}, logs)
        answers = _hold(cluster, *partitions)
        assert all(isinstance(answer, ReplicaLog) for answer in answers.values())
        assert max(size for _, _, size in cluster.requests) <= broker_dialogue.PARTITIONS_A_REQUEST
        return len(cluster.requests)

    assert requests(2000) <= requests(120) + 2 < 20


def test_many_partitions_go_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _hold(fake_cluster(), *PARTITIONS, lineage=True)
    monkeypatch.setattr(broker_dialogue, "PARTITIONS_A_REQUEST", 2)
    cluster = fake_cluster()
    assert _hold(cluster, *PARTITIONS, lineage=True) == whole
    assert {size for _, _, size in cluster.requests} <= {1, 2}


def test_one_bad_partition_spoils_no_other() -> None:
    cluster = fake_cluster()
    bad = PARTITIONS[1].address
    cluster.logs[2, bad] = FakeLog(error=56)
    answers = _hold(cluster, *PARTITIONS)
    assert isinstance(answers[bad], LogUnavailable)
    assert sum(isinstance(answer, ReplicaLog) for answer in answers.values()) == 4


def test_an_answer_that_leaves_a_partition_out_is_noticed() -> None:
    cluster = fake_cluster()
    missing = replace(PARTITIONS[0], partition=77)
    cluster.logs[2, missing.address] = fake_log(missing, 5, (0, 0))
    original = cluster.answer

    def without(node: Any, request: Any) -> Any:
        answer = original(node, request)
        if request.name == "ListOffsets":
            for topic in answer.topics:
                topic.partitions = [kept for kept in topic.partitions if kept.partition_index != 77]
        return answer

    cluster.answer = without  # type: ignore[method-assign]
    answers = _hold(cluster, PARTITIONS[0], missing)
    assert answers[missing.address] == LogUnavailable(
        2, LogUnavailableReason.ERROR, "the broker's answer leaves this partition out", NOW_MS
    )
