"""What a broker has set aside is renamed back: which directories, refusals, and a crash or an error at every call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kelr.errors import BadInputError, KelrError, PartlyDoneError, RefusedError, UsageError
from kelr.files import Files
from kelr.quorum.assess import Verdict
from kelr.quorum.restore import SetAside, find_set_aside, may_be_needed, rename_back
from tests.histories.files import Disk, Gone
from tests.quorum.nodes import CLUSTER, LATE, TOPIC
from tests.quorum.test_apply import At, Rescue, crash, fail, planned

FIRST, SECOND, STATE = Path("/data/1"), Path("/data/2"), Path("/state")
EARLY, OTHER = "early-0.a1-stray", "Z" * 21 + "Q"


@pytest.fixture(scope="module")
def rescue(tmp_path_factory: pytest.TempPathFactory) -> Rescue:
    """Its copy places early-0 and late-0 on broker 1, which was collected in `FIRST`."""
    made = planned(tmp_path_factory.mktemp("restored"))
    sources = {
        key: (archive, replace(node, directories=(str(FIRST),) if node.node == 1 else node.directories))
        for key, (archive, node) in made.collected.sources.items()
    }
    return replace(made, collected=replace(made.collected, sources=sources))


def broker(
    directories: Mapping[Path, Mapping[str, str | None]], *, node: int = 1, cluster: str = CLUSTER, seed: int = 0
) -> Disk:
    """A stopped broker's disk: of each log directory the replicas, with their topic ids."""
    disk = Disk(Random(seed))
    files = disk.process()
    properties = f"version=1\ncluster.id={cluster}\nnode.id={node}\n".encode()
    for path in (FIRST.parent, STATE, *directories):
        files.mkdir(path)
    for path, replicas in directories.items():
        write(files, path / "meta.properties", properties)
        for name, topic_id in replicas.items():
            files.mkdir(path / name)
            if topic_id is not None:
                write(files, path / name / "partition.metadata", f"version: 0\ntopic_id: {topic_id}\n".encode())
            files.fsync(files.open(path / name, os.O_RDONLY))
        files.fsync(files.open(path, os.O_RDONLY))
    for path in (FIRST.parent, Path("/")):
        files.fsync(files.open(path, os.O_RDONLY))
    files.exit()
    return disk


def write(files: Files, path: Path, content: bytes) -> None:
    descriptor = files.open(path, os.O_WRONLY | os.O_CREAT)
    files.write(descriptor, content)
    files.fsync(descriptor)


def found(rescue: Rescue, files: Files, *directories: Path, locked: bool | None = False) -> tuple[SetAside, ...]:
    return find_set_aside(rescue.plan, rescue.collected, directories, files, locked=lambda _path: locked)


def restore(rescue: Rescue, files: Files, *directories: Path) -> tuple[SetAside, ...]:
    aside = found(rescue, files, *directories)
    rename_back(rescue.plan, aside, directories, state_directory=STATE, now_ms=1, files=files)
    return aside


def names(files: Files, directory: Path) -> list[str]:
    return sorted(name for name in files.listdir(directory) if name != "meta.properties")


def test_what_the_copy_knows_gets_its_name_back(rescue: Rescue) -> None:
    files = broker({FIRST: {EARLY: TOPIC}, SECOND: {"late-0.b2-delete": LATE}}).process()
    assert [one.kept for one in restore(rescue, files, FIRST, SECOND)] == [None, None]
    assert (names(files, FIRST), names(files, SECOND)) == (["early-0"], ["late-0"])
    assert files.exists(FIRST / "early-0" / "partition.metadata")
    assert restore(rescue, files, FIRST, SECOND) == ()  # again: nothing is left to do


@pytest.mark.parametrize(
    ("replicas", "why"),
    [
        ({EARLY: OTHER}, f"the copy does not know topic id {OTHER}"),
        ({EARLY: LATE}, f"the copy does not know topic id {LATE}"),  # of another name there
        ({EARLY: None}, "it has no topic id"),
        ({EARLY: "x"}, "its second line gives no topic id"),
        ({"early-7.a1-stray": TOPIC}, "the copy places no replica here"),
        ({EARLY: TOPIC, "early-0": TOPIC}, "the broker has the replica beside it"),
        ({EARLY: TOPIC, "early-0.c3-delete": TOPIC}, "there are several of this replica"),
    ],
)
def test_what_it_does_not_know_or_is_there_is_left(
    rescue: Rescue, replicas: Mapping[str, str | None], why: str
) -> None:
    files = broker({FIRST: replicas}).process()
    kept = {one.kept for one in restore(rescue, files, FIRST)}
    assert len(kept) == 1
    assert why in str(kept.pop())
    assert names(files, FIRST) == sorted(replicas)


