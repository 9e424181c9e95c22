"""GetReplicaLogInfo: when it is sent, in which pieces, what is verified of the answers, and what stands in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.model import (
    LOG_INFO_FEATURE,
    METADATA_FEATURE,
    EpochEnd,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
)
from kelr.protocol.dialects import REQUEST_LIMIT_REACHED_CODE, Dialect
from kelr.protocol.messages import replica_log_info
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource, log_info
from kelr.sources.live.broker_dialogue import ATTEMPTS, BrokerDialogue, LogInfoUse
from kelr.sources.live.transport import Failure, FailureKind
from kelr.sources.log_info_key import LogInfoKey
from tests.sources.fake_cluster import MODERN, FakeCluster, FakeTransport
from tests.sources.samples import CLUSTER, ELR_ON, NOW_MS, PARTITIONS, fake_cluster, fake_log, state

KIP, PATCH = LogInfoKey(70, Dialect.KIP), LogInfoKey(93, Dialect.PATCH)
BOTH = pytest.mark.parametrize("key", [KIP, PATCH], ids=["kip", "patch"])
INVALID_REQUEST, CLUSTER_UNAUTHORIZED = 42, 31


@dataclass
class LogInfoCluster(FakeCluster):
    """A `FakeCluster` whose brokers take GetReplicaLogInfo."""

    limit: int = 2000
    refuses_whole: bool = False
    """Over the limit, each partition is answered with INVALID_REQUEST."""
    broker_epoch: Callable[[], int] = lambda: 7
    entry_error: int = 0
    leaves_out: frozenset[int] = frozenset()
    asked: list[list[tuple[str, int]]] = field(default_factory=list)
    brokers_named: list[int] = field(default_factory=list)

    def _kip_replica_log_info(self, node: Any, request: Any, _version: int) -> Any:
        self.brokers_named.append(request.broker_id)
        return self._log_info(node, request, KIP)

    def _patch_replica_log_info(self, node: Any, request: Any, _version: int) -> Any:
        return self._log_info(node, request, PATCH)

    def _log_info(self, node: Any, request: Any, key: LogInfoKey) -> Any:
        _, kind = replica_log_info(key.dialect, request.API_KEY)
        wanted = [(topic.topic_id, number) for topic in request.topic_partitions for number in topic.partitions]
        self.asked.append([(self._name(topic_id), number) for topic_id, number in wanted])
        over = len(wanted) > self.limit
        topics: dict[Any, list[Any]] = {}
        for place, (topic_id, number) in enumerate(wanted):
            error = self.entry_error
            if over and self.refuses_whole:
                error = INVALID_REQUEST
            elif place >= self.limit:
                if key.dialect is Dialect.PATCH:
                    break
                error = REQUEST_LIMIT_REACHED_CODE
            if number not in self.leaves_out:
                topics.setdefault(topic_id, []).append(self._entry(kind, node, topic_id, number, error))
        more = {} if key.dialect is Dialect.KIP else {"has_more_replica_log_info": over and not self.refuses_whole}
        return kind(
            broker_epoch=self.broker_epoch(),
            topic_partition_log_info_list=[
                kind.TopicPartitionLogInfo(topic_id=topic_id, partition_log_info=infos)
                for topic_id, infos in topics.items()
            ],
            **more,
        )

    def _entry(self, kind: Any, node: Any, topic_id: Any, number: int, error: int) -> Any:
        log = self._log(node, TopicPartition(self._name(topic_id), number))
        error = error or log.error
        return kind.TopicPartitionLogInfo.PartitionLogInfo(
            partition=number,
            last_written_leader_epoch=-1 if error or not log.epochs else log.epochs[-1][0],
            current_leader_epoch=-1 if error else log.leader_epoch,
            log_end_offset=-1 if error else log.log_end,
            error_code=error,
            error_message=None,
        )


def _cluster(**changes: Any) -> LogInfoCluster:
    like = fake_cluster()
    versions = {**MODERN, 70: 0, 93: 0}
    return LogInfoCluster(like.cluster, like.partitions, like.logs, versions, configs=like.configs, dead={1}, **changes)


def _many(count: int, **changes: Any) -> LogInfoCluster:
    states = [state("orders", number) for number in range(count)]
    logs = {(2, one.address): fake_log(one, 20 + one.partition, (0, 0), (3, 10)) for one in states}
    return LogInfoCluster(CLUSTER, {one.address: one for one in states}, logs, {**MODERN, 70: 0, 93: 0}, **changes)


def _read(
    cluster: FakeCluster,
    key: LogInfoKey | None = KIP,
    *,
    partitions: Sequence[PartitionState] | None = None,
    lineage: bool = False,
    registered: int | None = None,
) -> tuple[dict[TopicPartition, LogAnswer], list[float]]:
    transport = FakeTransport(cluster)
    dialogue = BrokerDialogue(
        2,
        list(cluster.partitions.values()) if partitions is None else partitions,
        lineage=lineage,
        timeout_s=5,
        clock_ms=lambda: NOW_MS,
        log_info=LogInfoUse(key),
        registered_epoch=registered,
    )
    return transport.run({2: dialogue.hold})[2], transport.ground.slept


def _one(cluster: FakeCluster, key: LogInfoKey | None = KIP, **options: Any) -> LogAnswer:
    answers, _ = _read(cluster, key, partitions=PARTITIONS[:1], **options)
    return answers[PARTITIONS[0].address]


def _names(cluster: FakeCluster) -> set[str]:
    return {name for _, name, _ in cluster.requests}


LOG = ReplicaLog(
    replica=2,
    log_end=20,
    last_epoch=3,
    current_leader_epoch=5,
    high_watermark=17,
    log_start=0,
    broker_epoch=7,
    source="GetReplicaLogInfo v0 (key 70)+Fetch",
    read_at_ms=NOW_MS,
    last_stable_offset=17,
)


# When it is sent.


def _announcing(key: LogInfoKey) -> Features:
    return Features(ELR_ON, {**ELR_ON, LOG_INFO_FEATURE: key.api_key})


def _logs(cluster: FakeCluster, log_info_key: LogInfoKey | None = None) -> list[LogAnswer]:
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=5, log_info=log_info_key)
    with LiveSource(settings, connect=lambda _settings: FakeTransport(cluster), clock_ms=lambda: NOW_MS) as source:
        (answers,) = source.replica_logs(PARTITIONS[:1]).values()
    return list(answers)


def test_a_key_that_brokers_list_proves_nothing() -> None:
    cluster = _cluster()
    assert [log.source for log in _logs(cluster) if isinstance(log, ReplicaLog)] == ["ListOffsets+Fetch"] * 2
    assert cluster.asked == []
    # Nor is a broker asked what it announces where the first one announces nothing: one request more for nothing.
    assert [name for node, name, _ in cluster.requests if node == 2].count("ApiVersions") == 0


def test_a_key_that_was_configured_is_used() -> None:
    cluster = _cluster()
    assert [log.source for log in _logs(cluster, KIP) if isinstance(log, ReplicaLog)] == [LOG.source] * 2
    assert cluster.brokers_named == [2, 3]


@pytest.mark.parametrize(
    ("software", "key", "sent"), [(33, PATCH, False), (31, PATCH, False), (30, PATCH, True), (33, KIP, True)]
)
def test_the_patchs_key_is_not_sent_to_kafka_4_4(software: int, key: LogInfoKey, sent: bool) -> None:
    """Its brokers list 93, and mean another request by it."""
    cluster = _cluster()
    levels = {**ELR_ON, METADATA_FEATURE: software}
    cluster.cluster = replace(cluster.cluster, features=Features(levels, levels))
    logs = [log for log in _logs(cluster, key) if isinstance(log, ReplicaLog)]
    assert bool(cluster.asked) is sent
    assert all("StreamsGroupTopologyDescriptionUpdate" in log.source for log in logs) is not sent
    assert [log.log_end for log in logs] == [log.log_end for log in _logs(_cluster()) if isinstance(log, ReplicaLog)]


def test_a_key_that_is_announced_is_used() -> None:
    cluster = _cluster()
    cluster.cluster = replace(cluster.cluster, features=_announcing(KIP))
    assert [log.source for log in _logs(cluster) if isinstance(log, ReplicaLog)] == [LOG.source] * 2


def test_each_broker_speaks_for_itself() -> None:
    """While brokers are upgraded one after the other, some announce it and others do not."""
    cluster = _cluster()
    cluster.cluster = replace(cluster.cluster, features=_announcing(KIP))
    announcing = cluster.cluster

    def before(node: object, _name: str) -> Failure | None:
        cluster.cluster = replace(announcing, features=CLUSTER.features) if node == 3 else announcing
        return None

    cluster.before = before
    sources = {log.replica: log.source for log in _logs(cluster) if isinstance(log, ReplicaLog)}
    assert sources == {2: LOG.source, 3: "ListOffsets+Fetch"}


def test_a_broker_that_lists_no_such_key_is_asked_otherwise() -> None:
    cluster = fake_cluster()
    answer = _one(cluster)
    assert isinstance(answer, ReplicaLog)
    assert answer.source.startswith("ListOffsets+Fetch (GetReplicaLogInfo v0 (key 70): Kafka broker does not support")
    assert replace(answer, source=LOG.source, broker_epoch=7) == LOG


# What is told, and by whom.


@BOTH
def test_a_log_as_the_broker_has_it(key: LogInfoKey) -> None:
    answer = _one(_cluster(), key)
    assert answer == replace(LOG, source=f"GetReplicaLogInfo v0 (key {key.api_key})+Fetch")


def test_two_requests_tell_what_is_told_without_the_lineage() -> None:
    cluster = _cluster()
    _one(cluster)
    assert [name for _, name, _ in cluster.requests] == ["KipReplicaLogInfo", "Fetch"]


@BOTH
@pytest.mark.parametrize("lineage", [False, True])
def test_both_ways_tell_the_same(key: LogInfoKey, lineage: bool) -> None:
    cluster = _cluster()
    native, _ = _read(cluster, key, lineage=lineage)
    probed, _ = _read(fake_cluster(), None, lineage=lineage)
    assert _names(cluster) == {f"{key.dialect.schema}ReplicaLogInfo", "Fetch"}
    for address, answer in native.items():
        assert isinstance(answer, ReplicaLog)
        assert replace(answer, source="ListOffsets+Fetch", broker_epoch=None) == probed[address]
        assert answer.lineage == ((EpochEnd(0, 10), EpochEnd(3, 20)) if lineage else None)


def test_without_the_right_to_read_the_log_end_and_the_last_epoch_are_known() -> None:
    cluster = _cluster()
    cluster.logs[2, PARTITIONS[0].address].fetch_error = 29
    expected = replace(
        LOG,
        high_watermark=None,
        log_start=None,
        last_stable_offset=None,
        source="GetReplicaLogInfo v0 (key 70); high watermark not told: TOPIC_AUTHORIZATION_FAILED:"
        " it needs READ on the topic",
    )
    assert _one(cluster) == expected


def test_an_empty_log() -> None:
    cluster = _cluster()
    cluster.logs[2, PARTITIONS[0].address] = fake_log(PARTITIONS[0], 0)
    answer = _one(cluster)
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.last_epoch, answer.last_epoch_error, answer.is_empty) == (0, None, None, True)


def test_a_partition_without_a_known_id_is_asked_for_otherwise() -> None:
    cluster = _cluster()
    nameless = replace(PARTITIONS[0], topic_id=None)
    answers, _ = _read(cluster, partitions=[nameless, PARTITIONS[1]])
    sources = [answer.source for answer in answers.values() if isinstance(answer, ReplicaLog)]
    assert sources == ["ListOffsets+Fetch", LOG.source]
    assert cluster.asked == [[("orders", 1)]]


# In which pieces.


@BOTH
@pytest.mark.parametrize("refuses_whole", [False, True])
def test_what_is_over_the_limit_is_asked_for_again(
    key: LogInfoKey, refuses_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_info, "PARTITIONS_A_REQUEST", 20)
    cluster = _many(10, limit=3, refuses_whole=refuses_whole)
    answers, paused_s = _read(cluster, key)
    assert [answer.log_end for answer in answers.values() if isinstance(answer, ReplicaLog)] == list(range(20, 30))
    assert paused_s == []
    sizes = [len(request) for request in cluster.asked]
    assert sizes == ([10, 5, 2, 2, 2, 2, 2] if refuses_whole else [10, 3, 3, 1])


@given(
    count=st.integers(1, 40),
    limit=st.integers(1, 45),
    key=st.sampled_from([KIP, PATCH]),
    refuses_whole=st.booleans(),
)
def test_everything_is_answered_whatever_the_limit(
    count: int, limit: int, key: LogInfoKey, refuses_whole: bool
) -> None:
    cluster = _many(count, limit=limit, refuses_whole=refuses_whole)
    answers, _ = _read(cluster, key)
    assert [answer.log_end for answer in answers.values() if isinstance(answer, ReplicaLog)] == [
        20 + number for number in range(count)
    ]
    assert len(cluster.asked) <= 2 * count + 6


@BOTH
def test_a_broker_that_answers_for_nothing_is_not_asked_for_ever(key: LogInfoKey) -> None:
    cluster = _many(5, limit=0)
    answers, _ = _read(cluster, key)
    assert {answer.reason for answer in answers.values() if isinstance(answer, LogUnavailable)} == {
        LogUnavailableReason.ERROR
    }
    assert len(answers) == 5
    assert len(cluster.asked) <= 3 + 5


def test_a_partition_that_is_left_out_is_an_error() -> None:
    assert _one(_cluster(leaves_out=frozenset({0}))) == LogUnavailable(
        2, LogUnavailableReason.ERROR, "the broker's answer leaves this partition out", NOW_MS
    )


# What is verified.


@pytest.mark.parametrize(
    ("code", "reason", "detail"),
    [
        (6, LogUnavailableReason.NOT_A_REPLICA, "NOT_LEADER_OR_FOLLOWER"),
        (100, LogUnavailableReason.NOT_A_REPLICA, "UNKNOWN_TOPIC_ID"),
        (56, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR"),
        (INVALID_REQUEST, LogUnavailableReason.ERROR, "INVALID_REQUEST"),
        (999, LogUnavailableReason.ERROR, "ERROR_CODE_999"),
    ],
)
def test_an_error_of_a_partition_is_a_reason(code: int, reason: LogUnavailableReason, detail: str) -> None:
    assert _one(_cluster(entry_error=code)) == LogUnavailable(2, reason, detail, NOW_MS)


def test_a_stale_answer_is_asked_again_and_never_used() -> None:
    """KIP-966: the leader epoch in the broker's metadata cache fences stale answers."""
    cluster = _cluster()
    cluster.logs[2, PARTITIONS[0].address].leader_epoch = 4
    answers, paused_s = _read(cluster, partitions=PARTITIONS[:1])
    assert answers[PARTITIONS[0].address] == LogUnavailable(
        2, LogUnavailableReason.STALE, "the broker is at leader epoch 4, the partition at 5", NOW_MS
    )
    assert len(paused_s) == ATTEMPTS - 1


