"""What would become of a snapshot's partitions if this and that happened: `imagine`.

The controller's own state machine is led through the events (`kelr.controller.handle`); the result is a snapshot again,
so that everything that can be said of a cluster can be said of an imagined one. Of the logs only that is kept which
still holds then (`kelr.engine.what_if.logs`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kelr.controller import ControllerState, RuleSet, controller_state, snapshot_of
from kelr.engine.elections import elected_by
from kelr.engine.what_if.assumptions import RETURNS, Assumption, AssumptionError, Happening, rack_named
from kelr.engine.what_if.events import effects_of, rack_unknown, unfold
from kelr.engine.what_if.logs import as_heard
from kelr.engine.what_if.moment import Moment, Ran, after_assumption
from kelr.engine.what_if.prevention import prevention_of
from kelr.engine.what_if.words import NO_RECORD, NOTHING, change_in_words
from kelr.engine.words import joined
from kelr.model import (
    LOG_DIRECTORY,
    Broker,
    BrokerStatus,
    Cluster,
    ElectedBy,
    Loss,
    PartitionState,
    RecoveryQuorum,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What one assumption made of one partition."""

    before: PartitionState
    after: PartitionState
    text: str
    """In words: ``broker 3 is elected from the ELR, leader epoch 8 -> 9, ISR [] -> [3]``."""
    elected_by: ElectedBy | None = None
    """The rule that elected the leader it then has; None where nobody was elected."""
    loss: Loss | None = None
    """What that election loses, by the logs that were heard; None where nobody was elected."""
    prevention: str = ""
    """What to do before, where the election loses records or may: a sentence; empty where there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One assumption, and what it changed."""

    text: str
    """The assumption, as `parse_assumptions` reads it."""
    notes: tuple[str, ...]
    """How it applies: that the broker was down already, or is not registered."""
    changes: Mapping[TopicPartition, PartitionChange]
    """The partitions that it changed, by address."""
    brokers: Mapping[int, str] = field(default_factory=dict)
    """What became of the brokers that it happened to: ``broker 2 is down``."""
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Elections that were asked for and refused, by address: Kafka's name of the error."""
    outlook: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Partitions that nobody leads, and of whom recovery elects one once it knows their logs."""
    writes_config: bool = False
    """Whether it is a config that is written, of all topics at hand."""

    def told_of(self, address: TopicPartition, replicas: Collection[int]) -> str:
        """What it comes to for one partition, in words: what changed, or why nothing did."""
        change = self.changes.get(address)
        if change is not None and change.text != NOTHING:
            outlook = self.outlook.get(address)
            return change.text if outlook is None else f"{change.text}; {outlook}"
        if address in self.refused:
            return f"{NO_RECORD}: Kafka answers {self.refused[address]}"
        effects = [text for broker, text in self.brokers.items() if broker in replicas]
        if not (effects or self.writes_config):
            return NOTHING
        outlook = self.outlook.get(address)
        return "; ".join((NO_RECORD, *effects, *(() if outlook is None else (outlook,))))


@dataclass(frozen=True, slots=True)
class Imagined:
    """A snapshot as it would be after some assumptions, in the order in which they happen."""

    snapshot: Snapshot
    happened: tuple[Happened, ...]


def imagine(snapshot: Snapshot, assumptions: Sequence[Assumption], rules: RuleSet) -> Imagined:
    """Let assumptions happen to a snapshot, one after the other.

    Partitions are as the controller has them right after the last event; nothing is produced or replicated in between.

    Raises:
        AssumptionError: an assumption is about a broker or a rack that there is not; the message names those there are.
    """
    if not assumptions:
        return Imagined(snapshot, ())
    snapshot = replace(snapshot, cluster=_with_every_broker(snapshot))
    known = [_checked(assumption, snapshot.cluster, snapshot.partitions) for assumption in assumptions]
    return _imagine(snapshot, _as_disks_tell(known, snapshot), rules)


def _as_disks_tell(assumptions: Sequence[Assumption], snapshot: Snapshot) -> Iterator[Assumption]:
    """The assumptions, where a broker returns first whose disk lacks the mark of a clean shutdown: unclean, whatever
    was said, since Kafka counts that return so."""
    down = {broker.id for broker in snapshot.cluster.brokers if broker.status is not BrokerStatus.LIVE}
    unclean = {
        log.replica
        for answers in snapshot.logs.values()
        for log in answers
        if isinstance(log, ReplicaLog) and log.source == LOG_DIRECTORY and log.unclean_shutdown and log.replica in down
    }
    for assumption in assumptions:
        returns = assumption.happening is Happening.RETURNS and assumption.broker in unclean
        yield replace(assumption, happening=Happening.RETURNS_UNCLEAN) if returns else assumption
        if assumption.happening in RETURNS:
            unclean.discard(-1 if assumption.broker is None else assumption.broker)


def _checked(assumption: Assumption, cluster: Cluster, partitions: Iterable[PartitionState]) -> Assumption:
    """The assumption with its rack's name as the brokers tell it; refuses what is about nobody."""
    if assumption.rack is not None:
        racks = sorted({broker.rack for broker in cluster.brokers if broker.rack is not None})
        rack = rack_named(assumption.rack, racks)
        if rack is None:
            there_are = f"there are {joined(racks)}" if racks else "no broker tells its rack"
            untold = [broker for broker in cluster.brokers if broker.rack is None]
            down = tuple(broker.id for broker in untold if broker.status is not BrokerStatus.LIVE)
            if racks and down:
                there_are += f"; {rack_unknown(down)}: name the brokers"
            raise AssumptionError(f"{str(assumption)!r}: there is no rack {assumption.rack!r}; {there_are}")
        return replace(assumption, rack=rack)
    if assumption.broker is not None:
        brokers = {broker.id for broker in cluster.brokers} | {one for state in partitions for one in state.replicas}
        if assumption.broker not in brokers:
            raise AssumptionError(
                f"{str(assumption)!r}: broker {assumption.broker} is neither registered nor a replica of the partitions"
                f" at hand; {joined(sorted(brokers))} are"
            )
    return assumption


