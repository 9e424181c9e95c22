"""Sets what endpoints say against what kelr counts, and says why the two differ where that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.words import agree, plural
from kelr.metrics.catalog import BY_KEY, METRICS, Attribute, Metric, bug_of
from kelr.metrics.computed import Computed
from kelr.metrics.endpoints import Access, Endpoint, Kind, Value
from kelr.metrics.reading import Heard, read_all
from kelr.model.measured import AskedEndpoint, Comparison, MetricAlert, MetricFigure, MetricScope, Reading

# Makes one figure of what several processes say: the highest of the controllers', the sum of the brokers'.


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


SAME_MOMENT_S = 60.0
"""A snapshot that is older than that says nothing about what gauges say now."""
SAME_READING_S = 10.0
"""A gauge that was measured longer ago may differ because the cluster changed since."""

_ABOUT: Mapping[str, str] = {
    "unclean_elections": (
        "counts since each process started, and never goes back: alert on its increase; elections of the last known"
        " leader are among them, even with unclean.leader.election.enable=false"
    ),
    "unclean_elections_rate": "elections of the last known leader are among them",
    "elr_elections": "counts since each process started; these elections are clean",
    "metadata_errors": "counts since each process started",
    "logs_to_recover": "brokers that still recover their logs after an unclean stop: wait, and do not restart them",
    "offline_replicas": "replicas in failed log directories only: those on brokers that are down are not among them",
}
_UNSHIPPED = "no release of Apache Kafka has this metric of KIP-966; kelr computes it"
_NO_MANAGER = "no release of Apache Kafka has the recovery that this metric of KIP-966 counts"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the comparison of every metric may hang on."""

    computed: Computed | None
    not_computed: str
    """Why there is nothing computed."""
    combined: Mapping[str, Combined]
    brokers_heard: int
    """Processes that have a broker's metrics."""
    now_ms: int

    @property
    def several_clusters(self) -> bool:
        """Whether more than one controller says that it is the active one."""
        active = self.combined.get("active_controllers")
        return active is not None and active.value is not None and active.value > 1

    @property
    def too_many_brokers(self) -> bool:
        """Whether more brokers answered than the cluster has."""
        known = None if self.computed is None else known_brokers(self.computed)
        return known is not None and self.brokers_heard > known

    @property
    def snapshot_age_s(self) -> float | None:
        """How old a saved source is that is too old to compare; None where it is not."""
        taken = None if self.computed is None else self.computed.taken_at_ms
        age_s = 0.0 if taken is None else abs(self.now_ms - taken) / 1000
        return age_s if age_s > SAME_MOMENT_S else None

    @property
    def not_seen(self) -> int:
        """How many partitions the controllers have and kelr may not see."""
        said = self.combined.get("partitions")
        if self.computed is None or said is None or said.value is None:
            return 0
        return max(0, int(said.value) - self.computed.partitions)

    @property
    def out_of_date(self) -> str:
        """Why kelr's own figures may be old ones; empty where nothing says so."""
        silence = None if self.computed is None else self.computed.silence
        return "" if silence is None else f"{silence}: kelr counts what brokers knew last"


def figures(
    heard: Sequence[Heard], computed: Computed | None, *, now_ms: int, not_computed: str = "no cluster was named"
) -> tuple[MetricFigure, ...]:
    """Every metric that an endpoint has or kelr computes, and those that both lack with the reason.

    Args:
        computed: kelr's figures; None where there are none.
        now_ms: the time of the readings, in milliseconds since 1970 UTC.
    """
    combined = combine(heard, METRICS)
    around = Circumstances(computed, not_computed, combined, brokers_heard(combined.values()), now_ms)
    return tuple(_figure(metric, combined.get(metric.key), around) for metric in METRICS)


def _figure(metric: Metric, found: Combined | None, around: Circumstances) -> MetricFigure:
    value = None if found is None else found.value
    own = None if around.computed is None else around.computed.figures.get(metric.key)
    comparison, why = _compared(metric, found, value, own, around)
    return MetricFigure(
        metric=metric.key,
        title=metric.title,
        mbean=metric.mbean,
        scope=metric.scope,
        value=value,
        computed=own,
        unseen=own is None and around.computed is not None and metric.key in around.computed.figures,
        comparison=comparison,
        why="; ".join(text for text in why if text),
        readings=() if found is None else found.readings,
        heard=0 if found is None else found.heard,
        age_s=_age_s(found, around),
        increase=None if found is None else found.increase,
    )


