"""Reading disks changes nothing: every file operation of whole commands is watched, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sources.disks import Disk, Run

WATCHED = """
import fcntl, io, json, os, sys
sys.path[:0] = json.loads(sys.argv[2])
root, found = sys.argv[1], []

def inside(*names):
    return any(os.path.realpath(os.fsdecode(name)).startswith(root) for name in names if isinstance(name, (str, bytes)))

CHANGES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename", "os.rmdir",
    "os.setxattr", "os.symlink", "os.truncate", "os.utime", "os.mkfifo", "os.mknod", "os.chflags", "os.lchmod",
}
LOCKS = {fcntl.F_SETLK, fcntl.F_SETLKW}
opened = []

def watch(event, given):
    if event == "open":
        path, mode, flags = given
        if inside(path):
            opened.append(os.fsdecode(path))
            wrong = os.O_CREAT | os.O_TRUNC | os.O_APPEND
            if flags & os.O_ACCMODE != os.O_RDONLY or flags & wrong or (mode and set(mode) & set("wax+")):
                found.append([event, os.fsdecode(path), str(mode), flags])
    elif event in CHANGES or event.startswith("shutil."):
        if inside(*given):
            found.append([event, *map(str, given)])
    elif event in ("fcntl.flock", "fcntl.lockf") or (event == "fcntl.fcntl" and given[1] in LOCKS):
        found.append([event, *map(str, given)])

sys.addaudithook(watch)
"""
RUN = (
    WATCHED
    + """
from kelr.commands.main import main
from kelr.sources.disk import processes

codes = []
for arguments in json.loads(sys.argv[3]):
    sys.stdout = io.StringIO()
    codes.append(main(arguments))
sys.stdout = sys.__stdout__
print(json.dumps({"codes": codes, "found": found, "opened": sorted(set(opened))}))
"""
)
WORKER = (
    WATCHED
    + """
import marshal
from kelr.sources.disk import processes
from kelr.sources.disk.reading import read_log_directories
from pathlib import Path

tasks = []
def kept(parts, clock_ms, *, workers):
    task, answer = io.BytesIO(), io.BytesIO()
    marshal.dump(processes._task(parts, clock_ms()), task)
    task.seek(0)
    processes._work(task, answer)
    tasks.append(answer.getvalue())
    return iter(())
processes.by_processes = kept
processes.FOR_PROCESSES, processes.WAITS_S, processes.cores = 0, 1000, lambda: 2
read_log_directories([Path(root)], clock_ms=lambda: 0)
print(json.dumps({"codes": [len(tasks)], "found": found, "opened": sorted(set(opened))}))
"""
)
PROVOKE = (
    WATCHED
    + """
for provoke in (
    lambda: open(root + "/x", "w"),
    lambda: os.open(root + "/x", os.O_RDWR),
    lambda: os.utime(root),
    lambda: os.remove(root + "/x"),
    lambda: fcntl.fcntl(os.open(root, os.O_RDONLY), fcntl.F_SETLK, b"0" * 32),
):
    try:
        provoke()
    except OSError:
        pass
print(json.dumps({"codes": [], "found": found, "opened": sorted(set(opened))}))
"""
)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """Each way in which a log is read: whole, torn, without index, with a compaction that was interrupted."""
    made = Disk(tmp_path / "data")
    for number in range(70):
        made.filled(f"orders-{number}")
    torn = made.filled("torn-0", [Run(0, 8)])
    log = torn.path / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-5])
    (made.filled("bare-0").path / f"{0:020d}.index").unlink()
    (made.filled("swap-0").path / f"{0:020d}.log").rename(made.path / "swap-0" / f"{0:020d}.log.swap")
    (made.filled("lineage-0").path / "leader-epoch-checkpoint").unlink()
    made.replica("orders-0.5a5f7d6b2f5b4b2d8f2b-future")
    return made


def watched(script: str, disk: Disk, *arguments: object) -> dict[str, list[Any]]:
    given = [str(disk.path), json.dumps(sys.path), *map(json.dumps, arguments)]
    ran = subprocess.run(
        [sys.executable, "-c", script, *given], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told: dict[str, list[Any]] = json.loads(ran.stdout.splitlines()[-1])
    return told


def everything(root: Path) -> dict[str, tuple[int, ...] | tuple[int, int, int, bytes]]:
    """Mode, owner, times of content and of attributes, and content; reading alone may move the time of access."""
    found: dict[str, tuple[int, ...] | tuple[int, int, int, bytes]] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        of = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (of.st_mode, of.st_mtime_ns, of.st_ctime_ns, content)
    return found


@pytest.mark.parametrize("clean", [True, False])
def test_whole_commands_only_read(disk: Disk, tmp_path: Path, *, clean: bool) -> None:
    if clean:
        disk.clean()
    for path in sorted(disk.path.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    disk.path.chmod(0o555)
    before = everything(disk.path)
    at = str(disk.path)
    commands = [
        ["log-info", "--log-dir", at, "--lineage", "-o", "json"],
        ["log-info", "--log-dir", f"{at}/torn-0", "--log-dir", at, "torn:0"],
        ["snapshot", str(tmp_path / "disk.kelr"), "--log-dir", at],
        ["recover", "collect", "--log-dir", at, "--out", str(tmp_path / "collected.kelr")],
    ]
    told = watched(RUN, disk, commands)
    assert told["codes"] == [0, 0, 0, 0]
    assert told["found"] == []
    # What the hook would have seen.
    assert {f"{at}/.lock", f"{at}/torn-0/{0:020d}.log", f"{at}/lineage-0/partition.metadata"} <= set(told["opened"])
    assert everything(disk.path) == before
    for path in [disk.path, *disk.path.rglob("*")]:
        os.chmod(path, 0o755)  # so that pytest can clear it away


def test_a_worker_only_reads(disk: Disk) -> None:
    told = watched(WORKER, disk)
    assert told["codes"] == [1]
    assert told["found"] == []
    assert f"{disk.path}/torn-0/{0:020d}.log" in told["opened"]


def test_the_watch_sees_what_it_is_there_for(disk: Disk) -> None:
    found = watched(PROVOKE, disk)["found"]
    assert [one[0] for one in found] == [
        "open",
        "open",
        "os.utime",
        "os.remove",
        "fcntl.fcntl",
    ]
