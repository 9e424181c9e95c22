"""Runs that meet on one lake and are killed at any moment, and a reader who reads through all of it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType

from kelr.fleet.lake import Lake
from kelr.fleet.tables import table

ONE = table("one", ("number", LongType(), ""), ("run", StringType(), ""), partitions=())
OTHER = table("other", ("number", LongType(), ""), ("run", StringType(), ""), partitions=())
WRITER = """
import json, os, random, signal, sys, time
from kelr.errors import RefusedError
from kelr.fleet.lake import Lake
from tests.fleet.test_lake_kills import ONE, OTHER

place, kills, seed = json.loads(sys.argv[1])
chance = random.Random(seed)


def write(who, runs):
    # What a run that ended has said it did must be there afterwards.
    for number in range(runs):
        rows = [{"number": number, "run": who}]
        try:
            with Lake(None, place).changing(who) as changes:
                changes.put(ONE, rows)
                changes.put(OTHER, rows)
        except RefusedError:
            continue
        os.write(1, json.dumps([who, number]).encode() + b"\\n")


def begun(who, runs):
    child = os.fork()  # deltalake's threads are not there yet: nothing was asked of it
    if not child:
        write(who, runs)
        os._exit(0)
    return child


# How long five runs take here and now, one after another.
began = time.monotonic()
os.waitpid(begun("first", 5), 0)
lasted = time.monotonic() - began
for kill in range(kills):
    writers = [begun(f"{kill}-a", 1000), begun(f"{kill}-b", 1000)]
    time.sleep(chance.uniform(0, 2 * lasted))
    for writer in writers:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
"""


def runs_meet(place: Path, kills: int, seed: int) -> None:
    program = [sys.executable, "-c", WRITER, json.dumps([str(place), kills, seed])]
    seen, rows = 0, []
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as writers:
        while writers.poll() is None:
            lake = Lake(None, str(place))  # type: ignore[arg-type]
            rows = lake.rows(ONE)
            assert rows == lake.rows(OTHER), "both tables are of one run"
            assert lake.version.number >= seen
            assert bool(rows) == bool(lake.version.number)
            seen = lake.version.number
            time.sleep(0.02)
        assert writers.stdout is not None
        said = [json.loads(line) for line in writers.stdout.read().splitlines()]
    assert writers.returncode == 0
    lake = Lake(None, str(place))  # type: ignore[arg-type]
    assert len(said) <= lake.version.number <= len(said) + 2 * kills, "no run that said it ended is missing"
    assert lake.version.number > 5, "some came to something after the first five"
    (row,) = lake.rows(ONE)
    assert lake.version.command == row["run"], "the newest run's rows are what is read"
    with lake.changing("after") as changes:
        changes.put(ONE, [])
        changes.put(OTHER, [])
    assert Lake(None, str(place)).rows(ONE) == [], "whatever was left is in nobody's way"  # type: ignore[arg-type]


def test_runs_that_are_killed_while_they_meet(tmp_path: Path) -> None:
    runs_meet(tmp_path / "lake", 12, 966)


@pytest.mark.longer
def test_many_runs_that_are_killed_while_they_meet(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print("seed", seed)
    for number in range(10):
        runs_meet(tmp_path / f"lake-{number}", 50, seed + number)
