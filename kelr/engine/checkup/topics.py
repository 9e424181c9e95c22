"""The checks that look at every partition: one topic at a time, each kind of partition judged once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup import fixes
from kelr.engine.words import plural
from kelr.model import Cluster, ConfigSource, Situation, TopicConfig
from kelr.model.checkup import Command, Finding, NotChecked
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows

CLEARS_ELR = (
    "with ELR on this write empties ELR and LastKnownElr of every partition that it concerns: do it while all of them"
    " are led and in sync"
)
WANTED_REPLICAS = 3
_MOST_KNOWN = 16_384
_LED = frozenset({Situation.HEALTHY, Situation.UNDER_MIN_ISR, Situation.UNKNOWN})
_UNCLEAN = "unclean.leader.election.enable"
_MIN_ISR = "min.insync.replicas"


@dataclass
class _Topic:
    """What was seen of the topic that is being read."""

    name: str
    config: TopicConfig
    partitions: int = 0
    first_replicas: int = 0
    found: dict[of.Check, list[int]] = field(default_factory=dict)
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of the partitions whose assignment is to be changed."""
    least: int | None = None
    """The smallest replica count above 1."""
    unknown: dict[of.Check, str] = field(default_factory=dict)


class TopicChecks:
    """Takes partitions in address order, and gives what is found once a topic is over.

    Args:
        wanted: ids of the checks to make.
    """

    def __init__(self, cluster: Cluster, *, wanted: frozenset[str]) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._elr = cluster.features.elr_enabled
        self._racks = {broker.rack for broker in cluster.brokers if broker.rack is not None}
        self._topic: _Topic | None = None
        self._known: dict[Kind[Described], tuple[of.Check, ...]] = {}
        self.partitions = 0
        self.topics = 0

    def add(self, rows: Sequence[Described]) -> Iterator[Finding | NotChecked]:
        """What is found of the topics that end within these partitions."""
        if isinstance(rows, Rows):
            for run in rows.runs:
                yield from self._begin(run.topic, run.kinds[0].example.config)
                for number, kind in zip(run.numbers, run.kinds, strict=True):
                    checks = self._known.get(kind)
                    if checks is None:
                        checks = self._remember(kind)
                    self._count(number, kind.example, checks)
        else:
            for row in rows:
                yield from self._begin(row.state.topic, row.config)
                self._count(row.state.partition, row, self._judged(row))

    def finish(self) -> Iterator[Finding | NotChecked]:
        """What is found of the last topic."""
        topic, self._topic = self._topic, None
        if topic is not None:
            yield from self._told(topic)

    def _begin(self, topic: str, config: TopicConfig) -> Iterator[Finding | NotChecked]:
        if self._topic is not None and self._topic.name == topic:
            return
        yield from self.finish()
        self._topic = _Topic(topic, config)
        self.topics += 1

    def _remember(self, kind: Kind[Described]) -> tuple[of.Check, ...]:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        checks = self._known[kind] = self._judged(kind.example)
        return checks

    def _count(self, number: int, row: Described, checks: tuple[of.Check, ...]) -> None:
        topic = self._topic
        assert topic is not None
        self.partitions += 1
        topic.partitions += 1
        count = len(_target(row))
        if number == 0:
            topic.first_replicas = count
        if count > 1:
            topic.least = count if topic.least is None else min(topic.least, count)
        for check in checks:
            topic.found.setdefault(check, []).append(number)
            if check in _MOVES:
                topic.replicas[number] = _target(row)

    def _judged(self, row: Described) -> tuple[of.Check, ...]:
        """The checks that a partition fails."""
        return tuple(check for check, fails in _FAILS.items() if check.id in self._wanted and fails(row, self))

    # What each check asks of a partition.

    def leaderless(self, row: Described) -> bool:
        return row.situation not in _LED or (row.state.leader is None)

    def under_min_isr(self, row: Described) -> bool:
        return row.situation is Situation.UNDER_MIN_ISR

    def one_rack(self, row: Described) -> bool:
        replicas = _target(row)
        racks = {fixes.rack_of(self._cluster, one) for one in replicas}
        return len(replicas) > 1 and len(racks) == 1 and None not in racks and len(self._racks) > 1

    # What is said of a topic.

    def _told(self, topic: _Topic) -> Iterator[Finding | NotChecked]:
        for check in of.CHECKS:
            numbers = topic.found.get(check)
            if numbers:
                yield _TELLS[check](self, topic, tuple(numbers))
        yield from self._not_known(topic)

    def _not_known(self, topic: _Topic) -> Iterator[NotChecked]:
        config = topic.config
        if config.min_insync_replicas is None:
            why = config.error or "min.insync.replicas is not known"
            for check in (of.MIN_ISR_ONE, of.MIN_ISR_IS_RF, of.UNDER_MIN_ISR):
                yield check.not_checked(why, topic.name)
        if config.unclean_leader_election is None:
            yield of.UNCLEAN_ELECTION.not_checked(
                config.error or "unclean.leader.election.enable is not known", topic.name
            )

    def now(self, check: of.Check, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        what = {
            of.LEADERLESS: f"{_partitions(numbers)} of {topic.name} {_have(numbers)} no live leader",
            of.UNDER_MIN_ISR: f"{_partitions(numbers)} of {topic.name} {_have(numbers)} fewer in sync than min ISR",
        }[check]
        # explain looks at every partition that is leaderless or unsafe; of one topic it is told which.
        command = ("explain", _target_of(topic, numbers))
        return check.finding(what, topic=topic.name, partitions=numbers, commands=[command])

    def unclean(self, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        source = topic.config.unclean_leader_election_source
        what = f"unclean.leader.election.enable is true for {topic.name} ({_where(source)})"
        caution = "where nobody leads now, nobody is elected uncleanly by itself any more"
        command: Command = fixes.default_config(_UNCLEAN, "false")
        if source is ConfigSource.TOPIC:
            command = fixes.topic_config(topic.name, _UNCLEAN, "false")
        elif source in {ConfigSource.BROKER, ConfigSource.STATIC}:
            caution = (
                "the controllers go by their own files, which no request to a broker tells: the dynamic default goes"
                " before all of them"
            )
        why = of.UNCLEAN_ELECTION.why
        if self._elr:
            why += "; with ELR on the ELR, which could have been waited for, is thrown away with it"
        return of.UNCLEAN_ELECTION.finding(
            what, why=why, topic=topic.name, partitions=numbers, commands=[command], caution=caution
        )

    def min_isr_one(self, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        source = topic.config.min_insync_replicas_source
        what = f"min ISR is 1 for {topic.name} ({_where(source)})"
        why = of.MIN_ISR_ONE.why
        if self._elr:
            why += "; and its ELR stays empty, since replicas go into it only while the ISR is below min ISR"
        command: Command | None = fixes.default_config(_MIN_ISR, "2")
        caution = "producers with acks=all are refused from then on where fewer than 2 are in sync"
        if (topic.config.min_insync_replicas or 0) > 1:
            command = None
            what = (
                f"min ISR is 1 for {topic.name}: its partition 0 has one replica, and that one's count is what counts"
            )
            caution = "give partition 0 more replicas"
        elif (topic.least or 0) < WANTED_REPLICAS:
            command = None
            caution = "with min ISR 2 and two replicas a single broker stops producers: give it a third replica first"
        elif source is ConfigSource.TOPIC:
            command = fixes.topic_config(topic.name, _MIN_ISR, "2")
        else:
            caution = f"it holds for every topic without a value of its own; {caution}"
        if command is not None and self._elr:
            caution = f"{caution}; {CLEARS_ELR}"
        return of.MIN_ISR_ONE.finding(
            what,
            why=why,
            topic=topic.name,
            partitions=numbers,
            commands=[command] if command else [],
            caution=caution,
        )

    def min_isr_is_rf(self, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        source, least = topic.config.min_insync_replicas_source, topic.least or 0
        what = f"min ISR of {topic.name} is as high as its number of replicas ({_where(source)})"
        if least < WANTED_REPLICAS:
            caution: str | None = "with two replicas the other choice is min ISR 1: give it a third replica"
            return of.MIN_ISR_IS_RF.finding(what, topic=topic.name, partitions=numbers, caution=caution)
        command = fixes.topic_config(topic.name, _MIN_ISR, str(least - 1))
        caution = CLEARS_ELR if self._elr else None
        return of.MIN_ISR_IS_RF.finding(what, topic=topic.name, partitions=numbers, commands=[command], caution=caution)

    def replicas_few(self, check: of.Check, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        how_many = "one replica" if check is of.RF_ONE else "two replicas"
        what = f"{_partitions(numbers)} of {topic.name} {_have(numbers)} {how_many}"
        wanted = {
            number: fixes.more_replicas(self._cluster, topic.name, number, topic.replicas[number], WANTED_REPLICAS)
            for number in numbers
        }
        enough = all(len(replicas) >= WANTED_REPLICAS for replicas in wanted.values())
        if not enough:
            return check.finding(
                what, topic=topic.name, partitions=numbers, caution="there are not enough live brokers for three"
            )
        return _moved(check, what, topic.name, wanted)

    def rack(self, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        racks = sorted({str(fixes.rack_of(self._cluster, topic.replicas[number][0])) for number in numbers})
        what = f"all replicas of {_partitions(numbers)} of {topic.name} are in {_rack_words(racks)}"
        wanted = {
            number: found
            for number in numbers
            if (found := fixes.spread(self._cluster, topic.name, number, topic.replicas[number])) is not None
        }
        if len(wanted) < len(numbers):
            return of.ONE_RACK.finding(
                what, topic=topic.name, partitions=numbers, caution="no broker of another rack is live"
            )
        return _moved(of.ONE_RACK, what, topic.name, wanted)

    def reassignment(self, topic: _Topic, numbers: tuple[int, ...]) -> Finding:
        what = f"{_partitions(numbers)} of {topic.name} {_are(numbers)} being reassigned"
        return of.REASSIGNMENT.finding(what, topic=topic.name, partitions=numbers)


def _moved(check: of.Check, what: str, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> Finding:
    """A finding that a reassignment puts right."""
    command = fixes.reassign(topic, wanted)
    if command is None:
        count = plural(len(wanted), "partition")
        caution = f"{count} are too many for a line: write the assignment with kafka-reassign-partitions.sh"
        return check.finding(what, topic=topic, partitions=wanted, caution=caution)
    caution = "this copies data; the brokers are kelr's suggestion, by rack alone and not by load"
    return check.finding(what, topic=topic, partitions=wanted, commands=[command], caution=caution)


_MOVES = frozenset({of.RF_ONE, of.RF_TWO, of.ONE_RACK})

_FAILS: Mapping[of.Check, Callable[[Described, TopicChecks], bool]] = {
    of.LEADERLESS: lambda row, checks: checks.leaderless(row),
    of.UNDER_MIN_ISR: lambda row, checks: checks.under_min_isr(row),
    of.UNCLEAN_ELECTION: lambda row, _: row.config.unclean_leader_election is True,
    of.MIN_ISR_ONE: lambda row, _: row.min_isr == 1 and len(_target(row)) > 1,
    of.MIN_ISR_IS_RF: lambda row, _: row.min_isr is not None and row.min_isr >= len(_target(row)) > 1,
    of.RF_ONE: lambda row, _: len(_target(row)) == 1,
    of.RF_TWO: lambda row, _: len(_target(row)) == 2,
    of.ONE_RACK: lambda row, checks: checks.one_rack(row),
    of.REASSIGNMENT: lambda row, _: bool(row.state.adding or row.state.removing),
}

_TELLS: Mapping[of.Check, Callable[[TopicChecks, _Topic, tuple[int, ...]], Finding]] = {
    of.LEADERLESS: lambda checks, topic, numbers: checks.now(of.LEADERLESS, topic, numbers),
    of.UNDER_MIN_ISR: lambda checks, topic, numbers: checks.now(of.UNDER_MIN_ISR, topic, numbers),
    of.UNCLEAN_ELECTION: TopicChecks.unclean,
    of.MIN_ISR_ONE: TopicChecks.min_isr_one,
    of.MIN_ISR_IS_RF: TopicChecks.min_isr_is_rf,
    of.RF_ONE: lambda checks, topic, numbers: checks.replicas_few(of.RF_ONE, topic, numbers),
    of.RF_TWO: lambda checks, topic, numbers: checks.replicas_few(of.RF_TWO, topic, numbers),
    of.ONE_RACK: TopicChecks.rack,
    of.REASSIGNMENT: TopicChecks.reassignment,
}


def _target(row: Described) -> tuple[int, ...]:
    """The replicas that the partition is to have: those on their way out left aside."""
    removing = row.state.removing
    return tuple(one for one in row.state.replicas if one not in removing) if removing else row.state.replicas


def _target_of(topic: _Topic, numbers: tuple[int, ...]) -> str:
    if len(numbers) == topic.partitions:
        return topic.name
    shown = numbers[:_MOST_NAMED]
    return f"{topic.name}:{','.join(map(str, shown))}"


_MOST_NAMED = 20


def _where(source: ConfigSource) -> str:
    return {
        ConfigSource.TOPIC: "set on the topic",
        ConfigSource.CLUSTER_DEFAULT: "the cluster's dynamic default",
        ConfigSource.BROKER: "a broker's dynamic config",
        ConfigSource.STATIC: "the brokers' files",
        ConfigSource.DEFAULT: "Kafka's own default",
        ConfigSource.UNKNOWN: "nobody tells where it is set",
    }[source]


def _partitions(numbers: Sequence[int]) -> str:
    return plural(len(numbers), "partition")


def _have(numbers: Sequence[int]) -> str:
    return "has" if len(numbers) == 1 else "have"


def _are(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"


def _rack_words(racks: Sequence[str]) -> str:
    return f"rack {racks[0]}" if len(racks) == 1 else f"one rack ({', '.join(racks)})"
