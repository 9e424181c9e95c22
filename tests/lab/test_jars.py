"""The cache of Kafka's jars: whole, half, damaged, without network, without room, shared."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests

from kelr.errors import ConnectError, LabError
from kelr.lab.jars import ATTEMPTS, cache_directory, obtain_jars
from kelr.lab.locks import Lock, LockedJar

CONTENTS = {f"g:jar-{number}:1.0": f"content of jar {number}".encode() for number in range(5)}
LOCK = Lock(
    "1.2.3",
    tuple(LockedJar(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()),
)


class Shop:
    """Stands in for jgo: writes a jar into the staging directory, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.contents = dict(CONTENTS)
        self.failures: dict[str, list[Exception]] = {}

    def download(self, jar: LockedJar, staging: Path) -> Path:
        self.asked.append(jar.coordinates)
        target = staging / jar.path
        target.parent.mkdir(parents=True)
        if self.failures.get(jar.coordinates):
            target.write_bytes(b"half")
            raise self.failures[jar.coordinates].pop()
        target.write_bytes(self.contents[jar.coordinates])
        return target


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_cold_cache_is_filled_and_a_warm_one_asks_nobody(tmp_path: Path, shop: Shop) -> None:
    lines: list[str] = []
    counts: list[tuple[int, int]] = []
    files = obtain_jars(
        LOCK, tmp_path, report=lines.append, progress=lambda *count: counts.append(count), download=shop.download
    )
    assert [file.read_bytes() for file in files] == list(CONTENTS.values())
    assert sorted(shop.asked) == sorted(CONTENTS)
    assert lines[0].startswith("fetching 5 of 5 jars of Kafka 1.2.3")
    assert counts[0] == (0, LOCK.size)
    assert counts[-1] == (LOCK.size, LOCK.size)
    assert obtain_jars(LOCK, tmp_path, report=lines.append, download=shop.download) == files
    assert len(shop.asked) == 5
    assert len(lines) == 2


def test_a_warm_start_hashes_nothing(tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    obtain_jars(LOCK, tmp_path, download=shop.download)

    def no_hashing(_file: Path) -> str:
        raise AssertionError("hashed a file that had not changed")

    monkeypatch.setattr("kelr.lab.jars._sha256", no_hashing)
    obtain_jars(LOCK, tmp_path, download=shop.download)


def test_half_a_cache_is_completed(tmp_path: Path, shop: Shop) -> None:
    files = obtain_jars(LOCK, tmp_path, download=shop.download)
    files[1].unlink()
    files[3].unlink()
    shop.asked.clear()
    assert obtain_jars(LOCK, tmp_path, download=shop.download) == files
    assert sorted(shop.asked) == ["g:jar-1:1.0", "g:jar-3:1.0"]


@pytest.mark.parametrize("damage", [b"content of jar X", b"short", b""])
def test_a_file_that_changed_is_noticed_removed_and_fetched_again(tmp_path: Path, shop: Shop, damage: bytes) -> None:
    files = obtain_jars(LOCK, tmp_path, download=shop.download)
    files[2].write_bytes(damage)
    lines: list[str] = []
    obtain_jars(LOCK, tmp_path, report=lines.append, download=shop.download)
    assert files[2].read_bytes() == CONTENTS["g:jar-2:1.0"]
    assert lines[0].startswith(f"removing a damaged file from the cache: {files[2]} has ")


def test_a_file_that_was_only_touched_is_hashed_and_kept(tmp_path: Path, shop: Shop) -> None:
    files = obtain_jars(LOCK, tmp_path, download=shop.download)
    os.utime(files[0], (1, 1))
    obtain_jars(LOCK, tmp_path, download=shop.download)
    assert len(shop.asked) == 5


def test_a_download_with_a_wrong_checksum_is_deleted_and_said(tmp_path: Path, shop: Shop) -> None:
    shop.contents["g:jar-4:1.0"] = b"content of jar 5"
    with pytest.raises(LabError, match=r"the download of g:jar-4:1\.0 has SHA-256 .* the file was deleted"):
        obtain_jars(LOCK, tmp_path, download=shop.download)
    assert not list(tmp_path.rglob("jar-4-1.0.jar"))


def test_no_network_says_so_and_keeps_what_was_fetched(tmp_path: Path, shop: Shop) -> None:
    shop.failures["g:jar-4:1.0"] = [requests.ConnectionError("Name or service not known") for _ in range(ATTEMPTS)]
    with pytest.raises(ConnectError, match=r"could not be downloaded.*Name or service not known") as caught:
        obtain_jars(LOCK, tmp_path, download=shop.download)
    assert "HTTPS_PROXY" in (caught.value.next_step or "")
    assert not list(tmp_path.glob("staging-*"))
    shop.asked.clear()
    obtain_jars(LOCK, tmp_path, download=shop.download)
    assert "g:jar-4:1.0" in shop.asked
    assert len(shop.asked) < 5


def test_a_connection_that_breaks_once_is_tried_again(tmp_path: Path, shop: Shop) -> None:
    shop.failures["g:jar-1:1.0"] = [requests.exceptions.ChunkedEncodingError("connection broken")]
    files = obtain_jars(LOCK, tmp_path, download=shop.download)
    assert files[1].read_bytes() == CONTENTS["g:jar-1:1.0"]
    assert shop.asked.count("g:jar-1:1.0") == 2


def test_a_full_disk_says_so_and_is_not_tried_again(tmp_path: Path, shop: Shop) -> None:
    shop.failures["g:jar-0:1.0"] = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]
    with pytest.raises(LabError, match="no room for Kafka's jars") as caught:
        obtain_jars(LOCK, tmp_path, download=shop.download)
    assert "KELR_CACHE_DIR" in (caught.value.next_step or "")
    assert shop.asked.count("g:jar-0:1.0") == 1
    assert not list(tmp_path.glob("staging-*"))


