"""``kelr fleet assess`` as a function: the keys of all partitions, each decided once, joined, written and summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kelr.controller import RuleSet
from kelr.errors import BadInputError
from kelr.fleet.assess.asof import COLUMN_OF, FEW_ROWS, logs, states, topics
from kelr.fleet.assess.contexts import LOG, contexts, known_clusters
from kelr.fleet.assess.deciding import decide_batches
from kelr.fleet.assess.scenarios import Family, Wanted, joint_name
from kelr.fleet.assess.shapes import DECIDED, HAPPENING_BITS, KEY, OUTCOME
from kelr.fleet.assess.shapes import STATE as STATE_SHAPE
from kelr.fleet.assess.spreading import Spread, spread
from kelr.fleet.assess.sums import Sums, count, sums
from kelr.fleet.assess.tables import ASSESSMENT_SUMS, ASSESSMENTS, NOW
from kelr.model import LOG_DIRECTORY, SAVED, BrokerStatus, ConfigSource, LogUnavailableReason

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake


# From partitions to keys (`kelr.fleet.assess.shapes.KEY`), with Spark's own expressions: the names are taken out.
#
# A broker is called by its place among those that the partition names, as `kelr.engine.patterns` does: equal keys are
# decided alike, whatever their brokers, topics and clusters are called.


BROKERS, REFS = "brokers", "refs"
"""The ids of a key's brokers, by their places; and which scenario each hit of the key is of: the numbers of its one or
two parts."""
_GROUPS = ("isr", "elr", "last_known_elr", "offline_replicas", "adding", "removing")
_NOBODY = "cast(array() as array<int>)"
_RETURNING = 2
"""From this place in `kelr.fleet.assess.shapes.HAPPENINGS` on, brokers come back."""


def keyed(partitions: DataFrame, families: Sequence[Family]) -> DataFrame:
    """The key of each partition, with `BROKERS` and `REFS`.

    Args:
        partitions: `kelr.fleet.assess.asof.states` beside their topics (`topics`), logs (`logs`; a column `logs` in any
            case) and clusters (`kelr.fleet.assess.spreading.context_rows`).
        families: the scenarios of two parts that are asked for.
    """
    frame = _as_described(partitions)
    frame = frame.withColumn("own", _mentioned({name: fn.col(name) for name in STATE_SHAPE.fieldNames()}))
    extra = fn.when(
        fn.col("first").isNotNull() & (fn.col("partition") != 0),
        fn.array_except(_mentioned({name: fn.col("first")[name] for name in STATE_SHAPE.fieldNames()}), "own"),
    )
    frame = frame.withColumn(BROKERS, fn.concat("own", fn.coalesce(extra, fn.expr(_NOBODY))))
    frame = frame.withColumn("heard", _answers())
    frame = frame.withColumn("touched", _touched())
    frame = frame.withColumn("pairs", _pairs(families))
    return frame.withColumns({"key": _key().cast(KEY), REFS: _refs()})


def _as_described(frame: DataFrame) -> DataFrame:
    """Partitions of a metadata log as Kafka would describe them (`kelr.replay.snapshots.Described`)."""
    of_log = fn.col("source") == LOG
    up = (str(BrokerStatus.LIVE), str(BrokerStatus.SHUTTING_DOWN))
    lost = fn.coalesce("offline_replicas", fn.expr(_NOBODY))
    offline = fn.filter("replicas", lambda broker: ~_status(broker).isin(*up) | fn.array_contains(lost, broker))
    described = {"offline_replicas": fn.when(of_log, offline).otherwise(fn.col("offline_replicas"))}
    for name in ("elr", "last_known_elr"):
        nobody = fn.when(fn.col("elr_enabled"), fn.expr(_NOBODY))
        somebody = fn.size(fn.coalesce(name, fn.expr(_NOBODY))) > 0
        described[name] = fn.when(of_log & ~somebody, nobody).otherwise(fn.col(name))
    return frame.withColumns(described)


def _mentioned(state: Mapping[str, Column]) -> Column:
    """All brokers that a state names, each once, replicas first; -1 names nobody."""
    nobody = fn.expr(_NOBODY)
    leader = fn.when(state["leader"].isNotNull(), fn.array(state["leader"])).otherwise(nobody)
    groups = [state["replicas"], leader, *(fn.coalesce(state[name], nobody) for name in _GROUPS)]
    return fn.filter(fn.array_distinct(fn.concat(*groups)), lambda broker: broker >= 0)


def _place(broker: Column) -> Column:
    """Its name in the pattern; -1 for nobody."""
    return (fn.array_position(BROKERS, broker) - 1).cast("int")


def _status(broker: Column) -> Column:
    return fn.coalesce(fn.try_element_at("statuses", broker), fn.col("unlisted"))


def _state(of: Mapping[str, Column], leader_epoch: Column) -> Column:
    named = {name: fn.transform(of[name], _place) for name in ("replicas", *_GROUPS)}
    named["isr"] = fn.coalesce(named["isr"], fn.expr(_NOBODY))
    leader = fn.when(of["leader"].isNotNull(), _place(of["leader"]))
    values = {**named, "leader": leader, "leader_epoch": leader_epoch, "recovering": of["recovering"]}
    return fn.struct(*(values[name].alias(name) for name in STATE_SHAPE.fieldNames()))


def _key() -> Column:
    fields = STATE_SHAPE.fieldNames()
    topic = fn.col("topic")
    is_first = fn.col("partition") == 0
    first = _state({name: fn.col("first")[name] for name in fields}, fn.lit(0))
    values = {
        "topic": fn.when(topic.startswith("__"), topic).otherwise("topic"),
        "own": fn.size("own"),
        "statuses": fn.transform(BROKERS, _status),
        "state": _state(
            {name: fn.col(name) for name in fields},
            fn.when(fn.col("heard").isNotNull(), fn.col("leader_epoch")).otherwise(fn.least("leader_epoch", fn.lit(1))),
        ),
        "first": fn.when(fn.col("first").isNotNull() & ~is_first, first),
        "is_first": fn.col("first").isNotNull() & is_first,
        "config": _config(),
        "first_replicas": fn.coalesce("first_replicas", fn.size("replicas")),
        "elr_enabled": fn.col("elr_enabled"),
        "rules": fn.col("rules"),
        "logs": fn.col("heard"),
        "hits": fn.concat(fn.array(_now()), fn.transform("touched", _hit), fn.transform("pairs", _pair)),
    }
    return fn.struct(*(values[name].alias(name) for name in KEY.fieldNames()))


def _config() -> Column:
    def value(name: str) -> Column:
        return fn.coalesce(f"own_{name}", f"default_{name}")

    def source(name: str, known: Column) -> Column:
        own = fn.coalesce(f"own_{name}_source", fn.lit(str(ConfigSource.TOPIC)))
        default = fn.lit(str(ConfigSource.CLUSTER_DEFAULT))
        found = fn.when(fn.col(f"own_{name}").isNotNull(), own).otherwise(default)
        return fn.when(known.isNotNull(), found).otherwise(str(ConfigSource.UNKNOWN))

    assert set(COLUMN_OF.values()) == {"min_isr", "unclean", "cleanup", "strategy"}
    min_isr = fn.trim(value("min_isr")).try_cast("int")
    unclean = fn.lower(fn.trim(value("unclean"))) == "true"
    policies = fn.transform(fn.split(value("cleanup"), ","), fn.trim)
    return fn.struct(
        min_isr.alias("min_isr"),
        source("min_isr", min_isr).alias("min_isr_source"),
        unclean.alias("unclean"),
        source("unclean", unclean).alias("unclean_source"),
        fn.filter(policies, lambda policy: policy != "").alias("cleanup"),
        fn.nullif(fn.lower(value("strategy")), fn.lit("")).alias("strategy"),
    )


# Logs.


def _answers() -> Column:
    """What is known of the replicas' logs, in assignment order; null where that is nothing."""

    def answer(replica: Column) -> Column:
        return fn.get(fn.filter("logs", lambda log: log["replica"] == replica), 0)

    found = fn.filter(fn.transform(fn.array_distinct("replicas"), answer), lambda log: log.isNotNull())
    return fn.when(fn.size(found) > 0, fn.transform(found, _without_words))


