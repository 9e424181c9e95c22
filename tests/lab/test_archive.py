"""The archive of Kafka's classes is a help, never a condition."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kelr.lab import cluster
from kelr.lab.cluster import archive_file, is_known, make_archive
from kelr.lab.java import Java
from kelr.lab.locks import Lock, LockedJar
from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.processes import all_of, lab_property

LOCK = Lock("1.2.3", (LockedJar("g:a:1", 1, "f" * 64),))


def java(directory: Path, script: str) -> Java:
    launcher = directory / "java"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    return Java(launcher, 17, "PATH")


def test_a_java_that_cannot_make_one_is_asked_only_once(tmp_path: Path) -> None:
    failing = java(tmp_path, "exit 1")
    archive = archive_file(tmp_path / "cache", LOCK, failing)
    assert not is_known(archive)
    make_archive(archive, failing, (), home=tmp_path / "home", marks=())
    assert is_known(archive)
    assert not archive.exists()
    assert not (tmp_path / "home").exists()


def test_what_java_wrote_is_kept_under_the_final_name(tmp_path: Path) -> None:
    lab_id = new_kafka_uuid()
    writing = java(
        tmp_path, 'for word in "$@"; do case $word in -XX:ArchiveClassesAtExit=*) echo x > "${word#*=}";; esac; done'
    )
    archive = archive_file(tmp_path / "cache", LOCK, writing)
    make_archive(archive, writing, (), home=tmp_path / "home", marks=(lab_property(lab_id),))
    assert archive.read_text() == "x\n"
    assert {file.suffix for file in archive.parent.iterdir()} == {".jsa", ".lock"}
    assert all_of(lab_id) == []


def test_a_machine_that_was_too_busy_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_TIMEOUT_S", 0.2)
    slow = java(tmp_path, "exec sleep 60")
    archive = archive_file(tmp_path / "cache", LOCK, slow)
    make_archive(archive, slow, (), home=tmp_path / "home", marks=())
    assert not is_known(archive)


def test_labs_that_begin_at_once_have_it_made_by_one_of_them(tmp_path: Path) -> None:
    times = tmp_path / "times"
    writing = java(
        tmp_path,
        f'for word in "$@"; do case $word in -XX:ArchiveClassesAtExit=*)'
        f' echo once >> {times}; sleep 0.5; echo x > "${{word#*=}}";; esac; done',
    )
    archive = archive_file(tmp_path / "cache", LOCK, writing)
    with ThreadPoolExecutor() as pool:
        for number in range(3):
            pool.submit(make_archive, archive, writing, (), home=tmp_path / f"home-{number}", marks=())
    assert archive.read_text() == "x\n"
    assert times.read_text() == "once\n"


def test_another_java_and_other_jars_have_another_archive(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = java(tmp_path / "a", ""), java(tmp_path / "b", "")
    others = Lock("1.2.3", (LockedJar("g:a:1", 1, "0" * 64),))
    assert len({archive_file(tmp_path, lock, one) for lock in (LOCK, others) for one in (first, second)}) == 4
