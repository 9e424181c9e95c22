"""What a missing leader, or a loss, means for a topic: which sentences are said, and that each has its condition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kelr.controller import ELR_4_3
from kelr.engine import case_of, decide
from kelr.engine.loss import loss_of_electing
from kelr.model import (
    LOG_DIRECTORY,
    AdviceAction,
    Bounds,
    Damage,
    DamageKind,
    Decision,
    LogAnswer,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Situation,
)
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of


def decided(
    state: PartitionState,
    logs: Iterable[LogAnswer] = (),
    *,
    policy: tuple[str, ...] | None = ("delete",),
    min_isr: int = 2,
    live: tuple[int, ...] = (2, 3),
    fenced: tuple[int, ...] = (1,),
) -> Decision:
    snapshot = snapshot_of(state, cluster_of(live=live, fenced=fenced), logs, min_isr=min_isr)
    configs = {topic: replace(config, cleanup_policy=policy) for topic, config in snapshot.configs.items()}
    return decide(replace(snapshot, configs=configs), state, ELR_4_3)


def kinds(of: Decision) -> list[DamageKind]:
    return [damage.kind for damage in of.damage]


def damage(of: Decision, kind: DamageKind) -> Damage:
    (found,) = (damage for damage in of.damage if damage.kind is kind)
    return found


def log(replica: int, end: int, *, hw: int, stable: int | None) -> ReplicaLog:
    return replace(log_of(replica, (0, end), hw=hw), last_stable_offset=stable)


WAITING = leaderless((3, 1, 2), elr=(1,), last_known=(1,))
LED = PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), (3,), ())


def test_an_ordinary_topic_has_nothing_to_say_beyond_the_counted_offsets() -> None:
    assert decided(WAITING, [log_of(3, (0, 9)), silent(1), log_of(2, (0, 12))]).damage == ()


@pytest.mark.parametrize(
    ("topic", "kind", "stands_still", "lost", "afterwards"),
    [
        (
            "__consumer_offsets",
            DamageKind.CONSUMER_OFFSETS,
            "cannot join, rebalance or commit until it is led",
            "auto.offset.reset",
            "kafka-consumer-groups.sh {stock} --describe --all-groups",
        ),
        (
            "__transaction_state",
            DamageKind.TRANSACTION_STATE,
            "can neither begin nor end a transaction until it is led",
            "prepared commit",
            "kafka-transactions.sh {stock} find-hanging --broker-id N",
        ),
        (
            "__share_group_state",
            DamageKind.SHARE_GROUP_STATE,
            "cannot be stored until it is led",
            "are delivered again",
            "kafka-share-groups.sh {stock} --describe --group GROUP",
        ),
        (
            "__remote_log_metadata",
            DamageKind.REMOTE_LOG_METADATA,
            "cannot be moved to remote storage until it is led",
            "can be neither read nor deleted",
            "",
        ),
    ],
)
def test_kafkas_own_topics_say_what_stands_still_and_what_a_loss_is(
    topic: str, kind: DamageKind, stands_still: str, lost: str, afterwards: str
) -> None:
    """All of them are compacted; what that means for them is said in their own words."""
    found = decided(replace(WAITING, topic=topic), policy=("compact",))
    assert kinds(found) == [kind]
    assert stands_still in found.damage[0].text
    assert lost in found.damage[0].text
    assert found.damage[0].afterwards == afterwards
    assert found.advice.action is decided(WAITING).advice.action


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_a_coordinator_that_is_led_but_short_of_replicas_waits_for_min_isr(topic: str) -> None:
    found = decided(replace(LED, topic=topic))
    assert found.situation is Situation.UNDER_MIN_ISR
    assert "until min ISR is met" in found.damage[0].text
    assert "until it is led" not in found.damage[0].text


def test_a_healthy_coordinator_has_nothing_at_stake() -> None:
    healthy = PartitionState("__consumer_offsets", 0, 2, 5, (2, 3), (2, 3), (), ())
    found = decided(healthy)
    assert (found.situation, found.damage) == (Situation.HEALTHY, ())


def test_the_metadata_log_is_elected_by_no_rule_of_a_partition() -> None:
    state = replace(WAITING, topic="__cluster_metadata")
    found = decided(state, [log_of(3, (0, 9)), log_of(1, (0, 9)), log_of(2, (0, 9))], live=(1, 2, 3), fenced=())
    assert (found.situation, found.elected, found.waits_for) == (Situation.UNKNOWN, None, ())
    assert (found.steps, found.forecasts) == ((), ())
    assert {(outcome.elected, outcome.designate) for outcome in found.elections} == {(None, None)}
    assert all("UNKNOWN_TOPIC_OR_PARTITION" in outcome.note for outcome in found.elections)
    assert kinds(found) == [DamageKind.CLUSTER_METADATA]
    assert (found.advice.action, found.advice.elect) == (AdviceAction.GET_MORE_INFORMATION, ())
    assert "voters" in found.advice.text


def test_a_metadata_log_that_is_led_needs_nothing() -> None:
    found = decided(PartitionState("__cluster_metadata", 0, 2, 5, (1, 2, 3), (2,), None, None))
    assert (found.situation, found.elected, found.damage) == (Situation.HEALTHY, 2, ())
    assert found.advice.action is AdviceAction.NOTHING


@pytest.mark.parametrize(
    ("policy", "said"),
    [(("compact",), True), (("compact", "delete"), True), (("delete",), False), ((), False), (None, False)],
)
def test_a_compacted_topic_may_lose_the_only_value_of_a_key(policy: tuple[str, ...] | None, said: bool) -> None:
    found = decided(WAITING, policy=policy)
    assert kinds(found) == ([DamageKind.COMPACTED] if said else [])


@pytest.mark.parametrize(
    ("min_isr", "replicas", "said"), [(1, (3, 1, 2), True), (2, (3, 1, 2), False), (1, (2,), False)]
)
def test_min_isr_1_makes_one_replica_enough_for_a_commit(min_isr: int, replicas: tuple[int, ...], said: bool) -> None:
    found = decided(leaderless(replicas), [log_of(2, (0, 9))], min_isr=min_isr)
    assert (DamageKind.MIN_ISR_1 in kinds(found)) is said


def test_with_min_isr_1_the_whole_quorum_proves_nothing_once_a_replica_lost_data() -> None:
    logs = [log_of(3, (0, 9)), log_of(1, (0, 12)), log_of(2, (0, 10))]
    reasons = []
    for min_isr in (1, 2):
        found = decided(leaderless((3, 1, 2)), logs, min_isr=min_isr, live=(1, 2, 3), fenced=())
        best = next(o for o in found.elections if o.designate == 1)
        assert best.loss is not None
        reasons.append(best.loss.reason)
    assert reasons[0].endswith("nothing committed is lost if no replica lost data")
    assert reasons[1].endswith("nothing committed with min ISR 2 is lost if fewer than 2 replicas lost data")


def test_a_single_replica_comes_back_with_its_broker_or_not_at_all() -> None:
    away = decided(leaderless((1,), elr=(1,), last_known=(1,)), [silent(1)], min_isr=1)
    assert kinds(away) == [DamageKind.SINGLE_REPLICA]
    assert "Only broker 1 has" in away.damage[0].text
    back = decided(leaderless((2,)), [log_of(2, (0, 9))], min_isr=1)
    assert kinds(back) == []


@pytest.mark.parametrize(
    ("high_watermark", "stable", "start"), [(100, 80, 80), (100, 100, None), (100, None, None), (0, 0, None)]
)
def test_a_transaction_is_open_where_the_last_stable_offset_stands_below_the_high_watermark(
    high_watermark: int, stable: int | None, start: int | None
) -> None:
    logs = [log(3, 90, hw=90, stable=90), silent(1), log(2, 120, hw=high_watermark, stable=stable)]
    found = decided(WAITING, logs)
    assert (DamageKind.OPEN_TRANSACTION in kinds(found)) is (start is not None)
    if start is not None:
        said = damage(found, DamageKind.OPEN_TRANSACTION)
        assert "began at offset 80 has no end below the high watermark (100) of 2's log" in said.text
        assert said.afterwards == "kafka-transactions.sh {stock} find-hanging --topic orders --partition 0"


def test_only_the_best_log_tells_of_open_transactions() -> None:
    logs = [log(3, 90, hw=90, stable=40), silent(1), log(2, 120, hw=120, stable=30)]
    found = decided(WAITING, logs)
    assert kinds(found) == [DamageKind.OPEN_TRANSACTION]
    assert "offset 30" in found.damage[0].text


def test_an_election_that_loses_the_marker_says_so() -> None:
    """3's log ends, with all of it below the high watermark, before the marker that 2 holds."""
    found = decided(WAITING, [log(3, 90, hw=90, stable=40), silent(1), log(2, 120, hw=110, stable=110)])
    assert kinds(found) == [DamageKind.LOST_MARKER]
    assert found.damage[0].text.startswith("Electing 3 loses the marker that ended the transaction from offset 40 on.")
    assert found.damage[0].afterwards == (
        "kafka-transactions.sh {stock} abort --topic orders --partition 0 --start-offset 40"
    )


