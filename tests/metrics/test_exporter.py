"""The exporter: what it serves, that old figures go, and that a scrape never waits."""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kelr.errors import AuthenticationError, ConnectError, NotAuthorizedError, RefusedError, UsageError
from kelr.metrics.computed import Board, Seen, Watcher, kind_of, look
from kelr.metrics.exporter import STALE_AFTER, BoardCollector, Exporter, serve
from kelr.model import BrokerStatus, PartitionState, Situation, Snapshot, TopicConfig, TopicError
from kelr.sources.base import Source
from kelr.sources.memory import MemorySource
from tests.incident import INCIDENT
from tests.metrics.saying import SilentController

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def seen(snapshot: Snapshot = INCIDENT, most: int = 200) -> Seen:
    return look(MemorySource(snapshot), most=most)


def board(**more: object) -> Board:
    known = {
        "interval_s": 10.0,
        "looks": 4,
        "up": True,
        "seen": seen(),
        "seen_at_s": 1e9,
        "seen_at": 100.0,
        "took_s": 0.5,
    }
    return Board(**{**known, **more})  # type: ignore[arg-type]


def collected(now: Board, clock: float = 101.0) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in BoardCollector(lambda: now, lambda: clock).collect()
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def names(samples: Samples) -> set[str]:
    return {name for name, _ in samples}


def test_brokers_that_the_cluster_does_not_list_are_not_counted_as_none() -> None:
    unlisted = replace(seen().cluster, brokers_source="DescribeCluster v1")
    found = collected(board(seen=replace(seen(), cluster=unlisted, brokers={BrokerStatus.LIVE: 2})))
    assert value(found, "kelr_brokers", status="live") == 2
    assert math.isnan(value(found, "kelr_brokers", status="fenced"))
    assert math.isnan(value(found, "kelr_brokers", status="offline"))


def test_the_incident() -> None:
    found = collected(board())
    assert value(found, "kelr_up") == 1
    assert value(found, "kelr_look_age_seconds") == 1
    assert value(found, "kelr_partitions") == 5
    assert value(found, "kelr_leaderless_partitions") == 2
    assert sum(found[one] for one in found if one[0] == "kelr_situation_partitions") == 5
    assert value(found, "kelr_situation_partitions", situation="waiting-for-elr") == 1
    assert value(found, "kelr_situation_partitions", situation="healthy") == 1
    assert value(found, "kelr_broker_awaited_partitions", broker="1") == 1
    assert value(found, "kelr_broker_awaited_partitions", broker="4") == 1
    assert value(found, "kelr_brokers", status="fenced") == 1
    assert value(found, "kelr_topic_trouble_partitions", topic="payments", situation="under-min-isr") == 1
    assert value(found, "kelr_partition_trouble", topic="orders", partition="1", situation="waiting-for-elr") == 1
    assert value(found, "kelr_unknown_partitions", figure="global_under_min_isr") == 1
    assert value(found, "kafka_controller_global_under_min_isr_partition_count") == 3
    assert value(found, "kafka_controller_manual_leader_election_required_partition_count") == 0
    assert value(found, "kelr_series_left_out", kind="partition") == 0


def test_a_look_that_failed_is_told_at_once_and_its_figures_go_when_they_are_old() -> None:
    failed = board(up=False, errors={"connect": 2})
    limit = STALE_AFTER * 10 + 0.5
    fresh = collected(failed, 100 + limit)
    assert value(fresh, "kelr_up") == 0
    assert value(fresh, "kelr_look_errors_total", kind="connect") == 2
    assert value(fresh, "kelr_leaderless_partitions") == 2
    old = collected(failed, 100 + limit + 0.1)
    assert names(old) == {
        "kelr_build_info",
        "kelr_up",
        "kelr_look_interval_seconds",
        "kelr_looks_total",
        "kelr_look_errors_total",
        "kelr_look_age_seconds",
        "kelr_look_timestamp_seconds",
        "kelr_look_duration_seconds",
    }
    assert value(old, "kelr_look_age_seconds") == pytest.approx(limit + 0.1)


def test_before_the_first_look_nothing_is_known() -> None:
    found = collected(Board(10.0))
    assert value(found, "kelr_up") == 0
    assert names(found) == {"kelr_build_info", "kelr_up", "kelr_look_interval_seconds", "kelr_looks_total"}


def test_figures_of_brokers_that_hear_no_controller_say_so() -> None:
    """They look as well as ever: leaders that are dead are kept, and `kelr_up` is 1."""
    assert value(collected(board()), "kelr_controller_silent") == 0
    found = collected(board(seen=look(SilentController(INCIDENT), most=5)))
    assert value(found, "kelr_controller_silent") == 1
    assert value(found, "kelr_up") == 1


def test_controllers_are_counted_and_not_known_ones_are_no_zero() -> None:
    assert math.isnan(value(collected(board()), "kelr_controllers", state="behind"))
    cluster = replace(INCIDENT.cluster, controllers={100: True, 101: True, 102: False})
    found = collected(board(seen=look(MemorySource(replace(INCIDENT, cluster=cluster)), most=5)))
    assert value(found, "kelr_controllers", state="following") == 2
    assert value(found, "kelr_controllers", state="behind") == 1


