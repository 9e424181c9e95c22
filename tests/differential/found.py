"""Histories at which kelr's controller once differed from Apache's: each is compared with every version, for good."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.controller import Election
from kelr.controller import events as ev
from kelr.model import TopicPartition
from tests.differential.controller_driver import History
from tests.differential.intents import AssignDirectory, FailDirectory, Intent, Register

ORDERS = TopicPartition("orders", 0)


def _up(*brokers: int, disks: tuple[int, ...] = (0,)) -> tuple[Intent, ...]:
    """Brokers that register and are unfenced."""
    return tuple(
        intent
        for broker in brokers
        for intent in (Register(broker, clean=False, directories=disks), ev.BrokerUnfenced(broker))
    )


def _back(broker: int, *, clean: bool, disks: tuple[int, ...] = (0,)) -> tuple[Intent, ...]:
    return Register(broker, clean=clean, directories=disks), ev.BrokerUnfenced(broker)


def _history(*intents: Intent, elr: bool = True, static_min_isr: int = 2) -> History:
    return History(elr, static_min_isr, intents)


_CREATED = ev.TopicCreated("orders", ((1, 2, 3),))
_ELR_OF_1_CLEARED = (*_up(1, 2, 3), _CREATED, ev.BrokerFenced(3), ev.BrokerFenced(1), ev.ConfigWritten("orders", 1))

FOUND: Mapping[str, History] = {
    "a broker that is not registered sends a heartbeat": _history(ev.BrokerUnfenced(1), ev.ControlledShutdown(1)),
    "a broker that is not registered loses its session": _history(ev.BrokerFenced(1)),
    "a fenced broker's session expires after unclean elections were allowed": _history(
        *_up(1, 2),
        ev.TopicCreated("orders", ((1, 2),)),
        ev.BrokerFenced(2),
        ev.BrokerFenced(1),
        ev.ConfigWritten("orders", None, True),
        Register(1, clean=False, directories=(0,)),
        *_back(2, clean=True),
        ev.BrokerFenced(1),
        elr=False,
    ),
    "AlterPartition for a topic that there is not": _history(*_up(1), ev.PartitionAltered(ORDERS, 1, (1,))),
    "a directory is assigned while the ELR holds somebody": _history(
        *_up(1, 2, 3, disks=(0, 1)),
        _CREATED,
        ev.BrokerFenced(3),
        ev.BrokerFenced(2),
        AssignDirectory(1, ORDERS, 1),
    ),
    "a directory is assigned to a leaderless partition whose ELR is live again": _history(
        *_up(1, 2, disks=(0, 1)),
        ev.TopicCreated("orders", ((1,),)),
        ev.BrokerFenced(1),
        Register(1, clean=True, directories=(0, 1)),
        AssignDirectory(1, ORDERS, 1),
        ev.BrokerUnfenced(1),
    ),
    "a directory is assigned that has failed": _history(
        *_up(1, 2, 3, disks=(0, 1)), _CREATED, FailDirectory(1, 1), AssignDirectory(1, ORDERS, 1)
    ),
    "a directory is assigned twice": _history(
        *_up(1, disks=(0, 1)),
        ev.TopicCreated("orders", ((1,),)),
        AssignDirectory(1, ORDERS, 1),
        AssignDirectory(1, ORDERS, 1),
    ),
    "a broker whose directory failed is taken out of the assignment and put in again": _history(
        *_up(1, 2, 3, disks=(0, 1)),
        _CREATED,
        AssignDirectory(3, ORDERS, 1),
        FailDirectory(3, 1),
        ev.Reassigned(ORDERS, (1, 2)),
        ev.Reassigned(ORDERS, (1, 2, 3)),
    ),
    "a failed directory completes the reassignment that takes its replica away": _history(
        Register(4, clean=False, directories=(0,)),
        Register(2, clean=False, directories=(0,)),
        *_up(1),
        ev.TopicCreated("orders", ((4, 1, 2),)),
        Register(2, clean=False, directories=(0, 1)),
        ev.ConfigWritten("orders", 1, True),
        ev.Reassigned(ORDERS, (1,)),
        FailDirectory(2, 0),
        ev.Reassigned(ORDERS, (2, 4)),
    ),
    "a broker restarts uncleanly whose ELR a min ISR write cleared": _history(
        *_ELR_OF_1_CLEARED, *_back(1, clean=False)
    ),
    "and unclean elections are allowed by then": _history(
        *_up(1, 2, 3),
        _CREATED,
        ev.BrokerFenced(3),
        ev.BrokerFenced(2),
        ev.BrokerFenced(1),
        ev.ConfigWritten("orders", 1, True),
        *_back(3, clean=False),
        ev.ConfigWritten("orders", None, True),
        Register(1, clean=False, directories=(0,)),
    ),
    "and it has been in the ELR again since": _history(
        *_up(1, 2, 3),
        _CREATED,
        ev.BrokerFenced(3),
        ev.BrokerFenced(2),
        ev.ConfigWritten("orders", 3),
        *_back(2, clean=False),
        ev.PartitionAltered(ORDERS, 1, (1, 2)),
        ev.BrokerFenced(2),
        Register(2, clean=False, directories=(0,)),
    ),
    "and it was in the ELR of a partition with another number": _history(
        *_up(1, 2, 3),
        ev.TopicCreated("orders", ((3, 1), (1, 2))),
        ev.BrokerFenced(2),
        ev.ConfigWritten("orders", 3),
        ev.BrokerUnfenced(2),
        ev.PartitionAltered(TopicPartition("orders", 1), 1, (1, 2)),
        ev.BrokerFenced(2),
        ev.BrokerUnfenced(2),
        ev.ConfigWritten("orders", 1),
        ev.PartitionAltered(TopicPartition("orders", 1), 1, (1, 2)),
        ev.BrokerFenced(3),
        Register(2, clean=False, directories=(0,)),
    ),
    "and its topic was deleted": _history(*_ELR_OF_1_CLEARED, ev.TopicDeleted("orders"), *_back(1, clean=False)),
    "and it comes back cleanly, its topic deleted": _history(
        *_ELR_OF_1_CLEARED, ev.TopicDeleted("orders"), *_back(1, clean=True)
    ),
    "and it is unregistered, its topic deleted": _history(
        *_ELR_OF_1_CLEARED, ev.TopicDeleted("orders"), ev.BrokerUnregistered(1)
    ),
    "and ELR is off when it comes back, its topic deleted": _history(
        *_ELR_OF_1_CLEARED, ev.TopicDeleted("orders"), ev.ElrFeature(False), *_back(1, clean=False)
    ),
    "a directory fails that held a replica of a topic deleted without an ISR": _history(
        *_up(1, 2),
        ev.TopicCreated("orders", ((1,),)),
        ev.BrokerFenced(1),
        *_back(1, clean=True, disks=(0, 1)),
        ev.BrokerFenced(1),
        ev.TopicDeleted("orders"),
        Register(1, clean=True, directories=(0, 1)),
        FailDirectory(1, 0),
    ),
    "and the controller that failed had begun a controlled shutdown": _history(
        *(Register(broker, clean=False, directories=(0,)) for broker in range(6)),
        ev.BrokerUnfenced(0),
        ev.BrokerUnfenced(4),
        ev.TopicCreated("payments", ((1, 3, 0), (3, 0, 4), (2, 4, 3))),
        ev.TopicCreated("stock", ((0, 2, 1, 5), (1, 4, 5, 0))),
        ev.ControlledShutdown(4),
        Register(0, clean=False, directories=(0, 1)),
        ev.TopicDeleted("payments"),
        ev.BrokerUnfenced(0),
        ev.ElrFeature(False),
        Register(4, clean=True, directories=(0, 1)),
        ev.Reassigned(TopicPartition("stock", 1), (2, 5, 1)),
        ev.ControlledShutdown(0),
        FailDirectory(4, 0),
        ev.ElrFeature(True),
        ev.BrokerUnfenced(1),
        ev.ControlledShutdown(0),
    ),
    "and a topic of the same name was created": _history(
        *_up(1, 2),
        ev.TopicCreated("orders", ((1,),)),
        ev.BrokerFenced(1),
        Register(1, clean=True, directories=(0, 1)),
        ev.BrokerUnfenced(1),
        ev.BrokerFenced(1),
        ev.TopicDeleted("orders"),
        *_back(1, clean=True, disks=(1,)),
        ev.TopicCreated("orders", ((1, 2),)),
        *_back(1, clean=True, disks=(0, 1)),
        FailDirectory(1, 1),
        FailDirectory(1, 0),
    ),
    "the last known leader is no replica any more": _history(
        *_up(1, 2, 3, 4, 5),
        ev.TopicCreated("orders", ((1, 2, 3, 5),)),
        *(ev.BrokerFenced(broker) for broker in (5, 3, 2)),
        ev.Reassigned(ORDERS, (4, 2, 1)),
        ev.PartitionAltered(ORDERS, 1, (1, 4)),
        ev.BrokerFenced(1),
        Register(1, clean=False, directories=(0,)),
        ev.BrokerFenced(4),
        ev.ConfigWritten("orders", None, True),
        ev.Reassigned(ORDERS, None),
        ev.ConfigWritten("orders", None, False),
        Register(4, clean=False, directories=(0,)),
        Register(2, clean=False, directories=(0,)),
        ev.BrokerUnfenced(4),
        ev.BrokerUnfenced(4),
    ),
    "a member of the ELR that a cancelled reassignment was adding is added again": _history(
        *_up(1, 2, 3, 4, 5),
        ev.TopicCreated("orders", ((1, 2, 3, 5),)),
        *(ev.BrokerFenced(broker) for broker in (5, 3, 2)),
        ev.Reassigned(ORDERS, (1, 2, 4)),
        ev.PartitionAltered(ORDERS, 1, (1, 4)),
        ev.Reassigned(ORDERS, None),
        ev.BrokerFenced(1),
        ev.Reassigned(ORDERS, (4, 2)),
        ev.BrokerFenced(4),
        ev.Reassigned(ORDERS, (4, 2)),
        ev.BrokerUnfenced(4),
    ),
    "a member of the ELR that is no replica any more is added again": _history(
        *_up(1, 4),
        *(Register(broker, clean=False, directories=(0,)) for broker in (2, 3, 5)),
        ev.TopicCreated("orders", ((3, 2, 5, 1),)),
        ev.Reassigned(ORDERS, (3, 4, 1, 2)),
        ev.PartitionAltered(ORDERS, 1, (1, 4)),
        ev.Reassigned(ORDERS, None),
        Register(1, clean=False, directories=(0,)),
        ev.LeadersElected(Election.UNCLEAN),
        ev.Reassigned(ORDERS, (4, 2, 5)),
    ),
}
