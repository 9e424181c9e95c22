"""kelr's controller against Apache Kafka's PartitionChangeBuilder, class for class, on random states and events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from kelr.controller import ELR_4_1, ELR_4_1_0, ELR_4_3, KIP966_BALANCED, RuleSet
from tests.differential.cases import Case, answer_line, random_cases, random_set_cases
from tests.differential.driver import CLASSES, answers, compile_drivers, javac_version
from tests.differential.versions import rules_of

BATCH = 50_000
SHIPPED_BY = "17."
"""The javac whose output is shipped; another one may lay out the same class differently."""


def test_every_run_leaves_the_state_that_kafka_leaves(kafka: str, steps: int, seed: int) -> None:
    _compare(kafka, random_cases(rules_of(kafka), Random(f"{seed} {kafka}")), steps, seed)


def test_the_sets_of_the_whole_kip_are_kept_as_kafkas_code_for_them_keeps_them(
    kafka: str, steps: int, seed: int
) -> None:
    _compare(kafka, random_set_cases(KIP966_BALANCED, Random(f"{seed} {kafka} sets")), steps // 2, seed)


def _compare(kafka: str, random: Iterator[Case], steps: int, seed: int) -> None:
    cases = islice(random, steps)
    compared = 0
    for batch in _batches(cases):
        theirs = answers(kafka, [case.line() for case in batch])
        for case, answer in zip(batch, theirs, strict=True):
            assert answer_line(case.run()) == answer, f"Kafka {kafka}, seed {seed}, rules {case.around.rules}: {case}"
        compared += len(batch)
    assert compared == steps


@pytest.mark.parametrize(
    ("kafka", "other"), [("4.0.0", ELR_4_1_0), ("4.1.0", ELR_4_1), ("4.1.1", ELR_4_3), ("4.3.1", ELR_4_1)]
)
def test_the_cases_tell_versions_apart(kafka: str, other: RuleSet, seed: int) -> None:
    """A comparison that no neighbour's rules would fail would prove nothing."""
    cases = list(islice(random_cases(other, Random(f"{seed} {kafka}")), 2_000))
    theirs = answers(kafka, [case.line() for case in cases])
    assert any(answer_line(case.run()) != answer for case, answer in zip(cases, theirs, strict=True))


def test_the_shipped_classes_are_those_of_the_source(tmp_path: Path) -> None:
    version = javac_version()
    if version is None or not version.startswith(SHIPPED_BY):
        pytest.skip(f"needs javac {SHIPPED_BY[:-1]} to compile as the shipped classes were; here is {version}")
    compile_drivers(tmp_path)
    assert _class_files(tmp_path) == _class_files(CLASSES)


def _class_files(directory: Path) -> dict[Path, bytes]:
    return {file.relative_to(directory): file.read_bytes() for file in directory.rglob("*.class")}


def _batches(cases: Iterator[Case]) -> Iterator[list[Case]]:
    while batch := list(islice(cases, BATCH)):
        yield batch
