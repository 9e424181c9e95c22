"""Whether what was read of a dead broker's disk can be what that disk holds now.

A disk is read at one moment. If its broker has run since, the reading is stale, and nothing in a released Kafka tells
so outright; but what the controller records, and what other replicas hold, can contradict it. A log that was cut (a
machine that crashed) contradicts them in the same way. The two are told apart by what lies beside the log: a broker
writes each leader epoch that it leads in to its checkpoint at once, and saves its high watermark every few seconds.

Neither is a matter of one partition. A broker that has run since has had all its directories open. A machine that
crashes takes what was not on a device yet from every log there: what is committed is held by replication, and logs are
left to the page cache (`log.flush.interval.messages` is unlimited). So evidence in one partition weighs on the others:
of a stale reading nothing is believed but what shows itself to be newer; where a log of a directory was cut, the others
in it may have been, and where they end is the least of what they held. What logs lack is taken for cut where one of
their directory shows itself that it was (`cut_logs`): then nothing speaks for a stale reading.

Source: `Partition.makeLeader` and `LeaderEpochFileCache.assign` (the epoch is written before the first record is
taken), `PartitionChangeBuilder` (the leader epoch rises by one with each change of leader, to none as well),
`ReplicaManager.checkpointHighWatermarks` (a file for each directory), `LogManager.loadLogs` (each directory is
recovered for itself, by its own mark of a clean shutdown), `LogConfig` (flush.messages, flush.ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from kelr.engine.logs import agreement, count_distinct, missing
from kelr.engine.words import joined, plural, time_of_day
from kelr.model import (
    LOG_DIRECTORY,
    BrokerStatus,
    Cluster,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
)

if TYPE_CHECKING:
    from kelr.sources.snapshot_collection import CollectedLog

_CUT = "its log was cut"


class Shows(Enum):
    """What contradicts a reading, and so what it shows of the rest of the disk."""

    RUNNING = auto()
    """The broker ran while it was read."""
    STALE = auto()
    """The broker has run since, and all its directories were read before, or it was elected when it was down."""
    STALE_OR_CUT = auto()
    """One of the two: other logs of the directory may have held more, or hold more now."""
    HOLE = auto()
    """A segment of this log is gone; of the others nothing."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a reading of a replica's disk is not believed."""

    shows: Shows
    answer: LogUnavailable


@dataclass(frozen=True, slots=True)
class CutLog:
    """A log that ends before the high watermark that its disk has saved."""

    address: TopicPartition
    log_end: int
    saved_high_watermark: int


def may_contradict(state: PartitionState, replica: int) -> bool:
    """Whether a partition can show anything of a replica's disk: it is on record what that should hold."""
    return _role(state, replica) is not None


def doubted(
    state: PartitionState,
    log: CollectedLog,
    others: Iterable[ReplicaLog],
    *,
    running: bool = False,
    compacted: bool | None = None,
) -> Doubt | None:
    """Why a reading of a replica's disk is not believed, by what is known of its own partition; None where nothing
    contradicts it.

    Args:
        log: what was read of the disk.
        others: what was heard of the partition's other replicas.
        running: whether the broker ran while its disk was read.
        compacted: whether the topic is; None: not known.
    """
    held = log.answer
    if isinstance(held, LogUnavailable) or not log.of_disk:
        return None
    found = _contradiction(state, log, held, others, running=running)
    if found is None:
        if not held.holes or compacted:
            return None
        why = "nothing compacts the topic" if compacted is False else "whether the topic is compacted is not known"
        where = joined(f"{start} to {end - 1}" for start, end in held.holes)
        text = f"it lacks offsets {where} between its segments, and {why}: what was committed of them is gone from it"
        return Doubt(Shows.HOLE, _not_believed(log, text))
    shows, why, otherwise = found
    saved = "" if log.saved_high_watermark is None else f" (saved high watermark {log.saved_high_watermark})"
    return Doubt(
        shows,
        _not_believed(
            log,
            f"its log ended at {held.log_end}{saved}, {why}; if the broker has run since, read its disk again; if it"
            f" has not, {otherwise}",
            LogUnavailableReason.LACKING if shows is Shows.STALE_OR_CUT else LogUnavailableReason.DOUBTFUL,
        ),
    )


def doubted_with(
    state: PartitionState,
    log: CollectedLog,
    others: Iterable[ReplicaLog],
    shows: Shows,
    shown_by: TopicPartition,
    *,
    cut: bool,
) -> LogUnavailable | None:
    """Why a reading is not believed that nothing of its own partition contradicts, but another one's of the same disk.

    It is believed where it shows itself that nothing can have been added to it since: the broker led last, in an epoch
    that it knows, or it holds all that the last leader holds. What is stale or cut is taken for cut where a log of the
    directory is known to be: then a member of ISR or ELR holds what was read, or held more.

    Args:
        shows: what the other partition shows.
        shown_by: that partition.
        cut: whether a log of the directory is known to have lost its tail (`cut_logs`).
    """
    held = log.answer
    if isinstance(held, LogUnavailable) or not log.of_disk or _read_after_leading(state, log):
        return None
    if _holds_all_of_the_leader(state, held, others):
        return None
    if shows is Shows.STALE:
        return _not_believed(
            log,
            f"what it holds of {shown_by} may be from before its broker last ran, and so may this be; if the broker has"
            " run since, read its disk again",
        )
    if cut and _role(state, held.replica) is not None:
        return None
    return _not_believed(
        log,
        f"what it holds of {shown_by} is from before its broker last ran, or was cut, and so may this be; if the broker"
        " has run since, read its disk again",
    )


