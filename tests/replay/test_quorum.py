"""The recovery quorum of a metadata log, record by record: each case that docs/recovery-quorum.md tells of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.model import ELR_FEATURE, PartitionState, RecoveryQuorum, TopicPartition
from kelr.replay import records as rec
from kelr.replay.quorum import SETTLES_MS
from tests.replay.written import TOPIC_ID, Writer, changed, made, registered

ORDERS = TopicPartition("orders", 0)
WHOLE = PartitionState("orders", 0, 1, 0, (1, 2, 3), (1, 2, 3), (), (), partition_epoch=0)


class Story:
    """One partition of replicas 1, 2 and 3, all in sync and led by 1."""

    def __init__(self, *, elr: bool = True, min_isr: int | None = 2, state: PartitionState = WHOLE) -> None:
        self.log = Writer(elr=elr, min_isr=min_isr)
        self.log.write(*(registered(broker, broker, fenced=False) for broker in (1, 2, 3, 4)))
        self.log.topic(state)
        self.state = state

    def moves(
        self,
        *before: rec.MetadataRecord,
        later_ms: int = 1_000,
        after: rec.MetadataRecord | None = None,
        epoch: int = 0,
        **fields: object,
    ) -> None:
        now = replace(self.state, leader_epoch=self.state.leader_epoch + epoch, **fields)  # type: ignore[arg-type]
        rest = [] if after is None else [after]
        self.log.write(*before, changed(self.state, now), *rest, later_ms=later_ms)
        self.state = now

    def down_to_nobody(self) -> None:
        """3 leaves, then 2, then 1; 2 and 1 register after unclean shutdowns."""
        self.moves(isr=(1, 2))
        self.moves(isr=(1,), elr=(2,))
        self.moves(leader=None, epoch=1, isr=(), elr=(1, 2), last_known_elr=(1,))
        self.moves(elr=(1,), after=registered(2, 20))
        self.moves(elr=(), after=registered(1, 21))

    @property
    def quorum(self) -> RecoveryQuorum:
        found = self.log.tracker.quorum(ORDERS)
        assert found is not None
        return found


def test_the_quorum_is_who_was_in_sync_when_the_high_watermark_could_last_advance() -> None:
    story = Story()
    assert story.quorum.members == (1, 2, 3)
    story.down_to_nobody()
    quorum = story.quorum
    assert (quorum.members, quorum.min_isr, quorum.doubt) == ((1, 2), 2, None)
    assert quorum.last_known_elr == quorum.restarted == (1, 2)
    assert (quorum.leader_epoch, quorum.as_of_offset) == (1, story.log.end)
    below = 10  # feature, config, 4 brokers, topic, partition, ISR [1, 2]: the next record takes the ISR below min ISR
    assert quorum.since_offset == below - 1


def test_a_clean_shutdown_leaves_a_member_its_place() -> None:
    story = Story()
    story.moves(isr=(1, 2))
    story.moves(isr=(1,), elr=(2,))
    story.log.write(registered(2, 20))
    assert (story.quorum.restarted, story.quorum.last_known_elr) == ((), ())
    assert story.quorum.members == (1, 2)


def test_a_write_of_min_isr_makes_kafka_forget_and_the_log_does_not() -> None:
    story = Story()
    story.down_to_nobody()
    before = story.quorum
    story.log.min_isr(1)
    story.log.min_isr(2)
    after = story.quorum
    assert (after.members, after.restarted, after.min_isr, after.doubt) == ((1, 2), (1, 2), 2, None)
    assert after.since_offset == before.since_offset


def test_a_registration_that_kafka_does_not_judge_counts_as_unclean() -> None:
    story = Story()
    story.moves(isr=(1, 2))
    story.moves(isr=(1,), elr=(2,))
    story.moves(leader=None, epoch=1, isr=(), elr=(1, 2), last_known_elr=(1,))
    story.log.min_isr(3)
    story.log.write(registered(2, 20))
    assert story.quorum.restarted == (2,)
    assert story.quorum.doubt is None


def test_a_lower_min_isr_lets_the_leader_commit_alone() -> None:
    story = Story()
    story.moves(isr=(1, 2))
    story.moves(isr=(1,), elr=(2,))
    story.log.min_isr(1)
    assert (story.quorum.members, story.quorum.min_isr) == ((1,), 1)


def test_a_lower_min_isr_commits_nothing_where_nobody_leads() -> None:
    story = Story()
    story.down_to_nobody()
    story.log.min_isr(1)
    assert (story.quorum.members, story.quorum.min_isr) == ((1, 2), 2)


def test_whether_a_leader_knew_a_raised_min_isr_in_time_is_not_on_record() -> None:
    story = Story(min_isr=1)
    story.log.min_isr(2)
    story.moves(isr=(1,), elr=(2, 3))
    assert "raised from 1" in (story.quorum.doubt or "")


def test_a_leader_is_taken_to_know_a_raised_min_isr_after_a_minute() -> None:
    story = Story(min_isr=1)
    story.log.min_isr(2)
    story.moves(isr=(1,), elr=(2, 3), later_ms=SETTLES_MS + 1)
    assert (story.quorum.members, story.quorum.min_isr, story.quorum.doubt) == ((1, 2, 3), 2, None)


def test_an_unclean_election_begins_another_history() -> None:
    story = Story()
    story.down_to_nobody()
    story.moves(leader=3, epoch=1, isr=(3,), last_known_elr=(), recovering=True)
    assert "elected uncleanly" in (story.quorum.doubt or "")
    story.moves(recovering=False, isr=(3, 2))
    assert story.quorum.members == (2, 3)
    story.moves(isr=(3, 2, 1))
    assert (story.quorum.members, story.quorum.doubt) == ((1, 2, 3), None)


def test_a_replica_that_an_unclean_election_left_behind_may_hold_what_was_committed_before() -> None:
    story = Story()
    story.down_to_nobody()
    story.moves(leader=3, epoch=1, isr=(3,), last_known_elr=(), recovering=True)
    story.moves(recovering=False, isr=(3, 2))
    assert story.quorum.doubt == (
        f"an unclean election, by the record at offset {story.log.end - 2}, gave up what the new leader's log lacked;"
        " broker 1 has not been in sync since and may hold committed records of before"
    )
    story.moves(replicas=(3, 2, 4))
    assert (story.quorum.members, story.quorum.doubt) == ((3, 2), None)


def test_what_an_unclean_election_left_behind_with_elr_off_is_not_forgotten() -> None:
    story = Story(elr=False)
    story.moves(isr=(1,))
    story.moves(leader=None, epoch=1)
    story.moves(leader=3, epoch=1, isr=(3,), recovering=True)
    story.log.write(rec.FeatureLevel(ELR_FEATURE, 1))
    story.moves(recovering=False, isr=(3, 2))
    assert "broker 1 has not been in sync since" in (story.quorum.doubt or "")


def test_an_elected_member_of_the_elr_is_no_unclean_election() -> None:
    story = Story()
    story.moves(isr=(1, 2))
    story.moves(isr=(1,), elr=(2,))
    story.moves(leader=None, epoch=1, isr=(), elr=(1, 2), last_known_elr=(1,))
    story.moves(leader=2, epoch=1, isr=(2,), elr=(1,), last_known_elr=())
    assert (story.quorum.members, story.quorum.doubt) == ((1, 2), None)


def test_a_member_that_is_no_replica_any_more_holds_nothing() -> None:
    story = Story()
    story.down_to_nobody()
    story.moves(epoch=1, replicas=(1, 3))
    assert story.quorum.members == (1,)
    assert story.quorum.doubt == "of the 2 replicas that held everything committed 1 are replicas still"


def test_a_member_whose_log_directory_is_gone_may_lack_everything() -> None:
    story = Story()
    story.log.write(registered(2, 20, fenced=False, directories=("dirA", "dirB")))
    story.log.write(rec.PartitionChanged(TOPIC_ID, 0, directories=("x", "dirA", "y")))
    story.moves(isr=(1, 2))
    story.moves(rec.BrokerChanged(2, 20, directories=("dirB",)), isr=(1,), elr=(2,))
    assert story.quorum.restarted == (2,)
    assert story.quorum.last_known_elr == ()


def test_with_elr_off_nothing_is_guaranteed() -> None:
    story = Story(elr=False)
    assert "version was 0" in (story.quorum.doubt or "")
    assert story.quorum.members == (1, 2, 3)
    story.log.write(rec.FeatureLevel(ELR_FEATURE, 1))
    assert story.quorum.doubt is None


def test_without_min_isr_on_record_nothing_is_guaranteed() -> None:
    assert Story(min_isr=None).quorum.doubt == "min.insync.replicas is not in the metadata log"


@pytest.mark.parametrize(
    ("isr", "elr", "doubtful"), [((1, 2), (), False), ((1,), (2,), False), ((), (2,), True)], ids=["in", "elr", "less"]
)
def test_of_a_checkpoint_isr_and_elr_are_left(isr: tuple[int, ...], elr: tuple[int, ...], doubtful: bool) -> None:
    log = Writer()
    state = replace(WHOLE, isr=isr, elr=elr, leader=isr[0] if isr else None, last_known_elr=() if isr else (1,))
    records = (
        rec.SnapshotBegins(5),
        rec.FeatureLevel(ELR_FEATURE, 1),
        rec.TopicMade("orders", TOPIC_ID),
        made(state),
        rec.ConfigSet(4, "", "min.insync.replicas", "2"),
        rec.SnapshotEnds(),
    )
    log.take(rec.RecordBatch(0, 1, 5, records, of_checkpoint=True, checkpoint_end=100))
    quorum = log.tracker.quorum(ORDERS)
    assert quorum is not None
    assert set(quorum.members) == {*isr, *elr}
    assert (quorum.doubt is not None) is doubtful
    assert quorum.since_offset == 99


def test_a_gap_in_the_log_is_a_doubt_about_everything() -> None:
    story = Story()
    story.log.end += 7
    story.log.write(rec.Irrelevant("NoOpRecord"))
    assert "are missing from the log" in (story.quorum.doubt or "")


def test_a_log_that_begins_in_the_middle_is_a_doubt_about_everything() -> None:
    late = Writer(begins_at=50)
    late.topic(WHOLE)
    quorum = late.tracker.quorum(ORDERS)
    assert quorum is not None
    assert "begins at offset" in (quorum.doubt or "")


def test_a_record_that_is_not_understood_is_a_doubt_about_everything() -> None:
    story = Story()
    story.log.write(rec.NotUnderstood(5, 99, "PartitionChangeRecord"))
    assert "does not understand" in (story.quorum.doubt or "")


def test_a_topic_made_again_is_another_one() -> None:
    story = Story()
    story.down_to_nobody()
    story.log.write(rec.TopicRemoved(TOPIC_ID))
    assert story.log.tracker.quorum(ORDERS) is None
    other = TOPIC_ID[:-1] + "B"
    story.log.topic(replace(WHOLE, topic_id=other), topic_id=other)
    assert (story.quorum.members, story.quorum.restarted, story.quorum.doubt) == ((1, 2, 3), (), None)


def test_the_leader_counts_min_isr_by_its_own_replicas() -> None:
    """The controller derives it from partition 0; with more replicas there it keeps an ELR that proves nothing."""
    story = Story(min_isr=3, state=replace(WHOLE, replicas=(1, 2, 3, 4)))
    second = replace(WHOLE, partition=1, replicas=(1, 2), isr=(1, 2))
    story.log.write(made(second))
    story.log.write(changed(second, replace(second, isr=(1,), elr=(2,))))
    quorum = story.log.tracker.quorum(TopicPartition("orders", 1))
    assert quorum is not None
    assert (quorum.members, quorum.min_isr) == ((1, 2), 2)
