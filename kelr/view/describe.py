"""What ``kelr describe`` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from kelr.model import BrokerStatus, Cluster, Situation, TopicError, TopicPartition
from kelr.model.described import Described
from kelr.model.rows import Kind, Rows, example_of_topics, unseen
from kelr.view.columns import Column, Fact, Json, View, column, datum, for_people, item_of
from kelr.view.output import Listing, Output
from kelr.view.replicas import LEGEND, UNKNOWN, ReplicaMarks
from kelr.view.styled import Style, Text, plain, styled
from kelr.view.table import Table

KIND = "kelr/describe"

SILENCE_FACT = "Why no controller answered: what brokers told may be out of date. null: one did, or it is not known."
CLUSTER_HEAD = (
    Fact("cluster_id", "string?", "The cluster's id."),
    Fact("source", "string", "`live`, or the name of the snapshot file."),
    Fact("elr_enabled", "boolean?", "Whether the controller keeps ELR; null: not known."),
    Fact("brokers_source", "string", "The request that listed the brokers."),
    Fact("partitions_source", "string", "The request that described the partitions."),
    Fact("silence", "string?", SILENCE_FACT),
)
NOTHING_READ = (
    "no partition was found: brokers leave topics that this principal may not describe out of their answers without a"
    " word, and a cluster without topics answers the same, so nothing is known to be safe: name topics, or see"
    " kelr doctor --acls"
)
"""Where nobody showed any partition: said wherever it could be taken for a cluster that is well."""
NULL_UNSEEN = "null: none of the partitions that were seen, and not all were"
"""What null stands for in a count (`vouched`)."""


def vouched(count: int, *, whole: bool) -> int | None:
    """A count of partitions, None in place of a 0 that nobody can vouch for.

    Args:
        whole: whether partitions were seen, and all that were asked for.
    """
    return count if count or whole else None


def count_text(count: int | None) -> str:
    """A count in a table: ``1,904``, or ``?`` where it is not known."""
    return "?" if count is None else f"{count:,}"


NOT_KNOWN_WITHOUT_CONTROLLER = (
    "no controller answers, so whether every partition has its leader and min ISR is not known"
)
"""Where brokers knew last of no partition in trouble, and no controller tells whether that is so still."""
ERRORS_TAIL = (
    Fact("errors", "object[]", "Topics that could not be described: {topic, error, detail}."),
    Fact("next", "string?", "The command to type next."),
)
_TAIL = (
    Fact("read", "integer", "Partitions that were looked at."),
    Fact("undecided", "integer", "Partitions that the filters could not judge."),
    Fact("cursor", "string?", "Where --limit cut; goes to --cursor."),
    Fact("notes", "string[]", "What the reader has to know besides."),
)

STYLES: Mapping[Situation, Style] = {
    Situation.HEALTHY: Style.GOOD,
    Situation.UNDER_MIN_ISR: Style.NOTICE,
    Situation.UNKNOWN: Style.NOTICE,
    Situation.LEADER_PENDING: Style.NOTICE,
}
"""How a situation looks; all others are bad."""


def describe_view(cluster: Cluster) -> View[Described]:
    """The columns of `describe`; replicas carry their brokers' marks."""
    marks = ReplicaMarks(cluster)
    columns = (*_machine_columns(cluster), *_people_columns(marks), *_wide_columns(marks, cluster))
    return View(KIND, columns, head=CLUSTER_HEAD, tail=(*ERRORS_TAIL, *_TAIL))