def test_a_broker_that_catches_up_is_heard() -> None:
    cluster = _cluster()
    log = cluster.logs[2, PARTITIONS[0].address]
    log.leader_epoch = 4
    seen: list[str] = []

    def before(_node: object, name: str) -> Failure | None:
        seen.append(name)
        log.leader_epoch = 4 if len(seen) < 3 else 5
        return None

    cluster.before = before
    assert _one(cluster) == LOG
    assert seen == ["KipReplicaLogInfo"] * 3 + ["Fetch"]


def test_an_answer_of_another_incarnation_than_the_registered_one_is_stale() -> None:
    assert _one(_cluster(), registered=7) == LOG
    assert _one(_cluster(), registered=6) == LogUnavailable(
        2, LogUnavailableReason.STALE, "answered with broker epoch 7; the broker is registered with 6", NOW_MS
    )


def _epochs(*first: int, then: int) -> Callable[[], int]:
    rest: Iterator[int] = iter(first)
    return lambda: next(rest, then)


def test_a_broker_that_restarts_between_two_pages_is_asked_for_everything_again() -> None:
    cluster = _many(6, limit=3, broker_epoch=_epochs(7, then=8))
    answers, _ = _read(cluster)
    assert {answer.broker_epoch for answer in answers.values() if isinstance(answer, ReplicaLog)} == {8}
    assert len([answer for answer in answers.values() if isinstance(answer, ReplicaLog)]) == 6


