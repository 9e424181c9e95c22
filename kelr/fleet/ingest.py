"""``kelr fleet ingest``: snapshots, collections and metadata logs of many clusters into one lake."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kelr.errors import BadInputError
from kelr.fleet.files import files_at
from kelr.fleet.inputs import QUARANTINED, WHAT, Input, Owners, list_inputs, still_there
from kelr.fleet.lake import Lake
from kelr.fleet.laying import spans_until
from kelr.fleet.manifest import keep_told, read_manifest, read_told, write_manifest
from kelr.fleet.merging import ClusterWork, Outcome, merge
from kelr.fleet.planning import LogFiles, LogWork, Told, Work, in_order, plan_log, plan_seen
from kelr.fleet.readers import Look, look
from kelr.fleet.reading import ClusterInputs
from kelr.fleet.row_batches import TABLES
from kelr.fleet.stores import Listed, meant
from kelr.fleet.tables import STATES, DataFile
from kelr.fleet.workers import Workers, workers_of
from kelr.model.fleet import IngestedCluster, IngestSummary, QuarantinedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.files import Files
    from kelr.fleet.lake import Changes


def ingest(
    spark: SparkSession | None,
    inputs: Sequence[str],
    lake: str,
    *,
    now_ms: int,
    clusters: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    names_of_folders: bool = False,
    settings: Mapping[str, str] | None = None,
    workers: Workers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IngestSummary:
    """Take what is new among the inputs into a lake; all of it appears at once, or nothing.

    Args:
        spark: None: processes of this machine do it.
        inputs: files and folders, as paths or URIs of stores.
        lake: the folder or URI of the lake; it is made if there is none.
        now_ms: the time of this run, in milliseconds since 1970.
        clusters: cluster ids by the beginning of paths, for files beside which nothing says it.
        names: what clusters are to be called, by their ids.
        names_of_folders: call the others as the folder of an input that each has for itself (`names_by_folder`).
        settings: Spark's of stores, where there is no session.
        workers: who does it, if not `workers_of` the session.
        progress: told of the clusters that are done, and of how many there are, by processes of this machine.

    Raises:
        BadInputError: an input is not there, nothing in any of them can be read, or the lake cannot be written.
        UsageError: no input was given.
        RefusedError: another run is changing the lake.
    """
    opened = Lake(spark, lake, settings)
    with (
        opened.changing("ingest") as changes,
        nullcontext(workers) if workers else workers_of(spark, progress) as those,
    ):
        run = _Run(opened, changes, those, now_ms, names_of_folders)
        summary = run.take(inputs, Owners(run.files, clusters or {}), names or {})
    return replace(summary, version=opened.version.number)


@dataclass
class _Run:
    lake: Lake
    changes: Changes
    workers: Workers
    now_ms: int
    names_of_folders: bool
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    manifest: dict[str, Input] = field(default_factory=dict)

    def take(self, inputs: Sequence[str], owners: Owners, names: Mapping[str, str]) -> IngestSummary:
        self.manifest = read_manifest(self.lake)
        listing = list_inputs(self.files, inputs, self.manifest, self.lake.place)
        new = [owners.owned(one) for one in self._looked_at(listing.new)]
        for path in sorted(listing.there):
            before = self.manifest.get(path)
            if before is not None and before.cluster is None and before.looked is not None:
                found = owners.owned(before)
                if found.cluster is not None and path not in {one.path for one in new}:
                    new.append(found)
        empty = [QuarantinedFile(place, None, f"nothing in it is of use: {WHAT}") for place in listing.empty]
        empty += [QuarantinedFile(place, None, why) for place, why in sorted(listing.unread.items())]
        if not listing.there:
            unread = "".join(f"; {place}: {why}" for place, why in sorted(listing.unread.items())[:_SHOWN])
            raise BadInputError(f"{', '.join(listing.empty)}: nothing in it is of use{unread}", next_step=WHAT)
        self._check_readable(new, listing.known)
        if self.names_of_folders:
            places = [self.files(place).place for place in inputs]
            known = [*self.manifest.values(), *new]
            names = {**names_by_folder(places, known), **self.lake.version.clusters, **names}
        self.changes.name(
            {cluster: name for cluster, name in names.items() if self.lake.version.clusters.get(cluster) != name}
        )
        work = self._plan(new, listing.there)
        outcomes = self._merged(work)
        summary = self._summary(new, work, outcomes, known=listing.known, empty=empty)
        if work.changed:
            write_manifest(self.changes, {**self.manifest, **self._marked(work)}.values())
        return summary

    def _looked_at(self, listed: Sequence[Listed]) -> list[Input]:
        asked = [Look(one.path, one.size_bytes, self.lake.options(one.path)) for one in listed]
        new = []
        for one, (looked, error) in zip(listed, self.workers.do(look, asked), strict=True):
            if looked is None:
                why = f"it cannot be read: {error}"
                new.append(Input(one.path, one.size_bytes, None, reason=why))
            else:
                new.append(
                    Input(one.path, one.size_bytes, one.modified_ms, looked.kind, reason=looked.odd, looked=looked)
                )
        return new

    def files(self, place: str) -> Files:
        """The folder at a path or URI."""
        return files_at(place, self.lake.options(place))

    def _check_readable(self, new: Sequence[Input], known: int) -> None:
        if new and not known and not any(one.cluster is not None and one.looked and not _useless(one) for one in new):
            listed = "; ".join(f"{one.path}: {one.reason}" for one in new[:_SHOWN])
            more = f"; and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            raise BadInputError(f"nothing of the inputs can be read: {listed}{more}", next_step=WHAT)

    def _plan(self, new: Sequence[Input], there: set[str]) -> Work:
        work = Work(changed={one.path: replace(one, status=QUARANTINED) for one in new})
        plan_seen(new, self.manifest, work)
        logs: dict[str, list[Input]] = {}
        for one in {**self.manifest, **{one.path: one for one in new}}.values():
            if one.of_log and one.cluster is not None:
                logs.setdefault(one.cluster, []).append(one)
        changed = frozenset(one.path for one in new)

        def can_be_read(paths: Iterable[str]) -> set[str]:
            return still_there(self.files, paths, there)

        told = read_told(self.lake)
        to_plan = {one.cluster for one in new if one.of_log and one.cluster is not None}
        # Of two logs under one cluster id none was told; one of them may be gone by now.
        to_plan |= {
            cluster
            for cluster, files in logs.items()
            if all(one.status == QUARANTINED for one in files) and cluster not in told
        }
        for cluster in sorted(to_plan):
            plan_log(LogFiles(cluster, logs[cluster], changed, told.get(cluster)), can_be_read, work)
        return work

    def _merged(self, work: Work) -> list[Outcome]:
        """Let workers read it, and write what it makes of the lake."""
        logs = {one.cluster: one for one in work.logs}
        seen: dict[str, list[Input]] = defaultdict(list)
        for one in work.seen:
            seen[one.cluster or ""].append(one)
        todo = [self._work(cluster, logs.get(cluster), seen[cluster]) for cluster in sorted({*logs, *seen})]
        outcomes = []
        for found in self.workers.do(merge, todo):
            if isinstance(found, OSError):
                raise meant(found, self.lake.place, "cannot be written")
            outcomes.append(found)
        self._take(outcomes)
        for outcome in outcomes:
            for path, why in outcome.unreadable.items():
                self._mark(work, path, why)
        ends = {one.cluster: one.next_offset for one in outcomes if one.next_offset is not None}
        if ends:
            told = {cluster: Told(end, spans_until(logs[cluster].layout.spans, end)) for cluster, end in ends.items()}
            keep_told(self.changes, read_told(self.lake) | told)
        return outcomes

    def _work(self, cluster: str, log: LogWork | None, seen: Sequence[Input]) -> ClusterWork:
        pieces = () if log is None else log.pieces
        paths = in_order(seen)
        size_bytes = sum(one.size_bytes for one in seen) + (0 if log is None else log.size_bytes)
        place = next((one.path for one in pieces), "") or next(iter(paths), "")
        return ClusterWork(
            ClusterInputs(cluster, pieces, paths, self.lake.options(place)),
            self.lake.place.rstrip("/"),
            self.lake.options(self.lake.place),
            self._known.get(cluster, {}),
            goes_on=log is not None and log.goes_on_from is not None,
            anew=log is not None and log.anew,
            size_bytes=size_bytes,
        )

    @cached_property
    def _known(self) -> Mapping[str, Mapping[str, tuple[DataFile, ...]]]:
        """The lake's files, by cluster and table."""
        found: dict[str, dict[str, list[DataFile]]] = defaultdict(lambda: defaultdict(list))
        for table in (*TABLES.values(), STATES):
            for file in sorted(self.lake.files_of(table), key=lambda file: file.path):
                found[file.values["cluster"] or ""][table.name].append(file)
        return {cluster: {name: tuple(files) for name, files in tables.items()} for cluster, tables in found.items()}

    def _take(self, outcomes: Sequence[Outcome]) -> None:
        """Make the tables consist of what workers wrote."""
        for table in (*TABLES.values(), STATES):
            added = [file for one in outcomes for file in one.added.get(table.name, ())]
            replaced = {path for one in outcomes for path in one.replaced.get(table.name, ())}
            if added or replaced:
                self.changes.exchange(table, added, replaced)

    def _mark(self, work: Work, path: str, reason: str) -> None:
        known = work.changed.get(path) or self.manifest.get(path)
        if known is not None:
            work.changed[path] = replace(known, status=QUARANTINED, reason=reason, modified_ms=None)

    def _marked(self, work: Work) -> dict[str, Input]:
        return {path: replace(one, run=self.name, taken_at_ms=self.now_ms) for path, one in work.changed.items()}

    def _summary(
        self,
        new: Sequence[Input],
        work: Work,
        outcomes: Sequence[Outcome],
        *,
        known: int,
        empty: Sequence[QuarantinedFile],
    ) -> IngestSummary:
        called = self.changes.version.clusters
        files = [work.changed.get(one.path, one) for one in new]
        clusters = sorted({one.cluster for one in files if one.cluster is not None} | {one.cluster for one in outcomes})
        by_cluster = {one.cluster: one for one in outcomes}
        notes = {one.cluster: one.layout.notes for one in work.logs}
        return IngestSummary(
            lake=self.lake.place,
            version=self.lake.version.number,
            changed=bool(work.changed),
            clusters=tuple(
                _cluster(
                    cluster,
                    called.get(cluster),
                    [one for one in files if one.cluster == cluster],
                    by_cluster.get(cluster),
                    notes.get(cluster, ()),
                )
                for cluster in clusters
            ),
            nowhere=(*empty, *(_quarantined(one) for one in files if one.cluster is None)),
            new_files=len(new),
            known_files=known,
        )


