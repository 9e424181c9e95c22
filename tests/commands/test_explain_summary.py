"""``kelr explain`` of many partitions: whoever follows its summary alone loses nothing that could be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from kelr.commands import explaining
from kelr.commands.elections_on_record import OnRecord
from kelr.model import (
    LOG_DIRECTORY,
    ClearedElr,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Snapshot,
)
from tests.commands.conftest import Kelr, in_one_line
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of

Summed = Callable[..., str]

COLLECT = "kelr recover collect --log-dir DIRECTORY --out broker-{}.kelr"
UNREAD = (log_of(2, (2, 100)), log_of(3, (2, 50)), silent(4))
IN_THE_ELR = leaderless((2, 3, 4), elr=(4,), last_known=(2,))


@pytest.fixture
def summed(kelr: Kelr, cluster: Callable[[Snapshot], None], monkeypatch: pytest.MonkeyPatch) -> Summed:
    """The summary of these partitions with these logs, and the notes, in one line."""
    monkeypatch.setattr(explaining, "MOST_IN_FULL", 0)

    def run(*rows: tuple[PartitionState, Sequence[LogAnswer]], down: int, too: int = 0, elr: bool = True) -> str:
        brokers = cluster_of(live={1, 2, 3, 4} - {down, too}, fenced=tuple({down, too} - {0}), elr=elr)
        states = [replace(state, partition=number) for number, (state, _) in enumerate(rows)]
        one = snapshot_of(states[0], brokers)
        logs = {state.address: tuple(answers) for state, (_, answers) in zip(states, rows, strict=True)}
        cluster(replace(one, partitions=tuple(states), logs=logs))
        ran = kelr("explain", "orders", "-b", "kafka:9092")
        return in_one_line(f"{ran.out} {ran.err}")

    return run


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit log tells that kelr cleared the ELR of what is empty: min ISR was not less before."""
    state = leaderless((2, 3, 4))
    by_kelr = dict.fromkeys((replace(state, partition=number).address for number in range(2)), ClearedElr(5, 2))
    monkeypatch.setattr(explaining, "on_record", lambda *_: OnRecord(cleared=by_kelr))


def led(**changes: object) -> PartitionState:
    return replace(leaderless((2, 3, 4), isr=(2, 3)), leader=2, **changes)  # type: ignore[arg-type]


def test_a_disk_with_unsaved_records_is_saved_before_others_have_its_broker_started(summed: Summed) -> None:
    out = summed((led(recovering=True), UNREAD), (leaderless((2, 3, 4), isr=(4,)), UNREAD), down=4, elr=False)
    first = "First save records of 1 partition before broker 4 starts: a return may truncate them, or a disk may"
    only = "hold the only copy. The plan has the commands: kelr recover plan -b"
    assert f"Before any broker starts: {first} {only}" in out
    assert out.index("First save") < out.index("Then start in this order; run kelr explain after each: 1. broker 4")
    assert "as above, start 4" in out


def test_a_crash_is_asked_about_where_another_would_be_elected_after_it(summed: Summed) -> None:
    out = summed((IN_THE_ELR, UNREAD), down=4)
    assert "If broker 4's machine crashed, read its disk first: Kafka may elect a worse log then. " in out
    assert f"{COLLECT.format(4)} Then start in this order" in out
    assert "Keep 4 down" not in out


def test_of_a_read_disk_that_does_not_tell_of_its_shutdown_a_partition_is_named(summed: Summed) -> None:
    out = summed((IN_THE_ELR, (*UNREAD[:2], log_of(4, (2, 100)))), down=4)
    assert "If broker 4's machine crashed, its return elects another: first run kelr explain orders:0." in out
    assert "recover collect" not in out


def test_healthy_partitions_need_no_action(summed: Summed) -> None:
    same = (log_of(2, (2, 100)), log_of(3, (2, 100)), log_of(4, (2, 100)))
    out = summed((led(), same), (leaderless((2, 3, 4), isr=(4,)), UNREAD), down=4)
    assert out.startswith("1 of 2 partitions needs action: 1 leaderless.")
    assert "healthy" not in out
    alone = summed((led(), same), down=1)
    assert alone.startswith("No action needed: the partition has a live leader and meets min ISR.")


