"""What one replica's log holds, or why nobody could tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kelr.model.partition import TopicPartition

LOG_DIRECTORY = "log directory"
"""`ReplicaLog.source` of a log that was read from its broker's disk."""
SAVED = ", saved"
"""Ends `ReplicaLog.source` of an answer that an earlier look got, and that stands for a broker which is down now."""


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The records of one leader epoch in a log end before `end_offset` (exclusive)."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica's log at one moment.

    Offsets are Kafka's: `log_end` is the offset that the next record would get (LEO), `high_watermark` the first
    offset not known by this replica to be committed. Any field but `replica` and `log_end` is None where it could not
    be learnt.
    """

    replica: int
    log_end: int
    last_epoch: int | None = None
    """Last written leader epoch: that of the log's last record, also where retention has taken it since; None for a log
    that never held one, or where it is not known (`last_epoch_error` tells which)."""
    current_leader_epoch: int | None = None
    """The partition's leader epoch as this broker knows it: older than the controller's means a stale answer."""
    high_watermark: int | None = None
    log_start: int | None = None
    """The first offset that consumers get: in remote storage, where the topic has any, else in the log itself."""
    lineage: tuple[EpochEnd, ...] | None = None
    """All epochs in the log, oldest first, each with its end offset; None where they were not asked for."""
    broker_epoch: int | None = None
    source: str = "unknown"
    """How it was learnt, such as ``ListOffsets+Fetch``."""
    read_at_ms: int | None = None
    """When the answer arrived, in milliseconds since 1970 UTC."""
    last_epoch_error: str | None = None
    """Why the epochs are not known although the log end is, such as
    ``TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic``."""
    last_stable_offset: int | None = None
    """The LSO: the high watermark, or where the oldest transaction starts that this replica does not know to be ended
    below its high watermark. Consumers with isolation.level read_committed get nothing from there on."""
    unclean_shutdown: bool | None = None
    """Whether Kafka counts its broker's next registration as one after an unclean shutdown, by the marks of a clean one
    on its disk (`kelr.sources.collected`); None: not known."""
    saved_high_watermark: int | None = None
    """The high watermark that its disk has saved, where that lies beyond `log_end`: the log once held what was
    committed up to there, and has lost it. None otherwise."""
    saved_epoch: int | None = None
    """The newest leader epoch that what it has so lost can have, by the disk's checkpoint of them; None: not known."""
    may_have_held_more: bool = False
    """Logs in the same directory of its broker's disk have lost their tails, or contradict what is known elsewhere:
    `log_end` is then the least that this one holds, or has held."""
    local_start: int | None = None
    """The first offset on the broker's own disk, in a topic with remote storage (KIP-405): what comes before it is in
    remote storage alone. None: the same as `log_start`, or nobody asked."""
    cut_off: tuple[tuple[int, int, int], ...] = ()
    """Records that its disk holds behind `log_end`, beyond a damaged batch, as (epoch, first offset, end offset): Kafka
    deletes them when it starts, and they may be nowhere else."""
    holes: tuple[tuple[int, int], ...] = ()
    """Offsets `[start, end)` between two of the segments on its disk that neither holds. Compaction leaves such holes;
    in any other topic a segment is gone."""
    remote_end: int | None = None
    """Where what this broker knows to be in remote storage ends (exclusive). None: it knows of nothing there, also as
    long as nobody leads __remote_log_metadata; or nobody asked."""
    start_by_name: bool = False
    """Where its disk begins is told by the name of its first segment, and by no checkpoint: what was before may have
    been deleted on purpose, be in remote storage, or be missing from a copy of that disk."""

    @property
    def held_end(self) -> int:
        """Where what its disk holds ends, with what Kafka deletes when it starts (`cut_off`)."""
        return max((end for _, _, end in self.cut_off), default=self.log_end)

    @property
    def is_earlier(self) -> bool:
        """Whether an earlier look read it, while its broker ran. If only the process has died since, the log is whole;
        if the machine has crashed, what was not flushed is cut."""
        return self.source.endswith(SAVED)

    @property
    def is_empty(self) -> bool:
        """No records: the log starts where it ends."""
        return self.log_start is not None and self.log_start == self.log_end


class LogUnavailableReason(StrEnum):
    """Why nothing is known of a replica's log."""

    NOT_ASKED = "not-asked"
    UNREACHABLE = "unreachable"
    """The connection was refused, reset, or the host is unknown."""
    TIMED_OUT = "timed-out"
    NOT_AUTHORIZED = "not-authorized"
    AUTHENTICATION_FAILED = "authentication-failed"
    NOT_A_REPLICA = "not-a-replica"
    """The broker answers NOT_LEADER_OR_FOLLOWER: it does not hold this replica, or not yet."""
    STORAGE_ERROR = "storage-error"
    STALE = "stale"
    """It answered with an older leader epoch than the controller's each time it was asked, or from another incarnation
    than the registered one."""
    DOUBTFUL = "doubtful"
    """Its disk was read, and what was read contradicts what the controller records of the replica: the disk was read
    before the broker last ran, or its log was cut. What it holds is not known."""
    LACKING = "lacking"
    """Its disk was read, and lacks records that another replica knows to be committed, although it is in ISR or ELR, or
    was the last to lead: the disk was read before the broker last ran, or its log was cut."""
    NO_ADDRESS = "no-address"
    """The cluster does not tell where this broker is."""
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogUnavailable:
    """A replica whose log could not be read: a value, not a failure of the command."""

    replica: int
    reason: LogUnavailableReason
    detail: str = ""
    """The words of the failure, for a person."""
    read_at_ms: int | None = None
    unclean_shutdown: bool | None = None
    """As `ReplicaLog.unclean_shutdown`: how a broker stopped is one fact of its disk, whichever log is asked for."""


LogAnswer = ReplicaLog | LogUnavailable


Parts = frozenset[tuple[int, int, int]]
"""Records as (leader epoch, first offset, end offset): only one leader writes in an epoch, so whoever holds these holds
the same."""


@dataclass(frozen=True, slots=True)
class SavedLog:
    """What a rescue file holds of one replica's log, by its manifest."""

    file: str
    """Its path, as people type it."""
    address: TopicPartition
    topic_id: str | None
    log: ReplicaLog
    """The whole log as it was when it was read."""
    parts: Parts
    """What is in the file."""
    plan_id: str | None
    """The plan that it was saved for."""
    leader: int | None = None
    """Who led the partition when this was saved; None: nobody, or that is not known."""
    leader_epoch: int | None = None
    """The partition's when this was saved; None: not known."""
    covered: Parts = frozenset()
    """What of this log is in the file, also of other replicas that held the same, with the offsets in between that
    compaction left without a record."""
    checked: bool = False
    """Whether the records were compared with the SHA-256s in the manifest."""
    replayed: bool = False
    """Whether all records that the file has of this partition were produced again, by kelr's own record."""

    @property
    def replica(self) -> int:
        return self.log.replica
