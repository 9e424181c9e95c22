"""The single file: unpacks itself once, runs nothing that was not built, and says plainly where it cannot run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.documents.blocks import ROOT

PYTHON = sys._base_executable  # type: ignore[attr-defined]
"""Python without this environment, in which kelr is installed already."""
PROGRAM = '''
"""Stands for kelr: says from where it runs, and what it was given."""
import os
import subprocess
import sys

def main():
    print(os.path.dirname(os.path.abspath(__file__)), *sys.argv[1:], flush=True)
    if sys.argv[1:] == ["again"]:
        code = "import kelr.commands.main as found; print(found.__file__)"
        return subprocess.run([sys.executable, "-c", code]).returncode
    return 6
'''


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    path = ROOT / "packaging" / "single_file.py"
    spec = importlib.util.spec_from_file_location("single_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    directory = tmp_path / "packages"
    for name, text in {
        "kelr/__init__.py": "",
        "kelr/__main__.py": "from kelr.commands.main import main as start",
        "kelr/commands/__init__.py": "",
        "kelr/commands/main.py": PROGRAM,
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def single(builder: ModuleType, packages: Path, tmp_path: Path) -> Path:
    packed: Path = builder.pack(packages, tmp_path / "kelr.pyz")
    return packed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def run(single: Path, home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "PATH": os.defpath, **variables}
    command = [PYTHON, str(single), *arguments]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=60)


def built(single: Path) -> str:
    with zipfile.ZipFile(single) as archive:
        return str(json.loads(archive.read("build.json"))["id"])


def test_the_first_start_unpacks_and_the_second_does_not(single: Path, home: Path) -> None:
    first = run(single, home, "describe", "--leaderless", TMPDIR=str(home))
    assert [path.name for path in home.iterdir()] == [".cache"]
    site = home / ".cache" / "kelr" / "single-file" / built(single)
    assert (first.returncode, first.stderr) == (6, "")
    assert first.stdout.split() == [str(site / "kelr" / "commands"), "describe", "--leaderless"]
    assert [path.name for path in site.parent.iterdir()] == [site.name]
    made = (site / "kelr" / "__init__.py").stat()
    assert run(single, home).returncode == 6
    assert (site / "kelr" / "__init__.py").stat().st_ino == made.st_ino


def test_what_kelr_starts_finds_the_same_packages(single: Path, home: Path) -> None:
    done = run(single, home, "again")
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert second == f"{first.removesuffix(' again')}/main.py"


def test_a_file_that_was_changed_is_not_run(builder: ModuleType, packages: Path, home: Path, tmp_path: Path) -> None:
    whole = builder.pack(packages, tmp_path / "whole.pyz")
    changed = tmp_path / "changed.pyz"
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(changed, "w") as target:
        for name in archive.namelist():
            content = archive.read(name)
            target.writestr(name, content.replace(b"return 6", b"return 0") if name.endswith("main.py") else content)
    done = run(changed, home)
    assert done.returncode == 5
    assert "kelr/commands/main.py in this file is not what was built: its hash differs" in done.stderr
    assert "fix: copy the file again" in done.stderr
    assert list((home / ".cache" / "kelr" / "single-file").iterdir()) == []


def test_a_file_that_went_missing_is_unpacked_again(single: Path, home: Path) -> None:
    run(single, home)
    lost = home / ".cache" / "kelr" / "single-file" / built(single) / "kelr" / "commands" / "main.py"
    lost.unlink()
    assert run(single, home).returncode == 6
    assert lost.is_file()


def test_two_first_starts_at_once_both_run(single: Path, home: Path) -> None:
    environment = {"HOME": str(home), "PATH": os.defpath}
    command = [PYTHON, str(single)]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait(60) for process in started] == [6] * 4
    assert [path.name for path in (home / ".cache" / "kelr" / "single-file").iterdir()] == [built(single)]


def test_without_a_home_it_unpacks_to_a_directory_of_its_own(single: Path, home: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = run(single, home, HOME="", TMPDIR=str(temporary))
    assert done.returncode == 6
    base = temporary / f"kelr-{os.getuid()}"
    assert base.stat().st_mode & 0o777 == 0o700
    assert done.stdout.startswith(f"{base}/")


def test_a_directory_that_others_may_write_to_is_not_used(single: Path, home: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "shared" / "single-file"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    done = run(single, home, KELR_CACHE_DIR=str(open_to_all.parent))
    assert (done.returncode, done.stdout) == (5, "")
    assert f"no place to unpack to; {open_to_all}: others may write there" in done.stderr
    assert "KELR_CACHE_DIR" in done.stderr
    assert list(open_to_all.iterdir()) == []


def test_another_python_is_refused_in_a_sentence(single: Path, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pyz"
    with zipfile.ZipFile(single) as archive, zipfile.ZipFile(other, "w") as target:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "build.json":
                content = json.dumps({**json.loads(content), "for": [[3, 99], "cpython", "linux", "riscv64"]}).encode()
            target.writestr(name, content)
    done = run(other, home)
    assert (done.returncode, done.stdout) == (5, "")
    assert "this file is for cpython 3.99 on linux riscv64, and this is " in done.stderr
    assert not (home / ".cache").exists()


def test_the_same_packages_make_the_same_bytes(builder: ModuleType, packages: Path, tmp_path: Path) -> None:
    first, second = (builder.pack(packages, tmp_path / name).read_bytes() for name in ("a.pyz", "b.pyz"))
    assert first == second
