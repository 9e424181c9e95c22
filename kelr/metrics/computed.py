"""What kelr itself counts on a cluster or a snapshot, by the definitions of Kafka's metrics.

Sources of the definitions: ControllerMetricsChanges and ControllerMetadataMetricsPublisher (a partition has a leader if
the controller has one on record for it, live or not), Partition.scala (isUnderMinIsr, isAtMinIsr and isUnderReplicated
hold only at the leader), KIP-966 "Metrics".
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kelr.controller import (
    Circumstances,
    Standing,
    choose_rules,
    electable_replicas,
    electable_replicas_count,
    recovery_of,
)
from kelr.errors import AuthenticationError, ConnectError, KelrError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.model import WORST_FIRST, BrokerStatus, Cluster, Selection, Situation, TopicError
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
    "under_min_isr": _led_and(lambda row: row.under_min_isr),
    "partitions_under_min_isr": _led_and(lambda row: row.under_min_isr),
    "global_under_min_isr": lambda row, _: row.under_min_isr,
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
    electable: int = 0
    """Members of ISR and ELR of all partitions whose ELR is known."""
    dead_leader: int = 0
    under_min_isr_without_leader: int = 0
    yes: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    situations: Counter[Situation] = field(default_factory=Counter)
    awaited: Counter[int] = field(default_factory=Counter)
    errors: list[TopicError] = field(default_factory=list)
    _waiting: Counter[Kind[Described]] = field(default_factory=Counter)

    def add(self, page: SurveyPage) -> Collection[Kind[Described]]:
        """Count the partitions of a page; the kinds of rows that it has, where its rows have kinds."""
        self.errors.extend(page.topic_errors)
        if not isinstance(page.partitions, Rows):
            for row in page.partitions:
                self._count(row, 1)
            return ()
        kinds: Counter[Kind[Described]] = Counter()
        page.partitions.count_into(kinds)
        self._waiting.update(kinds)
        if len(self._waiting) > _MOST_WAITING:
            self.settle()
        return kinds

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
        self.under_min_isr_without_leader += count * (not led and row.under_min_isr is True)
        for broker in row.awaited:
            self.awaited[broker] += count
        self.electable += count * electable_replicas_count(row.state)
        self.unknown["electable_replicas"] += count * (
            row.state.elr is None and self.cluster.features.elr_enabled is not False
        )
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
    if not count.unknown.pop("electable_replicas", 0):
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


# Looks at a cluster again and again, cheaply: partitions that are alike are judged once, and only those in trouble are
# named.


IN_TROUBLE = tuple(situation for situation in WORST_FIRST if situation is not Situation.HEALTHY)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look saw."""

    cluster: Cluster
    rules: str
    partitions: int
    leaderless: int
    """Without a leader, or with one on record that is not live."""
    situations: Mapping[Situation, int]
    brokers: Mapping[BrokerStatus, int]
    awaited: Mapping[int, int]
    """By broker: partitions without leader of which its return would elect one."""
    under_min_isr: int
    needs_operator: int
    in_recovery: int | None
    """Under KIP-966's unclean recovery; None where the cluster has no recovery manager."""
    electable: int
    """Members of ISR and ELR of all partitions whose ELR is known."""
    recoveries_finished: int | None
    """Unclean recoveries that have ended, as the controller counts them; None where no endpoint tells."""
    unknown: Mapping[str, int]
    """By figure: partitions of which nobody can tell whether they belong to it."""
    topics: tuple[tuple[str, Situation, int], ...]
    """Topics with partitions in trouble, the worst first, as many as are wanted at most."""
    topics_left_out: int
    listed: tuple[tuple[str, int, Situation], ...]
    """Partitions in trouble, the worst first, as many as are wanted at most."""
    listed_left_out: int
    topic_errors: int
    controller_silence: str | None
    """Why no controller answered: all the rest is then what brokers knew last. None: one did, or nobody knows."""


_UNKNOWN = {
    "electable_replicas": "electable_replicas",
    "unclean_recovery": "unclean_recoveries",
    "global_under_min_isr": "global_under_min_isr",
    "manual_leader_election_required": "manual_election_required",
}
"""The exporter's names of figures whose unknown partitions it serves, and the figures."""


@dataclass
class _Named:
    """The names of topics and partitions in trouble."""

    most: int
    topics: Counter[tuple[str, Situation]] = field(default_factory=Counter)
    listed: dict[Situation, list[tuple[str, int]]] = field(default_factory=dict)

    def add(self, page: SurveyPage, kinds: Collection[Kind[Described]]) -> None:
        rows = page.partitions
        if not isinstance(rows, Rows):
            for row in rows:
                self._name(row.state.topic, row.state.partition, row.situation)
            return
        trouble = {kind for kind in kinds if kind.example.situation is not Situation.HEALTHY}
        for run in rows.runs if trouble else ():
            for number, kind in zip(run.numbers, run.kinds, strict=True):
                if kind in trouble:
                    self._name(run.topic, number, kind.example.situation)

    def _name(self, topic: str, partition: int, situation: Situation) -> None:
        """Keep a partition's name, while there is room for more of its kind."""
        if situation is Situation.HEALTHY:
            return
        self.topics[topic, situation] += 1
        kept = self.listed.setdefault(situation, [])
        if len(kept) < self.most:
            kept.append((topic, partition))


