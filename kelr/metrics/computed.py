"""What kelr itself counts on a cluster or a snapshot, by the definitions of Kafka's metrics.

Sources of the definitions: ControllerMetricsChanges and ControllerMetadataMetricsPublisher (a partition has a leader if
the controller has one on record for it, live or not), Partition.scala (isUnderMinIsr, isAtMinIsr and isUnderReplicated
hold only at the leader), KIP-966 "Metrics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kelr.controller import (
    Circumstances,
    Standing,
    choose_rules,
    electable_replicas,
    electable_replicas_count,
    recovery_of,
)
from kelr.model import BrokerStatus, Cluster, Selection, Situation, TopicError
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows
from kelr.sources.base import Source, silence_of
from kelr.sources.survey import SurveyPage, survey

_MOST_WAITING = 16_384


@dataclass(frozen=True, slots=True)
class Computed:
    """kelr's figures by metric (`catalog.METRICS`), and what else explains a difference."""

    figures: Mapping[str, int | None]
    """One that is missing cannot be computed; None in place of a 0 that nobody can vouch for: no partition was shown,
    or some could not be described."""
    unknown: Mapping[str, int]
    """By metric: partitions of which nobody can tell whether they belong to it."""
    cluster: Cluster
    partitions: int
    situations: Mapping[Situation, int]
    dead_leader: int
    """Partitions whose recorded leader is not live."""
    under_min_isr_without_leader: int
    """Under min ISR, and in no broker's count, since nobody leads them."""
    errors: tuple[TopicError, ...] = ()
    taken_at_ms: int | None = None
    """When a saved source was read; None for one that was read just now."""
    source: str = "live"
    controller_silence: str | None = None
    """Why no controller answered: all the rest is then what brokers knew last. None: one did, or nobody knows."""

    @property
    def silence(self) -> str | None:
        """The same in words; None where nothing says so."""
        if self.controller_silence is None:
            return None
        if self.taken_at_ms is not None:
            return f"no controller answered ({self.controller_silence}) when this was taken"
        return f"no controller answers ({self.controller_silence})"


_Test = Callable[[Described, Cluster], bool | None]


def _no_leader(row: Described, _: Cluster) -> bool | None:
    return row.state.leader is None


def _led(row: Described, cluster: Cluster) -> bool | None:
    return row.state.leader is not None and row.state.leader in cluster.live


def under_min_isr(row: Described) -> bool | None:
    """Whether fewer are in sync than the effective min ISR, with or without a leader."""
    return None if row.enough is None else len(row.state.isr) < row.enough


def recovery_standing(row: Described, cluster: Cluster) -> Standing | None:
    """Where the partition's unclean recovery stands, no log being known; None where the cluster has no recovery
    manager, or ELR or the topic's strategy is not known."""
    rules = choose_rules(cluster.features).rules
    state, strategy = row.state, row.config.recovery_strategy
    unclean = row.config.unclean_leader_election_of_the_controller
    if not rules.recovers or state.elr is None or state.last_known_elr is None:
        return None
    if rules.strategy_by_topic and strategy is None and unclean is None:
        return None
    rules = rules.of_topic(unclean, strategy)
    around = Circumstances(electable_replicas(state, cluster), row.min_isr or 1, rules)
    return recovery_of(state, around, {}).standing


def in_recovery(row: Described, cluster: Cluster) -> bool | None:
    """KIP-966's unclean_recovery_partitions_count: also while members of LastKnownELR are waited for."""
    if row.state.leader is not None or not choose_rules(cluster.features).rules.recovers:
        return False
    standing = recovery_standing(row, cluster)
    return None if standing is None else standing.under_recovery


def needs_operator(row: Described, cluster: Cluster) -> bool | None:
    """Whether nobody's return makes Kafka elect a leader by itself (KIP-966: strategy none, ISR and ELR empty).

    On Kafka 4.x the last known leader is elected when it returns, and unclean.leader.election.enable elects anybody.
    """
    state = row.state
    if state.leader is None and (standing := recovery_standing(row, cluster)) is not None:
        return standing is Standing.WAITS_FOR_OPERATOR
    if state.leader is not None or state.isr:
        return False
    if state.elr is None and cluster.features.elr_enabled is not False:
        return None
    if state.elr and set(state.elr) & set(state.replicas):
        return False
    if state.last_known_elr is None and cluster.features.elr_enabled is not False:
        return None
    known = [one for one in state.last_known_elr or () if one >= 0]
    if not state.elr and len(known) == 1 and cluster.features.elr_enabled is not False:
        return False
    unclean = row.config.unclean_leader_election_of_the_controller
    return None if unclean is None else not unclean


