"""The gauges of a real cluster, through the real jmx_exporter, beside kelr's figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kelr.lab import Lab, run_incident
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.locks import Lock, LockedJar
from kelr.lab.nodes import NodePaths
from kelr.lab.observed import PATIENCE_S
from kelr.lab.processes import free_ports
from kelr.metrics.computed import compute, look
from kelr.metrics.endpoints import Access, Endpoint, Kind, endpoint_of
from kelr.metrics.figures import figures
from kelr.metrics.reading import read_all
from kelr.model import Situation
from kelr.model.measured import Comparison, MetricFigure
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource

AGENT = Lock(
    "jmx-exporter-1.0.1",
    (
        LockedJar(
            "io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",
            2_886_599,
            "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1",
        ),
    ),
)
RULES = """\
lowercaseOutputName: true
rules:
- {pattern: 'kafka.(.+)<type=(.+), name=(.+)PerSec\\w*><>Count', name: kafka_$1_$2_$3_total, type: COUNTER}
- pattern: kafka.(\\w+)<type=(.+), name=(.+), topic=(.+), partition=(.+)><>Value
  name: kafka_$1_$2_$3
  labels: {topic: "$4", partition: "$5"}
- {pattern: 'kafka.(\\w+)<type=(.+), name=(.+)><>Value', name: kafka_$1_$2_$3}
"""

Read = Callable[[], Mapping[str, MetricFigure]]


@pytest.fixture
def observed(lab_43: Lab, tmp_path: Path) -> Iterator[Mapping[int, Endpoint]]:
    """The lab with an exporter in each node: without rules in the controller, with the common ones in the brokers."""
    [jar] = obtain_jars(AGENT, cache_directory())
    nodes = (*lab_43.controllers, *lab_43.brokers)
    ports = free_ports(nodes)
    (tmp_path / "none.yml").write_text("{}\n")
    (tmp_path / "rules.yml").write_text(RULES)
    options = {node: NodePaths.of(lab_43.directory, node).home / "jvm.options" for node in nodes}
    for node, path in options.items():
        rules = tmp_path / ("none.yml" if node in lab_43.controllers else "rules.yml")
        path.write_text(f"-javaagent:{jar}=127.0.0.1:{ports[node]}:{rules}\n")
    lab_43.halt()
    try:
        lab_43.restore()
        yield {node: endpoint_of(Kind.TEXT, f"127.0.0.1:{ports[node]}") for node in nodes}
    finally:
        for path in options.values():
            path.unlink()
        lab_43.halt()
        lab_43.restore()


@pytest.mark.longer
def test_kafkas_gauges_and_kelrs_figures(lab_43: Lab, observed: Mapping[int, Endpoint]) -> None:
    def read(*nodes: int) -> Mapping[str, MetricFigure]:
        heard = read_all([observed[node] for node in nodes], Access(), timeout_s=30)
        assert [one.asked.problem for one in heard] == [None] * len(nodes)
        with LiveSource(ConnectionSettings.read(lab_43.bootstrap_servers)) as source:
            computed = compute(source)
        return {one.metric: one for one in figures(heard, computed, now_ms=time.time_ns() // 1_000_000)}

    def read_until(holds: Callable[[Mapping[str, MetricFigure]], bool], *nodes: int) -> Mapping[str, MetricFigure]:
        deadline = time.monotonic() + PATIENCE_S
        while not holds(found := read(*nodes)):
            assert time.monotonic() < deadline, found
        return found

    def all_compare(found: Mapping[str, MetricFigure]) -> bool:
        return {one.comparison for one in found.values()} <= {
            Comparison.SAME,
            Comparison.KELR_ALONE,
            Comparison.NOT_COMPARABLE,
            Comparison.NOT_READ,
        }

    # The controller was killed too, and elected last known leaders when it was back, or nobody: its own count says.
    before = read_until(all_compare, 100, 1, 2, 3)
    assert {"offline_partitions", "under_min_isr", "leaders", "active_brokers"} <= {
        key for key, one in before.items() if one.comparison is Comparison.SAME
    }
    assert before["active_controllers"].value == 1

    # Broker 1 leads alone, under min ISR: the one broker that leads counts it, and kelr counts the same.
    report = run_incident(lab_43, "under-min-isr")
    assert report.live == (1,)
    under = read_until(all_compare, 100, 1)
    assert under["under_min_isr"].comparison is Comparison.SAME
    assert under["under_min_isr"].value is not None
    assert under["under_min_isr"].value >= report.partitions
    assert under["partitions_under_min_isr"].value == under["under_min_isr"].value
    assert under["offline_partitions"].value == before["offline_partitions"].value

    # Broker 2 is back and broker 1 is gone: nobody leads, and no broker's gauge shows what is under min ISR.
    lab_43.start(2)
    lab_43.restore()
    lab_43.kill(2)
    lab_43.kill(3)
    read_until(lambda found: all_compare(found) and (found["under_min_isr"].value or 0) >= report.partitions, 100, 1)
    lab_43.start(3)
    lab_43.kill(1)
    lost = read_until(lambda found: all_compare(found) and found["fenced_brokers"].value == 2, 100, 3)
    with LiveSource(ConnectionSettings.read(lab_43.bootstrap_servers)) as source:
        seen = look(source, most=1000)
    assert lost["offline_partitions"].value == seen.leaderless > 0
    led = lost["under_min_isr"].value
    assert led is not None
    assert lost["global_under_min_isr"].computed == seen.under_min_isr == led + seen.leaderless
    assert "no live leader, and so" in lost["under_min_isr"].why
    assert sum(count for situation, count in seen.situations.items() if situation is not Situation.HEALTHY) == sum(
        count for _, _, count in seen.topics
    )
