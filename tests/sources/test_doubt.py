"""Readings of dead brokers' disks that contradict what the controller records: stale, or of a log that was cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine import decide_all
from kelr.engine.planning import plan_of
from kelr.model import (
    LOG_DIRECTORY,
    Consent,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    PartitionState,
    Plan,
    ReplicaLog,
    Selection,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.sources.base import Source
from kelr.sources.collected import CollectedDisk, CollectedLog, CollectedSource, Collection
from kelr.sources.decisions import DecidedPage, decide_partitions
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.doubt import Shows, doubted, perhaps_cut
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import SnapshotFileSource, write_snapshot
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of

READ_AT_MS = 14 * 3_600_000 + 3 * 60_000 + 10_000
PLAN_AT_MS = READ_AT_MS + 12 * 60_000
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
WAITS_FOR_ONE = replace(
    leaderless(elr=(1,), last_known=(1,)), leader_epoch=3, topic_id=TOPIC_ID, adding=(), removing=()
)
"""Broker 1 led last, in epoch 2."""
TWO = replace(log_of(2, (0, 20), (2, 60), hw=40), current_leader_epoch=3)
THREE = replace(log_of(3, (0, 20), (2, 40), hw=20), current_leader_epoch=3)
OLD = log_of(1, (0, 20), hw=5)


def on_disk(log: ReplicaLog, newest: int | None = None, saved: int | None = None) -> CollectedLog:
    """A reading of this log, with what lies beside it."""
    held = replace(log, source=LOG_DIRECTORY, current_leader_epoch=None, broker_epoch=None, read_at_ms=READ_AT_MS)
    return CollectedLog(
        TOPIC_ID,
        held,
        of_disk=True,
        read_at_ms=READ_AT_MS,
        name="b1.kelr",
        newest_epoch=newest,
        saved_high_watermark=saved,
    )


def doubt(
    log: CollectedLog, *others: ReplicaLog, state: PartitionState = WAITS_FOR_ONE, running: bool = False
) -> str | None:
    found = doubted(state, log, others, running=running)
    if found is None:
        return None
    assert found.answer.reason is (
        LogUnavailableReason.LACKING if found.shows is Shows.STALE_OR_CUT else LogUnavailableReason.DOUBTFUL
    )
    return found.answer.detail


def beside_the_cluster(log: CollectedLog, *, believing: bool = False) -> CollectedSource:
    """A source of the leaderless partition, brokers 2 and 3 live, with a reading of broker 1's disk."""
    snapshot = snapshot_of(WAITS_FOR_ONE, cluster_of(live=(2, 3), fenced=(1,)), (silent(1), TWO, THREE))
    disk = CollectedDisk(1, READ_AT_MS, (LogDirectory("/data", broker=1, running=False),), name="b1.kelr")
    collection = Collection("b1.kelr", None, READ_AT_MS, (disk,), {WAITS_FOR_ONE.address: (log,)})
    source = MemorySource(replace(snapshot, taken_at_ms=PLAN_AT_MS))
    return CollectedSource(source, [collection], believing=believing)


def planned(source: CollectedSource, wish: ElectionRequest) -> Plan:
    (page,) = decide_partitions(source, Selection(), clock_ms=lambda: PLAN_AT_MS)
    snapshot: Snapshot = page.snapshot
    return plan_of(snapshot, page.decisions, lambda _: wish, now_ms=PLAN_AT_MS, made_by="kelr/test")


DESIGNATE_2 = ElectionRequest(ElectionType.DESIGNATION, desired_leader=2)


def test_a_disk_from_before_its_brokers_last_leadership_is_not_believed() -> None:
    assert doubt(on_disk(OLD, newest=0)) == (
        "its disk is not believed; read at 14:03:10 UTC, its log ended at 20, and it knows leader epochs up to 0,"
        " though its broker was elected in epoch 2; if the broker has run since, read its disk again; if it has not,"
        " its log was cut, or the broker was down already when it was elected"
    )


def test_a_disk_without_what_others_know_to_be_committed_is_not_believed() -> None:
    found = doubt(on_disk(OLD), TWO, THREE)
    assert found is not None
    assert "and lacks 20 offsets that 2 knows to be committed (high watermark 40), though it is in the ELR" in found


