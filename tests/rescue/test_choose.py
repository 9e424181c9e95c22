"""Which records are worth saving: those that the leader to come lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from kelr.engine import decide
from kelr.errors import UsageError
from kelr.model import (
    Advice,
    AdviceAction,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Snapshot,
    TopicConfig,
)
from kelr.rescue.choose import Choice, Limits, choose
from tests.rescue.batches import log, partition

CLUSTER = Cluster(
    "cluster",
    (
        Broker(1, BrokerStatus.FENCED, "127.0.0.1", 9101),
        Broker(2, BrokerStatus.LIVE, "127.0.0.1", 9102),
        Broker(3, BrokerStatus.LIVE, "127.0.0.1", 9103),
    ),
    Features({"eligible.leader.replicas.version": 1}, {"metadata.version": 30}),
    brokers_source="DescribeCluster v2",
)
CONFIG = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT, cleanup_policy=("delete",))
LEADERLESS = partition(leader=None, isr=(), elr=(), last_known_elr=(1,))
UNHEARD = LogUnavailable(1, LogUnavailableReason.UNREACHABLE, "connection refused")
UNHEARD_3 = replace(UNHEARD, replica=3)
LOGS: tuple[LogAnswer, ...] = (UNHEARD, log(2, (4, 30), (5, 40)), log(3, (4, 35)))
"""Replica 2 has epoch 5; replica 3 has 5 records more of epoch 4, which nobody else has."""


def chosen(
    limits: Limits | None = None,
    *,
    state: PartitionState = LEADERLESS,
    logs: tuple[LogAnswer, ...] = LOGS,
    elect: int | None = None,
    config: TopicConfig = CONFIG,
    advice: Advice | None = None,
    doubts: Mapping[int, LogUnavailable] = MappingProxyType({}),
) -> Choice:
    snapshot = Snapshot(
        0,
        CLUSTER,
        (state,),
        {"orders": config},
        {state.address: tuple(replace(one) for one in logs)},
        first_partition_replicas={"orders": 3},
    )
    decision = decide(snapshot, state)
    if advice is not None:
        decision = replace(decision, advice=advice)
    return choose(snapshot, decision, limits or Limits(), elect=elect, doubts=doubts)


DESIGNATE_2 = Advice(AdviceAction.DESIGNATE, "", 2)
BRING_BACK_1 = Advice(AdviceAction.BRING_BACK, "", 1)


def ranges(choice: Choice) -> list[tuple[int, int, int]]:
    return [(one.replica, one.from_offset, one.to_offset) for one in choice.wanted]


def test_each_election_gives_up_something_else() -> None:
    assert ranges(chosen(elect=2)) == [(3, 30, 35)]
    assert ranges(chosen(elect=3)) == [(2, 30, 40)]


def test_without_a_word_it_is_whom_kelr_advises() -> None:
    found = chosen(advice=DESIGNATE_2)
    assert ranges(found) == [(3, 30, 35)]
    assert found.wanted[0].why == "replica 2, which would lead, lacks these"
    assert found.note == "what replica 1 holds is not known: --log-dir reads it from its broker's disk"


def test_where_a_replica_that_may_hold_more_was_not_read_what_is_lost_is_not_known() -> None:
    """`elect` came next, with exit code 0, although nobody had read the ELR."""
    same = (UNHEARD, log(2, (4, 30)), log(3, (4, 30)))
    found = chosen(logs=same, elect=2)
    assert (ranges(found), found.failed, found.unread) == ([], True, (1,))
    assert found.note.startswith("nothing to save: no log that was read holds what replica 2 lacks; what replica 1")
    assert chosen(elect=2).failed
    led = partition(leader=2, isr=(2,), elr=(), last_known_elr=())
    assert chosen(state=led, logs=same).failed
    # In sync with the leader that lives: it has truncated what that one lacks.
    assert not chosen(state=replace(led, isr=(1, 2)), logs=same).failed
    # Its disk is saved whole.
    found = chosen(Limits(whole=(1,)), logs=same, elect=2)
    assert (ranges(found), found.failed, found.note) == ([], False, "")
    assert not chosen(Limits(replicas=(1,), whole=(1,)), logs=same, elect=2).failed
    # A log that was read and shares no epoch that is known with the leader's.
    torn = log(3, (7, 30), lineage=None)
    found = chosen(logs=(log(1, (4, 30)), log(2, (4, 30)), torn), elect=2)
    assert (found.unread, found.failed) == ((3,), True)


def test_where_kelr_advises_a_return_it_is_whom_that_elects() -> None:
    disk = log(1, (4, 32), source="log directory", current_leader_epoch=None)
    found = chosen(logs=(disk, *LOGS[1:]), advice=BRING_BACK_1)
    assert ranges(found) == [(2, 30, 40), (3, 32, 35)]
    assert found.wanted[0].why == "replica 1, which is to lead, lacks these"


UNREAD = (
    "the log of replica 1, which is to lead, was not read or tells no epochs: what the others truncate is UNKNOWN. "
)
CRASHED = (
    ". After a crash of its machine 1 may lack committed records, too: read its disk with --log-dir, or give what"
    " `kelr recover collect` read there with --logs"
)
HELD = "above their high watermarks, or differently from each other"


@pytest.mark.parametrize("whom", [{"elect": 1}, {"advice": BRING_BACK_1}])
def test_before_the_return_of_a_log_that_nobody_read_all_that_it_may_truncate_is_saved(whom: dict[str, Any]) -> None:
    """An acks=1 record that only followers hold beside the dead leader lies above their high watermarks."""
    logs = (UNHEARD, replace(log(2, (4, 40)), high_watermark=20), replace(log(3, (4, 35)), high_watermark=32))
    found = chosen(logs=logs, **whom)
    assert ranges(found) == [(2, 20, 40)]
    assert (found.failed, found.leader) == (True, 1)
    assert found.wanted[0].why == "what replica 1, which is to lead, lacks of these is not known"
    saved = f"Saved: what they hold {HELD}. If 1 holds everything committed, they truncate no more"
    assert found.note == f"{UNREAD}{saved}{CRASHED}"
    assert ranges(chosen(Limits(replicas=(3,)), logs=logs, **whom)) == []
    assert ranges(chosen(Limits(to_offset=30), logs=logs, **whom)) == [(2, 20, 30)]


def test_logs_that_part_cannot_both_survive_the_return_of_one_that_nobody_read() -> None:
    assert ranges(chosen(elect=1)) == [(2, 30, 40), (3, 30, 35)]


def test_where_nothing_is_above_a_high_watermark_nothing_is_saved_and_what_is_unknown_is_said() -> None:
    silent = replace(log(3, (4, 35)), high_watermark=None)
    found = chosen(logs=(UNHEARD, log(2, (4, 40)), silent), elect=1)
    assert (ranges(found), found.failed) == ([], True)
    nothing = f"Nothing is saved: no log that was read holds anything {HELD}"
    assert found.note == f"{UNREAD}{nothing}{CRASHED}. What replica 3 holds there is not known either"


def test_a_reading_of_the_leader_to_come_that_is_doubted_counts_as_not_read() -> None:
    """Its log may be shorter by now than it was when its disk was read."""
    disk = log(1, (4, 30), (5, 40), (6, 55), source="log directory", current_leader_epoch=None)
    logs, doubts = (disk, *LOGS[1:]), {1: LogUnavailable(1, LogUnavailableReason.DOUBTFUL, "its disk is not believed")}
    assert ranges(chosen(logs=logs, elect=1)) == [(3, 30, 35)]
    found = chosen(logs=logs, elect=1, doubts=doubts)
    assert ranges(found) == [(2, 0, 40), (3, 30, 35)]
    assert found.failed
    assert found.note == (
        "broker 1: its disk is not believed; it counts as not read, so all that the others hold is saved"
    )
    assert {one.why for one in found.wanted} == {"what replica 1, which is to lead, lacks of these is not known"}
    # It was compared with none of them, so that a replay does not take these for lost by it.
    assert {one.lacked_by for one in found.wanted} == {None}
    assert {one.lacked_by for one in chosen(logs=logs, elect=1).wanted} == {1}
    # What is on a disk that contradicts others is saved all the same.
    assert chosen(logs=logs, elect=2, doubts=doubts) == chosen(logs=logs, elect=2)


def test_what_kafka_cuts_off_the_doubted_leaders_own_disk_is_saved_beside_all_of_the_others() -> None:
    cut = log(1, (4, 30), source="log directory", current_leader_epoch=None, cut_off=((4, 50, 60),))
    doubts = {1: LogUnavailable(1, LogUnavailableReason.DOUBTFUL, "its disk is not believed")}
    found = chosen(logs=(cut, log(2, (4, 40)), UNHEARD_3), elect=1, doubts=doubts)
    # Its own is read from the beginning: what its log held is not believed.
    assert ranges(found) == [(1, 0, 60), (2, 0, 40)]
    assert found.failed
    assert [(one.why, one.lacked_by) for one in found.wanted] == [
        ("Kafka cuts these off its disk when the broker starts", None),
        ("what replica 1, which is to lead, lacks of these is not known", None),
    ]


def test_where_the_elr_is_not_known_what_any_log_may_give_up_is_saved() -> None:
    """Found by `make hindsight`: whom a return elects is not known, so that a live replica which lacks nothing proves
    nothing of what is lost."""
    unknown = replace(LEADERLESS, elr=None, last_known_elr=None)
    disk = replace(log(1, (4, 40), source="log directory", current_leader_epoch=None), high_watermark=10)
    found = chosen(state=unknown, logs=(disk, replace(log(2, (4, 40)), high_watermark=10), UNHEARD_3))
    assert ranges(found) == [(2, 10, 40)]
    assert found.failed
    assert found.note == (
        "who is to lead is not known, since ELR and LastKnownELR are not: what one log lacks of another, and what is"
        " above the high watermarks, is saved; --elect ID saves what that replica lacks; what replica 3 holds is not"
        " known: --log-dir reads it from its broker's disk"
    )
    empty = chosen(state=unknown, logs=(disk, log(2), UNHEARD_3))
    assert ranges(empty) == [(1, 0, 40)]
    assert ranges(chosen(Limits(replicas=(3,)), state=unknown)) == [(3, 30, 35)]
    assert not chosen(state=unknown, logs=(disk, *LOGS[1:]), elect=2).failed


def test_a_leader_that_leads_decides() -> None:
    led = partition(leader=3, isr=(3,), elr=(), last_known_elr=())
    assert ranges(chosen(state=led)) == [(2, 30, 40)]


def test_what_was_deleted_on_purpose_is_not_saved_and_counted_apart() -> None:
    """Broker 1 was killed before its disk told that the log begins at 30 by now; broker 3 lacks all of it."""
    disk = log(1, (4, 50), source="log directory", current_leader_epoch=None)
    found = chosen(logs=(disk, log(2, (4, 40), start=30), log(3, (4, 20))), elect=3)
    assert ranges(found) == [(1, 30, 50)]
    assert found.deleted == 10
    assert chosen(elect=2).deleted == 0


def test_the_name_of_a_first_segment_tells_of_no_deletion() -> None:
    """The copy of a disk may lack the segments before it: what others hold of them was not saved."""
    disk = log(1, (4, 50), source="log directory", current_leader_epoch=None)
    copied = log(2, (4, 40), start=30, start_by_name=True, source="log directory")
    found = chosen(logs=(disk, copied, log(3, (4, 20))), elect=3)
    assert (ranges(found), found.deleted, found.wanted[0].lacked_by) == ([(1, 20, 50)], 0, 3)
    found = chosen(logs=(log(1, (4, 40)), copied, UNHEARD_3), elect=2)
    (one,) = found.wanted
    assert (ranges(found), found.deleted) == ([(1, 0, 30)], 0)
    assert (one.lacked_by, one.perhaps_held_by) == (None, 2)
    assert one.why == "the log of replica 2 begins behind some of these: whether it held them is not known"
    # With remote storage it is there that it begins; without, Kafka begins it at its first segment.
    there = replace(copied, log_start=0, local_start=30)
    config = replace(CONFIG, remote_storage=True)
    for known, saved in ((CONFIG, [(1, 0, 30)]), (config, [])):
        assert ranges(chosen(logs=(log(1, (4, 40)), there, UNHEARD_3), elect=2, config=known)) == saved


def test_what_the_leaders_log_begins_behind_and_never_showed_to_hold_is_saved() -> None:
    """It was "nothing to save": deletion from the leader's log proves nothing of another one's records."""
    led = partition(leader=2, isr=(2, 3), elr=(), last_known_elr=())
    lost = log(1, (4, 50), source="log directory", current_leader_epoch=None)
    leader = log(2, (6, 200), start=100)
    found = chosen(state=led, logs=(lost, leader, replace(leader, replica=3)))
    assert (ranges(found), found.deleted, found.failed) == ([(1, 0, 50)], 0, False)
    assert (found.wanted[0].lacked_by, found.wanted[0].perhaps_held_by) == (None, 2)
    # It shows that it held them.
    leader = log(2, (4, 120), (6, 200), start=100)
    assert ranges(chosen(state=led, logs=(lost, leader, replace(leader, replica=3)))) == []


def test_a_disk_counts_like_a_broker() -> None:
    disk = log(1, (4, 30), (5, 40), (6, 55), source="log directory", current_leader_epoch=None)
    assert ranges(chosen(logs=(disk, *LOGS[1:]), elect=2)) == [(1, 40, 55), (3, 30, 35)]


def test_a_replica_that_is_named_is_the_only_one() -> None:
    disk = log(1, (4, 30), (5, 40), (6, 55), source="log directory", current_leader_epoch=None)
    logs = (disk, *LOGS[1:])
    assert ranges(chosen(Limits(replicas=(3,)), logs=logs, elect=2)) == [(3, 30, 35)]
    assert ranges(chosen(Limits(replicas=(3,), to_offset=32), logs=logs, elect=2)) == [(3, 30, 32)]


def test_what_several_named_replicas_hold_is_saved_once_and_whoever_was_not_read_keeps_nobody_out() -> None:
    """As with the disks of one host: a plan names all of their brokers."""
    short, long = log(1, (4, 40), source="log directory"), log(3, (4, 50), source="log directory")
    leader = log(2, (4, 30))
    found = chosen(Limits(replicas=(1, 3)), logs=(short, leader, long), elect=2)
    assert (ranges(found), found.failed) == ([(3, 30, 50)], False)
    assert [(one.replica, one.from_offset, one.to_offset) for one in found.covered] == [(1, 40, 40)]
    found = chosen(Limits(replicas=(1, 3)), logs=(UNHEARD, leader, long), elect=2)
    assert (ranges(found), found.failed) == ([(3, 30, 50)], True)
    assert found.note.startswith("the log of broker 1 was not read, or cannot be compared")


def test_a_partition_without_a_replica_on_the_named_brokers_is_no_failure() -> None:
    """A plan has other partitions, too, than those with a replica on this host."""
    found = chosen(Limits(replicas=(7, 8)), elect=2)
    assert found == Choice(LEADERLESS, (), "brokers 7 and 8 hold no replica of it", leader=2)


def test_offsets_that_are_named_are_taken_as_they_are() -> None:
    assert ranges(chosen(Limits(replicas=(3,), from_offset=10, to_offset=20))) == [(3, 10, 20)]
    assert ranges(chosen(Limits(replicas=(3,), from_offset=10))) == [(3, 10, 35)]
    assert ranges(chosen(Limits(from_offset=10))) == [(2, 10, 40)]
    assert chosen(Limits(from_offset=10)).wanted[0].why == "named outright"


def test_nothing_lost_is_said() -> None:
    same = (log(1, (4, 30)), log(2, (4, 30)), log(3, (4, 30)))
    found = chosen(logs=same, elect=2)
    note = "nothing to save: no log that was read holds what replica 2 lacks"
    assert found == Choice(LEADERLESS, (), note, leader=2)


@pytest.mark.parametrize(
    ("logs", "elect"),
    [
        ((UNHEARD, LogUnavailable(2, LogUnavailableReason.TIMED_OUT), LOGS[2]), 2),
        ((UNHEARD, log(2, (5, 40), last_epoch=None, lineage=None), LOGS[2]), 2),
        (LOGS, 9),
    ],
)
def test_what_cannot_be_compared_is_not_guessed(logs: tuple[LogAnswer, ...], elect: int) -> None:
    found = chosen(logs=logs, elect=elect)
    assert found.failed
    assert found.wanted == ()


def test_a_named_replica_that_was_not_heard_is_said() -> None:
    assert chosen(Limits(replicas=(1,)), elect=2).failed
    assert chosen(Limits(replicas=(1,), from_offset=3)).failed


@pytest.mark.parametrize(("policy", "compacted"), [(("compact",), True), (("delete",), False), (None, None)])
def test_compaction_is_noted(policy: tuple[str, ...] | None, compacted: bool | None) -> None:
    found = chosen(elect=2, config=replace(CONFIG, cleanup_policy=policy))
    assert found.wanted[0].compacted is compacted


@pytest.mark.parametrize("enabled", [True, False, None])
def test_remote_storage_is_noted(enabled: bool | None) -> None:
    assert chosen(elect=2, config=replace(CONFIG, remote_storage=enabled)).wanted[0].tiered is enabled


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing from offset 5 to 5"):
        Limits(from_offset=5, to_offset=5)