def test_what_survives_of_a_transaction_without_its_marker_is_counted() -> None:
    """2's log and 3's agree up to 90: of the transaction from 40 on, so many offsets stay, and are dropped."""
    found = decided(WAITING, [log(3, 90, hw=90, stable=40), silent(1), log(2, 120, hw=110, stable=110)])
    text = found.damage[0].text
    assert "lost for read_committed, too: up to 50 offsets, beside those that are counted" in text
    assert "kelr rescue replay --cut-transactions brings them back after the abort" in text


def test_a_disk_does_not_tell_how_transactions_ended_and_may_hold_the_marker() -> None:
    disk = replace(log_of(1, (0, 120), hw=110), source=LOG_DIRECTORY, current_leader_epoch=None)
    found = decided(WAITING, [log(3, 90, hw=90, stable=40), disk, log(2, 80, hw=80, stable=80)])
    said = damage(found, DamageKind.LOST_MARKER)
    assert said.text.startswith("Electing 3 may lose the marker that ended the transaction from offset 40 on.")


def test_beyond_its_high_watermark_a_log_may_hold_the_marker() -> None:
    found = decided(WAITING, [log(3, 90, hw=70, stable=40), silent(1), log(2, 120, hw=110, stable=110)])
    assert found.damage[0].text.startswith("Electing 3 may lose the marker")


