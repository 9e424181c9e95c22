"""``kelr fleet ingest``: snapshots, collections and metadata logs of many clusters into one lake."""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kelr.errors import BadInputError
from kelr.fleet.files import files_at
from kelr.fleet.inputs import QUARANTINED, WHAT, Input, Owners, list_inputs, still_there
from kelr.fleet.lake import Lake
from kelr.fleet.landing import Landing, keep_told, read_manifest, read_told, write_manifest
from kelr.fleet.laying import spans_until
from kelr.fleet.planning import LogFiles, Told, Work, plan_log, plan_seen
from kelr.fleet.staging import OUTCOMES, TELLING
from kelr.fleet.tasks import Stage, look_at_all
from kelr.fleet.telling_tasks import PART_BYTES, tell_all
from kelr.model.fleet import IngestedCluster, IngestSummary, QuarantinedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.lake import Changes


Outcome = dict[str, Any]
"""What came of a task; see `kelr.fleet.telling_tasks`."""


def ingest(
    spark: SparkSession,
    inputs: Sequence[str],
    lake: str,
    *,
    now_ms: int,
    clusters: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    names_of_folders: bool = False,
    part_bytes: int = PART_BYTES,
) -> IngestSummary:
    """Take what is new among the inputs into a lake; all of it appears at once, or nothing.

    Args:
        inputs: files and folders, as paths or URIs that Spark reaches.
        lake: the folder or URI of the lake; it is made if there is none.
        now_ms: the time of this run, in milliseconds since 1970.
        clusters: cluster ids by the beginning of paths, for files beside which nothing says it.
        names: what clusters are to be called, by their ids.
        names_of_folders: call the others as the folder of an input that each has for itself (`names_by_folder`).
        part_bytes: a log that is longer than twice as much is told in parts, side by side.

    Raises:
        BadInputError: an input is not there, nothing in any of them can be read, or the lake cannot be written.
        UsageError: no input was given.
        RefusedError: another run is changing the lake.
    """
    opened = Lake(spark, lake)
    with opened.changing("ingest") as changes:
        run = _Run(opened, changes, now_ms, part_bytes, names_of_folders)
        summary = run.take(inputs, Owners(spark, clusters or {}), names or {})
    return replace(summary, version=opened.version.number)


