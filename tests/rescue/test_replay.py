"""A replay from the file to the log: each lost record exactly once and in order, whenever it is killed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelr.commands.replaying import _end
from kelr.errors import PartlyDoneError, RefusedError, UsageError
from kelr.model import PartitionState, TopicConfig, TopicPartition
from kelr.rescue import producing
from kelr.rescue.archive import open_dump
from kelr.rescue.journal import ReplayJournal
from kelr.rescue.judge import Verdict
from kelr.rescue.origin import read_origins
from kelr.rescue.preparing import Preparing, never_known
from kelr.rescue.producing import Produced, Replay
from kelr.rescue.replay_plan import ReplayOptions, ReplayPlan, skips_in_words
from kelr.sources.base import Progress
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE, Ground
from kelr.sources.live.producer import LiveProducer
from kelr.sources.records.stream import RawBatch
from kelr.view.output import Output
from tests.rescue.batches import TOPIC_ID, batch, log, marker
from tests.rescue.fake_cluster import FakeCluster, FakeProducer, KilledError, orders
from tests.rescue.files import save, tail
from tests.still_ground import StillGround

ORDERS = TopicPartition("orders", 0)
SETTINGS = ConnectionSettings((("127.0.0.1", 9),), timeout_s=1)
Script = Callable[[str], str]


@contextmanager
def nothing_shown(_what: str) -> Iterator[Progress | None]:
    yield None


@pytest.fixture
def cluster() -> FakeCluster:
    """Offsets 0 to 9 survived in epoch 4; the leader of epoch 5 went on with offsets 10 and 11."""
    cluster = FakeCluster()
    cluster.add(orders(), batch(0, 10, epoch=4), batch(10, 2, epoch=5))
    return cluster


LOST = [batch(8, 4, epoch=4), batch(12, 3, epoch=4), batch(15, 5, epoch=4)]
"""Offsets 8 and 9 survived; the first 10 of these records of epoch 4 did not."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path, LOST)


def saved(tmp_path: Path, pieces: list[RawBatch], start: int = 8, end: int = 20, **changes: Any) -> Path:
    path = tmp_path / "lost.kelr-rescue"
    path.unlink(missing_ok=True)
    state = changes.pop("state", orders())
    save(path, [tail(pieces, start, end, held=log(3, (4, end)), state=state, **changes)])
    return path


def planned(
    cluster: FakeCluster, file: Path, options: ReplayOptions | None = None, ground: Ground = MACHINE
) -> ReplayPlan:
    with open_dump(file) as dump:
        preparing = Preparing(dump, cluster, options or ReplayOptions(), timeout_s=0.5, ground=ground)  # type: ignore[arg-type]
        return preparing.prepare(dump.manifest.tails, nothing_shown)


def replayed(
    cluster: FakeCluster,
    file: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    script: Script = lambda _: "ok",
    options: ReplayOptions | None = None,
    before: Callable[[], None] = lambda: None,
) -> list[Produced]:
    """Carries a replay out as the command does; `before` runs between the look and the first record."""
    monkeypatch.setattr("confluent_kafka.Producer", lambda config: FakeProducer(cluster, config, script))
    with open_dump(file) as dump, ReplayJournal(state / "journal.jsonl", {}) as journal:
        preparing = Preparing(
            dump,
            cluster,  # type: ignore[arg-type]
            options or ReplayOptions(),
            checkpoints=journal.checkpoints,
            timeout_s=0.5,
        )
        plan = preparing.prepare(dump.manifest.tails, nothing_shown)
        before()
        return Replay(
            plan,
            dump,
            preparing,
            producers=functools.partial(LiveProducer, SETTINGS),
            timeout_s=SETTINGS.timeout_s,
            journal=journal,
        ).run()


def origins(cluster: FakeCluster, address: TopicPartition = ORDERS) -> list[int]:
    """Where the replayed records in a log come from, in the log's order."""
    return [origins[-1].offset for record in cluster.records(address) if (origins := read_origins(record.headers))]


