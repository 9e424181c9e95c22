"""What ``kelr log-info --log-dir`` shows without a cluster: what log directories hold, and how they were left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.engine import KnownLogs, segments
from kelr.model import LogAnswer, LogUnavailable, ReplicaLog, TopicPartition
from kelr.view.columns import Column, Fact, Json, View, attributes, datum, for_people
from kelr.view.output import Output
from kelr.view.replicas import UNKNOWN, number_text
from kelr.view.styled import Span, Style, Text, plain, styled

KIND = "kelr/disk-logs"
DISKS = Fact(
    "disks",
    "object[]",
    "Brokers whose log directories were read: {broker, cluster_id, read_at_ms, running, clean_shutdown, broker_epoch,"
    " logs, unreadable, directories, unused, warnings}. A directory: {path, directory_id, clean_shutdown,"
    " broker_epoch, running, single_replica, error}. Unused, what is there and not read: {topic, partition, kind"
    " (future, deleted or stray), path}.",
)
NOTES = Fact("notes", "string[]", "What the reader has to know besides.")
_SHOWN = 5


def high_watermark_text(log: ReplicaLog | None, saved: int | None) -> Text:
    """A log's high watermark; ``63 (saved 163)`` where its disk has saved one beyond the log's end."""
    if log is None or log.high_watermark is None:
        return UNKNOWN
    known = Span(str(log.high_watermark))
    return (known,) if saved is None or saved <= log.log_end else (known, Span(f" (saved {saved})", Style.BAD))


@dataclass(frozen=True, slots=True)
class ShownDirectory:
    """One log directory, as it was left."""

    path: str
    directory_id: str | None
    clean_shutdown: bool | None
    broker_epoch: int | None
    running: bool | None
    single_replica: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class UnusedReplica:
    """A directory that only looks like a replica."""

    address: TopicPartition
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class ShownDisk:
    """The log directories of one broker."""

    broker: int
    cluster_id: str | None
    read_at_ms: int
    running: bool | None
    clean_shutdown: bool | None
    """As `kelr.sources.disk.collection.clean_by_its_marks`."""
    broker_epoch: int | None
    logs: int
    """Replicas whose log is known."""
    unreadable: int
    directories: tuple[ShownDirectory, ...]
    unused: tuple[UnusedReplica, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiskRow:
    """One replica on a disk, set against the same replica on the other disks that were read."""

    address: TopicPartition
    topic_id: str | None
    answer: LogAnswer
    directory: str
    bytes_behind: int = 0
    notes: tuple[str, ...] = ()
    others: KnownLogs = field(default_factory=KnownLogs)
    """What all disks hold of this partition, this one among them; empty where its topic is not known."""
    saved_high_watermark: int | None = None
    """As `DiskLog.saved_high_watermark`."""

    @property
    def broker(self) -> int:
        return self.answer.replica

    @property
    def log(self) -> ReplicaLog | None:
        return self.answer if isinstance(self.answer, ReplicaLog) else None

    @property
    def not_heard(self) -> LogUnavailable | None:
        return self.answer if isinstance(self.answer, LogUnavailable) else None

    @property
    def behind_best(self) -> int | None:
        """Offsets of the best log on these disks that this one lacks; None with one disk, or where it is not known."""
        return self.others.behind_best(self.broker) if len(self.others.heard) > 1 else None


def disk_logs_view(*, several: bool = False, lineage: bool = False) -> View[DiskRow]:
    """The columns; with `several` brokers people see how far each is behind, with `lineage` every log's epochs."""
    return View(
        KIND,
        (*_facts(), *_people(several=several, lineage=lineage)),
        head=(Fact("source", "string", "Always `log directory`."), DISKS),
        tail=(NOTES, Fact("next", "string?", "The command to type next.")),
    )


def disks_document(disks: Iterable[ShownDisk]) -> list[Json]:
    """The disks as a document has them (`DISKS`)."""
    return [
        {
            "broker": disk.broker,
            "cluster_id": disk.cluster_id,
            "read_at_ms": disk.read_at_ms,
            "running": disk.running,
            "clean_shutdown": disk.clean_shutdown,
            "broker_epoch": disk.broker_epoch,
            "logs": disk.logs,
            "unreadable": disk.unreadable,
            "directories": [_directory_document(one) for one in disk.directories],
            "unused": [
                {
                    "topic": one.address.topic,
                    "partition": one.address.partition,
                    "kind": one.kind,
                    "path": one.path,
                }
                for one in disk.unused
            ],
            "warnings": list(disk.warnings),
        }
        for disk in disks
    ]


def _directory_document(directory: ShownDirectory) -> Mapping[str, Json]:
    return attributes(
        directory, "path", "directory_id", "clean_shutdown", "broker_epoch", "running", "single_replica", "error"
    )


def show_disks(output: Output, disks: Iterable[ShownDisk]) -> None:
    """Say beside the rows how each broker's directories were left, what is odd there, and what was not read."""
    for disk in disks:
        cluster = f" of cluster {disk.cluster_id}" if disk.cluster_id else ""
        output.note(f"broker {disk.broker}{cluster}: {_count(disk.logs, 'log')}{_unreadable(disk)}; {_left(disk)}")
        for one in disk.directories:
            if one.error is None:
                identity = f", directory id {one.directory_id}" if one.directory_id else ""
                output.note(f"  {one.path}{identity}: {_mark(one)}")
        for kind in ("future", "deleted", "stray"):
            found = [str(one.address) for one in disk.unused if one.kind == kind]
            if found:
                rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
                output.note(f"  {kind}, not read: {', '.join(found[:_SHOWN])}{rest}")
        for warning in disk.warnings:
            output.note(styled(f"  {warning}", Style.NOTICE))


