"""Kafka's jars: fetched through jgo as the lock says, verified, and kept in the user's cache directory.

Layout of the cache: ``jars/`` is a Maven repository; ``verified/<lock>.json`` holds size and mtime of each file that
was hashed, so that a warm start only looks at file metadata; ``staging-<pid>-...`` are downloads that are not verified
yet. A file gets its final name by a rename, after its size and SHA-256 were right: a kelr killed in the middle leaves
no half file under a final name, and two kelr that fetch at once replace a file by an equal one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from pathlib import Path

from kelr.durable import make_directory
from kelr.errors import ConnectError, KelrError, LabError
from kelr.lab.locks import Lock, LockedJar

Download = Callable[[LockedJar, Path], Path]
"""Downloads a jar somewhere below the given staging directory and returns the file."""
Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all)."""
AT_ONCE = 6
ATTEMPTS = 3
_UNDER_WAY_S = 2.0
"""How long a failed fetch waits for the downloads that are under way; one that hangs longer is left behind."""


def cache_directory() -> Path:
    """``KELR_CACHE_DIR``, else the platform's cache directory for kelr."""
    chosen = os.environ.get("KELR_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    from platformdirs import user_cache_path  # noqa: PLC0415

    return user_cache_path("kelr")


def obtain_jars(
    lock: Lock,
    cache: Path,
    *,
    report: Callable[[str], None] = lambda _line: None,
    progress: Progress = lambda _done, _total: None,
    download: Download | None = None,
) -> tuple[Path, ...]:
    """All jars of the lock as verified files in the cache; downloads those that are missing or damaged.

    Args:
        download: how a jar is brought; jgo by default.

    Raises:
        ConnectError: a jar cannot be downloaded.
        LabError: a jar is not what the lock says, there is no room for it, or jgo is not installed.
    """
    cached = _JarCache(cache, lock)
    missing = cached.missing(report)
    if missing:
        size_mb = sum(jar.size for jar in missing) / 1e6
        report(f"fetching {len(missing)} of {len(lock.jars)} jars of Kafka {lock.kafka} ({size_mb:.0f} MB)")
        with _explained(cache):
            cached.fetch(missing, download or _jgo_download, progress)
        report(f"fetched and verified the jars of Kafka {lock.kafka}")
    return tuple(cached.place(jar) for jar in lock.jars)


class _JarCache:
    def __init__(self, cache: Path, lock: Lock) -> None:
        self._cache = cache
        self._lock = lock
        self._marker = cache / "verified" / f"kafka-{lock.kafka}-{lock.fingerprint}.json"

    def place(self, jar: LockedJar) -> Path:
        return self._cache / "jars" / jar.path

    def missing(self, report: Callable[[str], None]) -> list[LockedJar]:
        """Jars that are not there, or are not what the lock says; those are removed."""
        known = self._read_marker()
        missing: list[LockedJar] = []
        hashed = False
        for jar in self._lock.jars:
            place = self.place(jar)
            stamp = _stamp(place)
            if stamp is None:
                missing.append(jar)
            elif known.get(jar.path) != stamp:
                hashed = True
                if fault := _fault(place, jar):
                    report(f"removing a damaged file from the cache: {place} {fault}")
                    place.unlink(missing_ok=True)
                    missing.append(jar)
        if hashed and not missing:
            self._write_marker()
        return missing

    def fetch(self, jars: list[LockedJar], download: Download, progress: Progress) -> None:
        total = sum(jar.size for jar in jars)
        done = 0
        progress(done, total)
        pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kelr-jars")
        with self._staging() as staging:
            futures = {pool.submit(self._fetch_one, jar, staging, download): jar for jar in jars}
            try:
                for future in as_completed(futures):
                    future.result()
                    done += futures[future].size
                    progress(done, total)
            except Exception:
                # Downloads that are under way would make the directory again while it is being removed.
                pool.shutdown(wait=False, cancel_futures=True)
                wait([one for one in futures if not one.cancelled()], timeout=_UNDER_WAY_S)
                raise
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # a download that hangs is not waited for
        self._write_marker()

    def _fetch_one(self, jar: LockedJar, staging: Path, download: Download) -> None:
        staged = _with_retries(jar, staging, download)
        if fault := _fault(staged, jar):
            staged.unlink(missing_ok=True)
            raise LabError(
                f"the download of {jar.coordinates} {fault}; the file was deleted",
                next_step="run the same command again; if it happens again, a proxy or mirror alters downloads",
                code="jar-not-as-locked",
            )
        place = self.place(jar)
        make_directory(place.parent)
        staged.replace(place)

    @contextmanager
    def _staging(self) -> Iterator[Path]:
        make_directory(self._cache)
        for left in self._cache.glob("staging-*-*"):
            if not _running(left.name.split("-")[1]):
                shutil.rmtree(left, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=f"staging-{os.getpid()}-", dir=self._cache))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _read_marker(self) -> dict[str, list[int]]:
        try:
            marker = json.loads(self._marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return marker if isinstance(marker, dict) else {}

    def _write_marker(self) -> None:
        stamps = {jar.path: _stamp(self.place(jar)) for jar in self._lock.jars}
        make_directory(self._marker.parent)
        with tempfile.NamedTemporaryFile("w", dir=self._marker.parent, delete=False, encoding="utf-8") as draft:
            draft.write(json.dumps(stamps))
        Path(draft.name).replace(self._marker)


def _with_retries(jar: LockedJar, staging: Path, download: Download) -> Path:
    """Download into a fresh directory each time: jgo takes a half file that it finds for a whole one."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return download(jar, staging / f"{attempt}")
        except (ImportError, PermissionError):
            raise
        except Exception as error:
            if _is_no_room(error):
                raise
    return download(jar, staging / f"{ATTEMPTS - 1}")


def _stamp(file: Path) -> list[int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def _fault(file: Path, jar: LockedJar) -> str | None:
    """Why the file is not the locked jar, or None where it is."""
    try:
        size = file.stat().st_size
        if size != jar.size:
            return f"has {size} bytes where the lock has {jar.size}"
        digest = _sha256(file)
    except FileNotFoundError:
        return "is gone (another kelr removed it)"
    return None if digest == jar.sha256 else f"has SHA-256 {digest} where the lock has {jar.sha256}"


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _jgo_download(jar: LockedJar, staging: Path) -> Path:
    """Fetch one jar with jgo, exactly as locked, without resolving anything."""
    from jgo.maven import MavenContext  # noqa: PLC0415

    group, artifact, version = jar.coordinates.split(":")
    context = MavenContext(repo_cache=staging, timeout=15)
    return Path(context.project(group, artifact).at_version(version).artifact().resolve())


@contextmanager
def _explained(cache: Path) -> Iterator[None]:
    """What goes wrong in a download, as an error that says what to do."""
    try:
        yield
    except LabError:
        raise
    except ImportError as error:
        raise LabError(f"the lab needs jgo to fetch Kafka ({error})", next_step="pip install 'kelr[lab]'") from error
    except Exception as error:
        raise _explain(error, cache) from error


def _explain(error: BaseException, cache: Path) -> KelrError:
    if _is_no_room(error):
        return LabError(
            f"no room for Kafka's jars in {cache} ({_shortened(error)})",
            next_step="free some space, or point KELR_CACHE_DIR to another disk",
        )
    if any(isinstance(cause, PermissionError) for cause in _chain(error)):
        return LabError(
            f"cannot write Kafka's jars to {cache} ({error})", next_step="set KELR_CACHE_DIR to your own directory"
        )
    return ConnectError(
        f"Kafka's jars could not be downloaded ({_shortened(error)})",
        next_step="check the network and proxy settings (HTTPS_PROXY), then run the same command again: "
        "what was fetched is kept",
        code="jars-unreachable",
    )


def _is_no_room(error: BaseException) -> bool:
    return any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in _chain(error))


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _shortened(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + "..."