def test_a_replica_of_which_an_older_one_is_set_aside_comes_back(rescue: Rescue) -> None:
    files = broker({FIRST: {EARLY: TOPIC, "early-0.c3-stray": OTHER}}).process()
    assert [(one.kept is None, one.deleted) for one in restore(rescue, files, FIRST)] == [(True, False), (False, False)]
    assert names(files, FIRST) == ["early-0", "early-0.c3-stray"]


def test_a_replica_that_another_of_its_directories_holds_is_not_doubled(rescue: Rescue) -> None:
    files = broker({FIRST: {EARLY: TOPIC}, SECOND: {"early-0": TOPIC}}).process()
    assert [one.kept for one in restore(rescue, files, FIRST, SECOND)] == ["the broker has the replica beside it"]


@pytest.mark.parametrize(
    ("disk", "directories", "locked", "error", "words"),
    [
        ({"cluster": "x" * 22}, (FIRST,), False, RefusedError, "of node 1 of cluster x"),
        ({}, (FIRST,), True, RefusedError, "holds the lock of /data/1"),
        ({}, (FIRST,), None, RefusedError, "holds the lock of /data/1"),
        ({}, (SECOND,), False, RefusedError, "/data/1 is a directory of broker 1, too"),
        ({}, (Path("/data/3"),), False, BadInputError, "cannot be read"),
        ({}, (), False, UsageError, "directories of nodes"),
    ],
)
def test_whose_directories_they_are_is_checked(
    rescue: Rescue,
    disk: Mapping[str, str],
    directories: tuple[Path, ...],
    *,
    locked: bool | None,
    error: type[KelrError],
    words: str,
) -> None:
    files = broker({FIRST: {EARLY: TOPIC}, SECOND: {}}, cluster=disk.get("cluster", CLUSTER)).process()
    with pytest.raises(error, match=words):
        found(rescue, files, *directories, locked=locked)


@pytest.mark.parametrize(
    ("name", "verdict", "needed"),
    [
        ("early-0.c3-delete", Verdict.PROVED, False),
        ("early-0.c3-delete", Verdict.LOWER_BOUND, True),
        ("early-0.c3-delete", Verdict.STALE, True),
        ("early-0.c3-stray", Verdict.PROVED, True),
    ],
)
def test_a_topic_was_deleted_where_the_copy_that_does_not_know_it_is_proved(
    rescue: Rescue, name: str, verdict: Verdict, *, needed: bool
) -> None:
    left = found(rescue, broker({FIRST: {name: OTHER, "late-0.b2-delete": LATE}}).process(), FIRST)
    assert [one.replica for one in may_be_needed(left, verdict)] == ["early-0"] * needed


def test_another_brokers_replica_is_left(rescue: Rescue) -> None:
    files = broker({FIRST: {EARLY: TOPIC}}, node=2).process()
    assert [one.kept for one in found(rescue, files, FIRST)] == ["the copy places no replica here"]


BOTH: Mapping[Path, Mapping[str, str | None]] = {
    FIRST: {EARLY: TOPIC, "late-0.d4-stray": LATE},
    SECOND: {"late-7.d5-stray": LATE},
}


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_at_any_call_loses_no_replica_and_the_same_command_does_the_rest(
    rescue: Rescue, power_cut: bool
) -> None:
    number = finished = 0
    while not finished:
        number += 1
        for seed in range(4 if power_cut else 1):
            disk = broker(BOTH, seed=seed)
            seam = At(number, crash)
            process = disk.process(seam)
            seam.process = process
            try:
                restore(rescue, process, FIRST, SECOND)
                finished += 1
            except Gone:
                pass
            if power_cut:
                disk.power_cut()
            again = disk.process()
            there = names(again, FIRST)
            assert [name.partition(".")[0] for name in there] == ["early-0", "late-0"], number
            restore(rescue, again, FIRST, SECOND)
            disk.power_cut()
            after = disk.process()
            assert names(after, FIRST) == ["early-0", "late-0"], number
            assert names(after, SECOND) == ["late-7.d5-stray"]
            assert all(after.exists(FIRST / name / "partition.metadata") for name in ("early-0", "late-0"))
    assert number > 20


def test_an_error_of_the_disk_at_any_call_is_told_and_the_same_command_does_the_rest(rescue: Rescue) -> None:
    number, failed = 0, 0
    while True:
        number += 1
        disk = broker(BOTH)
        seam = At(number, fail, frozenset({"open", "write", "fsync", "replace"}))
        try:
            restore(rescue, disk.process(seam), FIRST, SECOND)
        except (PartlyDoneError, UsageError, BadInputError):
            failed += 1
        if seam.count < number:
            break
        again = disk.process()
        restore(rescue, again, FIRST, SECOND)
        assert names(again, FIRST) == ["early-0", "late-0"]
    assert failed > 10