def test_a_download_that_is_under_way_when_another_fails_leaves_nothing(tmp_path: Path, shop: Shop) -> None:
    """It would make the directory again that is being removed."""
    shop.failures["g:jar-0:1.0"] = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]

    def slow(jar: LockedJar, staging: Path) -> Path:
        if jar.coordinates != "g:jar-0:1.0":
            time.sleep(0.3)
        return shop.download(jar, staging)

    with pytest.raises(LabError, match="no room for Kafka's jars"):
        obtain_jars(LOCK, tmp_path, download=slow)
    time.sleep(0.5)
    assert not list(tmp_path.glob("staging-*"))


def test_without_jgo_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(LabError, match="needs jgo") as caught:
        obtain_jars(LOCK, tmp_path)
    assert caught.value.next_step == "pip install 'kelr[lab]'"


def test_a_fetch_that_was_killed_leaves_nothing_under_a_final_name(tmp_path: Path, shop: Shop) -> None:
    script = f"""
import hashlib, os, sys, time
from pathlib import Path
from kelr.lab.jars import obtain_jars
from kelr.lab.locks import Lock, LockedJar
def download(jar, staging):
    target = staging / jar.path
    target.parent.mkdir(parents=True)
    target.write_bytes(b"half")
    print("half", flush=True)
    time.sleep(60)
jars = (LockedJar("g:jar-0:1.0", {LOCK.jars[0].size}, "{LOCK.jars[0].sha256}"),)
obtain_jars(Lock("1.2.3", jars), Path({str(tmp_path)!r}), download=download)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.kill()
    assert len(list(tmp_path.glob("staging-*"))) == 1
    assert not list((tmp_path / "jars").rglob("*.jar"))
    obtain_jars(LOCK, tmp_path, download=shop.download)
    assert not list(tmp_path.glob("staging-*"))


def test_two_at_once_do_not_break_each_other(tmp_path: Path) -> None:
    both_are_fetching = threading.Barrier(2, timeout=20)
    results: list[tuple[Path, ...]] = []

    def run() -> None:
        shop = Shop()

        def download(jar: LockedJar, staging: Path) -> Path:
            if jar is LOCK.jars[0]:
                both_are_fetching.wait()
            return shop.download(jar, staging)

        results.append(obtain_jars(LOCK, tmp_path, download=download))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 2
    assert [file.read_bytes() for file in results[0]] == list(CONTENTS.values())


def test_the_cache_is_where_the_variable_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KELR_CACHE_DIR", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("KELR_CACHE_DIR")
    assert cache_directory().name == "kelr"
