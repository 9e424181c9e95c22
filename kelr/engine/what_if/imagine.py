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
from kelr.engine.loss_words import cost_in_words
from kelr.engine.what_if.assumptions import (
    RETURNS,
    Assumption,
    AssumptionError,
    Happening,
    rack_named,
)
from kelr.engine.what_if.events import effects_of, rack_unknown, unfold
from kelr.engine.what_if.logs import as_heard
from kelr.engine.what_if.moment import Moment, Ran, after_assumption
from kelr.engine.what_if.prevention import prevention_of
from kelr.engine.words import ids, joined
from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ElectedBy,
    Loss,
    LossCertainty,
    PartitionState,
    RecoveryQuorum,
    Snapshot,
    TopicPartition,
)

# What became of a partition, in words.

NOTHING = "nothing changes here"
"""Said of a partition that an assumption does not touch."""
NO_RECORD = "no record of the partition is written"
"""Said of a partition that the controller leaves as it is, while something around it changes."""

_BY = {
    ElectedBy.ISR: " from the ISR",
    ElectedBy.ELR: " from the ELR",
    ElectedBy.LAST_KNOWN_LEADER: " as last known leader",
    ElectedBy.UNCLEAN: " uncleanly",
    ElectedBy.LONGEST_LOG: " by its log",
}
_SETS = (("replicas", "replicas"), ("isr", "ISR"), ("elr", "ELR"), ("last_known_elr", "LastKnownELR"))


def change_in_words(
    before: PartitionState,
    after: PartitionState,
    *,
    elected_by: ElectedBy | None = None,
    loss: Loss | None = None,
    held: str = "",
) -> str:
    """``broker 3 is elected from the ELR, leader epoch 8 -> 9, ISR [] -> [3]; nothing committed is lost``.

    Args:
        held: what another replica's log holds, where the loss cannot be counted.
    """
    parts = [*_leader(before, after, elected_by), *_sets(before, after)]
    if not parts:
        return NOTHING
    cost = f"; {_cost(loss)}" if loss is not None else ""
    truncates = f"; {held} and truncates to it" if held else ""
    return f"{', '.join(parts)}{cost}{truncates}"


def _leader(before: PartitionState, after: PartitionState, elected_by: ElectedBy | None) -> Iterator[str]:
    if after.leader is None and before.leader is not None:
        yield f"no leader any more (it was broker {before.leader})"
    elif after.leader is not None and (after.leader != before.leader or elected_by is not None):
        again = " again" if after.leader == before.leader else ""
        yield f"broker {after.leader} is elected{again}{_BY.get(elected_by, '') if elected_by else ''}"
    if after.leader_epoch != before.leader_epoch:
        yield f"leader epoch {before.leader_epoch} -> {after.leader_epoch}"


def _sets(before: PartitionState, after: PartitionState) -> Iterator[str]:
    for name, shown in _SETS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{shown} {ids(old)} -> {ids(new)}"


def _cost(loss: Loss) -> str:
    return "nothing committed is lost" if loss.grade is LossCertainty.PROVEN_NONE else f"it {cost_in_words(loss)}"


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
    either_way: tuple[int, ...] = ()
    """Brokers that return, and of which nothing tells how they stopped: another way of stopping is imagined by itself
    (`imagine`, ``clean``)."""


def imagine(snapshot: Snapshot, assumptions: Sequence[Assumption], rules: RuleSet, *, clean: bool = True) -> Imagined:
    """Let assumptions happen to a snapshot, one after the other.

    Partitions are as the controller has them right after the last event; nothing is produced or replicated in between.

    Args:
        clean: how brokers are taken to have stopped that return, where neither the assumption nor anything that is
            known tells it (`Imagined.either_way`).

    Raises:
        AssumptionError: an assumption is about a broker or a rack that there is not; the message names those there are.
    """
    if not assumptions:
        return Imagined(snapshot, ())
    snapshot = replace(snapshot, cluster=_with_every_broker(snapshot))
    known = [_checked(assumption, snapshot.cluster, snapshot.partitions) for assumption in assumptions]
    resolved = list(_in_their_manner(known, snapshot, rules, clean=clean))
    either_way = tuple(dict.fromkeys(broker for one in resolved for broker in one.unknown))
    return replace(_imagine(snapshot, resolved, rules), either_way=either_way)


# How brokers that return have stopped.


_UNCLEAN = "by its marks on disk the shutdown of {} counts as unclean"
_NOT_REGISTERED = "{} is not registered, so Kafka counts its return as unclean"
_NOT_KNOWN = "whether Kafka takes the stop of {} for clean is not known"


