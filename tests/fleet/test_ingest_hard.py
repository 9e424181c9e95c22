"""Ingest where it is hard: runs that are killed half way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kelr.commands.main import main
from kelr.fleet.ingest import ingest
from kelr.fleet.lake import Lake
from kelr.fleet.tables import PARTITION_STATES
from tests.fleet.test_ingest import content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.longer

SHAPE = ("--clusters", "2", "--partitions", "60", "--brokers", "6", "--weeks", "2", "--incidents", "6", "--seed", "3")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hard") / "fleet"
    assert main(["fleet", "generate", str(place), *SHAPE, "--files", "whole"]) == 0
    return place


@pytest.fixture(scope="module")
def whole(spark: SparkSession, fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tables, where no run was killed."""
    lake = tmp_path_factory.mktemp("whole") / "lake"
    ingest(None, [str(fleet)], str(lake), now_ms=0)
    return content(Lake(spark, str(lake)))


def _landing(lake: Path) -> bool:
    return any((lake / PARTITION_STATES.name).rglob("*.parquet"))


def _committed(lake: Path) -> bool:
    """One table; others are to follow."""
    return any(lake.glob("*/_delta_log/*1.json"))


@pytest.mark.parametrize("moment", [Path.exists, _landing, _committed], ids=["begun", "landing", "committed"])
def test_a_run_that_is_killed_leaves_the_tables_as_they_were(
    spark: SparkSession, fleet: Path, whole: dict[str, list[str]], tmp_path: Path, moment: Callable[[Path], bool]
) -> None:
    lake = tmp_path / "lake"
    first, second = sorted(path for path in fleet.iterdir() if path.is_dir())
    if moment is not Path.exists:
        # What is looked for must come of the run that is killed.
        _killed(fleet, lake, moment)
        assert not Lake(spark, str(lake)).version.number, "nothing has appeared"
    else:
        ingest(None, [str(first)], str(lake), now_ms=0)
        before = content(Lake(spark, str(lake)))
        _killed(second, lake, moment)
        assert content(Lake(spark, str(lake))) == before
    ingest(None, [str(fleet)], str(lake), now_ms=0)
    after = content(Lake(spark, str(lake)))
    assert {name: rows for name, rows in after.items() if name != "inputs"} == {
        name: rows for name, rows in whole.items() if name != "inputs"
    }


def _killed(inputs: Path, lake: Path, moment: Callable[[Path], bool]) -> None:
    """An ingest as a process of its own, ended with SIGKILL, its workers too, at a moment."""
    command = [sys.executable, "-m", "kelr", "fleet", "ingest", str(inputs), "--out", str(lake)]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            deadline = time.monotonic() + 900
            while not moment(lake):
                assert process.poll() is None, "it ended before that moment"
                assert time.monotonic() < deadline
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
