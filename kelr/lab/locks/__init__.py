"""The jars of each Kafka version that the lab can run: coordinates, sizes and SHA-256, one file a version.

The files are written by ``python -m tests.follow.locks VERSION...`` (see docs/lab.md).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from kelr.errors import LabError

LOCK_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LockedJar:
    """One jar: Maven coordinates ``group:artifact:version``, size in bytes, SHA-256 in hexadecimal."""

    coordinates: str
    size: int
    sha256: str

    @property
    def path(self) -> str:
        """Its place under a Maven repository, with forward slashes."""
        group, artifact, version = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


@dataclass(frozen=True, slots=True)
class Lock:
    """Everything on the class path of one Kafka version's broker and, where they are published, tools and metadata
    shell."""

    kafka: str
    jars: tuple[LockedJar, ...]

    @property
    def size(self) -> int:
        return sum(jar.size for jar in self.jars)

    def has(self, artifact: str) -> bool:
        """Whether one of Kafka's own jars is among them, such as ``kafka-tools``."""
        return any(jar.coordinates.startswith(f"org.apache.kafka:{artifact}:") for jar in self.jars)

    @property
    def fingerprint(self) -> str:
        """Changes whenever a jar does: names the marker of a verified cache."""
        return hashlib.sha256("\n".join(jar.sha256 for jar in self.jars).encode()).hexdigest()[:16]


def locked_versions() -> tuple[str, ...]:
    """The Kafka versions that have a lock, oldest first."""
    names = [entry.name for entry in files(__package__).iterdir()]
    versions = [name[len("kafka-") : -len(".json")] for name in names if _is_lock(name)]
    return tuple(sorted(versions, key=lambda version: [int(part) for part in version.split(".")]))


def version_with(artifact: str, kafka: str) -> str:
    """The newest locked version up to this one of which this one of Kafka's own jars is locked, too."""
    versions = locked_versions()
    return next(one for one in reversed(versions[: versions.index(kafka) + 1]) if load_lock(one).has(artifact))


def load_lock(kafka: str) -> Lock:
    """The lock of a Kafka version.

    Raises:
        LabError: there is no lock for that version; the next step lists those that exist.
    """
    versions = locked_versions()
    if kafka not in versions:
        raise LabError(
            f"the lab has no locked jars for Kafka {kafka}",
            next_step=f"choose one of {', '.join(versions)}",
            code="kafka-not-locked",
        )
    return parse_lock(files(__package__) / f"kafka-{kafka}.json")


def parse_lock(file: Traversable) -> Lock:
    """Read a lock file."""
    document = json.loads(file.read_text(encoding="utf-8"))
    if document.get("format") != LOCK_FORMAT:
        raise LabError(f"{file.name} has lock format {document.get('format')}, this kelr reads {LOCK_FORMAT}")
    jars = (LockedJar(jar["coordinates"], jar["size"], jar["sha256"]) for jar in document["jars"])
    return Lock(document["kafka"], tuple(jars))


def _is_lock(name: str) -> bool:
    return name.startswith("kafka-") and name.endswith(".json")
