"""What ``kelr describe --summary`` shows: how many partitions are in each situation, and what hangs on each broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelr.model import Cluster, Situation, TopicError
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows
from kelr.view.columns import Column, Fact, Json, View, column, item_of
from kelr.view.describe import (
    CLUSTER_HEAD,
    ERRORS_TAIL,
    NOTHING_READ,
    NULL_UNSEEN,
    cluster_head,
    count_text,
    error_items,
    explain_command,
    note_errors,
    situation_text,
    vouched,
)
from kelr.view.output import Output
from kelr.view.replicas import ReplicaMarks
from kelr.view.styled import plain
from kelr.view.table import Table

KIND = "kelr/describe-summary"
_MOST_WAITING = 16_384
"""Kinds of partitions whose counts wait."""


@dataclass
class BrokerCount:
    """What one broker is to the partitions that were read."""

    broker: int
    leads: int = 0
    replicas: int = 0
    in_isr: int = 0
    in_elr: int = 0
    last_known: int = 0
    awaited: int = 0
    """Partitions without a leader that wait for this broker: its return would elect somebody."""


@dataclass
class Summary:
    """Counts over partitions; grows with the number of brokers, not of partitions."""

    cluster: Cluster
    partitions: int = 0
    leaderless: int = 0
    """Without a leader, or with one that is not live."""
    situations: Counter[Situation] = field(default_factory=Counter)
    brokers: dict[int, BrokerCount] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._live = self.cluster.live
        self._waiting: Counter[Kind[Described]] = Counter()
        for broker in self.cluster.brokers:
            self._of(broker.id)

    def add(self, partitions: Sequence[Described]) -> None:
        """Count these partitions; those that are alike are counted together, in the end (`settle`)."""
        if isinstance(partitions, Rows):
            partitions.count_into(self._waiting)
            if len(self._waiting) > _MOST_WAITING:
                self.settle()
        else:
            for row in partitions:
                self._count(row, 1)

    def settle(self) -> None:
        """Count what waits to be counted."""
        for kind, count in self._waiting.items():
            self._count(kind.example, count)
        self._waiting.clear()

    def _count(self, row: Described, count: int) -> None:
        self.partitions += count
        if row.state.leader is None or row.state.leader not in self._live:
            self.leaderless += count
        self.situations[row.situation] += count
        self._count_brokers(row, count)

    def _count_brokers(self, row: Described, count: int) -> None:
        state = row.state
        if state.leader is not None:
            self._of(state.leader).leads += count
        for replica in state.replicas:
            self._of(replica).replicas += count
        for replica in state.isr:
            self._of(replica).in_isr += count
        for replica in state.elr or ():
            self._of(replica).in_elr += count
        for replica in state.last_known_elr or ():
            self._of(replica).last_known += count
        for replica in row.awaited:
            self._of(replica).awaited += count

    def _of(self, broker: int) -> BrokerCount:
        return self.brokers.setdefault(broker, BrokerCount(broker))


def show_summary(
    output: Output,
    summary: Summary,
    *,
    source: str,
    read: int,
    undecided: int = 0,
    errors: Sequence[TopicError] = (),
    targets: Sequence[str] = (),
) -> None:
    """Show situations, then brokers. csv and ndjson hold the situations alone.

    Args:
        read: partitions that were looked at; the filters let those of the summary through.
        undecided: partitions that the filters could not judge.
    """
    summary.settle()
    brokers = [summary.brokers[broker] for broker in sorted(summary.brokers)]
    broker_columns = _broker_columns(summary.cluster, whole=bool(read) and not undecided and not errors)
    command = explain_command(targets, errors) if summary.leaderless else None
    with output.listing(summary_view(summary.situations), cluster_head(summary.cluster, source)) as listing:
        listing.add([situation for situation in Situation if summary.situations[situation]])
        listing.finish(
            {
                "partitions": summary.partitions,
                "read": read,
                "undecided": undecided,
                "brokers": [item_of(broker_columns, broker) for broker in brokers],
                "errors": error_items(errors),
                "next": None if command is None else output.next_command(command),
            }
        )
    if output.format.for_people:
        output.line()
        table = Table(broker_columns, width=output.width, color=output.color)
        output.stdout.writelines(line + "\n" for line in table.lines(brokers))
    if not output.format.is_document:
        note_errors(output, errors)
        if not read and not errors:
            output.note(NOTHING_READ)
        if command is not None:
            output.next(command)


def summary_view(situations: Mapping[Situation, int]) -> View[Situation]:
    """The columns of the summary's situations, each with its number of partitions."""
    return View(KIND, _situation_columns(situations), head=CLUSTER_HEAD, tail=(*_TAIL, *ERRORS_TAIL))


_TAIL = (
    Fact("partitions", "integer", "Partitions that were counted."),
    Fact("read", "integer", "Partitions that were looked at; the filters let those that are counted through."),
    Fact("undecided", "integer", "Partitions that the filters could not judge."),
    Fact(
        "brokers",
        "object[]",
        f"Each broker: status, rack, and what it is to these partitions; a count that is {NULL_UNSEEN}.",
    ),
)


def _situation_columns(situations: Mapping[Situation, int]) -> tuple[Column[Situation], ...]:
    return (
        column("situation", "SITUATION", "string", "The situation.", str, text=situation_text),
        column(
            "partitions",
            "PARTITIONS",
            "integer",
            "How many partitions are in it.",
            lambda situation: situations[situation],
            right=True,
        ),
    )


def _broker_columns(cluster: Cluster, *, whole: bool) -> tuple[Column[BrokerCount], ...]:
    marks = ReplicaMarks(cluster)

    def rack(row: BrokerCount) -> Json:
        broker = cluster.broker(row.broker)
        return None if broker is None else broker.rack

    def count(key: str, title: str) -> Column[BrokerCount]:
        def value(row: BrokerCount) -> int | None:
            return vouched(getattr(row, key), whole=whole)

        return Column(key, title, value=value, text=lambda row: plain(count_text(value(row))), right=True)

    return (
        Column("broker", "BROKER", value=lambda row: row.broker, text=lambda row: (marks.one(row.broker),)),
        Column("status", "STATUS", value=lambda row: str(cluster.status(row.broker))),
        Column("rack", "RACK", value=rack),
        count("leads", "LEADS"),
        count("replicas", "REPLICAS"),
        count("in_isr", "IN ISR"),
        count("in_elr", "IN ELR"),
        count("last_known", "LAST KNOWN"),
        count("awaited", "AWAITED BY"),
    )
