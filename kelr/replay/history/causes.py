"""Causes: the election that made a leader, the recovery of a step, what a restart was, and whose min ISR holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import RecoveryStrategy, kip966_strategy, strategy_named
from kelr.model import RECOVERY_FEATURE, PartitionState, TopicPartition, controller_min_isr
from kelr.replay.history.entries import ElectedAs, ReassignmentStep, Restart
from kelr.replay.image import BROKER, MIN_ISR, STRATEGY, TOPIC, UNCLEAN, MetadataImage
from kelr.replay.records import BrokerMoved, PartitionMoved

# Min ISR as the metadata log has it.


MATTERS = frozenset({MIN_ISR, UNCLEAN, STRATEGY})
"""Configs that elections and ELRs depend on."""


def written_config(image: MetadataImage, topic: str, key: str) -> str | None:
    """A topic's config: its own, else the cluster-wide dynamic one; None where neither is on record, so that it is in
    the nodes' files."""
    own = image.config(TOPIC, topic, key)
    return own if own is not None else image.config(BROKER, "", key)


def config_min_isr(image: MetadataImage, topic: str) -> int | None:
    """The topic's min.insync.replicas; None where it is not on record.

    With ELR on, the cluster-wide value is always on record (ConfigurationControlManager.maybeGenerateElrSafetyRecords).
    """
    text = written_config(image, topic, MIN_ISR)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def min_isr_of_controller(image: MetadataImage, topic: str) -> int | None:
    """The min ISR that the controller keeps the topic's ELRs by; None where that is not on record."""
    topic_id = image.names.get(topic)
    first = None if topic_id is None else image.topics[topic_id].partitions.get(0)
    return None if first is None else controller_min_isr(config_min_isr(image, topic), len(first.replicas))


def unclean_allowed(image: MetadataImage, topic: str) -> bool | None:
    """unclean.leader.election.enable as it is on record; None where only the controller's file has it."""
    text = written_config(image, topic, UNCLEAN)
    return None if text is None else text.strip().lower() == "true"


# What kind of replica was elected, and what a record did to the assignment: told by the state before and after.
#
# Source: PartitionChangeBuilder (electLeader, tryElection, completeReassignmentIfNeeded), PartitionReassignmentReplicas
# and PartitionReassignmentRevert of Apache Kafka.


def elected_as(
    before: PartitionState, after: PartitionState, *, struck: int | None = None, recovers: bool = False
) -> ElectedAs | None:
    """What the new leader was; None where there is none, or no new one.

    An unclean election leaves the elected replica alone in the ISR, with an empty ELR, and marks it as recovering; so
    does that of the last known leader, which comes first and only with empty ISR and ELR.

    Args:
        struck: the broker that the same event took out of the ELR, before anybody was elected.
        recovers: whether the Unclean Recovery Manager takes the place of the unclean election (KIP-966).
    """
    new = after.leader
    if new is None or new == before.leader:
        return None
    marked = bool(after.recovering) and after.isr == (new,)
    if marked and (not before.recovering or new == struck or new not in (*before.isr, *(before.elr or ()))):
        if recovers:
            return ElectedAs.UNCLEAN_RECOVERY
        waits = [member for member in (*before.isr, *(before.elr or ())) if member != struck]
        # Kafka forgets the last known leader when it leads again; with ELR off it looks at none, and forgets none.
        # The KIP's set, while its recovery manager is off, has the last leader in front of others.
        known = (before.last_known_elr or ())[:1] == (new,) and not waits and new not in (after.last_known_elr or ())
        return ElectedAs.LAST_KNOWN_LEADER if known else ElectedAs.UNCLEAN
    if new in before.isr:
        return ElectedAs.ISR
    if new in (before.elr or ()):
        return ElectedAs.ELR
    grown = bool(set(after.isr) - set(before.isr))
    if grown and new in after.isr and reassignment_step(before, after) is ReassignmentStep.COMPLETED:
        # The report that brought it into the ISR also completed the reassignment that takes the old leader out.
        return ElectedAs.ISR
    return ElectedAs.UNKNOWN