@dataclass(frozen=True, slots=True)
class _Resolved:
    """An assumption; a return with the manner in which the controller will take it."""

    assumption: Assumption
    note: str = ""
    unknown: tuple[int, ...] = ()
    """The brokers of which nothing tells how they stopped."""


def _in_their_manner(
    assumptions: Iterable[Assumption], snapshot: Snapshot, rules: RuleSet, *, clean: bool
) -> Iterator[_Resolved]:
    """The assumptions, each return as clean or unclean as the broker's last stop was.

    Its disk tells it, or the assumption by which it went down. A disk without a mark of a clean shutdown that counts
    (`kelr.sources.collected`) makes its return unclean whatever is said, since Kafka counts it so; with ELR on so does
    a registration that is gone (ClusterControlManager.registerBroker).
    """
    named = (replica for state in snapshot.partitions for replica in state.replicas)
    listed = (broker.id for broker in snapshot.cluster.brokers)
    status = {broker: snapshot.cluster.status(broker) for broker in (*listed, *named)}
    down = {broker for broker, known in status.items() if known is not BrokerStatus.LIVE}
    on_disk = {
        log.replica: log.unclean_shutdown
        for answers in snapshot.logs.values()
        for log in answers
        if log.unclean_shutdown is not None and log.replica in down
    }
    unclean = {broker for broker, known in on_disk.items() if known}
    unregistered = {one for one in down if rules.elr and status[one] is BrokerStatus.UNREGISTERED}
    stopped: dict[int, bool | None] = dict.fromkeys(down)
    """Those that are down, and whether they stopped cleanly; None where nothing tells it."""
    stopped |= {broker: not known for broker, known in on_disk.items()}
    stopped |= dict.fromkeys(unregistered, False)
    notes = {**dict.fromkeys(unclean, _UNCLEAN), **dict.fromkeys(unregistered, _NOT_REGISTERED)}
    for assumption in assumptions:
        happening = assumption.happening
        brokers = _concerned(assumption, snapshot.cluster, stopped)
        if happening in RETURNS:
            yield from _returning(assumption, brokers, stopped, notes, clean=clean)
            for broker in brokers:
                stopped.pop(broker, None)
                notes.pop(broker, None)
            continue
        yield _Resolved(assumption)
        for broker in brokers:
            if happening is Happening.UNREGISTERED and rules.elr:
                stopped[broker], notes[broker] = False, _NOT_REGISTERED
            elif broker not in stopped and happening in {Happening.FAILS, Happening.STOPS}:
                stopped[broker] = happening is Happening.STOPS


def _concerned(assumption: Assumption, cluster: Cluster, down: Collection[int]) -> tuple[int, ...]:
    """The brokers of an assumption; of a rack those that are down, or up, as `unfold` takes them."""
    if not assumption.happening.of_brokers or assumption.rack is None:
        return () if assumption.broker is None else (assumption.broker,)
    coming = assumption.happening in RETURNS
    members = (one.id for one in cluster.brokers if one.rack == assumption.rack)
    return tuple(sorted(one for one in members if (one in down) is coming))


def _returning(
    assumption: Assumption,
    brokers: Sequence[int],
    stopped: Mapping[int, bool | None],
    notes: Mapping[int, str],
    *,
    clean: bool,
) -> Iterator[_Resolved]:
    """One assumption for all that return in the same manner, or one for each of them."""
    said = {Happening.RETURNS_CLEAN: True, Happening.RETURNS_UNCLEAN: False}.get(assumption.happening)
    alike: dict[tuple[Happening, str], list[int]] = {}
    unknown = []
    for broker in brokers:
        known = False if broker in notes else stopped.get(broker) if said is None else said
        happening = Happening.RETURNS_CLEAN if (clean if known is None else known) else Happening.RETURNS_UNCLEAN
        note = _NOT_KNOWN if known is None and broker in stopped else notes.get(broker, "") if said is not False else ""
        alike.setdefault((happening, note), []).append(broker)
        unknown += [broker] if known is None else []
    for (happening, note), same in alike.items() or (((assumption.happening, ""), []),):
        told = note.format(joined(same))
        if assumption.rack is not None and len(alike) <= 1:
            yield _Resolved(replace(assumption, happening=happening), told, tuple(unknown))
            continue
        for broker in same:
            one = Assumption(happening, broker=broker)
            yield _Resolved(one, note.format(broker), (broker,) if broker in unknown else ())


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


def _imagine(snapshot: Snapshot, resolved: Iterable[_Resolved], rules: RuleSet) -> Imagined:
    start = controller_state(snapshot, rules)
    moment = Moment(start, as_heard(snapshot), snapshot.configs)
    happened = []
    for one in resolved:
        assumption = one.assumption
        notes = ((one.note,) if one.note else ()) + unfold(assumption, moment.state).notes
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