def test_a_disk_of_the_last_leadership_is_a_true_reading_of_a_log_that_was_cut() -> None:
    assert doubt(on_disk(OLD, newest=2), TWO, THREE) is None


@pytest.mark.parametrize("state", [WAITS_FOR_ONE, replace(WAITS_FOR_ONE, elr=(2,), last_known_elr=())])
def test_a_disk_that_was_read_while_its_broker_ran_is_never_believed(state: PartitionState) -> None:
    found = doubt(on_disk(OLD, newest=2), TWO, state=state, running=True)
    assert found is not None
    assert "and its broker ran while it was read" in found


def test_a_disk_that_saved_the_high_watermark_held_what_it_lacks_now() -> None:
    follower = replace(WAITS_FOR_ONE, last_known_elr=())
    assert doubt(on_disk(OLD, saved=39), TWO, state=follower) is not None
    assert doubt(on_disk(OLD, saved=40), TWO, state=follower) is None


def test_a_replica_that_nobody_records_as_in_sync_may_lag() -> None:
    lagging = replace(WAITS_FOR_ONE, elr=(2,), last_known_elr=())
    assert doubt(on_disk(OLD, newest=0), TWO, THREE, state=lagging) is None


def test_what_an_unclean_election_took_back_contradicts_nobody() -> None:
    newer = log_of(1, (0, 20), (4, 25), hw=25)
    assert doubt(on_disk(newer), TWO, state=replace(WAITS_FOR_ONE, last_known_elr=())) is None


def test_a_leader_that_is_still_recorded_has_the_epoch_that_it_leads_in() -> None:
    recorded = replace(WAITS_FOR_ONE, leader=1, isr=(1,), elr=(), last_known_elr=())
    assert doubt(on_disk(OLD, newest=2), state=recorded) is not None
    assert doubt(on_disk(OLD, newest=3), TWO, state=recorded) is None


@pytest.mark.parametrize("of_disk", [True, False])
def test_only_what_a_disk_holds_is_doubted(of_disk: bool) -> None:
    log = replace(on_disk(OLD, newest=0), of_disk=of_disk)
    assert (doubt(log) is None) is not of_disk
    assert doubt(replace(log, answer=silent(1))) is None


@given(end=st.integers(0, 80), known=st.integers(0, 60))
def test_a_disk_that_reaches_what_is_known_to_be_committed_is_believed(end: int, known: int) -> None:
    held = log_of(1, (0, min(end, 20)), (2, end)) if end > 20 else log_of(1, (0, end))
    other = replace(TWO, high_watermark=known)
    follower = replace(WAITS_FOR_ONE, last_known_elr=())
    assert (doubt(on_disk(held), other, state=follower) is None) is (end >= known)


# What a plan makes of it.


def test_no_plan_says_that_nothing_is_lost_beside_a_disk_that_is_not_believed() -> None:
    source = beside_the_cluster(on_disk(OLD, newest=0))
    recommended = planned(source, ElectionRequest())
    assert recommended.elections == ()
    assert "Read the disk of broker 1 again first" in recommended.not_planned[0].reason
    (election,) = planned(source, DESIGNATE_2).elections
    assert election.consent is not Consent.YES
    assert election.loss.total is not None
    assert (election.loss.total.at_most, election.loss.unheard) == (None, (1,))
    (said,) = (warning for warning in election.warnings if "counts as not read" in warning)
    assert "read at 14:03:10 UTC" in said
    assert "read its disk again" in said


def test_bringing_back_whom_its_disk_contradicts_is_no_proven_thing() -> None:
    source = beside_the_cluster(on_disk(OLD, newest=0))
    (page,) = decide_partitions(source, Selection(), clock_ms=lambda: PLAN_AT_MS)
    (decision,) = page.decisions
    clean = next(one for one in decision.forecasts if one.replica == 1 and one.clean)
    assert clean.elected == 1
    assert clean.loss is not None
    assert clean.loss.grade is LossCertainty.UNKNOWN
    assert any("is not believed" in note for note in decision.notes)


def test_a_plan_that_stands_on_a_disk_says_so_with_the_time() -> None:
    source = beside_the_cluster(on_disk(OLD, newest=2))
    (election,) = planned(source, DESIGNATE_2).elections
    assert election.loss.unheard == ()
    assert (
        "This is based on the disk of broker 1, read at 14:03:10 UTC, 12 minutes before the plan: if what was read was"
        " an older copy of it, or broker 1 has run since, read its own disk again and plan again."
    ) in election.warnings