def cut_logs(logs: Mapping[TopicPartition, Iterable[CollectedLog]]) -> Mapping[tuple[int, str], list[CutLog]]:
    """The log directories (broker, path) that have lost the tails of logs, and which logs tell so."""
    found: dict[tuple[int, str], list[CutLog]] = {}
    for address, readings in logs.items():
        for log in readings:
            end = None if isinstance(log.answer, LogUnavailable) else log.answer.log_end
            saved = log.saved_high_watermark
            if log.of_disk and end is not None and saved is not None and saved > end:
                found.setdefault(device_of(log), []).append(CutLog(address, end, saved))
    return found


def perhaps_cut(state: PartitionState, answers: Sequence[LogAnswer]) -> frozenset[int]:
    """Replicas whose disks were read, and whose logs end before what they held once: by the high watermark that the
    disk has saved, or by one that another replica knows although this one should hold everything committed.

    A broker that answers itself may lag, and tells nothing of a disk here.
    """
    heard = [answer for answer in answers if isinstance(answer, ReplicaLog)]
    cut = {log.replica for log in heard if log.source == LOG_DIRECTORY and _is_short(state, log, heard)}
    lacking = {
        one.replica for one in answers if isinstance(one, LogUnavailable) and one.reason is LogUnavailableReason.LACKING
    }
    return frozenset(cut | lacking)


@dataclass(frozen=True, slots=True)
class SavedDisks:
    """What all partitions of a snapshot show together of the disks that were read for it. How a broker stopped, and
    whether logs of its disk may be cut, are facts of the disk; a snapshot keeps them with each log, and one of an
    earlier kelr only with those that it believed."""

    cut: frozenset[int] = frozenset()
    """Brokers of whose disks one log tells that others may have held more. A snapshot does not keep which directory a
    log was in. Where it marks logs of a broker itself, it was written by who knew, and marked them all."""
    unclean: Mapping[int, bool | None] = field(default_factory=dict)
    """By broker, `ReplicaLog.unclean_shutdown`; None where what was read is stale, or may be: it runs, perhaps."""

    @classmethod
    def of(cls, partitions: Iterable[tuple[PartitionState, Sequence[LogAnswer]]]) -> SavedDisks:
        """Of each partition that has a log of a disk: its state and its answers."""
        cut, told, lost, contradicted, stale = set[int](), set[int](), set[int](), set[int](), set[int]()
        running = set[int]()
        marks: dict[int, set[bool | None]] = {}
        for state, answers in partitions:
            cut |= perhaps_cut(state, answers)
            lost |= perhaps_cut(state, [one for one in answers if isinstance(one, ReplicaLog)])
            for one in answers:
                if isinstance(one, LogUnavailable):
                    if one.unclean_shutdown is not None:
                        marks.setdefault(one.replica, set()).add(one.unclean_shutdown)
                    elif one.reason in {LogUnavailableReason.DOUBTFUL, LogUnavailableReason.LACKING}:
                        contradicted.add(one.replica)
                        led = (
                            _last_epoch_led(state, one.replica) is not None
                            and one.reason is LogUnavailableReason.DOUBTFUL
                        )
                        stale |= {one.replica} if led else set()
                elif one.source == LOG_DIRECTORY:
                    marks.setdefault(one.replica, set()).add(one.unclean_shutdown)
                    told |= {one.replica} if one.may_have_held_more else set()
                elif not one.is_earlier:
                    running.add(one.replica)
        # Of a log that was believed although it is short it was known that it was cut: that explains what others lack.
        untrue = stale | (contradicted - lost)
        unclean = {
            broker: None
            if len(found) > 1 or broker in running or (found == {True} and broker in untrue)
            else next(iter(found))
            for broker, found in marks.items()
        }
        return cls(frozenset(cut - told), unclean)

    def added_to(self, state: PartitionState, answers: Sequence[LogAnswer], cluster: Cluster) -> tuple[LogAnswer, ...]:
        """The answers of one partition, with this. What a log lacks itself is counted as that."""
        cut = self.cut - perhaps_cut(state, answers)
        return tuple(self._added(one, cut, cluster) for one in answers)

    def _added(self, answer: LogAnswer, cut: frozenset[int], cluster: Cluster) -> LogAnswer:
        broker = answer.replica
        from_now = isinstance(answer, ReplicaLog) and answer.source != LOG_DIRECTORY and not answer.is_earlier
        if broker not in self.unclean or from_now or cluster.status(broker) is BrokerStatus.LIVE:
            return answer
        answer = replace(answer, unclean_shutdown=self.unclean[broker])
        if isinstance(answer, ReplicaLog) and answer.source == LOG_DIRECTORY and broker in cut:
            return replace(answer, may_have_held_more=True)
        return answer


