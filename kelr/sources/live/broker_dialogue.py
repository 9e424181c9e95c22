"""The exchange with one broker about the logs of its replicas: log ends first, then epochs, with repetitions.

Log ends come from GetReplicaLogInfo where the broker speaks it, which tells the last epoch too, else from ListOffsets.
What is left, a Fetch tells: the epochs, the high watermark, the log start, the last stable offset.

An answer that is older than the partition's state (a smaller leader epoch), and an error that Kafka's own clients
repeat after, are asked again a few times. Epoch questions carry the leader epoch of the log end's answer, so that a
log that changes hands in between is noticed (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH) and read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from kelr.model import (
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
)
from kelr.protocol.error_codes import error_name
from kelr.sources.live import requests
from kelr.sources.live.decode import topic_id_text
from kelr.sources.live.failures import NONE, REFUSED, RETRIABLE, TOPIC_UNAUTHORIZED, UNKNOWN_TOPIC, with_acl
from kelr.sources.live.log_ends import End, Ends, NoEnd, by_list_offsets, failed, remote_bounds
from kelr.sources.live.log_info import LogInfoReader
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, Pause
from kelr.sources.log_info_key import LogInfoKey

# Finding out which leader epochs a log holds, from a broker that answers one kind of question.
#
# The question is a Fetch whose fetch offset lies beyond every log, with `last_fetched_epoch` e. Kafka answers it from
# the log's epoch history (Partition.fetchRecords, LeaderEpochFileCache.endOffsetFor):
#
# - e above the newest epoch of the log, or no epoch at all: OFFSET_OUT_OF_RANGE;
# - else the diverging epoch: the largest epoch <= e in the log, and its end offset;
# - e below the oldest epoch of the log: e itself, with the offset where the oldest epoch starts. That epoch has no
#   records here, although the answer looks like any other.
#
# So "answered" holds for every e up to the newest epoch and for none above it, and a search finds the newest. A leader
# writes its epoch into the history when it takes over, before any record: the newest epoch may be one without records.
# Only the newest can be, because a later epoch that starts at the same offset replaces it.


@dataclass(frozen=True, slots=True)
class Above:
    """The broker's OFFSET_OUT_OF_RANGE: the epoch asked for is above all that the log holds."""


@dataclass(frozen=True, slots=True)
class Below:
    """The largest epoch at or below the one asked for, where it ends, and what else the same answer tells."""

    end: EpochEnd
    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Epochs:
    """What a search found out. `newest` None: the log's history names no epoch."""

    newest: int | None
    """The last written epoch: that of the last record, or of the last record that retention took. None: no record, or
    records without an epoch (written before Kafka 0.11)."""
    lineage: tuple[EpochEnd, ...] | None
    """Oldest first; None where nobody asked for it."""
    log_end: int | None
    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None = None