@pytest.mark.parametrize(
    ("why", "long"),
    [
        ("2 counts it as open up to its own high watermark alone", log(2, 120, hw=110, stable=40)),
        ("2 does not tell", log(2, 120, hw=110, stable=None)),
        ("nobody knows where 2 parts from 3", replace(log(2, 120, hw=90, stable=40), last_epoch=None, lineage=None)),
    ],
)
def test_a_longer_log_may_hold_a_marker_of_which_it_does_not_tell(why: str, long: ReplicaLog) -> None:
    found = decided(WAITING, [log(3, 90, hw=90, stable=40), silent(1), long])
    said = damage(found, DamageKind.LOST_MARKER).text
    assert said.startswith("Electing 3 may lose the marker that ended the transaction from offset 40 on."), why


@pytest.mark.parametrize(
    ("why", "short", "long"),
    [
        ("3 holds no transaction that is open", log(3, 90, hw=90, stable=90), log(2, 120, hw=110, stable=110)),
        ("3 ends where 2 ends: nothing is lost", log(3, 120, hw=90, stable=40), log(2, 120, hw=110, stable=110)),
        ("2 has it open as well, to its end", log(3, 90, hw=90, stable=40), log(2, 120, hw=120, stable=40)),
        (
            "from that offset on they hold other records",
            replace(log_of(3, (0, 40), (1, 90)), last_stable_offset=40),
            replace(log_of(2, (0, 40), (2, 120), hw=110), last_stable_offset=110),
        ),
        (
            "another record stands at that offset",
            log(3, 90, hw=90, stable=40),
            replace(log_of(2, (1, 120), hw=110), last_stable_offset=110),
        ),
    ],
)
def test_no_marker_is_lost_where_none_is_known_to_be(why: str, short: ReplicaLog, long: ReplicaLog) -> None:
    assert DamageKind.LOST_MARKER not in kinds(decided(WAITING, [short, silent(1), long])), why


