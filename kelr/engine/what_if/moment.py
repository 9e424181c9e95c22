"""What imagined events make of partitions, configs and logs, one event after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import Change, ControllerState, Handled, handle
from kelr.controller import events as ev
from kelr.controller.reach import FAILED, NONE, written
from kelr.engine.case import case_of
from kelr.engine.elections import elected_by
from kelr.engine.loss import loss_of_electing
from kelr.engine.what_if.assumptions import Assumption
from kelr.engine.what_if.events import events_of, refused_designations
from kelr.engine.what_if.logs import Logs, after_changes, directory_lost, returned
from kelr.engine.what_if.recovery import recoveries
from kelr.engine.words import holds_up_to
from kelr.model import ConfigSource, ElectedBy, Grade, Loss, Snapshot, TopicConfig, TopicPartition


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
    uncounted = loss.grade is not Grade.PROVEN_NONE and loss.total is None
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
