"""kelr without the extra that `kelr fleet` needs: everything else works, and it says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT

MISSING = ("pyspark", "pyarrow", "pandas", "jinja2", "markupsafe", "numpy")
BLOCKED = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {MISSING!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from kelr.commands.main import main
sys.exit(main(sys.argv[1:]))
"""


def kelr(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kelr where none of these can be imported."""
    command = [sys.executable, "-c", BLOCKED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("fleet", "--help"), ("fleet", "report", "--help"), ("whatif", "--help"), ("schema",)],
)
def test_the_rest_does_not_need_it(arguments: tuple[str, ...]) -> None:
    done = kelr(*arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_snapshot_is_read_without_it(tmp_path: Path) -> None:
    write_snapshot(INCIDENT, tmp_path / "incident.kelr")
    done = kelr("describe", "--snapshot", str(tmp_path / "incident.kelr"), "-o", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") > 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--lake", "lake", "--out", "out"),
        ("exposure", "--lake", "lake"),
        ("assess", "--lake", "lake"),
        ("ingest", "x", "--out", "lake"),
    ],
)
def test_a_step_on_spark_says_what_to_install(arguments: tuple[str, ...]) -> None:
    done = kelr("fleet", *arguments)
    assert done.returncode == 5, done.stderr
    assert "No module named" in done.stderr
    assert "next: install it with: pip install 'kelr[fleet]'" in done.stderr
    assert done.stdout == ""
