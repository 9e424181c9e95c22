"""The figures of a report: sums by cluster, week, broker and scenario, and the first few of each.

Tables are read by pyarrow, batch by batch: what is kept does not grow with partitions, and no JVM has to start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kelr.fleet.assess.tables import ASSESSMENT_SUMS
from kelr.fleet.exposure.tables import EXPOSURE, RISKY_SETTINGS, UNCLEAN_ELECTIONS, UNCLEAN_RESTARTS
from kelr.fleet.report.figures import (
    Broker,
    BrokerRestarts,
    Cluster,
    Failures,
    Figures,
    Missing,
    RiskySetting,
    Scenario,
    SettingPlace,
    Standing,
    TopicCount,
    Trouble,
    UncleanDay,
    UncleanElections,
    WeekTrouble,
)
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, INPUTS, LOG_INFO, PARTITION_STATES, Table
from kelr.model import BrokerStatus
from kelr.page.words import listed

if TYPE_CHECKING:
    from kelr.fleet.lake import Lake


# How clusters stand: counts of partitions, brokers, and from when to when there is input.


FEW = 5
"""So many topics, places and scenarios of a kind are named; the CSV files have all."""
LOG = "log"
"""The source of what a metadata log tells."""
GONE = "unregistered"
"""The status of a broker that is no more."""
_SOME = 1_000
_Row = dict[str, Any]
_Span = tuple[datetime | None, datetime | None]
_Step = tuple[str, ...]


def _standing(rows: pa.Table) -> Mapping[str, Any]:
    """What `Trouble` of kelr history means, of each row; null: not known."""
    led, in_sync = pc.is_valid(rows["leader"]), pc.list_value_length(rows["isr"])
    replicas, eligible = pc.list_value_length(rows["replicas"]), pc.list_value_length(rows["elr"])
    nobody = pc.invert(led)
    return {
        "partitions": pc.is_valid(rows["cluster"]),
        "leaderless": nobody,
        "elr_only": pc.and_(nobody, pc.and_(pc.equal(in_sync, 0), pc.greater(eligible, 0))),
        "under_min_isr": pc.and_(led, pc.less(in_sync, rows["min_isr"])),
        "last_replica": pc.and_(led, pc.and_(pc.equal(in_sync, 1), pc.greater(replicas, 1))),
        "min_isr_unknown": pc.and_(led, pc.is_null(rows["min_isr"])),
        "elr_unknown": pc.and_(nobody, pc.is_null(rows["elr"])),
    }


def clusters(lake: Lake) -> tuple[Cluster, ...]:
    """Every cluster of a lake, by name.

    Of a cluster with a metadata log only the log's rows count: what snapshots saw is part of what it tells.
    """
    times = _times(lake)
    logged = {cluster for cluster, source in times if source == LOG}
    standings, topics = _standings(lake, logged)
    brokers = _brokers(lake)
    ids = {*standings, *brokers, *(cluster for cluster, _ in times), *lake.version.clusters}
    found = [
        Cluster(
            id,
            lake.version.clusters.get(id, id),
            standings.get(id, Standing()),
            brokers.get(id, ()),
            *_span([times[key] for key in times if key[0] == id and (key[1] == LOG or id not in logged)]),
            id in logged,
            topics.get(id, ()),
        )
        for id in ids
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.id)))


def newest_states(lake: Lake, logged: Collection[str]) -> pc.Expression:
    """Which rows of `partition_states` tell how partitions are where a cluster's newest input ends. Of snapshots those
    of the newest: a partition that it does not show has an older row that nothing follows, and may be gone.

    Args:
        logged: the clusters of which there is a metadata log.
    """
    cluster, of_log = pc.field("cluster"), pc.field("source") == LOG
    is_open = pc.field("valid_to").is_null()
    seen = is_open & ~cluster.isin(pa.array(sorted(logged), pa.string()))
    newest: dict[str, datetime] = {}
    for batch in lake.dataset(PARTITION_STATES).to_batches(columns=["cluster", "valid_from"], filter=seen):
        grouped = pa.Table.from_batches([batch]).group_by("cluster").aggregate([("valid_from", "max")])
        for one in grouped.to_pylist():
            newest[one["cluster"]] = max(newest.get(one["cluster"], one["valid_from_max"]), one["valid_from_max"])
    kind = pa.timestamp("us", "UTC")
    shown = [(cluster == name) & (pc.field("valid_from") == pa.scalar(at, kind)) for name, at in newest.items()]
    return is_open & reduce(or_, shown, of_log)


def _standings(lake: Lake, logged: Collection[str]) -> tuple[dict[str, Standing], dict[str, tuple[TopicCount, ...]]]:
    """By cluster, and the topics that have the most partitions without a leader."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    leaderless: list[pa.Table] = []
    columns = ["cluster", "topic", "partition", "leader", "replicas", "isr", "elr", "min_isr"]
    dataset = lake.dataset(PARTITION_STATES)
    for batch in dataset.to_batches(columns=columns, filter=newest_states(lake, logged)):
        rows = pa.Table.from_batches([batch])
        tests = _standing(rows)
        ones = {name: pc.fill_null(test, False).cast(pa.int64()) for name, test in tests.items()}
        sums = pa.table({"cluster": rows["cluster"], **ones}).group_by("cluster")
        for one in sums.aggregate([(name, "sum") for name in tests]).to_pylist():
            counts[one["cluster"]].update({name: one[f"{name}_sum"] for name in tests})
        leaderless.append(rows.filter(tests["leaderless"]).select(["cluster", "topic", "partition"]))
    topics = top_topics(pa.concat_tables(leaderless)) if leaderless else {}
    return {cluster: Standing(**found) for cluster, found in counts.items()}, topics