def test_a_broker_that_restarts_all_the_time_is_not_heard() -> None:
    numbers = iter(range(1, 1000))
    cluster = _many(6, limit=3, broker_epoch=lambda: next(numbers))
    answers, paused_s = _read(cluster)
    heard = {answer.broker_epoch for answer in answers.values() if isinstance(answer, ReplicaLog)}
    assert len(heard) <= 1
    stale = [answer for answer in answers.values() if isinstance(answer, LogUnavailable)]
    assert {(answer.reason, answer.detail) for answer in stale} == {
        (LogUnavailableReason.STALE, "the broker was restarted while it was asked")
    }
    assert len(paused_s) == ATTEMPTS - 1


@pytest.mark.parametrize(
    "claimed",
    [{"log_end": 25}, {"epochs": [(0, 0), (4, 10)]}, {"epochs": [(0, 0)], "log_end": 20}, {"epochs": [], "log_end": 9}],
    ids=["a later end", "a later epoch", "an earlier epoch", "no epoch"],
)
def test_an_answer_that_the_epoch_history_denies_is_not_used(claimed: dict[str, Any]) -> None:
    """Such as one of another request that has the key, or of a log that was cut in between."""
    cluster = _cluster()
    address = PARTITIONS[0].address
    true = cluster.logs[2, address]
    if claimed.get("epochs") == []:
        true.log_end, true.high_watermark, true.epochs = 5, 5, [(3, 0)]

    def before(_node: object, name: str) -> Failure | None:
        cluster.logs[2, address] = replace(true, **claimed) if name.endswith("ReplicaLogInfo") else true
        return None

    cluster.before = before
    answers, paused_s = _read(cluster, partitions=PARTITIONS[:1])
    assert answers[address] == LogUnavailable(
        2, LogUnavailableReason.ERROR, "what Fetch tells of its log end contradicts GetReplicaLogInfo", NOW_MS
    )
    assert len(paused_s) == ATTEMPTS - 1


