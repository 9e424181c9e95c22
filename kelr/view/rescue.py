"""What ``kelr rescue`` shows: the tails in a rescue file, its records, and what a replay does with them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from kelr.view.columns import Column, Fact, Json, Shown, View, column, datum, for_people
from kelr.view.styled import Style, Text, plain, styled

PREVIEW_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class TailRow:
    """The records of one replica of one partition in a rescue file."""

    topic: str
    partition: int
    replica: int
    how: str
    why: str
    from_offset: int
    to_offset: int
    records: int
    batches: int
    size_bytes: int
    epochs: tuple[int | None, ...]
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    committed: int
    aborted: int
    open: int
    producers: int
    missing: tuple[str, ...]
    """What was asked for and is not there, a sentence each."""
    cut_records: int = 0
    """Records that the leader keeps, of committed transactions whose commit it lacks."""
    compacted_away: int = 0
    """Offsets of a compacted topic that no record of this replica has any more."""

    @property
    def whole(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record, or one marker, of a rescue file."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    timestamp_ms: int | None
    producer_id: int | None
    state: str
    """``-``, or how its transaction ended; for a marker ``COMMIT`` or ``ABORT``."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    control: bool


def time_text(milliseconds: int | None) -> str:
    """UTC to the millisecond; ``-`` where there is none, the number itself where no calendar has it."""
    if milliseconds is None:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")


def preview(data: bytes | None, *, full: bool) -> str:
    """A key or value for a person: its text, or hexadecimal digits where it is none; cut unless `full`."""
    if data is None:
        return "null"
    text = data.decode("utf-8", "replace")
    shown = text if "\ufffd" not in text and _mostly_printable(text) else "0x" + data.hex()
    return shown if full or len(shown) <= PREVIEW_CHARACTERS else shown[: PREVIEW_CHARACTERS - 1] + "…"


def _mostly_printable(text: str) -> bool:
    """Text with a line break is still text; binary that happens to be UTF-8 is not."""
    return sum(not character.isprintable() for character in text) * 10 <= len(text)