_SHOWN = 5


def _useless(one: Input) -> bool:
    """Whether nothing in it can be read."""
    looked = one.looked
    return looked is None or (looked.damaged and not looked.readable_bytes)


def _cluster(
    cluster: str, name: str | None, files: Sequence[Input], outcome: Outcome | None, notes: Sequence[str]
) -> IngestedCluster:
    counts = {} if outcome is None else outcome.counts
    return IngestedCluster(
        cluster=cluster,
        name=name,
        files=sum(one.status != QUARANTINED for one in files),
        records=0 if outcome is None else outcome.records,
        partitions=0 if outcome is None else outcome.partitions,
        states=counts.get("partition_states", 0),
        elections=counts.get("elections", 0),
        log_info=counts.get("log_info", 0),
        begun_ms=None if outcome is None else outcome.begun_ms,
        ended_ms=None if outcome is None else outcome.ended_ms,
        quarantined=tuple(_quarantined(one) for one in files if one.status == QUARANTINED),
        notes=(*notes, *(() if outcome is None else (*outcome.notes, *_broken(outcome)))),
    )


def _broken(outcome: Outcome) -> Iterator[str]:
    """Rows that are not as they are expected to be, by expectation."""
    for name, count in sorted(outcome.broken.items()):
        yield f"{count:,} rows break {name}: quarantined_rows has them"


