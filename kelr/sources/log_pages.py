"""Reading the logs of many partitions page by page: what `log-info` and scripts loop over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kelr.model import LogAnswer, ReplicaLog, Selection, TopicPartition
from kelr.sources.base import Page, Progress, Source


def read_logs(
    source: Source,
    selection: Selection,
    *,
    lineage: bool = False,
    page_size: int | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[Page, Mapping[TopicPartition, tuple[LogAnswer, ...]]]]:
    """Each page of the selected partitions with what every replica of its partitions answered.

    Args:
        lineage: learn every log's whole epoch history. Where it is False, that is learnt of those logs alone that end
            in different epochs: how far one is behind the other cannot be told without it.
        progress: told of each round of questions.
    """
    for page in source.pages(selection, page_size=page_size):
        logs = source.replica_logs(page.partitions, lineage=lineage, progress=progress)
        yield page, logs if lineage else _with_lineages(source, page, logs, progress)


def _with_lineages(
    source: Source, page: Page, logs: Mapping[TopicPartition, tuple[LogAnswer, ...]], progress: Progress | None
) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
    """The answers, read again with lineages where logs end in different epochs.

    Only replicas that answered are asked again: a broker that hangs is waited for once. All logs of a partition are
    taken from the second reading, so that they are of one time; one that does not answer then keeps its first answer.
    """
    apart = [state for state in page.partitions if _end_apart(logs[state.address])]
    if not apart:
        return logs
    heard = [replace(state, replicas=tuple(log.replica for log in _logs(logs[state.address]))) for state in apart]
    again = source.replica_logs(heard, lineage=True, progress=progress)
    merged = dict(logs)
    for state in apart:
        second = {log.replica: log for log in _logs(again[state.address]) if log.lineage is not None}
        merged[state.address] = tuple(second.get(answer.replica, answer) for answer in logs[state.address])
    return merged


def _end_apart(answers: Iterable[LogAnswer]) -> bool:
    """Whether logs with records end in different epochs, and some epochs before are not known."""
    logs = [log for log in _logs(answers) if not log.is_empty]
    last_epochs = {log.last_epoch for log in logs if log.last_epoch is not None}
    return len(last_epochs) > 1 and any(log.lineage is None for log in logs)


def _logs(answers: Iterable[LogAnswer]) -> Iterator[ReplicaLog]:
    return (answer for answer in answers if isinstance(answer, ReplicaLog))