def _compared(
    metric: Metric, found: Combined | None, value: float | None, own: int | None, around: Circumstances
) -> tuple[Comparison, list[str]]:
    notes = _notes(metric, found, around)
    if found is None or value is None:
        return _unread(metric, found, own, around, notes)
    if around.several_clusters:
        return Comparison.NOT_COMPARABLE, [
            "more than one controller says that it is active: these are several clusters (narrow them down with"
            " --query-match), or an election of the controller is under way"
        ]
    if own is None:
        return Comparison.NOT_COMPARABLE, [*notes, _why_not_computed(metric, around)]
    if metric.scope is MetricScope.BROKER and around.too_many_brokers:
        return Comparison.NOT_COMPARABLE, ["more brokers answered than the cluster has"]
    if (age_s := around.snapshot_age_s) is not None:
        return Comparison.NOT_COMPARABLE, [f"kelr's figure is of a snapshot, {_age(age_s)} away from the reading"]
    unknown = 0 if around.computed is None else around.computed.unknown.get(metric.key, 0)
    if value == own and not unknown:
        return Comparison.SAME, notes
    different = Comparison.NOT_COMPARABLE if around.out_of_date else Comparison.DIFFERENT
    if unknown:
        text = f"of {plural(unknown, 'partition')} kelr cannot tell: it may be up to {own + unknown:,}"
        within = own <= value <= own + unknown
        return (Comparison.EXPLAINED if within else different), [text, around.out_of_date, *notes]
    reasons = list(_reasons(metric, found, value, own, around))
    if reasons:
        return Comparison.EXPLAINED, [*reasons, *notes]
    if (age_s := _age_s(found, around)) is not None and age_s > SAME_READING_S:
        text = f"Kafka's figure was measured {_age(age_s)} ago and kelr's is of now: look again after the next scrape"
        return Comparison.NOT_COMPARABLE, [text, *notes]
    return different, [around.out_of_date or "nothing that kelr knows of explains it", *notes]


def _age_s(found: Combined | None, around: Circumstances) -> float | None:
    """How old the oldest reading is that was counted; None where nobody says."""
    stamps = [] if found is None else [one.at_ms for one in found.counted if one.at_ms is not None]
    return max(0.0, (around.now_ms - min(stamps)) / 1000) if stamps else None


def _unread(
    metric: Metric, found: Combined | None, own: int | None, around: Circumstances, notes: list[str]
) -> tuple[Comparison, list[str]]:
    if found is not None:
        return Comparison.NOT_COMPARABLE, ["all that was read of it is too old to count"]
    features = None if around.computed is None else around.computed.cluster.features
    bug = None if features is None else bug_of(metric.key, features)
    missing = f"{bug.text} ({bug.issue})" if bug is not None and bug.missing else "no endpoint has it"
    if not metric.shipped:
        missing = _UNSHIPPED if own is not None or around.computed is None else _NO_MANAGER
        if own is None and around.computed is not None and metric.key in {"global_under_min_isr", "electable_replicas"}:
            missing = _UNSHIPPED
    unseen = own is None and around.computed is not None and metric.key in around.computed.figures
    if unseen:
        missing = f"{_why_not_computed(metric, around)}; {missing if metric.shipped else _UNSHIPPED}"
    if own is None:
        return Comparison.NOT_READ, [missing, *(notes if metric.shipped else [])]
    unknown = around.computed.unknown.get(metric.key, 0) if around.computed is not None else 0
    doubt = f"of {plural(unknown, 'partition')} kelr cannot tell" if unknown else ""
    return Comparison.KELR_ALONE, [missing, doubt, *notes]


def _why_not_computed(metric: Metric, around: Circumstances) -> str:
    if around.computed is None:
        return f"kelr has no figure of its own: {around.not_computed}"
    if metric.key in around.computed.figures:
        topics = plural(len(around.computed.errors), "topic")
        return f"{topics} could not be described" if around.computed.errors else "kelr was shown no partition"
    if metric.key in _ABOUT:
        return ""
    if metric.key == "electable_replicas":
        return "the ELR is not known here"
    if metric.key == "fenced_brokers":
        return "fenced brokers are not listed by this cluster"
    if metric.key == "active_controllers":
        return ""
    if metric.key == "brokers_shutting_down":
        return "brokers do not say of each other that they are shutting down"
    return "kelr does not compute it"


