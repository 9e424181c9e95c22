"""What ``kelr rescue`` shows: the tails in a rescue file, its records, and what a replay does with them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from kelr.view.columns import Column, Fact, Json, Shown, View, datum
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
        Column(
            "partition",
            "PARTITION",
            value=lambda row: row.partition,
            text=lambda row: plain(f"{row.topic}:{row.partition}"),
            type="integer",
            about=about,
        ),
    )


TAIL_COLUMNS: tuple[Column[TailRow], ...] = (
    *partition_columns("The partition's number."),
    Column(
        "replica",
        "REPLICA",
        value=lambda row: row.replica,
        right=True,
        type="integer",
        about="The replica whose log the records come from.",
    ),
    Column(
        "how",
        "READ BY",
        value=lambda row: row.how,
        yields=5,
        type="string",
        about="Fetch from its broker, or log directory.",
    ),
    Column(
        "from_offset",
        "FROM",
        value=lambda row: row.from_offset,
        right=True,
        type="integer",
        about="The first offset that was asked for.",
    ),
    Column(
        "to_offset",
        "TO",
        value=lambda row: row.to_offset,
        right=True,
        type="integer",
        about="The first offset that was not asked for.",
    ),
    Column(
        "epochs",
        "EPOCHS",
        value=lambda row: [epoch for epoch in row.epochs if epoch is not None],
        text=lambda row: plain(" ".join("?" if epoch is None else str(epoch) for epoch in row.epochs) or "-"),
        yields=2,
        type="integer[]",
        about="The leader epochs in which the records were written, as their batches carry them.",
    ),
    Column(
        "without_epoch",
        "WITHOUT EPOCH",
        value=lambda row: None in row.epochs,
        shown=Shown.MACHINE,
        type="boolean",
        about="Whether there are batches that carry no leader epoch.",
    ),
    Column(
        "records",
        "RECORDS",
        value=lambda row: row.records,
        right=True,
        type="integer",
        about="How many records of producers are there.",
    ),
    Column(
        "batches",
        "BATCHES",
        value=lambda row: row.batches,
        shown=Shown.WIDE,
        right=True,
        type="integer",
        about="Batches.",
    ),
    Column(
        "size_bytes",
        "BYTES",
        value=lambda row: row.size_bytes,
        right=True,
        yields=3,
        type="integer",
        about="Their bytes.",
    ),
    Column(
        "first_timestamp_ms",
        "OLDEST",
        value=lambda row: row.first_timestamp_ms,
        text=lambda row: plain(time_text(row.first_timestamp_ms)),
        shown=Shown.WIDE,
        type="integer?",
        about="The oldest timestamp, in milliseconds since 1970 UTC.",
    ),
    Column(
        "last_timestamp_ms",
        "NEWEST",
        value=lambda row: row.last_timestamp_ms,
        text=lambda row: plain(time_text(row.last_timestamp_ms)),
        yields=4,
        type="integer?",
        about="The newest timestamp.",
    ),
    Column(
        "transactions",
        "TRANSACTIONS",
        value=lambda row: {"committed": row.committed, "aborted": row.aborted, "open": row.open},
        text=_transactions_text,
        yields=1,
        type="object",
        about="How many transactions have records here, by how they ended: {committed, aborted, open}.",
    ),
    Column(
        "cut_records",
        "CUT",
        value=lambda row: row.cut_records,
        shown=Shown.MACHINE,
        type="integer",
        about="Records that the leader keeps, of committed transactions whose commit it lacks.",
    ),
    Column(
        "compacted_away",
        "COMPACTED",
        value=lambda row: row.compacted_away,
        shown=Shown.MACHINE,
        type="integer",
        about="In a compacted topic: offsets that were asked for and that no record of this replica has any more.",
    ),
    Column(
        "producers",
        "PRODUCERS",
        value=lambda row: row.producers,
        shown=Shown.WIDE,
        right=True,
        type="integer",
        about="How many producer ids wrote them.",
    ),
    Column(
        "missing",
        "MISSING",
        value=lambda row: list(row.missing),
        text=_missing_text,
        prose=True,
        type="string[]",
        about="What was asked for and could not be read; empty where all is there.",
    ),
    Column("why", "WHY", value=lambda row: row.why, shown=Shown.WIDE, prose=True, type="string", about="Why these."),
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
        Column("offset", "OFFSET", value=lambda row: row.offset, right=True, type="integer", about="Its offset there."),
        Column(
            "leader_epoch",
            "EPOCH",
            value=lambda row: row.leader_epoch,
            right=True,
            yields=2,
            type="integer?",
            about="The leader epoch in which it was written.",
        ),
        Column(
            "timestamp_ms",
            "TIMESTAMP",
            value=lambda row: row.timestamp_ms,
            text=lambda row: plain(time_text(row.timestamp_ms)),
            yields=3,
            type="integer?",
            about="In milliseconds since 1970 UTC.",
        ),
        Column(
            "producer_id",
            "PRODUCER",
            value=lambda row: row.producer_id,
            shown=Shown.WIDE,
            right=True,
            type="integer?",
            about="Who wrote it, where it has an id.",
        ),
        Column(
            "state",
            "TRANSACTION",
            value=lambda row: row.state,
            yields=1,
            type="string",
            about="committed, aborted, open, unknown, or - for none; of a marker COMMIT or ABORT.",
        ),
        Column(
            "control", "MARKER", value=lambda row: row.control, shown=Shown.MACHINE, type="boolean", about="No data."
        ),
        Column(
            "key",
            "KEY",
            value=lambda row: bytes_document(row.key),
            text=lambda row: plain("-" if row.control else preview(row.key, full=full)),
            type="object?",
            about="{utf8} or {base64}; null for none.",
        ),
        Column(
            "value",
            "VALUE",
            value=lambda row: bytes_document(row.value),
            text=lambda row: plain("-" if row.control else preview(row.value, full=full)),
            type="object?",
            about="The same; null is a tombstone.",
        ),
        Column(
            "headers",
            "HEADERS",
            value=lambda row: [_header_document(name, value) for name, value in row.headers],
            text=lambda row: plain(" ".join(f"{n}={preview(v, full=full)}" for n, v in row.headers) or "-"),
            shown=Shown.WIDE,
            type="object[]",
            about="Its headers in order: {key, value}.",
        ),
    )


def _header_document(name: str, value: bytes | None) -> Mapping[str, Json]:
    return {"key": name.encode("utf-8", "backslashreplace").decode(), "value": bytes_document(value)}
