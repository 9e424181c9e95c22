"""A controller of one topic with its recovery manager, brokers' logs on paper, and answers as brokers give them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kelr.controller import (
    KIP966_BALANCED,
    Configs,
    ControllerState,
    LogInfoAnswered,
    LogInfoEntry,
    LogInfoFailed,
    LogInfoRequest,
    RecoveringController,
    RecoveryEvent,
    Registration,
    RuleSet,
    Stepped,
    Task,
    TimePassed,
    events,
)
from kelr.model import PartitionState, TopicPartition

ORDERS = TopicPartition("orders", 0)


def partition(
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    number: int = 0,
    leader: int | None = None,
) -> PartitionState:
    """A partition of ``orders``; without leader if not told."""
    return PartitionState(
        topic="orders",
        partition=number,
        leader=leader,
        leader_epoch=5,
        replicas=replicas,
        isr=isr,
        elr=elr,
        last_known_elr=last_known,
        offline_replicas=(),
        partition_epoch=5,
        adding=(),
        removing=(),
        recovering=False,
    )


def controller(
    *partitions: PartitionState,
    live: Iterable[int] = (1, 2, 3),
    fenced: Iterable[int] = (),
    rules: RuleSet = KIP966_BALANCED,
    min_isr: int = 2,
) -> RecoveringController:
    """The controller before anything has happened; broker N is registered with epoch 10 N."""
    brokers = {broker: Registration(10 * broker, fenced=False) for broker in live}
    brokers |= {broker: Registration(10 * broker, fenced=True) for broker in fenced}
    state = ControllerState(
        rules,
        dict(sorted(brokers.items())),
        {one.address: one for one in partitions},
        cluster=Configs(min_isr),
        next_epoch=100,
    )
    return RecoveringController(state)


@dataclass(slots=True)
class Run:
    """Performs events one after the other, and keeps all that came of them."""

    controller: RecoveringController
    requests: list[LogInfoRequest] = field(default_factory=list)
    stepped: list[Stepped] = field(default_factory=list)

    def step(self, *steps: events.Event | RecoveryEvent) -> Stepped:
        for event in steps:
            self.stepped.append(self.controller.step(event))
            self.controller = self.stepped[-1].controller
            self.requests.extend(self.stepped[-1].requests)
        return self.stepped[-1]

    def at(self, now_ms: int) -> Stepped:
        return self.step(TimePassed(now_ms))

    def answer(
        self,
        broker: int,
        log: tuple[int | None, int],
        *,
        address: TopicPartition = ORDERS,
        broker_epoch: int | None = None,
        leader_epoch: int | None = None,
        error: str = "NONE",
        request: int | None = None,
    ) -> Stepped:
        """A broker answers for one partition; with the right epochs if not told."""
        epoch = self.controller.state.brokers[broker].epoch if broker_epoch is None else broker_epoch
        current = self.state(address).leader_epoch if leader_epoch is None else leader_epoch
        entry = LogInfoEntry(log[1], log[0], current, error)
        return self.step(LogInfoAnswered(broker, epoch, {address: entry}, request))

    def fail(self, broker: int) -> Stepped:
        return self.step(LogInfoFailed(broker))

    def state(self, address: TopicPartition = ORDERS) -> PartitionState:
        return self.controller.state.partitions[address]

    @property
    def leader(self) -> int | None:
        return self.state().leader

    @property
    def task(self) -> Task | None:
        return self.controller.manager.tasks.get(ORDERS)

    @property
    def asked(self) -> list[int]:
        """The brokers that the last step asked."""
        return [request.broker for request in self.stepped[-1].requests]


def run(
    *partitions: PartitionState,
    live: Iterable[int] = (1, 2, 3),
    fenced: Iterable[int] = (),
    rules: RuleSet = KIP966_BALANCED,
    min_isr: int = 2,
) -> Run:
    """A run whose manager has had its first look."""
    started = Run(controller(*partitions, live=live, fenced=fenced, rules=rules, min_isr=min_isr))
    started.at(0)
    return started
