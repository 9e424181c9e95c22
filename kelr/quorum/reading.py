"""Copies of the metadata log out of collections: scanned batch by batch, and replayed."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.errors import BadInputError, KelrError
from kelr.quorum.archive import LOG_DIRECTORY, Archive, CollectedNode, open_archive
from kelr.quorum.assess import parting
from kelr.quorum.collect import QUORUM_STATE
from kelr.quorum.copies import NO_EPOCH, Batches, BrokerDisk, CopyKey, History, MetadataCopy, QuorumState
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage, TopicOnRecord
from kelr.sources.metadata_log.log import MetadataLog
from kelr.sources.metadata_log.pieces import WINDOW_BYTES, Copy, Holder
from kelr.sources.metadata_log.replaying import replay, time_text
from kelr.sources.records.batches import BatchHeader, BatchRun, Stop, StopKind

_UNFINISHED = frozenset({StopKind.TORN, StopKind.EMPTY_SPACE})
_UNDERSTOOD = ("KRaftVersionRecord", "VotersRecord")


@dataclass(frozen=True, slots=True)
class Collected:
    """All that was collected, of several files where there are any."""

    copies: tuple[MetadataCopy, ...]
    disks: tuple[BrokerDisk, ...]
    sources: Mapping[CopyKey, tuple[Archive, CollectedNode]]
    """By a copy's key, where its bytes are; also of nodes without a copy."""


_Reading = tuple[Archive, CollectedNode]


def read_collections(paths: Sequence[Path]) -> Collected:
    """Every copy in these files; of a directory that is in several the newest reading, and earlier ones that hold
    records which it has lost since.

    Raises:
        BadInputError: a file is no collection, was changed, or they are of different clusters.
    """
    readings: dict[tuple[int, str], list[_Reading]] = {}
    for archive in map(open_archive, paths):
        for node in archive.nodes:
            readings.setdefault((node.node, node.directory_id or place_of(node)), []).append((archive, node))
    every = [one for found in readings.values() for one in found]
    clusters = {node.cluster_id: archive.path for archive, node in every if node.cluster_id is not None}
    if len(clusters) > 1:
        listed = "; ".join(f"{path} is of {cluster}" for cluster, path in sorted(clusters.items()))
        raise BadInputError(
            f"these are collections of different clusters: {listed}",
            next_step="give those of one",
            code="metadata-logs-differ",
        )
    copies: list[MetadataCopy] = []
    disks: list[BrokerDisk] = []
    sources: dict[CopyKey, _Reading] = {}
    for (number, directory), found in sorted(readings.items()):
        found.sort(key=lambda one: one[1].read_at_ms)
        archive, node = sources[number, directory, 0] = found[-1]
        disks.append(BrokerDisk(node.node, node.replicas, node.set_aside, node.unread))
        kept = [_copy(archive, node)] if node.files else []
        for earlier in reversed(found[:-1]):
            copy = _earlier(*earlier)
            if earlier[1].files != node.files and not any(_holds(one, copy) for one in kept):
                kept.append(copy)
                sources[copy.key] = earlier
        copies += kept
    return Collected(tuple(copies), tuple(disks), sources)


def _earlier(archive: Archive, node: CollectedNode) -> MetadataCopy:
    at = f"{place_of(node)} at {time_text(node.read_at_ms)}"
    return replace(_copy(archive, node), place=at, running=None, read_at_ms=node.read_at_ms)


def _holds(one: MetadataCopy, other: MetadataCopy) -> bool:
    """Whether a copy is seen to hold all that another one does; beginning behind the other's end it shows nothing."""
    agrees_to, parts, _ = parting(one, other)
    return other.end <= one.end and agrees_to is not None and not parts


_RECORDS = {
    rec.BrokerChanged: "BrokerRegistrationChangeRecord",
    rec.BrokerRegistered: "RegisterBrokerRecord",
    rec.BrokerUnregistered: "UnregisterBrokerRecord",
    rec.ConfigSet: "ConfigRecord",
    rec.ControllerRegistered: "RegisterControllerRecord",
    rec.ElrCleared: "ClearElrRecord",
    rec.FeatureLevel: "FeatureLevelRecord",
    rec.PartitionChanged: "PartitionChangeRecord",
    rec.PartitionMade: "PartitionRecord",
    rec.TopicMade: "TopicRecord",
    rec.TopicRemoved: "RemoveTopicRecord",
}
_OTHERS = frozenset(
    {
        "AccessControlEntryRecord",
        "ClientQuotaRecord",
        "DelegationTokenRecord",
        "ProducerIdsRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveDelegationTokenRecord",
        "RemoveUserScramCredentialRecord",
        "UserScramCredentialRecord",
    }
)


