"""A saved snapshot of a cluster as a simulated one: to rehearse on before anything is done to the real one.

Brokers, partitions, configs and logs are as the snapshot tells them. What it does not tell is assumed, and said
(`World.assumptions`); which logs are made up, and how, is told in `kelr.simulation.rebuilt`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kelr.controller import ChosenRules, Configs, ControllerState, RuleSet, choose_rules, rule_set, strategy_named
from kelr.controller.snapshots import controller_state
from kelr.engine.advice.purpose import METADATA_TOPIC
from kelr.errors import UsageError
from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import (
    BrokerStatus,
    ConfigSource,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.partition_map import PartitionMap
from kelr.simulation.rebuilt import MOST_RECORDS, rebuilt
from kelr.simulation.replication import Replication

MOST_IN_ALL = 500_000
"""So many records of all partitions together are made up at most; where there are many partitions, each has fewer."""
FEWEST_EACH = 40
_SHOWN = 5

Value = TypeVar("Value", int, bool)


def spec_of(snapshot: Snapshot, base: SimulatedSpec | None = None, *, rules: str | None = None) -> SimulatedSpec:
    """What a lab is made of that rehearses this snapshot.

    Args:
        base: for everything that a snapshot does not tell, such as limits and times.
        rules: the rule set to rehearse with; None takes the one that the snapshot's cluster ran.

    Raises:
        UsageError: the snapshot has no brokers, or more than a lab can have, or there is no such rule set.
    """
    brokers = {broker.id: broker.rack for broker in snapshot.cluster.brokers}
    for state in snapshot.partitions:
        brokers |= {replica: None for replica in state.replicas if replica not in brokers}
    if not brokers:
        raise UsageError("the snapshot has no brokers", next_step="take one of a whole cluster: kelr snapshot")
    chosen = _ran(snapshot).rules.name if rules is None else rules
    return replace(
        base or SimulatedSpec(),
        brokers=len(brokers),
        named=brokers,
        rules=chosen,
        min_isr=min(_cluster_wide(snapshot).min_isr or 1, len(brokers)),
        replication=min(3, len(brokers)),
        topics=0,
    )


def from_snapshot(
    spec: SimulatedSpec,
    snapshot: Snapshot,
    ports: Mapping[int, int],
    *,
    now_ms: int,
    cleanly_down: Collection[int] = (),
) -> World:
    """The snapshot's cluster, to go on from.

    Nothing happens in it until something is done: a follower that lagged lags until its partition or its broker moves.
    Only the sessions of brokers that have just died expire.

    Args:
        spec: of `spec_of`.
        now_ms: the time of the clock that the server has.
        cleanly_down: brokers that do not run and had shut down cleanly; of the others it is assumed that they crashed.
    """
    controller = _controller(snapshot, _rules(spec, snapshot))
    unreachable = _unreachable(snapshot)
    down = frozenset(id_ for id_, known in controller.brokers.items() if not known.active or id_ in unreachable)
    stopping = {broker for broker in down if controller.brokers[broker].in_controlled_shutdown}
    made = _Made(snapshot, controller, down)
    cluster = SimulatedCluster(
        controller,
        replication=PartitionMap(made.logs),
        down=down,
        crashed=down - stopping - frozenset(cleanly_down),
        next_record=made.next_record,
    )
    world = World(
        spec,
        ports,
        cluster_id=snapshot.cluster.cluster_id or new_kafka_uuid(),
        cluster=cluster,
        topic_ids={state.topic: state.topic_id for state in snapshot.partitions if state.topic_id is not None},
        now_ms=now_ms,
        settled=True,
    )
    for topic, config in snapshot.configs.items():
        if config.cleanup_policy is not None and topic in controller.topics:
            world.topic_configs.setdefault(topic, {})["cleanup.policy"] = ",".join(config.cleanup_policy)
    world.assumptions = tuple(_assumptions(spec, snapshot, made, cluster.crashed))
    return world


def _unreachable(snapshot: Snapshot) -> set[int]:
    """Brokers that could not be reached for a single log: their process has ended, whatever the controller knows."""
    answers = [answer for found in snapshot.logs.values() for answer in found]
    silent = {
        one.replica
        for one in answers
        if isinstance(one, LogUnavailable) and one.reason is LogUnavailableReason.UNREACHABLE
    }
    told = {
        one.replica
        for one in answers
        if not (isinstance(one, LogUnavailable) and one.reason is LogUnavailableReason.UNREACHABLE)
    }
    return silent - told


@dataclass
class _Made:
    """The logs of all partitions."""

    snapshot: Snapshot
    controller: ControllerState
    down: frozenset[int]
    logs: dict[TopicPartition, Replication] = field(default_factory=dict)
    next_record: int = 0
    unread: int = 0
    """Partitions of which no log was read."""
    assumed: list[str] = field(default_factory=list)
    """Replicas whose log is assumed, such as ``orders:0@1``."""
    shortened: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        partitions = self.controller.partitions
        most = max(FEWEST_EACH, min(MOST_RECORDS, MOST_IN_ALL // max(1, len(partitions))))
        epochs = {id_: known.epoch for id_, known in self.controller.brokers.items() if id_ not in self.down}
        for address, state in sorted(partitions.items()):
            answers = self.snapshot.logs.get(address, ())
            if all(isinstance(answer, LogUnavailable) for answer in answers):
                self.unread += 1
            made = rebuilt(state, answers, epochs, first_id=self.next_record, most_records=most)
            self.logs[address], self.next_record = made.replication, made.next_record
            self.assumed += [f"{address}@{replica}" for replica in made.assumed]
            if made.shortened_by:
                self.shortened[address] = made.shortened_by


def _ran(snapshot: Snapshot) -> ChosenRules:
    """What the snapshot's cluster ran, with unclean.recovery.strategy where all topics have the same; otherwise each
    topic has its own."""
    found = choose_rules(snapshot.cluster.features)
    strategies = _strategies(snapshot)
    if not found.rules.strategy_by_topic or len(strategies) != 1:
        return found
    return replace(found, rules=found.rules.of_topic(None, *strategies))


def _strategies(snapshot: Snapshot) -> set[str]:
    return {one.recovery_strategy for one in snapshot.configs.values() if one.recovery_strategy is not None}


def _rules(spec: SimulatedSpec, snapshot: Snapshot) -> RuleSet:
    """The rule set of this name; where it is that of the snapshot's cluster, exactly as that cluster runs it."""
    chosen, asked = _ran(snapshot).rules, rule_set(spec.rules)
    return chosen if chosen.name == asked.name else asked


