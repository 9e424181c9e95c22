"""Starting a lab where something is missing: an error that says so, and nothing left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kelr.errors import LabError
from kelr.lab import Lab, LabSpec
from kelr.lab.java import Java


@pytest.fixture
def no_kafka(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Jars and Java are there as far as `Lab.up` can tell; Java does nothing but fail."""
    failing = tmp_path / "java"
    failing.write_text("#!/bin/sh\necho 'no such thing' >&2; exit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr("kelr.lab.cluster.obtain_jars", lambda *_arguments, **_options: (tmp_path / "kafka.jar",))
    monkeypatch.setattr("kelr.lab.cluster.find_java", lambda: Java(failing, 17, "PATH"))
    monkeypatch.setenv("KELR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "lab"


def test_a_disk_that_is_full_leaves_nothing(no_kafka: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(directory: Path, *_arguments: object) -> None:
        (directory / "broker-1").mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory / "broker-1" / "server.properties"))

    monkeypatch.setattr("kelr.lab.cluster.write_nodes", full)
    with pytest.raises(LabError, match=r"cannot use .*server\.properties for the lab \(No space left") as caught:
        Lab.up(LabSpec(), no_kafka)
    assert "--dir" in (caught.value.next_step or "")
    assert not no_kafka.exists()


def test_no_free_port_leaves_nothing(no_kafka: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.lab.processes.FIRST_PORT", 1)
    monkeypatch.setattr("kelr.lab.processes.LAST_PORT", 2)
    with pytest.raises(LabError, match="no 4 free ports"):
        Lab.up(LabSpec(), no_kafka)
    assert not no_kafka.exists()


def test_a_format_that_fails_shows_why_and_leaves_nothing(no_kafka: Path) -> None:
    with pytest.raises(LabError, match="formatting the controller failed: no such thing"):
        Lab.up(LabSpec(), no_kafka)
    assert not no_kafka.exists()


def test_an_unknown_version_is_refused_before_anything_is_done(no_kafka: Path) -> None:
    with pytest.raises(LabError, match=r"no locked jars for Kafka 3\.9\.0"):
        Lab.up(LabSpec(kafka="3.9.0"), no_kafka)
    assert not no_kafka.exists()


def test_an_owner_that_does_not_exist_is_refused(no_kafka: Path) -> None:
    with pytest.raises(LabError, match="no process 999999999 that could own the lab"):
        Lab.up(LabSpec(), no_kafka, owner_pid=999_999_999)
    assert not no_kafka.exists()
