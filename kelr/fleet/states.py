"""What is known at a place of a metadata log, as bytes that can be kept and sent to workers."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kelr import __version__
from kelr.errors import BadInputError
from kelr.model import TopicPartition
from kelr.replay import records as rec
from kelr.replay.history import Carried, LastLed
from kelr.replay.history.causes import JUST_BEFORE_MS, Reordered
from kelr.replay.image import MetadataImage
from kelr.replay.records import At
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.writing import checkpoint_bytes
from kelr.sources.records.batches import StopKind

FORMAT, FORMAT_VERSION = "kelr-telling", 1
_CHECKPOINT, _BESIDE = "checkpoint", "beside.json"
_SIZE = 8
"""Bytes of the length in front of what is beside a checkpoint."""
_LEVEL = 1
"""Of compression: a checkpoint says the same again and again."""
_CLOCKS_DIFFER_MS = 86_400_000
"""By less than this, so that reorders which are older by more than that have nothing to do with what comes."""


@dataclass(frozen=True, slots=True)
class State:
    """What is known at a place of a metadata log, as bytes: telling goes on from there."""

    checkpoint: bytes
    """The image of the cluster, as a checkpoint of Kafka's, compressed with gzip."""
    beside: bytes
    """What no checkpoint carries, as JSON."""

    @classmethod
    def of(cls, image: MetadataImage, carried: Carried) -> State:
        """What an image, and the history that made it, know.

        Raises:
            ValueError: the image has seen no record, or a transaction is open.
        """
        at = image.at
        if at is None:
            raise ValueError("nothing is known before the first record")
        data = b"".join(checkpoint_bytes(image, contained_ms=at.timestamp_ms))
        beside = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "kelr_version": __version__,
            "at": [at.offset, at.epoch, at.timestamp_ms],
            "controller": image.controller,
            "voters": image.voters,
            "misfits": image.misfits,
            "not_understood": [[*kind, count] for kind, count in sorted(image.not_understood.items())],
            "last_led": [
                [address.topic, address.partition, one.leader, one.until_offset]
                for address, one in sorted(carried.last_led.items())
            ],
            "untold_restarts": sorted(carried.untold_restarts.items()),
            "reorders": [
                [address.topic, address.partition, one.first, one.original, one.at_ms]
                for address, one in sorted(carried.reorders.items())
                if at.timestamp_ms - one.at_ms <= JUST_BEFORE_MS + _CLOCKS_DIFFER_MS
            ],
        }
        text = json.dumps(beside, ensure_ascii=False, separators=(",", ":"))
        return cls(gzip.compress(data, _LEVEL, mtime=0), text.encode())

    @classmethod
    def read(cls, files: Mapping[str, bytes]) -> State:
        """One that was kept as `files`.

        Raises:
            BadInputError: these are not such files, are damaged, or are of a newer kelr.
        """
        try:
            found = cls(files[_CHECKPOINT], files[_BESIDE])
        except KeyError as error:
            raise _damaged(f"{error.args[0]} is missing") from None
        found.image()
        return found

    def files(self) -> dict[str, bytes]:
        """What to keep, by names."""
        return {_CHECKPOINT: self.checkpoint, _BESIDE: self.beside}

    def packed(self) -> bytes:
        """Both as one."""
        return len(self.beside).to_bytes(_SIZE) + self.beside + self.checkpoint

    @classmethod
    def unpacked(cls, content: bytes) -> State:
        """The inverse of `packed`. Raises BadInputError."""
        size = _SIZE + int.from_bytes(content[:_SIZE])
        return cls.read({_BESIDE: content[_SIZE:size], _CHECKPOINT: content[size:]})

    @property
    def at(self) -> At:
        """The last record that it knows of. Raises BadInputError."""
        return _at(self._told())

    @property
    def next_offset(self) -> int:
        """All records below this offset are known. Raises BadInputError."""
        return self.at.offset + 1

    def image(self) -> MetadataImage:
        """The image of the cluster, for the reader's own use. Raises BadInputError."""
        told = self._told()
        image = MetadataImage()
        try:
            reader = BatchReader(gzip.decompress(self.checkpoint), checkpoint_end=_at(told).offset + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(f"its checkpoint is not whole: {error}") from error
        ended = False
        for batch in reader:
            image.apply(batch)
            ended = isinstance(batch.records[-1], rec.SnapshotEnds)
        if not ended or reader.stop is None or reader.stop.kind is not StopKind.END:
            raise _damaged("its checkpoint is not whole")
        try:
            image.at, image.controller, image.voters = _at(told), told["controller"], tuple(told["voters"])
            image.misfits = told["misfits"]
            image.not_understood = {(key, version): count for key, version, count in told["not_understood"]}
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(f"{error!r}") from error
        return image

    def carried(self) -> Carried:
        """What a history knows beside the image. Raises BadInputError."""
        told = self._told()
        try:
            return Carried(
                {
                    TopicPartition(topic, partition): LastLed(leader, until_offset)
                    for topic, partition, leader, until_offset in told["last_led"]
                },
                dict(told["untold_restarts"]),
                {
                    TopicPartition(topic, partition): Reordered(first, tuple(original), at_ms)
                    for topic, partition, first, original, at_ms in told["reorders"]
                },
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(f"{error!r}") from error

    def _told(self) -> dict[str, Any]:
        try:
            told = json.loads(self.beside)
        except ValueError as error:
            raise _damaged(f"{error}") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise _damaged("it is none")
        if told.get("format_version") != FORMAT_VERSION:
            raise BadInputError(
                f"the state from which reading goes on is of format version {told.get('format_version')};"
                f" kelr {__version__} knows {FORMAT_VERSION}",
                next_step="use the newer kelr that wrote it, or read everything anew",
            )
        return told


def _at(told: Mapping[str, Any]) -> At:
    try:
        offset, epoch, timestamp_ms = map(int, told["at"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(f"{error!r}") from error
    return At(offset, epoch, timestamp_ms)


def _damaged(why: str) -> BadInputError:
    return BadInputError(
        f"the state from which reading goes on is damaged: {why}", next_step="read everything anew, into another place"
    )
