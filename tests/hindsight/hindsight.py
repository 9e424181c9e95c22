"""What happens after each thing that could be done: the incident goes on from the same moment, once for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kelr.controller import Election, ManualRecovery, RecoveryEvent, Stepped, events
from kelr.controller.reach import NONE
from kelr.model import ElectionType, PartitionState, TopicPartition
from tests.hindsight.world import QUIET_MS, World, everyone_back

States = Mapping[TopicPartition, PartitionState]

Log = Mapping[int, int]
"""Offset to record."""


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that could be done about a partition: brokers return, one after the other; then an election."""

    returns: tuple[int, ...] = ()
    election: ElectionType | None = None
    """PREFERRED, UNCLEAN or DESIGNATION; by longest log only where the controller itself recovers so."""
    desired: int = -1
    """The replica to designate; -1 for another election."""

    def __str__(self) -> str:
        parts = [f"broker {broker} returns" for broker in self.returns]
        if self.election is not None:
            parts.append(f"{self.election}{f' of {self.desired}' if self.desired >= 0 else ''}")
        return ", then ".join(parts) or "wait"


WAIT = Option()
"""Nothing is done for ten minutes, so that Kafka's periodic tasks have run."""
TEN_MINUTES_MS = 600_000


@dataclass(frozen=True, slots=True)
class Truth:
    """One partition as it really was when kelr was asked. Records are ids that no two records share."""

    state: PartitionState
    logs: Mapping[int, Log]
    """What each replica's log holds, those on the disks of dead brokers too."""
    committed: frozenset[int]
    """Acknowledged with acks=all."""
    acknowledged: frozenset[int]
    """Acknowledged with acks=1."""
    visible: frozenset[int]
    """Were below the high watermark of a leader."""
    deleted: frozenset[int]
    """Deleted on purpose, as a log start tells that can be seen."""
    deleted_unseen: frozenset[int]
    """Deleted on purpose, and nothing that can be seen tells so: on the log that holds them they look like any."""
    given_up: frozenset[int]
    """What was promised and an earlier election gave up."""
    clean: Mapping[int, bool | None]
    """For each absent broker, whether its next registration counts as clean (or none is needed); None for one that goes
    on as it is, with a failed log directory."""
    torn: frozenset[int]
    """Replicas whose log lost something on its disk."""
    marks: Mapping[int, int]
    """`Seen.marks`."""
    offsets: Mapping[int, int]
    """The offset of each record that was ever produced to it."""
    serving: int | None = None
    """The leader, where one leads and runs: what only other logs hold was lost when it was elected."""
    outdated: frozenset[int] = frozenset()
    """`Seen.outdated`."""
    promised_with: Mapping[int, int] = field(default_factory=dict)
    """`World.promised_with`; of those that are missing there it is not known."""

    @property
    def promised(self) -> frozenset[int]:
        return (self.committed | self.visible) - self.deleted - self.deleted_unseen

    @property
    def held(self) -> frozenset[int]:
        """Records that are there to be lost, and are not known to have been deleted on purpose: on the leader's log,
        or on any where nobody leads."""
        logs = self.logs.values() if self.serving is None else (self.logs[self.serving],)
        return frozenset(record for log in logs for record in log.values()) - self.deleted


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen of one partition's logs, besides what they hold."""

    marks: Mapping[int, int] = field(default_factory=dict)
    """High watermarks: of replicas that were heard, and those saved on disks that were read."""
    start: int = 0
    """The highest log start."""
    outdated: frozenset[int] = frozenset()
    """Replicas whose disk was read before the mark of a clean shutdown on it changed."""


@dataclass(frozen=True, slots=True)
class Happened:
    """What became of one partition after one option, once everybody was back."""

    option: Option
    returned: PartitionState | None
    """The partition at the moment at which the last broker of the option was back; None where another thing happened to
    it before that, and where nobody returned."""
    leader: int | None
    """Whom the option made the leader; who led then, where it had no election."""
    active: frozenset[int]
    """The brokers that were live when its election ran."""
    logs: Mapping[int, Log]
    """The replicas' logs in the end."""
    led_in_the_end: int | None
    fenced: frozenset[int] = frozenset()
    """Brokers that the controller fenced while nothing was done: it did not know yet that they were gone."""
    out_of_reach: frozenset[int] = frozenset()
    """Brokers that KIP-966's recovery manager cannot ask for logs, so that it elects none of them."""

    @property
    def kept(self) -> frozenset[int]:
        """The records of the leader's log in the end."""
        return frozenset() if self.led_in_the_end is None else frozenset(self.logs[self.led_in_the_end].values())


@dataclass(frozen=True, slots=True)
class Moment:
    """One partition as it really is at a moment after kelr was asked."""

    state: PartitionState
    live: frozenset[int]
    """Replicas whose brokers the controller counts in."""
    logs: Mapping[int, Log]
    """Those of failed directories left out."""
    refuses: bool
    """Whether fewer are in sync than its leader asks for."""