def _notes(metric: Metric, found: Combined | None, around: Circumstances) -> list[str]:
    """What to know about the metric, whatever it says."""
    notes = []
    if found is not None:
        notes += _told_by(metric, found)
    computed = around.computed
    if computed is not None:
        bug = bug_of(metric.key, computed.cluster.features)
        if bug is not None and not bug.missing:
            notes.append(f"{bug.text} ({bug.issue})")
        if metric.key == "offline_partitions" and computed.dead_leader:
            have = agree(computed.dead_leader, "has", "have")
            notes.append(
                f"{plural(computed.dead_leader, 'partition')} more {have} a leader on record whose broker is not live:"
                " the metric does not count that"
            )
        if metric.key in {"under_min_isr", "partitions_under_min_isr"} and computed.under_min_isr_without_leader:
            count = computed.under_min_isr_without_leader
            have, are = agree(count, "has", "have"), agree(count, "is", "are")
            notes.append(f"{count:,} more under min ISR {have} no live leader, and so {are} in no broker's count")
    if found is not None and not metric.shipped:
        notes.append(
            "no release of Apache Kafka has this metric of KIP-966: it comes from kelr's exporter or another one"
        )
    if metric.key in _ABOUT and (found is not None or metric.key in {"unclean_elections"}):
        notes.append(_ABOUT[metric.key])
    if metric.key == "active_controllers" and found is not None and found.value == 0:
        notes.append("no controller that answered is the active one")
    return notes


def _told_by(metric: Metric, found: Combined) -> list[str]:
    notes = []
    old = sum(one.old for one in found.readings)
    if old:
        was, is_ = agree(old, "process was", "processes were"), agree(old, "is", "are")
        notes.append(f"{old} {was} not read lately, and {is_} left out")
    if metric.scope is MetricScope.CONTROLLER and metric.attribute is Attribute.VALUE and found.heard > 1:
        if found.disagree and metric.key != "active_controllers":
            said = ", ".join(f"{one.process} {one.value:g}" for one in found.counted)
            notes.append(f"the controllers disagree ({said}): one lags behind, or cannot keep up")
        elif metric.key == "offline_partitions" and found.value:
            notes.append(f"{found.heard} controllers say so each; their sum would be no figure of the cluster")
    if found.ways_differ:
        notes.append("the Prometheus server has another figure than the processes themselves; the higher one is taken")
    if not found.attribute_said:
        notes.append("its name does not say which attribute it is; taken for the count")
    return notes


def _reasons(metric: Metric, found: Combined, value: float, own: int, around: Circumstances) -> list[str]:
    """What is known to make the two differ."""
    reasons = []
    if metric.scope is MetricScope.CONTROLLER and found.disagree and own in {one.value for one in found.counted}:
        active = " the active one" if found.of_active == own else " one of them"
        reasons.append(f"the controllers disagree, and{active} says what kelr counts: the others lag behind")
    if metric.scope is MetricScope.BROKER:
        reasons += _unheard_brokers(metric, around, matters=value < own)
        reasons += _too_many_brokers(around, matters=value > own)
    if around.not_seen and metric.key not in {"active_brokers", "fenced_brokers"} and value > own:
        reasons.append(
            f"the controllers have {plural(around.not_seen, 'partition')} that kelr is not shown: its principal lacks"
            " DESCRIBE on those topics"
        )
    if metric.key == "active_brokers" and around.computed is not None and value < own:
        shutting = around.combined.get("brokers_shutting_down")
        if shutting is not None and shutting.value and value + shutting.value == own:
            reasons.append(f"{shutting.value:g} in controlled shutdown, which the metric counts apart")
    return reasons


def _live(around: Circumstances) -> int:
    return 0 if around.computed is None else len(around.computed.cluster.live)


def _unheard_brokers(metric: Metric, around: Circumstances, *, matters: bool = True) -> list[str]:
    live = _live(around)
    if metric.scope is not MetricScope.BROKER or not matters or around.brokers_heard >= live:
        return []
    return [f"only {around.brokers_heard} of {live} live brokers answered, and each counts what it leads"]


