"""Endpoints that say something, without a network."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.metrics.catalog import BY_KEY
from kelr.metrics.computed import Computed, compute
from kelr.metrics.endpoints import Found, Kind, Value, endpoint_of
from kelr.metrics.figures import figures
from kelr.metrics.reading import Heard
from kelr.model import Cluster, Features, Situation, Snapshot
from kelr.model.measured import AskedEndpoint, MetricFigure
from kelr.sources.memory import MemorySource
from tests.incident import CLUSTER, INCIDENT

NOW_MS = 1_793_577_600_000


def says(
    name: str,
    values: Mapping[str, float],
    *,
    kind: Kind = Kind.TEXT,
    labels: Mapping[str, str] | None = None,
    at_ms: int | None = None,
    old: bool = False,
    said: bool = True,
    increase: float | None = None,
) -> Heard:
    """An endpoint with these values by metric."""
    endpoint = endpoint_of(kind, name)
    found = tuple(
        Value(BY_KEY[key], value, key, labels or {}, at_ms, old, said, increase) for key, value in values.items()
    )
    return Heard(endpoint, AskedEndpoint(endpoint.shown, kind, True, 0.1, len(found)), Found(found))


def figure(key: str, *heard: Heard, computed: Computed | None = None) -> MetricFigure:
    """One metric's figure."""
    return next(one for one in figures(heard, computed, now_ms=NOW_MS) if one.metric == key)


def counted(*, cluster: Cluster = CLUSTER, unknown: Mapping[str, int] | None = None, **values: int) -> Computed:
    """What kelr counts on a cluster of three brokers of which 2 and 3 are live."""
    return Computed(
        figures=values,
        unknown=unknown or {},
        cluster=cluster,
        partitions=values.get("partitions", 10),
        situations={Situation.HEALTHY: 10},
        dead_leader=0,
        under_min_isr_without_leader=0,
    )


def cluster_with(newest: int | None) -> Cluster:
    """A cluster whose software knows this metadata.version at the most."""
    supported = None if newest is None else {"metadata.version": newest}
    return Cluster("c", CLUSTER.brokers, Features({}, supported), brokers_source="DescribeCluster v2")


class SilentController(MemorySource):
    """A cluster whose brokers hear no controller, while `why` says so."""

    why: str | None = "REQUEST_TIMED_OUT"

    @property
    def controller_silence(self) -> str | None:
        return self.why


def of_incident(snapshot: Snapshot = INCIDENT) -> Computed:
    """What kelr counts on the incident."""
    return compute(MemorySource(snapshot))
