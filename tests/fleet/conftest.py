"""One Spark session for all tests of the fleet: a JVM takes seconds to start."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kelr.fleet.session import fleet_session
from tests.fleet.quick import QUICK_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kelr.fleet.lake import Lake


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    place = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.local.dir": str(place),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        # A handful of rows is not worth what compiling a plan for them costs.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    with warnings.catch_warnings():
        # Spark leaves its end of a socket to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        session = fleet_session("local[2]", settings=settings)
        yield session
        session.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    from kelr.fleet.lake import Lake  # noqa: PLC0415 - PySpark is loaded where it is used

    return Lake(spark, str(tmp_path / "lake"))