def _too_many_brokers(around: Circumstances, *, matters: bool) -> list[str]:
    live = _live(around)
    if not matters or around.brokers_heard <= live:
        return []
    return [
        f"{around.brokers_heard} brokers answered where {live} are live: a fenced one may still count what it led, or"
        " one is read in two ways"
    ]


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


# What of all that was read and counted somebody should be woken for: what ``--check`` fails on.


def alerts(
    figures: Sequence[MetricFigure], asked: Sequence[AskedEndpoint], computed: Computed | None
) -> tuple[MetricAlert, ...]:
    """The alerts, the worst first. A counter that is not 0 is none by itself: what rose lately is."""
    by_key = {one.metric: one for one in figures}
    return (
        *_silence(computed),
        *_partitions(by_key, computed),
        *_controllers(by_key),
        *_counters(by_key),
        *_disks(by_key),
        *_differences(figures),
        *_blind(asked),
    )


def _most(figure: MetricFigure) -> int:
    """The higher of what is read and what is counted: neither is to hide the other."""
    return max(int(figure.value or 0), figure.computed or 0)


def _silence(computed: Computed | None) -> Iterator[MetricAlert]:
    """Brokers that hear no controller tell what they knew last: that all looks well then says nothing."""
    if computed is not None and computed.silence is not None:
        live = computed.taken_at_ms is None
        until = ". Kafka elects no leader, or a controller does that they do not reach" if live else ""
        text = f"{computed.silence}: kelr's figures are what brokers knew last{until}"
        yield MetricAlert("controller-silent", text)


def _partitions(by_key: Mapping[str, MetricFigure], computed: Computed | None) -> Iterator[MetricAlert]:
    leaderless = _most(by_key["offline_partitions"])
    if leaderless:
        yield MetricAlert(
            "leaderless", f"{plural(leaderless, 'partition')} {agree(leaderless, 'has', 'have')} no leader"
        )
    if computed is not None and computed.dead_leader:
        text = f"the recorded leader of {plural(computed.dead_leader, 'partition')} is not live"
        yield MetricAlert("leader-not-live", text)
    waiting = _most(by_key["manual_election_required"])
    if waiting:
        text = f"{plural(waiting, 'partition')} {agree(waiting, 'gets', 'get')} no leader until an operator elects one"
        yield MetricAlert("operator-needed", text)
    under = max(_most(by_key["global_under_min_isr"]), _most(by_key["under_min_isr"]))
    under = max(under, _most(by_key["partitions_under_min_isr"]))
    if under:
        yield MetricAlert("under-min-isr", f"{plural(under, 'partition')} {agree(under, 'is', 'are')} under min ISR")


def _controllers(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    active = by_key["active_controllers"].value
    if active is not None and active != 1:
        yield MetricAlert("active-controllers", f"{active:g} controllers say that they are active, where 1 has to")
    errors = by_key["metadata_errors"].value
    if errors:
        yield MetricAlert("metadata-errors", f"a controller could not apply metadata: {errors:g} since it started")


def _counters(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    figure = by_key["unclean_elections"]
    rate = by_key["unclean_elections_rate"].value
    if figure.increase:
        yield MetricAlert("unclean-elections", f"{figure.increase:g} unclean elections in the last minutes")
    elif figure.increase is None and rate is not None and rate >= 0.001:
        yield MetricAlert("unclean-elections", f"unclean elections lately: {rate:.3g} a second over a minute")


def _disks(by_key: Mapping[str, MetricFigure]) -> Iterator[MetricAlert]:
    failed = by_key["offline_log_dirs"].value
    if failed:
        yield MetricAlert("failed-log-directories", f"failed log directories: {failed:g}")


def _differences(figures: Sequence[MetricFigure]) -> Iterator[MetricAlert]:
    for one in figures:
        if one.comparison is Comparison.DIFFERENT:
            text = f"{one.title}: Kafka says {one.value:g}, kelr counts {one.computed}, and nothing explains it"
            yield MetricAlert("different", text)


def _blind(asked: Sequence[AskedEndpoint]) -> Iterator[MetricAlert]:
    silent = sum(not one.heard for one in asked)
    if silent:
        yield MetricAlert("endpoint-down", f"{silent} of {plural(len(asked), 'endpoint')} gave no answer")
