"""The checks that look at every partition: one topic at a time, each kind of partition judged once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup.topic_findings import About, TopicSeen, goes_by_default, low_default, told
from kelr.model import Cluster, Situation, TopicConfig
from kelr.model.checkup import Finding, NotChecked
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows

_MOST_KNOWN = 16_384
_LED = frozenset({Situation.HEALTHY, Situation.UNDER_MIN_ISR, Situation.UNKNOWN})
_MOVES = frozenset({of.RF_ONE, of.RF_TWO, of.ONE_RACK})
_Judged = tuple[tuple[of.Check, ...], tuple[of.Check, ...]]
"""The checks that a partition fails, and those that it cannot be judged by."""


class TopicChecks:
    """Takes partitions in address order, and gives what is found once a topic is over.

    Args:
        wanted: ids of the checks to make.
    """

    def __init__(self, cluster: Cluster, *, wanted: frozenset[str]) -> None:
        self.about = About(cluster)
        self._wanted = wanted
        self._racks = {broker.id: broker.rack for broker in cluster.brokers}
        self._several_racks = len({rack for rack in self._racks.values() if rack is not None}) > 1
        self._topic: TopicSeen | None = None
        self._known: dict[Kind[Described], _Judged] = {}
        self.partitions = 0
        self.topics = 0
        self.troubled = 0
        """Partitions that are not healthy, or of which that is not known."""
        self._by_default = 0
        """Topics whose min ISR is 1 because the cluster's is."""

    def add(self, rows: Sequence[Described]) -> Iterator[Finding | NotChecked]:
        """What is found of the topics that end within these partitions."""
        if isinstance(rows, Rows):
            for run in rows.runs:
                yield from self._begin(run.topic, run.kinds[0].example.config)
                for number, kind in zip(run.numbers, run.kinds, strict=True):
                    self._count(number, kind.example, self._known.get(kind) or self._remember(kind))
        else:
            for row in rows:
                yield from self._begin(row.state.topic, row.config)
                self._count(row.state.partition, row, self._judged(row))

    def finish(self) -> Iterator[Finding | NotChecked]:
        """What is found of the last topic."""
        topic, self._topic = self._topic, None
        if topic is None:
            return
        for check in of.CHECKS:
            numbers = topic.found.get(check)
            if numbers:
                yield told(self.about, check, topic, tuple(numbers))
        self.troubled += topic.troubled
        self._by_default += of.MIN_ISR_ONE in topic.found and goes_by_default(topic)
        yield from self._not_known(topic)

    def of_defaults(self) -> Iterator[Finding]:
        """What is found of the values that topics without their own go by; when all topics are over."""
        if self._by_default:
            yield low_default(self.about, self._by_default)

    def _begin(self, topic: str, config: TopicConfig) -> Iterator[Finding | NotChecked]:
        if self._topic is not None and self._topic.name == topic:
            return
        yield from self.finish()
        self._topic = TopicSeen(topic, config)
        self.topics += 1

    def _remember(self, kind: Kind[Described]) -> _Judged:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        judged = self._known[kind] = self._judged(kind.example)
        return judged

    def _judged(self, row: Described) -> _Judged:
        fails = tuple(check for check, fails in FAILS.items() if check.id in self._wanted and fails(row, self))
        unknown = [of.REASSIGNMENT] if row.state.adding is None else []
        if self._rack_is_unknown(row):
            unknown.append(of.ONE_RACK)
        return fails, tuple(unknown)

    def _count(self, number: int, row: Described, judged: _Judged) -> None:
        topic = self._topic
        assert topic is not None
        self.partitions += 1
        topic.partitions += 1
        topic.troubled += row.situation is not Situation.HEALTHY
        count = len(_target(row))
        if count > 1 and (topic.least is None or count < topic.least):
            topic.least = count
        fails, unknown = judged
        topic.unknown.update(unknown)
        for check in fails:
            topic.found.setdefault(check, []).append(number)
            if check in _MOVES:
                topic.replicas[number] = _target(row)

    def in_one_rack(self, row: Described) -> bool:
        """Whether all replicas are in one rack although there are more."""
        racks = {self._racks.get(one) for one in _target(row)}
        return self._several_racks and len(_target(row)) > 1 and len(racks) == 1 and None not in racks

    def _rack_is_unknown(self, row: Described) -> bool:
        """Whether the racks that are known of its replicas are no two, and there are replicas of which it is not."""
        if not self._several_racks or len(_target(row)) < 2:
            return False
        racks = {self._racks.get(one) for one in _target(row)}
        return None in racks and len(racks) < 3

    def _not_known(self, topic: TopicSeen) -> Iterator[NotChecked]:
        config = topic.config
        if of.REASSIGNMENT in topic.unknown:
            why = self.about.cluster.reassignments_error or "what is being reassigned is not known"
            yield of.REASSIGNMENT.not_checked(why, topic.name)
        if of.ONE_RACK in topic.unknown:
            yield of.ONE_RACK.not_checked("not all brokers' racks are known", topic.name)
        if config.min_insync_replicas is None:
            why = config.error or "min.insync.replicas is not known"
            for check in (of.MIN_ISR_ONE, of.MIN_ISR_IS_RF, of.UNDER_MIN_ISR):
                yield check.not_checked(why, topic.name)
        if self.about.loses_by_itself(config) is None:
            why = config.error or "unclean.leader.election.enable is not known"
            yield of.UNCLEAN_ELECTION.not_checked(why, topic.name)


FAILS: Mapping[of.Check, Callable[[Described, TopicChecks], bool]] = {
    of.LEADERLESS: lambda row, _: row.situation not in _LED or row.state.leader is None,
    # Those without a leader too: that they have one trouble more is no reason to say that they have not this one.
    of.UNDER_MIN_ISR: lambda row, _: _under_min_isr(row),
    of.UNCLEAN_ELECTION: lambda row, checks: checks.about.loses_by_itself(row.config) is True,
    of.MIN_ISR_ONE: lambda row, _: row.min_isr == 1 and len(_target(row)) > 1,
    of.MIN_ISR_IS_RF: lambda row, _: row.min_isr is not None and row.min_isr >= len(_target(row)) > 1,
    of.RF_ONE: lambda row, _: len(_target(row)) == 1,
    of.RF_TWO: lambda row, _: len(_target(row)) == 2,
    of.ONE_RACK: lambda row, checks: checks.in_one_rack(row),
    of.REASSIGNMENT: lambda row, _: bool(row.state.adding or row.state.removing),
}
"""What each check asks of a partition."""


def _under_min_isr(row: Described) -> bool:
    enough = row.min_isr if row.enough is None else row.enough
    return enough is not None and len(row.state.isr) < enough


def _target(row: Described) -> tuple[int, ...]:
    """The replicas that the partition is to have: those on their way out left aside."""
    removing = row.state.removing
    return tuple(one for one in row.state.replicas if one not in removing) if removing else row.state.replicas
