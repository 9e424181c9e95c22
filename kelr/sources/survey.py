"""Reading many partitions page by page with their configs and situations: what `describe` and scripts loop over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import Any

from kelr.errors import KelrError
from kelr.model import (
    Cluster,
    PartitionState,
    Selection,
    Situation,
    TopicConfig,
    TopicError,
    TopicPartition,
    leader_min_isr,
)
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows, Run, described_rows, states, topics_of
from kelr.sources.base import LeavesOut, Page, Source
from kelr.sources.unwanted import Look, Unwanted

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
"""Kafka's own topics (Topic.java)."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which partitions to keep. All conditions that are set have to hold; of several values of one, any."""

    leaderless: bool = False
    """No leader, or one whose broker is not live (kafka-topics.sh --unavailable-partitions)."""
    under_min_isr: bool = False
    at_min_isr: bool = False
    under_replicated: bool = False
    """Fewer in sync than replicas, those that a reassignment is still adding left out."""
    has_elr: bool = False
    has_last_known: bool = False
    offline: bool = False
    """A replica is on a broker that is not live, or in a log directory that failed."""
    situations: frozenset[Situation] = frozenset()
    brokers: frozenset[int] = frozenset()
    racks: frozenset[str] = frozenset()
    exclude_internal: bool = False
    unsettled: bool = False
    """Not healthy, or under-replicated: what is watched."""

    @property
    def any_set(self) -> bool:
        """Whether something is looked for; leaving out internal topics looks for nothing."""
        return any(getattr(self, field.name) for field in fields(self) if field.name != "exclude_internal")

    @property
    def needs_configs(self) -> bool:
        """Whether a topic's configs have a say in what is kept."""
        return self.under_min_isr or self.at_min_isr or self.unsettled or bool(self.situations)

    def unwanted(self, cluster: Cluster) -> Unwanted | None:
        """What partitions look like that certainly do not pass; None where nothing is certain beforehand."""
        looks = [look(cluster, self) for name, look in _LOOKS.items() if getattr(self, name)]
        certain = tuple(dict.fromkeys(look for look in looks if look is not None))
        return Unwanted(certain) if certain else None

    def keeps(self, described: Described, cluster: Cluster) -> bool | None:
        """Whether the partition is one of those looked for; None where what is not known would decide."""
        verdicts = [verdict(described, cluster, self) for name, verdict in _VERDICTS.items() if getattr(self, name)]
        if False in verdicts:
            return False
        return None if None in verdicts else True


@dataclass(frozen=True, slots=True)
class SurveyPage:
    """The partitions of one page that the filters keep."""

    partitions: Sequence[Described]
    topic_errors: tuple[TopicError, ...] = ()
    read: int = 0
    """How many partitions the page held before the filters."""
    undecided: int = 0
    """How many of them no filter could judge, because ELR or min ISR is not known."""
    cut_at: TopicPartition | None = None
    """Set on the last page where `limit` ended the reading: the first partition that was not looked at."""
    topics: Set[str] = frozenset()
    """The topics that it held or began, before the filters: those of all pages are the topics that could be read."""


def survey(
    source: Source,
    selection: Selection,
    *,
    filters: Filters | None = None,
    page_size: int | None = None,
    start: TopicPartition | None = None,
    limit: int | None = None,
    shows_configs: bool = True,
    as_told: bool = False,
) -> Iterator[SurveyPage]:
    """Describe the selected partitions in address order, one page in memory at a time.

    Args:
        shows_configs: whether configs are wanted of all that is kept; else they are read where they decide, and may be
            unknown elsewhere.
        start: the first address to look at (inclusive).
        limit: how many partitions to keep at most.
        as_told: take brokers' word for the present state also where no controller answers (`Cluster.as_told`); for
            those who tell of its silence themselves.

    Raises:
        ConnectError, AuthenticationError: the cluster went away for good.
    """
    wanted = filters or Filters()
    cluster = source.cluster().as_told if as_told else source.cluster()
    configs: Mapping[str, TopicConfig] = {}
    judges = _Judges(cluster, wanted)
    left = limit
    # A limit ends the reading at a certain partition, and says how many were read before it.
    unwanted = wanted.unwanted(cluster) if limit is None else None
    pages = _pages(source, unwanted, selection, page_size, start)
    prepared = _prepared(pages, judges, limited=limit is not None, shows_configs=shows_configs)
    for batch in _batches(prepared, most=1 if limit is not None else _MOST_PAGES):
        topics = {topic: None for one in batch for topic in one.topics}
        configs = _configs_of(source, topics, {topic: None for one in batch for topic in one.asked}, configs)
        for one in batch:
            page = one.page
            if isinstance(page.partitions, Rows) and limit is None:
                result = _filtered_rows(one, page.partitions, judges, configs)
            else:
                described = [_judged(state, cluster, configs[state.topic]) for state in page.partitions]
                result = _filtered(page, described, wanted, cluster, left)
            yield replace(result, topics=one.topics.keys() | page.first_partition_replicas.keys())
            if result.cut_at is not None:
                return
            left = None if left is None else left - len(result.partitions)


