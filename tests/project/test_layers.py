"""The rules of the layers are in pyproject.toml and checked by `make imports`; here, that they can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """kelr's sources with commands/ in its place."""
    shutil.copytree(ROOT / "kelr", tmp_path / "kelr", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "commands", tmp_path / "kelr" / "commands", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name("lint-imports")
    command = [str(tool), "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    return subprocess.run(
        command, cwd=tree, env={"PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_rules_hold(tree: Path) -> None:
    done = lint(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("engine/situation.py", "import time"),
        ("model/partition.py", "import kelr.errors"),
        ("view/table.py", "import kelr.sources.base"),
        ("sources/base.py", "import kelr.view.output"),
        ("controller/rules.py", "import kelr.engine"),
        ("lab/spec.py", "import kelr.commands.main"),
        ("errors/catalogue.py", "import kelr.model"),
        ("rescue/dump.py", "import confluent_kafka"),
        ("recovery/apply.py", "import kafka"),
    ],
)
def test_a_broken_rule_is_found(tree: Path, module: str, line: str) -> None:
    path = tree / "kelr" / module
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    done = lint(tree)
    assert done.returncode == 1, done.stdout
    assert "BROKEN" in done.stdout
