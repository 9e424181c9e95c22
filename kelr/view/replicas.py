"""Lists of replicas for people, with a mark on each that is not live: readable without colour."""

from __future__ import annotations

from collections.abc import Iterable

from kelr.model import BrokerStatus, Cluster
from kelr.view.styled import Span, Style, Text, joined, plain, styled

LEGEND = "marks: ~ fenced or shutting down, ! offline or not registered"
UNKNOWN = styled("?", Style.NOTICE)
"""Not known, which is something else than nothing (``-``)."""

_MARKS = {
    BrokerStatus.LIVE: ("", Style.PLAIN),
    BrokerStatus.FENCED: ("~", Style.NOTICE),
    BrokerStatus.SHUTTING_DOWN: ("~", Style.NOTICE),
    BrokerStatus.UNREGISTERED: ("!", Style.BAD),
    BrokerStatus.OFFLINE: ("!", Style.BAD),
}


class ReplicaMarks:
    """Marks replicas by their brokers' status, which it looks up once for each broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._spans: dict[tuple[int, bool], Span] = {}

    def one(self, replica: int, *, failed: bool = False) -> Span:
        """A replica with its mark; `failed` where its log is offline although its broker may be live."""
        span = self._spans.get((replica, failed))
        if span is None:
            status = self._cluster.status(replica)
            if failed and status is BrokerStatus.LIVE:
                status = BrokerStatus.OFFLINE
            mark, style = _MARKS[status]
            span = self._spans[replica, failed] = Span(f"{replica}{mark}", style)
        return span

    def many(self, replicas: Iterable[int] | None, failed: Iterable[int] = ()) -> Text:
        """Replicas in the order given; ``?`` where they are not known, empty where there are none."""
        if replicas is None:
            return UNKNOWN
        return joined(self.one(replica, failed=replica in failed) for replica in replicas)


def number_text(value: int | None) -> Text:
    """A number, or that it is not known."""
    return UNKNOWN if value is None else plain(str(value))
