"""Serves what a `Watcher` saw, in Prometheus' format. A scrape reads what is there and never asks the cluster."""

from __future__ import annotations

import io
import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kelr import __version__
from kelr.errors import UsageError
from kelr.metrics.computed import Board, Seen
from kelr.model import BrokerStatus, Situation

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

STALE_AFTER = 3
"""Figures that are older than so many intervals are served no more."""
_SLOWEST_CLIENT_S = 10
"""How long a client may take in all, to ask and to read."""
_ROUND_S = 0.2
"""How often it is looked whether a client is too slow, or the server is to end."""


def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    """A gauge that values are added to."""
    return GaugeMetricFamily(name, text, labels=labels)


def one(name: str, text: str, value: float) -> GaugeMetricFamily:
    """A gauge of one value."""
    return GaugeMetricFamily(name, text, value=value)


class BoardCollector(Collector):
    """The metrics of a board: those of the exporter always, those of the cluster while they are fresh."""

    def __init__(self, board: Callable[[], Board], clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """What a scrape gets."""
        board = self._board()
        age_s = None if board.seen_at is None else max(0.0, self._clock() - board.seen_at)
        yield from _about_itself(board, age_s)
        if (
            board.seen is not None
            and age_s is not None
            and age_s <= STALE_AFTER * board.interval_s + (board.took_s or 0)
        ):
            yield from _cluster(board.seen)
            yield from _troubles(board.seen)
            yield from _of_the_kip(board.seen)


def _about_itself(board: Board, age_s: float | None) -> Iterator[Metric]:
    build = gauge("kelr_build_info", "The version of kelr that serves this; always 1.", ("version",))
    build.add_metric([__version__], 1)
    yield build
    yield one("kelr_up", "1 if the newest look saw the cluster, 0 if it failed or none has ended yet.", board.up)
    yield one("kelr_look_interval_seconds", "Seconds from the beginning of a look to the next.", board.interval_s)
    looks = CounterMetricFamily("kelr_looks", "Looks at the cluster, failed ones too.", value=board.looks)
    yield looks
    errors = CounterMetricFamily("kelr_look_errors", "Looks that failed, by kind of error.", labels=("kind",))
    for kind, count in board.errors.items():
        errors.add_metric([kind], count)
    yield errors
    if age_s is None or board.seen_at_s is None or board.took_s is None:
        return
    yield one(
        "kelr_look_age_seconds", "Seconds since the newest look that succeeded began: the age of every figure.", age_s
    )
    yield one("kelr_look_timestamp_seconds", "When that was, in seconds since 1970 UTC.", board.seen_at_s)
    yield one("kelr_look_duration_seconds", "How long that look took, in seconds.", board.took_s)


def _cluster(seen: Seen) -> Iterator[Metric]:
    elr = seen.cluster.features.elr_enabled
    info = gauge(
        "kelr_cluster_info",
        "The cluster, the election rules that it runs, and whether it keeps ELR; always 1.",
        ("cluster_id", "rules", "elr"),
    )
    info.add_metric(
        [seen.cluster.cluster_id or "", seen.rules, "unknown" if elr is None else "on" if elr else "off"], 1
    )
    yield info
    brokers = gauge("kelr_brokers", "Brokers by status; NaN of those that the cluster does not list.", ("status",))
    for status in BrokerStatus:
        listed = status is BrokerStatus.LIVE or seen.cluster.lists_fenced_brokers
        brokers.add_metric([status], seen.brokers.get(status, 0 if listed else math.nan))
    yield brokers
    controllers = gauge(
        "kelr_controllers",
        "Controllers that vote, by whether they lead or follow, or are behind; NaN where that is not known.",
        ("state",),
    )
    following = seen.cluster.controllers
    for state, follows in (("following", True), ("behind", False)):
        count = sum(one is follows for one in following.values())
        controllers.add_metric([state], count if following else math.nan)
    yield controllers
    yield one(
        "kelr_controller_silent",
        "1 if no controller answered: every figure is then what brokers knew last; 0: one did, or it is not known.",
        seen.controller_silence is not None,
    )
    yield one(
        "kelr_partitions",
        "Partitions that were read; brokers do not list those that this principal may not describe.",
        seen.partitions,
    )
    yield one(
        "kelr_leaderless_partitions",
        "Partitions that were read, without a leader or whose recorded leader is not live; NaN, not 0, where none was"
        " read, a listed topic could not be described, or no controller answered.",
        _known(seen, seen.leaderless),
    )
    situations = gauge(
        "kelr_situation_partitions",
        "Partitions in each situation; each that was read is in exactly one. NaN, not 0, where"
        " kelr_leaderless_partitions would be; healthy is never NaN.",
        ("situation",),
    )
    for situation, count in seen.situations.items():
        situations.add_metric([situation], count if situation is Situation.HEALTHY else _known(seen, count))
    yield situations
    unknown = gauge(
        "kelr_unknown_partitions", "Partitions of which it is not known whether a figure counts them.", ("figure",)
    )
    for figure, count in seen.unknown.items():
        unknown.add_metric([figure], count)
    yield unknown
    yield one(
        "kelr_undescribed_topics",
        "Listed topics that could not be described; brokers do not list those that this principal may not describe.",
        seen.topic_errors,
    )


def _known(seen: Seen, count: int, figure: str = "") -> float:
    """A count of partitions in trouble; NaN instead of a 0 that nobody can vouch for: no partition was shown, some
    could not be described or judged, or no controller answered."""
    whole = bool(seen.partitions) and not seen.topic_errors and seen.controller_silence is None
    return count if count or (whole and not seen.unknown.get(figure)) else math.nan


def _troubles(seen: Seen) -> Iterator[Metric]:
    waits = gauge(
        "kelr_broker_awaited_partitions",
        "Partitions without a leader that wait for this broker to return.",
        ("broker",),
    )
    for broker, count in sorted(seen.awaited.items()):
        waits.add_metric([str(broker)], count)
    yield waits
    topics = gauge(
        "kelr_topic_trouble_partitions",
        "Partitions of a topic that are not healthy, by situation; healthy topics have no series, nor have those that"
        " kelr_series_left_out counts.",
        ("topic", "situation"),
    )
    for topic, situation, count in seen.topics:
        topics.add_metric([topic, situation], count)
    yield topics
    partitions = gauge(
        "kelr_partition_trouble",
        "1 for each partition that is not healthy, with its situation; healthy ones have no series, nor have those that"
        " kelr_series_left_out counts.",
        ("topic", "partition", "situation"),
    )
    for topic, partition, situation in seen.listed:
        partitions.add_metric([topic, str(partition), situation], 1)
    yield partitions
    left_out = gauge(
        "kelr_series_left_out",
        "Series of topics and of partitions that are not served because there would be too many.",
        ("kind",),
    )
    left_out.add_metric(["topic"], seen.topics_left_out)
    left_out.add_metric(["partition"], seen.listed_left_out)
    yield left_out


def _of_the_kip(seen: Seen) -> Iterator[Metric]:
    """KIP-966's names, which no release of Kafka serves. Recoveries that have ended only the controller counts."""
    yield one(
        "kafka_controller_global_under_min_isr_partition_count",
        "KIP-966, computed by kelr: partitions with fewer in sync than min ISR, with or without a leader; NaN, not 0,"
        " where not all are known.",
        _known(seen, seen.under_min_isr, "global_under_min_isr"),
    )
    yield one(
        "kafka_controller_manual_leader_election_required_partition_count",
        "KIP-966, computed by kelr: partitions that get no leader until an operator elects one; NaN, not 0, where not"
        " all are known.",
        _known(seen, seen.needs_operator, "manual_leader_election_required"),
    )
    # A part of them says nothing, so it is all or NaN.
    whole = not math.isnan(_known(seen, 0, "electable_replicas"))
    yield one(
        "kafka_replication_electable_replicas_count",
        "KIP-966, computed by kelr: members of ISR and ELR of all partitions; NaN where not all are known.",
        seen.electable if whole else math.nan,
    )
    if seen.recoveries_finished is not None:
        yield one(
            "kafka_controller_unclean_recovery_finished_count",
            "KIP-966, as the controller's endpoint tells: unclean recoveries that have ended since it took over.",
            seen.recoveries_finished,
        )
    if seen.in_recovery is not None:
        yield one(
            "kafka_controller_unclean_recovery_partitions_count",
            "KIP-966, computed by kelr: partitions under unclean recovery; NaN, not 0, where not all are known.",
            _known(seen, seen.in_recovery, "unclean_recovery"),
        )


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each client, which has `_SLOWEST_CLIENT_S` for all that it does, however it spreads that."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, float] = {}
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by the loop that accepts, several times a second."""
        super().service_actions()
        late = time.monotonic() - _SLOWEST_CLIENT_S
        for request, since in tuple(self._open.items()):
            if since < late:
                with suppress(OSError):  # its thread wakes up, and closes it
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that is slow, hangs up or speaks no HTTP is no news."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout: ClassVar[int] = _SLOWEST_CLIENT_S

    def get_stderr(self) -> Any:
        """Where wsgiref writes tracebacks of what goes wrong while an answer is sent; `_answered` tells of the rest."""
        return io.StringIO()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a scrape every few seconds is no news."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A server that runs; `close` ends it."""

    server: WSGIServer
    thread: Thread

    @property
    def port(self) -> int:
        return int(self.server.server_port)

    def close(self) -> None:
        """Take no more scrapes."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(2.0)


def _answered(app: WSGIApplication, told: Callable[[str], None]) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        try:
            return app(environ, start)
        except Exception as error:  # a defect: the scrape fails, and the next one may not
            told(f"a scrape could not be answered: {type(error).__name__}: {error}")
            start("500 Internal Server Error", [("Content-Type", "text/plain")])
            return [b"kelr could not make this answer\n"]

    return answer


def serve(
    host: str, port: int, board: Callable[[], Board], *, told: Callable[[str], None] = lambda _: None
) -> Exporter:
    """Serve the board's metrics under every path; port 0 takes a free one.

    Args:
        told: is told of a scrape that kelr could not answer.

    Raises:
        UsageError: it cannot listen there.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BoardCollector(board))
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        server_class = _ServerV6 if family == socket.AF_INET6 else _Server
        server = make_server(host, port, _answered(make_wsgi_app(registry), told), server_class, handler_class=_Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {host}:{port}: {reason}",
            next_step="choose another address with --listen HOST:PORT",
            code="cannot-listen",
        ) from error
    thread = Thread(target=server.serve_forever, args=(_ROUND_S,), name="kelr-exporter", daemon=True)
    thread.start()
    return Exporter(server, thread)
