"""The metadata log out of directories, files and bundles: whatever is given, what is told is right, or refused."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import BadInputError, UsageError
from kelr.model import TopicPartition
from kelr.replay.image import MetadataImage
from kelr.sources.metadata_log import bundles, pieces
from kelr.sources.metadata_log.log import MetadataLog, open_metadata_log
from kelr.sources.metadata_log.source import MetadataLogSource
from tests.metadata_logs import (
    CLUSTER_ID,
    START_MS,
    batch,
    checkpoint,
    joined,
    leader_change,
    node_directory,
    partition,
    shrunk,
    story,
    topic,
)

FIRST = TopicPartition("orders", 0)
SECOND = TopicPartition("orders", 1)
NEXT = 8
"""The offset after the story."""


def replayed(*paths: Path) -> tuple[MetadataLog, MetadataImage]:
    log = open_metadata_log(paths)
    image = MetadataImage()
    for one in log.batches():
        image.apply(one)
    return log, image


def told(image: MetadataImage) -> dict[int, tuple[int | None, tuple[int, ...], int | None]]:
    """Leader, ISR and partition epoch by partition."""
    return {one.partition: (one.leader, one.isr, one.partition_epoch) for one in image.partitions()}


WHOLE_STORY = {0: (None, (1,), 3), 1: (2, (2, 3), 1)}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return node_directory(tmp_path / "node", {0: joined(story())})


def test_a_node_s_directory_in_any_form_is_read_whole(node: Path) -> None:
    inside = node / "__cluster_metadata-0"
    for path in (node, inside, inside / f"{0:020}.log"):
        log, image = replayed(path)
        assert told(image) == WHOLE_STORY
        assert image.at is not None
        assert (image.at.offset, image.at.timestamp_ms) == (NEXT - 1, START_MS + 7000)
        assert (log.cluster_id, log.nodes, log.name) == (CLUSTER_ID, (1,), "metadata log of node 1")
        assert log.files == (str(inside / f"{0:020}.log"),)
        assert not log.warnings


def test_a_segment_under_another_name_is_placed_by_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "b.log").write_bytes(joined(story()[:3]))
    (tmp_path / "a.log").write_bytes(joined(story()[3:]))
    log, image = replayed(tmp_path / "a.log", tmp_path / "b.log")
    assert told(image) == WHOLE_STORY
    assert (log.cluster_id, log.nodes) == (None, ())


@given(cuts=st.sets(st.integers(1, 5)), overlap=st.integers(0, 3), seed=st.integers(0, 1000))
def test_segments_in_any_order_and_overlapping_are_each_read_once(cuts: set[int], overlap: int, seed: int) -> None:
    batches, offsets = story(), [0, 1, 4, 5, 6, 7]
    starts = [0, *sorted(cuts)]
    ends = [*starts[1:], len(batches)]
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for start, end in zip(starts, ends, strict=True):
            path = Path(directory) / f"{offsets[start]:020}.log"
            path.write_bytes(joined(batches[start : min(end + overlap, len(batches))]))
            paths.append(path)
        random.Random(seed).shuffle(paths)
        log, image = replayed(*paths)
        assert told(image) == WHOLE_STORY
        assert not log.warnings
        assert [one.base_offset for one in log.batches()] == offsets


def test_what_is_beside_the_segments_is_not_read(node: Path) -> None:
    inside = node / "__cluster_metadata-0"
    strange = joined([batch(0, topic("strange"))])
    for name in (
        f"{8:020}.log.deleted",
        f"{8:020}.snapshot",
        f"{8:020}-{1:010}.checkpoint.deleted",
        f"{8:020}-{1:010}-12345.checkpoint.part",
        "leader-epoch-checkpoint",
        "quorum-state",
    ):
        (inside / name).write_bytes(strange)
    log, image = replayed(node)
    assert told(image) == WHOLE_STORY
    assert not log.warnings


def test_windows_are_smaller_than_the_log_and_than_a_batch(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for window in (70, 100, 333):
        monkeypatch.setattr(pieces, "WINDOW_BYTES", window)
        log, image = replayed(node)
        assert told(image) == WHOLE_STORY
        assert not log.warnings


def test_progress_ends_at_the_size_of_the_files(node: Path) -> None:
    seen: list[tuple[int, int]] = []
    size = (node / "__cluster_metadata-0" / f"{0:020}.log").stat().st_size
    list(open_metadata_log([node]).batches(lambda done, total: seen.append((done, total))))
    assert seen[-1] == (size, size)


# Checkpoints.

STATE_AT_6 = (topic(), partition(0, isr=(1,)), partition(1))


def test_a_log_without_its_beginning_starts_with_a_checkpoint(tmp_path: Path) -> None:
    data = checkpoint(STATE_AT_6, contained_ms=START_MS + 5000)
    node = node_directory(tmp_path / "n", {5: joined(story()[3:])}, {(6, 1): data})
    log, image = replayed(node)
    # Partition epochs count from the checkpoint on; the change at offset 5 is contained in it already.
    assert told(image) == {0: (None, (1,), 1), 1: (2, (2, 3), 1)}
    assert not log.warnings
    first = next(iter(log.batches()))
    assert (first.checkpoint_end, first.of_checkpoint, first.timestamp_ms) == (6, True, START_MS + 5000)


def test_a_checkpoint_alone_is_the_state_at_its_end(tmp_path: Path) -> None:
    older = checkpoint((topic(), partition(0)), contained_ms=START_MS)
    newer = checkpoint(STATE_AT_6, contained_ms=START_MS + 5000)
    node = node_directory(tmp_path / "n", {}, {(4, 1): older, (6, 1): newer})
    log, image = replayed(node)
    assert told(image) == {0: (1, (1,), 0), 1: (1, (1, 2, 3), 0)}
    assert image.at is not None
    assert (image.at.offset, image.at.epoch, image.at.timestamp_ms) == (5, 1, START_MS + 5000)
    assert not log.warnings


WHY_NOT = {
    "no footer": "it has no footer",
    "cut": "at byte ",
    "garbled": "at byte ",
    "no header": "it does not begin with the header",
}


@pytest.mark.parametrize("how", ["no footer", "cut", "garbled", "no header"])
def test_a_checkpoint_that_is_not_whole_is_not_used(tmp_path: Path, how: str) -> None:
    good = checkpoint(STATE_AT_6, contained_ms=START_MS + 5000)
    bad = {
        "no footer": checkpoint(STATE_AT_6, contained_ms=1, footer=False),
        "cut": good[:-3],
        "garbled": good[:150] + bytes([good[150] ^ 1]) + good[151:],
        "no header": batch(0, *STATE_AT_6),
    }[how]
    older = checkpoint((topic(), partition(0), partition(1)), contained_ms=START_MS + 4000)
    segments = {5: joined(story()[3:])}
    node = node_directory(tmp_path / "n", segments, {(5, 1): older, (6, 1): bad})
    log, image = replayed(node)
    assert told(image)[1] == (2, (2, 3), 1)
    alone = node_directory(tmp_path / "alone", segments, {(6, 1): bad})
    with pytest.raises(BadInputError, match="segments begin at offset 5, and no whole checkpoint") as refused:
        open_metadata_log([alone])
    assert f"{6:020}-{1:010}.checkpoint is not used: {WHY_NOT[how]}" in str(refused.value)
    assert not log.warnings  # the older one is enough


def test_a_checkpoint_stands_in_for_missing_records_and_that_is_said(tmp_path: Path) -> None:
    data = checkpoint(STATE_AT_6, contained_ms=START_MS + 5000)
    segments = {0: joined(story()[:3]), 6: joined(story()[4:])}
    node = node_directory(tmp_path / "n", segments, {(6, 1): data})
    log, image = replayed(node)
    assert told(image) == {0: (None, (1,), 1), 1: (2, (2, 3), 1)}
    (warning,) = log.warnings
    assert "records 5 to 5 are missing" in warning
    assert "stands in for them" in warning


def test_behind_missing_records_nothing_is_told(tmp_path: Path) -> None:
    node = node_directory(tmp_path / "n", {0: joined(story()[:3]), 6: joined(story()[4:])})
    log, image = replayed(node)
    assert told(image) == {0: (1, (1, 2), 1), 1: (1, (1, 2, 3), 0)}
    assert log.warnings == [
        "records 5 to 5 are missing, and no checkpoint stands in for them: reading ends at offset 5, and nothing of"
        " what came later is told"
    ]


# Damage.


def test_whether_a_log_was_read_to_its_end(tmp_path: Path) -> None:
    """A node that runs has a torn tail now and then; anything else that is not read may hold what came later."""
    whole, garbled = joined(story()), bytearray(joined(story()))
    garbled[len(joined(story()[:3])) + 65] ^= 1
    gap = {0: joined(story()[:3]), 6: joined(story()[4:])}
    misnamed = {0: joined(story()[:3]), 9: joined(story()[3:])}
    cases = {
        "whole": ({0: whole}, False),
        "torn": ({0: whole[:-5]}, False),
        "garbled": ({0: bytes(garbled)}, True),
        "gap": (gap, True),
        "misnamed": (misnamed, True),
    }
    nodes = {name: node_directory(tmp_path / name, pieces) for name, (pieces, _) in cases.items()}
    assert {name: replayed(nodes[name])[0].cut_short for name in cases} == {
        name: case[1] for name, case in cases.items()
    }
    for name in ("garbled", "gap"):
        assert not replayed(nodes[name], nodes["whole"])[0].cut_short
    unused = nodes["torn"] / "__cluster_metadata-0" / f"{12:020}-{1:010}.checkpoint"
    unused.write_bytes(b"not whole")
    assert replayed(nodes["torn"])[0].cut_short


def test_a_torn_tail_is_read_up_to_it(tmp_path: Path) -> None:
    node = node_directory(tmp_path / "n", {0: joined(story())[:-5]})
    log, image = replayed(node)
    assert told(image) == {0: (None, (1,), 3), 1: (1, (1, 2, 3), 0)}
    (warning,) = log.warnings
    assert "the batch at offset 7 has" in warning


def test_a_garbled_batch_ends_what_is_told(tmp_path: Path) -> None:
    batches = story()
    data = bytearray(joined(batches))
    data[len(joined(batches[:3])) + 65] ^= 1
    node = node_directory(tmp_path / "n", {0: bytes(data[:-1]), 7: batches[-1]})
    log, image = replayed(node)
    assert told(image) == {0: (1, (1, 2), 1), 1: (1, (1, 2, 3), 0)}
    assert "does not match its checksum" in log.warnings[0]
    assert "records 5 to 6 are missing" in log.warnings[1]


def test_another_node_has_what_one_lacks(tmp_path: Path) -> None:
    batches = story()
    data = bytearray(joined(batches))
    data[len(joined(batches[:3])) + 65] ^= 1
    garbled = node_directory(tmp_path / "one", {0: bytes(data)}, node=1)
    without_beginning = node_directory(tmp_path / "two", {4: joined(batches[2:])}, node=2)
    log, image = replayed(garbled, without_beginning)
    assert told(image) == WHOLE_STORY
    assert log.nodes == (1, 2)
    assert log.name == "metadata log of nodes 1 and 2"
    assert len(log.warnings) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_where_two_nodes_differ_the_newer_epoch_is_right(tmp_path: Path, order: Sequence[int]) -> None:
    common = joined(story()[:3])
    lost = joined([batch(5, shrunk(0, isr=(1,))), batch(6, shrunk(1, isr=(1,))), batch(7, shrunk(1, isr=(3,)))])
    kept = leader_change(5, 2, [1, 2, 3], epoch=2) + batch(6, shrunk(0, isr=(2,), leader=2), epoch=2)
    nodes = [
        node_directory(tmp_path / "one", {0: common + lost}, node=1),
        node_directory(tmp_path / "two", {0: common + kept}, node=2),
    ]
    log, image = replayed(*(nodes[one] for one in order))
    assert told(image) == {0: (2, (2,), 2), 1: (1, (1, 2, 3), 0)}
    assert any("node 1" in warning and "differ from offset 5 on" in warning for warning in log.warnings)


def test_a_longer_copy_wins(tmp_path: Path) -> None:
    short = node_directory(tmp_path / "one", {0: joined(story()[:2])}, node=1)
    long = node_directory(tmp_path / "two", {0: joined(story())}, node=2)
    for paths in ((short, long), (long, short)):
        log, image = replayed(*paths)
        assert told(image) == WHOLE_STORY
        assert not log.warnings


def test_a_tail_that_a_majority_need_not_have_is_said(tmp_path: Path) -> None:
    data = leader_change(0, 1, [1, 2, 3]) + joined(story()[1:])
    one = node_directory(tmp_path / "one", {0: data}, node=1)
    two = node_directory(tmp_path / "two", {0: data}, node=2)
    log, _ = replayed(one)
    assert any("voters 1, 2, 3" in warning for warning in log.warnings)
    log, _ = replayed(one, two)
    assert not log.warnings


# What is refused.


def test_logs_of_different_clusters_are_refused(tmp_path: Path) -> None:
    one = node_directory(tmp_path / "one", {0: joined(story())})
    two = node_directory(tmp_path / "two", {0: joined(story())}, cluster_id="another")
    with pytest.raises(UsageError, match="different clusters"):
        open_metadata_log([one, two])
    (one / "meta.properties").unlink()
    (two / "meta.properties").unlink()
    other = joined([leader_change(0, 1, [1]), batch(1, topic("payments"))])
    (two / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(other)
    with pytest.raises(UsageError, match="differ at offset 1 in one epoch"):
        replayed(one, two)


def test_a_topic_s_segment_is_no_metadata_log(tmp_path: Path) -> None:
    from kelr.lab.simulated.contents import NewRecord, encoded, placed  # noqa: PLC0415

    for number, value in enumerate((b"a cup of tea", b"\x01\x63\x00", b"")):
        directory = tmp_path / str(number) / "orders-0"
        directory.mkdir(parents=True)
        records = [NewRecord(START_MS, b"key", value) for _ in range(3)]
        (directory / f"{0:020}.log").write_bytes(placed(encoded(records), 0, 1))
        with pytest.raises(BadInputError, match=r"no segment of a metadata log|is no metadata log"):
            replayed(directory)


@pytest.mark.parametrize("content", [b"", b"\x00" * 500, b"what is this?" * 20])
def test_files_that_are_nothing_of_the_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(BadInputError):
        MetadataLogSource(open_metadata_log([path]))


@pytest.mark.parametrize("name", ["passwd", "meta.properties"])
def test_a_file_that_begins_with_no_batch_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"root:x:0:0:root:/root:/bin/sh")
    with pytest.raises(BadInputError, match=f"{name} is no segment: it does not begin with a record batch"):
        open_metadata_log([path])


def test_a_segment_under_the_name_of_another_is_named(tmp_path: Path) -> None:
    node = node_directory(tmp_path / "n", {500: joined(story())})
    with pytest.raises(BadInputError, match="by its name it begins at offset 500, and its first batch at 0"):
        open_metadata_log([node])


def test_empty_and_missing_places(tmp_path: Path) -> None:
    empty = tmp_path / "__cluster_metadata-0"
    empty.mkdir()
    with pytest.raises(BadInputError, match="is empty"):
        open_metadata_log([empty])
    with pytest.raises(BadInputError, match="is empty"):
        open_metadata_log([tmp_path])
    with pytest.raises(BadInputError, match="No such file"):
        open_metadata_log([tmp_path / "nowhere"])
    (tmp_path / "other").mkdir()
    with pytest.raises(BadInputError, match="holds no __cluster_metadata-0"):
        open_metadata_log([tmp_path / "other"])
    with pytest.raises(UsageError, match="no metadata log was given"):
        open_metadata_log([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_segment(node: Path) -> None:
    (node / "__cluster_metadata-0" / f"{0:020}.log").chmod(0)
    with pytest.raises(BadInputError, match="Permission denied"):
        open_metadata_log([node])


# Bundles.


def _tar(directory: Path, mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        archive.add(directory, "support/host-1")
    return out.getvalue()


def _zip(directory: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            archive.write(path, f"support/host-1/{path.relative_to(directory)}")
    return out.getvalue()


BUNDLES: dict[str, Callable[[Path], bytes]] = {
    "a.tar": lambda directory: _tar(directory, "w:"),
    "a.tar.gz": lambda directory: _tar(directory, "w:gz"),
    "a.tgz": lambda directory: _tar(directory, "w|gz"),
    "a.tar.zst": lambda directory: bytes(cramjam.zstd.compress(_tar(directory, "w:"))),
    "a.zip": _zip,
}


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_read_as_its_directory(
    tmp_path: Path, node: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node / "orders-0").mkdir()
    (node / "orders-0" / f"{0:020}.log").write_bytes(b"nothing of the kind")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    bundle = tmp_path / name
    bundle.write_bytes(BUNDLES[name](node))
    log, image = replayed(bundle)
    assert told(image) == WHOLE_STORY
    assert (log.cluster_id, log.nodes) == (CLUSTER_ID, (1,))
    assert not log.warnings
    assert told(replayed(bundle, node)[1]) == WHOLE_STORY
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_that_is_cut_short_is_never_taken_for_whole(tmp_path: Path, node: Path, name: str) -> None:
    whole_bundle = BUNDLES[name](node)
    path = tmp_path / name
    for keep in range(0, len(whole_bundle) - 1, max(1, len(whole_bundle) // 23)):
        path.write_bytes(whole_bundle[:keep])
        try:
            log, image = replayed(path)
        except BadInputError:
            continue
        missing = told(image) != WHOLE_STORY
        assert not missing or log.warnings, keep


def test_nothing_is_unpacked_outside_and_links_are_not_followed(tmp_path: Path, node: Path) -> None:
    data = (node / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:") as archive:
        for name in (f"../../escaped/__cluster_metadata-0/{0:020}.log",):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo(f"x/__cluster_metadata-0/{0:020}.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.tar"
    path.write_bytes(out.getvalue())
    before = sorted(tmp_path.rglob("*"))
    assert told(replayed(path)[1]) == WHOLE_STORY
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("form", ["gzip", "zip", "zstd"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MOST_UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(bundles, "_FIRST_ZSTD_BYTES", 1 << 16)
    name, size = f"__cluster_metadata-0/{0:020}.log", 5 << 20
    out = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, b"\x00" * size)
    else:
        with tarfile.open(fileobj=out, mode="w:") as tar:
            member = tarfile.TarInfo(name)
            member.size = size
            tar.addfile(member, io.BytesIO(b"\x00" * size))
    packed = {
        "gzip": lambda: gzip.compress(out.getvalue()),
        "zstd": lambda: bytes(cramjam.zstd.compress(out.getvalue())),
        "zip": out.getvalue,
    }[form]()
    path = tmp_path / "bomb"
    path.write_bytes(packed)
    with pytest.raises(BadInputError, match="unpacks to more than"):
        open_metadata_log([path])


def test_a_long_name_is_not_read_into_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 33
    path = tmp_path / "a.tar"
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + b"\x00" * 4096)
    with pytest.raises(BadInputError, match="header of 8589934592 bytes"):
        open_metadata_log([path])


def test_a_bundle_without_a_metadata_log(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "server.log").write_text("INFO started", encoding="ascii")
    path = tmp_path / "a.tar.gz"
    path.write_bytes(_tar(tmp_path / "x", "w:gz"))
    with pytest.raises(BadInputError, match="holds no __cluster_metadata-0"):
        open_metadata_log([path])


def test_an_unpacked_bundle_of_several_nodes(tmp_path: Path) -> None:
    node_directory(tmp_path / "b" / "host-1" / "kafka", {0: joined(story()[:3])}, node=1)
    node_directory(tmp_path / "b" / "host-2" / "kafka", {0: joined(story())}, node=2)
    log, image = replayed(tmp_path / "b")
    assert log.nodes == (1, 2)
    assert told(image) == WHOLE_STORY


# Damage anywhere.


def _states_of_the_story() -> dict[int, dict[int, tuple[int | None, tuple[int, ...], int | None]]]:
    """What is told where reading ends before each offset."""
    states = {}
    for count in range(len(story()) + 1):
        with tempfile.TemporaryDirectory() as directory:
            node = node_directory(Path(directory) / "n", {0: joined(story()[:count])})
            states[[0, 1, 4, 5, 6, 7, 8][count]] = told(replayed(node)[1])
    return states


STATES = _states_of_the_story()


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize(("byte", "flipped"), [(7, 1), (7, 2), (7, 7), (0, 128), (15, 1), (12, 128)])
def test_offsets_and_epochs_that_no_node_writes_end_what_is_told(
    tmp_path: Path, number: int, byte: int, flipped: int
) -> None:
    data = bytearray(joined(story()))
    data[len(joined(story()[:number])) + byte] ^= flipped
    log, image = replayed(node_directory(tmp_path / "n", {0: bytes(data)}))
    assert image.at is not None
    assert told(image) == STATES[image.at.offset + 1]
    assert image.at.offset + 1 == [0, 1, 4, 5, 6, 7][number]
    assert log.warnings


@given(
    position=st.integers(0, len(joined(story())) - 1),
    flipped=st.integers(1, 255),
    cut=st.one_of(st.none(), st.sampled_from([1, 4, 5, 6, 7])),
)
def test_one_byte_of_damage_never_makes_a_wrong_state_in_silence(position: int, flipped: int, cut: int | None) -> None:
    data = bytearray(joined(story()))
    data[position] ^= flipped
    segments = {0: bytes(data)}
    if cut is not None:
        at = len(joined(story()[: [0, 1, 4, 5, 6, 7].index(cut)]))
        segments = {0: bytes(data[:at]), cut: bytes(data[at:])}
    with tempfile.TemporaryDirectory() as directory:
        node = node_directory(Path(directory) / "n", segments)
        try:
            log, image = replayed(node)
        except (BadInputError, UsageError):
            return
        end = 0 if image.at is None else image.at.offset + 1
        assert told(image) == STATES[end]
        # The epoch of the first batch, where it is the older one, is covered by nothing.
        assert end == NEXT or log.warnings
