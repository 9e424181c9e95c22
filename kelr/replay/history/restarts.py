"""Whether a broker that registers had an unclean shutdown: its record does not say it, ELRs show it.

A registration carries the epoch of the broker's last one where it was shut down cleanly. The controller compares, and
does not write down what it found. With ELR on, it takes the broker out of every ISR that it is still in and, after an
unclean shutdown alone, out of every ELR too; after a clean one the broker may go from an ISR into the ELR. Records of
this stand in front of the registration, in its batch.

Source: ClusterControlManager.registerBroker, ReplicationControlManager.handleBrokerShutdown, BrokerLifecycleManager.
"""

from __future__ import annotations

from collections.abc import Sequence

from kelr.model import ELR_FEATURE, PartitionState
from kelr.replay.changes import BrokerMoved, PartitionMoved
from kelr.replay.history.entries import Restart
from kelr.replay.history.min_isr import effective_min_isr
from kelr.replay.image import MetadataImage


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
    if image.features.get(ELR_FEATURE, 0) < 1:
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
    min_isr = effective_min_isr(image, after.topic)
    below = min_isr is not None and len(after.isr) < min_isr
    return Restart.UNCLEAN if below and not after.recovering else None