class EpochSearch:
    """The questions about one log: ask `next_epoch`, tell `answered`, until `next_epoch` is None; then `result`.

    First gallops down from the leader epoch that the broker knows (logs mostly end in a recent epoch), then halves
    the rest: at most about 2 log2(epochs) questions. Then it walks down: one step to see whether the newest epoch
    holds records, or all the way for the lineage.

    Args:
        leader_epoch: the partition's leader epoch as the broker knows it; no log of its holds a higher one.
    """

    def __init__(self, leader_epoch: int, *, lineage: bool) -> None:
        self._lineage = lineage
        self._lowest_above = leader_epoch + 1
        self._newest: int | None = None
        self._stride = 1
        self._chain: list[EpochEnd] = []
        """Newest first. The first is certain; of the others, the last may turn out to be no epoch of this log."""
        self._walked = False
        self._newest_is_empty = False
        self._latest: Below | None = None

    def next_epoch(self) -> int | None:
        """The epoch to ask about now; None when nothing more is needed."""
        if self._lowest_above == 0 or self._walked:
            return None
        if self._newest is None:
            return max(0, self._lowest_above - self._stride)
        if self._newest + 1 < self._lowest_above:
            return (self._newest + self._lowest_above) // 2
        return self._chain[-1].epoch - 1

    def answered(self, asked: int, answer: Above | Below) -> None:
        """Take the answer about the epoch `asked`, which was `next_epoch`'s."""
        if isinstance(answer, Above):
            self._above(asked)
            return
        self._latest = answer
        if self._newest is None or asked > self._newest:
            self._newest = asked
            self._chain = [answer.end]
            self._walked = self._newest + 1 == self._lowest_above and self._bottom(answer.end)
        else:
            self._walk(asked, answer)

    def _above(self, asked: int) -> None:
        if self._newest is not None and asked <= self._newest:
            # The log was truncated between two answers; what is known no longer holds.
            self._newest, self._chain, self._stride = None, [], 1
        else:
            self._stride *= 2
        self._lowest_above = asked
        if self._newest is not None and self._newest + 1 == self._lowest_above:
            self._walked = self._bottom(self._chain[-1])

    def _walk(self, asked: int, answer: Below) -> None:
        found, above = answer.end, self._chain[-1]
        if found.end_offset <= (answer.log_start or 0):
            self._walked = True
            return
        if len(self._chain) > 1 and found.end_offset == above.end_offset:
            # Two epochs cannot end at one offset: the one above was only the echo of the question.
            echo = self._chain.pop()
            if found.epoch == asked:
                self._walked = True
                self._newest_is_empty = echo.end_offset == self._chain[0].end_offset
                return
        self._chain.append(found)
        undecided = found.epoch == asked and found.end_offset == self._chain[0].end_offset
        self._walked = self._bottom(found) or not (self._lineage or undecided)

    def _bottom(self, end: EpochEnd) -> bool:
        return end.epoch <= 0

    def result(self) -> Epochs:
        """What was learnt; call when `next_epoch` is None."""
        latest = self._latest
        if latest is None or not self._chain:
            return Epochs(None, () if self._lineage else None, None, None, None)
        log_end, start = self._chain[0].end_offset, latest.log_start
        held = [end for end in self._chain if start is None or end.end_offset > start]
        if self._newest_is_empty or (len(held) > 1 and held[1].end_offset == held[0].end_offset):
            held = held[1:]
        empty = log_end == 0 if start is None else log_end <= start
        newest = held[0].epoch if held else None
        if empty and log_end > 0:
            newest = self._chain[0].epoch
        return Epochs(
            newest=newest,
            lineage=(() if empty else tuple(reversed(held))) if self._lineage else None,
            log_end=log_end,
            high_watermark=latest.high_watermark,
            log_start=start,
            last_stable_offset=latest.last_stable_offset,
        )


# A Fetch that wants no records: what is asked of a log, and what the answer says.


_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


@dataclass(frozen=True, slots=True)
class Position:
    """An answer about no epoch: where the log stands."""

    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None


Fetched = Above | Below | Position | str
"""What a Fetch said of one partition; a str is the name of the error."""


def probe(end: End, epoch: int) -> requests.Probe:
    return requests.Probe(
        end.partition.address, end.partition.topic_id, end.leader_epoch, requests.FAR_OFFSET, last_epoch=epoch
    )


def position_of(end: End) -> requests.Probe:
    """At the log end, without an epoch: no records, but where the log stands."""
    return requests.Probe(end.partition.address, end.partition.topic_id, end.leader_epoch, end.log_end, last_epoch=None)


def answers_to(probes: Sequence[requests.Probe], answer: Message) -> dict[TopicPartition, Fetched]:
    """For each probe what a Fetch answer says, or Kafka's name of why it says nothing."""
    error = error_name(answer.error_code)
    if error != NONE:
        return {probe.address: error for probe in probes}
    names = {probe.topic_id: probe.address.topic for probe in probes}
    found = {
        TopicPartition(_topic_name(answer, topic, names), partition.partition_index): _fetched(partition)
        for topic in answer.responses
        for partition in topic.partitions
    }
    return {
        probe.address: _possible(probe, found.get(probe.address, "the answer leaves this partition out"))
        for probe in probes
    }


def _possible(probe: requests.Probe, said: Fetched) -> Fetched:
    """What was said, unless it cannot be so: the epoch told is at most the one asked about, and ends where a log can.

    Without it a search for the newest epoch goes on for as long as somebody answers.
    """
    if not isinstance(said, Below):
        return said
    asked, end = probe.last_epoch, said.end
    possible = asked is not None and end.epoch <= asked and 0 <= end.end_offset < requests.FAR_OFFSET
    return said if possible else "the answer makes no sense"


def _topic_name(answer: Message, topic: Message, names: dict[str | None, str]) -> str:
    if answer.version < 13:
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


