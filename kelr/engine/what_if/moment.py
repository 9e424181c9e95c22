"""What imagined events make of partitions, configs and logs, one event after the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import (
    Change,
    ControllerState,
    Election,
    Handled,
    RecoveryStrategy,
    Standing,
    best_log,
    change_partition,
    handle,
    recovery_of,
)
from kelr.controller import events as ev
from kelr.controller.reach import FAILED, NONE, written
from kelr.engine.case import case_of
from kelr.engine.elections import elected_by
from kelr.engine.loss import loss_of_electing
from kelr.engine.recovery.prediction import heard_logs
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.engine.what_if.events import events_of, refused_designations
from kelr.engine.what_if.logs import Logs, after_changes, directory_lost, returned
from kelr.engine.words import holds_up_to, joined
from kelr.model import (
    ConfigSource,
    ElectedBy,
    Loss,
    LossCertainty,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

# Unclean recovery in imagined histories, by the rules of the whole of KIP-966.
#
# The known logs are the answers that the Unclean Recovery Manager gets. A broker that has come back since they were
# read is asked when it is there; as long as nobody can tell what it will say, nobody is elected, unless it is alone.


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery makes of the partitions that nobody leads."""

    changes: tuple[Change, ...] = ()
    """The elections, in address order."""
    outlook: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Where somebody will be elected by logs that are not known: who comes into question."""


def recoveries(
    state: ControllerState, snapshot: Snapshot, assumption: Assumption, returned: Collection[int]
) -> Recovered:
    """What recovery does once an assumption has happened.

    Args:
        snapshot: with the logs and configs as they are by then.
        returned: brokers that came back after the logs were read.
    """
    if not state.rules.recovers:
        return Recovered()
    changes, outlook = [], {}
    for address, partition in sorted(state.partitions.items()):
        if partition.leader is not None:
            continue
        choices = _choices(state, partition, snapshot, assumption, returned)
        change = _elected(state, partition, choices.sure)
        if change is not None:
            changes.append(change)
        elif choices.possible:
            outlook[address] = _outlook(choices.possible)
    return Recovered(tuple(changes), outlook)


def _elected(state: ControllerState, partition: PartitionState, choice: int | None) -> Change | None:
    if choice is None:
        return None
    change = change_partition(partition, state.around(partition), election=Election.ONLINE, recovered=choice)
    return change if change.after.leader == choice else None


def _outlook(possible: tuple[int, ...]) -> str:
    if len(possible) == 1:
        return f"broker {possible[0]} is elected once its log is known"
    return f"one of {joined(possible)} is elected; which cannot be told"


@dataclass(frozen=True, slots=True)
class _Choices:
    sure: int | None = None
    """Who is elected by the logs that are known."""
    possible: tuple[int, ...] = ()
    """Else: of whom the one with the best log is elected, in assignment order."""


def _choices(
    state: ControllerState,
    partition: PartitionState,
    snapshot: Snapshot,
    assumption: Assumption,
    returned: Collection[int],
) -> _Choices:
    if assumption.happening is Happening.DESIGNATION:
        return _Choices(assumption.broker if assumption.broker in partition.replicas else None)
    around = state.around(partition)
    heard = heard_logs(case_of(snapshot, partition, around.rules))
    # KIP-966: the unclean election of older requests is replaced by the unclean recovery.
    by_hand = RecoveryStrategy.AGGRESSIVE if assumption.happening is Happening.UNCLEAN_ELECTION else None
    recovery = recovery_of(partition, around, heard, asked_for=by_hand)
    live = [replica for replica in partition.replicas if replica in around.electable]
    if recovery.standing not in {Standing.WAITS_FOR_LOGS, Standing.READY}:
        return _Choices()
    if len(live) == 1 and live[0] in returned:
        return _Choices(live[0])
    silent = any(replica not in heard for replica in live)
    if recovery.choice is not None and not silent:
        return _Choices(recovery.choice)
    best = best_log(live, heard)
    return _Choices(possible=tuple(replica for replica in live if replica == best or replica not in heard))


@dataclass(frozen=True, slots=True)
class Moment:
    """Where things stand between two events."""

    state: ControllerState
    logs: Logs
    configs: Mapping[str, TopicConfig]
    returned: Mapping[int, bool] = field(default_factory=dict)
    """The brokers that have come back, and whether their last shutdown was clean."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the controller on one partition, and what its election loses."""

    change: Change
    loss: Loss | None
    held: str = ""
    """What the best log that was heard holds, where the loss cannot be counted and another replica was elected."""

    @property
    def elects(self) -> bool:
        return self.change.after.leader is not None and self.change.after.leader != self.change.before.leader


