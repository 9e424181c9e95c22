"""``python packaging/single_file.py DIR``: builds kelr, and everything that it needs, as one file for this Python.

For a bastion host that has a Python and nothing else. Packages are those of requirements-run.lock, by hash; what the
file does when it is started is in unpack.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import distributions

ROOT = Path(__file__).resolve().parents[1]
_LOCK = ROOT / "requirements-run.lock"
_BOOT = Path(__file__).with_name("unpack.py")
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_SHEBANG = b"#!/usr/bin/env python3\n"


def build(directory: Path) -> Path:
    """The file, made in a directory: its name says for which Python and platform."""
    from kelr import __version__  # noqa: PLC0415 - pack() needs no kelr

    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}-{sys.platform}-{os.uname().machine}"
    with tempfile.TemporaryDirectory() as name:
        site = Path(name) / "site"
        wheel, _ = distributions.build(Path(name))
        with zipfile.ZipFile(wheel) as archive:
            if problems := distributions.wheel_problems(set(archive.namelist())):
                raise SystemExit("\n".join(problems))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
        _run(*pip, "--target", site, "--require-hashes", "--only-binary", ":all:", "-r", _LOCK)
        _run(*pip, "--target", site, "--no-deps", wheel)
        shutil.rmtree(site / "bin", ignore_errors=True)
        for tests in sorted(site.glob("*/**/tests")):
            shutil.rmtree(tests)
        # Nothing is compiled on the bastion host, and no time stamp of unpacking matters.
        modes = ["--invalidation-mode", "unchecked-hash"]
        _run(sys.executable, "-m", "compileall", "-q", "-s", site, *modes, site)
        directory.mkdir(parents=True, exist_ok=True)
        return pack(site, directory / f"kelr-{__version__}-{tag}.pyz")


def pack(site: Path, target: Path) -> Path:
    """One file of what is in a directory of packages; the same bytes for the same packages."""
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    contents = {name: (site / name).read_bytes() for name in names}
    files = {name: [len(content), hashlib.sha256(content).hexdigest()] for name, content in contents.items()}
    listed = json.dumps(files, sort_keys=True)
    made_for = [list(sys.version_info[:2]), sys.implementation.name, sys.platform, os.uname().machine]
    built = {"id": hashlib.sha256(listed.encode()).hexdigest()[:32], "for": made_for}
    with target.open("wb") as file:
        file.write(_SHEBANG)
        with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for name, content in _members(built, listed, contents):
                archive.writestr(zipfile.ZipInfo(name, _FIRST_DATE), content, compress_type=zipfile.ZIP_DEFLATED)
    target.chmod(0o755)
    return target


def _members(built: object, listed: str, contents: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", _BOOT.read_bytes()
    yield "build.json", json.dumps(built).encode()
    yield "files.json", listed.encode()
    for name, content in contents.items():
        yield f"site/{name}", content


def _run(*command: object) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


if __name__ == "__main__":
    made = build(Path(sys.argv[1]))
    sys.stdout.write(f"{made} ({made.stat().st_size / 1e6:.0f} MB)\n")