def look(source: Source, *, most: int, recoveries_finished: Callable[[], int | None] = lambda: None) -> Seen:
    """Read every partition, once.

    Args:
        most: how many topics, and how many partitions, are named at most.
        recoveries_finished: asks the controllers' endpoints.

    Raises:
        KelrError: the cluster cannot be reached.
    """
    count, named = Count(source.cluster()), _Named(most)
    for page in survey(source, Selection(), shows_configs=False, as_told=True):
        named.add(page, count.add(page))
    count.settle()
    cluster, rules = count.cluster, choose_rules(count.cluster.features).rules
    rank = {situation: place for place, situation in enumerate(WORST_FIRST)}
    topics = sorted(named.topics.items(), key=lambda one: (rank[one[0][1]], -one[1], one[0][0]))
    listed = [(*at, situation) for situation in WORST_FIRST for at in named.listed.get(situation, ())]
    return Seen(
        cluster=cluster,
        rules=rules.name,
        partitions=count.partitions,
        leaderless=count.yes["offline_partitions"] + count.dead_leader,
        situations={one: count.situations[one] for one in (Situation.HEALTHY, *IN_TROUBLE)},
        brokers=Counter(broker.status for broker in cluster.brokers),
        awaited=dict(count.awaited),
        under_min_isr=count.yes["global_under_min_isr"],
        needs_operator=count.yes["manual_election_required"],
        in_recovery=count.yes["unclean_recoveries"] if rules.recovers else None,
        electable=count.electable,
        recoveries_finished=recoveries_finished(),
        unknown={name: count.unknown[key] for name, key in _UNKNOWN.items() if count.partitions},
        topics=tuple((topic, situation, number) for (topic, situation), number in topics[:most]),
        topics_left_out=max(0, len(topics) - most),
        listed=tuple(listed[:most]),
        listed_left_out=sum(named.topics.values()) - min(len(listed), most),
        topic_errors=len(count.errors),
        controller_silence=silence_of(source),
    )


@dataclass(frozen=True, slots=True)
class Board:
    """All that a scrape needs; replaced as a whole by each look, and never changed."""

    interval_s: float
    looks: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    up: bool = False
    """Whether the newest look saw the cluster."""
    seen: Seen | None = None
    """What the newest look that succeeded saw."""
    seen_at_s: float | None = None
    """When that began, in seconds since 1970 UTC."""
    seen_at: float | None = None
    """The same on the clock that never jumps."""
    took_s: float | None = None


ERROR_KINDS = ("connect", "authentication", "authorization", "unsupported", "refused", "other", "defect")


def kind_of(error: Exception) -> str:
    """The label of an error: `ERROR_KINDS`."""
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (AuthenticationError, "authentication"),
        (ConnectError, "connect"),
        (NotAuthorizedError, "authorization"),
        (UnsupportedError, "unsupported"),
        (RefusedError, "refused"),
        (KelrError, "other"),
    )
    return next((kind for cls, kind in kinds if isinstance(error, cls)), "defect")


Opened = Callable[[], AbstractContextManager[Source]]
"""Opens the source; called again after each look that failed."""


class Watcher:
    """Looks at the cluster in a thread of its own; `board` is what it knows."""

    def __init__(
        self,
        opened: Opened,
        *,
        interval_s: float,
        most: int,
        recoveries_finished: Callable[[], int | None] = lambda: None,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.board = Board(interval_s, errors=dict.fromkeys(ERROR_KINDS, 0))
        self._opened = opened
        self._most = most
        self._recoveries_finished = recoveries_finished
        self._told = told
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kelr-watcher", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, *, patience_s: float = 1.0) -> None:
        """Look no more; a look under way has so long to end, and is left to itself then."""
        self._stop.set()
        self._thread.join(patience_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._opened() as source:
                    for _ in self._beats():
                        source.forget()
                        self._look(source)
            except Exception as error:  # whatever it is, the next look may do better, and the counter tells
                self._failed(error)
                self._stop.wait(self.board.interval_s)

    def _beats(self) -> Iterator[None]:
        """One for each look, at equal distances from the beginning of one to that of the next."""
        while not self._stop.is_set():
            began = time.monotonic()
            yield
            self._stop.wait(max(0.0, began + self.board.interval_s - time.monotonic()))

    def _look(self, source: Source) -> None:
        at_s, began = time.time(), time.monotonic()
        seen = look(source, most=self._most, recoveries_finished=self._recoveries_finished)
        now = self.board
        if not now.up and now.looks:
            self._told("the cluster is seen again")
        self._tell_silence(now.seen, seen)
        took_s = time.monotonic() - began
        self.board = Board(now.interval_s, now.looks + 1, now.errors, True, seen, at_s, began, took_s)

    def _tell_silence(self, before: Seen | None, seen: Seen) -> None:
        """Say once that no controller answers, and once that one does again."""
        was, why = None if before is None else before.controller_silence, seen.controller_silence
        if why is not None and was is None:
            self._told(f"no controller answers ({why}): what is served is what brokers knew last")
        elif why is None and was is not None:
            self._told("a controller answers again")

    def _failed(self, error: Exception) -> None:
        now = self.board
        kind = kind_of(error)
        if now.up or not now.looks:
            self._told(f"the cluster is not seen: {error if isinstance(error, KelrError) else type(error).__name__}")
        errors = {**now.errors, kind: now.errors.get(kind, 0) + 1}
        self.board = Board(
            now.interval_s, now.looks + 1, errors, False, now.seen, now.seen_at_s, now.seen_at, now.took_s
        )
