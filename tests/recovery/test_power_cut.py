"""What a power cut leaves of the files that have to survive it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kelr.durable import AppendOnlyFile, read_lines
from kelr.errors import BadInputError
from kelr.files import FILES
from kelr.model.plan import AcceptedLoss
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Consented
from kelr.recovery.journal import Ending, journal_path
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.places import cluster_directory
from kelr.recovery.resume import resume
from kelr.recovery.shelf import journal_files, open_journals
from kelr.recovery.status import status
from tests.recovery.simulated import CLUSTER_ID, Killed, SimulatedSource, World, leaderless

BLOCK = 4096
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
    monkeypatch.setattr(FILES, "fsync", names.fsync)
    world.kill_at = 0
    with pytest.raises(Killed):
        apply_plan(world.plan(), **world.common(state), consented=CONSENT)
    (journal,) = (cluster_directory(state, CLUSTER_ID) / "journals").iterdir()
    assert {journal, state / "audit.jsonl", *journal.parents} - {*tmp_path.parents, tmp_path} <= names.synced


# Blocks of the last line that the disk does not have: the file has its length, and zeros there.


def _of_a_whole_run(state: Path, world: World) -> tuple[Path, bytes]:
    """A journal with its lines, of a plan that is larger than a block."""
    apply_plan(world.plan(), **world.common(state), consented=CONSENT)
    (journal,) = journal_files(state, CLUSTER_ID)
    written = journal.read_bytes()
    assert len(written.splitlines()[0]) > 2 * BLOCK
    return journal, written


def _without_block(lines: bytes, begin: int, block: int) -> bytes:
    """These lines, where the last one begins at `begin` and one of its blocks is missing."""
    at = max(begin, (begin // BLOCK + block) * BLOCK)
    end = min(len(lines), (at // BLOCK + 1) * BLOCK)
    return lines[:at] + bytes(end - at) + lines[end:]


@pytest.mark.parametrize("block", [0, 1])
def test_a_first_line_that_lacks_a_block_stops_nothing(tmp_path: Path, block: int) -> None:
    """Nothing was asked of the cluster before it was whole."""
    world = leaderless()
    _, written = _of_a_whole_run(tmp_path / "whole", world)
    path = journal_path(tmp_path, CLUSTER_ID, "torn", 1)
    path.parent.mkdir(parents=True)
    first = written[: written.index(b"\n") + 1]
    path.write_bytes(_without_block(first, 0, block))
    world = leaderless()
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert status(SimulatedSource(world), tmp_path).clean
    with pytest.raises(BadInputError, match="nothing was asked of the cluster"):
        resume(path, **world.common(tmp_path))
    assert all(one.good for one in apply_plan(world.plan(), **world.common(tmp_path), consented=CONSENT))


def test_a_last_line_that_lacks_a_block_does_not_count(tmp_path: Path) -> None:
    """It is cut off before the next line is written. A request that it tells of was not sent."""
    world = leaderless()
    journal, written = _of_a_whole_run(tmp_path, world)
    lines = written.splitlines(keepends=True)
    begun = b"".join(lines[:1])
    journal.write_bytes(_without_block(begun + lines[1].replace(b'"line"', b" " * BLOCK + b'"line"'), len(begun), 1))
    assert read_journal(journal).partitions == {}
    world = leaderless()
    assert resume(journal, **world.common(tmp_path)).good
    assert {world.state(number).leader for number in range(4)} == {2}
    assert read_journal(journal).ending is Ending.RESUMED


@pytest.mark.parametrize("line", [0, 1])
def test_zeros_in_a_line_before_the_last_are_no_power_cut(tmp_path: Path, line: int) -> None:
    """That line was on the disk: what happened to it since is not known, and neither what it said."""
    world = leaderless()
    journal, written = _of_a_whole_run(tmp_path, world)
    lines = written.splitlines(keepends=True)
    lines[line] = lines[line][:20] + bytes(20) + lines[line][40:]
    journal.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(BadInputError, match=f"line {line + 1}: garbled journal"):
        open_journals(tmp_path, CLUSTER_ID)


@pytest.mark.parametrize("length", [1, 100, 65_536, 200_000])
def test_only_the_last_line_is_cut(tmp_path: Path, length: int) -> None:
    path = tmp_path / "lines.jsonl"
    with AppendOnlyFile(path) as file:
        file.append({"first": "x" * length})
        file.append({"second": "y" * length})
    whole = path.read_bytes()
    AppendOnlyFile(path).close()
    assert path.read_bytes() == whole
    first = whole.splitlines(keepends=True)[0]
    for torn in (b"{", b"z" * length, bytes(length), bytes(length) + b'"}\n'):
        path.write_bytes(first + torn)
        AppendOnlyFile(path).close()
        assert path.read_bytes() == first


def test_of_many_lines_that_are_written_together_the_last_alone_can_be_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut at any moment, with zeros in any block that the disk did not get: the lines before it are there, and
    the next kelr writes on."""
    path, sync = tmp_path / "audit.jsonl", os.fsync
    synced, cuts = [0], list[tuple[int, bytes]]()

    def fsync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            cuts.append((synced[0], path.read_bytes()))
            synced[0] = len(cuts[-1][1])
        sync(descriptor)

    monkeypatch.setattr(FILES, "fsync", fsync)
    with AppendOnlyFile(path) as file:
        file.append(*({"number": number, "text": "x" * 3 * BLOCK} for number in range(4)))
    monkeypatch.undo()
    for since, lines in cuts:
        whole = lines[:since].count(b"\n")
        for begin in range(since - since % BLOCK, len(lines), BLOCK):
            lost = max(begin, since), min(begin + BLOCK, len(lines))
            path.write_bytes(lines[: lost[0]] + bytes(lost[1] - lost[0]) + lines[lost[1] :])
            with AppendOnlyFile(path) as file:
                file.append({"number": "next"})
            told = [line["number"] for _, line in read_lines(path, "audit log")]
            assert told == [*range(whole), "next"]
    assert len(cuts) == 4
