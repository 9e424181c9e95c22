"""The file system in memory behaves as the real one, until the power is cut; and what kelr writes survives that."""

from __future__ import annotations

import ast
import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kelr
from kelr import durable
from kelr.durable import AppendOnlyFile, make_directory, read_lines, whole_file
from kelr.errors import RefusedError, UsageError
from kelr.files import FILES, Files
from kelr.model.plan import AcceptedLoss
from kelr.recovery import audit
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.plan_file import read_plan, write_plan
from kelr.recovery.resume import resume
from kelr.recovery.status import status
from kelr.sources.ground import Ground
from tests.histories.files import BLOCK, Disk, Gone, MemoryFiles, Seam
from tests.properties import examples
from tests.recovery.simulated import CLUSTER_ID, LAYOUTS, Killed, SimulatedGround, SimulatedSource, World, leaderless

STATE = Path("/of/the/tests/alone/kelr")
CONSENT = Confirmation(AcceptedLoss(1000, unbounded=True))

# As the real one: the same calls in both, the same answers and errors.

NAMES = ("a", "b", "d", "d/a", "d/e", "d/e/a", "a/b")
NAME = st.sampled_from(NAMES)
_NONE = 100_000
"""No descriptor."""
NUMBER = st.integers(0, 5)
"""Of the descriptors that were opened, counted from the first."""
FLAGS = st.sampled_from(
    (
        os.O_RDONLY,
        os.O_WRONLY,
        os.O_RDWR,
        os.O_RDWR | os.O_CREAT,
        os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        os.O_RDWR | os.O_CREAT | os.O_APPEND,
    )
)
SIZE = st.integers(0, 3 * BLOCK)
CONTENT = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 255), SIZE)
CALL = st.one_of(
    st.tuples(st.just("open"), NAME, FLAGS, st.sampled_from((0o600, 0o666))),
    st.tuples(st.just("close"), NUMBER),
    st.tuples(st.just("write"), NUMBER, CONTENT),
    st.tuples(st.just("pwrite"), NUMBER, CONTENT, SIZE),
    st.tuples(st.just("pread"), NUMBER, SIZE, SIZE),
    st.tuples(st.just("ftruncate"), NUMBER, SIZE),
    st.tuples(st.just("fsync"), NUMBER),
    st.tuples(st.just("flock"), NUMBER),
    st.tuples(st.just("fstat"), NUMBER),
    st.tuples(st.just("stat"), NAME),
    st.tuples(st.just("listdir"), NAME),
    st.tuples(st.just("mkdir"), NAME, st.sampled_from((0o700, 0o777))),
    st.tuples(st.just("link"), NAME, NAME),
    st.tuples(st.just("replace"), st.sampled_from(("a", "b")), st.sampled_from(("a", "b", "d"))),
    st.tuples(st.just("unlink"), NAME),
    st.tuples(st.just("exists"), NAME),
    st.tuples(st.just("is_file"), NAME),
    st.tuples(st.just("reader"), NAME),
)


