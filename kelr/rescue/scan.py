"""Reads the log that gets the replayed records: which of them are there already, and which keys were written since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from kelr.errors import RefusedError
from kelr.model import TopicPartition
from kelr.rescue.origin import MARK, Origin, Origins, read_origins
from kelr.rescue.transactions import Outcome, marker_of
from kelr.sources.records.batches import TimestampType
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import Record, contents, records_in
from kelr.sources.records.stream import Piece, RawBatch, Unread, UnreadKind

KeyDigest = bytes


def digest_of(key: bytes) -> KeyDigest:
    """A key in 16 bytes, so that the keys of a dump fit in memory."""
    return blake2b(key, digest_size=16).digest()


@dataclass(slots=True)
class Scan:
    """What a partition's log holds behind the point where the lost records were lost."""

    replayed: Origins = field(default_factory=Origins)
    """Every place that a record here comes from, however often it was replayed on the way."""
    newest_epoch: dict[KeyDigest, int] = field(default_factory=dict)
    """For the keys that were asked about: the newest leader epoch in which one was written here, a replayed record
    counting as of the epoch that it had."""
    markers: dict[int, list[tuple[int, Outcome]]] = field(default_factory=dict)
    """By producer, where its transactions ended and how, in the log's order."""
    end: int = 0
    log_append_time: bool = False
    """Whether the topic gives records the time of their writing (message.timestamp.type)."""


class Scanner:
    """Takes a log batch by batch.

    Args:
        cluster_id, source: where the records of the dump come from.
        keys: the keys that are asked about; empty asks about none.
    """

    def __init__(self, cluster_id: str | None, source: TopicPartition, keys: Collection[KeyDigest]) -> None:
        self._cluster_id = cluster_id
        self._source = source
        self._keys = keys
        self._pending: dict[int, dict[KeyDigest, int]] = {}
        self.found = Scan()

    def feed(self, batch: RawBatch) -> None:
        """Take the next batch. Raises UnreadableBatchError."""
        header = batch.header
        self.found.end = header.next_offset
        if header.control:
            self._ended(batch)
            return
        self.found.log_append_time |= header.timestamp_type is TimestampType.LOG_APPEND_TIME
        data = contents(batch.data, 0, header)
        if not self._keys and MARK not in data.tobytes():
            return
        epoch = header.partition_leader_epoch or 0
        newest = self.found.newest_epoch
        if header.transactional and header.producer_id is not None:
            newest = self._pending.setdefault(header.producer_id, {})
        for record in records_in(data, header):
            origins = read_origins(record.headers) if record.headers else ()
            for origin in origins:
                self.found.replayed.add(origin)
            own = self._own(origins)
            self._note_key(record, epoch if own is None else own.leader_epoch, newest)

    def _own(self, origins: Sequence[Origin]) -> Origin | None:
        """The place in the partition that the records of the dump come from."""
        for origin in origins:
            at = TopicPartition(origin.topic, origin.partition)
            if origin.cluster_id == self._cluster_id and at == self._source:
                return origin
        return None

    def _note_key(self, record: Record, epoch: int, newest: dict[KeyDigest, int]) -> None:
        if not self._keys or record.key is None:
            return
        digest = digest_of(record.key)
        if digest in self._keys:
            newest[digest] = max(epoch, newest.get(digest, epoch))

    def _ended(self, batch: RawBatch) -> None:
        """A committed transaction's keys count, an aborted one's do not, nor those of one without an end."""
        outcome = marker_of(batch)
        if batch.header.producer_id is None or outcome is None:
            return
        self.found.markers.setdefault(batch.header.producer_id, []).append((batch.header.base_offset, outcome))
        keys = self._pending.pop(batch.header.producer_id, {})
        if outcome is Outcome.COMMITTED:
            for digest, epoch in keys.items():
                self.found.newest_epoch[digest] = max(epoch, self.found.newest_epoch.get(digest, epoch))


def scan(
    scanner: Scanner, pieces: Iterable[Piece], where: str, *, progress: Callable[[int], None] = lambda _: None
) -> Scan:
    """Read a log to its end.

    Args:
        where: the partition that is read, for the words of an error.
        progress: told of the offset that was reached.

    Raises:
        RefusedError: some of it cannot be read, so that nobody can tell what was replayed already.
    """
    for piece in pieces:
        if isinstance(piece, Unread):
            why = f"its log cannot be read at offset {piece.from_offset}: {piece.text}"
            if piece.kind is UnreadKind.NOT_AUTHORIZED:
                raise _unsure(where, why, "grant it")
            raise _unsure(where, why)
        try:
            scanner.feed(piece)
        except UnreadableBatchError as error:
            raise _unsure(where, f"the batch at offset {piece.header.base_offset} cannot be read: {error}") from error
        progress(piece.header.next_offset)
    return scanner.found


def _unsure(where: str, why: str, next_step: str = "look again when its leader answers") -> RefusedError:
    return RefusedError(
        f"{where}: {why}; whether records were replayed already cannot be told",
        next_step=f"{next_step}; --no-scan replays without looking",
    )
