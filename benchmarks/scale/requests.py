"""What reading a cluster asks of it: how many requests, and how long the bare answers take."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from kelr.model import Selection, TopicPartition, select
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource
from kelr.sources.live.client import Client
from kelr.sources.live.connection import Connection
from kelr.sources.live.page_bytes import PageBytes, Skip
from kelr.sources.live.requests import describe_topic_partitions
from kelr.sources.live.transport import Answer, NodeId, Request
from kelr.sources.paging import DEFAULT_PAGE_SIZE, read_logs
from kelr.sources.survey import Filters, survey
from kelr.sources.unwanted import Look, Unwanted

_counted: Counter[str] = Counter()


class _Counting(Client):
    """Counts what is asked."""

    def _asked(
        self, node: NodeId, connection: Connection | None, requests: Sequence[Request], deadline: float
    ) -> tuple[Connection | None, list[Answer]]:
        _counted["requests"] += len(requests)
        return super()._asked(node, connection, requests, deadline)


def requests_sent(server: str, read: Callable[[LiveSource], object]) -> int:
    """How many requests it takes to read something, ApiVersions of the first broker included."""
    _counted.clear()
    with LiveSource(ConnectionSettings.read(server), connect=_Counting) as source:
        read(source)
    return _counted["requests"]


def surveyed(filters: Filters) -> Callable[[LiveSource], object]:
    """Reads what `describe` does with these filters."""
    return lambda source: deque(survey(source, Selection(), filters=filters), maxlen=0)


def decided(source: LiveSource) -> object:
    """Reads what `explain` and `recover plan` do without a target."""
    return deque(decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True), maxlen=0)


def logs_read(topics: Sequence[str]) -> Callable[[LiveSource], object]:
    """Reads what `log-info` does of these topics; of all where there are none."""
    return lambda source: deque(read_logs(source, select(topics)), maxlen=0)


def floor(server: str) -> float:
    """Seconds that all pages take where nothing is done but to find out where the next one starts."""
    skip = Skip(Unwanted((Look(),)))
    transport = Client(ConnectionSettings.read(server))
    transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2.0)
    cursor: TopicPartition | None = None
    began = time.perf_counter()
    while True:
        request = describe_topic_partitions((), cursor, DEFAULT_PAGE_SIZE, skip)
        page = transport.exchange("bootstrap-0", request)
        assert isinstance(page, PageBytes), page
        if page.next_cursor is None:
            transport.close()
            return time.perf_counter() - began
        cursor = TopicPartition(page.next_cursor.topic_name, page.next_cursor.partition_index)
