"""The recovery manager in random histories: what it elects by, whom it asks, what a failover leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import (
    KIP966,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    ControllerFailedOver,
    LogInfo,
    LogInfoAnswered,
    LogInfoEntry,
    LogInfoFailed,
    ManualRecovery,
    RecoveringController,
    RecoveryEvent,
    RecoveryManager,
    RecoveryStrategy,
    Refusal,
    Stepped,
    TimePassed,
    events,
    recovery_metrics,
    recovery_quorum,
)
from kelr.controller.election import UNCLEAN_RECOVERY
from kelr.model import ElectionType, TopicPartition
from tests.controller.recovering import ORDERS, controller, partition, run

BROKERS = (1, 2, 3)
ADDRESSES = (ORDERS, TopicPartition("orders", 1))
Event = events.Event | RecoveryEvent

brokers = st.sampled_from(BROKERS)
members = st.lists(brokers, unique=True).map(tuple)
addresses = st.sampled_from(ADDRESSES)
logs = st.tuples(st.none() | st.integers(0, 2), st.integers(0, 3))
by_hand = st.sampled_from(
    (ElectionType.DESIGNATION, ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE)
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is made when its time comes: right, or off by so much in an epoch."""

    broker: int
    address: TopicPartition
    log: tuple[int | None, int]
    broker_epoch_off: int
    leader_epoch_off: int
    error: str

    def event(self, of: RecoveringController) -> LogInfoAnswered:
        registration = of.state.brokers[self.broker]
        epoch = of.state.partitions[self.address].leader_epoch + self.leader_epoch_off
        entry = LogInfoEntry(self.log[1], self.log[0], epoch, self.error)
        return LogInfoAnswered(self.broker, registration.epoch + self.broker_epoch_off, {self.address: entry})


mostly_right = st.sampled_from((0, 0, 0, 0, 0, -1, 1))
answers = st.builds(
    Answer,
    brokers,
    addresses,
    logs,
    mostly_right,
    mostly_right,
    st.sampled_from(("NONE",) * 5 + ("KAFKA_STORAGE_ERROR",)),
)
happenings = st.one_of(
    answers,
    answers,
    answers,
    st.builds(events.BrokerRegistered, brokers, st.booleans()),
    st.builds(events.BrokerFenced, brokers),
    st.builds(events.BrokerUnfenced, brokers),
    st.builds(events.BrokerUnfenced, brokers),
    st.builds(events.ConfigWritten, st.just("orders"), unclean_leader_election=st.booleans()),
    st.builds(events.DirectoryFailed, brokers),
    st.builds(LogInfoFailed, brokers),
    st.sampled_from((500, 1_000, 5_000, 300_000)),
    st.builds(ControllerFailedOver),
    st.builds(ManualRecovery, by_hand, st.dictionaries(addresses, brokers, max_size=2), st.just(2_000)),
)