@pytest.mark.parametrize(("believing", "kind"), [(False, LogUnavailable), (True, ReplicaLog)])
def test_records_are_saved_from_a_disk_whatever_contradicts_it(believing: bool, kind: type[LogAnswer]) -> None:
    source = beside_the_cluster(on_disk(OLD, newest=0), believing=believing)
    (answer, *_) = source.replica_logs([WAITS_FOR_ONE])[WAITS_FOR_ONE.address]
    assert isinstance(answer, kind)


@pytest.mark.parametrize(("newest", "doubted_ones"), [(0, {1}), (2, set())])
def test_who_believes_a_reading_is_told_what_contradicts_it(newest: int, doubted_ones: set[int]) -> None:
    source = beside_the_cluster(on_disk(OLD, newest=newest), believing=True)
    answers = source.replica_logs([WAITS_FOR_ONE])[WAITS_FOR_ONE.address]
    assert set(source.doubts(WAITS_FOR_ONE, answers)) == doubted_ones


# What one partition tells of the whole disk.

OTHER = replace(WAITS_FOR_ONE, partition=1)
"""Another partition of the topic; broker 1 is in its ELR, and broker 2 led it last."""
LED_BY_TWO = replace(OTHER, last_known_elr=(2,))


def of_a_disk(
    *held: tuple[PartitionState, CollectedLog],
    directories: tuple[str, ...] = ("/d1", "/d1"),
    believing: bool = False,
    clean: bool | None = None,
) -> CollectedSource:
    """A source of these partitions, with readings of broker 1's disk; brokers 2 and 3 are live."""
    states = tuple(state for state, _ in held)
    logs = {state.address: (silent(1), TWO, THREE) for state in states}
    snapshot = replace(
        snapshot_of(states[0], cluster_of(live=(2, 3), fenced=(1,)), ()),
        partitions=states,
        logs=logs,
        taken_at_ms=PLAN_AT_MS,
    )
    disk = CollectedDisk(
        1,
        READ_AT_MS,
        tuple(LogDirectory(one, broker=1, clean_shutdown=clean) for one in set(directories)),
        name="b1.kelr",
    )
    readings = {
        state.address: (replace(log, directory=f"{directory}/{state.topic}-{state.partition}"),)
        for (state, log), directory in zip(held, directories, strict=True)
    }
    collection = Collection("b1.kelr", None, READ_AT_MS, (disk,), readings)
    return CollectedSource(MemorySource(snapshot), [collection], believing=believing)


def told_of(source: CollectedSource, state: PartitionState) -> LogAnswer:
    """What is known of broker 1's replica where all partitions are asked for."""
    states = [one for page in source.pages(Selection()) for one in page.partitions]
    return source.replica_logs(states)[state.address][0]


WHOLE = log_of(1, (0, 20), (2, 60), hw=40)
SHORTER = log_of(1, (0, 20), (2, 50), hw=40)
CUT = on_disk(OLD, newest=2, saved=45)


@pytest.mark.parametrize("held", [SHORTER, WHOLE])
def test_a_log_beside_one_that_was_cut_may_have_held_more(held: ReplicaLog) -> None:
    source = of_a_disk((WAITS_FOR_ONE, CUT), (LED_BY_TWO, on_disk(held, newest=2)))
    answer = told_of(source, LED_BY_TWO)
    assert isinstance(answer, ReplicaLog)
    assert (answer.log_end, answer.may_have_held_more) == (held.log_end, True)
    (warning,) = source.warnings
    assert (
        "broker 1: 1 log in /d1 ends before the high watermark that was saved there (orders:0 at 20 of 45)" in warning
    )


@pytest.mark.parametrize(
    ("beside", "marked"),
    [
        (on_disk(OLD, newest=2), True),
        (on_disk(OLD), True),
        (on_disk(replace(WHOLE, high_watermark=None), newest=2), False),
    ],
)
def test_a_log_beside_one_that_lacks_what_another_replica_knows_to_be_committed_may_have_held_more(
    beside: CollectedLog, marked: bool
) -> None:
    stale_or_cut = replace(WAITS_FOR_ONE, last_known_elr=()) if beside.newest_epoch is None else WAITS_FOR_ONE
    answer = told_of(of_a_disk((stale_or_cut, beside), (OTHER, on_disk(SHORTER, newest=2))), OTHER)
    assert isinstance(answer, ReplicaLog)
    assert answer.may_have_held_more is marked