def _left(disk: ShownDisk) -> str:
    if disk.running:
        return "it runs now"
    if disk.clean_shutdown is None:
        return "whether it was shut down cleanly is not known"
    if not disk.clean_shutdown:
        return "it was not shut down cleanly"
    epoch = "not known" if disk.broker_epoch is None else disk.broker_epoch
    return f"it was shut down cleanly, broker epoch {epoch}"


def _mark(directory: ShownDirectory) -> str:
    if directory.clean_shutdown is None:
        return "the mark of a clean shutdown could not be looked for"
    if not directory.clean_shutdown:
        return "no mark of a clean shutdown"
    epoch = "no broker epoch in it" if directory.broker_epoch is None else f"broker epoch {directory.broker_epoch}"
    return f"mark of a clean shutdown, {epoch}"


def _unreadable(disk: ShownDisk) -> str:
    return f", {disk.unreadable} that could not be read" if disk.unreadable else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _facts() -> tuple[Column[DiskRow], ...]:
    def of_log(key: str, type_: str, value: Callable[[ReplicaLog], Json], about: str) -> Column[DiskRow]:
        return datum(key, type_, about, lambda row: None if row.log is None else value(row.log))

    return (
        datum("topic", "string", "Topic name.", lambda row: row.address.topic),
        datum("partition", "integer", "Partition number.", lambda row: row.address.partition),
        datum("topic_id", "string?", "As partition.metadata has it; null: it is missing or garbled."),
        datum("broker", "integer", "Broker whose log directory it is."),
        datum("directory", "string", "The replica's directory."),
        datum("heard", "boolean", "Whether the log's end is known.", lambda row: row.log is not None),
        of_log("broker_epoch", "integer?", lambda log: log.broker_epoch, "Of the mark of the clean shutdown."),
        of_log("last_epoch", "integer?", lambda log: log.last_epoch, "Last written; null: empty or not known."),
        of_log("log_start", "integer?", lambda log: log.log_start, "First offset once the broker has started."),
        of_log("log_end", "integer?", lambda log: log.log_end, "Log end offset (LEO) once the broker has started."),
        of_log("high_watermark", "integer?", lambda log: log.high_watermark, "As it was saved last, within the log."),
        datum(
            "saved_high_watermark", "integer?", "The same, also where the log ends before it: what is between is lost."
        ),
        datum("behind_best", "integer?", "Offsets of the best log on these disks that this one lacks."),
        of_log("lineage", "object[]?", lineage_item, "All epochs, oldest first: {epoch, start_offset, end_offset}."),
        datum("bytes_behind", "integer", "Bytes behind the log's end, which Kafka cuts off."),
        datum("notes", "string[]", "What is odd, cut off or damaged."),
        datum(
            "not_heard",
            "string?",
            "Why the end is not known.",
            lambda row: None if row.not_heard is None else str(row.not_heard.reason),
        ),
        datum(
            "not_heard_detail",
            "string?",
            "The same in words.",
            lambda row: None if row.not_heard is None else row.not_heard.detail,
        ),
    )


def _people(*, several: bool, lineage: bool) -> tuple[Column[DiskRow], ...]:
    def number(value: Callable[[ReplicaLog], int | None]) -> Callable[[DiskRow], Text]:
        return lambda row: number_text(None if row.log is None else value(row.log))

    columns = [
        for_people("PARTITION", lambda row: plain(str(row.address))),
        for_people("BROKER", lambda row: plain(str(row.broker)), right=True),
        for_people("EPOCH", lambda row: last_epoch_text(row.log), right=True),
        for_people("START", number(lambda log: log.log_start), right=True),
        for_people("END", number(lambda log: log.log_end), right=True),
        for_people("HW", lambda row: high_watermark_text(row.log, row.saved_high_watermark), right=True),
    ]
    if several:
        columns.append(for_people("BEHIND", _behind, right=True))
    columns.append(for_people("TOPIC ID", lambda row: UNKNOWN if row.topic_id is None else plain(row.topic_id)))
    columns.append(for_people("DIRECTORY", lambda row: plain(row.directory), wide=True))
    if lineage:
        columns.append(for_people("EPOCHS", lambda row: lineage_text(row.log)))
    columns.append(for_people("NOTES", _notes, prose=True))
    return tuple(columns)


def _behind(row: DiskRow) -> Text:
    behind = row.behind_best
    if behind is None:
        return () if len(row.others.heard) <= 1 and row.log is not None else UNKNOWN
    return styled(str(behind), Style.BAD) if behind else plain("0")


def _notes(row: DiskRow) -> Text:
    said: Sequence[str] = row.notes
    if row.not_heard is not None:
        said = (f"not read: {row.not_heard.detail or row.not_heard.reason}", *row.notes)
    return styled(". ".join(said), Style.NOTICE) if said else ()


def lineage_item(log: ReplicaLog) -> Json:
    """The epochs of a log for machines, oldest first; None where they are not known."""
    if log.lineage is None:
        return None
    return [{"epoch": part.epoch, "start_offset": part.start, "end_offset": part.end} for part in segments(log) or ()]


def lineage_text(log: ReplicaLog | None) -> Text:
    """The epochs of a log for people."""
    if log is None or log.lineage is None:
        return UNKNOWN
    return plain(" ".join(f"{part.epoch}:{part.start}..{part.end}" for part in segments(log) or ()))


def last_epoch_text(log: ReplicaLog | None) -> Text:
    """The last epoch that was written: nothing of an empty log, which has none."""
    if log is not None and log.last_epoch is None and log.is_empty:
        return ()
    return number_text(None if log is None else log.last_epoch)
