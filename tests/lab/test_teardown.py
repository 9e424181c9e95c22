"""Ending a lab while one of its nodes is only just being started, or while somebody presses Ctrl-C."""

from __future__ import annotations

import os
import shutil
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from kelr.errors import LabError
from kelr.lab import processes, teardown
from kelr.lab.state import STATE_FILE
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
    (directory / "broker-1").mkdir(parents=True)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(teardown.shutil, "rmtree", refused)
    with pytest.raises(LabError, match="Permission denied"):
        take_down(directory, list, keep_data=False)


def test_a_deletion_that_is_cut_short_at_any_file_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removals = (os.unlink, os.rmdir)
    for cut in count():
        directory = tmp_path / str(cut)
        for name in (".lock", STATE_FILE, "broker-1/log", "broker-2/log", "output"):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).touch()
        left = iter(range(cut))

        def pressed(removal: Any, left: Any = left) -> Any:
            def remove(*place: Any, **where: Any) -> None:
                if next(left, None) is None:
                    raise KeyboardInterrupt
                removal(*place, **where)

            return remove

        with monkeypatch.context() as patched:
            for removal in removals:
                patched.setattr(os, removal.__name__, pressed(removal))
            try:
                take_down(directory, list, keep_data=False)
            except KeyboardInterrupt:
                assert (directory / STATE_FILE).exists() or not list(directory.iterdir())
            else:
                break
    assert cut > len(removals)
