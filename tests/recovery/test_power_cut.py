"""What a power cut leaves of the files that have to survive it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kelr.model.plan import AcceptedLoss
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Consented
from kelr.recovery.journal import journal_path
from kelr.recovery.places import cluster_directory
from tests.recovery.simulated import CLUSTER_ID, Killed, leaderless


CONSENT = Consented(AcceptedLoss(1000, unbounded=True))


class _Names:
    """The names of files that are on the disk: those that were in a directory when it was synced."""

    def __init__(self) -> None:
        self.synced: set[Path] = set()

    def fsync(self, descriptor: int) -> None:
        found = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if found.is_dir():
            self.synced.update(found.iterdir())


@pytest.mark.parametrize("killed_before", [False, True], ids=["new", "made-by-a-killed-run"])
def test_a_journal_has_its_name_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_before: bool
) -> None:
    """Its directories have theirs too, also where whoever made them was killed before they were on the disk."""
    state, names, world = tmp_path / "home" / "state", _Names(), leaderless()
    if killed_before:
        journal_path(state, CLUSTER_ID, "earlier", 1).parent.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", names.fsync)
    world.kill_at = 0
    with pytest.raises(Killed):
        apply_plan(world.plan(), **world.common(state), consented=CONSENT)
    (journal,) = (cluster_directory(state, CLUSTER_ID) / "journals").iterdir()
    assert {journal, state / "audit.jsonl", *journal.parents} - {*tmp_path.parents, tmp_path} <= names.synced
