"""Copies of one log, looked at file by file and laid out, are read as `kelr history` reads them all at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.errors import KelrError
from kelr.fleet.laying import File, Layout, lay_out, spans_until
from kelr.fleet.looking import Looked
from kelr.fleet.readers import Look, UnreadablePieceError, batches_of, look, look_at
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.pieces import FileBytes
from tests.metadata_logs import START_MS, batch, checkpoint, node_directory, partition, shrunk, topic

LENGTH = 40


def log(seed: int = 0, *, older_from: int | None = None) -> list[tuple[int, int, bytes]]:
    """(offset, end, bytes) of the batches of a log; from some offset on they may be what an older leader wrote."""
    chance = random.Random(seed)
    made = [(0, 3, batch(0, topic(), partition(0), partition(1)))]
    while made[-1][1] < LENGTH:
        offset, count = made[-1][1], chance.randint(1, 3)
        epoch = 1 + offset // 15
        if older_from is not None and offset >= older_from:
            epoch = 1 + older_from // 15 - 1
        kinds = [
            ("NoOpRecord", 0, {})
            if chance.random() < 0.4
            else shrunk(chance.randint(0, 1), isr=chance.choice(((1,), (1, 2))))
            for _ in range(count)
        ]
        made.append((offset, offset + count, batch(offset, *kinds, epoch=epoch)))
    return made


def segments(batches: list[tuple[int, int, bytes]], chance: random.Random) -> dict[int, bytes]:
    """Cut into segments; some are missing at the beginning, the end or in between, and the last may be torn."""
    cut: dict[int, bytes] = {}
    base = 0
    for offset, _, data in batches:
        if offset and chance.random() < 0.2:
            base = offset
        cut[base] = cut.get(base, b"") + data
    bases = sorted(cut)
    kept = [one for one in bases if chance.random() < 0.8] or bases[-1:]
    if chance.random() < 0.3:
        cut[kept[-1]] = cut[kept[-1]][: -chance.randint(1, 60)]
    return {one: cut[one] for one in kept}


def checkpoints(batches: list[tuple[int, int, bytes]], chance: random.Random) -> dict[tuple[int, int], bytes]:
    ends = [end for _, end, _ in batches if chance.random() < 0.1]
    return {
        (end, 1 + (end - 1) // 15): checkpoint((topic(), partition(0), partition(1)), contained_ms=START_MS + end)
        for end in ends
    }


def looked(place: Path) -> list[File]:
    return [
        File(str(path), str(path.parent), look_at(str(path), FileBytes(str(path)), path))
        for path in sorted(place.rglob("*"))
        if path.suffix in {".log", ".checkpoint"}
    ]


def read(layout: Layout) -> list[tuple[int, int, object]]:
    return [one for found in batches_of(layout.pieces, ()) for one in flat(found)]


def flat(found: Any) -> Iterator[tuple[int, int, object]]:
    for place, record in enumerate(found.records):
        yield (found.checkpoint_end or 0, 0 if found.of_checkpoint else found.base_offset + place, record)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_read_of_any_copies_is_what_history_reads(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole = log(seed)
    for node in range(1, chance.randint(2, 4)):
        lost = chance.random() < 0.3 and node > 1
        batches = log(seed, older_from=chance.randint(16, 35)) if lost else whole
        node_directory(tmp_path / str(node), segments(batches, chance), checkpoints(whole, chance), node=node)
    layout = lay_out(looked(tmp_path))
    try:
        expected = [one for found in open_metadata_log([tmp_path]).batches() for one in flat(found)]
    except KelrError:
        assert layout.why_not is not None
        return
    assert read(layout) == expected
    assert layout.why_not is None


def test_a_first_look_is_kept_as_text(tmp_path: Path) -> None:
    node_directory(tmp_path, {0: b"".join(data for *_, data in log())})
    (file,) = looked(tmp_path)
    assert Looked.read(file.looked.written()) == file.looked
    assert (file.looked.first_offset, file.looked.end_offset) == (0, log()[-1][1])
    assert file.looked.epochs[0] == (1, 0)


def test_two_logs_under_one_cluster_id(tmp_path: Path) -> None:
    node_directory(tmp_path / "a", {0: b"".join(data for *_, data in log(1))})
    node_directory(tmp_path / "b", {0: b"".join(data for *_, data in log(2))})
    files = looked(tmp_path)
    layout = lay_out(files, seniority=[files[1].copy])
    assert {piece.path for piece in layout.pieces} == {files[1].path}
    assert list(layout.reasons) == [files[0].path]
    assert "another log" in layout.reasons[files[0].path]


def test_damaged_in_the_middle_is_read_up_to_there(tmp_path: Path) -> None:
    batches = log()
    data = bytearray(b"".join(data for *_, data in batches))
    place = sum(len(data) for *_, data in batches[:5])
    data[place + 70] ^= 1
    node_directory(tmp_path, {0: bytes(data)})
    (file,) = looked(tmp_path)
    assert file.looked.damaged
    assert file.looked.end_offset == batches[5][0]
    assert "does not match its checksum" in str(file.looked.odd)


def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    data = b"".join(data for *_, data in log())[:-5]
    node_directory(tmp_path, {0: data})
    (file,) = looked(tmp_path)
    assert not file.looked.damaged
    assert "it is read up to there" in str(file.looked.odd)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("00000000000000000000.log", b"no log at all, but long enough to be looked at as if it were one", "no segment"),
        ("00000000000000000000.log", b"", "it is empty"),
        ("00000000000000000007.log", log()[0][2], "by its name it begins at offset 7"),
        ("00000000000000000009-0000000001.checkpoint", log()[0][2], "does not begin with the header"),
        ("some.kelr", b"nonsense", "is not a snapshot file"),
        ("some.bin", b"", "it is empty"),
    ],
)
def test_what_is_no_input(tmp_path: Path, name: str, content: bytes, word: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = look_at(str(path), FileBytes(str(path)), path)
    assert word in str(found.odd)
    assert not found.readable_bytes


def test_spans_say_what_was_told_up_to_an_offset() -> None:
    spans = (("segment", 1, 0, 10), ("checkpoint", 2, 10, 20), ("segment", 2, 20, 30))
    assert spans_until(spans, 25) == (*spans[:2], ("segment", 2, 20, 25))
    assert spans_until(spans, 10) == spans[:1]


def test_files_of_a_store_are_read_as_others(tmp_path: Path) -> None:
    node_directory(tmp_path, {0: b"".join(data for *_, data in log(3))})
    layout = lay_out(looked(tmp_path))
    (piece,) = layout.pieces
    far = replace(piece, path=Path(piece.path).as_uri())
    assert [one for found in batches_of([far], ()) for one in flat(found)] == read(layout)
    assert look(Look(far.path, 0)) == (looked(tmp_path)[0].looked, None)
    for gone in (far, piece):
        away = replace(gone, path=gone.path.replace("00000.log", "00001.log"))
        assert look(Look(away.path, 0)) == (None, "it is gone")
        with pytest.raises(UnreadablePieceError, match="it cannot be read"):
            list(batches_of([away], ()))


def test_a_snapshot_of_a_store_is_put_on_a_disk_first(tmp_path: Path) -> None:
    path = tmp_path / "some.bin"
    path.write_bytes(b"nonsense")
    (here, _), (far, _) = look(Look(str(path), 8)), look(Look(path.as_uri(), 8))
    assert here is not None
    assert far == replace(here, odd=str(here.odd).replace(str(path), path.as_uri()))


def test_a_file_that_has_changed_since_it_was_looked_at_is_named(tmp_path: Path) -> None:
    node_directory(tmp_path, {0: b"".join(data for *_, data in log(3))})
    (piece,) = lay_out(looked(tmp_path)).pieces
    Path(piece.path).write_bytes(Path(piece.path).read_bytes()[:-5])
    with pytest.raises(UnreadablePieceError, match=r"it cannot be read from offset \d+ on: "):
        list(batches_of([piece], ()))
