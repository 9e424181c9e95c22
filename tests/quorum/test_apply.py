"""A rescue is carried out: refusals, every byte, and a crash or a disk error at every call that touches a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from kelr.errors import BadInputError, KelrError, PartlyDoneError, RefusedError, UsageError
from kelr.files import Files
from kelr.model.checkup import AddressState
from kelr.quorum.apply import (
    Places,
    Statement,
    apply_plan,
    archive_of,
    check_addresses,
    check_statement,
    check_target,
    copy_of,
    journal_path,
    read_statement,
    undo,
)
from kelr.quorum.archive import Archive
from kelr.quorum.assess import Matter, Verdict, assess
from kelr.quorum.plan import (
    ABOVE,
    AddressRequest,
    PlanRequest,
    QuorumPlan,
    make_address_plan,
    make_plan,
    read_plan,
    write_plan,
)
from kelr.quorum.reading import Collected, read_collections
from kelr.replay import records as rec
from kelr.sources.metadata_log.reading import read_batches
from tests.histories.files import Disk, Gone, MemoryFiles
from tests.quorum.nodes import (
    BEGINNING,
    BROKER_ADDRESS,
    CLUSTER,
    END,
    LATE,
    LATER,
    SHORT,
    SHORT_END,
    TOPIC,
    VOTERS,
    WHOLE,
    collect,
    directory_of,
    log_bytes,
    write_node,
    write_replica,
)

NEW_ID = "N" * 21 + "Q"
TARGET, STATE = Path("/kafka/meta"), Path("/state")
OLD = {"meta.properties": f"version=1\ncluster.id={CLUSTER}\nnode.id=100\n".encode(), "bootstrap.checkpoint": b"old"}
STATED = Statement((100, 101, 102), (102, 101), ("late",), (1,))
REQUEST = PlanRequest(100, TARGET, "c100", 9093, "4.3.1")


@dataclass(frozen=True)
class Rescue:
    collected: Collected
    plan: QuorumPlan
    archive: Archive
    place: str


@pytest.fixture(scope="module")
def rescue(tmp_path_factory: pytest.TempPathFactory) -> Rescue:
    return planned(tmp_path_factory.mktemp("rescue"))


def planned(path: Path, request: PlanRequest = REQUEST, log: bytes = WHOLE, *, lagging: bytes = SHORT) -> Rescue:
    lagging_node = write_node(path / "controller", 100, lagging, epoch=9)
    live = write_node(path / "broker", 1, log, epoch=2)
    write_replica(live, "early", TOPIC, [(0, 0), (1, 0)])
    write_replica(live, "late", LATE, [(0, 0)])
    collected = read_collections([collect(path, lagging_node, live)])
    found = assess(collected.copies, collected.disks)
    plan = make_plan(collected, found, request, directory_id=NEW_ID, now_ms=1_795_000_000_000)
    return Rescue(collected, plan, *archive_of(plan, collected))


# The plan.


def test_static_voters_listen_where_they_registered(tmp_path: Path) -> None:
    at = {node: (rec.Endpoint("CONTROLLER", f"c{node}", 9093),) for node in (101, 102)}
    registered = tuple(rec.ControllerRegistered(node, "I" * 21 + "Q", known) for node, known in at.items())
    static = [(1, (rec.LeaderChanged(101, VOTERS),)), *BEGINNING[1:], (1, registered), *LATER]
    plan = planned(tmp_path, replace(REQUEST, host="new"), log_bytes(static)[0], lagging=log_bytes(static[:2])[0]).plan
    assert plan.kraft_version == 0
    assert plan.controller_addresses == ("c101:9093", "c102:9093", "new:9093")
    assert (plan.never_start, plan.unknown_addresses) == ((100, 101, 102), (100,))


def test_the_plan_is_the_best_copy_with_one_batch_behind_it(rescue: Rescue) -> None:
    plan = rescue.plan
    assert (plan.source.node, plan.source.end, plan.verdict) == (1, END, Verdict.LOWER_BOUND)
    assert plan.epoch == 9 + ABOVE
    assert plan.never_start == (100, 101, 102)
    assert plan.missing == (101, 102)
    assert plan.controller_addresses == ("c100:9093", "c101:9093", "c102:9093")
    assert not plan.brokers_restart
    (batch,) = read_batches(bytes.fromhex(plan.appended))
    assert (batch.base_offset, batch.epoch) == (END, 2)
    assert batch.records == (rec.Voters((rec.Voter(100, NEW_ID, (rec.Endpoint("CONTROLLER", "c100", 9093),)),)),)
    assert plan.quorum_state == (
        '{"leaderId":-1,"leaderEpoch":19,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_a_plan_is_read_as_it_was_written_and_not_when_it_was_changed(rescue: Rescue, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(rescue.plan, path)
    assert read_plan(path) == rescue.plan
    text = path.read_text()
    path.write_text(text.replace('"epoch": 19', '"epoch": 3'))
    with pytest.raises(BadInputError, match="changed since"):
        read_plan(path)
    path.write_text(text.replace('"epoch": 19', '"epoch": "x"'))
    with pytest.raises(BadInputError, match="epoch"):
        read_plan(path)


def test_another_address_makes_brokers_restart(tmp_path: Path) -> None:
    plan = planned(tmp_path, replace(REQUEST, host="new")).plan
    assert plan.brokers_restart
    assert "new:9093" in plan.controller_addresses


def test_what_must_not_be_planned_is_refused(rescue: Rescue, tmp_path: Path) -> None:
    found = assess(rescue.collected.copies, rescue.collected.disks)

    def refused(request: PlanRequest, error: type[KelrError], words: str) -> None:
        with pytest.raises(error, match=words):
            make_plan(rescue.collected, found, request, directory_id=NEW_ID, now_ms=0)

    refused(replace(REQUEST, source="100"), RefusedError, "lacks records")
    refused(replace(REQUEST, source="7"), UsageError, "no copy of node 7")
    refused(replace(REQUEST, node=1), UsageError, "registered broker")
    refused(replace(REQUEST, kafka="4.1.0"), RefusedError, "4.2-IV1, which Kafka 4.1.0 does not know")
    refused(replace(REQUEST, kafka="new"), UsageError, "no release")
    second = write_node(tmp_path / "second", 101, WHOLE)
    first = write_node(tmp_path / "first", 100, WHOLE)
    enough = read_collections([collect(tmp_path, first, second)])
    with pytest.raises(RefusedError, match="not lost"):
        make_plan(enough, assess(enough.copies), REQUEST, directory_id=NEW_ID, now_ms=0)


# Voters that have moved.

MOVED = AddressRequest({100: ("n100", 1), 101: ("n101", 2), 102: ("n102", 3)}, "4.3.1", TARGET)


def moved(path: Path, request: AddressRequest = MOVED, *nodes: int) -> Rescue:
    paths = [write_node(path / str(node), node, WHOLE, epoch=5) for node in nodes or (100, 101)]
    collected = read_collections([collect(path, *paths)])
    plan = make_address_plan(collected, assess(collected.copies), request, now_ms=1_795_000_000_000)
    return Rescue(collected, plan, *archive_of(plan, collected))


def test_voters_that_have_moved_keep_their_ids_directories_and_epoch(tmp_path: Path) -> None:
    rescue = moved(tmp_path)
    plan = rescue.plan
    assert (plan.source.node, plan.target.node, plan.target.directory_id) == (100, 100, directory_of(100))
    assert (plan.never_start, plan.missing, plan.epoch) == ((), (), 5)
    assert plan.controller_addresses == ("c100:9093", "c101:9093", "c102:9093", "n100:1", "n101:2", "n102:3")
    assert plan.brokers_restart
    assert plan.configs == ("controller.quorum.bootstrap.servers=n100:1,n101:2,n102:3",)
    (batch,) = read_batches(bytes.fromhex(plan.appended))
    (record,) = batch.records
    assert isinstance(record, rec.Voters)
    assert [(one.node, one.directory_id, one.endpoints[0].host, one.endpoints[0].port) for one in record.voters] == [
        (100, directory_of(100), "n100", 1),
        (101, directory_of(101), "n101", 2),
        (102, directory_of(102), "n102", 3),
    ]
    check_statement(plan, Statement())
    files = host().process()
    carry_out(rescue, files)
    found = contents(files, TARGET)
    directory = tmp_path / "100"
    for name in ("meta.properties", "__cluster_metadata-0/quorum-state"):
        assert found[name] == (directory / name).read_bytes()
    assert found["__cluster_metadata-0/00000000000000000000.log"] == WHOLE + bytes.fromhex(plan.appended)


@pytest.mark.parametrize(
    ("addresses", "nodes", "error", "words"),
    [
        (
            {100: ("n", 1), 101: ("n", 2)},
            (100, 101),
            UsageError,
            "voters 100, 101 are given, and the voters are 100, 101, 102",
        ),
        (MOVED.addresses, (100,), RefusedError, "fewer voters than a majority"),
    ],
)
def test_new_addresses_are_those_of_all_voters_and_need_a_majority(
    tmp_path: Path,
    addresses: Mapping[int, tuple[str, int]],
    nodes: tuple[int, ...],
    error: type[KelrError],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        moved(tmp_path, replace(MOVED, addresses=addresses), *nodes)


def test_voters_that_are_brokers_too_are_named(rescue: Rescue, tmp_path: Path) -> None:
    registered = rec.BrokerRegistered(101, 9, "D" * 21 + "Q", False, False, None)
    log, _ = log_bytes([*BEGINNING, *LATER, (2, (registered,))])
    plan = planned(tmp_path, log=log).plan
    assert (plan.combined, rescue.plan.combined) == ((101,), ())
    assert plan.missing == (101, 102)
    with pytest.raises(UsageError, match="node 101 is a registered broker"):
        planned(tmp_path / "own", replace(REQUEST, node=101), log)


def test_which_of_several_listeners_is_meant_must_be_said(tmp_path: Path) -> None:
    two = tuple(
        rec.Voter(node, directory_of(node), (rec.Endpoint("TLS", "h", 1), rec.Endpoint("CONTROLLER", "h", 2)))
        for node in VOTERS
    )
    log, _ = log_bytes([*BEGINNING, *LATER, (2, (rec.Voters(two),))])
    with pytest.raises(UsageError, match="voters have listeners CONTROLLER, TLS"):
        planned(tmp_path / "a", log=log)
    assert planned(tmp_path / "b", replace(REQUEST, listener="TLS"), log).plan.target.listener == "TLS"


# A stale copy.

STALE = replace(REQUEST, source="100", stale=True)


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> Rescue:
    return planned(tmp_path_factory.mktemp("stale"), STALE)


def test_a_stale_copy_is_planned_with_what_it_lacks_named(stale: Rescue) -> None:
    plan = stale.plan
    assert (plan.source.node, plan.source.end, plan.verdict) == (100, SHORT_END, Verdict.STALE)
    assert plan.epoch == 9 + ABOVE
    assert plan.stale_topics == ("early", "late")
    assert plan.lost_records == {"PartitionChangeRecord": 1, "PartitionRecord": 1, "TopicRecord": 1}
    assert plan.stopped_brokers == {"1": (BROKER_ADDRESS,)}
    assert plan.missing == (101, 102)
    files = host().process()
    carry_out(stale, files)
    log = contents(files, TARGET)["__cluster_metadata-0/00000000000000000000.log"]
    assert log == SHORT + bytes.fromhex(plan.appended)


def test_of_another_copy_nothing_is_named(rescue: Rescue, tmp_path: Path) -> None:
    asked_for = planned(tmp_path, replace(REQUEST, stale=True)).plan
    for plan in (rescue.plan, asked_for):
        assert (plan.verdict, plan.stale_topics, plan.lost_records, plan.stopped_brokers) == (
            Verdict.LOWER_BOUND,
            (),
            {},
            {},
        )


def test_beside_a_stale_copy_no_broker_may_have_run_when_it_was_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in (True, None):
        monkeypatch.setattr("kelr.quorum.archive.is_locked", lambda _path, answer=answer: answer)
        with pytest.raises(RefusedError, match="broker 1 ran when it was collected"):
            planned(tmp_path / str(answer), STALE)


def test_topics_and_copied_brokers_must_be_named_for_a_stale_copy(stale: Rescue) -> None:
    whole = Statement((100, 101, 102), (101, 102), ("early", "late"), (1,))
    for statement, words in (
        (replace(whole, missing=(101,)), "nodes 102, which"),
        (replace(whole, topics=()), "2 topics would be set aside, come back, or lose records: early, late"),
        (replace(whole, topics=("early", "other")), "1 topic would be set aside, come back, or lose records: late"),
        (replace(whole, data_copied=()), "directories of brokers 1 are copied"),
    ):
        with pytest.raises(RefusedError, match=words):
            check_statement(stale.plan, statement)
    check_statement(stale.plan, whole)
    lost = replace(stale.plan, missing=(1, 101, 102))
    check_statement(lost, Statement((100, 101, 102), (1, 101, 102), ("early", "late")))
    with pytest.raises(RefusedError, match="nodes 1, which"):
        check_statement(lost, Statement((100, 101, 102), (101, 102), ("early", "late"), (1,)))


def test_no_broker_may_run_when_a_stale_copy_is_made_to_lead(stale: Rescue, rescue: Rescue) -> None:
    def probe(asked: str) -> AddressState:
        return AddressState.OPEN if asked == BROKER_ADDRESS else AddressState.REFUSED

    with pytest.raises(RefusedError, match="broker 1 runs; led by a stale copy"):
        check_addresses(stale.plan, probe)
    check_addresses(rescue.plan, probe)  # which brokers follow as they are


def led(path: Path) -> tuple[Collected, Path]:
    """The stale copy of controller 100 has led since, and the broker has truncated its log and followed; with what
    was collected before, and the directory that 100 had before."""
    rescue = planned(path, STALE)
    since = [(20, (rec.LeaderChanged(100, (100,)),)), (20, (rec.TopicRemoved(TOPIC),))]
    more, _ = log_bytes(since, SHORT_END + 1)
    log = SHORT + bytes.fromhex(rescue.plan.appended) + more
    saved = path / "controller"
    now = write_node(path / "now", 100, log, epoch=20, directory=NEW_ID)
    broker = write_node(path / "broker", 1, log, epoch=20)
    again = collect(path, saved, name="saved", at_ms=1_795_000_000_001)
    both = collect(path, now, broker, name="again", at_ms=1_795_000_000_001)
    return read_collections([path / "out.kelr-quorum", again, both]), saved


def test_a_rescue_that_has_led_is_undone_by_the_copy_that_a_broker_had_before(tmp_path: Path) -> None:
    collected, saved = led(tmp_path)
    found = assess(collected.copies, collected.disks)
    assert found.matter is Matter.STOPPED  # by the copy that led, which names itself alone
    (earlier,) = (one.copy for one in found.copies if one.copy.read_at_ms is not None)
    assert (earlier.node, earlier.end) == (1, END)
    assert earlier.place == f"h:{tmp_path}/broker at 2026-11-18T11:06:40.000Z"

    def plan_with(source: str | None, *, stale: bool = True) -> QuorumPlan:
        request = replace(REQUEST, source=source, stale=stale)
        return make_plan(collected, found, request, directory_id="O" * 21 + "Q", now_ms=1)

    with pytest.raises(UsageError, match="2 copies of node 1"):
        plan_with("1")
    for source in (None, earlier.place):
        with pytest.raises(RefusedError, match="not lost"):
            plan_with(source, stale=False)
    plan = plan_with(earlier.place)
    assert (plan.source.end, plan.epoch, plan.never_start) == (END, 20 + ABOVE, (100, 101, 102))
    assert plan.lost_records == {"RemoveTopicRecord": 1}
    assert plan.stale_topics == ("early", "late")  # which come back
    archive, place = archive_of(plan, collected)
    assert copy_of(plan, collected) is earlier
    files = host().process()
    carry_out(Rescue(collected, plan, archive, place), files)
    log = contents(files, TARGET)["__cluster_metadata-0/00000000000000000000.log"]
    assert log == WHOLE + bytes.fromhex(plan.appended)
    assert plan_with(directory_of(100)).source.place == f"h:{saved}"


def test_a_healthy_quorums_lagging_controller_is_not_taken_even_with_consent(tmp_path: Path) -> None:
    paths = [write_node(tmp_path / str(node), node, log) for node, log in ((100, WHOLE), (101, WHOLE), (102, SHORT))]
    collected = read_collections([collect(tmp_path, *paths)])
    with pytest.raises(RefusedError, match="not lost"):
        make_plan(
            collected,
            assess(collected.copies),
            replace(STALE, source="102"),
            directory_id=NEW_ID,
            now_ms=0,
        )


def test_voters_that_elected_each_other_without_records_give_way_to_a_brokers_copy(tmp_path: Path) -> None:
    """KAFKA-14205: one was formatted empty and one lagged. What they hold is contradicted, whatever its epoch."""
    wrong, _ = log_bytes([*BEGINNING, (7, (rec.LeaderChanged(102, VOTERS),))])
    paths = [write_node(tmp_path / str(node), node, wrong, epoch=7) for node in (100, 102)]
    broker = write_node(tmp_path / "broker", 1, WHOLE)
    write_replica(broker, "late", LATE, [(0, 0)])
    collected = read_collections([collect(tmp_path, *paths, broker)])
    found = assess(collected.copies, collected.disks)
    assert (found.matter, found.best.copy.node, found.best.verdict) == (Matter.STOPPED, 100, Verdict.STALE)
    request = replace(REQUEST, source="1")
    with pytest.raises(RefusedError, match="not lost"):
        make_plan(collected, found, request, directory_id=NEW_ID, now_ms=0)
    plan = make_plan(collected, found, replace(request, stale=True), directory_id=NEW_ID, now_ms=0)
    assert (plan.source.end, plan.epoch, plan.lost_records) == (END, 7 + ABOVE, {})
    unread = read_collections([collect(tmp_path, *paths, write_node(tmp_path / "other", 1, WHOLE), name="unread")])
    found = assess(unread.copies)  # without brokers' data nothing contradicts them, and the copies part
    assert found.best.verdict is Verdict.LOWER_BOUND
    assert make_plan(unread, found, replace(request, stale=True), directory_id=NEW_ID, now_ms=0).source.node == 1


# Before it is carried out.


def test_it_must_be_stated_who_never_starts_and_who_is_done_without(rescue: Rescue) -> None:
    for statement, words in (
        (Statement(), "100, 101, 102 never start"),
        (Statement((100, 101), (101, 102)), "controllers 102 never start"),
        (Statement((100, 101, 102)), "101, 102, which were not read"),
        (Statement((100, 101, 102), (101,)), "nodes 102, which"),
    ):
        with pytest.raises(RefusedError, match=words):
            check_statement(rescue.plan, statement)
    check_statement(rescue.plan, Statement((100, 101, 102, 7), (101, 102)))
    check_statement(replace(rescue.plan, verdict=Verdict.PROVED), Statement((100, 101, 102)))


@pytest.mark.parametrize("address", ["c100:9093", "c102:9093"])
def test_nobody_may_answer_where_a_controller_is_or_was(rescue: Rescue, address: str) -> None:
    def probe(asked: str) -> AddressState:
        return AddressState.OPEN if asked == address else AddressState.SILENT

    with pytest.raises(RefusedError, match=f"connections at {address}"):
        check_addresses(rescue.plan, probe)
    check_addresses(rescue.plan, lambda _address: AddressState.REFUSED)


def test_a_broker_that_runs_must_have_been_collected(rescue: Rescue) -> None:
    plan = replace(rescue.plan, unread_brokers={"2": ("b2:9092",)})
    with pytest.raises(RefusedError, match="broker 2 runs"):
        check_addresses(plan, lambda asked: AddressState.OPEN if asked == "b2:9092" else AddressState.SILENT)


def test_the_directory_must_be_a_stopped_controllers(tmp_path: Path) -> None:
    rescue = planned(tmp_path, replace(REQUEST, directory=tmp_path / "controller"))
    check_target(rescue.plan)
    for answer in (True, None):
        with pytest.raises(RefusedError, match="holds the lock"):
            check_target(rescue.plan, locked=lambda _path, answer=answer: answer)  # type: ignore[misc]
    properties = tmp_path / "controller" / "meta.properties"
    properties.write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=101\n")
    with pytest.raises(RefusedError, match="of node 101"):
        check_target(rescue.plan)
    properties.unlink()
    with pytest.raises(RefusedError, match="no node's directory"):
        check_target(rescue.plan)
    for directory, error, words in (
        (tmp_path / "broker", RefusedError, "a broker's: it holds (early|late)-0"),
        (tmp_path / "no" / "where", BadInputError, "is not there"),
    ):
        other = replace(rescue.plan, target=replace(rescue.plan.target, directory=str(directory)))
        with pytest.raises(error, match=words):
            check_target(other)
    check_target(replace(rescue.plan, target=replace(rescue.plan.target, directory=str(tmp_path / "new"))))


def test_the_bytes_must_be_those_that_were_planned(rescue: Rescue, tmp_path: Path) -> None:
    other = write_node(tmp_path / "other", 1, SHORT)
    with pytest.raises(RefusedError, match="no collection"):
        archive_of(rescue.plan, read_collections([collect(tmp_path, other)]))


# Carrying it out.


def host(seed: int = 0, *, old: bool = True) -> Disk:
    """A disk with the old directory of the controller, all of it synced."""
    disk = Disk(Random(seed))
    files = disk.process()
    for path in (TARGET.parent, STATE, *([TARGET, TARGET / "__cluster_metadata-0"] if old else [])):
        files.mkdir(path)
    for name, content in OLD.items() if old else ():
        descriptor = files.open(TARGET / name, os.O_WRONLY | os.O_CREAT)
        files.write(descriptor, content)
        files.fsync(descriptor)
    for path in (Path("/"), TARGET.parent, *([TARGET] if old else [])):
        files.fsync(files.open(path, os.O_RDONLY))
    files.exit()
    return disk


def contents(files: Files, directory: Path) -> Mapping[str, bytes]:
    found = {}
    for name in files.listdir(directory):
        path = directory / name
        if name == "__cluster_metadata-0":
            found.update({f"{name}/{inner}": one for inner, one in contents(files, path).items()})
        else:
            with files.reader(path) as file:
                found[name] = file.read()
    return found


def carry_out(rescue: Rescue, files: Files) -> None:
    apply_plan(rescue.plan, rescue.archive, rescue.place, STATED, state_directory=STATE, now_ms=1, files=files)


def wanted(plan: QuorumPlan) -> Mapping[str, bytes]:
    return {
        "meta.properties": f"version=1\ncluster.id={CLUSTER}\nnode.id=100\ndirectory.id={NEW_ID}\n".encode(),
        "__cluster_metadata-0/00000000000000000000.log": WHOLE + bytes.fromhex(plan.appended),
        "__cluster_metadata-0/quorum-state": plan.quorum_state.encode(),
    }


def assert_carried_out(rescue: Rescue, files: Files) -> None:
    places = Places.of(rescue.plan)
    assert contents(files, places.target) == wanted(rescue.plan)
    assert contents(files, places.saved) == OLD
    assert not files.exists(places.new)


def test_the_directory_is_made_and_the_old_one_kept(rescue: Rescue) -> None:
    files = host().process()
    carry_out(rescue, files)
    assert_carried_out(rescue, files)
    carry_out(rescue, files)  # again: nothing is left to do
    assert_carried_out(rescue, files)
    with files.reader(
        next(path for path in (STATE / "clusters" / CLUSTER / "quorum",)) / f"{rescue.plan.plan_id}.jsonl"
    ) as file:
        assert [line.split(b'"')[3] for line in file] == [b"begin", b"built", b"done", b"begin", b"done"]


def test_what_was_stated_is_in_the_journal_of_the_host_where_it_was_carried_out(rescue: Rescue) -> None:
    disk = host()
    files = disk.process()
    assert read_statement(rescue.plan, STATE, files) is None
    carry_out(rescue, files)
    stated = Statement((100, 101, 102), (101, 102), ("late",), (1,))
    assert read_statement(rescue.plan, STATE, files) == stated
    other = Statement((100, 101, 102))
    apply_plan(rescue.plan, rescue.archive, rescue.place, other, state_directory=STATE, now_ms=2, files=files)
    assert read_statement(rescue.plan, STATE, files) == other  # the newest one counts
    journal = files.open(journal_path(rescue.plan, STATE), os.O_WRONLY | os.O_APPEND)
    files.write(journal, b'{"what":"begin","stated":{"never_st')
    assert read_statement(rescue.plan, STATE, files) == other


def test_a_new_directory_needs_no_old_one(rescue: Rescue) -> None:
    files = host(old=False).process()
    carry_out(rescue, files)
    assert contents(files, TARGET) == wanted(rescue.plan)
    assert not files.exists(Places.of(rescue.plan).saved)


def test_a_batch_that_is_not_whole_is_cut_off(tmp_path: Path) -> None:
    rescue = planned(tmp_path, log=WHOLE + WHOLE[:30])
    files = host().process()
    carry_out(rescue, files)
    assert_carried_out(rescue, files)


class At:
    """Does something at one call of many."""

    def __init__(self, number: int, what: Callable[[], object], only: frozenset[str] = frozenset()) -> None:
        self.number, self.what, self.only, self.count = number, what, only, 0
        self.process: MemoryFiles | None = None
        """Ends before it does anything."""

    def __call__(self, call: str, _path: Path) -> object:
        self.count += not self.only or call in self.only
        if self.count != self.number or (self.only and call not in self.only):
            return None
        if self.process is not None:
            self.process.exit()
        return self.what()


def crash() -> object:
    raise Gone("crash")


def old_is_whole(rescue: Rescue, files: Files) -> bool:
    places = Places.of(rescue.plan)
    return any(files.exists(path) and contents(files, path) == OLD for path in (places.target, places.saved))


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_at_any_call_leaves_the_old_directory_whole_and_the_same_command_finishes(
    rescue: Rescue, power_cut: bool
) -> None:
    number = finished = 0
    while not finished:
        number += 1
        for seed in range(4 if power_cut else 1):
            disk = host(seed)
            seam = At(number, crash)
            process = disk.process(seam)
            seam.process = process
            try:
                carry_out(rescue, process)
                finished += 1
            except Gone:
                pass
            if power_cut:
                disk.power_cut()
            again = disk.process()
            assert finished or old_is_whole(rescue, again), number
            carry_out(rescue, again)
            assert_carried_out(rescue, again)
            disk.power_cut()
            assert_carried_out(rescue, disk.process())
    assert number > 40


def fail() -> object:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_error_of_the_disk_at_any_call_is_told_and_the_same_command_finishes(rescue: Rescue) -> None:
    number, failed = 0, 0
    while True:
        number += 1
        disk = host()
        seam = At(number, fail, frozenset({"open", "write", "fsync", "mkdir", "replace"}))
        try:
            carry_out(rescue, disk.process(seam))
        except (PartlyDoneError, UsageError, RefusedError):
            failed += 1
        if seam.count < number:
            break
        again = disk.process()
        assert old_is_whole(rescue, again)
        carry_out(rescue, again)
        assert_carried_out(rescue, again)
    assert failed > 30


def test_a_byte_that_the_disk_changes_is_noticed_before_anything_is_renamed(rescue: Rescue) -> None:
    files = host().process()
    write = files.write

    def flip(descriptor: int, data: bytes) -> int:
        changed = bytes([data[0] ^ 1]) + data[1:] if data.startswith(WHOLE[:20]) else data
        return write(descriptor, changed)

    files.write = flip  # type: ignore[method-assign]
    with pytest.raises(RefusedError, match="not those that were written"):
        carry_out(rescue, files)
    assert contents(files, TARGET) == OLD


# Undo.


def undone(rescue: Rescue, files: MemoryFiles, *, locked: bool = False) -> None:
    undo(rescue.plan, files, locked=lambda _path: locked)


def test_what_never_started_is_undone(rescue: Rescue) -> None:
    files = host().process()
    with pytest.raises(RefusedError, match="not carried out here"):
        undone(rescue, files)
    carry_out(rescue, files)
    with pytest.raises(RefusedError, match="has started"):
        undone(rescue, files, locked=True)
    undone(rescue, files)
    assert contents(files, TARGET) == OLD
    carry_out(rescue, files)
    assert_carried_out(rescue, files)
    descriptor = files.open(TARGET / "__cluster_metadata-0" / "quorum-state", os.O_WRONLY | os.O_TRUNC)
    files.write(descriptor, b"{}")
    with pytest.raises(RefusedError, match="has started"):
        undone(rescue, files)
