"""What there is to ingest: the files below some places, of what kind they are, whose, and which of them are new."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from kelr.errors import BadInputError, NotAuthorizedError, UsageError
from kelr.fleet.files import Files, LocalFiles
from kelr.fleet.looking import CHECKPOINT, SEGMENT, UNKNOWN, Looked
from kelr.fleet.stores import Listed, is_local
from kelr.sources.disk.files import GarbledError, MetaProperties, meta_properties
from kelr.sources.disk.names import META_PROPERTIES, METADATA_TOPIC, replica_name, segment_base
from kelr.sources.metadata_log.pieces import is_piece

Opener = Callable[[str], Files]
"""Opens the folder at a path or URI: `kelr.fleet.files.files_at`."""
INGESTED, SUPERSEDED, QUARANTINED = "ingested", "superseded", "quarantined"
WHAT = (
    "give directories of nodes that hold __cluster_metadata-0, segments and checkpoints out of it, or files that kelr"
    " snapshot or kelr recover collect wrote"
)
_OF_KAFKA = frozenset(
    {
        "quorum-state",
        "partition.metadata",
        "leader-epoch-checkpoint",
        "cleaner-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "bootstrap.checkpoint",
        "remote_log_metadata_snapshot",
    }
)
"""Files of log directories that hold no records."""
_NO_RECORDS = (".index", ".timeindex", ".txnindex", ".snapshot", ".deleted", ".part", ".swap", ".cleaned", ".crc")
_FOR_PEOPLE = (".json", ".txt", ".md", ".properties", ".yaml", ".yml", ".csv", ".html", ".xml", ".sh", ".conf")
"""What stands beside such files wherever people collect them."""
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/*[^/]*")
"""A bucket, or a file system: nothing is above it."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file, as the manifest has it."""

    path: str
    size_bytes: int
    modified_ms: int | None
    """None: it is to be looked at again."""
    kind: str = UNKNOWN
    cluster: str | None = None
    node: int | None = None
    status: str = QUARANTINED
    reason: str | None = None
    run: str = ""
    taken_at_ms: int = 0
    looked: Looked | None = None

    @property
    def copy(self) -> str:
        """The directory that it is in."""
        return self.path.rpartition("/")[0]

    @property
    def of_log(self) -> bool:
        """Whether it holds a part of a metadata log."""
        return self.looked is not None and self.kind in {SEGMENT, CHECKPOINT}

    def same(self, listed: Listed) -> bool:
        """Whether it is as it was when it was looked at."""
        return (self.size_bytes, self.modified_ms) == (listed.size_bytes, listed.modified_ms)


@dataclass(slots=True)
class Listing:
    """What was found at some places."""

    new: list[Listed] = field(default_factory=list)
    """Files that the manifest does not have, or that have changed since."""
    known: int = 0
    """How many it has."""
    there: set[str] = field(default_factory=set)
    """Paths of all files."""
    empty: list[str] = field(default_factory=list)
    """Places that hold nothing that is read."""
    unread: dict[str, str] = field(default_factory=dict)
    """Folders below them that cannot be listed, and why."""


def list_inputs(open_: Opener, places: Sequence[str], manifest: Mapping[str, Input], lake: str | None) -> Listing:
    """The files below these places; those of the lake itself are none.

    Raises:
        BadInputError: there is no such place, or it cannot be listed.
        UsageError: no place was given.
    """
    if not places:
        raise UsageError("no input was given", next_step=WHAT)
    found = Listing()
    for place in places:
        some = False
        for listed in _listed(open_, place, found.unread):
            of_lake = lake is not None and listed.path.startswith(lake.rstrip("/") + "/")
            if listed.path in found.there or of_lake:
                some = some or listed.path in found.there
                continue
            some = some or not is_passed_over(listed.path)
            if is_passed_over(listed.path):
                continue
            found.there.add(listed.path)
            before = manifest.get(listed.path)
            if before is not None and before.same(listed):
                found.known += 1
            else:
                found.new.append(listed)
        if not some:
            found.empty.append(place)
    return found


