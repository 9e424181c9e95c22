"""What ``kelr log-info`` shows: one row for each replica, with what its log holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kelr.engine import KnownLogs, diverges_at, rank_logs
from kelr.engine.loss_words import begins_later
from kelr.engine.words import in_short, plural
from kelr.model import Cluster, LogAnswer, LogUnavailable, PartitionState, ReplicaLog, TopicError, TopicPartition
from kelr.view.columns import Column, Json, View, datum, for_people
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, error_items
from kelr.view.disk_logs import (
    DISKS,
    NOTES,
    ShownDisk,
    disks_document,
    high_watermark_text,
    last_epoch_text,
    lineage_item,
    lineage_text,
)
from kelr.view.output import Output
from kelr.view.replicas import UNKNOWN, ReplicaMarks, number_text
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/log-info"


@dataclass(frozen=True, slots=True)
class LogRow:
    """One replica of one partition, with its log set against the best one heard."""

    state: PartitionState
    replica: int
    logs: KnownLogs

    @property
    def log(self) -> ReplicaLog | None:
        return self.logs.heard.get(self.replica)

    @property
    def not_heard(self) -> LogUnavailable | None:
        return self.logs.unheard.get(self.replica)

    @property
    def is_best(self) -> bool:
        return self.logs.is_best(self.replica)

    @property
    def parts_at(self) -> int | None:
        """The first offset at which this log and the best one hold different records."""
        best = self.logs.best
        if self.replica not in self.logs.ranked or self.log is None or best is None:
            return None
        return diverges_at(best, self.log)

    @property
    def roles(self) -> tuple[str, ...]:
        """``leader``, ``isr``, ``elr``, ``last-known``: all that hold."""
        state = self.state
        held = (
            ("leader", self.replica == state.leader),
            ("isr", self.replica in state.isr),
            ("elr", self.replica in (state.elr or ())),
            ("last-known", self.replica in (state.last_known_elr or ())),
        )
        return tuple(name for name, holds in held if holds)


def log_rows(state: PartitionState, answers: Sequence[LogAnswer]) -> Iterator[LogRow]:
    """One row for each replica, in assignment order."""
    logs = rank_logs(state, answers)
    for replica in state.replicas:
        yield LogRow(state, replica, logs)


def log_info_view(cluster: Cluster, *, lineage: bool = False) -> View[LogRow]:
    """The columns of `log-info`; with `lineage`, people see every log's epochs and where it parts from the best."""
    columns = (*_facts(cluster), *_log_facts(), *_people_columns(cluster), *(_lineage_columns() if lineage else ()))
    return View(KIND, columns, head=CLUSTER_HEAD, tail=(*ERRORS_TAIL, NOTES, DISKS))


