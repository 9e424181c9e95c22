"""The same work in one process without Spark, by the same engine; a process of its own for each, so that memory counts.

    python -m benchmarks.fleet.plain history LOG...          tell every partition's history, with its troubles
    python -m benchmarks.fleet.plain outages LAKE --limit N  N partitions of a lake under each scenario

Prints how many rows it made, and in how many seconds (without starting, and without reading Parquet).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kelr.controller import ELR_4_3
from kelr.engine.outages.reading import CaseReader
from kelr.engine.outages.scenario import Outage
from kelr.engine.outages.told import partition_fate
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.model import Broker, BrokerStatus, Cluster, ConfigSource, Features, PartitionState, TopicConfig
from kelr.replay.history import History, Interest, PartitionEntry, Window
from kelr.sources.metadata_log.log import open_metadata_log

PAGE = 2_000


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("history", "outages"))
    parser.add_argument("places", nargs="+")
    parser.add_argument("--limit", type=int, default=200_000)
    parser.add_argument("--scenarios", type=int, default=20)
    given = parser.parse_args()
    if given.what == "history":
        rows, seconds = history([Path(place) for place in given.places], given.limit)
    else:
        rows, seconds = outages(given.places[0], given.limit, given.scenarios)
    print(rows, f"{seconds:.3f}")


def history(logs: Sequence[Path], limit: int) -> tuple[int, float]:
    """Tell logs one after the other, until there are so many states; how many, and seconds."""
    rows, begun = 0, time.perf_counter()
    for log in logs:
        told = History(Interest(named=False), Window(), keep_all=True, quorums=False)
        for batch in open_metadata_log([log]).batches():
            rows += sum(isinstance(entry, PartitionEntry) for entry in told.take(batch))
            if rows >= limit:
                break
        sum(1 for _ in told.summaries())
        if rows >= limit:
            break
    return rows, time.perf_counter() - begun


def outages(lake: str, limit: int, scenarios: int) -> tuple[int, float]:
    """Each partition under each scenario (broker 1 is killed, broker 2, ...); how many pairs, and seconds."""
    cluster = Cluster(
        "benchmark",
        tuple(Broker(broker, BrokerStatus.LIVE, rack=f"az{broker % 3}") for broker in range(1, 21)),
        Features({"metadata.version": 29, "eligible.leader.replicas.version": 1}, None),
        partitions_source="metadata log",
    )
    each = [Outage((Assumption(Happening.FAILS, broker),), at_once=False) for broker in range(1, scenarios + 1)]
    states = list(islice(_states(lake), limit))
    config = TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT)
    configs = {state.topic: config for state in states}
    firsts = dict.fromkeys(configs, 3)
    reader, worse, begun = CaseReader(cluster, ELR_4_3), 0, time.perf_counter()
    for start in range(0, len(states), PAGE):
        page = states[start : start + PAGE]
        opened = reader.page(page, configs, firsts)
        for state, seen in opened.partitions(lambda _: True):
            for outage in each:
                worse += bool(partition_fate(state, seen, outage).new)
    return len(states) * len(each), time.perf_counter() - begun


def _states(lake: str) -> Iterator[PartitionState]:
    import pyarrow.dataset  # noqa: PLC0415 - not for histories

    columns = ("topic", "partition", "leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr")
    for batch in pyarrow.dataset.dataset(f"{lake}/partition_states", partitioning="hive").to_batches(
        columns=[*columns, "last_known_elr"]
    ):
        for row in batch.to_pylist():
            yield _state(row)


def _state(row: dict[str, Any]) -> PartitionState:
    return PartitionState(
        row["topic"],
        row["partition"],
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=row["partition_epoch"],
        replicas=tuple(row["replicas"]),
        isr=tuple(row["isr"]),
        elr=tuple(row["elr"]),
        last_known_elr=tuple(row["last_known_elr"]),
    )


if __name__ == "__main__":
    main()
