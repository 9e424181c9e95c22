"""Why a replica is not let into the ISR (KIP-903), as far as anything that was read tells, and no further."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    KeptOut,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
)
from tests.engine.cases import cluster_of, decision, log_of, silent

LED = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2), (), ())
LEADER = log_of(1, (5, 100))
ALL_LIVE = cluster_of(live=(1, 2, 3))


def _kept_out(
    logs: Iterable[LogAnswer] = (), cluster: Cluster = ALL_LIVE, state: PartitionState = LED
) -> dict[int, KeptOut | None]:
    return {one.replica: one.kept_out for one in decision(state, cluster, logs).candidates}


def _with_status(status: BrokerStatus) -> Cluster:
    brokers = [Broker(3, status) if broker.id == 3 else broker for broker in ALL_LIVE.brokers]
    return replace(ALL_LIVE, brokers=tuple(brokers))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (BrokerStatus.FENCED, "fenced"),
        (BrokerStatus.SHUTTING_DOWN, "shutting down"),
        (BrokerStatus.UNREGISTERED, "not registered"),
        (BrokerStatus.OFFLINE, "offline"),
    ],
)
def test_a_broker_that_the_controller_refuses(status: BrokerStatus, words: str) -> None:
    kept = _kept_out([LEADER, log_of(3, (5, 100))], _with_status(status))[3]
    assert kept is not None
    assert kept.rule == "may-join-isr"
    assert kept.text.startswith(f"broker {words}. ")
    assert "INELIGIBLE_REPLICA" in kept.text


def test_members_and_partitions_without_a_live_leader_have_nothing_to_say() -> None:
    told = _kept_out([LEADER, log_of(2, (5, 100)), log_of(3, (5, 40))])
    assert (told[1], told[2]) == (None, None)
    assert told[3] is not None
    for state, cluster in (
        (replace(LED, leader=None, isr=()), ALL_LIVE),
        (LED, cluster_of(live=(2, 3), fenced=(1,))),
    ):
        assert set(_kept_out([LEADER, log_of(3, (5, 40))], cluster, state).values()) == {None}


def test_a_log_that_is_behind_is_counted_as_of_its_reading() -> None:
    kept = _kept_out([LEADER, log_of(3, (5, 40))])[3]
    assert kept == KeptOut(
        "caught-up",
        "log ended at 40 when they were read, 60 offsets below the leader's high watermark, 100."
        " The leader proposes it once it has caught up; where records come in, it may only look behind, since one was"
        " read after the other",
    )


def test_a_log_that_parted_has_not_followed() -> None:
    kept = _kept_out([log_of(1, (3, 50), (5, 100)), log_of(3, (3, 120))])[3]
    assert kept is not None
    assert kept.text.startswith("log parted from the leader's at offset 50 ")


@pytest.mark.parametrize("end", [100, 130])
def test_where_nothing_that_can_be_seen_keeps_it_out_no_cause_is_claimed(end: int) -> None:
    """A stale broker epoch is known to the leader and the controller alone."""
    kept = _kept_out([log_of(1, (5, 130), hw=100), log_of(3, (5, end))])[3]
    assert kept is not None
    assert kept.rule == "current-broker-epoch"
    assert kept.text.startswith("nothing that can be seen keeps it out")
    assert "no request tells which one the leader knows" in kept.text


def test_an_answer_of_an_earlier_registration() -> None:
    cluster = replace(
        ALL_LIVE, brokers=tuple(replace(one, broker_epoch=30) if one.id == 3 else one for one in ALL_LIVE.brokers)
    )
    kept = _kept_out([LEADER, replace(log_of(3, (5, 100)), broker_epoch=12)], cluster)[3]
    assert kept is not None
    assert kept.rule == "current-broker-epoch"
    assert "answered with broker epoch 12; the broker is registered with 30" in kept.text


@pytest.mark.parametrize(
    ("logs", "words"),
    [
        ([LEADER, silent(3)], "the broker did not answer kelr (connection refused)"),
        ([silent(1), log_of(3, (5, 40))], "the leader did not answer kelr (connection refused)"),
        ([LEADER], "log not read"),
        ([log_of(3, (5, 40))], "the leader's high watermark not read"),
        ([LEADER, LogUnavailable(3, LogUnavailableReason.NOT_AUTHORIZED, "no DESCRIBE")], "log not read"),
        ([replace(LEADER, high_watermark=None), log_of(3, (5, 40))], "the leader's high watermark not read"),
    ],
)
def test_what_was_not_heard_is_not_known(logs: list[LogAnswer], words: str) -> None:
    kept = _kept_out(logs)[3]
    assert kept is not None
    assert (kept.rule, words in kept.text, "not known" in kept.text) == ("caught-up", True, True)


def test_without_a_controller_no_isr_changes() -> None:
    kept = _kept_out([LEADER, log_of(3, (5, 100))], replace(ALL_LIVE, controller_silence="no answer in time"))[3]
    assert kept is not None
    assert kept.text == (
        "no controller answered (no answer in time): no ISR changes, or one changes it that these brokers do not reach"
    )


def test_a_directory_that_failed_is_not_told_from_a_controlled_shutdown_unless_it_says_so() -> None:
    offline = replace(LED, offline_replicas=(3,))
    kept = _kept_out([LEADER], ALL_LIVE, offline)[3]
    assert kept is not None
    assert kept.text == "broker shutting down, or its log directory failed; either keeps it out"
    kept = _kept_out(
        [LEADER, LogUnavailable(3, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR")], ALL_LIVE, offline
    )[3]
    assert kept is not None
    assert kept.text.startswith("log directory offline")
