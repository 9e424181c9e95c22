"""What the random histories are made of, and how each step is told to kelr's controller and to Kafka's.

Most steps are the controller's own events. Three are told in terms of a broker's log directories, numbered from 0,
which kelr's state knows only by what it lost: the world here keeps book of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kelr.controller import Election
from kelr.controller import events as ev
from kelr.controller.machine import handle
from kelr.controller.reach import NONE, Handled
from kelr.controller.state import ControllerState
from kelr.model import PartitionState, TopicPartition


@dataclass(frozen=True, slots=True)
class Register:
    """A new incarnation of a broker registers with these directories."""

    broker: int
    clean: bool
    directories: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FailDirectory:
    """The broker's next heartbeat names a directory that went offline."""

    broker: int
    directory: int


@dataclass(frozen=True, slots=True)
class AssignDirectory:
    """The broker tells the directory of a replica."""

    broker: int
    address: TopicPartition
    directory: int


Intent: TypeAlias = ev.Event | Register | FailDirectory | AssignDirectory


@dataclass(frozen=True, slots=True)
class World:
    """kelr's state of the controller, and where on the brokers' disks the replicas are."""

    state: ControllerState
    online: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The registered directories of each registered broker."""
    placed: Mapping[tuple[TopicPartition, int], int | None] = field(default_factory=dict)
    """The directory of each broker's replica; None where it is not assigned to one yet."""
    deleted: frozenset[tuple[TopicPartition, int, int]] = frozenset()
    """Partition, broker and directory of replicas that the controller did not forget with their topic."""

    def lies_in(self, broker: int, directory: int) -> frozenset[TopicPartition]:
        """The partitions whose replicas on this broker are in this directory, deleted ones included."""
        placed = {address for (address, of), where in self.placed.items() if of == broker and where == directory}
        deleted = {address for address, of, where in self.deleted if (of, where) == (broker, directory)}
        return frozenset(placed | deleted)

    def holds_namesake(self, broker: int, directory: int) -> bool:
        """Whether a deleted replica is in this directory, and the broker has a new one of the same name."""
        return any(
            (of, where) == (broker, directory) and (address, broker) in self.placed
            for address, of, where in self.deleted
        )

    def after(self, state: ControllerState, online: Mapping[int, tuple[int, ...]] | None = None) -> World:
        """The world with another state: replicas that came get the only directory of their broker, if it has one."""
        online = self.online if online is None else online
        online = {broker: directories for broker, directories in online.items() if broker in state.brokers}
        placed = {}
        for address, partition in state.partitions.items():
            for broker in partition.replicas:
                # A record is made with the directories from before the event.
                only = self.online.get(broker, ())
                default = only[0] if len(only) == 1 else None
                placed[address, broker] = self.placed.get((address, broker), default)
        gone = (
            at for at, partition in self.state.partitions.items() if at not in state.partitions and not partition.isr
        )
        replicas = ((at, broker) for at in gone for broker in self.state.partitions[at].replicas)
        kept = {(*key, where) for key in replicas if (where := self.placed[key]) is not None}
        return World(state, online, placed, self.deleted | kept)


@dataclass(frozen=True, slots=True)
class Told:
    """One step as both sides are told it, and what became of kelr's side."""

    line: str
    handled: Handled
    world: World
    event: ev.Event | None
    """What kelr's controller was told; None for nothing."""


def tell(world: World, intent: Intent) -> Told:
    """Let a step happen to kelr's controller, and say it in the words of the Java driver."""
    if isinstance(intent, Register):
        return _register(world, intent)
    if isinstance(intent, FailDirectory):
        return _fail_directory(world, intent)
    if isinstance(intent, AssignDirectory):
        return _assign_directory(world, intent)
    handled = handle(world.state, intent)
    return Told(_LINES[type(intent)](world.state, intent), handled, world.after(handled.state), intent)


def _register(world: World, intent: Register) -> Told:
    broker, before = intent.broker, world.state.brokers.get(intent.broker)
    lost = frozenset(
        address
        for (address, of), where in world.placed.items()
        if of == broker and where is not None and where not in intent.directories
    )
    epoch = world.state.next_epoch
    event = ev.BrokerRegistered(broker, clean=intent.clean, lost_directories=lost, epoch=epoch)
    handled = handle(world.state, event)
    previous = (before.epoch if before else 1) if intent.clean else -1
    line = f"register|{broker}|{epoch}|{previous}|{epoch}|{_ids(intent.directories)}|"
    if handled.error != NONE:
        return Told(line, handled, world.after(handled.state), event)
    return Told(line, handled, world.after(handled.state, {**world.online, broker: intent.directories}), event)