def test_a_disk_that_is_not_believed_is_read_again(summed: Summed) -> None:
    doubted = LogUnavailable(4, LogUnavailableReason.DOUBTFUL, "its disk is not believed", 0)
    out = summed((IN_THE_ELR, (*UNREAD[:2], doubted)), down=4)
    assert "Keep 4 down Its disk was read before it last ran, or its log was cut. Read it again while it is" in out
    assert f"down: {COLLECT.format(4)}" in out
    assert "even if its log was cut" not in out
    assert "in this order" not in out
    assert "read disk 4 again" in out


def test_a_broker_over_which_partitions_disagree_is_not_said_to_be_started_then(summed: Summed) -> None:
    doubted = LogUnavailable(4, LogUnavailableReason.LACKING, "its disk is not believed", 0)
    kept = (leaderless((2, 3, 4), last_known=(4,)), (*UNREAD[:2], doubted))
    out = summed((IN_THE_ELR, UNREAD), kept, down=4)
    assert "Keep 4 down" in out
    assert "Partitions disagree" not in out


def test_a_broker_is_started_where_the_advice_is_to_compare_its_log_and_its_return_elects_nobody(
    summed: Summed,
) -> None:
    """It was said to be kept down, while the partition's own advice was to start it or to read its disk."""
    out = summed((leaderless((2, 3, 4)), UNREAD), down=4)
    assert "Keep 4 down" not in out
    assert "1. broker 4 on 1 partition its return elects no leader" in out
    assert "start 4 or read its disk" in out


def test_a_disk_on_which_the_advice_hangs_is_read_before_others_have_its_broker_started(summed: Summed) -> None:
    """With 1 back, too, Kafka elects 3 as soon as 4 returns."""
    together = leaderless((4, 1, 2), elr=(1,), last_known=(4,))
    unread = (
        together,
        (silent(4), replace(log_of(1, (0, 11)), source=LOG_DIRECTORY, unclean_shutdown=True), log_of(2, (0, 5), hw=4)),
    )
    out = summed((leaderless((2, 3, 4), isr=(4,)), UNREAD), unread, down=4, too=1)
    assert "Keep 4 down What its disk holds decides on 1 partition." in out
    assert f"Read its disk first: {COLLECT.format(4)}" in out
    assert "1 partition waits for it: start it after that." in out
    assert "in this order" not in out
    assert "Partitions disagree" not in out
    assert "read disk 4" in out


