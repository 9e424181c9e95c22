"""A Prometheus server's query API, by answers of a real one (2.42) and by what others may say."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
import respx

from kelr.errors import UsageError
from kelr.metrics import prometheus_server
from kelr.metrics.catalog import METRICS
from kelr.metrics.endpoints import Kind
from kelr.metrics.prometheus_server import checked_match, selectors
from tests.metrics.asking import QUERY, SERVER, body, by_key, read, refused

NOTHING = {"status": "success", "data": {"resultType": "vector", "result": []}}
MATRIX = json.loads(body("server-matrix.json"))
LAST_S = max(float(series["values"][-1][0]) for series in MATRIX["data"]["result"])


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers were recorded this very second."""
    monkeypatch.setattr(prometheus_server, "clock_s", lambda: LAST_S + 1)


def answers(*documents: Any, status: int = 200) -> respx.Route:
    return respx.post(QUERY).mock(side_effect=[httpx.Response(status, json=one) for one in documents])


def series(name: str, *points: tuple[float, str], **labels: str) -> dict[str, Any]:
    return {"metric": {"__name__": name, **labels}, "values": [[LAST_S + at, value] for at, value in points]}


def matrix(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(found)}, **more}


@respx.mock
def test_what_a_real_server_says() -> None:
    route = answers(MATRIX, json.loads(body("server-vector.json")))
    found = read(Kind.SERVER, match='cluster="lab"')
    assert (found.notes, found.partial) == ((), False)
    offline = next(one for one in found.values if one.metric.key == "offline_partitions")
    assert (offline.value, offline.labels["instance"], offline.old) == (0.0, "127.0.0.1:19400", False)
    assert offline.at_ms is not None
    assert abs(offline.at_ms / 1000 - LAST_S) < 10
    assert by_key(found)["partitions_under_min_isr"] == 3
    # The time of a plain selector's answer is that of the question.
    assert {one.at_ms for one in found.values if one.metric.key == "partitions_under_min_isr"} == {None}
    asked = [parse_qs(call.request.content.decode())["query"][0] for call in route.calls]
    assert [',cluster="lab"}' in one for one in asked] == [True, True]


@pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.key)
def test_every_metric_is_asked_for_by_all_of_its_names(metric: Any) -> None:
    patterns = [re.compile(re.search(r'=~"\(\?i\)(.*?)"', one)[1], re.IGNORECASE) for one in selectors(None)]  # type: ignore[index]
    pattern = patterns[metric.of_each_partition]
    head = f"{metric.domain.replace('.', '_')}_{metric.type}"
    for name in (metric.base, f"{head}_{metric.name}", f"{head}_{metric.attribute.value}", *metric.also):
        assert pattern.fullmatch(name), name


@respx.mock
def test_a_series_that_ended_is_old() -> None:
    answers(
        matrix(
            series("kafka_server_replicamanager_leadercount", (-60, "5"), (-45, "5"), instance="dead"),
            series("kafka_server_replicamanager_leadercount", (-30, "7"), (-15, "7"), (0, "8"), instance="live"),
            series("kafka_server_replicamanager_leadercount", (-10, "1"), instance="new"),
        ),
        NOTHING,
    )
    assert {one.labels["instance"]: (one.value, one.old) for one in read(Kind.SERVER).values} == {
        "dead": (5.0, True),
        "live": (8.0, False),
        "new": (1.0, False),
    }


@respx.mock
def test_a_server_whose_clock_is_wrong_is_taken_by_its_own() -> None:
    ahead_s = 400
    points = series("kafka_server_replicamanager_leadercount", (ahead_s - 20, "5"), (ahead_s - 5, "6"), instance="live")
    ended = series("kafka_server_replicamanager_leadercount", (ahead_s - 99, "5"), (ahead_s - 84, "6"), instance="dead")
    headers = {"date": format_datetime(datetime.fromtimestamp(LAST_S + 1 + ahead_s, UTC), usegmt=True)}
    respx.post(QUERY).mock(
        side_effect=[httpx.Response(200, json=one, headers=headers) for one in (matrix(points, ended), NOTHING)]
    )
    found = read(Kind.SERVER)
    assert {one.labels["instance"]: one.old for one in found.values} == {"live": False, "dead": True}
    ages = [LAST_S + 1 - one.at_ms / 1000 for one in found.values if one.at_ms is not None]
    assert ages == pytest.approx([6, 85], abs=1.1)
    assert found.notes == ("its clock is +400 s from ours",)