class LogNotes:
    """What is to be said beside the rows, gathered while they go by."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._not_compared: dict[str, None] = {}
        self._silences: dict[int, list[tuple[TopicPartition, str]]] = {}

    def add(self, rows: Iterable[LogRow]) -> None:
        """Look at a batch of rows."""
        for row in rows:
            newer = row.logs.newer_leader_epoch
            if newer is not None and row.replica == row.state.replicas[0]:
                # The state is the older one.
                self._notes.append(
                    f"{row.state.address} moved on while it was read: a broker knows leader epoch {newer}"
                )
            leader = None if row.state.leader is None else row.logs.heard.get(row.state.leader)
            late = begins_later(row.log, leader) if row.log is not None and leader is not None else ""
            if late:
                self._notes.append(f"{row.state.address}: {late}")
            silence = row.not_heard
            if silence is not None and in_short(silence.detail) != silence.detail:
                self._silences.setdefault(row.replica, []).append((row.state.address, silence.detail))
            if row.log is not None and _behind_best(row) is None:
                self._not_compared[_NO_LINEAGE if row.replica in row.logs.ranked else _NO_EPOCHS] = None

    def show(self, output: Output) -> None:
        """Print them; people are told below the table why BEHIND is not known, and what is too long for a cell."""
        for text in self._notes:
            output.note(text)
        for replica, found in sorted(self._silences.items()) if output.format.for_people else ():
            address, detail = found[0]
            more = f", and {plural(len(found) - 1, 'other partition')} likewise" if len(found) > 1 else ""
            output.note(f"broker {replica} was not read of {address}{more}: {detail}")
        if self._not_compared and output.format.for_people:
            output.note(f"BEHIND is not known for some logs that were read: {'; '.join(self._not_compared)}")


_NO_EPOCHS = "a log whose epochs are not known (SOURCE says why) cannot be compared"
_NO_LINEAGE = "logs that end in different epochs are compared by all their epochs, and those are not known here"


def log_info_tail(
    errors: Sequence[TopicError], command: str | None, notes: Sequence[str] = (), disks: Sequence[ShownDisk] = ()
) -> dict[str, Json]:
    """What the document says after its items."""
    return {
        "errors": error_items(errors),
        "next": command,
        "notes": list(notes),
        "disks": disks_document(disks),
    }


def _facts(cluster: Cluster) -> tuple[Column[LogRow], ...]:
    def rack(row: LogRow) -> Json:
        broker = cluster.broker(row.replica)
        return None if broker is None else broker.rack

    return (
        datum("topic", "string", "Topic name.", lambda row: row.state.topic),
        datum("partition", "integer", "Partition number.", lambda row: row.state.partition),
        datum("leader", "integer?", "Broker that leads; null: none.", lambda row: row.state.leader),
        datum("leader_epoch", "integer", "Leader epoch as the controller has it.", lambda row: row.state.leader_epoch),
        datum("replica", "integer", "Broker that holds this replica.", lambda row: row.replica),
        datum("broker_status", "string", "Whether the broker can lead.", lambda row: str(cluster.status(row.replica))),
        datum("rack", "string?", "The broker's rack.", rack),
        datum("roles", "string[]", "leader, isr, elr, last-known: all that hold.", lambda row: row.roles),
        datum("heard", "boolean", "Whether the log could be read.", lambda row: row.log is not None),
    )


def _log_facts() -> tuple[Column[LogRow], ...]:
    def of_log(key: str, type_: str, value: Callable[[ReplicaLog], Json], about: str) -> Column[LogRow]:
        return datum(key, type_, about, lambda row: None if row.log is None else value(row.log))

    def of_silence(key: str, value: Callable[[LogUnavailable], Json], about: str) -> Column[LogRow]:
        return datum(key, "string?", about, lambda row: None if row.not_heard is None else value(row.not_heard))

    return (
        of_log("broker_epoch", "integer?", lambda log: log.broker_epoch, "Broker epoch that answered."),
        of_log("last_epoch", "integer?", lambda log: log.last_epoch, "Last written; null: empty or not known."),
        of_log("current_leader_epoch", "integer?", lambda log: log.current_leader_epoch, "As this broker knows it."),
        of_log("log_start", "integer?", lambda log: log.log_start, "First offset in the log."),
        of_log(
            "local_start",
            "integer?",
            lambda log: log.local_start,
            "First offset on the broker's own disk, in a topic with remote storage; null: as log_start, or not told.",
        ),
        of_log(
            "remote_end",
            "integer?",
            lambda log: log.remote_end,
            "Where what the broker knows to be in remote storage ends (exclusive); null: nothing, or not told.",
        ),
        of_log("log_end", "integer?", lambda log: log.log_end, "Log end offset (LEO)."),
        of_log("high_watermark", "integer?", lambda log: log.high_watermark, "As this replica knows it."),
        of_log(
            "saved_high_watermark",
            "integer?",
            lambda log: log.saved_high_watermark,
            "As its disk has saved it, where that lies beyond the log's end: what is between is lost there.",
        ),
        of_log("last_stable_offset", "integer?", lambda log: log.last_stable_offset, "LSO, as this replica knows it."),
        datum("behind_best", "integer?", "Offsets of the most complete log read that this one lacks.", _behind_best),
        datum(
            "best",
            "boolean",
            "Newest last epoch, then highest log end, of all that were read.",
            lambda row: row.is_best,
        ),
        datum("parts_at", "integer?", "First offset that differs from the best log.", lambda row: row.parts_at),
        of_log("lineage", "object[]?", lineage_item, "All epochs, oldest first: {epoch, start_offset, end_offset}."),
        of_log("source", "string?", lambda log: log.source, "The request or file that showed it."),
        of_log("read_at_ms", "integer?", lambda log: log.read_at_ms, "When, in milliseconds since 1970 UTC."),
        of_log("last_epoch_error", "string?", lambda log: log.last_epoch_error, "Why the epochs are not known."),
        of_silence("not_heard", lambda answer: str(answer.reason), "Why the log could not be read."),
        of_silence("not_heard_detail", lambda answer: answer.detail, "The failure's own words."),
    )


def _people_columns(cluster: Cluster) -> tuple[Column[LogRow], ...]:
    marks = ReplicaMarks(cluster)

    def number(value: Callable[[ReplicaLog], int | None]) -> Callable[[LogRow], Text]:
        return lambda row: number_text(None if row.log is None else value(row.log))

    return (
        for_people("PARTITION", lambda row: plain(str(row.state.address))),
        for_people(
            "REPLICA", lambda row: (marks.one(row.replica, failed=row.replica in (row.state.offline_replicas or ())),)
        ),
        for_people("BROKER", lambda row: _broker(row, cluster), yields=1),
        for_people("ROLE", lambda row: plain(" ".join(row.roles))),
        for_people("EPOCH", lambda row: last_epoch_text(row.log), right=True),
        for_people("LEADER EPOCH", number(lambda log: log.current_leader_epoch), right=True, wide=True),
        for_people("BROKER EPOCH", number(lambda log: log.broker_epoch), right=True, wide=True),
        for_people("START", number(lambda log: log.log_start), right=True, yields=2),
        for_people("ON DISK", _on_disk, right=True, wide=True),
        for_people("END", number(lambda log: log.log_end), right=True),
        for_people("HW", _high_watermark, right=True),
        for_people("BEHIND", _behind, right=True),
        for_people("SOURCE", _learnt),
    )


def _lineage_columns() -> tuple[Column[LogRow], ...]:
    return (
        for_people("PARTS AT", _parts_text, right=True),
        for_people("EPOCHS", lambda row: lineage_text(row.log)),
    )


def _behind_best(row: LogRow) -> int | None:
    return row.logs.behind_best(row.replica)


def _broker(row: LogRow, cluster: Cluster) -> Text:
    broker = cluster.broker(row.replica)
    rack = f" {broker.rack}" if broker is not None and broker.rack else ""
    return plain(f"{cluster.status(row.replica)}{rack}")


def _high_watermark(row: LogRow) -> Text:
    return high_watermark_text(row.log, None if row.log is None else row.log.saved_high_watermark)


def _on_disk(row: LogRow) -> Text:
    """Where what is on the broker's own disk begins; ``-`` without remote storage, or where its config is not known."""
    log = row.log
    if log is None:
        return UNKNOWN
    return plain("-" if log.local_start is None else str(log.local_start))


def _behind(row: LogRow) -> Text:
    if row.is_best:
        unread = bool(row.logs.unheard)
        return styled(
            f"best of {len(row.logs.heard)} read" if unread else "best", Style.NOTICE if unread else Style.GOOD
        )
    behind = _behind_best(row)
    return UNKNOWN if behind is None else styled(str(behind), Style.BAD) if behind else plain("0")


def _learnt(row: LogRow) -> Text:
    if row.log is not None:
        error = f"; epochs: {row.log.last_epoch_error}" if row.log.last_epoch_error else ""
        return plain(f"{row.log.source}{error}")
    silence = row.not_heard
    if silence is None:
        return UNKNOWN
    return styled(f"not read: {in_short(silence.detail) or silence.reason}", Style.NOTICE)


def _parts_text(row: LogRow) -> Text:
    if row.is_best:
        return ()
    if row.log is None or (row.parts_at is None and _behind_best(row) is None):
        return UNKNOWN
    return () if row.parts_at is None else styled(str(row.parts_at), Style.BAD)