PARTITIONS_A_REQUEST = 2500
ATTEMPTS = 4
FIRST_PAUSE_S = 0.1
"""Doubles for each further attempt: 0.7 s in all."""

_AGAIN = RETRIABLE | {UNKNOWN_TOPIC}
"""A broker that has just started may not know its replicas yet."""
_CONTRADICTED = "what Fetch tells of its log end contradicts GetReplicaLogInfo"
_NO_EPOCHS = "its epoch history names none"
_NO_END = "its epoch history has no end"
MOST_ROUNDS = 1 << 15
"""Of epoch questions: a log with so many epochs does not exist, and a broker that made them up would go on for ever."""


_SENT_ELSEWHERE = "the broker did not answer for its own log (it sends consumers to another replica)"


@dataclass(frozen=True, slots=True)
class LogInfoUse:
    """How GetReplicaLogInfo may be used: under this key, or where the broker itself announces one."""

    key: LogInfoKey | None = None
    """As configured; None: the broker is asked what it announces."""
    unusable: str | None = None
    """Why it is not sent although it was configured; None: nothing is known against it."""


class BrokerDialogue:
    """Reads all logs that one broker holds of these partitions; `hold` is the dialogue.

    Args:
        log_info: whether GetReplicaLogInfo is used; None: it is not, and nothing is asked about it.
        registered_epoch: the broker epoch of the broker's registration; None where nobody told.
        tiered: topics with remote storage: of their logs it is asked what is there.
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
        log_info: LogInfoUse | None = None,
        registered_epoch: int | None = None,
        tiered: Collection[str] = (),
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.broker = broker
        self._partitions = {partition.address: partition for partition in partitions}
        self._lineage = lineage
        self._timeout_s = timeout_s
        self._clock_ms = clock_ms
        self._report = report
        self._log_info_use = log_info
        self._registered_epoch = registered_epoch
        self._tiered = frozenset(tiered)
        self._log_info: LogInfoReader | None = None
        self._answers: dict[TopicPartition, LogAnswer] = {}
        self._again: set[TopicPartition] = set()
        """Partitions whose epochs were not told, or contradicted, in a way that another question may mend."""
        self._failure: Failure | None = None

    def hold(self) -> Dialogue[dict[TopicPartition, LogAnswer]]:
        """One answer for each partition: its log, or why it was not heard."""
        yield from self._learn_log_info()
        pending = list(self._partitions.values())
        for attempt in range(ATTEMPTS):
            if attempt:
                yield Pause(FIRST_PAUSE_S * 2 ** (attempt - 1))
            self._failure = None
            again: list[PartitionState] = []
            for at in range(0, len(pending), PARTITIONS_A_REQUEST):
                again += yield from self._read(pending[at : at + PARTITIONS_A_REQUEST])
            pending = again + self._of_another_incarnation()
            if not pending:
                break
        for partition in self._of_another_incarnation():
            self._not_heard(partition, LogUnavailableReason.STALE, "the broker was restarted while it was asked")
        yield from self._learn_remote()
        self._report(len(pending))
        return {address: self._answers[address] for address in self._partitions}

    def _learn_remote(self) -> Dialogue[None]:
        """What is in remote storage, of the logs in topics that have any."""
        held = {
            at: one for at, one in self._answers.items() if at.topic in self._tiered and isinstance(one, ReplicaLog)
        }
        tiered = [self._partitions[address] for address in held]
        for at in range(0, len(tiered), PARTITIONS_A_REQUEST):
            bounds = yield from remote_bounds(tiered[at : at + PARTITIONS_A_REQUEST], timeout_s=self._timeout_s)
            for address, told in bounds.items():
                # They are of a later moment than the log, which may have been truncated since.
                start, end = (None if one is None or one > held[address].log_end else one for one in told)
                self._answers[address] = replace(held[address], local_start=start, remote_end=end)

    def _learn_log_info(self) -> Dialogue[None]:
        """Which GetReplicaLogInfo this broker speaks: as configured, or as it announces."""
        use = self._log_info_use
        if use is None:
            return
        key = use.key
        if key is None:
            answer = yield Ask(requests.api_versions(), self._timeout_s)
            key = None if isinstance(answer, Failure) else LogInfoKey.announced(answer)
        if key is not None:
            reader = LogInfoReader(self.broker, key, self._registered_epoch, self._timeout_s, use.unusable)
            self._log_info = reader

    def _of_another_incarnation(self) -> list[PartitionState]:
        """Partitions whose answers an earlier process of this broker gave than the one that answered last."""
        if self._log_info is None or self._log_info.epoch is None:
            return []
        return [
            self._partitions[address]
            for address, answer in self._answers.items()
            if isinstance(answer, ReplicaLog) and answer.broker_epoch not in {None, self._log_info.epoch}
        ]

    def _read(self, batch: Sequence[PartitionState]) -> Dialogue[list[PartitionState]]:
        """Settle what can be settled; gives back what should be asked again, with the best answer so far noted."""
        self._again.difference_update(partition.address for partition in batch)
        found = yield from self._ends(batch)
        ends = [end for end in found.values() if isinstance(end, End)]
        for partition in batch:
            end = found[partition.address]
            if isinstance(end, NoEnd):
                self._not_heard(partition, end.reason, end.detail)
        yield from self._epochs(ends)
        again = [partition for partition in batch if self._asks_again(partition.address)]
        self._report(len(batch) - len(again))
        return again

    def _asks_again(self, address: TopicPartition) -> bool:
        answer = self._answers[address]
        if isinstance(answer, ReplicaLog):
            return address in self._again
        if self._failure is not None:
            # A connection that broke may have been an idle one that the broker closed; a slow broker stays slow.
            return self._failure.kind is FailureKind.UNREACHABLE and self._failure.detail != REFUSED
        return answer.reason is LogUnavailableReason.STALE or answer.detail in _AGAIN or address in self._again

    def _ends(self, batch: Sequence[PartitionState]) -> Dialogue[Ends]:
        """A log end, or why there is none, for each partition."""
        found: Ends = {}
        if self._failure is None and self._log_info is not None and self._log_info.usable:
            told = yield from self._log_info.read(batch)
            if isinstance(told, Failure):
                self._failure = told
            else:
                found.update(told)
        rest = [partition for partition in batch if partition.address not in found]
        if self._failure is None and rest:
            answer = yield from by_list_offsets(rest, timeout_s=self._timeout_s)
            if isinstance(answer, Failure):
                self._failure = answer
            else:
                found.update(answer)
        if self._failure is not None:
            found.update(failed([one for one in batch if one.address not in found], self._failure))
        return found

    def _epochs(self, ends: Sequence[End]) -> Dialogue[None]:
        """Search the epochs of all these logs at once, one request a round, and note what each log holds."""
        held = {end.partition.address: end for end in ends}
        searches = {address: EpochSearch(_highest_epoch(end), lineage=self._lineage) for address, end in held.items()}
        errors: dict[TopicPartition, str] = {}
        checked: set[TopicPartition] = set()
        """Where GetReplicaLogInfo's answer was held against the epoch history: once is enough, without lineage."""
        for _round in range(MOST_ROUNDS):
            wanted = {
                address: epoch
                for address, search in searches.items()
                if address not in errors
                and (self._lineage or address not in checked)
                and (epoch := search.next_epoch()) is not None
            }
            if not wanted:
                break
            probes = [probe(held[address], epoch) for address, epoch in wanted.items()]
            answers = yield from self._fetch(probes)
            for address, epoch in wanted.items():
                answer = answers[address]
                if held[address].tells_epoch and address not in checked:
                    checked.add(address)
                    if _contradicts(held[address], answer):
                        errors[address] = _CONTRADICTED
                        continue
                if isinstance(answer, Above | Below):
                    searches[address].answered(epoch, answer)
                else:
                    errors[address] = answer if isinstance(answer, str) else _SENT_ELSEWHERE
        else:
            unended = [address for address, search in searches.items() if search.next_epoch() is not None]
            errors.update({address: _NO_END for address in unended if address not in errors})
        unheld = [end for address, end in held.items() if address not in errors and _knows_no_epoch(searches[address])]
        positions = (yield from self._fetch([position_of(end) for end in unheld])) if unheld else {}
        for address, end in held.items():
            error, position = errors.get(address), positions.get(address)
            if error == _CONTRADICTED or (end.tells_epoch and isinstance(position, Above)):
                self._not_heard(end.partition, LogUnavailableReason.ERROR, _CONTRADICTED)
                self._again.add(address)
                continue
            log = self._log(end, searches[address].result(), error, position)
            impossible = _impossible(log)
            if impossible is not None:
                self._not_heard(end.partition, LogUnavailableReason.ERROR, impossible)
                self._again.add(address)  # a log that was truncated between two answers looks so once
                continue
            self._answers[address] = log
            if error in _AGAIN or position in _AGAIN:
                self._again.add(address)

    def _fetch(self, probes: Sequence[requests.Probe]) -> Dialogue[dict[TopicPartition, Fetched]]:
        """One Fetch; for each probe what it says, or Kafka's (or the failure's) name of why it says nothing."""
        answer = yield Ask(requests.fetch_probes(probes), self._timeout_s)
        if isinstance(answer, Failure):
            if answer.kind is not FailureKind.UNSUPPORTED:
                self._failure = answer
            return {probe.address: f"{answer.kind.value} (Fetch): {answer.detail}" for probe in probes}
        return answers_to(probes, answer)

    def _log(self, end: End, epochs: Epochs, error: str | None, position: Fetched | None) -> ReplicaLog:
        here = position if isinstance(position, Position) else None
        problem = error or (position if isinstance(position, str) else None)
        known = error is None
        log_end = epochs.log_end if known and epochs.log_end is not None else end.log_end
        log_start = here.log_start if here is not None else epochs.log_start
        newest = end.last_epoch if end.tells_epoch else epochs.newest if known else None
        problem = with_acl(problem, "READ") if problem == TOPIC_UNAUTHORIZED else problem
        epoch_error = None if end.tells_epoch else problem
        if problem is None and newest is None and log_start is not None and log_start < log_end:
            epoch_error = _NO_EPOCHS
        return ReplicaLog(
            replica=self.broker,
            log_end=log_end,
            last_epoch=newest,
            current_leader_epoch=end.leader_epoch,
            high_watermark=_up_to(log_end, here.high_watermark if here is not None else epochs.high_watermark),
            log_start=log_start,
            lineage=epochs.lineage if known else None,
            broker_epoch=end.broker_epoch,
            source=self._source(end, problem, fetched=log_start is not None),
            read_at_ms=self._clock_ms(),
            last_epoch_error=epoch_error,
            last_stable_offset=here.last_stable_offset if here is not None else epochs.last_stable_offset,
        )

    def _source(self, end: End, problem: str | None, *, fetched: bool) -> str:
        """The requests that told, and why not others."""
        source = f"{end.source}+Fetch" if fetched else end.source
        if end.tells_epoch:
            return source if fetched or problem is None else f"{source}; high watermark not told: {problem}"
        unusable = None if self._log_info is None else self._log_info.unusable
        return source if unusable is None else f"{source} ({self._log_info_name}: {unusable})"

    @property
    def _log_info_name(self) -> str:
        return "" if self._log_info is None else str(self._log_info.key)

    def _not_heard(self, partition: PartitionState, reason: LogUnavailableReason, detail: str) -> None:
        self._answers[partition.address] = LogUnavailable(self.broker, reason, detail, self._clock_ms())