def top_topics(partitions: pa.Table) -> dict[str, tuple[TopicCount, ...]]:
    """Of each cluster the few topics with the most of these partitions."""
    by_topic = partitions.group_by(["cluster", "topic"]).aggregate([("partition", "count_distinct")]).to_pylist()
    found: dict[str, list[TopicCount]] = defaultdict(list)
    for row in first_few(by_topic, ("cluster",), ("-partition_count_distinct", "topic")):
        found[row["cluster"]].append(TopicCount(row["topic"], row["partition_count_distinct"]))
    return {cluster: tuple(counts) for cluster, counts in found.items()}


def _brokers(lake: Lake) -> dict[str, tuple[Broker, ...]]:
    """As the newest event of each left it."""
    columns = ("cluster", "broker", "status", "host", "port", "rack", "source", "offset", "at")
    events = sorted(
        rows_of(lake, BROKER_EVENTS, columns),
        key=lambda row: (row["source"] == LOG, -1 if row["offset"] is None else row["offset"], row["at"]),
    )
    last: dict[tuple[str, int], _Row] = defaultdict(dict)
    for row in events:
        known = last[row["cluster"], row["broker"]]
        known |= {name: row[name] for name in columns if row[name] is not None or name not in known}
        known["status"] = row["status"]
    found: dict[str, list[Broker]] = defaultdict(list)
    for row in in_order(last.values(), "cluster", "broker"):
        if row["status"] not in {None, GONE}:
            server = None if row["host"] is None or row["port"] is None else _server(row["host"], row["port"])
            live = row["status"] == BrokerStatus.LIVE.value
            found[row["cluster"]].append(Broker(row["broker"], live, server, row["rack"]))
    return {cluster: tuple(brokers) for cluster, brokers in found.items()}