COUNTS = (
    "kelr_leaderless_partitions",
    "kafka_controller_global_under_min_isr_partition_count",
    "kafka_controller_manual_leader_election_required_partition_count",
)


@pytest.mark.parametrize("what", ["nothing", "errors", "no controller"])
def test_a_look_that_did_not_see_everything_serves_no_0(what: str) -> None:
    healthy = replace(INCIDENT, partitions=INCIDENT.partitions[:1], topic_errors=())
    whole = collected(board(seen=seen(healthy)))
    assert {value(whole, name) for name in COUNTS} == {0}
    partly = {
        "nothing": seen(replace(healthy, partitions=())),
        "errors": seen(replace(healthy, topic_errors=(TopicError("secret", "TOPIC_AUTHORIZATION_FAILED"),))),
        "no controller": look(SilentController(healthy), most=5),
    }[what]
    found = collected(board(seen=partly))
    assert all(math.isnan(value(found, name)) for name in COUNTS)
    assert math.isnan(value(found, "kelr_situation_partitions", situation="no-live-replica"))
    # What is known to be in trouble is counted all the same.
    blind = replace(seen(), topic_errors=1)
    assert value(collected(board(seen=blind)), "kelr_leaderless_partitions") == 2


def test_a_figure_of_which_partitions_are_unknown_is_no_0() -> None:
    known = replace(seen(), under_min_isr=0, needs_operator=0)
    unsure = replace(known, unknown={"global_under_min_isr": 1, "manual_leader_election_required": 0})
    found = collected(board(seen=unsure))
    assert math.isnan(value(found, COUNTS[1]))
    assert value(found, COUNTS[2]) == 0


ELECTABLE = "kafka_replication_electable_replicas_count"
FINISHED = "kafka_controller_unclean_recovery_finished_count"


def test_electable_replicas_are_all_or_not_known() -> None:
    """Of the topic "secret" the ELR is not known, so that the sum is not either."""
    assert math.isnan(value(collected(board()), ELECTABLE))
    known = replace(
        INCIDENT, partitions=tuple(one for one in INCIDENT.partitions if one.elr is not None), topic_errors=()
    )
    members = sum(len(one.isr) + len(one.elr or ()) for one in known.partitions)
    assert value(collected(board(seen=seen(known))), ELECTABLE) == members > 0
    assert math.isnan(value(collected(board(seen=look(SilentController(known), most=5))), ELECTABLE))


def test_finished_recoveries_are_served_where_a_controller_tells() -> None:
    assert FINISHED not in names(collected(board()))
    watcher = Watcher(lambda: MemorySource(INCIDENT), interval_s=0.01, most=5, recoveries_finished=lambda: 4)
    watcher.start()
    until(lambda: watcher.board.looks >= 1)
    watcher.stop()
    assert value(collected(board(seen=watcher.board.seen)), FINISHED) == 4


def test_a_watcher_says_once_that_no_controller_answers_and_once_that_one_does_again() -> None:
    whys = [None, "NOT_CONTROLLER", "NOT_CONTROLLER", None, *[None] * 1000]
    told = list[str]()

    class Fickle(SilentController):
        def forget(self) -> None:
            self.why = whys.pop(0)

    watcher = Watcher(lambda: Fickle(INCIDENT), interval_s=0.01, most=5, told=told.append)
    watcher.start()
    until(lambda: watcher.board.looks >= 5)
    watcher.stop()
    assert told == [
        "no controller answers (NOT_CONTROLLER): what is served is what brokers knew last",
        "a controller answers again",
    ]


def many(topics: int, partitions: int) -> Snapshot:
    """Topics all of whose partitions wait for broker 1; the last topic is worse off."""
    names = [f"t{number:03}" for number in range(topics)]
    states = [
        PartitionState(name, number, None, 1, (1, 2), (), () if name == names[-1] else (1,), ())
        for name in names
        for number in range(partitions)
    ]
    configs = {name: TopicConfig(1, unclean_leader_election=False) for name in names}
    return replace(
        INCIDENT, partitions=tuple(states), configs=configs, logs={}, first_partition_replicas={}, topic_errors=()
    )


def test_series_are_capped_the_worst_come_first_and_the_rest_is_counted() -> None:
    found = collected(board(seen=seen(many(20, 10), most=15)))
    listed = [dict(labels) for name, labels in found if name == "kelr_partition_trouble"]
    assert len(listed) == 15
    assert sum(one["topic"] == "t019" for one in listed) == 10
    assert value(found, "kelr_series_left_out", kind="partition") == 185
    assert value(found, "kelr_series_left_out", kind="topic") == 5
    assert value(found, "kelr_leaderless_partitions") == 200
    assert value(found, "kelr_situation_partitions", situation="waiting-for-elr") == 190
    assert value(found, "kelr_situation_partitions", situation="needs-unclean-recovery") == 10
    assert value(found, "kafka_controller_manual_leader_election_required_partition_count") == 10