def _is_short(state: PartitionState, held: ReplicaLog, others: Iterable[ReplicaLog]) -> bool:
    if held.saved_high_watermark is not None:
        return True
    return _role(state, held.replica) is not None and any(_committed_and_lacking(held, one)[0] for one in others)


def device_of(log: CollectedLog) -> tuple[int, str]:
    """The broker, and the log directory that a reading is of: what is lost with a machine's page cache is lost there.

    The directory's path is `printable` and of the machine that was read, so that it is taken apart as text.
    """
    return log.answer.replica, log.directory.rpartition("/")[0]


def _not_believed(
    log: CollectedLog, why: str, reason: LogUnavailableReason = LogUnavailableReason.DOUBTFUL
) -> LogUnavailable:
    read_at_ms = log.read_at_ms if log.answer.read_at_ms is None else log.answer.read_at_ms
    detail = f"its disk is not believed; read at {time_of_day(read_at_ms)}, {why}"
    return LogUnavailable(log.answer.replica, reason, detail, read_at_ms)


def _contradiction(
    state: PartitionState, log: CollectedLog, held: ReplicaLog, others: Iterable[ReplicaLog], *, running: bool
) -> tuple[Shows, str, str] | None:
    """What contradicts the reading, in words, and what else can be than that it is stale; None where nothing does."""
    if running:
        return Shows.RUNNING, "and its broker ran while it was read", _CUT
    if _read_after_leading(state, log):
        return None
    led = _last_epoch_led(state, held.replica)
    if led is not None and log.newest_epoch is not None:
        # A broker that has just died is elected, too, before its session expires; by Kafka 4.0 later as well.
        why = f"and it knows leader epochs up to {log.newest_epoch}, though its broker was elected in epoch {led}"
        return Shows.STALE, why, f"{_CUT}, or the broker was down already when it was elected"
    role = _role(state, held.replica)
    if role is None:
        return None
    for other in others:
        lacking, known = _committed_and_lacking(held, other)
        # It knew these to be committed, so it held them when that was saved: they were cut off.
        if lacking and (log.saved_high_watermark or 0) < known:
            why = (
                f"and lacks {plural(lacking, 'offset')} that {other.replica} knows to be committed (high watermark"
                f" {known}), though {role}"
            )
            return Shows.STALE_OR_CUT, why, _CUT
    return None


def _read_after_leading(state: PartitionState, log: CollectedLog) -> bool:
    """Whether the disk was read after its broker's last leadership began, which was the partition's last, and with the
    broker down: whatever it lacks was cut off."""
    led = _last_epoch_led(state, log.answer.replica)
    return led is not None and log.newest_epoch is not None and log.newest_epoch >= led


def _holds_all_of_the_leader(state: PartitionState, held: ReplicaLog, others: Iterable[ReplicaLog]) -> bool:
    """Whether a log holds everything that the last leader's holds: no follower has more than its leader."""
    known = state.last_known_elr or ()
    leader = known[0] if state.leader is None and len(known) == 1 else state.leader
    led = next((other for other in others if other.replica == leader != held.replica), None)
    return led is not None and agreement(led, held) == led.log_end


def _last_epoch_led(state: PartitionState, replica: int) -> int | None:
    """The newest leader epoch in which a broker led that was the last to lead; None where that is not known of it.

    The leader epoch rises by one when the leader is lost, and again only where somebody is elected or, without a
    leader, where replicas leave the assignment: then nothing is concluded here that is not on the safe side.
    """
    if state.leader is not None:
        return state.leader_epoch if state.leader == replica else None
    known = state.last_known_elr or ()
    return state.leader_epoch - 1 if known == (replica,) else None


def _role(state: PartitionState, replica: int) -> str | None:
    """By what the replica should hold all that was committed; None where nothing says so."""
    if replica in state.isr:
        return "it is in the ISR"
    if replica in (state.elr or ()):
        return "it is in the ELR"
    if replica == state.leader or (state.last_known_elr or ()) == (replica,):
        return "it is the last known leader"
    return None


def _committed_and_lacking(held: ReplicaLog, other: ReplicaLog) -> tuple[int, int]:
    """(offsets that the other one knows to be committed and this one lacks, the other's high watermark).

    None where this log has the newer epochs: an unclean election may have taken the other one's records back.
    """
    known = other.high_watermark
    if known is None or other.replica == held.replica or (held.last_epoch or -1) > (other.last_epoch or -1):
        return 0, 0
    if agreement(other, held) is None:
        return max(0, known - held.log_end), known
    return count_distinct(missing(other, held, below=known)), known
