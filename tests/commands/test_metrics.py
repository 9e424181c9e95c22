"""``kelr metrics`` as a whole: what it shows, its exit codes, and that it tells no secret."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import respx

from kelr.errors import ConnectError
from kelr.model import Snapshot, TopicError
from kelr.sources.memory import MemorySource
from tests.commands.conftest import Kelr
from tests.incident import INCIDENT
from tests.metrics.test_which_cluster import NOW_S, two_brokers_each
from tests.view.test_schema import violations

BODIES = Path(__file__).parents[1] / "metrics" / "bodies"
SECRET = "hunter2-s3cr3t"
FINE = replace(INCIDENT, partitions=tuple(one for one in INCIDENT.partitions if str(one.address) == "orders:0"))


class Live(MemorySource):
    """A cluster that is read when it is asked."""

    @property
    def taken_at_ms(self) -> int | None:
        return None


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Callable[[Snapshot], None]:
    """Makes a snapshot answer as a live cluster."""

    def serve(snapshot: Snapshot) -> None:
        monkeypatch.setattr("kelr.commands.session.open_source", lambda _: Live(snapshot))

    return serve


def controller(offline: int, **more: int) -> httpx.Response:
    """A controller's exporter, by the common rules."""
    values = {"offlinepartitionscount": offline, "activecontrollercount": 1, **more}
    lines = [f"kafka_controller_kafkacontroller_{name} {value}.0" for name, value in values.items()]
    return httpx.Response(200, text="\n".join([*lines, ""]))