def _led_and(test: Callable[[Described], bool | None]) -> _Test:
    return lambda row, cluster: test(row) if _led(row, cluster) else False


def _at_min_isr(row: Described) -> bool | None:
    return None if row.min_isr is None else len(row.state.isr) == row.min_isr


def _under_replicated(row: Described) -> bool | None:
    return len(row.state.isr) < len(set(row.state.replicas) - set(row.state.adding or ()))


def _not_by_preferred(row: Described, _: Cluster) -> bool | None:
    return bool(row.state.replicas) and row.state.leader != row.state.replicas[0]


_TESTS: Mapping[str, _Test] = {
    "offline_partitions": _no_leader,
    "leaders": _led,
    "under_min_isr": _led_and(under_min_isr),
    "partitions_under_min_isr": _led_and(under_min_isr),
    "global_under_min_isr": lambda row, _: under_min_isr(row),
    "manual_election_required": needs_operator,
    "unclean_recoveries": in_recovery,
    "at_min_isr": _led_and(_at_min_isr),
    "under_replicated": _led_and(_under_replicated),
    "preferred_imbalance": _not_by_preferred,
}


@dataclass
class Count:
    """Counts partitions; those that are alike are judged once."""

    cluster: Cluster
    partitions: int = 0
    electable: int | None = 0
    dead_leader: int = 0
    under_min_isr_without_leader: int = 0
    yes: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    situations: Counter[Situation] = field(default_factory=Counter)
    errors: list[TopicError] = field(default_factory=list)
    _waiting: Counter[Kind[Described]] = field(default_factory=Counter)

    def add(self, page: SurveyPage) -> None:
        """Count the partitions of a page."""
        self.errors.extend(page.topic_errors)
        if not isinstance(page.partitions, Rows):
            for row in page.partitions:
                self._count(row, 1)
            return
        page.partitions.count_into(self._waiting)
        if len(self._waiting) > _MOST_WAITING:
            self.settle()

    def settle(self) -> None:
        """Count what waits to be counted."""
        for kind, count in self._waiting.items():
            self._count(kind.example, count)
        self._waiting.clear()

    def _count(self, row: Described, count: int) -> None:
        self.partitions += count
        self.situations[row.situation] += count
        led = _led(row, self.cluster)
        self.dead_leader += count * (row.state.leader is not None and not led)
        self.under_min_isr_without_leader += count * (not led and under_min_isr(row) is True)
        if row.state.elr is None and self.cluster.features.elr_enabled is not False:
            self.electable = None
        elif self.electable is not None:
            self.electable += count * electable_replicas_count(row.state)
        for key, test in _TESTS.items():
            verdict = test(row, self.cluster)
            self.yes[key] += count * (verdict is True)
            self.unknown[key] += count * (verdict is None)


def compute(source: Source) -> Computed:
    """Count every partition of the source.

    Raises:
        KelrError: the cluster cannot be reached.
    """
    cluster = source.cluster()
    count = Count(cluster)
    for page in survey(source, Selection(), shows_configs=True, as_told=True):
        count.add(page)
    count.settle()
    whole = bool(count.partitions) and not count.errors
    counted = {key: count.yes[key] for key in _TESTS} | {"partitions": count.partitions}
    figures: dict[str, int | None] = {key: found if found or whole else None for key, found in counted.items()}
    figures |= _brokers(cluster)
    if not choose_rules(cluster.features).rules.recovers:
        del figures["unclean_recoveries"]  # there is no manager whose gauge it could be
    if count.electable is not None:
        figures["electable_replicas"] = count.electable if whole else None
    return Computed(
        figures=figures,
        unknown={key: found for key, found in count.unknown.items() if found},
        cluster=cluster,
        partitions=count.partitions,
        situations=dict(count.situations),
        dead_leader=count.dead_leader,
        under_min_isr_without_leader=count.under_min_isr_without_leader,
        errors=tuple(count.errors),
        taken_at_ms=source.taken_at_ms,
        source=source.name,
        controller_silence=silence_of(source),
    )


def _brokers(cluster: Cluster) -> dict[str, int]:
    by_status = Counter(broker.status for broker in cluster.brokers)
    figures = {"active_brokers": by_status[BrokerStatus.LIVE]}
    if cluster.lists_fenced_brokers:
        figures["fenced_brokers"] = by_status[BrokerStatus.FENCED]
    return figures