# The cluster, before and after.


def _with_every_broker(snapshot: Snapshot) -> Cluster:
    """The cluster with the brokers that partitions name and its source does not list, as it lists no fenced ones."""
    cluster = snapshot.cluster
    if cluster.lists_fenced_brokers:
        return cluster
    named = {replica for state in snapshot.partitions for replica in (*state.replicas, *(state.elr or ()))}
    unlisted = sorted(named - {broker.id for broker in cluster.brokers})
    return replace(cluster, brokers=(*cluster.brokers, *(Broker(id_, BrokerStatus.OFFLINE) for id_ in unlisted)))


# The events, one after the other.


def _imagine(snapshot: Snapshot, assumptions: Iterable[Assumption], rules: RuleSet) -> Imagined:
    start = controller_state(snapshot, rules)
    moment = Moment(start, as_heard(snapshot), snapshot.configs)
    happened = []
    for assumption in assumptions:
        notes = unfold(assumption, moment.state).notes
        before, passed = moment, after_assumption(moment, assumption, snapshot)
        moment = passed.moment
        if passed.failed:
            notes += ("Kafka's controller runs into an error of its own at this, and nothing changes",)
        changes = _changes(passed.ran, partial(prevention_of, assumption, before, snapshot))
        effects = effects_of(assumption, before.state, moment.state)
        config = assumption.happening.writes_config
        happened.append(Happened(str(assumption), notes, changes, effects, passed.refused, passed.outlook, config))
    end = snapshot_of(moment.state, replace(snapshot, configs=moment.configs, logs=moment.logs))
    brokers = tuple(_broker_after(broker, snapshot.cluster, start, moment.state) for broker in end.cluster.brokers)
    quorums = _quorums_after(end, snapshot, moment.returned)
    return Imagined(replace(end, cluster=replace(end.cluster, brokers=brokers), quorums=quorums), tuple(happened))


def _quorums_after(
    end: Snapshot, before: Snapshot, returned: Collection[int]
) -> Mapping[TopicPartition, RecoveryQuorum]:
    """What a metadata log would say then: a member that came back without a place in ISR or ELR may lack a tail."""
    if not (end.quorums and returned):
        return end.quorums
    quorums = dict(end.quorums)
    was = {state.address: state for state in before.partitions}
    for state in end.partitions:
        quorum = quorums.get(state.address)
        if quorum is None:
            continue
        fallen = {*returned} - {*state.isr, *(state.elr or ())}
        lost = {*quorum.last_known_elr, *(fallen & {*(was[state.address].elr or ())})}
        quorums[state.address] = replace(
            quorum,
            restarted=tuple(one for one in quorum.members if one in fallen or one in quorum.restarted),
            last_known_elr=tuple(replica for replica in state.replicas if replica in lost),
        )
    return quorums


def _broker_after(broker: Broker, before: Cluster, start: ControllerState, end: ControllerState) -> Broker:
    """The broker in the end: as its source told where nothing happened to it, with another epoch where it came back."""
    old, new = start.brokers.get(broker.id), end.brokers.get(broker.id)
    if old == new:
        return before.broker(broker.id) or broker
    same = old is not None and new is not None and old.epoch == new.epoch
    return broker if same else replace(broker, broker_epoch=None)


def _changes(ran: Sequence[Ran], preventing: Callable[[Ran], str]) -> Mapping[TopicPartition, PartitionChange]:
    """The runs by partition, those on one partition taken together.

    Args:
        preventing: says how to keep an election from losing records.
    """
    by_address: dict[TopicPartition, list[Ran]] = {}
    for run in ran:
        by_address.setdefault(run.change.after.address, []).append(run)
    return {address: _taken_together(by_address[address], preventing) for address in sorted(by_address)}


def _taken_together(ran: Sequence[Ran], preventing: Callable[[Ran], str]) -> PartitionChange:
    before, after = ran[0].change.before, ran[-1].change.after
    electing = next((run for run in reversed(ran) if run.elects), None)
    if electing is None or electing.change.after.leader != after.leader:
        return PartitionChange(before, after, change_in_words(before, after))
    by = elected_by(electing.change)
    text = change_in_words(before, after, elected_by=by, loss=electing.loss, held=electing.held)
    return PartitionChange(before, after, text, by, electing.loss, preventing(electing))
