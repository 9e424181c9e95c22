"""What Spark was asked for while something ran: its plans, and what came to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.classic.dataframe import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Asked:
    """What was asked for."""

    plans: list[str] = field(default_factory=list)
    """The physical plan of each query that was run, with the partitions and filters of each scan."""
    fetched: list[frozenset[str]] = field(default_factory=list)
    """The columns of all rows that came to the driver."""

    def scans(self, table: str) -> list[str]:
        """The scans of a table of a lake, a paragraph each."""
        paragraphs = [one for plan in self.plans for one in plan.split("\n\n")]
        return [one for one in paragraphs if "Scan parquet" in one and f"/{table}/" in one]


@contextmanager
def asked_of(spark: SparkSession) -> Iterator[Asked]:
    """Follow what is asked; the plans are there when the block has ended."""
    asked = Asked()
    store: Any = spark._jsparkSession.sharedState().statusStore()
    begun = store.executionsCount()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("collect", "toLocalIterator", "toPandas", "toArrow"):
            patch.setattr(DataFrame, name, _noted(getattr(DataFrame, name), asked))
        yield asked
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    found = store.executionsList(begun, store.executionsCount() - begun)
    asked.plans += [found.apply(place).physicalPlanDescription() for place in range(found.size())]


def _noted(method: Any, asked: Asked) -> Any:
    def noted(self: DataFrame, *arguments: Any, **named: Any) -> Any:
        asked.fetched.append(frozenset(self.columns))
        return method(self, *arguments, **named)

    return noted
