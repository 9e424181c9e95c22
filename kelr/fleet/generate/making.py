"""Making a fleet: each cluster lives, and what a collector would have brought of it is written.

OUT/payments-eu-west/node-3000/meta.properties
OUT/payments-eu-west/node-3000/__cluster_metadata-0/00000000000000000000.log
OUT/inventory-eu-north/20261004T000000Z.kelr
OUT/truth.json
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kelr.durable import whole_file
from kelr.errors import UsageError
from kelr.fleet.generate.agenda import Agenda, Story
from kelr.fleet.generate.cluster import Cluster
from kelr.fleet.generate.damage import Damage, damage
from kelr.fleet.generate.ends import LogEnds
from kelr.fleet.generate.incidents import Incidents
from kelr.fleet.generate.layout import CONTROLLERS
from kelr.fleet.generate.life import Life
from kelr.fleet.generate.log import MetadataLog
from kelr.fleet.generate.nodes import log_folder, write_nodes
from kelr.fleet.generate.observed import image_of, save_directories_of, save_snapshot_of
from kelr.fleet.generate.plan import (
    DAY_MS,
    START_MS,
    WEEK_MS,
    ClusterPlan,
    FleetPlan,
    Shape,
    cluster_plans,
)
from kelr.fleet.generate.truth import Truth
from kelr.fleet.generate.workers import side_by_side

TRUTH = "truth.json"
_SNAPSHOT_DAYS = 3
"""Of so many days before the end there are snapshot files, where nothing else is left of a cluster."""
_MOST_FOLLOWED = 20_000
"""Of a cluster with more partitions the ends of the logs are followed only where snapshots are taken of it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A fleet that was made."""

    clusters: tuple[Truth, ...]
    """The largest first."""
    damages: tuple[Damage, ...]
    size_bytes: int
    """Of all files but the one with the truth."""


@dataclass(frozen=True, slots=True)
class Lived:
    """A cluster at the end of its weeks."""

    cluster: Cluster
    truth: Truth


def make_fleet(fleet: FleetPlan, out: Path, *, workers: int = 1, told: Callable[[Truth], None] | None = None) -> Made:
    """Make a fleet in an empty or a new folder. The same plan makes the same files.

    Args:
        workers: so many clusters at a time, each by a process of its own; 1: one after the other, by this one.
        told: told of each cluster that is made, in the order of the fleet.

    Raises:
        UsageError: such a fleet cannot be, or the folder has something in it or cannot be written.
    """
    plans = cluster_plans(fleet)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty", next_step="name a folder that is not there yet")
        clusters = []
        made = (make_cluster(plan, out) for plan in plans) if workers < 2 else side_by_side(plans, out, workers)
        for truth in made:
            clusters.append(truth)
            if told is not None:
                told(truth)
        damages = damage(plans, out) if fleet.damage else ()
    except OSError as error:
        raise UsageError(
            f"{error.filename or out} cannot be written: {error.strerror or error}",
            next_step="name a folder that you may write to",
        ) from error
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    _write_truth(clusters, damages, out)
    return Made(tuple(clusters), tuple(damages), size)


def make_cluster(plan: ClusterPlan, out: Path) -> Truth:
    """Make one cluster, in a folder of its name. Raises OSError."""
    keeps_log = plan.shape is not Shape.SNAPSHOTS
    folder = out / plan.name
    with closing(MetadataLog(log_folder(folder, CONTROLLERS[0]) if keeps_log else None, plan.segment_bytes)) as log:
        truth = live(plan, log, folder).truth
    if keeps_log:
        write_nodes(plan, folder, log)
    return truth


def live(plan: ClusterPlan, log: MetadataLog, folder: Path) -> Lived:
    """Let a cluster live through its weeks.

    Args:
        folder: where snapshots and collections go.
    """
    snapshots = plan.shape is Shape.SNAPSHOTS
    ends = LogEnds() if snapshots or plan.partitions <= _MOST_FOLLOWED else None
    software = plan.software
    rules = (software.elr_later or software.rules).name
    truth = Truth(plan.cluster_id, plan.name, software.name, software.metadata_version, rules, plan.shape.value)
    agenda = Agenda(START_MS)
    cluster = Cluster(plan, log, truth, START_MS, ends)
    life = Life(cluster, agenda)
    life.begin()
    watched = _Watched(cluster, ends, folder)
    Incidents(life, watched.collect if ends is not None else None).begin()
    if snapshots:
        agenda.start(watched.daily(), plan.end_ms - _SNAPSHOT_DAYS * DAY_MS)
    else:
        agenda.start(watched.checkpoints(), START_MS + WEEK_MS - DAY_MS)
    for now_ms in agenda.run(plan.end_ms):
        cluster.now_ms = now_ms
    cluster.now_ms = plan.end_ms
    cluster.idle()
    if snapshots:
        watched.snapshot()
    _conclude(cluster, truth)
    return Lived(cluster, truth)


def _conclude(cluster: Cluster, truth: Truth) -> None:
    truth.partitions = cluster.held.count()
    truth.states, truth.records = cluster.states, cluster.log.end
    truth.leaderless = len(cluster.held.leaderless)
    truth.brokers_down = tuple(cluster.down())
    truth.end_ms = cluster.now_ms


class _Watched:
    """What is written of a cluster while it lives, beside its log."""

    def __init__(self, cluster: Cluster, ends: LogEnds | None, folder: Path) -> None:
        self._cluster, self._ends, self._folder = cluster, ends, folder

    def checkpoints(self) -> Story:
        while True:
            self._cluster.log.checkpoint(image_of(self._cluster), self._cluster.now_ms)
            yield WEEK_MS // 2

    def daily(self) -> Story:
        while True:
            self.snapshot()
            yield DAY_MS

    def snapshot(self) -> None:
        assert self._ends is not None
        save_snapshot_of(self._cluster, self._ends, self._folder / f"{self._stamp()}.kelr")

    def collect(self, brokers: Sequence[int]) -> None:
        assert self._ends is not None
        place = self._folder / "collected" / f"{self._stamp()}.kelr"
        save_directories_of(self._cluster, self._ends, brokers, place)

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._cluster.now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _write_truth(clusters: list[Truth], damages: tuple[Damage, ...], out: Path) -> None:
    document = {
        "clusters": [truth.document() for truth in clusters],
        "damages": [{"path": one.path, "what": one.what} for one in damages],
    }
    with whole_file(out / TRUTH, "truth", overwrite=False) as file:
        file.write(json.dumps(document, indent=1, sort_keys=True).encode() + os.linesep.encode())
