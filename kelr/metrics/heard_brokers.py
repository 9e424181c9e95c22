"""How many brokers' figures were heard, beside how many brokers the cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kelr.metrics.asked import Kind
from kelr.metrics.catalog import METRICS
from kelr.metrics.combining import Combined, combine
from kelr.metrics.computed import Computed
from kelr.metrics.reading import Heard
from kelr.model.measured import MetricScope


def brokers_notes(heard: Sequence[Heard], computed: Computed | None) -> tuple[str, ...]:
    """What to know of all figures of brokers: which live ones are not in them, or whose else may be."""
    found = brokers_heard(combine(heard, METRICS).values())
    if computed is None:
        untold = any(one.endpoint.kind is Kind.SERVER and one.endpoint.query_match is None for one in heard)
        if found < 2 or not untold:
            return ()
        return (
            f"figures marked (led) are the sum of what {found} brokers say: no label tells clusters apart, and no"
            " cluster was named that says how many it has",
        )
    live, known = len(computed.cluster.live), known_brokers(computed)
    if 0 < found < live:
        return (f"{found} of {live} live brokers were heard: figures marked (led) are of what those lead",)
    if known is not None and found > known:
        return (
            f"{found} brokers were heard, and the cluster has {known}: some are of another cluster (narrow them down"
            " with --query-match), or are read in two ways",
        )
    return ()


def known_brokers(computed: Computed) -> int | None:
    """All brokers that the cluster has, fenced ones too; None where it does not list those."""
    return len(computed.cluster.brokers) if computed.cluster.lists_fenced_brokers else None


def brokers_heard(combined: Iterable[Combined]) -> int:
    """How many processes have a broker's metrics, over the way that reaches most of them."""
    by_way: dict[str, set[str]] = {}
    for one in combined:
        if one.metric.scope is MetricScope.BROKER:
            for way, processes in one.processes.items():
                by_way.setdefault(way, set()).update(processes)
    return max(map(len, by_way.values()), default=0)