@st.composite
def starts(draw: st.DrawFn) -> RecoveringController:
    """Two partitions, most often without leader, in any state."""
    live = draw(members)
    states = []
    for address in ADDRESSES:
        replicas = draw(st.permutations(BROKERS).map(tuple))
        isr, elr = draw(st.just(()) | members), draw(st.just(()) | members)
        states.append(
            partition(
                replicas=replicas,
                isr=isr,
                elr=tuple(broker for broker in elr if broker not in isr),
                last_known=draw(members),
                number=address.partition,
            )
        )
    return controller(
        *states,
        live=live,
        fenced=set(BROKERS) - set(live),
        rules=draw(st.sampled_from((KIP966, KIP966_NONE, KIP966_BALANCED, KIP966_AGGRESSIVE))),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One event: the controller before it, and what came of it."""

    before: RecoveringController
    event: Event
    after: Stepped


@dataclass(slots=True)
class Witness:
    """Keeps the answers that may be used, by its own book-keeping."""

    told: dict[tuple[TopicPartition, int], tuple[int, int, LogInfo]] = field(default_factory=dict)
    """By partition and replica: broker epoch, leader epoch, log."""

    def hears(self, step: Step) -> None:
        if isinstance(step.event, ControllerFailedOver):
            self.told.clear()
        if isinstance(step.event, LogInfoAnswered):
            broker, epoch = step.event.broker, step.event.broker_epoch
            contradicted = {one.address for one in step.after.refused if one.reason is Refusal.CONTRADICTS}
            for address, entry in step.event.entries.items():
                if entry.error == "NONE" and address not in contradicted:
                    told = epoch, entry.current_leader_epoch, LogInfo(entry.last_epoch, entry.log_end)
                    if self._right(step.before, address, broker, told):
                        self.told[address, broker] = told

    def knows(self, of: RecoveringController, address: TopicPartition) -> dict[int, LogInfo]:
        return {
            replica: told[2]
            for (at, replica), told in self.told.items()
            if at == address and self._right(of, address, replica, told)
        }

    @staticmethod
    def _right(of: RecoveringController, address: TopicPartition, replica: int, told: tuple[int, int, LogInfo]) -> bool:
        current = of.state.brokers[replica].epoch, of.state.partitions[address].leader_epoch
        return told[:2] == current and replica not in (of.state.partitions[address].offline_replicas or ())


@st.composite
def histories(draw: st.DrawFn) -> tuple[Step, ...]:
    return tuple(_lived(draw(starts()), draw(st.lists(happenings, max_size=30))))


def _lived(current: RecoveringController, what: list[Event | Answer | int]) -> Iterator[Step]:
    for one in (0, *what):
        event: Event
        if isinstance(one, Answer):
            event = one.event(current)
        elif isinstance(one, int):
            event = TimePassed(current.manager.now_ms + one)
        else:
            event = one
        stepped = current.step(event)
        yield Step(current, event, stepped)
        current = stepped.controller


@given(histories())
def test_a_recovery_elects_the_best_verified_answer_of_a_live_replica(history: tuple[Step, ...]) -> None:
    witness = Witness()
    for step in history:
        witness.hears(step)
        if isinstance(step.event, ManualRecovery) and step.event.election is ElectionType.DESIGNATION:
            continue
        for change in step.after.changes:
            if change.elected.rule is not UNCLEAN_RECOVERY:
                continue
            address, leader = change.before.address, change.after.leader
            now = replace(step.after.controller, state=step.after.controller.state.with_partition(change.before))
            known = witness.knows(now, address)
            live = {replica: log for replica, log in known.items() if now.state.active(replica)}
            assert leader in live
            assert all(log.rank <= live[leader].rank for log in live.values())


@given(histories())
def test_balanced_recovery_has_its_whole_quorum_live_and_heard(history: tuple[Step, ...]) -> None:
    witness = Witness()
    for step in history:
        witness.hears(step)
        for change in step.after.changes:
            if change.elected.rule is not UNCLEAN_RECOVERY or isinstance(step.event, ManualRecovery):
                continue
            task = step.before.manager.tasks.get(change.before.address)
            manual = task is not None and bool(task.manual)
            if change.ballot.rules.recovery is RecoveryStrategy.BALANCED and not manual:
                now = replace(step.after.controller, state=step.after.controller.state.with_partition(change.before))
                assert not change.before.isr
                assert not change.before.elr
                for replica in recovery_quorum(change.before, now.state.min_isr(change.before.topic)):
                    assert now.state.active(replica)
                    assert replica in witness.knows(now, change.before.address)


@given(histories())
def test_tasks_are_of_partitions_without_leader_and_counters_count(history: tuple[Step, ...]) -> None:
    finished = 0
    for step in history:
        after = step.after.controller
        for address, task in after.manager.tasks.items():
            assert task.address == address
            assert after.state.partitions[address].leader is None
        designated = isinstance(step.event, ManualRecovery) and step.event.election is ElectionType.DESIGNATION
        elected = [one for one in step.after.changes if one.elected.rule is UNCLEAN_RECOVERY and not designated]
        finished = (0 if isinstance(step.event, ControllerFailedOver) else finished) + len(elected)
        metrics = recovery_metrics(after.state, after.manager)
        assert metrics.unclean_recovery_finished_count == finished
        assert metrics.unclean_recovery_partitions_count == len(after.manager.tasks)
        assert metrics.manual_leader_election_required_partition_count >= 0


@given(histories())
def test_nobody_is_asked_again_who_still_owes_an_answer(history: tuple[Step, ...]) -> None:
    for step in history:
        if isinstance(step.event, (LogInfoAnswered, LogInfoFailed, ControllerFailedOver)):
            continue
        assert len({request.id for request in step.after.requests}) == len(step.after.requests)
        for request in step.after.requests:
            assert request.id >= step.before.manager.next_request
            for address in request.partitions:
                task = step.before.manager.tasks.get(address)
                inquiry = None if task is None else task.inquiries.get(request.broker)
                if task is None or inquiry is None or not inquiry.outstanding or task.round_ms is None:
                    continue
                hung = step.after.controller.manager.now_ms - task.round_ms >= 300_000
                rebooted = step.after.controller.state.brokers[request.broker].epoch != inquiry.broker_epoch
                assert hung or rebooted


@given(histories())
def test_every_replica_of_a_recovery_under_way_is_asked(history: tuple[Step, ...]) -> None:
    """Nobody is forgotten: each has answered, owes an answer, or will be asked again at a known time."""
    for step in history:
        after = step.after.controller
        for address, task in after.manager.tasks.items():
            if task.round_ms is None:
                continue
            state = after.state.partitions[address]
            reachable = [one for one in state.replicas if one not in (state.offline_replicas or ())]
            assert set(reachable) == set(task.inquiries)
            for inquiry in task.inquiries.values():
                assert inquiry.retry_at_ms is None or inquiry.retry_at_ms > after.manager.now_ms


@given(histories())
def test_a_failover_is_a_fresh_start(history: tuple[Step, ...]) -> None:
    controller_then = history[-1].after.controller
    taken_over = controller_then.step(ControllerFailedOver())
    manager = RecoveryManager(now_ms=controller_then.manager.now_ms, next_request=controller_then.manager.next_request)
    fresh = RecoveringController(controller_then.state, manager).step(TimePassed(manager.now_ms))
    assert taken_over.controller == fresh.controller
    assert taken_over.requests == fresh.requests


@given(histories())
def test_the_same_history_comes_out_the_same(history: tuple[Step, ...]) -> None:
    assert all(step.before.step(step.event) == step.after for step in history)


@given(
    st.dictionaries(brokers, logs, min_size=3), st.permutations(BROKERS), members, st.permutations(BROKERS).map(tuple)
)
def test_the_order_of_answers_does_not_matter_for_balanced(
    told: dict[int, tuple[int | None, int]],
    order: list[int],
    last_known: tuple[int, ...],
    replicas: tuple[int, ...],
) -> None:
    def elected(first_to_last: list[int]) -> int | None:
        recovery = run(partition(replicas=replicas, last_known=last_known))
        for broker in first_to_last:
            if recovery.leader is None:
                recovery.answer(broker, told[broker])
        return recovery.leader

    assert elected(order) == elected(list(BROKERS)) is not None