def answered(log: ReplicaLog, source: str = LOG_DIRECTORY) -> ReplicaLog:
    return replace(log, source=source)


@pytest.mark.parametrize(
    ("state", "answer", "cut"),
    [
        (LED_BY_TWO, answered(OLD), {1}),
        (LED_BY_TWO, answered(OLD, "ListOffsets+Fetch"), set()),
        (LED_BY_TWO, answered(SHORTER), set()),
        (replace(LED_BY_TWO, elr=(2,)), answered(OLD), set()),
        (replace(LED_BY_TWO, elr=(2,)), replace(answered(OLD), saved_high_watermark=45), {1}),
        (LED_BY_TWO, LogUnavailable(1, LogUnavailableReason.LACKING), {1}),
        (LED_BY_TWO, LogUnavailable(1, LogUnavailableReason.DOUBTFUL), set()),
        (LED_BY_TWO, silent(1), set()),
    ],
)
def test_a_disk_is_perhaps_cut_where_its_log_ends_before_what_it_held(
    state: PartitionState, answer: LogAnswer, cut: set[int]
) -> None:
    assert perhaps_cut(state, (answer, TWO, THREE)) == cut


@pytest.mark.parametrize(("short", "marks"), [(OLD, (False, True)), (SHORTER, (False, False)), (OLD, (True, False))])
def test_a_snapshot_tells_of_a_disk_by_any_of_its_partitions(
    short: ReplicaLog, marks: tuple[bool, bool], tmp_path: Path
) -> None:
    """Who saved a mark knew the directories, and marked the logs of those that were cut."""
    given, found = marks
    logs = {
        OTHER.address: (replace(answered(short), may_have_held_more=given), TWO, THREE),
        WAITS_FOR_ONE.address: (answered(SHORTER), TWO, THREE),
    }
    snapshot = replace(
        snapshot_of(OTHER, cluster_of(live=(2, 3), fenced=(1,)), ()), partitions=(WAITS_FOR_ONE, OTHER), logs=logs
    )
    write_snapshot(snapshot, tmp_path / "saved.kelr")
    source = SnapshotFileSource(tmp_path / "saved.kelr")
    answer = source.replica_logs([WAITS_FOR_ONE])[WAITS_FOR_ONE.address][0]
    assert isinstance(answer, ReplicaLog)
    assert answer.may_have_held_more is found


def test_another_directory_is_another_device() -> None:
    source = of_a_disk((WAITS_FOR_ONE, CUT), (LED_BY_TWO, on_disk(SHORTER, newest=2)), directories=("/d1", "/d2"))
    answer = told_of(source, LED_BY_TWO)
    assert isinstance(answer, ReplicaLog)
    assert not answer.may_have_held_more


@pytest.mark.parametrize(
    ("held", "grade"), [(SHORTER, LossCertainty.UNKNOWN), (WHOLE, LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR)]
)
def test_beside_a_cut_log_nothing_is_promised_but_of_a_log_that_shows_itself_whole(
    held: ReplicaLog, grade: LossCertainty
) -> None:
    source = of_a_disk((WAITS_FOR_ONE, CUT), (LED_BY_TWO, on_disk(held, newest=2)))
    election = next(one for one in planned(source, DESIGNATE_2).elections if one.partition == 1)
    loss = election.loss
    assert loss.grade is grade
    assert loss.total is not None
    unknown = grade is LossCertainty.UNKNOWN
    assert (loss.total.at_least, loss.total.at_most) == (0, None if unknown else 0)
    assert loss.may_have_lost == ((1,) if unknown else ())
    assert any("log of broker 1 may be cut" in one for one in election.warnings) is unknown