def _machine_columns(cluster: Cluster) -> tuple[Column[Described], ...]:
    return (
        datum("topic", "string", "Topic name.", lambda row: row.state.topic),
        datum("partition", "integer", "Partition number.", lambda row: row.state.partition),
        datum("situation", "string", f"One of {', '.join(Situation)}.", lambda row: str(row.situation)),
        datum("leader", "integer?", "Broker that leads; null: none.", lambda row: row.state.leader),
        datum("leader_epoch", "integer", "Leader epoch.", lambda row: row.state.leader_epoch),
        datum("replicas", "integer[]", "In assignment order, the preferred first.", lambda row: row.state.replicas),
        datum("live_replicas", "integer[]", "On a live broker.", lambda row: _with_status(row, cluster, _LIVE)),
        datum("fenced_replicas", "integer[]", "Fenced or stopping.", lambda row: _with_status(row, cluster, _FENCED)),
        datum(
            "offline_replicas",
            "integer[]",
            "On a broker that is gone, or in a log directory that failed.",
            lambda row: _with_status(row, cluster, _OFFLINE),
        ),
        datum("isr", "integer[]", "In-sync replicas.", lambda row: row.state.isr),
        datum("elr", "integer[]?", "Eligible leader replicas; null: not known.", lambda row: row.state.elr),
        datum("last_known_elr", "integer[]?", "LastKnownELR; null: not known.", lambda row: row.state.last_known_elr),
        datum("min_isr", "integer?", "Effective min ISR; null: not known.", lambda row: row.min_isr),
        *_config_columns(),
        datum("topic_id", "string?", "Topic id.", lambda row: row.state.topic_id),
        datum("partition_epoch", "integer?", "Null for a live cluster.", lambda row: row.state.partition_epoch),
        datum("adding", "integer[]?", "Being added by a reassignment; null: not known.", lambda row: row.state.adding),
        datum(
            "removing",
            "integer[]?",
            "Being removed by a reassignment; null: not known.",
            lambda row: row.state.removing,
        ),
        datum("recovering", "boolean?", "Leader recovery after an unclean election.", lambda row: row.state.recovering),
    )


def _config_columns() -> tuple[Column[Described], ...]:
    min_source, unclean_source = "min_insync_replicas_source", "unclean_leader_election_source"
    return (
        datum("min_insync_replicas", "integer?", "The topic's config.", lambda row: row.config.min_insync_replicas),
        datum(min_source, "string", "Where it is set.", lambda row: str(row.config.min_insync_replicas_source)),
        datum(
            "unclean_leader_election",
            "boolean?",
            "unclean.leader.election.enable of the topic.",
            lambda row: row.config.unclean_leader_election,
        ),
        datum(unclean_source, "string", "Where it is set.", lambda row: str(row.config.unclean_leader_election_source)),
        datum("remote_storage", "boolean?", "Its remote.storage.enable.", lambda row: row.config.remote_storage),
        datum(
            "foreign",
            "string?",
            "The config by which its records are not in its replicas' logs; null: none is told.",
            lambda row: row.config.foreign,
        ),
        datum("config_error", "string?", "Why the configs could not be read.", lambda row: row.config.error),
    )


def _people_columns(marks: ReplicaMarks) -> tuple[Column[Described], ...]:
    return (
        for_people("PARTITION", lambda row: plain(str(row.state.address))),
        for_people("LEADER", lambda row: _leader(row, marks)),
        for_people("EPOCH", lambda row: plain(str(row.state.leader_epoch)), right=True, yields=2),
        for_people("REPLICAS", lambda row: marks.many(row.state.replicas, row.state.offline_replicas or ())),
        for_people("ISR", lambda row: marks.many(row.state.isr)),
        for_people("ELR", lambda row: marks.many(row.state.elr)),
        for_people("LAST KNOWN", lambda row: marks.many(row.state.last_known_elr)),
        for_people(
            "MIN ISR", lambda row: UNKNOWN if row.min_isr is None else plain(str(row.min_isr)), right=True, yields=1
        ),
        for_people("SITUATION", lambda row: standing_text(row.situation, row.state.under_replicated), hyphenated=True),
    )