def test_replicas_that_lose_the_same_marker_share_a_sentence() -> None:
    state = leaderless((3, 4, 2, 1), elr=(1,))
    logs = [log(3, 90, hw=90, stable=40), log(4, 80, hw=80, stable=40), log(2, 120, hw=110, stable=110), silent(1)]
    found = decided(state, logs, live=(2, 3, 4))
    assert [said.text.split(" loses")[0] for said in found.damage] == ["Electing 3 or 4"]


@pytest.mark.parametrize(
    ("why", "short", "said"),
    [
        ("from 40 on nothing tells of transactions, and 2 may hold the end of one", log(3, 90, hw=40, stable=40), True),
        ("all that 3 holds is told of", log(3, 90, hw=90, stable=90), False),
        ("3 loses nothing", log(3, 120, hw=40, stable=40), False),
    ],
)
def test_beyond_a_high_watermark_nothing_tells_of_transactions(why: str, short: ReplicaLog, said: bool) -> None:
    """A last stable offset is never above it: the marker that is lost was not named (seed 91664 of make hindsight)."""
    found = decided(WAITING, [short, silent(1), log(2, 120, hw=110, stable=110)])
    sentences = ["Electing 3 may lose the marker that ended a transaction"] if said else []
    assert [one.text.split(",")[0] for one in found.damage] == sentences, why


def test_a_leader_that_is_not_live_can_be_displaced_and_the_marker_lost() -> None:
    state = PartitionState("orders", 0, 1, 5, (3, 1, 2), (1,), (), ())
    found = decided(state, [log(3, 90, hw=90, stable=40), silent(1), log(2, 120, hw=110, stable=110)])
    assert found.situation is Situation.LEADER_NOT_LIVE
    assert kinds(found) == [DamageKind.LOST_MARKER]


def test_a_partition_that_is_led_elects_nobody_and_loses_no_marker() -> None:
    found = decided(LED, [silent(1), log(2, 120, hw=110, stable=110), log(3, 90, hw=90, stable=40)])
    assert found.situation is Situation.UNDER_MIN_ISR
    assert found.damage == ()


def test_candidates_show_their_last_stable_offset() -> None:
    found = decided(WAITING, [log(3, 90, hw=90, stable=40), silent(1), log_of(2, (0, 120))])
    assert [candidate.last_stable_offset for candidate in found.candidates] == [40, None, None]


def remote(replica: int, *ends: tuple[int, int], disk: int, there: int | None = None, start: int = 0) -> ReplicaLog:
    """A log with remote storage: its disk begins here, and what it knows to be there ends there."""
    return replace(log_of(replica, *ends, start=start), local_start=disk, remote_end=there)


def fate(*logs: LogAnswer, state: PartitionState = WAITING, enabled: bool = True, **more: Any) -> str | None:
    """What is said of remote storage; None where nothing is."""
    snapshot = snapshot_of(state, cluster_of(live=more.get("live", (2, 3)), fenced=(1,)), logs)
    configs = {topic: replace(config, remote_storage=enabled) for topic, config in snapshot.configs.items()}
    found = decide(replace(snapshot, configs=configs), state, ELR_4_3)
    texts = [one.text for one in found.damage if one.kind is DamageKind.REMOTE_STORAGE]
    return texts[0] if texts else None


def test_what_each_election_leaves_of_remote_storage() -> None:
    """As it was seen on 4.4.0: 2 holds what is on no disk any more, and 3 was out of sync."""
    behind, ahead = remote(3, (0, 60), disk=60), remote(2, (0, 90), disk=90, there=90)
    assert fate(behind, silent(1), ahead) == (
        "Remote storage has offsets 0..89, as 2 knows; the log of broker 1 was not read, and may tell of more."
        " Electing 3 cuts off offsets 60..89 of it: they stay there, no consumer gets them any more, and Kafka deletes"
        " them once the topic begins with a newer leader epoch."
        " Then 2 drops its log and begins at 60: once 2 leads, also by a clean election, Kafka deletes what is there"
        " before 60, unless its log begins by then where the leader's does (kelr log-info)."
        " Electing 2 keeps all of it."
    )
    assert fate(behind, silent(1), ahead, enabled=False) is None


