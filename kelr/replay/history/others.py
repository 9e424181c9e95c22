"""Entries of brokers and of the cluster as a whole."""

from __future__ import annotations

from kelr.replay.changes import BrokerMoved, ConfigMoved, ControllerMoved, FeatureMoved, Restarted
from kelr.replay.history.attribution import Told
from kelr.replay.history.entries import BrokerEntry, BrokerEvent, ClusterEntry, ClusterEvent
from kelr.replay.history.min_isr import MATTERS
from kelr.replay.history.restarts import is_registration
from kelr.replay.image import BROKER, TOPIC


def other_entry(told: Told) -> BrokerEntry | ClusterEntry | None:
    """What a change of a broker or of the cluster is told as; None for what elections do not depend on."""
    change = told.change
    if isinstance(change, BrokerMoved):
        event = _broker_event(change)
        return (
            None
            if event is None
            else BrokerEntry(change.at, change.broker, event, change.before, change.after, told.restart)
        )
    if isinstance(change, ControllerMoved):
        return ClusterEntry(change.at, ClusterEvent.CONTROLLER, after=str(change.controller))
    if isinstance(change, FeatureMoved):
        return ClusterEntry(
            change.at, ClusterEvent.FEATURE, change.name, before=str(change.before), after=str(change.after)
        )
    if isinstance(change, ConfigMoved):
        return _config_entry(change)
    return ClusterEntry(change.at, ClusterEvent.CHECKPOINT) if isinstance(change, Restarted) else None


def _config_entry(change: ConfigMoved) -> ClusterEntry | None:
    of_all = change.resource_type == BROKER and not change.resource
    if change.key not in MATTERS or not (of_all or change.resource_type == TOPIC):
        return None
    topic = None if of_all else change.resource
    return ClusterEntry(change.at, ClusterEvent.CONFIG, change.key, topic, change.before, change.after)


def _broker_event(change: BrokerMoved) -> BrokerEvent | None:
    before, after = change.before, change.after
    if after is None:
        return BrokerEvent.UNREGISTERED
    if is_registration(change) or before is None:
        return BrokerEvent.REGISTERED
    if before.fenced is not after.fenced:
        return BrokerEvent.FENCED if after.fenced else BrokerEvent.UNFENCED
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        return BrokerEvent.SHUTDOWN_BEGUN
    if before.cordoned is not after.cordoned:
        return BrokerEvent.CORDONED if after.cordoned else BrokerEvent.UNCORDONED
    return BrokerEvent.DIRECTORIES_CHANGED if set(before.directories) != set(after.directories) else None