def _wide_columns(marks: ReplicaMarks, cluster: Cluster) -> tuple[Column[Described], ...]:
    return (
        for_people(
            "RACKS",
            lambda row: plain(" ".join(_rack(cluster, replica) for replica in row.state.replicas)),
            wide=True,
            yields=4,
        ),
        for_people("UNCLEAN", lambda row: _yes_no(row.config.unclean_leader_election), wide=True, yields=5),
        for_people("REMOTE", _remote, wide=True, yields=6),
        for_people("ADDING", lambda row: marks.many(row.state.adding), wide=True, yields=7),
        for_people("REMOVING", lambda row: marks.many(row.state.removing), wide=True, yields=8),
        *(
            [for_people("CORDONED", lambda row: marks.many(_cordoned(row, cluster)), wide=True, yields=3)]
            if _any_cordoned(cluster)
            else ()
        ),
        for_people(
            "TOPIC ID", lambda row: plain(row.state.topic_id) if row.state.topic_id else UNKNOWN, wide=True, yields=9
        ),
    )


def _remote(row: Described) -> Text:
    """Whether the topic has remote storage; or the config by which its records are elsewhere altogether."""
    return _yes_no(row.config.remote_storage) if row.config.foreign is None else plain(row.config.foreign)


def _any_cordoned(cluster: Cluster) -> bool:
    return any(broker.cordoned for broker in cluster.brokers)


def _cordoned(row: Described, cluster: Cluster) -> tuple[int, ...]:
    return tuple(one for one in row.state.replicas if (broker := cluster.broker(one)) is not None and broker.cordoned)


_LIVE = frozenset({BrokerStatus.LIVE})
_FENCED = frozenset({BrokerStatus.FENCED, BrokerStatus.SHUTTING_DOWN})
_OFFLINE = frozenset({BrokerStatus.OFFLINE, BrokerStatus.UNREGISTERED})


def _with_status(row: Described, cluster: Cluster, statuses: Collection[BrokerStatus]) -> Json:
    """Every replica is in exactly one of live, fenced and offline; one whose log directory failed is offline."""
    failed = row.state.offline_replicas or ()

    def status(replica: int) -> BrokerStatus:
        found = cluster.status(replica)
        return BrokerStatus.OFFLINE if found is BrokerStatus.LIVE and replica in failed else found

    return [replica for replica in row.state.replicas if status(replica) in statuses]


def standing_text(situation: Situation, under_replicated: bool = False) -> Text:
    """A situation in its colour; of a partition that is healthy but for replicas out of sync, that."""
    if situation is Situation.HEALTHY and under_replicated:
        return styled("under-replicated", Style.NOTICE)
    return styled(str(situation), STYLES.get(situation, Style.BAD))


def _leader(row: Described, marks: ReplicaMarks) -> Text:
    return styled("none", Style.BAD) if row.state.leader is None else (marks.one(row.state.leader),)


def _rack(cluster: Cluster, replica: int) -> str:
    broker = cluster.broker(replica)
    return "?" if broker is None else broker.rack or "-"


def _yes_no(value: bool | None) -> Text:
    return UNKNOWN if value is None else plain("yes" if value else "no")