def test_a_leader_without_records_has_kafka_delete_all_that_is_in_remote_storage() -> None:
    said = fate(log_of(3), silent(1), remote(2, (0, 90), disk=40))
    assert said is not None
    assert "Electing 3 has Kafka delete all of it" in said
    assert "offsets 0..39" in said


def test_a_log_that_begins_later_takes_the_beginning_of_remote_storage_with_it() -> None:
    said = fate(remote(3, (2, 80), start=60, disk=80), silent(1), remote(2, (0, 60), (2, 80), disk=80))
    assert said is not None
    assert "Electing 3 has Kafka delete offsets 0..59 of it: its log begins at 60." in said


@pytest.mark.parametrize("logs", [(silent(3), silent(1), silent(2)), (log_of(3, (0, 9)), silent(1), log_of(2, (0, 9)))])
def test_what_is_in_remote_storage_may_not_be_known(logs: tuple[LogAnswer, ...]) -> None:
    said = fate(*logs)
    assert said is not None
    assert said.startswith("The topic has remote storage; what is there is not known.")


def test_a_partition_that_is_led_loses_nothing_in_remote_storage() -> None:
    said = fate(silent(1), remote(2, (0, 90), disk=90), remote(3, (0, 60), disk=60), state=LED)
    known = "Remote storage has offsets 0..89, as 2 knows"
    assert said == f"{known}; the log of broker 1 was not read, and may tell of more."


@pytest.mark.parametrize("config", ["diskless.enable=true", "mirror.name=west"])
def test_a_topic_whose_records_are_elsewhere_is_named_and_its_losses_are_unknown(config: str) -> None:
    logs = [log_of(3, (0, 9)), silent(1), log_of(2, (0, 12))]
    snapshot = snapshot_of(WAITING, cluster_of(live=(2, 3), fenced=(1,)), logs)
    configs = {topic: replace(one, foreign=config) for topic, one in snapshot.configs.items()}
    found = decide(replace(snapshot, configs=configs), WAITING, ELR_4_3)
    assert damage(found, DamageKind.FOREIGN).text.startswith(f"The topic has {config}: ")
    losses = [one.loss for one in found.elections if one.loss is not None]
    assert losses
    assert all(loss.grade is LossCertainty.UNKNOWN and config in loss.reason for loss in losses)


def test_where_retention_moved_the_start_nothing_is_lost() -> None:
    """Broker 1 has been down since: its disk knows of no retention."""
    said = fate(
        remote(3, (0, 100), (1, 200), start=70, disk=150), remote(1, (0, 100), disk=90), state=WAITING, live=(3,)
    )
    known = "Remote storage has offsets 70..149, as 3 knows; the log of broker 2 was not read, and may tell of more."
    assert said == f"{known} Electing 3 keeps all of it."


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("state", [LED, leaderless((3, 1, 2), elr=(3,), last_known=(3,))])
def test_a_member_whose_log_begins_anew_proves_nothing(state: PartitionState, enabled: bool) -> None:
    """It is in sync, and once it leads the rest is deleted in remote storage (seen on 4.4.0)."""
    logs = [remote(3, (2, 80), start=60, disk=80), silent(1), remote(2, (0, 60), (2, 80), disk=80)]
    snapshot = snapshot_of(replace(state, isr=(*state.isr, 3)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    configs = {topic: replace(config, remote_storage=enabled) for topic, config in snapshot.configs.items()}
    case = case_of(replace(snapshot, configs=configs), snapshot.partitions[0], ELR_4_3)
    loss = loss_of_electing(case, 3)
    assert loss.grade is (LossCertainty.UNKNOWN if enabled else LossCertainty.PROVEN_NONE)
    assert ("Kafka deletes what is in remote storage before 60 once 3 leads" in loss.reason) is enabled
    assert loss.committed == (Bounds(0) if enabled else Bounds(0, 0))