_MOST_PAGES = 16
"""Pages whose configs are asked for at once: a megabyte or two."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A page without what the filters drop before they know configs."""

    page: Page
    undecided: int
    topics: Mapping[str, None]
    asked: Mapping[str, None]
    """The topics whose configs are wanted."""


def _prepared(pages: Iterable[Page], judges: _Judges, *, limited: bool, shows_configs: bool) -> Iterator[_Prepared]:
    for whole in pages:
        page, undecided = whole, 0
        if not limited and not judges.filters.needs_configs:
            page, undecided = _before_configs(whole, judges)
        topics = topics_of(page.partitions)
        wants_all = shows_configs or judges.filters.at_min_isr  # at min ISR are those with a full ISR, too
        asked = topics if wants_all else _where_configs_decide(page.partitions)
        yield _Prepared(page, undecided, topics, asked)


def _batches(prepared: Iterable[_Prepared], *, most: int) -> Iterator[list[_Prepared]]:
    """Pages, first one and then more at a time, so that the configs of many topics come in one answer.

    What was read before the reading broke off comes all the same.
    """
    room, waiting = 1, list[_Prepared]()
    try:
        for one in prepared:
            waiting.append(one)
            if len(waiting) >= room or not isinstance(one.page.partitions, Rows):
                yield waiting
                room, waiting = min(2 * room, most), []
    except KelrError:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def _pages(
    source: Source, unwanted: Unwanted | None, selection: Selection, page_size: int | None, start: TopicPartition | None
) -> Iterator[Page]:
    if unwanted is not None and isinstance(source, LeavesOut):
        return source.pages_without(unwanted, selection, page_size=page_size, start=start)
    return source.pages(selection, page_size=page_size, start=start)


class _Judge(dict[Kind[PartitionState], tuple[Kind[Described], bool | None]]):
    """What is said of each kind of partition of topics that have the same configs, and whether the filters keep it.

    Nothing that is said depends on a partition's number or epoch, and of its topic's name only whether it is internal.
    """

    def __init__(self, judges: _Judges, config: TopicConfig, name: str) -> None:
        self._judges = judges
        self._config = config
        self._name = name
        self.told = _Told(self)

    def __missing__(self, kind: Kind[PartitionState]) -> tuple[Kind[Described], bool | None]:
        state = replace(kind.example, topic=self._name) if self._name else kind.example
        described = _judged(state, self._judges.cluster, self._config)
        self._judges.remember()
        judged = self[kind] = Kind(described), self._judges.filters.keeps(described, self._judges.cluster)
        return judged


class _Told(dict[Kind[PartitionState], Kind[Described]]):
    """What is said of each kind, where all are kept."""

    def __init__(self, judge: _Judge) -> None:
        self._judge = judge

    def __missing__(self, kind: Kind[PartitionState]) -> Kind[Described]:
        told = self[kind] = self._judge[kind][0]
        return told


class _Judges(dict[tuple[TopicConfig, str], _Judge]):
    """All judges of a survey: one for each set of configs."""

    def __init__(self, cluster: Cluster, filters: Filters) -> None:
        self.cluster = cluster
        self.filters = filters
        self._remembered = 0

    def __missing__(self, key: tuple[TopicConfig, str]) -> _Judge:
        judge = self[key] = _Judge(self, *key)
        return judge

    def remember(self) -> None:
        """One more is remembered; when there are too many, all are forgotten."""
        self._remembered += 1
        if self._remembered > _MOST_JUDGED:
            self._remembered = 0
            for judge in self.values():
                judge.clear()
                judge.told.clear()