@pytest.mark.usefixtures("cleared")
def test_a_loss_is_none_by_a_return_that_elects_nobody_only_with_the_designation_behind_it(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    """The first line promised none of the return alone, which elects nobody."""
    state = leaderless((2, 3, 4))
    one = snapshot_of(state, cluster_of(live={1, 2, 3}, fenced=(4,)))
    cluster(replace(one, logs={state.address: (log_of(2, (1, 50)), log_of(3, (1, 50)), log_of(4, (1, 100)))}))
    out = in_one_line(kelr("explain", "orders:0", "-b", "kafka:9092").out)
    assert "Loss None if broker 4 returns and you designate it: its log is the most complete of 3." in out


def test_a_loss_that_nothing_bounds_is_not_hidden_by_one_that_is_counted(summed: Summed) -> None:
    parted = (log_of(2, (0, 50), (2, 60)), log_of(3, (0, 50), (1, 134)), silent(4))
    ahead = (log_of(2, (2, 100), hw=60), log_of(3, (2, 50)), silent(4))
    out = summed((IN_THE_ELR, ahead), (IN_THE_ELR, parted), down=4)
    assert "2 waiting-for-elr UNKNOWN (10+ offsets) as above, start 4" in out


@pytest.mark.usefixtures("cleared")
def test_a_return_that_elects_nobody_is_not_said_to_bring_leaders(summed: Summed) -> None:
    logs = (log_of(2, (1, 50)), log_of(3, (1, 50)), log_of(4, (1, 100)))
    out = summed((leaderless((2, 3, 4)), logs), (leaderless((2, 3, 4), isr=(4,)), UNREAD), down=4)
    assert "1. broker 4 returns leaders to up to 1 partition on 1 more its return elects no leader" in out
    assert "as above, start 4, then designate" in out


def test_led_partitions_share_a_row_whichever_replicas_they_lack(summed: Summed) -> None:
    end = (2, 100)
    lack_4 = (led(isr=(2,), elr=(4,)), (log_of(2, end), log_of(3, end), silent(4)))
    lack_3 = (replace(led(isr=(2,)), replicas=(1, 2, 3), elr=(3,)), (log_of(1, end), log_of(2, end), silent(3)))
    out = summed(lack_4, lack_3, down=3, too=4)
    assert "2 under-min-isr - start 3 and 4" in out


def test_a_broker_that_is_up_without_its_disk_is_not_started(summed: Summed) -> None:
    """It runs and leads other partitions: what it lacks is a disk."""
    failed = LogUnavailable(3, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR")
    lacks = led(isr=(2,), elr=(3, 4), offline_replicas=(3, 4))
    out = summed((lacks, (log_of(2, (2, 100)), failed, silent(4))), down=4)
    assert "1 under-min-isr - start 4, replace disk of 3" in out
    alone = replace(leaderless((3,), elr=(3,), last_known=(3,)), offline_replicas=(3,))
    only = summed((alone, (failed,)), (lacks, (log_of(2, (2, 100)), failed)), down=4)
    assert "1 no-live-replica UNKNOWN mend disk of 3" in only
    assert "Keep 3 down" not in only
    assert "broker 3" not in only


def test_a_single_copy_is_no_all_clear_where_min_isr_is_1(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    one = snapshot_of(led(isr=(2,), leader_epoch=0), cluster_of(live=(2, 3), fenced=(4,)), min_isr=1)
    cluster(one)
    ran = kelr("explain", "-b", "kafka:9092")
    assert (ran.code, ran.out) == (0, "")
    assert "No action needed" not in ran.err
    assert "1 partition has one of several replicas in sync: one failure from no leader." in ran.err
    assert "next: kelr describe --under-replicated -b kafka:9092" in ran.err
    assert "min ISR (1) is met, but new acks=all records have one copy." in in_one_line(kelr("explain", "orders").out)


def test_a_crash_of_any_of_several_brokers_is_asked_about_once(summed: Summed) -> None:
    other = leaderless((1, 2, 3), elr=(1,), last_known=(2,))
    out = summed((IN_THE_ELR, UNREAD), (other, (silent(1), *UNREAD[:2])), down=4, too=1)
    assert out.count("Kafka may elect a worse log") == 1
    assert "If broker 1 or 4's machine crashed, read its disk first: Kafka may elect a worse log then. " in out
    assert f"{COLLECT.format(1)} {COLLECT.format(4)}" in out


def test_what_clients_of_all_topics_wait_for_comes_first(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    """Without its coordinators no group commits and no transaction ends, in whatever topic: broker 1 starts before 4,
    which gives more partitions a leader."""
    own = [
        replace(leaderless((2, 1), elr=(1,), last_known=(1,)), topic=topic)
        for topic in ("__consumer_offsets", "__transaction_state")
    ]
    many = [replace(IN_THE_ELR, topic="Orders", partition=number, last_known_elr=()) for number in range(9)]
    states = [*many, *own]
    logs = {
        state.address: tuple(silent(one) if one in {1, 4} else log_of(one, (2, 9)) for one in state.replicas)
        for state in states
    }
    one = snapshot_of(states[0], cluster_of(live={2, 3}, fenced=(1, 4)))
    configs = {state.topic: one.configs["Orders"] for state in states}
    cluster(replace(one, partitions=tuple(states), logs=logs, configs=configs, first_partition_replicas={}))
    said = in_one_line(kelr("explain", "-b", "kafka:9092").out)
    assert (
        "First: 1 partition of __consumer_offsets (consumer groups wait) and 1 partition of __transaction_state"
        " (transactional producers wait)."
    ) in said
    assert "1. broker 1 returns leaders to up to 2 partitions, 2 of Kafka's own topics 2. broker 4 up to 9" in said
