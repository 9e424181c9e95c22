"""``python packaging/distributions.py DIR``: builds kelr's wheel and source distribution, and checks what is in them.

They are built from a copy of the tree, so that nothing that an earlier build left behind gets in.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Set as AbstractSet
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SOURCES = (
    *("kelr", "commands", "completions", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.in"),
    *("Makefile", "requirements-run.lock"),
)
_DATA = (
    *("kelr/py.typed", "kelr/errors/catalogue.toml", "kelr/lab/locks/*.json", "kelr/protocol/schemas/*.json"),
    *("kelr/simulation/scenarios/*.txt", "kelr/lab/simulated/handlers/*.txt"),
    *("kelr/*/templates/*", "kelr/*/*/templates/*"),
)


def build(directory: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, made in a directory."""
    with tempfile.TemporaryDirectory() as name:
        tree, made = Path(name) / "kelr", Path(name) / "made"
        tree.mkdir()
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for source in _SOURCES:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, tree / source, ignore=ignore)
            else:
                shutil.copy2(ROOT / source, tree / source)
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(tree)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        directory.mkdir(parents=True, exist_ok=True)
        wheel, source_distribution = next(made.glob("*.whl")), next(made.glob("*.tar.gz"))
        return Path(shutil.copy2(wheel, directory)), Path(shutil.copy2(source_distribution, directory))


def wanted() -> set[str]:
    """Every file of the package, by its name in the wheel."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kelr").rglob("*.py")}
    found |= {f"kelr/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "commands").rglob("*.py")}
    return found | {path.relative_to(ROOT).as_posix() for pattern in _DATA for path in ROOT.glob(pattern)}


def wheel_problems(names: AbstractSet[str]) -> list[str]:
    """What is missing from a wheel with these files, or does not belong into it."""
    files = {name for name in names if not name.endswith("/") and ".dist-info/" not in name}
    return [f"missing: {name}" for name in sorted(wanted() - files)] + [
        f"not of the package: {name}" for name in sorted(files - wanted())
    ]


def source_problems(names: AbstractSet[str]) -> list[str]:
    """The same of a source distribution, whose files are below a directory of its own."""
    files = {name.partition("/")[2] for name in names}
    expected = {name.replace("kelr/commands/", "commands/", 1) for name in wanted()}
    needed = expected | {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO", "completions/kelr.bash"}
    strangers = {name for name in files if name.split("/")[0] in {"tests", "docs", "benchmarks", "build", ".venv"}}
    return [f"missing: {name}" for name in sorted(needed - files)] + [
        f"does not belong there: {name}" for name in sorted(strangers)
    ]


def _main(arguments: list[str]) -> int:
    wheel, source_distribution = build(Path(arguments[0]))
    with zipfile.ZipFile(wheel) as archive:
        found = [f"{wheel.name}: {line}" for line in wheel_problems(set(archive.namelist()))]
    with tarfile.open(source_distribution) as archive:
        found += [f"{source_distribution.name}: {line}" for line in source_problems(set(archive.getnames()))]
    for line in found:
        sys.stderr.write(f"{line}\n")
    if not found:
        sys.stdout.write(f"{wheel}\n{source_distribution}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
