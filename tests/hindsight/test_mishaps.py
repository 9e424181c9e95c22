"""What happens to the clusters of `make hindsight-real` besides their scripts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.incidents.chaos import random_chaos
from kelr.lab.disk import CLEAN_SHUTDOWN_FILE
from tests.hindsight.mishaps import ENDINGS, MISHAPS, Setting, change_marks, setting


def _of(number: int) -> Setting:
    brokers = 3 + number % 3
    return setting(random_chaos(f"966-{number}", brokers=brokers, partitions=12), brokers)


def test_a_seed_is_a_setting() -> None:
    assert _of(7) == _of(7)
    assert _of(7) != _of(10)


def test_thirty_rounds_have_every_mishap_and_every_number_of_replicas() -> None:
    rounds = [_of(number) for number in range(1, 31)]
    drawn = {mishap.name for one in rounds for due in one.mishaps.values() for mishap in due}
    assert drawn == set(MISHAPS)
    assert {len(one.chaos.layouts[0]) for one in rounds} == {1, 2, 3, 4}
    assert {one.elr for one in rounds} == {True, False}
    endings = {None if one.ending is None else one.ending.name for one in rounds}
    assert endings == {None, *ENDINGS}
    for of_each in ([one.compacted for one in rounds], [one.without_controller for one in rounds]):
        assert set(of_each) == {True, False}
    assert {one.changed_marks is None for one in rounds} == {True, False}
    assert all(len(set(layout)) == len(layout) for one in rounds for layout in one.chaos.layouts)


def test_marks_are_changed_where_there_are_any(tmp_path: Path) -> None:
    disks = {broker: tmp_path / str(broker) for broker in range(40)}
    mark = '{"version":0,"brokerEpoch":27}'
    for broker, disk in disks.items():
        disk.mkdir()
        if broker:
            (disk / CLEAN_SHUTDOWN_FILE).write_text(mark)
    change_marks(disks, 7)
    found = {file.read_text() if (file := disk / CLEAN_SHUTDOWN_FILE).exists() else None for disk in disks.values()}
    others = {'{"version": 0, "brokerEpoch": 26}', '{"version": 0, "brokerEpoch": -1}', mark[:-4]}
    assert found == {None, *others}
    assert not (disks[0] / CLEAN_SHUTDOWN_FILE).exists()