def reassignment_step(before: PartitionState, after: PartitionState) -> ReassignmentStep | None:
    """What the record did to the assignment; None where it did nothing."""
    was, now = _moving(before), _moving(after)
    if was and not now:
        if after.replicas == _without(before.replicas, before.removing or ()):
            return ReassignmentStep.COMPLETED
        if after.replicas == _without(before.replicas, before.adding or ()):
            return ReassignmentStep.CANCELLED
        return ReassignmentStep.CHANGED
    if now and not was:
        return ReassignmentStep.BEGUN
    if was and (before.adding, before.removing) != (after.adding, after.removing):
        return ReassignmentStep.CHANGED
    if before.replicas == after.replicas:
        return None
    if set(before.replicas) == set(after.replicas):
        return ReassignmentStep.REORDERED
    return ReassignmentStep.CHANGED if was else ReassignmentStep.AT_ONCE


def _moving(state: PartitionState) -> bool:
    return bool(state.adding or state.removing)


def _without(replicas: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)


# What a metadata log tells of an unclean recovery: by which strategy, whose answers it took, and who asked for it.
#
# The Unclean Recovery Manager "does not store anything in the metadata log" (KIP-966, "Unclean recovery", controller
# failover): all of this follows from configs, sets and brokers that are on record; what does not is said not to be.


_NOT_TOLD = "whether by itself or by ElectLeaders is not on record"


def has_recovery_manager(image: MetadataImage) -> bool:
    """Whether KIP-966's recovery manager elects in place of unclean elections, by its feature flag."""
    return image.features.get(RECOVERY_FEATURE, 0) >= 1


def told_of(image: MetadataImage, before: PartitionState) -> str:
    """The recovery of a partition in words: strategy, answers, who asked.

    Args:
        before: the partition before it was recovered.
    """
    strategy, waits_for = _strategy(image, before.topic), _waits_for(image, before)
    name = "not on record (balanced, unless a controller's file has another)" if strategy is None else str(strategy)
    head = f"unclean recovery; unclean.recovery.strategy is {name}"
    by_itself = strategy is RecoveryStrategy.AGGRESSIVE or (strategy is RecoveryStrategy.BALANCED and not waits_for)
    if by_itself or strategy is None:
        return f"{head}; {_answers(image, before, strategy, waits_for)}; {_NOT_TOLD}"
    why = "" if strategy is RecoveryStrategy.NONE else f", since balanced waits for {_brokers(waits_for)}"
    return f"{head}; ElectLeaders asked for it{why}; whose logs answered is not on record"


def _strategy(image: MetadataImage, topic: str) -> RecoveryStrategy | None:
    """The strategy as it is on record; None where only the controller's file has it."""
    allowed = unclean_allowed(image, topic)
    found = strategy_named(written_config(image, topic, STRATEGY))
    return found if found is not None or allowed is None else kip966_strategy(allowed)


def _quorum(before: PartitionState) -> tuple[int, ...]:
    """Whose answers balanced needs: LastKnownELR, or everybody's where it names nobody."""
    known = before.last_known_elr or ()
    return tuple(replica for replica in before.replicas if replica in known) or before.replicas


def _waits_for(image: MetadataImage, before: PartitionState) -> tuple[int, ...]:
    """Whom a balanced recovery would still have waited for: members of ISR and ELR, else fenced ones of its quorum."""
    members = tuple(dict.fromkeys((*before.isr, *(before.elr or ()))))
    return members or tuple(replica for replica in _quorum(before) if not _live(image, replica))


def _answers(
    image: MetadataImage, before: PartitionState, strategy: RecoveryStrategy | None, waits_for: tuple[int, ...]
) -> str:
    if strategy is RecoveryStrategy.BALANCED:
        return f"{_brokers(_quorum(before))} had answered"
    live = tuple(replica for replica in before.replicas if _live(image, replica))
    text = f"whose logs answered is not on record (live: {', '.join(map(str, live)) or 'none'})"
    return f"{text}; balanced would have waited for {_brokers(waits_for)}" if waits_for else text


def _live(image: MetadataImage, broker: int) -> bool:
    known = image.brokers.get(broker)
    return known is not None and known.active