@dataclass(frozen=True, slots=True)
class Passed:
    """What an assumption led to."""

    moment: Moment
    ran: tuple[Ran, ...]
    failed: bool
    """Whether the controller ran into an error of its own."""
    refused: Mapping[TopicPartition, str]
    """Elections that were asked for and refused: Kafka's name of the error."""
    outlook: Mapping[TopicPartition, str]
    """Partitions that nobody leads, and of whom recovery elects one once it knows their logs."""


def after_assumption(moment: Moment, assumption: Assumption, snapshot: Snapshot) -> Passed:
    """Let an assumption happen."""
    ran: list[Ran] = []
    refused = dict(refused_designations(assumption, moment.state))
    any_failed = False
    for event in events_of(assumption, moment.state, snapshot.cluster):
        moment, runs, handled = _after_event(moment, event, snapshot)
        ran += runs
        any_failed = any_failed or handled.error == FAILED
        refused.update(handled.answers)
    known = known_at(snapshot, moment)
    recovered = recoveries(moment.state, known, assumption, moment.returned)
    ran += (_ran(known, change, moment.returned) for change in recovered.changes)
    state = written(moment.state, recovered.changes)
    moment = replace(moment, state=state, logs=after_changes(moment.logs, recovered.changes, state, None))
    by_logs = {*recovered.outlook, *(change.after.address for change in recovered.changes)}
    errors = {one: error for one, error in refused.items() if error != NONE and one not in by_logs}
    return Passed(moment, tuple(ran), any_failed, errors, recovered.outlook)


def known_at(snapshot: Snapshot, moment: Moment) -> Snapshot:
    """The snapshot with the logs and configs as they are by then."""
    return replace(snapshot, configs=moment.configs, logs=moment.logs)


def _after_event(moment: Moment, event: ev.Event, snapshot: Snapshot) -> tuple[Moment, list[Ran], Handled]:
    match event:
        case ev.ConfigWritten():
            state, configs = _inherited(moment.state, event, moment.configs), _with_config(moment.configs, event)
            moment = replace(moment, state=state, configs=configs)
        case ev.BrokerRegistered(broker=broker, clean=clean):
            logs = returned(moment.logs, broker, clean=clean)
            moment = replace(moment, logs=logs, returned={**moment.returned, broker: clean})
        case ev.DirectoryFailed(broker=broker):
            moment = replace(moment, logs=directory_lost(moment.logs, broker))
        case _:
            pass
    handled = handle(moment.state, event)
    ran = [_ran(known_at(snapshot, moment), change, moment.returned) for change in handled.changes]
    arrived = event.broker if isinstance(event, ev.BrokerUnfenced) else None
    logs = after_changes(moment.logs, handled.changes, handled.state, arrived)
    return replace(moment, state=handled.state, logs=logs), ran, handled


def _ran(snapshot: Snapshot, change: Change, returned: Mapping[int, bool]) -> Ran:
    """A run with what its election loses."""
    leader, rules = change.after.leader, change.ballot.rules
    if leader is None or leader == change.before.leader:
        return Ran(change, None)
    holds_all: bool | None = None
    if leader in returned and elected_by(change) in {ElectedBy.ISR, ElectedBy.ELR}:
        # With ELR off an unclean restart leaves a replica in the ISR.
        holds_all = rules.elr or returned[leader]
    case = case_of(snapshot, change.before, rules)
    loss, best = loss_of_electing(case, leader, holds_all_committed=holds_all), case.logs.best
    uncounted = loss.grade is not LossCertainty.PROVEN_NONE and loss.total is None
    if best is None or best.replica == leader or not uncounted:
        return Ran(change, loss)
    return Ran(change, loss, holds_up_to(best.replica, best.log_end, best.high_watermark))


def _inherited(state: ControllerState, event: ev.ConfigWritten, configs: Mapping[str, TopicConfig]) -> ControllerState:
    """The state without a min ISR of the topic's own where its config comes from elsewhere: then writing the value that
    is in force anyway is the topic's first own write, and clears its ELR like any other."""
    topic = event.topic
    if topic is None or topic not in state.topics or topic not in configs:
        return state
    if configs[topic].min_insync_replicas_source in {ConfigSource.TOPIC, ConfigSource.UNKNOWN}:
        return state
    return replace(state, topics={**state.topics, topic: replace(state.topics[topic], min_isr=None)})


def _with_config(configs: Mapping[str, TopicConfig], event: ev.ConfigWritten) -> Mapping[str, TopicConfig]:
    if event.topic is None:
        return configs
    config = configs.get(event.topic, TopicConfig())
    if event.min_isr is not None:
        config = replace(config, min_insync_replicas=event.min_isr, min_insync_replicas_source=ConfigSource.TOPIC)
    if event.unclean_leader_election is not None:
        config = replace(
            config,
            unclean_leader_election=event.unclean_leader_election,
            unclean_leader_election_source=ConfigSource.TOPIC,
        )
    return {**configs, event.topic: config}
