"""Reading one cluster's inputs into rows: its metadata log, snapshots and collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kelr.errors import KelrError
from kelr.fleet.laying import Piece
from kelr.fleet.readers import UnreadablePieceError, batches_of
from kelr.fleet.row_batches import Rows
from kelr.fleet.snapshot_rows import seen
from kelr.fleet.states import State
from kelr.fleet.stores import Options, on_disk
from kelr.fleet.tables import PARTITION_STATES
from kelr.fleet.telling import HistoryBuilder
from kelr.replay.records import RecordBatch
from kelr.sources.metadata_log.replaying import check_understood


@dataclass(frozen=True, slots=True)
class ClusterInputs:
    """What is to be read of one cluster."""

    cluster: str
    log: tuple[Piece, ...] = ()
    """Its metadata log, or the rest of it."""
    seen: tuple[str, ...] = ()
    """Snapshots and collections, the oldest first."""
    options: Options = ()
    """Of the store where they are."""


@dataclass(slots=True)
class Read:
    """What came of reading."""

    rows: Rows
    records: int = 0
    partitions: int = 0
    """Where the newest of it ends."""
    begun_ms: int | None = None
    ended_ms: int | None = None
    notes: tuple[str, ...] = ()
    state: State | None = None
    """In which the reading of the log ended."""
    next_offset: int | None = None
    """Up to where the log was told; None: nothing of it was."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Why files were not read, or not all of them."""

    def span(self, begun_ms: int | None, ended_ms: int | None) -> bool:
        """Take in another time; whether it is the newest."""
        newest = ended_ms is not None and (self.ended_ms is None or ended_ms >= self.ended_ms)
        self.begun_ms = min((one for one in (self.begun_ms, begun_ms) if one is not None), default=None)
        self.ended_ms = max((one for one in (self.ended_ms, ended_ms) if one is not None), default=None)
        return newest


def read(inputs: ClusterInputs, kept: Callable[[], State | None] = lambda: None) -> Read:
    """Read all of it. What cannot be read is left out, and said.

    Args:
        kept: gives what is known in front of the log; None where it begins. May raise BadInputError.
    """
    found = Read(Rows(inputs.cluster))
    for path in inputs.seen:
        try:
            _seen(path, inputs, found)
        except KelrError as error:
            found.unreadable[path] = str(error)
    if inputs.log:
        try:
            told = _log(inputs, kept())
        except KelrError as error:
            found.unreadable |= {piece.path: str(error) for piece in inputs.log}
        else:
            told.unreadable |= found.unreadable
            told.rows.take(found.rows)
            told.span(found.begun_ms, found.ended_ms)
            found = told
    found.rows.finish()
    return found


def _log(inputs: ClusterInputs, state: State | None) -> Read:
    rows = Rows(inputs.cluster)
    found = Read(rows)
    builder = HistoryBuilder(state)
    rows.known.brokers |= builder.image.brokers.keys()
    try:
        for batch in batches_of(inputs.log, inputs.options):
            _count(batch, found)
            for told in builder.take(batch):
                rows.add(told.table, told.row)
    except UnreadablePieceError as error:
        if builder.image.at is None:
            raise
        # What comes before is told, as a node that starts would take it.
        found.unreadable[error.path] = error.text
    for told in builder.finish():
        rows.add(told.table, told.row)
    rows.finish()
    at = builder.image.at
    found.next_offset = 0 if at is None else at.offset + 1
    found.partitions = sum(len(topic.partitions) for topic in builder.image.topics.values())
    found.notes = tuple(check_understood(builder.image, name=f"the metadata log of cluster {inputs.cluster}"))
    found.state = builder.state()
    return found


def _count(batch: RecordBatch, found: Read) -> None:
    if batch.checkpoint_end is None:
        found.records += len(batch.records)
    if found.begun_ms is None:
        found.begun_ms = batch.timestamp_ms
    found.ended_ms = batch.timestamp_ms


def _seen(path: str, inputs: ClusterInputs, found: Read) -> None:
    rows, partitions = Rows(inputs.cluster, list), 0
    at_ms: int | None = None
    try:
        with on_disk(path, inputs.options) as file:
            for table, row in seen(file):
                if table is PARTITION_STATES:
                    partitions, at_ms = partitions + 1, row["valid_from"]
                rows.add(table.name, row)
    except OSError as error:
        raise UnreadablePieceError(path, f"it cannot be read: {error.strerror or error}") from error
    found.rows.take(rows)
    if found.span(at_ms, at_ms):
        found.partitions = partitions
