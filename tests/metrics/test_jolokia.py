"""Jolokia, by answers of a real agent (2.1.1) in Kafka 4.3.1, and by what its policies and limits make of them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import respx

from kelr.metrics.endpoints import Kind
from kelr.metrics.reading import parse_mbean, requests
from tests.metrics.asking import AGENT, body, by_key, read, refused


def answers(document: Any) -> respx.Route:
    return respx.post(AGENT).mock(return_value=httpx.Response(200, json=document))


def entry(mbean: str, value: Any, **more: Any) -> dict[str, Any]:
    request = {"mbean": mbean, "type": "read", **more}
    return {"request": request, "value": value, "status": 200, "timestamp": 1_700_000_000}


def padded(*entries: Any) -> list[Any]:
    """As many entries as there are requests, the others not there."""
    return [*entries, *[{"status": 404}] * (len(requests()) - len(entries))]


@respx.mock
def test_a_controller() -> None:
    route = answers(json.loads(body("jolokia-controller.json")))
    found = read(Kind.JOLOKIA)
    assert by_key(found) == {
        "offline_partitions": 0,
        "unclean_elections": 6,
        "unclean_elections_rate": pytest.approx(0.7910887562405328),
        "elr_elections": 0,
        "active_controllers": 1,
        "active_brokers": 1,
        "fenced_brokers": 2,
        "brokers_shutting_down": 0,
        "partitions": 12,
        "preferred_imbalance": 8,
        "metadata_errors": 0,
    }
    assert (found.notes, found.partial) == ((), False)
    assert {one.at_ms for one in found.values} == {1_795_337_292_000}
    assert json.loads(route.calls.last.request.content) == requests()


@respx.mock
def test_a_broker_whose_patterns_come_by_mbean() -> None:
    answers(json.loads(body("jolokia-broker.json")))
    found = read(Kind.JOLOKIA)
    each = [one for one in found.values if one.metric.key == "partitions_under_min_isr"]
    assert len(each) == 12
    assert {one.labels["topic"] for one in each} == {"needs-unclean-recovery-1", "under-min-isr-1"}
    assert by_key(found)["leaders"] == 0


@respx.mock
def test_the_three_shapes_of_a_value() -> None:
    leaders = "kafka.server:type=ReplicaManager,name=LeaderCount"
    answers(
        padded(
            entry(leaders, 3, attribute="Value"),
            entry("kafka.server:name=UnderMinIsrPartitionCount,type=ReplicaManager", {"Value": 4}),
            entry(
                "kafka.cluster:type=Partition,*",
                {'kafka.cluster:name=UnderMinIsr,topic="a,b=c",type=Partition': {"Value": 1}},
            ),
        )
    )
    found = read(Kind.JOLOKIA)
    assert by_key(found) == {"leaders": 3, "under_min_isr": 4, "partitions_under_min_isr": 1}
    assert found.values[2].labels["topic"] == "a,b=c"


@respx.mock
def test_errors_of_single_reads_are_told_and_cost_those_alone() -> None:
    answers(
        padded(
            {"status": 403, "error_type": "java.lang.SecurityException", "error": "Reading is forbidden"},
            {"status": 500, "error_type": "javax.management.RuntimeMBeanException", "error": "x"},
            {"status": 500, "error_type": "javax.management.RuntimeMBeanException", "error": "y"},
            "nonsense",
            entry("kafka.server:type=ReplicaManager,name=LeaderCount", "[Object limit exceeded]", attribute="Value"),
            entry("kafka.server:type=ReplicaManager,name=OfflineReplicaCount", True, attribute="Value"),
            entry("kafka.controller:type=KafkaController,name=ActiveControllerCount", 1, attribute="Value"),
        )
    )
    found = read(Kind.JOLOKIA)
    assert by_key(found) == {"active_controllers": 1}
    assert found.partial
    assert found.notes == (
        "its policy forbids 1 of the reads",
        "1 of the reads failed: an entry of its answer is no object",
        "2 of the reads failed: javax.management.RuntimeMBeanException",
        "2 of its values are no numbers, and are left out",
    )


@respx.mock
def test_an_answer_without_requests_is_matched_by_its_order() -> None:
    first = {"value": 5, "status": 200}
    assert requests()[0]["mbean"].endswith("name=OfflinePartitionsCount")
    answers([first])
    found = read(Kind.JOLOKIA)
    assert by_key(found) == {"offline_partitions": 5}
    assert found.notes == ("it answered fewer reads than it was asked for",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '{"error_type":"java.lang.SecurityException","error":"HTTP method POST is not allowed","status":403}',
            "the agent answers with status 403: HTTP method POST is not allowed",
        ),
        (
            '{"error_type":"java.lang.IllegalArgumentException","error":"Invalid JSON request","status":400}',
            "the agent answers with status 400: Invalid JSON request",
        ),
        ("<html></html>", "its answer is not that of a Jolokia agent but a web page"),
        ("7", "its answer is not that of a Jolokia agent"),
        ("{}", "its answer is not that of a Jolokia agent"),
    ],
)
@respx.mock
def test_answers_as_a_whole(content: str, words: str) -> None:
    respx.post(AGENT).mock(return_value=httpx.Response(200, content=content))
    assert refused(Kind.JOLOKIA).text == words


@respx.mock
def test_another_java_process() -> None:
    answers(padded())
    assert read(Kind.JOLOKIA).notes == ("it has none of the MBeans that are looked for: is it a Kafka process?",)


def test_object_names() -> None:
    assert parse_mbean('d.e:type=Partition,topic="a,b=\\"c\\"",partition=0') == (
        "d.e",
        {"type": "Partition", "topic": 'a,b="c"', "partition": "0"},
    )
