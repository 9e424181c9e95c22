"""One power outage under each rule set: who is elected, and what is lost of what producers were promised.

The outage is the worked example of a balanced recovery: three replicas, min ISR 2, all of them lose power at once, and
only the second one's disk holds everything.

Source: Vanlightly, "Asynchronous storage and recovery", 5.3.3 (its LastKnownELR members lose data or not, as here).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.controller import Configs, ControllerState, LogInfoAnswered, RuleSet, events
from kelr.model import TopicPartition
from kelr.simulation.cluster import started
from kelr.simulation.logs import Acks
from kelr.simulation.running import RunningCluster

WHOLE = 2
"""The broker whose disk holds everything."""
BROKERS = (1, 2, 3)
ON_DISK = 30
"""Records that every broker had written to its disk before."""
IN_MEMORY = 10
"""Acknowledged records that only the whole broker had."""
_CONTROLLER = 100
_LONG_MS = 60_000
_AT = TopicPartition("orders", 0)


@dataclass(frozen=True, slots=True)
class OutageOutcome:
    """What a rule set makes of it."""

    rules: RuleSet
    elected: int | None
    """Who leads once all three brokers are back; None where nobody does."""
    back: tuple[int, ...]
    """Brokers that had come back when it was elected, in order."""
    lost: int
    """Records acknowledged with acks=all that are in no log any more."""


def outage_under(rules: RuleSet) -> OutageOutcome:
    """Let the outage happen to a cluster that runs these rules."""
    running = RunningCluster(
        started(ControllerState(rules, cluster=Configs(min_isr=2)), BROKERS), controller=_CONTROLLER
    )
    running.ask(events.TopicCreated(_AT.topic, (BROKERS,)))
    running.produce(_AT, ON_DISK, Acks.ALL)
    for broker in BROKERS:
        running.flush(broker)
    running.produce(_AT, IN_MEMORY, Acks.ALL)
    running.flush(WHOLE)
    for broker in BROKERS:
        running.kill(broker, power_loss=True)
    _pass(running)
    elected, back = None, []
    for broker in BROKERS:
        running.start(broker)
        _pass(running)
        back += [broker] if elected is None else []
        elected = elected or running.cluster.controller.partitions[_AT].leader
    lost = len(running.cluster.replication[_AT].gone)
    return OutageOutcome(rules, elected, tuple(back) if elected is not None else BROKERS, lost)


def outages(rule_sets: Sequence[RuleSet]) -> tuple[OutageOutcome, ...]:
    """The same outage under each rule set."""
    return tuple(map(outage_under, rule_sets))


def _pass(running: RunningCluster) -> None:
    """A minute goes by, and brokers that run answer what the recovery manager asks."""
    end_ms = running.now_ms + _LONG_MS
    while running.now_ms < end_ms:
        running.advance(running.now_ms + 1000)
        for question in running.asked():
            registration = running.cluster.controller.brokers[question.broker]
            if running.runs(question.broker):
                entries = {at: running.cluster.log_info(at, question.broker) for at in question.partitions}
                running.answered(LogInfoAnswered(question.broker, registration.epoch, entries, question.id))
