"""lab.json, and who may have a directory."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.errors import LabError, UsageError
from kelr.lab import Lab, LabSpec, down
from kelr.lab.state import (
    STATE_FILE,
    LabState,
    ProcessRecord,
    claim_directory,
    default_directory,
    load_state,
    locked,
    save_state,
)

STATE = LabState(
    lab_id="lab",
    cluster_id="cluster",
    spec=LabSpec(brokers=2, min_isr=1),
    ports={100: 20100, 1: 20001, 2: 20002},
    java="/usr/bin/java",
    jars=("/cache/a.jar",),
    archive="/cache/classes/a.jsa",
    processes={1: ProcessRecord(12, 3.25)},
)


def test_a_state_survives_being_written_and_read(tmp_path: Path) -> None:
    claim_directory(tmp_path / "lab", STATE)
    assert load_state(tmp_path / "lab") == STATE
    later = replace(STATE, ready=True).with_process(2, ProcessRecord(13, 4.5))
    save_state(tmp_path / "lab", later)
    assert load_state(tmp_path / "lab") == later
    assert [file.name for file in (tmp_path / "lab").iterdir()] == [STATE_FILE]


def test_a_directory_has_one_lab(tmp_path: Path) -> None:
    claim_directory(tmp_path, STATE)
    with pytest.raises(LabError, match=r"a lab is in .* already") as caught:
        claim_directory(tmp_path, replace(STATE, lab_id="other"))
    assert "kelr lab down" in (caught.value.next_step or "")
    assert load_state(tmp_path).lab_id == "lab"


def test_somebody_elses_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all I have")
    with pytest.raises(LabError, match="is not empty and holds no lab"):
        claim_directory(tmp_path, STATE)
    with pytest.raises(LabError, match="there is no lab in"):
        down(tmp_path, force=True)
    assert (tmp_path / "thesis.txt").exists()


def test_a_path_that_kafka_cannot_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="splits paths at commas"):
        claim_directory(tmp_path / "a,b", STATE)
    assert not (tmp_path / "a,b").exists()


def test_a_disk_without_room_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        claim_directory(tmp_path / "lab", STATE)
    assert list((tmp_path / "lab").iterdir()) == []


def test_no_lab_says_how_to_start_one(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(LabError, match="there is no lab in") as caught:
            Lab.open(directory)
        assert caught.value.next_step == "start one with 'kelr lab up'"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "lab_id": "x", "spec": {"nonsense": 1}}', "\x00\xff"]
)
def test_a_damaged_file_is_named_and_can_be_forced_down(tmp_path: Path, text: str) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    (directory / STATE_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(LabError, match=rf"{STATE_FILE} is damaged") as caught:
        Lab.open(directory)
    assert "down --force" in (caught.value.next_step or "")
    with pytest.raises(LabError, match="is damaged"):
        down(directory)
    down(directory, force=True)
    assert not directory.exists()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text(json.dumps({"format": 7}))
    with pytest.raises(LabError, match="has format 7, this kelr reads 1"):
        load_state(tmp_path)


def test_where_labs_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert default_directory().name == "lab"
    monkeypatch.setenv("KELR_LAB_DIR", str(tmp_path))
    assert default_directory() == tmp_path


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"brokers": 0}, "a lab's brokers is 0, outside 1 to 9"),
        ({"brokers": 10}, "a lab's brokers is 10, outside 1 to 9"),
        ({"brokers": 1}, "a lab's min-isr is 2, outside 1 to 1"),
        ({"racks": 0}, "a lab's racks is 0, outside 1 to 9"),
        ({"heap_mb": 64}, "a lab's heap-mb is 64, outside 128 to 16384"),
        ({"controllers": 0}, "a lab's controllers is 0, outside 1 to 5"),
        ({"controllers": 6}, "a lab's controllers is 6, outside 1 to 5"),
    ],
)
def test_a_spec_out_of_range_is_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LabSpec(**wrong)  # type: ignore[arg-type]


def test_racks_are_dealt_round_robin() -> None:
    assert LabSpec(brokers=5, racks=2).rack_of == {1: "az1", 2: "az2", 3: "az1", 4: "az2", 5: "az1"}


def test_a_lock_that_another_process_keeps_is_waited_for_with_a_limit_and_its_holder_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.lab.state._LOCK_TIMEOUT_S", 0.0)
    waits = "has been changing the lab in"
    with locked(tmp_path):
        with pytest.raises(LabError, match=f"process {os.getpid()} {waits}"), locked(tmp_path):
            pass
        (tmp_path / ".lock").write_text("")
        with pytest.raises(LabError, match=f"another process {waits}"), locked(tmp_path):
            pass
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