def bytes_document(data: bytes | None) -> Json:
    """Bytes in a document: ``{"utf8": ...}`` or ``{"base64": ...}``; null for none."""
    if data is None:
        return None
    try:
        return {"utf8": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _missing_text(row: TailRow) -> Text:
    return styled("; ".join(row.missing), Style.BAD) if row.missing else styled("whole", Style.GOOD)


def _transactions_text(row: TailRow) -> Text:
    counts = ((row.committed, "committed"), (row.aborted, "aborted"), (row.open, "open"))
    text = ", ".join(f"{count} {word}" for count, word in counts if count) or "-"
    if not row.cut_records:
        return plain(text)
    return [*plain(text), *styled(f"; {row.cut_records} kept by the leader without the commit", Style.NOTICE)]


class _OfPartition(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


_RowT = TypeVar("_RowT", bound=_OfPartition)


def partition_columns(about: str) -> tuple[Column[_RowT], Column[_RowT]]:
    """Topic and partition for machines, both in one word for people. `about`: what the partition's number means."""
    return (
        datum("topic", "string", "The topic."),
        column("partition", "PARTITION", "integer", about, text=lambda row: plain(f"{row.topic}:{row.partition}")),
    )


TAIL_COLUMNS: tuple[Column[TailRow], ...] = (
    *partition_columns("The partition's number."),
    column("replica", "REPLICA", "integer", "The replica whose log the records come from.", right=True),
    column("how", "READ BY", "string", "Fetch from its broker, or log directory.", yields=5),
    column("from_offset", "FROM", "integer", "The first offset that was asked for.", right=True),
    column("to_offset", "TO", "integer", "The first offset that was not asked for.", right=True),
    column(
        "epochs",
        "EPOCHS",
        "integer[]",
        "The leader epochs in which the records were written, as their batches carry them.",
        lambda row: [epoch for epoch in row.epochs if epoch is not None],
        text=lambda row: plain(" ".join("?" if epoch is None else str(epoch) for epoch in row.epochs) or "-"),
        yields=2,
    ),
    datum(
        "without_epoch",
        "boolean",
        "Whether there are batches that carry no leader epoch.",
        lambda row: None in row.epochs,
    ),
    column("records", "RECORDS", "integer", "How many records of producers are there.", right=True),
    column("batches", "BATCHES", "integer", "Batches.", shown=Shown.WIDE, right=True),
    column("size_bytes", "BYTES", "integer", "Their bytes.", right=True, yields=3),
    column(
        "first_timestamp_ms",
        "OLDEST",
        "integer?",
        "The oldest timestamp, in milliseconds since 1970 UTC.",
        text=lambda row: plain(time_text(row.first_timestamp_ms)),
        shown=Shown.WIDE,
    ),
    column(
        "last_timestamp_ms",
        "NEWEST",
        "integer?",
        "The newest timestamp.",
        text=lambda row: plain(time_text(row.last_timestamp_ms)),
        yields=4,
    ),
    column(
        "transactions",
        "TRANSACTIONS",
        "object",
        "How many transactions have records here, by how they ended: {committed, aborted, open}.",
        lambda row: {"committed": row.committed, "aborted": row.aborted, "open": row.open},
        text=_transactions_text,
        yields=1,
    ),
    datum("cut_records", "integer", "Records that the leader keeps, of committed transactions whose commit it lacks."),
    datum(
        "compacted_away",
        "integer",
        "In a compacted topic: offsets that were asked for and that no record of this replica has any more.",
    ),
    column("producers", "PRODUCERS", "integer", "How many producer ids wrote them.", shown=Shown.WIDE, right=True),
    column(
        "missing",
        "MISSING",
        "string[]",
        "What was asked for and could not be read; empty where all is there.",
        text=_missing_text,
        prose=True,
    ),
    column("why", "WHY", "string", "Why these.", shown=Shown.WIDE, prose=True),
)

FILE_HEAD = (
    Fact("file", "string?", "The rescue file; null where nothing was there to save."),
    Fact("cluster_id", "string?", "The cluster that the records come from."),
    Fact("taken_at_ms", "integer", "When they were read, in milliseconds since 1970 UTC."),
    Fact("plan_id", "string?", "The plan whose elections give them up."),
)
NEXT = Fact("next", "string?", "The command to type next.")


def dump_view() -> View[TailRow]:
    """The output of `rescue dump`."""
    notes = Fact("notes", "object[]", "What to know of partitions beside that: {partition, text}.")
    return View("kelr/rescue-dump", TAIL_COLUMNS, head=FILE_HEAD, tail=(notes, NEXT))


def show_view() -> View[TailRow]:
    """The output of `rescue show`."""
    return View("kelr/rescue", TAIL_COLUMNS, head=FILE_HEAD, tail=(NEXT,))


def records_view(*, full: bool) -> View[RecordRow]:
    """The output of `rescue show --records`; `full` shows people keys and values to their end."""
    return View("kelr/rescue-records", _record_columns(full), head=FILE_HEAD)


def _record_columns(full: bool) -> tuple[Column[RecordRow], ...]:
    where: tuple[Column[RecordRow], ...] = partition_columns("The partition's number.")
    return (
        *where,
        column("offset", "OFFSET", "integer", "Its offset there.", right=True),
        column("leader_epoch", "EPOCH", "integer?", "The leader epoch in which it was written.", right=True, yields=2),
        column(
            "timestamp_ms",
            "TIMESTAMP",
            "integer?",
            "In milliseconds since 1970 UTC.",
            text=lambda row: plain(time_text(row.timestamp_ms)),
            yields=3,
        ),
        column(
            "producer_id", "PRODUCER", "integer?", "Who wrote it, where it has an id.", shown=Shown.WIDE, right=True
        ),
        column(
            "state",
            "TRANSACTION",
            "string",
            "committed, aborted, open, unknown, or - for none; of a marker COMMIT or ABORT.",
            yields=1,
        ),
        datum("control", "boolean", "No data."),
        column(
            "key",
            "KEY",
            "object?",
            "{utf8} or {base64}; null for none.",
            lambda row: bytes_document(row.key),
            text=lambda row: plain("-" if row.control else preview(row.key, full=full)),
        ),
        column(
            "value",
            "VALUE",
            "object?",
            "The same; null is a tombstone.",
            lambda row: bytes_document(row.value),
            text=lambda row: plain("-" if row.control else preview(row.value, full=full)),
        ),
        column(
            "headers",
            "HEADERS",
            "object[]",
            "Its headers in order: {key, value}.",
            lambda row: [_header_document(name, value) for name, value in row.headers],
            text=lambda row: plain(" ".join(f"{n}={preview(v, full=full)}" for n, v in row.headers) or "-"),
            shown=Shown.WIDE,
        ),
    )


def _header_document(name: str, value: bytes | None) -> Mapping[str, Json]:
    return {"key": name.encode("utf-8", "backslashreplace").decode(), "value": bytes_document(value)}


# Replays.


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """What a replay does, or did, with the records of one partition."""

    topic: str
    partition: int
    to_topic: str
    replay: int = 0
    """Records that are to be produced, or that were."""
    survive: int = 0
    already: int = 0
    overwritten: int = 0
    aborted: int = 0
    open: int = 0
    markers: int = 0
    outside: int = 0
    error: str = ""
    cut: int = 0
    deleted: int = 0
    unknown: int = 0
    skipped_records: int = 0
    """Records in the file of a partition that gets none of them now; `error` says why."""

    @property
    def skipped(self) -> tuple[tuple[int, str], ...]:
        """(how many, why) of all that is left out."""
        reasons = (
            (self.survive, "survived the election"),
            (self.cut, "kept without their transaction's commit"),
            (self.already, "replayed already"),
            (self.overwritten, "overwritten since"),
            (self.deleted, "deleted on purpose since"),
            (self.unknown, "UNKNOWN: perhaps deleted on purpose"),
            (self.aborted, "of aborted transactions"),
            (self.open, "of transactions without an end"),
            (self.markers, "markers"),
            (self.outside, "beyond the offsets asked for"),
        )
        return tuple(reason for reason in reasons if reason[0])


def replay_view(*, done: bool) -> View[ReplayRow]:
    """The output of `rescue replay`: what it does, or with `done` what it did."""
    title = "REPLAYED" if done else "REPLAY"
    columns: tuple[Column[ReplayRow], ...] = (
        *partition_columns("The partition's number, there and in the topic that gets the records."),
        column("to_topic", "TO", "string", "The topic that gets them."),
        column(
            "replay",
            title,
            "integer",
            "Records that are produced again; once it is done, those that the cluster has confirmed.",
            right=True,
        ),
        *(_skipped_column(key, about) for key, about in _SKIPPED),
        for_people("LEFT OUT", _skipped_text, prose=True),
        column(
            "skipped_records",
            "SKIPPED",
            "integer",
            "Records of a partition that gets none of them now; error says why.",
            shown=Shown.MACHINE,
            right=True,
        ),
        column(
            "error",
            "ERROR",
            "string?",
            "Why not all of them were, or can be, produced.",
            lambda row: row.error or None,
            text=lambda row: styled(row.error, Style.BAD) if row.error else plain(""),
            shown=Shown.EVERYWHERE if done else Shown.MACHINE,
            prose=True,
        ),
    )
    head = (
        *FILE_HEAD,
        Fact("dry_run", "boolean", "Whether nothing was to be produced."),
        Fact("warnings", "string[]", "What to know before it is done."),
    )
    totals = Fact(
        "totals",
        "object",
        "Over all partitions: {records, partitions, skipped_partitions, skipped_records}; records that are, or were,"
        " produced, and to how many partitions.",
    )
    return View("kelr/rescue-replay", columns, head=head, tail=(totals, NEXT))


_SKIPPED: Sequence[tuple[str, str]] = (
    ("survive", "Records that the surviving log holds."),
    ("cut", "Records that the surviving log holds, of committed transactions whose commit it lacks."),
    ("already", "Records that an earlier replay has produced."),
    ("overwritten", "Records whose key was written again since, in a compacted topic."),
    ("deleted", "Records that the log held and begins behind by now: DeleteRecords or retention took them on purpose."),
    ("unknown", "Records below where the log begins by now, of which it is not known whether it ever held them."),
    ("aborted", "Records of aborted transactions."),
    ("open", "Records of transactions of which no end is known."),
    ("markers", "Control records, which are never replayed."),
    ("outside", "Records of the first and last batch beyond the offsets that were asked for."),
)


def _skipped_column(key: str, about: str) -> Column[ReplayRow]:
    def value(row: ReplayRow) -> Json:
        count: int = getattr(row, key)
        return count

    return column(key, key.upper(), "integer", about, value, shown=Shown.MACHINE, right=True)


def _skipped_text(row: ReplayRow) -> Text:
    if row.skipped_records:
        return styled(f"all {row.skipped_records}: skipped", Style.NOTICE)
    return plain(", ".join(f"{count} {why}" for count, why in row.skipped) or "nothing")