def test_what_was_lost_is_there_again(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (produced,) = replayed(cluster, file, tmp_path, monkeypatch)
    assert (produced.confirmed, produced.error) == (10, "")
    assert origins(cluster) == list(range(10, 20))
    new = cluster.records(ORDERS)[12:]
    assert [(one.timestamp_ms, one.value) for one in new] == [(1_000 + at, b"4/%d" % at) for at in range(10, 20)]
    assert dict(new[0].headers) == {
        "kelr-rescue.cluster": b"rescue-test-cluster-00",
        "kelr-rescue.topic": b"orders",
        "kelr-rescue.partition": b"0",
        "kelr-rescue.offset": b"10",
        "kelr-rescue.leader-epoch": b"4",
        "kelr-rescue.topic-id": TOPIC_ID.encode(),
        "kelr-rescue.plan": b"0123456789ab",
    }


def test_a_second_time_there_is_nothing_to_do_with_and_without_the_journal(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(cluster, file, tmp_path, monkeypatch)
    for state in (tmp_path, tmp_path / "elsewhere"):
        (produced,) = replayed(cluster, file, state, monkeypatch)
        assert produced.confirmed == 0
        assert produced.partition.counts == {Verdict.SURVIVES: 2, Verdict.ALREADY: 10}
    assert origins(cluster) == list(range(10, 20))


def test_the_journal_saves_looking_at_what_was_there_before(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(cluster, file, tmp_path, monkeypatch)
    cluster.reads.clear()
    replayed(cluster, file, tmp_path, monkeypatch)
    assert cluster.reads[ORDERS] == 0
    replayed(cluster, file, tmp_path / "elsewhere", monkeypatch)
    assert cluster.reads[ORDERS] > 0


def test_a_journal_from_before_another_election_is_not_trusted(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(cluster, file, tmp_path, monkeypatch)
    # An unclean election of a replica that had none of the replayed records.
    cluster.add(orders(leader_epoch=6), *cluster.logs[ORDERS][:2])
    (produced,) = replayed(cluster, file, tmp_path, monkeypatch)
    assert produced.confirmed == 10
    assert origins(cluster) == list(range(10, 20))


RESCUED = TopicPartition("rescued", 0)
ALL_TO_RESCUED = ReplayOptions(to="rescued", all_records=True)


def rescued(topic_id: str | None, topic: str = "rescued") -> PartitionState:
    return replace(orders(), topic=topic, topic_id=topic_id)


def test_a_target_that_was_made_again_since_gets_all_of_it_again(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic_id in ("AAAAAAAAAAAAAAAAAAAAAw", "AAAAAAAAAAAAAAAAAAAABA"):
        cluster.add(rescued(topic_id))
        (produced,) = replayed(cluster, file, tmp_path, monkeypatch, options=ALL_TO_RESCUED)
        assert produced.confirmed == 12
        assert origins(cluster, RESCUED) == list(range(8, 20))
    (again,) = replayed(cluster, file, tmp_path, monkeypatch, options=ALL_TO_RESCUED)
    assert again.confirmed == 0


def test_a_journal_without_a_topic_id_is_no_proof_and_that_is_said(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add(rescued(None))
    replayed(cluster, file, tmp_path, monkeypatch, options=ALL_TO_RESCUED)
    cluster.logs[RESCUED].clear()
    (produced,) = replayed(cluster, file, tmp_path, monkeypatch, options=ALL_TO_RESCUED)
    assert produced.confirmed == 12
    with open_dump(file) as dump, ReplayJournal(tmp_path / "journal.jsonl", {}) as journal:
        preparing = Preparing(dump, cluster, ALL_TO_RESCUED, checkpoints=journal.checkpoints, timeout_s=0.5)  # type: ignore[arg-type]
        warnings = preparing.prepare(dump.manifest.tails, nothing_shown).warnings
    assert any(
        "the earlier replay may be of another topic of that name, and counts for nothing" in warning
        for warning in warnings
    )


def test_originals_and_their_replayed_copies_are_the_same_records(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, both = rescued("AAAAAAAAAAAAAAAAAAAABA", "copies"), TopicPartition("both", 0)
    cluster.add(copies)
    replayed(cluster, file, tmp_path / "0", monkeypatch, options=ReplayOptions(to="copies", all_records=True))
    second = tmp_path / "copies"
    second.mkdir()
    file_of_copies = saved(second, cluster.logs[copies.address], 0, 12, state=copies)
    for first, then in ((file, file_of_copies), (file_of_copies, file)):
        cluster.add(rescued("AAAAAAAAAAAAAAAAAAAABQ", "both"))
        for number, one in enumerate((first, then)):
            state = tmp_path / f"{first.parent.name}-{number}"
            replayed(cluster, one, state, monkeypatch, options=ReplayOptions(to="both", all_records=True))
        assert [record.value for record in cluster.records(both)] == [b"4/%d" % at for at in range(8, 20)]


def test_a_copy_does_not_go_back_to_where_its_original_survived(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = rescued("AAAAAAAAAAAAAAAAAAAABA", "copies")
    cluster.add(copies)
    replayed(cluster, file, tmp_path / "0", monkeypatch, options=ReplayOptions(to="copies", all_records=True))
    second = tmp_path / "copies"
    second.mkdir()
    file_of_copies = saved(second, cluster.logs[copies.address], 0, 12, state=copies)
    cluster.logs[copies.address] = [batch(0, epoch=9)]  # the copies were lost
    (one,) = planned(cluster, file_of_copies, ReplayOptions(to="orders")).partitions
    assert one.counts == {Verdict.SURVIVES: 2, Verdict.REPLAY: 10}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.data())
def test_killed_at_any_moment_and_run_again_it_is_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tmp_path = tmp_path_factory.mktemp("kill")
    cluster = FakeCluster()
    cluster.add(orders(), batch(0, 10, epoch=4), batch(10, 2, epoch=5))
    file = saved(tmp_path, LOST)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(producing, "CHUNK_RECORDS", data.draw(st.integers(1, 6)))
        for _ in range(4):
            calls = iter(range(1_000))
            last = data.draw(st.integers(0, 12))
            state = tmp_path / data.draw(st.sampled_from(["here", "here", "elsewhere"]))

            def script(_moment: str, calls: Iterator[int] = calls, last: int = last) -> str:
                return "kill" if next(calls) == last else "ok"

            try:
                replayed(cluster, file, state, monkeypatch, script=script)
            except KilledError:
                cluster.append(ORDERS, [replace(cluster.records(ORDERS)[0], headers=())])  # others write too
        replayed(cluster, file, tmp_path / "here", monkeypatch)
    assert origins(cluster) == list(range(10, 20))


@pytest.mark.parametrize("confirmed", [0, 3, 4, 7])
def test_an_error_ends_the_partition_and_the_next_run_goes_on(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirmed: int
) -> None:
    monkeypatch.setattr(producing, "CHUNK_RECORDS", 4)  # sent as 3 and 1
    requests = {0: 0, 3: 1, 4: 2, 7: 3}[confirmed]
    moments = iter([*["ok"] * (2 * requests), "_MSG_TIMED_OUT"])
    (produced,) = replayed(cluster, file, tmp_path, monkeypatch, script=lambda _: next(moments, "ok"))
    assert produced.confirmed == confirmed
    assert produced.error == "MSG_TIMED_OUT: as the test wants it"
    assert origins(cluster) == list(range(10, 10 + confirmed))
    replayed(cluster, file, tmp_path, monkeypatch)
    assert origins(cluster) == list(range(10, 20))


def test_what_another_file_brought_back_is_not_forgotten_on_the_way(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(cluster, saved(tmp_path, LOST[2:], 15, 20), tmp_path / "other", monkeypatch)
    file = saved(tmp_path, LOST)
    monkeypatch.setattr(producing, "CHUNK_RECORDS", 2)
    moments = iter(["ok", "ok", "kill"])
    with pytest.raises(KilledError):
        replayed(cluster, file, tmp_path, monkeypatch, script=lambda _: next(moments))
    replayed(cluster, file, tmp_path, monkeypatch)
    assert origins(cluster) == [*range(15, 20), *range(10, 15)]


def test_an_election_between_the_look_and_the_first_record_is_refused(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elect() -> None:
        cluster.states[ORDERS] = orders(leader_epoch=6)

    with pytest.raises(RefusedError, match="has had an election since"):
        replayed(cluster, file, tmp_path, monkeypatch, before=elect)
    assert origins(cluster) == []


def test_an_election_meanwhile_is_told_and_the_next_run_looks_again(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elect(_moment: str) -> str:
        cluster.states[ORDERS] = orders(leader_epoch=6)
        return "ok"

    monkeypatch.setattr("confluent_kafka.Producer", lambda config: FakeProducer(cluster, config, elect))
    with open_dump(file) as dump, ReplayJournal(tmp_path / "journal.jsonl", {}) as journal:
        preparing = Preparing(dump, cluster, ReplayOptions())  # type: ignore[arg-type]
        plan = preparing.prepare(dump.manifest.tails, nothing_shown)
        replay = Replay(
            plan,
            dump,
            preparing,
            producers=functools.partial(LiveProducer, SETTINGS),
            timeout_s=SETTINGS.timeout_s,
            journal=journal,
        )
        replay.run()
        assert replay.moved == (ORDERS,)
    with ReplayJournal(tmp_path / "journal.jsonl", {}) as journal:
        assert journal.resumed


def test_records_that_were_found_have_to_be_committed(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(cluster, file, tmp_path, monkeypatch)
    real = cluster.leader_log
    monkeypatch.setattr(cluster, "leader_log", lambda at: replace(real(at), high_watermark=12))
    ground = StillGround()
    with pytest.raises(RefusedError, match="its followers do not have yet"):
        planned(cluster, file, ground=ground)
    assert 0.5 < ground.steady_s() < 1


def test_a_compacted_topic_keeps_its_newer_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted = TopicConfig(cleanup_policy=("compact",))
    cluster = FakeCluster()
    cluster.add(orders(), batch(0, 10, epoch=4), batch(10, epoch=5, keys=[b"a", b"b"]), config=compacted)
    file = saved(tmp_path, [batch(10, epoch=4, keys=[b"a", b"c", b"c"])], 10, 13, compacted=True)
    (found,) = planned(cluster, file).partitions
    assert found.counts == {Verdict.OVERWRITTEN: 1, Verdict.REPLAY: 2}
    plan = planned(cluster, file, ReplayOptions(skip_overwritten=False))
    assert plan.to_replay == 3
    assert any("takes the place of a newer one" in warning for warning in plan.warnings)
    replayed(cluster, file, tmp_path, monkeypatch)
    assert origins(cluster) == [11, 12]
    (again,) = planned(cluster, file).partitions
    assert again.counts == {Verdict.OVERWRITTEN: 1, Verdict.ALREADY: 2}


def test_transactions_that_did_not_commit_stay_out_unless_asked_for(cluster: FakeCluster, tmp_path: Path) -> None:
    pieces = [
        batch(10, producer=1, transactional=True, epoch=4),
        batch(11, producer=2, transactional=True, epoch=4),
        marker(12, 1, commit=False, epoch=4),
    ]
    file = saved(tmp_path, pieces, 10, 13)
    assert planned(cluster, file).to_replay == 0
    assert planned(cluster, file, ReplayOptions(include_aborted=True)).to_replay == 1
    assert planned(cluster, file, ReplayOptions(include_aborted=True, include_open=True)).to_replay == 2


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__cluster_metadata", "__own"])
def test_internal_topics_are_refused(cluster: FakeCluster, file: Path, tmp_path: Path, topic: str) -> None:
    with pytest.raises(RefusedError, match=f"{topic} is an internal topic"):
        planned(cluster, file, ReplayOptions(to=topic))
    with pytest.raises(RefusedError, match=f"{topic} is an internal topic"):
        planned(cluster, saved(tmp_path, LOST, state=replace(orders(), topic=topic)))


def test_another_cluster_is_refused_unless_it_is_meant(cluster: FakeCluster, file: Path) -> None:
    cluster.cluster_id = "another"
    with pytest.raises(RefusedError, match="are of cluster rescue-test-cluster-00, and this is another"):
        planned(cluster, file)
    plan = planned(cluster, file, ReplayOptions(other_cluster=True))
    assert plan.to_replay == 12
    assert any("none counts as surviving" in warning for warning in plan.warnings)


def test_a_topic_that_was_made_again_is_refused_unless_it_is_named(cluster: FakeCluster, tmp_path: Path) -> None:
    file = saved(tmp_path, LOST, state=replace(orders(), topic_id="AAAAAAAAAAAAAAAAAAAAAg"))
    with pytest.raises(RefusedError, match="deleted and made again"):
        planned(cluster, file)
    assert planned(cluster, file, ReplayOptions(to="orders")).to_replay == 12


def test_another_topic_gets_what_was_lost_or_all_of_it(
    cluster: FakeCluster, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TopicPartition("rescued", 0)
    cluster.add(replace(orders(), topic="rescued", topic_id="AAAAAAAAAAAAAAAAAAAAAw"))
    replayed(cluster, file, tmp_path / "lost", monkeypatch, options=ReplayOptions(to="rescued"))
    assert origins(cluster, other) == list(range(10, 20))
    assert origins(cluster) == []
    everything = ReplayOptions(to="rescued", all_records=True)
    replayed(cluster, file, tmp_path / "all", monkeypatch, options=everything)
    assert origins(cluster, other) == [*range(10, 20), 8, 9]


def test_a_partition_without_a_leader_and_one_that_is_not_there_are_named(cluster: FakeCluster, file: Path) -> None:
    with pytest.raises(UsageError, match="elsewhere:0 does not exist"):
        planned(cluster, file, ReplayOptions(to="elsewhere"))
    cluster.states[ORDERS] = orders(leader=None)
    with pytest.raises(RefusedError, match="orders:0 has no live leader"):
        planned(cluster, file)
    cluster.states[ORDERS], cluster.fenced = orders(), frozenset({2})
    with pytest.raises(RefusedError, match="orders:0 has no live leader"):
        planned(cluster, file)


FOUR = [orders(number) for number in range(4)]


def four(tmp_path: Path, cluster: FakeCluster, min_isr: int = 2) -> Path:
    """A file with 10 lost records of each of orders:0-3; orders:1 and orders:3 are under min ISR."""
    config = TopicConfig(cleanup_policy=("delete",), min_insync_replicas=min_isr)
    for state in FOUR:
        isr = (2,) if state.partition % 2 else (2, 3)
        cluster.add(replace(state, isr=isr), batch(0, 10, epoch=4), batch(10, 2, epoch=5), config=config)
    path = tmp_path / "four.kelr-rescue"
    pieces = [batch(10, 2, epoch=4), batch(12, 3, epoch=4), batch(15, 5, epoch=4)]
    save(path, [tail(pieces, 10, 20, held=log(3, (4, 20)), state=state) for state in FOUR])
    return path


def test_partitions_under_min_isr_are_skipped_by_name_and_the_others_get_theirs(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = four(tmp_path, cluster)
    produced = replayed(cluster, file, tmp_path, monkeypatch)
    assert [(one.partition.source.partition, one.confirmed) for one in produced] == [(0, 10), (2, 10)]
    assert origins(cluster, FOUR[1].address) == []
    skipped = planned(cluster, file).skipped
    assert [(one.source.partition, one.records) for one in skipped] == [(1, 10), (3, 10)]
    (said,) = skips_in_words(skipped)
    assert said == "orders:1,3: nothing is taken with acks=all, as the ISR [2] is below min ISR 2"


def test_without_a_partition_that_takes_records_nothing_is_sent_and_nothing_left_behind(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = four(tmp_path, cluster, min_isr=3)
    with pytest.raises(
        RefusedError, match=r"orders:0,2: .* the ISR \[2, 3\] is below min ISR 3; orders:1,3: .* ISR \[2\]"
    ):
        replayed(cluster, file, tmp_path, monkeypatch)
    assert not (tmp_path / "journal.jsonl").exists()


def test_the_records_of_all_partitions_are_under_way_before_any_answer_is_waited_for(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = four(tmp_path, cluster, min_isr=1)
    handed: list[tuple[str, int]] = []
    real_produce, real_flush = FakeProducer.produce, FakeProducer.flush
    monkeypatch.setattr(
        FakeProducer,
        "produce",
        lambda self, topic, **more: (handed.append(("produce", more["partition"])), real_produce(self, topic, **more))[
            1
        ],
    )
    monkeypatch.setattr(FakeProducer, "flush", lambda self, s: (handed.append(("wait", -1)), real_flush(self, s))[1])
    replayed(cluster, file, tmp_path, monkeypatch)
    before = handed[: handed.index(("wait", -1))]
    assert {partition for _, partition in before} == {0, 1, 2, 3}


def test_what_falls_under_min_isr_meanwhile_ends_in_kafkas_reason_and_the_rest_is_not_tried(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = four(tmp_path, cluster, min_isr=1)
    monkeypatch.setattr(producing, "PARTITIONS_AT_ONCE", 1)

    def script(_moment: str) -> str:
        for state in FOUR:
            cluster.states[state.address] = replace(state, isr=())
        return "_MSG_TIMED_OUT"

    produced = replayed(cluster, file, tmp_path, monkeypatch, script=script)
    why = ": nothing is taken with acks=all, as the ISR [] is below min ISR 1"
    assert produced[0].error == f"orders:0{why} (MSG_TIMED_OUT: as the test wants it)"
    assert [(one.error, one.sent) for one in produced[1:]] == [(f"orders:{at}{why}", False) for at in (1, 2, 3)]


def test_records_below_the_logs_start_were_deleted_on_purpose_and_that_is_said(
    cluster: FakeCluster, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cluster.leader_log
    monkeypatch.setattr(cluster, "leader_log", lambda at: replace(real(at), log_start=9))
    plan = planned(cluster, file)
    (one,) = plan.partitions
    assert one.counts == {Verdict.DELETED: 1, Verdict.SURVIVES: 1, Verdict.REPLAY: 10}
    (said,) = [warning for warning in plan.warnings if "on purpose" in warning]
    assert said == (
        "1 record of orders:0 not produced again: DeleteRecords or retention deleted them on purpose, and the log"
        " begins after them"
    )


def test_what_the_leaders_own_newer_records_were_deleted_behind_is_not_taken_for_deleted(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cluster.leader_log
    monkeypatch.setattr(cluster, "leader_log", lambda at: replace(real(at), log_start=11))
    plan = planned(cluster, saved(tmp_path, LOST))
    assert plan.partitions[0].counts == {Verdict.UNKNOWN: 3, Verdict.REPLAY: 9}
    assert never_known(plan.partitions) == (
        "3 records of orders:0 not produced again: the log begins after them, and whether it ever held them is not"
        " known; --to TOPIC --all-records produces them elsewhere"
    )
    # Told beside what failed, too.
    output = Output(StringIO(), StringIO())
    for error in ("", "REQUEST_TIMED_OUT"):
        with pytest.raises(PartlyDoneError) as raised:
            _end(output, plan, [Produced(plan.partitions[0], 5, error)])
        assert never_known(plan.partitions) in raised.value.message
        assert error in raised.value.message
    plan = planned(cluster, saved(tmp_path, LOST, lacked_by=2))
    assert plan.partitions[0].counts == {Verdict.REPLAY: 12}
    assert never_known(plan.partitions) == ""


def test_surviving_records_never_go_back_to_their_own_topic(cluster: FakeCluster, file: Path) -> None:
    with pytest.raises(UsageError, match="--all-records goes with --to"):
        planned(cluster, file, ReplayOptions(all_records=True))


def test_what_a_person_has_to_know_is_said(cluster: FakeCluster, tmp_path: Path) -> None:
    file = saved(tmp_path, LOST[1:], 8, 25)
    cluster.logs[ORDERS].append(batch(12, 1, epoch=5, log_append_ms=99))
    plan = planned(cluster, file, ReplayOptions(look=True))
    said = " ".join(plan.warnings)
    assert "after newer ones" in said
    assert "does not hold all that was asked for of orders:0" in said
    assert "the time of their writing" in said
    assert "--no-scan: records that were replayed before will be there twice" in " ".join(
        planned(cluster, file, ReplayOptions(look=False)).warnings
    )
