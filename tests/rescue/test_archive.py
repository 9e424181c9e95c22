"""Rescue files: what is saved is what is read, and a file that was changed is refused."""

from __future__ import annotations

import gc
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelr.errors import BadInputError, UsageError
from kelr.model import EpochEnd
from kelr.rescue import archive
from kelr.rescue.archive import open_dump
from kelr.rescue.manifest import HOLE, SavedEpoch
from kelr.sources.records.batches import BatchRun, StopKind
from kelr.sources.records.stream import Unread, UnreadKind
from tests.rescue.batches import batch, log, marker, partition
from tests.rescue.files import CLUSTER_ID, save, tail

PIECES = [batch(10, 5, epoch=1), batch(15, 3, epoch=1), batch(18, 2, epoch=2, producer=7, transactional=True)]
PIECES += [marker(20, 7, commit=True, epoch=2)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lost.kelr-rescue"
    save(path, [tail(PIECES, 10, 21, held=log(3, (1, 18), (2, 21)))])
    return path


def test_batches_are_kept_byte_for_byte(file: Path) -> None:
    with open_dump(file) as dump:
        (saved,) = dump.manifest.tails
        assert [piece.data for piece in dump.batches(saved)] == [piece.data for piece in PIECES]
        assert dump.manifest.cluster_id == CLUSTER_ID
        assert dump.manifest.plan_id == "0123456789ab"
        assert saved.whole
        assert (saved.batches, saved.records) == (4, 10)
        assert saved.epochs == (SavedEpoch(1, 10, 18), SavedEpoch(2, 18, 21))
        assert saved.lineage == (EpochEnd(1, 18), EpochEnd(2, 21))


@pytest.mark.parametrize("moment", ["begin", "finish", "close"])
def test_a_file_that_is_given_up_leaves_nothing_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Ctrl-C at any moment: a zip would try to end itself when it is collected, in a file that is closed by then."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    monkeypatch.setattr(archive.DumpWriter, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "lost.kelr-rescue", [tail(PIECES, 10, 21)])
    gc.collect()
    assert told == []
    assert list(tmp_path.iterdir()) == []


def test_inside_is_a_segment_named_by_its_first_offset(file: Path) -> None:
    with zipfile.ZipFile(file) as content:
        assert content.namelist() == ["orders-0/00000000000000000010.log", "manifest.json"]
        run = BatchRun(content.read("orders-0/00000000000000000010.log"))
    assert [header.base_offset for _, header in run] == [10, 15, 18, 20]
    assert run.stop is not None
    assert run.stop.kind is StopKind.END


def test_a_long_tail_comes_in_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SEGMENT_BYTES", 300)
    path = tmp_path / "long.kelr-rescue"
    pieces = [batch(number * 2, 2) for number in range(10)]
    (saved,) = save(path, [tail(pieces, 0, 20)]).tails
    assert len(saved.segments) > 2
    assert all(segment.size_bytes <= 300 for segment in saved.segments)
    with open_dump(path) as dump:
        assert [piece.data for piece in dump.batches(saved)] == [piece.data for piece in pieces]


def test_two_replicas_of_a_partition_lie_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "two.kelr-rescue"
    other = [batch(10, 4, epoch=3)]
    save(path, [tail(PIECES, 10, 21), tail(other, 10, 14, replica=1)])
    with open_dump(path) as dump:
        assert [(one.replica, one.segments[0].name.split("/")[0]) for one in dump.manifest.tails] == [
            (1, "orders-0"),
            (3, "orders-0.3"),
        ]
        assert [piece.data for piece in dump.batches(dump.manifest.tails[0])] == [other[0].data]


def test_what_could_not_be_read_is_said(tmp_path: Path) -> None:
    pieces = [
        batch(12, 2),
        Unread(14, 16, UnreadKind.CORRUPT, "the batch at offset 14 does not match its checksum"),
        batch(16, 2),
        batch(20, 2),
        Unread(22, None, UnreadKind.NO_ANSWER, "connection refused"),
    ]
    held = log(3, (0, 30), start=12)
    (saved,) = save(tmp_path / "gaps.kelr-rescue", [tail(pieces, 10, 30, held=held)]).tails
    assert [(gap.from_offset, gap.to_offset, gap.kind) for gap in saved.gaps] == [
        (10, 12, UnreadKind.GONE),
        (14, 16, UnreadKind.CORRUPT),
        (18, 20, HOLE),
        (22, 30, UnreadKind.NO_ANSWER),
    ]
    assert not saved.whole


def test_what_a_disk_lacks_since_it_is_in_remote_storage_is_said_so(tmp_path: Path) -> None:
    wanted, source = tail([batch(20, 2)], 10, 22, held=replace(log(3, (0, 22)), local_start=20))
    on_disk = replace(wanted, tiered=True), replace(source, how="log directory")
    (saved,) = save(tmp_path / "disk.kelr-rescue", [on_disk]).tails
    (gap,) = saved.gaps
    assert (gap.from_offset, gap.to_offset, gap.kind) == (10, 20, UnreadKind.GONE)
    assert gap.text == "it is in remote storage alone: the disk begins at offset 20"
    # Without a topic's config: leader epochs from before the first segment may also be those of one that is missing.
    (saved,) = save(tmp_path / "not-known.kelr-rescue", [(wanted, on_disk[1])]).tails
    assert [gap.text for gap in saved.gaps] == [
        "the disk begins at offset 20: what was before was deleted, moved to remote storage, or is missing"
    ]
    # A live broker reads there for whoever asks.
    (saved,) = save(tmp_path / "live.kelr-rescue", [(wanted, source)]).tails
    assert [gap.kind for gap in saved.gaps] == [HOLE]


def test_compaction_leaves_holes_that_are_none(tmp_path: Path) -> None:
    pieces = [batch(12, 2), batch(20, 2)]
    (saved,) = save(tmp_path / "c.kelr-rescue", [tail(pieces, 10, 22, compacted=True)]).tails
    assert saved.whole


def test_a_log_that_ends_early_is_not_whole(tmp_path: Path) -> None:
    (saved,) = save(tmp_path / "short.kelr-rescue", [tail([batch(10, 2)], 10, 20)]).tails
    assert [(gap.from_offset, gap.to_offset, gap.kind) for gap in saved.gaps] == [(12, 20, UnreadKind.GONE)]


def test_a_file_is_not_replaced_unasked(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        save(file, [tail(PIECES, 10, 21)])
    assert file.read_bytes() == before


def test_nothing_is_left_behind_where_it_fails(tmp_path: Path) -> None:
    def broken() -> Any:
        yield batch(10, 2)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        save(tmp_path / "half.kelr-rescue", [tail(broken(), 10, 20)])
    assert list(tmp_path.iterdir()) == []


def rewritten(file: Path, change: Callable[[dict[str, bytes]], None], **options: Any) -> Path:
    """The file with other members."""
    with zipfile.ZipFile(file) as content:
        members = {name: content.read(name) for name in content.namelist()}
    change(members)
    with zipfile.ZipFile(file, "w", **options) as content:
        for name, data in members.items():
            content.writestr(name, data)
    return file


def manifest_with(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        document = json.loads(members["manifest.json"])
        for path, value in changes.items():
            at: Any = document
            *parents, last = path.split("__")
            for name in parents:
                at = at[int(name) if name.isdigit() else name]
            at[last] = value
        members["manifest.json"] = json.dumps(document).encode()

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (manifest_with(version=2), "version 2 of the rescue format"),
        (manifest_with(format="kelr-plan"), "not that of a rescue file"),
        (manifest_with(tails__0__topic="../etc"), "no topic name"),
        (manifest_with(tails__0__partition="1"), "tails.0.partition"),
        (manifest_with(tails__0__from_offset=30), "offsets 30 to 21"),
        (manifest_with(tails__0__segments__0__name="../x/00000000000000000010.log"), "no segment of orders:0"),
        (manifest_with(tails__0__segments__0__records=11), "other batches than its manifest says"),
        (manifest_with(tails__0__segments__0__sha256="0" * 64), "SHA-256 differs"),
        (manifest_with(tails__0__segments__0__first_offset=11), "begins at offset 11"),
        (manifest_with(tails__0__surprise=1), "tails.0.surprise"),
        (manifest_with(tails=[]), "and not in both"),
        (lambda members: members.pop("manifest.json"), "has no manifest.json"),
        (lambda members: members.pop("orders-0/00000000000000000010.log"), "and not in both"),
        (lambda members: members.update({"extra.txt": b"x"}), "extra.txt"),
        (lambda members: members.update({"manifest.json": b"{" * 5000}), "not JSON"),
        (lambda members: members.update({"manifest.json": b"[" * 100_000}), "not JSON"),
    ],
)
def test_a_file_that_is_not_as_written_is_refused(
    file: Path, change: Callable[[dict[str, bytes]], None], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        open_dump(rewritten(file, change))


def test_a_compressed_zip_is_refused(file: Path) -> None:
    with pytest.raises(BadInputError, match="compressed or encrypted"):
        open_dump(rewritten(file, lambda _: None, compression=zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" + bytes(18)])
def test_other_files_are_no_rescue_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="no rescue file"):
        open_dump(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        open_dump(tmp_path / "none")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(file: Path, data: st.DataObject) -> None:
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    changed = file.with_name("changed")
    changed.write_bytes(content)
    try:
        dump = open_dump(changed)
    except BadInputError:
        return
    with dump, open_dump(file) as original:
        assert dump.manifest == original.manifest
        (saved,) = dump.manifest.tails
        assert [piece.data for piece in dump.batches(saved)] == [piece.data for piece in PIECES]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_a_file_that_was_cut_short_is_refused(file: Path, data: st.DataObject) -> None:
    content = file.read_bytes()
    cut = file.with_name("cut")
    cut.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(BadInputError):
        open_dump(cut)


def test_tails_of_one_replica_that_begin_alike_have_a_directory_each(tmp_path: Path) -> None:
    """As those of a replica that is in several log directories."""
    alike = [tail([batch(0, count)], 0, count) for count in (1, 2, 3)]
    save(tmp_path / "three.kelr-rescue", alike)
    with open_dump(tmp_path / "three.kelr-rescue") as dump:
        names = [segment.name for one in dump.manifest.tails for segment in one.segments]
        assert [one.records for one in dump.manifest.tails] == [1, 2, 3]
    assert names == [f"orders-0{more}/{0:020}.log" for more in ("", ".3", ".3.2")]


def test_tails_are_sorted_by_address(tmp_path: Path) -> None:
    path = tmp_path / "many.kelr-rescue"
    states = [partition("b", 1), partition("a", 10), partition("a", 2)]
    save(path, [tail([batch(0, 2)], 0, 2, state=state) for state in states])
    with open_dump(path) as dump:
        assert [str(one.address) for one in dump.manifest.tails] == ["a:2", "a:10", "b:1"]
