"""The same work by this process, by others of this machine, and by Spark's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from kelr.errors import KelrError
from kelr.fleet import workers
from kelr.fleet.workers import LocalWorkers, SparkWorkers, spread, workers_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Number:
    """A task."""

    value: int
    size_bytes: int = 1


def square(one: Number) -> tuple[int, int]:
    """What a worker does."""
    return one.value**2, os.getpid()


def fail(one: Number) -> None:
    raise ZeroDivisionError(one.value)


def end(one: Number) -> None:
    os._exit(one.value)


TASKS = [Number(value, size_bytes=value) for value in range(5)]


def test_what_is_little_is_done_here() -> None:
    with LocalWorkers(2) as here:
        assert here.do(square, TASKS) == [(value**2, os.getpid()) for value in range(5)]


def test_processes_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_WORTH_A_PROCESS_BYTES", 1)
    told: list[tuple[int, int]] = []
    with LocalWorkers(2, lambda done, among: told.append((done, among))) as those:
        found = those.do(square, TASKS)
        assert [value for value, _ in found] == [0, 1, 4, 9, 16]
        there = {process for _, process in found}
        assert os.getpid() not in there
        assert told[-1] == (5, 5)
        with pytest.raises(ZeroDivisionError):
            those.do(fail, TASKS)
        with pytest.raises(KelrError, match="one of 2 processes was ended"):
            those.do(end, TASKS)
    for process in there:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_spark_s_workers(spark: SparkSession) -> None:
    found = SparkWorkers(spark).do(square, TASKS)
    assert [value for value, _ in found] == [0, 1, 4, 9, 16]
    assert os.getpid() not in {process for _, process in found}
    assert SparkWorkers(spark).do(square, []) == []


def test_a_session_of_this_machine_lends_its_number_of_cores(spark: SparkSession) -> None:
    with workers_of(spark) as those, workers_of(None) as others:
        assert isinstance(those, LocalWorkers)
        assert isinstance(others, LocalWorkers)
        assert those.most == 2


def test_the_largest_task_has_a_slot_of_its_own() -> None:
    slots = spread({0: 5, 1: 100, 2: 5, 3: 5}, 2)
    assert slots[1] == 0
    assert {slots[0], slots[2], slots[3]} == {1}
    assert set(spread({}, 4).values()) == set()
