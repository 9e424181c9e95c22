"""What is collected of nodes' directories, and the copies that it is read into."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.quorum.archive import open_archive, write_archive
from kelr.quorum.assess import Fate, Matter, Verdict, VoterState, assess
from kelr.quorum.collect import collect_nodes
from kelr.quorum.copies import NO_EPOCH, MetadataCopy, QuorumState
from kelr.quorum.plan import AddressRequest, make_address_plan
from kelr.quorum.reading import Collected, read_collections
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.reading import read_batches
from kelr.sources.metadata_log.source import MetadataLogSource
from kelr.sources.metadata_log.writing import checkpoint_bytes, checkpoint_name
from tests.quorum.nodes import (
    BEGINNING,
    CLUSTER,
    END,
    LATE,
    LATER,
    SHORT,
    SHORT_END,
    TOPIC,
    VOTERS,
    WHOLE,
    collect,
    directory_of,
    log_bytes,
    write_node,
    write_replica,
)

BROKER = 1


def copy_of(tmp_path: Path, node: int, log: bytes | None, **how: object) -> MetadataCopy:
    path = write_node(tmp_path / f"node-{node}", node, log, **how)  # type: ignore[arg-type]
    (copy,) = read_collections([collect(tmp_path, path)]).copies
    return copy


def test_the_bytes_are_kept_and_indexes_are_not(tmp_path: Path) -> None:
    path = write_node(tmp_path / "c", 100, WHOLE)
    out = collect(tmp_path, path)
    archive = open_archive(out)
    (node,) = archive.nodes
    assert {file.name for file in node.files} == {
        "__cluster_metadata-0/00000000000000000000.log",
        "__cluster_metadata-0/quorum-state",
        "meta.properties",
    }
    content = archive.files["node-100", "__cluster_metadata-0/00000000000000000000.log"]
    assert content.read(0, content.size_bytes) == WHOLE
    assert (node.node, node.cluster_id, node.directory_id, node.running) == (100, CLUSTER, directory_of(100), False)
    # Other commands read it as a metadata log.
    assert MetadataLogSource(open_metadata_log([out])).cluster().cluster_id == CLUSTER


def test_a_quorum_state_that_is_replaced_while_it_is_collected_is_whole(tmp_path: Path) -> None:
    """A node that looks for a leader writes it again and again (FileQuorumStateStore), shorter or longer."""
    path = write_node(tmp_path / "c", 100, WHOLE, epoch=7)
    state = path / "__cluster_metadata-0" / "quorum-state"
    before = state.read_bytes()
    nodes = collect_nodes([path], host="h", clock_ms=lambda: 1_795_000_000_000)
    state.write_bytes(b"{}")
    write_archive(nodes, tmp_path / "out", overwrite=False)
    content = open_archive(tmp_path / "out").files["node-100", "__cluster_metadata-0/quorum-state"]
    assert content.read(0, content.size_bytes) == before


def test_a_copy_says_where_it_ends_and_what_it_says(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, 100, WHOLE, epoch=7)
    assert (copy.position, copy.batches.start, copy.broken, copy.torn_bytes) == ((2, END), 0, None, 0)
    assert list(copy.batches.epochs) == [1, 1, 1, 1, 2, 2, 2]
    assert (copy.quorum_state, copy.newest_epoch) == (QuorumState(7), 7)
    assert set(copy.image.topics) == copy.history.topics == {TOPIC, LATE}
    assert copy.image.kraft_version == 1
    assert [voter.node for voter in copy.image.voter_set] == [100, 101, 102]


def test_a_torn_last_batch_is_left_out_and_said(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, 100, WHOLE[:-5])
    assert (copy.end, copy.broken) == (END - 1, None)
    assert copy.torn_bytes > 0
    assert len(copy.batches.offsets) == 6


def test_a_damaged_batch_in_the_middle_breaks_a_copy(tmp_path: Path) -> None:
    damaged = bytearray(WHOLE)
    damaged[len(SHORT) - 3] ^= 0xFF
    copy = copy_of(tmp_path, 100, bytes(damaged))
    assert copy.broken is not None
    assert "does not match its checksum" in copy.broken
    assert copy.end < SHORT_END


def test_a_gap_between_segments_breaks_a_copy(tmp_path: Path) -> None:
    path = write_node(tmp_path / "c", 100, SHORT)
    later, _ = log_bytes(LATER[1:], SHORT_END + 1)
    write_node(path, 100, later, first_offset=SHORT_END + 1)
    (copy,) = read_collections([collect(tmp_path, path)]).copies
    assert copy.broken == (
        f"records {SHORT_END} to {SHORT_END} are missing before h:{path}/__cluster_metadata-0/{SHORT_END + 1:020}.log"
    )
    assert copy.position == (1, SHORT_END)


def image_of(data: bytes) -> MetadataImage:
    image = MetadataImage()
    for batch in read_batches(data):
        image.apply(batch)
    return image


def with_checkpoint(path: Path, end: int, image: MetadataImage) -> None:
    content = b"".join(checkpoint_bytes(image, epoch=1, contained_ms=1_795_000_000_000))
    (path / "__cluster_metadata-0" / checkpoint_name(end, 1)).write_bytes(content)


def test_a_copy_may_begin_with_a_checkpoint_and_none_may_stand_in_for_records(tmp_path: Path) -> None:
    later, _ = log_bytes(LATER, SHORT_END)
    path = write_node(tmp_path / "c", 100, later, first_offset=SHORT_END)
    with_checkpoint(path, SHORT_END, image_of(SHORT))
    (copy,) = read_collections([collect(tmp_path, path)]).copies
    assert (copy.position, copy.batches.start, copy.broken) == ((2, END), SHORT_END, None)
    assert copy.history.begins_at == SHORT_END
    assert copy.checkpoints == ((SHORT_END, 1),)
    assert set(copy.image.topics) == {TOPIC, LATE}

    behind = write_node(tmp_path / "d", 101, log_bytes(BEGINNING[:2])[0])
    with_checkpoint(behind, SHORT_END, image_of(SHORT))
    (copy,) = read_collections([collect(tmp_path, behind)]).copies
    assert copy.broken == "a checkpoint stands in for records that are missing"


def test_an_empty_voter_and_one_whose_disk_was_replaced_do_not_count(tmp_path: Path) -> None:
    paths = [
        write_node(tmp_path / "a", 100, WHOLE),
        write_node(tmp_path / "b", 101, b"", epoch=None),
        write_node(tmp_path / "c", 102, WHOLE, directory="Z" * 21 + "Q"),
    ]
    found = read_collections([collect(tmp_path, *paths)])
    assert [copy.last_epoch for copy in found.copies] == [2, NO_EPOCH, 2]
    assessment = assess(found.copies, found.disks)
    assert [voter.state for voter in assessment.voters] == [
        VoterState.WHOLE,
        VoterState.EMPTY,
        VoterState.OTHER_DIRECTORY,
    ]
    assert assessment.matter is Matter.LOST
    assert assessment.best.verdict is Verdict.LOWER_BOUND


def survivors(tmp_path: Path, **broker: object) -> Collected:
    """One controller that lags, and a live broker that does not."""
    lagging = write_node(tmp_path / "controller", 100, SHORT, epoch=1)
    live = write_node(tmp_path / "broker", BROKER, WHOLE, epoch=2, **broker)  # type: ignore[arg-type]
    write_replica(live, "early", TOPIC, [(0, 0), (1, 0)])
    write_replica(live, "late", LATE, [(0, 0)])
    return read_collections([collect(tmp_path, lagging), collect(tmp_path, live, name="b", host="other")])


def test_a_lagging_controller_is_stale_and_what_it_would_do_is_told(tmp_path: Path) -> None:
    found = survivors(tmp_path)
    assessment = assess(found.copies, found.disks)
    best, stale = assessment.copies
    assert (best.copy.node, best.verdict) == (BROKER, Verdict.LOWER_BOUND)
    assert (stale.copy.node, stale.verdict) == (100, Verdict.STALE)
    assert (assessment.matter, assessment.missing_voters, assessment.missing_brokers) == (Matter.LOST, (101, 102), ())
    assert [(one.certain, one.text) for one in stale.contradictions] == [
        (True, f"node 1 holds offset {END - 1} of epoch 2; this copy ends at {SHORT_END - 1} of epoch 1"),
        (True, "broker 1 has early-0 in leader epoch 1; here it is 0"),
        (True, f"broker 1 has late-0 of topic id {LATE}, which this copy never knew"),
    ]
    assert [(one.topic, one.fate) for one in stale.fates] == [("late", Fate.STRAY)]
    assert [(one.topic, one.newest_epoch, one.truncated, one.exact) for one in stale.older] == [("early", 1, 0, True)]
    assert stale.truncating == (BROKER,)
    assert (stale.agrees_to, stale.parts) == (SHORT_END, False)
    assert (best.contradictions, best.fates, best.older) == ((), (), ())


def test_two_of_three_voters_prove_the_best_copy(tmp_path: Path) -> None:
    found = survivors(tmp_path)
    second = write_node(tmp_path / "second", 101, WHOLE)
    both = read_collections([tmp_path / "out.kelr-quorum", tmp_path / "b", collect(tmp_path, second, name="s")])
    assessment = assess(both.copies, both.disks)
    assert assessment.best.verdict is Verdict.PROVED
    assert assessment.matter is Matter.STOPPED
    assert assess(found.copies).best.verdict is Verdict.LOWER_BOUND


def test_a_removed_topic_whose_files_are_left_contradicts_nothing(tmp_path: Path) -> None:
    removed, _ = log_bytes([*BEGINNING, *LATER, (2, (rec.TopicRemoved(LATE),))])
    paths = [write_node(tmp_path / str(node), node, removed) for node in (100, 101)]
    live = write_node(tmp_path / "broker", BROKER, WHOLE)
    write_replica(live, "late", LATE, [(0, 0)])
    found = read_collections([collect(tmp_path, *paths, live)])
    assessment = assess(found.copies, found.disks)
    assert assessment.best.verdict is Verdict.PROVED
    (behind,) = (one for one in assessment.copies if one.copy.node == BROKER)
    assert [(one.topic, one.fate) for one in behind.fates] == [("late", Fate.RESURRECTED)]


def test_two_controllers_that_led_in_one_epoch_are_seen(tmp_path: Path) -> None:
    other, _ = log_bytes([*BEGINNING, (2, (rec.LeaderChanged(100, (100,)),)), *LATER[1:]])
    paths = [write_node(tmp_path / str(node), node, log) for node, log in ((100, WHOLE), (101, WHOLE), (102, other))]
    found = read_collections([collect(tmp_path, *paths)])
    assessment = assess(found.copies, found.disks)
    assert {one.verdict for one in assessment.copies} == {Verdict.STALE}
    assert f"another record at offset {SHORT_END} of the same epoch 2" in assessment.best.contradictions[0].text


def test_of_two_readings_of_one_directory_the_newer_counts(tmp_path: Path) -> None:
    path = write_node(tmp_path / "c", 100, SHORT)
    first = collect(tmp_path, path, name="first")
    write_node(path, 100, WHOLE)
    second = tmp_path / "second"
    write_archive(collect_nodes([path], host="h", clock_ms=lambda: 1_795_000_000_001), second, overwrite=False)
    for files in ([first, second], [second, first]):
        (copy,) = read_collections(files).copies
        assert copy.end == END


def test_an_earlier_reading_counts_unless_the_newer_one_is_seen_to_hold_all_of_it(tmp_path: Path) -> None:
    """A broker without its log fetched a checkpoint that ends behind the records that a stale leader lacked."""
    path = write_node(tmp_path / "c", BROKER, WHOLE)
    first = collect(tmp_path, path, name="first")
    shutil.rmtree(path)
    write_node(path, BROKER, log_bytes([(12, (rec.LeaderChanged(100, (100,)),))], END + 9)[0], first_offset=END + 9)
    with_checkpoint(path, END + 9, image_of(SHORT))
    second = collect(tmp_path, path, name="second", at_ms=1_795_000_000_001)
    newest, earlier = read_collections([first, second]).copies
    assert (newest.end, newest.read_at_ms) == (END + 10, None)
    assert (earlier.end, earlier.read_at_ms) == (END, 1_795_000_000_000)
    assert LATE in earlier.image.topics
    assert LATE not in newest.image.topics


def test_collections_of_different_clusters_are_refused(tmp_path: Path) -> None:
    one = collect(tmp_path, write_node(tmp_path / "a", 100, WHOLE), name="one")
    other = collect(tmp_path, write_node(tmp_path / "b", 101, WHOLE, cluster="x" * 22), name="other")
    with pytest.raises(BadInputError, match="different clusters"):
        read_collections([one, other])


def test_a_directory_that_is_no_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node's directory"):
        collect_nodes([tmp_path], host="h", clock_ms=lambda: 0)


@pytest.mark.parametrize("at", [600, 3000])
def test_a_changed_byte_is_noticed(tmp_path: Path, at: int) -> None:
    out = collect(tmp_path, write_node(tmp_path / "a", 100, WHOLE))
    data = bytearray(out.read_bytes())
    data[at] ^= 1
    out.write_bytes(bytes(data))
    with pytest.raises(BadInputError):
        open_archive(out)


def test_a_file_that_is_cut_short_or_no_collection_is_refused(tmp_path: Path) -> None:
    out = collect(tmp_path, write_node(tmp_path / "a", 100, WHOLE))
    data = out.read_bytes()
    for content in (b"", b"no tar", data[:2000], data[: data.index(b"kelr-quorum.json") + 600]):
        out.write_bytes(content)
        with pytest.raises(BadInputError, match="no collection"):
            open_archive(out)
    with tarfile.open(out, "w") as archive:
        manifest = tmp_path / "kelr-quorum.json"
        manifest.write_text(json.dumps({"format": "kelr-quorum", "version": 2}))
        archive.add(manifest, "kelr-quorum.json")
    with pytest.raises(BadInputError, match="format version 2"):
        open_archive(out)


@pytest.mark.parametrize(("epoch", "data"), [(2, True), (1, False)])
def test_voters_that_were_put_back_from_an_older_copy_prove_nothing_and_are_not_to_be_started(
    tmp_path: Path, epoch: int, *, data: bool
) -> None:
    """A broker's data shows it, or an epoch that no voter knows."""
    voters = [write_node(tmp_path / f"c{node}", node, SHORT, epoch=epoch) for node in VOTERS]
    broker = write_node(tmp_path / "b1", 1, WHOLE, directory="C" * 21 + "Q")
    if data:
        write_replica(broker, "late", LATE, [(0, 0)])
    collected = read_collections([collect(tmp_path, *voters, broker)])
    found = assess(collected.copies, collected.disks)
    assert found.matter is Matter.BEHIND
    assert (found.best.copy.node, found.best.verdict) == (1, Verdict.LOWER_BOUND)
    assert assess(read_collections([collect(tmp_path, *voters)]).copies).matter is Matter.STOPPED
    moved = AddressRequest({node: (f"new{node}", 9093) for node in VOTERS}, "4.4.0")
    with pytest.raises(RefusedError, match="lack committed records"):
        make_address_plan(collected, found, moved, now_ms=1)