def _brokers(ids: tuple[int, ...]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


# Whether a broker that registers had an unclean shutdown: its record does not say it, ELRs show it.
#
# A registration carries the epoch of the broker's last one where it was shut down cleanly. The controller compares, and
# does not write down what it found. With ELR on, it takes the broker out of every ISR that it is still in and, after an
# unclean shutdown alone, out of every ELR too; after a clean one the broker may go from an ISR into the ELR. Records of
# this stand in front of the registration, in its batch.
#
# Source: ClusterControlManager.registerBroker, ReplicationControlManager.handleBrokerShutdown, BrokerLifecycleManager.


def restart_of(
    change: BrokerMoved, moves: Sequence[PartitionMoved], *, in_elrs: int, image: MetadataImage
) -> Restart | None:
    """What a registration tells of the shutdown before it; None for a change that is no registration.

    Args:
        moves: what its batch did to partitions for it.
        in_elrs: of how many ELRs the broker is a member afterwards.
    """
    if change.after is None or not is_registration(change):
        return None
    if change.before is None:
        return Restart.FIRST
    if not is_new_incarnation(change):
        return Restart.SAME_INCARNATION
    if not image.keeps_elr:
        return Restart.NOT_SHOWN
    found = {_shown_by(move, change.broker, image) for move in moves} - {None}
    if in_elrs:
        found.add(Restart.CLEAN)
    return next(iter(found)) if len(found) == 1 and None not in found else Restart.NOT_SHOWN


def is_registration(change: BrokerMoved) -> bool:
    """Whether it is by a RegisterBrokerRecord: other records leave the registration as it was."""
    return change.after is not None and (
        change.before is None or change.after.registration is not change.before.registration
    )


def is_new_incarnation(change: BrokerMoved) -> bool:
    """Whether it has another broker epoch than the one before."""
    return (
        change.after is not None
        and change.before is not None
        and change.after.registration.epoch != change.before.registration.epoch
    )


def struck_from_elr(broker: int, before: PartitionState, after: PartitionState) -> bool:
    """Whether a broker, and nobody else, lost its place in an ELR although the ISR has not grown."""
    lost = set(before.elr or ()) - set(after.elr or ())
    return lost == {broker} and set(after.isr) <= set(before.isr)


def struck_and_elected(broker: int, before: PartitionState, after: PartitionState) -> bool:
    """Whether a broker was struck from an ELR and elected as the last known leader in one record, dead as it is: Kafka
    4.0 does that (KAFKA-19522). No request could have: it is still fenced."""
    elected = before.leader is None and after.leader == broker and after.isr == (broker,) and bool(after.recovering)
    return elected and broker in (before.elr or ())


def _shown_by(move: PartitionMoved, broker: int, image: MetadataImage) -> Restart | None:
    before, after = move.before, move.after
    if before is None or after is None:
        return None
    if struck_from_elr(broker, before, after) or struck_and_elected(broker, before, after):
        return Restart.UNCLEAN
    if broker not in before.isr or broker in after.isr:
        return None
    if broker in (after.elr or ()):
        return Restart.CLEAN
    min_isr = min_isr_of_controller(image, after.topic)
    below = min_isr is not None and len(after.isr) < min_isr
    return Restart.UNCLEAN if below and not after.recovering else None


# Which replica was put first just before an election: the trace of a designation.


JUST_BEFORE_MS = 600_000
"""An election so long after the replicas were reordered is taken to have nothing to do with it."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A reorder that nobody was elected by yet."""

    first: int
    """Who was put first; -1: nobody."""
    original: tuple[int, ...]
    """The order before it."""
    at_ms: int


class Reorders:
    """Remembers reorders until somebody is elected by them, or the old order is restored.

    Args:
        remembered: those of another one, which this one goes on from.
    """

    def __init__(self, remembered: Mapping[TopicPartition, Reordered]) -> None:
        self._open = dict(remembered)

    @property
    def open(self) -> Mapping[TopicPartition, Reordered]:
        """What is remembered at this moment."""
        return self._open

    def put_first(self, after: PartitionState, at_ms: int) -> bool:
        """Whether the replica that now leads was put first in the assignment just before."""
        found = self._open.get(after.address)
        return found is not None and found.first == after.leader and at_ms - found.at_ms <= JUST_BEFORE_MS

    def deleted(self, address: TopicPartition) -> None:
        """A partition is no more; another one may come to have its name."""
        self._open.pop(address, None)

    def moved(self, before: PartitionState, after: PartitionState, step: ReassignmentStep | None, at_ms: int) -> None:
        """A partition changed."""
        address = after.address
        if step is ReassignmentStep.REORDERED:
            known = self._open.pop(address, None)
            recent = known is not None and at_ms - known.at_ms <= JUST_BEFORE_MS
            original = known.original if known is not None and recent else before.replicas
            if after.replicas != original and after.leader != after.replicas[0]:
                self._open[address] = Reordered(after.replicas[0], original, at_ms)
        elif step is not None:
            self._open.pop(address, None)
        elif after.leader != before.leader and address in self._open:
            # The order that is restored after the election puts nobody first.
            known = self._open[address]
            self._open[address] = Reordered(-1, known.original, known.at_ms)
