"""The checks that look at every partition: one topic at a time, each kind of partition judged once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kelr.controller import RecoveryStrategy, RuleSet, choose_rules
from kelr.engine.advice.commands import topic_config
from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup import fixes
from kelr.engine.checkup.incidents import EMPTIES_ELR, MOVES, for_topic
from kelr.engine.checkup.tally import pieces
from kelr.engine.words import agree, joined, plural
from kelr.model import BrokerStatus, Cluster, ConfigSource, Situation, TopicConfig
from kelr.model.checkup import Command, Finding, NotChecked
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows

# What the checks of partitions say of one topic, and the commands that put it right.

CLEARS_ELR = (
    "with ELR on this write empties ELR and LastKnownElr of all partitions of the topic: do it while all of them are"
    " led and in sync"
)
CLEARS_ALL_ELR = (
    "with ELR on this write empties ELR and LastKnownElr of all partitions of all topics: do it while all of them are"
    " led and in sync"
)
WANTED_REPLICAS = 3
_UNCLEAN = "unclean.leader.election.enable"
_STRATEGY = "unclean.recovery.strategy"
_MIN_ISR = "min.insync.replicas"
_MOST_PIECES = 20
_MOST_BROKERS = 5
BETTER_OFF = "a topic that is written with acks=0 or 1 alone is better off with min.insync.replicas=1"
WITHOUT_ACKS = (
    f"{BETTER_OFF}: there a higher one only keeps new records from consumers while fewer are in sync (KIP-966)"
)
"""What kelr cannot see: how producers write."""


@dataclass(frozen=True, slots=True)
class About:
    """The cluster that topics are in."""

    cluster: Cluster

    @property
    def elr(self) -> bool | None:
        return self.cluster.features.elr_enabled

    @property
    def rules(self) -> RuleSet:
        """What the cluster elects by, as far as it tells."""
        return choose_rules(self.cluster.features).rules

    def loses_by_itself(self, config: TopicConfig) -> bool | None:
        """Whether the controller elects by itself a replica that may lack committed records, though others may come
        back with them: uncleanly, or by the KIP's strategy aggressive; None where the config is not known."""
        strategy = self.rules.of_topic(config.unclean_leader_election, config.recovery_strategy).recovery
        if strategy is None or (config.recovery_strategy is None and config.unclean_leader_election is None):
            return config.unclean_leader_election
        return strategy is RecoveryStrategy.AGGRESSIVE

    @property
    def min_isr_harm(self) -> str | None:
        """What a write of min.insync.replicas does to partitions in trouble; None where there is no ELR to empty."""
        return None if self.elr is False else EMPTIES_ELR


@dataclass
class TopicSeen:
    """What was seen of a topic."""

    name: str
    config: TopicConfig
    partitions: int = 0
    troubled: int = 0
    """Partitions that are not healthy, or of which that is not known."""
    first: int | None = None
    """The replica count of partition 0."""
    least: int | None = None
    """The smallest replica count above 1."""
    found: dict[of.Check, list[int]] = field(default_factory=dict)
    """The partitions that each check is about."""
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of the partitions whose assignment is to be changed."""
    behind: set[tuple[int, bool]] = field(default_factory=set)
    """Of the under-replicated: the brokers of replicas that are out of sync, and whether the replica is offline."""
    at_min_isr: int = 0
    """How many of the under-replicated have no more in sync than min ISR."""
    one_copy: bool = False
    """Whether that is a single one for any of them."""
    unknown: set[of.Check] = field(default_factory=set)
    """What could not be told of some of its partitions."""


def told(about: About, check: of.Check, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    """What a check found of a topic, in words, with the commands that put it right.

    Those that would do harm in an incident are not printed while a partition of the topic is in trouble.
    """
    return for_topic(TELLS[check](about, topic, numbers), topic.troubled)


def goes_by_default(topic: TopicSeen) -> bool:
    """Whether a topic's min ISR is 1 because the cluster's is, and could be higher."""
    config = topic.config
    return (
        config.min_insync_replicas == 1
        and config.min_insync_replicas_source is not ConfigSource.TOPIC
        and (topic.least or 0) >= WANTED_REPLICAS
    )


def low_default(about: About, topics: int) -> Finding:
    """The cluster's min.insync.replicas of 1: one command for all topics that go by it."""
    caution = (
        "it holds for every topic without a value of its own; producers with acks=all are refused from then on where"
        f" fewer than 2 are in sync; {WITHOUT_ACKS}"
    )
    return of.MIN_ISR_ONE.finding(
        f"min.insync.replicas is 1 where a topic has no value of its own: {plural(topics, 'topic')}",
        why=_min_isr_one_why(about),
        commands=[fixes.default_config(_MIN_ISR, "2")],
        caution=caution if about.elr is False else f"{caution}; {CLEARS_ALL_ELR}",
        harm=about.min_isr_harm,
    )


