"""Wheel and source distribution: what is in them, and that the wheel works alone in an empty environment."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution, requires
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from kelr import __version__

ROOT = Path(__file__).resolve().parents[2]
HELP_OF_EACH = """
import sys
from kelr.commands.main import main
sys.exit(max(main([command, "--help"]) for command in sys.argv[1:]))
"""


def _script() -> ModuleType:
    """packaging/distributions.py, which is no package."""
    spec = importlib.util.spec_from_file_location("distributions", ROOT / "packaging" / "distributions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


distributions = _script()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """kelr's wheel and source distribution, as `make wheel` builds them."""
    wheel, source_distribution = distributions.build(tmp_path_factory.mktemp("dist"))
    return wheel, source_distribution


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, Path]) -> Path:
    return built[0]


@pytest.fixture(scope="module")
def empty_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and its run-time dependencies, taken from this environment."""
    directory = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    python = directory / "bin" / "python"
    site = Path(_output(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for name in sorted(_needed("kelr")):
        _link_distribution(name, site)
    return directory


def _output(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _needed(name: str) -> set[str]:
    """The distributions that this one needs at run time, extras left out, down to the last."""
    found: set[str] = set()
    left = [name]
    while left:
        for text in requires(left.pop()) or []:
            requirement = Requirement(text)
            if (
                requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ) and requirement.name not in found:
                found.add(requirement.name)
                left.append(requirement.name)
    return found


def _link_distribution(name: str, site: Path) -> None:
    found = distribution(name)
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in {"..", "__pycache__", "bin"}}
    for top in tops:
        target = site / top
        if not target.exists():
            target.symlink_to(Path(str(found.locate_file(top))))


def test_nothing_lands_at_the_top_level_but_kelr(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert tops == {"kelr", f"kelr-{__version__}.dist-info"}


def test_every_module_and_data_file_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert distributions.wheel_problems(names) == []
    for name in (
        "kelr/py.typed",
        "kelr/commands/main.py",
        "kelr/lab/locks/kafka-4.3.1.json",
        "kelr/errors/catalogue.toml",
        "kelr/page/templates/page.css",
    ):
        assert name in names


def test_the_source_distribution_has_what_builds_it_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        assert distributions.source_problems(set(archive.getnames())) == []


def test_what_is_missing_or_does_not_belong_is_found() -> None:
    whole = distributions.wanted()
    lacking = (whole - {"kelr/py.typed"}) | {"kelr/tests/test_x.py", "kelr-0.1.0.dist-info/METADATA"}
    assert distributions.wheel_problems(lacking) == [
        "missing: kelr/py.typed",
        "not of the package: kelr/tests/test_x.py",
    ]
    assert "does not belong there: tests/test_x.py" in distributions.source_problems({"kelr-0.1.0/tests/test_x.py"})


def test_runs_with_its_run_time_dependencies_alone(empty_environment: Path, tmp_path: Path) -> None:
    python = empty_environment / "bin" / "python"
    assert _output(python, "-m", "kelr", "--version", cwd=tmp_path) == f"kelr {__version__}\n"
    help_text = _output(python, "-m", "kelr", "--help", cwd=tmp_path)
    commands = re.findall(r"^│ ([a-z][a-z-]*)  ", help_text, re.MULTILINE)
    assert {"describe", "log-info", "explain", "snapshot", "lab", "demo", "schema"} <= set(commands)
    shown = _output(python, "-c", HELP_OF_EACH, *commands, cwd=tmp_path)
    assert re.findall(r"^ *Usage: kelr (\S+)", shown, re.MULTILINE) == commands


def test_the_entry_point_is_the_main_function(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"kelr-{__version__}.dist-info/entry_points.txt").decode()
    assert text.split() == ["[console_scripts]", "kelr", "=", "kelr.__main__:start"]


@pytest.mark.parametrize(
    ("name", "extras", "group"),
    [
        ("requirements-test.lock", ["lab"], "dev"),
        ("requirements-fleet.lock", ["fleet"], None),
        ("requirements-run.lock", [], None),
    ],
)
def test_a_lock_has_everything_that_is_declared_with_hashes_and_no_index(
    name: str, extras: list[str], group: str | None
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"]
    declared = [
        *project["project"]["dependencies"],
        *(dependency for extra in extras for dependency in optional[extra]),
        *(project["dependency-groups"][group] if group else ()),
    ]
    lock = (ROOT / name).read_text(encoding="utf-8")
    locked = _locked(lock)
    wanted = {re.split(r"[<>=~!\[ ]", dependency)[0].lower().replace("_", "-") for dependency in declared}
    assert wanted - locked.keys() == set()
    assert [package for package, entry in locked.items() if "--hash=sha256:" not in entry] == []
    assert "://" not in lock
    assert set(optional) == {"lab", "fleet"}, "every extra is in a lock"


@pytest.mark.parametrize(
    ("name", "wanted"), [("requirements-docs.lock", {"mkdocs", "mkdocs-material"}), ("requirements-pip.lock", {"pip"})]
)
def test_a_lock_of_a_tool_has_hashes_and_no_index(name: str, wanted: set[str]) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    locked = _locked(lock)
    assert wanted <= locked.keys()
    assert [package for package, entry in locked.items() if "--hash=sha256:" not in entry] == []
    assert "://" not in lock


@pytest.mark.parametrize("other", ["requirements-fleet.lock", "requirements-run.lock"])
def test_locks_go_together(other: str) -> None:
    first, second = (
        {package: entry.split(" ", 1)[0] for package, entry in _locked((ROOT / name).read_text("utf-8")).items()}
        for name in ("requirements-test.lock", other)
    )
    assert {package: (first[package], second[package]) for package in first.keys() & second.keys()} == {
        package: (first[package],) * 2 for package in first.keys() & second.keys()
    }


def _locked(lock: str) -> dict[str, str]:
    """The entries of a lock by the name of the package."""
    return {entry.split("==")[0]: entry for entry in re.split(r"\n(?=[a-z0-9])", lock.strip())}
