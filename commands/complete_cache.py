"""What completion remembers of a cluster for a minute: topics with their partition counts, and brokers.

One file for each cluster as it was named (flags, environment, contexts file), in the user's cache directory, readable
by its owner only, written whole or not at all. It holds no secret, and its name is a hash of what holds none. The first
line is a JSON object, each further one ``topic<TAB>partitions``, sorted, so that a prefix is found without reading the
rest.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FORMAT = 1
FRESH_S = 60.0
"""So long an answer is taken as it is."""
STALE_S = 600.0
"""So long it is better than none while a newer one is read."""
FAILED_S = 10.0
"""So long after a failure the cluster is left alone."""
MOST_BYTES = 32 << 20
"""What is larger (about a million topics) is not kept; then nothing is offered."""
MOST_FILES = 64
_KEPT_S = 86_400.0


class Known(NamedTuple):
    """What is remembered of one cluster."""

    head: Mapping[str, Any]
    topics: bytes
    """Lines, each with a line end before it and one after the last."""
    age_s: float

    def brokers(self) -> list[Mapping[str, Any]]:
        """``{"id", "status", "rack", "address"}`` of each broker, by id."""
        return [broker for broker in self.head.get("brokers", ()) if isinstance(broker, dict)]

    def topics_with(self, prefix: str) -> Iterator[tuple[str, int]]:
        """(name, partitions) of the topics whose names begin so, sorted."""
        begin = b"\n" + prefix.encode()
        at = self.topics.find(begin)
        while at >= 0 and self.topics.startswith(begin, at):
            end = self.topics.find(b"\n", at + 1)
            if end < 0:
                return
            name, _, count = self.topics[at + 1 : end].partition(b"\t")
            if count.isdigit():
                yield name.decode(), int(count)
            at = end


def cache_directory(environ: Mapping[str, str]) -> str:
    """Where the files are; it may not exist yet."""
    chosen = environ.get("KELR_CACHE_DIR")
    if not chosen:
        import platformdirs  # noqa: PLC0415 - the variable spares it

        chosen = platformdirs.user_cache_dir("kelr", appauthor=False)
    return os.path.join(os.path.abspath(chosen), "completion")


class Cache:
    """The file of one cluster.

    Args:
        named: everything that says which cluster is meant, without secrets.
    """

    def __init__(self, directory: str, named: Sequence[object]) -> None:
        digest = hashlib.sha256(json.dumps([FORMAT, *named], default=str).encode()).hexdigest()
        self.directory = directory
        self.path = os.path.join(directory, f"{digest[:32]}.topics")
        self._lock_path = self.path + ".lock"
        self._failed_path = self.path + ".failed"

    def read(self) -> Known | None:
        """What is remembered, whatever its age; None where there is nothing, or somebody else could have written it."""
        try:
            with open(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                status = os.fstat(file.fileno())
                if not _is_ours(status) or status.st_size > MOST_BYTES:
                    return None
                text = file.read()
            line, _, _ = text.partition(b"\n")
            head = json.loads(line)
            age_s = time.time() - status.st_mtime
            if not isinstance(head, dict) or head.get("format") != FORMAT or not text.endswith(b"\n") or age_s < -1:
                return None
        except (OSError, ValueError):
            return None
        return Known(head, text[len(line) :], age_s)

    def failed_lately(self) -> bool:
        """Whether the cluster could not be read a moment ago."""
        try:
            return 0 <= time.time() - os.stat(self._failed_path).st_mtime < FAILED_S
        except OSError:
            return False

    def lock(self) -> int | None:
        """A descriptor that holds the right to read the cluster; None where another process has it, or nothing can be
        kept. It is given back when the last process that has it open closes it or ends."""
        from pathlib import Path  # noqa: PLC0415 - what is remembered is read without it

        from kelr.durable import make_directory  # noqa: PLC0415 - as above

        try:
            make_directory(Path(self.directory))
            if not _is_ours(os.stat(self.directory)):
                return None
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def write(self, topics: Iterable[tuple[str, int]], brokers: Sequence[Mapping[str, Any]]) -> None:
        """Remember this, and forget what is old. Raises OSError."""
        head = json.dumps({"format": FORMAT, "brokers": list(brokers)})
        lines = sorted(f"{name}\t{count}".encode() for name, count in topics)
        data = b"\n".join([head.encode(), *lines, b""])
        if len(data) > MOST_BYTES:
            raise OSError(f"{len(data)} bytes are too many to remember")
        part = f"{self.path}.{os.getpid()}.part"
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(data)
            os.replace(part, self.path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(part)
        with contextlib.suppress(OSError):
            os.unlink(self._failed_path)
        self._prune()

    def remember_failure(self) -> None:
        """Leave the cluster alone for a moment."""
        with contextlib.suppress(OSError):
            os.close(os.open(self._failed_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
            os.utime(self._failed_path)

    def _prune(self) -> None:
        """Keep the newest files, and none from yesterday."""
        aged = []
        with os.scandir(self.directory) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    aged.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
        aged.sort(reverse=True)
        for place, (changed_at, path) in enumerate(aged):
            if place >= MOST_FILES or time.time() - changed_at > _KEPT_S:
                with contextlib.suppress(OSError):
                    os.unlink(path)


def _is_ours(status: os.stat_result) -> bool:
    """Whether it belongs to this user, and nobody else can write it."""
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o022