def moment_of(world: World, address: TopicPartition) -> Moment:
    """How the partition really stands now."""
    state, controller = world.partitions[address], world.running.cluster.controller
    failed = state.offline_replicas or ()
    logs = {replica: log for replica, log in _logs(world, address).items() if replica not in failed}
    live = frozenset(filter(controller.active, state.replicas))
    return Moment(state, live, logs, world.refuses(state))


def truths(world: World, seen: Mapping[TopicPartition, Seen]) -> Mapping[TopicPartition, Truth]:
    """What really is.

    Args:
        seen: what of it can be seen.
    """
    found = {}
    world.note_promises()
    for address, state in sorted(world.partitions.items()):
        ledger, sight = world.logs(address).ledger, seen.get(address, Seen())
        deleted = frozenset(record for record in ledger.deleted if world.offsets.get(record, sight.start) < sight.start)
        found[address] = Truth(
            state,
            _logs(world, address),
            ledger.committed,
            ledger.acknowledged,
            ledger.visible,
            deleted,
            ledger.deleted - deleted,
            world.given_up.get(address, frozenset()),
            {broker: _returns_cleanly(world, state, broker) for broker in {*state.replicas, *(state.elr or ())}},
            world.torn.get(address, frozenset()),
            sight.marks,
            {record: world.offsets[record] for record in ledger.committed | ledger.visible if record in world.offsets},
            world.running.cluster.serving(address),
            sight.outdated,
            world.promised_with[address],
        )
    return found


def _returns_cleanly(world: World, state: PartitionState, broker: int) -> bool | None:
    if broker not in world.down:
        return None if broker in (state.offline_replicas or ()) else True
    # A first registration counts as unclean (ClusterControlManager.registerBroker).
    return broker in world.running.cluster.controller.brokers and not world.crashed(broker)


def happen(world: World, options: Mapping[TopicPartition, Option]) -> Mapping[TopicPartition, Happened]:
    """Let these options happen, all with the same returns, and everybody come back after that.

    The world itself stays as it is.
    """
    world = world.fork()
    returned: Mapping[TopicPartition, PartitionState] = {}
    before = dict(world.partitions)
    (returns,) = {option.returns for option in options.values()}
    for broker in returns:
        returned = _return(world, broker, before)
        before = dict(world.partitions)
    fenced = _fenced_meanwhile(world) if not returns and WAIT in options.values() else frozenset()
    active = frozenset(one for one in world.setup.brokers if world.running.cluster.controller.active(one))
    silent = out_of_reach(world)
    # All are asked at one moment: what one of them waits for would be another one's past.
    leaders = {address: elect(world, address, option, waits=False) for address, option in sorted(options.items())}
    asked = {address for address, leader in leaders.items() if leader is None and by_logs(world, options[address])}
    if asked:
        world.wait()
        leaders |= {address: world.partitions[address].leader for address in asked}
    everyone_back(world)
    return {
        address: Happened(
            option,
            returned.get(address),
            leaders[address],
            active,
            _logs(world, address),
            world.partitions[address].leader,
            fenced,
            silent,
        )
        for address, option in options.items()
    }


def out_of_reach(world: World) -> frozenset[int]:
    """Brokers that KIP-966's recovery manager cannot ask; none where there is no such manager."""
    running, brokers = world.running, world.setup.brokers if world.setup.rules.recovers else ()
    return frozenset(one for one in brokers if one in running.paused or not running.linked(one, running.controller))


def _fenced_meanwhile(world: World) -> frozenset[int]:
    """Ten minutes pass; the brokers that are fenced in them."""
    found: set[int] = set()

    def watch(event: events.Event | RecoveryEvent | None, _done: Stepped) -> None:
        if isinstance(event, events.BrokerFenced):
            found.add(event.broker)

    world.running.watchers.append(watch)
    world.wait(TEN_MINUTES_MS)
    world.running.watchers.remove(watch)
    return frozenset(found)


def by_logs(world: World, option: Option) -> bool:
    """Whether the recovery manager asks for logs before the option elects anybody."""
    return world.setup.rules.recovers and option.election is not ElectionType.PREFERRED


