"""Lines that a power cut has torn. What else it leaves is in `tests.histories.test_files`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.durable import AppendOnlyFile
from kelr.errors import BadInputError
from kelr.model.plan import AcceptedLoss
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import Ending
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.resume import resume
from tests.recovery.simulated import CLUSTER_ID, World, leaderless

BLOCK = 4096
CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))


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
