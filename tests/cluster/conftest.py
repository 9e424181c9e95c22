"""Real clusters for tests, started when first asked for.

A test finds the cluster as the last one left it. `run_incident` brings it back to health first; a test that breaks it
by hand takes `healthy_43`. The labs belong to this process: they end with it, also when it is killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kelr.lab import Lab, LabSpec
from kelr.lab.spec import DEFAULT_KAFKA


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules without the shared lab come first: one that waits for its turn takes a tenth of a core."""
    sharing = {item.path for item in items if "lab_43" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path in sharing)


@pytest.fixture(scope="package")
def lab_43(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab that most of this directory shares."""
    with Lab.up(LabSpec(kafka="4.3.1"), tmp_path_factory.mktemp("lab") / "4.3.1", owner_pid=os.getpid()) as lab:
        yield lab


@pytest.fixture(scope="module")
def lab_40(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of the oldest Kafka, one for each module: few want it, and a cluster that nobody asks costs time, too."""
    with Lab.up(LabSpec(kafka="4.0.0"), tmp_path_factory.mktemp("lab") / "4.0.0", owner_pid=os.getpid()) as lab:
        yield lab


@pytest.fixture(scope="module")
def lab_newest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of the newest Kafka, which a lab is unless told otherwise, or of ``--kafka``; one for each module."""
    kafka = request.config.getoption("--kafka") or DEFAULT_KAFKA
    with Lab.up(LabSpec(kafka=kafka), tmp_path_factory.mktemp("lab") / kafka, owner_pid=os.getpid()) as lab:
        yield lab


@pytest.fixture
def healthy_43(lab_43: Lab) -> Lab:
    """The 4.3.1 lab with every broker up."""
    lab_43.restore()
    return lab_43
