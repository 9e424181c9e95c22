"""The rules of the layers are in pyproject.toml and checked by `make imports`; here, that they can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROKEN = {
    "engine/situation.py": "time",
    "model/partition.py": "kelr.errors",
    "view/table.py": "kelr.sources.base",
    "sources/base.py": "kelr.view.output",
    "controller/rules.py": "kelr.engine",
    "lab/spec.py": "kelr.commands.main",
    "errors/catalogue.py": "kelr.model",
    "rescue/dump.py": "confluent_kafka",
    "recovery/apply.py": "kafka",
}
"""What each may not import."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """kelr's sources with commands/ in its place."""
    shutil.copytree(ROOT / "kelr", tmp_path / "kelr", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "commands", tmp_path / "kelr" / "commands", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_each_broken_rule_is_found(tree: Path) -> None:
    """All in one run: it takes seconds. That they hold where nothing is broken, `make imports` sees."""
    for module, other in BROKEN.items():
        with (tree / "kelr" / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {other}\n")
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(tool), "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stdout
    told = {f"kelr.{module.removesuffix('.py').replace('/', '.')} -> {other} (l." for module, other in BROKEN.items()}
    assert {one for one in told if one not in done.stdout} == set(), done.stdout
