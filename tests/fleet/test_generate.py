"""Fleets on paper: what is written is what the controller decided, and every reader of kelr takes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.errors import BadInputError, UsageError
from kelr.fleet import workers
from kelr.fleet.generate import making
from kelr.fleet.generate.making import SAME_ID, TRUTH, UNKNOWN_ORIGIN, make_fleet
from kelr.fleet.generate.plan import CONTROLLERS, SOFTWARE, ClusterPlan, FleetPlan, Shape
from kelr.fleet.generate.truth import Truth
from kelr.model import BrokerStatus, LogAnswer, ReplicaLog, TopicPartition
from kelr.replay.history import BrokerEntry, BrokerEvent, History, Interest, PartitionEntry, Restart, Window
from kelr.replay.image import MetadataImage
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.snapshot_collection import read_collection
from kelr.sources.snapshot_file import read_snapshot
from tests.fleet.generated import SMALL, Accompanied, by_address, lived, plans, states_of

EVERY = range(len(SOFTWARE))
"""A cluster of each software."""


def read(place: Path) -> MetadataImage:
    """What the metadata log there tells, of which nothing may be odd."""
    log, image = open_metadata_log([place]), MetadataImage()
    for batch in log.batches():
        image.apply(batch)
    assert log.warnings == []
    assert not log.cut_short
    assert not image.misfits
    assert not image.not_understood
    return image


@pytest.mark.parametrize("number", EVERY)
def test_the_log_tells_the_states_that_the_controller_has_at_the_end(number: int, tmp_path: Path) -> None:
    plan = plans()[number]
    done = lived(plan, tmp_path)
    image, cluster = read(tmp_path / plan.name), done.cluster

    assert by_address(image.partitions()) == states_of(cluster)
    assert {id_: (one.fenced, one.registration.epoch, one.registration.rack) for id_, one in image.brokers.items()} == {
        id_: (one.fenced, one.epoch, one.rack) for id_, one in cluster.state.brokers.items()
    }
    assert image.features == cluster.features
    assert image.configs == cluster.configs
    assert done.truth.partitions == sum(1 for _ in image.partitions())
    assert done.truth.leaderless == sum(one.leader is None for one in image.partitions())
    assert image.at is not None
    assert image.at.offset == done.truth.records - 1
    assert image.at.timestamp_ms == plan.end_ms


@pytest.mark.parametrize("number", EVERY)
def test_partitions_asked_about_by_their_form_are_decided_as_in_the_whole_cluster(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "Cluster", Accompanied)
    done = lived(plans()[number], tmp_path)

    assert isinstance(done.cluster, Accompanied)
    assert done.cluster.happened > 500
    done.cluster.compare()


@pytest.mark.parametrize("number", EVERY)
def test_history_finds_what_was_done(number: int, tmp_path: Path) -> None:
    plan = plans()[number]
    truth = lived(plan, tmp_path).truth
    history = History(Interest(), Window(), summaries=False)
    entries = [one for batch in open_metadata_log([tmp_path / plan.name]).batches() for one in history.take(batch)]
    entries += history.finish()

    unclean = {
        (one.at.offset, one.address, one.election.last_leader, one.election.leader)
        for one in entries
        if isinstance(one, PartitionEntry) and one.election is not None and one.election.elected_as.clean is False
    }
    assert unclean == {
        (one.offset, TopicPartition(one.topic, one.partition), one.from_leader, one.to_leader)
        for one in truth.unclean_elections
    }
    restarts = [
        (one.broker, one.restart)
        for one in entries
        if isinstance(one, BrokerEntry) and one.event is BrokerEvent.REGISTERED
    ]
    done = [(one.broker, one.clean) for one in truth.happenings if one.what == "registered"]
    assert [broker for broker, _ in restarts] == [broker for broker, _ in done]
    contradicted = {None: {Restart.CLEAN, Restart.UNCLEAN}, True: {Restart.UNCLEAN}, False: {Restart.CLEAN}}
    assert not [
        (broker, shown, clean)
        for (broker, shown), (_, clean) in zip(restarts, done, strict=True)
        if shown in contradicted[clean]
    ]
    for event in (BrokerEvent.FENCED, BrokerEvent.UNFENCED, BrokerEvent.SHUTDOWN_BEGUN):
        what = {BrokerEvent.SHUTDOWN_BEGUN: "stopped"}.get(event, event.value)
        told = [one.broker for one in entries if isinstance(one, BrokerEntry) and one.event is event]
        assert told == [one.broker for one in truth.happenings if one.what == what]


@pytest.mark.parametrize("shape", [Shape.COPIES, Shape.CUT])
def test_every_directory_of_a_cluster_can_be_read_by_itself(shape: Shape, tmp_path: Path) -> None:
    plan = replace(plans()[0], shape=shape, weeks=3)
    done = lived(plan, tmp_path)

    assert by_address(read(tmp_path / plan.name).partitions()) == states_of(done.cluster)
    nodes = sorted((tmp_path / plan.name).glob("node-*"))
    assert len(nodes) == (3 if shape is Shape.COPIES else 1)
    first = {node.name: open_metadata_log([node]).files[0] for node in nodes}
    assert first.pop(f"node-{CONTROLLERS[-1] if nodes[1:] else CONTROLLERS[0]}").endswith(".checkpoint")
    assert all(name.endswith(f"{0:020}.log") for name in first.values())


def test_the_same_seed_makes_the_same_bytes_however_many_processes_make_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_WORTH_A_PROCESS_BYTES", 1)
    fleet = replace(SMALL, clusters=2, partitions=30, shapes=(Shape.COPIES, Shape.SNAPSHOTS), seed=9, incidents=1)
    for count in (1, 2):
        make_fleet(fleet, tmp_path / str(count), workers=count)

    assert _bytes(tmp_path / "1") == _bytes(tmp_path / "2")
    make_fleet(replace(fleet, seed=10), tmp_path / "other")
    assert _bytes(tmp_path / "1") != _bytes(tmp_path / "other")


def _bytes(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_a_fleet_has_the_states_that_were_asked_for(tmp_path: Path) -> None:
    made = make_fleet(replace(SMALL, clusters=2, partitions=100, states=20_000, incidents=0), tmp_path / "fleet")

    assert 19_000 < sum(truth.states for truth in made.clusters) < 24_000


def test_damage_is_found_where_the_truth_says_it_is(tmp_path: Path) -> None:
    fleet = replace(SMALL, clusters=3, partitions=30, incidents=0, damage=True)
    made = make_fleet(fleet, tmp_path / "fleet")
    out = tmp_path / "fleet"
    where = {one.what: out / one.path for one in made.damages}
    ids = {path.parent.name: path for path in out.glob("*/*/meta.properties")}

    assert json.loads((out / TRUTH).read_text())["damages"] == [
        {"path": one.path, "what": one.what} for one in made.damages
    ]
    assert not (out / UNKNOWN_ORIGIN / f"node-{CONTROLLERS[0]}" / "meta.properties").exists()
    assert ids
    torn = open_metadata_log([where["torn tail"].parent])
    assert sum(len(batch.records) for batch in torn.batches()) < made.clusters[0].records
    assert "the log is read up to there" in " ".join(torn.warnings)
    broken = open_metadata_log([where["CRC error"].parent])
    list(broken.batches())
    assert "does not match its checksum" in " ".join(broken.warnings)
    for what in ("not a metadata log", "empty directory"):
        with pytest.raises(BadInputError):
            open_metadata_log([where[what]])
    same = open_metadata_log([out / SAME_ID])
    assert same.cluster_id == made.clusters[0].cluster_id
    assert where["same cluster id"].is_dir()


def test_snapshots_and_collections_tell_where_logs_end(tmp_path: Path) -> None:
    """An unclean election costs as many records as the replica lacked of the best log just before."""
    fleet = replace(SMALL, clusters=1, partitions=60, shapes=(Shape.SNAPSHOTS,), incidents=2, weeks=2)
    made = make_fleet(fleet, tmp_path / "fleet")
    truth = made.clusters[0]
    folder = tmp_path / "fleet" / truth.name

    snapshots = [read_snapshot(path) for path in sorted(folder.glob("*.kelr"))]
    assert [one.cluster.cluster_id for one in snapshots] == [truth.cluster_id] * 4
    last = snapshots[-1]
    assert sum(state.leader is None for state in last.partitions) == truth.leaderless
    down = {broker.id for broker in last.cluster.brokers if broker.status is BrokerStatus.FENCED}
    assert down == set(truth.brokers_down)
    assert set(last.logs) == {state.address for state in last.partitions}

    collections = [read_collection(path) for path in sorted(folder.glob("collected/*.kelr"))]
    assert collections
    lost = [
        _lost(truth, one.taken_at_ms, {address: [log.answer for log in logs] for address, logs in one.logs.items()})
        for one in collections
    ]
    assert any(found for of_one in lost for found in of_one)


def _lost(truth: Truth, at_ms: int, logs: dict[TopicPartition, list[LogAnswer]]) -> list[int]:
    found = []
    for one in truth.unclean_elections:
        held = logs.get(TopicPartition(one.topic, one.partition), ())
        ends = {answer.replica: answer.log_end for answer in held if isinstance(answer, ReplicaLog)}
        if one.at_ms == at_ms and one.to_leader in ends and one.from_leader in ends:
            assert one.lost == max(ends.values()) - ends[one.to_leader]
            found.append(one.lost)
    return found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clusters": 0}, "0 clusters"),
        ({"partitions": 6}, "6 partitions"),
        ({"brokers": 2, "racks": 2}, "2 brokers"),
        ({"racks": 7}, "7 racks for 6 brokers"),
        ({"weeks": 0}, "0 weeks"),
        ({"incidents": -1}, "-1 incidents"),
        ({"skew": 0.0}, "0.0 of the partitions"),
        ({"states": 3}, "3 states of 210 partitions"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(change: dict[str, int], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        make_fleet(replace(SMALL, **change), tmp_path / "fleet")  # type: ignore[arg-type]


def test_a_folder_that_has_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("here")
    with pytest.raises(UsageError, match="is not empty"):
        make_fleet(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_sizes_follow_the_share_of_the_largest_and_sum_up() -> None:
    fleet = FleetPlan(clusters=10, partitions=10_000, skew=0.7)
    sizes = [plan.partitions for plan in plans(fleet)]
    assert sum(sizes) == 10_000
    assert sizes[0] == 7_000
    assert sizes == sorted(sizes, reverse=True)
    assert len({plan.name for plan in plans(fleet)}) == len({plan.cluster_id for plan in plans(fleet)}) == 10


def test_every_software_comes_in_every_shape() -> None:
    pairs = {(plan.software.name, plan.shape) for plan in plans(FleetPlan(clusters=200, partitions=2_000))}
    assert len(pairs) == len(SOFTWARE) * len(Shape)


def test_a_disk_that_is_full_is_said_by_whoever_meets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(plan: ClusterPlan, out: Path) -> Truth:
        raise OSError(28, "No space left on device", str(out / plan.name))

    monkeypatch.setattr(making, "make_cluster", full)
    with pytest.raises(UsageError, match="payments-eu-west cannot be written: No space left on device"):
        make_fleet(replace(SMALL, clusters=1, partitions=5), tmp_path / "fleet")
