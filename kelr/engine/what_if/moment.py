"""What imagined events make of partitions, configs and logs, one event after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import Change, ControllerState, handle
from kelr.controller import events as ev
from kelr.controller.reach import FAILED, written
from kelr.engine.case import case_of
from kelr.engine.elections import elected_by
from kelr.engine.loss import loss_of_electing
from kelr.engine.what_if.assumptions import Assumption
from kelr.engine.what_if.events import events_of
from kelr.engine.what_if.logs import Logs, after_changes, directory_lost, returned
from kelr.engine.what_if.recovery import recoveries
from kelr.model import ConfigSource, ElectedBy, Loss, Snapshot, TopicConfig


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

    @property
    def elects(self) -> bool:
        return self.change.after.leader is not None and self.change.after.leader != self.change.before.leader


def after_assumption(moment: Moment, assumption: Assumption, snapshot: Snapshot) -> tuple[Moment, list[Ran], bool]:
    """What an assumption leads to, the runs that it made, and whether the controller failed at it."""
    ran: list[Ran] = []
    any_failed = False
    for event in events_of(assumption, moment.state, snapshot.cluster):
        moment, runs, failed = _after_event(moment, event, snapshot)
        ran += runs
        any_failed = any_failed or failed
    known = _known(snapshot, moment)
    recovered = tuple(recoveries(moment.state, known, assumption, moment.returned))
    ran += (Ran(change, _loss(known, change, moment.returned)) for change in recovered)
    state = written(moment.state, recovered)
    moment = replace(moment, state=state, logs=after_changes(moment.logs, recovered, state, None))
    return moment, ran, any_failed


def _known(snapshot: Snapshot, moment: Moment) -> Snapshot:
    """The snapshot with the logs and configs as they are by then."""
    return replace(snapshot, configs=moment.configs, logs=moment.logs)


def _after_event(moment: Moment, event: ev.Event, snapshot: Snapshot) -> tuple[Moment, list[Ran], bool]:
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
    ran = [Ran(change, _loss(_known(snapshot, moment), change, moment.returned)) for change in handled.changes]
    arrived = event.broker if isinstance(event, ev.BrokerUnfenced) else None
    logs = after_changes(moment.logs, handled.changes, handled.state, arrived)
    return replace(moment, state=handled.state, logs=logs), ran, handled.error == FAILED


def _loss(snapshot: Snapshot, change: Change, returned: Mapping[int, bool]) -> Loss | None:
    """What the election in a run loses; None where it elects nobody."""
    leader, rules = change.after.leader, change.ballot.rules
    if leader is None or leader == change.before.leader:
        return None
    holds_all: bool | None = None
    if leader in returned and elected_by(change) in {ElectedBy.ISR, ElectedBy.ELR}:
        # With ELR off an unclean restart leaves a replica in the ISR.
        holds_all = rules.elr or returned[leader]
    return loss_of_electing(case_of(snapshot, change.before, rules), leader, holds_all_committed=holds_all)


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
