"""Figures of two clusters behind one Prometheus server are never added up without a word."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
import respx

from kelr.metrics import prometheus_server
from kelr.metrics.catalog import BY_KEY
from kelr.metrics.endpoints import Kind, Value
from kelr.metrics.prometheus_server import checked_match, falls_apart
from tests.metrics.asking import QUERY, refused

NOW_S = 1_800_000_000.0


def value(key: str = "under_min_isr", *, old: bool = False, **labels: str) -> Value:
    return Value(BY_KEY[key], 1.0, key, labels, old=old)


def brokers(*those: Mapping[str, str]) -> list[Value]:
    """A series of each of these processes, whose instances have different names."""
    return [value(**{"instance": f"kafka-{number}:9404", **labels}) for number, labels in enumerate(those)]


@pytest.mark.parametrize(
    ("label", "first", "second"),
    [
        ("cluster", "a", "b"),
        ("strimzi_io_cluster", "pay", "log"),
        ("kafka_cluster_id", "4L6g", "9xYz"),
        ("namespace", "pay", "log"),
        ("k8s_namespace_name", "pay", "log"),
        ("env", "prod", "test"),
        ("job", "kafka-pay", "kafka-log"),
    ],
)
def test_labels_that_tell_clusters_apart(label: str, first: str, second: str) -> None:
    found = falls_apart(brokers({label: first}, {label: first}, {label: second}), None)
    assert found is not None
    assert (found.label, dict(found.processes)) == (label, {first: 2, second: 1})
    assert f'{label}="{first}" (2 processes)' in found.text
    assert f'{label}="{second}" (1 process)' in found.text


@pytest.mark.parametrize(
    "values",
    [
        brokers({"cluster": "a", "zone": "1"}, {"cluster": "a", "zone": "2"}),
        brokers({}, {}, {}),
        # Two jobs that scrape the same processes.
        [value(instance="b1", job="one"), value(instance="b1", job="two"), value(instance="b2", job="two")],
        # Controllers have a job of their own.
        [value(instance="b1", job="brokers"), value("active_controllers", instance="c1", job="controllers")],
        # kelr's exporter stands elsewhere.
        [value(instance="b1", namespace="kafka"), value("global_under_min_isr", instance="k", namespace="tools")],
        # A cluster that is gone.
        [*brokers({"cluster": "a"}), value(instance="b9", cluster="gone", old=True)],
        # A sum that a rule recorded.
        [*brokers({"cluster": "a"}), value()],
    ],
)
def test_what_is_one_cluster(values: list[Value]) -> None:
    assert falls_apart(values, None) is None


def test_a_process_without_the_label_is_of_another_cluster() -> None:
    found = falls_apart(brokers({"cluster": "a"}, {}), None)
    assert found is not None
    assert found.processes == (("", 1), ("a", 1))


def test_two_of_kelrs_exporters_are_two_clusters() -> None:
    values = [value("global_under_min_isr", instance=name, cluster=name) for name in ("a", "b")]
    assert falls_apart(values, None) is not None


def test_the_label_that_says_cluster_is_named_first() -> None:
    values = brokers(
        {"env": "x", "strimzi_io_cluster": "a", "cluster": "a"},
        {"env": "y", "strimzi_io_cluster": "b", "cluster": "b"},
    )
    found = falls_apart(values, None)
    assert found is not None
    assert found.label == "cluster"


def test_what_somebody_named_on_purpose_is_one() -> None:
    stretched = brokers({"cluster": "east", "env": "e", "job": "e"}, {"cluster": "west", "env": "w", "job": "w"})
    assert falls_apart(stretched, 'cluster=~"east|west"') is None, "the others only repeat it"
    assert falls_apart(stretched, 'zone=~"a|b", cluster =~ "east|west"') is None
    assert falls_apart(stretched, 'cluster!="north"') is not None, "that names none"
    mixed = [*stretched, *brokers({"cluster": "east", "env": "other", "job": "e"})]
    found = falls_apart(mixed, 'cluster=~"east|west"')
    assert found is not None
    assert found.label == "env"


@pytest.mark.parametrize("names", [("a", "b"), ('we "say"', "it's $HOME"), ("a.b", "a-b"), ("", "b"), ("ü", "b")])
@pytest.mark.parametrize("match", [None, 'env="prod"'])
def test_the_options_that_are_advised_work(names: tuple[str, str], match: str | None) -> None:
    """As a shell would give them: one leaves one cluster, the other takes both."""
    values = brokers(*({"cluster": name} if name else {} for name in names))
    found = falls_apart(values, match)
    assert found is not None
    one, both = (shlex.split(text)[-1] for text in re.findall(r"--query-match .*?(?=;|$)", found.next_step(match)))
    for given in (one, both):
        assert checked_match(given) == given
        assert match is None or given.startswith(f"{match},")
    chosen = json.loads(one.rpartition("=")[2])
    assert chosen in names
    assert falls_apart([each for each in values if each.labels.get("cluster", "") == chosen], one) is None
    pattern = json.loads(both.rpartition("=~")[2])
    assert all(re.fullmatch(pattern, name) for name in names)
    assert falls_apart(values, both) is None


def two_brokers_each(*clusters: str) -> list[httpx.Response]:
    """What a server says that has two brokers of each of these clusters, each with 2 partitions under min ISR."""
    name = "kafka_server_replicamanager_underminisrpartitioncount"
    found: list[dict[str, Any]] = [
        {
            "metric": {"__name__": name, "instance": f"{one}-{number}:9404", "job": "kafka", "cluster": one},
            "values": [[NOW_S - 15, "2"], [NOW_S, "2"]],
        }
        for one in clusters
        for number in (1, 2)
    ]
    bodies = [{"resultType": "matrix", "result": found}, {"resultType": "vector", "result": []}]
    return [httpx.Response(200, json={"status": "success", "data": data}) for data in bodies]


@respx.mock
def test_a_server_of_two_clusters_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_server, "clock_s", lambda: NOW_S)
    respx.post(QUERY).mock(side_effect=two_brokers_each("pay", "log"))
    assert "it has series of several clusters" in refused(Kind.SERVER).text