def _now(check: of.Check, about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    what = {
        of.LEADERLESS: f"{_partitions(numbers)} of {topic.name} {_have(numbers)} no live leader",
        of.UNDER_MIN_ISR: f"{_partitions(numbers)} of {topic.name} {_have(numbers)} fewer in sync than min ISR",
    }[check]
    caution = None
    if check is of.UNDER_MIN_ISR and (topic.config.min_insync_replicas or 0) > 1:
        caution = f"{BETTER_OFF}; write that when all is led and in sync again"
        caution += "" if about.elr is False else ": with ELR on the write empties the ELR"
    command = ("explain", _target_of(topic, numbers))
    return check.finding(what, topic=topic.name, partitions=numbers, commands=[command], caution=caution)


def _under_replicated(about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    cluster, brokers = about.cluster, sorted({broker for broker, _ in topic.behind})
    live = {broker for broker in brokers if cluster.status(broker) is BrokerStatus.LIVE}
    failed = {broker for broker, offline in topic.behind if offline and broker in live}

    def words(broker: int) -> str:
        status = "log directory failed" if broker in failed else str(cluster.status(broker))
        return f"{broker} ({status})"

    shown = [words(broker) for broker in brokers[:_MOST_BROKERS]]
    shown += [f"{len(brokers) - len(shown)} more"] if len(brokers) > len(shown) else []
    have, who = _have(numbers), agree(len(brokers), "broker", "brokers")
    of_them = f", {topic.at_min_isr:,} of them at min ISR" if topic.at_min_isr < len(numbers) else ""
    then = "no leader is left" if topic.one_copy else "acks=all is refused"
    edge = f"{of_them}: one failure more, and {then}" if topic.at_min_isr else ""
    return of.UNDER_REPLICATED.finding(
        f"{_partitions(numbers)} of {topic.name} {have} replicas out of sync, on {who} {joined(shown)}{edge}",
        topic=topic.name,
        partitions=numbers,
        brokers=brokers,
        commands=[("explain", _target_of(topic, numbers))],
    )


def _aggressive(topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    """The strategy aggressive, by its own config or by the one that KIP-966 deprecates ("Compatibility": true "will be
    set to Aggressive")."""
    source = topic.config.unclean_leader_election_source
    what = f"{_STRATEGY} is aggressive for {topic.name}"
    command = topic_config(topic.name, _STRATEGY, "balanced")
    caution = "a leaderless partition then waits for every member of LastKnownELR"
    if topic.config.recovery_strategy is None:
        what = f"{_UNCLEAN} is true for {topic.name} ({_where(source)}), which means {_STRATEGY}=aggressive"
        caution += f"; KIP-966 deprecates {_UNCLEAN}, and {_STRATEGY} stands above it"
        if source is not ConfigSource.TOPIC:
            command = fixes.default_config(_STRATEGY, "balanced")
    why = (
        "where no live replica may lead cleanly, the best log of those that answer within seconds is elected; members"
        " of the ELR that are down are not waited for, and what they alone hold is lost"
    )
    return of.UNCLEAN_ELECTION.finding(
        what, why=why, topic=topic.name, partitions=numbers, commands=[command], caution=caution
    )


def _unclean(about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    if about.rules.recovers:
        return _aggressive(topic, numbers)
    source = topic.config.unclean_leader_election_source
    what = f"unclean.leader.election.enable is true for {topic.name} ({_where(source)})"
    caution = "Kafka then elects no unclean leader by itself, for partitions that are leaderless now either"
    command: Command = fixes.default_config(_UNCLEAN, "false")
    if source is ConfigSource.TOPIC:
        command = topic_config(topic.name, _UNCLEAN, "false")
    elif source in {ConfigSource.BROKER, ConfigSource.STATIC}:
        caution = (
            "the controllers go by their own files, which no request to a broker tells: the dynamic default goes"
            " before all of them"
        )
    if about.rules.kip966:
        caution += (
            f"; KIP-966 deprecates it: once unclean.recovery.manager.enabled is true, it means {_STRATEGY}=aggressive"
        )
    why = of.UNCLEAN_ELECTION.why
    if about.elr:
        why += "; with ELR on the ELR, which could have been waited for, is thrown away with it"
    return of.UNCLEAN_ELECTION.finding(
        what, why=why, topic=topic.name, partitions=numbers, commands=[command], caution=caution
    )


def _min_isr_one(about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    if (topic.config.min_insync_replicas or 0) > 1:
        return of.MIN_ISR_ONE.finding(
            f"the controller goes by min ISR 1 for {topic.name}: partition 0 has one replica",
            why=f"it keeps the ELR of all partitions by that one's count, and {_NO_ELR}; producers are refused by each"
            " partition's own count",
            topic=topic.name,
            partitions=numbers,
            caution="give partition 0 more replicas",
        )
    source = topic.config.min_insync_replicas_source
    what = f"min ISR is 1 for {topic.name} ({_where(source)})"
    command: Command | None = None
    if (topic.least or 0) < WANTED_REPLICAS:
        caution = "with min ISR 2 and two replicas a single broker stops producers: give it a third replica first"
    elif goes_by_default(topic):
        caution = "the value is the cluster's: what is said of all topics without a value of their own has the command"
    else:
        command = topic_config(topic.name, _MIN_ISR, "2")
        caution = f"producers with acks=all are refused from then on where fewer than 2 are in sync; {WITHOUT_ACKS}"
        if about.elr is not False:
            caution = f"{caution}; {CLEARS_ELR}"
    return of.MIN_ISR_ONE.finding(
        what,
        why=_min_isr_one_why(about),
        topic=topic.name,
        partitions=numbers,
        commands=[command] if command else [],
        caution=caution,
        harm=about.min_isr_harm,
    )


_NO_ELR = (
    "its ELR never holds more than the last one in sync, since replicas go into it only while the ISR is below min ISR"
)


def _min_isr_one_why(about: About) -> str:
    if not about.elr:
        return of.MIN_ISR_ONE.why
    return f"{of.MIN_ISR_ONE.why}; and {_NO_ELR}"


def _min_isr_is_rf(about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    source, least = topic.config.min_insync_replicas_source, topic.least or 0
    what = f"min ISR of {topic.name} is as high as its number of replicas ({_where(source)})"
    if least < WANTED_REPLICAS:
        caution: str | None = "with two replicas the other choice is min ISR 1: give it a third replica"
        return of.MIN_ISR_IS_RF.finding(what, topic=topic.name, partitions=numbers, caution=caution)
    command = topic_config(topic.name, _MIN_ISR, str(least - 1))
    caution = None if about.elr is False else CLEARS_ELR
    return of.MIN_ISR_IS_RF.finding(
        what,
        topic=topic.name,
        partitions=numbers,
        commands=[command],
        caution=caution,
        harm=about.min_isr_harm,
    )


def _replicas_few(check: of.Check, about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    how_many = "one replica" if check is of.RF_ONE else "two replicas"
    what = f"{_partitions(numbers)} of {topic.name} {_have(numbers)} {how_many}"
    wanted = {
        number: fixes.more_replicas(about.cluster, topic.name, number, topic.replicas[number], WANTED_REPLICAS)
        for number in numbers
    }
    enough = all(len(replicas) >= WANTED_REPLICAS for replicas in wanted.values())
    if not enough:
        return check.finding(
            what, topic=topic.name, partitions=numbers, caution="there are not enough live brokers for three"
        )
    return _moved(check, what, topic.name, wanted)


def _rack(about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    racks = sorted({str(fixes.rack_of(about.cluster, topic.replicas[number][0])) for number in numbers})
    what = f"all replicas of {_partitions(numbers)} of {topic.name} are in {_rack_words(racks)}"
    wanted = {
        number: found
        for number in numbers
        if (found := fixes.spread(about.cluster, topic.name, number, topic.replicas[number])) is not None
    }
    if len(wanted) < len(numbers):
        return of.ONE_RACK.finding(
            what, topic=topic.name, partitions=numbers, caution="no broker of another rack is live"
        )
    return _moved(of.ONE_RACK, what, topic.name, wanted)


def _reassignment(_about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    what = f"{_partitions(numbers)} of {topic.name} {_are(numbers)} being reassigned"
    return of.REASSIGNMENT.finding(what, topic=topic.name, partitions=numbers)


def _foreign(_about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    what = f"the records of {topic.name} are not in its replicas' logs ({topic.config.foreign})"
    return of.FOREIGN.finding(what, topic=topic.name, partitions=numbers)


def _remote_storage(_about: About, topic: TopicSeen, numbers: tuple[int, ...]) -> Finding:
    what = f"topic {topic.name} has remote storage (remote.storage.enable)"
    return of.REMOTE_STORAGE.finding(what, topic=topic.name, partitions=numbers)


def _moved(check: of.Check, what: str, topic: str, wanted: Mapping[int, tuple[int, ...]]) -> Finding:
    """A finding that a reassignment puts right."""
    command = fixes.reassign(topic, wanted)
    if command is None:
        count = plural(len(wanted), "partition")
        caution = f"{count} are too many for a line: write the assignment with kafka-reassign-partitions.sh"
        return check.finding(what, topic=topic, partitions=wanted, caution=caution)
    caution = "this copies data; the brokers are kelr's suggestion, by rack alone and not by load"
    return check.finding(what, topic=topic, partitions=wanted, commands=[command], caution=caution, harm=MOVES)


TELLS: Mapping[of.Check, Callable[[About, TopicSeen, tuple[int, ...]], Finding]] = {
    of.LEADERLESS: partial(_now, of.LEADERLESS),
    of.UNDER_MIN_ISR: partial(_now, of.UNDER_MIN_ISR),
    of.UNDER_REPLICATED: _under_replicated,
    of.UNCLEAN_ELECTION: _unclean,
    of.MIN_ISR_ONE: _min_isr_one,
    of.MIN_ISR_IS_RF: _min_isr_is_rf,
    of.RF_ONE: partial(_replicas_few, of.RF_ONE),
    of.RF_TWO: partial(_replicas_few, of.RF_TWO),
    of.ONE_RACK: _rack,
    of.FOREIGN: _foreign,
    of.REMOTE_STORAGE: _remote_storage,
    of.REASSIGNMENT: _reassignment,
}


def _target_of(topic: TopicSeen, numbers: tuple[int, ...]) -> str:
    """As kelr takes it: the partitions, or the whole topic where they are too scattered to be named."""
    found = pieces(numbers)
    if len(numbers) == topic.partitions or len(found) > _MOST_PIECES:
        return topic.name
    return f"{topic.name}:{','.join(found)}"


def _where(source: ConfigSource) -> str:
    return {
        ConfigSource.TOPIC: "set on the topic",
        ConfigSource.CLUSTER_DEFAULT: "the cluster's dynamic default",
        ConfigSource.BROKER: "a broker's dynamic config",
        ConfigSource.STATIC: "the brokers' files",
        ConfigSource.DEFAULT: "Kafka's own default",
        ConfigSource.UNKNOWN: "where it is set is not known",
    }[source]


def _partitions(numbers: Sequence[int]) -> str:
    return plural(len(numbers), "partition")


def _have(numbers: Sequence[int]) -> str:
    return "has" if len(numbers) == 1 else "have"


def _are(numbers: Sequence[int]) -> str:
    return "is" if len(numbers) == 1 else "are"


def _rack_words(racks: Sequence[str]) -> str:
    return f"rack {racks[0]}" if len(racks) == 1 else f"one rack ({', '.join(racks)})"


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
        if number == 0:
            topic.first = len(row.state.replicas)
        fails, unknown = judged
        if self._has_no_elr(topic, count):
            fails = (*fails, of.MIN_ISR_ONE)
        topic.unknown.update(unknown)
        for check in fails:
            topic.found.setdefault(check, []).append(number)
            if check in _MOVES:
                topic.replicas[number] = _target(row)
            if check is of.UNDER_REPLICATED:
                offline = row.state.offline_replicas or ()
                topic.behind.update((one, one in offline) for one in _out_of_sync(row))
                topic.at_min_isr += len(row.state.isr) == row.min_isr
                topic.one_copy |= len(row.state.isr) == 1

    def _has_no_elr(self, topic: TopicSeen, replicas: int) -> bool:
        """Whether partition 0 has one replica, so that the controller keeps no ELR for a partition that has more."""
        above_one = (topic.config.min_insync_replicas or 0) > 1
        counts = self.about.elr is True and of.MIN_ISR_ONE.id in self._wanted
        return counts and above_one and topic.first == 1 and replicas > 1

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
        if config.error is not None:
            for check in (of.FOREIGN, of.REMOTE_STORAGE):
                yield check.not_checked(config.error, topic.name)
        if self.about.loses_by_itself(config) is None:
            why = config.error or "unclean.leader.election.enable is not known"
            yield of.UNCLEAN_ELECTION.not_checked(why, topic.name)


FAILS: Mapping[of.Check, Callable[[Described, TopicChecks], bool]] = {
    of.LEADERLESS: lambda row, _: row.situation not in _LED or row.state.leader is None,
    # Those without a leader too: that they have one trouble more is no reason to say that they have not this one.
    of.UNDER_MIN_ISR: lambda row, _: row.under_min_isr is True,
    of.UNDER_REPLICATED: lambda row, _: row.situation is Situation.HEALTHY and bool(_out_of_sync(row)),
    of.UNCLEAN_ELECTION: lambda row, checks: checks.about.loses_by_itself(row.config) is True,
    of.MIN_ISR_ONE: lambda row, _: row.min_isr == 1 and len(_target(row)) > 1,
    of.MIN_ISR_IS_RF: lambda row, _: row.min_isr is not None and row.min_isr >= len(_target(row)) > 1,
    of.RF_ONE: lambda row, _: _replica_count(row) == 1,
    of.RF_TWO: lambda row, _: _replica_count(row) == 2,
    of.ONE_RACK: lambda row, checks: checks.in_one_rack(row),
    of.FOREIGN: lambda row, _: row.config.foreign is not None,
    of.REMOTE_STORAGE: lambda row, _: bool(row.config.remote_storage),
    of.REASSIGNMENT: lambda row, _: bool(row.state.adding or row.state.removing),
}
"""What each check asks of a partition."""


def _out_of_sync(row: Described) -> tuple[int, ...]:
    """Its replicas that are not in the ISR; of those on their way in or out nothing is said."""
    adding = row.state.adding or ()
    return tuple(one for one in _target(row) if one not in row.state.isr and one not in adding)


def _replica_count(row: Described) -> int:
    """How many replicas it has, or is to have, whichever is more: while a reassignment takes some away, the failure of
    one is not yet what it will be."""
    adding = row.state.adding or ()
    return max(len(_target(row)), sum(one not in adding for one in row.state.replicas))


def _target(row: Described) -> tuple[int, ...]:
    """The replicas that the partition is to have: those on their way out left aside."""
    removing = row.state.removing
    return tuple(one for one in row.state.replicas if one not in removing) if removing else row.state.replicas