def _fail_directory(world: World, intent: FailDirectory) -> Told:
    broker, registration = intent.broker, world.state.brokers.get(intent.broker)
    fenced = registration is not None and registration.fenced
    if registration is not None and registration.in_controlled_shutdown and not fenced:
        # Its heartbeats go on asking for the shutdown; one that tells two things at once is left out.
        return tell(world, ev.ControlledShutdown(broker))
    online = world.online.get(broker, ())
    # A broker whose last directory fails stops without telling. A deleted replica whose name is in use again could not
    # be told from the new one.
    untold = online == (intent.directory,) or world.holds_namesake(broker, intent.directory)
    failed = () if untold else (intent.directory,)
    line = _heartbeat(world.state, broker, want_fence=fenced, offline=failed)
    if registration is not None and (not failed or intent.directory not in online):
        # A heartbeat repeats what it told before until the broker restarts.
        return Told(line, Handled(world.state), world, None)
    event = ev.DirectoryFailed(broker, world.lies_in(broker, intent.directory))
    handled = handle(world.state, event)
    if handled.error != NONE:
        return Told(line, handled, world.after(handled.state), event)
    left = tuple(directory for directory in online if directory != intent.directory)
    return Told(line, handled, world.after(handled.state, {**world.online, broker: left}), event)


def _assign_directory(world: World, intent: AssignDirectory) -> Told:
    broker, registration = intent.broker, world.state.brokers.get(intent.broker)
    line = f"assign|{broker}|{registration.epoch if registration else 1}|{intent.directory}|{intent.address}"
    key = (intent.address, broker)
    online = intent.directory in world.online.get(broker, ())
    event = ev.DirectoryAssigned(broker, intent.address, online=online, moved=world.placed.get(key) != intent.directory)
    handled = handle(world.state, event)
    after = world.after(handled.state)
    if registration and key in after.placed:
        after = replace(after, placed={**after.placed, key: intent.directory})
    return Told(line, handled, after, event)


def _heartbeat(
    state: ControllerState,
    broker: int,
    *,
    want_fence: bool = False,
    want_shut_down: bool = False,
    offline: tuple[int, ...] = (),
) -> str:
    registration = state.brokers.get(broker)
    epoch = 1 if registration is None else registration.epoch
    return f"heartbeat|{broker}|{epoch}|{int(want_fence)}|{int(want_shut_down)}|{_ids(offline)}|1|1"


def _alter(state: ControllerState, event: ev.PartitionAltered) -> str:
    registration, partition = state.brokers.get(event.leader), state.partitions.get(event.address)
    right = 1 if registration is None else registration.epoch
    sender_epoch = right if event.leader_broker_epoch is None else event.leader_broker_epoch
    known = PartitionState("", 0, None, 0, (), (), partition_epoch=0) if partition is None else partition
    leader_epoch = known.leader_epoch if event.leader_epoch is None else event.leader_epoch
    partition_epoch = known.partition_epoch if event.partition_epoch is None else event.partition_epoch
    isr = ",".join(f"{member}:{event.member_epochs.get(member, -1)}" for member in event.isr)
    address = f"{event.address.topic}|{event.address.partition}"
    epochs = f"{leader_epoch}|{partition_epoch}"
    return f"alter|{event.leader}|{sender_epoch}|{address}|{epochs}|{int(event.recovering)}|{isr}"


def _elect(_state: ControllerState, event: ev.LeadersElected) -> str:
    kind = "UNCLEAN" if event.election is Election.UNCLEAN else "PREFERRED"
    return f"elect|{kind}|{'*' if event.partitions is None else ','.join(map(str, event.partitions))}"


def _reassign(_state: ControllerState, event: ev.Reassigned) -> str:
    replicas = "-" if event.replicas is None else _ids(event.replicas)
    return f"reassign|{event.address.topic}|{event.address.partition}|{replicas}|1"


def _config(_state: ControllerState, event: ev.ConfigWritten | ev.ConfigDeleted) -> str:
    written = []
    if isinstance(event, ev.ConfigDeleted):
        written += ["min.insync.replicas=-"] if event.min_isr else []
        written += ["unclean.leader.election.enable=-"] if event.unclean_leader_election else []
    else:
        written += [] if event.min_isr is None else [f"min.insync.replicas={event.min_isr}"]
        unclean = event.unclean_leader_election
        written += [] if unclean is None else [f"unclean.leader.election.enable={str(unclean).lower()}"]
    return f"config|{event.topic or ''}|{','.join(written)}"


_LINES: Mapping[type, Callable[[ControllerState, Any], str]] = {
    ev.TopicCreated: lambda _state, event: f"create|{event.topic}|{';'.join(map(_ids, event.replicas))}|",
    ev.TopicDeleted: lambda _state, event: f"delete|{event.topic}",
    ev.BrokerFenced: lambda _state, event: f"expire|{event.broker}",
    ev.BrokerUnfenced: lambda state, event: _heartbeat(state, event.broker),
    ev.ControlledShutdown: lambda state, event: _heartbeat(state, event.broker, want_shut_down=True),
    ev.BrokerUnregistered: lambda _state, event: f"unregister|{event.broker}",
    ev.PartitionAltered: _alter,
    ev.LeadersElected: _elect,
    ev.UncleanElectionTask: lambda _state, _event: "electunclean",
    ev.PreferredElectionTask: lambda _state, _event: "electpreferred",
    ev.Reassigned: _reassign,
    ev.ConfigWritten: _config,
    ev.ConfigDeleted: _config,
    ev.ElrFeature: lambda _state, event: f"feature|{int(event.on)}",
}


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
