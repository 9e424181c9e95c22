"""What every replica's log holds: all brokers at once, many partitions in each request.

With each broker goes one dialogue (`broker_dialogue.BrokerDialogue`). A broker that is dead, fenced, silent or
unauthorized gives a value for each of its replicas and holds up nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kelr.model import (
    BrokerStatus,
    Cluster,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
)
from kelr.sources.base import Progress
from kelr.sources.live import requests
from kelr.sources.live.broker_dialogue import BrokerDialogue, LogInfoUse
from kelr.sources.live.checkup_answers import cordoned_by
from kelr.sources.live.failures import NO_ANSWER
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, NodeId, Transport

FENCED_PATIENCE_S = 2.0
"""How long a fenced broker may take to answer: it is probably dead or hanging, and the others must not wait for it."""
LIVE_PATIENCE_S = 5.0
"""How long a live broker may take for its first answer: one that hangs is live until its session expires. With a
timeout of more than 30 s a sixth of it: brokers that are known to be slow get more. Once it has answered, a broker has
the whole timeout for each further answer."""

_NO_ADDRESS = {
    BrokerStatus.UNREGISTERED: "no broker of this id is registered",
    BrokerStatus.OFFLINE: "the broker is not live, and this cluster does not tell where it was",
}


class LogReader:
    """Reads replicas' logs from their own brokers.

    Args:
        timeout_s: how long a live broker may take for one answer, once it has given its first (`LIVE_PATIENCE_S`).
        clock_ms: milliseconds since 1970 UTC, for the time that each answer carries.
        log_info: whether GetReplicaLogInfo is used; None: nowhere.
        tiered: topics with remote storage.
        cordoned: is told which of the brokers that answered are cordoned, and which are not; None: nobody asks.
    """

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        *,
        timeout_s: float,
        clock_ms: Callable[[], int],
        log_info: LogInfoUse | None = None,
        tiered: Collection[str] = (),
        cordoned: dict[int, bool] | None = None,
    ) -> None:
        self._tiered = tiered
        self._cordoned = cordoned
        self._cluster = cluster
        self._transport = transport
        self._timeout_s = timeout_s
        self._clock_ms = clock_ms
        self._log_info = log_info

    def read(
        self, partitions: Sequence[PartitionState], *, lineage: bool, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """One answer for each replica of each partition, in assignment order."""
        by_broker: dict[int, list[PartitionState]] = {}
        for partition in partitions:
            for replica in partition.replicas:
                by_broker.setdefault(replica, []).append(partition)
        answers = {broker: self._no_address(broker, hosted) for broker, hosted in by_broker.items()}
        report = _Counter(sum(len(hosted) for hosted in by_broker.values()), progress)
        report(sum(len(known) for known in answers.values()))
        dialogues: dict[NodeId, Callable[[], Dialogue[dict[TopicPartition, LogAnswer]]]] = {
            broker: self._dialogue(broker, hosted, lineage=lineage, report=report)
            for broker, hosted in sorted(by_broker.items())
            if not answers[broker]
        }
        for broker, heard in self._transport.run(dialogues).items():
            assert isinstance(broker, int)
            answers[broker] = heard
        return {
            partition.address: tuple(answers[replica][partition.address] for replica in partition.replicas)
            for partition in partitions
        }

    def _no_address(self, broker: int, hosted: Sequence[PartitionState]) -> dict[TopicPartition, LogAnswer]:
        """An answer for each replica of a broker that cannot be asked; empty for one that can."""
        known = self._cluster.broker(broker)
        if known is not None and known.host is not None and known.port is not None:
            return {}
        detail = _NO_ADDRESS.get(self._cluster.status(broker), "the cluster does not tell where this broker is")
        return {
            partition.address: LogUnavailable(broker, LogUnavailableReason.NO_ADDRESS, detail) for partition in hosted
        }

    def _dialogue(
        self, broker: int, hosted: Sequence[PartitionState], *, lineage: bool, report: Callable[[int], None]
    ) -> Callable[[], Dialogue[dict[TopicPartition, LogAnswer]]]:
        live = self._cluster.status(broker) is BrokerStatus.LIVE
        known = self._cluster.broker(broker)
        dialogue = BrokerDialogue(
            broker,
            hosted,
            lineage=lineage,
            timeout_s=self._timeout_s if live else min(FENCED_PATIENCE_S, self._timeout_s),
            clock_ms=self._clock_ms,
            log_info=self._log_info,
            registered_epoch=None if known is None else known.broker_epoch,
            tiered=self._tiered,
            report=report,
        )
        patience_s = max(LIVE_PATIENCE_S, self._timeout_s / 6) if live else FENCED_PATIENCE_S
        return lambda: first_answer_within(min(patience_s, self._timeout_s), self._held(dialogue))

    def _held(self, dialogue: BrokerDialogue) -> Dialogue[dict[TopicPartition, LogAnswer]]:
        """The logs, and where that is asked, of a broker that told of one whether it is cordoned."""
        answers = yield from dialogue.hold()
        if self._cordoned is not None and any(isinstance(answer, ReplicaLog) for answer in answers.values()):
            told = cordoned_by((yield Ask(requests.describe_log_dirs(), self._timeout_s)))
            self._cordoned.update({} if told is None else {dialogue.broker: told})
        return answers


T = TypeVar("T")


def first_answer_within(patience_s: float, dialogue: Dialogue[T]) -> Dialogue[T]:
    """The dialogue with a node that has so long for each request until it has answered one."""
    answer = None
    answered = False
    while True:
        try:
            wanted = dialogue.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        if answered or not isinstance(wanted, Ask):
            answer = yield wanted
            continue
        limit_s = patience_s if wanted.timeout_s is None else min(patience_s, wanted.timeout_s)
        answer = yield replace(wanted, timeout_s=limit_s)
        answered = not isinstance(answer, Failure)
        if isinstance(answer, Failure) and answer == NO_ANSWER:
            answer = Failure(FailureKind.TIMED_OUT, f"no answer within {limit_s:g} s")


def read_cordons(cluster: Cluster, transport: Transport, *, timeout_s: float) -> Mapping[int, bool]:
    """Which live brokers are cordoned, and which are not (`Broker.cordoned`), as they tell; those that do not are left
    out."""

    def asked() -> Dialogue[bool | None]:
        return cordoned_by((yield Ask(requests.describe_log_dirs(), min(FENCED_PATIENCE_S, timeout_s))))

    told = transport.run(dict.fromkeys(sorted(cluster.live), asked))
    return {int(id_): cordoned for id_, cordoned in told.items() if cordoned is not None}


class _Counter:
    """Adds up what the dialogues have done and tells the caller."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def __call__(self, done: int) -> None:
        self._done += done
        if self._progress is not None and done:
            self._progress(self._done, self._total)