def _quarantined(one: Input) -> QuarantinedFile:
    return QuarantinedFile(one.path, one.cluster, one.reason or "it cannot be read")


# What clusters are called, where whoever collected their files has put each into a folder of its own.


def names_by_folder(places: Sequence[str], files: Iterable[Input]) -> dict[str, str]:
    """The name of each cluster whose files are all in one folder of a place, with no other cluster's beside them.

    Args:
        places: the inputs as the file system names them.

    Returns:
        Names by cluster id; a cluster that is spread over folders, or shares one, has none.
    """
    folders: dict[str, set[str]] = defaultdict(set)
    clusters: dict[str, set[str]] = defaultdict(set)
    for one in files:
        if one.cluster is not None:
            folder = _folder(places, one.path)
            folders[one.cluster].add(folder)
            clusters[folder].add(one.cluster)
    found = {}
    for cluster, (folder, *others) in ((cluster, sorted(all_)) for cluster, all_ in folders.items()):
        if folder and not others and len(clusters[folder]) == 1:
            found[cluster] = folder
    return found


def _folder(places: Sequence[str], path: str) -> str:
    """The folder just below the place that a file is in; empty for a file that is in no such folder."""
    for place in places:
        below = path.removeprefix(place.rstrip("/") + "/")
        if below != path and "/" in below:
            return below.partition("/")[0]
    return ""
