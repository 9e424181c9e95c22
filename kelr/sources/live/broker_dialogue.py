"""The exchange with one broker about the logs of its replicas: log ends first, then epochs, with repetitions.

An answer that is older than the partition's state (a smaller leader epoch), and an error that Kafka's own clients
repeat after, are asked again a few times. Epoch questions carry the leader epoch of the log end's answer, so that a
log that changes hands in between is noticed (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH) and read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelr.model import EpochEnd, LogAnswer, NotHeard, PartitionState, ReplicaLog, TopicPartition, Unheard
from kelr.sources.live import requests
from kelr.sources.live.decode import topic_id_text
from kelr.sources.live.epochs import Above, Below, Epochs, EpochSearch
from kelr.sources.live.failures import NONE, REFUSED, RETRIABLE, TOPIC_UNAUTHORIZED, UNKNOWN_TOPIC, error_name
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, Pause

PARTITIONS_A_REQUEST = 2500
ATTEMPTS = 4
FIRST_PAUSE_S = 0.1
"""Doubles for each further attempt: 0.7 s in all."""

_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
_UNHEARD_BY_ERROR = {
    "NOT_LEADER_OR_FOLLOWER": Unheard.NOT_A_REPLICA,
    UNKNOWN_TOPIC: Unheard.NOT_A_REPLICA,
    "KAFKA_STORAGE_ERROR": Unheard.STORAGE_ERROR,
    TOPIC_UNAUTHORIZED: Unheard.NOT_AUTHORIZED,
    "REQUEST_TIMED_OUT": Unheard.TIMED_OUT,
    "UNSUPPORTED_VERSION": Unheard.UNSUPPORTED,
}
_UNHEARD_BY_FAILURE = {
    FailureKind.UNREACHABLE: Unheard.UNREACHABLE,
    FailureKind.TIMED_OUT: Unheard.TIMED_OUT,
    FailureKind.AUTHENTICATION: Unheard.AUTHENTICATION_FAILED,
    FailureKind.UNSUPPORTED: Unheard.UNSUPPORTED,
    FailureKind.GARBLED: Unheard.ERROR,
}
_AGAIN = RETRIABLE | {UNKNOWN_TOPIC}
"""A broker that has just started may not know its replicas yet."""


_NO_EPOCHS = "its epoch history names none"
_SENT_ELSEWHERE = "the broker did not answer for its own log (it sends consumers to another replica)"


@dataclass(frozen=True, slots=True)
class Position:
    """An answer about no epoch: where the log stands."""

    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None


Fetched = Above | Below | Position | str
"""What a Fetch said of one partition; a str is the name of the error."""


@dataclass(frozen=True, slots=True)
class _End:
    """A log end, and the leader epoch that the broker holds to be current; None before ListOffsets v4."""

    partition: PartitionState
    log_end: int
    leader_epoch: int | None


class BrokerDialogue:
    """Reads all logs that one broker holds of these partitions; `hold` is the dialogue.

    Args:
        report: called with the number of replicas that have just been settled.
    """

    def __init__(
        self,
        broker: int,
        partitions: Sequence[PartitionState],
        *,
        lineage: bool,
        timeout_s: float,
        clock_ms: Callable[[], int],
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._broker = broker
        self._partitions = {partition.address: partition for partition in partitions}
        self._lineage = lineage
        self._timeout_s = timeout_s
        self._clock_ms = clock_ms
        self._report = report
        self._answers: dict[TopicPartition, LogAnswer] = {}
        self._failure: Failure | None = None

    def hold(self) -> Dialogue[dict[TopicPartition, LogAnswer]]:
        """One answer for each partition: its log, or why it was not heard."""
        pending = list(self._partitions.values())
        for attempt in range(ATTEMPTS):
            if attempt:
                yield Pause(FIRST_PAUSE_S * 2 ** (attempt - 1))
            self._failure = None
            again: list[PartitionState] = []
            for at in range(0, len(pending), PARTITIONS_A_REQUEST):
                again += yield from self._read(pending[at : at + PARTITIONS_A_REQUEST])
            pending = again
            if not pending:
                break
        self._report(len(pending))
        return {address: self._answers[address] for address in self._partitions}

    def _read(self, batch: Sequence[PartitionState]) -> Dialogue[list[PartitionState]]:
        """Settle what can be settled; gives back what should be asked again, with the best answer so far noted."""
        ends = yield from self._log_ends(batch)
        logs = yield from self._epochs(ends)
        self._answers.update(logs)
        again = [partition for partition in batch if self._asks_again(self._answers[partition.address])]
        self._report(len(batch) - len(again))
        return again

    def _asks_again(self, answer: LogAnswer) -> bool:
        if isinstance(answer, ReplicaLog):
            return answer.last_epoch_error in _AGAIN
        if self._failure is not None:
            # A connection that broke may have been an idle one that the broker closed; a slow broker stays slow.
            return self._failure.kind is FailureKind.UNREACHABLE and self._failure.detail != REFUSED
        return answer.reason is Unheard.STALE or answer.detail in _AGAIN

    def _log_ends(self, batch: Sequence[PartitionState]) -> Dialogue[list[_End]]:
        """The log ends; a partition without one has its `NotHeard` noted."""
        by_topic: dict[str, list[int]] = {}
        for partition in batch:
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        if self._failure is None:
            answer = yield Ask(requests.log_ends(by_topic, timeout_s=self._timeout_s), self._timeout_s)
            self._failure = answer if isinstance(answer, Failure) else None
        if self._failure is not None:
            for partition in batch:
                self._not_heard(partition, _UNHEARD_BY_FAILURE[self._failure.kind], self._failure.detail)
            return []
        found = {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in answer.topics
            for partition in topic.partitions
        }
        return [
            end for partition in batch if (end := self._log_end(partition, found.get(partition.address))) is not None
        ]

    def _log_end(self, partition: PartitionState, answer: Message) -> _End | None:
        if answer is None:
            self._not_heard(partition, Unheard.ERROR, "the broker's answer leaves this partition out")
            return None
        error = error_name(answer.error_code)
        if error != NONE or answer.offset < 0:
            self._not_heard(partition, _UNHEARD_BY_ERROR.get(error, Unheard.ERROR), error)
            return None
        leader_epoch = answer.leader_epoch if answer.leader_epoch is not None and answer.leader_epoch >= 0 else None
        if leader_epoch is not None and leader_epoch < partition.leader_epoch:
            self._not_heard(
                partition,
                Unheard.STALE,
                f"the broker is at leader epoch {leader_epoch}, the partition at {partition.leader_epoch}",
            )
            return None
        return _End(partition, answer.offset, leader_epoch)

    def _epochs(self, ends: Sequence[_End]) -> Dialogue[dict[TopicPartition, LogAnswer]]:
        """Search the epochs of all these logs at once, one request a round."""
        held = {end.partition.address: end for end in ends}
        searches = {address: EpochSearch(_highest_epoch(end), lineage=self._lineage) for address, end in held.items()}
        errors: dict[TopicPartition, str] = {}
        while True:
            wanted = {
                address: epoch
                for address, search in searches.items()
                if address not in errors and (epoch := search.next_epoch()) is not None
            }
            if not wanted:
                break
            probes = [_probe(held[address], epoch) for address, epoch in wanted.items()]
            answers = yield from self._fetch(probes)
            for address, epoch in wanted.items():
                answer = answers[address]
                if isinstance(answer, Above | Below):
                    searches[address].answered(epoch, answer)
                else:
                    errors[address] = answer if isinstance(answer, str) else _SENT_ELSEWHERE
        unheld = [end for address, end in held.items() if address not in errors and _knows_no_epoch(searches[address])]
        positions = (yield from self._fetch([_position(end) for end in unheld])) if unheld else {}
        return {
            address: self._log(end, searches[address].result(), errors.get(address), positions.get(address))
            for address, end in held.items()
        }

    def _fetch(self, probes: Sequence[requests.Probe]) -> Dialogue[dict[TopicPartition, Fetched]]:
        """One Fetch; for each probe what it says, or Kafka's (or the failure's) name of why it says nothing."""
        answer = yield Ask(requests.fetch_probes(probes), self._timeout_s)
        if isinstance(answer, Failure):
            if answer.kind is not FailureKind.UNSUPPORTED:
                self._failure = answer
            return {probe.address: f"{answer.kind.value} (Fetch): {answer.detail}" for probe in probes}
        error = error_name(answer.error_code)
        if error != NONE:
            return {probe.address: error for probe in probes}
        names = {probe.topic_id: probe.address.topic for probe in probes}
        found = {
            TopicPartition(_topic_name(answer, topic, names), partition.partition_index): _fetched(partition)
            for topic in answer.responses
            for partition in topic.partitions
        }
        return {probe.address: found.get(probe.address, "the answer leaves this partition out") for probe in probes}

    def _log(self, end: _End, epochs: Epochs, error: str | None, position: Fetched | None) -> ReplicaLog:
        here = position if isinstance(position, Position) else None
        problem = error or (position if isinstance(position, str) else None)
        known = error is None
        log_end = epochs.log_end if known and epochs.log_end is not None else end.log_end
        log_start = here.log_start if here is not None else epochs.log_start
        if problem is None and epochs.newest is None and log_start is not None and log_start < log_end:
            problem = _NO_EPOCHS
        return ReplicaLog(
            replica=self._broker,
            log_end=log_end,
            last_epoch=epochs.newest if known else None,
            current_leader_epoch=end.leader_epoch,
            high_watermark=here.high_watermark if here is not None else epochs.high_watermark,
            log_start=log_start,
            lineage=epochs.lineage if known else None,
            source="ListOffsets+Fetch" if log_start is not None else "ListOffsets",
            read_at_ms=self._clock_ms(),
            last_epoch_error=problem if problem != TOPIC_UNAUTHORIZED else f"{problem} (READ)",
            last_stable_offset=here.last_stable_offset if here is not None else epochs.last_stable_offset,
        )

    def _not_heard(self, partition: PartitionState, reason: Unheard, detail: str) -> None:
        self._answers[partition.address] = NotHeard(self._broker, reason, detail, self._clock_ms())


def _highest_epoch(end: _End) -> int:
    known = end.leader_epoch if end.leader_epoch is not None else end.partition.leader_epoch
    return max(0, known)


def _knows_no_epoch(search: EpochSearch) -> bool:
    return search.result().log_start is None


def _probe(end: _End, epoch: int) -> requests.Probe:
    return requests.Probe(
        end.partition.address, end.partition.topic_id, end.leader_epoch, requests.FAR_OFFSET, last_epoch=epoch
    )


def _position(end: _End) -> requests.Probe:
    """At the log end, without an epoch: no records, but where the log stands."""
    return requests.Probe(end.partition.address, end.partition.topic_id, end.leader_epoch, end.log_end, last_epoch=None)


def _topic_name(answer: Message, topic: Message, names: dict[str | None, str]) -> str:
    if answer.API_VERSION < 13:
        return str(topic.topic)
    return names.get(topic_id_text(topic.topic_id), "")


def _fetched(partition: Message) -> Fetched:
    error = error_name(partition.error_code)
    if error == _OUT_OF_RANGE:
        return Above()
    if error != NONE:
        return error
    high_watermark, log_start = _known(partition.high_watermark), _known(partition.log_start_offset)
    last_stable_offset = _known(partition.last_stable_offset)
    diverging = partition.diverging_epoch
    if diverging is None or diverging.epoch < 0:
        return Position(high_watermark, log_start, last_stable_offset)
    end = EpochEnd(diverging.epoch, diverging.end_offset)
    return Below(end, high_watermark, log_start, last_stable_offset)


def _known(offset: int) -> int | None:
    return offset if offset >= 0 else None
