"""Logs that end in different epochs are read again with lineages, and no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kelr.model import (
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Selection,
    TopicPartition,
)
from kelr.sources.base import Progress
from kelr.sources.log_pages import read_logs
from kelr.sources.memory import MemorySource
from tests.incident import INCIDENT, LOGS

PAYMENTS = TopicPartition("payments", 0)
"""Its logs end in the epochs 1 and 0; those of orders:1 in the same one."""


class LiveLike(MemorySource):
    """Tells lineages only where they are asked for, as a cluster does, and remembers what was asked."""

    def __init__(self, *, silent_at_second: int | None = None) -> None:
        super().__init__(INCIDENT)
        self.asked: list[tuple[dict[TopicPartition, tuple[int, ...]], bool]] = []
        self._silent_at_second = silent_at_second

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        self.asked.append(({state.address: state.replicas for state in partitions}, lineage))
        answers = super().replica_logs(partitions, lineage=lineage, progress=progress)
        return {address: tuple(map(self._told, told)) for address, told in answers.items()}

    def _told(self, answer: LogAnswer) -> LogAnswer:
        _, lineage = self.asked[-1]
        if isinstance(answer, LogUnavailable):
            return answer
        if len(self.asked) > 1 and answer.replica == self._silent_at_second:
            return LogUnavailable(answer.replica, LogUnavailableReason.TIMED_OUT)
        return answer if lineage else replace(answer, lineage=None)


def lineages(answers: Sequence[LogAnswer]) -> list[bool | None]:
    return [answer.lineage is not None if isinstance(answer, ReplicaLog) else None for answer in answers]


def test_only_logs_that_end_apart_are_read_again_and_only_where_they_were_heard() -> None:
    source = LiveLike()
    ((_, logs),) = read_logs(source, Selection())
    assert [lineage for _, lineage in source.asked] == [False, True]
    assert source.asked[1][0] == {PAYMENTS: (3, 2)}
    assert logs[PAYMENTS] == LOGS[PAYMENTS]
    assert lineages(logs[TopicPartition("orders", 1)]) == [False, None, False]


def test_a_log_that_is_not_heard_again_keeps_its_first_answer() -> None:
    source = LiveLike(silent_at_second=2)
    ((_, logs),) = read_logs(source, Selection())
    assert lineages(logs[PAYMENTS]) == [True, False, None]
    assert logs[PAYMENTS][1] == replace(LOGS[PAYMENTS][1], lineage=None)


def test_with_lineage_everything_is_read_once() -> None:
    source = LiveLike()
    ((_, logs),) = read_logs(source, Selection(), lineage=True)
    assert [lineage for _, lineage in source.asked] == [True]
    assert lineages(logs[TopicPartition("orders", 1)]) == [True, None, True]