def _without_words(log: Column) -> Column:
    """A log as `kelr.engine.patterns` has it, stale where its broker has been registered anew since."""
    registered = fn.try_element_at("epochs", log["replica"])
    stale = log["unheard"].isNull() & (log["broker_epoch"] != registered)
    unheard = fn.when(stale, str(LogUnavailableReason.STALE)).otherwise(log["unheard"])
    values = {
        "replica": _place(log["replica"]),
        "unheard": unheard,
        "clean_shutdown": log["clean_shutdown"],
        "broker_epoch": fn.lit(None),
        "how": fn.when(log["how"] == LOG_DIRECTORY, LOG_DIRECTORY)
        .when(log["how"].endswith(SAVED), SAVED)
        .otherwise(""),
        "may_have_held_more": fn.coalesce(log["may_have_held_more"], fn.lit(False)),
    }
    shape = KEY["logs"].dataType.elementType  # type: ignore[attr-defined]
    always = ("replica", "unheard", "clean_shutdown")
    heard = [name for name in shape.fieldNames() if name not in always]
    fields = [values[name].alias(name) for name in always]
    for name in heard:
        value = values.get(name, log[name])
        fields.append(fn.when(unheard.isNull(), value).alias(name))
    by_name = dict(zip((*always, *heard), fields, strict=True))
    return fn.struct(*(by_name[name] for name in shape.fieldNames())).cast(shape)