@respx.mock
def test_a_counter_rises_over_restarts() -> None:
    name = "kafka_controller_controllerstats_uncleanleaderelections_total"
    gauge = series("kafka_server_replicamanager_leadercount", (-15, "7"), (0, "9"))
    answers(
        matrix(series(name, (-30, "5"), (-15, "7"), (0, "1"), instance="a"), series(name, (0, "4")), gauge), NOTHING
    )
    assert [one.increase for one in read(Kind.SERVER).values] == [3.0, None, None]


@respx.mock
def test_warnings_make_it_partial() -> None:
    answers(
        matrix(warnings=["store gateway 2 is unavailable"]), {**NOTHING, "warnings": ["store gateway 2 is unavailable"]}
    )
    found = read(Kind.SERVER)
    assert found.partial
    assert found.notes == (
        "it warns: store gateway 2 is unavailable",
        "it has none of the metrics that are looked for",
    )


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (
            400,
            '{"status":"error","errorType":"bad_data","error":"invalid parameter \\"query\\": 1:4: parse error"}',
            'it cannot answer the query: bad_data: invalid parameter "query": 1:4: parse error',
        ),
        (
            422,
            '{"status":"error","errorType":"execution","error":"query processing would load too many samples"}',
            "it cannot answer the query: execution: query processing would load too many samples",
        ),
        (
            503,
            '{"status":"error","errorType":"timeout","error":"query timed out"}',
            "it cannot answer the query: timeout: query timed out",
        ),
        (200, '{"status":"error"}', "it cannot answer the query: error: no reason given"),
        (404, "404 page not found", "it has no query API under this address (HTTP 404)"),
        (400, "Client sent an HTTP request to an HTTPS server.", "it answers HTTP 400"),
        (200, "<html>Grafana</html>", "its answer is not that of Prometheus' query API but a web page"),
        (200, "[1, 2]", "its answer is not that of Prometheus' query API"),
        (200, "[" * 100_000, "its answer is not that of Prometheus' query API"),
        (200, '{"status":"success"}', "its answer holds no series"),
        (200, '{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "its answer holds no series"),
        (
            200,
            '{"status":"success","data":{"resultType":"matrix","result":[7]}}',
            "a series of its answer has no labels",
        ),
    ],
)
@respx.mock
def test_errors(status: int, content: str, words: str) -> None:
    respx.post(QUERY).mock(return_value=httpx.Response(status, content=content))
    assert refused(Kind.SERVER).text == words


@respx.mock
def test_strange_points_are_left_out() -> None:
    name = "kafka_server_replicamanager_leadercount"
    odd: list[Any] = [["x", "1"], [LAST_S], None, [LAST_S, "NaN"], [LAST_S, "+Inf"], {"a": 1}]
    answers(matrix({"metric": {"__name__": name}, "values": odd}, {"metric": {"__name__": name}}), NOTHING)
    assert read(Kind.SERVER).values == ()


@respx.mock
def test_an_unauthorized_server() -> None:
    respx.post(QUERY).mock(return_value=httpx.Response(401, content="no"))
    assert refused(Kind.SERVER).text == "it does not let us in (HTTP 401 Unauthorized)"


@respx.mock
def test_a_path_before_the_api_is_kept() -> None:
    from kelr.metrics.endpoints import Access, endpoint_of  # noqa: PLC0415
    from tests.metrics.asking import TLS  # noqa: PLC0415

    route = respx.post(f"{SERVER}/prom/api/v1/query").mock(return_value=httpx.Response(200, json=NOTHING))
    prometheus_server.query_server(endpoint_of(Kind.SERVER, f"{SERVER}/prom/"), Access(), TLS, timeout_s=5)
    assert route.call_count == 2


@pytest.mark.parametrize("text", ['cluster="x"', 'a=~"x.*" , b!="}",', 'env="\\"q\\""'])
def test_matchers(text: str) -> None:
    assert checked_match(text) == text.strip().rstrip(",")


@pytest.mark.parametrize("text", ["", "cluster", 'cluster="x"}', 'a="b" or c="d"', 'a="x', "a=x", '{a="b"}'])
def test_what_is_no_matcher(text: str) -> None:
    with pytest.raises(UsageError):
        checked_match(text)
