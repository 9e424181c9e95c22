"""What outlives a run is its owner's alone, whatever the umask, and whoever made it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.durable import AppendOnlyFile, make_directory
from kelr.recovery import places
from kelr.recovery.places import audit_file, cluster_directory, state_directory


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    """The permissions of everything below a directory."""
    found = [directory, *directory.rglob("*")]
    return {str(path.relative_to(directory.parent)): stat.S_IMODE(path.lstat().st_mode) for path in found}


def written(state: Path) -> None:
    for path in (audit_file(state), cluster_directory(state, "abc") / "journals" / "one.jsonl"):
        with AppendOnlyFile(path) as file:
            file.append({"line": "begin"})


def test_what_is_made_is_its_owners_alone(tmp_path: Path) -> None:
    state = tmp_path / "home" / "state"
    written(state)
    assert set(modes(tmp_path / "home").values()) == {0o700, 0o600}
    assert {path: mode for path, mode in modes(tmp_path / "home").items() if mode == 0o600} == {
        "home/state/audit.jsonl": 0o600,
        "home/state/clusters/abc/journals/one.jsonl": 0o600,
    }


def test_what_is_there_is_taken_from_others(tmp_path: Path) -> None:
    state = tmp_path / "state"
    written(state)
    for path in (state, *state.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    places._keep_from_others.cache_clear()
    assert state_directory({"KELR_STATE_DIR": str(state)}) == state
    assert set(modes(state).values()) == {0o700, 0o600}


@pytest.mark.parametrize("how", ["other things in it", "sticky", "a link"])
def test_what_is_shared_on_purpose_stays(tmp_path: Path, how: str) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    make_directory(state)
    elsewhere.mkdir(mode=0o777)
    if how == "other things in it":
        (state / "thesis.txt").touch()
    elif how == "a link":
        (state / "clusters").symlink_to(elsewhere)
    state.chmod(0o1777 if how == "sticky" else 0o777)
    before = stat.S_IMODE(state.stat().st_mode)
    places._keep_from_others.cache_clear()
    state_directory({"KELR_STATE_DIR": str(state)})
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o777
    assert stat.S_IMODE(state.stat().st_mode) == (0o700 if how == "a link" else before)