class DescribeReport:
    """Streams described partitions to the output and, at the end, says what the reader has to know besides.

    Use as a context manager: `add` each page, then `finish`.
    """

    def __init__(self, output: Output, cluster: Cluster, *, source: str, targets: Sequence[str] = ()) -> None:
        self._output = output
        self._cluster = cluster
        self._down = [one.id for one in cluster.brokers if one.id not in cluster.live]
        self._targets = tuple(targets)
        self._marked = self._elr_unknown = False
        self._leaderless = False
        self._seen: set[object] = set()
        self._config_errors: dict[str, str] = {}
        self._errors: list[TopicError] = []
        self._listing: Listing[Described] = output.listing(describe_view(cluster), cluster_head(cluster, source))

    def __enter__(self) -> Self:
        self._listing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listing.__exit__(kind, error, traceback)

    @property
    def shown(self) -> int:
        """How many partitions were shown."""
        return self._listing.rows

    def add(self, partitions: Sequence[Described], errors: Sequence[TopicError] = ()) -> None:
        """Show a page."""
        live = self._cluster.live
        for row in unseen(partitions, self._seen):
            self._marked = self._marked or bool(row.state.offline_replicas) or not live.issuperset(row.state.replicas)
            self._elr_unknown = self._elr_unknown or row.state.elr is None
            self._leaderless = self._leaderless or row.state.leader is None or row.state.leader not in live
        for topic, row in example_of_topics(partitions):
            if row.min_isr is None:
                self._config_errors.setdefault(topic, row.config.error or "not known")
        self._errors.extend(errors)
        self._listing.add(partitions)

    def finish(self, *, read: int, undecided: int = 0, cut_at: TopicPartition | None = None, unsaved: str = "") -> None:
        """End the report.

        Args:
            read: how many partitions were looked at.
            undecided: how many of them the filters could not judge.
            cut_at: where ``--limit`` ended it.
            unsaved: of records that disks of brokers that are down may hold alone; empty: nothing is on record.
        """
        command = explain_command(self._targets, self._errors) if self._leaderless or unsaved else None
        notes = self._notes(read, undecided, cut_at) + ([unsaved] if unsaved else [])
        self._listing.finish(
            {
                "errors": error_items(self._errors),
                "read": read,
                "undecided": undecided,
                "cursor": None if cut_at is None else str(cut_at),
                "notes": notes,
                "next": None if command is None else self._output.next_command(command),
            }
        )
        say_below(self._output, notes, self._errors, command)

    def _notes(self, read: int, undecided: int, cut_at: TopicPartition | None) -> list[str]:
        notes = []
        if self._marked and self._output.format.for_people:
            notes.append(LEGEND)
        if self._elr_unknown:
            notes.append(f"ELR is not known where it shows ?: {why_elr_is_unknown(self._cluster)}")
        if self._config_errors:
            notes.append(why_min_isr_is_unknown(self._config_errors))
        if undecided:
            notes.append(f"{undecided:,} of {read:,} partitions could not be judged: what the filter asks is not known")
        if cut_at is not None:
            notes.append(f"cut by --limit after {self.shown:,} partitions; go on with --cursor {cut_at}")
        elif not self.shown and not self._errors:
            notes.append(f"no partition to show; {read:,} looked at" if read else NOTHING_READ)
            if read and self._down and not self._targets:
                down = " or ".join(map(str, self._down))
                notes.append(
                    f"no log was read: the disk of broker {down} may hold records that an election gave up; kelr"
                    " explain says more"
                )
        return notes


def explain_command(targets: Sequence[str], errors: Sequence[TopicError]) -> list[str]:
    """The command that explains what was shown: the same targets, but for those that could not be described."""
    failed = {error.topic for error in errors}
    return ["explain", *(target for target in targets if target.partition(":")[0] not in failed)]


def cluster_head(cluster: Cluster, source: str) -> Mapping[str, Json]:
    """What every document says of where its items come from."""
    return {
        "cluster_id": cluster.cluster_id,
        "source": source,
        "elr_enabled": cluster.features.elr_enabled,
        "brokers_source": cluster.brokers_source,
        "partitions_source": cluster.partitions_source,
        "silence": cluster.controller_silence,
    }


def error_items(errors: Sequence[TopicError]) -> Json:
    """Topics that could not be described, for a document."""
    return [{"topic": error.topic, "error": error.error, "detail": error.detail} for error in errors]


def say_below(
    output: Output, notes: Iterable[str], errors: Sequence[TopicError], following: Iterable[str] | None
) -> None:
    """Print below a listing what a document holds itself: notes, topics that failed, and the next command."""
    if output.format.is_document:
        return
    for note in notes:
        output.note(note)
    note_errors(output, errors)
    if following is not None:
        output.next(following)