def _controller(snapshot: Snapshot, rules: RuleSet) -> ControllerState:
    """The controller's records, with an answer to everything that clients may ask."""
    state = controller_state(snapshot, rules)
    partitions = {
        address: _definite(partition)
        for address, partition in state.partitions.items()
        if address.topic != METADATA_TOPIC
    }
    partitions |= _between(snapshot, state, partitions)
    everywhere = _cluster_wide(snapshot)
    topics = {topic: _own(config, everywhere, rules) for topic, config in snapshot.configs.items()}
    return replace(
        state,
        partitions=partitions,
        cluster=everywhere,
        topics={topic: configs for topic, configs in topics.items() if configs != Configs()},
        min_isr_unknown=frozenset(),
    )


def _between(
    snapshot: Snapshot, controller: ControllerState, known: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """Partitions that the snapshot has not, though it has later ones of the same topic: no topic has gaps.

    They are as healthy as they can be, on the replicas of the topic's last partition; partition 0 has as many
    replicas as the snapshot says, since min ISR depends on it.
    """
    made: dict[TopicPartition, PartitionState] = {}
    last: dict[str, PartitionState] = {}
    for address, state in sorted(known.items()):
        last[address.topic] = state
    for topic, latest in last.items():
        missing = [number for number in range(latest.partition) if TopicPartition(topic, number) not in known]
        for number in missing:
            count = snapshot.first_partition_replicas.get(topic, len(latest.replicas))
            spread = tuple(dict.fromkeys((*latest.replicas, *sorted(controller.brokers))))
            replicas = spread[: max(1, count)] if number == 0 else latest.replicas
            live = tuple(replica for replica in replicas if controller.active(replica))
            leader = live[0] if live else None
            made[TopicPartition(topic, number)] = _definite(
                PartitionState(topic, number, leader, 0, replicas, live, topic_id=latest.topic_id)
            )
    return made


def _definite(state: PartitionState) -> PartitionState:
    """The partition without unknowns: what nobody could tell is empty."""
    return replace(
        state,
        elr=state.elr or (),
        last_known_elr=state.last_known_elr or (),
        offline_replicas=state.offline_replicas or (),
        adding=state.adding or (),
        removing=state.removing or (),
        partition_epoch=state.partition_epoch or 0,
        recovering=bool(state.recovering),
    )


def _cluster_wide(snapshot: Snapshot) -> Configs:
    """The values that most topics have which set none of their own."""
    min_isrs: Counter[int] = Counter()
    unclean: Counter[bool] = Counter()
    for config in snapshot.configs.values():
        if config.min_insync_replicas is not None and config.min_insync_replicas_source is not ConfigSource.TOPIC:
            min_isrs[config.min_insync_replicas] += 1
        enabled = config.unclean_leader_election_of_the_controller
        if enabled is not None and config.unclean_leader_election_source is not ConfigSource.TOPIC:
            unclean[enabled] += 1
    return Configs(_most_common(min_isrs), _most_common(unclean))


def _most_common(counted: Counter[Value]) -> Value | None:
    """The value that is there most often; the lowest of several."""
    return min(counted, key=lambda value: (-counted[value], value), default=None)


def _own(config: TopicConfig, everywhere: Configs, rules: RuleSet) -> Configs:
    """What the topic sets for itself, or has otherwise than the cluster."""
    min_isr, unclean = config.min_insync_replicas, config.unclean_leader_election_of_the_controller
    own_min_isr = config.min_insync_replicas_source is ConfigSource.TOPIC or min_isr != everywhere.min_isr
    own_unclean = config.unclean_leader_election_source is ConfigSource.TOPIC
    return Configs(
        min_isr if own_min_isr else None,
        unclean if own_unclean or unclean != everywhere.unclean_leader_election else None,
        strategy_named(config.recovery_strategy) if rules.strategy_by_topic else None,
    )


def _assumptions(spec: SimulatedSpec, snapshot: Snapshot, made: _Made, crashed: frozenset[int]) -> Iterator[str]:
    """What is not as the snapshot tells it, or is not told by it, in sentences for a person."""
    chosen = _ran(snapshot)
    if chosen.rules.name != rule_set(spec.rules).name:
        yield f"the controller runs {spec.rules}; the snapshot's cluster ran {chosen.rules.name} ({chosen.reason})"
    elif not chosen.certain:
        yield f"the controller runs {chosen.rules.name}: {chosen.reason}"
    unknown = [state for state in snapshot.partitions if state.elr is None]
    if unknown:
        yield f"of {_counted(len(unknown), 'partition')} the ELR is not known; here it is empty"
    blind = sorted(
        topic
        for topic in {state.topic for state in snapshot.partitions}
        if snapshot.configs.get(topic, TopicConfig()).min_insync_replicas is None
    )
    if blind:
        yield f"min.insync.replicas is not known of {_listed(blind)}; here it is the cluster's"
    unnoticed = sorted(_unreachable(snapshot) & snapshot.cluster.live)
    if unnoticed:
        yield (
            "brokers that were not fenced, and could not be reached, have just died; their sessions expire soon:"
            f" {_listed(list(map(str, unnoticed)))}"
        )
    if crashed:
        yield f"brokers that do not run are taken to have crashed: {_listed(list(map(str, sorted(crashed))))}"
    stopping = [broker.id for broker in snapshot.cluster.brokers if broker.status is BrokerStatus.SHUTTING_DOWN]
    if stopping:
        yield f"brokers that were shutting down have done so: {_listed(list(map(str, stopping)))}"
    between = len(made.controller.partitions) - sum(state.topic != METADATA_TOPIC for state in snapshot.partitions)
    if between:
        yield f"{_counted(between, 'partition')} that come before others and are not in the snapshot are made up"
    if made.unread:
        yield f"of {_counted(made.unread, 'partition')} no log was read; their logs are empty here"
    if made.assumed:
        yield (
            f"of {_counted(len(made.assumed), 'replica')} the log was not read or told no epochs; it is assumed to hold"
            f" what is known to be committed where ISR, ELR or LastKnownELR names it, else no more than the shortest:"
            f" {_listed(made.assumed)}"
        )
    if made.shortened:
        names = [f"{address} by {count}" for address, count in made.shortened.items()]
        yield (
            f"logs of {_counted(len(names), 'partition')} are shorter than the real ones, with all ends, high"
            " watermarks and epochs in the same order; counts of what would be lost are too low there:"
            f" {_listed(names)}"
        )
    storage = sum(
        isinstance(answer, LogUnavailable) and answer.reason is LogUnavailableReason.STORAGE_ERROR
        for answers in snapshot.logs.values()
        for answer in answers
    )
    if storage:
        yield f"{_counted(storage, 'replica')} on failed log directories have empty logs"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