# What happens.


def _touched() -> Column:
    """The numbers of the scenarios that do something to the partition. A broker that comes back makes the controller
    look at every partition that nobody leads."""
    nothing = fn.expr(_NOBODY)
    own = fn.flatten(
        fn.transform(BROKERS, lambda broker: fn.coalesce(fn.try_element_at("scenarios_of", broker), nothing))
    )
    return fn.array_distinct(fn.concat(own, fn.when(fn.col("leader").isNull(), fn.col("returning")).otherwise(nothing)))


def _pairs(families: Sequence[Family]) -> Column:
    """The scenarios of two parts of which both do something to the partition."""
    nothing = fn.expr("cast(array() as array<struct<first: int, second: int>>)")
    return reduce(fn.concat, map(_of_family, families), nothing)


def _of_family(family: Family) -> Column:
    def of_group(group: int) -> Column:
        return fn.filter("touched", lambda number: fn.get("groups", number) == group)

    def fits(one: Column, other: Column) -> Column:
        if family.first is family.second:
            return one < other
        return ~fn.arrays_overlap(_brokers_of(one), _brokers_of(other))

    def with_others(one: Column) -> Column:
        others = fn.filter(of_group(family.second), lambda other: fits(one, other))
        return fn.transform(others, lambda other: fn.struct(one.alias("first"), other.alias("second")))

    return fn.flatten(fn.transform(of_group(family.first), with_others))


def _brokers_of(number: Column) -> Column:
    return fn.transform(fn.get("blows", number), lambda code: fn.shiftright(code, HAPPENING_BITS).cast("int"))


def _now() -> Column:
    none = fn.lit(None).cast("array<int>")
    return _hit_of(fn.lit(False), fn.expr(_NOBODY), none, none)


def _hit(number: Column) -> Column:
    none = fn.lit(None).cast("array<int>")
    return _hit_of(fn.get("at_once", number), _by_place(fn.get("blows", number)), none, none)


def _pair(pair: Column) -> Column:
    first, second = fn.get("blows", pair["first"]), fn.get("blows", pair["second"])
    return _hit_of(fn.lit(True), _by_place(fn.concat(first, second)), _by_place(first), _by_place(second))


def _hit_of(at_once: Column, blows: Column, first: Column, second: Column) -> Column:
    return fn.struct(at_once.alias("at_once"), blows.alias("blows"), first.alias("first"), second.alias("second"))


def _by_place(blows: Column) -> Column:
    """Blows by the brokers' places (`kelr.engine.outages.fate.place_of`): the return of one that the partition does not
    name gets the place behind the last, and nothing else of it counts."""
    count = 1 << HAPPENING_BITS

    def named(code: Column) -> Column:
        place, happening = fn.array_position(BROKERS, fn.shiftright(code, HAPPENING_BITS).cast("int")), code % count
        stranger = fn.when(happening >= _RETURNING, fn.size(BROKERS) * count + happening)
        return fn.when(place > 0, (place - 1) * count + happening).otherwise(stranger).cast("int")

    return fn.filter(fn.transform(blows, named), lambda code: code.isNotNull())


