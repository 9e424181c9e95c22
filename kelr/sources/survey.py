"""Reading many partitions page by page with their configs and situations: what `describe` and scripts loop over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from kelr.engine import effective_min_isr, situation_of
from kelr.model import Cluster, PartitionState, Selection, Situation, TopicConfig, TopicError, TopicPartition
from kelr.model.described import Described
from kelr.sources.base import Page, Source

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

    @property
    def any_set(self) -> bool:
        """Whether something is looked for; leaving out internal topics looks for nothing."""
        return any(getattr(self, field.name) for field in fields(self) if field.name != "exclude_internal")

    def keeps(self, described: Described, cluster: Cluster) -> bool | None:
        """Whether the partition is one of those looked for; None where what is not known would decide."""
        verdicts = [verdict(described, cluster, self) for name, verdict in _VERDICTS.items() if getattr(self, name)]
        if False in verdicts:
            return False
        return None if None in verdicts else True


@dataclass(frozen=True, slots=True)
class SurveyPage:
    """The partitions of one page that the filters keep."""

    partitions: tuple[Described, ...]
    topic_errors: tuple[TopicError, ...] = ()
    read: int = 0
    """How many partitions the page held before the filters."""
    undecided: int = 0
    """How many of them no filter could judge, because ELR or min ISR is not known."""
    cut_at: TopicPartition | None = None
    """Set on the last page where `limit` ended the reading: the first partition that was not looked at."""


def survey(
    source: Source,
    selection: Selection,
    *,
    filters: Filters | None = None,
    page_size: int | None = None,
    start: TopicPartition | None = None,
    limit: int | None = None,
) -> Iterator[SurveyPage]:
    """Describe the selected partitions in address order, one page in memory at a time.

    Args:
        start: the first address to look at (inclusive).
        limit: how many partitions to keep at most.

    Raises:
        ConnectError, AuthenticationError: the cluster went away for good.
    """
    wanted = filters or Filters()
    cluster = source.cluster()
    configs: Mapping[str, TopicConfig] = {}
    first_replicas: dict[str, int] = {}
    left = limit
    for page in source.pages(selection, page_size=page_size, start=start):
        topics = dict.fromkeys(partition.topic for partition in page.partitions)
        configs = _configs_of(source, topics, configs)
        first_replicas = {**{t: n for t, n in first_replicas.items() if t in topics}, **page.first_partition_replicas}
        described = [_describe(partition, cluster, configs, first_replicas) for partition in page.partitions]
        result = _filtered(page, described, wanted, cluster, left)
        yield result
        if result.cut_at is not None:
            return
        left = None if left is None else left - len(result.partitions)


def _configs_of(
    source: Source, topics: Mapping[str, None], known: Mapping[str, TopicConfig]
) -> Mapping[str, TopicConfig]:
    """The configs of a page's topics; a topic that the page before ended with is not asked again."""
    asked = [topic for topic in topics if topic not in known]
    fresh = source.topic_configs(asked) if asked else {}
    return {topic: fresh[topic] if topic in fresh else known.get(topic, TopicConfig()) for topic in topics}


def _describe(
    state: PartitionState, cluster: Cluster, configs: Mapping[str, TopicConfig], first_replicas: Mapping[str, int]
) -> Described:
    config = configs[state.topic]
    # Where partition 0 was not read (a cursor in the middle of the topic), its replica count is taken to be this one's.
    min_isr = effective_min_isr(config.min_insync_replicas, first_replicas.get(state.topic, len(state.replicas)))
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
    return SurveyPage(tuple(kept), page.topic_errors, len(described), undecided, page.next_cursor if at_limit else None)


def _leaderless(described: Described, cluster: Cluster, _: Filters) -> bool | None:
    leader = described.state.leader
    return leader is None or leader not in cluster.live


def _under_min_isr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.min_isr is None else len(described.state.isr) < described.min_isr


def _at_min_isr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.min_isr is None else len(described.state.isr) == described.min_isr


def _under_replicated(described: Described, _: Cluster, __: Filters) -> bool | None:
    state = described.state
    return len(state.isr) < len(set(state.replicas) - set(state.adding or ()))


def _has_elr(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.state.elr is None else bool(described.state.elr)


def _has_last_known(described: Described, _: Cluster, __: Filters) -> bool | None:
    return None if described.state.last_known_elr is None else bool(described.state.last_known_elr)


def _offline(described: Described, cluster: Cluster, _: Filters) -> bool | None:
    state = described.state
    return bool(state.offline_replicas) or not cluster.live.issuperset(state.replicas)


def _situation(described: Described, _: Cluster, filters: Filters) -> bool | None:
    return described.situation in filters.situations


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
}
