"""Each cause is told from the records that Kafka writes for it, and nothing is said for certain that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.model import ELR_FEATURE
from kelr.replay import records as rec
from kelr.replay.history import (
    Cause,
    CauseKind,
    Certainty,
    ElectedAs,
    Interest,
    PartitionEntry,
    PartitionsEntry,
    ReassignmentStep,
    Restart,
    grouped,
)
from kelr.replay.history.attribution import FULL_BATCH
from kelr.replay.image import TOPIC
from tests.replay.history.told import ID, Log, changed, fenced, made, registered, unfenced

NONE = rec.NO_LEADER


def test_a_broker_that_is_fenced_takes_its_replicas_along() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(leader=2, isr=(2, 3)), fenced(1))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.BROKER_FENCED, broker=1)
    assert entry.election is not None
    assert (entry.election.elected_as, entry.election.last_leader, entry.election.leader) == (ElectedAs.ISR, 1, 2)


def test_a_shutdown_stands_in_front_of_what_it_brings() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(rec.BrokerChanged(1, 1, in_controlled_shutdown=True), changed(leader=2, isr=(2, 3)))
    assert log.last().cause == Cause(CauseKind.CONTROLLED_SHUTDOWN, broker=1)


def test_what_a_shutdown_took_is_not_told_as_the_fencings_in_one_batch() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(rec.BrokerChanged(1, 1, in_controlled_shutdown=True), changed(leader=2, isr=(2, 3)), fenced(1))
    assert log.last().cause == Cause(CauseKind.CONTROLLED_SHUTDOWN, broker=1)


def test_an_elr_member_that_is_unfenced_is_elected() -> None:
    log = Log(down=(1, 2, 3))
    log.topic(1, 2, 3, leader=NONE, isr=(), elr=(2,), last_known_elr=(1,))
    log.write(unfenced(2), changed(leader=2, isr=(2,), elr=(), last_known_elr=()))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.BROKER_UNFENCED, broker=2)
    assert entry.election is not None
    assert entry.election.elected_as is ElectedAs.ELR
    assert entry.election.elected_as.clean is True


def test_the_last_known_leader_that_returns_is_no_clean_election() -> None:
    log = Log(down=(1, 2, 3))
    log.topic(1, 2, 3, leader=NONE, isr=(), last_known_elr=(1,))
    log.write(unfenced(1), changed(leader=1, isr=(1,), last_known_elr=(), recovering=True))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.BROKER_UNFENCED, broker=1)
    assert entry.election is not None
    assert entry.election.elected_as is ElectedAs.LAST_KNOWN_LEADER
    assert entry.election.elected_as.clean is False


@pytest.mark.parametrize(
    ("unclean", "kind", "certainty"),
    [
        ("false", CauseKind.ELECTION, Certainty.CERTAIN),
        ("true", CauseKind.BROKER_UNFENCED, Certainty.CERTAIN),
        (None, CauseKind.BROKER_UNFENCED, Certainty.LIKELY),
    ],
)
def test_an_unclean_election_beside_an_unfencing_is_its_work_only_where_the_config_lets_it(
    unclean: str | None, kind: CauseKind, certainty: Certainty
) -> None:
    log = Log(unclean=unclean, down=(1, 2, 3))
    log.topic(1, 2, 3, leader=NONE, isr=(), elr=(1,), last_known_elr=(1,))
    log.write(unfenced(2), changed(leader=2, isr=(2,), elr=(), last_known_elr=(), recovering=True))
    entry = log.last()
    assert (entry.cause.kind, entry.cause.certainty) == (kind, certainty)
    assert entry.election is not None
    assert entry.election.elected_as is ElectedAs.UNCLEAN


def test_an_unclean_election_alone_was_asked_for_if_the_config_forbids_it() -> None:
    log = Log(unclean="false")
    log.topic(1, 2, 3)
    log.write(changed(leader=NONE, isr=(), elr=(1,), last_known_elr=(1,)), fenced(1))
    log.write(changed(leader=2, isr=(2,), elr=(), last_known_elr=(), recovering=True))
    entry = log.last()
    assert entry.cause.kind is CauseKind.ELECTION
    assert entry.cause.detail == "ElectLeaders UNCLEAN (unclean.leader.election.enable is false)"
    assert entry.election is not None
    assert (entry.election.last_leader, entry.election.leader, entry.election.designated) == (1, 2, False)


def _designated(log: Log) -> None:
    log.topic(1, 2, 3)
    log.write(changed(leader=NONE, isr=(), elr=(1,), last_known_elr=(1,)), fenced(1))
    log.write(changed(replicas=(3, 1, 2)))


def test_a_designation_is_a_reorder_and_the_election_of_whoever_was_put_first() -> None:
    log = Log()
    _designated(log)
    assert (log.last().cause.kind, log.last().reassignment) == (CauseKind.REASSIGNMENT, ReassignmentStep.REORDERED)
    log.write(changed(leader=3, isr=(3,), elr=(), last_known_elr=(), recovering=True))
    election = log.last().election
    assert election is not None
    assert (election.elected_as, election.designated) == (ElectedAs.UNCLEAN, True)
    log.write(changed(replicas=(1, 2, 3)))
    log.write(unfenced(1), changed(isr=(3, 1, 2), recovering=False))
    log.write(changed(leader=1))
    election = log.last().election
    assert election is not None
    assert (election.elected_as, election.designated) == (ElectedAs.PREFERRED, False)


def test_an_election_long_after_a_reorder_is_no_designation() -> None:
    log = Log()
    _designated(log)
    log.write(changed(leader=3, isr=(3,), elr=(), last_known_elr=(), recovering=True), later_ms=3_600_000)
    election = log.last().election
    assert election is not None
    assert election.designated is False


@pytest.mark.parametrize(
    ("told", "into"),
    [({"isr": (1, 2)}, False), ({"isr": (1, 2, 3, 4)}, True)],
    ids=["shrinks", "grows"],
)
def test_a_leader_reports_its_isr(told: dict[str, Any], into: bool) -> None:
    log = Log()
    log.topic(1, 2, 3, 4, isr=(1, 2, 3))
    log.write(changed(**told))
    assert log.last().cause == Cause(CauseKind.ALTER_PARTITION, broker=1)
    assert (4 in log.last().state.isr) is into


def test_a_growing_isr_is_its_leaders_report_even_beside_a_fencing() -> None:
    log = Log()
    log.topic(1, 2, 3, isr=(1, 2))
    log.write(changed(isr=(1, 3)), fenced(2))
    assert log.last().cause == Cause(CauseKind.ALTER_PARTITION, broker=1)


def test_a_report_in_front_of_another_brokers_fencing_stays_a_report() -> None:
    log = Log()
    log.topic(1, 2, 3, 4)
    log.write(changed(isr=(1, 2, 3)), changed(isr=(1, 3)), fenced(2))
    causes = [entry.cause for entry in log.told() if isinstance(entry, PartitionEntry)][-2:]
    assert causes == [Cause(CauseKind.ALTER_PARTITION, broker=1), Cause(CauseKind.BROKER_FENCED, broker=2)]


def test_a_leader_that_has_recovered_says_so() -> None:
    log = Log()
    log.topic(1, 2, isr=(1,), recovering=True)
    log.write(changed(recovering=False))
    assert log.last().cause == Cause(CauseKind.ALTER_PARTITION, broker=1)


def test_only_a_preferred_election_takes_the_lead_from_a_member_that_stays() -> None:
    log = Log()
    log.topic(1, 2, 3, leader=2)
    log.write(changed(leader=1))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.PREFERRED_ELECTION)
    assert entry.election is not None
    assert entry.election.elected_as is ElectedAs.PREFERRED


@pytest.mark.parametrize(
    ("records", "step", "kind"),
    [
        ([{"replicas": (4, 1, 2, 3), "adding": (4,), "removing": (1, 2, 3)}], ReassignmentStep.BEGUN, "reassignment"),
        (
            [
                {"replicas": (4, 1, 2, 3), "adding": (4,), "removing": (1, 2, 3)},
                {"replicas": (4,), "adding": (), "removing": (), "isr": (4,), "leader": 4},
            ],
            ReassignmentStep.COMPLETED,
            "alter-partition",
        ),
        (
            [
                {"replicas": (4, 1, 2, 3), "adding": (4,), "removing": (1, 2, 3)},
                {"replicas": (1, 2, 3), "adding": (), "removing": ()},
            ],
            ReassignmentStep.CANCELLED,
            "reassignment",
        ),
        ([{"replicas": (1, 2), "isr": (1, 2), "leader": 1}], ReassignmentStep.AT_ONCE, "reassignment"),
        ([{"replicas": (3, 2, 1)}], ReassignmentStep.REORDERED, "reassignment"),
    ],
    ids=["begun", "completed", "cancelled", "at once", "reordered"],
)
def test_steps_of_a_reassignment(records: list[dict[str, Any]], step: ReassignmentStep, kind: str) -> None:
    log = Log()
    log.topic(1, 2, 3)
    for told in records:
        log.write(changed(**told))
    entry = log.last()
    assert (entry.reassignment, str(entry.cause.kind), entry.cause.certainty) == (step, kind, Certainty.CERTAIN)
    if step is ReassignmentStep.COMPLETED:
        assert entry.cause.broker == 1
        assert entry.election is not None
        assert entry.election.elected_as is ElectedAs.ISR


def test_a_min_isr_that_is_written_clears_elrs() -> None:
    log = Log()
    log.topic(1, 2, 3, isr=(1,), elr=(2,))
    log.write(rec.ConfigSet(TOPIC, "orders", "min.insync.replicas", "1"), rec.ElrCleared("orders"))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.MIN_ISR_WRITTEN)
    assert entry.state.elr == ()


def last_in_sync(log: Log) -> None:
    """Broker 1 is the last one in sync, and is fenced: without ELR it stays in the ISR."""
    log.topic(1, 2)
    log.write(changed(leader=1, isr=(1,)), fenced(2))
    log.write(changed(leader=NONE, isr=(1,)), fenced(1))


def elected(log: Log, broker: int, epoch: int | None = None) -> ElectedAs:
    log.write(unfenced(broker, epoch), changed(leader=broker))
    election = log.last().election
    assert election is not None
    assert election.leader == broker
    return election.elected_as


def test_without_elr_no_record_tells_whether_the_last_in_sync_came_back_whole() -> None:
    """KIP-966, "last replica standing": its log may have been cut, and it is in the ISR all the same."""
    log = Log(elr=False)
    last_in_sync(log)
    log.write(registered(1, 9))
    assert elected(log, 1, 9) is ElectedAs.UNKNOWN
    assert ElectedAs.UNKNOWN.clean is None
    unclean = log.told(Interest(unclean_only=True))
    assert [one.election.leader for one in unclean if isinstance(one, PartitionEntry) and one.election] == [1]


def test_a_restart_before_its_session_ended_takes_the_leader_in_its_own_batch() -> None:
    log = Log(elr=False)
    log.topic(1)
    log.write(changed(leader=NONE, isr=(1,)), registered(1, 9))
    assert elected(log, 1, 9) is ElectedAs.UNKNOWN


def test_the_last_in_sync_that_was_only_fenced_has_run_on() -> None:
    log = Log(elr=False)
    last_in_sync(log)
    log.write(registered(2, 9))
    assert elected(log, 1) is ElectedAs.ISR


def test_a_restart_before_it_led_has_nothing_to_do_with_it() -> None:
    log = Log(elr=False)
    log.write(registered(1, 9, fenced=False))
    last_in_sync(log)
    assert elected(log, 1, 9) is ElectedAs.ISR


def test_with_elr_a_restart_that_was_not_clean_is_told() -> None:
    """Left in the ISR from before ELR was switched on: an unclean shutdown would have struck it from there."""
    log = Log(elr=False)
    last_in_sync(log)
    log.write(rec.FeatureLevel(ELR_FEATURE, 1))
    log.write(registered(1, 9))
    assert elected(log, 1, 9) is ElectedAs.ISR


@pytest.mark.parametrize(
    ("again", "off", "elected_as"),
    [
        (False, True, ElectedAs.UNKNOWN),
        (True, True, ElectedAs.UNKNOWN),
        (False, False, ElectedAs.ELR),
    ],
)
def test_an_elr_from_before_elr_was_switched_off_proves_nothing(
    *, again: bool, off: bool, elected_as: ElectedAs
) -> None:
    """No unclean shutdown strikes its members while ELR is off, also where it is on again when one is elected."""
    log = Log()
    log.topic(1, 2, leader=NONE, isr=(), elr=(1, 2))
    log.write(fenced(1), fenced(2))
    if off:
        log.write(rec.FeatureLevel(ELR_FEATURE, 0))
    log.write(registered(1, 9))
    if again:
        log.write(rec.FeatureLevel(ELR_FEATURE, 1))
    log.write(unfenced(1, 9), changed(leader=1, isr=(1,), elr=(2,)))
    election = log.last().election
    assert election is not None
    assert election.elected_as is elected_as


def test_an_elr_member_that_follows_a_leader_with_elr_off_proves_nothing() -> None:
    log = Log()
    log.topic(1, 2, isr=(1,), elr=(2,))
    log.write(rec.FeatureLevel(ELR_FEATURE, 0))
    log.write(changed(leader=2, isr=(2,), elr=()), fenced(1))
    election = log.last().election
    assert election is not None
    assert election.elected_as is ElectedAs.UNKNOWN


def test_the_running_broker_that_registers_again_was_not_restarted() -> None:
    log = Log(elr=False)
    last_in_sync(log)
    log.write(registered(1))
    assert log.last_registration().restart is Restart.SAME_INCARNATION
    assert elected(log, 1) is ElectedAs.ISR


def test_a_leader_that_was_lost_before_the_log_begins_may_have_been_restarted_then() -> None:
    log = Log(elr=False)
    log.topic(1, 2, leader=NONE, isr=(1,))
    assert elected(log, 1) is ElectedAs.UNKNOWN


def test_what_is_not_told_is_not_counted_as_unclean() -> None:
    log = Log(elr=False)
    log.write(rec.TopicMade("orders", ID), made(0, (1,)), made(1, (1,)))
    log.write(changed(0, leader=NONE), changed(1, leader=NONE), fenced(1))
    log.write(registered(1, 9))
    log.write(unfenced(1, 9), changed(0, leader=1), changed(1, leader=1))
    last = list(grouped(log.told()))[-1]
    assert isinstance(last, PartitionsEntry)
    assert (last.count, last.got_leader, last.unclean, last.clean_unknown) == (2, 2, 0, 2)


def test_topics_come_and_go() -> None:
    log = Log()
    log.topic(1, 2, 3)
    assert log.last().cause == Cause(CauseKind.TOPIC_CREATED)
    log.write(made(1, (2, 3)))
    assert log.last().cause == Cause(CauseKind.PARTITIONS_ADDED)
    log.write(rec.TopicRemoved(ID))
    assert log.last().cause == Cause(CauseKind.TOPIC_DELETED)
    assert log.last().after is None


def test_a_directory_that_fails_takes_its_replicas_along() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 3)), rec.BrokerChanged(2, 2, directories=("b2",)))
    assert log.last().cause == Cause(CauseKind.DIRECTORY_FAILED, broker=2)


def test_a_broker_that_is_unregistered_takes_its_replicas_along() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 3)), rec.BrokerUnregistered(2, 2))
    assert log.last().cause == Cause(CauseKind.BROKER_UNREGISTERED, broker=2)


# Registrations.


def test_an_unclean_restart_is_shown_by_the_elr_that_it_costs() -> None:
    log = Log()
    log.topic(1, 2, 3, isr=(1,), elr=(2,))
    log.write(changed(elr=()), registered(2, 20))
    assert log.last().cause == Cause(CauseKind.BROKER_REGISTERED, broker=2, restart=Restart.UNCLEAN)
    assert log.last_registration().restart is Restart.UNCLEAN


def test_a_clean_restart_is_shown_by_the_elr_that_is_left() -> None:
    log = Log()
    log.topic(1, 2, 3, isr=(1,), elr=(2,))
    log.write(registered(2, 20))
    assert log.last_registration().restart is Restart.CLEAN


def test_a_clean_restart_may_go_from_the_isr_into_the_elr() -> None:
    log = Log()
    log.topic(1, 2, isr=(1, 2))
    log.write(changed(isr=(1,), elr=(2,)), registered(2, 20))
    assert log.last().cause == Cause(CauseKind.BROKER_REGISTERED, broker=2, restart=Restart.CLEAN)


def test_an_unclean_restart_leaves_the_isr_for_nowhere() -> None:
    log = Log()
    log.topic(1, 2, isr=(1, 2))
    log.write(changed(isr=(1,)), registered(2, 20))
    assert log.last_registration().restart is Restart.UNCLEAN


def test_nothing_shows_the_restart_of_a_broker_in_no_elr() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 3)), registered(2, 20))
    assert log.last().cause.restart is Restart.NOT_SHOWN


def test_without_elr_nothing_shows_a_restart() -> None:
    log = Log(elr=False)
    log.topic(1, 2, 3, isr=(1, 2))
    log.write(changed(isr=(1,)), registered(2, 20))
    assert log.last_registration().restart is Restart.NOT_SHOWN


def test_the_same_incarnation_was_not_restarted() -> None:
    log = Log()
    log.write(registered(2))
    assert log.last_registration().restart is Restart.SAME_INCARNATION


# What cannot be told.


def test_a_leader_that_is_lost_without_a_brokers_record_is_not_explained() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(leader=NONE, isr=(), elr=(1,), last_known_elr=(1,)))
    assert log.last().cause == Cause(CauseKind.UNKNOWN, Certainty.UNKNOWN)


def test_beside_a_record_that_is_not_understood_nothing_is_certain() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 3)), rec.NotUnderstood(17, 9, "BrokerRegistrationChangeRecord"))
    assert log.last().cause == Cause(CauseKind.ALTER_PARTITION, Certainty.LIKELY, broker=1)


def test_what_may_be_two_brokers_work_is_likely_at_most() -> None:
    """Leaderless, struck from the ELR: a step of the unfencing before it, or of the registration behind it."""
    log = Log(down=(1, 2, 3))
    log.topic(1, 2, 3, leader=NONE, isr=(), elr=(2,), last_known_elr=(1,))
    log.write(unfenced(3), changed(elr=()), registered(2, 20))
    assert (log.last().cause.kind, log.last().cause.certainty) == (CauseKind.BROKER_REGISTERED, Certainty.LIKELY)
    assert log.last_registration().restart is Restart.NOT_SHOWN


def test_a_fencing_of_more_records_than_a_batch_holds_is_told_for_all() -> None:
    log = Log()
    count = FULL_BATCH + 5
    log.write(rec.TopicMade("orders", ID), *(made(number, (1, 2)) for number in range(count)))
    gone = [changed(number, leader=2, isr=(2,), elr=(1,)) for number in range(count)]
    log.write(*gone[:FULL_BATCH], later_ms=5)
    log.write(*gone[FULL_BATCH:], fenced(1), later_ms=0)
    causes = [entry.cause for entry in log.told() if isinstance(entry, PartitionEntry)][-count:]
    assert causes == [Cause(CauseKind.BROKER_FENCED, broker=1)] * count


def test_a_checkpoint_in_the_middle_leaves_open_what_happened_before_it() -> None:
    log = Log()
    log.topic(1, 2, 3)
    begins: list[rec.MetadataRecord] = [
        rec.SnapshotBegins(log.now_ms),
        rec.FeatureLevel("metadata.version", 30),
        rec.TopicMade("orders", ID),
    ]
    whole = replace(made(0, (1, 2, 3), leader=2, isr=(2, 3)), leader_epoch=4)
    log.batches.append(
        rec.RecordBatch(0, 1, log.now_ms, (*begins, whole), of_checkpoint=True, checkpoint_end=log.end + 90)
    )
    log.end += 90
    log.write(rec.Irrelevant("NoOpRecord"))
    entry = log.last()
    assert entry.cause == Cause(CauseKind.NOT_TOLD, Certainty.UNKNOWN)
    assert entry.before is not None
    assert (entry.before.leader, entry.state.leader, entry.state.leader_epoch) == (1, 2, 4)


def test_a_record_that_changes_nothing_does_not_hide_the_restart_behind_it() -> None:
    """As a 4.3.1 controller writes it after ELRs were cleared: its index holds the partition twice."""
    log = Log()
    log.topic(1, 2, 3, isr=(1,), elr=(2,))
    log.write(changed(elr=()), changed(elr=()), registered(2, 20))
    last = log.last()
    assert (last.cause.kind, last.cause.certainty, last.cause.broker) == (
        CauseKind.BROKER_REGISTERED,
        Certainty.CERTAIN,
        2,
    )
    assert log.last_registration().restart is Restart.UNCLEAN