@pytest.mark.parametrize("directories", [("/d1", "/d1"), ("/d1", "/d2")])
def test_a_broker_that_may_have_run_since_one_partition_was_read_may_have_run_since_all_were(
    directories: tuple[str, ...],
) -> None:
    stale = (WAITS_FOR_ONE, on_disk(OLD, newest=0))
    answer = told_of(of_a_disk(stale, (LED_BY_TWO, on_disk(SHORTER)), directories=directories), LED_BY_TWO)
    assert isinstance(answer, LogUnavailable)
    assert answer.reason is LogUnavailableReason.DOUBTFUL
    assert "what it holds of orders:0 may be from before its broker last ran, and so may this be" in answer.detail
    assert isinstance(told_of(of_a_disk(stale, (LED_BY_TWO, on_disk(WHOLE))), LED_BY_TWO), ReplicaLog)
    assert isinstance(told_of(of_a_disk(stale, (OTHER, on_disk(SHORTER, newest=2))), OTHER), ReplicaLog)


NOBODY_RECORDS = replace(LED_BY_TWO, elr=(2,))
STALE_OR_CUT = (replace(WAITS_FOR_ONE, last_known_elr=()), on_disk(OLD))


@pytest.mark.parametrize(
    ("state", "cut_beside", "believed"),
    [(LED_BY_TWO, False, False), (LED_BY_TWO, True, True), (NOBODY_RECORDS, True, False)],
)
def test_what_is_stale_or_cut_is_taken_for_cut_where_another_log_there_was(
    state: PartitionState, cut_beside: bool, believed: bool
) -> None:
    third = replace(OTHER, partition=2)
    held = [STALE_OR_CUT, (state, on_disk(SHORTER)), (third, on_disk(OLD, newest=2, saved=45 if cut_beside else None))]
    answer = told_of(of_a_disk(*held, directories=("/d1",) * 3), state)
    assert isinstance(answer, ReplicaLog) is believed
    if isinstance(answer, ReplicaLog):
        assert answer.may_have_held_more


def test_what_a_partition_shows_of_a_disk_holds_whichever_partitions_are_asked_for() -> None:
    source = of_a_disk((WAITS_FOR_ONE, on_disk(OLD, newest=0)), (LED_BY_TWO, on_disk(SHORTER)))
    assert isinstance(source.replica_logs([LED_BY_TWO])[LED_BY_TWO.address][0], LogUnavailable), "asked for alone"
    assert isinstance(told_of(source, LED_BY_TWO), LogUnavailable), "with the one that shows it"
    source.forget()
    assert isinstance(source.replica_logs([LED_BY_TWO])[LED_BY_TWO.address][0], LogUnavailable), (
        "the reading is the same"
    )


_STATES = st.sampled_from(
    [
        WAITS_FOR_ONE,
        replace(WAITS_FOR_ONE, last_known_elr=()),
        LED_BY_TWO,
        NOBODY_RECORDS,
        replace(LED_BY_TWO, elr=(1, 2)),
        replace(WAITS_FOR_ONE, leader=2, isr=(2, 3), elr=(), last_known_elr=()),
    ]
)
_READINGS = st.builds(
    on_disk,
    st.sampled_from([OLD, SHORTER, WHOLE, log_of(1, hw=0)]),
    newest=st.sampled_from([None, 0, 2]),
    saved=st.sampled_from([None, 20, 45]),
)
_DISKS = st.lists(st.tuples(_STATES, _READINGS, st.sampled_from(["/d1", "/d2"])), min_size=2, max_size=5)


@given(_DISKS)
def test_what_is_said_of_a_partition_does_not_hang_on_which_others_are_asked_for(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[PartitionState, CollectedLog, str]]
) -> None:
    """Of all that can be said, by a collection beside a cluster, and by a snapshot that holds what it made of them."""
    logs = [(replace(state, partition=number), log) for number, (state, log, _) in enumerate(held)]
    directories = tuple(directory for _, _, directory in held)
    (all_of_them,) = decided(of_a_disk(*logs, directories=directories, clean=False), Selection())
    path = tmp_path_factory.mktemp("saved") / "saved.kelr"
    write_snapshot(all_of_them.snapshot, path)
    (saved,) = decided(SnapshotFileSource(path), Selection())
    # A snapshot does not keep the directory that a log was in: beside a cut log of another one it doubts more.
    assert len({*directories}) > 1 or saved.decisions == all_of_them.decisions
    marks = {
        answer.unclean_shutdown
        for answers in all_of_them.snapshot.logs.values()
        for answer in answers
        if answer.replica == 1
    }
    assert len(marks) == 1, "one broker, one shutdown"
    for together, in_file in zip(all_of_them.decisions, saved.decisions, strict=True):
        alone = Selection.of([TopicPartition(together.topic, together.partition)])
        (page,) = decided(of_a_disk(*logs, directories=directories, clean=False), alone)
        assert page.decisions == (together,)
        (page,) = decided(SnapshotFileSource(path), alone)
        assert page.decisions == (in_file,)


