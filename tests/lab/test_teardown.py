"""Ending a lab while one of its nodes is only just being started."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest

from kelr.errors import LabError
from kelr.lab import processes, teardown
from kelr.lab.teardown import take_down


def _writer(directory: Path) -> psutil.Process:
    """A process that writes a new file into the directory again and again, as a broker does."""
    program = (
        "import pathlib, sys, time, itertools\n"
        "for number in itertools.count():\n"
        "    pathlib.Path(sys.argv[1]).mkdir(exist_ok=True)\n"
        "    pathlib.Path(sys.argv[1], str(number)).touch()\n"
        "    time.sleep(0.001)\n"
    )
    started = processes.spawn((sys.executable, "-c", program, str(directory / "data")), Path(os.devnull))
    while not (directory / "data").exists():
        time.sleep(0.001)
    return psutil.Process(started.pid)


def test_a_node_that_was_started_meanwhile_is_ended_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    node = _writer(directory)
    looked: list[int] = []

    def find() -> list[psutil.Process]:
        looked.append(len(looked))
        return [node] if len(looked) > 1 and node.is_running() and node.status() != psutil.STATUS_ZOMBIE else []

    deleted = shutil.rmtree

    def disturbed(path: Path) -> None:
        if node.is_running() and node.status() != psutil.STATUS_ZOMBIE:
            raise OSError(39, "Directory not empty", str(path / "data"))
        deleted(path)

    monkeypatch.setattr(teardown.shutil, "rmtree", disturbed)
    take_down(directory, find, keep_data=False)
    assert not directory.exists()
    assert not node.is_running() or node.status() == psutil.STATUS_ZOMBIE


def test_a_directory_that_cannot_be_deleted_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(teardown.shutil, "rmtree", refused)
    with pytest.raises(LabError, match="Permission denied"):
        take_down(directory, list, keep_data=False)