def _server(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _times(lake: Lake) -> dict[tuple[str, str], _Span]:
    """From when to when events of each cluster and source are."""
    found: dict[tuple[str, str], _Span] = {}
    for table in (CLUSTER_EVENTS, BROKER_EVENTS):
        events = lake.dataset(table).to_table(columns=["cluster", "source", "at"])
        for row in events.group_by(["cluster", "source"]).aggregate([("at", "min"), ("at", "max")]).to_pylist():
            key = row["cluster"], row["source"]
            found[key] = _span([found.get(key, (None, None)), (row["at_min"], row["at_max"])])
    return found


def _span(spans: Iterable[_Span]) -> _Span:
    known = list(spans)
    begins = [begin for begin, _ in known if begin is not None]
    ends = [end for _, end in known if end is not None]
    return min(begins, default=None), max(ends, default=None)


def has(lake: Lake, table: Table) -> bool:
    """Whether a table has any rows."""
    return bool(lake.files_of(table))


def rows_of(lake: Lake, table: Table, columns: Sequence[str], where: pc.Expression | None = None) -> Iterator[_Row]:
    """Rows of a table, one at a time."""
    for batch in lake.dataset(table).to_batches(columns=list(columns), filter=where):
        yield from batch.to_pylist()


def _key(names: Sequence[str]) -> Callable[[_Row], tuple[Any, ...]]:
    """Sorts rows; a minus in front of a name turns its numbers round. What is not known comes last."""

    def key(row: _Row) -> tuple[Any, ...]:
        values = [(row[name.lstrip("-")], name.startswith("-")) for name in names]
        return tuple((value is None, 0 if value is None else -value if down else value) for value, down in values)

    return key


def in_order(rows: Iterable[_Row], *names: str) -> list[_Row]:
    """Rows, sorted (`_key`)."""
    return sorted(rows, key=_key(names))


def first_few(rows: Iterable[_Row], by: Sequence[str], order: Sequence[str]) -> list[_Row]:
    """The first few rows of each group, in the order of groups."""
    key = _key(order)
    groups: dict[tuple[Any, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        group = groups[tuple(row[name] for name in by)]
        group.append(row)
        if len(group) > _SOME:
            group[:] = sorted(group, key=key)[:FEW]
    return in_order((row for group in groups.values() for row in sorted(group, key=key)[:FEW]), *by, *order)


# All sums.


NOT_TOLD = "unknown"
"""`elected_as` where it is not told whether an election was unclean."""


def figures_of(lake: Lake) -> Figures:
    """All figures of a report on a lake; of steps that were not run, that they were not."""
    at_ms = lake.version.at_ms
    exposed = {
        "windows": (EXPOSURE, _windows),
        "weeks": (EXPOSURE, _weeks),
        "troubles": (EXPOSURE, _troubles),
        "elections": (UNCLEAN_ELECTIONS, _elections),
        "election_days": (UNCLEAN_ELECTIONS, _election_days),
        "restarts": (UNCLEAN_RESTARTS, _restarts),
        "settings": (RISKY_SETTINGS, _settings),
        "scenarios": (ASSESSMENT_SUMS, _scenarios),
        "failures": (ASSESSMENT_SUMS, _failures),
    }
    sums: dict[str, Any] = {name: ask(lake) for name, (table, ask) in exposed.items() if has(lake, table)}
    found = clusters(lake)
    return Figures(
        lake.place,
        lake.version.number,
        datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None,
        found,
        **sums,
        missing=tuple(_missing(lake, found)),
        quarantined=lake.dataset(INPUTS).count_rows(filter=pc.field("status") == "quarantined"),
    )


def _missing(lake: Lake, found: Sequence[Cluster]) -> Iterator[Missing]:
    there = [one for one in found if one.standing.partitions]
    what = "what failures would do"
    assess = ("fleet", "assess", "--lake", lake.place, "--scenarios", "now,each-broker,each-rack")
    if ASSESSMENT_SUMS.name not in lake.version.tables:
        yield Missing(f"{what}: kelr fleet assess was not run", assess)
    else:
        if is_older(lake, ASSESSMENT_SUMS):
            yield Missing(f"{what} since they were assessed: {_MORE}", assess)
        yield from _left_out(there, _not_assessed(lake), what, assess)
    what, expose = "how long there was trouble", ("fleet", "exposure", "--lake", lake.place)
    what += ", unclean elections and restarts, risky settings"
    if EXPOSURE.name not in lake.version.tables:
        yield Missing(f"{what}: kelr fleet exposure was not run", expose)
    else:
        if is_older(lake, EXPOSURE):
            yield Missing(f"what lasted since it was summed up: {_MORE}", expose)
        exposed = {row["cluster"] for row in rows_of(lake, EXPOSURE, ("cluster",))}
        reason = "not summed up, or nothing of it is in the window"
        yield from _left_out(there, lambda one: "" if one.id in exposed else reason, what, expose)


def _not_assessed(lake: Lake) -> Callable[[Cluster], str]:
    """Why it is not known of a cluster what failures would do; empty: it is."""
    then, counts, kinds = set[str](), dict[str, int](), set[tuple[str, str]]()
    for row in rows_of(lake, ASSESSMENT_SUMS, ("cluster", "kind", "partitions", "newest")):
        counts[row["cluster"]] = row["partitions"]
        kinds.add((row["cluster"], row["kind"]))
        if not row["newest"]:
            then.add(row["cluster"])
    compared = not is_older(lake, ASSESSMENT_SUMS)

    def why(one: Cluster) -> str:
        if one.id not in counts:
            known = "" if one.brokers else ", as none of its brokers is on record: ingest its metadata log first"
            return f"not assessed{known}"
        if one.id in then:
            return "assessed as of another moment"
        if compared and counts[one.id] < one.standing.partitions:
            return f"{counts[one.id]:,} of {one.standing.partitions:,} partitions were assessed"
        return "" if (one.id, "broker") in kinds else "the failure of one broker was not assessed"

    return why


def _left_out(found: Iterable[Cluster], why: Callable[[Cluster], str], what: str, step: _Step) -> Iterator[Missing]:
    """What a step did not look at: of each reason one, with the clusters."""
    reasons: dict[str, list[Cluster]] = defaultdict(list)
    for one in found:
        reasons[why(one)].append(one)
    for reason, some in sorted(reasons.items()):
        if reason:
            names = listed(tuple(one.name for one in some), most=FEW)
            these = [word for one in some for word in ("--cluster", one.id)] if len(some) <= FEW else []
            yield Missing(f"{what} in {names}: {reason}", (*step, *these))


_MORE = "more was ingested after it"
_INGESTED = (PARTITION_STATES, BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, LOG_INFO)


def is_older(lake: Lake, table: Table) -> bool:
    """Whether a table was made before something that it is made of was ingested."""
    changed = lake.version.changed
    return changed.get(table.name, 0) < max(changed.get(one.name, 0) for one in _INGESTED)


# What they went through.


def _windows(lake: Lake) -> tuple[tuple[str, datetime | None, datetime | None], ...]:
    rows = rows_of(lake, EXPOSURE, ("cluster", "window_from", "window_to"), pc.field("dimension") == "cluster")
    found = {row["cluster"]: (row["window_from"], row["window_to"]) for row in rows}
    return tuple((cluster, *found[cluster]) for cluster in sorted(found))


def _weeks(lake: Lake) -> tuple[WeekTrouble, ...]:
    names = ("cluster", "week", "trouble", "partitions", "spells", "seconds", "unknown_seconds")
    of_clusters = (pc.field("dimension") == "cluster") & pc.field("week").is_valid() & (pc.field("seconds") > 0)
    found = in_order(rows_of(lake, EXPOSURE, names, of_clusters), "cluster", "week", "trouble")
    return tuple(WeekTrouble(**row) for row in found)


def _troubles(lake: Lake) -> tuple[Trouble, ...]:
    names = (
        *("cluster", "trouble", "partitions", "spells", "seconds", "longest_seconds", "unknown_seconds", "share"),
        *("unknown_share", "lasting", "unsure_spells"),
    )
    dimension = pc.field("dimension")
    told = (dimension == "cluster") | ((dimension == "topic") & (pc.field("seconds") > 0))
    rows = rows_of(lake, EXPOSURE, (*names, "dimension", "name"), pc.field("week").is_null() & told)
    few = first_few(rows, ("cluster", "dimension", "trouble"), ("-seconds", "name"))
    return tuple(
        Trouble(**{name: row[name] for name in names}, topic=row["name"] if row["dimension"] == "topic" else None)
        for row in few
    )


def _elections(lake: Lake) -> tuple[UncleanElections, ...]:
    columns = ("cluster", "topic", "partition", "at", "elected_as", "offsets_at_stake", "designated")
    rows = lake.dataset(UNCLEAN_ELECTIONS).to_table(columns=list(columns))
    topics = top_topics(rows)
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows.to_pylist():
        found[row["cluster"]].append(row)
    return tuple(_summed(cluster, found[cluster], topics.get(cluster, ())) for cluster in sorted(found))


def _summed(cluster: str, rows: Sequence[_Row], topics: tuple[TopicCount, ...]) -> UncleanElections:
    kinds = Counter(row["elected_as"] for row in rows)
    stakes = [row["offsets_at_stake"] for row in rows if row["offsets_at_stake"] is not None]
    last_known, not_told = kinds["last-known-leader"], kinds[NOT_TOLD]
    return UncleanElections(
        cluster,
        unclean=len(rows) - last_known - not_told,
        last_known_leader=last_known,
        not_told=not_told,
        partitions=len({(row["topic"], row["partition"]) for row in rows if row["elected_as"] != NOT_TOLD}),
        first=min(row["at"] for row in rows),
        last=max(row["at"] for row in rows),
        at_stake=sum(stakes) if stakes else None,
        at_stake_unknown=len(rows) - len(stakes),
        designated=sum(bool(row["designated"]) for row in rows),
        topics=topics,
    )


def _election_days(lake: Lake) -> tuple[UncleanDay, ...]:
    sure = pc.field("elected_as") != NOT_TOLD
    days: Counter[tuple[str, date]] = Counter(
        (row["cluster"], row["date"]) for row in rows_of(lake, UNCLEAN_ELECTIONS, ("cluster", "date"), sure)
    )
    return tuple(UncleanDay(*key, days[key]) for key in sorted(days))


def _restarts(lake: Lake) -> tuple[BrokerRestarts, ...]:
    names = ("cluster", "broker", "rack", "host", "clean", "unclean", "not_shown", "last_unclean")
    rows = rows_of(lake, UNCLEAN_RESTARTS, names, pc.field("week").is_null() & (pc.field("unclean") > 0))
    return tuple(BrokerRestarts(**row) for row in in_order(rows, "cluster", "broker"))


def _settings(lake: Lake) -> tuple[RiskySetting, ...]:
    by = ("cluster", "setting")
    places = tuple(SettingPlace.__dataclass_fields__)
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)

    def counted() -> Iterator[_Row]:
        for row in rows_of(lake, RISKY_SETTINGS, (*by, "why", "rule", "topics", *places)):
            found = {"places": 1, "topics": row["topics"] or 0, "partitions": row["partitions"] or 0}
            sums[row["cluster"], row["setting"]].update(found)
            yield row

    examples: dict[tuple[Any, ...], list[_Row]] = defaultdict(list)
    for row in first_few(counted(), by, ("-partitions", "scope", "name")):
        examples[row["cluster"], row["setting"]].append(row)
    return tuple(
        RiskySetting(
            cluster,
            setting,
            places=sums[cluster, setting]["places"],
            topics=sums[cluster, setting]["topics"],
            partitions=sums[cluster, setting]["partitions"],
            why=rows[0]["why"],
            rule=rows[0]["rule"],
            examples=tuple(SettingPlace(**{name: row[name] for name in places}) for row in rows),
        )
        for (cluster, setting), rows in examples.items()
    )


# What failures would do.


_OF_SCENARIOS = (
    *("cluster", "kind", "how", "rules", "may_lose", "leaderless", "unproven", "under_min_isr", "last_replica"),
    *("scenario", "brokers", "racks", "happens", "rules_certain", "doubtful", "min_isr_unknown", "worst_topics"),
)
_LOSES = ("-may_lose", "-unproven", "-leaderless", "-under_min_isr", "-last_replica", "scenario")
_STOPS = ("-leaderless", "-under_min_isr", "-may_lose", "-last_replica", "scenario")


def _assessed(lake: Lake) -> Iterator[_Row]:
    """The sums by one rule set for each cluster: what it is known to run, if that was assessed."""
    newest, best = pc.field("newest"), dict[str, tuple[bool, str]]()
    for row in rows_of(lake, ASSESSMENT_SUMS, ("cluster", "rules_certain", "rules"), newest):
        rank = bool(row["rules_certain"]), row["rules"]
        best[row["cluster"]] = max(best.get(row["cluster"], rank), rank)
    for row in rows_of(lake, ASSESSMENT_SUMS, _OF_SCENARIOS, newest):
        if (bool(row["rules_certain"]), row["rules"]) == best[row["cluster"]]:
            yield row


def _scenarios(lake: Lake) -> tuple[Scenario, ...]:
    """Of each kind the few that lose the most, and the few that stop the most, which need not be the same."""
    by = ("cluster", "kind")
    few = {
        (row["cluster"], row["scenario"]): row
        for order in (_LOSES, _STOPS)
        for row in first_few(_assessed(lake), by, order)
    }
    return tuple(map(_scenario, in_order(few.values(), *by, *_LOSES)))


def _scenario(row: _Row) -> Scenario:
    same = ("cluster", "kind", "how", "rules", "may_lose", "leaderless", "unproven", "under_min_isr", "last_replica")
    return Scenario(
        **{name: row[name] for name in same},
        name=row["scenario"],
        brokers=tuple(row["brokers"] or ()),
        racks=tuple(row["racks"] or ()),
        happens=row["happens"] or row["scenario"],
        rules_certain=bool(row["rules_certain"]),
        uncertain=row["doubtful"] + row["min_isr_unknown"],
        worst_topics=tuple(row["worst_topics"] or ()),
    )


def _failures(lake: Lake) -> tuple[Failures, ...]:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in _assessed(lake):
        if row["kind"] != "now":
            stops = row["leaderless"] > 0 or row["under_min_isr"] > 0
            counts[row["cluster"], row["kind"]].update(all=1, losing=int(row["may_lose"] > 0), stopping=int(stops))
    return tuple(
        Failures(*key, *(counts[key][name] for name in ("all", "losing", "stopping"))) for key in sorted(counts)
    )