def elect(
    world: World, address: TopicPartition, option: Option, *, keeps_order: bool = False, waits: bool = True
) -> int | None:
    """The election of an option, as an engineer without kelr runs it too; whom it makes the leader.

    Args:
        keeps_order: a designation's order stays, until `restore_order`.
        waits: for the recovery manager to ask for logs.
    """
    replicas = world.partitions[address].replicas
    leader = world.partitions[address].leader

    def watch(event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        nonlocal leader
        if isinstance(event, events.LeadersElected | events.Reassigned | ManualRecovery):
            leader = next((one.after.leader for one in done.changes if one.after.address == address), leader)

    world.running.watchers.append(watch)
    _elect(world, address, option)
    if option.election is ElectionType.DESIGNATION and not keeps_order:
        restore_order(world, address, replicas)
    world.running.watchers.remove(watch)
    if leader is None and waits and by_logs(world, option):
        world.wait()
        leader = world.partitions[address].leader
    return leader


def _elect(world: World, address: TopicPartition, option: Option) -> None:
    running, replicas = world.running, world.partitions[address].replicas
    by_name = option.election not in {None, ElectionType.PREFERRED, ElectionType.UNCLEAN}
    if world.setup.rules.recovers and by_name and option.election is not None:
        desired = None if option.desired < 0 else option.desired
        running.ask_by_hand(ManualRecovery(option.election, {address: desired}))
    elif option.election is ElectionType.DESIGNATION:
        registered = running.cluster.controller.brokers
        others = tuple(one for one in replicas if one != option.desired and one in registered)
        with world.uncordoned(replicas):
            done = running.ask(events.Reassigned(address, (option.desired, *others)))
        # A live broker's replica in a failed directory is none that Kafka elects.
        offline = world.partitions[address].offline_replicas or ()
        able = (one for one in replicas if one not in offline)
        first = next(filter(running.cluster.controller.active, able), None)
        if done.answers[address] != NONE and first != option.desired:
            return  # nothing more is asked for
        if world.partitions[address].leader is None:
            running.ask(events.LeadersElected(Election.UNCLEAN, (address,)))
    elif option.election is not None:
        kind = Election.PREFERRED if option.election is ElectionType.PREFERRED else Election.UNCLEAN
        running.ask(events.LeadersElected(kind, (address,)))


def restore_order(world: World, address: TopicPartition, replicas: tuple[int, ...]) -> None:
    """The replicas have the order from before a designation, unless one of them has left."""
    if set(world.partitions[address].replicas) == set(replicas) and world.partitions[address].replicas != replicas:
        with world.uncordoned(replicas):
            world.running.ask(events.Reassigned(address, replicas))


def _return(
    world: World, broker: int, before: Mapping[TopicPartition, PartitionState]
) -> Mapping[TopicPartition, PartitionState]:
    """A broker returns; the partitions as they were the moment it was unfenced, but for those to which something else
    had happened by then."""
    found: dict[TopicPartition, PartitionState] = {}
    disturbed: set[TopicPartition] = set()
    arrived = False

    def watch(event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        nonlocal arrived
        own = isinstance(event, events.BrokerRegistered | events.BrokerUnfenced) and event.broker == broker
        if not own and not arrived:
            disturbed.update(change.after.address for change in done.changes)
        if own and isinstance(event, events.BrokerUnfenced) and not arrived:
            arrived = True
            found.update(world.partitions)
        elif arrived:
            found.update(recovered(world, found, done))

    world.running.watchers.append(watch)
    was_active = world.running.cluster.controller.active(broker)
    world.start(broker)
    world.wait()
    world.running.watchers.remove(watch)
    if was_active:
        return {}
    return {address: state for address, state in found.items() if address not in disturbed and address in before}


def after_leaving(world: World, broker: int, *, cleanly: bool) -> Mapping[TopicPartition, PartitionState]:
    """The partitions the moment that the controller has fenced a broker which was killed, or stopped, and once the
    recovery manager has elected; but for those to which something else had happened by then."""
    world = world.fork()
    found: dict[TopicPartition, PartitionState] = {}
    disturbed: set[TopicPartition] = set()

    def watch(event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        own = isinstance(event, events.BrokerFenced | events.ControlledShutdown) and event.broker == broker
        if not own and not found:
            disturbed.update(change.after.address for change in done.changes)
            disturbed.update(at for at, one in world.partitions.items() if comes_or_goes(event) in one.replicas)
        if own and isinstance(event, events.BrokerFenced) and not found:
            found.update(world.partitions)
        elif found:
            found.update(recovered(world, found, done))

    world.running.watchers.append(watch)
    (world.stop if cleanly else world.kill)(broker)
    wait_for_recovery(world)
    return {address: state for address, state in found.items() if address not in disturbed}


def recovered(world: World, found: States, done: Stepped) -> States:
    """Those that had no leader, and have been changed: the recovery manager elects once it has asked for logs."""
    if not world.setup.rules.recovers:
        return {}
    return {one.after.address: one.after for one in done.changes if found[one.after.address].leader is None}


def wait_for_recovery(world: World) -> None:
    """Until sessions have expired, and the recovery manager has gathered logs after that."""
    world.wait(QUIET_MS * (1 + world.setup.rules.recovers))


def comes_or_goes(event: events.Event | RecoveryEvent | None) -> int | None:
    """The broker that can be elected from this event on, or no more: what was said before takes it for the other."""
    return event.broker if isinstance(event, events.BrokerFenced | events.BrokerUnfenced) else None


def _logs(world: World, address: TopicPartition) -> Mapping[int, Log]:
    return {
        replica: {log.start + at: record.id for at, record in enumerate(log.records)}
        for replica, log in world.logs(address).logs.items()
    }
