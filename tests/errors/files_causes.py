"""How the errors come about that files are to blame for."""

from __future__ import annotations

import gzip
import zipfile
from dataclasses import replace
from pathlib import Path

from kelr.durable import read_lines, whole_file
from kelr.model import TopicPartition
from kelr.rescue.archive import open_dump
from kelr.sources.collected import CollectedSource, collection_of_disk, merge, save_collection
from kelr.sources.disk import DiskCollection, read_log_directories
from kelr.sources.disk.partition import open_partition
from kelr.sources.memory import MemorySource
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.properties import read_properties
from kelr.sources.snapshot_file import read_snapshot
from tests.errors.ground import Causes, Ground
from tests.incident import INCIDENT
from tests.metadata_logs import joined, node_directory, story
from tests.rescue.batches import batch
from tests.rescue.files import save, tail
from tests.sources.disks import Disk

AT = TopicPartition("orders", 0)


def disk(ground: Ground, name: str = "data", broker: int = 1, cluster_id: str = "one") -> Disk:
    """A log directory with a replica."""
    made = Disk(ground.path / name, broker, cluster_id=cluster_id, directory_id=f"directory-{name}")
    made.filled("orders-1")
    return made


def read(*directories: Path) -> DiskCollection:
    return read_log_directories(list(directories), clock_ms=lambda: 0)


def garbled_lines(ground: Ground) -> None:
    list(read_lines(ground.file("audit.jsonl", "nonsense\n"), "audit log"))


def written(ground: Ground, where: str) -> None:
    with whole_file(ground.path / where, "plan", overwrite=False) as file:
        file.write(b"x")


def written_twice(ground: Ground) -> None:
    written(ground, "plan.json")
    written(ground, "plan.json")


def shortened(ground: Ground) -> None:
    path = ground.snapshot()
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    read_snapshot(path)


def changed(ground: Ground) -> None:
    path = ground.snapshot()
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join([lines[0], b'{"nonsense": 1}\n', *lines[1:]])))
    read_snapshot(path)


def newer(ground: Ground) -> None:
    read_snapshot(ground.zipped("newer.kelr", '{"format": "kelr-snapshot", "version": 2, "news": []}'))


def a_collection(ground: Ground) -> None:
    path = ground.path / "broker-1.kelr"
    save_collection([collection_of_disk(read(disk(ground).path))], path)
    ground.run("describe", "--snapshot", str(path))


def two_clusters(ground: Ground) -> None:
    one = collection_of_disk(read(disk(ground).path), "one")
    merge([one, replace(one, cluster_id="another", name="two")])


def another_clusters_disk(ground: Ground) -> None:
    collection = collection_of_disk(read(disk(ground, cluster_id="another").path))
    with CollectedSource(MemorySource(INCIDENT), [collection]) as source:
        source.cluster()


def no_properties(ground: Ground) -> None:
    found = disk(ground)
    (found.path / "meta.properties").unlink()
    read(found.path)


def two_brokers(ground: Ground) -> None:
    read(disk(ground, "a", 1).path, disk(ground, "b", 2).path)


def two_logs(ground: Ground) -> None:
    one = node_directory(ground.path / "one", {0: joined(story())})
    two = node_directory(ground.path / "two", {0: joined(story())}, cluster_id="another")
    with open_metadata_log([one, two]) as log:
        list(log.batches())


def too_late(ground: Ground) -> None:
    node = node_directory(ground.path / "one", {0: joined(story())})
    ground.run("describe", "--metadata-log", str(node), "--at", "99")


def damaged(ground: Ground) -> None:
    path = ground.path / "lost.kelr-rescue"
    save(path, [tail([batch(0, 10)], 0, 10)])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if name.endswith(".json") else content[:-1] + bytes([content[-1] ^ 1]))
    with open_dump(path) as dump:
        list(dump.batches(dump.manifest.tails[0]))


FILES_CAUSES: Causes = {
    "file-exists": written_twice,
    "cannot-write": lambda ground: written(ground, "nowhere/plan.json"),
    "record-garbled": garbled_lines,
    "not-a-snapshot": lambda ground: read_snapshot(ground.file("a.kelr", "hello")),
    "snapshot-torn": shortened,
    "snapshot-garbled": changed,
    "newer-format": newer,
    "collection-not-snapshot": a_collection,
    "collections-differ": two_clusters,
    "collection-other-cluster": another_clusters_disk,
    "not-a-log-directory": no_properties,
    "log-directories-differ": two_brokers,
    "no-replica-on-disk": lambda ground: open_partition([disk(ground).path], AT),
    "no-metadata-log": lambda ground: open_metadata_log([ground.path]),
    "metadata-logs-differ": two_logs,
    "moment-not-in-log": too_late,
    "not-a-rescue-file": lambda ground: open_dump(ground.file("a.kelr-rescue", "hello")),
    "rescue-damaged": damaged,
    "bad-input": lambda ground: read_properties(ground.file("client.properties", b"\xff\xfe")),
}
