"""kelr without the extra that `kelr fleet` needs: everything else works, and it says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT

MISSING = ("pyspark", "pyarrow", "pandas", "jinja2", "markupsafe", "numpy")
BLOCKED = f"""
import contextlib, io, json, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {MISSING!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from kelr.commands.main import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    print(json.dumps((code, out.getvalue(), err.getvalue())))
"""


def kelr(*commands: Sequence[str]) -> list[tuple[int, str, str]]:
    """The exit code, standard output and standard error of each, where none of what is missing can be imported."""
    command = [sys.executable, "-c", BLOCKED, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_the_rest_does_not_need_it(tmp_path: Path) -> None:
    file = tmp_path / "incident.kelr"
    write_snapshot(INCIDENT, file)
    helps = [["--help"], ["fleet", "--help"], ["fleet", "report", "--help"], ["whatif", "--help"]]
    done = kelr(*helps, ["schema"], ["describe", "--snapshot", str(file), "-o", "csv"])
    assert [code for code, _, _ in done] == [0] * 6
    assert [err for _, _, err in done[:-1]] == [""] * 5
    assert all(out.count("\n") > 1 for _, out, _ in done)


def test_a_step_on_spark_says_what_to_install() -> None:
    on_a_lake = [["fleet", step, "--lake", "lake"] for step in ("exposure", "assess")]
    report, ingest = ["fleet", "report", "--lake", "lake", "--out", "out"], ["fleet", "ingest", "x", "--out", "lake"]
    done = kelr(report, *on_a_lake, ingest)
    assert [(code, out) for code, out, _ in done] == [(5, "")] * 4
    for _, _, err in done:
        assert "No module named" in err
        assert "fix: install it with: pip install 'kelr[fleet]'" in err