def decided(source: Source, selection: Selection) -> list[DecidedPage]:
    return list(decide_partitions(source, selection, clock_ms=lambda: PLAN_AT_MS))


@pytest.mark.parametrize("in_file", [False, True], ids=["in memory", "in a file"])
def test_how_a_broker_stopped_is_told_of_a_partition_whose_logs_were_not_read(tmp_path: Path, in_file: bool) -> None:
    """One log of broker 1 has the marks of its disk; of the other partition no log is in the snapshot."""
    read = replace(WAITS_FOR_ONE, partition=1)
    marked = replace(on_disk(OLD, newest=2).answer, unclean_shutdown=True)
    cluster = cluster_of(live=(2, 3), fenced=(1,))
    snapshot = replace(
        snapshot_of(WAITS_FOR_ONE, cluster, ()), partitions=(WAITS_FOR_ONE, read), logs={read.address: (marked,)}
    )
    write_snapshot(snapshot, tmp_path / "one.kelr")
    with SnapshotFileSource(tmp_path / "one.kelr") if in_file else MemorySource(snapshot) as source:
        (page,) = decide_partitions(source, Selection(), clock_ms=lambda: PLAN_AT_MS)
    for decision in page.decisions:
        assert [one.clean for one in decision.forecasts if one.replica == 1] == [False], decision.partition


def test_a_log_that_is_too_old_tells_how_its_broker_stopped_all_the_same() -> None:
    older = replace(OLD, source=LOG_DIRECTORY, current_leader_epoch=2, unclean_shutdown=True)
    (decision,) = decide_all(snapshot_of(WAITS_FOR_ONE, cluster_of(live=(2, 3), fenced=(1,)), (older, TWO, THREE)))
    assert [one.clean for one in decision.forecasts if one.replica == 1] == [False]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (("delete",), "and nothing compacts the topic"),
        (None, "and whether the topic is compacted is not known"),
        (("compact",), None),
        (("compact", "delete"), None),
    ],
)
def test_a_log_that_lacks_a_segment_is_not_believed_unless_its_topic_is_compacted(
    policy: tuple[str, ...] | None, said: str | None
) -> None:
    held = replace(log_of(1, (0, 20), (2, 60), hw=60), holes=((10, 15),))
    snapshot = snapshot_of(WAITS_FOR_ONE, cluster_of(live=(2, 3), fenced=(1,)), (silent(1), TWO, THREE))
    snapshot = replace(snapshot, configs={WAITS_FOR_ONE.topic: TopicConfig(cleanup_policy=policy)})
    disk = CollectedDisk(1, READ_AT_MS, (LogDirectory("/data", broker=1, running=False),), name="b1.kelr")
    read = on_disk(held, newest=2)
    collection = Collection("b1.kelr", None, READ_AT_MS, (disk,), {WAITS_FOR_ONE.address: (read,)})
    source = CollectedSource(MemorySource(snapshot), [collection])
    (page,) = decide_partitions(source, Selection(), clock_ms=lambda: PLAN_AT_MS)
    answer = page.snapshot.logs[WAITS_FOR_ONE.address][0]
    losses = {one.loss.grade for one in page.decisions[0].forecasts if one.elected == 1 and one.loss is not None}
    if said is None:
        assert isinstance(answer, ReplicaLog)
        assert losses
        assert LossCertainty.UNKNOWN not in losses
        return
    assert isinstance(answer, LogUnavailable)
    assert (answer.reason, losses) == (LogUnavailableReason.DOUBTFUL, {LossCertainty.UNKNOWN})
    assert f"it lacks offsets 10 to 14 between its segments, {said}" in answer.detail
    believing = CollectedSource(MemorySource(snapshot), [collection], believing=True)
    answers = believing.replica_logs([WAITS_FOR_ONE])[WAITS_FOR_ONE.address]
    assert isinstance(answers[0], ReplicaLog)  # what it holds is worth saving
    assert 1 in believing.doubts(WAITS_FOR_ONE, answers)
