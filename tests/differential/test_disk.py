"""Logs on disks against Apache's own loader: hundreds of damaged directories, read by kelr, then loaded by Kafka."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import Lock, load_lock
from kelr.model import ReplicaLog, TopicPartition
from kelr.sources.disk import DiskLog, read_log_directories
from kelr.sources.disk.files import EpochCache
from tests.differential.driver import API_VERSION, RELEASE, javac_version
from tests.sources.disks import Disk, DiskReplica, Run, batch, batches

SOURCE = Path(__file__).parent / "storage" / "LogLoaderDriver.java"
CLASSES = SOURCE.parent / "classes"
NEEDED = (
    "kafka-storage",
    "kafka-storage-api",
    "kafka-server-common",
    "kafka-clients",
    "slf4j-api",
    "metrics-core",
)
SHIPPED_BY = "17."
DISKS = 30
"""Log directories in a run, half of them after a clean shutdown."""
REPLICAS = 10
FLIPPABLE = (*range(8, 12), *range(16, 17), *range(17, 61))
"""Bytes of a header that are length, magic, or covered by the checksum."""


@dataclass(frozen=True)
class Given:
    """One replica's directory, and what the checkpoints say of it."""

    at: TopicPartition
    path: Path
    clean: bool
    log_start: int
    recovery_point: int
    high_watermark: int
    damage: str
    epochs: tuple[tuple[int, int], ...]
    """The leader epochs of its batches, each with the offset at which it begins."""
    told: bool
    """Whether its checkpoint tells all of them."""

    @property
    def line(self) -> str:
        fields = (self.path, int(self.clean), self.log_start, self.recovery_point, self.high_watermark)
        return "\t".join(map(str, fields))


def class_path() -> str:
    lock = load_lock(API_VERSION)
    needed = tuple(jar for jar in lock.jars if jar.coordinates.split(":")[1] in NEEDED)
    return os.pathsep.join(map(str, obtain_jars(Lock(API_VERSION, needed), cache_directory())))


