"""A recovery under way, as far as its journal tells whoever watches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands.watch_reader import Recoveries
from kelr.model import ElectionRequest, ElectionType, TopicPartition
from kelr.model.plan import AcceptedLoss
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import find_journal
from kelr.recovery.resume import resume
from kelr.view.watch.head import recovery_text, recovery_words
from kelr.view.watch.words import plain_words
from tests.commands.conftest import Kelr
from tests.recovery.simulated import CLUSTER_ID, TOPIC, Killed, SimulatedSource, World, leaderless, watch_files

ONE = {TopicPartition(TOPIC, 0): ElectionRequest(ElectionType.DESIGNATION, 2)}
CONSENTED = Confirmation(AcceptedLoss(1000, unbounded=True))


def cut_short(world: World, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed before its election."""
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        world.kill_at = 6
        with pytest.raises(Killed):
            apply_plan(world.plan(ONE), **world.common(state), consented=CONSENTED)
    world.revive()


def test_its_progress_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    recoveries = Recoveries(0, tmp_path)
    assert recoveries(CLUSTER_ID) is None
    cut_short(world, tmp_path, monkeypatch)
    found = recoveries(CLUSTER_ID)
    assert found is not None
    assert (found.total, found.good, found.bad, found.ending, found.others) == (1, 0, 0, None, 0)
    assert found.who == "ada@laptop"
    assert recoveries("another-cluster") is None
    resume(find_journal(tmp_path, CLUSTER_ID, None), **world.common(tmp_path))
    ended = recoveries(CLUSTER_ID)
    assert ended is not None
    assert (ended.journal, ended.good, ended.bad, ended.ending) == (found.journal, 1, 0, "resumed")
    # Somebody who begins to watch afterwards does not hear of it.
    assert Recoveries(2**62, tmp_path)(CLUSTER_ID) is None


def test_what_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(leaderless(), tmp_path, monkeypatch)
    found = Recoveries(0, tmp_path)(CLUSTER_ID)
    assert found is not None
    known = replace(found, command="recover apply", total=40, good=10, bad=2, last_ms=0)
    words = "recover apply by ada@laptop: 12 of 40 elections have a result, 2 of them not as planned"
    assert recovery_words(known) == words
    assert plain_words(recovery_text(known, 65_000)) == f"{words}; its last step was 1 m 05 s ago"
    assert recovery_words(replace(known, bad=0, ending="applied")).endswith("have a result; ended (applied)")
    assert recovery_words(replace(known, total=0, good=0, bad=0)) == "recover apply by ada@laptop: clearing ELR"


def test_a_journal_that_cannot_be_read_ends_no_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(leaderless(), tmp_path, monkeypatch)
    path = find_journal(tmp_path, CLUSTER_ID, None)
    path.write_text('{"line": "nonsense"}\n')
    assert Recoveries(0, tmp_path)(CLUSTER_ID) is None


def test_lines_tell_of_it(kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = leaderless()
    cut_short(world, tmp_path / "state", monkeypatch)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: SimulatedSource(world))
    ran = kelr("watch", "orders:0", "--for", "2s", "--interval", "0.1", "-b", "kafka-1:9092")
    assert ran.code == 0, ran.err
    assert ran.out.count("0 of 1 elections have a result") == 1