class _Played:
    """A file system on which calls are tried: what came of each."""

    def __init__(self, files: Files, root: Path) -> None:
        self._files, self._root = files, root
        self.descriptors: list[int] = []
        make_directory(root, files)

    def tried(self, call: str, *given: Any) -> object:
        arguments = [self._root / one if isinstance(one, str) else one for one in given]
        if isinstance(given[0], int):
            arguments[0] = self.descriptors[given[0]] if given[0] < len(self.descriptors) else _NONE
        if call == "flock":
            arguments.append(fcntl.LOCK_EX | fcntl.LOCK_NB)
        if call == "replace" and self._is_directory(arguments[0]):
            return "nobody renames directories"
        try:
            found = getattr(self._files, call)(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        if call == "close":
            self.descriptors[given[0]] = _NONE  # the real ones have their numbers again
        return self._told(call, found)

    def _told(self, call: str, found: Any) -> object:
        if call == "open":
            self.descriptors.append(found)
            return "opened"
        if call in {"stat", "fstat"}:
            is_directory = found.st_mode & 0o40000
            return oct(found.st_mode), *(() if is_directory else (found.st_size, found.st_nlink))
        if call == "listdir":
            return sorted(found)
        if call == "reader":
            with found:
                begin = found.readline()
                return begin, found.seek(0, os.SEEK_END), found.seek(len(begin) // 2), found.read()
        return found

    def _is_directory(self, path: Path) -> bool:
        return self._files.exists(path) and not self._files.is_file(path)


@examples(500)
@given(st.lists(CALL, max_size=40))
def test_it_answers_as_the_real_one(calls: list[tuple[Any, ...]]) -> None:
    umask = os.umask(Disk.umask)
    with tempfile.TemporaryDirectory() as root:
        real, memory = (_Played(files, Path(root)) for files in (FILES, Disk(Random(0)).process()))
        try:
            for call in calls:
                assert memory.tried(*call) == real.tried(*call), call
            for look in [(call, name) for call in ("stat", "listdir", "reader") for name in NAMES]:
                assert memory.tried(*look) == real.tried(*look), look
        finally:
            os.umask(umask)
            for number, _ in enumerate(real.descriptors):
                real.tried("close", number)


# What a power cut leaves.


def _cuts(lines: bytes, synced: int, *, blocks: bool, seeds: int = 300) -> set[bytes]:
    """What is found of a file of these bytes of which so many were synced."""
    found = set()
    for seed in range(seeds):
        disk = Disk(Random(seed), blocks=blocks)
        files = disk.process()
        _put(files, Path("/file"), lines[:synced])
        descriptor = files.open(Path("/file"), os.O_WRONLY | os.O_APPEND)
        for at in range(synced, len(lines), 1000):
            files.write(descriptor, lines[at : min(at + 1000, len(lines))])
        disk.power_cut()
        found.add(_read(disk.process(), Path("/file")))
    return found


def _put(files: MemoryFiles, path: Path, content: bytes) -> None:
    """Write a file, with all that leads to it."""
    make_directory(path.parent, files)
    with files.writer(files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)) as file:
        file.write(content)
        file.flush()
        files.fsync(file.fileno())
    for directory in path.parents:
        descriptor = files.open(directory, os.O_RDONLY)
        files.fsync(descriptor)
        files.close(descriptor)


def _read(files: MemoryFiles, path: Path) -> bytes:
    with files.reader(path) as file:
        return file.read()


def test_a_file_keeps_any_beginning_of_what_was_not_synced() -> None:
    lines = Random(1).randbytes(3000)
    found = _cuts(lines, 500, blocks=False)
    assert all(lines.startswith(one) and len(one) >= 500 for one in found)
    assert {lines, lines[:500]} < found
    assert len(found) > 100


def test_a_file_keeps_any_blocks_of_what_was_not_synced() -> None:
    lines = Random(1).randbytes(3 * BLOCK)
    found = _cuts(lines, 500, blocks=True)
    old = lines[:500] + bytes(3 * BLOCK - 500)
    whole = {one for one in found if len(one) == len(lines)}
    kept = {tuple(one[at : at + BLOCK] == lines[at : at + BLOCK] for at in range(0, len(one), BLOCK)) for one in whole}
    assert len(kept) == 8
    for one in found:
        assert len(one) >= 500
        for at in range(0, len(one), BLOCK):
            assert one[at : at + BLOCK] in {text[at : min(at + BLOCK, len(one))] for text in (lines, old)}


def test_a_name_is_there_once_its_directories_are_synced() -> None:
    kept = set()
    for seed in range(100):
        disk = Disk(Random(seed))
        files = disk.process()
        _put(files, Path("/d/synced"), b"x")
        for path in (Path("/d/file"), Path("/e")):
            with files.writer(files.open(path, os.O_WRONLY | os.O_CREAT)) as file:
                file.write(b"y")
                file.flush()
                files.fsync(file.fileno())
        files.link(Path("/d/file"), Path("/d/linked"))
        files.unlink(Path("/d/file"))
        disk.power_cut()
        kept.add((*disk.process().listdir(Path("/")), *sorted(disk.process().listdir(Path("/d")))))
    assert {name for one in kept for name in one} == {"d", "e", "synced", "file", "linked"}
    assert all({"d", "synced"} <= set(one) for one in kept)
    assert len(kept) == 8


def test_what_an_fsync_failed_to_write_is_not_written_by_the_next() -> None:
    lost = 0
    for seed in range(20):
        disk, failing = Disk(Random(seed)), [True]

        def seam(call: str, _path: Path, failing: list[bool] = failing) -> None:
            if call == "fsync" and failing.pop():
                raise OSError(errno.EIO, "Input/output error")

        files = disk.process()
        _put(files, Path("/file"), b"")
        files = disk.process(seam)
        descriptor = files.open(Path("/file"), os.O_WRONLY)
        files.write(descriptor, b"first")
        with pytest.raises(OSError, match="Input/output"):
            files.fsync(descriptor)
        failing.append(False)
        files.write(descriptor, b"second")
        files.fsync(descriptor)
        assert _read(files, Path("/file")) == b"firstsecond"
        disk.power_cut()
        found = _read(disk.process(), Path("/file"))
        assert found.endswith(b"second")
        lost += found != b"firstsecond"
    assert lost > 5


def test_a_full_disk_takes_what_it_has_room_for() -> None:
    disk = Disk(Random(0), capacity=1000)
    with AppendOnlyFile(STATE / "file", disk.process()) as file:
        file.append({"text": "x" * 900})
        with pytest.raises(UsageError, match="No space left on device"):
            file.append({"text": "x" * 900})
        file.append({"text": "x" * 50})
    assert [len(line["text"]) for _, line in read_lines(STATE / "file", "file", disk.process())] == [900, 50]


def test_a_short_write_is_gone_on_with() -> None:
    disk = Disk(Random(0))
    with AppendOnlyFile(STATE / "file", disk.process(lambda call, _path: 3 if call == "write" else None)) as file:
        file.append({"text": "longer"})
    assert [line for _, line in read_lines(STATE / "file", "file", disk.process())] == [{"text": "longer"}]


def test_a_lock_goes_with_its_process() -> None:
    disk = Disk(Random(0))
    one, other = disk.process(), disk.process()
    AppendOnlyFile(STATE / "lock", one)
    with pytest.raises(RefusedError, match="another kelr is at work"):
        AppendOnlyFile(STATE / "lock", other)
    one.exit()
    with AppendOnlyFile(STATE / "lock", other), pytest.raises(RefusedError):
        AppendOnlyFile(STATE / "lock", disk.process())
    AppendOnlyFile(STATE / "lock", disk.process()).close()
    with pytest.raises(Gone):
        one.exists(STATE)
    disk.power_cut()
    with pytest.raises(Gone):
        other.exists(STATE)


# What kelr writes.


class _OnDisk(SimulatedGround):
    def __init__(self, world: World, files: Files) -> None:
        super().__init__(world)
        self.files = files


def _common(world: World, files: Files) -> dict[str, Any]:
    return world.common(STATE) | {"ground": _OnDisk(world, files)}


def _cut_at(call: str, path: str) -> Seam:
    """The power goes right before the first such call on a path that ends so."""

    def seam(called: str, at: Path) -> None:
        if called == call and at.match(path):
            raise Killed

    return seam


def _crashed(seed: int, seam: Seam | None = None, *, blocks: bool = False, kill_at: int | None = None) -> Disk:
    """A disk after a power cut while a plan was applied."""
    disk, world = Disk(Random(seed), blocks=blocks), leaderless()
    world.kill_at = kill_at
    with pytest.raises(Killed):
        apply_plan(world.plan(), **_common(world, disk.process(*filter(None, [seam]))), consented=CONSENT)
    disk.power_cut()
    return disk


def _journals_after_the_first_request(seeds: int) -> Iterator[tuple[Path, ...]]:
    for seed in range(seeds):
        disk = _crashed(seed, kill_at=0)
        yield journal_files(STATE, CLUSTER_ID, disk.process())


def test_a_power_cut_takes_no_journal_of_what_was_asked() -> None:
    assert all(len(journals) == 1 for journals in _journals_after_the_first_request(30))


def test_it_would_if_the_names_were_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_sync_names", lambda _path, _files: None)
    assert not all(_journals_after_the_first_request(30))


def _first_lines_that_are_torn(seeds: int) -> Iterator[Disk]:
    """After a power cut right before the first line of a journal was on the disk, its name and length being there."""
    for seed in range(seeds):
        disk = _crashed(seed, _cut_at("fsync", "journals/*.jsonl"), blocks=True)
        (journal,) = journal_files(STATE, CLUSTER_ID, disk.process())
        content = _read(disk.process(), journal)
        if content.endswith(b"\n") and b"\0" in content:
            yield disk


def test_a_first_line_without_an_early_block_stops_nothing() -> None:
    torn = 0
    for disk in _first_lines_that_are_torn(100):
        torn += 1
        world, files = leaderless(), disk.process()
        assert open_journals(STATE, CLUSTER_ID, files) == ()
        assert status(SimulatedSource(world), STATE, files=files).clean
        assert all(one.good for one in apply_plan(world.plan(), **_common(world, files), consented=CONSENT))
    assert torn > 3


def test_it_would_if_zeros_did_not_tell_of_a_torn_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.recovery.journal_store.is_torn", lambda line: not line.endswith(b"\n"))
    monkeypatch.setattr(durable, "is_torn", lambda line: not line.endswith(b"\n"))
    stopped = 0
    for disk in _first_lines_that_are_torn(100):
        with pytest.raises(kelr.errors.BadInputError, match="line 1: garbled journal"):
            open_journals(STATE, CLUSTER_ID, disk.process())
        stopped += 1
    assert stopped > 3


@pytest.mark.parametrize("blocks", [False, True])
def test_a_run_goes_on_after_a_power_cut_at_any_call(blocks: bool) -> None:
    """Nothing of it touches the real disk."""
    for calls in range(0, 400, 7):
        disk, world = Disk(Random(calls), blocks=blocks), leaderless()
        try:
            apply_plan(world.plan(), **_common(world, disk.process(_countdown(calls))), consented=CONSENT)
            break
        except Killed:
            disk.power_cut()
        files = disk.process()
        for journal in open_journals(STATE, CLUSTER_ID, files):
            assert resume(journal.path, **_common(world, files)).good
            assert read_journal(journal.path, files).ending is not None
        assert [world.state(number).replicas for number in range(4)] == list(LAYOUTS)
        elected = [number for number in range(4) if world.state(number).leader == 2]
        assert {line.partition for line in audit.read(STATE, topics=["orders"], files=files)} >= set(elected)
    assert calls > 100
    assert not Path("/of").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_was_written_whole_is_there_after_a_power_cut(overwrite: bool) -> None:
    plan, path = leaderless().plan(), Path("/plans/p.json")
    for seed in range(30):
        disk = Disk(Random(seed))
        _put(disk.process(), path if overwrite else path.with_name("other"), b"old")
        write_plan(plan, path, overwrite=overwrite, files=disk.process())
        disk.power_cut()
        assert read_plan(path, disk.process()) == plan


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_whole_or_not_there_whenever_the_power_goes(overwrite: bool) -> None:
    calls = 0
    while True:
        disk = Disk(Random(calls))
        _put(disk.process(), Path("/plans/p" if overwrite else "/plans/other"), b"old")
        files = disk.process(_countdown(calls))
        try:
            with whole_file(Path("/plans/p"), "plan", overwrite=overwrite, files=files) as file:
                file.write(b"new" * BLOCK)
            break
        except Killed:
            disk.power_cut()
        files = disk.process()
        found = _read(files, Path("/plans/p")) if files.exists(Path("/plans/p")) else None
        assert found in {b"old" if overwrite else None, b"new" * BLOCK}
        calls += 1
    assert calls > 8


def _countdown(calls: int) -> Callable[[str, Path], None]:
    left = [calls]

    def seam(_call: str, _path: Path) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1

    return seam


def test_nothing_that_survives_a_crash_goes_around_the_files_of_its_ground() -> None:
    """Ruff bans what `os` has; here, what has no module: `open`, and what `Path` does itself."""
    root = Path(kelr.__file__).parent
    banned = {"read_text", "read_bytes", "write_text", "write_bytes", "touch", "iterdir", "glob", "rglob", "is_dir"}
    of_files = {"exists", "is_file", "stat", "mkdir", "unlink"}
    found = []
    for path in (root / "durable.py", *(root / "recovery").glob("*.py"), *(root / "rescue").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name, owner = _called(node.func)
            if name in banned or (name == "open" and owner == "") or (name in of_files and not owner.endswith("files")):
                found.append(f"{path.relative_to(root)}:{node.lineno} {owner}.{name}")
    assert not found


def _called(function: ast.expr) -> tuple[str, str]:
    if isinstance(function, ast.Attribute):
        return function.attr, ast.unparse(function.value)
    return getattr(function, "id", ""), ""


def test_the_machines_own_files_are_the_real_ones() -> None:
    assert Ground().files is FILES