def _before_configs(page: Page, judges: _Judges) -> tuple[Page, int]:
    """The page without the partitions that the filters do not keep, so that nobody asks for their topics' configs."""
    if not isinstance(page.partitions, Rows) or not judges.filters.any_set:
        return page, 0
    kept: list[Run[PartitionState]] = []
    undecided = 0
    for run in page.partitions.runs:
        judge = judges[TopicConfig(), _internal_name(run.topic)]
        verdicts = [judge[kind][1] for kind in run.kinds]
        undecided += verdicts.count(None)
        kept.append(_kept_of(run, run.kinds, verdicts))
    rows = states(kept)
    dropped = len(page.partitions) - len(rows)
    return replace(page, partitions=rows, left_out=page.left_out + dropped), undecided


def _where_configs_decide(partitions: Sequence[PartitionState]) -> dict[str, None]:
    """The topics that have a partition with fewer in sync than min ISR could ask for: than it has replicas."""
    if not isinstance(partitions, Rows):
        return topics_of(partitions)
    found: dict[str, None] = {}
    for run in partitions.runs:
        if any(len(state.isr) < len(state.replicas) for state in (kind.example for kind in set(run.kinds))):
            found[run.topic] = None
    return found


def _kept_of(run: Run[Any], kinds: Sequence[Kind[Any]], verdicts: Sequence[bool | None]) -> Run[Any]:
    """The run, its rows as these kinds, without those that are not kept."""
    if verdicts.count(True) == len(verdicts):
        return Run(run.topic, run.topic_id, run.numbers, run.leader_epochs, kinds)
    numbers, epochs = compress(run.numbers, verdicts), compress(run.leader_epochs, verdicts)
    return Run(run.topic, run.topic_id, tuple(numbers), tuple(epochs), tuple(compress(kinds, verdicts)))


def _internal_name(topic: str) -> str:
    return topic if topic in INTERNAL_TOPICS else ""


def _filtered_rows(
    prepared: _Prepared, rows: Rows[PartitionState], judges: _Judges, configs: Mapping[str, TopicConfig]
) -> SurveyPage:
    """As `_filtered`, each kind of partition judged once."""
    page, undecided = prepared.page, prepared.undecided
    keeps_all = judges.filters == Filters()
    kept: list[Run[Described]] = []
    for run in rows.runs:
        judge = judges[configs[run.topic], _internal_name(run.topic)]
        if keeps_all:
            told = list(map(judge.told.__getitem__, run.kinds))
            kept.append(Run(run.topic, run.topic_id, run.numbers, run.leader_epochs, told))
            continue
        kinds, verdicts = zip(*map(judge.__getitem__, run.kinds), strict=True)
        undecided += verdicts.count(None)
        kept.append(_kept_of(run, kinds, verdicts))
    return SurveyPage(described_rows(kept), page.topic_errors, len(rows) + page.left_out, undecided)


def _configs_of(
    source: Source, topics: Mapping[str, None], wanted: Mapping[str, None], known: Mapping[str, TopicConfig]
) -> Mapping[str, TopicConfig]:
    """The configs of a page's topics, unknown but for those wanted; a topic that the page before ended with is not
    asked again."""
    asked = [topic for topic in wanted if topic not in known or known[topic] == TopicConfig()]
    fresh = source.topic_configs(asked) if asked else {}
    return {topic: fresh[topic] if topic in fresh else known.get(topic, TopicConfig()) for topic in topics}


def _judged(state: PartitionState, cluster: Cluster, config: TopicConfig) -> Described:
    # The engine is as long in loading as all pages of ten thousand healthy partitions are in reading.
    from kelr.engine import situation_of  # noqa: PLC0415

    min_isr = leader_min_isr(config.min_insync_replicas, len(state.replicas))
    return Described(state, situation_of(state, cluster, min_isr), min_isr, config)


def _filtered(
    page: Page, described: list[Described], filters: Filters, cluster: Cluster, limit: int | None
) -> SurveyPage:
    kept: list[Described] = []
    undecided = 0
    for index, partition in enumerate(described):
        if limit is not None and len(kept) == limit:
            return SurveyPage(tuple(kept), page.topic_errors, index, undecided, partition.state.address)
        verdict = filters.keeps(partition, cluster)
        if verdict:
            kept.append(partition)
        undecided += verdict is None
    at_limit = limit is not None and len(kept) == limit
    read = len(described) + page.left_out
    return SurveyPage(tuple(kept), page.topic_errors, read, undecided, page.next_cursor if at_limit else None)


