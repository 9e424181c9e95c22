"""Makes one figure of what several processes say: the highest of the controllers', the sum of the brokers'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelr.metrics.catalog import BY_KEY, METRICS, Attribute, Metric
from kelr.metrics.computed import Computed
from kelr.metrics.endpoints import Access, Endpoint, Kind, Value
from kelr.metrics.reading import Heard, read_all
from kelr.model.measured import MetricScope, Reading

_NAMING = frozenset({"__name__", "name", "type"})
_NO_PROCESS = _NAMING | {"topic", "partition", "dir", "quantile", "le"}
_SCRAPES = frozenset({"job", "prometheus", "prometheus_replica", "replica"})
"""Labels that tell who scraped a process, and not which process it is."""


@dataclass(frozen=True, slots=True)
class Combined:
    """All readings of one metric, and what they come to."""

    metric: Metric
    readings: tuple[Reading, ...]
    value: float | None
    processes: Mapping[str, frozenset[str]]
    """Those whose readings were counted, by the way to them."""
    of_active: float | None = None
    """What the active controller says, where one is known."""
    attribute_said: bool = True
    ways_differ: bool = False
    """Whether a Prometheus server comes to another figure than as many processes themselves."""

    @property
    def counted(self) -> tuple[Reading, ...]:
        return tuple(one for one in self.readings if not one.old)

    @property
    def heard(self) -> int:
        """How many processes say it, over the way that reaches most of them."""
        return max(map(len, self.processes.values()), default=0)

    @property
    def disagree(self) -> bool:
        """Whether controllers say different things."""
        return len({one.value for one in self.counted}) > 1

    @property
    def increase(self) -> float | None:
        """How far a counter rose, over all processes. Controllers count the same elections: the highest."""
        known = [one.increase for one in self.readings if one.increase is not None]
        return max(known, default=None)


def combine(heard: Sequence[Heard], metrics: Iterable[Metric]) -> Mapping[str, Combined]:
    """What all endpoints say of each metric that any of them has."""
    found: dict[str, list[tuple[Heard, str, Value]]] = {}
    for one in heard:
        apart = _labels_apart(one)
        for value in one.found.values:
            process = process_of(one, value, apart.get(value.labels.get("instance", ""), ()))
            found.setdefault(value.metric.key, []).append((one, process, value))
    active = _active(found.get("active_controllers", ()))
    return {metric.key: _combined(metric, found[metric.key], active) for metric in metrics if metric.key in found}


def _labels_apart(heard: Heard) -> Mapping[str, Sequence[str]]:
    """By instance: the labels that tell several processes of that name apart, such as those of two clusters that one
    Prometheus server has. They are labels of whole targets: every series of the instance has them."""
    held: dict[str, list[Mapping[str, str]]] = {}
    for value in heard.found.values if heard.endpoint.kind is Kind.SERVER else ():
        if instance := value.labels.get("instance"):
            held.setdefault(instance, []).append(value.labels)
    return {
        instance: sorted(
            name
            for name in set.intersection(*map(set, those)) - _NO_PROCESS - _SCRAPES
            if len({labels[name] for labels in those}) > 1
        )
        for instance, those in held.items()
    }


def process_of(heard: Heard, value: Value, apart: Sequence[str] = ()) -> str:
    """The Kafka process that a value is about: the endpoint itself, or what a Prometheus server scraped.

    Args:
        apart: the labels that tell processes with the instance of this one apart.
    """
    if heard.endpoint.kind is not Kind.SERVER:
        return heard.asked.endpoint
    instance = value.labels.get("instance")
    if instance:
        return ",".join((instance, *(f"{name}={value.labels[name]}" for name in apart)))
    rest = {name: one for name, one in value.labels.items() if name not in _NO_PROCESS}
    return ",".join(f"{name}={one}" for name, one in sorted(rest.items())) or heard.asked.endpoint


def _active(values: Iterable[tuple[Heard, str, Value]]) -> frozenset[tuple[str, str]]:
    """The processes that say that they are the active controller."""
    return frozenset((one.asked.endpoint, process) for one, process, value in values if value.value >= 1)


def _combined(
    metric: Metric, found: Sequence[tuple[Heard, str, Value]], active: frozenset[tuple[str, str]]
) -> Combined:
    readings = _readings(metric, found)
    ways = {one.asked.endpoint: _way(one) for one, _, _ in found}
    counted = [one for one in readings if not one.old]
    adds = metric.scope is MetricScope.BROKER or metric.key == "active_controllers"
    by_way: dict[str, list[Reading]] = {}
    for one in counted:
        by_way.setdefault(ways[one.endpoint], []).append(one)
    # A process and the server that scrapes it tell the same: what comes in over one way is added up, never over two.
    totals = [(sum if adds else max)(one.value for one in those) for those in by_way.values()]
    same_reach = len({len(those) for those in by_way.values()}) == 1
    of_active = [one.value for one in counted if (one.endpoint, one.process) in active]
    return Combined(
        metric,
        readings,
        max(totals, default=None),
        {way: frozenset(one.process for one in those) for way, those in by_way.items()},
        of_active[0] if len(set(of_active)) == 1 else None,
        all(value.attribute_said for _, _, value in found),
        same_reach and len(set(totals)) > 1 and metric.attribute is Attribute.VALUE,
    )


def _way(heard: Heard) -> str:
    """Over what a value came in: a Prometheus server, or from the process itself."""
    return heard.asked.endpoint if heard.endpoint.kind is Kind.SERVER else "direct"


def _readings(metric: Metric, found: Sequence[tuple[Heard, str, Value]]) -> tuple[Reading, ...]:
    """One reading for each process. Series of partitions are counted, those of directories added up."""
    by_process: dict[tuple[str, str], list[Value]] = {}
    for heard, process, value in found:
        by_process.setdefault((heard.asked.endpoint, process), []).append(value)
    readings = []
    for (endpoint, process), values in by_process.items():
        fresh = _once([one for one in values if not one.old] or values)
        if metric.of_each_partition:
            total = float(sum(one.value != 0 for one in fresh))
        elif metric.attribute is Attribute.VALUE and metric.scope is MetricScope.BROKER:
            total = sum(one.value for one in fresh)
        else:
            total = max(one.value for one in fresh)
        stamps = [one.at_ms for one in fresh if one.at_ms is not None]
        rises = [one.increase for one in fresh if one.increase is not None]
        readings.append(
            Reading(
                endpoint,
                process,
                _said_as(fresh[0]),
                total,
                min(stamps, default=None),
                all(one.old for one in values),
                max(rises, default=None),
            )
        )
    return tuple(sorted(readings, key=lambda one: (one.endpoint, one.process)))


def _once(values: Sequence[Value]) -> list[Value]:
    """Series that differ in nothing but who scraped them, and under which of its names, are one: the highest."""
    kept: dict[frozenset[tuple[str, str]], Value] = {}
    for one in values:
        part = frozenset(label for label in one.labels.items() if label[0] not in _NAMING | _SCRAPES)
        if part not in kept or kept[part].value < one.value:
            kept[part] = one
    return list(kept.values())


def _said_as(value: Value) -> str:
    """The series' name as it was found; where the metric is named by a label, with that."""
    of_label = value.labels.get("name") if ":" not in value.name else None
    return value.name if of_label is None else f'{value.name}{{name="{of_label}"}}'


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
        return (f"{found} of {live} live brokers answered: figures marked (led) are of what those lead",)
    if known is not None and found > known:
        return (
            f"{found} brokers answered, and the cluster has {known}: some are of another cluster (narrow them down"
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


_ENDPOINT_S = 5.0


def recoveries_finished(endpoints: Sequence[Endpoint], access: Access) -> int | None:
    """KIP-966's unclean_recovery_finished_count, which is the active controller's own memory; None where no endpoint
    has it.

    Raises:
        BadInputError: the files for TLS cannot be used.
    """
    metric = BY_KEY["unclean_recoveries_finished"]
    heard = read_all(endpoints, access, timeout_s=_ENDPOINT_S) if endpoints else ()
    found = combine(heard, (metric,)).get(metric.key)
    return None if found is None or found.value is None else int(found.value)