def _refs() -> Column:
    """Of each hit, the numbers of its scenario's parts among all clusters: none for ``now``."""

    def number(of: Column) -> Column:
        return fn.col("offset") + of

    def ref(first: Column, second: Column) -> Column:
        return fn.struct(first.cast("int").alias("first"), second.cast("int").alias("second"))

    none = fn.lit(None)
    alone = fn.transform("touched", lambda one: ref(number(one), none))
    pairs = fn.transform("pairs", lambda pair: ref(number(pair["first"]), number(pair["second"])))
    return fn.concat(fn.array(ref(none, none)), alone, pairs)


# The whole job.


_FEW_KEYS = 100_000
"""So many decided keys are sent to every worker."""
_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
"""A task that writes to so many folders at the same time needs not sort its rows by folder."""
_FOLDERS_AT_ONCE, _NO_FOLDERS = "64", "0"
_BROKERS = ("waits_for", "waits_safely")
_ONE_BROKER = ("leader", "elected", "advised_replica", "unclean_elected")


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be assessed."""

    wanted: Wanted = field(default_factory=Wanted)
    rules: tuple[RuleSet | None, ...] = (None,)
    """None stands for the rules that a cluster was found to run."""
    at_us: int | None = None
    """The moment, in microseconds since 1970 UTC; None: the newest."""
    clusters: tuple[str, ...] = ()
    """Ids or names; none: all."""
    topic: str | None = None
    """A name with ``*`` and ``?``."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """What came of it."""

    sums: tuple[Sums, ...]
    """In the order of clusters, rules and scenarios."""
    patterns: int
    """So many different cases there were to decide."""
    unknown: tuple[str, ...]
    """Clusters of whose brokers nothing was known then: they were left out."""

    @property
    def lost_directories(self) -> dict[str, tuple[int, ...]]:
        """By cluster: brokers that have lost a log directory; which replicas were in it is not known."""
        found = {one.context.name: one.context.lost_directories for one in self.sums}
        return {cluster: brokers for cluster, brokers in found.items() if brokers}


def assess(lake: Lake, question: Question, *, command: str = "assess") -> Assessed:
    """Assess partitions, and write assessments and assessment_sums in place of those of the same clusters.

    Raises:
        BadInputError: there is no such cluster, no partition then, or a scenario fits no cluster.
        RefusedError: another run is changing the lake.
    """
    wanted = _clusters(lake, question.clusters)
    found = contexts(lake, wanted, question.at_us)
    unknown = tuple(sorted(set(wanted) - {one.id for one in found}))
    if not found:
        raise BadInputError(
            f"of {len(unknown)} clusters none is known at that time" if unknown else f"{lake.place} has no partition",
            next_step="ingest their metadata logs or snapshots; --at is a time in UTC",
        )
    plan = spread(found, question.wanted, question.rules)
    with lake.changing(command) as changes:
        frame = keys_of(lake, plan, question.at_us, question.topic)
        decided = decided_keys(frame, plan.rules).persist()
        patterns = decided.count()
        try:
            folders = [{"cluster": one.id} for one in plan.contexts]
            rows = assessments(frame, decided, plan, few=patterns <= _FEW_KEYS)
            before = lake.spark.conf.get(_WRITERS) or _NO_FOLDERS
            lake.spark.conf.set(_WRITERS, _FOLDERS_AT_ONCE)
            try:
                changes.replace(ASSESSMENTS, rows, folders)
            finally:
                lake.spark.conf.set(_WRITERS, before)
        finally:
            decided.unpersist()
        written = changes.read(ASSESSMENTS).where(fn.col("cluster").isin([one.id for one in plan.contexts]))
        summed = tuple(sums(plan, count(written)))
        table = lake.spark.createDataFrame([one.row() for one in summed], ASSESSMENT_SUMS.schema)
        changes.replace(ASSESSMENT_SUMS, table.coalesce(1), folders)
    return Assessed(summed, patterns, unknown)


def keys_of(lake: Lake, plan: Spread, at_us: int | None, topic: str | None = None) -> DataFrame:
    """The key of every partition that is assessed, once for each rule set, with its brokers and scenarios."""
    partitions = states(lake, plan.contexts, at_us, topic)
    of_topics = topics(lake, plan.contexts, at_us, partitions)
    # Files are packed into tasks by their bytes, and a few MiB are millions of partitions, each of them many rows of
    # the answer: without this a task has a whole large cluster, and the others wait for it.
    frame = partitions.hint("rebalance").join(_small(of_topics), ["cluster", "topic"], "left")
    heard = logs(lake, plan.contexts, at_us)
    if heard is None:
        frame = frame.withColumn("logs", fn.lit(None).cast(KEY["logs"].dataType))
    else:
        frame = frame.join(_small(heard), ["cluster", "topic", "partition", "leader_epoch"], "left")
    frame = frame.join(fn.broadcast(plan.context_rows(lake.spark)), "cluster")
    frame = frame.withColumn("rules", fn.explode("rule_sets"))
    return keyed(frame, plan.families).select(
        "cluster", "topic", "partition", "rules", "key", BROKERS, REFS, "at_us", "day"
    )


def assessments(frame: DataFrame, decided: DataFrame, plan: Spread, *, few: bool) -> DataFrame:
    """The rows of the table.

    Args:
        frame: `keys_of`.
        few: whether the decided keys are few enough to be sent to every worker.
    """
    spark = frame.sparkSession
    joined = frame.join(fn.broadcast(decided) if few else decided, "key")
    each = joined.select(
        "cluster", "topic", "partition", "rules", "at_us", "day", BROKERS, fn.inline(fn.arrays_zip(REFS, "outcomes"))
    )
    names = plan.scenario_rows(spark)
    first = names.select(fn.col("number").alias("n1"), fn.col("name").alias("name1"), fn.col("kind").alias("kind1"))
    second = names.select(fn.col("number").alias("n2"), fn.col("name").alias("name2"), fn.col("kind").alias("kind2"))
    each = each.join(fn.broadcast(first), fn.col(f"{REFS}.first") == fn.col("n1"), "left")
    if plan.families:
        each = each.join(fn.broadcast(second), fn.col(f"{REFS}.second") == fn.col("n2"), "left")
    else:
        each = each.withColumns({"name2": fn.lit(None).cast("string"), "kind2": fn.lit(None).cast("string")})
    joint = fn.concat(fn.col("name1"), fn.lit(joint_name("", "")), fn.col("name2"))
    values = {name: fn.col(f"outcomes.{name}") for name in OUTCOME.fieldNames()}
    values |= {name: _id(values[name]) for name in _ONE_BROKER}
    values |= {name: fn.transform(values[name], _id) for name in _BROKERS}
    values |= {
        "scenario": fn.coalesce(joint, fn.col("name1"), fn.lit(NOW)),
        "kind": _kind(plan.families),
        "rules": fn.get(fn.array(*(fn.lit(one.name) for one in plan.rules)), fn.col("rules")),
        "at": fn.timestamp_micros("at_us"),
        "date": fn.col("day"),
    }
    return each.select(*(values.get(name, fn.col(name)).alias(name) for name in ASSESSMENTS.columns))


def _clusters(lake: Lake, asked: Sequence[str]) -> tuple[str, ...]:
    known = known_clusters(lake)
    if not asked:
        return known
    names = {lake.version.clusters.get(one, one): one for one in known} | {one: one for one in known}
    missing = [one for one in asked if one not in names]
    if missing:
        there_are = ", ".join(sorted(lake.version.clusters.get(one, one) for one in known)) or "none"
        raise BadInputError(
            f"{lake.place} has no cluster {missing[0]!r}; there are: {there_are}", next_step="leave --cluster out"
        )
    return tuple(dict.fromkeys(names[one] for one in asked))


def decided_keys(frame: DataFrame, rules: Sequence[RuleSet]) -> DataFrame:
    """Every key once, decided. Keys of one pattern go to one worker, which decides what they have in common once."""
    tasks = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    distinct = frame.select("key").distinct().repartition(tasks, "key.state", "key.statuses", "key.config")
    return distinct.mapInArrow(partial(decide_batches, rules=tuple(rules)), DECIDED)


def _small(frame: DataFrame) -> DataFrame:
    """A table that is sent to every worker where it is small enough, and else left to Spark."""
    return fn.broadcast(frame) if frame.limit(FEW_ROWS + 1).count() <= FEW_ROWS else frame


def _id(place: Column) -> Column:
    """The id of the broker at a place; what names nobody stays."""
    return fn.when(place < 0, place).otherwise(fn.get(BROKERS, place))


def _kind(families: Sequence[Family]) -> Column:
    """Two brokers are a pair; a broker and a rack are what a rolling restart makes of them."""
    found = fn.coalesce("kind1", fn.lit(NOW))
    for family in families:
        second = "broker" if family.first is family.second else "rack"
        found = fn.when(fn.col("kind2") == second, family.kind).otherwise(found)
    return found
