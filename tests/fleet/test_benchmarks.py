"""The benchmarks of the fleet at a size at which they measure nothing, so that they run when they are wanted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.fleet import lakes, measure, plain
from benchmarks.fleet.__main__ import HEADER, Given, count, row, run
from benchmarks.fleet.measure import Used, measured
from kelr.commands.main import main
from kelr.fleet.lake import Lake
from kelr.fleet.tables import PARTITION_STATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_lake_of_any_size_is_what_an_assessment_expects(spark: SparkSession, tmp_path: Path) -> None:
    lakes.make(spark, str(tmp_path / "lake"), 2_000)
    states = Lake(spark, str(tmp_path / "lake")).read(PARTITION_STATES)
    rows = states.select("cluster", "topic", "partition", "replicas", "isr", "leader").collect()
    assert len({(one["topic"], one["partition"]) for one in rows}) == 2_000
    assert all(len(set(one["replicas"])) == 3 and set(one["replicas"]) <= set(range(1, 21)) for one in rows)
    assert 0.66 < sum(one["cluster"] == "cluster-00" for one in rows) / 2_000 < 0.74
    assert sum(len(one["isr"]) == 2 for one in rows) == 38, "two of 40 have no leader instead"
    assert sum(one["leader"] is None for one in rows) == 2
    assert count(tmp_path / "lake" / "partition_states") == 2_000
    assert plain.outages(str(tmp_path / "lake"), 500, 3)[0] == 1_500


def test_histories_are_told_up_to_the_limit(tmp_path: Path) -> None:
    fleet = str(tmp_path / "fleet")
    wanted = ("--clusters", "1", "--partitions", "30", "--weeks", "1", "--files", "whole", "--workers", "1")
    assert main(["fleet", "generate", fleet, *wanted, "--brokers", "4", "-o", "json"]) == 0
    logs = [path for path in tmp_path.rglob("__cluster_metadata-0") if path.is_dir()]
    everything, _ = plain.history(logs, 10**9)
    some, _ = plain.history(logs, 50)
    assert 50 <= some < everything


def test_a_command_is_measured_with_all_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, family = tmp_path / "seen", measure._family

    def looked_at(root: int) -> list[tuple[int, str, float, float]]:
        found = family(root)
        if any(kind == "jvm" and cpu_s > 0 and mib > 50 for _, kind, cpu_s, mib in found):
            seen.touch()
        return found

    monkeypatch.setattr(measure, "_family", looked_at)
    # It lives until somebody has looked at it, who may be late on a busy machine.
    child = (
        "import os, time; kept = bytearray(60_000_000); [sum(range(10**5)) for _ in range(100)]; time.sleep(0.5)\n"
        f"for _ in range(6000):\n    if os.path.exists({str(seen)!r}): break\n    time.sleep(0.01)"
    )
    used = measured(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"]
    )
    assert used.wall_s >= 0.5
    assert used.cpu_s > 0
    assert used.peak_mib["jvm"] > 50, "whoever is neither the driver's Python nor a worker"
    with pytest.raises(SystemExit, match="ended with 3"):
        measured([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_row_has_a_cell_for_each_column() -> None:
    used = Used(2.0, 3.0, {"python": 90.0, "jvm": 800.0})
    line = row("ingest", 1_000, 2, used, plain=250.0, first=Used(3.0))
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        *("ingest", "1,000", "2", "2.0 s", "500", "1.50", "2.00", "3.0 s", "333", "90", "800", "-"),
    ]
    assert line.count("|") == len(HEADER) + 1


@pytest.mark.longer
def test_the_whole_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(Given(5_000, 2_000, 2, (1, 2), "1g", 1_000, tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| ")] == [
        *("step", "history, plain loop", "ingest", "ingest", "exposure", "exposure"),
        *("outages, plain loop", "assess, 2 scenarios", "assess, 2 scenarios"),
    ]
    assert not list(tmp_path.glob("lake*"))