def note_errors(output: Output, errors: Sequence[TopicError]) -> None:
    """Topics that could not be described, for a person."""
    for error in errors:
        detail = f" ({error.detail})" if error.detail else ""
        output.note([*styled(f"{error.topic}: ", Style.BAD), *plain(f"{error.error}{detail}")])


def why_elr_is_unknown(cluster: Cluster) -> str:
    """The reason for a ``?`` in the ELR columns."""
    if cluster.features.elr_enabled is False:
        return "ELR is off on this cluster (feature eligible.leader.replicas.version is 0)"
    if cluster.partitions_source.startswith("Metadata"):
        return "the brokers do not know DescribeTopicPartitions (Kafka before 3.8, or a proxy), and Metadata has no ELR"
    return f"{cluster.partitions_source} did not tell"


def why_min_isr_is_unknown(errors: Mapping[str, str]) -> str:
    """A note on the topics whose configs could not be read, by topic, with the ACL that is missing."""
    by_reason: dict[str, list[str]] = {}
    for topic, reason in errors.items():
        by_reason.setdefault(reason, []).append(topic)
    return "min ISR is not known: " + "; ".join(f"{reason} for {_some(topics)}" for reason, topics in by_reason.items())


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more topics"


# How many partitions are in each situation, and what hangs on each broker (--summary).


_SUMMARY_KIND = "kelr/describe-summary"
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


@dataclass(frozen=True, slots=True)
class SituationCount:
    """How many partitions stand so."""

    situation: Situation
    partitions: int
    under_replicated: bool = False


@dataclass
class Summary:
    """Counts over partitions; grows with the number of brokers, not of partitions."""

    cluster: Cluster
    partitions: int = 0
    leaderless: int = 0
    """Without a leader, or with one that is not live."""
    situations: Counter[Situation] = field(default_factory=Counter)
    under_replicated: int = 0
    """Of the healthy ones."""
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

    def rows(self, *, apart: bool) -> list[SituationCount]:
        """A row for each situation that there is; `apart` has what is under-replicated in one of its own."""
        behind = self.under_replicated if apart else 0
        rows = [SituationCount(one, self.situations[one]) for one in Situation if one is not Situation.HEALTHY]
        healthy = SituationCount(Situation.HEALTHY, self.situations[Situation.HEALTHY] - behind)
        every = (healthy, SituationCount(Situation.HEALTHY, behind, under_replicated=True), *rows)
        return [row for row in every if row.partitions]

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
        if row.situation is Situation.HEALTHY and row.state.under_replicated:
            self.under_replicated += count
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
    with output.listing(summary_view(), cluster_head(summary.cluster, source)) as listing:
        listing.add(summary.rows(apart=output.format.for_people))
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


def summary_view() -> View[SituationCount]:
    """The columns of the summary's situations, each with its number of partitions."""
    return View(_SUMMARY_KIND, _situation_columns(), head=CLUSTER_HEAD, tail=(*_SUMMARY_TAIL, *ERRORS_TAIL))


_SUMMARY_TAIL = (
    Fact("partitions", "integer", "Partitions that were counted."),
    Fact("read", "integer", "Partitions that were looked at; the filters let those that are counted through."),
    Fact("undecided", "integer", "Partitions that the filters could not judge."),
    Fact(
        "brokers",
        "object[]",
        f"Each broker: status, rack, and what it is to these partitions; a count that is {NULL_UNSEEN}.",
    ),
)


def _situation_columns() -> tuple[Column[SituationCount], ...]:
    return (
        column(
            "situation",
            "SITUATION",
            "string",
            "The situation.",
            lambda row: str(row.situation),
            text=lambda row: standing_text(row.situation, row.under_replicated),
        ),
        column(
            "partitions",
            "PARTITIONS",
            "integer",
            "How many partitions are in it.",
            lambda row: row.partitions,
            text=lambda row: plain(count_text(row.partitions)),
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