def records_from(collected: Collected, copy: MetadataCopy, offset: int) -> Mapping[str, int]:
    """How many records of each kind a copy holds from this offset on, by Kafka's names; without those that change
    nothing (NoOpRecord, control records)."""
    archive, node = collected.sources[copy.key]
    pieces = Copy(copy.place, copy.cluster_id, copy.node)
    for name, content in files_of(archive, node).items():
        pieces.add(name, f"{copy.place}/{LOG_DIRECTORY}/{name}", content)
    found: Counter[str] = Counter()
    for batch in MetadataLog([pieces]).batches():
        if batch.checkpoint_end is None and batch.next_offset > offset:
            found.update(_kind(one) for at, one in enumerate(batch.records, batch.base_offset) if at >= offset)
    return {kind: found[kind] for kind in sorted(found) if kind}


def _kind(record: rec.MetadataRecord) -> str:
    """Kafka's name of the record; empty: it changes nothing."""
    if isinstance(record, rec.Irrelevant):
        return record.kind if record.kind in _OTHERS else ""
    return _RECORDS.get(type(record), "")


def place_of(node: CollectedNode) -> str:
    """Host and directory, for a person."""
    return f"{node.host}:{node.directories[0]}"


def files_of(archive: Archive, node: CollectedNode) -> Mapping[str, Holder]:
    """The files of a node's ``__cluster_metadata-0``, by their names there."""
    return {
        name.removeprefix(f"{LOG_DIRECTORY}/"): content
        for (place, name), content in archive.files.items()
        if place == node.place and name.startswith(f"{LOG_DIRECTORY}/")
    }


def _copy(archive: Archive, node: CollectedNode) -> MetadataCopy:
    found = read_directory(files_of(archive, node), place_of(node), node.node, node.cluster_id, node.directory_id)
    return replace(found, running=node.running)


def read_directory(
    files: Mapping[str, Holder], place: str, node: int, cluster_id: str | None, directory_id: str | None
) -> MetadataCopy:
    """The copy that a node's ``__cluster_metadata-0`` holds, by the names of its files there."""
    pieces = Copy(place, cluster_id, node)
    for name, content in sorted(files.items()):
        pieces.add(name, f"{place}/{LOG_DIRECTORY}/{name}", content)
    scanned = _scan(pieces)
    replayed = _replayed(pieces, scanned)
    return MetadataCopy(
        node=node,
        directory_id=directory_id,
        place=place,
        cluster_id=cluster_id,
        batches=replayed.batches,
        last_epoch=replayed.last_epoch,
        image=replayed.image,
        history=replayed.history,
        checkpoints=tuple(sorted((one.end_offset, one.epoch) for one in pieces.checkpoints if one.end_offset)),
        quorum_state=_quorum_state(files.get(QUORUM_STATE)),
        broken=replayed.broken,
        torn_bytes=scanned.torn_bytes,
    )


def _quorum_state(content: Holder | None) -> QuorumState | None:
    """Of either version; None where it is missing or garbled, so that the voter does not count as read."""
    if content is None:
        return None
    try:
        found = json.loads(content.read(0, content.size_bytes))
        epoch, leader, voted = (found[key] for key in ("leaderEpoch", "leaderId", "votedId"))
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in (epoch, leader, voted)):
            return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return QuorumState(epoch, leader if leader >= 0 else None, voted if voted >= 0 else None)


# The log itself, batch by batch.


@dataclass(frozen=True, slots=True)
class _Scanned:
    batches: Batches
    broken: str | None
    torn_bytes: int


def _scan(copy: Copy) -> _Scanned:
    """The whole batches of the segments, as far as each follows the one before."""
    offsets, epochs, checksums = array("q"), array("i"), array("I")
    segments = sorted(copy.segments, key=lambda one: one.base_offset)
    end = segments[0].base_offset if segments else 0
    broken, torn = ("; ".join(copy.odd) or None), 0
    for number, segment in enumerate(segments):
        if broken is None and segment.base_offset != end:
            broken = f"records {end} to {segment.base_offset - 1} are missing before {segment.name}"
        if broken is not None:
            break
        reading = _Headers(segment.bytes)
        for header in reading:
            epoch = header.partition_leader_epoch
            if header.base_offset != end or epoch is None or (epochs and epoch < epochs[-1]):
                broken = f"{segment.name}: a batch of offset {header.base_offset} follows offset {end - 1}"
                break
            offsets.append(end)
            epochs.append(epoch)
            checksums.append(header.crc)
            end = header.base_offset + header.last_offset_delta + 1
        stop = reading.stop
        if broken is None and stop is not None and stop.kind is not StopKind.END:
            if number + 1 == len(segments) and stop.kind in _UNFINISHED:
                torn = segment.bytes.size_bytes - stop.at
            else:
                broken = f"{segment.name} at byte {stop.at}: {stop.text}"
    return _Scanned(Batches(offsets, epochs, checksums, end), broken, torn)


