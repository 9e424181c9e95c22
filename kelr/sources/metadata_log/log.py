"""The metadata log as whoever replays it asks for it, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from kelr.replay.records import RecordBatch
from kelr.sources.base import Progress


class MetadataLogReader(Protocol):
    """One cluster's metadata log, read from its beginning or its newest checkpoint on: files, or a live controller."""

    @property
    def name(self) -> str:
        """Where it comes from, such as ``metadata log of node 1``."""

    @property
    def cluster_id(self) -> str | None:
        """None where nothing beside the log told it: the log itself does not carry it."""

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd, a sentence each; grows while `batches` is read."""

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:
        """The checkpoint first, if one is needed, then the log in order; each call begins anew.

        Args:
            progress: told of bytes read and bytes there.
        """


class MetadataLog:
    """The metadata log in files of one or more nodes of one cluster: a `MetadataLogReader`."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def cluster_id(self) -> str | None:
        raise NotImplementedError

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes from whose disks the files are, where meta.properties told them; sorted."""
        raise NotImplementedError

    @property
    def files(self) -> tuple[str, ...]:
        """The segments and checkpoints that are read, in order."""
        raise NotImplementedError

    @property
    def warnings(self) -> Sequence[str]:
        raise NotImplementedError

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:
        """See `MetadataLogReader.batches`."""
        raise NotImplementedError


def open_metadata_log(paths: Sequence[Path]) -> MetadataLog:
    """The metadata log in these directories, files and support bundles.

    Raises:
        BadInputError: nothing there is a metadata log, or it cannot be read.
        UsageError: the files are of different clusters.
    """
    raise NotImplementedError