def _leaderless(described: Described, cluster: Cluster, _: Filters) -> bool | None:
    leader = described.state.leader
    return leader is None or leader not in cluster.live


def _under_min_isr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return described.under_min_isr


def _at_min_isr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.min_isr is None else len(described.state.isr) == described.min_isr


def _under_replicated(described: Described, _: Cluster, __: Filters) -> bool | None:
    return described.state.under_replicated


def _has_elr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.state.elr is None else bool(described.state.elr)


def _has_last_known(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.state.last_known_elr is None else bool(described.state.last_known_elr)


def _offline(described: Described, cluster: Cluster, _: Filters) -> bool | None:
    state = described.state
    return bool(state.offline_replicas) or not cluster.live.issuperset(state.replicas)


def _situation(described: Described, _: Cluster, filters: Filters) -> bool | None:
    return described.situation in filters.situations


def _unsettled(described: Described, cluster: Cluster, filters: Filters) -> bool | None:
    return described.situation is not Situation.HEALTHY or _under_replicated(described, cluster, filters)


def _on_broker(described: Described, _: Cluster, filters: Filters) -> bool | None:
    return not filters.brokers.isdisjoint(described.state.replicas)


def _in_rack(described: Described, cluster: Cluster, filters: Filters) -> bool | None:
    brokers = [cluster.broker(replica) for replica in described.state.replicas]
    if any(broker is not None and broker.rack in filters.racks for broker in brokers):
        return True
    # A broker that is down may not be listed, and then nobody knows its rack.
    return None if any(broker is None for broker in brokers) else False


def _not_internal(described: Described, _: Cluster, __: Filters) -> bool | None:
    return described.state.topic not in INTERNAL_TOPICS


_LookOf = Callable[[Cluster, Filters], Look | None]


def _any_look(_: Cluster, __: Filters) -> Look:
    return Look()


def _live_leader(cluster: Cluster, _: Filters) -> Look:
    return Look(leader_in=cluster.live, well=False)


def _without_elr(cluster: Cluster, _: Filters) -> Look | None:
    return Look(well=False, no_elr=True) if cluster.features.elr_enabled is True else None


def _without_last_known(cluster: Cluster, _: Filters) -> Look | None:
    return Look(well=False, no_last_known=True) if cluster.features.elr_enabled is True else None


def _all_live(cluster: Cluster, _: Filters) -> Look:
    return Look(replicas_in=cluster.live, well=False, none_offline=True)


def _led_where_healthy_is_not_wanted(cluster: Cluster, filters: Filters) -> Look | None:
    if Situation.UNKNOWN in filters.situations and cluster.controller_silence is not None:
        return None  # whatever looks well is not known to be so
    return None if Situation.HEALTHY in filters.situations else Look(leader_in=cluster.live)


def _led(cluster: Cluster, _: Filters) -> Look:
    return Look(leader_in=cluster.live)


def _on_other_brokers(cluster: Cluster, filters: Filters) -> Look:
    return Look(replicas_in=frozenset(broker.id for broker in cluster.brokers) - filters.brokers, well=False)


def _in_other_racks(cluster: Cluster, filters: Filters) -> Look:
    others = frozenset(broker.id for broker in cluster.brokers if broker.rack not in filters.racks)
    return Look(replicas_in=others, well=False)


_LOOKS: Mapping[str, _LookOf] = {
    "leaderless": _live_leader,
    "under_min_isr": _any_look,
    "under_replicated": _any_look,
    "has_elr": _without_elr,
    "has_last_known": _without_last_known,
    "offline": _all_live,
    "situations": _led_where_healthy_is_not_wanted,
    "brokers": _on_other_brokers,
    "racks": _in_other_racks,
    "unsettled": _led,
}
"""How a partition certainly fails each filter."""

_MOST_JUDGED = 16_384

_VERDICTS = {
    "leaderless": _leaderless,
    "under_min_isr": _under_min_isr,
    "at_min_isr": _at_min_isr,
    "under_replicated": _under_replicated,
    "has_elr": _has_elr,
    "has_last_known": _has_last_known,
    "offline": _offline,
    "situations": _situation,
    "brokers": _on_broker,
    "racks": _in_rack,
    "exclude_internal": _not_internal,
    "unsettled": _unsettled,
}