@dataclass(slots=True)
class _Run:
    lake: Lake
    changes: Changes
    now_ms: int
    part_bytes: int
    names_of_folders: bool
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    manifest: dict[str, Input] = field(default_factory=dict)

    def take(self, inputs: Sequence[str], owners: Owners, names: Mapping[str, str]) -> IngestSummary:
        self.manifest = read_manifest(self.lake)
        listing = list_inputs(self.lake.spark, inputs, self.manifest, self.lake.place)
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
            places = [files_at(place, self.lake.spark).place for place in inputs]
            known = [*self.manifest.values(), *new]
            names = {**names_by_folder(places, known), **self.lake.version.clusters, **names}
        self.changes.name(
            {cluster: name for cluster, name in names.items() if self.lake.version.clusters.get(cluster) != name}
        )
        work = self._plan(new, listing.there)
        outcomes = self._told(work)
        summary = self._summary(new, work, outcomes, known=listing.known, empty=empty)
        if work.changed:
            write_manifest(self.changes, {**self.manifest, **self._marked(work)}.values())
        return summary

    def _looked_at(self, listed: Sequence[Any]) -> list[Input]:
        found = {
            path: (looked, error) for path, looked, error in look_at_all(self.lake.spark, [one.path for one in listed])
        }
        new = []
        for one in listed:
            looked, error = found[one.path]
            if looked is None:
                why = f"it cannot be read: {error}"
                new.append(Input(one.path, one.size_bytes, None, reason=why))
            else:
                new.append(
                    Input(one.path, one.size_bytes, one.modified_ms, looked.kind, reason=looked.odd, looked=looked)
                )
        return new

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
            return still_there(self.lake.spark, paths, there)

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

    def _told(self, work: Work) -> dict[int, Outcome]:
        """Let workers tell it, and put what they told into the lake."""
        if not work.logs and not work.seen:
            return {}
        stage = Stage(self.lake, self.name)
        try:
            return self._landed(stage, work)
        finally:
            stage.clear()

    def _landed(self, stage: Stage, work: Work) -> dict[int, Outcome]:
        tell_all(self.lake, stage, work, part_bytes=self.part_bytes)
        outcomes = [json.loads(row["outcome"]) for row in stage.read(TELLING, OUTCOMES).collect()]
        by_task = {outcome["task"]: outcome for outcome in outcomes}
        failed = _failed(outcomes)
        good = [one for one in outcomes if one["task"] not in failed]
        logs = {one["cluster"]: one for one in good if one["kind"] == "log" and one["last"]}
        told = [one for one in work.logs if one.cluster in logs]
        landing = Landing(
            self.lake,
            self.changes,
            stage,
            frozenset(failed),
            anew=frozenset(one.cluster for one in told if one.anew),
            going_on=frozenset(one.cluster for one in told if one.goes_on_from is not None),
            clusters=frozenset(one["cluster"] for one in good),
            counts=_counted(good),
        )
        landing.land()
        if told:
            ends = {one.cluster: logs[one.cluster]["next_offset"] for one in told}
            spans = {one.cluster: spans_until(one.layout.spans, ends[one.cluster]) for one in told}
            keep_told(
                self.changes, read_told(self.lake) | {one: Told(ends[one], found) for one, found in spans.items()}
            )
        self._blame(work, by_task, failed)
        return {number: one for number, one in by_task.items() if number not in failed}

    def _blame(self, work: Work, outcomes: Mapping[int, Outcome], failed: set[int]) -> None:
        """What tasks could not read goes into quarantine, and is looked at again by the next run."""
        for number, outcome in outcomes.items():
            stopped, error = outcome.get("stopped"), outcome.get("error")
            if stopped is not None:
                self._mark(work, stopped["path"], stopped["text"])
            if number in failed:
                paths = outcome["paths"] if error is not None else []
                for path in paths:
                    self._mark(work, path, str(error))

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
        outcomes: Mapping[int, Outcome],
        *,
        known: int,
        empty: Sequence[QuarantinedFile],
    ) -> IngestSummary:
        called = self.changes.version.clusters
        files = [work.changed.get(one.path, one) for one in new]
        clusters = sorted(
            {one.cluster for one in files if one.cluster is not None} | {one["cluster"] for one in outcomes.values()}
        )
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
                    [one for one in outcomes.values() if one["cluster"] == cluster],
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


def _counted(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Rows by table."""
    tables = {table for one in outcomes for table in one["rows"]}
    return {table: sum(one["rows"].get(table, 0) for one in outcomes) for table in tables}


def _failed(outcomes: Sequence[Outcome]) -> set[int]:
    """Tasks whose rows are not taken: those that failed, and the other parts of a log one of whose parts did."""
    broken = {one["cluster"] for one in outcomes if one["kind"] == "log" and one.get("error") is not None}
    return {
        one["task"]
        for one in outcomes
        if one.get("error") is not None or (one["kind"] == "log" and one["cluster"] in broken)
    }


def _cluster(
    cluster: str, name: str | None, files: Sequence[Input], outcomes: Sequence[Outcome], notes: Sequence[str]
) -> IngestedCluster:
    def total(what: str) -> int:
        return sum(one["rows"].get(what, 0) for one in outcomes)

    begun = [one["begun_ms"] for one in outcomes if one["begun_ms"] is not None]
    ended = [one["ended_ms"] for one in outcomes if one["ended_ms"] is not None]
    ends = [one for one in outcomes if one["kind"] == "log" and one["last"]] or outcomes
    return IngestedCluster(
        cluster=cluster,
        name=name,
        files=sum(one.status != QUARANTINED for one in files),
        records=sum(one["records"] for one in outcomes),
        partitions=max(ends, key=lambda one: one["ended_ms"] or 0)["partitions"] if ends else 0,
        states=total("partition_states"),
        elections=total("elections"),
        log_info=total("log_info"),
        begun_ms=min(begun, default=None),
        ended_ms=max(ended, default=None),
        quarantined=tuple(_quarantined(one) for one in files if one.status == QUARANTINED),
        notes=(*notes, *(note for one in outcomes for note in one["notes"]), *_broken(outcomes)),
    )


def _broken(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Rows that are not as they are expected to be, by expectation."""
    counts = sum((Counter(one["broken"]) for one in outcomes), Counter[str]())
    for name, count in sorted(counts.items()):
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