def _impossible(log: ReplicaLog) -> str | None:
    """Why no log can be as these answers have it; None where one can."""
    if log.log_start is not None and log.log_start > log.log_end:
        return f"its log would start at {log.log_start}, behind its end {log.log_end}"
    ends = [end.end_offset for end in log.lineage or ()]
    if ends != sorted(ends) or any(end > log.log_end for end in ends):
        return "its epochs would not end one after the other"
    return None


def _up_to(log_end: int, high_watermark: int | None) -> int | None:
    """The high watermark, of a log that ends here: one that grew between two answers has it further on."""
    return None if high_watermark is None else min(high_watermark, log_end)


def _highest_epoch(end: End) -> int:
    """The epoch to begin the search with: no log of this broker holds a higher one."""
    if end.tells_epoch:
        return -1 if end.last_epoch is None else end.last_epoch
    known = end.leader_epoch if end.leader_epoch is not None else end.partition.leader_epoch
    return max(0, known)


def _contradicts(end: End, answer: Fetched) -> bool:
    """Whether the epoch history denies what GetReplicaLogInfo told: its last epoch is there, and ends where it said.

    Where a leader leads, the log may have grown in between. An error denies nothing.
    """
    if isinstance(answer, Below):
        return answer.end.epoch != end.last_epoch or answer.end.end_offset < end.log_end
    return isinstance(answer, Above)


def _knows_no_epoch(search: EpochSearch) -> bool:
    return search.result().log_start is None