def test_no_series_at_all() -> None:
    found = collected(board(seen=seen(many(2, 2), most=0)))
    assert "kelr_partition_trouble" not in names(found)
    assert value(found, "kelr_series_left_out", kind="partition") == 4


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectError("x"), "connect"),
        (AuthenticationError("x"), "authentication"),
        (NotAuthorizedError("x"), "authorization"),
        (RefusedError("x"), "refused"),
        (UsageError("x"), "other"),
        (ZeroDivisionError(), "defect"),
    ],
)
def test_kinds_of_errors(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; the test fails if that takes too long."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_watcher_goes_on_after_errors_and_opens_the_source_anew() -> None:
    class Flaky(MemorySource):
        def forget(self) -> None:
            if looks.pop(0) == "fails":
                raise ConnectError("gone")

    looks = ["works", "fails", "works", "fails", *["works"] * 1000]
    opened, told = [0], list[str]()

    @contextmanager
    def open_one() -> Iterator[Source]:
        opened[0] += 1
        if opened[0] == 1:
            raise ConnectError("not yet")
        with Flaky(INCIDENT) as source:
            yield source

    watcher = Watcher(open_one, interval_s=0.01, most=5, told=told.append)
    watcher.start()
    until(lambda: watcher.board.looks >= 6)
    watcher.stop()
    assert watcher.board.errors["connect"] == 3
    assert opened == [4]
    assert watcher.board.up
    assert watcher.board.seen is not None
    assert watcher.board.seen.situations[Situation.WAITING_FOR_ELR] == 1
    assert told == [
        "the cluster is not seen: not yet",
        "the cluster is seen again",
        "the cluster is not seen: gone",
        "the cluster is seen again",
        "the cluster is not seen: gone",
        "the cluster is seen again",
    ]


def test_a_scrape_does_not_wait_for_a_look_that_hangs() -> None:
    let_go = threading.Event()

    class Hanging(MemorySource):
        def forget(self) -> None:
            let_go.wait(60)

    watcher = Watcher(lambda: Hanging(INCIDENT), interval_s=1, most=5)
    exporter = serve("127.0.0.1", 0, lambda: watcher.board)
    try:
        watcher.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=20) as answer:
            families = {family.name for family in text_string_to_metric_families(answer.read().decode())}
        assert "kelr_up" in families
        assert "kelr_partitions" not in families
    finally:
        let_go.set()
        exporter.close()
        watcher.stop()


def test_a_client_that_says_nothing_holds_up_nobody() -> None:
    exporter = serve("127.0.0.1", 0, board)
    try:
        with socket.create_connection(("127.0.0.1", exporter.port)):
            url = f"http://127.0.0.1:{exporter.port}/metrics"
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert b"kelr_up 1.0" in answer.read()
    finally:
        exporter.close()


def hung_up(exporter: Exporter) -> None:
    """A client that asks, and resets the connection before it reads."""
    with socket.create_connection(("127.0.0.1", exporter.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def dripped(exporter: Exporter) -> None:
    """A client that sends its request byte by byte, until it is sent away."""
    with socket.create_connection(("127.0.0.1", exporter.port)) as client, suppress(OSError):
        client.settimeout(0.05)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            client.sendall(b"G")
            with suppress(TimeoutError):
                if not client.recv(1):
                    return
        pytest.fail("it may go on for ever")


def read_nothing(exporter: Exporter) -> None:
    """A client that asks for more than buffers hold, and does not read it."""
    exporter.server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # clients' sockets inherit it
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", exporter.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        time.sleep(1.0)  # longer than it has


@pytest.mark.parametrize("client", [hung_up, dripped, read_nothing])
def test_no_client_leaves_a_traceback_or_stays(
    client: Callable[[Exporter], None], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kelr.metrics.exporter._SLOWEST_CLIENT_S", 0.4)
    monkeypatch.setattr("kelr.metrics.exporter._Handler.timeout", 0.4)
    told: list[str] = []
    large = board(seen=seen(many(20, 100), most=2000), seen_at=time.monotonic())
    exporter = serve("127.0.0.1", 0, lambda: large, told=told.append)
    try:
        client(exporter)
        until(lambda: not exporter.server._open)  # type: ignore[attr-defined]  # of the server that this is
    finally:
        exporter.close()
    assert (capfd.readouterr(), told) == (("", ""), [])


def test_a_scrape_that_kelr_cannot_answer_is_told_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> Board:
        raise ZeroDivisionError("oh")

    told: list[str] = []
    exporter = serve("127.0.0.1", 0, broken, told=told.append)
    try:
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=20)
    finally:
        exporter.close()
    assert (capfd.readouterr(), told) == (("", ""), ["a scrape could not be answered: ZeroDivisionError: oh"])


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1:{port}: Address already in use"):
            serve("127.0.0.1", port, board)
