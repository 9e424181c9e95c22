"""Reading a log directory by several processes: the same answers, whatever becomes of a worker."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kelr.sources.disk import processes
from tests.sources.disks import Disk
from tests.sources.test_disk import read


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "data")


def _split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes read what follows the first batch, however little it is."""
    monkeypatch.setattr(processes, "FOR_PROCESSES", 0)
    monkeypatch.setattr(processes, "WAITS_S", 1000)
    monkeypatch.setattr(processes, "cores", lambda: 2)


def _odd_disk(disk: Disk) -> Disk:
    """More replicas than one worker takes at a time, of every kind: whole, torn, damaged, without index, garbled."""
    for number in range(150):
        base = 10 if number % 7 == 0 else 0
        replica = disk.filled(f"orders-{number}", base=base)
        if base:
            replica.epochs((0, 0), (2, 30))  # what comes before is in remote storage
        log = replica.path / f"{base:020d}.log"
        content = log.read_bytes()
        if number % 7 == 1:
            log.write_bytes(content[:-9])
        elif number % 7 == 2:
            log.write_bytes(content[:-9] + bytes(9))
        elif number % 7 == 3:
            (replica.path / f"{0:020d}.index").unlink()
        elif number % 7 == 4:
            (replica.path / "partition.metadata").write_text("noise")
        elif number % 7 == 5:
            log.write_bytes(b"noise that is no batch" + content)
        elif number % 7 == 6:
            (replica.path / "leader-epoch-checkpoint").unlink()
    disk.high_watermarks(**{f"orders-{number}": number for number in range(0, 150, 2)})
    disk.checkpoint("log-start-offset-checkpoint", {f"orders-{number}": 5 for number in range(0, 150, 3)})
    return disk


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("missing", ["", "replication-offset-checkpoint"])
def test_processes_find_what_one_finds(disk: Disk, clean: bool, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _odd_disk(disk)
    if clean:
        disk.clean()
    if missing:
        (disk.path / missing).write_text("garbled")
    alone = read(disk)
    _split(monkeypatch)
    asked: list[int] = []
    told = processes._log_of
    monkeypatch.setattr(processes, "_log_of", lambda *given: (asked.append(1), told(*given))[1])
    assert read(disk) == alone
    assert len(asked) == 150 - processes.BATCH
    assert (alone.counts.unreadable > 0) == clean


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python", ""])
def test_what_a_worker_does_not_tell_is_read_all_the_same(
    disk: Disk, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _odd_disk(disk)
    alone = read(disk)
    _split(monkeypatch)
    monkeypatch.setattr(sys, "executable", program)
    assert read(disk) == alone


def test_no_worker_is_left_behind_where_the_reading_is_broken_off(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    _odd_disk(disk)
    _split(monkeypatch)
    started: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def kept(*given: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(begin(*given, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", kept)

    def broken_off(done: int, _total: int) -> None:
        if done > processes.BATCH:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(disk, progress=broken_off)
    assert len(started) == 2
    assert all(one.returncode is not None for one in started)  # killed, or at its end by itself


@pytest.mark.parametrize(
    ("waits", "threads"),
    [
        ([5, 5 + processes.BATCH], True),  # a cold disk
        ([5, 5], False),  # a machine that is busy with other things
        ([math.nan, math.nan], True),  # not told
    ],
)
def test_what_is_slow_goes_to_threads_only_where_it_waits(
    disk: Disk, waits: list[float], threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _odd_disk(disk)
    alone = read(disk)
    _split(monkeypatch)
    monkeypatch.setattr(processes, "WAITS_S", 0)
    monkeypatch.setattr(processes, "_waits", lambda: waits.pop(0))
    used: list[bool] = []
    by_threads = processes._by_threads
    monkeypatch.setattr(processes, "_by_threads", lambda *given: (used.append(True), by_threads(*given))[1])
    assert read(disk) == alone
    assert bool(used) == threads