class _Headers:
    """The headers of a segment's whole batches, checksums verified: iterate, then ask `stop`."""

    def __init__(self, content: Holder) -> None:
        self._content = content
        self.stop: Stop | None = None

    def __iter__(self) -> Iterator[BatchHeader]:
        at, window, size = 0, WINDOW_BYTES, self._content.size_bytes
        while True:
            data = self._content.read(at, window)
            run = BatchRun(data)
            for _, header in run:
                yield header
            stop = run.stop
            assert stop is not None
            if stop.kind not in {*_UNFINISHED, StopKind.END} or at + len(data) >= size:
                self.stop = Stop(stop.kind, at + stop.at, stop.text)
                return
            window = WINDOW_BYTES if stop.at else window * 2
            at += stop.at


@dataclass(frozen=True, slots=True)
class _Replayed:
    batches: Batches
    last_epoch: int
    image: MetadataImage
    history: History
    broken: str | None


def _replayed(copy: Copy, scanned: _Scanned) -> _Replayed:
    """What the records say; a copy that cannot be replayed holds nothing that could be chosen."""
    batches, checkpoints = scanned.batches, [one for one in copy.checkpoints if one.end_offset]
    if not batches.end and not checkpoints:
        return _Replayed(batches, NO_EPOCH, MetadataImage(), History(), scanned.broken)
    history = _Historian()
    try:
        log = MetadataLog([copy])
        found = replay(log.batches(), name=copy.label, observer=history.saw)
    except KelrError as error:
        return _Replayed(Batches(), NO_EPOCH, MetadataImage(), History(), scanned.broken or error.message)
    broken = scanned.broken
    if broken is None and history.restarts > 1:
        broken = "a checkpoint stands in for records that are missing"
    if broken is None and history.unknown:
        broken = f"kelr does not understand {history.unknown}"
    last_epoch = batches.epochs[-1] if batches.epochs else max((one.epoch for one in checkpoints), default=NO_EPOCH)
    end = batches.end
    if not batches.offsets or found.next_offset > batches.end:
        # Nothing but a checkpoint: the log goes on where that ends.
        end, last_epoch = found.next_offset, history.epoch
        batches = Batches(end=end)
    elif found.next_offset < batches.end and broken is None:
        broken = f"it cannot be read from offset {found.next_offset} on"
    if found.next_offset < batches.end:
        # What cannot be replayed is not compared, either: its records could not be used.
        kept = batches.index(found.next_offset)
        batches = Batches(batches.offsets[:kept], batches.epochs[:kept], batches.checksums[:kept], found.next_offset)
        last_epoch = batches.epochs[-1] if kept else NO_EPOCH
    return _Replayed(batches, last_epoch, found.image, history.history(found.image), broken)


class _Historian:
    """Notes what a copy has ever said while it is replayed."""

    def __init__(self) -> None:
        self._begins_at: int | None = None
        self._topics: set[str] = set()
        self._held: dict[tuple[str, int], set[int]] = {}
        self.epoch = NO_EPOCH
        self.restarts = 0
        """Checkpoints that were read, and breaks that a checkpoint stood in for."""
        self.unknown: str | None = None
        self._last_checkpoint: int | None = None

    def saw(self, batch: rec.RecordBatch, changes: Iterable[rec.Change]) -> None:
        if self._begins_at is None:
            self._begins_at = batch.checkpoint_end or 0
        if batch.checkpoint_end is not None and batch.checkpoint_end != self._last_checkpoint:
            self._last_checkpoint = batch.checkpoint_end
            self.restarts += 1 if self.restarts or self._begins_at == batch.checkpoint_end else 2
        self.epoch = max(self.epoch, batch.epoch)
        for record in batch.records if type(batch.records) is tuple else ():
            if type(record) is rec.Irrelevant and record.kind.startswith(_UNDERSTOOD):
                self.unknown = record.kind
        for change in changes:
            if isinstance(change, rec.PartitionMoved):
                state = change.after or change.before
                assert state is not None
                if state.topic_id is not None:
                    self._topics.add(state.topic_id)
                    held = self._held.setdefault((state.topic_id, state.partition), set())
                    held.update(state.replicas)

    def history(self, image: MetadataImage) -> History:
        topics: Iterable[TopicOnRecord] = image.topics.values()
        return History(
            self._begins_at or 0,
            frozenset(self._topics) | {one.topic_id for one in topics},
            {key: frozenset(brokers) for key, brokers in self._held.items()},
        )
