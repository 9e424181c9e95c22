"""The controller as a state machine: `handle` takes a state and an event, and gives the next state and the answer.

Which partitions an event reaches is decided in `kelr.controller.brokers` and `kelr.controller.requests`, what a run
makes of one partition in `kelr.controller.change`, and who is elected in `kelr.controller.election`. Apache's own
controller is run beside this one with random histories (`docs/testing.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from kelr.controller import brokers, requests
from kelr.controller import events as ev
from kelr.controller.reach import FAILED, ControllerFailedError, Handled, refused
from kelr.controller.state import ControllerState


def handle(state: ControllerState, event: ev.Event) -> Handled:
    """Let one event happen."""
    try:
        return _HANDLERS[type(event)](state, event)
    except ControllerFailedError:
        # A task that fails is tried again; at a request the controller resigns, and forgets what is not on record.
        task = isinstance(event, _TASKS)
        return refused(state if task else replace(state, stopping=frozenset()), FAILED)


def history(state: ControllerState, events: Iterable[ev.Event]) -> Iterator[Handled]:
    """Let events happen one after the other."""
    for event in events:
        handled = handle(state, event)
        yield handled
        state = handled.state


_TASKS = (ev.BrokerFenced, ev.UncleanElectionTask, ev.PreferredElectionTask)

_HANDLERS: dict[type, Callable[[ControllerState, Any], Handled]] = {
    ev.TopicCreated: requests.topic_created,
    ev.TopicDeleted: requests.topic_deleted,
    ev.BrokerRegistered: brokers.registered,
    ev.BrokerFenced: brokers.fenced,
    ev.BrokerUnfenced: brokers.unfenced,
    ev.ControlledShutdown: brokers.controlled_shutdown,
    ev.BrokerCordoned: brokers.cordoned,
    ev.BrokerUnregistered: brokers.unregistered,
    ev.DirectoryFailed: brokers.directory_lost,
    ev.DirectoryAssigned: brokers.directory_assigned,
    ev.PartitionAltered: requests.partition_altered,
    ev.LeadersElected: requests.leaders_elected,
    ev.UncleanElectionTask: requests.unclean_election_task,
    ev.PreferredElectionTask: requests.preferred_election_task,
    ev.Reassigned: requests.reassigned,
    ev.ConfigWritten: requests.config_written,
    ev.ConfigDeleted: requests.config_deleted,
    ev.ElrFeature: requests.elr_feature,
    ev.MetadataVersion: requests.metadata_version,
}
