"""Random histories of a cluster: mostly what brokers, leaders and operators do, sometimes what nobody should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from kelr.controller import Election, RuleSet
from kelr.controller import events as ev
from kelr.controller.state import ControllerState
from kelr.model import PartitionState, TopicPartition
from tests.differential.controller_driver import History
from tests.differential.intents import AssignDirectory, FailDirectory, Intent, Register, World, tell

TOPICS = ("orders", "payments", "stock")
MISSING = TopicPartition("orders", 9)
# Larger ids come out of a Java HashSet in another order than by size.
UNIVERSES = ((1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5), (2, 17, 33, 1001))


def random_history(rules: RuleSet, random: Random, events: int) -> History:
    """A cluster that comes up with some topics, and then this many random events."""
    elr = random.random() < 0.8
    brokers = random.choice(UNIVERSES)
    history = History(elr, random.choice((1, 2, 2, 3)), ())
    world, intents = history.world(rules), list(_start(random, brokers))
    for intent in intents:
        world = tell(world, intent).world
    for _ in range(events):
        intent = _event(random, brokers, world)
        intents.append(intent)
        world = tell(world, intent).world
    return replace(history, intents=tuple(intents))


def _start(random: Random, brokers: tuple[int, ...]) -> list[Intent]:
    intents: list[Intent] = []
    disks = random.choice(((0,), (0, 1)))
    for broker in brokers:
        intents.append(Register(broker, clean=False, directories=disks))
        if random.random() < 0.95:
            intents.append(ev.BrokerUnfenced(broker))
    intents.extend(_create(random, brokers, topic) for topic in TOPICS[: random.randint(1, 3)])
    return intents


def _event(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    kinds, weights = zip(*_KINDS, strict=True)
    kind: _Kind = random.choices(kinds, weights)[0]
    return kind(random, brokers, world)


def _register(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    """A broker that is down comes up, or one restarts before anybody missed it."""
    state = world.state
    down = tuple(broker for broker in brokers if broker not in state.brokers or state.brokers[broker].fenced)
    broker = random.choice(down if down and random.random() < 0.7 else brokers)
    disks = random.choice(((0,), (0, 1), (0, 1), (1,), world.online.get(broker, (0,))))
    return Register(broker, clean=random.random() < 0.5, directories=disks)


def _fence(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    return ev.BrokerFenced(_live(random, brokers, world.state))


def _unfence(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    """A broker on its way down never asks to be unfenced, so none does here."""
    fenced = tuple(
        broker
        for broker, registration in world.state.brokers.items()
        if registration.fenced and not registration.in_controlled_shutdown
    )
    if not fenced:
        return _register(random, brokers, world)
    return ev.BrokerUnfenced(random.choice(fenced))


def _shut_down(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    stopping = tuple(
        broker for broker, registration in world.state.brokers.items() if registration.in_controlled_shutdown
    )
    broker = random.choice(stopping) if stopping and random.random() < 0.5 else _live(random, brokers, world.state)
    return ev.ControlledShutdown(broker)


def _unregister(random: Random, brokers: tuple[int, ...], _world: World) -> Intent:
    return ev.BrokerUnregistered(random.choice(brokers))


def _fail_directory(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    """A broker whose last directory fails stops itself, so only one of two does here."""
    able = tuple(
        broker
        for broker, directories in world.online.items()
        if len(directories) > 1 and not world.state.brokers[broker].in_controlled_shutdown
    )
    if not able:
        return _assign_directory(random, brokers, world)
    return FailDirectory(random.choice(able), random.choice((0, 1)))


def _assign_directory(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    address = _address(random, world.state)
    partition = world.state.partitions.get(address)
    broker = random.choice(brokers if partition is None or random.random() < 0.1 else partition.replicas)
    return AssignDirectory(broker, address, random.choice((0, 1)))


def _alter(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    """A leader lets caught-up followers in and drops slow ones; sometimes with a wrong epoch or a wrong member."""
    state = world.state
    led = tuple(address for address, partition in sorted(state.partitions.items()) if partition.leader is not None)
    address = random.choice(led) if led and random.random() < 0.95 else _address(random, state)
    partition = state.partitions.get(address)
    if partition is None:
        return ev.PartitionAltered(address, random.choice(brokers), (1,))
    leader = random.choice(brokers) if partition.leader is None or random.random() < 0.03 else partition.leader
    isr = _new_isr(random, brokers, state, partition, leader)
    return _with_wrong_epochs(
        random,
        state,
        ev.PartitionAltered(
            address,
            leader,
            isr,
            member_epochs=_member_epochs(random, state, isr),
            recovering=random.random() < (0.3 if partition.recovering else 0.02),
        ),
    )


def _new_isr(
    random: Random, brokers: tuple[int, ...], state: ControllerState, partition: PartitionState, leader: int
) -> tuple[int, ...]:
    kind = random.random()
    outside = tuple(broker for broker in partition.replicas if broker not in partition.isr)
    live = tuple(broker for broker in outside if state.active(broker))
    if kind < 0.35 and live:
        return (*partition.isr, random.choice(live))
    if kind < 0.5 and live:
        return (*partition.isr, *live)
    if kind < 0.8:
        gone = random.choice(partition.replicas)
        return tuple(broker for broker in partition.isr if broker != gone or broker == leader)
    if kind < 0.9:
        return tuple(random.sample(partition.replicas, random.randint(0, len(partition.replicas))))
    if kind < 0.95 and outside:
        return (*partition.isr, random.choice(outside))
    return (leader, *random.sample(brokers, random.randint(0, len(brokers))))


def _member_epochs(random: Random, state: ControllerState, isr: tuple[int, ...]) -> dict[int, int]:
    known = {member: state.brokers[member].epoch for member in isr if member in state.brokers}
    if random.random() < 0.2:
        return {}
    if known and random.random() < 0.1:
        stale = random.choice(tuple(known))
        return {**known, stale: known[stale] - 1}
    return known


def _with_wrong_epochs(random: Random, state: ControllerState, event: ev.PartitionAltered) -> ev.PartitionAltered:
    partition, off = state.partitions[event.address], random.choice((-1, 1))
    kind = random.random()
    if kind < 0.02:
        return replace(event, leader_broker_epoch=state.next_epoch)
    if kind < 0.04:
        return replace(event, leader_epoch=partition.leader_epoch + off)
    if kind < 0.06:
        return replace(event, partition_epoch=(partition.partition_epoch or 0) + off)
    return event


def _elect(random: Random, _brokers: tuple[int, ...], world: World) -> Intent:
    election = random.choice((Election.PREFERRED, Election.UNCLEAN))
    if random.random() < 0.4:
        return ev.LeadersElected(election)
    known = tuple(sorted(world.state.partitions)) or (MISSING,)
    asked = random.sample(known, random.randint(1, len(known)))
    if random.random() < 0.05:
        asked = sorted({*asked, MISSING})
    return ev.LeadersElected(election, tuple(asked))


def _unclean_task(_random: Random, _brokers: tuple[int, ...], _world: World) -> Intent:
    return ev.UncleanElectionTask()


def _preferred_task(_random: Random, _brokers: tuple[int, ...], _world: World) -> Intent:
    return ev.PreferredElectionTask()


def _reassign(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    address = _address(random, world.state)
    partition = world.state.partitions.get(address)
    moving = partition is not None and (partition.adding or partition.removing)
    if random.random() < (0.4 if moving else 0.1):
        return ev.Reassigned(address, None)
    if partition is not None and random.random() < 0.3:
        return ev.Reassigned(address, tuple(random.sample(partition.replicas, len(partition.replicas))))
    if random.random() < 0.04:
        return ev.Reassigned(address, random.choice(((), (brokers[0], brokers[0]), (brokers[0], 99))))
    return ev.Reassigned(address, tuple(random.sample(brokers, random.randint(1, min(4, len(brokers))))))


def _write_config(random: Random, _brokers: tuple[int, ...], world: World) -> Intent:
    topic = _config_topic(random, world.state)
    min_isr = random.choice((None, 1, 2, 2, 3, 4))
    unclean = random.random() < 0.4 if min_isr is None or random.random() < 0.1 else None
    return ev.ConfigWritten(topic, min_isr, unclean)


def _delete_config(random: Random, _brokers: tuple[int, ...], world: World) -> Intent:
    topic, both = _config_topic(random, world.state), random.random() < 0.1
    min_isr = both or random.random() < 0.5
    return ev.ConfigDeleted(topic, min_isr, both or not min_isr)


def _config_topic(random: Random, state: ControllerState) -> str | None:
    known = sorted({address.topic for address in state.partitions})
    return random.choice((None, random.choice(TOPICS), *known, *known))


def _feature(random: Random, _brokers: tuple[int, ...], world: World) -> Intent:
    return ev.ElrFeature(not world.state.rules.elr if random.random() < 0.9 else world.state.rules.elr)


def _create_or_delete(random: Random, brokers: tuple[int, ...], world: World) -> Intent:
    topic = random.choice(TOPICS)
    if world.state.of_topic(topic) and random.random() < 0.7:
        return ev.TopicDeleted(topic)
    if random.random() < 0.1:
        return random.choice((ev.TopicDeleted(topic), ev.TopicCreated(topic, ((brokers[0], 99),))))
    return _create(random, brokers, topic)


def _create(random: Random, brokers: tuple[int, ...], topic: str) -> Intent:
    factor = min(len(brokers), random.choice((1, 2, 3, 3, 3, 4)))
    return ev.TopicCreated(topic, tuple(tuple(random.sample(brokers, factor)) for _ in range(random.randint(1, 3))))


def _live(random: Random, brokers: tuple[int, ...], state: ControllerState) -> int:
    """Mostly a live broker, one that leads something rather than not."""
    leaders = sorted({partition.leader for partition in state.partitions.values() if partition.leader is not None})
    live = tuple(broker for broker in brokers if state.active(broker))
    kind = random.random()
    if leaders and kind < 0.5:
        return random.choice(leaders)
    return random.choice(live if live and kind < 0.9 else brokers)


def _address(random: Random, state: ControllerState) -> TopicPartition:
    known = tuple(sorted(state.partitions))
    return random.choice(known if known and random.random() < 0.97 else (MISSING, TopicPartition("none", 0)))


_Kind = Callable[[Random, tuple[int, ...], World], Intent]
_KINDS: tuple[tuple[_Kind, float], ...] = (
    (_register, 14),
    (_unfence, 14),
    (_fence, 12),
    (_alter, 18),
    (_shut_down, 8),
    (_unregister, 2),
    (_fail_directory, 3),
    (_assign_directory, 3),
    (_elect, 6),
    (_unclean_task, 2),
    (_preferred_task, 2),
    (_reassign, 7),
    (_write_config, 5),
    (_delete_config, 2),
    (_feature, 1.5),
    (_create_or_delete, 1.5),
)