# What stands in for it.


@BOTH
def test_a_principal_that_may_not_ask_falls_back(key: LogInfoKey) -> None:
    cluster = _cluster(entry_error=CLUSTER_UNAUTHORIZED)
    answers, _ = _read(cluster, key)
    noted = f"ListOffsets+Fetch (GetReplicaLogInfo v0 (key {key.api_key}): CLUSTER_AUTHORIZATION_FAILED)"
    assert {answer.source for answer in answers.values() if isinstance(answer, ReplicaLog)} == {noted}
    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.UNSUPPORTED, "no such request"),
        Failure(FailureKind.GARBLED, "not an answer of a Kafka broker: noise"),
        Failure(FailureKind.UNREACHABLE, "connection closed"),
    ],
)
def test_a_request_that_the_broker_makes_nothing_of_falls_back(failure: Failure) -> None:
    cluster = _cluster()
    cluster.before = lambda _node, name: failure if name == "KipReplicaLogInfo" else None
    expected = replace(LOG, broker_epoch=None, source=f"ListOffsets+Fetch ({KIP}: {failure.detail})")
    assert _one(cluster) == expected


def test_an_answer_of_no_broker_falls_back() -> None:
    answer = _one(_cluster(broker_epoch=lambda: -1))
    assert isinstance(answer, ReplicaLog)
    assert answer.source == f"ListOffsets+Fetch ({KIP}: no answer to this request: it names no broker epoch)"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure(FailureKind.UNREACHABLE, "connection refused"), LogUnavailableReason.UNREACHABLE),
        (Failure(FailureKind.TIMED_OUT, "no answer in time"), LogUnavailableReason.TIMED_OUT),
        (Failure(FailureKind.AUTHENTICATION, "wrong password"), LogUnavailableReason.AUTHENTICATION_FAILED),
    ],
)
def test_a_broker_that_is_silent_is_asked_nothing_else(failure: Failure, reason: LogUnavailableReason) -> None:
    cluster = _cluster()
    cluster.before = lambda _node, _name: failure
    assert _one(cluster) == LogUnavailable(2, reason, failure.detail, NOW_MS)
    assert cluster.requests == []
