"""Real clusters for tests: one of each Kafka version, started when first asked for and shared by this directory.

A test finds the cluster as the last one left it. `run_incident` brings it back to health first; a test that breaks it
by hand takes `healthy_43`. The labs belong to this process: they end with it, also when it is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kelr.lab import Lab, LabSpec


@pytest.fixture(scope="package")
def lab_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Lab]]:
    """Gives the lab of a Kafka version."""
    labs: dict[str, Lab] = {}
    with ExitStack() as stack:

        def get(kafka: str) -> Lab:
            if kafka not in labs:
                directory = tmp_path_factory.mktemp("lab") / kafka
                labs[kafka] = stack.enter_context(Lab.up(LabSpec(kafka=kafka), directory, owner_pid=os.getpid()))
            return labs[kafka]

        yield get


@pytest.fixture(scope="package")
def lab_43(lab_of: Callable[[str], Lab]) -> Lab:
    return lab_of("4.3.1")


@pytest.fixture(scope="package")
def lab_40(lab_of: Callable[[str], Lab]) -> Lab:
    return lab_of("4.0.0")


@pytest.fixture
def healthy_43(lab_43: Lab) -> Lab:
    """The 4.3.1 lab with every broker up."""
    lab_43.restore()
    return lab_43