def loaded(given: Sequence[Given]) -> list[str]:
    """What Kafka makes of the directories, one answer each. They are changed."""
    done = subprocess.run(
        [
            find_java().executable,
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{CLASSES}{os.pathsep}{class_path()}",
            "LogLoaderDriver",
        ],
        input="".join(f"{one.line}\n" for one in given),
        capture_output=True,
        text=True,
        timeout=120 + len(given) / 50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Maker:
    """Makes log directories with everything that may be odd about them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def disk(self, path: Path, *, clean: bool) -> list[Given]:
        disk = Disk(path)
        found = [self._replica(disk, number, clean=clean) for number in range(REPLICAS)]
        disk.checkpoint("log-start-offset-checkpoint", {f"t-{one.at.partition}": one.log_start for one in found})
        disk.checkpoint(
            "recovery-point-offset-checkpoint", {f"t-{one.at.partition}": one.recovery_point for one in found}
        )
        disk.high_watermarks(**{f"t-{one.at.partition}": one.high_watermark for one in found})
        if clean:
            disk.clean()
        return found

    def _replica(self, disk: Disk, number: int, *, clean: bool) -> Given:
        rng = self._random
        replica = disk.replica(f"t-{number}")
        base, epoch = rng.choice([0, 0, 7]), 0
        entries: list[tuple[int, int]] = []
        damage = "none"
        start, recoverable = base, [base]
        for at in range(segments := rng.randint(1, 4)):
            runs = []
            for _ in range(rng.randint(0 if at == segments - 1 else 1, 3)):
                epoch += rng.randint(0 if entries else 1, 3)
                runs.append(Run(epoch, rng.randint(1, 5), rng.randint(1, 9)))
            content = batches(start, runs)
            offset = start
            for run in runs:
                if not entries or entries[-1][0] != run.epoch:
                    entries.append((run.epoch, offset))
                offset += run.batches * run.records
            log = replica.segment(start, content, index=rng.choice(["last", "last", "empty", "zeros", "none"]))
            if damage == "none":
                recoverable.append(start)
            # After a clean shutdown Kafka looks at the last segment only, and so does kelr.
            if rng.random() < 0.3 and content and (not clean or at == segments - 1):
                damage = self._damage(log, content, clean=clean)
            start = offset + rng.choice([0, 0, 0, 4])  # compaction may leave a gap before the next segment
        end = offset
        told = self._epochs(replica, entries, end)
        return Given(
            at=TopicPartition("t", number),
            path=replica.path,
            clean=clean,
            log_start=rng.choice([0, 0, base, (base + end) // 2, end, end + 5]),
            # What lies below the recovery point was flushed: nothing is damaged there.
            recovery_point=rng.choice([0, *recoverable, *([end, end + 3, end // 2] if damage == "none" else [])]),
            high_watermark=rng.randint(0, end + 3),
            damage=damage,
            epochs=tuple(entries),
            told=told,
        )

    def _epochs(self, replica: DiskReplica, entries: list[tuple[int, int]], end: int) -> bool:
        """Write the checkpoint; gives whether it is complete."""
        rng = self._random
        kept = entries if rng.random() < 0.8 else entries[: rng.randint(0, len(entries))]
        beyond = [(entries[-1][0] + 1, end), (entries[-1][0] + 3, end + 9)] if entries else [(1, end)]
        replica.epochs(*kept, *(beyond if rng.random() < 0.3 and kept == entries else []))
        return kept == entries

    def _damage(self, log: Path, content: Sequence[bytes], *, clean: bool) -> str:
        """Damage a segment; after a clean shutdown in ways that Kafka does not stumble over more often."""
        rng = self._random
        whole = b"".join(content)
        kind = rng.choice(
            ["cut", "flip", "zeros", "short-zeros", "noise", "half"] if not clean else ["half", "flip", "cut"]
        )
        if kind == "cut":
            log.write_bytes(whole[: rng.randint(0, len(whole))])
        elif kind == "half":
            more = batch(struct.unpack_from(">q", content[-1])[0] + 50, 99)
            log.write_bytes(whole + more[: rng.randint(1, len(more) - 1)])
        elif kind == "flip":
            number = rng.randrange(len(content))
            at = rng.choice([*FLIPPABLE, *range(61, len(content[number]))])
            changed = bytearray(whole)
            changed[sum(map(len, content[:number])) + at] ^= rng.randint(1, 255)
            log.write_bytes(changed)
        elif kind == "noise":
            log.write_bytes(whole + rng.randbytes(rng.randint(1, 200)))
        else:
            log.write_bytes(whole + bytes(rng.randint(18, 5000) if kind == "zeros" else rng.randint(1, 17)))
        return kind


def agrees(one: Given, read: DiskLog, kafka: str) -> bool:
    """Whether Kafka loaded what kelr read, and the leader epochs are those of the batches."""
    log = read.answer
    if not isinstance(log, ReplicaLog):
        return True
    if kafka.startswith("failed"):
        return False
    start, end, watermark, *epochs = kafka.split()
    if (log.log_start, log.log_end, log.high_watermark) != (int(start), int(end), int(watermark)):
        return False
    if log.is_empty and not epochs:
        return not one.told or not log.lineage  # Kafka deletes a log that ends before its start, with its epochs
    written = EpochCache(one.epochs)
    written.clip(one.log_start, log.log_end)
    if written.lineage(log.log_end) != log.lineage:
        return False
    # Kafka believes a checkpoint that lacks epochs, and then has fewer than its batches tell.
    return not one.told or [f"{epoch}:{first}" for epoch, first in written.entries] == epochs


def test_what_kelr_reads_is_what_kafka_loads(tmp_path: Path, seed: int) -> None:
    maker = Maker(seed)
    given: list[Given] = []
    read: list[DiskLog] = []
    for number in range(DISKS):
        path = tmp_path / str(number)
        made = maker.disk(path, clean=number % 2 == 0)
        found = read_log_directories([path], clock_ms=lambda: 0)
        given += made
        read += [found.logs[one.at] for one in made]
    answers = loaded(given)
    assert len(answers) == len(given)
    wrong = [
        (one, log.answer, log.notes, answer)
        for one, log, answer in zip(given, read, answers, strict=True)
        if not agrees(one, log, answer)
    ]
    assert not wrong, f"seed {seed}: {len(wrong)} of {len(given)}: {wrong[0]}"
    unheard = [one.damage for one, log in zip(given, read, strict=True) if not isinstance(log.answer, ReplicaLog)]
    assert "none" not in unheard
    assert 0 < len(unheard) < len(given) / 5


def test_the_shipped_class_is_that_of_the_source(tmp_path: Path) -> None:
    version, javac = javac_version(), shutil.which("javac")
    if javac is None or version is None or not version.startswith(SHIPPED_BY):
        pytest.skip(f"needs javac {SHIPPED_BY[:-1]} to compile as the shipped class was; here is {version}")
    flags = ["--release", str(RELEASE), "-g:none", "-Xlint:all", "-Werror"]
    subprocess.run([javac, *flags, "-d", str(tmp_path), "-cp", class_path(), str(SOURCE)], check=True, timeout=120)
    (shipped,) = CLASSES.glob("*.class")
    assert (tmp_path / shipped.name).read_bytes() == shipped.read_bytes()
