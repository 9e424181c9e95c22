"""Advice about imagined states: what it says of brokers that nothing can bring back as they were."""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import ELR_4_3
from kelr.engine import decide
from kelr.engine.what_if.assumptions import parse_assumptions
from kelr.engine.what_if.imagine import imagine
from kelr.model import Advice, LogUnavailable, LogUnavailableReason, Snapshot, TopicPartition
from tests.incident import INCIDENT


def advice_after(text: str, address: TopicPartition, snapshot: Snapshot = INCIDENT) -> Advice:
    after = imagine(snapshot, parse_assumptions(text), ELR_4_3).snapshot
    state = next(state for state in after.partitions if state.address == address)
    return decide(after, state, ELR_4_3).advice


def test_a_broker_that_is_up_without_its_log_directory_needs_a_disk_and_no_start() -> None:
    orders_0 = TopicPartition("orders", 0)
    unread = tuple(LogUnavailable(replica, LogUnavailableReason.NOT_ASKED) for replica in (1, 2, 3))
    snapshot = replace(INCIDENT, logs={orders_0: unread})
    advice = advice_after("2 loses its directory", orders_0, snapshot)
    assert advice.text.startswith(
        "Start broker 1 (fenced). Replace the disk of broker 2, which is up: its log directory is offline."
    )
    alone = advice_after("1 returns, 2 loses its directory", TopicPartition("orders", 1))
    # 1 was elected as the last known leader, so that 2's log may hold what 1 lacks.
    assert alone.text.startswith(
        "ISR [1] and ELR [] have together fewer members than min ISR (2), as after an unclean election: save what the"
        " disk of broker 2 holds before it is replaced, since it may be the only copy. When it returns, it truncates to"
        " the log of the leader, 1. Replace the disk of broker 2, which is up: its log directory is offline. Producers"
    )


def test_that_a_designation_takes_an_unregistered_broker_off_is_said_of_what_is_imagined_too() -> None:
    advice = advice_after("1 is unregistered", TopicPartition("orders", 1))
    assert advice.alternative.endswith(
        "Broker 1 is not registered, and Kafka takes no order that names such a broker: it leaves the assignment."
    )
