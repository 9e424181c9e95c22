"""What reading a cluster asks of it: how many requests, and how long the bare answers take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kelr.model import Selection, TopicPartition
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.page_bytes import PageBytes, Skip
from kelr.sources.live.questions import Question
from kelr.sources.live.quick import QuickTransport
from kelr.sources.live.requests import describe_topic_partitions
from kelr.sources.live.transport import Answer, Message, NodeId
from kelr.sources.paging import DEFAULT_PAGE_SIZE
from kelr.sources.survey import Filters, survey
from kelr.sources.unwanted import Look, Unwanted


class _Counting(QuickTransport):
    """Counts what is asked."""

    count = 0

    def exchange(self, node: NodeId, request: Message, *, timeout_s: float | None = None) -> Answer:
        type(self).count += 1
        return super().exchange(node, request, timeout_s=timeout_s)

    def exchange_all(self, node: NodeId, requests: Sequence[Message], *, timeout_s: float) -> Sequence[Answer]:
        type(self).count += len(requests)
        return super().exchange_all(node, requests, timeout_s=timeout_s)


def requests_sent(server: str, filters: Filters) -> int:
    """How many requests `describe` with these filters sends, ApiVersions included."""
    _Counting.count = 1
    with LiveSource(ConnectionSettings.read(server), connect=_Counting) as source:
        for _ in survey(source, Selection(), filters=filters):
            pass
    return _Counting.count


def floor(server: str) -> float:
    """Seconds that all pages take where nothing is done but to find out where the next one starts."""
    skip = Skip(Unwanted((Look(),)))
    transport = QuickTransport(ConnectionSettings.read(server))
    transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2.0)
    cursor: TopicPartition | None = None
    began = time.perf_counter()
    while True:
        question: Question = describe_topic_partitions((), cursor, DEFAULT_PAGE_SIZE, skip)
        page = transport.exchange("bootstrap-0", question)
        assert isinstance(page, PageBytes), page
        if page.next_cursor is None:
            transport.close()
            return time.perf_counter() - began
        cursor = TopicPartition(page.next_cursor.topic_name, page.next_cursor.partition_index)