@respx.mock
def test_the_incident_for_people(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    live(INCIDENT)
    respx.get("http://c1:9404/metrics").mock(return_value=controller(2))
    respx.get("http://b2:9404/metrics").mock(side_effect=httpx.ConnectError("[Errno 111] Connection refused"))
    ran = kelr("metrics", "--endpoint", "c1:9404", "--endpoint", "b2:9404", "-b", "kafka-1:9092")
    assert ran.code == 7
    lines = ran.out.splitlines()
    asked = "2 endpoints asked, 1 without an answer"
    assert lines[0] == f"cluster 4L6g3nShT-eMCtK--X86sw, 5 partitions counted (live); {asked}"
    shown = [re.sub(" +", " ", line) for line in lines]
    assert "offline partitions 2 2 same 1 controller -" in shown
    assert "under min ISR (all) - 3 kelr alone - -" in shown
    assert any(
        re.fullmatch(r"http://b2:9404/metrics prometheus-text \? \d\.\d s cannot connect: Connection refused", line)
        for line in shown
    )
    assert lines[-3:] == [
        " leaderless: 2 partitions have no leader",
        " under-min-isr: 3 partitions are under min ISR",
        " endpoint-down: 1 of 2 endpoints gave no answer",
    ]
    assert ran.err.splitlines() == [
        "of 1 partition it is not known whether kelr's at_min_isr, global_under_min_isr, partitions_under_min_isr and"
        " under_min_isr should count them",
        "  next: kelr explain -b kafka-1:9092",
        "error: not reached: http://b2:9404/metrics [some-endpoints-silent]",
        "  fix: check the addresses; what the others say is above",
    ]


@respx.mock
def test_the_document(live: Callable[[Snapshot], None], kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    live(INCIDENT)
    # A second after the agent answered; the server's clock is ten minutes on.
    monkeypatch.setattr("kelr.commands.metrics_reading.now_ms", lambda: 1_795_337_293_000)
    monkeypatch.setattr("kelr.metrics.prometheus_server.clock_s", lambda: 1_795_337_900.0)
    respx.post("http://prom/api/v1/query").mock(
        side_effect=[
            httpx.Response(200, content=(BODIES / "server-matrix.json").read_bytes()),
            httpx.Response(200, content=(BODIES / "server-vector.json").read_bytes()),
        ]
        * 2
    )
    respx.post("http://k:8778/jolokia/").mock(
        return_value=httpx.Response(200, content=(BODIES / "jolokia-controller.json").read_bytes())
    )
    ran = kelr("metrics", "--prometheus", "http://prom", "--jolokia", "k:8778", "-b", "kafka-1:9092", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    assert violations(document, "metrics") == []
    items = {one["metric"]: one for one in document["items"]}
    assert items["unclean_elections"]["readings"][0] == {
        "endpoint": "http://k:8778/jolokia/",
        "process": "http://k:8778/jolokia/",
        "name": "kafka.controller:name=UncleanLeaderElectionsPerSec,type=ControllerStats",
        "value": 6,
        "at_ms": 1_795_337_292_000,
        "old": False,
        "increase": None,
    }
    # What the server scraped is long ago by then, and not counted.
    assert [(one["process"], one["old"]) for one in items["offline_partitions"]["readings"]] == [
        ("http://k:8778/jolokia/", False),
        ("127.0.0.1:19400", True),
    ]
    assert items["offline_partitions"]["comparison"] == "different"
    assert document["next"] == "kelr explain -b kafka-1:9092"
    assert [one["heard"] for one in document["endpoints"]] == [True, True]


@respx.mock
def test_what_differs_is_read_again_before_it_is_said(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    live(FINE)
    route = respx.get("http://c1/metrics").mock(side_effect=[controller(3), controller(0)])
    ran = kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092", "--check")
    assert (ran.code, route.call_count) == (0, 2)
    assert ran.out.splitlines()[-1] == " nothing to be woken for"
    lasting = respx.get("http://c1/metrics").mock(return_value=controller(3))
    ran = kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092", "--check")
    assert (ran.code, lasting.call_count) == (1, 4)
    assert ran.err.splitlines() == ["what differs was read a second time, and differs still"]
    assert " different: offline partitions: Kafka says 3, kelr counts 0, and nothing explains it" in ran.out


@respx.mock
def test_an_endpoint_that_is_named_twice_is_asked_once(kelr: Kelr) -> None:
    """A broker does not lead twice as many partitions for it."""
    text = "kafka_server_replicamanager_underminisrpartitioncount 1.0\n"
    route = respx.get("http://b1:9404/metrics").mock(return_value=httpx.Response(200, text=text))
    ran = kelr("metrics", "--endpoint", "b1:9404", "--endpoint", "http://b1:9404/metrics", "-o", "json")
    assert (ran.code, route.call_count) == (0, 1)
    items = {one["metric"]: one for one in json.loads(ran.out)["items"]}
    assert items["under_min_isr"]["value"] == 1


@respx.mock
def test_values_that_are_no_counts_are_left_out(kelr: Kelr) -> None:
    """The sum of two of them is infinite."""
    text = "kafka_server_replicamanager_underminisrpartitioncount 1e308\nkafka_server_replicamanager_leadercount 7\n"
    for name in ("b1", "b2"):
        respx.get(f"http://{name}/metrics").mock(return_value=httpx.Response(200, text=text))
    ran = kelr("metrics", "--endpoint", "b1", "--endpoint", "b2", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    items = {one["metric"]: one for one in document["items"]}
    assert items["leaders"]["value"] == 14
    assert items["under_min_isr"]["value"] is None
    assert "1 of its values are too large for any count, and are left out" in document["endpoints"][0]["notes"]


@respx.mock
def test_check(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    respx.get("http://c1/metrics").mock(return_value=controller(2))
    live(INCIDENT)
    assert kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092", "--check").code == 1
    assert kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092").code == 0
    assert kelr("metrics", "--endpoint", "c1", "--check").code == 1


@respx.mock
def test_a_snapshot_of_another_time_is_not_compared(snapshot_file: str, kelr: Kelr) -> None:
    respx.get("http://c1/metrics").mock(return_value=controller(0))
    ran = kelr("metrics", "--endpoint", "c1", "--snapshot", snapshot_file)
    assert ran.code == 0
    assert re.search(r"^offline partitions +0 +2  not comparable", ran.out, re.MULTILINE)


def test_a_reading_that_begins_late_is_no_defect(
    live: Callable[[Snapshot], None], kelr: Kelr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine its thread began a second late, and that was an internal error."""
    monkeypatch.setattr("kelr.commands.metrics_reading.read_all", lambda *_, **__: time.sleep(1.2) or ())
    live(FINE)
    assert kelr("metrics", "-b", "kafka:9092").code == 0


@respx.mock
def test_without_a_cluster(kelr: Kelr) -> None:
    respx.get("http://c1/metrics").mock(return_value=controller(4))
    ran = kelr("metrics", "--endpoint", "c1")
    assert ran.code == 0
    assert "no cluster; 1 endpoint asked" in ran.out
    assert " leaderless: 4 partitions have no leader" in ran.out


@respx.mock
def test_a_cluster_that_is_down_is_no_end(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ConnectError("no broker answers")

    monkeypatch.setattr("kelr.commands.session.open_source", fail)
    respx.get("http://c1/metrics").mock(return_value=controller(4))
    ran = kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092")
    assert ran.code == 7
    assert "the cluster was not read: no broker answers" in ran.err
    assert " leaderless: 4 partitions have no leader" in ran.out
    respx.get("http://c1/metrics").mock(return_value=httpx.Response(500))
    assert kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092").code == 3
    assert kelr("metrics", "-b", "kafka-1:9092").code == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing says what to read"),
        (["--endpoint", "ftp://k/x"], "--endpoint ftp://k/x is no address that can be asked"),
        (["--endpoint", "k:port"], "is no address that can be asked"),
        (["--endpoint", f"http://ann:{SECRET}@k/"], "with a user in the address"),
        (["--prometheus", "p", "--query-match", "a=b"], "--query-match a=b is no list of label matchers"),
        (["--endpoint", "k", "--user", "ann"], "no password for user ann"),
        (["--endpoint", "k", "--key", "x.pem"], "--key says nothing without a certificate"),
        (["--endpoint", "k", "--token-file", "nowhere"], "cannot read the secret in nowhere: No such file"),
        (["--endpoint", "k", "--ca", "nowhere.pem"], "nowhere.pem cannot be used for TLS: No such file"),
        (["export", "--listen", "9966", "-b", "k:1"], "--listen 9966 is no address"),
        (["export", "--listen", "h:99999", "-b", "k:1"], "--listen h:99999 is no address"),
        (["export"], "nothing says which cluster to ask"),
    ],
)
def test_wrong_usage(
    kelr: Kelr, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kelr("metrics", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert SECRET not in ran.err


@respx.mock
def test_secrets_are_never_printed(kelr: Kelr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    url = f"http://c1/metrics?apikey={SECRET}"
    said = f"bad token {SECRET}"
    route = respx.get(url).mock(
        side_effect=[controller(0), httpx.Response(401, text=said), httpx.ConnectError(f"{url}: [Errno 111] refused")]
    )
    shown = ""
    for _ in range(3):
        ran = kelr("metrics", "--endpoint", url, "--token-file", str(token), "--debug", "--verbose")
        shown += ran.out + ran.err
    assert route.calls[0].request.headers["authorization"] == f"Bearer {SECRET}"
    assert "the password or token went to http://c1/metrics without TLS" in shown
    monkeypatch.setenv("KELR_METRICS_PASSWORD", SECRET)
    respx.post("http://p/api/v1/query").mock(
        return_value=httpx.Response(400, json={"status": "error", "errorType": "auth", "error": f"no {SECRET} here"})
    )
    ran = kelr("metrics", "--prometheus", "p", "--user", "ann", "-o", "json")
    assert "auth: no *** here" in ran.out
    shown += ran.out + ran.err
    ran = kelr("metrics", "--endpoint", "http://c1/nothing", "--user", "ann", "-o", "json")
    shown += ran.out + ran.err
    basic = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    respx.get("http://c2/metrics").mock(
        return_value=httpx.Response(500, extensions={"reason_phrase": f"Basic {basic}".encode()})
    )
    ran = kelr("metrics", "--endpoint", "c2", "--user", "ann", "-o", "json")
    assert "it answers HTTP 500 Basic ***" in ran.out
    assert SECRET not in shown + ran.out + ran.err
    assert basic not in shown + ran.out + ran.err


def test_the_exporter_as_a_process_ends_cleanly_on_sigterm() -> None:
    # Nobody listens at port 1: it serves all the same, and says that it sees nothing.
    command = ["metrics", "export", "-b", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--timeout", "1", "--interval", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "kelr", *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            serving = process.stderr.readline()
            found = re.fullmatch(r"serving (http://127\.0\.0\.1:\d+/metrics), looking every 1 s\n", serving)
            assert found is not None, serving
            with urllib.request.urlopen(found[1], timeout=10) as answer:
                text = answer.read().decode()
            assert process.stderr.readline().startswith("the cluster is not seen: ")
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
        finally:
            process.kill()
    assert "\nkelr_up 0.0\n" in text
    assert (process.returncode, out) == (0, "")


def test_a_saved_cluster_is_not_watched(snapshot_file: str, kelr: Kelr) -> None:
    ran = kelr("metrics", "export", "--snapshot", snapshot_file)
    assert ran.code == 2
    assert "is a saved snapshot, and nothing in it will change" in ran.err


def test_the_library_is_not_loaded_for_the_help() -> None:
    program = "import sys; from kelr.commands.main import main; main(['metrics', '--help']); print(*sys.modules)"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environ, timeout=60
    )
    assert {"httpx", "prometheus_client", "kafka", "confluent_kafka"} & set(done.stdout.split()) == set()


@respx.mock
def test_the_command_shows_the_rest_and_asks_which(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.metrics.prometheus_server.clock_s", lambda: NOW_S)
    respx.post("http://prom/api/v1/query").mock(side_effect=two_brokers_each("pay", "log"))
    text = "kafka_controller_kafkacontroller_offlinepartitionscount 3.0\n"
    respx.get("http://c1:9404/metrics").mock(return_value=httpx.Response(200, text=text))
    ran = kelr("metrics", "--prometheus", "http://prom", "--endpoint", "c1:9404", "-o", "json")
    assert ran.code == 2
    document = json.loads(ran.out)
    items = {one["metric"]: one["value"] for one in document["items"]}
    assert (items["offline_partitions"], items["under_min_isr"]) == (3, None)
    says = 'it has series of several clusters, and which one is meant was not said: cluster="log" (2 processes),'
    assert document["endpoints"][1]["problem"] == f'{says} cluster="pay" (2 processes)'
    assert ran.err.splitlines()[-1] == (
        """  fix: say which one: --query-match 'cluster="log"'; or that they are one:"""
        """ --query-match 'cluster=~"log|pay"'"""
    )


@respx.mock
def test_sums_without_anything_to_tell_by_are_said(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.metrics.prometheus_server.clock_s", lambda: NOW_S)
    respx.post("http://prom/api/v1/query").mock(side_effect=two_brokers_each("pay") * 2)
    ran = kelr("metrics", "--prometheus", "http://prom")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "figures marked (led) are the sum of what 2 brokers say: no label tells clusters apart, and no cluster was"
        " named that says how many it has"
    ]
    ran = kelr("metrics", "--prometheus", "http://prom", "--query-match", 'cluster="pay"')
    assert (ran.code, ran.err) == (0, "")


@respx.mock
def test_no_alert_says_no_more_than_was_read(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    """Brokers count nothing that has no leader, and a principal may not see all topics."""
    led = httpx.Response(200, text="kafka_server_replicamanager_underminisrpartitioncount 0.0\n")
    respx.get("http://b1/metrics").mock(return_value=led)
    respx.get("http://c1/metrics").mock(return_value=controller(0))

    def last(*words: str) -> str:
        return kelr("metrics", *words).out.splitlines()[-1]

    quiet = " nothing to be woken for"
    unknown = "; whether partitions have leaders is not known (no controller was read)"
    assert last("--endpoint", "b1") == f"{quiet} in what was read{unknown}"
    assert last("--endpoint", "c1", "--endpoint", "b1") == f"{quiet} in what was read"
    live(FINE)
    assert last("--endpoint", "c1", "-b", "kafka-1:9092") == quiet
    live(replace(FINE, topic_errors=(TopicError("hidden", "TOPIC_AUTHORIZATION_FAILED", "may not be seen"),)))
    assert last("--endpoint", "c1", "-b", "kafka-1:9092") == f"{quiet} in what could be described"


@respx.mock
def test_all_looks_well_and_no_controller_answers(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers then tell what they knew last: that nothing is wrong in it is no all-clear."""
    respx.get("http://c1/metrics").mock(return_value=controller(0))
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: Live(FINE))
    words = ("metrics", "--endpoint", "c1", "-b", "kafka-1:9092", "--check")
    assert kelr(*words).code == 0
    monkeypatch.setattr(Live, "controller_silence", "REQUEST_TIMED_OUT", raising=False)
    ran = kelr(*words)
    assert ran.code == 1
    assert "nothing to be woken for" not in ran.out
    assert " controller-silent: no controller answers (REQUEST_TIMED_OUT): " in ran.out
    document = json.loads(kelr(*words, "-o", "json").out)
    assert [one["name"] for one in document["alerts"]] == ["controller-silent"]


def test_a_cluster_that_shows_nothing_is_not_one_that_is_well(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    """Brokers leave topics that may not be described out, without a word: 0 of everything says nothing."""
    live(replace(INCIDENT, partitions=(), configs={}, logs={}))
    ran = kelr("metrics", "-b", "kafka-1:9092")
    assert ran.out.splitlines()[-1] == " no partition was seen, so nothing is known to be well"
    assert "no partition was found: brokers leave topics" in ran.err
    assert kelr("metrics", "-b", "kafka-1:9092", "--check").code == 1
    cells = [line.split() for line in ran.out.splitlines() if "offline partitions" in line]
    assert [one[2:4] for one in cells] == [["-", "?"]], ran.out
    items = {one["metric"]: one for one in json.loads(kelr("metrics", "-b", "kafka-1:9092", "-o", "json").out)["items"]}
    assert {items[one]["computed"] for one in ("offline_partitions", "partitions", "under_min_isr")} == {None}
    assert items["active_brokers"]["computed"] == 2


@respx.mock
def test_a_gauge_of_0_is_not_the_same_as_nothing_seen(live: Callable[[Snapshot], None], kelr: Kelr) -> None:
    respx.get("http://c1/metrics").mock(return_value=controller(0))
    live(replace(INCIDENT, partitions=(), configs={}, logs={}))
    document = json.loads(kelr("metrics", "--endpoint", "c1", "-b", "kafka-1:9092", "-o", "json").out)
    (offline,) = [one for one in document["items"] if one["metric"] == "offline_partitions"]
    assert (offline["value"], offline["computed"], offline["comparison"]) == (0, None, "not-comparable")
    assert "kelr was shown no partition" in offline["why"]


@respx.mock
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "go_threads 7.0\n",
            "no endpoint that answered has any of these figures, and no cluster was read",
        ),
        (
            "kafka_server_replicamanager_underminisrpartitioncount 0.0\n",
            "nothing to be woken for in what was read; whether partitions have leaders is not known",
        ),
    ],
)
def test_endpoints_that_tell_nothing_of_leaders_pass_no_check(kelr: Kelr, body: str, said: str) -> None:
    respx.get("http://c1/metrics").mock(return_value=httpx.Response(200, text=body))
    ran = kelr("metrics", "--endpoint", "c1", "--check")
    assert ran.code == 1
    assert said in ran.out
    respx.get("http://c1/metrics").mock(return_value=controller(0))
    assert kelr("metrics", "--endpoint", "c1", "--check").code == 0
