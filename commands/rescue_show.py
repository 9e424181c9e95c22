"""What ``kelr rescue show`` does once its options are read, and how a rescue file is shown; loaded only when used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kelr.commands.targets import read_selection
from kelr.errors import BadInputError, PartlyDoneError, UsageError
from kelr.model import (
    Selection,
)
from kelr.rescue.archive import Dump, open_dump
from kelr.rescue.manifest import SavedTail
from kelr.rescue.summary import SavedRecord, TailSummary, records_of, summarize
from kelr.rescue.transactions import Outcome
from kelr.sources.records.errors import UnreadableBatchError
from kelr.view.columns import Json
from kelr.view.output import Output
from kelr.view.rescue import RecordRow, TailRow, records_view, show_view
from kelr.view.styled import Style, plain, styled

_ROWS_AT_ONCE = 500


def show_file(output: Output, file: Path, targets: Sequence[str], *, records: bool, full: bool) -> None:
    """Show a rescue file: its tails, or their records.

    Raises:
        BadInputError: it is none, or is not as it was written.
        PartlyDoneError: it does not hold all that was asked for when it was made; after it was shown.
    """
    selection = read_selection(targets)
    with open_dump(file) as dump:
        tails = selected(dump, selection)
        if records:
            with output.listing(records_view(full=full), file_head(dump)) as listing:
                for tail in tails:
                    for rows in _batched(_record_rows(dump, tail)):
                        listing.add(rows)
        else:
            following = ["rescue", "replay", str(file), "--dry-run"]
            with output.listing(show_view(), file_head(dump)) as listing:
                listing.add(tail_row(summarize(dump, tail)) for tail in tails)
                listing.finish({"next": local_command(following)})
            if not output.format.is_document:
                say_next(output, following)
        if not all(tail.whole for tail in tails):
            partial = sorted({str(tail.address) for tail in tails if not tail.whole})
            raise PartlyDoneError(
                f"{file} does not hold all that was asked for: {some_names(partial)}",
                next_step="MISSING says what; read it from another replica or from a disk",
            )


def selected(dump: Dump, selection: Selection) -> Sequence[SavedTail]:
    """The tails of these partitions.

    Raises:
        UsageError: there is none.
    """
    tails = [tail for tail in dump.manifest.saved if selection.matches(tail.topic, tail.partition)]
    if not tails:
        raise UsageError(f"{dump.path} holds none of these partitions", next_step=f"kelr rescue show {dump.path}")
    return tails


def file_head(dump: Dump) -> dict[str, Json]:
    """What documents about a rescue file begin with."""
    manifest = dump.manifest
    return {
        "file": str(dump.path),
        "cluster_id": manifest.cluster_id,
        "taken_at_ms": manifest.taken_at_ms,
        "plan_id": manifest.plan_id,
    }


def tail_row(summary: TailSummary) -> TailRow:
    """A tail as it is shown."""
    tail = summary.tail
    missing = [_gap_text(gap.from_offset, gap.to_offset, gap.text) for gap in tail.gaps]
    return TailRow(
        topic=tail.topic,
        partition=tail.partition,
        replica=tail.replica,
        how=tail.how,
        why=tail.why,
        from_offset=tail.from_offset,
        to_offset=tail.to_offset,
        records=tail.records,
        batches=tail.batches,
        size_bytes=tail.size_bytes,
        epochs=tuple(dict.fromkeys(epoch.epoch for epoch in tail.epochs)),
        first_timestamp_ms=summary.first_timestamp_ms,
        last_timestamp_ms=summary.last_timestamp_ms,
        committed=summary.count(Outcome.COMMITTED),
        aborted=summary.count(Outcome.ABORTED),
        open=summary.count(Outcome.OPEN) + summary.count(Outcome.UNKNOWN),
        producers=summary.producers,
        missing=(*missing, *summary.unreadable),
        cut_records=summary.cut_records,
        compacted_away=summary.compacted_away,
    )


def _gap_text(start: int, end: int | None, text: str) -> str:
    return f"offsets {start} to {'the end' if end is None else end - 1}: {text}"


def _record_rows(dump: Dump, tail: SavedTail) -> Iterator[RecordRow]:
    try:
        for saved in records_of(dump, tail):
            yield _record_row(saved)
    except UnreadableBatchError as error:
        raise BadInputError(f"{dump.path}, {tail.address}: a batch cannot be read: {error}") from error


def _record_row(saved: SavedRecord) -> RecordRow:
    record, header = saved.record, saved.header
    kind = saved.control_type
    state = kind.name if kind is not None else "-" if saved.outcome is None else saved.outcome.value
    return RecordRow(
        topic=saved.tail.topic,
        partition=saved.tail.partition,
        offset=record.offset,
        leader_epoch=header.partition_leader_epoch,
        timestamp_ms=record.timestamp_ms,
        producer_id=header.producer_id,
        state=state,
        key=record.key,
        value=record.value,
        headers=record.headers,
        control=header.control,
    )


def _batched(rows: Iterator[RecordRow]) -> Iterator[list[RecordRow]]:
    batch: list[RecordRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def local_command(arguments: Sequence[str]) -> str:
    """The next command, of a kind that asks no cluster."""
    import shlex  # noqa: PLC0415

    return shlex.join(["kelr", *arguments])


def say_next(output: Output, arguments: Sequence[str]) -> None:
    output.note([*styled("  next:", Style.HEADING), *plain(" " + local_command(arguments))])


def some_names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