def _listed(open_: Opener, place: str, unread: dict[str, str]) -> Iterator[Listed]:
    files = open_(place)
    if is_local(files.place):
        path = Path(files.place)
        if not path.exists():
            raise BadInputError(f"{place}: no such file or directory", next_step=WHAT)
        try:
            next(path.iterdir(), None) if path.is_dir() else None
        except OSError as error:
            raise BadInputError(
                f"{place} cannot be listed: {error.strerror or error}", next_step="check who may read it"
            ) from error
        yield from LocalFiles(path, unread).list()
        return
    there = list(files.list())
    if not there and not files.exists():
        raise BadInputError(f"{place}: no such file or directory", next_step=WHAT)
    yield from there


def is_passed_over(path: str) -> bool:
    """Whether it is, by its name, nothing to be read: files of a log directory that hold no records of a metadata
    log (indexes, checkpoints of offsets, segments of topics), hidden ones, and texts."""
    pure = PurePosixPath(path)
    name = pure.name
    if (
        name == META_PROPERTIES
        or name in _OF_KAFKA
        or name.startswith(".")
        or name.endswith((*_NO_RECORDS, *_FOR_PEOPLE))
    ):
        return True
    return is_piece(name) and _is_of_topic(pure.parent.name)


def _is_of_topic(directory: str) -> bool:
    held = replica_name(directory)
    return held is not None and held.address.topic != METADATA_TOPIC and segment_base(directory) is None


class Owners:
    """Whose a directory's files are.

    Args:
        given: cluster ids by folders or files, for what is in them and beside which no meta.properties says it.
    """

    def __init__(self, open_: Opener, given: Mapping[str, str]) -> None:
        self._open = open_
        self._given = {open_(prefix).place.rstrip("/"): cluster for prefix, cluster in given.items()}
        self._known: dict[str, tuple[MetaProperties | None, str | None]] = {}

    def owned(self, one: Input) -> Input:
        """The file with its cluster and node; in quarantine where nobody tells the cluster, or two tell different
        ones."""
        told, garbled = (None, None) if not one.of_log else self._near(one.copy)
        own = one.looked.cluster if one.looked is not None else None
        says = own or (None if told is None else told.cluster_id)
        wanted = self._named(one.path)
        node = None if told is None else told.broker
        if says is not None and wanted is not None and says != wanted:
            where = "the file itself" if own else META_PROPERTIES
            return replace(one, node=node, reason=f"{where} says cluster {says}, and --cluster says {wanted}")
        cluster = says or wanted
        if cluster is None and one.looked is not None and one.looked.damaged:
            return replace(one, node=node)
        if cluster is None:
            why = f"; {META_PROPERTIES}: {garbled}" if garbled else ""
            nothing = f"which cluster it is of is not known: no {META_PROPERTIES} beside it says so, and no --cluster"
            return replace(one, node=node, reason=nothing + why)
        return replace(one, cluster=cluster, node=node)

    def _named(self, path: str) -> str | None:
        # Whole names: what is said of node-1 is not said of node-10.
        fitting = [prefix for prefix in self._given if path == prefix or path.startswith(prefix + "/")]
        return self._given[max(fitting, key=len)] if fitting else None

    def _near(self, directory: str) -> tuple[MetaProperties | None, str | None]:
        """What the directory's or its parent's meta.properties says, and what is wrong with it."""
        parent = "" if _ROOT.fullmatch(directory) else directory.rpartition("/")[0]
        for place in (directory, parent):
            told = self._read(place) if place else (None, None)
            if told != (None, None):
                return told
        return None, None

    def _read(self, directory: str) -> tuple[MetaProperties | None, str | None]:
        if directory not in self._known:
            self._known[directory] = self._properties(directory)
        return self._known[directory]

    def _properties(self, directory: str) -> tuple[MetaProperties | None, str | None]:
        try:
            return meta_properties(self._open(directory).read(META_PROPERTIES)), None
        except FileNotFoundError:
            return None, None
        except (OSError, GarbledError, BadInputError, NotAuthorizedError) as error:
            return None, str(error)


def still_there(open_: Opener, paths: Iterable[str], known: set[str]) -> set[str]:
    """Which of these files are there; what is `known` to be is not looked for."""
    return {path for path in paths if path in known or any(True for _ in open_(path).list())}


__all__ = [
    "INGESTED",
    "QUARANTINED",
    "SUPERSEDED",
    "Input",
    "Listing",
    "Owners",
    "is_passed_over",
    "list_inputs",
    "still_there",
]
